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
from jaxtyping import Bool, Float
from torch import Tensor

from whence.core.bootstrap import means
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.progress import Step
from whence.core.registry import Needs
from whence.core.roar import Estimate
from whence.core.showing import visible
from whence.games.game import check_is_model
from whence.models.changes import copy_of
from whence.models.model import TOKENS_PER_BATCH, Model
from whence.models.untouched import configs_of
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
    over seeds. ``majority`` is what the most frequent label alone gets. ``between_seeds`` is how
    different the attention of two free copies is that differ in their seed alone: the mean
    Jensen-Shannon divergence over heads and tokens, in nats; None with one seed.
    """

    free: tuple[float, ...]
    uniform: tuple[float, ...]
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
        words = (
            f"With attention frozen to uniform {np.mean(self.uniform):.1%} of {self.held_out} "
            f"held-out texts are right, with free attention {np.mean(self.free):.1%} (the most "
            f"frequent label: {self.majority:.1%}); {100 * self.lost.mean:.1f} points are lost "
            f"(95 % interval {100 * self.lost.low:.1f} to {100 * self.lost.high:.1f})."
        )
        if self.between_seeds is not None:
            words += (
                f" Attention differs between seeds by {self.between_seeds.mean:.3f} nats, of at "
                "most 0.693."
            )
        return visible(words)

    __repr__ = __str__


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
    maps: list[list[Float[Tensor, "_ _ _ _"]]] = []
    for number in range(seed, seed + seeds):
        copied = trained(number, is_uniform=False)
        done += 1
        free.append(guesses(copied, of_test) == truth)
        maps.append(_attention_of(copied, of_test))
        copied = trained(number, is_uniform=True)
        done += 1
        uniform_ones.append(_guesses_with_uniform(copied, of_test) == truth)

    _, counts = np.unique(truth, return_counts=True)
    return Frozen(
        free=tuple(float(right.mean()) for right in free),
        uniform=tuple(float(right.mean()) for right in uniform_ones),
        lost=_lost(free, uniform_ones, seed),
        majority=float(counts.max() / counts.sum()),
        between_seeds=_between_seeds(maps, seed),
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


def _attention_of(model: Model, passages: Sequence[Passage]) -> list[Float[Tensor, "_ _ _ _"]]:
    """All attention on each text: layer, head, query and key, whose numbers differ by text."""
    every = []
    for passage in passages:
        maps = trace(model, [passage], needs=Needs.ATTENTION).attentions
        layers = [layer[0] for of_kind in maps.values() for layer in of_kind]
        every.append(torch.stack(layers).double().cpu())
    return every


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
    maps: Sequence[Sequence[Float[Tensor, "_ _ _ _"]]], seed: int
) -> Estimate | None:
    """The divergence between two copies, the mean over pairs on each text."""
    if len(maps) < 2:
        return None
    of_texts = []
    for of_copies in zip(*maps, strict=True):
        pairs = [float(jsd(one, other).mean()) for one, other in combinations(of_copies, 2)]
        of_texts.append(np.mean(pairs))
    (mean,) = means(np.array(of_texts)[:, None], seed)
    low, high = mean.interval or (0.0, MOST)
    return Estimate(mean.mean, max(low, 0.0), high)
