"""Showing results one by one, and writing the HTML report of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whence.cli.running import emit_json, note, show

if TYPE_CHECKING:
    from whence.core.attribution import Attribution
    from whence.core.comparison import Comparison


def show_attribution(attribution: Attribution, as_json: bool, every_row: bool, full: bool) -> None:
    """One method's result on one text, on stdout."""
    if as_json:
        emit_json(attribution.to_dict())
        return
    from whence.views.terminal import attribution_view

    show(lambda console: attribution_view(attribution, console, every_row, full))


def show_comparison(comparison: Comparison, as_json: bool, every_row: bool, full: bool) -> None:
    """Several methods' results on one text, on stdout."""
    if as_json:
        emit_json(comparison.to_dict())
        return
    from whence.views.terminal import comparison_view

    show(lambda console: comparison_view(comparison, console, every_row, full))


def finish(results: Sequence[Attribution | Comparison], html: Path | None) -> None:
    """One page with all results, if one was asked for."""
    if html is None:
        return
    from whence.core.render import write_text
    from whence.views.html import page

    write_text(html, page(results))
    note(f"report written to {html.resolve()}")


def write_csv(results: Sequence[Attribution | Comparison], csv: Path | None) -> None:
    """One table of all results, if one was asked for; of several texts, it says which."""
    if csv is None:
        return
    from whence.core.render import write_text
    from whence.views.tables import result_csv

    write_text(csv, result_csv(results[0] if len(results) == 1 else results))
    note(f"table written to {csv.resolve()}")
