"""Words, sentences and graphemes are cut from characters alone."""

from __future__ import annotations

import time
import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from whence.core.cutting import (
    checked_units,
    grapheme_starts,
    sentence_starts,
    unit_of_tokens,
    unit_spans,
    word_starts,
)
from whence.core.errors import InputError

FAMILY = "👨‍👩‍👧"
THUMB = "👍🏽"


def cut(text: str, starts: list[int]) -> list[str]:
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's dull", ["It's", " dull"]),
        ("she’d rather", ["she’d", " rather"]),
        ("rock'n'roll", ["rock'n'roll"]),
        ("the dogs' bowl", ["the", " dogs", "'", " bowl"]),
        ("well-made film!", ["well", "-", "made", " film", "!"]),
        ("so... good?!", ["so", "...", " good", "?", "!"]),
        ("3.14 and 1,000 at 10:30.", ["3.14", " and", " 1,000", " at", " 10:30", "."]),
        ("v2.x", ["v2", ".", "x"]),
        ("snake_case", ["snake_case"]),
        ("  two  spaces ", ["  two", "  spaces", " "]),
        ("a\tb\nc\r\nd", ["a", "\tb", "\nc", "\r\nd"]),
        ("中国的电影", ["中", "国", "的", "电", "影"]),
        ("GPT很好", ["GPT", "很", "好"]),
        ("ที่ดี", ["ที่", "ดี"]),
        ("한국어 영화", ["한국어", " 영화"]),
        ("cafe\u0301's", ["cafe\u0301's"]),
        (f"ok {THUMB}{THUMB}", ["ok", f" {THUMB}", THUMB]),
        (f"{FAMILY}{FAMILY} ok", [FAMILY, FAMILY, " ok"]),
        ("🇫🇷🇩🇪🇫", ["🇫🇷", "🇩🇪", "🇫"]),
        ("سلام عليكم", ["سلام", " عليكم"]),
        ("שָׁלוֹם!", ["שָׁלוֹם", "!"]),
        ("a\x00b", ["a", "\x00", "b"]),
    ],
)
def test_words_are_what_a_person_would_point_at(text: str, words: list[str]) -> None:
    assert cut(text, word_starts(text)) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", " Two!", " Three?"]),
        ("Dr. Who met J. Smith. Yes", ["Dr. Who met J. Smith.", " Yes"]),
        ('He said "no." Then left.', ['He said "no."', " Then left."]),
        (
            "see no. 5 and fig. 2. Is it? no. It is",
            ["see no. 5 and fig. 2.", " Is it?", " no.", " It is"],
        ),
        ("3.14 is pi", ["3.14 is pi"]),
        ("first line\nsecond", ["first line", "\nsecond"]),
        ("first line\r\nsecond", ["first line", "\r\nsecond"]),  # the enemy cut between CR and LF
        ("很好。不错！「是。」对", ["很好。", "不错！", "「是。」", "对"]),
        ("The end. ", ["The end. "]),  # the enemy made a sentence of the last space
        ("\n\n\nstart", ["\n\n\nstart"]),
    ],
)
def test_sentences_end_where_a_reader_stops(text: str, sentences: list[str]) -> None:
    assert cut(text, sentence_starts(text)) == sentences


# Left out, as the docstring says: prepended marks, Indic conjuncts, and marks that UAX #29 lets
# stand alone.
PREPEND = regex.compile(r"\p{Grapheme_Cluster_Break=Prepend}")
KNOWN_CATEGORY = ("Lu", "Ll", "Lo", "Nd", "Mn", "Me", "Po", "Zs", "Zl", "Cc", "So", "Sk")
JAMO = ["\u1100", "\u1161", "\u11a8", "가", "각"]
EMOJI = [
    "\ufe0f",
    "\u20e3",
    "❤",
    "👨",
    "👩",
    "🏽",
    "🇫",
    "🇷",
    FAMILY,
    "\U000e0067",
    "\U000e007f",
    "🏴",
    "♂",
]
MARKS = [
    "a",
    "e\u0301",
    "\u200d",
    "\u200c",
    "\u200b",
    "\xad",
    "\u0e33",
    "ท",
    "\uff9e",
    "\u0903",
    "कि",
]
TELLING = st.sampled_from(["\r", "\n", "\r\n", "\t", "\0", "\u2028", *JAMO, *EMOJI, *MARKS])


