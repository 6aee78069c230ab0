"""How explanations are judged: recall of known features, sensitivity, symmetric difference, remove
and retrain, and simulated users.

Everything is synthetic: a ground truth is known only where it was planted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import expit, stdtrit

from whence.labs.figures import draw_masks, lime_weights, surrogate
from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, INK, ORANGE, PURPLE

TITLE = "How explanations are judged"

# ---------------------------------------------------------------------- settings

# The lecture's example: six features, the gold ones among them, and those that a method found.
FEATURES = set(range(1, 7))
G = {1, 3, 5}
FOUND = {3, 4, 5}

# Recall and symmetric difference: a text, and what an explanation may name of it.
TEXT = 30  # words
BUDGET = 10  # words that an explanation may name (Ribeiro et al. 2016)

# Remove and retrain.
SHARES = np.arange(11) / 10  # of the features that are removed
TEST = 2000  # rows to test on
INFORMATIVE = (2.0, 1.6, 1.2, 0.9, 0.6, 0.4)  # true weights
NOISE = 14  # features without a weight

# Simulated users.
CONTENT = 40  # words with a meaning
LEAKS = 8  # words that leak the label
READ = 3  # texts that a user reads
MOST = 12  # words that a user sees of each
SEES = 0.8  # the probability that a user distrusts a leaking word
ERRS = 0.1  # the probability that a user distrusts any other word

GREEN = "#3a8f6b"
COLOURS = {"LIME": PURPLE, "greedy": ORANGE, "gradient": BLUE, "random": GREY}


def run(book: Notebook) -> None:
    """Five ways of judging, one after the other."""
    _recall(book)
    _sensitivity(book)
    _difference(book)
    _roar(book)
    _users(book)


# ---------------------------------------------------------------------- models


def fit(
    x: Float[np.ndarray, "row feature"], y: Float[np.ndarray, " row"], ridge: float = 1.0
) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton's method: the weights and the bias.

    The penalty ridge/2 ‖w‖² leaves the bias alone.
    """
    with_bias = np.hstack([x, np.ones((len(x), 1))])  # (row, feature + 1)
    penalty = np.append(np.full(x.shape[1], ridge), 0.0)  # (feature + 1,)
    beta = np.zeros(with_bias.shape[1])
    for _ in range(10):  # quadratic convergence: six or seven steps do
        p = expit(with_bias @ beta)  # (row,)
        slope = with_bias.T @ (y - p) - penalty * beta
        hessian = (with_bias * (p * (1 - p))[:, None]).T @ with_bias + np.diag(penalty)
        beta = beta + np.linalg.solve(hessian, slope)
    return beta[:-1], float(beta[-1])


def accuracy(w: np.ndarray, b: float, x: np.ndarray, y: np.ndarray) -> float:
    """The share of rows whose label the model gives."""
    return float(((x @ w + b > 0) == (y > 0.5)).mean())


def sparse_text(rng: np.random.Generator) -> Float[np.ndarray, " word"]:
    """The weights of a text's words in a sparse model.

    One to ``BUDGET`` of them are not 0: those are the gold features.
    """
    while True:
        gold = rng.random(TEXT) < 0.2
        if 1 <= gold.sum() <= BUDGET:
            return np.where(gold, rng.normal(0, 1.5, TEXT), 0.0)


# ---------------------------------------------------------------------- explainers


def orders(
    w: Float[np.ndarray, " word"], b: float, samples: int, rng: np.random.Generator
) -> dict[str, Int[np.ndarray, " ranked"]]:
    """The words of a text from most to least important, by each explainer.

    ``w`` are their weights in a logistic regression. Greedy removal may name fewer than all.
    """
    masks = draw_masks(len(w), samples, rng)  # (sample, word)
    lime = surrogate(masks, expit(masks @ w + b), lime_weights(masks))
    p = expit(w.sum() + b)
    gradient = p * (1 - p) * w
    return {
        "greedy": greedy(w, b),
        "LIME": (-np.abs(lime)).argsort(kind="stable"),
        "gradient": (-np.abs(gradient)).argsort(kind="stable"),
        "random": rng.random(len(w)).argsort(kind="stable"),
    }


