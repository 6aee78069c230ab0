"""The lab of remove and retrain: its closed forms, a run of the smallest size, and its claims."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import whence
from whence.labs import roar as lab
from whence.notebook.book import Notebook

SMALLEST = lab.Size(
    train=12,
    test=10,
    seeds=1,
    shares=(0.0, 0.3, 1.0),
    kept=(),
    again=(0.0, 0.3),
    methods=("gradient-l2",),
    recursive=("gradient-l2",),
    texts=1,
    training=whence.Training(epochs=1, batch=12),
)
METRICS = {name for _, _, names in lab.DESIDERATA for name in names}


def test_the_best_accuracy_by_listing_every_case() -> None:
    """A majority that calls a tie right, or a removal with replacement, would show."""
    for votes in range(4):
        right = 0.0
        for case in product((True, False), repeat=votes):
            chance = np.prod([lab.AGREES if vote else 1 - lab.AGREES for vote in case])
            lead = sum(case) - (votes - sum(case))
            right += chance * (0.5 + 0.5 * np.sign(lead))
        assert lab.best_with(votes) == pytest.approx(right)
    words, removed = 9, 4
    left = []
    for gone in combinations(range(words), removed):
        left.append(lab.best_with(sum(place not in gone for place in range(lab.VOTES))))
    assert lab.best_after(words, removed, knows=False) == pytest.approx(np.mean(left))
    assert lab.best_after(words, 2, knows=True) == lab.best_with(1)
    assert lab.best_after(words, words, knows=False) == 0.5


def test_texts_are_as_the_closed_form_says() -> None:
    rng = np.random.default_rng(0)
    texts = [lab.a_text(i % 2, rng) for i in range(1500)]
    agrees = []
    for text, label in texts:
        votes = [word for word in text.split() if lab.is_vote(word)]
        assert len(votes) == lab.VOTES
        own = lab.GOOD if label == "positive" else lab.BAD
        agrees += [word in own for word in votes]
    error = np.sqrt(lab.AGREES * (1 - lab.AGREES) / len(agrees))
    assert abs(np.mean(agrees) - lab.AGREES) < 4 * error
    lengths = {label: np.mean([len(t.split()) for t, own in texts if own == label])
               for label in lab.LABELS}  # fmt: skip
    assert abs(lengths["positive"] - lengths["negative"]) < 0.4  # length tells nothing


def test_the_lab_runs_and_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "QUICK", SMALLEST)
    book = Notebook(lab.TITLE, quick=True, formats=("svg",))
    lab.run(book)
    assert [f.name for f in book.figures] == ["roar-curves", "roar-recursive", "roar-leaks"]
    tables = {table.name: table for table in book.tables}
    assert set(tables) == {"roar-accuracies", "roar-gauge", "roar-desiderata"}
    rows = {row[2]: row for row in tables["roar-desiderata"].rows}
    assert set(rows) == METRICS | {"whence.roar"}
    known = {metric.name: metric for metric in whence.list_metrics()}
    for name in METRICS:
        cell = rows[name][-1]
        if name not in known:
            assert cell == "not in this version"
        elif "again" in known[name].needs:
            assert cell == "by whence.evaluate"
        else:
            assert "(" in cell, (name, cell)


@pytest.mark.slow
def test_the_claims_of_a_quick_run() -> None:
    book = Notebook(lab.TITLE, quick=True, formats=("svg",))
    lab.run(book)
    sure = (
        "Nothing removed: all rankings are the same model",
        "Everything removed: the most frequent label",
        "No retrained model is better than is possible, but for the test's own noise",
        "The holes of a ranking by label give the label away; ROAR alone would call it harmless",
        "The holes of random rankings tell nothing",
    )
    holds = {claim.claim: claim.holds for claim in book.claims}
    assert all(holds[claim] for claim in sure), book.claims
