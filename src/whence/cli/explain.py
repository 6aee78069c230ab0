"""whence explain: one method, on one text or many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer
from typer.main import get_command

from whence.cli import completing, running
from whence.cli import options as o
from whence.cli.reports import Encoded, Results
from whence.cli.running import loaded, progress, tell_forecast, writable
from whence.cli.settings import split_flags
from whence.cli.stored import check_out, through_run
from whence.cli.texts import encode, label_of, own_pair, read_texts
from whence.core.usual import METHOD_OF_A_TEXT

if TYPE_CHECKING:
    from whence.core.attribution import Attribution

EXAMPLE = 'Example: whence explain "a moving, funny film" --target positive --removal delete'
# texts that run together; with evidence, which takes far longer, each is shown as it is done
AT_ONCE = 16


def command(
    words: o.Words = None,
    method: str = typer.Option(
        METHOD_OF_A_TEXT,
        help="The method; 'whence methods' lists them, 'whence methods NAME' explains one.",
        autocompletion=completing.method,
        metavar="NAME",
    ),
    model: o.ModelName = "sentiment",
    target: o.TargetLabel = None,
    against: o.Against = None,
    read: o.Read = "logit",
    units: o.Units = "word",
    pair: o.Pair = None,
    reply: o.Reply = None,
    at: o.At = None,
    file: o.File = None,
    text: o.TextOfFile = None,
    out: o.Out = None,
    seed: o.Seed = 0,
    overflow: o.Overflow = "error",
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
    full: o.Full = False,
    every_row: o.EveryRow = False,
    debug: o.Debug = False,
) -> None:
    """Explain one text, or many, by one method: a score for each word.

    The method's own settings are options too, such as --baseline mask: 'whence methods NAME' lists
    and explains them.
    """
    del debug
    second = o.second_text(pair)
    from whence.core.registry import find_method, settings_of
    from whence.core.request import Request
    from whence.core.target import Target

    check_out(out, file)
    writable(html)
    writable(csv)
    writable(save)
    info = find_method(method)
    texts, settings = split_flags(words or [], info, own_flags)
    lines = read_texts(texts, file, text, second)
    second = own_pair(lines, second)
    request = Request.of(
        info.name,
        target=Target(target, against, read, at),
        units=units,
        pair=second,
        reply=reply,
        seed=seed,
        overflow=overflow,
        memory=memory,
        evidence=evidence,
        budget=budget,
        rankings=rankings,
        steps=steps,
        **settings,
    )
    # a wrong setting is found before the model is loaded
    settings_of(info, request.wishes[0].settings, seed)

    results = Results(len(lines), as_json, full, every_row, save, html, csv)
    with loaded(model, dtype, device) as loaded_model, results.kept():
        if out is not None:
            through_run(loaded_model, lines, request, out, results, alone=True)
            return

        from whence.explaining.explain import explain_as_asked
        from whence.explaining.room import forecast_request

        def explained(some: Sequence[Encoded], first: int) -> list[Attribution]:
            passages = [passage for _, passage in some]
            longest = max(passages, key=len)
            tell_forecast(forecast_request(loaded_model, longest, request, running.LOUD))
            label = label_of(info.name, first, len(lines))
            with progress(label, is_first=first == 0) as say:
                return explain_as_asked(loaded_model, passages, request, say)

        at_once = 1 if evidence else AT_ONCE
        for first in range(0, len(lines), at_once):
            batch: list[Encoded] = []
            for line in lines[first : first + at_once]:
                with results.bad.without(line):
                    passage = encode(
                        loaded_model, line, pair=second, reply=reply, units=units, overflow=overflow
                    )
                    batch.append((line, passage))
            for line, attribution in results.bad.together(batch, partial(explained, first=first)):
                with results.bad.without(line):
                    results.add(attribution)


def own_flags() -> list[str]:
    """The flags that the command itself has, for the hint at a mistyped one."""
    alone = typer.Typer()
    alone.command()(command)
    flags = []
    for parameter in get_command(alone).params:
        flags += [flag for flag in parameter.opts if flag.startswith("--")]
    return flags
