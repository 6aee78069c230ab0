"""A Card: what was saved of one model, side by side, and what it means together.

``explaining/card.py`` makes it of folders and files; ``views/card.py`` puts it into words. The
rules of what the answers mean together are here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from whence.core.attribution import check_schema
from whence.core.question import Question
from whence.core.render import draw, render
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_json, written

SCHEMA = 1


class Standing(StrEnum):
    """Which way an answer points, whatever was asked."""

    YES = "yes"
    PART = "in part"
    NO = "no"
    OPEN = "open"


class Together(StrEnum):
    """What the answers to all questions mean, for somebody who has to decide."""

    HOLDS = "All answers over many texts speak for it, as far as they tell."
    ON_TEXTS = (
        "On single texts it can be better than random, and on average no measure says so: show it "
        "for a text with that text's own verdict, and not for the data set."
    )
    ON_AVERAGE = (
        "On average it is better than its control, and on single texts that is not seen more often "
        "than by chance: use it for averages, and not for one text."
    )
    BY_SOME = "Some of what was asked of it speaks for it, and some does not: say what you cite."
    NOT_ATTENTION = (
        "Its words fare well, and the attention that it reads may not be read: call it a ranking, "
        "and not what the model looked at."
    )
    FAILS = "No answer over many texts speaks for it."
    ONE_TEXT = "It was asked about single texts only, which says nothing of others."
    OPEN = "What was asked over many texts does not tell yet."


@dataclass(frozen=True)
class Source:
    """A result that was saved: which question it answers, and on which data.

    ``counted`` says what ``texts`` counts: texts, or the tokens that a model wrote.
    """

    question: Question
    kind: str  # run, evaluation, audit, comparison, generation …
    file: str
    data: str  # the data set by its name; empty where the text stands in the result
    texts: int
    counted: str = "text"
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """What one source says of one method, in the words of its own question.

    ``won`` of ``of`` are texts or measures; ``chance`` is the range that chance alone gives.
    """

    method: str
    source: int  # its number among the sources
    standing: Standing
    said: str
    won: int | None = None
    of: int | None = None
    chance: tuple[int, ...] = ()
    p: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Card:
    """What was saved of one model: for each method the answers to four questions.

    ``attention`` is what an audit says of attention in all layers together, by source.

    >>> card = whence.card("runs/reviews", "trials", "audit")      # doctest: +SKIP
    >>> print(card); card.to_markdown("MODEL_CARD.md")             # doctest: +SKIP
    """

    model: str
    sources: tuple[Source, ...]
    findings: tuple[Finding, ...]
    attention: Mapping[str, str]
    left_out: Mapping[str, str]  # files that answer none of the questions, and why

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods in the order in which they were met; the control comes last."""
        names = dict.fromkeys(finding.method for finding in self.findings)
        return tuple(sorted(names, key=lambda name: name == "random"))

    def of(self, method: str, question: Question) -> tuple[Finding, ...]:
        """What the sources that answer a question say of a method."""
        return tuple(
            finding
            for finding in self.findings
            if finding.method == method and self.sources[finding.source].question is question
        )

    def standing(self, method: str, question: Question) -> Standing | None:
        """Which way all sources together point; None where the question was not asked of it."""
        return joint(finding.standing for finding in self.of(method, question))

    def together(self, method: str) -> Together:
        """What all answers mean together."""
        return together({question: self.standing(method, question) for question in Question})

    @property
    def unasked(self) -> tuple[Question, ...]:
        """The questions that no source answers: one in which nothing was tested answers none."""
        answered = {self.sources[finding.source].question for finding in self.findings}
        if self.attention:
            answered.add(Question.ATTENTION)
        return tuple(question for question in Question if question not in answered)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the answer first; ``from_dict`` gives them back."""
        said = {"schema": SCHEMA, "kind": "card", "answer": draw("card_sentences", self)}
        return said | {
            "model": self.model,
            "sources": [asdict(source) for source in self.sources],
            "findings": [asdict(finding) for finding in self.findings],
            "attention": dict(self.attention),
            "left_out": dict(self.left_out),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Card:
        """What ``to_dict`` gave."""
        check_schema(stored, "card")
        stored = as_stored(stored, "card")
        sources = tuple(source.record(Source) for source in stored["sources"].items())
        findings = tuple(finding.record(Finding) for finding in stored["findings"].items())
        for place, finding in enumerate(findings):
            if finding.source >= len(sources):
                raise stored["findings"].items()[place].wrong("its source is not on this card")
        return cls(
            model=stored["model"].text(),
            sources=sources,
            findings=findings,
            attention={name: said.text() for name, said in stored["attention"].entries().items()},
            left_out={name: why.text() for name, why in stored["left_out"].entries().items()},
        )

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        return written(render("card_page", self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """A section for a model card; also written to ``path`` when one is given."""
        return written(draw("card_markdown", self), path)

    def __repr__(self) -> str:
        return f"Card({self.model!r}: {len(self.methods)} methods, {len(self.sources)} sources)"

    def __str__(self) -> str:
        return render("card_text", self)

    def _repr_html_(self) -> str:
        return render("card_fragment", self)


def joint(standings: Iterable[Standing]) -> Standing | None:
    """Several answers to one question as one: what they all say, or that they differ.

    >>> joint([Standing.YES, Standing.YES]), joint([Standing.YES, Standing.NO]), joint([])
    (<Standing.YES: 'yes'>, <Standing.PART: 'in part'>, None)
    """
    told = set(standings)
    if not told:
        return None
    if len(told) > 1:
        told.discard(Standing.OPEN)  # a question that is open elsewhere takes nothing back
    return told.pop() if len(told) == 1 else Standing.PART


def together(standings: Mapping[Question, Standing | None]) -> Together:
    """What the answers mean together. The questions of the data set decide, where they were asked.

    One text says nothing of others: its answer is in no sum, and no sum speaks of it.

    >>> together({Question.TEXTS: Standing.YES, Question.MEASURE: Standing.NO}).name
    'ON_TEXTS'
    """
    texts, measure = standings.get(Question.TEXTS), standings.get(Question.MEASURE)
    attention = standings.get(Question.ATTENTION)
    of_data = [standing for standing in (texts, measure, attention) if standing is not None]
    if not of_data:
        is_told = standings.get(Question.TEXT) is not None
        return Together.ONE_TEXT if is_told else Together.OPEN
    told = {standing for standing in of_data if standing is not Standing.OPEN}
    if not told:
        return Together.OPEN
    if told == {Standing.YES}:
        return Together.HOLDS
    if told == {Standing.NO}:
        return Together.FAILS
    if attention is Standing.NO and {texts, measure} <= {Standing.YES, Standing.OPEN, None}:
        return Together.NOT_ATTENTION
    if texts is Standing.YES and measure is Standing.NO:
        return Together.ON_TEXTS
    if texts is Standing.NO and measure is Standing.YES:
        return Together.ON_AVERAGE
    return Together.BY_SOME
