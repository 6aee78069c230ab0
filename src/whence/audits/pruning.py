"""The pruning curve: how the task fares as heads are removed one after the other, in some order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from whence.audits.case import Case, Price
from whence.audits.performance import performance, performance_without
from whence.core.audit import Place
from whence.core.errors import InputError
from whence.core.pruning import PruningCurves
from whence.models.model import Model
from whence.trace.trace import RERUN_TOKENS

HeadSet = frozenset[Place]


def pruning_curve(
    model: Model,
    cases: Sequence[Case],
    orders: Mapping[str, Sequence[Place]],
    steps: Sequence[int],
    tokens: int = RERUN_TOKENS,
) -> PruningCurves:
    """The loss and whether the model is right, on each text, without the first k heads of an order.

    ``steps`` are the numbers k of heads that are removed together; 0 is the whole model. Several
    orders share batches, and a set of heads that two of them reach is run once.

    >>> import whence
    >>> from whence.core.target import Target
    >>> model = whence.load("sentiment")
    >>> case = Case(model.encode("a dull and lifeless film"), Target("negative", index=0), label=0)
    >>> orders = {"first layer": [Place(0, head) for head in range(4)]}
    >>> pruning_curve(model, [case], orders, [0, 2, 4]).loss.shape
    (1, 3, 1)
    """
    if not cases:
        raise InputError("a pruning curve needs at least one text.")
    sets = _sets(orders, steps)
    whole = performance(model, cases, tokens)
    _check_heads(orders, whole.heads)
    distinct = _distinct(sets)
    without = performance_without(model, cases, whole.truths, distinct, tokens)

    loss = {frozenset(): whole.loss}
    right = {frozenset(): whole.right}
    for column, removed in enumerate(distinct):
        loss[removed] = without.loss[:, column]
        right[removed] = without.right[:, column]
    return PruningCurves(
        orders=tuple(orders),
        steps=np.array(steps, dtype=np.int64),
        loss=np.array([[loss[removed] for removed in row] for row in sets]),
        right=np.array([[right[removed] for removed in row] for row in sets]),
    )


def price_of_curve(orders: Mapping[str, Sequence[Place]], steps: Sequence[int]) -> Price:
    """What a pruning curve costs on one text, at most: one pass for each different set of heads.

    >>> order = [Place(0, 0), Place(0, 1)]
    >>> price_of_curve({"one": order, "other": order[::-1]}, [0, 1, 2])
    Price(forwards=4, backwards=0)
    """
    return Price(forwards=1 + len(_distinct(_sets(orders, steps))))


def _sets(orders: Mapping[str, Sequence[Place]], steps: Sequence[int]) -> list[list[HeadSet]]:
    """The heads that are removed, for each order and step."""
    if not orders or not len(steps):
        raise InputError("a pruning curve needs at least one order and one step.")
    for name, order in orders.items():
        if len(set(order)) < len(order):
            raise InputError(f"order {name!r} names a head more than once.")
        for step in steps:
            if not 0 <= step <= len(order):
                raise InputError(
                    f"order {name!r} has {len(order)} heads, so its steps are from 0 to "
                    f"{len(order)}, not {step}."
                )
    return [[frozenset(order[:step]) for step in steps] for order in orders.values()]


def _distinct(sets: Sequence[Sequence[HeadSet]]) -> list[HeadSet]:
    """Each set of heads once; the empty one is the whole model."""
    seen = dict.fromkeys(removed for row in sets for removed in row)
    return [removed for removed in seen if removed]


def _check_heads(orders: Mapping[str, Sequence[Place]], heads: Sequence[Place]) -> None:
    """Refuse places that are no head of the model."""
    known = set(heads)
    for name, order in orders.items():
        for place in order:
            if place not in known:
                raise InputError(
                    f"order {name!r} names {place}, which is no head of this model; "
                    f"its heads are {heads[0]} to {heads[-1]}."
                )
