"""Units, the things a person scores, cut from characters so that they are right for every tokenizer.

A tokenizer's pieces say nothing reliable about words: "Ġ", "##" and "▁" are three private conventions, and an emoji may be
four byte-pieces. Characters are common ground. So words, and sentences, are found in the text, after the spirit of Unicode's
text segmentation (UAX #29), and every token joins the unit in which its characters lie. A boundary inside a token is given up.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Int

UnitKind = Literal["word", "token", "sentence"]

ZERO_WIDTH_JOINER = 0x200D
APOSTROPHES = frozenset("'’ʼ＇")
# Written without spaces, so that there is no boundary to see without a dictionary: a unit is one grapheme, or the token over several.
SCRIPTS_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration and zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x3FFFF),
)
SENTENCE_ENDS = frozenset(".!?…‽")
FULL_WIDTH_ENDS = frozenset("。！？｡")
CLOSERS = frozenset("\"'”’»)]}›」』）")
ABBREVIATIONS = frozenset("mr mrs ms dr prof st vs etc e.g i.e cf fig no inc ltd jr sr approx dept".split())


def grapheme_starts(text: str) -> list[int]:
    """Where each user-perceived character begins.

    >>> grapheme_starts("e\\u0301a👍🏽")
    [0, 2, 3]
    """
    starts: list[int] = []
    flags_in_a_row = 0
    for i, character in enumerate(text):
        code = ord(character)
        is_flag = 0x1F1E6 <= code <= 0x1F1FF
        if i == 0 or not _extends(text, i, flags_in_a_row):
            starts.append(i)
        flags_in_a_row = flags_in_a_row + 1 if is_flag else 0
    return starts


def _extends(text: str, i: int, flags_before: int) -> bool:
    code, before = ord(text[i]), ord(text[i - 1])
    if before == 0x0D:
        return code == 0x0A
    if before == 0x0A or unicodedata.category(text[i - 1]) == "Cc":
        return False
    if unicodedata.category(text[i]) in ("Mn", "Me", "Mc") or code in (ZERO_WIDTH_JOINER, 0x200C, 0x0E33, 0x0EB3):
        return True
    if 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:  # skin tones, flag tags
        return True
    if before == ZERO_WIDTH_JOINER and unicodedata.category(text[i]) == "So":
        return True
    if 0x1F1E6 <= code <= 0x1F1FF:  # regional indicators pair up to flags
        return flags_before % 2 == 1
    is_medial_or_final_jamo = 0x1160 <= code <= 0x11FF
    return is_medial_or_final_jamo and (0x1100 <= before <= 0x11FF or 0xAC00 <= before <= 0xD7A3)


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
    """Where each word begins; white space belongs to the word after it, a run of one mark ("...") is one word.

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
        return not (text[i] == text[previous] and unicodedata.category(text[i])[0] == "P")
    if here == "mark":
        follower = text[graphemes[k + 1]] if k + 1 < len(graphemes) else ""
        return not _joins(text[previous], text[i], follower)
    leader = text[graphemes[k - 2]] if k >= 2 else ""
    return not _joins(leader, text[previous], text[i])


def _joins(left: str, mark: str, right: str) -> bool:
    """Contractions (don't) and numbers (3.14, 1,000) hold together."""
    if mark in APOSTROPHES:
        return bool(left and right) and left.isalpha() and right.isalpha()
    return mark in ".,:" and bool(left and right) and left.isdigit() and right.isdigit()


def sentence_starts(text: str) -> list[int]:
    """Where each sentence begins: after . ! ? … (with closing quotes) and white space, after 。！？ and at line breaks.

    >>> text = "Dr. Who is great. Is it?  Yes"
    >>> starts = sentence_starts(text)
    >>> [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)])]
    ['Dr. Who is great.', ' Is it?', '  Yes']
    """
    starts = [0] if text else []
    for i in range(1, len(text)):
        if _sentence_ended(text, i) and text[starts[-1] : i].strip():
            starts.append(i)
    return starts


def _sentence_ended(text: str, i: int) -> bool:
    if text[i] == "\n" and text[i - 1] != "\n":
        return True
    j = i - 1
    while j > 0 and text[j] in CLOSERS:
        j -= 1
    if text[j] in FULL_WIDTH_ENDS:
        return text[i] not in FULL_WIDTH_ENDS and text[i] not in CLOSERS
    if text[j] not in SENTENCE_ENDS or not text[i].isspace():
        return False
    if text[j] != ".":
        return True
    word = text[max(0, j - 12) : j].rsplit(None, 1)[-1:] or [""]
    is_initial = len(word[0]) == 1 and word[0].isupper()
    return not is_initial and word[0].lower().lstrip("(\"'") not in ABBREVIATIONS


def unit_spans(
    text: str,
    token_spans: Int[np.ndarray, "token 2"],
    units: UnitKind | Sequence[int],
) -> list[tuple[int, int]]:
    """Character spans that partition ``text``, none of which cuts a token and none of which is without a token.

    ``units`` is a kind, or the character positions where the caller's own sections begin. With ``"token"`` there is one unit
    per token; of the byte-pieces of one character the first holds the character, the others the empty string.
    """
    if len(token_spans) == 0:
        return []
    if units == "token":
        ends = np.maximum.accumulate(token_spans[:, 1]).tolist()
        return list(zip([0, *ends[:-1]], [*ends[:-1], len(text)], strict=True))
    starts = {"word": word_starts, "sentence": sentence_starts}[units](text) if isinstance(units, str) else sorted({0, *units})
    inside = {i for start, end in token_spans.tolist() for i in range(start + 1, end)}
    starts = [s for s in starts if s not in inside]
    with_token = set(_owner(starts, token_spans).tolist())
    kept, has_token = [0], 0 in with_token
    for k in range(1, len(starts)):
        # a stretch without a token (a character that the tokenizer drops) joins the unit before it, at the beginning the one after
        if k in with_token:
            if has_token:
                kept.append(starts[k])
            has_token = True
    return list(zip(kept, [*kept[1:], len(text)], strict=True))


def unit_of_tokens(
    spans: Sequence[tuple[int, int]], token_spans: Int[np.ndarray, "token 2"], units: UnitKind | Sequence[int]
) -> Int[np.ndarray, " token"]:
    """The unit that each token belongs to: the one in which its first character lies."""
    if units == "token":
        return np.arange(len(token_spans))
    return _owner([start for start, _ in spans], token_spans)


def _owner(starts: Sequence[int], token_spans: Int[np.ndarray, "token 2"]) -> Int[np.ndarray, " token"]:
    return np.maximum(np.searchsorted(starts, token_spans[:, 0], side="right") - 1, 0).astype(np.int64)
