"""Pieces of HTML that every part of a report uses. Every text goes through ``text``, which escapes it."""

from __future__ import annotations

from html import escape

from whence.views import wording


def text(content: object, keep: str = "") -> str:
    """Text that is nothing but read: no tag, no control character.

    >>> text("<b>\\x07")
    '&lt;b&gt;\\\\x07'
    """
    return escape(wording.visible(str(content), keep))


def scrolling(name: str, table: str, whole: bool = False) -> str:
    """A region that the keyboard can reach and scroll; ``whole``: sideways only."""
    return f'<div class="scroll{" whole" if whole else ""}" tabindex="0" role="region" aria-label="{escape(name)}">{table}</div>'


def fold(summary: str, content: str) -> str:
    """A part that opens when it is wanted; ``summary`` and ``content`` are HTML."""
    return f'<details class="fold"><summary>{summary}</summary>{content}</details>'


def kind(level: float, signed: bool) -> str:
    """The class of a coloured score: for, against, or without a sign."""
    return "m" if not signed else "p" if level > 0 else "n"


def paragraphs(lines: list[str]) -> str:
    """Soft lines below a table; each is plain text."""
    return "".join(f'<p class="soft">{text(line)}</p>' for line in lines)
