"""How good an autoencoder is, on texts that it was not trained on, beside simpler things.

A dictionary that keeps 30 numbers of each hidden state is held against 30 principal components, 30
entries of a random dictionary, and the 30 largest neurons: what those reach is no merit of
training.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from whence.core.bootstrap import Mean
from whence.core.stored import Stored, as_stored


@dataclass(frozen=True)
class Fit:
    """How well something stands for the hidden states. Each number is over held-out documents.

    ``l0`` is how many numbers it keeps of a hidden state, ``variance_explained`` is
    1 − Σ‖h − s‖² / Σ‖h − mean‖². ``recovered`` is the share of the model's loss that comes back
    when its output replaces the hidden states, where zeros there are 0 and the hidden states
    themselves are 1; ``recovered_over_mean`` the same with the mean hidden state for zeros.
    """

    name: str
    l0: Mean
    variance_explained: Mean
    recovered: Mean | None = None
    recovered_over_mean: Mean | None = None


@dataclass(frozen=True)
class Agreement:
    """How many features another training found too, that began from another seed.

    ``share`` of the features have a cosine above ``above`` with one of the other's. ``chance`` is
    what random directions of the same number get.
    """

    with_seed: int
    above: float
    share: float
    mean_cosine: float
    chance: float
    chance_cosine: float


@dataclass(frozen=True)
class Quality:
    """What was measured on held-out text.

    ``loss`` says what is measured of the model: "next token" (cross-entropy), "divergence" (of its
    output from its own, where it predicts no token), or "distance" (of its last hidden states, for
    a model without a head). ``fits`` begins with the autoencoder; ``random_model`` is an
    autoencoder that was trained in the same way on the same model with shuffled weights.
    """

    documents: int
    tokens: int
    size: int
    dead: int  # features that no training row activated
    dense: int  # features that were active on more than a tenth of the training rows
    seen: int  # training rows that these two were counted on
    loss: str
    loss_plain: float
    loss_zero: float
    loss_mean: float
    fits: tuple[Fit, ...]
    agreement: Agreement | None = None
    random_model: Fit | None = None

    @property
    def own(self) -> Fit:
        """Of the autoencoder itself."""
        return self.fits[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any] | Stored) -> Quality:
        """What ``to_dict`` gave; a wrong value is refused by its path."""
        at = as_stored(stored, "quality of an autoencoder")
        agreement, random_model = at.get("agreement"), at.get("random_model")
        numbers = ("documents", "tokens", "size", "dead", "dense", "seen")
        return cls(
            **{name: at[name].whole() for name in numbers},
            loss=at["loss"].text(),
            loss_plain=at["loss_plain"].number(),
            loss_zero=at["loss_zero"].number(),
            loss_mean=at["loss_mean"].number(),
            fits=tuple(_fit(one) for one in at["fits"].items()),
            agreement=None if agreement is None else agreement.record(Agreement),
            random_model=None if random_model is None else _fit(random_model),
        )


def _fit(at: Stored) -> Fit:
    recovered, over_mean = at.get("recovered"), at.get("recovered_over_mean")
    return Fit(
        at["name"].text(),
        at["l0"].record(Mean),
        at["variance_explained"].record(Mean),
        None if recovered is None else recovered.record(Mean),
        None if over_mean is None else over_mean.record(Mean),
    )
