"""Is attention explanation? The figures of two papers that say "not" and "not not", made anew.

Jain & Wallace, "Attention is not Explanation" (NAACL 2019), and Wiegreffe & Pinter, "Attention is
not not Explanation" (EMNLP 2019). Their models are small: an encoder, one layer of attention, one
answer. The formulas are in ``labs/debating/``, one a file; this file asks the questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.labs.debating.adversary import Adversary, Search, exact, search
from whence.labs.debating.distance import tvd
from whence.labs.debating.importance import gradient_importance, kendall, leave_one_out
from whence.labs.debating.network import ENCODERS, Encoder, Network, Reading, read, uniform
from whence.labs.debating.permutation import permutation_changes
from whence.labs.debating.summary import Mean, accuracy, f1, mean_of
from whence.labs.debating.texts import UNKNOWN, Texts, as_texts, bundled, vocabulary
from whence.labs.debating.training import Training, labelled, opposed, train
from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, INK, ORANGE, PURPLE
from whence.theory import jsd

TITLE = "Is attention explanation? The debate on small models, made anew"
MOST = log(2)  # the largest Jensen–Shannon divergence: no place in common

# ---------------------------------------------------------------------- settings


@dataclass(frozen=True)
class Size:
    """How much is trained, and how much is asked."""

    train: int  # sentences
    test: int
    texts: int  # of the test sentences: explained, permuted, attacked
    seeds: int
    strengths: tuple[float, ...]  # λ of the adversarial models
    training: Training
    search: Search
    permutations: int
    hidden: int  # width of h_t; half of it in each direction of the BiLSTM


FULL = Size(
    train=8530,
    test=1066,
    texts=300,
    seeds=4,
    strengths=(0.0, 3e-4, 1e-3, 3e-3, 3e-2),
    training=Training(epochs=4),
    search=Search(),
    permutations=100,
    hidden=128,
)
QUICK = Size(
    train=1000,
    test=500,
    texts=60,
    seeds=3,
    strengths=(0.0, 3e-3, 3e-2),
    training=Training(epochs=4),
    search=Search(steps=200),
    permutations=60,
    hidden=64,
)
SHORTEST = 4  # words: in a shorter text no Kendall's τ can have a p-value below 0.05
LARGE = 1.0  # scale of embeddings that are drawn ten times as large
FAR = 0.2  # "far below", of Kendall's τ
CLOSE = 0.03  # "close", of F1
COLOURS = {"attention, gradient": ORANGE, "attention, leave-one-out": BLUE,
           "gradient, leave-one-out": PURPLE, "random, gradient": GREY}  # fmt: skip


# ---------------------------------------------------------------------- what is trained


@dataclass(frozen=True, eq=False)
class Data:
    """Sentences to train on and to test on, and the number of words that are told apart."""

    train: Texts
    test: Texts
    sentences: tuple[str, ...]  # of the test
    words: int


@dataclass(frozen=True, eq=False)
class Trained:
    """A model and what it makes of all sentences."""

    model: Network
    train: Reading
    test: Reading


def load(size: Size) -> Data:
    """The bundled sentences, as many as are wanted; test sentences of four words and more."""
    parts = bundled()
    training = parts["train"][: size.train]
    long_enough = [pair for pair in parts["test"] if len(pair[0].split()) >= SHORTEST]
    test = long_enough[: size.test]
    numbers = vocabulary(sentence for sentence, _ in training)
    return Data(
        as_texts(training, numbers),
        as_texts(test, numbers),
        tuple(sentence for sentence, _ in test),
        len(numbers) + UNKNOWN + 1,
    )


def taught(
    encoder: Encoder,
    data: Data,
    size: Size,
    seed: int,
    weights: tuple[Tensor, Tensor] | None = None,
    scale: float | None = None,
) -> Trained:
    """A model that is trained to answer as people did.

    ``weights`` are those that it reads by, in training and in test, instead of its own attention.
    """
    options: dict[str, Any] = {} if scale is None else {"scale": scale}
    model = Network(encoder, data.words, seed, hidden=size.hidden, **options)
    in_training, in_test = weights or (None, None)
    train(model, data.train, labelled(data.train), size.training, seed, in_training)
    return Trained(model, read(model, data.train, in_training), read(model, data.test, in_test))


def opponent(base: Trained, data: Data, size: Size, seed: int, strength: float) -> Trained:
    """A BiLSTM that is trained to answer as ``base`` does and to attend to other words."""
    model = Network("BiLSTM", data.words, seed, hidden=size.hidden)
    train(model, data.train, opposed(base.train, strength), size.training, seed)
    return Trained(model, read(model, data.train), read(model, data.test))


def run(book: Notebook) -> None:
    """Both papers' tests in their order, on two encoders; then what they say of transformers."""
    size = QUICK if book.quick else FULL
    data = load(size)
    book.tell("training the two encoders")
    models = {encoder: taught(encoder, data, size, book.seed) for encoder in ENCODERS}

    _the_models(book, data, models)
    _correlation(book, size, data, models)
    _permutation(book, size, data, models)
    attacked = _adversary(book, size, data, models)

    seeds = [models["BiLSTM"]]
    for seed in range(1, size.seeds):
        book.tell(f"training BiLSTM, seed {seed + 1}/{size.seeds}")
        seeds.append(taught("BiLSTM", data, size, book.seed + seed))
    even = _uniform(book, size, data, seeds)
    _seeds(book, data, seeds, attacked)
    unlike = _opponents(book, size, data, seeds, even)
    _diagnostic(book, size, data, seeds, unlike)
    _what_it_says(book)


