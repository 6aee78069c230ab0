"""Seeing attention from inside the graph, through transformers' own AttentionInterface.

Our function is registered once under the name "whence" and does nothing but ask the family's own ``eager_attention_forward`` to
do the arithmetic, extra arguments included, so there is no second implementation that could drift. The observer of the running
trace, if there is one in this thread, keeps, reduces or edits what passes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from whence.core.errors import InputError, Unsupported
from whence.models.untouched import configs_of
from whence.trace.edits import Edit
from whence.trace.reducers import Block, Joined, Reducer

NAME = "whence"
BLOCK_BYTES = (
    2 * 2**20
)  # of weights held at once while reducing; larger ones leave the allocator with holes (1.3 GB at 4,096 tokens)
CROSS = re.compile(r"enc(oder)?_?(dec|attn|attention)|cross", re.IGNORECASE)

# The extra arguments that families pass, and that the eager arithmetic honours or that do not change a plain forward pass. An argument
# that is not here may change the result in a way nobody has looked at, so it is refused by name.
PER_QUERY = frozenset({"position_bias"})  # tensors with a query axis: cut along with the queries
HONOURED = (
    frozenset({"scaling", "dropout", "softcap", "s_aux", "sliding_window", "is_causal"}) | PER_QUERY
)
WITHOUT_EFFECT = frozenset(
    {
        *(
            "deterministic",
            "use_cache",
            "cache_position",
            "position_ids",
            "position_embeddings",
            "num_items_in_batch",
        ),
        *("past_key_values", "encoder_hidden_states", "encoder_attention_mask", "token_type_ids"),
    }
)
KNOWN = HONOURED | WITHOUT_EFFECT
ASKS_FOR_OUTPUT = ("output_", "return_")


@dataclass(frozen=True)
class Layer:
    """Where an attention map comes from: the module's name, its kind, and its place among the layers of that kind."""

    module: str
    kind: str
    index: int


