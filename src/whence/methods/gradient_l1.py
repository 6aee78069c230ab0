"""The size of the gradient, by its L1 norm."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.trace import Trace


@method("gradient-l1", version=1, cites="li2016visualizing")
@dataclass(frozen=True, slots=True)
class GradientL1:
    """The L1 norm of the target's gradient with respect to each token's embedding (G-L1).

    ``form="lecture"`` divides by the number of entries, as the lecture's formula does: the same
    ranking, other values.
    """

    form: Literal["norm", "lecture"] = "norm"

    needs: ClassVar[Needs] = Needs.EMBEDDING_GRADIENTS
    signed: ClassVar[bool] = False

    @property
    def merge(self) -> str:
        """Either way a word gets the formula applied to its pieces' gradients laid end to end."""
        return "sum" if self.form == "norm" else "mean"

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        size = trace.embedding_gradients.abs()
        if self.form == "lecture":
            return size.mean(-1)
        return size.sum(-1)