# ---------------------------------------------------------------------- the models


def _the_models(book: Notebook, data: Data, models: Mapping[str, Trained]) -> None:
    book.head("One layer of attention between words and answer")
    book.say(
        "h = encoder(words)\nα = softmax(v · tanh(W h_t))\nŷ = sigmoid(w · Σ α_t h_t + b)",
        code=True,
    )
    book.say(
        f"{len(data.train):,} sentences of film reviews (Pang & Lee 2005) are trained on, and "
        f"{len(data.test):,} others tested: does the sentence praise? The encoder is a BiLSTM, "
        "whose h_t knows of the whole sentence, or a tanh layer on each word alone (“words”), "
        "whose h_t knows of one word. One is the model of the debate; the other is its control, as "
        "there attention is the only place where words meet."
    )
    labels = data.test.labels
    always = torch.ones(len(labels))
    rows = []
    for encoder, trained in models.items():
        right = accuracy(trained.test.logit, labels)
        largest = float(trained.test.weights.max(1).values.mean())
        rows.append((encoder, f"{right:.3f}", f"{f1(trained.test.logit, labels):.3f}",
                     f"{largest:.2f}"))  # fmt: skip
    always_right, always_f1 = accuracy(always, labels), f1(always, labels)
    rows.append(("always “praise”", f"{always_right:.3f}", f"{always_f1:.3f}", ""))
    book.table(
        "debate-models",
        ("encoder", "accuracy", "F1 of praise", "mean largest weight"),
        rows,
        "On the test sentences; other seeds follow below. F1 looks better than it is: whoever "
        "always answers “praise” has two thirds.",
    )
    error = 2 * float(np.sqrt(0.25 / len(labels)))
    rights = {name: accuracy(each.test.logit, labels) for name, each in models.items()}
    book.claim(
        "Both models are right more often than chance.",
        ", ".join(f"{name} {right:.3f}" for name, right in rights.items())
        + f"; chance {always_right:.3f}, two standard errors {error:.3f}",
        min(rights.values()) > always_right + error,
    )


# ---------------------------------------------------------------------- 1. correlation


@dataclass(frozen=True, eq=False)
class Agreement:
    """Kendall's τ of two importances in each text, and the p-values."""

    tau: Float[np.ndarray, " text"]
    p_value: Float[np.ndarray, " text"]

    @property
    def significant(self) -> float:
        """The share of texts with p < 0.05."""
        return float((self.p_value < 0.05).mean())


def agreements(trained: Trained, texts: Texts, generator: torch.Generator) -> dict[str, Agreement]:
    """τ of attention, gradients and leave-one-out, and of random weights, by name."""
    model = trained.model
    weights = trained.test.weights[: len(texts)]
    gradient = gradient_importance(model, texts)
    left_out = leave_one_out(model, texts)
    random = torch.rand(weights.shape, generator=generator)
    pairs = {
        "attention, gradient": (weights, gradient),
        "attention, leave-one-out": (weights, left_out),
        "gradient, leave-one-out": (gradient, left_out),
        "random, gradient": (random, gradient),
    }
    return {name: Agreement(*kendall(one, other, texts)) for name, (one, other) in pairs.items()}


