"""relu: reconstruction, plus λ times activations, each times the length of its direction.

    a = max(E x + b, 0)        L = ‖x − s‖² + λ Σ_j a_j ‖D_j‖

The length in the penalty makes the loss the same whatever the scale of a feature: ``E_j`` and
``b_j`` times ``c``, and ``D_j`` through ``c``, change nothing. So no length has to be fixed.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from whence.features.choosing import Part, above
from whence.features.kernels import lengths
from whence.features.loss import Moment, Terms, Variant, encoder_of, missed
from whence.features.rules import Relu


def parts(rows: Tensor, moment: Moment) -> Iterator[Part]:
    """All entries above zero."""
    yield from above(rows, encoder_of(moment), 0.0)


def loss(part: Part, moment: Moment) -> Terms:
    """The loss of *Scaling Monosemanticity*."""
    a = part.pre.relu()
    norms = lengths(moment.parameters["decoder"])

    reconstruction, error = missed(part, a, moment.parameters)
    return Terms(
        reconstruction=reconstruction,
        sparsity=moment.strength * part.at.weighed(a, norms),
        auxiliary=0.0,
        activations=a,
        error=error,
    )


VARIANT = Variant(
    name="relu",
    paper="Templeton et al. 2024, Scaling Monosemanticity",
    unit=False,
    needs_k=False,
    parts=parts,
    loss=loss,
    rule=lambda _: Relu(),
)
