"""Cards: what was saved of a model, over all that can be saved."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tests.occasions.evaluation import METHODS, pick, some
from whence.core.card import Card, Finding, Source, Standing
from whence.core.evidence import Verdict
from whence.core.many import Tally, tally_of
from whence.core.question import Question
from whence.explaining import card as gathering

DATA = ("data/reviews.csv", "mails.csv", "x\u202ey.csv", "")
# which way each answer points, in the words of its question
SAID = {
    Question.TEXT: {
        Standing.YES: "better than random",
        Standing.OPEN: "not separable from random",
        Standing.NO: "worse than random",
    },
    Question.ATTENTION: {
        Standing.YES: "may be read",
        Standing.OPEN: "undecided",
        Standing.NO: "may not be read",
    },
}


def tallies(rng: np.random.Generator, methods: list[str], texts: int) -> list[Tally]:
    """On how many texts each is better than random: next to what chance allows, and far off."""
    every = []
    for method in methods:
        better = int(rng.binomial(texts, pick(rng, (0.0, 0.05, 0.1, 0.15, 0.3, 1.0))))
        worse = int(rng.binomial(texts - better, 0.1))
        verdicts = {Verdict.BETTER: better, Verdict.WORSE: worse}
        verdicts[Verdict.SAME] = texts - better - worse
        every.append(tally_of(method, texts, verdicts, [0.5] * texts))
    return every


def findings(
    rng: np.random.Generator, question: Question, kind: str, methods: list[str], texts: int
) -> list[Finding]:
    """What a source says of methods, by the same rules as those of the results themselves."""
    if question is Question.TEXTS:
        return gathering._findings_of(tallies(rng, methods, texts), texts)
    if question is Question.MEASURE:
        every = [Verdict.BETTER, Verdict.SAME, Verdict.WORSE]
        of = int(pick(rng, (1, 2, 6)))
        likely = pick(rng, ((1, 0, 0), (0, 0.5, 0.5), (0.5, 0.3, 0.2)))
        drawn = [[every[i] for i in rng.choice(3, of, p=likely)] for _ in methods]
        return [gathering._by_measures(m, v) for m, v in zip(methods, drawn, strict=True)]
    if kind == "generation":
        found = []
        for method in methods:
            won = int(pick(rng, (0, 1, texts)))
            standing = {0: Standing.OPEN, texts: Standing.YES}.get(won, Standing.PART)
            found.append(Finding(method, 0, standing, "better than random", won, texts))
        return found
    standings = [pick(rng, tuple(SAID[question])) for _ in methods]
    words = SAID[question]
    return [Finding(m, 0, one, words[one]) for m, one in zip(methods, standings, strict=True)]


def draw(rng: np.random.Generator) -> Card:
    """A card by lot."""
    sources: list[Source] = []
    every: list[Finding] = []
    attention = {}
    for number in range(int(pick(rng, (1, 1, 2, 4, 7)))):
        question = pick(rng, tuple(Question))
        kind = {"text": "comparison", "texts": "run", "measure": "evaluation"}.get(
            question, "audit"
        )
        texts, counted = int(pick(rng, (1, 4, 5, 40, 1200))), "text"
        if question is Question.TEXT:
            texts = 1
            if rng.random() < 0.4:
                kind, texts, counted = "generation", int(pick(rng, (1, 2, 9))), "written token"
        names = pick(rng, (METHODS[:3], METHODS[:3], METHODS, ("random", "lime")))
        methods = some(rng, names, 0, 9)
        note = "" if methods else "no method in it was held against random rankings"
        name = pick(rng, ("reviews", "a|b", "\x1b[31mfile", f"file{number}.json"))
        data = "" if question is Question.TEXT else pick(rng, DATA)
        sources.append(Source(question, kind, name, data, texts, counted, note))
        for one in findings(rng, question, kind, methods, texts):
            told = {name: getattr(one, name) for name in one.__dataclass_fields__}
            every.append(Finding(**(told | {"source": number})))
        if question is Question.ATTENTION and rng.random() < 0.5:
            attention[name] = "undecided: the texts do not tell"
    return Card(
        model=pick(rng, ("toy", "org/model", "\x1b[31mmodel")),
        sources=tuple(sources),
        findings=tuple(every),
        attention=attention,
        left_out=pick(
            rng, ({}, {"x.json": "a Probe answers another question"}, {"a": "b", "c": "d"})
        ),
    )


def speak(rng: np.random.Generator) -> None:
    """Everything that can be said of a card."""
    card = draw(rng)
    str(card)
    card.to_html()
    card.to_markdown()
    card._repr_html_()
    card.to_dict()
    Counter(card.methods)
