"""planted: how often each method finds a mechanism that is known, as it was planted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from whence.core.answer import CONTROL
from whence.core.attribution import Attribution
from whence.core.bootstrap import wilson
from whence.core.errors import InputError, unknown_name
from whence.core.evidence import Verdict, is_within
from whence.core.planted import (
    MECHANISMS,
    PREFIX,
    Example,
    Finding,
    Planted,
    PlantedText,
    PlantedTruth,
    Said,
)
from whence.core.progress import Step
from whence.core.registry import methods as all_methods
from whence.core.request import Request, Wish, wishes_for
from whence.explaining.job import Outcome, Progress
from whence.explaining.run import run
from whence.metrics.planted import Found, chance_range, found, holm, p_of
from whence.models.finding import BUNDLED
from whence.models.load import load

USUAL_TEXTS = 30
SHARES = 1000  # of a bar, for each mechanism

Methods = Sequence[Any] | Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Suite:
    """The texts of one mechanism, and what the mechanism is."""

    name: str
    about: str
    texts: tuple[PlantedText, ...]


@cache
def suite(mechanism: str) -> Suite:
    """The texts that are bundled with the model of a mechanism.

    >>> suite("keyword").texts[0].label
    'alarm'
    """
    if mechanism not in MECHANISMS:
        raise unknown_name("mechanism", mechanism, MECHANISMS)
    path = BUNDLED / f"{PREFIX}{mechanism}" / "suite.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    texts = []
    for entry in stored["texts"]:
        gold, decoys = tuple(entry["gold"]), tuple(entry["decoys"])
        texts.append(PlantedText(entry["text"], gold, decoys, entry["label"]))
    return Suite(mechanism, stored["about"], tuple(texts))


def planted(
    methods: Methods | str | None = None,
    *,
    mechanisms: Sequence[str] | str | None = None,
    texts: int = USUAL_TEXTS,
    seed: int = 0,
    progress: Progress | None = None,
) -> PlantedTruth:
    """Score methods by how often they find a mechanism that was planted in a model.

    ``methods`` are names, also of your own registered ones; a mapping gives settings:
    ``{"lime": {"samples": 500}}``. None takes every method that fits. ``mechanisms`` are some of
    keyword, pair, negation, position, leak and distractor; None takes all. Of each, ``texts`` are
    drawn by ``seed``, which is also the seed of every method; where there are fewer, all are taken.

    >>> import whence
    >>> truth = whence.planted(["occlusion", "random"], mechanisms=["keyword"], texts=5)
    >>> truth["occlusion", "keyword"].found
    5.0
    """
    wishes, names = _wishes(methods), _chosen(mechanisms)
    if texts < 1:
        raise InputError(f"planted needs at least one text of each mechanism, not {texts}.")
    return planted_of(wishes, names, texts, seed, progress, skip_unfit=methods is None)


def planted_of(
    wishes: Sequence[Wish],
    mechanisms: Sequence[str],
    texts: int,
    seed: int,
    progress: Progress | None = None,
    *,
    skip_unfit: bool,
) -> PlantedTruth:
    """The same of methods with settings; ``skip_unfit`` leaves out those that do not fit.

    These are named with the reason; if none is left, that is an error.
    """
    suites = [suite(name) for name in mechanisms]
    request = Request(wishes=tuple(wishes), seed=seed, evidence=False, budget="full")
    trials = []
    for place, one in enumerate(suites):
        say = _of_several(progress, one.name, place, len(suites))
        trials.append(_tried(one, request, texts, say, skip_unfit))
    return _truth(trials, seed)


def joined(truth: PlantedTruth, more: PlantedTruth) -> PlantedTruth:
    """The same methods on the mechanisms of both, as if they had been tried together."""
    return replace(
        truth,
        mechanisms=(*truth.mechanisms, *more.mechanisms),
        findings=tuple(_judged([*truth.findings, *more.findings])),
        examples=(*truth.examples, *more.examples),
        settings={**truth.settings, **more.settings},
        skipped={**truth.skipped, **more.skipped},
    )


# ---------------------------------------------------------------------- what was asked for


def _wishes(methods: Methods | str | None) -> tuple[Wish, ...]:
    if methods is None:
        return wishes_for(list(all_methods()))
    if isinstance(methods, (str, Mapping)):
        methods = [methods]
    wishes: list[Wish] = []
    for entry in methods:
        if not isinstance(entry, (str, Mapping)):
            raise InputError(
                "a method is a name or a mapping of names to settings, "
                f"not the {type(entry).__name__} {entry!r:.40}."
            )
        wishes += wishes_for([entry] if isinstance(entry, str) else entry)
    if not wishes:
        raise InputError("planted needs at least one method; methods=None takes all that fit.")
    return tuple(wishes)


def _chosen(mechanisms: Sequence[str] | str | None) -> tuple[str, ...]:
    """The mechanisms in the order in which they are shown, each once."""
    if mechanisms is None:
        return MECHANISMS
    names = [mechanisms] if isinstance(mechanisms, str) else list(mechanisms)
    for name in names:
        if name not in MECHANISMS:
            raise unknown_name("mechanism", name, MECHANISMS)
    if not names:
        raise InputError("planted needs at least one mechanism; mechanisms=None takes all.")
    return tuple(name for name in MECHANISMS if name in names)


def _of_several(progress: Progress | None, name: str, place: int, count: int) -> Progress | None:
    """A step, with the mechanism that it belongs to; the bar fills over all mechanisms."""
    if progress is None:
        return None

    def say(step: str) -> None:
        done, of = getattr(step, "done", 0), getattr(step, "of", None)
        share = min(1.0, done / of) if of else 0.0
        progress(Step(f"{name}: {step}", round(SHARES * (place + share)), SHARES * count))

    return say


# ---------------------------------------------------------------------- one mechanism


@dataclass(frozen=True)
class Tried:
    """What came of one mechanism: for each method, what it found in each text."""

    planted: Planted
    found: Mapping[str, Sequence[Found]]
    example: Example
    settings: Mapping[str, Mapping[str, Any]]
    skipped: Mapping[str, str]
    versions: Mapping[str, str]


def _tried(
    one: Suite, request: Request, texts: int, say: Progress | None, skip_unfit: bool
) -> Tried:
    """Every method on some texts of a mechanism."""
    order = np.random.default_rng(request.seed).permutation(len(one.texts))
    chosen = [one.texts[i] for i in order[:texts]]
    model = load(f"{PREFIX}{one.name}")
    outcomes = [only for (only,) in run(model, [text.text for text in chosen], request, say)]

    failed = outcomes[0].failed
    if failed and not (skip_unfit and outcomes[0].attributions):
        raise next(iter(failed.values()))
    by_method: dict[str, list[Found]] = {}
    for text, outcome in zip(chosen, outcomes, strict=True):
        for name, attribution in outcome.attributions.items():
            by_method.setdefault(name, []).append(_found(attribution, text))
    # a method may refuse a text on its own: it is then not scored on the others either
    whole = {name: every for name, every in by_method.items() if len(every) == len(chosen)}
    skipped: dict[str, str] = {}
    for outcome in outcomes:
        for name, problem in outcome.failed.items():
            skipped.setdefault(name, str(problem))

    sizes = []
    for text in chosen:
        sizes.append((len(model.encode(text.text).units), len(text.gold)))
    first = outcomes[0].attributions
    return Tried(
        planted=_chances(one, model.fingerprint, sizes),
        found=whole,
        example=_example(one.name, chosen[0], outcomes[0], by_method),
        settings={name: attribution.settings for name, attribution in first.items()},
        skipped=skipped,
        versions=next(iter(first.values())).provenance.versions,
    )


def _found(attribution: Attribution, text: PlantedText) -> Found:
    """Gold words hold up the predicted label, so the highest score comes first, not the largest."""
    return found(attribution.scores, text.gold, text.decoys)


def _chances(one: Suite, fingerprint: str, sizes: Sequence[tuple[int, int]]) -> Planted:
    """A mechanism with what a random ranking gets; ``sizes`` are words, and gold ones, of texts."""
    exact = [found(np.zeros(n), range(g)) for n, g in sizes]
    low, high = chance_range(sizes)
    return Planted(
        name=one.name,
        about=one.about,
        model=f"{PREFIX}{one.name}",
        fingerprint=fingerprint,
        texts=len(sizes),
        chance=sum(text.share for text in exact),
        chance_range=(float(low), float(high)),
        chance_recall=float(np.mean([text.recall for text in exact])),
    )


def _example(
    mechanism: str,
    text: PlantedText,
    outcome: Outcome,
    by_method: Mapping[str, Sequence[Found]],
) -> Example:
    """The first text with what each method says of it."""
    said = {}
    for name, attribution in outcome.attributions.items():
        scores = tuple(attribution.scores.tolist())
        said[name] = Said(scores, attribution.signed, by_method[name][0].share)
    units = next(iter(outcome.attributions.values())).units.names
    return Example(mechanism, text.text, tuple(units), text.gold, text.decoys, text.label, said)


# ---------------------------------------------------------------------- all together


def _truth(trials: Sequence[Tried], seed: int) -> PlantedTruth:
    findings, skipped, settings = [], {}, {}
    for trial in trials:
        for name, every in trial.found.items():
            findings.append(_finding(name, trial.planted.name, every))
        settings |= trial.settings
        skipped |= trial.skipped
    return PlantedTruth(
        mechanisms=tuple(trial.planted for trial in trials),
        findings=tuple(_judged(findings)),
        examples=tuple(trial.example for trial in trials),
        seed=seed,
        settings=settings,
        skipped=skipped,
        versions=trials[0].versions,
    )


def _finding(method: str, mechanism: str, every: Sequence[Found]) -> Finding:
    total = sum(text.share for text in every)
    p = p_of(every)
    return Finding(
        method=method,
        mechanism=mechanism,
        texts=len(every),
        found=total,
        recall=float(np.mean([text.recall for text in every])),
        fooled=sum(text.fooled for text in every),
        interval=wilson(min(1.0, total / len(every)), len(every)),
        p=p,
        adjusted=p,
        verdict=Verdict.SAME,
    )


def _judged(findings: Sequence[Finding]) -> list[Finding]:
    """With p corrected for all that were tried together; the control is no discovery."""
    tried = [finding for finding in findings if finding.method != CONTROL]
    adjusted = iter(holm([finding.p for finding in tried]))
    judged = []
    for finding in findings:
        p = finding.p if finding.method == CONTROL else next(adjusted)
        verdict = Verdict.BETTER if is_within(p) else Verdict.SAME
        judged.append(replace(finding, adjusted=p, verdict=verdict))
    return judged
