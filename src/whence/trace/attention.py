"""Seeing attention from inside the graph, through transformers' own AttentionInterface.

Our function is registered once under the name "whence" and does nothing but ask the family's own
``eager_attention_forward`` to do the arithmetic, extra arguments included, so there is no second
implementation that could drift. The observer of the running trace, if there is one in this thread,
keeps, reduces or edits what passes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from whence.core.errors import InputError, Unsupported
from whence.models.unbroken import in_one_piece
from whence.models.untouched import configs_of
from whence.trace.edits import Edit
from whence.trace.reducers import Block, Joined, Reducer

NAME = "whence"
# of weights held at once while reducing; larger blocks leave the allocator with holes
# (1.3 GB at 4,096 tokens)
BLOCK_BYTES = 2 * 2**20
CROSS = re.compile(r"enc(oder)?_?(dec|attn|attention)|cross", re.IGNORECASE)

# The extra arguments that families pass, and that the eager arithmetic honours or that do not
# change a plain forward pass. An argument that is not here may change the result in a way nobody
# has looked at, so it is refused by name.
PER_QUERY = frozenset({"position_bias"})  # tensors with a query axis: cut along with the queries
HONOURED = PER_QUERY | {"scaling", "dropout", "softcap", "s_aux", "sliding_window", "is_causal"}
WITHOUT_EFFECT = frozenset(
    {
        "cache_position",
        "deterministic",
        "encoder_attention_mask",
        "encoder_hidden_states",
        "num_items_in_batch",
        "past_key_values",
        "position_embeddings",
        "position_ids",
        "token_type_ids",
        "use_cache",
    }
)
KNOWN = HONOURED | WITHOUT_EFFECT
ASKS_FOR_OUTPUT = ("output_", "return_")


@dataclass(frozen=True)
class Layer:
    """Where a map comes from: the module's name, its kind, its place among layers of that kind."""

    module: str
    kind: str
    index: int


class AttentionCall(NamedTuple):
    """One layer's attention as the family called it: its own arithmetic and the arguments."""

    eager: Callable[..., Any]
    module: nn.Module
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    extra: dict[str, Any]

    def run(self) -> tuple[Tensor, Tensor]:
        """The family's own output and weights."""
        return self.eager(self.module, self.q, self.k, self.v, self.mask, **self.extra)

    def of_rows(self, rows: slice) -> AttentionCall:
        """The same call for some of the query rows."""
        length = self.q.shape[2]
        extra = dict(self.extra)
        for name in PER_QUERY & extra.keys():
            extra[name] = of_rows(extra[name], rows, length)
        mask = of_rows(self.mask, rows, length)
        return AttentionCall(
            self.eager, self.module, self.q[:, :, rows], self.k, self.v, mask, extra
        )

    def block(self, weights: Tensor, layer: Layer, first_row: int = 0) -> Block:
        """What reducers see of the call's weights."""
        scale = scale_of(self.module, self.extra)
        return Block(weights, self.v, first_row, layer.kind, layer.index, self.q, self.k, scale)


