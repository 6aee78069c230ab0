"""The guard: what a few short passes show of a model before anything is read from its inside.

Nothing is looked up in a list of families. For this very model object it is tried whether its
embeddings are one vector for each token, whether gradients reach them, whether it says the same
when its attention is made visible, whether the weights stand between the tokens that went in, and
which token the head reads. A need that a check denies is refused by name, with what still works.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import ModelError, OurMistake, Unsupported, WhenceError
from whence.core.passage import Passage
from whence.core.percent import percent
from whence.core.registry import ANY_ATTENTION, GRADIENTS, Needs
from whence.core.request import Via
from whence.core.target import Target
from whence.models.conduct import (
    USE_GAMES,
    Finding,
    batch_mates,
    embeddings,
    known,
    outputs_differ,
    padding,
    relative_difference,
    remember,
    remembered,
    repeats,
    state,
    tolerance,
)
from whence.models.model import Model
from whence.models.passing import IT_IS_OURS
from whence.models.readouts import Readout
from whence.models.sample import samples_of_two_lengths
from whence.trace.attention import can_observe
from whence.trace.edits import Edit
from whence.trace.first_look import look_at_embeddings, look_at_passes
from whence.trace.lxmert import is_lxmert
from whence.trace.mixing import mixed_beside_attention, slopes_of_tokens
from whence.trace.rows import speaking_kind
from whence.trace.trace import Head, MapsByKind, Trace, trace

# Said in the doctor's report where attention does not hold and gradients do.
USE_GRADIENTS = "Gradient methods and those that play (lime, shapley, occlusion) still work."

# A slope is compared with what small steps along it do, to both sides. Where two sizes of the step
# agree with each other, they know the slope, and a tenth off is wrong. A network has kinks and
# roundings: where no two agree, only what is off by half at every size is called wrong.
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the embeddings' own size; some models are very steep
FIRST_STEP = 1e-3  # where it agrees with the slope itself, no other is needed
AGREE_WITHIN = 0.02
WRONG_BY = 0.1
WRONG_BY_WHERE_STEPS_DISAGREE = 0.5
# Said by the doctor where small steps do what the gradients promise.
GRADIENTS_HOLD = "gradients reach the embeddings and agree with small steps."
TINY = 1e-30
# Of the largest slope: a row of attention with less is not read.
NO_SLOPE = 1e-6

# Traces of one text, for the checks that come right after each other: by the model's own attention,
# and by visible attention. They are not kept for longer: a trace holds the model, whose weights may
# be trained before the next check.
_shared: ContextVar[list[Trace] | None] = ContextVar("whence_guard_traces", default=None)

EMBEDDED = Needs.EMBEDDINGS | Needs.EMBEDDING_GRADIENTS | Needs.RERUNS
DIFFERENTIATED = GRADIENTS | Needs.RERUNS | Needs.ATTENTION_GRAPH


@contextmanager
def _sharing() -> Iterator[None]:
    """Let the checks of a block share traces."""
    token = _shared.set([])
    try:
        yield
    finally:
        _shared.reset(token)


def _pass_on(traced: Trace) -> None:
    """Keep a trace for the next checks of the block."""
    shared = _shared.get()
    if shared is not None:
        shared.append(traced)


def _shared_trace(model: Model, visible: bool = False) -> Trace | None:
    """The trace with gradients that a check ran just now, by the model's own attention or not."""
    for traced in _shared.get() or ():
        if traced.model is model and bool(traced.attention_gradients) == visible:
            return traced
    return None


def look_over(model: Model, needs: Needs, via: Via = "auto") -> None:
    """Try together all that methods with these needs rest on: one trace answers several questions.

    What is found is remembered, and asked for by ``check_repeats`` and ``refusal``.
    """
    if model.kind.unseen(model, needs) is not None:
        return  # each method is asked by itself what it can see
    with model.lock, _sharing():
        _look_first(model, needs, via)
        if repeats(model).holds is not False:
            _in_question(model, needs, via)


