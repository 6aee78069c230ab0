"""The questions of bench: what every row promises, read with whence's own sentences."""

from __future__ import annotations

import doctest
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bench import questions
from bench.questions import Question, by_shared_words, chance, messages, read, says, sentence_spans
from whence.core.cutting import sentence_starts

QUESTIONS = read()
HELD_OUT = read(questions.HELD_OUT)
CANDIDATES = read(questions.CANDIDATES)
ANSWERED = read(questions.ANSWERED)
EVERY = [*QUESTIONS, *HELD_OUT, *CANDIDATES]
each = pytest.mark.parametrize("question", EVERY, ids=lambda question: question.id)


def sentences(text: str) -> list[str]:
    """The sentences of a text, as units are cut."""
    starts = sentence_starts(text)
    ends = [*starts[1:], len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def where_it_is_said(question: Question) -> list[tuple[int, int]]:
    """Every sentence that has the answer: its document, and its place there."""
    places = []
    for d, document in enumerate(question.documents):
        for s, sentence in enumerate(sentences(document.text)):
            if says(sentence, question.answer):
                places.append((d, s))
    return places


def test_all_questions_are_different() -> None:
    assert len(QUESTIONS) == len(HELD_OUT) == 40
    assert len(CANDIDATES) == 72
    for field in ("id", "question", "answer"):
        assert len({getattr(question, field).lower() for question in EVERY}) == 152, field
    texts = {document.text for question in EVERY for document in question.documents}
    assert len(texts) == 3 * 152


def test_forty_candidates_are_chosen_in_their_order() -> None:
    assert len(ANSWERED) == questions.WANTED
    places = [CANDIDATES.index(question) for question in ANSWERED]
    assert places == sorted(places)


@pytest.mark.parametrize("path", [questions.FILE, questions.HELD_OUT, questions.CANDIDATES])
def test_a_row_has_the_documented_fields_and_no_others(path: Path) -> None:
    with path.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            assert list(record) == [
                "id",
                "question",
                "documents",
                "answer",
                "document",
                "sentence",
            ]
            assert all(list(document) == ["name", "text"] for document in record["documents"])


@each
def test_one_sentence_holds_the_answer_and_the_row_names_it(question: Question) -> None:
    assert where_it_is_said(question) == [(question.document, question.sentence)]
    assert not says(question.question, question.answer)


def test_an_answer_that_is_said_twice_would_be_seen() -> None:
    first = QUESTIONS[0]
    told = replace(first.documents[2], text=f"{first.documents[2].text} Ask {first.answer}!")
    twice = replace(first, documents=(*first.documents[:2], told))
    assert len(where_it_is_said(twice)) == 2


@each
def test_documents_are_three_short_texts(question: Question) -> None:
    assert [document.name for document in question.documents] == ["a.txt", "b.txt", "c.txt"]
    assert 1 <= len(question.answer.split()) <= 3
    for document in question.documents:
        assert 3 <= len(sentences(document.text)) <= 5
        assert 40 <= len(document.text.split()) <= 70
        assert document.text == " ".join(document.text.split())


def test_no_place_is_favoured() -> None:
    """A method that always points to one place gets little: the first document, or its start."""
    documents = Counter(question.document for question in QUESTIONS)
    assert all(12 <= documents[d] <= 15 for d in range(3))

    in_document = Counter(question.sentence for question in QUESTIONS)
    assert sorted(in_document) == [0, 1, 2, 3, 4]
    assert all(5 <= count <= 10 for count in in_document.values())

    places = Counter((question.document, question.sentence) for question in QUESTIONS)
    assert max(places.values()) <= 4


@each
def test_sentences_of_the_documents_are_sentences_of_the_chat(question: Question) -> None:
    """Spans that forget the characters between documents would be wrong from the second one on."""
    content = messages(question)[-1]["content"]
    spans = [span for of_document in sentence_spans(question) for span in of_document]
    cut = sentences(content)
    assert [content[start:end] for start, end in spans] == cut[:-1]
    assert cut[-1] == f"Question: {question.question}"

    start, end = sentence_spans(question)[question.document][question.sentence]
    assert says(content[start:end], question.answer)
    outside = content[:start] + content[end:]
    assert not says(outside, question.answer)


def test_chance_counts_the_sentences_of_all_documents() -> None:
    """One for each document, a third, would forget that its sentences are told apart."""
    for question in QUESTIONS:
        places = sum(len(sentences(document.text)) for document in question.documents)
        assert chance(question) == 1 / places


def test_sentences_that_share_equally_many_words_share_the_credit() -> None:
    first = QUESTIONS[0]
    assert by_shared_words(first) == 1
    copied = replace(first.documents[1], text=first.documents[0].text)
    twice = replace(first, documents=(first.documents[0], copied, first.documents[2]))
    assert by_shared_words(twice) == 0.5  # and not 1, by taking the first of equals


@each
def test_without_documents_the_chat_does_not_hold_the_answer(question: Question) -> None:
    for message in messages(question, with_documents=False):
        assert not says(message["content"], question.answer)


def test_examples_run() -> None:
    assert doctest.testmod(questions).failed == 0
