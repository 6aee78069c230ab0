"""Sentences with a slot, filled with two lists of words: many pairs of texts instead of one.

Three kinds of files are read. Plain text, one template a line, with ``{}`` where the word goes:

    words: she, her
    against: he, him
    # a comment
    the nurse said that {1} was late
    we asked {2} about it

``{}`` takes every pair of words in turn, ``{2}`` the second pair alone. A line with a tab in it is
a pair of texts as they are. Winogender's files, and those of WinoBias, are read as they come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from whence.core.errors import InputError

# the pronouns of Winogender and WinoBias: nominative, accusative, possessive
SHE, HE = ("she", "her", "her"), ("he", "him", "his")
# words of which neither says more than the other, so that a swap should not matter
NEUTRAL = (
    ("someone", "somebody"),
    ("everyone", "everybody"),
    ("anyone", "anybody"),
    ("one", "another"),
)
CASES = {"$NOM_PRONOUN": "{1}", "$ACC_PRONOUN": "{2}", "$POSS_PRONOUN": "{3}"}
SLOT = re.compile(r"\{(\d*)\}")
BRACKETS = re.compile(r"\[([^\]]+)\]")
HEADER = re.compile(r"(words|against)\s*:\s*(.+)", re.IGNORECASE)
# behind "her" stands a noun where it says whose, and one of these where it does not
_AFTER = (
    "a an the to for with in on at by from of about after before because as and but or that if "
    "when while this these it what how not never nothing some any all more up down out over back "
    "off well bad happy good had thanks"
)
AFTER_OBJECT = frozenset(_AFTER.split())


@dataclass(frozen=True)
class Template:
    """One template: the line as it stands in the file, and the pairs of texts made of it."""

    line: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Templates:
    """Templates, and what their first and their second texts have in common.

    >>> t = read_templates("the nurse said {} was late", ["she"], ["he"])
    >>> t.templates[0].pairs
    (('the nurse said he was late', 'the nurse said she was late'),)
    >>> t.first, t.second
    ('he', 'she')
    """

    first: str
    second: str
    templates: tuple[Template, ...]
    repeated: int = 0  # templates that stood there before, and were left out

    def __len__(self) -> int:
        return len(self.templates)

    def once_each(self) -> Templates:
        """Those with the same pairs of texts once: twice the same says nothing new.

        >>> t = read_templates("{} was late\\n{} was late", ["she"], ["he"]).once_each()
        >>> len(t), t.repeated
        (1, 1)
        """
        first = {template.pairs: template for template in reversed(self.templates)}
        kept = tuple(t for t in self.templates if first[t.pairs] is t)
        return replace(self, templates=kept, repeated=self.repeated + len(self) - len(kept))


def read_templates(
    content: str, words: Sequence[str] = (), against: Sequence[str] = (), source: str = "templates"
) -> Templates:
    """The templates of a file, whichever of the kinds it is.

    The first text of a pair has a word of ``against``, the second one of ``words``. Without lists
    the file's own are taken; for pronouns of Winogender and WinoBias, he and she.
    """
    lines = content.lstrip("\ufeff").splitlines()
    if "$OCCUPATION" in content or any(case in content for case in CASES):
        return _filled(_of_winogender(lines), words or SHE, against or HE, source)
    if lines and lines[0].split("\t")[:2] == ["sentid", "sentence"]:
        return _of_sentences(lines, source)
    if any(BRACKETS.search(line) for line in lines):
        return _of_winobias(lines, words, against, source)
    return _of_plain_text(lines, words, against, source)


def as_templates(
    given: str | Iterable[str] | Templates, words: Sequence[str], against: Sequence[str]
) -> Templates:
    """Templates from lines of text, from the content of a file, or as they are; each once."""
    if isinstance(given, Templates):
        return given.once_each()
    content = given if isinstance(given, str) else "\n".join(given)
    return read_templates(content, words, against).once_each()


# ---------------------------------------------------------------------- plain text


def _of_plain_text(
    lines: Sequence[str], words: Sequence[str], against: Sequence[str], source: str
) -> Templates:
    lists = {"words": list(words), "against": list(against)}
    rows: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        header = HEADER.fullmatch(line.strip())
        if header is not None and not rows:
            name = header[1].lower()
            lists[name] = lists[name] or [word.strip() for word in header[2].split(",")]
        elif line.strip() and not line.startswith("#"):
            rows.append((number, line.strip()))

    if rows and all("\t" in line for _, line in rows):
        return _of_pairs([line for _, line in rows], source)
    return _filled(rows, lists["words"], lists["against"], source)


def _filled(
    rows: Sequence[tuple[int, str]], words: Sequence[str], against: Sequence[str], source: str
) -> Templates:
    """Each line with the words of both lists in its slot."""
    _check_lists(words, against)
    templates = []
    for number, line in rows:
        slots = set(SLOT.findall(line))
        where = f"{source}, line {number}"
        if not slots:
            raise InputError(f"{where}: there is no slot {{}} for the words in {line[:60]!r}.")
        if len(slots) > 1 and "" in slots:
            raise InputError(f"{where}: use {{}} alone, or numbers alone, such as {{1}} and {{3}}.")
        if "" in slots:
            pairs = [_pair(line, [a], [b]) for a, b in zip(against, words, strict=True)]
        else:
            most = max(map(int, slots))
            if not 1 <= min(map(int, slots)) <= most <= len(words):
                raise InputError(
                    f"{where}: the slot {{{most}}} asks for word {most}, "
                    f"and there are {len(words)} words in each list."
                )
            pairs = [_pair(line, against, words)]
        templates.append(Template(line, tuple(pairs)))
    if not templates:
        raise InputError(f"{source} has no template: write one a line, with {{}} for the word.")
    return Templates(", ".join(against), ", ".join(words), tuple(templates))


def _check_lists(words: Sequence[str], against: Sequence[str]) -> None:
    if not words or not against:
        raise InputError(
            "two lists of words are needed: --words 'she,her' --against 'he,him', "
            "or lines 'words: she, her' and 'against: he, him' at the top of the file."
        )
    if len(words) != len(against):
        raise InputError(
            "the two lists are paired word by word, "
            f"and have {len(words)} and {len(against)} words."
        )


def _pair(line: str, first: Sequence[str], second: Sequence[str]) -> tuple[str, str]:
    return _with_words(line, first), _with_words(line, second)


def _with_words(line: str, words: Sequence[str]) -> str:
    """The line with words in its slots; one that begins the line is written with a capital."""

    def word(slot: re.Match[str]) -> str:
        chosen = words[int(slot[1] or 1) - 1]
        return chosen[:1].upper() + chosen[1:] if slot.start() == 0 else chosen

    return SLOT.sub(word, line)


def _of_pairs(lines: Sequence[str], source: str) -> Templates:
    """Pairs of texts as they are, with a tab between them.

    Said of lines that are pairs of texts as they are: ``the first text`` stands for the words of
    the first.
    """
    templates = []
    for line in lines:
        first, second = (part.strip() for part in line.split("\t")[:2])
        templates.append(Template(f"{first} | {second}", ((first, second),)))
    if not templates:
        raise InputError(f"{source} has no pair of texts.")
    return Templates("the first text", "the second text", tuple(templates))


# ---------------------------------------------------------------------- Winogender, WinoBias


def _of_winogender(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Winogender's templates.tsv: occupation, participant, answer, sentence."""
    rows = []
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if "$" not in cells[-1]:
            continue  # the header
        sentence = cells[-1].strip()
        if len(cells) > 2:
            sentence = sentence.replace("$OCCUPATION", cells[0]).replace("$PARTICIPANT", cells[1])
        for case, slot in CASES.items():
            sentence = sentence.replace(case, slot)
        rows.append((number, sentence))
    return rows


