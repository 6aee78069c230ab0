"""Attention flow: the most that attention, as pipes, can carry from the output to each token."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.passage import Passage
from whence.core.registry import Needs, method, setting
from whence.core.scores import Scores
from whence.models.model import Model
from whence.trace.flow import PATIENCE, attention_flow, joined_layers, pipe_widths
from whence.trace.flow import Flow as MaximumFlow
from whence.trace.forecast import attention_shape
from whence.trace.rows import check_both_sides, padded, text_length
from whence.trace.trace import Trace

WORTH_A_NOTE = 1e-6
BYTES_OF_A_WIDTH = 8
COPIES = 2  # of a layer, while its residual is added
BYTES_OF_A_PIPE = 160  # measured: its width, its flow, and the matrices of a round


@method("flow", version=1, cites="abnar2020quantifying", aliases=("attention-flow", "max-flow"))
@dataclass(frozen=True, slots=True)
class Flow:
    """The most that could flow from the output to each word if attention weights were pipes.

    A layer of pipes is Â = (A + I), rows brought to one, A the mean over heads. Each token is a
    maximum flow of its own, exact. Shares sum to one over all tokens, special ones included.
    """

    residual: bool = setting(
        True,
        "Whether each token also has a pipe straight down, as a guess at the residual connection.",
    )
    normalise: bool = setting(
        True, "Whether flows are divided by their sum, which makes them shares."
    )
    patience: float = setting(
        PATIENCE,
        "The seconds that it may take by estimate; a text that would take longer is refused.",
    )

    needs: ClassVar[Needs] = Needs.HEAD_MEANS
    signed: ClassVar[bool] = False
    price: ClassVar[str] = (
        "One forward pass, then a maximum flow for each token: with 12 layers about a second "
        "for 64 tokens, minutes for 512."
    )
    misleads: ClassVar[str] = (
        "In a deep model nearly every word can receive nearly everything, so scores are "
        "almost equal and their order rests on small differences. It has no sign and does not "
        "depend on the target."
    )

    def holds(self, model: Model, passage: Passage) -> int:
        """Bytes of the widths of all layers, and of the pipes between the first and the last.

        These two are the ends of the network, and are not laid as pipes.
        """
        layers = sum(layers for layers, _ in attention_shape(model).values())
        ends = 1 if model.readout(passage) is None else 2
        between = max(0, layers - ends)
        each = BYTES_OF_A_WIDTH * (layers + COPIES) + BYTES_OF_A_PIPE * between
        return each * len(passage) ** 2

    def __call__(self, trace: Trace) -> list[Scores]:
        """Said where the flow was not found exactly.

        ``the flow is known to within 1.0e-04 of its value, not exactly``
        """
        rows = []
        notes = []
        for i in range(len(trace.passages)):
            flow = self._flow(trace, i)
            values = flow.normalised() if self.normalise else flow.values
            rows.append(torch.from_numpy(values))
            note = ""
            if flow.gap > WORTH_A_NOTE:
                note = f"the flow is known to within {flow.gap:.1e} of its value, not exactly"
            notes.append(note)
        return Scores.rows(padded(rows, trace.content.shape[1]), notes=notes)

    def _flow(self, trace: Trace, i: int) -> MaximumFlow:
        passage, means = trace.passages[i], trace.head_means
        at, length = trace.model.readout(passage), text_length(trace, i)
        if "cross" not in means:
            own = next(iter(means.values()))
            layers = [pipe_widths(_cut(m, i, length, length), self.residual) for m in own]
            return attention_flow(layers, at, trace.tick, self.patience)
        check_both_sides(trace, tuple(means))
        # a decoder's token sees none after it
        answers = length if at is None else at + 1
        encoder = [_cut(m, i, length, length) for m in means["encoder"]]
        decoder = [_cut(m, i, answers, answers) for m in means["decoder"]]
        cross = [_cut(m, i, answers, length) for m in means["cross"]]
        places_behind = len(passage) - length
        tower = joined_layers(encoder, decoder, cross, self.residual, to_both=places_behind > 0)
        flow = attention_flow(tower, at, trace.tick, self.patience)
        if not places_behind:
            return flow
        # the tower has the decoder's places first; those behind the one that is read get nothing
        order = np.r_[answers : answers + length, :answers]
        behind = (0, places_behind - answers)
        return MaximumFlow(np.pad(flow.values[order], behind), np.pad(flow.upper[order], behind))


def _cut(
    maps: Float[Tensor, "batch query key"], i: int, queries: int, keys: int
) -> Float[np.ndarray, "{queries} {keys}"]:
    """One passage's map without its padding."""
    return maps[i, :queries, :keys].double().cpu().numpy()
