"""What commands about a written text share: options, a given continuation, and where it goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whence.cli.running import emit, emit_json, note
from whence.core.errors import InputError

if TYPE_CHECKING:
    from whence.core.contextual import ContextUse
    from whence.core.generation import Generation

Tokens = Annotated[int, typer.Option(help="How many tokens are written, at most.", metavar="N")]
GivenIds = Annotated[
    str | None,
    typer.Option(
        "--continuation-ids", help="The same, as ids of tokens: 464,3797,…", metavar="IDS"
    ),
]


def given_continuation(text: str | None, ids: str | None) -> str | list[int] | None:
    """What --continuation or --continuation-ids gave; None where the model is to write.

    >>> given_continuation(None, "464, 3797")
    [464, 3797]
    """
    if ids is None:
        return text
    if text is not None:
        raise InputError("give --continuation or --continuation-ids, not both.")
    try:
        return [int(number) for number in ids.replace(" ", "").split(",")]
    except ValueError:
        raise InputError(
            f"--continuation-ids takes whole numbers with commas between, not {ids!r:.60}."
        ) from None


def show(result: Generation | ContextUse, as_json: bool) -> None:
    """The result on standard output."""
    if as_json:
        emit_json(result.to_dict())
    else:
        emit(str(result))


def write(
    result: Generation | ContextUse, html: Path | None, csv: Path | None, save: Path | None
) -> None:
    """The result in the files that were asked for, each named on standard error.

    Said of each file that was written.

    ``result saved to result.json``
    """
    if save is not None:
        result.save(save)
        note(f"result saved to {save.resolve()}")
    if csv is not None:
        result.to_csv(csv)
        note(f"table written to {csv.resolve()}")
    if html is not None:
        result.to_html(html)
        note(f"report written to {html.resolve()}")
