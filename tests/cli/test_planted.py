"""whence planted: the table, JSON, CSV and a page; what is wrong is said before any work."""

from __future__ import annotations

import json

import whence as wh

FEW = ("planted", "--mechanisms", "distractor", "--texts", "3")


def test_it_prints_the_answer_then_the_table(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(*FEW, "--methods", "occlusion,attention-mean,random")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("3 texts of each mechanism cannot show")
    assert "better 30.\nOn distractor, attention-mean ranks a decoy first" in done.out
    assert "random (control)" in done.out
    assert "chance, exactly" in done.out
    assert "correction for 2 tests" in " ".join(done.out.split())
    control = run(*FEW, "--methods", "random")
    assert "Holm" not in control.out  # the control is not tested


def test_json_csv_page_and_file_are_the_same_result(run, tmp_path):
    html, csv, saved = (tmp_path / name for name in ("a.html", "a.csv", "a.json"))
    done = run(
        *FEW, "--methods", "lime", "--set", "lime.exact=4", "--json", "--html", html, "--csv", csv,
        "--save", saved, "--seed", 1,
    )  # fmt: skip
    assert done.code == 0
    truth = wh.PlantedTruth.from_dict(json.loads(done.out))
    assert truth == wh.read(saved)
    assert truth.settings["lime"]["exact"] == 4
    assert truth.seed == 1
    assert csv.read_text(encoding="utf-8").splitlines()[0].startswith("method,mechanism,texts")
    assert html.read_text(encoding="utf-8") == truth.to_html()
    assert str(html) in done.err


def test_mistakes_are_one_line_and_exit_code_two(run, tmp_path):
    for arguments, message in [
        (("--mechanisms", "pairs"), "Did you mean 'pair'"),
        (("--methods", "occlusions"), "Did you mean 'occlusion'"),
        (("--texts", "0"), "at least one text"),
        (("--texts", "many"), "valid integer"),
        (("--html", tmp_path / "no" / "a.html"), "does not exist"),
    ]:
        done = run("planted", *arguments)
        assert done.code == 2
        assert done.out == ""
        assert len(done.err.splitlines()) == 1
        assert message in done.err
