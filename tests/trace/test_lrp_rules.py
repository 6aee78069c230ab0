"""Every rule of relevance propagation, derived once more in loops straight from its formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from whence.core.errors import Unsupported
from whence.trace.lrp.mode import Ruling, ruling
from whence.trace.lrp.rules import AttnLRP, Call, DeepTaylor, Rules, ruled

functional = nn.functional


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def down(rules: Rules, func: Callable[..., Tensor], r: Tensor, *xs: Tensor) -> list[Tensor]:
    """What comes down to each x when r comes down to func(…); the value must be func's own."""
    leaves = [x.clone().requires_grad_() for x in xs]
    with Ruling(rules):
        z = func(*leaves)
    assert torch.equal(z, func(*xs))
    return list(torch.autograd.grad(z, leaves, r))


def relevance(rules: AttnLRP, func: Callable[..., Tensor], r: Tensor, *xs: Tensor) -> list[Tensor]:
    """The same in terms of R for rules in terms of g: R_z = z·g above, R_x = x·g below."""
    return [x * g for x, g in zip(xs, down(rules, func, r / func(*xs), *xs), strict=True)]


X, W, B, R = draw(3, 4), draw(5, 4, seed=1), draw(5, seed=2), draw(3, 5, seed=3)

LINEAR_FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: functional.linear(x, W, B),
    "addmm": lambda x: torch.addmm(B, x, W.T),
    "matmul": lambda x: x @ W.T,
    "matmul from the left": lambda x: (W @ x.T).T,
    "bmm": lambda x: torch.bmm(x[None], W.T[None])[0],
    "conv1d": lambda x: functional.conv1d(x[:, :, None], W[:, :, None], B)[:, :, 0],
}


# ------------------------------------------------------------ AttnLRP, in terms of g


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("form", LINEAR_FORMS)
def test_epsilon_rule(form: str, epsilon: float) -> None:
    func = LINEAR_FORMS[form]
    z = func(X)
    expected = torch.zeros_like(X)
    for t in range(3):
        for i in range(4):
            for j in range(5):
                expected[t, i] += X[t, i] * W[j, i] * R[t, j] / (z[t, j] + epsilon * z[t, j].sign())
    (result,) = relevance(AttnLRP(epsilon=epsilon), func, R, X)
    torch.testing.assert_close(result, expected)
    if epsilon == 0 and form.startswith("matmul"):
        # without a bias nothing is lost
        assert float(result.sum()) == pytest.approx(float(R.sum()))


def test_a_product_of_two_matrices_is_shared_half_and_half() -> None:
    a, v, r = draw(3, 4), draw(4, 5, seed=1), draw(3, 5, seed=2)
    o = a @ v
    to_a, to_v = torch.zeros_like(a), torch.zeros_like(v)
    for j in range(3):
        for i in range(4):
            for p in range(5):
                share = a[j, i] * v[i, p] * r[j, p] / (2 * o[j, p])
                to_a[j, i] += share
                to_v[i, p] += share
    for func in (
        torch.matmul,
        lambda x, y: x @ y,
        lambda x, y: torch.bmm(x[None], y[None])[0],
        lambda x, y: torch.einsum("ji,ip->jp", x, y),
    ):
        result = relevance(AttnLRP(), func, r, a, v)
        torch.testing.assert_close(result, [to_a, to_v])
        # the plain gradient would give twice as much
        assert float(sum(f.sum() for f in result)) == pytest.approx(float(r.sum()))


def test_an_elementwise_product_is_shared_half_and_half() -> None:
    a, b, r = draw(6), draw(6, seed=1), draw(6, seed=2)
    torch.testing.assert_close(relevance(AttnLRP(), lambda x, y: x * y, r, a, b), [r / 2, r / 2])
    (square,) = relevance(AttnLRP(), lambda x: x * x, r, a)
    torch.testing.assert_close(square, r)


def test_softmax_by_taylor() -> None:
    x, r = draw(2, 5), draw(2, 5, seed=1)
    s = x.softmax(-1)
    expected = torch.zeros_like(x)
    for t in range(2):
        for i in range(5):
            expected[t, i] = x[t, i] * (r[t, i] - s[t, i] * r[t].sum())
    for func in (lambda y: functional.softmax(y, -1), lambda y: y.softmax(dim=-1)):
        (result,) = relevance(AttnLRP(), func, r, x)
        torch.testing.assert_close(result, expected)


