"""What is said of a table of methods × metrics is read back, and held against the table."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from tests.occasions import evaluation as occasion
from tests.views.reading_back import (
    COUNT,
    is_number,
    is_percent,
    listed,
    plain,
    read,
    shown,
    whole,
)
from whence.core.evaluation import Cell, Column, Evaluation
from whence.views.evaluation import (
    HOW_TO_READ,
    _value,
    count_sentences,
    counts_of,
    evaluation_latex,
    evaluation_sentences,
    evaluation_text,
    failure_lines,
    idle_sentences,
    number,
)

BETTER, WORSE = "better than random", "worse than random"


# ---------------------------------------------------------------------- the table, counted anew


def means(column: Column) -> list[float]:
    every = [column.random.mean]
    for cell in column.cells:
        every.append(cell.mean)
        every += [] if cell.control is None else [cell.control]
    return every


def is_idle(column: Column) -> bool:
    if not column.cells or not column.random.texts:
        return False
    values = means(column)
    return max(values) - min(values) <= 1e-9 * max(1.0, *(abs(value) for value in values))


def telling(table: Evaluation) -> list[Column]:
    """The columns of faithfulness that tell anything."""
    return [c for c in table.columns if c.kind == "faithfulness" and not is_idle(c)]


def verdicts(table: Evaluation, method: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for column in telling(table):
        for cell in column.cells:
            if cell.method == method and cell.verdict is not None:
                counted[str(cell.verdict)] += 1
    return counted


def judged(table: Evaluation) -> dict[str, Counter[str]]:
    """By what the names look like: the methods with a verdict, but for the control."""
    every = {m: verdicts(table, m) for m in table.methods if m != "random"}
    return {shown(m): counted for m, counted in every.items() if counted}


def unjudged(table: Evaluation) -> set[str]:
    return {shown(m) for m in table.methods if m != "random"} - set(judged(table))


def winners(column: Column) -> set[str]:
    """All methods with the best mean, but for rounding."""
    own = [cell for cell in column.cells if cell.method != "random" and cell.texts]
    if not own:
        return set()
    best = (max if column.better == "higher" else min)(cell.mean for cell in own)
    near = 1e-9 * max(1.0, abs(best))
    return {shown(cell.method) for cell in own if abs(cell.mean - best) <= near}


def disagreeing(table: Evaluation) -> dict[str, list[Column]]:
    """The metrics under several removals that no method wins under all of them."""
    by_label: dict[str, list[Column]] = {}
    for column in table.columns:
        if column.removal and not is_idle(column) and winners(column):
            by_label.setdefault(column.label, []).append(column)
    return {
        label: columns
        for label, columns in by_label.items()
        if not set.intersection(*map(winners, columns))
    }


def is_clear(columns: list[Column]) -> bool:
    """Whether every winner lies outside the best group under some other removal."""

    def may_be_best(name: str, column: Column) -> bool:
        groups = [cell.group for cell in column.cells if shown(cell.method) == name]
        return not groups or not groups[0] or "a" in groups[0]

    everybody = set.union(*map(winners, columns))
    return not any(all(may_be_best(name, column) for column in columns) for name in everybody)


# ---------------------------------------------------------------------- the sentences


def check_sentences(table: Evaluation) -> list[str]:
    wins = {name: c[BETTER] for name, c in judged(table).items() if c[BETTER]}
    columns = telling(table)
    only = re.escape(shown(columns[0].name)) if columns else "nothing"

    def what_was_done(methods, metrics, texts, more, failed, model, removals):
        of_table = dict.fromkeys(c.removal for c in table.columns if c.removal)
        return (
            whole(methods) == len(table.methods)
            and whole(metrics) == len({c.metric for c in table.columns})
            and whole(texts) == table.texts
            and whole(failed or "0") == table.failed
            and bool(more) == bool(table.failed)
            and model == shown(table.model)
            and listed(removals or "") == list(of_table)
        )

    def nothing(model, failed):
        return table.texts == 0 and whole(failed or "0") == table.failed

    def planted(_):
        return table.planted is not None

    def only_the_control():
        return set(table.methods) == {"random"}

    def no_verdict_at_all():
        return not judged(table) and unjudged(table) != set()

    def no_verdict_on(names):
        return set(listed(names)) == unjudged(table) and judged(table) != {}

    def none_says_so(names):
        return set(listed(names)) == set(judged(table)) - set(wins) and wins != {}

    def nobody(could, by):
        return (
            not wins
            and len(judged(table)) > 1
            and bool(could) == bool(unjudged(table))
            and (by == "any measure of faithfulness") == (len(columns) > 1)
        )

    def not_better(name, by):
        return (
            not wins
            and list(judged(table)) == [name]
            and (by == "any measure of faithfulness") == (len(columns) > 1)
        )

    def by_the_only_one(control, names):
        told, more = with_more(names)
        return (
            len(columns) == 1
            and set(told) <= set(wins)
            and len(told) + more == len(wins)
            and (control == "its control") == (len(wins) == 1)
        )

    def by_measures(count, under, said):
        *named, last = listed(said)
        if rest := re.fullmatch(r"([\d,]+) more methods? (\d+)(?: to (\d+))?", last):
            others = [
                won for name, won in wins.items() if name not in {n.split()[0] for n in named}
            ]
            low, high = int(rest[2]), int(rest[3] or rest[2])
            assert (len(others), min(others), max(others)) == (whole(rest[1]), low, high)
        else:
            named.append(last)
        told = [re.fullmatch(r"(.+?) (\d+)(?: of (\d+))?", one) for one in named]
        for one in told:
            assert one is not None
            counted = judged(table)[one[1]]
            assert counted[BETTER] == int(one[2]) > 0
            assert sum(counted.values()) == int(one[3] or len(columns))
        shares = [wins[one[1]] / sum(judged(table)[one[1]].values()) for one in told if one]
        assert shares == sorted(shares, reverse=True)
        assert rest or len(told) == len(wins)
        has_removals = any(column.removal for column in columns)
        return whole(count) == len(columns) > 1 and bool(under) == has_removals

    def attention(won, of, worse):
        counted = verdicts(table, "attention-mean")
        return (int(won), int(of), int(worse or 0)) == (
            counted[BETTER],
            sum(counted.values()),
            counted[WORSE],
        )

    def disagreement(label, said):
        of_label = disagreeing(table)[label]
        told = {one.rpartition(" under ")[2]: one.rpartition(" under ")[0] for one in said}
        return is_clear(of_label) and {by: set(listed(n)) for by, n in told.items()} == {
            column.removal: winners(column) for column in of_label
        }

    def disagreements(label, said):
        return disagreement(label, said.split("; "))

    def unclear(labels):
        return set(listed(labels)) == {
            label for label, of in disagreeing(table).items() if not is_clear(of)
        }

    said = evaluation_sentences(table)
    names = read(
        said,
        [
            (
                rf"({COUNT}) methods? by ({COUNT}) metrics? on ({COUNT}) texts?"
                rf"( \(({COUNT}) more failed\))?, with the model (.+?)"
                r"(?:; words are removed by (.+))?\.",
                what_was_done,
            ),
            (rf"Nothing is measured of (.+) yet(?:, and ({COUNT}) texts? failed)?\.", nothing),
            (r"Where the truth is known: (.+)", planted),
            (r"Only the random control was tried\.", only_the_control),
            (
                r"Too few texts were measured for a verdict on any method\.",
                no_verdict_at_all,
            ),
            (
                r"Too few texts were measured for a verdict on (?!any method)(.+)\.",
                no_verdict_on,
            ),
            (r"None says so of (.+)\.", none_says_so),
            (
                r"No method( that could be judged)? is better than its control by "
                rf"(any measure of faithfulness|{only}, the only measure of faithfulness)\.",
                nobody,
            ),
            (
                r"(.+) is not better than its control by "
                rf"(any measure of faithfulness|{only}, the only measure of faithfulness)\.",
                not_better,
            ),
            (
                rf"Better than (its control|their controls) by {only}, the only measure of "
                r"faithfulness: (.+)\.",
                by_the_only_one,
            ),
            (
                rf"Of ({COUNT}) measures of faithfulness( \(each metric under each removal\))?, so "
                r"many say that a method is better than its control: (.+)\.",
                by_measures,
            ),
            (
                r"Attention alone \(attention-mean\) is better than its control by (\d+) of (\d+)"
                r"(?:, worse by (\d+))?\.",
                attention,
            ),
            (r"The removals disagree on the winner by (.+?): (.+)\.", disagreements),
            (
                r"Which method comes first depends on the removal by (.+), but these texts do not "
                r"tell the winners apart\.",
                unclear,
            ),
        ],
    )
    # nothing that must be said is left out
    assert names.count("disagreements") == sum(map(is_clear, disagreeing(table).values()))
    assert ("unclear" in names) == (not all(map(is_clear, disagreeing(table).values())))
    assert ("attention" in names) == bool(verdicts(table, "attention-mean"))
    assert bool(columns) == bool({"nobody", "not_better", "by_the_only_one", "by_measures",
        "no_verdict_at_all", "only_the_control"} & set(names))  # fmt: skip
    assert ("none_says_so" in names) == (bool(wins) and len(wins) < len(judged(table)))
    return names


def with_more(said: str) -> tuple[list[str], int]:
    *named, last = listed(said)
    more = re.fullmatch(r"(\d+) more", last)
    return (named, int(more[1])) if more else ([*named, last], 0)


def check_counts(table: Evaluation) -> None:
    """How many texts it is of, wherever that is not the number of the table."""
    most_gold = max(
        (cell.texts for c in table.columns if c.kind == "gold" for cell in c.cells), default=0
    )
    columns = [c for c in table.columns if not is_idle(c)]

    def of_marks(some, every, have, rests):
        return (
            whole(some) == most_gold != table.texts == whole(every)
            and (have == "has") == (most_gold == 1)
            and (rests == "it") == (most_gold == 1)
        )

    def of_fewer(said):
        few: dict[str, list[int]] = {}
        for column in columns:
            most = max((cell.texts for cell in column.cells), default=0)
            for cell in column.cells:
                if cell.texts < most:
                    few.setdefault(shown(cell.method), []).append(cell.texts)
        told = set()
        for one in listed(said):
            name, low, high, by = re.fullmatch(
                rf"(.+) on ({COUNT})(?: to ({COUNT}))?(?: by ({COUNT}) measures?)?", one
            ).groups()
            assert whole(low) == min(few[name])
            assert whole(high or low) == max(few[name])
            assert len(few[name]) == (whole(by) if by else len(columns))
            told.add(name)
        return told == set(few)

    told = read(
        count_sentences(table),
        [
            (
                rf"({COUNT}) of ({COUNT}) texts (has|have) some words marked and others not: what "
                r"is compared with people's marks \(gold\) rests on (it|these) alone\.",
                of_marks,
            ),
            (r"Measured on fewer texts than others: (.+)\.", of_fewer),
        ],
    )
    assert ("of_marks" in told) == (0 < most_gold != table.texts)

    for column in table.columns:
        counts = [cell.texts for cell in column.cells]
        said = counts_of(column, table)
        if not said:
            assert not counts or set(counts) == {table.texts}
            continue
        low, high = re.fullmatch(rf"n = ({COUNT})(?: to ({COUNT}))?", said).groups()
        assert (whole(low), whole(high or low)) == (min(counts), max(counts))


def check_idle(table: Evaluation) -> None:
    said = idle_sentences(table.columns)
    idle = [column for column in table.columns if is_idle(column)]
    assert len(said) == bool(idle)
    for line in said:
        names = re.fullmatch(r"The same for every method and for random rankings: (.+)\.", line)
        assert names is not None
        told = dict(one.rpartition(" ")[::2] for one in listed(names[1]))
        assert set(told) == {column.name for column in idle}
        for column in idle:
            assert near(told[column.name], column.random.mean)


def check_failures(table: Evaluation) -> None:
    lines = failure_lines(table)
    if not table.failures:
        assert not lines
        return
    head = re.fullmatch(rf"({COUNT}) of ({COUNT}) texts? failed:", lines[0])
    assert head is not None
    assert whole(head[1]) == table.failed
    assert whole(head[2]) == table.failed + table.texts
    rows = [line for line in lines[1:] if line.startswith("  row ")]
    for line, failure in zip(rows, table.failures, strict=False):
        assert line == f"  {failure.where}: {shown(failure.reason)}"
    left, hidden = table.failed - len(rows), len(table.failures) - len(rows)
    rest = lines[1 + len(rows) :]
    assert len(rest) == bool(left)
    for line in rest:
        told = re.fullmatch(
            rf"  … and ({COUNT}) more"
            rf"(: table\.failures|; table\.failures names ({COUNT}) of them)?",
            line,
        )
        assert told is not None
        assert whole(told[1]) == left
        names_them = left if told[2] == ": table.failures" else whole(told[3] or "0")
        assert names_them == hidden


# ---------------------------------------------------------------------- the cells


def check_values(table: Evaluation) -> None:
    """Cells of a terminal: the mean, and half the interval or both its ends."""
    for column in table.columns:
        for cell in (*column.cells, column.random):
            said = _value(cell)
            if not cell.texts:
                assert said == "–"
                continue
            mean, _, rest = said.partition(" ")
            assert near(mean, cell.mean)
            assert bool(rest) == (cell.interval is not None)
            if not rest:
                continue
            low, high = cell.interval
            below, above = cell.mean - low, high - cell.mean
            if rest.startswith("±"):
                assert near(rest.removeprefix("±"), (high - low) / 2)
                assert max(below, above) <= 1.5 * min(below, above) + 1e-9
            else:
                ends = re.fullmatch(r"\[(\S+), (\S+)\]", rest)
                assert near(ends[1], low)
                assert near(ends[2], high)


def check_page(table: Evaluation, page: str) -> None:
    """Every cell of the page: its number, interval, mark, letters and counts."""
    grids = re.findall(r'<div class="scroll"[^>]*aria-label="table"[^>]*>(.*?)</table>', page, re.S)
    by_name: dict[tuple[str, str], list[str]] = {}
    for grid in grids:
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", grid, re.S)
        for row in rows[1:]:
            name = plain(re.search(r"<th[^>]*>(.*?)</th>", row, re.S)[1])
            for cell in re.findall(r"<td[^>]*>.*?</td>", row, re.S):
                title = re.search(r'title="([^"]*)"', cell)
                if title:
                    column = (
                        plain(title[1]).rpartition(": ")[0].rpartition(": ")[0]
                        or plain(title[1]).rpartition(": ")[0]
                    )
                    by_name.setdefault((column, name), []).append(cell)
    for column in table.columns:
        if is_idle(column):
            continue
        for cell in (*column.cells, column.random):
            if cell.texts:
                name = shown(cell.method) or "random rankings"
                cells = by_name.get((shown(column.name), name))
                assert cells, (column.name, name)
                assert any(is_cell(column, cell, one) for one in cells), cells


MARKS = {"+": BETTER, "−": WORSE, "": "not separable from random"}


def is_cell(column: Column, cell: Cell, drawn: str) -> bool:
    title = plain(re.search(r'title="([^"]*)"', drawn)[1]).removeprefix(f"{shown(column.name)}: ")
    told = re.fullmatch(
        rf"({COUNT}) texts?(?:; its control (\S+))?(?:; it beats (.+)% of random ones)?", title
    )
    mean = re.search(r"<b>(.*?)</b>", drawn)[1]
    sup = plain(re.search(r"<sup>(.*?)</sup>", drawn)[1])
    mark, built_in, letters = re.fullmatch(r"([+−]?)(°?)\s*(\w*)", sup).groups()
    between = re.search(r'class="between">(\S+) – (\S+)</span>', drawn)
    verdict = None if cell.verdict is None else str(cell.verdict)
    return (
        told is not None
        and whole(told[1]) == cell.texts
        and (told[2] is None) == (cell.control is None)
        and (cell.control is None or near(told[2], cell.control))
        and (told[3] is None) == (cell.beaten is None)
        and (cell.beaten is None or is_percent(f"{told[3]} %", cell.beaten))
        and near(mean, cell.mean)
        and MARKS[mark] in (verdict, MARKS[""] if verdict is None else verdict)
        and bool(built_in) == cell.built_in
        and letters == cell.group
        and (between is None) == (cell.interval is None)
        and (between is None or all(map(near, between.groups(), cell.interval)))
    )


def near(text: str, value: float) -> bool:
    """Three digits, of what was rounded to three decimals before."""
    return is_number(text, value) or is_number(text, round(value, 3))


# ---------------------------------------------------------------------- tests


def check(table: Evaluation) -> list[str]:
    names = check_sentences(table)
    check_counts(table)
    check_idle(table)
    check_failures(table)
    check_values(table)
    return names


def check_drawn(table: Evaluation) -> None:
    check_page(table, table.to_html())
    text = " ".join(evaluation_text(table, width=400).split())
    for sentence in (*evaluation_sentences(table), *count_sentences(table)):
        assert sentence in text
        assert sentence in plain(table.to_html())
        assert sentence in evaluation_latex(table)
    assert (HOW_TO_READ in text) == bool(table.columns)


def test_every_sentence_of_a_table_is_true_of_it():
    rng = np.random.default_rng(1)
    said: Counter[str] = Counter()
    for number_of_table in range(400):
        table = occasion.draw(rng)
        said.update(check(table))
        if number_of_table % 10 == 0:
            check_drawn(table)
    assert min(said.values()) > 1
    assert len(said) >= 13  # every kind of sentence was read


@pytest.mark.slow
def test_every_sentence_of_many_tables_is_true_of_them():
    rng = np.random.default_rng(2)
    for number_of_table in range(15_000):
        table = occasion.draw(rng)
        check(table)
        if number_of_table % 200 == 0:
            check_drawn(table)


@pytest.mark.parametrize("value", [0.0, 1e-5, 0.42134, 0.9999, 9.994, 9.996, 99.96, 99.94, 12345.6])
def test_a_number_of_a_table_is_right_in_each_of_its_digits(value: float):
    assert near(number(value), value)
    assert near(number(-value), -value)
