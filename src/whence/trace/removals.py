"""The target when units are removed from a traced passage: a baseline replaces their embeddings.

A Game, which has no trace, does the same by its removals ``mean`` and ``zero``.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float

from whence.core.passage import Passage
from whence.trace.baselines import Baseline, baseline_embeddings
from whence.trace.trace import Trace

AT_ONCE = 32  # perturbed copies of a text whose embeddings are held together


def drops(
    trace: Trace, i: int, removed: Bool[np.ndarray, "mask unit"], baseline: Baseline
) -> Float[np.ndarray, " mask"]:
    """By how much the target of passage ``i`` falls when the marked units are removed."""
    own = trace.embeddings_of(i)
    instead = baseline_embeddings(trace, i, baseline)
    tokens = _tokens_of(trace.passages[i], removed)

    values = []
    for first in range(0, len(tokens), AT_ONCE):
        here = torch.from_numpy(tokens[first : first + AT_ONCE]).to(own.device)
        perturbed = torch.where(here[:, :, None], instead, own)
        values.append(trace.values_at(i, perturbed).double().cpu().numpy())
    return float(trace.values[i]) - np.concatenate(values)


def _tokens_of(
    passage: Passage, units: Bool[np.ndarray, "mask unit"]
) -> Bool[np.ndarray, "mask token"]:
    """Which tokens the marked units are made of."""
    of_text = np.flatnonzero(passage.unit_of >= 0)
    tokens = np.zeros((len(units), len(passage)), dtype=bool)
    tokens[:, of_text] = units[:, passage.unit_of[of_text]]
    return tokens
