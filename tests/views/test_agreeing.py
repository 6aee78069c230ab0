"""What is said of how far methods agree, held against the numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.views.conftest import made
from whence.core.agreement import agreement
from whence.core.attribution import Attribution, Cost
from whence.core.comparison import Comparison
from whence.views import wording
from whence.views.agreeing import agreement_section

WORDS = "one two three four five six seven"


def methods(*scores: list[float]) -> dict[str, Attribution]:
    text = " ".join(WORDS.split()[: len(scores[0])])
    return {f"m{i}": made(text, f"m{i}", scores=row) for i, row in enumerate(scores)}


@pytest.mark.parametrize("seed", range(30))
def test_the_closest_and_the_furthest_are_told_with_all_that_tie(seed: int) -> None:
    """Would catch: one of four pairs at 1.00 said to be the closest."""
    rng = np.random.default_rng(seed)
    count, units = int(rng.integers(2, 6)), int(rng.integers(3, 7))
    orders = [rng.permutation(units).astype(float) + 1 for _ in range(2)]
    every = methods(*(orders[int(rng.integers(2))].tolist() for _ in range(count)))
    a = agreement(every)
    numbers = [wording.correlation(r) for _, _, r in a.pairs]
    said = wording.ends(a)
    if len(numbers) == 1:
        assert re.fullmatch(r"Only m0 and m1 can be compared \((.*)\)\.", said)[1] == numbers[0]
        return
    pairs = r"(m\d) and (m\d)(?:, and (\d+) other pairs?)? \(([^)]*)\)\."
    told = re.findall(rf"(Closest|Furthest): {pairs}", said)
    assert [which for which, *_ in told] == ["Closest", "Furthest"][: len(set(numbers))]
    for (_, one, other, more, number), extreme in zip(told, (max, min), strict=False):
        at = (a.methods.index(one), a.methods.index(other))
        assert number == wording.correlation(float(a.correlation[at]))
        assert number == extreme(numbers, key=lambda r: float(r.replace("−", "-")))
        assert numbers.count(number) == 1 + int(more or 0)


@pytest.mark.parametrize(("units", "has_top"), [(4, False), (5, False), (6, True)])
def test_top_units_that_are_all_units_are_in_nobodys_favour(units: int, has_top: bool) -> None:
    """Would catch: a table of 100 %, by chance 100 %, of the top five of five words."""
    rng = np.random.default_rng(0)
    every = methods(*rng.normal(size=(3, units)).tolist())
    c = Comparison(every, Cost())
    for shown in (agreement_section(agreement(every)), c.to_text(full=True)):
        assert ("top 5" in shown.lower()) == has_top
        assert "by chance 100 %" not in shown
        assert ("by chance" in shown) == has_top
