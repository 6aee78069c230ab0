"""From a game to scores: by enumeration where that is no dearer, else by rounds of sampling.

A round draws more masks than the one before, until the standard error is small enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from whence.core.errors import SettingsError
from whence.core.percent import figures
from whence.core.registry import Passes
from whence.core.scores import Scores
from whence.games.estimating import Estimate, Sample, Stand, estimate, may_fit_by_chance
from whence.games.functionals import Functional
from whence.games.protocol import AnyGame as AnyGame
from whence.games.protocol import SetFunction
from whence.games.sampling import all_masks, draw_pairs, even_law, law_for, nested_pairs

Samples = int | Literal["auto"]

# The fewest samples: the two ends and four pairs.
FEWEST = 10

# So many budgets is an exact answer worth: all 4096 masks of twelve units where 2000 were allowed.
WORTH = 2.1

# Samples of the first round, unless four for each coefficient are more.
FIRST_ROUND = 100

# The pool of methods that enumerate.
ALL_MASKS = "all masks"

# The number of samples grows by this factor, or its square, from one round to the next.
GROWTH = 1.5

DIGITS, MOST_DIGITS = 2, 4  # of a share in a note, and where it must be told from another


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to sample.

    ``auto`` draws until the root mean square standard error of the ``top`` largest scores is at
    most ``tolerance`` times their root mean square, or ``budget`` masks are spent. Up to
    ``exact`` units, and within about twice the budget, it enumerates instead.
    """

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
        if units <= 1:
            return True
        if self.samples == "auto":
            return units <= self.exact and 2**units <= WORTH * self.budget
        return 2**units <= self.samples

    def passes(self, functional: Functional) -> Passes:
        """What sampling for this functional takes at most.

        Methods that draw by the even law draw the same pairs: they have one pool.
        """
        units = functional.units
        if self.enumerates(units):
            return Passes(forwards=2**units, pool=ALL_MASKS)
        most = self.budget if self.samples == "auto" else self.samples
        pool = ""
        if np.array_equal(law_for(functional), even_law(units)):
            pool = f"even pairs, seed {self.seed}"
        return Passes(forwards=min(most, 2**units), at_most=True, pool=pool)


# From (about) so many samples to an estimate of β and the number of distinct masks paid for.
Sampler = Callable[[int], tuple[Estimate, int]]


