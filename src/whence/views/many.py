"""Many texts: an index with a row for each text, and counts for each method beside chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.answer import CONTROL
from whence.core.evidence import Verdict
from whence.core.many import Many, Row, Tally
from whence.views import verdicts, wording
from whence.views.answering import in_short
from whence.views.answering_of_many import asked_of_many, many_sentences
from whence.views.document import title_of
from whence.views.terminal import to_text

BOLD = Style(bold=True)
DIM = Style(dim=True)
NONE = "–"
BETWEEN_TEXTS = "\n\n" + "─" * 72 + "\n\n"
MOST_FAILURES = 10  # in a terminal
NARROWEST = 12  # cells of a column that gives way to the others


def many_text(many: Many, full: bool = False) -> str:
    """What ``print(many)`` shows: plain when the output is no terminal."""
    shown = [to_text(lambda console: many_view(many, console))]
    if full:
        shown += [result.to_text() for result in many]
    return BETWEEN_TEXTS.join(shown)


def many_view(many: Many, console: Console) -> RenderableType:
    """The answer over all texts, the index, and the counts for each method."""
    if not many.results:
        return Group(Text("no texts"), *(Text(line) for line in left_out(many)))
    said = many_sentences(many.answer)
    parts: list[RenderableType] = [Text(" ".join(said[:2]), BOLD)]
    parts += [Text(sentence) for sentence in said[2:]]
    parts += [Text(line, DIM) for line in asked_of_many(many.answer)]
    parts += [Text(), _index(many, console.width), Text()]
    parts += _counts(many)
    missing = left_out(many)
    if missing:
        parts += [Text(), Text(missing[0], BOLD), *(Text(line) for line in missing[1:])]
    return Group(*parts)


def left_out(many: Many, most: int | None = MOST_FAILURES) -> list[str]:
    """What is not in here: how many texts, then each that failed with its reason.

    Said where texts failed, or were never reached.
    """
    missing = []
    if many.failures:
        missing.append(f"{wording.counted(len(many.failures), 'text')} could not be explained.")
    if many.unreached:
        unreached = wording.counted(many.unreached, "text")
        missing.append(f"The run was ended before {unreached}: this is a part of it.")
    if not missing:
        return []
    shown = many.failures[:most]
    lines = [" ".join(missing)]
    lines += [wording.visible(f"{failure.where}: {failure.reason}") for failure in shown]
    if len(shown) < len(many.failures):
        lines.append(f"… and {len(many.failures) - len(shown):,} more; --html and --save have all")
    return lines


def prediction(row: Row) -> str:
    """``positive 98 %``; a dash where the model gives no probabilities.

    Where several labels may hold and none does, the highest stands in brackets.

    >>> prediction(Row("not bad", None, "positive", 0.981, 1, 0, 0, 0))
    'positive 98 %'
    """
    if row.label is None or row.probability is None:
        return NONE
    if row.holding == ():
        return f"none ({wording.label(row.label)} {wording.percent(row.probability)})"
    return f"{wording.label(row.label)} {wording.percent(row.probability)}"


def verdict_counts(row: Row) -> str:
    """How many methods got which verdict, with the marks of the verdicts.

    >>> verdict_counts(Row("not bad", None, None, None, 3, 1, 0, 0))
    '✓ 3  ~ 1  ✗ 0'
    """
    if not row.better + row.same + row.worse:
        return NONE
    counts = {Verdict.BETTER: row.better, Verdict.SAME: row.same, Verdict.WORSE: row.worse}
    return "  ".join(f"{verdicts.MARKS[verdict]} {count}" for verdict, count in counts.items())


def chance(tally: Tally) -> str:
    """What chance gives: ``1 (0 to 3)``; a dash where nothing was judged."""
    if not tally.judged:
        return NONE
    low, high = tally.chance_range
    return f"{wording.few_digits(tally.by_chance)} ({low:,} to {high:,})"


def beaten(tally: Tally) -> str:
    """The mean share of random rankings beaten, with its interval over texts."""
    if tally.beaten is None:
        return NONE
    mean = wording.percent(tally.beaten)
    if tally.interval is None:
        return mean
    return f"{mean} ({wording.between(tally.interval)})"


def _index(many: Many, width: int) -> Table:
    """Said in place of a text that has no words. ``an input without words``"""
    table = _table(width, "", "text", "prediction", "verdicts", "in short")
    for number, (row, result) in enumerate(zip(many.rows(), many, strict=True), 1):
        table.add_row(
            str(number),
            title_of(row.text, "an input without words"),
            prediction(row),
            verdict_counts(row),
            in_short(result.answer),
        )
    return table


def _counts(many: Many) -> Iterator[RenderableType]:
    """Said in place of the counts where no method has a verdict."""
    tallies = many.tallies()
    if not any(tally.judged for tally in tallies):
        yield Text("no verdicts: the rankings were not held against random ones", DIM)
        return
    better, same, worse = (verdicts.MARKS[verdict] for verdict in verdicts.BEST_FIRST)
    table = _table(None, "method", better, same, worse, f"{better} by chance", "p", "beats")
    table.columns[0].min_width = max(len(tally.method) for tally in tallies)
    for tally in strongest_first(tallies):
        p = NONE if tally.p is None else verdicts.short_p(tally.p)
        table.add_row(
            tally.method,
            f"{tally.better} of {tally.judged}",
            str(tally.same),
            str(tally.worse),
            chance(tally),
            p,
            beaten(tally),
        )
    yield table
    for line in notes(tallies, many.repeated):
        yield Text(line, DIM)


def strongest_first(tallies: Sequence[Tally]) -> list[Tally]:
    """The method that is better on most texts first."""
    return sorted(tallies, key=lambda tally: (-tally.better, -(tally.beaten or 0.0)))


def notes(tallies: Sequence[Tally], repeated: int) -> list[str]:
    """What the columns mean, and what is not counted.

    Said below the counts; of several methods where several have verdicts, of texts that repeat
    where some do.
    """
    better, same, worse = (verdicts.MARKS[verdict] for verdict in verdicts.BEST_FIRST)
    lines = [
        f"{better} {Verdict.BETTER}, {same} {Verdict.SAME}, {worse} {Verdict.WORSE}.",
        f"{better} by chance: on how many texts a random ranking would get a {better}, at most, on "
        "average; in brackets stands what holds 95 % of it.",
        f"p: the chance that a random ranking gets a {better} on at least as many texts.",
        "beats: the mean share of random rankings beaten (50 % is chance), with its 95 % interval "
        "over texts.",
    ]
    methods = [tally for tally in tallies if tally.method != CONTROL and tally.judged]
    if len(methods) > 1:
        lines.append(
            f"Each p is of its method alone. Of {len(methods)} methods, one may have a small p by "
            "chance."
        )
    if repeated:
        again = wording.counted(repeated, "text")
        lines.append(f"{again} that stood there before: not counted again.")
    return lines


def _table(width: int | None, *heads: str) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style=BOLD
    )
    table.width = width
    for head in heads:
        gives_way = head in ("text", "in short")
        table.add_column(
            Text(head),
            no_wrap=head != "in short",  # what may be said is not cut off
            overflow="ellipsis",
            ratio=1 if gives_way and width else None,
            min_width=NARROWEST if gives_way else None,
        )
    return table
