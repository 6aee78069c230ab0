"""The page of a run: what it says, what it packs, and how large it is."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.conftest import own
from tests.views.overviews import METHODS, TEXTS, overview, read_text, reading
from whence.core.answer_of_many import answer_of_counts
from whence.core.attribution import NO_LABEL
from whence.core.overview import CarryingWord, ReadText, by_effect
from whence.views.overview import overview_page, overview_sentences
from whence.views.overview_data import STEPS, quantised


def unpacked(page: str, name: str) -> bytes:
    """What the script of the page finds in one of its blobs."""
    (content,) = re.findall(rf'data-blob="{name}">([^<]*)<', page)
    return zlib.decompress(base64.b64decode(content))


def test_a_score_is_off_by_at_most_half_a_step():
    # would catch: bytes without a sign, a scale by the largest score and not by the largest size,
    # rounding towards zero
    scores = np.random.default_rng(0).normal(size=400)
    scores[7] = -9.0  # the largest size has a minus
    steps, largest = quantised(scores)
    assert largest == 9.0
    back = steps.astype(np.float64) * largest / STEPS
    worst = np.abs(back - scores).max()
    assert worst <= largest / STEPS / 2 * (1 + 1e-12)
    cut_off = np.trunc(scores / largest * STEPS) * largest / STEPS
    assert np.abs(cut_off - scores).max() > 1.5 * worst


def test_scores_that_are_nothing_stay_nothing():
    steps, largest = quantised(np.array([0.0, 0.0]))
    assert (steps.tolist(), largest) == ([0, 0], 0.0)
    steps, largest = quantised(np.array([np.nan, 2.0, np.inf]))
    assert (steps.tolist(), largest) == ([0, STEPS, 0], 2.0)


def test_the_page_holds_every_text_and_score_once():
    page = overview_page(overview())
    told = json.loads(unpacked(page, "texts"))
    scores = np.frombuffer(unpacked(page, "scores"), dtype=np.int8)
    assert ["".join(text["units"]) for text in told["texts"]] == [text.text for text in TEXTS]
    assert len(scores) == sum(len(text.pieces) for text in TEXTS) * len(METHODS)
    # the first text by occlusion, then by gradient-l2
    assert scores[:4].tolist() == [32, 127, 32, 127]
    second = told["texts"][1]
    assert second["by"][0] == [2.0, told["verdicts"].index("not separable from random"), 0.98, 0.02]
    assert second["split"] == [2, "strong", [2], "weak", [0, 1]]
    assert "agree" not in told["texts"][2]


def test_a_method_without_a_result_takes_no_bytes():
    whole = read_text(0, "so good", [0.25, 1.0])
    readings = {name: r for name, r in whole.readings.items() if name != "gradient-l2"}
    page = overview_page(overview([ReadText(**{**vars(whole), "readings": readings})]))
    assert len(unpacked(page, "scores")) == 2 * 2
    (text,) = json.loads(unpacked(page, "texts"))["texts"]
    assert text["by"][1] == 0


def test_the_answer_names_what_may_be_named_and_nothing_else():
    said = overview_sentences(overview())
    lead = " ".join(said[: said.index("")])
    assert lead.startswith("3 texts: the model says good for 2 and bad for 1.")
    assert "right on 2 of the 3 that have a label: 67 % (20 to 94 %)" in lead
    assert "always saying bad would be 67 %" in lead
    assert "occlusion (9 of 10 texts)" in lead
    # not “not”, which speaks against; not “perhaps”, which is not sure; not “!”, which is no word
    assert "By occlusion, good is carried by “good” (60 %, in only 9 texts). In" in lead


def carrying(word: str, texts: int, share: float, half: float, is_sure: bool) -> CarryingWord:
    ends = (share - half, share + half)
    return CarryingWord("occlusion", "good", word, texts, share, *ends, texts * share, is_sure)


def test_words_are_named_by_what_they_do():
    # would catch: naming those that survive a correction, which are the frequent ones
    words = (
        carrying("you", 90, 0.04, 0.01, is_sure=True),
        carrying("a", 80, 0.02, 0.005, is_sure=True),
        carrying("idiot", 12, 0.63, 0.2, is_sure=False),
        carrying("fool", 4, 0.4, 0.2, is_sure=False),
        carrying("once", 2, 0.9, 0.1, is_sure=False),
    )
    lead = " ".join(overview_sentences(overview(words=words)))
    assert "is carried by “idiot” (63 %, in 12 texts) and “fool” (40 %, in only 4 texts)" in lead
    for never in ("“you”", "“a”", "“once”"):
        assert never not in lead


def test_where_no_word_is_sure_that_is_said():
    words = (carrying("you", 90, 0.04, 0.01, True), carrying("once", 2, 0.9, 0.95, False))
    lead = " ".join(overview_sentences(overview(words=words)))
    once = "for good, of the words that stand in several texts, “once” (90 %, in only 2 texts)"
    assert f"{once} does most, which is not sure" in lead
    assert "carried" not in lead
    # the largest is one against the label: of those for it, the small one is sure, and not told
    words = (carrying("not", 9, -0.9, 0.1, True), carrying("you", 90, 0.04, 0.01, True))
    assert "“you”" not in " ".join(overview_sentences(overview(words=words)))


def test_copies_are_told_before_what_they_are_not_counted_in():
    """Would catch: "30 of 34" beside "38 texts", and nobody says where the others are."""
    for repeated, said in (
        (0, ""),
        (1, "1 text is a copy of another, and is not counted again in what follows."),
        (3, "3 texts are copies of others, and are not counted again in what follows."),
    ):
        sentences = overview_sentences(overview(repeated=repeated))
        lead = " ".join(sentences[: sentences.index("")])
        assert ("not counted again" in lead) == bool(repeated)
        if said:
            assert lead.index("right on") < lead.index(said) < lead.index("Better than chance")


def several(row: int, holding: list[tuple[str, float]], label: str) -> ReadText:
    """A text of a model in which each label has its own yes or no."""
    first, p = (holding or [("bad", 0.2)])[0]
    about = {"predicted": first, "explained": first, "probability": p, "label": label}
    more = {"holding": tuple(holding), "is_judged": False}
    return read_text(row, "so good", [0.25, 1.0], **about, **more)


def test_where_several_labels_may_hold_nothing_is_said_to_be_unknown_or_wrong():
    """The enemy: "29 texts have a label that the model does not have", of labels that it has."""
    texts = [several(0, [("good", 0.7), ("fine", 0.6)], "fine"), several(1, [], "bad")]
    predictions = Counter({"good": 1, "fine": 1, NO_LABEL: 1})
    answer = answer_of_counts(2, predictions, [], 2, 0)
    more = {"unjudged": 2, "accuracy": None, "confusion": None, "labels": None}
    said = overview_sentences(overview(texts, answer=answer, **more))
    assert said[0].endswith(" good for 1, fine for 1 and none of its labels for 1.")
    assert said[1] == (
        "It may say several labels of a text, or none, so how often it is right on the 2 texts "
        "with a label in the data is not told."
    )
    page = overview_page(overview(texts, answer=answer, **more))
    told = json.loads(unpacked(page, "texts"))
    labels = told["labels"]
    assert told["texts"][0]["holds"] == [[labels.index("good"), 0.7], [labels.index("fine"), 0.6]]
    assert told["texts"][1]["holds"] == []
    menu = page.split('name="says"')[1].split("</select>")[0]
    assert re.findall(r'<option value="([^"]*)">', menu) == ["", "fine", "good", NO_LABEL]


def test_what_does_next_to_nothing_is_not_said_to_do_most():
    """Would catch: “the” (< 0.01 %, in only 2 texts) does most, of texts where “great” does."""
    for words in (
        (carrying("the", 2, 0.00004, 0.3, False),),
        (carrying("not", 9, -0.9, 0.1, True), carrying("once", 2, 0.08, 0.3, False)),
    ):
        assert "does most" not in " ".join(overview_sentences(overview(words=words)))


SHARES = st.floats(-1, 1).map(lambda share: round(share, 3))
WORDS = st.lists(
    st.tuples(st.integers(2, 60), SHARES, st.floats(0, 0.8), st.booleans()), min_size=1, max_size=14
)


@given(WORDS)
@settings(max_examples=200, deadline=None)
def test_the_headline_says_what_the_chart_shows(drawn: list[tuple[int, float, float, bool]]):
    """Each name, number and count of the headline is parsed back and looked up in the chart."""
    every = [carrying(f"w{i}", *one) for i, one in enumerate(drawn)]
    made = overview(words=tuple(by_effect(every)[:10]))
    headline = "".join(s for s in overview_sentences(made) if s.startswith("By occlusion"))
    page = overview_page(made)
    (column,) = re.findall(r"<h4>good</h4>(.*?)</table>", page, re.S)[:1]
    in_chart = re.findall(r'data-word="(w\d+)"', column)
    told = re.findall(r"“(w\d+)” \(((?:> )?[\d.]+) %, in (only )?(\d+) texts\)", headline)
    assert len(told) == headline.count("“")
    # in the order of the chart, and first in it
    names = [name for name, *_ in told]
    speaking = [name for name in in_chart if by_name(every, name).share > 0]
    if "carried" in headline:
        assert names == speaking[: len(names)]
    largest = max(abs(word.share) for word in every)
    for name, share, few, texts in told:
        word = by_name(every, name)
        assert int(texts) == word.texts
        assert bool(few) == (word.texts < 10)
        assert float(share.replace("> ", "")) == pytest.approx(100 * word.share, abs=1.01)
        assert (share == "100") == (word.share == 1)
        if "carried" in headline:
            assert word.share >= 0.1 * largest
            assert word.texts >= 3
            assert word.low > 0
        else:
            assert word.share == max(other.share for other in every)
            assert word.texts < 3 or word.low <= 0


def by_name(words: list[CarryingWord], name: str) -> CarryingWord:
    return next(word for word in words if word.word == name)


def test_without_a_method_that_holds_no_word_is_named():
    untested = answer_of_counts(3, Counter({"good": 2, "bad": 1}), (), 3, 0)
    said = overview_sentences(overview(answer=untested, tallies=(), better_intervals=()))
    assert "No method was tested against random rankings" in " ".join(said)
    silent = overview_sentences(overview(speaker=None))
    assert "carried" not in " ".join(silent)
    assert "occlusion does not tell for from against" in " ".join(silent)  # which alone holds


def test_verdicts_stand_beside_chance_with_their_interval():
    page = overview_page(overview())
    assert "9 of 10 (60 to 98 %)" in page
    assert "0.5 (0 to 2)" in page  # by chance: a twentieth of ten
    assert "row 3</th>" in page
    assert "InputError: the text is empty" in page


def test_everything_that_others_wrote_is_escaped():
    hostile = "</script><img src=x onerror=alert(1)>"
    text = read_text(0, f"so {hostile}", [0.25, 1.0, 0.5, 0.1], label=hostile, id=hostile)
    page = overview_page(overview([text], source=hostile, model=hostile, place=hostile, left_out=3))
    assert "<img" not in page
    assert own(page).count("</script>") == 3  # two blobs and the program
    assert "http-equiv" in page
    assert "default-src 'none'" in page
    assert "Left out here: 3 texts, those first for which" in page


@pytest.mark.parametrize("words", [pytest.param(20, marks=pytest.mark.slow), 100])
def test_a_thousand_texts_by_five_methods_take_less_than_three_megabytes(words: int):
    # scores are noise, which no deflate makes smaller than a byte each
    rng = np.random.default_rng(0)
    vocabulary = ["".join(rng.choice(list("abcdefghijklmnop"), 6)) for _ in range(4000)]
    methods = tuple(f"method-{i}" for i in range(5))
    texts = []
    for row in range(1000):
        text = " ".join(rng.choice(vocabulary, words))
        whole = read_text(row, text, rng.normal(size=words).tolist())
        readings = {name: reading(rng.normal(size=words)) for name in methods}
        texts.append(ReadText(**{**vars(whole), "readings": readings}))
    page = overview_page(overview(texts, methods=methods, signed=(True,) * 5, speaker="method-0"))
    assert len(unpacked(page, "scores")) == 1000 * 5 * words
    assert len(page.encode()) < 3_000_000
