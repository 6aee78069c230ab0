"""Attention maps by lot: kinds, words, special tokens, heads of every habit, sinks, effects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.occasions import _lots as lots
from tests.views.conftest import passage_of
from whence.core.maps import AttentionMaps, Axis, Neurons
from whence.core.passage import SPECIAL
from whence.views.attention import maps_fragment
from whence.views.heads import heads_fragment, heads_view, maps_view
from whence.views.terminal import to_text

KINDS = (("encoder",), ("decoder",), ("cross", "encoder", "decoder"), ("language",))
HABITS = ("previous", "next", "self", "first", "one", "even", "mixed", "any")


def speak(rng: np.random.Generator) -> None:
    """Maps and a table of heads say everything that they can."""
    maps = attention_maps(rng)
    table = maps.heads()
    if lots.does(rng, 0.2):
        to_text(lambda _: maps_view(maps))
    if lots.does(rng, 0.2):
        to_text(lambda _: heads_view(table))
    if lots.does(rng, 0.05):
        maps_fragment(maps)
        heads_fragment(table)
        repr(table), repr(maps)


def attention_maps(rng: np.random.Generator) -> AttentionMaps:
    """One result: every kind of map over words, some of which stand several times."""
    kinds = lots.one_of(rng, KINDS)
    shape = (lots.count(rng, 4), lots.count(rng, 6))
    words = lots.words(rng, lots.count(rng, 9))
    ends = int(rng.integers(3))  # special tokens: none, at the end, around
    special = [False] * len(words)
    if ends:
        words, special = [*words, "[SEP]"], [*special, True]
    if ends == 2:
        words, special = ["[CLS]", *words], [True, *special]
    read = _axis(words, special)
    wrote = _axis(["</s>", *lots.words(rng, 3)], [True, False, False, False])
    weights, from_axis, to_axis = {}, {}, {}
    alike = lots.does(rng, 0.1)  # all heads do the same
    for kind in kinds:
        to_axis[kind] = wrote if kind == "decoder" and len(kinds) > 1 else read
        from_axis[kind] = read if len(kinds) == 1 or kind == "encoder" else wrote
        is_causal = kind in ("decoder", "language") and lots.does(rng, 0.8)
        rows, columns = len(from_axis[kind]), len(to_axis[kind])
        heads = [_head(rng, rows, columns, is_causal) for _ in range(shape[0] * shape[1])]
        drawn = np.array([heads[0]] * len(heads) if alike else heads)
        weights[kind] = drawn.reshape(*shape, rows, columns)
    effects = {}
    if lots.does(rng, 0.3):
        size = shape
        lost = np.round(rng.random(size), 1) * lots.does(rng, 0.8)
        effects = {kinds[0]: {"value_change": -lost, "output_change": lost}}
    passage = replace(passage_of(" ".join(words)), dropped=int(lots.one_of(rng, (0, 0, 1, 1200))))
    neurons = {}
    if len(kinds) == 1 and lots.does(rng, 0.1):
        vectors = rng.normal(size=(*shape, len(words), 2)).astype(np.float32)
        neurons = {kinds[0]: Neurons(vectors, vectors, 0.7, read.labels, read.labels)}
    return AttentionMaps(
        passage=passage,
        weights=weights,
        from_axis=from_axis,
        to_axis=to_axis,
        modules={kind: tuple(f"layer.{i}" for i in range(shape[0])) for kind in kinds},
        kept_heads=("mean",) if shape[1] == 1 and lots.does(rng, 0.3) else (),
        units=lots.one_of(rng, ("word", "token", "sentence")),
        model="toy",
        neurons=neurons,
        effects=effects,
        prompt="The" if lots.does(rng, 0.1) else "",
        written=" end" if lots.does(rng, 0.1) else "",
    )


def _axis(words: list[str], special: list[bool]) -> Axis:
    marks = np.array(special)
    return Axis(tuple(words), marks, np.where(marks, SPECIAL, 0))


def _head(rng: np.random.Generator, rows: int, columns: int, is_causal: bool) -> np.ndarray:
    """Weights of one head with some habit, to some degree; of a sink some is missing."""
    habit = lots.one_of(rng, HABITS)
    place = np.arange(rows)
    target = {
        "previous": place - 1,
        "next": place + 1,
        "self": place,
        "first": 0 * place,
        "one": 0 * place + int(rng.integers(columns)),
    }.get(habit, rng.integers(columns, size=rows))
    one = np.eye(columns)[np.clip(target, 0, columns - 1)]
    even = np.full((rows, columns), 1 / columns)
    share = {"even": 0.0, "mixed": 0.3}.get(habit, lots.one_of(rng, (1.0, 0.5, 0.9, 0.45)))
    noise = rng.dirichlet(np.full(columns, lots.one_of(rng, (0.05, 1.0))), rows)
    weights = share * one + (1 - share) * (even if habit == "even" else noise)
    if is_causal:
        weights = np.tril(weights)
        total = weights.sum(-1, keepdims=True)
        weights = np.where(
            total > 0, weights / np.where(total > 0, total, 1), np.eye(rows, columns)
        )
    sink = 1.0 if lots.does(rng, 0.95) else 0.6
    return sink * weights
