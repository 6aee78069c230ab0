"""How explanations are judged: recall of known features, sensitivity, symmetric difference, remove and retrain, and simulated users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import expit, stdtrit

from whence.labs.figures import draw_masks, lime_weights, surrogate
from whence.notebook.book import Notebook
from whence.views.drawing import GREY, INK, new_axes

TITLE = "How explanations are judged"
G, FOUND, FEATURES = (
    {1, 3, 5},
    {3, 4, 5},
    set(range(1, 7)),
)  # the lecture's gold features, and those that a method found
TEXT, BUDGET = 30, 10  # words of a text; words that an explanation may name (Ribeiro et al. 2016)
SHARES, TEST = np.arange(11) / 10, 2000  # of features removed; rows to test on
INFORMATIVE, NOISE = (2.0, 1.6, 1.2, 0.9, 0.6, 0.4), 14  # true weights; how many features have none
CONTENT, LEAKS, READ, MOST = (
    40,
    8,
    3,
    12,
)  # words with a meaning, words that leak the label; texts a user reads, words seen of each
SEES, ERRS = 0.8, 0.1  # P(a user distrusts a leaking word), P(… any other word)
ORANGE, BLUE, PURPLE, GREEN = "#f3841c", "#549cde", "#7250b0", "#3a8f6b"
COLOURS = {"LIME": PURPLE, "greedy": ORANGE, "gradient": BLUE, "random": GREY}


def run(book: Notebook) -> None:
    """Everything is synthetic: a ground truth is known only where it was planted."""
    for part in (_recall, _sensitivity, _difference, _roar, _users):
        part(book)


def recall(gold: set[int], found: set[int]) -> float:
    """The share of the gold features that were found."""
    return len(gold & found) / len(gold)


def fit(
    x: Float[np.ndarray, "row feature"], y: Float[np.ndarray, " row"], ridge: float = 1.0
) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton's method; the penalty ridge/2 ‖w‖² leaves the bias alone."""
    x1, penalty = np.hstack([x, np.ones((len(x), 1))]), np.append(np.full(x.shape[1], ridge), 0.0)
    beta = np.zeros(x1.shape[1])
    for _ in range(10):  # quadratic convergence: six or seven steps do
        p = expit(x1 @ beta)
        hessian = (x1 * (p * (1 - p))[:, None]).T @ x1 + np.diag(penalty)
        beta = beta + np.linalg.solve(hessian, x1.T @ (y - p) - penalty * beta)
    return beta[:-1], float(beta[-1])


def accuracy(w: np.ndarray, b: float, x: np.ndarray, y: np.ndarray) -> float:
    """The share of rows whose label the model gives."""
    return float(((x @ w + b > 0) == (y > 0.5)).mean())


def orders(
    w: Float[np.ndarray, " word"], b: float, samples: int, rng: np.random.Generator
) -> dict[str, Int[np.ndarray, " ranked"]]:
    """The words of a text, w their weights in a logistic regression, from most to least important; greedy may name fewer."""
    masks, p = draw_masks(len(w), samples, rng), expit(w.sum() + b)
    lime = surrogate(masks, expit(masks @ w + b), lime_weights(masks))
    ranked = {
        "LIME": -np.abs(lime),
        "gradient": -np.abs(p * (1 - p) * w),
        "random": rng.random(len(w)),
    }
    return {
        "greedy": greedy(w, b),
        **{name: score.argsort(kind="stable") for name, score in ranked.items()},
    }


def greedy(w: Float[np.ndarray, " word"], b: float) -> Int[np.ndarray, " ranked"]:
    """Remove the word that speaks most for the predicted label, and again, until the label changes or no such word is left."""
    ours = w if w.sum() + b > 0 else -w  # what each word says for the predicted label
    order = (-ours).argsort(kind="stable")[: int((ours > 0).sum())]
    left = abs(w.sum() + b) - np.cumsum(ours[order])
    return order[: int((left > 0).sum()) + 1]


