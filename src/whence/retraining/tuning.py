"""tuned_for_removal: a copy of a classifier that has seen texts with units removed.

Texts with units removed are unlike any that a model was trained on, and what it then says is partly
about that (Hooker et al. 2019; Hase et al. 2021). A model that was trained on them too has no such
excuse. It is another model: what is found about it holds for it, and the price is measured.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from jaxtyping import Bool

from whence.core.counting import counted
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.percent import digits
from whence.core.progress import Step
from whence.core.roar import Estimate
from whence.core.showing import visible
from whence.games.game import check_is_model
from whence.models.model import Model
from whence.retraining.labelled import encoded, labelled, numbered
from whence.retraining.removing import trained_removal, without
from whence.retraining.training import Training, check_trainable, fit, guesses
from whence.runs.data import drawn

TUNING = Training(epochs=3, batch=16, rate=1e-4)
# Of random numbers: what is removed in training, and from held-out texts.
TRAIN_STREAM, TEST_STREAM = 14, 15
NORMAL = 1.959963984540054  # the 97.5 % quantile


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """A model that was tuned for a removal, and what that changed on held-out texts.

    ``before`` and ``after`` are accuracies on whole texts; ``cost`` is their difference (positive
    where accuracy was lost), paired text by text. ``removed_before``, ``removed_after`` and
    ``gain`` are the same of texts with a random share of their units removed.
    """

    model: Model
    removal: str
    before: float
    after: float
    cost: Estimate
    removed_before: float
    removed_after: float
    gain: Estimate
    trained_on: int
    held_out: int
    training: Training
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the model by its name and fingerprint."""
        stored = {name: value for name, value in vars(self).items() if name != "model"}
        for name in ("cost", "gain", "training"):
            stored[name] = asdict(stored[name])
        return {"model": self.model.name, "fingerprint": self.model.fingerprint, **stored}

    def __str__(self) -> str:
        """Said where it is printed."""
        return visible(
            f"{self.model.name}: {digits(self.before, 1)}% of "
            f"{counted(self.held_out, 'held-out text')} right before, "
            f"{digits(self.after, 1)}% after; it cost {_points(self.cost)}. With a random share "
            f"of the units removed ({self.removal}) {digits(self.removed_before, 1)}% before, "
            f"{digits(self.removed_after, 1)}% after; it gained {_points(self.gain)}."
        )

    __repr__ = __str__


def tuned_for_removal(
    model: Model,
    data: Any,
    *,
    removal: str = "auto",
    held_out: float | Any = 0.25,
    whole: float = 0.5,
    training: Training = TUNING,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Tuned:
    """Fine-tune a copy of a classifier on texts with units removed at random; tell what it cost.

    In every epoch a text stays as it is with probability ``whole``; else a random number of its
    units (each number from one to all is as likely) goes by ``removal``: ``mask`` or ``delete``.
    ``data`` are (text, label) pairs, or a data file with a label column. ``held_out`` is the share
    of it that accuracy is measured on, or other data. The model that is given is not touched.

    >>> import whence
    >>> texts = [("a fine film", "positive"), ("a dull film", "negative")] * 8
    >>> model = whence.load("sentiment")
    >>> tuned = whence.tuned_for_removal(model, texts, training=whence.Training(epochs=1))
    >>> tuned.removal, tuned.before, tuned.model.fingerprint == model.fingerprint
    ('mask', 1.0, False)
    """
    check_is_model(model)
    check_trainable(model)
    if not 0 <= whole < 1:
        raise InputError(f"whole is the share of texts that stay whole, from 0 to below 1: {whole}")
    removal = trained_removal(model, removal)
    train, test = split(labelled(data), held_out, seed)
    passages, labels = encoded(model, train), numbered(model, train)
    copied = Model(
        hf=copy.deepcopy(model.hf),
        tokenizer=model.tokenizer,
        task=model.task,
        name=f"{model.name}, tuned for {removal}",
    )

    def tell(done: int, of: int) -> None:
        if progress is not None:
            progress(Step(f"tuning for {removal}: step {done} of {of}", done, of))

    def texts_of(epoch: int) -> list[Passage]:
        rng = np.random.default_rng([seed, TRAIN_STREAM, epoch])
        return [_at_random(model, passage, removal, whole, rng) for passage in passages]

    fit(copied, texts_of, labels, training, seed, tell)

    of_test, answers = encoded(model, test), np.array(numbered(model, test))
    rng = np.random.default_rng([seed, TEST_STREAM])
    without_some = [_at_random(model, passage, removal, 0.0, rng) for passage in of_test]
    was_right = guesses(model, of_test) == answers
    is_right = guesses(copied, of_test) == answers
    was_right_without = guesses(model, without_some) == answers
    is_right_without = guesses(copied, without_some) == answers
    return Tuned(
        model=copied,
        removal=removal,
        before=float(was_right.mean()),
        after=float(is_right.mean()),
        cost=paired_change(is_right, was_right),
        removed_before=float(was_right_without.mean()),
        removed_after=float(is_right_without.mean()),
        gain=paired_change(was_right_without, is_right_without),
        trained_on=len(train),
        held_out=len(test),
        training=training,
        seed=seed,
    )


def paired_change(before: Bool[np.ndarray, " text"], after: Bool[np.ndarray, " text"]) -> Estimate:
    """By how much the share of right answers rose, with a 95 % interval for pairs.

    The interval is that of Agresti and Min (2005): half a text is added to each of the four cells,
    so that it is honest also where few or no answers changed.

    >>> paired_change(np.array([True] * 98 + [False] * 2), np.array([True] * 100)).mean
    0.02
    """
    texts = len(before)
    better, worse = int((after & ~before).sum()), int((before & ~after).sum())
    total = texts + 2
    middle = (better - worse) / total
    changed = (better + worse + 1) / total
    half = NORMAL * sqrt((changed - middle**2) / total)
    low, high = max(-1.0, middle - half), min(1.0, middle + half)
    return Estimate((better - worse) / texts, low, high)


def _at_random(
    model: Model, passage: Passage, removal: str, whole: float, rng: np.random.Generator
) -> Passage:
    """The passage without some units; each number of them, from one to all, is as likely."""
    units = len(passage.unit_spans)
    coin, lots = rng.random(), rng.random(units)
    if coin < whole or not units:
        return passage
    count = int(rng.integers(1, units + 1))
    removed = np.zeros(units, dtype=bool)
    removed[np.argsort(lots)[:count]] = True
    return without(model, passage, removed, removal)


def split(rows: Sequence[Any], held_out: Any, seed: int) -> tuple[list[Any], list[Any]]:
    """The texts to train on, and those to measure with."""
    if not isinstance(held_out, (int, float)):
        return list(rows), labelled(held_out, "held_out")
    count = round(held_out * len(rows))
    if not 0 < count < len(rows):
        raise InputError(
            f"a share of {held_out:g} of {len(rows)} texts leaves {len(rows) - count} to train on "
            f"and {count} to measure with; both need some."
        )
    chosen = set(drawn(len(rows), count, seed))
    train = [row for i, row in enumerate(rows) if i not in chosen]
    test = [row for i, row in enumerate(rows) if i in chosen]
    return train, test


def _points(change: Estimate) -> str:
    """A difference of shares in percentage points."""
    return (
        f"{100 * change.mean:z.1f} points "
        f"(95 % interval {100 * change.low:z.1f} to {100 * change.high:z.1f})"
    )
