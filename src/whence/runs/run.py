"""A Run: what lies in its place, done or not; and the loop that does what is left."""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whence.core.errors import InputError, LoadError, unknown_name
from whence.core.once import once
from whence.core.render import draw
from whence.core.writing import write_text
from whence.runs.arrow import duckdb
from whence.runs.data import named_row
from whence.runs.engines.inline import inline
from whence.runs.engines.processes import processes
from whence.runs.engines.ray_actors import check_ray, ray_actors
from whence.runs.holding import held
from whence.runs.kept_rows import ROWS, KeptRows
from whence.runs.manifest import NAME, Manifest, has_manifest, read_manifest
from whence.runs.manner import Manner
from whence.runs.parts import (
    PARTS,
    DamagedPart,
    Part,
    checked_bytes,
    failures_in,
    parts_of,
    read_part,
    remove_part,
)
from whence.runs.places import Folder, Place, place_of
from whence.runs.work import Work, found, opened

if TYPE_CHECKING:
    import pyarrow as pa

PLAINLY = Manner()
# by which the rows of a table are sorted, as far as it has these columns
ORDER = ("row", "method", "target", "position")
AT_ONCE = 10_000  # rows of a table that are plain Python at the same time
# told after each part: rows that are done, rows that failed in this session, and all rows
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class State:
    """How far a run is."""

    rows: int
    done: int  # rows, failed ones among them
    failed: int
    parts: int
    parts_done: int
    bytes: int

    @property
    def is_complete(self) -> bool:
        """Whether every part is done."""
        return self.parts_done == self.parts


@dataclass(frozen=True)
class Failed:
    """A row without a result, or a method without one on a row."""

    row: int
    number: int
    id: str
    method: str | None
    kind: str
    message: str

    @property
    def where(self) -> str:
        """The row as it is told."""
        return named_row(self.number, self.id)