def test_a_constant_softmax_leaves_all_relevance_with_the_values() -> None:
    scores, values, r = draw(2, 3), draw(3, 4, seed=1), draw(2, 4, seed=2)
    leaves = [t.clone().requires_grad_() for t in (scores, values)]
    with Ruling(AttnLRP("constant")):
        out = leaves[0].softmax(-1) @ leaves[1]
    to_scores, to_values = torch.autograd.grad(out, leaves, r / out.detach(), allow_unused=True)
    assert to_scores is None
    # would catch: halving a product with a constant
    assert float((values * to_values).sum()) == pytest.approx(float(r.sum()))


def test_layer_norm_holds_its_normaliser_constant() -> None:
    x, gamma, beta, g = draw(2, 6), draw(6, seed=1), draw(6, seed=2), draw(2, 6, seed=3)
    sigma = (x.var(-1, correction=0) + 1e-5).sqrt()
    expected = torch.zeros_like(x)
    for t in range(2):
        for i in range(6):
            for j in range(6):  # y_j = γ_j (x_j − mean x)/σ + β_j
                expected[t, i] += g[t, j] * gamma[j] / sigma[t] * ((i == j) - 1 / 6)
    (result,) = down(AttnLRP(), lambda y: functional.layer_norm(y, (6,), gamma, beta, 1e-5), g, x)
    torch.testing.assert_close(result, expected)
    leaf = x.clone().requires_grad_()
    (plain,) = torch.autograd.grad(functional.layer_norm(leaf, (6,), gamma, beta, 1e-5), [leaf], g)
    assert float((plain - result).abs().max()) > 0.1
    # the true gradient hands nothing down: a norm forgets its input's scale
    assert float((x * plain).sum()) == pytest.approx(0, abs=1e-4)


def test_an_rms_norm_written_in_primitives_is_the_fused_one() -> None:
    x, gamma, r = draw(2, 6), draw(6, seed=1), draw(2, 6, seed=2)

    def llama(y: Tensor) -> Tensor:
        return gamma * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6))

    def divided(y: Tensor) -> Tensor:
        return gamma * (y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-6))

    def power(y: Tensor) -> Tensor:
        return gamma * (y * torch.pow(y.square().mean(-1, keepdim=True) + 1e-6, -0.5))

    for func in (llama, divided, power, lambda y: functional.rms_norm(y, (6,), gamma, 1e-6)):
        (result,) = relevance(AttnLRP(), func, r, x)
        torch.testing.assert_close(result, r)  # the identity rule: R_x = R_z


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
    "mish": functional.mish,
    "square": torch.square,
    "cube": lambda x: x**3,
    "silu by hand": lambda x: x * torch.sigmoid(x),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_nonlinearity_hands_relevance_on(name: str) -> None:
    x, r = draw(7), draw(7, seed=1)
    (result,) = relevance(AttnLRP(), ACTIVATIONS[name], r, x)
    torch.testing.assert_close(result, r)


def test_relu_hands_on_what_it_let_through() -> None:
    x, g = torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([5.0, 5.0, 5.0])
    assert down(AttnLRP(), functional.relu, g, x)[0].tolist() == [0.0, 0.0, 5.0]
    assert down(AttnLRP(), functional.gelu, g, torch.zeros(3))[0].tolist() == [0.0] * 3  # 0/0 is 0


@pytest.mark.parametrize(
    "name",
    [
        "gelu",
        "gelu_new",
        "gelu_fast",
        "quick_gelu",
        "gelu_python",
        "gelu_pytorch_tanh",
        "relu2",
        "silu",
        "mish",
    ],
)
def test_activation_modules_are_taken_whole(name: str) -> None:
    # would catch: x·(1 + tanh …) seen as a product of two variables, half of whose relevance goes
    # through tanh
    net = nn.Sequential(ACT2FN[name])
    x, r = draw(7).abs() + 0.1, draw(7, seed=1)
    leaf = x.clone().requires_grad_()
    with ruling(net, AttnLRP()):
        z = net(leaf)
    assert torch.equal(z, net(x))
    (g,) = torch.autograd.grad(z, [leaf], r / z.detach())
    torch.testing.assert_close(x * g, r)
    assert not net[0]._forward_hooks
    assert not net[0]._forward_pre_hooks


def test_a_relu_network_by_hand() -> None:
    # two inputs, two hidden, one output, no bias: f = 3·relu(1·2 − 1·1) + 1·relu(2·2 + 1·1) = 3 + 5
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, -1.0], [2.0, 1.0]]))
        net[2].weight.copy_(torch.tensor([[3.0, 1.0]]))
    net.requires_grad_(False)
    leaf = torch.tensor([2.0, 1.0], requires_grad=True)
    with ruling(net, AttnLRP()):
        (g,) = torch.autograd.grad(net(leaf), [leaf])
    # hidden one has relevance 3, split 2 : −1; hidden two has 5, split 4 : 1
    assert (leaf * g).tolist() == [6.0 + 4.0, -3.0 + 1.0]


