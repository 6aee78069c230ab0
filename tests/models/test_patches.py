"""Images: patches that are tokens, and cells of pixels where they are not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import whence
from tests.families import LABELS, SMALL
from tests.interrupts import Watcher, differences, state
from whence.core.errors import InputError, ModelError, OurMistake, TooLarge, Unsupported
from whence.models.model import Model
from whence.models.patches import _known, as_pair, edges, picture_size, tokens_of

SIZE = {"image_size": 16, "patch_size": 4}
VISION = {**SMALL, **SIZE}
DINO = {name: value for name, value in VISION.items() if name != "intermediate_size"}
WORDS = {**SMALL, "num_hidden_layers": 1, "vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2}
SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 4,
}
SMALL_NET = {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}

# class, configuration, special tokens in front, the one token that the head reads
TOKENS: dict[str, tuple[Callable[[], Any], int, int | None]] = {
    "vit": (lambda: tf.ViTForImageClassification(tf.ViTConfig(**VISION, **LABELS)), 1, 0),
    "deit": (lambda: tf.DeiTForImageClassification(tf.DeiTConfig(**VISION, **LABELS)), 2, 0),
    "deit-teacher": (
        lambda: tf.DeiTForImageClassificationWithTeacher(tf.DeiTConfig(**VISION, **LABELS)),
        2,
        None,
    ),
    "beit": (lambda: tf.BeitForImageClassification(tf.BeitConfig(**VISION, **LABELS)), 1, None),
    "dinov2": (lambda: tf.Dinov2ForImageClassification(tf.Dinov2Config(**DINO, **LABELS)), 1, None),
    "clip": (
        lambda: tf.CLIPForImageClassification(
            tf.CLIPConfig(vision_config=VISION, text_config=WORDS, **LABELS)
        ),
        1,
        None,
    ),
    "siglip": (
        lambda: tf.SiglipForImageClassification(
            tf.SiglipConfig(vision_config=VISION, text_config=WORDS, **LABELS)
        ),
        0,
        None,
    ),
}
CELLS: dict[str, Callable[[], Any]] = {
    "swin": lambda: tf.SwinForImageClassification(tf.SwinConfig(**SWIN, **LABELS)),
    "convnext": lambda: tf.ConvNextForImageClassification(
        tf.ConvNextConfig(**SMALL_NET, image_size=32, **LABELS)
    ),
    "resnet": lambda: tf.ResNetForImageClassification(
        tf.ResNetConfig(**SMALL_NET, embedding_size=8, **LABELS)
    ),
}


def build(make: Callable[[], Any]) -> Model:
    torch.manual_seed(0)
    hf = make().eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(2.0)
    return whence.load(hf)


def picture(size: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, size, size)).astype(np.float32)


@pytest.mark.parametrize("name", list(TOKENS))
def test_patches_that_are_tokens_are_found_by_one_pass(name: str) -> None:
    make, special, readout = TOKENS[name]
    model = build(make)
    tokens = tokens_of(model)
    assert tokens is not None
    assert (tokens.special, tokens.readout) == (special, readout)
    assert tokens_of(model) is tokens
    passage = model.encode(picture(16))
    assert len(passage) == special + 16
    with torch.inference_mode():
        own = model.hf(torch.from_numpy(picture(16))[None]).logits[0].double().numpy()
    np.testing.assert_allclose(model.logits([passage])[0], own, atol=1e-5)


@pytest.mark.parametrize("name", ["dinov2", "clip", "siglip", "deit"])
def test_gradients_and_removals_are_of_patches(name: str) -> None:
    """Against the patch's own pixels: its vector is a linear map of them, so a chain rule holds.

    With the weights W of the convolution, d logit / d pixels = Wᵀ · d logit / d vector. The enemy
    lays the vectors out column by column.
    """
    model = build(TOKENS[name][0])
    tokens = tokens_of(model)
    assert tokens is not None
    a = whence.explain(model, picture(16), "gradient-l2", target=1, evidence=False)
    convolution = next(m for m in tokens.module.modules() if isinstance(m, torch.nn.Conv2d))
    pixels = torch.from_numpy(picture(16))[None].requires_grad_()
    model.hf(pixels).logits[0, 1].backward()
    assert pixels.grad is not None
    weights = convolution.weight.detach().flatten(1).double()  # (dim, channel · 4 · 4)
    by_pixels = torch.nn.functional.unfold(pixels.grad, 4, stride=4)[0].T.double()  # (patch, …)
    by_vectors = torch.linalg.lstsq(weights.T, by_pixels.T).solution.T
    if weights.shape[0] <= weights.shape[1]:  # one vector alone has such a gradient in pixels
        np.testing.assert_allclose(a.scores, by_vectors.norm(dim=-1).numpy(), rtol=1e-3)
    game = whence.game(model, picture(16), target=1, removal="zero")
    one_gone = np.ones((1, 16), dtype=bool)
    one_gone[0, 5] = False
    assert abs(float(game(one_gone)[0]) - game.full) > 1e-5


@pytest.mark.parametrize("removal", ["mean", "zero"])
@pytest.mark.parametrize("name", list(CELLS))
def test_cells_are_painted_over_where_there_are_no_tokens(name: str, removal: str) -> None:
    model = build(CELLS[name])
    assert tokens_of(model) is None
    pixels = picture(32)
    game = whence.game(model, pixels, target=1, removal=removal)
    assert game.size == 64
    rng = np.random.default_rng(1)
    masks = rng.random((5, 64)) < 0.5
    expected = []
    for keep in masks:
        painted = pixels.copy()
        for unit, (_, row, column) in enumerate(game.passage.unit_spans):
            if not keep[unit]:
                square = np.s_[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
                colour = pixels.mean((1, 2)) if removal == "mean" else np.zeros(3)
                painted[square] = colour[:, None, None]
        with torch.inference_mode():
            logits = model.hf(torch.from_numpy(painted)[None]).logits
        expected.append(float(logits[0, 1]))
    # the enemy swaps rows and columns
    np.testing.assert_allclose(game(masks), expected, atol=1e-4)


def test_what_does_not_see_patches_is_refused_by_name_and_the_rest_runs() -> None:
    model = build(CELLS["swin"])
    c = whence.compare(model, model.encode(picture(32)), evidence=False, budget="1000")
    assert set(c) == {
        "anchors", "banzhaf", "beta-shapley", "lime", "occlusion", "random", "shapley",
    }  # fmt: skip
    assert "does not keep a token for each patch" in c.skipped["attention-mean"]
    assert "does not keep a token for each patch" in c.skipped["gradient-x-input"]
    error = c["occlusion"].error
    assert error is not None
    assert "8 × 8 cells of the image were painted over" in error.note
    with pytest.raises(Unsupported, match="use a method that removes patches"):
        whence.attend(model, picture(32))


@pytest.mark.parametrize(
    ("size", "pair"),
    [
        (16, (16, 16)),
        ((8, 12), (8, 12)),
        ([8, 12], (8, 12)),
        ([7], (7, 7)),
        ({"height": 8, "width": 12}, (8, 12)),
        ({"shortest_edge": 9}, (9, 9)),
        (SimpleNamespace(height=8, width=12), (8, 12)),
        (None, None),
        (0, None),
        ({}, None),
    ],
)
def test_a_size_is_read_however_it_is_written(size: Any, pair: Any) -> None:
    assert as_pair(size) == pair


def test_a_model_without_a_size_asks_its_processor() -> None:
    hf = CELLS["resnet"]()
    model = whence.load(hf, image_processor=SimpleNamespace(size={"height": 48, "width": 64}))
    assert picture_size(model) == (48, 64)
    assert picture_size(whence.load(hf)) is None
    with pytest.raises(InputError, match="takes images of 16 × 16 pixels; got 20 × 20"):
        build(TOKENS["vit"][0]).encode(picture(20))


def test_cells_are_even_where_they_can_be() -> None:
    for pixels, patch, cells in [(224, 4, 14), (256, 2, 8), (384, 4, 12), (32, 2, 8), (331, 1, 14)]:
        borders = edges(pixels, patch)
        assert len(borders) - 1 == cells
        assert (borders[0], borders[-1]) == (0, pixels)
        assert np.diff(borders).min() >= patch
        assert np.ptp(np.diff(borders)) <= 1
    # never smaller than the model's own patch
    assert len(edges(64, 16)) - 1 == 4


# ---------------------------------------------------------------------- a first look that crashes


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (RuntimeError("no kernel for this"), ModelError),
        (torch.OutOfMemoryError("out of memory"), TooLarge),
        (AttributeError("no such thing"), ModelError),
    ],
)
def test_a_crash_is_told_and_not_remembered_as_a_property(
    problem: Exception, told: type[Exception]
) -> None:
    # would catch: every crash of the first look taken for "has no tokens", for good
    make, special, _ = TOKENS["vit"]
    model = build(make)

    def crash(*_: Any) -> None:
        raise problem

    handle = model.hf.classifier.register_forward_hook(crash)
    with pytest.raises(told, match=str(problem)) as caught:
        tokens_of(model)
    assert not isinstance(caught.value, OurMistake)
    handle.remove()
    found = tokens_of(model)
    assert found is not None
    assert found.special == special


def test_a_model_that_gives_no_hidden_states_out_has_no_tokens() -> None:
    class Closed(tf.ViTForImageClassification):
        def forward(self, pixel_values: Any) -> Any:
            return super().forward(pixel_values)

    model = build(lambda: Closed(tf.ViTConfig(**VISION, **LABELS)))
    assert tokens_of(model) is None
    a = whence.explain(model, picture(16), "occlusion", evidence=False)
    assert np.isfinite(a.scores).all()


def test_an_interrupt_in_the_first_look_leaves_no_hook() -> None:
    make, _, _ = TOKENS["vit"]
    model = build(make)
    before = state(model)
    places = list(first_look(model, None).places)
    assert len(places) > 10
    for place in places:
        watcher = first_look(model, place)
        assert watcher.sent
        assert differences(before, state(model)) == [], place


def first_look(model: Model, interrupt_at: Any) -> Watcher:
    """Look at the patches as for the first time, step by step through this file's hook."""
    _known.pop(model.hf, None)
    watcher = Watcher(lambda file: file.endswith("models/patches.py"), interrupt_at)
    watcher.run(lambda: tokens_of(model))
    return watcher
