"""whence card: the table in the terminal, JSON, Markdown and a page; mistakes in one line."""

from __future__ import annotations

import json

import pytest

import whence


@pytest.fixture
def saved(tmp_path):
    model = whence.load("sentiment")
    comparison = whence.compare(model, "not bad at all", ["occlusion", "random"])
    return comparison.save(tmp_path / "one.json")


def test_it_says_what_was_asked_and_what_was_not(run, saved):
    done = run("card", saved)
    assert (done.code, done.err) == (0, "")
    said = " ".join(done.out.split())
    assert said.startswith(
        "sentiment: 1 method in 1 saved result, which answers 1 of the 4 questions."
    )
    assert "Ask it with: whence audit --data DATA --model sentiment --out FOLDER" in said


def test_json_markdown_page_and_file_are_the_same_card(run, saved, tmp_path):
    html, markdown, file = (tmp_path / name for name in ("a.html", "a.md", "card.json"))
    done = run("card", saved, "--json", "--html", html, "--markdown", markdown, "--save", file)
    assert done.code == 0
    card = whence.Card.from_dict(json.loads(done.out))
    assert card.to_dict() == whence.read(file).to_dict() == whence.card(saved).to_dict()
    assert markdown.read_text(encoding="utf-8") == card.to_markdown()
    assert html.read_text(encoding="utf-8") == card.to_html()


def test_mistakes_are_one_line_and_exit_code_two(run, saved, tmp_path):
    for arguments, message in [
        ((tmp_path / "nowhere",), "there is no folder or file"),
        ((saved, "--html", tmp_path / "no" / "a.html"), "does not exist"),
    ]:
        done = run("card", *arguments)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert message in done.err
