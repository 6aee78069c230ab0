"""Steering: a feature is clamped to a value at every token, while the model runs.

    x' = x + (c − a_j(x)) · decoder_j

So the reconstruction error stays where it is (it is added back, by construction), and a feature
that is clamped to its present value changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite, nan

from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError
from whence.features.autoencoder import Autoencoder
from whence.features.belonging import check_belongs, check_feature
from whence.models.model import Model
from whence.trace.edits import Edit, hidden
from whence.trace.hidden import editing

MULTIPLE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*[x×]")

Change = Callable[[Tensor], Tensor]


def clamp(
    autoencoder: Autoencoder, feature: int, to: str | float, *, peak: float | None = None
) -> Edit:
    """The edit of a trace that sets a feature to a value at every token.

    ``to`` is an activation (a_j · ‖decoder_j‖, as dashboards show it), or a multiple of the largest
    one seen, such as ``"5x"``; that is ``peak``, or what the autoencoder knows of its training
    data.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> edit = clamp(mirror(whence.load("writer"), layer=1), 17, 3.5)
    >>> edit.where, edit.layer
    ('hidden', 1)
    """
    check_feature(autoencoder, feature)
    value = value_of(autoencoder, feature, to, peak)
    about = autoencoder.about
    change = clamping(autoencoder, feature, value)
    # of a model with one side the edit need not name it, and may not name another
    kind = about.kind if about.kind in ("encoder", "decoder") else None
    return hidden(change, about.layer, f"feature {feature} to {value:g}", kind)


@contextmanager
def steer(
    model: Model,
    autoencoder: Autoencoder,
    feature: int,
    to: str | float,
    *,
    peak: float | None = None,
) -> Iterator[Edit]:
    """A block in which the model runs with a feature clamped, whoever runs it.

    ``model.predict``, ``model.hf.generate`` and ``whence.explain`` all see the clamped model. The
    model is then what it was before, to the last bit, also after an exception.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("writer")
    >>> autoencoder = mirror(model, layer=3)
    >>> with steer(model, autoencoder, 5, to=80.0):
    ...     steered = model.predict(["Once upon a time"])[0]
    >>> steered.probabilities == model.predict(["Once upon a time"])[0].probabilities
    False
    """
    check_belongs(model, autoencoder)
    edit = clamp(autoencoder, feature, to, peak=peak)
    kind = edit.kind if model.is_encoder_decoder else None
    with editing(model, autoencoder.about.layer, edit.change, kind):
        yield edit


def value_of(
    autoencoder: Autoencoder, feature: int, to: str | float, peak: float | None = None
) -> float:
    """The activation that is meant: a number as it is, and ``"5x"`` as a multiple of the largest.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> value_of(mirror(whence.load("writer"), layer=1), 17, "5x", peak=2.0)
    10.0
    """
    match = MULTIPLE.fullmatch(to.strip()) if isinstance(to, str) else None
    factor = 1.0 if match is None else peak_of(autoencoder, feature, peak)
    try:
        value = float(to if match is None else match[1]) * factor
    except ValueError:
        value = nan
    if not isfinite(value):
        raise InputError(
            f"a feature is clamped to an activation, such as 3.5, or to a multiple of the largest "
            f"one seen, such as 5x; not to {to!r}."
        )
    return value


def peak_of(autoencoder: Autoencoder, feature: int, peak: float | None = None) -> float:
    """The largest activation seen of a feature: as given, or in the training data."""
    if peak is not None and not (peak > 0 and isfinite(peak)):
        raise InputError(f"the largest activation (peak=…, --peak) is above zero, not {peak:g}.")
    if peak is None and autoencoder.about.peak is not None:
        peak = float(autoencoder.about.peak[feature])
    if peak is None:
        raise InputError(
            "this autoencoder does not know the largest activations of its training data, so a "
            "multiple of them means nothing: give the largest one (peak=…, --peak), or clamp to a "
            "number."
        )
    if not peak > 0:
        raise InputError(
            f"feature {feature} was never active in the training data (it is dead), so a multiple "
            "of its largest activation is 0: choose a live one, or clamp to a number."
        )
    return peak


def clamping(autoencoder: Autoencoder, feature: int, value: float) -> Change:
    """The change of hidden states that sets a feature to ``value``."""
    length = autoencoder.norms[feature]
    if not float(length) > 0:
        raise InputError(f"feature {feature} has no direction: its decoder row is zero.")
    return along(autoencoder, feature, value, autoencoder.decoder[feature] / length)


def along(
    autoencoder: Autoencoder, feature: int, value: float, unit: Float[Tensor, " dim"]
) -> Change:
    """The same along another direction of length 1: the state moves as far at every token."""
    length = autoencoder.norms[feature]

    def change(states: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch token dim"]:
        active = autoencoder.encode(states.float())[..., feature] * length
        moved = (value - active)[..., None] * unit
        return states + moved.to(states)

    return change
