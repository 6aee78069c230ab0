"""The options that commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from whence.cli import completing
from whence.core.errors import InputError

# a method's settings are flags too, and only the method knows them:
# unknown flags are kept, and judged by ``settings.py``
WITH_SETTINGS: dict[str, Any] = {"ignore_unknown_options": True}

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT",
        help="The text, in quotes; for an image model, the image file. "
        "Without it (or with '-') texts are read from standard input, one per line.",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Argument(
        help="The one to explain. [default: list all]",
        autocompletion=completing.method,
        metavar="NAME",
    ),
]
MetricName = Annotated[
    str | None,
    typer.Argument(
        help="The one to explain. [default: list all]",
        autocompletion=completing.metric,
        metavar="NAME",
    ),
]
WithSettings = Annotated[
    bool, typer.Option("--settings", help="List the settings of each as well.")
]


def known_model(context: typer.Context, name: str | None) -> str | None:
    """Refuse a misspelled model as soon as it is read: before torch, which takes seconds."""
    if name is not None and not context.resilient_parsing:
        from whence.models.finding import source_of

        source_of(name)
    return name


ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        callback=known_model,
        help="The model: a bundled one (sentiment, single-layer, filler, writer, translator, "
        "planted-…), a folder, or a name on the Hugging Face hub.",
        autocompletion=completing.model,
        metavar="NAME",
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        help="A file with texts: .csv, .tsv, .jsonl and .parquet (also .gz) by their columns, any "
        "other one text per line.",
        metavar="FILE",
    ),
]
TextOfFile = Annotated[
    str | None,
    typer.Option(
        "--text",
        help="The column of --file with the text. [default: the one that has the name of a text, "
        "or is the only one of text]",
        metavar="COLUMN",
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        help="With --file: keep the results in this folder as whence run does. The same command "
        "again goes on where it was ended.",
        metavar="FOLDER",
    ),
]
Pair = Annotated[
    list[str] | None,
    typer.Option(
        help="The second text, for a model that reads two: the text that holds the answer to a "
        "question, a hypothesis, the next sentence; for a multiple choice, once for each choice. "
        "With --file it may name a column.",
        metavar="TEXT",
    ),
]
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
        help="The label (class) to explain, by name or number. "
        "[default: the one that the model predicts]",
        metavar="LABEL",
    ),
]
Against = Annotated[
    str | None, typer.Option(help="Explain why the target and not this label.", metavar="LABEL")
]
AgainstLabelOrColumn = Annotated[
    str | None,
    typer.Option(
        help="Explain why the target and not this label. Beside --label (or --gold), and without "
        "--target, also the column with what each label is contrasted with: that label is then "
        "explained.",
        metavar="LABEL|COLUMN",
    ),
]
Read = Annotated[
    Literal["logit", "log-probability", "probability", "margin"],
    typer.Option(
        help="Which number of the target is explained: its score before probabilities are "
        "made (logit), the probability or its logarithm, or the score's lead over the "
        "strongest other label (margin)."
    ),
]
Units = Annotated[
    Literal["word", "token", "sentence"],
    typer.Option(help="What gets a score: each word, token or sentence."),
]
At = Annotated[
    str | None,
    typer.Option(
        help="The word whose tag is explained, or that a masked language model fills in: as it "
        "is written, where it stands once, or its number, counted from 0.",
        metavar="WORD",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="The number that random draws start from: the same seed gives the same result."
    ),
]
Overflow = Annotated[
    Literal["error", "truncate", "window"],
    typer.Option(
        help="What to do with a text that is too long for the model: refuse it, explain its "
        "beginning, or explain it in parts (windows)."
    ),
]
ShortOverflow = Annotated[
    Literal["error", "truncate"],
    typer.Option(
        "--overflow",
        help="What to do with a text that is too long for the model: refuse it, or take its "
        "beginning.",
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        help="The precision of the numbers: float32, float64, bfloat16, float16, or auto for "
        "what the model was saved in."
    ),
]
Device = Annotated[str, typer.Option(help="Where the model runs: cpu, cuda, cuda:1, mps …")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of tables, one line per result.")
]
Html = Annotated[
    Path | None,
    typer.Option(
        help="Also write a report with all results: one HTML file that needs nothing else.",
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
        help="Also save the result as JSON; whence.read(FILE) loads it in Python.",
        metavar="FILE",
        readable=False,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="The most memory to use, such as 2GB; a run that needs more is refused. "
        "[default: most of what is free]",
        metavar="SIZE",
    ),
]
Evidence = Annotated[
    bool,
    typer.Option(
        "--evidence/--no-evidence",
        help="Test whether each method's ranking of the words is better than random ones.",
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Also print every score, the costs, the notes, and how far methods agree; "
        "of several texts, each one below the index.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        help="The most that one text may cost: a time (30s, 2min) or passes (500). "
        "What is made smaller, or left out, is said. 'full' takes everything. "
        "[default: everything, but less of it for a large model]",
        metavar="TIME|PASSES",
    ),
]
Rankings = Annotated[
    int | None,
    typer.Option(
        help="How many random rankings each one is held against, 39 at least. "
        "[default: 100; of a large model 39]",
        metavar="N",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        help="In how many steps units are removed to test a ranking. "
        "[default: 10; of a large model 5]",
        metavar="N",
    ),
]
EveryRow = Annotated[
    bool, typer.Option("--all", help="List every unit of a long text, not only the strongest.")
]
Debug = Annotated[
    bool, typer.Option("--debug", help="After an error, show where in the code it arose.")
]


def second_text(pair: list[str] | None) -> str | tuple[str, ...] | None:
    """What ``--pair`` gave: one text, or several choices."""
    if not pair:
        return None
    return pair[0] if len(pair) == 1 else tuple(pair)


def label_names(given: list[str] | None) -> dict[str, str]:
    """What ``--labels`` gave: the model's label for each of the data.

    >>> label_names(["ok=not-toxic,bad=toxic"])
    {'ok': 'not-toxic', 'bad': 'toxic'}
    """
    names: dict[str, str] = {}
    for pair in ",".join(given or []).split(","):
        if not pair.strip():
            continue
        label, _, meant = (part.strip() for part in pair.partition("="))
        if not label or not meant:
            raise InputError(f"--labels {pair.strip()}: write it as DATA=MODEL, ok=not-toxic.")
        if names.setdefault(label, meant) != meant:
            raise InputError(f"--labels says that {label} is {names[label]}, and {meant}.")
    return names


# Of commands over data sets: which columns and rows are read, and how the work is carried out.
TextColumn = Annotated[str | None, typer.Option(help="The column with the text.", metavar="COLUMN")]
PairColumn = Annotated[
    str | None, typer.Option(help="The column with the second text.", metavar="COLUMN")
]
LabelColumn = Annotated[
    str | None, typer.Option(help="The column with the label.", metavar="COLUMN")
]
LabelNames = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        help="What the model calls labels that the data call otherwise, such as "
        "ok=not-toxic,bad=toxic; may be repeated.",
        metavar="DATA=MODEL,…",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="The column with a name for each text.", metavar="COLUMN"),
]
Split = Annotated[
    str | None, typer.Option(help="The split, of a folder with several.", metavar="NAME")
]
Sample = Annotated[
    int | None, typer.Option(help="Take so many texts at random.", metavar="N", min=1)
]
Limit = Annotated[
    int | None, typer.Option(help="Take the first so many texts.", metavar="N", min=1)
]
Gold = Annotated[
    bool,
    typer.Option("--gold", help="Explain the label that the data give, not the predicted one."),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        help="Who does the work: inline (this process), processes (several of this machine), "
        "ray (a cluster). [default: inline, or processes with --workers 2 and more]",
        metavar="NAME",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="How many work side by side, each with a model of its own.",
        metavar="N",
        min=1,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="The Ray cluster, such as 10.0.0.1:6379. [default: Ray is started here]",
        metavar="HOST:PORT",
    ),
]
Restart = Annotated[bool, typer.Option("--restart", help="Begin anew, and drop what was done.")]
Mend = Annotated[bool, typer.Option("--mend", help="Do parts again whose files are damaged.")]
FailFast = Annotated[
    bool,
    typer.Option("--fail-fast", help="End at the first text that cannot be explained."),
]
