"""Formulas beside measurements: what is told of a text, and what is refused."""

import re

import numpy as np
import pytest

import whence
from whence.core.errors import InputError, Unsupported

LONG = "the plot is thin and the jokes are old yet the cast is so charming that one forgives it"


def test_a_long_text_is_sampled_and_a_short_one_is_not() -> None:
    model = whence.load("single-layer", dtype="float64")
    _, long = whence.closed_forms(model, LONG, evidence=False)
    _, short = whence.closed_forms(model, "a dull film", evidence=False)
    assert long.holds
    assert short.holds
    assert "LIME, sampled" in long.tables[1].columns
    assert "LIME, all masks" in short.tables[1].columns
    assert any("standard errors" in c.claim for c in long.claims)
    assert not any("standard errors" in c.claim for c in short.claims)


def test_a_text_of_unknown_words_has_no_number_that_is_none() -> None:
    _, book = whence.closed_forms(whence.load("single-layer"), "zzzq qqqx", evidence=False)
    assert "nan" not in str(book)
    assert book.holds


def test_scores_that_are_rounding_are_zero_and_rank_nothing() -> None:
    """Would catch: LIME's 1e-16 on unknown words, ranked, judged and counted as a method."""
    comparison, _ = whence.closed_forms(whence.load("single-layer", dtype="float64"), "zzzq qqqx")
    for name in ("lime", "lime-exact", "shapley-exact"):
        a = comparison[name]
        assert not a.scores.any()
        assert a.evidence is not None
        assert a.evidence.ranks_nothing
    assert "of the 6 methods" in str(comparison.answer)  # those that rank something


def test_the_captions_say_how_far_the_approximations_are_off() -> None:
    """The percentages of the caption are those of the columns beside it, in their order."""
    _, book = whence.closed_forms(whence.load("single-layer"), LONG, evidence=False)
    table = book.tables[1]
    at = {name: i for i, name in enumerate(table.columns)}
    rows = np.array([row[1:] for row in table.rows], dtype=float)
    exact = rows[:, at["ν = ∞"] - 1]
    told = [float(share) / 100 for share in re.findall(r"(\d+) %", table.caption)]
    for name, share in zip(("mean field", "first order", "talk, 3/2"), told, strict=True):
        off = rows[:, at[name] - 1] - exact
        assert abs(np.linalg.norm(off) / np.linalg.norm(exact) - share) <= 0.005
    (sampled,) = [c for c in book.claims if "standard errors" in c.claim]
    lime, spread, truth = (rows[:, at[n] - 1] for n in ("LIME, sampled", "±", "exact"))
    (far,) = re.findall(r"at most ([\d.]+) standard errors away", sampled.measured)
    assert abs(np.abs((lime - truth) / spread).max() - float(far)) <= 0.05


def test_refusals() -> None:
    model = whence.load("single-layer")
    with pytest.raises(InputError, match="one run of the model"):
        whence.closed_forms(model, LONG * 20, overflow="window")
    with pytest.raises(InputError, match="loaded model, not a str"):
        whence.closed_forms("single-layer", LONG)
    with pytest.raises(Unsupported, match="float16"):
        whence.closed_forms(whence.load("single-layer", dtype="float16"), LONG)