def _look_first(model: Model, needs: Needs, via: Via) -> None:
    """The questions that two passes answer, and the trace that the next checks share."""
    looks = bool(needs & (ANY_ATTENTION | Needs.ATTENTION_GRAPH)) and via == "auto"
    wanted = Needs.NOTHING
    if needs & DIFFERENTIATED or (looks and model.kind.has_head):
        wanted = Needs.EMBEDDING_GRADIENTS
    elif needs & EMBEDDED or looks:
        wanted = Needs.EMBEDDINGS
    if wanted == Needs.NOTHING:
        look_at_passes(model)
        return
    traced = look_at_embeddings(model, wanted)
    if traced is None or wanted != Needs.EMBEDDING_GRADIENTS:
        return
    _pass_on(traced)
    if looks and not _has_a_reply(model):
        _look_inside(model, traced)


def _look_inside(model: Model, own: Trace) -> None:
    """Attention made visible, at the text and at a step to both sides of it, in one batch.

    The steps tell of gradients. Where anything is amiss, the checks look at one after another.
    """
    if known(model, "gradients") or known(model, "attention"):
        return
    if not bool(own.embedding_gradients.any()):
        return
    direction, promised = _uphill(own)

    def stepped(vectors: Tensor) -> Tensor:
        step = FIRST_STEP * direction
        return torch.stack([vectors[0], vectors[1] + step, vectors[2] - step])

    needs = Needs.ATTENTION | Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
    try:
        seen = trace(
            model,
            [own.passages[0]] * 3,
            own.targets[0],
            needs,
            edits=[Edit("steps", "embeddings", stepped)],
            attention_via=_paths(model)[0],
        )
    except WhenceError:
        return
    if outputs_differ(own.logits, seen.logits[:1]) > tolerance(model.dtype):
        return
    changes = _slopes_of_steps(own, promised, [FIRST_STEP], seen.values[1:])
    if changes and _apart(changes[0], promised) <= AGREE_WITHIN:
        miss = _apart(changes[0], promised)
        remember(model, Finding("gradients", True, GRADIENTS_HOLD, miss))
        _pass_on(_without_steps(seen))


def _without_steps(traced: Trace) -> Trace:
    """The first row of a trace."""
    return replace(
        traced,
        passages=traced.passages[:1],
        targets=traced.targets[:1],
        embeddings=traced.embeddings[:1],
        head=Head(traced.logits[:1], traced.values[:1]),
        gradients=traced.embedding_gradients[:1],
        attentions=_first_rows(traced.attentions),
        attention_gradients=_first_rows(traced.attention_gradients),
    )


def _first_rows(maps: MapsByKind) -> MapsByKind:
    return {kind: tuple(m[:1] for m in of_layers) for kind, of_layers in maps.items()}


def refusal(model: Model, needs: Needs, via: Via = "auto") -> WhenceError | None:
    """Why a method with these needs cannot be trusted on this model; None where it can.

    >>> import whence
    >>> from whence.core.registry import Needs
    >>> refusal(whence.load("sentiment"), Needs.ATTENTION) is None
    True
    """
    unseen = model.kind.unseen(model, needs)
    if unseen is not None:
        return Unsupported(unseen)
    repeated = known(model, "repeats")
    if repeated is not None and repeated.holds is False:
        return ModelError(_with_name(model, repeated.says))
    with _sharing():
        in_question = _in_question(model, needs, via)
    for finding in in_question:
        if finding.holds is False:
            kind = OurMistake if IT_IS_OURS in finding.says else Unsupported
            return kind(_with_name(model, finding.says))
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
        if needs & ANY_ATTENTION and findings[-1].holds is not False:
            findings.append(mixing(model))
    return findings


def check_model(model: Model, needs: Needs, via: Via = "auto") -> None:
    """Raise where what these needs rest on does not hold for this model."""
    problem = refusal(model, needs, via)
    if problem is not None:
        raise problem


def check_attention(model: Model, via: Via = "auto") -> None:
    """Raise where attention cannot be shown; what else mixes tokens takes nothing from a look."""
    unseen = model.kind.unseen(model, Needs.ATTENTION)
    if unseen is not None:
        raise Unsupported(unseen)
    if via != "auto" or (model.kind.reads_text and model.kind.reads_image):
        return
    finding = attention(model)
    if finding.holds is False:
        raise Unsupported(_with_name(model, finding.says))


