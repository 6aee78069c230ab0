"""The page of a run: what it says, what it packs, and how large it is."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter

import numpy as np
import pytest

from tests.views.overviews import METHODS, TEXTS, overview, read_text, reading
from whence.core.answer_of_many import answer_of_counts
from whence.core.overview import ReadText
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
    assert second["split"] == [0, "for", [0], "against", [1]]
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
    assert lead.endswith("By occlusion, good is carried by “good”.")


def test_without_a_method_that_holds_no_word_is_named():
    untested = answer_of_counts(3, Counter({"good": 2, "bad": 1}), (), 3, 0)
    said = overview_sentences(overview(answer=untested, tallies=(), better_intervals=()))
    assert "No method was tested against random rankings" in " ".join(said)
    silent = overview_sentences(overview(speaker=None))
    assert "carried" not in " ".join(silent)
    assert "None of these tells for from against" in " ".join(silent)


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
    assert page.count("</script>") == 3  # two blobs and the program
    assert "http-equiv" in page
    assert "default-src 'none'" in page
    assert "3 texts more, on which methods agree best" in page


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
