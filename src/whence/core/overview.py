"""An Overview: a whole run over a data set, as its page shows it.

Counts, verdicts, the words that carry each label, and the texts with the scores of each method.
``explaining/overview.py`` makes it, ``views/overview.py`` draws it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from whence.core.agreement import Conflict
from whence.core.answer_of_many import AnswerOfMany
from whence.core.confusion import FEW_TEXTS, LEAST, Confusion, is_supported
from whence.core.data_labels import DataLabels
from whence.core.evidence import Verdict
from whence.core.many import Failure, Tally
from whence.core.render import render
from whence.core.writing import write_text

WORTH_SAYING = 0.01  # of a text's scores: what does less is not said to do most


@dataclass(frozen=True)
class CarryingWord:
    """A word over all texts that have it, by one method and for one label.

    ``share`` is its mean part of all scores of a text, with its sign, and ``low`` to ``high`` the
    95 % interval over texts. ``total`` is the sum of its parts over the texts. ``is_sure`` says
    that the mean differs from zero even if every word that was looked at is paid for (Bonferroni).
    """

    method: str
    label: str
    word: str
    texts: int
    share: float
    low: float
    high: float
    total: float
    is_sure: bool

    @property
    def is_supported(self) -> bool:
        """Whether the data support what the word does: enough texts, and surely not zero."""
        return is_supported(self.texts, (self.low, self.high))

    @property
    def is_word(self) -> bool:
        """Whether it is more than punctuation."""
        return any(map(str.isalnum, self.word))

    @property
    def has_few_texts(self) -> bool:
        """Whether it stands in so few texts that this must be said."""
        return self.texts < FEW_TEXTS


def by_effect(words: Iterable[CarryingWord]) -> list[CarryingWord]:
    """Words of one method and label as they are listed, by what they do.

    First come those that may be told for sure: the data support them, and they do a tenth of what
    the largest one does, or more. The others follow, also by size.

    >>> often = CarryingWord("lime", "toxic", "you", 90, 0.04, 0.03, 0.05, 3.6, is_sure=True)
    >>> strong = CarryingWord("lime", "toxic", "idiot", 4, 0.63, 0.4, 0.86, 2.5, is_sure=False)
    >>> [word.word for word in by_effect([often, strong])]
    ['idiot', 'you']
    """
    every = list(words)
    sure = set(map(id, told_for_sure(every)))
    return sorted(every, key=lambda w: (id(w) not in sure, -abs(w.share), w.word))


def to_be_named(words: Iterable[CarryingWord], sign: int = 1) -> list[CarryingWord]:
    """Those of one method and label that an answer may name, in the order in which they stand.

    Each speaks for the label, is supported, is no mere punctuation, and does at least a tenth of
    what the largest one of them all does. ``sign`` is that of a score that speaks for the label,
    which is below zero where a loss was explained.

    >>> often = CarryingWord("lime", "toxic", "you", 90, 0.04, 0.03, 0.05, 3.6, is_sure=True)
    >>> strong = CarryingWord("lime", "toxic", "idiot", 4, 0.63, 0.4, 0.86, 2.5, is_sure=False)
    >>> [word.word for word in to_be_named([often, strong])]
    ['idiot']
    """
    sure = told_for_sure(by_effect(words))
    return [word for word in sure if sign * word.share > 0 and word.is_word]


def strongest_of(words: Iterable[CarryingWord], sign: int = 1) -> CarryingWord | None:
    """The one that speaks most for the label, sure or not; None where none does much.

    Much is a hundredth of a text's scores, and a tenth of what the largest word does.

    >>> strong = CarryingWord("lime", "toxic", "idiot", 2, 0.63, 0.4, 0.86, 2.5, is_sure=False)
    >>> weak = CarryingWord("lime", "toxic", "a", 2, 0.004, -0.2, 0.2, 0.01, is_sure=False)
    >>> strongest_of([weak, strong]).word, strongest_of([weak])
    ('idiot', None)
    """
    every = list(words)
    least = max(LEAST * max((abs(word.share) for word in every), default=0.0), WORTH_SAYING)
    speaking = [word for word in every if sign * word.share >= least and word.is_word]
    return max(speaking, key=lambda word: abs(word.share), default=None)


def told_for_sure(words: Sequence[CarryingWord]) -> list[CarryingWord]:
    """Of one method and label: supported, and a tenth of the largest, supported or not, or more.

    >>> few = CarryingWord("lime", "toxic", "idiot", 2, 0.63, 0.4, 0.86, 2.5, is_sure=False)
    >>> told_for_sure([few])
    []
    """
    largest = max((abs(word.share) for word in words), default=0.0)
    return [w for w in words if w.is_supported and abs(w.share) >= LEAST * largest]


@dataclass(frozen=True)
class Accuracy:
    """How often the model says what the data say, over the texts whose label it has.

    ``commonest`` is the label that most of these texts have, on ``commonest_texts`` of them: who
    always says it is right as often.
    """

    texts: int
    right: int
    interval: tuple[float, float]
    commonest: str
    commonest_texts: int


@dataclass(frozen=True, eq=False)
class Reading:
    """One text by one method."""

    scores: Float[np.ndarray, " unit"]
    verdict: Verdict | None
    beaten: float | None
    p: float | None


@dataclass(frozen=True, eq=False)
class ReadText:
    """One text by every method. ``pieces`` are its units; they concatenate back to the text.

    ``agreement`` is the mean rank correlation of every two methods but the control; None where
    the text is too short to tell, or there are no two. ``conflict`` is the unit on which most
    methods say the opposite of others.
    """

    row: int
    number: int
    id: str
    pieces: tuple[str, ...]
    parts: tuple[int, ...]
    label: str | None  # that the data give, as the model calls it where it has such a label
    predicted: str | None
    probability: float | None
    explained: str  # the label whose words these are
    readings: Mapping[str, Reading]
    agreement: float | None
    conflict: Conflict | None
    # False where it is not right or wrong: it has no such label, or does not choose one of several
    is_judged: bool = True
    # the labels that hold, where each has its own yes or no; None where the model says one
    holding: tuple[tuple[str, float], ...] | None = None

    @property
    def says_none(self) -> bool:
        """Whether each label has its own yes or no, and none a yes."""
        return self.holding == ()

    @property
    def text(self) -> str:
        """The text itself, or both of a pair."""
        return "".join(self.pieces)


@dataclass(frozen=True, eq=False)
class Overview:
    """A run as its page shows it.

    ``speaker`` is the method whose words the answer names; None where none may be believed.
    ``repeated`` counts texts that stood there before, which verdicts do not count again, and
    ``left_out`` the texts that are done but have no place on the page: those on which
    methods agree best. ``confusion`` is what the model says beside what the data say; None where
    they have no labels, or the model does not choose one of a list: ``unjudged`` counts the texts
    to which the data give one, where it may say several or none.
    """

    place: str
    source: str
    model: str
    read: str  # which number of the target is explained, such as "logit"
    rows: int
    done: int
    failed: int
    methods: tuple[str, ...]
    signed: tuple[bool, ...]
    answer: AnswerOfMany
    tallies: tuple[Tally, ...]
    better_intervals: tuple[tuple[float, float] | None, ...]  # of the share of texts, by tally
    accuracy: Accuracy | None
    words: tuple[CarryingWord, ...]
    speaker: str | None
    texts: tuple[ReadText, ...]
    repeated: int
    left_out: int
    failures: tuple[Failure, ...]
    confusion: Confusion | None = None
    labels: DataLabels | None = None  # of the texts that are done, where the model chooses labels
    unjudged: int = 0

    def words_by(self, method: str, label: str) -> list[CarryingWord]:
        """The words of one method and label, by what they do."""
        return by_effect(w for w in self.words if (w.method, w.label) == (method, label))

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("overview_page", self)
        if path is not None:
            write_text(path, page)
        return page
