"""Models that close brackets almost perfectly, and whose attention seldom points at the bracket to be closed.

Bounded Dyck words: two kinds of brackets, at most four open at once. After a prefix, the only closing bracket allowed is the partner of the
last unmatched open one, so a reader expects attention to look there. Wen et al. (2023, arXiv:2312.01429) show that it need not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from whence.metrics.evidence import wilson
from whence.notebook.book import Notebook
from whence.views.drawing import GREY, INK, ramp

TITLE = "Brackets closed without looking at them"
SYMBOLS = (
    "^",
    "(",
    "[",
    ")",
    "]",
)  # ^ begins every string; kind k opens as 1 + k and closes as 3 + k
START, OPEN, CLOSE, KINDS, DEPTH = 0, 1, 3, 2, 4
LENGTH, LONG, MAX_LENGTH = 28, 200, 512  # MAX_LENGTH scales the position coordinate of variant 'p'
WIDTH, LAYERS, RATE = 50, 2, 3e-3
FULL, QUICK = (
    (1430, 100),
    (280, 40),
)  # steps and strings in each; 1430: the 40 epochs of Wen et al., here of new strings
CERTAIN = 0.8  # how much of the closing mass the right bracket must have
ORANGE, BLUE, PALE, PURPLE = "#f3841c", "#549cde", "#b9d4f0", "#7250b0"
VARIANTS = {"z": "without position", "p": "with position"}


def strings(count: int, length: int, rng: np.random.Generator) -> Int[np.ndarray, "string place"]:
    """Prefixes of bounded Dyck words, seldom balanced: open when empty, close when full, else either; kinds are equally likely."""
    tokens = np.empty((count, length), int)
    stack, depth, each = np.zeros((count, DEPTH), int), np.zeros(count, int), np.arange(count)
    for place in range(length):
        opens = (depth == 0) | ((depth < DEPTH) & (rng.random(count) < 0.5))
        kind = np.where(opens, rng.integers(KINDS, size=count), stack[each, depth - 1])
        tokens[:, place] = np.where(opens, OPEN, CLOSE) + kind
        stack[each[opens], depth[opens]] = kind[opens]
        depth += np.where(opens, 1, -1)
    return tokens


def stack_tops(tokens: Int[np.ndarray, "string place"]) -> Int[np.ndarray, "string place"]:
    """Where the last unmatched open bracket is after each place; -1 where every bracket is closed."""
    opens, closes = (tokens >= OPEN) & (tokens < CLOSE), tokens >= CLOSE
    depth = np.cumsum(opens.astype(int) - closes, axis=1)  # [string, place]
    tops, places = np.full(tokens.shape, -1), np.arange(tokens.shape[1])
    for level in range(
        1, DEPTH + 1
    ):  # the bracket to close is the latest one that led to the present depth
        latest = np.maximum.accumulate(np.where(opens & (depth == level), places, -1), axis=1)
        tops = np.where(depth == level, latest, tops)
    return tops


def bayes_entropy(length: int) -> float:
    """The mean entropy of the next token in nats, which no model can beat: the depth is a random walk between 0 and four."""
    entropy = np.array(
        [log(KINDS), *[log(2) + log(KINDS) / 2] * (DEPTH - 1), 0.0]
    )  # of the next token, at each depth
    walk = np.diag([1.0] + [0.5] * (DEPTH - 1), 1) + np.diag(
        [0.5] * (DEPTH - 1) + [1.0], -1
    )  # [depth, next depth]
    return float(
        np.mean([(np.linalg.matrix_power(walk, place) @ entropy)[0] for place in range(length)])
    )


class Block(nn.Module):
    """One causal head without layer norm, then an MLP behind one; both add to the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(
        self, x: Float[Tensor, "batch place width"]
    ) -> tuple[Float[Tensor, "batch place width"], Float[Tensor, "batch query key"]]:
        """The stream after the block, and the attention."""
        query, key, value = self.qkv(x).chunk(3, -1)  # [batch, place, width] each
        future = torch.full((x.shape[1], x.shape[1]), -torch.inf).triu(1)  # [query, key]
        attention = (query @ key.mT / sqrt(WIDTH) + future).softmax(-1)  # [batch, query, key]
        x = x + self.out(attention @ value)  # [batch, place, width]
        return x + self.mlp(x), attention


