"""Two attention layers that count equally well: one attends to equal letters, the other to the same positions whatever the letters are.

The task, the model and the two solutions are those of Cui, Behrens, Krzakala and Zdeborová, "A phase transition between positional and
semantic learning in a solvable model of dot-product attention" (2024), section on the histogram task.
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

from whence.core.errors import InputError, SettingsError
from whence.notebook.book import Notebook
from whence.views.drawing import ramp

TITLE = "Counting letters with attention that reads them, and with attention that does not"
Solution = Literal["semantic", "positional"]
LENGTH, ALPHABET, WIDTH, HIDDEN = 10, "ACDEGHILMNORSTU", 64, 128
HALF = WIDTH // 2  # an embedding is (letter | position), half and half
EXAMPLES = ("DATAIAIAIA", "STATISTICS", "HISTOGRAMS")
COLOURS = {"semantic": "#f3841c", "positional": "#549cde"}
NUMBER, BATCH, RATES = 50_000, 128, {"semantic": 8e-3, "positional": 1e-2}


def encode(text: str) -> Int[Tensor, " length"]:
    """A word's letters as numbers.

    >>> encode("ACE").tolist()
    [0, 1, 3]
    """
    if wrong := sorted(set(text) - set(ALPHABET)):
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
    """Sequences to train on, uniform ones to validate on, and some of every count; the last two and the examples are never trained on."""

    training: Int[Tensor, "training length"]
    validation: Int[Tensor, "validation length"]
    balanced: Int[Tensor, "balanced length"]


def few_letters(number: int, dice: np.random.Generator) -> Int[np.ndarray, "number length"]:
    """Sequences of two to six letters each, in random shares, so that a letter may well occur ten times."""
    shuffled = dice.permuted(np.tile(np.arange(len(ALPHABET)), (number, 1)), axis=1)  # [number, 15]
    shares = dice.exponential(size=(number, 6)) * (
        np.arange(6) < dice.integers(2, 7, size=(number, 1))
    )
    ends = shares.cumsum(1)[:, None]  # [number, 1, 6]: where each letter's part of a line ends
    picks = (dice.random((number, LENGTH, 1)) * ends[..., -1:] > ends).sum(-1)  # [number, 10]
    return np.take_along_axis(shuffled, picks, 1)


def sequences(number: int, seed: int) -> Data:
    """Different uniform sequences, 30 % for validation; the others are trained on, together with as many of few letters."""
    dice = np.random.default_rng(seed)
    uniform = dice.permutation(
        np.unique(dice.integers(len(ALPHABET), size=(number, LENGTH)), axis=0)
    )  # np.unique sorts
    cut = int(0.7 * len(uniform))
    pool = dice.permutation(np.unique(few_letters(20_000, dice), axis=0))
    counts = count(torch.from_numpy(pool)).numpy()
    with_count = [pool[(counts == c).any(1)] for c in range(1, LENGTH + 1)]
    balanced = np.concatenate(
        [some[: min(200, len(some) // 3)] for some in with_count]
    )  # of AAAAAAAAAA and the like there are only 15
    kept_out = {
        row.tobytes()
        for row in (*uniform[cut:], *balanced, *(encode(word).numpy() for word in EXAMPLES))
    }
    training = np.concatenate([uniform[:cut], few_letters(cut, dice)])
    training = training[[row.tobytes() not in kept_out for row in training]]
    return Data(
        torch.from_numpy(training),
        torch.from_numpy(uniform[cut:]),
        torch.from_numpy(np.unique(balanced, axis=0)),
    )


class Counter(nn.Module):
    """Logits = W2 relu(W1 LN(A x V)), without residual; A sees one half of x only (the frozen subspace F)."""

    def __init__(self, solution: Solution, generator: torch.Generator) -> None:
        super().__init__()

        def uniform(*shape: int, fan: int) -> nn.Parameter:
            return nn.Parameter((torch.rand(*shape, generator=generator) * 2 - 1) / math.sqrt(fan))

        self.solution: Solution = solution
        self.letter = nn.Parameter(torch.randn(len(ALPHABET), HALF, generator=generator))
        self.position = nn.Parameter(torch.randn(LENGTH, HALF, generator=generator))
        self.query, self.key, self.value = (uniform(WIDTH, WIDTH, fan=WIDTH) for _ in range(3))
        self.gain, self.shift = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))
        self.w1, self.b1 = uniform(WIDTH, HIDDEN, fan=WIDTH), uniform(HIDDEN, fan=WIDTH)
        self.w2, self.b2 = uniform(HIDDEN, LENGTH + 1, fan=HIDDEN), uniform(LENGTH + 1, fan=HIDDEN)

    def forward(self, letters: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length counts"]:
        """Logits of the counts 0 … 10. Queries, keys and values are made once per letter and per position, not per token."""
        here = F.one_hot(letters, len(ALPHABET)).float()  # [batch, 10, 15]: which letter is where
        by_letter, by_position = (
            self.letter @ self.value[:HALF],
            self.position @ self.value[HALF:],
        )  # [15, 64], [10, 64]
        if self.solution == "positional":
            scores = (self.position @ self.query[HALF:]) @ (
                self.position @ self.key[HALF:]
            ).T  # [10, 10]: no letters in it
        else:
            pairs = (self.letter @ self.query[:HALF]) @ (
                self.letter @ self.key[:HALF]
            ).T  # [15, 15]
            scores = here @ pairs @ here.transpose(1, 2)  # [batch, 10, 10]
        weights = (scores / math.sqrt(WIDTH)).softmax(-1)
        # A x V = (A · letters) V + A · (positions V): the first product is [batch, 10, 15], a quarter of [batch, 10, 64]
        mixed = F.linear(weights @ here, by_letter.T) + weights @ by_position  # [batch, 10, 64]
        normed = F.layer_norm(mixed, (WIDTH,), self.gain, self.shift).flatten(0, 1)
        # addmm and a relu in place: no fresh memory for the hidden layer, about 15 % less time for a step
        hidden = torch.addmm(self.b1, normed, self.w1).relu_()  # [batch · 10, 128]
        return torch.addmm(self.b2, hidden, self.w2).unflatten(0, letters.shape)


@torch.no_grad()
def attention(
    model: Counter, letters: Int[Tensor, "batch length"]
) -> Float[Tensor, "batch query key"]:
    """The weights A by the definition: embed every token, mask by F, softmax. Slow, and a check of the short cuts in Counter.forward."""
    x = torch.cat(
        [model.letter[letters], model.position.expand(len(letters), LENGTH, HALF)], dim=-1
    )  # [batch, 10, 64]
    semantic = torch.arange(WIDTH) < HALF
    kept = x * (semantic if model.solution == "semantic" else ~semantic)
    return ((kept @ model.query) @ (kept @ model.key).transpose(1, 2) / math.sqrt(WIDTH)).softmax(
        -1
    )


@torch.no_grad()
def right(model: Counter, letters: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length"]:
    """1 where the most probable count is the right one, else 0."""
    return (
        torch.cat([model(part).argmax(-1) for part in letters.split(500)]) == count(letters)
    ).float()


@dataclass(frozen=True)
class Looks:
    """Where a model attends: means over sequences, and the sd over sequences, the largest of the 100 entries of A."""

    sd: float
    diagonal: float
    off_diagonal: float
    equal: float
    other: float


def looks(model: Counter, letters: Int[Tensor, "batch length"]) -> Looks:
    """Measure A. For letters that occur twice, ``equal`` is the weight of each of the two, ``other`` that of each of the other eight."""
    a = attention(model, letters)
    own = torch.eye(LENGTH, dtype=torch.bool).expand_as(a)
    equal = letters[:, :, None] == letters[:, None, :]
    twice = (count(letters) == 2)[:, :, None]
    return Looks(
        float(a.std(0).max()),
        *(float(a[where].mean()) for where in (own, ~own, equal & twice, ~equal & twice)),
    )


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model, its way there, and how well it does on validation sequences."""

    solution: Solution
    seed: int
    model: Counter
    curve: tuple[tuple[int, float], ...]
    accuracy: float
    looks: Looks


