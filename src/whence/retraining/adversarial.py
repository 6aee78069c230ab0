"""adversarial_model: can a model give the same answers, and look elsewhere?

Attention that is searched for one text at a time (``audits/adversary.py``) belongs to no model.
Wiegreffe & Pinter (2019, section 4) train a whole one instead, on

    TVD(p, p of base) − λ · KL(attention || attention of base),    the mean over texts

Here a copy of the user's own transformer is trained on that. A transformer has a distribution for
each head and query. The divergence is the mean over heads and over those queries on which the
output can depend (``rows_that_matter``), then over layers. TVD is the true one, ½ Σ |p − q| over
all labels (``Model.change``): the published code takes half of it, and adds up a batch where we
take the mean, so that its λ are in other units.

A model cannot be pretrained anew for this, so a copy begins with the weights of the base, and a
little beside them. At these very weights it would stay: TVD and KL are both at their smallest
there, and have no slope. So λ = 0 is a control that has to find its way back to the output, and
tells how far attention drifts on the way for no reason.

Dropout is off. Weights that are dropped are no distribution, and no output stays the same under it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.audits.places import mean_over_rows, rows_that_matter
from whence.core.audited import ANOTHER, MATTERS
from whence.core.bootstrap import means_together
from whence.core.counting import counted
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.percent import digits
from whence.core.progress import Step
from whence.core.registry import Needs
from whence.core.roar import Estimate
from whence.core.showing import visible
from whence.games.game import check_is_model
from whence.models.changes import copy_of
from whence.models.conduct import inherit
from whence.models.model import TOKENS_PER_BATCH, Model
from whence.retraining.labelled import encoded, labelled, numbered
from whence.retraining.training import Loss, Training, check_trainable, descend, rows_of
from whence.retraining.tuning import split
from whence.theory.divergence import MOST, jsd, kl
from whence.trace.attention import Layer, Observer, check_editable, observing
from whence.trace.edits import in_order_of
from whence.trace.trace import Trace, trace

STRENGTHS = (0.0, 0.03, 0.3, 1.0)
OPPOSING = Training(epochs=5, batch=16, rate=1e-4, decay=0.0)
BESIDE = 0.1  # of a tensor's size: how far from the base a copy begins
SHUFFLE_STREAM = 17  # of random numbers: the order of weights in the control

# The weights of each layer, "text head query key".
Maps = Mapping[Layer, Tensor]
# One number for each distribution of two tables of them: kl or jsd.
Apart = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Opponent:
    """A copy that was trained against the model's attention, held against the model.

    ``tvd`` is how far its output is from the model's (total variation, 0 to 1), and ``jsd`` how
    far its attention is (Jensen-Shannon divergence, 0 to ln 2), with intervals over texts. Those of
    all copies hold together, as the furthest is picked from among them.
    """

    strength: float  # λ
    tvd: Estimate
    jsd: Estimate
    accuracy: float

    @property
    def keeps_the_output(self) -> bool:
        """Whether the output moves by less than 0.05, with the whole interval."""
        return self.tvd.high < MATTERS


@dataclass(frozen=True, eq=False, repr=False)
class Adversarial:
    """Copies of a model that were trained to answer as it does and to attend elsewhere.

    All numbers are of held-out texts. ``shuffled`` is how far the model's own weights are from
    themselves in random order: the divergence of a random attention. ``accuracy`` is the model's,
    ``majority`` what the most frequent label alone gets.
    """

    copies: tuple[Opponent, ...]
    shuffled: Estimate
    accuracy: float
    majority: float
    trained_on: int
    held_out: int
    training: Training

    @property
    def furthest(self) -> Opponent | None:
        """The most different attention among copies that keep the output; None if none does."""
        kept = [each for each in self.copies if each.keeps_the_output]
        return max(kept, key=lambda each: each.jsd.mean, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Said where it is printed; the first line is its answer."""
        lines = [_answer(self), f"On {counted(self.held_out, 'held-out text')}:"]
        for each in self.copies:
            lines.append(
                f"  λ = {each.strength:g}: the output moves by {each.tvd}, attention by "
                f"{each.jsd} nats; {digits(each.accuracy, 1)}% right"
            )
        lines.append(
            f"  the model itself: {digits(self.accuracy, 1)}% right (the most frequent label: "
            f"{digits(self.majority, 1)}%); its own weights in random order differ "
            f"by {self.shuffled} nats"
        )
        return visible("\n".join(lines), keep="\n")

    __repr__ = __str__


