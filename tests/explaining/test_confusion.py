"""Where a model is wrong in a run, and the words that carry it, counted once more by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.confusion import Confusion
from whence.core.errors import InputError, LoadError
from whence.core.overview import Overview, ReadText
from whence.runs.run import Run

WORDS = ["the", "food", "is", "great", "not", "bad", "good", "fair", "prices", "service", "never"]
SPEAKER = "occlusion"  # the one that tells for from against


def texts(number: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, 5)) for _ in range(number)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What the data say is what the model says, but for some; two labels it does not have."""
    model = build("bert")
    some = texts(24)
    said = [next(iter(whence.explain(model, text, "gradient-l2").prediction)) for text in some]
    other = {"bad": "good", "fair": "bad", "good": "bad"}
    records = []
    for place, (text, says) in enumerate(zip(some, said, strict=True)):
        label: str | None = other[says] if place % 3 == 0 else says
        if place in (4, 5):
            label = "ok"
        if place == 7:
            label = None
        records.append({"text": text, "label": label})
    records.append(records[0])  # a copy of a text that it is wrong on
    return whence.run(
        model,
        records,
        ["occlusion", "gradient-l2", "random"],
        out=tmp_path_factory.mktemp("runs") / "wrong",
        evidence=False,
        text="text",
        label="label",
    )


@pytest.fixture(scope="module")
def overview(run: Run) -> Overview:
    return run.overview()


@pytest.fixture(scope="module")
def confusion(overview: Overview) -> Confusion:
    assert overview.confusion is not None
    return overview.confusion


def judged(overview: Overview) -> list[ReadText]:
    return [text for text in overview.texts if text.label in ("bad", "fair", "good")]


def test_every_text_is_counted_once_in_its_place(overview: Overview, confusion: Confusion) -> None:
    # would catch: a label that the model lacks counted as wrong, or left out in silence
    every = Counter((text.label, text.predicted) for text in judged(overview))
    assert {(p.given, p.says): p.texts for p in confusion.pairs} == every
    assert [(one.label, one.texts) for one in confusion.unknown] == [("ok", 2)]
    assert confusion.unlabelled == 1
    assert confusion.texts + 2 + 1 == len(overview.texts) == 25
    assert confusion.wrong == sum(text.label != text.predicted for text in judged(overview))
    assert overview.accuracy is not None
    assert (confusion.texts, confusion.right) == (overview.accuracy.texts, overview.accuracy.right)


def share(text: ReadText, word: str, method: str) -> float | None:
    scores = text.readings[method].scores
    names = [piece.strip().lower() for piece in text.pieces]
    if word not in names:
        return None
    own = sum(score for score, name in zip(scores, names, strict=True) if name == word)
    return float(own / np.abs(scores).sum())


def test_words_of_the_most_frequent_mistake(overview: Overview, confusion: Confusion) -> None:
    # would catch: a copy counted twice, right texts of another label, a word that speaks against
    mistakes = confusion.mistakes
    assert mistakes is not None
    assert mistakes.method == overview.speaker == SPEAKER
    assert mistakes.towards == "says"
    most = max(p.texts for p in confusion.pairs if p.given != p.says)
    assert confusion.count(mistakes.given, mistakes.says) == most

    distinct = list({text.text: text for text in reversed(judged(overview))}.values())
    pair = (mistakes.given, mistakes.says)
    wrong = [text for text in distinct if (text.label, text.predicted) == pair]
    right = [text for text in distinct if text.label == text.predicted == mistakes.says]
    assert (mistakes.texts, mistakes.right) == (len(wrong), len(right))
    surest = max(wrong, key=lambda text: text.probability or 0.0)
    assert (mistakes.row, mistakes.text) == (surest.row, surest.text)

    assert mistakes.words
    for word in mistakes.words:
        for told, every in ((word.wrong, wrong), (word.right, right)):
            shares = [share(text, word.word, SPEAKER) for text in every]
            known = [one for one in shares if one is not None]
            if told is None:
                assert not known
                continue
            assert told.texts == len(known)
            assert told.speaking == sum(one > 0 for one in known)
            assert told.share == pytest.approx(np.mean(known))
    effects = [word.wrong.share for word in mistakes.words]
    assert min(effects) > 0
    unsure = [word for word in mistakes.words if word not in mistakes.named]
    assert mistakes.words == (*mistakes.named, *unsure)
    every_word = {name.strip().lower() for text in wrong for name in text.pieces}
    means = {name: _mean(wrong, name) for name in every_word}
    assert max(effects) == pytest.approx(max(means.values()))


