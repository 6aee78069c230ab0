"""evaluate: a table of methods × metrics, from the same numbers as each alone."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.families import build
from whence.core.errors import InputError
from whence.core.evaluation import Evaluation
from whence.core.evidence import Verdict
from whence.explaining.data_set import request_of
from whence.explaining.stored_trials import evaluation_of
from whence.trace.memory import can_be_held

TEXTS = [
    "the food is great but not the prices",
    "not bad at all and the menu is fine",
    "bad food and bad service",
    "great prices great menu great food",
    "the service is not great",
    "fine food and fine prices but bad menu",
    "the menu is bad but the food is not",
]
METHODS = ["occlusion", "gradient-x-input", "attention-mean", "random"]
METRICS = ["comprehensiveness", "sufficiency", "infidelity", "compactness", "consistency"]


def records(**columns: Any) -> list[dict[str, Any]]:
    return [{"text": text, **columns} for text in TEXTS]


@pytest.fixture(scope="module")
def model() -> whence.Model:
    return build("bert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trial") / "run"


@pytest.fixture(scope="module")
def data() -> list[dict[str, Any]]:
    marked = records()
    for record in marked:
        words = [word for word in ("great", "bad", "fine") if word in record["text"]]
        record["rationale"] = words
    return marked


@pytest.fixture(scope="module")
def table(model: whence.Model, folder: Path, data: list[dict[str, Any]]) -> Evaluation:
    metrics = [*METRICS, "auprc"]
    return whence.evaluate(model, data, METHODS, metrics, out=folder, part=3, planted=0)


def test_a_mean_is_that_of_each_text_measured_alone(model: whence.Model, table: Evaluation) -> None:
    """The enemy: values of one text or method counted for another, or the wrong reading."""
    for metric, removal in (("comprehensiveness", "mask"), ("infidelity", "delete")):
        values = []
        for text in TEXTS:
            a = whence.explain(model, text, "gradient-x-input", evidence=False)
            game = whence.game(model, text, target=a.target, read="probability", removal=removal)
            values.append(whence.measure(game, a, metric, rankings=20).value)
        cell = table.column(metric, removal).cell("gradient-x-input")
        assert cell is not None
        assert cell.texts == len(TEXTS)
        assert cell.mean == pytest.approx(np.mean(values), abs=1e-6)


def test_every_metric_has_its_columns_and_the_control_its_row(table: Evaluation) -> None:
    names = [column.name for column in table.columns]
    assert names == [
        "comprehensiveness (mask)",
        "comprehensiveness (delete)",
        "sufficiency (mask)",
        "sufficiency (delete)",
        "infidelity (mask)",
        "infidelity (delete)",
        "compactness",
        "consistency",
        "auprc",
    ]
    for column in table.columns:
        assert [cell.method for cell in column.cells] == sorted(METHODS)
        assert column.random.texts == len(TEXTS)
        assert column.arrow == ("↓" if column.metric in ("sufficiency", "infidelity") else "↑")
    assert table.column("consistency").cell("occlusion").mean == 1.0  # it draws nothing
    assert table.removals == ("mask", "delete")


def test_a_method_is_marked_where_it_is_judged_by_its_own_removal(table: Evaluation) -> None:
    marked = {
        (column.name, cell.method)
        for column in table.columns
        for cell in column.cells
        if cell.built_in
    }
    assert marked == {(f"{m} (mask)", "occlusion") for m in METRICS[:3]}


def test_a_method_is_marked_where_its_baseline_is_the_removal(model: whence.Model) -> None:
    """The enemy: a path from the masked text is judged by masking, and nobody is told."""
    methods = {
        "integrated-gradients": {},
        "attention-arbiter": {},
        "gradient-l2": {},
    }
    table = whence.evaluate(
        model, TEXTS[:2], methods, "deletion", removals=["mask", "mean"], rankings=2, planted=0
    )
    marked = {(c.removal, cell.method) for c in table for cell in c.cells if cell.built_in}
    assert marked == {("mask", "integrated-gradients"), ("mean", "attention-arbiter")}


def test_robustness_never_stands_without_faithfulness(model: whence.Model) -> None:
    asked: dict[str, Any] = {"rankings": 2, "planted": 0, "removals": ["mask"]}
    one = {"robustness": {"neighbours": 1}}
    table = whence.evaluate(model, TEXTS[:2], "random", one, **asked)
    assert [column.metric for column in table] == ["comprehensiveness", "robustness"]
    table = whence.evaluate(model, TEXTS[:2], "random", one | {"deletion": {}}, **asked)
    assert {column.metric for column in table} == {"deletion", "robustness"}


def test_what_was_not_measured_and_copies_are_said(model: whence.Model) -> None:
    """The enemy: a column, or a method in it, that is missing in silence."""
    table = whence.evaluate(
        model,
        [TEXTS[0], TEXTS[1], TEXTS[0]],
        ["random", "gradient-l2"],
        {"consistency": {"by": "csi", "seeds": 1}, "auprc": {}},
        rankings=2,
        planted=0,
    )
    said = " ".join(table.notes)
    assert "so auprc could not be measured" in said
    assert (
        "consistency was not measured of these methods, on so many of 3 texts: random (3)" in said
    )
    assert "1 of 3 texts is a copy of another" in said


def test_random_scores_are_not_better_than_their_control(table: Evaluation) -> None:
    for column in table.columns:
        assert column.cell("random").verdict is not Verdict.BETTER


def test_the_same_call_goes_on_and_gives_the_same_table(
    model: whence.Model,
    folder: Path,
    data: list[dict[str, Any]],
    table: Evaluation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = sorted((folder / "parts").iterdir())
    parts[1].unlink()  # as if it had been killed there
    explained = []
    from whence.explaining.rows import ExplainRows

    real = ExplainRows.explained

    def counted(self: Any, rows: Any, keep_games: bool = False) -> Any:
        explained.append(len(rows))
        return real(self, rows, keep_games)

    monkeypatch.setattr(ExplainRows, "explained", counted)
    metrics = [*METRICS, "auprc"]
    again = whence.evaluate(model, data, METHODS, metrics, out=folder, part=3, planted=0)
    assert explained == [3]
    assert again.to_dict() == table.to_dict()
    assert sorted((folder / "parts").iterdir()) == parts
    with pytest.raises(InputError, match="was asked for something else"):
        whence.evaluate(model, data, METHODS, METRICS, out=folder, part=3, planted=0)


def test_it_survives_json_and_the_store(table: Evaluation, folder: Path, tmp_path: Path) -> None:
    saved = table.save(tmp_path / "table.json")
    read = whence.read(saved)
    assert isinstance(read, Evaluation)
    assert read.to_dict() == table.to_dict()
    assert json.loads(saved.read_text())["answer"][0].startswith("4 methods by 6 metrics on 7")
    assert evaluation_of(whence.open_run(folder)).to_dict() == table.to_dict()
    rows = whence.open_run(folder).table("values").num_rows
    assert rows == len(TEXTS) * (len(METHODS) + 1) * len(table.columns)


def test_a_method_of_another_kind_of_model_is_not_tried(model: whence.Model) -> None:
    """The exact methods are formulas of one model, and were refused once for each text."""
    every = request_of(model, None, evidence=False)
    names = {wish.method for wish in every.wishes}
    assert {"lime", "occlusion", "rollout"} <= names
    assert not names & {"lime-exact", "shapley-exact"}
    single = request_of(whence.load("single-layer"), None, evidence=False)
    assert {"lime-exact", "shapley-exact"} <= {wish.method for wish in single.wishes}


def test_the_model_is_left_as_it_was(model: whence.Model) -> None:
    before = copy.deepcopy(model.hf.state_dict())
    metrics = ["deletion", "implementation-invariance", "robustness", "model-randomisation"]
    whence.evaluate(model, TEXTS[:2], ["gradient-l2"], metrics, rankings=2, planted=0)
    for name, tensor in model.hf.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_bad_rows_are_failures_and_the_others_are_done(model: whence.Model) -> None:
    rows = [
        {"text": TEXTS[0], "rationale": ["great"]},
        {"text": "", "rationale": []},
        {"text": TEXTS[1], "rationale": ["splendid"]},
        {"text": None, "rationale": None},
        {"text": "food " * 600, "rationale": None},
    ]
    table = whence.evaluate(model, rows, ["gradient-l2"], ["auprc", "deletion"], planted=0)
    assert (table.texts, table.failed) == (1, 4)
    assert table.column("auprc").cells[0].texts == 1
    # would catch: reasons that are lost with the folder, as there is no out=
    reasons = ("is empty", "marks 'splendid'", "'text' is null", "1202 tokens")
    for row, (failure, reason) in enumerate(zip(table.failures, reasons, strict=True), start=1):
        assert failure.where.startswith(f"row {row}")
        assert reason in failure.reason
        assert f"{failure.where}: {failure.reason}" in " ".join(str(table).split())


def test_each_failure_says_its_row_and_why(model: whence.Model, tmp_path: Path) -> None:
    rows = [{"text": TEXTS[0], "rationale": ["splendid"]}, {"text": TEXTS[1], "rationale": None}]
    whence.evaluate(model, rows, ["gradient-l2"], ["deletion"], out=tmp_path / "run", planted=0)
    (failure,) = whence.open_run(tmp_path / "run").failures
    assert failure.row == 0
    assert "marks 'splendid', which does not stand in this text" in failure.message


def test_a_model_that_says_nan_is_a_failure(model: whence.Model) -> None:
    hf = copy.deepcopy(model.hf)
    with torch.no_grad():
        hf.get_input_embeddings().weight[model.encode("prices").ids[1]] = float("nan")
    poisoned = whence.load(hf, tokenizer=model.tokenizer)
    table = whence.evaluate(poisoned, TEXTS, ["gradient-l2"], ["deletion"], planted=0)
    assert table.failed == sum("prices" in text for text in TEXTS)
    assert table.texts == len(TEXTS) - table.failed


def test_marked_words_are_units_of_the_text_alone(model: whence.Model) -> None:
    from whence.explaining.trials import gold_units
    from whence.runs.data import Row

    passage = model.encode("the food is great", "great prices")
    gold = gold_units(passage, Row(0, "the food is great", rationale=((12, 17),)))
    assert gold is not None
    assert gold.tolist() == [False, False, False, True, False, False]
    assert gold_units(passage, Row(0, "the food is great")) is None


def test_results_of_others_are_tried_beside_the_methods(model: whence.Model) -> None:
    added = []
    for text in TEXTS:
        units = len(model.encode(text).units)
        scores = np.arange(units, dtype=float)
        added.append(whence.Attribution.from_scores(model, text, scores, method="by length"))
    table = whence.evaluate(model, TEXTS, ["occlusion"], ["deletion"], added=added, planted=0)
    assert table.methods == ("occlusion", "by length")
    assert table.column("deletion", "mask").cell("by length").texts == len(TEXTS)
    with pytest.raises(InputError, match="use the engine inline"):
        whence.evaluate(
            whence.load("sentiment"), TEXTS, ["occlusion"], ["deletion"], added=added, workers=2
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": []}, "there are no methods"),
        ({"methods": {}}, "there are no methods"),
        ({"removals": "mask"}, "removals= is a list of names"),
        ({"rankings": 0}, "at least one random ranking"),
        ({"metrics": []}, "there are no metrics"),
        ({"metrics": ["deletoin"]}, "Did you mean 'deletion'"),
    ],
)
def test_mistakes_are_said_before_anything_is_run(
    model: whence.Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((InputError, KeyError, ValueError), match=message):
        whence.evaluate(model, TEXTS, **{"methods": ["gradient-l2"], "planted": 0, **options})


def test_planted_truth_and_gauges_come_with_it(model: whence.Model, tmp_path: Path) -> None:
    texts = [f"{one} and {other}" for one in TEXTS for other in TEXTS[:4]]
    table = whence.evaluate(
        model, texts, ["gradient-l2"], ["compactness"], out=tmp_path / "run", planted=1
    )
    assert table.planted is not None
    assert {finding.method for finding in table.planted.findings} >= {"gradient-l2"}
    assert [gauge.removal for gauge in table.gauges] == ["mask", "delete"]
    few = whence.evaluate(model, TEXTS[:3], ["gradient-l2"], ["compactness"], planted=0)
    assert few.gauges == ()
    assert "was not measured" in few.notes[0]


def test_methods_that_do_not_fit_the_planted_models_cost_no_table(tmp_path: Path) -> None:
    # would catch: an error after all texts are done, and no table
    model, out = whence.load("single-layer"), tmp_path / "run"
    texts = ["a moving and funny film", "not bad at all"]
    asked: dict[str, Any] = {"metrics": ["compactness"], "rankings": 2}
    both = whence.evaluate(model, texts, ["lime-exact", "random"], planted=1, **asked)
    assert both.planted is not None
    assert list(both.planted.skipped) == ["lime-exact"]
    for _ in range(2):
        alone = whence.evaluate(model, texts, ["lime-exact"], planted=1, out=out, **asked)
        assert alone.planted is None
        assert alone.column("compactness").cells[0].texts == 2
        (note,) = [note for note in alone.notes if "truth" in note]
        assert note.startswith("No method was tried where the truth is known: closed forms exist")


@pytest.mark.slow
def test_planted_truth_is_tried_anew_on_another_number_of_texts(tmp_path: Path) -> None:
    model = whence.load("sentiment")
    asked: dict[str, Any] = {"metrics": ["compactness"], "rankings": 2, "out": tmp_path}
    for texts in (1, 2, 10_000):
        table = whence.evaluate(model, ["not bad"], ["random"], planted=texts, **asked)
        assert table.planted is not None
        if texts < 10_000:
            assert {one.texts for one in table.planted.mechanisms} == {texts}
    # all that there are: nothing to be tried again
    before = (tmp_path / "planted.json").stat().st_mtime_ns
    whence.evaluate(model, ["not bad"], ["random"], planted=20_000, **asked)
    assert (tmp_path / "planted.json").stat().st_mtime_ns == before


# ---------------------------------------------------------------------- memory

HOLES = """
import ctypes
from pathlib import Path

import whence
from tests.families import build
from whence.trace.memory import M_MMAP_THRESHOLD

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
model, texts = build("bert"), ["great food", "bad food"]


def resident():
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


def evaluate():
    whence.evaluate(model, texts, ["gradient-l2"], ["deletion"], rankings=2, planted=0)


evaluate()
library.mallopt(M_MMAP_THRESHOLD, 32 * 2**20)
blocks = [library.malloc(2**20) for _ in range(64)]
for block in blocks:
    ctypes.memset(block, 1, 2**20)
for block in blocks[::2]:
    library.free(block)
full = resident()
evaluate()
print(full - resident())
"""


@pytest.mark.slow  # a process; trace/test_memory.py tries the same of a trace at once
@pytest.mark.skipif(not can_be_held(), reason="another C library")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no resident memory to read")
def test_holes_that_texts_leave_in_the_heap_are_given_back() -> None:
    """32 MB of holes between blocks that stay; they would be kept, and more with each new text.

    In a process of its own: the setting by which blocks come to lie in the heap stays.
    """
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) > 16 * 2**20
