"""How values are worded in every view: numbers with sensible digits, costs, errors, and text that cannot do anything but be read."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from whence.core.attribution import Attribution

JOINERS = frozenset("\u200c\u200d")  # hold emoji and Indic clusters together, and draw nothing by themselves
TAGS = range(0xE0020, 0xE0080)  # spell the flags of Scotland and Wales
UNREADABLE = {"Cc", "Cs", "Cn", "Co", "Zl", "Zp"}
MOST_DECIMALS = 6


def visible(text: str, keep: str = "") -> str:
    """Text with every control character, direction override and lone surrogate spelt out, so that it cannot act on a terminal or a page.

    >>> visible("\\x1b[31mred\\x07")
    '\\\\x1b[31mred\\\\x07'
    """
    return "".join(c if c in keep or not _acts(c) else _spelt(c) for c in text)


def _acts(c: str) -> bool:
    if c.isascii():
        return not c.isprintable()
    category = unicodedata.category(c)
    return category in UNREADABLE or (category == "Cf" and c not in JOINERS and ord(c) not in TAGS)


def _spelt(c: str) -> str:
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def label(name: object) -> str:
    """A label as it is read; in quotes where white space is part of it, as in the tokens of a language model.

    >>> label("positive"), label(" good")
    ('positive', "' good'")
    """
    text = str(name)
    return visible(text) if text == text.strip() and text else f"'{visible(text)}'"


def score_format(scores: Iterable[float], signed: bool) -> Callable[[float], str]:
    """One format for a column of scores: three digits of the largest one, decimal points below each other.

    >>> f = score_format([0.1234, -2.5], signed=True)
    >>> f(0.1234), f(-2.5), f(0.0)
    ('+0.12', '-2.50', '0.00')
    """
    largest = max((abs(s) for s in scores), default=0.0)
    sign = "+" if signed else ""
    if largest and not 1e-5 <= largest < 1e6:
        return lambda s: f"{s:{sign}.1e}" if s else "0"
    decimals = 2 if not largest else min(max(2 - math.floor(math.log10(largest)), 0), MOST_DECIMALS)

    def shown(s: float) -> str:
        text = f"{s:{sign}.{decimals}f}"
        return text.lstrip("+-") if float(text) == 0 else text

    return shown


def exact(score: float, signed: bool) -> str:
    """A score with six digits, for a tooltip."""
    return f"{score:{'+' if signed else ''}.6g}"


def value(a: Attribution) -> str:
    """The target and what it is on this text: ``logit of positive = 2.31``."""
    return f"{visible(a.target.describe())} = {a.value:.4g}"


def model_line(a: Attribution) -> str:
    """The model by name and class."""
    return f"{visible(a.provenance.model)} · {visible(a.provenance.architecture)}"


def milliseconds(seconds: float) -> str:
    """A time as a number of milliseconds, for a column."""
    ms = seconds * 1000
    return f"{ms:.1f}" if ms < 9.95 else f"{ms:,.0f}"


def duration(seconds: float) -> str:
    """A time in the unit that a person would choose."""
    if seconds < 1:
        return f"{milliseconds(seconds)} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def size(count: int | float) -> str:
    """Bytes in the unit that a person would choose.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def percent(share: int | float) -> str:
    """A share in percent with two digits.

    >>> percent(0.00312), percent(0.5), percent(830.0)
    ('0.31 %', '50 %', '83000 %')
    """
    hundred = share * 100
    return f"{hundred:.0f} %" if hundred >= 9.95 or hundred == 0 else f"{hundred:.2g} %" if hundred >= 0.01 else "< 0.01 %"


def error(a: Attribution) -> str:
    """How far the scores may be off, in one cell; empty where the method is exact or does not say."""
    if a.error is None:
        return ""
    parts = []
    if a.error.completeness_gap is not None:
        parts.append(f"gap {percent(a.error.completeness_gap)}")
    if a.error.standard_error is not None and len(a.error.standard_error):
        parts.append(f"± {a.error.standard_error.max():.2g}")
    return ", ".join(parts)


def settings(given: Mapping[str, Any]) -> str:
    """A method's settings in one line."""
    return ", ".join(f"{k}={visible(str(v))}" for k, v in given.items()) or "none"


def dropped(a: Attribution) -> str:
    """Said whenever truncation left something out; empty otherwise."""
    n = a.passage.dropped
    return f"only the beginning is explained: {n:,} character{'s were' if n != 1 else ' was'} cut off" if n else ""
