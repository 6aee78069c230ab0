"""The rest of the lectures' pictures: seven explainers on one sentence, six heads, a gradient by formula, and how LIME samples."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

import whence
from whence.core.errors import InputError
from whence.core.maps import Axis
from whence.games.game import Game
from whence.models.single_layer import positional_encoding
from whence.notebook.book import Notebook
from whence.theory.exact import exact_lime
from whence.theory.gradients import gradient, importances
from whence.theory.heads import Heads, heads_of, ratio_of, single_layer_of
from whence.views.drawing import GREY, INK, bar_beside, label_axis, new_axes, plain, ramp, short

TITLE = "The rest of the lectures' pictures"
SENTENCE = "attention based explanations are popular but questionable"
SIGNED, UNSIGNED = ("G-avg", "G×I", "LIME"), ("G-L1", "G-L2", "α-avg", "α-max")
ROWS = ("G-avg", "G-L1", "G-L2", "G×I", "LIME", "α-avg", "α-max")  # in the order of the slide
# what the authors' notebook prints for the sentence, with weights that are not public
THEIR_LIME = (-0.0773, -0.2114, -0.0389, -0.0089, 0.2358, -0.3252, -1.0116)
THEIR_ATTENTION = (0.01220, 0.07760, 0.05954, 0.01436, 0.13758, 0.03555, 0.10409)
BANDWIDTH, EXACT, LONGEST = 0.25, 1e-12, 40
ORANGE, BLUE, PURPLE = "#f3841c", "#549cde", "#7250b0"
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
    ("S1", "LIME's user study (simulated users)", "judging", "judging-users"),
    ("S2", "different explainers, seven rows", "figures", "figures-explainers"),
    ("S2", "attention of each head", "figures", "figures-heads"),
    ("S2", "gradient, theory and practice", "figures", "figures-gradient"),
    ("S2", "LIME: samples, weights, outputs", "figures", "figures-samples"),
    ("S2", "LIME: the weight of a sample", "figures", "figures-weights"),
    ("S2", "LIME: output", "figures", "figures-lime"),
    ("S2", "LIME: box plots against the theorem", "theorem", "theorem-check-trained"),
    ("S1", "attention is (not) explanation: tables", "not yet", ""),
    ("S0", "PECoRe: table", "not yet", ""),
    ("S1", "sparse autoencoders", "not yet", ""),
)


def run(book: Notebook, words: str | None = None) -> None:
    """``words`` is your own sentence for the single-layer model."""
    book.head("Which picture is where")
    book.say(
        "The lectures: S0 attention-based explainability, S1 attention, GPT-2 and evaluation, S2 attention meets post-hoc methods."
    )
    book.table(
        "figures-where",
        ("seed", "picture", "lab", "figure"),
        PICTURES,
        "Pictures that need humans, BERT or Claude are left out.",
    )
    book.tell("the single-layer model")
    model = whence.load("single-layer")
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
            f"this lab draws a column for each word, {LONGEST} at most, not {game.size}; give a shorter sentence."
        )
    if (game.passage.ids[game.passage.unit_of >= 0] == model.tokenizer.unk_token_id).all():
        raise InputError(
            f"the model knows no word of {words!r:.60}, so there is nothing to explain; give another sentence."
        )
    heads = heads_of(model, game.passage, game.target)
    lime = exact_lime(ratio_of(model, game.passage, game.target, "mask"), BANDWIDTH)
    _explainers(book, game, heads, lime, words is None)
    _heads(book, game, heads)
    _gradient(book, game, heads)
    _sampling(book, game, lime)


def draw_masks(d: int, n: int, rng: np.random.Generator) -> Bool[np.ndarray, "sample word"]:
    """LIME's samples: first the text itself; in every other one s ~ U{1 … d} words, chosen at random, are removed."""
    rank = (
        rng.random((n, d)).argsort(1).argsort(1)
    )  # (sample, word): a random order of the words, in every row
    removed = np.concatenate([[0], rng.integers(1, d + 1, n - 1)])
    return rank >= removed[:, None]


