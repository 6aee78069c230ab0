"""What a run holds at every moment, measured on short texts and continued to any length.

No family is listed, and no layer is modelled: the very run that is to be forecast (a trace and the
methods that read it) is rehearsed on three short texts, while every tensor that comes and goes is
counted: when it came, when it went, and its size. That size is a polynomial a + b·T + c·T² in the
number of tokens T, known from the three. The peak of a long text is at whichever moment the sum is
largest there, and it need not be at the moment at which a short text has its own.

What the process holds is more than its tensors. A large one has pages of its own, which go back
when it goes; small ones share a heap, which keeps the room that it once took. Which are small, and
how much the heap takes for them, depends on whether the C library is held (``memory.Heap``).

Methods of many passes do not run them in a rehearsal: what they hold around their passes is seen,
and the passes themselves are added from the curve of one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from whence.core.errors import OurMistake, Unsupported, WhenceError
from whence.core.passage import Passage, truncate
from whence.core.registry import Needs
from whence.core.request import Ask, Via
from whence.core.target import Target
from whence.models.conduct import repeats
from whence.models.model import Model
from whence.models.passing import in_one_line
from whence.models.texts import tokenize
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.models.writing import written_after
from whence.trace.memory import HELD, Heap
from whence.trace.trace import Trace, trace

PROMPT = "The quick brown fox didn't jump over the lazy dog, and nobody minded. "
LENGTHS = (48, 72, 96)  # tokens of the texts that are rehearsed: three fix a polynomial
UNITS = 36  # of each of them: more than the 32 copies that a search over removals holds at once

# Backward formulas that, while anyone counts, write into a copy of fresh zeros; else in place.
COPIES_OF_ZEROS = frozenset({"aten::index_put", "aten::scatter_add", "aten::index_add"})
MAKE_ZEROS = frozenset({"aten::new_zeros", "aten::zeros", "aten::zeros_like"})

STAYS = 2**62  # the death of what outlives the run

Method = Callable[[Trace], Any]


class Counting(TorchDispatchMode):
    """Counts the bytes of all tensors that were made inside and are alive, after each operation.

    Storages are counted once however many tensors share them; what was there before (weights,
    inputs) is not counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alive = 0
        self.moments: list[int] = []
        self.known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.last_zeros = 0
        # of every storage that was ever made, in order
        self.sizes: list[int] = []
        self.births: list[int] = []
        self.deaths: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._schema.name
        inputs = [_key(tensor) for tensor in _tensors((args, kwargs))]
        if name in COPIES_OF_ZEROS and inputs and inputs[0] == self.last_zeros:
            self._forget(inputs[0])
        for tensor in _tensors(out):
            key = _key(tensor)
            if key not in self.known and key not in inputs:
                self._count(key, tensor.untyped_storage())
                self.last_zeros = key if name in MAKE_ZEROS else 0
        self.moments.append(self.alive)
        return out

    def _count(self, key: int, storage: torch.UntypedStorage) -> None:
        gone = weakref.ref(storage, lambda _: self._forget(key))
        self.known[key] = gone, len(self.sizes)
        self.sizes.append(storage.nbytes())
        self.births.append(len(self.moments))
        self.deaths.append(STAYS)
        self.alive += storage.nbytes()

    def _forget(self, key: int) -> None:
        if key in self.known:
            _, number = self.known.pop(key)
            self.deaths[number] = len(self.moments)
            self.alive -= self.sizes[number]

    def note(self) -> int:
        """The number of this moment, which is noted too."""
        self.moments.append(self.alive)
        return len(self.moments) - 1


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor) and not leaf.is_sparse]


