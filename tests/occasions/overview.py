"""Runs over a data set, over all that their pages can show; with their mistakes and labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from tests.occasions.card import tallies
from tests.occasions.evaluation import METHODS, pick, some
from tests.views.overviews import pieces_of
from whence.core.agreement import Conflict
from whence.core.answer_of_many import AnswerOfMany, answer_of_counts
from whence.core.bootstrap import wilson
from whence.core.confusion import Confusion, MisleadingWord, Mistakes, Pair, Speaking, Unknown
from whence.core.data_labels import DataLabels, data_labels, match
from whence.core.evidence import Verdict
from whence.core.many import Failure
from whence.core.overview import CarryingWord, Overview, Reading, ReadText, by_effect
from whence.core.target import SIGN_OF_SUPPORT
from whence.explaining.confusion import Judged
from whence.explaining.overview import MOST_WORDS, _accuracy, _Counts, _speaker
from whence.views.confusion import confusion_view, next_commands
from whence.views.data_labels import label_sentences
from whence.views.overview import overview_page, overview_sentences
from whence.views.terminal import to_text

# what a model calls its classes, and what data may call them
NAMES = (
    ("negative", "positive"),
    ("not-toxic", "toxic"),
    ("bad", "fair", "good"),
    tuple(f"c{number}" for number in range(10)),
)
OTHERS = ("ok", "so so", "Not Toxic", "?", "7", "\x1b[31mred", "posi tive", "größe")
WORDS = (
    "you",
    "idiot",
    "a",
    "!",
    "…",
    "film",
    "größe",
    "\x1b[31mred",
    "<b>",
    "it's",
    "“",
    "x" * 60,
)
NUMBERS = tuple(SIGN_OF_SUPPORT)
TEXTS = (
    "not bad at all",
    "so good",
    "it's dull",
    'a "film" of $5',
    "-x",
    "tab\there",
    "long " * 80,
)


def labels_of_data(
    rng: np.random.Generator, names: tuple[str, ...], texts: int
) -> list[str | None]:
    """The labels that data give: those of the model, other ones, numbers, or none."""
    capitals = tuple(name.upper() for name in names)
    numbers = tuple(map(str, range(len(names) + 1)))
    known = pick(rng, (names, names, names[:1], capitals, numbers, ()))
    choices = [*known, *some(rng, OTHERS, 0, pick(rng, (0, 1, 2, len(OTHERS))))]
    if rng.random() < 0.4 or not choices:
        choices.append(None)
    return [pick(rng, choices) for _ in range(texts)]


def met(rng: np.random.Generator, texts: int | None = None) -> tuple[DataLabels, list, dict]:
    """Labels of data beside those of a model; with what was mapped."""
    names = pick(rng, NAMES)
    count = int(pick(rng, (1, 2, 3, 12, 40))) if texts is None else texts
    given = labels_of_data(rng, names, count)
    mapping = {}
    for label in {one for one in given if one is not None}:
        if rng.random() < 0.1:
            mapping[label] = pick(rng, names)
    return data_labels(given, names, mapping), given, mapping


def share(rng: np.random.Generator) -> float:
    """Next to 0 and to 1, and between."""
    near = (0.0, 1.0, 0.0031, 0.00002, 0.997, 0.05)
    return float(pick(rng, near)) if rng.random() < 0.3 else float(rng.random())


# ---------------------------------------------------------------------- words


def carrying(rng: np.random.Generator, methods: list[str], labels: tuple[str, ...]) -> list:
    """The words of each method and label, as many as a page shows; some are of few texts."""
    words = []
    for method in methods:
        for label in labels:
            own = []
            for word in some(rng, WORDS, 0, pick(rng, (1, 3, len(WORDS)))):
                mean = float(pick(rng, (-1, 1))) * share(rng)
                half = float(pick(rng, (0.0, 0.01, 0.3)))
                texts = int(pick(rng, (2, 3, 9, 10, 1200)))
                own.append(
                    CarryingWord(
                        method, label, word, texts, mean, mean - half, mean + half, mean * texts,
                        is_sure=bool(rng.random() < 0.3),
                    )
                )  # fmt: skip
            words += by_effect(own)[:MOST_WORDS]
    return words


def speaking(rng: np.random.Generator, is_positive: bool) -> Speaking:
    mean = share(rng) if is_positive else float(rng.uniform(-1, 1))
    texts = int(pick(rng, (1, 2, 3, 9, 40)))
    half = float(pick(rng, (0.0, 0.01, 0.5)))
    ends = None if texts == 1 else (mean - half, mean + half)
    return Speaking(texts, texts, max(mean, 1e-6) if is_positive else mean, ends)


def misleading(rng: np.random.Generator) -> tuple[MisleadingWord, ...]:
    """As ``explaining/confusion.py`` sorts them: those that may be told first, then by size."""
    letters = [word for word in WORDS if any(map(str.isalnum, word))]
    words = [
        MisleadingWord(
            word, speaking(rng, True), speaking(rng, False) if rng.random() < 0.5 else None
        )
        for word in some(rng, letters, 0, pick(rng, (0, 1, 2, len(letters))))
    ]
    largest = max((word.wrong.share for word in words), default=0.0)

    def place(word: MisleadingWord) -> tuple[bool, float, str]:
        is_told = word.wrong.is_supported and word.wrong.share >= 0.1 * largest
        return not is_told, -word.wrong.share, word.word

    return tuple(sorted(words, key=place)[:5])


# ---------------------------------------------------------------------- what is wrong


def confusion(
    rng: np.random.Generator, judged: list[Judged], speaker: str | None, read: str
) -> Confusion | None:
    """Counted as ``explaining/confusion.py`` does; the words of the mistake are by lot."""
    labelled = [text for text in judged if text.given is not None]
    if not labelled:
        return None
    known = [text for text in labelled if text.known is not None]
    pairs = Counter((str(t.known), t.says) for t in known).most_common()
    unknown = Counter(str(t.given) for t in labelled if t.known is None).most_common()
    wrong = Counter((str(t.known), t.says) for t in known if not t.is_right).most_common(1)
    mistakes = None
    if wrong:
        (((given, says), often),) = wrong
        can_speak = speaker is not None and SIGN_OF_SUPPORT[read] > 0
        towards = pick(rng, ("says", "given", "given", None)) if can_speak else None
        mistakes = Mistakes(
            given=given,
            says=says,
            texts=often - int(rng.integers(0, often)),
            right=int(pick(rng, (0, 1, 30))),
            method=speaker,
            towards=towards,
            words=misleading(rng) if towards else (),
            row=int(rng.integers(0, 5000)),
            text=pick(rng, TEXTS),
            is_whole=bool(rng.random() < 0.8),
            probability=pick(rng, (None, 0.931, 0.9996, 1.0)),
        )
    return Confusion(
        tuple(Pair(given, says, texts) for (given, says), texts in pairs),
        tuple(Unknown(label, texts) for label, texts in unknown),
        len(judged) - len(labelled),
        mistakes,
    )


# ---------------------------------------------------------------------- a whole run


def answer_of(
    rng: np.random.Generator, methods: list[str], says: list[str], is_tested: bool
) -> tuple[AnswerOfMany, tuple]:
    counts = tuple(tallies(rng, methods, len(says))) if is_tested and says else ()
    distinct = len(says) - int(rng.integers(0, 2)) if len(says) > 1 else len(says)
    explained = int(rng.integers(0, distinct + 1))
    return answer_of_counts(len(says), Counter(says), counts, distinct, explained), counts


def read_texts(
    rng: np.random.Generator, judged: list[Judged], methods: list[str], is_tested: bool
) -> tuple[ReadText, ...]:
    texts = []
    for one in judged[:6]:
        pieces = pieces_of(pick(rng, ("not bad at all", "so good", "one", "a \x1b[31m word")))
        scores = rng.normal(size=len(pieces)) * float(pick(rng, (0.0, 1.0, 1e-9)))
        verdict = pick(rng, tuple(Verdict)) if is_tested else None
        beaten, p = (share(rng), share(rng)) if is_tested else (None, None)
        conflict = None
        if len(methods) > 1 and rng.random() < 0.5:
            camps = (methods[:1], methods[1:3])
            kind = pick(rng, ("sign", "size"))
            shares = ((0.9,), (-0.4, -0.2)[: len(camps[1])])
            conflict = Conflict(0, pieces[0], kind, *map(tuple, camps), 0.3, 1.0, *shares)
        texts.append(
            ReadText(
                row=one.row,
                number=one.row,
                id=pick(rng, (str(one.row), "mail-7")),
                pieces=pieces,
                parts=(0,) * len(pieces),
                label=one.known or one.given,
                predicted=one.says,
                probability=one.probability,
                explained=one.explained,
                readings={name: Reading(scores, verdict, beaten, p) for name in methods},
                agreement=pick(rng, (None, 0.5, -0.2, 1.0)),
                conflict=conflict,
                is_judged=one.known is not None or one.given == one.says,
            )
        )
    return tuple(texts)


def draw(rng: np.random.Generator) -> Overview:
    """A run by lot."""
    count = int(pick(rng, (0, 1, 2, 5, 40)))
    labels, given, mapping = met(rng, count)
    names = labels.names
    read = pick(rng, (*NUMBERS[:4], *NUMBERS))
    often = pick(rng, (names[:1], names[:2], names))
    judged = []
    for row, label in enumerate(given):
        known = None if label is None else match(label, names, mapping)
        says = known.name if known and rng.random() < 0.7 else pick(rng, often)
        sure = float(pick(rng, (0.6, 0.9996, 1.0)))
        name = None if known is None else known.name
        judged.append(Judged(row, row, label, name, says, sure, says))
    methods = some(rng, METHODS, 1, pick(rng, (1, 2, 5, len(METHODS))))
    methods += ["random"] if rng.random() < 0.6 else []
    signed = {name: bool(rng.random() < 0.6) and name != "random" for name in methods}
    is_tested = bool(rng.random() < 0.8)
    answer, counts = answer_of(rng, methods, [text.says for text in judged], is_tested)
    speaker = _speaker(methods, signed, answer)
    failed = int(pick(rng, (0, 0, 1, 3)))
    done = count + failed
    has_labels = any(label is not None for label in given)
    texts = read_texts(rng, judged, methods, is_tested)
    of_words: Any = carrying(rng, methods[:2] if speaker is None else [speaker], names[:8])
    failures = tuple(
        Failure(f"row {n}", pick(rng, ("it is empty", "\x1b[2J"))) for n in range(failed)
    )
    made = Overview(
        place=pick(rng, ("runs/reviews", "reviews run")),
        source="data/reviews.csv",
        model=pick(rng, ("toy", "org/my model")),
        read=read,
        rows=done + int(pick(rng, (0, 0, 1, 400))),
        done=done,
        failed=failed,
        methods=tuple(methods),
        signed=tuple(signed.values()),
        answer=answer,
        tallies=counts,
        better_intervals=tuple(
            wilson(t.better / t.judged, t.judged) if t.judged else None for t in counts
        ),
        accuracy=_accuracy(_Counts(labels=names, mapping=mapping, judged=judged)),
        words=tuple(of_words) if count else (),
        speaker=speaker,
        texts=texts,
        repeated=answer.texts - answer.distinct,
        left_out=int(pick(rng, (0, 0, 1, 1200))),
        failures=failures * int(pick(rng, (1, 1, 150))),
        confusion=confusion(rng, judged, speaker, read),
        labels=labels if has_labels else None,
    )
    if rng.random() < 0.9 or not has_labels:
        return made
    # of a model in which each label has its own yes or no
    unjudged = sum(label is not None for label in given)
    return replace(made, accuracy=None, confusion=None, labels=None, unjudged=unjudged)


def speak(rng: np.random.Generator) -> None:
    """Everything that can be said of a run."""
    overview = draw(rng)
    overview_sentences(overview)
    overview_page(overview)
    to_text(lambda _: confusion_view(overview))
    next_commands(overview, overview.place)
    labels, _, _ = met(rng)
    label_sentences(labels, is_needed=bool(rng.random() < 0.5))
    if overview.confusion is not None:
        overview.confusion.to_dict()
