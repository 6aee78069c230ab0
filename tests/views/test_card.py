"""A card in words: each sentence holds what its record holds, in terminal, Markdown and page."""

from __future__ import annotations

import re

import pytest

from tests.core.test_card import ATTENTION, MEASURE, NO, PART, TEXT, TEXTS, YES, toy
from whence.core.card import Card, Finding, Source
from whence.views.card import NOT_ASKED, card_sentences, cell_of

CHANCE = (0, 5)
FOUND = (
    Finding("lime", 1, YES, "more than chance allows", 12, 40, CHANCE, 0.001),
    Finding("lime", 2, PART, "better than its control", 5, 6),
    Finding("rollout", 1, NO, "no more than chance allows", 2, 40, CHANCE, 0.6),
    Finding("rollout", 3, NO, "may not be read"),
    Finding("occlusion", 0, YES, "better than random", p=0.01),
)
CARD = toy(*FOUND, attention={"audit": "undecided: the texts do not tell"})


def test_a_sentence_groups_the_methods_of_which_it_is_true():
    said = card_sentences(CARD)
    assert said[0] == "toy: 3 methods in 4 saved results, which answer 4 of the 4 questions."
    assert "rollout (asked on many texts and as attention): No answer over many" in said[2]
    assert said[1].startswith("occlusion") is False
    for method in CARD.methods:
        (line,) = [one for one in said if re.search(rf"\b{method}\b.*\((each )?asked", one)]
        assert line.endswith(CARD.together(method))
    assert "Attention in all layers together, by audit: undecided: the texts do not tell." in said


def test_a_cell_says_the_numbers_in_the_words_of_its_question():
    assert cell_of(CARD, "lime", TEXTS) == (
        "12 of 40 texts, by chance 0 to 5: more than chance allows"
    )
    assert cell_of(CARD, "lime", MEASURE) == "better than its control by 5 of 6 measures"
    assert cell_of(CARD, "occlusion", TEXT) == "better than random"
    assert cell_of(CARD, "lime", ATTENTION) == NOT_ASKED


def test_two_sources_of_one_question_are_named():
    sources = (*CARD.sources, Source(TEXTS, "run", "emails", "emails.csv", 9))
    more = Finding("lime", 4, NO, "no more than chance allows", 0, 9, (0, 2), 1.0)
    card = toy(*FOUND, more, sources=sources)
    cell = cell_of(card, "lime", TEXTS)
    assert "12 of 40 texts" in cell
    assert "(reviews); 0 of 9 texts" in cell
    assert cell.endswith("(emails)")
    different = [line for line in card_sentences(card) if "different data" in line]
    assert "reviews.csv and emails.csv" in different[0]
    assert not [line for line in card_sentences(CARD) if "different data" in line]


def test_what_was_not_asked_comes_with_the_command_that_asks_it():
    card = toy(FOUND[0], FOUND[-1], sources=CARD.sources[:2])
    commands = [line for line in card_sentences(card) if line.startswith("Not asked yet")]
    assert len(commands) == 2
    assert (
        "whence evaluate --data reviews.csv --model toy --methods lime,occlusion --out"
        in commands[0]
    )
    assert "whence audit --data reviews.csv --model toy" in commands[1]


@pytest.mark.parametrize("name", ["<script>x</script>", "a|b", "\x1b[31m", "`x` $y$"])
def test_hostile_names_act_nowhere(name):
    source = Source(TEXTS, "run", name, name, 3, note=name)
    card = Card(name, (source,), (Finding(name, 0, YES, name, 1, 3),), {name: name}, {name: name})
    page = card.to_html()
    assert "<script>x" not in page
    assert "\x1b" not in page + str(card) + card.to_markdown()
    table = [line for line in card.to_markdown().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {
        4
    }  # as attention is asked, too


def test_every_view_has_every_method_and_every_cell():
    views = [" ".join(str(CARD).split()), CARD.to_markdown(), CARD.to_html(), CARD._repr_html_()]
    for method in CARD.methods:
        assert all(method in view for view in views)
    assert all("5 of 6" in view for view in views[1:])
    assert "prefers-color-scheme" in views[2]
