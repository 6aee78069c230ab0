"""Passes to reach a relative error of 10 %, on real sentences: LIME and Shapley values by the lime package, by shap, and by ours.

The relative error is |β̂ − β| / |β| over the words of one sentence; β is our own estimate from many masks, or enumeration of all. shap's
partition explainer computes Owen values of a tree over the words, another quantity; it is held against the Shapley values all the same,
and, on a line of its own, against its own limit.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import whence
from whence.games.sampling import GOLDEN
from whence.methods.lime import Lime
from whence.methods.shapley import Shapley
from whence.models.model import Model

SENTENCES = Path(__file__).with_name("sentences.tsv")
EXPLAINED = 30
WANTED = 0.1
GRID = (50, 100, 200, 400, 800, 1600, 3200)
OWN = "to its own limit"
RIDGE = 10.0  # of the head


@dataclass(frozen=True)
class Extent:
    """How much of the study to do: sentences, masks for the truth, repetitions of each estimator, the largest number of passes."""

    sentences: int
    truth: int
    repetitions: int
    most: int


FULL = Extent(EXPLAINED, 20_000, 3, GRID[-1])
REDUCED = Extent(4, 2000, 1, 800)


@dataclass(eq=False)
class Table:
    """A game that remembers its values, in a file if one is named."""

    game: Any
    path: Path | None = None
    known: dict[bytes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            saved = np.load(self.path)
            self.known = dict(
                zip(
                    (row.tobytes() for row in np.packbits(saved["masks"], axis=1)),
                    saved["values"].tolist(),
                    strict=True,
                )
            )

    @property
    def size(self) -> int:
        return self.game.size

    def __call__(self, masks: Any) -> np.ndarray:
        masks = np.asarray(masks).astype(bool)
        keys = [row.tobytes() for row in np.packbits(masks, axis=1)]
        new = {key: i for i, key in enumerate(keys) if key not in self.known}
        if new:
            self.known |= zip(new, self.game(masks[list(new.values())]).tolist(), strict=True)
        return np.array([self.known[key] for key in keys])

    def save(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            packed = np.array([np.frombuffer(key, dtype=np.uint8) for key in self.known])
            np.savez(
                self.path,
                masks=np.unpackbits(packed, axis=1)[:, : self.size].astype(bool),
                values=list(self.known.values()),
            )


# ---------------------------------------------------------------------- who estimates what: from a table and a number of passes to scores

Estimator = Callable[[Table, Sequence[int], int], dict[int, np.ndarray]]


def ours(make: Callable[..., Any], estimator: str) -> Estimator:
    def run(table: Table, grid: Sequence[int], seed: int) -> dict[int, np.ndarray]:
        return {n: make(samples=n, estimator=estimator, seed=seed)(table).units for n in grid}

    return run


def lime_package(ridge: float | None) -> Estimator:
    """Its own draws, and its own fit to the first n of them. The words are their numbers, so that a perturbed text says which are left."""

    def run(table: Table, grid: Sequence[int], seed: int) -> dict[int, np.ndarray]:
        from lime.lime_text import IndexedString, LimeTextExplainer
        from sklearn.linear_model import Ridge

        explainer = LimeTextExplainer(
            bow=False,
            mask_string="_",
            split_expression=r"\s+",
            feature_selection="none",
            random_state=seed,
        )
        words = IndexedString(
            " ".join(map(str, range(table.size))),
            bow=False,
            split_expression=r"\s+",
            mask_string="_",
        )

        def values(texts: Sequence[str]) -> np.ndarray:
            return table([[word != "_" for word in text.split()] for text in texts])[:, None]

        draw = getattr(explainer, "_LimeTextExplainer__data_labels_distances")  # noqa: B009
        data, found, distances = draw(words, values, grid[-1])
        model = None if ridge is None else Ridge(alpha=ridge, fit_intercept=True)
        out = {}
        for n in grid:
            _, pairs, _, _ = explainer.base.explain_instance_with_data(
                data[:n],
                found[:n],
                distances[:n],
                0,
                table.size,
                model_regressor=model,
                feature_selection="none",
            )
            out[n] = np.array([score for _, score in sorted(dict(pairs).items())])
        return out

    return run


def shap_kernel(l1_reg: Any) -> Estimator:
    def run(table: Table, grid: Sequence[int], seed: int) -> dict[int, np.ndarray]:
        import shap

        np.random.seed(seed)  # it draws from the global one
        explainer = shap.KernelExplainer(
            lambda masks: table(masks > 0.5), np.zeros((1, table.size))
        )
        whole = np.ones((1, table.size))
        return {
            n: explainer.shap_values(whole, nsamples=n - 2, l1_reg=l1_reg, silent=True)[0]
            for n in grid
        }

    return run


class Words:
    """A masker for shap whose masked text is the mask itself; the tree is the one of shap's own masker of texts, over our words."""

    def __init__(self, words: Sequence[str]) -> None:
        from shap.maskers._text import partition_tree

        tree = partition_tree(list(words), [])
        tree[:, 2] = tree[:, 3] / tree[:, 3].max()
        self.clustering, self.shape = tree, (None, len(words))

    def __call__(self, mask: np.ndarray, *_: Any) -> tuple[np.ndarray, ...]:
        return (np.asarray(mask, dtype=bool)[None],)


