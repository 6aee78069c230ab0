"""Self-attention step by step: three tokens by hand, the mask, two sequences, positions,
the beginning of training, a real model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import inf, log, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

import whence
from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, INK, ORANGE, PURPLE

TITLE = "Self-attention, step by step"

# ---------------------------------------------------------------------- settings

# A well-known worked example: three tokens of four features, and three matrices of weights.
X = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
W_KEY = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
W_QUERY = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
W_VALUE = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]

# What comes out of it. The outputs are given with four decimals.
SCORES = [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
UNSCALED = [[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]
SCALED = [[1.8639, 6.3194, 1.7042], [1.9991, 7.8141, 0.2735], [1.9926, 7.4796, 0.7359]]
LAST_DIGIT = 5e-5

# Random heads on random tokens, in double precision.
VOCABULARY = 10
TOKENS = torch.tensor([5, 0, 3, 3, 7, 9])
CONTEXT = torch.tensor([1, 8, 2, 4])
EMBEDDING = 16
HEAD = 8
EXACT = 1e-12

SENTENCE = "the food is great but the service is not bad"
FLOW_WORDS = 24  # beyond, a maximum flow for each word takes too long for a lesson


def run(book: Notebook, words: str | None = None, base: float = 10000.0) -> None:
    """``words``: your sentence for the trained model; ``base``: that of the positional encoding."""
    if words is None:
        words = SENTENCE

    _by_hand(book)
    _masked(book)
    _masks_that_go_wrong(book)
    _crossed(book)
    _permuted(book)
    _positions(book, base)
    _at_initialisation(book)
    _in_a_model(book, words)


# ---------------------------------------------------------------------- attention itself


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | float = 0.0, scale: bool = True
) -> tuple[Tensor, Tensor]:
    """The weights A = softmax(QKᵀ/√d + M), row by row, and the output AV."""
    scores = q @ k.mT  # (…, query, key)
    if scale:
        scores = scores / sqrt(q.shape[-1])
    weights = (scores + mask).softmax(-1)  # (…, query, key)
    return weights, weights @ v


def causal_mask(length: int, strict: bool = False) -> Float[Tensor, "length length"]:
    """0 where a token may look, −∞ at later tokens and, if ``strict``, at the token itself."""
    first_hidden = 0 if strict else 1  # the diagonal above which entries are hidden
    hidden = torch.full((length, length), -inf, dtype=torch.float64)
    return hidden.triu(first_hidden)


def positional_encoding(
    length: int, width: int, base: float = 10000.0
) -> Float[Tensor, "length width"]:
    """sin(t/base^(2i/width)) in column 2i, the cosine in column 2i + 1 (Vaswani et al. 2017).

    Positions t and pairs of columns i are counted from 0.
    """
    if width % 2 or not 0 < base < inf:
        raise whence.SettingsError(
            "a positional encoding has an even width and a positive base such as 10000, "
            f"not {width} and {base}."
        )
    position = torch.arange(length, dtype=torch.float64)  # (length,)
    frequency = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (width/2,)
    angle = position[:, None] * frequency  # (length, width/2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)  # (length, width)


def projected(tokens: Tensor, seed: int, placed: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a random head, each (token, HEAD).

    Tokens are ``placed`` by a positional encoding, or have no positions.
    """
    g = torch.Generator().manual_seed(seed)
    table = torch.randn(VOCABULARY, EMBEDDING, generator=g, dtype=torch.float64)
    weights = torch.randn(3, EMBEDDING, HEAD, generator=g, dtype=torch.float64) / sqrt(EMBEDDING)

    e = table[tokens]  # (token, EMBEDDING)
    if placed:
        e = e + positional_encoding(len(tokens), EMBEDDING)
    wq, wk, wv = weights
    return e @ wq, e @ wk, e @ wv


def largest(difference: Tensor) -> float:
    """The largest entry of a difference, whatever its sign."""
    return difference.abs().max().item()


# ---------------------------------------------------------------------- three tokens by hand


