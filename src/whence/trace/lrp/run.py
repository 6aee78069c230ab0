"""One passage through a model by rules of relevance: down to the embeddings, or down to the attention maps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import ModelError, Unsupported
from whence.models.embeddings import embedded
from whence.models.model import finite
from whence.models.untouched import untouched, without_leftovers
from whence.trace.attention import Layer, Observer, can_observe, observing
from whence.trace.lrp.mode import ruling
from whence.trace.lrp.rules import DeepTaylor, Rules
from whence.trace.trace import Trace

# attention that ``output_attentions`` returns, by the kinds of a trace
RETURNED = {
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}


@dataclass(frozen=True)
class Ruled:
    """One forward pass by rules, its graph still alive."""

    logits: Float[Tensor, "1 label"]
    leaf: Float[Tensor, "1 token dim"]
    maps: dict[str, list[Float[Tensor, "1 head query key"]]]


@dataclass(frozen=True)
class Relevance:
    """Where the target's relevance came to: the tokens, and how much the head had handed down."""

    tokens: Float[Tensor, " token"]
    handed: float


def embedding_relevance(trace: Trace, i: int, rules: Rules) -> Relevance:
    """R = x·g of passage ``i``'s embeddings, by rules in terms of g.

    What the head hands down is Σ_k z_k ∂value/∂z_k over its logits z: the value itself where it is a logit or a margin.
    """
    with running(trace, i, rules) as run:
        value = trace.model.value(run.logits, [trace.targets[i]])
        down, slope = torch.autograd.grad(value.sum(), [run.logits, run.leaf])
        trace.passes.backwards[i] += 1
        relevance = _usable((run.leaf * slope).detach().sum(-1)[0])
        missing = len(trace.passages[i]) - len(
            relevance
        )  # an image model's special tokens stand in front of its patches
        return Relevance(
            nn.functional.pad(relevance, (missing, 0)), float((run.logits * down).detach().sum())
        )


def map_relevance(trace: Trace, i: int) -> dict[str, list[Float[Tensor, "head query key"]]]:
    """R^A of every attention map of passage ``i``, by Deep Taylor rules, from a relevance of one at the target's logit."""
    with running(trace, i, DeepTaylor()) as run:
        maps = [m for found in run.maps.values() for m in found]
        if not maps or not all(m.requires_grad for m in maps):
            raise Unsupported(
                f"{type(trace.model.hf).__name__} keeps its attention weights outside the graph; use a gradient method."
            )
        start = torch.zeros_like(run.logits)
        start[:, trace.targets[i].index] = 1
        found = torch.autograd.grad(run.logits, maps, start, allow_unused=True)
        trace.passes.backwards[i] += 1
        down = iter(
            [
                torch.zeros_like(m[0]) if r is None else _usable(r[0])
                for m, r in zip(maps, found, strict=True)
            ]
        )
        return {kind: [next(down) for _ in layers] for kind, layers in run.maps.items()}


def _usable(relevance: Tensor) -> Tensor:
    if not bool(torch.isfinite(relevance).all()):
        raise ModelError(
            "relevance came out not finite (NaN or infinite); load the model in float32, as half precision overflows."
        )
    return relevance


@contextmanager
def running(trace: Trace, i: int, rules: Rules) -> Iterator[Ruled]:
    """Passage ``i`` alone, so that no rule sums over padding or batch-mates; the family's eager attention, inside the graph."""
    model, passage = trace.model, trace.passages[i]
    batch = model.batch([passage])
    caught: list[Tensor] = []

    def catch(embeddings: Tensor) -> Tensor:
        caught.append(embeddings.detach().clone().requires_grad_())
        return caught[0]

    inside = can_observe(model.hf)
    observer = Observer(model.hf, keep=True)
    with model.lock, untouched(model.hf), torch.inference_mode(False), torch.enable_grad():
        if not inside:
            model.hf.set_attn_implementation("eager")
        asked = {} if inside else {"output_attentions": True}
        watched = observing(model.hf, observer) if inside else without_leftovers(model.hf)
        with watched, embedded(model, batch, catch), ruling(model.hf, rules):
            outputs = model.hf(**batch.inputs, **asked)
        logits = finite(model.read(outputs, batch))
        if not logits.requires_grad:
            raise Unsupported(
                f"{type(model.hf).__name__} computes its logits outside the graph, so no relevance comes down from them."
            )
        trace.passes.forwards[i] += 1
        maps = (
            _by_kind(observer.layers, observer.maps)
            if inside
            else _returned(outputs, "decoder" if model.is_causal else "encoder")
        )
        yield Ruled(logits, caught[0], maps)
    trace.tick()


def _by_kind(layers: list[Layer], maps: list[Tensor]) -> dict[str, list[Tensor]]:
    return {
        kind: [m for y, m in zip(layers, maps, strict=True) if y.kind == kind]
        for kind in dict.fromkeys(y.kind for y in layers)
    }


def _returned(outputs: object, own: str) -> dict[str, list[Tensor]]:
    found = {
        kind: getattr(outputs, name, None) for name, kind in {**RETURNED, "attentions": own}.items()
    }
    return {kind: [m for m in maps if m is not None] for kind, maps in found.items() if maps}
