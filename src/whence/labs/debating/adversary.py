"""The most different attention that leaves an answer as it is: searched for, and exactly.

The search is that of Jain & Wallace 2019, section 4.2.2 and algorithm 3. What it finds is a lower
bound. In these models the answer depends on the weights through one number, the weighted mean of
the words' votes, so that the largest divergence can also be had exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whence.theory import jsd


@dataclass(frozen=True)
class Search:
    """Settings of the published code."""

    restarts: int = 5
    steps: int = 500
    rate: float = 0.01
    spread: float = 3.0  # sd of the random logits at the start
    penalty: float = 500.0
    free: float = 0.01  # a change of ŷ up to here costs nothing
    allowed: float = 0.05  # ε: what changes ŷ by more does not count


@dataclass(frozen=True, eq=False)
class Adversary:
    """The most different weights of each text, and how different they are."""

    weights: Float[Tensor, "text place"]
    divergence: Float[Tensor, " text"]  # from the weights of the model, in nats
    change: Float[Tensor, " text"]  # |Δŷ|


def search(
    weights: Float[Tensor, "text place"],
    votes: Float[Tensor, "text place"],
    present: Bool[Tensor, "text place"],
    settings: Search,
    generator: torch.Generator,
) -> Adversary:
    """Gradient steps on the logits of attention, for all texts and restarts at once.

    Each restart minimises -JSD(adversary, α) + 500 relu(|Δŷ| - 0.01), minus the mean JSD to the
    other restarts of its text, which keeps them apart. Of those within ε, the furthest is taken. α
    itself is among them, so that no divergence is below zero.
    """
    answer = (weights * votes).sum(-1).sigmoid()  # (text)
    size = (settings.restarts, *weights.shape)
    start = settings.spread * torch.randn(size, generator=generator)
    logits = start.requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=settings.rate, amsgrad=True)

    for _ in range(settings.steps):
        candidates = logits.masked_fill(~present, -torch.inf).softmax(-1)
        change = ((candidates * votes).sum(-1).sigmoid() - answer).abs()
        away = jsd(candidates, weights)  # (restart, text)
        apart = jsd(candidates[:, None], candidates[None, :])  # (restart, restart, text)
        to_others = apart.sum(1) / max(1, settings.restarts - 1)
        excess = (change - settings.free).relu()
        loss = (settings.penalty * excess - away - to_others).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    with torch.no_grad():
        candidates = logits.masked_fill(~present, -torch.inf).softmax(-1)
        return _furthest(torch.cat([weights[None], candidates]), weights, votes, settings.allowed)


def _furthest(
    candidates: Float[Tensor, "candidate text place"],
    weights: Float[Tensor, "text place"],
    votes: Float[Tensor, "text place"],
    allowed: float,
) -> Adversary:
    """Of the candidates that keep the answer within ε, the one furthest from α, in each text."""
    answer = (weights * votes).sum(-1).sigmoid()
    change = ((candidates * votes).sum(-1).sigmoid() - answer).abs()  # (candidate, text)
    away = jsd(candidates, weights).masked_fill(change > allowed, -1.0)
    divergence, best = away.max(0)
    texts = torch.arange(len(weights))
    return Adversary(candidates[best, texts], divergence, change[best, texts])


def exact(
    weights: Float[Tensor, " place"], votes: Float[Tensor, " place"], allowed: float
) -> Adversary:
    """The most different attention of one text, without a search; no padding.

    |Δŷ| ≤ ε says that the weighted mean of the votes lies between two numbers. The weights that
    obey are the simplex between two parallel planes. JSD(·, α) is convex, so that it is largest in
    a corner of that polytope: all weight on one word whose vote lies between the planes, or the
    weight on two words, one on each side of a plane, so that their mean lies on it.
    """
    weights, votes = weights.double(), votes.double()
    answer = (weights * votes).sum().sigmoid()
    alone = torch.eye(len(votes), dtype=torch.float64)
    candidates = [weights[None], alone]
    for edge in ((answer - allowed).clamp_min(0), (answer + allowed).clamp_max(1)):
        plane = edge.logit()  # infinite where ŷ may go that far
        if plane.isfinite():
            below, above = (votes < plane).nonzero()[:, 0], (votes > plane).nonzero()[:, 0]
            low, high = torch.cartesian_prod(below, above).view(-1, 2).T
            share = (plane - votes[low]) / (votes[high] - votes[low])  # of the word above
            candidates.append((1 - share)[:, None] * alone[low] + share[:, None] * alone[high])
    corners = torch.cat(candidates)[:, None]  # (candidate, 1, place)
    rounding = 1e-9  # a corner lies on the plane, and may lie beyond it by the last digits
    return _furthest(corners, weights[None], votes[None], allowed + rounding)
