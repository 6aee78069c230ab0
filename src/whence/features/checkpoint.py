"""A checkpoint: all arms of a training at one step, in one file, which is whole or not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from whence.core.errors import LoadError
from whence.core.writing import write_bytes
from whence.features.fitting import State, state_from, state_tensors
from whence.features.settings import Settings

NAME = "checkpoint.safetensors"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The states of all arms, and what was reported of them so far."""

    states: list[State]
    history: list[list[dict[str, Any]]]


def write_checkpoint(folder: Path, checkpoint: Checkpoint, request: str) -> None:
    """Write it beside the last one, which it then replaces."""
    from safetensors.torch import save

    tensors = {}
    for arm, state in enumerate(checkpoint.states):
        for name, tensor in state_tensors(state).items():
            tensors[f"{arm}/{name}"] = tensor.contiguous()
    metadata = {
        "request": request,
        "history": json.dumps(checkpoint.history),
        "checksum": _checksum(tensors),
    }
    write_bytes(folder / NAME, save(tensors, metadata))


def read_checkpoint(folder: Path, settings: Sequence[Settings], request: str) -> Checkpoint | None:
    """The checkpoint of a folder, if it has one; a damaged one, or another's, is an error."""
    from safetensors import SafetensorError, safe_open

    file = folder / NAME
    if not file.exists():
        return None
    advice = "Begin anew with --restart; the activations are kept."
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as problem:
        raise LoadError(f"{str(file)!r} is damaged: {problem}. {advice}") from problem
    if metadata.get("checksum") != _checksum(tensors):
        raise LoadError(f"{str(file)!r} is damaged: its numbers are not those written. {advice}")
    if metadata.get("request") != request:
        raise LoadError(f"{str(file)!r} is of another training. {advice}")
    states = []
    for arm, each in enumerate(settings):
        own = {
            name.removeprefix(f"{arm}/"): tensor
            for name, tensor in tensors.items()
            if name.startswith(f"{arm}/")
        }
        states.append(state_from(own, each))
    history: Any = json.loads(metadata["history"])
    return Checkpoint(states, history)


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.cpu().numpy().data)
    return digest.hexdigest()
