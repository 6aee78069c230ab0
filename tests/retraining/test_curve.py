"""Remove and retrain on the toy of Hooker et al. (2019): rankings whose order of merit is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from whence.core.roar import Roar
from whence.retraining.curve import Way, curves_of_seed, grown, number_of, stacked

SHARES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
INFORMATIVE = 4
WIDTH = 16


@dataclass(frozen=True, eq=False)
class Toy:
    """x = a z/10 + d η + ε/10 with 16 features, a not 0 in four of them; y = (z > 0).

    Least squares; what is removed becomes the mean of its column in training.
    """

    x: np.ndarray
    y: np.ndarray
    a: np.ndarray
    first_test: int
    spoils: str = ""  # a mistake that the tests must notice

    @property
    def sizes(self) -> list[int]:
        return [WIDTH] * len(self.x)

    def left(self, removed: Sequence[np.ndarray], pattern: bool) -> np.ndarray:
        gone = np.stack(list(removed))
        if pattern:
            return gone.astype(float)
        rows = np.where(gone, self.x[: self.first_test].mean(0), self.x)
        if self.spoils == "train":
            rows[: self.first_test] = self.x[: self.first_test]
        return rows

    def train(self, removed: Sequence[np.ndarray], seed: int, pattern: bool) -> np.ndarray:
        return least_squares(
            self.left(removed, pattern)[: self.first_test], self.y[: self.first_test]
        )

    def accuracy(self, model: np.ndarray, removed: Sequence[np.ndarray], pattern: bool) -> float:
        rows = self.left(removed, pattern)[self.first_test :]
        return right(model, rows, self.y[self.first_test :])

    def importance(
        self, model: np.ndarray, removed: Sequence[np.ndarray], names: Sequence[str], seed: int
    ) -> Mapping[str, list[np.ndarray]]:
        rng = np.random.default_rng([seed, 99])
        by_name = {
            "oracle": [np.abs(self.a)] * len(self.x),
            "inverted": [-np.abs(self.a)] * len(self.x),
            "random": list(rng.random(self.x.shape)),
            "weights": [np.abs(model[:-1])] * len(self.x),
            # gone first: those in front where y is positive, those at the end elsewhere
            "leaking": [np.arange(WIDTH) * (-1.0 if y > 0 else 1.0) for y in self.y],
        }
        return {name: by_name[name] for name in names}


def least_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with_bias = np.hstack([x, np.ones((len(x), 1))])
    return np.linalg.lstsq(with_bias, y, rcond=None)[0]


def right(model: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    return float(((x @ model[:-1] + model[-1] > 0) == (y > 0)).mean())


def toy(seed: int, rows: int = 600, spoils: str = "") -> Toy:
    rng = np.random.default_rng(seed)
    a = np.zeros(WIDTH)
    a[:INFORMATIVE] = rng.normal(size=INFORMATIVE) + np.sign(rng.normal(size=INFORMATIVE))
    d = rng.normal(size=WIDTH)
    z, eta = rng.normal(size=rows), rng.normal(size=rows)
    noise = rng.normal(size=(rows, WIDTH))
    x = np.outer(z, a) / 10 + np.outer(eta, d) + noise / 10
    return Toy(x, np.where(z > 0, 1.0, -1.0), a, rows // 2, spoils)


def roar_of_toys(names: Sequence[str], seeds: int = 4, spoils: str = "", **way: Any) -> Roar:
    every = [
        curves_of_seed(toy(seed, spoils=spoils), names, Way(SHARES, **way), seed)
        for seed in range(seeds)
    ]
    return Roar(
        shares=np.array(SHARES),
        accuracies=stacked(curves.accuracies for curves in every),
        patterns=stacked(curves.patterns for curves in every),
        prior=0.5,
        removal="mean",
        keep=way.get("keep", False),
    )


def test_the_oracle_falls_fastest_and_its_reverse_slowest() -> None:
    # a ranking that is read from its lower end would turn this round
    r = roar_of_toys(["oracle", "random", "inverted"])
    areas = {name: r.area(name).mean for name in r.accuracies}
    assert areas["oracle"] < areas["random"] - 0.05
    assert areas["random"] < areas["inverted"] - 0.05
    assert r.against_random("oracle").low > 0
    assert r.against_random("inverted").high < 0


def test_where_the_important_ones_are_kept_it_is_the_other_way_round() -> None:
    r = roar_of_toys(["oracle", "random", "inverted"], keep=True)
    assert r.area("oracle").mean > r.area("random").mean > r.area("inverted").mean
    assert r.against_random("oracle").low > 0
    # the reverse of a ranking, removed from its lower end, is the ranking removed from its upper
    removed = roar_of_toys(["oracle", "random", "inverted"])
    np.testing.assert_allclose(r.accuracies["inverted"], removed.accuracies["oracle"], atol=0.02)


def test_nothing_removed_is_the_model_and_everything_removed_is_the_prior() -> None:
    experiment = toy(0)
    curves = curves_of_seed(experiment, ["oracle", "random"], Way(SHARES), 0)
    n = experiment.first_test
    plain = right(
        least_squares(experiment.x[:n], experiment.y[:n]), experiment.x[n:], experiment.y[n:]
    )
    majority = 1.0 if experiment.y[:n].mean() > 0 else -1.0
    for values in curves.accuracies.values():
        assert values[0] == plain
        assert values[-1] == (experiment.y[n:] == majority).mean()


def test_one_point_again_by_hand() -> None:
    """One that removes from the test rows alone would show: its model still knows the weights."""
    experiment = toy(3)
    share = SHARES[1]
    curve = curves_of_seed(experiment, ["oracle"], Way(SHARES), 3).accuracies["oracle"]
    x, n = experiment.x.copy(), experiment.first_test
    for column in np.argsort(-np.abs(experiment.a), kind="stable")[: round(share * WIDTH)]:
        x[:, column] = experiment.x[:n, column].mean()
    again = right(least_squares(x[:n], experiment.y[:n]), x[n:], experiment.y[n:])
    assert curve[1] == again
    spoilt = curves_of_seed(toy(3, spoils="train"), ["oracle"], Way(SHARES), 3)
    assert spoilt.accuracies["oracle"][1] != again


def test_the_pattern_alone_tells_what_a_leaking_ranking_gives_away() -> None:
    r = roar_of_toys(["random", "leaking"], seeds=3, patterns=True)
    # by the side from which features go, the label is plain to see: until all are gone
    assert r.patterns["leaking"][:, 1:-1].min() > 0.95
    assert r.leak("leaking").low > 0.4
    assert np.abs(r.patterns["random"].mean(0) - 0.5).max() < 0.06
    # ROAR itself takes the leak for words that are still there
    assert r.area("leaking").mean > r.area("random").mean


def test_recursion_asks_each_model_and_never_gives_back() -> None:
    asked: list[tuple[int, int]] = []

    class Noting(Toy):
        def importance(self, model: Any, removed: Any, names: Any, seed: int) -> Any:
            asked.append((len(names), int(np.stack(list(removed)).sum(1)[0])))
            return super().importance(model, removed, names, seed)

    one = toy(1)
    noting = Noting(one.x, one.y, one.a, one.first_test)
    recursive = curves_of_seed(noting, ["weights"], Way(SHARES, recursive=True), 1)
    counts = [number_of(share, WIDTH) for share in SHARES]
    # once of the original, then after each share but the last
    assert asked == [(1, 0), *[(1, count) for count in counts[:-1]]]
    plain = curves_of_seed(one, ["weights"], Way(SHARES), 1)
    for at in (0, -1):
        assert recursive.accuracies["weights"][at] == plain.accuracies["weights"][at]


def test_where_a_copy_steps_in_recursion_finds_it() -> None:
    """The label is feature 0 less feature 2; feature 1 is a poorer copy, which only then is used.

    The first ranking names 0 and 2, and the copy stays. After 0 is gone, 2 is worth nothing: a
    recursion that asked the first model again would not take the copy either.
    """
    rng = np.random.default_rng(5)
    y = np.where(rng.random(800) < 0.5, 1.0, -1.0)
    x = rng.normal(size=(800, WIDTH))
    x[:, 2] = rng.normal(size=800)
    x[:, 0] = y + x[:, 2]
    x[:, 1] = y + 0.5 * rng.normal(size=800)
    experiment = Toy(x, y, np.zeros(WIDTH), 400)
    shares = (0.0, 1 / 16, 2 / 16)
    once = curves_of_seed(experiment, ["weights"], Way(shares), 0).accuracies["weights"]
    again = curves_of_seed(experiment, ["weights"], Way(shares, recursive=True), 0)
    assert once[0] == 1.0
    assert once[1] == again.accuracies["weights"][1] > 0.9
    assert once[2] > 0.9
    assert again.accuracies["weights"][2] < 0.65


def test_what_is_gone_stays_gone_and_ties_are_drawn_by_lot() -> None:
    gone = [np.zeros(40, dtype=bool)] * 200
    level = [np.zeros(40)] * 200
    first = np.stack(grown(gone, level, 0.5, keep=False, seed=0))
    assert (first.sum(1) == 20).all()
    # by reading order the first half would go from all; by lot every place goes from about half
    assert 0.3 < first.mean(0).min() < first.mean(0).max() < 0.7
    more = np.stack(grown(list(first), [np.arange(40.0)] * 200, 0.75, keep=False, seed=0))
    assert (more | ~first).all()
    assert more[:, -10:].all()  # the most important of those that were left


@pytest.mark.parametrize(
    ("share", "units", "expected"), [(0.5, 5, 3), (0.1, 4, 0), (0.3, 10, 3), (0.7, 10, 7)]
)
def test_shares_are_rounded_half_up(share: float, units: int, expected: int) -> None:
    assert number_of(share, units) == expected
