"""Doctests in docstrings are shown as code.

Markdown would take ``>>>`` for a quotation within a quotation within a quotation.
"""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Put a fence around every block that begins with a prompt."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for everything that has a docstring."""
        if obj.docstring is not None:
            blocks = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(_fenced(block) for block in blocks)


def _fenced(block: str) -> str:
    if not block.lstrip().startswith(">>>"):
        return block
    return f"```pycon\n{block}\n```"
