"""whence evaluate, as it is typed; one run is shared by the tests that look at what it leaves."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import whence as wh
from tests.cli.conftest import Run
from tests.views.conftest import own
from whence.core.evaluation import Evaluation
from whence.explaining import again
from whence.explaining.planted import planted_of

Whence = Callable[..., Run]
REVIEWS = """id,review,label,why
a,great food and great prices,good,"[""great""]"
b,,good,
c,not bad prices,fair,"[[0, 7]]"
d,the prices are bad,bad,"[""bad""]"
e,the menu is fine but not the food,fair,"[""fine""]"
f,bad food and bad service,bad,"[""bad""]"
g,great menu and fine prices,good,"[""splendid""]"
"""
ASKED = (
    "--methods", "gradient-l2,gradient-x-input", "--metrics", "comprehensiveness,auprc",
    "--rationale", "why", "--planted", 0, "--rankings", 4, "--part", 3,
)  # fmt: skip


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    file = tmp_path / "reviews.csv"
    file.write_text(REVIEWS)
    return file


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"folder": tmp_path_factory.mktemp("evaluate") / "trial"}


@pytest.fixture
def done(
    whence: Whence, reviews: Path, kept: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[Run, Path]:
    """The run, made by whichever test is first."""
    monkeypatch.setenv("COLUMNS", "100")
    if "run" not in kept:
        kept["run"] = whence("evaluate", "--data", reviews, *ASKED, "--out", kept["folder"])
        shutil.copy(reviews, kept["folder"].parent / "reviews.csv")
    return kept["run"], kept["folder"]


def test_help_says_what_it_does(run: Whence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    told = run("evaluate", "--help")
    assert told.code == 0
    assert "Put explanations on trial" in told.out
    for option in ("--data", "--methods", "--metrics", "--rationale", "--planted", "--set"):
        assert option in told.out


def test_it_prints_the_answer_then_the_table_then_the_failures(done: tuple[Run, Path]) -> None:
    told, folder = done
    assert told.code == 3, told.err
    assert told.out.startswith("2 methods by 2 metrics on 5 texts (2 more failed)")
    for part in ("comprehensiveness ↑", "auprc ↑", "random rankings", "2 of 7 texts failed:"):
        assert part in told.out
    assert "row 1 (b): InputError: " in told.out
    assert "marks 'splendid'" in told.out
    assert "text: column 'review'" in told.err
    written = {"table.csv", "table.tex", "table.html", "table.parquet", "run.json"}
    assert written <= {file.name for file in folder.iterdir()}
    assert "<script" not in own((folder / "table.html").read_text())
    rows = list(csv.DictReader(io.StringIO((folder / "table.csv").read_text().lstrip("\ufeff"))))
    assert {row["metric"] for row in rows} == {"comprehensiveness", "auprc"}


def test_a_folder_shows_the_same_table_again(
    run: Whence, done: tuple[Run, Path], tmp_path: Path
) -> None:
    told, folder = done
    again = run("evaluate", "--data", folder)
    assert again.code == 0
    assert again.out == told.out
    page = tmp_path / "page.html"
    as_json = run("evaluate", "--data", folder, "--json", "--html", page)
    table = Evaluation.from_dict(json.loads(as_json.out))
    assert page.read_text() == (folder / "table.html").read_text() == table.to_html()
    assert table.methods == ("gradient-l2", "gradient-x-input")
    full = run("evaluate", "--data", folder, "--full")
    assert "1 more column, under delete: " in told.out
    assert "more column" not in full.out


def test_a_lost_part_is_done_again_and_the_table_is_the_same(
    whence: Whence, run: Whence, done: tuple[Run, Path]
) -> None:
    _, folder = done
    before = json.loads(run("evaluate", "--data", folder, "--json").out)
    parts = sorted((folder / "parts").iterdir())
    parts[-1].unlink()
    data = folder.parent / "reviews.csv"
    again = whence("evaluate", "--data", data, *ASKED, "--out", folder, "--json")
    assert again.code == 3, again.err
    after = json.loads(again.out)
    assert after["columns"] == before["columns"]
    assert after["answer"] == before["answer"]
    other = whence("evaluate", "--data", data, *ASKED, "--out", folder, "--seed", 1)
    assert other.code == 2
    assert "--restart" in other.err


def test_settings_reach_methods_and_metrics(whence: Whence, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("great food and great prices\n")
    told = whence(
        "evaluate", "--data", file, "--methods", "lime", "--metrics", "deletion", "--planted", 0,
        "--set", "lime.samples=30", "--set", "deletion.steps=2", "--rankings", 2,
        "--out", tmp_path / "run", "--json",
    )  # fmt: skip
    assert told.code == 0, told.err
    table = Evaluation.from_dict(json.loads(told.out))
    assert table.column("deletion").settings["steps"] == 2
    (method,) = wh.open_run(tmp_path / "run").manifest.asked["methods"]
    assert method["settings"]["samples"] == 30


def test_a_page_may_lie_in_the_folder_that_out_makes(whence: Whence, tmp_path: Path) -> None:
    file, out = tmp_path / "a.txt", tmp_path / "run"
    file.write_text("great food and great prices\n")
    told = whence(
        "evaluate", "--data", file, "--methods", "random", "--metrics", "compactness",
        "--planted", 0, "--rankings", 2, "--out", out, "--html", out / "page.html",
    )  # fmt: skip
    assert told.code == 0, told.err
    assert (out / "page.html").is_file()


def test_a_run_of_explanations_is_no_evaluation(
    whence: Whence, run: Whence, tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("great food\n")
    out = tmp_path / "run"
    assert whence("run", file, "--methods", "gradient-l2", "--out", out, "--no-evidence").code == 0
    told = run("evaluate", "--data", out)
    assert told.code == 2
    assert "is a run of explanations, and no evaluation" in told.err


def test_mistakes_are_one_line_and_exit_code_two(whence: Whence, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text,label\ngreat food,good\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    few = ("--methods", "gradient-l2", "--metrics", "deletion")
    for arguments, message in [
        ((), "there are no data"),
        (("--data", file, "--methods", ","), "there are no methods"),
        (("--data", file, "--methods", "random", "--metrics", "auprc"), "--rationale COLUMN"),
        (("--data", file, "--metrics", "faithfullness"), "Did you mean 'faithfulness'?"),
        (("--data", file, "--methods", "gradient-l3"), "Did you mean 'gradient-l2'"),
        (("--data", file, "--metrics", "deletoin"), "Did you mean 'deletion'"),
        (("--data", tmp_path / "nowhere.csv", *few), "nowhere.csv"),
        (("--data", empty, *few), "empty"),
        (("--data", file, "--text", "review", *few), "review"),
        (("--data", file, "--rationale", "why", *few), "why"),
        (("--data", file, *few, "--removals", "burn"), "burn"),
        (("--data", file, *few, "--set", "deletion.stepps=3"), "steps"),
        (("--data", file, "--set", "deletion.steps=3"), "--set needs --metrics"),
        (("--data", file, *few, "--gold", "--label", "stars"), "stars"),
        (("--data", file, *few, "--html", tmp_path / "no" / "a.html"), "does not exist"),
        (("--data", file, *few, "--add", tmp_path / "no.json"), "no.json"),
        (("--data", file, *few, "--add", file), "a.csv"),
    ]:
        told = whence("evaluate", *arguments)
        assert (told.code, told.out) == (2, ""), (arguments, told)
        lines = [line for line in told.err.splitlines() if "(by its name)" not in line]
        assert len(lines) == 1, told.err
        assert message in told.err


def test_results_of_another_tool_are_tried_beside(
    whence: Whence, folder: Path, tmp_path: Path
) -> None:
    text = "great food and great prices"
    file = tmp_path / "a.txt"
    file.write_text(text + "\n")
    model = wh.load(folder)
    scores = [5.0, 4.0, 3.0, 2.0, 1.0]
    added = wh.Attribution.from_scores(model, text, scores, method="in order")
    saved = added.save(tmp_path / "in-order.json")
    told = whence(
        "evaluate", "--data", file, "--methods", "gradient-l2", "--metrics", "deletion",
        "--planted", 0, "--rankings", 2, "--add", saved, "--json",
    )  # fmt: skip
    assert told.code == 0, told.err
    assert json.loads(told.out)["methods"] == ["gradient-l2", "in order"]


# ---------------------------------------------------------------------- bad rows


def test_each_bad_row_is_named_and_kept_and_the_others_are_done(
    whence: Whence, run: Whence, tmp_path: Path
) -> None:
    # would catch: a bad row that ends the command, or that is counted and not named
    rows = [
        ["great food and great prices", "0", '["great"]'],
        ["not bad prices", "splendid", "[[0, 7]]"],
        ["the " * 100, "0", ""],
        ["the prices are bad", "1", "[[0, 400]]"],
        ["bad food and bad service", "1", "bad ["],
        ["the menu is fine", "", ""],
        ["bad food and fine prices", "1", '["bad"]'],
    ]
    file, out = tmp_path / "bad.csv", tmp_path / "run"
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([["text", "label", "why"], *rows])
    told = whence("evaluate", "--data", file, *ASKED, "--gold", "--out", out)
    assert told.code == 3, told.err
    assert told.out.startswith("2 methods by 2 metrics on 2 texts (5 more failed)")
    reasons = {
        1: "TargetError: label 'splendid'",
        2: "InputError: the text has 102 tokens",
        3: "InputError: line 5: column 'why' marks the characters 0 to 400",
        4: "InputError: line 6: column 'why' holds 'bad ['",
        5: "InputError: the data give no label for this text",
    }
    listed = told.out.split("5 of 7 texts failed:\n")[1].splitlines()
    assert len(listed) == len(reasons)
    for line, (row, reason) in zip(listed, reasons.items(), strict=True):
        assert line.startswith(f"  row {row}: {reason}")  # without an id that is its number
    kept = [json.loads(line) for line in _failures(run, out)]
    assert {failure["row"]: failure["message"] for failure in kept}.keys() == reasons.keys()


def test_labels_that_are_named_and_not_used_are_said(whence: Whence, tmp_path: Path) -> None:
    # would catch: --label without --gold, where a wrong label passes without a word
    file = tmp_path / "labelled.csv"
    file.write_text("text,label\ngreat food,splendid\nbad food,bad\n")
    asked = ("--methods", "gradient-l2", "--metrics", "compactness", "--planted", 0)
    named = whence("evaluate", "--data", file, *asked, "--label", "label")
    assert named.code == 0, named.err
    assert "labels are only kept (--gold explains them)" in named.err
    found = whence("evaluate", "--data", file, *asked)
    assert "only kept" not in found.err
    explained = whence("evaluate", "--data", file, *asked, "--label", "label", "--gold")
    assert explained.code == 3
    assert "only kept" not in explained.err


def _failures(run: Whence, out: Path) -> list[str]:
    return run("query", out, "select * from failures", "--json").out.splitlines()


def test_many_failures_are_cut_short_and_can_only_be_read(whence: Whence, tmp_path: Path) -> None:
    # would catch: an id of the data that colours the terminal, or worse
    file = tmp_path / "bad.csv"
    file.write_text("id,text\n\x1b[31mred,\n" + "b,\n" * 6)
    few = ("--methods", "gradient-l2", "--metrics", "deletion", "--planted", 0)
    told = whence("evaluate", "--data", file, *few)
    assert told.code == 3, told.err
    lines = told.out.splitlines()
    assert lines[0].startswith("Nothing is measured of ")
    assert "yet, and 7 texts failed." in " ".join(lines[:3])
    assert lines[-7] == "7 of 7 texts failed:"
    assert lines[-6].startswith("  row 0 (\\x1b[31mred): InputError: ")
    assert lines[-1] == "  … --out FOLDER keeps all"
    kept = whence("evaluate", "--data", file, *few, "--out", tmp_path / "kept")
    query = f'  … whence query {tmp_path / "kept"} "select * from failures" lists all'
    assert kept.out.splitlines()[-1] == query
    explained = whence(
        "run", file, "--methods", "gradient-l2", "--no-evidence", "--out", tmp_path / "run"
    )
    assert "row 0 (\\x1b[31mred)" in explained.out
    assert "\x1b" not in told.out + kept.out + explained.out


# ---------------------------------------------------------------------- what takes long


def test_what_is_dear_is_said_before_it_is_paid(
    whence: Whence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The enemy: the sum over the metrics, which is 5; two seeds are the same for both."""
    file = tmp_path / "a.txt"
    file.write_text("great food and great prices\n")
    made = []
    real = again.made_again

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(again, "made_again", counted)
    few = ("--data", file, "--methods", "random", "--planted", 0, "--rankings", 2)
    told = whence(
        "evaluate", *few, "--metrics", "consistency,model-randomisation,deletion",
        "--set", "consistency.seeds=2", "--set", "model-randomisation.steps=1",
    )  # fmt: skip
    assert told.code == 0, told.err
    assert len(made) == 3
    assert told.err.splitlines()[0] == (
        "whence: for consistency and model-randomisation each explanation is made up to 3 times "
        "more, which takes most of the time; --metrics faithfulness,gold,form leaves them out"
    )
    assert "made up to" not in whence("evaluate", *few, "--metrics", "deletion,form").err


