"""Question answering: the words of a text that answer a question.

The head gives each token two numbers: that an answer begins there, and that one ends there. What is
explained is one answer, and its logit is the sum of the two: begin at its first token, end at its
last. The labels are therefore the possible answers of one text, by their own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.once import once
from whence.core.passage import Passage
from whence.core.target import Target
from whence.models.batches import Batch, batch_of_texts
from whence.models.limits import text_limit
from whence.models.tasks.task import Task
from whence.models.values import NEVER

if TYPE_CHECKING:
    from whence.models.model import Model

# Tokens of the longest answer, as in the evaluation of SQuAD.
LONGEST_ANSWER = 30
NO_ANSWER = "no answer"


@dataclass(frozen=True, eq=False)
class Answers(Mapping[int, str]):
    """The possible answers of one text, by their words; where they stand twice, with a number.

    Every run of up to ``LONGEST_ANSWER`` tokens of the second text is one, if it begins and ends
    with something written. The last is "no answer" where there is a classification token, at which
    such models are trained to point then.
    """

    passage: Passage
    starts: Int[np.ndarray, " answer"]
    ends: Int[np.ndarray, " answer"]
    owner: str = "possible answers of this text"

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise KeyError(index)
        words = self._words(index)
        alike = self._by_words[words]
        if len(alike) == 1:
            return words
        return f"{words} ({alike.index(index) + 1})"

    def index_of(self, label: str) -> list[int]:
        """The answers of these words: one, or several that stand in the text."""
        exact = self._by_words.get(label.strip(), [])
        if exact:
            return exact
        words, _, number = label.strip().rpartition(" (")
        alike = self._by_words.get(words, [])
        which = number.removesuffix(")")
        if which.isdecimal() and 0 < int(which) <= len(alike):
            return [alike[int(which) - 1]]
        return []

    def _words(self, index: int) -> str:
        first, last = int(self.starts[index]), int(self.ends[index])
        if self.passage.special[first]:
            return NO_ANSWER
        begin, end = int(self.passage.spans[first, 0]), int(self.passage.spans[last, 1])
        return (self.passage.pair or "")[begin:end].strip()

    @once
    def _by_words(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index in range(len(self)):
            found.setdefault(self._words(index), []).append(index)
        return found


def answers_of(model: Model, passage: Passage) -> Answers:
    """Where each possible answer begins and ends, as tokens of the passage."""
    text = np.flatnonzero(passage.parts == 1)
    first, more = np.divmod(np.arange(len(text) * LONGEST_ANSWER), LONGEST_ANSWER)
    # a token of nothing but white space neither begins an answer nor ends one
    pair = passage.pair or ""
    written = np.array([bool(pair[a:b].strip()) for a, b in passage.spans[text]], dtype=bool)
    inside = first + more < len(text)
    last = np.where(inside, first + more, 0)
    fits = inside & written[first] & written[last]
    starts, ends = text[first[fits]], text[last[fits]]
    no_answer = _no_answer(model, passage)
    return Answers(passage, np.append(starts, no_answer), np.append(ends, no_answer))


def _no_answer(model: Model, passage: Passage) -> Int[np.ndarray, " place"]:
    """The classification token, at which a model points that finds no answer; often none."""
    token = getattr(model.tokenizer, "cls_token_id", None)
    if token is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(passage.special & (passage.ids == token))[:1]


def _batch(model: Model, passages: Sequence[Passage]) -> Batch:
    """The texts, and where each of their answers begins and ends; -1 where a text has fewer."""
    batch = batch_of_texts(model, passages)
    of_passage = {id(passage): answers_of(model, passage) for passage in passages}
    every = [of_passage[id(passage)] for passage in passages]
    places = np.full((len(passages), max(map(len, every)), 2), -1, dtype=np.int64)
    for row, answers in zip(places, every, strict=True):
        row[: len(answers)] = np.stack([answers.starts, answers.ends], 1)
    return replace(batch, readout=torch.from_numpy(places).to(model.device))


def _read(_model: Model, outputs: Any, batch: Batch) -> Float[Tensor, "batch answer"]:
    """The logit of each answer: that it begins where it does, and that it ends where it does."""
    assert batch.readout is not None
    first, last = batch.readout.unbind(-1)
    begins = outputs.start_logits.gather(1, first.clamp(min=0))
    ends = outputs.end_logits.gather(1, last.clamp(min=0))
    return torch.where(first < 0, NEVER, begins + ends)


def _labels(_model: Model) -> Mapping[int, str]:
    """They are the answers of a text, and not of a model."""
    return {}


def _readout(_model: Model, passage: Passage) -> int | None:
    return passage.readout


def _at_target(model: Model, passage: Passage, target: Target) -> Passage:
    """The row of attention that speaks for an answer is that of its first token."""
    if target.index is None:
        return passage
    return replace(passage, readout=int(answers_of(model, passage).starts[target.index]))


ANSWERING = Task(
    name="question-answering",
    title="question answering",
    heads={
        "ForQuestionAnswering": "AutoModelForQuestionAnswering",
        "ForQuestionAnsweringSimple": "AutoModelForQuestionAnswering",
    },
    limit=text_limit,
    batch=_batch,
    second_text="a question and the text that holds the answer",
    reads_twice=True,
    no_windows=(
        "windows average one class over the text, and an answer stands in one place. Shorten the "
        "text around it, or use overflow='truncate'."
    ),
    labels=_labels,
    labels_of=answers_of,
    read=_read,
    readout=_readout,
    at_target=_at_target,
    removals=("mask", "mean", "zero", "pad", "infill"),
    no_removal=(
        "an answer is a place in the text, and where words vanish ({removal}) its place may vanish "
        "too; use 'mask', 'mean', 'zero', 'pad' or 'infill', under which every place stays."
    ),
)
