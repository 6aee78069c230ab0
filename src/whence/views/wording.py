"""How values are worded in every view: numbers with sensible digits, costs and errors.

What others wrote goes through ``visible`` (``core/showing.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from whence.core import percent as percents
from whence.core.agreement import WEAK, Agreement, Conflict
from whence.core.attribution import Attribution, Cost
from whence.core.counting import counted as counted
from whence.core.durations import spoken
from whence.core.evidence import LEVEL, Verdict, is_within
from whence.core.plan import Plan
from whence.core.provenance import Provenance
from whence.core.question import Question
from whence.core.showing import signs, visible
from whence.core.sizes import human
from whence.core.target import WHOLE_INPUT, Target
from whence.views.sides import Sides

MOST_DECIMALS = 6
MEASURES = {"spearman": "Spearman's correlation", "kendall": "Kendall's tau-b"}
# Said where methods shared a pass.
SHARED_PASS = "* One of these passes is shared: all methods marked so look at the same run."
# Said where some passes were known already.
FROM_MEMORY = (
    "From memory: texts that had been run before, for another method or for the evidence, "
    "and cost nothing again."
)
LONGEST_SPAN = 60  # characters of several written tokens, where they are named
CUT = "┃"  # between two windows of a long text
# Said of a target, by how it is read.
READINGS = {
    "logit": "score (logit)",
    "log-probability": "log-probability",
    "probability": "probability",
    "margin": "lead in score (logit)",
    "cross-entropy": "cross-entropy",
    "perplexity": "perplexity",
    "entropy": "entropy of all that could stand in place",
    "kl": "divergence (KL)",
}
PLURAL = {
    "word": "words",
    "token": "tokens",
    "sentence": "sentences",
    "section": "sections",
    "patch": "patches",
    "feature": "features",
}


def answers(question: Question) -> str:
    """Which of the four questions about an explanation is answered: each has its own words.

    Said below every verdict. ``This answers: Is this ranking better than random on this text?``
    """
    return f"This answers: {question.asked}"


def plural(kind: str) -> str:
    """Several units of a kind; one that a caller has named stays as it is.

    >>> plural("patch"), plural("regions")
    ('patches', 'regions')
    """
    return PLURAL.get(kind, kind)


def few_digits(number: int | float) -> str:
    """A number with up to two decimals, and never an exponent.

    >>> few_digits(0.05), few_digits(12.5), few_digits(500.0), few_digits(12000)
    ('0.05', '12.5', '500', '12,000')
    """
    shown = f"{number:,.2f}"
    return shown.rstrip("0").rstrip(".")


def file_name(source: str) -> str:
    """The last part of a path or an address: where data lie is nobody's business but its owner's.

    >>> file_name("s3://texts/reviews/"), file_name("C:\\\\data\\\\reviews.csv")
    ('reviews', 'reviews.csv')
    """
    return visible(source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])


def model_name(name: str) -> str:
    """A model as a sentence names it: of a folder its last part, of a name on a hub all of it.

    >>> model_name("/home/me/models/toxic/"), model_name("org/some-model")
    ('toxic', 'org/some-model')
    """
    is_on_a_hub = name.count("/") == 1 and name[0].isalnum() and not name.endswith("/")
    return visible(name) if is_on_a_hub else file_name(name)


def label(name: object) -> str:
    """A label as it is read; in quotes where white space is part of it, as in some tokens.

    >>> label("positive"), label(" good"), label("\\n")
    ('positive', '“good”', '“⏎”')
    """
    text = str(name)
    if text and text == text.strip():
        return visible(text)
    return quoted(text)


def quoted(name: object) -> str:
    """A label that is words of the text, without the white space around them.

    White space that stands alone is told by its sign.

    >>> quoted("in 1889"), quoted(" good"), quoted("\\n")
    ('“in 1889”', '“good”', '“⏎”')
    """
    text = str(name)
    return f"“{visible(text.strip()) or signs(text)}”"


def quoted_among(name: object, others: Iterable[object]) -> str:
    """The same, with a sign for its white space where another label would be alike without.

    >>> quoted_among(" the", [" the", " a"]), quoted_among(" the", [" the", "the"])
    ('“the”', '“␣the”')
    """
    text, shown = str(name), quoted(name)
    if all(str(other) == text or quoted(other) != shown for other in others):
        return shown
    before = text[: len(text) - len(text.lstrip())]
    return f"“{signs(before)}{shown.removeprefix('“')}"


def label_said(a: Attribution, name: str) -> str:
    """One of the labels that the model says, in a list of them: a token is words, in quotes."""
    return quoted_among(name, a.prediction) if a.says_tokens else label(name)


def goes_on(by_model: bool) -> str:
    """What is said before a text that follows a prompt: a text that was given was not written.

    Said before a text that follows a prompt.

    >>> goes_on(True), goes_on(False)
    ('The model wrote', 'The text goes on with')
    """
    return "The model wrote" if by_model else "The text goes on with"


def standing(by_model: bool) -> str:
    """The same as one word, before what follows the prompt.

    >>> standing(True), standing(False)
    ('written', 'given')
    """
    return "written" if by_model else "given"


def beginning(text: str, most: int) -> str:
    """A text in quotes, on one line; of a long one its first words, ``most`` characters at most.

    >>> beginning("once upon a time", 9), beginning("once upon a time", 8)
    ('“once upon…”', '“once…”')
    >>> beginning("once\\nupon", 9), beginning("o" * 12, 9)
    ('“once upon”', '“ooooooooo…”')
    """
    text = " ".join(text.split()) or signs(text)
    if len(text) <= most:
        return quoted(text)
    start = text[:most]
    if text[most] != " " and " " in start:  # a word is not cut
        start = start[: start.rindex(" ")]
    return quoted(f"{start.rstrip()}…")


def ended(sentence: str) -> str:
    """A sentence with its full stop, where a text in quotes at its end has none.

    >>> ended("The model wrote “so good”"), ended("The model wrote “So good.”")
    ('The model wrote “so good”.', 'The model wrote “So good.”')
    """
    return sentence if sentence.endswith((".”", "!”", "?”", "…”")) else f"{sentence}."


def score_format(scores: Iterable[float], signed: bool) -> Callable[[float], str]:
    """One format for a column of scores: three digits of the largest one.

    Decimal points stand below each other.

    >>> f = score_format([0.1234, -2.5], signed=True)
    >>> f(0.1234), f(-2.5), f(0.0)
    ('+0.12', '-2.50', '0.00')
    """
    largest = max((abs(s) for s in scores), default=0.0)
    sign = "+" if signed else ""
    if largest and not 1e-5 <= largest < 1e6:
        return lambda s: f"{s:{sign}.1e}" if s else "0"
    decimals = 2
    if largest:
        decimals = min(max(2 - math.floor(math.log10(largest)), 0), MOST_DECIMALS)

    def shown(s: float) -> str:
        text = f"{s:{sign}.{decimals}f}"
        if float(text) == 0:  # rounding to nothing leaves no sign behind
            return text.lstrip("+-")
        return text

    return shown


def exact(score: float, signed: bool) -> str:
    """A score with six digits, for a tooltip."""
    if signed:
        return f"{score:+.6g}"
    return f"{score:.6g}"


def value(a: Attribution) -> str:
    """The target and what it is on this text: ``the score (logit) of positive, 2.31``."""
    of_windows = windows(a)
    explained = target(a.target, a.labels_are_quoted)
    number = f"{a.value:.4g}".replace("-", "−")
    if of_windows:
        return f"{explained}, {number} ({of_windows})"
    return f"{explained}, {number}"


def target(explained: Target, quotes: bool = False) -> str:
    """The number that is explained, in words that need no second reading.

    ``quotes`` puts labels that are words of the text into quotes.

    Said of every target.

    >>> target(Target("complaint", against="refund"))
    'the score (logit) of complaint less that of refund'
    """
    what = READINGS[explained.read]
    if explained.read == "kl":
        reference = WHOLE_INPUT if explained.reference is None else explained.reference.name
        what = f"{what}, from {reference}, in the place"
    if explained.ids is not None or explained.against_ids is not None:
        span = f"the {what} of {beginning(str(explained.label), LONGEST_SPAN)}"
        if explained.against_ids is None:
            return span
        return f"{span} less that of {beginning(str(explained.against), LONGEST_SPAN)}"
    shown = quoted if quotes else label
    name = "the predicted class" if explained.label is None else shown(explained.label)
    place = ""
    if explained.word is not None:
        place = f" at {label(explained.word)!r}"
    if explained.against is None:
        return f"the {what} of {name}{place}"
    if explained.read == "margin":
        return f"the {what} of {name} over {shown(explained.against)}{place}"
    return f"the {what} of {name} less that of {shown(explained.against)}{place}"


def target_of_each(explained: Sequence[Target]) -> str:
    """The number that is explained of each written token; all are read in one way.

    Said of the targets of all written tokens. ``the score (logit) of each, less that of “few”``

    >>> target_of_each([Target(" many", against=" few", at=0), Target(" men", at=1)])
    'the score (logit) of each, of “many” less that of “few”'
    """
    read, reference = explained[0].read, explained[0].reference
    if read == "entropy":
        return "the entropy of all that could stand in place of each"
    if read == "kl":
        name = WHOLE_INPUT if reference is None else reference.name
        return f"the {READINGS[read]}, from {name}, in the place of each"
    if read == "margin":
        return "the lead of each in score (logit) over the strongest other"
    contrasts = [one for one in explained if one.against is not None]
    rivals = few([*dict.fromkeys(quoted(one.against) for one in contrasts)])
    what = f"the {READINGS[read]} of each"
    if not contrasts:
        return what
    if len(contrasts) < len(explained):
        return f"{what}, of {few([quoted(one.label) for one in contrasts])} less that of {rivals}"
    return f"{what}, less that of {rivals}"


def model_line(a: Attribution) -> str:
    """The model by name and class."""
    return f"{visible(a.provenance.model)} · {visible(a.provenance.architecture)}"


def precision(p: Provenance) -> str:
    """The type of the weights, and that of the products where torch.autocast was on.

    Said of the weights; of autocast where it was on.
    """
    if p.autocast is None:
        return p.dtype
    return f"{p.dtype} under autocast to {p.autocast}"


def milliseconds(seconds: float) -> str:
    """A time as a number of milliseconds, for a column."""
    ms = seconds * 1000
    if ms < 9.95:
        return f"{ms:.1f}"
    return f"{ms:,.0f}"


def duration(seconds: float) -> str:
    """A time that something took, as a person would say it.

    >>> duration(0.4), duration(42.3), duration(130.0)
    ('under a second', '42 s', '2 min')
    """
    return spoken(seconds)


def percent(share: int | float) -> str:
    """A share in percent with two digits.

    It is 0 or 100 % only where it is exactly that.

    >>> percent(0.00312), percent(0.5), percent(830.0), percent(0.996)
    ('0.31 %', '50 %', '83000 %', '99.6 %')
    """
    hundred = share * 100
    if hundred >= 9.95 or hundred == 0:
        return percents.percent(share)
    if hundred >= 0.01:
        return f"{hundred:.2g} %"
    return "< 0.01 %"


def effect(share: float) -> str:
    """A share in whole per cent with its sign; what is not nothing or all is not rounded to it.

    >>> effect(0.634), effect(-0.4), effect(0.0031), effect(0.997), effect(1.0)
    ('63 %', '−40 %', '0.31 %', '> 99 %', '100 %')
    """
    size = abs(share)
    sign = "−" if share < 0 else ""
    if size < 0.01:
        return f"{sign}{percent(size)}"
    if 0.995 <= size < 1:
        return f"{sign}> 99 %"
    return f"{sign}{percents.percent(size)}"


def between(ends: Sequence[int | float]) -> str:
    """An interval of shares.

    >>> between((0.92, 1.0))
    '92 to 100 %'
    """
    return percents.between(*ends)


def p_value(p: int | float) -> str:
    """A p-value with two digits; with more where these would put it on the other side of the level.

    >>> p_value(0.0099), p_value(0.31), p_value(0.00002), p_value(0.0502)
    ('p = 0.0099', 'p = 0.31', 'p < 0.001', 'p = 0.0502')
    """
    if p < 0.001:
        return "p < 0.001"
    for digits in (2, 3, 4):
        shown = f"{p:.{digits}g}"
        if is_within(float(shown)) == is_within(p):
            return f"p = {shown}"
    return f"p > {LEVEL}"


def p_of_verdict(verdict: Verdict | None, p: float | None) -> str:
    """The p-value of the verdict that is said; empty where it is not known.

    >>> p_of_verdict(Verdict.WORSE, 0.0099), p_of_verdict(Verdict.SAME, 0.31)
    ('p = 0.0099 of worse', 'p = 0.31')
    """
    if p is None:
        return ""
    return f"{p_value(p)} of worse" if verdict == Verdict.WORSE else p_value(p)


def forwards(cost: Cost) -> str:
    """Forward passes that were paid for, and those that were known already.

    Said of every cost; of memory where some passes came from it.

    >>> forwards(Cost(forwards=1000, saved=212))
    '1,000 forward (212 more from memory)'
    """
    paid = f"{cost.forwards:,} forward"
    if not cost.saved:
        return paid
    return f"{paid} ({cost.saved:,} more from memory)"


def forwards_cell(cost: Cost) -> str:
    """The same for a column; a star marks passes that several methods share."""
    if cost.shared:
        return f"{cost.forwards:,}*"
    return f"{cost.forwards:,}"


def cost(paid: Cost) -> str:
    """What a result cost, in one line.

    Said of every cost; of the peak where it is known.
    """
    line = f"{forwards(paid)}, {paid.backwards:,} backward, {duration(paid.seconds)}"
    if not paid.peak_bytes:
        return line
    return f"{line}, {human(paid.peak_bytes)} at the peak"


def spread(a: Attribution) -> list[str] | None:
    """``± 0.021`` for each unit; None where the method gives no standard errors.

    Decimal points stand below each other; an error that is not finite is shown as ``± ?``.
    """
    if a.error is None or a.error.standard_error is None:
        return None
    every = a.error.standard_error.tolist()
    shown = score_format([s for s in every if math.isfinite(s)], signed=False)
    return [f"± {shown(s)}" if math.isfinite(s) else "± ?" for s in every]


def anchor(a: Attribution) -> str:
    """An anchor as a rule, with its precision and coverage; empty where there is no anchor."""
    if a.detail is None or not isinstance(a.detail.get("anchor"), Sequence):
        return ""
    rule = f"IF {_kept(a)} THEN {_outcome(a)}"
    facts = _anchor_facts(a.detail)
    if not facts:
        return rule
    return f"{rule}: {'; '.join(facts)}"


def _kept(a: Attribution) -> str:
    """What stays wherever the anchor holds.

    Said of every anchor.
    """
    names = [f"“{visible(a.units.names[i])}”" for i in anchored(a)]
    if not names:
        return "anything at all stays"
    verb = "stays" if len(names) == 1 else "stay"
    return f"{' and '.join(names)} {verb}"


def _outcome(a: Attribution) -> str:
    """Said of every anchor."""
    predicted = next(iter(a.prediction), None)
    what = "prediction" if a.labels_that_hold is None else "highest label"
    if predicted is None:
        return f"the {what} is the same"
    return f"the {what} is {label(predicted)}"


def _anchor_facts(detail: Mapping[str, Any]) -> list[str]:
    facts = []
    if detail.get("precision") is not None:
        facts.append(_precision(detail))
    if detail.get("coverage") is not None:
        facts.append(f"coverage {percent(detail['coverage'])}")
    if detail.get("samples") is not None:
        facts.append(f"{detail['samples']:,} samples")
    return facts


def _precision(detail: Mapping[str, Any]) -> str:
    fact = f"precision {percent(detail['precision'])}"
    if detail.get("exact"):
        fact += " exactly"
    elif detail.get("interval"):
        fact += f" ({between(detail['interval'])})"
    if detail.get("threshold") is not None:
        fact += f", at least {percent(detail['threshold'])} asked"
    return fact


def anchored(a: Attribution) -> list[int]:
    """The units of the anchor, in reading order; none where there is no anchor."""
    units = (a.detail or {}).get("anchor")
    if not isinstance(units, Sequence):
        return []
    # an anchor of another text may name units that this one does not have
    return sorted(int(i) for i in units if 0 <= int(i) < len(a.scores))


def _of_features(facts: dict[str, Any]) -> str:
    """What players of a hidden state are parts of; what is told of that goes out of ``facts``.

    Said where units are features of a hidden state.
    """
    missed = facts.pop("share not reconstructed", None)
    if missed is None:
        return ""
    text, layer, variant = (facts.pop(name, "") for name in ("text", "layer", "variant"))
    others, bias = facts.pop("other features", 0), facts.pop("only the decoder's bias", None)
    parts = [
        f"The text is “{text}”, at its hidden states after block {layer} ({variant}).",
        f"All other features that are active ({others}) are one unit.",
        f"The autoencoder does not reconstruct {percent(missed)} of the variance.",
    ]
    if bias is not None:
        parts.append(f"With the decoder's bias alone the target is at {bias:.4g}.")
    return visible(" ".join(parts))


def detail(a: Attribution) -> str:
    """What else a method tells, in one line: the samples drawn, the estimator, the fit.

    Said where a method tells more than scores, and no anchor.
    """
    if anchor(a):  # which is told by itself
        return ""
    facts = {k: v for k, v in (a.detail or {}).items() if isinstance(v, (str, int, float))}
    players = _of_features(facts)
    parts = []

    samples = facts.pop("samples", None)
    if samples is not None:
        distinct = facts.pop("distinct", None)
        beside = "" if distinct is None else f", {distinct:,} of them distinct"
        parts.append(f"{samples:,} samples{beside}")

    estimator = facts.pop("estimator", None)
    if estimator is not None:
        parts.append(f"estimator {estimator}")

    fit = facts.pop("r2", None)
    if fit is not None:
        parts.append(f"R² {fit:.3g}")

    for name, fact in facts.items():
        shown = f"{fact:.4g}" if isinstance(fact, float) else str(fact)
        parts.append(f"{name} {shown}")
    return ". ".join(filter(None, [visible("; ".join(parts)), players]))


def correlation(r: float) -> str:
    """A correlation with its sign; a dash where there is none.

    >>> correlation(0.314), correlation(-0.2), correlation(float("nan"))
    ('0.31', '−0.20', '–')
    """
    if math.isnan(r):
        return "–"
    return f"{r:.2f}".replace("-", "−").replace("−0.00", "0.00")


def share(part: float) -> str:
    """A share in whole per cent; a dash where there is none.

    It has a decimal, or two, where it would be 0 or 100 % and is not.

    >>> share(0.98), share(0.996), share(1.0), share(float("nan"))
    ('98 %', '99.6 %', '100 %', '–')
    """
    return percents.percent(part)


def about_agreement(agreement: Agreement) -> str:
    """What the numbers of an agreement are, and what chance would give.

    Said below what is told of agreement.
    """
    measure = MEASURES[agreement.measure]
    scores = f"{measure} of the scores (of their sizes, where one method has no signs)"
    if not has_top(agreement):
        return f"{scores}."
    chance = share(agreement.chance)
    return f"{scores}, and the share of the top {agreement.k} units in common, by chance {chance}."


def has_top(agreement: Agreement) -> bool:
    """Whether the top units are some of them; all have all units in common."""
    return agreement.chance < 1


def ends(agreement: Agreement, name: Callable[[str], str] = visible) -> str:
    """The methods that agree most, and those that agree least, with how many pairs tie with them.

    Said where two methods can be compared; of two alone, that they are the only ones, and where all
    pairs are as close, that none is furthest.
    """
    shown = [correlation(r) for _, _, r in agreement.pairs]
    one, other, _ = agreement.pairs[0]
    if len(shown) == 1:
        return f"Only {name(one)} and {name(other)} can be compared ({shown[0]})."
    said = []
    for which, place in (("Closest", 0), ("Furthest", -1)):
        one, other, _ = agreement.pairs[place]
        tied = shown.count(shown[place]) - 1
        more = f", and {counted(tied, 'other pair')}" if tied else ""
        said.append(f"{which}: {name(one)} and {name(other)}{more} ({shown[place]}).")
    return said[0] if len(set(shown)) == 1 else " ".join(said)


def camps(conflict: Conflict, said: Sides, most: int = 4) -> list[tuple[str, str]]:
    """What the two sides of a conflict say of its unit, and who says so, the surest first.

    In brackets stands the score as a share of the largest one of its method on the text.

    >>> from whence.views.sides import sides
    >>> one, other = ("a", "b"), ("c",)
    >>> conflict = Conflict(0, "not", "sign", one, other, 0.3, 1.0, (0.2, 1.0), (-0.31,))
    >>> camps(conflict, sides("logit"))
    [('for', 'b (+100 %), a (+20 %)'), ('against', 'c (−31 %)')]
    """
    both = (conflict.one, conflict.one_shares), (conflict.other, conflict.other_shares)
    told = []
    for word, (names, shares) in zip(said.camps(conflict.kind), both, strict=True):
        if not shares:
            told.append((word, few(names, most)))
            continue
        # of those who are weak, the weakest is surest
        turn = 1 if word == "weak" else -1
        every = sorted(zip(names, shares, strict=True), key=lambda each: turn * abs(each[1]))
        shown = [f"{name} ({_of_largest(part, conflict.kind)})" for name, part in every]
        told.append((word, few(shown, most)))
    return told


def _of_largest(part: float, kind: str) -> str:
    """A share of a method's largest score; its sign where that is the matter.

    What is weak, less than a tenth, is not rounded up to one.
    """
    if kind != "sign":
        shown = percents.percent(abs(part))
        is_rounded_up = abs(part) < WEAK and shown == percents.percent(WEAK)
        return f"< {shown}" if is_rounded_up else shown
    shown = percents.percent(part).replace("-", "−")
    return f"+{shown}" if shown[0].isdigit() else shown


def few(names: Sequence[str], most: int = 4) -> str:
    """Names in a row, the last ones only counted.

    >>> few(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown} and {len(names) - most} more"


