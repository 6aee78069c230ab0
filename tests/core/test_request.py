"""A request: what a run was asked for, as plain values and back."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.core.errors import InputError, SettingsError
from whence.core.request import Request, Wish, targets_of, wishes_for
from whence.core.target import Target

SETTINGS = st.dictionaries(st.text(), st.integers() | st.text() | st.none())
WISHES = st.tuples(st.sampled_from(["lime", "random", "rollout"]), SETTINGS)
LABELS = st.none() | st.text(min_size=1) | st.integers(0, 9)
READINGS = st.sampled_from(["logit", "probability"])
UNITS = st.sampled_from(["word", "token", "sentence"]) | st.lists(st.integers(0, 99)).map(tuple)
OTHERS = st.fixed_dictionaries(
    {
        "units": UNITS,
        "pair": st.none() | st.text(),
        "seed": st.integers(0, 2**40),
        "overflow": st.sampled_from(["error", "truncate", "window"]),
        "memory": st.none() | st.integers(1, 10**12) | st.just("2GB"),
        "evidence": st.booleans(),
    }
)


@given(st.lists(WISHES, min_size=1), st.lists(st.tuples(LABELS, READINGS), min_size=1), OTHERS)
def test_a_request_survives_json(
    wishes: list[tuple[str, dict[str, Any]]],
    targets: list[tuple[Any, Any]],
    others: dict[str, Any],
) -> None:
    request_ = Request(
        wishes=tuple(Wish(method, settings) for method, settings in wishes),
        targets=tuple(Target(label, read=read) for label, read in targets),
        **others,
    )
    # the enemy loses that section starts are a tuple, and that targets are Targets
    text = json.dumps(request_.to_dict())
    assert Request.from_dict(json.loads(text)) == request_


def test_a_request_is_frozen() -> None:
    request_ = Request.of("lime")
    with pytest.raises(dataclasses.FrozenInstanceError):
        request_.seed = 3  # type: ignore[misc]


@pytest.mark.usefixtures("unchecked")
def test_the_keywords_of_explain_make_one() -> None:
    request_ = Request.of(
        "lime",
        target=("good", "bad"),
        read="probability",
        units=np.array([0, 5]),
        samples=20,
    )
    assert request_.wishes == (Wish("lime", {"samples": 20}),)
    assert request_.targets == (Target("good", against="bad", read="probability"),)
    assert request_.units == (0, 5)
    assert json.dumps(request_.to_dict())  # the enemy keeps numpy's numbers


def test_methods_come_with_their_settings() -> None:
    assert wishes_for({"lime": {"samples": 20}, "random": {}}) == (
        Wish("lime", {"samples": 20}),
        Wish("random"),
    )
    assert wishes_for(["lime", "random"]) == (Wish("lime"), Wish("random"))


def test_several_targets_are_read_alike() -> None:
    assert targets_of(["good", 1], "margin") == (
        Target("good", read="margin"),
        Target(1, read="margin"),
    )
    assert targets_of(None) == (Target(),)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overflow": "cut"}, "overflow is one of error, truncate, window, not 'cut'"),
        ({"attention_via": "magic"}, "attention_via is one of auto, interface, output"),
    ],
)
def test_a_wrong_choice_is_said_at_once(change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Request.of("lime", **change)  # type: ignore[arg-type]


def test_nothing_asked_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one target"):
        Request(wishes=(Wish("lime"),), targets=())


def test_a_mistyped_entry_of_a_stored_request_is_named() -> None:
    stored = Request.of("lime").to_dict() | {"sed": 3}
    with pytest.raises(SettingsError, match=r"no entry named 'sed'\. Did you mean 'seed'"):
        Request.from_dict(stored)
