"""Models that close brackets: how often they are right, and how often their attention points at the
bracket to be closed.

Bounded Dyck words: two kinds of brackets, at most four open at once. After a prefix, the only
closing bracket allowed is the partner of the last unmatched open one, so a reader expects attention
to look there. Wen et al. (2023, arXiv:2312.01429) show that it need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, INK, ORANGE, PURPLE

TITLE = "Brackets closed without looking at them"

# ---------------------------------------------------------------------- settings

# ^ begins every string; kind k of bracket opens as token 1 + k and closes as token 3 + k
SYMBOLS = ("^", "(", "[", ")", "]")
START, OPEN, CLOSE = 0, 1, 3
KINDS = 2
DEPTH = 4  # brackets that may be open at once

LENGTH = 28  # of the strings that the models are trained on
LONG = 200  # of those that test whether they go on
MAX_LENGTH = 512  # scales the position coordinate of variant 'p'

WIDTH = 50
LAYERS = 2
RATE = 3e-3
VARIANTS = {"z": "without position", "p": "with position"}

# Steps, and strings in each. 1430 steps are the 40 epochs of Wen et al., here of new strings.
FULL = (1430, 100)
QUICK = (280, 40)
# A model's name is its variant and its seed.
FULL_MODELS = ["z0", "z1", "z2", "p0", "p1"]
QUICK_MODELS = ["z0"]

CERTAIN = 0.8  # how much of the closing mass the right bracket must have
NORMAL = 1.959964  # standard deviations that hold 95 %
PALE = "#b9d4f0"


# ---------------------------------------------------------------------- data


def strings(count: int, length: int, rng: np.random.Generator) -> Int[np.ndarray, "string place"]:
    """Prefixes of bounded Dyck words, seldom balanced.

    A bracket opens when none is open, closes when four are, and does either with equal chance in
    between; the kinds are equally likely.
    """
    tokens = np.empty((count, length), int)  # (string, place)
    stack = np.zeros((count, DEPTH), int)  # (string, level): the kinds that are open
    depth = np.zeros(count, int)  # (string,): how many are open
    each = np.arange(count)
    for place in range(length):
        opens = (depth == 0) | ((depth < DEPTH) & (rng.random(count) < 0.5))
        innermost = stack[each, depth - 1]
        kind = np.where(opens, rng.integers(KINDS, size=count), innermost)
        tokens[:, place] = np.where(opens, OPEN, CLOSE) + kind
        stack[each[opens], depth[opens]] = kind[opens]
        depth += np.where(opens, 1, -1)
    return tokens


def stack_tops(tokens: Int[np.ndarray, "string place"]) -> Int[np.ndarray, "string place"]:
    """Where the last unmatched open bracket is after each place; -1 where all are closed."""
    opens = (tokens >= OPEN) & (tokens < CLOSE)  # (string, place)
    closes = tokens >= CLOSE
    depth = np.cumsum(opens.astype(int) - closes, axis=1)
    places = np.arange(tokens.shape[1])

    tops = np.full(tokens.shape, -1)
    for level in range(1, DEPTH + 1):
        # the bracket to close is the latest one that led to the present depth
        opened_here = np.where(opens & (depth == level), places, -1)
        latest = np.maximum.accumulate(opened_here, axis=1)
        tops = np.where(depth == level, latest, tops)
    return tops


def bayes_entropy(length: int) -> float:
    """The mean entropy of the next token in nats, which no model can beat.

    The depth is a random walk between 0 and four, and the depth alone decides the entropy.
    """
    between = log(2) + log(KINDS) / 2  # open or close; and if it opens, which kind
    entropy = np.array([log(KINDS)] + [between] * (DEPTH - 1) + [0.0])  # (depth,)

    opens = np.diag([1.0] + [0.5] * (DEPTH - 1), 1)  # (depth, next depth)
    closes = np.diag([0.5] * (DEPTH - 1) + [1.0], -1)
    walk = opens + closes
    by_place = []
    for place in range(length):
        expected = np.linalg.matrix_power(walk, place) @ entropy  # (depth at the beginning,)
        by_place.append(expected[0])
    return float(np.mean(by_place))


def begun(tokens: Int[np.ndarray, "string place"]) -> Int[Tensor, "string place+1"]:
    """The strings behind the start symbol."""
    return torch.from_numpy(np.pad(tokens, ((0, 0), (1, 0)), constant_values=START))


# ---------------------------------------------------------------------- model


class Block(nn.Module):
    """One causal head without layer norm, then an MLP behind one; both add to the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH),
        )

    def forward(
        self, x: Float[Tensor, "batch place width"]
    ) -> tuple[Float[Tensor, "batch place width"], Float[Tensor, "batch query key"]]:
        """The stream after the block, and the attention."""
        length = x.shape[1]
        query, key, value = self.qkv(x).chunk(3, -1)  # (batch, place, width) each
        future = torch.full((length, length), -torch.inf).triu(1)  # (query, key)
        scores = query @ key.mT / sqrt(WIDTH)  # (batch, query, key)
        attention = (scores + future).softmax(-1)  # (batch, query, key)
        x = x + self.out(attention @ value)  # (batch, place, width)
        return x + self.mlp(x), attention


