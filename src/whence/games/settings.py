"""The settings that LIME and the values of the Shapley family share: how masks are sampled."""

from dataclasses import dataclass
from typing import Literal

from whence.core.registry import SEED, setting
from whence.games.scoring import Plan, Samples

# a regression on the game itself, on what a surrogate leaves over, or the better of the two
Regression = Literal["auto", "surrogate", "plain"]
LEAN = 200  # masks, where a model is large or a budget small

# sentences of settings that several methods have
REMOVAL = (
    "What stands where a unit was removed: mask, delete, pad, mean, zero, infill or infill:MODEL; "
    "auto takes what suits the model."
)
EXACT = "Up to so many units every text with units removed is run, and nothing is sampled."
ESTIMATOR = (
    "How scores come from the texts that were run: plain (a regression), surrogate (with a fitted "
    "stand-in of the model), or auto for the one with the smaller error."
)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many masks are asked, and how values are estimated from them.

    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn in complement
    pairs; ``auto`` draws until the standard error of the ``top`` largest scores is at most
    ``tolerance`` of them, or ``budget`` masks are spent. ``estimator`` is for each method to say.
    """

    removal: str = setting("auto", REMOVAL)
    samples: Samples = setting(
        "auto",
        "How many texts with units removed are run; auto runs more until the error is small.",
    )
    top: int = setting(5, "With samples=auto: how many of the largest scores must be precise.")
    tolerance: float = setting(
        0.1, "With samples=auto: how large their standard error may be, as a share of the scores."
    )
    budget: int = setting(2000, "With samples=auto: how many texts are run at most.")
    estimator: str = setting("auto", ESTIMATOR)
    exact: int = setting(12, EXACT)
    seed: int = setting(0, SEED)

    def __post_init__(self) -> None:
        self.plan()

    def lean(self, units: int) -> dict[str, int]:
        """Fewer masks, and still enough for a regression or for random orders."""
        return {"budget": max(LEAN, 4 * (units + 1))}

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
