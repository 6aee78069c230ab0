"""The same function by another layout of weights.

Heads of attention and neurons of a feed-forward layer have no order of their own; queries may grow
as keys shrink, and values as the projection behind them does. An explanation of the function
cannot see any of it (Sundararajan et al., 2017: implementation invariance).

Modules are found by the names that families of transformers use. Where the names mean something
else the outputs differ, and ``changed_model`` refuses the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.models.changes import copy_of
from whence.models.model import Model

# query, key, value and the projection behind them, as paths from the module that holds them
APART = (
    ("self.query", "self.key", "self.value", "output.dense"),
    ("self.query_proj", "self.key_proj", "self.value_proj", "output.dense"),
    ("attention.query", "attention.key", "attention.value", "output.dense"),
    ("query", "key", "value", "dense"),
    ("q_lin", "k_lin", "v_lin", "out_lin"),
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("q_proj", "k_proj", "v_proj", "out_proj"),
    ("q", "k", "v", "o"),
)
# one module for all three, and the projection: first all queries, then all keys, then all values
IN_THIRDS = (("c_attn", "c_proj"), ("Wqkv", "Wo"))
# or the three of each head together
BY_HEAD = (("query_key_value", "dense"),)
# what a head has beside its weights: a column of a table, or an entry of a vector
BESIDE = {"relative_attention_bias": 1, "sinks": 0}

# the layers whose outputs are neurons, and the one that reads these
FEED_FORWARD = (
    (("intermediate.dense",), "output.dense"),
    (("lin1",), "lin2"),
    (("gate_proj", "up_proj"), "down_proj"),
    (("fc1",), "fc2"),
    (("c_fc",), "c_proj"),
    (("wi_0", "wi_1"), "wo"),
    (("wi",), "wo"),
    (("ffn",), "ffn_output"),
    (("dense_h_to_4h",), "dense_4h_to_h"),
)
WIDTHS = ("head_dim", "attention_head_size", "key_value_proj_dim", "head_size")
FACTORS = (0.25, 0.5, 2.0, 4.0)  # powers of two: a number keeps its digits


@dataclass(frozen=True)
class Rewiring:
    """What all of these changes share: the function stays, and so does the input."""

    keeps_function: ClassVar[bool] = True

    def moved(self, model: Model, changed: Model, passage: Passage) -> float | None:
        """The input is the same."""
        del model, changed, passage
        return None


@dataclass(frozen=True)
class PermutedHeads(Rewiring):
    """The heads of every attention layer in another order.

    Where heads share keys and values, the groups change places, and the heads within each.
    """

    seed: int = 0

    def __call__(self, model: Model) -> Model:
        """A copy with its heads in another order."""
        changed = copy_of(model)
        with torch.no_grad():
            for layer in _attention_layers(changed):
                # the same order in all layers, as some share a table of positions by head
                generator = torch.Generator().manual_seed(self.seed)
                groups = torch.randperm(len(layer.key), generator=generator)
                own = [torch.randperm(layer.group, generator=generator) for _ in groups]
                heads = torch.cat([g * layer.group + own[g] for g in groups.tolist()])
                _reorder(layer.query, heads)
                _reorder(layer.key, groups)
                _reorder(layer.value, groups)
                _reorder(layer.out, heads)
                for tensor, axis in layer.beside:
                    tensor.copy_(tensor.index_select(axis, heads.to(tensor.device)))
        return changed


@dataclass(frozen=True)
class ScaledQueries(Rewiring):
    """All queries times a factor, all keys divided by it: their products stay."""

    factor: float = 2.0

    def __call__(self, model: Model) -> Model:
        """A copy with longer queries and shorter keys."""
        changed = copy_of(model)
        with torch.no_grad():
            for layer in _attention_layers(changed):
                _scale(layer.query, [self.factor] * len(layer.query))
                _scale(layer.key, [1 / self.factor] * len(layer.key))
        return changed


@dataclass(frozen=True)
class ScaledValues(Rewiring):
    """The values of each head times a factor of its own, undone by the projection behind them."""

    seed: int = 0

    def __call__(self, model: Model) -> Model:
        """A copy with other values and another projection."""
        changed = copy_of(model)
        generator = torch.Generator().manual_seed(self.seed)
        with torch.no_grad():
            for layer in _attention_layers(changed):
                drawn = torch.randint(len(FACTORS), (len(layer.value),), generator=generator)
                factors = [FACTORS[i] for i in drawn.tolist()]
                _scale(layer.value, factors)
                _scale(layer.out, [1 / f for f in factors for _ in range(layer.group)])
        return changed


@dataclass(frozen=True)
class PermutedNeurons(Rewiring):
    """The neurons of every feed-forward layer in another order."""

    seed: int = 0

    def __call__(self, model: Model) -> Model:
        """A copy with its neurons in another order."""
        changed = copy_of(model)
        generator = torch.Generator().manual_seed(self.seed)
        with torch.no_grad():
            for up, down in _feed_forward_layers(changed):
                order = torch.randperm(len(down), generator=generator)
                for wires in (*up, down):
                    _reorder(wires, order)
        return changed


# ---------------------------------------------------------------------- wires


@dataclass(frozen=True, eq=False)
class Wires:
    """The outputs, or the inputs, of a linear module that belong to each head (or neuron)."""

    module: nn.Module
    places: Int[Tensor, "head dim"]
    are_outputs: bool = True

    def __len__(self) -> int:
        return len(self.places)

    def tensors(self) -> Iterator[tuple[Tensor, int]]:
        """What holds numbers for them, and along which axis."""
        # GPT-2's Conv1D keeps its weight as inputs by outputs, Linear as outputs by inputs
        by_input = type(self.module).__name__ == "Conv1D"
        yield _parameter(self.module, "weight"), int(self.are_outputs == by_input)
        bias = getattr(self.module, "bias", None)
        if self.are_outputs and isinstance(bias, Tensor):
            yield bias, 0


@dataclass(frozen=True, eq=False)
class AttentionLayer:
    """Where the heads of a layer are. ``group`` heads share each key and value."""

    query: Wires
    key: Wires
    value: Wires
    out: Wires
    beside: tuple[tuple[Tensor, int], ...]

    @property
    def group(self) -> int:
        """How many heads share a key."""
        return len(self.query) // len(self.key)


def _reorder(wires: Wires, order: Int[Tensor, " head"]) -> None:
    """Place i gets what was at order[i]."""
    for tensor, axis in wires.tensors():
        to = wires.places.reshape(-1).to(tensor.device)
        source = wires.places[order].reshape(-1).to(tensor.device)
        tensor.index_copy_(axis, to, tensor.index_select(axis, source))


def _scale(wires: Wires, factors: list[float]) -> None:
    for tensor, axis in wires.tensors():
        of_place = torch.ones(tensor.shape[axis], dtype=tensor.dtype, device=tensor.device)
        for places, factor in zip(wires.places, factors, strict=True):
            of_place[places.to(tensor.device)] = factor
        shape = [1] * tensor.ndim
        shape[axis] = -1
        tensor.mul_(of_place.reshape(shape))


# ---------------------------------------------------------------------- where they are


def _attention_layers(model: Model) -> list[AttentionLayer]:
    layers = []
    for module in model.hf.modules():
        layer = _attention_layer(model, module)
        if layer is not None:
            layers.append(layer)
    if not layers:
        raise _unknown(model, "attention")
    return layers


def _attention_layer(model: Model, module: nn.Module) -> AttentionLayer | None:
    """The heads of a module that holds queries, keys, values and the projection behind them."""
    for *names, projection in APART:
        parts = [_part(module, name) for name in names]
        out = _part(module, projection)
        if out is not None and all(part is not None for part in parts):
            dim = _head_width(model, module, names[0])
            query, key = (_in_rows(part, dim) for part in parts[:2])
            # values may be wider or narrower than keys
            value = _in_rows(parts[2], _outputs(parts[2]) // len(key))
            return _layer(module, query, key, value, out)
    for kinds, by_head in ((IN_THIRDS, False), (BY_HEAD, True)):
        for name, projection in kinds:
            fused, out = _part(module, name), _part(module, projection)
            # cross attention of GPT-2 has one module for keys and values, and another for queries
            if fused is None or out is None or _outputs(fused) != 3 * _inputs(out):
                continue
            dim = _head_width(model, module, name)
            places = torch.arange(_outputs(fused))
            if by_head:
                apart = places.reshape(-1, 3, dim).transpose(0, 1)
            else:
                apart = places.reshape(3, -1, dim)
            query, key, value = (Wires(fused, part) for part in apart)
            return _layer(module, query, key, value, out)
    return None


def _layer(
    module: nn.Module, query: Wires, key: Wires, value: Wires, out: nn.Module
) -> AttentionLayer:
    heads = len(query)
    columns = torch.arange(_inputs(out)).reshape(heads, -1)
    beside = []
    for name, axis in BESIDE.items():
        own = getattr(module, name, None)
        tensor = getattr(own, "weight", own)
        if isinstance(tensor, Tensor):
            beside.append((tensor, axis))
    return AttentionLayer(query, key, value, Wires(out, columns, False), tuple(beside))


def _feed_forward_layers(model: Model) -> list[tuple[list[Wires], Wires]]:
    layers = []
    for module in model.hf.modules():
        for names, last in FEED_FORWARD:
            up = [_part(module, name) for name in names]
            down = _part(module, last)
            if down is None or any(part is None for part in up):
                continue
            if any(_outputs(part) != _inputs(down) for part in up):
                continue
            wires = [_in_rows(part, 1) for part in up]
            layers.append((wires, Wires(down, torch.arange(_inputs(down))[:, None], False)))
            break
    if not layers:
        raise _unknown(model, "feed-forward")
    return layers


def _unknown(model: Model, kind: str) -> Unsupported:
    return Unsupported(
        f"the {kind} layers of {type(model.hf).__name__} have names that are not known here, so "
        "its weights cannot be laid out in another way."
    )


def _head_width(model: Model, module: nn.Module, query: str) -> int:
    """How many outputs one head has: as the module says, or by the number of heads."""
    holder = _part(module, query.rpartition(".")[0]) if "." in query else module
    for name in WIDTHS:
        width = getattr(holder, name, None)
        if isinstance(width, int):
            return width
    config = model.config.get_text_config()
    return config.hidden_size // config.num_attention_heads


def _in_rows(module: Any, dim: int) -> Wires:
    return Wires(module, torch.arange(_outputs(module)).reshape(-1, dim))


def _part(module: nn.Module, path: str) -> Any:
    """The linear module (or any other) at a path below this one; None where there is none."""
    found: Any = module
    for name in path.split("."):
        found = found._modules.get(name) if isinstance(found, nn.Module) else None
    return found


def _outputs(module: Any) -> int:
    weight = _parameter(module, "weight")
    return weight.shape[int(type(module).__name__ == "Conv1D")]


def _inputs(module: Any) -> int:
    weight = _parameter(module, "weight")
    return weight.shape[int(type(module).__name__ != "Conv1D")]


def _parameter(module: Any, name: str) -> Tensor:
    return module.get_parameter(name)
