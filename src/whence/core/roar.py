"""Roar: the accuracy of models that were trained anew on texts without their leading units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.counting import counted
from whence.core.errors import InputError, unknown_name
from whence.core.render import draw
from whence.core.showing import visible
from whence.core.writing import write_json

CONTROL = "random"  # the ranking that every other one must beat
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with Student's 95 % interval; of one seed there is none (NaN)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def estimate(values: Float[np.ndarray, " seed"]) -> Estimate:
    """The mean of independent values, with Student's 95 % interval.

    >>> estimate(np.array([0.7, 0.8, 0.9])).high.__round__(4)  # 0.8 + 4.303 · 0.1/√3
    1.0484
    """
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, float("nan"), float("nan"))
    quantile = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2))
    half = quantile * float(values.std(ddof=1)) / sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


@dataclass(frozen=True, eq=False, repr=False)
class Roar:
    """Test accuracy against the share of units that were removed, for each ranking and seed.

    Made by ``whence.roar``. Every seed is a whole repetition: a model trained on the whole texts,
    its explanations, and a model trained anew for each share. So intervals over seeds hold what
    initialisation, order of training and explanation change; the texts are the same in all.
    ``patterns`` are the accuracies of models that see only *where* units were removed: as far as
    they lie above ``prior``, the removal itself tells the label.
    """

    shares: Float[np.ndarray, " share"]  # of the units that are removed
    accuracies: Mapping[str, Float[np.ndarray, "seed share"]]
    prior: float  # accuracy of the label that is most frequent in training
    removal: str
    keep: bool = False  # the least important units go first (KAR)
    recursive: bool = False  # each model is explained anew, and says what goes next
    train_texts: int = 0
    test_texts: int = 0
    patterns: Mapping[str, Float[np.ndarray, "seed share"]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for curves in (self.accuracies, self.patterns):
            for name, values in curves.items():
                if values.shape[1:] != self.shares.shape:
                    raise InputError(
                        f"{name!r} has {values.shape[1]} accuracies for {len(self.shares)} shares."
                    )

    @property
    def seeds(self) -> int:
        """How often the whole experiment was repeated."""
        return len(next(iter(self.accuracies.values())))

    def at(self, name: str, share: float) -> Estimate:
        """The accuracy of one ranking with this share of the units removed."""
        place = int(np.abs(self.shares - share).argmin())
        if abs(self.shares[place] - share) > 1e-9:
            known = ", ".join(f"{s:g}" for s in self.shares)
            raise InputError(f"no model was trained with {share:g} removed; the shares: {known}.")
        return estimate(self._of(name)[:, place])

    def area(self, name: str) -> Estimate:
        """The mean height of the curve between the first and the last share (trapezoids).

        Lower is better where important units are removed, higher where they are kept.
        """
        return estimate(self._areas(self._of(name)))

    def against_random(self, name: str) -> Estimate:
        """How far the curve's mean height lies below that of random rankings, seed by seed.

        Where units are kept (KAR), how far above. An interval above 0 is a better ranking.
        """
        difference = self._areas(self._of(CONTROL)) - self._areas(self._of(name))
        return estimate(-difference if self.keep else difference)

    def leak(self, name: str) -> Estimate:
        """How far the pattern of removals alone lifts accuracy above the prior, at its highest.

        It is taken at the share where the mean over seeds is highest.
        """
        if name not in self.patterns:
            raise InputError(
                f"the pattern of {name!r} was not tried; whence.roar(…, patterns=True) does."
            )
        values = self.patterns[name]
        worst = int(values.mean(0).argmax())
        return estimate(values[:, worst] - self.prior)

    def rows(self) -> list[dict[str, Any]]:
        """One record for each ranking and share: the accuracy with its interval."""
        records = []
        for name, values in self.accuracies.items():
            for share, column in zip(self.shares.tolist(), values.T, strict=True):
                of_share = estimate(column)
                records.append(
                    {
                        "ranking": name,
                        "removed": share,
                        "accuracy": of_share.mean,
                        "low": of_share.low,
                        "high": of_share.high,
                        "seeds": len(column),
                    }
                )
        return records

    def plot(self, ax: Any = None) -> Any:
        """Accuracy against the share removed, one line for each ranking, with interval bands."""
        return draw("plot_roar", self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": "roar",
            "shares": self.shares.tolist(),
            "accuracies": {name: values.tolist() for name, values in self.accuracies.items()},
            "patterns": {name: values.tolist() for name, values in self.patterns.items()},
            "prior": self.prior,
            "removal": self.removal,
            "keep": self.keep,
            "recursive": self.recursive,
            "train_texts": self.train_texts,
            "test_texts": self.test_texts,
        }

    def save(self, path: str | Path) -> Path:
        """Write it as JSON."""
        return write_json(path, self.to_dict())

    def __str__(self) -> str:
        """Said where a curve is printed; that it is explained anew where each model was."""
        what = "kept longest" if self.keep else "removed first"
        again = ", explained anew at each step" if self.recursive else ""
        head = (
            f"Remove and retrain: {counted(self.train_texts, 'text')} to train, "
            f"{self.test_texts} to test, {counted(self.seeds, 'seed')}, removal "
            f"{self.removal}; important units {what}{again}. "
            f"Always the most frequent label: {self.prior:.3f}."
        )
        lines = [head]
        for name in self.accuracies:
            curve = " ".join(f"{value:.3f}" for value in self._of(name).mean(0))
            lines.append(f"  {name}: {curve}")
        return visible("\n".join(lines), keep="\n")

    def __repr__(self) -> str:
        names = ", ".join(self.accuracies)
        shares = counted(len(self.shares), "share")
        return visible(f"Roar({names}; {counted(self.seeds, 'seed')}, {shares})")

    def _of(self, name: str) -> Float[np.ndarray, "seed share"]:
        if name not in self.accuracies:
            raise unknown_name("ranking", name, self.accuracies)
        return self.accuracies[name]

    def _areas(self, values: Float[np.ndarray, "seed share"]) -> Float[np.ndarray, " seed"]:
        width = float(self.shares[-1] - self.shares[0])
        if not width:
            return values[:, 0]
        return np.trapezoid(values, self.shares, axis=1) / width
