"""Attention rollout: attention followed down through every layer to the input."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from whence.core.errors import SettingsError
from whence.core.registry import Needs, method, setting
from whence.trace.rows import check_both_sides, padded, rolled_row
from whence.trace.trace import Trace


@method("rollout", version=1, cites="abnar2020quantifying", aliases=("attention-rollout",))
@dataclass(frozen=True, slots=True)
class Rollout:
    """Each word's share in the output, if all layers did was to mix words by attention (rollout).

    S = Â_N … Â_1 with Â = (A + I), rows brought to one, A the mean over heads; the read-out token's
    row of S, propagated as a row. An encoder-decoder is one tall stack: what crosses over from the
    decoder runs down the encoder.
    """

    residual: bool = setting(
        True,
        "Whether half of each token stays where it is in each layer, as a guess at the "
        "residual connection.",
    )
    start_layer: int = setting(0, "The lowest layer that counts; those below it are left out.")

    needs: ClassVar[Needs] = Needs.HEAD_MEANS
    signed: ClassVar[bool] = False
    price: ClassVar[str] = "One forward pass, with the mean over heads kept; no backward pass."
    misleads: ClassVar[str] = (
        "With depth all words get nearly the same share, and their order rests on small "
        "differences. It has no sign and does not depend on the target."
    )

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        check_both_sides(trace, tuple(trace.head_means))
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
