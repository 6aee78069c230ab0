"""Attention weighted by its gradient, carried through the layers."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.registry import Needs, method
from whence.trace.lxmert import LANGUAGE, LANGUAGE_TO_VISION, SIDES, VISION, VISION_TO_LANGUAGE
from whence.trace.relevance import (
    CrossLayer,
    encoder_decoder,
    positive_mean,
    self_row,
    two_modalities,
)
from whence.trace.rows import of_both_sides, padded, text_length
from whence.trace.trace import Trace


@method(
    "generic-attention",
    version=1,
    cites="chefer2021generic",
    aliases=("generic-attention-explainability",),
)
@dataclass(frozen=True, slots=True)
class GenericAttention:
    """How much of each word reaches the output through attention that speaks for the target.

    A layer counts with the positive part of attention times its gradient, averaged over heads;
    layers are multiplied, with the identity for the residual stream. The identity's own 1 for the
    read-out token is taken off again.
    """

    needs: ClassVar[Needs] = Needs.ATTENTION_GRADIENTS
    signed: ClassVar[bool] = False
    # also where text and image are streams of their own, which other methods of attention refuse
    two_streams: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One forward and one backward pass, with all attention maps and their gradients kept."
    )
    misleads: ClassVar[str] = (
        "It has no sign: what speaks against the target is cut off, and such a word may score "
        "zero. Ask again with the other label as the target."
    )

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        layers = {kind: weighted(trace, kind) for kind in trace.attentions}
        return relevance(trace, layers)


def weighted(trace: Trace, kind: str) -> list[Float[Tensor, "ask query key"]]:
    """Ā of every layer of a kind."""
    pairs = zip(trace.attention_gradients[kind], trace.attentions[kind], strict=True)
    return [positive_mean(gradient, weights) for gradient, weights in pairs]


def relevance(
    trace: Trace, layers: dict[str, list[Float[Tensor, "ask query key"]]]
) -> Float[Tensor, "ask token"]:
    """The row of R that speaks for the output, by the rules for the model's kinds of attention."""
    if set(layers) == {"encoder", "decoder", "cross"}:
        return _between_two_halves(trace, layers)
    if set(layers) == set(SIDES):
        return _of_two_modalities(trace, layers)
    if len(layers) > 1:
        raise Unsupported(
            f"no rule joins attention of the kinds {', '.join(layers)}; use a gradient method."
        )
    (only,) = layers.values()
    start = torch.zeros_like(only[0][:, 0])
    if any(layer.shape[1:] != (len(trace.content[0]),) * 2 for layer in only):
        raise Unsupported(
            f"{type(trace.model.hf).__name__} does not attend from every token to every token; "
            "use a gradient method."
        )
    for row, passage in zip(start, trace.passages, strict=True):
        at = trace.model.readout(passage)
        if at is None:
            row[: len(passage)] = 1 / len(passage)
        else:
            row[at] = 1
    return self_row(start, only)


def _between_two_halves(
    trace: Trace, layers: dict[str, list[Float[Tensor, "ask query key"]]]
) -> Float[Tensor, "ask token"]:
    rows = []
    for i, passage in enumerate(trace.passages):
        n, at = text_length(trace, i), trace.model.readout(passage) or 0
        # nothing after the place that is read can reach the target, so its gradients are zero:
        # the decoder may be cut there
        encoder = [layer[i, :n, :n] for layer in layers["encoder"]]
        own = [layer[i, : at + 1, : at + 1] for layer in layers["decoder"]]
        cross = [layer[i, : at + 1, :n] for layer in layers["cross"]]
        decoder = list(zip(own, cross, strict=True))
        of_text, of_written = encoder_decoder(encoder, decoder)
        rows.append(of_both_sides(trace, i, of_text[at], lambda own=of_written[at]: own))
    return padded(rows, trace.content.shape[1])


def _of_two_modalities(
    trace: Trace, layers: dict[str, list[Float[Tensor, "ask query key"]]]
) -> Float[Tensor, "ask token"]:
    depth = len(layers[LANGUAGE_TO_VISION])
    own_language = layers[LANGUAGE][: len(layers[LANGUAGE]) - depth]
    own_vision = layers[VISION][: len(layers[VISION]) - depth]
    # the last layers of both streams follow the layers in which they look at each other
    crossed = zip(
        layers[LANGUAGE_TO_VISION],
        layers[VISION_TO_LANGUAGE],
        layers[LANGUAGE][-depth:],
        layers[VISION][-depth:],
        strict=True,
    )
    fours = list(crossed)
    scores = []
    for i, passage in enumerate(trace.passages):
        cross = []
        for to_vision, to_language, language, vision in fours:
            cross.append(CrossLayer(to_vision[i], to_language[i], language[i], vision[i]))
        from_text, from_image = two_modalities(
            [layer[i] for layer in own_language], [layer[i] for layer in own_vision], cross
        )
        at = trace.model.readout(passage) or 0
        scores.append(torch.cat([from_text[at], from_image[at]]))
    return torch.stack(scores)
