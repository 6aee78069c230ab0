"""whence predict: what the model says, with probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from whence.cli import options as o
from whence.cli.reports import BadLines, Encoded
from whence.cli.running import emit_json, loaded, progress, show
from whence.cli.texts import encode, label_of, naming, own_pair, read_texts

if TYPE_CHECKING:
    from whence.core.passage import Passage
    from whence.models.model import Model
    from whence.models.places import Tag

EXAMPLE = 'Example: whence predict "dull and far too long" --json'
# texts between two prints
AT_ONCE = 64


def command(
    words: o.Words = None,
    model: o.ModelName = "sentiment",
    pair: o.Pair = None,
    reply: o.Reply = None,
    at: o.At = None,
    file: o.File = None,
    text: o.TextOfFile = None,
    overflow: o.ShortOverflow = "error",
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Print what the model says: the leading labels with their probabilities.

    For a language model these are the likeliest next tokens, for a token classifier the tag of
    each word.
    """
    del debug
    second = o.second_text(pair)
    from whence.core.target import Target

    lines = read_texts(words or [], file, text, second)
    second = own_pair(lines, second)
    with loaded(model, dtype, device) as loaded_model:
        _check_at(loaded_model, at)
        tags_every_word = loaded_model.kind.tags_words and at is None

        def predicted(some: Sequence[Encoded]) -> list[dict[str, Any]]:
            passages = [passage for _, passage in some]
            if tags_every_word:
                return [_tags(loaded_model.tags(passage)) for passage in passages]
            logits = loaded_model.logits(passages)
            pairs = zip(logits, passages, strict=True)
            return [_label(loaded_model, row, passage) for row, passage in pairs]

        bad = BadLines(len(lines), as_json, verb="run through the model")
        for first in range(0, len(lines), AT_ONCE):
            batch: list[Encoded] = []
            with progress(label_of("predict", first, len(lines))):
                for line in lines[first : first + AT_ONCE]:
                    with bad.without(line):
                        passage = encode(
                            loaded_model, line, pair=second, reply=reply, overflow=overflow
                        )
                        if at is not None:
                            with naming(line):
                                passage = loaded_model.placed(passage, Target(at=at))
                        batch.append((line, passage))
                rows = list(bad.together(batch, predicted))
            for line, row in rows:
                bad.done += 1
                if as_json:
                    emit_json({"text": line.content, **row})
                else:
                    heading = line.content if len(lines) > 1 else None
                    _show(row, heading, loaded_model.says_tokens)
        bad.end()


def _check_at(model: Model, at: str | None) -> None:
    if model.kind.tags_words or model.kind.fills_a_mask == (at is not None):
        return
    from whence.core.errors import TargetError

    raise TargetError(
        "--at names the word that a masked language model fills in, or that a token classifier "
        "tags; it goes with such a model, and only with it."
    )


def _label(model: Model, logits: Any, passage: Passage) -> dict[str, Any]:
    """The leading labels of one text."""
    prediction = model.prediction(logits, passage)
    return {"label": prediction.label, "probabilities": dict(prediction.probabilities)}


def _tags(tags: Sequence[Tag]) -> dict[str, Any]:
    """The tag of each word of one text."""
    rows = []
    for tag in tags:
        label = tag.prediction.label
        chance = tag.prediction.probabilities.get(label)
        rows.append({"word": tag.word, "tag": label, "probability": chance})
    return {"words": rows}


def _show(row: dict[str, Any], heading: str | None, are_tokens: bool) -> None:
    from whence.views.tagging import tags_view
    from whence.views.terminal import prediction_view

    if "words" in row:
        show(lambda _: tags_view(row["words"], heading))
    else:
        show(lambda _: prediction_view(row["probabilities"], heading, are_tokens))
