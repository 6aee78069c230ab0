"""whence planted: which methods find a mechanism that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whence.cli import options as o
from whence.cli.compare import Methods, Set, chosen
from whence.cli.running import emit, emit_json, note, progress, quiet, writable

EXAMPLE = "Example: whence planted --methods occlusion,attention-mean --mechanisms distractor"
Mechanisms = Annotated[
    str | None,
    typer.Option(
        help="The mechanisms to try, with commas between: keyword, pair, negation, position, "
        "leak, distractor. [default: all]",
        metavar="A,B,…",
    ),
]
Texts = Annotated[
    int, typer.Option(help="How many texts of each mechanism are explained, at most.", metavar="N")
]
Csv = Annotated[
    Path | None,
    typer.Option(
        help="Also write a table: a row for each method and mechanism.",
        metavar="FILE",
        readable=False,
    ),
]


def command(
    methods: Methods = None,
    setting: Set = None,
    mechanisms: Mechanisms = None,
    texts: Texts = 30,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
    html: o.Html = None,
    csv: Csv = None,
    save: o.Save = None,
    debug: o.Debug = False,
) -> None:
    """Test the methods where the truth is known: on models whose mechanism was planted.

    Six small models ship with whence, each made to look at certain words and at nothing else.
    Prints which methods rank those words first, beside what a random ranking gets.
    """
    del debug
    for path in (html, csv, save):
        writable(path)
    settings_by_method = chosen(methods, setting or [], seed)
    names = None
    if mechanisms is not None:
        names = [name.strip() for name in mechanisms.split(",") if name.strip()]

    with progress("planted") as say:
        # torch and transformers: seconds, on a cold disk
        from whence.explaining.planted import planted

        with quiet():
            truth = planted(
                settings_by_method, mechanisms=names, texts=texts, seed=seed, progress=say
            )
    if as_json:
        emit_json(truth.to_dict())
    else:
        emit(truth.to_text())
    if csv is not None:
        truth.to_csv(csv)
    if save is not None:
        truth.save(save)
    if html is not None:
        truth.to_html(html)
        note(f"page written to {html.resolve()}")
