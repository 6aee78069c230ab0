"""Audits made up of numbers, for tests of rules and views."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from whence.core.audit import Observation, Place, effects_of
from whence.core.audited import Audit, HeadsFound
from whence.core.pruning import Pruning, PruningCurves, pruning_of

LAYERS, HEADS = 2, 2
READINGS = {"rollout": 0.55, "attention-mean": 0.8}


def observed(
    texts: int,
    change: Callable[[], float],
    jsd: Callable[[], float],
    jsd_of_layer: Mapping[int, float] | None = None,
) -> list[list[Observation]]:
    """What tests would see on so many texts of a model of two layers with two heads."""
    layers = [Place(layer) for layer in range(LAYERS)]
    heads = [Place(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    every = []
    for _ in range(texts):
        seen = []
        for place in (*heads, *layers, Place()):
            seen.append(Observation("permutation", "change", change(), place, control=0.0))
            seen.append(Observation("permutation", "largest", 0.6, place))
            seen.append(Observation("uniform", "change", change(), place))
        for place in (*layers, Place()):
            of_layer = (jsd_of_layer or {}).get(-1 if place.layer is None else place.layer)
            seen.append(
                Observation("adversary", "jsd", jsd() if of_layer is None else of_layer, place)
            )
        seen.append(Observation("heads", "whole-loss", 0.5))
        for number, place in enumerate(heads):
            rise = (number - 1) / 10
            seen.append(Observation("heads", "loss", rise, place, control=0.0))
        for number, (name, beaten) in enumerate(READINGS.items()):
            seen.append(Observation("readings", "beaten", beaten, reading=name, control=0.5))
            for quantity in ("tau-loo", "tau-gradient"):
                tau = 0.2 + 0.3 * number
                seen.append(Observation("correlation", quantity, tau, reading=name, control=0.0))
                kind = quantity.removeprefix("tau-")
                for other, value in (("shuffled", -0.1), ("significant", 1.0)):
                    seen.append(Observation("correlation", f"{other}-{kind}", value, reading=name))
        seen.append(Observation("correlation", "tau-gradient-loo", 0.6))
        every.append(seen)
    return every


def pruning() -> Pruning:
    """Heads that go one after the other, on 12 texts, in two orders and in two random ones."""
    heads = [Place(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    rise = np.linspace(0.2, 1.0, 5)[:, None] + np.linspace(0.0, 0.1, 12)
    loss = np.stack([rise, rise, rise + 0.3, rise + 0.5])
    loss[:, 0] = rise[0]
    loss[:, -1] = rise[-1]
    right = np.broadcast_to(np.arange(12) < 9, loss.shape).astype(float)
    curves = PruningCurves(("least worth first", "other", "a", "b"), np.arange(5), loss, right)
    orders = {"least worth first": heads, "other": heads}
    return pruning_of(curves, orders, ordered_on=11, held_out=30, forwards=300)


def audit_with(texts: list[list[Observation]], model: str = "tiny") -> Audit:
    effects = effects_of(texts, shown=lambda one: one.place.head is None)
    return Audit(
        model=model,
        data="reviews.csv",
        texts=len(texts),
        failed=0,
        seed=0,
        effects=effects,
        heads=HeadsFound(4, (Place(1, 1),), (Place(0, 0),), (Place(0, 1),), 0.01),
        pruning=pruning(),
        skipped={"flow": "on 1 of 9 texts: it is too long."},
        forwards=1234,
        backwards=56,
    )
