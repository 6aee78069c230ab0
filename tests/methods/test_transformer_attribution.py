"""Transformer attribution, against a second implementation in numpy, and its layers multiplied by
hand.
"""

from __future__ import annotations

from dataclasses import replace
from math import erf

import numpy as np
import pytest
import torch

import whence
from tests.families import build, inputs, precise
from whence.core.errors import SettingsError, Unsupported
from whence.core.registry import Needs
from whence.methods.transformer_attribution import TransformerAttribution, rolled_out, weighted
from whence.models.model import Model
from whence.trace.lrp import rules
from whence.trace.lrp.run import map_relevance
from whence.trace.relevance import positive_mean
from whence.trace.trace import Trace, trace

Array = np.ndarray


def linear(x: Array, w: Array, r: Array) -> Array:
    """α=1, β=0, the bias left out: each output's relevance goes to the inputs that agree with it,
    in proportion.
    """
    out = np.zeros_like(x)
    for t in range(len(x)):
        for j in range(len(w)):
            agree = np.maximum(x[t] * w[j], 0)
            if agree.sum() > 0:
                out[t] += agree / agree.sum() * r[t, j]
    return out


def product(a: Array, b: Array, r: Array) -> tuple[Array, Array]:
    """X ⊙ grad(R/Z), both factors halved."""
    z, to_a, to_b = a @ b, np.zeros_like(a), np.zeros_like(b)
    for j in range(a.shape[0]):
        for i in range(a.shape[1]):
            for p in range(b.shape[1]):
                to_a[j, i] += a[j, i] * b[i, p] * r[j, p] / z[j, p] / 2
                to_b[i, p] += a[j, i] * b[i, p] * r[j, p] / z[j, p] / 2
    return to_a, to_b


def added(x: Array, y: Array, r: Array) -> tuple[Array, Array]:
    a, b = x * r / (x + y), y * r / (x + y)
    whole = abs(a.sum()) + abs(b.sum())
    return a * abs(a.sum()) / whole * r.sum() / a.sum(), b * abs(
        b.sum()
    ) / whole * r.sum() / b.sum()


def norm(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


class Layer:
    """One layer of BERT: forward, and relevance down. Norms, softmax and GELU hand relevance on."""

    def __init__(self, p: dict[str, Array], index: int, heads: int, eps: float) -> None:
        self.p, self.name, self.heads, self.eps = p, f"bert.encoder.layer.{index}.", heads, eps

    def dense(self, x: Array, where: str) -> Array:
        return x @ self.p[f"{self.name}{where}.weight"].T + self.p[f"{self.name}{where}.bias"]

    def normed(self, x: Array, where: str) -> Array:
        return norm(
            x,
            self.p[f"{self.name}{where}.LayerNorm.weight"],
            self.p[f"{self.name}{where}.LayerNorm.bias"],
            self.eps,
        )

    def forward(self, x: Array) -> Array:
        self.x, d = x, x.shape[1] // self.heads
        self.q, self.k, self.v = (
            self.dense(x, f"attention.self.{w}").reshape(len(x), self.heads, d).swapaxes(0, 1)
            for w in ("query", "key", "value")
        )
        scores = np.exp(self.q @ self.k.swapaxes(1, 2) / np.sqrt(d))
        self.a = scores / scores.sum(-1, keepdims=True)
        self.joined = (self.a @ self.v).swapaxes(0, 1).reshape(len(x), -1)
        self.attended = self.dense(self.joined, "attention.output.dense")
        self.middle = self.normed(x + self.attended, "attention.output")
        before = self.dense(self.middle, "intermediate.dense")
        self.inner = before * 0.5 * (1 + np.vectorize(erf)(before / np.sqrt(2)))
        self.fed = self.dense(self.inner, "output.dense")
        return self.normed(self.middle + self.fed, "output")

    def down(self, r: Array) -> tuple[Array, Array]:
        """Relevance of the layer's input, and of its attention."""
        weight = {
            w: self.p[f"{self.name}{w}.weight"]
            for w in ("intermediate.dense", "output.dense", "attention.output.dense")
        }
        to_middle, to_fed = added(self.middle, self.fed, r)
        to_middle = to_middle + linear(
            self.middle,
            weight["intermediate.dense"],
            linear(self.inner, weight["output.dense"], to_fed),
        )
        to_x, to_attended = added(self.x, self.attended, to_middle)
        to_joined = (
            linear(self.joined, weight["attention.output.dense"], to_attended)
            .reshape(len(r), self.heads, -1)
            .swapaxes(0, 1)
        )
        to_a = np.zeros_like(self.a)
        parts = {w: np.zeros_like(self.q) for w in ("query", "key", "value")}
        for h in range(self.heads):
            to_a[h], parts["value"][h] = product(self.a[h], self.v[h], to_joined[h])
            parts["query"][h], to_key = product(self.q[h], self.k[h].T, to_a[h])
            parts["key"][h] = to_key.T
        for w, part in parts.items():
            to_x = to_x + linear(
                self.x,
                self.p[f"{self.name}attention.self.{w}.weight"],
                part.swapaxes(0, 1).reshape(len(r), -1),
            )
        return to_x, to_a


def bert_relevance(t: Trace) -> list[Array]:
    """R^A of each layer of the BERT classifier, from one at the target's logit."""
    model, passage = t.model, t.passages[0]
    p = {n: x.detach().double().numpy() for n, x in model.hf.named_parameters()}
    table = "bert.embeddings."
    x = (
        p[f"{table}word_embeddings.weight"][passage.ids]
        + p[f"{table}position_embeddings.weight"][: len(passage)]
    )
    x = x + p[f"{table}token_type_embeddings.weight"][0]
    eps = model.config.layer_norm_eps
    x = norm(x, p[f"{table}LayerNorm.weight"], p[f"{table}LayerNorm.bias"], eps)
    layers = [Layer(p, i, 4, eps) for i in range(2)]
    for layer in layers:
        x = layer.forward(x)
    pooled = np.tanh(x[:1] @ p["bert.pooler.dense.weight"].T + p["bert.pooler.dense.bias"])
    logits = pooled @ p["classifier.weight"].T + p["classifier.bias"]
    np.testing.assert_allclose(logits, t.logits.numpy(), rtol=1e-8)
    start = np.zeros_like(logits)
    start[0, t.targets[0].index] = 1
    r = np.zeros_like(x)
    r[:1] = linear(
        x[:1], p["bert.pooler.dense.weight"], linear(pooled, p["classifier.weight"], start)
    )
    found = []
    for layer in reversed(layers):
        r, attention = layer.down(r)
        found.append(attention)
    return found[::-1]


def noisy_bert() -> Model:
    """With biases that are not zero, as a bias must get no relevance."""
    model, _ = precise("bert")
    with torch.no_grad():
        for name, parameter in model.hf.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(len(name)))
    return model


