"""Long texts: explained in consecutive windows that fit the model, and joined again.

The target of the whole is the mean of the windows' targets, so that the scores of each of w
windows count one part in w. The evidence is joined in the same way (``metrics/windows.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from whence.core.attribution import Attribution, Cost, windows_of
from whence.core.errors import TargetError
from whence.core.passage import Passage
from whence.core.request import Ask
from whence.core.scores import Scores
from whence.core.target import Target
from whence.explaining.job import Finding, Findings, Said
from whence.explaining.outside import Games, usual_removals, with_evidence
from whence.metrics.evidence import STEPS, Control
from whence.metrics.windows import JointControl, joint_control, judged_in_windows
from whence.models.model import Model


def asks_of_windows(
    model: Model, windows: Sequence[Passage], target: Target
) -> tuple[list[Ask], int]:
    """One ask for each window, all about one target; and the passes paid for each to find it.

    Unless it was named, the target is the class that the mean of the windows' logits predicts.
    """
    if target.read == "kl":
        raise TargetError(
            "a divergence is measured from what the model says of the whole text, and each window "
            "has its own; read a label, or use overflow='truncate'."
        )
    names_a_class = target.label is not None
    names_a_rival = target.read != "margin" or target.against is not None
    if names_a_class and names_a_rival:
        logits = np.zeros(len(model.labels))
        looks = 0
    else:
        logits = model.logits(windows).mean(0)
        looks = 1
    resolved = model.resolve(target, logits)
    return [Ask(window, resolved) for window in windows], looks


def joined(windows: Sequence[Findings], looks: int) -> Findings:
    """What the methods found for a text, from what they found for each of its windows."""
    findings: Findings = {}
    for method in windows[0]:
        each = [found[method] for found in windows]
        failures = [finding for finding in each if isinstance(finding, Exception)]
        if failures:
            findings[method] = failures[-1]
        else:
            whole = [finding for finding in each if isinstance(finding, Finding)]
            findings[method] = _joined_finding(whole, looks)
    return findings


def with_windows(
    attributions: dict[str, Attribution],
    windows: Sequence[Passage],
    findings_of_windows: Sequence[Findings],
) -> dict[str, Attribution]:
    """The attributions of a text with its windows, and the target's value in each of them."""
    sizes = [len(window.unit_spans) for window in windows]
    cut = {}
    for method, attribution in attributions.items():
        found = [findings[method] for findings in findings_of_windows]
        values = [finding.said.value for finding in found if isinstance(finding, Finding)]
        cut[method] = replace(attribution, windows=windows_of(sizes, values))
    return cut


def _joined_finding(windows: Sequence[Finding], looks: int) -> Finding:
    said = Said(
        target=windows[0].said.target,
        value=float(np.mean([finding.said.value for finding in windows])),
        logits=np.mean([finding.said.logits for finding in windows], axis=0),
    )
    return replace(
        windows[0],
        said=said,
        scores=joined_scores([finding.scores for finding in windows]),
        cost=_joined_cost([finding.cost for finding in windows], looks),
    )


def joined_scores(windows: Sequence[Scores]) -> Scores:
    """The scores of all windows, one after the other, each one part in so many.

    What a method found beside scores (its own check, its detail) is of single windows, and is not
    kept.

    >>> first, second = Scores(units=np.array([2.0, 4.0])), Scores(units=np.array([6.0]))
    >>> joined_scores([first, second]).units
    array([1., 2., 3.])
    """
    count = len(windows)
    units = [scores.units for scores in windows if scores.units is not None]
    errors = [s.standard_error for s in windows if s.standard_error is not None]
    changes = [scores.change for scores in windows if scores.change is not None]
    notes = [scores.note for scores in windows if scores.note]
    return Scores(
        units=np.concatenate(units) / count,
        standard_error=np.concatenate(errors) / count if errors else None,
        change=sum(changes) / count if changes else None,
        note=f"{len(notes)} of {count} windows: {notes[0]}" if notes else "",
    )


def _joined_cost(windows: Sequence[Cost], looks: int) -> Cost:
    peaks = [cost.peak_bytes for cost in windows if cost.peak_bytes is not None]
    return Cost(
        forwards=sum(cost.forwards for cost in windows) + looks * len(windows),
        backwards=sum(cost.backwards for cost in windows),
        seconds=sum(cost.seconds for cost in windows),
        peak_bytes=max(peaks, default=None),
        shared=windows[0].shared,
        saved=sum(cost.saved for cost in windows),
    )


def with_evidence_in_windows(
    attributions: Sequence[Attribution],
    games_of_windows: Sequence[Games],
    rankings: int,
    removals: Sequence[str] | None = None,
    steps: int = STEPS,
) -> list[Attribution]:
    """Attributions of one text with their evidence, all beside the same random rankings.

    A text that fits the model has one window, and its evidence needs no joining.
    """
    games = games_of_windows[0]
    if len(games_of_windows) == 1:
        return with_evidence(attributions, games, rankings, removals, steps)
    if removals is None:
        removals = usual_removals(games.model)
    controls: dict[Target, list[JointControl]] = {}
    judged_ones = []
    for attribution in attributions:
        target = attribution.target
        if target not in controls:
            controls[target] = _joint_controls(games_of_windows, removals, rankings, steps, target)
        evidence = judged_in_windows(attribution, controls[target], games.seed)
        judged_ones.append(_with_windows(replace(attribution, evidence=evidence), controls[target]))
    return judged_ones


def _joint_controls(
    games_of_windows: Sequence[Games],
    removals: Sequence[str],
    rankings: int,
    steps: int,
    target: Target,
) -> list[JointControl]:
    """The controls of the whole text, one for each removal, from those of each window."""
    by_removal: dict[str, list[Control]] = {removal: [] for removal in removals}
    for place, games in enumerate(games_of_windows, 1):
        games.begin("evidence")
        games.label = f"evidence, window {place} of {len(games_of_windows)}"
        for removal in removals:
            by_removal[removal].append(games.control(removal, rankings, target, steps))
    seed = games_of_windows[0].seed
    return [joint_control(controls, rankings, seed) for controls in by_removal.values()]


def _with_windows(attribution: Attribution, controls: Sequence[JointControl]) -> Attribution:
    """The attribution with its windows; one that was made before they were kept has none."""
    if attribution.windows or attribution.passage is None:
        return attribution
    curves_of_windows = [control.curves for control in controls[0].windows]
    values = [float(curves.deletion[0, 0]) for curves in curves_of_windows]  # nothing removed yet
    sizes = [control.game.size for control in controls[0].windows]
    return replace(attribution, windows=windows_of(sizes, values))
