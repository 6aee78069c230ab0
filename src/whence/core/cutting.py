"""Units cut from characters, so that they are right for every tokenizer.

A tokenizer's pieces say nothing reliable about words: "Ġ", "##" and "▁" are three private
conventions, and an emoji may be four byte-pieces. Characters are common ground. So words and
sentences are looked for in the text, after the spirit of Unicode's text segmentation (UAX #29), and
every token joins the unit in which its characters lie. A boundary inside a token is given up.
"""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import get_args

import numpy as np
from jaxtyping import Int

from whence.core.errors import InputError, unknown_name
from whence.core.units import UnitKind

ZERO_WIDTH_NON_JOINER = 0x200C
ZERO_WIDTH_JOINER = 0x200D
HALF_WIDTH_VOICE_MARKS = (0xFF9E, 0xFF9F)
APOSTROPHES = frozenset("'’ʼ＇")
# Written without spaces, so that there is no boundary to see without a dictionary: a unit is one
# grapheme, or the token over several.
SCRIPTS_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x3005, 0x3007),  # ideographic iteration and zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),  # Myanmar, extended
    (0xAA60, 0xAADF),  # Myanmar, extended; Tai Viet
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x1B000, 0x1B16F),  # Kana, extended
    (0x20000, 0x3FFFF),
)
LINE_BREAKS = frozenset("\n\r\x85\u2028\u2029")
SENTENCE_ENDS = frozenset(".!?…‽")
FULL_WIDTH_ENDS = frozenset("。！？｡")
CLOSERS = frozenset("\"'”’»)]}›」』）")
ABBREVIATION_LIST = "mr mrs ms dr prof st vs etc e.g i.e cf inc ltd jr sr approx dept"
ABBREVIATIONS = frozenset(ABBREVIATION_LIST.split())
BEFORE_NUMBERS = frozenset({"no", "fig", "p", "pp", "vol"})  # "no. 5" goes on, "no. It" does not


def grapheme_starts(text: str) -> list[int]:
    """Where each user-perceived character begins.

    The rules of UAX #29 as far as Python's own Unicode tables tell the classes: line ends,
    controls, Hangul, marks, emoji sequences, flags. Left out are prepended marks (GB9b), Indic
    conjuncts (GB9c) and some tone marks of Myanmar and Tai that stand alone; and a joiner holds any
    two symbols of the blocks of emoji together, also those that are none.

    >>> grapheme_starts("e\\u0301a👍🏽")
    [0, 2, 3]
    """
    if text.isascii():
        # only the line feed after a carriage return goes on
        return [i for i in range(len(text)) if text[i - 1 : i + 1] != "\r\n"]
    starts: list[int] = []
    flags_in_a_row = 0
    emoji = ""
    for i, character in enumerate(text):
        if i == 0 or not _extends(text, i, flags_in_a_row, emoji == "joined"):
            starts.append(i)
        emoji = _emoji_after(emoji, character)
        flags_in_a_row = flags_in_a_row + 1 if _is_flag_letter(ord(character)) else 0
    return starts


def _emoji_after(emoji: str, character: str) -> str:
    """How far a sequence of emoji has come.

    "open" after a picture and its modifiers, "joined" after a joiner that follows them (then a
    picture goes on), and empty outside.
    """
    if _is_picture(character):
        return "open"
    if emoji != "open" or not _marks(character):
        return ""
    return "joined" if ord(character) == ZERO_WIDTH_JOINER else "open"


def _is_flag_letter(code: int) -> bool:
    """Regional indicators, which pair up to flags."""
    return 0x1F1E6 <= code <= 0x1F1FF


def _is_skin_tone(code: int) -> bool:
    return 0x1F3FB <= code <= 0x1F3FF


def _is_flag_tag(code: int) -> bool:
    """The tags that spell the flag of a region, such as Scotland's."""
    return 0xE0020 <= code <= 0xE007F


def _extends(text: str, i: int, flags_before: int, after_joined_picture: bool) -> bool:
    code, before = ord(text[i]), ord(text[i - 1])
    if code < 0x300:  # nothing below extends, but for the line feed after a carriage return
        return code == 0x0A and before == 0x0D
    if _is_control(text[i - 1]):
        return False
    if _marks(text[i]) or code in (0x0E33, 0x0EB3) or unicodedata.category(text[i]) == "Mc":
        return True
    if before == ZERO_WIDTH_JOINER:
        return after_joined_picture and _is_picture(text[i])
    if _is_flag_letter(code):
        return flags_before % 2 == 1
    return (_hangul(before), _hangul(code)) in HANGUL_HOLDS


