"""How well a model does its task on each text: its loss, and whether it is right.

The truth of a text is its label. Where the data tell none, it is what the whole model predicts; the
loss then says how far the model without some heads has left the whole one.

    classes          −log softmax(logits)[label]
    next word        the same, over the vocabulary
    A rather than B  the same, over the two words: a language model with a contrast as its target,
                     as on minimal pairs
    several labels   −log sigmoid(logit of the label)
    a number         (output − number)²
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from whence.audits.case import Case
from whence.core.audit import Place
from whence.core.errors import InputError
from whence.core.request import Ask
from whence.models.model import Model
from whence.trace.effects import Rows, run_whole, run_without


@dataclass(frozen=True)
class Truth:
    """What is true of one text.

    ``label`` is its index; of a regression, which output is meant, and ``number`` is what it should
    say. ``choices`` are the labels that compete; None for all.
    """

    label: int
    number: float | None = None
    choices: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Whole:
    """The whole model on each text: its heads, what is true, its loss and whether it is right.

    ``right`` is NaN for a regression, which is never right or wrong. ``rounding`` is what the loss
    may change by where nothing has changed: the last digits of the model's arithmetic.
    """

    heads: tuple[Place, ...]
    truths: tuple[Truth, ...]
    loss: Float[np.ndarray, " text"]
    right: Float[np.ndarray, " text"]
    rounding: Float[np.ndarray, " text"]


@dataclass(frozen=True, eq=False)
class Without:
    """The same without some heads, one column for each set of them."""

    loss: Float[np.ndarray, "text set"]
    right: Float[np.ndarray, "text set"]


def performance(model: Model, cases: Sequence[Case], tokens_per_batch: int) -> Whole:
    """How the whole model does: one forward pass for each text."""
    heads: tuple[Place, ...] = ()
    truths: dict[int, Truth] = {}
    loss, right, rounding = np.full((3, len(cases)), np.nan)
    for rows in run_whole(model, [_ask(case) for case in cases], tokens_per_batch):
        heads = rows.heads
        logits_of_rows = _numbers(rows)
        for i, logits in zip(rows.numbers, logits_of_rows, strict=True):
            truths[i] = truth_of(model, cases[i], logits)
            loss[i], right[i] = loss_and_right(model, truths[i], logits)
            rounding[i] = _rounding(model, loss[i], logits)
    in_order = tuple(truths[i] for i in range(len(cases)))
    return Whole(heads, in_order, loss, right, rounding)


def performance_without(
    model: Model,
    cases: Sequence[Case],
    truths: Sequence[Truth],
    sets: Sequence[Collection[Place]],
    tokens_per_batch: int,
) -> Without:
    """How the model does without each set of heads: one forward pass for each text and set."""
    # the sets of a text one behind the other, so that rows of one length share a batch
    pairs = [(text, column) for text in range(len(cases)) for column in range(len(sets))]
    asks = [_ask(cases[text]) for text, _ in pairs]
    sets_of_rows = [sets[column] for _, column in pairs]

    loss, right = np.full((2, len(cases), len(sets)), np.nan)
    for rows in run_without(model, asks, sets_of_rows, tokens_per_batch):
        logits_of_rows = _numbers(rows)
        for i, logits in zip(rows.numbers, logits_of_rows, strict=True):
            text = pairs[i][0]
            loss[pairs[i]], right[pairs[i]] = loss_and_right(model, truths[text], logits)
    return Without(loss, right)


def truth_of(model: Model, case: Case, logits: Float[np.ndarray, " label"]) -> Truth:
    """The text's label, or what the whole model says of it."""
    if model.is_regression:
        output = case.target.index or 0
        number = logits[output] if case.label is None else case.label
        return Truth(output, number=float(number))

    label = None if case.label is None else int(case.label)
    if label is not None and not 0 <= label < len(logits):
        raise InputError(
            f"the true label {label} is outside the {len(logits)} labels of this text."
        )
    choices = _contrast(model, case)
    if label is not None:
        return Truth(label, choices=choices)
    if choices is None:
        return Truth(int(logits.argmax()))
    likelier = int(logits[list(choices)].argmax())
    return Truth(choices[likelier], choices=choices)


def _contrast(model: Model, case: Case) -> tuple[int, ...] | None:
    """The two words of a contrast, where a language model is asked for one rather than the other.

    A classifier has few labels, and all of them compete.
    """
    pair = (case.target.index, case.target.against_index)
    if model.kind.has_classes or None in pair:
        return None
    if case.label is not None and case.label not in pair:
        return None
    return tuple(index for index in pair if index is not None)


def loss_and_right(
    model: Model, truth: Truth, logits: Float[np.ndarray, " label"]
) -> tuple[float, float]:
    """Of one text. Right is 1 or 0; NaN for a regression."""
    label = truth.label
    if truth.number is not None:
        return float((logits[label] - truth.number) ** 2), np.nan

    if model.several_labels:
        # each label has its own yes or no: −log sigmoid
        return float(np.logaddexp(0.0, -logits[label])), float(logits[label] > 0)

    competing = np.arange(len(logits)) if truth.choices is None else np.array(truth.choices)
    largest = logits[competing].max()
    total = np.log(np.exp(logits[competing] - largest).sum()) + largest
    predicted = competing[logits[competing].argmax()]
    return float(total - logits[label]), float(predicted == label)


def _rounding(model: Model, loss: float, logits: Float[np.ndarray, " label"]) -> float:
    """What the loss moves by where each logit moves by four times its last digit."""
    moved = 4 * torch.finfo(model.dtype).eps * float(np.abs(logits).max(initial=0.0))
    if model.is_regression:
        return 2 * float(np.sqrt(loss)) * moved + moved**2
    return 2 * moved


def _ask(case: Case) -> Ask:
    return Ask(case.passage, case.target)


def _numbers(rows: Rows) -> Float[np.ndarray, "row label"]:
    return rows.logits.double().cpu().numpy()
