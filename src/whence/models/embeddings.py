"""The embeddings of a model's input: seen and replaced on their way in, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from whence.core.errors import ModelError, Unsupported
from whence.models.batches import Batch
from whence.models.patches import as_given_out, as_tokens
from whence.models.unbroken import each, in_one_piece, put_back, unbroken

if TYPE_CHECKING:
    from whence.models.model import Model

# How many tokens of the vocabulary are embedded at once for their mean.
TOKENS_AT_ONCE = 4096


@in_one_piece
def embedded(model: Model, batch: Batch, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let ``change`` see, and replace, the embeddings of the input tokens.

    The ids still go in, as poolers and positions read them.
    """
    here = get_ident()
    leaf: list[Tensor] = []
    sides = None if batch.sources is None else _Sides(model, batch)

    def on_input(_module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        # another thread of the caller's runs the model, and its embeddings are not ours to see
        if get_ident() != here or (sides is not None and sides.is_looking):
            return output
        if leaf:
            return on_decoder(_module, args, output)
        if sides is not None:
            leaf.append(change(sides.joined(output)))
            return sides.of_encoder(leaf[0])
        if not isinstance(output, Tensor) and model.kind.reads_text:
            raise Unsupported(
                f"the embedding module of {type(model.hf).__name__} gives out a "
                f"{type(output).__name__}, so there is no one vector for each token."
            )
        is_turned = model.kind.reads_text and _is_turned(batch, args)
        upright = output.transpose(0, 1) if is_turned else output
        by_passage = _by_passage(model, upright, batch)
        changed = change(by_passage)
        if changed.shape != by_passage.shape:
            changed = changed[:, -by_passage.shape[1] :]
        leaf.append(changed)
        if is_turned:
            return changed.reshape(upright.shape).transpose(0, 1)
        if model.kind.reads_text:
            return changed.reshape(output.shape)
        return as_given_out(changed, output)

    def on_decoder(_module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        if get_ident() != here or (sides is not None and sides.is_looking):
            return output
        if leaf and sides is not None:
            return sides.of_decoder(leaf[0])
        if leaf and _reads_text_again(model, batch, args):
            return torch.cat([output[:, :1], leaf[0][:, :-1]], 1)
        # so that gradients reach the decoder's own attention too; a copy, as some models change
        # what they are given in place, which a leaf does not allow
        return output.detach().requires_grad_(torch.is_grad_enabled()).clone()

    encoder = model.input_embeddings
    decoder = model.decoder_embeddings
    handles: list[RemovableHandle] = []
    with put_back(lambda: each(RemovableHandle.remove, handles)):
        handles.append(encoder.register_forward_hook(on_input))
        if decoder is not None and decoder is not encoder:
            handles.append(decoder.register_forward_hook(on_decoder))
        yield

    if not leaf:
        raise ModelError(
            f"{type(model.hf).__name__} never called its input embeddings, "
            "so there is nothing to attribute to."
        )


class _Sides:
    """The two sides of an encoder-decoder as one row of embeddings: its text, then what it wrote.

    Both are needed when the encoder begins, so that one leaf of the graph holds them; the decoder's
    are looked up beforehand.
    """

    def __init__(self, model: Model, batch: Batch) -> None:
        assert batch.sources is not None
        self.model = model
        self.decoder_ids = batch.inputs["decoder_input_ids"]
        self.is_looking = False
        source_width = batch.inputs["input_ids"].shape[1]
        rows, width = len(batch.lengths), max(batch.lengths)
        # where each token of a passage stands in [encoder places, decoder places], and back
        joined = torch.zeros(rows, width, dtype=torch.long)
        encoder = torch.zeros(rows, source_width, dtype=torch.long)
        decoder = torch.zeros(rows, self.decoder_ids.shape[1], dtype=torch.long)
        for row, (source, length) in enumerate(zip(batch.sources, batch.lengths, strict=True)):
            joined[row, :source] = torch.arange(source)
            joined[row, source:length] = source_width + torch.arange(length - source)
            encoder[row, :source] = torch.arange(source)
            decoder[row, : length - source] = torch.arange(source, length)
        self.joined_index = joined.to(model.device)
        self.encoder_index = encoder.to(model.device)
        self.decoder_index = decoder.to(model.device)

    def joined(self, of_encoder: Tensor) -> Float[Tensor, "row token dim"]:
        module = self.model.decoder_embeddings
        assert module is not None
        self.is_looking = True
        try:
            of_decoder = module(self.decoder_ids)
        finally:
            self.is_looking = False
        return _picked(torch.cat([of_encoder, of_decoder], 1), self.joined_index)

    def of_encoder(self, joined: Float[Tensor, "row token dim"]) -> Tensor:
        return _picked(joined, self.encoder_index)

    def of_decoder(self, joined: Float[Tensor, "row token dim"]) -> Tensor:
        return _picked(joined, self.decoder_index)


def _picked(
    rows: Float[Tensor, "row place dim"], index: Int[Tensor, "row wanted"]
) -> Float[Tensor, "row wanted dim"]:
    """Of each row, the vectors at some of its places."""
    return rows.gather(1, index[:, :, None].expand(-1, -1, rows.shape[-1]))


def _is_turned(batch: Batch, args: tuple[Any, ...]) -> bool:
    """Whether the model embeds its ids token by passage, as XLNet does, not passage by token."""
    ids = batch.inputs.get("input_ids")
    if ids is None or not args or not isinstance(args[0], Tensor):
        return False
    given = args[0]
    rows = ids.reshape(-1, ids.shape[-1])
    if given.shape != rows.T.shape or torch.equal(given, rows):
        return False
    return torch.equal(given, rows.T)


def _by_passage(model: Model, output: Any, batch: Batch) -> Tensor:
    """The embeddings with one row for each passage: the readings of its choices in turn."""
    if not model.kind.reads_text:
        patches = as_tokens(output)
        assert patches is not None  # the module was chosen for giving them out
        return patches
    ids = batch.inputs.get("input_ids")
    if ids is None or ids.ndim < 3:
        return output
    return output.reshape(len(ids), -1, output.shape[-1])


def _reads_text_again(model: Model, batch: Batch, args: tuple[Any, ...]) -> bool:
    """Whether the decoder embeds the text itself, one place to the right.

    A sequence-to-sequence classifier reads its text twice in this way.
    """
    ids = batch.inputs.get("input_ids")
    if not model.kind.reads_twice or not args or ids is None:
        return False
    if args[0].shape != ids.shape:
        return False
    return bool((args[0][:, 1:] == ids[:, :-1]).all())


_means: WeakKeyDictionary[nn.Module, tuple[tuple[int, int], Tensor]] = WeakKeyDictionary()


def mean_embedding(model: Model) -> Float[Tensor, " dim"]:
    """The mean over the vocabulary of what the embedding module gives out (some scale it).

    Remembered until the table changes.
    """
    table = model.input_embeddings.get_parameter("weight")
    version = (table.data_ptr(), table._version)
    known = _means.get(model.input_embeddings)
    if known is not None and known[0] == version:
        return known[1]

    mean = _mean_of_outputs(model, len(table))
    _means[model.input_embeddings] = (version, mean)
    return mean


def _mean_of_outputs(model: Model, size: int) -> Float[Tensor, " dim"]:
    sums = []
    with model.lock, unbroken(torch.no_grad()):
        for ids in torch.arange(size, device=model.device).split(TOKENS_AT_ONCE):
            vectors = model.input_embeddings(ids[None])[0]
            sums.append(vectors.sum(0, dtype=torch.float64))
        return torch.stack(sums).sum(0) / size
