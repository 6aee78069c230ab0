"""Attention flow: how much can run from one output to each input token, if attention weights are the widths of pipes.

Layers are listed from the input upwards, and may be rectangular: a pipe leads from each row of a layer to each of its columns, which
are the rows of the layer below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.errors import InputError, Unsupported

Layer = Float[np.ndarray, "_ _"]  # pipes from its rows, above, to its columns, below

TIGHT = 1e-10  # flow and cut are taken as met at this distance, relative to the cut
ROUNDS = 6  # two suffice in practice; each shrinks the distance some hundred-thousandfold
FULL = 2**30 - 1  # scipy counts in 32 bits; a pipe and its way back together must fit
NOTHING = 1e-250  # a bound below this could not be scaled up
SECONDS_PER_PIPE = (
    4e-7  # for each pipe and each input token, on one core; between 1.5 and 7 measured
)
PATIENCE = 60.0  # seconds that a caller waits unasked


@dataclass(frozen=True, eq=False)
class Flow:
    """The maximum flow into each input token, between what proves it: a flow that fits the pipes, and a cut that none can exceed."""

    values: Float[np.ndarray, " input"]
    upper: Float[np.ndarray, " input"]

    @property
    def gap(self) -> float:
        """The largest distance between flow and cut, relative to the cut; of rounding size where the values are exact."""
        return float(((self.upper - self.values) / np.maximum(self.upper, NOTHING)).max())

    def normalised(self) -> Float[np.ndarray, " input"]:
        """The values as shares that sum to one."""
        return self.values / max(self.values.sum(), NOTHING)


def with_residual(
    weights: Float[np.ndarray, "query key"], residual: bool = True
) -> Float[np.ndarray, "query key"]:
    """(A + I) with its rows brought to one; A itself, its rows brought to one, without the residual."""
    mixed = weights + np.eye(*weights.shape) if residual else weights
    return mixed / np.maximum(mixed.sum(1, keepdims=True), NOTHING)


def joined_layers(
    encoder: Sequence[Float[np.ndarray, "token token"]],
    decoder: Sequence[Float[np.ndarray, "answer answer"]],
    cross: Sequence[Float[np.ndarray, "answer token"]],
    residual: bool = True,
) -> list[Layer]:
    """An encoder-decoder as one tower of layers, over the decoder's tokens followed by the encoder's.

    Each decoder layer is two: (S + I)/2 among its own tokens, above it (I, C)/2, where half stays and half crosses over. Crossing is
    a fork of two streams rather than a residual, so it stays without the residual too. What has crossed waits at the encoder's top in
    a pipe of width one, which never binds, as no more than one leaves the source. The decoder's own input is no input token, so
    the lowest self-attention leads nowhere, and is left out.
    """
    if not len(decoder) == len(cross) > 0:
        raise Unsupported(
            f"the decoder has {len(decoder)} layers of self-attention and {len(cross)} of cross attention, so no tower can be built."
        )
    answers, tokens = cross[0].shape
    waiting = np.eye(tokens)
    tower = [with_residual(a, residual) for a in encoder]
    for n, (below, across) in enumerate(zip(decoder, cross, strict=True)):
        if n:
            own = np.zeros((answers + tokens, answers + tokens))
            own[:answers, :answers], own[answers:, answers:] = (
                with_residual(below, residual),
                waiting,
            )
            tower.append(own)
        whole = across.sum(1, keepdims=True) + 1
        fork = np.vstack(
            [
                np.hstack([np.eye(answers), across]) / whole,
                np.hstack([np.zeros((tokens, answers)), waiting]),
            ]
        )
        tower.append(fork if n else fork[:, answers:])
    return tower


def expected_seconds(layers: Sequence[Layer]) -> float:
    """A guess of what ``attention_flow`` will take: pipes between the first and the last layer, times input tokens."""
    return (
        SECONDS_PER_PIPE * sum(int(np.count_nonzero(a)) for a in layers[1:-1]) * layers[0].shape[1]
    )


def attention_flow(
    layers: Sequence[Layer],
    position: int | None,
    tick: Callable[[], None] = lambda: None,
    patience: float = PATIENCE,
) -> Flow:
    """The maximum flow from one output position to each input token, each on its own. None spreads the source evenly over all positions.

    >>> low, high = np.array([[0.9, 0.1], [0.15, 0.85]]), np.array([[0.8, 0.2], [0.05, 0.95]])
    >>> attention_flow([low, high], 0).values
    array([0.95, 0.3 ])
    """
    if any(not (a >= 0).all() or np.isinf(a).any() for a in layers):
        raise InputError("attention flow needs weights that are finite and not negative.")
    if (seconds := expected_seconds(layers)) > patience:
        raise Unsupported(
            f"attention flow over {layers[0].shape[1]} tokens and {len(layers)} layers would take about {seconds:.0f} seconds, "
            f"over the patience of {patience:.0f}, as each token is a maximum flow of its own. Shorten the text, raise the "
            "patience, or use rollout, its relative that takes milliseconds."
        )
    if position is None:
        supply, between = np.full(len(layers[-1]), 1 / len(layers[-1])), layers[1:]
    elif len(layers) == 1:
        return Flow(layers[0][position].copy(), layers[0][position].copy())
    else:
        supply, between = layers[-1][position], layers[1:-1]
    if not between:  # no pipes cross: each node passes on what fits both of its ends
        values = np.minimum(supply[:, None], layers[0]).sum(0)
        return Flow(values, values.copy())
    pipes = _Pipes(supply, between)
    found = []
    for column in layers[0].T:
        found.append(pipes.flow_into(column))
        tick()
    values, upper = np.array(found).T
    return Flow(values, upper)


class _Pipes:
    """The network from a source to one sink; the pipes into the sink are set anew for each input token.

    scipy's maximum flow (Dinic's algorithm) is fast and counts in 32-bit integers. So the room that is left in each pipe, forwards and
    back, is scaled to whole numbers and rounded down; the flow that scipy finds there fits the pipes, and the cut beside it bounds what
    is still missing. The next round magnifies that remainder until flow and cut meet.

    Every pipe has two slots of one sparse matrix, its own and its way back (of width zero). The flow back is less than nothing, so that
    "width - flow" is the room left in both.
    """

    def __init__(self, supply: Float[np.ndarray, " top"], between: Sequence[Layer]) -> None:
        from scipy.sparse import csr_array

        sizes = [between[0].shape[1], *(len(a) for a in between)]
        first = np.concatenate([[0], np.cumsum(sizes)])
        self.nodes = int(first[-1]) + 2
        self.source, self.sink = self.nodes - 2, self.nodes - 1
        ends = [np.nonzero(a) for a in between]
        bottom, top = np.arange(sizes[0]), first[-2] + np.arange(sizes[-1])
        tails = [first[n + 1] + above for n, (above, _) in enumerate(ends)]
        heads = [first[n] + below for n, (_, below) in enumerate(ends)]
        self.tails: Int[np.ndarray, " pipe"] = np.concatenate(
            [bottom, np.full(len(top), self.source), *tails]
        )
        self.heads: Int[np.ndarray, " pipe"] = np.concatenate(
            [np.full(len(bottom), self.sink), top, *heads]
        )
        self.widths = np.concatenate(
            [np.zeros(len(bottom)), supply, *(a[e] for a, e in zip(between, ends, strict=True))]
        )
        self.supply = supply.sum()

        count = len(self.widths)
        both = np.concatenate([self.tails, self.heads]), np.concatenate([self.heads, self.tails])
        slots = csr_array(
            (np.arange(2 * count, dtype=np.int32), both), shape=(self.nodes, self.nodes)
        )
        slots.sort_indices()
        self.columns, self.starts = slots.indices.astype(np.int32), slots.indptr.astype(np.int32)
        in_slot = np.asarray(slots.data, np.int32)
        self.slot_widths = np.concatenate([self.widths, np.zeros(count)])[in_slot]
        slot_of = np.empty(2 * count, np.int32)
        slot_of[in_slot] = np.arange(2 * count, dtype=np.int32)
        self.last = slot_of[: len(bottom)]  # the slots of the pipes into the sink

    def flow_into(self, demand: Float[np.ndarray, " bottom"]) -> tuple[float, float]:
        """The value of the largest flow that was found, and of the smallest cut."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        self.widths[: len(demand)] = self.slot_widths[self.last] = demand
        flow = np.zeros_like(self.slot_widths)
        value, upper = 0.0, float(min(self.supply, demand.sum()))
        for _ in range(ROUNDS):
            if upper - value <= TIGHT * upper or upper < NOTHING:
                break
            scale = FULL / (
                upper - value
            )  # no more than this is missing, so no pipe needs more room, and no sum overflows
            room = np.minimum((self.slot_widths - flow) * scale, FULL).astype(np.int32)
            found = maximum_flow(
                csr_array((room, self.columns, self.starts), shape=(self.nodes, self.nodes)),
                self.source,
                self.sink,
            )
            step = found.flow.data  # in our slots, as each has its way back already
            flow += step / scale
            value = float(flow[self.last].sum())
            near = self._reached(room - step)
            upper = min(upper, float(self.widths[near[self.tails] & ~near[self.heads]].sum()))
        return min(value, upper), upper

    def _reached(self, room: Int[np.ndarray, " slot"]) -> Bool[np.ndarray, " node"]:
        """The nodes that the source still reaches: one side of the smallest cut."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        free = room > 0
        starts = np.concatenate([[0], np.cumsum(free, dtype=np.int32)])[self.starts]
        graph = csr_array((room[free], self.columns[free], starts), shape=(self.nodes, self.nodes))
        near = np.zeros(self.nodes, bool)
        near[breadth_first_order(graph, self.source, return_predecessors=False)] = True
        return near
