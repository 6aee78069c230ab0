"""attend: the attention of every layer and head, as arrays over tokens or words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError, Unsupported
from whence.core.maps import GENERATED, AttentionMaps, Axis, Neurons, axis_of, groups_of, membership
from whence.core.passage import Passage, first_tokens
from whence.core.probe import Probe, probed
from whence.core.target import Target, as_target
from whence.models.model import Model, Overflow
from whence.trace.attention import Layer
from whence.trace.effects import effects_of_heads
from whence.trace.forecast import attention_shape, forecast_maps
from whence.trace.generated import continued, generate
from whence.trace.lxmert import axes, is_lxmert, memberships
from whence.trace.memory import Forecast, check
from whence.trace.reducers import Block, HeadChoice, Heads, Keys, Queries, Reducer, ToUnits
from whence.trace.trace import Trace, Via, trace

OPTIONS = (
    "heads='mean' (--keep mean) keeps one map a layer, layers=[…] or heads=[…] (--layers, --keep) keep only some, units='word' or "
    "'sentence' merges tokens, overflow='truncate' or a shorter text"
)


def attend(
    model: Model,
    text: Any,
    *,
    pair: str | None = None,
    reply: str | None = None,
    units: Literal["word", "token", "sentence"] = "word",
    heads: Literal["all", "mean", "max"] | int | Sequence[int] = "all",
    layers: Literal["all"] | int | Sequence[int] = "all",
    neurons: bool = False,
    effects: bool = False,
    target: Target | str | int | None = None,
    generate: int = 0,
    overflow: Overflow = "error",
    memory: str | int | float | None = None,
    forecast: Callable[[Forecast], None] | None = None,
    attention_via: Via = "auto",
) -> AttentionMaps:
    """The attention of every layer and head on one text, as arrays; sub-words merged into words.

    For an encoder-decoder, ``reply`` is the decoder's text, and there are three kinds of maps: encoder, decoder, cross. With
    ``generate`` the model writes so many tokens itself, and the maps are stitched from its steps. ``heads`` and ``layers`` choose
    what is kept, ``neurons`` keeps queries and keys too, ``effects`` switches every head off once to see what the ``target`` loses (a
    forward pass for each head; ``maps.heads()`` shows it). ``memory`` is a budget ("2GB"; by default most of what is free): the
    need is forecast, told to ``forecast``, and a run over the budget is refused.

    >>> import whence
    >>> maps = whence.attend(whence.load("sentiment"), "not bad")
    >>> bool(abs(maps.weights["encoder"].sum(-1) - 1).max() < 1e-5)
    True
    """
    _check_asked(model, overflow, reply, heads, neurons, effects, generate)
    passage = _encoded(model, text, pair, reply, units, overflow)
    if effects:
        passage = model.placed(passage, as_target(target))
    chosen_heads = _several(heads, "heads", ("all", "mean", "max"))
    chosen_layers = _several(layers, "layers", ("all",))
    _check_memory(
        model, passage, units, chosen_heads, chosen_layers, neurons, generate, memory, forecast
    )
    if generate:
        return _of_generated(model, passage, units, generate, chosen_heads, chosen_layers)
    if is_lxmert(model.hf):
        return _of_two_streams(model, passage, units, chosen_heads, chosen_layers)
    start, side = decoder_side(model, passage)
    reducer = _reducer(model, passage, side, units, chosen_heads, chosen_layers)
    more: dict[str, Reducer] = {"query": Queries(), "key": Keys()} if neurons else {}
    t = trace(model, [passage], reducer=reducer, reducers=more, attention_via=attention_via)
    own = axis_of(passage, units)
    replied = own if side is None else axis_of(side, units, before=(start,))
    made = _made(
        model,
        passage,
        units,
        chosen_heads,
        chosen_layers,
        t.attentions,
        t.layers,
        _sides(t.attentions, own, replied),
    )
    if neurons:
        made = replace(made, neurons=_neurons(t, passage, side, start, made, chosen_heads))
    if effects:
        found = effects_of_heads(model, passage, target, t)
        kept = {
            k: {n: np.stack([c[int(y)] for y in made.layer_names(k)]) for n, c in by.items()}
            for k, by in found.items()
        }
        made = replace(made, effects=kept)
    return made


def probe(model: Model, first: Any, second: Any, **options: Any) -> Probe:
    """Two texts aligned, and the attention that differs between them. Options are those of ``attend``.

    >>> import whence
    >>> p = whence.probe(whence.load("sentiment"), "the nurse was late. She", "the nurse was late. He")
    >>> [c for c in p.labels if "→" in c]
    ['She → He']
    """
    return probed(attend(model, first, **options), attend(model, second, **options))


def _check_asked(
    model: Model,
    overflow: str,
    reply: str | None,
    heads: Any,
    neurons: bool,
    effects: bool,
    generate: Any,
) -> None:
    """What cannot be asked for together."""
    if overflow == "window":
        raise InputError("attention maps are of one run; overflow is 'error' or 'truncate'.")
    if not isinstance(generate, int):
        raise InputError(f"generate= is a number of tokens, not {generate!r}.")
    if generate and reply is not None:
        raise InputError(
            "either reply= gives the decoder's text or generate= lets the model write it."
        )
    if (neurons or effects) and is_lxmert(model.hf):
        raise Unsupported(
            "LXMERT's attention is seen through hooks, which show neither queries and keys nor let a head be switched off."
        )
    if neurons and generate:
        raise InputError(
            "neurons are of a given text: attend to what was generated (maps.passage) once more, with neurons=True."
        )
    if effects and (heads != "all" or generate):
        raise InputError(
            "effects are of single heads on a given text: use heads='all' and no generate=."
        )


def _encoded(
    model: Model, text: Any, pair: str | None, reply: str | None, units: str, overflow: Overflow
) -> Passage:
    if not isinstance(text, Passage):
        return model.encode(text, pair, units=units, reply=reply, overflow=overflow)  # type: ignore[arg-type]
    if units not in ("word", "token", text.kind):
        raise InputError(
            f"this passage was cut into units of kind {text.kind!r}; encode its text with units={units!r} instead."
        )
    return model.fitted(text, overflow)


def _several(choice: Any, name: str, words: tuple[str, ...]) -> Any:
    """A word, or a tuple of numbers."""
    if isinstance(choice, str):
        if choice not in words:
            raise InputError(
                f"{name} is {', '.join(map(repr, words))}, a number or a list of numbers, not {choice!r}."
            )
        return choice
    numbers = (choice,) if isinstance(choice, int) else tuple(choice)
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers):
        raise InputError(
            f"{name} is {', '.join(map(repr, words))}, a number or a list of numbers, not {choice!r}."
        )
    return tuple(map(int, numbers))


def _check_memory(
    model: Model,
    passage: Passage,
    units: str,
    heads: Any,
    layers: Any,
    neurons: bool,
    new: int,
    memory: Any,
    told: Any,
) -> None:
    shape = attention_shape(model)
    for name, chosen, at in (("layer", layers, 0), ("head", heads, 1)):
        most = max(
            (counts[at] for counts in shape.values()), default=None
        )  # an encoder may have more than its decoder
        outside = (
            [n for n in chosen if n < 0 or (most is not None and n >= most)]
            if not isinstance(chosen, str)
            else []
        )
        if outside:
            raise InputError(
                f"{name} {outside[0]} is outside the {most} {name}s of this model (0 to {(most or 0) - 1})."
            )
    own = len(passage) if units == "token" else len(groups_of(passage))
    side = decoder_side(model, passage)[1]
    answer = (
        new + 1
        if side is None or new
        else 1 + (len(side) if units == "token" else len(groups_of(side)))
    )
    own = own if model.is_encoder_decoder else own + new
    places = {
        "encoder": (own, own),
        "decoder": (answer, answer) if model.is_encoder_decoder else (own, own),
        "cross": (answer, own),
    }
    kept_heads = None if heads == "all" or new else 1 if isinstance(heads, str) else len(heads)
    found = forecast_maps(
        model,
        passage,
        places,
        kept_heads,
        None if isinstance(layers, str) else len(layers),
        neurons,
    )
    if told is not None:
        told(found)
    check(found, memory, OPTIONS)


def _reducer(
    model: Model,
    passage: Passage,
    side: Passage | None,
    units: str,
    heads: HeadChoice,
    layers: Literal["all"] | tuple[int, ...],
) -> Reducer:
    kept = None if layers == "all" else layers
    if units == "token":
        return Heads(heads, kept)
    source = _member(model, passage, units, 0)
    return ToUnits(source, None if side is None else _member(model, side, units, 1), heads, kept)


def _member(
    model: Model, passage: Passage, units: str, before: int
) -> Float[Tensor, "1 unit token"]:
    return (
        torch.from_numpy(membership(passage, units, before=before))[None]
        .to(model.device)
        .to(model.dtype)
    )


def _made(
    model: Model,
    passage: Passage,
    units: str,
    heads: Any,
    layers: Any,
    maps: dict[str, tuple[Tensor, ...]],
    modules: Mapping[str, tuple[Layer, ...]],
    sides: Mapping[str, tuple[Axis, Axis]],
) -> AttentionMaps:
    """Arrays of the chosen layers, by kind; a kind that has none of them (a short decoder) is left out."""
    kept = {
        k: list(range(len(found))) if layers == "all" else [n for n in layers if n < len(found)]
        for k, found in maps.items()
    }
    kept = {k: numbers for k, numbers in kept.items() if numbers}
    return AttentionMaps(
        passage=passage,
        weights={k: _stacked(maps, k, kept[k]) for k in kept},
        from_axis={k: sides[k][0] for k in kept},
        to_axis={k: sides[k][1] for k in kept},
        modules={k: tuple(modules[k][n].module for n in kept[k]) for k in kept},
        kept_layers={} if layers == "all" else {k: tuple(kept[k]) for k in kept},
        kept_heads=()
        if heads == "all"
        else (heads,)
        if isinstance(heads, str)
        else tuple(map(str, heads)),
        units=passage.kind if units != "token" else units,
        model=model.name,
    )


def _sides(kinds: Iterable[str], own: Axis, replied: Axis) -> dict[str, tuple[Axis, Axis]]:
    """Who looks and what is looked at, in each kind of map; without a decoder's side of its own, ``replied`` is ``own``."""
    return {
        k: (own if k == "encoder" else replied, replied if k == "decoder" else own) for k in kinds
    }


