"""Attention flow against closed forms, networkx pair by pair, and what every flow must keep to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import reduce

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.core.errors import InputError, Unsupported
from whence.trace import flow as module
from whence.trace.flow import Flow, attention_flow, joined_layers, pipe_widths

LOW, HIGH = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.6, 0.4], [0.1, 0.9]])
KINDS = ("soft", "peaked", "causal", "ties", "holes", "nearly one")


def attention(kind: str, tokens: int, rng: np.random.Generator) -> np.ndarray:
    """One map, its rows summing to one, of the sorts that trained and contrived models show."""
    if kind == "ties":  # multiples of 1/4: paths and cuts of equal size
        return np.eye(tokens)[rng.integers(0, tokens, (4, tokens))].mean(0)
    logits = rng.standard_normal((tokens, tokens)) * {"soft": 1, "peaked": 6, "nearly one": 40}.get(
        kind, 3
    )
    if kind == "causal":
        logits[np.triu_indices(tokens, 1)] = -np.inf
    if kind == "holes":
        logits[rng.random((tokens, tokens)) < 0.6] = -np.inf
        np.fill_diagonal(logits, 0)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def stack(kind: str, depth: int, tokens: int, seed: int, residual: bool = True) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [pipe_widths(attention(kind, tokens, rng), residual) for _ in range(depth)]


def trained_like(depth: int, tokens: int, seed: int) -> list[np.ndarray]:
    """Heads that look at the previous token, at separators, at themselves, and at content.

    They make tight cuts in the middle.
    """
    rng = np.random.default_rng(seed)
    previous, separators = np.eye(tokens, k=-1), np.zeros((tokens, tokens))
    previous[0, 0], separators[:, 0], separators[:, -1] = 1, 0.6, 0.4
    heads = [
        [previous, separators, np.eye(tokens), attention("peaked", tokens, rng)]
        for _ in range(depth)
    ]
    return [
        pipe_widths(np.einsum("h,hqk->qk", rng.dirichlet([1, 1, 1, 0.3]), np.stack(h)))
        for h in heads
    ]


def test_no_more_reaches_a_token_than_leaves_the_source() -> None:
    """Uniform attention: every token can receive all that there is, so m tokens together m.

    Where all look at one token its column sums to the number of rows; what reaches it is still 1.
    """
    uniform = np.full((4, 4), 1 / 4)
    for depth in (2, 3):
        for at in (0, None):
            values = attention_flow([uniform] * depth, at).values
            np.testing.assert_allclose(values, np.ones(4), rtol=1e-9)
    to_the_first = np.eye(4)[[0, 0, 0, 0]]
    for layers in ([to_the_first, uniform], [to_the_first, uniform, uniform]):
        np.testing.assert_allclose(attention_flow(layers, 0).values, [1, 0, 0, 0], atol=1e-9)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_flow_fits_the_source_and_the_tokens_column(kind: str, residual: bool) -> None:
    for depth in (1, 2, 4):
        layers = stack(kind, depth, 6, seed=depth, residual=residual)
        for at in (2, None):
            most = np.minimum(1.0, layers[0].sum(0))
            assert (attention_flow(layers, at).values <= most + 1e-9).all()


def slowly(layers: Sequence[np.ndarray], position: int | None) -> np.ndarray:
    """One maximum flow for each pair, as the paper does it."""
    graph = nx.DiGraph()
    top = len(layers)
    for n, layer in enumerate(layers):
        graph.add_nodes_from((n, k) for k in range(layer.shape[1]))
        graph.add_edges_from(
            ((n + 1, q), (n, k), {"capacity": float(c)}) for (q, k), c in np.ndenumerate(layer) if c
        )
    if position is None:
        graph.add_edges_from(
            ("all", (top, q), {"capacity": 1 / len(layers[-1])}) for q in range(len(layers[-1]))
        )
    source = "all" if position is None else (top, position)
    graph.add_node(source)
    inputs = range(layers[0].shape[1])
    return np.array(
        [
            nx.maximum_flow_value(graph, source, (0, k), flow_func=nx.algorithms.flow.edmonds_karp)
            for k in inputs
        ]
    )


def test_the_worked_example() -> None:
    layers = [pipe_widths(LOW), pipe_widths(HIGH)]
    flows = [attention_flow(layers, i) for i in (0, 1)]
    # the enemies: layers from the top down ([[.85, .3], …]), no residual ([[.9, .6], …]), the
    # product that rollout takes ([[.75, .25], …])
    np.testing.assert_allclose(
        [flow.values for flow in flows], [[0.95, 0.3], [0.2, 0.9]], rtol=1e-12
    )
    np.testing.assert_allclose(
        [flow.normalised() for flow in flows], [[0.76, 0.24], [2 / 11, 9 / 11]], rtol=1e-12
    )
    assert all(flow.gap == 0 for flow in flows)


@pytest.mark.parametrize("kind", KINDS)
def test_one_and_two_layers_have_closed_forms(kind: str) -> None:
    low, high = stack(kind, 2, 9, 0)
    for i in range(9):
        assert np.array_equal(attention_flow([low], i).values, low[i])
        slow = [sum(min(high[i, k], low[k, j]) for k in range(9)) for j in range(9)]
        np.testing.assert_allclose(attention_flow([low, high], i).values, slow, rtol=1e-12)
        # an idle layer of wide pipes changes nothing, but takes the way of deep networks
        through = attention_flow([low, np.eye(9), high], i)
        np.testing.assert_allclose(through.values, slow, rtol=1e-9)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_equals_networkx(kind: str, residual: bool) -> None:
    for depth, tokens, seed in ((3, 7, 1), (4, 5, 2), (5, 6, 3)):
        layers = stack(kind, depth, tokens, seed, residual)
        for position in (0, tokens - 1, None):
            flow = attention_flow(layers, position)
            # the enemies: widths rounded to integers once (off by 1e-8 to 1e-6)
            np.testing.assert_allclose(flow.values, slowly(layers, position), rtol=1e-9, atol=1e-12)
            assert flow.gap < 1e-9


def test_trained_like_attention_equals_networkx() -> None:
    layers = trained_like(6, 16, 4)
    np.testing.assert_allclose(attention_flow(layers, 0).values, slowly(layers, 0), rtol=1e-9)


def test_rectangular_layers_equal_networkx() -> None:
    rng = np.random.default_rng(0)
    layers = [rng.dirichlet(np.full(k, 0.2), q) for q, k in ((4, 6), (7, 4), (3, 7), (5, 3))]
    for position in (2, None):
        np.testing.assert_allclose(
            attention_flow(layers, position).values, slowly(layers, position), rtol=1e-9, atol=1e-12
        )


stacks = st.builds(
    stack,
    st.sampled_from(KINDS),
    st.integers(2, 6),
    st.integers(2, 9),
    st.integers(0, 10_000),
    st.booleans(),
)


@settings(max_examples=40, deadline=None)
@given(stacks, st.integers(0, 10_000))
def test_a_flow_lies_between_rollout_and_every_cut(layers: list[np.ndarray], seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = len(layers[0])
    i = int(rng.integers(tokens))
    flow = attention_flow(layers, i)
    assert flow.gap < 1e-9
    assert (flow.values <= flow.upper).all()
    # rollout pushes no more than one unit through any node, so it fits the pipes: a flow, though
    # seldom the largest
    assert (flow.upper >= reduce(np.matmul, reversed(layers))[i] * (1 - 1e-12)).all()
    assert (flow.values <= np.minimum(layers[-1][i].sum(), layers[0].sum(0)) * (1 + 1e-12)).all()
    for _ in range(20):
        sides = [rng.random(tokens) < rng.random() for _ in range(len(layers) + 1)]
        sides[-1] = np.arange(tokens) == i
        sides[0] = np.ones(tokens, bool)
        crossing = sum(
            layer[above][:, ~below].sum()
            for layer, above, below in zip(layers[1:], sides[2:], sides[1:-1], strict=True)
        )
        cuts = crossing + layers[0][sides[1]].sum(0)  # all input tokens but one beside the source
        assert (flow.values <= cuts * (1 + 1e-12)).all()


@settings(max_examples=25, deadline=None)
@given(stacks, st.integers(0, 10_000), st.floats(1e-9, 1e9))
def test_names_units_and_idle_layers_do_not_matter(
    layers: list[np.ndarray], seed: int, unit: float
) -> None:
    rng = np.random.default_rng(seed)
    tokens = len(layers[0])
    expected = attention_flow(layers, 0).values
    np.testing.assert_allclose(
        attention_flow([a * unit for a in layers], 0).values, expected * unit, rtol=1e-9
    )
    np.testing.assert_allclose(
        attention_flow([*layers[:1], np.eye(tokens), *layers[1:]], 0).values, expected, rtol=1e-9
    )
    orders = [np.arange(tokens), *(rng.permutation(tokens) for _ in layers[1:]), np.arange(tokens)]
    renamed = [
        a[np.ix_(above, below)]
        for a, above, below in zip(layers, orders[1:], orders[:-1], strict=True)
    ]
    np.testing.assert_allclose(attention_flow(renamed, 0).values, expected, rtol=1e-9)
    wider = [a + rng.random(a.shape) * 0.1 for a in layers]
    assert (attention_flow(wider, 0).values >= expected * (1 - 1e-9)).all()


def test_the_gap_tells_an_exact_answer_from_a_rounded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = trained_like(8, 48, 0)
    exact = attention_flow(layers, 3)
    monkeypatch.setattr(module, "ROUNDS", 1)
    rounded = attention_flow(layers, 3)
    assert exact.gap < 1e-10 < 1e-9 < rounded.gap < 1e-4
    assert (rounded.values <= exact.upper).all()
    assert (rounded.upper >= exact.values).all()


def test_extremes() -> None:
    tokens = 5
    idle = attention_flow([np.eye(tokens)] * 4, 2)
    # unreached tokens get nothing, and no division by it
    assert np.array_equal(idle.values, np.eye(tokens)[2])
    assert idle.gap == 0
    nothing = attention_flow([np.zeros((tokens, tokens))] * 4, 2)
    assert not nothing.values.any()
    assert not nothing.normalised().any()
    faint = attention_flow([np.full((tokens, tokens), 1e-300)] * 4, 0)
    assert (faint.upper <= 1e-250).all()
    small = attention_flow([*stack("soft", 3, tokens, 0), 1e-200 * np.ones((tokens, tokens))], 0)
    np.testing.assert_allclose(small.values, 5e-200, rtol=1e-9)
    for bad in (np.nan, np.inf, -0.1):
        with pytest.raises(InputError, match="finite and not negative"):
            attention_flow([np.full((2, 2), bad)], 0)


def test_rows_are_brought_to_one() -> None:
    sink = np.array([[0.2, 0.2], [0.0, 0.0]])  # an attention sink outside the text takes the rest
    np.testing.assert_allclose(pipe_widths(sink), [[1.2 / 1.4, 0.2 / 1.4], [0, 1]])
    np.testing.assert_allclose(pipe_widths(sink, residual=False), [[0.5, 0.5], [0, 0]])


@pytest.mark.parametrize("residual", [True, False])
def test_an_encoder_decoder_is_one_network(residual: bool) -> None:
    rng = np.random.default_rng(5)
    tokens, answers = 4, 3
    encoder = [attention("soft", tokens, rng) for _ in range(2)]
    decoder = [attention("causal", answers, rng) for _ in range(3)]
    cross = [rng.dirichlet(np.ones(tokens), answers) for _ in range(3)]
    # drawn as the model is built: one node for each state, so the encoder's top is there once
    graph = nx.DiGraph()
    for n, a in enumerate(encoder):
        for (q, k), c in np.ndenumerate(pipe_widths(a, residual)):
            graph.add_edge(("enc", n + 1, q), ("enc", n, k), capacity=c)
    for n, (own, across) in enumerate(zip(decoder, cross, strict=True)):
        for q in range(answers):
            for k, c in enumerate(pipe_widths(own, residual)[q]):
                graph.add_edge(("mid", n, q), ("dec", n, k), capacity=c)
            graph.add_edge(("dec", n + 1, q), ("mid", n, q), capacity=0.5)
            for k, c in enumerate(across[q]):
                graph.add_edge(("dec", n + 1, q), ("enc", 2, k), capacity=c / 2)
    tower = joined_layers(encoder, decoder, cross, residual)
    for q in range(answers):
        slow = [
            nx.maximum_flow_value(
                graph, ("dec", 3, q), ("enc", 0, k), flow_func=nx.algorithms.flow.edmonds_karp
            )
            for k in range(tokens)
        ]
        np.testing.assert_allclose(attention_flow(tower, q).values, slow, rtol=1e-9)


def test_one_decoder_layer_by_hand() -> None:
    encoder, cross = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.2, 0.8]])
    tower = joined_layers([encoder], [np.ones((1, 1))], [cross])
    # 0.1 and 0.4 cross over; below, the first token keeps all (width 1), the second sends at most
    # 1/4 to the first and 3/4 to itself
    np.testing.assert_allclose(attention_flow(tower, 0).values, [0.1 + 0.25, 0.4])
    with pytest.raises(Unsupported, match="1 layers of self-attention and 2 of cross"):
        joined_layers([encoder], [np.ones((1, 1))], [cross, cross])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "inputs"), [("soft", 128), ("trained-like", 32)])
def test_twelve_layers_of_128_tokens_take_seconds(kind: str, inputs: int) -> None:
    layers = stack("soft", 12, 128, 0) if kind == "soft" else trained_like(12, 128, 0)
    layers[0] = layers[0][:, :inputs]  # a quarter of the flows is enough to show the slower kind
    started, ticks = time.process_time(), []
    flow = attention_flow(layers, 0, lambda: ticks.append(1))
    assert flow.gap < 1e-9
    assert len(ticks) == inputs
    assert time.process_time() - started < 60  # of this process; twenty times what it takes


def test_what_would_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = stack("soft", 3, 40, 0)
    monkeypatch.setattr(module, "SECONDS_PER_PIPE", 0.1)
    with pytest.raises(
        Unsupported,
        match=r"40 tokens and 3 layers would take about 6400 seconds, "
        r"over the patience of 60.*rollout",
    ):
        attention_flow(layers, 0)
    assert isinstance(attention_flow(layers[:2], 0), Flow)
