"""The planted truth in words and as a table: which methods find a mechanism that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.answer import CONTROL
from whence.core.evidence import Verdict
from whence.core.percent import digits
from whence.core.planted import MECHANISMS, Finding, Planted, PlantedTruth
from whence.views import wording
from whence.views.latex import Cells, tabular
from whence.views.records import markdown_table
from whence.views.terminal import to_text
from whence.views.verdicts import MARKS

BOLD, DIM, GREEN = Style(bold=True), Style(dim=True), Style(color="green")
NONE = "–"
CHANCE = "chance, exactly"
NARROWEST = 12  # cells of the column of methods
GAP = 1
HALF = 0.5
FEWEST_TEXTS = 4  # all of them must be found for an interval that lies above a half
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}


# ---------------------------------------------------------------------- in words


def planted_sentences(truth: PlantedTruth) -> list[str]:
    """What the table says, the answer first."""
    lines = [_who_finds_all(truth), *_who_is_fooled(truth), *_who_is_lost(truth)]
    lines.append(_control(truth))
    lines += _left_out(truth)
    return [wording.visible(line) for line in lines]


def explaining(truth: PlantedTruth) -> list[str]:
    """How methods are named in sentences: all but the control."""
    return [method for method in truth.methods if method != CONTROL]


def _who_finds_all(truth: PlantedTruth) -> str:
    """The answer: which methods find every mechanism, or which find most of those they tried.

    Said first of a planted truth.
    """
    methods = explaining(truth)
    if not methods:
        return "Only the random control was tried."
    fewest = min(mechanism.texts for mechanism in truth.mechanisms)
    if fewest < FEWEST_TEXTS:
        few = [one.name for one in truth.mechanisms if one.texts == fewest]
        of = "each mechanism" if len(few) == len(truth.mechanisms) else " and ".join(few)
        if len(few) > 2 and len(few) < len(truth.mechanisms):
            of = f"each of {', '.join(few)}"
        return (
            f"{wording.counted(fewest, 'text')} of {of} cannot show what a "
            f"method finds in most: take at least {FEWEST_TEXTS}, better 30."
        )
    if len(methods) == 1:
        return _of_one(truth, methods[0])
    every = [method for method in truth.finding_all() if method != CONTROL]
    what = _all_mechanisms(truth)
    if every:
        find = "find" if len(every) > 1 else "finds"
        return f"{len(every)} of {len(methods)} methods {find} {what}: {', '.join(every)}."
    counts = {method: _finds(truth, method) for method in methods}
    most = max(counts.values())
    if not most:
        return f"None of {len(methods)} methods surely finds any mechanism in most texts."
    best = [method for method in methods if counts[method] == most]
    who = f"{best[0]} finds" if len(best) == 1 else f"{wording.few(best, 6)} find"
    return (
        f"None of {len(methods)} methods finds {what}. The most that one finds is {most} of "
        f"{len(truth.mechanisms)}: {who} {_which(truth, best, most)}."
    )


def _finds(truth: PlantedTruth, method: str) -> int:
    return sum(finding.finds for finding in truth.of(method).values())


def _which(truth: PlantedTruth, methods: Sequence[str], count: int) -> str:
    """What the methods that find most find, where they find the same; else only how many.

    Said where no method finds all: what those find that find most.
    """
    found = []
    for method in methods:
        of = truth.of(method)
        found.append([m.name for m in truth.mechanisms if m.name in of and of[m.name].finds])
    if all(names == found[0] for names in found):
        return wording.few(found[0], 6)
    return "one each" if count == 1 else "as many each"


def _all_mechanisms(truth: PlantedTruth) -> str:
    return _every([mechanism.name for mechanism in truth.mechanisms])


def _every(names: Sequence[str]) -> str:
    count = len(names)
    if count == 1:
        return f"the mechanism {names[0]}"
    number = NUMBERS.get(count, str(count))
    return f"all {number} mechanisms" if count > 2 else "both mechanisms"


def _of_one(truth: PlantedTruth, method: str) -> str:
    """Said of one method: which of the mechanisms that it was tried on it finds."""
    tried = truth.of(method)
    untried = [one.name for one in truth.mechanisms if one.name not in tried]
    missed = [finding.mechanism for finding in tried.values() if not finding.finds]
    not_tried = f" It was not tried on {', '.join(untried)}." if untried else ""
    if not missed:
        what = ", ".join(tried) if untried else _every(list(tried))
        return f"{method} finds {what}.{not_tried}"
    if len(missed) == len(tried):
        return f"{method} does not surely find {_any(missed)} in most texts.{not_tried}"
    found = len(tried) - len(missed)
    return f"{method} finds {found} of {len(tried)} mechanisms; not {', '.join(missed)}.{not_tried}"


def _any(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the mechanism {names[0]}"
    return f"{'either' if len(names) == 2 else 'any'} of {', '.join(names)}"


def _who_is_fooled(truth: PlantedTruth) -> Iterator[str]:
    """The methods that put a word first which the output ignores, in most texts.

    Said of a mechanism in which some method ranks a decoy first in more than half of the texts.
    """
    for mechanism in truth.mechanisms:
        fooled = []
        for method in explaining(truth):
            finding = truth.of(method).get(mechanism.name)
            if finding is not None and finding.fooled > HALF * finding.texts:
                fooled.append(finding)
        if not fooled:
            continue
        worst = max(fooled, key=lambda finding: finding.fooled)
        others = [finding.method for finding in fooled if finding is not worst]
        sentence = (
            f"On {mechanism.name}, {worst.method} ranks a decoy first, which the output ignores, "
            f"in {count_of(worst.fooled)} of {wording.counted(worst.texts, 'text')}"
        )
        if others:
            do = "does" if len(others) == 1 else "do"
            sentence += f"; so {do}, in most texts, {wording.few(others, 6)}"
        yield f"{sentence}."


def _who_is_lost(truth: PlantedTruth) -> Iterator[str]:
    """The methods that nothing separates from chance."""
    lost = []
    for method in explaining(truth):
        found = truth.of(method).values()
        if all(finding.verdict is Verdict.SAME for finding in found):
            lost.append(method)
    if lost:
        names = [mechanism.name for mechanism in truth.mechanisms]
        on = "any mechanism" if len(names) > 1 else names[0]
        yield f"{Verdict.SAME.capitalize()} on {on}: {', '.join(lost)}."


def _control(truth: PlantedTruth) -> str:
    """What random rankings find, on the mechanisms on which the control was tried.

    Said of random rankings: what the control found where it was tried, and what chance gives.
    """
    control = truth.of(CONTROL)
    mechanisms = [one for one in truth.mechanisms if not control or one.name in control]
    chance = sum(mechanism.chance for mechanism in mechanisms)
    texts = wording.counted(sum(mechanism.texts for mechanism in mechanisms), "text")
    if not control:
        on_average = count_by_chance(chance)
        return f"A random ranking finds the planted words in {on_average} of {texts}, on average."
    found = count_of(sum(finding.found for finding in control.values()))
    return (
        f"The random control finds the planted words in {found} of {texts}; "
        f"chance gives {count_by_chance(chance)} on average."
    )


def _left_out(truth: PlantedTruth) -> Iterator[str]:
    """Methods that cannot run on these models; those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for method, reason in truth.skipped.items():
        by_reason.setdefault(reason.rstrip("."), []).append(method)
    for reason, methods in by_reason.items():
        yield f"Left out: {', '.join(methods)} ({reason})."


