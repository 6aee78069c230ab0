"""Two attention layers that count letters: one attends to equal letters, the other to the same
positions whatever the letters are.

The task, the model and the two solutions are those of Cui, Behrens, Krzakala and Zdeborová, "A
phase transition between positional and semantic learning in a solvable model of dot-product
attention" (2024), section on the histogram task.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn

from whence import InputError, SettingsError
from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, ORANGE

TITLE = "Counting letters with attention that reads them, and with attention that does not"

# ---------------------------------------------------------------------- settings

Solution = Literal["semantic", "positional"]
SOLUTIONS: tuple[Solution, ...] = get_args(Solution)
COLOURS = {"semantic": ORANGE, "positional": BLUE}

ALPHABET = "ACDEGHILMNORSTU"
LENGTH = 10  # of a sequence
EXAMPLES = ("DATAIAIAIA", "STATISTICS", "HISTOGRAMS")
NUMBER = 50_000  # of uniform sequences that are drawn

WIDTH = 64
HALF = WIDTH // 2  # an embedding is (letter | position), half and half
HIDDEN = 128

BATCH = 128
RATES = {"semantic": 8e-3, "positional": 1e-2}


# ---------------------------------------------------------------------- data


def encode(text: str) -> Int[Tensor, " length"]:
    """A word's letters as numbers.

    >>> encode("ACE").tolist()
    [0, 1, 3]
    """
    wrong = sorted(set(text) - set(ALPHABET))
    if wrong:
        raise InputError(
            f"the alphabet is {ALPHABET}, and {text!r} has {', '.join(wrong)}: use other letters."
        )
    return torch.tensor([ALPHABET.index(letter) for letter in text])


def count(letters: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    """How often each letter occurs in its sequence.

    >>> count(encode("DATAIAIAIA")[None]).tolist()
    [[1, 5, 1, 5, 3, 5, 3, 5, 3, 5]]
    """
    return (letters[:, :, None] == letters[:, None, :]).sum(-1)


@dataclass(frozen=True, eq=False)
class Data:
    """Sequences to train on, and sequences that are never trained on, as the examples are not.

    ``validation`` are uniform sequences, ``balanced`` are some of every count.
    """

    training: Int[Tensor, "training length"]
    validation: Int[Tensor, "validation length"]
    balanced: Int[Tensor, "balanced length"]


def few_letters(number: int, dice: np.random.Generator) -> Int[np.ndarray, "number length"]:
    """Sequences of two to six letters each, in random shares.

    So a letter may well occur ten times, which it hardly ever does in a uniform sequence.
    """
    alphabets = np.tile(np.arange(len(ALPHABET)), (number, 1))  # (number, 15)
    shuffled = dice.permuted(alphabets, axis=1)
    lengths = dice.exponential(size=(number, 6))
    used = np.arange(6) < dice.integers(2, 7, size=(number, 1))
    shares = lengths * used  # (number, 6): parts of a line, one for each letter that is used
    ends = shares.cumsum(1)[:, None]  # (number, 1, 6): where each part ends
    points = dice.random((number, LENGTH, 1)) * ends[..., -1:]  # (number, 10, 1), on the line
    picks = (points > ends).sum(-1)  # (number, 10): the part in which each point lies
    return np.take_along_axis(shuffled, picks, 1)


def sequences(number: int, seed: int) -> Data:
    """Different uniform sequences, 30 % of them for validation.

    The others are trained on, together with as many of few letters.
    """
    dice = np.random.default_rng(seed)
    drawn = dice.integers(len(ALPHABET), size=(number, LENGTH))
    uniform = dice.permutation(np.unique(drawn, axis=0))  # np.unique sorts
    cut = int(0.7 * len(uniform))
    validation = uniform[cut:]

    # as many sequences of each count as there are, up to 200; of AAAAAAAAAA and the like only 15
    pool = dice.permutation(np.unique(few_letters(20_000, dice), axis=0))
    counts = count(torch.from_numpy(pool)).numpy()
    parts = []
    for c in range(1, LENGTH + 1):
        with_count = pool[(counts == c).any(1)]
        parts.append(with_count[: min(200, len(with_count) // 3)])
    balanced = np.concatenate(parts)

    examples = [encode(word).numpy() for word in EXAMPLES]
    held_out = {row.tobytes() for row in (*validation, *balanced, *examples)}
    training = np.concatenate([uniform[:cut], few_letters(cut, dice)])
    training = training[[row.tobytes() not in held_out for row in training]]
    return Data(
        torch.from_numpy(training),
        torch.from_numpy(validation),
        torch.from_numpy(np.unique(balanced, axis=0)),
    )


# ---------------------------------------------------------------------- model


class Counter(nn.Module):
    """Logits = W2 relu(W1 LN(A x V)), without residual.

    The attention A sees one half of x only (the frozen subspace F): that of the letters or that of
    the positions.
    """

    def __init__(self, solution: Solution, generator: torch.Generator) -> None:
        super().__init__()

        def uniform(*shape: int, fan: int) -> nn.Parameter:
            values = torch.rand(*shape, generator=generator) * 2 - 1
            return nn.Parameter(values / math.sqrt(fan))

        self.solution: Solution = solution
        self.letter = nn.Parameter(torch.randn(len(ALPHABET), HALF, generator=generator))
        self.position = nn.Parameter(torch.randn(LENGTH, HALF, generator=generator))
        self.query = uniform(WIDTH, WIDTH, fan=WIDTH)
        self.key = uniform(WIDTH, WIDTH, fan=WIDTH)
        self.value = uniform(WIDTH, WIDTH, fan=WIDTH)
        self.gain = nn.Parameter(torch.ones(WIDTH))
        self.shift = nn.Parameter(torch.zeros(WIDTH))
        self.w1 = uniform(WIDTH, HIDDEN, fan=WIDTH)
        self.b1 = uniform(HIDDEN, fan=WIDTH)
        self.w2 = uniform(HIDDEN, LENGTH + 1, fan=HIDDEN)
        self.b2 = uniform(LENGTH + 1, fan=HIDDEN)

    def forward(self, letters: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length counts"]:
        """Logits of the counts 0 … 10.

        Queries, keys and values are made once per letter and per position, not per token.
        """
        here = F.one_hot(letters, len(ALPHABET)).float()  # (batch, 10, 15): which letter is where
        by_letter = self.letter @ self.value[:HALF]  # (15, 64)
        by_position = self.position @ self.value[HALF:]  # (10, 64)
        if self.solution == "positional":
            query = self.position @ self.query[HALF:]  # (10, 64)
            key = self.position @ self.key[HALF:]  # (10, 64)
            scores = query @ key.T  # (10, 10): no letters in it
        else:
            query = self.letter @ self.query[:HALF]  # (15, 64)
            key = self.letter @ self.key[:HALF]  # (15, 64)
            scores = here @ (query @ key.T) @ here.transpose(1, 2)  # (batch, 10, 10)
        weights = (scores / math.sqrt(WIDTH)).softmax(-1)

        # A x V = (A · letters) V + A · (positions V). The first product is (batch, 10, 15), a
        # quarter of (batch, 10, 64).
        mixed = F.linear(weights @ here, by_letter.T) + weights @ by_position  # (batch, 10, 64)
        normed = F.layer_norm(mixed, (WIDTH,), self.gain, self.shift).flatten(0, 1)

        # addmm and a relu in place: no fresh memory for the hidden layer, about 15 % less time
        hidden = torch.addmm(self.b1, normed, self.w1).relu_()  # (batch · 10, 128)
        logits = torch.addmm(self.b2, hidden, self.w2)  # (batch · 10, 11)
        return logits.unflatten(0, letters.shape)


@torch.no_grad()
def attention(
    model: Counter, letters: Int[Tensor, "batch length"]
) -> Float[Tensor, "batch query key"]:
    """The weights A by the definition: embed every token, mask by F, softmax.

    Slow, and a check of the short cuts in ``Counter.forward``.
    """
    by_letter = model.letter[letters]  # (batch, 10, 32)
    by_position = model.position.expand(len(letters), LENGTH, HALF)  # (batch, 10, 32)
    x = torch.cat([by_letter, by_position], dim=-1)  # (batch, 10, 64)
    half = torch.arange(WIDTH) < HALF
    if model.solution == "positional":
        half = ~half
    visible = x * half
    query, key = visible @ model.query, visible @ model.key  # (batch, 10, 64)
    return (query @ key.transpose(1, 2) / math.sqrt(WIDTH)).softmax(-1)


# ---------------------------------------------------------------------- what is measured


@torch.no_grad()
def right(model: Counter, letters: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length"]:
    """1 where the most probable count is the right one, else 0."""
    answers = torch.cat([model(part).argmax(-1) for part in letters.split(500)])
    return (answers == count(letters)).float()


@dataclass(frozen=True)
class Looks:
    """Where a model attends: mean weights over sequences.

    ``sd`` is the standard deviation over sequences, the largest of the 100 entries of A.
    """

    sd: float
    diagonal: float
    off_diagonal: float
    equal: float
    other: float


def looks(model: Counter, letters: Int[Tensor, "batch length"]) -> Looks:
    """Measure A.

    For letters that occur twice, ``equal`` is the weight of each of the two, ``other`` that of each
    of the other eight.
    """
    a = attention(model, letters)  # (batch, query, key)
    own = torch.eye(LENGTH, dtype=torch.bool).expand_as(a)
    equal = letters[:, :, None] == letters[:, None, :]
    twice = (count(letters) == 2)[:, :, None]
    return Looks(
        sd=float(a.std(0).max()),
        diagonal=float(a[own].mean()),
        off_diagonal=float(a[~own].mean()),
        equal=float(a[equal & twice].mean()),
        other=float(a[~equal & twice].mean()),
    )


# ---------------------------------------------------------------------- training


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model, its way there, and how well it does on validation sequences."""

    solution: Solution
    seed: int
    model: Counter
    curve: tuple[tuple[int, float], ...]
    accuracy: float
    looks: Looks

    @property
    def name(self) -> str:
        """The solution and the seed."""
        return f"{self.solution} {self.seed}"


