"""Masks: what is taken for one, and how it is remembered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whence.core.errors import InputError
from whence.games.masks import checked_masks, keys_of

MASKS = st.integers(1, 20).flatmap(lambda size: arrays(bool, (6, size)))


@given(MASKS)
def test_masks_have_one_key_exactly_if_they_are_equal(masks: np.ndarray) -> None:
    keys = keys_of(masks)
    for i in range(len(masks)):
        for j in range(len(masks)):
            assert (keys[i] == keys[j]) == (masks[i] == masks[j]).all()


@given(MASKS)
def test_numbers_are_the_masks_that_they_say(masks: np.ndarray) -> None:
    size = masks.shape[1]
    for kind in (int, float, bool):
        np.testing.assert_array_equal(checked_masks(masks.astype(kind), size, "unit"), masks)


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        ([1, 0, 1], r"shape \(masks, 3\), one column per player, not \(3,\)"),
        ([[1, 0]], r"not \(1, 2\)"),
        ([[1, 0, 2]], "for a player that is kept"),
        ([[1, 0, float("nan")]], "for a player that is kept"),
    ],
)
def test_what_is_no_mask_is_refused(masks: list, said: str) -> None:
    with pytest.raises(InputError, match=said):
        checked_masks(masks, 3, "player")
