"""Evidence: is a ranking better than random rankings of the same text, under the same removals?

It stands on two metrics, ``support`` for signed scores and ``matter`` for unsigned ones. The
control is the same metric on random rankings; for scores with ties, on random rankings with the
same ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from whence.core.attribution import Attribution
from whence.core.evidence import (
    ALL_EQUAL,
    CURVES,
    ONE_UNIT,
    STILL,
    ZERO,
    Band,
    Evidence,
    Trial,
    TrialCurves,
    Verdict,
    is_still,
    is_within,
)
from whence.games.protocol import AnyGame
from whence.metrics.curves import STEPS, Curves, curves, steps_of
from whence.metrics.matter import Matter
from whence.metrics.rankings import (
    RANKINGS,
    number_of_rankings,
    orders_of,
    random_rankings,
    rankings_of,
)
from whence.metrics.standing import BAND, Standing, standing, wilson
from whence.metrics.support import Support
from whence.metrics.ties import (
    Copies,
    are_tied,
    copies_of,
    joined,
    number_of_copies,
    sizes_of,
    smoothed,
    tiers_in,
)

__all__ = [
    "RANKINGS",
    "STEPS",
    "Control",
    "band",
    "control",
    "control_passes",
    "evidence",
    "few_copies",
    "judged",
    "nothing_ranked",
    "orders_of",
    "own_evidence",
    "ranking_passes",
    "summed_up",
    "tied_rows",
    "trial_of",
    "untested",
    "wilson",
]

SUPPORT = Support()
MATTER = Matter()


@dataclass(frozen=True, eq=False)
class Control:
    """Random rankings of one text under one removal, with their curves.

    Every method on the text is held against the same ones.
    """

    game: AnyGame
    rankings: Int[np.ndarray, "ranking unit"]
    curves: Curves
    steps: int  # of a curve, at most
    is_complete: bool  # every order that there is, once
    forwards: int  # passes that the random rankings cost; methods share them


def control(game: AnyGame, rankings: int = RANKINGS, seed: int = 0, steps: int = STEPS) -> Control:
    """Random rankings, or all of them where there are no more than that.

    Their curves have at most ``steps`` steps.

    >>> import whence
    >>> control(whence.game(whence.load("sentiment"), "not bad at all")).rankings.shape
    (24, 4)
    """
    random = random_rankings(game, rankings, seed)
    paid_before = game.cost.forwards
    random_curves = curves(game, random.orders, steps)
    paid = game.cost.forwards - paid_before
    return Control(game, random.orders, random_curves, steps, random.is_complete, paid)


def ranking_passes(units: int, steps: int = STEPS) -> int:
    """What the curves of one ranking take under one removal, beyond both ends.

    >>> ranking_passes(27), ranking_passes(27, steps=5), ranking_passes(3)
    (18, 8, 4)
    """
    inner_steps = len(steps_of(units, steps)) - 2
    return 2 * max(0, inner_steps)


def control_passes(units: int, rankings: int = RANKINGS, steps: int = STEPS) -> int:
    """What the random rankings take under one removal at most, and the empty text.

    >>> control_passes(27), control_passes(27, rankings=39, steps=5)
    (1801, 313)
    """
    return number_of_rankings(units, rankings) * ranking_passes(units, steps) + 1


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
    test), and ``p`` is then the largest of theirs. Scores that are equal in part are held against
    copies of themselves (``metrics/ties.py``). ``forwards`` counts the passes of the curves,
    those of the shared control among them.

    Said in a note where so few units have too few rankings for a verdict. ``3 units have only 6
    rankings: too few for a verdict``

    >>> import whence
    >>> v = whence.game(
    ...     whence.load("sentiment"), "a truly wonderful and moving film", target="positive"
    ... )
    >>> one_out = np.array([v.full - v(1 - np.eye(6))[i] for i in range(6)])
    >>> str(evidence(one_out, True, [control(v)]).verdict)
    'better than random'
    """
    question = "support" if signed else "matter"
    metric = SUPPORT if signed else MATTER
    rankings = len(controls[0].rankings)
    steps = len(controls[0].curves.steps) - 1
    if len(scores) < 2:
        return nothing_ranked(question, rankings, steps, ONE_UNIT)
    if all(is_still(*one.curves.ends) for one in controls):
        return nothing_ranked(question, rankings, steps, STILL)
    if len(np.unique(scores)) == 1:
        return nothing_ranked(question, rankings, steps, ALL_EQUAL)
    trials = tuple(_tried(scores, control, metric, seed) for control in controls)
    note = ""
    if are_tied(scores):
        copies = tied_rows(scores, controls[0], seed).copies
        rankings = len(copies)
        note = few_copies(copies)
    elif controls[0].is_complete and not is_within(1 / rankings):
        note = f"{len(scores)} units have only {rankings} rankings: too few for a verdict"
    paid = sum(control.forwards for control in controls)
    return summed_up(trials, question, rankings, steps, paid, note)


