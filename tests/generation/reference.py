"""What a method says of a continuation, by the slow definition: one prefix at a time.

For output k the model reads what came before it and nothing else, alone in its batch. One number is
read from its last logits, and that number is differentiated, integrated, or watched while tokens
are exchanged. Code that is fast (one pass for all outputs, many rows in a batch) is compared with
this: a future token that leaks in, a shifted position or a row of another output shows at once.

Plain torch on models of Hugging Face, and nothing of whence.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Written:
    """A continuation and what came before it, as token ids.

    ``start`` is what the decoder had read before the first output: the prompt of a causal model, or
    the start token of an encoder–decoder, whose prompt is the ``source``.
    """

    start: Ids
    outputs: Ids
    source: Ids | None = None

    def prefix(self, output: int) -> Ids:
        """All that the decoder reads before it writes this output."""
        return self.start + self.outputs[:output]


@dataclass(frozen=True)
class Rows:
    """One row for each output, over the places of its prefix and those of the source.

    The places are those of ``start`` and of all outputs but the last. A place that an output could
    not read is NaN in its row: neither nothing nor a small number.
    """

    prefix: Float[Tensor, "output ..."]
    source: Float[Tensor, "output ..."] | None


# ---------------------------------------------------------------------------- which number is read

# the last logits of prefix k, and k, give the number that is explained
Reading = Callable[[Float[Tensor, " vocabulary"], int], Float[Tensor, ""]]


def logit(tokens: Sequence[int]) -> Reading:
    return lambda logits, output: logits[tokens[output]]


def probability(tokens: Sequence[int]) -> Reading:
    return lambda logits, output: logits.softmax(-1)[tokens[output]]


def log_probability(tokens: Sequence[int]) -> Reading:
    return lambda logits, output: logits.log_softmax(-1)[tokens[output]]


def entropy() -> Reading:
    """In nats, whatever was written."""
    return lambda logits, output: -(logits.softmax(-1) * logits.log_softmax(-1)).sum()


def difference(of: Reading, other: Reading) -> Reading:
    """For contrast: of what was written, less of what might have been, after the same prefix."""
    return lambda logits, output: of(logits, output) - other(logits, output)


# ------------------------------------------------------------------------------------- one forward


def embedded(model: Any, ids: Sequence[int]) -> Float[Tensor, "token embedding"]:
    """As the model embeds them itself: its table, times a factor that some apply outside of it."""
    table = model.get_input_embeddings()
    scale = 1.0
    if model.config.is_encoder_decoder:
        scale = getattr(model.get_encoder(), "embed_scale", 1.0)
    with torch.no_grad():
        return table(torch.tensor(ids, dtype=torch.long)) * scale


def last_logits(
    model: Any,
    prefix: Float[Tensor, "place embedding"],
    source: Float[Tensor, "source embedding"] | None,
) -> Float[Tensor, " vocabulary"]:
    """Of one sequence alone, from embeddings."""
    logits = _run(model, prefix, source).logits
    return logits[0, -1]


def _run(model: Any, prefix: Tensor, source: Tensor | None, **more: Any) -> Any:
    ones = torch.ones(1, len(prefix), dtype=torch.long)
    if source is None:
        return model(inputs_embeds=prefix[None], attention_mask=ones, use_cache=False, **more)
    return model(
        inputs_embeds=source[None],
        attention_mask=torch.ones(1, len(source), dtype=torch.long),
        decoder_inputs_embeds=prefix[None],
        decoder_attention_mask=ones,
        use_cache=False,
        **more,
    )


def prefix_values(model: Any, written: Written, reading: Reading) -> Float[Tensor, " output"]:
    """The number that is explained, for each output."""
    values = []
    for output in range(len(written.outputs)):
        values.append(_value(model, written.prefix(output), written.source, reading, output))
    return torch.stack(values)


@torch.no_grad()
def _value(model: Any, prefix: Ids, source: Ids | None, reading: Reading, output: int) -> Tensor:
    of_source = None if source is None else embedded(model, source)
    return reading(last_logits(model, embedded(model, prefix), of_source), output)


# --------------------------------------------------------------------------------------- gradients


def prefix_gradients(model: Any, written: Written, reading: Reading) -> Rows:
    """The gradient with respect to each embedding: "output place embedding"."""

    def of_output(output: int) -> tuple[Tensor, Tensor | None]:
        prefix = embedded(model, written.prefix(output))
        source = None if written.source is None else embedded(model, written.source)
        return _gradient(model, prefix, source, reading, output)

    return _rows(written, of_output)


def _gradient(
    model: Any, prefix: Tensor, source: Tensor | None, reading: Reading, output: int
) -> tuple[Tensor, Tensor | None]:
    prefix = prefix.clone().requires_grad_()
    if source is None:
        value = reading(last_logits(model, prefix, None), output)
        (of_prefix,) = torch.autograd.grad(value, [prefix])
        return of_prefix, None

    source = source.clone().requires_grad_()
    value = reading(last_logits(model, prefix, source), output)
    of_prefix, of_source = torch.autograd.grad(value, [prefix, source])
    return of_prefix, of_source


# ---------------------------------------------------------------------------- integrated gradients

# from a model and token ids, the embeddings at which the path begins
Baseline = Callable[[Any, Ids], Float[Tensor, "token embedding"]]


def from_token(token: int, kept: Collection[int] = ()) -> Baseline:
    """Every token becomes this one; those in ``kept`` stay, so that their scores are 0."""

    def baseline(model: Any, ids: Ids) -> Tensor:
        return embedded(model, [i if i in kept else token for i in ids])

    return baseline


def from_vector(vector: Float[Tensor, " embedding"], kept: Collection[int] = ()) -> Baseline:
    """Every embedding becomes this one, for example 0 or the mean of the table."""

    def baseline(model: Any, ids: Ids) -> Tensor:
        own = embedded(model, ids)
        stays = torch.tensor([i in kept for i in ids])[:, None]
        return torch.where(stays, own, vector.to(own.dtype))

    return baseline


def quadrature(rule: str, steps: int) -> tuple[list[float], list[float]]:
    """Nodes and weights on [0, 1].

    >>> quadrature("midpoint", 2)
    ([0.25, 0.75], [0.5, 0.5])
    """
    if rule == "gauss-legendre":
        nodes, weights = np.polynomial.legendre.leggauss(steps)
        return list((nodes + 1) / 2), list(weights / 2)
    shift = {"left": 0.0, "midpoint": 0.5, "right": 1.0}[rule]
    return [(step + shift) / steps for step in range(steps)], [1 / steps] * steps


def prefix_integrated_gradients(
    model: Any,
    written: Written,
    reading: Reading,
    *,
    baseline: Baseline,
    steps: int,
    rule: str = "gauss-legendre",
) -> Rows:
    """The mean gradient on the way from the baseline, times that way: "output place embedding".

    Source and prefix go the way together: the outputs before this one are moved as the prompt is.
    """
    nodes, weights = quadrature(rule, steps)

    def of_output(output: int) -> tuple[Tensor, Tensor | None]:
        ids = written.prefix(output)
        prefix, begin = embedded(model, ids), baseline(model, ids)
        source = source_begin = None
        if written.source is not None:
            source, source_begin = embedded(model, written.source), baseline(model, written.source)

        of_prefix = torch.zeros_like(prefix)
        of_source = None if source is None else torch.zeros_like(source)
        for node, weight in zip(nodes, weights, strict=True):
            on_prefix, on_source = _gradient(
                model,
                _between(begin, prefix, node),
                _between(source_begin, source, node),
                reading,
                output,
            )
            of_prefix += weight * on_prefix * (prefix - begin)
            if of_source is not None:
                of_source += weight * on_source * (source - source_begin)
        return of_prefix, of_source

    return _rows(written, of_output)


def _between(begin: Any, end: Any, share: float) -> Any:
    return None if begin is None else begin + share * (end - begin)


# --------------------------------------------------------------------------------------- occlusion

# token ids without what is at a place
Removal = Callable[[Ids, int], Ids]


def replaced(token: int, kept: Collection[int] = ()) -> Removal:
    """Another token takes the place; tokens in ``kept`` stay, so that their scores are 0."""

    def remove(ids: Ids, place: int) -> Ids:
        if ids[place] in kept:
            return ids
        return (*ids[:place], token, *ids[place + 1 :])

    return remove


def deleted(kept: Collection[int] = ()) -> Removal:
    """All that follows moves up by one position."""

    def remove(ids: Ids, place: int) -> Ids:
        return ids if ids[place] in kept else ids[:place] + ids[place + 1 :]

    return remove


def prefix_occlusion(model: Any, written: Written, reading: Reading, *, remove: Removal) -> Rows:
    """What the number loses without the token at each place: "output place", signed."""
    source = written.source

    def of_output(output: int) -> tuple[Tensor, Tensor | None]:
        prefix = written.prefix(output)
        whole = _value(model, prefix, source, reading, output)

        losses = []
        for place in range(len(prefix)):
            value = _value(model, remove(prefix, place), source, reading, output)
            losses.append(whole - value)
        if source is None:
            return torch.stack(losses), None

        of_source = []
        for place in range(len(source)):
            value = _value(model, prefix, remove(source, place), reading, output)
            of_source.append(whole - value)
        return torch.stack(losses), torch.stack(of_source)

    return _rows(written, of_output)


# --------------------------------------------------------------------------------------- attention


def prefix_attention(model: Any, written: Written) -> Rows:
    """The weights of the place that writes each output: "output layer head place".

    Over the prefix they are the decoder's own attention, over the source its cross-attention.
    """
    # on a copy, as the setting and the hooks that it brings would stay
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")

    @torch.no_grad()
    def of_output(output: int) -> tuple[Tensor, Tensor | None]:
        prefix = embedded(eager, written.prefix(output))
        if written.source is None:
            seen = _run(eager, prefix, None, output_attentions=True)
            return _last_row(seen.attentions), None
        source = embedded(eager, written.source)
        seen = _run(eager, prefix, source, output_attentions=True)
        return _last_row(seen.decoder_attentions), _last_row(seen.cross_attentions)

    return _rows(written, of_output, place=-1)


def _last_row(layers: Sequence[Tensor]) -> Float[Tensor, "layer head place"]:
    return torch.stack([layer[0, :, -1] for layer in layers])


# -------------------------------------------------------------------------------------------- rows


def _rows(
    written: Written, of_output: Callable[[int], tuple[Tensor, Tensor | None]], place: int = 0
) -> Rows:
    """Rows of different length on top of each other; ``place`` is the axis that grows."""
    longest = len(written.start) + len(written.outputs) - 1
    prefixes, sources = [], []
    for output in range(len(written.outputs)):
        of_prefix, of_source = of_output(output)
        shape = list(of_prefix.shape)
        shape[place] = longest
        row = torch.full(shape, torch.nan, dtype=of_prefix.dtype)
        row.narrow(place, 0, of_prefix.shape[place]).copy_(of_prefix)
        prefixes.append(row)
        sources.append(of_source)
    if written.source is None:
        return Rows(torch.stack(prefixes), None)
    return Rows(torch.stack(prefixes), torch.stack(sources))
