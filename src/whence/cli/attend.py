"""whence attend: a short summary of a text's attention maps."""

from __future__ import annotations

from typing import Annotated

import typer

from whence.cli import options as o
from whence.cli.running import emit_json, loaded, progress, show
from whence.cli.texts import encode, read_texts

EXAMPLE = 'Example: whence attend "not bad at all" --json'
Reply = Annotated[str | None, typer.Option(help="The decoder's text, for an encoder-decoder model.", metavar="TEXT")]


def command(
    words: o.Words = None,
    model: o.ModelName = "sentiment",
    units: o.Units = "word",
    pair: o.Pair = None,
    reply: Reply = None,
    file: o.File = None,
    overflow: o.ShortOverflow = "error",
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Summarise the attention maps of a text.

    Prints their shapes, and the share of attention that special tokens take in each layer.
    """
    del debug
    lines = read_texts(words or [], file)
    with loaded(model, dtype, device) as m:
        from whence.attending import attend

        for line in lines:
            passage = encode(m, line, pair=pair, units=units, reply=reply, overflow=overflow)
            with progress("attend"):
                maps = attend(m, passage, units=units)
            summary = {
                "text": line.content,
                "tokens": list(maps.tokens),
                "kinds": {
                    kind: {
                        "layers_heads_from_to": list(weights.shape),
                        "modules": list(maps.modules[kind]),
                        "share_on_special_tokens": maps.special_share(kind).tolist(),
                    }
                    for kind, weights in maps.weights.items()
                },
            }
            if as_json:
                emit_json(summary)
            else:
                from whence.views.listing import maps_view

                show(lambda _, summary=summary: maps_view(summary))