def rate_at(step: int, steps: int, highest: float) -> float:
    """The learning rate: it rises over 100 steps, then falls to zero by a cosine."""
    return highest * min(1, (step + 1) / 100) * (1 + math.cos(math.pi * step / steps)) / 2


def train(book: Notebook, solution: Solution, seed: int, data: Data, steps: int) -> Run:
    """Adam, on batches drawn without replacement until all sequences were seen."""
    generator = torch.Generator().manual_seed(seed)
    model = Counter(solution, generator)
    letters = data.training  # (sequence, 10)
    targets = count(letters)
    sample = data.validation[:1000]

    # betas and eps as in the authors' code; fused: one call for all the small tensors
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    curve = []
    order = torch.empty(0, dtype=torch.long)  # sequences that are still to be seen
    for step in range(steps):
        if step % max(1, steps // 20) == 0:
            book.tell(f"{solution} solution, seed {seed}, step {step}/{steps}")
            curve.append((step, float(right(model, sample).mean())))
        if len(order) < BATCH:
            order = torch.randperm(len(letters), generator=generator)
        now, order = order[:BATCH], order[BATCH:]
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, steps, RATES[solution])

        logits = model(letters[now])  # (batch, 10, 11)
        loss = F.cross_entropy(logits.flatten(0, 1), targets[now].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    curve.append((steps, float(right(model, sample).mean())))

    accuracy = float(right(model, data.validation).mean())
    return Run(solution, seed, model, tuple(curve), accuracy, looks(model, data.validation[:5000]))


# ---------------------------------------------------------------------- the lab


def run(book: Notebook, seeds: int = 3) -> None:
    """Train both solutions from ``seeds`` seeds each (one if quick) and look at their attention."""
    if seeds < 1:
        raise SettingsError(
            f"seeds is how many runs each solution gets, and was {seeds}: give at least 1."
        )
    number, steps, good = NUMBER, 3000, 0.99
    if book.quick:
        seeds, number, steps, good = 1, NUMBER // 5, 400, 0.85

    data = sequences(number, book.seed)
    always_one = _the_task(book, data)

    runs_of = {}
    for solution in SOLUTIONS:
        runs_of[solution] = [
            train(book, solution, book.seed + i, data, steps) for i in range(seeds)
        ]
    runs = [*runs_of["semantic"], *runs_of["positional"]]
    best = [max(runs_of[solution], key=lambda r: r.accuracy) for solution in SOLUTIONS]

    by_count = _how_well(book, data, runs, always_one, good)
    _what_attention_shows(book, data, best)
    _claims(book, runs_of, best, by_count, good)


def _the_task(book: Notebook, data: Data) -> float:
    """The task in words; returns how often the answer 1 is right."""
    counts = count(data.validation)
    always_one = (counts == 1).float().mean().item()
    often = (counts >= 5).float().mean().item()
    example = EXAMPLES[0]
    its_counts = count(encode(example)[None])[0].tolist()

    book.head("The task: how often does each letter occur in its word?")
    book.say(
        f"letter  {'  '.join(example)}\ncount   {'  '.join(map(str, its_counts))}",
        code=True,
    )
    book.say(
        f"Validation: {len(counts):,} random sequences of {LENGTH} letters out of {len(ALPHABET)}, "
        f"as in the paper. Always answering 1 is right at {always_one:.1%} of their positions; "
        f"letters that occur five times or more are at {often:.2%}. So, unlike in the paper, only "
        "half of the training sequences are like these, and the other half has two to six "
        "different letters. A balanced set, of which nothing is trained on either, tells how well "
        "each count is answered."
    )
    return always_one


def _how_well(
    book: Notebook, data: Data, runs: Sequence[Run], always_one: float, good: float
) -> list[list[float]]:
    """Training curves and accuracies; returns the accuracy for each count and run."""
    book.head("One layer, two halves")
    book.say(
        "An embedding has two halves: one for the letter, one for the position. Values are made "
        "from both. Queries and keys are made from one half only: the letter's (semantic solution) "
        "or the position's (positional solution). An MLP reads the mixture; no residual."
    )
    book.figure(
        "histogram-training",
        draw_curves(runs, always_one),
        "Accuracy while training, on 1,000 validation sequences; the legend has the accuracy "
        "on all of them at the end.",
    )

    rows = []
    for r in runs:
        where = ("", "", r.looks.equal, r.looks.other)
        if r.solution == "positional":
            where = (r.looks.diagonal, r.looks.off_diagonal, "", "")
        stuck = r.accuracy <= good
        rows.append((r.solution, r.seed, r.accuracy, stuck, r.looks.sd, *where))
    measured_on = min(len(data.validation), 5000)
    book.table(
        "histogram-runs",
        (
            "solution",
            "seed",
            "accuracy",
            "stuck",
            "sd of attention",
            "diagonal",
            "off diagonal",
            "equal letter",
            "other letter",
        ),
        rows,
        "Accuracy on the validation sequences; a run is stuck if it does not end over "
        f"{good:.0%}. “sd of attention” is how much attention changes between {measured_on:,} "
        "of them: the largest standard deviation of the 100 entries of A. The other columns "
        "are mean weights; equal and other letter are for letters that occur twice.",
    )

    counts = count(data.balanced)  # (sequence, 10)
    answers = [right(r.model, data.balanced) for r in runs]
    by_count = []
    rows = []
    for c in range(1, LENGTH + 1):
        accuracies = [float(is_right[counts == c].mean()) for is_right in answers]
        by_count.append(accuracies)
        rows.append((c, int((counts == c).sum()), *accuracies))
    book.table(
        "histogram-counts",
        ("count", "positions", *(r.name for r in runs)),
        rows,
        "How well each count is answered, on the balanced set. There are only 15 sequences of "
        "one single letter: five are kept out, the others are trained on.",
    )
    return by_count


def _what_attention_shows(book: Notebook, data: Data, best: Sequence[Run]) -> None:
    semantic, positional = (attention(r.model, data.validation[:5000]) for r in best)
    words = torch.stack([encode(word) for word in EXAMPLES])  # (word, 10)

    book.head("What the attention shows")
    maps, titles = [], []
    for r in best:
        maps.append(list(attention(r.model, words)))
        titles.append([f"{r.solution}: {word}" for word in EXAMPLES])
    book.figure(
        "histogram-attention",
        draw_maps(maps, titles, EXAMPLES, "attention"),
        "Above: the semantic solution attends to equal letters. Below: the positional "
        "solution has one map for every word.",
    )
    spreads = [semantic.std(0), positional.std(0)]  # (query, key) each
    spread_titles = [f"{r.solution}: at most {r.looks.sd:.2g}" for r in best]
    numbers = range(1, LENGTH + 1)
    book.figure(
        "histogram-spread",
        draw_maps([spreads], [spread_titles], [numbers, numbers], "sd"),
        "How much attention changes from sequence to sequence: the standard deviation of "
        "every entry of A.",
    )
    distance = float((semantic - positional).abs().sum(-1).mean()) / 2
    book.say(
        "That positional attention ignores the letters follows from the construction: its queries "
        "and keys never see them. The question is whether such a layer still counts. The best "
        f"runs' attention differs by {distance:.2f} in mean total variation distance. A map that "
        "is the same for every word cannot tell why this word got these counts."
    )


def _claims(
    book: Notebook,
    runs_of: dict[Solution, list[Run]],
    best: Sequence[Run],
    by_count: list[list[float]],
    good: float,
) -> None:
    semantic, positional = runs_of["semantic"], runs_of["positional"]
    runs = [*semantic, *positional]
    lists = []
    for solution, its_runs in runs_of.items():
        accuracies = [f"{r.accuracy:.2%}" for r in its_runs]
        lists.append(f"{solution} " + ", ".join(accuracies))
    reached = "; ".join(lists)
    book.claim(
        f"At least one run of each solution is over {good:.0%}.",
        reached,
        all(r.accuracy > good for r in best),
    )
    book.claim(f"Every run is over {good:.0%}.", reached, all(r.accuracy > good for r in runs))

    example = encode(EXAMPLES[0])[None]  # (1, 10)
    wrong = ", ".join(r.name for r in runs if not right(r.model, example).all())
    book.claim(
        f"Every run answers {EXAMPLES[0]} right, at all ten letters.",
        f"wrong: {wrong or 'none'}",
        not wrong,
    )
    worst = [f"{c}: {min(accuracies):.1%}" for c, accuracies in enumerate(by_count, 1)]
    book.claim(
        f"Every run is over {good:.0%} at every count of the balanced set.",
        "worst run of each count: " + ", ".join(worst),
        bool(np.min(by_count) > good),
    )

    still = max(r.looks.sd for r in positional)
    book.claim(
        "Positional attention is the same for every sequence (by construction): sd below 0.001.",
        f"{still:.1e}",
        still < 1e-3,
    )
    moving = min(r.looks.sd for r in semantic)
    book.claim(
        "Semantic attention changes with the sequence: sd over 0.03.",
        f"smallest of the runs {moving:.3f}",
        moving > 0.03,
    )
    ratios = [r.looks.equal / r.looks.other for r in semantic]
    book.claim(
        "Every semantic run gives an equal letter at least twice the weight of another.",
        "ratios " + ", ".join(f"{ratio:.1f}" for ratio in ratios),
        min(ratios) > 2,
    )


# ---------------------------------------------------------------------- figures


def draw_curves(runs: Sequence[Run], always_one: float) -> Any:
    """Validation accuracy over training, a line for each run."""
    import matplotlib.pyplot as plt

    lines = ("-", "--", ":", "-.")
    fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for run in runs:
        steps, accuracy = np.array(run.curve).T
        errors = np.maximum(1 - accuracy, 1e-4)  # downwards on a log scale: 99 % is far from 96 %
        ax.plot(
            steps,
            errors,
            lines[run.seed % 4],
            color=COLOURS[run.solution],
            label=f"{run.solution}, seed {run.seed}: {run.accuracy:.2%}",
        )
    ax.axhline(
        1 - always_one,
        color=GREY,
        linewidth=0.8,
        label=f"always answering 1: {always_one:.2%}",
    )
    ax.set(xlabel="step", ylabel="validation accuracy", yscale="log", ylim=(1, 8e-5))
    ax.set_yticks([0.5, 0.1, 0.01, 0.001, 1e-4], ["50 %", "90 %", "99 %", "99.9 %", "all"])
    ax.minorticks_off()
    ax.grid(axis="y", color="#e4e6eb", linewidth=0.6)
    fig.legend(loc="outside right upper", frameon=False)
    return fig


def draw_maps(
    maps: Sequence[Sequence[Tensor]],
    titles: Sequence[Sequence[str]],
    names: Sequence[Sequence[Any]],
    unit: str,
) -> Any:
    """A grid of maps on one scale, from zero.

    ``names`` are the cells' names, for each column of the grid.
    """
    import matplotlib.pyplot as plt

    high, wide = len(maps), len(maps[0])
    top = max(float(torch.stack(list(row)).max()) for row in maps)
    fig, axes = plt.subplots(
        high,
        wide,
        figsize=(0.6 + 2.8 * wide, 0.3 + 3 * high),
        layout="constrained",
        squeeze=False,
    )
    for (i, j), ax in np.ndenumerate(axes):
        ax.imshow(maps[i][j].numpy(), cmap=drawing.ramp(), vmin=0, vmax=top)
        ax.set(
            xticks=range(LENGTH), xticklabels=names[j], yticks=range(LENGTH), yticklabels=names[j]
        )
        ax.set(title=titles[i][j])
        if i == high - 1:
            ax.set(xlabel="attended")
        if j == 0:
            ax.set(ylabel="attending")
        ax.spines[:].set(visible=True, color="#c5c8cf")
    fig.colorbar(axes[0, 0].images[0], ax=axes, label=unit, shrink=0.6)
    fig.draw_without_rendering()
    fig.set_layout_engine("none")  # laid out once, not again for every file format
    return fig