def _by_hand(book: Notebook) -> None:
    x = torch.tensor(X, dtype=torch.float64)  # (token, feature)
    wk = torch.tensor(W_KEY, dtype=torch.float64)  # (feature, 3)
    wq = torch.tensor(W_QUERY, dtype=torch.float64)
    wv = torch.tensor(W_VALUE, dtype=torch.float64)
    k = x @ wk  # (token, 3)
    q = x @ wq
    v = x @ wv

    book.head("Three tokens: keys, queries, values")
    book.say(
        "A well-known example by hand. Each token is a row of X. A key is what a token "
        "offers, a query what it looks for, a value what it hands over."
    )
    rows = []
    for name, weights, projection in (("keys", wk, k), ("queries", wq, q), ("values", wv, v)):
        rows.append([("X", x), "×", (f"W {name}", weights), "=", (name, projection)])
    book.figure("attention-projections", matrices(rows), "Each token is projected three times.")

    book.head("Scores: every query meets every key")
    book.say(
        "Row s, column t is a dot product: how well what token s looks for fits what token t "
        "offers."
    )
    scores = q @ k.T  # (query, key)
    row = [("queries", q), "×", ("keysᵀ", k.T), "=", ("scores", scores)]
    book.figure(
        "attention-scores", matrices([row]), "The scores Q Kᵀ: rows are queries, columns are keys."
    )
    book.claim(
        "The scores are (2, 4, 4), (4, 16, 12), (4, 12, 10)",
        f"{scores.tolist()}",
        scores.tolist() == SCORES,
    )

    book.head("Softmax, weighted values, output")
    book.say(
        "Softmax turns each row of scores into shares that sum to one. The output of a token "
        "is the mean of all values, weighted by these shares."
    )
    _softmax_step(book, "unscaled", ("scores", scores), q, k, v, UNSCALED)

    book.head("The same, scores divided by √3")
    book.say(
        "Dot products grow with the number of dimensions d, and large scores make softmax "
        "pick one token alone. Dividing by √d undoes it."
    )
    _softmax_step(book, "scaled", ("scores / √3", scores / sqrt(3)), q, k, v, SCALED)

    halves = (v[1] + v[2]) / 2  # the weights (0, ½, ½)
    _, exact = attention(q, k, v, scale=False)
    gap = largest(halves - exact[0])
    book.claim(
        "Weights rounded to (0, ½, ½) give the (2, 7, 1.5) that is often printed",
        f"{halves.tolist()}, up to {gap:.2f} away from the exact output",
        halves.tolist() == [2, 7, 1.5],
    )


