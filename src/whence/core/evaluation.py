"""An Evaluation: methods × metrics over many texts, with intervals and the random control.

``explaining/stored_trials.py`` makes it of what a run has measured; the views draw it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.attribution import check_schema
from whence.core.bootstrap import DRAWS, FEWEST_TEXTS, Mean, groups, means, told_apart, within
from whence.core.errors import InputError, unknown_name
from whence.core.evidence import Verdict
from whence.core.gauge import Gauge
from whence.core.many import Failure
from whence.core.planted import PlantedTruth
from whence.core.registry import Better, metrics, settings_dict, settings_of
from whence.core.render import draw, render
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_json, written

SCHEMA = 1
SAME = 1e-9  # means that differ by less are equal but for rounding
MOST_FAILURES = 100  # that a table names; the store has all
SEED = "seed"  # a setting of metrics that is the evaluation's own
RANDOM = "random"  # the method that is the control, and has a row of its own anyway


@dataclass(frozen=True)
class Cell:
    """One method by one metric, over the texts.

    ``control`` is what permuted copies of the same scores get, and ``beaten`` the mean share of
    these that the method does better than (a half is chance). ``verdict`` judges all methods of
    the column together against their controls; None where there are too few texts. Methods that
    share a letter of ``group`` cannot be told apart; "a" is the best group. ``built_in`` marks a
    method that was made by the very removal it is judged by.
    """

    method: str
    mean: float
    interval: tuple[float, float] | None
    texts: int
    control: float | None = None
    beaten: float | None = None
    verdict: Verdict | None = None
    group: str = ""
    built_in: bool = False


@dataclass(frozen=True)
class Column:
    """One metric, under one removal if it has any, for every method; the random control beside."""

    metric: str
    version: int
    settings: Mapping[str, Any]
    better: Better
    kind: str  # what it asks: "faithfulness", "gold", "again" or "form"
    removal: str  # "" for a metric that removes nothing
    random: Cell
    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        if not self.metric:
            raise InputError("a column is of a metric, and this one has no name.")

    @property
    def changed(self) -> str:
        """The settings that are not the usual ones, as they are typed: "by=vsi, seeds=3"."""
        info = metrics().get(self.metric)
        if info is None or info.version != self.version:  # nobody here knows what is usual
            return ""
        usual = settings_dict(settings_of(info, {}))
        given = {name: value for name, value in self.settings.items() if name != SEED}
        return ", ".join(
            f"{name}={value}" for name, value in given.items() if usual.get(name) != value
        )

    @property
    def label(self) -> str:
        """The metric, with the settings that are not the usual ones."""
        return f"{self.metric}[{self.changed}]" if self.changed else self.metric

    @property
    def name(self) -> str:
        """The same, and the removal where it has one."""
        return f"{self.label} ({self.removal})" if self.removal else self.label

    @property
    def arrow(self) -> str:
        """Which way is good."""
        return "↑" if self.better == "higher" else "↓"

    @property
    def texts(self) -> tuple[int, int]:
        """On how many texts its cells were measured: the fewest, and the most; 0 for none."""
        counts = [cell.texts for cell in self.cells if cell.texts]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def is_idle(self) -> bool:
        """Whether every method and every random ranking has the same value: it tells nothing."""
        if not self.cells or not self.random.texts:
            return False
        values = [self.random.mean]
        for cell in self.cells:
            values += [cell.mean] if cell.control is None else [cell.mean, cell.control]
        return max(values) - min(values) <= SAME * max(1.0, *map(abs, values))

    @property
    def best(self) -> Cell | None:
        """The method with the best mean; the control is none."""
        measured = [cell for cell in self.cells if cell.texts and cell.method != RANDOM]
        if not measured:
            return None
        sign = 1 if self.better == "higher" else -1
        return max(measured, key=lambda cell: sign * cell.mean)

    @property
    def leaders(self) -> tuple[str, ...]:
        """All methods with the best mean, but for rounding."""
        best = self.best
        if best is None:
            return ()
        near = SAME * max(1.0, abs(best.mean))
        measured = [cell for cell in self.cells if cell.texts and cell.method != RANDOM]
        return tuple(cell.method for cell in measured if abs(cell.mean - best.mean) <= near)

    def cell(self, method: str) -> Cell | None:
        """The cell of a method; None where it was not measured."""
        return next((cell for cell in self.cells if cell.method == method), None)


@dataclass(frozen=True)
class MeanCurves:
    """The target while words leave the text, and while they enter an empty one: means over texts.

    ``method`` is empty for random rankings. The curves have equal steps, from no word to all.
    ``texts`` counts those that they are means of; None in tables of before.
    """

    method: str
    removal: str
    deletion: tuple[float, ...]
    insertion: tuple[float, ...]
    texts: int | None = None

    def __post_init__(self) -> None:
        if len(self.deletion) != len(self.insertion) or len(self.deletion) < 2:
            raise InputError(
                f"two curves have the same steps, at least two, not {len(self.deletion)} and "
                f"{len(self.insertion)}."
            )


@dataclass(frozen=True)
class Disagreement:
    """A metric by which the removals have different winners, and whether these are told apart."""

    metric: str
    winners: tuple[tuple[str, str], ...]  # removal, method; all that are equally good
    # whether every winner lies outside the best group under some other removal
    is_clear: bool


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A table of methods × metrics, and what it rests on.

    ``failed`` texts gave nothing; ``failures`` says where the first hundred of them stand, and why.

    >>> table = whence.evaluate(model, "reviews.csv")           # doctest: +SKIP
    >>> table.column("comprehensiveness", "mask").best.method   # doctest: +SKIP
    """

    model: str
    data: str
    texts: int
    failed: int
    seed: int
    methods: tuple[str, ...]
    columns: tuple[Column, ...]
    curves: tuple[MeanCurves, ...] = ()
    gauges: tuple[Gauge, ...] = ()
    planted: PlantedTruth | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    forwards: int = 0
    failures: tuple[Failure, ...] = ()

    def column(self, metric: str, removal: str = "") -> Column:
        """The column of a metric; of a metric under several removals, name the removal."""
        for column in self.columns:
            if column.metric == metric and removal in ("", column.removal):
                return column
        raise unknown_name("metric in this table", metric, [c.name for c in self.columns])

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def removals(self) -> tuple[str, ...]:
        """The removals, in the order of the table."""
        return tuple(dict.fromkeys(c.removal for c in self.columns if c.removal))

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """The metrics by which removals have different winners."""
        found = []
        # by its label: two settings of a metric are two questions
        for label in dict.fromkeys(column.label for column in self.columns):
            columns = [c for c in self.columns if c.label == label and c.removal and c.best]
            columns = [c for c in columns if not c.is_idle]
            # of several that are equally good all are named, and one of them may lead everywhere
            winners = [(c.removal, method) for c in columns for method in c.leaders]
            leaders = [set(column.leaders) for column in columns]
            if leaders and not set.intersection(*leaders):
                found.append(Disagreement(label, tuple(winners), _are_clear(columns)))
        return tuple(found)

    def holding(self, kind: str = "faithfulness") -> list[str]:
        """The methods that beat their control by every metric of a kind, under every removal.

        A metric that gives everything the same value is left out.
        """
        columns = [c for c in self.columns if c.kind == kind and not c.is_idle]
        return [m for m in self.methods if m != RANDOM and _beats_all(m, columns)]

    def records(self) -> list[dict[str, Any]]:
        """One row for each method and column, ready for ``pandas.DataFrame``."""
        rows = []
        for column in self.columns:
            for cell in (*column.cells, column.random):
                low, high = cell.interval or (None, None)
                rows.append(
                    {
                        "metric": column.metric,
                        "settings": column.changed,
                        "removal": column.removal,
                        "better": column.better,
                        "kind": column.kind,
                        "method": cell.method or "(random rankings)",
                        "mean": cell.mean if cell.texts else None,
                        "low": low,
                        "high": high,
                        "texts": cell.texts,
                        "control": cell.control,
                        "beaten": cell.beaten,
                        "verdict": None if cell.verdict is None else str(cell.verdict),
                        "group": cell.group,
                        "built_in": cell.built_in,
                    }
                )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the answer first; ``from_dict`` gives them back."""
        stored = {name: getattr(self, name) for name in self.__dataclass_fields__}
        stored["columns"] = [_plain(asdict(column)) for column in self.columns]
        stored["curves"] = [asdict(one) for one in self.curves]
        stored["gauges"] = [gauge.to_dict() for gauge in self.gauges]
        stored["planted"] = None if self.planted is None else self.planted.to_dict()
        stored["skipped"] = dict(self.skipped)
        stored["methods"] = list(self.methods)
        stored["notes"] = list(self.notes)
        stored["failures"] = [asdict(failure) for failure in self.failures]
        about = {"schema": SCHEMA, "kind": "evaluation"}
        return about | {"answer": draw("evaluation_sentences", self)} | stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Evaluation:
        """What ``to_dict`` gave."""
        check_schema(stored, "evaluation")
        stored = as_stored(stored, "evaluation")
        planted = stored["planted"].given()
        curves = tuple(one.record(MeanCurves) for one in stored["curves"].items())
        if len({len(one.deletion) for one in curves}) > 1:
            raise stored["curves"].wrong("expected curves of the same steps")
        failures = stored.get("failures")  # tables of before have none
        return cls(
            model=stored["model"].text(),
            data=stored["data"].text(),
            texts=stored["texts"].whole(),
            failed=stored["failed"].whole(),
            seed=stored["seed"].whole(),
            methods=tuple(name.text() for name in stored["methods"].items()),
            columns=tuple(column.record(Column) for column in stored["columns"].items()),
            curves=curves,
            gauges=tuple(gauge.record(Gauge) for gauge in stored["gauges"].items()),
            planted=None if planted is None else PlantedTruth.from_dict(planted),
            skipped={name: why.text() for name, why in stored["skipped"].entries().items()},
            notes=stored["notes"].texts(),
            forwards=stored["forwards"].whole(),
            failures=() if failures is None else tuple(map(Failure.from_dict, failures.items())),
        )

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def __str__(self) -> str:
        return draw("evaluation_text", self)

    def __repr__(self) -> str:
        return (
            f"Evaluation({self.model!r}: {len(self.methods)} methods × {len(self.columns)} "
            f"columns on {self.texts:,} texts)"
        )

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        return written(render("evaluation_page", self), path)

    def _repr_html_(self) -> str:
        return render("evaluation_fragment", self)

    def to_csv(self, path: str | Path | None = None) -> str:
        """All cells, one in a line, with all their digits; also written to ``path``."""
        rows = self.records()
        return written(draw("records_csv", list(rows[0]) if rows else [], rows, True), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The table for a paper that uses the package booktabs; also written to ``path``."""
        return written(draw("evaluation_latex", self), path)

    def to_parquet(self, path: str | Path) -> Path:
        """The same as a Parquet file."""
        return draw("evaluation_parquet", self, path)

    def to_frame(self) -> Any:
        """The records as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.records())


def _plain(column: dict[str, Any]) -> dict[str, Any]:
    for cell in (column["random"], *column["cells"]):
        if cell["verdict"] is not None:
            cell["verdict"] = str(cell["verdict"])
    column["settings"] = dict(column["settings"])
    return column


def _are_clear(columns: Sequence[Column]) -> bool:
    """Whether no winner of one removal may be the best under all the others.

    It may be where it is in the best group, and where nobody can tell: without a letter.
    """
    winners = {method for column in columns for method in column.leaders}
    return not any(all(_may_be_best(winner, column) for column in columns) for winner in winners)


def _may_be_best(method: str, column: Column) -> bool:
    cell = column.cell(method)
    return cell is None or not cell.group or "a" in cell.group


def _beats_all(method: str, columns: Sequence[Column]) -> bool:
    cells = [column.cell(method) for column in columns]
    measured = [cell for cell in cells if cell is not None and cell.verdict is not None]
    return bool(measured) and all(cell.verdict is Verdict.BETTER for cell in measured)


# ---------------------------------------------------------------------- from values of texts


@dataclass(frozen=True, eq=False)
class Measured:
    """What one metric gave every method on every text; NaN where it was not measured.

    ``control`` and ``beaten`` are NaN where there was no control. ``range`` is what the metric can
    be on these texts: no interval reaches beyond. ``spread`` is the standard deviation of
    own - control where the method's scores are one more random copy; None where nobody kept it.
    """

    metric: str
    version: int
    settings: Mapping[str, Any]
    better: Better
    kind: str
    removal: str
    own: Float[np.ndarray, "text method"]
    random: Float[np.ndarray, " text"]
    control: Float[np.ndarray, "text method"]
    beaten: Float[np.ndarray, "text method"]
    built_in: frozenset[str] = frozenset()
    range: tuple[float, float] = (-inf, inf)
    spread: Float[np.ndarray, "text method"] | None = None


def column_of(measured: Measured, methods: Sequence[str], seed: int = 0) -> Column:
    """The column of a metric: means, intervals, groups, and verdicts against the control.

    >>> rng = np.random.default_rng(0)
    >>> own = rng.normal(size=(40, 2)) + [0, 2]
    >>> none = np.zeros((40, 2))
    >>> m = Measured("it", 1, {}, "higher", "faithfulness", "", own, none[:, 0], none, none + 0.5)
    >>> [str(cell.verdict) for cell in column_of(m, ["first", "second"]).cells]
    ['not separable from random', 'better than random']
    """
    own = measured.own
    of_methods = means(own, seed)
    letters = groups(own, measured.better == "higher", seed)
    verdicts = _verdicts(measured, seed)
    cells = []
    for number, method in enumerate(methods):
        if not of_methods[number].texts:
            continue
        cells.append(
            Cell(
                method=method,
                mean=of_methods[number].mean,
                interval=_interval(of_methods[number], own[:, number], measured.range),
                texts=of_methods[number].texts,
                control=_mean_or_none(measured.control[:, number]),
                beaten=_mean_or_none(measured.beaten[:, number]),
                verdict=verdicts[number],
                group=letters[number],
                built_in=method in measured.built_in,
            )
        )
    random = means(measured.random[:, None], seed)[0]
    return Column(
        metric=measured.metric,
        version=measured.version,
        settings=dict(measured.settings),
        better=measured.better,
        kind=measured.kind,
        removal=measured.removal,
        random=_random_cell(random, measured),
        cells=tuple(cells),
    )


def _random_cell(random: Mean, measured: Measured) -> Cell:
    """A control that was measured nowhere is told by its texts: JSON knows no mean of nothing."""
    interval = _interval(random, measured.random, measured.range)
    return Cell("", random.mean if random.texts else 0.0, interval, random.texts)


def _interval(
    mean: Mean, values: Float[np.ndarray, " text"], possible: tuple[float, float]
) -> tuple[float, float] | None:
    """None where all texts have one value: no draw of them says how often another one comes."""
    finite = values[np.isfinite(values)]
    if len(finite) and np.ptp(finite) <= SAME * max(1.0, float(np.abs(finite).max())):
        return None
    return within(mean.interval, possible)


def _mean_or_none(values: Float[np.ndarray, " text"]) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def _verdicts(measured: Measured, seed: int, draws: int = DRAWS) -> list[Verdict | None]:
    """Each method against its control, text by text; all methods are judged together."""
    sign = 1 if measured.better == "higher" else -1
    ahead = sign * (measured.own - measured.control)
    scale = float(np.abs(np.nan_to_num(measured.control)).max(initial=0.0))
    apart = told_apart(ahead, seed, draws, scale, _least_errors(measured))
    verdicts: list[Verdict | None] = []
    for method, is_apart in enumerate(apart):
        measured_on = ahead[np.isfinite(ahead[:, method]), method]
        if len(measured_on) < FEWEST_TEXTS:
            verdicts.append(None)
        elif not is_apart:
            verdicts.append(Verdict.SAME)
        else:
            verdicts.append(Verdict.BETTER if measured_on.mean() > 0 else Verdict.WORSE)
    return verdicts


def _least_errors(measured: Measured) -> Float[np.ndarray, " method"]:
    """Where most texts give a method one value, its error is at least that of random scores.

    Ten values of 0 hardly vary, whatever the truth is: a random ranking finds one gold word of ten
    on no text of ten in every third case. Where the spread of random scores was not kept, nothing
    is told apart.
    """
    least = np.zeros(measured.own.shape[1])
    for method, own in enumerate(measured.own.T):
        judged = np.isfinite(own) & np.isfinite(measured.control[:, method])
        if not _is_mostly_one_value(own[judged]):
            continue
        if measured.spread is None:
            least[method] = inf
            continue
        spread = measured.spread[judged, method]
        error = float(np.sqrt((spread**2).sum()) / len(spread))
        least[method] = error if isfinite(error) else inf
    return least


def _is_mostly_one_value(values: Float[np.ndarray, " text"]) -> bool:
    """Whether half of the texts, or more, have the same value; not asked of too few texts."""
    if len(values) < FEWEST_TEXTS:
        return False
    nearest = SAME * max(1.0, float(np.abs(values).max()))
    _, counts = np.unique(np.round(values / nearest), return_counts=True)
    return 2 * int(counts.max()) >= len(values)
