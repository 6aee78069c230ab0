"""Agreement against scipy, enumeration and closed forms."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.views.conftest import made
from whence.core.agreement import agreement, rank_correlation, top_overlap, top_units
from whence.core.attribution import Attribution
from whence.core.errors import SettingsError

WORDS = "a b c d e f g h i j k l"


def of(**scores: list[float]) -> dict[str, Attribution]:
    """Methods by name; those that end in an underscore have no signs."""
    text = " ".join(WORDS.split()[: len(next(iter(scores.values())))])
    return {n: made(text, n, signed=not n.endswith("_"), scores=s) for n, s in scores.items()}


small = st.lists(st.integers(-3, 3), min_size=6, max_size=6).map(lambda s: [float(x) for x in s])


@given(small, small)
def test_spearman_is_scipys_with_ties(one, other):
    correlation = rank_correlation(np.array([one, other]))[0, 1]
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert np.isnan(correlation)
    else:
        assert correlation == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)


@given(small, small)
def test_kendall_is_tau_b_by_counting_pairs(one, other):
    correlation = agreement(of(one=one, other=other), measure="kendall").correlation[0, 1]
    pairs = list(itertools.combinations(range(6), 2))
    a = np.array([np.sign(one[i] - one[j]) for i, j in pairs])
    b = np.array([np.sign(other[i] - other[j]) for i, j in pairs])
    size = np.sqrt((a != 0).sum() * (b != 0).sum())
    if size == 0:
        assert np.isnan(correlation)
    else:
        assert correlation == pytest.approx((a @ b) / size, abs=1e-12)


@given(small, small, st.integers(1, 6))
def test_overlap_is_the_mean_over_every_way_to_break_ties(one, other, k):
    sizes = np.abs(np.array([one, other]))
    overlap = top_overlap(sizes, k)[0, 1]

    def tops(row: np.ndarray) -> list[set[int]]:
        """Every set of k units in which nothing outside is larger than anything inside."""
        sets = [set(c) for c in itertools.combinations(range(6), k)]
        return [
            s
            for s in sets
            if min(row[list(s)]) >= max((row[i] for i in range(6) if i not in s), default=-1.0)
        ]

    if np.ptp(sizes, axis=1).min() == 0:
        assert np.isnan(overlap)
    else:
        expected = np.mean([len(a & b) / k for a in tops(sizes[0]) for b in tops(sizes[1])])
        assert overlap == pytest.approx(expected, abs=1e-12)


def test_chance_is_what_random_rankings_share():
    fixed = np.arange(5.0)
    every = [
        top_overlap(np.stack([fixed, np.array(p, dtype=float)]), 2)[0, 1]
        for p in itertools.permutations(range(5))
    ]
    assert np.mean(every) == pytest.approx(
        agreement(of(a=[1, 2, 3, 4, 5], b=[5, 4, 3, 2, 1]), k=2).chance
    )


def test_signs_count_between_methods_that_have_them_and_sizes_where_one_has_none():
    g = agreement(of(a=[1, -2, 3, -4], b=[-1, 2, -3, 4], c_=[1, 2, 3, 4]))
    assert g.correlation[0, 1] == pytest.approx(-1.0)  # by their sizes it would be 1
    assert g.correlation[0, 2] == pytest.approx(1.0)  # by the signed scores it would be far below
    assert g.overlap[0, 1] == 1.0


def test_a_method_that_ranks_nothing_has_no_agreement_and_no_voice():
    g = agreement(
        of(
            a=[1, 2, 3, 4, 5, 6],
            flat=[0.7] * 6,
            noise=[1 + 1e-12, 1, 1, 1, 1, 1],
            b=[1, 2, 3, 4, 6, 5],
        )
    )
    assert np.isnan(g.correlation[1]).all()
    assert np.isnan(g.correlation[2]).all()  # rounding is no ranking
    assert np.isnan(g.overlap[:, 1]).all()
    assert np.isnan(g.mean_correlation()["flat"])
    assert g.mean_correlation()["a"] == pytest.approx(g.correlation[0, 3])  # NaN does not spread
    assert not any("flat" in c.one + c.other or "noise" in c.one + c.other for c in g.conflicts)
    assert [(x, y) for x, y, _ in g.pairs] == [("a", "b")]


def test_symmetric_with_ones_on_the_diagonal():
    rng = np.random.default_rng(0)
    g = agreement(of(**{n: rng.normal(size=9).tolist() for n in "abcd"}), k=3)
    for matrix in (g.correlation, g.overlap):
        assert np.array_equal(matrix, matrix.T)
        assert np.array_equal(np.diag(matrix), np.ones(4))
    assert g.mean_correlation()["a"] == pytest.approx(g.correlation[0, 1:].mean())
    values = [r for _, _, r in g.pairs]
    assert values == sorted(values, reverse=True)
    assert len(values) == len(g.table()) == 6


def test_a_conflict_of_sign_is_one_of_size_too():
    # 2.7 against −0.2 is a dispute, though −0.2 is not among the strongest of its method;
    # would catch: camps by rank, in which the first unit of b has no say
    g = agreement(of(a=[2.7, -1, 0.1, 0.2, 0.1, 0.2], b=[-0.2, -1.1, 0.9, 0.8, -0.7, 0.6]), k=2)
    sign = next(c for c in g.conflicts if c.kind == "sign" and c.name == "a")
    assert (sign.one, sign.other) == (("a",), ("b",))
    assert sign.one_shares == (1.0,)
    assert sign.other_shares == pytest.approx((-0.2 / 1.1,))
    assert sign.gap == pytest.approx(1 + 0.2 / 1.1)


def test_a_small_score_is_not_strong_by_its_rank():
    # seven per cent of the largest score, and yet the second of its method; would catch: top k
    g = agreement(of(a_=[9, 0.63, 0.5, 0.4, 0.3, 0.2], b_=[9, 0.1, 0.2, 8, 7, 6]), k=2)
    assert all(c.name != "b" for c in g.conflicts)
    for conflict in g.conflicts:
        assert conflict.kind == "size"
        assert min(map(abs, conflict.one_shares)) >= 0.5
        assert max(map(abs, conflict.other_shares)) < 0.1


def test_those_furthest_apart_come_first():
    g = agreement(of(a=[5, 3, 1, 0.1], b=[-5, 0.1, 1, 3]), k=2)
    assert [c.name for c in g.conflicts] == ["a", "b", "d"]
    gaps = [c.gap for c in g.conflicts]
    assert gaps == sorted(gaps, reverse=True)


def test_scales_of_methods_do_not_matter():
    one = agreement(of(a=[5, 3, -1, 0.1], b=[-5, 0.1, 1, 3]), k=2)
    other = agreement(of(a=[5000, 3000, -1000, 100], b=[-5, 0.1, 1, 3]), k=2)
    assert [(c.unit, c.kind) for c in one.conflicts] == [(c.unit, c.kind) for c in other.conflicts]


def test_a_method_that_ranks_nothing_has_no_voice():
    g = agreement(of(a=[5, 3, 1, 0.1], flat=[0, 0, 0, 0]), k=2)
    assert g.conflicts == ()


def test_the_control_is_in_no_conflict():
    """Scores drawn by lot would be strong where all others are weak, on nearly every text."""
    without = of(one=[4.0, 0.1, 0.0], other=[-4.0, 0.2, 0.1])
    beside = of(one=[4.0, 0.1, 0.0], other=[-4.0, 0.2, 0.1], random=[0.1, 4.0, 3.0])
    assert agreement(beside).conflicts == agreement(without).conflicts != ()
    # it still has its row of numbers, beside which those of the methods are read
    assert np.isfinite(agreement(beside).correlation).all()


def test_one_dissenter_among_many_makes_a_weak_conflict():
    alike = {f"m{i}_": [9.0, 8, 0.5, 2, 3, 4] for i in range(7)}
    g = agreement(of(**alike, odd_=[0.5, 2, 9, 8, 4, 3]), k=2)
    assert {c.strength for c in g.conflicts} == {1 / 8}


def test_too_few_units_for_a_conflict():
    g = agreement(of(a=[1.0], b=[-1.0]))
    assert g.conflicts == ()
    assert g.pairs == []
    assert (g.k, g.chance) == (1, 1.0)
    assert "2 methods" in repr(g)


def test_to_dict_is_json_without_nan():
    g = agreement(of(a=[1, 2, 3, -4], flat=[0, 0, 0, 0], b=[-4, 1, 2, 3]), k=2)
    back = json.loads(json.dumps(g.to_dict(), allow_nan=False))
    assert back["correlation"][1] == [None] * 3
    assert back["correlation"][0][2] == pytest.approx(g.correlation[0, 2])
    assert back["conflicts"][0]["one"] == list(g.conflicts[0].one)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"k": 0}, "at least 1, not 0"), ({"measure": "pearson"}, "not 'pearson'")],
)
def test_settings_that_mean_nothing(settings, said):
    with pytest.raises(SettingsError, match=said):
        agreement(of(a=[1, 2]), **settings)


def test_the_strongest_are_told_by_their_order_and_not_by_their_size():
    """The enemy: scores below one, of which none is among the strongest."""
    assert top_units(np.array([0.3, 0.1, 0.1, 0.0]), 2).tolist() == [True, False, False, False]
    assert top_units(np.array([0.3, 0.2, 0.1, 0.0]), 2).tolist() == [True, True, False, False]
    assert not top_units(np.array([0.3, 0.3, 0.3]), 2).any()
    assert not top_units(np.zeros(4), 2).any()