def _softmax_step(
    book: Notebook,
    name: str,
    scores: tuple[str, Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    expected: list[list[float]],
) -> None:
    """From scores to outputs, drawn for all tokens and term by term for the first."""
    a, out = attention(q, k, v, scale=name == "scaled")  # (query, key), (query, 3)
    every_token = [scores, "→", ("softmax A", a), "×", ("values", v), "=", ("output", out)]
    weights = a[:1].T  # (key, 1): how much the first token takes of each
    first_token = [
        ("A₁ᵀ", weights),
        "·",
        ("values", v),
        "=",
        ("weighted values", weights * v),
        "Σ",
        ("output 1", out[:1]),
    ]
    book.figure(
        f"attention-{name}",
        matrices([every_token, first_token]),
        "Above: all three tokens. Below: the output of the first, term by term.",
    )
    gap = largest(out - torch.tensor(expected, dtype=torch.float64))
    book.claim(
        f"The {name} outputs are {', '.join(map(str, expected))}",
        f"off by at most {gap:.1e}",
        gap < LAST_DIGIT,
    )


# ---------------------------------------------------------------------- masks, and two sequences


def _masked(book: Notebook) -> None:
    x = TOKENS
    mask = causal_mask(len(x))  # (query, key)
    q, k, v = projected(x, book.seed)
    free, _ = attention(q, k, v)  # (query, key)
    a, out = attention(q, k, v, mask)  # (query, key), (query, HEAD)

    book.head("Attention and masked attention")
    book.say(
        f"Random tokens of a vocabulary of {VOCABULARY}, random weights. A model that writes "
        "must not see what comes next: −∞ is added to those scores, so that their share is "
        "zero."
    )
    maps = {"attention": free, "masked attention": a.masked_fill(mask.isinf(), torch.nan)}
    book.figure(
        "attention-masked",
        heat_maps(maps, digits(x), digits(x)),
        "Rows look, columns are looked at; each row sums to one. Grey: hidden.",
    )
    book.claim(
        "Under the mask, the first token looks at itself alone",
        f"row 0 is {a[0].tolist()}",
        a[0].tolist() == [1.0] + [0.0] * 5,
    )

    same = 0  # with the mask, rows before the change stay
    moved = 0  # without it, they do not
    for t in range(1, len(x)):
        changed = x.clone()
        changed[t] = (x[t] + 1) % VOCABULARY
        q_other, k_other, v_other = projected(changed, book.seed)
        a_other, out_other = attention(q_other, k_other, v_other, mask)
        free_other, _ = attention(q_other, k_other, v_other)
        same += torch.equal(a_other[:t], a[:t]) and torch.equal(out_other[:t], out[:t])
        moved += not torch.equal(free_other[:t], free[:t])
    book.claim(
        "Under the mask, changing token t leaves the rows before t as they are, to the last bit",
        f"the same for {same} of 5 t with the mask; changed for {moved} of 5 without",
        same == moved == 5,
    )

    gaps = []
    for s in range(len(x)):
        seen = s + 1
        alone, _ = attention(q[:seen], k[:seen], v[:seen])  # (seen, seen)
        gaps.append(largest(alone[s] - a[s, :seen]))
    gap = max(gaps)
    book.claim(
        "Row s of masked attention is attention on the first s + 1 tokens alone",
        f"off by at most {gap:.1e}",
        gap < EXACT,
    )


def _masks_that_go_wrong(book: Notebook) -> None:
    x = TOKENS
    mask = causal_mask(len(x))  # (query, key)
    hidden = mask.isinf()
    q, k, v = projected(x, book.seed)
    right, _ = attention(q, k, v, mask)

    book.head("Masks that go wrong")
    book.say(
        "A mask is added, and not multiplied; its diagonal stays open; and its open entries are 0, "
        "although any constant would do. Here is what comes of each when it is done otherwise."
    )
    multiplied = q @ k.T / sqrt(HEAD) * torch.where(hidden, -inf, 1.0)  # (query, key) scores
    by_product = multiplied.softmax(-1)
    strict, _ = attention(q, k, v, causal_mask(len(x), strict=True))
    ones, _ = attention(q, k, v, torch.where(hidden, mask, 1.0))
    maps = {"multiplied by −∞": by_product, "diagonal hidden too": strict, "open entries 1": ones}
    book.figure(
        "attention-masks",
        heat_maps(maps, digits(x), digits(x)),
        "Three masks and the attention that they give. Grey is NaN: no number at all.",
    )

    raised = int((multiplied == inf).sum())
    broken = int(by_product.isnan().any(-1).sum())
    book.claim(
        "A mask that is multiplied turns a negative score into +∞ and its row into NaN",
        f"{raised} of {int(hidden.sum())} hidden scores became +∞; "
        f"{broken} of {len(x)} rows have NaN",
        raised > 0 and broken > 0,
    )
    empty = strict.isnan().any(-1).nonzero().flatten().tolist()
    book.claim(
        "A mask that hides the diagonal too makes row 0 NaN", f"rows of NaN: {empty}", empty == [0]
    )
    gap = largest(ones - right)
    book.claim(
        "1 instead of 0 in the open entries changes nothing",
        f"off by at most {gap:.1e}",
        gap < EXACT,
    )


def _crossed(book: Notebook) -> None:
    book.head("Cross attention")
    book.say(
        "Queries from one sequence (what a translator has written so far), keys and values from "
        "another (what it translates)."
    )
    q, _, _ = projected(TOKENS, book.seed)  # (6, HEAD)
    _, k, v = projected(CONTEXT, book.seed)  # (4, HEAD)
    a, out = attention(q, k, v)  # (6, 4), (6, HEAD)
    book.figure(
        "attention-cross",
        heat_maps({"cross attention": a}, digits(TOKENS), digits(CONTEXT)),
        "The first sequence looks at the second.",
    )
    _, backwards = attention(q, k.flip(0), v.flip(0))
    gap = largest(backwards - out)
    book.claim(
        "The order of keys and values is nothing to the output",
        f"backwards, it is off by at most {gap:.1e}",
        gap < EXACT,
    )


# ---------------------------------------------------------------------- order and positions


def _permuted(book: Notebook) -> None:
    x = TOKENS
    g = torch.Generator().manual_seed(book.seed)
    orders = [torch.randperm(len(x), generator=g) for _ in range(100)]
    kinds = {
        "no positions": (False, 0.0),
        "positions": (True, 0.0),
        "no positions, causal mask": (False, causal_mask(len(x))),
    }

    def both(order: Tensor, placed: bool, mask: Tensor | float) -> tuple[Tensor, Tensor]:
        """Outputs (token, HEAD): attend, then shuffle; and shuffle, then attend."""
        _, attended = attention(*projected(x, book.seed, placed), mask)
        _, shuffled = attention(*projected(x[order], book.seed, placed), mask)
        return attended[order], shuffled

    gaps = {}
    for name, (placed, mask) in kinds.items():
        differences = []
        for order in orders:
            attended, shuffled = both(order, placed, mask)
            differences.append(largest(shuffled - attended))
        gaps[name] = max(differences)

    book.head("Without positions, a sequence is a set")
    book.say(
        "Attend, then shuffle the outputs; or shuffle the tokens, then attend. If the result "
        "is the same, attention does not know the order (it is permutation equivariant)."
    )
    maps = {}
    for name in ("no positions", "positions"):
        attended, shuffled = both(orders[0], *kinds[name])
        maps[f"{name}:\nattend, shuffle"] = attended
        maps[f"{name}:\nshuffle, attend"] = shuffled
    rows = digits(x[orders[0]])
    columns = digits(torch.arange(HEAD))
    book.figure(
        "attention-permuted",
        heat_maps(maps, rows, columns, numbers=False),
        "Outputs: a row for each of the shuffled tokens.",
    )

    without = gaps["no positions"]
    book.claim(
        "Without positions attention is permutation equivariant",
        f"off by at most {without:.1e}",
        without < EXACT,
    )
    placed_gap = gaps["positions"]
    book.claim("With positions it is not", f"off by up to {placed_gap:.2f}", placed_gap > 0.01)
    causal = gaps["no positions, causal mask"]
    book.claim(
        "With a causal mask it is not, even without positions",
        f"off by up to {causal:.2f}",
        causal > 0.01,
    )


def _positions(book: Notebook, base: float) -> None:
    pe = positional_encoding(64, 64, base)  # (position, feature)

    book.head("Positional encoding")
    book.say(
        "Position t becomes 64 numbers: sines and cosines of t, from fast to slow. The base, here "
        f"{base:g}, sets the slowest."
    )
    ax = drawing.new_axes(5.0, 3.2)
    image = ax.imshow(pe.numpy(), cmap=drawing.ramp(diverging=True), vmin=-1, vmax=1)
    drawing.colour_bar(ax, image)
    ax.set(xlabel="feature", ylabel="position")
    book.figure("attention-positions", ax, f"A row for each position, base {base:g}.")

    ax = drawing.new_axes(6.0, 2.8)
    for other, colour in ((base / 100, BLUE), (base, PURPLE), (base * 100, ORANGE)):
        first = positional_encoding(1, 64, other)[0]  # (feature,)
        likeness = positional_encoding(64, 64, other) @ first  # (position,)
        ax.plot(likeness.numpy(), color=colour, label=f"base {other:g}")
    ax.set(xlabel="distance between two positions", ylabel="dot product")
    ax.legend(frameon=False)
    book.figure(
        "attention-distances",
        ax,
        "Near positions are alike; the larger the base, the further this reaches.",
    )

    begins = pe[0].tolist() == [0.0, 1.0] * 32
    sine = abs(pe[1, 0].item() - 0.8414709848) < 1e-9
    book.claim(
        "PE[0] = (0, 1, 0, 1, …) and PE[1, 0] = sin 1",
        f"{pe[0, :4].tolist()} …, {pe[1, 0]:.5f}",
        begins and sine,
    )
    products = pe @ pe.T  # (position, position)
    spreads = []
    for distance in range(64):
        alike = products.diagonal(distance)  # pairs of positions that are so far apart
        spreads.append((alike.max() - alike.min()).item())
    spread = max(spreads)
    book.claim(
        "The dot product of two positions depends on their distance alone",
        f"differs by {spread:.1e} of 32",
        spread < 1e-10,
    )


# ---------------------------------------------------------------------- before training


def row_entropy(weights: Float[np.ndarray, "*any key"]) -> Float[np.ndarray, "*any"]:
    """−Σ a ln a of each row; 0 ln 0 is 0."""
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).sum(-1)


