"""Draw the pictures of LIME, of the Shapley family and of the surrogate, from the real program: ``python docs/assets/games.py``.

Plain SVG, no library. A minute and a half on one free core: 2^14 passes for the surrogate's truth, and a hundred fits.
"""

from __future__ import annotations

from collections.abc import Sequence
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
TALLEST = 0.3  # share of a bar that would reach the top, in all pictures, so that bars of two pictures can be compared
DRAWS = 10  # samples of each size, whose errors are averaged


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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {HIGH}" width="{wide}" font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{HIGH}" fill="#fff"/>',
        *(
            f'<g transform="translate({WIDE * i},0)">\n{_panel(panel)}\n</g>'
            for i, panel in enumerate(panels)
        ),
        "</svg>",
    ]
    (HERE / f"{name}.svg").write_text("\n".join(parts) + "\n", encoding="utf-8")


def _panel(p: Panel) -> str:
    every_x, every_y = ([getattr(line, axis) for line in p.lines] for axis in "xy")
    across = _scale(
        [*np.concatenate(every_x), *(t for t, _ in p.x_ticks)],
        LEFT,
        WIDE - RIGHT,
        p.is_log[0],
        room=bool(p.bars),
    )
    up = _scale(
        [*np.concatenate(every_y), *(t for t, _ in p.y_ticks)], HIGH - BOTTOM, TOP, p.is_log[1]
    )
    floor = HIGH - BOTTOM
    out = [
        _text((LEFT + WIDE - RIGHT) / 2, 14, p.title, bold=True),
        _text((LEFT + WIDE - RIGHT) / 2, HIGH - 6, p.below),
    ]
    if p.bars:
        step = (across(1.0) - across(0.0)) * 0.7
        for k, share in enumerate(p.bars):
            tall = share / TALLEST * (floor - TOP)
            out.append(
                f'<rect x="{across(k) - step / 2:.1f}" y="{floor - tall:.1f}" width="{step:.1f}" height="{tall:.1f}" fill="{PALE}"/>'
            )
    for at, label in p.y_ticks:
        zero = not p.is_log[1] and at == 0
        rule = (
            f'<path d="M{LEFT} {up(at):.1f}H{WIDE - RIGHT}" stroke="{SOFT if zero else "#eee"}"/>'
        )
        out += [rule, _text(LEFT - 6, up(at) + 4, label, "end")]
    out += [_text(across(at), floor + 15, label) for at, label in p.x_ticks]
    for line in p.lines:
        points = " ".join(
            f"{across(a):.1f},{up(b):.1f}" for a, b in zip(line.x, line.y, strict=True)
        )
        dash = ' stroke-dasharray="2 4"' if line.dashed else ""
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>'
        )
    named = [line for line in p.lines if line.name]
    for line, height in zip(named, _apart([up(line.y[-1]) for line in named]), strict=True):
        out.append(_text(WIDE - RIGHT + 5, height + 4, line.name, "start", line.colour))
    return "\n".join(out)


def _scale(values: Sequence[float], low: float, high: float, is_log: bool, room: bool = False):
    ends = (min(values) - 0.5 * room, max(values) + 0.5 * room)
    a, b = np.log(ends) if is_log else ends
    return lambda v: low + ((np.log(v) if is_log else v) - a) / (b - a) * (high - low)


def _apart(heights: Sequence[float], least: float = 13.0) -> list[float]:
    """The heights of labels, pushed down where two would touch."""
    out, last = dict.fromkeys(range(len(heights)), 0.0), -np.inf
    for i in np.argsort(heights).tolist():
        last = out[i] = max(heights[i], last + least)
    return list(out.values())


def _text(
    x: float, y: float, text: str, anchor: str = "middle", fill: str = INK, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{weight}>{text}</text>'
    )


def joining(v: Game) -> dict[int, list[float]]:
    """By how much the target rises when each unit joins k others, the mean over all sets of k, for k = 0 … d − 1."""
    masks = all_masks(v.size)
    values, size = v(masks), masks.sum(1)

    def rise(j: int, k: int) -> float:
        with_it, without = masks[:, j] & (size == k + 1), ~masks[:, j] & (size == k)
        return float(values[with_it].mean() - values[without].mean())

    return {j: [rise(j, k) for k in range(v.size)] for j in range(v.size)}