def _answer(found: Adversarial) -> str:
    """What the copies say, in one sentence.

    Said of the furthest copy that keeps the output; undecided where there is none, or where its
    interval holds the bar.
    """
    furthest = found.furthest
    if furthest is None:
        return (
            f"Undecided: not even the control keeps the output (within {MATTERS:g}). Train on more "
            "texts, or at a smaller rate."
        )
    pushed = [each for each in found.copies if each.strength > 0]
    if not pushed:
        return "Undecided: no copy was pushed away from the attention."
    if not any(each.keeps_the_output for each in pushed):
        return (
            f"Undecided: no copy that was pushed away from the attention keeps the output (within "
            f"{MATTERS:g}). Either they hang together, or it takes more texts or other strengths."
        )
    seen = f"by {furthest.jsd.mean:.3f} nats of at most {MOST:.3f} (λ = {furthest.strength:g})"
    if furthest.jsd.low > ANOTHER * MOST:
        return f"Another attention would do: a copy that gives the same output differs {seen}."
    if furthest.jsd.high < ANOTHER * MOST:
        return (
            "No very different attention was reached: the furthest copy that gives the same output "
            f"differs {seen}."
        )
    return f"Undecided: the furthest copy that gives the same output differs {seen}."


def adversarial_model(
    model: Model,
    data: Any,
    *,
    strengths: Sequence[int | float] = STRENGTHS,
    held_out: float | Any = 0.25,
    training: Training = OPPOSING,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Adversarial:
    """Train copies of a classifier to answer as it does, with attention as different as possible.

    There is a copy for each of ``strengths``, the weight λ of attention in the loss; that of 0,
    the control, has no reason to attend elsewhere, and is always among them. The model itself is
    not touched. ``data`` are (text, label) pairs, or a data file with a label column; ``held_out``
    is the share of it that is measured on, or other data. Labels only tell accuracy: copies are
    trained to answer as the model does.

    >>> import whence
    >>> texts = [("a fine film", "good"), ("a dull film", "bad")] * 20
    >>> model = whence.train_small(texts)
    >>> training = whence.Training(epochs=20, rate=1e-3, decay=0.0)
    >>> adversarial = whence.adversarial_model(model, texts, strengths=(0, 1), training=training)
    >>> control, opponent = adversarial.copies
    >>> control.tvd.mean < 0.01, opponent.jsd.mean > control.jsd.mean, opponent.accuracy
    (True, True, 1.0)
    """
    check_is_model(model)
    check_trainable(model)
    check_editable(model.hf)
    chosen = _checked(strengths)
    train, test = split(labelled(data), held_out, seed)
    numbered(model, train)  # a label that the model does not have is told before any training
    passages = encoded(model, train)
    of_test, truth = encoded(model, test), np.array(numbered(model, test))

    measured = []
    for done, strength in enumerate(chosen):
        tell = _teller(progress, strength, done, len(chosen))
        copied = _beside(model, seed)
        with copied.lock:
            begin = opposed(model, copied, passages, strength)
            descend(copied.hf, len(train), begin, training, seed, tell, dropout=False)
        measured.append(_measured(model, copied, of_test, truth))

    _, counts = np.unique(truth, return_counts=True)
    return Adversarial(
        copies=_opponents(chosen, measured, seed),
        shuffled=_shuffled(model, of_test, seed),
        accuracy=float((model.logits(of_test).argmax(1) == truth).mean()),
        majority=float(counts.max() / counts.sum()),
        trained_on=len(train),
        held_out=len(test),
        training=training,
    )


def _checked(strengths: Sequence[int | float]) -> tuple[float, ...]:
    """In rising order, with the control."""
    chosen = {float(strength) for strength in strengths} | {0.0}
    if not all(0 <= strength < float("inf") for strength in chosen):
        raise InputError(f"strengths are finite numbers from 0 upwards, not {tuple(strengths)}.")
    return tuple(sorted(chosen))


def _beside(model: Model, seed: int) -> Model:
    """A copy whose weights are moved a little: by a share of the size that its tensor has."""
    copied = copy_of(model)
    inherit(copied, model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in copied.hf.parameters():
            size = weight.square().mean().sqrt()
            weight += BESIDE * size * torch.randn(weight.shape, generator=generator).to(weight)
    return copied


def _teller(
    progress: Callable[[str], None] | None, strength: float, done: int, of_copies: int
) -> Callable[[int, int], None]:
    def tell(step: int, of: int) -> None:
        if progress is not None:
            words = f"against the model's attention, λ = {strength:g}: step {step} of {of}"
            progress(Step(words, done * of + step, of_copies * of))

    return tell


def opposed(
    model: Model, copied: Model, passages: Sequence[Passage], strength: float
) -> Callable[[int], Loss]:
    """TVD(p, p of base) − λ · KL(attention || attention of base), the mean over texts."""
    inputs = copied.batch(passages).inputs

    def loss(rows: Int[Tensor, " row"]) -> Float[Tensor, ""]:
        # run again in each step: the maps of all texts would not fit the memory
        base = trace(model, [passages[row] for row in rows.tolist()], needs=Needs.ATTENTION)
        observer = Observer(copied.hf, keep=True)
        with observing(copied.hf, observer):
            logits = copied.hf(**rows_of(inputs, rows)).logits
        maps = dict(zip(observer.layers, observer.maps, strict=True))
        distance = model.change(base.logits, logits)
        return (distance - strength * attention_apart(base, maps, kl)).mean()

    return lambda _epoch: loss


def attention_apart(base: Trace, maps: Maps, apart: Apart) -> Float[Tensor, " text"]:
    """How far maps are from the base's: the mean over heads and rows that matter, then layers."""
    total = torch.zeros(len(base.passages), device=base.logits.device)
    layers = torch.zeros_like(total)
    for layer, weights in maps.items():
        of_base = base.attentions[layer.kind][layer.index]
        matters = _matters(base, layer)
        values = apart(_as_distribution(weights), _as_distribution(of_base))
        total = total + mean_over_rows(values, matters)
        layers = layers + matters.any(-1)
    return total / layers.clamp(min=1)


def _matters(base: Trace, layer: Layer) -> Bool[Tensor, "text query"]:
    rows = [rows_that_matter(base, i, layer) for i in range(len(base.passages))]
    return torch.stack(rows).to(base.logits.device)


def _as_distribution(
    weights: Float[Tensor, "text head query key"],
) -> Float[Tensor, "text head query key"]:
    """A family with sinks keeps some of the weight for nobody."""
    return weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)


def maps_of(seen: Trace) -> dict[Layer, Tensor]:
    """The attention of every layer."""
    maps = {}
    for kind, layers in seen.layers.items():
        maps |= dict(zip(layers, seen.attentions[kind], strict=True))
    return maps


def in_groups(model: Model, passages: Sequence[Passage]) -> list[tuple[list[int], list[Passage]]]:
    """The places of texts that run together, and the texts."""
    groups = model.groups_of_lengths([len(p) for p in passages], TOKENS_PER_BATCH)
    return [(group, [passages[i] for i in group]) for group in groups]


@dataclass(frozen=True, eq=False)
class _Measured:
    """A copy beside the model, text by text."""

    tvd: Float[np.ndarray, " text"]
    jsd: Float[np.ndarray, " text"]
    is_right: Bool[np.ndarray, " text"]


def _measured(
    model: Model, copied: Model, passages: Sequence[Passage], truth: Int[np.ndarray, " text"]
) -> _Measured:
    """On texts that the copy was not trained on."""
    tvd, divergence = np.zeros(len(passages)), np.zeros(len(passages))
    is_right = np.zeros(len(passages), dtype=bool)
    for group, texts in in_groups(model, passages):
        base = trace(model, texts, needs=Needs.ATTENTION)
        other = trace(copied, texts, needs=Needs.ATTENTION)
        tvd[group] = model.change(base.logits, other.logits).cpu().numpy()
        divergence[group] = attention_apart(base, maps_of(other), jsd).cpu().numpy()
        is_right[group] = other.logits.argmax(-1).cpu().numpy() == truth[group]
    return _Measured(tvd, divergence, is_right)


def _opponents(
    strengths: Sequence[float], measured: Sequence[_Measured], seed: int
) -> tuple[Opponent, ...]:
    """With intervals that hold together: the furthest copy is picked from among all."""
    tvds = _estimates(np.stack([each.tvd for each in measured], 1), 1.0, seed)
    jsds = _estimates(np.stack([each.jsd for each in measured], 1), MOST, seed)
    copies = []
    for strength, each, tvd, apart in zip(strengths, measured, tvds, jsds, strict=True):
        copies.append(Opponent(strength, tvd, apart, float(each.is_right.mean())))
    return tuple(copies)


def _shuffled(model: Model, passages: Sequence[Passage], seed: int) -> Estimate:
    """The divergence of the model's weights from themselves in random order."""
    generator = torch.Generator().manual_seed(seed + SHUFFLE_STREAM)
    values = np.zeros(len(passages))
    for group, texts in in_groups(model, passages):
        base = trace(model, texts, needs=Needs.ATTENTION)
        maps = {}
        for layer, weights in maps_of(base).items():
            noise = torch.rand(weights.shape, generator=generator).to(weights)
            maps[layer] = in_order_of(noise, weights, weights > 0)
        values[group] = attention_apart(base, maps, jsd).cpu().numpy()
    return estimate_within(values, MOST, seed)


def estimate_within(values: Float[np.ndarray, " text"], most: float, seed: int) -> Estimate:
    """The mean over texts with its interval, within what is possible."""
    (estimate,) = _estimates(values[:, None], most, seed)
    return estimate


def _estimates(values: Float[np.ndarray, "text copy"], most: float, seed: int) -> list[Estimate]:
    every = []
    for mean in means_together(values, seed):
        low, high = mean.interval or (0.0, most)
        every.append(Estimate(mean.mean, max(low, 0.0), min(high, most)))
    return every
