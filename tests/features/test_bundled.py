"""The autoencoder that comes with whence: it is of the bundled writer, small, and good for it."""

from __future__ import annotations

import json
from pathlib import Path

import torch

import whence
from whence.core.features_quality import Quality
from whence.features import load
from whence.features.quality_of_weights import use_of
from whence.trace.hidden import hidden_at

FOLDER = Path(whence.__file__).parent / "features" / "bundled" / "writer"
# written for this test, in the manner of the corpus
TEXTS = (
    "My lord, the king is come to speak with thee, and bids thee open the gates of the city.",
    "This film is a waste of time: the story is dull, the actors are bad and the ending is worse.",
    "The Congress must act this year to bring down the cost of energy for the American people.",
    "We are a free nation, and our strength is the faith of our people in their government.",
)


def test_it_is_of_the_bundled_writer_and_small() -> None:
    autoencoder = load("writer")
    assert autoencoder.about.fingerprint == whence.load("writer").fingerprint
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 3_000_000
    assert len(autoencoder.about.peak or ()) == autoencoder.size


def test_it_stands_for_the_hidden_states_of_new_text() -> None:
    # would catch: weights of another layer, or without the centre and scale of their training
    model, autoencoder = whence.load("writer"), load("writer")
    passages = [model.encode(text) for text in TEXTS]
    layer = autoencoder.about.layer
    explained = {}
    for other in range(4):
        rows = torch.cat(hidden_at(model, passages, other))
        explained[other] = use_of(autoencoder, [rows]).variance_explained
    assert explained[layer] == max(explained.values())
    assert explained[layer] > 0.5


def test_its_metrics_are_those_of_its_card() -> None:
    stored = json.loads((FOLDER / "metrics.json").read_text())
    quality = Quality.from_dict(stored)
    card = (FOLDER / "README.md").read_text()
    assert quality.own.recovered is not None
    assert f"{quality.own.recovered.mean:.3f} [" in card
    assert quality.random_model is not None
    assert quality.agreement is not None
    # the point of training: no control of as many numbers does as well
    for control in quality.fits[1:]:
        assert control.recovered is not None
        assert control.recovered.mean < quality.own.recovered.mean
