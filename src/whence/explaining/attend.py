"""attend: the attention of every layer and head, as arrays over tokens or words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.errors import InputError, Unsupported
from whence.core.look import Look
from whence.core.maps import GENERATED, AttentionMaps, Axis, Neurons, axis_of, groups_of, membership
from whence.core.passage import Passage, first_tokens
from whence.core.target import Target, as_target
from whence.models.model import Model, Overflow
from whence.trace.attention import Layer
from whence.trace.effects import effects_of_heads
from whence.trace.forecast import attention_shape, forecast_effects, forecast_maps
from whence.trace.generated import Generated, continued, generate
from whence.trace.guard import check_attention
from whence.trace.lxmert import axes, is_lxmert, memberships
from whence.trace.memory import Forecast, check
from whence.trace.reducers import Block, Heads, Keys, Queries, Reducer, ToUnits
from whence.trace.trace import Trace, Via, trace

OPTIONS = (
    "heads='mean' (--keep mean) keeps one map a layer, "
    "layers=[…] or heads=[…] (--layers, --keep) keep only some, "
    "units='word' or 'sentence' merges tokens, overflow='truncate' or a shorter text"
)

T = TypeVar("T")


def attend(
    model: Model,
    text: Any,
    *,
    pair: str | Sequence[str] | None = None,
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

    For an encoder-decoder, ``reply`` is the decoder's text, and there are three kinds of maps:
    encoder, decoder, cross. With ``generate`` the model writes so many tokens itself, and the maps
    are stitched from its steps. ``heads`` and ``layers`` choose what is kept. ``neurons`` keeps
    queries and keys too. ``effects`` switches every head off once to see what the ``target`` loses:
    a forward pass for each head, shown by ``maps.heads()``.

    ``memory`` is a budget ("2GB"; by default most of what is free). What the run needs is forecast
    before it begins and told to ``forecast``; a run over the budget is refused.

    >>> import whence
    >>> maps = whence.attend(whence.load("sentiment"), "not bad")
    >>> bool(abs(maps.weights["encoder"].sum(-1) - 1).max() < 1e-5)
    True
    """
    look = Look(
        units=units,
        heads=heads,
        layers=layers,
        neurons=neurons,
        effects=effects,
        target=target,
        generate=generate,
        reply=reply,
        pair=pair,
        overflow=overflow,
        memory=memory,
        attention_via=attention_via,
    )
    return look_at(model, text, look, forecast)


def look_at(
    model: Model,
    text: Any,
    look: Look,
    forecast: Callable[[Forecast], None] | None = None,
) -> AttentionMaps:
    """What ``attend`` does, with its options in one record."""
    if (look.neurons or look.effects) and is_lxmert(model.hf):
        raise Unsupported(
            "LXMERT's attention is seen through hooks, which show neither queries and keys "
            "nor let a head be switched off."
        )
    passage = _encoded(model, text, look)
    if look.effects:
        passage = model.placed(passage, as_target(look.target))
    _check_numbers(model, look)
    need = _forecast(model, passage, look)
    if forecast is not None:
        forecast(need)
    check(need, look.memory, OPTIONS)
    if not is_lxmert(model.hf):
        check_attention(model, look.attention_via)

    if look.generate:
        return _of_generated(model, passage, look)
    if is_lxmert(model.hf):
        return _of_two_streams(model, passage, look)
    return _of_given_text(model, passage, look)


def _encoded(model: Model, text: Any, look: Look) -> Passage:
    if not isinstance(text, Passage):
        units: Any = look.units
        return model.encode(text, look.pair, units=units, reply=look.reply, overflow=look.overflow)
    if look.units not in ("word", "token", text.kind):
        raise InputError(
            f"this passage was cut into units of kind {text.kind!r}; "
            f"encode its text with units={look.units!r} instead."
        )
    return model.fitted(text, look.overflow)