def _mean(texts_of: list[ReadText], word: str, method: str = SPEAKER) -> float:
    shares = [share(text, word, method) for text in texts_of]
    return float(np.mean([one for one in shares if one is not None]))


def test_it_comes_back_from_json(confusion: Confusion) -> None:
    back = Confusion.from_dict(json.loads(json.dumps(confusion.to_dict(), allow_nan=False)))
    assert back == confusion
    stored = confusion.to_dict()
    assert Confusion.from_dict({**stored, "mistakes": None}) == replace(confusion, mistakes=None)
    with pytest.raises(LoadError, match=r"pairs\[0\]\.texts"):
        Confusion.from_dict({**stored, "pairs": [{"given": "a", "says": "b", "texts": "many"}]})


def test_the_questions_that_a_run_is_asked(run: Run, overview: Overview) -> None:
    wrong = run.table("wrong").to_pylist()
    rows = {text.row for text in judged(overview) if text.label != text.predicted}
    assert {record["row"] for record in wrong} == rows
    by_row = {text.row: text for text in overview.texts}
    for record in wrong:
        own = by_row[record["row"]]
        assert (record["given"], record["says"]) == (own.label, own.predicted)
        words = record["words"].split(", ") if record["words"] else []
        scores = own.readings[SPEAKER].scores
        best = own.pieces[int(scores.argmax())].strip()
        assert words[:1] == ([best] if scores.max() > 0 else [])
    # the most frequent mistake first, and in it the surest text
    counts = Counter((record["given"], record["says"]) for record in wrong)
    often = [counts[record["given"], record["says"]] for record in wrong]
    assert often == sorted(often, reverse=True)
    first = [r["probability"] for r in wrong if r["says"] == wrong[0]["says"]][: often[0]]
    assert first == sorted(first, reverse=True)
    assert sum(record["texts"] for record in run.table("confusion").to_pylist()) == 22


def test_data_without_labels_have_no_mistakes(tmp_path: Path) -> None:
    run = whence.run(build("bert"), texts(3), ["gradient-l2"], out=tmp_path, evidence=False)
    assert run.overview().confusion is None
    with pytest.raises(InputError, match="no labels"):
        run.table("wrong")


def test_words_of_what_the_data_say_speak_against_it(run: Run, tmp_path: Path) -> None:
    # with gold the label of the data is explained: what carries a mistake speaks against it
    records = [
        {"text": read.text, "label": read.label} for read in judged(run.overview()) if read.label
    ]
    gold = whence.run(
        build("bert"),
        records,
        ["occlusion"],
        out=tmp_path,
        evidence=False,
        text="text",
        label="label",
        gold=True,
    )
    overview = gold.overview()
    assert overview.confusion is not None
    mistakes = overview.confusion.mistakes
    assert mistakes is not None
    assert mistakes.towards == "given"
    wrong = {
        text.text: text
        for text in overview.texts
        if (text.label, text.predicted) == (mistakes.given, mistakes.says)
    }
    for word in mistakes.words:
        assert word.wrong.share == pytest.approx(
            -_mean(list(wrong.values()), word.word, "occlusion")
        )


def test_a_loss_that_falls_with_the_label_names_no_word(tmp_path: Path) -> None:
    record: Mapping[str, str] = {"text": "the food is great", "label": "bad"}
    other: Mapping[str, str] = {"text": "the food is bad", "label": "good"}
    third: Mapping[str, str] = {"text": "the food is fair", "label": "fair"}
    run = whence.run(
        build("bert"),
        [record, other, third],
        ["occlusion"],
        out=tmp_path,
        evidence=False,
        text="text",
        label="label",
        read="cross-entropy",
    )
    confusion = run.overview().confusion
    assert confusion is not None
    assert confusion.mistakes is not None
    assert confusion.mistakes.words == ()