def greedy(w: Float[np.ndarray, " word"], b: float) -> Int[np.ndarray, " ranked"]:
    """Remove the word that speaks most for the predicted label, and again.

    It ends when the label changes or when no such word is left.
    """
    logit = w.sum() + b
    speaks_for = w if logit > 0 else -w  # what each word says for the predicted label
    order = (-speaks_for).argsort(kind="stable")[: int((speaks_for > 0).sum())]
    left = abs(logit) - np.cumsum(speaks_for[order])  # of the logit, after each removal
    return order[: int((left > 0).sum()) + 1]


def integrated_gradients(
    grad: Callable[[np.ndarray], np.ndarray], x: np.ndarray, steps: int = 1000
) -> np.ndarray:
    """x ∫₀¹ ∇f(ax) da, by midpoints: the baseline is 0."""
    slopes = [grad((i + 0.5) / steps * x) for i in range(steps)]
    return x * np.mean(slopes, axis=0)


# ---------------------------------------------------------------------- measures and curves


def recall(gold: set[int], named: set[int]) -> float:
    """The share of the gold features that were named."""
    return len(gold & named) / len(gold)


def interval(values: np.ndarray) -> np.ndarray:
    """Half of Student's 95 % interval of the mean over the first axis.

    Of three seeds it is 4.3 standard errors, not 1.96.
    """
    count = len(values)
    quantile = stdtrit(count - 1, 0.975)
    return quantile * values.std(0, ddof=1) / sqrt(count)