def _correlation(book: Notebook, size: Size, data: Data, models: Mapping[str, Trained]) -> None:
    book.head("Jain & Wallace: does attention rank words as gradients and removal do?")
    book.say(
        "In each sentence words are ranked three ways: by attention, by |∇ŷ · x_t| with attention "
        "held, and by how much ŷ changes when the word is deleted. Kendall's τ tells how far two "
        "rankings agree: 1 is the same order, 0 is no relation. Weights that are drawn at random "
        "are the control. In the published code the names of two columns are exchanged: “ag” holds "
        "leave-one-out with attention, and “al” attention with gradients. Here each has its own "
        "name."
    )
    texts = data.test.pick(slice(0, size.texts))
    book.tell("training the BiLSTM with large embeddings")
    asked = {
        "BiLSTM": models["BiLSTM"],
        "words": models["words"],
        "BiLSTM, embeddings drawn ×10": taught("BiLSTM", data, size, book.seed, scale=LARGE),
    }
    all_taus = {}
    generator = torch.Generator().manual_seed(book.seed)
    for name, trained in asked.items():
        book.tell(f"ranking words, {name}")
        all_taus[name] = agreements(trained, texts, generator)

    rows = []
    for name, taus in all_taus.items():
        for pair, agreement in taus.items():
            mean = mean_of(agreement.tau)
            shown = (str(mean), f"{mean.sd:.3f}", f"{agreement.significant:.2f}")
            rows.append((name, pair, *shown))
    book.table(
        "debate-taus",
        ("encoder", "between", "mean τ (95 % interval)", "sd", "share p < .05"),
        rows,
        f"Kendall's τ-b in {len(texts)} test sentences. For comparison, the paper's numbers on SST "
        "in this order: BiLSTM .351, .291, .656; average (here: words) .606, .623, .558.",
    )
    book.figure(
        "debate-tau",
        draw_taus({name: all_taus[name] for name in ENCODERS}),
        "Kendall's τ in each sentence, as a histogram; dashed: the mean.",
    )

    gap = {}
    for name, taus in all_taus.items():
        difference = taus["gradient, leave-one-out"].tau - taus["attention, gradient"].tau
        gap[name] = mean_of(difference)
    book.claim(
        f"BiLSTM: τ(attention, gradient) is far (more than {FAR}) below τ(gradient, LOO).",
        f"difference {gap['BiLSTM']}",
        gap["BiLSTM"].low > FAR,
    )
    book.claim("Words alone: it is not.", f"difference {gap['words']}", gap["words"].high < FAR)
    large = gap["BiLSTM, embeddings drawn ×10"]
    book.claim(
        "The gap of the BiLSTM stays when embeddings are drawn ten times as large.",
        f"difference {large}",
        large.low > FAR,
    )
    by_chance = [taus["random, gradient"] for taus in all_taus.values()]
    means = [mean_of(each.tau) for each in by_chance]
    shares = [each.significant for each in by_chance]
    error = 3 * float(np.sqrt(0.05 * 0.95 / len(texts)))
    book.claim(
        "Control: random weights agree with gradients no more than chance does.",
        f"τ {', '.join(str(each) for each in means)}; p < .05 in "
        + ", ".join(f"{share:.1%}" for share in shares),
        all(each.includes(0.0, widened=2.0) for each in means) and max(shares) < 0.05 + error,
    )


# ---------------------------------------------------------------------- 2. permutation


def _permutation(book: Notebook, size: Size, data: Data, models: Mapping[str, Trained]) -> None:
    book.head("Jain & Wallace: are the weights needed where they are?")
    book.say(
        f"The weights of a sentence are dealt out anew among its words, {size.permutations} times. "
        "If attention tells why the answer is as it is, the answer should change, and most where "
        "one word has much weight. The median |Δŷ| stands against the largest weight. An answer "
        "that stays says that the words' votes w · h_t are alike: in a BiLSTM each of them has "
        "heard of the others."
    )
    texts = data.test.pick(slice(0, size.texts))
    medians, spreads = {}, {}
    control = 0.0
    for name, trained in models.items():
        generator = torch.Generator().manual_seed(book.seed)
        reading = trained.test.pick(slice(0, size.texts))
        with torch.no_grad():
            votes = trained.model.votes(reading.hidden)
            changes = permutation_changes(
                reading.weights, votes, texts.present, generator, size.permutations
            )
            even = permutation_changes(uniform(texts.present), votes, texts.present, generator, 5)
        medians[name] = changes.median(0).values.numpy()
        spreads[name] = _spread(votes, texts)
        control = max(control, float(even.max()))

    panels = []
    for name, trained in models.items():
        reading = trained.test.pick(slice(0, size.texts))
        largest = reading.weights.max(1).values.numpy()
        panels.append((name, largest, medians[name], reading.logit.numpy() > 0))
    book.figure(
        "debate-permutation",
        draw_permutations(panels),
        f"Median change of the answer over {size.permutations} permutations of attention, and the "
        "largest weight; a dot is a sentence.",
    )
    rows = []
    for name, changes in medians.items():
        small = float((changes < 0.05).mean())
        rows.append((name, f"{np.median(changes):.3f}", f"{small:.0%}", f"{spreads[name]:.2f}"))
    book.table(
        "debate-permuted",
        ("encoder", "median |Δŷ|", "sentences below 0.05", "sd of votes in a sentence"),
        rows,
        "The votes' sd is in units of the logit, the mean over sentences.",
    )
    few = float((medians["BiLSTM"] < 0.05).mean())
    book.claim(
        "BiLSTM: in most sentences a permutation changes the answer by less than 0.05.",
        f"{few:.0%} of the sentences, median |Δŷ| {np.median(medians['BiLSTM']):.3f}",
        few > 0.5,
    )
    more = mean_of(medians["words"] - medians["BiLSTM"])
    book.claim(
        "Words alone: a permutation changes the answer more than in the BiLSTM.",
        f"|Δŷ| larger by {more}",
        more.low > 0,
    )
    book.claim(
        "Control: a permutation of uniform weights changes nothing.",
        f"at most {control:.1e}",
        control < 1e-5,
    )