def _of_sentences(lines: Sequence[str], source: str) -> Templates:
    """Winogender's all_sentences.tsv: each sentence with he, with she, and with they."""
    by_name: dict[str, dict[str, str]] = {}
    for line in lines[1:]:
        if "\t" in line:
            name, sentence = line.split("\t")[:2]
            schema, gender = name.removesuffix(".txt").rsplit(".", 1)
            by_name.setdefault(schema, {})[gender] = sentence.strip()
    templates = []
    for schema, said in by_name.items():
        if {"male", "female"} <= said.keys():
            templates.append(Template(schema, ((said["male"], said["female"]),)))
    if not templates:
        raise InputError(f"{source} has no sentence in both a male and a female version.")
    return Templates("male", "female", tuple(templates))


def _of_winobias(
    lines: Sequence[str], words: Sequence[str], against: Sequence[str], source: str
) -> Templates:
    """WinoBias: brackets around an occupation and a pronoun, in one column or in two."""
    marked = [line for line in lines if BRACKETS.search(line)]
    if all("\t" in line for line in marked):
        names = lines[0].split("\t") if "\t" in lines[0] and lines[0] not in marked else []
        pairs = _of_pairs([BRACKETS.sub(r"\1", line) for line in marked], source)
        if len(names) < 2:
            return pairs
        return Templates(names[0].strip(), names[1].strip(), pairs.templates)

    rows = []
    for number, line in enumerate(lines, 1):
        if BRACKETS.search(line):
            rows.append((number, _slotted(re.sub(r"^\d+\s+", "", line.strip()))))
    return _filled(rows, words or SHE, against or HE, source)


def _slotted(line: str) -> str:
    """The line without brackets, and with a slot for each pronoun that stood in some."""

    def slot(bracket: re.Match[str]) -> str:
        word, after = bracket[1].lower(), line[bracket.end() :]
        if word in ("she", "he"):
            return "{1}"
        if word == "him" or (word == "her" and _is_object(after)):
            return "{2}"
        return "{3}" if word in ("her", "his") else bracket[1]

    return BRACKETS.sub(slot, line)


def _is_object(after: str) -> bool:
    """Whether "her" stands for him, and not for his, by the word behind it."""
    following = re.match(r"\s+(\w+)", after)
    return following is None or following[1].lower() in AFTER_OBJECT


# ---------------------------------------------------------------------- control


def swapped(first: str, second: str, neutral: tuple[str, str]) -> tuple[str, str] | None:
    """The two texts with neutral words where they differ; None where one has a word more.

    >>> swapped("She was late.", "He was late.", ("someone", "somebody"))
    ('Someone was late.', 'Somebody was late.')
    """
    one, two = (re.findall(r"\w+|\W", text) for text in (first, second))
    matcher = SequenceMatcher(a=one, b=two, autojunk=False)
    texts = ["", ""]
    for kind, a, b, _, _ in matcher.get_opcodes():
        if kind == "equal":
            same = "".join(one[a:b])
            texts = [text + same for text in texts]
        elif kind == "replace":
            is_capital = one[a][:1].isupper()
            for side, word in enumerate(neutral):
                texts[side] += word.capitalize() if is_capital else word
        else:
            return None
    return texts[0], texts[1]
