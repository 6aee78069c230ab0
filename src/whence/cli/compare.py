"""whence compare: several methods on one text, on one shared trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from whence.cli import completing
from whence.cli import options as o
from whence.cli.reports import Results
from whence.cli.running import loaded, progress, writable
from whence.cli.settings import assigned
from whence.cli.stored import check_out, through_run
from whence.cli.texts import encode, label_of, naming, own_pair, read_texts
from whence.core.errors import InputError

EXAMPLE = (
    'Example: whence compare "not bad at all" '
    "--methods gradient-l2,integrated-gradients --html report.html"
)
Methods = Annotated[
    str | None,
    typer.Option(
        help="The methods to compare, with commas between. [default: all that fit the model]",
        autocompletion=completing.methods,
        metavar="A,B,…",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of one method, such as lime.samples=500; may be repeated.",
        metavar="METHOD.SETTING=VALUE",
    ),
]
Add = Annotated[
    list[Path] | None,
    typer.Option(
        "--add",
        help="A saved result of the same text, to be judged beside the others; may be repeated.",
        metavar="FILE.json",
    ),
]
Read = Annotated[
    Literal["logit", "log-probability", "probability", "margin"] | None,
    typer.Option(help="How the target is read. [default: logit, or as in --add]"),
]


def command(
    words: o.Words = None,
    methods: Methods = None,
    setting: Set = None,
    add: Add = None,
    model: o.ModelName = "sentiment",
    target: o.TargetLabel = None,
    against: o.Against = None,
    read: Read = None,
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
    """Explain one text, or many, by several methods, and test each of them.

    Prints the answer: what the model says, the words that hold it up, which methods beat random
    rankings, and how far those agree. --full adds every score, cost and note.
    """
    del debug
    second = o.second_text(pair)
    from whence.core.reading import read as read_result
    from whence.core.registry import methods as all_methods
    from whence.core.request import Request, units_as_given
    from whence.core.target import Target
    from whence.explaining.added import of_lines, shared_target, wishes_and_added

    check_out(out, file)
    if out is not None and add:
        raise InputError("--out keeps what methods find; --add brings what others found: choose.")
    writable(html)
    writable(csv)
    writable(save)
    lines = read_texts(words or [], file, text, second)
    second = own_pair(lines, second)
    settings_by_method = chosen(methods, setting or [], seed)
    takes_all = settings_by_method is None
    if settings_by_method is None:
        settings_by_method = {name: {} for name in all_methods()}
    saved = [read_result(path) for path in add or []]
    wishes, added = wishes_and_added([settings_by_method, *saved])
    added_to_lines = of_lines(added, [line.content for line in lines])
    names_no_target = target is None and against is None and at is None and read is None
    wanted_target = Target(target, against, read or "logit", at)
    if added and names_no_target:
        wanted_target = shared_target(added)
    request = Request(
        wishes=wishes,
        targets=(wanted_target,),
        pair=second,
        reply=reply,
        seed=seed,
        overflow=overflow,
        memory=memory,
        evidence=evidence,
        budget=budget,
        rankings=rankings,
        steps=steps,
    )

    results = Results(len(lines), as_json, full, every_row, save, html, csv)
    with loaded(model, dtype, device) as loaded_model, results.kept():
        if out is not None:
            from whence.explaining.rows import fitting

            wanted = replace(request, units=units_as_given(units))
            if takes_all:
                wanted = fitting(loaded_model, wanted)
            through_run(loaded_model, lines, wanted, out, results, alone=False)
            return

        from whence.explaining.explain import compare_as_asked

        for i, line in enumerate(lines):
            with results.bad.without(line):
                passage = encode(
                    loaded_model, line, pair=second, reply=reply, units=units, overflow=overflow
                )
                label = label_of("compare", i, len(lines))
                with naming(line), progress(label, is_first=i == 0) as say:
                    comparison = compare_as_asked(
                        loaded_model, passage, request, say, takes_all, added_to_lines[i]
                    )
                results.add(comparison)


def chosen(methods: str | None, given: list[str], seed: int) -> dict[str, dict[str, str]] | None:
    """Methods with their settings; None for every method that fits.

    Wrong names are found here, before the model is loaded.
    """
    if methods is None and not given:
        return None
    from whence.core.errors import SettingsError
    from whence.core.registry import find_method, settings_of
    from whence.core.registry import methods as all_methods

    if methods is None:
        names = list(all_methods())
    else:
        given_names = [name.strip() for name in methods.split(",")]
        names = [find_method(name).name for name in given_names if name]

    by_method = assigned(given)
    for name in by_method:
        if name not in names:
            raise SettingsError(
                f"--set {name}.…, but {name!r} is not among the methods {', '.join(names)}."
            )
    for name in names:
        settings_of(find_method(name), by_method.get(name, {}), seed)
    return {name: by_method.get(name, {}) for name in names}
