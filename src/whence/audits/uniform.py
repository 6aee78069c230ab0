"""Uniform attention: the output's change when every visible key gets the same weight.

Kovaleva et al. (2019) disable a head so. A layer whose heads are all uniform pools the mean of its
values, whatever the text; if the output stays, attention there told the model nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from whence.audits.case import Case, Price
from whence.audits.moved import MEASURED
from whence.audits.places import changes_at, check_can_edit, places_in, plain_trace
from whence.core.audit import Observation
from whence.models.model import Model
from whence.trace.edits import flattened


@dataclass(frozen=True)
class Uniform:
    """The change of the output with uniform attention in each head, each layer, and all of them.

    >>> import whence
    >>> from whence.core.target import Target
    >>> model = whence.load("sentiment")
    >>> case = Case(model.encode("not a bad film at all"), Target())
    >>> observations = Uniform()(model, [case])[0]
    >>> print(len(observations), observations[-1].place, observations[-1].value > 0)
    53 every layer True
    """

    name: ClassVar[str] = "uniform"
    null: ClassVar[str] = "where a head looks does not matter: uniform attention changes nothing"
    effect: ClassVar[str] = f"change of the output: {MEASURED}"

    def passes(self, heads: int, wholes: int) -> Price:
        """One for each place, and the text as it is."""
        return Price(forwards=heads + wholes + 1)

    def __call__(self, model: Model, cases: Sequence[Case]) -> list[list[Observation]]:
        """The change of each text's output, at each place."""
        check_can_edit(model)
        return [self._observe(model, case) for case in cases]

    def _observe(self, model: Model, case: Case) -> list[Observation]:
        plain = plain_trace(model, case)
        places = places_in(plain)
        changes = changes_at(plain, places, lambda _layer, _rows: flattened)
        observations = []
        for place, change in zip(places, changes, strict=True):
            observations.append(Observation(self.name, "change", float(change), place))
        return observations
