"""Heads and layers brought together: the examples of FACTS 5.2 and the identities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.core.aggregate import across_heads, across_layers, product, product_row, with_residual
from whence.core.errors import SettingsError

A1, A2 = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.6, 0.4], [0.1, 0.9]])


def rollout(*layers: np.ndarray) -> np.ndarray:
    return across_layers(with_residual(np.stack(layers)), "product")


def test_rollout_multiplies_later_layers_from_the_left_with_the_residual() -> None:
    np.testing.assert_allclose(rollout(A1, A2), [[0.75, 0.25], [0.1875, 0.8125]], atol=1e-12)
    # the wrong versions of the literature: the other order, and no residual
    np.testing.assert_allclose(rollout(A2, A1), [[0.725, 0.275], [0.1625, 0.8375]], atol=1e-12)
    np.testing.assert_allclose(
        across_layers(np.stack([A2, A1]), "product"), [[0.5, 0.5], [0.25, 0.75]], atol=1e-12
    )


def test_limits_of_rollout() -> None:
    uniform = np.full((3, 3), 1 / 3)
    np.testing.assert_allclose(rollout(*[uniform] * 40), uniform, atol=1e-9)
    np.testing.assert_allclose(rollout(*[np.eye(3)] * 4), np.eye(3), atol=1e-12)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_rows_sum_to_one_and_one_row_equals_the_matrix(layers: int, places: int, seed: int) -> None:
    maps = np.random.default_rng(seed).dirichlet(np.ones(places), (layers, places))
    whole = rollout(*maps)
    np.testing.assert_allclose(whole.sum(-1), 1, atol=1e-9)
    mixed = list(with_residual(maps))
    for i in range(places):
        np.testing.assert_allclose(product_row(mixed, np.eye(places)[i]), whole[i], atol=1e-9)
    np.testing.assert_allclose(product(mixed), whole, atol=1e-12)


def test_every_choice_of_heads_and_layers() -> None:
    w = np.random.default_rng(0).dirichlet(np.ones(4), (3, 2, 4))
    for how, f in (("mean", np.mean), ("max", np.max), ("sum", np.sum), ("product", np.prod)):
        np.testing.assert_allclose(across_heads(w, how), f(w, axis=1))
        if how != "product":
            np.testing.assert_allclose(across_layers(w[:, 0], how), f(w[:, 0], axis=0))
    np.testing.assert_array_equal(across_heads(w, 1), w[:, 1])
    np.testing.assert_array_equal(across_layers(w[:, 0], -1), w[2, 0])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda w: across_heads(w, 5),
        lambda w: across_heads(w, "median"),
        lambda w: across_layers(w[:, 0], 9),
        lambda w: with_residual(w[..., :2]),
        lambda w: across_layers(w[:, 0, :, :2], "product"),
    ],
)
def test_what_cannot_be_is_refused(wrong) -> None:
    with pytest.raises(SettingsError):
        wrong(np.ones((3, 2, 4, 4)))
