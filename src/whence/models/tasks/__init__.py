"""The tasks that whence knows, one small object each: a new one is a file here and a line below."""

from whence.models.tasks.answering import ANSWERING
from whence.models.tasks.bare import BARE
from whence.models.tasks.causal import CAUSAL
from whence.models.tasks.choice import CHOICE
from whence.models.tasks.classification import CLASSIFICATION
from whence.models.tasks.image import IMAGE
from whence.models.tasks.image_text import IMAGE_TEXT
from whence.models.tasks.masked import MASKED
from whence.models.tasks.next_sentence import NEXT_SENTENCE
from whence.models.tasks.seq2seq import SEQ2SEQ
from whence.models.tasks.tagging import TAGGING
from whence.models.tasks.task import Task

__all__ = ["TASKS", "Task"]

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        CLASSIFICATION,
        TAGGING,
        ANSWERING,
        CHOICE,
        NEXT_SENTENCE,
        CAUSAL,
        SEQ2SEQ,
        MASKED,
        IMAGE,
        IMAGE_TEXT,
        BARE,
    )
}
