"""Every family that transformers lists, with each of its heads: what every method makes of it.

    python -m bench.zoo                       # all pairs, a line for each, then the counts
    python -m bench.zoo --part 0/8 --to zoo.jsonl
    python -m bench.zoo causal-rwkv masked-bert

Pairs run in a process of their own, one after another. One that dies or takes longer than
``--seconds`` is noted, and the others go on in a fresh one. ``tests/test_zoo.py`` runs a short
version of this.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.zoo import Animal, animals

FEW = 3  # methods that may be refused where a model "runs nearly all"
BARE = ("bare error", "died", "too slow")
Line = dict[str, Any]


def main() -> None:
    """Sweep, and say what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pairs", nargs="*", help="head-family; all of them if none is named")
    parser.add_argument("--part", default="0/1", help="which share of the pairs: 0/8 … 7/8")
    parser.add_argument("--seconds", type=float, default=90, help="for one pair")
    parser.add_argument("--to", type=Path, help="a file of JSON lines, to which lines are added")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        _work()
        return

    part, parts = map(int, asked.part.split("/"))
    names = asked.pairs or [str(animal) for animal in animals(every_head=True)]
    lines = []
    for line in swept(names[part::parts], asked.seconds):
        lines.append(line)
        print(_in_words(line), flush=True)
        if asked.to is not None:
            with asked.to.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    print(_counts(lines))
    sys.exit(any(line["outcome"] in BARE for line in lines))


def swept(names: Sequence[str], seconds: float) -> Iterator[Line]:
    """A line for each pair, in order."""
    worker: subprocess.Popen[bytes] | None = None
    for name in names:
        if worker is None:
            worker = _worker()
        began = time.monotonic()
        line = _asked_of(worker, name, seconds)
        if line["outcome"] in ("died", "too slow"):
            worker.kill()
            worker.wait()
            worker = None
        yield {**line, "pair": name, "seconds": round(time.monotonic() - began, 1)}
    if worker is not None:
        worker.kill()
        worker.wait()


def _worker() -> subprocess.Popen[bytes]:
    worker = subprocess.Popen(
        [sys.executable, "-m", "bench.zoo", "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert worker.stdout is not None
    worker.stdout.readline()  # it has imported everything
    return worker


def _asked_of(worker: subprocess.Popen[bytes], name: str, seconds: float) -> Line:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{name}\n".encode())
    worker.stdin.flush()
    with selectors.DefaultSelector() as waiting:
        waiting.register(worker.stdout, selectors.EVENT_READ)
        if not waiting.select(seconds):
            return {"outcome": "too slow", "says": f"more than {seconds:.0f} s"}
    answer = worker.stdout.readline()
    if not answer:
        return {"outcome": "died", "says": f"exit {worker.wait()}"}
    return json.loads(answer)


# ---------------------------------------------------------------------- in the worker


def _work() -> None:
    """Read pairs, and write what came of each as a line of JSON."""
    import transformers

    import tests.test_zoo  # noqa: F401  (everything is imported before the clock runs)

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a model prints is no answer
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    print("ready", file=answers, flush=True)
    for name in sys.stdin:
        head, family = name.strip().split("-", 1)
        print(json.dumps(_tried(Animal(family, head))), file=answers, flush=True)


def _tried(animal: Animal) -> Line:
    from tests.test_zoo import outcome
    from whence.core.errors import OurMistake, WhenceError

    try:
        refused = outcome(animal)
    except OurMistake as mistake:
        return {"outcome": "bare error", "says": str(mistake), "where": traceback.format_exc()}
    except WhenceError as refusal:
        return {"outcome": "refused whole", "says": str(refusal)}
    except Exception as problem:
        says = f"{type(problem).__name__}: {problem}"
        return {"outcome": "bare error", "says": says, "where": traceback.format_exc()}

    if refused is None:
        return {"outcome": "not built"}
    ours = [why for why in refused.values() if "mistake of whence" in why]
    if ours:
        return {"outcome": "bare error", "says": ours[0], "refused": refused}
    outcome_of_all = "ran nearly all" if len(refused) <= FEW else "refused in part"
    return {"outcome": outcome_of_all, "refused": refused}


# ---------------------------------------------------------------------- in words


def _in_words(line: Line) -> str:
    says = line.get("says") or "; ".join(sorted(set(line.get("refused", {}).values())))
    return f"{line['outcome']:16}{line['pair']:40}{line['seconds']:5.1f} s  {says[:300]}"


def _counts(lines: Sequence[Line]) -> str:
    counts = Counter(line["outcome"] for line in lines)
    built = len(lines) - counts["not built"]
    return f"{len(lines)} pairs, {built} built: {dict(counts.most_common())}"


if __name__ == "__main__":
    main()
