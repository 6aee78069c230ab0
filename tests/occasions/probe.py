"""Two texts compared, alone or over templates: attention, predictions and controls by lot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.occasions import _lots as lots
from tests.views.conftest import passage_of
from whence.core.errors import InputError
from whence.core.maps import AttentionMaps, Axis
from whence.core.passage import SPECIAL
from whence.core.probe import (
    FEWEST_TEMPLATES,
    Contrast,
    Control,
    Probe,
    Reading,
    TemplateProbe,
    all_same,
    probed,
)
from whence.core.templates import Template, Templates
from whence.views.probe import probe_fragment, probe_page, probe_view
from whence.views.templates import templates_page, templates_view
from whence.views.terminal import to_text

NEUTRAL = (("someone", "somebody"), ("one", "another"), ("anyone", "anybody"))
LABELS = ("good", "bad", "toxic", " the", "x\x07y")
STUDENT = 2.0  # near enough to the quantile: intervals are made up as well


def speak(rng: np.random.Generator) -> None:
    """Two texts, and two lists of words, say everything that they can."""
    p, t = probe(rng), template_probe(rng)
    p.answer()
    t.answer()
    p.about()
    if lots.does(rng, 0.1):
        p.to_dict()
        t.to_dict()
        to_text(lambda _: templates_view(t))
        to_text(lambda _: probe_view(p))
        probe_fragment(p)
        probe_page(p)
        templates_page(t)
        repr(p), repr(t)


# ---------------------------------------------------------------------- two texts


def probe(rng: np.random.Generator) -> Probe:
    """Two texts that differ in some words, or in none."""
    words = lots.words(rng, lots.count(rng, 8))
    other = [lots.one_of(rng, lots.WORDS) if lots.does(rng, 0.2) else word for word in words]
    if lots.does(rng, 0.2):
        other.insert(int(rng.integers(len(other) + 1)), "not")
    shape = (lots.count(rng, 3), lots.count(rng, 3))
    kinds = ("encoder",) if lots.does(rng, 0.8) else ("encoder", "cross")
    flat = lots.does(rng, 0.15)
    try:
        p = probed(_maps(rng, words, shape, kinds, flat), _maps(rng, other, shape, kinds, flat))
    except InputError:  # no word in common
        return probe(rng)
    if lots.does(rng, 0.1):
        p = replace(p, difference={kind: 0 * d for kind, d in p.difference.items()})
    if lots.does(rng, 0.8):
        p = _with_predictions(rng, p)
    if not p.is_same and lots.does(rng, 0.7):
        controls = [_control(rng, p, pair) for pair in NEUTRAL[: lots.count(rng, 3)]]
        p = replace(p, controls=tuple(controls))
    return p


def _maps(
    rng: np.random.Generator,
    words: list[str],
    shape: tuple[int, int],
    kinds: tuple[str, ...],
    flat: bool,
) -> AttentionMaps:
    """Weights by lot; ``flat`` looks at everything alike. Equal words have equal ids."""
    count = len(words)
    passage = passage_of(" ".join(words))
    ids = [sum(map(ord, word)) for word in words]
    passage = replace(passage, ids=np.array(ids))
    special = np.zeros(count, dtype=bool)
    axis = Axis(tuple(words), special, np.where(special, SPECIAL, 0))
    written = Axis(("</s>",), np.ones(1, dtype=bool), np.full(1, SPECIAL))
    weights = {}
    for kind in kinds:
        rows = count if kind == "encoder" else 1
        drawn = rng.dirichlet(np.full(count, lots.one_of(rng, (0.01, 1.0, 100.0))), (*shape, rows))
        weights[kind] = np.full_like(drawn, 1 / count) if flat else drawn
    return AttentionMaps(
        passage=passage,
        weights=weights,
        from_axis={kind: axis if kind == "encoder" else written for kind in kinds},
        to_axis=dict.fromkeys(kinds, axis),
        modules=dict.fromkeys(kinds, ("a",)),
    )


def _with_predictions(rng: np.random.Generator, p: Probe) -> Probe:
    kind = rng.integers(4)
    if kind == 0:  # a number on a scale of its own
        values = tuple(float(x) for x in rng.normal(size=2) * 10.0 ** rng.uniform(-5, 2))
        given: Any = tuple({"score": value} for value in values)
        return replace(p, predictions=given, reading=Reading("score", False), values=values)
    labels = [str(name) for name in rng.permutation(LABELS)[: 2 + int(rng.integers(3))]]
    several = bool(kind == 1)
    said = tuple(_prediction(rng, labels, several) for _ in range(2))
    if lots.does(rng, 0.2):
        said = (said[0], said[0])
    values = tuple(one[labels[0]] for one in said)
    reading = Reading(labels[0])
    if lots.does(rng, 0.2):
        reading = Reading("log-probability of good rather than bad", is_probability=False)
        values = tuple(float(x) for x in rng.normal(size=2))
    return replace(p, predictions=said, reading=reading, values=values, several_labels=several)


def _prediction(rng: np.random.Generator, labels: list[str], several: bool) -> dict[str, float]:
    """Most likely first."""
    chances = np.array([lots.share(rng) for _ in labels])
    if not several:
        chances = (chances + 1e-12) / (chances + 1e-12).sum()
    order = np.argsort(-chances, kind="stable")
    return {labels[i]: float(chances[i]) for i in order}


def _control(rng: np.random.Generator, p: Probe, pair: tuple[str, str]) -> Control:
    """Neutral words, of which some change as much, or but for what is shown."""
    own = p.values[1] - p.values[0] if p.values else float("nan")
    factor = lots.one_of(rng, (0.0, 1.0, -1.0, 0.999, 1.001, 0.5, -2.0, 0.01))
    largest = min(1.0, p.largest * lots.one_of(rng, (0.0, 1.0, 0.999, 1.001, 0.5, 2.0)))
    return Control(*pair, value=own * factor, largest=largest, mean=largest / 3)


# ---------------------------------------------------------------------- over templates


def template_probe(rng: np.random.Generator) -> TemplateProbe:
    """Two lists of words in 1 to 1,000 sentences."""
    count = lots.count(rng, 1000) if lots.does(rng, 0.3) else lots.count(rng, 12)
    lines = [f"{{}} was late, {lots.one_of(rng, lots.WORDS)} {i}" for i in range(count)]
    pairs = [Template(line, ((f"he {i}", f"she {i}"),)) for i, line in enumerate(lines)]
    first, second = lots.one_of(rng, (("he", "she"), ("the first text", "the second text")))
    repeated = lots.one_of(rng, (0, 0, 0, 1, 7))
    reading = lots.one_of(
        rng, (Reading("good"), Reading("log-probability of the word at its place", False))
    )
    own = _contrast(rng, f"{first} → {second}", count)
    controls = []
    for pair in NEUTRAL[: int(rng.integers(4))]:
        controls.append(_contrast(rng, " → ".join(pair), count))
    return TemplateProbe(
        "toy", Templates(first, second, tuple(pairs), repeated), reading, own, tuple(controls)
    )


def _contrast(rng: np.random.Generator, name: str, count: int) -> Contrast:
    """Changes with Student's interval, as ``whence.probe_templates`` makes it."""
    scale = lots.one_of(rng, (0.2, 0.01, 1e-4, 1e-6))
    differences = scale * (rng.normal(size=count) / 3 + lots.one_of(rng, (0.0, 1.0, -1.0)))
    kind = rng.integers(6)
    if kind == 0:
        differences = np.full(count, lots.one_of(rng, (0.0, 0.25, -0.1)))
    elif kind == 1:
        differences[rng.random(count) < 0.5] = 0.0
    low = high = float("nan")
    if count >= FEWEST_TEMPLATES and not all_same(differences):
        half = STUDENT * differences.std(ddof=1) / count**0.5
        low, high = float(differences.mean() - half), float(differences.mean() + half)
    return Contrast(name, differences, low, high)
