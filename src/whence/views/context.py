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
from whence.core.contextual import ContextUse, Dependence
from whence.core.units import distinct
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
# a probability hardly changes by a smaller factor, and by less than so much
HARDLY, HARDLY_MORE = 1.25, 0.1
SURELY_LIKELIEST = 0.5  # nothing else is as likely as what is likelier than that
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
    # the token that would stand there where they part; None where the whole word would
    instead: str | None

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
    others = [token.instead for token in tokens if not _is_the_same(token)]
    return Found(
        outputs=outputs,
        numbers=numbers,
        name=distinct_name(use, outputs),
        probability=prod(token.probability for token in tokens),
        without=prod(token.without for token in tokens),
        score=max((use.outputs[number].score for number in numbers), key=abs),
        instead=others[0] if others else None,
    )


def _is_the_same(token: Dependence) -> bool:
    """Whether a reader sees the same token without context, perhaps spelt by another of its ids."""
    return token.is_same or output_name(token.instead) == output_name(token.name)


def word_name(use: ContextUse, outputs: range) -> str:
    """A written word as it is told."""
    return output_name(use.passage.outputs_text(outputs))


def distinct_name(use: ContextUse, outputs: range) -> str:
    """The same; a word that stood there before has its number, as units of a text do."""
    names = distinct([word_name(use, word) for word in use.words])
    return next(
        name for name, word in zip(names, use.words, strict=True) if word.start == outputs.start
    )


# ---------------------------------------------------------------------- what is said


def _output_text(use: ContextUse) -> str:
    """All that was written or given; its special tokens where it is nothing else."""
    text = use.text.strip(" ")
    return text if text.strip() else " ".join(output_name(output.name) for output in use.outputs)


