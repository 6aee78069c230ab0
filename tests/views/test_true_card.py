"""What a card says is read back, and held against what was saved."""

from __future__ import annotations

import re
from collections import Counter
from math import comb

import numpy as np
import pytest

from tests.occasions import card as occasion
from tests.views.reading_back import COUNT, listed, plain, read, shown, whole
from whence.core.card import Card, Finding, Standing, Together
from whence.core.question import Question
from whence.views.card import card_sentences, card_text, cell_of

YES, PART, NO, OPEN = Standing
TEXT, TEXTS, MEASURE, ATTENTION = Question
PLACES = {
    "on one text": TEXT,
    "on many texts": TEXTS,
    "by measures": MEASURE,
    "as attention": ATTENTION,
}


def of(card: Card, method: str, question: Question) -> list[Finding]:
    return [
        f
        for f in card.findings
        if f.method == method and card.sources[f.source].question is question
    ]


def standing(card: Card, method: str, question: Question) -> Standing | None:
    """What all answers to a question say; an open one takes nothing back."""
    told = {f.standing for f in of(card, method, question)}
    told = told - {OPEN} or told
    return (told.pop() if len(told) == 1 else PART) if told else None


def methods(card: Card) -> list[str]:
    return [m for m in dict.fromkeys(f.method for f in card.findings) if m != "random"]


def answered(card: Card) -> set[Question]:
    questions = {card.sources[f.source].question for f in card.findings}
    return questions | ({ATTENTION} if card.attention else set())


def is_true(meaning: str, card: Card, method: str) -> bool:
    """Whether the sentence is true of the answers about a method, one by one."""
    texts, measure, attention = (standing(card, method, q) for q in (TEXTS, MEASURE, ATTENTION))
    of_data = [one for one in (texts, measure, attention) if one is not None]
    told = {one for one in of_data if one is not OPEN}
    rules = {
        Together.HOLDS: told == {YES},
        Together.FAILS: told == {NO},
        Together.ON_TEXTS: texts is YES and measure is NO,
        Together.ON_AVERAGE: texts is NO and measure is YES,
        Together.NOT_ATTENTION: attention is NO
        and YES in (texts, measure)
        and not {texts, measure} & {NO, PART},
        Together.BY_SOME: PART in told or {YES, NO} <= told,
        Together.ONE_TEXT: not of_data and standing(card, method, TEXT) is not None,
        Together.OPEN: not told,
    }
    return rules[Together(meaning)]


def check(card: Card) -> list[str]:
    by_shown = {shown(method): method for method in methods(card)}
    told: list[str] = []

    def what_there_is(model, count, sources, answer, asked, every):
        return (
            model == shown(card.model)
            and whole(count) == len(methods(card))
            and whole(sources) == len(card.sources)
            and (answer == "answers") == (len(card.sources) == 1)
            and (int(asked), int(every)) == (len(answered(card)), 4)
        )

    def meaning(names, each, asked, said):
        for name in listed(names):
            method = by_shown[name]
            assert is_true(said, card, method), (name, said)
            assert {PLACES[one] for one in listed(asked)} == {
                question for question in Question if of(card, method, question)
            }
            told.append(method)
        return bool(each) == (len(listed(names)) > 1)

    def attention(name, said):
        return any((shown(n), shown(s)) == (name, said) for n, s in card.attention.items())

    def data(names):
        files = {re.split(r"[/\\]", s.data)[-1] for s in card.sources if s.data}
        return set(listed(names)) == set(map(shown, files)) and len(files) > 1

    def not_asked(asked, command):
        (question,) = [q for q in Question if q.asked == asked]
        return question not in answered(card) and command.startswith(f"whence {question.command} ")

    names = read(
        card_sentences(card),
        [
            (
                rf"(.+): ({COUNT}) methods? in ({COUNT}) saved results?, which (answers?) (\d) of "
                r"the (\d) questions\.",
                what_there_is,
            ),
            (r"(.+) \((each )?asked ([^:]+)\): (.+)", meaning),
            (r"Attention in all layers together, by (.+): (undecided: .+)\.", attention),
            (
                r"The answers are of different data \((.+)\): where they differ, that may be the "
                r"data's doing\.",
                data,
            ),
            (r"Not asked yet: (.+\?) Ask it with: (.+)", not_asked),
        ],
    )
    assert sorted(told) == sorted(methods(card)), "each method is in one sentence"
    assert names.count("not_asked") == 4 - len(answered(card))
    check_cells(card)
    return names


