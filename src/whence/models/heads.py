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
        reads = _reads(own, config)
        raise Unsupported(
            f"{name!r} has the head {classes[0]}{f', which reads {reads}' if reads else ''}; "
            f"it has no target to explain here. Supported: {supported_heads()}."
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
                raise Unsupported(f"{name!r} has the head {head}, which is not supported: {instead}")


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
    allowed = {"text"} if task.reads_text else {"images"}
    reads = _reads(classes, config)
    others = set(reads.split(", ")) - allowed if reads else set()
    if task.reads_text:
        others |= {what for entry, what in SENSES.items() if hasattr(config, entry)}
    if not others:
        return
    raise Unsupported(
        f"{name!r} has the head {head}, which reads more than text ({', '.join(sorted(others))}). "
        f"Supported: {supported_heads()}.{_advice(config)}"
        if task.reads_text
        else f"{name!r} has the head {head}, which reads {reads}. "
        f"Supported: {supported_heads()}."
    )


def _advice(config: Any) -> str:
    """How the text part of a model that sees or hears can be explained alone."""
    if not any(hasattr(config, entry) for entry in SENSES):
        return ""
    reads = ""
    if hasattr(config, "get_text_config"):
        reads = str(getattr(config.get_text_config(), "model_type", ""))
    return f" Its text part ({reads}) alone can be loaded as a causal LM and passed."


def _reads(classes: Sequence[str], config: Any) -> str:
    """What the first class that transformers knows says it reads; empty where none says so."""
    import transformers

    for name in classes:
        known = getattr(transformers, name, None)
        modalities = getattr(known, "input_modalities", None)
        if modalities is not None:
            several = (modalities,) if isinstance(modalities, str) else modalities
            return ", ".join(MODALITIES.get(each, each) for each in several)
    return ""


def _refuse_one_side(task: Task, head: str, config: Any, name: str) -> None:
    """Only an encoder-decoder writes a reply."""
    if task.two_sided and not getattr(config, "is_encoder_decoder", False):
        raise Unsupported(
            f"{name!r} has the head {head}, and its configuration names no encoder and decoder: "
            f"it does not write a text from a text. Supported: {supported_heads()}."
        )
