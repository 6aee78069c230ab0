"""A game whose players are features: the target's value when some of them are switched off.

Switched off means set to 0 at all tokens: its part a_j · decoder_j is taken out of the hidden
state after the autoencoder's block. Two players stand for the rest: all other features together,
and what the autoencoder does not reconstruct. With all of them kept the model is as it is; with
none of them, the decoder's bias alone is left.

Under a second removal a player is not set to 0 but to its own mean over the tokens of the text: it
is there as much as before, and no longer says where.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.core.attribution import Cost
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.core.request import AnyTarget
from whence.core.showing import visible
from whence.core.target import Reading, Target, as_target
from whence.core.units import Units
from whence.features.autoencoder import Autoencoder
from whence.features.belonging import check_belongs
from whence.features.token_texts import token_texts
from whence.games.game import TOKENS_AT_ONCE, Counter, Tick, check_has_head, check_is_model
from whence.games.masks import checked_masks, keys_of
from whence.games.memory import NO_ROW, Memory
from whence.models.batches import Batch
from whence.models.model import Model, finite
from whence.models.unbroken import unbroken
from whence.trace.hidden import editing, hidden_at

REMOVAL, SECOND_REMOVAL = "zero", "mean"
CANDIDATES = 256  # active features whose effect is tried one by one, to choose the players
NOT_RECONSTRUCTED = "not reconstructed"


@dataclass(frozen=True, eq=False)
class Players:
    """The parts of a hidden state that are switched on and off, and what they are called.

    Parts and the decoder's bias add up to the hidden state. ``features`` are the numbers of the
    first ones; ``others`` counts the active features that share one part, which is there only if
    there are some. The last part is what the autoencoder does not reconstruct.
    """

    features: tuple[int, ...]
    others: int
    parts: Float[Tensor, "player token dim"]
    units: Units
    strongest: tuple[float, ...]  # the largest activation of each feature in the text
    share_missed: float  # of the hidden state's variance over tokens, not reconstructed

    def removed(self, masks: Bool[np.ndarray, "mask player"]) -> Float[Tensor, "mask token dim"]:
        """What is taken away of the hidden state under each mask."""
        off = torch.from_numpy(~masks).to(self.parts)
        return (off @ self.parts.flatten(1)).view(len(masks), *self.parts.shape[1:])

    def about_their_means(self) -> Players:
        """The same players, of which only what differs from their mean over tokens is taken."""
        return replace(self, parts=self.parts - self.parts.mean(1, keepdim=True))


@dataclass(frozen=True, eq=False, repr=False)
class FeatureGame:
    """A callable ``v(masks)``: True keeps a feature, False removes it. Made by ``feature_game``.

    Removed is set to 0, or under the second removal to its mean over the tokens.

    It is played like a game of words: masks are remembered, passes are counted, and ``about``
    reads the same memory for another target.
    """

    model: Model
    autoencoder: Autoencoder
    passage: Passage
    target: Target
    players: Players
    logits: Float[np.ndarray, " label"]  # of the plain model
    memory: Memory
    counter: Counter
    tick: Tick
    removal: str = REMOVAL

    @property
    def size(self) -> int:
        """The number of players."""
        return len(self.players.units)

    @property
    def units(self) -> Units:
        """The players, in order."""
        return self.players.units

    @property
    def digest(self) -> bytes:
        """A hash of what is played on: the seed of anything random."""
        return self.passage.digest

    @property
    def full(self) -> float:
        """The value of the plain model."""
        return float(self(np.ones((1, self.size), dtype=bool))[0])

    @property
    def empty(self) -> float:
        """The value where no player is kept: of zeros, the decoder's bias is left."""
        return float(self(np.zeros((1, self.size), dtype=bool))[0])

    @property
    def label(self) -> int | None:
        """The label that the plain model predicts; None if it has one output."""
        return int(self.logits.argmax()) if self.logits.shape[-1] > 1 else None

    @property
    def cost(self) -> Cost:
        """Passes paid, passes that memory saved, and seconds, so far."""
        counter = self.counter
        return Cost(forwards=counter.forwards, seconds=counter.seconds, saved=counter.saved)

    def about(self, target: AnyTarget, read: Reading | None = None) -> FeatureGame:
        """The same game about another target."""
        wanted = self.model.resolve(as_target(target, read), self.logits, self.passage)
        with self.model.lock:
            self.memory.values_of(wanted)
        return replace(self, target=wanted)

    def under_means(self) -> FeatureGame:
        """The same game under the second removal; passes are counted together.

        >>> import whence
        >>> from whence.features.mirrors import mirror
        >>> model = whence.load("sentiment")
        >>> v = feature_game(model, mirror(model, layer=1), "not bad at all", top=3)
        >>> v.under_means().removal, v.under_means().full == v.full
        ('mean', True)
        """
        memory = Memory(self.model)
        with self.model.lock:
            memory.values_of(self.target)
        memory.remember(_of_everything(self.players), torch.from_numpy(self.logits)[None])
        players = self.players.about_their_means()
        return replace(self, memory=memory, players=players, removal=SECOND_REMOVAL)

    def __call__(self, masks: Any) -> Float[np.ndarray, " mask"]:
        """The target's value for each mask."""
        rows = self._rows(masks)
        return self.memory.values_of(self.target).values[rows]

    def labels(self, masks: Any) -> Int[np.ndarray, " mask"]:
        """The label that the model predicts for each mask."""
        rows = self._rows(masks)
        return self.memory.labels[rows]

    def __repr__(self) -> str:
        return visible(
            f"FeatureGame({self.target.describe()}, {self.size} players, {self.removal}, "
            f"{len(self.memory.row_of_mask)} masks known)"
        )

    def _rows(self, masks: Any) -> Int[np.ndarray, " mask"]:
        """The memory's row of each mask, after the unknown ones were run."""
        masks = checked_masks(masks, self.size, "player")
        keys = keys_of(masks)
        with self.model.lock:
            unknown = self.memory.unknown(self.target, keys, self._look_up(keys))
            self.counter.saved += len(keys) - len(unknown)
            if unknown:
                self._run(masks[unknown])
            return self._look_up(keys)

    def _look_up(self, keys: Sequence[bytes]) -> Int[np.ndarray, " mask"]:
        rows = [self.memory.row_of_mask.get(key, NO_ROW) for key in keys]
        return np.array(rows, dtype=np.int64)

    def _run(self, masks: Bool[np.ndarray, "mask player"]) -> None:
        """Run masks, a batch at a time; each batch is remembered as it comes."""
        begun = time.perf_counter()
        done = 0
        for logits, first, last in _runs(
            self.model, self.autoencoder, self.passage, len(masks), self._taken(masks)
        ):
            self.counter.forwards += last - first
            self.memory.remember(keys_of(masks[first:last]), logits)
            done += last - first
            self.tick(done, len(masks))
        self.counter.seconds += time.perf_counter() - begun

    def _taken(self, masks: Bool[np.ndarray, "mask player"]) -> Any:
        return lambda first, last: self.players.removed(masks[first:last])


