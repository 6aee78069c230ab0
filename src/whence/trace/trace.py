"""The Trace: one forward, and when asked one backward, of one or several passages, with what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.registry import ANY_ATTENTION, GRADIENTS, WHOLE_MAPS, Needs
from whence.core.target import Target, as_target
from whence.models.embeddings import embedded
from whence.models.model import Batch, Model, finite
from whence.models.untouched import untouched, without_leftovers
from whence.trace.attention import Layer, Observer, can_observe, observing
from whence.trace.edits import Edit
from whence.trace.lxmert import Watched, is_lxmert, watching
from whence.trace.reducers import Block, HeadMean, Reducer, ValueNorm

Via = Literal["auto", "interface", "output"]
ASKED = "attention"  # the name of the caller's own single reducer
RERUN_TOKENS = 2048  # of one batch of reruns; past this a CPU's caches gain nothing


@dataclass
class Passes:
    """Counts sequences through the model, forwards and backwards, for each passage."""

    forwards: list[int]
    backwards: list[int]


@dataclass(frozen=True)
class Head:
    """What the model said, and the number that is being explained."""

    logits: Float[Tensor, "batch label"]
    values: Float[Tensor, " batch"]


@dataclass(frozen=True, eq=False)
class Trace:
    """What one run showed. Tensors are detached, padded to the longest passage, and special tokens are in their places.

    ``attentions[kind][layer]`` is "batch head query key" (or what the reducer made of it), ``layers[kind]`` names the modules,
    ``reduced[name][kind][layer]`` is what each named reducer made.
    """

    model: Model
    passages: tuple[Passage, ...]
    targets: tuple[Target, ...]
    embeddings: Float[Tensor, "batch token dim"]
    head: Head | None  # None for a model without one
    gradients: Float[Tensor, "batch token dim"] | None = None
    attentions: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    attention_gradients: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    reduced: dict[str, dict[str, tuple[Tensor, ...]]] = field(default_factory=dict)
    layers: dict[str, tuple[Layer, ...]] = field(default_factory=dict)
    hidden_states: tuple[Tensor, ...] = ()
    attention_via: str = "own"
    passes: Passes = field(default_factory=lambda: Passes([], []))
    tick: Callable[[], None] = lambda: (
        None
    )  # called after each batch of reruns: a progress bar moves

    @property
    def logits(self) -> Float[Tensor, "batch label"]:
        """What the head says of each passage, where it is read."""
        return self._head.logits

    @property
    def values(self) -> Float[Tensor, " batch"]:
        """The target's value, for each passage."""
        return self._head.values

    @property
    def _head(self) -> Head:
        if self.head is None:
            raise Unsupported(
                f"{type(self.model.hf).__name__} has no head, so there is no number to explain."
            )
        return self.head

    @property
    def embedding_gradients(self) -> Float[Tensor, "batch token dim"]:
        """The target's slope along each entry of each token's embedding."""
        self.check_embeddings()
        if self.gradients is None:
            raise Unsupported(
                "this trace was made without gradients; ask for Needs.EMBEDDING_GRADIENTS."
            )
        return self.gradients

    @cached_property
    def head_means(self) -> dict[str, tuple[Float[Tensor, "batch query key"], ...]]:
        """Attention as the mean over heads, by kind and layer."""
        made = self.reduced.get("head-mean")
        if made is None and not self.attentions:
            raise Unsupported("this trace was made without attention; ask for Needs.HEAD_MEANS.")
        return made or {k: tuple(m.mean(1) for m in maps) for k, maps in self.attentions.items()}

    @property
    def value_weighted(self) -> dict[str, tuple[Float[Tensor, "batch query key"], ...]]:
        """Attention times the norm of the value vector that it weights, the mean over heads."""
        if "value-weighted" not in self.reduced:
            raise Unsupported(
                "the value vectors of this model cannot be seen (its attention is outside AttentionInterface), "
                "so attention cannot be weighted by their norms; use attention-mean or rollout."
            )
        return self.reduced["value-weighted"]

    @cached_property
    def content(self) -> Bool[Tensor, "batch token"]:
        """True for tokens of the text, False for special tokens and padding."""
        longest = max(len(p) for p in self.passages)
        rows = [np.pad(p.unit_of >= 0, (0, longest - len(p))) for p in self.passages]
        return torch.from_numpy(np.stack(rows)).to(self.model.device)

    def embeddings_of(self, i: int) -> Float[Tensor, "token dim"]:
        """The embeddings of one passage, without padding."""
        self.check_embeddings()
        return self.embeddings[i, : len(self.passages[i])]

    def check_embeddings(self) -> None:
        """Raise where they are those of half of the input: zeros for the other half would look like an answer."""
        if self.model.kind.reads_text and self.model.kind.reads_image:
            raise Unsupported(
                f"of what {type(self.model.hf).__name__} reads, only the text's embeddings are seen, so a method of gradients along "
                "embeddings would say nothing of the image; use generic-attention."
            )

    def values_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, " point"]:
        """The value of passage ``i``'s target at other embeddings."""
        with torch.inference_mode(False), torch.no_grad():
            return torch.cat([value for _, value in self._rerun(i, points)])

    def gradients_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "point token dim"]:
        """The gradient of passage ``i``'s target at other embeddings: along a path, in a cloud."""
        slopes = []
        with torch.inference_mode(False), torch.enable_grad():
            for leaf, value in self._rerun(i, points):
                slopes += torch.autograd.grad(value.sum(), [leaf])
                self.passes.backwards[i] += len(leaf)
        return torch.cat(slopes)

    def _rerun(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of (embeddings, values), with the model's own fast attention."""
        self.check_embeddings()
        model, passage = self.model, self.passages[i]
        with model.lock, untouched(model.hf):
            for chunk in points.split(max(1, RERUN_TOKENS // len(passage)) if model.pads else 1):
                batch = model.batch([passage] * len(chunk))
                leaf = chunk.detach().clone().requires_grad_(torch.is_grad_enabled())
                with embedded(model, batch, lambda _, leaf=leaf: leaf):
                    logits = finite(model.read(model.hf(**batch.inputs), batch))
                self.passes.forwards[i] += len(chunk)
                yield leaf, model.value(logits, [self.targets[i]] * len(chunk))
                self.tick()


def trace(
    model: Model,
    passages: Sequence[Passage],
    target: Target | str | int | list[Target] | None = None,
    needs: Needs = Needs.NOTHING,
    *,
    reducer: Reducer | None = None,
    reducers: Mapping[str, Reducer] | None = None,
    edits: Sequence[Edit] = (),
    attention_via: Via = "auto",
    tick: Callable[[], None] = lambda: None,
) -> Trace:
    """Run passages that fit one batch, and keep what ``needs`` asks for.

    >>> import whence
    >>> from whence.core.registry import Needs
    >>> model = whence.load("sentiment")
    >>> t = trace(model, [model.encode("not bad")], needs=Needs.ATTENTION)
    >>> t.attentions["encoder"][0].shape[0], len(t.attentions["encoder"]) == len(t.layers["encoder"])
    (1, True)
    """
    edits_attention = any(e.where != "embeddings" for e in edits)
    wants_maps = bool(needs & ANY_ATTENTION) or reducer is not None or bool(reducers)
    if reducer is not None and needs & Needs.ATTENTION_GRADIENTS:
        raise Unsupported(
            "a reducer keeps no whole map, so there is nothing to take a gradient of; ask for one or the other."
        )
    via = _path(model, attention_via, wants_maps or edits_attention, edits_attention)
    chosen = {
        **({} if reducer is None else {ASKED: reducer}),
        **(reducers or {}),
        **_reducers_of(needs, via),
    }
    keep = bool(needs & WHOLE_MAPS) and reducer is None
    batch = model.batch(passages)
    backward = bool(needs & GRADIENTS)
    with (
        model.lock,
        untouched(model.hf),
        torch.inference_mode(False),
        torch.enable_grad() if backward else torch.no_grad(),
    ):
        run = _forward(model, batch, needs, keep, chosen, edits, via)
        if not model.kind.has_head and not backward:
            targets, head, slopes = (), None, []
        else:
            logits = finite(model.read(run.outputs, batch))
            targets = _resolve(model, target, logits)
            head = Head(logits, model.value(logits, targets))
            slopes = _backward(head.values, run, needs) if backward else []
    kinds = list(dict.fromkeys(layer.kind for layer in run.layers)) if wants_maps else []
    reduced = {
        name: {k: _of_kind(k, run.layers, made) for k in kinds}
        for name, made in run.reduced.items()
    }
    maps = (
        {k: _of_kind(k, run.layers, [m.detach() for m in run.maps]) for k in kinds}
        if run.maps
        else {}
    )
    return Trace(
        model=model,
        passages=tuple(passages),
        targets=targets,
        embeddings=_in_place(run.leaf.detach(), batch),
        head=None if head is None else Head(head.logits.detach(), head.values.detach()),
        gradients=_in_place(slopes[0], batch) if slopes else None,
        attentions=reduced.pop(ASKED, maps),
        attention_gradients={k: _of_kind(k, run.layers, slopes[1:]) for k in kinds}
        if len(slopes) > 1
        else {},
        reduced=reduced,
        layers={k: _of_kind(k, run.layers, run.layers) for k in kinds},
        hidden_states=_hidden_states(run.outputs) if needs & Needs.HIDDEN_STATES else (),
        attention_via=via,
        passes=Passes([1] * len(passages), [int(backward)] * len(passages)),
        tick=tick,
    )


@dataclass(frozen=True)
class _Run:
    """One forward pass, its graph still alive."""

    outputs: Any
    leaf: Tensor  # the embeddings that the model ran on
    layers: list[Layer]
    maps: list[Tensor]
    reduced: Mapping[str, list[Tensor]]


def _reducers_of(needs: Needs, via: str) -> dict[str, Reducer]:
    """What the needs ask for beside whole maps, from which the mean over heads follows anyway."""
    found: dict[str, Reducer] = {}
    if needs & Needs.HEAD_MEANS and not needs & WHOLE_MAPS:
        found["head-mean"] = HeadMean()
    if needs & Needs.VALUE_WEIGHTED and via == "interface":
        found["value-weighted"] = ValueNorm()
    return found


def _forward(
    model: Model,
    batch: Batch,
    needs: Needs,
    keep: bool,
    reducers: Mapping[str, Reducer],
    edits: Sequence[Edit],
    via: str,
) -> _Run:
    observer = Observer(model.hf, keep=keep, reducers=reducers, edits=edits)
    asked = {"output_hidden_states": True} if needs & Needs.HIDDEN_STATES else {}
    if via == "output":
        asked["output_attentions"] = True
        model.hf.set_attn_implementation("eager")
    caught: list[Tensor] = []

    def catch(old: Tensor) -> Tensor:
        for edit in edits:
            if edit.where == "embeddings":
                old = edit.change(old)
        caught.append(old.detach().clone().requires_grad_(torch.is_grad_enabled()))
        return caught[0]

    observed = (
        observing(model.hf, observer)
        if via == "interface"
        else watching(model.hf)
        if via == "hooks"
        else nullcontext()
    )
    with (
        without_leftovers(model.hf) if asked else nullcontext(),
        observed as seen,
        embedded(model, batch, catch),
    ):
        outputs = model.hf(**batch.inputs, **asked)
    layers, maps, reduced = observer.layers, observer.maps, observer.reduced
    if via in ("output", "hooks"):
        layers, maps = (
            (seen.layers, seen.maps) if isinstance(seen, Watched) else _from_outputs(model, outputs)
        )
        blocks = [
            Block(m.detach(), None, 0, layer.kind, layer.index)
            for layer, m in zip(layers, maps, strict=True)
        ]
        reduced = {name: [reducer(b) for b in blocks] for name, reducer in reducers.items()}
        maps = maps if keep else []
    if (keep or reducers) and not layers:
        raise Unsupported(
            f"{type(model.hf).__name__} gave no attention weights (path: {via}); a gradient method will work."
        )
    return _Run(outputs, caught[0], layers, maps, reduced)


def _backward(values: Float[Tensor, " batch"], run: _Run, needs: Needs) -> list[Tensor]:
    """Gradients of the embeddings, and of the maps when asked; zero where the target does not depend on them."""
    wanted = [run.leaf, *(run.maps if needs & Needs.ATTENTION_GRADIENTS else [])]
    if any(not w.requires_grad for w in wanted):
        raise Unsupported(
            "the attention weights that this model returns are outside the graph; use a gradient method without attention."
        )
    slopes = torch.autograd.grad(values.sum(), wanted, allow_unused=True)
    if len(slopes) > 1 and all(s is None for s in slopes[1:]):
        raise Unsupported(
            "no gradient reaches the attention weights that this model returns; use a gradient method without attention."
        )
    return [torch.zeros_like(w) if s is None else s for w, s in zip(wanted, slopes, strict=True)]


def _path(model: Model, via: Via, needed: bool, inside: bool) -> str:
    """own: the model's fast attention stays; interface: our function in the registry; output: eager and ``output_attentions``;
    hooks: where neither shows every map.
    """
    if not needed:
        return "own"
    observable = can_observe(model.hf)
    if (via == "interface" and not observable) or (inside and not observable):
        raise Unsupported(
            f"{type(model.hf).__name__} computes attention without AttentionInterface, so it cannot be edited. "
            'Use attention_via="output" without edits, or a gradient method.'
        )
    if is_lxmert(model.hf):
        return "hooks"
    return via if via != "auto" else "interface" if observable else "output"


def _resolve(
    model: Model, target: Target | str | int | list[Target] | None, logits: Tensor
) -> tuple[Target, ...]:
    rows = logits.detach().double().cpu().numpy()
    wanted = target if isinstance(target, list) else [as_target(target)] * len(rows)
    return tuple(model.resolve(t, row) for t, row in zip(wanted, rows, strict=True))


def _from_outputs(model: Model, outputs: Any) -> tuple[list[Layer], list[Tensor]]:
    """The fallback for families outside the registry: what ``output_attentions`` returns."""
    own = "decoder" if model.is_causal else "encoder"
    layers: list[Layer] = []
    maps: list[Tensor] = []
    for name, kind in (
        ("encoder_attentions", "encoder"),
        ("decoder_attentions", "decoder"),
        ("cross_attentions", "cross"),
        ("attentions", own),
    ):
        for index, weights in enumerate(getattr(outputs, name, None) or ()):
            if weights is not None:
                layers.append(Layer(f"{kind}.{index}", kind, index))
                maps.append(weights)
    return layers, maps


def _of_kind(kind: str, layers: Sequence[Layer], things: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(thing for layer, thing in zip(layers, things, strict=True) if layer.kind == kind)


def _hidden_states(outputs: Any) -> tuple[Tensor, ...]:
    states = (
        getattr(outputs, "hidden_states", None)
        or getattr(outputs, "encoder_hidden_states", None)
        or ()
    )
    return tuple(s.detach() for s in states)


def _in_place(embeddings: Tensor, batch: Batch) -> Tensor:
    """Image models embed patches only; zero rows for the special tokens in front keep every table one row per token.

    An image beside a text stands behind it.
    """
    missing = max(batch.lengths) - embeddings.shape[1]
    behind = "input_ids" in batch.inputs
    return (
        embeddings
        if missing <= 0
        else nn.functional.pad(embeddings, (0, 0, 0, missing) if behind else (0, 0, missing, 0))
    )
