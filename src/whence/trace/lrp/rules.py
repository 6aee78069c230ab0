"""The rules of relevance propagation, one for each kind of operation. None changes a value.

Two calculi share the kinds. In ``AttnLRP`` the backward pass carries g, and the relevance of an
entry is R = x·g ("gradient times input with other gradients"): what is linear needs no rule at all.
In ``DeepTaylor`` the backward pass carries R itself, so every operation that is more than a
rearrangement needs one. A variable is a tensor that depends on the input; all else is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.once import once

Softmax = Literal["taylor", "constant"]
# Of what comes down to the output, and of the variables: what goes down to each variable.
Rule = Callable[..., Sequence[Tensor]]
GUARD = 1e-9  # of a division, as in the code of Chefer et al.


@dataclass(frozen=True)
class Call:
    """One torch function as the model called it. Called again, it may be given other variables."""

    name: str
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @once
    def variables(self) -> list[Tensor]:
        """The tensors among the arguments that depend on the input, in order."""
        variables = []
        for given in (*self.args, *self.kwargs.values()):
            parts = given if isinstance(given, list | tuple) else (given,)
            variables += [part for part in parts if is_variable(part)]
        return variables

    def __call__(self, *others: Tensor) -> Any:
        """The value; ``others`` take the places of the variables."""
        if not others:
            return self.func(*self.args, **self.kwargs)
        rest = iter(others)
        args = [_swapped(argument, rest) for argument in self.args]
        kwargs = {name: _swapped(argument, rest) for name, argument in self.kwargs.items()}
        return self.func(*args, **kwargs)

    def at(self, place: int, name: str, default: Any = None) -> Any:
        """An argument, by place or by name."""
        if place < len(self.args):
            return self.args[place]
        return self.kwargs.get(name, default)


def is_variable(thing: Any) -> bool:
    """Whether it is a tensor that depends on the input."""
    return isinstance(thing, Tensor) and thing.requires_grad


def _swapped(given: Any, rest: Iterator[Tensor]) -> Any:
    """The argument, with the next of ``rest`` in place of each variable."""
    if is_variable(given):
        return next(rest)
    if isinstance(given, list | tuple) and any(map(is_variable, given)):
        return type(given)(_swapped(part, rest) for part in given)
    return given


class _Ruled(torch.autograd.Function):
    """A call with its own value, and a rule for its backward pass.

    Saving the variables lets autograd notice a change in place.
    """

    @staticmethod
    def forward(ctx: Any, call: Call, rule: Rule, *variables: Tensor) -> Tensor:
        ctx.rule = rule
        ctx.save_for_backward(*variables)
        value = call(*variables)
        # neither a view nor what was given would let the model go on to change it in place
        is_alias = value._is_view() or any(value is variable for variable in variables)
        return value.clone() if is_alias else value

    @staticmethod
    def backward(ctx: Any, *down: Tensor) -> Any:
        return None, None, *ctx.rule(down[0], *ctx.saved_tensors)


def ruled(call: Call, rule: Rule) -> Tensor:
    """The value of ``call``, behind which ``rule`` takes the place of the gradient."""
    return _Ruled.apply(call, rule, *call.variables)  # pyright: ignore[reportReturnType]


@runtime_checkable
class Rules(Protocol):
    """What a calculus says about each kind of operation."""

    def linear(self, call: Call) -> Tensor:
        """z = w·x + b, with w and b constant."""
        ...

    def product(self, call: Call) -> Tensor:
        """z = X·Y or z = X ⊙ Y, both variable."""
        ...

    def added(self, call: Call) -> Tensor:
        """z = x ± y, one of them or both variable."""
        ...

    def scaled(self, call: Call) -> Tensor:
        """z = c ⊙ x, with c constant."""
        ...

    def pooled(self, call: Call) -> Tensor:
        """z = a sum or mean of x."""
        ...

    def weighed(self, call: Call) -> Tensor:
        """z = softmax(x)."""
        ...

    def normed(self, call: Call) -> Tensor:
        """z = (x − μ)/σ ⊙ γ + β, or x/rms ⊙ γ."""
        ...

    def activated(self, call: Call) -> Tensor:
        """z = f(x), entry by entry, with f(0) = 0."""
        ...


@dataclass(frozen=True)
class AttnLRP:
    """The rules of Achtibat et al. (2024) in terms of g, where R = x·g.

    ``softmax="constant"`` is that of Ali et al. (2022).
    """

    softmax: Softmax = "taylor"
    epsilon: float = 0.0

    def linear(self, call: Call) -> Tensor:
        """R_i = Σ_j x_i w_ji R_j/(z_j + ε sign z_j), and R_j = z_j g_j.

        So it is the gradient, damped by |z|/(|z| + ε).
        """
        z = call()
        if self.epsilon:
            size = z.detach().abs()
            weaken(z, size / (size + self.epsilon))
        return z

    added = pooled = linear

    def scaled(self, call: Call) -> Tensor:
        """R_x = x·c·g = z·g = R_z: the gradient as it is."""
        return call()

    def product(self, call: Call) -> Tensor:
        """R_X = ½ X ⊙ ∂z/∂X·g, R_Y likewise: each factor alone would get all of R_z."""
        return weaken(self.linear(call), 0.5)

    def weighed(self, call: Call) -> Tensor:
        """Taylor: R_i = x_i (R_i − s_i Σ_j R_j), the gradient as it is.

        Constant: the pattern is given, and R stays with the values.
        """
        if self.softmax == "taylor":
            return call()
        return call().detach()

    def normed(self, call: Call) -> Tensor:
        """The normaliser σ is held constant; γ and the centring are linear."""
        dims = tuple(range(-len(call.at(1, "normalized_shape")), 0))
        gamma = call.at(2, "weight")

        def scaled(g: Tensor, square: Tensor, eps: float) -> Tensor:
            """g ⊙ γ/σ."""
            return (g if gamma is None else g * gamma) * torch.rsqrt(square + eps)

        def layer_norm(g: Tensor, x: Tensor) -> Sequence[Tensor]:
            square = x.var(dims, correction=0, keepdim=True)
            h = scaled(g, square, _epsilon(call.at(4, "eps"), x))
            return [h - h.mean(dims, keepdim=True)]

        def rms_norm(g: Tensor, x: Tensor) -> Sequence[Tensor]:
            square = x.square().mean(dims, keepdim=True)
            return [scaled(g, square, _epsilon(call.at(3, "eps"), x))]

        return ruled(call, layer_norm if call.name == "layer_norm" else rms_norm)

    def activated(self, call: Call) -> Tensor:
        """R_x = R_z, so g·f(x)/x takes the place of g·f′(x)."""

        def rule(g: Tensor, x: Tensor) -> Sequence[Tensor]:
            ratio = call(x) / torch.where(x == 0, 1, x)
            return [g * torch.where(x == 0, 0, ratio)]

        return ruled(call, rule)


def _epsilon(given: float | None, x: Tensor) -> float:
    """What a norm adds under the root; torch's own default where the call gives none."""
    return torch.finfo(x.dtype).eps if given is None else given


