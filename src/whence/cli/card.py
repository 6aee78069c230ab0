"""whence card: what was saved of a model, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whence.cli import options as o
from whence.cli.running import emit_json, note, show, writable

EXAMPLE = "Example: whence card runs/reviews trials audit --html card.html"
Markdown = Annotated[
    Path | None,
    typer.Option(
        help="Also write a section for a model card, in Markdown.", metavar="FILE", readable=False
    ),
]


def command(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER…",
            help="Folders of runs, evaluations and audits, files that --save wrote, or folders "
            "that hold such.",
        ),
    ],
    as_json: o.AsJson = False,
    html: o.Html = None,
    markdown: Markdown = None,
    save: o.Save = None,
    debug: o.Debug = False,
) -> None:
    """Lay what was saved of a model side by side: for each method four questions.

    Said of each file that was asked for.

    ``Markdown written to MODEL_CARD.md``

    Is its ranking better than random on a text? On how many texts? By which measures, on average?
    Is it attention that does it? Says what the answers mean together, what was not asked yet, and
    the command that would ask it. Nothing is run.
    """
    del debug
    for path in (html, markdown, save):
        writable(path)
    from whence.explaining.card import card

    found = card(*places)
    if as_json:
        emit_json(found.to_dict())
    else:
        from whence.views.card import card_view

        show(lambda _: card_view(found))
    if save is not None:
        found.save(save)
    if markdown is not None:
        found.to_markdown(markdown)
        note(f"Markdown written to {markdown.resolve()}")
    if html is not None:
        found.to_html(html)
        note(f"page written to {html.resolve()}")
