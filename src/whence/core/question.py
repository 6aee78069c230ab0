"""The four questions that can be asked of an explanation. Each command answers one of them.

They are not the same question, and their answers may differ: a method can be right on one text and
wrong on most, or good on average and seen to be so on hardly any single text.
"""

from __future__ import annotations

from enum import StrEnum


class Question(StrEnum):
    """What is asked. The words of each are its own, so that no verdict is taken for another."""

    TEXT = "text"
    TEXTS = "texts"
    MEASURE = "measure"
    ATTENTION = "attention"

    @property
    def asked(self) -> str:
        """The question as a person would ask it.

        >>> Question.TEXT.asked
        'Is this ranking better than random on this text?'
        """
        return ASKED[self]

    @property
    def command(self) -> str:
        """The command that answers it.

        >>> [question.command for question in Question]
        ['compare', 'run', 'evaluate', 'audit']
        """
        return COMMANDS[self]


# Said of each of the four questions, beside the command that answers it.
ASKED = {
    Question.TEXT: "Is this ranking better than random on this text?",
    Question.TEXTS: "On how many texts is it better than random, and on how many by chance?",
    Question.MEASURE: "By which measures is it better than its control, on average over texts?",
    Question.ATTENTION: "Is it attention that does it, so that attention may be read?",
}
COMMANDS = {
    Question.TEXT: "compare",
    Question.TEXTS: "run",
    Question.MEASURE: "evaluate",
    Question.ATTENTION: "audit",
}
