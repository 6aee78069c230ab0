"""whence query: questions to a finished or half-finished run, in SQL or ready-made."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from whence.cli import options as o
from whence.cli.running import emit, emit_json, show
from whence.core.errors import InputError

EXAMPLE = 'Example: whence query runs/reviews "select method, avg(value) from results group by 1"'
MOST_ROWS = 50  # in the terminal
TABLES = ("texts", "results", "scores", "failures")
# Said beside each question that is ready, where a run is listed.
READY = {
    "words": "Which words carry most, for each label.",
    "verdicts": "How often each method is better than random, beside chance.",
    "wrong": "The texts on which the model says something else than the data.",
    "confusion": "What the model says beside what the data say, counted.",
}


def command(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run.")],
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="A query over the tables texts, results, scores and failures."
        ),
    ] = None,
    words: Annotated[bool, typer.Option("--words", help=READY["words"])] = False,
    verdicts: Annotated[bool, typer.Option("--verdicts", help=READY["verdicts"])] = False,
    wrong: Annotated[bool, typer.Option("--wrong", help=READY["wrong"])] = False,
    confusion: Annotated[bool, typer.Option("--confusion", help=READY["confusion"])] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_latex: Annotated[
        bool, typer.Option("--latex", help="Print a LaTeX table (it needs booktabs).")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown table.")
    ] = False,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Ask a run: by SQL over its tables, or by a question that is ready.

    The tables: texts (a row for each text), results (for each text and method), scores (for each
    text, method and unit), failures. Where nothing is asked, it lists what can be.
    """
    del debug
    ready = {"words": words, "verdicts": verdicts, "wrong": wrong, "confusion": confusion}
    questions = [name for name, is_asked in ready.items() if is_asked]
    if sql is None and not questions and not (as_csv or as_latex or as_markdown):
        _list(folder, as_json)
        return
    if len(questions) + (sql is not None) != 1:
        named = ", ".join(f"--{name}" for name in list(ready)[:-1])
        raise InputError(f"ask one thing: SQL in quotes, {named}, or --{list(ready)[-1]}.")
    if sum((as_csv, as_latex, as_markdown, as_json)) > 1:
        raise InputError("print one thing: --csv, --latex, --markdown, or --json.")

    from whence.runs.run import open_run

    run = open_run(folder)
    asked = questions[0] if sql is None else sql
    if as_csv:
        emit(run.to_csv(asked).rstrip("\r\n"))
    elif as_latex:
        emit(run.to_latex(asked))
    elif as_markdown:
        emit(run.to_markdown(asked))
    else:
        _print(run.query(sql) if sql is not None else run.table(asked), as_json)


def _list(folder: str, as_json: bool) -> None:
    """What a run can be asked: its tables with their columns, and the questions that are ready."""
    from whence.runs.run import open_run

    run = open_run(folder)
    tables = []
    for name in TABLES:
        columns = run.query(f"describe {name}").column("column_name").to_pylist()
        (count,) = run.query(f"select count(*) as rows from {name}").column("rows").to_pylist()
        tables.append({"table": name, "rows": count, "columns": columns})
    if as_json:
        for table in tables:
            emit_json(table)
        for name, about in READY.items():
            emit_json({"question": f"--{name}", "about": about})
        return

    for table in tables:
        rows = "1 row" if table["rows"] == 1 else f"{table['rows']:,} rows"
        emit(f"{table['table']}: {rows}")
        emit(f"  {', '.join(table['columns'])}")
    emit("")
    for name, about in READY.items():
        emit(f"--{name:11} {about}")
    emit(EXAMPLE)


def _print(table: Any, as_json: bool) -> None:
    if as_json:
        for record in table.to_pylist():
            emit_json(_plain(record))
        return
    from whence.views.records import records_view

    records = table.slice(0, MOST_ROWS).to_pylist()
    left = max(0, table.num_rows - MOST_ROWS)
    show(lambda console: records_view(table.column_names, records, left, console))


def _plain(value: Any) -> Any:
    """Plain values for JSON: dates and decimals as text, what is no number as null."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
