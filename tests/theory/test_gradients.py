"""The gradient theorem beside autograd and by hand."""

from math import log

import numpy as np
import pytest
import torch

import whence
from whence.models.single_layer import SingleLayerConfig, SingleLayerForSequenceClassification
from whence.theory.gradients import gradient, importances
from whence.theory.heads import Heads, heads_of


def random_heads(seed: int = 0, heads: int = 3, places: int = 9) -> tuple[Heads, torch.nn.Module]:
    """A random model in double precision; the heads hold what it computes for one text."""
    torch.manual_seed(seed)
    config = SingleLayerConfig(
        vocab_size=30,
        embedding_size=16,
        num_attention_heads=heads,
        key_size=8,
        value_size=5,
        num_labels=2,
    )
    hf = SingleLayerForSequenceClassification(config).double().eval()
    with torch.no_grad():
        for p in hf.attention.parameters():
            p.mul_(6)

    def by_head(linear: torch.nn.Linear) -> np.ndarray:
        return linear.weight.detach().numpy().reshape(heads, -1, 16)

    e = np.random.default_rng(seed).normal(size=(places, 16))
    read = hf.classifier.weight.detach().numpy()[1].reshape(heads, -1) / heads
    return Heads(
        e, by_head(hf.attention.query), by_head(hf.attention.key), by_head(hf.attention.value), read
    ), hf


@pytest.mark.parametrize("seed", range(5))
def test_the_theorem_equals_autograd_on_every_row(seed: int) -> None:
    heads, hf = random_heads(seed, heads=1 + seed)
    e = torch.tensor(heads.e, requires_grad=True)
    averaged, _ = hf.attention(e[None], None)
    logit = hf.classifier(averaged[:, 0])[0, 1] / hf.config.num_attention_heads
    (measured,) = torch.autograd.grad(logit, e)
    assert abs(heads.output - logit.item()) < 1e-12
    np.testing.assert_allclose(gradient(heads), measured.numpy(), atol=1e-12, rtol=0)
    without = gradient(heads, cls_term=False)
    np.testing.assert_allclose(without[1:], measured.numpy()[1:], atol=1e-12, rtol=0)
    assert (
        np.abs(without[0] - measured.numpy()[0]).max() > 1e-3
    )  # the row of [CLS], as the slides have it


def test_the_bundled_model_equals_autograd() -> None:
    model = whence.load("single-layer", dtype="float64")
    passage = model.encode("a dull film with a few good jokes, and no end")
    words = model.hf.embedding(torch.tensor(passage.ids)[None]).detach().requires_grad_()
    logit = model.hf(inputs_embeds=words).logits[0, 1]
    (measured,) = torch.autograd.grad(logit, words)
    heads = heads_of(model, passage, whence.Target("positive", index=1))
    assert abs(heads.output - logit.item()) < 1e-12
    np.testing.assert_allclose(gradient(heads), measured[0].numpy(), atol=1e-12, rtol=0)


def by_hand(values: tuple[float, float] = (0.0, log(2))) -> Heads:
    """T = 2, q = 1 whatever the words are.

    The query reads a second coordinate, which is 1 at [CLS].
    """
    e = np.array([[values[0], 1.0], [values[1], 0.0]])
    first, second = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])
    return Heads(e, w_q=second, w_k=first, w_v=first, read=np.ones((1, 1)))


def test_two_tokens_by_hand() -> None:
    heads = by_hand()
    np.testing.assert_allclose(heads.attention, [[1 / 3, 2 / 3]], atol=1e-12)
    assert heads.output == pytest.approx(2 / 3 * log(2))
    first = gradient(heads)[:, 0]
    np.testing.assert_allclose(first, [0.179301, 0.820699], atol=1e-6)
    assert first.sum() == pytest.approx(1)


def test_equal_values_leave_the_attention_term_out() -> None:
    heads, _ = random_heads(1)
    same = Heads(np.repeat(heads.e[:1], 5, 0), heads.w_q, heads.w_k, heads.w_v, heads.read)
    direct = np.einsum("ht,hv,hvw->tw", same.attention, same.read, same.w_v)
    np.testing.assert_allclose(gradient(same), direct, atol=1e-12)


def test_a_token_without_attention_has_no_gradient_though_it_may_matter() -> None:
    heads = by_hand((0.0, -800.0))  # α of the second is e^-800
    assert heads.attention[0, 1] == 0
    assert (gradient(heads)[1] == 0).all()
    alone = heads.values(heads.e)[0, 1]
    assert abs(alone - heads.output) > 100  # were it the only word left, it would decide


def test_the_importances_are_as_the_paper_defines_them() -> None:
    heads, _ = random_heads(2)
    rows = importances(heads)
    assert rows["α-avg"].sum() == pytest.approx(1)
    assert (rows["α-max"] >= rows["α-avg"]).all()
    width = heads.e.shape[1]
    # |G-avg| ≤ G-L1/d_e ≤ sqrt(G-L2²/d_e): the means of the lecture notes; the norms themselves are
    # larger
    assert (np.abs(rows["G-avg"]) <= rows["G-L1"] / width + 1e-12).all()
    assert (rows["G-L1"] / width <= np.sqrt(rows["G-L2"] ** 2 / width) + 1e-12).all()


def test_the_methods_say_what_the_formulas_say() -> None:
    model = whence.load("single-layer", dtype="float64")
    text = "a dull film with good jokes"
    rows = importances(heads_of(model, model.encode(text), whence.Target("positive", index=1)))
    named = {
        "gradient-l1": "G-L1",
        "gradient-l2": "G-L2",
        "gradient-mean": "G-avg",
        "attention-mean": "α-avg",
        "attention-max": "α-max",
    }
    for method, row in named.items():
        np.testing.assert_allclose(
            whence.explain(model, text, method, target="positive", evidence=False).scores,
            rows[row][1:],
            atol=1e-10,
        )
