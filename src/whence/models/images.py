"""Images as passages: the units are the patches that a vision transformer sees, in reading order.

Beside a text they follow the text's tokens: patches again (ViLT), or the regions that a detector
found (LXMERT).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from whence.core.errors import InputError
from whence.core.passage import SPECIAL, Passage, Regions, with_picture
from whence.models.batches import Batch
from whence.models.lxmert import reads_regions, regions_of
from whence.models.patches import (
    as_pair,
    channels_of,
    grid,
    picture_size,
    tokens_of,
    vision_config,
)

if TYPE_CHECKING:
    from whence.models.model import Model

# Names of the special tokens in front of the patches, in their order. No known model has more.
SPECIAL_NAMES = ("[CLS]", "[DIST]", *(f"[REG{i}]" for i in range(16)))


def encode_image(model: Model, image: Any) -> Passage:
    """The passage of an image file, a PIL image, or an array of pixels ready for the model."""
    pixels = _pixels(model, image)
    tokens = tokens_of(model)
    special = 0 if tokens is None else tokens.special
    if tokens is None:
        down, across = grid(model, pixels)
        cells = [(row, column) for row in range(len(down) - 1) for column in range(len(across) - 1)]
    else:
        _check_size(model, pixels)
        cells = _cells(model, pixels)
    count = len(cells)
    unit_of = np.concatenate([np.full(special, SPECIAL), np.arange(count)]).astype(np.int64)
    return Passage(
        text="",
        ids=np.zeros(special + count, dtype=np.int64),
        tokens=SPECIAL_NAMES[:special] + tuple(f"{row},{column}" for row, column in cells),
        spans=np.zeros((special + count, 2), dtype=np.int64),
        parts=np.where(unit_of < 0, SPECIAL, 0),
        unit_of=unit_of,
        unit_spans=tuple((0, row, column) for row, column in cells),
        kind="patch",
        pixels=pixels,
    )


def _check_size(model: Model, pixels: Float[np.ndarray, "channel height width"]) -> None:
    """A model with a position for each patch takes one size of images."""
    size = picture_size(model)
    _, high, wide = pixels.shape
    if size is not None and (high, wide) != size:
        raise InputError(
            f"this model takes images of {size[0]} × {size[1]} pixels; got {high} × {wide}."
        )


def batch_of_images(model: Model, passages: Sequence[Passage]) -> Batch:
    """The pixels of several images, which are all of one size."""
    pixels = np.stack([p.pixels for p in passages if p.pixels is not None])
    values = torch.from_numpy(pixels).to(model.device, model.dtype)
    return Batch({"pixel_values": values}, [len(p) for p in passages], None)


def add_image(model: Model, passage: Passage, image: Any) -> Passage:
    """The passage of a text with its image behind it.

    The image is the regions of a detector, or an image as ``encode_image`` takes it.
    """
    if reads_regions(model):
        regions = regions_of(model, image)
        places = [(i, i + 1) for i in range(len(regions))]
        return with_picture(passage, (), places, regions=regions)

    if isinstance(image, (Regions, Mapping)):
        raise InputError(
            f"{type(model.hf).__name__} reads pixels, not regions: "
            "pass an image, its file, or an array of pixels."
        )
    pixels = _pixels(model, image)
    _check_whole_patches(model, pixels)
    return with_picture(passage, ("[IMAGE]",), _cells(model, pixels), pixels=pixels)


def _cells(
    model: Model, pixels: Float[np.ndarray, "channel height width"]
) -> list[tuple[int, int]]:
    """Row and column of each patch, in reading order."""
    high, wide = _patch(model)
    rows = pixels.shape[1] // high
    columns = pixels.shape[2] // wide
    return [(row, column) for row in range(rows) for column in range(columns)]


def _check_whole_patches(model: Model, pixels: Float[np.ndarray, "channel height width"]) -> None:
    """Beside a text an image may have any size, as long as no patch is cut."""
    high, wide = _patch(model)
    if pixels.shape[1] % high or pixels.shape[2] % wide or not pixels.size:
        raise InputError(
            f"height and width are multiples of the {high} × {wide} patches; "
            f"got {pixels.shape[1]} × {pixels.shape[2]}."
        )


def _patch(model: Model) -> tuple[int, int]:
    """Height and width of a patch, in pixels."""
    size = as_pair(getattr(vision_config(model), "patch_size", None))
    if size is None:
        raise InputError(f"the configuration of {type(model.hf).__name__} names no patch_size.")
    return size


def _pixels(model: Model, image: Any) -> Float[np.ndarray, "channel height width"]:
    """The pixels of an image in whatever form it came, as the model takes them."""
    if isinstance(image, (str, os.PathLike)):
        image = _opened(image)
    if hasattr(image, "convert"):
        image = _processed(model, image)
    try:
        pixels = np.asarray(image, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(
            f"this model reads an image or an array of pixels, not a {type(image).__name__}."
        ) from None

    channels = channels_of(model)
    if pixels.ndim != 3 or pixels.shape[0] != channels:
        raise InputError(
            f"pixels are [channel, height, width] with {channels} channels; "
            f"got an array of shape {pixels.shape}."
        )
    return pixels


def _opened(file: str | os.PathLike) -> Any:
    """The image of a file, in red, green and blue."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError(
            "reading an image file needs Pillow: pip install 'whence[images]'."
        ) from None
    try:
        return Image.open(file).convert("RGB")
    except (OSError, UnidentifiedImageError) as problem:
        raise InputError(f"cannot read the image {str(file)!r}: {problem}.") from None


def _processed(model: Model, image: Any) -> Any:
    """The pixels that the model's own processor makes of a PIL image."""
    if model.image_processor is None:
        raise InputError(
            "this model was loaded without an image processor; "
            "pass the pixels as an array [channel, height, width]."
        )
    processed = model.image_processor(images=image.convert("RGB"), return_tensors="np")
    return processed["pixel_values"][0]
