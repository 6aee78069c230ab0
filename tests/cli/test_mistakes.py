"""A user's mistake is answered by one line on stderr and exit 2.

Never by a traceback, and never by half a result.
"""

from __future__ import annotations

import re

import pytest

LONG = "bad " * 100

MISTAKES = {
    "empty": (["explain", ""], "empty"),
    "white space": (["explain", " \t "], "white space"),
    "unknown method": (
        ["explain", "hi", "--method", "integrated-gradient"],
        "Did you mean 'integrated-gradients'",
    ),
    "unknown method of several": (
        ["compare", "hi", "--methods", "random,gradient-l3"],
        "Did you mean 'gradient-l",
    ),
    "no method": (["compare", "hi", "--methods", ","], "at least one method"),
    "unknown label": (["explain", "hi", "--target", "great"], "0 bad, 1 fair, 2 good"),
    "label out of range": (["explain", "hi", "--target", "7"], "7"),
    "contrast with itself": (["explain", "hi", "--target", "bad", "--against", "0"], "two labels"),
    "too long": (["explain", LONG], r"64.*truncate.*window"),
    "too long to compare": (["compare", LONG], r"64.*truncate.*window"),
    "no budget": (["compare", "hi", "--budget", "soon"], "'30s' or '2min'"),
    "too small a budget": (["compare", "hi you", "--budget", "2"], "too small"),
    "too few rankings": (["explain", "hi", "--rankings", "19"], "at least 39"),
    "missing file": (["explain", "--file", "/nowhere/texts.txt"], "No such file"),
    "text and file": (["explain", "hi", "--file", "/nowhere/texts.txt"], "not both"),
    "no such folder for the page": (
        ["explain", "hi", "--html", "/nowhere/a.html"],
        "does not exist",
    ),
    "page is a folder": (["compare", "hi", "--html", "/"], "folder"),
    "result is a folder": (["explain", "hi", "--save", "/"], "folder"),
    "two texts": (["explain", "not", "bad"], "quotes"),
    "no text": (["explain"], "no text"),
    "unknown flag": (["explain", "hi", "--method=ig", "--foo", "3"], r"--baseline.*--max-nodes"),
    "mistyped setting": (
        ["explain", "hi", "--method=ig", "--baselin", "zero"],
        "Did you mean --baseline",
    ),
    "mistyped option": (["explain", "hi", "--taget", "good"], "Did you mean --target"),
    "setting without value": (["explain", "hi", "--method=ig", "--nodes"], "needs a value"),
    "bad setting": (
        ["explain", "hi", "--method=ig", "--baseline", "nothing"],
        "'mean', 'mask', 'pad' or 'zero'",
    ),
    "layer outside": (
        ["explain", "hi", "--method", "attention-mean", "--layer", "9"],
        "outside the 2 layers",
    ),
    "settings of a method that has none": (
        ["explain", "hi", "--method", "gradient-mean", "--layer", "1"],
        "has no settings",
    ),
    "bad choice": (["explain", "hi", "--read", "loudly"], "log-probability"),
    "bad number": (["explain", "hi", "--seed", "x"], "integer"),
    "bad --set": (["compare", "hi", "--set", "nodes=3"], "METHOD.SETTING=VALUE"),
    "--set for another": (
        ["compare", "hi", "--methods", "random", "--set", "smooth-grad.samples=3"],
        "not among",
    ),
    "at without masks": (["predict", "hi", "--at", "1"], "masked"),
    "unknown dtype": (["predict", "hi", "--dtype", "float33"], "float33"),
    "unknown option elsewhere": (["predict", "hi", "--foo"], "--foo"),
    "surrogate": (["explain", "a\udcffb"], "surrogate"),
}


@pytest.mark.parametrize(("arguments", "answer"), MISTAKES.values(), ids=MISTAKES.keys())
def test_one_line_and_exit_two(whence, arguments, answer):
    done = whence(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert done.err.startswith("whence: ")
    assert re.search(answer, done.err)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("/nowhere/model", "no folder"),
        ("./nothing-here", "no folder"),
        ("", "no folder"),
        (__file__, "is a file"),
    ],
)
def test_missing_models(run, name, answer):
    done = run("predict", "hi", "--model", name)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert answer in done.err


