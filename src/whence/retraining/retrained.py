"""The tests of attention that train, one after the other, each kept as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from whence.core.audited import SCHEMA
from whence.core.errors import InputError, WhenceError
from whence.core.retrained import Retrained
from whence.core.writing import json_text
from whence.explaining.rows import plain
from whence.explaining.stored_audit import RETRAINED, stored_retrained
from whence.models.model import Model
from whence.retraining.adversarial import adversarial_model
from whence.retraining.diagnostic import attention_diagnostic
from whence.retraining.frozen import frozen_attention
from whence.retraining.labelled import labelled
from whence.retraining.training import check_trainable
from whence.runs.data import Data
from whence.runs.places import Place
from whence.runs.run import Stop

TESTS: Mapping[str, Callable[..., Any]] = {
    "frozen attention": frozen_attention,
    "adversarial model": adversarial_model,
    "attention diagnostic": attention_diagnostic,
}


def check_can_retrain(model: Model, data: Data) -> None:
    """Refuse what cannot be trained, before an audit is begun that asks for it."""
    check_trainable(model)
    if data.columns.label is None:
        raise InputError("to train copies of the model, name the column of the label: --label.")


def retrained_in(
    place: Place,
    model: Model,
    data: Data,
    seed: int,
    stop: Stop,
    progress: Callable[[str], None],
    labels: Mapping[str, str] | None = None,
) -> None:
    """Do those tests that the place of an audit does not hold yet, on all texts of the data.

    ``labels`` says what the model calls labels that the data call otherwise.
    """
    mapping = labels or {}
    texts = [replace(one, label=mapping.get(one.label, one.label)) for one in labelled(data)]

    def train() -> None:
        done = list(stored_retrained(place))
        for name in left_to_train(place):
            try:
                found = TESTS[name](model, texts, seed=seed, progress=progress)
                done.append(Retrained(name, str(found), plain(found.to_dict())))
            except WhenceError as problem:  # the others may still tell something
                done.append(Retrained(name, f"Not done: {problem}", {}))
            about = {"schema": SCHEMA, "kind": "retrained"}
            content = about | {"tests": [asdict(each) for each in done]}
            place.put(RETRAINED, json_text(content).encode())

    stop.at_once(train)


def left_to_train(place: Place) -> list[str]:
    """The tests that the place of an audit does not hold yet."""
    done = {each.test for each in stored_retrained(place)}
    return [name for name in TESTS if name not in done]
