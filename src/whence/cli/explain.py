"""whence explain: one method, on one text or many."""

from __future__ import annotations

import typer
from typer.main import get_command

from whence.cli import options as o
from whence.cli.running import emit_json, loaded, progress, show, tell_forecast, writable
from whence.cli.settings import split_flags
from whence.cli.texts import encode, read_texts

EXAMPLE = 'Example: whence explain "a moving, funny film" --target positive --baseline mask'
AT_ONCE = 16  # texts between two prints


def command(
    words: o.Words = None,
    method: str = typer.Option(
        "integrated-gradients", help="The method; 'whence methods' lists them.", metavar="NAME"
    ),
    model: o.ModelName = "sentiment",
    target: o.TargetLabel = None,
    against: o.Against = None,
    read: o.Read = "logit",
    units: o.Units = "word",
    pair: o.Pair = None,
    at: o.At = None,
    file: o.File = None,
    seed: o.Seed = 0,
    overflow: o.Overflow = "error",
    memory: o.Memory = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    html: o.Html = None,
    save: o.Save = None,
    evidence: o.Evidence = None,
    every_row: o.EveryRow = False,
    debug: o.Debug = False,
) -> None:
    """Explain by one method: a score for each unit.

    The settings of the method are flags too: see 'whence methods'.
    """
    del debug
    from whence.cli.reports import finish
    from whence.core.errors import InputError
    from whence.core.registry import find_method, settings_of
    from whence.core.target import Target
    from whence.views.terminal import attribution_view

    writable(html)
    writable(save)
    info = find_method(method)
    texts, settings = split_flags(words or [], info, own_flags)
    settings_of(info, settings, seed)
    lines = read_texts(texts, file)
    if save is not None and len(lines) > 1:
        raise InputError(
            f"--save keeps one result, and there are {len(lines)} texts; use --json > FILE."
        )
    results = []
    with loaded(model, dtype, device) as loaded_model:
        from whence.explaining.explain import explain
        from whence.trace.forecast import forecast_trace

        wanted = Target(target, against, read, at)
        for first in range(0, len(lines), AT_ONCE):
            some = [
                encode(loaded_model, line, pair=pair, units=units, overflow=overflow)
                for line in lines[first : first + AT_ONCE]
            ]
            tell_forecast(forecast_trace(loaded_model, max(some, key=len), info.needs))
            with progress(f"text {first + 1} of {len(lines)}" if len(lines) > 1 else method) as say:
                made = explain(
                    loaded_model,
                    some,
                    method,
                    target=wanted,
                    units=units,
                    seed=seed,
                    overflow=overflow,
                    memory=memory,
                    evidence=len(lines) == 1 if evidence is None else evidence,
                    progress=say,
                    **settings,
                )
            for a in made:
                emit_json(a.to_dict()) if as_json else show(
                    lambda console, a=a: attribution_view(a, console, every_row)
                )
            results += made if html or save else []
    if save is not None:
        results[0].save(save)
    finish(results, html)


def own_flags() -> list[str]:
    """The flags that the command itself has, for the hint at a mistyped one."""
    alone = typer.Typer()
    alone.command()(command)
    return [
        flag
        for parameter in get_command(alone).params
        for flag in parameter.opts
        if flag.startswith("--")
    ]
