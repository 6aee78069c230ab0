"""What can be said of each method in a report.

A table of verdicts, costs and errors, and for each method a card with its curves and its bars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.evidence import Trial, TrialCurves
from whence.views import verdicts, wording
from whence.views.curves import curves, drawable, limits
from whence.views.markup import element, kind, named, paragraphs, scrolling, table, text

MOST_BARS = 5  # in a card
LEGEND = (
    '<p class="legend">'
    '<span><i class="key deletion"></i>units taken out, the first of the ranking first</span>'
    '<span><i class="key insertion"></i>units put back, the first of the ranking first</span>'
    '<span><i class="key band"></i>95 % of the random rankings, and their mean</span>'
    "</p>"
)
NOT_COMPUTED = element("span", "not computed", class_="soft")
Scales = Mapping[tuple[str, str], tuple[float, float]]  # by question and removal


# ---------------------------------------------------------------------- badges


def badge(a: Attribution, short: bool = False) -> str:
    """The verdict as a mark with its words, or with ``short`` ones; nothing without evidence."""
    ruling = verdicts.overall(a)
    if ruling is None:
        return ""
    words = ruling.few_words if short else ruling.words
    return element("span", f"{ruling.mark} {text(words)}", class_=f"badge {ruling.kind}")


def badge_mark(a: Attribution) -> str:
    """The verdict's mark alone; its words are shown when one points at it, and are read aloud."""
    ruling = verdicts.overall(a)
    if ruling is None:
        return ""
    classes, words = f"badge {ruling.kind}", ruling.words
    return element("span", ruling.mark, class_=classes, title=words, aria_label=words, role="img")


# ---------------------------------------------------------------------- the overview


@dataclass(frozen=True)
class _Columns:
    """Which columns the overview has beside those that it always has."""

    removals: list[str]
    saved: bool  # passes that came from memory

    @property
    def count(self) -> int:
        """All of them."""
        always = len(("method", "strongest units", "evidence", "fwd", "bwd", "ms", "error"))
        return always + len(self.removals) + int(self.saved)


def overview(every: Sequence[Attribution], result: Attribution | Comparison) -> str:
    """One row for each method, the best evidence first: strongest units, evidence, cost, error."""
    columns = _Columns(verdicts.removal_names(every), any(a.cost.saved for a in every))
    rows = [_row(a, columns) for a in verdicts.by_evidence(every)]
    costs = table(_heads(columns), rows, class_="costs")
    title = "Overview" if isinstance(result, Comparison) else "Evidence, cost and error"
    parts = [
        element("h3", title),
        "\n",
        scrolling("evidence, cost and error of each method", costs, whole=True),
        paragraphs(_notes(every, result)),
    ]
    return "".join(parts)


def _heads(columns: _Columns) -> str:
    strongest = element("span", "strongest units", class_="wide")
    heads = [
        element("th", "method", scope="col", class_="left"),
        element("th", strongest, scope="col", class_="left strongest"),
        element("th", "evidence", scope="col", class_="left"),
        *(element("th", text(name), scope="col", class_="wide") for name in columns.removals),
        _short_head("fwd", "forward passes"),
        _short_head("saved", "passes from memory") if columns.saved else "",
        _short_head("bwd", "backward passes"),
        _short_head("ms", "milliseconds"),
        element("th", "error", scope="col"),
    ]
    return element("tr", "".join(heads))


def _short_head(name: str, whole: str) -> str:
    return element("th", element("abbr", name, title=whole), scope="col")


def _row(a: Attribution, columns: _Columns) -> str:
    """A method's row, and below it what is to be said of its scores."""
    note = _note_of_scores(a)
    cells = [
        element("th", text(a.method), scope="row", class_="left"),
        element("td", _strongest(a), class_="left strongest"),
        element("td", badge(a, short=True) or NOT_COMPUTED, class_="left"),
        *_shares(a, columns.removals),
        *_costs(a, columns.saved),
        element("td", _error(a)),
    ]
    row = element("tr", "".join(cells), class_="noted" if note else None)
    if not note:
        return row
    below = element("td", element("span", text(note)), class_="left", colspan=columns.count)
    return row + element("tr", below, class_="note")


def _note_of_scores(a: Attribution) -> str:
    """A method's own note; that of an anchor is told beside its text."""
    if wording.anchor(a):
        return ""
    return wording.note(a)


def _strongest(a: Attribution) -> str:
    names = [named(name) for name, score in a.top(3) if score]
    return element("span", ", ".join(names) or "–", class_="wide")


def _shares(a: Attribution, removals: Sequence[str]) -> list[str]:
    rulings = {ruling.removal: ruling for ruling in verdicts.by_removal(a)}
    return [element("td", _share(rulings.get(name)), class_="wide") for name in removals]


def _share(ruling: verdicts.Ruling | None) -> str:
    if ruling is None or ruling.beaten is None:
        return "–"
    content = f"{ruling.mark} {wording.share(ruling.beaten)}"
    if ruling.p is not None:
        p = wording.p_value(ruling.p).replace(" = ", " ")
        content += " " + element("span", text(p), class_="soft")
    return element("span", content, title=ruling.sentence())


def _costs(a: Attribution, with_saved: bool) -> list[str]:
    cells = [wording.forwards_cell(a.cost)]
    if with_saved:
        cells.append(f"{a.cost.saved:,}" if a.cost.saved else "–")
    cells += [f"{a.cost.backwards:,}", wording.milliseconds(a.cost.seconds)]
    return [element("td", cell) for cell in cells]


def _error(a: Attribution) -> str:
    return text(wording.error(a)).replace(", ", ",<br>") or "–"


