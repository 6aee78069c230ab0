"""The trace of a text whose number is a difference: how much better one text follows it.

Both texts follow the same prompt, or what was written after it up to there. So the slope of the
difference along the embeddings of that is the difference of two slopes, and a method of gradients
need not know that there are two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.passage import Passage
from whence.core.target import Target
from whence.trace.trace import Head, Passes, Trace

At = Callable[[int, Float[Tensor, "point token dim"]], Tensor]


@dataclass(frozen=True, eq=False)
class Contrast(Trace):
    """A trace over a prompt, from those of the prompt with each of two continuations.

    What was written is held fixed: only embeddings of the prompt are moved.
    """

    sides: tuple[Trace, ...] = ()

    def values_of_all(
        self, asks: Sequence[int], points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "ask point"]:
        """The difference at other embeddings of the prompt."""
        del asks  # there is one
        first, second = (self._asked(side, side.values_at, points) for side in self.sides)
        return (first - second)[None]

    def gradients_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "point token dim"]:
        """Its gradient there."""
        del i
        tokens = points.shape[1]
        first, second = (self._asked(side, side.gradients_at, points) for side in self.sides)
        return first[:, :tokens] - second[:, :tokens]

    def slopes_along(
        self,
        asks: Sequence[int],
        points: Float[Tensor, "point token dim"],
        way: Float[Tensor, "token dim"],
    ) -> Float[Tensor, "ask point token"]:
        """The same along a way."""
        slopes = self.gradients_at(asks[0], points)
        return torch.einsum("ntd,td->nt", slopes, way)[None]

    def _asked(self, side: Trace, at: At, points: Float[Tensor, "point token dim"]) -> Tensor:
        """What one side says where the prompt has these embeddings; its passes are counted here."""
        forwards, backwards = side.passes.forwards[0], side.passes.backwards[0]
        written = side.embeddings_of(0)[points.shape[1] :].to(points)
        whole = torch.cat([points, written.expand(len(points), -1, -1)], dim=1)
        answer = at(0, whole)
        self.passes.forwards[0] += side.passes.forwards[0] - forwards
        self.passes.backwards[0] += side.passes.backwards[0] - backwards
        return answer


def contrast_of(prompt: Passage, target: Target, first: Trace, second: Trace) -> Contrast:
    """The trace of a difference, from two traces of one ask each."""
    tokens = len(prompt)
    gradients = None
    if first.gradients is not None and second.gradients is not None:
        gradients = first.gradients[:, :tokens] - second.gradients[:, :tokens]
    passes = Passes(
        [first.passes.forwards[0] + second.passes.forwards[0]],
        [first.passes.backwards[0] + second.passes.backwards[0]],
    )
    return Contrast(
        model=first.model,
        passages=(prompt,),
        targets=(target,),
        embeddings=first.embeddings[:, :tokens],
        head=Head(first.logits, first.values - second.values),
        gradients=gradients,
        passes=passes,
        tick=first.tick,
        rerun_tokens=first.rerun_tokens,
        sides=(first, second),
    )
