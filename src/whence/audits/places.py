"""Places of attention: which there are, which of their rows matter, and edits at each.

A test that edits attention runs one text many times in a batch, and each row of the batch has its
own place: one head, a layer, or every layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whence.audits.case import AuditTest, Case, Price
from whence.audits.moved import output_moved
from whence.core.audit import Place
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.games.game import TOKENS_AT_ONCE, check_has_head
from whence.models.model import Model
from whence.trace.attention import Layer, check_editable
from whence.trace.edits import Edit, at_heads
from whence.trace.forecast import lengths_of
from whence.trace.guard import check_attention, readout
from whence.trace.trace import Trace, trace

# the maps of some heads, "map query key", and which keys each query sees, become other maps
Change = Callable[[Tensor, Tensor], Tensor]


def check_can_edit(model: Model) -> None:
    """Refuse a model whose attention cannot be edited, or that has no output to look at.

    Also one whose attention is not what it computes with: an edit of that would prove nothing.
    """
    check_has_head(model)
    check_editable(model.hf)
    check_attention(model)


def plain_trace(model: Model, case: Case) -> Trace:
    """The text as it is, with all of its attention."""
    return trace(model, [Ask(case.passage, case.target)], needs=Needs.ATTENTION)


def places_in(plain: Trace) -> list[Place]:
    """Every head, every layer, and all layers together; also of each kind, if there are several."""
    has_kinds = len(plain.attentions) > 1
    places = []
    for kind, maps in plain.attentions.items():
        name = kind if has_kinds else ""
        for layer, weights in enumerate(maps):
            places += [Place(layer, head, name) for head in range(weights.shape[1])]
            places.append(Place(layer, None, name))
        if has_kinds:
            places.append(Place(kind=name))
    return [*places, Place()]


def price_on(tests: Sequence[AuditTest], places: Sequence[Place]) -> Price:
    """What some tests cost on a text, of a model with these places.

    >>> from whence.audits.uniform import Uniform
    >>> price_on([Uniform()], [Place(0, 0), Place(0, 1), Place(0), Place()])
    Price(forwards=5, backwards=0)
    """
    wholes = len(whole_layers(places))
    prices = [test.passes(len(places) - wholes, wholes) for test in tests]
    return Price(sum(p.forwards for p in prices), sum(p.backwards for p in prices))


def whole_layers(places: Sequence[Place]) -> list[Place]:
    """The places that are no single head."""
    return [place for place in places if place.head is None]


def lies_in(place: Place, layer: Layer) -> bool:
    """Whether the place has a part in this layer."""
    return place.kind in ("", layer.kind) and place.layer in (None, layer.index)


def layers_of(plain: Trace, place: Place) -> list[Layer]:
    """The layers in which the place has a part, in the order of the kinds."""
    layers = []
    for own in plain.layers.values():
        layers += [layer for layer in own if lies_in(place, layer)]
    return layers


def rows_that_matter(plain: Trace, i: int, layer: Layer) -> Bool[Tensor, " query"]:
    """The queries of text ``i`` in a layer on whose attention the output can depend.

    In the layer that the head reads, that is the token it reads (``Model.readout``): the others
    may look anywhere, nobody asks them, and a mean over them would call every model's attention
    exchangeable. In the layers below, and where the head reads all tokens, every token is read by
    another one. Of what is causal, tokens behind the one that is read are not, and the first has
    no choice, as it sees itself alone.
    """
    model, passage = plain.model, plain.passages[i]
    maps = plain.attentions[layer.kind]
    padded, keys = maps[layer.index].shape[-2:]
    places = torch.arange(padded, device="cpu")
    if padded == 1:
        return (places == 0) & (keys > 1)

    queries, _ = lengths_of(model, passage)[layer.kind]
    rows = places < queries
    is_causal = layer.kind == "decoder"
    if is_causal:
        rows &= places > 0
    at = _token_that_is_read(model, passage)
    if at is None or (layer.kind == "encoder" and model.is_encoder_decoder):
        return rows
    if layer.index == len(maps) - 1:
        return rows & (places == at)
    return rows & (places <= at) if is_causal or layer.kind == "cross" else rows


def mean_over_rows(
    values: Float[Tensor, "row head query"], matters: Bool[Tensor, "row query"]
) -> Float[Tensor, " row"]:
    """The mean over heads and over the queries that matter; 0 where there are none.

    >>> mean_over_rows(torch.tensor([[[1.0, 5.0]]]), torch.tensor([[True, False]]))
    tensor([1.])
    """
    chosen = matters[:, None].to(values.dtype)
    counted = (chosen.sum((1, 2)) * values.shape[1]).clamp(min=1)
    return (values * chosen).sum((1, 2)) / counted


def _token_that_is_read(model: Model, passage: Passage) -> int | None:
    """None where the head reads several."""
    finding = readout(model)
    if finding.holds is False and finding.choice is None:
        return None
    return model.readout(passage)


def changes_at(
    plain: Trace,
    places: Sequence[Place],
    change_of: Callable[[Layer, Sequence[int]], Change],
) -> Float[np.ndarray, " row"]:
    """How far the output moves when attention is changed at ``places[row]``, for each row.

    ``change_of(layer, rows)`` is the change in a layer of those rows that have a part in it. Costs
    one forward pass a row, in batches as large as those of games.
    """
    model, ask = plain.model, Ask(plain.passages[0], plain.targets[0])
    changes = np.zeros(len(places))
    lengths = [len(ask.passage)] * len(places)
    for rows in model.groups_of_lengths(lengths, TOKENS_AT_ONCE):
        edits = _edits_in(plain, places, rows, change_of)
        changed = trace(model, [ask] * len(rows), edits=edits)
        before, after = plain.logits.double(), changed.logits.double()
        moved = output_moved(model, plain.targets, before, after)
        changes[rows] = moved.cpu().numpy()
    return changes


def _edits_in(
    plain: Trace,
    places: Sequence[Place],
    rows: Sequence[int],
    change_of: Callable[[Layer, Sequence[int]], Change],
) -> list[Edit]:
    """One edit for each layer in which a row of this batch has a place."""
    edits = []
    for kind, layers in plain.layers.items():
        for layer in layers:
            heads = plain.attentions[kind][layer.index].shape[1]
            chosen = torch.zeros(len(rows), heads, dtype=torch.bool, device="cpu")
            for number, row in enumerate(rows):
                place = places[row]
                if lies_in(place, layer):
                    chosen[number, slice(None) if place.head is None else place.head] = True
            if chosen.any():
                here = [row for row in rows if lies_in(places[row], layer)]
                change = change_of(layer, here)
                edits.append(at_heads("audit", change, chosen, layer.index, kind))
    return edits
