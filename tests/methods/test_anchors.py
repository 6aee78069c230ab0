"""Anchors: against the precision of every set of units, enumerated."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whence
from tests.games.tables import Table
from whence.core.errors import Unsupported
from whence.core.target import Target
from whence.games.arms import Arms, Pool, completions, lattice_precisions
from whence.methods.anchors import LEAST, Anchors

Value = Callable[[np.ndarray], np.ndarray]


def linear(seed: int, d: int) -> Value:
    rng = np.random.default_rng(seed)
    weights, shift = rng.normal(size=d) * rng.exponential(size=d), rng.normal() / 2
    return lambda z: z @ weights + shift


def with_pairs(seed: int, d: int) -> Value:
    rng = np.random.default_rng(seed)
    weights, pairs = rng.normal(size=d), np.triu(rng.normal(size=(d, d)))
    return lambda z: z @ weights + ((z @ pairs) * z).sum(1)


def truth(game: Table) -> tuple[np.ndarray, np.ndarray]:
    """The precision and the size of every set, by number; their definition is tested beside the
    arms.
    """
    masks = completions(np.zeros(game.size, dtype=bool))
    return lattice_precisions(game.labels(masks) == game.label), masks.sum(1)


def number(units: list[int]) -> int:
    return sum(1 << u for u in units)


@settings(max_examples=40)
@given(
    st.integers(1, 9),
    st.integers(0, 10**6),
    st.sampled_from([0.6, 0.8, 0.95, 1.0]),
    st.sampled_from([linear, with_pairs]),
)
def test_a_text_that_fits_into_the_budget_gets_the_best_anchor_there_is(
    d: int, seed: int, threshold: float, kind: Any
) -> None:
    game = Table(d, kind(seed, d))
    found = Anchors(precision=threshold, slack=0.0)(game)
    precision, size = truth(game)
    detail, anchor = found.detail, found.detail["anchor"]
    holds = precision >= threshold
    assert len(anchor) == size[holds].min()
    assert (
        detail["precision"]
        == precision[number(anchor)]
        == precision[holds & (size == len(anchor))].max()
    )
    assert detail["interval"] == [detail["precision"]] * 2
    assert detail["exact"]
    assert detail["coverage"] == 0.5 ** len(anchor)
    for u in anchor:
        rest = number([v for v in anchor if v != u])
        assert found.units[u] == pytest.approx(detail["precision"] - precision[rest])
    assert (found.units > 0).nonzero()[0].tolist() == anchor


def test_fifteen_words_exactly() -> None:
    game = Table(15, linear(1, 15))
    found = Anchors(budget=2**15)(game)
    precision, size = truth(game)
    assert found.detail["exact"]
    assert found.detail["samples"] == 2**15
    assert len(found.detail["anchor"]) == size[precision >= 0.95].min() > 1


def test_sampled_anchors_keep_their_promise_on_thirteen_to_fifteen_words() -> None:
    """With probability 1 − δ the interval is right and the precision above threshold − slack; the
    size is that of the best or one off.
    """
    runs, wrong, short = 24, 0, 0
    for seed in range(runs):
        game = Table(13 + seed % 3, (linear, with_pairs)[seed % 2](seed, 13 + seed % 3))
        detail = Anchors(seed=seed)(game).detail
        precision, size = truth(game)
        true, (low, high) = precision[number(detail["anchor"])], detail["interval"]
        assert detail["samples"] <= 4096
        wrong += not low <= true <= high or (detail["holds"] and true <= 0.9)
        short += len(detail["anchor"]) == size[precision >= 0.95].min()
    assert wrong <= 2
    assert short >= 0.85 * runs


def test_a_single_word_decides() -> None:
    game = Table(20, lambda z: z[:, 7] - 0.5)
    found = Anchors()(game)
    assert found.detail["anchor"] == [7]
    assert found.detail["precision"] == 1
    assert found.units[7] == pytest.approx(0.5, abs=0.1)
    assert (
        'IF "w7" is kept, the label stays yes in 100 % of removals (90 % interval: 9' in found.note
    )
    assert found.note.endswith("to 100 %); coverage 50 %")


def test_two_words_that_do_nothing_alone_are_found_together() -> None:
    """A beam over single words does not see them: "not" and "bad" alone speak against the label
    that both hold together.
    """
    game = Table(
        24,
        lambda z: (
            4.0 * (z[:, 3] & z[:, 11]) - z[:, 3] - z[:, 11] + 0.3 * (z[:, 12:].sum(1) - 6) + 0.1
        ),
    )
    assert Anchors()(game).detail["anchor"] == [3, 11]


def test_no_unit_of_the_anchor_is_idle() -> None:
    """Four words of twenty: larger than all sets can be tried, so the beam finds them and what it
    took along is dropped.
    """
    game = Table(20, lambda z: z[:, [1, 5, 9, 13]].sum(1) - 3.5)
    found = Anchors(budget=20000)(game)
    assert found.detail["anchor"] == [1, 5, 9, 13]
    assert found.units[[1, 5, 9, 13]] == pytest.approx(0.5, abs=0.15)


def test_the_beam_is_as_wide_as_asked_and_within_tolerance_of_the_best() -> None:
    """The reference takes the width and does not hand it on; and with one draw each, chance alone
    would choose.
    """
    weights = np.array([3.0, 2.5, 2.0, 1.5, 0, 0, 0, 0, -1, -1, -2, -2])
    game = Table(12, lambda z: z @ weights + 0.2)
    precision, _ = truth(game)
    singles = precision[1 << np.arange(12)]
    for beam, tolerance in ((1, 0.15), (3, 0.15), (5, 0.15), (3, 0.05)):
        pool = Pool(game, 0.1, 200_000, np.random.default_rng(beam))
        chosen = Anchors(beam=beam, tolerance=tolerance)._choose(Arms(pool, np.eye(12, dtype=bool)))
        assert len(set(chosen.tolist())) == beam
        assert singles[chosen].min() >= np.sort(singles)[-beam] - tolerance


@pytest.mark.parametrize("d", [1, 6, 30])
def test_the_empty_anchor_is_an_answer(d: int) -> None:
    found = Anchors()(Table(d, lambda z: np.ones(len(z))))
    assert found.detail["anchor"] == []
    assert found.detail["coverage"] == 1
    assert not found.units.any()
    assert found.note.startswith("whatever is kept, the label stays yes in 100 % of ")


def test_the_other_label_is_held_as_well() -> None:
    game = Table(20, lambda z: 0.5 - z[:, 4])
    assert game.label == 0
    assert Anchors()(game).detail["anchor"] == [4]


def test_exact_precision_where_few_masks_are_left_open() -> None:
    game = Table(14, lambda z: z[:, :5].sum(1) - 4.5)
    found = Anchors(budget=10000)(game).detail
    assert found["anchor"] == [0, 1, 2, 3, 4]
    assert found["exact"]
    assert found["interval"] == [1, 1]


@pytest.mark.parametrize(
    "limits", [{"budget": 1}, {"budget": 50}, {"budget": 700}, {"max_size": 0}, {"max_size": 2}]
)
def test_if_nothing_holds_the_best_is_returned_and_said(limits: dict[str, int]) -> None:
    game = Table(20, lambda z: z.sum(1) - 19.5)  # all are needed
    game.asked.clear()
    found = Anchors(**limits)(game)
    assert not found.detail["holds"]
    assert found.note.startswith("no anchor of precision 95 % was found within budget=")
    assert ("max_size" in found.note) == ("max_size" in limits)
    assert np.isfinite(found.units).all()
    assert (found.units[found.detail["anchor"]] >= LEAST).all()
    assert found.detail["samples"] <= limits.get("budget", 4096)
    assert len(found.detail["anchor"]) <= limits.get("max_size", 20)
    assert sum(map(len, game.asked)) <= found.detail["samples"] + len(
        game.asked
    )  # beside its masks, only the label of the whole text


def test_an_exact_search_keeps_to_max_size() -> None:
    game = Table(6, lambda z: z[:, :3].sum(1) - 2.5)
    assert Anchors()(game).detail["anchor"] == [0, 1, 2]
    found = Anchors(max_size=2)(game)
    assert len(found.detail["anchor"]) == 2
    assert (found.detail["precision"], found.detail["holds"]) == (0.5, False)


def test_same_seed_same_answer_and_plain_json() -> None:
    a, b, c = (Anchors(seed=s)(Table(16, with_pairs(0, 16))) for s in (1, 1, 2))
    assert np.array_equal(a.units, b.units)
    assert (a.detail, a.note) == (b.detail, b.note)
    assert a.detail != c.detail
    assert json.loads(json.dumps(a.detail)) == a.detail


def test_the_game_is_asked_in_batches() -> None:
    game = Table(20, with_pairs(2, 20))
    game.asked.clear()
    samples = Anchors()(game).detail["samples"]
    batches = [len(m) for m in game.asked if len(m) > 1]
    assert sum(batches) == samples
    assert np.mean(batches) > 32


def test_only_the_predicted_label_can_be_anchored() -> None:
    game = Table(5, lambda z: z[:, 0] - 0.5)
    game.target = Target("no", index=0)
    with pytest.raises(Unsupported, match=r"'no' is not it\. Leave the target out"):
        Anchors()(game)
    game.label = None
    with pytest.raises(Unsupported, match="one output"):
        Anchors()(game)


@pytest.mark.parametrize(
    "given",
    [
        *(
            {"precision": 0.0},
            {"precision": 1.2},
            {"delta": 0.0},
            {"tolerance": 0.0},
            {"slack": -0.1},
            {"slack": 0.95},
        ),
        *({"beam": 0}, {"batch": 0}, {"budget": 0}, {"max_size": -1}),
    ],
)
def test_settings_out_of_range_are_named(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        Anchors(**given)


def test_a_slack_of_zero_demands_the_bound_itself() -> None:
    game = Table(18, lambda z: z[:, 2] - 0.5)
    loose, strict = (Anchors(slack=slack)(game).detail for slack in (0.05, 0.0))
    assert loose["interval"][0] > 0.9
    assert strict["interval"][0] > 0.95
    assert strict["samples"] > loose["samples"]


def test_on_the_bundled_model() -> None:
    model = whence.load("sentiment")
    game = whence.game(model, "the service is not bad")
    found = Anchors()(game)
    assert [game.passage.names[u] for u in found.detail["anchor"]] == ["not", "bad"]
    assert found.note == (
        'IF "not", "bad" are kept, the label stays positive in 100 % of all removals; coverage 25 %'
    )
