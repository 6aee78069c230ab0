"""whence audit, as it is typed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import Run

Whence = Callable[..., Run]
REVIEWS = """id,review,label
a,great food and great prices,1
b,,1
c,not bad prices,0
d,the prices are bad,0
e,the menu is fine but not the food,1
f,bad food and bad service,0
"""
ASKED = ("--tests", "uniform,permutation", "--set", "permutation.permutations=3", "--rankings", 4)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    file = tmp_path / "reviews.csv"
    file.write_text(REVIEWS)
    return file


def test_an_audit_is_told_kept_and_told_again(
    whence: Whence, run: Whence, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    folder = tmp_path / "audit"
    few = ("--set", "permutation.of_heads=1")
    done = whence("audit", "--data", reviews, "--label", "label", *ASKED, *few, "--out", folder)
    assert done.code == 3  # one text is empty
    assert "Is attention an explanation in" in done.out
    assert "1 of 6 texts failed" in done.out
    for name in ("effects.csv", "audit.json", "audit.html"):
        assert (folder / name).stat().st_size > 100
    again = run("audit", "--data", folder)
    assert again.out.splitlines()[0] == done.out.splitlines()[0]
    mistyped = ("--tests", "permutaton", "--retrain", "--sample", 3, "--model", "x")
    unused = run("audit", "--data", folder, *mistyped)
    assert (unused.code, unused.out, unused.err.count("\n")) == (2, "", 1)
    assert "no use for --model, --tests, --sample, --retrain. To go on" in unused.err
    as_json = run("audit", "--data", folder, "--json")
    stored = json.loads(as_json.out)
    assert (stored["kind"], stored["texts"], stored["failed"]) == ("audit", 5, 1)


def test_a_curve_that_is_left_is_made_by_the_same_command(
    whence: Whence, run: Whence, reviews: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    few = ("--limit", 3, "--rankings", 1)  # of which one is empty
    asked = ("audit", "--data", reviews, "--tests", "heads", *few, "--out", folder)
    first = whence(*asked)
    assert "heads removed one after the other" in first.err
    assert "held-out text is" in first.out
    (folder / "pruning.json").unlink()
    left = run("audit", "--data", folder)
    assert left.out.endswith(
        "The pruning curve is not done. The command that began this goes on from here.\n"
    )
    assert "held-out" not in left.out
    again = whence(*asked)
    assert again.out == first.out


def test_mistakes_are_one_line(whence: Whence, reviews: Path, tmp_path: Path) -> None:
    unknown = whence("audit", "--data", reviews, "--tests", "shuffle")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert "no test of attention named 'shuffle'" in unknown.err
    none = whence("audit")
    assert "name a file or a folder by --data" in none.err


def test_models_are_trained_when_asked(
    whence: Whence, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    folder = tmp_path / "audit"
    reviews.write_text(REVIEWS.replace("b,,1\n", "") + "g,great menu,1\nh,bad menu,0\n")
    asked = ("--data", reviews, "--tests", "uniform", "--rankings", 4, "--retrain")
    unlabelled = whence("audit", *asked, "--label", "")
    assert (unlabelled.code, "name the column of the label" in unlabelled.err) == (2, True)

    done = whence("audit", *asked, "--label", "label", "--out", folder)
    assert done.code == 0, done.err
    for test in ("frozen attention", "adversarial model", "attention diagnostic"):
        assert f"Trained anew ({test}): " in done.out
    page = (folder / "audit.html").read_text()
    assert "Models that were trained for it" in page
    assert "<li>λ = 0: the output moves by " in page
    stored = json.loads((folder / "audit.json").read_text())
    assert stored["retrained"][0]["test"] == "frozen attention"
    assert stored["retrained"][0]["numbers"]["held_out"] == 2

    before = (folder / "retrained.json").read_bytes()
    again = whence("audit", *asked, "--label", "label", "--out", folder)
    assert again.out == done.out
    assert (folder / "retrained.json").read_bytes() == before

    # begun anew without training: would catch what an earlier model was trained to, still shown
    untrained = asked[:-1]
    anew = whence("audit", *untrained, "--label", "label", "--out", folder, "--restart")
    assert anew.code == 0, anew.err
    assert "Trained anew" not in anew.out
    assert not (folder / "retrained.json").exists()


def test_ctrl_c_breaks_off_training_and_keeps_what_is_done(
    whence: Whence, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would catch: a stop that waits until the model is trained, and exit code 0
    reviews.write_text(REVIEWS.replace("b,,1\n", "") + "g,great menu,1\nh,bad menu,0\n")
    asked = ("--data", reviews, "--tests", "uniform", "--rankings", 1, "--retrain")
    begun = []

    def done(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(to_dict=lambda: {"seeds": 1})

    def pressed(*_: Any, **__: Any) -> Any:
        begun.append(1)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("it went on")

    tests = {"frozen attention": done, "adversarial model": pressed}
    monkeypatch.setattr("whence.retraining.retrained.TESTS", tests)
    for out in ((), ("--out", tmp_path / "audit")):
        ended = whence("audit", *asked, "--label", "label", *out)
        assert ended.code == 130, ended.err
        assert "Trained anew (frozen attention): " in ended.out
        assert "Not trained: adversarial model. " in ended.out
        last = "The same command goes on from here." if out else "the same command goes on where"
        assert last in ended.out.splitlines()[-1]
    assert len(begun) == 2
