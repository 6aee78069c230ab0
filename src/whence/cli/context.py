"""whence context: which words of an output came from the context, and from which of its words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from whence.cli import completing
from whence.cli import options as o
from whence.cli.compare import chosen
from whence.cli.running import loaded, progress, writable
from whence.cli.texts import read_document
from whence.cli.written import GivenIds, Tokens, given_continuation, show, write
from whence.core.errors import InputError
from whence.core.usual import METHOD_OF_WRITTEN

if TYPE_CHECKING:
    from whence.core.contextual import ContextUse

EXAMPLE = (
    'Example: whence context --model translator --context "the lamps stay under the teacher ." '
    '--input "they push the cow ." --separator " | " --html context.html'
)

Context = Annotated[
    str | None, typer.Option(help="The context: what stands before the input.", metavar="TEXT")
]
Input = Annotated[
    str | None,
    typer.Option(
        "--input", help="What is translated, answered or gone on with; it stays.", metavar="TEXT"
    ),
]
Documents = Annotated[
    list[Path] | None,
    typer.Option(
        "--documents",
        help="Files that are the context, instead of --context; may be repeated, and further files "
        "may follow (--documents a.txt b.txt). Sentences are then the units.",
        metavar="FILE",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        "--text",
        help="The column with the text, of documents with columns (.csv, .tsv, .jsonl, .parquet, "
        "also .gz); each of their records is a document.",
        metavar="COLUMN",
    ),
]
MoreDocuments = Annotated[
    list[Path] | None, typer.Argument(help="Further files for --documents.", metavar="[FILE]...")
]
MeasureName = Annotated[
    Literal[
        "kl-divergence", "p-cxmi", "in-context-pvi", "probability-difference", "likelihood-ratio"
    ],
    typer.Option(help="How both runs are compared, with the context and without it."),
]
Deviations = Annotated[
    float | None,
    typer.Option(
        help="A token depends on the context at mean + so many standard deviations of the scores; "
        "below 0 there is no such threshold. [default: 1 for ten tokens or more; of fewer, each "
        "is judged by itself]",
        metavar="N",
    ),
]
Most = Annotated[
    int | None, typer.Option(help="Keep so many of the strongest tokens.", metavar="N", min=1)
]
Least = Annotated[
    float | None,
    typer.Option(
        help="The floor: a token must score more than that. [default: what the measure says where "
        "context takes a choice of two from even to 9 in 10]",
        metavar="N",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        "--method",
        help="What attributes the tokens to the context, with commas between; may be repeated. "
        f"[default: {METHOD_OF_WRITTEN}]",
        autocompletion=completing.methods,
        metavar="A,B,…",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of a method, such as lime.samples=500; may be repeated.",
        metavar="METHOD.NAME=VALUE",
    ),
]
Read = Annotated[
    Literal["probability", "log-probability", "logit", "kl"],
    typer.Option(
        help="Which number of a token is attributed: it, less that of the likeliest token without "
        "context; or kl, how far all that could stand there is from what it is without context."
    ),
]
Units = Annotated[
    Literal["word", "token", "sentence", "section"] | None,
    typer.Option(
        help="What of the context gets a score; a section is a document. "
        "[default: word; sentence for --documents]"
    ),
]
Given = Annotated[
    str | None,
    typer.Option(
        "--continuation",
        help="Take this text as the output, instead of letting the model write.",
        metavar="TEXT",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What stands between context and input, and between documents; \\n is a line break. "
        "[default: a line break; a blank for encoder-decoders; an empty line in a chat]",
        metavar="TEXT",
    ),
]
Chat = Annotated[
    bool | None,
    typer.Option(
        "--chat/--plain",
        help="Write both as a message to the model, through its chat template; or as plain text. "
        "[default: --chat if it has a template]",
    ),
]
System = Annotated[
    str | None, typer.Option(help="The system's message, in a chat.", metavar="TEXT")
]
OtherContext = Annotated[
    str | None,
    typer.Option(
        help="Compare with this context, instead of with none.",
        metavar="TEXT",
    ),
]
Evidence = Annotated[
    bool | None,
    typer.Option(
        "--evidence/--no-evidence",
        help="Hold the sources of every token against random ones. [default: of the 5 strongest]",
    ),
]


def command(
    files: MoreDocuments = None,
    column: Column = None,
    model: o.ModelName = "writer",
    context: Context = None,
    given_input: Input = None,
    documents: Documents = None,
    measure: MeasureName = "kl-divergence",
    deviations: Deviations = None,
    most: Most = None,
    least: Least = None,
    methods: Methods = None,
    setting: Set = None,
    read: Read = "probability",
    units: Units = None,
    tokens: Tokens = 30,
    continuation: Given = None,
    continuation_ids: GivenIds = None,
    separator: Separator = None,
    chat: Chat = None,
    system: System = None,
    other_context: OtherContext = None,
    seed: o.Seed = 0,
    memory: o.Memory = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    html: o.Html = None,
    csv: o.Csv = None,
    save: o.Save = None,
    evidence: Evidence = None,
    budget: o.Budget = None,
    rankings: o.Rankings = None,
    steps: o.Steps = None,
    debug: o.Debug = False,
) -> None:
    """Find the words of an output that depend on the context, and what of it they rest on.

    The model writes with the context, and is then forced to the same output without it. Where both
    differ far more than elsewhere, each word is traced to words (or sentences) of the context.
    """
    del debug
    for path in (html, csv, save):
        writable(path)
    wishes = chosen(",".join(methods or [METHOD_OF_WRITTEN]), setting or [], seed)
    assert wishes is not None
    follows = given_continuation(continuation, continuation_ids)
    before = _context(context, documents, files, column)
    if given_input is None:
        raise InputError('there is no input: give what the model is to answer, --input "…".')

    with loaded(model, dtype, device) as loaded_model:
        result = _used(
            loaded_model,
            given_input,
            before,
            wishes,
            measure=measure,
            deviations=_deviations(deviations),
            most=most,
            least=least,
            continuation=follows,
            max_new_tokens=tokens,
            units=units,
            separator=None if separator is None else separator.replace("\\n", "\n"),
            chat=chat,
            system=system,
            other_context=other_context,
            read=read,
            seed=seed,
            memory=memory,
            evidence=evidence,
            budget=budget,
            rankings=rankings,
            steps=steps,
        )
    write(result, html, csv, save)  # first: a pipe into head may end before all is shown
    show(result, as_json)


def _deviations(given: float | None) -> float | str | None:
    if given is None:
        return "auto"
    return None if given < 0 else given


def _used(model: Any, given_input: str, before: Any, methods: Any, **options: Any) -> ContextUse:
    from whence.explaining.context import context

    with progress("context") as say:
        return context(model, given_input, before, methods, progress=say, **options)


def _context(
    context: str | None,
    documents: Sequence[Path] | None,
    files: Sequence[Path] | None,
    column: str | None = None,
) -> str | dict[str, str]:
    """The context: a text, or files by names that tell them apart."""
    paths = [*(documents or []), *(files or [])]
    if files and not documents:
        raise InputError(
            f"{str(files[0])!r} is no option: files follow --documents, and texts --context and "
            "--input, in quotes."
        )
    if context is not None and paths:
        raise InputError("give --context or --documents, not both.")
    if context is not None:
        return context
    if not paths:
        raise InputError('there is no context: give --context "…", or --documents FILE FILE ….')
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    texts: dict[str, str] = {}
    for name, path in zip(names, paths, strict=True):
        for document, content in read_document(path, name, column).items():
            if document in texts:
                raise InputError(f"the document {document!r} is given twice.")
            texts[document] = content
    return texts
