"""Training of an autoencoder, one batch at a time, on rows that somebody else brings.

``begin`` makes a State, ``step`` moves it by one batch, ``finished`` makes it an Autoencoder. A
State is tensors and a number: ``state_tensors`` and ``state_from`` take it to a file and back, and
a run that is continued from there ends in the same bits. Nothing is random but the first
directions, which come from the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.errors import InputError, LoadError
from whence.core.features import About
from whence.features.autoencoder import Autoencoder
from whence.features.choosing import Part
from whence.features.groups import Group
from whence.features.kernels import squared
from whence.features.loss import Moment, Terms, Trained, Variant
from whence.features.optimising import adam_, along_removed_, clip_, unit_
from whence.features.rules import Gated, Threshold
from whence.features.settings import Settings, Statistics
from whence.features.variants import variant_named

__all__ = [
    "Report",
    "Settings",
    "State",
    "Statistics",
    "begin",
    "finished",
    "state_from",
    "state_tensors",
    "step",
]

FIRST_LENGTH = 0.1  # of the directions of variants whose lengths are free


@dataclass(eq=False)
class State:
    """All that changes in training. ``step`` changes it in place.

    ``parameters`` are trained, with the ``first`` and ``second`` moments of Adam. ``kept`` is
    followed along the way. ``idle`` counts, for each feature, the rows since it was last active.
    """

    statistics: Statistics
    parameters: dict[str, Tensor]
    first: dict[str, Tensor]
    second: dict[str, Tensor]
    kept: dict[str, Tensor]
    idle: Int[Tensor, " feature"]
    steps: int = 0


@dataclass(frozen=True)
class Report:
    """What a step saw, as means over the rows of its batch, before it moved.

    ``variance_explained`` is ``1 − Σ‖x − s‖² / Σ‖x − x̄‖²``, with the batch's own mean x̄.
    """

    loss: float
    reconstruction: float
    sparsity: float
    auxiliary: float
    l0: float  # active features
    variance_explained: float
    dead: int  # features that were idle for too long
    gradient: float  # its length before the clip


def begin(
    settings: Settings,
    dim: int,
    statistics: Statistics | None = None,
    dtype: torch.dtype = torch.float32,
) -> State:
    """Random directions; the encoder begins as the decoder, biases as zero.

    >>> state = begin(Settings("topk", size=6, k=2), dim=4)
    >>> sorted(state.parameters)
    ['decoder', 'decoder_bias', 'encoder', 'encoder_bias']
    """
    variant = variant_named(settings.variant)
    generator = torch.Generator().manual_seed(settings.seed)
    directions = torch.randn(settings.size, dim, generator=generator, dtype=torch.float64)
    unit_(directions)

    decoder = directions if variant.unit else FIRST_LENGTH * directions
    encoder = _first_encoder(decoder, needs_k=variant.needs_k, unit=variant.unit)
    parameters = {
        "encoder": encoder,
        "encoder_bias": torch.zeros(settings.size),
        "decoder": decoder,
        "decoder_bias": torch.zeros(dim),
        **variant.more(settings),
    }
    # copies: the encoder must not share the decoder's memory
    parameters = {name: value.to(dtype, copy=True) for name, value in parameters.items()}
    return State(
        statistics=statistics or Statistics(torch.zeros(dim), 1.0),
        parameters=parameters,
        first={name: torch.zeros_like(value) for name, value in parameters.items()},
        second={name: torch.zeros_like(value) for name, value in parameters.items()},
        kept={name: value.to(dtype) for name, value in variant.kept(settings).items()},
        idle=torch.zeros(settings.size, dtype=torch.int64),
    )


def _first_encoder(decoder: Tensor, needs_k: bool, unit: bool) -> Tensor:
    """The decoder itself. Where half of unit features are active, so small that x comes out."""
    size, dim = decoder.shape
    if unit and not needs_k:
        return decoder * min(1.0, 2 * dim / size)
    return decoder


def step(
    state: State,
    settings: Settings,
    rows: Float[Tensor, "row dim"],
    group: Any = None,
) -> Report:
    """One step of Adam on a batch, in place.

    With ``group``, a process group of torch, each process gives its share of the batch's rows:
    gradients, counters and what is reported are those of the whole batch.
    """
    variant = variant_named(settings.variant)
    together = Group(group)
    _check(rows, state)
    x = (rows - state.statistics.centre).mul_(state.statistics.scale)
    x = x.to(state.parameters["encoder"].dtype)
    leaves = {name: value.detach().requires_grad_() for name, value in state.parameters.items()}
    moment = Moment(
        settings=settings,
        parameters=leaves,
        kept=state.kept,
        strength=settings.strength(state.steps),
        dead=state.idle >= settings.dead_after,
        group=together,
    )
    total = together.total_rows(len(x))

    seen = _Seen(settings.size)
    for part in variant.parts(x, moment):
        _send_back(part, variant, moment, total, seen)

    gradients = {name: _gradient(leaf) for name, leaf in leaves.items()}
    together.sum_(gradients.values())
    with torch.no_grad():
        length = _move(state, settings, gradients, unit=variant.unit)
    fired = together.any(seen.fired)
    state.idle = torch.where(fired, 0, state.idle + total)
    state.steps += 1
    return seen.report(x, total, int(moment.dead.sum()), length, together)


def _send_back(part: Part, variant: Variant, moment: Moment, total: int, seen: _Seen) -> None:
    """Add a part's gradients; what was computed for it is gone before the next part is made."""
    terms = variant.loss(part, moment)
    (terms.total / total).backward()
    with torch.no_grad():
        seen.add(terms, part.at.fired(terms.activations))
        variant.see(terms.activations, moment.kept, moment.group)


