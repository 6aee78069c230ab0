"""The settings that LIME and the values of the Shapley family share: how masks are sampled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from whence.games.scoring import Plan, Samples

# a regression on the game itself, on what a surrogate leaves over, or the better of the two
Regression = Literal["auto", "surrogate", "plain"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many masks are asked, and how values are estimated from them.

    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn in complement
    pairs; ``auto`` draws until the standard error of the ``top`` largest scores is at most
    ``tolerance`` of them, or ``budget`` masks are spent. ``estimator`` is for each method to say.
    ``removal`` says what stands in place of what is removed.
    """

    removal: str = "auto"
    samples: Samples = "auto"
    top: int = 5
    tolerance: float = 0.1
    budget: int = 2000
    estimator: str = "auto"
    exact: int = 12
    seed: int = 0

    lean: ClassVar[Mapping[str, Any]] = {"budget": 200}

    def __post_init__(self) -> None:
        self.plan()

    def plan(self) -> Plan:
        """The same for the sampler, which refuses values that make no sense."""
        return Plan(
            samples=self.samples,
            top=self.top,
            tolerance=self.tolerance,
            budget=self.budget,
            exact=self.exact,
            seed=self.seed,
        )
