"""Directions that were planted are found, by every variant."""

from __future__ import annotations

import pytest

from tests.choices import at_once
from tests.features.planted import batches, directions, fit
from whence.features.fitting import finished
from whence.features.quality_of_weights import best_cosines, use_of
from whence.features.settings import Settings

SETTINGS = {
    "relu": {"sparsity": 5.0, "steps": 500},
    "topk": {"k": 3, "steps": 300},
    # with the auxiliary loss at 1/32, one of two seeds leaves two directions in one feature
    "batch-topk": {"k": 2, "steps": 500, "auxiliary": 0.3},
    "jump-relu": {"sparsity": 2.0, "steps": 500},
    "gated": {"sparsity": 10.0, "steps": 500},
    # a smallest dictionary of fewer than 48 features must mix directions
    "matryoshka": {"k": 3, "prefixes": (64, 96), "steps": 700},
}


@pytest.mark.parametrize("name", at_once(SETTINGS, ["topk"]))
def test_planted_directions_are_found(name: str) -> None:
    # a wrong version: an encoder without gradients (cosines of 0.6, those of random directions)
    settings = Settings(
        name,
        size=96,
        batch=1024,
        learning_rate=3e-3,
        dead_after=20_000,
        **SETTINGS[name],  # type: ignore[arg-type]
    )
    state, _ = fit(settings)
    autoencoder = finished(state, settings)
    cosines = best_cosines(directions(), autoencoder.decoder)
    assert cosines.mean() >= 0.98
    assert (cosines > 0.9).all()

    # on rows as they are, not as they were scaled for training
    use = use_of(autoencoder, [next(batches(4000, seed=9))])
    assert use.variance_explained > 0.6
    assert use.l0 < 6  # 2.4 directions are there
