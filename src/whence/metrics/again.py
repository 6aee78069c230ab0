"""The same explanation made once more: under another seed, on another model, of another text.

What metrics of this kind look at, and what random explanations get by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from whence.core.agreement import ranks
from whence.core.attribution import Attribution
from whence.core.errors import WhenceError
from whence.core.registry import Better, Needs
from whence.models.changes import ModelChange
from whence.models.exchanged import TextChange

DRAWS = 20  # of the control of one explanation; it is the mean over texts that counts
AGAIN_STREAM = 5  # of random numbers
NOTHING = 1e-12  # a length that is not divided by
DIGITS = 12  # of a correlation
EVEN = 1e-9  # scores whose range is below this share of their size differ by rounding alone


@dataclass(frozen=True)
class Again:
    """One more time: what is other than the first time.

    ``seed`` is how far the seed is from the first one's. ``model`` and ``text`` say what is put in
    place of the model and the text. Equal ones are done once, for all methods and metrics.
    """

    seed: int = 0
    model: ModelChange | None = None
    text: TextChange | None = None


@dataclass(frozen=True, eq=False)
class Explanation:
    """The scores of one method for one text, as far as they are compared.

    ``label`` is what the model predicted, ``value`` the target's. ``moved`` is how far the input
    was moved, as a share of its length, where that is known; ``changed`` marks the units that are
    others than in the first.
    """

    scores: Float[np.ndarray, " unit"]
    signed: bool
    value: float
    label: str | None
    changed: Bool[np.ndarray, " unit"]
    standard_error: Float[np.ndarray, " unit"] | None = None
    moved: float | None = None

    @classmethod
    def of(
        cls,
        attribution: Attribution,
        changed: Bool[np.ndarray, " unit"] | None = None,
        moved: float | None = None,
    ) -> Explanation:
        """What an attribution says; of the first, or of one that was made again."""
        scores = attribution.scores
        error = attribution.error
        return cls(
            scores=scores,
            signed=attribution.signed,
            value=attribution.value,
            label=next(iter(attribution.prediction), None),
            changed=np.zeros(len(scores), dtype=bool) if changed is None else changed,
            standard_error=None if error is None else error.standard_error,
            moved=moved,
        )

    @property
    def sizes(self) -> Float[np.ndarray, " unit"]:
        """How important each unit is: without the sign, where there is one."""
        return np.abs(self.scores) if self.signed else self.scores


@dataclass(frozen=True)
class Missing:
    """There is no such explanation, and why."""

    reason: str


Other = Explanation | Missing


class NotMeasured(WhenceError, ValueError):
    """Nothing can be said of this explanation by this metric, and why: it counts as no number."""


@runtime_checkable
class AgainMetric(Protocol):
    """A metric that compares an explanation with the same one made again.

    ``again`` says how often and under what conditions; ``others`` are these, in the same order. A
    call gives one finite number, or raises NotMeasured. ``chance`` is what it gives, on average,
    where a hundred normal scores with the mean zero are given to the units anew each time.
    """

    @property
    def needs(self) -> Needs:
        """``Needs.AGAIN``."""
        ...

    @property
    def better(self) -> Better:
        """Which values are the good ones: "higher" or "lower"."""
        ...

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        ...

    @property
    def chance(self) -> float:
        """What explanations get that are drawn anew each time."""
        ...

    def again(self) -> tuple[Again, ...]:
        """The times that the explanation is made once more."""
        ...

    def __call__(self, first: Explanation, others: Sequence[Other]) -> float:
        """The value for one explanation of one text."""
        ...


def present(others: Sequence[Other]) -> list[Explanation]:
    """Those that are there; NotMeasured, with the reason, where none is."""
    there = [other for other in others if isinstance(other, Explanation)]
    if there:
        return there
    reasons = [other.reason for other in others if isinstance(other, Missing)]
    raise NotMeasured(reasons[0] if reasons else "the explanation was not made again.")


def check_units(first: Explanation, least: int = 2) -> None:
    """NotMeasured where the text has so few units that any two explanations rank them alike."""
    units = len(first.scores)
    if units < least:
        raise NotMeasured(f"the text has {units} of the {least} units that are needed at least.")


# ---------------------------------------------------------------------- how alike two are


def similarities(rows: Float[np.ndarray, "run unit"]) -> Float[np.ndarray, "run run"]:
    """Spearman's rank correlation of each two rows, from -1 to 1.

    Two that rank nothing are alike (1); one that ranks nothing and one that does are not (0).

    >>> similarities(np.array([[1.0, 2.0, 3.0], [9.0, 4.0, 1.0]]))[0].tolist()
    [1.0, -1.0]
    """
    ranks_nothing = np.ptp(rows, axis=1) <= EVEN * np.abs(rows).max(axis=1)
    places = np.stack([ranks(row) for row in rows])
    places -= places.mean(1, keepdims=True)
    places[ranks_nothing] = 0.0
    lengths = np.linalg.norm(places, axis=1)
    lengths[ranks_nothing] = 1.0
    # two equal rankings are alike to the last digit
    alike = np.round(places @ places.T / np.outer(lengths, lengths), DIGITS)
    alike[np.ix_(ranks_nothing, ranks_nothing)] = 1.0
    return alike


def similarity_to(
    first: Float[np.ndarray, " unit"], others: Sequence[Float[np.ndarray, " unit"]]
) -> Float[np.ndarray, " other"]:
    """The rank correlation of each of the others with the first."""
    return similarities(np.stack([first, *others]))[0, 1:]


def distance(scores: Float[np.ndarray, " unit"], others: Float[np.ndarray, " unit"]) -> float:
    """How far others are from the scores, as a share of the scores' length.

    Where the scores are all zero: 0 if the others are, too; else nothing can be said.

    >>> distance(np.array([3.0, 4.0]), np.array([3.0, 3.0]))
    0.2
    """
    length = float(np.linalg.norm(scores))
    apart = float(np.linalg.norm(others - scores))
    if length > NOTHING:
        return apart / length
    if apart <= NOTHING:
        return 0.0
    raise NotMeasured("all scores are zero, so that no change of them has a size.")


# ---------------------------------------------------------------------- the control


def drawn_anew(
    metric: AgainMetric,
    first: Explanation,
    others: Sequence[Other],
    seed: Sequence[int],
    draws: int = DRAWS,
) -> Float[np.ndarray, " draw"]:
    """The metric of explanations that mean nothing: the control.

    Each keeps its numbers and gives them to other units, in an order that is drawn anew each time
    that the explanation is made. All else stays: how far the input was moved, what was changed. A
    draw of which the metric can say nothing is left out.
    """
    random = np.random.default_rng([AGAIN_STREAM, *seed])
    values = []
    for _ in range(draws):
        laid = [_laid_anew(one, random) for one in (first, *others)]
        try:
            values.append(float(metric(laid[0], laid[1:])))  # type: ignore[arg-type]
        except NotMeasured:
            continue
    return np.array(values, dtype=np.float64)


def _laid_anew(one: Any, random: np.random.Generator) -> Any:
    if isinstance(one, Missing):
        return one
    order = random.permutation(len(one.scores))
    error = one.standard_error
    return replace(
        one, scores=one.scores[order], standard_error=None if error is None else error[order]
    )