def feature_game(
    model: Model,
    autoencoder: Autoencoder,
    text: str | Passage,
    *,
    pair: str | None = None,
    target: AnyTarget = None,
    read: Reading | None = None,
    top: int = 10,
    features: Sequence[int] | None = None,
    candidates: int = CANDIDATES,
    progress: Tick | None = None,
) -> FeatureGame:
    """The target's value as a function of the features that are kept.

    Players are the ``top`` features whose removal changes the target most, found by trying the
    ``candidates`` most active ones one by one; or the ``features`` that are named. All other
    features are one player, and what the autoencoder does not reconstruct is another.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("sentiment")
    >>> v = feature_game(model, mirror(model, layer=1), "not bad at all", top=3)
    >>> v.size, bool(v.full == v([[1, 1, 1, 1, 1]])[0])
    (5, True)
    """
    check_is_model(model)
    check_has_head(model)
    check_belongs(model, autoencoder)
    if top < 1:
        raise InputError(f"at least one feature is a player, not {top}.")
    passage = text if isinstance(text, Passage) else model.encode(text, pair)
    wanted = as_target(target, read)
    passage = model.placed(passage, wanted)
    if passage.written is not None or passage.choices:
        raise Unsupported(
            "features are explained on one text with one output: the next token, a class, a tag."
        )
    wanted = model.located(wanted, passage)
    plain = model.logits([passage])
    resolved = model.resolve(wanted, plain[0], passage)
    counter = Counter(forwards=1)
    codes, states = _codes(model, autoencoder, passage)
    if features is None:
        tried = _most_active(autoencoder, codes, candidates)
        effects = _effects_of(model, autoencoder, passage, resolved, plain[0], codes, tried)
        counter.forwards += len(tried)
        order = np.argsort(-np.abs(effects), kind="stable")[:top]
        chosen = [tried[i] for i in order]
    else:
        chosen = _checked(autoencoder, features)
    memory = Memory(model)
    memory.values_of(resolved)
    players = _players(autoencoder, passage, codes, states, chosen)
    # the plain prediction, to the last bit: a batch of another size may round otherwise
    memory.remember(_of_everything(players), torch.from_numpy(plain))
    return FeatureGame(
        model=model,
        autoencoder=autoencoder,
        passage=passage,
        target=resolved,
        players=players,
        logits=plain[0],
        memory=memory,
        counter=counter,
        tick=progress or (lambda _done, _of: None),
    )


def _of_everything(players: Players) -> list[bytes]:
    """The mask that keeps all players, as memory knows it."""
    return keys_of(np.ones((1, len(players.units)), dtype=bool))


def _checked(autoencoder: Autoencoder, features: Sequence[int]) -> list[int]:
    from whence.features.belonging import check_feature

    chosen = list(dict.fromkeys(features))
    if not chosen:
        raise InputError("features= names no feature.")
    for feature in chosen:
        check_feature(autoencoder, feature)
    return chosen