def _spread(votes: Tensor, texts: Texts) -> float:
    """The standard deviation of the votes within a sentence, the mean over sentences."""
    lengths = texts.lengths.tolist()
    each = [float(row[:length].std()) for row, length in zip(votes, lengths, strict=True)]
    return float(np.mean(each))


# ---------------------------------------------------------------------- 3. adversarial attention


@dataclass(frozen=True, eq=False)
class Attack:
    """The most different attention of each sentence: as searched for, and exactly."""

    searched: Adversary
    exact: Float[np.ndarray, " text"]


def attack(trained: Trained, texts: Texts, settings: Search, seed: int) -> Attack:
    """The adversarial attention of texts that are the first of the test."""
    reading = trained.test.pick(slice(0, len(texts)))
    votes = trained.model.votes(reading.hidden).detach()
    generator = torch.Generator().manual_seed(seed)
    searched = search(reading.weights, votes, texts.present, settings, generator)
    limits = []
    for row, length in enumerate(texts.lengths.tolist()):
        one = exact(reading.weights[row, :length], votes[row, :length], settings.allowed)
        limits.append(float(one.divergence))
    return Attack(searched, np.array(limits))


def _adversary(book: Notebook, size: Size, data: Data, models: Mapping[str, Trained]) -> Attack:
    book.head("Jain & Wallace: could the model have attended elsewhere?")
    allowed = size.search.allowed
    book.say(
        "For each sentence: the attention that is most different from the model's own and changes "
        f"ŷ by no more than {allowed}. Different is the Jensen–Shannon divergence in nats, at most "
        f"ln 2 = {MOST:.4f}. The search of the paper follows gradients from {size.search.restarts} "
        f"random starts for {size.search.steps} steps (a comment in its code says 10 starts; the "
        "code takes 5). What it finds is a lower bound. Here the exact value stands beside it: the "
        "answer sees attention through one number, the weighted mean of the words' votes, so that "
        "the most different attention lies on one or two words, and these can all be tried."
    )
    texts = data.test.pick(slice(0, size.texts))
    attacks = {}
    for name, trained in models.items():
        book.tell(f"searching for other attention, {name}")
        attacks[name] = attack(trained, texts, size.search, book.seed)

    book.figure(
        "debate-adversary",
        draw_attacks(attacks),
        f"ε-max JSD of {len(texts)} sentences, ε = {allowed}: by the paper's search, and exact.",
    )
    _example(book, data, models["BiLSTM"], attacks["BiLSTM"])
    rows, shortfall = [], []
    for name, each in attacks.items():
        searched = each.searched.divergence.numpy()
        shortfall.append(float((each.exact - searched).min()))
        rows.append((name, str(mean_of(searched)), str(mean_of(each.exact)),
                     f"{(searched > MOST / 2).mean():.0%}",
                     f"{(each.exact > MOST / 2).mean():.0%}"))  # fmt: skip
    book.table(
        "debate-attacked",
        ("encoder", "searched", "exact", "searched over ½ ln 2", "exact over ½ ln 2"),
        rows,
        "Mean ε-max JSD with its interval, and the share of sentences where it is over half of the "
        "largest possible.",
    )
    half = float((attacks["BiLSTM"].searched.divergence > MOST / 2).float().mean())
    book.claim(
        "BiLSTM: in nine sentences of ten, attention that is very different (JSD over ½ ln 2) "
        f"leaves the answer within {allowed}.",
        f"{half:.0%} of the sentences",
        half > 0.9,
    )
    book.claim(
        "The search never finds more than the exact value.",
        f"smallest exact - searched: {min(shortfall):.1e}",
        min(shortfall) > -1e-4,
    )
    high = mean_of(attacks["words"].exact - attacks["BiLSTM"].exact)
    book.claim(
        "Words alone, whose attention does agree with gradients, can be moved about as far (exact, "
        "within 0.05 nats).",
        f"words less BiLSTM: {high}",
        abs(high.mean) < 0.05,
    )
    return attacks["BiLSTM"]


