"""The Trace: one forward pass, and one backward pass for each ask, with what was asked for.

An ask is a passage with a target. Equal passages run once and are differentiated once for each
of their targets, so that g targets of one text cost one forward and g backward passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from whence.core.errors import Unsupported
from whence.core.once import once
from whence.core.passage import Passage
from whence.core.registry import ANY_ATTENTION, GRADIENTS, WHOLE_MAPS, Needs
from whence.core.request import AnyTarget, Ask, Via
from whence.core.target import Target, as_target
from whence.models.conduct import known
from whence.models.embeddings import embedded
from whence.models.model import Batch, Model, finite
from whence.models.passing import not_run
from whence.models.unbroken import unbroken
from whence.models.untouched import modules_of, untouched, without_leftovers
from whence.models.values import as_numpy
from whence.models.writing import read_at_output
from whence.trace.attention import Layer, Observer, can_observe, check_editable, observing
from whence.trace.edits import Edit
from whence.trace.hidden import hidden_edits
from whence.trace.lxmert import Watched, is_lxmert, watching
from whence.trace.reducers import Block, HeadMean, Reducer, ValueNorm
from whence.trace.routers import watching_for_choices
from whence.trace.ways_back import are_apart, of_all_rows, of_some_rows, slopes_at_head

ASKED = "attention"  # the name of the caller's own single reducer
RERUN_TOKENS = 2048  # of one batch of reruns; past this a CPU's caches gain nothing

# What a model without gradients can still be asked. Said where no gradient reaches the embeddings.
STILL_WORK = (
    "Methods that run the model forwards only will work: shapley, lime, occlusion, "
    "or attention-mean and rollout."
)

MapsByKind = dict[str, tuple[Tensor, ...]]


@dataclass
class Passes:
    """Counts sequences through the model, forwards and backwards, for each ask."""

    forwards: list[int]
    backwards: list[int]


@dataclass(frozen=True)
class Head:
    """What the model said, and the number that is being explained."""

    logits: Float[Tensor, "ask label"]
    values: Float[Tensor, " ask"]


@dataclass(frozen=True, eq=False)
class Trace:
    """What one run showed, one row for each ask.

    Tensors are detached and padded to the longest passage, and special tokens are in their places.
    ``attentions[kind][layer]`` is "ask head query key" (or what the reducer made of it),
    ``layers[kind]`` names the modules, and ``reduced[name][kind][layer]`` is what each named
    reducer made.
    """

    model: Model
    passages: tuple[Passage, ...]
    targets: tuple[Target, ...]
    embeddings: Float[Tensor, "ask token dim"]
    head: Head | None  # None for a model without one
    gradients: Float[Tensor, "ask token dim"] | None = None
    attentions: MapsByKind = field(default_factory=dict)
    attention_gradients: MapsByKind = field(default_factory=dict)
    reduced: dict[str, MapsByKind] = field(default_factory=dict)
    layers: dict[str, tuple[Layer, ...]] = field(default_factory=dict)
    hidden_states: tuple[Tensor, ...] = ()
    attention_via: str = "own"
    passes: Passes = field(default_factory=lambda: Passes([], []))
    # called after each batch of reruns, so that a progress bar moves
    tick: Callable[[], None] = lambda: None
    # of one batch of reruns; a budget of memory may ask for fewer
    rerun_tokens: int = RERUN_TOKENS

    @property
    def logits(self) -> Float[Tensor, "ask label"]:
        """What the head says of each passage, where it is read."""
        return self._head.logits

    @property
    def values(self) -> Float[Tensor, " ask"]:
        """The target's value, for each ask."""
        return self._head.values

    @property
    def _head(self) -> Head:
        if self.head is None:
            raise Unsupported(
                f"{type(self.model.hf).__name__} has no head, so there is no number to explain."
            )
        return self.head

    @property
    def embedding_gradients(self) -> Float[Tensor, "ask token dim"]:
        """The target's slope along each entry of each token's embedding."""
        self.check_embeddings()
        if self.gradients is None:
            raise Unsupported(
                "this trace was made without gradients; ask for Needs.EMBEDDING_GRADIENTS."
            )
        return self.gradients

    @once
    def head_means(self) -> dict[str, tuple[Float[Tensor, "ask query key"], ...]]:
        """Attention as the mean over heads, by kind and layer."""
        if "head-mean" in self.reduced:
            return self.reduced["head-mean"]
        if not self.attentions:
            raise Unsupported("this trace was made without attention; ask for Needs.HEAD_MEANS.")
        return {kind: tuple(m.mean(1) for m in maps) for kind, maps in self.attentions.items()}

    @property
    def value_weighted(self) -> dict[str, tuple[Float[Tensor, "ask query key"], ...]]:
        """Attention times the norm of the value vector that it weights, the mean over heads."""
        if "value-weighted" not in self.reduced:
            raise Unsupported(
                "the value vectors of this model cannot be seen (its attention is outside "
                "AttentionInterface), so attention cannot be weighted by their norms; "
                "use attention-mean or rollout."
            )
        return self.reduced["value-weighted"]

    @once
    def content(self) -> Bool[Tensor, "ask token"]:
        """True for tokens of the text, False for special tokens and padding."""
        longest = max(len(passage) for passage in self.passages)
        rows = [np.pad(p.unit_of >= 0, (0, longest - len(p))) for p in self.passages]
        return torch.from_numpy(np.stack(rows)).to(self.model.device)

    def embeddings_of(self, i: int) -> Float[Tensor, "token dim"]:
        """The embeddings of one ask's passage, without padding."""
        self.check_embeddings()
        return self.embeddings[i, : len(self.passages[i])]

    def check_embeddings(self) -> None:
        """Raise where only a part of the input has embeddings that can be seen.

        Zeros for the other part would look like an answer.
        """
        unseen = self.model.kind.unseen(self.model, Needs.EMBEDDINGS)
        if unseen is not None:
            raise Unsupported(unseen)
        if self.model.kind.reads_text and self.model.kind.reads_image:
            raise Unsupported(
                f"of what {type(self.model.hf).__name__} reads, only the text's embeddings are "
                "seen, so a method of gradients along embeddings would say nothing of the image; "
                "use generic-attention."
            )

    def values_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, " point"]:
        """The value of ask ``i``'s target at other embeddings."""
        return self.values_of_all([i], points)[0]

    def values_of_all(
        self, asks: Sequence[int], points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "ask point"]:
        """The values of several asks about one passage: they share the passes."""
        values = []
        with self.model.lock, self._rerunning(torch.no_grad()):
            for chunk in self._chunks(asks[0], points):
                values.append(torch.stack(self._rerun(asks, chunk).values))
                self.tick()
        return torch.cat(values, 1)

    def gradients_at(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Float[Tensor, "point token dim"]:
        """The gradient of ask ``i``'s target at other embeddings: along a path, in a cloud."""
        # laid out beforehand: a list of parts that is joined at the end would be held twice
        with unbroken(torch.inference_mode(False)):  # the caller may be in it
            slopes = torch.empty_like(points)

        def keep(_ask: int, first: int, slope: Tensor) -> None:
            slopes[first : first + len(slope)] = slope

        self._differentiate([i], points, keep)
        return slopes

    def slopes_along(
        self,
        asks: Sequence[int],
        points: Float[Tensor, "point token dim"],
        way: Float[Tensor, "token dim"],
    ) -> Float[Tensor, "ask point token"]:
        """How each token's part of a way moves the targets of several asks about one passage.

        They share the forward passes; each has backward passes of its own.
        """
        with unbroken(torch.inference_mode(False)):
            along = points.new_empty(len(asks), *points.shape[:2])

        def keep(ask: int, first: int, slope: Tensor) -> None:
            along[ask, first : first + len(slope)] = torch.einsum("ntd,td->nt", slope, way)

        self._differentiate(asks, points, keep)
        return along

    def _differentiate(
        self,
        asks: Sequence[int],
        points: Float[Tensor, "point token dim"],
        keep: Callable[[int, int, Tensor], None],
    ) -> None:
        """Gradients at points, batch by batch and ask by ask, for ``keep`` to take what it wants.

        It is told the place of the ask among ``asks`` and that of the batch's first point.
        """
        done = 0
        with self.model.lock, self._rerunning(torch.enable_grad()):
            for chunk in self._chunks(asks[0], points):
                rerun = self._rerun(asks, chunk)
                leaf, begins = rerun.leaf, rerun.begins([self.targets[ask] for ask in asks])
                del rerun  # the logits too, where all ways begin below the head
                for place, ask in enumerate(asks):
                    end, seed = begins(place)
                    goes_on = place < len(asks) - 1
                    (slope,) = slopes_of(self.model, end, [leaf], keep_graph=goes_on, seed=seed)
                    keep(place, done, slope)
                    self.passes.backwards[ask] += len(leaf)
                    del slope, end, seed
                done += len(leaf)
                del leaf, begins  # or they are held while the next batch runs
                self.tick()

    def _rerunning(self, grad_mode: AbstractContextManager[None]) -> AbstractContextManager[None]:
        """The model, to be run again by its own fast attention."""
        self.check_embeddings()
        return unbroken(untouched(self.model.hf), torch.inference_mode(False), grad_mode)

    def _chunks(
        self, i: int, points: Float[Tensor, "point token dim"]
    ) -> Sequence[Float[Tensor, "some token dim"]]:
        """The points in batches."""
        points_at_once = 1
        if self.model.shares_batches:
            points_at_once = max(1, self.rerun_tokens // len(self.passages[i]))
        return points.split(points_at_once)

    def _rerun(self, asks: Sequence[int], points: Float[Tensor, "point token dim"]) -> _Rerun:
        """One batch of points, which are leaves of the graph, and each ask's values at them."""
        model = self.model
        batch = model.batch([self.passages[asks[0]]] * len(points))
        leaf = points.detach().clone().requires_grad_(torch.is_grad_enabled())
        # a copy, as some models change what they are given in place
        with embedded(model, batch, lambda _: leaf.clone()):
            passed = model.run_batch(batch)
        logits = finite(model.read(passed.outputs, passed.batch))
        self.passes.forwards[asks[0]] += len(points)
        values = [model.value(logits, [self.targets[ask]] * len(points)) for ask in asks]
        return _Rerun(leaf, values, passed.states)

    def about_one_passage(self) -> list[list[int]]:
        """The asks in groups that share reruns: those about outputs of one written text."""
        groups: dict[Any, list[int]] = {}
        for ask, passage in enumerate(self.passages):
            key: Any = ask
            if passage.written is not None:
                key = replace(passage, readout=None).input_key
            groups.setdefault(key, []).append(ask)
        return list(groups.values())


# where a way back begins: a number, or the states below the head with the slopes there
Beginning = tuple[Tensor, Tensor | None]


@dataclass(frozen=True, eq=False)
class _Rerun:
    """Points that were run through the model, the values of several asks there, and the graph."""

    leaf: Float[Tensor, "point token dim"]
    values: list[Float[Tensor, " point"]]
    states: Float[Tensor, "point output width"] | None

    def begins(self, targets: Sequence[Target]) -> Callable[[int], Beginning]:
        """Where each ask's way back begins; those of several outputs share the head."""
        states = self.states
        shares = states is not None and len(targets) > 1 and targets[0].at is not None
        if shares and are_apart([(0, target.steps) for target in targets]):
            assert states is not None
            slopes = slopes_at_head(torch.stack(self.values).sum(), states)
            return lambda place: (states, of_all_rows(slopes, targets[place]))
        values = self.values
        return lambda place: (values[place].sum(), None)


def trace(
    model: Model,
    asks: Sequence[Ask | Passage],
    target: AnyTarget = None,
    needs: Needs = Needs.NOTHING,
    *,
    reducer: Reducer | None = None,
    reducers: Mapping[str, Reducer] | None = None,
    edits: Sequence[Edit] = (),
    attention_via: Via = "auto",
    tick: Callable[[], None] = lambda: None,
) -> Trace:
    """Run asks that fit one batch, and keep what ``needs`` asks for.

    A passage among the ``asks`` is asked about ``target``. Equal passages run once, unless there
    are ``edits``, which may treat each row differently.

    >>> import whence
    >>> from whence.core.registry import Needs
    >>> model = whence.load("sentiment")
    >>> t = trace(model, [model.encode("not bad")], needs=Needs.ATTENTION)
    >>> t.attentions["encoder"][0].shape[0], len(t.attentions["encoder"])
    (1, 4)
    """
    if reducer is not None and needs & Needs.ATTENTION_GRADIENTS:
        raise Unsupported(
            "a reducer keeps no whole map, so there is nothing to take a gradient of; "
            "ask for one or the other."
        )
    plan = _plan(model, needs, _named(reducer, reducers), edits, attention_via)
    questions = _questions(asks, target, runs_alone=bool(edits))
    batch = model.batch(questions.unique)
    grad_mode = torch.enable_grad() if plan.backward else torch.no_grad()
    with (
        model.lock,
        untouched(model.hf),
        unbroken(torch.inference_mode(False), grad_mode),
    ):
        run = _forward(model, batch, plan)
        head, targets, slopes = None, (), []
        if plan.backward or model.kind.has_head:
            logits = finite(model.read(run.outputs, run.batch))
            targets = _resolve(model, questions, logits)
            rows, values = _said(model, questions, logits, targets)
            head = Head(rows, torch.stack(values))
            if plan.backward:
                slopes = _backward(model, values, run, needs, questions, targets)

    kinds = _kinds(run.layers) if plan.wants_maps else []
    maps = [questions.spread(m.detach()) for m in run.maps]
    reduced = {}
    for name, per_layer in run.reduced.items():
        reduced[name] = _by_kind(kinds, run.layers, [questions.spread(m) for m in per_layer])
    attentions = reduced.pop(ASKED, None)
    if attentions is None:
        attentions = _by_kind(kinds, run.layers, maps) if maps else {}
    return Trace(
        model=model,
        passages=_read_at_targets(model, questions.asks, targets),
        targets=targets,
        embeddings=questions.spread(_in_place(run.leaf.detach(), batch)),
        head=None if head is None else Head(head.logits.detach(), head.values.detach()),
        gradients=_in_place(slopes[0], batch) if slopes else None,
        attentions=attentions,
        attention_gradients=_by_kind(kinds, run.layers, slopes[1:]) if len(slopes) > 1 else {},
        reduced=reduced,
        layers=_by_kind(kinds, run.layers, run.layers),
        hidden_states=_hidden_states(run.outputs, questions) if plan.hidden_states else (),
        attention_via=plan.via,
        passes=questions.passes(plan.backward),
        tick=tick,
    )


def logits_under(model: Model, batch: Batch, edits: Sequence[Edit]) -> Float[Tensor, "row label"]:
    """What the model says of a batch under edits of attention, its graph still alive.

    For who runs the same batch again and again, inside ``untouched`` and the model's lock.
    """
    observer = Observer(model.hf, keep=False, edits=edits)
    with observing(model.hf, observer):
        return model.said(batch)


@dataclass(frozen=True)
class _Questions:
    """The asks, and the passages that run for them: equal ones once."""

    asks: tuple[Ask, ...]
    unique: list[Passage]
    row_of_ask: list[int]

    def spread(self, rows: Float[Tensor, "row ..."]) -> Float[Tensor, "ask ..."]:
        """One row for each ask, from one row for each passage that ran."""
        if len(self.unique) == len(self.asks):
            return rows
        if len(self.unique) == 1:
            return rows.expand(len(self.asks), *rows.shape[1:])
        return rows[self.row_of_ask]

    def rounds(self) -> list[list[int]]:
        """Asks that share a backward pass: no two of one passage."""
        rounds: list[list[int]] = []
        asks_so_far = [0] * len(self.unique)
        for ask, row in enumerate(self.row_of_ask):
            if asks_so_far[row] == len(rounds):
                rounds.append([])
            rounds[asks_so_far[row]].append(ask)
            asks_so_far[row] += 1
        return rounds

    def passes(self, backward: bool) -> Passes:
        """A passage's forward pass is counted at its first ask, a backward pass at each."""
        first_asks = set(self.rounds()[0])
        forwards = [int(ask in first_asks) for ask in range(len(self.asks))]
        return Passes(forwards, [int(backward)] * len(self.asks))


def _questions(
    asks: Sequence[Ask | Passage], target: AnyTarget, runs_alone: bool = False
) -> _Questions:
    """Equal passages share a row, unless each ask runs alone: an edit may be of single rows."""
    asked_of_all = as_target(target)
    questions: list[Ask] = []
    for ask in asks:
        questions.append(Ask(ask, asked_of_all) if isinstance(ask, Passage) else ask)
    rows: dict[Any, int] = {}
    unique: list[Passage] = []
    row_of_ask: list[int] = []
    for number, ask in enumerate(questions):
        key = number if runs_alone else ask.passage.input_key
        if key not in rows:
            rows[key] = len(unique)
            unique.append(ask.passage)
        row_of_ask.append(rows[key])
    return _Questions(tuple(questions), unique, row_of_ask)


@dataclass(frozen=True)
class _Plan:
    """What one forward pass is to keep, and by which path attention is seen."""

    via: str
    keeps_maps: bool
    reducers: Mapping[str, Reducer]
    edits: Sequence[Edit]
    backward: bool
    hidden_states: bool
    embeddings: bool = True

    @property
    def wants_maps(self) -> bool:
        """Whether attention is looked at, whole or reduced."""
        return self.keeps_maps or bool(self.reducers)


def _named(reducer: Reducer | None, reducers: Mapping[str, Reducer] | None) -> dict[str, Reducer]:
    named = dict(reducers or {})
    if reducer is not None:
        named[ASKED] = reducer
    return named


def _plan(
    model: Model,
    needs: Needs,
    reducers: Mapping[str, Reducer],
    edits: Sequence[Edit],
    attention_via: Via,
) -> _Plan:
    edits_attention = any(edit.is_in_attention for edit in edits)
    looks = bool(needs & ANY_ATTENTION) or bool(reducers)
    unseen = model.kind.unseen(model, needs | (Needs.ATTENTION if looks else Needs.NOTHING))
    if unseen is not None:
        raise Unsupported(unseen)
    via = _path(model, attention_via, looks or edits_attention, edits_attention)
    every_reducer = dict(reducers)
    # the mean over heads follows from whole maps, so that it is reduced only where there are none
    if needs & Needs.HEAD_MEANS and not needs & WHOLE_MAPS:
        every_reducer["head-mean"] = HeadMean()
    if needs & Needs.VALUE_WEIGHTED and via == "interface":
        every_reducer["value-weighted"] = ValueNorm()
    return _Plan(
        via=via,
        keeps_maps=bool(needs & WHOLE_MAPS) and ASKED not in reducers,
        reducers=every_reducer,
        edits=edits,
        backward=bool(needs & GRADIENTS),
        hidden_states=bool(needs & Needs.HIDDEN_STATES),
        embeddings=_sees_embeddings(model, needs, edits),
    )


def _sees_embeddings(model: Model, needs: Needs, edits: Sequence[Edit]) -> bool:
    """Whether to look for embeddings: wherever they are needed, and not where there are none."""
    if model.kind.unseen(model, Needs.EMBEDDINGS) is not None:
        return False
    if needs & (GRADIENTS | Needs.EMBEDDINGS | Needs.RERUNS):
        return True
    if any(edit.where == "embeddings" for edit in edits):
        return True
    finding = known(model, "embeddings")
    return finding is None or finding.holds is not False


def _path(model: Model, via: Via, needed: bool, edited: bool) -> str:
    """By which path attention is seen.

    own: the model's fast attention stays; interface: our function in the registry;
    output: eager and ``output_attentions``; hooks: where neither shows every map.
    """
    if not needed:
        return "own"
    observable = can_observe(model.hf)
    if via == "interface" or edited:
        check_editable(model.hf)
    if is_lxmert(model.hf):
        return "hooks"
    if via != "auto":
        return via
    finding = known(model, "attention")
    if finding is not None and finding.choice is not None and not edited:
        return finding.choice
    return "interface" if observable else "output"


@dataclass(frozen=True)
class _Run:
    """One forward pass, its graph still alive."""

    outputs: Any
    batch: Batch  # read where its logits are
    states: Float[Tensor, "row output width"] | None  # of which the head made them, if only there
    leaf: Tensor  # the embeddings that the model ran on
    layers: list[Layer]
    maps: list[Tensor]
    reduced: Mapping[str, list[Tensor]]


def _forward(model: Model, batch: Batch, plan: _Plan) -> _Run:
    observer = Observer(model.hf, keep=plan.keeps_maps, reducers=plan.reducers, edits=plan.edits)
    extra_outputs = {"output_hidden_states": True} if plan.hidden_states else {}
    if plan.via == "output":
        extra_outputs["output_attentions"] = True
        model.hf.set_attn_implementation("eager")
    leaves: list[Tensor] = []

    def make_leaf(embeddings: Tensor) -> Tensor:
        for edit in plan.edits:
            if edit.where == "embeddings":
                embeddings = edit.change(embeddings)
        leaves.append(embeddings.detach().clone().requires_grad_(torch.is_grad_enabled()))
        # some models change what they are given in place, which a leaf does not allow
        return leaves[0].clone() if torch.is_grad_enabled() else leaves[0]

    with (
        without_leftovers(model.hf) if extra_outputs else nullcontext(),
        _watched(model, plan, observer) as seen,
        embedded(model, batch, make_leaf) if plan.embeddings else nullcontext(),
        hidden_edits(model, plan.edits),
        watching_for_choices(model.hf),
    ):
        passed = model.run_batch(batch, **extra_outputs)
    outputs = passed.outputs

    layers, maps, reduced = observer.layers, observer.maps, observer.reduced
    if plan.via in ("output", "hooks"):
        if isinstance(seen, Watched):
            layers, maps = seen.layers, seen.maps
        else:
            layers, maps = _from_outputs(model, outputs)
            _check_sizes(model, batch, layers, [_size_of(weights) for weights in maps])
        reduced = _reduced(plan.reducers, layers, maps)
        if not plan.keeps_maps:
            maps = []
    if plan.wants_maps and not layers:
        raise Unsupported(
            f"{type(model.hf).__name__} gave no attention weights (path: {plan.via})."
        )
    if plan.via == "interface":
        _check_sizes(model, batch, layers, observer.sizes)
    leaf = leaves[0] if leaves else _no_embeddings(model, batch)
    return _Run(outputs, passed.batch, passed.states, leaf, layers, maps, reduced)


def _no_embeddings(model: Model, batch: Batch) -> Float[Tensor, "row token 0"]:
    """For a model without one vector for each token."""
    return torch.zeros(len(batch.lengths), max(batch.lengths), 0, device=model.device)


def _size_of(weights: Tensor) -> tuple[int, ...]:
    """Rows of the batch, queries and keys, of weights "batch head query key"."""
    if weights.ndim != 4:
        return tuple(weights.shape)
    rows, _, queries, keys = weights.shape
    return rows, queries, keys


def _check_sizes(
    model: Model, batch: Batch, layers: Sequence[Layer], sizes: Sequence[tuple[int, ...]]
) -> None:
    """Refuse weights that do not stand between the tokens that went in."""
    rows = len(batch.lengths)
    tokens = written = max(batch.lengths if batch.sources is None else batch.sources)
    decoder_ids = batch.inputs.get("decoder_input_ids")
    if decoder_ids is not None:
        written = decoder_ids.shape[1]
    expected = {
        "encoder": (rows, tokens, tokens),
        "decoder": (rows, written, written),
        "cross": (rows, written, tokens),
    }
    for layer, size in zip(layers, sizes, strict=True):
        _, queries, keys = expected[layer.kind]
        # one layer may look from one place only, which is then the one that is read
        looks_from_one_place = len(layers) == 1 and size == (rows, 1, keys)
        if size != expected[layer.kind] and not looks_from_one_place:
            raise Unsupported(
                f"the attention of {type(model.hf).__name__} has the size {_times(size[1:])} "
                f"where {queries} × {keys} tokens look at each other, as it is windowed, pooled or "
                "cut into buckets; it cannot be read as attention between tokens."
            )


def _times(sizes: Sequence[int]) -> str:
    return " × ".join(map(str, sizes))


def _watched(model: Model, plan: _Plan, observer: Observer) -> AbstractContextManager[Any]:
    if plan.via == "interface":
        return observing(model.hf, observer)
    if plan.via == "hooks":
        return watching(model.hf)
    return nullcontext()


def _reduced(
    reducers: Mapping[str, Reducer], layers: Sequence[Layer], maps: Sequence[Tensor]
) -> dict[str, list[Tensor]]:
    blocks = []
    for layer, weights in zip(layers, maps, strict=True):
        blocks.append(Block(weights.detach(), None, 0, layer.kind, layer.index))
    return {name: [reducer(block) for block in blocks] for name, reducer in reducers.items()}


def _backward(
    model: Model,
    values: Sequence[Float[Tensor, ""]],
    run: _Run,
    needs: Needs,
    questions: _Questions,
    targets: Sequence[Target],
) -> list[Tensor]:
    """Gradients of the embeddings, and of the maps when asked, one row for each ask."""
    wanted = [run.leaf]
    if needs & Needs.ATTENTION_GRADIENTS:
        wanted += run.maps
    if any(not tensor.requires_grad for tensor in wanted):
        raise Unsupported(
            "the attention weights that this model returns are outside the graph; "
            "use a gradient method without attention."
        )
    rounds = questions.rounds()
    if len(rounds) == 1:
        return slopes_of(model, torch.stack(list(values)).sum(), wanted)
    gradients = [tensor.new_zeros(len(values), *tensor.shape[1:]) for tensor in wanted]
    begins = _beginnings(values, run, questions, targets)
    for number, asks in enumerate(rounds, start=1):
        end, seed = begins(asks)
        slopes = slopes_of(model, end, wanted, keep_graph=number < len(rounds), seed=seed)
        rows = [questions.row_of_ask[ask] for ask in asks]
        for gradient, slope in zip(gradients, slopes, strict=True):
            gradient[asks] = slope[rows]
    return gradients


def _beginnings(
    values: Sequence[Float[Tensor, ""]],
    run: _Run,
    questions: _Questions,
    targets: Sequence[Target],
) -> Callable[[Sequence[int]], Beginning]:
    """Where the way back of some asks begins; those of written texts share the head."""
    states = run.states
    if states is not None and all(ask.passage.written is not None for ask in questions.asks):
        steps = [target.steps for target in targets]
        spots = list(zip(questions.row_of_ask, steps, strict=True))
        if are_apart(spots):
            slopes = slopes_at_head(torch.stack(list(values)).sum(), states)
            return lambda asks: (states, of_some_rows(slopes, [spots[ask] for ask in asks]))
    return lambda asks: (torch.stack([values[ask] for ask in asks]).sum(), None)


def check_graph(model: Model, value: Tensor) -> None:
    """Raise where what the model said does not depend on the embeddings, as far as torch knows."""
    if value.grad_fn is None:
        raise no_gradient(model)
    # the graph is walked once for a model: again when some of its modules are of another class
    classes = hash(tuple(type(module) for module in modules_of(model.hf)))
    if _whole_graphs.get(model.hf) == classes:
        return
    if any("NotImplemented" in node.name() for node in _nodes(value.grad_fn)):
        raise no_gradient(model)
    _whole_graphs[model.hf] = classes


# Models in whose graph every operation has a gradient, by the classes of their modules. One that
# has none, as those of quantised layers, gives nothing back: all is lost that came through it, and
# what went round it, in a residual path, arrives and looks like a gradient.
_whole_graphs: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def _nodes(last: Any) -> list[Any]:
    """Every node of the graph behind this one."""
    nodes = [last]
    seen = {last}
    for node in nodes:  # which grows on the way
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                nodes.append(before)
    return nodes


def no_gradient(model: Model) -> Unsupported:
    """The refusal of a model whose computation is cut out of the graph."""
    return Unsupported(
        f"no gradient reaches the input embeddings of {type(model.hf).__name__}: some of its "
        f"computation is outside the graph, as that of quantised layers is. {STILL_WORK}"
    )


def slopes_of(
    model: Model,
    end: Float[Tensor, "*size"],
    wanted: Sequence[Tensor],
    *,
    keep_graph: bool = False,
    seed: Float[Tensor, "*size"] | None = None,
) -> list[Tensor]:
    """One backward pass to the embeddings, which come first, and to maps, if any.

    It begins at a number, or at any tensor with the slopes there (``seed``).
    A map on which the target does not depend has a gradient of zero. Embeddings that no gradient
    reaches are refused: the graph is cut, and zeros would look like an answer.
    """
    check_graph(model, end)
    try:
        slopes = torch.autograd.grad(end, wanted, seed, allow_unused=True, retain_graph=keep_graph)
    except RuntimeError as problem:
        # as where a model changed in place what the way back would need
        raise not_run(model.hf, problem) from problem
    if slopes[0] is None:
        raise no_gradient(model)
    if len(slopes) > 1 and all(slope is None for slope in slopes[1:]):
        raise Unsupported(
            "no gradient reaches the attention weights that this model returns; "
            "use a gradient method without attention."
        )
    gradients = []
    for tensor, slope in zip(wanted, slopes, strict=True):
        gradients.append(torch.zeros_like(tensor) if slope is None else slope)
    return gradients


def _resolve(
    model: Model, questions: _Questions, logits: Float[Tensor, "row *output label"]
) -> tuple[Target, ...]:
    rows = as_numpy(logits)
    targets = []
    for ask, row in zip(questions.asks, questions.row_of_ask, strict=True):
        targets.append(model.resolve(ask.target, rows[row], ask.passage))
    return tuple(targets)


def _said(
    model: Model,
    questions: _Questions,
    logits: Float[Tensor, "row *output label"],
    targets: Sequence[Target],
) -> tuple[Float[Tensor, "ask label"], list[Float[Tensor, ""]]]:
    """The logits where each ask is read, and the value of its target.

    Each value is a leaf's child of its own: what one output's way back touches is its own row of
    logits, and not those of all outputs.
    """
    rows, values = [], []
    for row, target in zip(questions.row_of_ask, targets, strict=True):
        own = logits[row]
        if own.ndim == 2 and target.until is None:
            own = own[target.steps.start]
        values.append(model.value(own[None], [target])[0])
        rows.append(own if own.ndim == 1 else own[target.steps.start])
    return torch.stack(rows), values


def _read_at_targets(
    model: Model, asks: Sequence[Ask], targets: Sequence[Target]
) -> tuple[Passage, ...]:
    """The passages, to be read where each target is; as they are for a model without a head."""
    if not targets:
        return tuple(ask.passage for ask in asks)
    passages = []
    for ask, target in zip(asks, targets, strict=True):
        if ask.passage.written is not None:
            passages.append(read_at_output(ask.passage, target))
        else:
            passages.append(model.kind.at_target(model, ask.passage, target))
    return tuple(passages)


def _from_outputs(model: Model, outputs: Any) -> tuple[list[Layer], list[Tensor]]:
    """The fallback for families outside the registry: what ``output_attentions`` returns."""
    own = "decoder" if model.is_causal else "encoder"
    kind_of = {
        "encoder_attentions": "encoder",
        "decoder_attentions": "decoder",
        "cross_attentions": "cross",
        "attentions": own,
    }
    layers: list[Layer] = []
    maps: list[Tensor] = []
    for name, kind in kind_of.items():
        for index, weights in enumerate(getattr(outputs, name, None) or ()):
            if weights is not None:
                layers.append(Layer(f"{kind}.{index}", kind, index))
                maps.append(weights)
    return layers, maps


def _kinds(layers: Sequence[Layer]) -> list[str]:
    return list(dict.fromkeys(layer.kind for layer in layers))


def _by_kind(
    kinds: Sequence[str], layers: Sequence[Layer], per_layer: Sequence[Any]
) -> dict[str, tuple[Any, ...]]:
    """What there is for each layer, sorted by the kind of its attention."""
    sorted_out: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for layer, entry in zip(layers, per_layer, strict=True):
        if layer.kind in sorted_out:
            sorted_out[layer.kind].append(entry)
    return {kind: tuple(entries) for kind, entries in sorted_out.items()}


def _hidden_states(outputs: Any, questions: _Questions) -> tuple[Tensor, ...]:
    states = getattr(outputs, "hidden_states", None)
    if not states:
        states = getattr(outputs, "encoder_hidden_states", None) or ()
    if not all(isinstance(state, Tensor) for state in states):
        raise Unsupported("what this model gives out as hidden states is not one tensor a layer.")
    return tuple(questions.spread(state.detach()) for state in states)


def _in_place(embeddings: Tensor, batch: Batch) -> Tensor:
    """Embeddings with one row for each token.

    Image models embed patches only: zero rows stand for the special tokens in front.
    An image beside a text stands behind it, and its rows are zero.
    """
    missing = max(batch.lengths) - embeddings.shape[1]
    if missing <= 0:
        return embeddings
    text_comes_first = "input_ids" in batch.inputs
    return nn.functional.pad(
        embeddings, (0, 0, 0, missing) if text_comes_first else (0, 0, missing, 0)
    )