def question(use: ContextUse) -> str:
    """What was asked, and of which text: the first line of every view.

    Said first in every view of a context's use.
    """
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

    Said where there are such words, of the one whose own probability changes by the largest factor.
    """
    words = [outputs for outputs in use.words if use.outputs[outputs.start].word is not None]
    others = [outputs for outputs in words if not any(number in use.selected for number in outputs)]
    if not others:
        return []
    largest = max(others, key=lambda outputs: _times(use, outputs))
    with_it, without = both_shown(*_both(use, largest))
    name = wording.quoted(distinct_name(use, largest))
    chances = f"{with_it} with the context, {without} without"
    is_one = len(others) == 1
    whom = f"{'other ' if len(others) < len(words) else ''}{'word' if is_one else 'words'}"
    if with_it == without:
        return [f"The {whom} {'is' if is_one else 'are'} about as likely without it."]
    if _times(use, largest) >= LARGE_CHANGE:
        return [f"{_far_out(use, others, name, chances)}."]
    hardly = all(_hardly_changes(*_both(use, outputs)) for outputs in others)
    if is_one:
        how = f", {name}, hardly changes" if hardly else f" is {name}"
        return [f"The {whom}{how}: {chances}."]
    if hardly:
        return [f"The {whom} hardly change, by the largest factor {name}: {chances}."]
    return [f"Of the {whom} {name} changes by the largest factor: {chances}."]


def _hardly_changes(with_it: float, without: float) -> bool:
    """Whether a probability is nearly the same: by its size, and in per cent."""
    low, high = sorted((with_it, without))
    return bool(high < HARDLY * low and high - low < HARDLY_MORE)


def _far_out(use: ContextUse, others: Sequence[range], name: str, chances: str) -> str:
    """Said where a word was not selected though its own probability changes fourfold, or more.

    It stands less far out than the selected ones only where its score says so: a rule may have
    another reason to leave it out.
    """
    far = [outputs for outputs in others if _times(use, outputs) >= LARGE_CHANGE]
    many = len(far) - 1
    if not use.selected:
        more = f"; {many} more {'changes' if many == 1 else 'change'} far" if many else ""
        return f"By the largest factor changes {name}: {chances}{more}"
    farthest = max(abs(use.outputs[number].score) for outputs in far for number in outputs)
    nearest = min(abs(use.outputs[number].score) for number in use.selected)
    less = farthest <= nearest
    if not many:
        return f"{'Less far out stands' if less else 'Not selected was'} {name}: {chances}"
    which = "Less far out stand" if less else "Not selected were"
    return f"{which} {name} ({chances}) and {wording.counted(many, 'more word')}"


def both_shown(with_it: float, without: float) -> tuple[str, str]:
    """Two probabilities of one word, with more digits where they would look the same.

    >>> both_shown(0.15, 0.0003), both_shown(2e-5, 3e-7)
    (('15 %', '0.03 %'), ('0.002 %', '3e−05 %'))
    """
    shown_both = percent(with_it), percent(without)
    low, high = sorted((with_it, without))
    if shown_both[0] != shown_both[1] or high < HARDLY * low or low == high:
        return shown_both
    one, other = (f"{100 * chance:.2g} %".replace("-", "−") for chance in (with_it, without))
    return one, other


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
    """How many words depend on the context, and which; a special token is none, and told apart.

    Said where something was selected.
    """
    starts = {o.start for o in use.words if use.outputs[o.start].word is not None}
    real = [word for word in words if word.outputs.start in starts]
    special = [word for word in words if word.outputs.start not in starts]
    kind, verb = ("token", "does") if len(special) == 1 else ("tokens", "do")
    tokens = f"the special {kind} {wording.few([wording.quoted(w.name) for w in special], 6)}"
    if not real:
        depends = "stands out as depending" if use.selection.is_relative else "depends"
        return f"No {standing(use)} word {depends} on the context, but {tokens} {verb}."
    depend = "depends" if len(real) == 1 else "depend"
    if use.selection.is_relative and len(real) < len(starts):
        depend = f"{depend} most"  # others may depend on it as well, only less
    of_all = wording.counted(len(starts), f"{standing(use)} word")
    names = wording.few([wording.quoted(word.name) for word in real], 6)
    so_do = f"; so {verb} {tokens}" if special else ""
    return f"{len(real)} of {of_all} {depend} on the context: {names}{so_do}."


def is_of_texts(use: ContextUse) -> bool:
    """Whether the units are whole sentences or documents, which an answer can rest on."""
    return use.passage.kind in ("sentence", "section")


def _rests_on(use: ContextUse) -> Iterator[str]:
    """What the answer rests on. Where several sentences were written, each is told by itself.

    Added up, the words of a long sentence that was merely copied would outweigh a short answer.
    Said where the units are whole sentences or documents.
    """
    by = f"By {wording.visible(use.methods[0])}"
    if len(use.sentences) == 1:
        sources = use.sources()
        if sources:
            yield f"{by}, {_what_rests(use, 'this answer')} {_quoted(use, sources[0])}"
        return

    whole = "what was written" if is_by_model(use) else "the given continuation"
    by_number = {}
    for number, outputs in enumerate(use.sentences, start=1):
        sources = use.sources(outputs)
        if sources:
            by_number[number] = sources[0]
    if not any(number in use.selected for number in use.sentences[0]):
        yield f"No word of the first sentence of {whole} stands out as depending on the context."
    for number, unit in list(by_number.items())[:MOST_SENTENCES]:
        which = f"sentence {number} of {whole}"
        yield f"{by}, {_what_rests(use, which)} {_quoted(use, unit)}"
    left = len(by_number) - MOST_SENTENCES
    if left > 0:
        rest = "1 further sentence rests" if left == 1 else f"{left} further sentences rest"
        yield f"{rest} on the context, too."


def _what_rests(use: ContextUse, which: str) -> str:
    """What is said before the part of the context that does most; a divergence has no sides.

    Said where the units are whole sentences or documents, before the one that does most.
    """
    if use[use.methods[0]][0].target.sign_of_support:
        return f"{which} rests most on"
    return f"what could stand in place of {which} is moved most by"


def _quoted(use: ContextUse, unit: int) -> str:
    """Where a unit of the context stands, and how it begins; it ends a sentence."""
    content = use.units.texts[unit]
    quote = wording.beginning(content, LONGEST_QUOTE)
    content = content.strip()
    end = "" if content.endswith((".", "!", "?", "…")) else "."
    return f"{wording.visible(use.place(unit))}: {quote}{end}"


def _about(use: ContextUse, word: Found) -> str:
    """One word: what it rests on, and what would have stood there.

    Said of the three selected words that stand out farthest.
    """
    with_it, without = both_shown(word.probability, word.without)
    name = f"{wording.quoted(word.name)} ({with_it} with the context, {without} without)"
    return f"{_rests(use, word, name)}; {_without(use, word)}{_evidence(use, word)}."


def _rests(use: ContextUse, word: Found, name: str) -> str:
    """What a word rests on; and what speaks against it, where that is stronger.

    Said of a selected word: of what speaks against it where that is stronger than all that speaks
    for it.
    """
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
    """What moves all that could stand in place of a word, where that is read (``kl``).

    Said in place of what a word rests on where a divergence is explained.
    """
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
    """What is said before units that score below zero: what they do to the word.

    Said where most that a unit does goes against the word: ``against it``, or ``kept as without
    context by``.
    """
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


def _without(use: ContextUse, word: Found) -> str:
    """Said of a selected word: that another token would be likelier where one of its tokens would
    be another; that it would be likelier itself only where its probability shows so.

    What was given, or drawn, need not be the likeliest with the context either: then only what is
    likeliest without it is said.
    """
    is_likeliest = _is_greedy(use) or word.probability > SURELY_LIKELIEST
    if word.instead is not None:
        instead = wording.quoted(word.instead)
        if is_likeliest:
            return f"without context {instead} would be likelier"
        return f"the likeliest without context is {instead}"
    if not is_likeliest:
        return "without context it would be the likeliest"
    too = "without context it would stand there too"
    with_it, without = both_shown(word.probability, word.without)
    if word.probability < word.without and with_it != without:
        return f"{too}, and be likelier"
    return too


def _is_greedy(use: ContextUse) -> bool:
    """Whether each token was the likeliest with the context."""
    is_plain = not use.decoding.get("do_sample") and use.decoding.get("num_beams", 1) == 1
    return is_by_model(use) and is_plain


def _evidence(use: ContextUse, word: Found) -> str:
    """Said of a selected word whose sources were held against random ones."""
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
    # the rule of the paper does not take a score below zero for one that stands out
    size = abs if selection.rule == "tool" else float
    largest = max(use.scores.tolist(), key=size)
    floor = "" if selection.least is None else f", where {shown(use, selection.least)} is the floor"
    is_below = selection.least is not None and size(largest) <= selection.least
    changes = any(_times(use, outputs) >= LARGE_CHANGE for outputs in use.words)
    depends = "depends" if is_below and not changes else "stands out as depending"
    farthest = "largest" if largest >= 0 or size is float else "farthest from zero"
    which = f"largest {selection.measure}"
    if farthest != "largest":
        which = f"{selection.measure} {farthest}"
    return (
        f"No word of the output {depends} on the context: the {which} is "
        f"{shown(use, largest)}{floor}."
    )


def shown(use: ContextUse, score: float) -> str:
    """A score of the measure with its unit."""
    number, unit = f"{score:.3g}", UNITS_OF.get(use.selection.measure, "")
    if number in ("1", "-1"):
        unit = unit.removesuffix("s")
    return f"{number}{unit}".replace("-", "−")


def selection_line(use: ContextUse) -> str:
    """How words were selected.

    Said below the answer: the threshold, the floor, the factor and the number that were asked for.
    """
    selection = use.selection
    size = "size" if selection.rule == "tool" and min(use.scores.tolist()) < 0 else "score"
    parts = []
    if selection.threshold is not None:
        at = "is at least" if selection.rule == "tool" else "is above"
        parts.append(
            f"{at} {shown(use, selection.threshold)} (mean + {selection.deviations:g} × standard "
            "deviation of this output)"
        )
    if selection.least is not None:
        floor = f"above the floor of {shown(use, selection.least)}"
        parts.append(floor if parts else f"is {floor}")
    if not parts:
        parts.append("is not zero" if selection.rule == "tool" else "is above zero")
    said = f"Tokens depend on the context whose {size} {' and '.join(parts)}"
    if selection.factor is not None:
        said += f", or which it makes at least {selection.factor:g} times as likely or as unlikely"
    if selection.most is not None:
        said += f"; {_at_most(selection.most)}"
    return f"{said}. Measure: {selection.measure}."


def _at_most(most: int) -> str:
    """Said where no more than so many tokens were to be selected."""
    return "only the strongest of them" if most == 1 else f"the {most} strongest of them at most"


def remarks(use: ContextUse) -> list[str]:
    """How it came about, and what else is to be known.

    Said below the answer; what was left out where something was.
    """
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
    """The texts, the answer, every written word in both runs, and how it came about.

    Said in a terminal: ``3 more are in the page and in .table().`` where more words were written
    than are shown, and that other methods have scores where there are some.
    """
    del console
    asked, *said = answer(use)
    parts: list[RenderableType] = [Text(asked, BOLD), Text(), _texts(use), Text()]
    parts += [Text("\n".join(said)), Text(), _table(use)]
    left = len(use.words) - MOST_ROWS
    if left > 0:
        verb = "is" if left == 1 else "are"
        parts.append(Text(f"{left} more {verb} in the page and in .table().", DIM))
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
    style = BOLD if word else Style()
    cells = [
        Text("●" if word else ""),
        Text(_cut(word.name if word else word_name(use, outputs), LONGEST_WORD), style),
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
