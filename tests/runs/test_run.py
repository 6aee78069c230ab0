"""What a run keeps is what explaining gives, and nothing of it is lost."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whence
from tests.runs.conftest import TEXTS
from whence.core.errors import InputError, LoadError
from whence.core.writing import UNFINISHED
from whence.models.model import Model
from whence.runs.holding import held
from whence.runs.parts import parts_of
from whence.runs.places import place_of
from whence.runs.run import Run

METHODS = ["gradient-x-input", "occlusion", "lime"]
QUICK: dict[str, Any] = {"rankings": 39, "steps": 2}
# what the clock decides, and nothing else does
CLOCK = ("seconds", "peak_bytes")


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """A record of a part without what the clock decides."""
    results = []
    for result in record["results"] or ():
        results.append({name: value for name, value in result.items() if name not in CLOCK})
    return record | {"results": results}


def everything(run: Run) -> list[dict[str, Any]]:
    return [timeless(record) for record in run.records()]


def without_clock(attribution: whence.Attribution) -> dict[str, Any]:
    still = replace(attribution.cost, seconds=0.0, peak_bytes=None)
    return replace(attribution, cost=still).to_dict()


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_what_comes_back_is_what_explain_gives_bit_by_bit(
    model: Model, tmp_path: Path, method: str, evidence: bool
) -> None:
    # would catch: a score stored in float32, a setting or a curve that is lost, another order
    texts = TEXTS[:4]
    run = whence.run(model, texts, [method], out=tmp_path, evidence=evidence, **QUICK)
    assert run.is_complete
    explained = whence.explain(model, texts, method, evidence=evidence, **QUICK)
    kept = list(run.attributions())
    assert [without_clock(a) for a in kept] == [without_clock(a) for a in explained]


def test_several_methods_come_back_as_a_comparison(model: Model, tmp_path: Path) -> None:
    texts = TEXTS[:4]
    run = whence.run(model, texts, METHODS, out=tmp_path, **QUICK)
    compared = whence.compare(model, texts[:1], METHODS, **QUICK)
    for comparison, text in zip(run.comparisons(), texts, strict=True):
        assert list(comparison) == METHODS
        assert comparison.passage.text == text
    first = run.comparison(0)
    assert first.cost.forwards == compared[0].cost.forwards
    for name in METHODS:
        mine, theirs = first[name], compared[0][name]
        assert (mine.target, mine.settings, mine.version) == (
            theirs.target,
            theirs.settings,
            theirs.version,
        )
        np.testing.assert_allclose(mine.scores, theirs.scores, rtol=1e-4, atol=1e-6)
    assert run.comparison(2).passage.text == texts[2]


def test_the_tables_say_what_the_attributions_say(model: Model, tmp_path: Path) -> None:
    run = whence.run(model, [*TEXTS, ""], METHODS, out=tmp_path / "run", evidence=False, part=3)
    scores = run.table("scores").to_pylist()
    expected = []
    for attribution in run.attributions():
        for unit, score in zip(attribution.units.names, attribution.scores, strict=True):
            expected.append((attribution.method, unit, float(score)))
    found = [(record["method"], record["unit"], record["score"]) for record in scores]
    assert sorted(found) == sorted(expected)
    assert run.table("texts").num_rows == len(TEXTS)
    assert run.table("results").num_rows == len(TEXTS) * len(METHODS)
    assert [record["text"] for record in run.table("texts").to_pylist()] == TEXTS
    (failure,) = run.failures
    assert (failure.row, failure.kind) == (len(TEXTS), "InputError")
    assert "empty" in failure.message
    counted = run.query("select count(distinct row) as n from scores where unit = 'prices'")
    assert counted.to_pylist() == [{"n": sum("prices" in text for text in TEXTS)}]
    assert run.state.failed == 1
    with pytest.raises(whence.WhenceError, match="no table of a run named 'score'"):
        run.table("score")
    with pytest.raises(InputError, match="SQL: "):
        run.query("selec 1")


def test_standard_errors_and_their_absence_are_kept(model: Model, tmp_path: Path) -> None:
    run = whence.run(model, TEXTS[:1], METHODS, out=tmp_path / "run", evidence=False)
    kept = run.query("select method, standard_error from scores").to_pylist()
    told = {record["method"] for record in kept if record["standard_error"] is not None}
    expected = set()
    for attribution in run.attributions():
        if attribution.error is not None and attribution.error.standard_error is not None:
            expected.add(attribution.method)
    assert told == expected


def test_a_run_goes_on_where_it_was_and_is_the_same_in_the_end(
    model: Model, tmp_path: Path
) -> None:
    whole = whence.run(model, TEXTS, METHODS, out=tmp_path / "whole", evidence=False, part=2)
    halves = whence.run(model, TEXTS, METHODS, out=tmp_path / "halves", evidence=False, part=2)
    parts = parts_of(halves.place)
    for number in (1, 3):
        (tmp_path / "halves" / parts[number].name).unlink()
    before = {n: parts[n].name for n in (0, 2)}
    assert not whence.open_run(tmp_path / "halves").is_complete

    again = whence.run(model, TEXTS, METHODS, out=tmp_path / "halves", evidence=False, part=2)
    assert again.is_complete
    assert {n: again.parts[n].name for n in before} == before  # what was done is not done again
    assert everything(again) == everything(whole)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"methods": ["occlusion"]},
            r"asked\.methods: .*, .* in the run, occlusion asked .*now\. ",
        ),
        ({"methods": {"lime": {"samples": 200}, "occlusion": {}}}, r"settings\.samples"),
        ({"data": TEXTS[:3]}, r"data\.rows: 4 in the run, 3 asked for now"),
        ({"data": [*TEXTS[:3], "another text"]}, r"data\.digest"),
        ({"seed": 1}, r"request\.seed: 0 in the run, 1 asked for now"),
        ({"units": "token"}, r"request\.units"),
        ({"target": "good"}, r"request\.targets"),
        ({"part": 5}, "part_size"),
    ],
)
def test_a_run_that_is_asked_for_something_else_is_refused(
    model: Model, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    asked: dict[str, Any] = {"data": TEXTS[:4], "methods": ["occlusion", "lime"]}
    asked |= {"out": tmp_path / "run", "evidence": False, "part": 2}
    whence.run(model, **asked)
    with pytest.raises(InputError, match=named):
        whence.run(model, **(asked | change))
    assert whence.run(model, **(asked | change), again=True).is_complete


def test_other_weights_are_refused(model: Model, tmp_path: Path) -> None:
    import copy

    import torch

    whence.run(model, TEXTS[:2], ["occlusion"], out=tmp_path / "run", evidence=False)
    other = whence.load(copy.deepcopy(model.hf), tokenizer=model.tokenizer)
    with torch.no_grad():
        next(other.hf.parameters()).add_(1.0)
    with pytest.raises(InputError, match=r"model\.fingerprint"):
        whence.run(other, TEXTS[:2], ["occlusion"], out=tmp_path / "run", evidence=False)


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_part_is_found_named_and_done_again(
    model: Model, tmp_path: Path, damage: str
) -> None:
    out = tmp_path / "run"
    first = whence.run(model, TEXTS, METHODS, out=out, evidence=False, part=3)
    expected = everything(first)
    file = out / first.parts[1].name
    content = bytearray(file.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 2] ^= 1
    file.write_bytes(content)

    with pytest.raises(LoadError, match=file.name):
        whence.open_run(out)
    with pytest.raises(LoadError, match="--mend"):
        whence.run(model, TEXTS, METHODS, out=out, evidence=False, part=3)
    mended = whence.run(model, TEXTS, METHODS, out=out, evidence=False, part=3, mend=True)
    assert everything(mended) == expected


def test_two_runs_do_not_share_a_folder_while_both_live(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code = (
        "import sys, time; from whence.runs.holding import held;"
        "from whence.runs.places import place_of;"
        "lock = held(place_of(sys.argv[1])); lock.__enter__(); print('held', flush=True);"
        "time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(InputError, match=f"another run works in .* \\(process {holder.pid}\\)"):
        whence.run(model, TEXTS, ["occlusion"], out=out, evidence=False)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert whence.run(model, TEXTS[:1], ["occlusion"], out=out, evidence=False).is_complete


def test_the_lock_is_given_back(tmp_path: Path) -> None:
    place = place_of(tmp_path / "run")
    with held(place):
        pass
    with held(place):
        assert place.names("parts") == []


def test_a_bad_row_never_stops_a_run(model: Model, tmp_path: Path) -> None:
    records = [
        {"text": "not bad prices", "label": "good"},
        {"text": "", "label": "good"},
        {"text": "the " * 100, "label": "bad"},
        {"text": "great food", "label": "wonderful"},
        {"text": None, "label": "good"},
        {"text": "bad food", "label": "bad"},
    ]
    run = whence.run(model, records, ["occlusion"], out=tmp_path / "run", evidence=False, gold=True)
    failures = {failure.row: failure for failure in run.failures}
    assert sorted(failures) == [1, 2, 3, 4]
    assert "positions end at 64" in failures[2].message
    assert failures[3].kind == "TargetError"
    assert "wonderful" in failures[3].message
    targets = [attribution.target.label for attribution in run.attributions()]
    assert targets == ["good", "bad"]
    with pytest.raises(InputError, match="row 1"):
        whence.run(
            model,
            records,
            ["occlusion"],
            out=tmp_path / "other",
            evidence=False,
            gold=True,
            fail_fast=True,
        )


def test_logits_that_are_no_numbers_are_the_failure_of_their_row(
    model: Model, tmp_path: Path
) -> None:
    import copy

    import torch

    hf = copy.deepcopy(model.hf)
    bad = model.encode("food").ids[1]
    with torch.no_grad():
        hf.get_input_embeddings().weight[bad] = float("nan")
    poisoned = whence.load(hf, tokenizer=model.tokenizer)
    texts = ["not bad prices", "great food", "bad prices"]
    run = whence.run(poisoned, texts, ["occlusion"], out=tmp_path / "run", evidence=False)
    (failure,) = run.failures
    assert failure.row == 1
    assert len(list(run.attributions())) == 2


def test_one_bad_text_does_not_make_all_others_run_alone(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import copy

    import torch

    from whence.explaining import rows

    hf = copy.deepcopy(model.hf)
    with torch.no_grad():
        hf.get_input_embeddings().weight[model.encode("food").ids[1]] = float("nan")
    poisoned = whence.load(hf, tokenizer=model.tokenizer)
    sizes = []
    explained = rows.run

    def counted(model: Model, texts: Any, request: Any, **options: Any) -> Any:
        sizes.append(len(texts))
        return explained(model, texts, request, **options)

    monkeypatch.setattr(rows, "run", counted)
    texts = ["bad prices"] * 16
    texts[5] = "great food"
    run = whence.run(poisoned, texts, ["gradient-l2"], out=tmp_path / "run", evidence=False)
    assert [failure.row for failure in run.failures] == [5]
    # would catch: 16 and then each alone
    assert sizes == [16, 8, 4, 4, 2, 1, 1, 2, 8]


def test_the_text_is_stored_once(model: Model, tmp_path: Path) -> None:
    text = "the unmistakable prices"
    run = whence.run(model, [text], METHODS, out=tmp_path / "run", evidence=False)
    (record,) = run.records()
    assert text not in json.dumps(record)
    assert run.table("texts").to_pylist()[0]["text"] == text


def test_a_part_is_small_and_holds_every_bit(model: Model, tmp_path: Path) -> None:
    from whence.runs.parts import as_bytes, read_part

    texts = [f"{text} and {other}" for text in TEXTS for other in TEXTS]
    run = whence.run(
        model, texts, ["gradient-l2", "gradient-x-input"], out=tmp_path, evidence=False
    )
    table = read_part(run.place, run.parts[0])
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert pq.read_table(pa.BufferReader(as_bytes(table))).equals(table)
    as_usual = pa.BufferOutputStream()
    pq.write_table(table, as_usual, compression="zstd")
    # would catch: dictionaries, or the bounds of each column, in every part
    assert len(as_bytes(table)) < 0.8 * len(as_usual.getvalue())


def test_the_state_counts_failures_without_reading_the_parts(model: Model, tmp_path: Path) -> None:
    from whence.runs.parts import failures_in

    texts = ["", "not bad prices", "", "great food", "bad", "the " * 100]
    run = whence.run(model, texts, ["gradient-l2"], out=tmp_path, evidence=False, part=3)
    failed = [failures_in(run.place, run.parts[number]) for number in (0, 1)]
    assert failed == [2, 1]
    assert run.state.failed == len(run.failures) == 3
    file = tmp_path / run.parts[1].name
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(InputError, match="is damaged"):
        failures_in(run.place, run.parts[1])


def test_a_manifest_does_not_choose_what_is_run(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    whence.run(model, TEXTS[:1], ["occlusion"], out=out, evidence=False)
    stored = json.loads((out / "run.json").read_text())
    stored["reader"] = "os"
    (out / "run.json").write_text(json.dumps(stored))
    with pytest.raises(LoadError, match="os is no part of whence"):
        whence.open_run(out).table("scores")
    for damaged in ("{", "[]", '{"kind": "run"}', "null"):
        (out / "run.json").write_text(damaged)
        with pytest.raises(LoadError, match="no manifest"):
            whence.open_run(out)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    model: Model, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 190_000)
        with pytest.raises(InputError, match="No space left on device"):
            whence.run(model, TEXTS, METHODS, out=disk / "run", part=1, **QUICK)
        done = len(parts_of(place_of(disk / "run")))
        assert done < len(TEXTS)
        ballast.unlink()
        run = whence.run(model, TEXTS, METHODS, out=disk / "run", part=1, **QUICK)
        assert run.is_complete
        assert not list((disk / "run" / "parts").glob(".*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_batches_across_texts_change_no_score_beyond_rounding(model: Model, tmp_path: Path) -> None:
    together = whence.run(model, TEXTS, ["gradient-l2"], out=tmp_path / "a", evidence=False)
    alone = whence.run(model, TEXTS, ["gradient-l2"], out=tmp_path / "b", evidence=False, part=1)
    for some, other in zip(together.attributions(), alone.attributions(), strict=True):
        np.testing.assert_allclose(some.scores, other.scores, rtol=1e-4, atol=1e-7)


def test_what_a_killed_process_was_writing_is_taken_away(model: Model, tmp_path: Path) -> None:
    # would catch: half-written files of many kills that fill the disk
    whence.run(model, TEXTS, ["gradient-l2"], out=tmp_path, part=3, evidence=False)
    (half,) = list(tmp_path.glob("parts/000001-*"))
    half.rename(half.with_name(UNFINISHED.format("0123456789abcdef")))
    (tmp_path / "parts" / "of-the-user.txt").write_text("mine")
    run = whence.run(model, TEXTS, ["gradient-l2"], out=tmp_path, part=3, evidence=False)
    assert run.is_complete
    names = sorted(file.name for file in tmp_path.glob("parts/*"))
    assert len(names) == 4
    assert names[-1] == "of-the-user.txt"


def test_tables_go_out_as_csv_latex_markdown_and_a_frame(model: Model, tmp_path: Path) -> None:
    texts = ["=great food", "not bad | prices"]
    run = whence.run(model, texts, ["occlusion"], out=tmp_path / "run", evidence=False)
    scores = run.table("scores").to_pylist()

    written = run.to_csv("scores", tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_bytes().decode() == written
    rows = list(csv.DictReader(io.StringIO(written)))
    # would catch: digits that are cut, a cell that a spreadsheet would run
    assert [float(row["score"]) for row in rows] == [record["score"] for record in scores]
    assert all(not row["unit"].startswith("=") for row in rows)
    assert run.to_csv("scores", safe=False) != written or "'=" not in written

    assert run.to_frame("scores")["score"].tolist() == [record["score"] for record in scores]
    asked = "select unit, score from scores where row = 1 order by position"
    assert run.to_frame(asked)["unit"].tolist() == ["not", "bad", "|", "prices"]
    markdown = run.to_markdown(asked)
    assert "| \\| |" in markdown
    latex = run.to_latex(asked, tmp_path / "table.tex")
    for rule in ("toprule", "midrule", "bottomrule"):
        assert latex.count(f"\\{rule}") == 1
    assert r"\textbar{}" in latex
    words = {"method", "target", "word", "texts", "share", "low", "high", "total"}
    assert set(run.table("words").column_names) == words
    with pytest.raises(LookupError, match="Did you mean 'verdicts'"):
        run.table("verdict")


def test_the_same_question_has_the_same_digits_each_time(model: Model, tmp_path: Path) -> None:
    # would catch: sums in the order in which threads come, as DuckDB makes them unless asked
    texts = [*TEXTS, *(f"{text} food" for text in TEXTS)]
    methods = ["gradient-x-input", "occlusion"]
    first = whence.run(model, texts, methods, out=tmp_path, part=2, evidence=False).table("words")
    assert first.num_rows > 10
    for _ in range(20):
        assert whence.open_run(tmp_path).table("words").equals(first)
