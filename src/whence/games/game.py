"""The Game: the target's value when only some units of a text are kept. LIME, Shapley, occlusion and evidence are functions of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from whence.core.attribution import Cost
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind, Units
from whence.games.infill import Filler
from whence.games.removals import Remover, chosen_removal
from whence.models.batches import groups_of
from whence.models.load import load
from whence.models.model import Model, Overflow, finite
from whence.models.untouched import untouched

Tick = Callable[[int, int], None]
TOKENS_AT_ONCE = 1024  # of one batch; measured on two small models, more does not pay on a CPU
ROWS_AT_ONCE = (
    8192  # whose tokens are laid out together: a hundred thousand masks stay as small as their bits
)


class Game:
    """A callable ``v(masks)``: True keeps a unit, False removes it. Made by ``whence.game``.

    Every mask is paid for once, whoever asks: ``cost`` counts the passes, and those that were remembered.
    """

    def __init__(
        self,
        model: Model,
        passage: Passage,
        target: Target,
        remover: Remover,
        tick: Tick | None = None,
    ) -> None:
        self.model, self.passage, self.removal = model, passage, remover.removal
        if remover.filler is not None:
            self.removal = f"infill:{remover.filler.model.name}"
        self.tick: Tick = tick or (lambda _done, _of: None)
        self._remover = remover
        self._rows: dict[bytes, int] = {}
        self._values: Float[np.ndarray, " known"] = np.empty(64)
        self._labels: Int[np.ndarray, " known"] = np.empty(64, dtype=np.int64)
        self._forwards = self._saved = 0
        self._seconds = 0.0
        logits = model.logits([passage])
        self.logits: Float[np.ndarray, " label"] = logits[0]
        self.target = model.resolve(target, logits[0])
        self._forwards += 1
        # the plain prediction, to the last bit: a batch of another size may round otherwise
        self._remember(
            [self._keys(np.ones((1, self.size), dtype=bool))[0]],
            self._read(torch.from_numpy(logits)),
            logits.argmax(1),
        )

    @property
    def size(self) -> int:
        """The number of units."""
        return len(self.passage.unit_spans)

    @property
    def units(self) -> Units:
        """The units, in order; their names are ``units.names``."""
        return self.passage.units

    @property
    def digest(self) -> bytes:
        """A hash of what is played on: the seed of anything random."""
        return self.passage.digest

    @property
    def full(self) -> float:
        """The value of the whole text."""
        return float(self(np.ones((1, self.size), dtype=bool))[0])

    @property
    def empty(self) -> float:
        """The value when every unit is removed."""
        return float(self(np.zeros((1, self.size), dtype=bool))[0])

    @property
    def label(self) -> int | None:
        """The label that the model predicts for the whole text; None if it has one output."""
        if len(self.logits) < 2:
            return None
        return int(self.labels(np.ones((1, self.size), dtype=bool))[0])

    @property
    def cost(self) -> Cost:
        """Passes paid (a filler's too), passes that memory saved, and seconds, since the game was made."""
        return Cost(forwards=self._forwards, seconds=self._seconds, saved=self._saved)

    def __call__(self, masks: Any) -> Float[np.ndarray, " mask"]:
        """The target's value for each mask."""
        rows = self._known(masks)  # first: it may make room in what is read below
        return self._values[rows]

    def labels(self, masks: Any) -> Int[np.ndarray, " mask"]:
        """The label that the model predicts for each mask."""
        rows = self._known(masks)
        return self._labels[rows]

    def about(self, target: Any, /) -> Game:
        """The same game, read for another target."""
        return Game(self.model, self.passage, as_target(target), self._remover, self.tick)

    def __repr__(self) -> str:
        return f"Game({self.target.describe()}, {self.size} units, removal={self.removal!r}, {len(self._rows)} masks known)"

    def _known(self, masks: Any) -> Int[np.ndarray, " mask"]:
        """The row of each mask, after the unknown ones were run."""
        masks = self._checked(masks)
        keys = self._keys(masks)
        with self.model.lock:
            fresh = {key: i for i, key in enumerate(keys) if key not in self._rows}
            self._saved += len(keys) - len(fresh)
            self._run(masks[list(fresh.values())])
            return np.fromiter((self._rows[key] for key in keys), dtype=np.int64, count=len(keys))

    def _checked(self, masks: Any) -> Bool[np.ndarray, "mask unit"]:
        found = np.asarray(masks)
        if found.ndim != 2 or found.shape[1] != self.size:
            raise InputError(
                f"masks have the shape (masks, {self.size}), one column per unit, not {found.shape}."
            )
        if found.dtype != bool:
            if not np.isin(found, (0, 1)).all():
                raise InputError(
                    "a mask says True (or 1) for a unit that is kept and False (or 0) for one that is removed."
                )
            found = found.astype(bool)
        return found

    @staticmethod
    def _keys(masks: Bool[np.ndarray, "mask unit"]) -> list[bytes]:
        packed = np.packbits(masks, axis=1)
        content, width = packed.tobytes(), packed.shape[1]
        return [content[i : i + width] for i in range(0, len(content), width)]

    def _run(self, masks: Bool[np.ndarray, "mask unit"]) -> None:
        """Run masks that are all new. Each batch is remembered as it comes, so that nothing paid for is lost on an interrupt."""
        begun = time.perf_counter()
        done = 0
        with untouched(self.model.hf), torch.inference_mode():
            for first in range(0, len(masks), ROWS_AT_ONCE):
                some = masks[first : first + ROWS_AT_ONCE]
                kept = self._remover.kept_tokens(some)
                budget = TOKENS_AT_ONCE if self.model.pads else 0
                for group in groups_of(self._remover.lengths(kept).tolist(), budget):
                    self._run_batch(some[group], kept[group])
                    done += len(group)
                    self.tick(done, len(masks))
        self._seconds += time.perf_counter() - begun

    def _run_batch(
        self, masks: Bool[np.ndarray, "mask unit"], kept: Bool[np.ndarray, "mask token"]
    ) -> None:
        batch = self._remover.batch(kept, np.packbits(masks, axis=1).astype(np.int64))
        with self._remover.embeddings(kept, batch):
            logits = finite(self.model.read(self.model.hf(**batch.inputs), batch))
        self._forwards += len(masks) * (1 if self._remover.filler is None else 2)
        self._remember(self._keys(masks), self._read(logits), logits.argmax(-1).cpu().numpy())

    def _read(self, logits: torch.Tensor) -> Float[np.ndarray, " mask"]:
        return self.model.value(logits, [self.target] * len(logits)).double().cpu().numpy()

    def _remember(
        self,
        keys: Sequence[bytes],
        values: Float[np.ndarray, " mask"],
        labels: Int[np.ndarray, " mask"],
    ) -> None:
        """The rows are told last: whoever interrupts before has lost a batch, and nothing else."""
        start = len(self._rows)
        self._values, self._labels = (
            _with_room(self._values, start + len(keys)),
            _with_room(self._labels, start + len(keys)),
        )
        self._values[start : start + len(keys)] = values
        self._labels[start : start + len(keys)] = labels
        self._rows.update(zip(keys, range(start, start + len(keys)), strict=True))


def _with_room(array: np.ndarray, size: int) -> np.ndarray:
    return (
        array
        if len(array) >= size
        else np.concatenate(
            [array, np.empty(max(size, 2 * len(array)) - len(array), dtype=array.dtype)]
        )
    )


def game(
    model: Model,
    text: Any,
    *,
    pair: str | None = None,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    removal: str = "auto",
    filler: Model | str | None = None,
    seed: int = 0,
    overflow: Overflow = "error",
    progress: Tick | None = None,
) -> Game:
    """The target's value as a function of the units that are kept.

    ``removal`` says what becomes of the others: ``mask`` (the mask token), ``delete``, ``pad`` (unseen by attention), ``mean`` or
    ``zero`` embedding, ``infill`` (a masked language model writes there: ``filler``, or the bundled one); ``auto`` is ``mask`` where
    the model has a mask token. ``progress(done, of)`` is called after each batch.

    >>> import whence
    >>> v = whence.game(whence.load("sentiment"), "not bad at all", target="positive")
    >>> bool(v([[True, True, True, True]])[0] == v.full)
    True
    """
    if not isinstance(model, Model):
        raise InputError(
            f"the first argument is a loaded model, not a {type(model).__name__}: whence.load({model!r:.40}) gives one."
        )
    passage = (
        model.fitted(text, overflow)
        if isinstance(text, Passage)
        else model.encode(text, pair, units=units, overflow=overflow)
    )
    if overflow == "window" and len(model.windows(passage)) > 1:
        raise InputError(
            "a game is of one run of the model; overflow is 'error' or 'truncate' (whence.explain plays one for each window)."
        )
    wanted = as_target(target, read)
    if filler is not None and removal == "auto":
        removal = "infill"
    return game_of(model, model.placed(passage, wanted), wanted, removal, seed, filler, progress)


def game_of(
    model: Model,
    passage: Passage,
    target: Target,
    removal: str,
    seed: int = 0,
    filler: Model | str | None = None,
    tick: Tick | None = None,
) -> Game:
    """The game of an encoded passage."""
    if model.task == "bare":
        raise Unsupported(
            f"{type(model.hf).__name__} has no head, so there is no number to explain; use whence.attend."
        )
    kind, _, name = chosen_removal(model, removal).partition(":")
    fills = None
    if kind == "infill":
        wanted = filler if filler is not None else name
        fills = Filler(
            wanted
            if isinstance(wanted, Model)
            else load(wanted, dtype=_name_of(model.dtype), device=str(model.device)),
            seed,
        )
        fills.check(model, passage)
    elif filler is not None:
        raise InputError(
            f"a filler fills what removal='infill' leaves open; this removal is {kind!r}."
        )
    return Game(model, passage, target, Remover(model, passage, kind, fills), tick)


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
