"""Why a model is wrong: each sentence read back from its record, and commands that can be typed."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.overviews import overview
from whence.core.confusion import (
    Confusion,
    MisleadingWord,
    Mistakes,
    Pair,
    Speaking,
    Unknown,
)
from whence.core.overview import Overview
from whence.views.confusion import (
    confusion_section,
    confusion_sentences,
    confusion_view,
    next_commands,
)
from whence.views.overview import overview_page
from whence.views.terminal import to_text


def speaking(texts: int, share: float, half: float | None = 0.1) -> Speaking:
    ends = None if half is None else (share - half, share + half)
    return Speaking(texts, texts, share, ends)


def mistakes(**more: Any) -> Mistakes:
    told: dict[str, Any] = {
        "given": "good",
        "says": "bad",
        "texts": 12,
        "right": 30,
        "method": "occlusion",
        "towards": "says",
        "words": (
            MisleadingWord("not", speaking(5, 0.4), speaking(9, 0.35)),
            MisleadingWord("dull", speaking(3, 0.3), None),
            MisleadingWord("once", speaking(1, 0.9, None), None),
        ),
        "row": 17,
        "text": "not dull at all",
        "is_whole": True,
        "probability": 0.93,
        **more,
    }
    return Mistakes(**told)


def shown(pairs: tuple[Pair, ...], **more: Any) -> Overview:
    told: dict[str, Any] = {"unknown": (), "unlabelled": 0, "mistakes": mistakes(), **more}
    return overview(confusion=Confusion(pairs, **told))


PAIRS = (Pair("good", "good", 20), Pair("bad", "bad", 30), Pair("good", "bad", 12))


def test_what_carries_a_mistake_is_named_beside_what_is_right() -> None:
    said = confusion_sentences(shown(PAIRS))
    assert said == [
        "It is wrong on 12 of the 62 texts that have a label the model knows. Each time it says "
        "bad of what the data call good.",
        "By occlusion, what speaks for bad there is “not” (40 % of a text's scores in only 5 "
        "texts; 35 % in 9 texts that are rightly called so) and “dull” (30 % in only 3 texts; no "
        "text that is rightly called so has it).",
    ]


def test_what_is_left_out_is_said() -> None:
    unknown = (Unknown("ok", 20), Unknown("?", 1))
    said = confusion_sentences(shown(PAIRS, unknown=unknown, unlabelled=1))
    assert (
        "21 texts have a label that the model does not have: ok (20), ? (1). It cannot say it, so "
        "it is neither right nor wrong there." in said
    )
    assert "1 text has no label." in said


def test_few_texts_are_said_to_be_few() -> None:
    words = (MisleadingWord("once", speaking(1, 0.9, None), None),)
    few = shown((Pair("good", "bad", 4),), mistakes=mistakes(texts=4, words=words))
    assert confusion_sentences(few)[1] == (
        "These are few texts: no word stands in three of these texts, surely speaks for bad, "
        "and does a tenth of what the largest one does. By occlusion, “once” does so most (90 % of "
        "a text's scores, in 1 text)."
    )


def test_where_nobody_may_speak_that_is_said() -> None:
    # would catch: words by a method that is not better than random
    silent = mistakes(method=None, towards=None, words=())
    made = replace(shown(PAIRS, mistakes=silent), speaker=None)
    assert confusion_sentences(made)[1:] == [
        "No method that tells for from against is better than random on more texts than chance "
        "allows, so no words are named."
    ]
    # a label that is explained for all texts and is none of the two has nothing to say
    other = shown(PAIRS, mistakes=mistakes(towards=None, words=()))
    assert len(confusion_sentences(other)) == 1


def test_a_model_that_is_always_right_has_no_next_step() -> None:
    made = shown(PAIRS[:2], mistakes=None)
    assert confusion_sentences(made) == [
        "It is wrong on none of the 50 texts that have a label the model knows."
    ]
    assert next_commands(made, "runs/x") == []


COUNTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(1, 50)),
    min_size=1,
    max_size=9,
    unique_by=lambda one: one[:2],
)


@given(COUNTS)
@settings(max_examples=200, deadline=None)
def test_how_often_it_is_wrong_is_what_the_table_says(counts: list[tuple[str, str, int]]) -> None:
    pairs = tuple(Pair(*one) for one in counts)
    wrong = sorted((p for p in pairs if not p.is_right), key=lambda p: -p.texts)
    first = (
        mistakes(given=wrong[0].given, says=wrong[0].says, texts=wrong[0].texts) if wrong else None
    )
    said = confusion_sentences(shown(pairs, mistakes=first))[0]
    total = sum(p.texts for p in pairs)
    if not wrong:
        of = "It is right on the 1 text that has"
        if total > 1:
            of = f"It is wrong on none of the {total} texts that have"
        assert said == f"{of} a label the model knows."
        return
    told = re.match(r"It is wrong on (?:(\d+) of )?the (\d+) text", said)
    assert told is not None
    assert (int(told[1] or 1), int(told[2])) == (sum(p.texts for p in wrong), total)
    assert (told[1] is None) == (total == 1)
    assert ("Each time" in said) == (len(wrong) == 1 and wrong[0].texts > 1)
    assert ("There it" in said) == (len(wrong) == 1 and wrong[0].texts == 1)
    if len(wrong) > 1:
        assert ("Most often" in said) == (wrong[0].texts > wrong[1].texts)
        assert ("no other mistake is more frequent" in said) == (wrong[0].texts == wrong[1].texts)
    names = re.search(r"it says (\w) of what the data call (\w)\.", said)
    assert names is not None
    assert names.groups() == (wrong[0].says, wrong[0].given)


DRAWN = st.lists(
    st.tuples(
        st.integers(1, 30), st.floats(0.01, 1), st.floats(0, 1), st.none() | st.floats(-1, 1)
    ),
    max_size=5,
)
TOLD = re.compile(
    r"“w(\d)” \(((?:> )?\d+) %(?: of a text's scores)? in (only )?(\d+) texts?; "
    r"(?:no text that is rightly called so has it|"
    r"(−?(?:[<>] )?[\d.]+) % in 4 texts that are rightly called so)\)"
)


def per_cent(told: str) -> float:
    return float(told.replace("−", "-").replace("> ", "").replace("< ", ""))


@given(DRAWN, st.integers(1, 40))
@settings(max_examples=300, deadline=None)
def test_what_is_said_of_words_is_what_they_do(
    drawn: list[tuple[int, float, float, float | None]], count: int
) -> None:
    """Each name and number is parsed back, and looked up in the record."""
    words = []
    for i, (texts, share, half, right) in enumerate(drawn):
        beside = None if right is None else speaking(4, right)
        own = speaking(texts, share, None if texts == 1 else half)
        words.append(MisleadingWord(f"w{i}", own, beside))
    words.sort(key=lambda word: -word.wrong.share)
    told = mistakes(words=tuple(words), texts=count)
    said = confusion_sentences(shown((Pair("good", "bad", count),), mistakes=told))[1]
    by_name = {word.word: word for word in words}
    if not words:
        assert said == "No word speaks for bad there."
        return
    parsed = TOLD.findall(said)
    largest = max(word.wrong.share for word in words)
    may = [
        word
        for word in words
        if word.wrong.texts >= 3
        and word.wrong.interval is not None
        and word.wrong.interval[0] > 0
        and word.wrong.share >= 0.1 * largest
    ]
    assert [f"w{number}" for number, *_ in parsed] == [word.word for word in may[:3]]
    for number, share, few, texts, right in parsed:
        word = by_name[f"w{number}"]
        assert per_cent(share) == pytest.approx(100 * word.wrong.share, abs=1.01)
        assert (int(texts), bool(few)) == (word.wrong.texts, word.wrong.texts < 10)
        assert bool(right) == (word.right is not None)
        if word.right is not None:
            assert per_cent(right) == pytest.approx(100 * word.right.share, abs=1.01)
            assert (right in ("0", "100", "−100")) == (word.right.share in (0, 1, -1))
    if not may:
        assert f"“{words[0].word}” does so most" in said
        assert said.startswith("These are few texts") == (count < 10)


def test_commands_are_typed_as_they_stand() -> None:
    # would catch: quotes of a text that end its argument, a folder with a blank in it
    text = 'it\'s "good" for $5'
    made = shown(PAIRS, mistakes=mistakes(text=text))
    commands = [shlex.split(command) for _, command in next_commands(made, "my runs/x")]
    assert commands == [
        ["whence", "query", "my runs/x", "--wrong"],
        ["whence", "compare", text, "--model", "toy"],
    ]
    for other in ("a\nb", "-x", "w" * 400):
        made = shown(PAIRS, mistakes=mistakes(text=other))
        _, command = next_commands(made, "x")[1]
        assert shlex.split(command) == [
            *("whence", "query", "x", "select text, pair from texts where row = 17", "--json")
        ]


def test_the_terminal_and_the_page_have_both_tables() -> None:
    made = shown(PAIRS)
    terminal = to_text(lambda _: confusion_view(made), width=80)
    rows = [line.split() for line in terminal.splitlines()]
    assert ["good", "20", "12"] in rows
    assert ["bad", "–", "30"] in rows
    assert ["not", "40", "%", "in", "5", "35", "%", "in", "9"] in rows
    page = confusion_section(made)
    assert "<td>12</td>" in page
    assert "35 % in 9" in page
    assert "whence query reviews --wrong" in page
    assert confusion_section(overview()) == ""
    assert "Where it is wrong" in overview_page(made)


def test_what_others_wrote_can_only_be_read() -> None:
    hostile = "</p><img src=x>\x1b[31m"
    words = (MisleadingWord(hostile, speaking(5, 0.4), None),)
    pairs = (Pair(hostile, "bad", 3),)
    made = shown(pairs, mistakes=mistakes(given=hostile, text=hostile, words=words))
    assert "<img" not in confusion_section(made)
    assert "\x1b" not in to_text(lambda _: confusion_view(made))
    assert "\x1b" not in "".join(command for _, command in next_commands(made, "x"))
