"""Images as passages: the units are the patches that a vision transformer sees, in reading order."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from whence.core.errors import InputError
from whence.core.passage import SPECIAL, Passage

if TYPE_CHECKING:
    from whence.models.model import Model


def encode_image(model: Model, image: Any) -> Passage:
    """An image file or PIL image (through the model's processor), or an array of pixels ready for the model."""
    pixels = _pixels(model, image)
    patch = model.config.patch_size
    high, wide = patch if isinstance(patch, (tuple, list)) else (patch, patch)
    rows, columns = pixels.shape[1] // high, pixels.shape[2] // wide
    count = rows * columns
    special = _special_tokens(model)
    unit_of = np.concatenate([np.full(special, SPECIAL), np.arange(count)]).astype(np.int64)
    cells = tuple((0, r, c) for r in range(rows) for c in range(columns))
    return Passage(
        text="",
        ids=np.zeros(special + count, dtype=np.int64),
        tokens=("[CLS]", "[DIST]", *(f"[REG{i}]" for i in range(16)))[:special] + tuple(f"{r},{c}" for _, r, c in cells),
        spans=np.zeros((special + count, 2), dtype=np.int64),
        parts=np.where(unit_of < 0, SPECIAL, 0),
        unit_of=unit_of,
        unit_spans=cells,
        kind="patch",
        pixels=pixels,
    )


def _special_tokens(model: Model) -> int:
    names = dict(model.hf.named_parameters())
    registers = int(getattr(model.config, "num_register_tokens", 0) or 0)
    return sum(any(n.endswith(s) for n in names) for s in ("cls_token", "distillation_token")) + registers


def _pixels(model: Model, image: Any) -> np.ndarray:
    if isinstance(image, (str, os.PathLike)):
        try:
            from PIL import Image, UnidentifiedImageError
        except ImportError:
            raise InputError("reading an image file needs Pillow: pip install 'whence[images]'.") from None
        try:
            image = Image.open(image).convert("RGB")
        except (OSError, UnidentifiedImageError) as problem:
            raise InputError(f"cannot read the image {str(image)!r}: {problem}.") from None
    if hasattr(image, "convert"):
        if model.image_processor is None:
            raise InputError("this model was loaded without an image processor; pass the pixels as an array [channel, height, width].")
        image = model.image_processor(images=image.convert("RGB"), return_tensors="np")["pixel_values"][0]
    try:
        pixels = np.asarray(image, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(f"this model reads an image or an array of pixels, not a {type(image).__name__}.") from None
    channels = int(getattr(model.config, "num_channels", 3))
    if pixels.ndim != 3 or pixels.shape[0] != channels:
        raise InputError(f"pixels are [channel, height, width] with {channels} channels; got an array of shape {pixels.shape}.")
    size = model.config.image_size
    wanted = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if pixels.shape[1:] != wanted:
        raise InputError(f"this model takes images of {wanted[0]} × {wanted[1]} pixels; got {pixels.shape[1]} × {pixels.shape[2]}.")
    return pixels
