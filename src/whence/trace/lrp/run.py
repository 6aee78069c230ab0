"""One passage through a model by rules of relevance: down to the embeddings, or to the maps."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain, islice

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import ModelError, Unsupported
from whence.models.embeddings import embedded
from whence.models.model import Model, finite
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched, without_leftovers
from whence.models.values import rows_at
from whence.trace.attention import Layer, Observer, can_observe, observing
from whence.trace.lrp.mode import ruling
from whence.trace.lrp.rules import DeepTaylor, Rules
from whence.trace.trace import STILL_WORK, Trace, check_graph, slopes_of

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
    """What came to the tokens of the target's relevance, and how much the head had handed down."""

    tokens: Float[Tensor, " token"]
    handed: float


def embedding_relevance(trace: Trace, i: int, rules: Rules) -> Relevance:
    """R = x·g of passage ``i``'s embeddings, by rules in terms of g.

    What the head hands down is Σ_k z_k ∂value/∂z_k over its logits z: the value itself where it is
    a logit or a margin.
    """
    model = trace.model
    with model.lock, running(model):
        run = run_by(trace, i, rules)
        value = model.value(run.logits, [trace.targets[i]])
        slope, down = slopes_of(model, value.sum(), [run.leaf, run.logits])
        trace.passes.backwards[i] += 1
        relevance = _usable((run.leaf * slope).detach().sum(-1)[0])
        handed = float((run.logits * down).detach().sum())
    trace.tick()
    # an image model's special tokens stand in front of its patches
    missing = len(trace.passages[i]) - len(relevance)
    return Relevance(nn.functional.pad(relevance, (missing, 0)), handed)


def map_relevance(trace: Trace, i: int) -> dict[str, list[Float[Tensor, "head query key"]]]:
    """R^A of every attention map of passage ``i``, by Deep Taylor rules.

    It begins as a relevance of one at the target's logit.
    """
    model = trace.model
    with model.lock, running(model):
        run = run_by(trace, i, DeepTaylor())
        maps = list(chain.from_iterable(run.maps.values()))
        if not maps or not all(m.requires_grad for m in maps):
            raise Unsupported(
                f"{type(model.hf).__name__} keeps its attention weights outside the graph; "
                "use a gradient method."
            )
        start = torch.zeros_like(run.logits)
        start[:, trace.targets[i].index] = 1
        slopes = torch.autograd.grad(run.logits, maps, start, allow_unused=True)
        trace.passes.backwards[i] += 1
        if all(slope is None for slope in slopes):
            raise Unsupported(
                f"no relevance comes down to the attention weights of {type(model.hf).__name__}: "
                f"its computation is cut out of the graph behind them. {STILL_WORK}"
            )
        relevances = iter([_of_map(m, slope) for m, slope in zip(maps, slopes, strict=True)])
    trace.tick()
    return {kind: list(islice(relevances, len(run.maps[kind]))) for kind in run.maps}


def _of_map(weights: Tensor, relevance: Tensor | None) -> Float[Tensor, "head query key"]:
    """Zero where the target does not depend on the map."""
    if relevance is None:
        return torch.zeros_like(weights[0])
    return _usable(relevance[0])


def _usable(relevance: Tensor) -> Tensor:
    if not bool(torch.isfinite(relevance).all()):
        raise ModelError(
            "relevance came out not finite (NaN or infinite); "
            "load the model in float32, as half precision overflows."
        )
    return relevance


def running(model: Model) -> AbstractContextManager[None]:
    """The model with a graph, for the length of a block."""
    return unbroken(untouched(model.hf), torch.inference_mode(False), torch.enable_grad())


def run_by(trace: Trace, i: int, rules: Rules) -> Ruled:
    """Passage ``i`` alone, so that no rule sums over padding or batch-mates.

    The family's eager attention runs inside the graph. The caller holds the model's lock and is
    inside ``running``.
    """
    model = trace.model
    batch = model.batch([trace.passages[i]])
    caught: list[Tensor] = []

    def catch(embeddings: Tensor) -> Tensor:
        caught.append(embeddings.detach().clone().requires_grad_())
        # some models change what they are given in place, which a leaf does not allow
        return caught[0].clone()

    is_observed = can_observe(model.hf)
    observer = Observer(model.hf, keep=True)
    if is_observed:
        watched, asked = observing(model.hf, observer), {}
    else:
        model.hf.set_attn_implementation("eager")
        watched, asked = without_leftovers(model.hf), {"output_attentions": True}
    with watched, embedded(model, batch, catch), ruling(model.hf, rules):
        passed = model.run_batch(batch, **asked)

    logits = finite(model.read(passed.outputs, passed.batch))
    if logits.ndim == 3 and trace.targets[i].until is None:
        logits = rows_at(logits, [trace.targets[i]])
    check_graph(model, logits)
    trace.passes.forwards[i] += 1
    if is_observed:
        maps = _by_kind(observer.layers, observer.maps)
    else:
        maps = _returned(passed.outputs, "decoder" if model.is_causal else "encoder")
    return Ruled(logits, caught[0], maps)


def _by_kind(layers: list[Layer], maps: list[Tensor]) -> dict[str, list[Tensor]]:
    by_kind: dict[str, list[Tensor]] = {}
    for layer, weights in zip(layers, maps, strict=True):
        by_kind.setdefault(layer.kind, []).append(weights)
    return by_kind


def _returned(outputs: object, own: str) -> dict[str, list[Tensor]]:
    """What ``output_attentions`` returns, by kind; ``own`` is the kind of plain ``attentions``."""
    by_kind = {}
    for name, kind in {**RETURNED, "attentions": own}.items():
        maps = getattr(outputs, name, None)
        if maps:
            by_kind[kind] = [weights for weights in maps if weights is not None]
    return by_kind
