"""The patches of an image: what a vision model makes of them, found by one pass and not by name.

Some models keep one vector for each patch from the first layer to the last (ViT, DeiT, BEiT,
DINOv2, CLIP, SigLIP): their patches are tokens, with embeddings and rows of attention. Others look
through windows, pool or convolve (Swin, ConvNeXt, ResNet …): a patch is then a square of pixels and
nothing more, which can still be painted over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from whence.core.errors import ModelError, OurMistake
from whence.models.passing import run
from whence.models.unbroken import each, in_one_piece, put_back, unbroken
from whence.models.untouched import untouched, without_leftovers

if TYPE_CHECKING:
    from whence.core.passage import Passage
    from whence.models.model import Model

# Cells a side of the grid over a picture whose patches are no tokens, as ViT has them at 224 pixels
# by patches of 16; and how few there may be before cells of unequal size are better.
MOST_CELLS = 14
FEWEST_CELLS = 7
# Pixels a side of the picture that is tried, where neither model nor processor names a size.
ANY_SIZE = 64
# Tokens of a model's own before its patches; no known model has more.
MOST_SPECIAL = 18
# What the modules that make vectors of patches are called, where the model does not tell.
PATCH_MODULES = ("patch_embedding", "patch_embeddings", "patch_embed")


@dataclass(frozen=True, eq=False)
class Tokens:
    """How the patches of a model are its tokens.

    ``module`` makes their vectors, ``special`` tokens stand before them, and the head reads the one
    at ``readout``, or several (None).
    """

    module: nn.Module
    special: int
    readout: int | None


_known: WeakKeyDictionary[nn.Module, Tokens | None] = WeakKeyDictionary()


def tokens_of(model: Model) -> Tokens | None:
    """How the model's patches are tokens; None where they are not.

    Tried once for each model. A crash is told and not remembered: it may be for want of memory, or
    of a state that the caller can mend, and says nothing about patches.
    """
    hf = model.hf
    if hf not in _known:
        _known[hf] = _tried(model)
    return _known[hf]


def vision_config(model: Model) -> Any:
    """The part of the configuration that is about images."""
    return getattr(model.config, "vision_config", model.config)


def picture_size(model: Model) -> tuple[int, int] | None:
    """Height and width that the model, or else its processor, names."""
    processor = model.image_processor
    for size in (
        getattr(vision_config(model), "image_size", None),
        getattr(processor, "crop_size", None),
        getattr(processor, "size", None),
    ):
        pair = as_pair(size)
        if pair is not None:
            return pair
    return None


def as_pair(size: Any) -> tuple[int, int] | None:
    """Height and width, however they are written; None where they are not."""
    if isinstance(size, int) and size > 0:
        return size, size
    if isinstance(size, (tuple, list)) and len(size) == 2:
        return int(size[0]), int(size[1])
    if isinstance(size, (tuple, list)) and len(size) == 1:
        return as_pair(size[0])
    high = getattr(size, "height", None) or _entry(size, "height")
    wide = getattr(size, "width", None) or _entry(size, "width")
    if high and wide:
        return int(high), int(wide)
    edge = getattr(size, "shortest_edge", None) or _entry(size, "shortest_edge")
    return (int(edge), int(edge)) if edge else None


def _entry(size: Any, name: str) -> Any:
    return size.get(name) if isinstance(size, Mapping) else None


def channels_of(model: Model) -> int:
    """Three for red, green and blue, unless the configuration says otherwise."""
    return int(getattr(vision_config(model), "num_channels", None) or 3)


# ---------------------------------------------------------------------- patches as tokens


def as_tokens(output: Any) -> Float[Tensor, "picture patch dim"] | None:
    """The vectors of patches, one after the other, from what such a module gives out."""
    if isinstance(output, (tuple, list)) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        return None
    if output.ndim == 4:
        return output.flatten(2).transpose(1, 2)
    return output if output.ndim == 3 else None


def as_given_out(tokens: Float[Tensor, "picture patch dim"], output: Any) -> Any:
    """Other vectors in the form in which the module gave out its own."""
    if isinstance(output, (tuple, list)):
        return type(output)((as_given_out(tokens, output[0]), *output[1:]))
    if output.ndim == 4:
        return tokens.transpose(1, 2).reshape(output.shape)
    return tokens


def _tried(model: Model) -> Tokens | None:
    """Run noise through the model, and see whether each patch keeps a vector to the end."""
    patch = as_pair(getattr(vision_config(model), "patch_size", None))
    size = picture_size(model)
    if patch is None or size is None:
        return None
    count = (size[0] // patch[0]) * (size[1] // patch[1])
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randn(1, channels_of(model), *size, generator=generator)
    pixels = pixels.to(model.device, model.dtype)
    for module in _candidates(model.hf):
        found = _tried_with(model, module, pixels, count)
        if found is not None:
            return found
    return None


def _candidates(hf: nn.Module) -> list[nn.Module]:
    """Modules that may make the vectors of patches: the model's own word first."""
    modules = []
    with suppress(NotImplementedError, AttributeError):
        modules.append(hf.get_input_embeddings())  # type: ignore[operator]
    for name, module in hf.named_modules():
        if name.rpartition(".")[2] in PATCH_MODULES:
            modules.append(module)
    own = [module for module in modules if isinstance(module, nn.Module)]
    return list(dict.fromkeys(own))


