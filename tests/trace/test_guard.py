"""The guard on models that misbehave: what is refused, what still works, and what is read where."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests import misbehaving
from tests.families import FAMILIES
from tests.families import build as build_family
from tests.misbehaving import Plain, build
from whence.core.errors import Unsupported
from whence.core.registry import Needs
from whence.explaining.attend import attend
from whence.explaining.explain import compare, explain
from whence.trace import guard
from whence.trace.trace import trace

TEXT = "the food is great but the service is not"
ATTENTION = ("attention-mean", "attention-max", "rollout", "flow", "value-weighted")


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_on_the_list_passes_every_check(family: str) -> None:
    model = build_family(family)
    for finding in guard.findings(model):
        assert finding.holds is not False, finding


def test_attention_that_is_not_the_models_own_is_refused_and_gradients_are_not_touched() -> None:
    model = build(misbehaving.EagerIsAnother)
    alone = explain(model, TEXT, "gradient-x-input", evidence=False)
    together = compare(model, TEXT, evidence=False)
    np.testing.assert_array_equal(together["gradient-x-input"].scores, alone.scores)
    assert set(ATTENTION) < set(together.skipped)
    for name in ATTENTION:
        assert "made visible the model says something else" in together.skipped[name]
        assert "Gradient methods and those that play" in together.skipped[name]

    # the wrong version: gradients of the trace whose attention is visible
    needs = Needs.ATTENTION | Needs.EMBEDDING_GRADIENTS
    seen = trace(model, [model.encode(TEXT)], needs=needs)
    own = trace(model, [model.encode(TEXT)], needs=Needs.EMBEDDING_GRADIENTS)
    gap = (seen.embedding_gradients - own.embedding_gradients).abs().max()
    assert float(gap / own.embedding_gradients.abs().max()) > 0.05


def test_attend_refuses_it_too_unless_eager_is_asked_for() -> None:
    model = build(misbehaving.EagerIsAnother)
    with pytest.raises(Unsupported, match="says something else"):
        attend(model, TEXT)
    assert attend(model, TEXT, attention_via="output").kinds


def test_pooled_attention_is_refused_by_its_size() -> None:
    model = build(misbehaving.PoolsItsKeys)
    refused = compare(model, TEXT, evidence=False).skipped
    assert set(ATTENTION) < set(refused)
    assert "windowed, pooled" in refused["rollout"]
    assert "gradient-l2" not in refused
    # also where the guard was not asked
    with pytest.raises(Unsupported, match="windowed, pooled"):
        trace(model, [model.encode(TEXT)], needs=Needs.HEAD_MEANS)


@pytest.mark.parametrize("kind", [misbehaving.Detached, misbehaving.HalfDetached])
def test_gradients_that_do_not_arrive_or_lie_are_refused(kind: type[Plain]) -> None:
    model = build(kind)
    for method in ("gradient-l1", "gradient-x-input", "integrated-gradients", "smooth-grad"):
        with pytest.raises(Unsupported, match="Methods that play"):
            explain(model, TEXT, method, evidence=False)
    assert np.isfinite(explain(model, TEXT, "occlusion").scores).all()


@pytest.mark.parametrize(
    ("kind", "place"),
    [(misbehaving.ReadsTheLast, -1), (misbehaving.ReadsTheSecond, 1), (Plain, 0)],
)
def test_the_row_of_the_token_that_is_read_speaks(kind: type[Plain], place: int) -> None:
    model = build(kind)
    scores = explain(
        model, TEXT, "attention-mean", evidence=False, units="token", layer="last"
    ).scores
    passage = model.encode(TEXT, units="token")
    maps = trace(model, [passage], needs=Needs.ATTENTION).attentions["encoder"][-1][0]
    row = maps.mean(0)[place]
    content = torch.from_numpy(~passage.special)
    np.testing.assert_allclose(scores, row[content].numpy(), atol=1e-6)
    other = maps.mean(0)[2]  # the wrong version: the row of a token that is not read
    assert float((row - other).abs().max()) > 1e-3


def test_a_head_that_reads_all_tokens_speaks_through_the_mean_of_rows() -> None:
    model = build(misbehaving.ReadsTheMean)
    assert guard.readout(model).choice == "all"
    assert model.readout(model.encode(TEXT)) is None


def test_no_method_crashes_on_any_of_them() -> None:
    kinds = [
        kind
        for kind in vars(misbehaving).values()
        if isinstance(kind, type) and issubclass(kind, Plain)
    ]
    assert len(kinds) > 15
    for kind in kinds:
        if kind in (misbehaving.Raises, misbehaving.NeverTheSame):
            continue
        comparison = compare(build(kind), TEXT, evidence=False, budget="300")
        assert "occlusion" in comparison.attributions, kind
