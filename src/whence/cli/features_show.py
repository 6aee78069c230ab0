"""whence features show: what every feature fires on, and what it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli import options as o
from whence.cli.features_shared import Data, Folder, ModelName, opened, told
from whence.cli.running import emit, emit_json, progress, writable
from whence.core.errors import InputError

EXAMPLE = "Example: whence features show my-features --data corpus.txt --html features.html"
Feature = Annotated[
    int | None,
    typer.Option(help="Print this one in full, by its number, however rare.", metavar="N"),
]
Top = Annotated[int, typer.Option(help="How many passages are kept of each feature.", metavar="N")]
Most = Annotated[
    int | None,
    typer.Option(
        help="Show the most frequent so many features. [default: all that fire]", metavar="N"
    ),
]
Limit = Annotated[int | None, typer.Option(help="Read the first so many documents.", metavar="N")]
Text = Annotated[
    str | None,
    typer.Option(help="The column with the text, where the data has columns.", metavar="COLUMN"),
]


def show(
    folder: Folder,
    data: Data = None,
    feature: Feature = None,
    top: Top = 20,
    most: Most = None,
    limit: Limit = None,
    text: Text = None,
    model: ModelName = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    html: o.Html = None,
    save: o.Save = None,
    debug: o.Debug = False,
) -> None:
    """Show the features of a sparse autoencoder over a corpus.

    Each with its strongest passages, how often and how strongly it fires, what it promotes and
    suppresses in the output, and the features nearest to it. --html writes a page to search and
    sort them.
    """
    del debug
    writable(html)
    writable(save)
    with opened(folder, model, dtype, device) as (its_model, autoencoder):
        from whence.features.corpus import open_corpus
        from whence.features.showing import dashboard

        always = () if feature is None else (feature,)
        corpus = open_corpus(_source(data, autoencoder), text=text, limit=limit)
        with progress("features") as say:
            board = dashboard(
                its_model,
                autoencoder,
                _passages(its_model, corpus),
                data=corpus.name,
                top=top,
                most=most,
                always=always,
                tick=lambda done: say(f"{done:,} passages"),
            )
    if as_json:
        emit_json(board.to_dict())
    else:
        emit(board.to_text(feature=feature))
    if save is not None:
        board.save(save)
        told(save, "dashboard")
    if html is not None:
        board.to_html(html)
        told(html, "dashboard")


def _passages(model: Any, corpus: Any) -> Iterator[Any]:
    """All documents: those that training learns from, and those that it holds out."""
    from whence.features.corpus import pieces_of

    for held_out in (False, True):
        for piece in pieces_of(model, corpus, held_out=held_out):
            yield piece.passage


def _source(data: list[Path] | None, autoencoder: Any) -> Any:
    """The files that were named, or the ones that the autoencoder was trained on."""
    if data:
        return [str(path) for path in data] if len(data) > 1 else str(data[0])
    name = autoencoder.about.data.get("name")
    if isinstance(name, str) and Path(name).exists():
        return name
    where = f"it was trained on {name!r}, which is not there" if name else "it names none"
    raise InputError(f"which texts? Give some with --data FILE ({where}).")
