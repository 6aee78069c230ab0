"""whence predict: what the model says, with probabilities."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, loaded, progress, show
from whence.cli.texts import encode, read_texts

EXAMPLE = 'Example: whence predict "dull and far too long" --json'
AT_ONCE = 64


def command(
    words: o.Words = None,
    model: o.ModelName = "sentiment",
    pair: o.Pair = None,
    at: o.At = None,
    file: o.File = None,
    overflow: o.ShortOverflow = "error",
    dtype: o.Dtype = "float32",
    device: o.Device = "cpu",
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Print the leading labels with probabilities.

    Of a language model these are the next tokens.
    """
    del debug
    from whence.core.errors import TargetError
    from whence.views.terminal import prediction_view

    lines = read_texts(words or [], file)
    with loaded(model, dtype, device) as m:
        if m.kind.fills_a_mask != (at is not None):
            raise TargetError(
                "--at N names the unit that a masked language model fills; it goes with such a model, and only with it."
            )
        for first in range(0, len(lines), AT_ONCE):
            some = lines[first : first + AT_ONCE]
            with progress(f"text {first + 1} of {len(lines)}" if len(lines) > 1 else "predict"):
                passages = [encode(m, line, pair=pair, overflow=overflow) for line in some]
                passages = passages if at is None else [m.fill(p, at) for p in passages]
                predictions = [m.prediction(row) for row in m.logits(passages)]
            for line, p in zip(some, predictions, strict=True):
                found = dict(p.probabilities)
                if as_json:
                    emit_json({"text": line.content, "label": p.label, "probabilities": found})
                else:
                    show(
                        lambda _, line=line, found=found: prediction_view(
                            found, line.content if len(lines) > 1 else None
                        )
                    )
