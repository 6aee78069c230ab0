"""whence features explain: a text explained by a few features."""

from __future__ import annotations

from typing import Annotated

import typer

from whence.cli import completing
from whence.cli import options as o
from whence.cli.compare import chosen
from whence.cli.features_shared import Folder, ModelName, opened, told
from whence.cli.running import emit, emit_json, note, writable
from whence.core.percent import percent

EXAMPLE = 'Example: whence features explain "Once upon a time" my-features --top 8'
Words = Annotated[str, typer.Argument(metavar="TEXT", help="The text, in quotes.")]
Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        "--method",
        help="Methods that play a game, with commas between: occlusion, shapley, lime, banzhaf …",
        autocompletion=completing.methods,
        metavar="A,B,…",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of a method, such as lime.samples=500.",
        metavar="METHOD.NAME=VALUE",
    ),
]
Top = Annotated[
    int, typer.Option(help="How many features are told apart: those with most effect.", metavar="N")
]
Features = Annotated[
    str | None,
    typer.Option(help="These features instead, by number: 17,203.", metavar="NUMBERS"),
]

Evidence = Annotated[
    bool,
    typer.Option(
        "--evidence/--no-evidence",
        help="Test whether each method's ranking of the features is better than random ones.",
    ),
]


def explain(
    text: Words,
    folder: Folder,
    methods: Methods = "occlusion",
    setting: Set = None,
    target: o.TargetLabel = None,
    against: o.Against = None,
    read: o.Read = "logit",
    top: Top = 10,
    features: Features = None,
    seed: o.Seed = 0,
    evidence: Evidence = True,
    rankings: o.Rankings = None,
    steps: o.Steps = None,
    model: ModelName = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    full: o.Full = False,
    as_json: o.AsJson = False,
    html: o.Html = None,
    save: o.Save = None,
    debug: o.Debug = False,
) -> None:
    """Explain a text by the features of a sparse autoencoder.

    Each feature's effect on the target is found by switching it off, and the scores are held
    against random rankings, as those of words are. All other features are one unit, and so is what
    the autoencoder does not reconstruct.
    """
    del debug
    writable(html)
    writable(save)
    from whence.core.target import Target

    by_method = chosen(methods, setting or [], seed)
    assert by_method is not None
    numbers = None if features is None else _numbers(features)
    with opened(folder, model, dtype, device) as (its_model, autoencoder):
        from whence.core.evidence import USUAL_RANKINGS, USUAL_STEPS
        from whence.features.explaining import compare

        comparison = compare(
            its_model,
            autoencoder,
            text,
            by_method,
            target=Target(target, against, read),
            top=top,
            features=numbers,
            seed=seed,
            evidence=evidence,
            rankings=rankings or USUAL_RANKINGS,
            steps=steps or USUAL_STEPS,
        )
    result = comparison if len(comparison) > 1 else comparison.first
    if as_json:
        emit_json(result.to_dict())
    else:
        emit(result.to_text(full=full))
    detail = comparison.first.detail or {}
    missed = detail.get("share not reconstructed")
    if missed is not None:
        note(f"the autoencoder does not reconstruct {percent(missed, 1)} of the variance here")
    if save is not None:
        result.save(save)
        told(save, "result")
    if html is not None:
        result.to_html(html)
        told(html, "report")


def _numbers(given: str) -> list[int]:
    from whence.core.errors import InputError

    try:
        return [int(number) for number in given.replace(" ", "").split(",")]
    except ValueError:
        raise InputError(
            f"--features takes whole numbers with commas between, not {given!r:.60}."
        ) from None
