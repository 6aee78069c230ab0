"""Several outputs together, by methods that read attention: the mean over the outputs.

Attention has one row for each output and none for several of them, where a game or a gradient
explains the sum of their log-probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from whence.core.attribution import Attribution, Error
from whence.core.passage import Passage
from whence.core.registry import ANY_ATTENTION, Needs, find_method
from whence.core.target import Target

# Said of attention that is read for several outputs together.
NOTE = "the mean over {} outputs, as attention has a row for each of them and none for all"


def reads_rows(method: str) -> bool:
    """Whether a method reads the attention of one output, and so knows nothing of several."""
    needs = find_method(method).needs
    return bool(needs & ANY_ATTENTION) and not needs & Needs.GAME


def means_over_outputs(
    rows: Mapping[str, Sequence[Attribution]],
    explained: Sequence[int],
    target: Target,
    passage: Passage,
) -> tuple[Attribution, ...]:
    """What such methods say of a span: none where some of its outputs were not explained.

    ``passage`` has the units before the span, and ``target`` is the span, resolved.
    """
    places = [explained.index(step) for step in target.steps if step in explained]
    if len(places) < len(target.steps):
        return ()
    means = []
    for method, attributions in rows.items():
        if not reads_rows(method):
            continue
        own = [attributions[place] for place in places]
        units = len(passage.unit_spans)
        scores = np.mean([attribution.scores[:units] for attribution in own], axis=0)
        means.append(
            replace(
                own[0],
                passage=passage,
                units=passage.units,
                scores=scores,
                target=target,
                value=float(sum(attribution.value for attribution in own)),
                error=Error(note=NOTE.format(len(own))),
            )
        )
    return tuple(means)
