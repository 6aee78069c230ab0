"""A Figure: one drawing, which a notebook shows and a file keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whence.core.writing import write_text


@dataclass(frozen=True, repr=False)
class Figure:
    """A drawing as SVG, in colours that follow its reader's light or dark screen.

    >>> audit.figure("pruning").save("pruning.svg")       # doctest: +SKIP
    """

    name: str
    svg: str

    def save(self, path: str | Path) -> Path:
        """Write it as a file."""
        return write_text(path, self.svg)

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Figure({self.name!r}: {len(self.svg):,} characters of SVG)"

    def _repr_svg_(self) -> str:
        return self.svg
