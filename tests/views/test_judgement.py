"""What a report says of each method: verdicts, costs and cards."""

from __future__ import annotations

import numpy as np

from tests.views.conftest import compared, judged, made
from whence.core.attribution import Error
from whence.views.judgement import MOST_BARS, cards, costs

WORDS = "a truly fine film with a very good cast"


def test_a_note_stands_below_the_method_that_has_one_and_below_no_other() -> None:
    """The enemy: rows without a note get an empty line, and the one with a note has none."""
    noted = made(WORDS, "occlusion", error=Error(None, note="it may be off"))
    plain = made(WORDS, "lime")
    shown = costs([noted, plain], noted)
    assert shown.count('class="note"') == shown.count("it may be off") == 1
    assert shown.index("occlusion") < shown.index("it may be off") < shown.index("lime")


def test_beside_others_a_method_has_the_bars_of_its_strongest_words() -> None:
    """Alone it has all of them elsewhere; the enemy: none beside others, or all of a long text."""
    several = list(judged(compared(WORDS)).attributions.values())
    assert len(several) > 1
    every = cards(several)
    assert every.count("<article") == len(several)
    assert every.count('class="scores"') == len(several)
    of_one = every.split("<article")[1]
    assert of_one.count('<th scope="row">') == min(MOST_BARS, len(several[0].scores))
    assert 'class="scores"' not in cards(several[:1])


def test_a_whisker_is_a_standard_error_to_either_side() -> None:
    error = Error(np.full(3, 0.5))
    a = made("a fine film", "lime", scores=[1.0, -0.5, 0.0], error=error)
    b = made("a fine film", "toy", scores=[1.0, -0.5, 0.0], error=error)
    shown = cards([a, b])
    # half of the strip is 1.5: the largest score and its error
    assert "left:50.00%;width:33.33%" in shown
    assert "left:66.67%;width:33.33%" in shown
