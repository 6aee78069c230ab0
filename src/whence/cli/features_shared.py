"""What the commands about features share: the autoencoder's folder, and the model it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whence.cli import completing
from whence.cli.options import known_model
from whence.cli.running import loaded, note

if TYPE_CHECKING:
    from whence.features.autoencoder import Autoencoder
    from whence.models.model import Model

Folder = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER",
        help="The autoencoder: a folder that 'whence features train' wrote, or a bundled one.",
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        callback=known_model,
        autocompletion=completing.model,
        help="The model that it was trained on, where it lies elsewhere now. "
        "[default: the one that the autoencoder names]",
        metavar="NAME",
    ),
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        help="Texts: a plain file whose documents are separated by blank lines, JSON lines, CSV or "
        "Parquet; may be repeated.",
        metavar="FILE",
    ),
]


@contextmanager
def opened(
    folder: str, model: str | None, dtype: str = "float32", device: str = "cpu"
) -> Iterator[tuple[Model, Autoencoder]]:
    """The autoencoder and its model, checked to belong together."""
    from whence.features.belonging import check_belongs
    from whence.features.saving import load

    autoencoder = load(folder)
    with loaded(model or autoencoder.about.model, dtype, device) as its_model:
        check_belongs(its_model, autoencoder)
        yield its_model, autoencoder


def told(path: Path, what: str) -> None:
    """Say where something was written."""
    note(f"{what} written to {path.resolve()}")
