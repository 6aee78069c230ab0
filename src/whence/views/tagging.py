"""The tags of a text's words, in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.percent import digits
from whence.views import wording

DIM, BOLD = Style(dim=True), Style(bold=True)


def tags_view(words: Sequence[Mapping[str, Any]], text: str | None = None) -> RenderableType:
    """Each word with its number, its tag and the tag's probability, under the text.

    The tag that most words have is usually "none"; the others stand out.
    """
    usual = Counter(row["tag"] for row in words).most_common(1)[0][0]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style=DIM)
    grid.add_column(overflow="fold")
    grid.add_column()
    grid.add_column(justify="right")
    for number, row in enumerate(words):
        style = Style() if row["tag"] == usual else BOLD
        chance = "" if row["probability"] is None else f"{digits(row['probability'], 1)}%"
        grid.add_row(
            Text(str(number)),
            Text(wording.visible(row["word"]), style),
            Text(wording.label(row["tag"]), style),
            Text(chance),
        )
    if text is None:
        return grid
    return Group(Text(wording.visible(text, keep="\n")), grid)