def lime_weights(
    masks: Bool[np.ndarray, "sample word"], bandwidth: float = BANDWIDTH
) -> Float[np.ndarray, " sample"]:
    """π = exp(−δ²/2ν²); δ, the cosine distance to the text itself, is 1 − √(share kept), and 1 where nothing is kept."""
    return np.exp(-((1 - np.sqrt(masks.mean(1))) ** 2) / (2 * bandwidth**2))


def surrogate(
    masks: Bool[np.ndarray, "sample word"],
    values: Float[np.ndarray, " sample"],
    weights: Float[np.ndarray, " sample"],
    intercept: bool = True,
) -> Float[np.ndarray, " word"]:
    """The coefficients of weighted least squares, without a penalty; the slide's objective has no intercept."""
    z = np.hstack([masks, np.ones((len(masks), 1))]) if intercept else masks.astype(float)
    root = np.sqrt(weights)
    return np.linalg.lstsq(z * root[:, None], values * root, rcond=None)[0][: masks.shape[1]]


def autograd(model: whence.Model, heads: Heads, label: int) -> Float[np.ndarray, "place width"]:
    """∂f/∂e in double precision, by the model itself: nothing of the formula is in it."""
    hf = deepcopy(single_layer_of(model)).double()
    places = positional_encoding(len(heads.e), heads.e.shape[1], hf.config.position_base)
    words = (torch.from_numpy(heads.e) - places).requires_grad_()  # the model adds the places again
    f = hf(inputs_embeds=words[None]).logits[0, label]
    return torch.autograd.grad(f, words)[0].numpy()


def _explainers(book: Notebook, game: Game, heads: Heads, lime: np.ndarray, default: bool) -> None:
    found, of_word = importances(heads) | {"LIME": lime}, game.passage.unit_of >= 0
    rows = {n: found[n] if n == "LIME" else found[n][of_word] for n in ROWS}
    names, attention = game.units, rows["α-avg"]
    book.head("Seven explainers, one sentence")
    book.say(
        f"The single-layer model on “{game.passage.text}”: the logit of “positive” is {heads.output:+.3f}. LIME is its exact limit."
    )
    book.say(
        "The weights of the paper are not public. The bundled model was trained anew on other texts: its numbers are not the paper's."
    )
    if unknown := [
        n
        for n, i in zip(names, game.passage.ids[of_word], strict=True)
        if i == game.model.tokenizer.unk_token_id
    ]:
        book.say(
            f"The model does not know {', '.join(unknown)}: it reads [UNK], which is also what a removed word becomes."
        )
    book.figure(
        "figures-explainers",
        coloured(rows, names),
        "Orange: for “positive”, blue: against it, purple: a row without signs. Each row has its own scale.",
    )
    cells = ((n, *(float(v) for v in r.round(5))) for n, r in rows.items())
    columns = [n if n not in names[:i] else f"{n} ({i + 1})" for i, n in enumerate(names)]
    book.table("figures-scores", ("method", *columns), cells, "The numbers behind the colours.")
    least = min(float(rows[n].min()) for n in UNSIGNED)
    measured = f"smallest value of {', '.join(UNSIGNED)}: {least:.4f}; negative words: "
    below = {n: int((rows[n] < 0).sum()) for n in SIGNED}
    measured += ", ".join(f"{n} {k}" for n, k in below.items()) + f" of {game.size}"
    book.claim(
        "Attention and gradient norms are blind to signs; G-avg, G×I and LIME are not",
        measured,
        least >= 0 and min(below.values()) > 0,
    )
    against = [i for i in range(game.size) if all(rows[n][i] < 0 for n in SIGNED)]
    word = max(against, key=lambda i: attention[i], default=None)
    place = None if word is None else 1 + int((attention > attention[word]).sum())
    measured = (
        "no word is"
        if word is None
        else f"{names[word]!r}: α-avg rank {place}, "
        + ", ".join(f"{n} {rows[n][word]:+.4f}" for n in SIGNED)
    )
    book.claim(
        "A word among the first two of attention is negative for LIME, G×I and G-avg",
        measured,
        place is not None and place <= 2,
    )
    if not default:
        return
    most = {n: names[int(rows[n].argmin())] for n in SIGNED}
    measured = f"most negative: {', '.join(f'{n} {w}' for n, w in most.items())}"
    book.claim(
        "As in the paper, “questionable” is the most negative word",
        measured,
        set(most.values()) == {"questionable"},
    )
    order = [names[i] for i in (-attention).argsort()]
    measured = f"{' > '.join(order[:4])}; α-avg of popular {attention[names.index('popular')]:.4f}, theirs {max(THEIR_ATTENTION):.4f}"
    book.claim("As in the paper, attention ranks “popular” first", measured, order[0] == "popular")
    compared = zip(
        names,
        attention.round(4).tolist(),
        THEIR_ATTENTION,
        lime.round(4).tolist(),
        THEIR_LIME,
        strict=True,
    )
    book.table(
        "figures-paper",
        ("word", "α-avg", "theirs", "LIME", "theirs "),
        compared,
        "Ours, and what the authors' notebook prints.",
    )


