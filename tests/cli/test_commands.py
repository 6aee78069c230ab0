"""Each command does its work: in the terminal, as JSON, as a page, from a file, through a pipe."""

from __future__ import annotations

import json
import re

import pytest

import whence as wh
from whence.core.registry import methods, metrics

TEXT = "the food is great but the service is not"


@pytest.fixture(autouse=True)
def _read_once() -> None:
    """Each command reads its model here, as a user's does."""


def test_explain_prints_the_prediction_the_target_and_every_unit(whence):
    done = whence("explain", TEXT, "--method", "gradient-x-input", "--target", "good")
    assert done.code == 0
    assert done.err == ""
    assert "the score (logit) of good, " in done.out
    assert "gradient-x-input" in done.out
    rows = [line.split()[0] for line in done.out.splitlines() if line.endswith("█") or "  " in line]
    assert [w for w in rows if w in TEXT.split()] == TEXT.split()


def test_json_is_what_the_library_returns(whence, folder):
    done = whence("explain", TEXT, "--method", "gradient-l2", "--json")
    a = wh.Attribution.from_dict(json.loads(done.out))
    direct = wh.explain(wh.load(folder), TEXT, "gradient-l2", evidence=False)
    assert a.scores.tolist() == direct.scores.tolist()


def test_settings_of_the_method_are_flags_wherever_they_stand(whence):
    flags = ["--baseline", "mask", TEXT, "--max-nodes=24", "--nodes", "6", "--json"]
    one = whence("explain", "--method", "ig", *flags)
    assert json.loads(one.out)["settings"] == {
        "baseline": "mask",
        "nodes": 6,
        "tolerance": 0.01,
        "max_nodes": 24,
    }
    layer = whence("explain", TEXT, "--method", "attention-mean", "--layer", "-1", "--json")
    assert json.loads(layer.out)["settings"]["layer"] == -1


def test_a_text_may_begin_with_dashes(whence):
    done = whence("explain", "--- not bad", "--json", "--method", "random")
    assert json.loads(done.out)["passage"]["text"] == "--- not bad"


def test_target_options_reach_the_target(whence):
    done = whence(
        "explain",
        TEXT,
        "--target",
        "good",
        "--against",
        "bad",
        "--read",
        "probability",
        "--method",
        "gradient-l1",
        "--json",
    )
    target = json.loads(done.out)["target"]
    assert (target["label"], target["against"], target["read"]) == ("good", "bad", "probability")


@pytest.mark.parametrize("source", ["file", "stdin", "dash"])
def test_several_texts_one_a_line(whence, tmp_path, source):
    content = "not bad\r\n\n  \ngreat food, 中国".encode()
    file = tmp_path / "texts.txt"
    file.write_bytes(content)
    where = {"file": ("--file", file), "stdin": (), "dash": ("-",)}[source]
    stdin = None if source == "file" else content
    done = whence("explain", *where, "--json", "--method", "gradient-l2", stdin=stdin)
    assert done.code == 0
    texts = [json.loads(line)["passage"]["text"] for line in done.out.splitlines()]
    assert texts == ["not bad", "great food, 中国"]
    assert done.err.count("\n") == 1
    assert "2 blank lines" in done.err
    assert "(line 2, 3)" in done.err


def test_one_page_for_all_texts_and_its_path_on_stderr(whence, tmp_path):
    page = tmp_path / "report.html"
    done = whence(
        "explain", "--html", page, "--method", "gradient-l2", stdin=b"not bad\ngreat food\n"
    )
    assert str(page) in done.err
    assert page.read_text().count('<section class="whence"') == 3  # all, and each of them


def test_several_texts_have_an_index_and_counts_and_each_in_full_if_asked_for(whence, tmp_path):
    flags = ("--methods", "gradient-l2,random")
    lines = b"not bad\ngreat food\n"
    short = whence("compare", *flags, stdin=lines)
    assert short.out.count("not bad") == short.out.count("great food") == 1
    assert [line.split()[1:4] for line in short.out.splitlines() if line.startswith("rand")] == [
        ["0", "of", "2"]  # evidence is on, and two words have too few orders for a verdict
    ]
    assert "--full" in short.err
    full = whence("compare", *flags, "--full", stdin=lines)
    assert full.out.startswith(short.out)
    assert full.out.count("great food") > 1


def test_many_texts_are_saved_together(whence, tmp_path):
    path = tmp_path / "many.json"
    flags = ("--method", "gradient-l2", "--json", "--save", path)
    done = whence("explain", *flags, stdin=b"not bad\ngreat food\n")
    printed = tmp_path / "many.jsonl"
    printed.write_text(done.out, encoding="utf-8")
    assert wh.read(path) == wh.read(printed)


def test_save_can_be_read_back(whence, tmp_path):
    path = tmp_path / "a.json"
    done = whence("explain", TEXT, "--save", path, "--json", "--method", "gradient-l2")
    assert wh.read(path) == wh.Attribution.from_dict(json.loads(done.out))


def test_a_comparison_is_saved_and_told_so(whence, tmp_path):
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    flags = ("--methods", "gradient-l2,random", "--no-evidence")
    done = whence("compare", TEXT, *flags, "--save", one)
    assert str(one) in done.err
    assert list(wh.read(one)) == ["gradient-l2", "random"]
    done = whence("compare", *flags, "--save", two, stdin=b"not bad\ngreat food\n")
    assert [row.text for row in wh.read(two).rows()] == ["not bad", "great food"]


