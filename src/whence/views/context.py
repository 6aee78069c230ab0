"""What of an output came from its context, in a terminal; and the sentences that all views say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np
from jaxtyping import Float
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.context_use import LARGE_CHANGE
from whence.core.contextual import ContextUse
from whence.views import wording
from whence.views.generation import decoding_line_of, output_name, percent
from whence.views.terminal import fit, to_text
from whence.views.verdicts import overall

MOST_SAID = 3  # words that the answer speaks of
MOST_SENTENCES = 4  # that were written, of which the answer says what each rests on
MOST_SHOWN = 600  # characters of a context; of a longer one the beginning
MOST_ROWS = 40
LONGEST_WORD, LONGEST_SOURCE, LONGEST_QUOTE = 16, 40, 160
LONGEST_SAID = 120  # characters of the input and of the output, in a sentence
HARDLY = 1.25  # a probability that changes by less hardly changes
DIM, BOLD = Style(dim=True), Style(bold=True)
UNITS_OF = {"kl-divergence": " nats", "p-cxmi": " bits", "in-context-pvi": " nats"}


@dataclass(frozen=True, eq=False)
class Found:
    """A written word of which some token depends on the context."""

    outputs: range
    numbers: tuple[int, ...]  # the selected ones among its tokens
    name: str
    probability: float
    without: float
    score: float
    instead: str | None  # the first piece of what would stand there; None where it is the same

    def scores(self, use: ContextUse, method: str) -> Float[np.ndarray, " unit"]:
        """What each unit of the context did for its selected tokens together."""
        return np.sum([use.of(number, method).scores for number in self.numbers], axis=0)

    @property
    def strongest(self) -> int:
        """The token that stands for the word where only one can: the first that was selected."""
        return self.numbers[0]


def found_words(use: ContextUse) -> list[Found]:
    """The words that depend on the context, in reading order."""
    words = []
    for outputs in use.words:
        numbers = tuple(number for number in outputs if number in use.selected)
        if numbers:
            words.append(_found(use, outputs, numbers))
    return words


def _found(use: ContextUse, outputs: range, numbers: tuple[int, ...]) -> Found:
    tokens = [use.outputs[number] for number in outputs]
    first = use.outputs[numbers[0]]
    return Found(
        outputs=outputs,
        numbers=numbers,
        name=word_name(use, outputs),
        probability=prod(token.probability for token in tokens),
        without=prod(token.without for token in tokens),
        score=max((use.outputs[number].score for number in numbers), key=abs),
        instead=None if first.is_same else first.instead,
    )


def word_name(use: ContextUse, outputs: range) -> str:
    """A written word as it is told."""
    return output_name(use.passage.outputs_text(outputs))


# ---------------------------------------------------------------------- what is said


def _output_text(use: ContextUse) -> str:
    """All that was written or given; its special tokens where it is nothing else."""
    text = use.text.strip(" ")
    return text if text.strip() else " ".join(output_name(output.name) for output in use.outputs)


def question(use: ContextUse) -> str:
    """What was asked, and of which text: the first line of every view."""
    text = wording.beginning(_output_text(use), LONGEST_SAID)
    asked = wording.beginning(use.input, LONGEST_SAID)
    said = wording.goes_on(is_by_model(use))
    return f"{said} {text} after {asked}: which words of it depend on the context?"


def is_by_model(use: ContextUse) -> bool:
    """Whether the model wrote the output; a text that was given it did not write."""
    return "given" not in use.decoding


def standing(use: ContextUse) -> str:
    """What the output is, in a word: written, or given."""
    return wording.standing(is_by_model(use))


def answer(use: ContextUse) -> list[str]:
    """What may be said in a few sentences: what was found, what it rests on, and how sure it is.

    The first one says what was asked.
    """
    words = found_words(use)
    if not words:
        return [question(use), nothing_found(use), *_others(use)]
    said = [question(use), _counted(use, words)]
    if is_of_texts(use):
        said += list(_rests_on(use))
    strongest = sorted(words, key=lambda word: -abs(word.score))[:MOST_SAID]
    said += [_about(use, word) for word in strongest]
    return [*said, *_others(use)]


def _others(use: ContextUse) -> list[str]:
    """What is said of words that were not selected: how far the likeliest to matter changed.

    Said where there are such words, of the one whose own probability changes most.
    """
    others = [
        outputs
        for outputs in use.words
        if use.outputs[outputs.start].word is not None
        and not any(number in use.selected for number in outputs)
    ]
    if not others:
        return []
    largest = max(others, key=lambda outputs: _times(use, outputs))
    name = wording.quoted(word_name(use, largest))
    chances = _chances(*_both(use, largest))
    times = _times(use, largest)
    one = len(others) == 1
    whom = _of_which(use, others)
    if times >= LARGE_CHANGE:
        many = sum(_times(use, outputs) >= LARGE_CHANGE for outputs in others) - 1
        more = f", and {many} more" if many else ""
        how = "Less far out stands" if use.selected else "Most of all changes"
        return [f"{how} {name}: {chances}{more}."]
    if _look_alike(*_both(use, largest)) and times < HARDLY:
        return [f"{whom} {'is' if one else 'are'} about as likely without it."]
    if one:
        verb = "hardly changes" if times < HARDLY else "changes less"
        if not use.selected and times >= HARDLY:
            verb = "changes little"
        return [f"{whom}, {name}, {verb}: {chances}."]
    if times < HARDLY:
        return [f"{whom} hardly change, most of all {name}: {chances}."]
    of_whom = f"{whom[0].lower()}{whom[1:]}"
    return [f"Of {of_whom} {name} changes most: {chances}."]


def _of_which(use: ContextUse, others: Sequence[range]) -> str:
    """The words that were not selected: all of them, where none was."""
    which = "The other" if use.selected else "Its only" if len(others) == 1 else "Its"
    return f"{which} {'word' if len(others) == 1 else 'words'}"


def _look_alike(with_it: float, without: float) -> bool:
    """Whether two probabilities are shown as the same."""
    return percent(with_it) == percent(without)


def _chances(with_it: float, without: float) -> str:
    """Both probabilities of a word; how many times as likely, where they are shown as the same."""
    both = f"{percent(with_it)} with the context, {percent(without)} without"
    low, high = sorted((with_it, without))
    if not _look_alike(with_it, without) or high < HARDLY * low:
        return both
    ratio = high / low if low else inf
    times = "many" if ratio == inf else f"{ratio:,.0f}" if ratio >= 9.5 else f"{ratio:.2g}"
    return f"{both}, which is {times} times as {'likely' if with_it > without else 'unlikely'}"


def _both(use: ContextUse, outputs: range) -> tuple[float, float]:
    """The probability of a word with the context, and without."""
    tokens = [use.outputs[number] for number in outputs]
    return prod(token.probability for token in tokens), prod(token.without for token in tokens)


def _times(use: ContextUse, outputs: range) -> float:
    """How many times as likely, or as unlikely, the context makes a word."""
    low, high = sorted(_both(use, outputs))
    if low == high:
        return 1.0
    return inf if low == 0 else high / low


def _counted(use: ContextUse, words: Sequence[Found]) -> str:
    """How many words depend on the context, and which; a special token is none, and told apart."""
    starts = {o.start for o in use.words if use.outputs[o.start].word is not None}
    real = [word for word in words if word.outputs.start in starts]
    special = [word for word in words if word.outputs.start not in starts]
    of_all = f"{len(starts)} {standing(use)} {'word' if len(starts) == 1 else 'words'}"
    depend = "depends" if len(real) == 1 else "depend"
    if use.selection.is_relative:  # others may depend on it as well, only less
        depend = f"{depend} most" if real else "stand out as depending"
    said = f"{len(real)} of {of_all} {depend} on the context"
    if real:
        said += f": {wording.few([wording.quoted(word.name) for word in real], 6)}"
    if special:
        kind, verb = ("token", "does") if len(special) == 1 else ("tokens", "do")
        tokens = f"the special {kind} {wording.few([wording.quoted(w.name) for w in special], 6)}"
        said += f"; so {verb} {tokens}" if real else f", but {tokens} {verb}"
    return f"{said}."


def is_of_texts(use: ContextUse) -> bool:
    """Whether the units are whole sentences or documents, which an answer can rest on."""
    return use.passage.kind in ("sentence", "section")


def _rests_on(use: ContextUse) -> Iterator[str]:
    """What the answer rests on. Where several sentences were written, each is told by itself.

    Added up, the words of a long sentence that was merely copied would outweigh a short answer.
    """
    method = wording.visible(use.methods[0])
    if len(use.sentences) == 1:
        sources = use.sources()
        if sources:
            yield f"By {method}, this answer rests most on {_quoted(use, sources[0])}"
        return

    whole = "what was written" if is_by_model(use) else "the given continuation"
    by_number = {}
    for number, outputs in enumerate(use.sentences, start=1):
        sources = use.sources(outputs)
        if sources:
            by_number[number] = sources[0]
    if 1 not in by_number:
        yield f"No word of the first sentence of {whole} stands out as depending on the context."
    for number, unit in list(by_number.items())[:MOST_SENTENCES]:
        which = f"sentence {number} of {whole}"
        yield f"By {method}, {which} rests most on {_quoted(use, unit)}"
    left = len(by_number) - MOST_SENTENCES
    if left > 0:
        rest = "1 further sentence rests" if left == 1 else f"{left} further sentences rest"
        yield f"{rest} on the context, too."


def _quoted(use: ContextUse, unit: int) -> str:
    """Where a unit of the context stands, and how it begins; it ends a sentence."""
    content = use.units.texts[unit].strip()
    quote = wording.beginning(content, LONGEST_QUOTE)
    end = "" if content.endswith((".", "!", "?", "…")) else "."
    return f"{wording.visible(use.place(unit))}: {quote}{end}"


def _about(use: ContextUse, word: Found) -> str:
    """One word: what it rests on, and what would have stood there."""
    chances = _chances(word.probability, word.without)
    name = f"{wording.quoted(word.name)} ({chances})"
    return f"{_rests(use, word, name)}; {_without(word)}{_evidence(use, word)}."


def _rests(use: ContextUse, word: Found, name: str) -> str:
    """What a word rests on; and what speaks against it, where that is stronger."""
    sources = use.sources(word.strongest)
    against = use.opposing(word.strongest) if is_opposed(use, word, use.methods[0]) else ()
    if not use.of(word.strongest).target.sign_of_support:
        return _moves(use, name, sources, against)
    if against and not sources:
        return f"The context speaks against {name}, most of all {_units(use, against)}"
    if not sources:
        return f"{name} rests on no part of the context in particular"
    rests = f"{name} rests most on {_units(use, sources)}"
    if against:
        rests += f", and more speaks against it: {_units(use, against)}"
    return rests


def _moves(use: ContextUse, name: str, sources: Sequence[int], against: Sequence[int]) -> str:
    """What moves all that could stand in place of a word, where that is read (``kl``)."""
    place = f"What could stand in place of {name}"
    if not sources and not against:
        return f"{place} is moved by no part of the context in particular"
    parts = []
    if sources:
        parts.append(f"is moved most by {_units(use, sources)}")
    if against:
        parts.append(f"is kept as it is without context by {_units(use, against)}")
    return f"{place} {', and '.join(parts)}"


def opposed_words(use: ContextUse, word: Found, method: str) -> str:
    """What is said before units that score below zero: what they do to the word."""
    has_sides = use.of(word.strongest, method).target.sign_of_support
    return "against it" if has_sides else "kept as without context by"


def is_opposed(use: ContextUse, word: Found, method: str) -> bool:
    """Whether what speaks most of a word speaks against it."""
    scores = use.of(word.strongest, method).scores
    return bool(-scores.min(initial=0.0) > scores.max(initial=0.0))


def _units(use: ContextUse, units: Sequence[int]) -> str:
    """Units of the context as a sentence names them, the strongest first."""
    if is_of_texts(use):
        return wording.visible(use.place(units[0]))
    named = wording.few([wording.quoted(use.units.names[unit]) for unit in units])
    if len(units) == 1:
        named += f" ({wording.visible(use.place(units[0]))})"
    return named


def _without(word: Found) -> str:
    if word.instead is not None:
        return f"without context {wording.quoted(word.instead)} would be likelier"
    too = "without context it would stand there too"
    was_likelier = word.probability < word.without
    if was_likelier and percent(word.probability) != percent(word.without):
        return f"{too}, and be likelier"
    return too


def _evidence(use: ContextUse, word: Found) -> str:
    ruling = overall(use.of(word.strongest))
    if ruling is None:
        return ""
    return f"; its sources beside random ones: {ruling.words}"


def nothing_found(use: ContextUse) -> str:
    """Said where no word was selected: plainly, with the largest score that there was.

    Where tokens were held against each other, or one is above the floor, it is not said that none
    depends on the context, but that none stands out.
    """
    selection = use.selection
    largest = max(use.scores.tolist(), key=abs)
    floor = "" if selection.least is None else f", where {shown(use, selection.least)} is the floor"
    is_below = selection.least is not None and abs(largest) <= selection.least
    changes = any(_times(use, outputs) >= LARGE_CHANGE for outputs in use.words)
    depends = "depends" if is_below and not changes else "stands out as depending"
    return (
        f"No word of the output {depends} on the context: the largest "
        f"{selection.measure} is {shown(use, largest)}{floor}."
    )


def shown(use: ContextUse, score: float) -> str:
    """A score of the measure with its unit."""
    return f"{score:.3g}{UNITS_OF.get(use.selection.measure, '')}".replace("-", "−")


def selection_line(use: ContextUse) -> str:
    """How words were selected."""
    selection = use.selection
    parts = []
    if selection.threshold is not None:
        parts.append(
            f"at {shown(use, selection.threshold)} (mean + {selection.deviations:g} × standard "
            "deviation of this output)"
        )
    if selection.least is not None:
        parts.append(f"above the floor of {shown(use, selection.least)}")
    said = " and ".join(parts)
    if selection.factor is not None:
        said += f", or if it makes them {selection.factor:g} times as likely or as unlikely"
    if selection.most is not None:
        said += f"{' and ' if said else ''}the {selection.most} strongest at most"
    return f"Tokens depend on the context {said}; measure: {selection.measure}."


def remarks(use: ContextUse) -> list[str]:
    """How it came about, and what else is to be known."""
    lines = [selection_line(use), decoding_line_of(_decoding(use))]
    lines += [f"{wording.visible(note[:1].upper() + note[1:])}." for note in use.notes]
    for name, why in use.skipped.items():
        lines.append(f"{wording.visible(name)} was left out: {wording.visible(why)}")
    return lines


def _decoding(use: ContextUse) -> dict[str, object]:
    """The options of decoding alone."""
    return {k: v for k, v in use.decoding.items() if k not in ("separator", "chat")}


def model_line(use: ContextUse) -> str:
    """Which model it was."""
    name, architecture = use.provenance.model, use.provenance.architecture
    return f"Model: {wording.visible(name)} ({wording.visible(architecture)})."


# ---------------------------------------------------------------------- the terminal


def context_text(use: ContextUse) -> str:
    """What ``print(use)`` shows: plain when the output is no terminal."""
    return to_text(lambda console: context_view(use, console))


def context_view(use: ContextUse, console: Console) -> RenderableType:
    """The texts, the answer, every written word in both runs, and how it came about."""
    del console
    asked, *said = answer(use)
    parts: list[RenderableType] = [Text(asked, BOLD), Text(), _texts(use), Text()]
    parts += [Text("\n".join(said)), Text(), _table(use)]
    if len(use.words) > MOST_ROWS:
        parts.append(
            Text(f"{len(use.words) - MOST_ROWS} more are in the page and in .table().", DIM)
        )
    parts.append(Text())
    lines = [*remarks(use), model_line(use)]
    if len(use.methods) > 1:
        others = ", ".join(map(wording.visible, use.methods[1:]))
        lines.append(f"Also by {others}: .to_html() shows all, use[method] has every score.")
    lines.append(f"{wording.cost(use.cost)}.")
    return Group(*parts, *[Text(line, DIM) for line in lines])


def _texts(use: ContextUse) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=DIM)
    grid.add_column(overflow="fold")
    for name, content in section_texts(use):
        short = content if len(content) <= MOST_SHOWN else f"{content[:MOST_SHOWN].rstrip()} …"
        grid.add_row(Text(wording.visible(name)), Text(wording.visible(short, keep="\n")))
    grid.add_row(Text("input"), Text(wording.visible(use.input, keep="\n")))
    written = wording.visible(use.text.strip(" "), keep="\n")
    grid.add_row(Text(standing(use)), Text(written, BOLD))
    return grid


def section_texts(use: ContextUse) -> list[tuple[str, str]]:
    """The context by its parts."""
    passage = use.passage
    return [(part.name, passage.text[part.start : part.end]) for part in passage.sections]


def _table(use: ContextUse) -> RenderableType:
    by_start = {word.outputs.start: word for word in found_words(use)}
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "right", "right", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)
    heads = ("", standing(use), "with", "without", use.selection.measure, "instead", "rests on")
    table.add_row(*[Text(head, BOLD) for head in heads])
    for outputs in use.words[:MOST_ROWS]:
        table.add_row(*_cells(use, outputs, by_start.get(outputs.start)))
    return table


def _cells(use: ContextUse, outputs: range, word: Found | None) -> list[Text]:
    tokens = [use.outputs[number] for number in outputs]
    cells = [
        Text("●" if word else ""),
        Text(_cut(word_name(use, outputs), LONGEST_WORD), BOLD if word else Style()),
        Text(percent(prod(token.probability for token in tokens))),
        Text(percent(prod(token.without for token in tokens))),
        Text(_three_places(max((token.score for token in tokens), key=abs))),
    ]
    if word is None:
        return [*cells, Text(""), Text("")]
    instead = "the same" if word.instead is None else output_name(word.instead)
    named = ", ".join(_source_names(use, use.sources(word.strongest)))
    against = use.opposing(word.strongest)
    if not named and against:
        before = opposed_words(use, word, use.methods[0])
        named = f"{before}: {', '.join(_source_names(use, against))}"
    return [*cells, Text(_cut(instead, LONGEST_WORD)), Text(_cut(named, LONGEST_SOURCE))]


def _three_places(score: float) -> str:
    """A score in a column; what rounds to nothing has no sign."""
    return f"{score:.3f}".replace("-0.000", "0.000").replace("-", "−")


def _source_names(use: ContextUse, units: Sequence[int]) -> list[str]:
    if is_of_texts(use):
        return [wording.visible(use.place(unit)) for unit in units]
    names = use.units.distinct_names
    return [wording.visible(names[unit]) for unit in units]


def _cut(name: str, most: int) -> str:
    return fit(name, most).rstrip()
