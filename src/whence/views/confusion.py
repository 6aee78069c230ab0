"""Why a model is wrong on some texts: in sentences, as two tables, and the next thing to type."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.confusion import (
    FEW_TEXTS,
    FEWEST_TEXTS,
    Confusion,
    MisleadingWord,
    Mistakes,
    Speaking,
)
from whence.core.evidence import Verdict
from whence.core.overview import Overview
from whence.views import wording
from whence.views.markup import element, elements, named, scrolling, soft, table, text

MOST_LABELS = 8  # in a table; of more, the most frequent
MOST_NAMED = 3  # words in a sentence
LONGEST_EXAMPLE = 300  # characters of a text that is typed
NONE = "–"
BOLD, DIM = Style(bold=True), Style(dim=True)
# where the words of an answer are told, and what a share is
# Said of a share, where it is first told.
OF_A_TEXT = "of a text's scores"


# ---------------------------------------------------------------------- sentences


def confusion_sentences(overview: Overview) -> list[str]:
    """How often it is wrong and how, what the table leaves out, and which words carry that.

    Said where the data have labels.
    """
    confusion = overview.confusion
    if confusion is None:
        return []
    return [*_counted(confusion), *_words_of(overview)]


def _counted(confusion: Confusion) -> list[str]:
    """The sentences about the table of counts."""
    return [sentence for sentence in (_how_often(confusion), *_left_out(confusion)) if sentence]


def _how_often(confusion: Confusion) -> str:
    """Said where some texts have a label that the model has too."""
    if not confusion.texts:
        return ""
    have = "text that has" if confusion.texts == 1 else "texts that have"
    of = f"{confusion.texts:,} {have} a label the model knows"
    mistakes = confusion.mistakes
    if mistakes is None or not confusion.wrong:
        return f"It is {'right on the' if confusion.texts == 1 else 'wrong on none of the'} {of}."
    given, says = wording.label(mistakes.given), wording.label(mistakes.says)
    often = confusion.count(mistakes.given, mistakes.says)
    others = [pair.texts for pair in confusion.pairs if not pair.is_right]
    others.remove(often)
    wrong = f"{confusion.wrong:,} of the {of}" if confusion.texts > 1 else f"the {of}"
    kind = f"Most often, on {often:,} {_texts(often)},"
    if not others:
        kind = "There" if often == 1 else "Each time"
    elif max(others) == often:
        kind = f"On {often:,} {_texts(often)}, and no other mistake is more frequent,"
    return (
        f"It is wrong on {wrong}. {kind} it says {says} of what the data "
        f"call {given}.{_copies(mistakes, often)}"
    )


def _copies(mistakes: Mistakes, often: int) -> str:
    """Said where one of these texts stands in the data more than once."""
    if mistakes.texts == often:
        return ""
    return f" A text that stands there twice counts once below, which leaves {mistakes.texts:,}."


def _words_of(overview: Overview) -> list[str]:
    """Said where there is a mistake: the words that carry it, or why none is named.

    Nothing is said where another label is explained, or a number that does not rise with one.
    """
    mistakes = None if overview.confusion is None else overview.confusion.mistakes
    if mistakes is None:
        return []
    if overview.speaker is None:
        return [_nobody_speaks(overview)]
    if mistakes.towards is None:
        return []
    named_words = mistakes.named[:MOST_NAMED]
    does = _does(mistakes)
    few_or_no = "These are few texts: no word" if mistakes.texts < FEW_TEXTS else "No word"
    if named_words:
        told = _and([_shown(word, word is named_words[0]) for word in named_words])
        return [f"By {wording.visible(mistakes.method or '')}, what {does} there is {told}."]
    if not mistakes.words:
        return [f"No word {does} there."]
    first = mistakes.words[0]
    return [
        f"{few_or_no} stands in three of these texts, surely {does}, and does a tenth of what the "
        "largest one does. By "
        f"{wording.visible(mistakes.method or '')}, {wording.quoted(first.word)} does so most "
        f"({_share(first.wrong)} {OF_A_TEXT}, in {first.wrong.texts} "
        f"{_texts(first.wrong.texts)})."
    ]


def _nobody_speaks(overview: Overview) -> str:
    """Said where no method may name words: none that holds tells for from against."""
    if not overview.answer.tried:
        return "No method here tells for from against, so no words are named."
    return (
        f"No method that tells for from against is {Verdict.BETTER} on more texts than chance "
        "allows, so no words are named."
    )


def _does(mistakes: Mistakes) -> str:
    """What the words of a mistake do: speak for the wrong label, or against the right one."""
    if mistakes.towards == "says":
        return f"speaks for {wording.label(mistakes.says)}"
    return f"speaks against {wording.label(mistakes.given)}"


def _shown(word: MisleadingWord, is_first: bool) -> str:
    """A word with what it does, in how many texts, and what it does where the answer is right.

    Said of a word that is named: also what it does where that answer is right.
    """
    few = "only " if word.wrong.texts < FEW_TEXTS else ""
    texts = f"{few}{word.wrong.texts} {_texts(word.wrong.texts)}"
    of = f" {OF_A_TEXT}" if is_first else ""
    beside = "no text that is rightly called so has it"
    if word.right is not None:
        are = "that is" if word.right.texts == 1 else "that are"
        where = f"{word.right.texts} {_texts(word.right.texts)} {are} rightly called so"
        beside = f"{_share(word.right)} in {where}"
    return f"{wording.quoted(word.word)} ({_share(word.wrong)}{of} in {texts}; {beside})"


def _left_out(confusion: Confusion) -> list[str]:
    """Said where some texts have no label, or one that the model does not have."""
    said = []
    unknown = sum(one.texts for one in confusion.unknown)
    if unknown:
        names = [f"{wording.label(u.label)} ({u.texts:,})" for u in confusion.unknown]
        said.append(
            f"{unknown:,} {_texts(unknown)} {_have(unknown)} a label that the model does not "
            f"have: {wording.few(names)}. It cannot say it, so it is neither right nor wrong there."
        )
    if confusion.unlabelled:
        count = confusion.unlabelled
        said.append(f"{count:,} {_texts(count)} {_have(count)} no label.")
    return said


def _texts(count: int) -> str:
    return "text" if count == 1 else "texts"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _and(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _share(speaking: Speaking) -> str:
    return wording.effect(speaking.share)


# ---------------------------------------------------------------------- what to type next


def next_commands(overview: Overview, place: str) -> list[tuple[str, str]]:
    """What each is for, and a command: all texts it is wrong on, and the clearest of them.

    Said where there is a mistake; "of the mistake above" where there are several kinds of them.
    """
    confusion = overview.confusion
    if confusion is None or confusion.mistakes is None:
        return []
    mistakes = confusion.mistakes
    commands = [("all texts it is wrong on", f"whence query {shlex.quote(place)} --wrong")]
    sure = ""
    if mistakes.probability is not None:
        sure = f", {wording.percent(mistakes.probability)} sure"
    about = f"the one where it is surest (row {mistakes.row}{sure})"
    if sum(not pair.is_right for pair in confusion.pairs) > 1:
        about = f"of the mistake above, {about}"
    is_typed = mistakes.is_whole and len(mistakes.text) <= LONGEST_EXAMPLE
    if is_typed and mistakes.text.isprintable() and not mistakes.text.startswith("-"):
        model = shlex.quote(overview.model)
        command = f"whence compare {_typed(mistakes.text)} --model {model}"
    else:
        sql = f"select text, pair from texts where row = {mistakes.row}"
        command = f'whence query {shlex.quote(place)} "{sql}" --json'
    return [*commands, (about, command)]


def _typed(words: str) -> str:
    """A text as it is typed in a shell.

    >>> print(_typed("it's dull"), _typed('a "film"'))
    "it's dull" 'a "film"'
    """
    if set('"$`\\!').isdisjoint(words):
        return f'"{words}"'
    return shlex.quote(words)


# ---------------------------------------------------------------------- in the terminal


def confusion_view(overview: Overview) -> RenderableType:
    """Both tables with the sentences about them; nothing where the data have no labels.

    Said as a heading, where the data have labels.

    ``where it is wrong``
    """
    confusion = overview.confusion
    if confusion is None:
        return Group()
    parts: list[RenderableType] = [Text("where it is wrong", BOLD)]
    parts += [Text(sentence) for sentence in _counted(confusion)]
    if confusion.texts:
        parts += [Text(), _counts_table(confusion), Text()]
    parts += [Text(sentence) for sentence in _words_of(overview)]
    if confusion.mistakes is not None and confusion.mistakes.words:
        parts += [Text(), _words_table(confusion.mistakes)]
    return Group(*parts)


def _counts_table(confusion: Confusion) -> Table:
    """Said as the head of a column.

    ``the data say``
    """
    labels, more = _shown_labels(confusion)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=BOLD)
    grid.add_column(Text("the data say"))
    for label in labels:
        grid.add_column(Text(f"says {wording.label(label)}"), justify="right")
    for given in labels:
        cells = [_cell(confusion.count(given, says)) for says in labels]
        grid.add_row(Text(wording.label(given)), *cells)
    if more:
        grid.caption = more
    return grid


def _words_table(mistakes: Mistakes) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=BOLD)
    here, there = _heads(mistakes)
    grid.add_column(Text("word"))
    grid.add_column(Text(here), justify="right")
    grid.add_column(Text(there), justify="right")
    for word in mistakes.words:
        style = Style() if word in mistakes.named else DIM
        cells = [_with_texts(word.wrong), _with_texts(word.right)]
        grid.add_row(Text(wording.visible(word.word), style), *(Text(c, style) for c in cells))
    return grid


def _heads(mistakes: Mistakes) -> tuple[str, str]:
    """What the two columns are of. Said as the heads of two columns."""
    label = mistakes.says if mistakes.towards == "says" else mistakes.given
    way = "for" if mistakes.towards == "says" else "against"
    speaks = f"{way} {wording.label(label)}"
    return (
        f"{speaks}, {mistakes.texts} wrong {_texts(mistakes.texts)}",
        f"{speaks}, {mistakes.right} rightly called so",
    )


def _with_texts(speaking: Speaking | None) -> str:
    if speaking is None:
        return NONE
    return f"{_share(speaking)} in {speaking.texts}"


def _cell(count: int) -> str:
    return f"{count:,}" if count else NONE


def _shown_labels(confusion: Confusion) -> tuple[tuple[str, ...], str]:
    """The labels of the table, and what is said of those that have no room.

    Said where there are more labels than columns.
    """
    labels = confusion.labels
    if len(labels) <= MOST_LABELS:
        return labels, ""
    left = len(labels) - MOST_LABELS
    word = "label has" if left == 1 else "labels have"
    return labels[:MOST_LABELS], f"{left} more {word} no room here."


# ---------------------------------------------------------------------- on the page


def confusion_section(overview: Overview) -> str:
    """The same as a part of the page of a run; empty where the data have no labels.

    Said as a heading, where the data have labels.
    """
    confusion = overview.confusion
    if confusion is None:
        return ""
    parts = [element("h3", "Where it is wrong, and why")]
    parts += _paragraphs(_counted(confusion))
    if confusion.texts:
        parts.append(_counts_on_page(confusion))
    parts += _paragraphs(_words_of(overview))
    mistakes = confusion.mistakes
    if mistakes is not None and mistakes.words:
        parts.append(_words_on_page(mistakes))
    commands = next_commands(overview, wording.file_name(overview.place))
    for about, command in commands:
        parts.append(element("p", f"To see {text(about)}: {element('code', text(command))}"))
    return "".join(parts)


def _paragraphs(sentences: Sequence[str]) -> list[str]:
    return [element("p", text(sentence).replace(" %", "&nbsp;%")) for sentence in sentences]


def _counts_on_page(confusion: Confusion) -> str:
    """Said as the head of a column."""
    labels, more = _shown_labels(confusion)
    heads = [element("th", "the data say", scope="col", class_="left")]
    heads += [element("th", text(f"says {wording.label(label)}"), scope="col") for label in labels]
    rows = []
    for given in labels:
        head = element("th", text(wording.label(given)), scope="row", class_="left")
        cells = [text(_cell(confusion.count(given, says))) for says in labels]
        rows.append(element("tr", head + elements("td", cells)))
    shown = table(element("tr", "".join(heads)), rows, class_="costs")
    return scrolling("what the model says beside the data", shown, whole=True) + (
        soft(text(more)) if more else ""
    )


def _words_on_page(mistakes: Mistakes) -> str:
    """Said below the words of a mistake."""
    here, there = _heads(mistakes)
    heads = element("th", "word", scope="col", class_="left")
    heads += elements("th", [text(here), text(there)], scope="col")
    rows = []
    for word in mistakes.words:
        head = element("th", named(word.word), scope="row", class_="left")
        cells = [_with_texts(word.wrong), _with_texts(word.right)]
        rows.append(element("tr", head + elements("td", [text(cell) for cell in cells])))
    shown = table(element("tr", heads), rows, class_="costs")
    about = (
        f"A share {OF_A_TEXT} is the word's part of all of them, as the mean over the texts that "
        "have it; how many they are stands beside it, and a dash where none has it. First come "
        f"words that stand in {FEWEST_TEXTS} of the wrong texts, surely do this, and do a tenth "
        "of what the largest one does."
    )
    return scrolling("the words that carry the mistake", shown, whole=True) + soft(about)