def how_to_read(truth: PlantedTruth) -> list[str]:
    """What the numbers of the table are.

    Said below the table; of the correction where more than one test was made.
    """
    tests = sum(finding.method != CONTROL for finding in truth.findings)
    texts = sorted({mechanism.texts for mechanism in truth.mechanisms})
    of = str(texts[0]) if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"
    together = "" if tests == 1 else f", after Holm's correction for {tests} tests"
    judged = f" {MARKS[Verdict.SAME]} {Verdict.SAME}{together}."
    what = "text" if texts == [1] else "texts"
    return [
        f"Of {of} {what}, those in which all planted words are ranked first (tied scores count by "
        "the share of tie-breaks), and Wilson's 95 % interval in percent.",
        "A method finds a mechanism if the whole interval lies above 50 %, and it is better than "
        "random." + (judged if tests else ""),
        "Of chance: how many texts a random ranking gets on average, and between which percents "
        "it is in 95 of 100 cases.",
    ]


# ---------------------------------------------------------------------- cells


def count_of(found: float) -> str:
    """A number of texts, which is no whole one where scores are tied.

    >>> count_of(30.0), count_of(2.5), count_of(29.96)
    ('30', '2.5', '29.96')
    """
    if abs(found - round(found)) < 1e-9:
        return f"{found:.0f}"
    # one that is no whole number is not rounded to one
    shown = [f"{found:.{decimals}f}" for decimals in range(1, 5)]
    return next((number for number in shown if float(number) % 1), shown[-1])


def count_by_chance(mean: float) -> str:
    """A mean number of texts; what is not zero is not rounded to it.

    >>> count_by_chance(2.0), count_by_chance(0.004)
    ('2.0', '0.004')
    """
    return f"{mean:.1f}" if mean >= 0.05 or not mean else f"{mean:.1g}"


