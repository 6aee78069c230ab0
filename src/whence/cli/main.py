"""The program ``whence``: results to stdout, notes to stderr, one line on a user's mistake."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from whence import __version__
from whence.cli import (
    attend,
    audit,
    card,
    compare,
    context,
    doctor,
    evaluate,
    explain,
    features,
    generate,
    lab,
    methods,
    metrics,
    planted,
    predict,
    query,
    run,
    theory,
)
from whence.cli.options import WITH_SETTINGS
from whence.cli.reports import is_ours
from whence.cli.running import INTERRUPTED, OUR_MISTAKE, USERS_MISTAKE, note
from whence.cli.texts import NoText
from whence.core.errors import WhenceError
from whence.core.showing import visible

app = typer.Typer(name="whence", rich_markup_mode=None, pretty_exceptions_enable=False)
COMMANDS = (
    explain,
    compare,
    generate,
    context,
    run,
    query,
    evaluate,
    audit,
    card,
    predict,
    attend,
    theory,
    lab,
    methods,
    metrics,
    planted,
    doctor,
)
# what the list of all commands says of each: a line of a terminal holds it
# Said beside each command, in the list of them.
MENU = {
    "explain": "One method on your text: a score for each word.",
    "compare": "All methods on your text, each tested. Begin here.",
    "generate": "What a model writes, and what each word was written from.",
    "context": "Which words of an output came from the context.",
    "run": "Explain every text of a data set, into a folder that is kept.",
    "query": "Ask such a folder: in SQL, or what is ready.",
    "evaluate": "Methods on trial: a table of methods × metrics.",
    "audit": "Is attention an explanation, in this model?",
    "card": "What was saved of a model side by side: four verdicts.",
    "predict": "What the model says, with probabilities.",
    "attend": "Where each attention head looks.",
    "theory": "A model so small that its scores have formulas.",
    "lab": "Experiments small enough to understand, with figures.",
    "methods": "List the methods, or explain one of them.",
    "metrics": "List the metrics, or explain one of them.",
    "planted": "Test the methods where the truth is known.",
    "doctor": "What a model is, what works on it, and its cost.",
    "features": "Sparse autoencoders of hidden states, and what they find.",
}
for module in COMMANDS:
    settings = WITH_SETTINGS if module is explain else {}
    name = module.__name__.rpartition(".")[2]
    app.command(name, short_help=MENU.get(name), epilog=module.EXAMPLE, context_settings=settings)(
        module.command
    )

app.add_typer(features.app, short_help=MENU["features"])
EXAMPLES = {module.__name__.rpartition(".")[2]: module.EXAMPLE for module in COMMANDS}
# \b keeps the lines as they are
# Said below the list of commands.
BEGIN = """\b
Begin with:
  whence compare "the food is great but the service is not bad"
  whence compare "a moving and funny film" --html report.html
  whence doctor --model FOLDER       your own model: what works on it
  whence help compare                a command with all its options"""


def _say_version(asked: bool) -> bool:
    if asked:
        typer.echo(f"whence {__version__}")
        raise typer.Exit
    return asked


Version = Annotated[
    bool,
    typer.Option(
        "--version", help="Say which version this is.", is_eager=True, callback=_say_version
    ),
]


@app.callback(epilog=BEGIN)
def top(version: Version = False) -> None:
    """Explain what a transformer did, and test whether the explanation can be trusted."""
    del version


class Heard(logging.Handler):
    """What whence says of its own mistakes while it goes on; with ``debug`` also where they arose.

    A method that meets one is left out and the others go on, and so do the other lines of a file.
    """

    def __init__(self, debug: bool) -> None:
        super().__init__(logging.DEBUG if debug else logging.ERROR)
        self.debug = debug
        self.mistakes = 0

    def emit(self, record: logging.LogRecord) -> None:
        """One line, and the trace below it."""
        if record.levelno >= logging.ERROR:
            self.mistakes += 1
            note(" ".join(record.getMessage().split()))
        if self.debug and record.exc_info:
            _show_trace(record.exc_info[1])


@contextmanager
def _listening(debug: bool) -> Iterator[Heard]:
    log, heard = logging.getLogger("whence"), Heard(debug)
    level = log.level
    log.addHandler(heard)
    log.setLevel(heard.level)
    try:
        yield heard
    finally:
        log.removeHandler(heard)
        log.setLevel(level)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if given[0] == "help":
        given = [*given[1:], "--help"]
    debug = "--debug" in given
    with _listening(debug) as heard:
        try:
            code = app(args=given, prog_name="whence", standalone_mode=False) or 0
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Exception as problem:
            if debug:
                _show_trace(problem)
            return _complain_of(problem, EXAMPLES.get(given[0], ""))
    if code == INTERRUPTED:
        return _complain("interrupted.", code)
    return OUR_MISTAKE if heard.mistakes else code


def _show_trace(problem: BaseException | None) -> None:
    print(visible("".join(traceback.format_exception(problem)), keep="\n"), file=sys.stderr, end="")


def _complain_of(problem: Exception, example: str = "") -> int:
    """One line; where there was nothing to work on, with what could have been typed."""
    # what typer raises for bad usage has it
    message_of = getattr(problem, "format_message", None)
    if message_of is not None:
        return _complain(message_of(), USERS_MISTAKE)
    if isinstance(problem, NoText):
        return _complain(f"{problem} {example}", USERS_MISTAKE)
    if isinstance(problem, WhenceError):
        return _complain(str(problem), OUR_MISTAKE if is_ours(problem) else USERS_MISTAKE)
    return _complain(
        f"unexpected {type(problem).__name__}: {problem} (--debug shows where)", OUR_MISTAKE
    )


def _complain(message: str, code: int) -> int:
    line = visible(" ".join(message.split()))
    print(f"whence: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
