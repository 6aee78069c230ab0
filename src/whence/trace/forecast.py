"""How much memory the attention of a text will take, from the model's configuration alone: known before anything runs."""

from __future__ import annotations

from typing import Any

from whence.core.passage import Passage
from whence.core.registry import WHOLE_MAPS, Needs
from whence.models.model import Model
from whence.trace.attention import BLOCK_BYTES
from whence.trace.memory import Forecast

GRAPH_COPIES = 3  # maps that a layer's graph holds for its backward pass: scores, weights, weights after dropout

RULED_COPIES = 4  # the same where relevance passes through: factors and signs beside them


def attention_shape(model: Model) -> dict[str, tuple[int, int]]:
    """Layers and heads of each kind of attention, as the configuration tells them; empty where it does not."""
    config: Any = model.config
    if (
        not model.is_encoder_decoder
        and hasattr(config, "get_text_config")
        and model.kind.reads_text
    ):
        config = config.get_text_config()
    layers, heads = (
        getattr(config, "num_hidden_layers", None),
        getattr(config, "num_attention_heads", None),
    )
    if not isinstance(layers, int) or not isinstance(heads, int):
        return {}
    if not model.is_encoder_decoder:
        return {"decoder" if model.is_causal else "encoder": (layers, heads)}
    below = next(
        (
            n
            for n in (
                getattr(config, "decoder_layers", None),
                getattr(config, "num_decoder_layers", None),
            )
            if n
        ),
        layers,
    )
    decoder = int(below), int(getattr(config, "decoder_attention_heads", heads))
    above = (
        int(getattr(config, "encoder_layers", layers)),
        int(getattr(config, "encoder_attention_heads", heads)),
    )
    return {"encoder": above, "decoder": decoder, "cross": decoder}


def lengths_of(model: Model, passage: Passage) -> dict[str, tuple[int, int]]:
    """Queries and keys of each kind."""
    own = len(passage)
    if not model.is_encoder_decoder:
        return {"encoder": (own, own), "decoder": (own, own)}
    reply = (
        own
        if model.kind.reads_twice
        else 1 + (0 if passage.reply is None else len(passage.reply))
    )
    return {"encoder": (own, own), "decoder": (reply, reply), "cross": (reply, own)}


def forecast_trace(model: Model, passage: Passage, needs: Needs, batch: int = 1) -> Forecast:
    """What a trace of passages of this length holds of attention."""
    cell = model.dtype.itemsize
    lengths = lengths_of(model, passage)
    kept = graph = widest = 0
    for kind, (layers, heads) in attention_shape(model).items():
        area = batch * lengths[kind][0] * lengths[kind][1] * cell
        widest = max(widest, heads * area)
        if needs & WHOLE_MAPS:
            kept += layers * heads * area
        if needs & Needs.HEAD_MEANS and not needs & WHOLE_MAPS:
            kept += layers * area
        if needs & Needs.VALUE_WEIGHTED:
            kept += layers * area
        if needs & Needs.ATTENTION_GRADIENTS:
            graph += (1 + GRAPH_COPIES) * layers * heads * area
        elif needs & Needs.EMBEDDING_GRADIENTS and kept:
            graph += GRAPH_COPIES * layers * heads * area
        if needs & Needs.ATTENTION_GRAPH:  # one passage at a time
            graph += RULED_COPIES * layers * heads * area // batch
    in_blocks = not needs & WHOLE_MAPS and not graph
    return Forecast(kept, graph + (min(widest, BLOCK_BYTES) if in_blocks else 2 * widest))


def forecast_maps(
    model: Model,
    passage: Passage,
    places: dict[str, tuple[int, int]],
    heads: int | None,
    layers: int | None,
    neurons: bool,
) -> Forecast:
    """What ``attend`` holds: chosen layers and heads (None: all) over ``places`` from and to."""
    cell = model.dtype.itemsize
    lengths = lengths_of(model, passage)
    kept = working = 0
    for kind, (all_layers, all_heads) in attention_shape(model).items():
        one = (heads or all_heads) * places[kind][0] * places[kind][1]
        kept += (
            (layers or all_layers) * one * max(cell, 4)
        )  # numpy takes float32; each tensor goes as it is copied
        # blocks of query rows, and one layer's result twice while its blocks are joined
        working = max(
            working,
            min(all_heads * lengths[kind][0] * lengths[kind][1] * cell, BLOCK_BYTES)
            + 2 * one * cell,
        )
        if neurons:
            kept += (
                all_layers
                * sum(lengths[kind])
                * int(getattr(model.config, "hidden_size", 0))
                * (cell + 4)
            )
    return Forecast(kept, working)