# ------------------------------------------------------------ Deep Taylor, in terms of R


@pytest.mark.parametrize("form", LINEAR_FORMS)
def test_alpha_one_beta_zero(form: str) -> None:
    expected = torch.zeros_like(X)
    for t in range(3):
        for j in range(5):
            agree = (X[t] * W[j]).clamp(min=0)  # x⁺w⁺ + x⁻w⁻
            for i in range(4):
                if agree.sum() > 0:
                    expected[t, i] += agree[i] / agree.sum() * R[t, j]
    (result,) = down(DeepTaylor(), LINEAR_FORMS[form], R, X)
    torch.testing.assert_close(result, expected, atol=1e-7, rtol=1e-7)
    # would catch: a bias in the denominator, which takes its share
    assert float(result.sum()) == pytest.approx(float(R.sum()))


def test_experts_in_one_product_are_experts_apart() -> None:
    x, w, r = draw(7, 16).float(), draw(2, 16, 12, seed=1).float(), draw(7, 12, seed=2).float()
    first_of_second = torch.tensor([3, 7], dtype=torch.int32)
    (together,) = down(DeepTaylor(), lambda y: torch._grouped_mm(y, w, offs=first_of_second), r, x)
    (apart,) = down(DeepTaylor(), lambda y: torch.cat([y[:3] @ w[0], y[3:] @ w[1]]), r, x)
    torch.testing.assert_close(together, apart)


def test_a_positive_net_shares_in_proportion() -> None:
    x, w, r = draw(4).abs(), draw(5, 4, seed=1).abs(), draw(5, seed=2)
    (result,) = down(DeepTaylor(), lambda y: functional.linear(y, w), r, x)
    expected = torch.stack([(x[i] * w[:, i] / (w @ x) * r).sum() for i in range(4)])
    torch.testing.assert_close(result, expected, atol=1e-8, rtol=1e-8)


def test_both_factors_of_a_matrix_product_get_half() -> None:
    a, v, r = draw(3, 4), draw(4, 5, seed=1), draw(3, 5, seed=2)
    z = a @ v
    to_a, to_v = torch.zeros_like(a), torch.zeros_like(v)
    for j in range(3):
        for i in range(4):
            for p in range(5):
                to_a[j, i] += a[j, i] * v[i, p] * r[j, p] / z[j, p] / 2
                to_v[i, p] += a[j, i] * v[i, p] * r[j, p] / z[j, p] / 2
    result = down(DeepTaylor(), torch.matmul, r, a, v)
    torch.testing.assert_close(result, [to_a, to_v], atol=1e-6, rtol=1e-6)
    assert float(sum(f.sum() for f in result)) == pytest.approx(float(r.sum()), rel=1e-6)


def by_shares(x: Tensor, y: Tensor, r: Tensor) -> list[Tensor]:
    a, b = x * r / (x + y), y * r / (x + y)
    total_a, total_b = float(a.sum()), float(b.sum())
    whole = abs(total_a) + abs(total_b)
    return [
        a * (abs(total_a) / whole * float(r.sum()) / total_a),
        b * (abs(total_b) / whole * float(r.sum()) / total_b),
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_residual_sum_is_shared_by_the_sums_of_its_parts(sign: int) -> None:
    x, y, r = draw(6), draw(6, seed=1), draw(6, seed=2)
    result = down(DeepTaylor(), lambda p, q: p + q if sign > 0 else p - q, r, x, y)
    torch.testing.assert_close(result, by_shares(x, sign * y, r), atol=1e-6, rtol=1e-6)
    assert float(result[0].sum() + result[1].sum()) == pytest.approx(float(r.sum()), rel=1e-6)
    unscaled = x * r / (x + sign * y)
    assert float((result[0] - unscaled).abs().max()) > 0.01


def test_a_sum_in_place_is_the_sum() -> None:
    x, y, r = draw(6), draw(6, seed=1), draw(6, seed=2)

    def in_place(p: Tensor, q: Tensor) -> Tensor:
        z = p * 1.0
        z += q
        return z

    torch.testing.assert_close(
        down(DeepTaylor(), in_place, r, x, y), by_shares(x, y, r), atol=1e-6, rtol=1e-6
    )


PASSES: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "layer norm": lambda x: functional.layer_norm(x, (4,), W[0], W[1]),
    "rms norm": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    "gelu": functional.gelu,
    "tanh": torch.tanh,
    "scale": lambda x: -(x * 0.125) / 3,
    "a constant added": lambda x: 2 - (x + W[:3]),
    "a cast": lambda x: x.float().double(),
}


