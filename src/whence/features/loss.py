"""What the losses of all variants are made of. A loss is a sum over rows; a step divides it.

reconstruction   Σ_i ‖x_i − s_i‖²
auxiliary        Σ_i ‖e_i − ê_i‖²    the error e, rebuilt by dead features alone (Gao et al. 2024)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from whence.features.choosing import Encoder, Part, Wanted, wanted_of
from whence.features.groups import Group
from whence.features.kernels import squared
from whence.features.rules import Rule
from whence.features.settings import Settings

Parameters = Mapping[str, Tensor]
# of sparse entries, or of all
Values = Float[Tensor, " entry"] | Float[Tensor, "row feature"]


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a loss over some rows, and the activations and errors that it came from."""

    reconstruction: Float[Tensor, ""]
    sparsity: Float[Tensor, ""] | float
    auxiliary: Float[Tensor, ""] | float
    activations: Values
    error: Float[Tensor, "row dim"]  # x − s

    @property
    def total(self) -> Float[Tensor, ""]:
        """What is minimised."""
        return self.reconstruction + self.sparsity + self.auxiliary


@dataclass(frozen=True, eq=False)
class Trained:
    """What training has come to: ``parameters`` that move, and what is ``kept`` beside them."""

    settings: Settings
    parameters: Parameters
    kept: Parameters


@dataclass(frozen=True, eq=False)
class Moment(Trained):
    """What a step knows beside its rows."""

    strength: float  # λ as it is now
    dead: Bool[Tensor, " feature"]
    group: Group

    def wanted(self, dim: int) -> Wanted | None:
        """The dead features that the auxiliary loss brings back."""
        return wanted_of(self.dead, dim, self.settings.auxiliary_k)


@dataclass(frozen=True)
class Variant:
    """One way to train an autoencoder: what is active, what is minimised, and the rule it ends in.

    ``more`` makes parameters beside encoder and decoder, ``kept`` numbers that are followed and not
    trained, by ``see``: it is called for each part, and a variant that compares processes there has
    one part in each of them. With ``unit`` the directions have length 1, which stops a loss from
    being lowered by smaller activations with longer directions.
    """

    name: str
    paper: str
    unit: bool
    needs_k: bool
    parts: Callable[[Tensor, Moment], Iterator[Part]]
    loss: Callable[[Part, Moment], Terms]
    rule: Callable[[Trained], Rule]
    more: Callable[[Settings], dict[str, Tensor]] = lambda _: {}
    kept: Callable[[Settings], dict[str, Tensor]] = lambda _: {}
    see: Callable[[Values, Parameters, Group], None] = lambda *_: None


def encoder_of(moment: Moment) -> Encoder:
    """The encoder among the parameters."""
    return Encoder(moment.parameters["encoder"], moment.parameters["encoder_bias"])


def missed(
    part: Part, activations: Values, parameters: Parameters
) -> tuple[Float[Tensor, ""], Float[Tensor, "row dim"]]:
    """``Σ_i ‖x_i − s_i‖²``, and the errors x − s, which have no gradient."""
    decoder, bias = parameters["decoder"], parameters["decoder_bias"]
    return part.at.missed(activations, decoder, bias, part.rows)  # type: ignore[arg-type]


def revival(
    part: Part, error: Float[Tensor, "row dim"], moment: Moment
) -> Float[Tensor, ""] | float:
    """The auxiliary loss. The error is a target: it has no gradient, dead features have theirs."""
    if part.dead is None:
        return 0.0
    at, pre = part.dead.at, part.dead.pre
    rebuilt = at.decode(pre.relu(), moment.parameters["decoder"])
    return moment.settings.auxiliary * squared(error.detach() - rebuilt)
