"""topk: the k largest pre-activations of each row are active; nothing else makes it sparse.

    a = TopK(E x + b)          L = ‖x − s‖² + α ‖e − ê‖²

``ê`` is the error ``e = x − s`` as dead features would rebuild it, so that they get a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from whence.features.choosing import Part, largest_in_rows
from whence.features.loss import (
    Moment,
    Terms,
    Trained,
    Variant,
    encoder_of,
    missed,
    revival,
)
from whence.features.rules import Rule, TopK


def parts(rows: Tensor, moment: Moment) -> Iterator[Part]:
    """The k largest of each row, and the largest dead ones."""
    k = moment.settings.k
    assert k is not None
    yield largest_in_rows(rows, encoder_of(moment), k, moment.wanted(rows.shape[1]))


def loss(part: Part, moment: Moment) -> Terms:
    """Reconstruction, and what brings dead features back."""
    a = part.pre.relu()
    reconstruction, error = missed(part, a, moment.parameters)
    return Terms(
        reconstruction=reconstruction,
        sparsity=0.0,
        auxiliary=revival(part, error, moment),
        activations=a,
        error=error,
    )


def rule(trained: Trained) -> Rule:
    """The same as in training."""
    assert trained.settings.k is not None
    return TopK(trained.settings.k)


VARIANT = Variant(
    name="topk",
    paper="Gao et al. 2024, Scaling and evaluating sparse autoencoders",
    unit=True,
    needs_k=True,
    parts=parts,
    loss=loss,
    rule=rule,
)
