"""The methods and metrics there are, in the terminal: a short list, or one of them explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.registry import GROUPS, METRIC_GROUPS

DIM, BOLD = Style(dim=True), Style(bold=True)
# Said of a method whose scores have signs.
SIGNED = "signed: above zero speaks for the target, below zero against it; of a loss, the reverse"
# Said of a method whose scores have none.
UNSIGNED = "unsigned: it says how much a word matters, not whether for or against the target"
# what a setting takes, to a reader who does not write Python
KINDS = {
    "int": "whole number",
    "float": "number",
    "str": "text",
    "bool": "true or false",
    "NoneType": "none",
}
# Of metrics, by what they ask: when values lie in the range, and who gets what chance gets. Said of
# metrics of faithfulness, behind the range of their values.
READ_AS = {"faithfulness": ", where the target is read as a probability"}
# Said of metrics behind the value that chance gets, by what they ask.
GOT_BY = {
    "faithfulness": ", if all words act independently and together lift the target from 0 to 1; "
    "on your text random rankings are measured",
    "form": ", for scores that are drawn from the normal distribution",
}
# Said of a setting without a sentence.
NO_SENTENCE = "Its author has not said what it does."


# ---------------------------------------------------------------------- lists


def methods_view(
    listed: Sequence[Mapping[str, Any]], with_settings: bool = False
) -> RenderableType:
    """Each method with its line, under what it looks at.

    Said below the list of methods.
    ``whence methods NAME explains one of them, with its settings.``
    """
    parts = _by_group(listed, GROUPS, with_settings, _flag)
    parts.append(Text("whence methods NAME explains one of them, with its settings.", DIM))
    return Group(*parts)


def metrics_view(
    listed: Sequence[Mapping[str, Any]], with_settings: bool = False
) -> RenderableType:
    """Each metric with its line, under what it asks.

    Said below the list of metrics.
    ``whence metrics NAME explains one of them, with its settings.``
    """
    parts = _by_group(listed, METRIC_GROUPS, with_settings, _keyword)
    parts.append(Text("whence metrics NAME explains one of them, with its settings.", DIM))
    return Group(*parts)


def _by_group(
    listed: Sequence[Mapping[str, Any]],
    groups: Mapping[str, str],
    with_settings: bool,
    written: Callable[[str], str],
) -> list[RenderableType]:
    """The entries under the name of their group, with a line on what it is."""
    parts: list[RenderableType] = []
    for group, about in groups.items():
        members = [entry for entry in listed if entry["group"] == group]
        if not members:
            continue
        parts.append(Text.assemble((group.capitalize(), BOLD), (f"  {about}", DIM)))
        parts.append(_lines(members, with_settings, written))
        parts.append(Text())
    return parts


def _lines(
    listed: Sequence[Mapping[str, Any]], with_settings: bool, written: Callable[[str], str]
) -> RenderableType:
    width = max(len(entry["name"]) for entry in listed)
    grid = _grid(width)
    for entry in listed:
        cell: RenderableType = Text(entry["summary"])
        if with_settings and entry["settings"]:
            flags = [_assignment(setting, written) for setting in entry["settings"]]
            cell = Group(cell, *flags)
        grid.add_row(Text(entry["name"]), cell)
    return Padding(grid, (0, 0, 0, 2))


def _assignment(setting: Mapping[str, Any], written: Callable[[str], str]) -> Text:
    """A setting with its default, as it is written on the command line or in Python."""
    takes: str = setting["takes"]
    kinds = [KINDS.get(kind, kind) for kind in takes.split(" | ")]
    assignment = f"{written(setting['name'])}{setting['default']}"
    return Text.assemble(assignment, (f"  {' | '.join(kinds)}", DIM))


# ---------------------------------------------------------------------- one of them


def method_view(method: Mapping[str, Any]) -> RenderableType:
    """One method in plain words: what it says of a word, its cost, its traps, its settings.

    Said where one method was asked for by its name.
    ``whence explain --method lime --samples …, whence compare --set lime.samples=…``
    """
    facts = {
        "looks at": ", ".join(method["looks_at"]) or "nothing",
        "scores": SIGNED if method["signed"] else UNSIGNED,
        "only for": method["only_for"],
        "cost": method["price"],
        "misleads": method["misleads"],
    }
    name = method["name"]
    how = ""
    if method["settings"]:
        example = method["settings"][0]
        how = (
            f"whence explain --method {name} {_flag(example['name'])}…, "
            f"whence compare --set {name}.{example['name']}=…, "
            f"or keywords in Python: {example['name']}=…"
        )
    return _explained(method, facts, how, _flag)


def metric_view(metric: Mapping[str, Any]) -> RenderableType:
    """One metric in plain words: what it says, which values are good, its traps, its settings.

    Said where one metric was asked for by its name.
    ``whence evaluate --set aopc.steps=…, or keywords of whence.measure: steps=…``
    """
    facts = {
        "better": f"{metric['better']} is better",
        "values": f"{_span(metric['range'])}{READ_AS.get(metric['group'], '')}",
        "chance": f"{metric['chance']:g}{GOT_BY.get(metric['group'], '')}",
        "misleads": metric["misleads"],
    }
    how = ""
    if metric["settings"]:
        name = metric["settings"][0]["name"]
        # whence.measure has one explanation, and these need others of its kind
        is_alone = metric["group"] != "again"
        how = f"whence evaluate --set {metric['name']}.{name}=…, " + (
            f"or keywords of whence.measure: {name}=…"
            if is_alone
            else f'in Python whence.evaluate(…, metrics={{"{metric["name"]}": {{"{name}": …}}}})'
        )
    return _explained(metric, facts, how, _keyword)


def _span(ends: Sequence[float | None]) -> str:
    """From the lowest to the highest value; None where there is no end."""
    low, high = ("no limit" if end is None else f"{end:g}" for end in ends)
    return f"from {low} to {high}"


def _explained(
    entry: Mapping[str, Any], facts: Mapping[str, str], how: str, written: Callable[[str], str]
) -> RenderableType:
    grid = _grid(max(len(name) for name in [*facts, "read on"]))
    for name, fact in facts.items():
        if fact:
            grid.add_row(Text(name, DIM), Text(fact))
    if entry["page"]:
        grid.add_row(Text("read on", DIM), Text(_reading(entry)))
    settings = _settings(entry["settings"], how, written)
    return Group(_title(entry), Text(entry["summary"]), Text(), grid, *settings)


def _title(entry: Mapping[str, Any]) -> Text:
    title = Text(entry["name"], BOLD)
    if entry["aliases"]:
        title.append(f"  also called {', '.join(entry['aliases'])}", DIM)
    return title


def _reading(entry: Mapping[str, Any]) -> str:
    """Said of what has a page of its own, with its paper where it cites one.

    ``docs/methods/lime.md; the paper is ribeiro2016 in docs/references.md``
    """
    if not entry["cites"]:
        return entry["page"]
    return f"{entry['page']}; the paper is {entry['cites']} in docs/references.md"


def _settings(
    settings: Sequence[Mapping[str, Any]], how: str, written: Callable[[str], str]
) -> Iterator[RenderableType]:
    """Said of one method or metric: its settings, or that it has none. ``It has no settings.``"""
    yield Text()
    if not settings:
        yield Text("It has no settings.")
        return
    yield Text("Settings", BOLD)
    for setting in settings:
        yield Padding(_assignment(setting, written), (0, 0, 0, 2))
        yield Padding(Text(setting["about"] or NO_SENTENCE), (0, 0, 0, 6))
    yield Text()
    yield Text(f"To set one: {how}", DIM)


# ---------------------------------------------------------------------- pieces


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')} "


def _keyword(name: str) -> str:
    return f"{name}="


def _grid(width: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, width=width)
    grid.add_column(overflow="fold")
    return grid