def _example(book: Notebook, data: Data, trained: Trained, attacked: Attack) -> None:
    """One sentence as in the paper's first figure: of 7 to 12 words, the one moved furthest."""
    lengths = data.test.lengths[: len(attacked.exact)]
    fits = (lengths >= 7) & (lengths <= 12)
    if not fits.any():
        return
    row = int(attacked.searched.divergence.where(fits, torch.tensor(-1.0)).argmax())
    words = data.sentences[row].split()
    own = trained.test.weights[row, : len(words)].numpy()
    other = attacked.searched.weights[row, : len(words)].numpy()
    answer = float(trained.test.probability[row])
    change = float(attacked.searched.change[row])
    book.figure(
        "debate-example",
        draw_example(words, own, other),
        f"One sentence, two attentions, one answer: ŷ = {answer:.2f}, changed by {change:.3f}; JSD "
        f"{float(attacked.searched.divergence[row]):.2f}.",
    )


# ---------------------------------------------------------------------- 4. uniform attention


def _uniform(book: Notebook, size: Size, data: Data, seeds: Sequence[Trained]) -> list[Trained]:
    book.head("Wiegreffe & Pinter: is attention needed at all?")
    book.say(
        "Where a model does as well with attention frozen to 1/L, there is nothing to explain by "
        "attention, and tests on such data say little against it. The rest of the model is trained "
        "as before."
    )
    weights = (uniform(data.train.present), uniform(data.test.present))
    even = []
    for seed in range(size.seeds):
        book.tell(f"training with uniform attention, seed {seed + 1}/{size.seeds}")
        even.append(taught("BiLSTM", data, size, book.seed + seed, weights))
    scores = {"trained attention": _f1s(seeds, data), "uniform attention": _f1s(even, data)}
    book.table(
        "debate-uniform-f1",
        ("BiLSTM", "F1 (95 % interval over seeds)", "accuracy"),
        [
            (name, str(mean_of(scores[name])), str(mean_of(_accuracies(models, data))))
            for name, models in zip(scores, (seeds, even), strict=True)
        ],
        f"{size.seeds} seeds each. Always “praise” has F1 {_f1_of_praise(data):.3f}.",
    )
    book.figure(
        "debate-uniform",
        draw_scores(scores, _f1_of_praise(data)),
        "F1 of each seed, with the mean and Student's 95 % interval.",
    )
    loss = mean_of(np.subtract(scores["trained attention"], scores["uniform attention"]))
    book.claim(
        f"Uniform attention costs less than {CLOSE} of F1.",
        f"trained less uniform, by seed: {loss}",
        loss.high < CLOSE,
    )
    return even


def _f1s(models: Sequence[Trained], data: Data) -> list[float]:
    return [f1(each.test.logit, data.test.labels) for each in models]


def _accuracies(models: Sequence[Trained], data: Data) -> list[float]:
    return [accuracy(each.test.logit, data.test.labels) for each in models]


def _f1_of_praise(data: Data) -> float:
    return f1(torch.ones(len(data.test)), data.test.labels)


# ---------------------------------------------------------------------- 5. seeds


def unlikeness(one: Trained, other: Trained) -> tuple[np.ndarray, np.ndarray]:
    """TVD of the answers and JSD of the attentions of two models, for each test sentence."""
    answers = tvd(one.test.probability, other.test.probability)
    attention = jsd(one.test.weights, other.test.weights)
    return answers.numpy(), attention.numpy()


def _seeds(book: Notebook, data: Data, seeds: Sequence[Trained], attacked: Attack) -> None:
    book.head("Wiegreffe & Pinter: how much does attention vary by itself?")
    book.say(
        "A divergence says something only beside the one that is there anyway: between models that "
        "differ in their seed. If seeds agree on attention, it is no accident of training, and the "
        "adversarial one is not one that training would find."
    )
    texts = len(attacked.exact)
    between = [unlikeness(other, seeds[0])[1][:texts] for other in seeds[1:]]
    median = np.median(between, axis=0)
    even = jsd(uniform(data.test.present), seeds[0].test.weights)[:texts].numpy()
    curves = {
        "to another seed (median over seeds)": median,
        "to uniform attention": even,
        "adversarial, searched": attacked.searched.divergence.numpy(),
        "adversarial, exact": attacked.exact,
    }
    book.figure(
        "debate-seeds",
        draw_shares(curves),
        f"Share of {texts} sentences whose attention is no further from the first model's.",
    )
    rows = [(name, str(mean_of(values))) for name, values in curves.items()]
    book.table(
        "debate-divergences", ("JSD", "mean (95 % interval)"), rows, "In nats; at most 0.693."
    )
    nearer = mean_of(even - median)
    book.claim(
        "Seeds agree on attention: another seed's is nearer than uniform attention is.",
        f"nearer by {nearer}",
        nearer.low > 0,
    )
    more = mean_of(curves["adversarial, searched"] - median)
    book.claim(
        "Adversarial attention is much further off than another seed's (0.2 nats and more).",
        f"further by {more}",
        more.low > 0.2,
    )


