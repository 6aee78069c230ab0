"""Removals: what becomes of the tokens of a unit that is not kept, and of the positions of those that are.

- ``mask``: the id of the model's mask token (or unknown token) in place of each of its tokens. Every position stays.
- ``delete``: its tokens are taken out. What follows moves up, and the text becomes shorter.
- ``pad``: its tokens become padding that attention does not see. Positions stay, except where a model counts them over what is no
  padding (RoBERTa), there the rest moves up as by ``delete``. A decoder is read at its last token that is left.
- ``mean``, ``zero``: the embedding of each of its tokens becomes the vocabulary's mean (of an image: its patches' mean), or zero.
  Every position stays.
- ``infill``: a masked language model writes other tokens in its place, as many as there were. Every position stays.

Special tokens are never removed. Where nothing at all would be left, one start token stands for the empty text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from whence.core.errors import SettingsError, Unsupported, unknown_name
from whence.core.passage import Passage
from whence.games.infill import Filler
from whence.models.batches import Batch
from whence.models.embeddings import embedded, mean_embedding
from whence.models.model import Model

Removal = Literal["mask", "delete", "pad", "mean", "zero", "infill"]
EMBEDDED = ("mean", "zero")
BUNDLED_FILLER = "filler"


def chosen_removal(model: Model, removal: str) -> str:
    """The removal by its full name: ``auto`` is ``mask`` where the model has a mask token, ``delete`` elsewhere, ``mean`` for images.

    ``infill`` alone means the bundled filler; ``infill:NAME`` names another masked language model.

    >>> import whence
    >>> chosen_removal(whence.load("sentiment"), "auto")
    'mask'
    """
    if removal == "auto":
        if model.task == "image":
            return "mean"
        return "mask" if model.tokenizer.mask_token_id is not None else "delete"
    kind, _, name = removal.partition(":")
    if kind == "infill":
        return f"infill:{name or BUNDLED_FILLER}"
    if name or kind not in get_args(Removal):
        raise SettingsError(
            str(unknown_name("removal", removal, ("auto", *get_args(Removal), "infill:MODEL")))
        )
    return removal


def second_removal(model: Model, first: str) -> str | None:
    """Another removal, by which a finding of the first can be checked: none is right, and what holds under one alone is about it."""
    order = ("mean", "zero") if model.task == "image" else ("mask", "delete", "pad", "mean")
    known = [
        r
        for r in order
        if (r != "mask" or mask_id(model) is not None) and (r != "pad" or model.pads)
    ]
    return next((r for r in known if r != first.partition(":")[0]), None)


def mask_id(model: Model) -> int | None:
    """The token that hides another one: the tokenizer's mask, else its unknown token, unless that is also padding."""
    known = (
        getattr(model.tokenizer, "mask_token_id", None),
        getattr(model.tokenizer, "unk_token_id", None),
    )
    found = next((int(i) for i in known if i is not None), None)
    # a decoder that classifies looks for its last token by the padding id
    return None if found == model.pad_id and model.is_causal else found


