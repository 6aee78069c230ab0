"""Budgets in bytes, and the refusal."""

from __future__ import annotations

import pytest

from whence.core.errors import SettingsError, TooLarge
from whence.trace import memory
from whence.trace.memory import Forecast, as_bytes, available, check


@pytest.mark.parametrize(
    ("given", "expected"),
    [("2GB", 2 * 10**9), ("1.5 MB", 1_500_000), ("3kb", 3000), (4096, 4096), ("2 GiB", 2 * 10**9)],
)
def test_sizes(given: str | int, expected: int) -> None:
    assert as_bytes(given) == expected


@pytest.mark.parametrize("wrong", ["", "much", "-2GB", "0", "2XB"])
def test_no_size(wrong: str) -> None:
    with pytest.raises(SettingsError, match="2GB"):
        as_bytes(wrong)


def test_the_environment_and_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHENCE_MEMORY", "3MB")
    assert as_bytes(None) == 3 * 10**6
    monkeypatch.delenv("WHENCE_MEMORY")
    assert available() > 0
    # what is free changes while others work: the share is of one reading
    monkeypatch.setattr(memory, "available", lambda: 5 * 10**9)
    assert as_bytes(None) == 4 * 10**9


def test_over_the_budget_is_refused_with_the_options() -> None:
    need = Forecast(3 * 10**9, 10**9)
    check(need, "4GB", "less")
    with pytest.raises(
        TooLarge, match=r"about 4 GB .* budget is 3\.9 GB\. Options: less"
    ) as refused:
        check(need, "3.9GB", "less")
    assert isinstance(refused.value, MemoryError)
