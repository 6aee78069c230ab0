"""Whether scores find planted words, and how often chance does.

A ranking has *found* the g gold words of a text if they are its first g. Tied scores leave the
order within a tier open, so a text counts by the share of tie-breaks under which it is found: what
breaking ties by lot would give on average, without the lot.

Under the hypothesis that the scores were given to the n words at random, this share has two values.
Let a words lie strictly above the tier that holds the g-th place, and b in it; k = g - a of these
are wanted. The share is 1 / C(b, k) if all a are gold and so are k of the b, for which there are
C(b, k) choices of the C(n, g) sets of gold words; else it is 0. Its mean is 1 / C(n, g) whatever
the ties, so that ties neither help nor harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from jaxtyping import Bool, Float

ROUNDING = 1e-9  # of the largest score: closer than that, two scores are tied
# shares of texts are counted in such parts. It is divided by 1 to 12, and by C(b, 2) for b up to
# 12, so that nearly every share is a whole number of parts. The others are rounded, alike in what
# was found and in what chance gives: p is exact for the rounded shares.
PARTS = 27720
TAIL = 0.025


@dataclass(frozen=True)
class Found:
    """What the scores of one text have found.

    ``share`` of all tie-breaks rank the gold words first, ``recall`` is the expected share of gold
    words among as many first ones, and a decoy comes first in the share ``fooled``. By chance,
    ``share`` is ``tied_share`` with probability ``chance``, and else 0.
    """

    share: float
    recall: float
    fooled: float
    tied_share: float
    chance: float


def found(
    scores: Float[np.ndarray, " unit"], gold: Sequence[int], decoys: Sequence[int] = ()
) -> Found:
    """How far the highest scores are those of the gold words.

    >>> found(np.array([0.1, 3.0, 0.2, 2.0]), gold=[1, 3]).share
    1.0
    >>> found(np.array([0.0, 1.0, 0.0, 0.0]), gold=[1, 3]).share  # one of three tie-breaks
    0.3333333333333333
    """
    is_gold = _among(gold, len(scores))
    wanted = int(is_gold.sum())
    near = ROUNDING * float(np.abs(scores).max())
    last_wanted = np.sort(scores)[-wanted]
    above = scores > last_wanted + near
    tied = np.abs(scores - last_wanted) <= near
    from_tie = wanted - int(above.sum())
    ties = comb(int(tied.sum()), from_tie)

    gold_above, gold_tied = int((is_gold & above).sum()), int((is_gold & tied).sum())
    is_possible = gold_above == above.sum() and gold_tied == from_tie
    first = scores >= scores.max() - near
    return Found(
        share=1 / ties if is_possible else 0.0,
        recall=(gold_above + from_tie * gold_tied / int(tied.sum())) / wanted,
        fooled=float(_among(decoys, len(scores))[first].mean()),
        tied_share=1 / ties,
        chance=ties / comb(len(scores), wanted),
    )


def _among(places: Sequence[int], count: int) -> Bool[np.ndarray, " unit"]:
    among = np.zeros(count, dtype=bool)
    among[list(places)] = True
    return among


def by_chance(texts: Sequence[Found]) -> Float[np.ndarray, " part"]:
    """The distribution of the sum of shares over texts, by chance: the probability of each sum.

    Sums are counted in whole texts where no score is tied, else in ``PARTS`` of a text.

    >>> text = found(np.array([1.0, 2.0]), gold=[0])
    >>> by_chance([text, text]).tolist()
    [0.25, 0.5, 0.25]
    """
    parts = parts_of(texts)
    most = sum(_whole(text.tied_share, parts) for text in texts)
    probability = np.zeros(most + 1)
    probability[0] = 1.0
    for text in texts:
        value = _whole(text.tied_share, parts)
        moved = np.zeros_like(probability)
        moved[value:] = probability[: len(probability) - value]
        probability = (1 - text.chance) * probability + text.chance * moved
    return probability


def parts_of(texts: Sequence[Found]) -> int:
    """Into how many parts a text is cut when shares are counted."""
    return 1 if all(text.tied_share == 1 for text in texts) else PARTS


def p_of(texts: Sequence[Found]) -> float:
    """The chance that random scores, tied alike, find as much in these texts.

    >>> text = found(np.array([1.0, 2.0]), gold=[1])
    >>> p_of([text, text])
    0.25
    """
    parts = parts_of(texts)
    reached = sum(_whole(text.share, parts) for text in texts)
    return min(1.0, float(by_chance(texts)[reached:].sum()))


def chance_range(sets: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """In how many texts of n words, g of them gold, a ranking without ties finds them by chance.

    95 % of random rankings lie within.

    >>> chance_range([(10, 1)] * 30)
    (0, 7)
    """
    texts = [Found(0.0, 0.0, 0.0, 1.0, 1 / comb(n, g)) for n, g in sets]
    up_to = np.cumsum(by_chance(texts))
    last = len(texts)
    low = min(int(np.searchsorted(up_to, TAIL)), last)
    return low, min(int(np.searchsorted(up_to, 1 - TAIL)), last)


def _whole(share: float, parts: int) -> int:
    return round(share * parts)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: of all tests together, one in twenty at most has one false finding.

    >>> [round(p, 9) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted
