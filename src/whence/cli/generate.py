"""whence generate: what a model writes after a prompt, and what each word of it rests on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from whence.cli import completing
from whence.cli import options as o
from whence.cli.against import Instead, InsteadFirst, InsteadOf
from whence.cli.compare import chosen
from whence.cli.running import loaded, note, progress, writable
from whence.cli.texts import has_columns, read_texts, read_whole
from whence.cli.written import GivenIds, Tokens, given_continuation, show, write
from whence.core.errors import InputError, SettingsError
from whence.core.usual import METHOD_OF_WRITTEN

if TYPE_CHECKING:
    from whence.core.generation import Generation
    from whence.core.passage import Passage
    from whence.core.target import Target
    from whence.models.model import Model

EXAMPLE = 'Example: whence generate "Once upon a time there was a" --tokens 8 --html story.html'

# of what whence.generate takes itself, and --set therefore cannot: what to use
OWN_NAMES = {
    "model": "--model",
    "prompt": "the prompt in quotes",
    "methods": "--methods",
    "continuation": "--continuation",
    "max_new_tokens": "--tokens",
    "outputs": "--outputs",
    "target": "--at",
    "against": "--against",
    "instead": "--against",
    "instead_first": "--against",
    "instead_of": "--against",
    "read": "--read",
    "scored": "--only-prompt",
    "units": "--units",
    "seed": "--seed",
    "evidence": "--no-evidence",
    "budget": "--budget",
    "memory": "--memory",
    "rankings": "--rankings",
    "steps": "--steps",
    "progress": "nothing: what is done is shown by itself",
}

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PROMPT",
        help="The prompt, in quotes. Without it (or with '-') it is read from standard input: "
        "all of that is one prompt.",
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        help="A file with the prompt: all its lines are one prompt. A line break at its very end "
        "is left out. Of a .csv, .tsv, .jsonl or .parquet file (also .gz), the text of its one "
        "record.",
        metavar="FILE",
    ),
]
Chat = Annotated[
    Path | None,
    typer.Option(
        help="A JSON file with the messages of a chat, [{role, content}, …], which the model's own "
        "template writes out; - is stdin. If the last message is the assistant's, that is what "
        "was written, and it is explained.",
        metavar="FILE",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        "--method",
        help=f"The methods, with commas between; may be repeated. [default: {METHOD_OF_WRITTEN}]",
        autocompletion=completing.methods,
        metavar="A,B,…",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of a method, such as lime.samples=500, or any other option of "
        "transformers' generate(), such as repetition_penalty=1.2; may be repeated.",
        metavar="[METHOD.]NAME=VALUE",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Draw each token by its probability, instead of taking the likeliest: among all, "
        "unless --top-k or --top-p says otherwise.",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(help="With --sample: below 1 favours likely tokens, above 1 unlikely ones."),
]
TopK = Annotated[
    int | None,
    typer.Option(help="With --sample: draw among the N likeliest.", metavar="N", min=1),
]
TopP = Annotated[
    float | None,
    typer.Option(help="With --sample: draw among the likeliest that have this share together."),
]
Beams = Annotated[
    int | None,
    typer.Option(
        help="Follow N texts side by side and take the likeliest of them.", metavar="N", min=1
    ),
]
Given = Annotated[
    str | None,
    typer.Option(
        "--continuation",
        help="Explain this text as what was written, instead of letting the model write.",
        metavar="TEXT",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        help="Why this and not that? A word, in the place of what --at names (without --at, of the "
        "first written word); or a longer text, in the place of all that was written.",
        metavar="WORD|TEXT",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        help="What the evidence is about: a written word, or the number of a written token, "
        "counted from 0. [default: all that was written]",
        metavar="N|WORD",
    ),
]
Until = Annotated[
    int | None,
    typer.Option(
        help="With --at as a number: all tokens up to this one, which is not among them.",
        metavar="N",
    ),
]
Outputs = Annotated[
    str | None,
    typer.Option(
        help="The written tokens to explain, by number: 0,3,5-9. [default: all]", metavar="NUMBERS"
    ),
]
Read = Annotated[
    Literal[
        "log-probability",
        "probability",
        "logit",
        "margin",
        "cross-entropy",
        "perplexity",
        "entropy",
        "kl",
    ],
    typer.Option(help="Which number of each written token is explained."),
]
Units = Annotated[
    Literal["word", "token", "sentence", "section"],
    typer.Option(
        help="What gets a score: each word, token or sentence; of a --chat also each message "
        "(section)."
    ),
]
OnlyPrompt = Annotated[
    bool,
    typer.Option(
        "--only-prompt", help="Score the prompt alone, and not what was written before a token."
    ),
]


def command(
    words: Words = None,
    model: o.ModelName = "writer",
    methods: Methods = None,
    setting: Set = None,
    tokens: Tokens = 30,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    beams: Beams = None,
    seed: o.Seed = 0,
    chat: Chat = None,
    continuation: Given = None,
    continuation_ids: GivenIds = None,
    against: Against = None,
    instead: Instead = None,
    instead_first: InsteadFirst = False,
    instead_of: InsteadOf = None,
    at: At = None,
    until: Until = None,
    outputs: Outputs = None,
    read: Read = "log-probability",
    units: Units = "word",
    only_prompt: OnlyPrompt = False,
    file: File = None,
    column: o.TextOfFile = None,
    memory: o.Memory = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    html: o.Html = None,
    csv: o.Csv = None,
    save: o.Save = None,
    evidence: o.Evidence = True,
    budget: o.Budget = None,
    rankings: o.Rankings = None,
    steps: o.Steps = None,
    debug: o.Debug = False,
) -> None:
    """Let a model continue a prompt, and explain every token that it wrote.

    Each is explained by the prompt and by what was written before it. Then the methods are held
    against random rankings on all that was written, or on what --at names.
    """
    del debug
    for path in (html, csv, save):
        writable(path)
    own_settings, others = _split(setting or [])
    wishes = chosen(",".join(methods or [METHOD_OF_WRITTEN]), own_settings, seed)
    assert wishes is not None
    before = _by_old_names(instead, instead_first, instead_of)
    decoding = _decoding(sample, temperature, top_k, top_p, beams) | others
    numbers = None if outputs is None else _ranges(outputs)
    follows = given_continuation(continuation, continuation_ids)
    if units == "section" and chat is None:
        raise InputError("--units section is for the messages of a --chat.")
    messages, text = None, ""
    if chat is not None:
        _refuse_prompt(words, file)
        messages = _messages(chat)
        if follows is None:
            messages, follows = _last_answer(messages)
    else:
        text = _prompt(words or [], file, column)

    with loaded(model, dtype, device) as loaded_model:
        prompt: Any = text
        if messages is not None:
            prompt = loaded_model.encode_chat(messages, units=units)
        result = _explained(
            loaded_model,
            prompt,
            wishes,
            continuation=follows,
            max_new_tokens=tokens,
            outputs=numbers,
            target=_target(at, until, read),
            against=against,
            **before,
            read=read,
            scored="prompt" if only_prompt else "all",
            units="word" if units == "section" else units,
            seed=seed,
            evidence=evidence,
            budget=budget,
            memory=memory,
            rankings=rankings,
            steps=steps,
            **decoding,
        )
    write(result, html, csv, save)  # first: a pipe into head may end before all is shown
    show(result, as_json)


def _explained(
    model: Model, prompt: str | Passage, methods: Mapping[str, Any], **options: Any
) -> Generation:
    from whence.explaining.generate import generate

    with progress("generate") as say:
        return generate(model, prompt, methods, progress=say, **options)


# ---------------------------------------------------------------------- what is continued


def _only_record(file: Path, column: str | None) -> str:
    """The prompt in a file with columns, which must have one record."""
    lines = read_texts([], file, column)
    if len(lines) > 1:
        raise InputError(
            f"{str(file)!r} has {len(lines)} records, and one prompt is explained: name a file "
            "with one record. As a prompt of its own, the file is read through a pipe."
        )
    (line,) = lines
    if line.problem is not None:
        raise InputError(f"{line.where}: {line.problem}")
    return line.content


def _prompt(words: Sequence[str], file: Path | None, column: str | None = None) -> str:
    """One prompt: the argument, or all of a file or of stdin."""
    import sys

    if len(words) > 1:
        raise InputError(
            f"{len(words)} prompts were given, {words[0]!r:.40} and {words[1]!r:.40} …: "
            "put one in quotes, or use --file."
        )
    if words and file is not None:
        raise InputError("give a prompt or --file, not both.")
    if words and words[0] != "-":
        return words[0]
    if file is None and not words and sys.stdin.isatty():
        raise InputError(
            "there is no prompt: give it in quotes, with --file FILE, or through a pipe."
        )
    if file is not None and has_columns(file):
        return _only_record(file, column)
    text = read_whole(file or Path("-"))
    # an editor ends a file with a line break that nobody means
    return text.removesuffix("\n").removesuffix("\r")


def _refuse_prompt(words: list[str] | None, file: Path | None) -> None:
    if words or file is not None:
        raise InputError("--chat holds the messages; give no prompt and no --file beside it.")


def _messages(file: Path) -> list[Any]:
    """The messages of a chat, as JSON has them; what is wrong with them the model's side says."""
    try:
        messages = json.loads(read_whole(file))
    except json.JSONDecodeError as problem:
        raise InputError(f"{file} is no JSON: {problem}.") from None
    if isinstance(messages, dict) and isinstance(messages.get("messages"), list):
        messages = messages["messages"]  # as many data sets have it
    if not isinstance(messages, list):
        raise InputError(
            f"{file} must hold a list of messages, "
            f'[{{"role": "user", "content": "…"}}], not a {type(messages).__name__}.'
        )
    return messages


def _last_answer(messages: list[Any]) -> tuple[list[Any], str | None]:
    """The messages before the assistant's last one, and what that says; or all, and nothing.

    Said where a conversation ends with an answer of the assistant.

    ``the assistant's last message is taken as what was written, and is explained``
    """
    last = messages[-1] if messages else None
    if len(messages) < 2 or not isinstance(last, dict) or last.get("role") != "assistant":
        return messages, None
    if not isinstance(last.get("content"), str):
        return messages, None  # refused with a good reason, like any other message
    note("the assistant's last message is taken as what was written, and is explained")
    return messages[:-1], last["content"]


# ---------------------------------------------------------------------- what is asked


def _decoding(
    sample: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    beams: int | None,
) -> dict[str, Any]:
    """The flags as options of transformers' ``generate``; None of them is a default."""
    drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    asked = {name: value for name, value in drawn.items() if value is not None}
    if asked and not sample:
        name = next(iter(asked)).replace("_", "-")
        raise InputError(f"--{name} is about drawing tokens: add --sample.")
    if sample:
        asked = {"do_sample": True, **asked}
    if beams is not None:
        asked["num_beams"] = beams
    return asked


def _by_old_names(
    instead: str | None, instead_first: bool, instead_of: str | None
) -> dict[str, Any]:
    """What --against was called before, where that was used."""
    options = {"instead": instead, "instead_of": instead_of}
    given = {name: value for name, value in options.items() if value is not None}
    return {**given, "instead_first": True} if instead_first else given


def _split(given: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Settings of methods, METHOD.NAME=VALUE, and options of decoding, NAME=VALUE."""
    of_methods, of_decoding = [], {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if "." in name:
            of_methods.append(assignment)
            continue
        if not equals or not name.isidentifier():
            raise SettingsError(
                "--set takes METHOD.SETTING=VALUE or, for transformers' generate(), NAME=VALUE, "
                f"not {assignment!r}."
            )
        if name in OWN_NAMES:
            raise SettingsError(
                f"--set {name}=… is no option of transformers' generate(); use {OWN_NAMES[name]}."
            )
        of_decoding[name] = _value(value)
    return of_methods, of_decoding


def _value(text: str) -> Any:
    """A number, true, false, null or a list where it is one; else the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _target(at: str | None, until: int | None, read: Any) -> Target | str | int | None:
    if until is None:
        return int(at) if at is not None and at.isdecimal() else at
    from whence.core.target import Target

    if at is None or not at.isdecimal():
        raise InputError("--until goes with --at as a number: --at 3 --until 6.")
    return Target(at=int(at), until=until, read=read)


def _ranges(given: str) -> list[int]:
    """Numbers and ranges, "0,3,5-9", as a list; the ends of a range are in it."""
    numbers: list[int] = []
    for part in given.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise InputError(f"--outputs takes numbers and ranges, such as 0,3,5-9, not {given!r}.")
        first = int(match.group(1))
        last = first if match.group(2) is None else int(match.group(2))
        if last < first:
            raise InputError(f"--outputs: the range {part} ends before it begins.")
        numbers += range(first, last + 1)
    return numbers
