"""The answer: what may be said of a text in a few sentences, and nothing beyond the evidence.

Every rule stands here; ``views/answering.py`` puts what they give into words.

- Words are named only if the methods, taken together, are better than random rankings
  (``core/naming.py``). Then those that are better by themselves ("those that hold") may name
  words; where none is, the best third.
- A word is named if most of those methods name it, and hardly any says the opposite.
- A word of which they say opposite things is contested, and a caution says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import exp, factorial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from whence.core.agreement import agreement, top_units
from whence.core.attribution import Attribution
from whence.core.evidence import (
    CURVES,
    USUAL_RANKINGS,
    Evidence,
    Verdict,
    is_within,
)
from whence.core.naming import Together, judged_together, number_of_best, ranks_something
from whence.core.target import Target

CONTROL = "random"  # the method that knows nothing: it is a control, and no explanation
# readings of attention alone, the plainest first
PLAIN_ATTENTION = ("attention-mean", "attention-max", "rollout", "flow")
TOP = 5  # a method names a unit if it is among its strongest ones
WORTH_NAMING = 0.2  # of the method's largest score: a weaker unit is not named
WORTH_TELLING = 0.1  # of the largest mean over methods: a weaker unit is not named by them together
DISSENT = 0.2  # the largest share of voices for the opposite that a named unit may have
ERRORS_AWAY = 2.0  # standard errors from zero, or a sign says nothing
MOST_NAMED = 4
# what can come of the test of all methods together
NAMED, NO_MORE_THAN_CHANCE, CANNOT_SEE = "named", "no more than chance", "cannot be seen"
MOST_OF_ATTENTION = 3


@dataclass(frozen=True)
class Contested:
    """A unit that some of the methods that hold have for the target, and others against it.

    Of an entropy or a divergence: that some say raises it, and others lowers it.
    """

    unit: int
    those_for: tuple[str, ...]
    those_against: tuple[str, ...]


@dataclass(frozen=True)
class Agreed:
    """The unit that most of the methods tested put first, by the size of its score.

    That is a fact, whatever the test says. Of those methods ``those_for`` have signs and have the
    unit for the target, ``those_against`` against it.
    """

    unit: int
    methods: int
    of: int
    those_for: int = 0
    those_against: int = 0


@dataclass(frozen=True)
class Naming:
    """How many of the voices name what is named: every unit of it, and the least named one."""

    every: int
    fewest: int


@dataclass(frozen=True)
class AttentionSays:
    """What plain attention would have named, and what the evidence says of that."""

    method: str
    units: tuple[int, ...]
    verdict: Verdict | None
    shared: int  # of its units, how many the answer names too


@dataclass(frozen=True)
class Kept:
    """An anchor that holds: while these units stay, the label does, whatever else is removed."""

    units: tuple[int, ...]
    label: str
    at_least: float  # the lower end of its precision's interval
    removal: str


@dataclass(frozen=True)
class Swayed:
    """Methods that beat random rankings under some removals and not under others."""

    methods: tuple[str, ...]
    holds_by: tuple[str, ...]
    fails_by: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """Tokens behind a prompt, where these are explained.

    ``probability`` is that of all of them together, where the target's reading tells it.
    ``is_target`` says that they are explained themselves, and not another token in their place.
    ``by_model`` says that the model wrote them; otherwise they were given, or that is not known.
    ``is_likeliest`` is of one token: whether no other was likelier there; None where not known.
    """

    text: str
    tokens: int
    is_all: bool
    probability: float | None
    is_target: bool
    by_model: bool = False
    is_likeliest: bool | None = None


@dataclass(frozen=True)
class Answer:
    """What the evidence carries, as facts.

    ``tried`` are the methods that were held against random rankings, without the control, and
    ``holding`` those that beat them. ``is_carried`` says that ``together`` the methods are better
    than random rankings; otherwise no unit is named, unless there is but one method: then the units
    are what it says. ``voices`` may name units: the methods that hold, or, where the methods hold
    only together, the best third. ``agreed`` is the unit that most methods put first.
    ``speaks_for`` and ``speaks_against`` are units, the clearest first,
    by methods with signs; ``matters`` are units by methods without, where no other holds.
    Of what speaks for no label, an entropy or a divergence, units are for or against nothing:
    there ``raises`` and ``lowers`` are those that move the number itself. ``explained`` is the
    target, which says how it is read.
    ``agreement`` is the mean rank correlation of the voices. ``shown`` is the method
    with the best evidence, by which the text is coloured.
    """

    units: tuple[str, ...]
    kind: str
    target: str
    rather_than: str | None
    value: float
    word: str | None  # the one whose tag is explained
    place: int | None  # the unit in whose place the model writes
    several: tuple[tuple[str, float], ...]  # labels that hold together, where several may
    predicted: str | None
    probability: float | None
    runner_up: tuple[str, float] | None
    methods: int  # without the control
    tried: tuple[str, ...]
    holding: tuple[str, ...]
    is_carried: bool
    voices: tuple[str, ...]  # those that may name units as they are named here
    speaks_for: tuple[int, ...]
    speaks_against: tuple[int, ...]
    matters: tuple[int, ...]
    contested: tuple[Contested, ...]
    agreement: float | None
    kept: Kept | None
    attention: AttentionSays | None
    shown: str
    shown_evidence: Evidence | None
    swayed: tuple[Swayed, ...]
    orders: int | None  # of so few units, where that limits the evidence
    rankings: int | None  # where there were fewer than usual
    control_held: bool  # the control itself was called better than random
    quotes: bool = False  # the labels are words of the text: an answer, a choice
    written: Written | None = None  # what a model wrote, where that is explained
    no_label_holds: bool = False  # each label has its own yes or no, and none a yes
    explained: Target = field(default_factory=Target)
    raises: tuple[int, ...] = ()
    lowers: tuple[int, ...] = ()
    together: Together | None = None  # None where no method ranks anything
    agreed: Agreed | None = None  # None where no unit is put first by most methods
    naming: Naming | None = None  # None where nothing is named
    speaking: int = 0  # of the methods: those whose votes were counted, with signs and without
    mentioned: int = 0  # units that at least one of these names
    worse: int = 0  # methods tested that are worse than random
    has_ties: bool = False  # a method tested has scores that are equal

    @property
    def is_of_one_method(self) -> bool:
        """One method was asked, so that the answer is what it says."""
        return self.methods <= 1

    @property
    def could_see(self) -> bool:
        """Whether the best rankings that there can be here would be better than random ones."""
        return self.together is not None and is_within(self.together.smallest_p)

    @property
    def outcome(self) -> str:
        """What came of the test: words may be named, or not, or it could not have seen it."""
        if self.is_carried:
            return NAMED
        return NO_MORE_THAN_CHANCE if self.could_see else CANNOT_SEE

    @property
    def names_something(self) -> bool:
        """Whether some unit is named."""
        sides = (self.speaks_for, self.speaks_against, self.raises, self.lowers)
        return any(sides) or bool(self.matters)

    def names(self, units: Sequence[int]) -> list[str]:
        """The units by name; a repeated word says which one it is."""
        return [self.units[i] for i in units]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the sentences, and the facts behind them by name."""
        # the words are a view's, which is found by its name
        from whence.core.render import draw

        stored: dict[str, Any] = {
            "sentences": draw("answer_sentences", self),
            "cautions": draw("answer_cautions", self),
            "speaks_for": self.names(self.speaks_for),
            "speaks_against": self.names(self.speaks_against),
            "raises": self.names(self.raises),
            "lowers": self.names(self.lowers),
            "matters": self.names(self.matters),
            "contested": [self.units[contest.unit] for contest in self.contested],
            "methods_tried": list(self.tried),
            "methods_better_than_random": list(self.holding),
            "more_than_chance": self.is_carried,
            "outcome": self.outcome if self.tried else "not tested",
            "p_together": None if self.together is None else self.together.p,
            "smallest_p_together": None if self.together is None else self.together.smallest_p,
            "put_first": None,
            "agreement": self.agreement,
            "best_supported": self.shown,
            "attention": None,
        }
        if self.agreed is not None:
            stored["put_first"] = asdict(self.agreed) | {"unit": self.units[self.agreed.unit]}
        if self.attention is not None:
            said = asdict(self.attention)
            said["units"] = self.names(self.attention.units)
            said["verdict"] = "" if self.attention.verdict is None else str(self.attention.verdict)
            stored["attention"] = said
        return stored

    def __str__(self) -> str:
        from whence.core.render import render

        return render("answer_text", self)


