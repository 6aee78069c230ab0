"""What a run holds at every moment, measured on short texts and continued to any length.

No family is listed, and no layer is modelled: the very run that is to be forecast (a trace and the
methods that read it) is rehearsed on three short texts, while every tensor that comes and goes is
counted. Each moment of the run, one operation, is then a polynomial a + b·T + c·T² in the number of
tokens T, known from the three. The peak of a long text is the largest of them there, and it need
not be at the moment at which a short text has its own.

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
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from whence.core.passage import Passage, truncate
from whence.core.registry import Needs
from whence.core.request import Via
from whence.core.target import Target
from whence.models.conduct import repeats
from whence.models.model import Model
from whence.models.texts import tokenize
from whence.trace.trace import Trace, trace

PROMPT = "The quick brown fox didn't jump over the lazy dog, and nobody minded. "
LENGTHS = (48, 72, 96)  # tokens of the texts that are rehearsed: three fix a polynomial
UNITS = 36  # of each of them: more than the 32 copies that a search over removals holds at once

# Backward formulas that, while anyone counts, write into a copy of fresh zeros; else in place.
COPIES_OF_ZEROS = frozenset({"aten::index_put", "aten::scatter_add", "aten::index_add"})
MAKE_ZEROS = frozenset({"aten::new_zeros", "aten::zeros", "aten::zeros_like"})

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
        self.known[key] = gone, storage.nbytes()
        self.alive += storage.nbytes()

    def _forget(self, key: int) -> None:
        _, size = self.known.pop(key, (None, 0))
        self.alive -= size

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
    """One short run: bytes at each moment, and which moments are which.

    The trace is done at ``traced``; at ``values`` and ``gradients`` a method called for reruns.
    """

    moments: Float[np.ndarray, " moment"]
    traced: int
    values: tuple[Call, ...] = ()
    gradients: tuple[Call, ...] = ()

    @property
    def shape(self) -> tuple[Any, ...]:
        """What is equal in rehearsals of the same run on texts of several lengths."""
        return len(self.moments), self.traced, self.values, self.gradients

    def summary(self) -> Rehearsal:
        """Its few extreme moments, where rehearsals have none in common: a model that branches."""
        while_traced, after = self.moments[: self.traced + 1], self.moments[self.traced :]
        extremes = [while_traced.max(), after[0], after.max()]
        extremes.append(max((self.moments[call.moment] for call in self.values), default=0.0))
        extremes.append(max((self.moments[call.moment] for call in self.gradients), default=0.0))
        return Rehearsal(
            np.array(extremes), 1, _largest(self.values, 3), _largest(self.gradients, 4)
        )


def _largest(calls: tuple[Call, ...], moment: int) -> tuple[Call, ...]:
    """All calls as one."""
    if not calls:
        return ()
    return (Call(moment, max(call.points for call in calls)),)


@dataclass(frozen=True, eq=False)
class Footprint:
    """A run's moments as polynomials in the number of tokens."""

    coefficients: Float[np.ndarray, "power moment"]
    traced: int
    values: tuple[Call, ...]
    gradients: tuple[Call, ...]

    def _at(self, tokens: int) -> Float[np.ndarray, " moment"]:
        powers = float(tokens) ** np.arange(len(self.coefficients))
        return np.maximum(powers @ self.coefficients, 0.0)

    def of_trace(self, tokens: int) -> int:
        """The most that is held until the trace is done."""
        return round(self._at(tokens)[: self.traced + 1].max())

    def kept(self, tokens: int) -> int:
        """What the trace keeps."""
        return round(self._at(tokens)[self.traced])

    def beside(self, tokens: int) -> int:
        """The most that methods hold beside what the trace keeps; reruns are not in it."""
        moments = self._at(tokens)
        return round(moments[self.traced :].max() - moments[self.traced])

    def with_values(self, tokens: int, at_once: int, one_row: int) -> int:
        """The most that is held beside it in batches of values, each row of so many bytes."""
        return self._with_reruns(self.values, tokens, at_once, one_row)

    def with_gradients(self, tokens: int, at_once: int, one_row: int) -> int:
        """The same for batches of gradients."""
        return self._with_reruns(self.gradients, tokens, at_once, one_row)

    def _with_reruns(self, calls: tuple[Call, ...], tokens: int, at_once: int, one_row: int) -> int:
        moments = self._at(tokens)
        peaks = [0.0]
        for call in calls:
            around = moments[call.moment] - moments[self.traced]
            peaks.append(around + min(at_once, call.points) * one_row)
        return round(max(peaks))


