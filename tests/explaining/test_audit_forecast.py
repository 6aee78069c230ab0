"""What an audit will cost, told before it is begun."""

from __future__ import annotations

from typing import Any

import pytest

import whence
from tests.families import build
from whence.core.errors import InputError
from whence.explaining.audit import audit_rows
from whence.explaining.audit_forecast import CURVE, TRIAL, AuditForecast, forecast_audit
from whence.runs.data import Choice, open_data

TEXTS = ["the food is great but not the prices", "not bad at all", "", "bad food and bad service"]
QUICK: dict[str, dict[str, Any]] = {
    "permutation": {"permutations": 3, "of_heads": 1},
    "adversary": {"steps": 2, "restarts": 1},
}


def test_the_forecast_is_what_is_paid() -> None:
    """Of texts of one length; those of the trial may be fewer, as rankings can agree."""
    model = build("bert")
    texts = ["the food is great but", "not bad at all and", "bad food and bad service"]
    work = audit_rows(model, QUICK, 10)
    forecast = forecast_audit(work, open_data(texts), Choice())
    done = whence.audit(model, texts, QUICK, rankings=10)
    assert forecast.texts == done.texts == 3
    of_tests = sum(passes for name, passes in forecast.passes.items() if name != TRIAL)
    every = sum(forecast.passes.values())
    paid = done.forwards + 2 * done.backwards
    assert of_tests < paid <= every
    assert paid > 0.6 * every
    assert forecast.seconds > 0


def test_the_pruning_curve_is_forecast() -> None:
    """At most: orders may share a set of heads, which is run once."""
    model = build("bert")
    texts = ["the food is great but", "not bad at all and", "bad food and bad service"]
    forecast = forecast_audit(audit_rows(model, ["heads"], 2), open_data(texts), Choice())
    done = whence.audit(model, texts, ["heads"], rankings=2)
    assert done.pruning is not None
    assert 0.8 * forecast.passes[CURVE] <= done.pruning.forwards <= forecast.passes[CURVE]
    without = forecast_audit(audit_rows(model, ["uniform"], 2), open_data(texts), Choice())
    assert CURVE not in without.passes


def test_a_test_on_a_few_texts_costs_no_more_than_these() -> None:
    model = build("bert")
    work = audit_rows(model, QUICK, 10)
    data = open_data(TEXTS * 50)
    of_all = forecast_audit(work, data, Choice())
    of_some = forecast_audit(work, data, Choice(limit=100))
    # on 100 and 60 texts at most, however many there are
    assert of_all.passes["permutation"] == of_some.passes["permutation"]
    assert of_all.passes["adversary"] == of_some.passes["adversary"]
    assert of_all.passes[TRIAL] == 2 * of_some.passes[TRIAL]


def test_texts_that_cannot_be_read_are_passed_over() -> None:
    work = audit_rows(build("bert"), ["uniform"], 10)
    assert forecast_audit(work, open_data(TEXTS), Choice()).texts == len(TEXTS)
    with pytest.raises(InputError, match="none of the first"):
        forecast_audit(work, open_data(["", " "]), Choice())


def test_one_text_is_one() -> None:
    assert str(AuditForecast(1, {"readings": 60}, 1.0)).startswith("about 60 passes on 1 text, ")