def listed(parts: Sequence[str]) -> str:
    """All of them in a row.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def error(a: Attribution) -> str:
    """How far the scores may be off, in one cell; empty where the method does not say."""
    if a.error is None:
        return ""
    parts = []
    if a.error.completeness_gap is not None:
        parts.append(f"gap {percent(a.error.completeness_gap)}")
    if a.error.standard_error is not None and len(a.error.standard_error):
        parts.append(f"± {a.error.standard_error.max():.2g}")
    return ", ".join(parts)


def note(a: Attribution) -> str:
    """What a method itself says of its scores; empty where it says nothing."""
    if a.error is None:
        return ""
    return a.error.note


def settings(given: Mapping[str, Any]) -> str:
    """A method's settings in one line."""
    return ", ".join(f"{k}={visible(str(v))}" for k, v in given.items()) or "none"


def dropped(a: Attribution) -> str:
    """Said whenever truncation left something out; empty otherwise."""
    if a.passage is None or not a.passage.dropped:
        return ""
    return f"only the beginning is explained: {cut_off(a.passage.dropped)}"


def cut_off(count: int, of: str = "") -> str:
    """How many characters of a text were not read.

    >>> cut_off(1), cut_off(1200, " of the prompt")
    ('1 character was cut off', '1,200 characters of the prompt were cut off')
    """
    verb = "was" if count == 1 else "were"
    return f"{counted(count, 'character')}{of} {verb} cut off"


