"""--against: one label for all texts, or a column of the data; and its name of before."""

from __future__ import annotations

import pytest

from whence.cli.against import column_or_label
from whence.core.errors import InputError

ROWS = [{"text": "the cats", "right": " are", "wrong": " is"}]
COLUMNS = {"text": "text", "label": "right"}


def test_it_is_a_column_only_beside_the_labels_of_the_data() -> None:
    """Would catch a label that is taken for a column as there is one of that name."""
    assert column_or_label(ROWS, COLUMNS, "wrong", None, True) == ("wrong", None)
    assert column_or_label(ROWS, COLUMNS, " was", None, True) == (None, " was")
    assert column_or_label(ROWS, COLUMNS, "wrong", None, False) == (None, "wrong")
    assert column_or_label(ROWS, COLUMNS, None, None, True) == (None, None)


def test_its_old_name_means_the_column_and_goes_alone() -> None:
    assert column_or_label(ROWS, COLUMNS, None, "wrong", False) == ("wrong", None)
    with pytest.raises(InputError, match="--foil is an old name of --against"):
        column_or_label(ROWS, COLUMNS, "wrong", "wrong", True)
