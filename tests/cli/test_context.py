"""whence context as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import whence

PLANTED = (
    *("context", "--model", "translator", "--separator", " | "),
    *("--context", "the lamps stay under the teacher ."),
    "--no-evidence",
)
NEEDS = (*PLANTED, "--input", "they push the cow .")


@pytest.fixture
def documents(tmp_path: Path) -> tuple[Path, Path]:
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("I saw it. It was good.\n")
    b.write_text("Nobody liked it. I cried.\n")
    return a, b


def test_the_answer_names_the_word_and_its_source(run) -> None:
    done = run(*NEEDS)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "1 of 5 written words depends on the context: “elas”." in said
    assert "rests most on “lamps” (word 2 of the context)" in said
    assert "without context “elos” would be likelier" in said


def test_nothing_depends_on_the_context_and_that_is_no_error(run) -> None:
    done = run(*PLANTED, "--input", "the nurse reaches the cow .")
    assert done.code == 0, done.err
    assert "No word of the output depends on the context" in done.out


def test_everything_is_written(run, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"use.{name}" for name in ("html", "csv", "save")}
    options = [part for name, path in paths.items() for part in (f"--{name}", path)]
    done = run(*NEEDS, *options, "--json", "--methods", "occlusion,gradient-l2")
    assert done.code == 0, done.err
    use = whence.ContextUse.from_dict(json.loads(done.out))
    assert use.methods == ("occlusion", "gradient-l2")
    assert whence.read(paths["save"]).to_dict() == use.to_dict()
    assert "elas" in paths["html"].read_text()
    assert paths["csv"].read_text().startswith("output,token,with,without")


def test_documents_are_files_by_their_names(run, documents) -> None:
    more = ("--input", "The movie was", "--tokens", 5, "--least", 0, "--no-evidence")
    done = run("context", "--documents", *documents, *more, "--json")
    assert done.code == 0, done.err
    use = whence.ContextUse.from_dict(json.loads(done.out))
    assert use.place(3) == "sentence 2 of b.txt"
    assert use.passage.kind == "sentence"


def test_options_reach_the_selection(run) -> None:
    options = ("--measure", "p-cxmi", "--deviations", -1, "--most", 2, "--least", 0)
    done = run(*NEEDS, *options, "--continuation", "elas pussen la vaka .", "--json")
    assert done.code == 0, done.err
    use = whence.ContextUse.from_dict(json.loads(done.out))
    assert use.selection == whence.core.contextual.Selection("p-cxmi", "tool", None, 2, 0.0)
    assert len(use.selected) == 2
    assert use.decoding["given"] == "text"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--input", "so"), "there is no context"),
        (("--context", "so"), "there is no input"),
        (("--context", " ", "--input", "so"), "the context is empty"),
        (("--context", "so", "--input", " "), "the input is empty"),
        (("--documents", "no-such-file.txt", "--input", "so"), "cannot read 'no-such-file.txt'"),
        (("loose.txt", "--context", "so", "--input", "so"), "files follow --documents"),
        (("--context", "so", "--input", "so", "--chat"), "has no chat template"),
        (("--context", "so " * 999, "--input", "so"), "shorten the context"),
        (("--context", "so", "--input", "so", "--model", "sentiment"), "does not write text"),
        (("--context", "so", "--input", "so", "--least", "nan"), "least is a finite number"),
        (("--context", "so", "--input", "so", "--deviations", "nan"), "deviations is a finite"),
        (("--context", "so", "--input", "so", "--method", "occlusio"), "Did you mean 'occlusion'"),
    ],
)
def test_mistakes_get_one_line(run, arguments, said) -> None:
    done = run("context", *arguments)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") <= 2


def test_documents_that_are_empty_twice_or_beside_a_context(run, documents, tmp_path) -> None:
    a, _ = documents
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n")
    for arguments, said in [
        (("--documents", a, empty), "document 'empty.txt' is empty"),
        (("--documents", a, a), "given twice"),
        (("--documents", a, "--context", "so"), "not both"),
    ]:
        done = run("context", *arguments, "--input", "so")
        assert done.code == 2
        assert said in done.err