def _key(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


@dataclass(frozen=True)
class Call:
    """A method's call for reruns: when, and at how many points."""

    moment: int
    points: int


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """One short run: every storage with its size, from its birth to before its death, in moments.

    The trace is done at ``traced``; at ``values`` and ``gradients`` a method called for reruns.
    ``left_out`` says which method could not be rehearsed, and why; empty where all could.
    """

    moments: Float[np.ndarray, " moment"]
    sizes: Float[np.ndarray, " storage"]
    births: Int[np.ndarray, " storage"]
    deaths: Int[np.ndarray, " storage"]
    traced: int
    values: tuple[Call, ...] = ()
    gradients: tuple[Call, ...] = ()
    left_out: str = ""

    @property
    def shape(self) -> tuple[Any, ...]:
        """What is equal in rehearsals of the same run on texts of several lengths."""
        return len(self.moments), tuple(self.births), self.traced, self.values, self.gradients

    def summary(self) -> Rehearsal:
        """Its few extreme moments, where rehearsals have none in common: a model that branches.

        Each is one storage, which is there at its moment only.
        """
        while_traced, after = self.moments[: self.traced + 1], self.moments[self.traced :]
        extremes = [while_traced.max(), after[0], after.max()]
        extremes.append(max((self.moments[call.moment] for call in self.values), default=0.0))
        extremes.append(max((self.moments[call.moment] for call in self.gradients), default=0.0))
        places = np.arange(len(extremes))
        return Rehearsal(
            np.array(extremes),
            np.array(extremes),
            places,
            places + 1,
            1,
            _largest(self.values, 3),
            _largest(self.gradients, 4),
            self.left_out,
        )


def _largest(calls: tuple[Call, ...], moment: int) -> tuple[Call, ...]:
    """All calls as one."""
    if not calls:
        return ()
    return (Call(moment, max(call.points for call in calls)),)


@dataclass(frozen=True, eq=False)
class Course:
    """Bytes at each moment of a run: in large tensors, and in small ones, which share a heap."""

    large: Float[np.ndarray, " moment"]
    small: Float[np.ndarray, " moment"]
    taken: float = 1.0  # by the heap, for each byte of small ones

    @property
    def alive(self) -> Float[np.ndarray, " moment"]:
        """Of all tensors."""
        return self.large + self.small

    @property
    def heap(self) -> Float[np.ndarray, " moment"]:
        """What small tensors took so far: holes are filled again, and not given back."""
        return self.taken * np.maximum.accumulate(self.small)

    @property
    def held(self) -> Float[np.ndarray, " moment"]:
        """What the process holds for them."""
        return self.large + self.heap

    def with_rerun(self, moment: int, rerun: Course) -> float:
        """The most that is held where another run begins at this moment."""
        beside = self.taken * self.small[moment]
        heap = np.maximum(self.heap[moment], beside + rerun.heap)
        return float((self.large[moment] + rerun.large + heap).max())


@dataclass(frozen=True, eq=False)
class Footprint:
    """A run's storages, with their sizes as polynomials in the number of tokens.

    ``left_out`` says which method is not in it, and why; empty where all are.
    """

    coefficients: Float[np.ndarray, "power storage"]
    births: Int[np.ndarray, " storage"]
    deaths: Int[np.ndarray, " storage"]
    moments: int
    traced: int
    values: tuple[Call, ...] = ()
    gradients: tuple[Call, ...] = ()
    left_out: str = ""

    def course(self, tokens: int, rows: int = 1, since: int = 0, heap: Heap = HELD) -> Course:
        """The run on so many texts of a length; of what is made ``since`` a moment, from there."""
        powers = float(tokens) ** np.arange(len(self.coefficients))
        sizes = rows * np.maximum(powers @ self.coefficients, 0.0)
        is_made_later = self.births >= since
        is_large = sizes >= heap.mapped
        return Course(
            self._sum(np.where(is_made_later & is_large, sizes, 0.0))[since:],
            self._sum(np.where(is_made_later & ~is_large, sizes, 0.0))[since:],
            heap.taken,
        )

    def _sum(self, sizes: Float[np.ndarray, " storage"]) -> Float[np.ndarray, " moment"]:
        """What is alive of these storages at each moment."""
        change = np.zeros(self.moments + 1)
        np.add.at(change, self.births, sizes)
        np.subtract.at(change, np.minimum(self.deaths, self.moments), sizes)
        return np.maximum(np.cumsum(change)[: self.moments], 0.0)

    def of_trace(self, tokens: int, rows: int = 1) -> int:
        """The most that tensors take until the trace is done."""
        return round(self.course(tokens, rows).alive[: self.traced + 1].max())

    def held_by_trace(self, tokens: int, rows: int = 1, heap: Heap = HELD) -> int:
        """The most that the process holds until then."""
        return round(self.course(tokens, rows, heap=heap).held[: self.traced + 1].max())

    def kept(self, tokens: int, rows: int = 1) -> int:
        """What the trace keeps."""
        return round(self.course(tokens, rows).alive[self.traced])

    def after_trace(self, tokens: int, rows: int = 1, heap: Heap = HELD) -> Course:
        """What is made after the trace; reruns are not in it."""
        return self.course(tokens, rows, self.traced + 1, heap)

    def held(
        self, tokens: int, rows: int = 1, heap: Heap = HELD, while_traced: int | float = np.inf
    ) -> int:
        """The most that the process holds while methods read the trace; reruns are not in it.

        ``while_traced`` is all that it held until then, where a long trace goes another way.
        """
        course = self.course(tokens, rows, heap=heap)
        left = min(course.heap[self.traced], while_traced)
        own = course.taken * np.maximum.accumulate(course.small[self.traced :])
        return round((course.large[self.traced :] + np.maximum(left, own)).max())

    def with_values(
        self, tokens: int, rows: int, rerun: Callable[[int], Course], heap: Heap = HELD
    ) -> int:
        """The most that is held in batches of values; ``rerun`` gives that of so many points."""
        return self._with_reruns(self.values, self.course(tokens, rows, heap=heap), rerun)

    def with_gradients(
        self, tokens: int, rows: int, rerun: Callable[[int], Course], heap: Heap = HELD
    ) -> int:
        """The same for batches of gradients."""
        return self._with_reruns(self.gradients, self.course(tokens, rows, heap=heap), rerun)

    def _with_reruns(
        self, calls: tuple[Call, ...], course: Course, rerun: Callable[[int], Course]
    ) -> int:
        return round(max(course.with_rerun(c.moment, rerun(c.points)) for c in calls))


@dataclass(frozen=True)
class Run:
    """What is rehearsed: a trace with these needs, and the methods that then read it.

    ``reply`` is the number of tokens that a decoder has written, ``units`` those of the text.
    Of a written text, ``outputs`` are the tokens that were written after the prompt, and ``asks``
    as many of them as share the trace; none are all of them as one target.
    """

    needs: Needs
    via: Via = "auto"
    methods: tuple[Method, ...] = ()
    units: int = UNITS
    reply: int = 0
    outputs: int = 0
    asks: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for runs with equal footprints."""
        methods = tuple(repr(method) for method in self.methods)
        return self.needs, self.via, methods, self.units, self.reply, self.outputs, self.asks

    def asked_about(self, passage: Passage) -> list[Ask]:
        """What the trace is asked about a passage: its first outputs, if it was written."""
        if not self.outputs:
            return [Ask(passage, Target())]
        if not self.asks:
            return [Ask(passage, Target(read="log-probability"))]
        # the last ones have the most before them
        first = self.outputs - self.asks
        return [
            Ask(passage, Target(at=first + n, read="log-probability")) for n in range(self.asks)
        ]


@dataclass(frozen=True)
class Unrehearsed:
    """In place of a footprint: why a model cannot be rehearsed."""

    why: str


# by model: footprints by the run's key and what else changes them
_known: weakref.WeakKeyDictionary[nn.Module, dict[Any, Footprint | Unrehearsed]]
_known = weakref.WeakKeyDictionary()


def footprint_of(model: Model, run: Run) -> Footprint | Unrehearsed:
    """The footprint of a run, or why the model cannot be rehearsed. Remembered by model.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> print_of = footprint_of(model, Run(Needs.EMBEDDING_GRADIENTS))
    >>> print_of.of_trace(512) > 2 * print_of.of_trace(128)
    True
    """
    known = _known.setdefault(model.hf, {})
    key = (run.key, model.dtype, str(model.device), _attention_of(model))
    if key not in known:
        known[key] = _measured(model, run)
    return known[key]


def _attention_of(model: Model) -> str:
    return str(getattr(model.config, "_attn_implementation", ""))


def _measured(model: Model, run: Run) -> Footprint | Unrehearsed:
    """What the model itself, or a check, has against the run makes it unrehearsed.

    A mistake of ours is neither, and passes.
    """
    try:
        # some models draw from the generator, whose state is the caller's
        with (
            model.lock,
            torch.random.fork_rng(devices=[]),
            in_one_line(model.hf, "a rehearsal of its memory"),
        ):
            _find_out(model)
            passages = _passages(model, run)
            rehearsals = [_rehearse(model, passage, run) for passage in passages]
    except OurMistake:
        raise
    except WhenceError as problem:
        return Unrehearsed(str(problem))
    return _continued([len(passage) for passage in passages], rehearsals)


def _find_out(model: Model) -> None:
    """What is found out once of a model, by passes that would else be in the first rehearsal.

    It would then be unlike the others, and only its extremes could be continued.
    """
    repeats(model)  # whose first pass holds copies of all buffers
    bool(model.shares_batches)


def _passages(model: Model, run: Run) -> list[Passage]:
    """Short texts of three lengths, all cut into as many units."""
    if model.kind.reads_image:
        raise Unsupported("an image has the size that the model wants")
    limit = model.limit or LENGTHS[-1]
    if run.outputs and not model.is_encoder_decoder:
        limit = max(1, limit - run.outputs)
    longest = min(LENGTHS[-1], limit)
    lengths = sorted({max(1, length * longest // LENGTHS[-1]) for length in LENGTHS})
    passages = [_passage(model, length, run) for length in lengths]
    # a model with few positions may give the same one several times
    return list({len(passage): passage for passage in passages}.values())


def _passage(model: Model, length: int, run: Run) -> Passage:
    whole = truncate(tokenize(model, PROMPT * 12, None, "token"), length)
    firsts = whole.spans[whole.unit_of >= 0, 0]
    chosen = np.linspace(0, len(firsts), min(run.units, len(firsts)), endpoint=False)
    passage = tokenize(model, whole.text, None, firsts[chosen.astype(int)].tolist())
    if run.reply:
        reply = truncate(tokenize(model, PROMPT * (1 + run.reply // 8), None, "token"), run.reply)
        passage = replace(passage, reply=reply)
    if model.kind.fills_a_mask or model.kind.tags_words:
        return model.placed(passage, Target(at=0))
    if run.outputs:
        ids = np.resize(whole.ids[whole.unit_of >= 0], run.outputs)
        return written_after(model, passage, ids)
    return passage


def _rehearse(model: Model, passage: Passage, run: Run) -> Rehearsal:
    with Counting() as counting:
        asks = run.asked_about(passage)
        traced = trace(model, asks, needs=run.needs, attention_via=run.via)
        done = counting.note()
        seen = {entry.name: getattr(traced, entry.name) for entry in fields(traced)}
        del traced
        rehearsed = Rehearsed(**seen, counting=counting)
        del seen
        left_out = [_left_out(model, method, rehearsed) for method in run.methods]
    return Rehearsal(
        np.array(counting.moments, dtype=np.float64),
        np.array(counting.sizes, dtype=np.float64),
        np.array(counting.births, dtype=np.int64),
        np.array(counting.deaths, dtype=np.int64),
        done,
        tuple(rehearsed.calls_for_values),
        tuple(rehearsed.calls_for_gradients),
        "; ".join(why for why in left_out if why),
    )


def _left_out(model: Model, method: Method, rehearsed: Rehearsed) -> str:
    """A method reads the trace; why it cannot, or nothing.

    The run itself will meet the same, and say so beside the results of the others.
    """
    try:
        with in_one_line(model.hf, type(method).__name__, method):
            method(rehearsed)
    except WhenceError as problem:
        return str(problem)
    return ""


@dataclass(frozen=True, eq=False)
class Rehearsed(Trace):
    """A trace whose reruns are not run: it notes what is held when they are called for."""

    counting: Counting = field(default_factory=Counting)
    calls_for_values: list[Call] = field(default_factory=list)
    calls_for_gradients: list[Call] = field(default_factory=list)

    def values_of_all(
        self, asks: Sequence[int], points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "ask point"]:
        """No change along any path, so that no method looks closer."""
        self.calls_for_values.append(Call(self.counting.note(), len(points)))
        return self.values[list(asks), None].repeat(1, len(points))

    def gradients_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "point token dim"]:
        """Gradients of nothing, of the right size."""
        del i
        slopes = torch.zeros_like(points)
        self.calls_for_gradients.append(Call(self.counting.note(), len(points)))
        return slopes

    def slopes_along(
        self,
        asks: Sequence[int],
        points: Float[Tensor, "point token dim"],
        way: Float[Tensor, "token dim"],
    ) -> Float[Tensor, "ask point token"]:
        """The same along a way."""
        del way
        along = points.new_zeros(len(asks), *points.shape[:2])
        self.calls_for_gradients.append(Call(self.counting.note(), len(points)))
        return along


@dataclass(frozen=True)
class OneRow:
    """A method that runs the model once more on the text itself, as a game does."""

    def __call__(self, trace: Trace) -> object:
        """The logits."""
        model = trace.model
        with untouched(model.hf), unbroken(torch.inference_mode()):
            batch = model.batch(trace.passages[:1])
            return model.said(batch)


@dataclass(frozen=True)
class OneValue:
    """The same at embeddings, as methods of many passes do; in a rehearsal too."""

    def __call__(self, trace: Trace) -> object:
        """The target's value there."""
        return Trace.values_of_all(trace, _all_asks(trace), trace.embeddings_of(0)[None])


@dataclass(frozen=True)
class OneGradient:
    """The same at embeddings, forward and backward."""

    def __call__(self, trace: Trace) -> object:
        """The target's gradient there; of several, what each moves along a way."""
        point = trace.embeddings_of(0)
        if len(trace.passages) == 1:
            return Trace.gradients_at(trace, 0, point[None])
        return Trace.slopes_along(trace, _all_asks(trace), point[None], point)


def _all_asks(trace: Trace) -> list[int]:
    return list(range(len(trace.passages)))


def _continued(lengths: Sequence[int], rehearsals: Sequence[Rehearsal]) -> Footprint:
    """Polynomials through what was counted."""
    first = rehearsals[0]
    is_alike = all(rehearsal.shape == first.shape for rehearsal in rehearsals)
    if is_alike and len(lengths) == len(LENGTHS):
        sizes = np.stack([rehearsal.sizes for rehearsal in rehearsals])
        powers = np.vander(np.asarray(lengths, dtype=np.float64), increasing=True)
        coefficients = np.linalg.solve(powers, sizes)
    else:
        rehearsals = [rehearsal.summary() for rehearsal in rehearsals]
        first = rehearsals[0]
        sizes = np.stack([rehearsal.sizes for rehearsal in rehearsals])
        coefficients = np.stack([_fitted(lengths, row) for row in sizes.T], axis=1)
    # what waits for the garbage collector goes at its own time: the latest counts
    deaths = np.max([rehearsal.deaths for rehearsal in rehearsals], axis=0)
    return Footprint(
        coefficients,
        first.births,
        deaths,
        len(first.moments),
        first.traced,
        first.values,
        first.gradients,
        first.left_out,
    )


def _fitted(
    lengths: Sequence[int], counted: Float[np.ndarray, " length"]
) -> Float[np.ndarray, " power"]:
    """The least-squares b·T + c·T² with neither below zero."""
    from scipy.optimize import nnls

    tokens = np.asarray(lengths, dtype=np.float64)
    slopes, _ = nnls(np.stack([tokens, tokens**2], 1), counted)
    return np.array([0.0, *slopes])
