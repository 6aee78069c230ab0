"""The guard: what a few short passes show of a model before anything is read from its inside.

Nothing is looked up in a list of families. For this very model object it is tried whether its
embeddings are one vector for each token, whether gradients reach them, whether it says the same
when its attention is made visible, whether the weights stand between the tokens that went in, and
which token the head reads. A need that a check denies is refused by name, with what still works.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import ModelError, Unsupported
from whence.core.registry import ANY_ATTENTION, GRADIENTS, Needs
from whence.core.request import Via
from whence.core.target import Target
from whence.models.conduct import (
    USE_GAMES,
    Finding,
    batch_mates,
    embeddings,
    padding,
    relative_difference,
    remembered,
    repeats,
    state,
    tolerance,
)
from whence.models.model import Model
from whence.models.readouts import Readout
from whence.models.sample import samples_of_two_lengths
from whence.trace.attention import can_observe
from whence.trace.lxmert import is_lxmert
from whence.trace.rows import speaking_kind
from whence.trace.trace import Trace, trace

USE_GRADIENTS = "Gradient methods and those that play (lime, shapley, occlusion) still work."

# A slope is compared with what small steps along it do. A network has kinks and roundings, so only
# what is wrong by more than half at every size of the step is called wrong.
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the embeddings' own size; some models are very steep
WRONG_BY = 0.5
TINY = 1e-30
# Of the largest slope: a row of attention with less is not read.
NO_SLOPE = 1e-6

EMBEDDED = Needs.EMBEDDINGS | Needs.EMBEDDING_GRADIENTS | Needs.RERUNS
DIFFERENTIATED = GRADIENTS | Needs.RERUNS | Needs.ATTENTION_GRAPH


def refusal(model: Model, needs: Needs, via: Via = "auto") -> Unsupported | None:
    """Why a method with these needs cannot be trusted on this model; None where it can.

    >>> import whence
    >>> from whence.core.registry import Needs
    >>> refusal(whence.load("sentiment"), Needs.ATTENTION) is None
    True
    """
    unseen = model.kind.unseen(model, needs)
    if unseen is not None:
        return Unsupported(unseen)
    for finding in _in_question(model, needs, via):
        if finding.holds is False:
            return Unsupported(_with_name(model, finding.says))
    return None


def _with_name(model: Model, says: str) -> str:
    """The sentence, which names the model."""
    name = type(model.hf).__name__
    return says if name in says else f"{name}: {says}"


def _in_question(model: Model, needs: Needs, via: Via) -> Sequence[Finding]:
    """The findings that methods with these needs rest on, each tried when it is asked for."""
    if model.kind.reads_text and model.kind.reads_image:
        return []  # of two streams, traces refuse by themselves what cannot be seen
    findings = []
    if needs & (EMBEDDED | DIFFERENTIATED):
        findings.append(embeddings(model))
    if needs & DIFFERENTIATED and findings[0].holds is not False:
        findings.append(gradients(model))
    if needs & (ANY_ATTENTION | Needs.ATTENTION_GRAPH) and via == "auto":
        findings.append(attention(model))
        if needs & Needs.ATTENTION_GRADIENTS and findings[-1].holds is not False:
            findings.append(attention_gradients(model))
        if model.kind.has_head and findings[-1].holds is not False:
            readout(model)  # which rows of attention speak; nothing is refused for it
    return findings


def check_model(model: Model, needs: Needs, via: Via = "auto") -> None:
    """Raise where what these needs rest on does not hold for this model."""
    problem = refusal(model, needs, via)
    if problem is not None:
        raise problem


def check_repeats(model: Model) -> None:
    """Raise for a model that gives two answers to one question: nothing can be explained there."""
    finding = repeats(model)
    if finding.holds is False:
        raise ModelError(_with_name(model, finding.says))


def findings(model: Model) -> list[Finding]:
    """Everything that can be tried on a model, in the order in which it matters."""
    tried = [repeats(model), state(model)]
    if tried[0].holds is False:
        return tried  # whatever else would be compared differs by that alone
    tried += [padding(model), batch_mates(model)]
    if not (model.kind.reads_text and model.kind.reads_image):
        tried += [embeddings(model)]
        if model.kind.has_head:
            tried += [gradients(model)]
        tried += [attention(model)]
        if model.kind.has_head:
            tried += [attention_gradients(model), readout(model)]
    return tried


# ---------------------------------------------------------------------- gradients


def gradients(model: Model) -> Finding:
    """Whether gradients reach the embeddings, and point where small steps say."""
    return remembered(model, "gradients", _check_gradients)


def _check_gradients(model: Model) -> Finding:
    if embeddings(model).holds is False:
        return Finding("gradients", None, "not tried, as there are no embeddings to follow.")
    passage = samples_of_two_lengths(model)[-1]
    try:
        traced = trace(model, [passage], Target(), Needs.EMBEDDING_GRADIENTS)
    except (Unsupported, ModelError) as problem:
        return Finding("gradients", False, f"{problem} {USE_GAMES}")

    slope = traced.embedding_gradients[0]
    if float(slope.abs().max()) == 0:
        return Finding("gradients", None, "the target does not change along any embedding.")
    return _stepped(traced, slope)


def _stepped(traced: Trace, slope: Float[Tensor, "token dim"]) -> Finding:
    """Small steps up the slope: what the target does, against what the slope promises."""
    vectors = traced.embeddings[0]
    # each token by its own size: a norm may be steep at one that is nearly zero
    sizes = vectors.norm(dim=-1, keepdim=True)
    direction = slope / slope.norm(dim=-1, keepdim=True).clamp_min(TINY) * sizes
    promised = float((slope.double() * direction.double()).sum())
    rounding = torch.finfo(traced.model.dtype).eps * max(1.0, abs(float(traced.values[0])))
    points = [vectors + sign * step * direction for step in STEPS for sign in (1, -1)]
    values = iter(traced.values_at(0, torch.stack(points)).double().tolist())
    misses = []
    for step in STEPS:
        up, down = next(values), next(values)
        if abs(step * promised) < 100 * rounding and abs(up - down) < 100 * rounding:
            continue  # the step is lost in rounding, so it tells nothing
        change = (up - down) / (2 * step)
        misses.append(abs(change - promised) / max(abs(change), abs(promised)))

    if not misses:
        return Finding("gradients", None, "small steps are lost in rounding, so nothing is told.")
    miss = min(misses)
    if miss <= WRONG_BY:
        says = "gradients reach the embeddings and agree with small steps."
        return Finding("gradients", True, says, miss)
    return Finding(
        "gradients",
        False,
        "its gradients do not say how its output changes: small steps along the embeddings change "
        f"the target by {miss:.0%} more or less than they promise, as where a part of the model "
        f"is quantised or detached. {USE_GAMES}",
        miss,
    )


# ---------------------------------------------------------------------- attention


def attention(model: Model) -> Finding:
    """By which path attention can be seen without the model saying something else.

    ``choice`` is that path: "interface", "output" or "hooks"; None where there is none.
    """
    return remembered(model, "attention", _check_attention)


def _check_attention(model: Model) -> Finding:
    passage = samples_of_two_lengths(model, reply=True)[-1]
    to_compare = Needs.NOTHING if model.kind.has_head else Needs.HIDDEN_STATES
    own = _said(trace(model, [passage], needs=to_compare))
    reasons = []
    for via in _paths(model):
        try:
            seen = trace(model, [passage], needs=Needs.ATTENTION | to_compare, attention_via=via)
        except (Unsupported, ModelError) as problem:
            reasons.append(f"{problem} {_what_works(model)}")
            continue
        if not _are_shares(seen):
            reasons.append(
                "what it returns as attention weights are no shares: some are negative, or those "
                f"of one token sum to more than one. {_what_works(model)}"
            )
            continue
        difference = relative_difference(own, _said(seen))
        if difference <= tolerance(model.dtype):
            says = "with its attention made visible the model says the same."
            return Finding("attention", True, says, difference, choice=via)
        reasons.append(
            "with its attention made visible the model says something else "
            f"(by {difference:.1%}), so the weights are not those that it uses. "
            f"{_what_works(model)}"
        )
    return Finding("attention", False, reasons[0])


def _are_shares(traced: Trace) -> bool:
    """Whether weights are not negative and sum to one for each token, or to less (with a sink)."""
    allowed = tolerance(traced.model.dtype)
    for maps in traced.attentions.values():
        for weights in maps:
            sums = weights.double().sum(-1)
            if float(weights.min()) < -allowed or float(sums.max()) > 1 + allowed:
                return False
    return True


def _what_works(model: Model) -> str:
    """What is left where attention cannot be read."""
    has_gradients = model.kind.has_head and gradients(model).holds
    return USE_GRADIENTS if has_gradients else USE_GAMES


def _paths(model: Model) -> list[Via]:
    if is_lxmert(model.hf):
        return ["auto"]
    if can_observe(model.hf):
        return ["interface", "output"]
    return ["output"]


def _said(traced: Trace) -> Tensor:
    """The logits; of a model without a head, its last hidden states."""
    if traced.head is not None:
        return traced.logits
    return traced.hidden_states[-1]


def attention_gradients(model: Model) -> Finding:
    """Whether gradients reach the attention weights, and those of the embeddings stay the same."""
    return remembered(model, "attention-gradients", _check_attention_gradients)


def _check_attention_gradients(model: Model) -> Finding:
    name = "attention-gradients"
    if attention(model).holds is False or not gradients(model).holds:
        return Finding(name, None, "not tried, for want of attention or of gradients.")
    passage = samples_of_two_lengths(model)[-1]
    needs = Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
    try:
        own = trace(model, [passage], Target(), Needs.EMBEDDING_GRADIENTS)
        seen = trace(model, [passage], Target(), needs)
    except (Unsupported, ModelError) as problem:
        return Finding(name, False, f"{problem} {_what_works(model)}")

    difference = relative_difference(own.embedding_gradients, seen.embedding_gradients)
    if difference > tolerance(model.dtype):
        return Finding(
            name,
            False,
            "with its attention made visible its gradients are others "
            f"(by {difference:.1%}). {_what_works(model)}",
            difference,
        )
    says = "gradients reach the attention weights."
    return Finding(name, True, says, difference, choice=_rows_that_are_read(seen))


def _rows_that_are_read(traced: Trace) -> list[int]:
    """The rows of the last layer's attention that the target depends on."""
    kind = speaking_kind(tuple(traced.attention_gradients))
    last = traced.attention_gradients[kind][-1]
    of_row = last[0].abs().amax(dim=(0, 2)).double()
    largest = float(of_row.max())
    if largest == 0:
        return []
    return torch.nonzero(of_row > NO_SLOPE * largest).flatten().tolist()


