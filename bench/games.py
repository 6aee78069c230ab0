"""Black-box methods: LIME beside the bare passes that it needs, the lime package and shap.

Also compare beside separate runs of its methods, and the fit of the surrogate beside its passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

import whence
from bench.timing import Ratio, interleaved
from whence.games.estimating import FOLDS, _fitted
from whence.games.sampling import draw_pairs, even_law
from whence.games.surrogate import fit
from whence.methods.lime import Lime
from whence.models.batches import groups_of
from whence.models.model import Model

SAMPLES = 1000
# tokens of a batch; more is slower, by what padding adds or the cache no longer holds
BUDGETS = (256, 512, 1024, 2048, 4096)
BATCHES = (16, 32, 64, 128)  # texts of a batch, for the peers
FITTED, AT_TOKENS = 300, 35

# The machine is shared with many others, and all work is in one thread of this process: seconds of
# the processor say what the clock of an idle machine would.
measured = partial(interleaved, clock=time.process_time)
Run = Callable[[], object]


# ------------------------------------------------------------------ the floor


def rows_of(model: Model, text: str, removal: str, masks: np.ndarray) -> list[np.ndarray]:
    """The token ids of the text under each mask, made here from its ids alone."""
    passage = model.encode(text)
    kept = np.where(passage.unit_of >= 0, masks[:, passage.unit_of], True)
    if removal == "delete":
        return [passage.ids[k] for k in kept]
    masked = np.where(kept, passage.ids, model.tokenizer.mask_token_id)
    return list(masked)


def prepared(
    model: Model, rows: Sequence[np.ndarray], budget: int
) -> list[dict[str, torch.Tensor]]:
    """Batches of like length within a budget of tokens, padded, ready to be run."""
    batches = []
    for group in groups_of([len(row) for row in rows], budget):
        longest = max(len(rows[i]) for i in group)
        ids = np.full((len(group), longest), model.pad_id, dtype=np.int64)
        for place, i in enumerate(group):
            ids[place, : len(rows[i])] = rows[i]
        lengths = np.array([len(rows[i]) for i in group])
        seen = np.arange(longest) < lengths[:, None]
        batch = {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(seen.astype(np.int64)),
        }
        batches.append(batch)
    return batches


def bare(
    model: Model, batches: Sequence[dict[str, torch.Tensor]]
) -> Callable[[], list[torch.Tensor]]:
    def run() -> list[torch.Tensor]:
        with torch.inference_mode():
            return [model.hf(**batch).logits for batch in batches]

    return run


def floor(model: Model, rows: Sequence[np.ndarray]) -> tuple[Run, int]:
    """The passes at the best of ``BUDGETS``, and which one that is: measured once."""
    runs: dict[int, Run] = {}
    for budget in BUDGETS:
        runs[budget] = bare(model, prepared(model, rows, budget))
    return best_of(runs, turns=1)


def best_of(runs: dict[int, Run], turns: int = 3) -> tuple[Run, int]:
    least = dict.fromkeys(runs, np.inf)
    for _ in range(turns):
        for which, run in runs.items():
            started = time.process_time()
            run()
            least[which] = min(least[which], time.process_time() - started)
    best = min(least, key=lambda which: least[which])
    return runs[best], best


class Recorded:
    """A game that writes down which masks were asked."""

    def __init__(self, game: Any) -> None:
        self.game = game
        self.masks = [np.ones((1, game.size), dtype=bool)]

    @property
    def size(self) -> int:
        return self.game.size

    def __call__(self, masks: Any) -> Any:
        self.masks.append(np.asarray(masks, dtype=bool))
        return self.game(masks)


def asked_by_lime(model: Model, text: str, removal: str, samples: int) -> np.ndarray:
    """The distinct masks of LIME at so many samples."""
    game = Recorded(whence.game(model, text, removal=removal))
    Lime(samples=samples)(game)
    return np.unique(np.concatenate(game.masks), axis=0)


def afresh(model: Model, text: str, method: str, evidence: bool = False, **settings: Any) -> Run:
    """An explanation with nothing remembered from the round before.

    The surrogates of a sample are remembered for other methods of the same sample, and would be
    there in the next round.
    """

    def run() -> whence.Attribution:
        _fitted.cache_clear()
        return whence.explain(model, text, method, evidence=evidence, **settings)

    return run


def lime_over_floor(
    model: Model, text: str, removal: str, estimator: str = "auto", rounds: int = 7
) -> tuple[Ratio, str]:
    masks = asked_by_lime(model, text, removal, SAMPLES)
    lowest, budget = floor(model, rows_of(model, text, removal, masks))
    ours = afresh(model, text, "lime", samples=SAMPLES, removal=removal, estimator=estimator)
    what = f"LIME, {SAMPLES} samples, {removal}, {estimator}"
    over = f"{len(masks)} bare passes, {budget} tokens at once"
    ratio = measured(what, ours, over, lowest, limit=1.1, rounds=rounds)
    return ratio, f"{len(model.encode(text))} tokens"


# ------------------------------------------------------------------ peers, from strings to scores


def predictor(model: Model, at_once: int, careful: bool = False) -> Callable[[Any], np.ndarray]:
    """Texts to logits: one call of the tokenizer, then batches.

    ``careful`` sorts the texts by length first, which few users do.
    """

    def predict(texts: Any) -> np.ndarray:
        ids = model.tokenizer([str(text) for text in texts], truncation=True)["input_ids"]
        order = list(range(len(ids)))
        if careful:
            order.sort(key=lambda i: len(ids[i]))
        out = np.empty((len(ids), len(model.labels)))
        with torch.inference_mode():
            for first in range(0, len(ids), at_once):
                places = order[first : first + at_once]
                unpadded = {"input_ids": [ids[i] for i in places]}
                batch = model.tokenizer.pad(unpadded, return_tensors="pt")
                outputs = model.hf(
                    input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
                )
                out[places] = outputs.logits.numpy()
        return out

    return predict


def lime_package(model: Model, text: str, samples: int, at_once: int, careful: bool = False) -> Run:
    from lime.lime_text import LimeTextExplainer

    predict = predictor(model, at_once, careful)
    label = int(predict([text])[0].argmax())

    def run() -> object:
        explainer = LimeTextExplainer(
            bow=False, mask_string=model.tokenizer.mask_token, random_state=0
        )
        return explainer.explain_instance(
            text, predict, labels=(label,), num_features=1000, num_samples=samples
        )

    return run


def shap_partition(model: Model, text: str, samples: int, at_once: int) -> tuple[Run, list[int]]:
    """Also the rows asked in the last run, as its tree may be exhausted before ``samples``."""
    import shap
    from shap.maskers import Text

    predict = predictor(model, at_once)
    label = int(predict([text])[0].argmax())
    counted: list[int] = []

    def values(texts: Any) -> np.ndarray:
        counted.append(len(texts))
        return predict(texts)[:, label]

    def run() -> object:
        counted.clear()
        explainer: Any = shap.PartitionExplainer(values, Text(model.tokenizer))
        return explainer([text], max_evals=samples, batch_size=at_once, silent=True)

    return run, counted


def shap_kernel(model: Model, text: str, samples: int, at_once: int) -> Run:
    """On masks over the same words, whose texts are made of token ids.

    That is as fast as a careful user can make it.
    """
    import shap

    passage = model.encode(text)
    size = len(passage.unit_spans)
    label = int(model.logits([passage])[0].argmax())

    def values(masks: np.ndarray) -> np.ndarray:
        rows = rows_of(model, text, "mask", masks > 0.5)
        run = bare(model, prepared(model, rows, at_once * len(rows[0])))
        return torch.cat(run()).numpy()[:, label]

    def run() -> object:
        explainer = shap.KernelExplainer(values, np.zeros((1, size)))
        return explainer.shap_values(
            np.ones((1, size)), nsamples=samples, l1_reg=False, silent=True
        )

    return run


def against_lime(
    model: Model,
    text: str,
    ours: int = SAMPLES,
    theirs: int = SAMPLES,
    careful: bool = False,
    rounds: int = 5,
) -> Ratio:
    """Seconds of ours over the package's at its best batch, both from the text to the scores."""
    runs = {batch: lime_package(model, text, theirs, batch, careful) for batch in BATCHES}
    peer, at_once = best_of(runs, turns=1)
    run = afresh(model, text, "lime", samples=ours, removal="mask")
    over = f"lime package, {theirs}, {at_once} at once"
    if careful:
        over += ", sorted"
    return measured(f"LIME, {ours} passes", run, over, peer, rounds=rounds)


