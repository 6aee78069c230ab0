"""The answer in words. Which words may be said is decided in ``core/answer.py``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from whence.core.answer import (
    Agreed,
    Answer,
    AttentionSays,
    Contested,
    Kept,
    Swayed,
    Written,
)
from whence.core.evidence import (
    FEWEST_RANKINGS,
    ONE_UNIT,
    STILL,
    USUAL_RANKINGS,
    Evidence,
    Verdict,
    is_within,
)
from whence.core.percent import percent
from whence.core.question import Question
from whence.views import wording
from whence.views.sides import Side, sides_of
from whence.views.verdicts import of_evidence

CLOSE, IN_PART = 0.7, 0.4  # mean rank correlations from which methods agree closely, or in part
HARDLY_MORE, NEXT = 0.9, 0.5  # shares of the first label's probability that a second one has
OPPOSED = -0.2  # and below which they say the opposite
MOST_CAUTIONS = 3
LEAD = 2
LONGEST_WRITTEN, LONGEST_NAMED = 120, 40  # characters of what a model wrote
MOST_CONTESTED = 1
REMOVED = {"mask": "masked", "delete": "deleted"}


@dataclass(frozen=True)
class Phrase:
    """A piece of a sentence, and what it is, so that a view can colour it.

    ``role`` is "label", "above" or "below" (zero, the score of what is named), "matter" or
    "method"; empty for all other words.
    """

    text: str
    role: str = ""


Sentence = tuple[Phrase, ...]


def plain(sentence: Sentence) -> str:
    """The sentence without its roles."""
    return wording.visible("".join(phrase.text for phrase in sentence))


def answer_text(answer: Answer) -> str:
    """What ``print(answer)`` shows."""
    lines = [" ".join(answer_sentences(answer))]
    lines += [f"Caution: {caution}" for caution in answer_cautions(answer)]
    return "\n".join(lines)


def answer_sentences(answer: Answer) -> list[str]:
    """The answer in plain sentences."""
    return [plain(sentence) for sentence in sentences(answer)]


def answer_cautions(answer: Answer) -> list[str]:
    """What to be careful about, the gravest first."""
    return [plain(caution) for caution in cautions(answer)]


def asked(answer: Answer) -> str:
    """Which question the verdicts answer; empty where no method was tested."""
    return wording.answers(Question.TEXT) if answer.tried else ""


def sentences(answer: Answer) -> list[Sentence]:
    """What the model says, which units hold that up, who says so, and what attention says.

    The first ``LEAD`` of them are the answer itself, and the others tell how far to trust it.
    """
    parts = [_prediction(answer), *_reasons(answer)]
    if answer.kept is not None and not answer.is_of_one_method and not _is_all(answer, answer.kept):
        parts.append(_anchor(answer, answer.kept))
    if answer.attention is not None:
        parts.append(_attention(answer, answer.attention))
    return [part for part in parts if part]


def in_short(answer: Answer) -> str:
    """The reasons in a few words, for a row of an index.

    Said of each text of an index.
    """
    if answer.methods == 0:
        return "a control"
    if not answer.tried:
        return "not tested"
    if not answer.is_carried:
        return _no_reason_in_short(answer)
    parts = [f"{side.short}: {_row(answer, units)}" for side, units in _by_side(answer)]
    if answer.matters:
        parts.append(f"matter: {_row(answer, answer.matters)}")
    return "; ".join(parts) or _nothing_in_short(answer)


def _nothing_in_short(answer: Answer) -> str:
    """Said where words may be named, and the methods that may speak name none together."""
    if answer.speaking == 1 or not answer.mentioned:
        return f"no {_things(answer)} stand out"
    return "they contradict each other" if answer.contested else "they name different ones"


def _no_reason_in_short(answer: Answer) -> str:
    """Said where the methods together are not better than random, or could not be."""
    if not answer.could_see and not answer.is_of_one_method:
        outcome = "cannot be tested"
    elif not answer.holding:
        outcome = "nothing beats random"
    else:
        outcome = "no more than chance"
    if answer.agreed is None:
        return outcome
    agreed = answer.agreed
    first = wording.quoted(answer.units[agreed.unit])
    return f"{outcome}; {agreed.methods} of {agreed.of} put {first} first"


def _row(answer: Answer, units: Sequence[int]) -> str:
    return ", ".join(wording.visible(name) for name in answer.names(units))


# ---------------------------------------------------------------------- the model


def _prediction(answer: Answer) -> Sentence:
    """``The model says positive (95 %).``, and whether that is what was explained.

    Said of every text, first of all.
    """
    if answer.written is not None:
        return _continuation(answer, answer.written)
    explained = _target(answer)
    if answer.predicted is None or answer.probability is None:
        return _sentence(
            f"The model gives {answer.value:.3g} for ", Phrase(explained, "label"), "."
        )

    if answer.no_label_holds:
        return _no_label(answer, answer.predicted, answer.probability)
    said = Phrase(_label(answer, answer.predicted), "label")
    of_word = "" if answer.word is None else f" of the word “{wording.visible(answer.word)}”"
    sure = f" ({_percent(answer.probability)})"
    parts: list[Phrase | str] = [_place(answer), said, of_word, sure, _rival(answer)]
    if answer.target and answer.target != answer.predicted:
        is_said = answer.target in dict(answer.several)
        parts.append(f". Explained is {'' if is_said else 'another label, '}{explained}")
    elif answer.rather_than is not None:
        parts.append(f". Explained is why {explained}")
    return _sentence(*parts, ".")


def _no_label(answer: Answer, highest: str, probability: float) -> Sentence:
    """Said where each label has its own yes or no, and none reaches one half."""
    label = Phrase(_label(answer, highest), "label")
    of_word = "" if answer.word is None else f" of the word “{wording.visible(answer.word)}”"
    before = f"{_place(answer)}none of its labels{of_word}; highest is "
    parts: list[Phrase | str] = [before, label, f" ({_percent(probability)})"]
    if (answer.target and answer.target != highest) or answer.rather_than is not None:
        parts.append(f". Explained is {_target(answer)}")
    return _sentence(*parts, ".")


def _continuation(answer: Answer, written: Written) -> Sentence:
    """``The model wrote “movie” (3.2 %).``, and whether something else is explained.

    Said of a text that follows a prompt, in place of a prediction.
    """
    text = Phrase(wording.beginning(written.text, LONGEST_WRITTEN), "label")
    what = wording.goes_on(written.by_model)
    parts: list[Phrase | str] = [f"{what} ", text, _likely(written)]
    if written.tokens == 1:
        parts.append(_likelier(answer, written))
    if not written.is_target:
        parts.append(f". Explained is {_target(answer)} in its place")
    elif answer.rather_than is not None:
        rival = _label(answer, answer.rather_than)
        stands = "was written" if written.by_model else "stands there"
        parts.append(f". Explained is why this {stands} rather than {rival}")
    return _sentence(*parts, ".")


def _likely(written: Written) -> str:
    """Said where the probability of what was written is known."""
    if written.tokens == 1:
        return "" if written.probability is None else f" ({_percent(written.probability)})"
    if not written.probability:  # also where it is smaller than any number
        return f" ({written.tokens} tokens)"
    each = _percent(written.probability ** (1 / written.tokens))
    return f" ({written.tokens} tokens, {each} each in the geometric mean)"


def _likelier(answer: Answer, written: Written) -> str:
    """The token that was likelier than the one written, or came next; only where that is known.

    Said where a single token is explained.
    """
    if answer.predicted is None or answer.probability is None or written.is_likeliest is None:
        return ""
    name = wording.beginning(answer.predicted, LONGEST_NAMED)
    share = _percent(answer.probability)
    if not written.is_likeliest:
        hardly = "hardly " if _likely(written) == f" ({share})" else ""
        return f"; {hardly}likelier was {name} ({share})"
    if answer.predicted != answer.target:  # by lot the first of two that are as likely
        return f"; as likely was {name} ({share})"
    return _rival(answer)


def _place(answer: Answer) -> str:
    """Said before a prediction; with a word where a masked model fills its place."""
    if answer.place is None:
        return "The model says "
    return f"In place of “{wording.visible(answer.units[answer.place])}” the model says "


def _rival(answer: Answer) -> str:
    """The other labels, where they come near or hold as well.

    Said of labels that hold as well, or else of a second one from half the first one's probability.
    """
    if len(answer.several) > 1:
        others = [f"{_label(answer, name)} ({_percent(p)})" for name, p in answer.several[1:]]
        return f", and also {', '.join(others)}"
    if answer.several or answer.runner_up is None or answer.probability is None:
        return ""
    name, probability = answer.runner_up
    rival = f"{_label(answer, name)} ({_percent(probability)})"
    if probability == answer.probability:
        return f"; as likely is {rival}"
    if probability >= HARDLY_MORE * answer.probability:
        return f", hardly more than {rival}"
    if probability >= NEXT * answer.probability:
        return f"; next is {rival}"
    return ""


def _target(answer: Answer) -> str:
    """Said of what is explained, in the middle of a sentence."""
    label = _label(answer, answer.target) if answer.target else "the output"
    if answer.written is not None and answer.written.is_target and answer.written.tokens > 1:
        label = wording.beginning(answer.written.text, LONGEST_NAMED)
        if answer.written.is_all and answer.rather_than is None:
            label = "what was written" if answer.written.by_model else "what was given"
    if answer.rather_than is None:
        return label
    return f"{label} rather than {_label(answer, answer.rather_than)}"


def _label(answer: Answer, name: str) -> str:
    """A label; in quotes where it is words of the text."""
    if answer.written is not None:
        return wording.beginning(name, LONGEST_NAMED)
    if not answer.quotes:
        return wording.label(name)
    said = [answer.predicted, answer.target, answer.rather_than]
    if answer.runner_up is not None:
        said.append(answer.runner_up[0])
    return wording.quoted_among(name, [one for one in said if one])


def _percent(probability: float) -> str:
    if 0.9995 <= probability < 1:
        return "over 99.9 %"
    if probability >= 0.9 or probability < 0.1:
        return percent(probability, 1)
    return percent(probability)


# ---------------------------------------------------------------------- the reasons


def _reasons(answer: Answer) -> list[Sentence]:
    """Said of a control, or where no method was tested."""
    if answer.methods == 0:
        return [_sentence("Random scores are a control and explain nothing.")]
    if answer.is_of_one_method:
        return _of_one_method(answer)
    if not answer.tried:
        alone = answer.shown_evidence
        if alone is not None and alone.note in (ONE_UNIT, STILL):  # which is so of every method
            return [_nothing_to_test(alone)]
        untested = f"{_none_of(answer.methods)} was tested against random rankings, "
        return [_sentence(untested, "so nothing says which of them is right.")]
    return [_units_named(answer), _who_says_so(answer)]


def _units_named(answer: Answer) -> Sentence:
    """The units that the methods name together, or that none can be named, and why.

    Said where several methods were tested.
    """
    if not answer.is_carried:
        return _none_named(answer)
    things = _things(answer)
    named = _naming(answer)
    if named:
        return _sentence(*named, ".")
    if answer.speaking == 1:
        return _sentence(f"{_voices_alone(answer)} lets no {things} stand out.")
    if not answer.mentioned:
        return _sentence(f"{_voices_alone(answer)} let no {things} stand out.")
    if answer.contested:
        contest = answer.contested[0]
        name = Phrase(f"“{wording.visible(answer.units[contest.unit])}”")
        one, other = len(contest.those_for), len(contest.those_against)
        has = "has" if one == 1 else "have"
        sides = f": {one} {has} it on one side and {other} on the other, so it is not named."
        return _sentence(f"{_voices_alone(answer)} contradict each other on ", name, sides)
    return _sentence(f"{_voices_alone(answer)} do not name the same {things}.")


def _voices_alone(answer: Answer) -> str:
    """Whose votes were counted: the methods that hold, or the best third of all.

    Said where words may be named, and none is.
    """
    one = answer.speaking == 1
    if answer.holding:
        who = "one method that beats" if one else "methods that beat"
        return f"The {who} random rankings"
    return "The best method" if one else f"The best {answer.speaking} methods"


def _none_named(answer: Answer) -> Sentence:
    """Said where the methods together are not shown to be better than random rankings.

    What most of them put first is told with it: that is a fact.
    """
    if answer.agreed is None:
        return _sentence(f"No {_things(answer)} can be named as the reason: ", _why_not(answer))
    first = _put_first(answer, answer.agreed)
    return _sentence(*first, "; that it is the reason is not shown: ", _why_not(answer))


def _put_first(answer: Answer, agreed: Agreed) -> list[Phrase | str]:
    """``All 9 methods put “dull” first``. Said where more than half of those tested do.

    By the size of its score: where some have it for the target and others against, that is added.
    """
    methods = "methods" if agreed.of == answer.methods else "methods tested"
    count = f"{agreed.methods} of the {agreed.of} {methods}"
    if agreed.methods == agreed.of:
        count = f"Both {methods}" if agreed.of == 2 else f"All {agreed.of} {methods}"
    name = Phrase(f"“{wording.visible(answer.units[agreed.unit])}”", "matter")
    first: list[Phrase | str] = [f"{count} put ", name, " first"]
    if agreed.those_for and agreed.those_against:
        one, other = sides_of(answer.explained).in_order
        say = "says" if agreed.those_for == 1 else "say"
        first.append(
            f", though {agreed.those_for} {say} that it {one.does(_target(answer))} and "
            f"{agreed.those_against} that it {other.does_too()}"
        )
    return first


def _why_not(answer: Answer) -> str:
    """Why nothing is shown: the test could see nothing here, or it could and did not.

    Said where several methods were tested and words may not be named.
    """
    if answer.together is None:
        return "no method ranks anything."
    if not answer.could_see:
        return f"{_too_little(answer)} to test it."
    together = f"taken together, {_the_methods(answer, answer.together.methods)}"
    cannot = "cannot be told from"
    if answer.worse:  # which can be told: the test asks for better ones alone
        cannot = "are not better than"
    if answer.together.methods == 1:
        together = "the one method that ranks them"
        cannot = cannot.replace("are", "is")
    p = wording.p_value(answer.together.p)
    return f"{together} {cannot} random rankings ({p})."


def _the_methods(answer: Answer, ranking: int) -> str:
    """The methods that were judged together: all, those tested, or those that rank something.

    Said where a test of all methods together could have found something, and did not.
    ``the 8 methods that rank something``
    """
    if ranking == answer.methods:
        return f"the {ranking} methods"
    tested = ranking == len(answer.tried)
    return f"the {ranking} methods {'tested' if tested else 'that rank something'}"


def _too_little(answer: Answer) -> str:
    """What the test lacks. Said where even the best rankings could not be told from random."""
    if answer.orders is not None:
        return "this text is too short"
    if answer.rankings is not None and (answer.rankings < FEWEST_RANKINGS or not answer.has_ties):
        return f"{answer.rankings} random rankings are too few"
    return "too many scores are equal" if answer.has_ties else "there are too few rankings"


def _naming(answer: Answer) -> list[Phrase | str]:
    """``not, bad speak for positive; but speaks against it``; empty where nothing is named."""
    label = _target(answer)
    if answer.matters:
        verb = "matters" if len(answer.matters) == 1 else "matter"
        what = sides_of(answer.explained).what_matters_for(label)
        return [*_named(answer, answer.matters, "matter"), f" {verb} most for {what}"]
    parts: list[Phrase | str] = []
    for side, units in _by_side(answer):
        named = _named(answer, units, side.role)
        if parts:
            parts += ["; ", *named, f" {side.does_too(len(units))}"]
        else:
            parts += [*named, f" {side.does(label, len(units))}"]
    return parts


def _by_side(answer: Answer) -> list[tuple[Side, tuple[int, ...]]]:
    """The units that are named and what they do: first those for the target, then those against.

    Of an entropy or a divergence first those that raise it.
    """
    both = (answer.speaks_for, answer.speaks_against)
    if not answer.explained.sign_of_support:
        both = (answer.raises, answer.lowers)
    in_order = sides_of(answer.explained).in_order
    return [(side, units) for side, units in zip(in_order, both, strict=True) if units]


def _named(answer: Answer, units: Sequence[int], role: str) -> list[Phrase | str]:
    """“not”, “bad” and “fine”, each a phrase by itself."""
    parts: list[Phrase | str] = []
    for place, name in enumerate(answer.names(units)):
        if place:
            parts.append(" and " if place == len(units) - 1 else ", ")
        parts.append(Phrase(f"“{wording.visible(name)}”", role))
    return parts


def _who_says_so(answer: Answer) -> Sentence:
    """How many methods beat random by themselves, which name the units, and how far they agree.

    Said where several methods were tested.
    """
    if answer.orders is not None and not is_within(1 / answer.orders):
        return _too_short(answer, answer.orders)
    if not answer.is_carried:
        return _sentence(f"{_alone(answer)}.{_best_possible(answer)}")
    said = _beaten(answer)
    if _naming(answer):
        said += f"; {_name_it(answer)}"
    if answer.speaking == 1:
        said += f": {wording.few(answer.voices or answer.holding)}"
    elif answer.agreement is not None:
        number = wording.correlation(answer.agreement)
        said += f"; {_who_agree(answer)} {_agree(answer.agreement)} (rank correlation {number})"
    if answer.agreed is None:
        return _sentence(f"{said}.")
    return _sentence(f"{said}. ", *_put_first(answer, answer.agreed), ".")


def _alone(answer: Answer) -> str:
    """``1 of the 9 methods tested beats random rankings by itself``. Said where none is named."""
    count, tried = len(answer.holding), len(answer.tried)
    if not count:
        return _none_alone(tried)
    alone = "by itself" if count == 1 else "by themselves"
    return f"{_how_many(count, tried)} random rankings {alone}, which chance can give"


def _best_possible(answer: Answer) -> str:
    """What the test could have found. Said where it found nothing, or could not."""
    if answer.together is None:
        return ""
    p = wording.p_value(answer.together.smallest_p)
    if answer.could_see:
        return f" The test could have seen more: the best rankings would have {p}."
    return f" Even the best rankings would have {p}."


def _beaten(answer: Answer) -> str:
    """``7 of the 21 methods tested beat random rankings``. Said where units may be named."""
    count, tried = len(answer.holding), len(answer.tried)
    if count:
        return f"{_how_many(count, tried)} random rankings"
    together = "" if answer.together is None else f" ({wording.p_value(answer.together.p)})"
    return f"{_none_alone(tried)}, but together they do{together}"


def _none_alone(tried: int) -> str:
    """Said where no method is better than random by itself."""
    if tried == 1:
        return "The one method tested does not beat random rankings"
    return f"{_none_of(tried, ' tested')} beats random rankings by itself"


def _none_of(methods: int, tested: str = "") -> str:
    """``None of the 9 methods``, or of two ``Neither of the 2 methods``."""
    return f"{'Neither' if methods == 2 else 'None'} of the {methods} methods{tested}"


def _how_many(count: int, tried: int) -> str:
    """``7 of the 21 methods tested beat``. Said where some method is better than random."""
    if tried == 1:
        return "The one method tested beats"
    if count == tried:
        who = "Both methods" if tried == 2 else f"All {tried} methods"
        return f"{who} tested beat"
    return f"{count} of the {tried} methods tested {'beats' if count == 1 else 'beat'}"


def _name_it(answer: Answer) -> str:
    """How many of those that may speak name the units. Said where units are named."""
    voices, counted = len(answer.voices), answer.naming
    if counted is None:
        return "they name it"
    if voices == 1:
        return _one_voice(answer)
    of = "" if answer.holding else f"of the best {voices}, "
    if voices < answer.speaking:
        those = "these" if answer.holding else f"the best {answer.speaking}"
        of = f"{voices} of {those} tell {sides_of(answer.explained).told_apart}: "
    units = _count_named(answer)
    it = "it" if units == 1 else "all of these"
    everyone = "both" if voices == 2 else f"all {voices}"
    if counted.every == voices:
        return f"{of}{everyone} name {it}"
    if it == "it":
        return f"{of}{counted.every} of {voices} name it"
    every = "none" if not counted.every else str(counted.every)
    verb = "name" if counted.every > 1 else "names"
    them = "them both" if units == 2 else "them all"
    named = f"each of the {units} {_things(answer)} is named by at least {counted.fewest}"
    return f"{of}{named} of the {voices}, and {every} {verb} {them}"


def _one_voice(answer: Answer) -> str:
    """Said where a single method names the units: it alone has signs, or holds, or is the best."""
    if answer.speaking > 1:
        those = "these" if answer.holding else f"the best {answer.speaking}"
        tells = sides_of(answer.explained).told_apart
        return f"the one of {those} that tells {tells} says so"
    return "it says so" if answer.holding else "the best of them says so"


def _who_agree(answer: Answer) -> str:
    """Whose agreement is told: that of all whose votes were counted, with signs and without."""
    is_told_of_all = len(answer.voices) == answer.speaking
    if not answer.names_something:
        return "they" if answer.holding else f"the best {answer.speaking}"
    if is_told_of_all:
        return "they"
    if not answer.holding:
        return f"the best {answer.speaking}"
    return "both" if answer.speaking == 2 else f"all {answer.speaking}"


def _count_named(answer: Answer) -> int:
    sides = (answer.speaks_for, answer.speaks_against, answer.raises, answer.lowers)
    return sum(map(len, sides)) + len(answer.matters)


def _agree(correlation: float) -> str:
    """Said of the mean correlation of two methods or more. ``contradict each other``"""
    if correlation >= CLOSE:
        return "agree closely"
    if correlation >= IN_PART:
        return "agree in part"
    if correlation >= OPPOSED:
        return "hardly agree"
    return "contradict each other"


# ---------------------------------------------------------------------- one method


def _of_one_method(answer: Answer) -> list[Sentence]:
    """What the method says, if its ranking holds; otherwise first that it does not.

    Said where one method was asked.
    """
    if answer.kept is not None:
        return [_anchor(answer, answer.kept), _verdict_on_one(answer)]
    evidence = answer.shown_evidence
    if evidence is not None and evidence.verdict in (Verdict.SAME, Verdict.WORSE) and answer.tried:
        return [_verdict_on_one(answer), _said_by_one(answer, "It would say that ")]
    return [_said_by_one(answer, ""), _verdict_on_one(answer)]


def _said_by_one(answer: Answer, before: str) -> Sentence:
    """Said where one method was asked, and it gives no anchor."""
    named = _naming(answer)
    things = _things(answer)
    method = Phrase(wording.visible(answer.shown), "method")
    if before:
        return (
            _sentence(before, *named, ".") if named else _sentence(f"No {things} stand out in it.")
        )
    if named:
        return _sentence("By ", method, ", ", *named, ".")
    return _sentence("By ", method, f", no {things} stand out.")


def _verdict_on_one(answer: Answer) -> Sentence:
    """Whether the ranking of the only method can be told from random ones.

    Said where one method was asked.
    """
    evidence = answer.shown_evidence
    if evidence is not None and evidence.ranks_nothing:
        return _nothing_to_test(evidence)
    if not answer.tried or evidence is None:
        reason = "" if evidence is None or not evidence.note else f" ({evidence.note})"
        untested = "It was not tested against random rankings"
        return _sentence(f"{untested}{reason}, so nothing says that this is right.")
    if answer.orders is not None and not is_within(1 / answer.orders):
        return _too_short(answer, answer.orders)
    subject = f"The ranking by {answer.shown}"
    if answer.kept:
        subject = f"As a ranking of all {_things(answer)} it"
    verdict = f"{wording.visible(subject)} is {evidence.verdict}"
    numbers = of_evidence(evidence).without_interval()
    if not numbers:
        return _sentence(f"{verdict}.")
    return _sentence(f"{verdict}: it {numbers}.")


def _nothing_to_test(evidence: Evidence) -> Sentence:
    """Said where there is no ranking: one unit, equal scores, or scores that are zero anyway."""
    return _sentence(f"Nothing could be tested: {evidence.note}.")


def _too_short(answer: Answer, orders: int) -> Sentence:
    """Where no ranking can be told from a random one, whatever it says.

    Said where no order of so few units is rare enough to be told from a random one.
    """
    things = _things(answer)
    count = len(answer.units)
    if count == 1:
        return _sentence("One unit cannot be ranked, so nothing could be tested.")
    return _sentence(f"{count} {things} have only {orders} orders, too few to test a ranking.")


# ---------------------------------------------------------------------- anchors and attention


def _anchor(answer: Answer, kept: Kept) -> Sentence:
    """The rule of an anchor, as one would say it, with the removal that it was tried under.

    Said where a method found an anchor that is as precise as was asked.
    """
    things = _things(answer)
    removed = REMOVED.get(kept.removal, f"removed ({wording.visible(kept.removal)})")
    other = "other " if kept.units else ""
    label = _label(answer, kept.label)
    says = f"{label} stays the highest label" if kept.is_highest else f"the model says {label}"
    if _is_all(answer, kept):
        what = f"{label} the highest label" if kept.is_highest else label
        return _sentence(f"Nothing less than the whole text was found to keep {what}.")
    share = math.floor(100 * kept.at_least)
    how = f"while {other}{things} are {removed} at random, {says} in at least {share} % of trials."
    if kept.at_least == 1:
        how = f"whichever {other}{things} are {removed}, {says}."
    if not kept.units:
        return _sentence(how[0].upper() + how[1:])
    stay = "stays" if len(kept.units) == 1 else "stay"
    return _sentence("If ", *_named(answer, kept.units, "matter"), f" {stay}, {how}")


def _is_all(answer: Answer, kept: Kept) -> bool:
    """Whether the anchor is the whole text, so that there are no other units to remove."""
    return bool(kept.units) and len(kept.units) == len(answer.units)


def _attention(answer: Answer, says: AttentionSays) -> Sentence:
    """What attention alone would have said, and whether that can be believed.

    Said where plain attention stands among several methods.
    """
    method = Phrase(says.method, "method")
    named = _named(answer, says.units, "matter")
    parts: list[Phrase | str] = ["Attention alone (", method, ")"]
    parts += [" would have named ", *named] if named else [" would have singled out nothing"]
    return _sentence(*parts, f"; {_belief(answer, says)}.")


def _belief(answer: Answer, says: AttentionSays) -> str:
    """Said behind what attention would have named, by its own verdict."""
    if says.verdict is None:
        return "that was not tested"
    if says.verdict == Verdict.WORSE:
        return f"that is {says.verdict}: do not believe it"
    if says.verdict == Verdict.SAME:
        return "that cannot be told from random rankings, so do not rely on it"
    if not answer.is_carried:
        return "that beats random rankings, which can happen by chance"
    if not says.units:
        return "its ranking beats random ones"
    if not says.shared:
        none = "does not name it" if len(says.units) == 1 else "names none of these"
        return f"that beats random rankings, and the answer {none}"
    if says.shared == len(says.units):
        them = "it" if len(says.units) == 1 else "all of these"
        return f"that beats random rankings, and the answer names {them} too"
    return f"that beats random rankings, and the answer names {says.shared} of these too"


# ---------------------------------------------------------------------- cautions


def cautions(answer: Answer) -> list[Sentence]:
    """What to be careful about, the gravest first.

    Said below the answer, the gravest three at most.
    """
    found: list[Sentence] = []
    if answer.control_held:
        found.append(_sentence(f"even random scores were called {Verdict.BETTER} here."))
    if answer.orders is not None and is_within(1 / answer.orders):
        few = f"{len(answer.units)} {_things(answer)} have only {answer.orders} orders"
        found.append(_sentence(f"{few}, so the test is coarse."))
    found += [_contest(answer, contest) for contest in answer.contested[:MOST_CONTESTED]]
    if len(answer.holding) > 1 and answer.agreement is not None and answer.agreement < IN_PART:
        differ = f"rank the {_things(answer)} differently."
        found.append(_sentence(f"the methods that beat random rankings {differ}"))
    if answer.swayed:
        found.append(_removal(answer, answer.swayed))
    if answer.rankings is not None:
        fewer = f"there were {answer.rankings} random rankings, not {USUAL_RANKINGS} as usual: "
        found.append(_sentence(fewer, "shares and p-values are rougher."))
    return found[:MOST_CAUTIONS]


def _things(answer: Answer) -> str:
    return wording.plural(answer.kind)


def _contest(answer: Answer, contest: Contested) -> Sentence:
    """Said where some methods have a unit for the target, and others against it.

    ``methods contradict each other on “bad”: it speaks for good by lime, against it by occlusion.``
    """
    name = Phrase(f"“{wording.visible(answer.units[contest.unit])}”")
    those_for = wording.few(contest.those_for, most=3)
    those_against = wording.few(contest.those_against, most=3)
    one, other = sides_of(answer.explained).in_order
    return _sentence(
        "methods contradict each other on ",
        name,
        f": it {one.does(_target(answer))} by {those_for}, {other.other_end()} by {those_against}.",
    )


def _removal(answer: Answer, swayed: Sequence[Swayed]) -> Sentence:
    """Which methods hold under one removal alone.

    Said where a method is better than random by one removal and not by another.
    """
    groups = []
    for group in swayed:
        methods = wording.few(group.methods, most=3)
        good, bad = (wording.listed(removals) for removals in (group.holds_by, group.fails_by))
        groups.append(f"{methods} ({Verdict.BETTER} by {good}, not by {bad})")
    how = f"the way of removing {_things(answer)} decides for"
    return _sentence(f"{how} {' and for '.join(groups)}.")


def _sentence(*parts: Phrase | str) -> Sentence:
    return tuple(part if isinstance(part, Phrase) else Phrase(part) for part in parts)