# ---------------------------------------------------------------------- readout


def readout(model: Model) -> Finding:
    """Which token the head reads, told by the rows of attention that its logit depends on.

    ``choice`` is where it is read if that is another place than the task says, else None.
    """
    return remembered(model, "readout", _check_readout)


def _check_readout(model: Model) -> Finding:
    rows = attention_gradients(model).choice
    if not rows:
        return Finding("readout", None, "no gradient tells which token the head reads.")

    passage = samples_of_two_lengths(model)[-1]
    expected = model.kind.readout(model, passage)
    places = len(passage)
    if expected is None and len(rows) > 1:
        return Finding("readout", True, "the head reads the mean of all tokens, as expected.")
    if rows == [expected]:
        return Finding("readout", True, f"the head reads token {expected}, as expected.")

    if not _chooses_by_itself(model):
        return Finding(
            "readout",
            False,
            f"the output depends on {_in_words(rows, places)} of the last attention, and not on "
            f"token {expected} alone: something mixes tokens after it, unseen by attention.",
        )
    place = _named_place(rows, places)
    says = f"the head reads {_in_words(rows, places)}"
    expected_in_words = "the mean of all" if expected is None else f"token {expected}"
    return Finding(
        "readout",
        False,
        f"{says}, where its task would read {expected_in_words}; the rows of attention of "
        f"{_place_in_words(place)} speak for the output.",
        choice=place,
    )


def _chooses_by_itself(model: Model) -> bool:
    """Whether the head decides which token it reads; a target says so of tags and of words."""
    kind = model.kind
    return kind.has_classes and not kind.tags_words


def _named_place(rows: Sequence[int], places: int) -> Readout:
    if len(rows) > 1:
        return "all"
    if rows[0] == places - 1:
        return "last"
    return rows[0]


def _in_words(rows: Sequence[int], places: int) -> str:
    if len(rows) == 1:
        return f"token {rows[0]} of {places}"
    if len(rows) == places:
        return f"all {places} tokens"
    return f"{len(rows)} of {places} tokens"


def _place_in_words(place: Readout) -> str:
    if place == "all":
        return "all of them"
    if place == "last":
        return "the last token"
    return f"token {place}"
