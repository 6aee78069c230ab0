"""The answer over many texts: which methods hold more often than chance allows.

``views/answering_of_many.py`` puts it into words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whence.core.answer import CONTROL, PLAIN_ATTENTION
from whence.core.evidence import LEVEL, is_within
from whence.core.many import Many, Tally, most_by_chance


@dataclass(frozen=True)
class AnswerOfMany:
    """What the evidence of all texts carries together.

    ``holding`` are the methods that are better than random on more texts than chance allows, the
    best first. Each pays for the number of methods tried (Bonferroni). ``explained`` counts the
    texts of which words can be named.
    """

    texts: int
    predictions: tuple[tuple[str, int], ...]  # labels with the number of texts, most first
    distinct: int  # texts, of which some may stand there twice
    explained: int
    too_few_texts: bool  # even a method that holds on every text could not be told from chance
    tried: int
    holding: tuple[Tally, ...]
    attention: Tally | None
    control: Tally | None

    @property
    def most_by_chance(self) -> int:
        """Of how many texts words are named by chance, at most, in 95 % of all cases."""
        return most_by_chance(self.distinct)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the sentences, and the facts behind them by name."""
        from whence.core.render import draw

        return {
            "sentences": draw("many_sentences", self),
            "texts": self.texts,
            "predictions": dict(self.predictions),
            "texts_with_words_named": self.explained,
            "texts_named_by_chance_at_most": self.most_by_chance,
            "methods_tried": self.tried,
            "methods_better_more_often_than_chance": [tally.method for tally in self.holding],
        }


def answer_of_many(many: Many) -> AnswerOfMany:
    """The answer over all texts of a result.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> many = whence.explain(model, ["a fine film", "a dull film"], "gradient-l2")
    >>> answer_of_many(many).predictions
    (('positive', 1), ('negative', 1))
    """
    labels = Counter(name for row in many.rows() for name in row.says)
    distinct = many.distinct
    answers = [result.answer for result in distinct]
    explained = sum(answer.is_carried and answer.names_something for answer in answers)
    return answer_of_counts(len(many), labels, many.tallies(), len(distinct), explained)


def answer_of_counts(
    texts: int, labels: Counter[str], tallies: Sequence[Tally], distinct: int, explained: int
) -> AnswerOfMany:
    """The same where everything has been counted, and the results themselves are not at hand."""
    by_method = {tally.method: tally for tally in tallies}
    tried = [t for name, t in by_method.items() if name != CONTROL and t.judged]
    holding = [tally for tally in tried if _holds(tally, len(tried))]
    attention = next((name for name in PLAIN_ATTENTION if name in by_method), None)
    most = max((tally.judged for tally in tried), default=0)
    return AnswerOfMany(
        texts=texts,
        predictions=tuple(labels.most_common()),
        distinct=distinct,
        too_few_texts=bool(tried) and not is_within(LEVEL**most * len(tried)),
        explained=explained,
        tried=len(tried),
        holding=tuple(sorted(holding, key=_often)),
        attention=None if attention is None else by_method[attention],
        control=by_method.get(CONTROL),
    )


def _holds(tally: Tally, tried: int) -> bool:
    return tally.p is not None and is_within(tally.p * tried)


def _often(tally: Tally) -> tuple[float, float]:
    return -tally.better / tally.judged, -(tally.beaten or 0.0)
