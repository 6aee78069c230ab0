"""whence lab and whence theory, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whence.labs import LABS
from whence.notebook.book import Notebook


@pytest.mark.slow  # a whole lab, which runs in its own test too
def test_a_lab_writes_its_folder_and_prints_its_claims(run: Any, tmp_path: Path) -> None:
    done = run("lab", "dyck", "--quick", "--out", tmp_path / "t", "--formats", "svg")
    assert done.code == 0
    assert "holds" in done.out
    assert "not borne out" not in done.out
    assert {p.suffix for p in (tmp_path / "t").iterdir()} == {".svg", ".csv", ".json", ".html"}
    claims = json.loads((tmp_path / "t" / "claims.json").read_text("utf-8"))
    assert all(c["holds"] for c in claims)
    assert str((tmp_path / "t").resolve()) in done.err


def test_all_goes_through_every_lab_and_makes_one_page(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labs run in their own tests; here each is a notebook that says what it was asked."""
    asked = []

    def short(name: str, **options: Any) -> Notebook:
        asked.append((name, options["quick"], options.get("words")))
        book = Notebook(f"the lab {name}", formats=tuple(options["formats"]))
        book.claim("it ran", name, True)
        return book

    monkeypatch.setattr("whence.labs.running.lab", short)
    done = run("lab", "all", "--quick", "--out", tmp_path, "--words", "low login")
    assert done.code == 0
    assert [name for name, _, _ in asked] == list(LABS)
    assert all(quick for _, quick, _ in asked)
    takes_words = {name for name, _, words in asked if words == "low login"}
    assert {"attention", "gpt2"} <= takes_words
    assert {"dyck", "histogram"}.isdisjoint(takes_words)
    page = (tmp_path / "index.html").read_text("utf-8")
    assert all(f"the lab {name}" in page for name in LABS)
    assert all((tmp_path / name / "claims.json").exists() for name in LABS)


def test_without_a_name_it_lists_the_labs(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    listed = run("lab")
    assert listed.code == 0
    assert [line.split()[0] for line in listed.out.splitlines()[: len(LABS)]] == list(LABS)
    assert "whence lab NAME --quick" in listed.out
    assert max(map(len, listed.out.splitlines())) <= 100
    lines = [json.loads(line) for line in run("lab", "--json").out.splitlines()]
    assert [line["lab"] for line in lines] == list(LABS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("lab", "dick", "--quick"), "no lab named 'dick'. Did you mean 'dyck'?"),
        (("lab", "dyck", "--quick", "--words", "a"), "the lab dyck takes"),
        (
            ("lab", "theorem", "--quick", "--formats", "gif"),
            "figures can be written as png, svg, pdf, not 'gif'",
        ),
    ],
)
def test_mistakes(run: Any, arguments: tuple[str, ...], answer: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert answer in done.err


def test_theory_prints_the_figure_and_the_formulas(run: Any, tmp_path: Path) -> None:
    done = run(
        "theory", "a dull film with good jokes", "--no-evidence", "--html", tmp_path / "t.html"
    )
    assert done.code == 0
    for method in (
        "attention-mean",
        "attention-max",
        "gradient-mean",
        "gradient-l1",
        "gradient-l2",
        "gradient-x-input",
        "lime",
        "lime-exact",
    ):
        assert method in done.out
    for column in ("α-avg", "α-max", "G-avg", "G-L1", "G-L2", "G×I", "field"):
        assert column in done.out
    assert "not borne out" not in done.out
    page = (tmp_path / "t.html").read_text("utf-8")
    assert "Closed forms beside measured values" in page
    result = json.loads(run("theory", "a dull film", "--no-evidence", "--json").out)
    claims = result["closed_forms"]["claims"]
    assert [claim["holds"] for claim in claims] == [True] * 4


def test_theory_refuses_another_model(whence: Any) -> None:
    done = whence("theory", "not bad")
    assert done.code == 2
    assert "BertForSequenceClassification is another model" in done.err
