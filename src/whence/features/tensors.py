"""Tensors of a safetensors file, asked for by name and shape: what is missing or wrong is said.

No other format is read: a pickle can run code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from whence.core.errors import InputError, LoadError
from whence.core.writing import write_bytes


@dataclass(frozen=True, eq=False)
class Tensors:
    """The tensors of a file, and its name for errors.

    >>> Tensors({"b": torch.zeros(3)}, "a.safetensors").of("b", (4,))
    Traceback (most recent call last):
    whence.core.errors.LoadError: 'a.safetensors': the tensor 'b' has the shape (3,), not (4,).
    """

    values: Mapping[str, Tensor]
    source: str

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def of(self, name: str, shape: tuple[int | None, ...]) -> Tensor:
        """A tensor in float32; where the ``shape`` says None, any size will do."""
        if name not in self.values:
            there = ", ".join(sorted(self.values)) or "none"
            raise self.wrong(f"the tensor {name!r} is missing; there are: {there}")
        tensor = self.values[name]
        fits = tensor.ndim == len(shape) and all(
            wanted in (None, size) for size, wanted in zip(tensor.shape, shape, strict=True)
        )
        if not fits:
            wanted = str(tuple("any" if size is None else size for size in shape))
            raise self.wrong(
                f"the tensor {name!r} has the shape {tuple(tensor.shape)}, "
                f"not {wanted.replace(chr(39), '')}"
            )
        tensor = tensor.to(torch.float32, copy=True)
        if not bool(torch.isfinite(tensor).all()):
            raise self.wrong(f"the tensor {name!r} has numbers that are not finite")
        return tensor.contiguous()

    def number(self, name: str) -> float:
        """A tensor with one number."""
        if name in self.values and self.values[name].numel() == 1:
            return float(self.of(name, tuple(self.values[name].shape)))
        return float(self.of(name, ()))

    def wrong(self, why: str) -> LoadError:
        """The error about this file."""
        return LoadError(f"{self.source!r}: {why}.")


def read_tensors(file: str | Path) -> Tensors:
    """All tensors of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = Path(file)
    if file.suffix != ".safetensors":
        raise InputError(
            f"{str(file)!r} is no safetensors file. Other formats can run code when they are "
            "read; write the tensors with safetensors.torch.save_file first."
        )
    if not file.is_file():
        raise LoadError(f"there is no file {str(file)!r}.")
    try:
        return Tensors(load_file(file), str(file))
    except (SafetensorError, OSError, ValueError) as problem:
        raise LoadError(f"{str(file)!r} cannot be read: {problem}.") from problem


def write_tensors(file: str | Path, tensors: Mapping[str, Tensor]) -> Path:
    """Write tensors as safetensors, wholly or not at all."""
    from safetensors.torch import save

    return write_bytes(file, save({name: value.contiguous() for name, value in tensors.items()}))
