"""Visual question answering: one of some answers for a text with an image behind it.

LXMERT reads the image as the regions that a detector found, ViLT as patches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.models import lxmert, vilt
from whence.models.batches import Batch, text_inputs
from whence.models.labels import named
from whence.models.limits import configured_limit
from whence.models.readouts import at_readout, pooled
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _labels(model: Model) -> Mapping[int, str]:
    return named(model.config.id2label, lxmert.answers(model) or model.config.num_labels)


def _batch(model: Model, passages: Sequence[Passage]) -> Batch:
    """Texts and their images, all of one size.

    Padding would stand between the two, and no token would be where its passage has it.
    """
    sizes = {(int(p.of_text.sum()), len(p)) for p in passages}
    if len(sizes) > 1:
        raise Unsupported(
            "texts with images of several sizes do not share a batch; "
            "trace them one at a time, as whence.explain does."
        )

    family = lxmert if lxmert.reads_regions(model) else vilt
    picture = family.picture_inputs(model, passages)
    if picture is None:
        raise InputError(
            "this model reads a text with an image: model.encode(text, image=…) makes its passage."
        )

    ids = [p.ids[p.of_text] for p in passages]
    types = [p.types[p.of_text] for p in passages if p.types is not None]
    inputs = text_inputs(model, ids, types) | picture
    return Batch(inputs, [len(p) for p in passages], None)


def _never_pads(_model: Model) -> bool:
    """Padding would stand between the text and its image."""
    return False


def _read(model: Model, outputs: Any, batch: Batch) -> Float[Tensor, "batch label"]:
    logits = getattr(outputs, "logits", None)
    if logits is None:
        logits = lxmert.answer_scores(outputs)
    return at_readout(model, logits, batch)


IMAGE_TEXT = Task(
    name="image-text",
    title="visual question answering (LXMERT, ViLT)",
    heads={
        "LxmertForQuestionAnswering": "AutoModelForQuestionAnswering",
        "ViltForQuestionAnswering": "AutoModelForVisualQuestionAnswering",
    },
    families=("lxmert", "vilt"),
    reads_image=True,
    limit=configured_limit,
    batch=_batch,
    pads=_never_pads,
    no_windows="a text with an image cannot be cut into windows. Use overflow='truncate'.",
    labels=_labels,
    has_classes=True,
    read=_read,
    readout=pooled,
    removals=(),
    no_removal=(
        "{architecture} reads a text with an image, and there is no removal for regions or "
        "patches beside a text yet; use generic-attention."
    ),
)
