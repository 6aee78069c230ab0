"""Evidence: is a ranking better than random rankings of the same text, under the same removals?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import factorial, sqrt

import numpy as np
from jaxtyping import Float, Int

from whence.core.attribution import Attribution
from whence.core.evidence import CURVES, Band, Evidence, Trial, TrialCurves, Verdict
from whence.games.game import Game
from whence.metrics.curves import Curves, curves

RANKINGS = 100
OF_WINDOWS = Evidence(
    measure=CURVES,
    verdict=None,
    note="a text in windows is several games, and no rule joins their evidence",
)
LEVEL = 0.05  # of either verdict: a random ranking is called better in at most one text of twenty, less where two removals must agree
TIE_BREAKS = 8  # orders among equal scores that are averaged: none of them is the method's own
ROUNDING = 1e-9
CONTROL_STREAM, TIES_STREAM = (
    1,
    2,
)  # so that the method ``random``, of the same seed, is not drawn with the control's numbers
NORMAL = 1.959964  # standard deviations that hold 95 %


@dataclass(frozen=True, eq=False)
class Control:
    """Random rankings of one text under one removal, with their curves. Every method on the text is held against the same ones."""

    game: Game
    rankings: Int[np.ndarray, "ranking unit"]
    curves: Curves
    is_complete: bool  # every order that there is, once
    forwards: int  # passes that the random rankings cost; methods share them


def control(game: Game, rankings: int = RANKINGS, seed: int = 0) -> Control:
    """Random rankings, or all of them where there are no more than that.

    >>> import whence
    >>> control(whence.game(whence.load("sentiment"), "not bad at all")).rankings.shape
    (24, 4)
    """
    d = game.size
    complete = d <= 8 and factorial(d) <= rankings
    if complete:
        orders = np.array(list(permutations(range(d))))
    else:
        orders = np.random.default_rng([seed, CONTROL_STREAM, *game.digest]).permuted(
            np.tile(np.arange(d), (rankings, 1)), axis=1
        )
    before = game.cost.forwards
    found = curves(game, orders)
    return Control(game, orders, found, complete, game.cost.forwards - before)


def orders_of(
    scores: Float[np.ndarray, " unit"], rng: np.random.Generator
) -> Int[np.ndarray, "order unit"]:
    """The ranking of the scores, highest first; where some are equal, several, with the equal ones in random order.

    >>> orders_of(np.array([0.1, 0.7, 0.2]), np.random.default_rng(0)).tolist()
    [[1, 2, 0]]
    """
    tied = len(np.unique(scores)) < len(scores)
    lots = rng.random((TIE_BREAKS if tied else 1, len(scores)))
    return np.stack([np.lexsort((lot, -scores)) for lot in lots])


def evidence(
    scores: Float[np.ndarray, " unit"], signed: bool, controls: Sequence[Control], seed: int = 0
) -> Evidence:
    """The verdict on a ranking, and what it rests on, for each removal.

    Signed scores say what holds the target up: highest first, and the area between the insertion
    and the deletion curve is to be large ("support"). Unsigned ones say what matters, for or
    against: distances from the target's value count ("matter"). ``value`` is the share of random
    rankings that the ranking beats (a half is chance), with a 95 % interval (Wilson's); ``p`` is
    the chance that a random ranking does as well (near 1: does no worse). The verdict over several
    removals is *better* or *worse* only where every one of them says so (an intersection–union
    test), and ``p`` is then the largest of theirs. ``forwards`` counts the passes of the curves,
    those of the shared control among them.

    >>> import whence
    >>> v = whence.game(
    ...     whence.load("sentiment"), "a truly wonderful and moving film", target="positive"
    ... )
    >>> one_out = np.array([v.full - v(1 - np.eye(6))[i] for i in range(6)])
    >>> str(evidence(one_out, True, [control(v)]).verdict)
    'better than random'
    """
    question = "support" if signed else "matter"
    rankings = len(controls[0].rankings)
    if len(scores) < 2:
        return Evidence(
            measure=CURVES,
            verdict=Verdict.SAME,
            value=0.5,
            interval=(0.0, 1.0),
            p=1.0,
            question=question,
            rankings=rankings,
            note="one unit has one ranking",
        )
    rng = np.random.default_rng([seed, TIES_STREAM, *controls[0].game.digest])
    orders = orders_of(scores, rng)
    trials = tuple(_tried(c, orders, question) for c in controls)
    verdicts = {trial.verdict for trial in trials}
    return Evidence(
        measure=CURVES,
        verdict=verdicts.pop() if len(verdicts) == 1 else Verdict.SAME,
        value=float(np.mean([trial.beaten for trial in trials])),
        interval=(
            min(trial.interval[0] for trial in trials if trial.interval),
            max(trial.interval[1] for trial in trials if trial.interval),
        ),
        p=max(trial.p for trial in trials if trial.p is not None),
        question=question,
        rankings=rankings,
        trials=trials,
        forwards=sum(t.forwards for t in trials) + sum(c.forwards for c in controls),
        note=_note(trials, len(scores), controls[0].is_complete),
    )


def _note(trials: Sequence[Trial], units: int, complete: bool) -> str:
    if complete and 1 / factorial(units) > LEVEL:
        return f"{units} units have only {factorial(units)} rankings: too few for a verdict"
    if len({trial.verdict for trial in trials}) > 1:
        verdicts = ", ".join(f"{trial.verdict} by {trial.removal}" for trial in trials)
        return f"it depends on the removal: {verdicts}"
    return ""


def _tried(control: Control, orders: Int[np.ndarray, "order unit"], question: str) -> Trial:
    """The ranking beside the control, under one removal."""
    before = control.game.cost.forwards
    ranked = curves(control.game, orders)
    ours = float(getattr(ranked, question)().mean())
    random = getattr(control.curves, question)()
    largest = max(np.abs(control.curves.deletion).max(), np.abs(control.curves.insertion).max())
    near = ROUNDING * float(largest)
    count = len(random)
    wins = int((ours > random + near).sum())
    ties = int((np.abs(ours - random) <= near).sum())
    share = (wins + ties / 2) / count
    p_better = _rank_p(count - wins, count, control.is_complete)
    p_worse = _rank_p(wins + ties, count, control.is_complete)
    verdict = Verdict.SAME
    if p_better <= LEVEL:
        verdict = Verdict.BETTER
    elif p_worse <= LEVEL:
        verdict = Verdict.WORSE
    low, high = np.quantile(random, [0.025, 0.975])
    return Trial(
        removal=control.game.removal,
        verdict=verdict,
        statistic=ours,
        random_low=float(low),
        random_high=float(high),
        random_mean=float(random.mean()),
        beaten=share,
        interval=wilson(share, count),
        p=p_better,
        forwards=control.game.cost.forwards - before,
        curves=TrialCurves(
            steps=tuple(ranked.steps.tolist()),
            deletion=tuple(ranked.deletion.mean(0).tolist()),
            insertion=tuple(ranked.insertion.mean(0).tolist()),
            random_deletion=_band(control.curves.deletion),
            random_insertion=_band(control.curves.insertion),
        ),
    )


def _rank_p(as_good: int, count: int, complete: bool) -> float:
    """The share of rankings that are as good; one more where the ranking itself is not among them, as it would be by chance."""
    return as_good / count if complete else (as_good + 1) / (count + 1)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(x, 3) for x in wilson(0.5, 100)]
    [0.404, 0.596]
    """
    middle = (share + NORMAL**2 / (2 * count)) / (1 + NORMAL**2 / count)
    half = (
        NORMAL
        / (1 + NORMAL**2 / count)
        * sqrt(share * (1 - share) / count + NORMAL**2 / (4 * count**2))
    )
    return (max(0.0, middle - half), min(1.0, middle + half))


def _band(values: Float[np.ndarray, "ranking step"]) -> Band:
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    return tuple(zip(low.tolist(), values.mean(0).tolist(), high.tolist(), strict=True))


def judged(a: Attribution, controls: Sequence[Control], seed: int = 0) -> Evidence:
    """The evidence of an attribution; what its method found itself is kept beside it."""
    earlier = a.evidence
    own = None
    if earlier is not None:
        own = earlier.own if earlier.measure == CURVES else earlier
    return replace(evidence(a.scores, a.signed, controls, seed), own=own)
