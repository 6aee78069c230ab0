"""whence predict: what the model says, with probabilities."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, loaded, progress, show
from whence.cli.texts import encode, label_of, read_texts

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
    overflow: o.ShortOverflow = "error",
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Print what the model says: the leading labels with their probabilities.

    For a language model these are the likeliest next tokens.
    """
    del debug
    from whence.core.errors import TargetError

    lines = read_texts(words or [], file)
    with loaded(model, dtype, device) as loaded_model:
        if loaded_model.kind.fills_a_mask != (at is not None):
            raise TargetError(
                "--at N names the unit that a masked language model fills; "
                "it goes with such a model, and only with it."
            )
        for first in range(0, len(lines), AT_ONCE):
            batch = lines[first : first + AT_ONCE]
            with progress(label_of("predict", first, len(lines))):
                passages = []
                for line in batch:
                    passage = encode(loaded_model, line, pair=pair, reply=reply, overflow=overflow)
                    if at is not None:
                        passage = loaded_model.fill(passage, at)
                    passages.append(passage)
                predictions = [
                    loaded_model.prediction(row) for row in loaded_model.logits(passages)
                ]
            for line, prediction in zip(batch, predictions, strict=True):
                probabilities = dict(prediction.probabilities)
                if as_json:
                    emit_json(
                        {
                            "text": line.content,
                            "label": prediction.label,
                            "probabilities": probabilities,
                        }
                    )
                else:
                    heading = line.content if len(lines) > 1 else None
                    _show(probabilities, heading)


def _show(probabilities: dict[str, float], heading: str | None) -> None:
    from whence.views.terminal import prediction_view

    show(lambda _: prediction_view(probabilities, heading))