def test_compare_shows_every_method_and_its_cost(whence, tmp_path):
    done = whence("compare", TEXT, "--full", "--html", tmp_path / "c.html")
    assert done.code == 0
    for name in set(methods()) - {"lime-exact", "shapley-exact"}:  # which are of another model
        assert f"\n{name} " in done.out
    assert "zero by construction" in done.out
    assert "In all " in done.out


def test_compare_takes_methods_and_settings(whence):
    done = whence(
        "compare",
        TEXT,
        "--methods",
        "gradient-l2, attention-mean",
        "--set",
        "attention-mean.layer=0",
        "--json",
    )
    attributions = json.loads(done.out)["attributions"]
    assert list(attributions) == ["gradient-l2", "attention-mean"]
    assert attributions["attention-mean"]["settings"]["layer"] == 0


def test_predict(whence):
    done = whence("predict", "not bad", "--json")
    prediction = json.loads(done.out)
    probabilities = prediction["probabilities"]
    assert sum(probabilities.values()) == pytest.approx(1)
    assert prediction["label"] == max(probabilities, key=probabilities.get)
    shown = whence("predict", stdin=b"not bad\ngreat\n")
    assert shown.out.count("█") > 2
    assert "not bad" in shown.out


def test_methods_lists_every_method_once_and_settings_if_asked(run):
    short = run("methods").out
    with_settings = run("methods", "--settings").out
    for name in methods():
        assert len(re.findall(rf"^  {name} ", short, re.MULTILINE)) == 1
    assert "--baseline" not in short
    assert "--baseline mean  mean | mask | pad | zero" in with_settings
    listed = {m["name"]: m for m in json.loads(run("methods", "--json").out)}
    assert set(listed) == set(methods())
    # what was there before aliases and sentences came
    assert {"name", "summary", "settings", "signed", "cites", "version"} <= set(listed["lime"])
    # a property of the settings: the class alone would be truthy
    assert listed["smooth-grad"]["signed"] is False


def test_methods_explains_one_method_whatever_it_is_called(run):
    shown = run("methods", "IG").out
    assert shown == run("methods", "integrated_gradients").out
    words = " ".join(shown.split())
    assert "integrated-gradients also called ig" in words
    assert "signed: above zero speaks for the target" in words
    assert "docs/methods/integrated-gradients.md" in words
    explained = json.loads(run("methods", "ig", "--json").out)
    assert explained["misleads"] in words
    for setting in explained["settings"]:
        assert setting["about"] in words
        assert f"--{setting['name'].replace('_', '-')} {setting['default']}" in words


def test_metrics_explains_one_metric(run):
    words = " ".join(run("metrics", "Deletion").out.split())
    assert "lower is better" in words
    assert "steps=10 whole number In how many steps" in words
    assert "whence evaluate --set deletion.steps=…, or keywords of whence.measure" in words
    again = " ".join(run("metrics", "consistency").out.split())
    assert 'whence.evaluate(…, metrics={"consistency": {"by": …}})' in again
    assert "whence.measure" not in again  # it has one explanation, and no others of its kind
    assert {m["name"] for m in json.loads(run("metrics", "--json").out)} == set(metrics())
    assert "steps=10" not in run("metrics").out
    assert "steps=10" in run("metrics", "--settings").out


@pytest.mark.parametrize("kind", ["methods", "metrics"])
def test_a_name_that_is_unknown_is_said_in_one_line(run, kind):
    done = run(kind, "zzz")
    assert done.code == 2
    assert f"no {kind.removesuffix('s')} named 'zzz'" in done.err
    assert done.err.count("\n") == 1


def test_aliases_lead_to_results_with_proper_names(whence):
    one = json.loads(whence("explain", "not bad", "--method", "Saliency", "--json").out)
    assert one["method"] == "gradient-l2"
    given = ("--methods", "IG,Saliency", "--set", "Integrated_Gradients.baseline=mask")
    several = json.loads(whence("compare", "not bad", *given, "--no-evidence", "--json").out)
    assert list(several["attributions"]) == ["integrated-gradients", "gradient-l2"]
    assert several["attributions"]["integrated-gradients"]["settings"]["baseline"] == "mask"


def test_attend_reports_the_share_of_special_tokens(whence):
    encoder = json.loads(whence("attend", "not bad", "--json").out)["kinds"]["encoder"]
    assert encoder["layers_heads_from_to"] == [2, 4, 4, 4]
    for layer in encoder["share_on_special_tokens"]:
        assert all(0 < share < 1 for share in layer)
    assert "2 layers × 4 heads" in whence("attend", "not bad").out


def test_doctor(whence):
    done = whence("doctor")
    assert done.code == 0
    assert "passed" in done.out
    assert "captured through AttentionInterface" in done.out
    # all but lime-exact and shapley-exact, which are of another model
    assert done.out.count("works") == len(methods()) - 2
    assert json.loads(whence("doctor", "--json").out)["self_check"]["passed"] is True


def test_a_long_text_in_windows(whence):
    long = " ".join(["not bad"] * 60)
    command = ("explain", long, "--overflow", "window", "--method", "gradient-l2", "--no-evidence")
    assert "the 15 strongest of 120 units" in whence(*command).out
    assert "strongest of" not in whence(*command, "--all").out
