"""An Attribution: scores over units, which never travel alone.

It carries its target, method, settings, cost, error and evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from whence.core.errors import InputError, LoadError
from whence.core.evidence import Evidence
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.provenance import Provenance
from whence.core.render import draw, render
from whence.core.scores import ZERO_BY_CONSTRUCTION
from whence.core.showing import visible
from whence.core.stored import LARGEST, Stored, as_stored
from whence.core.target import Reading, Target
from whence.core.units import UnitKind, Units
from whence.core.writing import write_json, write_text

HOLDS = 0.5  # from this probability on a label holds, where each has its own yes or no
# What a model says of which no label holds; it is counted beside the labels. Said where each label
# has its own yes or no, and none reaches one half.
NO_LABEL = "none of its labels"
ROUNDING = 1e-6  # by which a probability may be above one
SURELY_MORE = 1e-3  # than one, which is no rounding: the labels are not one distribution
SCHEMA = 2  # the newest that is read; what schema 1 can say is still written as schema 1


@dataclass(frozen=True)
class Cost:
    """What a result cost. A pass is one sequence through the model, however many shared a batch.

    ``shared`` tells that the passes were paid once for several methods or targets.
    ``peak_bytes`` is by how much memory rose, at its peak, above what was in use when the run
    began; None where that is not known, as the process had once held more.
    """

    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    peak_bytes: int | None = None
    shared: bool = False
    saved: int = 0  # passes that a game's memory made unnecessary


@dataclass(frozen=True)
class Window:
    """A part of a text that was too long for the model: its units, and the target's value there.

    The target of the whole is the mean over the windows. ``end`` is the first unit of the next.
    """

    start: int
    end: int
    value: float


@dataclass(frozen=True, eq=False)
class Error:
    """How far the scores may be off.

    A standard error per unit, and the completeness gap relative to the change to be explained.
    """

    standard_error: Float[np.ndarray, " unit"] | None = None
    completeness_gap: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.standard_error is not None:
            spread = np.array(self.standard_error, dtype=np.float64)
            spread.flags.writeable = False
            object.__setattr__(self, "standard_error", spread)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        spread = None if self.standard_error is None else self.standard_error.tolist()
        return {
            "standard_error": spread,
            "completeness_gap": self.completeness_gap,
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Error:
        """What ``to_dict`` gave."""
        stored = as_stored(stored, "error")
        spread = stored["standard_error"].given()
        gap = stored["completeness_gap"].given()
        return cls(
            None if spread is None else spread.numbers(),
            None if gap is None else gap.number(),
            stored["note"].text(),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Attribution:
    """One score per unit of a passage, and everything that is needed to judge it.

    >>> a.scores, a.units                          # doctest: +SKIP
    >>> print(a)                                   # doctest: +SKIP
    >>> a.save("a.json"); whence.read("a.json")    # doctest: +SKIP
    """

    passage: Passage | None  # None where the units are no pieces of an input: features
    scores: Float[np.ndarray, " unit"]
    target: Target
    value: float  # of the target, on the unperturbed input
    method: str
    version: int
    settings: Mapping[str, Any]
    seed: int | None
    signed: bool
    cost: Cost
    provenance: Provenance
    error: Error | None = None
    evidence: Evidence | None = None
    # the leading labels with their probabilities
    prediction: Mapping[str, float] = field(default_factory=dict)
    # what a method gave beside scores: an anchor with its precision
    detail: Mapping[str, Any] | None = None
    # the consecutive parts that the model read one by one; none for a text that fits the model
    windows: tuple[Window, ...] = ()
    # what was made smaller to keep the cost within bounds; None if nothing was
    plan: Plan | None = None
    # the task says that each label has its own yes or no (files of before do not tell)
    several_labels: bool = False
    # what it says is a token of a vocabulary: words, and no name of a class (the same)
    says_tokens: bool = False
    # those of the passage, unless others are given
    units: Units = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.units is None:
            if self.passage is None:
                raise InputError("an attribution needs units: those of a passage, or its own.")
            object.__setattr__(self, "units", self.passage.units)
        scores = np.array(self.scores, dtype=np.float64)
        if scores.shape != (len(self.units),):
            raise InputError(f"{scores.size} scores for {len(self.units)} units.")
        if not np.isfinite(scores).all():
            raise InputError(
                f"method {self.method!r} gave a score that is not finite: {scores.tolist()}."
            )
        spread = None if self.error is None else self.error.standard_error
        if spread is not None and spread.shape != scores.shape:
            raise InputError(f"{spread.size} standard errors for {scores.size} scores.")
        scores.flags.writeable = False
        object.__setattr__(self, "scores", scores)
        _check_windows(self.windows, len(scores))

    @property
    def names(self) -> tuple[str, ...]:
        """The units, trimmed for tables and figures."""
        return self.units.names

    @property
    def labels_are_quoted(self) -> bool:
        """Whether the labels are words: tokens, or answers and choices of the second text."""
        if self.says_tokens or (self.passage is not None and self.passage.written is not None):
            return True
        if self.passage is None or not self.passage.pair or not self.prediction:
            return False
        plain = [re.sub(r" \(\d+\)$", "", name) for name in self.prediction]
        return sum(name in self.passage.pair for name in plain) >= len(plain) - 1

    @property
    def labels_that_hold(self) -> tuple[str, ...] | None:
        """The labels from one half on, where several may hold or none; None where one must.

        In a file that does not tell, probabilities that sum to more than one show it.
        """
        if not self.several_labels and sum(self.prediction.values()) <= 1 + SURELY_MORE:
            return None
        return tuple(str(name) for name, p in self.prediction.items() if p >= HOLDS)

    @property
    def is_zero_by_construction(self) -> bool:
        """Whether the method found, and noted, that its scores are zero whatever the text is."""
        if self.error is None or self.scores.any():
            return False
        return ZERO_BY_CONSTRUCTION in self.error.note

    def ranking(self) -> np.ndarray:
        """Unit indices, most important first: by size for signed scores, ties in reading order."""
        size = np.abs(self.scores) if self.signed else self.scores
        return np.argsort(-size, kind="stable")

    def top(self, k: int = 5) -> list[tuple[str, float]]:
        """The ``k`` most important units with their scores."""
        return [(self.names[i], float(self.scores[i])) for i in self.ranking()[:k]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribution) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # carries arrays and mappings

    @property
    def answer(self) -> Any:
        """What may be said of it in a few sentences, and nothing beyond the evidence."""
        # found by name: the rules of an answer are about attributions, and stand above them
        return import_module("whence.core.answer").answer({self.method: self})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``from_dict`` gives back an equal Attribution, bit by bit."""
        stored = self.to_dict_without_passage()
        about = {"schema": stored.pop("schema"), "kind": stored.pop("kind")}
        stored = about | {"answer": self.answer.to_dict()} | stored
        if self.passage is not None:
            stored["passage"] = self.passage.to_dict()
        return stored

    def to_dict_without_passage(self) -> dict[str, Any]:
        """The same, for a container that stores the passage once."""
        stored = {
            "schema": 1,
            "kind": "attribution",
            "units": list(self.units),  # for readers without whence; a passage has them too
            "scores": self.scores.tolist(),
            "target": self.target.to_dict(),
            "value": self.value,
            "method": self.method,
            "version": self.version,
            "settings": _plain(self.settings),
            "seed": self.seed,
            "signed": self.signed,
            "prediction": dict(self.prediction),
            "cost": asdict(self.cost),
            "error": self.error.to_dict() if self.error else None,
            "evidence": None if self.evidence is None else self.evidence.to_dict(),
            "detail": _plain(self.detail),
            "provenance": self.provenance.to_dict(),
        }
        if self.several_labels:
            stored["several_labels"] = True
        if self.says_tokens:
            stored["says_tokens"] = True
        if self.windows:
            stored["windows"] = [asdict(window) for window in self.windows]
        if self.plan is not None:
            stored["plan"] = self.plan.to_dict()
        if self.passage is None:
            stored |= {"schema": SCHEMA, "own_units": self.units.to_dict()}
        return stored

    @classmethod
    def from_dict(
        cls, stored: Mapping[str, Any] | Stored, passage: Passage | None = None
    ) -> Attribution:
        """What ``to_dict`` gave, of this schema or an older one.

        ``passage`` is the one that a container stored once for several attributions.
        """
        check_schema(stored, "attribution")
        stored = as_stored(stored, "attribution")
        own_units = stored.get("own_units")
        if own_units is not None:
            passage, units = None, Units.from_dict(own_units)
        else:
            passage = passage or Passage.from_dict(stored["passage"])
            units = passage.units
        seed, error = stored["seed"].given(), stored["error"].given()
        evidence, detail = stored["evidence"].given(), stored.get("detail")
        windows, plan = stored.get("windows"), stored.get("plan")
        several_labels, says_tokens = stored.get("several_labels"), stored.get("says_tokens")
        read = {
            "passage": passage,
            "units": units,
            "scores": stored["scores"].numbers(len(units)),
            "target": stored["target"].record(Target),
            "value": stored["value"].number(),
            "method": stored["method"].name(),
            "version": stored["version"].whole(),
            "settings": stored["settings"].plain_record(),
            "seed": None if seed is None else seed.whole(least=-LARGEST),
            "signed": stored["signed"].flag(),
            "cost": stored["cost"].record(Cost),
            "provenance": stored["provenance"].record(Provenance),
            "error": None if error is None else Error.from_dict(error),
            "evidence": None if evidence is None else Evidence.from_dict(evidence),
            "prediction": _read_prediction(stored["prediction"]),
            "detail": None if detail is None else _read_detail(detail),
            "windows": () if windows is None else _read_windows(windows),
            "plan": None if plan is None else Plan.from_dict(plan),
            "several_labels": several_labels is not None and several_labels.flag(),
            "says_tokens": says_tokens is not None and says_tokens.flag(),
        }
        return stored.made(lambda: cls(**read))

    @classmethod
    def from_scores(
        cls,
        model: Any,
        text: Any,
        scores: Any,
        *,
        method: str | None = None,
        target: Target | str | int | tuple[str | int, str | int] | None = None,
        read: Reading | None = None,
        units: UnitKind | Sequence[int] = "word",
        tokens: Sequence[str] | None = None,
        spans: Sequence[Sequence[int]] | None = None,
        merge: str = "sum",
        signed: bool = True,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
        standard_error: Any = None,
    ) -> Attribution:
        """Scores that another tool made, laid on the units of ``text`` (or of a Passage).

        One forward pass reads the target. ``scores`` may be

        - a lime or shap explanation of the text; what it tells by itself (method, label, reading)
          may be left out;
        - a tensor of captum's, or any numbers: one for each unit, for each token (with or without
          the special ones, merged by the rule ``merge``), for each of ``tokens`` (pieces in reading
          order) or of ``spans`` ((start, end) in characters);
        - words with their scores, of which every occurrence gets its word's.

        A piece over several units is split among them by its characters; several pieces in a unit
        add up; units without a score get 0. ``signed`` says whether a score below zero speaks
        against the target; ``standard_error`` is one for each unit.

        >>> import whence
        >>> model = whence.load("sentiment")
        >>> scores = [0.1, 0.9, -0.4]
        >>> a = Attribution.from_scores(
        ...     model, "It isn't bad", scores, method="by hand", target="positive"
        ... )
        >>> a.top(1), a.target.describe()
        ([("isn't", 0.9)], 'logit of positive')
        """
        # found by name: the package of other tools' scores stands above core
        foreign = import_module("whence.foreign.scores")
        given = foreign.ForeignScores(
            scores,
            method=method,
            tokens=tokens,
            spans=spans,
            merge=merge,
            signed=signed,
            settings=settings or {},
            seed=seed,
            standard_error=standard_error,
        )
        return foreign.attribution_of(model, text, given, target=target, read=read, units=units)

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def to_text(self, full: bool = False) -> str:
        """What ``print`` shows; with ``full`` also every score, cost and note."""
        return draw("attribution_text", self, full=full)

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("attribution_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def to_pandas(self, table: Literal["units", "methods"] = "units") -> Any:
        """A pandas.DataFrame with a row for each unit, or with one row for the method.

        The latter is ``table="methods"``. Both have verdict, p, the share of random rankings
        beaten, cost and error of the method; a unit's row has its score and standard error too.
        """
        return draw("result_frame", self, table)

    def to_frame(self, table: Literal["units", "methods"] = "units") -> Any:
        """The same as ``to_pandas``."""
        return self.to_pandas(table)

    def to_arrow(self, table: Literal["units", "methods"] = "units") -> Any:
        """The same as a pyarrow.Table: all digits, and null for what is not known."""
        return draw("result_arrow", self, table)

    def to_csv(
        self,
        path: str | Path | None = None,
        table: Literal["units", "methods"] = "units",
        *,
        safe: bool = True,
    ) -> str:
        """The same as CSV, in which all numbers keep all their digits; also written to ``path``.

        A word that a spreadsheet would take for a formula gets an apostrophe in front, unless
        ``safe=False``.
        """
        content = draw("result_csv", self, table, safe)
        if path is not None:
            write_text(path, content)
        return content

    def to_latex(self, part: Literal["text", "methods", "units"] | None = None) -> str:
        """The coloured text, and a table with the verdict, cost and error, for a paper.

        The paper uses the packages booktabs and xcolor. What is explained, and how, stands in
        comments. ``part`` asks for one alone: ``"text"``, ``"methods"``, or ``"units"``, a table
        with a row for each unit.
        """
        return draw("result_latex", self, part)

    def to_markdown(self, table: Literal["units", "methods"] = "units") -> str:
        """A table in Markdown: a row for each unit with its score by each method.

        With ``table="methods"`` a row for each method: its verdict, cost and error.
        """
        return draw("result_markdown", self, table)

    def plot(self, ax: Any = None, top: int | None = None) -> Any:
        """A bar for each unit, or for the ``top`` strongest; of an image, heat over the picture.

        matplotlib's Axes in and out.
        """
        return draw("plot_attribution", self, ax=ax, top=top)

    def plot_evidence(self, ax: Any = None, removal: str | None = None) -> Any:
        """Deletion and insertion curves beside random rankings, of one removal.

        It is the first removal, unless one is named. matplotlib's Axes in and out.
        """
        return draw("plot_evidence", self, ax=ax, removal=removal)

    def __repr__(self) -> str:
        form = "+.3g" if self.signed else ".3g"
        top = ", ".join(f"{name!r} {score:{form}}" for name, score in self.top(3))
        return visible(
            f"Attribution({self.method!r}, {self.target.describe()} = {self.value:.4g}, "
            f"{len(self.units)} units: {top} …)"
        )

    def _repr_html_(self) -> str:
        return render("attribution_fragment", self)

    def __str__(self) -> str:
        return render("attribution_text", self)


def check_schema(stored: Any, kind: str) -> None:
    """Raise where this is no such result, or one of a newer whence."""
    stored = as_stored(stored, kind)
    where = f"{stored.path}: " if stored.path else ""
    schema = stored.value.get("schema") if isinstance(stored.value, Mapping) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise LoadError(
            f"{stored.source}: {where}this is not a whence {kind}: it has no 'schema' number."
        )
    if schema > SCHEMA:
        number = schema if schema < LARGEST else "beyond all numbers"
        raise LoadError(
            f"{stored.source}: {where}this {kind} has schema {number}; "
            f"this whence reads up to {SCHEMA}. Update whence to read it."
        )


def _read_prediction(stored: Stored) -> dict[str, float]:
    """Labels with their probabilities."""
    return {label: chance.number(0.0, 1.0 + ROUNDING) for label, chance in stored.entries().items()}


def _read_windows(stored: Stored) -> tuple[Window, ...]:
    return tuple(window.record(Window) for window in stored.items())


def _read_detail(stored: Stored) -> dict[str, Any]:
    """Plain values, whatever a method told; those that views know by name are what they must be."""
    shares = ("precision", "coverage", "threshold")
    for name, entry in stored.entries().items():
        if entry.value is None:
            continue
        if name in shares:
            entry.number(0.0, 1.0)
        elif name in ("samples", "distinct"):
            entry.whole()
        elif name == "r2":
            entry.number()
        elif name == "anchor":
            entry.wholes(least=0)
        elif name == "interval":
            entry.interval()
    holds = stored.get("holds")
    if holds is not None and holds.plain() and stored.get("anchor") is not None:
        exact = stored.get("exact")
        needed = stored["precision" if exact is not None and exact.value else "interval"]
        if needed.value is None:
            raise needed.expected("what is said of the anchor")
    return stored.plain_record()


def windows_of(sizes: Sequence[int], values: Sequence[float]) -> tuple[Window, ...]:
    """The windows of a text, from the number of units and the target's value in each.

    A text that fits the model is one part, and no window.

    >>> windows_of([3, 2], [0.5, 1.5])
    (Window(start=0, end=3, value=0.5), Window(start=3, end=5, value=1.5))
    """
    if len(sizes) == 1:
        return ()
    windows = []
    start = 0
    for size, value in zip(sizes, values, strict=True):
        end = start + size
        windows.append(Window(start, end, float(value)))
        start = end
    return tuple(windows)


def _check_windows(windows: Sequence[Window], units: int) -> None:
    """Raise unless the windows are all units, one after the other."""
    if not windows:
        return
    starts = [0, *(window.end for window in windows)]
    ends = [*(window.start for window in windows), units]
    if starts != ends:
        ranges = ", ".join(f"{window.start} to {window.end}" for window in windows)
        raise InputError(
            f"windows are consecutive parts of all {units} units, and these are {ranges}."
        )


def _plain(value: Any) -> Any:
    """As JSON will give it back: tuples as lists, numpy's numbers and arrays as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value