def answer(attributions: Mapping[str, Attribution]) -> Answer:
    """The answer of one method or of several, over the same units and about the same target.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad at all", ["gradient-l2", "random"])
    >>> answer(c.attributions).tried
    ('gradient-l2',)
    """
    first = next(iter(attributions.values()))
    explaining = {name: a for name, a in attributions.items() if a.method != CONTROL}
    tried = {name: a for name, a in explaining.items() if is_tried(a)}
    holding = {name: a for name, a in tried.items() if holds(a)}
    joint = judged_together(tried)
    is_carried = _is_carried(tried, joint)

    speaking = _speaking(tried, holding) if is_carried else {}
    if len(explaining) == 1:  # what it says is told, and then whether it can be believed
        speaking = explaining
    votes = Votes.of(speaking)
    one_side, other_side = votes.named(for_it=True), votes.named(for_it=False)
    has_sides = first.target.sign_of_support != 0
    matters: tuple[int, ...] = ()
    if not one_side and not other_side and not votes.contested():
        matters = votes.named_by_size()

    shown = best_supported(explaining or attributions)
    predicted, probability, runner_up = _prediction(first)
    return Answer(
        units=first.units.distinct_names,
        kind=first.units.kind,
        target="" if first.target.label is None else str(first.target.label),
        rather_than=None if first.target.against is None else str(first.target.against),
        value=first.value,
        word=first.target.word,
        place=_place_of(first),
        several=_several(first),
        predicted=predicted,
        probability=probability,
        runner_up=runner_up,
        methods=len(explaining),
        tried=tuple(tried),
        holding=tuple(holding),
        is_carried=is_carried,
        voices=_voices(speaking, bool(one_side or other_side)),
        speaks_for=one_side if has_sides else (),
        speaks_against=other_side if has_sides else (),
        matters=matters,
        contested=votes.contested(),
        agreement=_agreement(speaking or holding),
        kept=_kept(explaining),
        attention=_attention(explaining, {*one_side, *other_side, *matters}),
        shown=shown,
        shown_evidence=attributions[shown].evidence,
        swayed=_swayed(tried),
        # in windows there are other orders, of which the evidence itself tells
        orders=None if first.windows else _few_orders(len(first.units), bool(tried)),
        rankings=None if first.windows else _fewer_rankings(tried),
        control_held=any(a.method == CONTROL and holds(a) for a in attributions.values()),
        quotes=first.labels_are_quoted,
        written=_written(first),
        no_label_holds=first.labels_that_hold == (),
        explained=first.target,
        raises=() if has_sides else one_side,
        lowers=() if has_sides else other_side,
        together=joint,
        agreed=_agreed(tried),
        naming=votes.naming(one_side, other_side, matters),
        speaking=len(speaking),
        mentioned=int(votes.names_it.any(0).sum()),
        worse=sum(_verdict_of(a) == Verdict.WORSE for a in tried.values()),
        has_ties=any(len(np.unique(a.scores)) < len(a.scores) for a in tried.values()),
    )


