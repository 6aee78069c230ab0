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
from whence.trace.trace import Trace


@method("generic-attention", version=1, cites="chefer2021generic")
@dataclass(frozen=True, slots=True)
class GenericAttention:
    """What attention carries from each token to the place that the output is read from, counted where it speaks for the target.

    A layer counts with the positive part of attention times its gradient, averaged over heads; layers are multiplied, with the
    identity for the residual stream. The identity's own 1 for the read-out token is taken off again.
    """

    needs: ClassVar[Needs] = Needs.ATTENTION_GRADIENTS
    signed: ClassVar[bool] = False
    two_streams: ClassVar[bool] = (
        True  # also where text and image are streams of their own, which other methods of attention are refused
    )

    def __call__(self, trace: Trace) -> Float[Tensor, "batch token"]:
        layers = {kind: weighted(trace, kind) for kind in trace.attentions}
        return relevance(trace, layers)


def weighted(trace: Trace, kind: str) -> list[Float[Tensor, "batch query key"]]:
    """Ā of every layer of a kind."""
    pairs = zip(trace.attention_gradients[kind], trace.attentions[kind], strict=True)
    return [positive_mean(gradient, weights) for gradient, weights in pairs]


def relevance(
    trace: Trace, layers: dict[str, list[Float[Tensor, "batch query key"]]]
) -> Float[Tensor, "batch token"]:
    """The row of R that speaks for the output, by the rules that fit the model's kinds of attention."""
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
            f"{type(trace.model.hf).__name__} does not attend from every token to every token; use a gradient method."
        )
    for row, passage in zip(start, trace.passages, strict=True):
        at = trace.model.readout(passage)
        row[slice(0, len(passage)) if at is None else at] = 1 / len(passage) if at is None else 1
    return self_row(start, only)


def _between_two_halves(
    trace: Trace, layers: dict[str, list[Float[Tensor, "batch query key"]]]
) -> Float[Tensor, "batch token"]:
    scores = torch.zeros_like(layers["encoder"][0][:, 0])
    for i, passage in enumerate(trace.passages):
        n, at = len(passage), trace.model.readout(passage) or 0
        # nothing after the place that is read can reach the target, so its gradients are zero: the decoder may be cut there
        own = [layer[i, : at + 1, : at + 1] for layer in layers["decoder"]]
        cross = [layer[i, : at + 1, :n] for layer in layers["cross"]]
        scores[i, :n] = encoder_decoder(
            [layer[i, :n, :n] for layer in layers["encoder"]], list(zip(own, cross, strict=True))
        )[at]
    return scores


def _of_two_modalities(
    trace: Trace, layers: dict[str, list[Float[Tensor, "batch query key"]]]
) -> Float[Tensor, "batch token"]:
    depth = len(layers[LANGUAGE_TO_VISION])
    own = {kind: layers[kind][: len(layers[kind]) - depth] for kind in (LANGUAGE, VISION)}
    crossed = [layers[k] for k in (LANGUAGE_TO_VISION, VISION_TO_LANGUAGE)] + [
        layers[k][-depth:] for k in (LANGUAGE, VISION)
    ]
    scores = []
    for i, passage in enumerate(trace.passages):
        cross = [CrossLayer(*(layer[i] for layer in four)) for four in zip(*crossed, strict=True)]
        from_text, from_image = two_modalities(
            [layer[i] for layer in own[LANGUAGE]], [layer[i] for layer in own[VISION]], cross
        )
        at = trace.model.readout(passage) or 0
        scores.append(torch.cat([from_text[at], from_image[at]]))
    return torch.stack(scores)
