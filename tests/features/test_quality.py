"""Quality on held-out text: identities that any right measure keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.families import build
from tests.features.small import documents, writer
from tests.features.test_stand_ins import exact
from whence.core.errors import InputError
from whence.core.features_quality import Quality
from whence.features.cache import Moments, open_cache
from whence.features.corpus import open_corpus
from whence.features.quality import (
    Place,
    agreement_of,
    held_out_pieces,
    measure,
    nearest_cosines,
    quality,
    usage,
)
from whence.features.stand_ins import StandIn, by_features
from whence.models.load import load


def with_mean(mean: torch.Tensor) -> StandIn:
    def of(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return mean.expand(rows.shape), torch.zeros(len(rows))

    return StandIn("mean", of)


def measured(model: Any, stand_ins: list[StandIn], mean: torch.Tensor, layer: int = 0) -> Any:
    corpus = open_corpus(documents(60))
    pieces = held_out_pieces(model, corpus, 32, 10_000)
    kind = "decoder" if model.is_causal else "encoder"
    return measure(model, pieces, Place(layer, kind, not model.is_causal), stand_ins, mean)


def bare() -> Any:
    model = build("bert")
    return load(model.hf.bert, tokenizer=model.tokenizer)


@pytest.mark.parametrize("make", [writer, lambda: build("bert"), lambda: build("bert-mlm"), bare])
def test_what_restores_everything_recovers_all_and_the_mean_nothing(make: Any) -> None:
    # would catch: states replaced at another layer; padding that is replaced; zeros and the mean
    # taken for each other; a divergence in the wrong direction of zero
    model = make()
    # a mean of equal entries would be zeros behind the next norm
    mean = torch.linspace(-1, 1, 32, dtype=torch.float64)
    sums = measured(model, [by_features(exact(32)), with_mean(mean.float())], mean)
    all_of_it, nothing = sums.fit(0, "all"), sums.fit(1, "mean")
    assert all_of_it.variance_explained.mean == pytest.approx(1, abs=1e-6)
    assert all_of_it.recovered is not None
    assert nothing.recovered_over_mean is not None
    assert all_of_it.recovered.mean == pytest.approx(1, abs=1e-4)
    assert nothing.variance_explained.mean == pytest.approx(0, abs=1e-6)
    assert nothing.recovered_over_mean.mean == pytest.approx(0, abs=1e-4)
    assert not np.allclose(sums.zero, sums.mean)
    if sums.loss != "next token":
        assert float(np.abs(sums.plain).max()) < 1e-6


def test_the_loss_of_a_language_model_is_its_own() -> None:
    # against transformers' loss, text by text; would catch: a loss of the same token, not the next
    model = writer()
    sums = measured(model, [], torch.zeros(32, dtype=torch.float64))
    pieces = held_out_pieces(model, open_corpus(documents(60)), 32, 10_000)
    for column, piece in enumerate(pieces):
        ids = torch.tensor(piece.passage.ids)[None]
        with torch.no_grad():
            loss = float(model.hf(input_ids=ids, labels=ids).loss)
        assert sums.plain[column] / sums.predicted[column] == pytest.approx(loss, rel=1e-4)


def test_the_first_passage_of_every_document_comes_first() -> None:
    # would catch: a budget that is spent on the first document
    corpus = open_corpus(documents(80, length=60))
    pieces = held_out_pieces(writer(), corpus, 16, 64)
    assert [piece.document for piece in pieces] == [0, 20, 40, 60]


def test_one_short_text_leaves_nothing_to_hold_out() -> None:
    with pytest.raises(InputError, match="no text to hold out"):
        held_out_pieces(writer(), open_corpus(["the food"]), 32, 100)


def test_usage_counts_active_rows_and_the_largest(tmp_path: Path) -> None:
    corpus = open_corpus(documents())
    cache = open_cache(writer(), corpus, 0, tmp_path, length=32, special=False)
    rows = torch.cat([cache.states(i) for i in range(len(cache.shards))])
    used = usage(exact(32), cache)
    torch.testing.assert_close(used.frequency[:32], (rows > 0).float().mean(0))
    torch.testing.assert_close(used.peak[32:], (-rows).clamp(min=0).amax(0))
    assert used.rows == len(rows)


def test_features_in_another_order_are_found_and_random_ones_are_not() -> None:
    # would catch: cosines of features of equal numbers; lengths of directions left in
    generator = torch.Generator().manual_seed(3)
    moments = Moments(9, torch.zeros(32), torch.eye(32, dtype=torch.float64), 1.0, 1.0)
    one, other = exact(32), exact(32)
    order = torch.randperm(64, generator=generator)
    other.decoder.copy_(5 * other.decoder[order])
    alive = torch.ones(64, dtype=torch.bool)
    same = agreement_of(one, other, 7, moments, alive)
    assert (same.share, same.with_seed) == (1.0, 7)
    assert same.chance < 0.05
    assert same.chance_cosine < 0.7
    half = other.decoder.clone()
    half[:32] = torch.randn(32, 32, generator=generator)
    assert float((nearest_cosines(half, other.decoder) > 0.9).float().mean()) == 0.5


def test_features_that_never_fire_are_not_asked_for_in_another_training(tmp_path: Path) -> None:
    """The enemy: the directions of dead features, which no training finds, count as not found."""
    model, corpus = writer(), open_corpus(documents(120))
    cache = open_cache(model, corpus, 0, tmp_path, length=32, special=False)
    lame = exact(32)
    generator = torch.Generator().manual_seed(5)
    dead = [1, 5, 40]
    lame.encoder_bias[dead] = -1e6
    lame.decoder[dead] = torch.randn(len(dead), 32, generator=generator)
    assert nearest_cosines(lame.decoder[dead], exact(32).decoder).max() < 0.9
    one = quality(model, lame, corpus, cache, cache.moments(), others=[(1, exact(32))])
    assert one.dead >= len(dead)
    assert one.agreement is not None
    assert (one.agreement.share, one.agreement.mean_cosine) == (1.0, pytest.approx(1.0))


def test_a_quality_is_stored_and_read(tmp_path: Path) -> None:
    model, corpus = writer(), open_corpus(documents(120))
    cache = open_cache(model, corpus, 0, tmp_path, length=32, special=False)
    one = quality(model, exact(32), corpus, cache, cache.moments(), others=[(1, exact(32))])
    assert Quality.from_dict(one.to_dict()) == one
    assert one.documents == 6
    assert one.own.recovered is not None
    assert one.own.recovered.interval is not None
    names = [fit.name for fit in one.fits]
    assert names == [
        "autoencoder",
        "32 principal components",
        "32 of 64 random directions",
        "32 largest neurons",
    ]
