"""Evidence for a text in windows: one verdict on the whole, by the same test as for any text.

The target of the whole is the mean of the windows' targets, and so is everything here: what is
measured of a ranking is the mean of what is measured in each window, where the ranking of the whole
is the ranking of the window's own units. A random ranking of the whole is one random ranking in
each window; where scores are equal, one with the same ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from jaxtyping import Float, Int

from whence.core.attribution import Attribution
from whence.core.evidence import (
    ALL_EQUAL_IN_WINDOWS,
    Evidence,
    Trial,
    TrialCurves,
    is_within,
)
from whence.metrics.curves import Curves, curves
from whence.metrics.evidence import (
    MATTER,
    SUPPORT,
    Control,
    TiedRows,
    as_noted,
    band,
    evidence,
    few_copies,
    nothing_ranked,
    summed_up,
    tied_rows,
    trial_of,
)
from whence.metrics.matter import Matter
from whence.metrics.rankings import RANKINGS, rankings_of
from whence.metrics.standing import standing
from whence.metrics.support import Support
from whence.metrics.ties import Copies, are_tied, copies_of

JOINING_STREAM = 3  # of random numbers; rankings.py has the others


@dataclass(frozen=True, eq=False)
class JointControl:
    """Random rankings of a text in windows, under one removal.

    ``rows`` says which of a window's random rankings belongs to each of the whole text's.
    """

    windows: tuple[Control, ...]
    rows: Int[np.ndarray, "ranking window"]
    is_complete: bool  # every order of every window with every order of the others, once

    @property
    def largest(self) -> float:
        """The largest value on any curve: the scale of rounding errors."""
        return max(control.curves.largest for control in self.windows)

    @property
    def forwards(self) -> int:
        """Passes that the random rankings cost."""
        return sum(control.forwards for control in self.windows)

    def statistics(self, metric: Support | Matter) -> Float[np.ndarray, " ranking"]:
        """The metric of each random ranking: its mean over the windows."""
        each = []
        for place, control in enumerate(self.windows):
            each.append(metric.of(control.curves)[self.rows[:, place]])
        return np.mean(each, axis=0)


def joint_control(
    controls: Sequence[Control], rankings: int = RANKINGS, seed: int = 0
) -> JointControl:
    """Random rankings of the whole text from those of each of its windows.

    The r-th of the whole is the r-th of every window. A window with so few units that its orders
    are all listed gives one of them by lot, so that there are as many for every window; only where
    the orders of all windows together are no more than ``rankings``, all of them are listed.

    Lots are drawn by what stands in the window, as the rankings themselves are: windows of equal
    words get equal random rankings, as every method gives them equal scores.

    >>> import whence
    >>> from whence.metrics.evidence import control
    >>> model = whence.load("sentiment")
    >>> controls = [control(whence.game(model, text)) for text in ("not bad", "a fine little film")]
    >>> joint_control(controls).rows.shape, joint_control(controls).is_complete
    ((48, 2), True)
    """
    counts = [len(control.rankings) for control in controls]
    all_listed = all(control.is_complete for control in controls)
    if all_listed and prod(counts) <= rankings:
        every = np.array(list(product(*map(range, counts))))
        return JointControl(tuple(controls), every, is_complete=True)
    drawn = [len(control.rankings) for control in controls if not control.is_complete]
    number = min(drawn, default=rankings)
    columns = []
    for control in controls:
        if control.is_complete:
            rng = np.random.default_rng([seed, JOINING_STREAM, *control.game.digest])
            columns.append(rng.integers(len(control.rankings), size=number))
        else:
            columns.append(np.arange(number))
    return JointControl(tuple(controls), np.stack(columns, axis=1), is_complete=False)


def joint_evidence(
    scores: Float[np.ndarray, " unit"],
    signed: bool,
    controls: Sequence[JointControl],
    seed: int = 0,
) -> Evidence:
    """The verdict on a ranking of a text in windows; ``controls`` are one for each removal.

    It is read as the evidence of any text. ``windows`` holds the evidence of each window alone.
    Curves are the mean of the windows' curves, over the share of each window's units; they are for
    the figure, and of a window with fewer steps than the longest they are drawn between its steps.

    Said in a note where the windows together have too few rankings for a verdict. ``the windows
    together have only 12 rankings: too few for a verdict``

    >>> import whence
    >>> from whence.metrics.evidence import control
    >>> model = whence.load("sentiment")
    >>> games = [whence.game(model, text, target="positive") for text in ("a fine film", "so bad")]
    >>> joint = joint_control([control(game) for game in games])
    >>> joint_evidence(np.array([0.1, 0.9, 0.2, -0.1, -0.8]), True, [joint]).rankings
    12
    """
    pieces = _pieces(scores, controls[0])
    question = "support" if signed else "matter"
    metric = SUPPORT if signed else MATTER
    steps = max(len(window.curves.steps) - 1 for window in controls[0].windows)
    count = len(controls[0].rows)
    is_tied = any(are_tied(piece) for piece in pieces)
    if is_tied and all(len(np.unique(piece)) == 1 for piece in pieces):
        whole = nothing_ranked(question, count, steps, ALL_EQUAL_IN_WINDOWS)
        return replace(whole, windows=_alone(pieces, signed, controls, seed))
    tried = _tried_with_ties if is_tied else _tried
    trials = tuple(tried(pieces, control, metric, seed) for control in controls)
    note = ""
    if is_tied:
        copies = _tied(pieces, controls[0], seed).copies
        count = len(copies)
        note = few_copies(copies)
    elif controls[0].is_complete and not is_within(1 / count):
        note = f"the units of all windows have only {count} rankings: too few for a verdict"
    whole = summed_up(
        trials,
        question=question,
        rankings=count,
        steps=steps,
        paid_by_controls=sum(control.forwards for control in controls),
        note=note,
    )
    return replace(whole, windows=_alone(pieces, signed, controls, seed))


def judged_in_windows(a: Attribution, controls: Sequence[JointControl], seed: int = 0) -> Evidence:
    """The evidence of an attribution; what its method found itself is kept beside it."""
    return as_noted(joint_evidence(a.scores, a.signed, controls, seed), a)


def _alone(
    pieces: Sequence[Float[np.ndarray, " _"]],
    signed: bool,
    controls: Sequence[JointControl],
    seed: int,
) -> tuple[Evidence, ...]:
    """The evidence of each window by itself, without the curves; what is needed was run already."""
    every = []
    for place, piece in enumerate(pieces):
        own_controls = [control.windows[place] for control in controls]
        alone = evidence(piece, signed, own_controls, seed)
        trials = tuple(replace(trial, curves=None) for trial in alone.trials)
        every.append(replace(alone, trials=trials))
    return tuple(every)


def _pieces(
    scores: Float[np.ndarray, " unit"], control: JointControl
) -> list[Float[np.ndarray, " _"]]:
    """The scores of each window."""
    sizes = [window.game.size for window in control.windows]
    return np.split(scores, np.cumsum(sizes)[:-1])


def _tried(
    pieces: Sequence[Float[np.ndarray, " _"]],
    control: JointControl,
    metric: Support | Matter,
    seed: int,
) -> Trial:
    """The ranking beside the control, under one removal."""
    ranked, forwards = [], 0
    for piece, window in zip(pieces, control.windows, strict=True):
        paid_before = window.game.cost.forwards
        orders = rankings_of(piece, window.game, seed)
        ranked.append(curves(window.game, orders, window.steps))
        forwards += window.game.cost.forwards - paid_before
    beside = standing(
        float(np.mean([metric.of(of_window).mean() for of_window in ranked])),
        control.statistics(metric),
        better=metric.better,
        is_complete=control.is_complete,
        scale=control.largest,
    )
    removal = control.windows[0].game.removal
    random = [
        Curves(window.curves.steps, window.curves.deletion[own], window.curves.insertion[own])
        for window, own in zip(control.windows, control.rows.T, strict=True)
    ]
    return trial_of(removal, beside, forwards, _for_figures(ranked, random))


@dataclass(frozen=True, eq=False)
class TiedWholes:
    """Tied scores of a text in windows and their copies, under one removal.

    ``rows`` says which of each window's rows belongs to each of the whole text's.
    """

    windows: tuple[TiedRows, ...]
    rows: Int[np.ndarray, "row window"]
    copies: Copies


def _tied(
    pieces: Sequence[Float[np.ndarray, " _"]], control: JointControl, seed: int
) -> TiedWholes:
    """The rows of all windows, and which of the whole text's are the same copy."""
    windows = []
    for piece, window in zip(pieces, control.windows, strict=True):
        windows.append(tied_rows(piece, window, seed))
    own = np.array([[window.own for window in windows]])
    rows = control.rows
    if not control.is_complete:
        rows = np.concatenate([rows, own])
    tiers = _tiers(windows, rows)
    (own_tiers,) = _tiers(windows, own)
    number = prod(window.number for window in windows)
    return TiedWholes(tuple(windows), rows, copies_of(tiers, own_tiers, number))


