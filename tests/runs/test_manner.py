"""How a run is carried out: what is asked for must fit together."""

from __future__ import annotations

from typing import Any

import pytest

from whence.core.errors import WhenceError
from whence.runs.manner import Manner


@pytest.mark.parametrize(
    ("asked", "engine"),
    [
        ({}, "inline"),
        ({"workers": 1}, "inline"),
        ({"workers": 2}, "processes"),
        ({"engine": "processes", "workers": 1}, "processes"),
        ({"engine": "ray", "address": "auto"}, "ray"),
    ],
)
def test_the_engine_follows_from_the_workers_unless_it_is_named(
    asked: dict[str, Any], engine: str
) -> None:
    manner = Manner(**asked)
    assert manner.engine == engine
    assert manner.is_inline == (engine == "inline")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"workers": 0}, "at least one worker, not 0"),
        ({"engine": "dask"}, "no engine named 'dask'"),
        ({"engine": "inline", "workers": 3}, "3 workers were asked for"),
        ({"workers": 2, "address": "auto"}, "the engine is processes"),
    ],
)
def test_what_does_not_fit_together_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(WhenceError, match=said):
        Manner(**asked)
