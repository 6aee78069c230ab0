"""Several attributions over one passage: a mapping that stores the passage once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import whence
from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import InputError, LoadError, UnknownName

TEXT = "the service is not bad at all"


@pytest.fixture(scope="module")
def model() -> whence.Model:
    return whence.load("sentiment")


@pytest.fixture(scope="module")
def comparison(model: whence.Model) -> Comparison:
    methods = ["gradient-l2", "gradient-x-input", "random"]
    return whence.compare(model, TEXT, methods, evidence=False)


def test_a_comparison_stores_its_passage_once(comparison: Comparison) -> None:
    text = json.dumps(comparison.to_dict())
    # the enemy writes it into every attribution: three times here, 22 times with all methods
    assert text.count('"unit_spans"') == 1
    assert text.count('"ids"') == 1


def test_read_again_all_attributions_share_one_passage(
    comparison: Comparison, tmp_path: Path
) -> None:
    back = whence.read(comparison.save(tmp_path / "c.json"))
    assert isinstance(back, Comparison)
    assert back.to_dict() == comparison.to_dict()
    passages = [attribution.passage for attribution in back.attributions.values()]
    assert all(passage is passages[0] for passage in passages)
    assert back["random"] == comparison["random"]


def test_a_comparison_of_whence_0_1_is_still_read(comparison: Comparison) -> None:
    """There, every attribution had a copy of the passage, and the schema was 1."""
    old = {
        "schema": 1,
        "kind": "comparison",
        "attributions": {name: a.to_dict() for name, a in comparison.attributions.items()},
        "cost": comparison.to_dict()["cost"],
        "skipped": {"flow": "too long"},
    }
    back = Comparison.from_dict(json.loads(json.dumps(old)))
    assert back.skipped == {"flow": "too long"}
    for name, attribution in comparison.attributions.items():
        assert back[name] == attribution


def test_by_target(model: whence.Model, tmp_path: Path) -> None:
    targets = ["positive", "negative", ("positive", "negative")]
    several = whence.explain(model, TEXT, "gradient-x-input", target=targets, evidence=False)
    assert isinstance(several, Attributions)
    assert several.by == "target"
    assert list(several) == [
        "logit of positive",
        "logit of negative",
        "logit of positive rather than negative",
    ]
    # equal to what each target alone would give
    for target, attribution in zip(targets, several.values(), strict=True):
        alone = whence.explain(model, TEXT, "gradient-x-input", target=target, evidence=False)
        np.testing.assert_allclose(attribution.scores, alone.scores, atol=1e-6)
        assert attribution.target == alone.target
    # a contrast is the difference of its two sides
    good, bad, contrast = (attribution.scores for attribution in several.values())
    np.testing.assert_allclose(good - bad, contrast, atol=1e-5)
    back = whence.read(several.save(tmp_path / "s.json"))
    assert isinstance(back, Attributions)
    assert back.to_dict() == several.to_dict()


def test_the_table_has_a_column_for_each(comparison: Comparison) -> None:
    rows = comparison.table()
    assert [row["unit"] for row in rows] == TEXT.split()
    assert set(rows[0]) == {"unit", "gradient-l2", "gradient-x-input", "random"}
    assert rows[3]["gradient-l2"] == comparison["gradient-l2"].scores[3]


def test_attributions_of_two_texts_are_not_kept_together(model: whence.Model) -> None:
    first, second = whence.explain(
        model, ["a fine film", "a dull film"], "gradient-l2", evidence=False
    )
    with pytest.raises(InputError, match="the same units"):
        Attributions("method", {"a": first, "b": second}, first.cost)


def test_two_targets_that_are_one_number_are_refused(model: whence.Model) -> None:
    with pytest.raises(InputError, match=r"logit of positive\. Name each one once"):
        whence.explain(model, TEXT, "gradient-l2", target=["positive", 1])


def test_a_name_that_is_not_there_gets_the_nearest(comparison: Comparison) -> None:
    entries = comparison.attributions
    assert isinstance(entries, Attributions)
    with pytest.raises(UnknownName, match="Did you mean 'gradient-l2'"):
        entries["gradient-l1"]


def test_damaged_ones_are_said_to_be() -> None:
    with pytest.raises(LoadError, match="no 'schema' number"):
        Attributions.from_dict({})
    with pytest.raises(LoadError, match="damaged"):
        Attributions.from_dict({"schema": 2, "kind": "attributions"})
    with pytest.raises(LoadError, match="schema 99"):
        Attribution.from_dict({"schema": 99})
