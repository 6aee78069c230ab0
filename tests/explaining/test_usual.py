"""The methods of those who name none: the cheapest that our own published numbers speak for."""

from __future__ import annotations

import csv
import inspect
from collections import defaultdict

import pytest

import whence
from tests.reader import ROOT
from whence.core.usual import METHOD_OF_A_TEXT, METHOD_OF_WRITTEN

ANSWER = ROOT / "docs" / "assets" / "answer"
# encoders, under both removals; and a decoder, where nothing holds when words are masked
RUNS = {
    "sentences": ("mask", "delete"),
    "reviews": ("mask", "delete"),
    "minilm": ("mask", "delete"),
    "toxicity": ("mask", "delete"),
    "smollm2": ("delete",),
}


def holding(run: str) -> set[str]:
    """The methods that are better than random by seven of eight measures, or more."""
    verdicts = defaultdict(list)
    with (ANSWER / f"{run}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "faithfulness" and row["removal"] in RUNS[run] and row["verdict"]:
                verdicts[row["method"]].append(row["verdict"] == "better than random")
    return {method for method, each in verdicts.items() if sum(each) >= 7 / 8 * len(each)}


def test_it_is_better_than_random_on_every_kind_of_model_that_was_tried() -> None:
    """Would catch integrated gradients, which are not on the decoder, and gradient × input."""
    assert METHOD_OF_A_TEXT in set.intersection(*map(holding, RUNS))
    assert "integrated-gradients" not in holding("smollm2")
    assert "gradient-x-input" not in holding("sentences")


def test_none_of_these_is_cheaper() -> None:
    model = whence.load("sentiment")
    paid = {}
    for method in set.intersection(*map(holding, RUNS)):
        cost = whence.explain(model, "a dull and boring mess", method, evidence=False).cost
        paid[method] = cost.forwards + 2 * cost.backwards
    assert min(paid, key=lambda method: paid[method]) == METHOD_OF_A_TEXT


@pytest.mark.parametrize(
    ("verb", "usual"),
    [
        (whence.explain, METHOD_OF_A_TEXT),
        (whence.generate, METHOD_OF_WRITTEN),
        (whence.context, METHOD_OF_WRITTEN),
    ],
)
def test_the_verbs_have_it(verb: object, usual: str) -> None:
    parameters = inspect.signature(verb).parameters  # type: ignore[arg-type]
    (given,) = [parameters[name].default for name in ("method", "methods") if name in parameters]
    assert usual in (given, *([given] if isinstance(given, str) else given))
