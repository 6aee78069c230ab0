"""Rows of a query in a terminal: what is long gives way, so that no column is missing."""

from __future__ import annotations

import pytest

from whence.views.records import NARROWEST, records_view
from whence.views.terminal import to_text

TEXT = "it leaves little doubt that kidman has become one of our best actors ."


def shown(records: list[dict[str, object]], width: int = 80) -> str:
    columns = list(records[0])
    return to_text(lambda console: records_view(columns, records, 0, console), width)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_the_texts_that_a_model_is_wrong_on_are_there(width: int) -> None:
    """The column of the texts itself had "no room here", behind that of three words."""
    about = {"row": 22, "id": "22", "given": "positive", "says": "negative", "probability": 0.714}
    table = shown([{**about, "words": "leaves, doubt, kidman, best", "text": TEXT}], width)
    head, row = table.splitlines()
    assert head.split() == ["row", "id", "given", "says", "probability", "words", "text"]
    assert row[head.index("text") :].startswith(TEXT[: NARROWEST - 2])
    assert len(row) <= width


def test_a_message_is_cut_and_not_left_out() -> None:
    record = {"row": 37, "number": 37, "id": "37", "method": None, "kind": "InputError"}
    table = shown([record | {"message": "the text is empty or only white space; nothing to do."}])
    assert "the text is empty" in table
    assert "no room" not in table


def test_numbers_are_never_cut_and_columns_without_room_are_named() -> None:
    record = {f"column_{i}": 0.123456 for i in range(12)}
    table = shown([record])
    assert "…" not in table.splitlines()[1]
    assert "no room here for" in table


def test_what_fits_is_not_cut() -> None:
    assert TEXT[:50] in shown([{"row": 1, "text": TEXT[:50], "words": "leaves, little, doubt"}])
