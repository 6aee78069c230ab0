"""ViLT's input: the patches of an image, in reading order, behind the tokens of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched

if TYPE_CHECKING:
    from whence.models.model import Model


def picture_inputs(model: Model, passages: Sequence[Passage]) -> dict[str, Tensor] | None:
    """What the model is given of the passages' images; None where a passage has none."""
    images = [p.pixels for p in passages if p.pixels is not None]
    if len(images) < len(passages):
        return None

    patches = torch.cat([embedded_patches(model, pixels) for pixels in images])
    mask = torch.ones(patches.shape[:2], dtype=torch.int64, device=model.device)
    return {"image_embeds": patches, "pixel_mask": mask}


def embedded_patches(
    model: Model, pixels: Float[np.ndarray, "channel height width"]
) -> Float[Tensor, "1 token dim"]:
    """What ViLT makes of an image's own classification token and of its patches, in reading order.

    Left to itself, the model draws a new order of the patches in every run (it samples them
    without replacement, in training and after). The order changes nothing for the model, but a
    map over patches would be shuffled without anyone noticing.
    """
    embeddings = model.hf.base_model.embeddings
    values = torch.from_numpy(np.array(pixels))[None].to(model.device, model.dtype)
    mask = torch.ones(1, *pixels.shape[1:], device=model.device)

    # the draw is from torch's global generator, which is the caller's
    modes = unbroken(torch.no_grad(), torch.random.fork_rng(devices=[]))
    with model.lock, untouched(model.hf), modes:
        embedded, _, (place, (rows, columns)) = embeddings.visual_embed(
            values, mask, max_image_length=model.config.max_image_length
        )

    reading_order = (place[0, :, 0] * columns + place[0, :, 1]).argsort()
    if len(reading_order) != rows * columns:
        raise Unsupported(
            f"this model draws {len(reading_order)} of the image's {rows * columns} patches at "
            "random in every run (max_image_length in its configuration); use a smaller image, "
            "or set max_image_length to -1."
        )
    own_token = embedded[:, :1]
    patches = embedded[:, 1:]
    return torch.cat([own_token, patches[:, reading_order]], 1)
