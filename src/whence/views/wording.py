"""How values are worded in every view: numbers with sensible digits, costs, errors, and text that cannot do anything but be read."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from whence.core.agreement import Agreement
from whence.core.attribution import Attribution, Cost

JOINERS = frozenset(
    "\u200c\u200d"
)  # hold emoji and Indic clusters together, and draw nothing by themselves
TAGS = range(0xE0020, 0xE0080)  # spell the flags of Scotland and Wales
UNREADABLE = {"Cc", "Cs", "Cn", "Co", "Zl", "Zp"}
MOST_DECIMALS = 6
CAMPS = {
    "sign": ("for", "against"),
    "rank": ("strong", "weak"),
}  # what the two sides of a conflict say of a unit


def visible(text: str, keep: str = "") -> str:
    """Text with every control character, direction override and lone surrogate spelt out, so that it cannot act on a terminal or a page.

    >>> visible("\\x1b[31mred\\x07")
    '\\\\x1b[31mred\\\\x07'
    """
    return "".join(c if c in keep or not _acts(c) else _spelt(c) for c in text)


def _acts(c: str) -> bool:
    if c.isascii():
        return not c.isprintable()
    category = unicodedata.category(c)
    return category in UNREADABLE or (category == "Cf" and c not in JOINERS and ord(c) not in TAGS)


def _spelt(c: str) -> str:
    code = ord(c)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def label(name: object) -> str:
    """A label as it is read; in quotes where white space is part of it, as in the tokens of a language model.

    >>> label("positive"), label(" good")
    ('positive', "' good'")
    """
    text = str(name)
    return visible(text) if text == text.strip() and text else f"'{visible(text)}'"


def score_format(scores: Iterable[float], signed: bool) -> Callable[[float], str]:
    """One format for a column of scores: three digits of the largest one, decimal points below each other.

    >>> f = score_format([0.1234, -2.5], signed=True)
    >>> f(0.1234), f(-2.5), f(0.0)
    ('+0.12', '-2.50', '0.00')
    """
    largest = max((abs(s) for s in scores), default=0.0)
    sign = "+" if signed else ""
    if largest and not 1e-5 <= largest < 1e6:
        return lambda s: f"{s:{sign}.1e}" if s else "0"
    decimals = 2 if not largest else min(max(2 - math.floor(math.log10(largest)), 0), MOST_DECIMALS)

    def shown(s: float) -> str:
        text = f"{s:{sign}.{decimals}f}"
        return text.lstrip("+-") if float(text) == 0 else text

    return shown


def exact(score: float, signed: bool) -> str:
    """A score with six digits, for a tooltip."""
    return f"{score:{'+' if signed else ''}.6g}"


def value(a: Attribution) -> str:
    """The target and what it is on this text: ``logit of positive = 2.31``."""
    return f"{visible(a.target.describe())} = {a.value:.4g}"


def model_line(a: Attribution) -> str:
    """The model by name and class."""
    return f"{visible(a.provenance.model)} · {visible(a.provenance.architecture)}"


def milliseconds(seconds: float) -> str:
    """A time as a number of milliseconds, for a column."""
    ms = seconds * 1000
    return f"{ms:.1f}" if ms < 9.95 else f"{ms:,.0f}"


def duration(seconds: float) -> str:
    """A time in the unit that a person would choose."""
    if seconds < 1:
        return f"{milliseconds(seconds)} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def size(count: int | float) -> str:
    """Bytes in the unit that a person would choose.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def percent(share: int | float) -> str:
    """A share in percent with two digits.

    >>> percent(0.00312), percent(0.5), percent(830.0)
    ('0.31 %', '50 %', '83000 %')
    """
    hundred = share * 100
    return (
        f"{hundred:.0f} %"
        if hundred >= 9.95 or hundred == 0
        else f"{hundred:.2g} %"
        if hundred >= 0.01
        else "< 0.01 %"
    )


def between(ends: Sequence[int | float]) -> str:
    """An interval of shares.

    >>> between((0.92, 1.0))
    '92 to 100 %'
    """
    low, high = (f"{100 * end:.0f}" for end in ends)
    return f"{low} to {high} %"


