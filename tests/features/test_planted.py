"""Directions that were planted are found, by every variant."""

from __future__ import annotations

import pytest

from tests.choices import at_once
from tests.features.planted import batches, directions, fit
from whence.features.fitting import finished
from whence.features.quality_of_weights import best_cosines, use_of
from whence.features.settings import Settings

STEPS, BATCH = 1000, 1024
SETTINGS = {
    "relu": {"sparsity": 4.0},
    "topk": {"k": 3},
    "batch-topk": {"k": 3},
    "jump-relu": {"sparsity": 2.0, "threshold": 0.5, "bandwidth": 1.0},
    "gated": {"sparsity": 8.0},
    "matryoshka": {"k": 3, "prefixes": (48, 96)},
}


@pytest.mark.parametrize("name", at_once(SETTINGS, ["topk"]))
def test_planted_directions_are_found(name: str) -> None:
    # a wrong version: an encoder without gradients (cosines of 0.6, those of random directions)
    settings = Settings(
        name,
        size=96,
        steps=STEPS,
        batch=BATCH,
        learning_rate=3e-3,
        dead_after=20_000,
        **SETTINGS[name],  # type: ignore[arg-type]
    )
    state, _ = fit(settings)
    autoencoder = finished(state, settings)
    cosines = best_cosines(directions(), autoencoder.decoder)
    print(name, cosines.mean(), cosines.min(), (cosines > 0.9).sum())
    assert cosines.mean() >= 0.98
    assert (cosines > 0.9).all()

    # on rows as they are, not as they were scaled for training
    use = use_of(autoencoder, [next(batches(4000, seed=9))])
    print(use.l0, use.variance_explained)
    assert use.variance_explained > 0.7
    assert use.l0 < 6  # 2.4 directions are there
