"""Implementation invariance: the formula, and a method that is known to break it."""

from __future__ import annotations

import numpy as np
import pytest

import whence
from tests.metrics.made_again import explanation
from whence.core.registry import find_metric
from whence.core.request import Request, wishes_for
from whence.explaining.again import measured_again
from whence.metrics.again import Missing
from whence.metrics.implementation_invariance import ImplementationInvariance, share_apart

TEXT = "the food is great but the service is not good at all"


def test_it_is_the_mean_over_the_copies_that_are_there() -> None:
    first = explanation([3.0, 4.0])
    others = [explanation([3.0, 4.0]), Missing("unknown names"), explanation([-3.0, -4.0])]
    assert ImplementationInvariance()(first, others) == pytest.approx(0.5)
    assert share_apart(np.array([3.0, 4.0]), np.array([0.0, 4.0])) == pytest.approx(3 / 9)


def test_norms_of_values_alone_are_not_invariant_and_functions_are() -> None:
    """value-weighted looks at values before the projection that undoes their scale.

    The enemy is a set of copies none of which changes what any method can see.
    """
    model = whence.load("sentiment")
    names = ["occlusion", "gradient-x-input", "attention-mean", "value-weighted"]
    c = whence.compare(model, TEXT, names, evidence=False)
    request = Request(wishes=wishes_for(names), evidence=False)
    metric = find_metric("implementation-invariance").settings()
    measured = measured_again(model, [c.attributions], {"it": metric}, request).of_texts[0]
    for name in names[:3]:
        value = measured[name]["it"].value
        assert value is not None
        assert value > 0.9999, name
    broken = measured["value-weighted"]["it"].value
    assert broken is not None
    assert broken < 0.99
