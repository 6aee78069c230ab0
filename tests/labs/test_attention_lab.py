"""The attention lab: its claims, and its few functions against torch and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import whence
from whence.core.errors import SettingsError, WhenceError
from whence.labs import attention as lab
from whence.notebook import Notebook


@pytest.fixture(scope="module")
def ran() -> tuple[Notebook, bool]:
    """The notebook, and whether torch's global generator was left as it was."""
    before = torch.random.get_rng_state()
    book = whence.lab("attention", quick=True, formats=("svg",))
    return book, torch.equal(before, torch.random.get_rng_state())


@pytest.mark.slow  # a whole lab
def test_every_claim_holds(ran):
    book, _ = ran
    assert len(book.claims) >= 20
    assert [c for c in book.claims if not c.holds] == []


@pytest.mark.slow  # a whole lab
def test_figures_tables_and_slides(ran):
    book, _ = ran
    names = {f.name for f in book.figures}
    steps = (
        "projections",
        "scores",
        "unscaled",
        "scaled",
        "masked",
        "masks",
        "cross",
        "permuted",
        "positions",
        "distances",
        "entropy",
    )
    assert names == {f"attention-{n}" for n in (*steps, "heads", "methods", "schemes")}
    assert {t.name for t in book.tables} == {"attention-entropies", "attention-strongest"}
    assert book.to_html().count("<section") == 15  # title, thirteen heads, claims


@pytest.mark.slow  # a whole lab
def test_the_global_generator_is_left_alone(ran):
    assert ran[1]


def test_attention_is_torchs_own():
    # a missing √d, a softmax over the wrong axis and a mask that is not added would all show
    q, k, v = torch.randn(
        3, 2, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    ours = lab.attention(q, k, v, lab.causal_mask(5))[1]
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    unscaled = lab.attention(q, k, v, scale=False)[1]
    torch.testing.assert_close(
        unscaled,
        torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0),
        rtol=1e-12,
        atol=1e-12,
    )


def test_the_worked_example_by_plain_arithmetic():
    # without torch: a transposed weight matrix or exchanged keys and queries would show
    x, wk, wq, wv = (np.array(m, dtype=float) for m in (lab.X, lab.W_KEY, lab.W_QUERY, lab.W_VALUE))
    for scale, expected in ((1.0, lab.UNSCALED), (math.sqrt(3), lab.SCALED)):
        for s in range(3):
            shares = [math.exp(float((x[s] @ wq) @ (x[t] @ wk)) / scale) for t in range(3)]
            out = sum(share / sum(shares) * (x[t] @ wv) for t, share in enumerate(shares))
            np.testing.assert_allclose(out, expected[s], atol=5e-5)


def test_the_mask_is_open_on_the_diagonal():
    assert lab.causal_mask(3).tolist() == [[0, -math.inf, -math.inf], [0, 0, -math.inf], [0, 0, 0]]
    assert lab.causal_mask(2, strict=True).tolist() == [[-math.inf, -math.inf], [0, -math.inf]]


@pytest.mark.parametrize("base", [100.0, 10000.0])
def test_positions_by_their_formula(base):
    # exponents that start at 2/d, sines in odd columns, and a base that is ignored would show
    pe = lab.positional_encoding(7, 6, base)
    for t in range(7):
        for i in range(3):
            assert pe[t, 2 * i].item() == pytest.approx(
                math.sin(t / base ** (2 * i / 6)), abs=1e-14
            )
            assert pe[t, 2 * i + 1].item() == pytest.approx(
                math.cos(t / base ** (2 * i / 6)), abs=1e-14
            )


@pytest.mark.parametrize(
    ("width", "base"), [(5, 10000.0), (4, 0.0), (4, -2.0), (4, math.inf), (4, math.nan)]
)
def test_positions_that_make_no_sense(width, base):
    with pytest.raises(SettingsError, match="even width and a positive base"):
        lab.positional_encoding(3, width, base)


def test_one_token_twice_looks_the_same_without_positions_only():
    # a head whose tokens are always placed, or never, would show
    free, placed = (
        lab.attention(*lab.projected(lab.TOKENS, 0, placed=p))[0] for p in (False, True)
    )
    torch.testing.assert_close(free[2], free[3], rtol=0, atol=1e-12)
    assert (placed[2] - placed[3]).abs().max() > 1e-3


@pytest.mark.slow  # a whole lab
def test_entropy_of_the_curve_begins_at_uniform_and_falls(ran):
    (table,) = [t for t in ran[0].tables if t.name == "attention-entropies"]
    sigma, scaled, raw = np.array(table.rows).T
    # scores of spread σ²d (without the factor σ²d^1.5) lower the entropy by half their variance, to
    # leading order
    small = sigma <= 0.04
    np.testing.assert_allclose(
        (1 - scaled[small]) * math.log(64), (sigma[small] ** 2 * 64) ** 2 / 2, rtol=0.25
    )
    assert ((1 - raw[:2]) / (1 - scaled[:2])).tolist() == pytest.approx([64, 64], rel=0.1)


@pytest.mark.slow  # a whole lab
def test_the_strongest_words_are_those_of_the_methods(ran):
    (table,) = [t for t in ran[0].tables if t.name == "attention-strongest"]
    strongest = dict(table.rows)
    model = whence.load("sentiment")
    for name in ("rollout", "generic-attention"):
        word, _ = whence.explain(model, lab.SENTENCE, name, evidence=False).top(1)[0]
        assert strongest[name] == word
    w = whence.attend(model, lab.SENTENCE, units="token").weights["encoder"].mean(1)
    # first layer on the left; no word of this text is split
    literal = (w[0] @ w[1] @ w[2] @ w[3])[0, 1:-1]
    assert strongest["A₁A₂…, no residual"] == lab.SENTENCE.split()[literal.argmax()]


def test_your_own_words_and_their_letters():
    # a dollar sign begins no formula, a tag is text, a letter without a glyph no warning; too long
    # for flow
    book = Notebook("own", quick=True, formats=("svg",))
    lab._in_a_model(book, "costs $5 and $6 <b>not</b> bad 中国 " + "very " * 17 + "good")
    rows = dict(next(t for t in book.tables if t.name == "attention-strongest").rows)
    assert "flow" not in rows
    assert "rollout" in rows
    assert "&lt;b&gt;" in book.to_html()


def test_no_words_are_refused():
    with pytest.raises(WhenceError):
        lab._in_a_model(Notebook("none", formats=("svg",)), "")
