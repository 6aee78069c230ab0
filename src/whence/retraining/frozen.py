"""frozen_attention: does a classifier need its attention at all?

Copies of a model are trained further on labelled texts, some with attention as it is, some with
attention frozen to uniform, so that every token looks at all others alike (Wiegreffe & Pinter 2019,
section 3.2). If the frozen ones do as well, the task does not need attention, and what the weights
look at explains little. Over several seeds it also shows how far attention itself depends on chance
(their section 4.1): an adversary that is no further away than another seed proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from whence.core.bootstrap import wilson
from whence.core.counting import counted
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.percent import digits, percent
from whence.core.progress import Step
from whence.core.registry import Needs
from whence.core.roar import Estimate
from whence.core.showing import visible
from whence.games.game import check_is_model
from whence.models.changes import copy_of
from whence.models.model import TOKENS_PER_BATCH, Model
from whence.models.untouched import configs_of
from whence.retraining.adversarial import (
    attention_apart,
    estimate_within,
    in_groups,
    maps_of,
)
from whence.retraining.labelled import encoded, labelled, numbered
from whence.retraining.paired import gains
from whence.retraining.training import Training, check_trainable, fit, guesses
from whence.retraining.tuning import split
from whence.theory.divergence import MOST, jsd
from whence.trace.attention import Observer, check_editable, observing
from whence.trace.edits import uniform
from whence.trace.trace import trace

FREEZING = Training(epochs=3, batch=16, rate=1e-4)
SEEDS = 3


@dataclass(frozen=True, eq=False, repr=False)
class Frozen:
    """Held-out accuracies of copies with free attention and with uniform one, by seed.

    ``lost`` is by how much accuracy falls with uniform attention, paired text by text, the mean
    over seeds. ``free_mean`` and ``uniform_mean`` are the mean accuracies of either kind, with
    intervals over texts. ``majority`` is what the most frequent label alone gets.

    ``between_seeds`` is how different the attention of two free copies is that differ in their seed
    alone, None with one seed: the Jensen-Shannon divergence in nats, by the same mean over heads,
    rows that matter and layers as that of the adversary in an audit (``attention_apart``).
    """

    free: tuple[float, ...]
    uniform: tuple[float, ...]
    free_mean: Estimate
    uniform_mean: Estimate
    lost: Estimate
    majority: float
    between_seeds: Estimate | None
    trained_on: int
    held_out: int
    training: Training

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Said where it is printed; of seeds where there were several."""
        are = "is" if self.held_out == 1 else "are"
        words = (
            f"With attention frozen to uniform {_percent(self.uniform_mean)} of "
            f"{counted(self.held_out, 'held-out text')} {are} right, with free attention "
            f"{_percent(self.free_mean)} (the most frequent label: {percent(self.majority, 1)}); "
            f"{_points(self.lost)}."
        )
        if self.between_seeds is not None:
            words += (
                f" Attention differs between seeds by {self.between_seeds} nats, of at most "
                f"{MOST:.3f}."
            )
        return visible(words)

    __repr__ = __str__


def _points(lost: Estimate) -> str:
    """Said of accuracy: by how much it falls without free attention, or rises."""
    ends = (lost.mean, lost.low, lost.high)
    which = "lost"
    if lost.mean < 0:
        ends = (-lost.mean, -lost.high, -lost.low)
        which = "gained"
    mean, low, high = (f"{100 * end:z.1f}" for end in ends)
    return f"{mean} points are {which} (95 % interval {low} to {high})"


def _percent(share: Estimate) -> str:
    return f"{percent(share.mean, 1)} [{digits(share.low, 1)}, {digits(share.high, 1)}]"


