"""Training, as short as it can be: AdamW over shuffled batches, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from whence.core.errors import ModelError, SettingsError, Unsupported
from whence.core.passage import Passage
from whence.models.model import Model

ORDER_STREAM = 12  # of random numbers: the order of texts in training
LARGEST_NORM = 1.0  # of the gradients of a step

# The passages of an epoch: the same each time, or others.
Epochs = Callable[[int], Sequence[Passage]]
# What is made small: a number for some of the texts, by their places.
Loss = Callable[[Tensor], Tensor]
Tell = Callable[[int, int], None]  # the steps done, of how many


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    The rate falls to nothing in a straight line. ``smoothing`` of labels keeps the logits of a
    model that has learned all its texts from growing without end.
    """

    epochs: int = 10
    batch: int = 32
    rate: float = 3e-3
    decay: float = 0.01
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise SettingsError(
                f"training takes at least one epoch and one text in a batch, not "
                f"{self.epochs} and {self.batch}."
            )
        if not 0 < self.rate < 1 or self.decay < 0 or not 0 <= self.smoothing < 1:
            raise SettingsError(
                f"a rate lies between 0 and 1, a decay is not negative, a smoothing is below 1; "
                f"not {self.rate}, {self.decay} and {self.smoothing}."
            )


@contextmanager
def seeded(model: nn.Module | None, seed: int) -> Iterator[None]:
    """torch's random numbers from a seed, for the length of a block; the caller's come back."""
    devices = set()
    if model is not None:
        devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=sorted(devices, key=str)):
        torch.manual_seed(seed)
        yield


def fit(
    model: Model,
    epochs: Epochs,
    labels: Sequence[int],
    training: Training,
    seed: int,
    tell: Tell = lambda _done, _of: None,
    run: Callable[..., Any] | None = None,
) -> None:
    """Train the model's weights in place; dropout is on meanwhile.

    ``epochs(e)`` gives the passages of epoch e, one for each label. ``tell`` is called with the
    steps done, of how many. ``run`` is a forward pass other than the model's own.
    """
    passing = run or model.hf
    targets = torch.tensor(labels, device=model.device)

    def begin(epoch: int) -> Loss:
        inputs = model.batch(epochs(epoch)).inputs

        def loss(rows: Int[Tensor, " row"]) -> Float[Tensor, ""]:
            logits = passing(**rows_of(inputs, rows)).logits
            return functional.cross_entropy(
                logits, targets[rows], label_smoothing=training.smoothing
            )

        return loss

    with model.lock:
        descend(model.hf, len(labels), begin, training, seed, tell)


def descend(
    module: nn.Module,
    texts: int,
    begin: Callable[[int], Loss],
    training: Training,
    seed: int,
    tell: Tell = lambda _done, _of: None,
    dropout: bool = True,
) -> None:
    """Train the weights of a module in place, by whatever loss ``begin(e)`` gives for epoch e."""
    order = np.random.default_rng([seed, ORDER_STREAM])
    weights = [p for p in module.parameters() if p.is_floating_point()]
    device = weights[0].device
    for weight in weights:
        weight.requires_grad_(True)
    optimiser = torch.optim.AdamW(
        weights,
        lr=training.rate,
        weight_decay=training.decay,
        # all weights in one call: of a small model, half of a step is the calls
        fused=device.type in ("cpu", "cuda"),
    )
    steps_each = -(-texts // training.batch)
    steps = training.epochs * steps_each
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)

    done = 0
    with seeded(module, seed), torch.enable_grad():
        module.train(dropout)
        try:
            for epoch in range(training.epochs):
                loss = begin(epoch)
                shuffled = torch.from_numpy(order.permutation(texts)).to(device)
                for rows in shuffled.split(training.batch):
                    value = loss(rows)
                    optimiser.zero_grad()
                    value.backward()
                    nn.utils.clip_grad_norm_(weights, LARGEST_NORM)
                    optimiser.step()
                    schedule.step()
                    done += 1
                    tell(done, steps)
        finally:
            module.eval()
            for weight in weights:
                weight.grad = None
    if not all(bool(weight.isfinite().all()) for weight in weights):
        raise ModelError(
            f"training went to infinity at a rate of {training.rate:g}; take a smaller one."
        )


def rows_of(inputs: dict[str, Tensor], rows: Int[Tensor, " row"]) -> dict[str, Tensor]:
    """Some rows of a padded batch, without the columns that are padding in all of them."""
    longest = int(inputs["attention_mask"][rows].sum(1).max())
    return {name: tensor[rows, :longest] for name, tensor in inputs.items()}


def guesses(model: Model, passages: Sequence[Passage]) -> Int[np.ndarray, " passage"]:
    """The number of the label that the model gives to each passage."""
    logits: Float[np.ndarray, "passage label"] = model.logits(passages)
    return logits.argmax(1)


def check_trainable(model: Model) -> None:
    """Raise for what is no classifier of text in single precision or better."""
    architecture = type(model.hf).__name__
    if not (model.kind.has_classes and model.kind.reads_text) or model.kind.offers_choices:
        raise Unsupported(f"only classifiers of text are trained here; {architecture} is none.")
    if model.kind.tags_words or model.is_regression or model.several_labels:
        raise Unsupported(
            f"only a classifier with one label for each text is trained here; {architecture} has "
            "tags, numbers or several labels."
        )
    if model.kind.reads_image:
        raise Unsupported(f"{architecture} reads images, and only text is trained on here.")
    if model.dtype not in (torch.float32, torch.float64):
        raise Unsupported(
            f"training in {str(model.dtype).removeprefix('torch.')} loses small steps; "
            "load the model with dtype='float32'."
        )
