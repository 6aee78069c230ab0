"""A comparison: its methods by name, its table, its agreement, and the way to a file and back."""

from __future__ import annotations

import pytest

from tests.views.conftest import compared, judged
from whence.core.comparison import Comparison
from whence.core.errors import LoadError, UnknownName
from whence.core.reading import read

TEXT = "the food is great but the service is not bad"


def test_methods_by_name():
    c = compared(TEXT, 3)
    assert list(c) == ["attention-max", "attention-mean", "gradient-l1"]
    assert c["gradient-l1"].method == "gradient-l1"
    with pytest.raises(UnknownName, match="Did you mean 'gradient-l1'"):
        c["gradient-l"]


def test_a_row_for_each_unit():
    c = compared(TEXT, 2)
    rows = c.table()
    assert [row["unit"] for row in rows] == TEXT.split()
    assert rows[3]["attention-max"] == c["attention-max"].scores[3]


def test_agreement_is_in_the_order_of_the_methods():
    c = compared(TEXT)
    g = c.agreement(k=3)
    assert g.methods == tuple(c)
    assert (g.k, g.chance) == (3, 0.3)
    assert c.agreement(measure="kendall").measure == "kendall"


def test_evidence_survives_a_file(tmp_path):
    c = judged(compared(TEXT, 3))
    back = read(c.save(tmp_path / "c.json"))
    assert isinstance(back, Comparison)
    assert back.to_dict() == c.to_dict()
    assert back["gradient-l1"].evidence.trial("mask").curves.steps[0] == 0


def test_damaged_files_are_said_to_be():
    with pytest.raises(LoadError, match="no 'schema' number"):
        Comparison.from_dict({})
    with pytest.raises(LoadError, match="damaged"):
        Comparison.from_dict({"schema": 1, "attributions": {}})
