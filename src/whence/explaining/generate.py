"""generate: a text that a model writes, each token of it explained by what stands before it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from whence.core.usual import METHOD_OF_WRITTEN
from whence.explaining.contrast import Sides, compare_continuations, sides_of
from whence.explaining.explain import compare_as_asked
from whence.explaining.job import Outcome, Progress
from whence.explaining.rival import Other, other_asked, place_of
from whence.explaining.run import run, total_cost
from whence.explaining.sharing import Errand, notes_on_plan, shared_plan
from whence.explaining.spans import means_over_outputs
from whence.games.game import check_is_model
from whence.generation.continuing import Continuation, check_writes, given, written_by
from whence.models.model import Model
from whence.models.rivals import labels_at
from whence.models.texts import tokenize
from whence.models.writing import notes_on_border, only_prompt, written_after

Methods = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
Scored = Literal["all", "prompt"]
ALTERNATIVES = 5
# Said where several outputs have rivals of their own, and the evidence is about all of them.
NOT_OF_CONTRAST = (
    "the evidence is about what was written, and not about the contrast; for that, name one output "
    "that is explained (target=…, --at)"
)


def generate(
    model: Model,
    prompt: str | Passage,
    methods: Methods = METHOD_OF_WRITTEN,
    *,
    continuation: str | Sequence[int] | None = None,
    max_new_tokens: int = 30,
    outputs: Sequence[int] | None = None,
    target: Target | str | int | None = None,
    against: str | int | Sequence[int] | None = None,
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

    ``against`` is what could have stood there: a word, a text, the index of a token or ids. Why
    this rather than that? It stands in the place of what ``target`` names; without a target a word
    stands in the place of the first written word, and a longer text in that of all. A word is
    written as its place has it: "few" and " few" are the same. The number is log P(this) less
    log P(that), each by its own tokens; where both are one token, it is read as ``read``.

    ``target`` is what the evidence is about: a written token by its number, a written word, or a
    Target; by default all that was written, which rests on the prompt (its log-probability, where
    ``read`` is of single tokens). Unless ``evidence=False``,
    all methods are compared on it beside random rankings. The other options are those of
    ``whence.compare``.

    >>> import whence
    >>> model = whence.load("writer")
    >>> g = whence.generate(model, "Once upon a time", max_new_tokens=3, evidence=False)
    >>> len(g.outputs), g.matrix("occlusion").shape[0]
    (3, 3)
    """
    check_is_model(model)
    check_writes(model)
    begun = time.perf_counter()
    other = other_asked(model, against, decoding)
    if other is not None and other.is_whole and target is not None:
        raise InputError("instead_of= contrasts whole texts; against= goes with target=.")
    first = _prompt(model, prompt, units)
    follows = _continuation(model, first, continuation, max_new_tokens, seed, decoding)
    whole = written_after(model, first, follows.ids, by_model=continuation is None)
    passage = _scored(whole, scored)
    numbers = _numbers(passage, outputs)
    asked = _Asked(numbers, _chosen(model, whole, target, read))
    if other is not None:
        places = _Places(numbers if outputs is not None else None, target is not None)
        asked = _with_a_rival(model, first, whole, asked, other, places, read)
    numbers, about, rivals = asked.numbers, asked.about, asked.rivals
    notes = [*follows.notes, *notes_on_border(whole), *asked.notes]
    if rivals and evidence and about.against is None:
        notes.append(NOT_OF_CONTRAST)

    def sides(text: Passage) -> Sides:
        return sides_of(model, first, text, asked.span, asked.ids, scored == "prompt")

    if asked.of_texts:
        sides(whole)  # what cannot be contrasted is refused before any pass
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
        if asked.of_texts:
            both = sides(coarser(whole, kind)).passages
            runs.append(Errand(replace(request, targets=(about,), evidence=evidence), both))
        elif evidence:
            before = own.before(about.steps.start)
            runs.append(Errand(replace(request, targets=(about,), evidence=True), [before]))
        return runs

    shared = shared_plan(model, passage, errands, time.perf_counter() - begun)
    if shared.units != passage.kind:
        whole, passage = (coarser(text, shared.units) for text in (whole, passage))
    logits = model.output_logits(passage)
    written = _outputs(model, passage, logits)
    resolved = None
    if evidence and not asked.of_texts:
        resolved = model.resolve(about, logits, passage)
    del logits  # a vocabulary for each output: room that the passes back can use
    (by_output,) = run(model, [passage], request, progress, plan=shared.plans[0])
    rows, skipped = rows_by_method(by_output)
    costs = [Cost(forwards=1), *[outcome.cost for outcome in by_output]]

    chosen = None
    if asked.of_texts:
        same = replace(request, evidence=evidence)
        chosen = compare_continuations(model, sides(whole), same, progress, shared.plans[1])
        costs.append(chosen.cost)
    elif resolved is not None:
        before = passage.before(resolved.steps.start)
        added: tuple[Attribution, ...] = ()
        if resolved.until is not None and resolved.read == read == "log-probability":
            added = means_over_outputs(rows, numbers, resolved, before)
        others = [name for name in rows if name not in {one.method for one in added}]
        plan = shared.plans[1]
        chosen, problem = _compared(model, before, resolved, request, others, added, progress, plan)
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
        names = labels_at(model, passage, number)
        outputs.append(
            Output(
                name=passage.output_text(number),
                id=int(passage.ids[place]),
                probability=float(chances[passage.ids[place]]),
                entropy=float(-(chances * row).sum()),
                alternatives={names[i]: float(chances[i]) for i in likeliest},
                unit=None if unit < 0 else unit,
            )
        )
    return tuple(outputs)


