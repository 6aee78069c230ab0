"""Self-attention step by step: three tokens by hand, the mask, two sequences, positions, the beginning of training, a real model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, log, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

import whence
from whence.core.aggregate import across_heads, across_layers
from whence.core.errors import SettingsError
from whence.core.heads import entropies
from whence.core.maps import Axis
from whence.notebook.book import Notebook
from whence.views.drawing import GREY, INK, bar_beside, label_axis, new_axes, plain, ramp, short

TITLE = "Self-attention, step by step"
X, W_KEY = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
W_QUERY, W_VALUE = (
    [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
    [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
)
UNSCALED = [[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]
SCALED = [[1.8639, 6.3194, 1.7042], [1.9991, 7.8141, 0.2735], [1.9926, 7.4796, 0.7359]]
SCORES, LAST_DIGIT = (
    [[2, 4, 4], [4, 16, 12], [4, 12, 10]],
    5e-5,
)  # the outputs above have four decimals
TOKENS, CONTEXT, VOCABULARY = torch.tensor([5, 0, 3, 3, 7, 9]), torch.tensor([1, 8, 2, 4]), 10
EMBEDDING, HEAD, EXACT = 16, 8, 1e-12
FLOW_WORDS = 24  # beyond, a maximum flow for each word takes too long for a lesson
ORANGE, BLUE, PURPLE = "#f3841c", "#549cde", "#7250b0"


def run(book: Notebook, words: str | None = None, base: float = 10000.0) -> None:
    """``words`` is your own sentence for the trained model; ``base`` is that of the positional encoding."""
    _by_hand(book)
    _masked_and_crossed(book)
    _permuted(book)
    _positions(book, base)
    _at_initialisation(book)
    _in_a_model(book, "the food is great but the service is not bad" if words is None else words)


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | float = 0.0, scale: bool = True
) -> tuple[Tensor, Tensor]:
    """The weights A = softmax(QKᵀ/√d + M), row by row, and the output AV."""
    scores = q @ k.mT / (sqrt(q.shape[-1]) if scale else 1.0)  # (…, query, key)
    weights = (scores + mask).softmax(-1)
    return weights, weights @ v


def causal_mask(length: int, strict: bool = False) -> Float[Tensor, "length length"]:
    """0 where a token may look, −∞ where it may not: at later tokens and, if ``strict``, at itself."""
    return torch.full((length, length), -inf, dtype=torch.float64).triu(0 if strict else 1)


def positional_encoding(
    length: int, width: int, base: float = 10000.0
) -> Float[Tensor, "length width"]:
    """sin(t/base^(2i/width)) in column 2i, the cosine in column 2i+1, both counted from 0 (Vaswani et al. 2017)."""
    if width % 2 or not 0 < base < inf:
        raise SettingsError(
            f"a positional encoding has an even width and a positive base such as 10000, not {width} and {base}."
        )
    frequency = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (width/2,)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency  # (length, width/2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def projected(tokens: Tensor, seed: int, placed: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a random head; tokens are ``placed`` by a positional encoding, or have no positions."""
    g = torch.Generator().manual_seed(seed)
    e = torch.randn(VOCABULARY, EMBEDDING, generator=g, dtype=torch.float64)[
        tokens
    ]  # (token, EMBEDDING)
    wq, wk, wv = torch.randn(3, EMBEDDING, HEAD, generator=g, dtype=torch.float64) / sqrt(EMBEDDING)
    e = e + positional_encoding(len(tokens), EMBEDDING) if placed else e
    return e @ wq, e @ wk, e @ wv


