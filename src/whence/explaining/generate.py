"""generate: a text that a model writes, each token of it explained by what stands before it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Cost
from whence.core.comparison import Comparison
from whence.core.errors import InputError, Unsupported
from whence.core.generation import Generation, Output
from whence.core.passage import Passage
from whence.core.request import Request, units_as_given, wishes_for
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind
from whence.explaining.explain import compare_as_asked
from whence.explaining.job import Outcome, Progress
from whence.explaining.run import run, total_cost
from whence.games.game import check_is_model
from whence.generation.continuing import Continuation, given, written_by
from whence.models.model import Model
from whence.models.writing import only_prompt, written_after

Methods = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
Scored = Literal["all", "prompt"]
ALTERNATIVES = 5


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
    "prompt", of what was written. ``instead`` is another token: why this one rather than that?

    ``target`` is what the evidence is about: a written token by its number, a written word, or a
    Target; by default all that was written, which rests on the prompt. Unless ``evidence=False``,
    all methods are compared on it beside random rankings. The other options are those of
    ``whence.compare``.

    >>> import whence
    >>> model = whence.load("writer")
    >>> g = whence.generate(model, "Once upon a time", max_new_tokens=3, evidence=False)
    >>> len(g.outputs), g.matrix("gradient-x-input").shape[0]
    (3, 3)
    """
    check_is_model(model)
    begun = time.perf_counter()
    first = prompt if isinstance(prompt, Passage) else model.encode(prompt, units=units)
    follows = _continuation(model, first, continuation, max_new_tokens, seed, decoding)
    passage = written_after(model, first, follows.ids)
    if scored == "prompt":
        passage = only_prompt(passage)
    elif scored != "all":
        raise InputError(f"scored is 'all' or 'prompt', not {scored!r}.")

    logits = model.output_logits(passage)
    written = _outputs(model, passage, logits)
    numbers = _numbers(passage, outputs)
    request = Request(
        wishes=wishes_for([methods] if isinstance(methods, str) else methods),
        targets=tuple(Target(at=number, against=instead, read=read) for number in numbers),
        units=units_as_given(units) if not isinstance(prompt, Passage) else "word",
        seed=seed,
        memory=memory,
        evidence=False,
        budget=budget,
        rankings=rankings,
        steps=steps,
    )
    (by_output,) = run(model, [passage], request, progress)
    rows, skipped = _rows(by_output)
    costs = [Cost(forwards=1), *[outcome.cost for outcome in by_output]]

    chosen = None
    if evidence:
        about = _chosen(target, instead, read)
        chosen, problem = _compared(model, passage, about, request, list(rows), progress)
        if chosen is not None:
            costs.append(chosen.cost)
        skipped |= problem
    return Generation(
        passage=passage,
        outputs=written,
        explained=numbers,
        rows=rows,
        decoding=follows.decoding,
        cost=replace(total_cost(costs), seconds=time.perf_counter() - begun),
        chosen=chosen,
        skipped=skipped,
        notes=follows.notes,
    )


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
    shifted = logits - logits.max(-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    outputs = []
    for number, row in enumerate(log_probabilities):
        place = passage.output_place(number)
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


def _numbers(passage: Passage, outputs: Sequence[int] | None) -> tuple[int, ...]:
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


def _rows(by_output: Sequence[Outcome]) -> tuple[dict[str, tuple[Any, ...]], dict[str, str]]:
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


def _chosen(target: Any, instead: str | int | None, read: Reading) -> Target:
    """What the evidence is about."""
    if isinstance(target, Target):
        return target
    if target is None:
        return Target(read=read)
    return Target(at=target, against=instead, read=read)


def _compared(
    model: Model,
    passage: Passage,
    target: Target,
    request: Request,
    methods: Sequence[str],
    progress: Progress | None,
) -> tuple[Comparison | None, dict[str, str]]:
    """The methods on one target, with evidence; and why there is none, where it cannot be had."""
    located = model.located(as_target(target), passage)
    wishes = tuple(wish for wish in request.wishes if wish.method in methods)
    asked = replace(request, wishes=wishes, targets=(located,), evidence=True)
    try:
        return compare_as_asked(model, passage, asked, progress, skip_unfit=True), {}
    except Unsupported as problem:
        return None, {"evidence": str(problem)}
