"""Head removal: what the task loses on the data without each head.

A head is removed by setting its output to zero behind the attention (Michel et al. 2019; Voita et
al. 2019). Kovaleva et al. (2019) make its attention uniform instead, which leaves it the mean of
its values; that is the test of uniform attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whence.audits.case import Case, Price
from whence.audits.performance import performance, performance_without
from whence.core.audit import Observation
from whence.models.model import Model
from whence.trace.trace import RERUN_TOKENS


@dataclass(frozen=True)
class HeadRemoval:
    """What each head is worth to the task, text by text.

    ``loss`` at a head is the loss without it, less that of the whole model: above 0 the head
    helped, below 0 it hurt. ``right`` at a head is 1 where the model is right without it, else 0,
    with the whole model's as the control. ``whole-loss`` and ``whole-right``, at the place "every
    layer", are the whole model's own: no change of a loss, and so not judged with those. A
    regression has a loss only, the squared error.

    The truth is the label of the case. Where there is none, it is what the whole model predicts.
    ``tokens`` is how many a batch holds, padding included.

    >>> import whence
    >>> from whence.core.target import Target
    >>> model = whence.load("sentiment")
    >>> case = Case(model.encode("a dull and lifeless film"), Target("negative", index=0), label=0)
    >>> (observations,) = HeadRemoval()(model, [case])
    >>> len(observations), observations[1].quantity, str(observations[2].place)
    (98, 'whole-right', 'layer 0, head 0')
    """

    tokens: int = RERUN_TOKENS

    name: ClassVar[str] = "heads"
    null: ClassVar[str] = "The loss is the same without the head as with it: its change is 0."
    effect: ClassVar[str] = (
        "change of the loss without the head, in nats of cross-entropy (of a regression, in "
        "squared units of its output)"
    )

    def passes(self, heads: int, wholes: int) -> Price:  # noqa: ARG002
        """One pass of the whole model, and one without each head."""
        return Price(forwards=1 + heads)

    def __call__(self, model: Model, cases: Sequence[Case]) -> list[list[Observation]]:
        """What was found on each case."""
        if not cases:
            return []
        whole = performance(model, cases, self.tokens)
        alone = [{head} for head in whole.heads]
        without = performance_without(model, cases, whole.truths, alone, self.tokens)
        change = without.loss - whole.loss[:, None]
        # a head on which nothing depends changes the last digits of a sum, and no more
        change[np.abs(change) <= whole.rounding[:, None]] = 0.0

        every: list[list[Observation]] = []
        for text in range(len(cases)):
            observations = [Observation(self.name, "whole-loss", float(whole.loss[text]))]
            was_right = None if model.is_regression else float(whole.right[text])
            if was_right is not None:
                observations.append(Observation(self.name, "whole-right", was_right))
            for column, place in enumerate(whole.heads):
                loss = float(change[text, column])
                observations.append(Observation(self.name, "loss", loss, place, control=0.0))
                if was_right is not None:
                    right = float(without.right[text, column])
                    observations.append(
                        Observation(self.name, "right", right, place, control=was_right)
                    )
            every.append(observations)
        return every
