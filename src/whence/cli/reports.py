"""Showing results, of one text or of many, and writing the files of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from whence.cli.running import emit, emit_json, note, show

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from whence.core.attribution import Attribution
    from whence.core.comparison import Comparison
    from whence.core.many import Many

BETWEEN_TEXTS = "\n" + "─" * 72 + "\n"


@dataclass
class Results:
    """The results of a run, text by text.

    As JSON, each is printed as soon as it is there, so that nothing is lost if the run is ended.
    In the terminal, several texts are shown at the end: the index and the counts first, then with
    ``full`` each text.
    """

    texts: int
    as_json: bool
    full: bool
    every_row: bool
    kept: bool  # whether files are written at the end
    results: list[Attribution | Comparison] = field(default_factory=list)

    def add(self, result: Attribution | Comparison) -> None:
        """The result of the next text."""
        if self.as_json:
            emit_json(result.to_dict())
        elif self.texts == 1:
            show(_view(result, self.every_row, self.full))
        # JSON of many texts is not held in memory for nothing
        if self.kept or not self.as_json:
            self.results.append(result)

    def finish(
        self, save: Path | None = None, html: Path | None = None, csv: Path | None = None
    ) -> None:
        """What can be shown and written only when all texts are done."""
        if self.texts > 1 and not self.as_json:
            self._show_many()
            if html is None and not self.full:
                note("--full shows each text; --html writes them to a page")
        if save is not None:
            self._whole().save(save)
            note(f"result saved to {save.resolve()}")
        if csv is not None:
            self._whole().to_csv(csv)
            note(f"table written to {csv.resolve()}")
        if html is not None:
            self._whole().to_html(html)
            note(f"report written to {html.resolve()}")

    def _show_many(self) -> None:
        from whence.core.many import Many
        from whence.views.many import many_view

        many = Many(tuple(self.results))
        show(lambda console: many_view(many, console))
        if not self.full:
            return
        for result in self.results:
            emit(BETWEEN_TEXTS)
            show(_view(result, self.every_row, self.full))

    def _whole(self) -> Attribution | Comparison | Many:
        """The only result, or all of them."""
        from whence.core.many import Many

        if self.texts == 1:
            return self.results[0]
        return Many(tuple(self.results))


def _view(
    result: Attribution | Comparison, every_row: bool, full: bool
) -> Callable[[Console], RenderableType]:
    """How one text is laid out."""
    from whence.core.comparison import Comparison
    from whence.views.terminal import attribution_view, comparison_view

    if isinstance(result, Comparison):
        return lambda console: comparison_view(result, console, every_row, full)
    return lambda console: attribution_view(result, console, every_row, full)
