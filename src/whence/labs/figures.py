"""The rest of the lectures' pictures: seven explainers on one sentence, six heads, a gradient by
formula, and how LIME samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

import whence
from whence import InputError, theory
from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, INK, ORANGE, PURPLE
from whence.theory import Heads

TITLE = "The rest of the lectures' pictures"

# ---------------------------------------------------------------------- settings

SENTENCE = "attention based explanations are popular but questionable"
LONGEST = 40  # words that can be drawn

SIGNED = ("G-avg", "G×I", "LIME")
UNSIGNED = ("G-L1", "G-L2", "α-avg", "α-max")
ROWS = ("G-avg", "G-L1", "G-L2", "G×I", "LIME", "α-avg", "α-max")  # in the order of the slide

# What the authors' notebook prints for the sentence, with weights that are not public.
THEIR_LIME = (-0.0773, -0.2114, -0.0389, -0.0089, 0.2358, -0.3252, -1.0116)
THEIR_ATTENTION = (0.01220, 0.07760, 0.05954, 0.01436, 0.13758, 0.03555, 0.10409)

BANDWIDTH = 0.25  # ν, LIME's default
EXACT = 1e-12

PICTURES = (  # seed, what it shows, lab, figure
    ("S0", "the self-attention workflow, three tokens", "attention", "attention-projections"),
    ("S0", "attention maps of a model, aggregation schemes", "attention", "attention-methods"),
    ("S1", "attention and masked attention", "attention", "attention-masked"),
    ("S1", "positional encodings", "attention", "attention-positions"),
    ("S1", "ways to aggregate attention (Mylonas et al.)", "attention", "attention-schemes"),
    ("S1", "layer normalisation", "gpt2", "gpt2-layer-norm"),
    ("S1", "GELU", "gpt2", "gpt2-gelu"),
    ("S1", "decoding: greedy, top-k, temperature", "gpt2", "gpt2-rules"),
    (
        "S1, S2",
        "histogram task: two minima, two attention maps",
        "histogram",
        "histogram-attention",
    ),
    ("S1", "Dyck attention maps", "dyck", "dyck-attention"),
    ("S1", "recall of known features", "judging", "judging-recall"),
    ("S1", "sensitivity: 1 − relu(1 − x)", "judging", "judging-sensitivity"),
    ("S1", "symmetric difference", "judging", "judging-difference"),
    ("S1", "remove and retrain (toy)", "judging", "judging-roar"),
    ("S1", "remove and retrain (texts)", "roar", "roar-curves"),
    ("S1", "LIME's user study (simulated users)", "judging", "judging-users"),
    ("S2", "different explainers, seven rows", "figures", "figures-explainers"),
    ("S2", "attention of each head", "figures", "figures-heads"),
    ("S2", "gradient, theory and practice", "figures", "figures-gradient"),
    ("S2", "LIME: samples, weights, outputs", "figures", "figures-samples"),
    ("S2", "LIME: the weight of a sample", "figures", "figures-weights"),
    ("S2", "LIME: output", "figures", "figures-lime"),
    ("S2", "LIME: box plots against the theorem", "theorem", "theorem-check-trained"),
    ("S1", "attention is (not) explanation: tables", "debate", "debate-tau"),
    ("S0", "PECoRe: table", "none: whence context", ""),
    ("S1", "sparse autoencoders", "none: whence features", ""),
)


def run(book: Notebook, words: str | None = None) -> None:
    """``words`` is your own sentence for the single-layer model."""
    book.head("Which picture is where")
    book.say(
        "Three lectures are the seeds of this project. S0 is about attention-based "
        "explainability, S1 about attention, GPT-2 and evaluation, S2 is the talk “Attention "
        "meets post-hoc interpretability”. The labs draw their pictures anew; this table says "
        "where each one is."
    )
    book.table(
        "figures-where",
        ("seed", "picture", "lab", "figure"),
        PICTURES,
        "Pictures that need people, a large model or an online service are left out.",
    )

    book.tell("the single-layer model")
    model = whence.load("single-layer")
    game = _game(model, words)
    heads = theory.heads_of(model, game.passage, game.target)
    ratio = theory.ratio_of(model, game.passage, game.target, "mask")
    lime = theory.exact_lime(ratio, BANDWIDTH)  # (word,)

    _explainers(book, game, heads, lime, own_words=words is not None)
    _heads(book, game, heads)
    _gradient(book, game, heads)
    _sampling(book, game, lime)


def _game(model: whence.Model, words: str | None) -> whence.Game:
    """The game of removing words from the sentence; its value is the logit of "positive"."""
    game = whence.game(
        model,
        SENTENCE if words is None else words,
        target="positive",
        read="logit",
        units="token",
        removal="mask",
    )
    if game.size > LONGEST:
        raise InputError(
            f"this lab draws a column for each word, {LONGEST} at most, not {game.size}; "
            "give a shorter sentence."
        )
    if unknown_words(game).all():
        raise InputError(
            f"the model knows no word of {words!r:.60}, so there is nothing to explain; "
            "give another sentence."
        )
    return game


def unknown_words(game: whence.Game) -> Bool[np.ndarray, " word"]:
    """Which words the model reads as [UNK]."""
    ids = game.passage.ids[game.passage.unit_of >= 0]  # (word,): a unit is a token here
    return ids == game.model.tokenizer.unk_token_id


# ---------------------------------------------------------------------- LIME, step by step


def draw_masks(d: int, n: int, rng: np.random.Generator) -> Bool[np.ndarray, "sample word"]:
    """LIME's samples: first the text itself; from every other one words are removed.

    How many go is s ~ U{1 … d}; which, is chosen at random.
    """
    rank = rng.random((n, d)).argsort(1).argsort(1)  # (sample, word): a random order in every row
    removed = np.concatenate([[0], rng.integers(1, d + 1, n - 1)])  # (sample,)
    return rank >= removed[:, None]


def lime_weights(
    masks: Bool[np.ndarray, "sample word"], bandwidth: float = BANDWIDTH
) -> Float[np.ndarray, " sample"]:
    """π = exp(−δ²/2ν²).

    δ, the cosine distance to the text itself, is 1 − √(share kept), and 1 where nothing is kept.
    """
    delta = 1 - np.sqrt(masks.mean(1))
    return np.exp(-(delta**2) / (2 * bandwidth**2))


def weight_at(delta: float) -> float:
    """π at a cosine distance, at the default bandwidth."""
    return float(np.exp(-(delta**2) / (2 * BANDWIDTH**2)))


def surrogate(
    masks: Bool[np.ndarray, "sample word"],
    values: Float[np.ndarray, " sample"],
    weights: Float[np.ndarray, " sample"],
    intercept: bool = True,
) -> Float[np.ndarray, " word"]:
    """The coefficients of weighted least squares, without a penalty.

    The slide's objective has no intercept.
    """
    z = masks.astype(float)  # (sample, word)
    if intercept:
        z = np.hstack([z, np.ones((len(masks), 1))])  # (sample, word + 1)
    root = np.sqrt(weights)  # (sample,)
    coefficients = np.linalg.lstsq(z * root[:, None], values * root, rcond=None)[0]
    return coefficients[: masks.shape[1]]


# ---------------------------------------------------------------------- seven explainers


def _explainers(
    book: Notebook, game: whence.Game, heads: Heads, lime: np.ndarray, own_words: bool
) -> None:
    names = game.passage.names
    is_word = game.passage.unit_of >= 0  # (place,)
    by_place = theory.importances(heads)  # α-avg, G×I, …
    rows = {}
    for name in ROWS:
        rows[name] = lime if name == "LIME" else by_place[name][is_word]

    book.head("Seven explainers, one sentence")
    book.say(
        f"The single-layer model on “{game.passage.text}”: the logit of “positive” is "
        f"{heads.output:+.3f}. LIME is its exact limit."
    )
    book.say(
        "The weights of the paper are not public. The bundled model was trained anew on other "
        "texts: its numbers are not the paper's."
    )
    unknown = [name for name, is_unk in zip(names, unknown_words(game), strict=True) if is_unk]
    if unknown:
        book.say(
            f"The model does not know {', '.join(unknown)}: it reads [UNK], which is also what a "
            "removed word becomes."
        )
    book.figure(
        "figures-explainers",
        coloured(rows, names),
        "Orange: for “positive”, blue: against it, purple: a row without signs. Each row has its "
        "own scale.",
    )
    columns = []  # a word that stands twice is told apart by its position
    for i, name in enumerate(names):
        columns.append(f"{name} ({i + 1})" if name in names[:i] else name)
    cells = [(name, *row.round(5).astype(float).tolist()) for name, row in rows.items()]
    book.table(
        "figures-scores",
        ("method", *columns),
        cells,
        "The numbers behind the colours: each method's score for each word. Methods have "
        "different scales, so compare within a row.",
    )

    _signs(book, rows, names)
    if not own_words:
        _beside_the_paper(book, rows, names)


def _signs(book: Notebook, rows: dict[str, np.ndarray], names: Sequence[str]) -> None:
    least = min(float(rows[name].min()) for name in UNSIGNED)
    below = {name: int((rows[name] < 0).sum()) for name in SIGNED}
    counts = ", ".join(f"{name} {count}" for name, count in below.items())
    book.claim(
        "Attention and gradient norms are blind to signs; G-avg, G×I and LIME are not",
        f"smallest value of {', '.join(UNSIGNED)}: {least:.4f}; "
        f"negative words: {counts} of {len(names)}",
        least >= 0 and min(below.values()) > 0,
    )

    # the word with most attention among those that all signed explainers call negative
    attention = rows["α-avg"]
    signed = np.stack([rows[name] for name in SIGNED])  # (method, word)
    against = np.flatnonzero((signed < 0).all(0)).tolist()
    measured, rank = "no word is", len(names) + 1
    if against:
        word = max(against, key=lambda i: attention[i])
        rank = 1 + int((attention > attention[word]).sum())
        scores = ", ".join(f"{name} {rows[name][word]:+.4f}" for name in SIGNED)
        measured = f"{names[word]!r}: α-avg rank {rank}, {scores}"
    book.claim(
        "A word among the first two of attention is negative for LIME, G×I and G-avg",
        measured,
        bool(against) and rank <= 2,
    )


def _beside_the_paper(book: Notebook, rows: dict[str, np.ndarray], names: Sequence[str]) -> None:
    most_negative = {name: names[int(rows[name].argmin())] for name in SIGNED}
    listed = ", ".join(f"{name} {word}" for name, word in most_negative.items())
    book.claim(
        "As in the paper, “questionable” is the most negative word",
        f"most negative: {listed}",
        set(most_negative.values()) == {"questionable"},
    )
    attention = rows["α-avg"]
    order = [names[int(i)] for i in (-attention).argsort()]
    popular = attention[names.index("popular")]
    book.claim(
        "As in the paper, attention ranks “popular” first",
        f"{' > '.join(order[:4])}; α-avg of popular {popular:.4f}, "
        f"theirs {max(THEIR_ATTENTION):.4f}",
        order[0] == "popular",
    )
    compared = zip(
        names,
        attention.round(4).tolist(),
        THEIR_ATTENTION,
        rows["LIME"].round(4).tolist(),
        THEIR_LIME,
        strict=True,
    )
    book.table(
        "figures-paper",
        ("word", "α-avg", "theirs", "LIME", "theirs "),
        compared,
        "Two rows of the figure beside what the authors' notebook prints (“theirs”).",
    )


# ---------------------------------------------------------------------- six heads


def _heads(book: Notebook, game: whence.Game, heads: Heads) -> None:
    a = heads.attention  # (head, place)
    count, places = a.shape

    book.head("The heads of one layer")
    book.say(
        "How much each head looks at each word, from [CLS]. In this model only the row of "
        "[CLS] reaches the output, so this is all the attention that counts."
    )
    ax = drawing.new_axes(min(2.2 + 0.62 * places, 14.0), 2.9)
    image = ax.imshow(a, cmap=drawing.ramp(), vmin=0, vmax=1, aspect="auto")
    drawing.colour_bar(ax, image, "attention")
    _name_tokens(ax, "x", game)
    ax.set_yticks(range(count), [f"head {k + 1}" for k in range(count)])
    if places <= 16:  # else the numbers would not fit
        for (k, t), share in np.ndenumerate(a):
            colour = "white" if share > 0.5 else INK
            ax.text(t, k, f"{share:.2f}", ha="center", va="center", fontsize=7, color=colour)
    book.figure("figures-heads", ax, "Attention from [CLS] in each head; each row sums to one.")

    gap = abs(heads.output - game.full)
    book.claim(
        "Attention times values, summed, is the model's logit",
        f"{heads.output:.6f}, off by {gap:.1e} (float32)",
        gap < 1e-4,
    )
    strongest = {game.passage.tokens[place] for place in a.argmax(1).tolist()}
    book.claim(
        "The heads do not agree on the strongest token",
        f"{len(strongest)} from {count} heads: {', '.join(sorted(strongest))}",
        len(strongest) > 1,
    )


# ---------------------------------------------------------------------- the gradient


def autograd(model: whence.Model, heads: Heads, label: int) -> Float[np.ndarray, "place width"]:
    """∂f/∂e in double precision, by the model itself: nothing of the formula is in it."""
    hf = deepcopy(theory.single_layer_of(model)).double()
    length, width = heads.e.shape
    places = theory.positional_encoding(length, width, hf.config.position_base)
    words = (torch.from_numpy(heads.e) - places).requires_grad_()  # the model adds the places again
    f = hf(inputs_embeds=words[None]).logits[0, label]
    return torch.autograd.grad(f, words)[0].numpy()


def _gradient(book: Notebook, game: whence.Game, heads: Heads) -> None:
    assert game.target.index is not None
    by_formula = theory.gradient(heads)  # (place, width)
    slide = theory.gradient(heads, cls_term=False)  # (place, width)
    practice = autograd(game.model, heads, game.target.index)  # (place, width)

    book.head("The gradient, by formula and by autograd")
    book.say(
        "How fast the output changes with each number of each word's embedding: once by the "
        "talk's formula, once by automatic differentiation. The formula of the talk is about "
        "words. The query is made of [CLS], so the row of [CLS] has one term more."
    )
    _draw_gradients(book, game, by_formula, slide, practice)

    off = float(np.abs(by_formula - practice).max())
    book.claim(
        "The formula with the [CLS] term is the gradient, at every place",
        f"off by at most {off:.1e}",
        off < EXACT,
    )
    gap = np.abs(slide - practice)  # (place, width)
    words = float(gap[1:].max())
    book.claim(
        "Without that term it is, for the words", f"off by at most {words:.1e}", words < EXACT
    )
    first = float(gap[0].max())
    book.claim(
        "Without that term it is not, for [CLS]",
        f"row [CLS] is off by {first:.1e}; its largest entry is {np.abs(practice[0]).max():.1e}",
        first > 1e-6,
    )


def _draw_gradients(
    book: Notebook,
    game: whence.Game,
    by_formula: np.ndarray,
    slide: np.ndarray,
    practice: np.ndarray,
) -> None:
    from matplotlib import pyplot as plt

    largest = float(np.abs(practice).max())
    difference = by_formula - practice
    without = slide - practice
    pictures = [
        ("theory", by_formula, largest),
        ("autograd", practice, largest),
        ("difference", difference, float(np.abs(difference).max())),
        ("difference without the [CLS] term", without, float(np.abs(without).max())),
    ]
    height = 1.2 + 4 * (0.5 + 0.14 * len(by_formula))
    fig, axes = plt.subplots(4, 1, figsize=(9.0, height), sharex=True, layout="constrained")
    for ax, (name, values, most) in zip(axes, pictures, strict=True):
        most = max(most, np.finfo(float).tiny)
        image = ax.imshow(
            values,
            cmap=drawing.ramp(diverging=True),
            vmin=-most,
            vmax=most,
            aspect="auto",
            interpolation="none",
        )
        bar = drawing.colour_bar(ax, image)
        bar.set_ticks([-most, 0, most], labels=[f"−{most:.2g}", "0", f"{most:.2g}"])
        _name_tokens(ax, "y", game)
        ax.set_title(name)
    axes[-1].set_xlabel("dimension of the embedding")
    book.figure(
        "figures-gradient",
        fig,
        "The gradient ∂f/∂e, a row for each place. Mind the scales: that of the third picture "
        "is 1e-15, which is rounding.",
    )


# ---------------------------------------------------------------------- how LIME samples


def _sampling(book: Notebook, game: whence.Game, lime: np.ndarray) -> None:
    n = 1000 if book.quick else 5000
    masks = draw_masks(game.size, n, np.random.default_rng(book.seed))  # (sample, word)
    weights = lime_weights(masks)  # (sample,)
    values = game(masks)  # (sample,)

    book.head("LIME, step 1 to 3")
    book.say(
        "First draw how many words are removed, from one to all; then which ones. Run the "
        "model on each such text. The nearer a text is to the whole one, the more it weighs. "
        "Then fit a line: its coefficients are the scores."
    )
    _draw_samples(book, game, masks, weights, values)
    _weights(book, game.size)
    _fits(book, game, lime, masks, weights, values)


def _draw_samples(
    book: Notebook, game: whence.Game, masks: np.ndarray, weights: np.ndarray, values: np.ndarray
) -> None:
    from matplotlib import pyplot as plt

    d, shown = game.size, 24
    fig, (kept, weight, output) = plt.subplots(
        3,
        1,
        figsize=(8.0, 3.2 + 0.2 * d),
        sharex=True,
        layout="constrained",
        height_ratios=(0.22 * d + 0.3, 1, 1),
    )
    kept.pcolormesh(
        np.arange(shown + 1) - 0.5,
        np.arange(d + 1) - 0.5,
        masks[:shown].T,
        cmap=drawing.ramp(),
        vmax=1.8,
        ec="white",
        lw=1,
    )
    kept.set_ylim(d - 0.5, -0.5)
    drawing.name_places(kept, "y", game.passage.names)
    weight.bar(range(shown), weights[:shown], color=PURPLE)
    output.bar(range(shown), values[:shown], color=by_sign(values[:shown]))
    output.axhline(0, color=GREY, lw=0.8)
    weight.set(ylabel="weight π", ylim=(0, 1.05))
    output.set(ylabel="model's output", xlabel="sample (0 is the text itself)")
    fig.align_ylabels((weight, output))
    book.figure(
        "figures-samples",
        fig,
        f"The first {shown} samples, a column each: the words that were kept, the sample's "
        f"weight at bandwidth ν = {BANDWIDTH}, and the model's logit of “positive”.",
    )


def _weights(book: Notebook, d: int) -> None:
    share = np.linspace(0, 1, 201)  # of words removed
    kept = np.arange(d + 1)[:, None] > np.arange(d)  # (d + 1, d): in row k, k words are kept

    ax = drawing.new_axes(7.0, 3.2)
    for nu, colour in ((0.1, BLUE), (BANDWIDTH, PURPLE), (1.0, ORANGE)):
        delta = 1 - np.sqrt(1 - share)
        ax.plot(share, np.exp(-(delta**2) / (2 * nu**2)), color=colour, label=f"ν = {nu}")
        ax.plot(1 - kept.mean(1), lime_weights(kept, nu), "o", color=colour, ms=4)
    ax.plot([0.75, 0.75, 0], [0, weight_at(0.5), weight_at(0.5)], ":", color=GREY, lw=1)
    ax.set(xlabel="share of words removed", ylabel="weight π", ylim=(0, 1.03), xlim=(0, 1.02))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "figures-weights",
        ax,
        "The weight of a sample by how much was removed, for several bandwidths ν. Dots: this "
        f"text, {d} words. Dotted: three quarters removed, distance δ = ½, at ν = {BANDWIDTH}.",
    )

    one_of_four = np.eye(4, dtype=bool)[:1]  # δ = 1 − √¼
    quarter = lime_weights(one_of_four)[0]
    book.claim(
        "A sample at δ = ½ weighs 0.135335", f"{quarter:.6f}", abs(quarter - 0.135335) < 5e-7
    )
    none = lime_weights(kept[:1])[0]
    book.claim(
        "A sample with nothing left weighs e⁻⁸ = 3.3546e-4",
        f"{none:.4e}",
        abs(none - 3.3546e-4) < 5e-9,
    )


def _fits(
    book: Notebook,
    game: whence.Game,
    lime: np.ndarray,
    masks: np.ndarray,
    weights: np.ndarray,
    values: np.ndarray,
) -> None:
    d, n = game.size, len(masks)
    fitted = surrogate(masks, values, weights)  # (word,)
    bare = surrogate(masks, values, weights, intercept=False)  # (word,)

    ax = drawing.new_axes(7.5, 1.0 + 0.3 * d)
    ax.barh(np.arange(d), fitted, color=by_sign(fitted), height=0.6, label=f"{n:,} samples")
    ax.plot(lime, np.arange(d), "|", color=INK, ms=13, mew=1.5, label="exact limit")
    ax.plot(bare, np.arange(d), "x", color=GREY, ms=6, label="no intercept, as on the slide")
    ax.set(ylim=(d - 0.5, -0.5), xlabel="coefficient")
    ax.axvline(0, color=GREY, lw=0.8)
    drawing.name_places(ax, "y", game.passage.names)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "figures-lime", ax, "What LIME gives out. Orange speaks for “positive”, blue against it."
    )

    size = np.linalg.norm(lime)
    near = float(np.linalg.norm(fitted - lime) / size)
    book.claim(
        f"{n:,} samples come within 5 % of the limit of endlessly many",
        f"relative error {near:.1%}",
        near < 0.05,
    )
    far = float(np.linalg.norm(bare - lime) / size)
    constant = float(weights @ (values - masks @ fitted) / weights.sum())
    book.claim(
        "Without an intercept, as on the slide, they miss it by more than 5 %",
        f"relative error {far:.1%}; the fitted intercept is {constant:+.3f}, "
        f"f(all removed) {game.empty:+.3f}",
        far > 0.05,
    )
    additive = 1 + masks @ lime  # an offset, and the coefficients just found
    with_one = float(np.abs(surrogate(masks, additive, weights) - lime).max())
    without = float(np.abs(surrogate(masks, additive, weights, intercept=False) - lime).max())
    book.claim(
        "Of 1 + Σ β_j z_j LIME finds β, but only with an intercept",
        f"off by {with_one:.1e} with an intercept, by {without:.2f} without",
        with_one < 1e-9 and without > 0.01,
    )


# ---------------------------------------------------------------------- figures


def by_sign(values: np.ndarray) -> list[str]:
    """Orange for what speaks for "positive", blue for what speaks against it."""
    return [ORANGE if value > 0 else BLUE for value in values]


def _name_tokens(ax: Any, side: str, game: whence.Game) -> None:
    """The tokens of the text along one side, the special ones in grey."""
    drawing.name_places(ax, side, game.passage.tokens, special=game.passage.unit_of < 0)


def broken_lines(widths: np.ndarray, line: int) -> list[np.ndarray]:
    """The numbers of the words on each line, none much wider than ``line``."""
    ends = np.cumsum(widths)  # (word,)
    line_of = ends // line
    starts = [int(line_of.searchsorted(k)) for k in range(line_of[-1] + 1)]
    pieces = np.split(np.arange(len(widths)), starts[1:])
    return [piece for piece in pieces if len(piece)]


def coloured(rows: dict[str, np.ndarray], words: Sequence[str], line: int = 84) -> Any:
    """A sentence for each row, its words on colours; a long one goes on below."""
    from matplotlib import pyplot as plt

    texts, style = drawing.plain([drawing.short(word) for word in words])
    widths = np.array([len(text) + 2 for text in texts])
    pieces = broken_lines(widths, line)
    fig, axes = plt.subplots(
        len(pieces),
        1,
        figsize=(9.0, 0.3 + 0.3 * len(rows) * len(pieces)),
        sharex=True,
        layout="constrained",
        squeeze=False,
    )
    for ax, piece in zip(axes.flat, pieces, strict=True):
        edges = np.concatenate([[0], np.cumsum(widths[piece])])
        middles = (edges[:-1] + edges[1:]) / 2
        for r, (name, values) in enumerate(rows.items()):
            most = max(float(np.abs(values).max()), np.finfo(float).tiny)
            low, high = (-1.2, 1.2) if name in SIGNED else (0, 2)
            ax.pcolormesh(
                edges,
                [r, r + 1],
                values[None, piece] / most,
                ec="white",
                lw=2,
                cmap=drawing.ramp(diverging=name in SIGNED),
                vmin=low,
                vmax=high,
            )
            for middle, i in zip(middles, piece, strict=True):
                ax.text(
                    middle,
                    r + 0.52,
                    texts[i],
                    ha="center",
                    va="center",
                    fontsize=9,
                    color=INK,
                    **style,
                )
        ax.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
        ax.set(xticks=[], ylim=(len(rows), 0), frame_on=False)
        ax.tick_params(length=0)
    return fig
