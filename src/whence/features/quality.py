"""The quality of an autoencoder on held-out text, beside what simpler things reach.

The hidden states at its layer are replaced by what it makes of them, and the model goes on: what
is lost of its loss says what is lost of what the model uses. The same is done with principal
components, random directions and single neurons of as many numbers, with zeros, and with the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from whence.core.bootstrap import Mean, ratio_of_sums
from whence.core.errors import InputError, Unsupported
from whence.core.features_quality import Agreement, Fit, Quality
from whence.features.autoencoder import Autoencoder
from whence.features.cache import Cache, Moments
from whence.features.corpus import Corpus, Piece, pieces_of, rows_to_learn
from whence.features.quality_of_weights import Use, use_of
from whence.features.stand_ins import (
    StandIn,
    by_components,
    by_features,
    by_neurons,
    by_random_directions,
)
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.trace.hidden import editing, reading

TOKENS = 20_000  # of held-out text
TOKENS_PER_BATCH = 2048  # the logits of a language model are wide
FOUND = 0.9  # the cosine from which on two features are the same
DENSE = 0.1  # the share of rows from which on a feature is dense
MOST_ROWS = 500_000  # that usage is counted on


# told of what is done, and of how much
Tell = Callable[[int, int], None]


def _tell_nobody(_done: int, _of: int) -> None:
    """Where nobody asked."""


def usage(
    autoencoder: Autoencoder, cache: Cache, most: int = MOST_ROWS, tell: Tell = _tell_nobody
) -> Use:
    """How features do on training rows: the shards of a cache until there are ``most`` rows."""

    def some() -> Iterator[Tensor]:
        rows = 0
        for number, shard in enumerate(cache.shards):
            if rows < most:
                tell(rows, min(cache.rows, most))
                yield cache.states(number)
            rows += shard.rows

    return use_of(autoencoder, some())


def quality(
    model: Model,
    autoencoder: Autoencoder,
    corpus: Corpus,
    cache: Cache,
    moments: Moments,
    *,
    used: Use | None = None,
    others: Sequence[tuple[int, Autoencoder]] = (),
    tokens: int = TOKENS,
    pieces: Sequence[Piece] | None = None,
    tell: Tell = _tell_nobody,
) -> Quality:
    """Measure an autoencoder on the held-out documents of the corpus it was trained on.

    ``others`` are trainings from other seeds, of which the first is compared with. ``pieces`` are
    the held-out passages, where they are known; ``tell`` is told of tokens that are done.
    """
    wanted = cache.wanted
    used = usage(autoencoder, cache) if used is None else used
    number = max(1, round(used.l0))
    if pieces is None:
        pieces = held_out_pieces(model, corpus, wanted.length, tokens)
    stand_ins = stand_ins_of(autoencoder, moments, number)
    place = Place(autoencoder.about.layer, wanted.kind, wanted.special)
    sums = measure(model, pieces, place, stand_ins, moments.mean, tell)
    agreement = None
    if others:
        seed, other = others[0]
        agreement = agreement_of(autoencoder, other, seed, moments, used.frequency > 0)
    return Quality(
        documents=len(sums.tokens),
        tokens=int(sums.tokens.sum()),
        size=autoencoder.size,
        dead=int((used.frequency == 0).sum()),
        dense=int((used.frequency > DENSE).sum()),
        seen=used.rows,
        loss=sums.loss,
        loss_plain=float(sums.plain.sum() / sums.predicted.sum()),
        loss_zero=float(sums.zero.sum() / sums.predicted.sum()),
        loss_mean=float(sums.mean.sum() / sums.predicted.sum()),
        fits=tuple(sums.fit(i, each.name) for i, each in enumerate(stand_ins)),
        agreement=agreement,
    )


def stand_ins_of(autoencoder: Autoencoder, moments: Moments, number: int) -> list[StandIn]:
    """The autoencoder, and what it is measured beside: of as many numbers for each token."""
    return [
        by_features(autoencoder),
        by_components(moments, min(number, autoencoder.dim)),
        by_random_directions(moments, autoencoder.size, number),
        by_neurons(moments, number),
    ]


def held_out_pieces(model: Model, corpus: Corpus, length: int, tokens: int) -> list[Piece]:
    """Held-out passages up to so many tokens: the first of every document, then the second …"""
    pieces = list(pieces_of(model, corpus, held_out=True, length=length))
    turn: dict[int, int] = {}
    order = []
    for place, piece in enumerate(pieces):
        turn[piece.document] = turn.get(piece.document, -1) + 1
        order.append((turn[piece.document], place))
    chosen: list[Piece] = []
    taken = 0
    for _, place in sorted(order):
        if taken >= tokens:
            break
        chosen.append(pieces[place])
        taken += len(pieces[place].passage)
    if not chosen:
        raise InputError(
            f"the corpus {corpus.name} has no text to hold out: it is one short text. "
            "Quality is measured on text that was not learned from."
        )
    return chosen


@dataclass(frozen=True)
class Place:
    """Where hidden states are replaced."""

    layer: int
    kind: str
    special: bool


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the tokens of each held-out document."""

    loss: str
    tokens: Float[np.ndarray, " document"]
    predicted: Float[np.ndarray, " document"]  # what the loss is a sum over
    variance: Float[np.ndarray, " document"]
    plain: Float[np.ndarray, " document"]
    zero: Float[np.ndarray, " document"]
    mean: Float[np.ndarray, " document"]
    missed: Float[np.ndarray, "stand_in document"]
    kept: Float[np.ndarray, "stand_in document"]
    losses: Float[np.ndarray, "stand_in document"]

    def fit(self, number: int, name: str) -> Fit:
        """The numbers of one stand-in, with intervals over documents."""
        missed = ratio_of_sums(self.missed[number], self.variance)
        return Fit(
            name,
            ratio_of_sums(self.kept[number], self.tokens),
            _one_minus(missed),
            ratio_of_sums(self.zero - self.losses[number], self.zero - self.plain),
            ratio_of_sums(self.mean - self.losses[number], self.mean - self.plain),
        )


