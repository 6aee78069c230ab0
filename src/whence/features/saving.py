"""An autoencoder as a folder: its weights, and what they are of.

``weights.safetensors`` has the names and shapes of SAELens (``W_enc`` dim × feature, ``b_enc``,
``W_dec`` feature × dim, ``b_dec``), ``config.json`` is About with the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from whence.core.errors import InputError, LoadError
from whence.core.features import About
from whence.core.stored import Stored, parsed_json
from whence.core.writing import write_json
from whence.features.autoencoder import Autoencoder
from whence.features.rules import Gated, Relu, Rule, Threshold, TopK
from whence.features.tensors import Tensors, read_tensors, write_tensors

WEIGHTS, CONFIG = "weights.safetensors", "config.json"
MOST_NAMED = 6


def save(
    autoencoder: Autoencoder, folder: str | Path, more: Mapping[str, Tensor] | None = None
) -> Path:
    """Write weights and description to a folder, which is made.

    ``more`` are tensors that are kept beside the weights, such as ``frequency``.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        why = problem.strerror or problem
        raise InputError(f"cannot make the folder {str(folder)!r}: {why}.") from problem

    about = autoencoder.about
    tensors = {**weights_of(autoencoder), **(more or {})}
    if about.peak is not None:
        tensors["peak"] = torch.tensor(about.peak)
    write_tensors(folder / WEIGHTS, tensors)
    config = {**replace(about, peak=None).to_dict(), "rule": _described(autoencoder.rule)}
    write_json(folder / CONFIG, config)
    return folder


def load(folder: str | Path) -> Autoencoder:
    """The autoencoder of a folder, or one that comes with whence, by its name."""
    place = _place(folder)
    tensors = read_tensors(place / WEIGHTS)
    config = read_config(place / CONFIG)
    record = {name: entry.value for name, entry in config.entries().items() if name != "rule"}
    about = About.from_dict(Stored(record, config.source))
    if "peak" in tensors:
        about = replace(about, peak=tuple(tensors.of("peak", (about.size,)).tolist()))
    kind = config["rule"]["name"].choice(("relu", "topk", "threshold", "gated"))
    k = config["rule"]["k"].whole(1, about.size) if kind == "topk" else None
    return autoencoder_of(tensors, kind, k, about)


def _place(folder: str | Path) -> Path:
    place = Path(folder)
    if place.is_dir():
        _check_is_one(place)
        return place
    bundled = Path(str(files("whence.features"))) / "bundled"
    names = sorted(path.name for path in bundled.glob("*") if path.is_dir())
    if str(folder) in names:
        return bundled / str(folder)
    known = f" Those that come with whence: {', '.join(names)}." if names else ""
    raise LoadError(f"there is no folder {str(folder)!r} with an autoencoder.{known}")


def _check_is_one(place: Path) -> None:
    """Raise where a folder holds several autoencoders in folders of their own."""
    if (place / WEIGHTS).exists():
        return
    several = sorted(str(file.parent) for file in place.glob(f"*/{WEIGHTS}"))
    if several:
        named = ", ".join(several[:MOST_NAMED])
        more = f" and {len(several) - MOST_NAMED} more" if len(several) > MOST_NAMED else ""
        raise LoadError(
            f"{str(place)!r} holds {len(several)} autoencoders, each in a folder of its own: name "
            f"one of {named}{more}."
        )


def read_config(file: Path) -> Stored:
    """A description as a Stored, whose fields are checked as they are asked for."""
    try:
        return Stored(parsed_json(file.read_text(encoding="utf-8")), repr(str(file)))
    except OSError as problem:
        why = problem.strerror or problem
        raise LoadError(f"cannot read {str(file)!r}: {why}.") from problem
    except ValueError as problem:
        raise LoadError(f"{str(file)!r} is no JSON: {problem}.") from problem


def weights_of(autoencoder: Autoencoder) -> dict[str, Tensor]:
    """The tensors by SAELens' names."""
    tensors = {
        "W_enc": autoencoder.encoder.T,
        "W_dec": autoencoder.decoder,
        "b_dec": autoencoder.decoder_bias,
    }
    rule = autoencoder.rule
    if isinstance(rule, Gated):
        gate = autoencoder.encoder_bias
        gated = {"b_gate": gate, "r_mag": rule.scale.log(), "b_mag": rule.shift + rule.scale * gate}
        return tensors | gated
    tensors["b_enc"] = autoencoder.encoder_bias
    if isinstance(rule, Threshold):
        tensors["threshold"] = rule.thresholds
    return tensors


def autoencoder_of(tensors: Tensors, kind: str, k: int | None, about: About) -> Autoencoder:
    """What ``weights_of`` gave, with the rule of this kind."""
    size, dim = about.size, about.dim
    encoder = tensors.of("W_enc", (dim, size)).T.contiguous()
    decoder = tensors.of("W_dec", (size, dim))
    decoder_bias = tensors.of("b_dec", (dim,))
    rule: Rule = Relu()
    if kind == "gated":
        bias = tensors.of("b_gate", (size,))
        scale = tensors.of("r_mag", (size,)).exp()
        rule = Gated(scale, tensors.of("b_mag", (size,)) - scale * bias)
    else:
        bias = tensors.of("b_enc", (size,))
    if kind == "threshold":
        rule = Threshold(tensors.of("threshold", (size,)))
    if kind == "topk":
        assert k is not None
        rule = TopK(k)
    return Autoencoder(encoder, bias, decoder, decoder_bias, rule, about)


def _described(rule: Rule) -> dict[str, Any]:
    if isinstance(rule, TopK):
        return {"name": "topk", "k": rule.k}
    return {"name": type(rule).__name__.lower()}
