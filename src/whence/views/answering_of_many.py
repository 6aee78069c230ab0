"""The answer over many texts, in words. What may be said is decided in core."""

from __future__ import annotations

from whence.core.answer_of_many import AnswerOfMany
from whence.core.evidence import LEVEL, is_within
from whence.core.many import Tally
from whence.views import wording

MOST_LABELS = 4
MOST_METHODS = 3


def many_sentences(answer: AnswerOfMany) -> list[str]:
    """What the model says of the texts, which methods hold over all of them, what attention does.

    The first two are the answer itself.
    """
    said = [_predictions(answer), *_methods(answer)]
    if answer.attention is not None and answer.attention.judged:
        said.append(_attention(answer.attention))
    if answer.control is not None and answer.control.judged:
        said.append(_control(answer.control))
    return said


def _predictions(answer: AnswerOfMany) -> str:
    texts = f"{answer.texts:,} texts"
    if not answer.predictions:
        return f"{texts} were explained."
    counts = [f"{wording.label(name)} for {count:,}" for name, count in answer.predictions]
    if len(counts) > MOST_LABELS:
        left = len(counts) - MOST_LABELS
        counts = [*counts[:MOST_LABELS], f"{left} other labels for the rest"]
    return f"{texts}: the model says {_and(counts)}."


def _methods(answer: AnswerOfMany) -> list[str]:
    if not answer.tried:
        return ["No method was tested against random rankings, so nothing says which is right."]
    named = f"Reasons can be named for {answer.explained:,} of {answer.distinct:,}"
    named += f"; by chance it would be up to {LEVEL * answer.distinct:.2g}."
    if answer.too_few_texts:
        few = f"These are too few texts to tell {answer.tried} methods from chance."
        return [
            named,
            few if answer.tried > 1 else "These are too few texts to tell it from chance.",
        ]
    if not answer.holding:
        beats = "beats random rankings on more texts than chance allows"
        return [named, f"None of the methods tested ({answer.tried}) {beats}."]
    best = _and([_count(tally) for tally in answer.holding[:MOST_METHODS]])
    more = len(answer.holding) - MOST_METHODS
    others = f", and {more} more" if more > 0 else ""
    first = answer.holding[0]
    chance = f"by chance: {first.by_chance:.2g} of {first.judged}"
    return [named, f"Better than chance over the texts: {best}{others}; {chance}."]


def _count(tally: Tally) -> str:
    return f"{wording.visible(tally.method)} ({tally.better} of {tally.judged} texts)"


def _attention(tally: Tally) -> str:
    # asked about by its name, it pays for no other method
    holds = tally.p is not None and is_within(tally.p)
    often = f"Attention alone ({tally.method}) beats random rankings on {tally.better}"
    belief = "more than chance allows" if holds else "no more than chance allows"
    return f"{often} of {tally.judged} texts: {belief}."


def _control(tally: Tally) -> str:
    beats = f"beats them on {tally.better} of {tally.judged}"
    return f"The control, random scores, {beats}."


def _and(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