@dataclass(frozen=True, repr=False)
class Run:
    """The results of a data set, in a folder or behind a URL.

    >>> run = whence.open_run("runs/reviews")            # doctest: +SKIP
    >>> run.table("scores").to_pandas()                  # doctest: +SKIP
    >>> for attribution in run.attributions(): ...       # doctest: +SKIP
    """

    place: Place
    manifest: Manifest
    parts: Mapping[int, Part] = field(default_factory=dict)

    def __repr__(self) -> str:
        state = self.state
        return f"Run({self.place.name!r}: {state.done:,} of {state.rows:,} rows)"

    @property
    def is_complete(self) -> bool:
        """Whether every part is done."""
        return len(self.parts) == self.manifest.parts

    @once
    def state(self) -> State:
        """How far it is, and how many rows have no result."""
        done = sum(len(self.manifest.rows_of(number)) for number in self.parts)
        failed = sum(failures_in(self.place, part) for part in self.parts.values())
        size = sum(sum(self.place.sizes(under).values()) for under in (PARTS, ROWS))
        return State(self.manifest.rows, done, failed, self.manifest.parts, len(self.parts), size)

    @once
    def damaged(self) -> list[Part]:
        """The parts whose bytes are not those that were written. Each is read, once."""
        return _damaged(self.place, self.parts)

    def check(self) -> None:
        """Refuse a run with damaged parts, and name them."""
        if self.damaged:
            names = ", ".join(part.name for part in self.damaged)
            raise LoadError(
                f"in {self.place.name!r} {len(self.damaged)} of {len(self.parts)} parts are "
                f"damaged: {names}. Their bytes are not those that were written; do them again "
                "with --mend (mend=True)."
            )

    def records(self) -> Iterator[dict[str, Any]]:
        """What the parts hold, row by row, as far as they are done."""
        for _, records in self._records_by_part():
            yield from records

    def _records_by_part(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        for number in sorted(self.parts):
            yield number, read_part(self.place, self.parts[number]).to_pylist()

    def attributions(self) -> Iterator[Any]:
        """Every Attribution, row by row, in the order in which methods were asked for."""
        for record, row in self._with_rows():
            yield from self._found("attributions_of")(record, row)

    def comparisons(self) -> Iterator[Any]:
        """A Comparison for each row that has a result."""
        for record, row in self._with_rows():
            comparison = self._found("comparison_of")(record, row)
            if comparison is not None:
                yield comparison

    def explained(self) -> Iterator[tuple[int, Any, Any]]:
        """The place of each row that has a result, the row as it was read, and its Comparison."""
        for record, row in self._with_rows():
            comparison = self._found("comparison_of")(record, row)
            if comparison is not None:
                yield record["row"], row, comparison

    def comparison(self, row: int) -> Any:
        """The Comparison of one row; None where it failed."""
        part = self.parts.get(row // self.manifest.part_size)
        if part is None:
            raise InputError(f"row {row} is not done yet, or there is none.")
        at = row % self.manifest.part_size
        record = read_part(self.place, part).slice(at, 1).to_pylist()[0]
        (own,) = KeptRows(self.place)[range(row, row + 1)]
        return self._found("comparison_of")(record, own)

    def _with_rows(self) -> Iterator[tuple[dict[str, Any], Any]]:
        kept = KeptRows(self.place)
        for number, records in self._records_by_part():
            rows = kept[self.manifest.rows_of(number)]
            yield from zip(records, rows, strict=True)

    def _found(self, name: str) -> Any:
        """A name of the module that knows what the records mean."""
        return found(f"{self.manifest.reader}:{name}")

    @property
    def failures(self) -> list[Failed]:
        """The rows without a result, and the methods without one on a row."""
        return [Failed(**record) for record in self.table("failures").to_pylist()]

    def table(self, name: str) -> pa.Table:
        """One of its tables as Arrow; ``.to_pandas()`` works.

        They are texts, results, scores and failures. Others are answers to ready questions:
        ``words`` (which carry most), ``verdicts`` (how often each method beats random rankings),
        ``confusion`` (what the model says beside what the data say) and ``wrong`` (the texts on
        which these differ).
        """
        tables, questions = self._found("TABLES"), self._found("QUESTIONS")
        if name in questions:
            return found(questions[name])(self)
        if name not in tables:
            raise unknown_name("table of a run", name, [*tables, *questions])
        # rows that are equal in this would come in another order each time
        order = [column for column in ORDER if column in self._columns(name)]
        return self.query(f"select * from {name} order by {', '.join(order)}")

    def _columns(self, name: str) -> list[str]:
        return self.query(f"select * from {name} limit 0").column_names

    def to_frame(self, table: str) -> Any:
        """A pandas.DataFrame of a table, by its name, or of what SQL says."""
        try:
            import pandas
        except ImportError:
            raise InputError(
                "to_frame() needs pandas: pip install 'whence[tables]'. to_csv() works without it."
            ) from None
        del pandas
        return self._asked(table).to_pandas()

    def to_csv(self, table: str, path: str | Path | None = None, *, safe: bool = True) -> str:
        """A table, by its name, or what SQL says, as CSV; also written to ``path``.

        All numbers keep all their digits. A word that a spreadsheet would take for a formula gets
        an apostrophe in front, unless ``safe=False``.

        >>> run.to_csv("scores", "scores.csv")                                # doctest: +SKIP
        >>> run.to_csv("select method, avg(p) from results group by 1")       # doctest: +SKIP
        """
        asked = self._asked(table)
        content = draw("records_csv", asked.column_names, _records_of(asked), safe)
        return _written(content, path)

    def to_latex(self, table: str, path: str | Path | None = None) -> str:
        """The same as a table for a paper that uses the package booktabs."""
        asked = self._asked(table)
        return _written(draw("records_latex", asked.column_names, asked.to_pylist()), path)

    def to_markdown(self, table: str, path: str | Path | None = None) -> str:
        """The same as a table of Markdown."""
        asked = self._asked(table)
        return _written(draw("records_markdown", asked.column_names, asked.to_pylist()), path)

    @property
    def questions(self) -> tuple[str, ...]:
        """The ready questions that it can be asked, by name: ``table`` answers each.

        >>> whence.open_run("runs/reviews").questions                      # doctest: +SKIP
        ('words', 'verdicts', 'wrong', 'confusion')
        """
        return tuple(self._found("QUESTIONS"))

    def overview(self, most: int | None = None) -> Any:
        """Everything that its page shows, as an Overview; of the texts, at most so many.

        >>> whence.open_run("runs/reviews").overview().confusion          # doctest: +SKIP
        """
        overview_of = found(self._found("OVERVIEW"))
        return overview_of(self) if most is None else overview_of(self, most)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page of the run, which needs nothing else; also written to ``path``.

        It has the answer, verdicts by method, the words that carry each label, and every text
        with what each method says of it.
        """
        return self.overview().to_html(path)

    def _asked(self, table: str) -> pa.Table:
        """A table by its name; anything with a space in it is SQL."""
        return self.query(table) if " " in table.strip() else self.table(table.strip())

    def query(self, sql: str) -> pa.Table:
        """What SQL says over the tables of the run, as Arrow."""
        engine = duckdb()
        with engine.connect() as connection:
            for statement in self._views():
                connection.execute(statement)
            try:
                relation = connection.sql(sql)
                if relation is None:
                    raise InputError("this SQL asks nothing: begin with select.")
                return relation.to_arrow_table()
            except engine.Error as problem:
                raise InputError(f"SQL: {problem}") from problem

    def _views(self) -> Iterator[str]:
        """The statements that make the tables known."""
        names = [part.name for _, part in sorted(self.parts.items())]
        if not names:
            raise InputError(f"no part of {self.place.name!r} is done yet.")
        folder = self._on_disk
        yield f"create view rows as {_read_parquet(folder, folder.names(ROWS))}"
        yield f"create view parts as {_read_parquet(folder, names)}"
        for name, sql in self._found("TABLES").items():
            yield f"create view {name} as {sql}"

    @once
    def _on_disk(self) -> Folder:
        """Where SQL reads: the run's folder, or a copy of its objects that goes with this Run.

        Every part is looked at for damage.
        """
        if isinstance(self.place, Folder):
            self.check()
            return self.place
        copy = Folder(Path(tempfile.mkdtemp(prefix="whence-run-")))
        weakref.finalize(self, shutil.rmtree, copy.path, ignore_errors=True)
        for part in self.parts.values():
            copy.put(part.name, checked_bytes(self.place, part))
        for name in self.place.names(ROWS):
            copy.put(name, self.place.get(name))
        return copy


def _read_parquet(folder: Folder, names: list[str]) -> str:
    files = []
    for name in names:
        file = str((folder.path / name).resolve()).replace("'", "''")
        files.append(f"'{file}'")
    return f"select * from read_parquet([{', '.join(files)}])"


def _records_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Its rows, a batch at a time: a large table is never held twice."""
    for batch in table.to_batches(max_chunksize=AT_ONCE):
        yield from batch.to_pylist()


def _written(content: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(path, content)
    return content


def is_run(path: str | Path) -> bool:
    """Whether a run lies there."""
    return has_manifest(place_of(path))


def open_run(path: str | Path, check: bool = True) -> Run:
    """The run that lies in a folder or behind a URL, as far as it is done.

    Unless ``check=False``, every part is read, and one that is damaged is an error that names it.

    >>> whence.open_run("runs/reviews").table("results").to_pandas()     # doctest: +SKIP
    """
    place = place_of(path)
    manifest = read_manifest(place)
    parts = {n: part for n, part in parts_of(place).items() if n < manifest.parts}
    run = Run(place, manifest, parts)
    if check:
        run.check()
    return run


def _damaged(place: Place, parts: Mapping[int, Part]) -> list[Part]:
    damaged = []
    for part in parts.values():
        try:
            checked_bytes(place, part)
        except DamagedPart:
            damaged.append(part)
    return damaged


# ---------------------------------------------------------------------- doing


@dataclass
class Stop:
    """Whether somebody asked to stop after the part at hand."""

    asked: bool = False
    is_immediate: bool = False  # whether asking interrupts what is being done

    def __call__(self) -> bool:
        """Whether it was asked."""
        return self.asked

    def at_once(self, do: Callable[[], None]) -> None:
        """Do what can be broken off at any moment; nothing where somebody asked before.

        Only an interrupt that asked to stop ends here; one of somebody else goes on its way.
        """
        try:
            self.is_immediate = True
            if not self.asked:  # looked at last: who asks from now on interrupts
                do()
        except KeyboardInterrupt:
            if not self.asked:
                raise
        finally:
            self.is_immediate = False


@contextmanager
def stopping(tell: Callable[[str], None]) -> Iterator[Stop]:
    """Ctrl-C lets the part at hand be done; a second one ends at once.

    Where no part is at hand, the first one breaks off what is being done (``Stop.at_once``).
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, frame: Any) -> None:
        if stop.asked:
            signal.default_int_handler(number, frame)
        stop.asked = True
        if stop.is_immediate:
            tell("stopping")
            signal.default_int_handler(number, frame)
        tell("stopping after the part at hand; Ctrl-C again stops at once, and loses that part")

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def check_engine(manner: Manner) -> None:
    """Refuse an engine that cannot work here, before any model is loaded."""
    if manner.engine == "ray":
        check_ray(manner.address)


def carry_out(
    place: Place,
    manifest: Manifest,
    work: Work | None = None,
    manner: Manner = PLAINLY,
    *,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Run:
    """Do the parts that are not done, and give the run back.

    ``work`` is what this process has opened already; other workers open it for themselves.
    ``progress`` is told how many rows are done and failed, and how many there are.
    """
    stop = stop or Stop()
    tell = progress or (lambda *_: None)
    with held(place):
        place.tidy(PARTS)
        done = {n: part for n, part in parts_of(place).items() if n < manifest.parts}
        damaged = _damaged(place, done)
        if damaged and not manner.mend:
            open_run(place.name)  # which says so
        for part in damaged:
            remove_part(place, part.number)
            del done[part.number]

        left = [number for number in range(manifest.parts) if number not in done]
        rows_done = sum(len(manifest.rows_of(number)) for number in done)
        failed = 0
        tell(rows_done, failed, manifest.rows)
        # closed at once, whatever happens: an engine may have processes that it must end
        with closing(_done_by(place, manifest, work, left, manner, stop)) as parts:
            for part in parts:
                rows_done += len(manifest.rows_of(part.number))
                failed += _check_part(place, part, manner.fail_fast)
                tell(rows_done, failed, manifest.rows)
    return open_run(place.name, check=False)


def _done_by(
    place: Place,
    manifest: Manifest,
    work: Work | None,
    left: list[int],
    manner: Manner,
    stop: Stop,
) -> Generator[Part, None, None]:
    if not left:
        return
    if manner.engine == "processes":
        yield from processes(place, left, manner.workers, stop)
    elif manner.engine == "ray":
        yield from ray_actors(place, left, manner.workers, manner.address, stop)
    else:
        own = work or opened(manifest.work, manifest.asked)
        yield from inline(place, manifest, own, left, stop)


def _check_part(place: Place, part: Part, fail_fast: bool) -> int:
    """How many rows of a part failed; with ``fail_fast`` the first of them ends the run."""
    failed = failures_in(place, part)
    if failed and fail_fast:
        table = read_part(place, part).select(["row", "failure"])
        first = next(record for record in table.to_pylist() if record["failure"] is not None)
        kept = "nothing is kept without --out FOLDER"
        if place.is_kept:
            kept = f"what is done is kept in {place.name!r}"
        raise InputError(
            f"row {first['row']}: {first['failure']['kind']}: {first['failure']['message']} "
            f"(--fail-fast; {kept})"
        )
    return failed


def restart(place: Place) -> None:
    """Take a run away, the manifest first, so that half of it is never taken for a whole."""
    place.remove(NAME)
    for under in (PARTS, ROWS):
        for name in place.names(under):
            place.remove(name)
