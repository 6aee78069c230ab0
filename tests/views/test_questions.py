"""Each command says which of the four questions it answers, and uses no words of another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import whence
from tests.occasions import audit, evaluation, overview
from whence.core.many import Many
from whence.core.overview import Overview
from whence.core.question import Question

# verdicts, in the words of their question; a run counts the verdicts on its texts
WORDS = {
    Question.TEXT: ("better than random", "separable from random", "worse than random"),
    Question.TEXTS: ("more texts than chance",),
    Question.MEASURE: ("better than its control", "worse than its control", "than their control"),
    Question.ATTENTION: ("may be read", "may not be read"),
}
TEXTS = ["not bad at all , and truly funny", "a dull and boring film without a single idea"]


def compared(texts: Any, **more: Any) -> Any:
    model = whence.load("sentiment")
    return whence.compare(model, texts, ["gradient-l2", "occlusion", "random"], **more)


def drawn(draw: Callable[[np.random.Generator], Any]) -> list[Any]:
    return [draw(np.random.default_rng(seed)) for seed in range(12)]


def written() -> Any:
    options: dict[str, Any] = {"max_new_tokens": 2, "rankings": 39, "steps": 2}
    prompt = "Once upon a time there was a"
    return whence.generate(whence.load("writer"), prompt, "gradient-l2", **options)


SHOWN: dict[str, tuple[Question, Callable[[], list[Any]]]] = {
    "compare": (Question.TEXT, lambda: [compared(TEXTS[0], rankings=39)]),
    "generate": (Question.TEXT, lambda: [written()]),
    "compare of many": (Question.TEXTS, lambda: [compared(TEXTS, rankings=39)]),
    "run": (Question.TEXTS, lambda: drawn(overview.draw)),
    "evaluate": (Question.MEASURE, lambda: drawn(evaluation.draw)),
    "audit": (Question.ATTENTION, lambda: drawn(audit.draw)),
}


def views_of(result: Any) -> dict[str, str]:
    """Its screen and its page, without what a page tells of words."""
    page = re.sub(r"<(script|style|dl)\b.*?</\1>", "", result.to_html(), flags=re.S)
    views = {"page": " ".join(re.sub("<[^>]+>", " ", page).split())}
    if not isinstance(result, Overview):  # whose screen the command line makes
        views["screen"] = " ".join(str(result).split())
    if isinstance(result, Many):  # below which each text has a verdict of its own
        views = {view: text.split("The texts, one by one")[0] for view, text in views.items()}
    return views


def is_tested(result: Any) -> bool:
    if isinstance(result, Overview):
        return bool(result.answer.tried)
    return bool(getattr(result, "columns", True))


@pytest.mark.parametrize("name", SHOWN)
def test_it_says_which_question_it_answers(name: str) -> None:
    question, made = SHOWN[name]
    results = made()
    assert any(map(is_tested, results))
    for result in results:
        for view, text in views_of(result).items():
            said = text.count(f"This answers: {question.asked}")
            assert said == is_tested(result), view
            assert text.count("This answers") == said
            for other in set(Question) - {question}:
                if (question, other) != (Question.TEXTS, Question.TEXT):
                    assert not [words for words in WORDS[other] if words in text], view


@pytest.mark.parametrize("texts", [TEXTS[0], TEXTS])
def test_of_what_was_not_tested_no_question_is_answered(texts: Any) -> None:
    c = compared(texts, evidence=False)
    assert "This answers" not in str(c)
    assert "This answers" not in c.to_html()
