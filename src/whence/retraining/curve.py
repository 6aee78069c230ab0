"""Remove and retrain, whatever is removed and whatever is trained.

An Experiment knows data and models; here is only the order in which things happen (Hooker et al.
2019): rank the features of every example by the model that was trained on all of them, remove the
leading ones from training *and* test examples, train from nothing, measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

LOTS_STREAM = 13  # of random numbers: the order of equal scores

# Which features of each example are gone, train and test examples alike.
Removed = Sequence[Bool[np.ndarray, " _"]]
# The importance of each feature of each example: the highest is the most important.
Importance = Sequence[Float[np.ndarray, " _"]]


@runtime_checkable
class Experiment(Protocol):
    """Examples to train and to test on, and models of them."""

    @property
    def sizes(self) -> Sequence[int]:
        """How many features each example has."""
        ...

    def train(self, removed: Removed, seed: int, pattern: bool) -> Any:
        """A model, trained from nothing on the training examples without these features.

        With ``pattern`` the other features are made all alike: only where some are gone is left.
        """
        ...

    def accuracy(self, model: Any, removed: Removed, pattern: bool) -> float:
        """The share of test examples, without these features, that the model gets right."""
        ...

    def importance(
        self, model: Any, removed: Removed, names: Sequence[str], seed: int
    ) -> Mapping[str, Importance]:
        """What each ranking says of the features; of those that are gone it may say anything."""
        ...


@dataclass(frozen=True)
class Way:
    """In which way features go: how many, which end first, and who is asked for the next ones."""

    shares: tuple[float, ...]
    keep: bool = False
    recursive: bool = False
    patterns: bool = False


@dataclass(frozen=True, eq=False)
class Curves:
    """The accuracies of one seed, by ranking, at each share."""

    accuracies: Mapping[str, Float[np.ndarray, " share"]]
    patterns: Mapping[str, Float[np.ndarray, " share"]]


def curves_of_seed(
    experiment: Experiment,
    names: Sequence[str],
    way: Way,
    seed: int,
    trained: Callable[[str], None] = lambda _: None,
) -> Curves:
    """One whole repetition: a model of all features, its rankings, and a model for each share."""
    nothing = [np.zeros(size, dtype=bool) for size in experiment.sizes]
    original = experiment.train(nothing, seed, False)
    trained("all units")
    importance = experiment.importance(original, nothing, names, seed)

    # Where nothing or everything is gone, all rankings are the same, and one training will do.
    ends = {_at_an_end(nothing): (original, experiment.accuracy(original, nothing, False))}
    ends_of_patterns: dict[str, tuple[Any, float]] = {}
    accuracies, patterns = {}, {}
    for name in names:
        of_name, of_pattern = [], []
        removed, important = nothing, importance[name]
        for share in way.shares:
            removed = grown(removed, important, share, way.keep, seed)
            said = f"{name}, {share:.0%} removed"
            model, accuracy = _trained(experiment, removed, seed, False, ends)
            trained(said)
            of_name.append(accuracy)
            if way.patterns:
                _, leak = _trained(experiment, removed, seed, True, ends_of_patterns)
                trained(f"{said}, pattern alone")
                of_pattern.append(leak)
            if way.recursive and share != way.shares[-1]:
                important = experiment.importance(model, removed, [name], seed)[name]
        accuracies[name] = np.array(of_name)
        if way.patterns:
            patterns[name] = np.array(of_pattern)
    return Curves(accuracies, patterns)


def _trained(
    experiment: Experiment,
    removed: Removed,
    seed: int,
    pattern: bool,
    ends: dict[str, tuple[Any, float]],
) -> tuple[Any, float]:
    end = _at_an_end(removed)
    if end in ends:
        return ends[end]
    model = experiment.train(removed, seed, pattern)
    both = model, experiment.accuracy(model, removed, pattern)
    if end:
        ends[end] = both
    return both


def _at_an_end(removed: Removed) -> str:
    if not any(gone.any() for gone in removed):
        return "nothing removed"
    return "everything removed" if all(gone.all() for gone in removed) else ""


def grown(
    removed: Removed, importance: Importance, share: float, keep: bool, seed: int
) -> list[Bool[np.ndarray, " _"]]:
    """What is gone once this share of each example's features is; it holds what was gone before.

    The most important of those that are left go next, or the least important where these are kept.
    Equal ones go in an order that is drawn by lot, or their place in the text would decide.

    >>> left = np.array([False, True, False, False])
    >>> grown([left], [np.array([0.1, 9.0, 0.7, 0.2])], 0.5, keep=False, seed=0)[0].tolist()
    [False, True, True, False]
    """
    after = []
    rng = np.random.default_rng([seed, LOTS_STREAM])
    for gone, scores in zip(removed, importance, strict=True):
        lots = rng.random(len(gone))
        next_first = scores if keep else -scores
        order = np.lexsort((lots, next_first, ~gone))
        now_gone = np.zeros(len(gone), dtype=bool)
        now_gone[order[: max(int(gone.sum()), number_of(share, len(gone)))]] = True
        after.append(now_gone)
    return after


def number_of(share: float, features: int) -> int:
    """So many features are a share of them, rounded half up.

    >>> number_of(0.1, 5), number_of(0.1, 4), number_of(1.0, 3)
    (1, 0, 3)
    """
    return min(features, int(share * features + 0.5 + 1e-9))


def stacked(
    several: Iterable[Mapping[str, Float[np.ndarray, " share"]]],
) -> dict[str, Float[np.ndarray, "seed share"]]:
    """The accuracies of all seeds, by ranking."""
    rows = list(several)
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