@dataclass
class Observer:
    """What one forward pass shows: whole maps when asked to ``keep`` them, and what each named reducer makes of them, layer by layer.

    Not shared between threads.
    """

    hf: nn.Module
    keep: bool
    reducers: Mapping[str, Reducer] = field(default_factory=dict)
    edits: Sequence[Edit] = ()
    layers: list[Layer] = field(default_factory=list)
    maps: list[Tensor] = field(default_factory=list)
    reduced: dict[str, list[Tensor]] = field(default_factory=dict)
    applied: set[int] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = _places.setdefault(self.hf, WeakKeyDictionary())
        self.reduced = {name: [] for name in self.reducers}

    def attend(
        self,
        eager: Callable[..., Any],
        module: nn.Module,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        extra: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:
        """One layer's attention: edited, kept or reduced, whole or in blocks of query rows."""
        layer = self._layer(module)
        self.layers.append(layer)
        here = [
            i
            for i, e in enumerate(self.edits)
            if e.where != "embeddings" and e.applies(layer.index, layer.kind)
        ]
        self.applied.update(here)
        edits = [self.edits[i] for i in here]
        if self.reducers and not self.keep and not torch.is_grad_enabled():
            return self._attend_in_blocks(layer, edits, eager, module, q, k, v, mask, extra), None
        output, weights = eager(module, q, k, v, mask, **extra)
        if edits:
            output, weights = apply_edits(edits, output, weights, v, mask)
        if self.keep:
            self.maps.append(weights)
        if self.reducers:
            with torch.no_grad():
                block = Block(weights, v, 0, layer.kind, layer.index, q, k, scale_of(module, extra))
                for name, reducer in self.reducers.items():
                    self.reduced[name].append(reducer(block))
        return output, None

    def _attend_in_blocks(
        self,
        layer: Layer,
        edits: Sequence[Edit],
        eager: Callable[..., Any],
        module: nn.Module,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        extra: dict[str, Any],
    ) -> Tensor:
        """The same, some query rows at a time, so that a long text never holds a whole map."""
        length, rows = q.shape[2], block_rows(q, k)
        outputs: list[Tensor] = []
        kept = {name: Joined(reducer, length) for name, reducer in self.reducers.items()}
        for first in range(0, length, rows):
            part = slice(first, first + rows)
            mask_part = of_rows(mask, part, length)
            extra_part = {
                n: of_rows(a, part, length) if n in PER_QUERY else a for n, a in extra.items()
            }
            output, weights = eager(module, q[:, :, part], k, v, mask_part, **extra_part)
            if edits:
                output, weights = apply_edits(edits, output, weights, v, mask_part)
            outputs.append(output)
            block = Block(
                weights,
                v,
                first,
                layer.kind,
                layer.index,
                q[:, :, part],
                k,
                scale_of(module, extra),
            )
            for joined in kept.values():
                joined.add(block)
        for name, joined in kept.items():
            assert joined.whole is not None
            self.reduced[name].append(joined.whole)
        return torch.cat(outputs, 1)

    def _layer(self, module: nn.Module) -> Layer:
        place = self.places.get(module)
        if place is None:
            place = self.places[module] = self._place(module)
        index = self.counts[place.kind] = self.counts.get(place.kind, -1) + 1
        return Layer(place.module, place.kind, index)

    def _place(self, module: nn.Module) -> Place:
        name = next(
            (name for name, m in self.hf.named_modules() if m is module), type(module).__name__
        )
        two_sided = bool(getattr(self.hf.config, "is_encoder_decoder", False))
        return Place(name, kind_of(name, module, two_sided))


@dataclass(frozen=True)
class Place:
    """What does not change about an attention module: its name in the model and its kind."""

    module: str
    kind: str


# by model, then by module: finding a name walks the whole model, and a part of it may be loaded as a model of its own
_places: WeakKeyDictionary[nn.Module, WeakKeyDictionary[nn.Module, Place]] = WeakKeyDictionary()
_eager: WeakKeyDictionary[nn.Module, Callable[..., Any]] = WeakKeyDictionary()


def block_rows(q: Tensor, k: Tensor) -> int:
    """How many query rows of a layer's weights fit ``BLOCK_BYTES``."""
    return max(1, BLOCK_BYTES // (q.shape[0] * q.shape[1] * k.shape[2] * 4))


def scale_of(module: nn.Module, extra: Mapping[str, Any]) -> float:
    """By what queries times keys are scaled before the softmax."""
    given = extra.get("scaling")
    if given is None:
        given = getattr(module, "scaling", 1.0)
    return float(given)


def of_rows(tensor: Any, rows: slice, length: int) -> Any:
    """The part of a mask or bias that belongs to some query rows; one that broadcasts over queries is left whole."""
    if (
        isinstance(tensor, Tensor)
        and tensor.ndim >= 2
        and tensor.shape[-2] == length
        and length > 1
    ):
        return tensor[..., rows, :]
    return tensor


def kind_of(name: str, module: nn.Module, two_sided: bool) -> str:
    """encoder, decoder or cross, from the module's place in an encoder-decoder model, else from whether it is causal."""
    parts = name.split(".")
    if two_sided:
        if "decoder" not in parts:
            return "encoder"
        below = ".".join(parts[parts.index("decoder") + 1 :])
        return "cross" if CROSS.search(below) else "decoder"
    if getattr(module, "is_cross_attention", False) or CROSS.search(parts[-1]):
        return "cross"
    return "decoder" if getattr(module, "is_causal", False) else "encoder"


def apply_edits(
    edits: Sequence[Edit],
    output: Float[Tensor, "b q h dim"],
    weights: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Edited weights, and the heads' outputs that follow from them."""
    on_attention = [e for e in edits if e.where == "attention"]
    if on_attention:
        visible = visible_keys(mask, weights)
        for edit in on_attention:
            weights = edit.on_heads(weights, 1, visible)
        repeats = weights.shape[1] // value.shape[1]
        output = (weights.to(value.dtype) @ value.repeat_interleave(repeats, dim=1)).transpose(1, 2)
    for edit in edits:
        if edit.where == "output":
            output = edit.on_heads(output, 2)
    return output, weights


def visible_keys(mask: Tensor | None, weights: Tensor) -> Bool[Tensor, "#b #h #q k"]:
    """Where the mask lets a query look."""
    if mask is None:
        return torch.ones(1, 1, 1, weights.shape[-1], dtype=torch.bool, device=weights.device)
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


_observer: ContextVar[Observer | None] = ContextVar("whence_observer", default=None)


def observed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **extra: Any,
) -> tuple[Tensor, Tensor | None]:
    """The function in transformers' registry: the family's own arithmetic, under the eyes of this thread's observer."""
    unknown = [
        n
        for n, a in extra.items()
        if n not in KNOWN and a is not None and not n.startswith(ASKS_FOR_OUTPUT)
    ]
    if unknown:
        names = ", ".join(map(repr, sorted(unknown)))
        raise Unsupported(
            f"{type(module).__name__} passes {names} to its attention, which whence does not know to honour. "
            'Use attention_via="output", or a gradient method, which leaves the model\'s own attention in place.'
        )
    eager = _eager.get(module)
    if eager is None:
        eager = _eager[module] = eager_of(module)
    observer = _observer.get()
    if (
        observer is None
    ):  # another thread of the caller's runs the model while a trace has it switched
        return eager(module, query, key, value, attention_mask, **extra)
    return observer.attend(eager, module, query, key, value, attention_mask, extra)


def eager_of(module: nn.Module) -> Callable[..., Any]:
    """The family's own eager arithmetic, from the Python module that defines the attention class."""
    for base in type(module).__mro__:
        home = sys.modules.get(base.__module__)
        if home is not None and hasattr(home, "eager_attention_forward"):
            return home.eager_attention_forward
    raise Unsupported(
        f"{type(module).__name__} has no eager_attention_forward beside it; its attention cannot be captured."
    )


def can_observe(hf: Any) -> bool:
    """Whether the family computes its attention through the registry."""
    return bool(hf._can_set_attn_implementation())


_switched: WeakKeyDictionary[nn.Module, list[tuple[Any, str]]] = WeakKeyDictionary()


def switch(hf: Any) -> None:
    """Set our implementation: by transformers' own checks the first time, later by what they came to."""
    known = _switched.get(hf)
    if known is None or known[0][0] is not hf.config:
        hf.set_attn_implementation(NAME)
        others = [c for c in configs_of(hf.modules()) if c is not hf.config]
        _switched[hf] = [(c, c._attn_implementation_internal) for c in (hf.config, *others)]
        return
    for config, implementation in known:
        config._attn_implementation_internal = implementation


@contextmanager
def observing(hf: Any, observer: Observer) -> Iterator[Observer]:
    """Switch the model to our function for the length of a forward pass. ``untouched`` around it puts the implementation back."""
    AttentionInterface.register(NAME, observed_attention)
    # without this line the mask silently vanishes, and a causal model sees the future
    AttentionMaskInterface.register(NAME, eager_mask)
    switch(hf)
    token = _observer.set(observer)
    try:
        yield observer
    finally:
        _observer.reset(token)
    missed = [
        e
        for i, e in enumerate(observer.edits)
        if e.where != "embeddings" and i not in observer.applied
    ]
    if missed:
        known = ", ".join(
            f"{k} 0–{max(y.index for y in observer.layers if y.kind == k)}"
            for k in dict.fromkeys(y.kind for y in observer.layers)
        )
        raise InputError(
            f"edit {missed[0].name!r} at layer {missed[0].layer}, kind {missed[0].kind} met no layer. There are: {known or 'none'}."
        )
