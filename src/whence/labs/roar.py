"""Remove and retrain: take away the words that an explanation calls important, train anew, and see
what was lost. And the desiderata of explanations, each with what measures it here.

The texts are generated, so that the best accuracy that is possible after each removal is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

import whence
from whence.notebook import Notebook, drawing
from whence.notebook.drawing import BLUE, GREY, INK, ORANGE

TITLE = "Remove and retrain"

# ---------------------------------------------------------------------- settings

GOOD = ("fine", "great", "lovely", "superb", "funny")
BAD = ("dull", "awful", "poor", "stale", "boring")
THINGS = ("film", "plot", "room", "meal", "song")
CLAUSES = ("the {thing} was {how}", "a {how} {thing}", "it had a {how} {thing}", "{how} {thing}")
VOTES = 3  # words of praise or blame in a text
AGREES = 0.85  # the probability that such a word is of the text's label
LABELS = ("negative", "positive")

METHODS = ("occlusion", "gradient-x-input", "gradient-l2", "attention-mean")
ORACLE = "the votes, known"
LEAKING = "front or back by label"
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Size:
    """How much is trained."""

    train: int
    test: int
    seeds: int
    shares: tuple[float, ...]
    kept: tuple[float, ...]  # shares where the important words stay; none: left out
    again: tuple[float, ...]  # shares after which models are explained anew
    methods: tuple[str, ...]
    recursive: tuple[str, ...]
    texts: int  # of the table of desiderata
    training: whence.Training


TRAINING = whence.Training(epochs=10, batch=32, rate=3e-3)
FULL = Size(
    train=320,
    test=400,
    seeds=5,
    shares=SHARES,
    kept=(0.0, 0.5, 0.9, 1.0),
    again=(0.0, 0.1, 0.3, 0.5),
    methods=METHODS,
    recursive=("occlusion", "gradient-x-input"),
    texts=20,
    training=TRAINING,
)
QUICK = Size(
    train=240,
    test=120,
    seeds=2,
    shares=(0.0, 0.1, 0.3, 1.0),
    kept=(),
    again=(0.0, 0.1, 0.3),
    methods=METHODS[:2],
    recursive=("occlusion",),
    texts=3,
    training=TRAINING,
)
LEAKING_SHARE = 0.3


def run(book: Notebook) -> None:
    """The curves, their faults with a control for each, and the table of desiderata."""
    size = QUICK if book.quick else FULL
    rng = np.random.default_rng(book.seed)
    train = [a_text(i % 2, rng) for i in range(size.train)]
    test = [a_text(i % 2, rng) for i in range(size.test)]

    plain = _curves(book, size, train, test)
    _recursive(book, size, train, test, plain)
    _leaks(book, size, train, test)
    _in_distribution(book, size, train, test)
    _desiderata(book, size, train, test, plain)


# ---------------------------------------------------------------------- texts


def a_text(label: int, rng: np.random.Generator) -> tuple[str, str]:
    """A text of three clauses and its label; each clause votes, and is right 85 times in 100."""
    clauses = []
    for _ in range(VOTES):
        sides = label if rng.random() < AGREES else 1 - label
        how = rng.choice((BAD, GOOD)[sides])
        clause = str(rng.choice(CLAUSES)).format(thing=rng.choice(THINGS), how=how)
        clauses.append(clause)
    return " and ".join(clauses), LABELS[label]


def is_vote(word: str) -> bool:
    """Whether a word speaks for a label."""
    return word in GOOD or word in BAD


def votes_of(_model: whence.Model, passage: whence.Passage) -> list[float]:
    """The ranking that knows: the words that vote, before all others."""
    return [float(is_vote(name)) for name in passage.names]


def by_label(model: whence.Model, passage: whence.Passage) -> np.ndarray:
    """A ranking that looks at no word: from the front if the model says positive, else the back."""
    places = np.arange(len(passage.names), dtype=float)
    says_positive = model.predict([passage])[0].label == LABELS[1]
    return -places if says_positive else places


# ---------------------------------------------------------------------- what is possible


def best_with(votes: int) -> float:
    """The best accuracy with so many votes left: their majority, a coin where they are even."""
    accuracy = 0.0
    for right in range(votes + 1):
        chance = comb(votes, right) * AGREES**right * (1 - AGREES) ** (votes - right)
        accuracy += chance * (1.0 if 2 * right > votes else 0.5 if 2 * right == votes else 0.0)
    return accuracy


def best_after(words: int, removed: int, knows: bool) -> float:
    """The best accuracy on a text of which so many words are gone.

    They are votes as long as there are any (``knows``), or drawn at random: then the votes that
    are left have the hypergeometric distribution.
    """
    if knows:
        return best_with(max(0, VOTES - removed))
    expected = 0.0
    for left in range(VOTES + 1):
        others = words - removed - left  # words that are left and do not vote
        if others >= 0:
            ways = comb(VOTES, left) * comb(words - VOTES, others)
            expected += ways / comb(words, removed) * best_with(left)
    return expected


def best_curve(
    texts: Sequence[tuple[str, str]], shares: Sequence[int | float], knows: bool
) -> np.ndarray:
    """The mean over texts, for each share of their words."""
    sizes = [len(text.split()) for text, _ in texts]
    curve = []
    for share in shares:
        of_texts = [best_after(n, min(n, int(share * n + 0.5 + 1e-9)), knows) for n in sizes]
        curve.append(np.mean(of_texts))
    return np.array(curve)


# ---------------------------------------------------------------------- the figure


def _curves(book: Notebook, size: Size, train: Sequence[Any], test: Sequence[Any]) -> whence.Roar:
    book.head("Accuracy against the share of words removed")
    book.say(
        "Each text has three words that vote for a label, and each of them is right "
        f"{AGREES:.0%} of the time. A small BERT is trained on {size.train} texts and explained. "
        "The words that an explanation ranks first are masked in training and test texts, and a "
        "new model is trained. The faster accuracy falls, the better the ranking. Random "
        "rankings are the control. As the texts are generated, the best accuracy that is "
        "possible is known (thin lines): for a ranking that knows the votes, and for a random one."
    )
    options: dict[str, Any] = {"training": size.training, "seeds": size.seeds, "seed": book.seed}
    r = whence.roar(
        train,
        test,
        size.methods,
        rankings={ORACLE: votes_of},
        shares=size.shares,
        progress=book.tell,
        **options,
    )
    knowing = best_curve(test, size.shares, knows=True)
    guessing = best_curve(test, size.shares, knows=False)

    ax = drawing.new_axes(7.2, 3.9)
    r.plot(ax)
    removed = 100 * np.array(size.shares)
    ax.plot(removed, knowing, "-.", color=INK, lw=0.9, label="best possible, votes first")
    ax.plot(removed, guessing, "-", color=INK, lw=0.7, label="best possible, at random")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "roar-curves",
        ax,
        f"Remove and retrain: {size.train} texts to train, {size.test} to test, mean of "
        f"{size.seeds} seeds with Student's 95 % intervals.",
    )
    _table(book, "roar-accuracies", r)
    _claims_of_curves(book, r, knowing, guessing)

    if size.kept:
        kept = whence.roar(
            train,
            test,
            size.methods,
            rankings={ORACLE: votes_of},
            shares=size.kept,
            keep=True,
            progress=book.tell,
            **options,
        )
        book.say(
            "The other way round (keep and retrain, KAR): the least important words go first. Now "
            "the slower accuracy falls, the better."
        )
        book.figure("roar-kept", kept.plot(), "Keep and retrain, with the same texts and seeds.")
        above = {name: kept.against_random(name) for name in (ORACLE, *size.methods)}
        book.claim(
            "Kept longest, the known votes keep more than random words do",
            f"mean height above random: {above[ORACLE]}",
            above[ORACLE].low > 0,
        )
    return r


def _table(book: Notebook, name: str, r: whence.Roar) -> None:
    rows = []
    for ranking in r.accuracies:
        means = [f"{value:.3f}" for value in r.accuracies[ranking].mean(0)]
        rows.append((ranking, *means, str(r.against_random(ranking))))
    book.table(
        name,
        ("removed first", *(f"{share:.0%}" for share in r.shares), "below random"),
        rows,
        "Test accuracy by the share of words removed. Last: how far the mean height of the curve "
        "lies below that of random rankings, with a 95 % interval over seeds.",
    )


def _claims_of_curves(
    book: Notebook, r: whence.Roar, knowing: np.ndarray, guessing: np.ndarray
) -> None:
    first = np.array([values[:, 0] for values in r.accuracies.values()])
    last = np.array([values[:, -1] for values in r.accuracies.values()])
    noise = 2 * float(np.sqrt(0.25 / r.test_texts))
    book.claim(
        "Nothing removed: all rankings are the same model",
        f"{first.mean():.3f}, rankings differ by {np.ptp(first, axis=0).max():g}",
        np.ptp(first, axis=0).max() == 0,
    )
    book.claim(
        "Everything removed: the most frequent label",
        f"{last.mean():.3f}, prior {r.prior:.3f}; two standard errors of the test {noise:.3f}",
        abs(last.mean() - r.prior) < noise,
    )
    book.claim(
        "Removing the votes first makes accuracy fall faster than removing at random",
        f"mean height below random: {r.against_random(ORACLE)}",
        r.against_random(ORACLE).low > 0,
    )
    better = [name for name in r.accuracies if name != "random" and r.against_random(name).low > 0]
    methods = [name for name in r.accuracies if name not in ("random", ORACLE)]
    book.claim(
        "Every method here falls faster than random",
        "; ".join(f"{name} {r.against_random(name)}" for name in methods),
        all(name in better for name in methods),
    )
    over = {}
    for name, best in ((ORACLE, knowing), ("random", guessing)):
        over[name] = float((r.accuracies[name].mean(0) - best).max())
    book.claim(
        "No retrained model is better than is possible, but for the test's own noise",
        ", ".join(f"{name} {value:+.3f} at most" for name, value in over.items()),
        max(over.values()) < noise,
    )


# ---------------------------------------------------------------------- recursion


def _recursive(
    book: Notebook, size: Size, train: Sequence[Any], test: Sequence[Any], plain: whence.Roar
) -> None:
    book.head("Explained anew at each step")
    book.say(
        "Where words say the same, a model may look at one and leave the other. The first ranking "
        "does not know what the next model will look at. Recursive ROAR (Madsen et al. 2022) asks "
        "each retrained model which words go next."
    )
    r = whence.roar(
        train,
        test,
        size.recursive,
        shares=size.again,
        recursive=True,
        training=size.training,
        seeds=size.seeds,
        seed=book.seed,
        progress=book.tell,
    )
    once = {name: plain.accuracies[name][:, : len(size.again)].mean(0) for name in r.accuracies}
    again = {name: values.mean(0) for name, values in r.accuracies.items()}
    ax = drawing.new_axes(6.4, 3.4)
    removed = 100 * r.shares
    for name, colour in zip((*size.recursive, "random"), (ORANGE, BLUE, GREY), strict=False):
        ax.plot(removed, once[name], "o--", color=colour, ms=3, label=name)
        if name != "random":
            ax.plot(removed, again[name], "s-", color=colour, ms=3, label=f"{name}, recursive")
    ax.set(xlabel="words removed, %", ylabel="test accuracy, retrained")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    book.figure(
        "roar-recursive", ax, f"Ranked once (dashed) and anew at each step; {size.seeds} seeds."
    )
    said = [f"{name} {once[name].mean():.3f} → {again[name].mean():.3f}" for name in size.recursive]
    book.claim(
        "Asked at each step, a method makes accuracy fall at least as fast",
        f"mean accuracy over the shares: {'; '.join(said)}",
        all(again[name].mean() <= once[name].mean() + 0.01 for name in size.recursive),
    )


# ---------------------------------------------------------------------- leaks


def _leaks(book: Notebook, size: Size, train: Sequence[Any], test: Sequence[Any]) -> None:
    book.head("What the holes give away")
    book.say(
        "A ranking is made for the label that the model predicts, so the removal itself can tell "
        "the label (Rong et al. 2022). Here is a ranking that looks at no word: it removes from "
        "the front where the model says positive, else from the back. The control replaces every "
        "word that is left by one and the same token, so that only the places of the masks can be "
        "read, and trains a model on that: what it gets right beyond the prior is a leak."
    )
    r = whence.roar(
        train,
        test,
        size.methods[:1],
        rankings={LEAKING: by_label},
        shares=(LEAKING_SHARE,),
        patterns=True,
        training=size.training,
        seeds=size.seeds,
        seed=book.seed,
        progress=book.tell,
    )
    ax = drawing.new_axes(6.4, 2.6)
    for row, (name, values) in enumerate(r.patterns.items()):
        read, holes = r.accuracies[name], values
        for accuracies, shift, colour in ((read, -0.18, BLUE), (holes, 0.18, ORANGE)):
            ax.barh(row + shift, accuracies.mean(), 0.34, color=colour, alpha=0.5)
            ax.plot(accuracies[:, 0], np.full(len(accuracies), row + shift), "|", color=INK)
    ax.axvline(r.prior, color=INK, lw=0.8, ls=":")
    ax.set(
        yticks=range(len(r.patterns)),
        yticklabels=list(r.patterns),
        xlim=(0.4, 1),
        xlabel=f"test accuracy with {LEAKING_SHARE:.0%} of the words masked",
    )
    ax.invert_yaxis()
    book.figure(
        "roar-leaks",
        ax,
        "Blue: models that read what is left. Orange: models that see only where masks stand. "
        f"Ticks: the {size.seeds} seeds. Dotted: the most frequent label.",
    )
    leaks = {name: r.leak(name) for name in r.patterns}
    book.claim(
        "The holes of a ranking by label give the label away; ROAR alone would call it harmless",
        f"holes only {leaks[LEAKING].mean:+.3f} above the prior; accuracy "
        f"{r.area(LEAKING).mean:.3f} where random removal leaves {r.area('random').mean:.3f}",
        leaks[LEAKING].mean > 0.2 and r.area(LEAKING).mean > r.area("random").mean,
    )
    noise = 3 * float(np.sqrt(0.25 / size.test))
    method = size.methods[0]
    book.claim(
        f"The holes of {method}, which does look at words, give away no more than noise would",
        f"{leaks[method]} above the prior, three standard errors {noise:.3f}",
        leaks[method].mean < noise,
    )
    book.claim(
        "The holes of random rankings tell nothing",
        f"{leaks['random'].mean:+.3f} at most, three standard errors {noise:.3f}",
        leaks["random"].mean < noise,
    )


# ---------------------------------------------------------------------- in distribution


def _in_distribution(book: Notebook, size: Size, train: Sequence[Any], test: Sequence[Any]) -> None:
    book.head("Instead of retraining: a model that knows removals")
    book.say(
        "Retraining asks about many models. The other way is one copy of the model, tuned on "
        "texts with words removed at random, and to say what that cost. The gauge tells how far "
        "removal takes texts from the data, as the model sees them: the share of whole texts "
        "that lie further out than the median text with words removed. 0.5 looks like data; 0 is "
        "further out than every text."
    )
    book.tell("tuning for removal")
    model = whence.train_small(train, training=size.training, seed=book.seed)
    tuned = whence.tuned_for_removal(
        model, train, held_out=test, training=size.training, seed=book.seed
    )
    texts = [text for text, _ in test[:120]]
    shares = (0.1, 0.3, 0.5, 0.9)
    rows = []
    for name, each in (("as trained", model), ("tuned for mask", tuned.model)):
        for gauge in whence.removal_gauge(each, texts, ["mask", "delete"], shares=shares):
            values = (f"{value:.2f}" for value in gauge.like_data)
            rows.append((name, gauge.removal, *values))
    book.table(
        "roar-gauge",
        ("model", "removal", *(f"{share:.0%}" for share in shares)),
        rows,
        "Share of whole texts that lie further out than the median text with that share of its "
        "words removed.",
    )
    book.claim(
        "Tuning for masks costs no more than three points of accuracy on whole texts",
        f"{tuned.before:.3f} before, {tuned.after:.3f} after, cost {tuned.cost}",
        tuned.cost.mean < 0.03,
    )
    book.claim(
        "On texts with words masked at random, the tuned model is right at least as often",
        f"{tuned.removed_before:.3f} before, {tuned.removed_after:.3f} after, gain {tuned.gain}",
        tuned.gain.mean >= 0,
    )


# ---------------------------------------------------------------------- desiderata

# What the lecture asks of an explanation, and the metrics that measure it, by their names.
DESIDERATA = (
    ("plausibility", "identical inputs, identical explanations", ("consistency",)),
    ("plausibility", "identical models, identical explanations", ("implementation-invariance",)),
    ("plausibility", "similar inputs, similar explanations", ("robustness",)),
    ("faithfulness", "the known features are named", ("recall",)),
    ("faithfulness", "what changes the output gets a score", ("sensitivity",)),
    ("faithfulness", "what changes nothing gets none", ("dummy", "non-sensitivity")),
    ("faithfulness", "larger scores, larger loss", ("monotonicity",)),
    ("faithfulness", "few words carry the prediction", ("effective-complexity",)),
    ("faithfulness", "without its words the output is lost", ("comprehensiveness", "deletion")),
    ("faithfulness", "its words alone are enough", ("sufficiency", "insertion")),
    ("faithfulness", "scores add up to what removal does",
     ("infidelity", "sensitivity-n", "faithfulness-correlation")),
    ("faithfulness", "another model, another explanation", ("model-randomisation",)),
    ("human evaluation", "short", ("compactness",)),
)  # fmt: skip


def _desiderata(
    book: Notebook, size: Size, train: Sequence[Any], test: Sequence[Any], plain: whence.Roar
) -> None:
    book.head("The desiderata, and what measures them")
    book.say(
        "What the lecture asks of an explanation, the metrics of whence for it, and what they "
        f"give the methods above on {size.texts} of the test texts: the mean, and behind it the "
        "mean of the same metric on random rankings. Every method is asked about the model that "
        "was trained on all words. A metric that makes explanations again is whence.evaluate's."
    )
    model = whence.train_small(train, training=size.training, seed=book.seed)
    measured = _measured(book, size, model, [text for text, _ in test[: size.texts]])
    known = {metric.name: metric for metric in whence.list_metrics()}
    rows: list[tuple[str, ...]] = []
    for kind, wish, names in DESIDERATA:
        for name in names:
            cells = [measured.get((name, method), "") for method in size.methods]
            if name not in known:
                cells = ["not in this version"] * len(cells)
            elif not any(cells):
                cells = ["by whence.evaluate"] * len(cells)
            better = known[name].better if name in known else ""
            rows.append((kind, wish, name, better, *cells))
    roar_cells = [str(plain.against_random(method)) for method in size.methods]
    asked = "retrained without its words, accuracy falls"
    rows.append(("faithfulness", asked, "whence.roar", "higher", *roar_cells))
    book.table(
        "roar-desiderata",
        ("kind", "what is asked", "metric", "better", *size.methods),
        rows,
        "Mean over texts (of random rankings). whence.roar: how far the curve lies below random, "
        "with its interval.",
    )
    listed = {name for _, _, names in DESIDERATA for name in names}
    here = sorted(listed & set(known))
    book.claim(
        "Every desideratum of the lecture has a metric here",
        f"{len(here)} of {len(listed)}; missing: {', '.join(sorted(listed - set(here))) or 'none'}",
        len(here) == len(listed),
    )


def _measured(
    book: Notebook, size: Size, model: whence.Model, texts: Sequence[str]
) -> Mapping[tuple[str, str], str]:
    """The mean of each metric for each method, beside random rankings, where measure can."""
    listed = {name for _, _, names in DESIDERATA for name in names}
    metrics = [metric.name for metric in whence.list_metrics() if metric.name in listed]
    values: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for text in book.track(texts, "desiderata, text"):
        comparison = whence.compare(model, text, list(size.methods), evidence=False)
        game = whence.game(model, text, read="probability")
        gold = [is_vote(name) for name in game.passage.names]
        for metric in metrics:
            for method in size.methods:
                try:
                    m = whence.measure(game, comparison[method], metric, gold=gold, rankings=40)
                except whence.Unsupported:  # it makes explanations again
                    continue
                values.setdefault((metric, method), []).append((m.value, m.random_mean))
    cells = {}
    for key, pairs in values.items():
        own, random = np.mean(pairs, axis=0)
        cells[key] = f"{own:.3g} ({random:.3g})"
    return cells
