"""Whether tokens meet through attention only, or are also mixed by something that it does not show.

Convolutions, recurrent layers and states that run along the text carry one token into another, and
no weight of attention tells of it. Every token is made to look at itself alone, and one token is
exchanged: where nothing else mixes them, the others cannot know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import ModelError, Unsupported
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.core.request import Via
from whence.models.conduct import relative_difference, two_different_tokens
from whence.models.model import Model
from whence.models.modes import Mode, met_by
from whence.models.sample import samples_of_two_lengths
from whence.trace.edits import Edit
from whence.trace.trace import Trace, trace

NEEDS = Needs.ATTENTION | Needs.HIDDEN_STATES


def mixed_beside_attention(model: Model, via: Via) -> float | None:
    """How far a token changes the others when each looks at itself alone, as a share.

    None where it cannot be tried.
    """
    passage = samples_of_two_lengths(model, reply=True)[0]
    places = _places(model, passage)
    if places is None:
        return None
    try:
        traces = _one_exchanged(model, passage, places, via)
    except (Unsupported, ModelError):
        return None
    if not all(_looks_at_itself(traced) for traced in traces):
        return None
    if model.is_encoder_decoder and "encoder" not in traces[0].attentions:
        return None  # the encoder's attention is not seen, so it was not switched off either

    differences = _of_states(traces, places[0])
    # an encoder-decoder has a second way from the text to the output
    if model.is_encoder_decoder or not differences:
        differences += _of_logits(model, traces)
    if not differences or not np.isfinite(differences).all():
        return None
    return max(differences)


def slopes_of_tokens(model: Model, passage: Passage, via: Via) -> Float[Tensor, " token"] | None:
    """How strongly the target depends on each token while every token looks at itself only.

    Where tokens meet through attention only, it is zero for all but those that the head reads.
    None where it cannot be tried.
    """
    needs = Needs.ATTENTION | Needs.EMBEDDING_GRADIENTS
    try:
        traced = _alone_with_themselves(model, [passage], via, needs)
    except (Unsupported, ModelError):
        return None
    if not _looks_at_itself(traced):
        return None
    return traced.embedding_gradients[0].abs().amax(-1)


def _places(model: Model, passage: Passage) -> tuple[int, int] | None:
    """Which token is exchanged, and for which: an early one, as a decoder looks back only."""
    if model.kind.reads_text:
        return two_different_tokens(model, passage)
    patches = np.flatnonzero(passage.unit_of >= 0).tolist()
    return (patches[0], patches[1]) if len(patches) > 1 else None


def _one_exchanged(
    model: Model, passage: Passage, places: tuple[int, int], via: Via
) -> list[Trace]:
    """The passage as it is, then with one token exchanged: in one batch where that is safe."""
    at, other = places

    def exchange(vectors: Tensor) -> Tensor:
        unseen = len(passage) - vectors.shape[1]  # tokens in front of an image's patches
        changed = vectors.clone()
        changed[-1, at - unseen] = vectors[-1, other - unseen]
        return changed

    exchanged = Edit("exchange", "embeddings", exchange)
    if model.shares_batches:
        return [_alone_with_themselves(model, [passage] * 2, via, NEEDS, [exchanged])]
    return [
        _alone_with_themselves(model, [passage], via, NEEDS),
        _alone_with_themselves(model, [passage], via, NEEDS, [exchanged]),
    ]


def _alone_with_themselves(
    model: Model, passages: Sequence[Passage], via: Via, needs: Needs, edits: Sequence[Edit] = ()
) -> Trace:
    """A trace in which every token looks at itself only."""
    if via == "interface":
        itself = Edit("itself", "attention", _itself)
        return trace(model, passages, needs=needs, edits=[*edits, itself], attention_via=via)
    with met_by(_SoftmaxOfItself(passages[0])):
        return trace(model, passages, needs=needs, edits=edits, attention_via=via)


def _itself(weights: Float[Tensor, "*any q k"], *_allowed: Tensor) -> Float[Tensor, "*any q k"]:
    """Each query looks at its own place. Across to another text, all look at its last token."""
    queries, keys = weights.shape[-2:]
    if queries == keys:
        looks = torch.eye(keys)
    else:
        looks = torch.zeros(queries, keys)
        looks[:, -1] = 1
    return looks.to(weights).expand_as(weights)


class _SoftmaxOfItself(Mode):
    """For attention that cannot be edited: whatever softmax gives as maps between tokens."""

    def __init__(self, passage: Passage) -> None:
        super().__init__()
        self.tokens = len(passage)

    def meet(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function; of a map over the text's tokens, each row looks at itself."""
        result = func(*args, **kwargs)
        if getattr(func, "__name__", "") != "softmax":
            return result
        is_map = result.ndim == 4 and result.shape[-1] == self.tokens
        return _itself(result) if is_map else result


def _looks_at_itself(traced: Trace) -> bool:
    """Whether the model did as it was told, as far as the weights that it returns show."""
    of_text = dict(traced.attentions)
    if "cross" in of_text:
        of_text.pop("decoder", None)  # between tokens that are written, not read
    for maps in of_text.values():
        if not all(torch.equal(weights, _itself(weights)) for weights in maps):
            return False
    return True


def _of_states(traces: Sequence[Trace], exchanged: int) -> list[float]:
    """By how much the last hidden states of the other tokens differ, if there is one for each."""
    states = [traced.hidden_states[-1] for traced in traces if traced.hidden_states]
    tokens = len(traces[0].passages[0])
    if not states or any(state.ndim != 3 or state.shape[1] != tokens for state in states):
        return []
    others = [place for place in range(tokens) if place != exchanged]
    plain, changed = states[0][0], states[-1][-1]
    return [relative_difference(plain[others], changed[others])]


def _of_logits(model: Model, traces: Sequence[Trace]) -> list[float]:
    """By how much the logits differ, where they are those of one place."""
    is_read_at_one_place = model.kind.has_head and not model.kind.second_text
    if not is_read_at_one_place or model.readout(traces[0].passages[0]) is None:
        return []
    return [relative_difference(traces[0].logits[0], traces[-1].logits[-1])]
