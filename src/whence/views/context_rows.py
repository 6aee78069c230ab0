"""The context in rows: documents open into sentences, and these into words, each with its score.

The numbers are those of all selected words together, until a script shows those of one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from whence.core.coarser import coarser_kinds, grouped
from whence.core.contextual import ContextUse
from whence.views import wording
from whence.views.markup import element, kind, soft, text

# Said below rows of documents, sentences or words that can be opened.
ABOUT = "A bar is the sum of the scores below it. Open a row to see them."


def context_rows(use: ContextUse, signed: bool) -> str:
    """The rows, by the first method; nothing where no unit is part of a larger one."""
    kinds = tuple(reversed(coarser_kinds(use.passage)))
    if not kinds or not use.selected:
        return ""
    everything = range(len(use.units))
    rows = _Rows(use, signed, use.together()).of(kinds, everything)
    of_rows = "documents" if kinds[0] == "section" else wording.plural(kinds[0])
    title = element("h3", f"By {of_rows}")
    return element("div", title + rows + soft(ABOUT), class_="rows")


class _Rows:
    """What all rows share."""

    def __init__(self, use: ContextUse, signed: bool, scores: Float[np.ndarray, " unit"]) -> None:
        self.use = use
        self.signed = signed
        self.scores = scores
        self.largest = float(np.abs(scores).max(initial=0.0))

    def of(self, kinds: Sequence[str], inside: range) -> str:
        """A row for each larger unit within some units; or these units themselves."""
        if not kinds:
            return element("div", "".join(map(self._unit, inside)), class_="text", dir="auto")
        groups = [group for group in grouped(self.use.passage, kinds[0]) if group.start in inside]
        sums = [float(self.scores[group.start : group.stop].sum()) for group in groups]
        form = wording.score_format(sums, self.signed)
        largest = max(map(abs, sums), default=0.0)
        rows = []
        for group, total in zip(groups, sums, strict=True):
            summary = [
                self._bar(total / largest if largest else 0.0),
                element("span", form(total).replace("-", "−"), class_="number"),
                self._line(group, kinds[0]),
            ]
            content = element("summary", "".join(summary)) + self.of(kinds[1:], group)
            rows.append(
                element("details", content, class_="row", data_from=group.start, data_to=group.stop)
            )
        return element("div", "".join(rows), class_="level")

    def _line(self, group: range, of_kind: str) -> str:
        """The name of a document, and how the row begins."""
        first, last = (
            self.use.passage.unit_spans[group.start],
            self.use.passage.unit_spans[group[-1]],
        )
        line = text(" ".join(self.use.passage.text[first[1] : last[2]].split()))
        names = [own.name for own in self.use.passage.sections if own.start <= first[1] < own.end]
        if of_kind == "section" and names:
            line = f"{element('span', text(names[0]), class_='badge')} {line}"
        return element("span", line, class_="line", dir="auto")

    def _bar(self, level: float) -> str:
        zero = 50.0 if self.signed else 0.0
        end = zero + (100.0 - zero) * level
        place = f"left:{min(zero, end):.2f}%;width:{abs(end - zero):.2f}%"
        bar = element("i", "", class_=kind(level, self.signed), style=place)
        track = "track both" if self.signed else "track"
        return element("span", element("div", bar), class_=track, aria_hidden="true")

    def _unit(self, unit: int) -> str:
        content = self.use.units.texts[unit]
        body = content.lstrip()
        before = content[: len(content) - len(body)]
        score = float(self.scores[unit])
        level = score / self.largest if self.largest else 0.0
        form = wording.score_format(self.scores.tolist(), self.signed)
        coloured = element(
            "span",
            text(body, keep="\n\t"),
            class_=f"u {kind(level, self.signed)}",
            style=f"--v:{abs(level):.3f}",
            data_u=unit,
        )
        number = element("small", form(score).replace("-", "−"))
        if self.use.passage.kind not in ("word", "token"):
            return element("span", coloured + number, class_="scored long")  # a line of its own
        return text(before, keep="\n\t") + element("span", coloured + number, class_="scored")
