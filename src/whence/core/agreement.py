"""How far methods agree on one text.

Rank correlation, overlap of the top units, and the units on which they conflict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, compress
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from whence.core.attribution import Attribution
from whence.core.errors import SettingsError
from whence.core.evidence import CONTROL
from whence.core.once import once
from whence.core.percent import digits
from whence.core.showing import visible
from whence.core.target import Target

ROUNDING = 1e-9  # scores whose range is smaller than this share of their size rank nothing
# shares of the largest score that a method gives on a text: from STRONG on a unit is strong in it,
# below WEAK it is weak, and its sign counts for nothing
STRONG, WEAK = 0.5, 0.1


@dataclass(frozen=True)
class Conflict:
    """A unit of which some methods say the opposite of others, by sign or by size.

    Methods have scales of their own, so a score is taken as a share of the largest one of its
    method on the text. ``kind`` "sign": ``one`` has the unit for the target and ``other`` against
    it, each by a tenth at least, and some method of the two camps by half; of an entropy or a
    divergence, ``one`` has it raise that, ``other`` lower it. ``kind`` "size":
    ``one`` gives it half at least, ``other`` less than a tenth. ``one_shares`` and
    ``other_shares`` are these shares, with signs where the method has any.

    The control, random scores, takes no part.
    ``strength`` is the smaller camp's share of the methods that could take part, so 0.5 at most.
    ``gap`` says how far two methods are apart on the unit, as the mean over every two.
    """

    unit: int
    name: str
    kind: Literal["sign", "size"]
    one: tuple[str, ...]
    other: tuple[str, ...]
    strength: float
    gap: float = 0.0
    one_shares: tuple[float, ...] = ()
    other_shares: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """What ``Comparison.agreement`` gives: matrices "method method", in the order of ``methods``.

    ``correlation`` is Spearman's (or Kendall's tau-b) of the scores; between a method with signs
    and one without, of their sizes. ``overlap`` is the share of the top ``k`` units that two
    methods have in common; ``chance`` is what two random rankings share. A method whose scores are
    all equal ranks nothing: NaN. ``explained`` is the target, which says what a sign means.
    """

    methods: tuple[str, ...]
    measure: str
    correlation: Float[np.ndarray, "method method"]
    overlap: Float[np.ndarray, "method method"]
    k: int
    chance: float
    conflicts: tuple[Conflict, ...]
    explained: Target = field(default_factory=Target)

    @once
    def pairs(self) -> list[tuple[str, str, float]]:
        """Two methods and their correlation, those that agree most first.

        Pairs without a correlation are left out.
        """
        pairs = []
        for i, j in combinations(range(len(self.methods)), 2):
            correlation = float(self.correlation[i, j])
            if np.isfinite(correlation):
                pairs.append((self.methods[i], self.methods[j], correlation))
        return sorted(pairs, key=lambda pair: -pair[2])

    def mean_correlation(self) -> dict[str, float]:
        """Of each method with the others; NaN where it has none."""
        means = _mean_with_others(self.correlation).tolist()
        return dict(zip(self.methods, means, strict=True))

    def mean_overlap(self) -> dict[str, float]:
        """Of each method with the others; NaN where it has none."""
        means = _mean_with_others(self.overlap).tolist()
        return dict(zip(self.methods, means, strict=True))

    def table(self) -> list[dict[str, Any]]:
        """One row per pair of methods; ready for ``pandas.DataFrame``."""
        rows = []
        for i, j in combinations(range(len(self.methods)), 2):
            row = {
                "method": self.methods[i],
                "other": self.methods[j],
                "correlation": float(self.correlation[i, j]),
                "overlap": float(self.overlap[i, j]),
            }
            rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, None for NaN."""
        conflicts = []
        for conflict in self.conflicts:
            stored = asdict(conflict)
            for name in ("one", "other", "one_shares", "other_shares"):
                stored[name] = list(stored[name])
            conflicts.append(stored)
        return {
            "methods": list(self.methods),
            "measure": self.measure,
            "correlation": _plain(self.correlation),
            "overlap": _plain(self.overlap),
            "k": self.k,
            "chance": self.chance,
            "conflicts": conflicts,
        }

    def __repr__(self) -> str:
        ends = ""
        if self.pairs:
            most, least = self.pairs[0], self.pairs[-1]
            ends = f"most {_pair_in_words(*most)}, least {_pair_in_words(*least)}; "
        return visible(
            f"Agreement({len(self.methods)} methods by {self.measure}: "
            f"{ends}top {self.k} by chance {digits(self.chance)}%)"
        )