class Transformer(nn.Module):
    """Frozen one-hot tokens whose last coordinate is the position or 0, the blocks, and a linear map to logits; no last layer norm."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.variant = variant
        self.one_hot = nn.Buffer(torch.eye(len(SYMBOLS), WIDTH))  # [token, width]
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
        x = self.one_hot[tokens]  # [batch, place, width]
        if self.variant == "p":
            x[..., -1] = torch.arange(tokens.shape[1]) / MAX_LENGTH
        attentions = []
        for block in self.blocks:
            x, attention = block(x)  # [batch, place, width], [batch, query, key]
            attentions += [attention]
        return self.head(x), torch.stack(attentions, 1)


def begun(tokens: Int[np.ndarray, "string place"]) -> Int[Tensor, "string place+1"]:
    """The strings behind the start symbol."""
    return torch.from_numpy(np.pad(tokens, ((0, 0), (1, 0)), constant_values=START))


def train(
    batches: Iterable[Int[np.ndarray, "batch place"]], total: int, variant: str, seed: int
) -> Transformer:
    """A model fitted by AdamW under a cosine schedule, each batch seen once; torch's random state and threads are left as found."""
    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # sums in one order: a seed gives the same model on any number of cores
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = Transformer(variant)
        optimiser = torch.optim.AdamW(model.parameters(), RATE, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, total)
        for batch in batches:
            tokens = begun(batch)  # [batch, place + 1]
            logits, _ = model(tokens[:, :-1])  # [batch, place, token]
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    finally:
        torch.set_num_threads(threads)
    return model.eval()


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model does with strings, by row; a row is what has been read so far, and counts while a bracket is open."""

    counted: Bool[np.ndarray, "string row"]
    after_close: Bool[np.ndarray, "string row"]  # and counted
    correct: Bool[np.ndarray, "string row"]
    hit: Bool[np.ndarray, "string layer row"]
    attention: Float[np.ndarray, "string layer row key"]
    mass: Float[np.ndarray, "string layer row"]
    loss: float


@dataclass(frozen=True, order=True)
class Share:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2%} [{self.low:.2%}, {self.high:.2%}]"


def closes_right(
    logits: Float[np.ndarray, "string row token"],
    tokens: Int[np.ndarray, "string row"],
    tops: Int[np.ndarray, "string row"],
) -> Bool[np.ndarray, "string row"]:
    """Whether the partner of the open bracket has over 80 % of the mass of all closing brackets; False where none is open."""
    kind = np.take_along_axis(tokens, np.maximum(tops, 0), 1) - OPEN  # [string, row]
    closing = np.exp(
        logits[..., CLOSE:] - logits[..., CLOSE:].max(-1, keepdims=True)
    )  # [string, row, kind]
    right = np.take_along_axis(closing, np.maximum(kind, 0)[..., None], 2)[..., 0]  # [string, row]
    return (tops >= 0) & (right / closing.sum(-1) > CERTAIN)


def read(model: Transformer, data: Int[np.ndarray, "string place"]) -> Reading:
    """Measure a model on strings that it has not seen."""
    target = begun(data)  # [string, place + 1]
    with torch.no_grad():
        logits, attention = model(target[:, :-1])  # [string, row, token], [string, layer, row, key]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()).item()
    tokens = target[:, :-1].numpy()  # [string, row]
    tops = stack_tops(tokens)
    counted, place = tops >= 0, np.maximum(tops, 0)
    mass = np.take_along_axis(attention.numpy(), place[:, None, :, None], -1)[
        ..., 0
    ]  # [string, layer, row]
    hit = (attention.argmax(-1).numpy() == tops[:, None]) & counted[:, None]
    return Reading(
        counted,
        counted & (tokens >= CLOSE),
        closes_right(logits.numpy(), tokens, tops),
        hit,
        attention.numpy(),
        mass,
        loss,
    )


def share(values: Bool[np.ndarray, "string row"], counted: Bool[np.ndarray, "string row"]) -> Share:
    """The share of counted rows, with Wilson's interval for as many independent rows as vary as much: those of one string are alike."""
    value, count = float(values[counted].mean()), int(counted.sum())
    variance = float((np.where(counted, values - value, 0).sum(1) ** 2).sum()) / count**2
    trials = value * (1 - value) / variance if variance else len(values)
    return Share(value, *wilson(value, max(1, round(min(trials, count)))))


