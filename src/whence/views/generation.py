"""A text that a model wrote, in a terminal: the answer, then each word with what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.generation import Generation
from whence.core.showing import signs
from whence.core.target import Target
from whence.views import wording
from whence.views.answering import Sentence, asked, cautions, plain, sentences
from whence.views.palette import FAINT, Theme, terminal_theme
from whence.views.sides import sides_of
from whence.views.terminal import fit, has_colour, level_style, to_text

MOST_OF_PROMPT = 320  # characters; of a longer prompt the end is shown, which was read last
MOST_ROWS = 40
SOURCES = 3  # of each written word
SOURCES_OF_CONTRAST = 5
LONGEST_WORD, LONGEST_SOURCE, PROBABILITY_WIDTH = 16, 20, 8  # cells
MATRIX_ROWS, MATRIX_COLUMNS = 14, 20  # of the largest matrix that is drawn
NAME_HEIGHT = 8  # letters of a column's name, from top to bottom
LONGEST_OPTION = 40  # characters of its value
LONGEST_SAID = 120  # characters of what was written, in a sentence
# what it means to draw a token by its probability, as options of decoding
AS_PROBABLE = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
# what a sum of scores is a sum of, by the reading
ADDED = {
    "log-probability": "log-probabilities",
    "cross-entropy": "cross-entropies",
    "kl": "divergences",
}
SHADES = " ░▒▓█"
DIM, BOLD = Style(dim=True), Style(bold=True)
NO_SOURCE = "–"


# ---------------------------------------------------------------------- what every view shows


@dataclass(frozen=True, eq=False)
class Row:
    """A written word, or a token of one: how likely it was, and the scores of what is before it."""

    outputs: range
    name: str
    probability: float
    scores: Float[np.ndarray, " unit"]
    sources: tuple[str, ...]  # their names

    @property
    def levels(self) -> Float[np.ndarray, " unit"]:
        """Scores by the largest size among them."""
        largest = np.abs(self.scores).max(initial=0.0)
        return self.scores / largest if largest else np.zeros_like(self.scores)

    def strongest(self, count: int, shown: Callable[[float], str]) -> list[int]:
        """The units with the largest scores; none whose score is shown as nothing."""
        order = np.argsort(-np.abs(self.scores), kind="stable")[:count]
        return [int(i) for i in order if float(shown(float(self.scores[i])))]


def rows_of(g: Generation, method: str) -> list[Row]:
    """A row for each word of which all tokens were explained, and for each token of others."""
    return [_row(g, outputs, method) for outputs in g.wholes]


def _row(g: Generation, outputs: range, method: str) -> Row:
    written = [g.outputs[i] for i in outputs]
    return Row(
        outputs=outputs,
        name=output_name(g.passage.outputs_text(outputs)),
        probability=prod(output.probability for output in written),
        scores=g.together(outputs, method),
        sources=_sources(g, outputs.start, method),
    )


def _sources(g: Generation, output: int, method: str) -> tuple[str, ...]:
    """What stands before an output; of a word that it goes on with, the part before it."""
    before = g.of(output, method).units
    names = unit_names(g)[: len(before)]
    own = g.outputs[output].unit
    if own is not None and own < len(before):
        names[own] = wording.visible(before.names[own])
    return tuple(names)


def output_name(name: str) -> str:
    """What was written as a table names it: trimmed, white space by its sign.

    >>> output_name(" movie"), output_name("\\n")
    ('movie', '⏎')
    """
    return wording.visible(name.strip()) or signs(name)


def is_signed(g: Generation, method: str) -> bool:
    """Whether the method tells for from against."""
    return all(a.signed for a in g[method])


def unit_names(g: Generation) -> list[str]:
    """The units by names of which no two are alike."""
    return [wording.visible(name) for name in g.units.distinct_names]


def is_by_model(g: Generation) -> bool:
    """Whether the model wrote what follows the prompt; a text that was given it did not write."""
    return "given" not in g.decoding


def standing(g: Generation) -> str:
    """What follows the prompt, in a word: written, or given."""
    return wording.standing(is_by_model(g))


def question(g: Generation) -> str:
    """What was asked, and what follows the prompt: the first line of every view.

    Said of a contrast where there is one, of one word where the evidence is about one, and else of
    all that follows.
    """
    all_of_it = wording.beginning(_all_written(g), LONGEST_SAID)
    asks = "Why did the model write" if is_by_model(g) else "Why does the text go on with"
    contrast = _asked_contrast(g)
    if contrast:
        return wording.ended(f"Why {contrast}? {wording.goes_on(is_by_model(g))} {all_of_it}")
    part = "" if g.chosen is None else _part_of_all(g, g.chosen.first.target)
    if part:
        return f"{asks} {part} in {all_of_it}?"
    return f"{asks} {all_of_it}?"


def _asked_contrast(g: Generation) -> str:
    """``“few” rather than “little”``; empty where no contrast was asked for."""
    if g.contrast is not None:
        target = g.contrast.first.target
        sides = (str(target.label), str(target.against))
        return " rather than ".join(wording.beginning(side, LONGEST_SAID) for side in sides)
    every = [a.target for a in next(iter(g.rows.values()))]
    targets = [target for target in every if target.against is not None]
    rivals = dict.fromkeys(wording.quoted(t.against) for t in targets)
    if not rivals or targets[0].read == "margin":
        return ""
    names = wording.few([wording.quoted(t.label) for t in targets])
    return f"{names} rather than {wording.few([*rivals])}"


def _part_of_all(g: Generation, target: Target) -> str:
    """What the evidence is about, where that is some of the tokens; empty where it is all."""
    steps = target.steps
    if len(steps) == len(g.outputs):
        return ""
    return wording.beginning(g.passage.outputs_text(steps), LONGEST_SAID)


def reasons(g: Generation) -> tuple[list[Sentence], list[Sentence]]:
    """What the chosen target rests on, by methods whose evidence holds; and what to mind.

    The first sentence says what was written; without evidence there is none.
    """
    if g.chosen is None:
        return [], []
    answer = g.chosen.answer
    return sentences(answer), cautions(answer)


def without_evidence(g: Generation) -> str:
    """Said where there is no evidence, and why."""
    if g.chosen is not None:
        return ""
    why = g.skipped.get("evidence", "")
    if why:
        return f"There is no evidence for these scores: {wording.visible(why)}"
    return "There is no evidence for these scores, as none was asked for: nothing says they hold."


def decoding_line(g: Generation) -> str:
    """How the text came about, in a sentence."""
    return decoding_line_of(g.decoding)


def decoding_line_of(decoding: Mapping[str, Any]) -> str:
    """The same, from the options of decoding.

    Said of how a text came about; that it was given where the model did not write it, and that it
    was drawn where it was.
    """
    options = dict(decoding)
    if "given" in options:
        return f"What follows the prompt was given, as {wording.visible(str(options['given']))}."
    limit = options.pop("max_new_tokens", None)
    beams = options.pop("num_beams", 1)
    is_drawn = options.pop("do_sample", False)
    how = "the likeliest token each time"
    if beams and beams != 1:
        how = f"beam search with {beams} beams"
    if is_drawn:
        how = f"{how}, drawn at random" if beams and beams != 1 else "tokens drawn at random"
        if all(options.get(name) == neutral for name, neutral in AS_PROBABLE.items()):
            how += ", each by its probability"
            options = {k: v for k, v in options.items() if k not in AS_PROBABLE}
    others = ", ".join(f"{k} {_short(v)}" for k, v in options.items())
    if others:
        how += f" ({others})"
    at_most = "" if limit is None else f", at most {limit} token{'' if limit == 1 else 's'}"
    return f"Decoding: {how}{at_most}."


def _short(option: Any) -> str:
    """The value of an option of decoding; of a long list its beginning."""
    shown = wording.visible(str(option))
    return shown if len(shown) <= LONGEST_OPTION else f"{shown[:LONGEST_OPTION].rstrip()}…"


def scores_line(g: Generation, method: str) -> str:
    """Which number of each written token the scores are about."""
    return f"Scores: {wording.target_of_each([a.target for a in g[method]])}."


def contrast_of(g: Generation) -> str:
    """The contrast of whole texts that was asked for; empty where there was none."""
    if g.contrast is None:
        return ""
    return wording.target(g.contrast.first.target)


def about_wholes(g: Generation, method: str) -> str:
    """How the tokens of one word are taken together; empty where each stands alone.

    Said where all tokens of some word were explained.
    """
    if all(len(outputs) == 1 for outputs in g.wholes):
        return ""
    if g.adds_up(method):
        read = g[method][0].target.read
        return (
            f"A word of several tokens has the sum of their scores, as {ADDED[read]} add up, "
            "and the product of their probabilities."
        )
    return (
        "A word of several tokens has the mean of their scores, and the product of their "
        "probabilities."
    )


def remarks(g: Generation) -> list[str]:
    """What else is to be known: what is missing, how far scores may be off, and notes.

    Said at the end: which tokens were explained where not all were, what was cut off or left out,
    how far scores may be off, and notes.
    """
    lines = []
    if len(g.explained) < len(g.outputs):
        verb = "was" if len(g.explained) == 1 else "were"
        lines.append(
            f"{len(g.explained)} of the {len(g.outputs)} {standing(g)} tokens {verb} explained."
        )
    for method, attributions in g.rows.items():
        gaps = [a.error.completeness_gap for a in attributions if a.error is not None]
        known = [gap for gap in gaps if gap is not None]
        if known:
            lines.append(f"{method}: completeness gap up to {wording.percent(max(known))}.")
        notes = dict.fromkeys(note for a in attributions if (note := wording.note(a)))
        lines += [f"{method}: {wording.visible(note)}" for note in notes]
    if g.passage.dropped:
        lines.append(f"{wording.cut_off(g.passage.dropped, ' of the prompt')}.")
    for name, why in g.skipped.items():
        if name != "evidence":
            lines.append(f"{wording.visible(name)} was left out: {wording.visible(why)}")
    without = {} if g.chosen is None else g.chosen.skipped
    for name, why in without.items():
        if name not in g.skipped:
            lines.append(f"{wording.visible(name)} has no evidence: {wording.visible(why)}")
    lines += [f"{wording.visible(note[:1].upper() + note[1:])}." for note in g.notes]
    return lines


# ---------------------------------------------------------------------- the terminal


def generation_text(g: Generation) -> str:
    """What ``print(g)`` shows: plain when the output is no terminal."""
    return to_text(lambda console: generation_view(g, console))


def generation_view(g: Generation, console: Console) -> RenderableType:
    """What was written and what it rests on; then every word with its sources; then the cost."""
    theme = terminal_theme()
    method = g.methods[0]
    rows = rows_of(g, method)
    parts: list[RenderableType] = [Text(question(g), BOLD), Text(), _texts(g), Text()]
    parts += [*_reasons(g), Text()]
    parts += list(_contrast(g))
    parts += [_table(g, method, rows[:MOST_ROWS], theme, console)]
    parts += [Text(line, DIM) for line in _below(g, method, rows)]
    matrix = list(_matrix(g, method, rows, theme, has_colour(console)))
    if matrix:
        parts += [Text(), *matrix]
    parts += [Text(), *[Text(line, DIM) for line in _about(g)]]
    return Group(*parts)


def _texts(g: Generation) -> RenderableType:
    """The prompt, and what was written after it."""
    prompt = g.prompt
    if len(prompt) > MOST_OF_PROMPT:
        prompt = f"… {prompt[-MOST_OF_PROMPT:].lstrip()}"
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=DIM)
    grid.add_column(overflow="fold")
    grid.add_row(Text("prompt"), Text(wording.visible(prompt, keep="\n")))
    grid.add_row(Text(standing(g)), Text(_all_written(g), BOLD))
    return grid


def _all_written(g: Generation) -> str:
    text = wording.visible(g.text.strip(" "), keep="\n")
    return text if text.strip() else " ".join(output_name(output.name) for output in g.outputs)


def _reasons(g: Generation) -> Iterator[RenderableType]:
    """The answer without its first sentence: what was written stands above it."""
    said, careful = reasons(g)
    if said:
        yield Text(" ".join(plain(sentence) for sentence in said[1:]))
    else:
        yield Text(without_evidence(g))
    for caution in careful:
        yield Text.assemble(("Caution: ", BOLD), plain(caution))
    if g.chosen is not None and asked(g.chosen.answer):
        yield Text(asked(g.chosen.answer), DIM)


def _contrast(g: Generation) -> Iterator[RenderableType]:
    """The strongest units of a contrast of whole texts, a line for each method.

    Said of a contrast of whole texts: ``Scores of the contrast, the log-probability of “few” less
    that of “a little”: for +, against −``.
    """
    if g.contrast is None:
        return
    signs = any(a.signed for a in g.contrast.attributions.values())
    heading = sides_of(g.contrast.first.target).heading
    how = f": {heading}" if signs else ", without signs"
    yield Text(f"Scores of the contrast, {contrast_of(g)}{how}", DIM)
    for method, a in g.contrast.attributions.items():
        form = wording.score_format(a.scores.tolist(), a.signed)
        names = a.units.distinct_names
        strongest = np.argsort(-np.abs(a.scores), kind="stable")[:SOURCES_OF_CONTRAST]
        told = []
        for unit in strongest.tolist():
            score = form(float(a.scores[unit])).replace("-", "−")
            told.append(f"{_cut(wording.visible(names[unit]), LONGEST_SOURCE)} {score}")
        yield Text(f"{wording.visible(method)}: {', '.join(told)}")
    yield Text()


def _table(
    g: Generation, method: str, rows: Sequence[Row], theme: Theme, console: Console
) -> RenderableType:
    """A line for each word: its probability, and the strongest of what stands before it.

    Said above the table of a terminal: ``by occlusion, the strongest sources of each: for +,
    against −``.
    """
    signed = is_signed(g, method)
    shown = [wording.score_format(row.scores.tolist(), signed) for row in rows]
    strongest = [row.strongest(SOURCES, form) for row, form in zip(rows, shown, strict=True)]
    numbers = [
        [form(float(row.scores[unit])).replace("-", "−") for unit in units]
        for row, units, form in zip(rows, strongest, shown, strict=True)
    ]
    number_width = max((len(number) for row in numbers for number in row), default=0)

    # names take what numbers leave of the line
    word_width = max(cell_len(fit(row.name, LONGEST_WORD).rstrip()) for row in rows)
    word_width = max(word_width, len(standing(g)))
    left = console.width - word_width - PROBABILITY_WIDTH - 2 * (1 + SOURCES)
    name_width = min(max(left // SOURCES - number_width - 1, 4), LONGEST_SOURCE)

    said = sides_of(g[method][0].target)
    head = said.heading if signed else "without signs"
    title = f"by {wording.visible(method)}, the strongest sources of each: {head}"
    lines = [Text(title, DIM), Text(scores_line(g, method), DIM)]
    columns = f"{standing(g).ljust(word_width)}  {'prob.'.rjust(PROBABILITY_WIDTH)}  rests on"
    lines.append(Text(columns, BOLD, no_wrap=True))
    for row, units, scores in zip(rows, strongest, numbers, strict=True):
        line = Text(no_wrap=True)
        line.append(fit(row.name, word_width), BOLD)
        line.append(f"  {percent(row.probability).rjust(PROBABILITY_WIDTH)}")
        for unit, number in zip(units, scores, strict=True):
            score = number.rjust(number_width)
            style = level_style(float(row.levels[unit]), signed, theme)
            line.append(f"  {fit(row.sources[unit], name_width)} ")
            line.append(score, style if has_colour(console) else Style())
        if not units:
            line.append(f"  {NO_SOURCE}")
        lines.append(line)
    return Group(*lines)


def percent(probability: float) -> str:
    """A probability in a column.

    >>> percent(0.0212), percent(0.627), percent(0.0)
    ('2.1 %', '63 %', '0 %')
    """
    return wording.percent(min(probability, 1.0))


def _cut(name: str, most: int) -> str:
    """A name that takes no more than so many cells."""
    return fit(name, most).rstrip()


def _below(g: Generation, method: str, rows: Sequence[Row]) -> list[str]:
    """Said below a table in a terminal of more words than are shown."""
    lines = []
    left = len(rows) - MOST_ROWS
    if left > 0:
        verb = "is" if left == 1 else "are"
        lines.append(f"{left} more {verb} in the page (.to_html) and in .table().")
    lines.append(about_wholes(g, method))
    return [line for line in lines if line]


# ---------------------------------------------------------------------- a small matrix


def _matrix(
    g: Generation, method: str, rows: Sequence[Row], theme: Theme, coloured: bool
) -> Iterator[Text]:
    """Written words × units in shades, where there are few of both.

    Said below a matrix that is small enough for a terminal.
    """
    columns = max((len(row.scores) for row in rows), default=0)
    if not rows or len(rows) > MATRIX_ROWS or columns > MATRIX_COLUMNS:
        return
    signed = is_signed(g, method)
    width = max(cell_len(_cut(row.name, LONGEST_WORD)) for row in rows)
    names = [wording.visible(name) for name in g.units.names[:columns]]
    yield from _heads(names, width)
    for row in rows:
        name = _cut(row.name, LONGEST_WORD)
        line = Text(name + " " * (width - cell_len(name)) + " ", no_wrap=True)
        for level in row.levels.tolist():
            line.append(" ")
            if coloured:
                line.append("  ", level_style(level, signed, theme))
            else:
                line.append(_shade(level, signed))
        yield line
    full = "Full shade is the strongest source of a row."
    signs = f"{sides_of(g[method][0].target).key}." if signed and not coloured else ""
    yield Text(f"{full} {signs}".strip(), DIM)


def _shade(level: float, signed: bool) -> str:
    if abs(level) < FAINT:
        return " ·"
    shade = SHADES[max(1, round(abs(level) * (len(SHADES) - 1)))]
    if not signed:
        return shade * 2
    return ("+" if level > 0 else "−") + shade


def _heads(names: Sequence[str], width: int) -> Iterator[Text]:
    """The names of the columns from top to bottom, all ending on the last line."""
    short = [list(name[:NAME_HEIGHT]) for name in names]
    deep = max(map(len, short))
    for line in range(deep):
        cells = []
        for name in short:
            place = line - deep + len(name)
            letter = name[place] if place >= 0 else ""
            cells.append(" " + letter + " " * (2 - cell_len(letter)))
        yield Text(f"{' ' * width} {''.join(cells)}", DIM, no_wrap=True)


# ---------------------------------------------------------------------- how it came about


def _about(g: Generation) -> list[str]:
    """Said at the end in a terminal; of other methods where there are some."""
    first = next(iter(g.rows.values()))[0]
    others = ", ".join(map(wording.visible, g.methods[1:]))
    lines = [f"{decoding_line(g)} Model: {wording.visible(first.provenance.model)}."]
    if others:
        lines.append(f"Also by {others}: .to_html() shows all, g[method] has every score.")
    lines += remarks(g)
    lines.append(f"{wording.cost(g.cost)}.")
    return lines
