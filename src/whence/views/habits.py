"""What heads do, in words: what the terminal prints, and what the page says of each head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whence.core.heads import PATTERNS, HeadTable
from whence.core.maps import AttentionMaps, Opening
from whence.views import wording

# a share from which on it is named beside others
NAMED = 0.1
SAME = 1e-6  # two shares that differ by rounding alone
# Said of the head that is shown first, by how it was chosen.
# Said of the head that is shown first, by how it was found.
WHY = {
    "effects": "no other head{} changes the output more when it is switched off",
    "reach": "no other head{} links distant words more strongly",
    "nearest": "no other head{} looks more strongly at one place",
}


@dataclass(frozen=True)
class Habit:
    """What some heads do: how many they are, and the one that does it most clearly."""

    pattern: str
    heads: int
    layer: int
    head: int
    share: float  # of its attention; of a broad or mixed head, its breadth


def habits(table: HeadTable) -> list[Habit]:
    """What the heads do: what most heads do comes first, and "broad" and "mixed" come last."""
    every = []
    for pattern in (*PATTERNS, "broad", "mixed"):
        here = table.pattern == pattern
        if not here.any():
            continue
        column = table[pattern] if pattern in PATTERNS else table["breadth"]
        layer, head = np.unravel_index(np.where(here, column, -1.0).argmax(), column.shape)
        share = float(column[layer, head])
        every.append(Habit(pattern, int(here.sum()), int(layer), int(head), share))
    return sorted(every, key=lambda h: (h.pattern not in PATTERNS, -h.heads, -h.share))


def aim(table: HeadTable, pattern: str, layer: int, head: int) -> str:
    """What a head of this pattern looks at, as the end of "it looks at …".

    Said of a head by its pattern. ``all words about alike``

    Said of what a head looks at, by its pattern.
    """
    unit = table.units
    if pattern == "first":
        name = f" {quoted(table.names[0])}" if table.names else ""
        # what is set apart may be a special token in front of the words
        is_unit = unit == "patch" or (table.apart is not None and not table.apart[0])
        return f"the first {unit if is_unit else 'token'}{name}"
    if pattern == "one":
        favourite = int(table.favourite[layer, head])
        return f"the {unit} {quoted(table.names[favourite])}" if table.names else f"one {unit}"
    return {
        "previous": f"the {unit} before",
        "next": f"the {unit} after",
        "self": f"the {unit} itself",
        "repeats": f"other places of the same {unit}",
        "separators": "special tokens",
        "punctuation": "punctuation",
        "broad": f"all {wording.plural(unit)} about alike",
    }[pattern]


def does(table: HeadTable, layer: int, head: int) -> str:
    """What one head does, as the end of "layer 0, head 2 …".

    Said of each head by its pattern, or that it has none. ``has no habit that shows in this text``

    Said of one head: its pattern where it has one, and else at what it looks most.
    """
    pattern = str(table.pattern[layer, head])
    if pattern == "broad":
        return f"looks at {aim(table, pattern, layer, head)}"
    if pattern in PATTERNS:
        share = wording.percent(float(table[pattern][layer, head]))
        return f"looks mostly at {aim(table, pattern, layer, head)} ({share} of its attention)"

    shares = {p: float(table[p][layer, head]) for p in PATTERNS if p in table.columns}
    if _is_told_already(table, layer, head):
        del shares["one"]
    named = [p for p in sorted(shares, key=lambda p: -shares[p]) if shares[p] >= NAMED]
    if not named:
        return "has no habit that shows in this text"
    # shares may overlap, as the word before may be a comma; so they are not added up
    parts = [f"at {aim(table, p, layer, head)} ({wording.percent(shares[p])})" for p in named[:2]]
    return f"has no single habit: it looks {' and '.join(parts)}, among others"


def why(maps: AttentionMaps, opening: Opening) -> str:
    """Why a head is shown first; it is held against those of its own kind of attention alone.

    Said where there is more than one head of this kind.
    """
    table = maps.heads(opening.kind)
    if table.pattern.size == 1:
        return ""
    of_kind = f" of {opening.kind} attention" if len(maps.kinds) > 1 else ""
    because = WHY[opening.by].format(of_kind)
    if not are_heads(table):
        because = because.replace("no other head", "the mean of no other layer")
    return f"It is shown first because {because}."


def are_heads(table: HeadTable) -> bool:
    """Whether what is told apart are heads, and not one map of each layer."""
    return all(name.isdigit() for name in table.heads)


def head_name(table: HeadTable, layer: int, head: int) -> str:
    """A head by its layer and number; of a layer whose heads were brought together, how.

    Said wherever a head is named. ``layer 3, the mean of its heads``
    """
    name = table.heads[head]
    of_layer = f"head {name}" if name.isdigit() else f"the {name} of its heads"
    return f"layer {table.layers[layer]}, {of_layer}"


def _is_told_already(table: HeadTable, layer: int, head: int) -> bool:
    """Whether the one word that a head looks at most is all that a kind of place holds.

    The first token, and a comma that is the only punctuation, have names of their own.
    """
    if "one" not in table.columns:
        return False
    share = float(table["one"][layer, head])
    mark = table.columns.get("punctuation")
    is_first = int(table.favourite[layer, head]) == 0
    return is_first or (mark is not None and abs(float(mark[layer, head]) - share) < SAME)


def quoted(name: str) -> str:
    """A word inside a sentence."""
    return f"“{wording.visible(name)}”"


def links(maps: AttentionMaps, opening: Opening) -> list[tuple[str, str, float]]:
    """From each word of a head, the word that it looks at most; the strongest links first.

    Left out are special tokens that look, a word that looks at itself, and places set apart.
    """
    weights = maps.weights[opening.kind][opening.layer, opening.head]
    sources, seen = maps.from_axis[opening.kind], maps.to_axis[opening.kind]
    inside = np.where(maps.set_apart(opening.kind), 0.0, np.nan_to_num(weights))
    if maps.looks_at_itself(opening.kind):
        np.fill_diagonal(inside, 0.0)
    out = []
    for i, name in enumerate(sources.names):
        j = int(inside[i].argmax())
        is_word = not sources.special[i] or sources.special.all()
        if is_word and inside[i, j] > 0:
            out.append((name, seen.names[j], float(inside[i, j])))
    return sorted(out, key=lambda link: -link[2])
