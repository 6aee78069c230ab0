"""The straight path from a baseline to a text: what the target does along it.

Places of the path are numbers from 0, the baseline, to 1, the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.trace.trace import Trace

PER_PANEL = 4  # nodes: exact for polynomials up to degree 7
JOLTS = 8  # copies of a point, each moved by the last digit, that show how a value rounds
DEPTH = 24  # bisections behind a jump: no float32 lies between its ends
LEVELS = 8  # the last bisections, over which a jump keeps its size and a slope does not
KEPT = 0.8  # of its size, that a jump keeps over them
RESOLVED = 0.75  # twice in a row no more than this is left after a bisection: it is a slope

Panel = tuple[float, float]


@dataclass(frozen=True)
class Jump:
    """A place where the target changes at once: between two places that are next to each other."""

    before: float
    after: float
    size: float


@dataclass(frozen=True)
class Steep:
    """Where a panel is steep: the places at which it was cut in halves on the way there."""

    places: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """A panel's part of the integral: for each token, and the slope of the target at its nodes."""

    tokens: Float[Tensor, " token"]
    slopes: Float[np.ndarray, " node"]


@dataclass(frozen=True, eq=False)
class Path:
    """The path of ask ``i`` of a trace, as the place where it starts and the way to the text."""

    trace: Trace
    i: int
    start: Float[Tensor, "token dim"]
    way: Float[Tensor, "token dim"]

    def values(self, places: Float[np.ndarray, " place"]) -> list[float]:
        """The target's value at places of the path."""
        return self.trace.values_at(self.i, self._points(places)).double().tolist()

    def parts(self, panels: Sequence[Panel]) -> list[Part]:
        """Each panel's part of the integral, by Gauss–Legendre nodes in it; all in one batch."""
        (parts,) = parts_of_all([self], panels)
        return parts

    def rounding(self, place: float) -> float:
        """By how much the value at a place is uncertain, as numbers have so many digits only.

        Each embedding is moved by its last digit, up or down; what the value does then, the
        rounding inside of the model does too.
        """
        x = self._points(np.array([place]))
        generator = torch.Generator().manual_seed(0)
        signs = 2 * torch.randint(2, (JOLTS, *x.shape[1:]), generator=generator) - 1
        last_digit = torch.finfo(x.dtype).eps
        moved = x * (1 + last_digit * signs.to(x))
        values = self.trace.values_at(self.i, moved).double()
        return float(values.std())

    def search(
        self, panel: Panel, part: Part, values: dict[float, float], least: float
    ) -> Jump | Steep:
        """What a panel misses: a jump of at least that size, or a slope; a value a bisection.

        The half is followed in which more of the change is not explained by the slopes at the
        panel's nodes. Of a jump all stays in one half, however short. Of a slope, however steep,
        each half has less in the end.
        """
        low, high = panel
        smooth = Antiderivative(panel, part.slopes)
        sizes: list[float] = []
        places = []
        for _ in range(DEPTH):
            middle = (low + high) / 2
            places.append(middle)
            (values[middle],) = self.values(np.array([middle]))
            left = values[middle] - values[low] - smooth.between(low, middle)
            right = values[high] - values[middle] - smooth.between(middle, high)
            if abs(left) >= abs(right):
                high = middle
            else:
                low = middle
            sizes.append(max(abs(left), abs(right)))
            if sizes[-1] < least or _is_a_slope(sizes):
                return Steep(tuple(places))
        if sizes[-1] < KEPT * sizes[-LEVELS]:
            return Steep(tuple(places))
        return Jump(low, high, values[high] - values[low])

    def _points(self, places: Float[np.ndarray, " place"]) -> Float[Tensor, "place token dim"]:
        return self.start + torch.from_numpy(places).to(self.way)[:, None, None] * self.way


def _is_a_slope(sizes: Sequence[float]) -> bool:
    if len(sizes) < 3:
        return False
    before, middle, last = sizes[-3:]
    return middle < RESOLVED * before and last < RESOLVED * middle


class Antiderivative:
    """The change along a panel that the slopes at its nodes foretell.

    >>> import numpy as np
    >>> nodes = (np.polynomial.legendre.leggauss(4)[0] + 1) / 2
    >>> round(Antiderivative((0.0, 1.0), 3 * nodes**2).between(0.5, 1.0), 6)
    0.875
    """

    def __init__(self, panel: Panel, slopes: Float[np.ndarray, " node"]) -> None:
        self.panel = panel
        node, _ = np.polynomial.legendre.leggauss(len(slopes))
        degree = len(slopes) - 1
        slope = np.polynomial.legendre.Legendre.fit(node, slopes, degree, domain=[-1, 1])
        self.change = slope.integ()

    def between(self, low: float, high: float) -> float:
        """The change between two places of the panel."""
        a, b = self.panel
        half = (b - a) / 2
        ends = (np.array([low, high]) - a) / half - 1
        before, after = self.change(ends)
        return float(half * (after - before))


def values_of_all(paths: Sequence[Path], places: Float[np.ndarray, " place"]) -> list[list[float]]:
    """The values of several targets at places of one path, which they share with its passes."""
    first = paths[0]
    asks = [path.i for path in paths]
    return first.trace.values_of_all(asks, first._points(places)).double().tolist()


def parts_of_all(paths: Sequence[Path], panels: Sequence[Panel]) -> list[list[Part]]:
    """Each panel's part of the integrals of several targets along one path."""
    node, weight = np.polynomial.legendre.leggauss(PER_PANEL)
    ends = np.array(panels)
    length = ends[:, 1:] - ends[:, :1]
    places = ends[:, :1] + length * (node + 1) / 2
    first = paths[0]
    weights = torch.from_numpy(length * weight / 2).to(first.way.device)
    points = first._points(places.ravel())
    slopes = first.trace.slopes_along([path.i for path in paths], points, first.way)
    parts = []
    for along in slopes.double().unflatten(1, places.shape):
        tokens = torch.einsum("pn,pnt->pt", weights, along)
        steepness = along.sum(-1).cpu().numpy()
        parts.append([Part(t, s) for t, s in zip(tokens, steepness, strict=True)])
    return parts