def _by_hand(book: Notebook) -> None:
    x, wk, wq, wv = (torch.tensor(m, dtype=torch.float64) for m in (X, W_KEY, W_QUERY, W_VALUE))
    k, q, v = x @ wk, x @ wq, x @ wv  # (token, 3)
    book.head("Three tokens: keys, queries, values")
    book.say(
        "A well-known example. A key is what a token (a row of X) offers, a query what it looks for, a value what it hands over."
    )
    rows = [
        [("X", x), "×", (f"W {n}", w), "=", (n, y)]
        for n, w, y in (("keys", wk, k), ("queries", wq, q), ("values", wv, v))
    ]
    book.figure("attention-projections", matrices(rows), "Each token is projected three times.")
    book.head("Scores: every query meets every key")
    scores = q @ k.T  # (query, key)
    book.say(
        "Row s, column t is a dot product: how well what token s looks for fits what token t offers."
    )
    book.figure(
        "attention-scores",
        matrices([[("queries", q), "×", ("keysᵀ", k.T), "=", ("scores", scores)]]),
        "Q Kᵀ.",
    )
    book.claim(
        "The scores are (2, 4, 4), (4, 16, 12), (4, 12, 10)",
        f"{scores.tolist()}",
        scores.tolist() == SCORES,
    )
    for name, scale, expected in (("unscaled", False, UNSCALED), ("scaled", True, SCALED)):
        a, out = attention(q, k, v, scale=scale)
        first = ("scores / √3", scores / sqrt(3)) if scale else ("scores", scores)
        book.head("The same, scores divided by √3" if scale else "Softmax, weighted values, output")
        book.say(
            "Dot products grow with d; √d undoes it."
            if scale
            else "Shares that sum to one, and the mean of the values by them."
        )
        one = [
            ("A₁ᵀ", a[:1].T),
            "·",
            ("values", v),
            "=",
            ("weighted values", a[:1].T * v),
            "Σ",
            ("output 1", out[:1]),
        ]
        drawn = matrices(
            [[first, "→", ("softmax A", a), "×", ("values", v), "=", ("output", out)], one]
        )
        book.figure(
            f"attention-{name}",
            drawn,
            "Above: all three tokens. Below: the output of the first, term by term.",
        )
        gap = (out - torch.tensor(expected, dtype=torch.float64)).abs().max().item()
        book.claim(
            f"The {name} outputs are {', '.join(map(str, expected))}",
            f"off by at most {gap:.1e}",
            gap < LAST_DIGIT,
        )
    halves = (v[1] + v[2]) / 2
    gap = (halves - attention(q, k, v, scale=False)[1][0]).abs().max().item()
    measured = f"{halves.tolist()}, up to {gap:.2f} away from the exact output"
    book.claim(
        "Weights rounded to (0, ½, ½) give the (2, 7, 1.5) that is often printed",
        measured,
        halves.tolist() == [2, 7, 1.5],
    )


