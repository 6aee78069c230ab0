"""game: the target's value as a function of the units that are kept, within a budget of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.request import AnyTarget, Overflow
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind
from whence.explaining.room import room_for_games
from whence.games.game import Game, Tick, check_is_model, game_on, remover_of
from whence.models.model import Model


def game(
    model: Model,
    text: Any,
    *,
    pair: str | Sequence[str] | None = None,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    removal: str = "auto",
    filler: Model | str | None = None,
    seed: int = 0,
    overflow: Overflow = "error",
    also: Sequence[AnyTarget] = (),
    memory: str | int | float | None = None,
    progress: Tick | None = None,
) -> Game:
    """The target's value as a function of the units that are kept.

    ``removal`` says what becomes of the others: ``mask`` (the mask token), ``delete``, ``pad``
    (unseen by attention), ``mean`` or ``zero`` embedding, ``infill`` (a masked language model
    writes there: ``filler``, or the bundled one); ``auto`` is ``mask`` where the model has a mask
    token. ``also`` names further targets, for ``game.about``: only a vocabulary needs them named
    beforehand. ``memory`` is a budget ("2GB"; by default most of what is free): its batches are
    made small enough for it, and a text of which not even one row fits is refused before it runs.
    ``progress(done, of)`` is called after each batch.

    >>> import whence
    >>> v = whence.game(whence.load("sentiment"), "not bad at all", target="positive")
    >>> bool(v([[True, True, True, True]])[0] == v.full)
    True
    """
    check_is_model(model)
    if isinstance(text, Passage):
        passage = model.fitted(text, overflow)
    else:
        passage = model.encode(text, pair, units=units, overflow=overflow)
    if overflow == "window" and len(model.windows(passage)) > 1:
        raise InputError(
            "a game is of one run of the model; overflow is 'error' or 'truncate' "
            "(whence.explain plays one for each window)."
        )
    wanted = as_target(target, read)
    if filler is not None and removal == "auto":
        removal = "infill"
    passage = model.placed(passage, wanted)
    remover = remover_of(model, passage, removal, seed, filler)
    wanted = model.located(wanted, passage)
    targets = [wanted, *(as_target(other, read) for other in also)]
    tokens_at_once = room_for_games(model, [passage], memory, "a game", (remover.removal,))
    return game_on(remover, targets, progress, tokens_at_once)