def against_partition(
    model: Model, text: str, samples: int = SAMPLES, ours: int | None = None, rounds: int = 5
) -> Ratio:
    """Shapley values by ours over shap's partition explainer.

    Ours takes as many passes as shap's did, unless ``ours`` says another number.
    """
    runs: dict[int, Run] = {}
    counts: dict[int, list[int]] = {}
    for batch in BATCHES:
        runs[batch], counts[batch] = shap_partition(model, text, samples, batch)
    peer, at_once = best_of(runs, turns=1)
    theirs = sum(counts[at_once])
    passes = ours or theirs
    run = afresh(model, text, "shapley", samples=passes, removal="mask")
    over = f"shap partition, {theirs}, {at_once} at once"
    return measured(f"Shapley, {passes} passes", run, over, peer, rounds=rounds)


def against_kernel(
    model: Model, text: str, ours: int = SAMPLES, theirs: int = SAMPLES, rounds: int = 5
) -> Ratio:
    runs = {batch: shap_kernel(model, text, theirs, batch) for batch in BATCHES}
    peer, at_once = best_of(runs, turns=1)
    run = afresh(model, text, "shapley", samples=ours, removal="mask")
    over = f"shap kernel, {theirs}, {at_once} at once"
    return measured(f"Shapley, {ours} passes", run, over, peer, rounds=rounds)


