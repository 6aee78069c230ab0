"""Permuted attention: the output's change when weights change places among the visible keys.

Jain & Wallace (2019, section 4.2.1) shuffle the one distribution of a recurrent model's attention a
hundred times, take the median change of the output for each text, and lay it against the largest
weight: if attention explains the output, a peaked attention cannot be shuffled without harm.

A head of a transformer has one such distribution for each query. Each is shuffled by itself, as
theirs is: one shuffle for all queries would only give the values of one token to another, and keep
what the queries have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whence.audits.case import Case, Price
from whence.audits.moved import MEASURED
from whence.audits.places import (
    Change,
    changes_at,
    check_can_edit,
    layers_of,
    places_in,
    plain_trace,
    rows_that_matter,
)
from whence.core.audit import Observation, Place
from whence.core.errors import SettingsError
from whence.models.model import Model
from whence.trace.attention import Layer
from whence.trace.edits import in_order_of
from whence.trace.trace import Trace

STREAM = 15_2  # of random numbers that are drawn here, and nowhere else
IDENTITY = -1  # in place of a permutation's number


@dataclass(frozen=True)
class Permutation:
    """The median change of the output under permutations of attention, and the largest weight.

    ``permutations`` are those of each layer and of all of them; ``of_heads`` those of each head, of
    which there are many. The control is the change under the identity, through the same code.

    >>> import whence
    >>> from whence.core.target import Target
    >>> model = whence.load("sentiment")
    >>> case = Case(model.encode("not a bad film at all"), Target())
    >>> change = Permutation(permutations=5, of_heads=1)(model, [case])[0][-2]
    >>> change.quantity, str(change.place), change.value > 0.01 > change.control
    ('change', 'every layer', True)
    """

    permutations: int = 100
    of_heads: int = 4

    name: ClassVar[str] = "permutation"
    null: ClassVar[str] = "where the weights lie does not matter: shuffling changes nothing"
    effect: ClassVar[str] = f"median change of the output: {MEASURED}"

    def __post_init__(self) -> None:
        if min(self.permutations, self.of_heads) < 1:
            raise SettingsError(
                "a median needs one permutation at least, and "
                f"permutations={self.permutations}, of_heads={self.of_heads} were asked for."
            )

    def passes(self, heads: int, wholes: int) -> Price:
        """One for each permutation, the identity, and the text as it is."""
        return Price(forwards=heads * self.of_heads + wholes * self.permutations + 2)

    def __call__(self, model: Model, cases: Sequence[Case]) -> list[list[Observation]]:
        """The change and the largest weight on each text, at each place."""
        check_can_edit(model)
        return [self._observe(model, case) for case in cases]

    def _observe(self, model: Model, case: Case) -> list[Observation]:
        plain = plain_trace(model, case)
        shuffles = [(Place(), IDENTITY)]
        for place in places_in(plain):
            count = self.permutations if place.head is None else self.of_heads
            shuffles += [(place, number) for number in range(count)]

        def change_of(layer: Layer, rows: Sequence[int]) -> Change:
            return _shuffled(plain, layer, case.seed, [shuffles[row] for row in rows])

        changes = changes_at(plain, [place for place, _ in shuffles], change_of)
        control = float(changes[0])
        of_place: dict[Place, list[float]] = {}
        for (place, _), change in zip(shuffles[1:], changes[1:], strict=True):
            of_place.setdefault(place, []).append(float(change))

        observations = []
        for place, of_shuffles in of_place.items():
            change, largest = float(np.median(of_shuffles)), largest_weight(plain, place)
            observations.append(Observation(self.name, "change", change, place, control=control))
            observations.append(Observation(self.name, "largest", largest, place))
        return observations


def _shuffled(
    plain: Trace, layer: Layer, seed: int, shuffles: Sequence[tuple[Place, int]]
) -> Change:
    """The weights of each query in an order of its own."""
    heads_of_layer = plain.attentions[layer.kind][layer.index].shape[1]

    def change(
        weights: Float[Tensor, "map query key"], allowed: Bool[Tensor, "map query key"]
    ) -> Float[Tensor, "map query key"]:
        _, queries, keys = weights.shape
        noise = []
        for place, number in shuffles:
            heads = heads_of_layer if place.head is None else 1
            noise.append(_noise(plain, layer, seed, place, number, (heads, queries, keys)))
        order = torch.from_numpy(np.concatenate(noise)).to(weights.device)
        return in_order_of(order, weights, allowed)

    return change


def _noise(
    plain: Trace, layer: Layer, seed: int, place: Place, number: int, shape: tuple[int, int, int]
) -> Float[np.ndarray, "head query key"]:
    """What sorting makes a permutation of: the same whatever else is in the batch."""
    if number == IDENTITY:
        return np.broadcast_to(np.arange(shape[-1], dtype=np.float32), shape)
    # a number more than it is, as a seed cannot be negative; 0 is "all of them"
    where = [0 if part is None else part + 1 for part in (place.layer, place.head)]
    kind = list(plain.layers).index(layer.kind)
    digest = plain.passages[0].digest
    stream = [seed, STREAM, *digest, *where, kind, layer.index, number]
    return np.random.default_rng(stream).random(shape, dtype=np.float32)


def largest_weight(plain: Trace, place: Place) -> float:
    """The largest weight of a query, the mean over heads and over the rows that matter.

    Jain & Wallace have one distribution. Here are many, and the rows on which the output cannot
    depend say nothing of whether a peaked attention matters (``rows_that_matter``). Layers count
    alike.
    """
    of_layers = []
    for layer in layers_of(plain, place):
        weights = plain.attentions[layer.kind][layer.index][0]
        if place.head is not None:
            weights = weights[place.head : place.head + 1]
        rows = rows_that_matter(plain, 0, layer).to(weights.device)
        if rows.any():
            of_layers.append(float(weights[:, rows].amax(-1).mean()))
    return float(np.mean(of_layers)) if of_layers else 1.0
