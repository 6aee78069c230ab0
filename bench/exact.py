"""Exact values: their time over d, and how far sampling is from them for a number of passes, for ours and for the lime package.

The model is the bundled single-layer one, whose LIME coefficients and Shapley values are known by formula: the truth is no estimate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
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
        g * rng.normal(size=g.shape),
        gh * rng.normal(size=g.shape),
        g,
        gh,
        np.zeros(terms),
        np.ones(terms),
    )


def growth(rounds: int = 3) -> Iterator[dict[str, Any]]:
    """Seconds of exact LIME (ν = 0.25) and Shapley values of one head, the best of some rounds, and the exponent from one d to the next."""
    for sharpness in (0.5, 4.0):
        before = None
        for units in UNITS:
            ratio = heads(units, 1, sharpness)
            seconds = {}
            for name, value in (("lime", exact_lime), ("shapley", exact_shapley)):
                best = np.inf
                for _ in range(rounds):
                    begun = time.process_time()
                    value(ratio)
                    best = min(best, time.process_time() - begun)
                seconds[name] = best
            exponent = None if before is None else float(np.log2(seconds["lime"] / before))
            before = seconds["lime"]
            yield {"d": units, "sharpness": sharpness, **seconds, "exponent": exponent}


def sampling(model: Model, count: int, repetitions: int = 3) -> Iterator[dict[str, Any]]:
    """The median relative error beside the exact value, for numbers of passes: our LIME, plain least squares, and the lime package."""
    chosen = [text for _, text in sentences()[0][:count]]
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
            truth, shares = exact_lime(ratio), exact_shapley(ratio)
            for seed in range(repetitions):
                given = {
                    "target": "positive",
                    "removal": "mask",
                    "samples": passes,
                    "exact": 2,
                    "seed": seed,
                }
                errors["lime, ours"].append(
                    _off(whence.explain(model, passage, "lime", **given).scores, truth)
                )
                if passes >= 2 * (game.size + 2):
                    errors["lime, plain"].append(
                        _off(
                            whence.explain(
                                model, passage, "lime", estimator="plain", **given
                            ).scores,
                            truth,
                        )
                    )
                errors["lime package"].append(_off(_package(ratio, passes, seed), truth))
                errors["shapley, ours"].append(
                    _off(whence.explain(model, passage, "shapley", **given).scores, shares)
                )
        yield {
            "passes": passes,
            **{name: float(np.median(found)) if found else None for name, found in errors.items()},
        }


def _package(ratio: RatioOfSums, passes: int, seed: int) -> np.ndarray:
    """The lime package, with its ridge, on the same values; words are positions, and removed in place (``bow=False``)."""
    from lime.lime_text import LimeTextExplainer

    units = ratio.n.shape[1]
    names = [f"w{i}" for i in range(units)]

    def predict(texts: list[str]) -> np.ndarray:
        kept = np.array([[word != "UNKWORDZ" for word in text.split(" ")] for text in texts])
        value = ratio(kept).sum(1)
        return np.stack([-value, value], 1)

    explainer = LimeTextExplainer(
        bow=False, split_expression=r"\s+", feature_selection="none", random_state=seed
    )
    found = explainer.explain_instance(
        " ".join(names), predict, num_features=units, num_samples=passes, labels=(1,)
    ).as_map()[1]
    return np.array([weight for _, weight in sorted(found)])


def _off(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def report(full: bool) -> Iterator[dict[str, Any]]:
    """Both tables, printed and given back."""
    print(
        "exact values of one head, processor seconds; the exponent is that of d, from the line above"
    )
    print(f"{'d':>5} {'sharpness':>9} {'LIME':>8} {'Shapley':>8} {'exponent':>8}")
    for row in growth():
        exponent = "" if row["exponent"] is None else f"{row['exponent']:.2f}"
        print(
            f"{row['d']:>5} {row['sharpness']:>9} {row['lime']:>8.3f} {row['shapley']:>8.3f} {exponent:>8}",
            flush=True,
        )
        yield {"what": "time of exact values", **row}
    model = whence.load("single-layer")
    count = 20 if full else 6
    print(
        f"median relative error beside the exact value, {count} sentences, 3 seeds, bundled single-layer model"
    )
    for row in sampling(model, count):
        told = "  ".join(
            f"{name} {error:.3f}" if error is not None else f"{name} –"
            for name, error in row.items()
            if name != "passes"
        )
        print(f"{row['passes']:>5} passes: {told}", flush=True)
        yield {"what": "error beside the exact value", **row}
