"""whence attend: the attention maps of a text, as a page, a table of heads, or a short summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from whence.cli import options as o
from whence.cli.reports import BadLines
from whence.cli.running import emit_json, loaded, note, progress, show, tell_forecast, writable
from whence.cli.texts import encode, label_of, naming, own_pair, read_texts

if TYPE_CHECKING:
    from whence.core.maps import AttentionMaps
    from whence.core.passage import Passage
    from whence.core.probe import Probe, TemplateProbe
    from whence.core.templates import Templates
    from whence.models.model import Model

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
        "--compare",
        help="Compare two texts, beside words that should not matter: a probe for bias.",
    ),
]
TemplateFile = Annotated[
    Path | None,
    typer.Option(
        help="Compare two lists of words in many sentences, one a line, with {} for the word; "
        "also files of Winogender and WinoBias; - is stdin.",
        metavar="FILE",
        readable=False,
    ),
]
WordList = Annotated[
    str | None,
    typer.Option("--words", help="Words for the templates: she,her", metavar="WORDS"),
]
Against = Annotated[
    str | None,
    typer.Option("--against", help="What they are compared with: he,him", metavar="WORDS"),
]
ControlPair = Annotated[
    str | None,
    typer.Option(
        "--control",
        help="Two words that should make no difference: they,someone "
        "[default: someone,somebody and the like]",
        metavar="WORDS",
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


@dataclass(frozen=True)
class Wish:
    """What the flags ask of ``attend`` for every text, and what is to become of the maps.

    ``neurons`` is None where no flag says whether queries and keys are kept.
    """

    units: Literal["word", "token", "sentence"]
    overflow: Literal["error", "truncate"]
    keep: Literal["all", "mean", "max"] | list[int]
    layers: Any
    memory: str | None
    target: str | None
    generate: int
    neurons: bool | None
    heads: bool
    as_json: bool
    html: Path | None


def command(
    words: o.Words = None,
    model: o.ModelName = "sentiment",
    units: o.Units = "word",
    pair: o.Pair = None,
    reply: Reply = None,
    generate: Generate = 0,
    compare: Compare = False,
    templates: TemplateFile = None,
    word_list: WordList = None,
    against: Against = None,
    control: ControlPair = None,
    heads: Table = False,
    keep: Keep = "all",
    layers: Layers = "all",
    neurons: Neurons = None,
    target: o.TargetLabel = None,
    file: o.File = None,
    text: o.TextOfFile = None,
    overflow: o.ShortOverflow = "error",
    memory: o.Memory = None,
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    html: Html = None,
    debug: o.Debug = False,
) -> None:
    """Look at the attention maps of a text.

    Says what the heads do and which of them is worth a look. --html writes a page to explore them,
    --heads lists every head. --compare shows what differs between two texts, --templates between
    two lists of words in many sentences.
    """
    del debug
    second = o.second_text(pair)
    from whence.core.errors import InputError

    writable(html)
    texts = list(words or [])
    lines = []
    pairs = _control_pair(control)
    if templates is not None:
        if texts or file is not None:
            raise InputError("--templates takes its sentences from the file, and no other text.")
        _refuse(
            {"--heads": heads, "--pair": pair, "--reply": reply, "--generate": generate},
            "--templates, which compares predictions",
        )
        sentences = _read_templates(templates, word_list, against)
        with loaded(model, dtype, device) as loaded_model:
            _compare_templates(loaded_model, sentences, target, pairs, as_json, html)
        return
    _refuse({"--words": word_list, "--against": against}, "a text: they are for --templates")
    if control is not None and not compare:
        raise InputError("--control goes with --compare or --templates.")
    if compare:
        if len(texts) != 2 or file is not None:
            raise InputError(f"--compare takes two texts, in quotes; got {len(texts)}.")
        _refuse(
            {
                "--heads": heads,
                "--neurons": neurons,
                "--pair": pair,
                "--reply": reply,
                "--generate": generate,
            },
            "--compare, which shows two texts as they are",
        )
    else:
        lines = read_texts(texts, file, text, second, compares=True)
        second = own_pair(lines, second)
        if html is not None and len(lines) > 1:
            raise InputError(f"--html is a page of one text, and there are {len(lines)}.")

    wish = Wish(
        units=units,
        overflow=overflow,
        keep=_numbers(keep),
        layers=_numbers(layers),
        memory=memory,
        target=target,
        generate=generate,
        neurons=neurons,
        heads=heads,
        as_json=as_json,
        html=html,
    )
    with loaded(model, dtype, device) as loaded_model:
        if compare:
            _compare(loaded_model, texts, wish, pairs)
            return
        bad = BadLines(len(lines), as_json, verb="looked at")
        for i, line in enumerate(lines):
            with bad.without(line):
                passage = encode(
                    loaded_model, line, pair=second, units=units, reply=reply, overflow=overflow
                )
                with naming(line), progress(label_of("attend", i, len(lines))):
                    maps = _maps(loaded_model, passage, wish)
                _print(maps, line.content, wish)
                _write(maps, wish.html)
                bad.done += 1
        bad.end()


def _refuse(flags: dict[str, Any], beside: str) -> None:
    """Name the first flag that has a value and no meaning beside another."""
    from whence.core.errors import InputError

    for name, value in flags.items():
        if value:
            raise InputError(f"{name} means nothing beside {beside}.")


def _control_pair(given: str | None) -> list[tuple[str, str]] | None:
    """The two words of --control; None for the usual ones."""
    from whence.core.errors import InputError

    if given is None:
        return None
    words = _words(given)
    if len(words) != 2:
        raise InputError(f"--control takes two words with a comma between them, not {given!r}.")
    return [(words[0], words[1])]


def _words(given: str | None) -> list[str]:
    return [word.strip() for word in (given or "").split(",") if word.strip()]


def _read_templates(file: Path, words: str | None, against: str | None) -> Templates:
    from whence.cli.texts import read_whole
    from whence.core.templates import read_templates

    return read_templates(read_whole(file), _words(words), _words(against), str(file))


def _compare_templates(
    model: Model,
    templates: Templates,
    target: str | None,
    control: list[tuple[str, str]] | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Two lists of words in many sentences."""
    from whence.core.templates import NEUTRAL
    from whence.explaining.probe import probe_templates
    from whence.views.templates import templates_view

    with progress("attend"):
        result = probe_templates(model, templates, target=target, control=control or NEUTRAL)
    if as_json:
        emit_json(result.to_dict())
    else:
        show(lambda _: templates_view(result))
    _write(result, html)


