"""What a run will hold in memory, known before it begins.

Most of it is measured, on texts of a few tokens (``footprint``). What cannot be rehearsed, an
image of a fixed size for one, follows roughly from the model's configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.passage import Passage
from whence.core.registry import GRADIENTS, WHOLE_MAPS, Needs
from whence.models.model import Model
from whence.models.speaking import speaks_where_read
from whence.trace.attention import BLOCK_BYTES, can_observe
from whence.trace.footprint import (
    UNITS,
    Course,
    Footprint,
    Method,
    OneGradient,
    OneRow,
    OneValue,
    Run,
    Unrehearsed,
    footprint_of,
)
from whence.trace.lxmert import is_lxmert
from whence.trace.memory import HELD, Forecast, Heap
from whence.trace.trace import RERUN_TOKENS

# Beside tensors: buffers of the libraries that multiply matrices (1 to 2 MB were seen), and a share
# of what is held: pages that are not full, small tensors, holes between them. A forecast should
# rather be too high.
OVERHEAD = 2_000_000
HOLES = 0.02
UNITS_APART = 4
# outputs of one text that share a rehearsed trace: what two more add tells what many do
FEW_ASKS, MORE_ASKS = 2, 4
# blocks of rows that are held while attention is reduced: scores, weights, a product
BLOCKS = 3

# Where nothing could be measured, of one token and layer, in hidden sizes. Of BERT were counted
# 16 that are held for a backward pass, 24 on the way of a forward pass, and maps of each head.
HELD_FOR_BACKWARD = 16
ON_THE_WAY = 24
GRAPH_COPIES = 3
RULED_COPIES = 4
# No run of a transformer was seen to come near these: so many of the widest layer's entries for
# each token and layer, so many copies of all maps, and points of a method of many passes.
AT_MOST_WIDE = 12
AT_MOST_MAPS = 12
AT_MOST_POINTS = 160


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


def lengths_of(
    model: Model, passage: Passage, tokens: int | None = None
) -> dict[str, tuple[int, int]]:
    """Queries and keys of each kind; ``tokens`` in place of the passage's own length."""
    own = len(passage) if tokens is None else tokens
    if not model.is_encoder_decoder:
        return {"encoder": (own, own), "decoder": (own, own)}

    if passage.written is not None:
        reply = passage.outputs + 1
        own -= reply
    elif model.kind.reads_twice:
        reply = own
    elif passage.reply is None:
        reply = 1
    else:
        reply = 1 + len(passage.reply)
    return {"encoder": (own, own), "decoder": (reply, reply), "cross": (reply, own)}


def forecast_run(
    model: Model,
    passage: Passage,
    run: Run,
    *,
    rows: int = 1,
    rerun_tokens: int = RERUN_TOKENS,
    tokens: int | None = None,
    heap: Heap = HELD,
) -> Forecast:
    """What a trace of so many passages like this one, and methods on it, hold at most.

    ``rerun_tokens`` are those of one batch, where a method runs the model again; ``tokens`` is a
    length in place of the passage's own; ``heap`` says how the C library keeps blocks. Of a written
    text ``run.asks`` outputs share the trace: each adds as much as the next, so that two small
    numbers of them tell what many hold.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> passage = model.encode("not bad at all")
    >>> forecast_run(model, passage, Run(Needs.EMBEDDING_GRADIENTS)).is_known
    True
    """
    run = replace(
        run,
        units=_count_units(passage, run.needs),
        reply=_count_reply(passage),
        outputs=_count_outputs(passage),
    )
    rehearsed = run
    if run.asks > MORE_ASKS:
        rehearsed = replace(run, asks=FEW_ASKS)
    own = footprint_of(model, rehearsed)
    if isinstance(own, Unrehearsed):
        rough = rough_forecast(model, passage, run.needs, rows, tokens)
        return replace(rough, rough=own.why)

    length = len(passage) if tokens is None else tokens
    batches = _Batches(length, rows, rerun_tokens, heap)
    held = _held(model, passage, rehearsed, own, batches)
    if rehearsed is not run:
        more = replace(run, asks=MORE_ASKS)
        with_more = footprint_of(model, more)
        if isinstance(with_more, Footprint):
            of_each = _held(model, passage, more, with_more, batches) - held
            held = held + (run.asks - FEW_ASKS) / (MORE_ASKS - FEW_ASKS) * of_each
    kept, *peaks = np.maximum(held, 0).round().astype(int).tolist()
    return replace(as_forecast(kept, max(0, max(peaks) - kept)), rough=own.left_out)


@dataclass(frozen=True)
class _Batches:
    """How much goes through the model at once, and how the C library keeps blocks."""

    tokens: int
    rows: int
    rerun_tokens: int
    heap: Heap