def _at_initialisation(book: Notebook) -> None:
    length, width, draws = 128, 64, 16
    if book.quick:
        length, draws = 64, 4
    sigmas = (0.01, 0.02, 0.04, 0.06, 0.09, 0.125, 0.18, 0.25, 0.35, 0.5)

    g = torch.Generator().manual_seed(book.seed)
    e = torch.randn(draws, length, width, generator=g, dtype=torch.float64)  # (draw, token, d)
    wq, wk = torch.randn(2, draws, width, width, generator=g, dtype=torch.float64)  # (draw, d, d)
    scaled, raw = [], []  # mean entropies as shares of ln T, the largest there is
    for sigma in book.track(sigmas, "entropy, scale"):
        q, k = sigma * e @ wq, sigma * e @ wk  # (draw, token, d)
        for entropies, scale in ((scaled, True), (raw, False)):
            a, _ = attention(q, k, e, scale=scale)  # (draw, query, key)
            entropies.append(float(row_entropy(a.numpy()).mean()) / log(length))

    book.head("At initialisation")
    book.say(
        f"How a model attends before any training: {length} random tokens of {width} features; "
        "the weights of queries and keys are drawn with standard deviation σ."
    )
    ax = drawing.new_axes(6.0, 3.4)
    ax.plot(sigmas, scaled, "o-", ms=4, color=PURPLE, label="scores / √d")
    ax.plot(sigmas, raw, "o-", ms=4, color=ORANGE, label="scores as they are")
    ax.axvline(1 / sqrt(width), color=GREY, lw=1, ls=":", label="σ = 1/√d")
    ax.set(xscale="log", xlabel="σ", ylabel="mean row entropy / ln T", ylim=(0, 1.05))
    ax.legend(frameon=False, loc="lower left")
    book.figure(
        "attention-entropy",
        ax,
        "Evenness of attention: 1 means that every token gets the same, 0 that one token gets "
        "all of it.",
    )
    book.table(
        "attention-entropies",
        ("σ", "with 1/√d", "without"),
        zip(sigmas, scaled, raw, strict=True),
        "Evenness of attention by σ: the entropy of a row, averaged, as a share of the "
        "largest possible, ln T. 1 looks at all tokens alike, 0 at one alone.",
    )

    book.claim(
        "Small weights (σ = 0.02) attend to all tokens alike",
        f"entropy {scaled[1]:.4f} of ln {length}",
        0.97 < scaled[1] <= 1,
    )
    both_fall = scaled == sorted(scaled, reverse=True) and raw == sorted(raw, reverse=True)
    raw_is_below = all(a > b for a, b in zip(scaled, raw, strict=True))
    book.claim(
        "Entropy falls with σ, and faster without 1/√d",
        f"at σ = 1/√d {scaled[5]:.2f} of ln T with 1/√d, {raw[5]:.2f} without",
        both_fall and raw_is_below,
    )


