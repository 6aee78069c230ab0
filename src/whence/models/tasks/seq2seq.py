"""A sequence-to-sequence language model: the next token of a reply to a text."""

from whence.models.batches import batch_with_replies
from whence.models.labels import vocabulary
from whence.models.limits import text_limit
from whence.models.readouts import decoder_position
from whence.models.tasks.task import NO_WINDOWS_OF_TOKENS, Task

SEQ2SEQ = Task(
    name="seq2seq",
    title="seq2seq",
    heads={
        "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
        "MarianMTModel": "AutoModelForSeq2SeqLM",
    },
    limit=text_limit,
    batch=batch_with_replies,
    two_sided=True,
    no_windows=NO_WINDOWS_OF_TOKENS,
    labels=vocabulary,
    generates=True,
    readout=decoder_position,
)
