"""matryoshka: nested dictionaries; the first few features must reconstruct by themselves.

    L = Σ_m ‖x − Σ_{j<m} a_j D_j − b‖² + α ‖e − ê‖²,   a = BatchTopK(E x + b)

The sizes ``m`` rise to that of the whole dictionary. A general feature that is needed by a small
dictionary is not split into special ones, which a large one alone would prefer.
"""

from __future__ import annotations

from torch import Tensor

from whence.features.choosing import Part
from whence.features.kernels import Sparse, squared
from whence.features.loss import Moment, Terms, Variant, revival
from whence.features.variants.batch_topk import kept, parts, rule, see


def loss(part: Part, moment: Moment) -> Terms:
    """The reconstruction of every nested dictionary."""
    at = part.at
    assert isinstance(at, Sparse)
    a = part.pre.relu()
    decoder = moment.parameters["decoder"]
    reconstruction = a.new_zeros(())
    error: Tensor = part.rows - moment.parameters["decoder_bias"]
    begin = 0
    for end in moment.settings.nested:
        slice_at, chosen = at.between(begin, end)
        error = error - slice_at.decode(a[chosen], decoder[begin:end])
        reconstruction = reconstruction + squared(error)
        begin = end

    return Terms(
        reconstruction=reconstruction,
        sparsity=0.0,
        auxiliary=revival(part, error, moment),
        activations=a,
        error=error,
    )


VARIANT = Variant(
    name="matryoshka",
    paper="Bussmann et al. 2025, Learning Multi-Level Features with Matryoshka Sparse Autoencoders",
    unit=True,
    needs_k=True,
    parts=parts,
    loss=loss,
    rule=rule,
    kept=kept,
    see=see,
)
