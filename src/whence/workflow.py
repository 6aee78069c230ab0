"""explain and compare: the arguments of a user, made into one run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, overload

from whence.attributing import Asked, Progress, run
from whence.core.attribution import Attribution, Cost
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.registry import find_method, settings_of
from whence.core.registry import methods as all_methods
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind
from whence.models.model import Model, Overflow
from whence.trace.trace import Via


@overload
def explain(model: Model, text: str | Passage, method: str = ..., **options: Any) -> Attribution: ...
@overload
def explain(model: Model, text: list[Any], method: str = ..., **options: Any) -> list[Attribution]: ...
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
    progress: Progress | None = None,
    **settings: Any,
) -> Attribution | list[Attribution]:
    """Explain one target of a model on one text (or on each text of a list) by one method.

    ``target`` is a class by name or index, None for the predicted one, a pair for a contrast (*why A rather than B*), or a Target;
    ``read`` is logit (default), log-probability, probability or margin. ``memory`` is a budget ("2GB"; by default most of what is
    free), over which a run is refused before it begins. Everything after that is a setting of the method.

    >>> import whence
    >>> a = whence.explain(whence.load("sentiment"), "a moving and funny film", "gradient-x-input", target="positive")
    >>> len(a.scores) == len(a.units) == 5
    True
    """
    _need_model(model)
    asked = Asked(info := find_method(method), settings_of(info, settings, seed))
    texts = text if isinstance(text, list) else [text]
    results = run(model, texts, [asked], pair, as_target(target, read), units, seed, overflow, attention_via, progress, memory)
    attributions = [_one(r, method) for r in results]
    return attributions if isinstance(text, list) else attributions[0]


def _need_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise InputError(f"the first argument is a loaded model, not a {type(model).__name__}: whence.load({model!r:.40}) gives one.")


def _one(result: tuple[dict[str, Attribution], dict[str, Exception], tuple[int, int]], method: str) -> Attribution:
    attributions, failed, _ = result
    if method in failed:
        raise failed[method]
    return attributions[method]


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
    progress: Progress | None = None,
) -> Comparison:
    """Explain one text by several methods on one shared trace. ``methods=None`` takes every method that fits the model.

    A mapping gives settings: ``{"integrated-gradients": {"baseline": "mask"}}``.

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
    asked = [Asked(info := find_method(n), settings_of(info, given.get(n, {}), seed)) for n in names]
    started = time.perf_counter()
    ((attributions, failed, passes),) = run(
        model, [text], asked, pair, as_target(target, read), units, seed, overflow, attention_via, progress, memory
    )
    if failed and methods is not None:
        raise next(iter(failed.values()))
    if not attributions:
        raise next(iter(failed.values()))
    peaks = [a.cost.peak_bytes for a in attributions.values() if a.cost.peak_bytes is not None]
    total = Cost(*passes, seconds=time.perf_counter() - started, peak_bytes=max(peaks, default=None))
    return Comparison(attributions, total, {n: str(e) for n, e in failed.items()})
