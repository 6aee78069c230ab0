"""The arbiter: its measure by hand, its search, and its held-out removals."""

from __future__ import annotations

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.errors import InputError, SettingsError
from whence.core.evidence import Verdict
from whence.core.registry import Needs
from whence.trace.configurations import (
    BASELINE,
    Configuration,
    best_of,
    configurations,
    ranked_faithful_truthfulness,
    readings,
)
from whence.trace.removals import drops
from whence.trace.trace import trace

TEXT = "the food is great but the service is not"


def test_the_measure_by_hand() -> None:
    d = np.array([0.4, 0.1])
    found = ranked_faithful_truthfulness(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0]]), d)
    np.testing.assert_allclose(
        found, [0.45, 0.3, 0.25]
    )  # ties share the largest rank: (.4 + .1) / 2


def test_there_are_as_many_configurations_as_the_paper_counts() -> None:
    model = build("bert")  # two layers, four heads
    t = trace(model, [model.encode(TEXT)], needs=Needs.ATTENTION)
    assert len(configurations(t)) == (2 + 2) * (4 + 1) * 4  # BERT's 12 × 12: 14 · 13 · 4 = 728
    causal = build("gpt2")
    assert (
        len(configurations(trace(causal, [causal.encode(TEXT)], needs=Needs.ATTENTION)))
        == 4 * 5 * 3
    )


def test_readings_are_rows_and_columns_of_the_maps() -> None:
    model = build("bert")
    passage = model.encode(TEXT)
    t = trace(model, [passage], needs=Needs.ATTENTION)
    w = np.stack([m[0].double().numpy() for m in t.attentions["encoder"]])
    wanted = [
        (Configuration("mean", "mean", "from"), w.mean((0, 1))[0]),
        (Configuration("product", 2, "to"), (w[1, 2] @ w[0, 2])[:, 0]),
        (Configuration(1, "mean", "mean-columns"), w[1].mean(0).mean(0)),
        (Configuration(0, 3, "max-columns"), w[0, 3].max(0)),
    ]
    found = readings(t, 0, [c for c, _ in wanted])
    for row, (_, expected) in zip(found, wanted, strict=True):
        np.testing.assert_allclose(row, passage.merge(expected), atol=1e-6)


def test_drops_are_those_of_replaced_embeddings() -> None:
    model = build("bert")
    passage = model.encode(TEXT)
    t = trace(model, [passage], needs=Needs.EMBEDDINGS)
    from dataclasses import replace

    found = drops(t, 0, np.eye(len(passage.units), dtype=bool), "mask")
    masked = replace(
        passage, ids=np.where(passage.unit_of == 3, model.tokenizer.mask_token_id, passage.ids)
    )
    assert found[3] == pytest.approx(
        float(t.values[0]) - model.logits([masked])[0][t.targets[0].index], abs=1e-5
    )
    assert drops(t, 0, np.zeros((1, len(passage.units)), dtype=bool), "mask")[0] == pytest.approx(
        0, abs=1e-5
    )


def test_the_best_is_at_least_as_faithful_as_every_other() -> None:
    model = build("bert")
    passage = model.encode(TEXT)
    a = whence.explain(model, TEXT, "attention-arbiter", evidence=False)
    t = trace(model, [passage], a.target, needs=Needs.ATTENTION | Needs.EMBEDDINGS)
    every = configurations(t)
    fallen = drops(t, 0, np.eye(len(passage.units), dtype=bool), "mean")
    faithful = ranked_faithful_truthfulness(readings(t, 0, every), fallen)
    best = best_of(faithful)
    assert faithful[best] >= faithful.max() - 1e-4
    np.testing.assert_allclose(a.scores, readings(t, 0, [every[best]])[0], atol=1e-6)
    assert faithful[best] >= faithful[every.index(BASELINE)]
    assert f"of {len(every)} ways to read attention" in a.error.note
    assert f"fits single removals best: {every[best]} (" in a.error.note
    assert a.cost.forwards == 1 + len(passage.units) + 32


def test_the_winner_is_tried_on_removals_that_it_never_saw() -> None:
    model = build("bert")
    a = whence.explain(model, TEXT, "attention-arbiter", held_out=16, evidence=False)
    assert a.evidence is not None
    (trial,) = a.evidence.trials
    assert trial.samples == 16
    assert -1 <= trial.statistic <= 1
    assert trial.random_low < trial.random_high
    assert a.evidence.verdict in Verdict
    assert (
        whence.explain(model, TEXT, "attention-arbiter", held_out=0, evidence=False).evidence
        is None
    )


def test_a_fixed_configuration_is_not_searched() -> None:
    model = build("bert")
    a = whence.explain(
        model,
        TEXT,
        "attention-arbiter",
        layers=1,
        heads="mean",
        matrix="from",
        held_out=0,
        evidence=False,
    )
    np.testing.assert_allclose(
        a.scores, whence.explain(model, TEXT, "attention-mean", evidence=False).scores, atol=1e-6
    )
    assert a.cost.forwards == 1
    with pytest.raises(SettingsError, match="layers are 0, 1, mean, product"):
        whence.explain(model, TEXT, "attention-arbiter", layers=7)


def test_one_choice_for_a_data_set_or_for_each_label() -> None:
    model = build("bert")
    texts = [
        TEXT,
        "not bad prices",
        "I didn't like it, it's dull",
        "great food and great service",
        "the prices are not fine",
    ]
    (best,) = whence.arbitrate(model, texts, held_out=8)
    assert (best.texts, best.tried) == (5, 80)
    assert best.faithfulness >= best.baseline_faithfulness
    assert best.interval[0] <= best.held_out <= best.interval[1]
    mean = whence.explain(
        model, texts, "attention-arbiter", held_out=0, **best.settings, evidence=False
    )
    assert all(m.cost.forwards == 1 for m in mean)
    by_label = whence.arbitrate(model, texts, scope="label", held_out=8)
    assert sum(c.texts for c in by_label) == 5
    assert {c.group for c in by_label} == {p.label for p in model.predict(texts)}
    # a label's own choice can only be better than the common one, on the removals that chose it
    assert sum(c.faithfulness * c.texts for c in by_label) / 5 >= best.faithfulness - 1e-9
    with pytest.raises(InputError, match="at least one text"):
        whence.arbitrate(model, [])