def test_unknown_command(run):
    done = run("explian", "hi")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "Did you mean 'explain'" in done.err


def test_an_error_in_a_file_names_the_line(whence):
    done = whence("explain", "--method", "random", stdin=f"fine\n\n{LONG}\n".encode())
    assert done.code == 2
    assert "stdin, line 3: the text has" in done.err.splitlines()[-1]


def test_bytes_that_are_no_text(whence):
    alone = whence("explain", stdin=b"b\xff\n")
    assert (alone.code, alone.err.count("\n")) == (2, 1)
    assert "stdin, line 1: not UTF-8 (byte 0xff)" in alone.err


def test_nothing_on_stdin(whence):
    assert "stdin holds no text" in whence("explain", stdin=b"\n \n").err


def test_a_read_only_file(whence, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.touch()
    # root may write anything, so a mode would not do
    monkeypatch.setattr("os.access", lambda *_: False)
    done = whence("explain", "hi", "--html", path)
    assert done.code == 2
    assert "read-only" in done.err


def test_debug_shows_where_and_still_exits_two(whence):
    done = whence("explain", "hi", "--target", "7", "--debug")
    assert done.code == 2
    assert "Traceback" in done.err


def test_a_bug_is_owned_up_to_without_a_traceback(whence, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("whence.models.load.load", broken)
    done = whence("predict", "hi")
    assert (done.code, done.err) == (
        1,
        "whence: unexpected RuntimeError: two lines (--debug shows where)\n",
    )


def test_control_characters_in_an_error_are_spelt_out(whence):
    done = whence("explain", "hi", "--target", "\x1b[31mred")
    assert done.code == 2
    assert "\x1b" not in done.err


def test_an_interrupt_is_one_line(whence, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("whence.models.load.load", interrupted)
    done = whence("predict", "hi")
    assert (done.code, done.out, done.err) == (130, "", "whence: interrupted.\n")


@pytest.fixture
def broken(monkeypatch):
    """A method whose code, in a file of whence, goes wrong."""
    from tests.models.test_passing import of_ours
    from whence.methods.gradient_l2 import GradientL2

    monkeypatch.setattr(GradientL2, "__call__", of_ours("return {}['no such key']"))


def test_our_mistake_in_a_method_has_its_line_and_its_exit_code(whence, broken):
    done = whence("explain", "hi", "--method", "gradient-l2", "--no-evidence")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "mistake of whence" in done.err
    assert "--debug shows where" in done.err
    where = whence("explain", "hi", "--method", "gradient-l2", "--no-evidence", "--debug")
    assert where.code == 1
    assert "methods/made_up.py" in where.err


def test_our_mistake_beside_other_methods_is_told_too(whence, broken):
    compare = ("compare", "hi there", "--no-evidence", "--budget", "100")
    done = whence(*compare)
    assert done.code == 1
    assert "there" in done.out  # the other methods went on
    assert "gradient-l2 is left out" in done.err
    assert "Traceback" not in done.err
    where = whence(*compare, "--debug")
    assert where.code == 1
    assert "methods/made_up.py" in where.err


def test_our_mistake_in_a_line_of_a_file_shows_where_on_demand(whence, broken):
    explain = ("explain", "--method", "gradient-l2", "--no-evidence", "--json")
    done = whence(*explain, stdin=b"one\ntwo\n")
    assert done.code == 1
    assert done.err.count("mistake of whence") == 2
    where = whence(*explain, "--debug", stdin=b"one\ntwo\n")
    assert where.err.count("methods/made_up.py") >= 2


def test_a_models_own_error_exits_with_two(run, monkeypatch):
    from tests.misbehaving import Raises, build

    monkeypatch.setattr("whence.models.load.load", lambda *_, **__: build(Raises))
    done = run("explain", "hi", "--method", "lime", "--no-evidence")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "Raises cannot be run" in done.err
    assert "mistake of whence" not in done.err