def summed_up(
    trials: tuple[Trial, ...],
    question: str,
    rankings: int,
    steps: int,
    paid_by_controls: int,
    note: str,
) -> Evidence:
    """What the trials under all removals say together."""
    shares = [trial.beaten for trial in trials if trial.beaten is not None]
    intervals = [trial.interval for trial in trials if trial.interval]
    paid = sum(trial.forwards for trial in trials)
    return Evidence(
        measure=CURVES,
        verdict=_joint_verdict(trials),
        value=float(np.mean(shares)),
        interval=(min(low for low, _ in intervals), max(high for _, high in intervals)),
        p=max(trial.p for trial in trials if trial.p is not None),
        p_worse=max((trial.p_worse for trial in trials if trial.p_worse is not None), default=None),
        question=question,
        rankings=rankings,
        steps=steps,
        trials=trials,
        forwards=paid + paid_by_controls,
        note=note or _disagreement(trials),
    )


def judged(a: Attribution, controls: Sequence[Control], seed: int = 0) -> Evidence:
    """The evidence of an attribution; what its method found itself is kept beside it."""
    return as_noted(evidence(a.scores, a.signed, controls, seed), a)


def as_noted(judged: Evidence, a: Attribution) -> Evidence:
    """The evidence with the method's own beside it, and with why it ranks nothing, if it knows."""
    if judged.ranks_nothing and a.is_zero_by_construction:
        judged = replace(judged, note=ZERO)
    return replace(judged, own=own_evidence(a))


def untested(a: Attribution, why: str) -> Attribution:
    """The attribution with the reason why there is no verdict on it.

    Said where the curves could not be made. ``not held against random rankings: the budget is
    spent``
    """
    none = Evidence(CURVES, None, note=f"not held against random rankings: {why}")
    return replace(a, evidence=replace(none, own=own_evidence(a)))


def own_evidence(a: Attribution) -> Evidence | None:
    """What the method found itself, before its ranking was held against random ones."""
    earlier = a.evidence
    if earlier is None or earlier.measure != CURVES:
        return earlier
    return earlier.own


def nothing_ranked(question: str, rankings: int, steps: int, note: str) -> Evidence:
    """The evidence where there is no ranking to be judged."""
    return Evidence(
        measure=CURVES,
        verdict=None,
        question=question,
        rankings=rankings,
        steps=steps,
        note=note,
    )


def few_copies(copies: Copies) -> str:
    """That equal scores leave too few rankings for a verdict, if they do.

    Said where equal scores leave too few different rankings. ``equal scores leave only 6 different
    rankings here: too few for a verdict``
    """
    if is_within(copies.smallest_p):
        return ""
    return (
        f"equal scores leave only {copies.distinct} different rankings here: too few for a verdict"
    )


