"""The answer over many texts, in words. What may be said is decided in core."""

from __future__ import annotations

from whence.core.answer_of_many import AnswerOfMany
from whence.core.evidence import LEVEL, is_within
from whence.core.many import Tally
from whence.core.question import Question
from whence.views import wording

MOST_LABELS = 4
MOST_METHODS = 3


def asked_of_many(answer: AnswerOfMany) -> list[str]:
    """Which question the counts answer; nothing where no method was tested."""
    return [wording.answers(Question.TEXTS)] if answer.tried else []


def many_sentences(answer: AnswerOfMany) -> list[str]:
    """What the model says of the texts, which methods hold over all of them, what attention does.

    The first two are the answer itself.
    """
    said = [_predictions(answer), *_methods(answer)]
    if answer.attention is not None and answer.attention.judged:
        said.append(_attention(answer.attention, answer))
    if answer.control is not None and answer.control.judged:
        said.append(_control(answer.control))
    return said


def _predictions(answer: AnswerOfMany) -> str:
    """Said of all texts: how many there are, and of how many the model says what."""
    texts = wording.counted(answer.texts, "text")
    if not answer.predictions:
        return f"{texts} {'was' if answer.texts == 1 else 'were'} explained."
    counts = [f"{wording.label(name)} for {count:,}" for name, count in answer.predictions]
    if len(counts) > MOST_LABELS + 1:  # one more is named as shortly as it is counted
        counts = [*counts[:MOST_LABELS], _other_labels(answer)]
    return f"{texts}: the model says {wording.listed(counts)}."


def _other_labels(answer: AnswerOfMany) -> str:
    """The labels that are not named. Said where there are more than five.

    They are said of the rest of the texts only where each text has one label.
    """
    others = [count for _, count in answer.predictions[MOST_LABELS:]]
    is_one_each = sum(count for _, count in answer.predictions) == answer.texts
    rest = "the rest" if is_one_each else f"at most {max(others):,} each"
    return f"{len(others)} other labels for {rest}"


def _methods(answer: AnswerOfMany) -> list[str]:
    """Said behind the predictions, whatever was tested."""
    if not answer.tried:
        return ["No method was tested against random rankings, so nothing says which is right."]
    of = f"{answer.distinct:,}" if answer.distinct == answer.texts else _distinct(answer.distinct)
    named = f"Reasons can be named for {answer.explained:,} of {of}"
    named += f"; by chance it would be at most {answer.most_by_chance:,}, in 95 % of cases."
    if answer.too_few_texts:
        few = f"These are too few texts to tell {answer.tried} methods from chance."
        return [
            named,
            few if answer.tried > 1 else "These are too few texts to tell it from chance.",
        ]
    if not answer.holding:
        return [named, _none_holds(answer.tried)]
    best = [_count(tally) for tally in answer.holding[:MOST_METHODS]]
    more = len(answer.holding) - MOST_METHODS
    if more > 0:
        best.append(f"{more} more")
    return [named, f"Better than chance over the texts: {wording.listed(best)}; {_chance(answer)}."]


def _distinct(count: int) -> str:
    """Said where some texts stand there twice: these are counted once."""
    return f"{wording.counted(count, 'text')}, each counted once"


def _none_holds(tried: int) -> str:
    """Said where no method is better on more texts than chance allows, all of them paid for."""
    beats = "random rankings on more texts than chance allows"
    if tried == 1:
        return f"The method that was tested does not beat {beats}."
    none = "Neither" if tried == 2 else "None"
    return f"{none} of the {tried} methods tested beats {beats}, corrected for {tried} methods."


def _chance(answer: AnswerOfMany) -> str:
    """What a random ranking gets on these texts, on average; at most, as on a short one it cannot.

    Methods are named beside it, so it is in texts only where they were judged on as many.

    Said beside the methods that are better on more texts than chance allows.
    """
    named = answer.holding[:MOST_METHODS]
    if len({tally.judged for tally in named}) > 1:
        return f"chance gives at most {wording.share(LEVEL)} of the texts, on average"
    first = named[0]
    mean = wording.few_digits(first.by_chance)
    return f"chance gives at most {mean} of {first.judged:,}, on average"


def _count(tally: Tally) -> str:
    return f"{wording.visible(tally.method)} ({_often(tally)})"


def _often(tally: Tally) -> str:
    return f"{tally.better:,} of {wording.counted(tally.judged, 'text')}"


def _attention(tally: Tally, answer: AnswerOfMany) -> str:
    """Said where attention alone was judged: asked about by its name, it pays for no other method.

    Where it holds alone and not beside the others, both are said: they stand in one answer.
    """
    beats = f"Attention alone ({tally.method}) beats random rankings on {_often(tally)}"
    if tally.p is None or not is_within(tally.p):
        return f"{beats}: no more than chance allows."
    if tally.method in [each.method for each in answer.holding]:
        return f"{beats}: more than chance allows."
    return (
        f"{beats}: more than chance allows if it had been the only one asked about, "
        f"but not corrected for {answer.tried} methods."
    )


def _control(tally: Tally) -> str:
    """Said where random scores were judged as the methods are."""
    return f"The control, random scores, beats random rankings on {_often(tally)}."
