"""Two kinds of models on the same texts: by how much one gets more of them right."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from whence.core.bootstrap import means_together, wilson
from whence.core.roar import Estimate


def gains(values: Float[np.ndarray, "text comparison"], seed: int = 0) -> list[Estimate]:
    """The mean of each comparison, from -1 to 1, with intervals over texts that hold together.

    A bootstrap of texts that both get right has no spread, and ten of them prove nothing of the
    eleventh. So an interval is never narrower than what texts that were not seen allow: of these
    there may be as many as Wilson's interval of "none of so many" holds, and they may be all won or
    all lost.

    >>> (none_differs,) = gains(np.zeros((10, 1)))
    >>> str(none_differs)
    '0.000 (-0.278 to 0.278)'
    """
    _, unseen = wilson(0.0, len(values))
    every = []
    for mean in means_together(values, seed):
        low, high = mean.interval or (-1.0, 1.0)
        low = min(low, mean.mean - unseen * (1 + mean.mean))
        high = max(high, mean.mean + unseen * (1 - mean.mean))
        every.append(Estimate(mean.mean, max(low, -1.0), min(high, 1.0)))
    return every
