"""What tests of attention observe on each text, and over all texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
from jaxtyping import Int

from whence.core.bootstrap import means_together, within
from whence.core.errors import InputError


@dataclass(frozen=True, order=True)
class Place:
    """Where attention is: one head, a whole layer, or every layer.

    ``kind`` is that of the attention ("encoder", "decoder", "cross"); empty where the model has one
    only.

    >>> str(Place(layer=2, head=0)), str(Place(layer=2)), str(Place())
    ('layer 2, head 0', 'layer 2', 'every layer')
    """

    layer: int | None = None
    head: int | None = None
    kind: str = ""

    def __post_init__(self) -> None:
        if self.head is not None and self.layer is None:
            raise InputError(f"head {self.head} of which layer? A place with a head names both.")

    def __str__(self) -> str:
        if self.layer is None:
            words = "every layer"
        elif self.head is None:
            words = f"layer {self.layer}"
        else:
            words = f"layer {self.layer}, head {self.head}"
        return f"{self.kind} {words}" if self.kind else words


@dataclass(frozen=True)
class Observation:
    """One number that a test found on one text.

    ``place`` is where, for a test that changes attention; ``reading`` the aggregation of attention
    (``rollout``, ``attention-mean`` …), for a test that reads it. ``control`` is what the same
    quantity is where nothing can be found.
    """

    test: str
    quantity: str
    value: float
    place: Place = Place()
    reading: str = ""
    control: float | None = None


Shown = Callable[[Observation], bool]

# What each quantity can be, by the first word of its name. A bootstrap interval does not know it.
SHARE, SIGNED = (0.0, 1.0), (-1.0, 1.0)
RANGES = {
    "change": SHARE,  # total variation
    "largest": SHARE,
    "jsd": (0.0, log(2)),
    "right": SHARE,
    "whole-right": SHARE,
    "whole-loss": (0.0, inf),
    "beaten": SHARE,
    "tau": SIGNED,
    "shuffled": SIGNED,
    "p": SHARE,
    "significant": SHARE,
}


def range_of(one: Observation, is_number: bool = False) -> tuple[float, float]:
    """What the mean of an observation can be; ``is_number``: the model's output is a number.

    >>> range_of(Observation("correlation", "tau-loo", 0.3))
    (-1.0, 1.0)
    """
    if one.quantity == "change" and is_number:
        return 0.0, inf
    first, _, _ = one.quantity.partition("-")
    return RANGES.get(one.quantity) or RANGES.get(first, (-inf, inf))


# ---------------------------------------------------------------------- over the texts


@dataclass(frozen=True)
class Effect:
    """A quantity of a test over all texts, at a place or for a reading.

    The intervals of all heads of one test and quantity are made to hold together in 95 of 100
    cases, however many there are; ``docs/audit.md`` says in how many they do. None where there are
    too few texts. ``values`` are those of each text, where a figure
    shows them.
    """

    test: str
    quantity: str
    place: Place
    reading: str
    mean: float
    interval: tuple[float, float] | None
    texts: int
    control: float | None = None
    values: tuple[float, ...] = ()

    def is_above(self, bar: float) -> bool | None:
        """Whether the whole interval lies above the bar, or below; None if it holds the bar.

        >>> effect = Effect("uniform", "change", Place(), "", 0.2, (0.1, 0.3), 50)
        >>> effect.is_above(0.05), effect.is_above(0.4), effect.is_above(0.2)
        (True, False, None)
        """
        if self.interval is None:
            return None
        low, high = self.interval
        if low > bar:
            return True
        return False if high < bar else None


def effects_of(
    observations: Sequence[Sequence[Observation]],
    seed: int = 0,
    shown: Shown = lambda _: False,
    is_number: bool = False,
) -> tuple[Effect, ...]:
    """The effects over texts, from what was observed on each of them.

    Of observations that are ``shown`` the values of each text are kept. ``is_number``: the output
    of the model is a number, and its change no share.

    >>> texts = [[Observation("uniform", "change", change)] for change in (0.1, 0.2, 0.3, 0.2, 0.2)]
    >>> (effect,) = effects_of(texts)
    >>> round(effect.mean, 2), effect.texts
    (0.2, 5)
    """
    families: dict[tuple[str, str], dict[tuple[Place, str], dict[int, Observation]]] = {}
    for text, seen in enumerate(observations):
        for one in seen:
            family = families.setdefault((one.test, one.quantity), {})
            family.setdefault((one.place, one.reading), {})[text] = one
    effects = []
    for (test, quantity), family in families.items():
        values = np.full((len(observations), len(family)), np.nan)
        for column, by_text in enumerate(family.values()):
            for text, one in by_text.items():
                values[text, column] = one.value
        together = means_together(values, seed)
        for ((place, reading), by_text), mean in zip(family.items(), together, strict=True):
            controls = [one.control for one in by_text.values() if one.control is not None]
            every = list(by_text.values())
            effects.append(
                Effect(
                    test=test,
                    quantity=quantity,
                    place=place,
                    reading=reading,
                    mean=mean.mean,
                    interval=within(mean.interval, range_of(every[0], is_number)),
                    texts=mean.texts,
                    control=sum(controls) / len(controls) if controls else None,
                    values=tuple(one.value for one in every) if shown(every[0]) else (),
                )
            )
    return tuple(effects)


def evenly_spaced(count: int, most: int) -> Int[np.ndarray, " place"]:
    """Places among so many, from the first to the last; all of them where there are no more.

    >>> evenly_spaced(61, 4).tolist(), evenly_spaced(3, 4).tolist()
    ([0, 20, 40, 60], [0, 1, 2])
    """
    return np.linspace(0, max(count - 1, 0), min(most, count)).round().astype(int)
