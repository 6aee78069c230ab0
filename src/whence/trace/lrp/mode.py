"""Rules in place of gradients while a model runs: a torch function mode that knows operations.

Every torch function that the model calls passes here, whatever the model's family. What only
rearranges entries keeps its gradient; what computes goes to the rule of its kind; what has no kind
is refused by name, as its plain gradient would silently break the sum of relevance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from whence.core.errors import Unsupported
from whence.models.modes import Mode, met_by
from whence.models.unbroken import each, in_one_piece, put_back
from whence.trace.lrp.rules import Call, Rules, is_variable


def _names(listing: str) -> frozenset[str]:
    """The names of torch functions in a listing."""
    return frozenset(listing.split())


# Entries are moved, chosen, repeated or cast: the gradient moves, drops, adds up or casts what
# comes down, and so does relevance.
REARRANGES = _names("""
    __get__ __getitem__ __setitem__ copy_ requires_grad_ detach clone contiguous register_hook
    view view_as reshape flatten unflatten squeeze unsqueeze expand expand_as broadcast_to
    transpose permute swapaxes swapdims movedim moveaxis t unfold
    split tensor_split split_with_sizes chunk unbind narrow select cat concat concatenate stack
    repeat repeat_interleave tile roll flip pad tril triu masked_fill where
    gather index_select take_along_dim masked_select topk sort scatter max min amax amin
    to type type_as float double half bfloat16 dropout
    """)
# linear in each of two tensors
BILINEAR = _names("linear matmul bmm mm einsum conv1d conv2d grouped_mm _grouped_mm")
# the product of the second and the third argument, added to the first
WITH_SUMMAND = frozenset({"addmm", "baddbmm"})
MULTIPLIES = frozenset({"mul", "multiply"})
DIVIDES = frozenset({"div", "true_divide", "divide"})
ADDS = frozenset({"add", "sub", "__rsub__", "rsub", "subtract"})
POOLS = frozenset({"sum", "mean", "nanmean", "avg_pool1d", "adaptive_avg_pool1d", "cumsum"})
NORMS = frozenset({"layer_norm", "rms_norm"})
ACTIVATES = _names("""
    gelu silu relu tanh relu6 leaky_relu elu selu celu mish hardswish softsign erf
    square clamp clamp_min clamp_max clip hardtanh abs sin tanhshrink softshrink
    """)
# A normaliser or a gate: f(0) is not 0, so f(x)/x has a pole, and R stays with what is multiplied
# by it. For x·σ(x) that is the same as the rule for SiLU.
CONSTANT = _names("rsqrt sqrt var std norm vector_norm reciprocal sigmoid __rdiv__ __rtruediv__")
ACTIVATION_CLASS = re.compile(r"(gelu|silu|swish|mish|activation)$", re.IGNORECASE)


class Ruling(Mode):
    """Sends every operation on a variable to its rule."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.paused = 0  # inside an activation module, whose parts are not to be ruled one by one

    def meet(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function by its rule."""
        name = getattr(func, "__name__", str(func))
        call = Call(name, func, args, kwargs)
        if self.paused or name in REARRANGES:
            return call()
        if not torch.is_grad_enabled() or not call.variables:
            return call()
        if name.endswith("_") and not name.startswith("_"):
            return self._in_place(call)
        return self._ruled(call)

    def _in_place(self, call: Call) -> Any:
        """The rule of the same operation on a copy, then written where it was meant to go."""
        name = call.name[:-1]
        if not call.args or not hasattr(Tensor, name):
            raise Unsupported(_refusal(call))
        target = call.args[0]
        copy = Call(name, getattr(Tensor, name), (target.clone(), *call.args[1:]), call.kwargs)
        return target.copy_(self._ruled(copy))

    def _ruled(self, call: Call) -> Any:
        """The call by the rule of its kind."""
        rules, name = self.rules, call.name
        is_only_variable = len(call.variables) == 1
        if name in BILINEAR or (name in WITH_SUMMAND and not is_variable(call.args[0])):
            return rules.linear(call) if is_only_variable else rules.product(call)
        if name in MULTIPLIES:
            return rules.scaled(call) if is_only_variable else rules.product(call)
        if name in DIVIDES:
            return self._divided(call)
        if name in ADDS:
            return rules.added(call)
        if name == "neg":
            return rules.scaled(call)
        if name in POOLS:
            return rules.pooled(call)
        if name == "softmax":
            return rules.weighed(call)
        if name in NORMS and is_only_variable:
            return rules.normed(call)
        if _is_activation(call) and is_only_variable:
            call.kwargs.pop("inplace", None)
            return rules.activated(call)
        return self._without_rule(call)

    def _without_rule(self, call: Call) -> Any:
        """A constant for the rules, or nothing that flows; anything else is refused."""
        value = call()
        if call.name in CONSTANT or call.name == "pow":
            return value.detach()
        parts = value if isinstance(value, list | tuple) else (value,)
        if any(is_variable(part) for part in parts):
            raise Unsupported(_refusal(call))
        return value  # a size, a comparison, a choice of places: nothing flows through it

    def _divided(self, call: Call) -> Tensor:
        """The divisor is a normaliser, and constant."""
        above, below = call.at(0, "input"), call.at(1, "other")
        if not is_variable(above):
            return call().detach()
        if isinstance(below, Tensor):
            below = below.detach()
        named = {n: a for n, a in call.kwargs.items() if n == "rounding_mode"}
        return self.rules.scaled(Call("div", torch.div, (above, below), named))


def _is_activation(call: Call) -> bool:
    if call.name == "pow":
        return _is_positive(call.at(1, "exponent"))
    return call.name in ACTIVATES


def _is_positive(exponent: Any) -> bool:
    return isinstance(exponent, int | float) and exponent > 0


def _refusal(call: Call) -> str:
    return (
        f"relevance propagation has no rule for the operation {call.name!r} that this model uses. "
        "A gradient method, or generic-attention, will work."
    )


@in_one_piece
def ruling(hf: nn.Module, rules: Rules) -> Iterator[None]:
    """Run the model by these rules.

    Activation modules, often written out in primitives, are taken whole.
    """
    mode = Ruling(rules)
    here = get_ident()  # the mode is this thread's, the hooks are everyone's

    def before(_module: nn.Module, _args: Any) -> None:
        mode.paused += get_ident() == here

    def after(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        if get_ident() != here:
            return None
        try:
            is_inside_another = mode.paused > 1
            if is_inside_another or not args or not is_variable(args[0]):
                return None
            value = output.detach()
            name = type(module).__name__
            return mode.rules.activated(Call(name, lambda _: value.clone(), (args[0],), {}))
        finally:
            mode.paused -= 1

    handles: list[RemovableHandle] = []
    with put_back(lambda: each(RemovableHandle.remove, handles)):
        for module in hf.modules():
            if _is_activation_module(module):
                handles.append(module.register_forward_pre_hook(before))
                handles.append(module.register_forward_hook(after))
        with met_by(mode):
            yield


def _is_activation_module(module: nn.Module) -> bool:
    kind = type(module)
    if kind.__module__ == "transformers.activations":
        return True
    return bool(ACTIVATION_CLASS.search(kind.__name__)) and not list(module.children())
