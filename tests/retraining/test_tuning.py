"""tuned_for_removal: real training of a copy, the caller's model untouched, the cost told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.families import FAMILIES
from tests.retraining.grammar import GOOD, sentences
from whence.models.load import load
from whence.retraining.tuning import _at_random, paired_change

DATA = sentences(160, 3)
TUNING = whence.Training(epochs=6, batch=16, rate=5e-3)


def remembered(model: whence.Model) -> dict[str, Any]:
    return {
        "weights": {k: v.clone() for k, v in model.hf.state_dict().items()},
        "learning": [p.requires_grad for p in model.hf.parameters()],
        "gradients": [p.grad is None for p in model.hf.parameters()],
        "training": [m.training for m in model.hf.modules()],
        "hooks": [len(m._forward_hooks) for m in model.hf.modules()],
        "fingerprint": model.fingerprint,
        "name": model.name,
    }


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    weights = zip(one["weights"].values(), other["weights"].values(), strict=True)
    if not all(torch.equal(a, b) for a, b in weights):
        return False
    return all(one[key] == other[key] for key in one if key != "weights")


@pytest.fixture(scope="module")
def model() -> whence.Model:
    """It learned whole texts only, and reads a mask as it was born."""
    return whence.train_small(DATA, training=whence.Training(epochs=8, batch=16, rate=1e-2))


@pytest.fixture(scope="module")
def tuned(model: whence.Model) -> whence.Tuned:
    return whence.tuned_for_removal(model, DATA, training=TUNING)


def test_the_users_model_is_bit_identical(model: whence.Model, tuned: whence.Tuned) -> None:
    before, state = remembered(model), torch.random.get_rng_state()
    again = whence.tuned_for_removal(model, DATA, training=TUNING)
    assert same(before, remembered(model))
    assert torch.equal(state, torch.random.get_rng_state())
    assert not same(before, remembered(again.model))
    # the same seed gives the same weights
    assert again.model.fingerprint == tuned.model.fingerprint
    assert tuned.model.tokenizer is model.tokenizer


def test_what_it_cost_is_measured_on_texts_that_were_held_out(
    model: whence.Model, tuned: whence.Tuned
) -> None:
    assert (tuned.trained_on, tuned.held_out) == (120, 40)
    assert tuned.cost.mean == pytest.approx(tuned.before - tuned.after)
    assert tuned.gain.mean == pytest.approx(tuned.removed_after - tuned.removed_before)
    assert tuned.before > 0.9
    assert tuned.after > 0.9
    assert tuned.cost.low <= 0 <= tuned.cost.high
    other = whence.tuned_for_removal(
        model, DATA[:40], held_out=DATA[40:60], training=whence.Training(epochs=1)
    )
    assert (other.trained_on, other.held_out) == (40, 20)
    stored = tuned.to_dict()
    assert stored["training"]["epochs"] == 6
    assert stored["fingerprint"] == tuned.model.fingerprint
    assert "it cost" in str(tuned)


def test_a_mask_that_no_training_has_touched_comes_nearer_to_the_data() -> None:
    """The mask's embedding is made as large as a word's that nobody ever read; tuning mends it.

    (Where a mask is an ordinary word to a model already, tuning need not bring it nearer: a text
    that says nothing is then a thing of its own.)
    """
    rough = whence.train_small(DATA, training=whence.Training(epochs=8, batch=16, rate=1e-2))
    with torch.no_grad():
        drawn = torch.randn(32, generator=torch.Generator().manual_seed(0))
        rough.hf.get_input_embeddings().weight[rough.tokenizer.mask_token_id] = 3 * drawn
    mended = whence.tuned_for_removal(rough, DATA, training=TUNING)
    texts = [text for text, _ in sentences(60, 9)]
    (before,) = whence.removal_gauge(rough, texts, ["mask"], shares=(0, 0.25, 0.5))
    (after,) = whence.removal_gauge(mended.model, texts, ["mask"], shares=(0, 0.25, 0.5))
    assert before.like_data[0] == after.like_data[0] == 0.5
    assert before.like_data[1] < 0.1
    assert after.like_data[1] > before.like_data[1] + 0.1
    out_before = before.distance[2] / before.distance_of_whole
    assert after.distance[2] / after.distance_of_whole < out_before
    assert mended.gain.mean > 0


def test_deletion_can_be_tuned_for(model: whence.Model) -> None:
    told: list[str] = []
    tuned = whence.tuned_for_removal(
        model, DATA[:60], removal="delete", training=whence.Training(epochs=2), progress=told.append
    )
    assert tuned.removal == "delete"
    assert told[-1] == "tuning for delete: step 4 of 4"
    # the deciding word alone is a text like others now
    assert tuned.model.predict([GOOD[0]])[0].label == "good"


def test_every_number_of_units_is_as_likely(model: whence.Model) -> None:
    """A share drawn for each unit by its own coin would rarely leave one word, or all but one."""
    passage = model.encode("the film was fine and the room was dull")
    units = len(passage.unit_spans)
    rng = np.random.default_rng(0)
    counts = np.zeros(units + 1)
    for _ in range(3000):
        left = _at_random(model, passage, "mask", 0.25, rng)
        counts[int((left.ids == model.tokenizer.mask_token_id).sum())] += 1
    shares = counts / counts.sum()
    error = np.sqrt(0.25 / 3000)
    assert abs(shares[0] - 0.25) < 4 * error
    np.testing.assert_allclose(shares[1:], 0.75 / units, atol=4 * error)


def test_the_interval_of_pairs_by_hand() -> None:
    before = np.array([True] * 70 + [False] * 30)
    after = np.array([True] * 62 + [False] * 8 + [True] * 18 + [False] * 12)
    change = paired_change(before, after)
    # Agresti and Min: 18.5 and 8.5 of 102; unpaired shares of 70 % and 80 % would give ± 12 points
    middle, total = 10 / 102, 102
    half = 1.959963984540054 * np.sqrt((27 / 102 - middle**2) / total)
    assert change.mean == pytest.approx(0.10)
    assert (change.low, change.high) == pytest.approx((middle - half, middle + half), rel=1e-9)
    # nothing changed, and still nothing is certain: a Wald interval would be a point
    nothing = paired_change(before, before)
    assert nothing.low < 0 < nothing.high


def test_what_cannot_be_tuned_is_refused(model: whence.Model) -> None:
    with pytest.raises(whence.Unsupported, match="by mask or delete"):
        whence.tuned_for_removal(model, DATA, removal="mean")
    with pytest.raises(whence.InputError, match="both need some"):
        whence.tuned_for_removal(model, DATA[:3], held_out=0.01)
    with pytest.raises(whence.InputError, match="no label of this model"):
        whence.tuned_for_removal(model, [("fine", "wonderful")] * 8)
    with pytest.raises(whence.SettingsError, match="at least one epoch"):
        whence.Training(epochs=0)
    tagger = load(FAMILIES["bert-mlm"].build(), tokenizer=FAMILIES["bert"].tokenizer())  # type: ignore[misc]
    with pytest.raises(whence.Unsupported, match="only classifiers of text"):
        whence.tuned_for_removal(tagger, DATA)
    half = load(FAMILIES["bert"].build().half(), tokenizer=FAMILIES["bert"].tokenizer())  # type: ignore[misc]
    with pytest.raises(whence.Unsupported, match="loses small steps"):
        whence.tuned_for_removal(half, DATA)


def test_the_bundled_model_can_be_tuned() -> None:
    """Real weights, a few steps: what comes back is another model that still classifies."""
    sentiment = whence.load("sentiment")
    before = remembered(sentiment)
    texts = [(text, "positive" if label == "good" else "negative") for text, label in DATA[:48]]
    tuned = whence.tuned_for_removal(sentiment, texts, training=whence.Training(1, 12, 1e-4))
    assert same(before, remembered(sentiment))
    assert tuned.before > 0.9
    assert tuned.after > 0.9
