"""whence attend: the attention maps of a text, as a page to look at, a table of heads, or a short summary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from whence.cli import options as o
from whence.cli.running import emit_json, loaded, note, progress, show, tell_forecast, writable
from whence.cli.texts import encode, read_texts

EXAMPLE = 'Example: whence attend "not bad at all" --html heads.html'
Reply = Annotated[
    str | None,
    typer.Option(help="The decoder's text, for an encoder-decoder model.", metavar="TEXT"),
]
Html = Annotated[
    Path | None,
    typer.Option(
        help="Write a self-contained page with the head, model and neuron views.",
        metavar="FILE",
        readable=False,
    ),
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare", help="Align two texts and show the attention that differs: a probe for bias."
    ),
]
Table = Annotated[
    bool,
    typer.Option("--heads", help="What each head does, and what is lost when it is switched off."),
]
Keep = Annotated[
    str, typer.Option("--keep", help="all, mean, max, or numbers of heads: 0,3", metavar="HEADS")
]
Layers = Annotated[str, typer.Option(help="all, or numbers of layers: 0,3", metavar="LAYERS")]
Neurons = Annotated[
    bool | None,
    typer.Option(
        "--neurons/--no-neurons",
        help="Keep queries and keys for the page's neuron view. [default: where there is a page]",
    ),
]
Generate = Annotated[
    int,
    typer.Option(
        help="Let the model write so many tokens, and show its attention as it wrote.", metavar="N"
    ),
]


def command(
    words: o.Words = None,
    model: o.ModelName = "sentiment",
    units: o.Units = "word",
    pair: o.Pair = None,
    reply: Reply = None,
    generate: Generate = 0,
    compare: Compare = False,
    heads: Table = False,
    keep: Keep = "all",
    layers: Layers = "all",
    neurons: Neurons = None,
    target: o.TargetLabel = None,
    file: o.File = None,
    overflow: o.ShortOverflow = "error",
    memory: o.Memory = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    html: Html = None,
    debug: o.Debug = False,
) -> None:
    """Look at the attention maps of a text.

    Prints their shapes and the share of attention that special tokens take in each layer; --html writes a page to explore
    them, --heads lists what each head does, --compare shows what differs between two texts.
    """
    del debug
    from whence.core.errors import InputError

    writable(html)
    texts, lines = list(words or []), []
    if compare:
        if len(texts) != 2 or file is not None:
            raise InputError(f"--compare takes two texts, in quotes; got {len(texts)}.")
        given = {
            "--heads": heads,
            "--neurons": neurons,
            "--target": target,
            "--pair": pair,
            "--reply": reply,
            "--generate": generate,
        }
        if ignored := [name for name, value in given.items() if value]:
            raise InputError(
                f"{ignored[0]} means nothing beside --compare, which shows two texts as they are."
            )
    else:
        lines = read_texts(texts, file)
        if html is not None and len(lines) > 1:
            raise InputError(f"--html is a page of one text, and there are {len(lines)}.")
    chosen: dict[str, Any] = {
        "heads": _numbers(keep),
        "layers": _numbers(layers),
        "memory": memory,
        "forecast": tell_forecast,
    }
    with loaded(model, dtype, device) as m:
        from whence.explaining.attend import attend, probe

        if compare:
            with progress("attend"):
                found = probe(m, *texts, units=units, overflow=overflow, **chosen)
            if as_json:
                emit_json(found.to_dict())
            else:
                from whence.views.probe import probe_view

                show(lambda _: probe_view(found))
            _write(found, html)
            return
        for line in lines:
            passage = encode(m, line, pair=pair, units=units, reply=reply, overflow=overflow)
            effects = heads and m.kind.has_head and keep == "all" and not generate
            chosen |= {"effects": effects, "target": target, "generate": generate}
            with progress("attend"):
                maps = _with_neurons(
                    attend,
                    m,
                    passage,
                    neurons,
                    html is not None and not generate,
                    units=units,
                    **chosen,
                )
            _print(maps, line.content, heads, as_json)
            _write(maps, html)


def _with_neurons(
    attend: Any, model: Any, passage: Any, asked: bool | None, wanted: bool, **chosen: Any
) -> Any:
    """Neurons where they were asked for; unasked, where there is a page and the model shows them."""
    from whence.core.errors import TooLarge, Unsupported

    try:
        return attend(model, passage, neurons=wanted if asked is None else asked, **chosen)
    except (Unsupported, TooLarge) as problem:
        if asked is not None or not wanted:
            raise
        maps = attend(model, passage, **chosen)
        note(f"the page has no neuron view: {problem}")
        return maps


def _print(maps: Any, text: str, heads: bool, as_json: bool) -> None:
    summary: dict[str, Any] = {
        "text": text,
        "tokens": list(maps.tokens),
        "kinds": {
            kind: {
                "layers_heads_from_to": list(weights.shape),
                "layers": list(maps.layer_names(kind)),
                "modules": list(maps.modules[kind]),
                "share_on_special_tokens": maps.special_share(kind).tolist(),
            }
            for kind, weights in maps.weights.items()
        },
    }
    if heads:
        for kind in maps.kinds:
            summary["kinds"][kind]["heads"] = maps.heads(kind).rows()
    if as_json:
        emit_json(summary)
        return
    from whence.views.heads import heads_view
    from whence.views.listing import maps_view

    show(lambda _: maps_view(summary))
    if heads:
        for kind in maps.kinds:
            show(lambda _, kind=kind: heads_view(maps.heads(kind)))


def _write(result: Any, html: Path | None) -> None:
    if html is not None:
        result.to_html(html)
        note(
            f"wrote {html} ({html.stat().st_size / 1e6:.2g} MB): open it in a browser; it needs no network."
        )


def _numbers(given: str) -> Literal["all", "mean", "max"] | list[int]:
    from whence.core.errors import InputError

    if given in ("all", "mean", "max"):
        return given
    try:
        return [int(n) for n in given.replace(" ", "").split(",")]
    except ValueError:
        raise InputError(
            f"{given!r} is neither a word such as 'all' or 'mean' nor numbers with commas between them."
        ) from None
