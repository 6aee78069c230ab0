"""Audits made up of numbers, for tests of rules and views."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from whence.core.audit import Observation, Place, effects_of
from whence.core.audited import Audit

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
        for number, (name, beaten) in enumerate(READINGS.items()):
            seen.append(Observation("readings", "beaten", beaten, reading=name, control=0.5))
            for quantity in ("tau-loo", "tau-gradient"):
                tau = 0.2 + 0.3 * number
                seen.append(Observation("correlation", quantity, tau, reading=name, control=0.0))
        seen.append(Observation("correlation", "tau-gradient-loo", 0.6))
        every.append(seen)
    return every


def audit_with(texts: list[list[Observation]], model: str = "tiny") -> Audit:
    effects = effects_of(texts, shown=lambda one: one.place.head is None)
    return Audit(
        model=model,
        data="reviews.csv",
        texts=len(texts),
        failed=0,
        seed=0,
        effects=effects,
        skipped={"flow": "on 1 of 9 texts: it is too long."},
        forwards=1234,
        backwards=56,
    )