def _pair_in_words(method: str, other: str, correlation: float) -> str:
    return f"{method} ~ {other} {correlation:.2f}"


def agreement(
    attributions: Mapping[str, Attribution], k: int = 5, measure: str = "spearman"
) -> Agreement:
    """Compare every method with every other on the same units.

    ``k`` is the number of top units; where there are fewer, all of them.

    >>> agreement(c.attributions, k=3).overlap             # doctest: +SKIP
    """
    if k < 1:
        raise SettingsError(f"k is the number of top units to compare, at least 1, not {k}.")
    if measure not in ("spearman", "kendall"):
        raise SettingsError(f"measure is 'spearman' or 'kendall', not {measure!r}.")
    every = list(attributions.values())
    names, units = every[0].units.distinct_names, len(every[0].scores)
    k = min(k, units)
    scores = np.stack([_cleaned(attribution.scores) for attribution in every])
    signed = np.array([attribution.signed for attribution in every])
    sizes = np.where(signed[:, None], np.abs(scores), scores)

    correlate = rank_correlation if measure == "spearman" else _kendall
    # a score without a sign is a size, so beside one the other method's size is the same question
    both = signed[:, None] & signed[None, :]
    correlation = np.where(both, correlate(scores), correlate(sizes))

    methods = tuple(attributions)
    target = every[0].target
    # for the target is above zero, but of a loss it is below
    side = -1 if target.sign_of_support < 0 else 1
    # what the control says of a unit is drawn by lot, and contradicts nobody
    says_something = np.array([attribution.method != CONTROL for attribution in every])
    shares = shares_of_largest(np.where(says_something[:, None], scores, 0.0))
    conflicts = _conflicts(methods, names, shares, signed, side)
    return Agreement(
        methods=methods,
        measure=measure,
        correlation=correlation,
        overlap=top_overlap(sizes, k),
        k=k,
        chance=k / units,
        conflicts=tuple(conflicts),
        explained=target,
    )


def ranks(values: Float[np.ndarray, " unit"]) -> Float[np.ndarray, " unit"]:
    """From 1 for the smallest; equal values share the mean of their ranks.

    >>> ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = count.cumsum() - (count - 1) / 2
    return mean_rank[place.reshape(-1)]


def rank_correlation(
    values: Float[np.ndarray, "method unit"],
) -> Float[np.ndarray, "method method"]:
    """Spearman's: Pearson's correlation of the ranks, which stays right with ties.

    It is NaN for a row of equal values.

    >>> rank_correlation(np.array([[1.0, 2.0, 3.0], [9.0, 4.0, 1.0]])).round(6).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    r = np.stack([ranks(row) for row in values])
    r -= r.mean(1, keepdims=True)
    size = np.sqrt((r**2).sum(1))
    size = np.where(size > 0, size, np.nan)
    out = np.clip(r @ r.T / np.outer(size, size), -1.0, 1.0)
    return _with_diagonal(out, np.isfinite(size))


def top_overlap(
    sizes: Float[np.ndarray, "method unit"], k: int
) -> Float[np.ndarray, "method method"]:
    """|A ∩ B| / k of the top ``k`` units; NaN for a row of equal values.

    Units tied at the last place share what is left of it, so that the overlap is the mean over
    every way to break the tie.

    >>> top_overlap(np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 3.0, 2.0, 1.0]]), k=2)[0, 1].item()
    0.5
    """
    member = np.stack([_membership(row, k) for row in sizes])
    ranked = np.ptp(sizes, axis=1) > 0
    member[~ranked] = np.nan
    return _with_diagonal(member @ member.T / k, ranked)


def _membership(sizes: Float[np.ndarray, " unit"], k: int) -> Float[np.ndarray, " unit"]:
    """The chance that a unit is among the top ``k``, ties broken at random."""
    last = np.partition(sizes, -k)[-k]
    above, tied = sizes > last, sizes == last
    places_left = k - above.sum()
    return above + tied * places_left / tied.sum()


def top_units(sizes: Float[np.ndarray, " unit"], k: int) -> Bool[np.ndarray, " unit"]:
    """The ``k`` largest, without those that share the last place with one that is left out.

    >>> top_units(np.array([3.0, 1.0, 1.0, 0.0]), 2).tolist()
    [True, False, False, False]
    """
    if np.ptp(sizes) == 0:
        return np.zeros(len(sizes), dtype=bool)
    return (_membership(sizes, k) == 1.0) & (sizes > 0)


def _cleaned(scores: Float[np.ndarray, " unit"]) -> Float[np.ndarray, " unit"]:
    """Zeros where the scores differ by rounding alone."""
    if np.ptp(scores) > ROUNDING * np.abs(scores).max(initial=0.0):
        return scores
    return np.zeros_like(scores)