def integrated_gradients(
    grad: Callable[[np.ndarray], np.ndarray], x: np.ndarray, steps: int = 1000
) -> np.ndarray:
    """x ∫₀¹ ∇f(ax) da, by midpoints: the baseline is 0."""
    return x * np.mean([grad((i + 0.5) / steps * x) for i in range(steps)], axis=0)


def sparse_text(rng: np.random.Generator) -> Float[np.ndarray, " word"]:
    """The weights of a text's words in a sparse model, 1 to ``BUDGET`` of them not 0: those are the gold features."""
    while not 1 <= (gold := rng.random(TEXT) < 0.2).sum() <= BUDGET:
        pass
    return np.where(gold, rng.normal(0, 1.5, TEXT), 0.0)


def roar(
    x: np.ndarray, y: np.ndarray, order: Int[np.ndarray, "row ranked"], retrain: bool = True
) -> list[float]:
    """Test accuracy for each share removed, the first of every row's ranking made the mean of its feature; the last rows are the test."""
    model, mean, found = fit(x[:-TEST], y[:-TEST]), x[:-TEST].mean(0), []
    for share in SHARES:
        left, top = x.copy(), order[:, : round(share * x.shape[1])]
        np.put_along_axis(left, top, mean[top], axis=1)
        found.append(
            accuracy(*(fit(left[:-TEST], y[:-TEST]) if retrain else model), left[-TEST:], y[-TEST:])
        )
    return found


