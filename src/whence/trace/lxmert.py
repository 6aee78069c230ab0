"""LXMERT's attention, seen through forward hooks.

It is outside AttentionInterface, and exports one direction of its cross attention only. Each of its
attention modules passes the weights through a dropout module of its own, after the softmax. A hook
there sees them inside the graph, and changes nothing. The module of a cross layer is called twice:
the text looks at the image, then the image at the text.

What goes into the model and comes out of it is in models/lxmert.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from whence.core.errors import ModelError
from whence.core.maps import Axis, axis_of, membership
from whence.core.passage import Passage
from whence.models.unbroken import each, in_one_piece, put_back
from whence.trace.attention import Layer

LANGUAGE = "language"
VISION = "vision"
LANGUAGE_TO_VISION = "language-to-vision"
VISION_TO_LANGUAGE = "vision-to-language"

# Who looks, and what is looked at: 0 the text, 1 the image.
SIDES = {
    LANGUAGE: (0, 0),
    VISION: (1, 1),
    LANGUAGE_TO_VISION: (0, 1),
    VISION_TO_LANGUAGE: (1, 0),
}


@dataclass
class Watched:
    """The maps of one forward pass, in the order in which they were computed."""

    layers: list[Layer] = field(default_factory=list)
    maps: list[Float[Tensor, "batch head query key"]] = field(default_factory=list)


def is_lxmert(hf: Any) -> bool:
    """Whether the model is one that is watched in this way."""
    return getattr(hf.config, "model_type", "") == "lxmert"


def axes(passage: Passage, kind: str, units: str) -> tuple[Axis, Axis]:
    """What stands along a map of that kind: who looks, and what is looked at."""
    looks, seen = _halves(passage, kind)
    return axis_of(looks, units), axis_of(seen, units)


def memberships(
    passage: Passage, kind: str, units: str
) -> tuple[Float[np.ndarray, "from query"], Float[np.ndarray, "to key"]]:
    """Which token belongs to which place of the two axes."""
    looks, seen = _halves(passage, kind)
    return membership(looks, units), membership(seen, units)


def _halves(passage: Passage, kind: str) -> tuple[Passage, Passage]:
    """The half of the passage that looks, and the half that is looked at."""
    halves = passage.halves()
    looks, seen = SIDES[kind]
    return halves[looks], halves[seen]


@in_one_piece
def watching(hf: Any) -> Iterator[Watched]:
    """Keep every map of the forward passes inside the block.

    The hooks are gone after it, also after an exception.
    """
    watched = Watched()
    names = {module: name for name, module in hf.named_modules()}
    encoder = hf.base_model.encoder
    here = get_ident()

    def on_image(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
        return _leaf(output) if get_ident() == here else output

    handles: list[RemovableHandle] = []
    with put_back(lambda: each(RemovableHandle.remove, handles)):
        handles.append(encoder.visn_fc.register_forward_hook(on_image))
        for module, kinds in _places(encoder):
            keeper = _keeper(watched, names[module], kinds)
            handles.append(module.dropout.register_forward_hook(keeper))
        yield watched


def _places(encoder: Any) -> list[tuple[Any, tuple[str, ...]]]:
    """Every attention module, with the kinds of map that it computes, call by call."""
    places: list[tuple[Any, tuple[str, ...]]] = []
    places += [(layer.attention.self, (LANGUAGE,)) for layer in encoder.layer]
    places += [(layer.attention.self, (VISION,)) for layer in encoder.r_layers]
    for layer in encoder.x_layers:
        places.append((layer.visual_attention.att, (LANGUAGE_TO_VISION, VISION_TO_LANGUAGE)))
        places.append((layer.lang_self_att.self, (LANGUAGE,)))
        places.append((layer.visn_self_att.self, (VISION,)))
    return places


def _keeper(watched: Watched, name: str, kinds: tuple[str, ...]) -> Callable[..., None]:
    """A hook that keeps the maps of one attention module."""
    remaining = iter(kinds)
    here = get_ident()

    def keep(_module: nn.Module, _args: Any, weights: Tensor) -> None:
        # another thread of the caller's runs the model
        if get_ident() != here:
            return
        kind = next(remaining, None)
        if kind is None:
            raise ModelError(
                f"{name} was called more often than once for each of {', '.join(kinds)}; "
                "its maps cannot be told apart."
            )
        index = sum(layer.kind == kind for layer in watched.layers)
        watched.layers.append(Layer(name, kind, index))
        watched.maps.append(weights)

    return keep


def _leaf(output: Tensor) -> Tensor:
    """So that gradients reach the image's own attention, before it meets the text."""
    return output.detach().requires_grad_(torch.is_grad_enabled())