def interval_of(ends: Sequence[float]) -> str:
    """An interval of shares, in percent.

    >>> interval_of((0.886, 1.0))
    '89–100'
    """
    low, high = (digits(end) for end in ends)
    return f"{low}–{high}"


def cell_of(finding: Finding | None) -> str:
    """What one method found of one mechanism."""
    if finding is None:
        return NONE
    mark = "" if finding.verdict is Verdict.BETTER else MARKS[finding.verdict]
    return f"{mark}{count_of(finding.found)} {interval_of(finding.interval)}"


def chance_of(mechanism: Planted) -> str:
    """What a random ranking gets, and what holds 95 % of it."""
    low, high = (end / mechanism.texts for end in mechanism.chance_range)
    return f"{count_by_chance(mechanism.chance)} {interval_of((low, high))}"


def rows_of(truth: PlantedTruth) -> list[list[str]]:
    """A row for each method, the best first, the control and chance at the end."""
    rows = []
    for method in truth.methods:
        found = truth.of(method)
        cells = [cell_of(found.get(mechanism.name)) for mechanism in truth.mechanisms]
        rows.append([name_of(method), *cells])
    rows.append([CHANCE, *(chance_of(mechanism) for mechanism in truth.mechanisms)])
    return rows


def name_of(method: str) -> str:
    """The control says that it is one."""
    return f"{method} (control)" if method == CONTROL else method


def heading_of(truth: PlantedTruth) -> list[str]:
    """The names of the columns."""
    return ["method", *(mechanism.name for mechanism in truth.mechanisms)]


# ---------------------------------------------------------------------- terminal and paper


def planted_text(truth: PlantedTruth) -> str:
    """What ``print(truth)`` shows: plain when the output is no terminal."""
    return to_text(lambda console: planted_view(truth, console))


def planted_view(truth: PlantedTruth, console: Console, answered: bool = False) -> RenderableType:
    """The answer, unless it stands elsewhere, the table, and what its numbers are.

    Said in a terminal whose answer stands elsewhere: ``Where the truth is known``.
    """
    first, *rest = planted_sentences(truth)
    head = Text("Where the truth is known" if answered else first, BOLD)
    parts: list[RenderableType] = [head, *(Text(line) for line in rest)]
    parts += [Text(), _table(truth, console.width), Text()]
    parts += [Text(line, DIM) for line in how_to_read(truth)]
    return Group(*parts)


def _table(truth: PlantedTruth, room: int) -> Table:
    rows = rows_of(truth)
    heading = heading_of(truth)
    table = Table(box=None, header_style=BOLD, pad_edge=False, padding=(0, GAP, 0, 0))
    used = 0
    for place, name in enumerate(heading[1:], 1):
        used += GAP + max(len(name), *(len(row[place]) for row in rows))
    widest = max(max(len(row[0]) for row in rows), NARROWEST)
    width = min(widest, max(NARROWEST, room - used))
    table.add_column(heading[0], no_wrap=True, overflow="ellipsis", width=width)
    for name in heading[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for method, row in zip((*truth.methods, CHANCE), rows, strict=True):
        found = truth.of(method)
        cells = [Text(wording.visible(row[0]))]
        for mechanism, cell in zip(truth.mechanisms, row[1:], strict=True):
            cells.append(Text(cell, _tint(found.get(mechanism.name))))
        table.add_row(*cells)
    return table


def _tint(finding: Finding | None) -> Style:
    if finding is None or finding.verdict is not Verdict.BETTER:
        return DIM
    return GREEN if finding.finds else Style()


def _cells(truth: PlantedTruth) -> Cells:
    return Cells(heading_of(truth), "l" + "r" * len(truth.mechanisms), rows_of(truth))


def planted_latex(truth: PlantedTruth) -> str:
    """A table with the rules of booktabs; comments say how it was made."""
    made = [f"whence planted: seed {truth.seed}", *how_to_read(truth)]
    made += [f"{name}: {about}" for name, about in _about(truth)]
    made += [f"{method}: {wording.settings(given)}" for method, given in truth.settings.items()]
    comments = [f"% {wording.visible(line)}" for line in made]
    return "\n".join([*comments, tabular(*_cells(truth)), ""])


def planted_markdown(truth: PlantedTruth) -> str:
    """The same table in Markdown."""
    cells = _cells(truth)
    return markdown_table(cells.heading, cells.rows)


def _about(truth: PlantedTruth) -> list[tuple[str, str]]:
    order = {name: place for place, name in enumerate(MECHANISMS)}
    known = sorted(truth.mechanisms, key=lambda one: order.get(one.name, len(order)))
    return [(f"{one.name} ({one.model}, weights {one.fingerprint})", one.about) for one in known]
