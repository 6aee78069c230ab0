"""Options of decoding: what is refused, what stands where nothing is asked, and the model's own."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from whence.core.errors import InputError
from whence.models.model import Model

# options of ``generate()`` that would give more than one text, or no plain text at all
ONE_TEXT = {
    "num_return_sequences": "explain one text at a time; a beam search returns its best one",
    "return_dict_in_generate": "whence computes the probabilities itself",
    "output_scores": "whence computes the probabilities itself",
    "output_logits": "whence computes the probabilities itself",
    "streamer": "the text is shown when it is explained",
}
# each token by its probability; transformers would draw among the 50 likeliest
AS_PROBABLE: Mapping[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
# options in a model's own files that change what is written, each with what it is without effect
OF_MODELS: Mapping[str, Any] = {
    "min_length": 0,
    "min_new_tokens": 0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "bad_words_ids": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "guidance_scale": 1.0,
    "watermarking_config": None,
    "stop_strings": None,
    "max_time": None,
    "penalty_alpha": None,
    "dola_layers": None,
}
OF_DRAWING: Mapping[str, Any] = {
    "min_p": None,
    "top_h": None,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
OF_BEAMS: Mapping[str, Any] = {
    "length_penalty": 1.0,
    "early_stopping": False,
    "diversity_penalty": 0.0,
}


def check_options(max_new_tokens: int, options: Mapping[str, Any]) -> None:
    """Refuse options of which transformers would say nothing useful, or nothing at all."""
    if not _is_whole(max_new_tokens) or max_new_tokens < 1:
        raise InputError(
            f"max_new_tokens is a number of tokens, at least 1, not {max_new_tokens!r}."
        )
    for name, why in ONE_TEXT.items():
        given = options.get(name)
        if given is None or given is False:
            continue
        if name != "num_return_sequences" or not _is_whole(given) or given != 1:
            raise InputError(f"{name}={given!r} is not possible here: {why}.")
    _check_number(options, "num_beams", "a number of texts, at least 1", lambda n: n >= 1, True)
    _check_number(options, "top_k", "a number of tokens, or 0 for all", lambda n: n >= 0, True)
    _check_number(options, "top_p", "a share above 0 and up to 1", lambda p: 0 < p <= 1)
    _check_number(options, "temperature", "a finite number above 0", lambda t: t > 0)


def _check_number(
    options: Mapping[str, Any], name: str, what: str, fits: Any, is_whole: bool = False
) -> None:
    given = options.get(name)
    if given is None:
        return
    is_number = _is_whole(given) or (not is_whole and isinstance(given, (float, np.floating)))
    if not is_number or not isfinite(given) or not fits(given):
        raise InputError(f"{name} is {what}, not {given!r}.")


def _is_whole(given: Any) -> bool:
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool)


def own_options(model: Model, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the model's own files add to the options that are ``asked``, and what has an effect.

    They stay in force, as a model may need them: one forces the language of a translation.

    >>> import whence
    >>> own_options(whence.load("writer"), {"do_sample": False})
    {}
    """
    shaping = dict(OF_MODELS)
    if asked.get("do_sample"):
        shaping |= OF_DRAWING
    if (asked.get("num_beams") or 1) > 1:
        shaping |= OF_BEAMS
    settings = getattr(model.hf, "generation_config", None)
    found = {}
    for name, neutral in shaping.items():
        own = getattr(settings, name, None)
        if name not in asked and own is not None and own != neutral and own != []:
            found[name] = _plain(own)
    return found


def note_on(own: Mapping[str, Any]) -> tuple[str, ...]:
    """Said where a model's own files changed what was written."""
    if not own:
        return ()
    names = ", ".join(own)
    return (
        f"the model's own files change how it writes, and so they did here: {names}; an option "
        "of the same name (--set) takes the place of one",
    )


def forced_first(model: Model) -> int | None:
    """The token that a model's own files put in front of all that it writes, if there is one."""
    settings = getattr(model.hf, "generation_config", None)
    forced = getattr(settings, "forced_bos_token_id", None)
    return None if forced is None else int(forced)


def _plain(value: Any) -> Any:
    """A value as JSON has it; of what JSON has not, its text."""
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)