def _tiers(
    windows: Sequence[TiedRows], rows: Int[np.ndarray, "row window"]
) -> Int[np.ndarray, "row unit"]:
    """The tiers of the whole text's units, window by window."""
    every = [window.tiers[own] for window, own in zip(windows, rows.T, strict=True)]
    return np.concatenate(every, axis=1)


def _tried_with_ties(
    pieces: Sequence[Float[np.ndarray, " _"]],
    control: JointControl,
    metric: Support | Matter,
    seed: int,
) -> Trial:
    """Tied scores beside copies of themselves, under one removal."""
    paid_before = sum(window.game.cost.forwards for window in control.windows)
    wholes = _tied(pieces, control, seed)
    paid = sum(window.game.cost.forwards for window in control.windows) - paid_before
    each = []
    for window, own in zip(wholes.windows, wholes.rows.T, strict=True):
        each.append(metric.of(window.curves)[own])
    value, random = wholes.copies.apart(np.mean(each, axis=0))
    beside = standing(
        float(value.mean()),
        random,
        better=metric.better,
        is_complete=wholes.copies.is_complete,
        scale=control.largest,
    )
    ranked, of_random = [], []
    for window, own in zip(wholes.windows, wholes.rows.T, strict=True):
        own_curves = Curves(
            window.curves.steps, window.curves.deletion[own], window.curves.insertion[own]
        )
        own_ranked, own_random = wholes.copies.curves_apart(own_curves)
        ranked.append(own_ranked)
        of_random.append(own_random)
    removal = control.windows[0].game.removal
    return trial_of(removal, beside, paid, _for_figures(ranked, of_random))


