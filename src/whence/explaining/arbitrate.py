"""arbitrate: the reading of attention that is most faithful over a data set, or for each label of it, tried on removals it never saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.core.target import Target, as_target
from whence.explaining.inside import OPTIONS, TRACE_TOKENS
from whence.explaining.job import Progress
from whence.metrics.held_out import correlation, subsets
from whence.models.model import Model
from whence.trace.baselines import Baseline
from whence.trace.configurations import (
    BASELINE,
    Configuration,
    best_of,
    configurations,
    ranked_faithful_truthfulness,
    readings,
)
from whence.trace.forecast import forecast_trace
from whence.trace.memory import check
from whence.trace.removals import drops
from whence.trace.trace import trace

RESAMPLES = 1000
SHUFFLES = 200  # of each text's scores, for the control


@dataclass(frozen=True)
class Choice:
    """The best configuration of a group of texts.

    ``held_out`` is the mean over texts of the correlation with held-out removals, ``interval`` its 95 % bootstrap interval over texts
    (NaN for one text alone), ``baseline`` the same for the plain mean of everything, ``random`` for shuffled scores.
    """

    group: str
    configuration: Configuration
    texts: int
    tried: int
    faithfulness: float  # mean RFT on the removals that chose it
    baseline_faithfulness: float
    held_out: float
    interval: tuple[float, float]
    baseline: float
    random: float

    def __str__(self) -> str:
        return (
            f"{self.group}: {self.configuration}, the best of {self.tried} on {self.texts} texts; on held-out removals "
            f"r = {self.held_out:.2f} ({self.interval[0]:.2f} to {self.interval[1]:.2f}), "
            f"the plain mean {self.baseline:.2f}, shuffled {self.random:.2f}"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """For ``whence.explain(model, text, "attention-arbiter", **choice.settings)``."""
        c = self.configuration
        return {"layers": c.layers, "heads": c.heads, "matrix": c.matrix}


@dataclass(frozen=True, eq=False)
class _Text:
    weights: Float[np.ndarray, "configuration unit"]
    faithful: Float[np.ndarray, " configuration"]
    removed: np.ndarray
    drops: Float[np.ndarray, " sample"]
    label: str


def arbitrate(
    model: Model,
    texts: Sequence[Any],
    *,
    scope: Literal["dataset", "label"] = "dataset",
    target: Target | str | int | None = None,
    baseline: Baseline = "mean",
    held_out: int = 32,
    seed: int = 0,
    memory: str | int | float | None = None,
    progress: Progress | None = None,
) -> list[Choice]:
    """Search layer × head × matrix operation for the reading of attention with the best mean RFT over ``texts``.

    One choice for the ``dataset``, or one for each predicted ``label``. The search sees single removals only; the choice is then
    judged on ``held_out`` random removals of several units a text, beside the plain mean and a shuffled control.

    >>> import whence
    >>> best, = whence.arbitrate(whence.load("sentiment"), ["a fine and funny film", "dull , slow and far too long"])
    >>> best.tried == 6 * 13 * 4
    True
    """
    if isinstance(texts, str):
        raise InputError(
            "arbitrate takes a list of texts; for one text use explain with the method attention-arbiter."
        )
    if baseline not in get_args(Baseline) or held_out < 0:
        raise InputError(
            f"baseline is one of {', '.join(get_args(Baseline))} and held_out 0 or more, not {baseline!r} and {held_out}."
        )
    if scope not in ("dataset", "label"):
        raise InputError(
            f"scope is 'dataset' or 'label', not {scope!r}; for one text use explain with the method attention-arbiter."
        )
    wanted_target = as_target(target)
    passages = [
        model.placed(
            model.fitted(t if isinstance(t, Passage) else model.encode(t), "error"), wanted_target
        )
        for t in texts
    ]
    if not passages:
        raise InputError("arbitrate needs at least one text.")
    wanted: list[Configuration] = []
    seen: list[_Text] = []
    for group in model.groups(passages, TRACE_TOKENS):
        longest = max((passages[i] for i in group), key=len)
        check(forecast_trace(model, longest, Needs.ATTENTION, len(group)), memory, OPTIONS)
        found = trace(
            model, [passages[i] for i in group], wanted_target, Needs.ATTENTION | Needs.EMBEDDINGS
        )
        found.check_embeddings()
        wanted = wanted or configurations(found)
        for k, i in enumerate(group):
            if progress is not None:
                progress(f"text {len(seen) + 1} of {len(passages)}")
            d = len(passages[i].unit_spans)
            rng = np.random.default_rng([seed, *passages[i].digest])
            weights, removed = readings(found, k, wanted), subsets(d, held_out, rng)
            faithful = ranked_faithful_truthfulness(
                weights, drops(found, k, np.eye(d, dtype=bool), baseline)
            )
            fallen = drops(found, k, removed, baseline) if len(removed) else np.zeros(0)
            label = model.prediction(found.logits[k].double().cpu().numpy()).label
            seen.append(_Text(weights, faithful, removed, fallen, label))
    labels = sorted({t.label for t in seen}) if scope == "label" else ["all texts"]
    return [
        _choose(name, [t for t in seen if scope == "dataset" or t.label == name], wanted, seed)
        for name in labels
    ]


def _choose(
    group: str, texts: Sequence[_Text], wanted: Sequence[Configuration], seed: int
) -> Choice:
    faithful = np.mean([t.faithful for t in texts], axis=0)
    best, plain = best_of(faithful), wanted.index(BASELINE)
    rng = np.random.default_rng(seed)
    judged = [t for t in texts if len(t.removed)]

    def held_out(which: int) -> np.ndarray:
        return np.array([float(correlation(t.weights[which], t.removed, t.drops)) for t in judged])

    ours = held_out(best)
    shuffled = [
        correlation(
            rng.permuted(np.tile(t.weights[best], (SHUFFLES, 1)), axis=1), t.removed, t.drops
        ).mean()
        for t in judged
    ]
    means = (
        rng.choice(ours, (RESAMPLES, len(ours))).mean(1) if len(ours) > 1 else np.array([np.nan])
    )
    return Choice(
        group=group,
        configuration=wanted[best],
        texts=len(texts),
        tried=len(wanted),
        faithfulness=float(faithful[best]),
        baseline_faithfulness=float(faithful[plain]),
        held_out=float(ours.mean()) if len(ours) else float("nan"),
        interval=(float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))),
        baseline=float(held_out(plain).mean()) if len(ours) else float("nan"),
        random=float(np.mean(shuffled)) if shuffled else float("nan"),
    )
