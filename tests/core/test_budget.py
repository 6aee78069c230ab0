"""Budgets: times and passes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.core.budget import Budget
from whence.core.durations import precise
from whence.core.errors import SettingsError


@pytest.mark.parametrize(
    ("given", "seconds", "passes"),
    [
        ("30s", 30.0, None),
        ("30 s", 30.0, None),
        ("1.5 min", 90.0, None),
        ("2MIN", 120.0, None),
        ("1h", 3600.0, None),
        (" 500 ", None, 500),
        (500, None, 500),
        ("500 passes", None, 500),
        ("full", None, None),
    ],
)
def test_what_people_write(given: str | int, seconds: float | None, passes: int | None) -> None:
    assert Budget.of(given) == Budget(seconds, passes)


@pytest.mark.parametrize("given", ["", "soon", "0", 0, "0s", "-3s", "1.5", "3 days", "nan", True])
def test_what_is_no_budget(given: str | int) -> None:
    with pytest.raises(SettingsError, match=r"'30s' or '2min'.*'500 passes'.*'full'"):
        Budget.of(given)


@given(st.integers(1, 10**9))
def test_words_of_a_number_of_passes_are_read_back(passes: int) -> None:
    budget = Budget.of(passes)
    assert Budget.of(str(budget).replace(",", "")) == budget


@given(st.floats(1e-6, 1e6))
def test_a_precise_time_is_within_a_twentieth(seconds: float) -> None:
    number, unit = precise(seconds).split()
    size = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}[unit]
    assert float(number.replace(",", "")) * size == pytest.approx(seconds, rel=0.051)