def semivalues(model: Model) -> None:
    """One picture for each member of the family: the same rises, and how it weighs them."""
    v = whence.game(model, MIDDLE, target="positive")
    masks, d = all_masks(v.size), v.size
    rises, x = joining(v), list(range(v.size))
    told = {
        v.units.index(name): colour
        for name, colour in zip(("not", "great", "bad", "but"), COLOURS, strict=True)
    }
    for functional in (shapley(d), banzhaf(d), beta_shapley(d)):
        found = functional.of_values(masks, v(masks))
        shares = [
            -functional.base[k] * (d - k) / d for k in x
        ]  # of k others, from the weight of the masks that lack the unit
        assert np.allclose(found, [np.dot(shares, rises[j]) for j in x]), functional.name
        lines = [Line("", x, rises[j], "#ccc") for j in x if j not in told]
        lines += [
            Line(f"{v.units[j]} {found[j]:.2f}".replace("-", "−"), x, rises[j], colour)
            for j, colour in told.items()
        ]
        y_ticks = [(t, f"{t:+d}".replace("-", "−") if t else "0") for t in (-1, 0, 1, 2, 3)]
        below = "other words that are there already"
        draw(
            functional.name,
            [
                Panel(
                    "rise of the target when a word joins",
                    below,
                    lines,
                    [(k, str(k)) for k in x],
                    y_ticks,
                    bars=shares,
                )
            ],
        )


def bandwidths(model: Model) -> None:
    """How LIME weighs texts by the words that are left, and what its scores become."""
    d, kept = 20, np.arange(20)
    weigh = [
        Line(
            name,
            kept.tolist(),
            np.exp(-((1 - np.sqrt(kept / d)) ** 2) / (2 * nu**2)).tolist(),
            colour,
        )
        for (name, nu), colour in zip(
            (("infinite", np.inf), ("0.5", 0.5), ("0.25", 0.25), ("0.1", 0.1)),
            COLOURS[::-1],
            strict=True,
        )
    ]
    left = Panel(
        "weight of a text",
        "words that are left, of 20",
        weigh,
        [(k, str(k)) for k in (0, 5, 10, 15)],
        [(0, "0"), (1, "1")],
    )
    v = whence.game(model, SHORT, target="positive")
    masks = all_masks(v.size)
    nus = np.geomspace(0.05, 5, 60)
    scores = np.array([lime(v.size, float(nu)).of_values(masks, v(masks)) for nu in nus])
    told = {"not": COLOURS[0], "bad": COLOURS[1]}
    lines = [
        Line("" if n not in told else n, nus.tolist(), scores[:, j].tolist(), told.get(n, "#bbb"))
        for j, n in enumerate(v.units)
    ]
    lines.append(Line("others", nus.tolist(), scores[:, v.units.index("the")].tolist(), "#bbb"))
    ticks = [(t, f"{t:g}") for t in (0.05, 0.25, 1.0, 5.0)]
    y_ticks = [(0, "0"), (1, "1"), (2, "2"), (3, "3")]
    right = Panel(
        "score of the words", f"bandwidth; “{SHORT}”", lines, ticks, y_ticks, (True, False)
    )
    draw("lime", [left, right])


def errors(model: Model) -> None:
    """The error of plain estimates and of those with a surrogate, against the passes that they paid, beside the truth by enumeration."""
    v = whence.game(model, LONG, target="positive")
    masks, law, sizes = all_masks(v.size), even_law(v.size), (64, 128, 256, 512, 1024)
    values = v(masks)
    panels = []
    for title, functional in (("LIME", lime(v.size)), ("Shapley", shapley(v.size))):
        truth = functional.of_values(masks, values)
        lines = []
        for name, colour in (("plain", COLOURS[1]), ("surrogate", COLOURS[0])):
            real, told = np.zeros((2, len(sizes), DRAWS))
            for i, n in enumerate(sizes):
                for seed in range(DRAWS):
                    sample = Sample.of(v, draw_pairs(v.size, law, (n - 2) // 2, seed), law)
                    found = estimate(functional, sample, name, seed)
                    real[i, seed] = ((found.units - truth) ** 2).sum() / (truth**2).sum()
                    told[i, seed] = (found.standard_error**2).sum() / (truth**2).sum()
            lines.append(Line("", sizes, np.sqrt(told.mean(1)).tolist(), colour, dashed=True))
            lines.append(Line(name, sizes, np.sqrt(real.mean(1)).tolist(), colour))
            print(
                title,
                name,
                dict(zip(sizes, np.sqrt(real.mean(1)).round(3).tolist(), strict=True)),
                "told",
                np.sqrt(told.mean(1)).round(3),
            )
        y_ticks = [(t, f"{t:.0%}") for t in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)]
        panels.append(
            Panel(
                f"{title}: relative error",
                "passes",
                lines,
                [(n, str(n)) for n in sizes],
                y_ticks,
                (True, True),
            )
        )
    draw("surrogate", panels)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sentiment = whence.load("sentiment")
    bandwidths(sentiment)
    semivalues(sentiment)
    errors(sentiment)
