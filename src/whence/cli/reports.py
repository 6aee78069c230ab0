"""Writing the HTML report, and saying where it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whence.cli.running import note

if TYPE_CHECKING:
    from whence.core.attribution import Attribution
    from whence.core.comparison import Comparison


def finish(results: Sequence[Attribution | Comparison], html: Path | None) -> None:
    """One page with all results, if one was asked for."""
    if html is None:
        return
    from whence.core.render import write_text
    from whence.views.html import page

    write_text(html, page(results))
    note(f"report written to {html.resolve()}")
