"""whence lab: run an experiment and see which of its claims hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli import options as o
from whence.cli.running import emit, emit_json, note, progress, quiet, show
from whence.labs import ABOUT, LABS

EXAMPLE = "Example: whence lab dyck --quick --out figures/"

Name = Annotated[
    str | None,
    typer.Argument(
        help=f"One of {', '.join(LABS)}; or all. Without one, what each is about.",
        metavar="NAME",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="The folder that gets the figures, the tables and a page. [default: lab-NAME]",
        metavar="DIR",
        file_okay=False,
        readable=False,
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Smaller and shorter, to try it out: seconds to a minute.")
]
Formats = Annotated[
    str,
    typer.Option(
        "--formats",
        help="The file formats of the figures, with commas between them.",
        metavar="LIST",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of text, one line per lab.")
]
Words = Annotated[
    str | None,
    typer.Option(
        help="Your own text, for the labs that take one (attention, gpt2, theorem, figures).",
        metavar="TEXT",
    ),
]


def command(
    name: Name = None,
    out: Out = None,
    quick: Quick = False,
    words: Words = None,
    formats: Formats = "png,svg,pdf",
    seed: o.Seed = 0,
    as_json: AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Run a lab: an experiment with figures, tables, and claims that hold or do not.

    Without a name it lists the labs, and what each is about.
    """
    del debug
    if name is None:
        _list(as_json)
        return
    folder = out or Path(f"lab-{name}")
    with progress(f"lab {name}") as say:
        from whence.labs.running import lab, takes

        run_all = name == "all"
        books = []
        for each in LABS if run_all else (name,):
            options: dict[str, Any] = {}
            # of all labs only some take a text; a lab of its own says so itself
            if words is not None and (not run_all or "words" in takes(each)):
                options["words"] = words
            with quiet():
                book = lab(
                    each,
                    quick=quick,
                    seed=seed,
                    formats=formats.lower().replace(" ", "").split(","),
                    tell=_naming(each, say) if run_all else say,
                    **options,
                )
            book.save(folder / each if run_all else folder)
            books.append(book)

    if run_all:
        from whence.core.writing import write_text
        from whence.notebook.page import pages

        write_text(folder / "index.html", pages(books, "the labs"))
    if as_json:
        for book in books:
            emit_json(book.to_dict())
    else:
        from whence.notebook.page import notebook_view

        for book in books:
            show(lambda console, book=book: notebook_view(book, console))
    note(f"figures, tables and the page index.html are in {folder.resolve()}")


def _list(as_json: bool) -> None:
    """What labs there are, and how one is run.

    Said where no lab was named.

    ``whence lab NAME --quick takes seconds to a minute; whence lab all runs every one.``
    """
    if as_json:
        for name, about in ABOUT.items():
            emit_json({"lab": name, "about": about})
        return
    widest = max(map(len, ABOUT))
    for name, about in ABOUT.items():
        emit(f"{name:{widest}}  {about}")
    emit("")
    emit("whence lab NAME --quick takes seconds to a minute; whence lab all runs every one.")


def _naming(lab: str, say: Callable[[str], None]) -> Callable[[str], None]:
    """Of several labs, a step is told with the lab that it belongs to."""
    return lambda step: say(f"{lab}: {step}")
