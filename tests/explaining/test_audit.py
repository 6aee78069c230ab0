"""whence.audit: tests of attention over a data set, kept and continued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.audit import Place
from whence.core.audited import Audit, May
from whence.core.errors import InputError, SettingsError, UnknownName, Unsupported

TEXTS = [
    "the food is great but not the prices",
    "not bad at all and the menu is fine",
    "bad food and bad service",
    "great prices great menu great food",
    "the service is not great",
    "fine food and fine prices but bad menu",
]
QUICK: dict[str, dict[str, Any]] = {
    "permutation": {"permutations": 3, "of_heads": 1},
    "uniform": {},
    "adversary": {"steps": 2, "restarts": 1},
    "heads": {},
}


@pytest.fixture(scope="module")
def model() -> whence.Model:
    return build("bert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "run"


@pytest.fixture(scope="module")
def audit(model: whence.Model, folder: Path) -> Audit:
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    return whence.audit(model, rows, QUICK, out=folder, part=3, text="text", label="label")


def test_every_test_speaks_of_every_place(model: whence.Model, audit: Audit) -> None:
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    assert (audit.texts, audit.failed, audit.layers) == (len(TEXTS), 0, layers)
    assert len(audit.of_layers) == layers
    assert len(audit.of_heads) == layers * heads
    for place in (Place(), Place(0)):
        for test, quantity in (
            ("permutation", "change"),
            ("uniform", "change"),
            ("adversary", "jsd"),
        ):
            effect = audit.effect(test, quantity, place)
            assert effect is not None
            assert effect.texts == len(TEXTS)
    assert audit.heads is not None
    assert audit.heads.of == layers * heads
    assert {v.reading for v in audit.readings} >= {"attention-mean", "rollout"}
    assert audit.effect("correlation", "tau-gradient-loo") is not None


def test_an_untrained_model_is_not_called_readable(audit: Audit) -> None:
    """Its output hardly moves, whatever attention does."""
    assert {verdict.may for verdict in audit.of_layers} <= {May.NO, May.OPEN}


def test_the_same_call_goes_on_and_gives_the_same(
    model: whence.Model, audit: Audit, folder: Path
) -> None:
    parts = sorted((folder / "parts").iterdir())
    parts[0].unlink()
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    again = whence.audit(model, rows, QUICK, out=folder, part=3, text="text", label="label")
    assert again.effects == audit.effects
    assert again.places == audit.places


def test_a_label_that_the_model_does_not_have_is_a_failure_of_its_row(model: whence.Model) -> None:
    rows = [{"text": text, "label": "1"} for text in TEXTS[:2]]
    rows.append({"text": TEXTS[2], "label": "no such label"})
    found = whence.audit(model, rows, ["uniform"], text="text", label="label")
    assert (found.texts, found.failed) == (2, 1)


def test_mistakes_are_said_before_anything_is_run(model: whence.Model) -> None:
    with pytest.raises(InputError, match="no tests"):
        whence.audit(model, TEXTS, {})
    with pytest.raises(UnknownName, match="permutation"):
        whence.audit(model, TEXTS, ["permutations"])
    with pytest.raises(SettingsError, match="steps"):
        whence.audit(model, TEXTS, {"adversary": {"steps": 0}})


def test_the_model_is_left_as_it_was(model: whence.Model) -> None:
    before = model.fingerprint, model.config._attn_implementation, model.hf.training
    whence.audit(model, TEXTS[:1], QUICK)
    assert (model.fingerprint, model.config._attn_implementation, model.hf.training) == before
    assert all(parameter.grad is None for parameter in model.hf.parameters())


def test_the_passes_of_the_tests_are_counted(model: whence.Model) -> None:
    without = whence.audit(model, TEXTS[:2], {"uniform": {}})
    both = whence.audit(model, TEXTS[:2], {"uniform": {}, "adversary": {"steps": 2, "restarts": 1}})
    layers = model.config.num_hidden_layers
    # each layer and all of them: two steps and a last look; and the text as it is
    assert both.forwards - without.forwards == 2 * ((layers + 1) * 3 + 1)
    assert both.backwards - without.backwards == 2 * (layers + 1) * 2


def test_a_foil_is_what_each_label_is_contrasted_with() -> None:
    """Minimal pairs: the loss is over the two words, and heads are valued by the right one."""
    model = build("gpt2")
    rows = [
        {"text": "the food is", "right": " great", "wrong": " is"},
        {"text": "the prices are not", "right": " is", "wrong": " great"},
    ]
    columns = {"text": "text", "label": "right", "foil": "wrong"}
    found = whence.audit(model, rows, ["heads"], **columns)
    whole = found.effect("heads", "loss")
    assert whole is not None
    losses = []
    for row in rows:
        passage = model.encode(row["text"])
        logits = model.logits([passage])[0]
        words = [whence.Target(row[name]) for name in ("right", "wrong")]
        right, wrong = (logits[model.resolve(word, logits, passage).index] for word in words)
        losses.append(np.logaddexp(0.0, wrong - right))
    assert whole.mean == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_model_whose_attention_cannot_be_edited_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match=r"DebertaV2.*cannot be edited.*whence\.attend"):
        whence.audit(build("deberta-v2"), TEXTS)