@dataclass
class Observer:
    """What one forward pass shows, layer by layer.

    It holds whole maps when asked to ``keep`` them, and what each named reducer makes of them.
    It is not shared between threads.
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
    # rows of the batch, queries and keys of each layer
    sizes: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.places = _places.setdefault(self.hf, WeakKeyDictionary())
        self.reduced = {name: [] for name in self.reducers}

    def attend(self, call: AttentionCall) -> tuple[Tensor, Tensor | None]:
        """One layer's attention: edited, kept or reduced, whole or in blocks of query rows."""
        layer = self._layer(call.module)
        self.layers.append(layer)
        self.sizes.append((call.q.shape[0], call.q.shape[2], call.k.shape[2]))
        edits = self._edits_at(layer) if self.edits else ()
        if self.reducers and not self.keep and not torch.is_grad_enabled():
            return self._attend_in_blocks(layer, edits, call), None

        output, weights = call.run()
        if edits:
            output, weights = apply_edits(edits, output, weights, call.v, call.mask)
        if self.keep:
            self.maps.append(weights)
        if self.reducers:
            with torch.no_grad():
                block = call.block(weights, layer)
                for name, reducer in self.reducers.items():
                    self.reduced[name].append(reducer(block))
        return output, None

    def _edits_at(self, layer: Layer) -> list[Edit]:
        """The edits of this layer, which are noted as applied."""
        edits = []
        for i, edit in enumerate(self.edits):
            if edit.is_in_attention and edit.applies(layer.index, layer.kind):
                self.applied.add(i)
                edits.append(edit)
        return edits

    def _attend_in_blocks(self, layer: Layer, edits: Sequence[Edit], call: AttentionCall) -> Tensor:
        """The same, some query rows at a time, so that a long text never holds a whole map."""
        length = call.q.shape[2]
        rows = block_rows(call.q, call.k)
        outputs: list[Tensor] = []
        joined = {name: Joined(reducer, length) for name, reducer in self.reducers.items()}
        for first in range(0, length, rows):
            part = call.of_rows(slice(first, first + rows))
            output, weights = part.run()
            if edits:
                output, weights = apply_edits(edits, output, weights, part.v, part.mask)
            outputs.append(output)
            block = part.block(weights, layer, first)
            for each in joined.values():
                each.add(block)

        for name, each in joined.items():
            assert each.whole is not None
            self.reduced[name].append(each.whole)
        return torch.cat(outputs, 1)

    def _layer(self, module: nn.Module) -> Layer:
        place = self.places.get(module)
        if place is None:
            place = self.places[module] = self._place(module)
        index = self.counts[place.kind] = self.counts.get(place.kind, -1) + 1
        return Layer(place.module, place.kind, index)

    def _place(self, module: nn.Module) -> Place:
        two_sided = bool(getattr(self.hf.config, "is_encoder_decoder", False))
        for name, candidate in self.hf.named_modules():
            if candidate is module:
                return Place(name, kind_of(name, module, two_sided))
        name = type(module).__name__
        return Place(name, kind_of(name, module, two_sided))


@dataclass(frozen=True)
class Place:
    """What does not change about an attention module: its name in the model and its kind."""

    module: str
    kind: str


# By model, then by module: finding a name walks the whole model, and a part of it may be loaded
# as a model of its own.
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
    """The part of a mask or bias that belongs to some query rows.

    One that broadcasts over queries is left whole.
    """
    if not isinstance(tensor, Tensor) or tensor.ndim < 2:
        return tensor
    if length > 1 and tensor.shape[-2] == length:
        return tensor[..., rows, :]
    return tensor


def kind_of(name: str, module: nn.Module, two_sided: bool) -> str:
    """encoder, decoder or cross, from the module's place in the model.

    Outside an encoder-decoder, what is causal counts as a decoder.
    """
    parts = name.split(".")
    if two_sided:
        if "decoder" not in parts:
            return "encoder"
        below = parts[parts.index("decoder") + 1 :]
        return "cross" if CROSS.search(".".join(below)) else "decoder"
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
        # heads may share their values
        repeats = weights.shape[1] // value.shape[1]
        values = value.repeat_interleave(repeats, dim=1)
        output = (weights.to(value.dtype) @ values).transpose(1, 2)
    for edit in edits:
        if edit.where == "output":
            output = edit.on_heads(output, 2)
    return output, weights


def visible_keys(mask: Tensor | None, weights: Tensor) -> Bool[Tensor, "#b #h #q k"]:
    """Where the mask lets a query look."""
    if mask is None:
        return torch.ones(1, 1, 1, weights.shape[-1], dtype=torch.bool, device=weights.device)
    if mask.dtype == torch.bool:
        return mask
    # a mask of numbers is added to the scores: its lowest value hides a key
    return mask > torch.finfo(mask.dtype).min / 2


_observer: ContextVar[Observer | None] = ContextVar("whence_observer", default=None)


