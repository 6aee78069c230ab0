"""How much memory the attention of a text will take, known before anything runs.

Everything comes from the model's configuration and from the length of the text.
"""

from __future__ import annotations

from typing import Any

from whence.core.passage import Passage
from whence.core.registry import WHOLE_MAPS, Needs
from whence.models.model import Model
from whence.trace.attention import BLOCK_BYTES
from whence.trace.memory import Forecast

# maps that a layer's graph holds for its backward pass: scores, weights, weights after dropout
GRAPH_COPIES = 3
# the same where relevance passes through: factors and signs beside them
RULED_COPIES = 4


def attention_shape(model: Model) -> dict[str, tuple[int, int]]:
    """Layers and heads of each kind of attention, by the configuration; empty if it tells none."""
    config: Any = model.config
    if model.is_encoder_decoder:
        return _shape_of_two_sides(config)
    if hasattr(config, "get_text_config") and model.kind.reads_text:
        config = config.get_text_config()
    shape = _plain_shape(config)
    if shape is None:
        return {}
    kind = "decoder" if model.is_causal else "encoder"
    return {kind: shape}


def _plain_shape(config: Any) -> tuple[int, int] | None:
    layers = getattr(config, "num_hidden_layers", None)
    heads = getattr(config, "num_attention_heads", None)
    if not isinstance(layers, int) or not isinstance(heads, int):
        return None
    return layers, heads


def _shape_of_two_sides(config: Any) -> dict[str, tuple[int, int]]:
    shape = _plain_shape(config)
    if shape is None:
        return {}
    layers, heads = shape
    encoder_layers = getattr(config, "encoder_layers", layers)
    encoder_heads = getattr(config, "encoder_attention_heads", heads)
    # families spell the decoder's layers in two ways, and some leave them out
    decoder_layers = getattr(config, "decoder_layers", None)
    if not decoder_layers:
        decoder_layers = getattr(config, "num_decoder_layers", None) or layers
    decoder_heads = getattr(config, "decoder_attention_heads", heads)

    decoder = int(decoder_layers), int(decoder_heads)
    return {
        "encoder": (int(encoder_layers), int(encoder_heads)),
        "decoder": decoder,
        "cross": decoder,
    }


def lengths_of(model: Model, passage: Passage) -> dict[str, tuple[int, int]]:
    """Queries and keys of each kind."""
    own = len(passage)
    if not model.is_encoder_decoder:
        return {"encoder": (own, own), "decoder": (own, own)}

    if model.kind.reads_twice:
        reply = own
    elif passage.reply is None:
        reply = 1
    else:
        reply = 1 + len(passage.reply)
    return {"encoder": (own, own), "decoder": (reply, reply), "cross": (reply, own)}


def forecast_trace(model: Model, passage: Passage, needs: Needs, batch: int = 1) -> Forecast:
    """What a trace of passages of this length holds of attention."""
    cell = model.dtype.itemsize
    lengths = lengths_of(model, passage)
    kept = graph = widest = 0
    for kind, (layers, heads) in attention_shape(model).items():
        queries, keys = lengths[kind]
        area = batch * queries * keys * cell
        whole = layers * heads * area
        widest = max(widest, heads * area)
        if needs & WHOLE_MAPS:
            kept += whole
        if needs & Needs.HEAD_MEANS and not needs & WHOLE_MAPS:
            kept += layers * area
        if needs & Needs.VALUE_WEIGHTED:
            kept += layers * area
        if needs & Needs.ATTENTION_GRADIENTS:
            graph += (1 + GRAPH_COPIES) * whole
        elif needs & Needs.EMBEDDING_GRADIENTS and kept:
            graph += GRAPH_COPIES * whole
        if needs & Needs.ATTENTION_GRAPH:  # one passage at a time
            graph += RULED_COPIES * whole // batch

    in_blocks = not needs & WHOLE_MAPS and not graph
    passing = min(widest, BLOCK_BYTES) if in_blocks else 2 * widest
    return Forecast(kept, graph + passing)


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
    width = int(getattr(model.config, "hidden_size", 0))
    kept = working = 0
    for kind, (all_layers, all_heads) in attention_shape(model).items():
        rows, columns = places[kind]
        one_layer = (heads or all_heads) * rows * columns
        # numpy takes float32; each tensor goes as it is copied
        kept += (layers or all_layers) * one_layer * max(cell, 4)

        # blocks of query rows, and one layer's result twice while its blocks are joined
        queries, keys = lengths[kind]
        block = min(all_heads * queries * keys * cell, BLOCK_BYTES)
        working = max(working, block + 2 * one_layer * cell)
        if neurons:
            kept += all_layers * (queries + keys) * width * (cell + 4)
    return Forecast(kept, working)
