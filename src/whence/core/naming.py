"""Naming: are the methods, taken together, better than random rankings?

One test for all of them at once, so that nobody has to pay for the number of methods. If words had
been dealt to ranks by lot, the same lot for every method, each method would stand at a random place
among the random rankings, and methods that rank alike would stand at places alike. So:

1. The place of a method among the random rankings is turned into a normal score.
2. What is judged is the mean of the best third of these scores, of two at least.
3. Its law is that of normal variables that are correlated as the areas of two rankings are.

For an additive game the area between the curves is linear in the ranks, so that over random lots
two areas are correlated as the ranks are. Where words act in pairs and triples, areas of rankings
that differ are less alike than that. docs/evidence.md has the error rates on many kinds of games.

Methods with signs and methods without are asked different questions. Their areas may go together,
or apart, or neither, whatever their ranks: the least favourable of the three is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import factorial, prod
from statistics import NormalDist

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.agreement import ranks
from whence.core.attribution import Attribution
from whence.core.evidence import USUAL_RANKINGS, Trial

DRAWS = 4000  # of the law; one in twenty of them is 200
STREAM = 4  # of random numbers
BEST = 3  # the best third is judged: a few methods that know something are enough
FEWEST = 2  # of the methods judged: two that are rather good are more than one by itself
# how the areas of signed and of unsigned methods may go together: alike, not at all, opposite
TOGETHER = (1.0, 0.0, -1.0)
ROUNDING = 1e-9  # closer than that, two means of scores are equal
LINEAR = 0.95  # the share of the correlation of ranks that is left to areas
DIGITS = 9  # of a correlation: the others are rounding errors


def normal_scores(places: Float[np.ndarray, " method"]) -> Float[np.ndarray, " method"]:
    """Of places between 0 and 1, a half being the middle of the random rankings.

    >>> normal_scores(np.array([0.5, 0.975])).round(2).tolist()
    [0.0, 1.96]
    """
    return np.array([NormalDist().inv_cdf(place) for place in places.tolist()])


def best_third(scores: Float[np.ndarray, "*draw method"]) -> Float[np.ndarray, "*draw"]:
    """The mean of the largest third of them, and of two at least.

    >>> best_third(np.array([0.0, 3.0, -1.0, 2.0, 1.0, 0.0])).item()
    2.5
    """
    count = number_of_best(scores.shape[-1])
    return np.asarray(np.partition(scores, -count, axis=-1)[..., -count:].mean(-1))


def number_of_best(methods: int) -> int:
    """How many methods are the best third.

    >>> [number_of_best(methods) for methods in (1, 2, 5, 9, 21)]
    [1, 2, 2, 3, 7]
    """
    return min(methods, max(FEWEST, methods // BEST))


def of_areas(
    of_ranks: Float[np.ndarray, "method method"],
) -> Float[np.ndarray, "method method"]:
    """How areas are taken to be correlated, given the correlations of the ranks.

    A little less: words act in pairs too, and two rankings that are nearly equal differ in them.
    Equal rankings have equal areas.

    >>> of_areas(np.array([[1.0, 0.5], [0.5, 1.0]]))[0].tolist()
    [1.0, 0.475]
    """
    are_equal = of_ranks >= 1 - ROUNDING
    return LINEAR * of_ranks + (1 - LINEAR) * are_equal


@dataclass(frozen=True)
class Together:
    """The methods' rankings of one text, taken together.

    ``p`` is the chance that rankings which know nothing, as much alike as these, do as well.
    ``smallest_p`` is the p of the best that these methods could have done here: where it is above
    the level, the test can see nothing. ``methods`` counts those that rank something.
    """

    p: float
    smallest_p: float
    methods: int


def together(
    places: Float[np.ndarray, " method"],
    counts: Int[np.ndarray, " method"],
    correlations: Float[np.ndarray, "method method"],
    signed: Bool[np.ndarray, " method"] | None = None,
) -> Together:
    """The test of all methods under one removal.

    ``places`` are theirs among the random rankings, ``counts`` how many different places each could
    have had. ``correlations`` are those of their ranks. ``signed`` says which methods have signs;
    by default they are all alike.

    >>> alike = np.array([[1.0, 0.9], [0.9, 1.0]])
    >>> found = together(np.array([0.98, 0.97]), np.array([101, 101]), alike)
    >>> round(found.p, 2), found.smallest_p < 0.05
    (0.02, True)
    """
    best = 1 - 0.5 / counts
    places = np.clip(places, 1 - best, best)
    if len(places) == 1:  # its own p, which needs no draws
        return Together(float(1 - places[0] + 0.5 / counts[0]), float(1 / counts[0]), 1)
    if signed is None:
        signed = np.ones(len(places), dtype=bool)
    p, smallest_p = 0.0, 0.0
    for c in _possible(of_areas(correlations), signed):
        order = _an_order(places, counts, c)
        rounded = np.round(c[np.ix_(order, order)], DIGITS)
        law = _law(rounded.tobytes(), tuple(counts[order].tolist()))
        p = max(p, _tail(law, float(best_third(normal_scores(places)))))
        smallest_p = max(smallest_p, _tail(law, float(best_third(normal_scores(best)))))
    return Together(p, smallest_p, len(places))


def _possible(
    c: Float[np.ndarray, "method method"], signed: Bool[np.ndarray, " method"]
) -> list[Float[np.ndarray, "method method"]]:
    """The correlations that areas may have, of which between two questions little is known."""
    is_one_question = signed[:, None] == signed[None, :]
    if is_one_question.all():
        return [c]
    return [np.where(is_one_question, c, way * c) for way in TOGETHER]


def _an_order(
    places: Float[np.ndarray, " method"],
    counts: Int[np.ndarray, " method"],
    c: Float[np.ndarray, "method method"],
) -> Int[np.ndarray, " method"]:
    """An order of the methods that does not hang on the order in which they came.

    The draws are the same in every run; this makes them the same for every order of the methods.
    """
    known = [places, counts, c.sum(0), (c**2).sum(0), (c**3).sum(0)]
    return np.lexsort([np.round(values, DIGITS) for values in known])


def _tail(law: Float[np.ndarray, " draw"], value: float) -> float:
    """The share of draws that are at least as large, the value itself counted among them."""
    smaller = int(np.searchsorted(law, value - ROUNDING))
    return (len(law) - smaller + 1) / (len(law) + 1)


@lru_cache(maxsize=256)
def _law(correlations: bytes, counts: tuple[int, ...]) -> Float[np.ndarray, " draw"]:
    """What the mean of the best third is by chance: sorted draws of it."""
    methods = len(counts)
    c = np.frombuffer(correlations).reshape(methods, methods)
    draws = _evenly(methods) @ _root(c)
    of_places = [_on_places(d, n) for d, n in zip(draws.T, counts, strict=True)]
    return np.sort(best_third(np.stack(of_places, axis=-1)))


@lru_cache(maxsize=64)
def _evenly(methods: int) -> Float[np.ndarray, "draw method"]:
    """Independent normal draws, of which each column is spread evenly (a Latin hypercube)."""
    quantiles = (np.arange(DRAWS) + 0.5) / DRAWS
    column = normal_scores(quantiles)
    rng = np.random.default_rng([STREAM, methods])
    return rng.permuted(np.tile(column, (methods, 1)), axis=1).T


def _root(c: Float[np.ndarray, "method method"]) -> Float[np.ndarray, "method method"]:
    """What turns independent draws into draws with these correlations, which may be singular."""
    sizes, axes = np.linalg.eigh(c)
    axes = axes * np.where(axes.sum(0) < 0, -1.0, 1.0)
    return np.sqrt(np.maximum(sizes, 0.0))[::-1, None] * axes.T[::-1]


def _on_places(draws: Float[np.ndarray, " draw"], count: int) -> Float[np.ndarray, " draw"]:
    """The normal scores of the places that the draws would have among so many."""
    borders, scores = _places(count)
    return scores[np.searchsorted(borders, draws)]


@lru_cache(maxsize=256)
def _places(count: int) -> tuple[Float[np.ndarray, " border"], Float[np.ndarray, " place"]]:
    """The borders between so many places of equal chance, and the normal score of each place."""
    borders = normal_scores(np.arange(1, count) / count)
    return borders, normal_scores((np.arange(count) + 0.5) / count)


# ---------------------------------------------------------------------- what the records say


def judged_together(attributions: Mapping[str, Attribution]) -> Together | None:
    """The test of all these methods, which have verdicts; it must hold under every removal.

    None where no method ranks anything. It needs nothing beyond what is stored of each method.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad at all", ["lime", "occlusion"])
    >>> judged_together(c.attributions).methods
    2
    """
    ranked = {name: a for name, a in attributions.items() if ranks_something(a)}
    by_removal: dict[str, list[tuple[Attribution, Trial]]] = {}
    for a in ranked.values():
        for trial in _trials(a):
            by_removal.setdefault(trial.removal, []).append((a, trial))
    each = [_under_one_removal(tried) for tried in by_removal.values()]
    if not each:
        return None
    return Together(
        p=max(one.p for one in each),
        smallest_p=max(one.smallest_p for one in each),
        methods=len(ranked),
    )


def ranks_something(a: Attribution) -> bool:
    """Whether there is a ranking at all: not where scores are equal, or zero by construction."""
    if a.evidence is not None and a.evidence.ranks_nothing:
        return False
    return bool(_rank_row(a).any())


def _under_one_removal(tried: list[tuple[Attribution, Trial]]) -> Together:
    rows = np.stack([_rank_row(a) for a, _ in tried])
    counts = np.array([_number_of_places(a) for a, _ in tried])
    p = np.array([1.0 if trial.p is None else trial.p for _, trial in tried])
    signed = np.array([a.signed for a, _ in tried])
    return together(places_of(p, counts), counts, np.clip(rows @ rows.T, -1.0, 1.0), signed)


def places_of(
    p: Float[np.ndarray, " method"], counts: Int[np.ndarray, " method"]
) -> Float[np.ndarray, " method"]:
    """The places among the random rankings, from how many of these do as well.

    Random rankings that do as well count as better ones, as they do in p.

    >>> places_of(np.array([1 / 101, 1.0]), np.array([101, 101])).round(3).tolist()
    [0.995, 0.005]
    """
    return 1 - p + 0.5 / counts


def _trials(a: Attribution) -> tuple[Trial, ...]:
    """Its trials; the verdict itself, where a stored result has no more."""
    evidence = a.evidence
    if evidence is None or evidence.verdict is None:
        return ()
    if evidence.trials or evidence.p is None:
        return evidence.trials
    return (Trial("", evidence.verdict, 0.0, 0.0, 0.0, p=evidence.p),)


def _number_of_places(a: Attribution) -> int:
    """How many places the method could have had among its random rankings.

    It is one of them itself where these are all that there are; otherwise it is one more.
    """
    rankings = USUAL_RANKINGS
    if a.evidence is not None and a.evidence.rankings:
        rankings = a.evidence.rankings
    every = prod(_number_of_orders(piece) for piece in _pieces(a))
    return rankings if rankings >= every else rankings + 1


def _number_of_orders(scores: Float[np.ndarray, " unit"]) -> int:
    """In how many ways the scores can be dealt to the units: fewer where some are equal."""
    _, sizes = np.unique(scores, return_counts=True)
    return factorial(len(scores)) // prod(factorial(size) for size in sizes.tolist())


def _rank_row(a: Attribution) -> Float[np.ndarray, " unit"]:
    """Ranks about their mean, as a vector of length one; zero where nothing is ranked.

    Of a text in windows each window has ranks of its own, as shares of its units.
    """
    pieces = []
    for piece in _pieces(a):
        of_piece = ranks(piece)
        pieces.append((of_piece - of_piece.mean()) / len(piece))
    row = np.concatenate(pieces)
    length = np.linalg.norm(row)
    return row / length if length else row


def _pieces(a: Attribution) -> list[Float[np.ndarray, " unit"]]:
    """The scores of each window, in the order in which they were ranked: as they are."""
    if not a.windows:
        return [a.scores]
    return [a.scores[window.start : window.end] for window in a.windows]