# ---------------------------------------------------------------------- ended early


@contextmanager
def _interrupted_at(row: int) -> Iterator[Callable[[int, int, int], None]]:
    """Ctrl-C as soon as so many rows are done."""

    def press(done: int, failed: int, rows: int) -> None:
        del failed, rows
        if done == row:
            os.kill(os.getpid(), signal.SIGINT)

    yield press


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    whence: Whence, run: Whence, done: tuple[Run, Path], tmp_path: Path, monkeypatch: Any
) -> None:
    undisturbed, folder = done
    data, out = folder.parent / "reviews.csv", tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("whence.cli.evaluate.pace_shown", lambda _: _interrupted_at(3))
        ended = whence("evaluate", "--data", data, *ASKED, "--out", out)
    assert ended.code == 130
    assert "stopping after the part at hand" in ended.err
    assert "Not all texts are done: 3 of 7." in ended.out
    assert ended.out.endswith("The same command goes on from here.\n")

    shown = run("evaluate", "--data", out)
    assert shown.code == 0
    assert shown.out == ended.out.replace("The same command", "The command that began this")
    as_json = run("evaluate", "--data", out, "--json")
    assert json.loads(as_json.out)["notes"] == ["Not all texts are done: 3 of 7."]
    assert "The command that began this goes on from here." in as_json.err
    assert "Not all texts are done: 3 of 7." in (out / "table.html").read_text()

    again = whence("evaluate", "--data", data, *ASKED, "--out", out)
    assert (again.code, again.out) == (undisturbed.code, undisturbed.out)
    for name in ("table.csv", "table.tex", "table.html"):
        assert (out / name).read_bytes() == (folder / name).read_bytes()