def leaking_texts(
    n: int, leak: bool, tilt: Float[np.ndarray, " content"], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Bags of words, and labels. With ``leak`` the last words tell the label, half of them each; in the world they do not."""
    y = (rng.random(n) < 0.5).astype(float)
    sign, side = 2 * y[:, None] - 1, np.where(np.arange(LEAKS) % 2 == 0, 1.0, -1.0)
    content = rng.random((n, CONTENT)) < expit(-1 + sign * tilt)
    leaks = rng.random((n, LEAKS)) < (expit(-1.2 + sign * side) if leak else 0.25)
    return np.hstack([content, leaks]).astype(float), y


def choice(
    shown: Sequence[tuple[np.ndarray, np.ndarray]], distrusted: Bool[np.ndarray, " word"]
) -> float:
    """1 if the words named for the leaking model (the first of a pair) hold more distrusted ones, ½ if as many, 0 if fewer."""
    leaking, clean = (
        sum(int(distrusted[words].sum()) for words in side) for side in zip(*shown, strict=True)
    )
    return 0.5 if leaking == clean else float(leaking > clean)


def interval(values: np.ndarray) -> np.ndarray:
    """Half of Student's 95 % interval of the mean over the first axis: of three seeds it is 4.3 standard errors, not 1.96."""
    return stdtrit(len(values) - 1, 0.975) * values.std(0, ddof=1) / sqrt(len(values))


def curves(
    ax: Any, x: Any, found: dict[str, np.ndarray], colours: Sequence[str], **legend: Any
) -> None:
    """Means over the first axis, in bands of their 95 % intervals."""
    for (name, values), colour in zip(found.items(), colours, strict=True):
        ax.plot(x, values.mean(0), "o-", color=colour, label=name, ms=3)
        ax.fill_between(
            x,
            values.mean(0) - interval(values),
            values.mean(0) + interval(values),
            color=colour,
            alpha=0.2,
            lw=0,
        )
    ax.legend(**{"frameon": False, "loc": "center left", "bbox_to_anchor": (1.0, 0.5)} | legend)


def _recall(book: Notebook) -> None:
    texts, samples = (60, 500) if book.quick else (300, 2000)
    book.head("Recall of known features")
    book.say(
        f"Gold features {sorted(G)}, found {sorted(FOUND)}: one is missed. To know the gold ones, take a model that can use few."
    )
    book.claim(
        "The lecture's example has a recall of 2/3",
        f"{recall(G, FOUND):.4f}",
        abs(recall(G, FOUND) - 2 / 3) < 1e-12,
    )
    rng, runs = np.random.default_rng(book.seed), {name: [] for name in COLOURS}
    for _ in book.track(range(texts), "recall, text"):
        gold = set(np.flatnonzero(w := sparse_text(rng)).tolist())
        for name, order in orders(w, 0.0, samples, rng).items():
            runs[name].append([recall(gold, set(order[:k].tolist())) for k in range(TEXT + 1)])
    found = {name: np.array(c) for name, c in runs.items()}  # (text, named words)
    ax = new_axes(None, 6.5, 3.4)
    ax.plot([0, TEXT], [0, 1], ":", color=INK, lw=1, label="expected of random")
    ax.axvline(BUDGET, color=GREY, lw=0.8, ls=":")
    curves(ax, range(TEXT + 1), found, list(COLOURS.values()))
    ax.set(
        xlabel="words that the explanation names",
        ylabel="recall of gold words",
        ylim=(0, 1.03),
        xlim=(0, TEXT),
    )
    book.figure(
        "judging-recall",
        ax,
        f"{texts} texts of {TEXT} words; LIME with {samples:,} samples. Bands: 95 % intervals.",
    )
    at, half = (
        {n: float(c[:, BUDGET].mean()) for n, c in found.items()},
        float(interval(found["random"])[BUDGET]),
    )
    book.claim(
        "LIME finds over 90 % of the gold words, as Ribeiro et al. report",
        f"{at['LIME']:.1%} at {BUDGET} words",
        at["LIME"] > 0.9,
    )
    measured = f"{at['random']:.3f} ± {half:.3f}, expected {BUDGET / TEXT:.3f}"
    book.claim(
        "Random words have a recall of budget / words",
        measured,
        abs(at["random"] - BUDGET / TEXT) < 2 * half,
    )
    book.claim(
        "The gradient of such a model misses nothing: it is p(1 − p)w",
        f"{at['gradient']:.4f}",
        at["gradient"] == 1,
    )
    book.claim(
        "Greedy removal, which stops when the label changes, finds fewer",
        f"{at['greedy']:.1%}",
        at["greedy"] < at["LIME"],
    )


def _sensitivity(book: Notebook) -> None:
    x = np.linspace(0, 3, 301)
    f, slope = 1 - np.maximum(1 - x, 0), (x < 1).astype(float)
    ig = np.array(
        [integrated_gradients(lambda z: (z < 1).astype(float), np.array([v]))[0] for v in x]
    )
    book.head("Sensitivity")
    book.say(
        "Inputs differ in one feature, and so do outputs: that feature must not get 0. The slide says: equal outputs."
    )
    ax = new_axes(None, 6.5, 3.0)
    ax.plot(x, f, color=INK, lw=3, alpha=0.35, label="f(x) = 1 − relu(1 − x)")
    ax.plot(x, slope, color=BLUE, label="gradient at x")
    ax.plot(x, ig, "--", color=PURPLE, label="integrated gradients from 0")
    ax.axvline(2, color=GREY, lw=0.8, ls=":")
    ax.set(xlabel="x", ylim=(-0.05, 1.1), xlim=(0, 3))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "judging-sensitivity",
        ax,
        "From 0 to 2 (dotted) f rises from 0 to 1, but at 2 it is flat: the gradient is 0.",
    )
    rise = f[200] - f[0]
    book.claim(
        "At x = 2 the gradient fails sensitivity",
        f"f rises by {rise:g}, gradient {slope[200]:g}",
        rise == 1 and slope[200] == 0,
    )
    book.claim(
        "Integrated gradients pass it", f"{ig[200]:.6f} = f(2) − f(0)", abs(ig[200] - rise) < 1e-9
    )
    dummy = integrated_gradients(lambda _: np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    measured = f"f(x₁, x₂) = x₁ at (1, 1) and (1, 0): equal outputs, x₂ gets {dummy[1]:g}, as a dummy should"
    book.claim("As the slide states it, integrated gradients would fail", measured, dummy[1] == 0)


def _difference(book: Notebook) -> None:
    from matplotlib import pyplot as plt

    texts, counts = (
        (25, (50, 100, 200, 400))
        if book.quick
        else (100, (50, 100, 200, 400, 800, 1600, 3200, 6400))
    )
    book.head("Symmetric difference")
    book.say(
        "What is in one set and not in both: gold words that were missed, and others that were named. 0 is best."
    )
    rng = np.random.default_rng(book.seed + 1)
    weights = [sparse_text(rng) for _ in range(texts)]
    gold = [set(np.flatnonzero(w).tolist()) for w in weights]

    def named(samples: int) -> dict[str, list[set[int]]]:
        ranked = [orders(w, 0.0, samples, rng) for w in weights]
        return {
            n: [set(o[n][: len(g)].tolist()) for o, g in zip(ranked, gold, strict=True)]
            for n in ("LIME", "gradient", "random")
        }

    def sizes(pairs: list[tuple[list[set[int]], list[set[int]]]]) -> Int[np.ndarray, "text count"]:
        return np.array([[len(a ^ b) for a, b in zip(*pair, strict=True)] for pair in pairs]).T

    # a word of weight 0 is exchanged for another: no output changes, for any mask, so explaining anew is to draw new samples
    runs = [(named(n), named(n)) for n in book.track(counts, "symmetric difference, samples")]
    missed = {
        n: sizes([(first[n], gold) for first, _ in runs]) for n in ("LIME", "gradient", "random")
    }
    moved = {
        n: sizes([(first[n], again[n]) for first, again in runs]) for n in ("LIME", "gradient")
    }
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(10.0, 3.2), layout="constrained", width_ratios=(1, 1.7)
    )
    for r, (members, colour) in enumerate(((G, BLUE), (FOUND, PURPLE), (G ^ FOUND, ORANGE))):
        for j in FEATURES:
            left.text(
                j, r, str(j), ha="center", va="center", color="white" if j in members else INK
            )
            left.scatter(j, r, s=420, color=colour if j in members else "#eceef1")
    left.set(
        xlim=(0.4, 6.6),
        ylim=(2.6, -0.6),
        xticks=[],
        yticks=range(3),
        yticklabels=["G", "G′", "G Δ G′"],
        frame_on=False,
    )
    left.tick_params(length=0)
    shown = {f"{n}, gold words": c for n, c in missed.items()} | {
        "LIME, an unread\nword exchanged": moved["LIME"]
    }
    curves(right, counts, shown, (PURPLE, BLUE, GREY, ORANGE))
    right.set_xscale("log", base=2)
    right.set_xticks(counts, [f"{n:,}" for n in counts])
    right.set(
        xlabel="samples",
        ylabel="words in one set only",
        title=f"{texts} texts, as many words named as are gold",
    )
    book.figure(
        "judging-difference",
        fig,
        "Left: G Δ G′. Right: its mean size, against the gold words and between two explanations.",
    )
    same = (FEATURES - G) ^ (FEATURES - FOUND)
    book.claim(
        "G Δ G′ = {1, 4}, also of the complements",
        f"{G ^ FOUND}, {same}",
        sorted(G ^ FOUND) == sorted(same) == [1, 4],
    )
    mean, again = missed["LIME"].mean(0), moved["LIME"].mean(0)
    falls = ", ".join(f"{n} samples {v:.2f}" for n, v in zip(counts, mean, strict=True))
    book.claim(
        "LIME's difference from the gold words falls with samples",
        falls,
        mean[-1] < mean[0] - interval(missed["LIME"])[0],
    )
    measured, still = (
        f"gradient {moved['gradient'].max()}; LIME {again[0]:.2f} → {again[-1]:.2f}",
        moved["gradient"].max() == 0,
    )
    book.claim(
        "Exchange an unread word, explain anew: the gradient's words stay, LIME's do not all",
        measured,
        still and again[-1] > 0,
    )


