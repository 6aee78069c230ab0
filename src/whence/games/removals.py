"""Removals: what becomes of the tokens of a unit that is not kept, and of the other positions.

- ``mask``: the id of the model's mask token (or unknown token) in place of each of its tokens.
  Every position stays.
- ``delete``: its tokens are taken out. What follows moves up, and the text becomes shorter.
- ``pad``: its tokens become padding that attention does not see. Positions stay, except where a
  model counts them over what is no padding (RoBERTa); there the rest moves up as by ``delete``.
  A decoder is read at its last token that is left.
- ``mean``, ``zero``: the embedding of each of its tokens becomes the vocabulary's mean (of an
  image: its patches' mean), or zero. Every position stays.
- ``infill``: a masked language model writes other tokens in its place, as many as there were.
  Every position stays.

Special tokens are never removed. Where nothing at all would be left, one start token stands for
the empty text. Where the tag of a word is explained and that word is removed, ``delete`` and
``pad`` leave one mask token in its place, as the tag is read there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from whence.core.errors import SettingsError, Unsupported, unknown_name
from whence.core.once import once
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.games.infill import Filler
from whence.models.batches import Batch
from whence.models.conduct import embeddings
from whence.models.embeddings import embedded, mean_embedding
from whence.models.model import Model

Removal = Literal["mask", "delete", "pad", "mean", "zero", "infill"]
EMBEDDED = ("mean", "zero")
BUNDLED_FILLER = "filler"


def chosen_removal(model: Model, removal: str) -> str:
    """The removal by its full name.

    ``auto`` is ``mask`` where the model has a mask token, ``delete`` elsewhere, ``mean`` for
    images. ``infill`` alone means the bundled filler; ``infill:NAME`` names another masked
    language model.

    >>> import whence
    >>> chosen_removal(whence.load("sentiment"), "auto")
    'mask'
    """
    if removal == "auto":
        return _default_removal(model)

    kind, _, name = removal.partition(":")
    if kind == "infill":
        return f"infill:{name or BUNDLED_FILLER}"
    if name or kind not in get_args(Removal):
        known = ("auto", *get_args(Removal), "infill:MODEL")
        raise SettingsError(str(unknown_name("removal", removal, known)))
    return removal


def _default_removal(model: Model) -> str:
    """The task's first choice. An unknown token may stand for a mask, but not unasked."""
    for removal in model.kind.removals:
        if removal != "mask" or model.tokenizer.mask_token_id is not None:
            return removal
    raise _refused(model, "auto")


def second_removal(model: Model, first: str) -> str | None:
    """Another removal, by which a finding of the first can be checked.

    No removal is the right one, and what holds under one alone is about that removal.
    """
    kind_of_first = first.partition(":")[0]
    for removal in model.kind.removals:
        if removal == "mask" and mask_id(model) is None:
            continue
        if removal == "pad" and not model.pads:
            continue
        if removal in EMBEDDED and not _has_embeddings(model):
            continue
        if removal != kind_of_first:
            return removal
    return None


def _has_embeddings(model: Model) -> bool:
    """Whether replacing a token's embedding takes away all that the model knows of it.

    Where patches are no tokens, pixels are painted over instead.
    """
    if model.kind.unseen(model, Needs.EMBEDDINGS) is not None:
        return True
    return embeddings(model).holds is not False


def mask_id(model: Model) -> int | None:
    """The token that hides another one: the tokenizer's mask, else its unknown token.

    None where there is neither, or where a decoder would take the token for padding.
    """
    hidden = getattr(model.tokenizer, "mask_token_id", None)
    if hidden is None:
        hidden = getattr(model.tokenizer, "unk_token_id", None)
    if hidden is None:
        return None

    # a decoder that classifies looks for its last token by the padding id
    if model.is_causal and hidden == model.pad_id:
        return None
    return int(hidden)


def start_id(model: Model) -> int:
    """What stands for an empty text, where the model puts no special tokens around it."""
    for name in ("bos_token_id", "cls_token_id", "eos_token_id"):
        start = getattr(model.tokenizer, name, None)
        if start is not None:
            return int(start)
    return model.pad_id


def _refused(model: Model, removal: str) -> Unsupported:
    """The reason of the task why this removal is not possible."""
    architecture = type(model.hf).__name__
    return Unsupported(model.kind.no_removal.format(architecture=architecture, removal=removal))