def observed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **extra: Any,
) -> tuple[Tensor, Tensor | None]:
    """The function in transformers' registry: the family's own arithmetic, seen by the observer.

    The observer is that of this thread.
    """
    if not KNOWN.issuperset(extra):
        _check_extra(module, extra)
    eager = _eager.get(module)
    if eager is None:
        eager = _eager[module] = eager_of(module)
    call = AttentionCall(eager, module, query, key, value, attention_mask, extra)
    observer = _observer.get()
    if observer is None:
        # another thread of the caller's runs the model while a trace has it switched
        return call.run()
    return observer.attend(call)


def _check_extra(module: nn.Module, extra: Mapping[str, Any]) -> None:
    """Refuse arguments that nobody has looked at."""
    unknown = []
    for name, argument in extra.items():
        if name not in KNOWN and argument is not None and not name.startswith(ASKS_FOR_OUTPUT):
            unknown.append(name)
    if unknown:
        names = ", ".join(map(repr, sorted(unknown)))
        raise Unsupported(
            f"{type(module).__name__} passes {names} to its attention, "
            "which whence does not know to honour. "
            'Use attention_via="output", or a gradient method, '
            "which leaves the model's own attention in place."
        )


def eager_of(module: nn.Module) -> Callable[..., Any]:
    """The family's own eager arithmetic, from the module that defines the attention class."""
    for base in type(module).__mro__:
        home = sys.modules.get(base.__module__)
        if home is not None and hasattr(home, "eager_attention_forward"):
            return home.eager_attention_forward
    raise Unsupported(
        f"{type(module).__name__} has no eager_attention_forward beside it; "
        "its attention cannot be captured."
    )


def can_observe(hf: Any) -> bool:
    """Whether the family computes its attention through the registry."""
    return bool(hf._can_set_attn_implementation())


def check_editable(hf: Any) -> None:
    """Refuse a model whose attention cannot be edited, and say what works all the same."""
    if can_observe(hf):
        return
    raise Unsupported(
        f"{type(hf).__name__} computes attention without AttentionInterface, so it cannot be "
        'edited. Its attention can still be read (whence.attend, attention_via="output"), '
        "correlated with gradients and with leave-one-out, and put on trial (whence.evaluate); "
        "methods of gradients work too."
    )


_switched: WeakKeyDictionary[nn.Module, list[tuple[Any, str]]] = WeakKeyDictionary()


def switch(hf: Any) -> None:
    """Set our implementation: first by transformers' own checks, later by what they came to."""
    known = _switched.get(hf)
    if known is None or known[0][0] is not hf.config:
        hf.set_attn_implementation(NAME)
        others = [config for config in configs_of(hf.modules()) if config is not hf.config]
        _switched[hf] = [
            (config, config._attn_implementation_internal) for config in (hf.config, *others)
        ]
        return
    for config, implementation in known:
        config._attn_implementation_internal = implementation


@in_one_piece
def observing(hf: Any, observer: Observer) -> Iterator[Observer]:
    """Switch the model to our function for the length of a forward pass.

    ``untouched`` around it puts the implementation back.
    """
    AttentionInterface.register(NAME, observed_attention)
    # without this line the mask silently vanishes, and a causal model sees the future
    AttentionMaskInterface.register(NAME, eager_mask)
    switch(hf)
    token = _observer.set(observer)
    try:
        yield observer
    finally:
        _observer.reset(token)
    _check_applied(observer)


def _check_applied(observer: Observer) -> None:
    """Refuse an edit whose layer the model does not have."""
    for i, edit in enumerate(observer.edits):
        if edit.is_in_attention and i not in observer.applied:
            raise InputError(
                f"edit {edit.name!r} at layer {edit.layer}, kind {edit.kind} met no layer. "
                f"There are: {_layers_seen(observer) or 'none'}."
            )


def _layers_seen(observer: Observer) -> str:
    last: dict[str, int] = {}
    for layer in observer.layers:
        last[layer.kind] = max(layer.index, last.get(layer.kind, 0))
    return ", ".join(f"{kind} 0–{index}" for kind, index in last.items())
