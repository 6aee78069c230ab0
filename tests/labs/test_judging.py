"""The judging lab: its claims, and its functions against references and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from whence.labs import judging as lab
from whence.notebook.book import Notebook


@pytest.fixture(scope="module")
def book() -> Notebook:
    book = Notebook(lab.TITLE, quick=True, formats=("svg",))
    lab.run(book)
    return book


@pytest.mark.slow  # a whole lab
def test_the_claims_but_for_one(book):
    # a ranking for each row takes from it what decided it, and beats the one true ranking of all
    # rows
    fails = [c for c in book.claims if not c.holds]
    assert [c.claim for c in fails] == [
        "No ranking makes accuracy fall faster than the true weights"
    ]
    assert "gradient × input" in fails[0].measured
    assert len(book.claims) == 19


@pytest.mark.slow  # a whole lab
def test_figures_tables_and_slides(book):
    assert {f.name for f in book.figures} == {
        f"judging-{n}" for n in ("recall", "sensitivity", "difference", "roar", "users")
    }
    assert {t.name for t in book.tables} == {"judging-accuracies", "judging-choices"}
    assert book.to_html().count("<section") == 7  # title, five heads, claims


@pytest.mark.slow  # a whole lab
def test_the_figures_lab_knows_these_pictures(book):
    from whence.labs.figures import PICTURES

    assert {f.name for f in book.figures} == {
        figure for _, _, name, figure in PICTURES if name == "judging"
    }


def test_logistic_regression_against_a_general_minimiser():
    # a penalised bias, a ridge of half or twice the size, or too few steps would show
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3)) + 1
    y = (rng.random(80) < 0.8).astype(float)

    def loss(beta: np.ndarray) -> float:
        logit = x @ beta[:3] + beta[3]
        return float(np.logaddexp(0, -(2 * y - 1) * logit).sum() + 2.5 / 2 * (beta[:3] ** 2).sum())

    w, b = lab.fit(x, y, ridge=2.5)
    np.testing.assert_allclose([*w, b], minimize(loss, np.zeros(4), tol=1e-12).x, atol=2e-5)


def test_logistic_regression_of_separable_rows_converges():
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    y = np.array([0.0, 0.0, 1.0, 1.0])
    w, b = lab.fit(x, y)
    p = 1 / (1 + np.exp(-(x[:, 0] * w[0] + b)))
    assert x[:, 0] @ (y - p) == pytest.approx(w[0], abs=1e-9)  # the gradient is the penalty's
    assert (y - p).sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("w", "b", "expected"),
    [
        ([3.0, -1.0, 2.0, 0.5], 0.0, [0, 2]),  # 4.5 → 1.5 → −0.5: the label has changed
        # it never does; what speaks against it is not named
        ([3.0, -1.0, 2.0, 0.5], 9.0, [0, 2, 3]),
        ([-3.0, 1.0, -0.5], 0.0, [0]),  # −2.5 → 0.5
        ([0.0, 0.0], 1.0, []),
    ],
)
def test_greedy_by_hand(w, b, expected):
    # one that goes on after the change, stops one word early, or forgets which label was predicted
    # would show
    assert lab.greedy(np.array(w), b).tolist() == expected


def test_orders_name_every_word_once_and_the_gradient_by_weight():
    w = np.array([0.1, -2.0, 0.0, 1.0])
    found = lab.orders(w, 0.3, 200, np.random.default_rng(0))
    for name in ("LIME", "gradient", "random"):
        assert sorted(found[name].tolist()) == [0, 1, 2, 3]
    assert found["gradient"].tolist() == [1, 3, 0, 2]  # by size, whatever the sign
    assert found["LIME"][:2].tolist() == [1, 3]


def test_recall_is_no_precision():
    assert lab.recall({1, 3, 5}, {3, 4, 5}) == pytest.approx(2 / 3)
    assert lab.recall({1}, {1, 2, 3, 4}) == 1
    assert lab.recall({1, 2, 3, 4}, {1}) == 0.25


def test_integrated_gradients_are_complete():
    # a left sum instead of midpoints would be off by 1/2000 of the slope's change
    found = lab.integrated_gradients(
        lambda x: np.array([2 * x[0] * x[1], x[0] ** 2]), np.array([1.5, -2.0])
    )
    assert found.sum() == pytest.approx(1.5**2 * -2.0, abs=1e-5)
    assert found[0] == pytest.approx(2 * found[1], abs=1e-5)  # x²y: two thirds and one third


def test_removing_and_retraining_by_hand(monkeypatch):
    # one that removes from the test rows only, takes the test rows' mean, or the last of the
    # ranking would show
    monkeypatch.setattr(lab, "TEST", 200)
    monkeypatch.setattr(lab, "SHARES", np.array([0.0, 0.5, 1.0]))
    rng = np.random.default_rng(1)
    y = (rng.random(400) < 0.5).astype(float)
    # the first feature is the label, far from 0
    x = np.stack([2 * y - 1 + 5, rng.normal(size=400)], 1)
    first, last = np.tile([0, 1], (400, 1)), np.tile([1, 0], (400, 1))
    before = x.copy()
    assert lab.roar(x, y, first)[0] == 1
    assert lab.roar(x, y, first)[1] < 0.65
    assert lab.roar(x, y, last)[:2] == [1, 1]
    majority = float(y[:200].mean() > 0.5)  # of the training rows: all that is left to know
    assert lab.roar(x, y, last)[2] == lab.roar(x, y, first)[2] == (y[-200:] == majority).mean()
    assert lab.roar(x, y, first, retrain=False)[1] < 0.65
    np.testing.assert_array_equal(x, before)


def test_leaks_tell_the_label_only_where_they_leak():
    rng, tilt = np.random.default_rng(2), np.zeros(lab.CONTENT)
    for leak in (True, False):
        x, y = lab.leaking_texts(20_000, leak, tilt, rng)
        gap = x[y == 1].mean(0) - x[y == 0].mean(0)
        assert np.abs(gap[: lab.CONTENT]).max() < 0.03
        if leak:
            assert (gap[lab.CONTENT :: 2] > 0.2).all()
            assert (gap[lab.CONTENT + 1 :: 2] < -0.2).all()
        else:
            assert np.abs(gap[lab.CONTENT :]).max() < 0.03


def test_a_user_takes_the_model_with_fewer_distrusted_words():
    distrusted = np.array([True, False, True, False])
    leaking, clean, none = np.array([0, 2]), np.array([1, 3]), np.array([], dtype=int)
    assert lab.choice([(leaking, clean)], distrusted) == 1
    assert lab.choice([(clean, leaking)], distrusted) == 0
    assert lab.choice([(leaking, clean), (clean, leaking)], distrusted) == 0.5
    assert lab.choice([(none, none)], distrusted) == 0.5


@pytest.mark.slow  # a whole lab
def test_random_words_of_users_are_a_coin_and_the_others_are_not(book):
    (table,) = [t for t in book.tables if t.name == "judging-choices"]
    rows = {name: np.array(values) for name, *values in table.rows}
    assert np.abs(rows["random"] - 0.5).max() < 0.15  # 180 users: four standard errors
    assert min(rows[name][2:6].min() for name in ("LIME", "greedy", "gradient")) > 0.9


@pytest.mark.slow  # a whole lab
def test_the_same_seed_gives_the_same_numbers_and_no_global_generator_is_touched(book):
    before, numpys = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    again = Notebook(lab.TITLE, quick=True, formats=("svg",))
    lab._sensitivity(again)
    lab._difference(again)
    kept = {c.claim: c.measured for c in book.claims}
    assert all(kept[c.claim] == c.measured for c in again.claims)
    assert torch.equal(before, torch.random.get_rng_state())
    assert (np.random.get_state()[1] == numpys).all()
