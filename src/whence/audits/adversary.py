"""Adversarial attention: the most different attention under which the output stays.

Jain & Wallace (2019, section 4.2.2) look for weights that are far from a model's own, in
Jensen–Shannon divergence (JSD), under which its output moves by ε at most. The largest such
divergence, ε-max JSD, is near ln 2 where almost any attention would have done, and near 0 where the
output hangs on the weights.

Theirs is one distribution. A layer of a transformer has one for each head and query, each with
logits of its own here. The divergence of a layer is the mean over its heads and over those queries
on which the output can depend (``rows_that_matter``), and of several layers the mean over them: so
the one row that a classifier reads in its last layer counts as much as all rows of another.

Each step goes uphill in JSD, and back as far as the slope of the output's change demands, both by
the natural gradient (divided by the weights p, so that a key with next to no weight can get some):

    z ← z + rate · ∂JSD/∂p − λ · ∂change/∂p,    λ ≥ 0 such that change + ⟨slope, step⟩ ≤ ε

That is one forward and one backward pass, as JSD needs none. Each iterate that keeps the output
counts, and a longer search can only raise ε-max JSD: it is a lower bound of what there is.

A search that was never near the output again has found nothing: there is no observation of ``jsd``
then. It would be a mistake to call that 0, as if the output hung on the weights: every attention
has others close by that keep the output. And it would be a mistake to leave such texts out where
the claim is that another attention *does* keep the output. So there is a second number,
``jsd-at-least``, of every text: 0 where nothing was found, as the attention itself keeps it.

What is enough was tried on three and six texts (12 to 61 tokens) of the bundled model
``sentiment``, and on planted models whose output hangs on attention (``tests/audits/planted.py``).
After 15 steps at rate 10, ε-max JSD was within 2 % of its value after 30 steps at rate 40
(``sentiment``: 0.657 and 0.663 in layer 0, 0.663 and 0.671 jointly) and of 300 steps from four
starts (planted: 0.108 and 0.110). Twice the rate lost the way back to the output from some far
starts in layer 0. Adam with a penalty, as in the paper's code, was as far after 100 steps on
``sentiment``, and after 20 steps had reached 0.02 to 0.09 on the planted model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whence.audits.case import Case, Price
from whence.audits.moved import output_moved
from whence.audits.places import (
    check_can_edit,
    layers_of,
    mean_over_rows,
    places_in,
    rows_that_matter,
    whole_layers,
)
from whence.core.audit import Observation, Place
from whence.core.audited import AT_LEAST
from whence.core.errors import SettingsError
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.games.game import TOKENS_AT_ONCE
from whence.models.batches import Batch
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.theory.divergence import jsd
from whence.trace.attention import Layer
from whence.trace.edits import Edit, in_order_of
from whence.trace.forecast import lengths_of
from whence.trace.trace import Trace, logits_under, slopes_of, trace

STREAM = 15_3  # of random numbers that are drawn here, and nowhere else
SHARES = (1.0, 0.1)  # of what is opposite to the attention, in a start: far and near in turns
LEAST_WEIGHT = 1e-6  # below this a key is as good as hidden
KEPT = 0.97  # of ε is aimed at: a step that lands a little beyond would not count
LONGEST = 3.0  # step of a logit: slopes do not hold for longer ones
NO_WEIGHT = 1e-12  # p log p is zero at zero, and its slope is not to be infinite


@dataclass(frozen=True)
class Adversary:
    """The largest JSD from the attention at which the output moves by ``epsilon`` at most.

    The control is the JSD from the attention to a random one of the same entropy: to its own
    weights, shuffled.

    >>> import whence
    >>> from whence.core.target import Target
    >>> model = whence.load("sentiment")
    >>> case = Case(model.encode("not a bad film at all"), Target())
    >>> at_least, jsd, change = Adversary()(model, [case])[0][-3:]
    >>> print(jsd.quantity, "at", jsd.place, 0.3 < jsd.value < np.log(2), change.value <= 0.05)
    jsd at every layer True True
    """

    epsilon: int | float = 0.05
    steps: int = 15
    restarts: int = 2
    rate: int | float = 10.0

    name: ClassVar[str] = "adversary"
    null: ClassVar[str] = "any other attention would do: ε-max JSD is ln 2 = 0.69"
    effect: ClassVar[str] = "ε-max JSD, in nats (0 to ln 2)"

    def __post_init__(self) -> None:
        if self.steps < 1 or self.restarts < 1:
            raise SettingsError(
                "a search needs one step and one start at least, and "
                f"steps={self.steps}, restarts={self.restarts} were asked for."
            )
        if min(self.epsilon, self.rate) <= 0:
            raise SettingsError(
                f"epsilon and rate are above 0, and {self.epsilon} and {self.rate} were asked for."
            )

    def passes(self, heads: int, wholes: int) -> Price:  # noqa: ARG002
        """For each layer and for all of them, each start with its steps; and the text as it is."""
        steps = wholes * self.restarts * self.steps
        last_looks = wholes * self.restarts
        return Price(forwards=steps + last_looks + self.restarts, backwards=steps)

    def __call__(self, model: Model, cases: Sequence[Case]) -> list[list[Observation]]:
        """ε-max JSD of each text in each layer and jointly, and the output's change there."""
        check_can_edit(model)
        starts = [(number, start) for number in range(len(cases)) for start in range(self.restarts)]
        lengths = [len(cases[number].passage) for number, _ in starts]
        ends: list[dict[Place, _End]] = [{} for _ in cases]
        for group in model.groups_of_lengths(lengths, TOKENS_AT_ONCE):
            rows = [_Row(cases[starts[i][0]], starts[i][1]) for i in group]
            asks = [Ask(row.case.passage, row.case.target) for row in rows]
            plain = trace(model, asks, needs=Needs.ATTENTION)
            for place in whole_layers(places_in(plain)):
                for i, end in zip(group, self._search(plain, place, rows), strict=True):
                    of_case = ends[starts[i][0]]
                    if end is not None:
                        of_case[place] = max(end, of_case.get(place, end), key=lambda e: e.jsd)
        return [self._observed(of_case) for of_case in ends]

    def _observed(self, ends: dict[Place, _End]) -> list[Observation]:
        observations = []
        for place, end in ends.items():
            at_least = Observation(self.name, AT_LEAST, end.jsd, place, control=end.control)
            observations.append(at_least)
            if end.jsd > 0:
                jsd = Observation(self.name, "jsd", end.jsd, place, control=end.control)
                change = Observation(self.name, "change", end.change, place)
                observations += [jsd, change]
        return observations

    def _search(self, plain: Trace, place: Place, rows: Sequence[_Row]) -> list[_End | None]:
        """Where each row of the batch ends, at one place.

        None where no query has a choice. The divergence is 0 where no iterate kept the output.
        """
        model = plain.model
        with (
            model.lock,
            untouched(model.hf),
            unbroken(torch.inference_mode(False), torch.enable_grad()),
        ):
            batch = model.batch(plain.passages)
            free = [_freed(plain, layer, rows) for layer in layers_of(plain, place)]
            best, change = self._climb(plain, batch, free)
            control = _over_layers(free, [each.control() for each in free])
        ends: list[_End | None] = []
        for i, numbers in enumerate(torch.stack([best, change, control], -1).tolist()):
            has_choice = any(bool(each.matters[i].any()) for each in free)
            ends.append(_End(*numbers) if has_choice else None)
        return ends

    def _climb(
        self, plain: Trace, batch: Batch, free: Sequence[_Free]
    ) -> tuple[Float[Tensor, " row"], Float[Tensor, " row"]]:
        """The largest divergence that keeps the output, of each row, and the change there."""
        model = plain.model
        before = plain.logits.double()
        edits = [each.edit for each in free]
        best = before.new_zeros(len(before))
        at_best = before.new_zeros(len(before))
        for step in range(self.steps + 1):
            last = step == self.steps
            with torch.set_grad_enabled(not last):
                after = logits_under(model, batch, edits).double()
                change = output_moved(model, plain.targets, before, after)
            jsd = _over_layers(free, [each.divergence() for each in free])

            better = (change <= self.epsilon) & (jsd > best)
            best = torch.where(better, jsd, best)
            at_best = torch.where(better, change.detach(), at_best)
            if not last:
                slopes = slopes_of(model, change.sum(), [each.now for each in free])
                with torch.no_grad():
                    self._step(free, slopes, change.detach().float())
        return best, at_best

    def _step(
        self, free: Sequence[_Free], slopes: Sequence[Tensor], change: Float[Tensor, " row"]
    ) -> None:
        """Uphill in JSD, and back as far as the slopes say that the change would be beyond ε."""
        steps = []
        rise, steepness = torch.zeros_like(change), torch.zeros_like(change)
        for each, slope in zip(free, slopes, strict=True):
            up = self.rate * each.uphill()
            down = each.centred(slope)
            rise += (each.now * up * down).sum((1, 2, 3))
            steepness += (each.now * down**2 / each.share).sum((1, 2, 3))
            steps.append((each, up, down / each.share))

        too_much = (change + rise - KEPT * self.epsilon).relu()
        back = too_much / steepness.clamp(min=NO_WEIGHT)
        for each, up, down in steps:
            each.move(up - back[:, None, None, None] * down)


