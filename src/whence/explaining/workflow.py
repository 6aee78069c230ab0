"""explain and compare: the arguments of a user, made into one run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, overload

from whence.core.attribution import Attribution, Cost
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.registry import find_method, settings_of
from whence.core.registry import methods as all_methods
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind
from whence.explaining.games import Games
from whence.explaining.run import Asked, Outcome, Progress, run
from whence.metrics.evidence import RANKINGS
from whence.models.model import Model, Overflow
from whence.trace.trace import Via


@overload
def explain(
    model: Model, text: str | Passage, method: str = ..., **options: Any
) -> Attribution: ...
@overload
def explain(
    model: Model, text: list[Any], method: str = ..., **options: Any
) -> list[Attribution]: ...
def explain(
    model: Model,
    text: Any,
    method: str = "integrated-gradients",
    *,
    pair: str | None = None,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    memory: str | int | float | None = None,
    evidence: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Attribution | list[Attribution]:
    """Explain one target of a model on one text (or on each text of a list) by one method.

    ``target`` is a class by name or index, None for the predicted one, a pair for a contrast (*why A rather than B*), or a Target;
    ``read`` is logit (default), log-probability, probability or margin. ``memory`` is a budget ("2GB"; by default most of what is
    free), over which a run is refused before it begins. ``evidence=True`` also holds the ranking against random ones of the same text
    (deletion and insertion curves under two removals). Everything after that is a setting of the method.

    >>> import whence
    >>> a = whence.explain(whence.load("sentiment"), "a moving and funny film", "gradient-x-input", target="positive")
    >>> len(a.scores) == len(a.units) == 5
    True
    """
    _need_model(model)
    asked = Asked(info := find_method(method), settings_of(info, settings, seed))
    texts = text if isinstance(text, list) else [text]
    results = run(
        model,
        texts,
        [asked],
        pair,
        as_target(target, read),
        units,
        seed,
        overflow,
        attention_via,
        progress,
        memory,
        evidence,
    )
    attributions = [_one(r, method) for r in results]
    return attributions if isinstance(text, list) else attributions[0]


def _need_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise InputError(
            f"the first argument is a loaded model, not a {type(model).__name__}: whence.load({model!r:.40}) gives one."
        )


def _one(result: Outcome, method: str) -> Attribution:
    if method in result.failed:
        raise result.failed[method]
    return result.attributions[method]


def compare(
    model: Model,
    text: Any,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    *,
    pair: str | None = None,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    memory: str | int | float | None = None,
    evidence: bool = True,
    progress: Progress | None = None,
) -> Comparison:
    """Explain one text by several methods on one shared trace and one game for each removal.

    ``methods=None`` takes every method that fits the model. A mapping gives settings:
    ``{"integrated-gradients": {"baseline": "mask"}}``. Unless ``evidence=False``, each ranking is held against the same random rankings
    of this text, by deletion and insertion curves under two removals.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad at all", ["gradient-l2", "random"])
    >>> list(c)
    ['gradient-l2', 'random']
    """
    _need_model(model)
    names = list(all_methods()) if methods is None else list(methods)
    if not names:
        raise InputError("compare needs at least one method; methods=None takes all that fit.")
    given = methods if isinstance(methods, Mapping) else {}
    asked = [
        Asked(info := find_method(n), settings_of(info, given.get(n, {}), seed)) for n in names
    ]
    started = time.perf_counter()
    (found,) = run(
        model,
        [text],
        asked,
        pair,
        as_target(target, read),
        units,
        seed,
        overflow,
        attention_via,
        progress,
        memory,
        evidence,
    )
    if found.failed and (methods is not None or not found.attributions):
        raise next(iter(found.failed.values()))
    peaks = [
        a.cost.peak_bytes for a in found.attributions.values() if a.cost.peak_bytes is not None
    ]
    total = Cost(
        found.forwards,
        found.backwards,
        seconds=time.perf_counter() - started,
        peak_bytes=max(peaks, default=None),
        saved=found.saved,
    )
    return Comparison(found.attributions, total, {n: str(e) for n, e in found.failed.items()})


def judge(
    model: Model,
    attributions: Any,
    *,
    removals: Sequence[str] | None = None,
    rankings: int = RANKINGS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Any:
    """An attribution, or each of a list, with evidence against random rankings of the same text, wherever the scores come from.

    Those of one text and target share one control. ``removals`` are two by default: ``mask`` and ``delete`` where there is a mask token.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> a = whence.Attribution.from_scores(model, "a truly wonderful film", [0.1, 0.2, 0.9, 0.3], method="mine", target="positive")
    >>> [trial.removal for trial in whence.judge(model, a).evidence.trials]
    ['mask', 'delete']
    """
    _need_model(model)
    if rankings < 100:
        raise InputError(
            f"evidence needs at least 100 random rankings, not {rankings}: fewer cannot tell 95 % from 90."
        )
    if isinstance(removals, str) or (removals is not None and not removals):
        raise InputError(
            f"removals= is a list of names, e.g. ['mask', 'delete'], not {removals!r}."
        )
    several = [attributions] if isinstance(attributions, Attribution) else list(attributions)
    tables: list[Games] = []
    out = []
    for a in several:
        if len(model.windows(a.passage)) > 1:
            raise InputError(
                "this attribution was made in windows, and a game is of one run; judge one of a text that fits the model."
            )
        if a.provenance.fingerprint not in ("", model.fingerprint):
            raise InputError(
                f"this attribution is of {a.provenance.model}, whose weights are not those of {model.name}."
            )
        games = next((g for g in tables if _is_same(g, a)), None)
        if games is None:
            games = Games(model, a.passage, a.target, seed, progress or (lambda _: None))
            tables.append(games)
        out += games.judge([a], removals, rankings)
    return out[0] if isinstance(attributions, Attribution) else out


def _is_same(games: Games, a: Attribution) -> bool:
    """Whether the attribution is of what these games are played on: the same tokens, units, reply and target."""
    p, q = games.passage, a.passage
    replies = [None if x.reply is None else x.reply.digest for x in (p, q)]
    return (p.digest, p.unit_spans, games.target) == (q.digest, q.unit_spans, a.target) and replies[
        0
    ] == replies[1]