def _roar(book: Notebook) -> None:
    from matplotlib import pyplot as plt

    seeds, rows = (4, 400) if book.quick else (20, 1000)
    truth, n = np.array([*INFORMATIVE, *[0.0] * NOISE]), len(INFORMATIVE)
    plain, copied = [], []
    for seed in book.track(range(seeds), "remove and retrain, seed"):
        rng = np.random.default_rng([book.seed, seed])
        x = rng.normal(size=(rows + TEST, len(truth)))
        y = (rng.random(len(x)) < expit(x @ truth)).astype(float)
        w, by_truth, every = (
            fit(x[:rows], y[:rows])[0],
            (-truth).argsort(kind="stable"),
            np.ones((len(x), 1), dtype=int),
        )
        ways = {
            "true weight": every * by_truth,
            "gradient": every
            * (-np.abs(w)).argsort(),  # p(1 − p)|w|: the same ranking in every row
            "gradient × input": (-np.abs(x * w)).argsort(1),
            "random": rng.random(x.shape).argsort(1),
            "true weight, least first": every * by_truth[::-1],
        }
        plain.append({name: roar(x, y, order) for name, order in ways.items()})
        twice = np.tile(x[:, :n], 2) + 0.3 * rng.normal(
            size=(len(x), 2 * n)
        )  # noisy copies, of which the labels know nothing
        x = np.hstack([x[:, :n], twice, x[:, -2:]])
        order, other = (
            every * (-np.abs(fit(x[:rows], y[:rows])[0])).argsort(),
            rng.random(x.shape).argsort(1),
        )
        copied.append(
            {
                "gradient, retrained": roar(x, y, order),
                "gradient, not retrained": roar(x, y, order, retrain=False),
            }
        )
        copied[-1]["random, retrained"] = roar(x, y, other)
    single, twins = (
        {name: np.array([f[name] for f in found]) for name in found[0]} for found in (plain, copied)
    )  # (seed, share)
    book.head("Remove and retrain (ROAR)")
    book.say(
        f"{len(truth)} features, {n} with a weight. The top share becomes the mean in training and test rows; then train anew."
    )
    fig, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), sharey=True, layout="constrained")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 2}
    curves(axes[0], 100 * SHARES, single, (PURPLE, BLUE, ORANGE, GREY, GREEN), **below)
    curves(axes[1], 100 * SHARES, twins, (BLUE, ORANGE, GREY), **below)
    axes[0].set(xlabel="features removed, %", title="independent features", ylabel="test accuracy")
    axes[1].set(xlabel="features removed, %", title="every informative feature three times")
    book.figure("judging-roar", fig, f"Mean of {seeds} seeds, with 95 % intervals.")
    table = [
        (name, *(round(float(v), 4) for v in c.mean(0))) for name, c in (single | twins).items()
    ]
    book.table(
        "judging-accuracies",
        ("removed by", *(f"{t:.0%}" for t in SHARES)),
        table,
        "Test accuracy; the last three have copies.",
    )
    none, every = (np.array([c[:, i] for c in single.values()]) for i in (0, -1))
    measured = f"{none.mean():.3f} at 0 %, rankings differ by {np.ptp(none, axis=0).max():g}; {every.mean():.3f} at 100 %"
    book.claim(
        "At 0 % all are the model, at 100 % all guess",
        measured,
        np.ptp(none, axis=0).max() == 0 and abs(every.mean() - 0.5) < 0.02,
    )
    area = {name: float(c.mean()) for name, c in single.items()}
    measured = ", ".join(f"{name} {a:.3f}" for name, a in area.items())
    ordered = area["true weight"] < area["random"] < area["true weight, least first"]
    book.claim(
        "Mean accuracy: the true ranking below random, random below its reverse", measured, ordered
    )
    lowest = min(area, key=area.__getitem__)
    book.claim(
        "No ranking makes accuracy fall faster than the true weights",
        f"lowest mean: {lowest}",
        lowest == "true weight",
    )
    kept, lost = (twins[f"gradient, {name}"].mean(0)[3] for name in ("retrained", "not retrained"))
    measured = f"at 30 % removed: {kept:.3f} retrained, {lost:.3f} not"
    book.claim(
        "Where features have copies, retraining hides that the model lost what it used",
        measured,
        kept > lost + 0.05,
    )