class Transformer(nn.Module):
    """Frozen one-hot tokens, the blocks, and a linear map to logits; no last layer norm.

    The last coordinate of a token is its position in variant 'p', and 0 in variant 'z'.
    """

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.variant = variant
        self.one_hot = nn.Buffer(torch.eye(len(SYMBOLS), WIDTH))  # (token, width)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, len(SYMBOLS), bias=False)
        for name, weights in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(weights)
            elif weights.ndim == 2:
                nn.init.normal_(weights, std=0.02)  # as GPT-2 begins

    def forward(
        self, tokens: Int[Tensor, "batch row"]
    ) -> tuple[Float[Tensor, "batch row token"], Float[Tensor, "batch layer row key"]]:
        """Logits of the next token, and the attention of each layer."""
        x = self.one_hot[tokens]  # (batch, place, width)
        if self.variant == "p":
            x[..., -1] = torch.arange(tokens.shape[1]) / MAX_LENGTH
        attentions = []
        for block in self.blocks:
            x, attention = block(x)  # (batch, place, width), (batch, query, key)
            attentions.append(attention)
        return self.head(x), torch.stack(attentions, 1)


# ---------------------------------------------------------------------- training


def train(
    batches: Iterable[Int[np.ndarray, "batch place"]], total: int, variant: str, seed: int
) -> Transformer:
    """A model fitted by AdamW under a cosine schedule over ``total`` batches, each seen once.

    Torch's random state and its number of threads are left as they were.
    """
    threads = torch.get_num_threads()
    # sums in one order: a seed gives the same model on any number of cores
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = Transformer(variant)
        optimiser = torch.optim.AdamW(model.parameters(), RATE, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, total)
        for batch in batches:
            tokens = begun(batch)  # (batch, place + 1)
            logits, _ = model(tokens[:, :-1])  # (batch, place, token)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    finally:
        torch.set_num_threads(threads)
    return model.eval()