def controls(tokens: Int[np.ndarray, "string row"]) -> dict[str, float]:
    """How often a row would hit that knows nothing of brackets: one that looks anywhere, at the token before, or at itself."""
    tops, rows = stack_tops(tokens), np.arange(tokens.shape[1])
    looks = {
        "anywhere": 1 / (rows + 1) + 0 * tops,
        "token before": tops == rows - 1,
        "itself": tops == rows,
    }  # [string, row]
    return {name: float(hit[tops >= 0].mean()) for name, hit in looks.items()}


def draw_attention(
    models: dict[str, Transformer], names: list[str], data: Int[np.ndarray, "1 place"]
) -> Any:
    """Attention of the last layer; a box at the bracket to be closed, blue where the row looks there most, else orange."""
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    figure, axes = plt.subplots(
        1, len(names), figsize=(5.2 * len(names) + 0.6, 5.6), layout="constrained", squeeze=False
    )
    tokens = begun(data)[:, :-1].numpy()  # [1, row]
    tops, labels = stack_tops(tokens)[0], [SYMBOLS[t] for t in tokens[0]]
    for ax, name in zip(axes[0], names, strict=True):
        r = read(models[name], data)
        ax.imshow(r.attention[0, -1], cmap=ramp(), vmin=0, vmax=1)
        for row in np.flatnonzero(tops >= 0):
            colour = BLUE if r.hit[0, -1, row] else ORANGE
            ax.add_patch(
                Rectangle(
                    (tops[row] - 0.5, row - 0.5), 1, 1, fill=False, lw=1.6, ec=colour, clip_on=False
                )
            )
        ax.set_xticks(range(len(labels)), labels, family="monospace")
        ax.set_yticks(range(len(labels)), labels, family="monospace")
        ax.set_title(
            f"{name}: of {r.counted.sum()} rows {r.correct.sum()} close right, {r.hit[:, -1].sum()} look at the bracket"
        )
        ax.set(xlabel="looked at", ylabel="last symbol read")
    figure.colorbar(
        axes[0, 0].images[0], ax=axes, fraction=0.03, pad=0.01, label="attention of the last layer"
    )
    boxes = [
        (BLUE, "bracket to be closed, largest of its row"),
        (ORANGE, "bracket to be closed, not largest"),
    ]
    figure.legend(
        handles=[Patch(fill=False, ec=c, label=t) for c, t in boxes],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure


def draw_shares(
    names: list[str], series: list[tuple[str, str, list[Share]]], chance: dict[str, float]
) -> Any:
    """Bars of each model with intervals; on the right what a row without knowledge of brackets would hit."""
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(
        figsize=(1.9 + 0.95 * (len(names) + len(chance)), 3.6), layout="constrained"
    )
    at, right = np.arange(len(names)), np.arange(len(chance)) + len(names) + 0.2
    for i, (label, colour, shares) in enumerate(series):
        error = np.maximum(
            0, [[s.value - s.low for s in shares], [s.high - s.value for s in shares]]
        )
        ax.bar(
            at + (i - 1) * 0.27,
            [s.value for s in shares],
            0.27,
            yerr=error,
            color=colour,
            label=label,
            capsize=2,
            ecolor=INK,
        )
    bars = ax.bar(right, list(chance.values()), 0.5, color=GREY, label="controls")
    ax.bar_label(bars, [f"{v:.0%}" for v in chance.values()], padding=2)
    ax.axhline(0.5, color=INK, lw=0.7, ls=":")
    ax.set_xticks([*at, *right], [*names, *(c.replace(" ", "\n") for c in chance)])
    ax.set(ylim=(0, 1.05), ylabel="share of rows with an open bracket")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def run(book: Notebook) -> None:
    """Train the models, measure them, and write down what holds."""
    (total, batch), names = (
        (QUICK, ["z0"]) if book.quick else (FULL, ["z0", "z1", "z2", "p0", "p1"])
    )  # variant and seed
    rng = np.random.default_rng([book.seed, 7])
    batches = list(
        strings(total * batch, LENGTH, rng).reshape(total, batch, LENGTH)
    )  # [step, batch, place]
    seen = {s.tobytes() for several in batches for s in several}
    held = np.stack(
        [s for s in strings(300 if book.quick else 1000, LENGTH, rng) if s.tobytes() not in seen]
    )  # [string, place]
    long = strings(40 if book.quick else 100, LONG, rng)  # [string, place]
    models = [
        train(
            book.track(batches, f"training {n}, {VARIANTS[n[0]]}, step"),
            total,
            n[0],
            book.seed + int(n[1]),
        )
        for n in names
    ]
    short, far = [read(m, held) for m in models], [read(m, long) for m in models]
    closing, distant = (
        [share(r.correct, r.counted) for r in readings] for readings in (short, far)
    )
    hits, late = (
        [share(r.hit[:, -1], r.counted) for r in short],
        [share(r.hit[:, -1], r.after_close) for r in short],
    )
    chance, bayes = controls(begun(held)[:, :-1].numpy()), bayes_entropy(LENGTH)

    book.head("The task")
    book.say(
        "A string of round and square brackets, at most four open at once. A model reads a prefix and gives the next symbol its "
        "probability. The only closing bracket that may follow is the partner of the last unmatched open one. A row counts if there is "
        "one; the model closes right if the partner has over 80 % of the probability of all closing brackets."
    )
    book.say(
        f"The models are transformers of {LAYERS} layers with one head, {WIDTH} wide, with frozen one-hot tokens. Models p also read their "
        f"position, models z do not. Each is trained on the same {total * batch:,} strings of length {LENGTH}, once, in the same order: "
        "models of one kind differ only in the weights they begin with."
    )
    book.head("Where they look")
    drawn = draw_attention(
        dict(zip(names, models, strict=True)), sorted({names[0], names[-1]}, reverse=True), held[:1]
    )
    book.figure(
        "dyck-attention",
        drawn,
        "Attention of the last layer on one held-out string. Boxes: the bracket to be closed in that row.",
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
        "Held-out strings, 95 % intervals. Controls know nothing of brackets.",
    )
    columns = (
        "model",
        "closes right",
        "looks there",
        "after a closing bracket",
        "layer 1 looks there",
        "attention there",
        "loss",
    )
    rows = [
        (
            n,
            str(c),
            str(h),
            str(a),
            str(share(r.hit[:, 0], r.counted)),
            float(r.mass[:, -1][r.counted].mean()),
            r.loss,
            str(d),
        )
        for n, c, h, a, r, d in zip(names, closing, hits, late, short, distant, strict=True)
    ]
    caption = f"Loss in nats; the best possible is {bayes:.4f}. The last column is the closing accuracy at length {LONG}."
    book.table("dyck-models", (*columns, f"length {LONG}"), rows, caption)
    book.table(
        "dyck-controls",
        ("a row that looks", "hits"),
        chance.items(),
        "An even row puts the share of 'anywhere' on the bracket.",
    )
    book.say(
        "Two kinds of rows are averaged. After an open bracket the bracket to be closed is the row itself, and a row that always looks at "
        "itself hits. After a closing one it is further back, but never the token before, which has just been closed or is a closing one; "
        f"there the models hit in {min(late).value:.0%} to {max(late).value:.0%} of the rows."
    )
    low, high, needed = min(closing), max(hits), 0.8 if book.quick else 0.99
    book.claim(
        f"Every model closes over {needed:.0%} of the rows right",
        f"at least {low}",
        low.value > needed,
    )
    under = sum(c.value > needed and h.high < 0.5 for c, h in zip(closing, hits, strict=True))
    book.claim(
        "A model can do so and look at the bracket to be closed in under half of the rows",
        f"{under} of {len(names)} do",
        under > 0,
    )
    book.claim(
        "Every model looks there in under half of the rows", f"at most {high}", high.high < 0.5
    )
    itself = chance["itself"]
    book.claim(
        "A row that always looks at itself hits it more often",
        f"{itself:.1%}, models at most {high}",
        high.high < itself,
    )
    if book.quick:  # which ends far from the best loss
        return
    worst, best, least = max(r.loss for r in short), max(distant), min(hits)
    book.claim(
        "Every loss is within 0.02 nats of the best possible",
        f"at most {worst:.4f}, best {bayes:.4f}",
        worst - bayes < 0.02,
    )
    book.claim(
        "They look there unequally often: shares differ by over 10 points",
        f"{least} and {high}",
        high.value - least.value > 0.1,
    )
    book.claim(
        f"At length {LONG} every model closes worse",
        f"at most {best}, at length {LENGTH} at least {low}",
        best.high < low.low,
    )
