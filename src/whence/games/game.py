"""The Game: the target's value when only some units of a text are kept.

LIME, Shapley, occlusion and evidence are functions of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from whence.core.attribution import Cost
from whence.core.errors import InputError, Unsupported
from whence.core.evidence import is_still
from whence.core.passage import Passage
from whence.core.request import AnyTarget
from whence.core.showing import visible
from whence.core.target import Reading, Target, as_target
from whence.core.units import Units
from whence.games.infill import Filler
from whence.games.masks import checked_masks, keys_of
from whence.games.memory import NO_ROW, Memory
from whence.games.removals import Remover, chosen_removal
from whence.games.written import WrittenRemover
from whence.models.load import load
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched

Tick = Callable[[int, int], None]
TOKENS_AT_ONCE = 1024  # of one batch; measured on two small models, more does not pay on a CPU
# Logits of one batch of written texts: 32 MB in float32. A vocabulary for each output of each row
# is more than all that the rows hold on their way. With half of it passes take a twentieth longer.
LOGITS_AT_ONCE = 2**23
# masks whose tokens are laid out together: a hundred thousand masks stay as small as their bits
ROWS_AT_ONCE = 8192

# of a text, or of a text with what a model wrote after it
AnyRemover = Remover | WrittenRemover


@dataclass
class Counter:
    """What the games that share a memory have paid so far."""

    forwards: int = 0
    saved: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Game:
    """A callable ``v(masks)``: True keeps a unit, False removes it. Made by ``whence.game``.

    Every mask is paid for once, whoever asks and about whichever target: ``about`` gives the game
    of another target on the same memory. ``cost`` counts the passes, and those that were
    remembered.
    """

    model: Model
    passage: Passage
    target: Target
    removal: str
    logits: Float[np.ndarray, "*output label"]  # of the whole text, at each output if it has some
    remover: AnyRemover
    memory: Memory
    counter: Counter
    tick: Tick
    tokens_at_once: int = TOKENS_AT_ONCE

    @property
    def size(self) -> int:
        """The number of units."""
        return len(self.passage.unit_spans)

    @property
    def units(self) -> Units:
        """The units, in order."""
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
    def is_still(self) -> bool:
        """Whether all values so far are one number, but for less than a millionth of it.

        Where as many masks were run as there are units, and one more; closed forms run none.
        """
        rows = len(self.memory.row_of_mask)
        asked = self.memory.values_of(self.target)
        known = asked.values[:rows][asked.known[:rows]]
        return len(known) > self.size and is_still(float(known.min()), float(known.max()))

    @property
    def logits_read(self) -> Float[np.ndarray, " label"]:
        """What the model says of the whole text, where the target is read."""
        if self.logits.ndim == 2:
            return self.logits[self.target.steps.start]
        return self.logits

    @property
    def label(self) -> int | None:
        """The label that the model predicts for the whole text; None if it has one output."""
        if self.logits.shape[-1] < 2:
            return None
        return int(self.labels(np.ones((1, self.size), dtype=bool))[0])

    @property
    def cost(self) -> Cost:
        """Passes paid (a filler's too), passes that memory saved, and seconds, so far."""
        counter = self.counter
        return Cost(forwards=counter.forwards, seconds=counter.seconds, saved=counter.saved)

    def about(self, target: AnyTarget, read: Reading | None = None) -> Game:
        """The same game about another target: a class, a contrast, another reading.

        Of a model with few labels this costs no pass, as all that it said is remembered. Of a
        vocabulary only what the asked targets need is kept: name them all when the game is made
        (``also=``), or what was run before is run again.

        >>> import whence
        >>> v = whence.game(whence.load("sentiment"), "not bad at all", target="positive")
        >>> paid = v.cost.forwards
        >>> w = v.about("negative", read="probability")
        >>> bool(w.full < 0.5), v.cost.forwards == paid
        (True, True)
        """
        wanted = self.model.resolve(as_target(target, read), self.logits, self.remover.passage)
        with self.model.lock:
            self.memory.values_of(wanted)
        return replace(self, target=wanted, passage=_passage_of(self.remover, wanted))

    def __call__(self, masks: Any) -> Float[np.ndarray, " mask"]:
        """The target's value for each mask."""
        rows = self._rows(masks)
        return self.memory.values_of(self.target).values[rows]

    def labels(self, masks: Any) -> Int[np.ndarray, " mask"]:
        """The label that the model predicts for each mask."""
        rows = self._rows(masks)
        labels = self.memory.labels[rows]
        if labels.ndim == 2:
            return labels[:, self.target.steps.start]
        return labels

    def __repr__(self) -> str:
        return visible(
            f"Game({self.target.describe()}, {self.size} units, removal={self.removal!r}, "
            f"{len(self.memory.row_of_mask)} masks known)"
        )

    def _rows(self, masks: Any) -> Int[np.ndarray, " mask"]:
        """The memory's row of each mask, after the unknown ones were run."""
        masks = checked_masks(masks, self.size, "unit")
        if not self._is_nested:
            masks = self._widened(masks)
        keys = keys_of(masks)
        with self.model.lock:
            unknown = self.memory.unknown(self.target, keys, self._look_up(keys))
            self.counter.saved += len(keys) - len(unknown)
            if unknown:
                self._run(self._widened(masks[unknown]))
            return self._look_up(keys)

    @property
    def nested_in(self) -> int:
        """How many units the largest of the games has whose masks this one shares.

        A game about an output of a written text has the first of them: those that stand before it.
        """
        return self._units_of_all if self._is_nested else self.size

    @property
    def _units_of_all(self) -> int:
        return len(self.remover.passage.unit_spans)

    @property
    def _is_nested(self) -> bool:
        """Whether later units change nothing. Several outputs rest on those between them, too."""
        return self.passage.written is not None and self.target.until is None

    def suggest(self, masks: Bool[np.ndarray, "mask whole"]) -> None:
        """Masks of the largest game, to be run where this one asks for what they begin with.

        So one pass answers for every output, and not only for this one.
        """
        known = self.memory.wider
        known.update(zip(keys_of(masks[:, : self.size]), masks, strict=True))

    def _widened(self, masks: Bool[np.ndarray, "mask unit"]) -> Bool[np.ndarray, "mask whole"]:
        """Masks of all units: what stands behind the output is kept, if nothing was suggested."""
        if masks.shape[1] == self._units_of_all:
            return masks
        wide = np.ones((len(masks), self._units_of_all), dtype=bool)
        wide[:, : self.size] = masks
        if not self._is_nested:
            return wide
        for row, key in enumerate(keys_of(masks)):
            suggested = self.memory.wider.get(key)
            # one of another size may spell the same bytes
            if suggested is not None and (suggested[: self.size] == masks[row]).all():
                wide[row] = suggested
        return wide

    def _look_up(self, keys: Sequence[bytes]) -> Int[np.ndarray, " mask"]:
        row_of_mask = self.memory.row_of_mask
        if self._is_nested:
            row_of_mask = self.memory.rows_of(self.size, self._units_of_all)
        rows = (row_of_mask.get(key, NO_ROW) for key in keys)
        return np.fromiter(rows, dtype=np.int64, count=len(keys))

    def _run(self, masks: Bool[np.ndarray, "mask unit"]) -> None:
        """Run masks. Each batch is remembered as it comes, so that an interrupt loses only one."""
        begun = time.perf_counter()
        done = 0
        most = rows_at_once(self.model, self.remover.passage)
        with untouched(self.model.hf), unbroken(torch.inference_mode()):
            for first in range(0, len(masks), ROWS_AT_ONCE):
                part = masks[first : first + ROWS_AT_ONCE]
                kept = self.remover.kept_tokens(part)
                lengths = self.remover.lengths(kept).tolist()
                for group in self.model.groups_of_lengths(lengths, self.tokens_at_once):
                    for begin in range(0, len(group), most):
                        batch = group[begin : begin + most]
                        self._run_batch(part[batch], kept[batch])
                        done += len(batch)
                        self.tick(done, len(masks))
        self.counter.seconds += time.perf_counter() - begun

    def _run_batch(
        self, masks: Bool[np.ndarray, "mask unit"], kept: Bool[np.ndarray, "mask token"]
    ) -> None:
        batch = self.remover.batch(kept, np.packbits(masks, axis=1).astype(np.int64))
        with self.remover.embeddings(kept, batch):
            logits = self.model.said(batch)
        passes_each = 1 if self.remover.filler is None else 2
        self.counter.forwards += len(masks) * passes_each
        self.memory.remember(keys_of(masks), logits)


def rows_at_once(model: Model, passage: Passage) -> int:
    """How many rows of a passage a batch has at most, however short: those that its logits allow.

    >>> model = load("sentiment")
    >>> rows_at_once(model, model.encode("not bad"))
    8192
    """
    if passage.written is None:
        return ROWS_AT_ONCE
    return max(1, LOGITS_AT_ONCE // (passage.outputs * len(model.labels)))


def game_of(
    model: Model, passage: Passage, target: Target, removal: str = "auto", seed: int = 0
) -> Game:
    """The game of an encoded passage."""
    return game_on(remover_of(model, passage, removal, seed), [target])


def game_on(
    remover: AnyRemover,
    targets: Sequence[Target],
    tick: Tick | None = None,
    tokens_at_once: int = TOKENS_AT_ONCE,
) -> Game:
    """The game about the first of ``targets``, on a memory that serves all of them."""
    model, passage = remover.model, remover.passage
    if passage.written is not None:
        logits = model.output_logits(passage)[None]
    else:
        logits = model.logits([passage])
    resolved = [model.resolve(target, logits[0], passage) for target in targets]
    memory = Memory(model)
    for target in resolved:
        memory.values_of(target)
    # the plain prediction, to the last bit: a batch of another size may round otherwise
    everything = np.ones((1, len(passage.unit_spans)), dtype=bool)
    memory.remember(keys_of(everything), torch.from_numpy(logits))
    return Game(
        model=model,
        passage=_passage_of(remover, resolved[0]),
        target=resolved[0],
        removal=name_of(remover),
        logits=logits[0],
        remover=remover,
        memory=memory,
        counter=Counter(forwards=1),
        tick=tick or (lambda _done, _of: None),
        tokens_at_once=tokens_at_once,
    )


def _passage_of(remover: AnyRemover, target: Target) -> Passage:
    """The passage with the units that are players: of a written text, those before the output."""
    if remover.passage.written is None:
        return remover.passage
    return remover.passage.before(target.steps.start)


def name_of(remover: AnyRemover) -> str:
    """The removal by its full name, with the model that fills if one does."""
    if remover.filler is None:
        return remover.removal
    return f"{remover.removal}:{remover.filler.model.name}"


def remover_of(
    model: Model,
    passage: Passage,
    removal: str,
    seed: int = 0,
    filler: Model | str | None = None,
) -> AnyRemover:
    """What takes units out of an encoded passage, by the removal's name."""
    check_has_head(model)
    kind, _, name = chosen_removal(model, removal).partition(":")
    if kind != "infill" and filler is not None:
        raise InputError(
            f"a filler fills what removal='infill' leaves open; this removal is {kind!r}."
        )
    if passage.written is not None:
        return WrittenRemover(model, passage, kind)
    if kind != "infill":
        return Remover(model, passage, kind)
    masked_model = filler if filler is not None else name
    if not isinstance(masked_model, Model):
        dtype = str(model.dtype).removeprefix("torch.")
        masked_model = load(masked_model, dtype=dtype, device=str(model.device))
    fills = Filler(masked_model, seed)
    fills.check(model, passage)
    return Remover(model, passage, kind, fills)


def check_is_model(model: Any) -> None:
    """Raise where a name, or a model of transformers, was given in place of a loaded model."""
    if not isinstance(model, Model):
        raise InputError(
            f"the first argument is a loaded model, not a {type(model).__name__}: "
            f"whence.load({model!r:.40}) gives one."
        )


def check_has_head(model: Model) -> None:
    """Raise for a model that gives out no number that could be explained."""
    if not model.kind.has_head:
        raise Unsupported(
            f"{type(model.hf).__name__} has no head, so there is no number to explain; "
            "use whence.attend."
        )