def weaken(z: Tensor, factor: Tensor | float) -> Tensor:
    """The same tensor, whose gradient will come down multiplied."""
    z.register_hook(lambda g: g * factor)
    return z


@dataclass(frozen=True)
class DeepTaylor:
    """The rules of Chefer, Gur and Wolf (CVPR 2021) in terms of R itself.

    A constant summand gets nothing, as a bias gets nothing.
    """

    def linear(self, call: Call) -> Tensor:
        """α=1, β=0: R_x = x⁺(w⁺ᵀc) + x⁻(w⁻ᵀc), with c = R/(x⁺w⁺ + x⁻w⁻)."""
        apply, weight = bilinear(call)

        def rule(r: Tensor, x: Tensor) -> Sequence[Tensor]:
            w_plus, w_minus = weight.clamp(min=0), weight.clamp(max=0)
            x_plus, x_minus = x.clamp(min=0), x.clamp(max=0)

            def z(plus: Tensor, minus: Tensor) -> Tensor:
                return apply(plus, w_plus) + apply(minus, w_minus)

            from_plus, from_minus = shares(z, r, x_plus, x_minus)
            return [from_plus + from_minus]

        return ruled(call, rule)

    def product(self, call: Call) -> Tensor:
        """R_X = ½ X ⊙ ∂z/∂X·(R/z), R_Y likewise."""

        def rule(r: Tensor, *xs: Tensor) -> Sequence[Tensor]:
            return [part / 2 for part in shares(call, r, *xs)]

        return ruled(call, rule)

    def added(self, call: Call) -> Tensor:
        """a = x·R/z and b = y·R/z, then scaled to shares |Σa| and |Σb| of ΣR.

        So two large parts of opposite sign cannot blow up.
        """
        if len(call.variables) == 1:
            return self.scaled(call)

        def rule(r: Tensor, *xs: Tensor) -> Sequence[Tensor]:
            parts = shares(call, r, *xs)
            sums = torch.stack([p.sum() for p in parts])
            # a·|Σa|/(|Σa| + |Σb|)·ΣR/Σa, without dividing by Σa, which may be small
            factor = over(r.sum(), sums.abs().sum(), guard=0.0) * sums.sign()
            return [p * f for p, f in zip(parts, factor, strict=True)]

        return ruled(call, rule)

    def pooled(self, call: Call) -> Tensor:
        """R_x = x ⊙ ∂z/∂x·(R/z)."""
        return ruled(call, lambda r, *xs: shares(call, r, *xs))

    def scaled(self, call: Call) -> Tensor:
        """R_x = R_z; where x was broadcast, the sum over its copies."""
        return ruled(call, lambda r, x: [r.sum_to_size(x.shape)])

    weighed = normed = activated = scaled


