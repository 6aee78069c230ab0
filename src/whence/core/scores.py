"""What a method says of one passage: a number for each token or for each unit, with its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.errors import InputError
from whence.core.evidence import Evidence
from whence.core.passage import Passage

ArrayLike = Any  # a numpy array or a torch tensor; core does not import torch

# Samples, below which the jackknife tells no standard error. The gradients of noisy copies are
# skewed, and of few of them the skew is hardly seen. Measured on two texts, 600 runs for each word:
# the intervals hold .923 to .963 with 8 samples (worst word .898), .936 to .961 with 12 (.907),
# .932 to .961 with 16 (.910), .942 to .958 with 24 (.918).
ENOUGH_SAMPLES = 24
# How a note begins that says of all scores that they are zero whatever the text is. Said in a table
# in place of units, where the method noted it and all scores are zero.
ZERO_BY_CONSTRUCTION = "zero by construction"
# Where a norm follows the embeddings at once: gradient times input is then a sum that cancels. Said
# of gradient times input where a norm follows the embeddings at once.
FREE_OF_LENGTH = (
    f"{ZERO_BY_CONSTRUCTION}: the embeddings go straight into a norm, which takes their length "
    "away, so that shrinking one changes nothing"
)


@dataclass(frozen=True, eq=False)
class Scores:
    """Raw scores of one passage: ``units`` or ``tokens``, one of the two.

    ``standard_error`` is one for each unit. A method that averages over samples may give
    ``left_out`` instead, its scores with one sample left out at a time: the jackknife then gives
    the standard error (of 16 samples or more), and takes off the bias that scores other than plain
    means, like norms, have.
    ``change`` is what the scores should sum to, where the method promises that (completeness).
    ``detail`` holds plain values that belong to the result and are no scores: an anchor with its
    precision, the number of samples.

    >>> import numpy as np
    >>> Scores(units=np.array([0.5, -0.1]), note="exact").units
    array([ 0.5, -0.1])
    """

    units: Float[np.ndarray, " unit"] | None = None
    tokens: Float[np.ndarray, " token"] | None = None
    standard_error: Float[np.ndarray, " unit"] | None = None
    left_out: Float[np.ndarray, "left_out place"] | None = None
    change: float | None = None
    note: str = ""
    detail: Mapping[str, Any] | None = None
    evidence: Evidence | None = None  # where the method had to look for some itself

    def __post_init__(self) -> None:
        if (self.units is None) == (self.tokens is None):
            raise InputError("scores are given either for units= or for tokens=, one of the two.")
        for name in ("units", "tokens", "standard_error", "left_out"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, _as_float64(values))

    @classmethod
    def rows(
        cls,
        tokens: ArrayLike,
        *,
        changes: Sequence[float] | None = None,
        notes: Sequence[str] | None = None,
        left_out: ArrayLike | None = None,
        details: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> list[Scores]:
        """One Scores for each row of "ask token", with each ask's change, note, jackknife, detail.

        >>> import numpy as np
        >>> [s.note for s in Scores.rows(np.zeros((2, 3)), notes=["", "a plateau"])]
        ['', 'a plateau']
        """
        samples = None if left_out is None else _as_float64(left_out)
        scores = []
        for i, row in enumerate(_as_float64(tokens)):
            scores.append(
                cls(
                    tokens=row,
                    left_out=None if samples is None else samples[:, i],
                    change=None if changes is None else float(changes[i]),
                    note=notes[i] if notes else "",
                    detail=details[i] if details else None,
                )
            )
        return scores

    def on_units(self, passage: Passage, merge: str = "sum") -> Scores:
        """The same, for each unit: tokens are merged by the named rule, and padding is dropped."""
        scores = self
        if scores.tokens is not None:
            tokens = scores.tokens[: len(passage)]
            scores = replace(scores, tokens=None, units=passage.merge(tokens, merge))
        if self.left_out is not None:
            samples = self.left_out
            if self.tokens is not None:
                rows = [passage.merge(sample[: len(passage)], merge) for sample in samples]
                samples = np.stack(rows)
            assert scores.units is not None
            corrected = without_bias(scores.units, samples)
            scores = replace(scores, units=corrected, left_out=None)
            if len(samples) < ENOUGH_SAMPLES:
                return replace(scores, note=_joined(scores.note, _too_few(len(samples))))
            scores = replace(scores, standard_error=widened_error(samples))
        return scores


def without_bias(
    scores: Float[np.ndarray, " unit"], left_out: Float[np.ndarray, "left_out unit"]
) -> Float[np.ndarray, " unit"]:
    """Scores less the jackknife's estimate of their bias: n s − (n − 1) · mean of ``left_out``.

    The length of a mean of n noisy vectors is too large by about c/n, and by c/(n − 1) with one
    left out; so the two tell c. A plain mean has no bias, and stays. No score changes its sign.

    >>> import numpy as np
    >>> without_bias(np.array([5.0, 1.0]), np.array([[5.5, 9.0], [5.5, 9.0]]))
    array([4.5, 0. ])
    """
    n = len(left_out)
    corrected = n * scores - (n - 1) * left_out.mean(0)
    return np.where(corrected * scores < 0, 0.0, corrected)


def widened_error(left_out: Float[np.ndarray, "left_out unit"]) -> Float[np.ndarray, " unit"]:
    """The jackknife's standard error, so wide that ±1.96 of it hold 95 %.

    Two things make ±1.96 too narrow, both of size 1/n. The spread of few samples is itself
    uncertain: Student's t widens for that. And samples that are skewed give a small spread where
    they give a small mean, so that an interval misses on one side more than it gains on the other.
    To this order what is missed is known (Hall 1992, section 2.6), and is made up for here. The
    skewness is that of all units together: a unit whose spread is too small hides its own.
    """
    from scipy.special import ndtri, stdtrit

    n = len(left_out)
    normal = float(ndtri(0.975))
    for_few = float(stdtrit(n - 1, 0.975)) / normal
    of_skew = (normal**4 + 2 * normal**2 - 3) / 18
    for_skew = 1 + of_skew * float((_skewness(left_out) ** 2).mean()) / n
    return jackknife_error(left_out) * for_few * for_skew


def _skewness(values: Float[np.ndarray, "value unit"]) -> Float[np.ndarray, " unit"]:
    """The skewness of each column, without its bias under the normal law; 0 of equal values.

    >>> import numpy as np
    >>> _skewness(np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 1.0]])).round(3)
    array([1.732, 0.   ])
    """
    n = len(values)
    away = values - values.mean(0)
    square = (away**2).mean(0)
    cube = (away**3).mean(0)
    plain = np.where(square > 0, cube / np.where(square > 0, square, 1.0) ** 1.5, 0.0)
    return plain * np.sqrt(n * (n - 1)) / (n - 2)


def _too_few(samples: int) -> str:
    """Said where the jackknife had too few samples for a standard error.

    ``16 samples are too few to tell how far the scores may be off: take 24 or more``
    """
    return (
        f"{samples} samples are too few to tell how far the scores may be off: "
        f"take {ENOUGH_SAMPLES} or more"
    )


def _joined(note: str, more: str) -> str:
    return f"{note}; {more}" if note else more


def jackknife_error(left_out: Float[np.ndarray, "left_out unit"]) -> Float[np.ndarray, " unit"]:
    """The standard error of a mean, from the means with one sample left out (Efron & Tibshirani).

    >>> import numpy as np
    >>> jackknife_error(np.array([[1.0], [3.0]]))
    array([1.])
    """
    n = len(left_out)
    return np.sqrt((n - 1) / n * ((left_out - left_out.mean(0)) ** 2).sum(0))


def _as_float64(values: ArrayLike) -> Float[np.ndarray, "*shape"]:
    if hasattr(values, "detach"):
        values = values.detach().double().cpu().numpy()
    return np.asarray(values, dtype=np.float64)
