"""The theorem lab in its quick form, and its own sampler beside the exact values."""

import numpy as np
import pytest

import whence
from whence.games.ratio import RatioOfSums
from whence.labs.theorem import PLACES, TEXT, bounded_heads, lime_run, relative, sampled_masks
from whence.notebook.book import Notebook
from whence.theory.exact import exact_lime


@pytest.fixture(scope="module")
def book() -> Notebook:
    return whence.lab("theorem", quick=True, formats=("svg",))


@pytest.mark.slow
def test_every_claim_holds(book: Notebook) -> None:
    assert [c.claim for c in book.claims if not c.holds] == []
    assert len(book.claims) >= 14


@pytest.mark.slow
def test_figures_and_tables(book: Notebook) -> None:
    assert [f.name for f in book.figures] == [
        "theorem-law",
        "theorem-check-random",
        "theorem-check-biased",
        "theorem-check-trained",
        "theorem-growth",
        "theorem-sharpness",
    ]
    errors = next(t for t in book.tables if t.name == "theorem-errors")
    talk, first, field = errors.rows[0][1:4]
    assert field < first < talk


def test_the_text_has_as_many_words_as_the_talks() -> None:
    assert len(TEXT.split()) == 99
    assert len(whence.load("single-layer").encode(" ".join(TEXT.split())).unit_spans) == 99


def test_masks_remove_from_one_word_to_all() -> None:
    """Would catch s ~ U{0 … d − 1}, and a removal with repetition."""
    masks = sampled_masks(7, 20_000, np.random.default_rng(0))
    removed = (~masks).sum(1)
    assert removed[0] == 0
    counts = np.bincount(removed[1:], minlength=8)
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:] / counts.sum(), 1 / 7, atol=0.012)
    np.testing.assert_allclose((~masks).mean(0), 8 / 14, atol=0.02)  # E[s]/d, for every word alike


def test_a_run_converges_to_the_exact_value() -> None:
    ratio = bounded_heads(np.random.default_rng(1), 12, 40, spread=1.0)
    truth = exact_lime(ratio, None)
    errors = [relative(lime_run(ratio, n, np.random.default_rng(2)), truth) for n in (500, 50_000)]
    assert errors[1] < errors[0]
    assert errors[1] < 0.01


def test_heads_are_bounded_as_the_theorem_asks() -> None:
    ratio = bounded_heads(np.random.default_rng(0), 99, PLACES)
    assert isinstance(ratio, RatioOfSums)
    assert np.abs(ratio.n / ratio.g).max() <= 1
    assert 0.2 < ratio.g.min() < ratio.g.max() < 5
