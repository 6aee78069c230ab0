"""Uniform attention against planted models, and mean-pooling by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.audits.planted import irrelevant, second_layer_only, selects
from tests.families import build, inputs
from tests.tolerance import rounding
from whence.audits.case import Case
from whence.audits.uniform import Uniform
from whence.core.audit import Place
from whence.core.target import Target
from whence.models.model import Model


def changes(model: Model, case: Case) -> dict[Place, float]:
    return {o.place: o.value for o in Uniform()(model, [case])[0]}


def test_a_uniform_layer_pools_the_mean_of_its_values() -> None:
    """By hand: every token's value is replaced by the mean of all (Kovaleva et al.).

    Would catch: one head only, a layer beside, or the sum in place of the mean.
    """
    model = build("bert")
    model.hf.double()
    case = Case(inputs(model, 1)[0], Target())
    plain = model.logits([case.passage])
    values = model.hf.bert.encoder.layer[1].attention.self.value
    handle = values.register_forward_hook(
        lambda _module, _args, out: out.mean(1, keepdim=True).expand_as(out)
    )
    pooled = model.logits([case.passage])
    handle.remove()
    expected = float(model.change(torch.from_numpy(plain), torch.from_numpy(pooled))[0])
    tolerance = rounding(100, 1.0, np.float64)
    assert expected > 1000 * tolerance
    assert changes(model, case)[Place(1)] == pytest.approx(expected, abs=tolerance, rel=0)


@pytest.mark.parametrize("seed", range(3))
def test_planted_models(seed: int) -> None:
    planted = selects(seed)
    for case in planted.cases[:2]:
        assert changes(planted.model, case)[Place(0)] > 0.5
    planted = irrelevant(seed)
    for case in planted.cases[:2]:
        assert max(changes(planted.model, case).values()) < rounding(20, 1.0)
    planted = second_layer_only(seed)
    for case in planted.cases[:2]:
        observed = changes(planted.model, case)
        assert observed[Place(0)] < rounding(40, 1.0) < 0.5 < observed[Place(1)]
        assert observed[Place(0, 0)] < rounding(40, 1.0) < 0.1 < observed[Place(1, 0)]
