"""What a comparison says of its methods, in a terminal.

Evidence, cost and error, agreement, and the units on which methods conflict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.agreement import Agreement, Conflict
from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.evidence import Verdict
from whence.core.scores import ZERO_BY_CONSTRUCTION
from whence.views import verdicts, wording
from whence.views.sides import Sides, sides_of

DIM, BOLD = Style(dim=True), Style(bold=True)
TINTS = {
    Verdict.BETTER: Style(color="green"),
    Verdict.WORSE: Style(color="red"),
    Verdict.SAME: Style(),
    None: DIM,
}
MOST_CONFLICTS = 5
GAP = 2  # cells between two columns
# cells that a column needs
EVIDENCE = len("~ unclear")
REMOVAL = len("✓ 100 % .010")
STRONGEST = "strongest units"
FEWEST_CELLS = 12  # of the strongest units: they give way to numbers
NUMBERS = ("forward", "memory", "backward", "ms")


# ---------------------------------------------------------------------- evidence


def evidence_table(
    every: Sequence[Attribution], room: int, with_notes: bool = True
) -> Iterator[RenderableType]:
    """Each method's strongest units and its evidence under each removal, the best first.

    Said below the table where some removals have no room.
    ``removals without room here: delete; --json and --html have them``
    """
    names = verdicts.removal_names(every)
    widths = _widths_of_shares(every, names)
    left = room - max(len(a.method) for a in every) - EVIDENCE - 2 * GAP
    removals: list[str] = []
    for name in names:
        if left - widths[name] - GAP < FEWEST_CELLS:
            break
        removals.append(name)
        left -= widths[name] + GAP
    left_out = names[len(removals) :]

    head = STRONGEST if left >= len(STRONGEST) else STRONGEST.split(" ")[0]
    table = _table("method", head, "evidence", *removals)
    widest = max(len(head), *(cell_len(strongest(a)) + 1 for a in every))
    table.columns[1].width = min(max(left, FEWEST_CELLS), widest)
    for a in verdicts.by_evidence(every):
        table.add_row(Text(a.method), Text(strongest(a)), _verdict(a), *_shares(a, removals))
    yield table

    lines = _evidence_notes(every, bool(removals)) if with_notes else []
    if removals and not with_notes:
        lines = [_how_to_read(every)]
    for line in lines:
        yield Text(line, DIM)
    if left_out:
        unseen = ", ".join(left_out)
        hint = f"removals without room here: {unseen}; --json and --html have them"
        yield Text(hint, DIM)


def _widths_of_shares(every: Sequence[Attribution], names: Sequence[str]) -> dict[str, int]:
    """The cells that each removal needs: a share of 99.5 % needs more than one of 99 %."""
    widths = {name: max(REMOVAL, cell_len(name)) for name in names}
    for a in every:
        for ruling in verdicts.by_removal(a):
            widths[ruling.removal] = max(widths[ruling.removal], cell_len(ruling.cell()))
    return widths


def _verdict(a: Attribution) -> Text:
    """The verdict over all removals."""
    ruling = verdicts.overall(a)
    if ruling is None:
        return Text("–", DIM)
    if ruling.verdict is None:
        return _tinted(ruling.mark, ruling)
    return _tinted(f"{ruling.mark} {verdicts.SHORT[ruling.verdict]}", ruling)


def _shares(a: Attribution, removals: Sequence[str]) -> list[Text]:
    """A cell for each removal, with a dash where the method was not tried under it."""
    rulings = {ruling.removal: ruling for ruling in verdicts.by_removal(a)}
    cells = []
    for name in removals:
        if name in rulings:
            cells.append(_tinted(rulings[name].cell(), rulings[name]))
        else:
            cells.append(Text("–", DIM))
    return cells


def _tinted(text: str, ruling: verdicts.Ruling) -> Text:
    return Text(text, TINTS[ruling.verdict])


def _evidence_notes(every: Sequence[Attribution], with_removals: bool) -> list[str]:
    """Said below the whole table of evidence, with every note."""
    lines = []
    if with_removals:
        better, same, worse = (verdicts.MARKS[verdict] for verdict in verdicts.BEST_FIRST)
        random = verdicts.random_rankings(every)
        lines += [
            f"Beside {random} of the same text: {better} better, {same} not separable from them, "
            f"{worse} worse.",
            "Then the share of them that it beats (chance: 50 %), and the p-value "
            "(of worse, where it is worse). " + verdicts.CAUTION,
        ]
    methods_by_note: dict[str, list[str]] = {}
    for a in every:
        methods_by_note.setdefault(verdicts.note(a), []).append(a.method)
    for note, methods in methods_by_note.items():
        if note:
            lines.append(f"evidence, {wording.few(methods)}: {note}")
    return lines


def _how_to_read(every: Sequence[Attribution]) -> str:
    """The numbers of the table in one line.

    Said below the short table where something was judged.
    """
    random = verdicts.random_rankings(every)
    has_worse = any(r.verdict == Verdict.WORSE for a in every for r in verdicts.by_removal(a))
    of = f" (beside {verdicts.MARKS[Verdict.WORSE]} that of worse)" if has_worse else ""
    return f"% of {random} that the method beats (chance: 50 %), and p{of}"


def units_table(every: Sequence[Attribution]) -> RenderableType:
    """Each method's strongest units, where none was tested."""
    table = _table("method", "strongest units")
    for a in every:
        table.add_row(Text(a.method), Text(strongest(a)))
    return table


