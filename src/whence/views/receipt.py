"""A receipt of steering in a terminal, and the sentences that every view of it says."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.receipt import Direction, Dose, Receipt
from whence.views import wording
from whence.views.terminal import to_text

DIM, BOLD = Style(dim=True), Style(bold=True)
# Said of the directions in tables and legends.
NAMES: dict[Direction, str] = {
    "feature": "the feature",
    "random": "random directions",
    "difference": "difference of means",
}


def what(r: Receipt) -> str:
    """What the response is, in a few words.

    Said of the response: of a language model, or of a classifier.
    """
    if r.meaning == "promoted":
        return "probability of the tokens that it promotes"
    return f"probability of {wording.label(r.about)} for the prompt"


def sentences(r: Receipt) -> list[str]:
    """What was done, whether it worked, and what it cost: the numbers beside those of chance.

    Said first of a receipt; beside random directions and the difference of means where they were
    tried, and of other features and of what was written where that was measured.
    """
    steered, plain = r.steered, r.plain
    done = (
        f"Feature {r.feature} clamped to an activation of {r.asked * r.peak:.3g}, "
        f"{_times(r.asked)}: the {what(r)} goes from "
        f"{wording.percent(plain.response)} to {wording.percent(steered.response)}"
    )
    beside = []
    for direction in ("random", "difference"):
        value = r.mean(direction, r.asked, "response")
        if value is not None:
            beside.append(f"{wording.percent(value)} by {_by(r, direction)}")
    lines = [f"{done}; {', '.join(beside)}." if beside else f"{done}."]
    costs = []
    if steered.perplexity is not None and plain.perplexity is not None:
        costs.append(
            f"perplexity {shown(plain.perplexity)} → {shown(steered.perplexity)}"
            f"{_chance(r, 'perplexity')}"
        )
    texts, tokens = wording.counted(r.texts, "text"), wording.counted(r.tokens, "token")
    per = "token" if r.meaning == "promoted" else "text"
    costs.append(f"divergence {shown(steered.divergence)} nats a {per}{_chance(r, 'divergence')}")
    on = "unrelated text" if r.is_unrelated else "text in which the feature fires too"
    lines.append(f"On {on} ({texts}, {tokens}): {', '.join(costs)}.")
    if steered.others is not None:
        moved = f"Other features move by {moved_by(steered.others)} of what they were"
        lines.append(f"{moved}{_chance(r, 'others', moved_by)}.")
    if steered.activity is not None and plain.activity is not None:
        lines.append(
            "In what is then written, read by the plain model, the feature is at "
            f"{wording.percent(steered.activity)} of its largest activation on average (before: "
            f"{wording.percent(plain.activity)}{_activity(r)})."
        )
    return lines


def _times(asked: float) -> str:
    """A dose beside the largest activation that was seen.

    Said of the dose that was asked for.

    >>> _times(4.0), _times(1.0)
    ('4 times its largest', 'its largest')
    """
    times = f"{asked:.3g}"
    return "its largest" if times == "1" else f"{times} times its largest"


def _by(r: Receipt, direction: Direction) -> str:
    """Said of what stands beside the feature, where it was tried."""
    if direction == "random":
        return wording.counted(len(r.at("random", r.asked)), "random direction")
    return "the difference of means"


def moved_by(share: float) -> str:
    """How far features moved, of what they were: in percent, unless that would be no use.

    >>> moved_by(1.53), moved_by(246665.4)
    ('153 %', '2.47e+05x')
    """
    return wording.percent(share) if share < 100 else f"{share:.3g}x"


def whose(r: Receipt) -> str:
    """What was measured on, in a title."""
    return "unrelated text" if r.is_unrelated else "the texts"


def shown(value: float | None, write: Callable[[float], str] | None = None) -> str:
    """A number, or a dash where there is none.

    >>> shown(99.7), shown(1234.5), shown(0.0123), shown(None)
    ('100', '1,234', '0.012', '–')
    """
    if value is None:
        return "–"
    if write is not None:
        return write(value)
    # two digits of what is near a hundred would be 1e+02
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def _chance(r: Receipt, name: str, write: Callable[[float], str] | None = None) -> str:
    value = r.mean("random", r.asked, name)
    return "" if value is None else f" (random: {shown(value, write)})"


def _activity(r: Receipt) -> str:
    value = r.mean("random", r.asked, "activity")
    return "" if value is None else f"; {_by(r, 'random')}: {wording.percent(value)}"


def dose_name(dose: Dose) -> str:
    """A dose as a table names it."""
    name = NAMES[dose.direction]
    if dose.direction == "random":
        name = f"random direction {dose.number + 1}"
    return f"{name}, {dose.multiple:.3g}x"


def receipt_text(r: Receipt) -> str:
    """What steering did, as tables."""
    return to_text(lambda console: receipt_view(r, console))


def receipt_view(r: Receipt, console: Console) -> RenderableType:
    """The same for a console.

    Said below the tables of a terminal: ``response: probability of positive for the prompt; others:
    how far other features move.``
    """
    del console
    lines: list[RenderableType] = [Text(line) for line in sentences(r)]
    lines += [Text(""), _written(r), Text(""), _doses(r)]
    lines.append(Text(f"response: {what(r)}; others: how far other features move.", DIM))
    if r.meaning == "promoted":
        lines.append(Text(f"It promotes {wording.visible(r.about)} (from the weights).", DIM))
    lines += [Text(wording.visible(note), DIM) for note in r.notes]
    lines.append(Text(wording.cost(r.cost), DIM))
    return Group(*lines)


def shown_doses(r: Receipt) -> list[tuple[str, Dose]]:
    """What was written, or said of the prompt: before, at each dose, and by the controls."""
    rows = [("before", r.plain)]
    for dose in r.doses:
        if dose.written is not None or (dose.probabilities and dose.direction == "feature"):
            rows.append((dose_name(dose), dose))
    return rows


def beginning_of(r: Receipt) -> str:
    """What stands before a text that was written: its prompt, and an arrow where that ends."""
    return f"{r.prompt} → " if r.is_apart else r.prompt


def _written(r: Receipt) -> RenderableType:
    listed = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
    listed.add_column(no_wrap=True)
    listed.add_column(overflow="fold")
    for name, dose in shown_doses(r):
        if dose.written is not None:
            told = wording.visible((beginning_of(r) + dose.written).replace("\n", "⏎"))
        else:
            chances = dose.probabilities.items()
            told = ", ".join(f"{wording.label(n)} {wording.percent(p)}" for n, p in chances)
        style = BOLD if dose is r.steered else Style()
        listed.add_row(Text(name, style=DIM), Text(told, style=style))
    return listed


def _doses(r: Receipt) -> RenderableType:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for name in ("dose", "response", "random", "difference", "divergence", "random", "others"):
        table.add_column(name, justify="right")
    if r.plain.perplexity is not None:
        table.add_column("perplexity", justify="right")
    for multiple in r.multiples:
        cells = [f"{multiple:.3g}x"]
        for direction in NAMES:
            cells.append(shown(r.mean(direction, multiple, "response"), wording.percent))
        cells.append(shown(r.mean("feature", multiple, "divergence")))
        cells.append(shown(r.mean("random", multiple, "divergence")))
        cells.append(shown(r.mean("feature", multiple, "others"), moved_by))
        if r.plain.perplexity is not None:
            cells.append(shown(r.mean("feature", multiple, "perplexity")))
        table.add_row(*cells, style=BOLD if multiple == r.asked else Style())
    return table