# ---------------------------------------------------------------------- 6. adversarial models


def _opponents(
    book: Notebook, size: Size, data: Data, seeds: Sequence[Trained], even: Sequence[Trained]
) -> Trained:
    """Adversarial models; returns the most different of those that answer as the base does."""
    book.head("Wiegreffe & Pinter: is there a model that attends elsewhere?")
    book.say(
        "Attention that is chosen for one sentence at a time is no model. So a whole model is "
        "trained anew, on mean TVD(ŷ, ŷ of base) - λ KL(α || α of base). For two labels the total "
        "variation distance is |p - q|; the published code takes half of it. And it multiplies "
        "after adding up a batch, so that its λ are in other units. The line begins with λ = 0, "
        "which only imitates. Other seeds and uniform attention are the measure: what distance is "
        "there anyway?"
    )
    base = seeds[0]
    points = []
    models = []
    for strength in size.strengths:
        book.tell(f"training against the base, λ = {strength:g}")
        model = opponent(base, data, size, book.seed + 100, strength)
        models.append(model)
        points.append(unlikeness(model, base))
    others = [unlikeness(each, base) for each in seeds[1:]]
    evens = [unlikeness(each, base) for each in even]

    book.figure(
        "debate-opponents",
        draw_opponents(size.strengths, points, others, evens),
        "Mean over the test sentences: how far answers and attention are from the base model's.",
    )
    rows = []
    for strength, model, (answers, attention) in zip(size.strengths, models, points, strict=True):
        score = f1(model.test.logit, data.test.labels)
        near = float(tvd(model.train.probability, base.train.probability).mean())
        rows.append((f"λ = {strength:g}", str(mean_of(answers)), f"{near:.3f}",
                     str(mean_of(attention)), f"{score:.3f}"))  # fmt: skip
    for name, group, measured in (("seeds", seeds[1:], others), ("uniform", even, evens)):
        answers, attention = np.mean(measured, axis=0)
        score = np.mean(_f1s(group, data))
        near = [tvd(each.train.probability, base.train.probability).mean() for each in group]
        rows.append((f"{name}, mean", str(mean_of(answers)), f"{np.mean(near):.3f}",
                     str(mean_of(attention)), f"{score:.3f}"))  # fmt: skip
    book.table(
        "debate-opposed",
        ("model", "TVD, test", "TVD, training", "JSD, test", "F1"),
        rows,
        "Distances to the base model, with intervals over test sentences.",
    )

    mean_jsd = [float(attention.mean()) for _, attention in points]
    book.claim(
        "The larger λ, the more different the attention.",
        ", ".join(f"{value:.3f}" for value in mean_jsd),
        all(one <= other + 0.01 for one, other in pairwise(mean_jsd)),
    )
    seed_tvd = float(np.mean([answers for answers, _ in others]))
    seed_jsd = float(np.mean([attention for _, attention in others]))
    imitation = float(points[0][0].mean())
    reach = max(seed_tvd, imitation)  # λ = 0 knows the base by its answers in training alone
    allowed = [i for i, (answers, _) in enumerate(points) if answers.mean() <= 1.1 * reach]
    chosen = max(allowed or [0], key=lambda i: mean_jsd[i])
    book.claim(
        "Some adversarial model answers about as the base does (TVD at most a tenth above that of "
        "a seed or of λ = 0) with attention more than twice as different as that of either.",
        f"λ = {size.strengths[chosen]:g}: TVD {points[chosen][0].mean():.3f}, JSD "
        f"{mean_jsd[chosen]:.3f}; seeds: TVD {seed_tvd:.3f}, JSD {seed_jsd:.3f}; λ = 0: TVD "
        f"{imitation:.3f}, JSD {mean_jsd[0]:.3f}",
        mean_jsd[chosen] > 2 * max(seed_jsd, mean_jsd[0]),
    )
    return models[-1]


# ---------------------------------------------------------------------- 7. the diagnostic


