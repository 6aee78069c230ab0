"""What a head does, on heads whose doing is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whence
from tests.views.conftest import passage_of
from whence.core.errors import UnknownName
from whence.core.heads import HeadTable, jensen_shannon, measured, plane, reaches
from whence.core.maps import AttentionMaps, Axis

LABELS = ("[CLS]", "so", ",", "good", "[SEP]")
SPECIAL = np.array([True, False, False, False, True])


def shifted(offset: int) -> np.ndarray:
    """Every place looks at its neighbour; at an end, at itself."""
    return np.stack([np.eye(5)[min(max(i + offset, 0), 4)] for i in range(5)])


def to_place(place: int) -> np.ndarray:
    return np.tile(np.eye(5)[place], (5, 1))


def table(*heads: np.ndarray, **effects: np.ndarray) -> HeadTable:
    weights = np.stack(heads)[None]
    names = tuple(str(i) for i in range(len(heads)))
    columns = measured(weights, LABELS, SPECIAL) | effects
    return HeadTable("encoder", ("0",), names, columns, weights)


def test_heads_are_called_after_what_they_do() -> None:
    uniform = np.full((5, 5), 0.2)
    t = table(shifted(-1), shifted(1), np.eye(5), to_place(0), to_place(4), to_place(2), uniform)
    assert t.pattern[0].tolist() == [
        "previous",
        "next",
        "self",
        "first",
        "separators",
        "punctuation",
        "broad",
    ]
    assert t["previous"][0, 0] == 1  # the first place has none before it and does not count
    assert t["next"][0, 0] == 0  # would catch the labels of FACTS 5.1 that one notebook swaps
    assert t["entropy"][0, 6] == pytest.approx(np.log(5))
    assert t["breadth"][0, 6] == pytest.approx(1)
    assert t["entropy"][0, 2] == 0


def test_a_causal_head_that_looks_at_all_it_sees_is_broad() -> None:
    seen = np.tril(np.ones((5, 5)))
    t = table(seen / seen.sum(-1, keepdims=True))
    assert t["breadth"][0, 0] == pytest.approx(1)  # against log of all five places it would be 0.59


def test_the_distance_is_that_of_jensen_and_shannon() -> None:
    heads = np.random.default_rng(0).dirichlet(np.ones(4), (3, 5))
    divergence = jensen_shannon(heads)
    for i in range(3):
        for j in range(3):
            middle = (heads[i] + heads[j]) / 2
            slow = 0.5 * (
                (heads[i] * np.log(heads[i] / middle)).sum(-1)
                + (heads[j] * np.log(heads[j] / middle)).sum(-1)
            )
            assert divergence[i, j] == pytest.approx(slow.mean(), abs=1e-12)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_points_of_a_plane_come_back_with_their_distances(count: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    flat = plane(distances)
    np.testing.assert_allclose(
        np.linalg.norm(flat[:, None] - flat[None], axis=-1), distances, atol=1e-6
    )


def test_rows_and_columns() -> None:
    t = table(np.eye(5), shifted(1), output_change=np.array([[0.1, 0.2]]))
    assert t.rows()[1]["output_change"] == 0.2
    assert t.rows()[1]["pattern"] == "next"
    assert t.places.shape == (1, 2, 2)
    assert "1 next" in repr(t)
    with pytest.raises(UnknownName, match="entropy"):
        t["entropi"]


# ---------------------------------------------------------------------- what is worth a look


def test_a_head_that_links_distant_words_reaches_furthest() -> None:
    far = np.eye(5)[[3, 3, 1, 1, 1]]
    t = table(
        shifted(-1), shifted(1), np.eye(5), to_place(0), to_place(2), np.full((5, 5), 0.2), far
    )
    # "so" and "good" look at each other; the comma between them is no word to look at
    assert t["reach"][0].argmax() == 6
    assert t["reach"][0, :5].tolist() == [0, 0, 0, 0, 0]
    assert t["reach"][0, 6] == pytest.approx(2 / 3)  # the comma itself looks at its neighbour
    assert t["one"][0, 6] == pytest.approx(0.6)


def test_a_text_of_two_words_counts_its_neighbours() -> None:
    weights = np.array([[[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]])
    reach = reaches(weights, ["not", "bad"], np.zeros(2, dtype=bool))
    assert reach.tolist() == [[[1.0, 1.0], [0.0, 0.0]]]


def test_a_word_that_looks_at_its_other_places_is_seen() -> None:
    labels = ("the", "cat", "The", "dog")
    twins = np.eye(4)[[2, 1, 0, 3]]
    weights = np.stack([twins, np.eye(4)])[None]
    columns = measured(weights, labels, np.zeros(4, dtype=bool))
    assert columns["repeats"].tolist() == [[1.0, 0.0]]
    t = HeadTable("encoder", ("0",), ("0", "1"), columns, weights)
    assert t.pattern[0, 0] == "repeats"


@given(st.integers(1, 7), st.integers(0, 2**32 - 1), st.booleans())
def test_a_page_opens_on_a_place_that_there_is(count: int, seed: int, causal: bool) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(count), (2, 3, count))
    if causal:
        weights = np.tril(weights)
    part = np.where(np.arange(count) % 3 == 2, -1, 0)
    own = Axis(tuple("abcdefg"[:count]), part < 0, part)
    maps = AttentionMaps(
        passage_of("x"), {"encoder": weights}, {"encoder": own}, {"encoder": own}, {"encoder": ()}
    )
    opening = maps.opening()
    assert 0 <= opening.layer < 2
    assert 0 <= opening.head < 3
    assert not own.special[opening.place]
    best = maps.heads()["reach"]
    assert best[opening.layer, opening.head] == best.max()


def test_with_effects_the_head_that_is_missed_most_is_opened() -> None:
    model = whence.load("sentiment")
    maps = whence.attend(model, "the film is not good", effects=True)
    opening = maps.opening()
    change = maps.heads()["output_change"]
    assert opening.by == "effects"
    assert change[opening.layer, opening.head] == change.max()
