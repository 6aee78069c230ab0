"""Many texts, made by lot: the answer over all of them, their index, counts by method.

Up to a dozen texts are whole results, each by lot; of up to a thousand there are counts alone, as a
run over a data set has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from tests.occasions import comparison
from whence.core.answer_of_many import AnswerOfMany, answer_of_counts
from whence.core.attribution import NO_LABEL
from whence.core.evidence import Verdict
from whence.core.many import Failure, Many, Tally, tally_of
from whence.views.answering_of_many import many_sentences

Rng = np.random.Generator


def speak(rng: Rng) -> None:
    """One result by lot, and all that is said of it."""
    many_sentences(counts(rng)[0])
    if rng.random() < 0.4:
        every_view(rng, result(rng))


def every_view(rng: Rng, many: Many) -> None:
    """Terminal, page, notebook and tables, by lot."""
    repr(many)
    views: tuple[tuple[float, Callable[[], object]], ...] = (
        (0.8, many.to_text),
        (0.1, lambda: many.to_text(full=True)),
        (0.25, many.to_html),
        (0.05, many._repr_html_),
        (0.1, many.to_dict),
    )
    tables = ((0.3, many.to_latex), (0.1, many.to_markdown), (0.1, many.to_csv))
    for chance, view in [*views, *(tables if many.results else ())]:
        if rng.random() < chance:
            view()


def result(rng: Rng) -> Many:
    """None to a dozen texts by the same methods; some twice, some that failed."""
    methods = comparison.methods_of(rng)[:5]
    results = [
        comparison.result(rng, methods) for _ in range(int(rng.choice([0, 1, 1, 2, 3, 6, 12])))
    ]
    if results and rng.random() < 0.3:
        results += results[: int(rng.integers(1, 3))]
    failures = tuple(
        Failure(f"texts\x1b.txt, line {line}", "it is empty", line)
        for line in range(int(rng.choice([0, 0, 0, 1, 3, 14])))
    )
    return Many(tuple(results), failures, unreached=int(rng.choice([0, 0, 0, 1, 2400])))


def counts(rng: Rng) -> tuple[AnswerOfMany, list[Tally]]:
    """What is counted over up to four thousand texts, and what is said of it."""
    texts = int(rng.choice([1, 2, 3, 5, 12, 20, 40, 120, 1000, 4000]))
    distinct = texts if rng.random() < 0.7 else int(rng.integers(1, texts + 1))
    tallies = []
    if rng.random() < 0.9:
        for name in comparison.methods_of(rng):
            tallies.append(tally(rng, name, distinct))
    explained = int(rng.binomial(distinct, float(rng.choice([0.0, 0.05, 0.3, 1.0]))))
    return answer_of_counts(texts, labels(rng, texts), tallies, distinct, explained), tallies


def tally(rng: Rng, method: str, texts: int) -> Tally:
    """A method that is better on few texts, on many, on all, or on as many as chance gives."""
    judged = texts if rng.random() < 0.8 else int(rng.integers(texts + 1))
    chances = [0.02, 0.05, 0.05, 0.08, 0.3, 1.0, 0.0]
    better = int(rng.binomial(judged, float(rng.choice(chances))))
    worse = int(rng.binomial(judged - better, 0.1))
    counted = {Verdict.BETTER: better, Verdict.WORSE: worse}
    counted[Verdict.SAME] = judged - better - worse
    one, other = rng.choice([0.01, 0.5, 2.0], 2).tolist()
    shares = rng.beta(one, other, judged).tolist()
    return tally_of(method, texts, counted, shares)


def labels(rng: Rng, texts: int) -> Counter[str]:
    """What the model says of the texts: one label each, several or none, or nothing."""
    roll = rng.random()
    pool = comparison.LABELS[: int(rng.integers(1, len(comparison.LABELS) + 1))]
    if roll < 0.1:
        return Counter()
    if roll < 0.7:
        return Counter(rng.choice(pool, texts).tolist())
    counted = {name: int(rng.binomial(texts, rng.random())) for name in [*pool, NO_LABEL]}
    return Counter({name: count for name, count in counted.items() if count})
