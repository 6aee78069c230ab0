"""What the files of a checkpoint say, read and checked before anything is built from them.

A checkpoint is material from elsewhere. Its files may be damaged, may be far larger than what they
describe, and may direct transformers to read other files. So the few files that decide what is
read are read here first: within limits, and without running anything.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from whence.core.errors import LoadError

CONFIG = "config.json"
SAFE = "model.safetensors"
SAFE_INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
ADAPTER = "adapter_config.json"
PICKLE_ENDINGS = (".bin", ".pt", ".pth")

# Far above every file that is in use (the largest tokenizers have some 35 MB, indices 10).
LARGEST_JSON = 64_000_000
LARGEST_TOKENIZER = 512_000_000
DEEPEST_JSON = 100
BYTES_OF_A_PICKLED_TENSOR = 100
LONGEST_LINE = 300

# The path of a checkpoint's file, or None where it has no such file.
Find = Callable[[str], Path | None]


@dataclass(frozen=True)
class Stored:
    """How much the weights on disk hold: an upper bound on what a model is built from."""

    tensors: int
    numbers: int
    largest_dimension: int


# ---------------------------------------------------------------------- where the files are


def files_of(source: Path | str, revision: str | None) -> Find:
    """How to find a file of a folder, or of an id on the hub (in the cache, or fetched)."""
    if isinstance(source, Path):
        return lambda name: _in_folder(source, name)

    from transformers.utils.hub import cached_file

    def find(name: str) -> Path | None:
        path = cached_file(
            source,
            name,
            revision=revision,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        return None if path is None else Path(path)

    return find


def commit_of(config_file: Path | None, revision: str | None) -> str | None:
    """The commit whose snapshot the cache of the hub gave, so that all files are of that one."""
    if config_file is None:
        return revision
    snapshot = config_file.parent
    return snapshot.name if snapshot.parent.name == "snapshots" else revision


def _in_folder(folder: Path, name: str) -> Path | None:
    """A file that is there; a pipe or a device would be read for ever.

    Links are followed: the hub's cache is made of them.
    """
    path = folder / name
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise LoadError(f"{str(path)!r} is no file that can be read.")
    return path


# ---------------------------------------------------------------------- what they say


def read_json(path: Path, largest: int = LARGEST_JSON) -> dict[str, Any]:
    """The mapping in a JSON file of limited size and depth."""
    size = path.stat().st_size
    if size > largest:
        raise LoadError(f"{str(path)!r} has {size:,} bytes, more than the {largest:,} it may have.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise LoadError(
            f"{str(path)!r} cannot be read as JSON ({type(problem).__name__}): "
            "the file is damaged; fetch or save it again."
        ) from problem

    if not isinstance(content, dict):
        raise LoadError(
            f"cannot use {str(path)!r}: it holds a {type(content).__name__} and not a mapping."
        )
    if _depth_exceeds(content, DEEPEST_JSON):
        raise LoadError(f"{str(path)!r} is nested more than {DEEPEST_JSON} levels deep.")
    return content


def _depth_exceeds(content: Any, limit: int) -> bool:
    """Level by level, as recursion is what a deep file would break."""
    level = [content]
    for _ in range(limit):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [v for v in item.values() if isinstance(v, (dict, list))]
            elif isinstance(item, list):
                below += [v for v in item if isinstance(v, (dict, list))]
        if not below:
            return False
        level = below
    return True


def refuse_adapter(find: Find, where: str) -> None:
    """An adapter changes the model that it is laid on: it is never left out without a word."""
    path = find(ADAPTER)
    if path is None:
        return
    base = read_json(path).get("base_model_name_or_path")
    named = f" for {base!r}" if isinstance(base, str) and base else ""
    raise LoadError(
        f"{where} holds an adapter{named} ({ADAPTER}), which is not loaded here. Merge it: "
        "PeftModel.from_pretrained(base, adapter).merge_and_unload() of peft, then "
        "save_pretrained(folder) with the tokenizer; or pass the live model to load."
    )


# ---------------------------------------------------------------------- its weights


def weight_files(
    find: Find, config: dict[str, Any], names: Iterable[str], where: str, allow_pickle: bool
) -> list[Path]:
    """The files that transformers will read the weights from, in its own order of preference.

    ``names`` are all that a folder holds, as far as that is known. Only safetensors inside the
    checkpoint pass, and pickles where they are allowed.
    """
    named = config.get("transformers_weights")
    if named is not None:
        raise LoadError(
            f"config.json of {where} names the file of its weights (transformers_weights "
            f"{short(named)}), which is not followed; rename that file to {SAFE}."
        )
    for name in names:
        if name.startswith("shard-") and "-model-" in name:
            raise LoadError(
                f"{where} holds a distributed checkpoint ({name}); load it with transformers and "
                "save it whole with model.save_pretrained(folder)."
            )

    path = find(SAFE)
    if path is not None:
        return [path]
    path = find(SAFE_INDEX)
    if path is not None:
        return _listed(find, path, where, (".safetensors",))

    if allow_pickle:
        path = find(PICKLE)
        if path is not None:
            return [path]
        path = find(PICKLE_INDEX)
        if path is not None:
            return _listed(find, path, where, PICKLE_ENDINGS)
    raise _without_weights(find, names, where, allow_pickle)


def _listed(find: Find, index: Path, where: str, endings: tuple[str, ...]) -> list[Path]:
    """The files that an index names, each inside the checkpoint and of the right kind."""
    content = read_json(index)
    weights = content.get("weight_map")
    if not isinstance(weights, dict) or not weights:
        raise LoadError(f"{str(index)!r} has no 'weight_map' that names the files of the weights.")
    if not isinstance(content.get("metadata"), dict):
        raise LoadError(f"{str(index)!r} has no 'metadata', as an index of weights must have.")

    files = []
    for name in sorted({_checked_name(name, index, endings) for name in weights.values()}):
        path = find(name)
        if path is None:
            raise LoadError(f"{where} lacks {name!r}, which {index.name} says holds weights.")
        files.append(path)
    return files


def _checked_name(name: Any, index: Path, endings: tuple[str, ...]) -> str:
    kinds = " or ".join(f"*{ending}" for ending in endings)
    if not isinstance(name, str) or not name.endswith(endings):
        raise LoadError(
            f"{str(index)!r} says that weights are in {short(name)}; only {kinds} is read, "
            "as other files can run code. Save the model with model.save_pretrained(folder)."
        )
    if not is_inside(name):
        raise LoadError(
            f"{str(index)!r} says that weights are in {short(name)}; only files inside the "
            "checkpoint are read. Copy them there and name them without a path."
        )
    return name


def is_inside(name: str) -> bool:
    """Whether a relative name stays inside its folder, on any system.

    >>> is_inside("a.safetensors"), is_inside("../a.safetensors"), is_inside("C:\\\\a.safetensors")
    (True, False, False)
    """
    path = PurePosixPath(name)
    is_plain = name.isprintable() and "\\" not in name and ":" not in name
    return is_plain and not path.is_absolute() and ".." not in path.parts


def _without_weights(find: Find, names: Iterable[str], where: str, allow_pickle: bool) -> LoadError:
    names = sorted(names)
    others = [name for name in names if name.endswith(".safetensors")]
    pickles = [name for name in names if name.endswith(PICKLE_ENDINGS)]
    if not names:  # an id on the hub
        pickles = [name for name in (PICKLE, PICKLE_INDEX) if find(name) is not None]

    if pickles and not allow_pickle:
        return LoadError(
            f"{where} holds only a pickle ({pickles[0]}), which can run code "
            "when it is read. Save it with model.save_pretrained(folder) as safetensors, or, if "
            "you trust its source, load with allow_pickle=True."
        )
    if others or pickles:
        return LoadError(
            f"{where} has neither {SAFE} nor {SAFE_INDEX}, only {(others or pickles)[0]}; "
            "rename it if it holds the whole model."
        )
    return LoadError(f"{where} has a config.json and no weights (*.safetensors).")


def stored(files: list[Path]) -> Stored:
    """How much the weights hold, from the headers of the files alone."""
    tensors = numbers = largest = 0
    for path in files:
        if path.suffix != ".safetensors":
            # a pickle does not say: a byte for each number is the most that it can hold
            size = path.stat().st_size
            tensors += size // BYTES_OF_A_PICKLED_TENSOR
            numbers += size
            largest = max(largest, size)
            continue
        for shape in _shapes(path):
            tensors += 1
            numbers += math.prod(shape)
            largest = max([largest, *shape])
    return Stored(tensors, numbers, largest)


def _shapes(path: Path) -> list[list[int]]:
    """The shape of each tensor. That the file holds them all is checked by safetensors."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return [file.get_slice(key).get_shape() for key in file.keys()]  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as problem:
        reason = one_line(str(problem) or type(problem).__name__)
        raise LoadError(
            f"cannot read {str(path)!r} as safetensors ({reason}): "
            "the file is damaged or something else; fetch or save it again."
        ) from problem


def short(value: Any) -> str:
    """A value of a foreign file, for a message: one short line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def one_line(text: str) -> str:
    """The first line of a text that may repeat what a foreign file says: short, safe to print.

    >>> one_line("unknown \\x1b[31m\\nand more")
    'unknown \\\\x1b[31m'
    """
    lines = [line.strip() for line in text.strip().splitlines()]
    line = lines[0] if lines else ""
    if line.endswith(":") and len(lines) > 1:
        line = f"{line} {lines[1]}"
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"
