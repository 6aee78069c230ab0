"""Larger units: the same passage, with neighbouring units taken together.

Tokens make words, words make sentences, and sentences make sections: the messages of a chat, or
documents. No text is tokenized again, and what belongs to no unit stays so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from whence.core.cutting import sentence_starts, word_starts
from whence.core.passage import IMAGE, SPECIAL, Passage

FROM_FINE_TO_COARSE = ("token", "word", "sentence", "section")
FEWEST = 2  # units, of which one can be told from another


def coarser_kinds(passage: Passage) -> tuple[str, ...]:
    """The kinds of units that are larger than those of a passage, the finest of them first.

    Left out are kinds that join nothing, or all that can be told apart, and sections where there
    are none.

    >>> p = Passage.from_tokens(
    ...     "So. No!", [1, 2, 3, 4], ["So", ".", "No", "!"],
    ...     [(0, 2), (2, 3), (4, 6), (6, 7)], [0, 0, 0, 0],
    ... )
    >>> coarser_kinds(p), coarser(p, "sentence").units
    (('sentence',), ('So.', ' No!'))
    """
    if passage.kind not in FROM_FINE_TO_COARSE or passage.pictured.any():
        return ()
    kinds = []
    units = len(passage.unit_spans)
    for kind in FROM_FINE_TO_COARSE[FROM_FINE_TO_COARSE.index(passage.kind) + 1 :]:
        if kind == "section" and not passage.sections:
            continue
        groups = len(grouped(passage, kind))
        if FEWEST <= groups < units:
            kinds.append(kind)
            units = groups
    return tuple(kinds)


def coarser(passage: Passage, kind: str) -> Passage:
    """The passage in larger units; the same where its own are of that kind already."""
    if kind == passage.kind:
        return passage
    groups = grouped(passage, kind)
    group_of = np.empty(len(passage.unit_spans), dtype=np.int64)
    spans = []
    for number, group in enumerate(groups):
        group_of[group.start : group.stop] = number
        part, start, _ = passage.unit_spans[group.start]
        spans.append((part, start, passage.unit_spans[group.stop - 1][2]))
    has_unit = passage.unit_of >= 0
    unit_of = np.full(len(passage), SPECIAL, dtype=np.int64)
    unit_of[has_unit] = group_of[passage.unit_of[has_unit]]
    return replace(passage, unit_of=unit_of, unit_spans=tuple(spans), kind=kind)


def grouped(passage: Passage, kind: str) -> tuple[range, ...]:
    """The units of each larger unit: words of a sentence, or sentences of a section.

    None reaches over the border of a section, nor from a prompt into what was written. Without
    sections a text is one.
    """
    place_of = [_places(passage, 0, kind), _places(passage, 1, kind)]
    groups: list[range] = []
    last: object = None
    for unit, (part, start, _) in enumerate(passage.unit_spans):
        here: object = (part, unit) if part == IMAGE else (part, place_of[part](start))
        if here == last:
            groups[-1] = range(groups[-1].start, unit + 1)
        else:
            groups.append(range(unit, unit + 1))
        last = here
    return tuple(groups)


def _places(passage: Passage, part: int, kind: str) -> Callable[[int], int]:
    """Of each character of a text, the number of the larger unit that it lies in."""
    text = (passage.text, passage.pair or "")[part]
    borders = [0]
    if part == 0:
        for section in passage.sections:
            borders += [section.start, section.end]
    borders = sorted({border for border in borders if border < len(text)} | {0})
    starts = list(borders)
    if kind != "section":
        cut = word_starts if kind == "word" else sentence_starts
        for start, end in zip(borders, [*borders[1:], len(text)], strict=True):
            starts += [start + own for own in cut(text[start:end])]
    starts = sorted(set(starts))
    return lambda character: bisect_right(starts, character)
