"""judge: evidence for attributions, wherever their scores come from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from whence.core.attribution import Attribution, Cost
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.core.many import Many
from whence.core.passage import Passage
from whence.core.request import check_rankings, check_steps
from whence.explaining.added import attributions_of
from whence.explaining.job import Progress
from whence.explaining.outside import Games, usual_removals
from whence.explaining.room import room_for_games
from whence.explaining.run import total_cost
from whence.explaining.windows import with_evidence_in_windows
from whence.games.game import TOKENS_AT_ONCE, check_is_model
from whence.metrics.evidence import RANKINGS, STEPS, control_passes, ranking_passes
from whence.models.model import Model


def judge(
    model: Model,
    attributions: Any,
    *,
    removals: Sequence[str] | None = None,
    rankings: int = RANKINGS,
    steps: int = STEPS,
    seed: int = 0,
    memory: str | int | float | None = None,
    progress: Progress | None = None,
) -> Any:
    """An attribution, or each of several, with evidence against random rankings of the same text.

    It does not matter where the scores come from. What goes in comes out, judged: an Attribution,
    a list of them, Attributions or a Comparison, whose cost then counts the passes of the evidence
    too, or Many. Attributions of one text share their games, and those of one target its control.
    ``removals`` are two by default: ``mask`` and ``delete`` where there is a mask token.
    ``rankings`` random ones are drawn, 39 at least, and each curve has at most ``steps`` steps.
    ``memory`` is a budget ("2GB"; by default most of what is free), kept by smaller batches; where
    none is small enough, nothing is run.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> text, scores = "a truly wonderful film", [0.1, 0.2, 0.9, 0.3]
    >>> a = whence.Attribution.from_scores(model, text, scores, method="mine", target="positive")
    >>> [trial.removal for trial in whence.judge(model, a).evidence.trials]
    ['mask', 'delete']
    """
    check_is_model(model)
    check_rankings(rankings)
    check_steps(steps)
    if isinstance(removals, str) or (removals is not None and not removals):
        raise InputError(
            f"removals= is a list of names, e.g. ['mask', 'delete'], not {removals!r}."
        )
    if isinstance(attributions, Many):
        options: dict[str, Any] = {"removals": removals, "rankings": rankings, "steps": steps}
        options |= {"seed": seed, "memory": memory, "progress": progress}
        return Many(tuple(judge(model, one, **options) for one in attributions))
    begun = time.perf_counter()
    several = _several(attributions)
    passages = [_judgeable(model, attribution) for attribution in several]
    windows_of = [model.windows(passage) for passage in passages]
    tried = usual_removals(model) if removals is None else list(removals)
    masks = _count_masks(windows_of, rankings, steps)
    # before anything is run: what does not fit the memory is refused here
    every_window = [window for windows in windows_of for window in windows]
    tokens_at_once = TOKENS_AT_ONCE
    if every_window:
        tokens_at_once = room_for_games(model, every_window, memory, "the evidence", tried, masks)
    games_of_texts: list[tuple[Passage, list[Games]]] = []
    judged: list[Attribution] = []
    for attribution, passage, windows in zip(several, passages, windows_of, strict=True):
        games = _games_of(passage, games_of_texts)
        if games is None:
            say = progress or (lambda _: None)
            targets = (attribution.target,)
            games = [Games(model, part, targets, seed, say, tokens_at_once) for part in windows]
            games_of_texts.append((passage, games))
        judged += with_evidence_in_windows([attribution], games, rankings, removals, steps)
    paid = total_cost([each.cost for _, games in games_of_texts for each in games])
    return _as_given(attributions, judged, replace(paid, seconds=time.perf_counter() - begun))


def _count_masks(windows_of: Sequence[Sequence[Passage]], rankings: int, steps: int) -> int:
    """The most masks that a game remembers, were all attributions of one text."""
    units = [len(window.unit_spans) for windows in windows_of for window in windows]
    most = max(units, default=0)
    each = control_passes(most, rankings, steps)
    each += len(windows_of) * ranking_passes(most, steps)
    return min(each, 2**most)


def _several(attributions: Any) -> list[Attribution]:
    """The attributions in what was given, in order."""
    if isinstance(attributions, (Attribution, Attributions, Comparison)):
        return attributions_of(attributions)
    if isinstance(attributions, Mapping) or not isinstance(attributions, Iterable):
        attributions = [attributions]
    several = list(attributions)
    for attribution in several:
        if not isinstance(attribution, Attribution):
            raise InputError(
                "judge takes an Attribution, a list of them, Attributions or a Comparison, "
                f"not the {type(attribution).__name__} {attribution!r:.40}."
            )
    return several


def _as_given(given: Any, judged: list[Attribution], paid: Cost) -> Any:
    """What was given, with judged attributions in it; its cost with what the evidence took."""
    if isinstance(given, Attribution):
        return judged[0]
    if not isinstance(given, (Attributions, Comparison)):
        return judged
    by_name = dict(zip(given, judged, strict=True))
    cost = replace(
        given.cost,
        forwards=given.cost.forwards + paid.forwards,
        saved=given.cost.saved + paid.saved,
        seconds=given.cost.seconds + paid.seconds,
    )
    if isinstance(given, Comparison):
        return replace(given, attributions=by_name, cost=cost)
    return replace(given, entries=by_name, cost=cost)


def _judgeable(model: Model, attribution: Attribution) -> Passage:
    """The passage of an attribution that can be judged."""
    if attribution.passage is None:
        raise InputError(
            f"judge plays a game on the words of a text, and these units are of kind "
            f"{attribution.units.kind!r}, without a text."
        )
    if attribution.provenance.fingerprint not in ("", model.fingerprint):
        raise InputError(
            f"this attribution is of {attribution.provenance.model}, "
            f"whose weights are not those of {model.name}."
        )
    return attribution.passage


def _games_of(
    passage: Passage, games_of_texts: Sequence[tuple[Passage, list[Games]]]
) -> list[Games] | None:
    """The games of the same tokens and units that were made before, if there are any."""
    for earlier, games in games_of_texts:
        same_input = earlier.input_key == passage.input_key
        if same_input and earlier.unit_spans == passage.unit_spans:
            return games
    return None
