"""The metrics there are, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.text import Text

DIM = Style(dim=True)
BOLD = Style(bold=True)


def metrics_view(listed: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Each metric with its line and what its values mean, then its settings."""
    parts: list[RenderableType] = []
    for metric in listed:
        facts = f"  {metric['better']} is better"
        if metric["cites"]:
            facts += f" · {metric['cites']}"
        parts.append(Text.assemble((metric["name"], BOLD), (facts, DIM)))
        parts.append(_indented(Text(metric["summary"]), 2))
        parts.append(_indented(Text(_values(metric), DIM), 4))
        for setting in metric["settings"]:
            assignment = f"{setting['name']}={setting['default']}"
            line = Text.assemble(assignment, (f"  {setting['takes']}", DIM))
            parts.append(_indented(line, 4))
    return Group(*parts)


def _values(metric: Mapping[str, Any]) -> str:
    low, high = metric["range"]
    return (
        f"on probabilities from {low:g} to {high:g}; "
        f"chance gets {metric['chance']:g} where all units together lift the target from 0 to 1"
    )


def _indented(line: Text, columns: int) -> Padding:
    return Padding(line, (0, 0, 0, columns))