def frozen_attention(
    model: Model,
    data: Any,
    *,
    held_out: float | Any = 0.25,
    seeds: int = SEEDS,
    training: Training = FREEZING,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Frozen:
    """Train copies of a classifier with free and with uniform attention, and compare them.

    All begin with the weights of the model, which itself is not touched. ``data`` are (text, label)
    pairs, or a data file with a label column; ``held_out`` is the share of it that accuracy is
    measured on, or other data.

    >>> import whence
    >>> texts = [("a fine film", "good"), ("a dull film", "bad")] * 20
    >>> model = whence.train_small(texts)
    >>> training = whence.Training(epochs=25, rate=1e-3)
    >>> frozen = whence.frozen_attention(model, texts, seeds=1, training=training)
    >>> frozen.free, frozen.uniform
    ((1.0,), (1.0,))
    """
    check_is_model(model)
    check_trainable(model)
    check_editable(model.hf)
    if seeds < 1:
        raise InputError(f"at least one copy of each kind is trained, not {seeds}.")
    train, test = split(labelled(data), held_out, seed)
    passages, labels = encoded(model, train), numbered(model, train)
    of_test, truth = encoded(model, test), np.array(numbered(model, test))

    done = 0

    def trained(number: int, is_uniform: bool) -> Model:
        def tell(step: int, of: int) -> None:
            if progress is not None:
                kind = "uniform" if is_uniform else "free"
                words = f"{kind} attention, seed {number}: step {step} of {of}"
                progress(Step(words, done * of + step, 2 * seeds * of))

        copied = copy_of(model)
        run = with_uniform(copied.hf) if is_uniform else None
        fit(copied, lambda _: passages, labels, training, number, tell, run)
        return copied

    free, uniform_ones = [], []
    copies: list[Model] = []
    for number in range(seed, seed + seeds):
        copied = trained(number, is_uniform=False)
        done += 1
        free.append(guesses(copied, of_test) == truth)
        copies.append(copied)
        copied = trained(number, is_uniform=True)
        done += 1
        uniform_ones.append(_guesses_with_uniform(copied, of_test) == truth)

    _, counts = np.unique(truth, return_counts=True)
    return Frozen(
        free=tuple(float(right.mean()) for right in free),
        uniform=tuple(float(right.mean()) for right in uniform_ones),
        free_mean=_mean_share(free),
        uniform_mean=_mean_share(uniform_ones),
        lost=_lost(free, uniform_ones, seed),
        majority=float(counts.max() / counts.sum()),
        between_seeds=_between_seeds(copies, of_test, seed),
        trained_on=len(train),
        held_out=len(test),
        training=training,
    )


def with_uniform(hf: Any) -> Callable[..., Any]:
    """A forward pass in which every token looks at all others alike; gradients go through."""

    def run(**inputs: Tensor) -> Any:
        own = [
            (config, config._attn_implementation_internal) for config in configs_of(hf.modules())
        ]
        try:
            with observing(hf, Observer(hf, keep=False, edits=[uniform()])):
                return hf(**inputs)
        finally:
            for config, implementation in own:
                config._attn_implementation_internal = implementation

    return run


def _guesses_with_uniform(model: Model, passages: Sequence[Passage]) -> Any:
    labels = np.zeros(len(passages), dtype=np.int64)
    for group in model.groups_of_lengths([len(p) for p in passages], TOKENS_PER_BATCH):
        seen = trace(model, [passages[i] for i in group], edits=[uniform()])
        labels[group] = seen.logits.argmax(-1).cpu().numpy()
    return labels


def _mean_share(right: Sequence[Bool[np.ndarray, " text"]]) -> Estimate:
    """The mean over seeds, by Wilson: too wide rather than too narrow, as it is of several."""
    share = float(np.stack(right).mean())
    return Estimate(share, *wilson(share, len(right[0])))


def _lost(
    free: Sequence[Bool[np.ndarray, " text"]],
    frozen: Sequence[Bool[np.ndarray, " text"]],
    seed: int,
) -> Estimate:
    """The fall of accuracy, the mean over seeds on each text, with an interval over texts."""
    fall = np.stack(free).mean(0) - np.stack(frozen).mean(0)
    (lost,) = gains(fall[:, None], seed)
    return lost


def _between_seeds(
    copies: Sequence[Model], passages: Sequence[Passage], seed: int
) -> Estimate | None:
    """The divergence between two copies, the mean over pairs on each text; None of one copy."""
    pairs = list(combinations(range(len(copies)), 2))
    if not pairs:
        return None
    of_texts = np.zeros(len(passages))
    for group, texts in in_groups(copies[0], passages):
        seen = [trace(copied, texts, needs=Needs.ATTENTION) for copied in copies]
        of_pairs = [attention_apart(seen[one], maps_of(seen[other]), jsd) for one, other in pairs]
        of_texts[group] = torch.stack(of_pairs).mean(0).cpu().numpy()
    return estimate_within(of_texts, MOST, seed)