# ---------------------------------------------------------------------- the cells


def by_chance(texts: int) -> tuple[float, list[float]]:
    """Of so many texts, the chances that random rankings are better on so many or more."""
    exactly = [comb(texts, k) * 0.05**k * 0.95 ** (texts - k) for k in range(texts + 1)]
    return 0.05 * texts, list(np.cumsum(exactly[::-1])[::-1])


def check_cells(card: Card) -> None:
    for method in card.methods:
        for question in Question:
            findings = of(card, method, question)
            said = cell_of(card, method, question)
            if not findings:
                assert said == "–"
                continue
            several = len({f.source for f in findings}) > 1
            parts = said.split("; ")
            assert len(parts) == len(findings)
            for part, finding in zip(parts, findings, strict=True):
                source = card.sources[finding.source]
                if several:
                    end = f" ({shown(source.file)})"
                    assert part.endswith(end)
                    part = part.removesuffix(end)
                check_cell(part, finding, question, len([
                    f for f in card.findings
                    if f.source == finding.source and f.method != "random"
                ]))  # fmt: skip


def check_cell(said: str, finding: Finding, question: Question, tried: int) -> None:
    if question is TEXTS:
        told = re.fullmatch(
            rf"({COUNT}) of ({COUNT}) texts?, by chance (\d+)(?: to (\d+))?: (.+)", said
        )
        assert told is not None, said
        won, texts, low, high = (whole(told[n] or told[3]) for n in range(1, 5))
        assert (won, texts) == (finding.won, finding.of)
        assert (low, high) == (finding.chance[0], finding.chance[-1])
        check_more(told[5], won, texts, tried if finding.method != "random" else 1)
    elif question is MEASURE:
        told = re.fullmatch(r"better than its control by (\d+) of (\d+) measures?", said)
        assert told is not None
        assert (int(told[1]), int(told[2])) == (finding.won, finding.of)
        right = {0: NO, finding.of: YES}.get(finding.won, PART)
        assert finding.standing is right
    elif finding.of is not None:
        told = re.fullmatch(r"better than random on (\d+) of (\d+) written tokens?", said)
        assert told is not None
        assert (int(told[1]), int(told[2])) == (finding.won, finding.of)
    else:
        assert said == finding.said == occasion.SAID[question][finding.standing]


def check_more(said: str, won: int, texts: int, tried: int) -> None:
    """More than chance allows, no more, or neither: by the binomial law, added up here."""
    if texts > 100:
        return  # the same law, in which nothing but the size of the numbers differs
    _, at_least = by_chance(texts)
    p = at_least[won]
    near = 1 + 1e-9
    if p * tried <= 0.05 * near:
        assert said == "more than chance allows"
    elif texts < 5 or at_least[texts] * tried > 0.05 * near:
        assert said == "too few texts to tell"
    elif p <= 0.05 * near:
        assert said == f"no more than chance allows, corrected for {tried} methods"
    else:
        assert said == "no more than chance allows"


# ---------------------------------------------------------------------- tests


def check_views(card: Card) -> None:
    text = " ".join(card_text(card, width=2000).split())
    page = plain(card.to_html().replace("&nbsp;", " "))
    for sentence in card_sentences(card):
        assert " ".join(sentence.split()) in text
        assert sentence in page
    for name in card.left_out:
        assert "Left out: " in page
        assert shown(name) in page
    assert ("Nothing was left out." in page) == (not card.left_out)
    for source in card.sources:  # also one that answers nothing says so
        assert shown(source.note) in page
        assert shown(source.note) in text


def test_every_sentence_of_a_card_is_true_of_it():
    rng = np.random.default_rng(1)
    said: Counter[str] = Counter()
    for number in range(600):
        card = occasion.draw(rng)
        said.update(check(card))
        if number % 10 == 0:
            check_views(card)
    assert len(said) == 5
    assert min(said.values()) > 1


@pytest.mark.slow
def test_every_sentence_of_many_cards_is_true_of_them():
    rng = np.random.default_rng(2)
    for number in range(15_000):
        card = occasion.draw(rng)
        check(card)
        if number % 200 == 0:
            check_views(card)