def check_repeats(model: Model) -> None:
    """Raise for a model that gives two answers to one question: nothing can be explained there."""
    finding = repeats(model)
    if finding.holds is False:
        raise ModelError(_with_name(model, finding.says))


def findings(model: Model) -> list[Finding]:
    """Everything that can be tried on a model, in the order in which it matters."""
    everything = EMBEDDED | DIFFERENTIATED | ANY_ATTENTION if model.kind.has_head else Needs.NOTHING
    if model.kind.reads_text and model.kind.reads_image:
        everything = Needs.NOTHING
    with model.lock, _sharing():
        _look_first(model, everything, "auto")
        return _every_finding(model)


def _every_finding(model: Model) -> list[Finding]:
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
        tried += [mixing(model)]
    return tried


# ---------------------------------------------------------------------- gradients


def gradients(model: Model) -> Finding:
    """Whether gradients reach the embeddings, and point where small steps say."""
    return remembered(model, "gradients", _check_gradients)


def _check_gradients(model: Model) -> Finding:
    """Said by the doctor where gradients could not be tried.

    ``the target does not change along any embedding.``
    """
    if embeddings(model).holds is False:
        return Finding("gradients", None, "not tried, as there are no embeddings to follow.")
    traced = _shared_trace(model)
    if traced is None:
        passage = samples_of_two_lengths(model)[-1]
        try:
            traced = trace(model, [passage], Target(), Needs.EMBEDDING_GRADIENTS)
        except (Unsupported, ModelError) as problem:
            return Finding("gradients", False, f"{problem} {USE_GAMES}")
        _pass_on(traced)

    if not bool(traced.embedding_gradients.any()):
        return Finding("gradients", None, "the target does not change along any embedding.")
    return _stepped(traced)


def _stepped(traced: Trace) -> Finding:
    """Small steps up the slope: what the target does, against what the slope promises.

    Said by the doctor of gradients, by small steps along them. ``small steps are lost in rounding,
    so nothing is told.``
    """
    direction, promised = _uphill(traced)
    at_once = _changes(traced, direction, promised, [FIRST_STEP])
    if at_once and _apart(at_once[0], promised) <= AGREE_WITHIN:
        return Finding("gradients", True, GRADIENTS_HOLD, _apart(at_once[0], promised))
    changes = _changes(traced, direction, promised, STEPS)
    if not changes:
        return Finding("gradients", None, "small steps are lost in rounding, so nothing is told.")
    miss, allowed = _miss(changes, promised)
    if miss <= allowed:
        return Finding("gradients", True, GRADIENTS_HOLD, miss)
    return Finding(
        "gradients",
        False,
        "its gradients do not say how its output changes: small steps along the embeddings change "
        f"the target by {percent(miss)} more or less than they promise, as where a part of the "
        f"model is quantised or detached. {USE_GAMES}",
        miss,
    )


def _uphill(traced: Trace) -> tuple[Float[Tensor, "token dim"], float]:
    """A step up the slope, as large as the embeddings are, and by how much it should change."""
    vectors, slope = traced.embeddings[0], traced.embedding_gradients[0]
    # each token by its own size: a norm may be steep at one that is nearly zero
    sizes = vectors.norm(dim=-1, keepdim=True)
    direction = slope / slope.norm(dim=-1, keepdim=True).clamp_min(TINY) * sizes
    return direction, float((slope.double() * direction.double()).sum())


def _changes(
    traced: Trace,
    direction: Float[Tensor, "token dim"],
    promised: float,
    steps: Sequence[float],
) -> list[float]:
    """The slopes that steps to both sides find."""
    vectors = traced.embeddings[0]
    points = [vectors + sign * step * direction for step in steps for sign in (1, -1)]
    values = traced.values_at(0, torch.stack(points))
    return _slopes_of_steps(traced, promised, steps, values)


def _slopes_of_steps(
    traced: Trace, promised: float, steps: Sequence[float], values: Float[Tensor, " point"]
) -> list[float]:
    """The slopes between values on both sides; a step that is lost in rounding tells none."""
    rounding = torch.finfo(traced.model.dtype).eps * max(1.0, abs(float(traced.values[0])))
    both_sides = values.double().reshape(-1, 2).tolist()
    slopes = []
    for step, (up, down) in zip(steps, both_sides, strict=True):
        if abs(step * promised) >= 100 * rounding or abs(up - down) >= 100 * rounding:
            slopes.append((up - down) / (2 * step))
    return slopes