def _masked_and_crossed(book: Notebook) -> None:
    x, mask = TOKENS, causal_mask(len(TOKENS))
    q, k, v = projected(x, book.seed)
    (free, _), (a, out), hidden = (
        attention(q, k, v),
        attention(q, k, v, mask),
        mask.isinf(),
    )  # a: (query, key), out: (query, HEAD)
    book.head("Attention and masked attention")
    book.say(
        f"Tokens of a vocabulary of {VOCABULARY}, random weights. Who writes must not see what comes next: −∞ is added to its scores."
    )
    shown = {"attention": free, "masked attention": a.masked_fill(hidden, torch.nan)}
    book.figure(
        "attention-masked",
        heat_maps(shown, x, x),
        "Rows look, columns are looked at; each row sums to one. Grey: hidden.",
    )
    book.claim(
        "Under the mask, the first token looks at itself alone",
        f"row 0 is {a[0].tolist()}",
        a[0].tolist() == [1.0] + [0.0] * 5,
    )
    same, moved = 0, 0
    for t in range(1, len(x)):
        other = projected(
            torch.where(torch.arange(len(x)) == t, (x + 1) % VOCABULARY, x), book.seed
        )
        b, b_out = attention(*other, mask)
        same += torch.equal(b[:t], a[:t]) and torch.equal(b_out[:t], out[:t])
        moved += not torch.equal(attention(*other)[0][:t], free[:t])
    measured = f"the same for {same} of 5 t with the mask; changed for {moved} of 5 without"
    book.claim(
        "Under the mask, changing token t leaves the rows before t as they are, to the last bit",
        measured,
        same == moved == 5,
    )
    gap = max(
        (attention(q[: s + 1], k[: s + 1], v[: s + 1])[0][s] - a[s, : s + 1]).abs().max().item()
        for s in range(len(x))
    )
    book.claim(
        "Row s of masked attention is attention on the first s + 1 tokens alone",
        f"off by at most {gap:.1e}",
        gap < EXACT,
    )
    book.head("Masks that go wrong")
    book.say(
        "The mask is added, not multiplied; the diagonal stays open; and open entries are 0, although any constant would do."
    )
    times = q @ k.T / sqrt(HEAD) * torch.where(hidden, -inf, 1.0)
    product_, strict = times.softmax(-1), attention(q, k, v, causal_mask(len(x), strict=True))[0]
    ones = attention(q, k, v, torch.where(hidden, mask, 1.0))[0]
    shown = {"multiplied by −∞": product_, "diagonal hidden too": strict, "open entries 1": ones}
    book.figure("attention-masks", heat_maps(shown, x, x), "Grey is NaN.")
    up, rows = int((times == inf).sum()), int(product_.isnan().any(-1).sum())
    measured = (
        f"{up} of {int(hidden.sum())} hidden scores became +∞; {rows} of {len(x)} rows have NaN"
    )
    book.claim(
        "A mask that is multiplied turns a negative score into +∞ and its row into NaN",
        measured,
        up > 0 and rows > 0,
    )
    nan = strict.isnan().any(-1).nonzero().flatten().tolist()
    book.claim(
        "A mask that hides the diagonal too makes row 0 NaN", f"rows of NaN: {nan}", nan == [0]
    )
    gap = (ones - a).abs().max().item()
    book.claim(
        "1 instead of 0 in the open entries changes nothing",
        f"off by at most {gap:.1e}",
        gap < EXACT,
    )
    book.head("Cross attention")
    book.say(
        "Queries from one sequence (what a translator has written so far), keys and values from another (what it translates)."
    )
    (q, _, _), (_, k, v) = projected(TOKENS, book.seed), projected(CONTEXT, book.seed)
    a, out = attention(q, k, v)  # (6, 4), (6, HEAD)
    book.figure(
        "attention-cross",
        heat_maps({"cross attention": a}, TOKENS, CONTEXT),
        "The first sequence looks at the second.",
    )
    gap = (attention(q, k.flip(0), v.flip(0))[1] - out).abs().max().item()
    book.claim(
        "The order of keys and values is nothing to the output",
        f"backwards, it is off by at most {gap:.1e}",
        gap < EXACT,
    )


def _permuted(book: Notebook) -> None:
    x, g = TOKENS, torch.Generator().manual_seed(book.seed)
    kinds = {
        "no positions": (False, 0.0),
        "positions": (True, 0.0),
        "no positions, causal mask": (False, causal_mask(len(x))),
    }
    orders = [torch.randperm(len(x), generator=g) for _ in range(100)]

    def both(p: Tensor, placed: bool, mask: Tensor | float) -> tuple[Tensor, Tensor]:
        return attention(*projected(x, book.seed, placed), mask)[1][p], attention(
            *projected(x[p], book.seed, placed), mask
        )[1]

    gaps = {
        n: max((b - a).abs().max().item() for a, b in (both(p, *kind) for p in orders))
        for n, kind in kinds.items()
    }
    book.head("Without positions, a sequence is a set")
    book.say(
        "Attend, then shuffle the outputs; or shuffle the tokens, then attend. If it is the same, attention is equivariant."
    )
    pairs = {n: both(orders[0], *kinds[n]) for n in list(kinds)[:2]}
    shown = {
        f"{n}:\n{how}": m
        for n, pair in pairs.items()
        for how, m in zip(("attend, shuffle", "shuffle, attend"), pair, strict=True)
    }
    drawn = heat_maps(shown, x[orders[0]], torch.arange(HEAD), numbers=False)
    book.figure("attention-permuted", drawn, "Outputs: a row for each of the shuffled tokens.")
    none, some, causal = gaps.values()
    book.claim(
        "Without positions attention is permutation equivariant",
        f"off by at most {none:.1e}",
        none < EXACT,
    )
    book.claim("With positions it is not", f"off by up to {some:.2f}", some > 0.01)
    book.claim(
        "With a causal mask it is not, even without positions",
        f"off by up to {causal:.2f}",
        causal > 0.01,
    )


