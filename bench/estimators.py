"""Sampled estimates over many sentences: LIME and Shapley values by lime, by shap, and by ours.

The relative error is |β̂ − β| / |β| over the words of one sentence. β is our own estimate from many
masks, or enumeration of all of them. shap's partition explainer computes Owen values of a tree over
the words, which is another quantity. It is held against the Shapley values all the same, and, on a
line of its own, against its own limit.
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
PARTITION = "shap, partition"
RIDGE = 10.0  # of the head


@dataclass(frozen=True)
class Extent:
    """How much of the study to do.

    The number of ``sentences``, of masks for the ``truth``, of ``repetitions`` of each estimator,
    and the largest number of passes (``most``).
    """

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
            keys = _keys(saved["masks"])
            self.known = dict(zip(keys, saved["values"].tolist(), strict=True))

    @property
    def size(self) -> int:
        return self.game.size

    def __call__(self, masks: Any) -> np.ndarray:
        masks = np.asarray(masks).astype(bool)
        keys = _keys(masks)
        new = {key: i for i, key in enumerate(keys) if key not in self.known}
        if new:
            values = self.game(masks[list(new.values())]).tolist()
            self.known |= zip(new, values, strict=True)
        return np.array([self.known[key] for key in keys])

    def save(self) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        packed = np.array([np.frombuffer(key, dtype=np.uint8) for key in self.known])
        masks = np.unpackbits(packed, axis=1)[:, : self.size].astype(bool)
        np.savez(self.path, masks=masks, values=list(self.known.values()))


def _keys(masks: np.ndarray) -> list[bytes]:
    """The bits of each mask."""
    return [row.tobytes() for row in np.packbits(masks, axis=1)]


# ------------------------------------------------------------------ who estimates what

# from a table, numbers of passes and a seed to the scores at each number
Estimator = Callable[[Table, Sequence[int], int], dict[int, np.ndarray]]


def ours(make: Callable[..., Any], estimator: str) -> Estimator:
    def run(table: Table, grid: Sequence[int], seed: int) -> dict[int, np.ndarray]:
        scores = {}
        for n in grid:
            method = make(samples=n, estimator=estimator, seed=seed)
            scores[n] = method(table).units
        return scores

    return run


def lime_package(ridge: float | None) -> Estimator:
    """Its own draws, and its own fit to the first n of them.

    The words are their numbers, so that a perturbed text says which are left.
    """

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
            words_left = np.array([text.split() for text in texts]) != "_"
            return table(words_left)[:, None]

        draw = getattr(explainer, "_LimeTextExplainer__data_labels_distances")  # noqa: B009
        data, labels, distances = draw(words, values, grid[-1])
        model = None if ridge is None else Ridge(alpha=ridge, fit_intercept=True)
        scores = {}
        for n in grid:
            _, pairs, _, _ = explainer.base.explain_instance_with_data(
                data[:n],
                labels[:n],
                distances[:n],
                0,
                table.size,
                model_regressor=model,
                feature_selection="none",
            )
            in_order = sorted(dict(pairs).items())
            scores[n] = np.array([score for _, score in in_order])
        return scores

    return run


def shap_kernel(l1_reg: Any) -> Estimator:
    def run(table: Table, grid: Sequence[int], seed: int) -> dict[int, np.ndarray]:
        import shap

        np.random.seed(seed)  # it draws from numpy's global generator
        nothing, whole = np.zeros((1, table.size)), np.ones((1, table.size))
        explainer = shap.KernelExplainer(lambda masks: table(masks > 0.5), nothing)
        scores = {}
        for n in grid:
            values = explainer.shap_values(whole, nsamples=n - 2, l1_reg=l1_reg, silent=True)
            scores[n] = values[0]
        return scores

    return run


class Words:
    """A masker for shap whose masked text is the mask itself.

    The tree is the one of shap's own masker of texts, over our words.
    """

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
    scores = {}
    for n in grid:
        explanation = explainer(whole, max_evals=n, silent=True)
        scores[n] = np.asarray(explanation.values)[0]
    return scores


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
        PARTITION: shap_partition,
        "whence, plain": ours(Shapley, "kernel"),
        "whence, surrogate": ours(Shapley, "surrogate"),
        "whence, auto": ours(Shapley, "auto"),
    },
}


# ------------------------------------------------------------------ one sentence


def truths(table: Table, masks: int) -> dict[str, tuple[np.ndarray, float]]:
    """The coefficients from many masks, and their own relative standard error."""
    truths = {}
    for name, method in (("lime", Lime), ("shapley", Shapley)):
        scores = method(samples=masks, seed=97)(table)
        assert scores.units is not None
        error = np.linalg.norm(np.asarray(scores.standard_error)) / np.linalg.norm(scores.units)
        truths[name] = (scores.units, float(error))
    return truths


def errors(table: Table, extent: Extent) -> dict[str, Any]:
    """The relative error of each estimator at each number of passes.

    It is the root mean square over repetitions.
    """
    true = truths(table, extent.truth)
    grid = [n for n in GRID if 4 * table.size / 3 <= n <= extent.most]
    out: dict[str, Any] = {
        "units": table.size,
        "truth": {name: error for name, (_, error) in true.items()},
    }
    for quantity, estimators in ESTIMATORS.items():
        beta = true[quantity][0]
        for name, run in estimators.items():
            # nothing in shap's partition explainer is drawn
            times = 1 if name == PARTITION else extent.repetitions
            runs = [run(table, grid, seed) for seed in range(times)]
            curve = {}
            for n in grid:
                curve[n] = _root_mean_square([_relative(scores[n], beta) for scores in runs])
            out[f"{quantity}: {name}"] = curve

            if name == PARTITION:
                limit = run(table, [10**6], 0)[10**6]
                out[f"{quantity}: {name}, {OWN}"] = {n: _relative(runs[0][n], limit) for n in grid}
    return out


def _relative(scores: np.ndarray, beta: np.ndarray) -> float:
    return float(np.linalg.norm(scores - beta) / np.linalg.norm(beta))


def _root_mean_square(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def passes_to(curve: Mapping[int, float], wanted: float = WANTED) -> float:
    """The number of passes from which on the error is below ``wanted``; infinite if there is none.

    Between points of the grid it is read off a straight line in logarithms.

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
    share = np.log(high / wanted) / np.log(high / max(low, 1e-12))
    return float(n * (m / n) ** share)