# ------------------------------------------------------------------------------ for the figure


def _for_figures(ranked: Sequence[Curves], random: Sequence[Curves]) -> TrialCurves:
    """The mean of the windows' curves, at the steps of the window that has most of them.

    The rows of ``random`` are those of the whole text, in every window.
    """
    longest = max(ranked, key=lambda curves_: len(curves_.steps)).steps
    shares = longest / longest[-1]
    units = sum(int(of_window.steps[-1]) for of_window in ranked)
    deletion = [_at(shares, c.deletion.mean(0)[None], c.steps) for c in ranked]
    insertion = [_at(shares, c.insertion.mean(0)[None], c.steps) for c in ranked]
    random_deletion = [_at(shares, c.deletion, c.steps) for c in random]
    random_insertion = [_at(shares, c.insertion, c.steps) for c in random]
    return TrialCurves(
        steps=tuple(np.round(shares * units).astype(int).tolist()),
        deletion=tuple(np.mean(deletion, axis=0)[0].tolist()),
        insertion=tuple(np.mean(insertion, axis=0)[0].tolist()),
        random_deletion=band(np.mean(random_deletion, axis=0)),
        random_insertion=band(np.mean(random_insertion, axis=0)),
    )


def _at(
    shares: Float[np.ndarray, " share"],
    heights: Float[np.ndarray, "ranking step"],
    steps: Int[np.ndarray, " step"],
) -> Float[np.ndarray, "ranking share"]:
    """Curves at these shares of the window's units, on straight lines between their steps."""
    own_shares = steps / steps[-1]
    return np.stack([np.interp(shares, own_shares, row) for row in heights])
