"""What people marked in a text, in the forms that data sets have it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.runs.data import open_data
from whence.runs.rationales import NoRationale, spans_of

TEXT = "an awful film, truly awful"


def test_spans_words_and_their_json_are_the_same() -> None:
    spans = ((3, 8), (21, 26))
    for written in ([[3, 8], [21, 26]], ["awful"], '["awful"]', "[[21, 26], [3, 8]]"):
        assert spans_of(written, TEXT) == spans


@pytest.mark.parametrize("nothing", [None, "", float("nan")])
def test_nothing_said_is_not_nothing_marked(nothing: object) -> None:
    assert spans_of(nothing, TEXT) is None
    assert spans_of([], TEXT) == ()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([[3, 99]], "the characters 3 to 99, which do not lie in this text of 26"),
        ([[8, 3]], "do not lie in this text"),
        ([[-2, 3]], "do not lie in this text"),
        (["dull"], "marks 'dull', which does not stand in this text"),
        ([[3, 8, 9]], "not a span"),
        ([[True, 2]], "not a span"),
        ([3, 8], "not a span"),
        ("awful", "no JSON list"),
        ({"a": 1}, "not a list of spans"),
        ([""], "which does not stand in this text"),
    ],
)
def test_what_does_not_align_is_refused_in_words(value: object, reason: str) -> None:
    with pytest.raises(NoRationale, match=reason.replace("[", "\\[")):
        spans_of(value, TEXT)


@given(st.text(min_size=1, max_size=30), st.data())
def test_a_marked_piece_is_found_where_it_stands(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert (start, end) in (spans_of([text[start:end]], text) or ())


def test_a_row_says_what_is_wrong_with_its_rationale_and_the_others_go_on() -> None:
    records = [
        {"text": TEXT, "spans": [[3, 8]]},
        {"text": "short", "spans": [[3, 80]]},
        {"text": "nothing said", "spans": None},
    ]
    data = open_data(records, rationale=None)
    assert "rationale: column 'spans' (by its name)" in data.columns.notes
    good, bad, silent = data.rows()
    assert good.rationale == ((3, 8),)
    assert "column 'spans' marks the characters 3 to 80" in str(bad.problem)
    assert silent.rationale is None
    assert silent.problem is None
    # in a .csv it is JSON; not asked for, it is not read
    as_json = [{**record, "spans": json.dumps(record["spans"])} for record in records[:1]]
    assert next(open_data(as_json, rationale="spans").rows()).rationale == ((3, 8),)
    assert next(open_data(records).rows()).rationale is None
