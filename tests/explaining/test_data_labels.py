"""Labels that the model does not have, in run, evaluate and audit alike."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

import whence
from tests.families import build
from whence.core.errors import InputError
from whence.core.overview import Overview
from whence.explaining.overview import overview_of
from whence.runs.manifest import read_manifest
from whence.views.overview import overview_sentences
from whence.views.overview_data import packed

TEXTS = ["the food is great", "not bad prices", "the service is not good", "great prices"]


# the model says bad, fair or good
def labelled(*labels: str) -> list[dict[str, str]]:
    return [{"text": t, "label": label} for t, label in zip(TEXTS, labels, strict=True)]


HALF, ONE = labelled("good", "ok", "bad", "ok"), labelled("good", "ok", "good", "ok")
NO_MORE: dict[str, Any] = {"evidence": False, "text": "text", "label": "label"}


def ran(data: list[dict[str, str]], out: Path, **more: Any) -> whence.Run:
    return whence.run(build("bert"), data, ["gradient-l2"], out=out, **NO_MORE, **more)


def overview(data: list[dict[str, str]], out: Path, **more: Any) -> Overview:
    return overview_of(ran(data, out, **more))


def test_texts_of_unknown_labels_are_in_no_accuracy_and_not_wrong(tmp_path: Path) -> None:
    seen = overview(HALF, tmp_path / "run")
    assert seen.accuracy is not None
    assert seen.accuracy.texts == 2
    assert [read.is_judged for read in seen.texts] == [True, False, True, False]
    said = " ".join(overview_sentences(seen))
    assert "2 of 4 texts have a label that the model does not have, ok" in said
    assert "of the 2 whose label it has" in said
    right = seen.accuracy.right
    assert f"<dd>{right} of 2</dd>" in seen.to_html()  # of its own number, and not of all 4


def test_the_page_marks_no_text_wrong_whose_label_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(
        "whence.views.overview_data.blob", lambda content: written.append(content) or ""
    )
    packed(overview(HALF, tmp_path / "run"))
    assert written[0].count(b'"unjudged":true') == 2


def test_there_is_no_accuracy_where_one_label_is_left(tmp_path: Path) -> None:
    # the version before: “right on 2 of 2; always saying good would be 100 %”
    seen = overview(ONE, tmp_path / "run")
    assert seen.accuracy is None
    said = " ".join(overview_sentences(seen))
    assert "How often it is right is not told: the 2 texts whose label it has are both good" in said
    assert "always saying" not in said


def test_a_model_of_several_labels_has_all_its_labels_and_is_not_called_wrong(
    tmp_path: Path,
) -> None:
    """The version before: "4 texts have a label that the model does not have: good (2), …"."""
    model = build("bert")
    model.hf.config.problem_type = "multi_label_classification"
    data = labelled("good", "bad", "good", "fair")
    run = whence.run(model, data, ["gradient-l2"], out=tmp_path / "run", **NO_MORE)
    seen = overview_of(run)
    assert (seen.accuracy, seen.confusion, seen.unjudged) == (None, None, 4)
    said = " ".join(overview_sentences(seen))
    assert "does not have" not in said
    assert "how often it is right on the 4 texts with a label in the data is not told" in said
    probabilities = [run.comparison(row).first.prediction for row in range(4)]
    for read, each in zip(seen.texts, probabilities, strict=True):
        assert not read.is_judged
        assert read.holding is not None
        assert dict(read.holding) == {name: p for name, p in each.items() if p >= 0.5}
    for question in ("wrong", "confusion"):
        with pytest.raises(InputError, match="does not choose one label of a list"):
            run.table(question)


def test_a_mapping_is_kept_in_the_manifest_and_said_on_the_page(tmp_path: Path) -> None:
    run = ran(HALF, tmp_path / "run", labels={"ok": "Fair"})
    assert read_manifest(run.place).asked["data_labels"] == {"ok": "Fair"}
    seen = overview_of(run)
    assert seen.accuracy is not None
    assert seen.accuracy.texts == 4
    assert [read.label for read in seen.texts] == ["good", "fair", "bad", "fair"]
    assert "Labels of the data are read as --labels says: ok as fair." in overview_sentences(seen)


def test_a_run_may_be_told_later_what_labels_mean_and_keeps_that(tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = ran(HALF, out)
    parts = [part.name for part in first.parts.values()]
    again = ran(HALF, out, labels={"ok": "fair"})
    assert [part.name for part in again.parts.values()] == parts  # nothing is done anew
    for later in (again, ran(HALF, out), whence.open_run(out)):
        seen = overview_of(later)
        assert seen.accuracy is not None
        assert seen.accuracy.texts == 4


def test_where_the_label_is_explained_another_meaning_is_another_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    ran(HALF, out, gold=True, labels={"ok": "fair"})
    with pytest.raises(InputError, match=r"asked for something else. asked\.data_labels\.ok"):
        ran(HALF, out, gold=True, labels={"ok": "bad"})


def test_a_mapped_label_is_what_is_explained(tmp_path: Path) -> None:
    run = ran(HALF, tmp_path / "run", gold=True, labels={"ok": "fair"})
    assert [a.target.label for a in run.attributions()] == ["good", "fair", "bad", "fair"]
    foils = [record | {"foil": "okay"} for record in HALF]
    run = ran(foils, tmp_path / "foils", foil="foil", labels={"ok": "fair", "okay": "0"})
    contrasts = [(a.target.label, a.target.against) for a in run.attributions()]
    assert contrasts == [("good", "bad"), ("fair", "bad"), ("fair", "bad")]  # bad: two of one


def test_python_is_told_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "whence"):
        ran(HALF, tmp_path / "run")
    assert "2 of 4 texts have a label that the model does not have, ok" in caplog.text


@pytest.mark.parametrize("verb", ["run", "evaluate", "audit"])
def test_every_command_refuses_a_mistyped_mapping_before_any_work(
    verb: str, tmp_path: Path
) -> None:
    def ask(labels: dict[str, str]) -> None:
        out = tmp_path / "out"
        getattr(whence, verb)(
            build("bert"), HALF, text="text", label="label", labels=labels, out=out
        )

    with pytest.raises(InputError, match=r"Did you mean 'ok'\?"):
        ask({"okk": "fair"})
    with pytest.raises(InputError, match=r"Did you mean 'fair'\?"):
        ask({"ok": "fairr"})
    assert not list(tmp_path.rglob("*.parquet"))


def test_where_no_label_is_known_and_one_is_needed_nothing_is_begun(tmp_path: Path) -> None:
    unknown = [{"text": t, "label": "ok"} for t in TEXTS]
    with pytest.raises(InputError, match=r"The data say ok; the model says bad, fair, good"):
        whence.audit(build("bert"), unknown, text="text", label="label", out=tmp_path / "out")
    with pytest.raises(InputError, match=r"none of the labels"):
        ran(unknown, tmp_path / "run", gold=True)


def test_an_audit_values_heads_by_the_mapped_label_and_names_the_unknown(tmp_path: Path) -> None:
    three = [*HALF, {"text": "the prices are bad", "label": "awful"}]
    audit = whence.audit(
        build("bert"),
        three,
        ["heads"],
        text="text",
        label="label",
        labels={"ok": "fair"},
        rankings=2,
        out=tmp_path / "out",
    )
    assert (audit.texts, audit.failed) == (4, 1)
    assert any(
        "1 of 5 texts has a label that the model does not have, awful" in n for n in audit.notes
    )
    assert any("ok as fair" in note for note in audit.notes)


def test_an_evaluation_of_labels_names_the_unknown(tmp_path: Path) -> None:
    table = whence.evaluate(
        build("bert"),
        HALF,
        ["gradient-l2"],
        ["deletion"],
        gold=True,
        text="text",
        label="label",
        planted=0,
        rankings=2,
        out=tmp_path / "out",
    )
    assert (table.texts, table.failed) == (2, 2)
    assert any("2 of 4 texts have a label that the model does not have" in n for n in table.notes)


# ---------------------------------------------------------------------- each label by itself


@pytest.fixture(scope="module")
def run_of_several(tmp_path_factory: pytest.TempPathFactory) -> whence.Run:
    """The run of a model that says yes or no to each label, of data with one label each."""
    model = build("bert")
    model.hf.config.problem_type = "multi_label_classification"
    model = whence.load(model.hf, tokenizer=model.tokenizer)
    data, out = labelled("good", "fair", "bad", "good"), tmp_path_factory.mktemp("several")
    return whence.run(model, data, ["gradient-l2"], out=out / "run", **NO_MORE)


def test_a_model_of_several_labels_is_not_said_to_lack_them(run_of_several: whence.Run) -> None:
    """Would catch: “4 texts have a label that the model does not have: good (2) …”."""
    seen = overview_of(run_of_several)
    assert seen.confusion is None
    assert seen.accuracy is None
    assert not any(read.is_judged for read in seen.texts)
    assert "does not have" not in " ".join(overview_sentences(seen))
    assert "does not have" not in re.sub(r"<dd.*?</dd>", "", seen.to_html(), flags=re.S)


@pytest.mark.parametrize("question", ["confusion", "wrong"])
def test_what_it_says_is_not_counted_beside_the_data(
    run_of_several: whence.Run, question: str
) -> None:
    with pytest.raises(InputError, match="does not choose one label of a list"):
        run_of_several.table(question)
