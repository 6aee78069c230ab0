"""generate: a text that a model writes, each token of it explained by what stands before it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution, Cost
from whence.core.coarser import coarser
from whence.core.comparison import Comparison
from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.generation import Generation, Output
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.registry import find_method
from whence.core.request import Request, wishes_for
from whence.core.target import OF_SPANS, Reading, Target, log_probabilities
from whence.core.units import UnitKind
from whence.explaining.contrast import compare_continuations
from whence.explaining.explain import compare_as_asked
from whence.explaining.job import Outcome, Progress
from whence.explaining.run import run, total_cost
from whence.explaining.sharing import Errand, notes_on_plan, shared_plan
from whence.explaining.spans import means_over_outputs
from whence.games.game import check_is_model
from whence.generation.continuing import Continuation, check_writes, given, written_by
from whence.models.model import Model
from whence.models.rivals import rival_of
from whence.models.texts import tokenize
from whence.models.writing import notes_on_border, only_prompt, written_after

Methods = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
Scored = Literal["all", "prompt"]
ALTERNATIVES = 5
NOT_OF_CONTRAST = (
    "the evidence is about what was written, and not about the contrast; for that, name one output "
    "that is explained (target=…, --at)"
)


def generate(
    model: Model,
    prompt: str | Passage,
    methods: Methods = "gradient-x-input",
    *,
    continuation: str | Sequence[int] | None = None,
    max_new_tokens: int = 30,
    outputs: Sequence[int] | None = None,
    target: Target | str | int | None = None,
    instead: str | int | None = None,
    instead_first: bool = False,
    instead_of: str | Sequence[int] | None = None,
    read: Reading = "log-probability",
    scored: Scored = "all",
    units: UnitKind | Sequence[int] = "word",
    seed: int = 0,
    evidence: bool = True,
    budget: str | int | None = None,
    memory: str | int | float | None = None,
    rankings: int | None = None,
    steps: int | None = None,
    progress: Progress | None = None,
    **decoding: Any,
) -> Generation:
    """Let a model continue a prompt, and explain every token that it wrote.

    It writes the likeliest token each time, up to ``max_new_tokens``; other options of
    transformers' ``generate`` (``do_sample``, ``temperature``, ``top_k``, ``top_p``, ``num_beams``)
    are passed on, and ``seed`` fixes what is drawn. Or it wrote before: ``continuation`` is its
    text or ids. Of an encoder-decoder the prompt is the text that it reads.

    ``outputs`` are the numbers of the tokens to be explained; all of them by default. Each is read
    as ``read`` and explained by the units before it: of the prompt and, unless ``scored`` is
    "prompt", of what was written.

    ``instead`` is another token: why this one rather than that? A word takes a space in front where
    the written token has one; a word of several tokens is refused, unless ``instead_first`` lets
    the first of them stand for it. It is best said of which output: by ``target`` or ``outputs``.

    ``instead_of`` is another continuation, of any length: why this text rather than that one? The
    methods are then compared on the difference of the two log-probabilities, over the units of
    the prompt.

    ``target`` is what the evidence is about: a written token by its number, a written word, or a
    Target; by default all that was written, which rests on the prompt (its log-probability, where
    ``read`` is of single tokens). Unless ``evidence=False``,
    all methods are compared on it beside random rankings. The other options are those of
    ``whence.compare``.

    >>> import whence
    >>> model = whence.load("writer")
    >>> g = whence.generate(model, "Once upon a time", max_new_tokens=3, evidence=False)
    >>> len(g.outputs), g.matrix("gradient-x-input").shape[0]
    (3, 3)
    """
    check_is_model(model)
    check_writes(model)
    begun = time.perf_counter()
    first = _prompt(model, prompt, units)
    follows = _continuation(model, first, continuation, max_new_tokens, seed, decoding)
    whole = written_after(model, first, follows.ids)
    passage = _scored(whole, scored)
    rival = None
    if instead_of is not None:
        if instead is not None or target is not None:
            raise InputError("instead_of= contrasts whole texts: leave out instead= and target=.")
        rival = written_after(model, first, given(model, first, instead_of).ids)
    about = _chosen(model, whole, target, read)
    logits = model.output_logits(passage)
    numbers = _numbers(passage, outputs, None if instead is None else about)
    rivals: dict[int, int] = {}
    notes = [*follows.notes, *notes_on_border(whole)]
    if instead is not None:
        asked = numbers
        rivals = _rivals(model, whole, numbers, instead, instead_first)
        numbers = tuple(rivals) if outputs is not None else _other_than(passage, rivals)
        notes += _on_left_out(whole, asked, numbers, rivals)
        if instead_first and isinstance(instead, str):
            notes += _on_first_pieces(model, instead, rivals)
        about = _about_a_contrast(about, target, numbers, rivals)
        if evidence and about.against is None:
            notes.append(NOT_OF_CONTRAST)
    request = Request(  # of units the passage knows
        wishes=wishes_for([methods] if isinstance(methods, str) else methods),
        targets=tuple(Target(at=n, against=rivals.get(n), read=read) for n in numbers),
        seed=seed,
        memory=memory,
        evidence=False,
        budget=budget,
        rankings=rankings,
        steps=steps,
    )

    def errands(kind: str) -> list[Errand]:
        """What is to be run: every output and then, with evidence, what that is about."""
        own = coarser(passage, kind)
        runs = [Errand(request, [own])]
        if rival is not None:
            both = [coarser(only_prompt(text), kind) for text in (whole, rival)]
            runs.append(Errand(replace(request, targets=(about,), evidence=evidence), both))
        elif evidence:
            before = own.before(about.steps.start)
            runs.append(Errand(replace(request, targets=(about,), evidence=True), [before]))
        return runs

    shared = shared_plan(model, passage, errands, time.perf_counter() - begun)
    if shared.units != passage.kind:
        first, whole, passage = (coarser(text, shared.units) for text in (first, whole, passage))
        rival = None if rival is None else coarser(rival, shared.units)
    written = _outputs(model, passage, logits)
    resolved = None
    if evidence and rival is None:
        resolved = model.resolve(about, logits, passage)
    del logits  # a vocabulary for each output: room that the passes back can use
    (by_output,) = run(model, [passage], request, progress, plan=shared.plans[0])
    rows, skipped = rows_by_method(by_output)
    costs = [Cost(forwards=1), *[outcome.cost for outcome in by_output]]

    chosen = None
    if rival is not None:
        asked = replace(request, evidence=evidence)
        plan = shared.plans[1]
        chosen = compare_continuations(model, first, whole, rival, asked, progress, plan)
        costs.append(chosen.cost)
    elif resolved is not None:
        before = passage.before(resolved.steps.start)
        added: tuple[Attribution, ...] = ()
        if resolved.until is not None and resolved.read == read == "log-probability":
            added = means_over_outputs(rows, numbers, resolved, before)
        asked = [name for name in rows if name not in {one.method for one in added}]
        plan = shared.plans[1]
        chosen, problem = _compared(model, before, resolved, request, asked, added, progress, plan)
        if chosen is not None:
            costs.append(chosen.cost)
        skipped |= problem
    plans = [by_output[0].plan, *([] if chosen is None or chosen.plan is None else [chosen.plan])]
    notes += notes_on_plan(plans)
    return Generation(
        passage=passage,
        outputs=written,
        explained=numbers,
        rows=rows,
        decoding=follows.decoding,
        cost=replace(total_cost(costs), seconds=time.perf_counter() - begun),
        chosen=chosen,
        skipped=skipped,
        notes=tuple(notes),
    )


def _prompt(model: Model, prompt: str | Passage, units: UnitKind | Sequence[int]) -> Passage:
    """The prompt as a passage, if there is room for something behind it."""
    if isinstance(prompt, Passage):
        passage = prompt
    else:
        passage = tokenize(model, prompt, None, units)
    if model.limit is not None and len(passage) > model.limit:
        raise InputError(
            f"the prompt has {len(passage)} tokens, and the model's positions end at "
            f"{model.limit}; shorten it."
        )
    return passage


def _scored(passage: Passage, scored: Scored) -> Passage:
    """The passage with the units that are to be scored."""
    if scored not in get_args(Scored):
        raise InputError(f"scored is one of {', '.join(get_args(Scored))}, not {scored!r}.")
    return only_prompt(passage) if scored == "prompt" else passage


def _continuation(
    model: Model,
    prompt: Passage,
    continuation: str | Sequence[int] | None,
    max_new_tokens: int,
    seed: int,
    decoding: Mapping[str, Any],
) -> Continuation:
    if continuation is None:
        return written_by(model, prompt, max_new_tokens, seed, decoding)
    if decoding:
        raise InputError(
            f"the continuation is given, so nothing is decoded: leave out {', '.join(decoding)}."
        )
    return given(model, prompt, continuation)


def _outputs(
    model: Model, passage: Passage, logits: Float[np.ndarray, "output label"]
) -> tuple[Output, ...]:
    """Every written token with its probability and what else could have stood there."""
    outputs = []
    for number, row_of_logits in enumerate(logits):
        place = passage.output_place(number)
        row = log_probabilities(row_of_logits)
        chances = np.exp(row)
        likeliest = np.argsort(-chances, kind="stable")[:ALTERNATIVES].tolist()
        unit = int(passage.unit_of[place])
        outputs.append(
            Output(
                name=passage.output_text(number),
                id=int(passage.ids[place]),
                probability=float(chances[passage.ids[place]]),
                entropy=float(-(chances * row).sum()),
                alternatives={model.labels[i]: float(chances[i]) for i in likeliest},
                unit=None if unit < 0 else unit,
            )
        )
    return tuple(outputs)


def _numbers(
    passage: Passage, outputs: Sequence[int] | None, about: Target | None
) -> tuple[int, ...]:
    """The outputs to be explained: those that the caller lists, or else all.

    Where there is a rival, ``about`` is what the evidence is about, and one output alone is enough.
    """
    if outputs is None and about is not None and about.until is None:
        return tuple(about.steps)
    if outputs is None:
        return tuple(range(passage.outputs))
    numbers = tuple(int(number) for number in outputs)
    if not numbers:
        raise InputError("outputs=[] leaves nothing to explain; name one, or leave it out for all.")
    for number in numbers:
        if not 0 <= number < passage.outputs:
            raise InputError(
                f"output {number} is outside the {passage.outputs} tokens that were written, "
                f"which are counted from 0 to {passage.outputs - 1}."
            )
    return tuple(sorted(set(numbers)))


def rows_by_method(
    by_output: Sequence[Outcome],
) -> tuple[dict[str, tuple[Any, ...]], dict[str, str]]:
    """The attributions by method, and why others are missing; none at all is an error."""
    skipped: dict[str, str] = {}
    for outcome in by_output:
        for name, problem in outcome.failed.items():
            skipped.setdefault(name, str(problem))
        skipped |= outcome.plan.left_out
    rows = {}
    for name in by_output[0].attributions:
        if name not in skipped:
            rows[name] = tuple(outcome.attributions[name] for outcome in by_output)
    if not rows:
        for outcome in by_output:
            for problem in outcome.failed.values():
                raise problem
        raise Unsupported("; ".join(f"{name}: {why}" for name, why in skipped.items()))
    return rows, skipped


def _chosen(model: Model, passage: Passage, target: Any, read: Reading) -> Target:
    """What the evidence is about: some of the outputs, by their numbers."""
    if target is None and passage.outputs > 1 and read not in OF_SPANS:
        read = "log-probability"  # of all that was written; a margin, say, is of one token
    if not isinstance(target, Target):
        target = Target(at=target, read=read)
    return model.located(target, passage)


# ---------------------------------------------------------------------- why this rather than that


def _rivals(
    model: Model, passage: Passage, numbers: Sequence[int], instead: str | int, first: bool
) -> dict[int, int]:
    """The rival of each output; those are left out in whose place it is not one token.

    One such place is inside a word. If there is no other, that is an error.
    """
    rivals = {}
    problems = []
    for number in numbers:
        try:
            rivals[number] = rival_of(model, passage, number, instead, first)
        except TargetError as problem:
            problems.append(problem)
    if problems and not rivals:
        raise problems[0]
    return rivals


def _on_left_out(
    passage: Passage, asked: Sequence[int], kept: Sequence[int], rivals: Mapping[int, int]
) -> list[str]:
    """Why outputs that were asked about have no contrast."""
    notes = []
    left = [n for n in asked if n not in kept]
    for why, numbers in {
        "the rival is not one token in its place": [n for n in left if n not in rivals],
        "it is the rival itself": [n for n in left if n in rivals],
    }.items():
        names = ", ".join(f"{n} (“{passage.output_text(n).strip()}”)" for n in numbers[:4])
        more = f" and {len(numbers) - 4} more" if len(numbers) > 4 else ""
        if numbers:
            notes.append(f"left out of the contrast, as {why}: output {names}{more}")
    return notes


def _on_first_pieces(model: Model, instead: str, rivals: Mapping[int, int]) -> list[str]:
    """Said where the first token of a rival stands for it."""
    names = dict.fromkeys(model.labels[rival].strip() for rival in rivals.values())
    if all(name.casefold() == instead.strip().casefold() for name in names):
        return []
    pieces = " or ".join(f"“{name}”" for name in names)
    return [f"“{instead.strip()}” is several tokens, and the first of them stands for it: {pieces}"]


def _other_than(passage: Passage, rivals: Mapping[int, int]) -> tuple[int, ...]:
    """The outputs that are not the rival itself; all of them where there is no other."""
    others = [n for n, rival in rivals.items() if passage.ids[passage.output_place(n)] != rival]
    return tuple(others or rivals)


def _about_a_contrast(
    about: Target, target: Any, numbers: Sequence[int], rivals: Mapping[int, int]
) -> Target:
    """What the evidence is about, with its rival where it is about one output."""
    if target is None and len(numbers) == 1:
        about = replace(about, at=numbers[0], until=None, ids=None)
    if about.until is not None or about.against is not None:
        return about
    return replace(about, against=rivals.get(about.steps.start))


def _compared(
    model: Model,
    passage: Passage,
    target: Target,
    request: Request,
    methods: Sequence[str],
    added: Sequence[Attribution],
    progress: Progress | None,
    plan: Plan | None,
) -> tuple[Comparison | None, dict[str, str]]:
    """The methods on one target, with evidence; and why there is none, where it cannot be had."""
    wishes = tuple(wish for wish in request.wishes if find_method(wish.method).name in methods)
    asked = replace(request, wishes=wishes, targets=(target,), evidence=True)
    try:
        return compare_as_asked(model, passage, asked, progress, True, added, plan), {}
    except Unsupported as problem:
        return None, {"evidence": str(problem)}
