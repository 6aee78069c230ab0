"""What every command does around its work.

A quiet library, a progress bar on stderr, results on stdout, files checked beforehand.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import ERROR, getLogger
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from whence.cli.bars import fitted_bar
from whence.core.durations import about
from whence.core.errors import InputError
from whence.core.showing import visible
from whence.core.writing import is_stream, json_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from whence.models.model import Model
    from whence.trace.memory import Forecast

# seconds before a progress bar appears
PATIENCE = 2.0
# seconds to the first line about progress where there is no terminal, and between two of them
FIRST_LINE, BETWEEN_LINES = 5.0, 30.0
# seconds, from which on a forecast is printed
WORTH_TELLING = 2.0
# bytes, from which on a forecast is printed
LOUD = 10**8
# exit codes; of several texts the first is for those that could not be explained
USERS_MISTAKE, OUR_MISTAKE, INTERRUPTED = 2, 1, 130
# of a run of which all parts are done, some with texts that could not be explained
SOME_FAILED = 3
# what a shell reports for a program that SIGPIPE ended
PIPE_CLOSED = 141


def note(text: str) -> None:
    """A remark that is no result."""
    print(f"whence: {visible(text)}", file=sys.stderr)


def tell_forecast(forecast: Forecast) -> None:
    """How much memory a run will take, where it is worth knowing."""
    if forecast.total > LOUD:
        note(f"forecast: {forecast}.")


def emit(text: str) -> None:
    """A result. When the reader has gone (``| head``) the program ends, quietly."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        import typer

        # or Python complains again as it closes
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None


def emit_json(value: Any) -> None:
    """A result as one line of JSON."""
    emit(json_line(value))


def json_line(value: Any) -> str:
    """A value as one line of JSON; in ASCII where stdout is not UTF-8."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json_text(value, ascii_only=not unicode)


def show(view: Callable[[Console], RenderableType]) -> None:
    """A result, laid out for the terminal."""
    from whence.views.terminal import to_text

    emit(to_text(view))


def writable(path: Path | None) -> None:
    """Refuse a path that cannot be written before minutes of work, not after them."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder.")
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {str(path)!r}: the folder {str(path.parent)!r} does not exist."
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"cannot write {str(path)!r}: it is read-only.")
    folder = path.resolve().parent
    if not is_stream(path) and not os.access(folder, os.W_OK):
        raise InputError(
            f"cannot write {str(path)!r}: the folder {str(folder)!r} is read-only, and a file is "
            "written beside its name before it takes it."
        )


@contextmanager
def quiet() -> Iterator[None]:
    """transformers' own bars and warnings stay off the terminal; a library user still gets them."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    # the hub reports each retry; the one line at the end says all
    hub = getLogger("huggingface_hub")
    hub_level = hub.level

    hub.setLevel(ERROR)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            logging.enable_progress_bar()


def cost_told_by(step: str) -> str:
    """What a run will cost, where it is worth knowing: its first step carries a forecast."""
    forecast = getattr(step, "forecast", None)
    if forecast is None or forecast.seconds is None or forecast.seconds < WORTH_TELLING:
        return ""
    return str(forecast)


@contextmanager
def progress(label: str, is_first: bool = True) -> Iterator[Callable[[str], None]]:
    """A bar on stderr once something takes over two seconds; it says which step is running.

    It fills by passes through the model, and tells the time that is left. It is gone when the work
    is done. Where there is no terminal, a line says where it is from time to time. What the work
    will cost is said beforehand in a line that stays, unless it is a later part
    (``is_first=False``).
    """
    from rich.console import Console

    def announce(step: str) -> None:
        cost = cost_told_by(step)
        if is_first and cost:
            # where there is a bar already, the line goes above it
            words = visible(f"whence: {label}: {cost}")
            console.print(words, markup=False, highlight=False, emoji=False, soft_wrap=True)

    console = Console(stderr=True)
    # asked of stderr too: FORCE_COLOR is about colour, and a log file wants no bar
    if not (sys.stderr.isatty() and console.is_interactive):
        at_hand = visible(label)

        def tell(step: str) -> None:
            nonlocal at_hand
            announce(step)
            at_hand = _described(label, step)

        with lines_about(lambda: f"{at_hand} …"):
            yield tell
        return
    bar = fitted_bar(console, lambda task: task.description, lambda task: task.fields["left"])
    task = bar.add_task(visible(label), total=None, left="")
    timer = Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()

    def say(step: str) -> None:
        announce(step)
        done, of = getattr(step, "done", 0), getattr(step, "of", None)
        bar.update(task, description=_described(label, step), completed=done, total=of)
        seconds = bar.tasks[0].time_remaining
        if of is not None and seconds is not None:
            bar.update(task, left=f"{about(seconds)} left")

    try:
        yield say
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


@contextmanager
def lines_about(words: Callable[[], str]) -> Iterator[None]:
    """A line on stderr after a few seconds, then from time to time, however long the work takes."""
    is_over = threading.Event()

    def tell() -> None:
        wait = FIRST_LINE
        while not is_over.wait(wait):
            note(words())
            wait = BETWEEN_LINES

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()


def _described(label: str, step: str) -> str:
    """The label and the step; the forecast's own line is told above the bar."""
    if getattr(step, "forecast", None) is not None:
        return visible(label)
    return visible(f"{label}: {step}")


@contextmanager
def loaded(name: str, dtype: str = "float32", device: str = "cpu") -> Iterator[Model]:
    """The model, with the library quiet for as long as it is used."""
    from whence.models.finding import source_of

    source_of(name)  # a misspelled name is told before torch is there
    with progress(f"loading {name}"):
        # torch and transformers: seconds, on a cold disk
        from whence.models.load import load

        with quiet():
            model = load(name, dtype=dtype, device=device)
    with quiet():
        yield model
