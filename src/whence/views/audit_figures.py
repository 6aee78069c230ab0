"""The figures of an audit, each by its name: panels for the page, or one drawing by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from whence.core.audit import Effect, Place
from whence.core.audited import (
    ADVERSARY,
    CORRELATION,
    HEADS,
    PERMUTATION,
    UNIFORM,
    Audit,
)
from whence.core.bootstrap import Mean
from whence.core.errors import InputError, unknown_name
from whence.core.percent import digits
from whence.core.pruning import Pruning
from whence.views import audit_pictures as pictures
from whence.views import wording
from whence.views.audit import FEW_HELD_OUT, LN_2, has_bands, shown
from whence.views.audit_pictures import Picture
from whence.views.document import static, style
from whence.views.markup import element

Panels = list[tuple[str, Picture]]
KINDS = ("worth", "moving")  # the colours of the orders, in turn
REMOVED = "heads removed"
WORTH = "rise of the loss without each head"

# Said beside its figure.
ABOUT_PERMUTATION = (
    "Each point is a text: the largest attention weight, and how far the output moves when the "
    "weights are shuffled (the median of many shuffles). Points at the bottom right are the trap: "
    "attention is sure of one word, and the output does not care (Jain & Wallace 2019, figure 6)."
)
# Said beside its figure.
ABOUT_UNIFORM = (
    "How far the output moves when every token looks at everything alike, text by text. Bars at "
    "the left: where the model looks there tells the output next to nothing (after Kovaleva et al. "
    "2019, who make one head even at a time)."
)
# Said beside its figure.
ABOUT_READINGS = (
    "The share of random rankings of the words that each reading does better than, text by text, "
    "by comprehensiveness and sufficiency. A random reading would lie around 0.5."
)
# Said beside its figure.
ABOUT_ADVERSARY = (
    "How different an attention was found that gives the same output (Jensen-Shannon divergence in "
    "nats; at most ln 2 = 0.69). Bars at the right: many attentions would do, and the one that was "
    "seen is one of them (Jain & Wallace 2019, figure 8)."
)
# Said beside its figure.
ABOUT_CORRELATION = (
    "Kendall's τ on each text, from −1 to 1 (Jain & Wallace 2019, section 4.1). Bars are texts, "
    "the upright line is their mean, and the grey outline is what the same weights reach when they "
    "stand on other words. The last row is the yardstick: how far gradients agree with leaving "
    "words out. At the end of a row: the mean, on how many texts p < .05, and on how many the same "
    "weights on other words reach that by chance."
)
# Said beside its figure.
ABOUT_HEADS = (
    "How far the loss rises (orange) or falls (blue), on average over texts, when the output of "
    "one head is set to zero. Colours are means: only what is marked is beyond doubt. Point at a "
    "cell for its interval."
)


# ---------------------------------------------------------------------- one for each test


def _with_values(audit: Audit, test: str, quantity: str) -> list[Effect]:
    """The effects of a test whose values on each text are kept, layers first."""
    found = [e for e in audit.effects if (e.test, e.quantity) == (test, quantity) and e.values]
    return sorted(found, key=lambda e: (e.place.kind, e.place.layer is None, e.place.layer or 0))


def _permutation(audit: Audit) -> Panels:
    panels: Panels = []
    for change in _with_values(audit, PERMUTATION, "change"):
        largest = audit.effect(PERMUTATION, "largest", change.place)
        if largest is None or len(largest.values) != len(change.values):
            continue
        names = ("largest weight", "change of the output")
        label = f"{change.place}: change of the output against the largest weight"
        most = _most_of_changes(audit, change)
        picture = pictures.scatter(largest.values, change.values, names, label, most)
        panels.append((str(change.place), picture))
    return panels


def _uniform(audit: Audit) -> Panels:
    panels: Panels = []
    for effect in _with_values(audit, UNIFORM, "change"):
        label = f"{effect.place}: how far even attention moves the output"
        names = ("change of the output", "texts")
        most = _most_of_changes(audit, effect)
        panels.append((str(effect.place), pictures.histogram(effect.values, most, names, label)))
    return panels


def _most_of_changes(audit: Audit, effect: Effect) -> float:
    """The end of an axis of changes: 1 of probabilities, and of a number the largest there is."""
    return (max(effect.values) or 1.0) if audit.is_number else 1.0


def _readings(audit: Audit) -> Panels:
    panels: Panels = []
    for verdict in audit.readings:
        if verdict.beaten is not None and verdict.beaten.values:
            label = f"{verdict.reading}: the share of random rankings that it beats"
            names = ("share of random rankings beaten", "texts")
            picture = pictures.histogram(verdict.beaten.values, 1.0, names, label)
            panels.append((verdict.reading, picture))
    return panels


def _adversary(audit: Audit) -> Panels:
    panels: Panels = []
    for effect in _with_values(audit, ADVERSARY, "jsd"):
        label = f"{effect.place}: how different another attention can be"
        names = ("difference, nats", "texts")
        picture = pictures.histogram(effect.values, LN_2, names, label)
        panels.append((str(effect.place), picture))
    return panels


# ---------------------------------------------------------------------- correlation


def _correlation(audit: Audit) -> Panels:
    yardstick = _distribution(audit, "gradient-loo", "", "gradient × input")
    with_left_out = _distributions(audit, "loo") + yardstick
    with_gradient = _distributions(audit, "gradient")
    panels: Panels = []
    rows_at_most = max(len(with_left_out), len(with_gradient))
    for title, rows in (
        ("with leaving each word out", with_left_out),
        ("with gradient × input", with_gradient),
    ):
        if rows:
            label = f"Kendall's τ of each reading of attention {title}, text by text"
            said = "mean τ; p < .05"
            picture = pictures.distributions(rows, "Kendall's τ", said, label, rows_at_most)
            panels.append((f"τ {title}", picture))
    return panels


def _distributions(audit: Audit, other: str) -> list[pictures.Distribution]:
    """A row for each reading, the best first, as the table has them."""
    rows = []
    for verdict in audit.readings:
        rows += _distribution(audit, other, verdict.reading, verdict.reading)
    return rows


def _distribution(audit: Audit, other: str, reading: str, name: str) -> list[pictures.Distribution]:
    tau = audit.effect(CORRELATION, f"tau-{other}", reading=reading)
    if tau is None or not tau.values:
        return []
    chance = audit.effect(CORRELATION, f"shuffled-{other}", reading=reading)
    significant = audit.effect(CORRELATION, f"significant-{other}", reading=reading)
    said = f"{tau.mean:z.2f}"
    if significant is not None:
        said += f"; {digits(significant.mean)}%"
        if significant.control is not None:
            said += f" ({digits(significant.control)}%)"
    of_chance = () if chance is None else chance.values
    return [pictures.Distribution(name, tau.values, of_chance, said)]


# ---------------------------------------------------------------------- heads and pruning


def _heads(audit: Audit) -> Panels:
    effects = [
        effect
        for effect in audit.effects
        if (effect.test, effect.quantity) == (HEADS, "loss") and effect.place.head is not None
    ]
    most = max((abs(effect.mean) for effect in effects), default=0.0)
    panels: Panels = []
    for kind in dict.fromkeys(effect.place.kind for effect in effects):
        cells = {}
        for effect in effects:
            place = effect.place
            if place.kind == kind and place.layer is not None and place.head is not None:
                cells[place.layer, place.head] = _cell(audit, effect, most)
        label = f"{kind} heads: the rise of the loss without each".strip()
        picture = pictures.heads(cells, f"{most:.2g}", label)
        title = f"{kind}: {WORTH}" if kind else WORTH
        panels.append((title, picture))
    return panels


def _cell(audit: Audit, effect: Effect, most: float) -> pictures.Cell:
    """Said where a head is pointed at.

    ``layer 1, head 0: the loss changes by 0.21 [0.10, 0.32] without it; it helps``
    """
    marks = _marks(audit, effect.place)
    said = f"{effect.place}: the loss changes by {shown(effect)} without it"
    if marks:
        said += f"; it {' and '.join(sorted(marks))}"
    return pictures.Cell(effect.mean / (most or 1.0), marks, said)


def _marks(audit: Audit, place: Place) -> frozenset[str]:
    if audit.heads is None:
        return frozenset()
    groups = {
        "helps": audit.heads.help,
        "hurts": audit.heads.hurt,
        "can go": audit.heads.spared,
    }
    return frozenset(name for name, heads in groups.items() if place in heads)


def _pruning(audit: Audit) -> Panels:
    pruning = audit.pruning
    if pruning is None:
        return []
    panels: Panels = [("loss on held-out texts", _losses(pruning))]
    if pruning.control.right:
        panels.append(("share right on held-out texts", _shares_right(pruning)))
    panels.append(("how far the loss lies below that of random orders", _gains(pruning)))
    return panels


def _losses(pruning: Pruning) -> Picture:
    lines = _lines(pruning, [order.curve.loss for order in pruning.orders])
    lines.append(pictures.Line("random orders", pruning.control.loss, "random"))
    faint = [curve.loss for curve in pruning.random]
    _, most = _reach([*faint, *(line.means for line in lines)])
    label = "loss as heads are removed, in orders of worth and at random"
    return pictures.curves(pruning.steps, lines, faint, (0.0, most), (REMOVED, "loss"), label)


def _shares_right(pruning: Pruning) -> Picture:
    lines = _lines(pruning, [order.curve.right for order in pruning.orders])
    lines.append(pictures.Line("random orders", pruning.control.right, "random"))
    faint = [curve.right for curve in pruning.random]
    label = "share right as heads are removed, in orders of worth and at random"
    names = (REMOVED, "share right")
    return pictures.curves(pruning.steps, lines, faint, (0.0, 1.0), names, label)


def _gains(pruning: Pruning) -> Picture:
    lines = []
    for line, order in zip(
        _lines(pruning, [order.below_random for order in pruning.orders]),
        pruning.orders,
        strict=True,
    ):
        lines.append(replace(line, sure=order.apart))
    low, high = _reach([line.means for line in lines])
    names = (REMOVED, "loss of random orders, less its own")
    label = "how far the loss lies below that of random orders, as heads are removed"
    return pictures.curves(pruning.steps, lines, [], (min(low, 0.0), high), names, label)


def _lines(pruning: Pruning, curves: Sequence[tuple[Mean, ...]]) -> list[pictures.Line]:
    lines = []
    for number, (order, means) in enumerate(zip(pruning.orders, curves, strict=True)):
        lines.append(pictures.Line(order.name, means, KINDS[number % len(KINDS)]))
    return lines


def _reach(curves: Sequence[Sequence[Mean]]) -> tuple[float, float]:
    """The lowest and the highest of all means and intervals."""
    ends = []
    for means in curves:
        for mean in means:
            ends += mean.interval or (mean.mean, mean.mean)
    return min(ends), max(ends)


def about_pruning(audit: Audit) -> str:
    """What the pruning figure shows, with its numbers of texts.

    Said beside the figure of heads that were removed.
    """
    pruning = audit.pruning
    if pruning is None:
        return ""
    bands = "Bands are 95 % intervals over texts." if has_bands(pruning) else FEW_HELD_OUT
    ordered_on = wording.counted(pruning.ordered_on, "text")
    rest = "" if pruning.texts == pruning.held_out else f" (of {pruning.held_out})"
    return (
        f"Heads are set to zero one after the other. The order comes from {ordered_on}, and the "
        f"curve from {pruning.texts} others{rest}. Worth is the rise of the loss "
        f"without a head, movement the size of its change on each text. {bands} The grey lines "
        f"are {wording.counted(len(pruning.random), 'random order')} and their mean. "
        "The last panel compares with that mean, text by text: above 0 the order is better, below "
        "it is worse. A full point is so beyond doubt, all points judged together."
    )


# ---------------------------------------------------------------------- by name


@dataclass(frozen=True)
class Kind:
    """A figure: its title, what it shows, its panels, and how many stand beside each other."""

    title: str
    about: Callable[[Audit], str]
    panels: Callable[[Audit], Panels]
    columns: int = 3

    @property
    def is_wide(self) -> bool:
        """Whether its panels need more room than a small picture."""
        return self.columns < 3


# Said above each figure that has something to show.
FIGURES = {
    "heads": Kind("What each head is worth to the task", lambda _: ABOUT_HEADS, _heads, 2),
    "pruning": Kind("Heads removed one after the other", about_pruning, _pruning, 2),
    "correlation": Kind(
        "Does attention rank words as other measures do?",
        lambda _: ABOUT_CORRELATION,
        _correlation,
        2,
    ),
    "readings": Kind("Which readings name words that matter", lambda _: ABOUT_READINGS, _readings),
    "permutation": Kind(
        "Shuffled attention, text by text", lambda _: ABOUT_PERMUTATION, _permutation
    ),
    "uniform": Kind("Even attention, text by text", lambda _: ABOUT_UNIFORM, _uniform),
    "adversary": Kind(
        "Another attention with the same output", lambda _: ABOUT_ADVERSARY, _adversary
    ),
}


def audit_figure(audit: Audit, name: str) -> str:
    """One figure as an SVG that stands alone, light or dark as its reader has it."""
    if name not in FIGURES:
        raise unknown_name("figure of an audit", name, list(FIGURES))
    kind = FIGURES[name]
    panels = kind.panels(audit)
    if not panels:
        drawn = [other for other, figure in FIGURES.items() if figure.panels(audit)]
        raise InputError(
            f"this audit has nothing to draw for {name!r}: the test was not done, or on no text. "
            f"It has {', '.join(drawn) or 'no figures'}."
        )
    picture = pictures.together(panels, kind.title, kind.columns)
    content = style(_colours() + static("drawing.css")) + picture.content
    return element(
        "svg",
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {picture.wide} {picture.high}",
        width=picture.wide,
        height=picture.high,
        role="img",
        class_="drawing alone",
        aria_label=picture.label,
    )


@cache
def _colours() -> str:
    """The colours of every page, light and dark, for a drawing without a page around it."""
    blocks: Sequence[str] = re.findall(r"\.whence \{(.*?)\}", static("report.css"), re.DOTALL)
    light, dark = (" ".join(re.findall(r"--[\w-]+: [^;]+;", block)) for block in blocks[:2])
    return f".alone {{ {light} }} @media (prefers-color-scheme: dark) {{ .alone {{ {dark} }} }} "
