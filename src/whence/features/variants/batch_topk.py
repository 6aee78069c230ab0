"""batch-topk: the k · n largest pre-activations of a batch of n rows are active.

    a = BatchTopK(E x + b)     L = ‖x − s‖² + α ‖e − ê‖²

A row with much in it gets more features than one with little. After training there is no batch:
a feature is active above one threshold, the mean over batches of the least activation.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import torch
from torch import Tensor

from whence.features.choosing import Part, largest_in_batch
from whence.features.groups import Group
from whence.features.loss import Moment, Parameters, Trained, Values, Variant, encoder_of
from whence.features.rules import Rule, Threshold
from whence.features.settings import Settings
from whence.features.variants.topk import loss

REMEMBERED = 0.99  # the share of the threshold that comes from earlier batches


def parts(rows: Tensor, moment: Moment) -> Iterator[Part]:
    """The largest of the batch, and the largest dead ones of each row."""
    k = moment.settings.k
    assert k is not None
    encoder, wanted = encoder_of(moment), moment.wanted(rows.shape[1])
    yield largest_in_batch(rows, encoder, k, wanted, moment.group)


def kept(_: Settings) -> dict[str, Tensor]:
    """The threshold, and how much of it is known: a mean over few batches is not drawn to 0."""
    return {"threshold": torch.zeros(()), "known": torch.zeros(())}


def see(activations: Values, kept: Parameters, group: Group) -> None:
    """Move the threshold towards the least activation of this batch, of all processes."""
    active = activations[activations > 0]
    least = group.least(float(active.min()) if len(active) else inf)
    if least == inf:
        return
    kept["threshold"].lerp_(torch.full_like(kept["threshold"], least), 1 - REMEMBERED)
    kept["known"].lerp_(torch.ones_like(kept["known"]), 1 - REMEMBERED)


def rule(trained: Trained) -> Rule:
    """Above the mean threshold, the same for all features."""
    known = max(float(trained.kept["known"]), 1e-12)
    threshold = float(trained.kept["threshold"]) / known
    return Threshold(torch.full_like(trained.parameters["encoder_bias"], threshold))


VARIANT = Variant(
    name="batch-topk",
    paper="Bussmann, Leask and Nanda 2024, BatchTopK Sparse Autoencoders",
    unit=True,
    needs_k=True,
    parts=parts,
    loss=loss,
    rule=rule,
    kept=kept,
    see=see,
)