def _one_minus(share: Mean) -> Mean:
    interval = None
    if share.interval is not None:
        interval = (1 - share.interval[1], 1 - share.interval[0])
    return Mean(1 - share.mean, interval, share.texts)


def measure(
    model: Model,
    pieces: Sequence[Piece],
    place: Place,
    stand_ins: Sequence[StandIn],
    mean: Float[Tensor, " dim"],
    tell: Tell = _tell_nobody,
) -> Sums:
    """Run the held-out passages with each stand-in, with zeros, and with the mean in the place."""
    done, of = 0, sum(len(piece.passage) for piece in pieces)
    in_order = dict.fromkeys(piece.document for piece in pieces)
    documents = {document: column for column, document in enumerate(in_order)}
    table = np.zeros((6 + 3 * len(stand_ins), len(documents)))
    passages = [piece.passage for piece in pieces]
    measured = Loss(model)
    with model.lock, unbroken(torch.inference_mode()):
        for group in model.groups(passages, TOKENS_PER_BATCH):
            tell(done, of)
            some = [passages[i] for i in group]
            done += sum(map(len, some))
            columns = [documents[pieces[i].document] for i in group]
            numbers = _of_batch(model, some, place, stand_ins, mean, measured)
            for row, of_passages in zip(table, numbers, strict=True):
                np.add.at(row, columns, of_passages)
    if not np.isfinite(table).all():
        raise InputError(
            "what the model said of held-out text, or what the autoencoder made of it, is NaN."
        )
    tokens, predicted, plain, zero, with_mean, variance = table[:6]
    rest = table[6:].reshape(len(stand_ins), 3, len(documents))
    return Sums(
        loss=measured.name,
        tokens=tokens,
        predicted=predicted,
        variance=variance,
        plain=plain,
        zero=zero,
        mean=with_mean,
        missed=rest[:, 0],
        kept=rest[:, 1],
        losses=rest[:, 2],
    )


def _of_batch(
    model: Model,
    passages: Sequence[Any],
    place: Place,
    stand_ins: Sequence[StandIn],
    mean: Float[Tensor, " dim"],
    measured: Loss,
) -> list[np.ndarray]:
    """Sums over the tokens of each passage, in the order of the table."""
    batch = model.batch(passages)
    seen: list[Tensor] = []
    with reading(model, place.layer, seen.append, place.kind):
        plain = measured.begin(model.run(batch.inputs), batch.inputs)
    states = seen[0]
    learned = torch.zeros(states.shape[:2], dtype=torch.bool)
    for row, passage in enumerate(passages):
        learned[row, torch.from_numpy(rows_to_learn(passage, place.special))] = True
    learned = learned.to(states.device)
    rows = states[learned]
    centred = rows.double() - mean.to(rows.device)

    def loss_with(replaced: Tensor) -> np.ndarray:
        changed = states.clone()
        changed[learned] = replaced.to(states)
        with editing(model, place.layer, lambda _: changed, place.kind):
            return measured.of(model.run(batch.inputs), batch.inputs)

    numbers = [
        learned.sum(1).double().cpu().numpy(),
        measured.counted,
        plain,
        loss_with(torch.zeros_like(rows)),
        loss_with(mean.expand(rows.shape)),
        _by_passage(centred.square().sum(1), learned),
    ]
    for each in stand_ins:
        replaced, kept = each.of(rows.cpu())
        missed = (rows.double().cpu() - replaced.double()).square().sum(1)
        numbers.append(_by_passage(missed.to(rows.device), learned))
        numbers.append(_by_passage(kept.double().to(rows.device), learned))
        numbers.append(loss_with(replaced.to(rows.device)))
    return numbers