def _heads(book: Notebook, game: Game, heads: Heads) -> None:
    a = heads.attention  # (head, place)
    book.head("The heads of one layer")
    book.say("The row of [CLS] in each head: the only row that reaches the output.")
    ax = new_axes(None, min(2.2 + 0.62 * a.shape[1], 14.0), 2.9)
    bar_beside(ax, ax.imshow(a, cmap=ramp(), vmin=0, vmax=1, aspect="auto"), "attention")
    label_axis(ax, "x", _places(game))
    ax.set_yticks(range(len(a)), [f"head {k + 1}" for k in range(len(a))])
    for (k, t), share in np.ndenumerate(a if a.shape[1] <= 16 else a[:0]):
        ax.text(
            t,
            k,
            f"{share:.2f}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if share > 0.5 else INK,
        )
    book.figure("figures-heads", ax, "Rows sum to one.")
    gap = abs(heads.output - game.full)
    book.claim(
        "Attention times values, summed, is the model's logit",
        f"{heads.output:.6f}, off by {gap:.1e} (float32)",
        gap < 1e-4,
    )
    tops = {game.passage.tokens[t] for t in a.argmax(1).tolist()}
    book.claim(
        "The heads do not agree on the strongest token",
        f"{len(tops)} from {len(a)} heads: {', '.join(sorted(tops))}",
        len(tops) > 1,
    )


def _gradient(book: Notebook, game: Game, heads: Heads) -> None:
    assert game.target.index is not None
    theory, slide, practice = (
        gradient(heads),
        gradient(heads, cls_term=False),
        autograd(game.model, heads, game.target.index),
    )
    book.head("The gradient, by formula and by autograd")
    book.say(
        "The theorem of the talk is about words. The query is made of [CLS], so the row of [CLS] has one term more."
    )
    from matplotlib import pyplot as plt

    shown = {
        "theory": theory,
        "autograd": practice,
        "difference": theory - practice,
        "difference without the [CLS] term": slide - practice,
    }
    fig, axes = plt.subplots(
        4, 1, figsize=(9.0, 1.2 + 4 * (0.5 + 0.14 * len(theory))), sharex=True, layout="constrained"
    )
    for ax, (name, m) in zip(axes, shown.items(), strict=True):
        most = (
            float(np.abs(m).max())
            if name.startswith("difference")
            else float(np.abs(practice).max())
        )
        most = max(most, np.finfo(float).tiny)
        bar = bar_beside(
            ax,
            ax.imshow(
                m,
                cmap=ramp(diverging=True),
                vmin=-most,
                vmax=most,
                aspect="auto",
                interpolation="none",
            ),
            "",
        )
        bar.set_ticks([-most, 0, most], labels=[f"−{most:.2g}", "0", f"{most:.2g}"])
        label_axis(ax, "y", _places(game))
        ax.set_title(name)
    axes[-1].set_xlabel("dimension of the embedding")
    book.figure(
        "figures-gradient",
        fig,
        "∂f/∂e: a row for each place. Mind the scales: that of the third picture is rounding.",
    )
    off, words = float(np.abs(theory - practice).max()), float(np.abs(slide - practice)[1:].max())
    book.claim(
        "The formula with the [CLS] term is the gradient, at every place",
        f"off by at most {off:.1e}",
        off < EXACT,
    )
    book.claim(
        "Without that term it is, for the words", f"off by at most {words:.1e}", words < EXACT
    )
    first = float(np.abs(slide - practice)[0].max())
    measured = (
        f"row [CLS] is off by {first:.1e}; its largest entry is {np.abs(practice[0]).max():.1e}"
    )
    book.claim("Without that term it is not, for [CLS]", measured, first > 1e-6)