# ---------------------------------------------------------------------- what is measured


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model does with strings, row by row.

    A row is what has been read so far. It counts while a bracket is open.
    """

    counted: Bool[np.ndarray, "string row"]
    after_close: Bool[np.ndarray, "string row"]  # counted, and the last symbol read closes
    correct: Bool[np.ndarray, "string row"]
    hit: Bool[np.ndarray, "string layer row"]  # attention is largest at the bracket to be closed
    attention: Float[np.ndarray, "string layer row key"]
    mass: Float[np.ndarray, "string layer row"]  # attention on the bracket to be closed
    loss: float


def read(model: Transformer, data: Int[np.ndarray, "string place"]) -> Reading:
    """Measure a model on strings that it has not seen."""
    target = begun(data)  # (string, place + 1)
    with torch.no_grad():
        logits, attention = model(target[:, :-1])  # (string, row, token), (string, layer, row, key)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()).item()

    tokens = target[:, :-1].numpy()  # (string, row)
    tops = stack_tops(tokens)  # (string, row)
    counted = tops >= 0
    place = np.maximum(tops, 0)[:, None, :, None]  # (string, 1, row, 1)
    mass = np.take_along_axis(attention.numpy(), place, -1)[..., 0]  # (string, layer, row)
    looks_there = attention.argmax(-1).numpy() == tops[:, None]  # (string, layer, row)
    return Reading(
        counted=counted,
        after_close=counted & (tokens >= CLOSE),
        correct=closes_right(logits.numpy(), tokens, tops),
        hit=looks_there & counted[:, None],
        attention=attention.numpy(),
        mass=mass,
        loss=loss,
    )


def closes_right(
    logits: Float[np.ndarray, "string row token"],
    tokens: Int[np.ndarray, "string row"],
    tops: Int[np.ndarray, "string row"],
) -> Bool[np.ndarray, "string row"]:
    """Whether the right bracket has over 80 % of the mass of all closing brackets.

    The right one is the partner of the open one. False where none is open.
    """
    kind = np.take_along_axis(tokens, np.maximum(tops, 0), 1) - OPEN  # (string, row)
    closing = logits[..., CLOSE:]  # (string, row, kind)
    mass = np.exp(closing - closing.max(-1, keepdims=True))
    right = np.take_along_axis(mass, np.maximum(kind, 0)[..., None], 2)[..., 0]  # (string, row)
    return (tops >= 0) & (right / mass.sum(-1) > CERTAIN)


@dataclass(frozen=True, order=True)
class Share:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2%} [{self.low:.2%}, {self.high:.2%}]"


def share(values: Bool[np.ndarray, "string row"], counted: Bool[np.ndarray, "string row"]) -> Share:
    """The share of counted rows, with Wilson's interval.

    Rows of one string are alike, so they are not as many trials as rows: the interval is that of
    as many independent rows as vary as much.
    """
    value = float(values[counted].mean())
    count = int(counted.sum())
    deviation = np.where(counted, values - value, 0).sum(1)  # (string,)
    variance = float((deviation**2).sum()) / count**2
    trials = len(values)
    if variance:
        trials = value * (1 - value) / variance
    low, high = wilson(value, max(1, round(min(trials, count))))
    return Share(value, low, high)


def wilson(value: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of ``count`` trials.

    >>> [round(end, 3) for end in wilson(0.5, 100)]
    [0.404, 0.596]
    """
    shrink = 1 + NORMAL**2 / count
    middle = (value + NORMAL**2 / (2 * count)) / shrink
    half = NORMAL / shrink * sqrt(value * (1 - value) / count + NORMAL**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def controls(tokens: Int[np.ndarray, "string row"]) -> dict[str, float]:
    """How often a row would hit that knows nothing of brackets.

    One looks anywhere, one at the token before, one at itself.
    """
    tops = stack_tops(tokens)  # (string, row)
    rows = np.arange(tokens.shape[1])
    looks = {
        "anywhere": np.broadcast_to(1 / (rows + 1), tops.shape),
        "token before": tops == rows - 1,
        "itself": tops == rows,
    }
    return {name: float(hit[tops >= 0].mean()) for name, hit in looks.items()}


# ---------------------------------------------------------------------- the lab


def run(book: Notebook) -> None:
    """Train the models, measure them, and write down what holds."""
    total, batch = FULL
    names = FULL_MODELS
    held_count, long_count = 1000, 100
    if book.quick:
        total, batch = QUICK
        names = QUICK_MODELS
        held_count, long_count = 300, 40

    # data: what is held out was never trained on
    rng = np.random.default_rng([book.seed, 7])
    trained_on = strings(total * batch, LENGTH, rng)  # (string, place)
    batches = list(trained_on.reshape(total, batch, LENGTH))  # step × (string, place)
    seen = {string.tobytes() for string in trained_on}
    drawn = strings(held_count, LENGTH, rng)
    held = np.stack([string for string in drawn if string.tobytes() not in seen])
    long = strings(long_count, LONG, rng)

    # training
    models = {}
    for name in names:
        variant, seed = name[0], int(name[1])
        tracked = book.track(batches, f"training {name}, {VARIANTS[variant]}, step")
        models[name] = train(tracked, total, variant, book.seed + seed)

    # measurements, a share for each model
    readings = [read(model, held) for model in models.values()]
    distant_readings = [read(model, long) for model in models.values()]
    closing = [share(r.correct, r.counted) for r in readings]
    distant = [share(r.correct, r.counted) for r in distant_readings]
    hits = [share(r.hit[:, -1], r.counted) for r in readings]
    late = [share(r.hit[:, -1], r.after_close) for r in readings]
    chance = controls(begun(held)[:, :-1].numpy())
    bayes = bayes_entropy(LENGTH)

    book.head("The task")
    book.say(
        "A string of round and square brackets, at most four open at once. A model reads a prefix "
        "and gives the next symbol its probability. The only closing bracket that may follow is "
        "the partner of the last unmatched open one. A row counts if there is one; the model "
        "closes right if the partner has over 80 % of the probability of all closing brackets."
    )
    book.say(
        f"The models are transformers of {LAYERS} layers with one head, {WIDTH} wide, with frozen "
        "one-hot tokens. Models p also read their position, models z do not. Each is trained on "
        f"the same {total * batch:,} strings of length {LENGTH}, once, in the same order: models "
        "of one kind differ only in the weights they begin with."
    )

    book.head("Where they look")
    drawn_models = sorted({names[0], names[-1]}, reverse=True)
    book.figure(
        "dyck-attention",
        draw_attention({name: models[name] for name in drawn_models}, held[:1]),
        "Attention of the last layer on one held-out string: rows look, columns are looked "
        "at. Boxes mark the bracket that is to be closed in each row.",
    )

    book.head("How often")
    series = [
        ("closes right", PURPLE, closing),
        ("looks at the bracket", BLUE, hits),
        ("… after a closing bracket", PALE, late),
    ]
    book.figure(
        "dyck-shares",
        draw_shares(names, series, chance),
        "How often models close right, and how often they look at the bracket to be closed; "
        "held-out strings, 95 % intervals. The controls are fixed rules that know nothing of "
        "brackets.",
    )
    rows = []
    for i, (name, reading) in enumerate(zip(names, readings, strict=True)):
        first_layer = share(reading.hit[:, 0], reading.counted)
        last_mass = float(reading.mass[:, -1][reading.counted].mean())
        shares = (str(closing[i]), str(hits[i]), str(late[i]), str(first_layer))
        rows.append((name, *shares, last_mass, reading.loss, str(distant[i])))
    book.table(
        "dyck-models",
        (
            "model",
            "closes right",
            "looks there",
            "after a closing bracket",
            "layer 1 looks there",
            "attention there",
            "loss",
            f"length {LONG}",
        ),
        rows,
        "Each model's accuracy and attention, with 95 % intervals in brackets. The loss is in "
        f"nats; the best possible is {bayes:.4f}. The last column is the closing accuracy at "
        f"length {LONG}.",
    )
    book.table(
        "dyck-controls",
        ("a row that looks", "hits"),
        chance.items(),
        "How often a fixed rule looks at the bracket to be closed. Attention that is spread "
        "evenly puts the share of “anywhere” on it.",
    )
    book.say(
        "Two kinds of rows are averaged. After an open bracket the bracket to be closed is the row "
        "itself, and a row that always looks at itself hits. After a closing one it is further "
        "back, but never the token before, which has just been closed or is a closing one; there "
        f"{in_rows([share.value for share in late])}."
    )

    # claims
    needed = 0.8 if book.quick else 0.99
    worst_closing = min(closing)
    most_hits = max(hits)
    book.claim(
        f"Every model closes over {needed:.0%} of the rows right",
        f"at least {worst_closing}",
        worst_closing.value > needed,
    )
    blind = 0
    for closes, looks in zip(closing, hits, strict=True):
        blind += closes.value > needed and looks.high < 0.5
    book.claim(
        "A model can do so and look at the bracket to be closed in under half of the rows",
        f"{blind} of {len(names)} do",
        blind > 0,
    )
    book.claim(
        "Every model looks there in under half of the rows",
        f"at most {most_hits}",
        most_hits.high < 0.5,
    )
    itself = chance["itself"]
    book.claim(
        "A row that always looks at itself hits it more often",
        f"{itself:.1%}, models at most {most_hits}",
        most_hits.high < itself,
    )
    if book.quick:
        return  # a quick run ends far from the best loss

    worst_loss = max(r.loss for r in readings)
    book.claim(
        "Every loss is within 0.02 nats of the best possible",
        f"at most {worst_loss:.4f}, best {bayes:.4f}",
        worst_loss - bayes < 0.02,
    )
    fewest_hits = min(hits)
    book.claim(
        "They look there unequally often: shares differ by over 10 points",
        f"{fewest_hits} and {most_hits}",
        most_hits.value - fewest_hits.value > 0.1,
    )
    best_distant = max(distant)
    book.claim(
        f"At length {LONG} every model closes worse",
        f"at most {best_distant}, at length {LENGTH} at least {worst_closing}",
        best_distant.high < worst_closing.low,
    )


def in_rows(shares: Sequence[float]) -> str:
    """How many rows the models hit, as the end of a sentence.

    >>> in_rows([0.161, 0.158, 0.24]), in_rows([0.161])
    ('the models hit in 16 to 24 % of the rows', 'the model hits in 16 % of the rows')
    """
    if len(shares) == 1:
        return f"the model hits in {100 * shares[0]:.0f} % of the rows"
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"the models hit in {low if low == high else f'{low} to {high}'} % of the rows"


# ---------------------------------------------------------------------- figures


def draw_attention(models: dict[str, Transformer], data: Int[np.ndarray, "1 place"]) -> Any:
    """Attention of the last layer on one string, with a box at the bracket to be closed.

    The box is blue where the row looks there most, else orange.
    """
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    tokens = begun(data)[:, :-1].numpy()  # (1, row)
    tops = stack_tops(tokens)[0]  # (row,)
    labels = [SYMBOLS[token] for token in tokens[0]]

    figure, axes = plt.subplots(
        1,
        len(models),
        figsize=(5.2 * len(models) + 0.6, 5.6),
        layout="constrained",
        squeeze=False,
    )
    for ax, (name, model) in zip(axes[0], models.items(), strict=True):
        reading = read(model, data)
        hit = reading.hit[0, -1]  # (row,)
        ax.imshow(reading.attention[0, -1], cmap=drawing.ramp(), vmin=0, vmax=1)
        for row in np.flatnonzero(tops >= 0):
            colour = BLUE if hit[row] else ORANGE
            corner = (tops[row] - 0.5, row - 0.5)
            box = Rectangle(corner, 1, 1, fill=False, lw=1.6, ec=colour, clip_on=False)
            ax.add_patch(box)
        ax.set_xticks(range(len(labels)), labels, family="monospace")
        ax.set_yticks(range(len(labels)), labels, family="monospace")
        ax.set_title(
            f"{name}: of {reading.counted.sum()} rows {reading.correct.sum()} close right, "
            f"{reading.hit[:, -1].sum()} look at the bracket"
        )
        ax.set(xlabel="looked at", ylabel="last symbol read")
    figure.colorbar(
        axes[0, 0].images[0], ax=axes, fraction=0.03, pad=0.01, label="attention of the last layer"
    )
    figure.legend(
        handles=[
            Patch(fill=False, ec=BLUE, label="bracket to be closed, largest of its row"),
            Patch(fill=False, ec=ORANGE, label="bracket to be closed, not largest"),
        ],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure


def draw_shares(
    names: list[str], series: list[tuple[str, str, list[Share]]], chance: dict[str, float]
) -> Any:
    """Bars of each model with intervals; on the right the rows that know nothing of brackets."""
    from matplotlib import pyplot as plt

    width = 1.9 + 0.95 * (len(names) + len(chance))
    figure, ax = plt.subplots(figsize=(width, 3.6), layout="constrained")
    at = np.arange(len(names))
    for i, (label, colour, shares) in enumerate(series):
        below = [s.value - s.low for s in shares]
        above = [s.high - s.value for s in shares]
        ax.bar(
            at + (i - 1) * 0.27,
            [s.value for s in shares],
            0.27,
            yerr=np.maximum(0, [below, above]),
            color=colour,
            label=label,
            capsize=2,
            ecolor=INK,
        )
    right = np.arange(len(chance)) + len(names) + 0.2
    bars = ax.bar(right, list(chance.values()), 0.5, color=GREY, label="controls")
    ax.bar_label(bars, [f"{value:.0%}" for value in chance.values()], padding=2)
    ax.axhline(0.5, color=INK, lw=0.7, ls=":")
    control_names = [name.replace(" ", "\n") for name in chance]
    ax.set_xticks([*at, *right], [*names, *control_names])
    ax.set(ylim=(0, 1.05), ylabel="share of rows with an open bracket")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure
