"""Files of many lines, some of them bad: the others are explained, and what is done is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import whence as wh
from whence.explaining import explain as explaining

LONG = b"word " * 800
BAD = {3: b"b\xff", 5: LONG, 9: "\u200b".encode()}
COMMANDS = {
    "explain": ("explain", "--method", "gradient-l2"),
    "in batches": ("explain", "--method", "gradient-l2", "--no-evidence"),
    "compare": ("compare", "--methods", "gradient-l2,random", "--no-evidence"),
}


@pytest.fixture
def texts(tmp_path):
    """Twenty lines, of which three are bad and one is blank."""
    lines = [f"a fine film number {i}".encode() for i in range(1, 21)]
    for number, line in BAD.items():
        lines[number - 1] = line
    lines[6] = b"  "
    path = tmp_path / "texts.txt"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def numbers_of(failures) -> list[int]:
    return [failure.line for failure in failures]


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_lines_are_listed_and_the_others_explained(whence, texts, tmp_path, command):
    page, saved, table = tmp_path / "a.html", tmp_path / "a.json", tmp_path / "a.csv"
    files = ("--html", page, "--save", saved, "--csv", table)
    name, *options = COMMANDS[command]
    done = whence(name, *options, "--file", texts, *files)
    assert done.code == 2
    assert "3 of 19 texts could not be explained" in done.err
    assert "1 blank line" in done.err
    for number in BAD:
        assert f"line {number}: " in done.err
        assert f"line {number}: " in " ".join(done.out.split())  # lines are wrapped
        assert f"line {number}: " in page.read_text()
    many = wh.read(saved)
    assert len(many) == 16
    assert numbers_of(many.failures) == sorted(BAD)
    assert "not UTF-8" in many.failures[0].reason
    assert [result.passage.text for result in many][:3] == [
        "a fine film number 1",
        "a fine film number 2",
        "a fine film number 4",
    ]
    assert "number 20" in table.read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_json_has_a_line_for_each(whence, texts, tmp_path, command):
    name, *options = COMMANDS[command]
    done = whence(name, *options, "--file", texts, "--json")
    assert done.code == 2
    kinds = [json.loads(line)["kind"] for line in done.out.splitlines()]
    assert kinds.count("failure") == 3
    assert len(kinds) == 19
    lines = tmp_path / "lines.jsonl"
    lines.write_text(done.out)
    many = wh.read(lines)
    assert (len(many), numbers_of(many.failures)) == (16, sorted(BAD))


@pytest.mark.parametrize("kind", [wh.WhenceError, RuntimeError])
def test_a_text_that_fails_in_its_batch_takes_no_other_with_it(whence, texts, monkeypatch, kind):
    real = explaining.run

    def run(model, passages, *more):
        if any("number 12" in passage.text for passage in passages):
            raise kind("no such luck")
        return real(model, passages, *more)

    monkeypatch.setattr(explaining, "run", run)
    done = whence(*COMMANDS["in batches"], "--file", texts, "--json")
    assert done.code == (2 if kind is wh.WhenceError else 1)  # the second is a mistake of ours
    said = [json.loads(line) for line in done.out.splitlines()]
    failed = {one["line"]: one["reason"] for one in said if one["kind"] == "failure"}
    assert sorted(failed) == sorted([*BAD, 12])
    assert "no such luck" in failed[12]
    assert len(said) - len(failed) == 15


def test_what_would_meet_every_text_ends_the_run_at_once(whence, texts):
    done = whence(*COMMANDS["explain"], "--file", texts, "--target", "no-such-label")
    assert done.code == 2
    assert done.err.splitlines()[-1].count("no-such-label") == 1
    assert "could not be explained" not in done.err


def test_nothing_is_written_where_nothing_is_done(whence, tmp_path):
    texts, page = tmp_path / "texts.txt", tmp_path / "a.html"
    texts.write_bytes(b"\n".join([LONG, LONG]))
    page.write_text("precious")
    done = whence(*COMMANDS["explain"], "--file", texts, "--html", page)
    assert done.code == 2
    assert page.read_text() == "precious"


def test_the_other_results_of_an_error_in_the_middle_are_kept(whence, texts, tmp_path, monkeypatch):
    real = explaining.compare_as_asked
    page, saved = tmp_path / "a.html", tmp_path / "a.json"

    def interrupted(model, passage, *more):
        if "number 12" in passage.text:
            raise KeyboardInterrupt
        return real(model, passage, *more)

    monkeypatch.setattr(explaining, "compare_as_asked", interrupted)
    done = whence(*COMMANDS["compare"], "--file", texts, "--html", page, "--save", saved)
    assert done.code == 130
    assert "ended early: 7 of 19 texts are done" in done.err
    many = wh.read(saved)
    assert (len(many), len(many.failures), many.unreached) == (7, 3, 9)
    assert "The run was ended before 9 texts" in page.read_text()
    assert "The run was ended before 9 texts" in done.out


@pytest.mark.slow
def test_ctrl_c_keeps_the_page_of_what_is_done(folder, tmp_path):
    texts, page = tmp_path / "texts.txt", tmp_path / "a.html"
    texts.write_text("not bad at all\n" * 100_000)
    page.write_text("old")
    run = [sys.executable, "-m", "whence.cli.main", "explain", "--method", "gradient-l2", "--json"]
    run += ["--no-evidence", "--model", str(folder), "--file", str(texts), "--html", str(page)]
    running = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline().startswith('{"schema"')  # flushed as it came
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=600)
    assert running.returncode == 130
    assert "ended early" in err
    assert "The run was ended before" in page.read_text()
    assert len(page.read_text()) > 10_000


VERBS = {"predict": "run through the model", "attend": "looked at"}


@pytest.mark.parametrize("command", VERBS)
def test_other_commands_go_on_after_a_bad_line_too(whence, texts, command):
    done = whence(command, "--file", texts, "--json")
    assert done.code == 2
    assert f"3 of 19 texts could not be {VERBS[command]}" in done.err
    for number in BAD:
        assert f"line {number}: " in done.err
    said = [json.loads(line) for line in done.out.splitlines()]
    failed = [one["line"] for one in said if one.get("kind") == "failure"]
    assert sorted(failed) == sorted(BAD)
    good = [one["text"] for one in said if one.get("kind") != "failure"]
    assert good == [f"a fine film number {i}" for i in range(1, 21) if i not in (*BAD, 7)]


def test_theory_goes_on_and_writes_the_page_of_the_good_lines(run, tmp_path):
    texts, page = tmp_path / "texts.txt", tmp_path / "a.html"
    texts.write_bytes(b"a fine film\nb\xff\nnot bad\n")
    done = run("theory", "--file", texts, "--no-evidence", "--json", "--html", page)
    assert done.code == 2
    assert "1 of 3 texts could not be explained" in done.err
    said = [json.loads(line) for line in done.out.splitlines()]
    assert [one.get("line") for one in said if "kind" in one] == [2]
    assert len(said) == 3
    assert "not bad" in page.read_text()


def test_theory_keeps_the_page_of_what_is_done(run, tmp_path, monkeypatch):
    from whence.explaining import closed_forms as module

    real = module.closed_forms
    texts, page = tmp_path / "texts.txt", tmp_path / "a.html"
    texts.write_text("a fine film\nnot bad\n")

    def interrupted(model, passage, **more):
        if passage.text == "not bad":
            raise KeyboardInterrupt
        return real(model, passage, **more)

    monkeypatch.setattr(module, "closed_forms", interrupted)
    done = run("theory", "--file", texts, "--no-evidence", "--json", "--html", page)
    assert done.code == 130
    assert "a fine film" in page.read_text()


@pytest.mark.parametrize("command", VERBS)
def test_a_text_that_the_model_cannot_run_takes_no_other_with_it(
    whence, texts, monkeypatch, command
):
    from whence.core.errors import ModelError
    from whence.models.model import Model

    real = Model.batch

    def batch(self, passages, *more, **options):
        if any("number 12" in passage.text for passage in passages):
            raise ModelError("no such luck")
        return real(self, passages, *more, **options)

    monkeypatch.setattr(Model, "batch", batch)
    done = whence(command, "--file", texts, "--json")
    assert done.code == 2
    said = [json.loads(line) for line in done.out.splitlines()]
    failed = {one["line"]: one["reason"] for one in said if one.get("kind") == "failure"}
    assert sorted(failed) == sorted([*BAD, 12])
    assert failed[12] == "no such luck"
    assert len(said) == 19


def test_a_word_that_the_first_text_does_not_have_ends_nothing(run, tmp_path):
    # would catch: any TargetError of the first line taken for one of every line
    texts = tmp_path / "texts.txt"
    texts.write_text("a dull play\na fine film\nthe film was long\n")
    for command in (("predict",), ("explain", "--method", "gradient-l2", "--no-evidence")):
        done = run(*command, "--model", "filler", "--file", texts, "--at", "film", "--json")
        assert done.code == 2
        kinds = [json.loads(line).get("kind") for line in done.out.splitlines()]
        assert (kinds.count("failure"), len(kinds)) == (1, 3)


def test_what_only_one_text_of_the_first_batch_meets_does_not_end_the_run(
    whence, texts, monkeypatch
):
    # would catch: "the first text" read as "before anything is printed", and a batch prints late
    real = explaining.run

    def run(model, passages, *more):
        if any("number 4" in passage.text for passage in passages):
            raise wh.Unsupported("not this one")
        return real(model, passages, *more)

    monkeypatch.setattr(explaining, "run", run)
    done = whence(*COMMANDS["in batches"], "--file", texts, "--json")
    kinds = [json.loads(line)["kind"] for line in done.out.splitlines()]
    assert (kinds.count("failure"), len(kinds)) == (4, 19)


def test_the_page_is_written_also_where_the_reader_has_gone(whence, texts, tmp_path, monkeypatch):
    # whence compare --file … --html page.html | head -1
    import typer

    def gone(_view):
        raise typer.Exit(141)

    page = tmp_path / "a.html"
    monkeypatch.setattr("whence.cli.reports.show", gone)
    done = whence(*COMMANDS["compare"], "--file", texts, "--html", page)
    assert done.code == 141
    assert "number 20" in page.read_text()