# ---------------------------------------------------------------------- who may speak


def is_tried(a: Attribution) -> bool:
    """Held against random rankings, with a verdict."""
    e = a.evidence
    return e is not None and e.measure == CURVES and e.verdict is not None


def holds(a: Attribution) -> bool:
    """Better than random rankings, under every removal that was tried."""
    return is_tried(a) and _verdict_of(a) == Verdict.BETTER


def _verdict_of(a: Attribution) -> Verdict | None:
    return None if a.evidence is None else a.evidence.verdict


def _p(a: Attribution) -> float:
    if a.evidence is None or a.evidence.p is None:
        return 1.0
    return a.evidence.p


def _is_carried(tried: Mapping[str, Attribution], joint: Together | None) -> bool:
    """Whether the methods, taken together, are better than random rankings; one by itself."""
    if len(tried) == 1:
        return any(holds(a) for a in tried.values())
    return joint is not None and is_within(joint.p)


def _speaking(
    tried: Mapping[str, Attribution], holding: Mapping[str, Attribution]
) -> Mapping[str, Attribution]:
    """The methods that hold; where they hold together alone, the best third of them."""
    if holding:
        return holding
    ranked = {name: a for name, a in tried.items() if ranks_something(a)}
    best = sorted(ranked, key=lambda name: _place(ranked[name], 0.0))
    return {name: ranked[name] for name in best[: number_of_best(len(ranked))]}


