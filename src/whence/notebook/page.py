"""A lab's notebook as a page that can be projected, and as tables in a terminal. Every text is escaped; no network."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table as TerminalTable
from rich.text import Text

from whence.notebook.book import Claim, Figure, Heading, Notebook, Paragraph, Part, Table
from whence.views.markup import scrolling, text
from whence.views.terminal import to_text
from whence.views.wording import visible

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LONGEST_WORDS, GAP, MOST_ROWS = 28, 3, 40
GOOD, BAD, BOLD = Style(color="green"), Style(color="red", bold=True), Style(bold=True)


# ---------------------------------------------------------------------- page


def notebook_page(book: Notebook) -> str:
    """A whole page."""
    return pages([book], book.title)


def notebook_fragment(book: Notebook) -> str:
    """What a notebook of Jupyter shows."""
    return f"<style>{_style()}</style>{_article(book)}"


def pages(books: Sequence[Notebook], title: str) -> str:
    """One document with several labs, each an article, and links to them at the top."""
    links = "".join(f'<li><a href="#lab-{i}">{text(b.title)}</a></li>' for i, b in enumerate(books))
    contents = f'<nav aria-label="labs"><ol>{links}</ol></nav>' if len(books) > 1 else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f'<title>whence: {text(title)}</title>\n<style>{_style()}</style>\n</head>\n<body class="labs">\n{contents}\n'
        + "\n".join(_article(b, i) for i, b in enumerate(books))
        + "\n</body>\n</html>\n"
    )


@cache
def _style() -> str:
    return (files("whence.views") / "static" / "notebook.css").read_text(encoding="utf-8")


def _article(book: Notebook, number: int | None = None) -> str:
    """A lab, a section for each slide; with a ``number`` of its own in the page, slides link to the one before and after."""
    slides: list[list[str]] = [[f"<h1>{text(book.title)}</h1>"]]
    if book.quick:
        slides[0].append(
            '<p class="soft">A quick run: smaller and shorter than the lab itself.</p>'
        )
    for part in book.parts:
        if isinstance(part, Heading):
            slides.append([f"<h2>{text(part.text)}</h2>"])
        else:
            slides[-1].append(_part(part))
    if book.claims:
        slides.append(["<h2>Claims</h2>", _claims(book.claims)])
    if number is None:
        return f'<article class="lab">{"".join(f"<section>{part}</section>" for part in map("".join, slides))}</article>'
    body = "\n".join(
        f'<section id="slide-{number}-{i}">{"".join(slide)}{_steps(number, i, len(slides))}</section>'
        for i, slide in enumerate(slides)
    )
    return f'<article class="lab" id="lab-{number}">{body}</article>'


def _steps(number: int, i: int, count: int) -> str:
    """Links to the slides beside this one: they work without a script."""
    before = f'<a href="#slide-{number}-{i - 1}" aria-label="the slide before">←</a> ' if i else ""
    after = (
        f' <a href="#slide-{number}-{i + 1}" aria-label="the next slide">→</a>'
        if i < count - 1
        else ""
    )
    return f'<p class="steps">{before}{i + 1} / {count}{after}</p>'


def _part(part: Part) -> str:
    if isinstance(part, Paragraph):
        return (
            f"<pre>{text(part.text, keep=chr(10))}</pre>"
            if part.code
            else f"<p>{text(part.text)}</p>"
        )
    if isinstance(part, Figure):
        return f'<figure role="img" aria-label="{text(part.caption)}">{_svg(part)}<figcaption>{text(part.caption)}</figcaption></figure>'
    if isinstance(part, Table):
        head = "".join(
            f'<th scope="col"{_side(first)}>{text(c)}</th>'
            for c, first in zip(part.columns, _first(part), strict=True)
        )
        rows = "".join(
            f"<tr>{''.join(f'<td{_side(x)}>{text(shown(x))}</td>' for x in row)}</tr>"
            for row in part.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return scrolling(visible(part.caption or part.name), table, whole=True) + (
            f'<p class="soft">{text(part.caption)}</p>' if part.caption else ""
        )
    raise TypeError(f"a notebook has no part of type {type(part).__name__}")


def _first(table: Table) -> list[Any]:
    """A cell of each column, a word if it has one: it says on which side the column's name stands."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    return [next((cell for cell in column if isinstance(cell, str)), None) for column in columns]


