"""Tables in the terminal that are not attributions: the methods there are, a summary of attention maps, the doctor's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.views import wording

DIM, BOLD = Style(dim=True), Style(bold=True)
GOOD, BAD = Style(color="green"), Style(color="red", bold=True)


def methods_view(listed: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Each method with its line, then its settings as flags."""
    parts: list[RenderableType] = []
    for m in listed:
        sign = "signed" if m["signed"] else "without sign"
        cites = f" · {m['cites']}" if m["cites"] else ""
        parts.append(Text.assemble((m["name"], BOLD), (f"  {sign}{cites}", DIM)))
        parts.append(Padding(Text(m["summary"]), (0, 0, 0, 2)))
        for s in m["settings"]:
            flag = "--" + s["name"].replace("_", "-")
            parts.append(
                Padding(
                    Text.assemble(f"{flag} {s['default']}", ("  " + s["takes"], DIM)), (0, 0, 0, 4)
                )
            )
    return Group(*parts)


def maps_view(summary: Mapping[str, Any]) -> RenderableType:
    """The shapes of the maps, and how much of each layer's attention special tokens take."""
    parts: list[RenderableType] = []
    for kind, found in summary["kinds"].items():
        layers, heads, rows, columns = found["layers_heads_from_to"]
        shape = f"  {layers} layers × {heads} heads × {rows} from × {columns} to"
        parts.append(Text.assemble((kind, BOLD), (shape, Style())))
        table = _table("layer", "module", "to special tokens", "by head")
        for layer, module, shares in zip(
            found["layers"], found["modules"], found["share_on_special_tokens"], strict=True
        ):
            mean = sum(shares) / len(shares)
            _row(
                table,
                layer,
                module,
                wording.percent(mean),
                f"{wording.percent(min(shares))} – {wording.percent(max(shares))}",
            )
        parts.append(table)
    return Group(*parts)


def doctor_view(report: Mapping[str, Any], console: Console) -> RenderableType:
    """The doctor's report; ``report`` is its dictionary."""
    del console
    attention = (
        "  ".join(
            f"{kind} {n['layers']} layers × {n['heads']} heads"
            for kind, n in report["attention"].items()
        )
        or "none seen"
    )
    paths = {
        "interface": "captured through AttentionInterface",
        "output": "fallback: eager and output_attentions",
    }
    facts = [
        ("model", report["model"]),
        ("family", f"{report['family']} · {report['architecture']} · {report['task']}"),
        (
            "weights",
            f"{report['parameters']:,} parameters, {wording.size(report['weights_bytes'])}",
        ),
        (
            "computes",
            f"in {report['dtype']} on {report['device']}, {report['threads']} thread{'s' if report['threads'] != 1 else ''}",
        ),
        ("positions", "no limit" if report["limit"] is None else f"{report['limit']:,} tokens"),
        ("attention", f"{attention}; {paths[report['attention_path']]}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in report["versions"].items())),
    ]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=DIM, no_wrap=True, width=10)
    grid.add_column(overflow="fold")
    for name, fact in facts:
        grid.add_row(Text(name), Text(wording.visible(str(fact))))
    grid.add_row(Text("self-check"), _verdict(report["self_check"]))
    return Group(grid, Text(), _attempts(report["methods"]), Text(), *_forecast(report))


def _verdict(check: Mapping[str, Any]) -> Text:
    if check["passed"] is None:
        return Text(f"not done: {wording.visible(check['note'])}")
    word = Text("passed", GOOD) if check["passed"] else Text("FAILED", BAD)
    if check["attention_difference"] is None:
        return word.append(f": {wording.visible(check['note'])}", Style())
    word.append(
        f": captured attention differs from eager's by at most {check['attention_difference']:.1e}",
        Style(),
    )
    return (
        word
        if check["logit_difference"] is None
        else word.append(f", logits by {check['logit_difference']:.1e}", Style())
    )


def _attempts(tried: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = _table("method", "tried")
    for t in tried:
        mark = (
            Text("works", GOOD)
            if t["works"]
            else Text.assemble(("no", BAD), f"  {wording.visible(t['reason'])}")
        )
        table.add_row(Text(t["method"]), mark)
    return table


def _forecast(report: Mapping[str, Any]) -> list[RenderableType]:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style=BOLD
    )
    for name in ("tokens", "forward", "and backward", "all maps", "and gradients", "head mean"):
        table.add_column(Text(name), justify="right", no_wrap=True)
    for f in report["forecast"]:
        back = "–" if f["gradient_seconds"] is None else wording.duration(f["gradient_seconds"])
        memory = (
            wording.size(f[k])
            for k in ("maps_bytes", "maps_and_gradients_bytes", "head_mean_bytes")
        )
        _row(table, f"{f['tokens']:,}", wording.duration(f["forward_seconds"]), back, *memory)
    measured = ", ".join(map(str, report["measured_tokens"]))
    return [
        table,
        Text(
            f"Time measured at {measured} tokens and continued by a·T + b·T²; memory is that of attention maps.",
            DIM,
        ),
    ]


def _table(*names: str) -> Table:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style=BOLD
    )
    for name in names:
        table.add_column(Text(name), overflow="fold")
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*(Text(wording.visible(cell)) for cell in cells))