def test_relevance_of_berts_attention_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    # would catch: a bias in the denominator, a residual split without its rescaling, a factor not
    # halved, softmax by its slope
    model = noisy_bert()
    # the loops have no guard, and at 1e-9 it shows where a denominator is small: 2e-5 of the
    # largest entry
    guarded = rules.over
    monkeypatch.setattr(rules, "over", lambda a, b, guard=1e-15: guarded(a, b, guard))
    t = trace(model, [model.encode("not bad prices")], needs=Needs.ATTENTION_GRADIENTS)
    found = map_relevance(t, 0)["encoder"]
    for ours, theirs in zip(found, bert_relevance(t), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-8 * np.abs(theirs).max(), rtol=0)


def test_layers_are_weighted_and_multiplied_as_in_the_paper() -> None:
    model, _ = precise("bert")
    passage = inputs(model, 1)[0]
    t = trace(model, [passage], needs=Needs.ATTENTION_GRADIENTS)
    eye = np.eye(len(passage))
    steps = []
    for slope, r in zip(
        t.attention_gradients["encoder"], map_relevance(t, 0)["encoder"], strict=True
    ):
        steps.append(np.mean([np.maximum((slope[0] * r)[h].numpy(), 0) for h in range(4)], 0))
    first, second = (eye + s for s in steps)
    plain = whence.explain(model, passage, "transformer-attribution", evidence=False)
    np.testing.assert_allclose(plain.scores, passage.merge((second @ first - eye)[0]), rtol=1e-9)
    assert (
        np.abs(plain.scores - passage.merge((first @ second - eye)[0])).max() > 0.0
    )  # the wrong order
    last = whence.explain(model, passage, "transformer-attribution", start_layer=1, evidence=False)
    np.testing.assert_allclose(last.scores, passage.merge(steps[1][0]), rtol=1e-9)
    rows = [m / m.sum(-1, keepdims=True) for m in (second, first)]
    normalised = whence.explain(
        model, passage, "transformer-attribution", normalise=True, evidence=False
    )
    np.testing.assert_allclose(
        normalised.scores, passage.merge((rows[0] @ rows[1])[0]), rtol=1e-9
    )  # the read-out token is special