def curves(
    ax: Any, x: Any, series: dict[str, np.ndarray], colours: Sequence[str], **legend: Any
) -> None:
    """Means over the first axis, in bands of their 95 % intervals."""
    for (name, values), colour in zip(series.items(), colours, strict=True):
        mean, half = values.mean(0), interval(values)
        ax.plot(x, mean, "o-", color=colour, label=name, ms=3)
        ax.fill_between(x, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
    beside = {"frameon": False, "loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    ax.legend(**(beside | legend))


# ---------------------------------------------------------------------- recall


def _recall(book: Notebook) -> None:
    texts, samples = 300, 2000
    if book.quick:
        texts, samples = 60, 500

    book.head("Recall of known features")
    book.say(
        "Plant the truth, then see how much of it an explanation finds. Here the features "
        f"that the model really uses (gold) are {sorted(G)}, an explanation names "
        f"{sorted(FOUND)}, and one is missed: recall is the share of gold features that were "
        "found. To know the gold ones for sure, the models below can use few words only."
    )
    example = recall(G, FOUND)
    book.claim(
        "The lecture's example has a recall of 2/3", f"{example:.4f}", abs(example - 2 / 3) < 1e-12
    )

    rng = np.random.default_rng(book.seed)
    recalls: dict[str, list[list[float]]] = {name: [] for name in COLOURS}
    for _ in book.track(range(texts), "recall, text"):
        w = sparse_text(rng)
        gold = set(np.flatnonzero(w).tolist())
        for name, order in orders(w, 0.0, samples, rng).items():
            named = [set(order[:k].tolist()) for k in range(TEXT + 1)]
            recalls[name].append([recall(gold, words) for words in named])
    by_name = {name: np.array(rows) for name, rows in recalls.items()}  # (text, words named)

    ax = drawing.new_axes(6.5, 3.4)
    ax.plot([0, TEXT], [0, 1], ":", color=INK, lw=1, label="expected of random")
    ax.axvline(BUDGET, color=GREY, lw=0.8, ls=":")
    curves(ax, range(TEXT + 1), by_name, list(COLOURS.values()))
    ax.set(
        xlabel="words that the explanation names",
        ylabel="recall of gold words",
        ylim=(0, 1.03),
        xlim=(0, TEXT),
    )
    book.figure(
        "judging-recall",
        ax,
        f"Share of the gold words among those that an explanation names first; {texts} texts "
        f"of {TEXT} words, LIME with {samples:,} samples. Bands: 95 % intervals.",
    )

    at_budget = {name: float(values[:, BUDGET].mean()) for name, values in by_name.items()}
    book.claim(
        "LIME finds over 90 % of the gold words, as Ribeiro et al. report",
        f"{at_budget['LIME']:.1%} at {BUDGET} words",
        at_budget["LIME"] > 0.9,
    )
    expected = BUDGET / TEXT
    half = float(interval(by_name["random"])[BUDGET])
    book.claim(
        "Random words have a recall of budget / words",
        f"{at_budget['random']:.3f} ± {half:.3f}, expected {expected:.3f}",
        abs(at_budget["random"] - expected) < 2 * half,
    )
    book.claim(
        "The gradient of such a model misses nothing: it is p(1 − p)w",
        f"{at_budget['gradient']:.4f}",
        at_budget["gradient"] == 1,
    )
    book.claim(
        "Greedy removal, which stops when the label changes, finds fewer",
        f"{at_budget['greedy']:.1%}",
        at_budget["greedy"] < at_budget["LIME"],
    )


# ---------------------------------------------------------------------- sensitivity


def _sensitivity(book: Notebook) -> None:
    def step(z: np.ndarray) -> np.ndarray:
        """The gradient of f(x) = 1 − relu(1 − x)."""
        return (z < 1).astype(float)

    x = np.linspace(0, 3, 301)
    f = 1 - np.maximum(1 - x, 0)
    slope = step(x)
    integrated = np.array([integrated_gradients(step, np.array([value]))[0] for value in x])

    book.head("Sensitivity")
    book.say(
        "A sound rule for a method: if two inputs differ in one feature and their outputs "
        "differ too, that feature must not get a score of 0. (The slide says “equal outputs”, "
        "which would forbid something right: see the claims.)"
    )
    ax = drawing.new_axes(6.5, 3.0)
    ax.plot(x, f, color=INK, lw=3, alpha=0.35, label="f(x) = 1 − relu(1 − x)")
    ax.plot(x, slope, color=BLUE, label="gradient at x")
    ax.plot(x, integrated, "--", color=PURPLE, label="integrated gradients from 0")
    ax.axvline(2, color=GREY, lw=0.8, ls=":")
    ax.set(xlabel="x", ylim=(-0.05, 1.1), xlim=(0, 3))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "judging-sensitivity",
        ax,
        "From 0 to 2 (dotted) f rises from 0 to 1, but at 2 it is flat: the gradient is 0.",
    )

    two = 200  # the index of x = 2
    rise = f[two] - f[0]
    book.claim(
        "At x = 2 the gradient fails sensitivity",
        f"f rises by {rise:g}, gradient {slope[two]:g}",
        rise == 1 and slope[two] == 0,
    )
    book.claim(
        "Integrated gradients pass it",
        f"{integrated[two]:.6f} = f(2) − f(0)",
        abs(integrated[two] - rise) < 1e-9,
    )
    dummy = integrated_gradients(lambda _: np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    book.claim(
        "As the slide states it, integrated gradients would fail",
        f"f(x₁, x₂) = x₁ at (1, 1) and (1, 0): equal outputs, x₂ gets {dummy[1]:g}, "
        "as a dummy should",
        dummy[1] == 0,
    )


# ---------------------------------------------------------------------- symmetric difference


def differences(
    one: Sequence[Sequence[set[int]]], other: Sequence[Sequence[set[int]]]
) -> Int[np.ndarray, "text count"]:
    """The size of one Δ other for each number of samples and each text."""
    rows = []
    for sets, other_sets in zip(one, other, strict=True):
        rows.append([len(a ^ b) for a, b in zip(sets, other_sets, strict=True)])
    return np.array(rows).T


def _difference(book: Notebook) -> None:
    texts = 100
    counts: tuple[int, ...] = (50, 100, 200, 400, 800, 1600, 3200, 6400)
    if book.quick:
        texts, counts = 25, counts[:4]

    book.head("Symmetric difference")
    book.say(
        "Two sets of words differ by what is in one of them and not in both: gold words that "
        "were missed, and others that were named instead. A difference of 0 is best."
    )
    rng = np.random.default_rng(book.seed + 1)
    weights = [sparse_text(rng) for _ in range(texts)]
    gold = [set(np.flatnonzero(w).tolist()) for w in weights]
    names = ("LIME", "gradient", "random")

    def explain(samples: int) -> dict[str, list[set[int]]]:
        """The words named for each text, as many as are gold."""
        named: dict[str, list[set[int]]] = {name: [] for name in names}
        for w, gold_words in zip(weights, gold, strict=True):
            ranked = orders(w, 0.0, samples, rng)
            for name in names:
                named[name].append(set(ranked[name][: len(gold_words)].tolist()))
        return named

    # A word of weight 0 is exchanged for another: no output changes, for any mask. So explaining
    # anew is to draw new samples.
    first, again = [], []
    for samples in book.track(counts, "symmetric difference, samples"):
        first.append(explain(samples))
        again.append(explain(samples))

    missed = {}  # beside the gold words, (text, count)
    moved = {}  # beside the explanation of the exchanged text, (text, count)
    for name in names:
        named = [sets[name] for sets in first]
        missed[name] = differences(named, [gold] * len(counts))
        moved[name] = differences(named, [sets[name] for sets in again])
    _draw_difference(book, texts, counts, missed, moved["LIME"])

    difference = G ^ FOUND
    of_complements = (FEATURES - G) ^ (FEATURES - FOUND)
    book.claim(
        "G Δ G′ = {1, 4}, also of the complements",
        f"{difference}, {of_complements}",
        sorted(difference) == sorted(of_complements) == [1, 4],
    )
    mean = missed["LIME"].mean(0)  # (count,)
    falls = [f"{samples} samples {value:.2f}" for samples, value in zip(counts, mean, strict=True)]
    book.claim(
        "LIME's difference from the gold words falls with samples",
        ", ".join(falls),
        mean[-1] < mean[0] - interval(missed["LIME"])[0],
    )
    lime_moved = moved["LIME"].mean(0)  # (count,)
    gradient_moved = moved["gradient"].max()
    book.claim(
        "Exchange an unread word, explain anew: the gradient's words stay, LIME's do not all",
        f"gradient {gradient_moved}; LIME {lime_moved[0]:.2f} → {lime_moved[-1]:.2f}",
        gradient_moved == 0 and lime_moved[-1] > 0,
    )


def _draw_difference(
    book: Notebook,
    texts: int,
    counts: Sequence[int],
    missed: dict[str, np.ndarray],
    lime_moved: np.ndarray,
) -> None:
    from matplotlib import pyplot as plt

    fig, (left, right) = plt.subplots(
        1, 2, figsize=(10.0, 3.2), layout="constrained", width_ratios=(1, 1.7)
    )
    for row, (members, colour) in enumerate(((G, BLUE), (FOUND, PURPLE), (G ^ FOUND, ORANGE))):
        for feature in FEATURES:
            ink, ground = INK, "#eceef1"
            if feature in members:
                ink, ground = "white", colour
            left.text(feature, row, str(feature), ha="center", va="center", color=ink)
            left.scatter(feature, row, s=420, color=ground)
    left.set(
        xlim=(0.4, 6.6),
        ylim=(2.6, -0.6),
        xticks=[],
        yticks=range(3),
        yticklabels=["G", "G′", "G Δ G′"],
        frame_on=False,
    )
    left.tick_params(length=0)

    series = {f"{name}, gold words": sizes for name, sizes in missed.items()}
    series["LIME, an unread\nword exchanged"] = lime_moved
    curves(right, counts, series, (PURPLE, BLUE, GREY, ORANGE))
    right.set_xscale("log", base=2)
    right.set_xticks(counts, [f"{samples:,}" for samples in counts])
    right.set(
        xlabel="samples",
        ylabel="words in one set only",
        title=f"{texts} texts, as many words named as are gold",
    )
    book.figure(
        "judging-difference",
        fig,
        "Left: the two sets and their symmetric difference G Δ G′. Right: its mean size, "
        "against the gold words and between two explanations of almost the same text.",
    )


# ---------------------------------------------------------------------- remove and retrain


def roar(
    x: np.ndarray, y: np.ndarray, order: Int[np.ndarray, "row ranked"], retrain: bool = True
) -> list[float]:
    """Test accuracy for each share of features removed; the last rows are the test.

    The first features of every row's ranking become the mean of their column.
    """
    w, b = fit(x[:-TEST], y[:-TEST])
    mean = x[:-TEST].mean(0)  # (feature,)
    accuracies = []
    for share in SHARES:
        removed = order[:, : round(share * x.shape[1])]  # (row, removed)
        left = x.copy()
        np.put_along_axis(left, removed, mean[removed], axis=1)
        if retrain:
            w, b = fit(left[:-TEST], y[:-TEST])
        accuracies.append(accuracy(w, b, left[-TEST:], y[-TEST:]))
    return accuracies


def _roar_of_one_seed(
    rows: int, rng: np.random.Generator
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Accuracies by ranking, once with independent features, once with copies of them."""
    truth = np.array([*INFORMATIVE, *[0.0] * NOISE])  # (feature,)
    informative = len(INFORMATIVE)
    x = rng.normal(size=(rows + TEST, len(truth)))  # (row, feature)
    y = (rng.random(len(x)) < expit(x @ truth)).astype(float)  # (row,)
    every_row = np.ones((len(x), 1), dtype=int)  # one ranking for all rows

    by_truth = (-truth).argsort(kind="stable")
    w, _ = fit(x[:rows], y[:rows])
    rankings = {
        "true weight": every_row * by_truth,
        # p(1 − p)|w|: the same ranking in every row
        "gradient": every_row * (-np.abs(w)).argsort(),
        "gradient × input": (-np.abs(x * w)).argsort(1),
        "random": rng.random(x.shape).argsort(1),
        "true weight, least first": every_row * by_truth[::-1],
    }
    single = {name: roar(x, y, order) for name, order in rankings.items()}

    # noisy copies, of which the labels know nothing
    noise = 0.3 * rng.normal(size=(len(x), 2 * informative))
    copies = np.tile(x[:, :informative], 2) + noise
    x = np.hstack([x[:, :informative], copies, x[:, -2:]])
    w, _ = fit(x[:rows], y[:rows])
    by_gradient = every_row * (-np.abs(w)).argsort()
    at_random = rng.random(x.shape).argsort(1)
    copied = {
        "gradient, retrained": roar(x, y, by_gradient),
        "gradient, not retrained": roar(x, y, by_gradient, retrain=False),
        "random, retrained": roar(x, y, at_random),
    }
    return single, copied


def _stacked(runs: Sequence[dict[str, list[float]]]) -> dict[str, Float[np.ndarray, "seed share"]]:
    stacked = {}
    for name in runs[0]:
        stacked[name] = np.array([accuracies[name] for accuracies in runs])
    return stacked


def _roar(book: Notebook) -> None:
    from matplotlib import pyplot as plt

    seeds, rows = 20, 1000
    if book.quick:
        seeds, rows = 4, 400
    single_runs, copied_runs = [], []
    for seed in book.track(range(seeds), "remove and retrain, seed"):
        of_single, of_copied = _roar_of_one_seed(rows, np.random.default_rng([book.seed, seed]))
        single_runs.append(of_single)
        copied_runs.append(of_copied)
    single, copied = _stacked(single_runs), _stacked(copied_runs)

    book.head("Remove and retrain (ROAR)")
    informative = len(INFORMATIVE)
    book.say(
        "Take away the features that a ranking calls important, train a new model on what is "
        "left, and see how much worse it gets: the faster accuracy falls, the better the "
        f"ranking. Here there are {informative + NOISE} features, {informative} of them with a "
        "weight; “removed” means replaced by the mean, in training and in test rows."
    )
    fig, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), sharey=True, layout="constrained")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 2}
    curves(axes[0], 100 * SHARES, single, (PURPLE, BLUE, ORANGE, GREY, GREEN), **below)
    curves(axes[1], 100 * SHARES, copied, (BLUE, ORANGE, GREY), **below)
    axes[0].set(xlabel="features removed, %", title="independent features", ylabel="test accuracy")
    axes[1].set(xlabel="features removed, %", title="every informative feature three times")
    book.figure(
        "judging-roar",
        fig,
        f"Test accuracy against the share of features removed; mean of {seeds} seeds, with 95 "
        "% intervals. Right: every informative feature is there three times.",
    )
    table = []
    for name, values in (single | copied).items():
        table.append((name, *(round(float(mean), 4) for mean in values.mean(0))))
    book.table(
        "judging-accuracies",
        ("removed by", *(f"{share:.0%}" for share in SHARES)),
        table,
        "Test accuracy by the share of features removed. In the last three rows every "
        "informative feature has copies.",
    )

    none_removed = np.array([values[:, 0] for values in single.values()])  # (ranking, seed)
    all_removed = np.array([values[:, -1] for values in single.values()])
    spread = np.ptp(none_removed, axis=0).max()
    book.claim(
        "At 0 % all are the model, at 100 % all guess",
        f"{none_removed.mean():.3f} at 0 %, rankings differ by {spread:g}; "
        f"{all_removed.mean():.3f} at 100 %",
        spread == 0 and abs(all_removed.mean() - 0.5) < 0.02,
    )
    area = {name: float(values.mean()) for name, values in single.items()}
    book.claim(
        "Mean accuracy: the true ranking below random, random below its reverse",
        ", ".join(f"{name} {mean:.3f}" for name, mean in area.items()),
        area["true weight"] < area["random"] < area["true weight, least first"],
    )
    lowest = min(area, key=area.__getitem__)
    book.claim(
        "No ranking makes accuracy fall faster than the true weights",
        f"lowest mean: {lowest}",
        lowest == "true weight",
    )
    retrained = copied["gradient, retrained"].mean(0)[3]  # at 30 % removed
    not_retrained = copied["gradient, not retrained"].mean(0)[3]
    book.claim(
        "Where features have copies, retraining hides that the model lost what it used",
        f"at 30 % removed: {retrained:.3f} retrained, {not_retrained:.3f} not",
        retrained > not_retrained + 0.05,
    )


# ---------------------------------------------------------------------- simulated users


def leaking_texts(
    n: int, leak: bool, tilt: Float[np.ndarray, " content"], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Bags of words (text, word), and labels.

    With ``leak`` the last words tell the label, half of them each; in the world they do not.
    """
    y = (rng.random(n) < 0.5).astype(float)  # (text,)
    sign = 2 * y[:, None] - 1  # (text, 1)
    content = rng.random((n, CONTENT)) < expit(-1 + sign * tilt)  # (text, content)
    side = np.where(np.arange(LEAKS) % 2 == 0, 1.0, -1.0)  # (leak,)
    probability = expit(-1.2 + sign * side) if leak else 0.25
    leaks = rng.random((n, LEAKS)) < probability  # (text, leak)
    return np.hstack([content, leaks]).astype(float), y


def choice(
    shown: Sequence[tuple[np.ndarray, np.ndarray]], distrusted: Bool[np.ndarray, " word"]
) -> float:
    """1 if a user takes the clean model, 0 if the leaking one, ½ if the user cannot tell.

    ``shown`` are the words named for the leaking and for the clean model, text by text. The user
    takes the model that names fewer distrusted words.
    """
    leaking = sum(int(distrusted[words].sum()) for words, _ in shown)
    clean = sum(int(distrusted[words].sum()) for _, words in shown)
    if leaking == clean:
        return 0.5
    return float(leaking > clean)


Ranking = dict[str, Int[np.ndarray, " _"]]  # the words of one text and model, by explainer


def _choices_of_one_user(
    ranked: Sequence[tuple[Ranking, Ranking]], rng: np.random.Generator
) -> dict[str, list[float]]:
    """What one user chooses after 1, 2, … ``MOST`` words of each text, for each explainer."""
    chances = np.repeat([ERRS, SEES], [CONTENT, LEAKS])
    distrusted = rng.random(CONTENT + LEAKS) < chances  # (word,)
    read = [ranked[i] for i in rng.choice(len(ranked), READ, replace=False)]
    choices = {}
    for name in COLOURS:
        pairs = []
        for leaking, clean in read:
            pair = leaking[name], clean[name]
            if name == "random":  # random words are drawn anew for every user
                pair = rng.permutation(pair[0]), rng.permutation(pair[1])
            pairs.append(pair)
        choices[name] = []
        for k in range(1, MOST + 1):
            shown = [(leaking[:k], clean[:k]) for leaking, clean in pairs]
            choices[name].append(choice(shown, distrusted))
    return choices


def _users(book: Notebook) -> None:
    seeds, texts, users, samples = 12, 60, 200, 1000
    if book.quick:
        seeds, texts, users, samples = 3, 20, 60, 300

    accuracies = []  # (seed, 4): held out leaking, clean; in the world leaking, clean
    shares = {name: np.zeros((seeds, MOST)) for name in COLOURS}
    for seed in book.track(range(seeds), "simulated users, seed"):
        rng = np.random.default_rng([book.seed, seed, 1])
        tilt = rng.normal(0, 0.35, CONTENT)
        x, y = leaking_texts(1500, True, tilt, rng)
        held_out = leaking_texts(TEST, True, tilt, rng)
        world = leaking_texts(TEST, False, tilt, rng)

        w, b = fit(x[:, :CONTENT], y)
        clean = np.append(w, np.zeros(LEAKS)), b
        leaking = fit(x, y)
        accuracies.append(
            [
                accuracy(*leaking, *held_out),
                accuracy(*clean, *held_out),
                accuracy(*leaking, *world),
                accuracy(*clean, *world),
            ]
        )

        ranked = []
        for text in held_out[0][:texts]:
            bag = np.flatnonzero(text)
            both = []
            for w, b in (leaking, clean):
                by_name = orders(w[bag], b, samples, rng)
                both.append({name: bag[order] for name, order in by_name.items()})
            ranked.append((both[0], both[1]))
        for _ in range(users):
            for name, choices in _choices_of_one_user(ranked, rng).items():
                shares[name][seed] += [each / users for each in choices]

    book.head("Simulated users choose a model")
    book.say(
        f"Can explanations help people to choose the better model? One model may use {LEAKS} "
        "words that leak the label (they would not be there in the real world), the other "
        f"never saw them. A simulated user reads {READ} texts, explained for both."
    )
    book.say(
        f"The user distrusts a leaking word with probability {SEES} and any other word with "
        f"{ERRS}, and takes the model whose explanations name fewer distrusted words."
    )
    ax = drawing.new_axes(6.5, 3.4)
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
        f"How often the better model is chosen: {users} simulated users for each of {seeds} "
        "seeds; bands are 95 % intervals over seeds. The dotted line is a coin.",
    )
    rows = []
    for name, values in shares.items():
        rows.append((name, *(round(float(mean), 3) for mean in values.mean(0))))
    book.table(
        "judging-choices",
        ("words", *map(str, range(1, MOST + 1))),
        rows,
        "Share of right choices, by the number of words that the user sees of each explanation.",
    )

    leaking_held, clean_held, leaking_world, clean_world = np.array(accuracies).T  # (seed,) each
    fooled = int(((leaking_held > clean_held) & (leaking_world < clean_world)).sum())
    book.claim(
        "The leaking model wins on held-out texts and loses in the world: accuracy would mislead",
        f"{leaking_held.mean():.3f} > {clean_held.mean():.3f}, "
        f"{leaking_world.mean():.3f} < {clean_world.mean():.3f}; {fooled} of {seeds} seeds",
        fooled == seeds,
    )
    with_five = {name: values[:, 4].mean() for name, values in shares.items()}
    book.claim(
        "With five words of LIME users choose right more often than with random ones",
        ", ".join(f"{name} {mean:.3f}" for name, mean in with_five.items()),
        with_five["LIME"] > with_five["random"] + 0.1,
    )
    coin = float(shares["random"].mean())
    error = 0.5 / sqrt(seeds * users)
    book.claim(
        "Random words are no better than a coin",
        f"{coin:.3f}, standard error at most {error:.3f}",
        abs(coin - 0.5) < 3 * error,
    )
    lime = shares["LIME"].mean(0)  # (words seen,)
    book.claim(
        "More words are not always better: in the end both lists are the whole text",
        f"LIME: {lime.max():.3f} at {int(lime.argmax()) + 1} words, {lime[-1]:.3f} at {MOST}",
        lime[-1] < lime.max(),
    )