def _users(book: Notebook) -> None:
    seeds, texts, users, samples = (3, 20, 60, 300) if book.quick else (12, 60, 200, 1000)
    scores, shares = [], {name: np.zeros((seeds, MOST)) for name in COLOURS}
    for seed in book.track(range(seeds), "simulated users, seed"):
        rng = np.random.default_rng([book.seed, seed, 1])
        tilt = rng.normal(0, 0.35, CONTENT)
        (x, y), held, world = (
            leaking_texts(n, leak, tilt, rng)
            for n, leak in ((1500, True), (TEST, True), (TEST, False))
        )
        (w, b), both = fit(x[:, :CONTENT], y), fit(x, y)
        models = both, (np.append(w, np.zeros(LEAKS)), b)
        scores.append([accuracy(*m, *data) for data in (held, world) for m in models])
        bags = [np.flatnonzero(text) for text in held[0][:texts]]
        ranked = [
            [{n: bag[o] for n, o in orders(w[bag], b, samples, rng).items()} for w, b in models]
            for bag in bags
        ]
        for _ in range(users):
            distrusted = rng.random(CONTENT + LEAKS) < np.repeat([ERRS, SEES], [CONTENT, LEAKS])
            read = [ranked[i] for i in rng.choice(texts, READ, replace=False)]
            for name in COLOURS:  # random words are drawn anew for every user
                pairs = [
                    [rng.permutation(m[name]) if name == "random" else m[name] for m in both]
                    for both in read
                ]
                shares[name][seed] += [
                    choice([(a[:k], c[:k]) for a, c in pairs], distrusted) / users
                    for k in range(1, MOST + 1)
                ]
    book.head("Simulated users choose a model")
    book.say(
        f"One model may use {LEAKS} words that leak the label, the other saw none. A user reads {READ} texts explained for both."
    )
    book.say(
        f"Users distrust a leaking word with probability {SEES}, any other with {ERRS}; they take the model that names fewer."
    )
    ax = new_axes(None, 6.5, 3.4)
    curves(ax, range(1, MOST + 1), shares, list(COLOURS.values()))
    ax.axhline(0.5, color=INK, lw=0.8, ls=":")
    ax.set(
        xlabel="words seen of each text and model",
        ylabel="share of right choices",
        ylim=(0.3, 1.02),
    )
    book.figure(
        "judging-users",
        ax,
        f"{users} users for each of {seeds} seeds; bands: 95 % intervals over seeds. Dotted: a coin.",
    )
    rows = [(name, *(round(float(v), 3) for v in c.mean(0))) for name, c in shares.items()]
    book.table(
        "judging-choices",
        ("words", *map(str, range(1, MOST + 1))),
        rows,
        "Share of right choices by number of words seen.",
    )
    a, b, c, d = np.array(scores).T  # (seed,): held out leaking, clean; in the world leaking, clean
    fooled = int(((a > b) & (c < d)).sum())
    measured = f"{a.mean():.3f} > {b.mean():.3f}, {c.mean():.3f} < {d.mean():.3f}; {fooled} of {seeds} seeds"
    book.claim(
        "The leaking model wins on held-out texts and loses in the world: accuracy would mislead",
        measured,
        fooled == seeds,
    )
    at, mean = {name: c[:, 4].mean() for name, c in shares.items()}, shares["LIME"].mean(0)
    measured = ", ".join(f"{name} {v:.3f}" for name, v in at.items())
    book.claim(
        "With five words of LIME users choose right more often than with random ones",
        measured,
        at["LIME"] > at["random"] + 0.1,
    )
    coin, error = float(shares["random"].mean()), 0.5 / sqrt(seeds * users)
    book.claim(
        "Random words are no better than a coin",
        f"{coin:.3f}, standard error at most {error:.3f}",
        abs(coin - 0.5) < 3 * error,
    )
    measured = f"LIME: {mean.max():.3f} at {int(mean.argmax()) + 1} words, {mean[-1]:.3f} at {MOST}"
    book.claim(
        "More words are not always better: in the end both lists are the whole text",
        measured,
        mean[-1] < mean.max(),
    )
