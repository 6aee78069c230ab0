"""What a method returns: one number per token or per unit, and, if it has them, the signs of its own inexactness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Scores:
    """Raw scores "batch token"; ``change`` is what each passage's should sum to, ``jackknife`` the scores with one sample left out.

    A method without error bars may return the tensor alone.
    """

    tokens: Any  # Float[Tensor, "batch token"]
    change: Sequence[float] | None = None  # completeness: the difference that the scores explain
    jackknife: Any | None = None  # Float[Tensor, "left_out batch token"]
    notes: Sequence[str] = ()
    evidence: Sequence[Mapping[str, Any] | None] = ()  # of each passage, where the method itself had to look for some


@dataclass(frozen=True, eq=False)
class UnitScores:
    """What a method on a Game returns for its one passage; ``change`` is what the scores should sum to, where the method promises it.

    ``detail`` holds plain values that belong to the result and are no scores: an anchor with its precision, the samples drawn.
    """

    units: Float[np.ndarray, " unit"]
    standard_error: Float[np.ndarray, " unit"] | None = None
    change: float | None = None
    note: str = ""
    detail: Mapping[str, Any] | None = None