@dataclass(frozen=True)
class _Row:
    """One start of the search on one text."""

    case: Case
    start: int


@dataclass(frozen=True)
class _End:
    """What a search came to."""

    jsd: float
    change: float
    control: float


@dataclass
class _Free:
    """The attention of one layer, whose logits can be moved."""

    layer: Layer
    logits: Float[Tensor, "row head query key"]
    own: Float[Tensor, "row head query key"]
    matters: Bool[Tensor, "row query"]
    noise: Float[Tensor, "row head query key"]
    now: Float[Tensor, "row head query key"] = field(init=False)
    visible: Bool[Tensor, "#b #h #q k"] = field(init=False)

    @property
    def edit(self) -> Edit:
        """The softmax of the logits in place of the layer's own weights."""
        return Edit("adversary", "attention", self._attend, self.layer.index, None, self.layer.kind)

    def _attend(
        self, weights: Float[Tensor, "row head query key"], allowed: Bool[Tensor, "#b #h #q k"]
    ) -> Float[Tensor, "row head query key"]:
        self.visible = allowed
        hidden = torch.finfo(self.logits.dtype).min
        self.now = torch.where(allowed, self.logits, hidden).softmax(-1)
        self.now.requires_grad_(torch.is_grad_enabled())
        # a family with sinks keeps some of the weight for nobody, and goes on doing so
        return self.now * weights.detach().sum(-1, keepdim=True)

    @property
    def share(self) -> Float[Tensor, "row 1 1 1"]:
        """How much one distribution counts in the layer's divergence."""
        counted = self.matters.sum(-1) * self.own.shape[1]
        return 1 / counted.clamp(min=1)[:, None, None, None]

    def uphill(self) -> Float[Tensor, "row head query key"]:
        """Of each distribution that counts: ∂JSD/∂p = ½ log(2p / (p + own))."""
        middle = (self.now + self.own).clamp(min=NO_WEIGHT)
        slope = 0.5 * (2 * self.now / middle).clamp(min=NO_WEIGHT).log()
        return self.centred(slope) * self.matters[:, None, :, None]

    def centred(
        self, slope: Float[Tensor, "row head query key"]
    ) -> Float[Tensor, "row head query key"]:
        """Less its mean under p: what is left of a slope where weights sum to one."""
        return slope - (self.now * slope).sum(-1, keepdim=True)

    def move(self, by: Float[Tensor, "row head query key"]) -> None:
        """One step, of which no logit is moved too far or too low to come back."""
        logits = self.logits + by.clamp(-LONGEST, LONGEST)
        highest = torch.where(self.visible, logits, -torch.inf).amax(-1, keepdim=True)
        self.logits = (logits - highest).clamp(min=float(np.log(LEAST_WEIGHT)))

    def divergence(self) -> Float[Tensor, " row"]:
        """From the layer's own attention, the mean over heads and over the rows that matter."""
        return mean_jsd(self.now.detach(), self.own, self.matters)

    def control(self) -> Float[Tensor, " row"]:
        """The same, of its own weights in another order: a random attention of equal entropy."""
        shuffled = in_order_of(self.noise, self.own, self.visible)
        return mean_jsd(shuffled, self.own, self.matters)


