"""The options that commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

# a method's settings are flags too, and only the method knows them:
# unknown flags are kept, and judged by ``settings.py``
WITH_SETTINGS: dict[str, Any] = {"ignore_unknown_options": True}

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT",
        help="The text, in quotes (of an image model: the file). "
        "'-' or nothing: from stdin, one a line.",
    ),
]
ModelName = Annotated[
    str, typer.Option("--model", help="A bundled name, a folder or a hub id.", metavar="NAME")
]
File = Annotated[
    Path | None,
    typer.Option("--file", help="Read texts from this file, one a line.", metavar="FILE"),
]
Pair = Annotated[str | None, typer.Option(help="The second text of a pair.", metavar="TEXT")]
Reply = Annotated[
    str | None,
    typer.Option(
        help="What an encoder-decoder has written so far; its next token is explained.",
        metavar="TEXT",
    ),
]
TargetLabel = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The class to explain, by name or number. [default: the predicted]",
        metavar="LABEL",
    ),
]
Against = Annotated[
    str | None, typer.Option(help="Why the target rather than this class.", metavar="LABEL")
]
Read = Annotated[
    Literal["logit", "log-probability", "probability", "margin"],
    typer.Option(help="How the target is read."),
]
Units = Annotated[Literal["word", "token", "sentence"], typer.Option(help="What gets a score.")]
At = Annotated[
    int | None,
    typer.Option(help="The unit that a masked language model fills, counted from 0.", metavar="N"),
]
Seed = Annotated[int, typer.Option(help="Of every random number.")]
Overflow = Annotated[
    Literal["error", "truncate", "window"],
    typer.Option(
        help="A text longer than the model's positions: refuse it, explain its beginning, "
        "or explain consecutive windows."
    ),
]
ShortOverflow = Annotated[
    Literal["error", "truncate"],
    typer.Option(
        "--overflow", help="A text longer than the model's positions: an error, or its beginning."
    ),
]
Dtype = Annotated[
    str, typer.Option(help="float32, float64, bfloat16, float16, or auto for the stored one.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps …")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead: one line for each text.")]
Html = Annotated[
    Path | None,
    typer.Option(
        help="Also write a self-contained HTML page with all results.",
        metavar="FILE",
        readable=False,
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        help="Also write a table: a row for each method and unit, with verdict, p, cost and error.",
        metavar="FILE",
        readable=False,
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        help="Also save the result as JSON, for whence.read.", metavar="FILE", readable=False
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="A budget such as 2GB, over which a run is refused. [default: most of what is free]",
        metavar="SIZE",
    ),
]
Evidence = Annotated[
    bool | None,
    typer.Option(
        "--evidence/--no-evidence",
        help="Hold each ranking against random ones of the same text. "
        "[default: yes; of several texts, explain does not]",
        show_default=False,
    ),
]
EveryRow = Annotated[
    bool, typer.Option("--all", help="List every unit of a long text, not only the strongest.")
]
Debug = Annotated[bool, typer.Option("--debug", help="On an error, show where it arose.")]
