"""The size of the gradient, by its L2 norm."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.trace import Trace


@method("gradient-l2", version=1, cites="poerner2018evaluating")
@dataclass(frozen=True, slots=True)
class GradientL2:
    """The L2 norm of the target's gradient with respect to each token's embedding (G-L2).

    ``form="lecture"`` is the mean of the squared entries, as the lecture's formula has it: the same
    ranking of tokens, other values.
    """

    form: Literal["norm", "lecture"] = "norm"

    needs: ClassVar[Needs] = Needs.EMBEDDING_GRADIENTS
    signed: ClassVar[bool] = False

    @property
    def merge(self) -> str:
        """Either way a word gets the formula applied to its pieces' gradients laid end to end."""
        return "norm" if self.form == "norm" else "mean"

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        gradient = trace.embedding_gradients
        if self.form == "lecture":
            return gradient.square().mean(-1)
        return gradient.norm(dim=-1)
