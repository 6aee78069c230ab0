"""Look: what attend was asked for, as one record."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import whence
from whence.core.errors import InputError, SettingsError, WhenceError
from whence.core.look import Look
from whence.core.target import Target

LOOKS = [
    Look(),
    Look(heads=[2, 0], layers=1, units="token", memory="2GB"),
    Look(heads="mean", layers=range(3), units=[0, 12], pair="and", reply="so"),
    Look(effects=True, target=("positive", "negative"), attention_via="interface"),
    Look(generate=3, overflow="truncate", memory=5e8),
    Look(neurons=True, target=Target("positive", read="margin")),
]


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_a_look_goes_through_json_unchanged(look: Look) -> None:
    stored = json.loads(json.dumps(look.to_dict()))
    assert Look.from_dict(stored) == look
    assert set(stored) == {field.name for field in fields(Look)}


@pytest.mark.usefixtures("unchecked")
def test_numpy_s_numbers_are_numbers() -> None:
    look = Look(heads=np.array([2, 0]), units=np.array([0, 4]))  # type: ignore[arg-type]
    assert look == Look(heads=[2, 0], units=[0, 4])
    assert Look.from_dict(json.loads(json.dumps(look.to_dict()))) == look


def test_choices_are_made_alike() -> None:
    assert Look(heads=3) == Look(heads=[3]) == Look(heads=(3,))
    assert Look(heads=3).chosen_heads == (3,)
    assert Look(heads="max").chosen_heads is None
    assert Look().chosen_layers is None
    assert Look(target="positive") == Look(target=Target("positive"))


def test_a_look_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Look().heads = "mean"  # type: ignore[misc]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"heads": "some"}, "heads is 'all', 'mean', 'max', a number or a list of numbers"),
        ({"heads": []}, r"a list of numbers, not \[\]"),
        ({"heads": [1, 1]}, r"not \[1, 1\]"),
        ({"heads": [True]}, r"not \[True\]"),
        ({"heads": 1.5}, "a list of numbers, not 1.5"),
        ({"layers": "mean"}, "layers is 'all', a number or a list of numbers, not 'mean'"),
        ({"overflow": "window"}, "attention maps are of one run"),
        ({"overflow": "cut"}, "overflow is 'error' or 'truncate', not 'cut'"),
        ({"generate": 1.5}, "generate= is a number of tokens, not 1.5"),
        ({"generate": 2, "reply": "so"}, "either reply= .* or generate="),
        ({"generate": 2, "neurons": True}, "neurons are of a given text"),
        ({"effects": True, "heads": "mean"}, "effects are of single heads"),
        ({"effects": True, "generate": 2}, "effects are of single heads"),
        ({"memory": "much"}, "a memory budget is"),
        ({"attention_via": "hooks"}, "attention_via is one of auto, interface, output"),
    ],
)
def test_wrong_values_are_refused_when_the_look_is_made(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(WhenceError, match=words):
        Look(**wrong)


def test_attend_and_probe_refuse_what_a_look_refuses() -> None:
    model = whence.load("sentiment")
    with pytest.raises(InputError, match="a list of numbers"):
        whence.attend(model, "not bad", heads=[])
    with pytest.raises(InputError, match="a list of numbers"):
        whence.probe(model, "not bad", "not good", heads=[])


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(SettingsError, match="a Look has no field 'head'; it has units, heads"):
        Look.from_dict({"head": 3})
