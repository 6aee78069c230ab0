"""whence features steer: a model with a feature clamped, and the receipt of it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from whence.cli import options as o
from whence.cli.features_shared import Data, Folder, ModelName, opened, told
from whence.cli.running import emit, emit_json, progress, writable

EXAMPLE = 'Example: whence features steer my-features "The captain" --feature 17 --to 5x'
Prompt = Annotated[
    str, typer.Argument(metavar="PROMPT", help="What is continued, or classified; in quotes.")
]
Feature = Annotated[int, typer.Option(help="The feature, by its number.", metavar="N")]
To = Annotated[
    str,
    typer.Option(
        help="An activation, such as 3.5, or a multiple of the largest one seen, such as 5x.",
        metavar="VALUE",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="The label (class) of a classifier whose probability is measured, by name or number. "
        "[default: the one that the model predicts]",
        metavar="LABEL",
    ),
]
Tokens = Annotated[int, typer.Option(help="How many tokens are written, at most.", metavar="N")]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample", help="Draw each token by its probability, instead of taking the likeliest."
    ),
]
Peak = Annotated[
    float | None,
    typer.Option(help="The largest activation, where the autoencoder does not know it."),
]
Limit = Annotated[int, typer.Option(help="Read the first so many documents.", metavar="N")]


def steer(
    folder: Folder,
    prompt: Prompt,
    feature: Feature,
    to: To = "5x",
    tokens: Tokens = 40,
    sample: Sample = False,
    target: Target = None,
    data: Data = None,
    limit: Limit = 200,
    peak: Peak = None,
    seed: o.Seed = 0,
    model: ModelName = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    html: o.Html = None,
    save: o.Save = None,
    debug: o.Debug = False,
) -> None:
    """Clamp a feature while the model runs, and measure what that does.

    Prints what is written (or the label) before and after, at several doses, and a receipt:
    whether the feature did more than random directions of the same length and than the difference
    of means, and what it broke on unrelated text. --data gives texts to measure on.
    """
    del debug
    writable(html)
    writable(save)
    with opened(folder, model, dtype, device) as (its_model, autoencoder):
        from itertools import islice

        from whence.features.corpus import open_corpus
        from whence.features.receipts import receipt

        texts: list[str] = []
        if data:
            source = [str(path) for path in data] if len(data) > 1 else str(data[0])
            texts = list(islice(open_corpus(source, limit=limit).documents(), limit))
        decoding: dict[str, Any] = {"do_sample": True} if sample else {}
        with progress("steer"):
            result = receipt(
                its_model,
                autoencoder,
                feature,
                to,
                prompt,
                texts=texts,
                peak=peak,
                max_new_tokens=tokens,
                target=target,
                seed=seed,
                **decoding,
            )
    if as_json:
        emit_json(result.to_dict())
    else:
        emit(str(result))
    if save is not None:
        result.save(save)
        told(save, "receipt")
    if html is not None:
        result.to_html(html)
        told(html, "receipt")
