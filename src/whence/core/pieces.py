"""Tokens without characters of their own: a blank that stands alone, or a part of a character.

Vocabularies of bytes cut "é" in two, and spell each byte as some other letter: "Ã" is the first
half of it. That would be read as a letter, so such a piece is told by its bytes, "<0xC3>", as by
the vocabularies that keep bytes apart.
"""

from __future__ import annotations

import re

NAME = re.compile(r"( *)((?:<0x[0-9A-F]{2}>)+)")
BLANKS = "Ġ▁"


def _letters_of_bytes() -> list[str]:
    """The letter by which such vocabularies spell each byte (the table is GPT-2's)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable}
    letters |= {byte: chr(0x100 + number) for number, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


LETTERS = _letters_of_bytes()
BYTES = {letter: byte for byte, letter in enumerate(LETTERS)}


def told(token: str) -> str:
    """The string of a token without characters of its own, as it can be read.

    >>> told("Ġ"), told("▁"), told("ĠÃ"), told("<0xC3>")
    (' ', ' ', ' <0xC3>', '<0xC3>')
    """
    bare = token.lstrip(BLANKS)
    blanks = " " * (len(token) - len(bare))
    if not is_part(bare):
        return blanks + bare
    return blanks + "".join(f"<0x{BYTES[letter]:02X}>" for letter in bare)


def is_part(token: str) -> bool:
    """Whether a token's string stands for bytes that are no whole characters.

    >>> is_part("Ã"), is_part("Ã©"), is_part("the")
    (True, False, False)
    """
    if not token or any(letter not in BYTES for letter in token):
        return False
    try:
        bytes(BYTES[letter] for letter in token).decode()
    except UnicodeDecodeError:
        return True
    return False


def string_of(name: str, blank: str) -> str | None:
    """The string of the token that is told by its bytes; None of any other name.

    ``blank`` is the vocabulary's own sign for a blank.

    >>> string_of(" <0xC3>", "Ġ"), string_of("the", "Ġ")
    ('ĠÃ', None)
    """
    found = NAME.fullmatch(name)
    if found is None:
        return None
    bytes_told = re.findall("<0x(..)>", found[2])
    return blank * len(found[1]) + "".join(LETTERS[int(byte, 16)] for byte in bytes_told)
