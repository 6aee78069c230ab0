"""Loading: a bundled name, a local folder, a hub id, or what the caller already has.

Safetensors only, and no code of the checkpoint's own, unless asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from whence.core.errors import LoadError, ModelError, Unsupported, WhenceError
from whence.models.building import no_larger_than
from whence.models.checkpoint import (
    CONFIG,
    Find,
    Stored,
    commit_of,
    files_of,
    one_line,
    read_json,
    refuse_adapter,
    stored,
    weight_files,
)
from whence.models.finding import known, source_of
from whence.models.heads import head_of, head_of_config
from whence.models.model import Model
from whence.models.numbers import check_config
from whence.models.token_ids import check_tokenizer

# A folder with none of these holds no tokenizer.
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "source.spm",
)


def load(
    model: Any,
    *,
    tokenizer: Any = None,
    image_processor: Any = None,
    dtype: str = "float32",
    device: str = "cpu",
    revision: str | None = None,
    allow_pickle: bool = False,
    allow_remote_code: bool = False,
) -> Model:
    """Load a model by bundled name, folder or hub id; or wrap a Hugging Face model.

    ``dtype`` is float32 by default, whatever the checkpoint is stored in: gradients in half
    precision lose the completeness that they are checked by. ``"auto"`` keeps the stored one. A
    live model keeps its own dtype and device. Checkpoints are read from safetensors only;
    ``allow_pickle`` and ``allow_remote_code`` let the checkpoint run code on this machine, so ask
    by name.

    >>> import whence
    >>> whence.load("sentiment").task
    'classification'
    """
    if not isinstance(model, (str, os.PathLike)):
        return _wrap(model, tokenizer, image_processor)

    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    name = str(model)
    source = source_of(name, is_path=not isinstance(model, str))
    dtype = _checked_dtype(dtype)
    with _clear(name):
        checked = _check_files(source, revision, name, allow_pickle, allow_remote_code)

    import transformers

    # an architecture of our own, which this makes known to transformers
    import_module("whence.models.single_layer")

    common = {"revision": checked.revision, "trust_remote_code": allow_remote_code}
    with _clear(name):
        config = transformers.AutoConfig.from_pretrained(source, **common)
    task, auto = head_of_config(config, name)
    with _clear(name), no_larger_than(checked.weights, checked.config, checked.where):
        hf, info = getattr(transformers, auto).from_pretrained(
            source,
            config=config,
            dtype=dtype,
            use_safetensors=None if allow_pickle else True,
            output_loading_info=True,
            **common,
        )
    _check_weights(info["missing_keys"], task.unused_weights, name)
    hf = _on_device(hf, device, name)

    if task.reads_image and not image_processor:
        image_processor = _image_processor(transformers, source, checked, common)
    if task.reads_text and not tokenizer:
        tokenizer = _tokenizer(transformers, source, name, checked, common)
    revision = checked.revision or getattr(config, "_commit_hash", None)
    return _checked(Model(hf, tokenizer, task.name, name, revision, image_processor))


def _wrap(hf: Any, tokenizer: Any, image_processor: Any) -> Model:
    """A model that the caller has loaded already."""
    import torch

    if isinstance(hf, Model):
        return hf
    # what ``torch.compile(model)`` gives holds the model itself, with the same weights
    hf = getattr(hf, "_orig_mod", hf)
    if not isinstance(hf, torch.nn.Module) or not hasattr(hf, "config"):
        raise LoadError(
            "load takes a name, a folder, a hub id or a Hugging Face model, "
            f"not a {type(hf).__name__}."
        )

    architecture = type(hf).__name__
    classes = [c.__name__ for c in type(hf).__mro__]
    task, _ = head_of(classes, hf.config, architecture)
    if task.reads_text and tokenizer is None:
        raise LoadError(
            f"{architecture} reads text: pass its tokenizer, load(model, tokenizer=tokenizer)."
        )
    name = getattr(hf.config, "_name_or_path", "") or architecture
    revision = getattr(hf.config, "_commit_hash", None)
    return _checked(Model(hf, tokenizer, task.name, name, revision, image_processor))


def _checked(model: Model) -> Model:
    """The model, if it can run and its tokenizer can say where a token stands in the text."""
    if any(p.is_meta for p in model.hf.parameters()):
        raise ModelError(
            "the model's weights are on the meta device, so it cannot run; "
            "load it onto a real device first."
        )
    tokenizer = model.tokenizer
    if tokenizer is not None and not getattr(tokenizer, "is_fast", False):
        raise Unsupported(
            f"{type(tokenizer).__name__} is a slow tokenizer without character offsets, so words "
            "cannot be found; use the fast one (AutoTokenizer.from_pretrained(…, use_fast=True)), "
            "or convert it to tokenizer.json."
        )
    return model


# ---------------------------------------------------------------------- its files


@dataclass(frozen=True)
class _Checked:
    """A checkpoint whose files may be built from: what they say, and where others of it are."""

    config: dict[str, Any]
    weights: Stored
    find: Find
    revision: str | None
    where: str


def _check_files(
    source: Path | str, revision: str | None, name: str, allow_pickle: bool, allow_code: bool
) -> _Checked:
    """Read what decides what is built and loaded, before transformers follows it."""
    is_folder = isinstance(source, Path)
    where = f"the folder {str(source)!r}" if is_folder else repr(name)
    find = files_of(source, revision)
    path = find(CONFIG)
    if path is not None and not is_folder:
        revision = commit_of(path, revision)
        find = files_of(source, revision)

    refuse_adapter(find, where)
    if path is None and is_folder:
        raise LoadError(f"{where} has no config.json, so it holds no Hugging Face model.")
    if path is None:  # transformers says why: no such model, no network, no access
        return _Checked({}, Stored(0, 0, 0), find, revision, where)

    config = read_json(path)
    names = [p.name for p in source.iterdir()] if isinstance(source, Path) else []
    weights = stored(weight_files(find, config, names, where, allow_pickle))
    check_config(config, weights, where, allow_code)
    for other in config.get("configuration_files") or []:
        other_path = find(other)
        if other_path is not None:
            check_config(read_json(other_path), weights, where, allow_code)
    return _Checked(config, weights, find, revision, where)


# ---------------------------------------------------------------------- its parts


def _checked_dtype(dtype: str) -> str:
    """The name of a type that torch knows, or ``auto``."""
    import torch

    name = str(dtype).removeprefix("torch.")
    if name != "auto" and not isinstance(getattr(torch, name, None), torch.dtype):
        raise LoadError(
            f"dtype {name!r} is not one of torch's; "
            "use 'float32', 'float64', 'bfloat16', 'float16' or 'auto'."
        )
    return name


def _check_weights(missing: Any, unused: tuple[str, ...], name: str) -> None:
    """Raise where the checkpoint lacks a weight that is used: transformers would draw it."""
    lacking = sorted(key for key in missing if not any(part in key for part in unused))
    if lacking:
        raise LoadError(
            f"the checkpoint {name!r} lacks weights that the model needs "
            f"({', '.join(lacking[:3])} …): they would be random."
        )


def _on_device(hf: Any, device: str, name: str) -> Any:
    try:
        return hf.to(device).eval()
    except (RuntimeError, AssertionError) as problem:
        raise LoadError(
            f"cannot load {name!r} onto the device {device!r}: {_first_line(problem)}"
        ) from problem


def _tokenizer(
    transformers: Any, source: Path | str, name: str, checked: _Checked, common: dict[str, Any]
) -> Any:
    if isinstance(source, Path) and not any((source / file).exists() for file in TOKENIZER_FILES):
        raise LoadError(
            f"the folder {str(source)!r} has no tokenizer (tokenizer.json); "
            "pass one with tokenizer=…."
        )
    with _clear(name, "the tokenizer of"):
        check_tokenizer(checked.find, checked.where)
        return transformers.AutoTokenizer.from_pretrained(source, **common)


def _image_processor(
    transformers: Any, source: Path | str, checked: _Checked, common: dict[str, Any]
) -> Any:
    """None where there is none: pixels can then be passed as an array."""
    path = checked.find("preprocessor_config.json")
    if path is not None:
        read_json(path)
    elif isinstance(source, Path):
        return None
    try:
        return transformers.AutoImageProcessor.from_pretrained(source, **common)
    except Exception:  # of any kind, from values that no processor can be made of
        return None


# ---------------------------------------------------------------------- what went wrong


@contextmanager
def _clear(name: str, part: str = "") -> Iterator[None]:
    """What is raised while loading, as one line that says which model and why.

    Of every kind: from values that nobody thought of, a family may raise anything.
    """
    try:
        yield
    except WhenceError:
        raise
    except Exception as problem:
        raise _not_loaded(name, part, problem) from problem
    except BaseException as problem:
        # a Rust package that gives up does so beside Exception, like an interrupt
        if type(problem).__name__ != "PanicException":
            raise
        raise _not_loaded(name, part, problem) from problem


def _not_loaded(name: str, part: str, problem: BaseException) -> LoadError:
    if "trust_remote_code" in str(problem):
        return LoadError(
            f"{name!r} brings its own code, which is not run unasked. "
            "If you trust its source, load with allow_remote_code=True."
        )
    if "weights_only" in str(problem):
        return LoadError(
            f"cannot load {name!r}: its pickle holds more than weights, which could run code and "
            "is never read here. Save the weights as safetensors: model.save_pretrained(folder)."
        )

    reason = _first_line(problem)
    if part:
        return LoadError(f"{part} {name!r} cannot be loaded: {reason} Pass one with tokenizer=….")
    is_offline = os.environ.get("HF_HUB_OFFLINE") not in (None, "", "0")
    if "ignore_mismatched_sizes" in reason:
        reason = "the weights have other shapes than its config.json says."
    if isinstance(source_of(name, is_path=False), Path):
        return LoadError(f"cannot load {name!r}: {reason}")
    if isinstance(problem, OSError) and is_offline:
        reason = (
            "it is no folder, no bundled model and not in the local cache. "
            "The hub was not asked: HF_HUB_OFFLINE is set."
        )
    return LoadError(f"cannot load {name!r}: {reason}{known()}")


def _first_line(problem: BaseException) -> str:
    """What a problem says, in one short sentence."""
    text = one_line(str(problem))
    if not text or isinstance(problem, (LookupError, ArithmeticError)):
        text = f"{type(problem).__name__} {text}".strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