def _stacked(
    maps: dict[str, tuple[Tensor, ...]], kind: str, layers: Sequence[int]
) -> Float[np.ndarray, "layer head from to"]:
    """One array of the chosen layers. The kind is taken out of ``maps`` and each layer let go as it is copied: a long text is not held
    twice."""
    left: list[Tensor | None] = list(maps.pop(kind))
    first = left[layers[0]]
    assert first is not None
    out = np.empty((len(layers), *first.shape[1:]), dtype=np.float32)
    del first
    for place, n in enumerate(layers):
        layer, left[n] = left[n], None
        assert layer is not None
        out[place] = layer[0].float().cpu().numpy()
    return out


def _neurons(
    t: Trace, passage: Passage, side: Passage | None, start: str, made: AttentionMaps, heads: Any
) -> dict[str, Neurons]:
    """Queries, scaled as they meet the keys, and keys; of the layers and heads that were kept, in their order (all heads of a mean)."""
    replied = passage.tokens if side is None else (start, *side.tokens)
    out = {}
    for kind in made.kinds:
        kept = [int(n) for n in made.layer_names(kind)]
        query, key = (_stacked(t.reduced[name], kind, kept) for name in ("query", "key"))
        if not isinstance(heads, str):
            query, key = query[:, list(heads)], key[:, list(heads)]
        from_labels = passage.tokens if kind == "encoder" or side is None else replied
        to_labels = replied if kind == "decoder" else passage.tokens
        out[kind] = Neurons(query, key, 1.0, from_labels, to_labels)
    return out


