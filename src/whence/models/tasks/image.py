"""Image classification: one of some classes for an image, whose units are its patches.

Where the model keeps a token for each patch, embeddings and attention speak of patches. Where it
does not (windows, pooling, convolutions), the units are cells of pixels that can be painted over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool
from torch import Tensor

from whence.core.passage import Passage
from whence.core.registry import OF_METRICS, Needs
from whence.models.images import batch_of_images
from whence.models.labels import classes
from whence.models.limits import no_limit
from whence.models.patches import painted_over, tokens_of
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _readout(model: Model, _passage: Passage) -> int | None:
    """The token that the head reads; None where it reads several, as DINOv2 and CLIP do."""
    tokens = tokens_of(model)
    return None if tokens is None else tokens.readout


def _unseen(model: Model, needs: Needs) -> str | None:
    if not needs & ~(Needs.GAME | OF_METRICS):
        return None
    if tokens_of(model) is not None:
        return None
    return (
        f"{type(model.hf).__name__} does not keep a token for each patch of the image (it looks "
        "through windows, pools or convolves), so that neither attention nor gradients of "
        "embeddings are of patches; use a method that removes patches (occlusion, lime, shapley, "
        "banzhaf, anchors)."
    )


def _covered(
    model: Model, passage: Passage, kept: Bool[np.ndarray, "mask token"], removal: str
) -> Mapping[str, Tensor]:
    if tokens_of(model) is not None:
        return {}
    return {"pixel_values": painted_over(model, passage, kept, removal)}


IMAGE = Task(
    name="image",
    title="image classification",
    heads={
        "ForImageClassification": "AutoModelForImageClassification",
        "ForImageClassificationWithTeacher": "AutoModelForImageClassification",
    },
    reads_text=False,
    reads_image=True,
    limit=no_limit,
    batch=batch_of_images,
    labels=classes,
    has_classes=True,
    readout=_readout,
    unseen=_unseen,
    removals=("mean", "zero"),
    no_removal=(
        "an image has no tokens to {removal}; use removal 'mean' (of its patches) or 'zero'."
    ),
    covered=_covered,
)
