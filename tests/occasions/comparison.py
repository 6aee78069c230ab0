"""One text explained by one method or by many, made by lot: `explain` and `compare`.

Evidence comes as ``metrics/evidence.py`` would give it, from places among random rankings; some of
it as old files have it. ``result`` makes one, and ``speak`` lets every view of it speak.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from whence.core.attribution import Attribution, Cost, Error, windows_of
from whence.core.comparison import Comparison
from whence.core.evidence import (
    ALL_EQUAL,
    CURVES,
    HELD_OUT,
    ONE_UNIT,
    STILL,
    ZERO,
    Evidence,
    Trial,
    TrialCurves,
    Verdict,
    is_within,
)
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.provenance import Provenance
from whence.core.scores import FREE_OF_LENGTH
from whence.core.target import OF_CONTRASTS, SIGN_OF_SUPPORT, Reference, Target
from whence.core.units import Units
from whence.metrics.evidence import nothing_ranked, summed_up
from whence.metrics.standing import wilson

Rng = np.random.Generator
METHODS = {  # with signs or without
    "lime": True,
    "occlusion": True,
    "shapley": True,
    "shapley-exact": True,
    "gradient-x-input": True,
    "integrated-gradients": True,
    "attn-lrp": True,
    "gradient-mean": True,
    "banzhaf": True,
    "by-hand": True,
    "gradient-l1": False,
    "gradient-l2": False,
    "smooth-grad": False,
    "attention-mean": False,
    "attention-max": False,
    "rollout": False,
    "flow": False,
    "anchors": False,
    "attention-arbiter": False,
    "transformer-attribution": False,
    "random": False,
}
WORDS = [
    *("the", "a", "not", "bad", "but", "film", "dull", "is", "good", "it's", "“so”", "and"),
    *("the (2)", "50 %", "ein", "größer", "電影", "🙂", "naïve", "x\x1b[31m", "\u202eevil", "<b>"),
    *("word" * 30, "p", "=1+1", "a, b", "first", "speaks for good"),
]
LABELS = ["positive", "negative", " good", "LABEL_1", "B-LOC", "größer", "very\x07loud", "toxic"]
KINDS = ("word", "word", "word", "token", "sentence", "section", "feature", "regions")
REMOVALS = ("mask", "delete", "zero")
# how rankings fare: "nearly" is each not good enough by itself
MANNERS = ("random", "good", "mixed", "nearly", "same", "border", "bad", "untested")


def speak(rng: Rng) -> None:
    """One result by lot, and all that is said of it."""
    every_view(rng, result(rng))


def every_view(rng: Rng, made: Attribution | Comparison) -> None:
    """The answer; and by lot the terminal, the page, tables, figures."""
    str(made.answer)
    repr(made)
    a = made if isinstance(made, Attribution) else made.first
    views: tuple[tuple[float, Callable[[], object]], ...] = (
        (0.5, lambda: made.to_text(full=False)),
        (0.4, lambda: made.to_text(full=True)),
        (0.25, made.to_html),
        (0.05, made._repr_html_),
        (0.1, made.to_dict),
        (0.05, made.to_csv),
        (0.05, lambda: made.to_markdown("methods")),
        (0.05, made.to_markdown),
        (0.0 if _pictured(a) else 0.15, made.to_latex),
        (0.02, lambda: _figures(made, a)),
    )
    for chance, view in views:
        if rng.random() < chance:
            view()


def _pictured(a: Attribution) -> bool:
    return a.passage is not None and bool(a.passage.pictured.all())


def _figures(made: Attribution | Comparison, a: Attribution) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    a.plot()
    a.plot(top=3)
    if a.evidence is not None and any(trial.curves for trial in a.evidence.trials):
        a.plot_evidence()
    if isinstance(made, Comparison):
        made.plot_agreement()
        made.plot_agreement(of="overlap")
    pyplot.close("all")


# ---------------------------------------------------------------------- the result


def methods_of(rng: Rng) -> list[str]:
    """One method or up to 21, at times with the control."""
    count = int(rng.choice([1, 1, 1, 2, 2, 3, 4, 5, 6, 9, 13, 21]))
    names = rng.choice(list(METHODS), count, replace=False).tolist()
    if count > 1 and rng.random() < 0.3 and "random" not in names:
        names.append("random")
    return names


def result(rng: Rng, methods: list[str] | None = None) -> Attribution | Comparison:
    """One method alone, or a comparison of several."""
    names = methods_of(rng) if methods is None else methods
    facts = text(rng)
    units = len(facts["units"])
    manner = str(rng.choice(MANNERS))
    removals = REMOVALS[: int(rng.choice([1, 2, 2, 3]))]
    rankings = int(rng.choice([100, 100, 100, 99, 39, 19, 5]))
    scores = scores_of(rng, names, units)
    every = {}
    for name in names:
        signed = METHODS[name] != (rng.random() < 0.03)
        values = scores[name] if signed else np.abs(scores[name])
        error = error_of(rng, values)
        a = Attribution(
            method=name,
            scores=values,
            signed=signed,
            error=error,
            detail=detail_of(rng, name, units),
            settings={"removal": str(rng.choice(["mask", "delete", "infill"]))},
            cost=cost_of(rng),
            version=1,
            seed=0,
            **facts,
        )
        every[name] = replace(a, evidence=evidence_of(rng, a, manner, removals, rankings))
    if units > 1 and rng.random() < 0.5 and not any(a.scores.any() for a in every.values()):
        every = {name: stands_still(a) for name, a in every.items()}
    if len(every) == 1 and rng.random() < 0.5:
        (a,) = every.values()
        return replace(a, plan=plan_of(rng))
    skipped = {"captum-x": "it does not\x1b fit"} if rng.random() < 0.2 else {}
    return Comparison(every, Cost(120, 30, 2.5), skipped, plan_of(rng))


def stands_still(a: Attribution) -> Attribution:
    """Of a text of which nothing that is taken out moves the output."""
    question = "support" if a.signed else "matter"
    return replace(a, error=None, evidence=nothing_ranked(question, 100, 5, STILL))


# ---------------------------------------------------------------------- what was read


def text(rng: Rng) -> dict[str, Any]:
    """What all methods of a result share: units, target, prediction."""
    roll = rng.random()
    if roll < 0.15:
        return written_text(rng)
    passage = None
    if roll < 0.3:
        passage = passage_of(rng, int(rng.integers(1, 20)))
        units = passage.units
    elif roll < 0.33:
        passage = picture()
        units = passage.units
    else:
        units = Units(str(rng.choice(KINDS)), words_of(rng, how_many(rng)))
    prediction, several = prediction_of(rng)
    target = target_of(rng, prediction, len(units))
    value = float(rng.choice([2.31, -0.4, 0.0, 1e-9, 12345.6]))
    windows = ()
    if rng.random() < 0.07 and len(units) > 4:
        windows = windows_of([2, len(units) - 2], [value, value])
    return {
        "passage": passage,
        "units": units,
        "target": target,
        "value": value,
        "prediction": prediction,
        "several_labels": several,
        "windows": windows,
        "provenance": provenance_of(rng),
    }


def how_many(rng: Rng) -> int:
    """Units: often so few that few orders are left."""
    return int(rng.choice([1, 2, 3, 4, 5, 6, 8, 10, 15, 27, 60]))


def words_of(rng: Rng, count: int) -> tuple[str, ...]:
    """Words that may repeat, a blank behind each but the last."""
    pool = WORDS[: int(rng.choice([3, 8, len(WORDS)]))]
    return tuple(f"{word} " for word in rng.choice(pool, count).tolist())


def passage_of(rng: Rng, count: int) -> Passage:
    """A text, at times a pair, or cut short, or with the beginning of a reply."""
    content = "".join(words_of(rng, count))
    pair = "".join(words_of(rng, 4)) if rng.random() < 0.4 else None
    spans, parts, tokens = [], [], []
    for part, words in enumerate((content, pair or "")):
        for match in re.finditer(r"\S+", words):
            spans.append(match.span())
            parts.append(part)
            tokens.append(match.group())
    ids = list(range(len(tokens)))
    passage = Passage.from_tokens(content, ids, tokens, spans, parts, pair=pair)
    if rng.random() < 0.2:
        passage = replace(passage, dropped=int(rng.choice([1, 40, 4000])))
    if rng.random() < 0.1:
        passage = replace(passage, reply=Passage.from_tokens("so", [1], ["so"], [(0, 2)], [0]))
    return passage


def picture() -> Passage:
    """Four patches."""
    cells = tuple((0, row, column) for row in range(2) for column in range(2))
    return Passage(
        text="",
        ids=np.zeros(4, dtype=np.int64),
        tokens=tuple(f"{row},{column}" for _, row, column in cells),
        spans=np.zeros((4, 2), dtype=np.int64),
        parts=np.zeros(4, dtype=np.int64),
        unit_of=np.arange(4),
        unit_spans=cells,
        kind="patch",
        pixels=np.zeros((3, 4, 4), dtype=np.float32),
    )


def written_text(rng: Rng) -> dict[str, Any]:
    """A prompt with what was written after it, of which a token or all are explained."""
    prompt = words_of(rng, int(rng.integers(1, 9)))
    pieces = tuple(word for word in words_of(rng, int(rng.choice([1, 1, 2, 5]))))
    tokens, spans, parts = [], [], []
    for part, row in enumerate((prompt, pieces)):
        start = 0
        for piece in row:
            tokens.append(piece)
            spans.append((start, start + len(piece.rstrip())))
            parts.append(part)
            start += len(piece)
    whole = Passage.from_tokens(
        "".join(prompt), list(range(len(tokens))), tokens, spans, parts, pair="".join(pieces)
    )
    by_model = bool(rng.random() < 0.5)
    whole = replace(whole, written=len(prompt), by_model=by_model)
    count = len(pieces)
    at = int(rng.integers(count))
    is_span = count > 1 and rng.random() < 0.5
    if is_span:
        at, until = (0, count) if rng.random() < 0.5 else (0, max(2, count - 1))
        facts = _of_span(rng, whole, at, until)
    else:
        facts = _of_token(rng, whole, at)
    before = whole.before(at)
    return facts | {
        "passage": before,
        "units": before.units,
        "several_labels": False,
        "windows": (),
        "provenance": provenance_of(rng),
    }


def _of_token(rng: Rng, whole: Passage, at: int) -> dict[str, Any]:
    own = whole.output_text(at)
    index = int(whole.ids[whole.output_place(at)])
    others = {f"▁{word}": p for word, p in zip(("other", "rest"), (0.2, 0.1), strict=True)}
    highest = float(rng.choice([0.2, 0.20000001, 0.4, 0.9999, 0.003]))
    prediction = {own: highest, **others}
    if rng.random() < 0.5:
        prediction = dict(sorted(prediction.items(), key=lambda entry: -entry[1]))
    else:
        prediction = {name: p for name, p in prediction.items() if p <= highest}
    if rng.random() < 0.2:
        prediction = {}
    read: Any = str(rng.choice(list(SIGN_OF_SUPPORT)))
    label, target_index = own, index
    if rng.random() < 0.25:
        label, target_index = "elsewhere", 999
    against = None
    if read == "margin" or (read in OF_CONTRASTS and rng.random() < 0.4):
        against = "instead"
    value = -0.5 if read == "log-probability" else 0.5
    target = Target(
        label, against, read, at=at, index=target_index, reference=_reference(rng, read)
    )
    return {"target": target, "value": value, "prediction": prediction}


def _of_span(rng: Rng, whole: Passage, at: int, until: int) -> dict[str, Any]:
    ids = tuple(whole.ids[whole.output_place(at) : whole.output_place(until)].tolist())
    label = "".join(whole.output_text(step) for step in range(at, until))
    read: Any = str(
        rng.choice(["log-probability", "probability", "cross-entropy", "entropy", "kl"])
    )
    against, against_ids = None, None
    if read in OF_CONTRASTS and rng.random() < 0.3:
        against, against_ids = "something else", (5, 6)
    value = {"log-probability": -3.0, "probability": float(rng.choice([0.02, 0.0]))}.get(read, 2.5)
    target = Target(
        label,
        against,
        read,
        at=at,
        until=until,
        ids=ids,
        index=ids[0],
        against_ids=against_ids,
        reference=_reference(rng, read),
    )
    return {"target": target, "value": value, "prediction": {}}


def _reference(rng: Rng, read: str) -> Reference | None:
    if read != "kl" or rng.random() < 0.4:
        return None
    return Reference(str(rng.choice(["the whole input", "the prompt without context"])))


def prediction_of(rng: Rng) -> tuple[dict[str, float], bool]:
    """Labels with their probabilities, and whether each has its own yes or no."""
    labels = rng.permutation(LABELS).tolist()
    roll = rng.random()
    if roll < 0.1:
        return {}, False
    if roll < 0.3:
        high = float(rng.choice([0.0, 0.3, 0.49, 0.5, 0.75, 0.999, 1.0]))
        shares = np.sort(rng.random(int(rng.integers(1, 6))) * high)[::-1]
        if rng.random() < 0.5:
            shares[0] = high
        shares = np.sort(shares)[::-1]
        return dict(zip(labels, shares.tolist(), strict=False)), bool(rng.random() < 0.8)
    top = float(rng.choice([0.5, 0.5001, 0.52, 0.55, 0.62, 0.9, 0.99949, 0.99951, 0.999999, 1.0]))
    if rng.random() < 0.3:
        return {labels[0]: 0.34, labels[1]: float(rng.choice([0.34, 0.33, 0.3, 0.2]))}, False
    return {labels[0]: top, labels[1]: 1 - top}, False


def target_of(rng: Rng, prediction: Mapping[str, float], units: int) -> Target:
    """What the model says mostly; at times another label, a contrast, a word, a place."""
    read: Any = str(rng.choice(list(SIGN_OF_SUPPORT), p=[0.4, 0.1, 0.1, 0.1, 0.1, 0.05, 0.1, 0.05]))
    labels = list(prediction) or ["price"]
    label = labels[0] if rng.random() < 0.7 else str(rng.choice(labels))
    others = [name for name in [*labels, "another"] if name != label]
    against = None
    if read == "margin" or (read in OF_CONTRASTS and rng.random() < 0.2):
        against = str(rng.choice(others))
    at, word = None, None
    roll = rng.random()
    if roll < 0.1:
        at = int(rng.integers(units))
    elif roll < 0.2:
        at, word = 0, "Paris"
    named = None if rng.random() < 0.05 and not prediction and against is None else label
    return Target(named, against, read, at=at, index=0, word=word, reference=_reference(rng, read))


def provenance_of(rng: Rng) -> Provenance:
    """Mostly the same one."""
    autocast = "bfloat16" if rng.random() < 0.2 else None
    revision = "v1" if rng.random() < 0.2 else None
    name = "toy" if rng.random() < 0.9 else "to\x1by"
    return Provenance(
        name, "Toy", "00ff", revision, "float32", "cpu", "sdpa", {"whence": "0"}, autocast
    )


# ---------------------------------------------------------------------- what methods said


def scores_of(rng: Rng, names: list[str], units: int) -> dict[str, np.ndarray]:
    """Scores of methods that agree, or do not; with ties, zeros and opposite signs."""
    manner = str(
        rng.choice(["free", "alike", "camps", "small", "equal", "zero", "sparse", "one word"])
    )
    common = rng.normal(size=units)
    out = {}
    for name in names:
        values = rng.normal(size=units)
        if manner == "alike":
            values = common + rng.normal(size=units) * float(rng.choice([0.0, 0.05, 0.5]))
        elif manner == "camps":
            values = common * float(rng.choice([-1.0, 1.0])) + 0.1 * rng.normal(size=units)
        elif manner == "small":
            values = rng.integers(-2, 3, units).astype(float)
        elif manner == "equal":
            values = np.full(units, float(rng.choice([-1.0, 0.5])))
        elif manner == "zero":
            values = np.zeros(units) if rng.random() < 0.7 else values
        elif manner == "sparse":
            values = np.where(rng.random(units) < 0.2, values, 0.0)
        elif manner == "one word":
            values = 0.1 * values
            values[0] = float(rng.choice([-5.0, 5.0])) if rng.random() < 0.5 else 5.0
        out[name] = values * float(rng.choice([1.0, 1.0, 1e-8, 1e7]))
    return out


def error_of(rng: Rng, scores: np.ndarray) -> Error | None:
    """A gap, standard errors, of which some may be infinite, or notes; mostly none."""
    roll = rng.random()
    if not scores.any() and roll < 0.5:
        return Error(note=FREE_OF_LENGTH)
    if roll < 0.6:
        return None
    if roll < 0.75:
        return Error(completeness_gap=float(rng.choice([0.0, 0.004, 0.3, 8.3])))
    largest = float(np.abs(scores).max()) or 1.0
    spread = rng.random(len(scores)) * largest * float(rng.choice([0.01, 0.3, 2.0]))
    note = "16 samples are few" if rng.random() < 0.3 else ""
    return Error(spread, None, note)


def detail_of(rng: Rng, name: str, units: int) -> dict[str, Any] | None:
    """An anchor, or samples and a fit."""
    if name == "anchors" and rng.random() < 0.8:
        low = float(rng.choice([0.9, 0.957, 0.57, 1.0]))
        return {
            "anchor": np.flatnonzero(rng.random(units) < 0.3).tolist(),
            "precision": float(min(low + 0.02, 1.0)),
            "interval": [low, 1.0],
            "coverage": 0.25,
            "threshold": 0.95,
            "holds": bool(rng.random() < 0.7),
            "samples": 1200,
            "exact": bool(rng.random() < 0.3),
        }
    if name == "shapley" and rng.random() < 0.3:
        return {
            "text": "a text",
            "layer": 2,
            "variant": "topk",
            "other features": 12,
            "only the decoder's bias": 0.2,
            "share not reconstructed": 0.15,
            "samples": 10,
        }
    if name in ("lime", "banzhaf") and rng.random() < 0.5:
        return {"samples": 1000, "distinct": 512, "estimator": "regression", "r2": 0.93, "width": 1}
    return None


def cost_of(rng: Rng) -> Cost:
    """Passes, some shared or from memory."""
    forwards = int(rng.choice([1, 100, 5000]))
    saved = int(rng.choice([0, 0, 212]))
    seconds = float(rng.choice([0.002, 0.4, 42.3, 130.0, 5000.0]))
    peak = None if rng.random() < 0.8 else 123456789
    return Cost(forwards, int(rng.choice([0, 1, 50])), seconds, peak, rng.random() < 0.3, saved)


def plan_of(rng: Rng) -> Plan | None:
    """Mostly none; at times a smaller one."""
    if rng.random() < 0.85:
        return None
    return Plan(
        rankings=39,
        steps=int(rng.choice([5, 10])),
        settings={"lime": {"samples": 100}} if rng.random() < 0.5 else {},
        left_out={"shapley": "too dear", "anchors": "too dear"} if rng.random() < 0.5 else {},
        reason="the budget is 30 s",
        units="sentence" if rng.random() < 0.3 else "",
        asked_units="word",
    )


# ---------------------------------------------------------------------- evidence


def evidence_of(
    rng: Rng, a: Attribution, manner: str, removals: tuple[str, ...], rankings: int
) -> Evidence | None:
    """As whence would give it; at times as an old file has it, or none."""
    question = "support" if a.signed else "matter"
    units, roll = len(a.scores), rng.random()
    if manner == "untested" or roll < 0.04:
        return _no_verdict(rng)
    if units == 1:
        return nothing_ranked(question, 1, 0, ONE_UNIT)
    if len(np.unique(a.scores)) == 1:
        if roll < 0.1:  # an odd file: judged nevertheless
            return _from_places(rng, a, "random", removals, rankings, question)
        note = ZERO if a.is_zero_by_construction else ALL_EQUAL
        return nothing_ranked(question, rankings, 5, note)
    return _from_places(rng, a, manner, removals, rankings, question)


def _no_verdict(rng: Rng) -> Evidence | None:
    roll = rng.random()
    if roll < 0.4:
        return None
    if roll < 0.7:
        return Evidence(CURVES, None, note="not held against random rankings: too many passes")
    trial = Trial("embedding", Verdict.BETTER, 0.6, -0.3, 0.3, samples=32, baseline_statistic=0.1)
    return Evidence(HELD_OUT, Verdict.BETTER, value=0.6, trials=(trial,))


def _from_places(
    rng: Rng,
    a: Attribution,
    manner: str,
    removals: tuple[str, ...],
    rankings: int,
    question: str,
) -> Evidence:
    """The verdict from how many random rankings do as well, under each removal."""
    every = number_of_orders(a.scores)
    is_complete = every <= rankings
    count = every if is_complete else rankings
    trials = tuple(_trial(rng, name, manner, count, is_complete) for name in removals)
    made = summed_up(trials, question, count, 5, 100, "")
    roll = rng.random()
    if roll < 0.08:  # files of before
        made = replace(made, p_worse=None, trials=tuple(replace(t, p_worse=None) for t in trials))
    elif roll < 0.11:
        made = replace(made, trials=())
    elif roll < 0.13:
        made = replace(made, interval=None)
    elif roll < 0.18:
        made = replace(made, own=Evidence(HELD_OUT, Verdict.SAME, value=0.2))
    return made


def number_of_orders(scores: np.ndarray) -> int:
    """In how many ways the scores can be dealt to the units."""
    _, sizes = np.unique(scores, return_counts=True)
    ways = math.factorial(len(scores))
    for size in sizes.tolist():
        ways //= math.factorial(size)
    return ways


def _trial(rng: Rng, removal: str, manner: str, count: int, is_complete: bool) -> Trial:
    """So many of the random rankings do as well, and the others are beaten."""
    as_well = int(rng.integers(count + 1))
    if manner == "good" or (manner == "mixed" and rng.random() < 0.5):
        as_well = int(rng.integers(max(count // 20, 1)))
    elif manner == "bad":
        as_well = count - int(rng.integers(max(count // 20, 1)))
    elif manner == "nearly":
        as_well = int(count * rng.uniform(0.055, 0.12))
    elif manner == "border":
        as_well = min(count, max(round(0.05 * (count + 1)) - int(rng.integers(3)), 0))
    elif manner == "same":
        as_well = count // 2
    if is_complete:  # the ranking is one of them itself
        as_well = min(max(as_well, 1), count)
        p, p_worse = as_well / count, (count - as_well + 1) / count
    else:
        p, p_worse = (as_well + 1) / (count + 1), (count - as_well + 1) / (count + 1)
    beaten = (count - as_well) / count
    verdict = Verdict.SAME
    if is_within(p):
        verdict = Verdict.BETTER
    elif is_within(p_worse):
        verdict = Verdict.WORSE
    low, high = wilson(beaten, count)
    return Trial(
        removal=removal,
        verdict=verdict,
        statistic=0.3,
        random_low=-0.2,
        random_high=0.2,
        random_mean=0.0,
        beaten=beaten,
        interval=(low, high),
        p=p,
        p_worse=p_worse,
        forwards=10,
        curves=_curves() if rng.random() < 0.5 else None,
    )


def _curves() -> TrialCurves:
    band = ((0.1, 0.2, 0.3), (0.1, 0.2, 0.3), (0.1, 0.2, 0.3))
    return TrialCurves((0, 1, 2), (0.9, 0.5, 0.1), (0.1, 0.6, 0.9), band, band)
