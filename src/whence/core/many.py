"""Many: what came of several texts, with counts over them beside what chance gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from whence.core.answer import CONTROL, binomial_tail
from whence.core.attribution import NO_LABEL, SCHEMA, Attribution, check_schema
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.core.evidence import CURVES, LEVEL, Verdict
from whence.core.render import draw, render
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_json, write_text

Result = Attribution | Comparison
TAIL = 0.025  # on either side of what holds 95 %
ROUNDING = 1e-12  # by which a probability may be off


@dataclass(frozen=True)
class Row:
    """One text in the index: what the model predicts, and how many methods got which verdict.

    The control is not among them.
    """

    text: str
    pair: str | None
    label: str | None  # the predicted one; None where the model gives no probabilities
    probability: float | None
    better: int
    same: int
    worse: int
    unjudged: int  # methods without a verdict
    holding: tuple[str, ...] | None = None  # labels; None where exactly one always holds

    @property
    def says(self) -> tuple[str, ...]:
        """What is counted of this text: its label, the labels that hold, or that none does."""
        if self.holding is not None:
            return self.holding or (NO_LABEL,)
        return () if self.label is None else (self.label,)


@dataclass(frozen=True)
class Failure:
    """A text of which nothing came: where it stands (``texts.txt, line 17``), and why."""

    where: str
    reason: str
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: a line of its own among those of the results."""
        return {"schema": SCHEMA, "kind": "failure", **asdict(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Failure:
        """What ``to_dict`` gave."""
        stored = as_stored(stored, "failure")
        line = stored.get("line")
        return cls(
            stored["where"].text(),
            stored["reason"].text(),
            None if line is None else line.whole(),
        )


@dataclass(frozen=True)
class Tally:
    """One method over all texts: how often which verdict, and how often by chance.

    A text that stands there twice is counted once. ``by_chance`` is on how many of the ``judged``
    texts a random ranking would be called better on average, at most: on a very short one it never
    is. ``chance_range`` holds 95 % of what chance gives. ``p`` is the chance that a random ranking
    is called better at least as often (an exact binomial test). ``beaten`` is the mean share of
    random rankings that the method beats (a half is chance), with a 95 % interval over texts
    (Student's t), which needs two of them.
    """

    method: str
    texts: int
    better: int
    same: int
    worse: int
    by_chance: float
    chance_range: tuple[int, int]
    p: float | None
    beaten: float | None
    interval: tuple[float, float] | None

    @property
    def judged(self) -> int:
        """Texts on which the method has a verdict."""
        return self.better + self.same + self.worse


@dataclass(frozen=True, eq=False, repr=False)
class Many(Sequence[Any]):
    """The results of several texts, in the order in which the texts were given.

    ``failures`` are the texts of a file that could not be explained, and ``unreached`` counts those
    that were never tried, as the run was ended before.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> many = whence.explain(model, ["a fine film", "not bad at all"], "gradient-l2")
    >>> len(many), many[1].units.names
    (2, ('not', 'bad', 'at', 'all'))
    >>> [row.label for row in many.rows()]
    ['positive', 'positive']
    """

    results: tuple[Result, ...]
    failures: tuple[Failure, ...] = ()
    unreached: int = 0

    def __post_init__(self) -> None:
        results = tuple(self.results)
        for result in results:
            if not isinstance(result, (Attribution, Comparison)):
                raise InputError(
                    "the results of several texts are attributions or comparisons, "
                    f"not {type(result).__name__}."
                )
        object.__setattr__(self, "results", results)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Many: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return Many(self.results[at])
        return self.results[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __eq__(self, other: object) -> bool:
        """Equal to any sequence of the same results: it was a list in whence 0.1."""
        if not isinstance(other, (Many, list, tuple)) or len(self) != len(other):
            return False
        pairs = zip(self, other, strict=True)
        return all(mine.to_dict() == _stored(theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]  # its results carry arrays

    def rows(self) -> list[Row]:
        """The index: one row for each text."""
        return [_row(result) for result in self.results]

    def tallies(self) -> list[Tally]:
        """One for each method, in the order in which the methods first appear.

        >>> import whence
        >>> model = whence.load("sentiment")
        >>> texts = ["a truly wonderful and moving film", "a dull and lifeless film"]
        >>> (tally,) = whence.explain(model, texts, "shapley").tallies()
        >>> tally.better, tally.judged, tally.by_chance
        (2, 2, 0.1)
        """
        by_method: dict[str, list[Attribution]] = {}
        for result in _distinct(self.results):
            for name, attribution in attributions_of(result).items():
                by_method.setdefault(name, []).append(attribution)
        return [_tally(name, every) for name, every in by_method.items()]

    @property
    def distinct(self) -> list[Result]:
        """The first result of every text."""
        return _distinct(self.results)

    @property
    def repeated(self) -> int:
        """How many results are of a text that stood there before, and so are not counted again."""
        return len(self.results) - len(_distinct(self.results))

    @property
    def answer(self) -> Any:
        """What may be said over all texts, and nothing beyond the evidence."""
        # found by name: the rules of this answer stand above what they are about
        return import_module("whence.core.answer_of_many").answer_of_many(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the answer first; ``from_dict`` gives them back."""
        said = self.answer.to_dict()
        results = [result.to_dict() for result in self.results]
        stored = {"schema": SCHEMA, "kind": "many", "answer": said, "results": results}
        if self.failures:
            stored["failures"] = [failure.to_dict() for failure in self.failures]
        if self.unreached:
            stored["unreached"] = self.unreached
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Many:
        """What ``to_dict`` gave."""
        check_schema(stored, "result of many texts")
        stored = as_stored(stored, "result of many texts")
        failures, unreached = stored.get("failures"), stored.get("unreached")
        return cls(
            results=tuple(result_from_dict(result) for result in stored["results"].items()),
            failures=() if failures is None else tuple(map(Failure.from_dict, failures.items())),
            unreached=0 if unreached is None else unreached.whole(),
        )

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def to_text(self, full: bool = False) -> str:
        """What ``print`` shows; with ``full`` also each text."""
        return draw("many_text", self, full=full)

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("many_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def to_pandas(self, table: Literal["units", "methods", "counts"] = "units") -> Any:
        """A pandas.DataFrame with a row for each text, method and unit.

        ``table="methods"`` has a row for each text and method. ``table="counts"`` has what
        ``tallies`` gives: a row for each method over all texts.
        """
        return draw("result_frame", self, table)

    def to_frame(self, table: Literal["units", "methods", "counts"] = "units") -> Any:
        """The same as ``to_pandas``."""
        return self.to_pandas(table)

    def to_arrow(self, table: Literal["units", "methods", "counts"] = "units") -> Any:
        """The same as a pyarrow.Table: all digits, and null for what is not known."""
        return draw("result_arrow", self, table)

    def to_csv(
        self,
        path: str | Path | None = None,
        table: Literal["units", "methods", "counts"] = "units",
        *,
        safe: bool = True,
    ) -> str:
        """The same as CSV; also written to ``path`` when one is given.

        A word that a spreadsheet would take for a formula gets an apostrophe in front, unless
        ``safe=False``.
        """
        content = draw("result_csv", self, table, safe)
        if path is not None:
            write_text(path, content)
        return content

    def to_latex(self) -> str:
        """A table for a paper: a row for each method, its verdicts over the texts beside chance."""
        return draw("many_latex", self)

    def to_markdown(self) -> str:
        """The same table in Markdown."""
        return draw("result_markdown", self)

    def __repr__(self) -> str:
        methods = ", ".join(tally.method for tally in self.tallies())
        return visible(f"Many({len(self)} texts; {methods})")

    def _repr_html_(self) -> str:
        return render("many_fragment", self)

    def __str__(self) -> str:
        return render("many_text", self)


def attributions_of(result: Result) -> Mapping[str, Attribution]:
    """The attributions of one text by method."""
    if isinstance(result, Attribution):
        return {result.method: result}
    return result.attributions


def result_from_dict(stored: Mapping[str, Any] | Stored) -> Result:
    """An attribution or a comparison, whichever it is."""
    stored = as_stored(stored, "result")
    kind = stored.get("kind")
    if kind is None or kind.value == "attribution":
        return Attribution.from_dict(stored)
    if kind.value == "comparison":
        return Comparison.from_dict(stored)
    raise kind.wrong(f"among the results of many texts there is no attribution but {kind.shown}")


def _stored(result: Any) -> Any:
    return result.to_dict() if isinstance(result, (Attribution, Comparison)) else None


def _distinct(results: Sequence[Result]) -> list[Result]:
    """The first result of every text: twice the same text is no second piece of evidence."""
    first: dict[Any, Result] = {}
    for place, result in enumerate(results):
        passage = next(iter(attributions_of(result).values())).passage
        key: Any = place
        if passage is not None:
            key = (passage.text, passage.pair, passage.input_key)
        first.setdefault(key, result)
    return list(first.values())


def _row(result: Result) -> Row:
    every = list(attributions_of(result).values())
    # a control is no method whose verdict would count
    explaining = [attribution for attribution in every if attribution.method != CONTROL]
    counted = _verdicts(explaining)
    label, probability = None, None
    if every[0].prediction:
        label, probability = max(every[0].prediction.items(), key=lambda entry: entry[1])
    passage = every[0].passage
    return Row(
        text="" if passage is None else passage.text,
        pair=None if passage is None else passage.pair,
        label=label,
        probability=probability,
        better=counted[Verdict.BETTER],
        same=counted[Verdict.SAME],
        worse=counted[Verdict.WORSE],
        unjudged=len(explaining) - sum(counted.values()),
        holding=every[0].labels_that_hold,
    )


def _verdicts(every: Sequence[Attribution]) -> dict[Verdict, int]:
    """How often which verdict, by random rankings; a method's own check is another measure."""
    counted = dict.fromkeys(Verdict, 0)
    for attribution in every:
        evidence = attribution.evidence
        if evidence is None or evidence.measure != CURVES or evidence.verdict is None:
            continue
        counted[evidence.verdict] += 1
    return counted


def _tally(method: str, every: Sequence[Attribution]) -> Tally:
    shares = []
    for attribution in every:
        evidence = attribution.evidence
        if evidence is None or evidence.measure != CURVES or evidence.value is None:
            continue
        shares.append(evidence.value)
    return tally_of(method, len(every), _verdicts(every), shares)


def tally_of(
    method: str, texts: int, counted: Mapping[Verdict, int], shares: Sequence[float]
) -> Tally:
    """Counts of verdicts, and shares of random rankings that were beaten, beside chance."""
    judged = sum(counted.values())
    better = counted[Verdict.BETTER]
    return Tally(
        method=method,
        texts=texts,
        better=better,
        same=counted[Verdict.SAME],
        worse=counted[Verdict.WORSE],
        by_chance=LEVEL * judged,
        chance_range=by_chance(judged),
        p=binomial_tail(judged, better, LEVEL) if judged else None,
        beaten=float(np.mean(shares)) if shares else None,
        interval=_interval(shares),
    )


def most_by_chance(texts: int) -> int:
    """On how many of so many texts chance finds something, at most, in 95 % of all cases.

    Each has one chance in twenty. One text in twenty is the mean, and it is often more.

    >>> most_by_chance(20), most_by_chance(1), most_by_chance(0)
    (3, 0, 0)
    """
    from scipy.special import bdtr

    up_to = bdtr(np.arange(texts + 1), texts, LEVEL)  # the chance of at most so many
    return min(int(np.searchsorted(up_to, 1 - LEVEL - ROUNDING)), texts)


def by_chance(judged: int) -> tuple[int, int]:
    """On how many of so many texts a random ranking is called better, in 95 % of all cases.

    >>> by_chance(20), by_chance(0)
    ((0, 3), (0, 0))
    """
    from scipy.special import bdtr

    up_to = bdtr(np.arange(judged + 1), judged, LEVEL)  # the chance of at most so many
    low = int(np.searchsorted(up_to, TAIL))
    high = int(np.searchsorted(up_to, 1 - TAIL))
    return low, min(high, judged)


def _interval(shares: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of a mean over texts, within what a share can be."""
    from scipy.special import stdtrit

    count = len(shares)
    if count < 2:
        return None
    mean = float(np.mean(shares))
    error = float(np.std(shares, ddof=1) / np.sqrt(count))
    half = float(stdtrit(count - 1, 1 - TAIL)) * error
    return max(0.0, mean - half), min(1.0, mean + half)
