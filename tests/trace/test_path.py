"""Paths: jumps, steep stretches and rounding are told apart, on targets whose shape is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from whence.trace.integral import Integral
from whence.trace.path import PER_PANEL, Antiderivative, Jump, Part, Path, Steep

Shape = Callable[[np.ndarray], np.ndarray]
WHOLE = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Known(Path):
    """A path of one token, along which the target and its slope are known functions."""

    value: Shape = lambda x: x
    slope: Shape = np.ones_like

    def values(self, places: np.ndarray) -> list[float]:
        return self.value(np.asarray(places)).tolist()

    def parts(self, panels: list[tuple[float, float]]) -> list[Part]:  # type: ignore[override]
        node, weight = np.polynomial.legendre.leggauss(PER_PANEL)
        parts = []
        for a, b in panels:
            slopes = self.slope(a + (b - a) * (node + 1) / 2)
            parts.append(Part(torch.tensor([(b - a) / 2 * (weight * slopes).sum()]), slopes))
        return parts

    def rounding(self, place: float) -> float:
        return 1e-9


def known(value: Shape, slope: Shape) -> Known:
    nothing: Tensor = torch.zeros(1, 1)
    return Known(None, 0, nothing, nothing, value=value, slope=slope)  # type: ignore[arg-type]


def search(path: Known, least: float = 1e-3) -> Jump | Steep:
    values = dict(zip(WHOLE, path.values(np.array(WHOLE)), strict=True))
    return path.search(WHOLE, path.parts([WHOLE])[0], values, least)


def with_a_jump(x: np.ndarray) -> np.ndarray:
    return x**3 + 0.5 * (x > 0.3)


def cubic_slope(x: np.ndarray) -> np.ndarray:
    return 3 * x**2


def test_a_jump_is_found_where_it_is_and_with_its_size() -> None:
    found = search(known(with_a_jump, cubic_slope))
    assert isinstance(found, Jump)
    assert found.before <= 0.3 <= found.after
    assert found.after - found.before < 1e-7
    assert found.size == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-5])
def test_a_steep_slope_is_no_jump(width: float) -> None:
    # would catch: a jump that is any change within 1/4096 of a panel, as RMS norms make from zero
    def value(x: np.ndarray) -> np.ndarray:
        return np.tanh((x - 0.3) / width)

    def slope(x: np.ndarray) -> np.ndarray:
        return (1 - value(x) ** 2) / width

    found = search(known(value, slope))
    assert isinstance(found, Steep)
    if width < 1e-2:
        # the last places are as near to the stretch as it is long
        assert abs(found.places[-1] - 0.3) < 100 * width


def test_a_jump_is_cut_out_and_the_rest_adds_up() -> None:
    # would catch: nodes spent on halving what no halving mends, and a gap of the jump's size
    path = known(with_a_jump, cubic_slope)
    values = dict(zip(WHOLE, path.values(np.array(WHOLE)), strict=True))
    integral = Integral(path, values, {WHOLE: path.parts([WHOLE])[0]})
    assert integral.missed() == pytest.approx(1 / 3)
    assert integral.look(0.01, searches=1, max_nodes=64) == 1
    assert integral.missed() < 1e-6
    assert float(integral.tokens.sum()) == pytest.approx(1.0, abs=1e-6)
    assert integral.smooth_change == pytest.approx(1.0, abs=1e-6)
    assert integral.change == pytest.approx(1.5)
    assert integral.nodes == 3 * PER_PANEL


def test_a_look_never_takes_more_nodes_than_are_allowed() -> None:
    def value(x: np.ndarray) -> np.ndarray:
        return np.tanh((x - 0.3) / 1e-5)

    def slope(x: np.ndarray) -> np.ndarray:
        return (1 - value(x) ** 2) / 1e-5

    path = known(value, slope)
    values = dict(zip(WHOLE, path.values(np.array(WHOLE)), strict=True))
    for allowed in (12, 24, 400):
        integral = Integral(path, values, {WHOLE: path.parts([WHOLE])[0]})
        integral.look(0.01, searches=1, max_nodes=allowed)
        assert integral.nodes <= allowed
    assert integral.nodes > PER_PANEL


def test_what_rounding_leaves_over_is_called_rounding() -> None:
    path = known(lambda x: x + 2e-9 * np.sign(np.sin(1e9 * x)), np.ones_like)
    values = dict(zip(WHOLE, path.values(np.array(WHOLE)), strict=True))
    integral = Integral(path, values, {WHOLE: path.parts([WHOLE])[0]}, rounding=1e-9)
    assert integral.stopped("spent").stop == "rounding"
    coarse = Integral(path, values, {WHOLE: path.parts([WHOLE])[0]}, rounding=1e-12)
    coarse.values[1.0] += 0.5
    assert coarse.stopped("spent").stop == "spent"


def test_the_change_that_slopes_foretell_is_that_of_their_polynomial() -> None:
    node, _ = np.polynomial.legendre.leggauss(4)
    places = 2 + (node + 1) / 2 * 3
    foretold = Antiderivative((2.0, 5.0), 4 * places**3)
    assert foretold.between(2.5, 4.0) == pytest.approx(4.0**4 - 2.5**4)
