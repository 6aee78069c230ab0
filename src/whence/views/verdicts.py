"""Evidence in words: is a ranking better than random ones, by how much, and how sure is that?

A bare area under a curve is never shown: by itself it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whence.core.attribution import Attribution
from whence.core.evidence import CURVES, LEVEL, Evidence, Trial, Verdict, is_within
from whence.views import wording

# one sign for each, which is read without colour
MARKS = {Verdict.BETTER: "✓", Verdict.SAME: "~", Verdict.WORSE: "✗", None: "–"}
# a word for a narrow column, which is also the class in the style sheet
SHORT = {Verdict.BETTER: "better", Verdict.SAME: "unclear", Verdict.WORSE: "worse", None: "none"}
NO_VERDICT = "no verdict"
BEST_FIRST = (Verdict.BETTER, Verdict.SAME, Verdict.WORSE)
# Said in the card of a method with curves, by what was asked of its scores.
QUESTIONS = {
    "support": "Does the target fall most when the {units} that it ranks first are taken out?",
    "matter": "Does the target change most when the {units} that it ranks first are taken out?",
}
# Said below every table of verdicts.
CAUTION = "A ✓ may be luck: up to one random ranking in twenty gets it too."


@dataclass(frozen=True)
class Ruling:
    """What is shown of one test of a ranking against random ones.

    ``removal`` is empty for the verdict over all removals. ``beaten`` is the share of random
    rankings that are worse; the arbiter's own evidence has none. ``p`` is that of the verdict: of
    "worse" where it is worse. Over removals that differ, the share is their mean and ``p`` that of
    the removal ``p_by``.
    """

    removal: str
    verdict: Verdict | None
    beaten: float | None
    interval: tuple[float, float] | None
    p: float | None
    is_mean: bool = False
    p_by: str = ""

    @property
    def mark(self) -> str:
        """One sign that is read without colour; a dash where there is no verdict."""
        return MARKS[self.verdict]

    @property
    def kind(self) -> str:
        """The verdict as a class of the style sheet."""
        return SHORT[self.verdict]

    @property
    def words(self) -> str:
        """The verdict itself, or that there is none."""
        return str(self.verdict or NO_VERDICT)

    @property
    def few_words(self) -> str:
        """The same without its last two words, which are "than random" or "from random"."""
        if self.verdict is None:
            return NO_VERDICT
        return self.verdict.rsplit(" ", 2)[0]

    def cell(self) -> str:
        """For a narrow column: mark, share beaten, p."""
        parts = [self.mark]
        if self.beaten is not None:
            parts.append(f"{wording.share(self.beaten):>5}")
        if self.p is not None:
            parts.append(short_p(self.p))
        return " ".join(parts)

    def numbers(self) -> str:
        """What stands behind the verdict: the interval and p, as far as they are known."""
        parts = ""
        if self.interval is not None:
            parts += f" ({wording.between(self.interval)})"
        return parts + self._p()

    def _p(self) -> str:
        """``, p = 0.12 by delete``."""
        if self.p is None:
            return ""
        by = f" by {self.p_by}" if self.p_by else ""
        return f", {wording.p_of_verdict(self.verdict, self.p)}{by}"

    def _beats(self, beaten: float) -> str:
        """Said of every share that is known; of one that is a mean over removals, that it is."""
        mean = " on average" if self.is_mean else ""
        return f"beats {wording.share(beaten)} of random rankings{mean}"

    def sentence(self) -> str:
        """``better than random: beats 98 % of random rankings (92 to 100 %), p = 0.010``.

        Said of every verdict; without numbers where none are known.
        """
        if self.beaten is None:
            return self.words
        return f"{self.words}: {self._beats(self.beaten)}{self.numbers()}"

    def without_interval(self) -> str:
        """``beats 93 % of random rankings on average, p = 0.12 by delete``; else nothing."""
        if self.beaten is None:
            return ""
        return f"{self._beats(self.beaten)}{self._p()}"

    def short_sentence(self) -> str:
        """``better than random, 98 % (92 to 100 %), p = 0.010``."""
        if self.beaten is None:
            return self.words
        return f"{self.words}, {wording.share(self.beaten)}{self.numbers()}"


def overall(a: Attribution) -> Ruling | None:
    """The verdict over all removals; None where no evidence was computed."""
    return None if a.evidence is None else of_evidence(a.evidence)


def of_evidence(evidence: Evidence) -> Ruling:
    """The same of the evidence alone.

    The share is the mean over removals and p the largest of theirs, so that they need not belong
    together: 93 % of 90 % and 96 %, beside the p of 90 %.
    """
    verdict, p = evidence.verdict, evidence.p_of_verdict
    if evidence.measure != CURVES:
        return Ruling("", verdict, beaten=None, interval=None, p=p)
    tried = evidence.trials
    shares = {wording.share(t.beaten) for t in tried if t.beaten is not None}
    of_verdict = [t.p_worse if verdict == Verdict.WORSE else t.p for t in tried]
    p_values = {wording.p_value(known) for known in of_verdict if known is not None}
    by = [t.removal for t, own in zip(tried, of_verdict, strict=True) if own == p]
    return Ruling(
        "",
        verdict,
        evidence.value,
        evidence.interval,
        p,
        is_mean=len(shares) > 1,
        p_by=wording.visible(by[0]) if len(p_values) > 1 and len(by) == 1 else "",
    )


def by_removal(a: Attribution) -> list[Ruling]:
    """The same for each removal by itself."""
    rulings = []
    for t in trials(a):
        removal = wording.visible(t.removal)
        rulings.append(Ruling(removal, t.verdict, t.beaten, t.interval, t.p_of_verdict))
    return rulings


def trials(a: Attribution) -> tuple[Trial, ...]:
    """The trials against random rankings, one for each removal; none where none was made."""
    if a.evidence is None or a.evidence.measure != CURVES:
        return ()
    return a.evidence.trials


def removal_names(every: Sequence[Attribution]) -> list[str]:
    """The removals that some method was tested under, in the order they came."""
    names: dict[str, None] = {}
    for a in every:
        names |= dict.fromkeys(ruling.removal for ruling in by_removal(a))
    return list(names)


def own(a: Attribution) -> str:
    """The evidence that a method itself had to look for, in one line; empty where it has none."""
    evidence = _own_evidence(a)
    if evidence is None or evidence.value is None:
        return ""
    random = ""
    if evidence.trials:
        trial = evidence.trials[0]
        random = f" (random: {trial.random_low:.2f} to {trial.random_high:.2f})"
    found = f"{evidence.measure} {evidence.value:.2f}{random}"
    return wording.visible(f"{found}: {evidence.verdict or NO_VERDICT}")


def _own_evidence(a: Attribution) -> Evidence | None:
    """What a method found on removals of its own, before or without a trial against rankings."""
    if a.evidence is None or a.evidence.measure != CURVES:
        return a.evidence
    return a.evidence.own


def note(a: Attribution) -> str:
    """Why there is no verdict, or what else is to be said."""
    if a.evidence is None:
        return ""
    return wording.visible(a.evidence.note)


def question(a: Attribution) -> str:
    """What was asked of the ranking: "support" or "matter"; empty where nothing was."""
    if a.evidence is None:
        return ""
    return a.evidence.question


def lines(a: Attribution) -> list[str]:
    """The whole evidence, a line for each removal; none where no evidence was computed."""
    ruling = overall(a)
    if ruling is None:
        return []
    own_evidence = own(a)
    remark = note(a)
    by_itself = by_removal(a)

    out = []
    if ruling.beaten is not None or not (own_evidence or remark):
        out.append(ruling.sentence())
    out += [f"{r.removal}: {r.mark} {r.short_sentence()}" for r in by_itself]
    if own_evidence:
        out.append(f"its own: {own_evidence}" if by_itself else own_evidence)
    if remark:
        out.append(remark)
    return [wording.visible(line) for line in out]


def rankings(every: Sequence[Attribution]) -> int | None:
    """How many random rankings stood beside; None where it is not told."""
    counts = [a.evidence.rankings for a in every if a.evidence is not None]
    return max(counts, default=0) or None  # equal scores may leave a method fewer


def random_rankings(every: Sequence[Attribution]) -> str:
    """Said of the control; without the number where it is unknown. ``100 random rankings``

    Said where some method was tested. Those that had fewer, as equal scores have fewer orders, are
    named with how many they had.
    """
    count = rankings(every)
    if count is None:
        return "random rankings"
    fewer = []
    for a in every:
        evidence = a.evidence
        if evidence is not None and evidence.verdict is not None and evidence.rankings < count:
            fewer.append(f"{a.method} {evidence.rankings or 'of unknown number'}")
    others = f" ({wording.few(fewer)})" if fewer else ""
    return f"{count} random rankings{others}"


def by_evidence(every: Sequence[Attribution]) -> list[Attribution]:
    """Those with the best evidence first; without any they stay as they are."""
    return sorted(every, key=_place)


def _place(a: Attribution) -> tuple[int, float]:
    ruling = overall(a)
    if ruling is None:
        return len(BEST_FIRST), 0.0
    beaten = ruling.beaten or 0.0
    if ruling.verdict is None:
        return len(BEST_FIRST), -beaten
    return BEST_FIRST.index(ruling.verdict), -beaten


def short_p(p: float) -> str:
    """A p-value in four or five characters, on that side of the level on which it is.

    >>> short_p(0.0099), short_p(0.0002), short_p(1.0), short_p(0.0502)
    ('.010', '<.001', '1.00', '>.05')
    """
    if p < 0.001:
        return "<.001"
    if not is_within(p) and is_within(float(f"{p:.3f}")):
        return f">{LEVEL}".replace("0.", ".")
    if p >= 0.9995:
        return f"{p:.2f}"
    return f"{p:.3f}"[1:]
