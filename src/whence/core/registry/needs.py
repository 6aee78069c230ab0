"""What a method wants from the model, and what a metric wants to be given."""

from __future__ import annotations

from enum import Flag, auto


class Needs(Flag):
    """What a method or a metric wants.

    ``compare`` collects the needs of all methods and runs one trace, and one game for each removal.
    A metric needs rankings or the scores themselves, and mostly something to hold them against: a
    game, or the units that are known to matter. Or it needs the explanation made again.
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
    # of metrics: the units that are known to matter, or that people marked: a mask, " unit"
    GOLD = auto()
    # of metrics: the same explanation under other seeds, on changed texts or changed models
    AGAIN = auto()


GRADIENTS = Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
WHOLE_MAPS = Needs.ATTENTION | Needs.ATTENTION_GRADIENTS
ANY_ATTENTION = WHOLE_MAPS | Needs.HEAD_MEANS | Needs.VALUE_WEIGHTED
OF_METRICS = Needs.RANKINGS | Needs.SCORES | Needs.GOLD | Needs.AGAIN

# all that a metric may need, with what its call is then given, in order
GIVEN_TO_METRICS = {
    Needs.GAME | Needs.RANKINGS: ("the game", "the rankings"),
    Needs.GAME | Needs.SCORES: ("the game", "the scores"),
    Needs.GOLD | Needs.RANKINGS: ("the gold units", "the rankings"),
    Needs.GOLD | Needs.SCORES: ("the gold units", "the scores"),
    Needs.SCORES: ("the scores",),
    Needs.AGAIN: ("the explanation", "the others"),
}

# What each need is, to a reader. Said of a method by what it needs.
LOOKS_AT = {
    Needs.ATTENTION: "attention weights",
    Needs.ATTENTION_GRADIENTS: "attention weights and their gradients",
    Needs.EMBEDDINGS: "embeddings",
    Needs.EMBEDDING_GRADIENTS: "gradients of the embeddings",
    Needs.HIDDEN_STATES: "hidden states",
    Needs.RERUNS: "the output and gradients at changed embeddings",
    Needs.HEAD_MEANS: "attention weights, averaged over heads",
    Needs.ATTENTION_GRAPH: "a run by rules of relevance",
    Needs.VALUE_WEIGHTED: "attention weights and value vectors",
    Needs.GAME: "the output when units are removed",
}

# Where methods look, and what that means; in the order of a list. Said above the methods of a
# group.
GROUPS = {
    "removal": "remove words and watch the output",
    "gradients": "how the output reacts to a small change of each word",
    "relevance": "the output, handed back through the layers to the words",
    "attention": "where the model looked, not what it concluded",
    "other": "something else inside the model",
    "control": "looks at nothing: what every other method must beat",
}


# What metrics ask, in the order of a list. Said above the metrics of a group.
METRIC_GROUPS = {
    "faithfulness": "does the output follow the words that the explanation names?",
    "gold": "does it name the words that are known to matter, or that people marked?",
    "again": "does it stay the same where it should, and change where it should?",
    "form": "what shape does it have? Says nothing of its truth",
}


def metric_group_of(needs: Needs) -> str:
    """The group of a metric that needs this.

    >>> metric_group_of(Needs.GAME | Needs.RANKINGS), metric_group_of(Needs.SCORES)
    ('faithfulness', 'form')
    """
    if needs & Needs.GAME:
        return "faithfulness"
    if needs & Needs.GOLD:
        return "gold"
    return "again" if needs & Needs.AGAIN else "form"


def group_of(needs: Needs) -> str:
    """The group of a method that needs this.

    >>> group_of(Needs.GAME), group_of(Needs.ATTENTION | Needs.EMBEDDINGS)
    ('removal', 'attention')
    """
    if needs & Needs.GAME:
        return "removal"
    if needs & Needs.ATTENTION_GRAPH:
        return "relevance"
    if needs & ANY_ATTENTION:
        return "attention"
    if needs & (Needs.EMBEDDING_GRADIENTS | Needs.RERUNS):
        return "gradients"
    return "other" if needs else "control"
