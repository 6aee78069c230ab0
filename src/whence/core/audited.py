"""An Audit: where in a model attention may be read as an explanation, and what says so.

``explaining/stored_audit.py`` makes it of what a run has observed; the views draw it. The rules of
the verdicts are here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from math import log
from pathlib import Path
from typing import Any

from whence.core.attribution import check_schema
from whence.core.audit import Effect, Place
from whence.core.figure import Figure
from whence.core.once import once
from whence.core.pruning import Pruning
from whence.core.render import draw, render
from whence.core.retrained import Retrained
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_json, written

SCHEMA = 1
PERMUTATION, UNIFORM, ADVERSARY = "permutation", "uniform", "adversary"
AT_LEAST = "jsd-at-least"  # of the adversary: 0 on a text on which it found nothing
CORRELATION, READINGS, HEADS = "correlation", "readings", "heads"
EVERYWHERE = Place()

# ---------------------------------------------------------------------- verdicts

# Effect sizes that count. They are held against intervals, so more texts make a verdict surer and
# never turn a small effect into one that counts.
MATTERS = 0.05  # of probability: a smaller change of the output is hardly one
ANOTHER = 0.5  # of ln 2, the most that two attentions can differ by
READS = 0.6  # of random rankings that a reading beats; a half is chance
TOLERANCE = 0.01  # nats of loss: a head that helps is worth more, and one that can go less
# Where a large effect is rare, few texts hold none of it, and intervals of few texts end too soon
# (``bench/audit_coverage.py``). So "may not" takes more texts than a bootstrap does.
FEWEST_TO_RULE_OUT = 40


class May(StrEnum):
    """Whether attention may be read as an explanation."""

    YES = "may be read"
    SEVERAL = "one of several"
    NO = "may not be read"
    OPEN = "undecided"


class Why(StrEnum):
    """What a verdict rests on."""

    IDLE = "the output hardly changes when the weights are shuffled"
    EVEN = "looking at everything alike gives nearly the same output"
    ANOTHER = "the output hangs on the weights, and a very different attention gives it too"
    TIED = "the output hangs on the weights, and no very different attention gives it"
    WEAK = "it names words that matter no better than chance, or hardly so"
    READS = "the words that it names matter more than random ones"
    UNSURE = "the texts do not tell"
    NOT_SHUFFLED = "shuffling was not tested"
    NOT_EVENED = "making the weights even was not tested"
    NOT_SEARCHED = "no other attention was searched for"
    NUMBER = "the output is a number on a scale of its own, for which there is no bar"
    FEW = f"the texts are too few to rule it out ({FEWEST_TO_RULE_OUT} are needed)"


@dataclass(frozen=True)
class PlaceVerdict:
    """A place, whether its attention may be read, and the effects that say so.

    ``adversary`` is how different another attention is at least, over all texts that were searched.
    """

    place: Place
    may: May
    why: Why
    permutation: Effect | None
    uniform: Effect | None
    adversary: Effect | None


@dataclass(frozen=True)
class ReadingVerdict:
    """An aggregation of attention, whether it may be read, and the effects that say so."""

    reading: str
    may: May
    why: Why
    beaten: Effect | None
    tau_loo: Effect | None
    tau_gradient: Effect | None


def may_be_read(
    permutation: Effect | None,
    uniform: Effect | None,
    adversary: Effect | None,
    at_least: Effect | None = None,
) -> tuple[May, Why]:
    """The verdict on a place.

    Attention whose weights can be shuffled, or made even, without changing the output does not
    explain it. Where the weights matter, and a very different attention would have done as well, it
    is one explanation of several: Jain & Wallace (2019) would not call it one, Wiegreffe & Pinter
    (2019) answer that an explanation need not be the only one. Where no very different attention
    keeps the output, it may be read without that reserve.

    ``adversary`` is how different another attention was where the search found one, and
    ``at_least`` the same with 0 on the other texts. That there *is* another attention must hold
    with the texts on which none was found, and that there is *none* without them.

    "May not" is said of forty texts and more: where attention matters on one text of ten, and
    there very much, few texts are likely to hold none of these.
    """
    matters = permutation.is_above(MATTERS) if permutation else None
    needed = uniform.is_above(MATTERS) if uniform else None
    at_least = at_least or adversary
    is_another = at_least.is_above(ANOTHER * log(2)) if at_least else None
    is_near = adversary.is_above(ANOTHER * log(2)) if adversary else None
    if _rules_out(permutation, MATTERS):
        return May.NO, Why.IDLE
    if _rules_out(uniform, MATTERS):
        return May.NO, Why.EVEN
    if matters is False or needed is False:
        return May.OPEN, Why.FEW
    tests = {
        Why.NOT_SHUFFLED: permutation,
        Why.NOT_EVENED: uniform,
        Why.NOT_SEARCHED: at_least,
    }
    untested = [why for why, effect in tests.items() if effect is None]
    if untested:
        return May.OPEN, untested[0]
    if matters and needed and is_another:
        return May.SEVERAL, Why.ANOTHER
    if matters and needed and is_near is False:
        return May.YES, Why.TIED
    return May.OPEN, Why.UNSURE


def _rules_out(effect: Effect | None, bar: float) -> bool:
    """Whether an effect is below its bar, on enough texts to say so."""
    if effect is None or effect.texts < FEWEST_TO_RULE_OUT:
        return False
    return effect.is_above(bar) is False


def reading_may_be_read(beaten: Effect | None) -> tuple[May, Why]:
    """The verdict on a reading: it must beat clearly more than half of the random rankings."""
    reads = beaten.is_above(READS) if beaten else None
    if reads:
        return May.YES, Why.READS
    if _rules_out(beaten, READS):
        return May.NO, Why.WEAK
    return May.OPEN, Why.UNSURE if reads is None else Why.FEW


@dataclass(frozen=True)
class HeadsFound:
    """What single heads are worth to the task, all heads judged together.

    Without one of those that ``help`` the loss rises by more than ``tolerance``, and without one of
    ``spared`` by less, with the whole interval. Without one of ``hurt`` it falls by more: on all
    texts, and on each half of them, one of which named it and the other confirmed.
    """

    of: int
    help: tuple[Place, ...]
    hurt: tuple[Place, ...]
    spared: tuple[Place, ...]
    tolerance: float


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Where attention may be read as an explanation, in one model on one set of texts.

    ``effects`` is all that was measured, over texts; ``pruning`` is what several heads are worth
    together; ``retrained`` is what training has shown, where it was asked for. ``skipped`` says
    which test was not done, and why. The verdicts follow from the effects. ``is_number``: the
    output of the model is a number on a scale of its own. The bars are of probabilities, so that
    there is no verdict on its layers and heads then.
    """

    model: str
    data: str
    texts: int
    failed: int
    seed: int
    effects: tuple[Effect, ...]
    heads: HeadsFound | None = None
    pruning: Pruning | None = None
    retrained: tuple[Retrained, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    forwards: int = 0
    backwards: int = 0
    is_number: bool = False

    @property
    def layers(self) -> int:
        """How many layers were tested."""
        tested = [effect.place.layer for effect in self.effects if effect.place.layer is not None]
        return max(tested, default=-1) + 1

    def effect(
        self, test: str, quantity: str, place: Place = EVERYWHERE, reading: str = ""
    ) -> Effect | None:
        """What a test found at a place or for a reading; None where it was not measured."""
        key = (test, quantity, place, reading)
        return self._by_name.get(key)

    @once
    def _by_name(self) -> dict[tuple[str, str, Place, str], Effect]:
        return {(e.test, e.quantity, e.place, e.reading): e for e in self.effects}

    @once
    def places(self) -> tuple[PlaceVerdict, ...]:
        """The verdict on every head, layer and on all layers together, in this order of places.

        A head has no adversary of its own: that of its layer counts.
        """
        tests = (PERMUTATION, UNIFORM, ADVERSARY)
        seen = {e.place: None for e in self.effects if e.test in tests}
        verdicts = []
        for place in seen:
            permutation = self.effect(PERMUTATION, "change", place)
            uniform = self.effect(UNIFORM, "change", place)
            layer = replace(place, head=None)
            adversary = self.effect(ADVERSARY, "jsd", layer)
            at_least = self.effect(ADVERSARY, AT_LEAST, layer) or adversary
            may, why = may_be_read(permutation, uniform, adversary, at_least)
            if self.is_number:
                may, why = May.OPEN, Why.NUMBER
            verdicts.append(PlaceVerdict(place, may, why, permutation, uniform, at_least))
        return tuple(verdicts)

    @property
    def of_layers(self) -> tuple[PlaceVerdict, ...]:
        """The verdicts on whole layers."""
        return tuple(v for v in self.places if v.place.head is None and v.place.layer is not None)

    @property
    def of_heads(self) -> tuple[PlaceVerdict, ...]:
        """The verdicts on single heads."""
        return tuple(v for v in self.places if v.place.head is not None)

    @property
    def of_all(self) -> PlaceVerdict | None:
        """The verdict on attention in all layers together."""
        return next((v for v in self.places if v.place == EVERYWHERE), None)

    @once
    def readings(self) -> tuple[ReadingVerdict, ...]:
        """The verdict on every aggregation of attention, the best first."""
        names = {e.reading: None for e in self.effects if e.test == READINGS}
        verdicts = []
        for name in names:
            beaten = self.effect(READINGS, "beaten", reading=name)
            may, why = reading_may_be_read(beaten)
            tau_loo = self.effect(CORRELATION, "tau-loo", reading=name)
            tau_gradient = self.effect(CORRELATION, "tau-gradient", reading=name)
            verdicts.append(ReadingVerdict(name, may, why, beaten, tau_loo, tau_gradient))
        return tuple(sorted(verdicts, key=lambda v: -v.beaten.mean if v.beaten else 0.0))

    def records(self) -> list[dict[str, Any]]:
        """One row for each effect, ready for ``pandas.DataFrame``."""
        rows = []
        for effect in self.effects:
            low, high = effect.interval or (None, None)
            rows.append(
                {
                    "test": effect.test,
                    "quantity": effect.quantity,
                    "kind": effect.place.kind,
                    "layer": effect.place.layer,
                    "head": effect.place.head,
                    "reading": effect.reading,
                    "mean": effect.mean,
                    "low": low,
                    "high": high,
                    "texts": effect.texts,
                    "control": effect.control,
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the answer first; ``from_dict`` gives them back."""
        stored = {name: getattr(self, name) for name in self.__dataclass_fields__}
        stored["effects"] = [asdict(effect) for effect in self.effects]
        stored["heads"] = None if self.heads is None else asdict(self.heads)
        stored["pruning"] = None if self.pruning is None else asdict(self.pruning)
        stored["retrained"] = [asdict(each) for each in self.retrained]
        stored["skipped"] = dict(self.skipped)
        stored["notes"] = list(self.notes)
        about = {"schema": SCHEMA, "kind": "audit"}
        verdicts = [
            {"place": str(v.place), "may": str(v.may), "why": str(v.why)} for v in self.places
        ]
        verdicts += [
            {"reading": v.reading, "may": str(v.may), "why": str(v.why)} for v in self.readings
        ]
        return about | {"answer": draw("audit_sentences", self), "verdicts": verdicts} | stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Audit:
        """What ``to_dict`` gave."""
        check_schema(stored, "audit")
        stored = as_stored(stored, "audit")
        pruning = stored.get("pruning")
        retrained = stored.get("retrained")
        is_number = stored.get("is_number")
        return cls(
            model=stored["model"].text(),
            data=stored["data"].text(),
            texts=stored["texts"].whole(),
            failed=stored["failed"].whole(),
            seed=stored["seed"].whole(),
            effects=tuple(effect.record(Effect) for effect in stored["effects"].items()),
            heads=None if stored["heads"].given() is None else stored["heads"].record(HeadsFound),
            pruning=None if pruning is None else pruning.record(Pruning),
            retrained=tuple(map(Retrained.from_stored, retrained.items() if retrained else ())),
            skipped={name: why.text() for name, why in stored["skipped"].entries().items()},
            notes=stored["notes"].texts(),
            forwards=stored["forwards"].whole(),
            backwards=stored["backwards"].whole(),
            is_number=is_number is not None and is_number.flag(),
        )

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def __str__(self) -> str:
        return draw("audit_text", self)

    def __repr__(self) -> str:
        return f"Audit({self.model!r}: {self.texts:,} texts, {len(self.effects):,} effects)"

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        return written(render("audit_page", self), path)

    def figure(self, name: str) -> Figure:
        """One figure of the page by itself, as SVG, which a notebook shows.

        They are heads, pruning, correlation, readings, permutation, uniform and adversary.

        >>> audit.figure("correlation").save("correlation.svg")       # doctest: +SKIP
        """
        return Figure(name, draw("audit_figure", self, name))

    def to_csv(self, path: str | Path | None = None) -> str:
        """All effects, one in a line; also written to ``path``."""
        rows = self.records()
        return written(draw("records_csv", list(rows[0]) if rows else [], rows, True), path)