# ------------------------------------------------------------------ compare, and the fit


def together(model: Model, text: str, rounds: int = 3) -> tuple[Ratio, str]:
    """Compare with all methods and evidence, over each method by itself with evidence."""
    whole = whence.compare(model, text)
    passes = sum(whence.explain(model, text, name, evidence=False).cost.forwards for name in whole)

    def both() -> object:
        _fitted.cache_clear()
        return whence.compare(model, text)

    def alone() -> object:
        return [afresh(model, text, name, evidence=True)() for name in whole]

    ratio = measured(
        "compare, all methods, evidence", both, "one by one", alone, limit=0.6, rounds=rounds
    )
    note = (
        f"{len(whole)} methods, {whole.cost.forwards} passes, {whole.cost.saved} saved; "
        f"one by one {passes} and evidence's"
    )
    return ratio, note


def surrogate_fit(model: Model, text: str, rounds: int = 9) -> tuple[Ratio, str]:
    """The fit of all folds to 300 values over these 300 passes, bare; the text has 35 tokens."""
    passage = model.encode(text)
    assert len(passage) == AT_TOKENS, f"{len(passage)} tokens, not {AT_TOKENS}"
    units = len(passage.unit_spans)
    halves = draw_pairs(units, even_law(units), FITTED // 2, seed=0)
    masks = np.concatenate([halves, ~halves])
    values = whence.game(model, passage, removal="mask")(masks)
    folds = np.tile(np.arange(len(halves)) % FOLDS, 2)
    lowest, _ = floor(model, rows_of(model, text, "mask", masks))
    ratio = measured(
        f"fit of the surrogate, {FOLDS} folds",
        lambda: fit(masks, values, folds),
        f"{len(masks)} bare passes",
        lowest,
        limit=0.15,
        rounds=rounds,
    )
    return ratio, f"{AT_TOKENS} tokens, {units} units"
