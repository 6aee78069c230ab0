"""What a lab writes down, and what is saved of it."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from whence.core.errors import InputError, SettingsError
from whence.notebook import Notebook


def drawn() -> Any:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    fig, ax = pyplot.subplots(layout="constrained")
    ax.plot([1, 2], [3, 1])
    return fig


def book_with(**options: Any) -> Notebook:
    book = Notebook("Sums", **options)
    book.head("first")
    book.say("two are added")
    book.figure("sums-line", drawn(), "a line")
    book.table("sums", ("a", "b"), [(1, 0.5), ("x, y", True)], "some sums")
    book.claim("1 + 1 is 2", "2", True)
    return book


def test_everything_is_saved(tmp_path):
    folder = book_with().save(tmp_path / "deep" / "er")
    assert {p.name for p in folder.iterdir()} == {
        "index.html",
        "claims.json",
        "sums.csv",
        *(f"sums-line.{k}" for k in ("png", "svg", "pdf")),
    }
    assert json.loads((folder / "claims.json").read_text("utf-8")) == [
        {"claim": "1 + 1 is 2", "measured": "2", "holds": True}
    ]
    with (folder / "sums.csv").open(encoding="utf-8", newline="") as file:
        # a comma in a cell stays in its cell
        assert list(csv.reader(file)) == [["a", "b"], ["1", "0.5"], ["x, y", "True"]]
    assert (folder / "sums-line.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "sums-line.pdf").read_bytes().startswith(b"%PDF")


def test_only_the_formats_asked_for_are_saved_but_the_page_has_its_drawing(tmp_path):
    folder = book_with(formats=("png",)).save(tmp_path)
    assert {p.suffix for p in folder.iterdir()} == {".png", ".csv", ".json", ".html"}
    assert "<svg" in (folder / "index.html").read_text("utf-8")


def test_the_same_lab_gives_the_same_files(tmp_path):
    # a date or a random id in a file would differ
    first, second = book_with(), book_with()
    assert first.figures[0].images == second.figures[0].images
    assert first.to_html() == second.to_html()


def test_figures_are_closed_and_axes_are_taken_too():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    book = Notebook("Axes", formats=("svg",))
    book.figure("axes", drawn().axes[0], "")
    assert pyplot.get_fignums() == []
    assert [f.name for f in book.figures] == ["axes"]


def test_a_claim_that_fails_is_kept():
    book = book_with()
    assert book.holds
    book.claim("1 + 1 is 3", "2", 1 + 1 == 3)
    assert not book.holds
    assert [c.holds for c in book.claims] == [True, False]
    assert "1 of 2 claims hold" in repr(book)
    assert book.to_dict()["claims"][1] == {"claim": "1 + 1 is 3", "measured": "2", "holds": False}


def test_two_parts_of_one_name_are_refused():
    book = book_with()
    with pytest.raises(SettingsError, match="two parts named 'sums'"):
        book.table("sums", ("a",), [])


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(SettingsError, match="2 columns"):
        Notebook("t").table("t", ("a", "b"), [(1, 2), (1,)])


def test_unknown_formats_and_places_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="'gif'"):
        Notebook("t", formats=("gif",))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        Notebook("t").save(tmp_path / "file" / "folder")


def test_progress_is_told():
    told: list[str] = []
    assert list(Notebook("t", tell=told.append).track("ab", "step")) == ["a", "b"]
    assert told == ["step 1/2", "step 2/2"]