def _positions(book: Notebook, base: float) -> None:
    pe = positional_encoding(64, 64, base)
    book.head("Positional encoding")
    book.say(
        f"Position t becomes 64 numbers: sines and cosines of t, from fast to slow. The base, here {base:g}, sets the slowest."
    )
    ax = new_axes(None, 5.0, 3.2)
    bar_beside(ax, ax.imshow(pe.numpy(), cmap=ramp(diverging=True), vmin=-1, vmax=1), "")
    ax.set(xlabel="feature", ylabel="position")
    book.figure("attention-positions", ax, f"A row for each position, base {base:g}.")
    ax = new_axes(None, 6.0, 2.8)
    for b, colour in ((base / 100, BLUE), (base, PURPLE), (base * 100, ORANGE)):
        ax.plot(
            (positional_encoding(64, 64, b) @ positional_encoding(1, 64, b)[0]).numpy(),
            color=colour,
            label=f"base {b:g}",
        )
    ax.set(xlabel="distance between two positions", ylabel="dot product")
    ax.legend(frameon=False)
    book.figure(
        "attention-distances",
        ax,
        "Near positions are alike; the larger the base, the further this reaches.",
    )
    start = pe[0].tolist() == [0.0, 1.0] * 32 and abs(pe[1, 0].item() - 0.8414709848) < 1e-9
    book.claim(
        "PE[0] = (0, 1, 0, 1, …) and PE[1, 0] = sin 1",
        f"{pe[0, :4].tolist()} …, {pe[1, 0]:.5f}",
        start,
    )
    spread = max((d.max() - d.min()).item() for d in ((pe @ pe.T).diagonal(n) for n in range(64)))
    book.claim(
        "The dot product of two positions depends on their distance alone",
        f"differs by {spread:.1e} of 32",
        spread < 1e-10,
    )


def _at_initialisation(book: Notebook) -> None:
    length, width, draws = (64, 64, 4) if book.quick else (128, 64, 16)
    sigmas = (0.01, 0.02, 0.04, 0.06, 0.09, 0.125, 0.18, 0.25, 0.35, 0.5)
    g = torch.Generator().manual_seed(book.seed)
    e = torch.randn(
        draws, length, width, generator=g, dtype=torch.float64
    )  # (draw, token, feature)
    wq, wk = torch.randn(2, draws, width, width, generator=g, dtype=torch.float64)
    rows = []
    for sigma in book.track(sigmas, "entropy, scale"):
        maps = (
            attention(sigma * e @ wq, sigma * e @ wk, e, scale=scale)[0] for scale in (True, False)
        )
        rows.append((sigma, *(float(entropies(a.numpy()).mean()) / log(length) for a in maps)))
    _, scaled, raw = zip(*rows, strict=True)
    book.head("At initialisation")
    book.say(
        f"{length} random tokens of {width} features; the weights of queries and keys have standard deviation σ."
    )
    ax = new_axes(None, 6.0, 3.4)
    ax.plot(sigmas, scaled, "o-", ms=4, color=PURPLE, label="scores / √d")
    ax.plot(sigmas, raw, "o-", ms=4, color=ORANGE, label="scores as they are")
    ax.axvline(1 / sqrt(width), color=GREY, lw=1, ls=":", label="σ = 1/√d")
    ax.set(xscale="log", xlabel="σ", ylabel="mean row entropy / ln T", ylim=(0, 1.05))
    ax.legend(frameon=False, loc="lower left")
    book.figure(
        "attention-entropy",
        ax,
        "1: every token gets the same attention. 0: one token gets all of it.",
    )
    book.table(
        "attention-entropies", ("σ", "with 1/√d", "without"), rows, "Mean row entropy over ln T."
    )
    book.claim(
        "Small weights (σ = 0.02) attend to all tokens alike",
        f"entropy {scaled[1]:.4f} of ln {length}",
        0.97 < scaled[1] <= 1,
    )
    falls = list(scaled) == sorted(scaled, reverse=True) and list(raw) == sorted(raw, reverse=True)
    measured = f"at σ = 1/√d {scaled[5]:.2f} of ln T with 1/√d, {raw[5]:.2f} without"
    book.claim(
        "Entropy falls with σ, and faster without 1/√d",
        measured,
        falls and all(a > b for a, b in zip(scaled, raw, strict=True)),
    )


