"""whence features show, explain and steer, as they are typed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

import whence
from whence.cli import features_explain, features_show, features_steer
from whence.core.errors import InputError, LoadError, WhenceError
from whence.features.mirrors import mirror
from whence.features.saving import save

app = typer.Typer()
app.command("show")(features_show.show)
app.command("explain")(features_explain.explain)
app.command("steer")(features_steer.steer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    model = whence.load("writer")
    raw = mirror(model, layer=2)
    about = replace(raw.about, peak=tuple([8.0] * raw.size))
    place = tmp_path_factory.mktemp("features") / "raw"
    save(replace(raw, about=about), place)
    return str(place)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("The sea was calm.\n\nGo home!\n\nWe must act now.\n", encoding="utf-8")
    return str(path)


def typed(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if isinstance(result.exception, WhenceError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_show_prints_writes_a_page_and_json(folder, corpus, tmp_path):
    page, kept = tmp_path / "f.html", tmp_path / "f.json"
    shown = typed(
        "show", folder, "--data", corpus, "--most", "40", "--html", str(page), "--save", str(kept)
    )
    assert "40 of 365 live features of writer, after block 2" in shown
    assert "325 live features, which fire less often, were left out." in shown
    assert "data-blob" in page.read_text("utf-8")
    board = whence.read(kept)
    number = board.features[0].number
    assert f"Feature {number}" in typed("show", folder, "--data", corpus, "--feature", str(number))
    rarest = min(board.features, key=lambda card: card.frequency).number
    asked = ("--most", "1", "--feature", str(rarest))
    assert f"Feature {rarest}" in typed("show", folder, "--data", corpus, *asked)
    lines = typed("show", folder, "--data", corpus, "--most", "2", "--json")
    assert len(json.loads(lines)["features"]) == 2


def test_explain_prints_units_of_features(folder, tmp_path):
    page = tmp_path / "e.html"
    text = "Once upon a time there was a"
    shown = typed("explain", text, folder, "--top", "3", "--no-evidence", "--html", str(page))
    assert "not reconstructed" in shown
    assert "feature" in page.read_text("utf-8")
    told = json.loads(
        typed("explain", text, folder, "--features", "5,9", "--no-evidence", "--json")
    )
    assert told["detail"]["features"] == [5, 9]
    # would catch: a dump of names and numbers, and words where there are features
    full = typed("explain", text, folder, "--top", "3", "--no-evidence", "--full")
    full = " ".join(full.split())
    assert f"The text is “{text}”, at its hidden states after block 2 (" in full
    assert "are one unit" in full
    assert "word for its number" not in page.read_text("utf-8")
    assert "ranking of the features" in " ".join(
        typed("explain", "--help").replace("│", "").split()
    )
    assert "to explain" not in typed("steer", "--help")


def test_steer_prints_a_receipt(folder, tmp_path):
    page = tmp_path / "s.html"
    shown = typed(
        "steer", folder, "The sea", "--feature", "5", "--to", "3x", "--tokens", "3",
        "--html", str(page),
    )  # fmt: skip
    assert "clamped to an activation of 24, 3 times its largest" in " ".join(shown.split())
    assert "<svg" in page.read_text("utf-8")


def test_what_is_wrong_is_said(folder, corpus, tmp_path):
    with pytest.raises(InputError, match="no feature 384"):
        typed("steer", folder, "The sea", "--feature", "384")
    with pytest.raises(InputError, match="no feature 999"):
        typed("show", folder, "--data", corpus, "--feature", "999")
    with pytest.raises(InputError, match="fingerprint"):
        typed("explain", "a film", folder, "--model", "sentiment")
    with pytest.raises(InputError, match="Give some with --data"):
        typed("show", folder)
    with pytest.raises(LoadError):
        typed("explain", "a film", str(tmp_path))
    with pytest.raises(LoadError, match="no folder"):
        typed("explain", "a film", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="whole numbers"):
        typed("explain", "a film", folder, "--features", "one")
