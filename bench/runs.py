"""Runs over data sets: what the store costs, what batches gain, memory, workers, bytes, parts.

    python -m bench.runs overhead --texts reviews.tsv
    python -m bench.runs workers

Without a file the sentences that lie beside this one are taken.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

import whence
from bench.timing import Ratio, interleaved
from whence.core.request import wishes_for
from whence.core.sizes import human
from whence.explaining.data_set import PART
from whence.models.model import Model
from whence.runs.data import Row, open_data
from whence.runs.kept_rows import keep_rows
from whence.runs.manifest import Manifest, write_manifest
from whence.runs.parts import as_bytes, parts_of, read_part
from whence.runs.places import Folder, place_of
from whence.runs.run import Run

SENTENCES = Path(__file__).with_name("sentences.tsv")
OVERHEAD = 1.05  # at most: a run over the loop that it replaces
GAIN = 2.0  # at least: one by one over batches, of gradients at this many tokens
AT_TOKENS = 20
GROWTH = 50_000_000  # at most: bytes of memory after many texts over those after some
SOME, MANY = 500, 5000
TWO_WORKERS = 1.7  # at least: the seconds of one worker over those of two

FIVE = ("gradient-l2", "gradient-x-input", "rollout", "occlusion", "lime")
GRADIENTS = ("gradient-l2", "gradient-x-input")
# these run one text many times, and so in batches, whether it stands alone or not
BATCHED_BY_THEMSELVES = ("integrated-gradients", "smoothgrad")


def texts_of(file: Path, count: int) -> list[str]:
    """So many texts of a file; from the beginning again, where it has fewer."""
    if file == SENTENCES:
        lines = file.read_text(encoding="utf-8").splitlines()
        texts = [line.partition("\t")[2] for line in lines if not line.startswith("#")][1:]
    else:
        texts = [row.text for row in open_data(file).rows() if row.text]
    return [texts[i % len(texts)] for i in range(count)]


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path) / "run"


def run(model: Model, texts: Sequence[str], methods: Sequence[str], **more: Any) -> Run:
    """A run into a folder that is gone afterwards."""
    with folder() as out:
        return whence.run(model, list(texts), list(methods), out=out, **more)


# ---------------------------------------------------------------------- ratios


def overhead(model: Model, texts: Sequence[str], method: str, evidence: bool) -> list[Ratio]:
    """The run over two bare loops of ``explain``: text by text, and in lists as long as a part.

    The second one has the same batches as the run, so what is over is the store.
    """
    parts = [list(texts[i : i + PART]) for i in range(0, len(texts), PART)]

    def ours() -> object:
        return run(model, texts, [method], evidence=evidence)

    def one_by_one() -> object:
        return [whence.explain(model, text, method, evidence=evidence) for text in texts]

    def in_lists() -> object:
        return [whence.explain(model, part, method, evidence=evidence) for part in parts]

    what = f"run of {len(texts)}, {method}{', evidence' if evidence else ''}"
    loops = {"explain, one by one": one_by_one, f"explain, lists of {PART}": in_lists}
    ratios = []
    for over, loop in loops.items():
        rounds = 3 if evidence else 5
        ratios.append(
            interleaved(
                what, ours, over, loop, limit=OVERHEAD, rounds=rounds, clock=time.process_time
            )
        )
    return ratios


def batches(model: Model, texts: Sequence[str], method: str) -> Ratio:
    """``explain`` text by text over the run, which writes parts too: the larger, the better."""

    def one_by_one() -> object:
        return [whence.explain(model, text, method, evidence=False) for text in texts]

    return interleaved(
        f"{len(texts)} texts of {AT_TOKENS} tokens one by one, {method}",
        one_by_one,
        f"a run in parts of {PART}",
        partial(run, model, texts, [method], evidence=False),
        limit=None if method in BATCHED_BY_THEMSELVES else GAIN,
        rounds=5,
        clock=time.process_time,
    )


def of_length(model: Model, texts: Sequence[str], tokens: int, count: int) -> list[str]:
    alike = [text for text in dict.fromkeys(texts) if len(model.encode(text)) == tokens]
    if not alike:
        raise SystemExit(f"none of the texts has {tokens} tokens: name a longer file by --texts.")
    return [alike[i % len(alike)] for i in range(count)]


# ---------------------------------------------------------------------- memory


def memory(model: Model, texts: Sequence[str], methods: Sequence[str]) -> list[tuple[int, int]]:
    """Resident memory after so many texts of one run."""
    seen: list[tuple[int, int]] = []
    marks = [SOME, MANY // 2, MANY]

    def watch(done: int, failed: int, rows: int) -> None:
        del failed, rows
        if marks and done >= marks[0]:
            gc.collect()
            seen.append((done, resident()))
            marks.pop(0)

    run(model, texts, methods, evidence=False, progress=watch)
    return seen


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


# ---------------------------------------------------------------------- workers


@dataclass(frozen=True)
class Pool:
    """Seconds on the wall of some workers, for 1,000 texts, and all of them from start to end.

    A worker loads its model once, however long the run is. So the first are those between the first
    part of each worker and the last part.
    """

    steady: float
    total: float


def workers(
    model: Model, texts: Sequence[str], method: str, rounds: int
) -> list[tuple[Pool, Pool]]:
    """One worker, a process as they all are, and two, in turns."""
    pairs = []
    for _ in range(rounds):
        one, two = _pool(model, texts, method, 1), _pool(model, texts, method, 2)
        print(f"for 1,000 texts: one worker {one.steady:.1f} s, two {two.steady:.1f} s", flush=True)
        pairs.append((one, two))
    return pairs


def _pool(model: Model, texts: Sequence[str], method: str, number: int) -> Pool:
    from whence.runs.engines.processes import processes

    with folder() as out:
        manifest = prepared(model, texts, method, out)
        begun = time.perf_counter()
        marks = []
        for part in processes(place_of(out), range(manifest.parts), number, lambda: False):
            marks.append((time.perf_counter(), len(manifest.rows_of(part.number))))
    since, last = marks[number - 1][0], marks[-1][0]
    rows = sum(rows for _, rows in marks[number:])
    return Pool((last - since) / rows * 1000, last - begun)


def prepared(model: Model, texts: Sequence[str], method: str, out: Path) -> Manifest:
    """A run with rows and a manifest, of which nothing is done."""
    from whence.core.request import Request, targets_of
    from whence.explaining.rows import READER, WORK, ExplainRows, asked_of

    request = Request(wishes_for([method]), targets_of(None), evidence=False)
    place = place_of(out)
    rows = [Row(number, text, id=str(number)) for number, text in enumerate(texts)]
    count = len(list(keep_rows(place, rows)))
    data = {"rows": count, "digest": ""}
    asked = asked_of(ExplainRows(model, request))
    manifest = Manifest(WORK, READER, asked, data, PART, whence.__version__)
    write_manifest(place, manifest)
    return manifest


# ---------------------------------------------------------------------- bytes


@dataclass(frozen=True)
class Size:
    """What a run takes on the disk."""

    texts: int
    methods: int
    rows: int  # bytes of the texts themselves
    parts: int
    columns: dict[str, int]  # bytes of the largest columns, and of all footers

    @property
    def each(self) -> float:
        """Bytes for one text and method."""
        return self.parts / self.texts / self.methods


def size(model: Model, texts: Sequence[str], methods: Sequence[str], evidence: bool) -> Size:
    import pyarrow.parquet as pq

    with folder() as out:
        done = whence.run(model, list(texts), list(methods), out=out, evidence=evidence)
        columns: dict[str, int] = {"footers": 0}
        for part in done.parts.values():
            footer = pq.read_metadata(out / part.name)
            columns["footers"] += footer.serialized_size
            for i in range(footer.num_columns):
                column = footer.row_group(0).column(i)
                name = column.path_in_schema.replace(".list.element", "")
                columns[name] = columns.get(name, 0) + column.total_compressed_size
        rows = sum(file.stat().st_size for file in (out / "rows").iterdir())
        parts = sum(file.stat().st_size for file in (out / "parts").iterdir())
    largest = sorted(columns.items(), key=lambda item: -item[1])[:6]
    return Size(len(texts), len(methods), rows, parts, dict(largest))


# ---------------------------------------------------------------------- costs for a planner


def costs(model: Model, texts: Sequence[str], method: str, evidence: bool) -> dict[str, float]:
    """Seconds of the processor, passes and bytes of one text."""
    run(model, texts[:2], [method], evidence=evidence)
    with folder() as out:
        begun = time.process_time()
        done = whence.run(model, list(texts), [method], out=out, evidence=evidence)
        seconds = time.process_time() - begun
        paid = done.query("select avg(forwards) as f, avg(backwards) as b from texts")
        (passes,) = paid.to_pylist()
        stored = sum(file.stat().st_size for file in (out / "parts").iterdir())
    count = len(texts)
    return {
        "seconds": seconds / count,
        "forwards": passes["f"],
        "backwards": passes["b"],
        "bytes": stored / count,
    }


# ---------------------------------------------------------------------- many parts


def many_parts(model: Model, count: int, out: Path) -> None:
    """A run of so many parts of one short text each, as a crowd of files has it."""
    import pyarrow as pa

    text = "not bad at all"
    manifest = prepared(model, [text] * count, "gradient-l2", out)
    manifest = Manifest(**{**vars(manifest), "part_size": 1})
    write_manifest(place_of(out), manifest)
    with folder() as other:
        one = whence.run(model, [text], ["gradient-l2"], out=other, evidence=False)
        table = read_part(one.place, one.parts[0])
    (out / "parts").mkdir()
    for number in range(count):
        content = as_bytes(table.set_column(0, "row", pa.array([number])))
        digest = hashlib.sha256(content).hexdigest()[:16]
        # plainly, as flushing each would measure the disk
        (out / "parts" / f"{number:06d}-{digest}.parquet").write_bytes(content)


def handling(out: Path) -> Iterator[tuple[str, float, float, int]]:
    """Processor and wall seconds of what is done with all parts, and the memory after it."""
    question = "select method, avg(score) from scores where unit = 'not' group by 1"
    opened: dict[str, Run] = {}

    def open_it() -> None:
        opened["run"] = whence.open_run(out)

    steps: dict[str, Callable[[], object]] = {
        "list": lambda: parts_of(Folder(out)),
        "open": open_it,
        "state": lambda: opened["run"].state,
        "query": lambda: opened["run"].query(question),
        "query again": lambda: opened["run"].query(question),
    }
    for name, step in steps.items():
        processor, wall = time.process_time(), time.perf_counter()
        step()
        yield name, time.process_time() - processor, time.perf_counter() - wall, resident()


def digests(count: int) -> tuple[float, float]:
    """Seconds to read and digest rows of a data set, and to keep them as well."""
    from whence.runs.data import Choice, chosen, digest_of

    with folder() as out:
        out.mkdir()
        file = out / "texts.tsv"
        lines = texts_of(SENTENCES, count)
        file.write_text("text\n" + "\n".join(lines) + "\n", encoding="utf-8")
        begun = time.process_time()
        digest_of(chosen(open_data(file), Choice()))
        read = time.process_time() - begun
        begun = time.process_time()
        digest_of(keep_rows(place_of(out / "run"), chosen(open_data(file), Choice())))
        return read, time.process_time() - begun


# ---------------------------------------------------------------------- the command


def show(ratio: Ratio, at_least: bool = False) -> None:
    verdict = ""
    if ratio.limit is not None:
        holds = ratio.ratio >= ratio.limit if at_least else ratio.ratio <= ratio.limit
        bound = "at least" if at_least else "at most"
        verdict = f"{bound} {ratio.limit}: {'yes' if holds else 'NO'}"
    print(
        f"{ratio.what:<62} {ratio.ratio:5.2f} [{ratio.low:.2f}, {ratio.high:.2f}] × "
        f"{ratio.over:<24} {ratio.seconds:7.2f} s  {verdict}",
        flush=True,
    )


def show_memory(seen: Sequence[tuple[int, int]]) -> None:
    for done, held in seen:
        print(f"after {done:,} texts: {human(held)}")
    grown = seen[-1][1] - seen[0][1]
    verdict = "yes" if grown <= GROWTH else "NO"
    print(f"grown by {grown / 1e6:.1f} MB; at most {human(GROWTH)}: {verdict}")


def show_workers(pairs: Sequence[tuple[Pool, Pool]]) -> None:
    ratio = median(one.steady / two.steady for one, two in pairs)
    total = median(one.total / two.total for one, two in pairs)
    verdict = "yes" if ratio >= TWO_WORKERS else "NO"
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    print(f"one worker over two: {ratio:.2f}; at least {TWO_WORKERS}: {verdict}")
    print(f"with loading the model, which is done once: {total:.2f}")
    print(f"{os.cpu_count()} cores; load averages over 1, 5 and 15 minutes: {load}")


def show_size(stored: Size) -> None:
    print(
        f"{stored.texts} texts × {stored.methods} methods: parts {human(stored.parts)}, "
        f"rows {human(stored.rows)}; {stored.each:.0f} bytes for each text and method"
    )
    for name, taken in stored.columns.items():
        print(f"  {name:<28} {taken / stored.parts:5.1%}")


def main() -> None:
    sections = ("overhead", "batches", "memory", "workers", "size", "costs", "parts", "digest")
    parser = argparse.ArgumentParser(prog="bench.runs", description=__doc__)
    parser.add_argument("section", choices=sections)
    parser.add_argument("--texts", type=Path, default=SENTENCES, help="a file with sentences")
    parser.add_argument("--count", type=int, help="how many texts, or parts")
    parser.add_argument("--methods", type=lambda given: given.split(","))
    parser.add_argument("--evidence", action="store_true")
    parser.add_argument("--rounds", type=int, default=3, help="of workers")
    parser.add_argument("--out", type=Path, help="of parts: a folder that is kept, and used again")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = whence.load("sentiment")
    file, evidence = options.texts, options.evidence

    if options.section == "overhead":
        for method in options.methods or ["gradient-x-input"]:
            for ratio in overhead(model, texts_of(file, options.count or 200), method, evidence):
                show(ratio)
    elif options.section == "batches":
        alike = of_length(model, texts_of(file, 2000), AT_TOKENS, options.count or 64)
        for method in options.methods or (*GRADIENTS, *BATCHED_BY_THEMSELVES):
            show(batches(model, alike, method), at_least=True)
    elif options.section == "memory":
        texts = texts_of(file, options.count or MANY)
        show_memory(memory(model, texts, options.methods or ["gradient-x-input"]))
    elif options.section == "workers":
        method = (options.methods or ["gradient-x-input"])[0]
        texts = texts_of(file, options.count or 2000)
        show_workers(workers(model, texts, method, options.rounds))
    elif options.section == "size":
        texts = texts_of(file, options.count or 1000)
        show_size(size(model, texts, options.methods or FIVE, evidence))
    elif options.section == "costs":
        texts = texts_of(file, options.count or PART)
        for method in options.methods or FIVE:
            cost = costs(model, texts, method, evidence)
            shown = ", ".join(f"{name} {value:.4g}" for name, value in cost.items())
            print(f"{method:<24} {shown}", flush=True)
    elif options.section == "digest":
        count = options.count or 100_000
        read, kept = digests(count)
        print(f"{count:,} rows: digest {read:.1f} s; digest, and copied into rows/, {kept:.1f} s")
    else:
        out = options.out or Path(tempfile.mkdtemp()) / "run"
        if not out.exists():
            many_parts(model, options.count or 10_000, out)
        for name, processor, wall, held in handling(out):
            print(f"{name:<14} {processor:8.2f} s of the processor, {wall:8.2f} s, {human(held)}")


if __name__ == "__main__":
    main()