def _codes(
    model: Model, autoencoder: Autoencoder, passage: Passage
) -> tuple[Float[Tensor, "token feature"], Float[Tensor, "token dim"]]:
    """The activations at each token, and the hidden states."""
    about = autoencoder.about
    kind = about.kind if model.is_encoder_decoder else None
    (states,) = hidden_at(model, [passage], about.layer, kind)
    with unbroken(torch.inference_mode()):
        return autoencoder.encode(states.float()), states.float()


def _most_active(
    autoencoder: Autoencoder, codes: Float[Tensor, "token feature"], most: int
) -> list[int]:
    """The features that are active somewhere in the text, those with the largest parts first."""
    size = (codes.abs() * autoencoder.norms).sum(0)
    order = size.argsort(descending=True, stable=True)[:most]
    active = [int(i) for i in order if size[i] > 0]
    if not active:
        raise InputError("no feature is active on this text, so there is nothing to switch off.")
    return active


def _effects_of(
    model: Model,
    autoencoder: Autoencoder,
    passage: Passage,
    target: Target,
    plain: Float[np.ndarray, " label"],
    codes: Float[Tensor, "token feature"],
    features: Sequence[int],
) -> Float[np.ndarray, " candidate"]:
    """What the target loses when each feature is switched off alone."""

    def taken(first: int, last: int) -> Tensor:
        part = list(features[first:last])
        return codes[:, part].T[:, :, None] * autoencoder.decoder[part][:, None]

    values = []
    for logits, first, last in _runs(model, autoencoder, passage, len(features), taken):
        values.append(model.value(logits.double(), [target] * (last - first)).cpu().numpy())
    full = model.value(torch.from_numpy(plain)[None].double(), [target]).cpu().numpy()
    return full - np.concatenate(values)


def _players(
    autoencoder: Autoencoder,
    passage: Passage,
    codes: Float[Tensor, "token feature"],
    states: Float[Tensor, "token dim"],
    chosen: Sequence[int],
) -> Players:
    with unbroken(torch.inference_mode()):
        own = codes[:, chosen].T[:, :, None] * autoencoder.decoder[chosen][:, None]
        left = codes.clone()
        left[:, chosen] = 0
        others = int((left > 0).any(0).sum())
        parts = list(own)
        if others:
            parts.append(left @ autoencoder.decoder)
        missed = states - autoencoder.decode(codes)
        parts.append(missed)
        spread = (states - states.mean(0)).square().sum()
    texts = [_name(autoencoder, passage, codes, feature) for feature in chosen]
    if others:
        texts.append("1 other feature" if others == 1 else f"{others:,} other features")
    texts.append(NOT_RECONSTRUCTED)
    values = codes[:, chosen] * autoencoder.norms[chosen]
    return Players(
        features=tuple(chosen),
        others=others,
        parts=torch.stack(parts),
        units=Units("feature", tuple(texts)),
        strongest=tuple(values.amax(0).tolist()),
        share_missed=float(missed.square().sum() / spread) if float(spread) > 0 else float("nan"),
    )


def _name(
    autoencoder: Autoencoder,
    passage: Passage,
    codes: Float[Tensor, "token feature"],
    feature: int,
) -> str:
    """Its number, and the token of this text on which it is strongest."""
    if not autoencoder.norms[feature] or not float(codes[:, feature].max()) > 0:
        return f"feature {feature}"
    place = int(codes[:, feature].argmax())
    piece = ""
    if len(passage) == len(codes):
        piece = token_texts(passage)[place].strip() or passage.tokens[place]
    return f"feature {feature} ({piece})" if piece else f"feature {feature}"


def _runs(model: Model, autoencoder: Autoencoder, passage: Passage, count: int, taken: Any) -> Any:
    """The passage so many times, each with something else taken out of its hidden states.

    ``taken(first, last)`` gives that, "row token dim", for some rows. Yields logits, and the rows.
    """
    about = autoencoder.about
    kind = about.kind if model.is_encoder_decoder else None
    removed: list[Tensor] = []

    def change(states: Float[Tensor, "row token dim"]) -> Float[Tensor, "row token dim"]:
        if states.shape != removed[0].shape:
            raise Unsupported(
                f"the hidden states have the shape {tuple(states.shape)} here and "
                f"{tuple(removed[0].shape)} when the text was read."
            )
        return states - removed[0].to(states)

    at_once = max(1, TOKENS_AT_ONCE // max(1, len(passage)))
    if not model.shares_batches:
        at_once = 1
    template = model.batch([passage])
    for first in range(0, count, at_once):
        last = min(count, first + at_once)
        removed[:] = [taken(first, last)]
        batch = _repeated(template, last - first)
        with editing(model, about.layer, change, kind), unbroken(torch.inference_mode()):
            logits = finite(model.read(model.run(batch.inputs), batch))
        yield logits, first, last


def _repeated(template: Batch, count: int) -> Batch:
    """A batch of one, so many times."""
    inputs = {}
    for name, tensor in template.inputs.items():
        inputs[name] = tensor.expand(count, *tensor.shape[1:]).contiguous()
    readout = template.readout
    if readout is not None:
        readout = readout.expand(count, *readout.shape[1:])
    sources = None if template.sources is None else template.sources * count
    return Batch(inputs, template.lengths * count, readout, sources)