def _numbers(passage: Passage, outputs: Sequence[int] | None) -> tuple[int, ...]:
    """The outputs to be explained: those that the caller lists, or else all."""
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


@dataclass(frozen=True)
class _Asked:
    """What is explained: outputs by number, and what the evidence is about.

    ``rivals`` are tokens that outputs are contrasted with, each by its output. Or the outputs of
    ``span`` are contrasted with other tokens, ``ids``: a contrast of texts.
    """

    numbers: tuple[int, ...]
    about: Target
    rivals: Mapping[int, int] = field(default_factory=dict)
    span: range = range(0)
    ids: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def of_texts(self) -> bool:
        return bool(self.span)


@dataclass(frozen=True)
class _Places:
    """What the caller named: outputs, if any, and whether a target."""

    outputs: tuple[int, ...] | None
    is_named: bool


def _with_a_rival(
    model: Model,
    prompt: Passage,
    whole: Passage,
    asked: _Asked,
    other: Other,
    places: _Places,
    read: Reading,
) -> _Asked:
    """The same with what could have stood there; what cannot be contrasted is refused.

    Said where a contrast is of several tokens and another reading was asked for: ``a contrast of
    several tokens is one of log-probabilities``.
    """
    if places.outputs is not None and not places.is_named and not other.is_whole:
        return _at_each(model, whole, asked, other)
    span, ids = place_of(model, prompt, whole, other, asked.about if places.is_named else None)
    numbers = asked.numbers
    if places.outputs is None and not other.is_whole:
        numbers = tuple(span)
    notes = _on_first_pieces(model, other, ids)
    if len(span) == len(ids) == 1:
        _check_other(whole, span.start, ids[0])
        about = Target(at=span.start, against=ids[0], read=read)
        return _Asked(numbers, about, {span.start: ids[0]}, notes=notes)
    if read != "log-probability":
        notes += ("a contrast of several tokens is one of log-probabilities",)
    return replace(asked, numbers=numbers, span=span, ids=ids, notes=notes)


def _at_each(model: Model, whole: Passage, asked: _Asked, other: Other) -> _Asked:
    """Each of the outputs that were listed, against a token in its place."""
    rivals = _rivals(model, whole, asked.numbers, other)
    for number, rival in rivals.items():
        _check_other(whole, number, rival)
    notes = (*_on_left_out(whole, asked.numbers, rivals),)
    notes += _on_first_pieces(model, other, list(rivals.values()))
    about, numbers = asked.about, tuple(rivals)
    if len(numbers) == 1:
        about = replace(about, at=numbers[0], until=None, ids=None, against=rivals[numbers[0]])
    return _Asked(numbers, about, rivals, notes=notes)


def _rivals(model: Model, passage: Passage, numbers: Sequence[int], other: Other) -> dict[int, int]:
    """The rival of each output; those are left out in whose place it is not one token.

    One such place is inside a word. If there is no other, that is an error.
    """
    rivals = {}
    problem = None
    for number in numbers:
        ids = other.at(model, passage, number)
        if len(ids) == 1:
            rivals[number] = ids[0]
        elif problem is None:
            problem = _not_one(model, passage, number, other, ids)
    if problem is not None and not rivals:
        raise problem
    return rivals


def _not_one(
    model: Model, passage: Passage, number: int, other: Other, ids: Sequence[int]
) -> TargetError:
    names = labels_at(model, passage, number)
    pieces = ", ".join(repr(names[piece]) for piece in ids)
    return TargetError(
        f"against={other.given!r} is {len(ids)} tokens, not one: {pieces}. Say in the place of "
        "which word it is meant, by target= (--at): words of several tokens are then compared as "
        "a whole."
    )


def _check_other(passage: Passage, number: int, rival: int) -> None:
    """Refuse to contrast a token with itself."""
    if passage.ids[passage.output_place(number)] == rival:
        name = passage.output_text(number).strip() or passage.output_text(number)
        raise TargetError(
            f"a contrast needs two, and “{name}” is what stands there (token {number} of what was "
            "written): give another, or another place by target= (--at)."
        )


def _on_left_out(passage: Passage, asked: Sequence[int], rivals: Mapping[int, int]) -> list[str]:
    """Which outputs that were asked about have no contrast, and why.

    Said where a rival is several tokens in the place of some outputs: ``left out of the contrast,
    as the rival is not one token in its place: output 3 (“ly”)``.
    """
    left = [number for number in asked if number not in rivals]
    names = ", ".join(f"{n} (“{passage.output_text(n).strip()}”)" for n in left[:4])
    more = f" and {len(left) - 4} more" if len(left) > 4 else ""
    if not left:
        return []
    why = "the rival is not one token in its place"
    return [f"left out of the contrast, as {why}: output {names}{more}"]


def _on_first_pieces(model: Model, other: Other, pieces: Sequence[int]) -> tuple[str, ...]:
    """Said where the first token of a rival stands for it.

    ``“a little” is several tokens, and the first of them stands for it: “a”``
    """
    if not other.first_alone:
        return ()
    word = str(other.given).strip()
    names = dict.fromkeys(model.labels[piece].strip() for piece in pieces)
    if all(name.casefold() == word.casefold() for name in names):
        return ()
    listed = " or ".join(f"“{name}”" for name in names)
    return (f"“{word}” is several tokens, and the first of them stands for it: {listed}",)


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