@dataclass(frozen=True, eq=False)
class Remover:
    """Makes the rows that a model reads when only some tokens of a passage are kept."""

    model: Model
    passage: Passage
    removal: str
    filler: Filler | None = None

    def __post_init__(self) -> None:
        if self.model.task == "image-text":
            raise Unsupported(
                f"{type(self.model.hf).__name__} reads a text with an image, and there is no removal for regions or patches beside a text "
                "yet; use generic-attention."
            )
        if self.model.task == "image" and self.removal not in EMBEDDED:
            raise Unsupported(
                f"an image has no tokens to {self.removal}; use removal 'mean' (of its patches) or 'zero'."
            )
        if self.removal == "mask" and mask_id(self.model) is None:
            raise Unsupported(
                "this model's tokenizer has no mask or unknown token; use removal 'delete' or 'pad'."
            )
        if self.removal == "pad" and not self.model.pads:
            raise Unsupported(
                f"{type(self.model.hf).__name__} finds its last token by a padding id and has none, so padding would be read; use 'delete'."
            )

    @cached_property
    def template(self) -> Batch:
        """The whole passage as a batch of one."""
        return self.model.batch([self.passage])

    def kept_tokens(self, masks: Bool[np.ndarray, "mask unit"]) -> Bool[np.ndarray, "mask token"]:
        """Which tokens each mask keeps: its units', all special ones, and the one at which a masked language model is read."""
        kept = np.ones((len(masks), len(self.passage)), dtype=bool)
        of_units = np.flatnonzero(self.passage.unit_of >= 0)
        kept[:, of_units] = masks[:, self.passage.unit_of[of_units]]
        if self.passage.readout is not None:
            kept[:, self.passage.readout] = True
        return kept

    def lengths(self, kept: Bool[np.ndarray, "mask token"]) -> Int[np.ndarray, " mask"]:
        """How many tokens the model reads of each."""
        return (
            np.maximum(kept.sum(1), 1)
            if self.removal == "delete"
            else np.full(len(kept), kept.shape[1])
        )

    def batch(
        self, kept: Bool[np.ndarray, "mask token"], seeds: Int[np.ndarray, "mask word"]
    ) -> Batch:
        """The rows as one batch; ``seeds`` fix what is drawn for each (by a filler), whatever stands beside it."""
        if self.removal in EMBEDDED:
            return self._repeated(len(kept))
        if self.removal == "delete":
            return self._deleted(kept)
        if self.removal == "pad":
            return self._padded(kept)
        ids = np.where(
            kept, self.passage.ids, -1 if (hidden := mask_id(self.model)) is None else hidden
        )
        if self.filler is not None:
            ids = self.filler.fill(self.passage, kept, seeds)
        return self._repeated(len(kept), input_ids=self._tensor(ids))

    @contextmanager
    def embeddings(self, kept: Bool[np.ndarray, "mask token"], batch: Batch) -> Iterator[None]:
        """Where the removal is one of embeddings, put the neutral one in place of the removed ones."""
        if self.removal not in EMBEDDED:
            yield
            return
        removed = torch.from_numpy(~kept).to(self.model.device)
        neutral = self._neutral

        def change(x: Tensor) -> Tensor:
            gone = removed[
                :, -x.shape[1] :, None
            ]  # an image's special tokens in front are not embedded
            # an image has no vocabulary whose mean could stand for nothing: its own patches have
            return torch.where(gone, x[0].mean(0) if neutral is None else neutral.to(x), x)

        with embedded(self.model, batch, change):
            yield

    @cached_property
    def _neutral(self) -> Tensor | None:
        """Found before the hook that puts it in place: the vocabulary's mean itself runs the embeddings."""
        if self.removal == "zero":
            return torch.zeros((), device=self.model.device)
        return None if self.model.task == "image" else mean_embedding(self.model)

    def _repeated(self, count: int, **changed: Tensor) -> Batch:
        inputs = {
            name: changed.get(name, tensor.expand(count, *tensor.shape[1:]))
            for name, tensor in self.template.inputs.items()
        }
        readout = self.template.readout
        return Batch(
            inputs, [len(self.passage)] * count, None if readout is None else readout.expand(count)
        )

    def _deleted(self, kept: Bool[np.ndarray, "mask token"]) -> Batch:
        lengths = kept.sum(1)
        order = np.argsort(~kept, axis=1, kind="stable")[:, : max(1, int(lengths.max()))]
        seen = np.arange(order.shape[1]) < lengths[:, None]
        ids = np.where(seen, self.passage.ids[order], self.model.pad_id)
        ids[lengths == 0, 0] = self._start
        seen[lengths == 0, 0] = True
        changed = {
            "input_ids": self._tensor(ids),
            "attention_mask": self._tensor(seen.astype(np.int64)),
        }
        if self.passage.types is not None:
            changed["token_type_ids"] = self._tensor(np.where(seen, self.passage.types[order], 0))
        batch = self._repeated(len(kept), **changed)
        read = None
        if self.model.task == "causal":
            read = np.maximum(lengths, 1) - 1
        elif self.model.task == "masked" and self.passage.readout is not None:
            read = kept[:, : self.passage.readout].sum(1)
        return Batch(
            batch.inputs,
            np.maximum(lengths, 1).tolist(),
            batch.readout if read is None else self._tensor(read),
        )

    def _padded(self, kept: Bool[np.ndarray, "mask token"]) -> Batch:
        ids = np.where(kept, self.passage.ids, self.model.pad_id)
        seen = kept.astype(np.int64)
        nothing = ~kept.any(1)
        ids[nothing, 0], seen[nothing, 0] = self._start, 1
        batch = self._repeated(
            len(kept), input_ids=self._tensor(ids), attention_mask=self._tensor(seen)
        )
        if self.model.task != "causal":
            return batch
        last = kept.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)
        return Batch(batch.inputs, batch.lengths, self._tensor(last))

    @cached_property
    def _start(self) -> int:
        """What stands for an empty text, where the model has no special tokens of its own around it."""
        names = ("bos_token_id", "cls_token_id", "eos_token_id")
        found = (getattr(self.model.tokenizer, name, None) for name in names)
        return next((int(i) for i in found if i is not None), self.model.pad_id)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.model.device)
