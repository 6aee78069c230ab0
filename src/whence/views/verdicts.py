"""Evidence in words: is a ranking better than random ones, by how much, how sure. Never a bare area under a curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whence.core.attribution import Attribution
from whence.views import wording

BETTER, UNCLEAR, WORSE = "better than random", "not separable from random", "worse than random"
MARKS = {BETTER: "✓", UNCLEAR: "~", WORSE: "✗"}
SHORT = {BETTER: "better", UNCLEAR: "unclear", WORSE: "worse"}
KINDS = {BETTER: "better", UNCLEAR: "unclear", WORSE: "worse"}  # as the style sheet names them
QUESTIONS = {
    "support": "Do the units that it ranks first carry the target, and the last ones hold it back?",
    "matter": "Do the units that it ranks first move the target, in whichever direction?",
}
CAUTION = "Of random rankings, too, up to one in twenty gets a ✓."


@dataclass(frozen=True)
class Verdict:
    """One test of a ranking against random ones; ``removal`` is empty for the verdict over all removals."""

    removal: str
    verdict: str
    beaten: float | None  # the share of random rankings that are worse
    interval: tuple[float, float] | None
    p: float | None

    @property
    def mark(self) -> str:
        """One sign that is read without colour; a dash where there is no verdict."""
        return MARKS.get(self.verdict, "–")

    @property
    def kind(self) -> str:
        """The verdict as a class of the style sheet."""
        return KINDS.get(self.verdict, "none")

    def cell(self) -> str:
        """For a narrow column: mark, share beaten, p."""
        parts = [
            self.mark,
            *([f"{wording.share(self.beaten):>5}"] if self.beaten is not None else []),
        ]
        return " ".join([*parts, *([short_p(self.p)] if self.p is not None else [])])

    def sentence(self) -> str:
        """``better than random: beats 98 % of random rankings (92 to 100 %), p = 0.010``."""
        if self.beaten is None:
            return self.verdict or "no verdict"
        between = f" ({wording.between(self.interval)})" if self.interval else ""
        p = f", {wording.p_value(self.p)}" if self.p is not None else ""
        return f"{self.verdict or 'no verdict'}: beats {wording.share(self.beaten)} of random rankings{between}{p}"


def overall(a: Attribution) -> Verdict | None:
    """The verdict over all removals; None where no evidence was computed."""
    if a.evidence is None:
        return None
    return _verdict("", a.evidence, beaten=isinstance(a.evidence.get("removals"), Mapping))


def by_removal(a: Attribution) -> list[Verdict]:
    """The same for each removal by itself."""
    return [_verdict(name, found, beaten=True) for name, found in removals(a).items()]


def removals(a: Attribution) -> dict[str, Mapping[str, Any]]:
    """What was found under each removal, curves included; empty where none was tried."""
    found = (a.evidence or {}).get("removals")  # the arbiter's own evidence has their number there
    return (
        {str(k): v for k, v in found.items() if isinstance(v, Mapping)}
        if isinstance(found, Mapping)
        else {}
    )


def removal_names(every: Sequence[Attribution]) -> list[str]:
    """The removals that some method was tested under, in the order they came."""
    return list(dict.fromkeys(name for a in every for name in removals(a)))


def own(a: Attribution) -> str:
    """The evidence that a method itself had to look for, in one line; empty where it has none."""
    found = a.evidence or {}
    found = (
        found.get("own") if isinstance(found.get("removals"), Mapping) or "own" in found else found
    )
    if not isinstance(found, Mapping) or found.get("value") is None:
        return ""
    ends = [found.get("random_low"), found.get("random_high")]
    random = f" (random: {ends[0]:.2f} to {ends[1]:.2f})" if None not in ends else ""
    return wording.visible(
        f"{found.get('measure', '')} {found['value']:.2f}{random}: {found.get('verdict', '')}"
    )


def note(a: Attribution) -> str:
    """Why there is no verdict, or what else is to be said."""
    return wording.visible(str((a.evidence or {}).get("note") or ""))


def lines(a: Attribution) -> list[str]:
    """The whole evidence, a line for each removal; one that says so where none was computed."""
    found = overall(a)
    if found is None:
        return []
    told = [found.sentence()] if found.beaten is not None or not (own(a) or note(a)) else []
    told += [
        f"{v.removal}: {v.mark} {v.sentence().replace(': beats', ',', 1).replace(' of random rankings', '', 1)}"
        for v in by_removal(a)
    ]
    told += [f"its own: {own(a)}" if removals(a) else own(a)] if own(a) else []
    return [wording.visible(line) for line in [*told, *([note(a)] if note(a) else [])]]


def rankings(every: Sequence[Attribution]) -> int | None:
    """How many random rankings stood beside; None where it is not told."""
    return next(
        (
            int(n)
            for a in every
            if isinstance(n := (a.evidence or {}).get("rankings"), (int, float))
        ),
        None,
    )


def by_evidence(every: Sequence[Attribution]) -> list[Attribution]:
    """Those with the best evidence first; without any they stay as they are."""
    order = {BETTER: 0, UNCLEAR: 1, WORSE: 2}

    def place(a: Attribution) -> tuple[int, float]:
        found = overall(a)
        return (3, 0.0) if found is None else (order.get(found.verdict, 3), -(found.beaten or 0.0))

    return sorted(every, key=place)


def short_p(p: float) -> str:
    """A p-value in four characters.

    >>> short_p(0.0099), short_p(0.0002), short_p(1.0)
    ('.010', '<.001', '1.00')
    """
    return "<.001" if p < 0.001 else f"{p:.2f}" if p >= 0.9995 else f"{p:.3f}"[1:]


def _verdict(removal: str, found: Mapping[str, Any], beaten: bool) -> Verdict:
    between = found.get("interval")
    return Verdict(
        removal=removal,
        verdict=wording.visible(str(found.get("verdict") or "")),
        beaten=float(found["value"]) if beaten and found.get("value") is not None else None,
        interval=(float(between[0]), float(between[1])) if beaten and between is not None else None,
        p=float(found["p"]) if found.get("p") is not None else None,
    )