def _notes(every: Sequence[Attribution], result: Attribution | Comparison) -> list[str]:
    notes = []
    removals = verdicts.removal_names(every)
    if removals:
        notes.append(
            f"Evidence: the share of {verdicts.random_rankings(every)} of the same text that this "
            "ranking beats (50 % is chance), with the p-value, under each way to remove units "
            f"({', '.join(removals)}). {verdicts.CAUTION}"
        )
    if isinstance(result, Comparison):
        total = f"In all {wording.cost(result.cost)}."
        if any(a.cost.shared for a in every):
            shared = "* one forward (and backward) is the trace that all methods share."
            total = f"{shared} {total}"
        notes.append(total)
        notes += [f"{name} left out: {why}" for name, why in result.skipped.items()]
    return notes


# ---------------------------------------------------------------------- cards


def cards(every: Sequence[Attribution]) -> str:
    """A card for each method that has evidence or error bars, best evidence first.

    It has the verdict in words, the strongest units where several methods stand beside each other,
    and the curves.
    """
    shown = [a for a in verdicts.by_evidence(every) if _has_card(a)]
    if not shown:
        return ""
    scales = _scales(every)
    # alone, a method has the bars of all its units elsewhere
    bars = MOST_BARS if len(every) > 1 else 0
    every_card = element("div", "".join(_card(a, scales, bars) for a in shown), class_="cards")
    return LEGEND + every_card if scales else every_card


def _has_card(a: Attribution) -> bool:
    return a.evidence is not None or bool(wording.spread(a)) or bool(wording.detail(a))


def _scales(every: Sequence[Attribution]) -> Scales:
    """One scale for all pictures of a removal that answer the same question."""
    groups: dict[tuple[str, str], list[TrialCurves]] = {}
    for a in every:
        for trial in verdicts.trials(a):
            drawn = drawable(trial)
            if drawn is not None:
                groups.setdefault((verdicts.question(a), trial.removal), []).append(drawn)
    return {key: limits(group) for key, group in groups.items()}


def _card(a: Attribution, scales: Scales, bars: int) -> str:
    trials = zip(verdicts.trials(a), verdicts.by_removal(a), strict=True)
    pictures = [_picture(a, trial, ruling, scales) for trial, ruling in trials]
    parts = [element("h4", f"{text(a.method)} {badge(a)}"), paragraphs(_words(a))]
    if bars:
        parts.append(score_bars(a, a.ranking()[:bars]))
    parts.append(element("div", "".join(pictures), class_="panels"))
    return element("article", "".join(parts), class_="card")


def _words(a: Attribution) -> list[str]:
    """What is said in a card: the question that the curves answer, and what the method tells."""
    lines = []
    if verdicts.trials(a):
        lines.append(verdicts.QUESTIONS.get(verdicts.question(a), ""))
    own = verdicts.own(a)
    if own:
        lines.append(f"Its own evidence: {own}")
    lines += [verdicts.note(a), wording.detail(a)]
    return [line for line in lines if line]


def _picture(a: Attribution, trial: Trial, ruling: verdicts.Ruling, scales: Scales) -> str:
    """The curves under one removal, where there are any, and the verdict below them."""
    svg = ""
    drawn = drawable(trial)
    if drawn is not None:
        scale = scales[verdicts.question(a), trial.removal]
        svg = curves(drawn, scale, f"{a.method}, removal {ruling.removal}: {ruling.sentence()}")
    words = f"{element('strong', text(ruling.removal))} {ruling.mark} {text(ruling.sentence())}"
    return element("figure", svg + element("figcaption", words))


# ---------------------------------------------------------------------- bars of scores


@dataclass(frozen=True)
class _Track:
    """The strip along which a bar is drawn, in per cent: where zero is, and how long a score is."""

    zero: float
    unit: float

    def between(self, start: float, end: float) -> str:
        """A stretch of the track as CSS."""
        return f"left:{start:.2f}%;width:{end - start:.2f}%"

    def bar(self, score: float) -> str:
        """From zero to the score."""
        left, right = sorted((self.zero, self.zero + self.unit * score))
        return self.between(left, right)

    def whisker(self, score: float, error: float) -> str:
        """One standard error to either side of the score."""
        low = max(self.zero + self.unit * (score - error), 0.0)
        return self.between(low, self.zero + self.unit * (score + error))


def score_bars(a: Attribution, units: Sequence[int] | np.ndarray) -> str:
    """A bar for each of these units, with whiskers of one standard error where there are any."""
    shown = wording.score_format(a.scores, a.signed)
    spread = wording.spread(a)
    errors = _standard_errors(a)
    reach = float((np.abs(a.scores) + errors).max(initial=0.0)) or 1.0
    track = _Track(0.0, 100.0 / reach)
    if a.signed:
        track = _Track(50.0, 50.0 / reach)

    rows = []
    for i in units:
        score = float(a.scores[i])
        number = shown(score)
        bar = element("i", class_=kind(score, a.signed), style=track.bar(score))
        if spread is not None:
            number += " " + element("span", spread[i], class_="soft")
            bar += element("span", style=track.whisker(score, float(errors[i])))
        rows.append(_bar_row(a.units.names[i], number, bar, a.signed))
    return table("", rows, class_="scores")


def _standard_errors(a: Attribution) -> Float[np.ndarray, " unit"]:
    """Zero where the method gives none."""
    if a.error is None or a.error.standard_error is None:
        return np.zeros_like(a.scores)
    return np.nan_to_num(a.error.standard_error)


def _bar_row(name: str, number: str, bar: str, signed: bool) -> str:
    track = "track both" if signed else "track"
    cells = [
        element("th", named(name), scope="row"),
        element("td", number),
        element("td", element("div", bar), class_=track, aria_hidden="true"),
    ]
    return element("tr", "".join(cells))
