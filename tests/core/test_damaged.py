"""Damaged files: read says in one line what is wrong and where, or every view shows the result."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whence
from tests.damage import outcome, places, results, sweep, views
from whence.core.errors import LoadError, WhenceError
from whence.core.reading import read
from whence.core.showing import acts
from whence.core.stored import DEEPEST
from whence.core.writing import json_text

RESULTS = results()


@pytest.mark.parametrize("kind", RESULTS)
def test_what_is_whole_is_read_and_shown(kind, tmp_path):
    path = tmp_path / "a.json"
    assert whence.read(RESULTS[kind].save(path)).to_dict() == RESULTS[kind].to_dict()
    found, problem = outcome(RESULTS[kind].to_dict(), path, figures=True)
    # LaTeX has no words to colour in an image, and says so
    assert found == ("refused by a view" if kind == "image" else "shown"), problem


def test_damaged_results_are_refused_or_shown():
    counts, crashes = sweep(every=500, figures_every=40)
    assert crashes == []
    # neither everything nor nothing is refused
    assert counts["refused"] > 3 * counts["shown"] > 30


@pytest.mark.slow
def test_thousands_of_damaged_results_are_refused_or_shown():
    counts, crashes = sweep(every=110, figures_every=40, seed=1)
    assert crashes == []
    assert counts["refused"] > 3 * counts["shown"] > 150


def stored(**changes) -> dict:
    return RESULTS["planned"].to_dict() | changes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(stored(value=math.inf)), "value: expected a finite number, got inf"),
        (json.dumps(stored(scores=[1, 2, math.nan, 0, 0])), "scores[2]: expected a finite number"),
        (json.dumps(stored(scores=[1, 2, "x", 0, 0])), "scores[2]: expected a number, got 'x'"),
        (json.dumps(stored(value=True)), "value: expected a number, got true"),
        (json.dumps(stored(signed=1)), "signed: expected true or false, got 1"),
        (json.dumps(stored(version="1")), "version: expected a whole number, got '1'"),
        (json.dumps(stored(version=10**400)), "got a number of more than 38 digits"),
        (json.dumps(stored(schema=99)), "schema 99; this whence reads up to"),
        (json.dumps(stored(schema=True)), "no 'schema' number"),
        (json.dumps(stored(prediction={"good": 1.5})), "prediction.good: expected a number from 0"),
        (json.dumps(stored(target={"index": -1})), "target.index: expected a whole number of at"),
        (json.dumps(stored(settings={"a b": [math.nan]})), "settings['a b'][0]: expected a finite"),
        (json.dumps(stored(kind="\n\r\t")), "holds no attribution but a "),
        ('{"a": 1, "a": 2}', "it has 'a' twice in one record"),
        ("[" * 100_000, "nested too deeply"),
        ('{"schema": 1, "value": ' + "9" * 5000 + "}", "is not JSON: "),
    ],
)
def test_the_error_says_where_and_what(tmp_path, content, message):
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(LoadError) as caught:
        read(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_nested_deeply_is_refused(tmp_path):
    deep: object = 1
    for _ in range(DEEPEST):
        deep = [deep]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(stored(settings={"a": deep})))
    with pytest.raises(LoadError, match=f"nested more than {DEEPEST} deep"):
        read(path)


def test_fields_that_do_not_fit_each_other_are_refused(tmp_path):
    path = tmp_path / "a.json"
    whole = json.loads(json.dumps(RESULTS["in windows"].to_dict()))
    trial = whole["evidence"]["removals"]["mask"]
    breaks = {
        "passage.unit_of": (whole["passage"], "unit_of", [0, 1, 2, 3, 5]),
        "passage.tokens": (whole["passage"], "tokens", ["so"]),
        "passage.spans[4]": (whole["passage"], "spans", [*whole["passage"]["spans"][:-1], [0, 99]]),
        "passage.unit_spans[1]": (whole["passage"], "unit_spans", [[0, 0, 9], [0, 2, 7]]),
        "passage.readout": (whole["passage"], "readout", 5),
        "error.standard_error": (whole["error"], "standard_error", [0.1]),
        "windows": (whole, "windows", [{"start": 0, "end": 3, "value": 1.0}]),
        "removals.mask.deletion": (trial, "deletion", [0.5]),
        "removals.mask.steps": (trial, "steps", trial["steps"][::-1]),
        "removals.mask.interval": (trial, "interval", [0.9, 0.1]),
    }
    for place, (holder, key, wrong) in breaks.items():
        before, holder[key] = holder[key], wrong
        path.write_text(json.dumps(whole))
        with pytest.raises(LoadError) as caught:
            read(path)
        assert place.rpartition(".")[2].partition("[")[0].split("_")[-1] in str(caught.value)
        holder[key] = before
    path.write_text(json.dumps(whole))
    assert read(path) == RESULTS["in windows"]


def test_an_anchor_that_holds_says_how_surely(tmp_path):
    path = tmp_path / "a.json"
    content = json.loads(json.dumps(RESULTS["anchor"].to_dict()))
    content["detail"]["interval"] = None
    path.write_text(json.dumps(content))
    with pytest.raises(LoadError, match=r"detail\.interval: expected"):
        read(path)


def test_a_patch_far_outside_its_picture_is_refused(tmp_path):
    # would catch: a grid of 2³¹ columns, laid out by a view
    path = tmp_path / "a.json"
    content = json.loads(json.dumps(RESULTS["image"].to_dict()))
    content["passage"]["unit_spans"][0][2] = 2**31
    path.write_text(json.dumps(content))
    with pytest.raises(LoadError, match=r"passage\.unit_spans\[0\]: no unit is at 0, 2147483648"):
        read(path)


@pytest.mark.parametrize("kind", ["planned", "by target", "many attributions"])
def test_half_a_character_in_a_name_is_spelt_out_in_every_view(kind, tmp_path):
    # the name of a folder may hold a byte that is no UTF-8, and Python makes this of it
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps(RESULTS[kind].to_dict()).replace("so very good", "so \\ud800ery good")
    )
    result = read(path)
    views(result, figures=False)
    assert "\\ud800" in result.to_csv()
    result.to_csv(tmp_path / "a.csv")
    if hasattr(result, "to_html"):
        result.to_html(tmp_path / "a.html")


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path):
    path = tmp_path / "a.json"
    RESULTS["planned"].save(path)
    with pytest.raises(LoadError, match=r"larger than 1 kB.*largest="):
        read(path, largest="1kB")
    with pytest.raises(LoadError, match="larger than 1 MB"):
        read("/dev/zero", largest="1MB")  # it never ends
    path.write_bytes(b"\xff\xfe" + path.read_text().encode("utf-16-le"))
    with pytest.raises(LoadError, match=r"not UTF-8 \(byte 0xff at 0\)"):
        read(path)
    RESULTS["planned"].save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # as some editors begin a file
    assert read(path) == RESULTS["planned"]


# ---------------------------------------------------------------------- hostile strings

HOSTILE = st.sampled_from(
    ["\x1b[31m", "\x9b2J", "\x07", "\x08", "\x7f", "\x00", "\u202e", "\u2066", "\u2028", "\u2029",
     "\x85", "\u200b", "\u200e", "\ufeff", "\r", "\ud800", "\U000e0001", "\x1b]0;x\x07"]
)  # fmt: skip
TEXTS = st.lists(st.one_of(HOSTILE, st.text(max_size=3)), min_size=1, max_size=4).map("".join)
KINDS = sorted(RESULTS)


def text_places(content: dict) -> list[tuple]:
    found = []
    for path in places(content):
        value = content
        for key in path:
            value = value[key]
        if isinstance(value, str):
            found.append(path)
    return found


def passing(text: str) -> set[str]:
    return {c for c in text if acts(c) and c != "\n"}


@settings(max_examples=60)
@given(st.sampled_from(KINDS), TEXTS, st.data())
def test_no_text_of_a_result_acts_on_a_terminal(kind, hostile, data):
    content = json.loads(json.dumps(RESULTS[kind].to_dict()))
    path = data.draw(st.sampled_from(text_places(content)))
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = f"a{hostile}z"
    if isinstance(holder, dict) and "label" in holder:
        holder["label"] = hostile
    for open_names in ("settings", "prediction"):
        if open_names in content:
            content[open_names] = {hostile: 0.5}
    read_one = whence.core.reading.KINDS.get(content["kind"])
    if read_one is None:
        return
    try:
        result = read_one(content)
    except WhenceError as problem:
        refusal = str(problem)
    else:
        refusal = None
    if refusal is not None:
        assert passing(refusal) == set()
        return
    shown = [repr(result), str(result)]
    if hasattr(result, "to_text"):
        shown += [result.to_text(full=True), str(result.answer)]
    for text in shown:
        assert passing(text) == set()
    line = json_text(result.to_dict())
    assert passing(line) == set()
    assert "\n" not in line
    assert json.loads(line) == json.loads(json.dumps(result.to_dict()))


@given(st.text())
def test_json_gives_back_every_text(text):
    line = json_text({text: [text]})
    assert json.loads(line) == {text: [text]}
    assert passing(line) == set()
