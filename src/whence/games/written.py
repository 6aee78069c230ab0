"""Removals from a text and from what a model wrote after it; every output is read in one pass.

An output is read where the model says what comes next: at the last token before it that is left.
A causal model sees nothing of what stands behind that, so that one row of tokens, with some units
removed, answers for all outputs at once. An encoder-decoder has two such rows, one for each side.

The removals are those of ``games/removals.py``. Where nothing is left of the prompt, one start
token stands for it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.once import once
from whence.core.passage import Passage
from whence.games.removals import EMBEDDED, check_removal, mask_id, start_id
from whence.models.batches import Batch
from whence.models.embeddings import embedded, mean_embedding
from whence.models.model import Model


@dataclass(frozen=True)
class Side:
    """The tokens from ``first`` to ``last`` that one half of a model reads in a row."""

    first: int
    last: int
    prefix: str  # of its inputs' names


@dataclass(frozen=True, eq=False)
class WrittenRemover:
    """Makes the rows that a model reads when only some tokens of a written text are kept."""

    model: Model
    passage: Passage
    removal: str
    filler: None = None
    note: str = ""

    def __post_init__(self) -> None:
        check_removal(self.model, self.removal)
        if self.removal == "infill":
            raise Unsupported(
                "what a filler writes into a prompt is not tried for generated text; "
                "use removal 'mask', 'delete', 'pad', 'mean' or 'zero'."
            )
        if self.removal == "delete" and len(self.sides) > 1 and not self.model.pads:
            raise Unsupported(
                f"{type(self.model.hf).__name__} reads padding, and rows of its two sides get "
                "unequal lengths where tokens are deleted; use 'mask', 'mean' or 'zero'."
            )

    @once
    def sides(self) -> tuple[Side, ...]:
        """One row of tokens, or that of the encoder and that of the decoder."""
        if not self.model.is_encoder_decoder:
            return (Side(0, len(self.passage), ""),)
        sources = self.passage.output_place(0) - 1
        return Side(0, sources, ""), Side(sources, len(self.passage), "decoder_")

    @once
    def template(self) -> Batch:
        """The whole passage as a batch of one."""
        return self.model.batch([self.passage])

    def kept_tokens(self, masks: Bool[np.ndarray, "mask unit"]) -> Bool[np.ndarray, "mask token"]:
        """Which tokens each mask keeps: those of its units, and all that belong to no unit."""
        kept = np.ones((len(masks), len(self.passage)), dtype=bool)
        of_units = np.flatnonzero(self.passage.unit_of >= 0)
        kept[:, of_units] = masks[:, self.passage.unit_of[of_units]]
        return kept

    def lengths(self, kept: Bool[np.ndarray, "mask token"]) -> Int[np.ndarray, " mask"]:
        """How many tokens the model reads of each, on both sides together."""
        if self.removal == "delete":
            lengths = self._with_a_start(kept)[1].sum(1)
            # a short row is read at as many places as a long one: they count where rows are batched
            return np.maximum(lengths, self.passage.outputs) if self.model.pads else lengths
        return np.full(len(kept), kept.shape[1])

    def batch(
        self, kept: Bool[np.ndarray, "mask token"], seeds: Int[np.ndarray, "mask word"]
    ) -> Batch:
        """The rows as one batch, read at every output."""
        del seeds  # nothing is drawn
        if self.removal in EMBEDDED:
            return self._repeated(np.tile(self.passage.ids, (len(kept), 1)))
        if self.removal == "mask":
            hidden = mask_id(self.model)
            assert hidden is not None  # else this removal was refused
            return self._repeated(np.where(kept, self.passage.ids, hidden))
        return self._with_gaps(kept)

    def embeddings(
        self, kept: Bool[np.ndarray, "mask token"], batch: Batch
    ) -> AbstractContextManager[None]:
        """Put the neutral embedding in place of removed ones, if the removal is one of those."""
        if self.removal not in EMBEDDED:
            return nullcontext()
        removed = torch.from_numpy(~kept).to(self.model.device)[:, :, None]
        neutral = self._neutral
        return embedded(self.model, batch, lambda x: torch.where(removed, neutral.to(x), x))

    @once
    def _neutral(self) -> Tensor:
        if self.removal == "zero":
            return torch.zeros((), device=self.model.device)
        return mean_embedding(self.model)

    def _repeated(self, ids: Int[np.ndarray, "mask token"]) -> Batch:
        """Rows in which every token has its place."""
        template, count = self.template, len(ids)
        inputs = {}
        for name, tensor in template.inputs.items():
            inputs[name] = tensor.expand(count, *tensor.shape[1:])
        for side in self.sides:
            inputs[f"{side.prefix}input_ids"] = self._tensor(ids[:, side.first : side.last])
        assert template.readout is not None
        readout = template.readout.expand(count, -1)
        sources = None if template.sources is None else template.sources * count
        lengths = template.lengths * count
        return replace(template, inputs=inputs, lengths=lengths, readout=readout, sources=sources)

    def _with_gaps(self, kept: Bool[np.ndarray, "mask token"]) -> Batch:
        """Rows from which tokens are taken out, or are padding that nobody sees."""
        ids, stays = self._with_a_start(kept)
        inputs: dict[str, Tensor] = {}
        for side in self.sides:
            here = slice(side.first, side.last)
            own_ids, own_stays = ids[:, here], stays[:, here]
            order = np.broadcast_to(np.arange(own_ids.shape[1]), own_ids.shape)
            if self.removal == "delete":
                longest = int(own_stays.sum(1).max())
                order = np.argsort(~own_stays, axis=1, kind="stable")[:, :longest]
            seen = np.take_along_axis(own_stays, order, axis=1)
            own_ids = np.where(seen, np.take_along_axis(own_ids, order, 1), self.model.pad_id)
            inputs[f"{side.prefix}input_ids"] = self._tensor(own_ids)
            inputs[f"{side.prefix}attention_mask"] = self._tensor(seen.astype(np.int64))
            if "token_type_ids" in self.template.inputs and not side.prefix:
                assert self.passage.types is not None
                types = np.where(seen, self.passage.types[here][order], 0)
                inputs["token_type_ids"] = self._tensor(types)

        writes = self.sides[-1]
        readout = self._places_read(stays[:, writes.first : writes.last], writes)
        sources = None
        if len(self.sides) > 1:
            sources = stays[:, : self.sides[0].last].sum(1).tolist()
        return replace(
            self.template,
            inputs=inputs,
            lengths=stays.sum(1).tolist(),
            readout=self._tensor(readout),
            sources=sources,
        )

    def _places_read(
        self, stays: Bool[np.ndarray, "mask place"], side: Side
    ) -> Int[np.ndarray, "mask output"]:
        """Where each output is read in the rows of a side: the last token before it that stays."""
        before = self.passage.output_place(0) - side.first - 1 + np.arange(self.passage.outputs)
        if self.removal == "delete":
            return stays.cumsum(1)[:, before] - 1
        place_if_seen = np.where(stays, np.arange(stays.shape[1]), 0)
        return np.maximum.accumulate(place_if_seen, axis=1)[:, before]

    def _with_a_start(
        self, kept: Bool[np.ndarray, "mask token"]
    ) -> tuple[Int[np.ndarray, "mask token"], Bool[np.ndarray, "mask token"]]:
        """The ids of each row and which of its places stay; a start token for an empty prompt."""
        ids = np.broadcast_to(self.passage.ids, kept.shape).copy()
        stays = kept.copy()
        prompt = self.passage.output_place(0)
        if len(self.sides) > 1:
            prompt = self.sides[0].last
        empty = ~kept[:, :prompt].any(1)
        ids[empty, 0] = start_id(self.model)
        stays[empty, 0] = True
        return ids, stays

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.model.device)
