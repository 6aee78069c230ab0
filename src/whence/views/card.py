"""A card in words: in a terminal, and as a section for a model card in Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from io import StringIO
from shlex import quote

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.card import Card, Finding, Source, Together
from whence.core.question import Question
from whence.views import wording
from whence.views.evaluation import wording_list
from whence.views.records import MARKDOWN

DIM, BOLD = Style(dim=True), Style(bold=True)
WIDTH = 100
NOT_ASKED = "–"
CONTROL = "random"
# Said as the names of the four questions.
HEADS = {
    Question.TEXT: "on one text",
    Question.TEXTS: "on many texts",
    Question.MEASURE: "by measures",
    Question.ATTENTION: "as attention",
}


# ---------------------------------------------------------------------- sentences


def card_sentences(card: Card) -> list[str]:
    """What is known of the model's explanations, what it means together, what was not asked."""
    about = [_what_there_is(card), *_meanings(card), *_attention(card), *_data(card)]
    return [*about, *_not_asked(card)]


def _what_there_is(card: Card) -> str:
    """The model, and how many of the four questions have an answer. Always said first."""
    methods = [name for name in card.methods if name != CONTROL]
    asked = len(Question) - len(card.unasked)
    saved = _many(len(card.sources), "saved result")
    answer = "answers" if len(card.sources) == 1 else "answer"
    return (
        f"{wording.model_name(card.model)}: {_many(len(methods), 'method')} in {saved}, "
        f"which {answer} {asked} of the {len(Question)} questions."
    )


def _meanings(card: Card) -> list[str]:
    """What the answers mean together: a sentence for the methods of which the same is true.

    It ends with the questions that were asked of these methods.
    """
    alike: dict[tuple[Together, str], list[str]] = defaultdict(list)
    for method in card.methods:
        if method != CONTROL:
            asked = wording_list([HEADS[q] for q in Question if card.of(method, q)])
            alike[card.together(method), asked].append(wording.visible(method))
    said = []
    for meaning in Together:
        for (other, asked), methods in alike.items():
            if other is meaning:
                each = "each " if len(methods) > 1 else ""
                said.append(f"{wording_list(methods)} ({each}asked {asked}): {meaning}")
    return said


def _data(card: Card) -> list[str]:
    """That the answers are of different data, where the saved results name different ones.

    Said where the saved results name different data.
    """
    names = dict.fromkeys(wording.file_name(s.data) for s in card.sources if s.data)
    if len(names) < 2:
        return []
    return [
        f"The answers are of different data ({wording_list([*names])}): where they differ, "
        "that may be the data's doing."
    ]


def _attention(card: Card) -> list[str]:
    """What an audit says of attention in all layers together, where there is one.

    Said where an audit has a verdict on all layers together.
    """
    return [
        f"Attention in all layers together, by {wording.visible(name)}: {wording.visible(said)}."
        for name, said in card.attention.items()
    ]


def _not_asked(card: Card) -> list[str]:
    """The questions that no result answers, each with the command that asks it.

    Said of each question that no result answers.
    """
    return [
        f"Not asked yet: {question.asked} Ask it with: "
        f"{wording.visible(command_for(card, question))}"
        for question in card.unasked
    ]


def command_for(card: Card, question: Question) -> str:
    """What to type to ask a question that was not asked yet."""
    model = quote(card.model)
    data = next((quote(source.data) for source in card.sources if source.data), "DATA")
    names = [name for name in card.methods if name != CONTROL]
    methods = f" --methods {','.join(names)}" if names else ""
    commands = {
        Question.TEXT: f"whence compare --model {model}{methods} TEXT",
        Question.TEXTS: f"whence run {data} --model {model}{methods} --out FOLDER",
        Question.MEASURE: f"whence evaluate --data {data} --model {model}{methods} --out FOLDER",
        Question.ATTENTION: f"whence audit --data {data} --model {model} --out FOLDER",
    }
    return commands[question]


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


# ---------------------------------------------------------------------- cells


def cell_of(card: Card, method: str, question: Question) -> str:
    """What all sources of a question say of a method; a dash where it was not asked of it."""
    findings = card.of(method, question)
    if not findings:
        return NOT_ASKED
    several = len({f.source for f in findings}) > 1
    parts = []
    for finding in findings:
        source = card.sources[finding.source]
        of = f" ({wording.visible(source.file)})" if several else ""
        parts.append(f"{said_of(finding, source)}{of}")
    return "; ".join(parts)


