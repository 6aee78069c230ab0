"""Read numbers and names back from sentences. Nothing here is the wording of the views."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal

Reader = Callable[..., bool | None]

COUNT = r"[\d,]+"
NUMBER = r"[-−]?[\d,]*\.?\d+"
PERCENT = r"[−+]?(?:[<>] )?[-−+]?[\d,]*\.?\d+ ?%"


def shown(name: str) -> str:
    """A name as it may stand on a terminal: what would act is spelt out."""
    spelt = []
    for c in name:
        category = unicodedata.category(c)
        acts = category in ("Cc", "Cf", "Zl", "Zp") and c not in "\u200c\u200d"
        code = f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"
        spelt.append(code if acts else c)
    return "".join(spelt)


def whole(text: str) -> int:
    """A count with its commas."""
    return int(text.replace(",", ""))


def is_number(text: str, value: float) -> bool:
    """Whether a number that is shown is the value, within the digits that it shows."""
    plain = text.replace(",", "").replace("−", "-").lstrip("+")
    step = Decimal(1).scaleb(int(Decimal(plain).as_tuple().exponent))  # type: ignore[arg-type]
    return abs(float(plain) - value) <= 0.5 * float(step) * (1 + 1e-6) + 1e-12


def is_percent(text: str, share: float) -> bool:
    """The same of a share; 0 and 100 % are said of exactly these alone, "< 0.01" of what is less.

    >>> is_percent("99.6 %", 0.996), is_percent("100 %", 0.996), is_percent("> 99.99 %", 0.99999)
    (True, False, True)
    """
    bare = text.removesuffix("%").strip()
    hundred = 100 * share
    if bare[:2] in ("< ", "> "):
        bound = float(bare[2:].replace("−", "-"))
        return hundred < bound + 1e-9 if bare[0] == "<" else hundred > bound - 1e-9
    number = float(bare.replace("−", "-").replace(",", ""))
    if number in (0.0, 100.0, -100.0):
        return abs(hundred - number) < 1e-6 * 100
    return is_number(bare, hundred)


def listed(text: str) -> list[str]:
    """The names of a list in a sentence, none of which holds a comma or an "and".

    >>> listed("a, b and c"), listed("a")
    (['a', 'b', 'c'], ['a'])
    """
    if not text:
        return []
    *first, last = text.rsplit(" and ", 1) if " and " in text else ("", text)
    return [*(part for part in first[0].split(", ") if part), last]


def plain(page: str) -> str:
    """What a person reads of a piece of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def read(sentences: Sequence[str], readers: Sequence[tuple[str, Reader]]) -> list[str]:
    """Each sentence is read by one reader, which checks it; the names of the readers.

    A reader is a pattern and a function of what the pattern has caught. A sentence that no pattern
    matches could say anything, and one that two match is read by neither.
    """
    names = []
    for sentence in sentences:
        matches = [(re.fullmatch(pattern, sentence, re.DOTALL), r) for pattern, r in readers]
        found = [(match, reader) for match, reader in matches if match is not None]
        assert len(found) == 1, f"{len(found)} readers of {sentence!r}"
        ((match, reader),) = found
        assert reader(*match.groups()) is not False, sentence
        names.append(reader.__name__)
    return names
