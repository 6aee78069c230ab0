"""Which task a model does, told by the name of its class; and what cannot be read here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whence.core.errors import Unsupported
from whence.models.tasks import TASKS, Task

# Heads that end as a supported one does and are another thing, or that are asked for often: what
# to do instead.
INSTEAD = {
    "ForPreTraining": (
        "a head for pretraining has several outputs; load the same checkpoint by "
        "transformers.AutoModelForMaskedLM and pass it, if it has a masked LM."
    ),
    "XLNetForQuestionAnswering": "its answers come from a search over beams, not from one number "
    "for each token; use XLNetForQuestionAnsweringSimple.",
    "XLMForQuestionAnswering": "its answers come from a search over beams, not from one number "
    "for each token; use XLMForQuestionAnsweringSimple.",
    "FlaubertForQuestionAnswering": "its answers come from a search over beams, not from one "
    "number for each token; use FlaubertForQuestionAnsweringSimple.",
    "DoubleHeadsModel": "it has two heads; load its language model alone (…LMHeadModel).",
}
# What a configuration says where a model reads more than the words of a text.
BESIDE_THE_WORDS = {
    "max_2d_position_embeddings": "the places of words on a page",
    "dim_bbox": "the places of words on a page",
    "max_xpath_tag_unit_embeddings": "the tags of a web page",
    "max_num_rows": "a table",
}
# Parts of a configuration, and what a model with such a part reads.
SENSES = {"vision_config": "images", "audio_config": "sound", "video_config": "video"}
MODALITIES = {"image": "images", "audio": "sound", "time": "series of numbers", "text": "text"}


def supported_heads() -> str:
    """The heads that can be explained, as a list for an error message."""
    return ", ".join(task.title for task in TASKS.values() if task.title)


def head_of_config(config: Any, name: str) -> tuple[Task, str]:
    """The task of a checkpoint, and the class of transformers that loads it."""
    architectures = getattr(config, "architectures", None) or []
    if not architectures:
        raise Unsupported(
            f"{name!r} does not say in its config.json which head it has ('architectures'); "
            "load the model yourself and pass it."
        )
    return head_of(architectures[:1], config, name)


def head_of(classes: Sequence[str], config: Any, name: str) -> tuple[Task, str]:
    """The task of a model whose class has these names: its own, then those of its parents."""
    own = [c for c in classes if not c.endswith("PreTrainedModel")]
    _refuse_by_name(own, name)
    head = _by_ending(own, has_head=True) or _by_ending(own, has_head=False)
    if head is None:
        reads = _reads(own)
        what = f" (it reads {reads})" if reads not in ("", "text") else ""
        raise Unsupported(
            f"{name!r} has the head {classes[0]}, which has no target to explain here{what}. "
            f"Supported: {supported_heads()}."
        )
    task, _ = head
    _refuse_other_heads(task, classes[0], config, name)
    _refuse_other_senses(task, own, config, name)
    _refuse_one_side(task, classes[0], config, name)
    return head


def _refuse_by_name(classes: Sequence[str], name: str) -> None:
    for head in classes:
        for ending, instead in INSTEAD.items():
            if head.endswith(ending):
                raise Unsupported(
                    f"{name!r} has the head {head}, which is not supported: {instead}"
                )


def _by_ending(classes: Sequence[str], has_head: bool) -> tuple[Task, str] | None:
    """The first class that ends as a head does.

    A model without a head ends in "Model", as many with one do; so those with one come first.
    """
    tasks = [task for task in TASKS.values() if task.has_head == has_head]
    for name in classes:
        # the longest ending is the most exact one: LxmertForQuestionAnswering
        fitting = []
        for task in tasks:
            for ending, auto in task.heads.items():
                if name.endswith(ending):
                    fitting.append((len(ending), task, auto))
        if fitting:
            _, task, auto = max(fitting, key=lambda fit: fit[0])
            return task, auto
    return None


def _refuse_other_heads(task: Task, head: str, config: Any, name: str) -> None:
    """Of some families only the heads of one task can be read."""
    family = getattr(config, "model_type", "")
    for other in TASKS.values():
        if other is not task and family in other.families:
            raise Unsupported(
                f"{name!r} has the head {head}; of its family, only the one that answers "
                "questions can be explained here."
            )


def _refuse_other_senses(task: Task, classes: Sequence[str], config: Any, name: str) -> None:
    """A model that also sees or hears is no model of text, whatever its head is called."""
    if task.reads_text and task.reads_image:
        return
    head = classes[0]
    for entry, what in BESIDE_THE_WORDS.items():
        if task.reads_text and getattr(config, entry, None) is not None:
            raise Unsupported(
                f"{name!r} has the head {head}, which reads {what} beside the words, and that "
                f"cannot be given here. Supported, of text alone: {supported_heads()}."
            )
    reads = _reads(classes)
    if not task.reads_text:
        # some families of images leave the modalities as they are by default: text
        if reads not in ("", "images") and _main_input(classes) != "pixel_values":
            raise Unsupported(
                f"{name!r} has the head {head}, which reads {reads}. "
                f"Supported: {supported_heads()}."
            )
        return
    others = {what for entry, what in SENSES.items() if hasattr(config, entry)}
    # a class of text alone may have its modalities from a parent that sees (Gemma 3)
    if reads and _main_input(classes) != "input_ids":
        others |= set(reads.split(", ")) - {"text"}
    if others:
        listed = ", ".join(sorted(others))
        what = f"reads more than text ({listed})"
        if reads and "text" not in reads.split(", "):
            what = f"reads {listed}, and no text"
        raise Unsupported(
            f"{name!r} has the head {head}, which {what}. "
            f"Supported: {supported_heads()}.{_advice(config)}"
        )
    if head in _writers_of_sound():
        raise Unsupported(
            f"{name!r} has the head {head}, which writes sound, of which no token is a target "
            f"here. Supported: {supported_heads()}."
        )


def _writers_of_sound() -> set[str]:
    """The classes of transformers that make speech or music of a text."""
    from transformers.models.auto import modeling_auto

    names: set[str] = set()
    for table in ("TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM"):
        classes = getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES", {})
        for several in classes.values():
            names |= {several} if isinstance(several, str) else set(several)
    return names


def _advice(config: Any) -> str:
    """How the text part of a model that sees or hears can be explained alone."""
    if not any(hasattr(config, entry) for entry in SENSES):
        return ""
    reads = ""
    if hasattr(config, "get_text_config"):
        reads = str(getattr(config.get_text_config(), "model_type", ""))
    return f" Its text part ({reads}) alone can be loaded as a causal LM and passed."


def _reads(classes: Sequence[str]) -> str:
    """What a class of transformers says that it reads; empty where none says so."""
    modalities = _told(classes, "input_modalities")
    if modalities is None:
        return ""
    several = (modalities,) if isinstance(modalities, str) else tuple(modalities)
    if several == ("image",) and _main_input(classes) != "pixel_values":
        return f"images as {_main_input(classes)}"  # colours as the words of a vocabulary: ImageGPT
    return ", ".join(MODALITIES.get(each, each) for each in several)


def _main_input(classes: Sequence[str]) -> str:
    return str(_told(classes, "main_input_name") or "")


def _told(classes: Sequence[str], fact: str) -> Any:
    """A fact that the first class that transformers knows tells of itself."""
    try:
        return getattr(_class_of(classes), fact, None)
    except ImportError:  # the class needs a package that is not installed here
        return None


def _class_of(classes: Sequence[str]) -> Any:
    """The first of these classes that is one of transformers."""
    import transformers

    for name in classes:
        known = getattr(transformers, name, None)
        if known is not None:
            return known
    return None


def _refuse_one_side(task: Task, head: str, config: Any, name: str) -> None:
    """Only an encoder-decoder writes a reply."""
    if task.two_sided and not getattr(config, "is_encoder_decoder", False):
        raise Unsupported(
            f"{name!r} has the head {head}, and its configuration names no encoder and decoder: "
            f"it does not write a text from a text. Supported: {supported_heads()}."
        )
