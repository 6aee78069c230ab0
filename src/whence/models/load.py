"""Loading: a bundled name, a local folder, a hub id, or what the caller already has. Safetensors only, no remote code, unless asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from whence.core.errors import LoadError, ModelError, Unsupported
from whence.models.model import Model, Task

BUNDLED = Path(__file__).parent / "bundled"
HEADS: dict[str, tuple[Task, str]] = {
    "ForSequenceClassification": ("classification", "AutoModelForSequenceClassification"),
    "ForImageClassification": ("image", "AutoModelForImageClassification"),
    "LxmertForQuestionAnswering": ("image-text", "AutoModelForQuestionAnswering"),
    "ViltForQuestionAnswering": ("image-text", "AutoModelForVisualQuestionAnswering"),
    "ForMaskedLM": ("masked", "AutoModelForMaskedLM"),
    "ForCausalLM": ("causal", "AutoModelForCausalLM"),
    "LMHeadModel": ("causal", "AutoModelForCausalLM"),
    "ForConditionalGeneration": ("seq2seq", "AutoModelForSeq2SeqLM"),
    "MTModel": ("seq2seq", "AutoModelForSeq2SeqLM"),  # MarianMTModel
    "Model": ("bare", "AutoModel"),
}
READS_BOTH = ("lxmert", "vilt")  # families of which no head reads text alone
KNOWN_HEADS = "sequence classification, causal LM, seq2seq, masked LM, image classification, visual question answering (LXMERT, ViLT)"


def bundled() -> list[str]:
    """The names of the models inside the package."""
    return sorted(p.parent.name for p in BUNDLED.glob("*/config.json"))


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
    """Load a model by bundled name, folder or hub id; or wrap a Hugging Face model that the caller already has.

    ``dtype`` is float32 by default, whatever the checkpoint is stored in: gradients in half precision lose the completeness that
    they are checked by. ``"auto"`` keeps the stored one. A live model keeps its own dtype and device. Checkpoints are read from
    safetensors only; ``allow_pickle`` and ``allow_remote_code`` let the checkpoint run code on this machine, so ask by name.

    >>> import whence
    >>> whence.load("sentiment").task
    'classification'
    """
    if not isinstance(model, (str, os.PathLike)):
        return _wrap(model, tokenizer, image_processor)
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    name = str(model)
    source = _source(name, is_path=not isinstance(model, str))
    if isinstance(source, Path):
        _check_folder(source, allow_pickle)
    import torch
    import transformers

    dtype = str(dtype).removeprefix("torch.")
    if dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise LoadError(
            f"dtype {dtype!r} is not one of torch's; use 'float32', 'float64', 'bfloat16', 'float16' or 'auto'."
        )
    common = {"revision": revision, "trust_remote_code": allow_remote_code}
    import_module(
        "whence.models.single_layer"
    )  # an architecture of our own, which it makes known to transformers
    with _clear(name):
        config = transformers.AutoConfig.from_pretrained(source, **common)
    task, auto = _head(config, name)
    with _clear(name):
        hf, info = getattr(transformers, auto).from_pretrained(
            source,
            config=config,
            dtype=dtype,
            use_safetensors=None if allow_pickle else True,
            output_loading_info=True,
            **common,
        )
    missing = sorted(
        k for k in info["missing_keys"] if task != "bare" or "pooler" not in k
    )  # a bare model's pooler is not used
    if missing:
        raise LoadError(
            f"the checkpoint {name!r} lacks weights that the model needs ({', '.join(missing[:3])} …): they would be random."
        )
    try:
        hf = hf.to(device).eval()
    except (RuntimeError, AssertionError) as problem:
        raise LoadError(
            f"cannot load {name!r} onto the device {device!r}: {_first_line(problem)}"
        ) from problem
    if task in ("image", "image-text"):
        image_processor = image_processor or _image_processor(transformers, source, common)
    if task != "image":
        tokenizer = tokenizer or _tokenizer(transformers, source, name, common)
    return _finished(
        hf,
        tokenizer,
        image_processor,
        task,
        name,
        revision or getattr(config, "_commit_hash", None),
    )


def _wrap(hf: Any, tokenizer: Any, image_processor: Any) -> Model:
    import torch

    if isinstance(hf, Model):
        return hf
    if not isinstance(hf, torch.nn.Module) or not hasattr(hf, "config"):
        raise LoadError(
            f"load takes a name, a folder, a hub id or a Hugging Face model, not a {type(hf).__name__}."
        )
    task, _ = _task([c.__name__ for c in type(hf).__mro__], hf.config, type(hf).__name__)
    if task != "image" and tokenizer is None:
        raise LoadError(
            f"{type(hf).__name__} reads text: pass its tokenizer, load(model, tokenizer=tokenizer)."
        )
    name = getattr(hf.config, "_name_or_path", "") or type(hf).__name__
    return _finished(
        hf, tokenizer, image_processor, task, name, getattr(hf.config, "_commit_hash", None)
    )


def _finished(
    hf: Any, tokenizer: Any, image_processor: Any, task: Task, name: str, revision: str | None
) -> Model:
    if any(p.is_meta for p in hf.parameters()):
        raise ModelError(
            "the model's weights are on the meta device, so it cannot run; load it onto a real device first."
        )
    if tokenizer is not None and not getattr(tokenizer, "is_fast", False):
        raise Unsupported(
            f"{type(tokenizer).__name__} is a slow tokenizer without character offsets, so words cannot be found; "
            "use the fast one (AutoTokenizer.from_pretrained(…, use_fast=True)), or convert it to tokenizer.json."
        )
    return Model(hf, tokenizer, task, name, revision, image_processor)


@contextmanager
def _clear(name: str) -> Iterator[None]:
    """What transformers, torch or safetensors raise while loading, as one line that says which model and why."""
    from safetensors import SafetensorError

    try:
        yield
    except (
        OSError,
        ValueError,
        RuntimeError,
        LookupError,
        ImportError,
        AttributeError,
        TypeError,
        AssertionError,
        SafetensorError,
    ) as problem:
        raise _not_loaded(name, problem) from problem


def _source(name: str, is_path: bool) -> Path | str:
    if name in bundled() and not is_path:
        return BUNDLED / name
    folder = Path(name).expanduser()
    if name.strip() and folder.is_dir():
        return folder
    if folder.is_file():
        raise LoadError(
            f"{name!r} is a file; give the folder that holds config.json and the weights."
        )
    looks_like_a_path = (
        is_path
        or name.startswith((".", "/", "~", "\\"))
        or name.count("/") > 1
        or (os.sep != "/" and os.sep in name)
    )
    if looks_like_a_path or not name.strip():
        raise LoadError(f"no folder {name!r}.{_known()}")
    if "/" not in name and (close := get_close_matches(name, bundled(), n=1)):
        raise LoadError(f"no bundled model named {name!r}. Did you mean {close[0]!r}?{_known()}")
    return name


def _check_folder(folder: Path, allow_pickle: bool) -> None:
    if not (folder / "config.json").exists():
        raise LoadError(
            f"the folder {str(folder)!r} has no config.json, so it holds no Hugging Face model."
        )
    if not list(folder.glob("*.safetensors")):
        pickles = sorted(
            p.name for p in [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]
        )
        if pickles and not allow_pickle:
            raise LoadError(
                f"the folder {str(folder)!r} holds only a pickle ({pickles[0]}), which can run code when it is read. Save it with "
                "model.save_pretrained(folder) as safetensors, or, if you trust its source, load with allow_pickle=True."
            )
        if not pickles:
            raise LoadError(
                f"the folder {str(folder)!r} has a config.json and no weights (*.safetensors)."
            )


def _head(config: Any, name: str) -> tuple[Task, str]:
    architectures = getattr(config, "architectures", None) or []
    if not architectures:
        raise Unsupported(
            f"{name!r} does not say in its config.json which head it has ('architectures'); load the model yourself and pass it."
        )
    return _task(architectures[:1], config, name)


def _task(classes: Sequence[str], config: Any, name: str) -> tuple[Task, str]:
    """What a model does, by the name of its class, or of the nearest class that it is made from."""
    own = [c for c in classes if not c.endswith("PreTrainedModel")]
    found = next(
        (
            HEADS[ending]
            for c in own
            for ending in HEADS
            if ending != "Model" and c.endswith(ending)
        ),
        None,
    )
    if found is None and any(c.endswith("Model") for c in own):
        found = HEADS["Model"]
    reads = str(config.get_text_config().model_type) if hasattr(config, "get_text_config") else ""
    if found is None:
        raise Unsupported(
            f"{name!r} has the head {classes[0]}, which has no target to explain here. Supported: {KNOWN_HEADS}."
        )
    if found[0] != "image-text" and getattr(config, "model_type", "") in READS_BOTH:
        raise Unsupported(
            f"{name!r} has the head {classes[0]}; of its family, only the one that answers questions can be explained here."
        )
    is_multimodal = found[0] != "image" and any(
        hasattr(config, part) for part in ("vision_config", "audio_config")
    )
    if is_multimodal or (
        found[0] == "seq2seq" and not getattr(config, "is_encoder_decoder", False)
    ):
        text_only = (
            f" Its text part ({reads}) alone can be loaded as a causal LM and passed."
            if is_multimodal
            else ""
        )
        raise Unsupported(
            f"{name!r} has the head {classes[0]}, which reads more than text. Supported: {KNOWN_HEADS}.{text_only}"
        )
    return found


def _tokenizer(transformers: Any, source: Path | str, name: str, common: dict[str, Any]) -> Any:
    names = (
        "tokenizer.json",
        "vocab.txt",
        "vocab.json",
        "spiece.model",
        "tokenizer.model",
        "sentencepiece.bpe.model",
        "source.spm",
    )
    if isinstance(source, Path) and not any((source / n).exists() for n in names):
        raise LoadError(
            f"the folder {str(source)!r} has no tokenizer (tokenizer.json); pass one with tokenizer=…."
        )
    try:
        return transformers.AutoTokenizer.from_pretrained(source, **common)
    except Exception as problem:  # the tokenizers package raises plain Exceptions
        raise LoadError(
            f"the tokenizer of {name!r} cannot be loaded: {_first_line(problem)} Pass one with tokenizer=…."
        ) from problem


def _image_processor(transformers: Any, source: Path | str, common: dict[str, Any]) -> Any:
    """None where there is none: pixels can then be passed as an array."""
    if isinstance(source, Path) and not (source / "preprocessor_config.json").exists():
        return None
    try:
        return transformers.AutoImageProcessor.from_pretrained(source, **common)
    except (OSError, ValueError, ImportError):
        return None


def _not_loaded(name: str, problem: Exception) -> LoadError:
    reason, is_offline = (
        _first_line(problem),
        os.environ.get("HF_HUB_OFFLINE") not in (None, "", "0"),
    )
    if "trust_remote_code" in str(problem):
        return LoadError(
            f"{name!r} brings its own code, which is not run unasked. If you trust its source, load with allow_remote_code=True."
        )
    if "ignore_mismatched_sizes" in reason:
        reason = "the weights have other shapes than its config.json says."
    if (
        isinstance(problem, OSError)
        and is_offline
        and isinstance(_source(name, is_path=False), str)
    ):
        reason = "it is no folder, no bundled model and not in the local cache. The hub was not asked: HF_HUB_OFFLINE is set."
    return LoadError(f"cannot load {name!r}: {reason}{_known()}")


def _known() -> str:
    return f" Bundled models: {', '.join(bundled())}." if bundled() else ""


def _first_line(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    text = lines[0].strip() if lines else ""
    if not text or isinstance(problem, KeyError):
        text = f"{type(problem).__name__} {text}".strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