# ---------------------------------------------------------------------- a trained model


def _in_a_model(book: Notebook, words: str) -> None:
    book.tell("the sentiment model")
    model = whence.load("sentiment")
    maps = whence.attend(model, words)
    weights = maps.weights["encoder"]  # (layer, head, from, to)
    places = maps.to_axis["encoder"]
    is_word = ~places.special  # (place,)

    book.head("Heads of a trained model")
    book.say(f"The bundled sentiment model reads “{words}”. These are the heads of its last layer.")
    last = {f"head {i}": torch.from_numpy(head) for i, head in enumerate(weights[-1])}
    book.figure(
        "attention-heads",
        heat_maps(last, places.labels, places.labels, special=places.special, numbers=False),
        "Grey words are special tokens.",
    )

    labels = _methods(book, model, words, weights, is_word)
    _schemes(book, maps, labels, is_word)


def _methods(
    book: Notebook, model: whence.Model, words: str, weights: np.ndarray, is_word: np.ndarray
) -> tuple[str, ...]:
    """One number a word, by several methods; returns the words' names."""
    names = [
        "attention-mean",
        "attention-max",
        "rollout",
        "generic-attention",
        "transformer-attribution",
        "occlusion",
    ]
    if is_word.sum() <= FLOW_WORDS:
        names.append("flow")
    attributions = whence.compare(model, words, names, evidence=False, seed=book.seed)
    labels = attributions.first.names

    means = weights.mean(1)  # (layer, from, to): the mean over heads
    literal = means[-1]  # A₁A₂…A_L, as formulas are often written, and without the residual
    for layer in means[-2::-1]:
        literal = layer @ literal
    rows = {
        "mean, first layer": means[0, 0, is_word],
        "A₁A₂…, no residual": literal[0, is_word],
    }
    for name in names:
        rows[name] = abs(attributions[name].scores)

    book.head("One number a word: methods")
    book.say(
        f"The model says {attributions.first.target.label}. Attention gives many answers to why; "
        "occlusion removes each word."
    )
    book.figure(
        "attention-methods",
        word_rows(rows, labels),
        "Each row is coloured by its own largest value; occlusion, which is signed, by its size.",
    )
    strongest = {name: labels[int(row.argmax())] for name, row in rows.items()}
    book.table(
        "attention-strongest",
        ("method", "strongest word"),
        strongest.items(),
        "The word that each method puts first.",
    )

    others = [word for name, word in strongest.items() if name != "occlusion"]
    different = len(set(others))
    book.claim(
        "Ways of reading attention do not agree on the strongest word",
        f"{different} words from {len(others)} methods",
        different > 1,
    )
    hits = others.count(strongest["occlusion"])
    book.claim(
        "Attention may miss the word that matters most",
        f"{strongest['occlusion']!r}: {hits} of {len(others)}",
        hits < len(others),
    )
    return labels


