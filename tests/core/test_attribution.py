"""Attributions: what is saved is what is read, to the last bit; what cannot be read says why."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whence
from tests.core.test_passage import passage, rich
from whence.core.attribution import SCHEMA, Attribution, Cost, Error
from whence.core.errors import InputError, LoadError
from whence.core.evidence import Evidence, Verdict
from whence.core.provenance import Provenance
from whence.core.reading import read
from whence.core.target import Target
from whence.core.units import Units

PROVENANCE = Provenance(
    "m",
    "BertForSequenceClassification",
    "0123",
    None,
    "float32",
    "cpu",
    "sdpa",
    {"whence": "0.1.0"},
)


def attribution(scores: Any = (0.1, -0.2), **more: Any) -> Attribution:
    basis: dict[str, Any] = {
        "passage": passage([2] * len(scores)),
        "scores": np.array(scores),
        "target": Target("good", against="bad", index=1, against_index=0),
        "value": 0.1 + 0.2,
        "method": "lime",
        "version": 3,
        "settings": {"samples": 1000, "layer": None, "width": 0.1},
        "seed": 7,
        "signed": True,
        "cost": Cost(3, 2, 0.1, 4096, True),
        "provenance": PROVENANCE,
    }
    return Attribution(**{**basis, **more})


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(FINITE, min_size=1, max_size=6), FINITE, st.data())
def test_an_attribution_survives_json_text_bit_by_bit(
    scores: list[float], value: float, data: st.DataObject
) -> None:
    # the enemy rounds: subnormal, huge and negative zero must come back with the same bits
    spread = data.draw(st.none() | st.lists(FINITE, min_size=len(scores), max_size=len(scores)))
    error = Error(None if spread is None else np.array(spread), value, "a note")
    a = attribution(
        scores,
        value=value,
        error=error,
        evidence=Evidence(
            "a measure", Verdict.BETTER, value=value, interval=(min(0.1, value), max(0.1, value))
        ),
        prediction={"good": 0.9},
    )
    back = Attribution.from_dict(json.loads(json.dumps(a.to_dict(), allow_nan=False)))
    assert back == a
    assert back.scores.tobytes() == np.array(scores).tobytes()
    assert math.copysign(1, back.value) == math.copysign(1, value)
    assert back.error is not None
    if spread is not None:
        assert back.error.standard_error is not None
        assert back.error.standard_error.tobytes() == np.array(spread).tobytes()


def test_saved_and_read_again_it_is_equal_also_with_a_rich_passage_and_odd_settings(
    tmp_path: Path,
) -> None:
    p = rich()
    odd = {
        "layers": (1, 2),
        "count": np.int64(3),
        "weights": np.array([0.5]),
        "nested": {"a": (None, "é\u2028\x00")},
    }
    evidence = Evidence("a measure", Verdict.SAME, own=Evidence("another", None, p=0.1))
    a = attribution([1.0] * len(p.units), passage=p, settings=odd, evidence=evidence)
    path = a.save(tmp_path / "a.json")
    back = whence.read(path)
    assert back == a
    assert back.to_dict() == a.to_dict()
    assert back.units == p.units
    assert back.settings["nested"]["a"][1] == "é\u2028\x00"
    assert whence.read(str(path)).passage.reply == p.reply


@pytest.mark.parametrize(
    "change",
    [
        {"value": 1.0},
        {"seed": 8},
        {"method": "x"},
        {"error": Error(None, 0.1)},
        {"cost": Cost(1)},
        {"scores": (0.1, -0.3)},
    ],
)
def test_attributions_that_differ_in_one_thing_are_not_equal(change: dict[str, Any]) -> None:
    assert attribution(**change) != attribution()


def test_scores_cannot_be_changed_and_do_not_follow_the_callers_array() -> None:
    mine = np.array([1.0, 2.0])
    a = attribution(mine)
    mine[0] = 9
    assert a.scores.tolist() == [1.0, 2.0]  # the enemy keeps the caller's array
    with pytest.raises(ValueError, match="read-only"):
        a.scores[0] = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.value = 3  # type: ignore[misc]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused_by_the_methods_name(bad: float) -> None:
    with pytest.raises(InputError, match="method 'lime' gave a score that is not finite"):
        attribution([bad, 1.0])


def test_scores_and_standard_errors_are_one_per_unit() -> None:
    with pytest.raises(InputError, match="3 scores for 2 units"):
        attribution([1.0, 2.0, 3.0], passage=passage([1, 1]))
    with pytest.raises(InputError, match="1 standard errors for 2 scores"):
        attribution([1.0, 2.0], error=Error(np.zeros(1)))


def test_the_ranking_is_by_size_for_signed_scores_with_ties_in_reading_order() -> None:
    scores = [0.5, -2.0, 0.5, 1.0]
    assert attribution(scores).ranking().tolist() == [1, 3, 0, 2]
    assert attribution(scores, signed=False).ranking().tolist() == [3, 0, 2, 1]
    assert [s for _, s in attribution(scores).top(2)] == [-2.0, 1.0]


def test_a_newer_schema_is_refused_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**attribution().to_dict(), "schema": SCHEMA + 1}))
    with pytest.raises(
        LoadError, match=f"schema {SCHEMA + 1}; this whence reads up to {SCHEMA}. Update whence"
    ):
        read(path)


def without(*keys: str) -> dict[str, Any]:
    return {k: v for k, v in attribution().to_dict().items() if k not in keys}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "is not JSON"),
        ('{"schema": 1', "is not JSON"),
        ("\x00\x01", "is not JSON"),
        ("[1, 2]", "holds no attribution but a list"),
        ("3", "holds no attribution but a int"),
        ("{}", "no 'schema' number"),
        (json.dumps(without("scores")), "damaged: 'scores' is missing"),
        (json.dumps(without("passage")), "damaged: 'passage' is missing"),
        (
            json.dumps({**attribution().to_dict(), "scores": [1.0]}),
            "damaged: scores: expected 2 entries, got 1",
        ),
        (
            json.dumps({**attribution().to_dict(), "scores": ["x", "y"]}),
            "damaged: scores[0]: expected",
        ),
        (json.dumps({**attribution().to_dict(), "scores": None}), "damaged"),
        (json.dumps({**attribution().to_dict(), "target": {"labell": 1}}), "no field 'labell'"),
        (json.dumps({**attribution().to_dict(), "passage": [1]}), "damaged"),
        (
            json.dumps({**attribution().to_dict(), "kind": "comparison"}),
            "is damaged: 'attributions' is missing",
        ),
    ],
)
def test_a_damaged_file_says_what_is_wrong_with_it(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(LoadError) as caught:
        read(path)
    assert message in str(caught.value)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no file"):
        read(tmp_path / "none.json")
    with pytest.raises(LoadError, match="cannot read"):
        read(tmp_path)
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(LoadError, match="is not JSON"):
        read(tmp_path / "latin.json")
    for path in (tmp_path, tmp_path / "none" / "a.json", Path("/proc/a.json")):
        with pytest.raises(InputError, match="cannot write"):
            attribution().save(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_path_is_an_input_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        attribution().save(tmp_path / "a.json")


@pytest.mark.parametrize(
    "bad", [{"value": math.nan}, {"error": Error(None, math.inf)}, {"detail": {"a": object()}}]
)
def test_what_json_cannot_hold_is_refused_before_the_file_is_touched(
    tmp_path: Path, bad: dict[str, Any]
) -> None:
    path = tmp_path / "a.json"
    path.write_text("precious")
    with pytest.raises(InputError, match="cannot be written as JSON"):
        attribution(**bad).save(path)
    assert path.read_text() == "precious"


def test_features_have_units_and_no_passage(tmp_path: Path) -> None:
    units = Units("feature", ("praise", "negation", "plot"))
    a = attribution((0.5, -0.2, 0.1), passage=None, units=units)
    assert a.names == ("praise", "negation", "plot")
    assert a.top(1) == [("praise", 0.5)]
    stored = a.to_dict()
    assert "passage" not in stored
    back = whence.read(a.save(tmp_path / "a.json"))
    assert back == a
    assert isinstance(back.units, Units)  # the enemy reads bare strings back
    assert back.units.kind == "feature"
    with pytest.raises(InputError, match="needs units"):
        attribution((0.5,), passage=None)
    with pytest.raises(InputError, match="2 scores for 3 units"):
        attribution((0.5, 0.1), passage=None, units=units)


def test_core_needs_numpy_only() -> None:
    code = (
        "import importlib, pkgutil, sys, whence.core\n"
        "for module in pkgutil.walk_packages(whence.core.__path__, 'whence.core.'):\n"
        "    importlib.import_module(module.name)\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'pydantic', 'rich', 'typer', 'scipy'}\n"
        "heavy = (heavy | {'sklearn'}) & set(sys.modules)\n"
        "assert 'numpy' in sys.modules and 'whence.core.passage' in sys.modules\n"
        "print(sorted(heavy), end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]"