def _agreed(tried: Mapping[str, Attribution]) -> Agreed | None:
    """The unit that more than half of the methods put first, of two at least."""
    first: dict[int, list[Attribution]] = {}
    for a in filter(ranks_something, tried.values()):
        for unit in np.flatnonzero(top_units(np.abs(a.scores), 1)).tolist():
            first.setdefault(unit, []).append(a)
    if not first:
        return None
    unit, those = max(first.items(), key=lambda entry: len(entry[1]))
    if len(those) < 2 or len(those) <= len(tried) / 2:
        return None
    levels = [_levels(a)[unit] for a in those if a.signed]
    return Agreed(
        unit=unit,
        methods=len(those),
        of=len(tried),
        those_for=sum(bool(level > 0) for level in levels),
        those_against=sum(bool(level < 0) for level in levels),
    )


def binomial_tail(tries: int, successes: int, chance: float) -> float:
    """The probability of at least so many successes.

    >>> round(binomial_tail(2, 1, 0.5), 6)
    0.75
    """
    from scipy.special import bdtrc  # exact also for thousands of tries

    if successes <= 0:
        return 1.0
    return float(bdtrc(successes - 1, tries, chance))


def best_supported(attributions: Mapping[str, Attribution]) -> str:
    """The method with the best evidence.

    The verdict comes first, then p, then the share of random rankings beaten; among equals one with
    signs, which says more, and then the one that agrees most with the others that hold.
    """
    holding = {name: a for name, a in attributions.items() if holds(a)}
    closeness = _closeness(holding)
    return min(attributions, key=lambda name: _place(attributions[name], closeness.get(name, 0.0)))


def _place(a: Attribution, closeness: float) -> tuple[int, float, float, bool, float]:
    if not is_tried(a) or a.evidence is None or a.evidence.verdict is None:
        return len(Verdict), 1.0, 0.0, not a.signed, 0.0
    place = list(Verdict).index(a.evidence.verdict)
    return place, _p(a), -(a.evidence.value or 0.0), not a.signed, -closeness


def _closeness(holding: Mapping[str, Attribution]) -> dict[str, float]:
    if len(holding) < 2:
        return {}
    means = agreement(holding).mean_correlation()
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}


def _agreement(holding: Mapping[str, Attribution]) -> float | None:
    """The mean rank correlation of every two methods that hold."""
    if len(holding) < 2:
        return None
    pairs = agreement(holding).pairs
    if not pairs:
        return None
    return float(np.mean([correlation for _, _, correlation in pairs]))


# ---------------------------------------------------------------------- which units they name


@dataclass(frozen=True, eq=False)
class Votes:
    """Which units the methods that hold name: for the target, against it, or as mattering.

    A method names a unit that is among its strongest, whose score is no small part of its largest,
    and, of methods with signs, surely not zero. ``levels`` are scores by the largest one, and above
    zero where a unit is for the target: of a loss they have the other sign than the scores.
    """

    methods: tuple[str, ...]
    signed: Bool[np.ndarray, " method"]
    names_it: Bool[np.ndarray, "method unit"]
    levels: Float[np.ndarray, "method unit"]

    @classmethod
    def of(cls, holding: Mapping[str, Attribution]) -> Votes:
        """The votes of these methods, which may be none."""
        if not holding:
            nothing = np.zeros((0, 0))
            return cls((), np.zeros(0, dtype=bool), nothing.astype(bool), nothing)
        every = list(holding.values())
        return cls(
            methods=tuple(holding),
            signed=np.array([a.signed for a in every]),
            names_it=np.stack([named_units(a) for a in every]),
            levels=np.stack([_levels(a) for a in every]),
        )

    @property
    def for_it(self) -> Bool[np.ndarray, "method unit"]:
        """Named, by a method with signs, as speaking for the target."""
        return self.names_it & self.signed[:, None] & (self.levels > 0)

    @property
    def against_it(self) -> Bool[np.ndarray, "method unit"]:
        """Named, by a method with signs, as speaking against the target."""
        return self.names_it & self.signed[:, None] & (self.levels < 0)

    def named(self, for_it: bool) -> tuple[int, ...]:
        """Units that most methods with signs name on one side, and hardly any on the other."""
        these = self.for_it if for_it else self.against_it
        others = self.against_it if for_it else self.for_it
        votes, opposed = these.sum(0), others.sum(0)
        is_named = (votes > self.signed.sum() / 2) & (opposed <= DISSENT * (votes + opposed))
        return self._clearest(is_named, self.signed)

    def named_by_size(self) -> tuple[int, ...]:
        """Units that most methods name, whatever their signs."""
        is_named = self.names_it.sum(0) > len(self.methods) / 2
        return self._clearest(is_named, np.ones_like(self.signed))

    def contested(self) -> tuple[Contested, ...]:
        """Units for which and against which too many speak, the most evenly split first."""
        votes, opposed = self.for_it.sum(0), self.against_it.sum(0)
        smaller = np.minimum(votes, opposed)
        units = np.flatnonzero(smaller > DISSENT * (votes + opposed))
        by_split = sorted(units.tolist(), key=lambda i: (-smaller[i], i))
        return tuple(
            Contested(i, self._voices(self.for_it[:, i]), self._voices(self.against_it[:, i]))
            for i in by_split
        )

    def _voices(self, those: Bool[np.ndarray, " method"]) -> tuple[str, ...]:
        return tuple(name for name, speaks in zip(self.methods, those, strict=True) if speaks)

    def _clearest(
        self, is_named: Bool[np.ndarray, " unit"], voices: Bool[np.ndarray, " method"]
    ) -> tuple[int, ...]:
        """The named ones with the largest mean level, at most a few."""
        units = np.flatnonzero(is_named)
        if not len(units):
            return ()
        size = np.abs(self.levels[voices].mean(0))
        strong = units[size[units] >= WORTH_TELLING * size.max()]
        by_size = sorted(strong.tolist(), key=lambda i: (-size[i], i))
        return tuple(by_size[:MOST_NAMED])

    def naming(
        self,
        those_for: tuple[int, ...],
        those_against: tuple[int, ...],
        those_that_matter: tuple[int, ...],
    ) -> Naming | None:
        """How many methods name these units, each on its side."""
        columns = [self.names_it[:, unit] for unit in those_that_matter]
        columns += [self.for_it[:, unit] for unit in those_for]
        columns += [self.against_it[:, unit] for unit in those_against]
        if not columns:
            return None
        names_it = np.stack(columns)
        return Naming(every=int(names_it.all(0).sum()), fewest=int(names_it.sum(1).min()))


