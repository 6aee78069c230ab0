"""The single-layer model beside its equation, written out slowly."""

from pathlib import Path

import numpy as np
import pytest
import torch

import whence
from tests.families import build
from tests.tolerance import rounding
from whence.core.passage import Passage
from whence.models.model import Model
from whence.models.single_layer import positional_encoding


def test_the_positional_encoding_starts_as_stated() -> None:
    """Would catch sine and cosine swapped, and exponents that start at 2/d_e, as on the slides."""
    encoding = positional_encoding(3, 6)
    np.testing.assert_allclose(encoding[0], [0, 1, 0, 1, 0, 1])
    assert float(encoding[1, 0]) == pytest.approx(0.8414709848)
    assert float(encoding[2, 3]) == pytest.approx(np.cos(2 / 10_000 ** (2 / 6)))
    assert float(positional_encoding(2, 4, base=100.0)[1, 2]) == pytest.approx(np.sin(1 / 10))


def test_the_logits_are_the_equation() -> None:
    model = build("single-layer")
    hf = model.hf.double()
    passage = model.encode("the food is great but not the prices")
    w = {name: p.detach().numpy() for name, p in hf.named_parameters()}
    places, heads, key, value = len(passage.ids), 4, 8, 6
    e = np.array(
        [
            w["embedding.weight"][i] + positional_encoding(places, 32)[t].numpy()
            for t, i in enumerate(passage.ids)
        ]
    )
    logits = np.zeros(3)
    for k in range(heads):
        w_q, w_k = (
            w[f"attention.{name}.weight"][k * key : (k + 1) * key] for name in ("query", "key")
        )
        w_v, w_l = (
            w["attention.value.weight"][k * value : (k + 1) * value],
            w["classifier.weight"][:, k * value : (k + 1) * value],
        )
        scores = np.array([(w_q @ e[0]) @ (w_k @ e[t]) / np.sqrt(key) for t in range(places)])
        alpha = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        logits += w_l @ sum(alpha[t] * (w_v @ e[t]) for t in range(places)) / heads
    np.testing.assert_allclose(model.logits([passage])[0], logits, atol=1e-12)


def largest_score(model: Model, passage: Passage) -> float:
    """The largest attention score q·k/√d of a passage, its products counted without their signs."""
    places = positional_encoding(len(passage), 32).to(model.hf.dtype)
    with torch.no_grad():
        e = model.hf.embedding(torch.tensor(passage.ids)) + places
        q, k = (
            part(e).unflatten(-1, (4, 8)).abs()
            for part in (model.hf.attention.query, model.hf.attention.key)
        )
    return float(torch.einsum("phd,rhd->hpr", q, k).max()) / np.sqrt(8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_padding_is_not_seen(dtype: torch.dtype) -> None:
    model = build("single-layer")
    model.hf.to(dtype)
    short, long = model.encode("not bad"), model.encode("the food is great but the service is not")
    alone = model.logits([short])[0]
    # A score sums over 32 entries of an embedding. Its error is that of the weight's logarithm, so
    # it is relative to the logits that are averaged with these weights.
    numpys = np.float32 if dtype is torch.float32 else np.float64
    far = rounding(32, largest_score(model, short) * np.abs(alone).max(), numpys)
    np.testing.assert_allclose(model.logits([short, long])[0], alone, atol=far, rtol=0)
    # the enemy sees the padding
    ids = torch.tensor([*short.ids, *[0] * (len(long) - len(short))])[None]
    with torch.no_grad():
        wrong = model.hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0].numpy()
    assert np.abs(wrong - alone).max() > 100 * far


def test_only_the_first_row_is_read() -> None:
    model = build("single-layer")
    long = model.encode("the food is great but the service is not")
    assert model.readout(long) == 0
    # the keys and values of all places matter, the queries of the first alone
    seen = []
    handle = model.hf.attention.query.register_forward_hook(
        lambda _m, _i, out: seen.append(out.requires_grad_()) or seen[-1]
    )
    ids = torch.tensor(long.ids)[None]
    (grad,) = torch.autograd.grad(model.hf(input_ids=ids).logits.sum(), seen[0])
    handle.remove()
    assert grad[0, 0].abs().max() > 0
    assert grad[0, 1:].abs().max() == 0


def test_it_goes_through_the_ordinary_path(tmp_path: Path) -> None:
    model = build("single-layer")
    model.hf.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    again = whence.load(tmp_path)
    passage = model.encode("not bad prices")
    np.testing.assert_array_equal(
        again.logits([again.encode("not bad prices")]), model.logits([passage])
    )
    assert dict(again.labels) == {0: "bad", 1: "fair", 2: "good"}


def test_the_bundled_one_has_learned_something() -> None:
    model = whence.load("single-layer")
    c = model.config
    assert (c.num_attention_heads, c.embedding_size, c.key_size, c.value_size) == (6, 128, 64, 64)
    assert not any("bias" in name for name, _ in model.hf.named_parameters())
    texts = [
        "a wonderful , moving film",
        "brilliant and funny",
        "a dull , tired and pointless mess",
        "boring and far too long",
    ]
    assert [p.label for p in model.predict(texts)] == [
        "positive",
        "positive",
        "negative",
        "negative",
    ]
    folder = Path(whence.__file__).parent / "models" / "bundled" / "single-layer"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 6_000_000
