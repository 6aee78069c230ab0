"""A text with what a model wrote after it: one passage, of which every written token is an output.

The tokens of a causal model stand in one row: prompt, then continuation. Those of an
encoder-decoder stand on two sides: the text for the encoder, then the decoder's start token and
the continuation. In both, an output is read at the token before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from whence.core.cutting import word_starts
from whence.core.errors import InputError, PlaceError, TargetError, Unsupported
from whence.core.passage import SPECIAL, Passage
from whence.core.target import OF_SPANS, Target
from whence.models.places import MOST_LISTED

if TYPE_CHECKING:
    from whence.models.model import Model

WRITTEN = 1  # the part of the tokens that the model wrote: they are the second text


def written_after(
    model: Model,
    prompt: Passage,
    ids: Sequence[int] | Int[np.ndarray, " token"],
    by_model: bool = False,
) -> Passage:
    """The prompt with what follows it, by its ids: they are not tokenized anew.

    ``by_model`` says that the model wrote that itself; otherwise it was given.

    >>> import whence
    >>> model = whence.load("writer")
    >>> whole = written_after(model, model.encode("the cat"), model.encode(" sat down").ids)
    >>> whole.outputs, whole.pair
    (2, ' sat down')
    """
    ids = np.asarray(ids, dtype=np.int64)
    _check(model, prompt, ids)
    new = written(model, prompt, ids)
    before: list[int] = []
    if model.is_encoder_decoder:
        before = [model.decoder_start]
    start_tokens = tuple(map(str, model.tokenizer.convert_ids_to_tokens(before)))
    nowhere = np.full(len(before), SPECIAL)

    units = len(prompt.unit_spans)
    unit_of = np.where(new.unit_of < 0, SPECIAL, new.unit_of + units)
    unit_spans = [(WRITTEN, start, end) for _, start, end in new.unit_spans]
    types = prompt.types
    if types is not None:
        types = np.concatenate([types, np.repeat(types[-1:], len(before) + len(ids))])
    return replace(
        prompt,
        pair=new.text,
        reply=None,
        ids=np.concatenate([prompt.ids, before, ids]).astype(np.int64),
        tokens=(*prompt.tokens, *start_tokens, *new.tokens),
        spans=np.concatenate([prompt.spans, np.zeros((len(before), 2), np.int64), new.spans]),
        parts=np.concatenate([prompt.parts, nowhere, np.where(new.parts < 0, SPECIAL, WRITTEN)]),
        unit_of=np.concatenate([prompt.unit_of, nowhere, unit_of]),
        unit_spans=(*prompt.unit_spans, *unit_spans),
        types=types,
        written=len(prompt) + len(before),
        by_model=by_model,
    )


def only_prompt(passage: Passage) -> Passage:
    """The same, with units of the prompt alone: what was written is given, and is not scored."""
    assert passage.written is not None
    kept = [span for span in passage.unit_spans if span[0] != WRITTEN]
    unit_of = np.where(passage.unit_of < len(kept), passage.unit_of, SPECIAL)
    return replace(passage, unit_of=unit_of, unit_spans=tuple(kept))


def _check(model: Model, prompt: Passage, ids: Int[np.ndarray, " token"]) -> None:
    if not model.kind.generates:
        raise InputError(
            f"{type(model.hf).__name__} does not write text; "
            "continuations are those of causal and sequence-to-sequence language models."
        )
    if prompt.pair is not None or prompt.written is not None:
        raise InputError("a continuation follows one text, and this passage has two.")
    if not len(ids):
        raise InputError("the continuation is empty, so there is no output to explain.")
    size = model.embedded_ids
    if size is not None and (ids.max() >= size or ids.min() < 0):
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise InputError(
            f"the continuation has the id {wrong}, and the model embeds the ids 0 to {size - 1}."
        )
    longest = len(ids) if model.is_encoder_decoder else len(prompt) + len(ids)
    if model.limit is not None and longest > model.limit:
        raise InputError(
            f"the prompt of {len(prompt)} tokens and the continuation of {len(ids)} go beyond the "
            f"model's {model.limit} positions; shorten one of them."
        )


def written(model: Model, prompt: Passage, ids: Int[np.ndarray, " token"]) -> Passage:
    """What the model wrote, as a passage of its own.

    It is cut on its own, so that no unit is half the caller's and half the model's, even where a
    word goes on without a space.
    """
    before = [] if model.is_encoder_decoder else [int(prompt.ids[-1])]
    text, spans = _spelled(model, before, ids)
    tokens = [str(token) for token in model.tokenizer.convert_ids_to_tokens(ids.tolist())]
    special = set(model.tokenizer.all_special_ids)
    parts = [SPECIAL if int(i) in special else 0 for i in ids]
    units: Any = prompt.kind if prompt.kind in ("word", "token", "sentence") else "word"
    return Passage.from_tokens(text, ids.tolist(), tokens, spans, parts, units=units)


def _spelled(
    model: Model, before: list[int], ids: Int[np.ndarray, " token"]
) -> tuple[str, list[tuple[int, int]]]:
    """The text that ids spell after ``before``, and the characters of each.

    A character of several tokens belongs to the last of them.
    """

    def decode(tokens: list[int]) -> str:
        return model.tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    start = len(decode(before))
    whole = decode([*before, *ids.tolist()])[start:]
    ends, end = [], 0
    for k in range(1, len(ids) + 1):
        so_far = decode([*before, *ids[:k].tolist()])[start:]
        if whole.startswith(so_far):  # else in the middle of a character
            end = max(end, len(so_far))
        ends.append(end)
    return whole, list(zip([0, *ends], ends, strict=False))


def notes_on_border(passage: Passage) -> tuple[str, ...]:
    """What a reader should know of the place where the prompt ends and the continuation begins."""
    prompt, rest = passage.text, passage.pair or ""
    on_two_sides = passage.parts[passage.output_place(0) - 1] == SPECIAL  # or behind a template
    if on_two_sides:
        return ()
    if prompt[-1:] in (" ", "\t"):
        note = (
            "the prompt ends with a space. Most models write a space together with the word behind "
            "it, so they seldom saw a text that ends so; leave it out"
        )
        return (note,)
    if len(prompt) not in word_starts(prompt + rest) and rest:
        note = (
            "the prompt ends inside a word: what is written goes on with it, and the two halves "
            "are units of their own"
        )
        return (note,)
    return ()


# ---------------------------------------------------------------------- targets among outputs


def located_output(passage: Passage, target: Target) -> Target:
    """The target with its outputs as numbers; without a place it is the whole continuation."""
    outputs = passage.outputs
    if target.until is not None and not isinstance(target.at, (int, np.integer)):
        raise TargetError(f"until= goes with at= as a number, and at= is {target.at!r}.")
    if target.at is None:
        return _as_span(replace(target, at=0, until=outputs), passage)
    if isinstance(target.at, str) and not target.at.isdecimal():
        return _located_word(passage, target, target.at)

    at = int(target.at)
    if not 0 <= at < outputs:
        raise TargetError(
            f"at={at} is outside the {outputs} tokens that were written, "
            f"which are counted from 0 to {outputs - 1}."
        )
    if target.until is None:
        return replace(target, at=at)
    if not at < target.until <= outputs:
        raise TargetError(
            f"until={target.until} must lie behind at={at} and within the {outputs} tokens that "
            "were written."
        )
    return _as_span(replace(target, at=at), passage)


def _located_word(passage: Passage, target: Target, word: str) -> Target:
    """The outputs that spell one unit of the continuation."""
    units = [u for u, span in enumerate(passage.unit_spans) if span[0] == WRITTEN]
    names = [passage.names[unit] for unit in units]
    outputs = []
    for unit, name in zip(units, names, strict=True):
        if name == word:
            places = np.flatnonzero(passage.unit_of == unit) - passage.output_place(0)
            outputs.append(range(int(places[0]), int(places[-1]) + 1))
    if len(outputs) != 1:
        raise PlaceError(_not_one(names, word, outputs))
    (steps,) = outputs
    return _as_span(replace(target, at=steps.start, until=steps.stop, word=word), passage)


def _not_one(names: Sequence[str], word: str, outputs: Sequence[range]) -> str:
    if outputs:
        choices = []
        for steps in outputs:
            until = f", until={steps.stop}" if len(steps) > 1 else ""
            choices.append(f"at={steps.start}{until}")
        return f"the word {word!r} was written {len(outputs)} times: say {' or '.join(choices)}."
    listed = ", ".join(map(repr, names[:MOST_LISTED]))
    more = " …" if len(names) > MOST_LISTED else ""
    return f"the word {word!r} was not written. Written were: {listed}{more}"


def _as_span(target: Target, passage: Passage) -> Target:
    """Several outputs together; one alone is a plain output."""
    if len(target.steps) == 1:
        return replace(target, until=None)
    if target.label is not None and target.ids is None:
        raise TargetError(
            f"{len(target.steps)} written tokens are explained as they stand, and not as "
            f"{target.label!r}; name one of them with at=."
        )
    if target.against is not None:
        raise TargetError(
            f"{len(target.steps)} written tokens have no single rival {target.against!r}; name one "
            "of them with at=, or give a whole other continuation."
        )
    read = target.read
    if read == "logit":  # the reading when none was asked for; logits of several do not add up
        read = "log-probability"
    if read not in OF_SPANS:
        raise TargetError(
            f"several written tokens are read as one of {', '.join(OF_SPANS)}, not as {read!r}."
        )
    first = passage.output_place(target.steps.start)
    last = passage.output_place(target.steps.stop)
    ids = tuple(passage.ids[first:last].tolist())
    return replace(target, read=read, ids=ids)


def read_at_output(passage: Passage, target: Target) -> Passage:
    """The passage with the token at which a target's output is read.

    Several outputs are read at several tokens, and no one of them speaks for all.
    """
    if target.until is not None:
        return passage
    return replace(passage, readout=passage.output_place(target.steps.start) - 1)


def row_of_output(model: Model, passage: Passage) -> int:
    """The row of attention that speaks for the output at which the passage is read."""
    assert passage.written is not None
    if passage.readout is None:
        raise Unsupported(
            "attention has one row for each output, and this target is several outputs together; "
            "name one of them with at=."
        )
    if model.is_encoder_decoder:
        return passage.readout - (passage.written - 1)
    return passage.readout