@dataclass(frozen=True)
class Run:
    """What is rehearsed: a trace with these needs, and the methods that then read it.

    ``reply`` is the number of tokens that a decoder has written, ``units`` those of the text.
    """

    needs: Needs
    via: Via = "auto"
    methods: tuple[Method, ...] = ()
    units: int = UNITS
    reply: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for runs with equal footprints."""
        methods = tuple(repr(method) for method in self.methods)
        return self.needs, self.via, methods, self.units, self.reply


# by model: footprints by the run's key and what else changes them
_known: weakref.WeakKeyDictionary[nn.Module, dict[Any, Footprint | None]]
_known = weakref.WeakKeyDictionary()


def footprint_of(model: Model, run: Run) -> Footprint | None:
    """The footprint of a run; None where the model cannot be rehearsed. Remembered by model.

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


def _measured(model: Model, run: Run) -> Footprint | None:
    try:
        # some models draw from the generator, whose state is the caller's
        with model.lock, torch.random.fork_rng(devices=[]):
            repeats(model)  # whose first pass holds copies of all buffers
            passages = _passages(model, run)
            rehearsals = [_rehearse(model, passage, run) for passage in passages]
    except Exception:
        # the run itself will say what is wrong with it, and better
        return None
    return _continued([len(passage) for passage in passages], rehearsals)


def _passages(model: Model, run: Run) -> list[Passage]:
    """Short texts of three lengths, all cut into as many units."""
    longest = min(LENGTHS[-1], model.limit or LENGTHS[-1])
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
    return passage


def _rehearse(model: Model, passage: Passage, run: Run) -> Rehearsal:
    with Counting() as counting:
        traced = trace(model, [passage], needs=run.needs, attention_via=run.via)
        done = counting.note()
        seen = {entry.name: getattr(traced, entry.name) for entry in fields(traced)}
        del traced
        rehearsed = Rehearsed(**seen, counting=counting)
        del seen
        for method in run.methods:
            try:
                scores = method(rehearsed)
            except Exception:
                continue  # the run itself will say so
            del scores
    return Rehearsal(
        np.array(counting.moments, dtype=np.float64),
        done,
        tuple(rehearsed.calls_for_values),
        tuple(rehearsed.calls_for_gradients),
    )


@dataclass(frozen=True, eq=False)
class Rehearsed(Trace):
    """A trace whose reruns are not run: it notes what is held when they are called for."""

    counting: Counting = field(default_factory=Counting)
    calls_for_values: list[Call] = field(default_factory=list)
    calls_for_gradients: list[Call] = field(default_factory=list)

    def values_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, " point"]:
        """No change along any path, so that no method looks closer."""
        self.calls_for_values.append(Call(self.counting.note(), len(points)))
        return self.values[i].repeat(len(points))

    def gradients_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "point token dim"]:
        """Gradients of nothing, of the right size."""
        del i
        slopes = torch.zeros_like(points)
        self.calls_for_gradients.append(Call(self.counting.note(), len(points)))
        return slopes


@dataclass(frozen=True)
class OneValue:
    """A method that runs the model once more, at the text itself; in a rehearsal too."""

    def __call__(self, trace: Trace) -> object:
        """The target's value there."""
        return Trace.values_at(trace, 0, trace.embeddings_of(0)[None])


@dataclass(frozen=True)
class OneGradient:
    """The same, forward and backward."""

    def __call__(self, trace: Trace) -> object:
        """The target's gradient there."""
        return Trace.gradients_at(trace, 0, trace.embeddings_of(0)[None])


def _continued(lengths: Sequence[int], rehearsals: Sequence[Rehearsal]) -> Footprint:
    """Polynomials through what was counted."""
    first = rehearsals[0]
    is_alike = all(rehearsal.shape == first.shape for rehearsal in rehearsals)
    if is_alike and len(lengths) == len(LENGTHS):
        counted = np.stack([rehearsal.moments for rehearsal in rehearsals])
        powers = np.vander(np.asarray(lengths, dtype=np.float64), increasing=True)
        coefficients = np.linalg.solve(powers, counted)
    else:
        summaries = [rehearsal.summary() for rehearsal in rehearsals]
        first = summaries[0]
        counted = np.stack([summary.moments for summary in summaries])
        coefficients = np.stack([_fitted(lengths, row) for row in counted.T], axis=1)
    return Footprint(coefficients, first.traced, first.values, first.gradients)


def _fitted(
    lengths: Sequence[int], counted: Float[np.ndarray, " length"]
) -> Float[np.ndarray, " power"]:
    """The least-squares b·T + c·T² with neither below zero."""
    from scipy.optimize import nnls

    tokens = np.asarray(lengths, dtype=np.float64)
    slopes, _ = nnls(np.stack([tokens, tokens**2], 1), counted)
    return np.array([0.0, *slopes])
