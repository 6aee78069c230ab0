"""What can be said of each method in a report.

A table of verdicts, one of costs and errors, and a card for each method: its curves and its bars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.evidence import Trial, TrialCurves
from whence.core.scores import ZERO_BY_CONSTRUCTION
from whence.views import verdicts, wording
from whence.views.curves import curves, drawable, limits
from whence.views.markup import element, kind, named, paragraphs, scrolling, soft, table, text

MOST_BARS = 5  # in a card
# Said above the cards where some have curves.
LEGEND = (
    '<p class="legend">'
    '<span><i class="key deletion"></i>{units} are taken out, the most important first</span>'
    '<span><i class="key insertion"></i>{units} are put back, the most important first</span>'
    '<span><i class="key band"></i>where 95 % of the random rankings lie</span>'
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


# ---------------------------------------------------------------------- verdicts


def verdict_table(every: Sequence[Attribution]) -> str:
    """One row for each method, the best evidence first: strongest units and evidence.

    Said where at least one method has evidence.
    """
    removals = verdicts.removal_names(every)
    rows = [_verdict_row(a, removals) for a in verdicts.by_evidence(every)]
    strongest = element("span", "strongest units", class_="wide")
    heads = [
        element("th", "method", scope="col", class_="left"),
        element("th", strongest, scope="col", class_="left strongest"),
        element("th", "evidence", scope="col", class_="left"),
        *(element("th", f"by {text(name)}", scope="col", class_="wide") for name in removals),
    ]
    rulings = table(element("tr", "".join(heads)), rows, class_="costs")
    parts = [
        "<h3>Which methods can be believed?</h3>\n",
        scrolling("evidence of each method", rulings, whole=True),
        _how_to_read(every, removals),
    ]
    return "".join(parts)


def _verdict_row(a: Attribution, removals: Sequence[str]) -> str:
    cells = [
        element("th", text(a.method), scope="row", class_="left"),
        element("td", _strongest(a), class_="left strongest"),
        element("td", badge(a, short=True) or NOT_COMPUTED, class_="left"),
        *_shares(a, removals),
    ]
    return element("tr", "".join(cells))


def _how_to_read(every: Sequence[Attribution], removals: Sequence[str]) -> str:
    """Said below the table where some method was held against random rankings."""
    if not removals:
        return ""
    shares = (
        f"The percentage is the share of {verdicts.random_rankings(every)} of the same text that "
        "the method's ranking beats: 50 % is chance. It is given for each way to remove "
        f"{wording.plural(every[0].units.kind)} "
        f"({', '.join(removals)}), with the p-value."
    )
    # on a narrow screen there are no percentages
    return element("p", text(f"{shares} "), class_="soft of-shares") + soft(text(verdicts.CAUTION))


def _strongest(a: Attribution) -> str:
    if a.is_zero_by_construction:
        return element("span", ZERO_BY_CONSTRUCTION, class_="wide")
    names = a.units.distinct_names
    strongest = [named(names[i]) for i in a.ranking()[:3] if a.scores[i]]
    return element("span", ", ".join(strongest) or "–", class_="wide")


def _shares(a: Attribution, removals: Sequence[str]) -> list[str]:
    rulings = {ruling.removal: ruling for ruling in verdicts.by_removal(a)}
    return [element("td", _share(rulings.get(name)), class_="wide") for name in removals]


def _share(ruling: verdicts.Ruling | None) -> str:
    if ruling is None or ruling.beaten is None:
        return "–"
    content = f"{ruling.mark} {wording.share(ruling.beaten)}"
    if ruling.p is not None:
        p = wording.p_of_verdict(ruling.verdict, ruling.p).replace(" = ", " ")
        content += " " + element("span", text(p), class_="soft")
    return element("span", content, title=ruling.sentence())


# ---------------------------------------------------------------------- costs


def costs(every: Sequence[Attribution], result: Attribution | Comparison) -> str:
    """One row for each method: passes, time, error; below it what it says of its scores.

    Said of the table of costs, to a screen reader.
    """
    with_saved = any(a.cost.saved for a in every)
    heads = [
        element("th", "method", scope="col", class_="left"),
        element("th", "forward passes", scope="col"),
        element("th", "from memory", scope="col") if with_saved else "",
        element("th", "backward passes", scope="col"),
        element("th", "milliseconds", scope="col"),
        element("th", "error", scope="col"),
    ]
    rows = [_cost_row(a, with_saved) for a in every]
    paid = table(element("tr", "".join(heads)), rows, class_="costs")
    shown = scrolling("cost and error of each method", paid, whole=True)
    return shown + paragraphs(_notes(every, result))


def _cost_row(a: Attribution, with_saved: bool) -> str:
    """A method's row, and below it what is to be said of its scores."""
    note = _note_of_scores(a)
    cells = [
        element("th", text(a.method), scope="row", class_="left"),
        *_costs(a, with_saved),
        element("td", _error(a)),
    ]
    row = element("tr", "".join(cells), class_="noted" if note else None)
    if not note:
        return row
    below = element("td", element("span", text(note)), class_="left", colspan=len(cells))
    return row + element("tr", below, class_="note")


def _note_of_scores(a: Attribution) -> str:
    """A method's own note; that of an anchor is told beside its text."""
    if wording.anchor(a):
        return ""
    return wording.note(a)


def _costs(a: Attribution, with_saved: bool) -> list[str]:
    cells = [wording.forwards_cell(a.cost)]
    if with_saved:
        cells.append(f"{a.cost.saved:,}" if a.cost.saved else "–")
    cells += [f"{a.cost.backwards:,}", wording.milliseconds(a.cost.seconds)]
    return [element("td", cell) for cell in cells]


def _error(a: Attribution) -> str:
    return text(wording.error(a)).replace(", ", ",<br>") or "–"


def _notes(every: Sequence[Attribution], result: Attribution | Comparison) -> list[str]:
    """Said below the table of costs, as far as it is so."""
    notes = []
    if any(a.cost.shared for a in every):
        notes.append(wording.SHARED_PASS)
    if any(a.cost.saved for a in every):
        notes.append(wording.FROM_MEMORY)
    if isinstance(result, Comparison):
        notes.append(f"In all {wording.cost(result.cost)}.")
        notes += [f"{name} was left out: {why}" for name, why in result.skipped.items()]
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
    legend = LEGEND.format(units=wording.plural(every[0].units.kind))
    return legend + every_card if scales else every_card


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
    """What is said in a card: the question that the curves answer, and what the method tells.

    Said in the card of a method that has evidence, error bars or more to tell.
    """
    lines = []
    if verdicts.trials(a):
        asked = verdicts.QUESTIONS.get(verdicts.question(a), "")
        lines.append(asked.format(units=wording.plural(a.units.kind)))
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

    names = a.units.distinct_names
    rows = []
    for i in units:
        score = float(a.scores[i])
        number = shown(score)
        bar = element("i", class_=kind(score, a.signed), style=track.bar(score))
        if spread is not None:
            number += " " + element("span", spread[i], class_="soft")
            bar += element("span", style=track.whisker(score, float(errors[i])))
        rows.append(_bar_row(names[i], number, bar, a.signed))
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
