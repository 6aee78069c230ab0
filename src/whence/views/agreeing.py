"""How far methods agree, in a report: two heat maps with their numbers, and units in conflict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from whence.core.agreement import STRONG, WEAK, Agreement, Conflict
from whence.views import wording
from whence.views.markup import element, elements, named, scrolling, soft, table, text
from whence.views.sides import Sides, sides_of

MOST_CONFLICTS = 8
STRONG_AND_WEAK = (wording.percent(STRONG), wording.percent(WEAK))


def agreement_section(agreement: Agreement) -> str:
    """Closest and furthest methods, the heat maps, and the conflicts.

    Empty where no two methods can be compared.

    Said where at least two methods can be compared.
    """
    if not agreement.pairs:
        return ""
    mean = float(np.mean([r for _, _, r in agreement.pairs]))
    count = len(agreement.methods)
    two = "every two methods"
    if len(agreement.pairs) < count * (count - 1) // 2:
        two += " that rank something"
    summary = f"Mean rank correlation of {two}: {wording.correlation(mean)}."
    parts = [
        element("p", wording.ends(agreement, lambda name: element("strong", text(name)))),
        element("p", summary),
        _heat_maps(agreement),
        _conflicts(agreement),
    ]
    return "".join(parts)


def _heat_maps(agreement: Agreement) -> str:
    """Said above the two heat maps."""
    about = soft(f"{text(wording.about_agreement(agreement))} Similar methods stand together.")
    correlations = _heat(agreement, agreement.correlation, wording.correlation, 0.0)
    maps = about + _titled("Rank correlation", correlations)
    if not wording.has_top(agreement):
        return maps
    overlaps = _heat(agreement, agreement.overlap, wording.share, agreement.chance)
    chance = wording.share(agreement.chance)
    return maps + _titled(f"Top {agreement.k} in common (chance {chance})", overlaps)


def _titled(title: str, heat: str) -> str:
    return element("h4", title) + scrolling(title, heat, whole=True)


def _heat(
    agreement: Agreement,
    matrix: Float[np.ndarray, "method method"],
    shown: Callable[[float], str],
    chance: float,
) -> str:
    """Green where two methods agree more than by chance, grey where less."""
    order = similar_together(agreement.correlation)
    names = [text(agreement.methods[i]) for i in order]
    columns = elements("th", [element("span", name) for name in names], scope="col")
    rows = []
    for i, name in zip(order, names, strict=True):
        cells = []
        for j in order:
            value = float(matrix[i, j])
            cells.append(_cell(shown(value), value, chance, itself=i == j))
        rows.append(element("tr", element("th", name, scope="row") + "".join(cells)))
    return table(element("tr", f"<td></td>{columns}"), rows, class_="heat")


def _cell(content: str, value: float, chance: float, itself: bool) -> str:
    if itself or np.isnan(value):
        return element("td", content, class_="self")
    level = _level(value, chance)
    tint = f"--v:{min(abs(level), 1.0):.2f}"
    return element("td", content, class_="more" if level > 0 else "less", style=tint)


def _level(value: float, chance: float) -> float:
    """0 at chance, 1 at full agreement, -1 at none."""
    if value > chance and chance < 1:
        return (value - chance) / (1 - chance)
    return (value - chance) / (chance or 1.0)


def similar_together(correlation: Float[np.ndarray, "method method"]) -> list[int]:
    """An order in which each method is followed by the nearest of those left.

    It begins with the one that agrees most with all.

    >>> similar_together(np.array([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]]))
    [2, 0, 1]
    """
    near = np.nan_to_num(correlation, nan=-2.0)
    order = [int(near.mean(1).argmax())]
    while len(order) < len(near):
        left = [i for i in range(len(near)) if i not in order]
        order.append(max(left, key=lambda i: near[order[-1], i]))
    return order


def _conflicts(agreement: Agreement) -> str:
    """Said where methods conflict on some unit."""
    if not agreement.conflicts:
        return ""
    said = sides_of(agreement.explained)
    one, other = said.camps("sign")
    about = (
        f"A score is taken as a share of the largest one of its method on this text. "
        f"{one.capitalize()} and {other}: opposite signs, each from {STRONG_AND_WEAK[1]} on, one "
        f"from {STRONG_AND_WEAK[0]} on. Strong and weak: from {STRONG_AND_WEAK[0]} on in one "
        f"method, less than {STRONG_AND_WEAK[1]} in another. Those furthest apart first."
    )
    rows = [_conflict(conflict, said) for conflict in agreement.conflicts[:MOST_CONFLICTS]]
    title = "<h3>Units on which methods conflict</h3>\n"
    return title + soft(about) + table("", rows, class_="conflicts")


def _conflict(conflict: Conflict, said: Sides) -> str:
    unit = element("th", named(conflict.name), scope="row")
    sides = wording.camps(conflict, said, most=len(conflict.one) + len(conflict.other))
    cells = []
    for (word, told), count in zip(sides, (len(conflict.one), len(conflict.other)), strict=True):
        side = element("span", f"{word} in {count}:", class_="soft")
        cells.append(element("td", f"{side} {text(told)}"))
    return element("tr", unit + "".join(cells))