def is_claimed(text: str) -> bool:
    conjunct = regex.search(r"[\u0900-\u0DFF]\p{M}*\u094d", text) is not None
    joined = regex.search(r"\p{So}[\p{M}\U0001F3FB-\U0001F3FF]*\u200d\p{So}", text) is not None
    pictures = (
        regex.search(
            r"\p{Extended_Pictographic}[\p{M}\U0001F3FB-\U0001F3FF]*\u200d\p{Extended_Pictographic}",
            text,
        )
        is not None
    )
    young = any(unicodedata.category(c) == "Cn" for c in text)
    return not (PREPEND.search(text) or conjunct or young or (joined and not pictures))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(TELLING | st.characters(categories=KNOWN_CATEGORY, max_codepoint=0x1FFFF), max_size=10)
    .map("".join)
    .filter(is_claimed)
)
@example("❤\u200d\u200d👨")  # one joiner joins, two do not
@example("👨\u200d\ufe0f\u200d👩")
@example("각\u11a8가\u1161\u11a8\u11a8각\u1161")
def test_graphemes_are_those_of_an_independent_implementation_of_uax_29(text: str) -> None:
    assert grapheme_starts(text) == [m.start() for m in regex.finditer(r"\X", text)]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(max_size=40))
def test_words_and_sentences_never_cut_a_grapheme_and_begin_at_the_beginning(text: str) -> None:
    for starts in (word_starts(text), sentence_starts(text)):
        assert starts[:1] == ([0] if text else [])
        assert starts == sorted(set(starts))
    assert set(word_starts(text)) <= set(grapheme_starts(text))


@pytest.mark.parametrize(
    "text",
    [
        '"' * 100_000,
        "a" + '."' * 50_000,
        " \n" * 50_000 + "a",
        "a. " * 33_000,
        "\u0301" * 100_000,
        "🇫" * 100_000,
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_cutting_takes_time_in_proportion_to_the_text(text: str) -> None:
    # the enemy looked back over every closing quote from each of them: 100,000 quotes took ten
    # minutes
    began = time.process_time()  # other work on the machine does not count
    word_starts(text)
    sentence_starts(text)
    assert time.process_time() - began < 60  # a hundred times what it takes


def spans(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def test_a_boundary_inside_a_token_is_given_up() -> None:
    assert unit_spans("a-b c", spans((0, 3), (4, 5)), "word") == [(0, 3), (3, 5)]
    assert unit_spans("x...", spans((0, 2), (2, 4)), "word") == [
        (0, 4)
    ]  # the enemy cuts "x." in the middle


def test_a_stretch_without_a_token_joins_the_unit_before_it_or_at_the_beginning_after_it() -> None:
    text = "\x00 good\x00 film"
    tokens = spans((2, 6), (8, 12))
    assert [text[a:b] for a, b in unit_spans(text, tokens, "word")] == ["\x00 good\x00", " film"]


def test_of_the_byte_pieces_of_one_character_the_first_holds_it() -> None:
    tokens = spans((0, 1), (0, 1), (0, 1), (1, 2))
    assert unit_spans("中a", tokens, "token") == [(0, 1), (1, 1), (1, 1), (1, 2)]
    assert unit_of_tokens([(0, 1), (1, 2)], tokens, "word").tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ([], ["ab cd ef"]),
        ([3], ["ab ", "cd ef"]),
        ((6, 3, 3), ["ab ", "cd ", "ef"]),
        (np.array([0, 6]), ["ab cd ", "ef"]),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_sections_begin_where_the_caller_says_in_any_order(
    units: list[int], expected: list[str]
) -> None:
    text = "ab cd ef"
    checked = checked_units(units, len(text))
    assert [
        text[a:b] for a, b in unit_spans(text, spans((0, 2), (3, 5), (6, 8)), checked)
    ] == expected


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ("words", "no kind of unit named 'words'. Did you mean 'word'?"),
        (
            [-1],
            "section start -1 is outside the text, whose characters are 0 to 7",
        ),  # the enemy made a unit that began before the text
        ([8], "section start 8 is outside the text"),
        ([1.5], "whole numbers"),
        (3, "whole numbers"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_units_that_do_not_exist_are_refused(units: object, message: str) -> None:
    with pytest.raises(InputError, match=regex.escape(message)):
        checked_units(units, 8)  # type: ignore[arg-type]
