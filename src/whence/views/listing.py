"""The doctor's report, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.durations import precise
from whence.core.sizes import human
from whence.views import wording

DIM, BOLD = Style(dim=True), Style(bold=True)
GOOD, BAD = Style(color="green"), Style(color="red", bold=True)
# Said in the doctor's report, of how attention is seen.
PATHS = {
    "interface": "captured through AttentionInterface",
    "output": "fallback: eager and output_attentions",
    "auto": "seen by hooks on its modules",
    "none": "cannot be seen",
}
# two lines, so that no head is cut off in a narrow terminal
FORECAST_COLUMNS = (
    "tokens",
    "forward",
    "and\nbackward",
    "gradients",
    "all\nmaps",
    "and\ngradients",
    "head\nmean",
)


# ---------------------------------------------------------------------- the doctor


def doctor_view(report: Mapping[str, Any], console: Console) -> RenderableType:
    """The doctor's report; ``report`` is its dictionary."""
    del console
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=DIM, no_wrap=True, width=10)
    grid.add_column(overflow="fold")
    for name, fact in _facts(report).items():
        grid.add_row(Text(name), Text(wording.visible(fact)))
    grid.add_row(Text("self-check"), _self_check(report["self_check"]))
    return Group(
        grid,
        Text(),
        _conduct(report["conduct"]),
        Text(),
        _attempts(report["methods"]),
        Text(),
        *_forecast(report),
    )


def _facts(report: Mapping[str, Any]) -> dict[str, str]:
    weights = human(report["weights_bytes"])
    threads = "1 thread" if report["threads"] == 1 else f"{report['threads']} threads"
    limit = report["limit"]
    return {
        "model": report["model"],
        "family": f"{report['family']} · {report['architecture']} · {report['task']}",
        "weights": f"{report['parameters']:,} parameters, {weights}",
        "computes": f"in {report['dtype']} on {report['device']}, {threads}",
        "positions": "no limit" if limit is None else f"{limit:,} tokens",
        "attention": f"{_attention(report)}; {PATHS[report['attention_path']]}",
        "versions": ", ".join(f"{name} {version}" for name, version in report["versions"].items()),
    }


def _attention(report: Mapping[str, Any]) -> str:
    kinds = []
    for kind, seen in report["attention"].items():
        kinds.append(f"{kind} {seen['layers']} layers × {seen['heads']} heads")
    return "  ".join(kinds) or "none seen"


def _self_check(check: Mapping[str, Any]) -> Text:
    """Said in the doctor's report, of the attention that was captured.

    ``passed: captured attention differs from eager's by at most 1.2e-07``
    """
    note = wording.visible(check["note"])
    if check["passed"] is None:
        return Text(f"not done: {note}")
    line = Text("passed", GOOD) if check["passed"] else Text("FAILED", BAD)
    if check["attention_difference"] is None:
        return line.append(f": {note}", Style())
    by = f"{check['attention_difference']:.1e}"
    line.append(f": captured attention differs from eager's by at most {by}", Style())
    if check["logit_difference"] is not None:
        line.append(f", logits by {check['logit_difference']:.1e}", Style())
    return line


def _conduct(findings: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What short passes showed of the model, whatever it is called."""
    table = _table("tried", "", "what was seen")
    words = {True: ("holds", GOOD), False: ("NO", BAD), None: ("not told", DIM)}
    for finding in findings:
        word, style = words[finding["holds"]]
        says = Text(wording.visible(finding["says"]))
        table.add_row(Text(finding["name"]), Text(word, style), says)
    return table


def _attempts(methods: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = _table("method", "tried")
    for attempt in methods:
        outcome = Text("works", GOOD)
        if not attempt["works"]:
            outcome = Text.assemble(("no", BAD), f"  {wording.visible(attempt['reason'])}")
        elif attempt.get("note"):
            outcome = Text.assemble(outcome, f", but {wording.visible(attempt['note'])}")
        table.add_row(Text(attempt["method"]), outcome)
    return table


def _forecast(report: Mapping[str, Any]) -> list[RenderableType]:
    """Time and memory by the length of the text.

    Said in the doctor's report, below its table of time and memory.
    ``Time measured at 16, 64 tokens and continued by a·T + b·T²; memory is the peak of a run …``
    """
    table = _table()
    for name in FORECAST_COLUMNS:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for f in report["forecast"]:
        backward = f["gradient_seconds"]
        _row(
            table,
            f"{f['tokens']:,}",
            precise(f["forward_seconds"]),
            "–" if backward is None else precise(backward),
            _bytes(f["gradient_bytes"]),
            _bytes(f["maps_bytes"]),
            _bytes(f["maps_and_gradients_bytes"]),
            _bytes(f["head_mean_bytes"]),
        )
    measured = ", ".join(map(str, report["measured_tokens"]))
    note = (
        f"Time measured at {measured} tokens and continued by a·T + b·T²; "
        "memory is the peak of a run above the model itself, forecast for gradients and for "
        "attention."
    )
    return [table, Text(note, DIM)]


def _bytes(count: int | None) -> str:
    return "–" if count is None else human(count)


# ---------------------------------------------------------------------- pieces


def _table(*names: str) -> Table:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style=BOLD
    )
    for name in names:
        table.add_column(Text(name), overflow="fold")
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*(Text(wording.visible(cell)) for cell in cells))
