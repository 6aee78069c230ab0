"""context: which words of an output depend on its context, and which words of that caused them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Cost
from whence.core.coarser import coarser
from whence.core.context_use import (
    LARGE_CHANGE,
    MEASURES,
    NEUTRAL,
    SHORT,
    Measure,
    Rule,
    large_changes,
    measured,
    selected,
    threshold_of,
    usual_floor,
)
from whence.core.contextual import ContextUse, Dependence, Selection
from whence.core.errors import InputError, unknown_name
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.request import Request, wishes_for
from whence.core.target import OF_CONTRASTS, Reading, Reference, Target, log_probabilities
from whence.core.usual import METHOD_OF_WRITTEN
from whence.explaining.generate import rows_by_method
from whence.explaining.job import Progress
from whence.explaining.run import run, total_cost
from whence.explaining.sharing import Errand, notes_on_plan, shared_plan
from whence.games.game import check_is_model
from whence.generation.continuing import check_writes, given, written_by
from whence.models.chat import ChatUnits
from whence.models.contexts import prompts
from whence.models.model import Model
from whence.models.rivals import labels_at
from whence.models.writing import only_prompt, written_after

Methods = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
MOST_WITH_EVIDENCE = 5  # outputs, if nothing is said: each costs as much as a whole explanation
# Said of what a divergence is measured from, where read="kl" was asked for.
WITHOUT_CONTEXT = "the same output without context"
FEWEST_TO_STAND_OUT = 3  # of two scores, neither can be a standard deviation above their mean


def context(
    model: Model,
    input: str,
    context: str | Mapping[str, str],
    methods: Methods = METHOD_OF_WRITTEN,
    *,
    measure: Measure = "kl-divergence",
    rule: Rule = "tool",
    deviations: float | Literal["auto"] | None = "auto",
    most: int | None = None,
    least: float | None = None,
    continuation: str | Sequence[int] | None = None,
    max_new_tokens: int = 30,
    units: ChatUnits | None = None,
    separator: str | None = None,
    chat: bool | None = None,
    system: str | None = None,
    other_context: str | Mapping[str, str] | None = None,
    read: Reading = "probability",
    evidence: bool | None = None,
    seed: int = 0,
    budget: str | int | None = None,
    memory: str | int | float | None = None,
    rankings: int | None = None,
    steps: int | None = None,
    progress: Progress | None = None,
    **decoding: Any,
) -> ContextUse:
    """Find the words of an output that depend on the context, and what of it they rest on.

    The model reads ``context`` and ``input`` and writes (or ``continuation`` is what it wrote). The
    same output is then forced behind the input alone, and ``measure`` compares both runs at every
    token. A token depends on the context where it stands out: at mean + ``deviations`` standard
    deviations of this output's scores, and above the floor ``least`` (by default what a measure
    says where context takes a choice of two from even to 9 in 10; 0 for none). "auto" is 1.0, the
    rule of PECoRe, for an output of ten tokens or more. Of fewer, at most four could stand out, so
    each is judged by itself: by the floor, or where the context makes it four times as likely or as
    unlikely. ``most`` keeps the strongest few.

    Each of these tokens is attributed to the units of the context, by every method, as a contrast:
    why this token and not the one that would have been written without context? It is read as
    ``read``. Where both are the same token there is no contrast, and the token itself is read. With
    ``read="kl"`` no token is named: what is attributed is how far all that could stand there
    diverges from what could stand there without context, the number of ``kl-divergence``.

    ``context`` is a text, or documents by their names; then sentences are the units, else words.
    They and the input are joined by ``separator`` (by default a line break; a blank for
    encoder-decoders), or by an empty line in a message of a user where the model has a chat
    template (``chat=False`` if it is not to be used). ``other_context`` stands in the place of the
    context in the second run, which has none by default.

    ``evidence`` holds rankings against random ones: for the five strongest tokens by default, for
    all if True. The other options are those of ``whence.generate``.

    >>> import whence
    >>> model = whence.load("writer")
    >>> use = whence.context(model, "The movie was", "I hated it.", other_context="I hated it.")
    >>> use.scores.max(), use.selected
    (np.float64(0.0), ())
    """
    check_is_model(model)
    check_writes(model)
    if measure not in MEASURES:
        raise unknown_name("measure", measure, MEASURES)
    if read not in (*OF_CONTRASTS, "kl"):
        raise unknown_name("reading of a dependence", read, (*OF_CONTRASTS, "kl"))
    for name, number in (("deviations", deviations), ("least", least)):
        if isinstance(number, str) and (name, number) != ("deviations", "auto"):
            raise InputError(f"{name} is a number or 'auto', not {number!r}.")
        if number is not None and not isinstance(number, str) and not isfinite(number):
            raise InputError(f"{name} is a finite number, not {number}.")
    begun = time.perf_counter()
    both = prompts(
        model,
        input,
        context,
        units=units or ("word" if isinstance(context, str) else "sentence"),
        separator=separator,
        chat=chat,
        system=system,
        other=other_context,
    )
    prompt = both.with_context
    if continuation is None:
        follows = written_by(model, prompt, max_new_tokens, seed, decoding)
    elif decoding:
        raise InputError(
            f"the continuation is given, so nothing is decoded: leave out {', '.join(decoding)}."
        )
    else:
        follows = given(model, prompt, continuation)

    whole = written_after(
        model, replace(prompt, kind="word"), follows.ids, by_model=continuation is None
    )
    passage = replace(only_prompt(whole), kind=prompt.kind)
    bare = only_prompt(written_after(model, both.without, follows.ids))
    logits_without = model.output_logits(bare)
    outputs = _outputs(model, measure, whole, logits_without)
    floor = usual_floor(measure) if least is None else least
    selection = Selection(measure, rule, None, most, floor)
    if deviations != "auto":
        selection = replace(selection, deviations=deviations)
    elif _is_judged_token_by_token(len(outputs), selection):
        selection = replace(selection, factor=LARGE_CHANGE)
    else:
        selection = replace(selection, deviations=1.0)
    selection, numbers, notes = _selected(outputs, selection)

    rows, skipped, costs = {}, {}, [Cost(forwards=2)]
    if numbers:
        request = Request(
            wishes=wishes_for([methods] if isinstance(methods, str) else methods),
            seed=seed,
            memory=memory,
            budget=budget,
            rankings=rankings,
            steps=steps,
        )
        judged = _judged(outputs, numbers, evidence)
        targets = {n: _target(outputs[n], n, read, logits_without[n]) for n in numbers}
        if len(judged) < len(numbers):
            notes += (_about_evidence(len(judged), len(numbers), evidence),)
        runs = _runs(request, targets, judged)

        def errands(kind: str) -> list[Errand]:
            own = coarser(passage, kind)
            return [Errand(asked, [own]) for asked in runs.values()]

        shared = shared_plan(model, passage, errands, time.perf_counter() - begun)
        passage = coarser(passage, shared.units)
        by_output = {}
        for (these, asked), plan in zip(runs.items(), shared.plans, strict=True):
            (outcomes,) = run(model, [passage], asked, progress, plan=plan)
            by_output |= dict(zip(these, outcomes, strict=True))
        costs_of_rows = [outcome.cost for outcome in by_output.values()]
        notes += tuple(notes_on_plan([outcome.plan for outcome in by_output.values()]))
        rows, skipped = rows_by_method([by_output[number] for number in numbers])
        costs += costs_of_rows
    return ContextUse(
        passage=passage,
        without=bare,
        input=input,
        outputs=outputs,
        selected=numbers,
        selection=selection,
        rows=rows,
        decoding={**follows.decoding, "separator": both.separator, "chat": both.is_chat},
        cost=replace(total_cost(costs), seconds=time.perf_counter() - begun),
        provenance=Provenance.of(model, attention=""),
        skipped=skipped,
        notes=(*follows.notes, *notes),
    )


# ---------------------------------------------------------------------- which words depend on it


def _outputs(
    model: Model,
    measure: Measure,
    whole: Passage,
    logits_without: Float[np.ndarray, "output vocabulary"],
) -> tuple[Dependence, ...]:
    """Every written token in both runs; ``whole`` still has the words of what was written."""
    log_p_with = log_probabilities(model.output_logits(whole))
    log_p_without = log_probabilities(logits_without)
    first = whole.output_place(0)
    tokens = whole.ids[first:]
    scores = measured(measure, log_p_without, log_p_with, tokens)
    words_before = len(only_prompt(whole).unit_spans)
    outputs = []
    for number, token in enumerate(tokens.tolist()):
        word = int(whole.unit_of[first + number])
        instead = int(log_p_without[number].argmax())
        outputs.append(
            Dependence(
                name=whole.output_text(number),
                id=token,
                probability=float(np.exp(log_p_with[number, token])),
                without=float(np.exp(log_p_without[number, token])),
                score=float(scores[number]),
                instead=labels_at(model, whole, number)[instead],
                instead_id=instead,
                word=None if word < 0 else word - words_before,
            )
        )
    return tuple(outputs)


def _is_judged_token_by_token(tokens: int, asked: Selection) -> bool:
    """Whether an output is too short for its scores to say what is usual in it.

    It takes a floor: without one, every token that changes at all would be selected. And the rule
    of the paper is that of the paper.
    """
    has_floor = asked.least is not None and asked.least > NEUTRAL[asked.measure]
    return tokens < SHORT and has_floor and asked.rule == "tool"


def _selected(
    outputs: Sequence[Dependence], asked: Selection
) -> tuple[Selection, tuple[int, ...], tuple[str, ...]]:
    """The outputs that depend on the context, and how they were selected in the end.

    Said where fewer tokens were written than could stand out of each other: ``of 2 written tokens
    none can stand out of the others, so the floor alone decided which depend on the context``.
    """
    scores = np.array([output.score for output in outputs])
    notes = []
    if asked.deviations is not None and len(scores) < FEWEST_TO_STAND_OUT:
        few = "1 written token" if len(scores) == 1 else f"{len(scores)} written tokens"
        notes.append(
            f"of {few} none can stand out of the others, so the floor alone decided which depend "
            "on the context"
        )
        asked = replace(asked, deviations=None)
    if asked.deviations is not None:
        asked = replace(asked, threshold=threshold_of(scores, asked.rule, asked.deviations))
    also = None
    if asked.factor is not None:
        before = np.array([output.without for output in outputs])
        after = np.array([output.probability for output in outputs])
        also = large_changes(before, after, asked.factor)
    chosen = selected(scores, asked.rule, asked.deviations, asked.most, asked.least, also)
    return asked, tuple(np.flatnonzero(chosen).tolist()), tuple(notes)


# ---------------------------------------------------------------------- what of it they rest on


def _target(
    output: Dependence,
    number: int,
    read: Reading,
    logits_without: Float[np.ndarray, " vocabulary"],
) -> Target:
    """Why this token rather than the one without context; or the token alone, if it is the same."""
    if read == "kl":
        reference = Reference.of(WITHOUT_CONTEXT, logits_without[None])
        return Target(at=number, read=read, reference=reference)
    return Target(at=number, against=None if output.is_same else output.instead_id, read=read)


def _judged(
    outputs: Sequence[Dependence], numbers: Sequence[int], evidence: bool | None
) -> tuple[int, ...]:
    """The outputs whose attributions are held against random rankings."""
    if evidence is not None:
        return tuple(numbers) if evidence else ()
    strongest = sorted(numbers, key=lambda number: -abs(outputs[number].score))
    return tuple(sorted(strongest[:MOST_WITH_EVIDENCE]))


def _about_evidence(judged: int, found: int, evidence: bool | None) -> str:
    """Said where some tokens that depend on the context have no evidence: ``the 5 strongest of 9
    tokens have evidence; evidence=True (--evidence) asks for that of all``.
    """
    if evidence is False:
        return "there is no evidence for the sources, as none was asked for: nothing says they hold"
    return (
        f"the {judged} strongest of {found} tokens have evidence; evidence=True (--evidence) asks "
        "for that of all"
    )


def _runs(
    request: Request, targets: Mapping[int, Target], judged: Sequence[int]
) -> dict[tuple[int, ...], Request]:
    """The selected outputs with evidence, and the others: what is asked of each of both."""
    runs = {}
    for has_evidence in (True, False):
        these = tuple(number for number in targets if (number in judged) == has_evidence)
        if these:
            of_these = tuple(targets[number] for number in these)
            runs[these] = replace(request, targets=of_these, evidence=has_evidence)
    return runs
