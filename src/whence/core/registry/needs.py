"""What a method wants from the model, and what a metric wants to be given."""

from __future__ import annotations

from enum import Flag, auto


class Needs(Flag):
    """What a method or a metric wants.

    ``compare`` collects the needs of all methods and runs one trace, and one game for each removal.
    A metric needs a game, and either rankings or the scores themselves.
    """

    NOTHING = 0
    ATTENTION = auto()
    ATTENTION_GRADIENTS = auto()
    EMBEDDINGS = auto()
    EMBEDDING_GRADIENTS = auto()
    HIDDEN_STATES = auto()
    # values and gradients at other embeddings: a path, a cloud
    RERUNS = auto()
    # attention, the mean over heads: a twelfth of the memory
    HEAD_MEANS = auto()
    # a run of its own through attention that relevance passes back through
    ATTENTION_GRAPH = auto()
    # attention times the norm of the value that it weights, the mean over heads
    VALUE_WEIGHTED = auto()
    # no trace at all: the target's value when units are removed
    GAME = auto()
    # of metrics: orders of the units, "ranking unit", the most important first
    RANKINGS = auto()
    # of metrics: the scores of the units, "attribution unit"
    SCORES = auto()


GRADIENTS = Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
WHOLE_MAPS = Needs.ATTENTION | Needs.ATTENTION_GRADIENTS
ANY_ATTENTION = WHOLE_MAPS | Needs.HEAD_MEANS | Needs.VALUE_WEIGHTED
OF_METRICS = Needs.RANKINGS | Needs.SCORES
