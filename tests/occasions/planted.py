"""The planted truth: any number of methods and mechanisms, found by lot."""

from __future__ import annotations

import numpy as np

from tests.occasions import _lots as lots
from whence.core.evidence import Verdict
from whence.core.planted import MECHANISMS, Example, Finding, Planted, PlantedTruth, Said
from whence.views.planted import planted_latex, planted_markdown, planted_sentences, planted_text
from whence.views.planted_html import planted_fragment, planted_page

METHODS = ("occlusion", "attention-mean", "gradient-x-input", *(f"m{i}" for i in range(18)))
REASONS = ("no formula", "it needs gradients.", "no formula.")
FRACTIONS = (0.0, 0.5, 1 / 3, 1e-3, 0.96)


def speak(rng: np.random.Generator) -> None:
    """One result says everything that it can."""
    truth = planted_truth(rng)
    planted_sentences(truth)
    if lots.does(rng, 0.1):
        planted_text(truth)
        planted_latex(truth)
        planted_markdown(truth)
        planted_fragment(truth)
        planted_page(truth)
        truth.to_csv()


def planted_truth(rng: np.random.Generator) -> PlantedTruth:
    """One result; some methods cannot be tried on every mechanism."""
    names = list(rng.permutation([*MECHANISMS, "other"])[: lots.count(rng, 7)])
    alike = lots.one_of(rng, (0, 1, 3, 4, 30))
    mechanisms = [_planted(rng, str(name), alike or lots.count(rng, 60)) for name in names]
    methods = list(rng.permutation(METHODS)[: lots.count(rng, 21)])
    if lots.does(rng, 0.8):
        methods.append("random")
    if lots.does(rng, 0.03):
        methods = ["random"]
    good = lots.share(rng) if lots.does(rng, 0.7) else 1.0
    findings = []
    for method in methods:
        own = 1.0 if lots.does(rng, good) else lots.share(rng)
        tried = [one for one in mechanisms if lots.does(rng, 0.9)] or mechanisms[:1]
        findings += [_finding(rng, str(method), one, own) for one in tried]
    return PlantedTruth(
        mechanisms=tuple(mechanisms),
        findings=tuple(findings),
        examples=tuple(_example(rng, one, methods) for one in mechanisms if lots.does(rng, 0.3)),
        seed=3,
        settings={"occlusion": {"removal": "mask"}} if lots.does(rng) else {},
        skipped={f"lime-{i}": lots.one_of(rng, REASONS) for i in range(rng.integers(4))},
        versions={"whence": "0.1.0"},
    )


def _planted(rng: np.random.Generator, name: str, texts: int) -> Planted:
    chance = texts * lots.one_of(rng, (0.1, 0.5, 0.001, 1 / 120, 0.04))
    ends = (max(0.0, chance - 2), min(texts, chance + 2))
    return Planted(name, "one word decides", f"planted-{name}", "abc", texts, chance, ends, 0.1)


def _finding(rng: np.random.Generator, method: str, mechanism: Planted, good: float) -> Finding:
    """What it found follows no rule here: an interval, a verdict and ties go together by lot."""
    texts = mechanism.texts
    found = min(texts, round(texts * good) + lots.one_of(rng, FRACTIONS))
    share = found / texts
    wide = 1 / (1 + texts) ** 0.5
    verdict = Verdict.BETTER if share > 0.4 or lots.does(rng, 0.1) else Verdict.SAME
    if lots.does(rng, 0.05):
        verdict = lots.one_of(rng, tuple(Verdict))
    return Finding(
        method=method,
        mechanism=mechanism.name,
        texts=texts,
        found=float(found),
        recall=lots.share(rng),
        fooled=1.0 * min(texts, texts * lots.one_of(rng, (0.0, 0.5, 0.51, 0.9, 1.0, 0.1))),
        interval=(max(0.0, share - wide), min(1.0, share + wide / 4)),
        p=lots.share(rng),
        adjusted=lots.share(rng),
        verdict=verdict,
    )


def _example(rng: np.random.Generator, mechanism: Planted, methods: list[str]) -> Example:
    words = lots.words(rng, 1 + lots.count(rng, 10))
    places = rng.permutation(len(words)).tolist()
    said = {}
    for method in methods:
        signed = lots.does(rng)
        scores = tuple(lots.scores(rng, len(words), signed).tolist())
        said[str(method)] = Said(scores, signed, lots.one_of(rng, (0.0, 1.0, 0.25, 1 / 3)))
    text = " ".join(words)
    return Example(
        mechanism.name, text, tuple(words), tuple(places[:1]), tuple(places[1:2]), "wet", said
    )