def _diagnostic(
    book: Notebook, size: Size, data: Data, seeds: Sequence[Trained], unlike: Trained
) -> None:
    book.head("Wiegreffe & Pinter: are the weights worth something elsewhere?")
    book.say(
        "A model of single words is given weights that it cannot change: uniform ones, those of "
        "each BiLSTM, those of the adversarial model with the largest λ; or it learns its own. If "
        "the BiLSTM's weights make it better, they tell something about words, not only about that "
        "BiLSTM. One warning: the BiLSTM saw the labels of the training sentences, so that its "
        "weights there may be surer than on new ones."
    )
    given = {
        "uniform": [(uniform(data.train.present), uniform(data.test.present))] * size.seeds,
        "its own, trained": [None] * size.seeds,
        "of the BiLSTM": [(each.train.weights, each.test.weights) for each in seeds],
        "of the adversarial model": [(unlike.train.weights, unlike.test.weights)] * size.seeds,
    }
    scores = {}
    for name, weights in given.items():
        book.tell(f"training words with weights: {name}")
        guided = []
        for seed, each in enumerate(weights):
            guided.append(taught("words", data, size, book.seed + seed, each))
        scores[name] = _f1s(guided, data)
    book.figure(
        "debate-diagnostic",
        draw_scores(scores, _f1_of_praise(data)),
        "F1 of the model of single words by the weights it is given; a dot is a seed.",
    )
    gains = {
        name: mean_of(np.subtract(values, scores["uniform"])) for name, values in scores.items()
    }
    rows = []
    for name, values in scores.items():
        gain = "" if name == "uniform" else str(gains[name])
        rows.append((name, str(mean_of(values)), gain))
    book.table(
        "debate-guided",
        ("weights", "F1 (95 % interval over seeds)", "more than uniform"),
        rows,
        f"{size.seeds} seeds, compared seed by seed. The adversarial weights are one model's.",
    )
    book.claim(
        "The BiLSTM's weights make the model of single words better than uniform ones.",
        f"F1 more by {gains['of the BiLSTM']}",
        gains["of the BiLSTM"].low > 0,
    )
    worse = mean_of(np.subtract(scores["of the BiLSTM"], scores["of the adversarial model"]))
    book.claim(
        "The adversarial model's weights serve it worse than the BiLSTM's.",
        f"F1 less by {worse}",
        worse.low > 0,
    )


# ---------------------------------------------------------------------- 8. and transformers?


def _what_it_says(book: Notebook) -> None:
    book.head("What this says of transformers, and what it does not")
    book.say(
        "It says: one layer of attention behind an encoder that has already mixed the words ranks "
        "them otherwise than gradients and removal do; where nothing has mixed them before, it "
        "ranks them alike. That other weights give the same answer holds in both, so by itself it "
        "cannot tell the one from the other. Whether a change is large is known only beside seeds, "
        "uniform weights and chance. Before asking what attention explains, see whether the model "
        "does worse without it."
    )
    book.say(
        "It does not say what holds in a transformer. There are many layers and heads, residual "
        "connections lead around all of them, and later layers attend to what earlier ones have "
        "mixed, as here the BiLSTM does. The answer no longer depends on attention through one "
        "number. The exact adversary above does not carry over, and neither do these τ. The same "
        "questions, asked of your own transformer with the same controls, layer by layer and head "
        "by head: whence audit."
    )


# ---------------------------------------------------------------------- figures


def draw_taus(all_taus: Mapping[str, Mapping[str, Agreement]]) -> Any:
    """Histograms of τ, a panel for each encoder."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        1, len(all_taus), figsize=(9, 3.4), layout="constrained", sharey=True, squeeze=False
    )
    bins = np.linspace(-1, 1, 41)
    for ax, (name, taus) in zip(axes[0], all_taus.items(), strict=True):
        for pair, agreement in taus.items():
            tau = agreement.tau[np.isfinite(agreement.tau)]
            colour = COLOURS[pair]
            share = np.full(len(tau), 1 / len(tau))
            ax.hist(tau, bins, weights=share, histtype="step", color=colour, lw=1.4, label=pair)
            ax.axvline(tau.mean(), color=colour, ls="--", lw=1)
        ax.set(title=name, xlabel="Kendall's τ", xlim=(-1, 1))
    axes[0, 0].set(ylabel="share of sentences")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", frameon=False, ncols=4)
    return fig


def draw_permutations(panels: Sequence[tuple[str, np.ndarray, np.ndarray, np.ndarray]]) -> Any:
    """The median change against the largest weight; the colour is the predicted label."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        1, len(panels), figsize=(9, 3.4), layout="constrained", sharex=True, sharey=True
    )
    for ax, (name, largest, change, praises) in zip(np.ravel(axes), panels, strict=True):
        for is_praise, colour, label in ((True, ORANGE, "praise"), (False, BLUE, "blame")):
            shown = praises == is_praise
            ax.scatter(
                change[shown], largest[shown], s=9, alpha=0.6, lw=0, color=colour, label=label
            )
        ax.axvline(np.median(change), color=INK, ls="--", lw=1, label="median sentence")
        ax.set(title=name, xlabel="median |Δŷ| over permutations")
    np.ravel(axes)[0].set(ylabel="largest weight of attention")
    np.ravel(axes)[0].set_ylim(bottom=0)
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", frameon=False, ncols=3)
    return fig


