"""whence run and whence query, as they are typed."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from whence.core.confusion import Confusion

REVIEWS = """id,review,label
a,great food and great prices,good
b,,good
c,not bad prices,fair
d,the prices are bad,bad
"""
Whence = Callable[..., Run]


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    file = tmp_path / "reviews.csv"
    file.write_text(REVIEWS)
    return file


@pytest.fixture
def done(whence: Whence, reviews: Path, tmp_path: Path) -> tuple[Run, Path]:
    out = tmp_path / "runs" / "reviews"
    methods = ("--methods", "occlusion,gradient-l2", "--rankings", 39, "--steps", 2)
    return whence("run", reviews, *methods, "--out", out), out


def test_a_run_tells_what_is_done_and_what_failed(done: tuple[Run, Path]) -> None:
    told, out = done
    assert told.code == 3
    assert f"{out}: all 4 texts are done, 1 of them failed." in told.out
    assert "row 1 (b): InputError: " in told.out
    assert "text: column 'review'" in told.err
    assert (out / "run.json").exists()


def test_the_answer_stands_in_the_terminal_and_its_commands_work(
    run: Callable[..., Run], done: tuple[Run, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, out = done
    assert "3 texts: the model says" in told.out
    records = [json.loads(s) for s in run("query", out, "--confusion", "--json").out.splitlines()]
    assert sum(record["texts"] for record in records) == 3
    wrong = [json.loads(s) for s in run("query", out, "--wrong", "--json").out.splitlines()]
    off = [record for record in records if record["given"] != record["says"]]
    assert len(wrong) == sum(record["texts"] for record in off)
    words = " ".join(told.out.split())
    if wrong:
        assert f"It is wrong on {len(wrong)} of the 3 texts" in words
    commands = [line[2:] for line in told.out.splitlines() if line.startswith("  whence ")]
    assert commands
    monkeypatch.chdir(tmp_path)
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "whence"
        assert run(*arguments).code == 0, command


def test_the_state_is_told_without_the_data(run: Callable[..., Run], done: Any) -> None:
    _, out = done
    told = run("run", out)
    assert told.code == 0
    assert "all 4 texts are done" in told.out
    state = json.loads(run("run", out, "--json").out)
    assert (state["rows"], state["failed"], state["is_complete"]) == (4, 1, True)
    assert Confusion.from_dict(state["confusion"]).texts == 3


def test_the_same_command_goes_on_and_another_is_refused(
    whence: Whence, done: tuple[Run, Path], reviews: Path
) -> None:
    _, out = done
    methods = ("--methods", "occlusion,gradient-l2", "--rankings", 39, "--steps", 2)
    parts = sorted(out.glob("parts/*"))
    assert whence("run", reviews, *methods, "--out", out).code == 3
    assert sorted(out.glob("parts/*")) == parts
    other = whence("run", reviews, *methods, "--out", out, "--seed", 1)
    assert other.code == 2
    assert "request.seed: 0 in the run, 1 asked for now" in other.err
    assert "--restart" in other.err
    assert whence("run", reviews, *methods, "--out", out, "--seed", 1, "--restart").code == 3


def test_queries_as_a_table_csv_and_json(run: Callable[..., Run], done: tuple[Run, Path]) -> None:
    _, out = done
    sql = "select method, count(*) as units, null as nothing from scores group by 1 order by 1"
    table = run("query", out, sql)
    assert table.code == 0
    assert table.out.splitlines()[0].split() == ["method", "units", "nothing"]
    assert table.out.splitlines()[1].split() == ["gradient-l2", "12", "–"]
    rows = list(csv.DictReader(io.StringIO(run("query", out, sql, "--csv").out)))
    assert rows[1] == {"method": "occlusion", "units": "12", "nothing": ""}
    lines = run("query", out, sql, "--json").out.splitlines()
    assert json.loads(lines[0]) == {"method": "gradient-l2", "units": 12, "nothing": None}


def test_where_nothing_is_asked_it_lists_what_can_be(
    run: Callable[..., Run], done: tuple[Run, Path]
) -> None:
    _, out = done
    listed = run("query", out)
    assert listed.code == 0
    for part in ("texts: 3 rows", "failures: 1 row\n", "scores: 24 rows", "--words", "--verdicts"):
        assert part in listed.out
    lines = [json.loads(line) for line in run("query", out, "--json").out.splitlines()]
    columns = {line["table"]: line["columns"] for line in lines if "table" in line}
    for table, names in columns.items():
        asked = f"select {', '.join(names)} from {table}"
        assert run("query", out, asked, "--csv").code == 0
    assert {line["question"] for line in lines if "question" in line} == {
        "--words",
        "--verdicts",
        "--wrong",
        "--confusion",
    }


def test_the_ready_questions(run: Callable[..., Run], done: tuple[Run, Path]) -> None:
    _, out = done
    words = [json.loads(line) for line in run("query", out, "--words", "--json").out.splitlines()]
    prices = [record for record in words if record["word"] == "prices"]
    assert prices
    for record in prices:
        assert record["low"] <= record["share"] <= record["high"]
        assert record["texts"] >= 2
    verdicts = [
        json.loads(line) for line in run("query", out, "--verdicts", "--json").out.splitlines()
    ]
    assert {record["method"] for record in verdicts} == {"occlusion", "gradient-l2"}
    for record in verdicts:
        assert record["better"] + record["same"] + record["worse"] <= record["texts"] == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "there are no data"),
        (["run", "nowhere.csv", "--out", "x"], "there is no file or folder 'nowhere.csv'"),
        (["run", "REVIEWS"], "--out runs/NAME"),
        (["run", "REVIEWS", "--out", "x", "--text", "reviews"], "Did you mean 'review'"),
        (["run", "REVIEWS", "--out", "x", "--methods", "lim"], "Did you mean 'lime'"),
        (["run", "REVIEWS", "--out", "x", "--methods", "lime", "--set", "lime.sample=3"], "sample"),
        (["run", "REVIEWS", "--out", "x", "--methods", "lime", "--set", "lime"], "METHOD.SETTING"),
        (["run", "REVIEWS", "--out", "x", "--engine", "rai"], "Did you mean 'ray'"),
        (["run", "REVIEWS", "--out", "x", "--address", "host:1"], "ask for the engine ray too"),
        (["run", "REVIEWS", "--out", "x", "--engine", "ray", "--address", "host"], "10.0.0.1:6379"),
        (["run", "REVIEWS", "--out", "x", "--engine", "inline", "--workers", "2"], "inline"),
        (["query", "nowhere", "select 1"], "there is no run in 'nowhere'"),
        (["query", "nowhere"], "there is no run in 'nowhere'"),
        (["query", "nowhere", "--csv"], "ask one thing"),
        (["query", "nowhere", "select 1", "--words"], "ask one thing"),
    ],
)
def test_mistakes_are_one_line(
    run: Callable[..., Run],
    folder: Path,
    reviews: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(reviews) if word == "REVIEWS" else word for word in arguments]
    model = ["--model", str(folder)] if given[0] == "run" else []
    told = run(*given, *model)
    assert told.code == 2
    assert said in told.err
    assert len([line for line in told.err.splitlines() if "column '" not in line]) == 1


def test_a_file_that_describes_a_run(
    run: Callable[..., Run], folder: Path, reviews: Path, tmp_path: Path
) -> None:
    spec = tmp_path / "reviews.toml"
    spec.write_text(
        f'data = "reviews.csv"\nmodel = "{folder}"\nout = "runs/spec"\nevidence = false\n'
        'limit = 1\nengine = "inline"\n[methods.lime]\nsamples = 130\n'
    )
    told = run("run", spec)
    assert told.code == 0, told.err
    stored = json.loads((tmp_path / "runs" / "spec" / "run.json").read_text())
    (method,) = stored["asked"]["methods"]
    assert (method["name"], method["settings"]["samples"]) == ("lime", 130)
    spec.write_text('data = "reviews.csv"\nout = "x"\nengine = "rai"\n')
    assert "Did you mean 'ray'" in run("run", spec).err
    spec.write_text('data = "reviews.csv"\nsampel = 3\n')
    assert "Did you mean 'sample'" in run("run", spec).err


def test_a_setting_by_flag(whence: Whence, reviews: Path, tmp_path: Path) -> None:
    out = tmp_path / "x"
    flags = ("--methods", "lime", "--set", "lime.samples=130", "--no-evidence", "--limit", 1)
    assert whence("run", reviews, *flags, "--out", out).code == 0
    stored = json.loads((out / "run.json").read_text())
    assert stored["asked"]["methods"][0]["settings"]["samples"] == 130


def test_a_page_of_a_run_and_tables_for_a_paper(
    run: Callable[..., Run], done: tuple[Run, Path], tmp_path: Path
) -> None:
    _, out = done
    told = run("run", out, "--html", tmp_path / "page.html")
    assert told.code == 0
    assert f"page written to {tmp_path / 'page.html'}" in told.err
    page = (tmp_path / "page.html").read_text()
    assert "3 texts: the model says" in page
    assert "row 1 (b)" in page
    sql = "select unit, avg(score) as mean from scores group by 1 order by 1 limit 1"
    assert run("query", out, sql, "--latex").out.splitlines()[2] == r"  unit & mean \\"
    assert run("query", out, sql, "--markdown").out.splitlines()[1] == "|---|---|"
    both = run("query", out, sql, "--markdown", "--csv")
    assert both.code == 2
    assert "print one thing" in both.err
    nowhere = run("run", out, "--html", tmp_path / "no" / "page.html")
    assert nowhere.code == 2


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_explain_and_compare_keep_a_file_in_a_run(
    whence: Whence, run: Callable[..., Run], tmp_path: Path, command: str
) -> None:
    file, out, saved = tmp_path / "texts.txt", tmp_path / "kept", tmp_path / "saved.json"
    file.write_bytes(b"great food and great prices\n\nbroken \xff\nnot bad prices\n")
    method = ("--method", "lime") if command == "explain" else ("--methods", "lime,gradient-l2")
    asked = (command, "--file", file, *method, "--no-evidence", "--out", out, "--save", saved)
    told = whence(*asked)
    assert told.code == 3
    assert "2 texts: the model says" in told.out
    assert f"{file}, line 3: not UTF-8" in told.err
    many = json.loads(saved.read_text())
    texts = [result["passage"]["text"] for result in many["results"]]
    assert texts == ["great food and great prices", "not bad prices"]
    assert {result["kind"] for result in many["results"]} == {
        "attribution" if command == "explain" else "comparison"
    }

    # the same again does nothing again, and shows and writes the same
    parts = {part: part.stat().st_mtime_ns for part in out.glob("parts/*")}
    saved.unlink()
    again = whence(*asked)
    assert (again.code, again.out) == (3, told.out)
    assert {part: part.stat().st_mtime_ns for part in out.glob("parts/*")} == parts
    assert json.loads(saved.read_text()) == many
    assert "all 3 texts are done, 1 of them failed" in run("run", out).out
    other = whence(*asked, "--seed", 1)
    assert other.code == 2
    assert "request.seed" in other.err


def test_out_needs_a_file(whence: Whence, tmp_path: Path) -> None:
    told = whence("explain", "great food", "--method", "lime", "--out", tmp_path / "x")
    assert told.code == 2
    assert "--file FILE" in told.err