def _in_a_model(book: Notebook, words: str) -> None:
    book.tell("the sentiment model")
    model = whence.load("sentiment")
    weights, axis = (
        (maps := whence.attend(model, words)).weights["encoder"],
        maps.to_axis["encoder"],
    )  # (layer, head, from, to)
    book.head("Heads of a trained model")
    book.say(f"The bundled sentiment model reads “{words}”. These are the heads of its last layer.")
    shown = {f"head {i}": torch.from_numpy(m) for i, m in enumerate(weights[-1])}
    book.figure(
        "attention-heads",
        heat_maps(shown, axis, axis, numbers=False),
        "Grey words are special tokens.",
    )
    names = [
        "attention-mean",
        "attention-max",
        "rollout",
        "generic-attention",
        "transformer-attribution",
        "occlusion",
    ]
    names += ["flow"] if (~axis.special).sum() <= FLOW_WORDS else []
    found = whence.compare(model, words, names, evidence=False, seed=book.seed)
    labels, means = found.first.names, across_heads(weights, "mean")  # (layer, from, to)
    rows = {
        "mean, first layer": means[0, 0, ~axis.special],
        "A₁A₂…, no residual": across_layers(means[::-1], "product")[0, ~axis.special],
    }
    rows |= {n: abs(found[n].scores) for n in names}
    book.head("One number a word: methods")
    book.say(
        f"The model says {found.first.target.label}. Attention gives many answers to why; occlusion removes each word."
    )
    book.figure(
        "attention-methods",
        word_rows(rows, labels),
        "Each row by its own largest value; of occlusion the size.",
    )
    top = {n: labels[int(r.argmax())] for n, r in rows.items()}
    book.table(
        "attention-strongest",
        ("method", "strongest word"),
        top.items(),
        "The word that each method puts first.",
    )
    others = [word for n, word in top.items() if n != "occlusion"]
    many, hits = len(set(others)), others.count(top["occlusion"])
    book.claim(
        "Ways of reading attention do not agree on the strongest word",
        f"{many} words from {len(others)} methods",
        many > 1,
    )
    book.claim(
        "Attention may miss the word that matters most",
        f"{top['occlusion']!r}: {hits} of {len(others)}",
        hits < len(others),
    )
    book.head("One number a word: layers × heads × rows and columns")
    book.say(
        "Bring layers and heads together, then read the row of [CLS] (from), its column (to), or the column of each word."
    )
    reads = {
        "from": lambda m: m[0],
        "to": lambda m: m[:, 0],
        "column mean": lambda m: m.mean(0),
        "column max": lambda m: m.max(0),
    }
    choices = product(reads, ("mean", "max", "product"), ("mean", "max"))
    scheme = {
        f"{r}; layers {y}, heads {h}": reads[r](maps.aggregate(y, h))[~axis.special]
        for r, y, h in choices
    }
    book.figure(
        "attention-schemes",
        word_rows(scheme, labels),
        "After Mylonas et al. 2023. Sums are means times a constant.",
    )
    clear = [
        labels[int(s.argmax())] for s in scheme.values() if np.sort(s)[-2] < 0.95 * s.max()
    ]  # a lead of 5 % or more
    told = f"{len(set(clear))} words from the {len(clear)} of {len(scheme)} schemes that are clear"
    book.claim(
        "The choice of aggregation decides which word is strongest", told, len(set(clear)) > 1
    )


