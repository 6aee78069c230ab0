"""Questions to a run that are ready: which words carry most, and which methods beat random ones."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from whence.core.evidence import CURVES, Verdict
from whence.core.many import TAIL, Tally, tally_of
from whence.runs.arrow import arrow
from whence.runs.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

MOST_WORDS = 10  # of each method and target
FEWEST_TEXTS = 2  # in which a word must stand: one text has no interval

# The part that a word has in its text: its scores over the sum of all sizes there, so that texts
# and methods of other scales count alike.
# Everything is summed in one order: else the last digits would be others each time.
SHARES = """
    with mass as (
        select row, method, target, sum(abs(score) order by position) as mass
        from scores
        group by all
    ), shares as (
        select row, method, target, lower(unit) as word,
               sum(score order by position) / any_value(mass) as share
        from scores join mass using (row, method, target)
        where mass > 0
        group by all
    )
"""
# A text that stands there twice is one text: twice the same number would look like certainty.
WORDS = f"""
    {SHARES}, copies as (
        select results.row, results.method, results.target,
               row_number() over (
                   partition by texts.text, texts.pair, results.method, results.target
                   order by results.row
               ) as copy
        from results join texts using (row)
    )
    select method, target, word, count(*) as texts, avg(share order by row) as share,
           stddev_samp(share order by row) as spread, sum(share order by row) as total
    from shares join copies using (row, method, target)
    where copy = 1
    group by all
    having count(*) >= {FEWEST_TEXTS}
    order by method, target, abs(total) desc, word
"""


def words_of(run: Run, most: int = MOST_WORDS) -> pa.Table:
    """The words that carry most over the data set, for each method and target.

    A word's share is its part of all scores of a text, with its sign. ``share`` is the mean over
    the texts that have the word, with a 95 % interval over them (Student's t), and ``total`` the
    sum, by which words are ranked. A word counts once for a text, however often it stands there,
    and a text once, however often it stands in the data.
    """
    records = []
    for every in carrying(run):
        records += every[:most]
    columns = ("method", "target", "word", "texts", "share", "low", "high", "total")
    return table_of(columns, records)


def carrying(run: Run) -> list[list[dict[str, Any]]]:
    """The same as records, of all words: a list for each method and target.

    They also say whether the mean is surely not zero (``is_sure``): zero lies outside the interval
    that pays for every word of the list.
    """
    from scipy.special import stdtrit

    by_key: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in run.query(WORDS).to_pylist():
        by_key[record["method"], record["target"]].append(record)

    for every in by_key.values():
        texts = np.array([record["texts"] for record in every])
        shares = np.array([record["share"] for record in every])
        errors = np.array([record["spread"] for record in every]) / np.sqrt(texts)
        half = stdtrit(texts - 1, 1 - TAIL) * errors
        widest = stdtrit(texts - 1, 1 - TAIL / len(every)) * errors
        for i, record in enumerate(every):
            low, high = float(shares[i] - half[i]), float(shares[i] + half[i])
            record |= {"low": low, "high": high, "is_sure": bool(abs(shares[i]) > widest[i])}
    return list(by_key.values())


def verdicts_of(run: Run) -> pa.Table:
    """How often each method is better than random, beside what chance gives.

    A text that stands there twice is counted once. ``judged`` are those that have a verdict: not
    those of one word.
    """
    records = []
    for tally in tallies_of(run):
        record = asdict(tally)
        chance_low, chance_high = record.pop("chance_range")
        low, high = record.pop("interval") or (None, None)
        more = {"judged": tally.judged, "chance_low": chance_low, "chance_high": chance_high}
        records.append(record | more | {"beaten_low": low, "beaten_high": high})
    columns = (
        *("method", "texts", "judged", "better", "same", "worse", "by_chance", "chance_low"),
        *("chance_high", "p", "beaten", "beaten_low", "beaten_high"),
    )
    return table_of(columns, records)


def tallies_of(run: Run) -> list[Tally]:
    """The same as tallies, one for each method that was held against random rankings."""
    judged = run.query(
        """
        select method, verdict, beaten from (
            select results.row, results.method, results.verdict, results.measure, results.beaten,
                   row_number() over (
                       partition by texts.text, texts.pair, results.method, results.target
                       order by results.row
                   ) as copy
            from results join texts using (row)
        ) where copy = 1 and measure = $curves order by method, row
        """.replace("$curves", f"'{CURVES}'")
    ).to_pylist()
    by_method: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in judged:
        by_method[record["method"]].append(record)

    tallies = []
    for method, every in by_method.items():
        counted = dict.fromkeys(Verdict, 0)
        for record in every:
            if record["verdict"]:
                counted[Verdict(record["verdict"])] += 1
        shares = [record["beaten"] for record in every if record["beaten"] is not None]
        tallies.append(tally_of(method, len(every), counted, shares))
    return tallies


def table_of(columns: tuple[str, ...], records: list[dict[str, Any]]) -> pa.Table:
    """Records as Arrow, with these columns.

    >>> table_of(("word", "texts"), [{"word": "dull", "texts": 3}]).to_pylist()
    [{'word': 'dull', 'texts': 3}]
    """
    by_column = {column: [record[column] for record in records] for column in columns}
    return arrow().table(by_column)
