"""The exact values as the truth for the sampling methods.

On a real model and a text that cannot be enumerated.
"""

import numpy as np
import pytest

import whence
from whence.models.model import Model

TEXT = (
    "the plot is thin and the jokes are old yet the cast is so charming "
    "that one forgives this dull little film almost everything"
)
SEEDS = 8


@pytest.fixture(scope="module")
def model() -> Model:
    return whence.load("single-layer", dtype="float64")


@pytest.mark.slow  # a simulation: every estimator many times over
@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("lime", {"estimator": "plain"}),
        ("lime", {"estimator": "surrogate", "bandwidth": None}),
        ("shapley", {"estimator": "kernel"}),
        ("shapley", {"estimator": "surrogate"}),
        (
            "shapley",
            {"estimator": "permutation", "samples": 1500},
        ),  # 300 are six pairs of orders: too few to know their spread
    ],
    ids=lambda x: x if isinstance(x, str) else "-".join(map(str, x.values())),
)
def test_sampling_scatters_around_the_exact_value_as_its_error_says(
    model: Model, method: str, given: dict
) -> None:
    """Would catch a bias of one standard error, and an error bar of half or twice its length."""
    bandwidth = {"bandwidth": given["bandwidth"]} if "bandwidth" in given else {}
    truth = whence.explain(
        model, TEXT, f"{method}-exact", target="positive", **bandwidth, evidence=False
    ).scores
    runs = [
        whence.explain(
            model,
            TEXT,
            method,
            target="positive",
            removal="mask",
            seed=seed,
            **{"samples": 300, **given},
            evidence=False,
        )
        for seed in range(SEEDS)
    ]
    scores, errors = (
        np.array(x) for x in ([r.scores for r in runs], [r.error.standard_error for r in runs])
    )  # (seed, unit)
    sure = (
        errors.max(0) < 1e-9
    )  # a word that is [UNK] already: removing it changes nothing, in any order
    np.testing.assert_allclose(
        scores[:, sure], np.broadcast_to(truth[sure], scores[:, sure].shape), atol=1e-9
    )
    steps = (scores - truth)[:, ~sure] / errors[:, ~sure]
    share = float((np.abs(steps) < 1.96).mean())
    assert 0.86 < share <= 0.995, share
    assert np.abs(steps.mean(0)).mean() < 0.5  # eight seeds: 0.28 without bias
    spread = float(np.sqrt((steps**2).mean()))
    assert 0.7 < spread < 1.4, spread


@pytest.mark.slow  # nine runs of up to 1,600 samples
def test_more_samples_come_nearer(model: Model) -> None:
    truth = whence.explain(model, TEXT, "lime-exact", target="positive", evidence=False).scores
    off = []
    for samples in (100, 400, 1600):
        found = [
            whence.explain(
                model,
                TEXT,
                "lime",
                target="positive",
                removal="mask",
                samples=samples,
                seed=s,
                evidence=False,
            ).scores
            for s in range(3)
        ]
        off.append(np.mean([np.linalg.norm(f - truth) for f in found]))
    assert off[0] > 1.5 * off[1]
    assert off[1] > 1.3 * off[2]
