"""Formulas: of the single-layer attention classifier (gradients, the limits of LIME, exact values),
and how far two attentions are apart.

What is public here is imported when it is first used.

>>> from whence import theory
>>> round(theory.alpha(1, 5, None), 12)
0.4
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "Heads": "whence.theory.heads",
    "RatioOfSums": "whence.games.ratio",
    "Sigmas": "whence.theory.limits",
    "alpha": "whence.theory.limits",
    "corollary": "whence.theory.limits",
    "deletion_curve": "whence.theory.exact",
    "exact_banzhaf": "whence.theory.exact",
    "exact_lime": "whence.theory.exact",
    "exact_shapley": "whence.theory.exact",
    "first_order": "whence.theory.limits",
    "gradient": "whence.theory.gradients",
    "heads_of": "whence.theory.heads",
    "importances": "whence.theory.gradients",
    "jsd": "whence.theory.divergence",
    "kept_means": "whence.theory.limits",
    "kl": "whence.theory.divergence",
    "large_bandwidth": "whence.theory.limits",
    "mean_field": "whence.theory.limits",
    "population_lime": "whence.theory.limits",
    "positional_encoding": "whence.models.single_layer",
    "ratio_of": "whence.theory.heads",
    "sigmas": "whence.theory.limits",
    "single_layer_of": "whence.theory.heads",
    "talk": "whence.theory.limits",
}
__all__ = [
    "Heads",
    "RatioOfSums",
    "Sigmas",
    "alpha",
    "corollary",
    "deletion_curve",
    "exact_banzhaf",
    "exact_lime",
    "exact_shapley",
    "first_order",
    "gradient",
    "heads_of",
    "importances",
    "jsd",
    "kept_means",
    "kl",
    "large_bandwidth",
    "mean_field",
    "population_lime",
    "positional_encoding",
    "ratio_of",
    "sigmas",
    "single_layer_of",
    "talk",
]

if TYPE_CHECKING:
    from whence.games.ratio import RatioOfSums
    from whence.models.single_layer import positional_encoding
    from whence.theory.divergence import jsd, kl
    from whence.theory.exact import deletion_curve, exact_banzhaf, exact_lime, exact_shapley
    from whence.theory.gradients import gradient, importances
    from whence.theory.heads import Heads, heads_of, ratio_of, single_layer_of
    from whence.theory.limits import (
        Sigmas,
        alpha,
        corollary,
        first_order,
        kept_means,
        large_bandwidth,
        mean_field,
        population_lime,
        sigmas,
        talk,
    )


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'whence.theory' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
