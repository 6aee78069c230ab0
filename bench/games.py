"""Black-box methods: LIME beside the bare passes that it needs, beside the lime package and shap; compare beside separate runs; the fit."""

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
BUDGETS = (
    256,
    512,
    1024,
    2048,
    4096,
)  # tokens of a batch; more is slower, by what padding adds or the cache no longer holds
BATCHES = (16, 32, 64, 128)  # texts of a batch, for the peers
FITTED, AT_TOKENS = 300, 35

# Many neighbours, one thread, nothing outside of this process: seconds of the processor say what an idle machine's clock would.
measured = partial(interleaved, clock=time.process_time)
Run = Callable[[], object]


# ---------------------------------------------------------------------- the floor


def rows_of(model: Model, text: str, removal: str, masks: np.ndarray) -> list[np.ndarray]:
    """The token ids of the text under each mask, made here from its ids alone."""
    passage = model.encode(text)
    kept = np.where(passage.unit_of >= 0, masks[:, passage.unit_of], True)
    if removal == "delete":
        return [passage.ids[k] for k in kept]
    return list(np.where(kept, passage.ids, model.tokenizer.mask_token_id))


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
        seen = np.arange(longest) < np.array([[len(rows[i])] for i in group])
        batches.append(
            {
                "input_ids": torch.from_numpy(ids),
                "attention_mask": torch.from_numpy(seen.astype(np.int64)),
            }
        )
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
    runs: dict[int, Run] = {
        budget: bare(model, prepared(model, rows, budget)) for budget in BUDGETS
    }
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
        self.game, self.masks = game, [np.ones((1, game.size), dtype=bool)]

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


def afresh(model: Model, text: str, method: str, **settings: Any) -> Run:
    """An explanation with nothing remembered: a sample's surrogates are kept for the method's siblings, and the next round is none."""

    def run() -> whence.Attribution:
        _fitted.cache_clear()
        return whence.explain(model, text, method, **settings)

    return run


def lime_over_floor(
    model: Model, text: str, removal: str, estimator: str = "auto", rounds: int = 7
) -> tuple[Ratio, str]:
    masks = asked_by_lime(model, text, removal, SAMPLES)
    lowest, budget = floor(model, rows_of(model, text, removal, masks))
    ours = afresh(model, text, "lime", samples=SAMPLES, removal=removal, estimator=estimator)
    what = f"LIME, {SAMPLES} samples, {removal}, {estimator}"
    over = f"{len(masks)} bare passes, {budget} tokens at once"
    return measured(
        what, ours, over, lowest, limit=1.1, rounds=rounds
    ), f"{len(model.encode(text))} tokens"


# ---------------------------------------------------------------------- peers, from strings to scores


def predictor(model: Model, at_once: int, careful: bool = False) -> Callable[[Any], np.ndarray]:
    """Texts to logits: one call of the tokenizer, then batches; ``careful`` sorts by length first, which few users do."""

    def predict(texts: Any) -> np.ndarray:
        ids = model.tokenizer([str(text) for text in texts], truncation=True)["input_ids"]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i])) if careful else range(len(ids))
        out = np.empty((len(ids), len(model.labels)))
        with torch.inference_mode():
            for first in range(0, len(ids), at_once):
                some = order[first : first + at_once]
                batch = model.tokenizer.pad(
                    {"input_ids": [ids[i] for i in some]}, return_tensors="pt"
                )
                out[list(some)] = model.hf(
                    input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
                ).logits.numpy()
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
    """Also the rows that were asked in the last run: its tree may be exhausted before ``samples``."""
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
    """On masks over the same words, whose texts are made of ids: as fast as a careful user can make it."""
    import shap

    size, label = (
        len(model.encode(text).unit_spans),
        int(model.logits([model.encode(text)])[0].argmax()),
    )

    def values(masks: np.ndarray) -> np.ndarray:
        rows = rows_of(model, text, "mask", masks > 0.5)
        return torch.cat(bare(model, prepared(model, rows, at_once * len(rows[0])))()).numpy()[
            :, label
        ]

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
    peer, at_once = best_of(
        {b: lime_package(model, text, theirs, b, careful) for b in BATCHES}, turns=1
    )
    run = afresh(model, text, "lime", samples=ours, removal="mask")
    return measured(
        f"LIME, {ours} passes",
        run,
        f"lime package, {theirs}, {at_once} at once{', sorted' * careful}",
        peer,
        rounds=rounds,
    )


def against_partition(
    model: Model, text: str, samples: int = SAMPLES, ours: int | None = None, rounds: int = 5
) -> Ratio:
    """Shapley values by ours over shap's partition explainer, at as many passes as that one takes unless ``ours`` says another number."""
    runs = {b: shap_partition(model, text, samples, b) for b in BATCHES}
    peer, at_once = best_of({b: run for b, (run, _) in runs.items()}, turns=1)
    rows = sum(runs[at_once][1])
    run = afresh(model, text, "shapley", samples=ours or rows, removal="mask")
    return measured(
        f"Shapley, {ours or rows} passes",
        run,
        f"shap partition, {rows}, {at_once} at once",
        peer,
        rounds=rounds,
    )


def against_kernel(
    model: Model, text: str, ours: int = SAMPLES, theirs: int = SAMPLES, rounds: int = 5
) -> Ratio:
    peer, at_once = best_of({b: shap_kernel(model, text, theirs, b) for b in BATCHES}, turns=1)
    run = afresh(model, text, "shapley", samples=ours, removal="mask")
    return measured(
        f"Shapley, {ours} passes",
        run,
        f"shap kernel, {theirs}, {at_once} at once",
        peer,
        rounds=rounds,
    )


# ---------------------------------------------------------------------- compare, and the fit


def together(model: Model, text: str, rounds: int = 3) -> tuple[Ratio, str]:
    """Compare with all methods and evidence, over each method by itself with evidence."""
    whole = whence.compare(model, text)
    passes = sum(whence.explain(model, text, name).cost.forwards for name in whole)

    def both() -> object:
        _fitted.cache_clear()
        return whence.compare(model, text)

    def alone() -> object:
        return [afresh(model, text, name, evidence=True)() for name in whole]

    ratio = measured(
        "compare, all methods, evidence", both, "one by one", alone, limit=0.6, rounds=rounds
    )
    return (
        ratio,
        f"{len(whole)} methods, {whole.cost.forwards} passes, {whole.cost.saved} saved; one by one {passes} and evidence's",
    )


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
