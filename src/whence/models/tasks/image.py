"""Image classification: one of some classes for an image, whose units are its patches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whence.core.passage import Passage
from whence.models.images import batch_of_images
from whence.models.labels import classes
from whence.models.limits import no_limit
from whence.models.readouts import pooled
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _readout(model: Model, passage: Passage) -> int | None:
    """Without a classification token in front, the head reads the mean of all patches."""
    if not passage.special[0]:
        return None
    return pooled(model, passage)


IMAGE = Task(
    name="image",
    title="image classification",
    heads={"ForImageClassification": "AutoModelForImageClassification"},
    reads_text=False,
    reads_image=True,
    limit=no_limit,
    batch=batch_of_images,
    labels=classes,
    has_classes=True,
    readout=_readout,
    removals=("mean", "zero"),
    no_removal=(
        "an image has no tokens to {removal}; use removal 'mean' (of its patches) or 'zero'."
    ),
)
