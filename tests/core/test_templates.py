"""Templates from files of several kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.core.errors import InputError
from whence.core.templates import NEUTRAL, read_templates, swapped

PLAIN = """\
words: she, her
against: he, him
# about work
the nurse said that {1} was late
we asked {2}

{} is here
"""
WINOGENDER = """\
occupation(0)\tother-participant(1)\tanswer\tsentence
technician\tcustomer\t1\tThe $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN could pay.
accountant\ttaxpayer\t1\tThe $PARTICIPANT met the $OCCUPATION about $POSS_PRONOUN taxes.
nurse\tpatient\t0\tThe $OCCUPATION helped; we thanked $ACC_PRONOUN.
"""
SENTENCES = """\
sentid\tsentence
nurse.patient.1.male.txt\tHe was late.
nurse.patient.1.female.txt\tShe was late.
nurse.patient.1.neutral.txt\tThey were late.
"""
WINOBIAS = """\
pro_stereotyped\tanti_stereotyped
[The developer] argued because [he] was late.\t[The developer] argued because [she] was late.
"""
ONE_COLUMN = """\
1 [The developer] argued with the designer because [he] did not like the design.
2 The developer argued with [the designer] because [her] idea cannot be implemented.
3 The developer argued with [the designer] and slapped [her] in the face.
4 The guard met [the teacher] and so protected [her].
"""


def test_plain_text_with_its_own_lists() -> None:
    t = read_templates(PLAIN)
    assert (t.first, t.second) == ("he, him", "she, her")
    late, asked, here = (template.pairs for template in t.templates)
    assert late == (("the nurse said that he was late", "the nurse said that she was late"),)
    assert asked == (("we asked him", "we asked her"),)
    # a slot without a number takes each pair in turn, and begins a line with a capital
    assert here == (("He is here", "She is here"), ("Him is here", "Her is here"))


def test_lists_that_are_given_go_before_those_of_the_file() -> None:
    t = read_templates(PLAIN, ["Anna", "Anna"], ["Paul", "Paul"])
    assert t.templates[0].pairs[0][1] == "the nurse said that Anna was late"


def test_winogender_s_templates() -> None:
    pay, taxes, thanks = read_templates(WINOGENDER).templates
    assert pay.pairs[0][1] == "The technician told the customer that she could pay."
    # the cases are told apart: his and him are both her
    assert taxes.pairs[0] == (
        "The taxpayer met the accountant about his taxes.",
        "The taxpayer met the accountant about her taxes.",
    )
    assert thanks.pairs[0][0] == "The nurse helped; we thanked him."
    they = read_templates(WINOGENDER, ["they", "them", "their"], ["he", "him", "his"])
    assert they.templates[1].pairs[0][1] == "The taxpayer met the accountant about their taxes."


def test_winogender_s_sentences() -> None:
    t = read_templates(SENTENCES)
    assert (t.first, t.second) == ("male", "female")
    assert t.templates[0].pairs == (("He was late.", "She was late."),)


def test_winobias_in_two_columns_and_in_one() -> None:
    t = read_templates(WINOBIAS)
    assert (t.first, t.second) == ("pro_stereotyped", "anti_stereotyped")
    assert t.templates[0].pairs == (
        (
            "The developer argued because he was late.",
            "The developer argued because she was late.",
        ),
    )
    he, his, him, at_the_end = (x.pairs[0][0] for x in read_templates(ONE_COLUMN).templates)
    assert he.endswith("because he did not like the design.")
    assert his.endswith("because his idea cannot be implemented.")
    assert him.endswith("slapped him in the face.")
    assert at_the_end.endswith("protected him.")


def test_pairs_as_they_are() -> None:
    t = read_templates("a good man\ta good woman\nhis car\ther car\n")
    assert [x.pairs[0] for x in t.templates] == [
        ("a good man", "a good woman"),
        ("his car", "her car"),
    ]


@pytest.mark.parametrize(
    ("content", "words", "against", "says"),
    [
        ("the nurse was late", ["she"], ["he"], "line 1: there is no slot"),
        ("{} was late", [], [], "two lists of words are needed"),
        ("{} was late", ["she"], [], "two lists of words are needed"),
        ("{} was late", ["she", "her"], ["he"], "paired word by word"),
        ("{3} was late", ["she"], ["he"], "asks for word 3"),
        ("{} and {1} were late", ["she"], ["he"], "numbers alone"),
        ("# nothing\n", ["she"], ["he"], "has no template"),
    ],
)
def test_mistakes_say_what_to_do(content, words, against, says) -> None:
    with pytest.raises(InputError, match=says):
        read_templates(content, words, against)


WORDS = st.lists(st.sampled_from(["the", "nurse", "saw", "He", "she", ",", "it"]), max_size=6)


@given(WORDS, WORDS)
def test_neutral_words_stand_only_where_the_texts_differ(
    before: list[str], after: list[str]
) -> None:
    first, second = (" ".join([*before, word, *after]) for word in ("doctor", "teacher"))
    texts = swapped(first, second, NEUTRAL[0])
    assert texts == tuple(" ".join([*before, word, *after]) for word in NEUTRAL[0])


def test_a_text_with_a_word_more_has_no_control() -> None:
    assert swapped("she was late", "she was very late", NEUTRAL[0]) is None


def test_templates_with_the_same_texts_count_once_and_the_first_stays() -> None:
    content = "{} was late\nwe met {}\n {} was late \n{1} was late"
    given = read_templates(content, ["she"], ["he"])
    once = given.once_each()
    assert [template.line for template in once.templates] == ["{} was late", "we met {}"]
    assert (len(given), given.repeated, once.repeated) == (4, 0, 2)
    assert once.once_each() == once