def draw_attacks(attacks: Mapping[str, Attack]) -> Any:
    """Histograms of ε-max JSD, a panel for each encoder; ln 2 is marked."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        1, len(attacks), figsize=(9, 3.2), layout="constrained", sharey=True, squeeze=False
    )
    bins = np.linspace(0, 0.7, 36)
    for ax, (name, each) in zip(axes[0], attacks.items(), strict=True):
        searched = each.searched.divergence.numpy()
        share = np.full(len(searched), 1 / len(searched))
        ax.hist(searched, bins, weights=share, color=ORANGE, alpha=0.85, label="searched")
        ax.hist(each.exact, bins, weights=share, histtype="step", color=INK, lw=1.2, label="exact")
        ax.axvline(MOST, color=GREY, ls=":", lw=1.2, label="ln 2")
        ax.set(title=name, xlabel="ε-max JSD, nats", xlim=(0, 0.72))
    axes[0, 0].set(ylabel="share of sentences")
    axes[0, 0].legend(frameon=False, loc="upper left")
    return fig


def draw_example(words: Sequence[str], own: np.ndarray, other: np.ndarray) -> Any:
    """Two attentions of one sentence as bars over its words."""
    ax = drawing.new_axes(8.0, 2.8)
    places = np.arange(len(words))
    ax.bar(places - 0.2, own, 0.4, color=ORANGE, label="the model's attention")
    ax.bar(places + 0.2, other, 0.4, color=BLUE, label="adversarial attention")
    drawing.name_places(ax, "x", words, turned=len(words) > 10)
    ax.set(ylabel="weight")
    ax.legend(frameon=False)
    return ax


def draw_scores(scores: dict[str, list[float]], by_chance: float) -> Any:
    """A row of dots for each kind of model, with mean and interval."""
    ax = drawing.new_axes(7.0, 0.9 + 0.45 * len(scores))
    for row, values in enumerate(scores.values()):
        mean: Mean = mean_of(values)
        ends = np.clip([mean.low, mean.high], 0, 1)
        ax.plot(ends, [row, row], color=INK, lw=1.2)
        ax.plot([mean.mean], [row], "|", color=INK, ms=12, mew=1.6)
        ax.plot(values, np.full(len(values), row), "o", color=ORANGE, ms=5, alpha=0.8)
    ax.axvline(by_chance, color=GREY, ls=":", lw=1.2, label="always “praise”")
    ax.set(yticks=range(len(scores)), yticklabels=list(scores), xlabel="F1 of praise")
    ax.set_ylim(len(scores) - 0.5, -0.5)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def draw_shares(curves: dict[str, np.ndarray]) -> Any:
    """The share of sentences up to each divergence."""
    ax = drawing.new_axes(7.0, 3.4)
    colours = (BLUE, GREY, ORANGE, INK)
    for (name, values), colour in zip(curves.items(), colours, strict=True):
        share = np.arange(1, len(values) + 1) / len(values)
        ax.step(np.sort(values), share, where="post", color=colour, label=name)
    ax.axvline(MOST, color=GREY, ls=":", lw=1.2, label="ln 2")
    ax.set(xlabel="JSD from the first model's attention, nats", ylabel="share of sentences")
    ax.set(xlim=(0, 0.72), ylim=(0, 1.01))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


Points = Sequence[tuple[np.ndarray, np.ndarray]]


def draw_opponents(
    strengths: Sequence[float], opponents: Points, seeds: Points, even: Points
) -> Any:
    """Attention's divergence against the answers' distance, the mean over sentences."""
    ax = drawing.new_axes(6.4, 3.8)
    line = np.array([(answers.mean(), attention.mean()) for answers, attention in opponents])
    ax.plot(*line.T, "-o", color=ORANGE, label="adversarial models, by λ")
    for number, (strength, place) in enumerate(zip(strengths, line, strict=True)):
        # neighbours may lie close together: one is named on its right, the next on its left
        side, aligned = ((7, -4), "left") if number % 2 == 0 else ((-7, 3), "right")
        ax.annotate(
            f"{strength:g}", place, xytext=side, textcoords="offset points", fontsize=8, ha=aligned
        )
    for points, marker, colour, name in ((seeds, "^", BLUE, "other seeds"),
                                         (even, "s", GREY, "uniform, retrained")):  # fmt: skip
        places = np.array([(answers.mean(), attention.mean()) for answers, attention in points])
        ax.plot(*places.T, marker, color=colour, label=name)
    ax.axhline(MOST, color=GREY, ls=":", lw=1.2, label="ln 2")
    ax.set(xlabel="TVD of answers to the base", ylabel="JSD of attention to the base, nats")
    ax.set_xlim(left=0)
    ax.set_ylim(0, 0.75)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
