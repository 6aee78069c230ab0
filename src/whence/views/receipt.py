"""A receipt of steering in a terminal, and the sentences that every view of it says."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.receipt import Direction, Dose, Receipt
from whence.views import wording
from whence.views.terminal import to_text

DIM, BOLD = Style(dim=True), Style(bold=True)
NAMES: dict[Direction, str] = {
    "feature": "the feature",
    "random": "random directions",
    "difference": "difference of means",
}


def what(r: Receipt) -> str:
    """What the response is, in a few words."""
    if r.meaning == "promoted":
        return "probability of the tokens that it promotes"
    return f"probability of {wording.label(r.about)} for the prompt"


def sentences(r: Receipt) -> list[str]:
    """What was done, whether it worked, and what it cost: the numbers beside those of chance."""
    steered, plain = r.steered, r.plain
    done = (
        f"Feature {r.feature} clamped to {r.asked:g} times its largest activation "
        f"({r.asked * r.peak:.3g}): the {what(r)} goes from {wording.percent(plain.response)} to "
        f"{wording.percent(steered.response)}"
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
            f"perplexity {plain.perplexity:.3g} → {steered.perplexity:.3g}"
            f"{_chance(r, 'perplexity')}"
        )
    per = "token" if r.meaning == "promoted" else "text"
    costs.append(f"divergence {steered.divergence:.2g} nats a {per}{_chance(r, 'divergence')}")
    lines.append(f"On unrelated text ({r.texts} texts, {r.tokens} tokens): {', '.join(costs)}.")
    moved = f"Other features move by {wording.percent(steered.others)} of what they were"
    lines.append(f"{moved}{_chance(r, 'others', share=True)}.")
    if steered.activity is not None and plain.activity is not None:
        lines.append(
            "In what is then written, read by the plain model, the feature is at "
            f"{wording.percent(steered.activity)} of its largest activation on average (before: "
            f"{wording.percent(plain.activity)}{_activity(r)})."
        )
    return lines


def _by(r: Receipt, direction: Direction) -> str:
    if direction == "random":
        return f"{len(r.at('random', r.asked))} random directions"
    return "the difference of means"


def _chance(r: Receipt, name: str, share: bool = False) -> str:
    value = r.mean("random", r.asked, name)
    if value is None:
        return ""
    shown = wording.percent(value) if share else _shown(value)
    return f" (random: {shown})"


def _activity(r: Receipt) -> str:
    value = r.mean("random", r.asked, "activity")
    return "" if value is None else f"; random directions: {wording.percent(value)}"


def dose_name(dose: Dose) -> str:
    """A dose as a table names it."""
    name = NAMES[dose.direction]
    if dose.direction == "random":
        name = f"random direction {dose.number + 1}"
    return f"{name}, {dose.multiple:g}x"


def receipt_text(r: Receipt) -> str:
    """What steering did, as tables."""
    return to_text(lambda console: receipt_view(r, console))


def receipt_view(r: Receipt, console: Console) -> RenderableType:
    """The same for a console."""
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


def _written(r: Receipt) -> RenderableType:
    listed = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
    listed.add_column(no_wrap=True)
    listed.add_column(overflow="fold")
    for name, dose in shown_doses(r):
        if dose.written is not None:
            told = wording.visible((r.prompt + dose.written).replace("\n", "⏎"))
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
        cells = [f"{multiple:g}x"]
        for direction in NAMES:
            cells.append(_shown(r.mean(direction, multiple, "response"), share=True))
        cells.append(_shown(r.mean("feature", multiple, "divergence")))
        cells.append(_shown(r.mean("random", multiple, "divergence")))
        cells.append(_shown(r.mean("feature", multiple, "others"), share=True))
        if r.plain.perplexity is not None:
            cells.append(_shown(r.mean("feature", multiple, "perplexity")))
        table.add_row(*cells, style=BOLD if multiple == r.asked else Style())
    return table


def _shown(value: float | None, share: bool = False) -> str:
    if value is None:
        return "–"
    return wording.percent(value) if share else f"{value:.2g}" if value < 100 else f"{value:.0f}"
