"""A Receipt: what it cost to steer a model by a feature, and whether it did what it should.

Beside the feature stand directions of the same length: random ones, and the difference of means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from whence.core.attribution import Cost
from whence.core.errors import InputError
from whence.core.provenance import Provenance
from whence.core.render import draw, render
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_json, write_text

Direction = Literal["feature", "random", "difference"]
# what "response" is: of a language model and of a classifier
Response = Literal["promoted", "label"]

# Said in the note that a receipt has where the feature fires in nearly all texts.
FOR_UNRELATED = "for unrelated text"


@dataclass(frozen=True)
class Dose:
    """The model with one direction at one dose.

    ``multiple`` is of the largest activation seen. ``response`` is the number that steering should
    move; ``divergence`` is the Kullback–Leibler divergence of the model's answers on unrelated text
    from those of the plain model, in nats for each token (of a classifier: each text);
    ``perplexity`` is on the same text. ``others`` is by how much all other features moved,
    relative to what they were.
    """

    direction: Direction
    number: int  # of a random direction, from 0
    multiple: float
    response: float
    divergence: float
    others: float | None  # None where no other feature was active
    perplexity: float | None = None
    # of what is written after the prompt: the feature's mean activation there, by the plain model,
    # in shares of the largest one
    activity: float | None = None
    written: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Receipt:
    """What steering by a feature does at several doses. Made by ``whence.features.receipt``.

    ``plain`` is the model as it is, at no dose at all. ``asked`` is the dose that was asked for, as
    a multiple of ``peak``.

    >>> receipt.to_html("receipt.html")            # doctest: +SKIP
    """

    feature: int
    peak: float
    asked: float
    prompt: str
    meaning: Response
    about: str  # the tokens, or the label, whose probability the response is
    plain: Dose
    doses: tuple[Dose, ...]
    texts: int  # of unrelated text
    tokens: int
    cost: Cost
    provenance: Provenance
    layer: int = 0
    notes: tuple[str, ...] = ()
    is_apart: bool = False  # what is written does not go on with the prompt, as of a translation

    def __post_init__(self) -> None:
        if not self.of("feature"):
            raise InputError("a receipt needs at least one dose of the feature.")

    def of(self, direction: Direction) -> list[Dose]:
        """The doses of one direction, smallest first; of random ones, all of them."""
        chosen = [dose for dose in self.doses if dose.direction == direction]
        return sorted(chosen, key=lambda dose: (dose.multiple, dose.number))

    @property
    def is_unrelated(self) -> bool:
        """Whether the feature never fires in the texts that were measured on; a note says else."""
        return not any(FOR_UNRELATED in note for note in self.notes)

    @property
    def multiples(self) -> tuple[float, ...]:
        """The doses that were tried."""
        return tuple(sorted({dose.multiple for dose in self.doses}))

    @property
    def steered(self) -> Dose:
        """The feature at the dose that was asked for."""
        return self.at("feature", self.asked)[0]

    def at(self, direction: Direction, multiple: float) -> list[Dose]:
        """What one direction did at one dose: one record, or one for each random direction."""
        return [dose for dose in self.of(direction) if dose.multiple == multiple]

    def mean(self, direction: Direction, multiple: float, name: str) -> float | None:
        """The mean of a number over the records of one direction and dose; None where none has it.

        >>> receipt.mean("random", 5.0, "divergence")      # doctest: +SKIP
        """
        values = [getattr(dose, name) for dose in self.at(direction, multiple)]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``from_dict`` gives back an equal receipt."""
        return {
            "schema": 1,
            "kind": "receipt",
            "feature": self.feature,
            "layer": self.layer,
            "peak": self.peak,
            "asked": self.asked,
            "prompt": self.prompt,
            "meaning": self.meaning,
            "about": self.about,
            "plain": _dose_to_dict(self.plain),
            "doses": [_dose_to_dict(dose) for dose in self.doses],
            "texts": self.texts,
            "tokens": self.tokens,
            "cost": asdict(self.cost),
            "provenance": self.provenance.to_dict(),
            "notes": list(self.notes),
            **({"is_apart": True} if self.is_apart else {}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Receipt:
        """What ``to_dict`` gave."""
        stored = as_stored(stored, "receipt")
        is_apart = stored.get("is_apart")
        read = {
            "feature": stored["feature"].whole(),
            "layer": stored["layer"].whole(),
            "peak": stored["peak"].number(),
            "asked": stored["asked"].number(),
            "prompt": stored["prompt"].text(),
            "meaning": stored["meaning"].choice(get_args(Response)),
            "about": stored["about"].text(),
            "plain": _dose_from_dict(stored["plain"]),
            "doses": tuple(_dose_from_dict(dose) for dose in stored["doses"].items()),
            "texts": stored["texts"].whole(),
            "tokens": stored["tokens"].whole(),
            "cost": stored["cost"].record(Cost),
            "provenance": stored["provenance"].record(Provenance),
            "notes": stored["notes"].texts(),
            "is_apart": is_apart is not None and is_apart.flag(),
        }
        return stored.made(lambda: cls(**read))

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("receipt_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def __str__(self) -> str:
        return draw("receipt_text", self)

    def __repr__(self) -> str:
        return visible(
            f"Receipt(feature {self.feature}, {self.asked:.3g}x, response "
            f"{self.plain.response:.3g} → {self.steered.response:.3g})"
        )


def _dose_to_dict(dose: Dose) -> dict[str, Any]:
    return asdict(dose) | {"probabilities": dict(dose.probabilities)}


def _dose_from_dict(stored: Stored) -> Dose:
    names = ("others", "perplexity", "activity", "written")
    others, perplexity, activity, written = (stored[name].given() for name in names)
    chances = {name: chance.number() for name, chance in stored["probabilities"].entries().items()}
    return Dose(
        direction=stored["direction"].choice(get_args(Direction)),  # type: ignore[arg-type]
        number=stored["number"].whole(),
        multiple=stored["multiple"].number(),
        response=stored["response"].number(),
        divergence=stored["divergence"].number(),
        others=None if others is None else others.number(),
        perplexity=None if perplexity is None else perplexity.number(),
        activity=None if activity is None else activity.number(),
        written=None if written is None else written.text(),
        probabilities=chances,
    )
