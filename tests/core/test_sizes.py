"""Sizes are decimal, in what is read and in what is shown."""

from __future__ import annotations

import pytest

from whence.core.errors import SettingsError
from whence.core.sizes import human, parsed


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (2**20, "1.05 MB"), (3 * 10**12, "3 TB")],
)
def test_sizes_are_shown_in_powers_of_a_thousand(size: int, words: str) -> None:
    assert human(size) == words  # the enemy counts in 1,024: 1000 B, and 1 MB for 2**20


@pytest.mark.parametrize("size", [1000, 2 * 10**9, 15 * 10**5])
def test_what_is_shown_can_be_read(size: int) -> None:
    assert parsed(human(size)) == size


@pytest.mark.parametrize("wrong", ["", "many", "-1GB", "2 PB", "0", 0])
def test_what_is_no_size_is_refused(wrong: str | int) -> None:
    with pytest.raises(SettingsError, match="a memory budget is a number of bytes or a size"):
        parsed(wrong)
