"""How far the output moved, of what was asked: by this a change of attention counts.

It is the total variation between the labels' probabilities (``Model.change``). Where the question
is *why A rather than B*, the output is the choice between these two, and the change is that of

    P(A) / (P(A) + P(B))

Of several labels that may hold together it is the largest change of a probability, and of a number
its difference, in its own units.

A language model has a vocabulary of rivals that nobody asked about. Over all of it, attention that
moves the probability of a comma would count as if it had moved the choice, and attention under
which *herself* and *himself* change places, both unlikely, would not count at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.target import Target
from whence.models.model import Model

# Said of the unit in which a test of attention measures.
MEASURED = "total variation, or the largest of several labels (0 to 1); of a number the difference"


def output_moved(
    model: Model,
    targets: Sequence[Target],
    before: Float[Tensor, "#row label"],
    after: Float[Tensor, "row label"],
) -> Float[Tensor, " row"]:
    """How far the output of each row has moved, between those labels that its target asks about.

    ``targets`` are resolved, one for each row of ``before``.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> before, after = torch.tensor([[0.0, 0.0]]), torch.tensor([[100.0, 0.0]])
    >>> output_moved(model, [Target(index=0)], before, after)
    tensor([0.5000])
    """
    pairs = [pair_asked_about(model, target) for target in targets]
    if not any(pairs):
        return model.change(before, after)

    labels = torch.tensor([pair or (0, 1) for pair in pairs], device=before.device)
    of_pairs = model.change(before.gather(1, labels), _gathered(after, labels))
    if all(pairs):
        return of_pairs
    has_pair = torch.tensor([pair is not None for pair in pairs], device=before.device)
    return torch.where(has_pair, of_pairs, model.change(before, after))


def pair_asked_about(model: Model, target: Target) -> tuple[int, int] | None:
    """The two labels of a contrast; None where there is none, or where labels do not compete."""
    if model.several_labels or model.is_regression:
        return None
    if target.index is None or target.against_index is None:
        return None
    return target.index, target.against_index


def _gathered(
    logits: Float[Tensor, "row label"], labels: Int[Tensor, "#row two"]
) -> Float[Tensor, "row two"]:
    return logits.gather(1, labels.expand(len(logits), -1))
