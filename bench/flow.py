"""Attention flow: ours beside one maximum flow of networkx for each pair, and its seconds at twelve layers of 128 tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence

import networkx as nx
import numpy as np

from bench.timing import Ratio, interleaved
from whence.trace.flow import Flow, attention_flow, pipe_widths

DEPTH, TOKENS = 12, 128


def soft(depth: int, tokens: int, causal: bool = False, seed: int = 0) -> list[np.ndarray]:
    """Maps of random logits, as of a model before training."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((depth, tokens, tokens)) + (
        np.triu(np.full((tokens, tokens), -np.inf), 1) if causal else 0
    )
    weights = np.exp(logits)
    return [pipe_widths(w) for w in weights / weights.sum(-1, keepdims=True)]


def trained_like(depth: int, tokens: int, seed: int = 0) -> list[np.ndarray]:
    """Previous token, separators, itself, and content by sharp logits: narrow places in the middle, the hardest case met."""
    rng = np.random.default_rng(seed)
    previous, separators = np.eye(tokens, k=-1), np.zeros((tokens, tokens))
    previous[0, 0], separators[:, 0], separators[:, -1] = 1, 0.6, 0.4
    found = []
    for _ in range(depth):
        content = np.exp(4 * rng.standard_normal((tokens, tokens)))
        heads = np.stack(
            [previous, separators, np.eye(tokens), content / content.sum(1, keepdims=True)]
        )
        found.append(pipe_widths(np.einsum("h,hqk->qk", rng.dirichlet([1, 1, 1, 0.3]), heads)))
    return found


def pairwise(layers: Sequence[np.ndarray], position: int) -> np.ndarray:
    """As the paper's code does it: Edmonds and Karp for each pair of output and input."""
    graph = nx.DiGraph()
    for n, layer in enumerate(layers):
        graph.add_edges_from(
            ((n + 1, q), (n, k), {"capacity": float(c)}) for (q, k), c in np.ndenumerate(layer)
        )
    source, inputs = (len(layers), position), range(layers[0].shape[1])
    return np.array(
        [
            nx.maximum_flow_value(graph, source, (0, k), flow_func=nx.algorithms.flow.edmonds_karp)
            for k in inputs
        ]
    )


def against_networkx(depth: int = 6, tokens: int = 16, rounds: int = 5) -> Ratio:
    layers = trained_like(depth, tokens)
    np.testing.assert_allclose(attention_flow(layers, 0).values, pairwise(layers, 0), rtol=1e-9)
    what, over = f"attention flow, {depth} layers, {tokens} tokens", "networkx, pair by pair"
    return interleaved(
        what,
        lambda: attention_flow(layers, 0),
        over,
        lambda: pairwise(layers, 0),
        limit=0.1,
        rounds=rounds,
    )


def seconds() -> list[tuple[str, float, float]]:
    """What was flown through, seconds of this process, and the gap between flow and cut."""
    cases = {
        "soft": (soft(DEPTH, TOKENS), 0),
        "soft, causal": (soft(DEPTH, TOKENS, causal=True), TOKENS - 1),
        "trained-like": (trained_like(DEPTH, TOKENS), 0),
        "trained-like, from the mean": (trained_like(DEPTH, TOKENS), None),
    }
    rows = []
    for name, (layers, position) in cases.items():
        started = time.process_time()
        found: Flow = attention_flow(layers, position)
        rows.append(
            (
                f"attention flow, {DEPTH} layers, {TOKENS} tokens, {name}",
                time.process_time() - started,
                found.gap,
            )
        )
    return rows


if __name__ == "__main__":
    r = against_networkx()
    print(
        f"{r.what}: {r.ratio:.4f} [{r.low:.4f}, {r.high:.4f}] × {r.over}, {1e3 * r.seconds:.1f} ms"
    )
    for what, took, gap in seconds():
        print(f"{what:<62} {took:6.2f} s   gap {gap:.0e}")