def _sampling(book: Notebook, game: Game, lime: np.ndarray) -> None:
    from matplotlib import pyplot as plt

    d, shown, n = game.size, 24, 1000 if book.quick else 5000
    masks = draw_masks(d, n, np.random.default_rng(book.seed))  # (sample, word)
    weights, values = lime_weights(masks), game(masks)  # (sample,)
    book.head("LIME, step 1 to 3")
    book.say(
        "Draw how many words go, from 1 to all; then which. The nearer a sample is to the text, the more it weighs. Fit a line."
    )
    fig, (top, mid, low) = plt.subplots(
        3,
        1,
        figsize=(8.0, 3.2 + 0.2 * d),
        sharex=True,
        layout="constrained",
        height_ratios=(0.22 * d + 0.3, 1, 1),
    )
    top.pcolormesh(
        np.arange(shown + 1) - 0.5,
        np.arange(d + 1) - 0.5,
        masks[:shown].T,
        cmap=ramp(),
        vmax=1.8,
        ec="white",
        lw=1,
    )
    top.set_ylim(d - 0.5, -0.5)
    label_axis(top, "y", _words(game))
    mid.bar(range(shown), weights[:shown], color=PURPLE)
    low.bar(range(shown), values[:shown], color=[ORANGE if v > 0 else BLUE for v in values[:shown]])
    low.axhline(0, color=GREY, lw=0.8)
    mid.set(ylabel="weight π", ylim=(0, 1.05))
    low.set(ylabel="model's output", xlabel="sample (0 is the text itself)")
    fig.align_ylabels((mid, low))
    book.figure(
        "figures-samples",
        fig,
        f"The first {shown} samples: kept words, weights at ν = {BANDWIDTH}, and logits of “positive”.",
    )

    share, kept = (
        np.linspace(0, 1, 201),
        np.arange(d + 1)[:, None] > np.arange(d),
    )  # kept[k]: k of d words kept
    ax = new_axes(None, 7.0, 3.2)
    for nu, colour in ((0.1, BLUE), (BANDWIDTH, PURPLE), (1.0, ORANGE)):
        ax.plot(
            share,
            np.exp(-((1 - np.sqrt(1 - share)) ** 2) / (2 * nu**2)),
            color=colour,
            label=f"ν = {nu}",
        )
        ax.plot(1 - kept.mean(1), lime_weights(kept, nu), "o", color=colour, ms=4)
    ax.plot([0.75, 0.75, 0], [0, weight_at(0.5), weight_at(0.5)], ":", color=GREY, lw=1)
    ax.set(xlabel="share of words removed", ylabel="weight π", ylim=(0, 1.03), xlim=(0, 1.02))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "figures-weights",
        ax,
        f"Dots: this text, {d} words. Dotted: three quarters removed, δ = ½, at ν = {BANDWIDTH}.",
    )
    # four words of which one is left: δ = 1 − √¼
    quarter, none = lime_weights(np.eye(4, dtype=bool)[:1])[0], lime_weights(kept[:1])[0]
    book.claim(
        "A sample at δ = ½ weighs 0.135335", f"{quarter:.6f}", abs(quarter - 0.135335) < 5e-7
    )
    book.claim(
        "A sample with nothing left weighs e⁻⁸ = 3.3546e-4",
        f"{none:.4e}",
        abs(none - 3.3546e-4) < 5e-9,
    )

    fitted, bare = (
        surrogate(masks, values, weights),
        surrogate(masks, values, weights, intercept=False),
    )
    ax = new_axes(None, 7.5, 1.0 + 0.3 * d)
    ax.barh(
        np.arange(d),
        fitted,
        color=[ORANGE if b > 0 else BLUE for b in fitted],
        height=0.6,
        label=f"{n:,} samples",
    )
    ax.plot(lime, np.arange(d), "|", color=INK, ms=13, mew=1.5, label="exact limit")
    ax.plot(bare, np.arange(d), "x", color=GREY, ms=6, label="no intercept, as on the slide")
    ax.set(ylim=(d - 0.5, -0.5), xlabel="coefficient")
    ax.axvline(0, color=GREY, lw=0.8)
    label_axis(ax, "y", _words(game))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "figures-lime", ax, "What LIME gives out. Orange speaks for “positive”, blue against it."
    )
    near, far = (float(np.linalg.norm(b - lime) / np.linalg.norm(lime)) for b in (fitted, bare))
    book.claim(
        f"{n:,} samples come within 5 % of the limit of endlessly many",
        f"relative error {near:.1%}",
        near < 0.05,
    )
    constant = float(weights @ (values - masks @ fitted) / weights.sum())
    measured = f"relative error {far:.1%}; the fitted intercept is {constant:+.3f}, f(all removed) {game.empty:+.3f}"
    book.claim(
        "Without an intercept, as on the slide, they miss it by more than 5 %", measured, far > 0.05
    )
    additive = 1 + masks @ lime  # an offset, and the coefficients just found
    with_, without = (
        float(np.abs(surrogate(masks, additive, weights, i) - lime).max()) for i in (True, False)
    )
    measured = f"off by {with_:.1e} with an intercept, by {without:.2f} without"
    book.claim(
        "Of 1 + Σ β_j z_j LIME finds β, but only with an intercept",
        measured,
        with_ < 1e-9 and without > 0.01,
    )


