"""Evidence: how a ranking fares beside random rankings of the same passage. A typed record."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """The three things that evidence can say. These words are spelt here and nowhere else."""

    BETTER = "better than random"
    SAME = "not separable from random"
    WORSE = "worse than random"


# of either verdict: a random ranking is called better in at most one text of twenty, less where
# two removals must agree
LEVEL = 0.05
USUAL_RANKINGS = 100  # random ones, unless a budget asks for fewer
# random ones: the best of 40 rankings is one in 40, so that p can still be 0.025
FEWEST_RANKINGS = 39
USUAL_STEPS = 10  # of a curve, at most: a longer text is removed a tenth at a time
FEWEST_STEPS = 2  # with one step a curve has two ends, which are the same for every ranking

CURVES = "deletion and insertion curves"
HELD_OUT = "correlation with held-out removals"
Band = tuple[tuple[float, float, float], ...]  # low, mean and high of the control, at each step


@dataclass(frozen=True)
class TrialCurves:
    """What a figure draws: the target's value after each step, beside the control's band."""

    steps: tuple[int, ...]  # units removed, or put in, so far
    deletion: tuple[float, ...]
    insertion: tuple[float, ...]
    random_deletion: Band
    random_insertion: Band


@dataclass(frozen=True)
class Trial:
    """A ranking beside its control under one removal.

    ``statistic`` is what was measured of the ranking (the area between its curves; a correlation)
    and ``random_low`` to ``random_high`` hold 95 % of the control's.
    ``beaten`` is the share of random rankings that the ranking beats (a half is chance), with its
    95 % interval; ``p`` is the chance that a random ranking does as well.
    """

    removal: str
    verdict: Verdict
    statistic: float
    random_low: float
    random_high: float
    random_mean: float | None = None
    beaten: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    samples: int | None = None  # removals that were held out
    baseline_statistic: float | None = None  # of the plain mean of attention, for the arbiter
    forwards: int = 0  # passes beyond the control's
    curves: TrialCurves | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored: dict[str, Any] = {
            "verdict": str(self.verdict),
            "value": self.beaten,
            "interval": None if self.interval is None else list(self.interval),
            "p": self.p,
            "area": self.statistic,
            "random_low": self.random_low,
            "random_mean": self.random_mean,
            "random_high": self.random_high,
            "forwards": self.forwards,
        }
        if self.samples is not None:
            stored |= {"samples": self.samples, "baseline_area": self.baseline_statistic}
        if self.curves is not None:
            stored |= {
                "steps": list(self.curves.steps),
                "deletion": list(self.curves.deletion),
                "insertion": list(self.curves.insertion),
                "random_deletion": [list(step) for step in self.curves.random_deletion],
                "random_insertion": [list(step) for step in self.curves.random_insertion],
            }
        return stored

    @classmethod
    def from_dict(cls, removal: str, stored: Mapping[str, Any]) -> Trial:
        """What ``to_dict`` gave."""
        curves = None
        if "steps" in stored:
            curves = TrialCurves(
                steps=tuple(stored["steps"]),
                deletion=tuple(stored["deletion"]),
                insertion=tuple(stored["insertion"]),
                random_deletion=_band(stored["random_deletion"]),
                random_insertion=_band(stored["random_insertion"]),
            )
        return cls(
            removal=removal,
            verdict=Verdict(stored["verdict"]),
            statistic=stored["area"],
            random_low=stored["random_low"],
            random_high=stored["random_high"],
            random_mean=stored.get("random_mean"),
            beaten=stored.get("value"),
            interval=_interval(stored.get("interval")),
            p=stored.get("p"),
            samples=stored.get("samples"),
            baseline_statistic=stored.get("baseline_area"),
            forwards=stored.get("forwards", 0),
            curves=curves,
        )


@dataclass(frozen=True)
class Evidence:
    """The verdict on one ranking, with one trial for each removal that it rests on.

    ``measure`` is CURVES or HELD_OUT. ``value`` is the share of random rankings beaten (CURVES,
    with ``interval`` and ``p``) or the correlation (HELD_OUT). ``question`` is "support" for signed
    scores (what holds the target up?) and "matter" for unsigned ones (what matters at all?).
    ``rankings`` counts the random rankings, ``steps`` those of each curve.
    ``verdict`` is None where there can be none, and ``note`` says why.
    ``own`` is what a method found itself, on removals of its own, before it was judged.
    ``windows`` are the verdicts on each window alone, of a text that was explained in windows; the
    verdict itself is on the whole.
    """

    measure: str
    verdict: Verdict | None
    value: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    question: str = ""
    rankings: int = 0
    steps: int = 0
    trials: tuple[Trial, ...] = ()
    forwards: int = 0
    note: str = ""
    own: Evidence | None = None
    windows: tuple[Evidence, ...] = ()

    def trial(self, removal: str) -> Trial | None:
        """The trial under that removal, if there was one."""
        return next((t for t in self.trials if t.removal == removal), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored: dict[str, Any] = {
            "measure": self.measure,
            "question": self.question,
            "verdict": "" if self.verdict is None else str(self.verdict),
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "p": self.p,
            "rankings": self.rankings,
            "steps": self.steps,
            "removals": {trial.removal: trial.to_dict() for trial in self.trials},
            "forwards": self.forwards,
            "note": self.note,
            "own": None if self.own is None else self.own.to_dict(),
        }
        if self.windows:
            stored["windows"] = [window.to_dict() for window in self.windows]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Evidence:
        """What ``to_dict`` gave, now or in whence 0.1."""
        if isinstance(stored.get("removals"), int):
            return _held_out_of_0_1(stored)
        trials = [Trial.from_dict(name, t) for name, t in (stored.get("removals") or {}).items()]
        own = stored.get("own")
        return cls(
            measure=stored["measure"],
            verdict=Verdict(stored["verdict"]) if stored["verdict"] else None,
            value=stored.get("value"),
            interval=_interval(stored.get("interval")),
            p=stored.get("p"),
            question=stored.get("question", ""),
            rankings=stored.get("rankings", 0),
            steps=stored.get("steps", _steps_of(trials)),
            trials=tuple(trials),
            forwards=stored.get("forwards", 0),
            note=stored.get("note", ""),
            own=None if own is None else cls.from_dict(own),
            windows=tuple(cls.from_dict(window) for window in stored.get("windows") or ()),
        )

    def __getitem__(self, key: str) -> Any:
        """Evidence was a dictionary in whence 0.1; its keys still answer."""
        warnings.warn(
            f"evidence[{key!r}] is deprecated: evidence is a record now, read its attributes "
            "(evidence.verdict, evidence.trials, …) or evidence.to_dict().",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.to_dict()[key]


def _held_out_of_0_1(stored: Mapping[str, Any]) -> Evidence:
    """whence 0.1 wrote the arbiter's own check flat, with the number of removals as "removals"."""
    trial = Trial(
        removal="embedding",
        verdict=Verdict(stored["verdict"]),
        statistic=stored["value"],
        random_low=stored["random_low"],
        random_high=stored["random_high"],
        samples=stored["removals"],
        baseline_statistic=stored.get("baseline_value"),
    )
    return Evidence(
        measure=stored["measure"], verdict=trial.verdict, value=stored["value"], trials=(trial,)
    )


def _steps_of(trials: Sequence[Trial]) -> int:
    """The steps of the curves, for results that were stored before they were counted."""
    for trial in trials:
        if trial.curves is not None:
            return len(trial.curves.steps) - 1
    return 0


def _interval(stored: Any) -> tuple[float, float] | None:
    if stored is None:
        return None
    low, high = stored
    return (low, high)


def _band(stored: Any) -> Band:
    return tuple((low, mean, high) for low, mean, high in stored)