def shares(func: Callable[..., Tensor], r: Tensor, *xs: Tensor) -> list[Tensor]:
    """x ⊙ ∂z/∂x·(R/z) for each x, where z = func(…)."""
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in xs]
        z = func(*leaves)
    slopes = torch.autograd.grad(z, leaves, over(r, z.detach()))
    return [x * slope for x, slope in zip(xs, slopes, strict=True)]


def over(a: Tensor, b: Tensor, guard: float = GUARD) -> Tensor:
    """a/b, guarded away from zero on b's own side, and 0 where b is 0."""
    guarded = torch.where(b == 0, 1, b + guard * b.sign())
    return torch.where(b == 0, 0, a / guarded)


def bilinear(call: Call) -> tuple[Callable[[Tensor, Tensor], Tensor], Tensor]:
    """A linear call without its bias, as a function of (x, w), and its w."""
    if call.name == "linear":
        return torch.nn.functional.linear, call.at(1, "weight")

    if call.name in ("matmul", "mm", "bmm"):
        first = call.at(0, "input")
        second = call.at(1, "other" if call.name == "matmul" else "mat2")
        if is_variable(first):
            return call.func, second
        return (lambda x, w: call.func(w, x)), first

    factors = ("input", "weight", "bias", "mat2")
    named = {name: argument for name, argument in call.kwargs.items() if name not in factors}
    if call.name in ("conv1d", "conv2d"):
        return (lambda x, w: call.func(x, w, None, *call.args[3:], **named)), call.at(1, "weight")

    if call.name in ("grouped_mm", "_grouped_mm") and is_variable(call.at(0, "input")):
        return (lambda x, w: call.func(x, w, *call.args[2:], **named)), call.at(1, "mat2")

    if call.name == "addmm" and not {"alpha", "beta"} & set(call.kwargs):
        return torch.mm, call.at(2, "mat2")
    raise Unsupported(
        f"relevance propagation has no rule for the operation {call.name!r} with constant weights."
    )
