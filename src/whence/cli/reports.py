"""Showing results, of one text or of many, and writing the files of all of them.

``BadLines`` is for every command that reads many texts; ``Results`` is for those whose results
are attributions or comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from whence.cli.running import (
    OUR_MISTAKE,
    USERS_MISTAKE,
    emit,
    emit_json,
    json_line,
    note,
    show,
)
from whence.core.counting import counted, texts_done
from whence.core.errors import (
    AuthorError,
    InputError,
    LoadError,
    OurMistake,
    PlaceError,
    SettingsError,
    TargetError,
    UnknownName,
    Unsupported,
    WhenceError,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from whence.cli.texts import Line
    from whence.core.attribution import Attribution
    from whence.core.comparison import Comparison
    from whence.core.many import Failure, Many
    from whence.core.passage import Passage

Encoded = tuple["Line", "Passage"]
Found = TypeVar("Found")

# what is wrong with the request or the model, and not with a text
OF_EVERY_TEXT = (AuthorError, LoadError, SettingsError, TargetError, UnknownName, Unsupported)
MOST_FAILURES = 100  # on stderr
BETWEEN_TEXTS = "\n" + "─" * 72 + "\n"
log = getLogger("whence")


@dataclass
class BadLines:
    """The texts of which nothing came: the others go on, and these are listed at the end.

    ``done`` counts those of which something came. ``verb`` says what could not be done with the
    bad ones.
    """

    texts: int
    as_json: bool
    verb: str = "explained"
    failures: list[Failure] = field(default_factory=list)
    done: int = 0
    our_mistakes: int = 0  # failures that are no mistake of the user
    worked: bool = False  # for some text of the present batch, which is not done yet
    code: int | None = None  # the exit code, where it does not depend on whose mistakes there are

    @contextmanager
    def without(self, line: Line) -> Iterator[None]:
        """One of several texts may fail, and the others go on.

        What would meet every other text too (a label that the model does not have, a method that
        does not fit it) ends the run, if it meets the first one.
        """
        try:
            yield
        except typer.Exit:  # the reader has gone
            raise
        except Exception as problem:
            if self.texts == 1 or self._meets_all(problem):
                raise
            self._fail(line, problem)

    def _meets_all(self, problem: Exception) -> bool:
        problem = _original(problem)
        if self.done or self.worked or isinstance(problem, PlaceError):
            return False
        return isinstance(problem, OF_EVERY_TEXT)

    def _fail(self, line: Line, problem: Exception) -> None:
        """Said of a text on which something went wrong that no error foresaw.

        ``unexpected ValueError: nan (--debug shows where)``
        """
        reason = str(_original(problem))
        if not isinstance(problem, WhenceError):
            reason = f"unexpected {type(problem).__name__}: {problem} (--debug shows where)"
            log.debug("%s: %s", line.where, reason, exc_info=problem)
        if is_ours(problem):
            self.our_mistakes += 1
        self.keep(line, reason)

    def keep(self, line: Line, reason: str) -> None:
        """Note that nothing came of a text, and why."""
        from whence.core.many import Failure

        failure = Failure(line.where or "", " ".join(reason.split()), line.number)
        self.failures.append(failure)
        if self.as_json:
            emit_json(failure.to_dict())

    def together(
        self, batch: Sequence[Encoded], work: Callable[[Sequence[Encoded]], Sequence[Found]]
    ) -> Iterator[tuple[Line, Found]]:
        """What comes of each text of a batch; a bad one among them does not take the others."""
        if len(batch) > 1:
            try:
                every = work(batch)
            except Exception as problem:
                del problem  # whose it is shows when each is tried alone
            else:
                yield from zip((line for line, _ in batch), every, strict=True)
                return
        for line, passage in batch:
            alone: Sequence[Found] = ()
            with self.without(line):
                alone = work([(line, passage)])
                self.worked = True
            yield from ((line, found) for found in alone)

    def tell(self) -> None:
        """Each text that failed, on stderr.

        Said where some text failed.

        ``2 of 10 texts could not be explained:``
        """
        if not self.failures:
            return
        more = len(self.failures) - MOST_FAILURES
        beyond = f" (the first {MOST_FAILURES}; --json has all)" if more > 0 else ""
        every = counted(self.texts, "text")
        note(f"{len(self.failures):,} of {every} could not be {self.verb}{beyond}:")
        for failure in self.failures[:MOST_FAILURES]:
            note(f"{failure.where}: {failure.reason}")

    def end(self) -> None:
        """At the end of all texts: list the bad ones, and exit by them."""
        self.tell()
        if not self.failures:
            return
        if self.code is not None:
            raise typer.Exit(self.code)
        raise typer.Exit(OUR_MISTAKE if self.our_mistakes else USERS_MISTAKE)


@dataclass
class Results:
    """The results of a run, text by text.

    As JSON, each is printed as soon as it is there, so that nothing is lost if the run is ended.
    In the terminal, several texts are shown at the end: the index and the counts first, then with
    ``full`` each text.
    """

    texts: int
    as_json: bool
    full: bool
    every_row: bool
    save: Path | None = None
    html: Path | None = None
    csv: Path | None = None
    results: list[Attribution | Comparison] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bad = BadLines(self.texts, self.as_json)

    def add(self, result: Attribution | Comparison) -> None:
        """The result of the next text."""
        line = json_line(result.to_dict()) if self.as_json else ""
        # JSON of many texts is not held in memory for nothing
        if self._writes or not self.as_json:
            self.results.append(result)
        # before it is shown: who ends the run at the first line that they see keeps that text
        self.bad.done += 1

        if self.as_json:
            emit(line)
        elif self.texts == 1:
            show(_view(result, self.every_row, self.full))

    @property
    def _writes(self) -> bool:
        return any(path is not None for path in (self.save, self.html, self.csv))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Show and write what is done at the end, also where the end is Ctrl-C or an error."""
        try:
            yield
        except BaseException as problem:
            if self.texts > 1 and self.bad.done:
                self._keep_part(shown=not isinstance(problem, typer.Exit))
            raise
        self._finish()

    def _keep_part(self, shown: bool) -> None:
        """Said after Ctrl-C or an error, where some of several texts are done.

        ``ended early: 7 of 19 texts are done``
        """
        if not shown and not self._writes:
            return  # the reader has gone, and nothing is lost
        note(f"ended early: {texts_done(self.bad.done, self.texts)}")
        try:
            if shown and not self.as_json:
                self._show_many()
        finally:  # the reader may have gone, but the files are still wanted
            self._write()
        self.bad.tell()

    def _finish(self) -> None:
        """What can be shown and written only when all texts are done.

        Said where texts are shown in short, or where files were asked for and no text came through.

        ``--full shows each text; --html writes them to a page``
        """
        try:
            if self.texts > 1 and not self.as_json:
                self._show_many()
                if self.html is None and not self.full:
                    note("--full shows each text; --html writes them to a page")
        finally:
            self._write()
        if self._writes and not self.bad.done:
            note("nothing is written, as no text could be explained")
        self.bad.end()

    def _write(self) -> None:
        """Said of each file that was written.

        ``result saved to result.json``
        """
        if not self.bad.done:
            return
        if self.save is not None:
            self._whole().save(self.save)
            note(f"result saved to {self.save.resolve()}")
        if self.csv is not None:
            self._whole().to_csv(self.csv)
            note(f"table written to {self.csv.resolve()}")
        if self.html is not None:
            self._whole().to_html(self.html)
            note(f"report written to {self.html.resolve()}")

    def _many(self) -> Many:
        from whence.core.many import Many

        unreached = self.texts - self.bad.done - len(self.bad.failures)
        return Many(tuple(self.results), tuple(self.bad.failures), unreached)

    def _show_many(self) -> None:
        from whence.views.many import many_view

        many = self._many()
        show(lambda console: many_view(many, console))
        if not self.full:
            return
        for result in self.results:
            emit(BETWEEN_TEXTS)
            show(_view(result, self.every_row, self.full))

    def _whole(self) -> Attribution | Comparison | Many:
        """The only result, or all of them."""
        if self.texts == 1:
            return self.results[0]
        return self._many()


def is_ours(problem: Exception) -> bool:
    """Whether whence itself went wrong, and not the text, the request or the model."""
    problem = _original(problem)
    return isinstance(problem, OurMistake) or not isinstance(problem, WhenceError)


def _original(problem: Exception) -> Exception:
    """The error itself, of one that was raised again with the number of its line."""
    cause = problem.__cause__
    return cause if isinstance(problem, InputError) and isinstance(cause, WhenceError) else problem


def _view(
    result: Attribution | Comparison, every_row: bool, full: bool
) -> Callable[[Console], RenderableType]:
    """How one text is laid out."""
    from whence.core.comparison import Comparison
    from whence.views.terminal import attribution_view, comparison_view

    if isinstance(result, Comparison):
        return lambda console: comparison_view(result, console, every_row, full)
    return lambda console: attribution_view(result, console, every_row, full)
