"""The tables of methods and of metrics, made when the documentation is built: mkdocs calls this.

A page says where its table goes by a comment: ``<!-- table of methods -->``. What stands in a row
is what the method declares. The page of a method or metric gets a table of its settings, before
its cost.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent
sys.path.insert(0, str(DOCS.parent / "src"))

from whence.core.registry import GRADIENTS, MethodInfo, MetricInfo, Needs  # noqa: E402
from whence.core.registry import methods as all_methods  # noqa: E402
from whence.core.registry import metrics as all_metrics  # noqa: E402
from whence.explaining.listing import one_method, one_metric  # noqa: E402

KNOWS_THE_TARGET = GRADIENTS | Needs.RERUNS | Needs.ATTENTION_GRAPH | Needs.GAME
COST = "\n## Cost\n"


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Put each table in the place of its comment, and settings before the cost."""
    address = "" if page is None else page.file.src_uri
    folder, _slash, name = address.removesuffix(".md").partition("/")
    registered = {"methods": all_methods, "metrics": all_metrics}
    if folder in registered and name in registered[folder]():
        markdown = markdown.replace(COST, f"\n{settings_of(folder, name)}{COST}", 1)
    for name, make in {"methods": table_of_methods, "metrics": table_of_metrics}.items():
        comment = f"<!-- table of {name} -->"
        if comment in markdown:
            markdown = markdown.replace(comment, make())
    return markdown


def settings_of(folder: str, name: str) -> str:
    """The section on the settings of one method or metric; empty where it has none."""
    listed = one_method(name) if folder == "methods" else one_metric(name)
    if not listed.settings:
        return ""
    rows = []
    for setting in listed.settings:
        takes = setting.takes.replace("|", "\\|")
        rows.append((f"`{setting.name}`", f"`{setting.default}`", takes, setting.about))
    return f"## Settings\n\n{_table(('setting', 'default', 'takes', 'what it does'), rows)}\n"


def table_of_methods() -> str:
    """Every method: what it looks at, whether scores have a sign, and what it costs."""
    rows = [_method_row(info) for info in all_methods().values()]
    return _table(("method", "looks at", "signed", "knows the target", "only for", "cost"), rows)


def table_of_metrics() -> str:
    """Every metric: its line, which values are good, and what chance gets."""
    rows = [_metric_row(info) for info in all_metrics().values()]
    return _table(("metric", "what it is", "better", "range", "chance"), rows)


def _method_row(info: MethodInfo) -> tuple[str, ...]:
    knows = "yes" if info.needs & KNOWS_THE_TARGET else "no"
    return (
        f"[{info.name}]({info.name}.md)",
        ", ".join(info.looks_at) or "nothing",
        _signed(info),
        knows,
        info.only_for,
        info.price,
    )


def _signed(info: MethodInfo) -> str:
    if isinstance(vars(info.settings).get("signed"), property):
        return "by its settings"
    return "yes" if info.settings().signed else "no"


def _metric_row(info: MetricInfo) -> tuple[str, ...]:
    example = info.settings()
    low, high = (f"{end:g}".replace("inf", "∞") for end in example.range)
    return (
        f"[{info.name}]({info.name}.md)",
        info.summary,
        example.better,
        f"{low} to {high}",
        f"{example.chance:g}",
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
