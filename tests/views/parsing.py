"""A reader of sentences that knows nothing of how they are made: patterns, and what must be true.

What a result says is matched by regular expressions that stand in the tests, and each match is held
against the record: a sentence that no pattern matches fails, so that nothing is said unchecked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from whence.core.showing import signs, visible

PERCENT = r"[<>]? ?-?[\d.]+(?:e[−-]\d+)? %"
NUMBER = r"[−+-]?[\d,]*\.?\d+(?:e[−+-]\d+)?"
NAME = r"“[^”]*”"
NAMES = rf"{NAME}(?:, {NAME})*(?: and \d+ more)?"

Check = Callable[..., bool]


class Reader:
    """Patterns with what each says of a record; it counts which of them were met."""

    def __init__(self, patterns: Mapping[str, Check]) -> None:
        self.patterns = {
            re.compile(pattern, re.DOTALL): check for pattern, check in patterns.items()
        }
        self.met = Counter({pattern.pattern: 0 for pattern in self.patterns})

    def read(self, sentence: str, record: Any) -> None:
        """Fails where no pattern matches the sentence, or what it says is not so."""
        for pattern, check in self.patterns.items():
            if found := pattern.fullmatch(sentence):
                self.met[pattern.pattern] += 1
                assert check(record, **found.groupdict()), (sentence, pattern.pattern, record)
                return
        raise AssertionError(f"nobody can say whether this is true: {sentence!r}")

    @property
    def never_met(self) -> list[str]:
        """The patterns that matched nothing: a test of them tests nothing."""
        return [pattern for pattern, times in self.met.items() if not times]


def is_percent(shown: str, share: float) -> bool:
    """Whether a share may be shown so: rounded, and 0 or 100 only where it is exactly that.

    >>> is_percent("50 %", 0.504), is_percent("0 %", 0.001), is_percent("< 0.01 %", 1e-6)
    (True, False, True)
    """
    text = shown.removesuffix(" %").replace("−", "-").replace("\u00a0", " ")
    hundred = 100 * share
    if text.startswith("<"):
        return 0 < hundred < float(text[2:]) * (1 + 1e-9)
    if text == "> 100":
        return 100 < hundred < 100.01
    if text.startswith(">"):
        return float(text[2:]) * (1 - 1e-9) < hundred < 100
    number = float(text)
    if number in (0.0, 100.0):
        return abs(hundred - number) <= 1e-4 * (number > 0) + 1e-10
    return abs(hundred - number) <= half_a_digit(text) * 1.0001 + 1e-9


def is_number(shown: str, value: float) -> bool:
    """Whether a number may be shown so, with the digits that it has.

    >>> is_number("1,200", 1200.4), is_number("−0.05", -0.051), is_number("2e+05", 246665.0)
    (True, True, True)
    """
    text = shown.replace(",", "").replace("−", "-")
    return abs(float(text) - value) <= half_a_digit(text) * 1.0001 + 1e-12


def half_a_digit(text: str) -> float:
    """By how much a number may be off that is written so: half of its last digit."""
    mantissa, _, exponent = text.lstrip("+-").partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def in_quotes(names: str) -> tuple[list[str], int]:
    """The names that are listed, and how many are only counted.

    >>> in_quotes("“a”, “b” and 2 more")
    (['a', 'b'], 2)
    """
    more = re.search(r" and (\d+) more$", names)
    return re.findall(r"“([^”]*)”", names), int(more.group(1)) if more else 0


def as_read(text: str) -> str:
    """A name as a reader sees it: no white space around it, and nothing that acts."""
    return visible(text.strip()) or signs(text)


def as_quoted(text: str, most: int) -> str:
    """The beginning of a text as it stands in quotes: as many whole words as there is room for.

    Of a first word for which there is no room, its letters.
    """
    line = " ".join(text.split()) or signs(text)
    if len(line) <= most:
        return as_read(line)
    words = line.split(" ")
    while len(words) > 1 and len(" ".join(words)) > most:
        words.pop()
    return as_read(f"{' '.join(words)[:most]}…")


def lists(shown: str, names: list[str], most: int) -> bool:
    """Whether a list in quotes names the first so many of some names, and counts the others."""
    told, more = in_quotes(shown)
    return told == [as_read(name) for name in names[:most]] and more == max(len(names) - most, 0)