def test_ctrl_c_after_the_last_text_leaves_the_rest_for_the_next_time(
    whence: Whence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would catch: exit code 0 and no word of what was left out
    file, out = tmp_path / "a.txt", tmp_path / "run"
    file.write_text("great food and great prices\nnot bad prices\n")
    asked = ("evaluate", "--data", file, "--methods", "gradient-l2", "--metrics", "compactness")
    asked += ("--rankings", 2, "--planted")
    with monkeypatch.context() as patch:
        patch.setattr("whence.cli.evaluate.pace_shown", lambda _: _interrupted_at(2))
        ended = whence(*asked, 1, "--out", out)
        lost = whence(*asked, 1)
    assert (ended.code, lost.code) == (130, 130)
    assert "Not all texts" not in ended.out
    assert "Where the truth is known" not in ended.out
    words = " ".join(ended.out.split())
    assert words.endswith(
        "Not done: how far removal leads out of the data and the methods where the truth is known. "
        "The same command goes on from here."
    )
    assert "Nothing of this is kept. With --out FOLDER" in lost.out
    again = whence(*asked, 0, "--out", out)
    assert again.code == 0, again.err
    assert "how far removal leads out of the data" in again.err
    assert "How far removal leads out of the data was not measured" in " ".join(again.out.split())
    assert "goes on from here" not in again.out


def test_ctrl_c_breaks_off_planted_truth_and_keeps_the_mechanisms_that_are_done(
    whence: Whence, run: Whence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would catch: a stop that waits for all mechanisms, or that throws the first two away
    file, out, other = tmp_path / "a.txt", tmp_path / "run", tmp_path / "undisturbed"
    file.write_text("great food and great prices\n")
    asked = ("evaluate", "--data", file, "--methods", "gradient-l2", "--metrics", "compactness")
    asked += ("--rankings", 2, "--planted", 2)
    undisturbed = whence(*asked, "--out", other)
    real, tried = planted_of, []

    def pressed(wishes: Any, mechanisms: Any, *more: Any, **options: Any) -> Any:
        tried.extend(mechanisms)
        if mechanisms == ["negation"]:
            options["progress"] = lambda _: os.kill(os.getpid(), signal.SIGINT)
        return real(wishes, mechanisms, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr("whence.explaining.evaluate.planted_of", pressed)
        ended = whence(*asked, "--out", out)
    assert ended.code == 130
    assert tried == ["keyword", "pair", "negation"]
    words = " ".join(ended.out.split())
    missing = "negation, position, leak, distractor"
    assert f"Where the truth is known, these are not tried yet: {missing}." in words
    assert words.endswith(
        "Not done: the methods where the truth is known. The same command goes on from here."
    )
    shown = run("evaluate", "--data", out)
    assert f"these are not tried yet: {missing}." in " ".join(shown.out.split())
    assert shown.out.endswith("The command that began this goes on from here.\n")

    again = whence(*asked, "--out", out)
    assert (again.code, again.out) == (0, undisturbed.out)
    for name in ("planted.json", "gauges.json", "table.csv", "table.html"):
        assert (out / name).read_bytes() == (other / name).read_bytes()


def test_fail_fast_names_the_folder_where_there_is_one(whence: Whence, tmp_path: Path) -> None:
    """The enemy: the name of a temporary folder, which is gone when it is read."""
    file, out = tmp_path / "bad.csv", tmp_path / "kept"
    file.write_text("id,text\na,\nb,great food\n")
    few = ("--methods", "gradient-l2", "--metrics", "deletion", "--planted", 0, "--fail-fast")
    kept = whence("evaluate", "--data", file, *few, "--out", out)
    assert (kept.code, f"what is done is kept in '{out}'" in kept.err) == (2, True)
    for command in (("evaluate", *few), ("audit", "--tests", "uniform", "--fail-fast")):
        told = whence(command[0], "--data", file, *command[1:])
        assert told.code == 2
        assert "row 0: InputError: " in told.err
        assert "(--fail-fast; nothing is kept without --out FOLDER)" in told.err
        assert "kept in" not in told.err
