"""What a person reads first in a terminal: the answer, the text, and the verdicts in brief."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from whence.core.answer import CONTROL, PLAIN_ATTENTION, Answer
from whence.core.attribution import Attribution
from whence.core.evidence import Verdict
from whence.views import verdicts, wording
from whence.views.answering import LEAD, Phrase, Sentence, asked, cautions, sentences
from whence.views.palette import Theme, levels

DIM, BOLD = Style(dim=True), Style(bold=True)
MOST_CHARACTERS = 480  # of a text that is shown whole: six lines of a narrow terminal
STRONGEST = 6  # units around which a longer text is shown
AROUND = 5  # units to either side of each
MOST_ROWS = 10  # of verdicts; the methods below are named in a line for each verdict


# ---------------------------------------------------------------------- the answer


def answer_block(answer: Answer, theme: Theme, coloured: bool) -> Iterator[RenderableType]:
    """The sentences of the answer, and below them what to be careful about."""
    said = sentences(answer)
    lead = Text()
    for sentence in said[:LEAD]:
        _append(lead, sentence, theme, coloured)
        lead.append(" ")
    yield lead
    for sentence in said[LEAD:]:
        line = Text()
        _append(line, sentence, theme, coloured)
        yield line
    for caution in cautions(answer):
        line = Text()
        line.append("Caution: ", BOLD)
        _append(line, caution, theme, coloured)
        yield line
    if asked(answer):
        yield Text(asked(answer), DIM)


def _append(line: Text, sentence: Sentence, theme: Theme, coloured: bool) -> None:
    for phrase in sentence:
        line.append(phrase.text, _style(phrase, theme, coloured))


def _style(phrase: Phrase, theme: Theme, coloured: bool) -> Style:
    """Bold where something is named, in the colour that it has in the text."""
    if phrase.role in ("", "method"):
        return Style()
    ends = {"above": theme.positive, "below": theme.negative, "matter": theme.unsigned}
    end = ends.get(phrase.role)
    if end is None or not coloured:
        return BOLD
    return Style(bold=True, color=f"rgb({end[0]},{end[1]},{end[2]})")


# ---------------------------------------------------------------------- a long text


def shown_units(a: Attribution, full: bool) -> np.ndarray:
    """Which units of a text are shown: all, or of a long one those around the strongest."""
    count = len(a.scores)
    length = sum(map(len, a.units.texts))
    if full or length <= MOST_CHARACTERS:
        return np.ones(count, dtype=bool)
    shown = np.zeros(count, dtype=bool)
    strongest = np.argsort(-np.abs(levels(a)), kind="stable")[:STRONGEST]
    for unit in strongest:
        shown[max(unit - AROUND, 0) : unit + AROUND + 1] = True
    return shown


# ---------------------------------------------------------------------- verdicts in brief


def brief_rows(every: Sequence[Attribution]) -> list[Attribution]:
    """Methods that get a row of their own, the best evidence first.

    Those with a verdict other than "not separable", plain attention and the control; then the
    others while there is room.
    """
    ordered = verdicts.by_evidence(every)
    ruled = [a for a in ordered if _stands_out(a)]
    attention = [a for a in ordered if a.method in PLAIN_ATTENTION[:1]]
    control = [a for a in ordered if a.method == CONTROL]
    chosen: list[Attribution] = []
    for a in [*attention, *control, *ruled, *ordered]:
        if a not in chosen and len(chosen) < MOST_ROWS:
            chosen.append(a)
    return [a for a in ordered if a in chosen]


def _stands_out(a: Attribution) -> bool:
    ruling = verdicts.overall(a)
    return ruling is not None and ruling.verdict in (Verdict.BETTER, Verdict.WORSE)


def other_methods(every: Sequence[Attribution], shown: Sequence[Attribution]) -> list[str]:
    """The methods without a row, in a line for each verdict."""
    names: dict[str, list[str]] = {}
    for a in verdicts.by_evidence(every):
        if any(a is one for one in shown):
            continue
        ruling = verdicts.overall(a)
        words = "not tested" if ruling is None else f"{ruling.mark} {ruling.words}"
        names.setdefault(words, []).append(a.method)
    return [f"{words}: {', '.join(methods)}" for words, methods in names.items()]


def explained_line(a: Attribution) -> str:
    """What was explained, of which model."""
    return f"Explained: {wording.value(a)}, of model {wording.visible(a.provenance.model)}"
