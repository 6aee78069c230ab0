"""Recall of gold features: the experiment of Ribeiro et al. (2016), section 5.2.

A model is made that cannot use more than ten words of any text, so that it is known which words
matter to it. Methods that look from outside explain it, and name ten words each: how many of the
words that matter are among them?
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.attribution import Cost
from whence.core.errors import InputError, Unsupported
from whence.core.registry import Needs, find_method, settings_of
from whence.core.target import Target, as_target
from whence.core.units import Units
from whence.metrics.recall import Recall

MOST_WORDS = 10  # with a weight, of any text
BUDGET = 10  # words that an explanation may name
FIRST_C, LAST_C = 0.1, 0.001  # the strength of the penalty, from weak to strong
WORD = re.compile(r"\w+")
LABELS = ("negative", "positive")
POSITIVE = Target(LABELS[1], read="probability", index=1)


def words_of(text: str) -> tuple[str, ...]:
    """The different words of a text, in reading order.

    >>> words_of("Not bad, not BAD at all")
    ('not', 'bad', 'at', 'all')
    """
    return tuple(dict.fromkeys(WORD.findall(text.lower())))


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A logistic regression on bags of words; what is no key of ``weights`` has none."""

    weights: Mapping[str, float]
    intercept: float
    penalty: float  # C of scikit-learn

    def game(self, text: str) -> WordGame:
        """The probability of the second label when only some words are kept."""
        words = words_of(text)
        weights = np.array([self.weights.get(word, 0.0) for word in words])
        return WordGame(words, weights, self.intercept)

    def gold(self, text: str) -> Bool[np.ndarray, " unit"]:
        """The words of the text that matter to the model."""
        return np.array([word in self.weights for word in words_of(text)], dtype=bool)


def sparse_model(texts: Sequence[str], labels: Sequence[int]) -> SparseModel:
    """A model of which no text has more than ten words with a weight.

    The L1 penalty is made stronger, step by step, until that holds for each of the texts. Over all
    texts there are more such words.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    if len(texts) != len(labels) or set(labels) != {0, 1}:
        raise InputError("give a label, 0 or 1, for each text, and texts of both.")
    counting = CountVectorizer(binary=True, token_pattern=WORD.pattern)
    present = counting.fit_transform(texts)
    names = counting.get_feature_names_out()
    penalty = FIRST_C
    while penalty > LAST_C:
        fitted = LogisticRegression(l1_ratio=1.0, C=penalty, solver="liblinear", random_state=0)
        fitted.fit(present, labels)
        weights = fitted.coef_[0]
        active = np.asarray(present @ (weights != 0).astype(int)).reshape(-1)
        if active.max() <= MOST_WORDS:
            used = {str(names[i]): float(weights[i]) for i in np.flatnonzero(weights)}
            return SparseModel(used, float(np.ravel(fitted.intercept_)[0]), penalty)
        penalty *= 0.9
    raise InputError(
        f"even under the strongest penalty (C = {LAST_C}) a text has more than {MOST_WORDS} words "
        "with a weight; give shorter texts."
    )


@dataclass(frozen=True, eq=False)
class WordGame:
    """A game as methods and metrics see it, whose players are the words of a bag."""

    words: tuple[str, ...]
    weights: Float[np.ndarray, " word"]
    intercept: float
    target: Target = POSITIVE
    counted: list[int] = field(default_factory=lambda: [0])

    @property
    def size(self) -> int:
        """How many words there are."""
        return len(self.words)

    @property
    def units(self) -> Units:
        """The words."""
        return Units("feature", self.words)

    @property
    def removal(self) -> str:
        """A word that is not kept is not in the bag."""
        return "delete"

    @property
    def digest(self) -> bytes:
        """Of the words and their weights."""
        content = " ".join(self.words).encode() + self.weights.tobytes()
        return hashlib.sha256(content).digest()

    @property
    def full(self) -> float:
        """With all words."""
        return float(self(np.ones((1, self.size), dtype=bool))[0])

    @property
    def empty(self) -> float:
        """Without any."""
        return float(self(np.zeros((1, self.size), dtype=bool))[0])

    @property
    def label(self) -> int | None:
        """What the model predicts."""
        return int(self.labels(np.ones((1, self.size), dtype=bool))[0])

    @property
    def cost(self) -> Cost:
        """How many bags the model was asked about."""
        return Cost(forwards=self.counted[0])

    def __call__(self, masks: Any, /) -> Float[np.ndarray, " mask"]:
        """The probability of the target's label for each bag."""
        positive = 1 / (1 + np.exp(-self._logits(masks)))
        return positive if self.target.index == 1 else 1 - positive

    def labels(self, masks: Any, /) -> Int[np.ndarray, " mask"]:
        """The label of each bag."""
        return (self._logits(masks) > 0).astype(np.int64)

    def about(self, target: Any, /) -> WordGame:
        """The same, of the other label."""
        wanted = as_target(target)
        index = wanted.label if isinstance(wanted.label, int) else LABELS.index(str(wanted.label))
        return replace(self, target=Target(LABELS[index], read="probability", index=index))

    def _logits(self, masks: Any) -> Float[np.ndarray, " mask"]:
        kept = np.asarray(masks, dtype=bool)
        self.counted[0] += len(kept)
        return self.intercept + kept @ self.weights


@dataclass(frozen=True)
class RecallOfMethod:
    """The mean recall of a method over texts, with its standard error; what chance gets there."""

    method: str
    recall: float
    standard_error: float
    chance: float
    texts: int


def recall_of_gold(
    model: SparseModel,
    texts: Sequence[str],
    methods: Mapping[str, Mapping[str, Any]],
    budget: int = BUDGET,
    seed: int = 0,
) -> list[RecallOfMethod]:
    """How many gold words each method finds, of texts that have any, beside chance.

    ``methods`` are those that play, by name, with their settings.

    >>> texts = ["good fun and a warm story", "bad dull and a cold story"] * 20
    >>> model = SparseModel({"good": 2.0, "bad": -2.0}, 0.0, 0.1)
    >>> (found,) = recall_of_gold(model, texts, {"occlusion": {}}, budget=1)
    >>> found.recall, round(found.chance, 3), found.texts
    (1.0, 0.167, 40)
    """
    explainers = {}
    for name, settings in methods.items():
        info = find_method(name)
        if not info.needs & Needs.GAME:
            raise Unsupported(
                f"{name} looks inside a transformer, and this model is none: take a method that "
                "plays, such as lime, shapley or occlusion."
            )
        explainers[name] = settings_of(info, settings, seed)

    telling = [text for text in texts if model.gold(text).any()]
    if not telling:
        raise InputError("no text has a word with a weight.")
    by_chance = [min(budget, size) / size for size in (len(words_of(text)) for text in telling)]
    recall = Recall(budget)
    results = []
    for name, explain in explainers.items():
        values = []
        for text in telling:
            scores = explain(model.game(text)).units
            ranking = np.argsort(-np.abs(scores), kind="stable")
            values.append(recall(model.gold(text), ranking[None])[0])
        spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        mean = float(np.mean(values))
        chance = float(np.mean(by_chance))
        results.append(RecallOfMethod(name, mean, float(spread), chance, len(values)))
    return results
