"""The control is uniform over units, however many tokens a word has."""

from __future__ import annotations

import numpy as np
import pytest

import whence
from tests.families import build


@pytest.mark.slow
def test_a_split_word_has_no_better_chance() -> None:
    # would catch: one number per token, summed, which ranks long words first
    model = build("bert")
    text = "unbelievablesplitword is the one"
    passage = model.encode(text)
    pieces = np.bincount(passage.unit_of[passage.unit_of >= 0])
    assert pieces[0] > 3
    scores = np.array(
        [whence.explain(model, text, "random", seed=s, evidence=False).scores for s in range(300)]
    )
    wins = np.bincount(scores.argmax(1), minlength=4) / 300
    assert abs(wins[0] - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 300)
    assert scores.min() >= 0
    assert scores.max() < 1
    assert abs(scores.mean() - 0.5) < 0.05
