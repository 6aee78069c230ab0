"""Targets are resolved once, by name or number; what does not exist is refused with what does."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from whence.core.errors import TargetError
from whence.core.target import Target, as_target, resolve

LABELS = {0: "negative", 1: "positive"}
THREE = {0: "bad", 1: "good", 2: "fair"}
LOGITS = np.array([0.1, 2.0, 1.0])


@pytest.mark.parametrize(
    ("label", "index"),
    [("good", 1), ("GOOD", 1), (2, 2), ("2", 2), (None, 1), ("bad", 0)],
)
def test_a_label_is_found_by_name_index_or_prediction(label: Any, index: int) -> None:
    found = resolve(Target(label), LOGITS, THREE)
    assert (found.index, found.label, found.against_index) == (index, THREE[index], None)


def test_the_exact_name_comes_before_its_lower_case_and_before_a_number() -> None:
    assert resolve(Target("Good"), LOGITS, {0: "good", 1: "Good", 2: "x"}).index == 1
    assert (
        resolve(Target("1"), LOGITS, {0: "1", 1: "2", 2: "3"}).index == 0
    )  # the enemy reads a star rating as an index


def test_the_margin_names_the_strongest_rival_once() -> None:
    found = resolve(Target(read="margin"), LOGITS, THREE)
    assert (found.index, found.against_index, found.against) == (1, 2, "fair")
    assert resolve(Target("bad", read="margin"), LOGITS, THREE).against_index == 1
    assert resolve(Target("good", against="bad", read="margin"), LOGITS, THREE).against_index == 0
    # resolved on other logits the rival stays: the enemy takes an argmax along the way
    assert resolve(found, LOGITS[::-1].copy(), THREE).against_index == 2


def test_resolving_a_resolved_target_changes_nothing() -> None:
    found = resolve(Target(None, against="bad"), LOGITS, THREE)
    assert resolve(found, -LOGITS, THREE) == found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("good", "bad"), Target("good", "bad")),
        ((1, 0), Target(1, 0)),
        ("good", Target("good")),
        (None, Target()),
        (Target("good", at=3), Target("good", at=3)),
    ],
)
def test_what_a_caller_may_write_for_a_target(given: Any, expected: Target) -> None:
    assert as_target(given) == expected
    assert as_target(given, "probability").read == "probability"
    assert as_target(given, None).read == "logit"


@pytest.mark.parametrize(
    ("target", "labels", "message"),
    [
        (
            Target(41),
            LABELS,
            "label 41 is outside the 2 labels of this classifier (0 negative, 1 positive).",
        ),
        (
            Target(-1),
            LABELS,
            "label -1 is outside the 2 labels of this classifier (0 negative, 1 positive).",
        ),
        (
            Target("41"),
            LABELS,
            "label 41 is outside the 2 labels of this classifier (0 negative, 1 positive).",
        ),
        (
            Target("positiv"),
            LABELS,
            "label 'positiv' is not among the 2 labels of this classifier (0 negative, 1 positive)."
            " Did you mean 'positive'?",
        ),
        (
            Target("xyz"),
            LABELS,
            "label 'xyz' is not among the 2 labels of this classifier (0 negative, 1 positive).",
        ),
        (
            Target("a"),
            {0: "A", 1: "á", 2: "A"},
            "label 'a' is not unique among the 3 labels of this classifier (0 A, 1 á, 2 A); "
            "give its index.",
        ),
        (Target("good", against="good"), THREE, "a contrast needs two labels; both are 'good'."),
        (Target(None, against=1), THREE, "a contrast needs two labels; both are 'good'."),
        (
            Target(99),
            {i: str(i) for i in range(50)},
            "label 99 is outside the 50 labels of this classifier.",
        ),
    ],
)
def test_a_target_that_does_not_exist_is_refused_with_what_does(
    target: Target, labels: dict[int, str], message: str
) -> None:
    with pytest.raises(TargetError) as caught:
        resolve(
            target, np.arange(len(labels), dtype=float) if labels is not THREE else LOGITS, labels
        )
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("label", "named"), [(True, "bool True"), (1.0, "float 1.0"), (b"good", "bytes b'good'")]
)
@pytest.mark.usefixtures("unchecked")
def test_a_label_of_another_type_is_refused(label: Any, named: str) -> None:
    with pytest.raises(TargetError, match=f"a label is a name or a whole number, not the {named}"):
        resolve(Target(label), LOGITS, THREE)


def test_a_margin_of_one_output_is_refused() -> None:
    with pytest.raises(TargetError, match="one output"):
        resolve(Target(read="margin"), np.array([1.0]), {0: "score"})


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_reading_is_refused() -> None:
    with pytest.raises(
        TargetError,
        match=re.escape(
            "one of logit, log-probability, probability, margin, cross-entropy, perplexity, "
            "entropy, kl, not 'odds'"
        ),
    ):
        Target("good", read="odds")  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="not 'odds'"):
        as_target("good", "odds")  # type: ignore[arg-type]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("given", [("a",), ("a", "b", "c"), ()])
def test_a_contrast_is_a_pair(given: Any) -> None:
    with pytest.raises(TargetError, match="a contrast is a pair"):
        as_target(given)


def test_a_target_survives_json_text() -> None:
    target = resolve(Target("good", against="bad", read="probability", at=3), LOGITS, THREE)
    assert Target(**json.loads(json.dumps(target.to_dict()))) == target


@pytest.mark.usefixtures("unchecked")
def test_a_target_resolved_by_a_numpy_index_is_plain() -> None:
    target = resolve(Target(np.int64(1), against=np.int64(0)), LOGITS, THREE)  # type: ignore[arg-type]
    assert json.loads(json.dumps(target.to_dict()))["index"] == 1


def test_where_there_is_no_label_at_all_it_says_so() -> None:
    # a question about a text that was cut away has no possible answer
    with pytest.raises(TargetError, match="nothing to choose from"):
        resolve(Target(), np.array([]), {})
