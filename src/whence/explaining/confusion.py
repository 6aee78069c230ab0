"""Where the model and the data differ in a run, and the words that carry the mistakes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from whence.core.confusion import (
    LEAST,
    Confusion,
    MisleadingWord,
    Mistakes,
    Pair,
    Speaking,
    Unknown,
)
from whence.core.many import TAIL
from whence.core.target import SIGN_OF_SUPPORT
from whence.explaining.questions import SHARES
from whence.runs.run import Run

MOST_WORDS = 5
# of a target's number: the higher it is, the more the model says the label
OF_EACH_TEXT = f"{SHARES} select row, word, share from shares where method = $method and row in "


@dataclass(frozen=True)
class Judged:
    """One text of a run: what the data call it and what the model says of it.

    ``given`` is as the data write it, ``known`` as the model calls it: None where it has no such
    label. ``text`` is a number for the text, the same for the same text.
    """

    row: int
    text: int
    given: str | None
    known: str | None
    says: str
    probability: float | None
    explained: str

    @property
    def is_right(self) -> bool:
        """Whether model and data say the same."""
        return self.known == self.says


@dataclass(frozen=True)
class Voice:
    """The method whose words are told, and whether what it explains rises with the label."""

    method: str | None
    read: str

    @property
    def may_speak(self) -> bool:
        """Whether a score above zero speaks for the label that is explained."""
        rising = [read for read, sign in SIGN_OF_SUPPORT.items() if sign > 0]
        return self.method is not None and self.read in rising


def confusion_of(run: Run, judged: Sequence[Judged], voice: Voice) -> Confusion | None:
    """What the model says beside what the data say; None where the data have no labels.

    ``whence.explaining.overview`` gathers what it needs.

    >>> overview_of(whence.open_run("runs/reviews")).confusion        # doctest: +SKIP
    """
    labelled = [text for text in judged if text.given is not None]
    if not labelled:
        return None
    pairs = Counter((str(t.known), t.says) for t in labelled if t.known is not None)
    unknown = Counter(str(text.given) for text in labelled if text.known is None)
    told = [Pair(given, says, texts) for (given, says), texts in pairs.most_common()]
    return Confusion(
        pairs=tuple(told),
        unknown=tuple(Unknown(label, texts) for label, texts in unknown.most_common()),
        unlabelled=len(judged) - len(labelled),
        mistakes=_mistakes(run, [text for text in labelled if text.known is not None], voice),
    )


def _mistakes(run: Run, judged: Sequence[Judged], voice: Voice) -> Mistakes | None:
    """The most frequent mistake; of two that are as frequent, the one that comes first."""
    mistakes = Counter((str(t.known), t.says) for t in judged if not t.is_right)
    if not mistakes:
        return None
    (((given, says), _),) = mistakes.most_common(1)
    # a text that stands there twice is one text
    distinct = list({(text.text, text.known): text for text in reversed(judged)}.values())[::-1]
    wrong = [text for text in distinct if (text.known, text.says) == (given, says)]
    surest = max(wrong, key=lambda text: (text.probability or 0.0, -text.row))
    towards = _towards(wrong, given, says) if voice.may_speak else None
    label = given if towards == "given" else says
    words: tuple[MisleadingWord, ...] = ()
    if towards is not None and voice.method is not None:
        words = _words(run, voice.method, wrong, distinct, label, 1 if label == says else -1)
    (own,) = run.query(f"select text, pair from texts where row = {surest.row}").to_pylist()
    return Mistakes(
        given=given,
        says=says,
        texts=len(wrong),
        right=sum(text.is_right and text.says == label for text in distinct),
        method=voice.method,
        towards=towards,
        words=words,
        row=surest.row,
        text=own["text"],
        is_whole=not own["pair"],
        probability=surest.probability,
    )


def _towards(wrong: Iterable[Judged], given: str, says: str) -> Literal["says", "given"] | None:
    """Which of the two labels is explained on most of these texts."""
    explained = Counter(text.explained for text in wrong)
    if not explained[says] and not explained[given]:
        return None
    return "says" if explained[says] >= explained[given] else "given"


def _words(
    run: Run,
    method: str,
    wrong: Sequence[Judged],
    every: Sequence[Judged],
    label: str,
    sign: int,
) -> tuple[MisleadingWord, ...]:
    """The words that carry the mistake by what they do: those that the data support come first.

    Beside each stands what it does for (or against) the same label where the answer is right.
    """
    ours = [text.row for text in wrong if text.explained == label]
    theirs = [t.row for t in every if t.is_right and t.says == label == t.explained]
    shares = _shares(run, method, ours)
    beside = _shares(run, method, theirs)

    words = []
    for word, by_text in shares.items():
        speaking = _speaking(sign * np.array(by_text))
        if speaking.share <= 0 or not any(map(str.isalnum, word)):
            continue
        right = beside.get(word)
        right_too = None if right is None else _speaking(sign * np.array(right))
        words.append(MisleadingWord(word, speaking, right_too))
    largest = max((word.wrong.share for word in words), default=0.0)

    def place(word: MisleadingWord) -> tuple[bool, float, str]:
        is_told = word.wrong.is_supported and word.wrong.share >= LEAST * largest
        return not is_told, -word.wrong.share, word.word

    return tuple(sorted(words, key=place)[:MOST_WORDS])


def _shares(run: Run, method: str, rows: Collection[int]) -> Mapping[str, list[float]]:
    """The share of each word in each of these texts."""
    by_word: dict[str, list[float]] = defaultdict(list)
    if not rows:
        return by_word
    name = method.replace("'", "''")
    asked = OF_EACH_TEXT.replace("$method", f"'{name}'")
    listed = ", ".join(map(str, sorted(rows)))
    for record in run.query(f"{asked} ({listed}) order by row, word").to_pylist():
        by_word[record["word"]].append(record["share"])
    return by_word


def _speaking(shares: np.ndarray) -> Speaking:
    """Mean and Student's interval over texts."""
    from scipy.special import stdtrit

    count = len(shares)
    mean = float(shares.mean())
    interval = None
    if count > 1:
        error = float(shares.std(ddof=1)) / count**0.5
        half = float(stdtrit(count - 1, 1 - TAIL)) * error
        interval = (mean - half, mean + half)
    return Speaking(count, int((shares > 0).sum()), mean, interval)
