"""Images as passages: the units are the patches that a vision transformer sees, in reading order.

Beside a text they follow the text's tokens: patches again (ViLT), or the regions that a detector found (LXMERT).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError, Unsupported
from whence.core.passage import SPECIAL, Passage, Regions, with_picture
from whence.models.untouched import untouched

if TYPE_CHECKING:
    from whence.models.model import Model


def encode_image(model: Model, image: Any) -> Passage:
    """An image file or PIL image (through the model's processor), or an array of pixels ready for the model."""
    pixels = _pixels(model, image)
    size = model.config.image_size
    wanted = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if pixels.shape[1:] != wanted:
        raise InputError(
            f"this model takes images of {wanted[0]} × {wanted[1]} pixels; got {pixels.shape[1]} × {pixels.shape[2]}."
        )
    rows, columns = _grid(model, pixels)
    count = rows * columns
    special = _special_tokens(model)
    unit_of = np.concatenate([np.full(special, SPECIAL), np.arange(count)]).astype(np.int64)
    cells = tuple((0, r, c) for r in range(rows) for c in range(columns))
    return Passage(
        text="",
        ids=np.zeros(special + count, dtype=np.int64),
        tokens=("[CLS]", "[DIST]", *(f"[REG{i}]" for i in range(16)))[:special]
        + tuple(f"{r},{c}" for _, r, c in cells),
        spans=np.zeros((special + count, 2), dtype=np.int64),
        parts=np.where(unit_of < 0, SPECIAL, 0),
        unit_of=unit_of,
        unit_spans=cells,
        kind="patch",
        pixels=pixels,
    )


def add_image(model: Model, passage: Passage, image: Any) -> Passage:
    """The passage of a text with its image behind it: the regions of a detector, or an image as ``encode_image`` takes it."""
    if reads_regions(model):
        regions = _regions(model, image)
        return with_picture(passage, (), [(i, i + 1) for i in range(len(regions))], regions=regions)
    if isinstance(image, (Regions, Mapping)):
        raise InputError(
            f"{type(model.hf).__name__} reads pixels, not regions: pass an image, its file, or an array of pixels."
        )
    pixels = _pixels(model, image)
    rows, columns = _grid(model, pixels)
    return with_picture(
        passage, ("[IMAGE]",), [(r, c) for r in range(rows) for c in range(columns)], pixels=pixels
    )


def reads_regions(model: Model) -> bool:
    """Whether an image goes in as the regions that a detector found, and not as pixels."""
    return hasattr(model.config, "visual_feat_dim")


def embedded_patches(
    model: Model, pixels: Float[np.ndarray, "channel height width"]
) -> Float[Tensor, "1 token dim"]:
    """What ViLT makes of an image's own classification token and of its patches, the patches in reading order.

    Left to itself, the model draws a new order of the patches in every run (it samples them without replacement, in training
    and after). The order changes nothing for the model, but a map over patches would be shuffled without anyone noticing.
    """
    embeddings = model.hf.base_model.embeddings
    values = torch.from_numpy(np.array(pixels))[None].to(model.device, model.dtype)
    mask = torch.ones(1, *pixels.shape[1:], device=model.device)
    # the draw is from torch's global generator, which is the caller's
    with model.lock, untouched(model.hf), torch.no_grad(), torch.random.fork_rng(devices=[]):
        found, _, (place, (high, wide)) = embeddings.visual_embed(
            values, mask, max_image_length=model.config.max_image_length
        )
    order = (place[0, :, 0] * wide + place[0, :, 1]).argsort()
    if len(order) != high * wide:
        raise Unsupported(
            f"this model draws {len(order)} of the image's {high * wide} patches at random in every run (max_image_length in its "
            "configuration); use a smaller image, or set max_image_length to -1."
        )
    return torch.cat([found[:, :1], found[:, 1:][:, order]], 1)


def _regions(model: Model, image: Any) -> Regions:
    if not isinstance(image, (Regions, Mapping)):
        raise InputError(
            f"{type(model.hf).__name__} reads the regions that a detector found, not a {type(image).__name__}: "
            'image={"features": [region, dim], "boxes": [region, 4]}.'
        )
    found = (
        image if isinstance(image, Mapping) else {"features": image.features, "boxes": image.boxes}
    )
    if set(found) != {"features", "boxes"}:
        raise InputError(
            f"regions have 'features' and 'boxes'; got {', '.join(map(repr, found)) or 'nothing'}."
        )
    try:
        features, boxes = (
            np.asarray(found[name], dtype=np.float32) for name in ("features", "boxes")
        )
    except (TypeError, ValueError):
        raise InputError(
            "features and boxes are arrays of numbers, a row for each region."
        ) from None
    wide, deep = model.config.visual_feat_dim, model.config.visual_pos_dim
    if features.shape != (len(boxes), wide) or boxes.shape != (len(boxes), deep) or not len(boxes):
        raise InputError(
            f"features are [region, {wide}] and boxes [region, {deep}] for this model; got {features.shape} and {boxes.shape}."
        )
    if not (np.isfinite(features).all() and (boxes >= 0).all() and (boxes <= 1).all()):
        raise InputError(
            "features are finite, and boxes are shares of the image's width and height, from 0 to 1."
        )
    return Regions(features, boxes)


def _grid(model: Model, pixels: Float[np.ndarray, "channel height width"]) -> tuple[int, int]:
    patch = model.config.patch_size
    high, wide = patch if isinstance(patch, (tuple, list)) else (patch, patch)
    if model.task == "image-text" and (
        pixels.shape[1] % high or pixels.shape[2] % wide or not pixels.size
    ):
        raise InputError(
            f"height and width are multiples of the {high} × {wide} patches; got {pixels.shape[1]} × {pixels.shape[2]}."
        )
    return pixels.shape[1] // high, pixels.shape[2] // wide


def _special_tokens(model: Model) -> int:
    names = dict(model.hf.named_parameters())
    registers = int(getattr(model.config, "num_register_tokens", 0) or 0)
    return (
        sum(any(n.endswith(s) for n in names) for s in ("cls_token", "distillation_token"))
        + registers
    )


def _pixels(model: Model, image: Any) -> np.ndarray:
    if isinstance(image, (str, os.PathLike)):
        try:
            from PIL import Image, UnidentifiedImageError
        except ImportError:
            raise InputError(
                "reading an image file needs Pillow: pip install 'whence[images]'."
            ) from None
        try:
            image = Image.open(image).convert("RGB")
        except (OSError, UnidentifiedImageError) as problem:
            raise InputError(f"cannot read the image {str(image)!r}: {problem}.") from None
    if hasattr(image, "convert"):
        if model.image_processor is None:
            raise InputError(
                "this model was loaded without an image processor; pass the pixels as an array [channel, height, width]."
            )
        image = model.image_processor(images=image.convert("RGB"), return_tensors="np")[
            "pixel_values"
        ][0]
    try:
        pixels = np.asarray(image, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(
            f"this model reads an image or an array of pixels, not a {type(image).__name__}."
        ) from None
    channels = int(getattr(model.config, "num_channels", 3))
    if pixels.ndim != 3 or pixels.shape[0] != channels:
        raise InputError(
            f"pixels are [channel, height, width] with {channels} channels; got an array of shape {pixels.shape}."
        )
    return pixels
