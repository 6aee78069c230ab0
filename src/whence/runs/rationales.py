"""Rationales: the parts of a text that people marked as the reason, as characters from and to.

A column holds them as spans ([[0, 5], [12, 20]], the end not counted), or as the marked words
themselves (["awful", "waste of time"]), each of which is then looked up in the text. Both may stand
there as JSON, as a .csv must hold them. An empty list says that nothing was marked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from whence.runs.records import is_nothing, unboxed

NAMES = ("rationale", "rationales", "spans", "evidence", "evidences")
Spans = tuple[tuple[int, int], ...]


class NoRationale(ValueError):
    """Why something is no rationale of this text, in words that follow the column's name."""


def spans_of(value: Any, text: str) -> Spans | None:
    """The marked characters of a text, in order; None where the column says nothing.

    >>> spans_of([[9, 14], [0, 3]], "not good, awful"), spans_of('["awful"]', "not good, awful")
    (((0, 3), (9, 14)), ((10, 15),))
    """
    value = unboxed(value)
    if is_nothing(value) or value == "":
        return None
    if isinstance(value, str):
        value = _from_json(value)
    if not isinstance(value, (list, tuple)):
        raise NoRationale(f"holds {value!r:.40}, not a list of spans or of marked words")
    spans: list[tuple[int, int]] = []
    for part in map(unboxed, value):
        spans += _found_in(text, part) if isinstance(part, str) else [_span(part, text)]
    return tuple(sorted(set(spans)))


def _from_json(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        raise NoRationale(
            f"holds {written!r:.40}, which is no JSON list of spans ([[0, 5]]) or words"
        ) from None


def _span(part: Any, text: str) -> tuple[int, int]:
    is_pair = isinstance(part, Sequence) and len(part) == 2
    if not is_pair or not all(isinstance(at, int) and not isinstance(at, bool) for at in part):
        raise NoRationale(f"holds {part!r:.40}, not a span [from, to] or a marked word")
    start, end = part
    if not 0 <= start < end <= len(text):
        raise NoRationale(
            f"marks the characters {start} to {end}, which do not lie in this text of "
            f"{len(text)} characters"
        )
    return (start, end)


def _found_in(text: str, marked: str) -> list[tuple[int, int]]:
    """Every place where the marked words stand."""
    places = []
    start = text.find(marked) if marked else -1
    while start >= 0:
        places.append((start, start + len(marked)))
        start = text.find(marked, start + 1)
    if not places:
        raise NoRationale(f"marks {marked!r:.40}, which does not stand in this text")
    return places