def _check_numbers(model: Model, look: Look) -> None:
    """Refuse layers and heads that no part of the model has."""
    counts = attention_shape(model).values()
    # an encoder may have more layers than its decoder: the larger number counts
    layers = max((layers for layers, _ in counts), default=None)
    heads = max((heads for _, heads in counts), default=None)
    _check_within(look.chosen_layers, layers, "layer")
    _check_within(look.chosen_heads, heads, "head")


def _check_within(chosen: tuple[int, ...] | None, most: int | None, name: str) -> None:
    """``most`` is None where the configuration does not tell how many there are."""
    for number in chosen or ():
        if number < 0 or (most is not None and number >= most):
            raise InputError(
                f"{name} {number} is outside the {most} {name}s of this model "
                f"(0 to {(most or 0) - 1})."
            )


def forecast_look(model: Model, text: Any, look: Look) -> Forecast:
    """What looking at a text will hold; nothing of it is run."""
    return _forecast(model, _encoded(model, text, look), look)


def _forecast(model: Model, passage: Passage, look: Look) -> Forecast:
    own = _count_places(passage, look)
    side = decoder_side(model, passage)[1]
    answer = 1 + look.generate
    if side is not None and not look.generate:
        answer = 1 + _count_places(side, look)

    if model.is_encoder_decoder:
        decoder = (answer, answer)
    else:
        own += look.generate
        decoder = (own, own)
    places = {"encoder": (own, own), "decoder": decoder, "cross": (answer, own)}

    layers = None if look.chosen_layers is None else len(look.chosen_layers)
    need = forecast_maps(model, passage, places, _count_heads(look), layers, look.neurons)
    if look.effects:
        need = replace(need, working=max(need.working, forecast_effects(model, passage)))
    return need


def _count_places(passage: Passage, look: Look) -> int:
    """How many rows a map over this passage has."""
    return len(passage) if look.units == "token" else len(groups_of(passage))


def _count_heads(look: Look) -> int | None:
    """How many heads are held; None for all, as they are while the steps of generation pass."""
    if look.heads == "all" or look.generate:
        return None
    return 1 if look.chosen_heads is None else len(look.chosen_heads)


@dataclass(frozen=True)
class _Run:
    """What a run showed: maps by kind, the layers they come from, and the two sides of each."""

    maps: dict[str, tuple[Tensor, ...]]
    layers: Mapping[str, tuple[Layer, ...]]
    sides: Mapping[str, tuple[Axis, Axis]]


def _of_given_text(model: Model, passage: Passage, look: Look) -> AttentionMaps:
    start, side = decoder_side(model, passage)
    neurons: dict[str, Reducer] = {}
    if look.neurons:
        neurons = {"query": Queries(), "key": Keys()}
    run = trace(
        model,
        [passage],
        reducer=_reducer(model, passage, side, look),
        reducers=neurons,
        attention_via=look.attention_via,
    )

    own = replied = axis_of(passage, _units(look))
    if side is not None:
        replied = axis_of(side, _units(look), before=(start,))
    sides = _sides(run.attentions, own, replied)
    maps = _as_arrays(model, passage, look, _Run(run.attentions, run.layers, sides))

    if look.neurons:
        own_tokens = replied_tokens = _tokens(passage, look)
        if side is not None:
            replied_tokens = _tokens(side, look, before=(start,))
        tokens = _sides(maps.kinds, own_tokens, replied_tokens)
        maps = replace(maps, neurons=_neurons(run, maps, look, tokens))
    if look.effects:
        maps = replace(maps, effects=_effects(model, passage, look, run, maps))
    return maps


def _of_generated(model: Model, passage: Passage, look: Look) -> AttentionMaps:
    """The last written token was never read by the model: it has neither a row nor a column."""
    written = generate(model, passage, look.generate)
    whole = continued(model, passage, written.ids)
    if model.is_encoder_decoder:
        assert whole.reply is not None
        shown, side = whole, first_tokens(whole.reply, len(written.ids) - 1)
        own = axis_of(whole, _units(look))
        replied = axis_of(side, _units(look), before=(_start_token(model),))
        replied = replace(replied, part=np.where(replied.part == 0, GENERATED, replied.part))
    else:
        shown, side = first_tokens(whole, len(whole) - 1), None
        own = replied = _with_generated(axis_of(shown, _units(look)), shown, len(passage), look)

    reduced = _reduced(written, _reducer(model, shown, side, look))
    run = _Run(reduced, written.layers, _sides(reduced, own, replied))
    maps = _as_arrays(model, whole, look, run)
    return replace(maps, prompt=passage.text, written=_written_text(passage, whole))


