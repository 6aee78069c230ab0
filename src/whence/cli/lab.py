"""whence lab: run an experiment and see which of its claims hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli import options as o
from whence.cli.running import emit_json, note, progress, quiet, show
from whence.labs import LABS

EXAMPLE = "Example: whence lab dyck --quick --out figures/"

Name = Annotated[
    str,
    typer.Argument(help=f"One of {', '.join(LABS)}; or all.", metavar="NAME", show_default=False),
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
    name: Name,
    out: Out = None,
    quick: Quick = False,
    words: Words = None,
    formats: Formats = "png,svg,pdf",
    seed: o.Seed = 0,
    as_json: AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Run a lab: an experiment with figures, tables, and claims that hold or do not.

    attention: self-attention step by step. gpt2: from bytes to the next word. histogram: two
    solutions, one of which attends to nothing in the text. dyck: brackets closed by models that do
    not look at them. theorem: LIME on attention, by formula and exactly. figures: the rest of the
    lectures' pictures. judging: recall, sensitivity, retraining and simulated users on models whose
    truth is known. roar: remove the important words, retrain, and see what was lost; the table of
    desiderata. debate: is attention explanation? The figures of two papers, on small recurrent
    models.
    """
    del debug
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


def _naming(lab: str, say: Callable[[str], None]) -> Callable[[str], None]:
    """Of several labs, a step is told with the lab that it belongs to."""
    return lambda step: say(f"{lab}: {step}")
