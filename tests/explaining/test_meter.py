"""The meter: passes done of those forecast, told to any function of a string."""

from __future__ import annotations

import pytest

import whence
from tests.families import build
from whence.core.progress import Step
from whence.explaining.meter import Meter

TEXT = "the food is great but the service is not bad"


def test_what_a_step_really_took_replaces_what_was_expected() -> None:
    told: list[Step] = []
    meter = Meter(told.append, {"lime": 200.0, "evidence": 50.0}, of=250.0)
    meter.begin("lime")
    meter.paid(80)
    meter.begin("evidence")
    meter.paid(60, "evidence: 60 of 60 passes")
    numbers = [(str(step), step.done, step.of) for step in told]
    assert numbers == [
        ("lime", 0, 250),
        ("lime", 80, 250),
        ("evidence", 80, 130),
        ("evidence: 60 of 60 passes", 140, 140),
    ]


def test_a_run_counts_every_pass_once() -> None:
    told: list[Step] = []
    wanted = ["gradient-l2", "integrated-gradients", "smooth-grad", "occlusion", "lime"]
    c = whence.compare(build("bert"), TEXT, wanted, progress=told.append)
    assert told[0].forecast is not None
    assert told[0].of == told[0].forecast.passes
    assert told[-1].done == c.cost.forwards + 2 * c.cost.backwards


def test_a_run_of_several_texts_never_goes_back() -> None:
    told: list[Step] = []
    texts = [TEXT, "not bad", f"{TEXT} and {TEXT}"]
    whence.explain(build("bert"), texts, "smooth-grad", samples=4, progress=told.append)
    dones = [step.done for step in told]
    assert dones == sorted(dones)
    assert all(step.of is not None and step.done <= step.of for step in told)


def test_any_function_of_a_string_may_watch(capsys: pytest.CaptureFixture[str]) -> None:
    whence.explain(build("bert"), TEXT, "occlusion", evidence=False, progress=print)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("about 11 passes, ")
    assert lines[-1] == "occlusion: 10 of 10 passes"