def _marks(character: str) -> bool:
    """What extends any character before it: combining marks, joiners, skin tones, flag tags."""
    code = ord(character)
    if code < 0x300:
        return False
    if _is_skin_tone(code) or _is_flag_tag(code):
        return True
    if code in (ZERO_WIDTH_JOINER, ZERO_WIDTH_NON_JOINER, *HALF_WIDTH_VOICE_MARKS):
        return True
    return unicodedata.category(character) in ("Mn", "Me")


def _is_control(character: str) -> bool:
    code = ord(character)
    if code in (ZERO_WIDTH_JOINER, ZERO_WIDTH_NON_JOINER) or _is_flag_tag(code):
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")


def _is_picture(character: str) -> bool:
    code = ord(character)
    if 0x1F000 <= code <= 0x1FFFD:
        return not _is_flag_letter(code) and not _is_skin_tone(code)
    if 0x203C <= code <= 0x3299:
        return unicodedata.category(character) in ("So", "Sm", "Po")
    return code in (0xA9, 0xAE)  # © and ®


# leading consonant, vowel, trailing consonant, and syllables without and with a trailing one
# (GB6 to GB8)
HANGUL_HOLDS = frozenset(
    {
        ("L", "L"),
        ("L", "V"),
        ("L", "LV"),
        ("L", "LVT"),
        ("V", "V"),
        ("LV", "V"),
        ("V", "T"),
        ("LV", "T"),
        ("T", "T"),
        ("LVT", "T"),
    }
)


def _hangul(code: int) -> str:
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    if 0xAC00 <= code <= 0xD7A3:
        return "LV" if (code - 0xAC00) % 28 == 0 else "LVT"
    return ""


@lru_cache(maxsize=8192)
def _class(character: str) -> str:
    code = ord(character)
    if character.isspace():
        return "space"
    if any(low <= code <= high for low, high in SCRIPTS_WITHOUT_SPACES):
        return "alone"
    if character.isalnum() or character == "_" or unicodedata.category(character)[0] in "LMN":
        return "word"
    return "mark"


def word_starts(text: str) -> list[int]:
    """Where each word begins.

    White space belongs to the word after it; a run of one mark ("...") is one word.

    >>> text = "It's 3.5 stars, well-made..."
    >>> starts = word_starts(text)
    >>> [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])]
    ["It's", ' 3.5', ' stars', ',', ' well', '-', 'made', '...']
    """
    graphemes = grapheme_starts(text)
    starts: list[int] = []
    for k, i in enumerate(graphemes):
        if k == 0 or _word_begins(text, graphemes, k):
            starts.append(i)
    return starts


def _word_begins(text: str, graphemes: list[int], k: int) -> bool:
    i, previous = graphemes[k], graphemes[k - 1]
    here, before = _class(text[i]), _class(text[previous])
    if before == "space":
        return False
    if here == "space" or here == "alone" or before == "alone":
        return True
    if here == before == "word":
        return False
    if here == before == "mark":
        # a run of one punctuation mark is one thing to score; two equal emoji are two
        is_punctuation = unicodedata.category(text[i])[0] == "P"
        return text[i] != text[previous] or not is_punctuation
    if here == "mark":
        follower = text[graphemes[k + 1]] if k + 1 < len(graphemes) else ""
        return not _joins(text[previous], text[i], follower)
    leader = text[graphemes[k - 2]] if k >= 2 else ""
    return not _joins(leader, text[previous], text[i])


def _joins(left: str, mark: str, right: str) -> bool:
    """Contractions (don't) and numbers (3.14, 1,000) hold together."""
    if not left or not right:
        return False
    if mark in APOSTROPHES:
        return left.isalpha() and right.isalpha()
    return mark in ".,:" and left.isdigit() and right.isdigit()


def sentence_starts(text: str) -> list[int]:
    """Where each sentence begins.

    After . ! ? … (with closing quotes) and white space, after 。！？ and at line breaks.

    >>> text = "Dr. Who is great. Is it?  Yes"
    >>> starts = sentence_starts(text)
    >>> [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])]
    ['Dr. Who is great.', ' Is it?', '  Yes']
    """
    starts = [0] if text else []
    # the last character before i that is no closing quote or bracket: it ends the sentence or not
    last = 0
    blank = not text[:1].strip()  # nothing but white space since the last start
    for i in range(1, len(text)):
        if not blank and _sentence_ended(text, i, last):
            starts.append(i)
            blank = True
        if text[i] not in CLOSERS:
            last = i
        blank = blank and text[i].isspace()
    if blank and len(starts) > 1:  # white space at the end is no sentence
        starts.pop()
    return starts


