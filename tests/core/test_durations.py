"""Times as people say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.core.durations import about, spoken

SIZES = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0}


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "under a second"),
        (0.99, "under a second"),
        (1.0, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (89.0, "1.5 min"),
        (126.4, "2 min"),
        (1501.0, "25 min"),
        (3569.0, "59 min"),
        (3571.0, "1 h"),
        (5400.0, "1.5 h"),
        (200_000.0, "2 days"),
    ],
)
def test_as_a_person_would(seconds: float, said: str) -> None:
    # would catch: 126.4 s as "2.1 min", 0.235 s as "235 ms", 59.6 s as "60 s"
    assert spoken(seconds) == said


@given(st.floats(1, 1e7))
def test_it_is_off_by_a_half_of_what_is_said_at_most(seconds: float) -> None:
    number, unit = spoken(seconds).split()
    step = 0.5 if unit in ("min", "h") and float(number.replace(",", "")) < 10 else 1.0
    said = float(number.replace(",", "")) * SIZES[unit]
    assert abs(said - seconds) <= 0.5 * step * SIZES[unit] * 1.05 + 0.5
    assert len(spoken(seconds)) <= len("under a second")


def test_a_guess_is_said_to_be_one() -> None:
    assert about(126.4) == "about 2 min"
    assert about(0.2) == "under a second"
