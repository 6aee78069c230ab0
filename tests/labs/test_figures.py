"""The figures lab: its claims, where each picture is, and its few functions against references."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import whence
from whence.core.errors import InputError, WhenceError
from whence.games.sampling import all_masks
from whence.labs import LABS
from whence.labs import figures as lab
from whence.notebook.book import Notebook
from whence.theory.heads import heads_of
from whence.theory.limits import alpha


@pytest.fixture(scope="module")
def ran() -> tuple[Notebook, bool]:
    """The notebook, and whether torch's global generator was left as it was."""
    before = torch.random.get_rng_state()
    book = whence.lab("figures", quick=True, formats=("svg",))
    return book, torch.equal(before, torch.random.get_rng_state())


@pytest.mark.slow  # a whole lab
def test_the_claims_but_for_two_that_this_model_does_not_bear_out(ran):
    # its strongest word is another than the paper's; and the intercept that LIME fits to it is
    # close to 0, although f(all removed) is not
    fails = [c.claim for c in ran[0].claims if not c.holds]
    assert fails == [
        "As in the paper, attention ranks “popular” first",
        "Without an intercept, as on the slide, they miss it by more than 5 %",
    ]
    assert len(ran[0].claims) >= 14


@pytest.mark.slow  # a whole lab
def test_figures_tables_and_slides(ran):
    book, _ = ran
    assert {f.name for f in book.figures} == {
        f"figures-{n}" for n in ("explainers", "heads", "gradient", "samples", "weights", "lime")
    }
    assert {t.name for t in book.tables} == {"figures-where", "figures-scores", "figures-paper"}
    assert book.to_html().count("<section") == 7  # title, five heads, claims


@pytest.mark.slow  # a whole lab
def test_the_global_generator_is_left_alone(ran):
    assert ran[1]


def test_every_picture_is_where_the_table_says():
    """A picture that no lab draws, or that came since, would show: three were “not yet” there."""
    folder = Path(lab.__file__).parent
    for _, picture, name, figure in lab.PICTURES:
        if name.startswith("none: whence "):  # a command shows it
            assert (folder.parent / "cli" / f"{name.split()[-1]}.py").exists(), picture
            continue
        assert name in LABS, picture
        if name not in ("theorem", "figures"):
            assert f'"{figure}"' in (folder / f"{name}.py").read_text(encoding="utf-8"), picture


@pytest.mark.slow  # a whole lab
def test_the_figures_of_the_lab_are_those_of_the_table(ran):
    own = {f.name for f in ran[0].figures}
    assert own == {figure for _, _, name, figure in lab.PICTURES if name == "figures"}


@pytest.mark.slow  # a whole lab
def test_scores_are_those_of_the_methods(ran):
    # another label, a row of [CLS] that slipped in, norms for means, and G×I without positions
    # would show
    (table,) = [t for t in ran[0].tables if t.name == "figures-scores"]
    rows = {name: np.array(values) for name, *values in table.rows}
    ours = {
        "α-avg": "attention-mean",
        "α-max": "attention-max",
        "G-L2": "gradient-l2",
        "LIME": "lime-exact",
    }
    model = whence.load("single-layer")
    for row, method in ours.items():
        settings = {"removal": "mask"} if row == "LIME" else {}
        theirs = whence.explain(
            model,
            lab.SENTENCE,
            method,
            target="positive",
            read="logit",
            **settings,
            evidence=False,
        ).scores
        np.testing.assert_allclose(
            rows[row] / np.abs(rows[row]).max(), theirs / np.abs(theirs).max(), atol=2e-4
        )


def test_autograd_by_finite_differences():
    # a gradient of the other label, or of e without its row of [CLS], would show
    model = whence.load("single-layer")
    heads = heads_of(model, model.encode("a fine film"), whence.Target("positive", index=1))
    found, step = lab.autograd(model, heads, 1), 1e-6
    for place, column in ((0, 3), (1, 0), (3, 127)):
        ends = []
        for sign in (1, -1):
            e = heads.e.copy()
            e[place, column] += sign * step
            ends.append(type(heads)(e, heads.w_q, heads.w_k, heads.w_v, heads.read).output)
        assert found[place, column] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-8)


def test_masks_are_limes():
    # sizes from 0 or only to d − 1, a first row that is not the text, or words that go in order
    # would show
    masks = lab.draw_masks(5, 40_001, np.random.default_rng(0))
    assert masks[0].all()
    removed = 5 - masks[1:].sum(1)
    np.testing.assert_allclose(
        np.bincount(removed, minlength=6) / 40_000, [0, 0.2, 0.2, 0.2, 0.2, 0.2], atol=0.01
    )
    np.testing.assert_allclose(masks[1:].mean(0), alpha(1, 5, None), atol=0.01)
    both = masks[1:, :, None] & masks[1:, None, :]
    np.testing.assert_allclose(both.mean(0)[np.triu_indices(5, 1)], alpha(2, 5, None), atol=0.01)


def test_weights_by_the_cosine_distance():
    # a squared distance, a bandwidth of 25, or a distance by Hamming would show
    masks = all_masks(4)[1:]
    for bandwidth in (0.25, 1.0):
        for z, found in zip(masks.astype(float), lab.lime_weights(masks, bandwidth), strict=True):
            delta = 1 - z.sum() / (np.linalg.norm(z) * np.linalg.norm(np.ones(4)))
            assert found == pytest.approx(np.exp(-(delta**2) / (2 * bandwidth**2)))
    assert lab.lime_weights(np.zeros((1, 4), dtype=bool))[0] == pytest.approx(np.exp(-8))
    assert lab.weight_at(0.5) == pytest.approx(np.exp(-2))


def test_the_surrogate_is_weighted_least_squares():
    # weights that are not rooted, or rooted twice, would show: this is no line
    rng = np.random.default_rng(3)
    masks = all_masks(4)
    values, weights = rng.normal(size=16), lab.lime_weights(masks)
    z = np.hstack([masks, np.ones((16, 1))])
    expected = np.linalg.solve(z.T @ (weights[:, None] * z), z.T @ (weights * values))
    np.testing.assert_allclose(lab.surrogate(masks, values, weights), expected[:4], atol=1e-10)
    bare = masks.astype(float)
    expected = np.linalg.solve(bare.T @ (weights[:, None] * bare), bare.T @ (weights * values))
    np.testing.assert_allclose(
        lab.surrogate(masks, values, weights, intercept=False), expected, atol=1e-10
    )


def test_your_own_words_and_their_letters():
    # a word twice, one that the model does not know, a dollar sign that begins no formula, and two
    # lines of words
    book = Notebook("own", quick=True, formats=("svg",))
    lab.run(book, "not bad , not $5 and $6 <b> xyzzyx " + "very " * 10 + "good")
    assert any(
        "does not know" in p.text and "xyzzyx" in p.text for p in book.parts if hasattr(p, "text")
    )
    assert not any("paper" in c.claim for c in book.claims)
    assert "figures-paper" not in {t.name for t in book.tables}


def test_one_word_is_enough():
    book = Notebook("one", quick=True, formats=("svg",))
    lab.run(book, "good")
    assert len(book.figures) == 6


@pytest.mark.parametrize(("words", "error"), [("", WhenceError), ("very " * 41, InputError)])
def test_no_words_and_too_many_are_refused(words, error):
    with pytest.raises(error):
        lab.run(Notebook("none", formats=("svg",)), words)