def p_value(p: int | float) -> str:
    """A p-value with two digits.

    >>> p_value(0.0099), p_value(0.31), p_value(0.00002)
    ('p = 0.0099', 'p = 0.31', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def forwards(cost: Cost) -> str:
    """Forward passes that were paid for, and those that were known already.

    >>> forwards(Cost(forwards=1000, saved=212))
    '1,000 forward (212 more from memory)'
    """
    saved = f" ({cost.saved:,} more from memory)" if cost.saved else ""
    return f"{cost.forwards:,} forward{saved}"


def cost(paid: Cost) -> str:
    """What a result cost, in one line."""
    memory = f", {size(paid.peak_bytes)} at the peak" if paid.peak_bytes else ""
    return f"{forwards(paid)}, {paid.backwards:,} backward, {duration(paid.seconds)}{memory}"


def spread(a: Attribution) -> list[str] | None:
    """``± 0.021`` for each unit, decimal points below each other; None where the method gives no standard errors."""
    if a.error is None or a.error.standard_error is None:
        return None
    every = a.error.standard_error.tolist()
    shown = score_format([s for s in every if math.isfinite(s)], signed=False)
    return [f"± {shown(s) if math.isfinite(s) else '?'}" for s in every]


def anchor(a: Attribution) -> str:
    """An anchor as a rule, with its precision and coverage; empty where the method found none."""
    found = a.detail or {}
    if not isinstance(found.get("anchor"), Sequence):
        return ""
    names = [f"“{visible(a.names[i])}”" for i in anchored(a)]
    kept = (
        f"{' and '.join(names)} stay{'s' if len(names) == 1 else ''}"
        if names
        else "anything at all stays"
    )
    label_ = next(iter(a.prediction), None)
    then = (
        f"the prediction is {label(label_)}" if label_ is not None else "the prediction is the same"
    )
    parts = []
    if found.get("precision") is not None:
        sure = (
            " exactly"
            if found.get("exact")
            else f" ({between(found['interval'])})"
            if found.get("interval")
            else ""
        )
        wanted = (
            f", at least {percent(found['threshold'])} asked"
            if found.get("threshold") is not None
            else ""
        )
        parts.append(f"precision {percent(found['precision'])}{sure}{wanted}")
    if found.get("coverage") is not None:
        parts.append(f"coverage {percent(found['coverage'])}")
    if found.get("samples") is not None:
        parts.append(f"{found['samples']:,} samples")
    return f"IF {kept} THEN {then}" + (f": {'; '.join(parts)}" if parts else "")


def anchored(a: Attribution) -> list[int]:
    """The units of the anchor, in reading order; none where there is no anchor."""
    found = (a.detail or {}).get("anchor")
    return (
        sorted(int(i) for i in found if 0 <= int(i) < len(a.scores))
        if isinstance(found, Sequence)
        else []
    )


def detail(a: Attribution) -> str:
    """What a method tells beside its scores and its anchor, in one line: the samples drawn, the estimator, the fit."""
    found = {k: v for k, v in (a.detail or {}).items() if isinstance(v, (str, int, float))}
    if not found or anchor(a):
        return ""
    parts = []
    if (samples := found.pop("samples", None)) is not None:
        distinct = found.pop("distinct", None)
        parts.append(
            f"{samples:,} samples"
            + (f", {distinct:,} of them distinct" if distinct is not None else "")
        )
    if (estimator := found.pop("estimator", None)) is not None:
        parts.append(f"estimator {estimator}")
    if (fit := found.pop("r2", None)) is not None:
        parts.append(f"R² {fit:.3g}")
    parts += [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items()]
    return visible("; ".join(parts))


def correlation(r: float) -> str:
    """A correlation with its sign; a dash where there is none.

    >>> correlation(0.314), correlation(-0.2), correlation(float("nan"))
    ('0.31', '−0.20', '–')
    """
    return "–" if math.isnan(r) else f"{r:.2f}".replace("-", "−").replace("−0.00", "0.00")


def share(part: float) -> str:
    """A share in whole per cent; a dash where there is none."""
    return "–" if math.isnan(part) else f"{part:.0%}".replace("%", " %")


def about_agreement(found: Agreement) -> str:
    """What the numbers of an agreement are, and what chance would give."""
    measure = {"spearman": "Spearman's correlation", "kendall": "Kendall's tau-b"}[found.measure]
    top = f"share of the top {found.k} units in common, by chance {share(found.chance)}"
    return (
        f"{measure} of the scores (of their sizes, where one method has no signs), and the {top}."
    )


def few(names: Sequence[str], most: int = 4) -> str:
    """Names in a row, the last ones only counted.

    >>> few(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def error(a: Attribution) -> str:
    """How far the scores may be off, in one cell; empty where the method is exact or does not say."""
    if a.error is None:
        return ""
    parts = []
    if a.error.completeness_gap is not None:
        parts.append(f"gap {percent(a.error.completeness_gap)}")
    if a.error.standard_error is not None and len(a.error.standard_error):
        parts.append(f"± {a.error.standard_error.max():.2g}")
    return ", ".join(parts)


def settings(given: Mapping[str, Any]) -> str:
    """A method's settings in one line."""
    return ", ".join(f"{k}={visible(str(v))}" for k, v in given.items()) or "none"


def dropped(a: Attribution) -> str:
    """Said whenever truncation left something out; empty otherwise."""
    n = a.passage.dropped
    return (
        f"only the beginning is explained: {n:,} character{'s were' if n != 1 else ' was'} cut off"
        if n
        else ""
    )
