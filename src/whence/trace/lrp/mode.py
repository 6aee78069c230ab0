"""Rules in place of gradients while a model runs: a torch function mode that knows operations, not families.

Every torch function that the model calls passes here. What only rearranges entries keeps its gradient; what computes goes to the
rule of its kind; what has no kind is refused by name, as its plain gradient would silently break the sum of relevance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from whence.core.errors import Unsupported
from whence.trace.lrp.rules import Call, Rules, is_variable

# Entries are moved, chosen, repeated or cast: the gradient moves, drops, adds up or casts what comes down, and so does relevance.
REARRANGES = frozenset(
    {
        *(
            "__get__",
            "__getitem__",
            "__setitem__",
            "copy_",
            "requires_grad_",
            "detach",
            "clone",
            "contiguous",
            "register_hook",
        ),
        *(
            "view",
            "view_as",
            "reshape",
            "flatten",
            "unflatten",
            "squeeze",
            "unsqueeze",
            "expand",
            "expand_as",
            "broadcast_to",
        ),
        *("transpose", "permute", "swapaxes", "swapdims", "movedim", "t", "moveaxis", "unfold"),
        *(
            "split",
            "chunk",
            "unbind",
            "narrow",
            "select",
            "cat",
            "concat",
            "concatenate",
            "stack",
            "tensor_split",
            "split_with_sizes",
        ),
        *(
            "repeat",
            "repeat_interleave",
            "tile",
            "roll",
            "flip",
            "pad",
            "tril",
            "triu",
            "masked_fill",
            "where",
        ),
        *(
            "gather",
            "index_select",
            "take_along_dim",
            "masked_select",
            "topk",
            "sort",
            "scatter",
            "max",
            "min",
            "amax",
            "amin",
        ),
        *("to", "type", "type_as", "float", "double", "half", "bfloat16", "dropout"),
    }
)
BILINEAR = frozenset(
    {"linear", "matmul", "bmm", "mm", "einsum", "conv1d", "conv2d", "grouped_mm", "_grouped_mm"}
)  # in two tensors
WITH_SUMMAND = frozenset(
    {"addmm", "baddbmm"}
)  # of the second and the third argument, added to the first
ADDS = frozenset({"add", "sub", "__rsub__", "rsub", "subtract"})
POOLS = frozenset({"sum", "mean", "nanmean", "avg_pool1d", "adaptive_avg_pool1d", "cumsum"})
NORMS = frozenset({"layer_norm", "rms_norm"})
ACTIVATES = frozenset(
    {
        *(
            "gelu",
            "silu",
            "relu",
            "tanh",
            "relu6",
            "leaky_relu",
            "elu",
            "selu",
            "celu",
            "mish",
            "hardswish",
            "softsign",
            "erf",
        ),
        *(
            "square",
            "clamp",
            "clamp_min",
            "clamp_max",
            "clip",
            "hardtanh",
            "abs",
            "sin",
            "tanhshrink",
            "softshrink",
        ),
    }
)
# A normaliser or a gate: f(0) is not 0, so f(x)/x has a pole, and R stays with what is multiplied by it. For x·σ(x) that is the same as
# the rule for SiLU.
CONSTANT = frozenset(
    {
        "rsqrt",
        "sqrt",
        "var",
        "std",
        "norm",
        "vector_norm",
        "reciprocal",
        "sigmoid",
        "__rdiv__",
        "__rtruediv__",
    }
)
ACTIVATION_CLASS = re.compile(r"(gelu|silu|swish|mish|activation)$", re.IGNORECASE)


class Ruling(TorchFunctionMode):
    """Sends every operation on a variable to its rule."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.paused = 0  # inside an activation module, whose parts are not to be ruled one by one

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = Call(getattr(func, "__name__", str(func)), func, tuple(args), dict(kwargs or {}))
        if (
            self.paused
            or call.name in REARRANGES
            or not torch.is_grad_enabled()
            or not call.variables
        ):
            return call()
        return (
            self._in_place(call)
            if call.name.endswith("_") and not call.name.startswith("_")
            else self._ruled(call)
        )

    def _in_place(self, call: Call) -> Any:
        """The rule of the same operation out of place, on a copy, then written where it was meant to go."""
        target, name = call.args[0], call.name[:-1]
        if not hasattr(Tensor, name):
            raise Unsupported(_refusal(call))
        copy = Call(name, getattr(Tensor, name), (target.clone(), *call.args[1:]), call.kwargs)
        return target.copy_(self._ruled(copy))

    def _ruled(self, call: Call) -> Any:
        rules, name, count = self.rules, call.name, len(call.variables)
        if name in BILINEAR or (name in WITH_SUMMAND and not is_variable(call.args[0])):
            return rules.linear(call) if count == 1 else rules.product(call)
        if name in ("mul", "multiply"):
            return rules.scaled(call) if count == 1 else rules.product(call)
        if name in ("div", "true_divide", "divide"):
            return self._divided(call)
        if name in ADDS:
            return rules.added(call)
        if name == "neg":
            return rules.scaled(call)
        if name in POOLS:
            return rules.pooled(call)
        if name == "softmax":
            return rules.weighed(call)
        if name in NORMS and count == 1:
            return rules.normed(call)
        if (
            name in ACTIVATES or (name == "pow" and _is_positive(call.at(1, "exponent")))
        ) and count == 1:
            call.kwargs.pop("inplace", None)
            return rules.activated(call)
        value = call()
        if name in CONSTANT or name == "pow":
            return value.detach()
        if any(map(is_variable, value if isinstance(value, list | tuple) else (value,))):
            raise Unsupported(_refusal(call))
        return value  # a size, a comparison, a choice of places: nothing flows through it

    def _divided(self, call: Call) -> Tensor:
        """The divisor is a normaliser, and constant."""
        above, below = call.at(0, "input"), call.at(1, "other")
        if not is_variable(above):
            return call().detach()
        below = below.detach() if isinstance(below, Tensor) else below
        return self.rules.scaled(
            Call(
                "div",
                torch.div,
                (above, below),
                {n: a for n, a in call.kwargs.items() if n == "rounding_mode"},
            )
        )


def _is_positive(exponent: Any) -> bool:
    return isinstance(exponent, int | float) and exponent > 0


def _refusal(call: Call) -> str:
    return (
        f"relevance propagation has no rule for the operation {call.name!r} that this model uses. "
        "A gradient method, or generic-attention, will work."
    )


@contextmanager
def ruling(hf: nn.Module, rules: Rules) -> Iterator[None]:
    """Run the model by these rules. Activation modules, often written out in primitives, are taken whole."""
    mode, here = Ruling(rules), get_ident()  # the mode is this thread's, the hooks are everyone's

    def before(_module: nn.Module, _args: Any) -> None:
        mode.paused += get_ident() == here

    def after(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        if get_ident() != here:
            return None
        try:
            if mode.paused > 1 or not args or not is_variable(args[0]):
                return None
            value = output.detach()
            return mode.rules.activated(
                Call(type(module).__name__, lambda _: value.clone(), (args[0],), {})
            )
        finally:
            mode.paused -= 1

    handles = []
    try:
        for module in hf.modules():
            if type(module).__module__ == "transformers.activations" or (
                ACTIVATION_CLASS.search(type(module).__name__) and not list(module.children())
            ):
                handles += [
                    module.register_forward_pre_hook(before),
                    module.register_forward_hook(after),
                ]
        with mode:
            yield
    finally:
        for handle in handles:
            handle.remove()
