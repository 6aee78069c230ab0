"""--against: why this rather than that, in every command; what it was called before still works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from whence.core.errors import InputError, UnknownName

# names of before, which --help does not show
Foil = Annotated[str | None, typer.Option("--foil", hidden=True, metavar="COLUMN")]
Instead = Annotated[str | None, typer.Option("--instead", hidden=True, metavar="WORD")]
InsteadFirst = Annotated[bool, typer.Option("--instead-first", hidden=True)]
InsteadOf = Annotated[str | None, typer.Option("--instead-of", hidden=True, metavar="TEXT")]


def column_or_label(
    source: Any,
    columns: Mapping[str, Any],
    against: str | None,
    foil: str | None,
    is_of_labels: bool,
) -> tuple[str | None, str | None]:
    """What --against names: a column of the data, or one label for all texts.

    It is a column where the label that the data give is contrasted (``is_of_labels``), and the data
    have a column of that name. ``foil`` is that column by the name of before.
    """
    if foil is not None and against is not None:
        raise InputError("--foil is an old name of --against: give --against alone.")
    if foil is not None:
        return foil, None
    if against is None or not is_of_labels:
        return None, against

    from whence.runs.data import open_data

    try:
        open_data(source, **{**columns, "foil": against})
    except UnknownName:  # any other column that is missing is named when the data are opened
        return None, against
    return against, None