def _check(rows: Tensor, state: State) -> None:
    dim = len(state.parameters["decoder_bias"])
    if rows.ndim != 2 or rows.shape[1] != dim:
        shape = tuple(rows.shape)
        raise InputError(f"a batch is rows of {dim} numbers each; this one has the shape {shape}.")
    # one pass: a sum is finite only if all are; one that overflows is looked at more closely
    if not isfinite(float(rows.sum())) and not bool(torch.isfinite(rows).all()):
        raise InputError(
            f"some activations are not finite at step {state.steps}: "
            "the model gives NaN or infinity on this text."
        )


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


def _move(state: State, settings: Settings, gradients: dict[str, Tensor], unit: bool) -> float:
    decoder = state.parameters["decoder"]
    if unit:
        along_removed_(gradients["decoder"], decoder)
    length = clip_(gradients, settings.clip)
    rate = settings.rate(state.steps)
    adam_(state.parameters, gradients, state.first, state.second, state.steps, rate)
    if unit:
        unit_(decoder)
    return length


class _Seen:
    """Sums over the parts of a batch."""

    def __init__(self, size: int) -> None:
        self.sums = torch.zeros(5, dtype=torch.float64)
        self.fired = torch.zeros(size, dtype=torch.bool)

    def add(self, terms: Terms, fired: Tensor) -> None:
        numbers = (
            terms.reconstruction,
            terms.sparsity,
            terms.auxiliary,
            terms.activations.count_nonzero(),
            squared(terms.error.detach()),
        )
        self.sums += torch.tensor([_plain(number) for number in numbers], dtype=torch.float64)
        self.fired |= fired

    def report(self, x: Tensor, total: int, dead: int, length: float, group: Group) -> Report:
        """``x`` is written over: a copy would cost as much as all that is told here."""
        means = x.mean(dim=0) * (len(x) / total)
        group.sum_([self.sums, means])
        spread = group.sum(float(squared(x.sub_(means))))
        reconstruction, sparsity, auxiliary, active, missed = self.sums.tolist()
        return Report(
            loss=(reconstruction + sparsity + auxiliary) / total,
            reconstruction=reconstruction / total,
            sparsity=sparsity / total,
            auxiliary=auxiliary / total,
            l0=active / total,
            variance_explained=1 - missed / spread if spread else 0.0,
            dead=dead,
            gradient=length,
        )


def _plain(number: Tensor | float) -> float:
    return float(number.detach()) if isinstance(number, Tensor) else number


# ---------------------------------------------------------------------- the end of training


def finished(state: State, settings: Settings, about: About | None = None) -> Autoencoder:
    """The autoencoder on hidden states as they are: centre and scale are folded into the weights.

    E' = c E,   b' = b − c E·centre,   D' = D / c,   b_D' = b_D / c + centre
    """
    scale = state.statistics.scale
    centre = state.statistics.centre.double()
    exact = {name: value.detach().double() for name, value in state.parameters.items()}
    encoder = exact["encoder"] * scale
    bias = exact["encoder_bias"] - encoder @ centre
    decoder = exact["decoder"] / scale
    decoder_bias = exact["decoder_bias"] / scale + centre

    rule = variant_named(settings.variant).rule(Trained(settings, exact, state.kept))
    if isinstance(rule, Threshold):
        rule = Threshold(rule.thresholds.float())
    if isinstance(rule, Gated):
        rule = Gated(rule.scale.float(), rule.shift.float())
    size, dim = encoder.shape
    about = about or About("", "", 0, "encoder", settings.variant, size, dim)
    return Autoencoder(
        encoder=encoder.float(),
        encoder_bias=bias.float(),
        decoder=decoder.float(),
        decoder_bias=decoder_bias.float(),
        rule=rule,
        about=replace(about, settings={**settings.to_dict(), **about.settings}),
    )


# ---------------------------------------------------------------------- to a file and back


def state_tensors(state: State) -> dict[str, Tensor]:
    """Everything of a state, for one safetensors file."""
    tensors = {
        "centre": state.statistics.centre,
        "scale": torch.tensor(state.statistics.scale, dtype=torch.float64),
        "idle": state.idle,
        "steps": torch.tensor(state.steps, dtype=torch.int64),
    }
    for group in ("parameters", "first", "second", "kept"):
        for name, value in getattr(state, group).items():
            tensors[f"{group}.{name}"] = value
    return tensors


def state_from(tensors: Mapping[str, Tensor], settings: Settings) -> State:
    """What ``state_tensors`` gave, checked against the settings it is continued with."""
    if "centre" not in tensors:
        raise LoadError("this checkpoint is damaged: 'centre' is missing.")
    pattern = begin(settings, len(tensors["centre"]))
    for name, expected in state_tensors(pattern).items():
        if name not in tensors:
            raise LoadError(f"this checkpoint is damaged: {name!r} is missing.")
        if tensors[name].shape != expected.shape:
            raise LoadError(
                f"this checkpoint is of other settings: {name!r} has the shape "
                f"{tuple(tensors[name].shape)}, not {tuple(expected.shape)}."
            )

    def group(prefix: str, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: tensors[f"{prefix}.{name}"].clone() for name in names}

    return State(
        statistics=Statistics(tensors["centre"].clone(), float(tensors["scale"])),
        parameters=group("parameters", pattern.parameters),
        first=group("first", pattern.first),
        second=group("second", pattern.second),
        kept=group("kept", pattern.kept),
        idle=tensors["idle"].clone(),
        steps=int(tensors["steps"]),
    )
