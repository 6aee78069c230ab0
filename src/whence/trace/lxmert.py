"""LXMERT's attention, seen through forward hooks: it is outside AttentionInterface, and exports one direction of its cross attention only.

Each of its attention modules passes the weights through a dropout module of its own, after the softmax. A hook there sees them inside the
graph, and changes nothing. The module of a cross layer is called twice: the text looks at the image, then the image at the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import ModelError
from whence.core.maps import Axis, axis_of, membership
from whence.core.passage import Passage
from whence.trace.attention import Layer

LANGUAGE, VISION = "language", "vision"
LANGUAGE_TO_VISION, VISION_TO_LANGUAGE = "language-to-vision", "vision-to-language"
SIDES = {
    LANGUAGE: (0, 0),
    VISION: (1, 1),
    LANGUAGE_TO_VISION: (0, 1),
    VISION_TO_LANGUAGE: (1, 0),
}  # from, to; 0 text, 1 image


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
    looks, seen = (axis_of(passage.halves()[side], units) for side in SIDES[kind])
    return looks, seen


def memberships(
    passage: Passage, kind: str, units: str
) -> tuple[Float[np.ndarray, "from query"], Float[np.ndarray, "to key"]]:
    """Which token belongs to which place of the two axes."""
    looks, seen = (membership(passage.halves()[side], units) for side in SIDES[kind])
    return looks, seen


@contextmanager
def watching(hf: Any) -> Iterator[Watched]:
    """Keep every map of the forward passes inside the block; the hooks are gone after it, also after an exception."""
    seen = Watched()
    names = {module: name for name, module in hf.named_modules()}
    encoder = hf.base_model.encoder
    here = get_ident()
    handles = [
        encoder.visn_fc.register_forward_hook(
            lambda _m, _a, output: _leaf(output) if get_ident() == here else output
        )
    ]
    handles += [
        module.dropout.register_forward_hook(_keeper(seen, names[module], kinds))
        for module, kinds in _places(encoder)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _places(encoder: Any) -> list[tuple[Any, tuple[str, ...]]]:
    """Every attention module, with the kinds of map that it computes, call by call."""
    places = [(layer.attention.self, (LANGUAGE,)) for layer in encoder.layer]
    places += [(layer.attention.self, (VISION,)) for layer in encoder.r_layers]
    for layer in encoder.x_layers:
        places += [(layer.visual_attention.att, (LANGUAGE_TO_VISION, VISION_TO_LANGUAGE))]
        places += [(layer.lang_self_att.self, (LANGUAGE,)), (layer.visn_self_att.self, (VISION,))]
    return places


def _keeper(seen: Watched, name: str, kinds: tuple[str, ...]) -> Any:
    calls, here = iter(kinds), get_ident()

    def keep(_module: nn.Module, _args: Any, weights: Tensor) -> None:
        if get_ident() != here:  # another thread of the caller's runs the model
            return
        kind = next(calls, None)
        if kind is None:
            raise ModelError(
                f"{name} was called more often than once for each of {', '.join(kinds)}; its maps cannot be told apart."
            )
        seen.layers.append(Layer(name, kind, sum(layer.kind == kind for layer in seen.layers)))
        seen.maps.append(weights)

    return keep


def _leaf(output: Tensor) -> Tensor:
    """So that gradients reach the image's own attention, before it meets the text."""
    return output.detach().requires_grad_(torch.is_grad_enabled())
