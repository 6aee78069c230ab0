"""The numbers of a config.json, checked before a model is made of them.

transformers checks types where a family declares them. What it does not check is checked here: a
count of layers or labels is turned into lists before any weight is read, so that an absurd one
fills the memory; and some values name code or files elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from whence.core.errors import LoadError
from whence.models.checkpoint import Stored, is_inside, short

# Whole numbers in every family that has them. None stands for a default, a list for one a layer.
AT_LEAST_ONE = frozenset(
    {
        "decoder_attention_heads",
        "d_model",
        "embedding_size",
        "encoder_attention_heads",
        "hidden_size",
        "image_size",
        "key_size",
        "n_embd",
        "n_head",
        "n_heads",
        "num_attention_heads",
        "num_channels",
        "num_heads",
        "num_key_value_heads",
        "patch_size",
        "value_size",
        "vocab_size",
    }
)
AT_LEAST_ZERO = frozenset(
    {
        "d_ff",
        "decoder_ffn_dim",
        "decoder_layers",
        "encoder_ffn_dim",
        "encoder_layers",
        "intermediate_size",
        "max_position_embeddings",
        "n_ctx",
        "n_layer",
        "n_layers",
        "n_positions",
        "num_decoder_layers",
        "num_hidden_layers",
        "num_labels",
        "num_layers",
        "type_vocab_size",
    }
)

# Ten times what any model has.
MOST_LAYERS = 10_000
MOST_HEADS = 100_000
# Larger than any dimension of a tensor; what is built is compared with the weights afterwards.
MOST = 2**31
# A config may speak of labels that its weights do not have (a model without a head).
LABELS_WITHOUT_WEIGHTS = 1000


def check_config(
    config: dict[str, Any], weights: Stored, where: str, allow_remote_code: bool = False
) -> None:
    """Raise where a config asks for what cannot be built, or for files and code elsewhere."""
    for path, key, value in _entries(config):
        problem = _problem(key, value, weights)
        if problem:
            raise LoadError(f"config.json of {where} says {path} {short(value)}: {problem}.")
        if "_implementation" in path and not allow_remote_code and _names_a_kernel(value):
            raise LoadError(
                f"config.json of {where} asks for code from elsewhere ({path} {short(value)}), "
                "which is not run unasked; take that line out, or, if you trust it, load with "
                "allow_remote_code=True."
            )
    _check_labels(config, where)
    _check_architectures(config, where)
    check_other_files(config.get("configuration_files"), "config.json", where)


def check_other_files(names: Any, file: str, where: str) -> None:
    """Raise where a file of a checkpoint names others that lie outside it."""
    if names is None:
        return
    if not isinstance(names, list) or not all(isinstance(n, str) and is_inside(n) for n in names):
        raise LoadError(
            f"{file} of {where} names files to be read in its place ({short(names)}) that are not "
            "inside the checkpoint; take that line out."
        )


def main_numbers(config: dict[str, Any]) -> str:
    """The numbers that decide how large a model is, for a message."""
    named = {path: value for path, key, value in _entries(config) if _is_main(key, value)}
    return ", ".join(f"{path} {value}" for path, value in list(named.items())[:8])


def _is_main(key: str, value: Any) -> bool:
    return key in AT_LEAST_ONE | AT_LEAST_ZERO and isinstance(value, int) and value > 1


def _entries(config: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """Each value that is no mapping, with its path and its own name; parts of a model too."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _entries(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", key, value


def _problem(key: str, value: Any, weights: Stored) -> str | None:
    """What is wrong with a value, if anything."""
    least = 1 if key in AT_LEAST_ONE else 0 if key in AT_LEAST_ZERO else None
    values = value if isinstance(value, list) else [value]
    for number in values:
        if least is not None and number is not None:
            if not _is_whole(number) and not isinstance(number, list):
                return "a whole number is needed"
            if not isinstance(number, list) and number < least:
                return f"it must be at least {least}"
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        most = _most(key, weights)
        if most is not None and (number > most or math.isnan(number)):
            return f"more than {most:,} cannot be built from these weights"
    return None


def _is_whole(number: Any) -> bool:
    """Whether it is a whole number; 1200.0 is one (MusicFlamingo writes it so)."""
    if isinstance(number, float):
        return number.is_integer()
    return isinstance(number, int) and not isinstance(number, bool)


def _most(key: str, weights: Stored) -> int | None:
    """The largest number that can be meant; None where the name says nothing of it."""
    is_count = key.startswith(("num_", "n_"))
    if key == "num_labels":
        return max(weights.largest_dimension, LABELS_WITHOUT_WEIGHTS)
    if key.endswith(("layers", "n_layer", "depths", "depth", "blocks")):
        return MOST_LAYERS
    if key.endswith(("heads", "n_head")):
        return MOST_HEADS
    if is_count or key in AT_LEAST_ONE | AT_LEAST_ZERO or key.endswith(("_size", "_dim")):
        return MOST
    return None


def _names_a_kernel(value: Any) -> bool:
    """An id on the hub in place of the name of an implementation: transformers fetches its code."""
    return isinstance(value, str) and ("/" in value or ":" in value)


def _is_class(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _check_labels(config: dict[str, Any], where: str) -> None:
    labels = config.get("id2label")
    if labels is None:
        return
    if not isinstance(labels, dict):
        raise LoadError(f"config.json of {where} says id2label {short(labels)}, no mapping.")
    for key in labels:
        if not key.isascii() or not key.isdigit() or len(key) > 9:
            raise LoadError(
                f"config.json of {where} says id2label with the key {short(key)}; "
                "its keys are the numbers of the labels."
            )


def _check_architectures(config: dict[str, Any], where: str) -> None:
    names = config.get("architectures")
    if names is None:
        return
    if not isinstance(names, list) or not all(_is_class(name) for name in names):
        raise LoadError(
            f"config.json of {where} says architectures {short(names)}; "
            "a list with the name of a class is needed."
        )
