"""Each epoch has every row once, in another order, and a step always has the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.features.small import cache_of
from whence.core.errors import InputError
from whence.features import order
from whence.features.order import Rows


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shards are shuffled together, so that an epoch has several groups."""
    monkeypatch.setattr(order, "BYTES_AT_ONCE", 1)


def sorted_rows(rows: torch.Tensor) -> torch.Tensor:
    return torch.tensor(sorted(rows.tolist()))


def test_an_epoch_has_every_row_once(tmp_path: Path) -> None:
    # would catch: rows lost or doubled where a batch lies in two groups of shards
    cache = cache_of(tmp_path)
    every = torch.cat([cache.states(number) for number in range(len(cache.shards))])
    rows = Rows(cache, batch=cache.rows // 7)
    assert rows.shards_at_once == 2 < len(cache.shards)
    batches = [rows.at(step) for step in range(rows.steps_of_an_epoch)]
    seen = torch.cat(batches)
    left_over = cache.rows - len(seen)
    assert 0 <= left_over < rows.batch
    table = {tuple(row) for row in every.tolist()}
    assert len({tuple(row) for row in seen.tolist()} & table) == len(seen.unique(dim=0))
    if left_over == 0:
        assert torch.equal(sorted_rows(seen), sorted_rows(every))


def test_a_batch_of_all_rows_is_all_rows(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    every = torch.cat([cache.states(number) for number in range(len(cache.shards))])
    rows = Rows(cache, batch=cache.rows)
    first, second = rows.at(0), rows.at(1)
    assert torch.equal(sorted_rows(first), sorted_rows(every))
    assert torch.equal(sorted_rows(second), sorted_rows(every))
    assert not torch.equal(first, second)  # another epoch, another order


def test_a_step_has_the_same_rows_wherever_a_training_begins(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    rows = Rows(cache, batch=50)
    in_order = [rows.at(step) for step in range(20)]
    for step in (19, 3, 11, 0):
        assert torch.equal(Rows(cache, batch=50).at(step), in_order[step])
    assert not torch.equal(Rows(cache, batch=50, seed=1).at(0), in_order[0])


def test_neighbours_are_not_left_together(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    batch = Rows(cache, batch=50).at(0)
    assert not torch.equal(batch, cache.states(0)[:50])


def test_fewer_tokens_than_a_batch_are_refused(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    with pytest.raises(InputError, match=f"has {cache.rows} tokens to learn from, and a batch has"):
        Rows(cache, batch=cache.rows + 1)