def _written_text(given: Passage, whole: Passage) -> str:
    """What the model wrote: its reply, or what stands behind the prompt."""
    if whole.reply is not None:
        return whole.reply.text
    return whole.text[len(given.text) :]


def _with_generated(axis: Axis, shown: Passage, given: int, look: Look) -> Axis:
    """The axis, with the places marked that begin behind the ``given`` tokens."""
    if look.units == "token":
        firsts = np.arange(len(shown))
    else:
        firsts = np.array([group[0] for group in groups_of(shown)])
    is_generated = (firsts >= given) & (axis.part >= 0)
    return replace(axis, part=np.where(is_generated, GENERATED, axis.part))


def _reduced(written: Generated, reducer: Reducer) -> dict[str, tuple[Tensor, ...]]:
    reduced = {}
    for kind, maps in written.attentions.items():
        layers = []
        for weights, layer in zip(maps, written.layers[kind], strict=True):
            layers.append(reducer(Block(weights, None, 0, kind, layer.index)))
        reduced[kind] = tuple(layers)
    return reduced


def _of_two_streams(model: Model, passage: Passage, look: Look) -> AttentionMaps:
    """A model whose text and image are streams of their own: four kinds of maps.

    Each kind has its own two sides.
    """
    run = trace(model, [passage], reducer=Heads(look.head_choice, look.chosen_layers))
    # the configuration does not tell how many layers there are; the run does
    most = max(len(layers) for layers in run.layers.values())
    _check_within(look.chosen_layers, most, "layer")

    sides = {kind: axes(passage, kind, _units(look)) for kind in run.layers}
    maps = _as_arrays(model, passage, look, _Run(run.attentions, run.layers, sides))
    weights = {}
    for kind, whole in maps.weights.items():
        looks, seen = memberships(passage, kind, _units(look))
        mean_from = looks / looks.sum(-1, keepdims=True)
        merged = np.einsum("fq,lhqk,tk->lhft", mean_from, whole, seen)
        weights[kind] = merged.astype(np.float32)
    return replace(maps, weights=weights)


def _units(look: Look) -> str:
    """What the axes are made of: tokens, or else whatever units the passage was cut into."""
    return "token" if look.units == "token" else "unit"


def _reducer(model: Model, passage: Passage, side: Passage | None, look: Look) -> Reducer:
    if look.units == "token":
        return Heads(look.head_choice, look.chosen_layers)
    source = _member(model, passage, 0)
    reply = None if side is None else _member(model, side, 1)
    return ToUnits(source, reply, look.head_choice, look.chosen_layers)


def _member(model: Model, passage: Passage, before: int) -> Float[Tensor, "1 unit token"]:
    member = torch.from_numpy(membership(passage, "unit", before=before))[None]
    return member.to(model.device).to(model.dtype)


def _sides(kinds: Iterable[str], own: T, replied: T) -> dict[str, tuple[T, T]]:
    """Who looks and what is looked at, in each kind of map.

    Without a decoder's side of its own, ``replied`` is ``own``.
    """
    known = {"encoder": (own, own), "decoder": (replied, replied)}
    return {kind: known.get(kind, (replied, own)) for kind in kinds}


