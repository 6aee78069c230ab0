"""Tables: everything that is known of a method stands beside its scores, and can be read back."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.conftest import NO_VERDICT, OWN, compared, judged, made
from whence.cli.main import main
from whence.core.attribution import Cost, Error
from whence.core.attributions import Attributions
from whence.core.errors import InputError
from whence.core.evidence import CURVES, HELD_OUT
from whence.core.many import Many
from whence.core.target import Target
from whence.views.tables import BEGINS_A_FORMULA, result_csv

TEXT = "the food is great and not too dear"
HOSTILE = ("=1+1", "+1", "-1", "@sum", "'tis", "''", "a,b", 'a"b', "NA", "null", "1e5", "=")
WORDS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
)


# as a user meets it: a wrong name of a table reaches our own refusal
pytestmark = pytest.mark.usefixtures("unchecked")


def read_back(content: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content, newline="")))


def exact_frame(content: str) -> pd.DataFrame:
    """As the documentation says."""
    frame = pd.read_csv(
        io.StringIO(content, newline=""),
        keep_default_na=False,
        na_values=[""],
        dtype={"unit": str},
    )
    frame["unit"] = frame["unit"].str.removeprefix("'")
    return frame


@given(st.lists(WORDS, min_size=1, max_size=6).map(" ".join).filter(str.strip))
def test_any_text_comes_back_exactly_and_is_no_formula(text: str) -> None:
    a = made(text)
    rows = read_back(a.to_csv())
    assert [row["unit"].removeprefix("'") for row in rows] == list(a.names)
    assert not any(cell.startswith(BEGINS_A_FORMULA) for row in rows for cell in texts_of(row))
    assert [float(row["score"]) for row in rows] == a.scores.tolist()
    plain = read_back(a.to_csv(safe=False))
    assert [row["unit"] for row in plain] == list(a.names)


def texts_of(row: dict[str, str]) -> list[str]:
    return [row[name] for name in ("method", "target", "unit", "verdict", "measure", "note")]


def test_what_a_spreadsheet_would_run_has_an_apostrophe() -> None:
    rows = read_back(made("=1+1 so -2 'tis", method="@mine").to_csv())
    assert [row["unit"] for row in rows] == ["'=1+1", "so", "'-2", "''tis"]
    assert rows[0]["method"] == "'@mine"
    # numbers stay numbers, those below zero too
    scores = read_back(made("so good", scores=[-1.5, 2.0]).to_csv())
    assert [row["score"] for row in scores] == ["-1.5", "2.0"]


def test_pandas_reads_what_pandas_was_given() -> None:
    c = judged(compared(f"{TEXT} =1 NA null 'tis"))
    frame = c.to_pandas()
    again = exact_frame(c.to_csv())
    assert list(again.columns) == list(frame.columns)
    assert len(frame) == len(c) * len(c.units)
    for column in ("unit", "score", "p", "beaten", "seconds", "forwards", "position"):
        assert again[column].tolist() == frame[column].tolist(), column
    # the enemy lets pandas take these words for missing values
    assert {"NA", "null", "=1", "'tis"} <= set(again["unit"])


def test_a_row_for_each_method_says_all_that_is_known_of_it() -> None:
    spread = Error(np.array([0.1, 0.3]), 0.02, "a note")
    a = made("so good", error=spread, cost=Cost(7, 3, 1.5))
    evidence = judged(compared("so good")).first.evidence
    assert evidence is not None
    (row,) = replace(a, evidence=evidence).to_pandas("methods").to_dict("records")
    assert row == {
        "method": "toy",
        "target": "logit of good",
        "value": 1.25,
        "signed": True,
        "verdict": str(evidence.verdict),
        "p": evidence.p,
        "beaten": evidence.value,
        "beaten_low": evidence.interval[0],  # type: ignore[index]
        "beaten_high": evidence.interval[1],  # type: ignore[index]
        "rankings": 100,
        "measure": CURVES,
        "forwards": 7,
        "backwards": 3,
        "seconds": 1.5,
        "evidence_forwards": evidence.forwards,
        "largest_standard_error": 0.3,
        "completeness_gap": 0.02,
        "note": "a note",
    }
    units = a.to_pandas()
    assert units["standard_error"].tolist() == [0.1, 0.3]
    assert units["position"].tolist() == [0, 1]
    assert units["completeness_gap"].tolist() == [0.02, 0.02]


@pytest.mark.parametrize("evidence", [None, NO_VERDICT, OWN], ids=["none", "no verdict", "own"])
def test_what_is_not_known_is_empty(evidence: Any) -> None:
    a = made("so good", evidence=evidence)
    (row,) = read_back(a.to_csv(table="methods"))
    frame = a.to_pandas("methods")
    for column in ("p", "beaten", "beaten_low", "completeness_gap", "largest_standard_error"):
        assert row[column] == ""
        assert frame[column].dtype == np.float64
        assert frame[column].isna().all()
    # a correlation with held-out removals is no share of random rankings beaten
    is_own = evidence is OWN
    assert row["verdict"] == (str(OWN.verdict) if is_own else "")
    if is_own:
        assert row["measure"] == HELD_OUT


def test_several_targets_and_several_texts_are_told_apart() -> None:
    targets = {
        f"logit of {name}": made("so good", target=Target(name, index=i))
        for i, name in enumerate(("bad", "good"))
    }
    both = Attributions("target", targets, Cost(1, 2))
    assert both.to_pandas("methods")["target"].tolist() == list(targets)
    rows = read_back(result_csv([made("so good"), made("=so bad")]))
    assert [row["text_number"] for row in rows] == ["1", "1", "2", "2"]
    assert [row["text"] for row in rows] == ["so good"] * 2 + ["'=so bad"] * 2


def test_it_is_written_as_it_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    content = made("so\ngood é").to_csv(path)
    assert path.read_bytes() == content.encode()
    with path.open(encoding="utf-8", newline="") as file:
        assert [row["unit"] for row in csv.DictReader(file)] == ["so", "good", "é"]
    with pytest.raises(InputError, match="one of units, methods, not 'scores'"):
        made("so").to_csv(table="scores")  # type: ignore[arg-type]


def test_without_pandas_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"needs pandas: pip install 'whence\[tables\]'"):
        made("so good").to_pandas()
    assert made("so good").to_csv()


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.csv"
    words = ["compare", "not bad", "--methods", "gradient-l2,random", "--json"]
    assert main([*words, "--csv", str(path)]) == 0
    stored = json.loads(capsys.readouterr().out)["attributions"]
    rows = read_back(path.read_bytes().decode())
    assert [(row["method"], row["unit"]) for row in rows] == [
        ("gradient-l2", "not"),
        ("gradient-l2", "bad"),
        ("random", "not"),
        ("random", "bad"),
    ]
    for row in rows:
        own = stored[row["method"]]
        assert float(row["score"]) == own["scores"][int(row["position"])]
        assert float(row["p"]) == own["evidence"]["p"]

    texts = tmp_path / "texts.txt"
    texts.write_text("not bad\n=dull\n")
    command = ["explain", "--file", str(texts), "--method", "gradient-l2", "--csv", str(path)]
    assert main(command) == 0
    rows = read_back(path.read_bytes().decode())
    assert [row["text"] for row in rows] == ["not bad"] * 2 + ["'=dull"] * (len(rows) - 2)
    assert main([*command[:-1], str(tmp_path / "no" / "table.csv")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_many_texts_have_the_same_tables_and_one_of_counts() -> None:
    many = Many((judged(compared(TEXT)), judged(compared("so very good and fine"))))
    for table in ("units", "methods"):
        assert many.to_csv(table=table) == result_csv(list(many), table)
    counts = many.to_pandas("counts")
    for row, tally in zip(counts.to_dict("records"), many.tallies(), strict=True):
        assert row["method"] == tally.method
        assert row["judged"] == row["better"] + row["same"] + row["worse"] == tally.judged
        assert row["p"] == tally.p
        assert (row["by_chance_low"], row["by_chance_high"]) == tally.chance_range
        assert (row["beaten_low"], row["beaten_high"]) == tally.interval
    # what was not judged has no share of beaten rankings and no p
    (unjudged,) = read_back(Many((made("so good"),)).to_csv(table="counts"))
    assert (unjudged["judged"], unjudged["p"], unjudged["beaten_low"]) == ("0", "", "")
    with pytest.raises(InputError, match="one of units, methods, counts, not 'texts'"):
        many.to_csv(table="texts")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one of units, methods, not 'counts'"):
        many[0].to_csv(table="counts")


def test_arrow_has_the_same_rows_with_all_digits_and_nulls() -> None:
    c = compared("so very good", 3)
    table = c.to_arrow()
    rows = table.to_pylist()
    scores = [score for a in c.attributions.values() for score in a.scores.tolist()]
    assert [row["score"] for row in rows] == scores
    # would catch: NaN or 0 for what is not known
    assert {row["standard_error"] for row in rows} == {None}
    assert c.to_frame()["score"].tolist() == c.to_pandas()["score"].tolist() == scores
    assert c.first.to_arrow("methods").num_rows == 1


def test_markdown_and_latex_have_a_row_for_each_unit_or_method() -> None:
    c = compared("so <b>|x| good_", 2)
    lines = c.to_markdown().splitlines()
    assert lines[0] == "| word | attention-max | attention-mean |"
    assert lines[3].startswith(r"| &lt;b&gt;\|x\| | ")
    assert len(lines) == 2 + 3
    methods = c.to_markdown("methods").splitlines()
    assert methods[0].startswith("| method | ")
    assert [line.split(" | ")[0] for line in methods[2:]] == ["| attention-max", "| attention-mean"]
    latex = c.to_latex("units")
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 1
    assert r"good\_ & " in latex
    with pytest.raises(InputError, match="one of units, methods"):
        c.to_markdown("words")  # type: ignore[arg-type]