def _side(value: Any) -> str:
    return ' class="left"' if isinstance(value, str) else ""


def _svg(figure: Figure) -> str:
    """The drawing itself. Its ids are made unlike those of other figures, also of another notebook's that Jupyter shows beside it."""
    svg = figure.images["svg"].decode()
    svg = svg[svg.index("<svg") :]
    prefix = f"f{zlib.crc32(figure.name.encode() + figure.images['svg']):08x}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    return re.sub(r'href="#', f'href="#{prefix}', svg)


def _claims(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<tr><td class="left">{text(c.claim)}</td><td class="left">{text(c.measured)}</td>'
        f'<td class="{"good" if c.holds else "poor"}">{"holds" if c.holds else "does not hold"}</td></tr>'
        for c in claims
    )
    head = '<tr><th scope="col">claim</th><th scope="col">measured</th><th scope="col"></th></tr>'
    return scrolling(
        "claims",
        f'<table class="claims"><thead>{head}</thead><tbody>{rows}</tbody></table>',
        whole=True,
    )


def shown(value: Any, digits: int = 4) -> str:
    """A cell: numbers with four digits, the rest as it is.

    >>> shown(0.123456), shown(3), shown("a"), shown(True)
    ('0.1235', '3', 'a', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------------- terminal


def notebook_text(book: Notebook) -> str:
    """Title, tables and claims."""
    return to_text(lambda console: notebook_view(book, console))


def notebook_view(book: Notebook, console: Console) -> RenderableType:
    """The tables, then the claims; figures are for the page."""
    parts: list[RenderableType] = [Text(visible(book.title), style=BOLD)]
    for table in book.tables:
        parts += [
            *_blocks(table, console.width),
            Text(visible(table.caption), style=Style(dim=True)),
        ]
    if book.claims:
        grid = TerminalTable(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("claim", "measured", ""):
            grid.add_column(name, overflow="fold", no_wrap=not name)
        for c in book.claims:
            grid.add_row(
                Text(visible(c.claim)),
                Text(visible(c.measured)),
                Text("holds" if c.holds else "does not hold", style=GOOD if c.holds else BAD),
            )
        parts.append(grid)
    return Group(*parts)


def _blocks(table: Table, room: int) -> Iterator[RenderableType]:
    """A table that is too wide in several, each with the first column; one that is too long is cut, and says so."""
    cells = [[visible(shown(cell, digits=3)) for cell in row] for row in table.rows[:MOST_ROWS]]
    words = [any(isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
    widths = [
        min(
            max(len(w) for w in [*(row[i] for row in cells), *visible(name).split(), ""]),
            LONGEST_WORDS if words[i] else room,
        )
        + GAP
        for i, name in enumerate(table.columns)
    ]
    left = list(range(1, len(widths)))
    while True:
        block = [0]
        while left and (len(block) == 1 or sum(widths[i] for i in [*block, left[0]]) <= room):
            block.append(left.pop(0))
        grid = TerminalTable(box=SIMPLE_HEAD, pad_edge=False)
        for i in block:
            least = None if words[i] and i else widths[i] - GAP
            grid.add_column(
                Text(visible(table.columns[i])),
                overflow="fold",
                justify="left" if words[i] else "right",
                min_width=least,
            )
        for row in cells:
            grid.add_row(*(Text(row[i]) for i in block))
        yield grid
        if not left:
            break
    if len(table.rows) > MOST_ROWS:
        yield Text(
            f"… and {len(table.rows) - MOST_ROWS} more rows; --json has them all.",
            style=Style(dim=True),
        )