def _compare(
    model: Model,
    texts: Sequence[str],
    wish: Wish,
    control: list[tuple[str, str]] | None,
) -> None:
    """Two texts, aligned: both predictions, and the attention that differs."""
    from whence.core.templates import NEUTRAL
    from whence.explaining.probe import probe
    from whence.views.probe import probe_view

    first, second = texts
    with progress("attend"):
        result = probe(
            model,
            first,
            second,
            units=wish.units,
            overflow=wish.overflow,
            heads=wish.keep,
            layers=wish.layers,
            memory=wish.memory,
            target=wish.target,
            control=control or NEUTRAL,
            forecast=tell_forecast,
        )
    if wish.as_json:
        emit_json(result.to_dict())
    else:
        show(lambda _: probe_view(result))
    _write(result, wish.html)


def _maps(model: Model, passage: Passage, wish: Wish) -> AttentionMaps:
    """The maps; with neurons where they were asked for.

    Said where the model does not show its queries and keys, or they do not fit.

    ``the page has no neuron view: BertModel has none``

    Unasked, they are kept where there is a page to show them and the model shows them.
    """
    from whence.core.errors import TooLarge, Unsupported

    for_the_page = wish.html is not None and not wish.generate
    if wish.neurons is not None or not for_the_page:
        return _attend(model, passage, wish, neurons=bool(wish.neurons))
    try:
        return _attend(model, passage, wish, neurons=True)
    except (Unsupported, TooLarge) as problem:
        maps = _attend(model, passage, wish, neurons=False)
        note(f"the page has no neuron view: {problem}")
        return maps


def _attend(model: Model, passage: Passage, wish: Wish, *, neurons: bool) -> AttentionMaps:
    from whence.core.look import Look
    from whence.explaining.attend import look_at

    can_switch_off = model.kind.has_head and wish.keep == "all" and not wish.generate
    look = Look(
        units=wish.units,
        heads=wish.keep,
        layers=wish.layers,
        neurons=neurons,
        effects=wish.heads and can_switch_off,
        target=wish.target,
        generate=wish.generate,
        memory=wish.memory,
    )
    return look_at(model, passage, look, tell_forecast)


def _print(maps: AttentionMaps, text: str, wish: Wish) -> None:
    """A summary of the maps, and what each head does where that was asked for.

    Said where neither every head nor a page was asked for.

    ``--heads lists every head; --html FILE writes a page to look at each of them.``
    """
    summary = _summary(maps, text)
    if wish.heads:
        for kind in maps.kinds:
            summary["kinds"][kind]["heads"] = maps.heads(kind).rows()
    if wish.as_json:
        emit_json(summary)
        return
    from whence.views.heads import heads_view, maps_view

    show(lambda _: maps_view(maps))
    if wish.heads:
        for kind in maps.kinds:
            show(lambda _, kind=kind: heads_view(maps.heads(kind)))
    elif wish.html is None:
        note("--heads lists every head; --html FILE writes a page to look at each of them.")


def _summary(maps: AttentionMaps, text: str) -> dict[str, Any]:
    """Shapes, names, what the heads do, and the share on special tokens, by kind of attention."""
    from whence.views.habits import habits

    kinds = {}
    for kind, weights in maps.weights.items():
        kinds[kind] = {
            "layers_heads_from_to": list(weights.shape),
            "layers": list(maps.layer_names(kind)),
            "modules": list(maps.modules[kind]),
            "share_on_special_tokens": maps.special_share(kind).tolist(),
            "habits": [vars(habit) for habit in habits(maps.heads(kind))],
        }
    summary = {"text": text, "tokens": list(maps.tokens), "kinds": kinds}
    summary["worth_a_look"] = vars(maps.opening())
    if maps.written:
        summary |= {"prompt": maps.prompt, "written": maps.written}
    return summary


def _write(result: AttentionMaps | Probe | TemplateProbe, html: Path | None) -> None:
    """Said where a page was written.

    ``wrote heads.html (1.2 MB): open it in a browser; it needs no network.``
    """
    if html is None:
        return
    result.to_html(html)
    megabytes = html.stat().st_size / 1e6
    note(f"wrote {html} ({megabytes:.2g} MB): open it in a browser; it needs no network.")


def _numbers(given: str) -> Literal["all", "mean", "max"] | list[int]:
    """A word, or numbers with commas between them."""
    from whence.core.errors import InputError

    if given in ("all", "mean", "max"):
        return given
    try:
        return [int(n) for n in given.replace(" ", "").split(",")]
    except ValueError:
        raise InputError(
            f"{given!r} is neither a word such as 'all' or 'mean' "
            "nor numbers with commas between them."
        ) from None