# ------------------------------------------------------------------ sentences and models


def sentences() -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Those to explain, and those to which a head is fitted, each with its label."""
    with SENTENCES.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    rows = []
    for line in lines[1:]:  # the first names the columns
        label, text = line.split("\t")
        rows.append((int(label), text))
    return rows[:EXPLAINED], rows[EXPLAINED:]


def with_head(model: Model) -> Model:
    """MiniLM with a classifier: ridge regression from its pooled output to labels.

    The labels are those of the sentences that are not explained.
    """
    _, known = sentences()
    hf = copy.deepcopy(model.hf)
    outputs = []
    with torch.inference_mode():
        for _, text in known:
            inputs = model.batch([model.encode(text)]).inputs
            outputs.append(hf.bert(**inputs).pooler_output)
        pooled = torch.cat(outputs)
    x = torch.cat([pooled, torch.ones(len(pooled), 1)], 1).double().clone()
    y = torch.tensor([2.0 * label - 1 for label, _ in known], dtype=torch.float64)
    penalty = RIDGE * torch.eye(x.shape[1], dtype=torch.float64)
    solved = torch.linalg.solve(x.T @ x + penalty, x.T @ y)
    both = torch.stack([-solved, solved]).to(hf.classifier.weight)
    hf.classifier.weight.data.copy_(both[:, :-1])
    hf.classifier.bias.data.copy_(both[:, -1])
    return whence.load(hf, tokenizer=model.tokenizer)


def spread(count: int) -> list[int]:
    """All numbers below ``count``, in an order of which every beginning is spread evenly.

    They are the ranks of multiples of the golden ratio.

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
            path = None
            if values is not None:
                path = values / f"{name.split()[0]}-{k}.npz"
            table = Table(whence.game(model, explained[k][1], removal="mask"), path)
            errors_of_sentence = errors(table, extent)
            table.save()
            yield {
                "model": name,
                "sentence": k,
                "seconds": time.perf_counter() - started,
                "passes": len(table.known),
                **errors_of_sentence,
            }