def _with_diagonal(
    matrix: Float[np.ndarray, "method method"], ranked: Bool[np.ndarray, " method"]
) -> Float[np.ndarray, "method method"]:
    """A method agrees with itself, rounding and ties aside; one that ranks nothing with none."""
    np.fill_diagonal(matrix, np.where(ranked, 1.0, np.nan))
    return matrix


def _kendall(values: Float[np.ndarray, "method unit"]) -> Float[np.ndarray, "method method"]:
    from scipy.stats import kendalltau

    n = len(values)
    out = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(i):
            tau: Any = kendalltau(values[i], values[j])[0]
            out[i, j] = out[j, i] = float(tau)
    return _with_diagonal(out, np.ptp(values, axis=1) > 0)


def _mean_with_others(matrix: Float[np.ndarray, "method method"]) -> Float[np.ndarray, " method"]:
    others = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)
    known = np.isfinite(others).sum(1)
    means = np.nansum(others, axis=1) / np.maximum(known, 1)
    return np.where(known > 0, means, np.nan)


def shares_of_largest(
    scores: Float[np.ndarray, "method unit"],
) -> Float[np.ndarray, "method unit"]:
    """Each score as a share of the largest size that its method gives; zeros where that is zero.

    >>> shares_of_largest(np.array([[2.0, -4.0], [0.0, 0.0]])).tolist()
    [[0.5, -1.0], [0.0, 0.0]]
    """
    largest = np.abs(scores).max(1, initial=0.0, keepdims=True)
    return scores / np.where(largest > 0, largest, 1.0)


def _conflicts(
    methods: Sequence[str],
    names: Sequence[str],
    shares: Float[np.ndarray, "method unit"],
    signed: Bool[np.ndarray, " method"],
    side: int,
) -> list[Conflict]:
    """Those on which methods are furthest apart come first.

    A share with the sign of ``side`` is for the target.

    Every method counts as one voice, so that one that differs from all others makes no wide gap.
    A method whose scores are all equal has no voice, and a single unit is no matter of dispute.
    """
    if shares.shape[1] < 2:
        return []
    ranked = np.ptp(np.where(signed[:, None], shares, np.abs(shares)), axis=1) > 0
    gaps = _gaps(shares[ranked], signed[ranked])
    sizes, has_sign = np.abs(shares), signed[:, None] & ranked[:, None]
    speaks_for = has_sign & (side * shares >= WEAK)
    speaks_against = has_sign & (side * shares <= -WEAK)
    strong, weak = ranked[:, None] & (sizes >= STRONG), ranked[:, None] & (sizes < WEAK)
    somewhere_strong = ((speaks_for | speaks_against) & strong).any(0)

    camps: tuple[tuple[Literal["sign", "size"], Any, Any, int], ...] = (
        ("sign", speaks_for & somewhere_strong, speaks_against, int((signed & ranked).sum())),
        ("size", strong, weak, int(ranked.sum())),
    )
    conflicts = []
    for i, name in enumerate(names):
        for kind, one, other, voices in camps:
            smaller = min(one[:, i].sum(), other[:, i].sum())
            if not smaller:
                continue
            conflict = Conflict(
                i,
                name,
                kind,
                one=tuple(compress(methods, one[:, i])),
                other=tuple(compress(methods, other[:, i])),
                strength=float(smaller / voices),
                gap=float(gaps[i]),
                one_shares=tuple(shares[one[:, i], i].tolist()),
                other_shares=tuple(shares[other[:, i], i].tolist()),
            )
            conflicts.append(conflict)
    return sorted(conflicts, key=lambda c: (-c.gap, -c.strength, c.kind != "sign", c.unit))


def _gaps(
    shares: Float[np.ndarray, "method unit"], signed: Bool[np.ndarray, " method"]
) -> Float[np.ndarray, " unit"]:
    """How far two methods are apart on each unit: the mean over every two.

    Beside a method without signs, the size of the other is the same question.
    """
    apart = []
    for i, j in combinations(range(len(shares)), 2):
        one, other = shares[i], shares[j]
        if not (signed[i] and signed[j]):
            one, other = np.abs(one), np.abs(other)
        apart.append(np.abs(one - other))
    if not apart:
        return np.zeros(shares.shape[1])
    return np.mean(apart, axis=0)


def _plain(matrix: Float[np.ndarray, "method method"]) -> list[list[float | None]]:
    return [_without_nan(row) for row in matrix.tolist()]


def _without_nan(row: list[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in row]
