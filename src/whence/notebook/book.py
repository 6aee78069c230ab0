"""What a lab writes down as it runs: text, figures, tables, and claims beside what was measured.

A lab is a function of a Notebook. It never prints and never opens a file; the notebook is shown,
saved or put into a page afterwards.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from whence.core.errors import InputError, SettingsError
from whence.core.render import render
from whence.core.writing import json_text, write_bytes, write_text

FORMATS = ("png", "svg", "pdf")
DPI = 150
# no dates and no versions: the same lab gives the same file
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
Item = TypeVar("Item")


@dataclass(frozen=True)
class Claim:
    """A sentence that can be wrong, the measurement that decides it, and the decision."""

    claim: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Heading:
    """The beginning of a section; in a page it is also the beginning of a slide."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Plain text; with ``code`` in a fixed width, its lines kept."""

    text: str
    code: bool = False


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawn picture in several formats, by file ending."""

    name: str
    caption: str
    images: dict[str, bytes]


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words; ``name`` becomes a CSV file."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


Part = Heading | Paragraph | Figure | Table


@dataclass(eq=False, repr=False)
class Notebook:
    """A lab's results in the order in which they were written down.

    >>> book = Notebook("Sums")
    >>> book.say("Two numbers are added.")
    >>> book.claim("1 + 1 is 2", f"{1 + 1}", 1 + 1 == 2)
    >>> [(c.claim, c.holds) for c in book.claims]
    [('1 + 1 is 2', True)]
    """

    title: str
    quick: bool = False
    seed: int = 0
    formats: tuple[str, ...] = ("png", "svg", "pdf")
    parts: list[Part] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    tell: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        wrong = set(self.formats) - set(FORMATS)
        if wrong:
            listed = ", ".join(sorted(map(repr, wrong)))
            raise SettingsError(f"figures can be written as {', '.join(FORMATS)}, not {listed}.")

    # ------------------------------------------------------------------ writing down

    def head(self, text: str) -> None:
        """Begin a section."""
        self.parts.append(Heading(text))

    def say(self, text: str, code: bool = False) -> None:
        """Add a paragraph; ``code`` keeps its lines, in a fixed width."""
        self.parts.append(Paragraph(text, code))

    def figure(self, name: str, drawn: Any, caption: str) -> None:
        """Keep a matplotlib figure (or the figure of axes) in every format, and close it."""
        from matplotlib import pyplot, rc_context

        self._check_new(name)
        figure = getattr(drawn, "figure", drawn)
        # the page shows the SVG, also where it is not asked for as a file
        kinds = dict.fromkeys((*self.formats, "svg"))
        images = {}
        for kind in kinds:
            file = io.BytesIO()
            # a fixed salt gives the same ids inside the SVG every time
            with rc_context({"svg.fonttype": "path", "svg.hashsalt": name}):
                figure.savefig(file, format=kind, dpi=DPI, metadata=METADATA[kind])
            images[kind] = file.getvalue()
        pyplot.close(figure)
        self.parts.append(Figure(name, caption, images))

    def table(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = ""
    ) -> None:
        """Keep a table."""
        self._check_new(name)
        cells = tuple(tuple(row) for row in rows)
        if any(len(row) != len(columns) for row in cells):
            raise SettingsError(
                f"the table {name!r} has {len(columns)} columns, and a row of another length."
            )
        self.parts.append(Table(name, caption, tuple(columns), cells))

    def claim(self, claim: str, measured: str, holds: bool | np.bool_) -> None:
        """Write down a claim with what was measured; one that does not hold is written down too."""
        self.claims.append(Claim(claim, measured, bool(holds)))

    def track(self, items: Sequence[Item], label: str) -> Iterator[Item]:
        """The items one by one, with progress told."""
        for i, item in enumerate(items):
            self.tell(f"{label} {i + 1}/{len(items)}")
            yield item

    def _check_new(self, name: str) -> None:
        """Refuse a second figure or table of one name: they become files."""
        if any(part.name == name for part in (*self.figures, *self.tables)):
            raise SettingsError(f"the lab {self.title!r} has two parts named {name!r}.")

    # ------------------------------------------------------------------ reading

    @property
    def figures(self) -> list[Figure]:
        """The figures, in order."""
        return [part for part in self.parts if isinstance(part, Figure)]

    @property
    def tables(self) -> list[Table]:
        """The tables, in order."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def holds(self) -> bool:
        """Whether every claim does."""
        return all(claim.holds for claim in self.claims)

    def to_dict(self) -> dict[str, Any]:
        """Claims and tables as plain values; figures by name and caption."""
        return {
            "title": self.title,
            "quick": self.quick,
            "seed": self.seed,
            "claims": [asdict(claim) for claim in self.claims],
            "tables": [asdict(table) for table in self.tables],
            "figures": [{"name": each.name, "caption": each.caption} for each in self.figures],
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page, a slide for each section; also written to ``path`` if given."""
        page = render("notebook_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def save(self, folder: str | Path) -> Path:
        """Write everything into a folder, and return the folder.

        Every figure in every format, every table as CSV, the claims as JSON, and the page
        ``index.html``.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(
                f"cannot make the folder {str(folder)!r}: {problem.strerror or problem}."
            ) from problem

        for figure in self.figures:
            for kind in self.formats:
                write_bytes(folder / f"{figure.name}.{kind}", figure.images[kind])
        for table in self.tables:
            lines = io.StringIO()
            csv.writer(lines, lineterminator="\n").writerows([table.columns, *table.rows])
            write_text(folder / f"{table.name}.csv", lines.getvalue())
        claims = json_text(self.to_dict()["claims"], indent=1)
        write_text(folder / "claims.json", claims + "\n")
        self.to_html(folder / "index.html")
        return folder

    def __repr__(self) -> str:
        holding = sum(claim.holds for claim in self.claims)
        return (
            f"Notebook({self.title!r}, {len(self.figures)} figures, "
            f"{holding} of {len(self.claims)} claims hold)"
        )

    def __str__(self) -> str:
        return render("notebook_text", self)

    def _repr_html_(self) -> str:
        return render("notebook_fragment", self)
