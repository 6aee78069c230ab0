"""What follows a prompt: written by the model itself, or given by the caller; always as ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.generation.options import (
    AS_PROBABLE,
    check_options,
    forced_first,
    note_on,
    own_options,
)
from whence.models.model import Model
from whence.models.passing import not_run
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched

EMPTY = "the continuation is empty, so there is no output to explain."


@dataclass(frozen=True, eq=False)
class Continuation:
    """The ids after a prompt, how they came about, and what the reader should know of them."""

    ids: Int[np.ndarray, " token"]
    decoding: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def written_by(
    model: Model, prompt: Passage, max_new_tokens: int, seed: int, options: Mapping[str, Any]
) -> Continuation:
    """What the model writes: the likeliest token each time, unless ``options`` say otherwise.

    They go to transformers' ``generate``: ``do_sample``, ``temperature``, ``top_k``, ``top_p``,
    ``num_beams`` and all others. What is drawn depends on ``seed`` alone, each token by its
    probability where nothing else is asked. What a model's own files say of decoding beside these
    stays in force and is recorded.

    >>> import whence
    >>> model = whence.load("writer")
    >>> len(written_by(model, model.encode("the cat"), 3, 0, {}).ids)
    3
    """
    check_writes(model)
    check_options(max_new_tokens, options)
    start = 1 if model.is_encoder_decoder else len(prompt)
    if model.limit is not None and start + max_new_tokens > model.limit:
        raise InputError(
            f"{start} tokens and {max_new_tokens} more go beyond the model's {model.limit} "
            "positions; ask for fewer (max_new_tokens=…, --tokens) or shorten the prompt."
        )
    batch = model.batch([replace(prompt, reply=None)])
    wanted = ("input_ids", "attention_mask")
    inputs = {name: batch.inputs[name] for name in wanted if name in batch.inputs}
    own: dict[str, Any] = {"do_sample": False, "num_beams": 1}
    if options.get("do_sample"):
        own |= AS_PROBABLE
    decoding = {**own, **options, "max_new_tokens": max_new_tokens}
    models_own = own_options(model, decoding)
    # of a model's own files these give way, max_length without a warning
    technical = {"max_length": None, "return_dict_in_generate": False}
    asked = {**technical, "pad_token_id": model.pad_id, **decoding}
    with (
        model.lock,
        untouched(model.hf),
        unbroken(torch.inference_mode(False), torch.no_grad()),
        torch.random.fork_rng(devices=[]),
    ):
        torch.manual_seed(seed)
        try:
            sequence = model.hf.generate(**inputs, **asked)[0]
        except (
            ValueError,
            TypeError,
            RuntimeError,
            AttributeError,
            LookupError,
            ArithmeticError,
        ) as problem:
            raise not_run(model.hf, problem) from problem
    ids = _without_padding(model, sequence[start:].cpu().numpy().astype(np.int64))
    if not len(ids):
        raise InputError(
            "the model wrote nothing: it ends the text at once. Give another prompt, or what is "
            "to be explained (continuation=…)."
        )
    decoding = {**models_own, **decoding}
    if decoding["do_sample"]:
        decoding["seed"] = seed
    return Continuation(ids, decoding, note_on(models_own))


def given(
    model: Model,
    prompt: Passage,
    continuation: str | Sequence[int] | Int[np.ndarray, " token"],
) -> Continuation:
    """A continuation that the caller has: a text, or ids.

    A text is tokenized as it would be behind the prompt, where that leaves the prompt as it is.

    >>> import whence
    >>> model = whence.load("writer")
    >>> given(model, model.encode("the cat"), " sat").decoding
    {'given': 'text'}
    """
    if isinstance(continuation, str):
        return _given_text(model, prompt, continuation)
    ids = np.asarray(continuation)
    if not ids.size:
        raise InputError(EMPTY)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise InputError(
            "a continuation is a text, or the whole numbers of its tokens in one row, "
            f"not {continuation!r:.60}."
        )
    ids = ids.astype(np.int64)
    _check_end(model, ids)
    return Continuation(ids, {"given": "ids"})


def _given_text(model: Model, prompt: Passage, text: str) -> Continuation:
    if not text:
        raise InputError(EMPTY)
    alone = np.array(model.backend.encode(text, add_special_tokens=False).ids, dtype=np.int64)
    if not len(alone):
        raise InputError(f"the tokenizer leaves no token of the continuation {text!r:.60}.")
    if model.is_encoder_decoder:
        return _as_if_written(model, alone)

    before, own = _end_of_prompt(model, prompt)
    joined = model.backend.encode(before + text, add_special_tokens=False).ids
    if joined[: len(own)] == own:
        return Continuation(np.array(joined[len(own) :], dtype=np.int64), {"given": "text"})
    note = (
        "in one text with the prompt the continuation would be cut into other tokens, as the "
        "border lies inside of one; it was tokenized by itself, and the prompt is as it was"
    )
    return Continuation(alone, {"given": "text"}, (note,))


def _as_if_written(model: Model, ids: Int[np.ndarray, " token"]) -> Continuation:
    """The tokens of a text, behind the token that this model writes first of all, if it has one."""
    first = forced_first(model)
    if first is None or first == ids[0]:
        return Continuation(ids, {"given": "text"})
    note = (
        f"the model's own files put {model.labels[first]!r} in front of all that it writes, so "
        "it stands in front of what was given, too"
    )
    return Continuation(np.array([first, *ids], dtype=np.int64), {"given": "text"}, (note,))


def _end_of_prompt(model: Model, prompt: Passage) -> tuple[str, list[int]]:
    """What a continuation is tokenized behind: a text, and its ids in the prompt.

    Of a chat it is what its template writes at the end, behind the last special token.
    """
    if not prompt.sections:
        return prompt.text, model.backend.encode(prompt.text, add_special_tokens=False).ids
    is_special = np.isin(prompt.ids, model.tokenizer.all_special_ids)
    places = np.flatnonzero(is_special)
    ids = prompt.ids[int(places[-1]) + 1 if len(places) else 0 :].tolist()
    return model.tokenizer.decode(ids, clean_up_tokenization_spaces=False), ids


def check_writes(model: Model) -> None:
    """Refuse a model that does not write."""
    if not model.kind.generates:
        raise InputError(
            f"{type(model.hf).__name__} does not write text; "
            "generate is for causal and sequence-to-sequence language models."
        )


def _first_end(model: Model, ids: Int[np.ndarray, " token"]) -> int | None:
    """The place of the first token that ends a text; a model may have several such tokens."""
    ends = {getattr(model.tokenizer, "eos_token_id", None)}
    own = getattr(getattr(model.hf, "generation_config", None), "eos_token_id", None)
    ends |= set(own) if isinstance(own, (list, tuple)) else {own}
    places = np.flatnonzero(np.isin(ids, [end for end in ends if end is not None]))
    return int(places[0]) if len(places) else None


def _check_end(model: Model, ids: Int[np.ndarray, " token"]) -> None:
    """Refuse a text that goes on behind its end: no model writes so."""
    end = _first_end(model, ids)
    if end is not None and end < len(ids) - 1:
        behind = len(ids) - 1 - end
        raise InputError(
            f"the continuation has the end of the sequence (id {ids[end]}) at place {end}, and "
            f"{behind} token{'s' if behind > 1 else ''} behind it; cut it there."
        )


def _without_padding(model: Model, ids: Int[np.ndarray, " token"]) -> Int[np.ndarray, " token"]:
    """What was written up to its end; beams of unequal length are padded behind it."""
    end = _first_end(model, ids)
    return ids if end is None else ids[: end + 1]
