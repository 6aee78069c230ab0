"""Black-box methods and evidence on bad input and on any text."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import whence
from tests import families
from whence.core.errors import InputError, ModelError, SettingsError, TargetError
from whence.core.registry import Needs, methods
from whence.models.model import Model

NAMES = []
for name, info in methods().items():
    if info.needs & Needs.GAME and "single-layer" not in info.only_for:
        NAMES.append(name)
SMALL: dict[str, dict[str, Any]] = {}
for name in NAMES:
    few = {"samples": 40, "budget": 100}
    names = {field.name for field in fields(methods()[name].settings)}
    SMALL[name] = {setting: few[setting] for setting in few if setting in names}
WITH_BUDGET = [name for name in NAMES if "budget" in SMALL[name]]
HOSTILE = "[CLS] </s> [MASK] \u202eabc \x00 e\u0301 👩‍👩‍👧 עברית [SEP]"


@pytest.fixture(scope="module")
def sentiment() -> Model:
    return whence.load("sentiment")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_explain(sentiment: Model, name: str) -> None:
    for empty in ("", "   ", "\n\t"):
        with pytest.raises(InputError, match="empty"):
            whence.explain(sentiment, empty, name)


@pytest.mark.parametrize("name", NAMES)
def test_one_unit(sentiment: Model, name: str) -> None:
    a = whence.explain(sentiment, "great", name, evidence=True)
    v = whence.game(sentiment, "great")
    assert a.evidence is not None
    assert a.evidence.note == "there is only one unit, so there is nothing to rank"
    if a.detail and "anchor" in a.detail:
        assert set(a.detail["anchor"]) <= {0}
    else:
        assert a.scores == pytest.approx([v.full - v.empty], abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_text_that_spells_special_tokens_is_text(sentiment: Model, name: str) -> None:
    a = whence.explain(sentiment, "[CLS] [SEP]", name, **SMALL[name], evidence=False)
    assert a.units == ("[", "CLS", "]", " [", "SEP", "]")
    of_text = set(a.passage.ids[a.passage.unit_of >= 0].tolist())
    special = set(sentiment.tokenizer.all_special_ids) - {sentiment.tokenizer.unk_token_id}
    assert not special & of_text


@pytest.mark.parametrize("name", NAMES)
def test_a_target_that_does_not_exist(sentiment: Model, name: str) -> None:
    with pytest.raises(TargetError, match="neutral"):
        whence.explain(sentiment, "not bad", name, target="neutral")
    with pytest.raises(TargetError, match="outside the 2"):
        whence.explain(sentiment, "not bad", name, target=7)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_says_nan(name: str) -> None:
    model = families.build("bert")
    with torch.no_grad():
        model.hf.classifier.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        whence.explain(model, "the food is great", name)


@pytest.mark.parametrize("name", WITH_BUDGET)
@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_of_nothing(sentiment: Model, name: str, budget: int) -> None:
    with pytest.raises(SettingsError, match="budget"):
        whence.explain(sentiment, "not bad", name, budget=budget)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_removal_has_a_hint(sentiment: Model, name: str) -> None:
    with pytest.raises(SettingsError, match="Did you mean 'delete'"):
        whence.explain(sentiment, "not bad", name, removal="delte")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=40), removal=st.sampled_from(["mask", "delete", "pad"]))
@example(text=HOSTILE, removal="delete")
def test_any_text(sentiment: Model, name: str, text: str, removal: str) -> None:
    try:
        passage = sentiment.encode(text)
    except InputError:
        return
    a = whence.explain(sentiment, passage, name, removal=removal, **SMALL[name], evidence=False)
    assert a.scores.shape == (len(passage.unit_spans),)
    assert "".join(a.units) == text
    assert a.settings["removal"] == removal


@pytest.mark.slow
def test_fifty_thousand_characters(sentiment: Model) -> None:
    text = "not bad " * 6250
    with pytest.raises(InputError, match=r"positions end at 512.*truncate"):
        whence.explain(sentiment, text, "lime")
    a = whence.explain(
        sentiment,
        text,
        "lime",
        overflow="truncate",
        samples=20,
        estimator="surrogate",
        evidence=False,
    )
    assert np.isfinite(a.scores).all()
    assert a.passage.dropped > 40_000


def test_windows_are_games_of_their_own() -> None:
    model, _ = families.precise("bert")
    long = " ".join(["the food is great"] * 20)
    a = whence.explain(model, long, "occlusion", overflow="window", target="good", evidence=False)
    assert len(a.scores) == 80
    parts = model.windows(model.encode(long, overflow="window"))
    expected = np.concatenate(
        [whence.explain(model, p, "occlusion", target="good", evidence=False).scores for p in parts]
    ) / len(parts)
    np.testing.assert_allclose(a.scores, expected, atol=1e-9)
    assert a.cost.forwards == 80 + len(parts)
