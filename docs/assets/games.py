"""Draw the pictures of LIME, of the Shapley family and of the surrogate, from the real program.

``python docs/assets/games.py``. Plain SVG, no library. It takes a minute and a half on one free
core: 2^14 passes for the surrogate's truth, and a hundred fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import whence
from whence.games.estimating import Sample, estimate
from whence.games.functionals import banzhaf, beta_shapley, lime, shapley
from whence.games.game import Game
from whence.games.sampling import all_masks, draw_pairs, even_law
from whence.models.model import Model

HERE = Path(__file__).parent
SHORT = "the service is not bad"
MIDDLE = "the food is great but the service is not bad"
LONG = "the food is great but the service is not bad and prices are fine"
WIDE, HIGH = 400, 250  # of one panel
LEFT, RIGHT, TOP, BOTTOM = 44, 66, 26, 40
INK, SOFT, PALE = "#333", "#999", "#e4dff0"
COLOURS = ("#7e57c2", "#ef6c00", "#00897b", "#c2185b")
# the share whose bar would reach the top: one for all pictures, so that their bars can be compared
TALLEST = 0.3
DRAWS = 10  # samples of each size, whose errors are averaged

Scale = Callable[[float], float]


@dataclass(frozen=True)
class Line:
    """One curve, its name written at its end."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves over common axes; ``bars`` stand behind them, on a scale of their own."""

    title: str
    below: str
    lines: Sequence[Line]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    is_log: tuple[bool, bool] = (False, False)
    bars: Sequence[float] = ()  # at 0, 1, …


def draw(name: str, panels: Sequence[Panel]) -> None:
    """The panels side by side, as one SVG."""
    wide = WIDE * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {HIGH}" width="{wide}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{HIGH}" fill="#fff"/>',
    ]
    for i, panel in enumerate(panels):
        parts.append(f'<g transform="translate({WIDE * i},0)">\n{_panel(panel)}\n</g>')
    parts.append("</svg>")
    (HERE / f"{name}.svg").write_text("\n".join(parts) + "\n", encoding="utf-8")


def _panel(p: Panel) -> str:
    every_x = [*np.concatenate([line.x for line in p.lines]), *(t for t, _ in p.x_ticks)]
    every_y = [*np.concatenate([line.y for line in p.lines]), *(t for t, _ in p.y_ticks)]
    x_is_log, y_is_log = p.is_log
    floor = HIGH - BOTTOM
    across = _scale(every_x, LEFT, WIDE - RIGHT, x_is_log, room=bool(p.bars))
    up = _scale(every_y, floor, TOP, y_is_log)

    middle = (LEFT + WIDE - RIGHT) / 2
    out = [_text(middle, 14, p.title, bold=True), _text(middle, HIGH - 6, p.below)]
    if p.bars:
        out += _bars(p.bars, across, floor)
    for at, label in p.y_ticks:
        is_zero = not y_is_log and at == 0
        colour = SOFT if is_zero else "#eee"
        out.append(f'<path d="M{LEFT} {up(at):.1f}H{WIDE - RIGHT}" stroke="{colour}"/>')
        out.append(_text(LEFT - 6, up(at) + 4, label, "end"))
    out += [_text(across(at), floor + 15, label) for at, label in p.x_ticks]
    out += [_curve(line, across, up) for line in p.lines]

    named = [line for line in p.lines if line.name]
    heights = _apart([up(line.y[-1]) for line in named])
    for line, height in zip(named, heights, strict=True):
        out.append(_text(WIDE - RIGHT + 5, height + 4, line.name, "start", line.colour))
    return "\n".join(out)


def _bars(shares: Sequence[float], across: Scale, floor: float) -> list[str]:
    wide = (across(1.0) - across(0.0)) * 0.7
    bars = []
    for k, share in enumerate(shares):
        tall = share / TALLEST * (floor - TOP)
        corner = f'x="{across(k) - wide / 2:.1f}" y="{floor - tall:.1f}"'
        bars.append(f'<rect {corner} width="{wide:.1f}" height="{tall:.1f}" fill="{PALE}"/>')
    return bars


def _curve(line: Line, across: Scale, up: Scale) -> str:
    pairs = zip(line.x, line.y, strict=True)
    points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in pairs)
    dash = ' stroke-dasharray="2 4"' if line.dashed else ""
    stroke = f'stroke="{line.colour}" stroke-width="2"{dash}'
    return f'<polyline points="{points}" fill="none" {stroke}/>'


def _scale(
    values: Sequence[float], low: float, high: float, is_log: bool, room: bool = False
) -> Scale:
    """Where a value is drawn: the least at ``low``, the greatest at ``high``.

    With ``room`` half a step is left free at both ends.
    """
    least, greatest = min(values) - 0.5 * room, max(values) + 0.5 * room
    if is_log:
        a, b = np.log(least), np.log(greatest)
        return lambda v: low + (np.log(v) - a) / (b - a) * (high - low)
    return lambda v: low + (v - least) / (greatest - least) * (high - low)


def _apart(heights: Sequence[float], least: float = 13.0) -> list[float]:
    """The heights of labels, pushed down where two would touch."""
    pushed = [0.0] * len(heights)
    last = -np.inf
    for i in np.argsort(heights).tolist():
        last = max(heights[i], last + least)
        pushed[i] = last
    return pushed


def _text(
    x: float, y: float, text: str, anchor: str = "middle", fill: str = INK, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} fill="{fill}"{weight}>{text}</text>'


