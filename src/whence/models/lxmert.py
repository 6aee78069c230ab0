"""LXMERT's input and output: the regions that a detector found, and scores of answers.

What concerns its attention is in trace/lxmert.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from whence.core.errors import InputError
from whence.core.passage import Passage, Regions

if TYPE_CHECKING:
    from whence.models.model import Model


def reads_regions(model: Model) -> bool:
    """Whether an image goes in as the regions that a detector found, and not as pixels."""
    return hasattr(model.config, "visual_feat_dim")


def answers(model: Model) -> int | None:
    """How many answers there are, which LXMERT counts apart from its labels; None elsewhere."""
    return getattr(model.config, "num_qa_labels", None)


def answer_scores(outputs: Any) -> Tensor | None:
    """The logits of the answers, under LXMERT's own name."""
    return getattr(outputs, "question_answering_score", None)


def picture_inputs(model: Model, passages: Sequence[Passage]) -> dict[str, Tensor] | None:
    """What the model is given of the passages' regions; None where a passage has none."""
    regions = [p.regions for p in passages if p.regions is not None]
    if len(regions) < len(passages):
        return None

    features = torch.from_numpy(np.stack([r.features for r in regions]))
    boxes = torch.from_numpy(np.stack([r.boxes for r in regions]))
    return {
        "visual_feats": features.to(model.device, model.dtype),
        "visual_pos": boxes.to(model.device, model.dtype),
    }


def regions_of(model: Model, image: Any) -> Regions:
    """What a caller passes as ``image=``, checked against the sizes that the model reads."""
    features, boxes = _arrays(model, image)
    feature_size = model.config.visual_feat_dim
    box_size = model.config.visual_pos_dim
    count = len(boxes)
    if features.shape != (count, feature_size) or boxes.shape != (count, box_size) or not count:
        raise InputError(
            f"features are [region, {feature_size}] and boxes [region, {box_size}] "
            f"for this model; got {features.shape} and {boxes.shape}."
        )

    are_shares = (boxes >= 0).all() and (boxes <= 1).all()
    if not (np.isfinite(features).all() and are_shares):
        raise InputError(
            "features are finite, and boxes are shares of the image's width and height, "
            "from 0 to 1."
        )
    return Regions(features, boxes)


def _arrays(model: Model, image: Any) -> tuple[np.ndarray, np.ndarray]:
    """The features and the boxes as arrays of whatever shape they have."""
    if isinstance(image, Regions):
        return image.features, image.boxes
    if not isinstance(image, Mapping):
        raise InputError(
            f"{type(model.hf).__name__} reads the regions that a detector found, "
            f"not a {type(image).__name__}: "
            'image={"features": [region, dim], "boxes": [region, 4]}.'
        )

    if set(image) != {"features", "boxes"}:
        names = ", ".join(map(repr, image)) or "nothing"
        raise InputError(f"regions have 'features' and 'boxes'; got {names}.")

    try:
        features = np.asarray(image["features"], dtype=np.float32)
        boxes = np.asarray(image["boxes"], dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(
            "features and boxes are arrays of numbers, a row for each region."
        ) from None
    return features, boxes
