"""Evidence: how a ranking fares beside random rankings of the same passage. A typed record."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from whence.core.stored import Stored, as_stored


class Verdict(StrEnum):
    """The three things that evidence can say. These words are spelt here and nowhere else."""

    BETTER = "better than random"
    SAME = "not separable from random"
    WORSE = "worse than random"


# of either verdict: a random ranking is called better in at most one text of twenty, less where
# two removals must agree
LEVEL = 0.05
# of a level: by so much a p-value that is equal to it on paper may lie above it
ROUNDING_OF_P = 1e-9
# Why nothing can be ranked, so that there is nothing to judge. Said where a text has a single unit.
ONE_UNIT = "there is only one unit, so there is nothing to rank"
# Said where all scores are equal, and not zero by construction.
ALL_EQUAL = "all units have the same score, so nothing is ranked"
# Said of a text in windows where the scores of each window are equal.
ALL_EQUAL_IN_WINDOWS = "all units of a window have the same score, so nothing is ranked"
# Said where the method noted that its scores are zero whatever the text is.
ZERO = "its scores are zero by construction, so nothing is ranked"
STILL = (
    "whatever is taken out, what is explained changes by less than a millionth of itself, so "
    "nothing is ranked"
)
NOTHING_RANKED = (ONE_UNIT, ALL_EQUAL, ALL_EQUAL_IN_WINDOWS, ZERO, STILL)
MILLIONTH = 1e-6  # a few roundings of a float32
USUAL_RANKINGS = 100  # random ones, unless a budget asks for fewer
# random ones: the best of 40 rankings is one in 40, so that p can still be 0.025
FEWEST_RANKINGS = 39
USUAL_STEPS = 10  # of a curve, at most: a longer text is removed a tenth at a time
FEWEST_STEPS = 2  # with one step a curve has two ends, which are the same for every ranking

# Said of evidence from curves beside those of random rankings.
CURVES = "deletion and insertion curves"
# Said of the check that a method made itself, on removals that it had not seen.
HELD_OUT = "correlation with held-out removals"
QUESTIONS = ("", "support", "matter")
Band = tuple[tuple[float, float, float], ...]  # low, mean and high of the control, at each step


def is_within(p: float, level: float = LEVEL) -> bool:
    """Whether a p-value is at most the level; this is asked here and nowhere else.

    One ✓ of one text has p = 0.05, of which a computer makes 0.05000000000000004.

    >>> is_within(1 - 0.95), is_within(0.0501)
    (True, False)
    """
    return p <= level * (1 + ROUNDING_OF_P)


def is_still(low: float, high: float) -> bool:
    """Whether values between these are one number, but for less than a millionth of it.

    What would be ranked by them is rounding.

    >>> is_still(2.0, 2.000001), is_still(2.0, 2.0001), is_still(0.0, 0.0)
    (True, False, True)
    """
    return high - low <= MILLIONTH * max(abs(low), abs(high))


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
    95 % interval; ``p`` is the chance that a random ranking does as well, and ``p_worse`` that one
    does no better (files before it was kept have none).
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
    p_worse: float | None = None

    @property
    def p_of_verdict(self) -> float | None:
        """The p-value of the verdict that is said: that of "worse" where it is worse."""
        return self.p_worse if self.verdict == Verdict.WORSE else self.p

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
        if self.p_worse is not None:
            stored["p_worse"] = self.p_worse
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
    def from_dict(cls, removal: str, stored: Mapping[str, Any] | Stored) -> Trial:
        """What ``to_dict`` gave."""
        stored = as_stored(stored, "trial")
        return cls(
            removal=removal,
            verdict=Verdict(stored["verdict"].choice(Verdict)),
            statistic=stored["area"].number(),
            random_low=stored["random_low"].number(),
            random_high=stored["random_high"].number(),
            random_mean=_number(stored, "random_mean"),
            beaten=_number(stored, "value"),
            interval=_interval(stored),
            p=_number(stored, "p", 0.0, 1.0),
            samples=_count(stored, "samples"),
            baseline_statistic=_number(stored, "baseline_area"),
            forwards=_count(stored, "forwards") or 0,
            curves=None if stored.get("steps") is None else _curves(stored),
            p_worse=_number(stored, "p_worse", 0.0, 1.0),
        )


@dataclass(frozen=True)
class Evidence:
    """The verdict on one ranking, with one trial for each removal that it rests on.

    ``measure`` is CURVES or HELD_OUT. ``value`` is the share of random rankings beaten (CURVES,
    with ``interval`` and ``p``) or the correlation (HELD_OUT). ``question`` is "support" for signed
    scores (what holds the target up?) and "matter" for unsigned ones (what matters at all?).
    ``rankings`` counts the random rankings, ``steps`` those of each curve.
    ``p_worse`` is to "worse" what ``p`` is to "better".
    ``verdict`` is None where there can be none, and ``note`` says why: there is no ranking where
    all scores are equal, so that ``value``, ``interval`` and ``p`` are None too.
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
    p_worse: float | None = None

    @property
    def p_of_verdict(self) -> float | None:
        """The p-value of the verdict that is said: that of "worse" where it is worse."""
        return self.p_worse if self.verdict == Verdict.WORSE else self.p

    @property
    def ranks_nothing(self) -> bool:
        """Whether there was no ranking to be judged, as ``note`` says."""
        return self.verdict is None and self.note in NOTHING_RANKED

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
        if self.p_worse is not None:
            stored["p_worse"] = self.p_worse
        if self.windows:
            stored["windows"] = [window.to_dict() for window in self.windows]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Evidence:
        """What ``to_dict`` gave, now or in whence 0.1."""
        stored = as_stored(stored, "evidence")
        removals = stored.get("removals")
        if removals is not None and isinstance(removals.value, int):
            return _held_out_of_0_1(stored)
        named = {} if removals is None else removals.entries()
        trials = [Trial.from_dict(name, trial) for name, trial in named.items()]
        verdict, steps = stored["verdict"].choice(["", *Verdict]), _count(stored, "steps")
        note, own, windows = stored.get("note"), stored.get("own"), stored.get("windows")
        question = stored.get("question")
        read = cls(
            measure=stored["measure"].text(),
            verdict=Verdict(verdict) if verdict else None,
            value=_number(stored, "value"),
            interval=_interval(stored),
            p=_number(stored, "p", 0.0, 1.0),
            question="" if question is None else question.choice(QUESTIONS),
            rankings=_count(stored, "rankings") or 0,
            steps=_steps_of(trials) if steps is None else steps,
            trials=tuple(trials),
            forwards=_count(stored, "forwards") or 0,
            note="" if note is None else note.text(),
            own=None if own is None else cls.from_dict(own),
            windows=() if windows is None else tuple(map(cls.from_dict, windows.items())),
            p_worse=_number(stored, "p_worse", 0.0, 1.0),
        )
        return _without_invented_numbers(read)

    def __getitem__(self, key: str) -> Any:
        """Evidence was a dictionary in whence 0.1; its keys still answer."""
        warnings.warn(
            f"evidence[{key!r}] is deprecated: evidence is a record now, read its attributes "
            "(evidence.verdict, evidence.trials, …) or evidence.to_dict().",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.to_dict()[key]


def _without_invented_numbers(read: Evidence) -> Evidence:
    """Where nothing was ranked, earlier files say 50 %, p = 1 and "not separable": nobody measured.

    Any other evidence stays as it is.
    """
    if read.note not in NOTHING_RANKED or read.trials:
        return read
    return replace(read, verdict=None, value=None, interval=None, p=None)


def _held_out_of_0_1(stored: Stored) -> Evidence:
    """whence 0.1 wrote the arbiter's own check flat, with the number of removals as "removals"."""
    value = stored["value"].number()
    trial = Trial(
        removal="embedding",
        verdict=Verdict(stored["verdict"].choice(Verdict)),
        statistic=value,
        random_low=stored["random_low"].number(),
        random_high=stored["random_high"].number(),
        samples=stored["removals"].whole(),
        baseline_statistic=_number(stored, "baseline_value"),
    )
    measure = stored["measure"].text()
    return Evidence(measure=measure, verdict=trial.verdict, value=value, trials=(trial,))


def _steps_of(trials: Sequence[Trial]) -> int:
    """The steps of the curves, for results that were stored before they were counted."""
    for trial in trials:
        if trial.curves is not None:
            return len(trial.curves.steps) - 1
    return 0


def _number(
    stored: Stored, name: str, least: float = -math.inf, most: float = math.inf
) -> float | None:
    field = stored.get(name)
    return None if field is None else field.number(least, most)


def _count(stored: Stored, name: str) -> int | None:
    field = stored.get(name)
    return None if field is None else field.whole()


def _interval(stored: Stored) -> tuple[float, float] | None:
    field = stored.get("interval")
    return None if field is None else field.interval()


def _curves(stored: Stored) -> TrialCurves:
    """Curves and bands with a value at each step."""
    steps = stored["steps"].wholes(least=0).tolist()
    if not steps:
        raise stored["steps"].wrong("a curve has at least one step")
    if steps != sorted(set(steps)):
        raise stored["steps"].wrong("steps must rise from one to the next")
    return TrialCurves(
        steps=tuple(steps),
        deletion=tuple(stored["deletion"].numbers(len(steps)).tolist()),
        insertion=tuple(stored["insertion"].numbers(len(steps)).tolist()),
        random_deletion=_band(stored["random_deletion"], len(steps)),
        random_insertion=_band(stored["random_insertion"], len(steps)),
    )


def _band(stored: Stored, steps: int) -> Band:
    rows = [row.numbers(3).tolist() for row in stored.items()]
    if len(rows) != steps:
        raise stored.wrong(f"expected {steps} entries, got {len(rows)}")
    return tuple((low, mean, high) for low, mean, high in rows)