def _by_passage(
    of_rows: Float[Tensor, " row"], learned: Bool[Tensor, "passage token"]
) -> Float[np.ndarray, " passage"]:
    """Sums of numbers of tokens, for each passage."""
    spread = torch.zeros(learned.shape, dtype=torch.float64, device=learned.device)
    spread[learned] = of_rows.double()
    return spread.sum(1).cpu().numpy()


class Loss:
    """What is lost of what a model says. ``begin`` is told its plain answer, ``of`` another."""

    def __init__(self, model: Model) -> None:
        self.name = "next token" if model.is_causal and model.kind.generates else "divergence"
        if not model.kind.has_head:
            self.name = "distance"
        self.counted: np.ndarray = np.zeros(0)
        self._plain: Tensor | None = None

    def begin(self, outputs: Any, inputs: Any) -> Float[np.ndarray, " passage"]:
        """The loss of the model as it is: a sum over what ``counted`` counts, for each passage."""
        self._plain = _said(outputs, self.name)
        self.counted = self._mask(inputs).sum(1).double().cpu().numpy()
        return self.of(outputs, inputs)

    def of(self, outputs: Any, inputs: Any) -> Float[np.ndarray, " passage"]:
        """The same of another answer to the same inputs."""
        said = _said(outputs, self.name)
        mask = self._mask(inputs)
        assert self._plain is not None
        if self.name == "next token":
            ids = inputs["input_ids"][:, 1:]
            each = cross_entropy(said[:, :-1].float().transpose(1, 2), ids, reduction="none")
        elif self.name == "distance":
            each = (said.double() - self._plain.double()).square().sum(-1)
        else:
            before, after = self._plain.float().log_softmax(-1), said.float().log_softmax(-1)
            each = kl_div(after, before, log_target=True, reduction="none").sum(-1)
            if each.ndim == 1:
                each = each[:, None]
        return (each.double() * mask).sum(1).cpu().numpy()

    def _mask(self, inputs: Any) -> Bool[Tensor, "passage place"]:
        assert self._plain is not None
        tokens = inputs["attention_mask"].bool()
        if self.name == "next token":
            return tokens[:, 1:]
        if self._plain.ndim == 2:
            return tokens[:, :1]  # one answer for a text
        return tokens


def _said(outputs: Any, name: str) -> Tensor:
    said = getattr(outputs, "last_hidden_state" if name == "distance" else "logits", None)
    if not isinstance(said, Tensor) or said.ndim not in (2, 3):
        raise Unsupported(
            f"{type(outputs).__name__} holds no logits of texts or tokens, so that no loss of "
            "this model can be measured."
        )
    return said


def agreement_of(
    one: Autoencoder,
    other: Autoencoder,
    seed: int,
    moments: Moments,
    alive: Bool[Tensor, " feature"],
    above: float = FOUND,
) -> Agreement:
    """The share of live features that another training found too, beside that of random directions.

    The random ones are drawn with the correlations of the activations, in which all directions
    that matter lie: those of a cloud in all directions would agree even less.
    """
    values, vectors = torch.linalg.eigh(moments.covariance.double())
    shape = (vectors * values.clamp(min=0).sqrt()).float()
    generator = torch.Generator().manual_seed(0)
    first, second = (
        torch.randn(each.size, each.dim, generator=generator) @ shape.T for each in (one, other)
    )
    found = nearest_cosines(one.decoder[alive], other.decoder)
    chance = nearest_cosines(first, second)
    return Agreement(
        with_seed=seed,
        above=above,
        share=float((found > above).double().mean()),
        mean_cosine=float(found.mean()),
        chance=float((chance > above).double().mean()),
        chance_cosine=float(chance.mean()),
    )


def nearest_cosines(
    some: Float[Tensor, "feature dim"], others: Float[Tensor, "other dim"]
) -> Float[Tensor, " feature"]:
    """For each direction, the cosine with the nearest of the others.

    >>> nearest_cosines(torch.eye(2), torch.tensor([[0.0, 3.0]]))
    tensor([0., 1.])
    """
    some = some / some.norm(dim=1, keepdim=True).clamp(min=1e-12)
    others = others / others.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return torch.cat([(part @ others.T).amax(1) for part in some.split(1024)])
