"""attention_diagnostic: are a model's attention weights worth something to another one?

Wiegreffe & Pinter (2019, section 3.4) hand the weights of a model to one that knows no context, a
bag of words, which has to weigh its words by them:

    h_t = tanh(W e(x_t) + b),    ŷ = softmax(U Σ_t α_t h_t + c)

where the embeddings e are trained anew, over the tokens of the model that is asked about. α is its
own attention, trained along (softmax(v · tanh(V h_t))); or even; or copied from the model, and
fixed. If the copied weights make it better than even ones, they say something about words that is
true outside the model too. The control are the same weights on other words of the same text: it
tells whether it matters *where* they lie, or only how uneven they are.

The network of ``labs/debating`` is not this one: it answers by a sigmoid, reads texts of one length
at a time, and knows a BiLSTM too, as in the paper. Here there are as many labels as the model has,
and texts are padded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from whence.core.counting import counted
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.percent import percent
from whence.core.progress import Step
from whence.core.registry import find_method, settings_of
from whence.core.request import Request, Wish
from whence.core.roar import Estimate
from whence.core.showing import visible
from whence.explaining.run import run
from whence.games.game import check_is_model
from whence.models.model import Model
from whence.retraining.labelled import encoded, labelled, numbered
from whence.retraining.paired import gains
from whence.retraining.training import Training, check_trainable, descend, seeded
from whence.retraining.tuning import split

SEEDS = 3
WORTH = 0.01  # of the texts: a smaller gain is hardly one
READING = Training(epochs=20, batch=32, rate=5e-3)
WIDTH = 64  # of the embeddings and of h_t
EMBEDDING_SCALE = 0.1  # before training, as in ``labs/debating``: words are to differ by training
PADDING, UNKNOWN = 0, 1  # numbers of what is no token, and of a token that training never saw
PERMUTATION_STREAM = 18  # of random numbers

OWN, UNIFORM, COPIED, PERMUTED = "its own", "even", "copied", "permuted"
KINDS = (OWN, UNIFORM, COPIED, PERMUTED)


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostic:
    """Held-out accuracies of a bag of words under four kinds of weights, by seed.

    ``copied`` are the weights of the model (by the reading ``reading``), ``uniform`` even ones,
    ``own`` those that the bag of words learns, and ``permuted`` the copied ones on other words of
    the same text. ``over_uniform``, ``over_own`` and ``over_permuted`` are by how much accuracy is
    higher with the copied weights, paired text by text, the mean over seeds; their intervals hold
    together. ``majority`` is what the most frequent label alone gets.
    """

    reading: str
    copied: tuple[float, ...]
    uniform: tuple[float, ...]
    own: tuple[float, ...]
    permuted: tuple[float, ...]
    over_uniform: Estimate
    over_own: Estimate
    over_permuted: Estimate
    majority: float
    trained_on: int
    held_out: int
    training: Training

    @property
    def helps(self) -> bool | None:
        """Whether copied weights do better than even and than permuted ones; None: undecided.

        By the whole interval: both differences lie above 0.01 (a text of a hundred), or one lies
        below it.
        """
        differences = (self.over_uniform, self.over_permuted)
        if all(each.low > WORTH for each in differences):
            return True
        if any(each.high < WORTH for each in differences):
            return False
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Said where it is printed; that weights help where they do better than even and than
        permuted ones, with the whole interval.
        """
        answers = {
            True: "The weights help a model without context",
            False: "The weights do not help a model without context",
            None: "Whether the weights help a model without context is undecided",
        }
        copied, uniform, permuted, own = (
            percent(float(np.mean(shares)), 1)
            for shares in (self.copied, self.uniform, self.permuted, self.own)
        )
        return visible(
            f"{answers[self.helps]}: with those of {self.reading}, a bag of words gets {copied} of "
            f"{counted(self.held_out, 'held-out text')} right, with even ones {uniform} "
            f"({_points(self.over_uniform)}), with the same weights on other words {permuted} "
            f"({_points(self.over_permuted)}), with its own attention {own} "
            f"({_points(self.over_own)}); the most frequent label: {percent(self.majority, 1)}."
        )

    __repr__ = __str__


def _points(gain: Estimate) -> str:
    """By how much the copied weights are better."""
    return (
        f"copied {100 * gain.mean:+z.1f} points, 95 % interval {100 * gain.low:z.1f} to "
        f"{100 * gain.high:z.1f}"
    )