def shap_partition(table: Table, grid: Sequence[int], _seed: int) -> dict[int, np.ndarray]:
    import shap

    explainer: Any = shap.PartitionExplainer(table, Words(table.game.units))
    whole = np.ones((1, table.size), dtype=bool)
    return {n: np.asarray(explainer(whole, max_evals=n, silent=True).values)[0] for n in grid}


ESTIMATORS: dict[str, dict[str, Estimator]] = {
    "lime": {
        "lime package": lime_package(None),
        "lime package, no ridge": lime_package(1e-9),
        "whence, plain": ours(Lime, "plain"),
        "whence, surrogate": ours(Lime, "surrogate"),
        "whence, auto": ours(Lime, "auto"),
    },
    "shapley": {
        "shap, kernel": shap_kernel("num_features(10)"),
        "shap, kernel, all features": shap_kernel(False),
        "shap, partition": shap_partition,
        "whence, plain": ours(Shapley, "kernel"),
        "whence, surrogate": ours(Shapley, "surrogate"),
        "whence, auto": ours(Shapley, "auto"),
    },
}


# ---------------------------------------------------------------------- one sentence


def truths(table: Table, masks: int) -> dict[str, tuple[np.ndarray, float]]:
    """The coefficients from many masks, and their own relative standard error."""
    found = {
        "lime": Lime(samples=masks, seed=97)(table),
        "shapley": Shapley(samples=masks, seed=97)(table),
    }
    return {
        name: (
            s.units,
            float(np.linalg.norm(np.asarray(s.standard_error)) / np.linalg.norm(s.units)),
        )
        for name, s in found.items()
    }


def errors(table: Table, extent: Extent) -> dict[str, Any]:
    """For each quantity and estimator the root mean square relative error, over repetitions, at each number of passes."""
    true = truths(table, extent.truth)
    out: dict[str, Any] = {
        "units": table.size,
        "truth": {name: error for name, (_, error) in true.items()},
    }
    for quantity, estimators in ESTIMATORS.items():
        beta = true[quantity][0]
        for name, run in estimators.items():
            grid = [n for n in GRID if 4 * table.size / 3 <= n <= extent.most]
            times = 1 if name == "shap, partition" else extent.repetitions  # nothing in it is drawn
            runs = [run(table, grid, seed) for seed in range(times)]
            out[f"{quantity}: {name}"] = {
                n: _root_mean_square([_relative(r[n], beta) for r in runs]) for n in grid
            }
            if name == "shap, partition":
                limit = run(table, [10**6], 0)[10**6]
                out[f"{quantity}: {name}, {OWN}"] = {n: _relative(runs[0][n], limit) for n in grid}
    return out


def _relative(found: np.ndarray, beta: np.ndarray) -> float:
    return float(np.linalg.norm(found - beta) / np.linalg.norm(beta))


