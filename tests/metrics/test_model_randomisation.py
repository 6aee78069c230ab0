"""Model randomisation: three explainers whose value is known, and a real one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import whence
from tests.metrics.made_again import explanation
from whence.core.registry import find_metric
from whence.core.request import Request, wishes_for
from whence.explaining.again import measured_again
from whence.metrics.model_randomisation import ModelRandomisation

METRIC = ModelRandomisation(steps=2, seeds=2)


def test_it_is_a_difference_of_two_mean_correlations() -> None:
    """Of sizes: the enemy takes the sign along."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 9))
    first, *others = [explanation(row) for row in rows]
    sizes = np.abs(rows)
    alike = [spearmanr(sizes[0], row).statistic for row in sizes[1:]]
    truth = np.mean(alike[:2]) - np.mean(alike[2:])
    assert METRIC(first, others) == pytest.approx(truth, abs=1e-12)


def test_noise_gains_nothing_and_nor_does_what_ignores_the_model() -> None:
    """Without the calibration noise, which is unlike anything, would be the best explainer."""
    rng = np.random.default_rng(1)
    always = explanation(rng.normal(size=200))
    assert METRIC(always, [always] * 4) == 0.0
    noise = [explanation(row) for row in rng.normal(size=(5, 2000))]
    assert abs(METRIC(noise[0], noise[1:])) < 0.1
    sound = [always, always, *noise[3:]]
    sound = [always, always] + [explanation(rng.normal(size=200)) for _ in range(2)]
    assert METRIC(always, sound) > 0.8


def test_the_method_random_fails_and_occlusion_passes() -> None:
    model, text = whence.load("sentiment"), "the food is great but the service is not good at all"
    names = ["occlusion", "random"]
    c = whence.compare(model, text, names, evidence=False)
    request = Request(wishes=wishes_for(names), evidence=False)
    metric = find_metric("model-randomisation").settings()
    measured = measured_again(model, [c.attributions], {"it": metric}, request).of_texts[0]
    passes, fails = measured["occlusion"]["it"].value, measured["random"]["it"].value
    assert passes is not None
    assert fails is not None
    assert passes > 0.5
    assert fails < 0  # the same numbers whatever the model, and others under another seed
