"""What a model said of each mask, remembered, so that no mask is paid for twice.

A classifier has few labels: their logits are kept, and any target can be read from them later.
A vocabulary has tens of thousands: of it only the values of the targets that were asked for are
kept, and a target that comes later runs the masks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.core.target import Target
from whence.models.model import Model
from whence.models.unbroken import unbroken

FIRST_ROOM = 64  # masks
NO_ROW = -1
FEW_LABELS = 512  # up to which logits are kept: 8,000 masks are then at most 33 MB


@dataclass(eq=False)
class TargetValues:
    """The values of one target, and of which masks they are known."""

    target: Target
    values: Float[np.ndarray, " row"] = field(default_factory=lambda: np.empty(FIRST_ROOM))
    known: Bool[np.ndarray, " row"] = field(default_factory=lambda: np.zeros(FIRST_ROOM, bool))

    def make_room(self, rows: int) -> None:
        """Room for so many masks."""
        self.values = _with_room(self.values, rows)
        self.known = _with_room(self.known, rows)

    def put(self, rows: Int[np.ndarray, " mask"], values: Float[np.ndarray, " mask"]) -> None:
        """Remember values."""
        self.values[rows] = values
        self.known[rows] = True


class Memory:
    """Masks by their bits, what the model predicted for each, and the values of targets."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.row_of_mask: dict[bytes, int] = {}
        # the same by what masks begin with, for games of fewer units; and masks to be run for those
        self.rows_by_beginning: dict[int, dict[bytes, int]] = {}
        self.wider: dict[bytes, Bool[np.ndarray, " unit"]] = {}
        # a row for each mask; of a written text, one label for each output
        self.labels: np.ndarray = np.empty(FIRST_ROOM, dtype=np.int64)
        self.by_target: dict[Target, TargetValues] = {}
        self._logits: Tensor | None = None
        # what was not kept from the beginning is not known for every mask
        self.keeps_logits: bool | None = None

    def values_of(self, target: Target) -> TargetValues:
        """The values of a target. A new one is read from the logits where these were kept."""
        if target not in self.by_target:
            values = TargetValues(target)
            values.make_room(len(self.row_of_mask))
            self.by_target[target] = values
            if self._logits is not None:
                rows = np.arange(len(self.row_of_mask))
                with unbroken(torch.inference_mode()):
                    values.put(rows, self._read(self._logits[: len(rows)], target))
        return self.by_target[target]

    def rows_of(self, size: int, whole: int) -> dict[bytes, int]:
        """The row of each mask; of a game with fewer units, any row that begins so.

        What such a game is about does not depend on the other units.
        """
        if size == whole:
            return self.row_of_mask
        if size not in self.rows_by_beginning:
            self.rows_by_beginning[size] = _beginnings(self.row_of_mask, size)
        return self.rows_by_beginning[size]

    def unknown(
        self, target: Target, keys: Sequence[bytes], rows: Int[np.ndarray, " mask"]
    ) -> list[int]:
        """Which masks must be run for this target, each of them once; ``rows`` are theirs here."""
        known = self.values_of(target).known
        is_unknown = (rows == NO_ROW) | ~known[rows]
        last_place = {keys[place]: place for place in np.flatnonzero(is_unknown).tolist()}
        return list(last_place.values())

    def remember(self, masks: Sequence[bytes], logits: Float[Tensor, "mask *output label"]) -> None:
        """Remember what the model said of some masks, for every target that was asked for.

        The masks themselves come last: an interrupt before that loses this batch and nothing else.
        """
        first_new = len(self.row_of_mask)
        new_rows = {}
        for mask in masks:
            if mask not in self.row_of_mask:
                new_rows[mask] = first_new + len(new_rows)
        rows = np.array([self.row_of_mask.get(mask, new_rows.get(mask)) for mask in masks])
        room = first_new + len(new_rows)
        if not self.row_of_mask and logits.ndim == 3:
            self.labels = np.empty((FIRST_ROOM, logits.shape[1]), dtype=np.int64)
        self.labels = _with_room(self.labels, room)
        self.labels[rows] = logits.argmax(-1).cpu().numpy()
        if self.keeps_logits is None:
            self.keeps_logits = logits[0].numel() <= FEW_LABELS
        with unbroken(torch.inference_mode()):
            if self.keeps_logits:
                self._keep(rows, room, logits)
            for target, values in self.by_target.items():
                values.make_room(room)
                values.put(rows, self._read(logits, target))
        self.row_of_mask.update(new_rows)
        for size, rows_of_beginnings in self.rows_by_beginning.items():
            rows_of_beginnings.update(_beginnings(new_rows, size))

    def _keep(self, rows: Int[np.ndarray, " mask"], room: int, logits: Tensor) -> None:
        logits = logits.detach().double().cpu()
        if self._logits is None:
            self._logits = logits.new_empty(FIRST_ROOM, *logits.shape[1:])
        if len(self._logits) < room:
            more = max(room, 2 * len(self._logits)) - len(self._logits)
            self._logits = torch.cat([self._logits, logits.new_empty(more, *logits.shape[1:])])
        self._logits[torch.from_numpy(rows)] = logits

    def _read(
        self, logits: Float[Tensor, "mask *output label"], target: Target
    ) -> Float[np.ndarray, " mask"]:
        values = self.model.value(logits, [target] * len(logits))
        return values.double().cpu().numpy()


def _beginnings(row_of_mask: dict[bytes, int], size: int) -> dict[bytes, int]:
    """Rows by the first bits of their masks, which are packed to bytes."""
    width = -(-size // 8)
    last = 0xFF00 >> (size % 8 or 8) & 0xFF  # the bits of the last byte that count
    return {
        mask[: width - 1] + bytes([mask[width - 1] & last]): row
        for mask, row in row_of_mask.items()
    }


def _with_room(array: np.ndarray, size: int) -> np.ndarray:
    """The array, with twice its room where it has too little; new entries are zero."""
    if len(array) >= size:
        return array
    more = max(size, 2 * len(array)) - len(array)
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])
