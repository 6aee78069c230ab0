"""Safe text: it can do nothing but be read. What would act on a terminal or a page is spelt out.

Everything that others wrote (texts, labels, names of methods and files, settings) comes through
here on its way to a terminal: results and their ``repr``, notes, errors, progress, and JSON.
"""

from __future__ import annotations

import re
import unicodedata

# they hold emoji and Indic clusters together, and draw nothing by themselves
JOINERS = frozenset("\u200c\u200d")
TAGS = range(0xE0020, 0xE0080)  # spell the flags of Scotland and Wales
UNREADABLE = {"Cc", "Cs", "Cn", "Co", "Zl", "Zp"}
UNUSUAL = re.compile(r"[^\x20-\x7e\n]")


def visible(text: str, keep: str = "") -> str:
    """Text in which control characters, direction overrides and lone surrogates are spelt out.

    So it cannot act on a terminal or a page. Characters of ``keep`` stay as they are.

    >>> visible("\\x1b[31mred\\x07")
    '\\\\x1b[31mred\\\\x07'
    """
    if text.isprintable():  # nearly every text
        return text
    return "".join(c if c in keep or not acts(c) else _spelt(c) for c in text)


def acts(c: str) -> bool:
    """Whether a character does something other than being read.

    >>> acts("\\x9b"), acts("\\u202e"), acts("\\u2028"), acts("ש"), acts("\\u200d")
    (True, True, True, False, False)
    """
    if c.isascii():
        return not c.isprintable()
    category = unicodedata.category(c)
    return category in UNREADABLE or (category == "Cf" and c not in JOINERS and ord(c) not in TAGS)


def signs(text: str) -> str:
    """Signs for white space that stands alone, and would be read as nothing.

    >>> signs("\\n"), signs(" \\t")
    ('⏎', '␣⇥')
    """
    return "".join({"\n": "⏎", "\t": "⇥", " ": "␣"}.get(c, visible(c)) for c in text)


# how vocabularies write white space inside a token's own string
WHITE_SPACE = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t"})


def token_name(token: str) -> str:
    """A token's own string as it is read: without the sign for the blank before a word.

    White space that stands alone is told by its sign.

    >>> token_name("Ġpeople"), token_name("▁on"), token_name("##ing"), token_name("ĠĠ")
    ('people', 'on', '##ing', '␣␣')
    """
    word = token.lstrip("▁Ġ")
    if word.strip("Ċĉ▁Ġ"):
        return word
    return signs(token.translate(WHITE_SPACE)) if token else token


def visible_json(text: str) -> str:
    """JSON in which no character acts, and which says the same: each is written as an escape.

    Only strings can hold such characters, so the escapes are always in the right place.

    >>> visible_json('["\\u2028"]')
    '["\\\\u2028"]'
    """
    return UNUSUAL.sub(lambda found: _escaped(found[0]) if acts(found[0]) else found[0], text)


def _spelt(c: str) -> str:
    code = ord(c)
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def _escaped(c: str) -> str:
    """As JSON spells a character: two of them where it lies beyond the first 65,536."""
    units = c.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
