"""A lab's notebook as a page that can be projected, and as tables in a terminal.

Every text is escaped, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table as TerminalTable
from rich.text import Text

from whence.notebook.book import Claim, Figure, Heading, Notebook, Paragraph, Part, Table
from whence.views.document import document, static, style
from whence.views.markup import element, elements, scrolling, soft, table, text
from whence.views.terminal import to_text
from whence.views.wording import visible

LONGEST_WORDS, GAP, MOST_ROWS = 28, 3, 40
GOOD, BAD, BOLD = Style(color="green"), Style(color="red", bold=True), Style(bold=True)
DIM = Style(dim=True)


# ---------------------------------------------------------------------- page


def notebook_page(book: Notebook) -> str:
    """A whole page."""
    return pages([book], book.title)


def notebook_fragment(book: Notebook) -> str:
    """What a notebook of Jupyter shows."""
    slides = ["".join(slide) for slide in _slides(book)]
    article = element("article", elements("section", slides), class_="lab")
    return style(static("notebook.css")) + article


def pages(books: Sequence[Notebook], title: str) -> str:
    """One document with several labs, each an article, and links to them at the top."""
    articles = "\n".join(_article(book, i) for i, book in enumerate(books))
    return document(
        f"whence: {visible(title)}",
        f"{_contents(books)}\n{articles}",
        styles=[static("notebook.css")],
        scripts=False,
        body_class="labs",
    )


def _contents(books: Sequence[Notebook]) -> str:
    if len(books) < 2:
        return ""
    links = [element("a", text(book.title), href=f"#lab-{i}") for i, book in enumerate(books)]
    return element("nav", element("ol", elements("li", links)), aria_label="labs")


def _article(book: Notebook, number: int) -> str:
    """A lab with its number in the page. Slides link to the one before and the one after."""
    slides = _slides(book)
    slides[0].append(_outline(book, number))
    sections = []
    for i, slide in enumerate(slides):
        content = "".join(slide) + _steps(number, i, len(slides))
        sections.append(element("section", content, id=f"slide-{number}-{i}"))
    return element("article", "\n".join(sections), class_="lab", id=f"lab-{number}")


def _slides(book: Notebook) -> list[list[str]]:
    """The parts of each slide: a heading begins a new one, and the claims are the last."""
    slides = [[element("h1", text(book.title))]]
    if book.quick:
        slides[0].append(soft("A quick run: smaller and shorter than the lab itself."))
    for part in book.parts:
        if isinstance(part, Heading):
            slides.append([element("h2", text(part.text))])
        else:
            slides[-1].append(_part(part))
    if book.claims:
        slides[0].append(element("p", text(tally(book.claims)), class_="tally"))
        slides.append([element("h2", "Claims"), _claims(book.claims)])
    return slides


def _outline(book: Notebook, number: int) -> str:
    """What the first slide leads to: a link to each of the others."""
    heads = [part.text for part in book.parts if isinstance(part, Heading)]
    if book.claims:
        heads.append("Claims")
    links = []
    for i, head in enumerate(heads, start=1):
        links.append(element("a", text(head), href=f"#slide-{number}-{i}"))
    if not links:
        return ""
    return element("ol", elements("li", links), class_="outline")


def _steps(number: int, i: int, count: int) -> str:
    """Links to the slides beside this one: they work without a script."""
    links = [f"{i + 1} / {count}"]
    if i > 0:
        before = f"#slide-{number}-{i - 1}"
        links.insert(0, element("a", "←", href=before, aria_label="the slide before"))
    if i < count - 1:
        after = f"#slide-{number}-{i + 1}"
        links.append(element("a", "→", href=after, aria_label="the next slide"))
    return element("p", " ".join(links), class_="steps")


def _part(part: Part) -> str:
    if isinstance(part, Paragraph):
        return _paragraph(part)
    if isinstance(part, Figure):
        return _figure(part)
    if isinstance(part, Table):
        return _table(part)
    raise TypeError(f"a notebook has no part of type {type(part).__name__}")


def _paragraph(part: Paragraph) -> str:
    if part.code:
        return element("pre", text(part.text, keep="\n"))
    return element("p", text(part.text))


def _figure(part: Figure) -> str:
    caption = element("figcaption", text(part.caption))
    return element("figure", _svg(part) + caption, role="img", aria_label=visible(part.caption))


def _table(part: Table) -> str:
    heads = []
    for i, name in enumerate(part.columns):
        side = "left" if _has_words(part, i) else None
        heads.append(element("th", text(name), scope="col", class_=side))
    rows = [element("tr", "".join(map(_cell, row))) for row in part.rows]
    content = table(element("tr", "".join(heads)), rows)
    scrolled = scrolling(visible(part.caption or part.name), content, whole=True)
    if not part.caption:
        return scrolled
    return scrolled + soft(text(part.caption))


def _cell(value: Any) -> str:
    side = "left" if isinstance(value, str) else None
    return element("td", text(shown(value)), class_=side)


def _has_words(part: Table, column: int) -> bool:
    """Whether some cell of a column is a word: then the column begins on the left."""
    return any(isinstance(row[column], str) for row in part.rows)


def _svg(figure: Figure) -> str:
    """The drawing itself, with ids unlike those of other figures.

    Jupyter may show a figure of another notebook beside it.
    """
    svg = figure.images["svg"].decode()
    svg = svg[svg.index("<svg") :]
    prefix = f"f{zlib.crc32(figure.name.encode() + figure.images['svg']):08x}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    return re.sub(r'href="#', f'href="#{prefix}', svg)


def _claims(claims: Sequence[Claim]) -> str:
    head = element("tr", elements("th", ("claim", "measured", ""), scope="col"))
    rows = [element("tr", _claim(claim)) for claim in claims]
    return scrolling("claims", table(head, rows, class_="claims"), whole=True)


def _claim(claim: Claim) -> str:
    words = elements("td", [text(claim.claim), text(claim.measured)], class_="left")
    return words + element("td", _outcome(claim), class_="good" if claim.holds else "poor")


def tally(claims: Sequence[Claim]) -> str:
    """How many claims hold, in words; of the others some may be false, and some undecided.

    >>> tally([Claim("1 + 1 = 2", "2", True), Claim("1 + 1 = 3", "2", False)])
    '1 of 2 claims holds; not borne out: 1 + 1 = 3.'
    """
    failed = [claim.claim.rstrip(".") for claim in claims if not claim.holds]
    holding = len(claims) - len(failed)
    verb = "holds" if holding == 1 else "hold"
    if not failed:
        return f"{holding} of {len(claims)} claims {verb}."
    return f"{holding} of {len(claims)} claims {verb}; not borne out: {'; '.join(failed)}."


def _outcome(claim: Claim) -> str:
    """What is measured may contradict a claim, or be too little to bear it out."""
    return "holds" if claim.holds else "not borne out"


def shown(value: Any, digits: int = 4) -> str:
    """A cell: numbers with four digits, the rest as it is.

    >>> shown(0.123456), shown(3), shown("a"), shown(True)
    ('0.1235', '3', 'a', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


# ---------------------------------------------------------------------- terminal


def notebook_text(book: Notebook) -> str:
    """Title, text, tables and claims."""
    return to_text(lambda console: notebook_view(book, console))


def notebook_view(book: Notebook, console: Console) -> RenderableType:
    """The text and the tables in their order, then the claims; figures are for the page."""
    parts: list[RenderableType] = [Text(visible(book.title), style=BOLD)]
    for part in book.parts:
        parts += _shown(part, console.width)
    if book.claims:
        holding = Text(visible(tally(book.claims)), style=BOLD)
        parts += [Text(), holding, _claims_grid(book.claims)]
    return Group(*parts)


def _shown(part: Part, room: int) -> Iterator[RenderableType]:
    if isinstance(part, Heading):
        yield Text()
        yield Text(visible(part.text), style=BOLD)
    elif isinstance(part, Paragraph):
        yield Text(visible(part.text, keep="\n"))
    elif isinstance(part, Figure):
        yield Text(visible(f"[{part.name}] {part.caption}"), style=DIM)
    else:
        yield from _blocks(part, room)
        yield Text(visible(part.caption), style=DIM)


def _claims_grid(claims: Sequence[Claim]) -> TerminalTable:
    grid = TerminalTable(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("claim", "measured", ""):
        grid.add_column(name, overflow="fold", no_wrap=not name)
    for claim in claims:
        outcome = Text(_outcome(claim), style=GOOD if claim.holds else BAD)
        grid.add_row(Text(visible(claim.claim)), Text(visible(claim.measured)), outcome)
    return grid


def _blocks(part: Table, room: int) -> Iterator[RenderableType]:
    """A table that is too wide in several blocks, each with the first column.

    One that is too long is cut, and says so.
    """
    cells = [_short_cells(row) for row in part.rows[:MOST_ROWS]]
    widths = [_width(part, i, cells, room) for i in range(len(part.columns))]
    for columns in _columns_together(widths, room):
        yield _block(part, columns, cells, _with_spare_room(part, columns, cells, widths, room))
    if len(part.rows) > MOST_ROWS:
        rest = len(part.rows) - MOST_ROWS
        yield Text(f"… and {rest} more rows; --json has them all.", style=DIM)


def _short_cells(row: Sequence[Any]) -> list[str]:
    return [visible(shown(cell, digits=3)) for cell in row]


def _width(part: Table, column: int, cells: Sequence[Sequence[str]], room: int) -> int:
    """What a column needs; of words, which can be broken, not more than a limit."""
    longest = max(map(len, visible(part.columns[column]).split()), default=0)
    longest = max([longest, *(len(row[column]) for row in cells)])
    limit = LONGEST_WORDS if _has_words(part, column) else room
    return min(longest, limit) + GAP


def _columns_together(widths: Sequence[int], room: int) -> list[list[int]]:
    """The columns of each block: the first, at least one other, and as many as there is room."""
    blocks = [[0]]
    used = widths[0]
    for i in range(1, len(widths)):
        if len(blocks[-1]) > 1 and used + widths[i] > room:
            blocks.append([0])
            used = widths[0]
        blocks[-1].append(i)
        used += widths[i]
    return blocks


def _with_spare_room(
    part: Table,
    columns: Sequence[int],
    cells: Sequence[Sequence[str]],
    widths: Sequence[int],
    room: int,
) -> dict[int, int]:
    """The width of each column: what it needs, and what is left goes to those that want more."""
    given = {i: widths[i] - GAP for i in columns}
    spare = room - sum(widths[i] for i in columns)
    for i in columns:
        whole = max(len(visible(part.columns[i])), *(len(row[i]) for row in cells), 0)
        more = min(max(whole - given[i], 0), max(spare, 0))
        given[i] += more
        spare -= more
    return given


def _block(
    part: Table,
    columns: Sequence[int],
    cells: Sequence[Sequence[str]],
    widths: Mapping[int, int],
) -> TerminalTable:
    grid = TerminalTable(box=SIMPLE_HEAD, pad_edge=False)
    for i in columns:
        justify = "left" if _has_words(part, i) else "right"
        name = Text(visible(part.columns[i]))
        # the width is fixed: left to itself, a table that is too wide is cut on the right
        grid.add_column(name, overflow="fold", justify=justify, width=widths[i])
    for row in cells:
        grid.add_row(*(Text(row[i]) for i in columns))
    return grid