def weight_at(delta: float) -> float:
    """π at a cosine distance, at the default bandwidth."""
    return float(np.exp(-(delta**2) / (2 * BANDWIDTH**2)))


def coloured(rows: dict[str, np.ndarray], words: Sequence[str], line: int = 84) -> Any:
    """A sentence for each row, its words on colours; a long one goes on below."""
    from matplotlib import pyplot as plt

    texts, style = plain([short(w) for w in words])
    wide = np.array([len(t) + 2 for t in texts])
    cuts = [
        int((np.cumsum(wide) // line).searchsorted(k))
        for k in range(np.cumsum(wide)[-1] // line + 1)
    ]
    pieces = [p for p in np.split(np.arange(len(texts)), cuts[1:]) if len(p)]
    fig, axes = plt.subplots(
        len(pieces),
        1,
        figsize=(9.0, 0.3 + 0.3 * len(rows) * len(pieces)),
        sharex=True,
        layout="constrained",
        squeeze=False,
    )
    for ax, piece in zip(axes.flat, pieces, strict=True):
        edges = np.concatenate([[0], np.cumsum(wide[piece])])
        for r, (name, values) in enumerate(rows.items()):
            most = max(float(np.abs(values).max()), np.finfo(float).tiny)
            signed = name in SIGNED
            scale = {
                "cmap": ramp(diverging=signed),
                "vmin": -1.2 if signed else 0,
                "vmax": 1.2 if signed else 2,
            }
            ax.pcolormesh(edges, [r, r + 1], values[None, piece] / most, ec="white", lw=2, **scale)
            for left, right, i in zip(edges, edges[1:], piece, strict=False):
                ax.text(
                    (left + right) / 2,
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


def _places(game: Game) -> Axis:
    return Axis(game.passage.tokens, game.passage.unit_of < 0, game.passage.parts)


def _words(game: Game) -> Axis:
    return Axis(game.units, np.zeros(game.size, dtype=bool), np.zeros(game.size, dtype=int))