def _miss(changes: Sequence[float], promised: float) -> tuple[float, float]:
    """By what share a slope is wrong, and how wrong it may be.

    ``changes`` are the slopes that steps found, from the largest step to the smallest.
    """
    pairs = [(_apart(*pair), pair) for pair in pairwise(changes)]
    disagreement, best = min(pairs, default=(1.0, ()))
    if disagreement <= AGREE_WITHIN:
        return min(_apart(change, promised) for change in best), WRONG_BY
    misses = [_apart(change, promised) for change in changes]
    return min(misses), WRONG_BY_WHERE_STEPS_DISAGREE


def _apart(some: float, other: float) -> float:
    """How far two slopes are apart, as a share of the larger."""
    largest = max(abs(some), abs(other))
    return abs(some - other) / largest if largest else 0.0


# ---------------------------------------------------------------------- attention


def attention(model: Model) -> Finding:
    """By which path attention can be seen without the model saying something else.

    ``choice`` is that path: "interface", "output" or "hooks"; None where there is none.
    """
    return remembered(model, "attention", _check_attention)


def _check_attention(model: Model) -> Finding:
    """Said by the doctor of attention weights, by what the model says with them visible.

    ``with its attention made visible the model says the same.``
    """
    own = None if _has_a_reply(model) else _shared_trace(model)
    if own is None:
        passage = samples_of_two_lengths(model, reply=True)[-1]
        own = trace(model, [passage], needs=_needs_to_compare(model))
    reasons = []
    for via in _paths(model):
        try:
            seen = _made_visible(model, own, via)
        except (Unsupported, ModelError) as problem:
            reasons.append(f"{problem} {_what_works(model)}")
            continue
        if not _are_shares(seen):
            reasons.append(
                "what it returns as attention weights are no shares: some are negative, or those "
                f"of one token sum to more than one. {_what_works(model)}"
            )
            continue
        difference = outputs_differ(_said(own), _said(seen))
        if difference <= tolerance(model.dtype):
            if seen.attention_gradients and _shared_trace(model, visible=True) is None:
                _pass_on(seen)
            says = "with its attention made visible the model says the same."
            return Finding("attention", True, says, difference, choice=via)
        reasons.append(
            "with its attention made visible the model says something else "
            f"(by {percent(difference, 1)}), so the weights are not those that it uses. "
            f"{_what_works(model)}"
        )
    return Finding("attention", False, reasons[0])


def _has_a_reply(model: Model) -> bool:
    """Whether attention is tried with a text on the decoder's side, which gradients are not."""
    return model.is_encoder_decoder and not model.kind.reads_twice


def _needs_to_compare(model: Model) -> Needs:
    return Needs.NOTHING if model.kind.has_head else Needs.HIDDEN_STATES


def _made_visible(model: Model, own: Trace, via: Via) -> Trace:
    """The same text with its attention visible, and with the gradients that ``own`` has.

    Where no gradient reaches the weights, they are seen without.
    """
    passage = own.passages[0]
    seen_before = _shared_trace(model, visible=True)
    if seen_before is not None and via == _paths(model)[0]:
        return seen_before
    if own.gradients is not None:
        needs = Needs.ATTENTION | Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
        try:
            return trace(model, [passage], Target(), needs, attention_via=via)
        except (Unsupported, ModelError):
            pass  # the check of attention gradients will say why
    needs = Needs.ATTENTION | _needs_to_compare(model)
    return trace(model, [passage], needs=needs, attention_via=via)


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
    """Said by the doctor where attention and gradients hold.

    ``gradients reach the attention weights.``
    """
    name = "attention-gradients"
    if attention(model).holds is False or not gradients(model).holds:
        return Finding(name, None, "not tried, for want of attention or of gradients.")
    needs = Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
    try:
        own = _shared_trace(model)
        if own is None:
            passage = samples_of_two_lengths(model)[-1]
            own = trace(model, [passage], Target(), Needs.EMBEDDING_GRADIENTS)
        seen = _shared_trace(model, visible=True)
        if seen is None:
            seen = trace(model, own.passages, Target(), needs)
    except (Unsupported, ModelError) as problem:
        return Finding(name, False, f"{problem} {_what_works(model)}")

    difference = relative_difference(own.embedding_gradients, seen.embedding_gradients)
    if difference > tolerance(model.dtype):
        return Finding(
            name,
            False,
            "with its attention made visible its gradients are others "
            f"(by {percent(difference, 1)}). {_what_works(model)}",
            difference,
        )
    says = "gradients reach the attention weights."
    return Finding(name, True, says, difference, choice=_rows_that_are_read(seen))


