"""Passages: merging scores, cutting to length, and a JSON round trip that is exact."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.core.errors import InputError, SettingsError
from whence.core.passage import Passage, first_tokens, truncate, windows


def passage(
    words: list[int], *, before: int = 1, after: int = 1, pair: list[int] | None = None, **more: Any
) -> Passage:
    """Words of so many tokens each, one character a token, between special tokens."""

    def tokens_of(counts: list[int]) -> tuple[str, list[tuple[int, int]]]:
        text, spans = "", []
        for count in counts:
            text += " " if text else ""
            spans += [(len(text) + k, len(text) + k + 1) for k in range(count)]
            text += "abcdefghijklmnopqrstuvwxyz"[:count]
        return text, spans

    text, spans = tokens_of(words)
    parts = [-1] * before + [0] * len(spans) + [-1] * after
    all_spans = [(0, 0)] * before + spans + [(0, 0)] * after
    second = None
    if pair is not None:
        second, more_spans = tokens_of(pair)
        parts += [1] * len(more_spans) + [-1]
        all_spans += [*more_spans, (0, 0)]
    types = [int(p == 1) for p in parts]
    made = Passage.from_tokens(
        text,
        range(len(parts)),
        [f"t{i}" for i in range(len(parts))],
        all_spans,
        parts,
        pair=second,
        types=types,
    )
    return dataclasses.replace(made, **more)


def test_merging_follows_the_named_rule_and_leaves_special_tokens_out() -> None:
    p = passage([2, 1])
    scores = np.array([100.0, 3.0, -4.0, -1.0, 100.0])
    assert p.merge(scores).tolist() == [-1.0, -1.0]
    assert p.merge(scores, "mean").tolist() == [-0.5, -1.0]
    assert p.merge(scores, "max").tolist() == [
        3.0,
        -1.0,
    ]  # the enemy starts from 0 and gives max(-1, 0) = 0
    assert p.merge(scores, "norm").tolist() == [5.0, 1.0]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_the_sum_keeps_completeness_and_the_norm_is_that_of_the_whole_gradient(
    words: list[int], seed: int
) -> None:
    p = passage(words)
    gradient = np.random.default_rng(seed).normal(size=(len(p), 3))
    total = p.merge(gradient.sum(1)).sum()
    assert total == pytest.approx(gradient[~p.special].sum())
    of_units = [np.linalg.norm(gradient[p.unit_of == u]) for u in range(len(p.units))]
    assert p.merge(np.linalg.norm(gradient, axis=1), "norm") == pytest.approx(of_units)


def test_an_unknown_merging_rule_is_refused() -> None:
    # the enemy summed under any name that it did not know
    with pytest.raises(SettingsError, match="sum, mean, max, norm, not 'average'"):
        passage([1]).merge(np.zeros(3), "average")


LIMITS = st.integers(7, 30)
WORDS = st.lists(st.integers(1, 5), min_size=1, max_size=20)


@settings(max_examples=70, deadline=None, derandomize=True)
@given(WORDS, LIMITS, st.integers(0, 1), st.integers(0, 1))
def test_windows_are_the_whole_in_pieces_each_within_the_limit_and_with_the_special_tokens(
    words: list[int], limit: int, before: int, after: int
) -> None:
    p = passage(words, before=before, after=after)
    ws = windows(p, limit)
    assert sum((w.units for w in ws), ()) == p.units
    assert [len(w) <= limit for w in ws] == [True] * len(ws)
    for w in ws:
        special = np.flatnonzero(p.special)
        assert w.ids[w.special].tolist() == p.ids[special].tolist()
        assert w.special[:before].all()
        assert w.special[len(w) - after :].all()
        assert w.types is not None
        assert len(w.types) == len(w.tokens) == len(w.parts) == len(w.spans) == len(w)
        assert sorted(set(w.unit_of[~w.special].tolist())) == list(range(len(w.units)))
    content = np.concatenate([w.ids[~w.special] for w in ws])
    assert (
        content.tolist() == p.ids[~p.special].tolist()
    )  # the enemy drops or repeats the token at a cut
    room = limit - before - after
    for w, following in pairwise(
        ws
    ):  # and no window ends early: the next unit would not have fitted
        assert (~w.special).sum() + (following.unit_of == 0).sum() > room


@settings(max_examples=70, deadline=None, derandomize=True)
@given(WORDS, LIMITS, st.none() | WORDS)
def test_truncation_keeps_a_prefix_of_the_units_and_counts_what_it_drops(
    words: list[int], limit: int, pair: list[int] | None
) -> None:
    p = passage(words, pair=pair)
    shortest = int((p.unit_of == 0).sum() + p.special.sum())
    if len(p) > limit and shortest > limit:
        with pytest.raises(InputError, match="the first unit alone"):
            truncate(p, limit)
        return
    short = truncate(p, limit)
    assert len(short) <= limit or short is p
    assert short.units == p.units[: len(short.units)]
    assert "".join(short.units) == short.text + (short.pair or "")
    assert short.dropped == len(p.text + (p.pair or "")) - len(short.text + (short.pair or ""))
    assert short.ids[short.special].tolist() == p.ids[p.special].tolist()
    if len(p) <= limit:
        assert short is p
    else:
        assert short.dropped > 0
        assert (
            len(short) + (p.unit_of == len(short.units)).sum() > limit
        )  # not one unit less than fits


def test_truncating_a_pair_takes_from_the_end_of_the_second_text_first() -> None:
    short = truncate(passage([2, 2], pair=[2, 2]), 9)
    assert short.text == "ab ab"
    assert short.pair == "ab"


@pytest.mark.parametrize("cut", [windows, truncate])
@pytest.mark.parametrize("limit", [0, 1, 2, 4])
def test_a_unit_that_cannot_fit_is_an_error_and_no_endless_loop(cut: Any, limit: int) -> None:
    # the enemy went backwards for ever when the special tokens alone filled the limit
    with pytest.raises(InputError, match="use smaller units"):
        cut(passage([5, 1, 1]), limit)


@pytest.mark.parametrize(
    "whole",
    [
        passage([3, 3], pair=[3]),
        dataclasses.replace(passage([3, 3]), reply=passage([1])),
        passage([3, 3], readout=2),
    ],
)
def test_windows_of_what_has_one_place_or_two_sides_are_refused(whole: Passage) -> None:
    with pytest.raises(InputError, match="windows"):
        windows(whole, 7)


def test_truncation_keeps_the_place_that_is_read_or_refuses() -> None:
    assert truncate(passage([1, 1, 3, 3], readout=2), 7).readout == 2
    with pytest.raises(InputError, match="the masked unit lies in the part"):
        truncate(passage([1, 1, 3, 3], readout=7), 7)


def rich() -> Passage:
    return dataclasses.replace(
        passage([2, 1], pair=[3]), reply=passage([1, 1]), readout=2, dropped=7
    )


@pytest.mark.parametrize(
    "original",
    [
        passage([1]),
        rich(),
        dataclasses.replace(passage([1]), text="\x00\u2028👍🏽", unit_spans=((0, 0, 4),)),
        dataclasses.replace(
            passage([1]),
            pixels=np.array([[[np.pi, 1e-45], [3e38, -0.0]]], dtype=np.float32),
            unit_spans=((0, 0, 0),),
        ),
    ],
)
def test_a_passage_survives_json_text_bit_by_bit(original: Passage) -> None:
    back = Passage.from_dict(json.loads(json.dumps(original.to_dict(), allow_nan=False)))
    assert back == original
    assert hash(back) == hash(original)
    for field in dataclasses.fields(Passage):
        a, b = getattr(original, field.name), getattr(back, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        else:
            assert a == b


@pytest.mark.parametrize(
    "change", [{"text": "b"}, {"dropped": 1}, {"readout": 1}, {"pair": "x"}, {"kind": "token"}]
)
def test_passages_that_differ_in_one_thing_are_not_equal(change: dict[str, Any]) -> None:
    assert dataclasses.replace(passage([1]), **change) != passage([1])


@pytest.mark.parametrize("name", ["ids", "spans", "parts", "unit_of", "types"])
def test_a_passage_cannot_be_changed(name: str) -> None:
    p = passage([2, 1])
    with pytest.raises(ValueError, match="read-only"):
        getattr(p, name)[0] = 9
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(p, name, None)


def test_making_a_passage_leaves_the_callers_array_writeable() -> None:
    ids = np.arange(3)
    dataclasses.replace(passage([1]), ids=ids)
    ids[0] = 5
    assert ids[0] == 5


def test_names_are_trimmed_and_white_space_has_its_signs() -> None:
    """Would catch how a vocabulary writes a blank, which nobody can read."""
    p = Passage.from_tokens("a ", [0, 1], ["a", "Ġ"], [(0, 1), (1, 2)], [0, 0], units="token")
    assert p.names == ("a", "␣")
    p = Passage.from_tokens("\na", [0, 1], ["Ċ", "a"], [(0, 1), (1, 2)], [0, 0], units="token")
    assert p.names == ("⏎", "a")
    p = Passage.from_tokens("a", [0, 1], ["▁", "a"], [(0, 0), (0, 1)], [0, 0], units="token")
    assert p.names == ("␣", "a")


def test_a_unit_whose_tokens_were_cut_off_has_a_name_all_the_same() -> None:
    p = Passage.from_tokens("so\n", [1, 2], ["so", "<n>"], [(0, 2), (2, 3)], [0, 0], units="token")
    assert first_tokens(p, 1).names == ("so", "⏎")
