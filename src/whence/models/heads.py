"""Which task a model does, told by the name of its class; and what cannot be read here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whence.core.errors import Unsupported
from whence.models.tasks import TASKS, Task

# encoder-decoders whose configuration says otherwise once such a head stands on their encoder
TWO_SIDED_FAMILIES = ("t5", "mt5", "umt5")


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
    head = _by_ending(own, has_head=True) or _by_ending(own, has_head=False)
    if head is None:
        raise Unsupported(
            f"{name!r} has the head {classes[0]}, which has no target to explain here. "
            f"Supported: {supported_heads()}."
        )
    task, _ = head
    _refuse_other_heads(task, classes[0], config, name)
    _refuse_other_senses(task, classes[0], config, name)
    return head


def _by_ending(classes: Sequence[str], has_head: bool) -> tuple[Task, str] | None:
    """The first class that ends as a head does.

    A model without a head ends in "Model", as many with one do; so those with one come first.
    """
    tasks = [task for task in TASKS.values() if task.has_head == has_head]
    for name in classes:
        for task in tasks:
            for ending, auto in task.heads.items():
                if name.endswith(ending):
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


def _refuse_other_senses(task: Task, head: str, config: Any, name: str) -> None:
    """A model that also sees or hears is no model of text, whatever its head is called."""
    is_multimodal = task.reads_text and (
        hasattr(config, "vision_config") or hasattr(config, "audio_config")
    )
    is_two_sided = getattr(config, "is_encoder_decoder", False)
    family = getattr(config, "model_type", "")
    if task.tags_words and (is_two_sided or family in TWO_SIDED_FAMILIES):
        raise Unsupported(
            f"{name!r} has the head {head} on one half of an encoder-decoder, which cannot be "
            "read here; token classification is explained on encoders and decoders."
        )
    lacks_a_side = task.two_sided and not is_two_sided
    if not is_multimodal and not lacks_a_side:
        return

    advice = ""
    if is_multimodal:
        reads = ""
        if hasattr(config, "get_text_config"):
            reads = str(config.get_text_config().model_type)
        advice = f" Its text part ({reads}) alone can be loaded as a causal LM and passed."
    raise Unsupported(
        f"{name!r} has the head {head}, which reads more than text. "
        f"Supported: {supported_heads()}.{advice}"
    )