@dataclass(frozen=True)
class _Rows:
    """The rows of the last layer's attention that the target depends on, of a passage."""

    passage: Passage
    numbers: list[int]


def _rows_that_are_read(traced: Trace) -> _Rows:
    kind = speaking_kind(tuple(traced.attention_gradients))
    last = traced.attention_gradients[kind][-1]
    return _Rows(traced.passages[0], _steep(last[0].abs().amax(dim=(0, 2))))


def _steep(slopes: Float[Tensor, " token"]) -> list[int]:
    """The tokens along which there is a slope."""
    largest = float(slopes.max())
    if largest == 0:
        return []
    return torch.nonzero(slopes.double() > NO_SLOPE * largest).flatten().tolist()


# ---------------------------------------------------------------------- mixing


def mixing(model: Model) -> Finding:
    """Whether tokens meet through attention only."""
    return remembered(model, "mixing", _check_mixing)


def _check_mixing(model: Model) -> Finding:
    """Said by the doctor of tokens that may meet elsewhere than in attention.

    ``tokens meet through attention only.``
    """
    seen = attention(model)
    if not seen.holds or embeddings(model).holds is False:
        return Finding("mixing", None, "not tried, for want of attention or of embeddings.")
    if model.kind.has_head and gradients(model).holds is False:
        # quantised layers round all tokens by one scale, so each changes the others a little
        return Finding("mixing", None, "not tried, as the model may compute in coarse steps.")
    difference = mixed_beside_attention(model, seen.choice)
    if difference is None:
        return Finding("mixing", None, "its attention cannot be switched off, so nothing is told.")
    if difference <= tolerance(model.dtype):
        return Finding("mixing", True, "tokens meet through attention only.", difference)
    return Finding(
        "mixing",
        False,
        "it mixes tokens by something beside the attention that is seen, as convolutions and "
        "recurrent layers do: while every token looks at itself only, exchanging one still changes "
        f"the others (by {percent(difference, 1)}), so methods of attention would tell a part of "
        f"the story. {_what_works(model)}",
        difference,
    )


# ---------------------------------------------------------------------- readout


def readout(model: Model) -> Finding:
    """Which token the head reads, told by the rows of attention that its target depends on.

    ``choice`` is where it is read if that is another place than the task says, else None.
    """
    return remembered(model, "readout", _check_readout)


def _check_readout(model: Model) -> Finding:
    """Said by the doctor of the place that the head reads.

    ``the head reads token 0, as expected.``
    """
    read = attention_gradients(model).choice
    if read is None or not read.numbers:
        read = _rows_without_their_gradients(model)
    passage, rows = read.passage, read.numbers
    if not rows:
        return Finding("readout", None, "no gradient tells which token the head reads.")

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


def _rows_without_their_gradients(model: Model) -> _Rows:
    """The tokens that are read, where no gradient reaches the weights of attention.

    While each token looks at itself only, the output depends on those that the head reads.
    """
    passage = samples_of_two_lengths(model)[-1]
    if model.is_encoder_decoder or not gradients(model).holds or not mixing(model).holds:
        return _Rows(passage, [])
    slopes = slopes_of_tokens(model, passage, attention(model).choice)
    return _Rows(passage, [] if slopes is None else _steep(slopes))


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
    """Said where the rows of attention that speak for the output are not those expected.

    ``all of them``
    """
    if place == "all":
        return "all of them"
    if place == "last":
        return "the last token"
    return f"token {place}"
