"""From a game to scores: by enumeration where that is no dearer, else by rounds of sampling until the standard error is small enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from whence.core.errors import SettingsError
from whence.core.scores import Scores
from whence.games.estimating import Estimate, Sample, Stand, estimate, may_fit_by_chance
from whence.games.functionals import Functional
from whence.games.sampling import all_masks, draw_pairs, law_for

Samples = int | Literal["auto"]
FEWEST = 10  # samples: the two ends and four pairs
WORTH = 2.1  # budgets that an exact answer is worth: all 4096 masks of twelve units where 2000 were allowed
FIRST_ROUND = 100  # samples, or four for each coefficient
GROWTH = 1.5  # of the number of samples from one round to the next, or its square


@runtime_checkable
class AnyGame(Protocol):
    """Whatever gives a value for each mask over ``size`` units; True keeps a unit."""

    @property
    def size(self) -> int:
        """The number of units."""
        ...

    def __call__(self, masks: Any, /) -> Any:
        """The value at each mask."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to sample. ``auto`` draws until the root mean square standard error of the ``top`` largest scores is at most
    ``tolerance`` times their root mean square, or ``budget`` masks are spent; up to ``exact`` units, and within about
    twice the budget, it enumerates instead."""

    samples: Samples = "auto"
    top: int = 5
    tolerance: float = 0.1
    budget: int = 2000
    exact: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples != "auto" and self.samples < FEWEST:
            raise ValueError(f"samples must be 'auto' or at least {FEWEST}, not {self.samples}")
        if self.budget < FEWEST:
            raise ValueError(f"budget must be at least {FEWEST} masks, not {self.budget}")
        if self.top < 1:
            raise ValueError(
                f"top is the number of units whose error counts, at least 1, not {self.top}"
            )
        if not self.tolerance >= 0:
            raise ValueError(f"tolerance cannot be negative: {self.tolerance}")
        if not 0 <= self.exact <= 20:
            raise ValueError(
                f"exact is a number of units from 0 to 20 (2**20 masks), not {self.exact}"
            )

    def enumerates(self, units: int) -> bool:
        """Whether all 2^d masks are asked for at once."""
        return units <= 1 or (
            units <= self.exact and 2**units <= WORTH * self.budget
            if self.samples == "auto"
            else 2**units <= self.samples
        )


Sampler = Callable[
    [int], tuple[Estimate, int]
]  # β̂ and the distinct masks paid for, from (about) so many samples


def score(game: AnyGame, functional: Functional, plan: Plan, estimator: Stand = "auto") -> Scores:
    """The functional of a game, exactly or from complement pairs.

    >>> from whence.games.functionals import shapley
    >>> class Product:
    ...     size = 2
    ...     def __call__(self, masks):
    ...         return masks.prod(1).astype(float)
    >>> score(Product(), shapley(2), Plan()).units
    array([0.5, 0.5])
    """
    law = law_for(functional)

    def sampled(samples: int) -> tuple[Estimate, int]:
        sample = Sample.of(game, draw_pairs(game.size, law, (samples - 2) // 2, plan.seed), law)
        if estimator == "plain" and len(sample.masks) < (fewest := 2 * (game.size + 2)):
            raise SettingsError(
                f"a regression on {game.size} units from {len(sample.masks)} masks fits by chance, and its standard error would be "
                f"nothing: draw at least {fewest}, or take estimator='surrogate'."
            )
        # a surrogate need not be fitted where the regression alone will do
        if estimator == "auto" and plan.samples == "auto" and not may_fit_by_chance(sample):
            plain = estimate(functional, sample, "plain")
            if relative_error(plain.units, plain.standard_error, plan.top) <= plan.tolerance:
                return plain, len(sample.masks)
        return estimate(functional, sample, estimator, plan.seed), len(sample.masks)

    return score_by(sampled, game, functional, plan)


def score_by(sampled: Sampler, game: AnyGame, functional: Functional, plan: Plan) -> Scores:
    """Enumerate, or call ``sampled`` with more and more samples until the plan is met."""
    if plan.enumerates(game.size):
        return enumerated(game, functional)
    if plan.samples != "auto":
        found, distinct = sampled(plan.samples)
        return _scores(found, distinct, f"{found.estimator} estimate from {distinct} masks")
    step, first = 0, max(FIRST_ROUND, 4 * (game.size + 1))
    while True:
        samples = min(int(first * GROWTH**step), plan.budget)
        if 2**game.size <= samples:
            return enumerated(game, functional)
        found, distinct = sampled(samples)
        error = relative_error(found.units, found.standard_error, plan.top)
        top = min(plan.top, game.size)
        said = f"{found.estimator} estimate from {distinct} masks: the standard error of the top {top} is {error:.2g} of them"
        if error <= plan.tolerance:
            return _scores(found, distinct, f"{said}, as asked for")
        if samples == plan.budget:
            return _scores(
                found, distinct, f"{said}, and the budget of {plan.budget} masks is spent"
            )
        # on the same ladder for all methods, so that they share masks and surrogates
        step += (
            1
            if samples * (error / max(plan.tolerance, 1e-9)) ** 2 <= first * GROWTH ** (step + 1)
            else 2
        )


def enumerated(game: AnyGame, functional: Functional) -> Scores:
    """The functional from the game's values at all 2^d masks."""
    masks = all_masks(game.size)
    units = functional.of_values(masks, np.asarray(game(masks), dtype=np.float64))
    found = Estimate(units, np.zeros(len(units)), "enumeration", 1.0)
    return _scores(found, len(masks), f"exact: all {len(masks)} masks")


def relative_error(
    units: Float[np.ndarray, " unit"], standard_error: Float[np.ndarray, " unit"], top: int
) -> float:
    """The standard error of the largest scores beside them, both as root mean squares.

    >>> relative_error(np.array([3.0, 0.1, -4.0]), np.array([0.3, 9.0, 0.4]), top=2)
    0.1
    """
    largest = np.argsort(-np.abs(units))[:top]
    error, scale = (float(np.sqrt((x[largest] ** 2).mean())) for x in (standard_error, units))
    return error / scale if scale > 0 else (0.0 if error == 0 else float("inf"))


def _scores(found: Estimate, distinct: int, note: str) -> Scores:
    detail: dict[str, Any] = {
        "samples": distinct,
        "distinct": distinct,
        "estimator": found.estimator,
    }
    if (
        found.estimator != "enumeration"
    ):  # where nothing was left to a stand-in, how well one would fit is not known
        detail["r2"] = found.r2
    return Scores(units=found.units, standard_error=found.standard_error, note=note, detail=detail)
