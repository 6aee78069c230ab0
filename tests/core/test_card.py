"""What answers to four questions mean together, and a card in JSON."""

from __future__ import annotations

import json
from itertools import product

import pytest

from whence.core.card import Card, Finding, Source, Standing, Together, joint, together
from whence.core.errors import LoadError
from whence.core.question import Question
from whence.core.reading import read

YES, PART, NO, OPEN = Standing
TEXT, TEXTS, MEASURE, ATTENTION = Question
OF_DATA = (TEXTS, MEASURE, ATTENTION)


def toy(*findings: Finding, **more) -> Card:
    sources = (
        Source(TEXT, "comparison", "one.json", "", 1),
        Source(TEXTS, "run", "reviews", "reviews.csv", 40),
        Source(MEASURE, "evaluation", "trials", "reviews.csv", 40),
        Source(ATTENTION, "audit", "audit", "reviews.csv", 40),
    )
    known = {"sources": sources, "attention": {}, "left_out": {}}
    return Card("toy", findings=findings, **(known | more))


def standings() -> list[dict[Question, Standing | None]]:
    values = (None, *Standing)
    return [dict(zip(Question, row, strict=True)) for row in product(values, repeat=4)]


@pytest.mark.parametrize("asked", standings(), ids=str)
def test_what_is_said_together_is_true_of_every_answer(asked):
    said = together(asked)
    of_data = [asked[question] for question in OF_DATA if asked[question] is not None]
    told = {standing for standing in of_data if standing is not OPEN}
    if said is Together.HOLDS:
        assert told == {YES}
    elif said is Together.FAILS:
        assert told == {NO}
    elif said is Together.ONE_TEXT:
        assert not of_data
        assert asked[TEXT] is not None
    elif said is Together.OPEN:
        assert not told
    elif said is Together.ON_TEXTS:
        assert (asked[TEXTS], asked[MEASURE]) == (YES, NO)
    elif said is Together.ON_AVERAGE:
        assert (asked[TEXTS], asked[MEASURE]) == (NO, YES)
    elif said is Together.NOT_ATTENTION:
        assert asked[ATTENTION] is NO
        assert NO not in (asked[TEXTS], asked[MEASURE])
        assert YES in (asked[TEXTS], asked[MEASURE])
        assert PART not in (asked[TEXTS], asked[MEASURE])
    else:  # some of it speaks for the method, and some does not
        assert PART in told or {YES, NO} <= told


def test_every_meaning_is_reached():
    assert {together(asked) for asked in standings()} == set(Together)


def test_an_open_answer_takes_nothing_back_and_opposite_ones_are_told():
    assert joint([YES, OPEN]) is YES
    assert joint([NO, OPEN, NO]) is NO
    assert joint([YES, NO, OPEN]) is PART
    assert joint([]) is None


def test_methods_stand_in_their_order_and_the_control_comes_last():
    card = toy(Finding("random", 1, NO, ""), Finding("lime", 2, YES, ""), Finding("ig", 1, NO, ""))
    assert card.methods == ("lime", "ig", "random")
    assert card.standing("ig", TEXTS) is NO
    assert card.standing("ig", MEASURE) is None


def test_a_source_that_says_nothing_of_any_method_has_not_answered_its_question():
    """The enemy: a run in which nothing was tested, "which answers 1 of 4 questions"."""
    card = toy(Finding("lime", 1, YES, ""))
    assert card.unasked == (TEXT, MEASURE, ATTENTION)
    assert toy(attention={"audit": "undecided"}).unasked == (TEXT, TEXTS, MEASURE)


def test_a_card_is_saved_and_read(tmp_path):
    found = Finding("lime", 1, YES, "more than chance allows", 12, 40, (0, 5), 0.001)
    card = toy(found, attention={"audit": "undecided"}, left_out={"a.json": "no"})
    again = read(card.save(tmp_path / "card.json"))
    assert isinstance(again, Card)
    assert again.to_dict() == card.to_dict()
    assert again.findings == (found,)


@pytest.mark.parametrize(
    ("field", "wrong", "where"),
    [
        ("source", 9, r"findings\[0\]: its source is not on this card"),
        ("standing", "maybe", r"findings\[0\]\.standing"),
        ("won", -1, r"findings\[0\]\.won"),
        ("p", "x", r"findings\[0\]\.p"),
    ],
)
def test_a_damaged_card_is_refused_by_its_path(tmp_path, field, wrong, where):
    card = toy(Finding("lime", 1, YES, "more than chance allows", 12, 40, (0, 5), 0.001))
    stored = card.to_dict()
    stored["findings"][0][field] = wrong
    path = tmp_path / "card.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(LoadError, match=where):
        read(path)