def _of_generated(
    model: Model, passage: Passage, units: str, tokens: int, heads: Any, layers: Any
) -> AttentionMaps:
    """The last written token was never read by the model, so it has neither a row nor a column."""
    written = generate(model, passage, tokens)
    whole = continued(model, passage, written.ids)
    if model.is_encoder_decoder:
        assert whole.reply is not None
        start, side = (
            str(model.tokenizer.convert_ids_to_tokens(int(model.decoder_start))),
            first_tokens(whole.reply, len(written.ids) - 1),
        )
        own, replied = axis_of(whole, units), axis_of(side, units, before=(start,))
        replied = replace(replied, part=np.where(replied.part == 0, GENERATED, replied.part))
        shown = whole
    else:
        shown, side, start = first_tokens(whole, len(whole) - 1), None, ""
        own = axis_of(shown, units)
        firsts = (
            np.arange(len(shown))
            if units == "token"
            else np.array([g[0] for g in groups_of(shown)])
        )
        own = replied = replace(
            own, part=np.where((firsts >= len(passage)) & (own.part >= 0), GENERATED, own.part)
        )
    reducer = _reducer(model, shown, side, units, heads, layers)
    reduced = {
        kind: tuple(
            reducer(Block(m, None, 0, kind, layer.index))
            for m, layer in zip(maps, written.layers[kind], strict=True)
        )
        for kind, maps in written.attentions.items()
    }
    return _made(
        model, whole, units, heads, layers, reduced, written.layers, _sides(reduced, own, replied)
    )


def _of_two_streams(
    model: Model, passage: Passage, units: str, heads: Any, layers: Any
) -> AttentionMaps:
    """A model whose text and image are streams of their own: four kinds of maps, each with its own two sides."""
    t = trace(model, [passage], reducer=Heads(heads, None if layers == "all" else layers))
    most = max(map(len, t.layers.values()))
    if layers != "all" and (outside := [n for n in layers if n >= most]):
        raise InputError(
            f"layer {outside[0]} is outside the {most} layers of this model (0 to {most - 1})."
        )
    sides = {kind: axes(passage, kind, units) for kind in t.layers}
    made = _made(model, passage, units, heads, layers, t.attentions, t.layers, sides)
    weights = {}
    for kind, whole in made.weights.items():
        looks, seen = memberships(passage, kind, units)
        weights[kind] = np.einsum(
            "fq,lhqk,tk->lhft", looks / looks.sum(-1, keepdims=True), whole, seen
        ).astype(np.float32)
    return replace(made, weights=weights)


def decoder_side(model: Model, passage: Passage) -> tuple[str, Passage | None]:
    """What stands on the decoder's side: its start token, and the reply (nothing, or a classifier's own text, moved on by one)."""
    if not model.is_encoder_decoder:
        return "", None
    start = str(model.tokenizer.convert_ids_to_tokens(int(model.decoder_start)))
    if model.kind.reads_twice:
        return start, first_tokens(passage, len(passage) - 1)
    return start, first_tokens(passage, 0) if passage.reply is None else passage.reply.still_open()