def running_texts(a: Attribution) -> list[str]:
    """The units as they follow each other in a text. Features, which are no text, stand apart."""
    texts = list(a.units.texts)
    if a.passage is None:
        texts[1:] = [f" {text}" for text in texts[1:]]
    return texts


def explained_things(a: Attribution) -> str:
    """What the units make up, in a heading: the text, or the features."""
    if a.passage is not None:
        return "text"
    return PLURAL.get(a.units.kind, a.units.kind)


def windows(a: Attribution) -> str:
    """That the target's value is a mean: ``mean of 5 windows``; empty for a text that fits."""
    if not a.windows:
        return ""
    return f"mean of {len(a.windows)} windows"


def reply(a: Attribution) -> str:
    """What the model is said to have written so far, for a heading; empty where there is none.

    Its next token is what is explained, so that a view which leaves the reply out says too little.
    """
    if a.passage is None or a.passage.reply is None:
        return ""
    return visible(a.passage.reply.text)


def remarks(a: Attribution, plan: Plan | None = None) -> list[str]:
    """What must be known beside the answer: a reply, a text cut short, a smaller control.

    Said of a reply, of windows, of a text cut short and of a smaller control, where there are any.
    """
    lines = []
    begun = reply(a)
    if begun:
        lines.append(f"What is explained is the next token of the reply “{begun}”.")
    if a.windows:
        lines.append(
            f"The text is longer than the model can read at once. It was explained in "
            f"{len(a.windows)} windows, one after the other; {CUT} stands where one ends."
        )
    cut = dropped(a)
    if cut:
        lines.append(f"{cut[0].upper()}{cut[1:]}.")
    chosen = plan or a.plan
    if chosen is not None and not chosen.is_full:
        lines.append(f"To keep the cost down: {visible(_after_colon(chosen.describe()))}")
    return lines


def _after_colon(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}"


def cuts(a: Attribution) -> set[int]:
    """The units at which a new window begins, without the first."""
    return {window.start for window in a.windows[1:]}
