"""Attention flow: ours beside one maximum flow of networkx for each pair of places.

Also its seconds at twelve layers of 128 tokens.
"""

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
    logits = rng.standard_normal((depth, tokens, tokens))
    if causal:
        logits += np.triu(np.full((tokens, tokens), -np.inf), 1)
    weights = np.exp(logits)
    maps = weights / weights.sum(-1, keepdims=True)
    return [pipe_widths(weights_of_layer) for weights_of_layer in maps]


def trained_like(depth: int, tokens: int, seed: int = 0) -> list[np.ndarray]:
    """Heads that look at the previous token, at separators, at itself, and sharply at content.

    Their mixture has narrow places in the middle layers: the hardest case that we have met.
    """
    rng = np.random.default_rng(seed)
    previous = np.eye(tokens, k=-1)
    previous[0, 0] = 1
    separators = np.zeros((tokens, tokens))
    separators[:, 0] = 0.6
    separators[:, -1] = 0.4
    itself = np.eye(tokens)

    layers = []
    for _ in range(depth):
        logits = 4 * rng.standard_normal((tokens, tokens))
        content = np.exp(logits)
        content = content / content.sum(1, keepdims=True)
        heads = np.stack([previous, separators, itself, content])
        shares = rng.dirichlet([1, 1, 1, 0.3])
        layers.append(pipe_widths(np.einsum("h,hqk->qk", shares, heads)))
    return layers


def pairwise(layers: Sequence[np.ndarray], position: int) -> np.ndarray:
    """As the paper's code does it: Edmonds and Karp for each pair of output and input."""
    graph = nx.DiGraph()
    for depth, layer in enumerate(layers):
        graph.add_edges_from(
            ((depth + 1, query), (depth, key), {"capacity": float(width)})
            for (query, key), width in np.ndenumerate(layer)
        )

    source = (len(layers), position)
    method = nx.algorithms.flow.edmonds_karp
    flows = []
    for key in range(layers[0].shape[1]):
        flows.append(nx.maximum_flow_value(graph, source, (0, key), flow_func=method))
    return np.array(flows)


def against_networkx(depth: int = 6, tokens: int = 16, rounds: int = 5) -> Ratio:
    layers = trained_like(depth, tokens)
    np.testing.assert_allclose(attention_flow(layers, 0).values, pairwise(layers, 0), rtol=1e-9)
    return interleaved(
        f"attention flow, {depth} layers, {tokens} tokens",
        lambda: attention_flow(layers, 0),
        "networkx, pair by pair",
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
        flow: Flow = attention_flow(layers, position)
        took = time.process_time() - started
        what = f"attention flow, {DEPTH} layers, {TOKENS} tokens, {name}"
        rows.append((what, took, flow.gap))
    return rows


if __name__ == "__main__":
    r = against_networkx()
    quarters = f"[{r.low:.4f}, {r.high:.4f}]"
    print(f"{r.what}: {r.ratio:.4f} {quarters} × {r.over}, {1e3 * r.seconds:.1f} ms")
    for what, took, gap in seconds():
        print(f"{what:<62} {took:6.2f} s   gap {gap:.0e}")
