"""A table of methods × metrics, from values of texts: verdicts, winners, and what is stored."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whence
from tests.views.evaluations import METHODS, TEXTS, evaluation, measured, same_everywhere, whole
from whence.core.errors import LoadError, WhenceError
from whence.core.evaluation import Column, Evaluation, Measured, _verdicts, column_of
from whence.core.evidence import Verdict
from whence.core.registry import find_metric, settings_dict, settings_of
from whence.metrics.several import spread_by_chance


def verdicts(column: Column) -> list[Verdict | None]:
    return [cell.verdict for cell in column.cells]


def test_verdicts_follow_the_direction_of_the_metric() -> None:
    """The enemy: a sign that is forgotten where lower is better."""
    better, same, worse = Verdict.BETTER, Verdict.SAME, Verdict.WORSE
    ahead = (1.0, 0.0, -1.0)
    assert verdicts(column_of(measured(ahead), METHODS)) == [better, same, worse]
    assert verdicts(column_of(measured(ahead, better="lower"), METHODS)) == [worse, same, better]


def test_a_cell_is_held_against_its_own_control_and_not_against_random() -> None:
    """Here every method is far above random rankings, and only one above its own copies."""
    one = measured((1.0, 0.0, 0.0))
    far_below = measured((1.0, 0.0, 0.0), random=one.random - 9)
    assert verdicts(column_of(far_below, METHODS)) == verdicts(column_of(one, METHODS))


def test_the_best_is_no_control_and_follows_the_direction() -> None:
    column = column_of(measured((0.0, 1.0, 2.0)), METHODS)
    assert column.best is not None
    assert column.best.method == "dull"
    lower = column_of(measured((0.0, 1.0, -2.0), better="lower"), METHODS)
    assert lower.best is not None
    assert (lower.best.method, lower.arrow, column.arrow) == ("sharp", "↓", "↑")


def test_few_texts_have_means_and_no_verdicts() -> None:
    column = column_of(measured(texts=4), METHODS)
    assert verdicts(column) == [None, None, None]
    assert column.cells[0].interval is None
    assert [cell.group for cell in column.cells] == ["", "", ""]
    assert evaluation(measured(texts=4)).holding() == []


def test_no_interval_reaches_beyond_what_a_metric_can_be() -> None:
    """Of ten texts, nine have 1 and one has 0.2: a studentised interval goes above 1."""
    own = np.ones((10, 3))
    own[0] = 0.2
    free = column_of(measured(own=own, texts=10), METHODS).cells[0]
    assert free.interval is not None
    assert free.interval[1] > 1
    bounded = column_of(replace(measured(own=own, texts=10), range=(0.0, 1.0)), METHODS).cells[0]
    assert bounded.interval == (free.interval[0], 1.0)


def test_a_method_that_was_measured_nowhere_has_no_cell() -> None:
    own = measured().own.copy()
    own[:, 1] = np.nan
    column = column_of(measured(own=own), METHODS)
    assert [cell.method for cell in column.cells] == ["sharp", "random"]
    assert column.cell("dull") is None


def test_a_method_holds_if_it_wins_by_every_metric_under_every_removal() -> None:
    won, lost = measured(), measured((0.0, 1.0, 1.0), removal="delete")
    assert evaluation(won).holding() == ["sharp"]
    assert evaluation(won, lost).holding() == []
    # another kind of metric is another question, and one that says 1 of everything is none
    form = measured((0.0, 1.0, 1.0), "compactness", "", kind="form")
    assert evaluation(won, form, same_everywhere()).holding() == ["sharp"]
    # random is the control, and never holds
    assert evaluation(measured((0.0, 0.0, 1.0))).holding() == []


def test_a_column_is_idle_if_everything_is_the_same() -> None:
    assert column_of(same_everywhere(), METHODS).is_idle
    assert not column_of(measured(), METHODS).is_idle
    one = np.ones((TEXTS, len(METHODS)))
    below = measured(own=one, control=one, random=one[:, 0] - 0.5)
    assert not column_of(below, METHODS).is_idle


def test_removals_disagree_clearly_or_within_the_noise() -> None:
    mask = measured((1.0, 0.0, 0.0))
    apart = evaluation(mask, measured((0.0, 1.0, 0.0), removal="delete"))
    (one,) = apart.disagreements
    assert one.winners == (("mask", "sharp"), ("delete", "dull"))
    assert one.is_clear
    (near,) = evaluation(
        measured((0.0005, 0.0, 0.0)), measured((0.0, 0.0005, 0.0), removal="delete")
    ).disagreements
    assert not near.is_clear
    assert evaluation(mask, measured((1.0, 0.0, 0.0), removal="delete")).disagreements == ()
    # the same winner of another metric is no disagreement with this one
    assert evaluation(mask, measured((0.0, 1.0, 0.0), "aopc")).disagreements == ()


def test_removals_do_not_disagree_clearly_on_too_few_texts() -> None:
    """The enemy: two texts have no groups, and so no winner was in the best group."""
    (one,) = evaluation(
        measured((1.0, 0.0, 0.0), texts=2), measured((0.0, 1.0, 0.0), removal="delete", texts=2)
    ).disagreements
    assert not one.is_clear


def test_settings_that_are_not_the_usual_ones_stand_in_the_name() -> None:
    """The enemy: variance and VSI under one name, in print and in the files."""
    info = find_metric("consistency")
    usual = settings_dict(settings_of(info, {})) | {"seed": 7}
    of = {"metric": "consistency", "removal": "", "version": info.version}
    plain = column_of(measured(settings=usual, **of), METHODS)
    changed = column_of(measured(settings=usual | {"by": "vsi"}, **of), METHODS)
    assert (plain.name, changed.name) == ("consistency", "consistency[by=vsi]")
    table = replace(evaluation(), columns=(plain, changed))
    assert {row["settings"] for row in table.records()} == {"", "by=vsi"}
    assert table.column("consistency") is plain
    assert "consistency[by=vsi]" in table.to_latex()
    assert "consistency[by=vsi]" in table.to_html()
    assert "[by=vsi] ↑" in str(table)
    # a metric that nobody here knows, of a table that somebody sent
    assert column_of(measured(settings={"a": 1}, metric="theirs"), METHODS).label == "theirs"


def test_records_are_a_row_for_each_cell_and_the_control() -> None:
    table = whole()
    rows = table.records()
    assert len(rows) == len(table.columns) * (len(METHODS) + 1)
    first = rows[0]
    cell = table.columns[0].cells[0]
    assert cell.interval is not None
    assert (first["mean"], first["low"], first["high"]) == (cell.mean, *cell.interval)
    assert (first["method"], first["verdict"]) == ("sharp", "better than random")
    assert rows[3]["method"] == "(random rankings)"
    assert table.to_frame().shape == (len(rows), len(first))


def test_a_column_is_found_by_metric_and_removal() -> None:
    table = whole()
    assert table.column("deletion", "delete").removal == "delete"
    assert table.column("deletion").removal == "mask"
    assert table.column("compactness").name == "compactness"
    for asked in (("deletoin",), ("deletion", "pad")):
        with pytest.raises(WhenceError, match=r"deletion \(mask\)"):
            table.column(*asked)


def test_it_survives_json(tmp_path: Path) -> None:
    for number, table in enumerate((whole(), evaluation(), evaluation(measured(texts=2)))):
        path = table.save(tmp_path / f"{number}.json")
        assert whence.read(path).to_dict() == table.to_dict()


def test_a_control_that_was_measured_nowhere_survives_json(tmp_path: Path) -> None:
    """The enemy: a mean of nothing, which JSON cannot hold."""
    nothing = np.full((TEXTS, len(METHODS)), np.nan)
    table = evaluation(measured(random=nothing[:, 0], control=nothing, beaten=nothing))
    assert table.columns[0].random.texts == 0
    again = whence.read(table.save(tmp_path / "a.json"))
    assert str(again) == str(table)
    assert again.to_csv() == table.to_csv()


def without(name: str) -> Any:
    def damage(stored: dict[str, Any]) -> None:
        del stored[name]

    return damage


def put(value: Any, *path: Any) -> Any:
    def damage(stored: dict[str, Any]) -> None:
        *way, last = path
        for step in way:
            stored = stored[step]
        stored[last] = value

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without("columns"), "columns"),
        (put("many", "texts"), "texts: expected a whole number"),
        (put("upwards", "columns", 0, "better"), "columns[0].better"),
        (put("abc", "columns", 1, "cells", 2, "mean"), "columns[1].cells[2].mean"),
        (put("splendid", "columns", 0, "cells", 0, "verdict"), "columns[0].cells[0].verdict"),
        (put([0.5], "columns", 0, "cells", 0, "interval"), "columns[0].cells[0].interval"),
        (put(7, "methods", 0), "methods[0]"),
        (put(99, "schema"), "schema 99"),
        (put([], "gauges", 0), "gauges[0]"),
    ],
)
def test_damage_is_named_with_the_file_and_the_place(
    tmp_path: Path, damage: Any, message: str
) -> None:
    stored = json.loads(json.dumps(whole().to_dict()))
    damage(stored)
    path = tmp_path / "table.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(LoadError) as caught:
        whence.read(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_reading_changes_nothing_that_was_given() -> None:
    stored = whole().to_dict()
    before = copy.deepcopy(stored)
    Evaluation.from_dict(stored)
    assert stored == before


# ---------------------------------------------------------------------- few different values


def found_by_chance(texts: int, methods: int, seed: int, is_constant: bool) -> Measured:
    """1 where the one gold word of 8 to 15 is found by lot; the control is drawn 20 times."""
    rng = np.random.default_rng([seed, texts, methods])
    share = np.full((texts, 1), 0.1) if is_constant else 1 / rng.integers(8, 16, (texts, 1))
    own = (rng.random((texts, methods)) < share).astype(float)
    if is_constant:
        control, spread = share, np.sqrt(share * (1 - share))
    else:
        copies = (rng.random((texts, 20)) < share).astype(float)
        control = copies.mean(1, keepdims=True)
        spread = np.array([[spread_by_chance(row)] for row in copies])
    control, spread = control.repeat(methods, axis=1), spread.repeat(methods, axis=1)
    given = {"own": own, "control": control, "spread": spread, "random": control[:, 0]}
    return measured(metric="iou-f1", removal="", texts=texts, beaten=own, kind="gold", **given)


@pytest.mark.parametrize(("texts", "methods"), [(5, 1), (10, 1), (10, 2), (20, 10), (50, 10)])
@pytest.mark.parametrize("is_constant", [False, True])
def test_methods_that_find_a_rare_thing_by_lot_are_told_apart_in_five_of_a_hundred(
    texts: int, methods: int, is_constant: bool
) -> None:
    """The enemy: ten values of 0 that hardly vary, and are "worse than random" in 38 of 100."""
    false = 0
    for seed in range(100):
        one = found_by_chance(texts, methods, seed, is_constant)
        false += set(_verdicts(one, seed, draws=200)) != {Verdict.SAME}
    assert false <= 8


def test_what_finds_a_rare_thing_every_time_is_better_and_never_is_worse() -> None:
    """The enemy: no verdict wherever values are alike."""
    lot = found_by_chance(50, 2, 0, is_constant=False)
    always = replace(lot, own=np.array([[1.0, 0.0]] * 50))
    assert verdicts(column_of(always, METHODS[:2])) == [Verdict.BETTER, Verdict.WORSE]
    ten = found_by_chance(10, 2, 0, is_constant=False)
    few = replace(ten, own=np.array([[1.0, 0.0]] * 10))
    assert verdicts(column_of(few, METHODS[:2])) == [Verdict.BETTER, Verdict.SAME]
    # parts of before say nothing of the spread of chance
    assert verdicts(column_of(replace(always, spread=None), METHODS[:2])) == [Verdict.SAME] * 2


def test_values_that_differ_are_judged_as_before() -> None:
    """The enemy: less power where nothing is rare."""
    for ahead in ((0.05, 0.02, 0.0), (0.0, -0.03, 0.5)):
        one = measured(ahead)
        wide = replace(one, spread=np.full(one.own.shape, 99.0))
        assert column_of(wide, METHODS) == column_of(one, METHODS)


def test_values_that_are_equal_but_for_rounding_are_one_value_at_any_scale() -> None:
    """The enemy: an interval of the last digits of large numbers."""
    own = np.full((10, 3), 1e9) + np.random.default_rng(0).normal(scale=1e-3, size=(10, 3))
    own[:, 2] += np.arange(10.0) * 1e3
    column = column_of(measured(own=own, texts=10), METHODS)
    assert [cell.interval is None for cell in column.cells] == [True, True, False]


def test_one_value_on_all_texts_has_no_interval() -> None:
    """The enemy: [0, 0] of ten texts, as if the eleventh were known."""
    own = np.zeros((10, 3))
    own[0, 1] = 0.5
    column = column_of(measured(own=own, texts=10, random=np.full(10, 0.3)), METHODS)
    assert [cell.interval is None for cell in column.cells] == [True, False, True]
    assert column.random.interval is None