def _held(
    model: Model, passage: Passage, run: Run, own: Footprint, batches: _Batches
) -> Float[np.ndarray, " kind"]:
    """Bytes that are kept, and the most at once: traced, read by methods, and in their reruns."""
    tokens, rows, heap = batches.tokens, batches.rows, batches.heap
    while_traced = _while_traced(model, run, own, tokens, rows, heap)
    at_once = max(1, batches.rerun_tokens // tokens) if model.shares_batches else 1

    def value(points: int) -> Course:
        together = min(at_once, points)
        return _rerun(model, passage, OneValue(), Needs.NOTHING, tokens, together, heap, run.asks)

    def gradient(points: int) -> Course:
        needs, together = Needs.EMBEDDING_GRADIENTS, min(at_once, points)
        return _rerun(model, passage, OneGradient(), needs, tokens, together, heap, run.asks)

    with_values = own.with_values(tokens, rows, value, heap) if own.values else 0
    with_gradients = own.with_gradients(tokens, rows, gradient, heap) if own.gradients else 0
    return np.array(
        [
            own.kept(tokens, rows),
            while_traced,
            own.held(tokens, rows, heap, while_traced),
            with_values,
            with_gradients,
        ],
        dtype=np.float64,
    )


def as_forecast(kept: int, working: int) -> Forecast:
    """What tensors hold, with what is held beside them."""
    return Forecast(kept, working + round(HOLES * (kept + working)) + OVERHEAD)


def forecast_trace(
    model: Model, passage: Passage, needs: Needs, batch: int = 1, tokens: int | None = None
) -> Forecast:
    """What a trace of passages like this one holds, before any method reads it."""
    return forecast_run(model, passage, Run(needs), rows=batch, tokens=tokens)


def forward_bytes(
    model: Model,
    passage: Passage,
    rows: int = 1,
    tokens: int | None = None,
    embedded: bool = False,
    heap: Heap = HELD,
) -> int:
    """What a batch of so many rows takes on its way through the model.

    ``tokens`` is a length in place of the passage's own. Where the rows are ``embedded``, other
    embeddings go in than those of the tokens. ``heap`` says how the C library keeps blocks.
    """
    tokens = len(passage) if tokens is None else tokens
    rerun = OneValue() if embedded else OneRow()
    course = _rerun(model, passage, rerun, Needs.NOTHING, tokens, rows, heap)
    return round(course.held.max())


def why_rough(model: Model, passage: Passage) -> str:
    """Why ``forward_bytes`` are rough; empty where such a batch could be rehearsed."""
    reply = _count_reply(passage)
    outputs = _count_outputs(passage)
    row = Run(Needs.NOTHING, methods=(OneRow(),), reply=reply, outputs=outputs)
    own = footprint_of(model, row)
    return own.why if isinstance(own, Unrehearsed) else own.left_out


def _rerun(
    model: Model,
    passage: Passage,
    rerun: Method,
    like: Needs,
    tokens: int,
    rows: int,
    heap: Heap,
    asks: int = 1,
) -> Course:
    """A batch that is run again: less than a trace, which keeps what the model gives out."""
    needs = Needs.NOTHING if isinstance(rerun, OneRow) else Needs.EMBEDDINGS
    again = Run(
        needs,
        methods=(rerun,),
        reply=_count_reply(passage),
        outputs=_count_outputs(passage),
        asks=asks,
    )
    own = footprint_of(model, again)
    if isinstance(own, Footprint):
        course = own.after_trace(tokens, rows, heap)
        if course.alive.max(initial=0.0):
            return course
    # such a model is not run again
    traced = footprint_of(model, replace(again, needs=like, methods=()))
    if isinstance(traced, Footprint):
        return traced.course(tokens, rows, heap=heap)
    rough = float(rough_forecast(model, passage, like, rows, tokens).total)
    return Course(np.array([rough]), np.zeros(1))


def _count_units(passage: Passage, needs: Needs) -> int:
    """The units of a rehearsal: only methods that run the model again may hold a row for each.

    Their number is rounded up, so that texts of about the same number share a rehearsal.
    """
    if not needs & Needs.RERUNS:
        return UNITS
    units = len(passage.unit_spans)
    return min(UNITS, UNITS_APART * max(1, -(-units // UNITS_APART)))


def _count_reply(passage: Passage) -> int:
    return 0 if passage.reply is None else len(passage.reply)


def _count_outputs(passage: Passage) -> int:
    return max(0, passage.outputs)  # none where only a beginning of the prompt is looked at


def _while_traced(
    model: Model, run: Run, own: Footprint, tokens: int, rows: int, heap: Heap
) -> int:
    """The most that is held until the trace is done.

    Attention that is only reduced passes in blocks of rows, of which a short text has just one. It
    holds what is kept and either a plain pass at its widest, or some blocks beside the rest of it.
    """
    whole = own.held_by_trace(tokens, rows, heap)
    if not _in_blocks(model, run):
        return whole
    plain = footprint_of(
        model, replace(run, needs=Needs.NOTHING, via="auto", methods=(), units=UNITS)
    )
    if isinstance(plain, Unrehearsed):
        return whole
    kept = heap.taken * own.kept(tokens, rows)
    widest = plain.held_by_trace(tokens, rows, heap)
    blocks = heap.taken * BLOCKS * BLOCK_BYTES
    return round(min(whole, kept + max(widest, widest // 2 + blocks)))


def _in_blocks(model: Model, run: Run) -> bool:
    reduces = bool(run.needs & (Needs.HEAD_MEANS | Needs.VALUE_WEIGHTED))
    holds_whole_maps = bool(run.needs & (WHOLE_MAPS | GRADIENTS))
    sees_blocks = run.via != "output" and can_observe(model.hf) and not is_lxmert(model.hf)
    return reduces and not holds_whole_maps and sees_blocks


def at_most(model: Model, passage: Passage, batched_tokens: int, asks: int = 1) -> int | None:
    """More than any run will hold, by the configuration alone; None where that does not tell.

    ``batched_tokens`` are those of the largest batch of passages that are no longer than this one;
    ``asks`` are the outputs of a written text that share a trace.
    """
    tokens = len(passage)
    shape = attention_shape(model)
    width = _width(model)
    if not shape or not width:
        return None
    layers = sum(layers for layers, _ in shape.values())
    heads = max(heads for _, heads in shape.values())
    config = _text_config(model)
    wide = max(4 * width, int(getattr(config, "intermediate_size", 0) or 0))
    batched_tokens = max(tokens, batched_tokens)

    activations = layers * AT_MOST_WIDE * wide * batched_tokens
    maps = layers * AT_MOST_MAPS * heads * tokens * batched_tokens
    points = (AT_MOST_POINTS + AT_MOST_WIDE * asks) * width * tokens
    labels = len(model.labels) if model.kind.has_head else 0  # a vocabulary has many
    places = batched_tokens
    if passage.written is not None and speaks_where_read(model):
        places = -(-batched_tokens // tokens) * passage.outputs
    logits = AT_MOST_WIDE * labels * places
    return model.dtype.itemsize * (activations + maps + points + logits) + OVERHEAD


def _text_config(model: Model) -> Any:
    config = model.config
    if hasattr(config, "get_text_config") and model.kind.reads_text:
        return config.get_text_config()
    return config


def _width(model: Model) -> int:
    """The hidden size; 0 where the configuration does not tell."""
    width = getattr(_text_config(model), "hidden_size", None)
    return width if isinstance(width, int) else 0


def rough_forecast(
    model: Model, passage: Passage, needs: Needs, rows: int = 1, tokens: int | None = None
) -> Forecast:
    """A forecast from the configuration alone; unknown where that is silent."""
    cell = model.dtype.itemsize
    lengths = lengths_of(model, passage, tokens)
    shape, width = attention_shape(model), _width(model)
    if not shape or not width:
        return Forecast(0, 0, is_known=False)

    kept = graph = widest = 0
    for kind, (layers, heads) in shape.items():
        queries, keys = lengths[kind]
        area = rows * queries * keys * cell
        stream = rows * queries * width * cell
        whole = layers * heads * area
        widest = max(widest, ON_THE_WAY * stream + 2 * heads * area)
        if needs & WHOLE_MAPS:
            kept += whole
        if needs & Needs.HEAD_MEANS and not needs & WHOLE_MAPS:
            kept += layers * area
        if needs & Needs.VALUE_WEIGHTED:
            kept += layers * area
        if needs & GRADIENTS:
            graph += layers * HELD_FOR_BACKWARD * stream
        if needs & Needs.ATTENTION_GRADIENTS:
            graph += (1 + GRAPH_COPIES) * whole
        elif needs & Needs.EMBEDDING_GRADIENTS and kept:
            graph += GRAPH_COPIES * whole
        if needs & Needs.ATTENTION_GRAPH:  # one passage at a time
            graph += (RULED_COPIES * whole + 2 * layers * HELD_FOR_BACKWARD * stream) // rows
    return as_forecast(kept, graph + widest)


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
    width = _width(model)
    kept = working = 0
    for kind, (all_layers, all_heads) in attention_shape(model).items():
        rows, columns = places[kind]
        one_layer = (heads or all_heads) * rows * columns
        # numpy takes float32; each tensor goes as it is copied
        kept += (layers or all_layers) * one_layer * max(cell, 4)

        # blocks of query rows, and one layer's result twice while its blocks are joined
        queries, keys = lengths[kind]
        block = BLOCKS * min(all_heads * queries * keys * cell, BLOCK_BYTES)
        working = max(working, block + 2 * one_layer * cell)
        if neurons:
            kept += all_layers * (queries + keys) * width * (cell + 4)
    return as_forecast(kept, working + forward_bytes(model, passage))


def forecast_effects(model: Model, passage: Passage) -> int:
    """Bytes of a batch with a row for each head of a layer, whose maps pass whole."""
    lengths = lengths_of(model, passage)
    rows = widest = 0
    for kind, (_, heads) in attention_shape(model).items():
        queries, keys = lengths[kind]
        rows = max(rows, heads if model.shares_batches else 1)
        widest = max(widest, GRAPH_COPIES * heads * queries * keys * model.dtype.itemsize)
    return as_forecast(0, rows * (widest + forward_bytes(model, passage))).total