def test_normalised_rows_by_hand() -> None:
    a, b = torch.tensor([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([[0.6, 0.4], [0.1, 0.9]])
    # (I + B)/2 · (I + A)/2 = [[.75, .25], [.1875, .8125]], of which a quarter never left its place
    torch.testing.assert_close(rolled_out([a, b], 0), torch.tensor([0.75 - 0.25, 0.25]))
    torch.testing.assert_close(rolled_out([a, b], 1), torch.tensor([0.1875, 0.8125 - 0.25]))
    torch.testing.assert_close(
        rolled_out([a, b], None), torch.tensor([0.9375 - 0.25, 1.0625 - 0.25]) / 2
    )
    zero = torch.zeros(2, 2)
    assert rolled_out([zero, zero], 0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("name", ["bert", "gpt2", "modernbert-mean"])
def test_without_gradients_nothing_is_carried(name: str, normalise: bool) -> None:
    model, _ = precise(name)
    t = trace(model, inputs(model, 2), needs=Needs.ATTENTION_GRADIENTS)
    flat = replace(
        t,
        attention_gradients={
            k: tuple(torch.zeros_like(m) for m in ms) for k, ms in t.attention_gradients.items()
        },
    )
    method = TransformerAttribution(normalise)
    assert all(np.abs(scores.tokens).max() == 0 for scores in method(flat))
    assert all(np.abs(scores.tokens).max() > 0 for scores in method(t))


def test_the_other_sign_of_the_target_keeps_the_other_entries() -> None:
    model, _ = precise("bert")
    t = trace(model, inputs(model, 1), needs=Needs.ATTENTION_GRADIENTS)
    for slope, r in zip(
        t.attention_gradients["encoder"], map_relevance(t, 0)["encoder"], strict=True
    ):
        for h in range(4):
            one, other = (
                positive_mean(sign * slope[0, h : h + 1], r[h : h + 1]) for sign in (1, -1)
            )
            assert not bool(((one > 0) & (other > 0)).any())
            torch.testing.assert_close(one - other, slope[0, h] * r[h])


def test_padding_carries_nothing() -> None:
    model, _ = precise("bert")
    passages = inputs(model, 2)
    t = trace(model, passages, needs=Needs.ATTENTION_GRADIENTS)
    n = len(passages[1])
    assert n < len(passages[0])
    for layer in weighted(t)["encoder"]:
        assert float(layer[1, n:].abs().max()) == 0
        assert float(layer[1, :, n:].abs().max()) == 0
        assert float(layer[1, :n, :n].max()) > 0
    assert t.passes.forwards == [2, 2]
    assert t.passes.backwards == [2, 2]


def test_relevance_starts_at_the_label_and_the_gradient_knows_the_contrast() -> None:
    # a relevance that starts from both labels of a contrast sums to zero, and the first residual
    # would wipe it out
    model, _ = precise("bert")
    a = whence.explain(
        model, "not bad prices", "transformer-attribution", target=("good", "bad"), evidence=False
    )
    b = whence.explain(
        model, "not bad prices", "transformer-attribution", target="good", evidence=False
    )
    p = whence.explain(
        model,
        "not bad prices",
        "transformer-attribution",
        target="good",
        read="probability",
        evidence=False,
    )
    assert min(np.abs(x.scores).max() for x in (a, b, p)) > 0
    assert np.abs(a.scores - b.scores).max() > 0


REACHED = [
    "distilbert",
    "roberta",
    "albert",
    "electra",
    "modernbert",
    "deberta-v2",
    "gpt-neox",
    "opt",
    "llama",
    "qwen3",
    "gemma2",
    "gemma3",
]


@pytest.mark.parametrize("name", [*REACHED, "gpt-oss", "t5", "bart", "marian"])
def test_every_family_gets_finite_scores(name: str) -> None:
    model, _ = precise(name)
    a = whence.explain(model, inputs(model, 1)[0], "transformer-attribution", evidence=False)
    assert np.isfinite(a.scores).all()
    assert a.scores.max() > 0
    assert a.scores.min() >= 0
    assert a.provenance.attention in ("captured (eager)", "eager")


def test_what_is_refused() -> None:
    with pytest.raises(SettingsError, match="start_layer 2 is outside the 2 layers"):
        whence.explain(build("bert"), "not bad", "transformer-attribution", start_layer=2)
    with pytest.raises(Unsupported, match="one stream"):
        whence.explain(build("t5"), "not bad", "transformer-attribution", normalise=True)
