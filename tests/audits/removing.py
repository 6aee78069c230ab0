"""What the tests of head removal share: cases, heads cut out of the weights, and counted passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.families import inputs
from whence.audits.case import Case
from whence.core.audit import Observation, Place
from whence.models.model import Model

WIDTH = 8  # of a head of every small family


def cases_of(model: Model, passages: Sequence[Any] | None = None) -> list[Case]:
    """Texts of unequal length, asked about what the model predicts."""
    passages = inputs(model, 3) if passages is None else passages
    rows = model.logits(passages)
    cases = []
    for passage, row in zip(passages, rows, strict=True):
        cases.append(Case(passage, model.resolve(None, row, passage)))
    return cases


# what multiplies the outputs of a layer's heads, as "embedding head·width"
PROJECTIONS: dict[str, Callable[[Any, int], Tensor]] = {
    "bert": lambda hf, layer: hf.bert.encoder.layer[layer].attention.output.dense.weight,
    "gpt2": lambda hf, layer: hf.transformer.h[layer].attn.c_proj.weight.T,
    "llama": lambda hf, layer: hf.model.layers[layer].self_attn.o_proj.weight,
}


def cut_out(model: Model, family: str, places: Sequence[Place]) -> Model:
    """A copy whose weights carry nothing of these heads: no edit, and no trace."""
    hf = deepcopy(model.hf)
    with torch.no_grad():
        for place in places:
            assert place.layer is not None
            assert place.head is not None
            columns = slice(place.head * WIDTH, (place.head + 1) * WIDTH)
            PROJECTIONS[family](hf, place.layer)[:, columns] = 0
    return replace(model, hf=hf)


def cross_entropies(
    logits: np.ndarray, labels: Sequence[int], among: Sequence[int] | None = None
) -> np.ndarray:
    """By torch, from logits "text label", perhaps of some labels alone."""
    if among is not None:
        logits = logits[:, list(among)]
        labels = [list(among).index(label) for label in labels]
    losses = torch.nn.functional.cross_entropy(
        torch.from_numpy(logits), torch.tensor(labels), reduction="none"
    )
    return losses.numpy()


def table(observations: Sequence[Sequence[Observation]], quantity: str) -> np.ndarray:
    """The values of a quantity at the heads: "text head"."""
    return np.array(
        [
            [o.value for o in of_text if o.quantity == quantity and o.place.head is not None]
            for of_text in observations
        ]
    )


def of_whole(observations: Sequence[Sequence[Observation]], quantity: str) -> np.ndarray:
    values = []
    for of_text in observations:
        values += [o.value for o in of_text if o.quantity == quantity and o.place == Place()]
    return np.array(values)


@contextmanager
def counted(model: Model) -> Iterator[list[int]]:
    """How many texts go into each forward pass."""
    # what is asked of a model once, by passes of its own, is asked before
    assert isinstance(model.pads, bool)
    assert isinstance(model.shares_batches, bool)
    batches: list[int] = []
    handle = model.hf.register_forward_pre_hook(
        lambda _module, _args, given: batches.append(len(given["input_ids"])), with_kwargs=True
    )
    try:
        yield batches
    finally:
        handle.remove()