def _over_layers(
    free: Sequence[_Free], numbers: Sequence[Float[Tensor, " row"]]
) -> Float[Tensor, " row"]:
    """The mean over those layers in which a query has a choice."""
    counts = torch.stack([each.matters.any(-1) for each in free]).sum(0)
    return torch.stack(list(numbers)).double().sum(0) / counts.clamp(min=1)


def mean_jsd(
    p: Float[Tensor, "row head query key"],
    q: Float[Tensor, "row head query key"],
    matters: Bool[Tensor, "row query"],
) -> Float[Tensor, " row"]:
    """The mean over heads and over the queries that matter; 0 where there are none."""
    return mean_over_rows(jsd(p, q), matters)


def _freed(plain: Trace, layer: Layer, rows: Sequence[_Row]) -> _Free:
    """The logits of a layer where the search of each row starts."""
    weights = plain.attentions[layer.kind][layer.index].float()
    own = weights / weights.sum(-1, keepdim=True).clamp(min=NO_WEIGHT)
    matters = torch.stack([rows_that_matter(plain, i, layer) for i in range(len(rows))])
    noise = _noise(plain, layer, rows).to(own)
    shares = own.new_tensor([SHARES[row.start % len(SHARES)] for row in rows])
    starts = torch.lerp(own, _opposite(own, noise), shares[:, None, None, None])
    starts = starts.clamp(min=LEAST_WEIGHT).log()
    return _Free(layer, starts, own, matters.to(own.device), noise)


def _opposite(
    own: Float[Tensor, "row head query key"], noise: Float[Tensor, "row head query key"]
) -> Float[Tensor, "row head query key"]:
    """Most weight where there was least, at random among keys that are alike."""
    scores = noise - own.clamp(min=LEAST_WEIGHT).log()
    return torch.where(own > 0, scores, torch.finfo(scores.dtype).min).softmax(-1)


def _noise(plain: Trace, layer: Layer, rows: Sequence[_Row]) -> Float[Tensor, "row head query key"]:
    """Of each start its own, the same whatever else is in the batch."""
    kind = list(plain.layers).index(layer.kind)
    noise = np.zeros(plain.attentions[layer.kind][layer.index].shape, np.float32)
    for table, row in zip(noise, rows, strict=True):
        queries, keys = lengths_of(plain.model, row.case.passage)[layer.kind]
        of_text = table[:, :queries, :keys]
        stream = [row.case.seed, STREAM, *row.case.passage.digest, kind, layer.index, row.start]
        of_text[:] = np.random.default_rng(stream).standard_normal(of_text.shape, np.float32)
    return torch.from_numpy(noise)
