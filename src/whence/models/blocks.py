"""The blocks of a transformer: the modules that the residual stream passes, one after the other.

No family is written down. Every family holds its blocks in a list of modules with attention inside,
and that list is found; of an encoder-decoder there is one on each side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch import nn

from whence.core.errors import InputError, Unsupported

if TYPE_CHECKING:
    from whence.models.model import Model

KINDS = ("encoder", "decoder")
ATTENTION = re.compile(r"att(entio)?n", re.IGNORECASE)
# what they hand from block to block has tokens along its first axis, and texts along its second
TURNED = ("xlnet",)


def blocks_of(model: Model, kind: str | None = None) -> tuple[nn.Module, ...]:
    """The blocks in the order in which they run.

    A module that runs several times, as ALBERT's does, stands there as often. ``kind`` is the side
    of an encoder-decoder, which is the encoder unless it is said.

    >>> import whence
    >>> [type(block).__name__ for block in blocks_of(whence.load("writer"))]
    ['GPT2Block', 'GPT2Block', 'GPT2Block', 'GPT2Block']
    """
    kind = side_of(model, kind)
    architecture = type(model.hf).__name__
    if getattr(model.config, "model_type", "") in TURNED:
        raise Unsupported(
            f"{architecture} hands its hidden states on with tokens before texts, which is not "
            "read here; BERT, GPT-2, Llama, T5, BART, ViT and their like are."
        )
    lists = {
        name: modules
        for name, modules in _outermost(model.hf)
        if not model.is_encoder_decoder or _side(name) == kind
    }
    if not lists:
        raise Unsupported(
            f"{architecture} has no list of blocks with attention inside, so that there is no "
            "layer at which its hidden states could be read."
        )
    if len(lists) > 1:
        raise Unsupported(
            f"{architecture} has several lists of blocks ({', '.join(lists)}), so that a layer's "
            "number does not say which is meant."
        )
    (blocks,) = lists.values()
    return _as_often_as_they_run(model, tuple(blocks))


def block_at(model: Model, layer: int, kind: str | None = None) -> nn.Module:
    """The block of that number, counted from 0; an error that says how many there are.

    >>> import whence
    >>> type(block_at(whence.load("writer"), 3)).__name__
    'GPT2Block'
    """
    blocks = blocks_of(model, kind)
    if isinstance(layer, bool) or not isinstance(layer, int):
        raise InputError(f"a layer is a whole number, not {layer!r}.")
    if not 0 <= layer < len(blocks):
        raise InputError(
            f"there is no layer {layer}: {type(model.hf).__name__} has {len(blocks)} layers"
            f"{_of_side(model, kind)}, 0 to {len(blocks) - 1}."
        )
    return blocks[layer]


def side_of(model: Model, kind: str | None) -> str:
    """The side that is meant, encoder or decoder, or the only one that there is.

    >>> import whence
    >>> side_of(whence.load("writer"), None), side_of(whence.load("sentiment"), None)
    ('decoder', 'encoder')
    """
    own = "decoder" if model.is_causal else "encoder"
    if kind is None:
        return own
    if kind not in KINDS:
        raise InputError(f"kind is one of {', '.join(KINDS)}, not {kind!r}.")
    if not model.is_encoder_decoder and kind != own:
        raise InputError(f"{type(model.hf).__name__} has no {kind}: it is one {own}.")
    return kind


def _of_side(model: Model, kind: str | None) -> str:
    return f" in its {side_of(model, kind)}" if model.is_encoder_decoder else ""


def _outermost(hf: nn.Module) -> Iterator[tuple[str, nn.ModuleList]]:
    """Lists of modules with attention inside, that are in no such list themselves."""
    inside: list[str] = []
    for name, module in hf.named_modules():  # a list comes before what is in it
        if any(name.startswith(f"{outer}.") for outer in inside):
            continue
        if isinstance(module, nn.ModuleList) and _has_attention(module):
            inside.append(name)
            yield name, module


def _has_attention(modules: nn.ModuleList) -> bool:
    for name, module in modules.named_modules():
        # by the name of the place or of the class: one of the two says so in every family
        if ATTENTION.search(name.split(".")[-1]) or ATTENTION.search(type(module).__name__):
            return True
    return False


def _side(name: str) -> str:
    return "decoder" if "decoder" in name.split(".") else "encoder"


def _as_often_as_they_run(model: Model, blocks: tuple[nn.Module, ...]) -> tuple[nn.Module, ...]:
    """ALBERT's groups: each runs for several layers in turn."""
    config = model.config.get_text_config()
    groups = getattr(config, "num_hidden_groups", None)
    layers = getattr(config, "num_hidden_layers", len(blocks))
    if groups is None or groups != len(blocks):
        return blocks
    return tuple(blocks[int(layer / (layers / groups))] for layer in range(layers))
