"""Results as tables: for pandas, as CSV, and as the rows that a paper prints.

``units`` has a row for each method and unit: its score, and beside it what is known of the method
as a whole. ``methods`` has a row for each method: verdict, cost and error. Of many texts there is
also ``counts``, with a row for each method over all texts: how often which verdict, and how often
by chance.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.core.evidence import CURVES
from whence.core.many import Many, Tally

Table = Literal["units", "methods"]
TableOfMany = Literal["units", "methods", "counts"]
Result = Attribution | Attributions | Comparison
Row = dict[str, Any]

# what begins a formula in a spreadsheet; and the apostrophe that is put in front of it
BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
APOSTROPHE = "'"

# what a row of either table has, and pandas' type of it
OF_TEXT = {"text_number": "int64", "text": "object"}
OF_METHOD = {"method": "object", "target": "object"}
OF_UNIT = {"position": "int64", "unit": "object", "score": "float64", "standard_error": "float64"}
ABOUT = {
    "value": "float64",
    "signed": "bool",
    "verdict": "object",
    "p": "float64",
    "beaten": "float64",
    "beaten_low": "float64",
    "beaten_high": "float64",
    "rankings": "int64",
    "measure": "object",
    "forwards": "int64",
    "backwards": "int64",
    "seconds": "float64",
    "evidence_forwards": "int64",
    "largest_standard_error": "float64",
    "completeness_gap": "float64",
    "note": "object",
}
OVER_TEXTS = {
    "method": "object",
    "texts": "int64",
    "judged": "int64",
    "better": "int64",
    "same": "int64",
    "worse": "int64",
    "by_chance": "float64",
    "by_chance_low": "int64",
    "by_chance_high": "int64",
    "p": "float64",
    "beaten": "float64",
    "beaten_low": "float64",
    "beaten_high": "float64",
}


def result_frame(result: Result | Sequence[Result], table: TableOfMany = "units") -> Any:
    """A ``pandas.DataFrame`` of a result, or of several.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad", ["gradient-l2", "random"])
    >>> result_frame(c)[["method", "position", "unit"]].to_dict("split")["data"]
    [['gradient-l2', 0, 'not'], ['gradient-l2', 1, 'bad'],
     ['random', 0, 'not'], ['random', 1, 'bad']]
    """
    try:
        import pandas
    except ImportError:
        raise InputError(
            "to_frame() needs pandas: pip install 'whence[tables]'. to_csv() works without it."
        ) from None
    columns, rows = content(result, table)
    rows = [{column: _encodable(value) for column, value in row.items()} for row in rows]
    return pandas.DataFrame(rows, columns=list(columns)).astype(columns)


def result_arrow(result: Result | Sequence[Result], table: TableOfMany = "units") -> Any:
    """The same as a ``pyarrow.Table``, in which what is not known is null.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad", ["random"], evidence=False)
    >>> result_arrow(c).num_rows
    2
    """
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            "to_arrow() needs pyarrow: pip install 'whence[runs]'. to_csv() works without it."
        ) from None
    columns, rows = content(result, table)
    arrow_types = {
        "object": pyarrow.string(),
        "int64": pyarrow.int64(),
        "float64": pyarrow.float64(),
        "bool": pyarrow.bool_(),
    }
    schema = pyarrow.schema([(name, arrow_types[kind]) for name, kind in columns.items()])
    plain = [{name: _encodable(value) for name, value in row.items()} for row in rows]
    return pyarrow.Table.from_pylist(plain, schema=schema)


def result_csv(
    result: Result | Sequence[Result], table: TableOfMany = "units", safe: bool = True
) -> str:
    """The same as CSV: commas, a heading, UTF-8; every number can be read back exactly.

    A text is data, and a spreadsheet would run one that begins with ``=``, ``+``, ``-`` or ``@``.
    So an apostrophe stands in front of such a text, and of one that begins with an apostrophe:
    what is read back is exact after ``removeprefix("'")``. ``safe=False`` leaves it out.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad", ["random"], evidence=False)
    >>> result_csv(c).splitlines()[0][:38]
    'method,target,position,unit,score,stan'
    """
    columns, rows = content(result, table)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([safe_cell(row[column], safe) for column in columns])
    return out.getvalue()


def _encodable(value: Any) -> Any:
    """A value as it is; a lone surrogate in a text, which no table can hold, is spelt out.

    A name of a file or a folder may have one: it stands for a byte that is no UTF-8.

    >>> _encodable("caf" + chr(0xDCE9))
    'caf\\\\udce9'
    """
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode(errors="backslashreplace").decode()


def content(
    result: Result | Sequence[Result], table: TableOfMany = "units"
) -> tuple[dict[str, str], list[Row]]:
    """The columns of a table with their types, and its rows."""
    known = get_args(TableOfMany if isinstance(result, Many) else Table)
    if table not in known:
        raise InputError(f"a table is one of {', '.join(known)}, not {table!r}.")
    if table == "counts":
        assert isinstance(result, Many)
        return OVER_TEXTS, [_count_row(tally) for tally in result.tallies()]
    if isinstance(result, (Attribution, Attributions, Comparison)):
        return _columns(table), _rows(result, table)

    rows = []
    for number, one in enumerate(result):
        for row in _rows(one, table):
            rows.append({"text_number": number + 1, "text": _text(one), **row})
    return OF_TEXT | _columns(table), rows


def _columns(table: Table) -> dict[str, str]:
    if table == "methods":
        return OF_METHOD | ABOUT
    return OF_METHOD | OF_UNIT | ABOUT


def _rows(result: Result, table: Table) -> list[Row]:
    rows = []
    for attribution in named_attributions(result).values():
        about = method_row(attribution)
        if table == "methods":
            rows.append(about)
        else:
            rows += [about | unit for unit in _unit_rows(attribution)]
    return rows


def named_attributions(result: Result) -> Mapping[str, Attribution]:
    """The attributions that a result holds, by their names in it."""
    if isinstance(result, Attribution):
        return {result.method: result}
    if isinstance(result, Comparison):
        return result.attributions
    return result.entries


def _text(result: Result) -> str:
    passage = result.passage
    if passage is None:
        return ""
    if passage.pair is None:
        return passage.text
    return f"{passage.text}\n{passage.pair}"


def _unit_rows(a: Attribution) -> list[Row]:
    spread = None if a.error is None else a.error.standard_error
    rows = []
    for position, unit in enumerate(a.units.names):
        row: Row = {"position": position, "unit": unit, "score": float(a.scores[position])}
        row["standard_error"] = None if spread is None else float(spread[position])
        rows.append(row)
    return rows


def method_row(a: Attribution) -> Row:
    """What is known of a method as a whole: verdict, cost and error."""
    spread = None if a.error is None else a.error.standard_error
    largest = None
    if spread is not None and len(spread):
        largest = float(spread.max())
    return {
        "method": a.method,
        "target": a.target.describe(),
        "value": a.value,
        "signed": a.signed,
        **_evidence(a),
        "forwards": a.cost.forwards,
        "backwards": a.cost.backwards,
        "seconds": a.cost.seconds,
        "evidence_forwards": 0 if a.evidence is None else a.evidence.forwards,
        "largest_standard_error": largest,
        "completeness_gap": None if a.error is None else a.error.completeness_gap,
        "note": "" if a.error is None else a.error.note,
    }


def _evidence(a: Attribution) -> Row:
    """The verdict, and the numbers behind it.

    The share of random rankings that are beaten is there only where that is what was measured.
    """
    evidence = a.evidence
    row: Row = {
        "verdict": "",
        "p": None,
        "beaten": None,
        "beaten_low": None,
        "beaten_high": None,
        "rankings": 0,
        "measure": "",
    }
    if evidence is None:
        return row
    if evidence.verdict is not None:
        row["verdict"] = str(evidence.verdict)
    row["p"] = evidence.p
    row["rankings"] = evidence.rankings
    row["measure"] = evidence.measure
    if evidence.measure == CURVES:
        row["beaten"] = evidence.value
        if evidence.interval is not None:
            row["beaten_low"], row["beaten_high"] = evidence.interval
    return row


def _count_row(tally: Tally) -> Row:
    """One method over all texts."""
    beaten_low, beaten_high = tally.interval or (None, None)
    chance_low, chance_high = tally.chance_range
    return {
        "method": tally.method,
        "texts": tally.texts,
        "judged": tally.judged,
        "better": tally.better,
        "same": tally.same,
        "worse": tally.worse,
        "by_chance": tally.by_chance,
        "by_chance_low": chance_low,
        "by_chance_high": chance_high,
        "p": tally.p,
        "beaten": tally.beaten,
        "beaten_low": beaten_low,
        "beaten_high": beaten_high,
    }


def safe_cell(value: Any, safe: bool) -> Any:
    """A number as it is, with all its digits; nothing for None; a text that is no formula."""
    if value is None:
        return ""
    value = _encodable(value)
    if safe and isinstance(value, str) and value.startswith((*BEGINS_A_FORMULA, APOSTROPHE)):
        return APOSTROPHE + value
    return value