def _schemes(book: Notebook, maps: Any, labels: Sequence[str], is_word: np.ndarray) -> None:
    """Every way of bringing layers and heads together, and of reading the map that is left."""
    book.head("One number a word: layers × heads × rows and columns")
    book.say(
        "Bring layers and heads together, then read the row of [CLS] (from), its column (to), or "
        "the column of each word."
    )
    readings: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "from": lambda a: a[0],
        "to": lambda a: a[:, 0],
        "column mean": lambda a: a.mean(0),
        "column max": lambda a: a.max(0),
    }
    schemes = {}
    for reading, layers, heads in product(readings, ("mean", "max", "product"), ("mean", "max")):
        together = maps.aggregate(layers, heads)  # (from, to)
        scores = readings[reading](together)[is_word]
        schemes[f"{reading}; layers {layers}, heads {heads}"] = scores
    book.figure(
        "attention-schemes",
        word_rows(schemes, labels),
        "Every word's score by each scheme, after Mylonas et al. 2023. Sums are left out: "
        "they are means times a constant.",
    )

    def leads(scores: np.ndarray) -> bool:
        """Whether the strongest word is ahead of the second by 5 % or more."""
        return bool(np.sort(scores)[-2] < 0.95 * scores.max())

    clear = [labels[int(scores.argmax())] for scores in schemes.values() if leads(scores)]
    different = len(set(clear))
    book.claim(
        "The choice of aggregation decides which word is strongest",
        f"{different} words from the {len(clear)} of {len(schemes)} schemes that are clear",
        different > 1,
    )


# ---------------------------------------------------------------------- figures


def digits(tokens: Tensor) -> list[str]:
    """Tokens as labels."""
    return [str(token) for token in tokens.tolist()]