@dataclass(frozen=True, eq=False)
class TiedRows:
    """Tied scores and their copies under one removal, one row for each order.

    ``own`` is the row of the scores themselves; the other rows are the control's rankings.
    """

    curves: Curves
    tiers: Int[np.ndarray, "row unit"]
    own: int
    number: int  # of copies that there can be

    @property
    def copies(self) -> Copies:
        """Which rows are the same copy."""
        return copies_of(self.tiers, self.tiers[self.own], self.number)


def tied_rows(scores: Float[np.ndarray, " unit"], control: Control, seed: int = 0) -> TiedRows:
    """The scores, with equal ones in an order drawn by lot, and the control cut into their tiers.

    Where the control has every order, the one that was drawn is among them.
    """
    sizes = sizes_of(scores)
    own_order = rankings_of(scores, control.game, seed)
    if control.is_complete:
        orders = control.rankings
        rows = control.curves
        (own,) = np.flatnonzero((orders == own_order).all(1)).tolist()
    else:
        orders = np.concatenate([control.rankings, own_order])
        rows = joined([control.curves, curves(control.game, own_order, control.steps)])
        own = len(control.rankings)
    return TiedRows(
        smoothed(rows, orders, sizes), tiers_in(orders, sizes), own, number_of_copies(sizes)
    )


def _tried(
    scores: Float[np.ndarray, " unit"], control: Control, metric: Support | Matter, seed: int
) -> Trial:
    """The ranking beside the control, under one removal."""
    paid_before = control.game.cost.forwards
    if are_tied(scores):
        rows = tied_rows(scores, control, seed)
        copies = rows.copies
        value, random = copies.apart(metric.of(rows.curves))
        is_complete = copies.is_complete
        ranked, control_curves = copies.curves_apart(rows.curves)
    else:
        ranked = curves(control.game, rankings_of(scores, control.game, seed), control.steps)
        control_curves = control.curves
        value, random = metric.of(ranked), metric.of(control_curves)
        is_complete = control.is_complete
    beside = standing(
        float(value.mean()),
        random,
        better=metric.better,
        is_complete=is_complete,
        scale=control.curves.largest,
    )
    paid = control.game.cost.forwards - paid_before
    drawn = _for_figures(ranked, control_curves)
    return trial_of(control.game.removal, beside, paid, drawn)


def trial_of(removal: str, beside: Standing, forwards: int, drawn: TrialCurves) -> Trial:
    """A trial, from where the ranking stands among the random ones."""
    return Trial(
        removal=removal,
        verdict=beside.verdict,
        statistic=beside.value,
        random_low=beside.low,
        random_high=beside.high,
        random_mean=beside.mean,
        beaten=beside.beaten,
        interval=beside.interval,
        p=beside.p,
        p_worse=beside.p_worse,
        forwards=forwards,
        curves=drawn,
    )


def _joint_verdict(trials: Sequence[Trial]) -> Verdict:
    """The verdict of all removals, if they agree."""
    verdicts = {trial.verdict for trial in trials}
    if len(verdicts) > 1:
        return Verdict.SAME
    return verdicts.pop()


def _disagreement(trials: Sequence[Trial]) -> str:
    """That the removals give different verdicts, if they do.

    Said where the verdict is not the same by every removal.
    """
    if len({trial.verdict for trial in trials}) > 1:
        verdicts = ", ".join(f"{trial.verdict} by {trial.removal}" for trial in trials)
        return f"it depends on the removal: {verdicts}"
    return ""


def _for_figures(ranked: Curves, random: Curves) -> TrialCurves:
    return TrialCurves(
        steps=tuple(ranked.steps.tolist()),
        deletion=tuple(ranked.deletion.mean(0).tolist()),
        insertion=tuple(ranked.insertion.mean(0).tolist()),
        random_deletion=band(random.deletion),
        random_insertion=band(random.insertion),
    )


def band(values: Float[np.ndarray, "ranking step"]) -> Band:
    """Low, mean and high of the control, at each step."""
    low, high = np.quantile(values, BAND, axis=0)
    return tuple(zip(low.tolist(), values.mean(0).tolist(), high.tolist(), strict=True))