def matrices(rows: Sequence[Sequence[tuple[str, Tensor] | str]]) -> Any:
    """Matrices with their numbers in the cells, and the signs between them."""
    wide = max(sum(1 if isinstance(m, str) else m[1].shape[1] for m in row) for row in rows)
    high = [max(len(m[1]) for m in row if not isinstance(m, str)) for row in rows]
    ax = new_axes(None, 0.6 * wide, 0.45 * (sum(high) + len(rows)))
    ax.set(
        frame_on=False,
        xticks=[],
        yticks=[],
        xlim=(-0.1, wide + 0.1),
        ylim=(sum(high) + len(rows) + 0.1, -0.1),
    )
    for r, row in enumerate(rows):
        x, top = 0, sum(high[:r]) + r + 0.9
        for item in row:
            name, m = (item, torch.zeros(0, 1)) if isinstance(item, str) else item
            y = top + (high[r] - len(m)) / 2
            ax.text(
                x + (0 if len(m) else 0.3),
                y - (0.12 if len(m) else -0.15),
                name,
                fontsize=9 if len(m) else 14,
            )
            if len(m):
                ax.pcolormesh(
                    range(x, x + m.shape[1] + 1),
                    y + np.arange(len(m) + 1),
                    m.numpy(),
                    cmap=ramp(),
                    vmin=0,
                    ec=GREY,
                    lw=0.5,
                )
            for i, j in product(*map(range, m.shape)):
                number, colour = (
                    f"{m[i, j]:.{0 if m.equal(m.round()) else 2}f}",
                    "white" if m[i, j] > 0.6 * m.max() else INK,
                )
                ax.text(x + j + 0.5, y + i + 0.5, number, ha="center", va="center", color=colour)
            x += m.shape[1]
    return ax


def heat_maps(
    shown: dict[str, Tensor], looks: Axis | Tensor, seen: Axis | Tensor, numbers: bool = True
) -> Any:
    """Maps in rows of four, on one scale of colours; what is missing is grey."""
    from matplotlib import pyplot as plt

    wide, high, every = (
        min(len(shown), 4),
        -(-len(shown) // 4),
        torch.stack(list(shown.values())).nan_to_num(),
    )
    looks, seen = (
        n if isinstance(n, Axis) else Axis(tuple(map(str, n.tolist())), (n < 0).numpy(), n.numpy())
        for n in (looks, seen)
    )
    low, most = every.min().item(), every.abs().max().item()
    fig, axes = plt.subplots(
        high,
        wide,
        figsize=(2.6 * wide + 0.4, 2.5 * high + 0.7),
        layout="constrained",
        squeeze=False,
    )
    for i, (ax, (name, m)) in enumerate(zip(axes.flat, shown.items(), strict=True)):
        ax.imshow(m.numpy(), cmap=ramp(diverging=low < 0), vmin=-most if low < 0 else 0, vmax=most)
        ax.set(title=name, xticks=[], yticks=[])
        for side, names, here in (("x", seen, i >= len(shown) - wide), ("y", looks, i % wide == 0)):
            if here or numbers:
                label_axis(ax, side, names, turned=not numbers)
        for r, c in product(*map(range, m.shape)) if numbers else ():
            number, colour = (
                "" if m[r, c].isnan() else f"{m[r, c]:.2f}",
                "white" if m[r, c] > 0.5 * most else INK,
            )
            ax.text(c, r, number, ha="center", va="center", fontsize=7, color=colour)
    fig.draw_without_rendering()
    fig.set_layout_engine("none")  # found once, not again for each format
    return fig


def word_rows(rows: dict[str, Any], words: Sequence[str]) -> Any:
    """Words as columns, each row coloured by its own largest value."""
    ax = new_axes(None, min(3 + 0.6 * len(words), 14.0), 0.9 + 0.26 * len(rows))
    ax.pcolormesh(
        np.stack([r / max(r.max(), 1e-12) for r in rows.values()]),
        cmap=ramp(),
        vmin=0,
        vmax=1.2,
        ec="white",
        lw=1,
    )
    (names, style), step = (
        plain([short(w) for w in words]),
        -(-len(words) // 50),
    )  # more would lie on one another
    ax.set_xticks(
        np.arange(0, len(words), step) + 0.5,
        names[::step],
        rotation=40,
        ha="left",
        rotation_mode="anchor",
        **style,
    )
    ax.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    ax.tick_params(length=0, bottom=False, labelbottom=False, labeltop=True)
    ax.set(ylim=(len(rows), 0), frame_on=False)
    return ax