def _as_arrays(model: Model, passage: Passage, look: Look, run: _Run) -> AttentionMaps:
    """Arrays of the chosen layers, by kind.

    A kind that has none of them, such as a decoder shorter than its encoder, is left out.
    """
    # counts alone: a name for the maps themselves would keep them alive while they are copied
    counts = {kind: len(layers) for kind, layers in run.maps.items()}
    kept = {}
    for kind, count in counts.items():
        numbers = range(count)
        if look.chosen_layers is not None:
            numbers = [n for n in look.chosen_layers if n < count]
        if numbers:
            kept[kind] = tuple(numbers)

    modules = {}
    for kind, numbers in kept.items():
        modules[kind] = tuple(run.layers[kind][n].module for n in numbers)

    return AttentionMaps(
        passage=passage,
        weights={kind: _stacked(run.maps, kind, numbers) for kind, numbers in kept.items()},
        from_axis={kind: run.sides[kind][0] for kind in kept},
        to_axis={kind: run.sides[kind][1] for kind in kept},
        modules=modules,
        kept_layers={} if look.chosen_layers is None else kept,
        kept_heads=_head_names(look),
        units="token" if look.units == "token" else passage.kind,
        model=model.name,
    )


def _head_names(look: Look) -> tuple[str, ...]:
    """Empty where all heads are kept."""
    if look.heads == "all":
        return ()
    if isinstance(look.heads, str):
        return (look.heads,)
    return tuple(str(head) for head in look.chosen_heads or ())


def _stacked(
    maps: dict[str, tuple[Tensor, ...]], kind: str, layers: Sequence[int]
) -> Float[np.ndarray, "layer head from to"]:
    """One array of the chosen layers.

    The kind is taken out of ``maps``, and each layer let go as it is copied, so that the maps of a
    long text are not held twice.
    """
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


@dataclass(frozen=True)
class _Tokens:
    """The tokens of one side of the maps, and the place that each of them belongs to."""

    labels: tuple[str, ...]
    places: Int[np.ndarray, " token"]


def _tokens(passage: Passage, look: Look, before: tuple[str, ...] = ()) -> _Tokens:
    member = membership(passage, _units(look), before=len(before))
    return _Tokens((*before, *passage.tokens), member.argmax(0))


def _neurons(
    run: Trace,
    maps: AttentionMaps,
    look: Look,
    tokens: Mapping[str, tuple[_Tokens, _Tokens]],
) -> dict[str, Neurons]:
    """Queries, scaled as they meet the keys, and keys, of the kept layers and heads in their order.

    Of a mean or largest over heads, those of all heads.
    """
    neurons = {}
    for kind in maps.kinds:
        layers = [int(name) for name in maps.layer_names(kind)]
        query = _stacked(run.reduced["query"], kind, layers)
        key = _stacked(run.reduced["key"], kind, layers)
        if look.chosen_heads is not None:
            heads = list(look.chosen_heads)
            query, key = query[:, heads], key[:, heads]
        looking, seen = tokens[kind]
        neurons[kind] = Neurons(
            query,
            key,
            scale=1.0,
            from_labels=looking.labels,
            to_labels=seen.labels,
            from_places=looking.places,
            to_places=seen.places,
        )
    return neurons


def _effects(
    model: Model, passage: Passage, look: Look, run: Trace, maps: AttentionMaps
) -> dict[str, dict[str, Float[np.ndarray, "layer head"]]]:
    """What is lost without each head, of the layers that were kept."""
    effects = {}
    of_all_layers = effects_of_heads(model, passage, as_target(look.target), run)
    for kind in maps.kinds:
        layers = [int(name) for name in maps.layer_names(kind)]
        columns = of_all_layers[kind]
        effects[kind] = {name: column[layers] for name, column in columns.items()}
    return effects


def decoder_side(model: Model, passage: Passage) -> tuple[str, Passage | None]:
    """What stands on the decoder's side: its start token, and the reply behind it.

    Without a reply nothing stands there; a classifier's decoder reads the text itself, moved on by
    one place. None where the model has no decoder of that kind.
    """
    if not model.is_encoder_decoder:
        return "", None
    start = _start_token(model)
    if model.kind.reads_twice:
        return start, first_tokens(passage, len(passage) - 1)
    if passage.reply is None:
        return start, first_tokens(passage, 0)
    return start, passage.reply.still_open()


def _start_token(model: Model) -> str:
    return str(model.tokenizer.convert_ids_to_tokens(int(model.decoder_start)))
