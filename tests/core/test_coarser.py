"""Larger units: the text stays whole, tokens keep their place, and borders are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import whence
from whence.core.coarser import coarser, coarser_kinds, grouped
from whence.core.passage import Section
from whence.models.model import Model
from whence.models.writing import only_prompt, written_after

PROMPT = "The cow is old. It sleeps! Who knows"
CONTINUATION = " why it does. Nobody"


@pytest.fixture(scope="module")
def model() -> Model:
    return whence.load("writer")


@pytest.mark.parametrize("kind", ["word", "sentence"])
def test_larger_units_are_those_of_a_text_that_is_cut_so_at_once(model: Model, kind: str) -> None:
    # would catch: a unit that is cut at another character, and tokens that change owner
    fine = model.encode(PROMPT, units="token")
    at_once = model.encode(PROMPT, units=kind)
    joined = coarser(fine, kind)
    assert joined.unit_spans == at_once.unit_spans
    assert joined.unit_of.tolist() == at_once.unit_of.tolist()
    assert joined.kind == kind


def test_a_prompt_and_what_was_written_are_never_joined(model: Model) -> None:
    ids = model.backend.encode(CONTINUATION, add_special_tokens=False).ids
    whole = written_after(model, model.encode(PROMPT), ids)
    sentences = coarser(whole, "sentence")
    assert sentences.units.texts == (
        "The cow is old.",
        " It sleeps!",
        " Who knows",
        " why it does.",
        " Nobody",
    )
    assert sentences.written == whole.written
    assert coarser(only_prompt(whole), "sentence").units.texts == sentences.units.texts[:3]


def test_sections_hold_their_own_sentences_and_the_rest_stays_without_a_unit(model: Model) -> None:
    passage = model.encode("One is. Two is. Three is")
    sections = (Section("a", 0, 7), Section("b", 7, 24))
    # tokens that belong to no unit, as those of a template
    unit_of = passage.unit_of.copy()
    unit_of[-1] = -1
    passage = replace(
        passage, sections=sections, unit_of=unit_of, unit_spans=passage.unit_spans[:-1]
    )
    assert coarser_kinds(passage) == ("sentence", "section")
    by_section = coarser(passage, "section")
    assert by_section.names == ("a", "b")
    assert by_section.unit_of[-1] == -1
    assert (np.diff(by_section.unit_of[by_section.unit_of >= 0]) >= 0).all()


def test_a_sentence_ends_at_the_border_of_a_section(model: Model) -> None:
    passage = model.encode("one two three four")
    passage = replace(passage, sections=(Section("a", 0, 7), Section("b", 7, 18)))
    assert grouped(passage, "sentence") == (range(2), range(2, 4))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("one two three", ()),  # one sentence, and nothing to tell it from
        ("One. Two. Three.", ("sentence",)),  # and no section, where there are none
    ],
)
def test_only_kinds_that_help_are_offered(model: Model, text: str, kinds: tuple[str, ...]) -> None:
    assert coarser_kinds(model.encode(text)) == kinds


def test_units_of_a_kind_of_their_own_stay_as_they_are(model: Model) -> None:
    assert coarser_kinds(model.encode("One. Two. Three.", units=[0, 5])) == ()
    words = model.encode("One. Two.")
    assert coarser(words, "word") is words