def _tried_with(
    model: Model, module: nn.Module, pixels: Float[Tensor, "1 channel height width"], count: int
) -> Tokens | None:
    lengths: list[int] = []

    def look(_module: nn.Module, _args: Any, output: Any) -> Any:
        tokens = as_tokens(output)
        lengths.append(-1 if tokens is None else tokens.shape[1])
        if tokens is None:
            return output
        return as_given_out(tokens.detach().requires_grad_(), output)

    with (
        model.lock,
        untouched(model.hf),
        without_leftovers(model.hf),
        unbroken(torch.inference_mode(False), torch.enable_grad()),
    ):
        outputs = _outputs(model.hf, module, look, pixels)
        if outputs is None:
            return None
        states = getattr(outputs, "hidden_states", None)
        if lengths != [count] or not states or states[-1].ndim != 3:
            return None
        last = states[-1]
        special = last.shape[1] - count
        same_everywhere = all(state.shape == last.shape for state in states)
        if not same_everywhere or not 0 <= special <= MOST_SPECIAL:
            return None
        return Tokens(module, special, _read_at(outputs.logits, last))


def _outputs(
    hf: nn.Module,
    module: nn.Module,
    look: Callable[..., Any],
    pixels: Float[Tensor, "1 channel height width"],
) -> Any:
    """What the model gives out while its patches are looked at; None where it cannot do that."""
    inputs = {"pixel_values": pixels}
    try:
        with _hooked(module, look):
            return run(hf, inputs, output_hidden_states=True)
    except OurMistake:
        raise
    except ModelError:
        # A model that cannot run at all says so here. One that can has no hidden states to give
        # out, or does not take other vectors for its own.
        run(hf, inputs)
        return None


@in_one_piece
def _hooked(module: nn.Module, look: Callable[..., Any]) -> Iterator[None]:
    handles: list[RemovableHandle] = []
    with put_back(lambda: each(RemovableHandle.remove, handles)):
        handles.append(module.register_forward_hook(look))
        yield


def _read_at(logits: Tensor, last: Float[Tensor, "1 token dim"]) -> int | None:
    """The one token on whose last vector the logits depend; None where they are several."""
    if not (last.requires_grad and logits.requires_grad):
        return None
    (slope,) = torch.autograd.grad(logits.square().sum(), [last], allow_unused=True)
    if slope is None:
        return None
    read = torch.nonzero(slope[0].abs().sum(-1)).flatten().tolist()
    return int(read[0]) if len(read) == 1 else None


# ---------------------------------------------------------------------- patches as pixels


def edges(pixels: int, patch: int | None) -> Int[np.ndarray, " edge"]:
    """Where the cells along one side of a picture begin and end.

    As many cells as divide the side evenly, and no smaller than the model's own patches; where no
    such number is near, cells that differ by a pixel.

    >>> edges(224, 4)[:3], len(edges(224, 4)) - 1
    (array([ 0, 16, 32]), 14)
    >>> len(edges(331, None)) - 1
    14
    """
    most = max(1, min(MOST_CELLS, pixels // (patch or 1)))
    even = max(n for n in range(1, most + 1) if pixels % n == 0)
    cells = even if even >= min(FEWEST_CELLS, most) else most
    return np.round(np.linspace(0, pixels, cells + 1)).astype(np.int64)


def grid(
    model: Model, pixels: Float[np.ndarray, "channel height width"]
) -> tuple[Int[np.ndarray, " edge"], Int[np.ndarray, " edge"]]:
    """The edges of the cells of a picture, down and across, where patches are no tokens."""
    patch = as_pair(getattr(vision_config(model), "patch_size", None)) or (None, None)
    _, high, wide = pixels.shape
    return edges(high, patch[0]), edges(wide, patch[1])


def painted_over(
    model: Model, passage: Passage, kept: Bool[np.ndarray, "mask cell"], removal: str
) -> Float[Tensor, "mask channel height width"]:
    """The picture for each mask: what is not kept has the picture's mean colour, or zero."""
    assert passage.pixels is not None
    down, across = grid(model, passage.pixels)
    rows, columns = len(down) - 1, len(across) - 1
    keeps = kept.reshape(len(kept), rows, columns)
    seen = np.repeat(np.repeat(keeps, np.diff(down), axis=1), np.diff(across), axis=2)
    colour = np.zeros((passage.pixels.shape[0], 1, 1), dtype=np.float32)
    if removal == "mean":
        colour = passage.pixels.mean(axis=(1, 2), keepdims=True)
    pictures = np.where(seen[:, None], passage.pixels, colour)
    return torch.from_numpy(pictures).to(model.device, model.dtype)