# ---------------------------------------------------------------------- cost


def cost_table(every: Sequence[Attribution], with_units: bool) -> RenderableType:
    """Passes, time and error of each method; with its strongest units where no table has them."""
    rows = [_costs(a, with_units) for a in every]
    # of passes saved and errors there may be none
    heads = [name for name in rows[0] if any(row[name] for row in rows)]

    table = _table(*heads)
    for name, column in zip(heads, table.columns, strict=True):
        if name in NUMBERS:
            column.justify = "right"
        if name == "strongest units":
            column.ratio = 1
    for row in rows:
        table.add_row(*(Text(row[name]) for name in heads))
    return table


def _costs(a: Attribution, with_units: bool) -> dict[str, str]:
    """The cells of a method by the names of their columns; empty where there is nothing to say."""
    return {
        "method": a.method,
        "strongest units": strongest(a) if with_units else "",
        "forward": wording.forwards_cell(a.cost),
        "memory": f"{a.cost.saved:,}" if a.cost.saved else "",
        "backward": f"{a.cost.backwards:,}",
        "ms": wording.milliseconds(a.cost.seconds),
        "error": wording.error(a),
    }


def strongest(a: Attribution) -> str:
    """The three strongest units, those without a score left out; or that there can be none."""
    if a.is_zero_by_construction:
        return ZERO_BY_CONSTRUCTION
    names = a.units.distinct_names
    units = [i for i in a.ranking()[:3] if a.scores[i]]
    return ", ".join(wording.visible(names[i]) for i in units) or "–"


# ---------------------------------------------------------------------- agreement


def agreement_block(c: Comparison) -> Iterator[RenderableType]:
    """How far the methods agree; nothing for one method, or where no two can be compared.

    Said where at least two methods can be compared.
    """
    agreement = c.agreement()
    if not agreement.pairs:
        return
    yield Text("agreement", BOLD)
    yield _means(agreement)
    yield Text(f"{wording.ends(agreement)} {wording.about_agreement(agreement)}", DIM)
    if not agreement.conflicts:
        return
    yield Text()
    yield Text("units on which methods conflict", BOLD)
    yield Text("in brackets, the share of the method's largest score on this text", DIM)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, max_width=24)
    grid.add_column(overflow="fold")
    said = sides_of(agreement.explained)
    for conflict in agreement.conflicts[:MOST_CONFLICTS]:
        camps = _camps(conflict, said)
        grid.add_row(Text(wording.visible(conflict.name)), camps)
    yield grid


def _means(agreement: Agreement) -> RenderableType:
    """Two methods side by side, the one that agrees most with the others first.

    Said above the mean agreement of each method with the others. ``mean with the others``
    """
    correlation, overlap = agreement.mean_correlation(), agreement.mean_overlap()

    def place(method: str) -> float:
        if math.isfinite(correlation[method]):
            return -correlation[method]
        return 2.0

    def cells(method: str) -> list[Text]:
        mean = wording.correlation(correlation[method])
        top = [Text(wording.share(overlap[method]))] if wording.has_top(agreement) else []
        return [Text(method), Text(mean), *top]

    ordered = sorted(agreement.methods, key=place)
    half = (len(ordered) + 1) // 2
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style=DIM)
    _columns(table, "mean with the others", agreement)
    table.add_column(width=2)
    if len(ordered) > 1:
        _columns(table, "", agreement)
    for i in range(half):
        right = cells(ordered[half + i]) if half + i < len(ordered) else []
        table.add_row(*cells(ordered[i]), Text(), *right)
    return table


def _columns(table: Table, title: str, agreement: Agreement) -> None:
    table.add_column(Text(title), no_wrap=True)
    table.add_column(Text("corr."), justify="right", no_wrap=True)
    if wording.has_top(agreement):
        table.add_column(Text(f"top {agreement.k}"), justify="right", no_wrap=True)


def _camps(conflict: Conflict, said: Sides) -> Text:
    """Who says the one thing of a unit, and who the other."""
    line = Text()
    for word, told in wording.camps(conflict, said):
        line.append(f"; {word}: " if line else f"{word}: ", DIM)
        line.append(told)
    return line


def _table(*heads: str) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False, header_style=BOLD
    )
    for head in heads:
        table.add_column(Text(head), no_wrap=True, overflow="ellipsis")
    return table
