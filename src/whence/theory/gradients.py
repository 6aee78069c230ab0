"""The gradient of the single-layer model as a formula (Lopardo, Precioso & Garreau 2024).

It holds for every place, [CLS] included.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from whence.theory.heads import Heads


def gradient(heads: Heads, cls_term: bool = True) -> Float[np.ndarray, "place width"]:
    """∂f/∂e_t = Σ_k α_t [ W_vᵀ W_lᵀ + (W_l v_t − f_k) W_kᵀ q/√d_att ], and for [CLS] one term more.

    The query is made of e_[CLS], so its row needs + W_qᵀ Σ_s α_s (W_l v_s − f_k) k_s / √d_att. The
    slides state the theorem without it; ``cls_term=False`` does too. The factor 1/K is inside W_l
    here (``Heads.read``).

    >>> import whence
    >>> from whence import theory
    >>> model = whence.load("single-layer")
    >>> target = whence.Target("positive", index=1)
    >>> heads = theory.heads_of(model, model.encode("a fine film"), target)
    >>> gradient(heads).shape
    (4, 128)
    """
    alpha = heads.attention  # (head, place)
    value = heads.values(heads.e)  # (head, place): W_l v_t
    output = (alpha * value).sum(1, keepdims=True)  # (head, 1): f_k
    above = alpha * (value - output)  # (head, place): α_t (W_l v_t − f_k)

    through_values = np.einsum("ht,hv,hvw->tw", alpha, heads.read, heads.w_v)  # (place, width)
    through_keys = np.einsum("ht,hk,hkw->tw", above, heads.query, heads.w_k)  # (place, width)
    slopes = through_values + through_keys
    if cls_term:
        keys = np.einsum("hkw,tw->htk", heads.w_k, heads.e)  # (head, place, key)
        through_query = np.einsum("ht,htk,hkw->w", above, keys, heads.w_q)  # (width,)
        slopes[0] += through_query / np.sqrt(heads.w_q.shape[1])
    return slopes


def importances(heads: Heads) -> dict[str, Float[np.ndarray, " place"]]:
    """The white-box rows of the paper's comparison: each place's score by the paper's names.

    G-L1 and G-L2 are norms, as in the authors' code; G×I is ∂f/∂e_t · e_t with the positional
    encoding inside e_t.
    """
    g = gradient(heads)  # (place, width)
    return {
        "α-avg": heads.attention.mean(0),
        "α-max": heads.attention.max(0),
        "G-avg": g.mean(1),
        "G-L1": np.abs(g).sum(1),
        "G-L2": np.sqrt((g**2).sum(1)),
        "G×I": (g * heads.e).sum(1),
    }