def score(
    game: SetFunction, functional: Functional, plan: Plan, estimator: Stand = "auto"
) -> Scores:
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
        sample = _sample(game, law, (samples - 2) // 2, plan.seed)
        distinct = len(sample.masks)
        if estimator == "plain":
            _check_enough(game.size, distinct)

        # A surrogate need not be fitted where the regression alone will do.
        if estimator == "auto" and plan.samples == "auto" and not may_fit_by_chance(sample):
            plain = estimate(functional, sample, "plain")
            error = relative_error(plain.units, plain.standard_error, plan.top)
            if error <= plan.tolerance:
                return plain, distinct
        return estimate(functional, sample, estimator, plan.seed), distinct

    return score_by(sampled, game, functional, plan)


def _sample(game: SetFunction, law: Float[np.ndarray, " half"], pairs: int, seed: int) -> Sample:
    """Values at pairs. Games on parts of one text, nested in each other, share the largest's."""
    whole = getattr(game, "nested_in", game.size)
    if whole == game.size:
        return Sample.of(game, draw_pairs(game.size, law, pairs, seed), law)
    wide = nested_pairs(game.size, whole, pairs, seed)
    ends = np.stack([np.zeros(whole, dtype=bool), np.ones(whole, dtype=bool)])
    game.suggest(np.concatenate([ends, wide, ~wide]))  # type: ignore[attr-defined]
    return Sample.of(game, wide[:, : game.size], even_law(game.size))


def _check_enough(units: int, masks: int) -> None:
    """Refuse a regression on so few masks that its standard error would say nothing."""
    fewest = 2 * (units + 2)
    if masks < fewest:
        raise SettingsError(
            f"a regression on {units} units from {masks} masks fits by chance, and its standard "
            f"error would be nothing: draw at least {fewest}, or take estimator='surrogate'."
        )


def score_by(sampled: Sampler, game: SetFunction, functional: Functional, plan: Plan) -> Scores:
    """Enumerate, or call ``sampled`` with more and more samples until the plan is met.

    Said with sampled scores: from how many inputs, and whether they are as sure as was asked.
    ``sampled from 512 inputs with some units removed; the 5 largest scores are uncertain by about 4
    % (standard error), within the 5 % asked for``
    """
    if plan.enumerates(game.size):
        return enumerated(game, functional)
    if plan.samples != "auto":
        beta, distinct = sampled(plan.samples)
        return _scores(beta, distinct, _sampled_from(distinct))

    first = max(FIRST_ROUND, 4 * (game.size + 1))
    top = min(plan.top, game.size)
    step = 0
    while True:
        samples = min(int(first * GROWTH**step), plan.budget)
        if 2**game.size <= samples:
            return enumerated(game, functional)

        beta, distinct = sampled(samples)
        error = relative_error(beta.units, beta.standard_error, plan.top)
        note = _sampled_from(distinct)
        if not beta.unknown:
            note = f"{note}; {_uncertain_by(error, top, plan.tolerance)}"
        asked = f"the {figures(plan.tolerance, DIGITS)} % asked for"
        if error <= plan.tolerance:
            return _scores(beta, distinct, f"{note}, within {asked}")
        if samples == plan.budget and beta.unknown:
            return _scores(beta, distinct, f"{note}; the budget of {plan.budget} inputs is spent")
        if samples == plan.budget:
            note = f"{note}, not {asked}: the budget of {plan.budget} inputs is spent"
            return _scores(beta, distinct, note)

        # All methods climb the same ladder, so that they share masks and surrogates.
        step += 1
        needed = samples * (error / max(plan.tolerance, 1e-9)) ** 2
        if not needed <= first * GROWTH**step:
            step += 1


def enumerated(game: SetFunction, functional: Functional) -> Scores:
    """The functional from the game's values at all 2^d masks.

    Said where every subset was run. ``exact: every one of the 16 subsets of the units was run``
    """
    masks = all_masks(game.size)
    values = np.asarray(game(masks), dtype=np.float64)
    units = functional.of_values(masks, values)
    beta = Estimate(units, np.zeros(len(units)), "enumeration", 1.0)
    note = f"exact: every one of the {len(masks)} subsets of the units was run"
    return _scores(beta, len(masks), note)


def relative_error(
    units: Float[np.ndarray, " unit"], standard_error: Float[np.ndarray, " unit"], top: int
) -> float:
    """The standard error of the largest scores beside them, both as root mean squares.

    >>> relative_error(np.array([3.0, 0.1, -4.0]), np.array([0.3, 9.0, 0.4]), top=2)
    0.1
    """
    largest = np.argsort(-np.abs(units))[:top]
    error = _root_mean_square(standard_error[largest])
    scale = _root_mean_square(units[largest])
    if scale > 0:
        return error / scale
    return 0.0 if error == 0 else float("inf")


def _root_mean_square(values: Float[np.ndarray, " unit"]) -> float:
    return float(np.sqrt((values**2).mean()))


def _sampled_from(inputs: int) -> str:
    """Said where not every subset was run. ``sampled from 512 inputs with some units removed``"""
    return f"sampled from {inputs} inputs with some units removed"


def _uncertain_by(error: float, top: int, tolerance: float = 0.0) -> str:
    """How far the largest scores may be off, in words; an error above the tolerance looks so.

    Said where a standard error is known. ``the 5 largest scores are uncertain by about 8.4 %
    (standard error)``

    >>> _uncertain_by(0.084, 5), _uncertain_by(0.0502, 1, tolerance=0.05)
    ('the 5 largest scores are uncertain by about 8.4 % (standard error)', \
'the largest score is uncertain by about 5.02 % (standard error)')
    """
    which = "the largest score is" if top == 1 else f"the {top} largest scores are"
    if error > 1:  # also where all scores are zero
        return f"{which} uncertain by more than their own size (standard error)"
    asked = figures(tolerance, DIGITS)
    each = [figures(error, digits) for digits in range(DIGITS, MOST_DIGITS + 1)]
    shown = next((one for one in each if one != asked), each[-1])
    return f"{which} uncertain by about {shown} % (standard error)"


def _scores(beta: Estimate, distinct: int, note: str) -> Scores:
    """An estimate as a method returns it."""
    detail: dict[str, Any] = {
        "samples": distinct,
        "distinct": distinct,
        "estimator": beta.estimator,
    }
    # Where all masks were asked, how well a stand-in would have fitted is not known.
    if beta.estimator != "enumeration":
        detail["r2"] = beta.r2
    if beta.unknown:
        return Scores(units=beta.units, note=f"{note}; {beta.unknown}", detail=detail)
    return Scores(units=beta.units, standard_error=beta.standard_error, note=note, detail=detail)