def _sentence_ended(text: str, i: int, last: int) -> bool:
    if text[i] in LINE_BREAKS and text[i - 1] not in LINE_BREAKS:
        return True
    if text[last] in FULL_WIDTH_ENDS:
        return text[i] not in FULL_WIDTH_ENDS and text[i] not in CLOSERS
    if text[last] not in SENTENCE_ENDS or not text[i].isspace():
        return False
    if text[last] != ".":
        return True
    return not _goes_on(text, i, last)


def _goes_on(text: str, i: int, stop: int) -> bool:
    """Whether the full stop at ``stop`` belongs to an initial or an abbreviation."""
    words_before = text[max(0, stop - 12) : stop].rsplit(None, 1)
    word = words_before[-1] if words_before else ""
    if len(word) == 1 and word.isupper():
        return True
    bare = word.lower().lstrip("(\"'")
    if bare in BEFORE_NUMBERS and text[i : i + 8].lstrip()[:1].isdigit():
        return True
    return bare in ABBREVIATIONS


def checked_units(units: UnitKind | Sequence[int], longest: int) -> UnitKind | tuple[int, ...]:
    """A kind of unit, or section starts within a text of ``longest`` characters.

    Anything else is refused.
    """
    kinds = get_args(UnitKind)
    if isinstance(units, str):
        if units not in kinds:
            problem = unknown_name("kind of unit", units, kinds)
            raise InputError(f"{problem} Or give the positions where your sections begin.")
        return units
    try:
        starts = tuple(operator.index(s) for s in units)
    except TypeError:
        raise InputError(
            f"units is one of {', '.join(kinds)}, "
            f"or the whole numbers where sections begin, not {units!r}."
        ) from None
    for start in starts:
        if not 0 <= start < max(longest, 1):
            raise InputError(
                f"the section start {start} is outside the text, "
                f"whose characters are 0 to {longest - 1}."
            )
    return starts


def unit_spans(
    text: str,
    token_spans: Int[np.ndarray, "token 2"],
    units: UnitKind | Sequence[int],
) -> list[tuple[int, int]]:
    """Character spans that partition ``text``: none cuts a token, and none is without a token.

    ``units`` is a kind, or the character positions where the caller's own sections begin. With
    ``"token"`` there is one unit per token; of the byte-pieces of one character the first holds the
    character, the others the empty string.
    """
    if len(token_spans) == 0:
        return []
    if isinstance(units, str) and units == "token":
        ends = np.maximum.accumulate(token_spans[:, 1]).tolist()
        return list(zip([0, *ends[:-1]], [*ends[:-1], len(text)], strict=True))

    inside_tokens: set[int] = set()
    for start, end in token_spans.tolist():
        inside_tokens.update(range(start + 1, end))
    starts = [start for start in _starts(text, units) if start not in inside_tokens]
    starts = _with_tokens(starts, token_spans)
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _starts(text: str, units: UnitKind | Sequence[int]) -> list[int]:
    """Where units begin, whatever the tokens are."""
    if not isinstance(units, str):
        return sorted({0, *(start for start in units if start < len(text))})
    return word_starts(text) if units == "word" else sentence_starts(text)


def _with_tokens(starts: list[int], token_spans: Int[np.ndarray, "token 2"]) -> list[int]:
    """Of the starts, those whose unit has a token.

    A stretch without a token (a character that the tokenizer drops) joins the unit before it, and
    at the beginning of the text the one after it.
    """
    with_token = set(_owner(starts, token_spans).tolist())
    kept, has_token = [0], 0 in with_token
    for k in range(1, len(starts)):
        if k in with_token:
            if has_token:
                kept.append(starts[k])
            has_token = True
    return kept


def unit_of_tokens(
    spans: Sequence[tuple[int, int]],
    token_spans: Int[np.ndarray, "token 2"],
    units: UnitKind | Sequence[int],
) -> Int[np.ndarray, " token"]:
    """The unit that each token belongs to: the one in which its first character lies."""
    if isinstance(units, str) and units == "token":
        return np.arange(len(token_spans))
    return _owner([start for start, _ in spans], token_spans)


def _owner(
    starts: Sequence[int], token_spans: Int[np.ndarray, "token 2"]
) -> Int[np.ndarray, " token"]:
    last_start = np.searchsorted(starts, token_spans[:, 0], side="right") - 1
    return np.maximum(last_start, 0).astype(np.int64)
