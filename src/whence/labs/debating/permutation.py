"""What becomes of an answer when the weights of attention are dealt out anew among the words.

Jain & Wallace 2019, section 4.2.1 and algorithm 2.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def permuted(
    weights: Float[Tensor, "text place"],
    present: Bool[Tensor, "text place"],
    generator: torch.Generator,
) -> Float[Tensor, "text place"]:
    """Each text's weights in a random order; nothing moves to where there is no word."""
    # sorting random keys shuffles; padding has the largest keys and so stays at the end
    keys = torch.rand(weights.shape, generator=generator).masked_fill(~present, 2.0)
    return weights.gather(-1, keys.argsort(-1))


def permutation_changes(
    weights: Float[Tensor, "text place"],
    votes: Float[Tensor, "text place"],
    present: Bool[Tensor, "text place"],
    generator: torch.Generator,
    permutations: int = 100,
) -> Float[Tensor, "permutation text"]:
    """|ŷ permuted - ŷ| for each permutation. ``votes`` are w · h_t + b."""
    answer = (weights * votes).sum(-1).sigmoid()
    changes = []
    for _ in range(permutations):
        shuffled = permuted(weights, present, generator)
        changes.append(((shuffled * votes).sum(-1).sigmoid() - answer).abs())
    return torch.stack(changes)
