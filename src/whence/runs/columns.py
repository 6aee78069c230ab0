"""Which column is the text, and which are its pair, its label and its id.

A name that was given is taken. Without one a column is guessed where there is no doubt, and what
was guessed is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from whence.core.errors import InputError, unknown_name
from whence.runs.rationales import NAMES as RATIONALE_NAMES
from whence.runs.records import BOOLEANS, NOTHING, NUMBERS, TEXT, TEXTS, Table

TEXT_NAMES = (
    "text",
    "sentence",
    "review",
    "content",
    "document",
    "premise",
    "question",
    "sentence1",
    "text1",
)
# the names of a second text, with those of the first that make the two a pair; None is any
PARTNERS: Mapping[str, tuple[str, ...] | None] = {
    "sentence2": ("sentence1", "sentence"),
    "hypothesis": ("premise", "sentence", "text"),
    "text2": ("text1", "text"),
    "context": ("question",),
    "pair": None,
    "choices": ("question", "premise", "context", "sentence", "text"),
}
LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "target", "stars")
ID_NAMES = ("id", "idx", "uid", "guid", "key")
KNOWN_NAMES = (*TEXT_NAMES, *PARTNERS, *LABEL_NAMES, *ID_NAMES)

# more words or characters than this are a sentence, and no name of a column
MOST_WORDS = 4
LONGEST_NAME = 50
SENTENCE_END = re.compile(r"[.!?…]$")
NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?(e[-+]?\d+)?", re.IGNORECASE)
OTHER_DELIMITER = re.compile(r"[,;|\t]")
MOST_LISTED = 20


@dataclass(frozen=True)
class Columns:
    """Which column is which; None where there is none."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    id: str | None = None
    rationale: str | None = None
    foil: str | None = None
    notes: tuple[str, ...] = ()  # what was guessed, in words

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read, each once."""
        named = (self.text, self.pair, self.label, self.id, self.rationale, self.foil)
        return tuple(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class Asked:
    """The columns that the user named; None is a guess, and "" is no column."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    id: str | None = None
    rationale: str | None = ""
    foil: str | None = None

    def given(self) -> Iterator[tuple[str, str]]:
        """Each role for which a column was named, with its name."""
        for role in ("text", "pair", "label", "id", "rationale", "foil"):
            name = getattr(self, role)
            if name:
                yield role, name


def columns_of(table: Table, asked: Asked, source: str) -> Columns:
    """The columns to read; an error says why they are in doubt."""
    if table.names is None:
        _check_nothing_named(table, asked, source)
        return Columns(notes=table.notes)

    _check_names(table.names, table.has_header, source)
    for _, name in asked.given():
        if name not in table.names:
            known = [column for column in table.names if column]
            raise unknown_name(f"column of {source}", name, known)
    return _found(_Sheet(table.names, table.kinds, table.has_header, source), asked, table.notes)


@dataclass(frozen=True)
class _Sheet:
    """The columns of a data set, and what an error calls it."""

    names: tuple[str, ...]
    kinds: Mapping[str, str]
    has_header: bool
    source: str


def _found(sheet: _Sheet, asked: Asked, known: tuple[str, ...]) -> Columns:
    taken = {name for _, name in asked.given()}
    notes = list(known)
    if asked.text:
        text = asked.text
        _note_strange_text(sheet, text, notes)
    else:
        text = _guessed_text(sheet, taken, notes)
    taken.add(text)
    pair = _pair(sheet, asked.pair, text, taken, notes)
    label = _other("label", asked.label, LABEL_NAMES, sheet, taken, notes)
    id = _other("id", asked.id, ID_NAMES, sheet, taken, notes)
    rationale = _rationale(sheet, asked.rationale, taken, notes)
    return Columns(text, pair, label, id, rationale, asked.foil or None, tuple(notes))


def _check_nothing_named(table: Table, asked: Asked, source: str) -> None:
    for role, name in asked.given():
        kind = "a list of strings" if table.format == "list" else f"a .{table.format} file"
        raise InputError(
            f"{source} is {kind}: it has texts and no columns, so {role}={name!r} names none."
        )


def _check_names(names: tuple[str, ...], has_header: bool, source: str) -> None:
    if not names:
        raise InputError(f"the records of {source} have no fields, so there is no text.")
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            hint = " Is its first line a header?" if has_header else ""
            raise InputError(
                f"{source} has two columns named {name!r}; give them names of their own.{hint}"
            )
        seen.add(name)


def _note_strange_text(sheet: _Sheet, text: str, notes: list[str]) -> None:
    """Each row will say so too; here it is seen before the run."""
    kind = sheet.kinds[text]
    if kind != TEXT:
        notes.append(f"text: column {text!r}, as asked for, which holds {kind} and no text")


def _guessed_text(sheet: _Sheet, taken: set[str], notes: list[str]) -> str:
    by_name = _named(TEXT_NAMES, sheet.names, taken)
    if len(by_name) > 1:
        raise InputError(_doubt(sheet, by_name))
    if not by_name:
        return _only_text(sheet, taken, notes)

    name = by_name[0]
    kind = sheet.kinds[name]
    if kind not in (TEXT, NOTHING):  # of nothing, each row will say so
        raise InputError(
            f"column {name!r} of {sheet.source} has the name of a text and holds {kind}. "
            f"Pass --text NAME. {_listed(sheet)}"
        )
    notes.append(f"text: column {name!r} (by its name)")
    return name


