"""A request becomes a job: methods by their proper names, each once."""

from __future__ import annotations

import pytest

import whence
from tests.families import build
from whence.core.errors import SettingsError
from whence.core.request import Request, wishes_for
from whence.explaining.job import job_of


def test_a_method_that_is_named_twice_runs_once() -> None:
    model = build("bert")
    job = job_of(model, Request(wishes_for(["LIME", "ig", "lime", "integrated_gradients"])))
    assert [wish.method for wish in job.request.wishes] == ["lime", "integrated-gradients"]
    assert (len(job.looking), len(job.playing)) == (1, 1)


def test_one_method_with_two_settings_is_refused() -> None:
    wishes = wishes_for({"ig": {"nodes": 4}, "integrated-gradients": {"nodes": 8}})
    with pytest.raises(SettingsError, match="'integrated-gradients' is asked for twice"):
        job_of(build("bert"), Request(wishes))


def test_results_and_measurements_carry_proper_names() -> None:
    model = whence.load("sentiment")
    text = "a truly wonderful and moving little film"
    comparison = whence.compare(model, text, {"Saliency": {}, "LOO": {}}, evidence=False)
    assert list(comparison) == ["gradient-l2", "occlusion"]
    assert comparison["occlusion"].method == "occlusion"
    game = whence.game(model, text)
    assert whence.measure(game, comparison["occlusion"], "DELETION").metric == "deletion"