@pytest.mark.parametrize("name", PASSES)
def test_what_passes_relevance_unchanged(name: str) -> None:
    r = draw(3, 4, seed=5)
    (result,) = down(DeepTaylor(), PASSES[name], r, X)
    torch.testing.assert_close(result, r, rtol=1e-6, atol=1e-6)


def test_a_mean_shares_in_proportion_and_a_copy_adds_up() -> None:
    r = draw(4, seed=5)
    (result,) = down(DeepTaylor(), lambda x: x.mean(0), r, X)
    torch.testing.assert_close(result, X / X.sum(0) * r, atol=1e-6, rtol=1e-6)
    (copied,) = down(
        DeepTaylor(), lambda x: x[:, None].expand(3, 2, 4).reshape(6, 4), draw(6, 4, seed=6), X
    )
    torch.testing.assert_close(copied, draw(6, 4, seed=6).reshape(3, 2, 4).sum(1))


# ------------------------------------------------------------ both


@pytest.mark.parametrize("rules", [AttnLRP(), DeepTaylor()], ids=["attn-lrp", "deep-taylor"])
def test_an_operation_without_a_rule_is_refused_by_name(rules: Any) -> None:
    leaf = draw(3).requires_grad_()
    cases: dict[Callable[[Tensor], Tensor], str] = {
        torch.exp: "exp",
        lambda x: torch.cumprod(x, 0): "cumprod",
        lambda x: functional.log_softmax(x, dim=0): "log_softmax",
        torch.Tensor.exp_: "exp",
        lambda x: nn.init.kaiming_uniform_(tensor=x[None]): "kaiming_uniform_",
    }
    for func, name in cases.items():
        with Ruling(rules), pytest.raises(Unsupported, match=f"'{name}'"):
            func(leaf * 1.0)
    with Ruling(rules):  # nothing flows through these
        assert leaf.argmax() >= 0
        assert bool((leaf > -9).all())
        assert leaf.numel() == 3


@pytest.mark.parametrize("same", [lambda x: x, lambda x: x[:]], ids=["as given", "a view"])
def test_what_comes_out_of_a_rule_may_be_changed_in_place(same: Callable[[Tensor], Tensor]) -> None:
    leaf = draw(3).requires_grad_()
    call = Call("same", same, (leaf * 1.0,), {})
    out = ruled(call, lambda down, _: (down,))
    out += 1  # the wrong version gives out the input itself, which torch forbids to change
    (result,) = torch.autograd.grad(out.sum(), [leaf])
    torch.testing.assert_close(result, torch.ones_like(leaf))


def test_a_change_in_place_behind_a_rule_is_noticed() -> None:
    leaf = draw(3).requires_grad_()
    with Ruling(DeepTaylor()):
        x = leaf * 1.0
        z = x * leaf  # keeps x
    x.data.add_(0)  # out of autograd's sight, so allowed
    with torch.no_grad():
        x.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(z.sum(), [leaf])


def test_relevance_of_a_gated_layer_is_conserved() -> None:
    # wide enough that every output has an input that agrees with it; where none does, α=1 β=0 has
    # nobody to give its relevance to
    x, gate, up, out = draw(3, 16), draw(20, 16, seed=1), draw(20, 16, seed=2), draw(16, 20, seed=3)

    def layer(x: Tensor) -> Tensor:
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True))
        hidden = functional.silu(functional.linear(y, gate)) * functional.linear(y, up)
        return x + functional.linear(hidden, out)

    r = draw(3, 16, seed=6)
    assert float(relevance(AttnLRP(), layer, r, x)[0].sum()) == pytest.approx(float(r.sum()))
    assert float(down(DeepTaylor(), layer, r, x)[0].sum()) == pytest.approx(
        float(r.sum()), rel=1e-5
    )
    leaf = x.clone().requires_grad_()
    (plain,) = torch.autograd.grad(layer(leaf), [leaf], r / layer(x))
    assert abs(float((x * plain).sum()) - float(r.sum())) > 0.1


def test_alpha_one_beta_zero_has_nobody_to_give_to_where_no_input_agrees() -> None:
    (result,) = down(
        DeepTaylor(),
        lambda x: functional.linear(x, -torch.ones(1, 3)),
        torch.ones(1),
        torch.ones(3),
    )
    assert result.tolist() == [0.0, 0.0, 0.0]
