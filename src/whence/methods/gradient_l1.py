"""The size of the gradient, by its L1 norm."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method, setting
from whence.trace.trace import Trace


@method("gradient-l1", version=1, cites="li2016visualizing", aliases=("g-l1",))
@dataclass(frozen=True, slots=True)
class GradientL1:
    """How strongly the target reacts to a small change of each word: the gradient's L1 norm (G-L1).

    Both forms rank tokens alike; the values differ.
    """

    form: Literal["norm", "lecture"] = setting(
        "norm",
        "How the gradient's size is taken: norm is the sum of its absolute entries, lecture "
        "their mean.",
    )

    needs: ClassVar[Needs] = Needs.EMBEDDING_GRADIENTS
    signed: ClassVar[bool] = False
    price: ClassVar[str] = (
        "One forward and one backward pass, shared by all methods that use gradients."
    )
    misleads: ClassVar[str] = (
        "It has no sign: a word against the target scores like one for it. It is blind where "
        "the model is so sure that small changes do nothing."
    )

    @property
    def merge(self) -> str:
        """Either way a word gets the formula applied to its pieces' gradients laid end to end."""
        return "sum" if self.form == "norm" else "mean"

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        size = trace.embedding_gradients.abs()
        if self.form == "lecture":
            return size.mean(-1)
        return size.sum(-1)
