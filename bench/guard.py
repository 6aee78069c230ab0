"""What the guard costs: a `compare` on a fresh model object over one whose findings are known.

    python -m bench.guard              # the bundled model at several lengths, and a BERT-base
    python -m bench.guard --rounds 9 --no-large

Both are timed in turns, in processor time of one thread, each on a new copy of the model, so that
what else a first `compare` pays (the hash of the weights, the copy of the tokenizer) is in both.
``guard alone`` is what the checks take by themselves.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable

import torch

import whence
from whence.core.registry import Needs, methods
from whence.models.conduct import remember
from whence.models.model import Model
from whence.trace.guard import findings, look_over

TEXTS = {
    "4 words": "the food is bad",
    "7 words": "the food is not bad at all",
    "12 words": "a gorgeous , witty , seductive movie that never quite loses its way",
    "20 words": "the food is great and the selection on the menu is great "
    "but the service is not bad prices are fine",
}
LIMIT = 0.05


def main() -> None:
    """Print a line for each model and length."""
    parser = argparse.ArgumentParser(description="What the guard costs.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-large", action="store_true", help="leave out the BERT-base")
    asked = parser.parse_args()
    torch.set_num_threads(1)

    print(f"{'':34}{'known':>9}{'fresh':>9}{'more':>9}{'guard alone':>13}")
    bundled = whence.load("sentiment")
    for length, text in TEXTS.items():
        _print(f"sentiment, {length}", *measured(bundled, text, asked.rounds))
    if not asked.no_large:
        large = _of_base_size(bundled)
        _print("BERT-base size, 7 words", *measured(large, TEXTS["7 words"], 1))


def measured(model: Model, text: str, rounds: int) -> tuple[float, float, float]:
    """Seconds of `compare` with findings known, and fresh; and those of the checks alone."""
    known, fresh, alone = [], [], []
    first = _copied(model)
    whence.compare(first, text)  # whatever Python and torch do once
    remembered = findings(first)
    for turn in range(rounds):
        for is_known in (True, False) if turn % 2 else (False, True):
            copied = _copied(model)
            for finding in remembered if is_known else ():
                remember(copied, finding)
            taken = _seconds(lambda copied=copied: whence.compare(copied, text))
            (known if is_known else fresh).append(taken)
        another = _copied(model)
        another.encode(text)
        alone.append(_seconds(lambda another=another: look_over(another, _needs())))
    return statistics.median(known), statistics.median(fresh), statistics.median(alone)


def _copied(model: Model) -> Model:
    """The same model as another object, of which nothing is known."""
    return whence.load(copy.deepcopy(model.hf), tokenizer=model.tokenizer)


def _needs() -> Needs:
    """What all methods need together."""
    needs = Needs.NOTHING
    for method in methods().values():
        if not method.needs & Needs.GAME:
            needs |= method.needs
    return needs


def _seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def _of_base_size(model: Model) -> Model:
    """A BERT-base with random weights, and the tokenizer of the bundled model."""
    import transformers as tf

    torch.manual_seed(0)
    config = tf.BertConfig(vocab_size=len(model.tokenizer), num_labels=2)
    return whence.load(tf.BertForSequenceClassification(config).eval(), tokenizer=model.tokenizer)


def _print(name: str, known: float, fresh: float, alone: float) -> None:
    more = fresh / known - 1
    verdict = "" if more <= LIMIT else f"  over {LIMIT:.0%}"
    print(f"{name:34}{known:8.3f}s{fresh:8.3f}s{more:9.1%}{alone:12.3f}s{verdict}", flush=True)


if __name__ == "__main__":
    main()
