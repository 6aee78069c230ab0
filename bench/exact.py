"""Exact values: how their time grows with the number d of units, and how near sampling comes.

Sampling is ours and the lime package's, at several numbers of passes. The model is the bundled
single-layer one. Its LIME coefficients and Shapley values are known by formula, so that the truth
is no estimate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import whence
from bench.estimators import sentences
from whence.games.ratio import RatioOfSums
from whence.models.model import Model
from whence.theory.exact import exact_lime, exact_shapley
from whence.theory.heads import ratio_of

UNITS = (50, 100, 200, 400)
PASSES = (100, 200, 400, 800, 1600)


def heads(units: int, terms: int, sharpness: float, seed: int = 0) -> RatioOfSums:
    """Random heads; scores of standard deviation ``sharpness``."""
    rng = np.random.default_rng(seed)
    g, gh = np.exp(sharpness * rng.normal(size=(2, terms, units)))
    return RatioOfSums(
        n=g * rng.normal(size=g.shape),
        nh=gh * rng.normal(size=g.shape),
        g=g,
        gh=gh,
        n0=np.zeros(terms),
        d0=np.ones(terms),
    )


def growth(rounds: int = 3) -> Iterator[dict[str, Any]]:
    """Seconds of exact LIME (ν = 0.25) and exact Shapley values of one head.

    Each is the best of some rounds. The exponent is that of LIME's growth from one d to the next.
    """
    for sharpness in (0.5, 4.0):
        before = None
        for units in UNITS:
            ratio = heads(units, 1, sharpness)
            seconds = {
                "lime": _least_seconds(exact_lime, ratio, rounds),
                "shapley": _least_seconds(exact_shapley, ratio, rounds),
            }
            exponent = None
            if before is not None:
                exponent = float(np.log2(seconds["lime"] / before))
            before = seconds["lime"]
            yield {"d": units, "sharpness": sharpness, **seconds, "exponent": exponent}


def _least_seconds(
    value: Callable[[RatioOfSums], np.ndarray], ratio: RatioOfSums, rounds: int
) -> float:
    least = np.inf
    for _ in range(rounds):
        begun = time.process_time()
        value(ratio)
        least = min(least, time.process_time() - begun)
    return least


def sampling(model: Model, count: int, repetitions: int = 3) -> Iterator[dict[str, Any]]:
    """The median relative error beside the exact value, at each number of passes.

    Of our LIME, of plain least squares, of the lime package, and of our Shapley values.
    """
    explained, _ = sentences()
    chosen = [text for _, text in explained[:count]]
    for passes in PASSES:
        errors: dict[str, list[float]] = {
            "lime, ours": [],
            "lime, plain": [],
            "lime package": [],
            "shapley, ours": [],
        }
        for text in chosen:
            passage = model.encode(text)
            game = whence.game(model, passage, target="positive", removal="mask")
            ratio = ratio_of(model, passage, game.target, "mask")
            coefficients, shares = exact_lime(ratio), exact_shapley(ratio)
            for seed in range(repetitions):
                settings = {
                    "target": "positive",
                    "removal": "mask",
                    "samples": passes,
                    "exact": 2,
                    "seed": seed,
                }
                ours = whence.explain(model, passage, "lime", **settings, evidence=False)
                errors["lime, ours"].append(_off(ours.scores, coefficients))

                if passes >= 2 * (game.size + 2):
                    plain = whence.explain(
                        model, passage, "lime", estimator="plain", **settings, evidence=False
                    )
                    errors["lime, plain"].append(_off(plain.scores, coefficients))

                package = _package(ratio, passes, seed)
                errors["lime package"].append(_off(package, coefficients))

                shapley = whence.explain(model, passage, "shapley", **settings, evidence=False)
                errors["shapley, ours"].append(_off(shapley.scores, shares))
        yield {"passes": passes, **{name: _median(each) for name, each in errors.items()}}


def _median(errors: list[float]) -> float | None:
    if not errors:
        return None
    return float(np.median(errors))


def _package(ratio: RatioOfSums, passes: int, seed: int) -> np.ndarray:
    """The lime package, with its ridge, on the same values.

    Words are positions, and are removed in place (``bow=False``).
    """
    from lime.lime_text import LimeTextExplainer

    units = ratio.n.shape[1]
    names = [f"w{i}" for i in range(units)]

    def predict(texts: list[str]) -> np.ndarray:
        words = np.array([text.split(" ") for text in texts])
        value = ratio(words != "UNKWORDZ").sum(1)
        return np.stack([-value, value], 1)

    explainer = LimeTextExplainer(
        bow=False, split_expression=r"\s+", feature_selection="none", random_state=seed
    )
    explanation = explainer.explain_instance(
        " ".join(names), predict, num_features=units, num_samples=passes, labels=(1,)
    )
    weights = explanation.as_map()[1]
    return np.array([weight for _, weight in sorted(weights)])


def _off(scores: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(scores - truth) / np.linalg.norm(truth))


def report(full: bool) -> Iterator[dict[str, Any]]:
    """Both tables, printed and given back."""
    print(
        "exact values of one head, processor seconds; "
        "the exponent is that of d, from the line above"
    )
    print(f"{'d':>5} {'sharpness':>9} {'LIME':>8} {'Shapley':>8} {'exponent':>8}")
    for row in growth():
        exponent = "" if row["exponent"] is None else f"{row['exponent']:.2f}"
        seconds = f"{row['lime']:>8.3f} {row['shapley']:>8.3f}"
        print(f"{row['d']:>5} {row['sharpness']:>9} {seconds} {exponent:>8}", flush=True)
        yield {"what": "time of exact values", **row}

    model = whence.load("single-layer")
    count = 20 if full else 6
    print(
        f"median relative error beside the exact value, {count} sentences, 3 seeds, "
        "bundled single-layer model"
    )
    for row in sampling(model, count):
        errors = {name: error for name, error in row.items() if name != "passes"}
        cells = []
        for name, error in errors.items():
            shown = "–" if error is None else f"{error:.3f}"
            cells.append(f"{name} {shown}")
        print(f"{row['passes']:>5} passes: {'  '.join(cells)}", flush=True)
        yield {"what": "error beside the exact value", **row}
