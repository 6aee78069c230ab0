"""Long texts on a real model: windows are known to the result, and the whole gets one verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.attribution import Attribution, Window
from whence.core.errors import InputError
from whence.core.evidence import CURVES, Verdict
from whence.core.passage import Passage
from whence.metrics.evidence import control
from whence.metrics.windows import joint_control, joint_evidence
from whence.models.model import Model

LONG = "the food is great. the service is not bad! prices are fine. " * 8
METHODS = ["occlusion", "gradient-l2"]


@pytest.fixture(scope="module")
def model() -> Model:
    return build("bert")


@pytest.fixture(scope="module")
def compared(model: Model) -> whence.Comparison:
    return whence.compare(model, LONG, METHODS, target="good", overflow="window", units="sentence")


def parts(model: Model) -> list[Passage]:
    return model.windows(model.encode(LONG, units="sentence", overflow="window"))


def test_the_result_knows_where_it_was_cut_and_the_value_of_each_part(
    model: Model, compared: whence.Comparison
) -> None:
    windows = compared.first.windows
    assert len(windows) == len(parts(model)) > 2
    assert (windows[0].start, windows[-1].end) == (0, len(compared.units))
    for window, part in zip(windows, parts(model), strict=True):
        assert compared.units.names[window.start : window.end] == part.names
        alone = whence.explain(model, part, "random", target="good", evidence=False)
        assert window.value == pytest.approx(alone.value, abs=1e-5)
    assert compared.first.value == pytest.approx(np.mean([window.value for window in windows]))


def test_the_evidence_is_that_of_the_windows_games(
    model: Model, compared: whence.Comparison
) -> None:
    for a in compared.attributions.values():
        controls = []
        for removal in ("mask", "delete"):
            games = [whence.game(model, p, target="good", removal=removal) for p in parts(model)]
            controls.append(joint_control([control(game) for game in games]))
        expected = joint_evidence(a.scores, a.signed, controls)
        assert a.evidence is not None
        assert a.evidence.verdict in Verdict
        assert a.evidence.p == expected.p
        assert len(a.evidence.windows) == len(a.windows)
        for found, again in zip(a.evidence.trials, expected.trials, strict=True):
            assert found.statistic == pytest.approx(again.statistic, abs=1e-5)


def test_judge_says_the_same_also_of_scores_from_elsewhere(
    model: Model, compared: whence.Comparison
) -> None:
    a = compared["occlusion"]
    bare = replace(a, evidence=None, windows=())
    again = whence.judge(model, bare)
    assert again.evidence.p == a.evidence.p
    assert [(w.start, w.end) for w in again.windows] == [(w.start, w.end) for w in a.windows]
    by_hand = Attribution.from_scores(
        model, a.passage, a.scores, method="by hand", target="good", read="logit"
    )
    for there, here in zip(by_hand.windows, a.windows, strict=True):
        assert (there.start, there.end) == (here.start, here.end)
        assert there.value == pytest.approx(here.value, abs=1e-5)
    beside = whence.compare(model, a.passage, ["random", by_hand], overflow="window")
    assert beside["by hand"].evidence.p == a.evidence.p


def test_several_targets_share_the_games_of_the_windows(model: Model) -> None:
    text = "the food is great. prices are fine. " * 8
    options = {"overflow": "window", "units": "sentence"}
    both = whence.explain(model, text, "occlusion", target=["good", "bad"], **options)
    alone = whence.explain(model, text, "occlusion", target="bad", **options)
    assert both["logit of bad"].evidence.p == alone.evidence.p
    one = alone.cost.forwards + alone.evidence.forwards
    assert both.cost.forwards < 1.5 * one


def test_json_both_ways_and_what_is_no_partition_is_refused(
    compared: whence.Comparison, tmp_path: Path
) -> None:
    again = whence.read(compared.save(tmp_path / "c.json"))
    assert isinstance(again, whence.Comparison)
    assert again.to_dict() == compared.to_dict()
    assert again.first.windows == compared.first.windows
    assert again.first.evidence == compared.first.evidence
    first, *rest = compared.first.windows
    for wrong in (rest, [first], [Window(0, 99, 0.0)]):
        with pytest.raises(InputError, match="consecutive parts of all"):
            replace(compared.first, windows=tuple(wrong))


def test_a_text_that_fits_has_no_windows(model: Model) -> None:
    a = whence.explain(model, "the food is great", "gradient-l2", overflow="window")
    assert a.windows == ()
    assert a.evidence is not None
    assert a.evidence.windows == ()
    assert "windows" not in a.to_dict()


def test_without_a_removal_the_reason_is_told() -> None:
    from tests.models.test_image_text import QUESTION, lxmert, regions

    model = lxmert()
    a = whence.explain(model, model.encode(QUESTION, image=regions()), "random")
    assert a.evidence is not None
    assert (a.evidence.measure, a.evidence.verdict) == (CURVES, None)
    assert a.evidence.note.startswith("not held against random rankings: ")