def attention_diagnostic(
    model: Model,
    data: Any,
    *,
    reading: str | Mapping[str, Mapping[str, Any]] = "attention-mean",
    held_out: float | Any = 0.25,
    seeds: int = SEEDS,
    training: Training = READING,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Diagnostic:
    """Hand the attention of a classifier to a bag of words, and see whether that helps it.

    ``reading`` is a way to sum attention up, or any other method whose scores have no sign, by
    its name, or as ``{name: settings}``. Special tokens are left out, and the weights of a text
    sum to one. ``data`` are (text, label) pairs, or a data file with a label column; ``held_out``
    is the share of it that accuracy is measured on, or other data. Bags of words are trained from
    ``seeds`` starts; the model is not trained, and not touched.

    >>> import whence
    >>> texts = [("a fine film", "good"), ("a dull film", "bad")] * 20
    >>> model = whence.train_small(texts)
    >>> diagnostic = whence.attention_diagnostic(model, texts, seeds=1)
    >>> diagnostic.copied, diagnostic.uniform, diagnostic.over_uniform.mean
    ((1.0,), (1.0,), 0.0)
    """
    check_is_model(model)
    check_trainable(model)
    if seeds < 1:
        raise InputError(f"at least one bag of words of each kind is trained, not {seeds}.")
    wish = _wish(reading)
    train, test = split(labelled(data), held_out, seed)
    labels, truth = numbered(model, train), np.array(numbered(model, test))
    passages = encoded(model, [*train, *test], "token")
    copied = _weights_of(model, passages, wish, seed)
    ids = _content_ids(passages)
    bags = _bags(ids, len(train))

    done = 0

    def answers(kind: str, number: int) -> Bool[np.ndarray, " text"]:
        """Which held-out texts a bag of words with such weights gets right."""

        def tell(step: int, of: int) -> None:
            if progress is not None:
                words = f"a bag of words, {kind} weights, seed {number}: step {step} of {of}"
                progress(Step(words, done * of + step, len(KINDS) * seeds * of))

        weights = None if kind == OWN else _padded(_of_kind(kind, copied, number))
        network = BagOfWords(int(bags.max()) + 1, len(model.labels), number)
        _train(network, bags[: len(train)], weights, labels, training, number, tell)
        given = None if weights is None else weights[len(train) :]
        with torch.no_grad():
            guesses = network(bags[len(train) :], given).argmax(-1).numpy()
        return guesses == truth

    right: dict[str, list[np.ndarray]] = {kind: [] for kind in KINDS}
    for number in range(seed, seed + seeds):
        for kind in KINDS:
            right[kind].append(answers(kind, number))
            done += 1

    over = _gains(right, seed)
    _, counts = np.unique(truth, return_counts=True)
    return Diagnostic(
        reading=wish.method,
        copied=_accuracies(right[COPIED]),
        uniform=_accuracies(right[UNIFORM]),
        own=_accuracies(right[OWN]),
        permuted=_accuracies(right[PERMUTED]),
        over_uniform=over[UNIFORM],
        over_own=over[OWN],
        over_permuted=over[PERMUTED],
        majority=float(counts.max() / counts.sum()),
        trained_on=len(train),
        held_out=len(test),
        training=training,
    )


class BagOfWords(nn.Module):
    """A classifier that sees tokens one by one, and weighs them."""

    def __init__(self, words: int, labels: int, seed: int, width: int = WIDTH) -> None:
        super().__init__()
        with seeded(None, seed):
            self.embedding = nn.Embedding(words, width)
            self.embedding.weight.data *= EMBEDDING_SCALE
            self.encoder = nn.Linear(width, width)
            self.attention = nn.Sequential(
                nn.Linear(width, width // 2), nn.Tanh(), nn.Linear(width // 2, 1, bias=False)
            )
            self.output = nn.Linear(width, labels)

    def forward(
        self,
        bags: Int[Tensor, "text place"],
        weights: Float[Tensor, "text place"] | None = None,
    ) -> Float[Tensor, "text label"]:
        """The logits, by weights that are given, or by the network's own."""
        hidden = self.encoder(self.embedding(bags)).tanh()
        if weights is None:
            scores = self.attention(hidden).squeeze(-1)
            weights = scores.masked_fill(bags == PADDING, -torch.inf).softmax(-1)
        return self.output(torch.einsum("tp,tph->th", weights, hidden))


def _train(
    network: BagOfWords,
    bags: Int[Tensor, "text place"],
    weights: Float[Tensor, "any place"] | None,
    labels: Sequence[int],
    training: Training,
    seed: int,
    tell: Callable[[int, int], None],
) -> None:
    targets = torch.tensor(labels)

    def loss(rows: Int[Tensor, " row"]) -> Float[Tensor, ""]:
        given = None if weights is None else weights[rows]
        return functional.cross_entropy(
            network(bags[rows], given), targets[rows], label_smoothing=training.smoothing
        )

    descend(network, len(labels), lambda _epoch: loss, training, seed, tell)


def _wish(reading: str | Mapping[str, Mapping[str, Any]]) -> Wish:
    """The reading with its settings, unless its scores have a sign."""
    named = {reading: {}} if isinstance(reading, str) else reading
    if len(named) != 1:
        raise InputError(f"one reading is handed over at a time, not {len(named)}: {reading!r}.")
    ((name, settings),) = named.items()
    method = find_method(name)
    if settings_of(method, settings).signed:
        raise InputError(
            f"the scores of {method.name} have a sign, and weights have none. Take a reading of "
            "attention (attention-mean, rollout, value-weighted), or gradient-l2."
        )
    return Wish(method.name, dict(settings))


def _weights_of(
    model: Model, passages: Sequence[Passage], wish: Wish, seed: int
) -> list[Float[np.ndarray, " _"]]:
    """The weight of each token of each text, special ones left out; they sum to one."""
    request = Request(wishes=(wish,), units="token", seed=seed, evidence=False, budget="full")
    every = []
    for passage, (outcome,) in zip(passages, run(model, passages, request), strict=True):
        for problem in outcome.failed.values():
            raise problem
        ((_, attribution),) = outcome.attributions.items()
        every.append(as_weights(attribution.scores, passage.unit_of))
    return every


def as_weights(
    scores: Float[np.ndarray, " unit"], unit_of: Int[np.ndarray, " token"]
) -> Float[np.ndarray, " _"]:
    """The share of each token in the scores; even where all scores are 0.

    A unit of several tokens (letters that a tokenizer cuts into bytes) shares its score among them.

    >>> as_weights(np.array([3.0, 1.0]), np.array([-1, 0, 1, 1, -1])).tolist()
    [0.75, 0.125, 0.125]
    """
    units = unit_of[unit_of >= 0]
    tokens_of = np.bincount(units, minlength=len(scores))
    weights = (scores / np.maximum(tokens_of, 1))[units]
    total = weights.sum()
    if total <= 0:
        return np.full(len(weights), 1 / len(weights))
    return weights / total


def _of_kind(
    kind: str, copied: Sequence[Float[np.ndarray, " _"]], seed: int
) -> list[Float[np.ndarray, " _"]]:
    """Weights of all texts: as they are, even, or on other words of the same text."""
    if kind == UNIFORM:
        return [np.full(len(weights), 1 / len(weights)) for weights in copied]
    if kind == PERMUTED:
        rng = np.random.default_rng([seed, PERMUTATION_STREAM])
        return [rng.permutation(weights) for weights in copied]
    return list(copied)


def _content_ids(passages: Sequence[Passage]) -> list[Int[np.ndarray, " _"]]:
    return [passage.ids[passage.unit_of >= 0] for passage in passages]


def _bags(ids: Sequence[Int[np.ndarray, " _"]], trained_on: int) -> Int[Tensor, "text place"]:
    """The tokens of texts, numbered by those of the first ones, and padded."""
    known = np.unique(np.concatenate(ids[:trained_on]))
    numbers = {int(token): number for number, token in enumerate(known, start=UNKNOWN + 1)}
    table = np.full((len(ids), max(map(len, ids))), PADDING)
    for row, of_text in zip(table, ids, strict=True):
        row[: len(of_text)] = [numbers.get(int(token), UNKNOWN) for token in of_text]
    return torch.from_numpy(table)


def _padded(weights: Sequence[Float[np.ndarray, " _"]]) -> Float[Tensor, "text place"]:
    table = np.zeros((len(weights), max(map(len, weights))), dtype=np.float32)
    for row, of_text in zip(table, weights, strict=True):
        row[: len(of_text)] = of_text
    return torch.from_numpy(table)


def _accuracies(right: Sequence[Bool[np.ndarray, " text"]]) -> tuple[float, ...]:
    return tuple(float(of_seed.mean()) for of_seed in right)


def _gains(
    right: Mapping[str, Sequence[Bool[np.ndarray, " text"]]], seed: int
) -> dict[str, Estimate]:
    """By how much copied weights are better than each other kind, paired text by text."""
    shares = {kind: np.stack(list(of_kind)).mean(0) for kind, of_kind in right.items()}
    others = [kind for kind in KINDS if kind != COPIED]
    columns = np.stack([shares[COPIED] - shares[kind] for kind in others], -1)
    return dict(zip(others, gains(columns, seed), strict=True))