def matrices(rows: Sequence[Sequence[tuple[str, Tensor] | str]]) -> Any:
    """Matrices with their numbers in the cells, and the signs between them."""
    widths, heights = [], []
    for row in rows:
        widths.append(sum(1 if isinstance(item, str) else item[1].shape[1] for item in row))
        heights.append(max(len(item[1]) for item in row if not isinstance(item, str)))
    wide = max(widths)
    high = sum(heights) + len(rows)

    ax = drawing.new_axes(0.6 * wide, 0.45 * high)
    ax.set(
        frame_on=False,
        xticks=[],
        yticks=[],
        xlim=(-0.1, wide + 0.1),
        ylim=(high + 0.1, -0.1),
    )
    top = 0.9
    for row, height in zip(rows, heights, strict=True):
        x = 0
        for item in row:
            if isinstance(item, str):
                ax.text(x + 0.3, top + height / 2 + 0.15, item, fontsize=14)
                x += 1
            else:
                name, matrix = item
                _cells(ax, x, top + (height - len(matrix)) / 2, name, matrix)
                x += matrix.shape[1]
        top += height + 1
    return ax


def _cells(ax: Any, x: int, y: float, name: str, matrix: Tensor) -> None:
    """One matrix with its name above it."""
    height, width = matrix.shape
    decimals = 0 if matrix.equal(matrix.round()) else 2

    ax.text(x, y - 0.12, name, fontsize=9)
    ax.pcolormesh(
        range(x, x + width + 1),
        y + np.arange(height + 1),
        matrix.numpy(),
        cmap=drawing.ramp(),
        vmin=0,
        ec=GREY,
        lw=0.5,
    )
    for i, j in product(range(height), range(width)):
        number = matrix[i, j]
        colour = "white" if number > 0.6 * matrix.max() else INK
        ax.text(
            x + j + 0.5,
            y + i + 0.5,
            f"{number:.{decimals}f}",
            ha="center",
            va="center",
            color=colour,
        )


def heat_maps(
    maps: dict[str, Tensor],
    rows: Sequence[str],
    columns: Sequence[str],
    special: np.ndarray | None = None,
    numbers: bool = True,
) -> Any:
    """Maps in rows of four, on one scale of colours; what is missing is grey."""
    from matplotlib import pyplot as plt

    wide = min(len(maps), 4)
    high = -(-len(maps) // 4)
    values = torch.stack(list(maps.values())).nan_to_num()
    most = values.abs().max().item()
    signed = values.min().item() < 0
    lowest = -most if signed else 0

    fig, axes = plt.subplots(
        high,
        wide,
        figsize=(2.6 * wide + 0.4, 2.5 * high + 0.7),
        layout="constrained",
        squeeze=False,
    )
    for i, (ax, (name, a)) in enumerate(zip(axes.flat, maps.items(), strict=True)):
        ax.imshow(a.numpy(), cmap=drawing.ramp(diverging=signed), vmin=lowest, vmax=most)
        ax.set(title=name, xticks=[], yticks=[])
        in_last_row = i >= len(maps) - wide
        in_first_column = i % wide == 0
        if numbers or in_last_row:
            drawing.name_places(ax, "x", columns, special, turned=not numbers)
        if numbers or in_first_column:
            drawing.name_places(ax, "y", rows, special, turned=not numbers)
        if numbers:
            _numbers(ax, a, most)
    fig.draw_without_rendering()
    fig.set_layout_engine("none")  # laid out once, not again for each format
    return fig


def _numbers(ax: Any, a: Tensor, most: float) -> None:
    """The weights in their cells; nothing where one is missing."""
    for row, column in product(range(a.shape[0]), range(a.shape[1])):
        weight = a[row, column]
        text = "" if weight.isnan() else f"{weight:.2f}"
        colour = "white" if weight > 0.5 * most else INK
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)


def word_rows(rows: dict[str, Any], words: Sequence[str]) -> Any:
    """Words as columns, each row coloured by its own largest value."""
    ax = drawing.new_axes(min(3 + 0.6 * len(words), 14.0), 0.9 + 0.26 * len(rows))
    shares = np.stack([row / max(row.max(), 1e-12) for row in rows.values()])  # (row, word)
    ax.pcolormesh(shares, cmap=drawing.ramp(), vmin=0, vmax=1.2, ec="white", lw=1)

    names, style = drawing.plain([drawing.short(word) for word in words])
    step = -(-len(words) // 50)  # more names would lie on one another
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
