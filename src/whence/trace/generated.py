"""Attention of generated tokens.

Each step of transformers' ``generate`` attends from one new token, and the steps are stitched into
one map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.models.writing import written
from whence.trace.attention import Layer, Observer, can_observe, observing

# A model's own generation settings may ask for more. A step would then no longer be one token after
# a growing cache.
PLAIN = {
    "use_cache": True,
    "cache_implementation": None,
    "return_dict_in_generate": False,
    "guidance_scale": None,
    "prompt_lookup_num_tokens": None,
    "num_return_sequences": 1,
}


@dataclass(frozen=True, eq=False)
class Generated:
    """What the model wrote, and how it attended while writing.

    The last token was never read, so it has no row.
    """

    ids: Int[np.ndarray, " token"]
    layers: dict[str, tuple[Layer, ...]]
    attentions: dict[str, tuple[Float[Tensor, "1 head query key"], ...]]


def generate(model: Model, passage: Passage, tokens: int, **settings: Any) -> Generated:
    """Let the model write up to ``tokens`` tokens after the passage, and watch it.

    It writes greedily unless ``settings`` say otherwise. They go to transformers' ``generate``
    (``do_sample=True``, ``temperature=…``); beams are refused, as they share steps.

    >>> from tests.families import build
    >>> model = build("gpt2")
    >>> len(generate(model, model.encode("the food"), 3).ids)
    3
    """
    _check(model, passage, tokens, settings)
    batch = model.batch([replace(passage, reply=None)])
    wanted = ("input_ids", "attention_mask")
    inputs = {name: batch.inputs[name] for name in wanted if name in batch.inputs}
    options = {
        "do_sample": False,
        "num_beams": 1,
        "pad_token_id": model.pad_id,
        **PLAIN,
        **settings,
    }
    observer = Observer(model.hf, keep=True)
    with (
        model.lock,
        untouched(model.hf),
        unbroken(torch.inference_mode(False), torch.no_grad()),
        observing(model.hf, observer),
    ):
        sequence = model.hf.generate(**inputs, max_new_tokens=tokens, **options)[0]

    new = sequence[_tokens_before(model, passage) :]
    layers, maps = stitched(observer)
    _check_steps(model, passage, new, maps["decoder"])
    return Generated(new.cpu().numpy().astype(np.int64), layers, maps)


def _check(model: Model, passage: Passage, tokens: int, settings: dict[str, Any]) -> None:
    if not model.kind.generates:
        raise InputError(
            f"{type(model.hf).__name__} does not write text; "
            "generate= is for causal and sequence-to-sequence models."
        )
    if tokens < 1:
        raise InputError(f"generate= is a number of tokens, 1 or more, not {tokens}.")
    if settings.get("num_beams", 1) != 1:
        raise InputError(
            "beams share steps, so their attention cannot be stitched into one map; "
            "use num_beams=1."
        )
    if not can_observe(model.hf):
        raise Unsupported(
            f"{type(model.hf).__name__} computes attention without AttentionInterface, "
            "so its steps cannot be watched."
        )
    before = _tokens_before(model, passage)
    if model.limit is not None and before + tokens > model.limit:
        raise InputError(
            f"{before} token{'s' if before > 1 else ''} and {tokens} more "
            f"go beyond the model's {model.limit} positions."
        )


def _tokens_before(model: Model, passage: Passage) -> int:
    """What stands before the first written token: the start token of a decoder, or the passage."""
    return 1 if model.is_encoder_decoder else len(passage)


def _check_steps(model: Model, passage: Passage, new: Tensor, maps: tuple[Tensor, ...]) -> None:
    """Refuse maps whose steps were not one token each."""
    read = _tokens_before(model, passage) + len(new) - 1
    if any(weights.shape[2] != read for weights in maps):
        raise Unsupported(
            f"the model read {maps[0].shape[2]} tokens to write {len(new)} after {len(passage)}, "
            "so its steps are not one token each and cannot be stitched; "
            "use plain sampling or greedy search."
        )


def stitched(
    observer: Observer,
) -> tuple[dict[str, tuple[Layer, ...]], dict[str, tuple[Tensor, ...]]]:
    """The calls of each module, one below the other.

    A cache with a sliding window has forgotten the oldest keys, so a step's keys are the last ones.
    """
    calls: dict[str, dict[str, list[Tensor]]] = {}
    for layer, weights in zip(observer.layers, observer.maps, strict=True):
        calls.setdefault(layer.kind, {}).setdefault(layer.module, []).append(weights)

    layers, maps = {}, {}
    for kind, by_module in calls.items():
        grows = kind == "decoder"
        layers[kind] = tuple(Layer(module, kind, i) for i, module in enumerate(by_module))
        maps[kind] = tuple(_below_each_other(steps, grows) for steps in by_module.values())
    return layers, maps


def _below_each_other(steps: list[Tensor], grows: bool) -> Float[Tensor, "1 head query key"]:
    """One map of all steps; where it grows, each step sees the keys up to its own."""
    queries = sum(step.shape[2] for step in steps)
    heads, keys = steps[0].shape[1], steps[0].shape[3]
    if grows:
        keys = queries
    whole = steps[0].new_zeros(1, heads, queries, keys)
    row = 0
    for step in steps:
        end = row + step.shape[2]
        last = end if grows else keys
        whole[:, :, row:end, last - step.shape[3] : last] = step
        row = end
    return whole


def continued(model: Model, passage: Passage, ids: Int[np.ndarray, " token"]) -> Passage:
    """The passage with what the model wrote after it; of an encoder-decoder, as its reply.

    The written ids are kept, not tokenized anew.
    """
    new = written(model, passage, ids)
    if model.is_encoder_decoder:
        return replace(passage, reply=new)
    return _appended(passage, new)


def _appended(passage: Passage, new: Passage) -> Passage:
    """One passage of both: ``new`` goes on in the last text, behind its characters and units."""
    if passage.pair is None:
        part, shift = 0, len(passage.text)
        texts = {"text": passage.text + new.text}
    else:
        part, shift = 1, len(passage.pair)
        texts = {"pair": passage.pair + new.text}

    units = len(passage.unit_spans)
    is_special = new.parts < 0
    spans = np.where(is_special[:, None], new.spans, new.spans + shift)
    parts = np.where(is_special, new.parts, part)
    unit_of = np.where(new.unit_of < 0, new.unit_of, new.unit_of + units)
    unit_spans = [(part, start + shift, end + shift) for _, start, end in new.unit_spans]
    types = passage.types
    if types is not None:
        types = np.concatenate([types, np.repeat(types[-1:], len(new))])

    return replace(
        passage,
        **texts,
        ids=np.concatenate([passage.ids, new.ids]),
        tokens=(*passage.tokens, *new.tokens),
        spans=np.concatenate([passage.spans, spans]),
        parts=np.concatenate([passage.parts, parts]),
        unit_of=np.concatenate([passage.unit_of, unit_of]),
        unit_spans=(*passage.unit_spans, *unit_spans),
        types=types,
    )
