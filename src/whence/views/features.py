"""The features of an autoencoder in a terminal, and the sentences that every view of them says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.dashboard import DENSE, Dashboard, FeatureCard, Top, Weighed
from whence.core.percent import percent
from whence.views import wording
from whence.views.palette import FAINT, terminal_theme
from whence.views.terminal import has_colour, level_style, to_text

BARS = " ▁▂▃▄▅▆▇█"
PASSAGES = 10  # of one feature in full
DIM, BOLD = Style(dim=True), Style(bold=True)


def headline(board: Dashboard) -> str:
    """What this is about, in one line."""
    live = wording.counted(board.live, "live feature")
    count = f"{len(board.features):,} of {live}" if board.left_out else live
    return f"{count} of {wording.visible(board.model)}, after block {board.layer}"


def sentences(board: Dashboard) -> list[str]:
    """How many features there are, and how well they hold what the model holds.

    Said below the headline of a dashboard; of the variance where it was measured.
    """
    tokens, passages = (
        wording.counted(count, what)
        for count, what in ((board.tokens, "token"), (board.passages, "passage"))
    )
    fire = "fires" if board.live == 1 else "fire"
    first = (
        f"On {tokens} of {wording.visible(board.data)} in {passages}, {board.live:,} of "
        f"{wording.counted(board.size, 'feature')} {fire} at least once; "
        f"{_mean(board.l0)} on a token, on average."
    )
    fire = "fires" if board.dense == 1 else "fire"
    dense = f"{board.dense:,} {fire} on more than {100 * DENSE:.0f} % of all tokens"
    if board.variance_explained is not None:
        explained = percent(board.variance_explained, 1).replace("-", "−")
        dense += f"; all features together explain {explained} of the variance"
    variant = f"Autoencoder: {wording.visible(board.variant)}, {board.dim} → {board.size:,}."
    return [first, f"{dense}. {variant}"]


def _mean(count: float) -> str:
    """A mean count; what is not zero is not rounded to it.

    >>> _mean(19.52), _mean(0.004), _mean(0.0)
    ('19.5', '0.004', '0.0')
    """
    return f"{count:.1f}" if count >= 0.05 or not count else f"{count:.1g}"


def about_effects(board: Dashboard) -> str:
    """How it was found out what features do to the output, and what that is worth.

    Said where it was found out what features do, by how.
    """
    if board.effects == "lens":
        return (
            "What a feature promotes is read from the weights: its direction through the final "
            "norm (its derivative, averaged over some states) and the unembedding. This skips the "
            "layers in between, so it is an approximation; steering measures the effect. Numbers "
            "are above the mean of the whole vocabulary, as what raises all tokens alike changes "
            "no probability: what it suppresses is raised less than that mean."
        )
    if board.effects == "clamped":
        return (
            "What a feature promotes was measured: by how much each class loses (its logit), on "
            "average over the feature's strongest passages, when the feature is set to 0 there. "
            "Where classes exclude each other, the mean over them is taken off."
        )
    return ""


def quoted_tokens(names: Sequence[str]) -> list[str]:
    """Tokens in quotes: beside each other a comma and a full stop would be read as marks."""
    return [wording.quoted_among(name, names) for name in names]


def promoted(board: Dashboard, effects: Sequence[Weighed]) -> list[str]:
    """The names of what is promoted or suppressed: tokens in quotes, and classes as they are."""
    names = [one.name for one in effects]
    return (
        quoted_tokens(names) if board.effects == "lens" else [wording.label(name) for name in names]
    )


def unit_of_effects(board: Dashboard) -> str:
    """What the numbers beside promoted tokens or classes are, or nothing.

    Said beside tokens or classes that a feature promotes.
    """
    units = {
        "lens": "logits for an activation of 1, above the vocabulary's mean",
        "clamped": "logits lost when the feature is set to 0",
    }
    return units.get(board.effects, "")


def dashboard_text(board: Dashboard, most: int = 12, feature: int | None = None) -> str:
    """The most frequent features, or one in full."""
    return to_text(lambda console: dashboard_view(board, console, most, feature))


def dashboard_view(
    board: Dashboard, console: Console, most: int = 12, feature: int | None = None
) -> RenderableType:
    """The same for a console that shows colours."""
    if feature is not None:
        return _in_full(board, board[feature], console)
    lines: list[RenderableType] = [Text(headline(board), style=BOLD)]
    lines += [Text(line, style=DIM) for line in (*sentences(board), *board.notes)]
    listed = Table(box=None, padding=(0, 1), pad_edge=False)
    for name in ("feature", "of tokens", "largest"):
        listed.add_column(name, justify="right", min_width=len(name), no_wrap=True)
    # what is left of a line of 80
    listed.add_column("fires on", max_width=20, no_wrap=True)
    listed.add_column("promotes", max_width=28, no_wrap=True)
    shown = sorted(board.features, key=lambda card: -card.frequency)[:most]
    for card in shown:
        listed.add_row(
            str(card.number),
            wording.percent(card.frequency),
            f"{card.peak:.3g}",
            Text(" ".join(quoted_tokens(board.fires_on(card)))),
            Text(" ".join(promoted(board, card.promotes[:4]))),
        )
    lines += [Text(""), listed]
    left = len(board.features) - len(shown)
    if left > 0:
        lines.append(Text(f"… and {left:,} more: --feature N shows one, --html FILE all.", DIM))
    return Group(*lines)


def _in_full(board: Dashboard, card: FeatureCard, console: Console) -> RenderableType:
    facts = (
        f"active on {wording.percent(card.frequency)} of "
        f"{wording.counted(board.tokens, 'token')}, "
        f"largest {card.peak:.3g}, mean {card.mean:.3g}"
    )
    lines = [Text(f"Feature {card.number}", style=BOLD), Text(facts, style=DIM)]
    lines.append(Text(f"activations  {sparkline(card)}  (log scale)"))
    unit = unit_of_effects(board)
    for title, several in (("promotes", card.promotes), ("suppresses", card.suppresses)):
        if several:
            strongest = several[:8]
            names = promoted(board, strongest)
            effects = [f"{one.effect:+.2g}" for one in strongest]
            told = [f"{name} {effect}" for name, effect in zip(names, effects, strict=True)]
            lines.append(Text(f"{title:<12} {', '.join(told)}  ({unit})"))
    if card.similar:
        near = ", ".join(f"{one.number} ({one.cosine:.2f})" for one in card.similar)
        lines.append(Text(f"similar      {near}"))
    lines.append(Text(""))
    lines += [_passage(board, card, top, console) for top in card.tops[:PASSAGES]]
    return Group(*lines)


def sparkline(card: FeatureCard) -> str:
    """The histogram in one line, from its first bin that is used to its last.

    Heights are logarithms: weak activations are a hundred times as frequent as strong ones.
    """
    counts = np.asarray(card.histogram)
    used = np.flatnonzero(counts)
    if not len(used):
        return "–"
    heights = np.log1p(counts[used[0] : used[-1] + 1])
    steps = np.ceil(heights / heights.max() * (len(BARS) - 1)).astype(int)
    return "".join(BARS[step] for step in steps)


def _passage(board: Dashboard, card: FeatureCard, top: Top, console: Console) -> Text:
    theme, colours = terminal_theme(), has_colour(console)
    line = Text(f"{top.largest:7.3g}  ", style=DIM, no_wrap=True, overflow="ellipsis")
    for place, piece in enumerate(board.pieces(top)):
        shown = wording.visible(piece.replace("\n", "⏎"))
        level = float(top.values[place]) / card.peak if card.peak > 0 else 0.0
        if level < FAINT:
            line.append(shown, Style())
        elif colours:
            line.append(shown, level_style(level, False, theme))
        else:
            # without colours the strongest token stands between marks
            line.append(f"«{shown}»" if place == top.place else shown, Style())
    return line
