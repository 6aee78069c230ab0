"""Occlusion: an additive game gives its coefficients back, and windows are what their definition
says.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whence
from tests.games.tables import Table
from whence.methods.occlusion import Occlusion, windows


def by_definition(game: Table, window: int, stride: int) -> np.ndarray:
    """Slowly: every start in every text, then for each unit the mean over the windows that it is
    in.
    """
    parts = list(game.units.parts)
    holds: list[set[int]] = []
    for part in sorted(set(parts)):
        units = [u for u, p in enumerate(parts) if p == part]
        last = max(len(units) - window, 0)
        starts = [s for s in range(len(units)) if s % stride == 0 and s <= last]
        holds += [
            set(units[s : s + window]) for s in (starts if last in starts else [*starts, last])
        ]
    falls = [game.full - float(game([[u not in w for u in range(game.size)]])[0]) for w in holds]
    return np.array(
        [
            np.mean([f for f, w in zip(falls, holds, strict=True) if u in w])
            for u in range(game.size)
        ]
    )


@given(st.integers(1, 12), st.integers(0, 10**6), st.data())
def test_scores_are_the_definition(d: int, seed: int, data: st.DataObject) -> None:
    first, window = data.draw(st.integers(1, d)), data.draw(st.integers(1, 14))
    stride = data.draw(st.integers(1, window))
    rng = np.random.default_rng(seed)
    linear, pairs = rng.normal(size=d), rng.normal(size=(d, d))
    game = Table(
        d, lambda z: z @ linear + ((z @ pairs) * z).sum(1), [0] * first + [1] * (d - first)
    )
    np.testing.assert_allclose(
        Occlusion(window=window, stride=stride)(game).units,
        by_definition(game, window, stride),
        atol=1e-9,
    )


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=10), st.floats(-5, 5))
def test_an_additive_game_gives_its_coefficients(coefficients: list[float], shift: float) -> None:
    w = np.array(coefficients)
    found = Occlusion()(Table(len(w), lambda z: z @ w + shift))
    np.testing.assert_allclose(found.units, w, atol=1e-12)
    assert found.standard_error is None


def test_neighbours_share_what_a_window_takes() -> None:
    game = Table(4, lambda z: z @ np.array([0.0, 6.0, 0.0, 0.0]))
    np.testing.assert_allclose(Occlusion(window=2)(game).units, [6, 6, 3, 0])


def test_what_two_units_do_together_needs_a_window() -> None:
    either = Table(
        4, lambda z: (z[:, 1] | z[:, 2]).astype(float)
    )  # each stands in for the other, so neither is missed alone
    assert not Occlusion()(either).units.any()
    assert Occlusion(window=2)(either).units[1:3].min() > 0


@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 25), st.data())
def test_every_unit_is_in_a_window_of_its_own_text(
    first: int, second: int, window: int, data: st.DataObject
) -> None:
    parts = np.array([0] * first + [1] * second)
    removed = windows(parts, window, data.draw(st.integers(1, window)))
    assert removed.any(0).all()
    assert len(np.unique(removed, axis=0)) == len(removed)
    for row in removed:
        units = np.flatnonzero(row)
        assert len(set(parts[units])) == 1
        assert (np.diff(units) == 1).all()
        assert len(units) == min(window, int((parts == parts[units[0]]).sum()))


def test_one_unit_alone() -> None:
    assert Occlusion(window=3)(Table(1, lambda z: 2.0 * z[:, 0] + 1)).units.tolist() == [2.0]


@pytest.mark.parametrize(
    ("given", "says"),
    [({"window": 0}, "window must be"), ({"stride": 2}, "stride"), ({"stride": 0}, "stride")],
)
def test_settings_that_leave_units_out_are_refused(given: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Occlusion(**given)


def test_on_a_model_the_score_is_the_fall_of_the_target() -> None:
    model = whence.load("sentiment")
    game = whence.game(model, "the service is not bad", target="positive", removal="delete")
    found = Occlusion(removal="delete")(game)
    without = whence.game(model, "the service is bad", target="positive")
    assert found.units[3] == pytest.approx(game.full - without.full, abs=1e-4)
