"""Attention rollout: attention followed down through every layer to the input."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from whence.core.errors import SettingsError
from whence.core.registry import Needs, method
from whence.trace.rows import padded, rolled_row
from whence.trace.trace import Trace


@method("rollout", version=1, cites="abnar2020quantifying")
@dataclass(frozen=True, slots=True)
class Rollout:
    """The share of each input token in the read-out token, if layers mix tokens by mean attention.

    Half of each token stays behind: S = Â_N … Â_1 with Â = (A + I), rows brought to one, A the mean
    over heads; the read-out token's row of S, propagated as a row. ``residual=False`` multiplies
    the bare maps. ``start_layer`` leaves out the layers below it. An encoder-decoder is one tall
    stack: what crosses over from the decoder runs down the encoder.
    """

    residual: bool = True
    start_layer: int = 0

    needs: ClassVar[Needs] = Needs.HEAD_MEANS
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        kind = next(iter(trace.head_means))
        if "cross" in trace.head_means:
            kind = "encoder"
        count = len(trace.head_means[kind])
        if not 0 <= self.start_layer < count:
            raise SettingsError(
                f"start_layer {self.start_layer} is outside the {count} layers (0 to {count - 1})."
            )
        rows = [
            rolled_row(trace, i, trace.head_means, self.residual, self.start_layer)
            for i in range(len(trace.passages))
        ]
        return padded(rows, trace.content.shape[1])
