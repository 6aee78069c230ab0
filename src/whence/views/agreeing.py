"""How far methods agree, in a report: two heat maps with their numbers, and the units on which they conflict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from whence.core.agreement import Agreement
from whence.views import wording
from whence.views.markup import fold, scrolling, text

MOST_CONFLICTS = 8


def agreement_section(found: Agreement) -> str:
    """Closest and furthest methods, the heat maps folded, and the conflicts; empty where no two methods can be compared."""
    if not found.pairs:
        return ""
    (a, b, most), (x, y, least) = found.pairs[0], found.pairs[-1]
    ends = f"Closest are <strong>{text(a)}</strong> and <strong>{text(b)}</strong> ({wording.correlation(most)})"
    ends += (
        f", furthest <strong>{text(x)}</strong> and <strong>{text(y)}</strong> ({wording.correlation(least)})."
        if len(found.pairs) > 1
        else "."
    )
    mean = float(np.mean([r for _, _, r in found.pairs]))
    maps = [
        ("Rank correlation", _heat(found, found.correlation, wording.correlation, 0.0)),
        (
            f"Top {found.k} in common (chance {wording.share(found.chance)})",
            _heat(found, found.overlap, wording.share, found.chance),
        ),
    ]
    tables = "".join(
        f"<h4>{title}</h4>{scrolling(title, table, whole=True)}" for title, table in maps
    )
    about = f'<p class="soft">{text(wording.about_agreement(found))} Similar methods stand together.</p>'
    summary = f"Agreement of every two methods, {wording.correlation(mean)} in the mean"
    return f"<h3>Agreement</h3>\n<p>{ends}</p>{fold(summary, about + tables)}{_conflicts(found)}"


def _heat(
    found: Agreement,
    matrix: Float[np.ndarray, "method method"],
    shown: Callable[[float], str],
    chance: float,
) -> str:
    """Orange where two methods agree more than chance has it, blue where less."""
    order = similar_together(found.correlation)
    heads = "".join(f'<th scope="col"><span>{text(found.methods[j])}</span></th>' for j in order)
    rows = []
    for i in order:
        cells = "".join(
            f"<td{_tint(float(matrix[i, j]), chance, i == j)}>{shown(float(matrix[i, j]))}</td>"
            for j in order
        )
        rows.append(f'<tr><th scope="row">{text(found.methods[i])}</th>{cells}</tr>')
    return f'<table class="heat"><thead><tr><td></td>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _tint(value: float, chance: float, itself: bool) -> str:
    if np.isnan(value) or itself:
        return ' class="self"'
    level = (
        (value - chance) / (1 - chance)
        if value > chance and chance < 1
        else (value - chance) / (chance or 1.0)
    )
    return f' class="{"p" if level > 0 else "n"}" style="--v:{min(abs(level), 1.0):.2f}"'


def similar_together(correlation: Float[np.ndarray, "method method"]) -> list[int]:
    """An order in which each method is followed by the nearest of those left, from the one that agrees most with all.

    >>> similar_together(np.array([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]]))
    [2, 0, 1]
    """
    near = np.nan_to_num(correlation, nan=-2.0)
    order = [int(near.mean(1).argmax())]
    while len(order) < len(near):
        left = [i for i in range(len(near)) if i not in order]
        order.append(max(left, key=lambda i: near[order[-1], i]))
    return order


def _conflicts(found: Agreement) -> str:
    if not found.conflicts:
        return ""
    rows = "".join(
        f'<tr><th scope="row"><bdi>{text(c.name)}</bdi></th>'
        f"{_camp(wording.CAMPS[c.kind][0], c.one)}{_camp(wording.CAMPS[c.kind][1], c.other)}</tr>"
        for c in found.conflicts[:MOST_CONFLICTS]
    )
    about = (
        f"For and against: among a method's {found.k} strongest units, with opposite signs. "
        f"Strong and weak: among the {found.k} strongest of one method, in the lower half of another. The most evenly split first."
    )
    table = f'<table class="conflicts"><tbody>{rows}</tbody></table>'
    return f'<h3>Units on which methods conflict</h3>\n<p class="soft">{about}</p>{table}'


def _camp(word: str, methods: Sequence[str]) -> str:
    return (
        f'<td><span class="soft">{word} in {len(methods)}:</span> {text(", ".join(methods))}</td>'
    )
