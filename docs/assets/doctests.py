"""Doctests in docstrings are shown as code: Markdown would take ``>>>`` for a quotation of a quotation of a quotation."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Put a fence around every block that begins with a prompt."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for everything that has a docstring."""
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(
                _fenced(block) for block in obj.docstring.value.split("\n\n")
            )


def _fenced(block: str) -> str:
    return f"```pycon\n{block}\n```" if block.lstrip().startswith(">>>") else block