def said_of(finding: Finding, source: Source) -> str:
    """One answer in the words of its own question, with its numbers."""
    said = wording.visible(finding.said)
    if finding.of is None:
        return said
    if source.question is Question.TEXTS:
        texts = _many(finding.of, "text")
        return f"{finding.won} of {texts}{_by_chance(finding.chance)}: {said}"
    if source.question is Question.MEASURE:
        return f"{said} by {finding.won} of {_many(finding.of, 'measure')}"
    counted = wording.visible(source.counted)
    return f"{said} on {finding.won} of {_many(finding.of, counted)}"


def _by_chance(ends: Sequence[int]) -> str:
    """How often a random ranking would be called better, in 95 of 100 cases."""
    if not ends:
        return ""
    low, high = min(ends), max(ends)
    return f", by chance {low}" if low == high else f", by chance {low} to {high}"


def source_line(source: Source) -> str:
    """Where an answer comes from: file, data, and how many texts; what is wrong with it."""
    data = f", {wording.file_name(source.data)}" if source.data else ""
    note = f"; {wording.visible(source.note)}" if source.note else ""
    counted = _many(source.texts, wording.visible(source.counted))
    kind = wording.visible(source.kind)
    return f"{wording.visible(source.file)} ({kind}{data}, {counted}{note})"


def left_out_line(card: Card) -> str:
    """The files that answer none of the questions, and why; empty where there are none."""
    every = []
    for name, why in card.left_out.items():
        every.append(f"{wording.visible(name)} ({wording.visible(why)})")
    return f"Left out: {'; '.join(every)}." if every else ""


def source_lines(card: Card) -> list[tuple[Question, str]]:
    """Each question that was asked, with its sources; also where none of them answers it."""
    lines = []
    for question in Question:
        files = [source_line(one) for one in card.sources if one.question is question]
        if files:
            lines.append((question, ", ".join(files)))
    return lines


def shown_questions(card: Card) -> list[Question]:
    """The questions that have an answer, in their order."""
    return [question for question in Question if question not in card.unasked]


# ---------------------------------------------------------------------- terminal and Markdown


def card_text(card: Card, width: int = WIDTH) -> str:
    """What ``print`` shows."""
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(card_view(card))
    file = console.file
    assert isinstance(file, StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def card_view(card: Card) -> RenderableType:
    """The sentences, the table, and where its answers come from."""
    questions = shown_questions(card)
    table = Table(box=None, header_style=BOLD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("method", no_wrap=True)
    for question in questions:
        table.add_column(HEADS[question])
    for method in card.methods:
        cells = [cell_of(card, method, question) for question in questions]
        table.add_row(Text(wording.visible(method)), *map(Text, cells))
    parts: list[RenderableType] = [Text(line) for line in card_sentences(card)]
    parts += [Text(), table, Text()]
    for question, files in source_lines(card):
        parts.append(Text(f"{HEADS[question]}: {question.asked} {files}.", DIM))
    if card.left_out:
        parts.append(Text(left_out_line(card), DIM))
    return Group(*parts)


def card_markdown(card: Card) -> str:
    """A section for a model card, which any Markdown reader shows.

    Said as the heading and the end of a section of a model card.
    """
    questions = shown_questions(card)
    lines = [f"## Can explanations of {_cell(wording.model_name(card.model))} be trusted?", ""]
    lines += [f"- {_cell(line)}" for line in card_sentences(card)]
    lines += ["", _row(["method", *(HEADS[question] for question in questions)])]
    lines.append(_row(["---"] * (len(questions) + 1)))
    for method in card.methods:
        cells = [cell_of(card, method, question) for question in questions]
        lines.append(_row([_cell(method), *map(_cell, cells)]))
    lines.append("")
    for question, files in source_lines(card):
        lines.append(f"- *{HEADS[question]}*: {question.asked} {_cell(files)}.")
    if card.left_out:
        lines.append(f"- {_cell(left_out_line(card))}")
    return "\n".join([*lines, "", "Made by `whence card`; nothing was run for it.", ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Text that Markdown shows as it is."""
    shown = MARKDOWN.sub(lambda sign: f"\\{sign.group()}", wording.visible(text))
    return shown.replace("<", "&lt;")
