"""Formulas beside measurements: what is told of a text, and what is refused."""

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


def test_refusals() -> None:
    model = whence.load("single-layer")
    with pytest.raises(InputError, match="one run of the model"):
        whence.closed_forms(model, LONG * 20, overflow="window")
    with pytest.raises(InputError, match="loaded model, not a str"):
        whence.closed_forms("single-layer", LONG)
    with pytest.raises(Unsupported, match="float16"):
        whence.closed_forms(whence.load("single-layer", dtype="float16"), LONG)
