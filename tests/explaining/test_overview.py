"""What the page of a run is made from, counted once more by hand."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr, t

import whence
from tests.families import build
from whence.core.bootstrap import wilson
from whence.core.overview import Overview, to_be_named
from whence.explaining.overview import FEWEST_UNITS, overview_of
from whence.runs.run import Run
from whence.views.overview import overview_sentences

METHODS = ["gradient-l2", "gradient-x-input", "occlusion", "random"]
LABELS = ("bad", "fair", "good")
RECORDS = [
    {"text": "the food is great but not the prices", "label": 2},
    {"text": "not bad prices", "label": 0},
    {"text": "the prices are bad and the food is not good", "label": 1},
    {"text": "", "label": 1},
    {"text": "great food and great prices and a fair service too", "label": 0},
    {"text": "the service is not good but the prices are fair", "label": 7},
    {"text": "not bad prices", "label": 0},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "reviews"
    return whence.run(
        build("bert"), RECORDS, METHODS, out=out, rankings=39, steps=2, text="text", label="label"
    )


@pytest.fixture(scope="module")
def overview(run: Run) -> Overview:
    return overview_of(run)


def test_labels_that_are_numbers_are_those_of_the_model(run: Run, overview: Overview) -> None:
    # would catch: comparing "0" with "bad"; leaving out labels that the model never says, which
    # would make one that always says the same right on all texts; counting one it does not have (7)
    predicted = {record["row"]: record["predicted"] for record in run.table("texts").to_pylist()}
    judged = [
        (LABELS[record["label"]], predicted[row])
        for row, record in enumerate(RECORDS)
        if row in predicted and record["label"] < len(LABELS)
    ]
    assert len(judged) == 5
    right = sum(label == said for label, said in judged)
    accuracy = overview.accuracy
    assert accuracy is not None
    assert (accuracy.texts, accuracy.right) == (5, right)
    assert accuracy.interval == wilson(right / 5, 5)
    assert (accuracy.commonest, accuracy.commonest_texts) == ("bad", 3)


def test_what_the_data_call_otherwise_is_not_held_against_the_model(tmp_path: Path) -> None:
    records = [{"text": "the food is great", "label": "5 stars"}]
    run = whence.run(build("bert"), records, ["gradient-l2"], out=tmp_path, evidence=False)
    assert overview_of(run).accuracy is None


def test_a_label_is_right_by_its_name_too(tmp_path: Path) -> None:
    model = build("bert")
    said = next(iter(whence.explain(model, "the food is great", "gradient-l2").prediction))
    other = next(name for name in LABELS if name != said)
    records = [{"text": "the food is great", "label": label} for label in (said.upper(), other)]
    run = whence.run(model, records, ["gradient-l2"], out=tmp_path, evidence=False)
    accuracy = overview_of(run).accuracy
    assert accuracy is not None
    assert (accuracy.right, accuracy.texts) == (1, 2)


def test_agreement_is_the_mean_of_every_two_methods_but_the_control(
    run: Run, overview: Overview
) -> None:
    # would catch: the control among the methods, sizes for signs between two signed methods
    for text in overview.texts:
        comparison = run.comparison(text.row)
        if len(text.pieces) < FEWEST_UNITS:
            assert text.agreement is None
            continue
        found = []
        for one, other in combinations(METHODS[:3], 2):
            a, b = comparison[one], comparison[other]
            both = a.signed and b.signed
            scores = [x.scores if both else np.abs(x.scores) for x in (a, b)]
            found.append(spearmanr(*scores).statistic)
        assert text.agreement == pytest.approx(np.mean(found), abs=1e-12)


def test_of_too_many_texts_those_in_dispute_are_kept(run: Run, overview: Overview) -> None:
    few = overview_of(run, most=2)
    agreed = sorted(t.agreement for t in overview.texts if t.agreement is not None)
    assert sorted(t.agreement for t in few.texts) == agreed[:2]  # type: ignore[type-var]
    assert few.left_out == len(overview.texts) - 2
    assert few.tallies == overview.tallies
    assert few.accuracy == overview.accuracy


def test_a_word_has_its_mean_share_with_an_interval(run: Run, overview: Overview) -> None:
    # would catch: a normal instead of Student's t, a sum over the words of a text, a lost sign
    # and a text that stands there twice counted twice, whose two equal numbers look like certainty
    every = [word for word in overview.words if word.method == "occlusion"]
    assert any(word.texts > 2 for word in every)
    for mine in every:
        shares, seen = [], set()
        for text in overview.texts:
            names = [piece.strip().lower() for piece in text.pieces]
            if text.explained != mine.label or mine.word not in names or text.text in seen:
                continue
            seen.add(text.text)
            scores = text.readings["occlusion"].scores
            own = [score for score, name in zip(scores, names, strict=True) if name == mine.word]
            shares.append(sum(own) / np.abs(scores).sum())
        half = t.ppf(0.975, len(shares) - 1) * np.std(shares, ddof=1) / np.sqrt(len(shares))
        assert mine.texts == len(shares)
        assert mine.share == pytest.approx(np.mean(shares))
        assert (mine.low, mine.high) == pytest.approx((mine.share - half, mine.share + half))


def test_failures_and_repeated_texts_are_told(overview: Overview) -> None:
    assert (overview.done, overview.failed, overview.repeated) == (7, 1, 1)
    (failure,) = overview.failures
    assert failure.where == "row 3"
    assert failure.reason.startswith("InputError: ")
    # the text that stands there twice is judged once
    assert {tally.texts for tally in overview.tallies} == {5}


def test_the_run_writes_its_page(run: Run, tmp_path: Path) -> None:
    page = run.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert "6 texts: the model says" in page


def test_a_run_of_which_nothing_came_has_a_page_too(tmp_path: Path) -> None:
    run = whence.run(build("bert"), ["", " "], ["gradient-l2"], out=tmp_path, evidence=False)
    page = run.to_html()
    assert "0 texts were explained." in page
    assert "What failed (2)" in page


def test_the_words_that_decide_a_planted_model_are_named(tmp_path: Path) -> None:
    # would catch: “the”, which stands in every text and so survives a correction
    model = whence.load("planted-keyword")
    decisive = ("fire", "flood", "storm", "smoke")
    texts = [
        f"the {who} saw the {word} near the {where} once"
        for word in decisive
        for who, where in (("cousin", "corner"), ("teacher", "bottle"), ("baker", "window"))
    ]
    run = whence.run(model, texts, ["occlusion"], out=tmp_path, evidence=False)
    overview = run.overview()
    assert overview.speaker == "occlusion"
    for label in {word.label for word in overview.words}:
        listed = overview.words_by("occlusion", label)
        assert {word.word for word in to_be_named(listed)} == set(decisive)
        assert all(word.has_few_texts for word in to_be_named(listed))
    said = " ".join(overview_sentences(overview))
    assert "is carried by “" in said
    assert " texts) and more. In brackets" in said
