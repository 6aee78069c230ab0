"""Relevance of attention, weighted by its gradient, carried through the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import SettingsError, Unsupported
from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.methods.generic_attention import relevance
from whence.trace.lrp.run import map_relevance
from whence.trace.relevance import positive_mean
from whence.trace.trace import Trace

# Measured on small models: in bfloat16 scores are up to 95 % off those of the same weights in
# float32. Said by the doctor, and in a refusal, of weights of half precision.
COARSE = "in {} the divisions of these rules lose most of their digits: load the model in float32"


@method(
    "transformer-attribution",
    version=1,
    cites="chefer2021transformer",
    aliases=("transformer-explainability",),
)
@dataclass(frozen=True, slots=True)
class TransformerAttribution:
    """How much of each word reaches the output through attention, by its relevance times gradient.

    As ``generic-attention``, with the relevance that reaches each weight by layer-wise propagation
    in the place of the weight.
    """

    normalise: bool = setting(
        False,
        "Whether the rows of every layer are scaled to one, as the authors do for BERT and "
        "not for ViT.",
    )
    start_layer: int = setting(0, "The lowest layer that counts; those below it are left out.")

    needs: ClassVar[Needs] = Needs.ATTENTION_GRADIENTS | Needs.ATTENTION_GRAPH
    signed: ClassVar[bool] = False
    price: ClassVar[str] = (
        "Two forward and two backward passes, with all attention maps and their gradients "
        "kept; one of each takes about three times as long as usual."
    )
    misleads: ClassVar[str] = (
        "It has no sign: what speaks against the target is cut off. Scores may be tiny where "
        "the model is sure; compare them within one text."
    )

    def passes(self, units: int) -> Passes:
        del units
        return Passes(forwards=1, backwards=1)  # a run of its own, for relevance to pass through

    def __call__(self, trace: Trace) -> list[Scores]:
        note = ""
        if trace.model.dtype.itemsize < 4:
            note = COARSE.format(trace.model.dtype)
        return Scores.rows(self._scores(trace), notes=[note] * len(trace.passages))

    def _scores(self, trace: Trace) -> Float[Tensor, "ask token"]:
        layers = weighted(trace)
        fewest = min(map(len, layers.values()))
        if not 0 <= self.start_layer < fewest:
            raise SettingsError(
                f"start_layer {self.start_layer} is outside the {fewest} layers of attention "
                f"(0 to {fewest - 1})."
            )
        layers = {kind: stack[self.start_layer :] for kind, stack in layers.items()}
        if not self.normalise:
            return relevance(trace, layers)
        if len(layers) > 1:
            raise Unsupported(
                "normalise= is for one stream of tokens; "
                "the rules of an encoder-decoder normalise in their own way."
            )
        (only,) = layers.values()
        scores = torch.zeros_like(only[0][:, 0])
        for i, passage in enumerate(trace.passages):
            n, at = len(passage), trace.model.readout(passage)
            scores[i, :n] = rolled_out([layer[i, :n, :n] for layer in only], at)
        return scores


def weighted(trace: Trace) -> dict[str, list[Float[Tensor, "ask query key"]]]:
    """Ā of every layer, by kind: the positive part of gradient times relevance, over heads.

    It is the mean over heads, and zero at padding.
    """
    layers: dict[str, list[Float[Tensor, "ask query key"]]] = {}
    for kind, slopes in trace.attention_gradients.items():
        layers[kind] = [torch.zeros_like(positive_mean(slope, slope)) for slope in slopes]
    for i in range(len(trace.passages)):
        for kind, relevances in map_relevance(trace, i).items():
            slopes = trace.attention_gradients[kind]
            for layer, slope, relevant in zip(layers[kind], slopes, relevances, strict=True):
                queries, keys = relevant.shape[1:]
                if relevant.shape != slope[i, :, :queries, :keys].shape:
                    raise Unsupported(
                        f"{type(trace.model.hf).__name__} gives out attention of another size "
                        f"({kind}: {_times(slope.shape[1:])}) than it computes with "
                        f"({_times(relevant.shape)}), so relevance cannot be laid on it. "
                        "generic-attention and gradient methods still work."
                    )
                layer[i, :queries, :keys] = positive_mean(slope[i, :, :queries, :keys], relevant)
    return layers


def _times(sizes: Sequence[int]) -> str:
    return " × ".join(map(str, sizes))


def rolled_out(
    layers: list[Float[Tensor, "token token"]], at: int | None
) -> Float[Tensor, " token"]:
    """Row ``at`` of Π (I + Ā)/rows, later layers on the left, without what never left its place.

    ``at=None`` is the mean over rows.
    """
    size = len(layers[0])
    if at is None:
        row = layers[0].new_full((size,), 1 / size)
    else:
        row = layers[0].new_zeros(size)
        row[at] = 1
    moved = torch.zeros_like(row)
    for layer in reversed(layers):
        total = 1 + layer.sum(-1)
        row, moved = row / total, moved / total
        moved = moved + (row + moved) @ layer
    return moved
