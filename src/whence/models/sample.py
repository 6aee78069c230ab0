"""Short inputs that a model can read, to try out how it behaves before a user's text comes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from whence.core.passage import Passage, truncate
from whence.core.target import Target
from whence.models.lxmert import reads_regions
from whence.models.patches import ANY_SIZE, channels_of, picture_size
from whence.models.texts import tokenize

if TYPE_CHECKING:
    from whence.models.model import Model

PROMPT = "The quick brown fox didn't jump over the lazy dog, and nobody minded."
# for models that read two texts
QUESTION = "Who minded?"
CHOICES = ("Nobody minded.", "The fox did.")
# tokens of a short and of a longer text: enough to see a difference, few enough to cost nothing
SHORT, LONGER = 7, 11
SHORTEST = (6, 8)  # the same for the first look, whose passes every model pays


def sample(model: Model, reply: bool = False) -> Passage:
    """A short input that the model can read; with ``reply``, also a text for the decoder's side."""
    if not model.kind.reads_text:
        return model.encode(picture(model))
    if model.kind.reads_image:
        return model.encode(PROMPT, image=picture(model), overflow="truncate")

    if model.kind.second_text:
        pair = CHOICES if model.kind.offers_choices else PROMPT
        return model.encode(QUESTION, pair, overflow="truncate")

    two_sided = reply and model.is_encoder_decoder and not model.kind.reads_twice
    passage = model.encode(PROMPT, reply=PROMPT if two_sided else None, overflow="truncate")
    return read_somewhere(model, passage)


def samples_of_two_lengths(
    model: Model, reply: bool = False, tokens: tuple[int, int] = (SHORT, LONGER)
) -> list[Passage]:
    """A short text and a longer one; of an image model two images, which have one length.

    With ``reply``, the decoder of an encoder-decoder has a short text too.
    """
    if not model.kind.reads_text:
        return [model.encode(picture(model, seed)) for seed in (0, 1)]
    if model.kind.reads_image:
        return [sample(model)]

    if model.kind.offers_choices:
        return [sample(model)]

    first, second, lengths = PROMPT, None, list(tokens)
    if model.kind.second_text:
        first, second = QUESTION, PROMPT
        # the second text is what is cut, and something of it is left
        asked = len(tokenize(model, QUESTION, None, "token"))
        lengths = [asked + length for length in tokens]
    whole = tokenize(model, first, second, "token")
    texts = []
    for length in lengths:
        limit = length if model.limit is None else min(length, model.limit)
        texts.append(read_somewhere(model, truncate(whole, min(limit, len(whole)))))
    if reply and model.is_encoder_decoder and not model.kind.reads_twice:
        return [replace(text, reply=texts[0]) for text in texts]
    return texts


def read_somewhere(model: Model, passage: Passage) -> Passage:
    """The passage; where a model is read at one unit, it is the second one."""
    if model.kind.fills_a_mask or model.kind.tags_words:
        return model.placed(passage, Target(at=min(1, len(passage.names) - 1)))
    return passage


def picture(model: Model, seed: int = 0) -> Any:
    """Noise of the size that the model reads: pixels, or the regions of a detector."""
    rng = np.random.default_rng(seed)
    if reads_regions(model):
        whole_picture = np.array([0.0, 0.0, 1.0, 1.0], dtype=np.float32)
        features = rng.normal(size=(4, model.config.visual_feat_dim))
        return {
            "features": features.astype(np.float32),
            "boxes": np.tile(whole_picture, (4, 1)),
        }

    height, width = picture_size(model) or (ANY_SIZE, ANY_SIZE)
    return rng.normal(size=(channels_of(model), height, width)).astype(np.float32)
