"""Whether an autoencoder belongs to a model: its features mean nothing in another one."""

from __future__ import annotations

from whence.core.errors import InputError
from whence.features.autoencoder import Autoencoder
from whence.models.blocks import block_at
from whence.models.model import Model


def check_belongs(model: Model, autoencoder: Autoencoder) -> None:
    """Raise where the autoencoder was trained on other weights, or names a layer that is not there.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> of_the_writer = mirror(whence.load("writer"), layer=1)
    >>> check_belongs(whence.load("writer"), of_the_writer)
    >>> check_belongs(whence.load("sentiment"), of_the_writer)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    whence.core.errors.InputError: this autoencoder is of 'writer' (fingerprint ...
    """
    about = autoencoder.about
    if about.fingerprint and about.fingerprint != model.fingerprint:
        raise InputError(
            f"this autoencoder is of {about.model!r} (fingerprint {about.fingerprint}), whose "
            f"weights are not those of {model.name!r} (fingerprint {model.fingerprint}): its "
            "features mean nothing here. Load the model that it was trained on."
        )
    block_at(model, about.layer, about.kind if model.is_encoder_decoder else None)


def check_feature(autoencoder: Autoencoder, feature: int) -> None:
    """Raise for a feature that is not there.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> check_feature(mirror(whence.load("writer"), layer=1), 384)
    Traceback (most recent call last):
    whence.core.errors.InputError: there is no feature 384: the autoencoder has 384 (0 to 383).
    """
    is_number = isinstance(feature, int) and not isinstance(feature, bool)
    if not is_number:
        raise InputError(f"a feature is a whole number, not {feature!r}.")
    if not 0 <= feature < autoencoder.size:
        raise InputError(
            f"there is no feature {feature}: the autoencoder has {autoencoder.size} "
            f"(0 to {autoencoder.size - 1})."
        )
