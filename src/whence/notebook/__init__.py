"""What a lab writes down: text, figures, tables, and claims beside what was measured.

``Notebook`` takes it, ``whence.notebook.drawing`` helps with the figures, and
``whence.notebook.page`` shows the whole. What is public here is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "FORMATS": "whence.notebook.book",
    "Claim": "whence.notebook.book",
    "Figure": "whence.notebook.book",
    "Heading": "whence.notebook.book",
    "Notebook": "whence.notebook.book",
    "Paragraph": "whence.notebook.book",
    "Table": "whence.notebook.book",
}
__all__ = [
    "FORMATS",
    "Claim",
    "Figure",
    "Heading",
    "Notebook",
    "Paragraph",
    "Table",
    "drawing",
]

if TYPE_CHECKING:
    from whence.notebook import drawing
    from whence.notebook.book import (
        FORMATS,
        Claim,
        Figure,
        Heading,
        Notebook,
        Paragraph,
        Table,
    )


def __getattr__(name: str) -> Any:
    if name == "drawing":
        return import_module("whence.notebook.drawing")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'whence.notebook' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
