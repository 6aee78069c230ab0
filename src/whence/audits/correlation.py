"""Correlation: does attention rank words as gradients and leave-one-out rank them?

The first experiment of Jain & Wallace (2019, section 4.1): Kendall's τ between the weights of
attention and each of two measures of importance that do not come from attention,

    gradient        |∇x·x|            gradient-x-input, its size
    leave-one-out   |y₋ₜ − y|         occlusion, its size

beside two yardsticks: τ of these two with each other, as no reading can be asked to agree with both
where they do not agree among themselves, and τ of random weights, which is about zero.

Two things differ from the published code. There the gradient does not flow through the attention
(it is detached); here it is that of the whole model, as a transformer has no path beside attention
from one word to another. And in its ``CorrStats`` the names of two results are swapped: the key
"ag" holds τ(leave-one-out, attention), and "al" holds τ(attention, gradient). Whoever compares
numbers with its tables should know. Normalising scores to a sum of one, as it does, changes no τ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.audit import Observation
from whence.core.errors import InputError

FEWEST_UNITS = 3  # of two units τ is 1 or −1, whatever the method
ROUNDING = 1e-6  # of the largest score: closer than that, two scores of a float32 model are equal
SIGNIFICANT = 0.05  # as the paper has it
SHUFFLE_STREAM = 15  # of random numbers


@dataclass(frozen=True)
class Correlation:
    """How far readings of attention rank the words of a text as two other measures do.

    It is a function of scores that were computed before: it runs no model and costs no pass.
    ``gradient`` and ``leave_one_out`` are the methods that readings are compared with; ``shuffles``
    is how many permuted copies of a reading stand for random weights.

    >>> scores = {
    ...     "rollout": np.array([0.1, 0.2, 0.3, 0.4]),
    ...     "gradient-x-input": np.array([-1.0, 2.0, -3.0, 4.0]),
    ... }
    >>> [(o.quantity, round(o.value, 3)) for o in Correlation()(scores, ["rollout"])]
    [('tau-gradient', 1.0), ('shuffled-gradient', 0.333), ('p-gradient', 0.083), \
('significant-gradient', 0.0)]
    """

    gradient: str = "gradient-x-input"
    leave_one_out: str = "occlusion"
    shuffles: int = 20

    name: ClassVar[str] = "correlation"
    null: ClassVar[str] = (
        "Attention ranks words no more like gradients or leave-one-out than the same weights "
        "on other words do: τ is 0 on average, and p < .05 as often as there."
    )
    effect: ClassVar[str] = "Kendall's τ-b, from −1 (the opposite order) to 1 (the same order)"

    def __post_init__(self) -> None:
        if self.shuffles < 1:
            raise InputError(f"shuffles is at least 1 random copy, not {self.shuffles}.")

    def __call__(
        self,
        scores: Mapping[str, Float[np.ndarray, " unit"]],
        readings: Sequence[str],
        seed: int = 0,
    ) -> list[Observation]:
        """What is found on one text, given the scores of its units by each method.

        For each reading: ``tau-gradient`` and ``tau-loo``, with the mean τ of permuted copies as
        their control; ``shuffled-…``, the τ of one such copy, whose spread over texts is that of
        random weights; the p-values ``p-…`` (see ``p_value``), and ``significant-…``, which is 1
        where p < .05, with the share of copies for which that is so as its control: 5 % on long
        texts, and none on three or four units, whose orders are too few. Without a reading, the
        same of ``…-gradient-loo``.

        There is no number where a method is not among the scores, where its scores are all equal,
        or where the text has fewer than three units. All scores count by their size.
        """
        tiers = _tiers_of_all(scores)
        observations: list[Observation] = []
        for reading in readings:
            for label, other in (("gradient", self.gradient), ("loo", self.leave_one_out)):
                if reading in tiers and other in tiers:
                    both = tiers[reading], tiers[other]
                    observations += self._compared(*both, label, reading, seed)

        if self.gradient in tiers and self.leave_one_out in tiers:
            both = tiers[self.gradient], tiers[self.leave_one_out]
            observations += self._compared(*both, "gradient-loo", "", seed)
        return observations

    def _compared(
        self,
        one: Int[np.ndarray, " unit"],
        other: Int[np.ndarray, " unit"],
        label: str,
        reading: str,
        seed: int,
    ) -> list[Observation]:
        of_copies = shuffled_taus(one, other, self.shuffles, seed)
        chance = float(of_copies.mean())
        tau = kendall(one, other)
        p = p_value(one, other)
        is_significant = float(p < SIGNIFICANT)
        return [
            Observation(self.name, f"tau-{label}", tau, reading=reading, control=chance),
            Observation(self.name, f"shuffled-{label}", float(of_copies[0]), reading=reading),
            Observation(self.name, f"p-{label}", p, reading=reading),
            Observation(
                self.name,
                f"significant-{label}",
                is_significant,
                reading=reading,
                control=share_significant(one, other, of_copies, seed),
            ),
        ]


def _tiers_of_all(
    scores: Mapping[str, Float[np.ndarray, " unit"]],
) -> dict[str, Int[np.ndarray, " unit"]]:
    """The tiers of each method whose scores rank anything."""
    sizes = {name: np.abs(np.asarray(each, dtype=np.float64)) for name, each in scores.items()}
    if len({size.shape for size in sizes.values()}) > 1:
        listed = ", ".join(f"{name} {len(size)}" for name, size in sizes.items())
        raise InputError(f"scores are of the same units of one text, not of: {listed}.")

    every = {}
    for name, size in sizes.items():
        if not np.isfinite(size).all():
            raise InputError(f"the scores of {name} are not all finite numbers.")
        if len(size) < FEWEST_UNITS:
            continue
        ranked = tiers(size)
        if ranked.max() > 0:
            every[name] = ranked
    return every


def tiers(sizes: Float[np.ndarray, " unit"]) -> Int[np.ndarray, " unit"]:
    """The place of each size among the different ones, from 0 for the smallest.

    Sizes that differ by no more than rounding share a place. Without that, words on which the
    output does not depend would be ranked by the last digits of the model's arithmetic.

    >>> tiers(np.array([0.5, 0.1, 0.5 + 1e-9, 0.7])).tolist()
    [1, 0, 1, 2]
    """
    order = np.argsort(sizes, kind="stable")
    steps_up = np.diff(sizes[order]) > ROUNDING * sizes.max(initial=0.0)
    places = np.zeros(len(sizes), dtype=np.int64)
    places[order[1:]] = np.cumsum(steps_up)
    return places


def kendall(one: Any, other: Any) -> float:
    """Kendall's τ-b of two rankings with ties (Kendall 1945).

    (concordant − discordant pairs) / √(pairs not tied in one · pairs not tied in the other). NaN
    where one side is constant.

    >>> kendall([1, 2, 3], [1, 3, 2]), kendall([1, 1, 2], [1, 2, 3]).__round__(6)
    (0.3333333333333333, 0.816497)
    """
    signs, others = _signs(one), _signs(other)
    return float(_tau((signs * others).sum(), signs, others))


def shuffled_taus(one: Any, other: Any, shuffles: int, seed: int) -> Float[np.ndarray, " shuffle"]:
    """τ-b of permuted copies of the first ranking with the second.

    A copy has the same values, and so the same ties, on other units.
    """
    signs, others = _signs(one), _signs(other)
    sums = []
    for places in _orders(len(signs), shuffles, seed):
        sums.append((signs[np.ix_(places, places)] * others).sum())
    return _tau(np.array(sums), signs, others)


def _orders(units: int, shuffles: int, seed: int) -> list[Int[np.ndarray, " unit"]]:
    rng = np.random.default_rng([seed, SHUFFLE_STREAM, units])
    return [rng.permutation(units) for _ in range(shuffles)]


def share_significant(
    one: Any, other: Any, of_copies: Float[np.ndarray, " shuffle"], seed: int
) -> float:
    """The share of the permuted copies whose p is below .05; ``of_copies`` are their τ.

    All copies have the same ties, and so p falls as |τ| rises: it is asked for a few of them only.
    """
    orders = _orders(len(one), len(of_copies), seed)
    sizes = np.abs(of_copies)
    by_size = np.argsort(-sizes, kind="stable")
    low, high = 0, len(by_size)  # the first `low` are significant, and from `high` on none is
    while low < high:
        middle = (low + high) // 2
        if p_value(np.asarray(one)[orders[by_size[middle]]], other) < SIGNIFICANT:
            low = middle + 1
        else:
            high = middle
    return low / len(by_size)


def _signs(values: Any) -> Float[np.ndarray, "unit unit"]:
    """Of each pair of units: 1 where the first has more, −1 where it has less, 0 for a tie."""
    values = np.asarray(values, dtype=np.float64)
    return np.sign(values[:, None] - values[None, :])


def _tau(sums: Any, signs: Float[np.ndarray, "unit unit"], others: Any) -> Any:
    # every pair stands twice in the matrices, above and below as well
    untied = np.abs(signs).sum() * np.abs(others).sum()
    return sums / np.sqrt(untied) if untied else sums * np.nan


def p_value(one: Any, other: Any) -> float:
    """The chance that two unrelated rankings have a τ of this size or larger, in both directions.

    It is exact where no scores are tied and there are at most 33 units, and scipy's normal
    approximation with the variance for ties elsewhere. The latter is coarse for fewer than about
    ten units.

    >>> p_value([1, 2, 3, 4], [1, 2, 3, 4])  # 2 of the 24 orders are as extreme
    0.08333333333333333
    """
    from scipy.stats import kendalltau  # heavy

    result: Any = kendalltau(one, other, variant="b", method="auto")
    return float(result.pvalue)
