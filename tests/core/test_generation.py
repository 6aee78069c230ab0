"""Generations: words of several tokens, and scores of several outputs together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views.generations import END, generation
from whence.core.answer import answer
from whence.core.generation import Generation

PIECES = [" co", "war", "d", " and", " off", END]


def test_the_tokens_of_a_word_stand_together_and_a_special_token_alone():
    g = generation("so good", PIECES)
    assert g.words == (range(3), range(3, 4), range(4, 5), range(5, 6))
    assert g.wholes == g.words


@pytest.mark.parametrize("kind", ["token", "sentence"])
def test_words_are_those_of_the_text_whatever_the_units_are(kind):
    g = generation("so good. I like", PIECES, kind=kind)
    # would catch: tokens grouped by unit, so that a sentence were one word
    assert g.words == (range(3), range(3, 4), range(4, 5), range(5, 6))


def test_a_word_that_is_explained_in_part_is_told_token_by_token():
    g = generation("so good", PIECES, explained=[0, 2, 3])
    assert g.wholes == (range(1), range(2, 3), range(3, 4))


def test_scores_of_log_probabilities_are_added_over_what_stands_before_the_first():
    g = generation("so good", PIECES)
    rows = g.matrix("occlusion")
    # before the word stand two units; its own pieces, which the later rows have, are left out
    assert g.together(range(3), "occlusion") == pytest.approx(rows[:3, :2].sum(0))
    # would catch: a mean in place of the sum
    assert not np.allclose(g.together(range(3), "occlusion"), rows[:3, :2].mean(0))


@pytest.mark.parametrize(
    ("method", "read"), [("attention-mean", "log-probability"), ("occlusion", "logit")]
)
def test_scores_that_do_not_add_up_are_averaged(method, read):
    g = generation("so good", PIECES, read=read)
    assert not g.adds_up(method)
    assert g.together(range(3), method) == pytest.approx(g.matrix(method)[:3, :2].mean(0))


def test_the_answer_about_what_was_written_names_it_and_no_place_of_a_mask():
    g = generation("so very good it is", PIECES)
    assert g.chosen is not None
    told = answer(g.chosen.attributions)
    assert told.place is None
    assert told.written is not None
    assert told.written.text == " coward and off</s>"
    assert (told.written.tokens, told.written.is_all, told.written.is_target) == (6, True, True)
    # the log-probability of all was minus six
    assert told.written.probability == pytest.approx(np.exp(-6.0))
    said = str(told)
    assert "In place of" not in said
    assert "The model wrote “coward and off</s>” (6 tokens, 37 % each in the geometric" in said


def test_it_is_stored_and_read():
    g = generation("so good", PIECES)
    back = Generation.from_dict(g.to_dict())
    assert back.to_dict() == g.to_dict()
    assert str(back) == str(g)