def _only_text(sheet: _Sheet, taken: set[str], notes: list[str]) -> str:
    """The column that alone holds text, once labels, ids and second texts are set aside."""
    _check_header(sheet)
    of_text = [name for name in sheet.names if sheet.kinds[name] == TEXT and name not in taken]
    of_text = _without((*LABEL_NAMES, *ID_NAMES), of_text)
    candidates = _without(tuple(PARTNERS), of_text) or of_text
    if len(candidates) == 1:
        notes.append(f"text: column {candidates[0]!r} (the only one of text)")
        return candidates[0]
    if candidates:
        raise InputError(_doubt(sheet, candidates))

    hint = ""
    if sheet.has_header:
        hint = " The first line must name the columns: if it is data, add a header."
    raise InputError(
        f"no column of {sheet.source} looks like the text. Pass --text NAME. {_listed(sheet)}{hint}"
    )


def _doubt(sheet: _Sheet, candidates: Sequence[str]) -> str:
    return (
        f"which column of {sheet.source} is the text? It could be {_either(candidates)}. "
        f"Pass --text NAME. {_listed(sheet)}"
    )


def _check_header(sheet: _Sheet) -> None:
    """A first line that is data would be taken for names, and its record lost."""
    if not sheet.has_header or _named(KNOWN_NAMES, sheet.names, set()):
        return
    if len(sheet.names) == 1 and (other := OTHER_DELIMITER.search(sheet.names[0])):
        raise InputError(
            f"{sheet.source} has one column, {_short(sheet.names[0])!r}: is it separated by "
            f"{other[0]!r}? Fields of a .csv stand between commas, those of a .tsv between tabs."
        )
    for name in sheet.names:
        if _is_data(name):
            raise InputError(
                f"the first line of {sheet.source} looks like data, not like names of columns "
                f"({_short(name)!r}). Add a header such as text,label; "
                "or pass --text NAME if it is one."
            )


def _is_data(name: str) -> bool:
    is_number = NUMBER.fullmatch(name) is not None
    is_long = len(name) > LONGEST_NAME or len(name.split()) > MOST_WORDS
    return is_number or is_long or SENTENCE_END.search(name) is not None


def _pair(
    sheet: _Sheet, asked: str | None, text: str, taken: set[str], notes: list[str]
) -> str | None:
    if asked is not None:
        return asked or None

    candidates = [
        name
        for name in _named(tuple(PARTNERS), sheet.names, taken)
        if _are_partners(text, name) and sheet.kinds[name] in (TEXT, TEXTS)
    ]
    if not candidates:
        return None
    if len(candidates) > 1:
        # to leave one out in silence would change what the model reads
        raise InputError(
            f"which column of {sheet.source} goes with {text!r}? "
            f"It could be {_either(candidates)}. "
            f'Pass --pair NAME, or --pair "" for none. {_listed(sheet)}'
        )
    taken.add(candidates[0])
    notes.append(f"pair: column {candidates[0]!r} (by its name, beside {text!r})")
    return candidates[0]


def _are_partners(text: str, pair: str) -> bool:
    firsts = PARTNERS[pair.lower()]
    return firsts is None or text.lower() in firsts


def _other(
    role: str,
    asked: str | None,
    names: tuple[str, ...],
    sheet: _Sheet,
    taken: set[str],
    notes: list[str],
) -> str | None:
    """The label or the id: none, where there is doubt, as a text is explained without them."""
    if asked is not None:
        return asked or None

    candidates = [
        name
        for name in _named(names, sheet.names, taken)
        if sheet.kinds[name] in (TEXT, NUMBERS, BOOLEANS)
    ]
    if not candidates:
        return None
    if len(candidates) > 1:
        notes.append(f"{role}: none, as it could be {_either(candidates)}; pass --{role} NAME")
        return None
    taken.add(candidates[0])
    notes.append(f"{role}: column {candidates[0]!r} (by its name)")
    return candidates[0]


def _rationale(sheet: _Sheet, asked: str | None, taken: set[str], notes: list[str]) -> str | None:
    """The column of what people marked; by its name, if it was asked for without one."""
    if asked is not None:
        return asked or None
    candidates = _named(RATIONALE_NAMES, sheet.names, taken)
    if len(candidates) != 1:
        return None
    notes.append(f"rationale: column {candidates[0]!r} (by its name)")
    return candidates[0]


def _named(names: tuple[str, ...], columns: Sequence[str], taken: set[str]) -> list[str]:
    """The columns that have one of these names, in capitals or not."""
    return [column for column in columns if column.lower() in names and column not in taken]


def _without(names: tuple[str, ...], columns: Sequence[str]) -> list[str]:
    """The columns that have none of these names."""
    return [column for column in columns if column.lower() not in names]


def _either(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> _either(["a", "b", "c"])
    "'a', 'b' or 'c'"
    """
    first = ", ".join(repr(_short(name)) for name in names[:-1])
    return f"{first} or {_short(names[-1])!r}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"


def _listed(sheet: _Sheet) -> str:
    """All columns with what they hold."""
    shown = [f"{_short(name)} ({sheet.kinds[name]})" for name in sheet.names[:MOST_LISTED]]
    more = ", …" if len(sheet.names) > MOST_LISTED else ""
    return f"Columns: {', '.join(shown)}{more}."
