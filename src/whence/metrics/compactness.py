"""Compactness: on how few units does the weight of an explanation lie?"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs, metric, setting

MOST_OF_IT = 0.8  # of the mass, for ``by="mass"``


@metric("compactness", version=1, cites="bhatt2020evaluating", aliases=("sparseness",))
@dataclass(frozen=True, slots=True)
class Compactness:
    """On how few words the weight of the explanation lies. It says nothing of its truth.

    By "mass" it is the share of units that are not needed to hold 80 % of the sizes of all scores.
    By "entropy" it is one less the entropy of these sizes, of the most that there could be. By
    "gini" it is their Gini coefficient. Scores that are all zero, or one score alone, get zero.
    """

    by: Literal["mass", "entropy", "gini"] = setting(
        "mass", "What is measured: units for 80 % of the mass, entropy, or inequality."
    )

    needs: ClassVar[Needs] = Needs.SCORES
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    misleads: ClassVar[str] = (
        "A short explanation is easier to read, not truer: one word drawn by lot is as compact as "
        "can be."
    )

    @property
    def chance(self) -> float:
        """Of a hundred scores drawn from the normal distribution.

        Of endlessly many the Gini coefficient would be √2 − 1; the others are by simulation.
        """
        return {"mass": 0.489, "entropy": 0.0612, "gini": 0.411}[self.by]

    def __call__(
        self, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        sizes = np.abs(scores)
        largest = sizes.max(1, keepdims=True)
        sizes = sizes / np.where(largest > 0, largest, 1.0)  # so that no sum is infinite
        total = sizes.sum(1, keepdims=True)
        shares = np.sort(sizes / np.where(total > 0, total, 1.0), axis=1)[:, ::-1]
        compactness = {"mass": _unneeded, "entropy": _order, "gini": _inequality}[self.by](shares)
        return np.where(total[:, 0] > 0, compactness, 0.0)


def _unneeded(shares: Float[np.ndarray, "attribution unit"]) -> Float[np.ndarray, " attribution"]:
    """The share of units beyond the fewest that hold most of the mass; the largest come first."""
    so_far = shares.cumsum(1)
    is_short = so_far < MOST_OF_IT - 1e-12  # or four fifths of equal scores would be five
    needed = is_short.sum(1) + 1
    return 1 - needed / shares.shape[1]


def _order(shares: Float[np.ndarray, "attribution unit"]) -> Float[np.ndarray, " attribution"]:
    """One less the entropy over its most, the logarithm of the number of units."""
    units = shares.shape[1]
    if units == 1:
        return np.zeros(len(shares))
    logarithms = np.log(np.where(shares > 0, shares, 1.0))
    entropy = -(shares * logarithms).sum(1)
    return np.clip(1 - entropy / np.log(units), 0.0, 1.0)


def _inequality(shares: Float[np.ndarray, "attribution unit"]) -> Float[np.ndarray, " attribution"]:
    """The Gini coefficient: half the mean difference of two units, beside the mean."""
    units = shares.shape[1]
    places = np.arange(1, units + 1)  # the largest is first
    return np.clip((units + 1 - 2 * (shares @ places)) / units, 0.0, 1.0)
