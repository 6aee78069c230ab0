"""What an audit sees of attention on one text: a quantity of a test, at a place of the model."""

from __future__ import annotations

from dataclasses import dataclass

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
