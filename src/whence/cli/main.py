"""The program ``whence``: results to stdout, notes to stderr, one line on a user's mistake."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from whence import __version__
from whence.cli import attend, compare, doctor, explain, lab, methods, metrics, predict, theory
from whence.cli.options import WITH_SETTINGS
from whence.cli.running import INTERRUPTED, OUR_MISTAKE, USERS_MISTAKE
from whence.core.errors import WhenceError
from whence.core.showing import visible

app = typer.Typer(
    name="whence", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
for module in (explain, compare, predict, attend, theory, lab, methods, metrics, doctor):
    context = WITH_SETTINGS if module is explain else {}
    app.command(
        module.__name__.rpartition(".")[2], epilog=module.EXAMPLE, context_settings=context
    )(module.command)


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


@app.callback(epilog='Example: whence compare "a moving and funny film" --html report.html')
def top(version: Version = False) -> None:
    """Explain what a transformer did, and test whether the explanation can be trusted."""
    del version


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        code = app(args=given, prog_name="whence", standalone_mode=False) or 0
        return _complain("interrupted.", code) if code == INTERRUPTED else code
    except KeyboardInterrupt:
        return _complain("interrupted.", INTERRUPTED)
    except Exception as problem:
        if "--debug" in given:
            print(visible(traceback.format_exc(), keep="\n"), file=sys.stderr, end="")
        # what typer raises for bad usage has it
        message_of = getattr(problem, "format_message", None)
        if message_of is not None:
            return _complain(message_of(), USERS_MISTAKE)
        if isinstance(problem, WhenceError):
            return _complain(str(problem), USERS_MISTAKE)
        return _complain(
            f"unexpected {type(problem).__name__}: {problem} (--debug shows where)", OUR_MISTAKE
        )


def _complain(message: str, code: int) -> int:
    line = visible(" ".join(message.split()))
    print(f"whence: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