def check_removal(model: Model, removal: str) -> None:
    """Raise where a model leaves no way to remove a token so."""
    if removal not in model.kind.removals:
        raise _refused(model, removal)
    if removal == "mask" and mask_id(model) is None:
        raise Unsupported(
            "this model's tokenizer has no mask or unknown token; use removal 'delete' or 'pad'."
        )
    if removal == "pad" and not model.pads:
        raise Unsupported(
            f"{type(model.hf).__name__} reads padding (it has no padding id, or none that "
            "changes nothing), so what is padded would not be removed; use 'delete'."
        )
    if removal in EMBEDDED and not _has_embeddings(model):
        raise Unsupported(
            f"{type(model.hf).__name__} has no one embedding for each token that could be "
            "replaced; use removal 'mask' or 'delete'."
        )


@dataclass(frozen=True, eq=False)
class Remover:
    """Makes the rows that a model reads when only some tokens of a passage are kept."""

    model: Model
    passage: Passage
    removal: str
    filler: Filler | None = None

    def __post_init__(self) -> None:
        check_removal(self.model, self.removal)

    @once
    def template(self) -> Batch:
        """The whole passage as a batch of one."""
        return self.model.batch([self.passage])

    def kept_tokens(self, masks: Bool[np.ndarray, "mask unit"]) -> Bool[np.ndarray, "mask token"]:
        """Which tokens each mask keeps.

        Those of its units, all special ones, and the one where a masked language model is read.
        """
        kept = np.ones((len(masks), len(self.passage)), dtype=bool)
        of_units = np.flatnonzero(self.passage.unit_of >= 0)
        kept[:, of_units] = masks[:, self.passage.unit_of[of_units]]
        kept[:, self._always_kept] = True
        return kept

    @once
    def _always_kept(self) -> Int[np.ndarray, " token"]:
        """Tokens that no mask removes, as the model is read there.

        A tagged word can be removed as any other: what stands in its place is read. Where nothing
        can stand there, for want of a mask token, the word's first token stays.
        """
        readout = self.passage.readout
        if readout is None:
            return np.zeros(0, dtype=np.int64)
        needs_no_place = self.removal not in ("delete", "pad")
        has_a_stand_in = needs_no_place or mask_id(self.model) is not None
        if self.model.kind.tags_words and has_a_stand_in:
            return np.zeros(0, dtype=np.int64)
        return np.array([readout])

    def _with_a_place(
        self, kept: Bool[np.ndarray, "mask token"]
    ) -> tuple[Int[np.ndarray, "mask token"], Bool[np.ndarray, "mask token"]]:
        """The ids of each row, and which of its places stay where others vanish.

        A mask token holds the place of a tagged word that is removed: its tag is read there.
        """
        ids = np.broadcast_to(self.passage.ids, kept.shape)
        readout, hidden = self.passage.readout, mask_id(self.model)
        if readout is None or hidden is None or kept[:, readout].all():
            return ids, kept
        stays = kept.copy()
        stays[:, readout] = True
        return np.where(kept, ids, hidden), stays

    def lengths(self, kept: Bool[np.ndarray, "mask token"]) -> Int[np.ndarray, " mask"]:
        """How many tokens the model reads of each."""
        if self.removal == "delete":
            return np.maximum(self._with_a_place(kept)[1].sum(1), 1)
        return np.full(len(kept), kept.shape[1])

    def batch(
        self, kept: Bool[np.ndarray, "mask token"], seeds: Int[np.ndarray, "mask word"]
    ) -> Batch:
        """The rows as one batch.

        ``seeds`` fix what a filler draws for each row, whatever stands beside it.
        """
        if self.removal in EMBEDDED:
            return self._repeated(len(kept), **self._covered(kept))
        if self.removal == "delete":
            return self._deleted(kept)
        if self.removal == "pad":
            return self._padded(kept)
        if self.filler is not None:
            ids = self.filler.fill(self.passage, kept, seeds)
        else:
            hidden = mask_id(self.model)
            ids = np.where(kept, self.passage.ids, -1 if hidden is None else hidden)
        return self._repeated(len(kept), input_ids=self._tensor(ids))

    def embeddings(
        self, kept: Bool[np.ndarray, "mask token"], batch: Batch
    ) -> AbstractContextManager[None]:
        """Put the neutral embedding in place of removed ones, if the removal is one of those."""
        if self.removal not in EMBEDDED or self._is_covered:
            return nullcontext()

        removed = torch.from_numpy(~kept).to(self.model.device)
        neutral = self._neutral

        def change(x: Tensor) -> Tensor:
            # an image's special tokens in front are not embedded
            gone = removed[:, -x.shape[1] :, None]
            if neutral is None:
                return torch.where(gone, x[0].mean(0), x)
            return torch.where(gone, neutral.to(x), x)

        return embedded(self.model, batch, change)

    @property
    def note(self) -> str:
        """What a result should say of this removal.

        Said of an image of which the model keeps no token for each patch. ``the model has no token
        for each patch: 7 × 7 cells of the image were painted over instead``
        """
        if not self._is_covered:
            return ""
        row, column = self.passage.unit_spans[-1][1:]
        return (
            f"the model has no token for each patch: {row + 1} × {column + 1} cells of the image "
            "were painted over instead"
        )

    def _covered(self, kept: Bool[np.ndarray, "mask token"]) -> Mapping[str, Tensor]:
        """Inputs in which what is removed is painted over; none where embeddings are replaced."""
        return self.model.kind.covered(self.model, self.passage, kept, self.removal)

    @once
    def _is_covered(self) -> bool:
        everything = np.ones((1, len(self.passage)), dtype=bool)
        return bool(self._covered(everything))

    @once
    def _neutral(self) -> Tensor | None:
        """What stands for nothing; None for an image, where it is the mean of the image's patches.

        It is found before the hook that puts it in place, as the vocabulary's mean itself runs the
        embeddings.
        """
        if self.removal == "zero":
            return torch.zeros((), device=self.model.device)
        if not self.model.kind.reads_text:
            return None
        return mean_embedding(self.model)

    def _repeated(self, count: int, **changed: Tensor) -> Batch:
        """The whole passage so many times, with some of its inputs changed."""
        inputs = {}
        for name, tensor in self.template.inputs.items():
            if name in changed and tensor.ndim > 2:
                # readings of several choices stand side by side
                inputs[name] = changed[name].reshape(count, *tensor.shape[1:])
            elif name in changed:
                inputs[name] = changed[name]
            else:
                inputs[name] = tensor.expand(count, *tensor.shape[1:])
            if tensor.ndim > 2:
                inputs[name] = inputs[name].contiguous()  # models lay the readings out by view()

        readout = self.template.readout
        if readout is not None:
            readout = readout.expand(count, *readout.shape[1:])
        return replace(
            self.template, inputs=inputs, lengths=[len(self.passage)] * count, readout=readout
        )

    def _deleted(self, kept: Bool[np.ndarray, "mask token"]) -> Batch:
        ids, stays = self._with_a_place(kept)
        lengths = stays.sum(1)
        longest = max(1, int(lengths.max()))
        # the tokens of each row that stay, in their order, and then the others
        order = np.argsort(~stays, axis=1, kind="stable")[:, :longest]
        seen = np.arange(longest) < lengths[:, None]
        ids = np.where(seen, np.take_along_axis(ids, order, axis=1), self.model.pad_id)
        self._start_empty_rows(ids, seen)

        changed = {
            "input_ids": self._tensor(ids),
            "attention_mask": self._tensor(seen.astype(np.int64)),
        }
        if self.passage.types is not None:
            changed["token_type_ids"] = self._tensor(np.where(seen, self.passage.types[order], 0))

        batch = self._repeated(len(kept), **changed)
        readout = self._readout(batch, order, seen)
        return replace(batch, lengths=np.maximum(lengths, 1).tolist(), readout=readout)

    def _padded(self, kept: Bool[np.ndarray, "mask token"]) -> Batch:
        ids, stays = self._with_a_place(kept)
        ids = np.where(stays, ids, self.model.pad_id)
        seen = stays.copy()
        self._start_empty_rows(ids, seen)

        batch = self._repeated(
            len(kept),
            input_ids=self._tensor(ids),
            attention_mask=self._tensor(seen.astype(np.int64)),
        )
        places = np.broadcast_to(np.arange(kept.shape[1]), kept.shape)
        return replace(batch, readout=self._readout(batch, places, seen))

    def _start_empty_rows(
        self, ids: Int[np.ndarray, "mask place"], seen: Bool[np.ndarray, "mask place"]
    ) -> None:
        """Put the start token into the rows of which nothing is left; changes both arrays."""
        empty = ~seen.any(1)
        ids[empty, 0] = self._start
        seen[empty, 0] = True

    def _readout(
        self,
        batch: Batch,
        tokens: Int[np.ndarray, "mask place"],
        seen: Bool[np.ndarray, "mask place"],
    ) -> Tensor | None:
        """Where each row is read, after tokens moved or vanished."""
        places = self.model.kind.readout_after_removal(self.passage, tokens, seen)
        if places is None:
            return batch.readout
        return self._tensor(places)

    @once
    def _start(self) -> int:
        return start_id(self.model)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.model.device)