def named_units(a: Attribution) -> Bool[np.ndarray, " unit"]:
    """The units that a method names.

    Units that are tied at the last place are not named: there would be no reason for the one rather
    than the other.
    """
    sizes = np.abs(a.scores)
    named = top_units(sizes, min(TOP, max(len(sizes) // 2, 1)))
    named &= sizes >= WORTH_NAMING * sizes.max(initial=0.0)
    errors = None if a.error is None else a.error.standard_error
    if errors is not None:
        named &= ~(sizes / ERRORS_AWAY <= errors)
    return named


def _levels(a: Attribution) -> Float[np.ndarray, " unit"]:
    """Scores by the largest one, above zero where a unit is for the target.

    Of an entropy or a divergence, which have no sides, above zero where a unit raises it.
    """
    largest = np.abs(a.scores).max(initial=0.0)
    if largest == 0:
        return np.zeros_like(a.scores)
    levels = a.scores / largest
    is_turned = a.signed and a.target.sign_of_support < 0
    return -levels if is_turned else levels


# ---------------------------------------------------------------------- what else is to be said


def _prediction(
    a: Attribution,
) -> tuple[str | None, float | None, tuple[str, float] | None]:
    """The predicted label with its probability, and the one after it."""
    leading = [(str(name), float(p)) for name, p in list(a.prediction.items())[:2]]
    if not leading:
        return None, None, None
    (label, probability), *others = leading
    return label, probability, others[0] if others else None


def _voices(speaking: Mapping[str, Attribution], with_signs: bool) -> tuple[str, ...]:
    """Methods that may speak; where units are for or against the target, those with signs."""
    return tuple(name for name, a in speaking.items() if a.signed or not with_signs)


def _place_of(a: Attribution) -> int | None:
    """The unit that a masked language model fills."""
    if a.passage is not None and a.passage.written is not None:
        return None
    at = a.target.at
    if a.target.word is not None or not isinstance(at, int) or not 0 <= at < len(a.units):
        return None
    return at


def _written(a: Attribution) -> Written | None:
    """The tokens that a target is about, where a model wrote them."""
    passage = a.passage
    if passage is None or passage.written is None or not isinstance(a.target.at, int):
        return None
    steps = a.target.steps
    is_target = True
    if a.target.until is None:
        is_target = a.target.index == int(passage.ids[passage.output_place(steps.start)])
    text = passage.outputs_text(steps)
    probability = _probability(a) if is_target else None
    return Written(
        text=text,
        tokens=len(steps),
        is_all=len(steps) == passage.outputs,
        probability=probability,
        is_target=is_target,
        by_model=passage.by_model,
        is_likeliest=_is_likeliest(a, probability) if is_target else _is_not(a, text),
    )


def _is_likeliest(a: Attribution, probability: float | None) -> bool | None:
    """Whether no token was likelier than the written one, which is explained itself.

    They are told apart by their names, of which no two are alike; two may be spelt alike.
    """
    if a.target.until is not None or not a.prediction:
        return None
    name, highest = next(iter(a.prediction.items()))
    return name == a.target.label or (probability is not None and probability >= highest)


def _is_not(a: Attribution, text: str) -> bool | None:
    """The same where another token is explained, so that the written one has no name here.

    Tokens of other letters are surely others; of the same letters they may be the same.
    """
    name = next(iter(a.prediction), None)
    if name is None or _letters(name) == _letters(text):
        return None
    return False


def _letters(name: str) -> str:
    """A token without the signs of a blank, or of a piece that goes on, before it."""
    return name.strip().lstrip("▁Ġ…␣").strip()


def _probability(a: Attribution) -> float | None:
    """How likely what is explained was, where its reading or the prediction tells that."""
    if a.target.until is None and a.target.label in a.prediction:
        return a.prediction[str(a.target.label)]
    if a.target.against is not None:
        return None
    if a.target.read == "log-probability":
        return exp(a.value)
    if a.target.read == "cross-entropy":
        return exp(-a.value)
    return a.value if a.target.read == "probability" else None


def _several(a: Attribution) -> tuple[tuple[str, float], ...]:
    """The labels that hold with their probabilities, where several may."""
    return tuple((name, float(a.prediction[name])) for name in a.labels_that_hold or ())


def _kept(attributions: Mapping[str, Attribution]) -> Kept | None:
    """The anchor of a method that looked for one, if it is as precise as was asked."""
    for a in attributions.values():
        detail = a.detail or {}
        if not detail.get("holds") or not isinstance(detail.get("anchor"), Sequence):
            continue
        units = tuple(sorted(int(i) for i in detail["anchor"] if 0 <= int(i) < len(a.units)))
        at_least = detail["precision"] if detail.get("exact") else detail["interval"][0]
        removal = str(a.settings.get("removal", "removed"))
        return Kept(units, str(a.target.label), float(at_least), removal)
    return None


def _attention(attributions: Mapping[str, Attribution], named: set[int]) -> AttentionSays | None:
    by_method = {a.method: a for a in attributions.values()}
    reading = next((name for name in PLAIN_ATTENTION if name in by_method), None)
    if reading is None or len(attributions) < 2:
        return None
    a = by_method[reading]
    stands_out = top_units(np.abs(a.scores), min(MOST_OF_ATTENTION, len(a.scores)))
    units = tuple(int(i) for i in a.ranking()[:MOST_OF_ATTENTION] if stands_out[i])
    verdict = a.evidence.verdict if is_tried(a) and a.evidence is not None else None
    return AttentionSays(reading, units, verdict, len(named.intersection(units)))


def _swayed(tried: Mapping[str, Attribution]) -> tuple[Swayed, ...]:
    """Methods whose verdict hangs on how units are removed."""
    by_removals: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, a in tried.items():
        trials = () if a.evidence is None else a.evidence.trials
        good = tuple(t.removal for t in trials if t.verdict == Verdict.BETTER)
        bad = tuple(t.removal for t in trials if t.verdict != Verdict.BETTER)
        if good and bad:
            by_removals.setdefault((good, bad), []).append(name)
    return tuple(Swayed(tuple(methods), good, bad) for (good, bad), methods in by_removals.items())


def _few_orders(units: int, is_judged: bool) -> int | None:
    """How many orders so few units have, where that is too few for a fine verdict."""
    if not is_judged or units > 4:
        return None
    return factorial(units)


def _fewer_rankings(tried: Mapping[str, Attribution]) -> int | None:
    """How many random rankings there were, where a budget made them fewer than usual."""
    counts = [
        a.evidence.rankings
        for a in tried.values()
        if a.evidence is not None and len(set(a.scores.tolist())) == len(a.scores)
    ]  # equal scores leave a method fewer different ones, whatever the budget
    fewest = min(counts, default=0)
    units = min((len(a.units) for a in tried.values()), default=0)
    every_order = units <= 8 and fewest == factorial(units)
    if not fewest or fewest >= USUAL_RANKINGS or every_order:
        return None
    return fewest
