"""Attention flow: how much can run from one output to each input token.

Attention weights are taken as the widths of pipes. Layers are listed from the input upwards, and
may be rectangular: a pipe leads from each row of a layer to each of its columns, which are the rows
of the layer below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.aggregate import with_residual
from whence.core.errors import InputError, Unsupported

Layer = Float[np.ndarray, "_ _"]  # pipes from its rows, above, to its columns, below

TIGHT = 1e-10  # flow and cut are taken as met at this distance, relative to the cut
ROUNDS = 6  # two suffice in practice; each shrinks the distance some hundred-thousandfold
FULL = 2**30 - 1  # scipy counts in 32 bits; a pipe and its way back together must fit
NOTHING = 1e-250  # a bound below this could not be scaled up
# for each pipe and each input token, on one core; between 1.5 and 7 times 1e-7 measured
SECONDS_PER_PIPE = 4e-7
PATIENCE = 60.0  # seconds that a caller waits unasked


@dataclass(frozen=True, eq=False)
class Flow:
    """The maximum flow into each input token, and the cut that proves it.

    ``values`` is a flow that fits the pipes, ``upper`` a cut that no flow can exceed.
    """

    values: Float[np.ndarray, " input"]
    upper: Float[np.ndarray, " input"]

    @property
    def gap(self) -> float:
        """The largest distance between flow and cut, relative to the cut.

        It is of rounding size where the values are exact.
        """
        distance = self.upper - self.values
        return float((distance / np.maximum(self.upper, NOTHING)).max())

    def normalised(self) -> Float[np.ndarray, " input"]:
        """The values as shares that sum to one."""
        return self.values / max(self.values.sum(), NOTHING)


def pipe_widths(
    weights: Float[np.ndarray, "query key"], residual: bool = True
) -> Float[np.ndarray, "query key"]:
    """Attention with its residual as widths of pipes that sum to one for each row.

    Without the residual, attention itself with its rows brought to one; a row of zeros stays.
    """
    if residual:
        return with_residual(weights)
    return weights / np.maximum(weights.sum(1, keepdims=True), NOTHING)


def joined_layers(
    encoder: Sequence[Float[np.ndarray, "token token"]],
    decoder: Sequence[Float[np.ndarray, "answer answer"]],
    cross: Sequence[Float[np.ndarray, "answer token"]],
    residual: bool = True,
    to_both: bool = False,
) -> list[Layer]:
    """An encoder-decoder as one tower of layers, over the decoder's tokens, then the encoder's.

    Each decoder layer is two: (S + I)/2 among its own tokens, above it (I, C)/2, where half stays
    and half crosses over. Crossing is a fork of two streams rather than a residual, so it stays
    without the residual too. What has crossed waits at the encoder's top in a pipe of width one,
    which never binds, as no more than one leaves the source. The decoder's own input is no input
    token, so the lowest self-attention leads nowhere, and is left out; unless flows are wanted
    ``to_both`` sides: then what stays with the decoder waits while the encoder is passed.
    """
    if not len(decoder) == len(cross) > 0:
        raise Unsupported(
            f"the decoder has {len(decoder)} layers of self-attention and {len(cross)} of cross "
            "attention, so no tower can be built."
        )
    answers, tokens = cross[0].shape
    tower = [pipe_widths(weights, residual) for weights in encoder]
    if to_both:
        tower = [_beside(np.eye(answers), layer) for layer in tower]
    for n, (below, across) in enumerate(zip(decoder, cross, strict=True)):
        fork = _fork(across)
        if n == 0 and not to_both:
            tower.append(fork[:, answers:])
            continue
        own = _beside(pipe_widths(below, residual), np.eye(tokens))  # what has crossed waits
        tower += [own, fork]
    return tower


def _beside(first: Layer, second: Layer) -> Layer:
    """Two sets of pipes that do not meet."""
    rows, columns = len(first) + len(second), first.shape[1] + second.shape[1]
    both = np.zeros((rows, columns))
    both[: len(first), : first.shape[1]] = first
    both[len(first) :, first.shape[1] :] = second
    return both


def _fork(across: Float[np.ndarray, "answer token"]) -> Layer:
    """Of each decoder token half stays and half crosses; what has crossed already waits."""
    answers, tokens = across.shape
    whole = across.sum(1, keepdims=True) + 1
    stays_or_crosses = np.hstack([np.eye(answers), across]) / whole
    waits = np.hstack([np.zeros((tokens, answers)), np.eye(tokens)])
    return np.vstack([stays_or_crosses, waits])


def expected_seconds(layers: Sequence[Layer]) -> float:
    """A guess of what ``attention_flow`` will take, from the pipes and the input tokens.

    The first and the last layer do not count: they are the ends of the network.
    """
    pipes = sum(int(np.count_nonzero(layer)) for layer in layers[1:-1])
    return SECONDS_PER_PIPE * pipes * layers[0].shape[1]


def attention_flow(
    layers: Sequence[Layer],
    position: int | None,
    tick: Callable[[], None] = lambda: None,
    patience: float = PATIENCE,
) -> Flow:
    """The maximum flow from one output position to each input token, each on its own.

    A ``position`` of None spreads the source evenly over all positions.

    >>> low, high = np.array([[0.9, 0.1], [0.15, 0.85]]), np.array([[0.8, 0.2], [0.05, 0.95]])
    >>> attention_flow([low, high], 0).values
    array([0.95, 0.3 ])
    """
    _check(layers, patience)
    if position is None:
        places = len(layers[-1])
        supply = np.full(places, 1 / places)
        between = layers[1:]
    elif len(layers) == 1:
        only = layers[0][position]
        return Flow(only.copy(), only.copy())
    else:
        supply = layers[-1][position]
        between = layers[1:-1]

    if not between:  # no pipes cross: each node passes on what fits both of its ends
        values = np.minimum(supply[:, None], layers[0]).sum(0)
        return Flow(values, values.copy())

    pipes = _Pipes(supply, between)
    bounds = []
    for column in layers[0].T:
        bounds.append(pipes.flow_into(column))
        tick()
    values, upper = np.array(bounds).T
    return Flow(values, upper)


def _check(layers: Sequence[Layer], patience: float) -> None:
    for layer in layers:
        if not (layer >= 0).all() or np.isinf(layer).any():
            raise InputError("attention flow needs weights that are finite and not negative.")
    seconds = expected_seconds(layers)
    if seconds > patience:
        raise Unsupported(
            f"attention flow over {layers[0].shape[1]} tokens and {len(layers)} layers would take "
            f"about {seconds:.0f} seconds, over the patience of {patience:.0f}, as each token is a "
            "maximum flow of its own. Shorten the text, raise the patience, or use rollout, "
            "its relative that takes milliseconds."
        )


class _Pipes:
    """The network from a source to one sink.

    The pipes into the sink are set anew for each input token.

    scipy's maximum flow (Dinic's algorithm) is fast and counts in 32-bit integers. So the room that
    is left in each pipe, forwards and back, is scaled to whole numbers and rounded down; the flow
    that scipy finds there fits the pipes, and the cut beside it bounds what is still missing. The
    next round magnifies that remainder until flow and cut meet.

    Every pipe has two slots of one sparse matrix, its own and its way back (of width zero). The
    flow back is less than nothing, so that "width - flow" is the room left in both.
    """

    def __init__(self, supply: Float[np.ndarray, " top"], between: Sequence[Layer]) -> None:
        self._lay_pipes(supply, between)
        self._lay_slots(between[0].shape[1])

    def _lay_pipes(self, supply: Float[np.ndarray, " top"], between: Sequence[Layer]) -> None:
        """Nodes are numbered from the bottom upwards, then come the source and the sink."""
        sizes = [between[0].shape[1], *(len(layer) for layer in between)]
        first = np.concatenate([[0], np.cumsum(sizes)])
        self.nodes = int(first[-1]) + 2
        self.source, self.sink = self.nodes - 2, self.nodes - 1

        bottom = np.arange(sizes[0])
        top = first[-2] + np.arange(sizes[-1])
        tails = [bottom, np.full(len(top), self.source)]
        heads = [np.full(len(bottom), self.sink), top]
        widths = [np.zeros(len(bottom)), supply]
        for n, layer in enumerate(between):
            above, below = np.nonzero(layer)
            tails.append(first[n + 1] + above)
            heads.append(first[n] + below)
            widths.append(layer[above, below])

        self.tails: Int[np.ndarray, " pipe"] = np.concatenate(tails)
        self.heads: Int[np.ndarray, " pipe"] = np.concatenate(heads)
        self.widths: Float[np.ndarray, " pipe"] = np.concatenate(widths)
        self.supply = supply.sum()

    def _lay_slots(self, bottom: int) -> None:
        """A slot for each pipe and one for its way back, in the order of scipy's sparse matrix."""
        from scipy.sparse import csr_array

        count = len(self.widths)
        numbers = np.arange(2 * count, dtype=np.int32)
        rows = np.concatenate([self.tails, self.heads])
        columns = np.concatenate([self.heads, self.tails])
        slots = csr_array((numbers, (rows, columns)), shape=(self.nodes, self.nodes))
        slots.sort_indices()
        self.columns = slots.indices.astype(np.int32)
        self.starts = slots.indptr.astype(np.int32)

        in_slot = np.asarray(slots.data, np.int32)
        self.slot_widths = np.concatenate([self.widths, np.zeros(count)])[in_slot]
        slot_of = np.empty(2 * count, np.int32)
        slot_of[in_slot] = numbers
        self.last = slot_of[:bottom]  # the slots of the pipes into the sink

    def flow_into(self, demand: Float[np.ndarray, " bottom"]) -> tuple[float, float]:
        """The value of the largest flow that was found, and of the smallest cut."""
        from scipy.sparse.csgraph import maximum_flow

        self.widths[: len(demand)] = self.slot_widths[self.last] = demand
        flow = np.zeros_like(self.slot_widths)
        value, upper = 0.0, float(min(self.supply, demand.sum()))
        for _ in range(ROUNDS):
            if upper - value <= TIGHT * upper or upper < NOTHING:
                break
            # no more than this is missing, so no pipe needs more room, and no sum overflows
            scale = FULL / (upper - value)
            room = np.minimum((self.slot_widths - flow) * scale, FULL).astype(np.int32)
            network = self._matrix(room, self.columns, self.starts)
            step = maximum_flow(network, self.source, self.sink).flow.data
            # the result has our slots, as each pipe has its way back already
            flow += step / scale
            value = float(flow[self.last].sum())
            upper = min(upper, self._cut(room - step))
        return min(value, upper), upper

    def _cut(self, room: Int[np.ndarray, " slot"]) -> float:
        """The width of all pipes that lead out of what the source still reaches."""
        near = self._reached(room)
        crossing = near[self.tails] & ~near[self.heads]
        return float(self.widths[crossing].sum())

    def _reached(self, room: Int[np.ndarray, " slot"]) -> Bool[np.ndarray, " node"]:
        """The nodes that the source still reaches: one side of the smallest cut."""
        from scipy.sparse.csgraph import breadth_first_order

        free = room > 0
        starts = np.concatenate([[0], np.cumsum(free, dtype=np.int32)])[self.starts]
        graph = self._matrix(room[free], self.columns[free], starts)
        near = np.zeros(self.nodes, bool)
        near[breadth_first_order(graph, self.source, return_predecessors=False)] = True
        return near

    def _matrix(self, room: Any, columns: Any, starts: Any) -> Any:
        from scipy.sparse import csr_array

        return csr_array((room, columns, starts), shape=(self.nodes, self.nodes))