def summary(rows: Sequence[Mapping[str, Any]], wanted: float = WANTED) -> Iterator[str]:
    """For each model and estimator the passes to the wanted error, and beside the best peer.

    They are the median over sentences, with its middle half.
    """
    for model in dict.fromkeys(row["model"] for row in rows):
        mine = [row for row in rows if row["model"] == model]
        off = []
        for quantity in ESTIMATORS:
            error = np.median([row["truth"][quantity] for row in mine])
            off.append(f"{quantity} {error:.1%}")
        yield f"{model}, {len(mine)} sentences; the truth's own error: {', '.join(off)}"
        for quantity in ESTIMATORS:
            yield from _summary_of_quantity(mine, quantity, wanted)


def _summary_of_quantity(
    rows: Sequence[Mapping[str, Any]], quantity: str, wanted: float
) -> Iterator[str]:
    names = list(ESTIMATORS[quantity])
    peers = [name for name in names if not name.startswith("whence")]
    if PARTITION in names:
        names.append(f"{PARTITION}, {OWN}")

    needed = {}
    for name in names:
        curves = [row[f"{quantity}: {name}"] for row in rows]
        needed[name] = np.array([passes_to(curve, wanted) for curve in curves])

    def passes_then_error(name: str) -> tuple[float, float]:
        return float(np.median(needed[name])), _last(rows, f"{quantity}: {name}")

    best = min(peers, key=passes_then_error)
    most_of_best = [max(map(int, row[f"{quantity}: {best}"])) for row in rows]
    for name, passes in needed.items():
        low, middle, high = np.quantile(passes, [0.25, 0.5, 0.75], method="inverted_cdf")
        at = _at(rows, f"{quantity}: {name}")
        beside = ""
        if name.startswith("whence"):
            beside = _beside(passes, best, needed[best], most_of_best)
        yield (
            f"  {quantity:<8} {name:<34} {_shown(middle)} [{_shown(low)}, {_shown(high)}] passes"
            f"   {at}   {beside}"
        )


def _beside(passes: np.ndarray, peer: str, theirs: np.ndarray, most: Sequence[int]) -> str:
    """The median ratio of our passes to a peer's, in words.

    A peer that did not get there needs more than the ``most`` that it was given, so that the
    ratio is at most what is shown.
    """
    ratio = np.median(passes / np.minimum(theirs, most))
    if not np.isfinite(ratio):
        return ""
    bound = "at most " if np.isinf(theirs).any() else ""
    return f"{bound}{ratio:.2f} × {peer}"


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """The median error at the largest number of passes."""
    return float(np.median([row[name][max(row[name], key=int)] for row in rows]))


def _at(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """The median error over sentences at some numbers of passes."""
    cells = []
    for n in (200, 400, 800):
        errors_there = []
        for row in rows:
            curve = {int(passes): error for passes, error in row[name].items()}
            if n in curve:
                errors_there.append(curve[n])
        shown = f"{np.median(errors_there):.3f}" if errors_there else "-"
        cells.append(f"{n}: {shown}")
    return "  ".join(cells)


def _shown(passes: float) -> str:
    return f"{passes:.0f}" if np.isfinite(passes) else "more"