def _root_mean_square(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def passes_to(curve: Mapping[int, float], wanted: float = WANTED) -> float:
    """Where the error falls below ``wanted`` for good, between points of the grid along a line in logarithms; infinite if it does not.

    >>> passes_to({100: 0.4, 200: 0.2, 400: 0.05})
    282.84...
    """
    points = sorted((int(n), e) for n, e in curve.items())
    above = [i for i, (_, e) in enumerate(points) if e > wanted]
    if not above:
        return float(points[0][0])
    if above[-1] == len(points) - 1:
        return float("inf")
    (n, high), (m, low) = points[above[-1]], points[above[-1] + 1]
    return float(n * (m / n) ** (np.log(high / wanted) / np.log(high / max(low, 1e-12))))


# ---------------------------------------------------------------------- sentences and models


def sentences() -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Those to explain, and those to which a head is fitted, each with its label."""
    lines = [
        line.rstrip("\n").split("\t")
        for line in SENTENCES.open(encoding="utf-8")
        if not line.startswith("#")
    ][1:]
    rows = [(int(label), text) for label, text in lines]
    return rows[:EXPLAINED], rows[EXPLAINED:]


def with_head(model: Model) -> Model:
    """MiniLM with a classifier: ridge regression from its pooled output to the labels of the sentences that are not explained."""
    _, known = sentences()
    hf = copy.deepcopy(model.hf)
    with torch.inference_mode():
        pooled = torch.cat(
            [hf.bert(**model.batch([model.encode(text)]).inputs).pooler_output for _, text in known]
        )
    x = torch.cat([pooled, torch.ones(len(pooled), 1)], 1).double().clone()
    y = torch.tensor([2.0 * label - 1 for label, _ in known], dtype=torch.float64)
    solved = torch.linalg.solve(
        x.T @ x + RIDGE * torch.eye(x.shape[1], dtype=torch.float64), x.T @ y
    )
    both = torch.stack([-solved, solved]).to(hf.classifier.weight)
    hf.classifier.weight.data.copy_(both[:, :-1])
    hf.classifier.bias.data.copy_(both[:, -1])
    return whence.load(hf, tokenizer=model.tokenizer)


def spread(count: int) -> list[int]:
    """All numbers below ``count``, in an order of which every beginning is spread evenly: the ranks of multiples of the golden ratio.

    >>> spread(8)
    [0, 5, 2, 7, 4, 1, 6, 3]
    """
    return np.argsort(np.argsort(GOLDEN * np.arange(count) % 1)).tolist()


def study(
    models: Mapping[str, Model], extent: Extent, values: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Sentence by sentence, evenly over their lengths; what is known of each is given at once."""
    explained, _ = sentences()
    for k in spread(len(explained))[: extent.sentences]:
        for name, model in models.items():
            started = time.perf_counter()
            path = None if values is None else values / f"{name.split()[0]}-{k}.npz"
            table = Table(whence.game(model, explained[k][1], removal="mask"), path)
            found = errors(table, extent)
            table.save()
            yield {
                "model": name,
                "sentence": k,
                "seconds": time.perf_counter() - started,
                "passes": len(table.known),
                **found,
            }


def summary(rows: Sequence[Mapping[str, Any]], wanted: float = WANTED) -> Iterator[str]:
    """For each model and estimator the passes to the wanted error: the median over sentences, its middle half, and beside the best peer."""
    for model in dict.fromkeys(row["model"] for row in rows):
        mine = [row for row in rows if row["model"] == model]
        off = {q: np.median([row["truth"][q] for row in mine]) for q in ESTIMATORS}
        yield f"{model}, {len(mine)} sentences; the truth's own error: " + ", ".join(
            f"{q} {e:.1%}" for q, e in off.items()
        )
        for quantity, estimators in ESTIMATORS.items():
            names = [
                *estimators,
                *(f"{name}, {OWN}" for name in estimators if name == "shap, partition"),
            ]
            needed = {
                name: np.array([passes_to(row[f"{quantity}: {name}"], wanted) for row in mine])
                for name in names
            }
            peers = [name for name in estimators if not name.startswith("whence")]
            best = min(
                peers,
                key=lambda name: (np.median(needed[name]), _last(mine, f"{quantity}: {name}")),
            )
            for name, passes in needed.items():
                low, middle, high = np.quantile(passes, [0.25, 0.5, 0.75], method="inverted_cdf")
                at = _at(mine, f"{quantity}: {name}")
                beside = ""
                if name.startswith("whence"):
                    # a peer that did not get there needs more than the most that it was given, so the ratio is at most this
                    theirs = np.minimum(
                        needed[best], [max(map(int, row[f"{quantity}: {best}"])) for row in mine]
                    )
                    bound = "at most " if np.isinf(needed[best]).any() else ""
                    ratio = np.median(passes / theirs)
                    beside = f"{bound}{ratio:.2f} × {best}" if np.isfinite(ratio) else ""
                yield f"  {quantity:<8} {name:<34} {_shown(middle)} [{_shown(low)}, {_shown(high)}] passes   {at}   {beside}"


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """The median error at the largest number of passes."""
    return float(np.median([row[name][max(row[name], key=int)] for row in rows]))


def _at(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """The median error over sentences at some numbers of passes."""
    shown = []
    for n in (200, 400, 800):
        found = [
            curve[n] for row in rows if n in (curve := {int(k): e for k, e in row[name].items()})
        ]
        shown.append(f"{n}: {np.median(found):.3f}" if found else f"{n}: -")
    return "  ".join(shown)


def _shown(passes: float) -> str:
    return f"{passes:.0f}" if np.isfinite(passes) else "more"