def train(book: Notebook, solution: Solution, seed: int, data: Data, steps: int) -> Run:
    """Adam with a linear warm-up and a cosine to zero, on batches drawn without replacement until all sequences were seen."""
    generator = torch.Generator().manual_seed(seed)
    model = Counter(solution, generator)
    letters, targets, some = data.training, count(data.training), data.validation[:1000]
    # betas and eps as in the authors' code; fused: one call for all the small tensors
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    curve, order = [], torch.empty(0, dtype=torch.long)
    for step in range(steps):
        if step % max(1, steps // 20) == 0:
            book.tell(f"{solution} solution, seed {seed}, step {step}/{steps}")
            curve.append((step, float(right(model, some).mean())))
        if len(order) < BATCH:
            order = torch.randperm(len(letters), generator=generator)
        now, order = order[:BATCH], order[BATCH:]
        for group in optimiser.param_groups:
            group["lr"] = (
                RATES[solution]
                * min(1, (step + 1) / 100)
                * (1 + math.cos(math.pi * step / steps))
                / 2
            )
        optimiser.zero_grad()
        F.cross_entropy(model(letters[now]).flatten(0, 1), targets[now].flatten()).backward()
        optimiser.step()
    curve.append((steps, float(right(model, some).mean())))
    return Run(
        solution,
        seed,
        model,
        tuple(curve),
        float(right(model, data.validation).mean()),
        looks(model, data.validation[:5000]),
    )


def draw_curves(runs: Sequence[Run], always_one: float) -> Any:
    """Validation accuracy over training, a line for each run."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for run in runs:
        steps, accuracy = np.array(run.curve).T
        errors = np.maximum(
            1 - accuracy, 1e-4
        )  # drawn downwards on a log scale: 99 % is far from 96 %
        name = f"{run.solution}, seed {run.seed}: {run.accuracy:.2%}"
        ax.plot(
            steps,
            errors,
            ("-", "--", ":", "-.")[run.seed % 4],
            color=COLOURS[run.solution],
            label=name,
        )
    ax.axhline(
        1 - always_one,
        color="#8a8f99",
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
    """A grid of maps on one scale, from zero; ``names`` are the cells' names, for each column of the grid."""
    import matplotlib.pyplot as plt

    high, wide = len(maps), len(maps[0])
    fig, axes = plt.subplots(
        high, wide, figsize=(0.6 + 2.8 * wide, 0.3 + 3 * high), layout="constrained", squeeze=False
    )
    top = max(float(a.max()) for row in maps for a in row)
    for (i, j), ax in np.ndenumerate(axes):
        ax.imshow(maps[i][j].numpy(), cmap=ramp(), vmin=0, vmax=top)
        ax.set(
            xticks=range(LENGTH), xticklabels=names[j], yticks=range(LENGTH), yticklabels=names[j]
        )
        ax.set(
            title=titles[i][j],
            xlabel="attended" if i == high - 1 else "",
            ylabel="attending" if j == 0 else "",
        )
        ax.spines[:].set(visible=True, color="#c5c8cf")
    fig.colorbar(axes[0, 0].images[0], ax=axes, label=unit, shrink=0.6)
    fig.draw_without_rendering()
    fig.set_layout_engine("none")  # laid out once, not again for every file format
    return fig


def run(book: Notebook, seeds: int = 3) -> None:
    """Train both solutions from ``seeds`` seeds each (one if quick) and look at their attention."""
    if seeds < 1:
        raise SettingsError(
            f"seeds is how many runs each solution gets, and was {seeds}: give at least 1."
        )
    seeds, steps, good = (1, 400, 0.85) if book.quick else (seeds, 3000, 0.99)
    kinds: tuple[Solution, ...] = get_args(Solution)
    data = sequences(NUMBER // 5 if book.quick else NUMBER, book.seed)
    counts, balanced = count(data.validation), count(data.balanced)
    always_one, often = ((counts == 1).float().mean().item(), (counts >= 5).float().mean().item())
    book.head("The task: how often does each letter occur in its word?")
    book.say(
        f"letter  {'  '.join(EXAMPLES[0])}\ncount   {'  '.join(map(str, count(encode(EXAMPLES[0])[None])[0].tolist()))}",
        code=True,
    )
    book.say(
        f"Validation: {len(counts):,} random sequences of {LENGTH} letters out of {len(ALPHABET)}, as in the paper. Always answering 1 is "
        f"right at {always_one:.1%} of their positions; letters that occur five times or more are at {often:.2%}. So, unlike in the "
        "paper, only half of the training sequences are like these, and the other half has two to six different letters. A balanced set, "
        "of which nothing is trained on either, tells how well each count is answered."
    )
    book.head("One layer, two halves")
    book.say(
        "An embedding has two halves: one for the letter, one for the position. Values are made from both. Queries and keys are made from "
        "one half only: the letter's (semantic solution) or the position's (positional solution). An MLP reads the mixture; no residual."
    )
    of = {
        kind: [train(book, kind, book.seed + i, data, steps) for i in range(seeds)]
        for kind in kinds
    }
    runs, best = (
        [r for kind in kinds for r in of[kind]],
        [max(of[kind], key=lambda r: r.accuracy) for kind in kinds],
    )
    a, b = (attention(r.model, data.validation[:5000]) for r in best)
    book.figure(
        "histogram-training",
        draw_curves(runs, always_one),
        "On 1,000 validation sequences; in the legend, on all at the end.",
    )
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
        [
            (r.solution, r.seed, r.accuracy, r.accuracy <= good, r.looks.sd)
            + (
                ("", "", r.looks.equal, r.looks.other)
                if r.solution == "semantic"
                else (r.looks.diagonal, r.looks.off_diagonal, "", "")
            )
            for r in runs
        ],
        f"Accuracy on the validation sequences; stuck: not over {good:.0%} at the end. The sd of attention is over {len(a):,} of them, "
        "the largest of the 100 entries of A. The weights are means; equal and other: for letters that occur twice.",
    )
    rights = [right(r.model, data.balanced) for r in runs]
    by_count = [
        [float(answers[balanced == c].mean()) for answers in rights] for c in range(1, LENGTH + 1)
    ]
    book.table(
        "histogram-counts",
        ("count", "positions", *(f"{r.solution} {r.seed}" for r in runs)),
        [(c, int((balanced == c).sum()), *row) for c, row in enumerate(by_count, 1)],
        "Accuracy by count on the balanced set. Of sequences with one letter only there are 15: five are kept out, the others trained on.",
    )
    book.head("What the attention shows")
    words = torch.stack([encode(word) for word in EXAMPLES])
    titles = [[f"{kind}: {word}" for word in EXAMPLES] for kind in kinds]
    drawn = draw_maps(
        [list(attention(r.model, words)) for r in best], titles, EXAMPLES, "attention"
    )
    book.figure(
        "histogram-attention",
        drawn,
        "Above, attention to equal letters. Below, the positional solution's one map for every word.",
    )
    titles, numbers = (
        [[f"{r.solution}: at most {r.looks.sd:.2g}" for r in best]],
        range(1, LENGTH + 1),
    )
    drawn = draw_maps([[a.std(0), b.std(0)]], titles, [numbers, numbers], "sd")
    book.figure(
        "histogram-spread",
        drawn,
        "The standard deviation over sequences of every entry of A, by position.",
    )
    book.say(
        "That positional attention ignores the letters follows from the construction: its queries and keys never see them. The question is "
        f"whether such a layer still counts. The best runs' attention differs by {float((a - b).abs().sum(-1).mean()) / 2:.2f} in mean "
        "total variation distance. A map that is the same for every word cannot tell why this word got these counts."
    )
    reached = "; ".join(
        f"{kind} " + ", ".join(f"{r.accuracy:.2%}" for r in of[kind]) for kind in kinds
    )
    book.claim(
        f"At least one run of each solution is over {good:.0%}.",
        reached,
        all(r.accuracy > good for r in best),
    )
    book.claim(f"Every run is over {good:.0%}.", reached, all(r.accuracy > good for r in runs))
    wrong = ", ".join(f"{r.solution} {r.seed}" for r in runs if not right(r.model, words[:1]).all())
    book.claim(
        f"Every run answers {EXAMPLES[0]} right, at all ten letters.",
        f"wrong: {wrong or 'none'}",
        not wrong,
    )
    listed = "worst run of each count: " + ", ".join(
        f"{c}: {min(row):.1%}" for c, row in enumerate(by_count, 1)
    )
    book.claim(
        f"Every run is over {good:.0%} at every count of the balanced set.",
        listed,
        bool(np.min(by_count) > good),
    )
    still, moving = (
        max(r.looks.sd for r in of["positional"]),
        min(r.looks.sd for r in of["semantic"]),
    )
    book.claim(
        "Positional attention is the same for every sequence (by construction): sd below 0.001.",
        f"{still:.1e}",
        still < 1e-3,
    )
    book.claim(
        "Semantic attention changes with the sequence: sd over 0.03.",
        f"smallest of the runs {moving:.3f}",
        moving > 0.03,
    )
    ratios = [r.looks.equal / r.looks.other for r in of["semantic"]]
    listed = f"ratios {', '.join(f'{ratio:.1f}' for ratio in ratios)}"
    book.claim(
        "Every semantic run gives an equal letter at least twice the weight of another.",
        listed,
        min(ratios) > 2,
    )