def joining(v: Game) -> dict[int, list[float]]:
    """By how much the target rises when each unit joins k others, for k = 0 … d − 1.

    It is the mean over all sets of k others.
    """
    masks = all_masks(v.size)
    values, size = v(masks), masks.sum(1)

    def rise(j: int, k: int) -> float:
        with_it = masks[:, j] & (size == k + 1)
        without = ~masks[:, j] & (size == k)
        return float(values[with_it].mean() - values[without].mean())

    rises = {}
    for j in range(v.size):
        rises[j] = [rise(j, k) for k in range(v.size)]
    return rises


def semivalues(model: Model) -> None:
    """One picture for each member of the family: the same rises, and how it weighs them."""
    v = whence.game(model, MIDDLE, target="positive")
    masks, d = all_masks(v.size), v.size
    rises, x = joining(v), list(range(v.size))
    coloured = {}
    for name, colour in zip(("not", "great", "bad", "but"), COLOURS, strict=True):
        coloured[v.units.index(name)] = colour

    for functional in (shapley(d), banzhaf(d), beta_shapley(d)):
        scores = functional.of_values(masks, v(masks))
        # the share of each number k of others, from the weight of the masks that lack the unit
        shares = [-functional.base[k] * (d - k) / d for k in x]
        assert np.allclose(scores, [np.dot(shares, rises[j]) for j in x]), functional.name

        lines = [Line("", x, rises[j], "#ccc") for j in x if j not in coloured]
        for j, colour in coloured.items():
            name = f"{v.units[j]} {scores[j]:.2f}".replace("-", "−")
            lines.append(Line(name, x, rises[j], colour))
        panel = Panel(
            title="rise of the target when a word joins",
            below="other words that are there already",
            lines=lines,
            x_ticks=[(k, str(k)) for k in x],
            y_ticks=[(-1, "−1"), (0, "0"), (1, "+1"), (2, "+2"), (3, "+3")],
            bars=shares,
        )
        draw(functional.name, [panel])


def bandwidths(model: Model) -> None:
    """How LIME weighs texts by the words that are left, and what its scores become."""
    draw("lime", [_weights(), _scores(model)])


def _weights() -> Panel:
    d, kept = 20, np.arange(20)
    bandwidth_of = {"infinite": np.inf, "0.5": 0.5, "0.25": 0.25, "0.1": 0.1}
    lines = []
    for (name, nu), colour in zip(bandwidth_of.items(), COLOURS[::-1], strict=True):
        weights = np.exp(-((1 - np.sqrt(kept / d)) ** 2) / (2 * nu**2))
        lines.append(Line(name, kept.tolist(), weights.tolist(), colour))
    return Panel(
        title="weight of a text",
        below="words that are left, of 20",
        lines=lines,
        x_ticks=[(k, str(k)) for k in (0, 5, 10, 15)],
        y_ticks=[(0, "0"), (1, "1")],
    )


def _scores(model: Model) -> Panel:
    v = whence.game(model, SHORT, target="positive")
    masks = all_masks(v.size)
    nus = np.geomspace(0.05, 5, 60)
    scores = np.array([lime(v.size, float(nu)).of_values(masks, v(masks)) for nu in nus])
    x = nus.tolist()
    coloured = {"not": COLOURS[0], "bad": COLOURS[1]}
    lines = []
    for j, unit in enumerate(v.units):
        name = unit if unit in coloured else ""
        lines.append(Line(name, x, scores[:, j].tolist(), coloured.get(unit, "#bbb")))
    lines.append(Line("others", x, scores[:, v.units.index("the")].tolist(), "#bbb"))
    return Panel(
        title="score of the words",
        below=f"bandwidth; “{SHORT}”",
        lines=lines,
        x_ticks=[(t, f"{t:g}") for t in (0.05, 0.25, 1.0, 5.0)],
        y_ticks=[(0, "0"), (1, "1"), (2, "2"), (3, "3")],
        is_log=(True, False),
    )


def errors(model: Model) -> None:
    """The error of plain estimates and of those with a surrogate, against the passes they paid.

    The truth is known by enumeration. Dashed is the error that the estimates themselves report.
    """
    v = whence.game(model, LONG, target="positive")
    masks, law, sizes = all_masks(v.size), even_law(v.size), (64, 128, 256, 512, 1024)
    values = v(masks)
    panels = []
    for title, functional in (("LIME", lime(v.size)), ("Shapley", shapley(v.size))):
        truth = functional.of_values(masks, values)
        lines = []
        for name, colour in (("plain", COLOURS[1]), ("surrogate", COLOURS[0])):
            real, reported = np.zeros((2, len(sizes), DRAWS))
            for i, n in enumerate(sizes):
                for seed in range(DRAWS):
                    sample = Sample.of(v, draw_pairs(v.size, law, (n - 2) // 2, seed), law)
                    scores = estimate(functional, sample, name, seed)
                    size = (truth**2).sum()
                    real[i, seed] = ((scores.units - truth) ** 2).sum() / size
                    reported[i, seed] = (scores.standard_error**2).sum() / size
            real_error, reported_error = np.sqrt(real.mean(1)), np.sqrt(reported.mean(1))
            lines.append(Line("", sizes, reported_error.tolist(), colour, dashed=True))
            lines.append(Line(name, sizes, real_error.tolist(), colour))
            by_size = dict(zip(sizes, real_error.round(3).tolist(), strict=True))
            print(title, name, by_size, "told", reported_error.round(3))
        panel = Panel(
            title=f"{title}: relative error",
            below="passes",
            lines=lines,
            x_ticks=[(n, str(n)) for n in sizes],
            y_ticks=[(t, f"{t:.0%}") for t in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)],
            is_log=(True, True),
        )
        panels.append(panel)
    draw("surrogate", panels)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sentiment = whence.load("sentiment")
    bandwidths(sentiment)
    semivalues(sentiment)
    errors(sentiment)
