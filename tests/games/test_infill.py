"""Infilling by the bundled masked language model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import whence
from tests import families
from whence.core.errors import InputError, Unsupported
from whence.games.infill import CANDIDATES, Filler
from whence.models.model import Model

TEXT = "the food is great but the service is not bad"


@pytest.fixture(scope="module")
def sentiment() -> Model:
    return whence.load("sentiment")


@pytest.fixture(scope="module")
def filler() -> Model:
    return whence.load("filler")


def removed(model: Model, units: list[int]) -> np.ndarray:
    passage = model.encode(TEXT)
    return ~np.isin(passage.unit_of, units)[None]


def test_only_what_was_removed_is_written_anew(sentiment: Model, filler: Model) -> None:
    passage = sentiment.encode(TEXT)
    kept = removed(sentiment, [3, 9])
    ids = Filler(filler).fill(passage, np.repeat(kept, 20, 0), np.arange(20)[:, None])
    assert (ids[:, kept[0]] == passage.ids[kept[0]]).all()
    assert not np.isin(ids, sentiment.tokenizer.mask_token_id).any()
    special = set(sentiment.tokenizer.all_special_ids)
    assert not special & set(ids[:, ~kept[0]].ravel().tolist())
    assert len(np.unique(ids[:, ~kept[0]], axis=0)) > 5


@pytest.mark.slow  # 3,000 draws
def test_what_is_drawn_is_likely_to_the_filler(sentiment: Model, filler: Model) -> None:
    """The shares of many draws beside the model's own distribution over its best candidates."""
    passage = sentiment.encode(TEXT)
    kept = removed(sentiment, [3])
    (hole,) = np.flatnonzero(~kept[0])
    ids = torch.from_numpy(np.where(kept[0], passage.ids, filler.tokenizer.mask_token_id))[None]
    with torch.no_grad():
        logits = filler.hf(input_ids=ids).logits[0, hole].double()
    logits[filler.tokenizer.all_special_ids] = -torch.inf
    best = logits.topk(CANDIDATES)
    chance = dict(zip(best.indices.tolist(), best.values.softmax(-1).tolist(), strict=True))
    drawn = Filler(filler).fill(passage, np.repeat(kept, 3000, 0), np.arange(3000)[:, None])[
        :, hole
    ]
    assert set(drawn.tolist()) <= set(chance)
    for token, p in list(chance.items())[:5]:
        assert abs((drawn == token).mean() - p) < 5 * np.sqrt(p * (1 - p) / 3000)


def test_a_mask_is_filled_alike_whatever_stands_beside_it(sentiment: Model) -> None:
    masks = np.random.default_rng(0).random((30, 10)) < 0.5
    one, other = (whence.game(sentiment, TEXT, removal="infill", seed=3) for _ in range(2))
    together = one(masks)
    alone = np.concatenate([other(m[None]) for m in masks[::-1]])[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-4)
    assert not np.allclose(whence.game(sentiment, TEXT, removal="infill", seed=4)(masks), together)


def test_the_fillers_passes_are_counted(sentiment: Model, filler: Model) -> None:
    v = whence.game(sentiment, TEXT, filler=filler)
    assert v.removal == "infill:filler"
    v(~np.eye(10, dtype=bool))
    assert v.cost.forwards == 1 + 2 * 10
    assert v.full == whence.game(sentiment, TEXT).full


def test_methods_and_evidence_run_on_it(sentiment: Model) -> None:
    a = whence.explain(
        sentiment, "a dull and lifeless film", "occlusion", removal="infill", evidence=False
    )
    assert a.settings["removal"] == "infill:filler"
    b = whence.explain(
        sentiment, "a dull and lifeless film", "anchors", removal="infill", evidence=False
    )
    assert b.detail is not None
    evidence = whence.judge(sentiment, a, removals=["infill", "mask"]).evidence
    assert evidence is not None
    assert [trial.removal for trial in evidence.trials] == ["infill:filler", "mask"]


def test_what_cannot_fill(sentiment: Model) -> None:
    with pytest.raises(Unsupported, match="no masked language model"):
        whence.game(sentiment, TEXT, filler=sentiment)
    with pytest.raises(Unsupported, match="another vocabulary"):
        whence.game(families.build("bert"), TEXT, removal="infill")
    with pytest.raises(InputError, match="'delete'"):
        whence.game(sentiment, TEXT, removal="delete", filler="filler")
