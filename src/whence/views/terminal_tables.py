"""What a comparison says of its methods, in a terminal: evidence, cost and error, agreement, and the units in conflict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.agreement import Agreement
from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.views import verdicts, wording

DIM, BOLD = Style(dim=True), Style(bold=True)
TINTS = {
    "better": Style(color="green"),
    "worse": Style(color="red"),
    "unclear": Style(),
    "none": DIM,
}
MOST_CONFLICTS = 5
EVIDENCE, REMOVAL = len("~ unclear"), len("✓ 100 % .010")  # cells that their columns need
FEWEST_CELLS = len("strongest units")


def evidence_table(every: Sequence[Attribution], room: int) -> Iterator[RenderableType]:
    """Each method's strongest units and whether its ranking is better than random, under each removal; the best first."""
    names = max(len(a.method) for a in every)
    removals = verdicts.removal_names(every)
    left_out = removals[max((room - names - EVIDENCE - FEWEST_CELLS - 4) // (REMOVAL + 2), 0) :]
    removals = removals[: len(removals) - len(left_out)]
    table = _table("method", "strongest units", "evidence", *removals)
    others = names + EVIDENCE + 4 + (REMOVAL + 2) * len(removals)
    table.columns[1].width = min(
        max(room - others, FEWEST_CELLS), max(cell_len(strongest(a)) for a in every) + 1
    )
    for a in verdicts.by_evidence(every):
        found = verdicts.overall(a)
        of = {v.removal: v for v in verdicts.by_removal(a)}
        cells = [Text(a.method), Text(strongest(a))]
        cells.append(
            Text("–", DIM)
            if found is None
            else _marked(f"{found.mark} {verdicts.SHORT.get(found.verdict, '')}".strip(), found)
        )
        cells += [
            _marked(of[name].cell(), of[name]) if name in of else Text("–", DIM)
            for name in removals
        ]
        table.add_row(*cells)
    yield table
    yield from (Text(line, DIM) for line in _evidence_notes(every, bool(removals)))
    if left_out:
        yield Text(
            f"removals without room here: {', '.join(map(wording.visible, left_out))}; --json and --html have them",
            DIM,
        )


def _marked(text: str, found: verdicts.Verdict) -> Text:
    return Text(text, TINTS[found.kind])


def _evidence_notes(every: Sequence[Attribution], told: bool) -> list[str]:
    n = verdicts.rankings(every)
    random = f"{n} random rankings" if n else "random rankings"
    out = (
        [f"✓ better than {random} of the same text, ~ not separable from them, ✗ worse."]
        if told
        else []
    )
    out += (
        [f"Then the share of them that it beats (50 % is chance), and p. {verdicts.CAUTION}"]
        if told
        else []
    )
    notes: dict[str, list[str]] = {}
    for a in every:
        notes.setdefault(verdicts.note(a), []).append(a.method)
    return out + [
        f"evidence, {wording.few(names)}: {note}" for note, names in notes.items() if note
    ]


def cost_table(every: Sequence[Attribution], with_units: bool) -> RenderableType:
    """Passes, time and error of each method; its strongest units too, where no other table has them."""
    saved, errors = any(a.cost.saved for a in every), any(wording.error(a) for a in every)
    heads = [
        "method",
        *(["strongest units"] if with_units else []),
        "fwd",
        *(["saved"] if saved else []),
        "bwd",
        "ms",
    ]
    table = _table(*heads, *(["error"] if errors else []))
    for column in table.columns:
        column.justify = "right" if column.header.plain in ("fwd", "saved", "bwd", "ms") else "left"  # type: ignore[union-attr]
    if with_units:
        table.columns[1].ratio = 1
    for a in every:
        mark = "*" if a.cost.shared else ""
        cells = [a.method, *([strongest(a)] if with_units else []), f"{a.cost.forwards:,}{mark}"]
        cells += [f"{a.cost.saved:,}" if a.cost.saved else ""] if saved else []
        cells += [f"{a.cost.backwards:,}", wording.milliseconds(a.cost.seconds)]
        table.add_row(*(Text(cell) for cell in [*cells, *([wording.error(a)] if errors else [])]))
    return table


def strongest(a: Attribution) -> str:
    """The three strongest units, those without a score left out."""
    return ", ".join(wording.visible(name) for name, score in a.top(3) if score) or "–"


def agreement_block(c: Comparison) -> Iterator[RenderableType]:
    """How far the methods agree; nothing for one method, or where no two can be compared."""
    found = c.agreement()
    if not found.pairs:
        return
    yield Text("agreement", BOLD)
    yield _means(found)
    yield Text(_pairs_line(found), DIM)
    lines = list(_conflict_rows(found))
    if not lines:
        return
    yield Text()
    yield Text("units on which methods conflict", BOLD)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, max_width=24)
    grid.add_column(overflow="fold")
    for name, line in lines:
        grid.add_row(Text(name), line)
    yield grid


def _means(found: Agreement) -> RenderableType:
    """Two methods side by side, the one that agrees most with the others first."""
    correlation, overlap = found.mean_correlation(), found.mean_overlap()
    ordered = sorted(
        found.methods, key=lambda m: -correlation[m] if math.isfinite(correlation[m]) else 2.0
    )
    half = (len(ordered) + 1) // 2
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style=DIM)
    for i in range(2 if len(ordered) > 1 else 1):
        table.add_column(Text("mean with the others" if i == 0 else ""), no_wrap=True)
        table.add_column(Text("corr."), justify="right", no_wrap=True)
        table.add_column(Text(f"top {found.k}"), justify="right", no_wrap=True)
        if i == 0:
            table.add_column(width=2)

    def cells(m: str) -> list[Text]:
        return [Text(m), Text(wording.correlation(correlation[m])), Text(wording.share(overlap[m]))]

    for i in range(half):
        right = cells(ordered[half + i]) if half + i < len(ordered) else []
        table.add_row(*cells(ordered[i]), Text(), *right)
    return table


def _pairs_line(found: Agreement) -> str:
    (a, b, most), (x, y, least) = found.pairs[0], found.pairs[-1]
    told = f"Closest: {a} and {b} ({wording.correlation(most)})."
    told += (
        f" Furthest: {x} and {y} ({wording.correlation(least)})." if len(found.pairs) > 1 else ""
    )
    return f"{told} {wording.about_agreement(found)}"


def _conflict_rows(found: Agreement) -> Iterator[tuple[str, Text]]:
    for conflict in found.conflicts[:MOST_CONFLICTS]:
        words = wording.CAMPS[conflict.kind]
        line = Text()
        for word, camp, end in zip(words, (conflict.one, conflict.other), ("; ", ""), strict=True):
            line.append(f"{word}: ", DIM).append(f"{wording.few(camp)}{end}")
        yield wording.visible(conflict.name), line


def _table(*heads: str) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style=BOLD
    )
    for head in heads:
        table.add_column(Text(head), no_wrap=True, overflow="ellipsis")
    return table
