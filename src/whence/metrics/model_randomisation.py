"""Model randomisation: is the explanation about what the model has learnt?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import SEED, Better, Needs, metric, setting
from whence.metrics.again import Again, Explanation, Other, check_units, present, similarity_to
from whence.models.changes import Randomised, shares


@metric("model-randomisation", version=1, cites="adebayo2018sanity", aliases=("sanity-check",))
@dataclass(frozen=True, slots=True)
class ModelRandomisation:
    """How much less the explanation is like itself when the model forgets what it learnt.

    The weights are shuffled from the output down, in steps. Similarity is Spearman's, of the sizes
    of the scores. What is measured is the similarity under other seeds less that with the
    randomised models, so that noise, which is never like itself, gains nothing.
    """

    steps: int = setting(4, "In how many steps the model is randomised, from the output down.")
    seeds: int = setting(2, "How often the explanation is made again on the model as it is.")
    seed: int = setting(0, SEED)

    needs: ClassVar[Needs] = Needs.AGAIN
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-2.0, 2.0)
    chance: ClassVar[float] = 0.0
    misleads: ClassVar[str] = (
        "It says that the explanation depends on the model, not that it is right. Words that any "
        "model of this shape would weigh, such as the first one, keep the similarity up."
    )

    def __post_init__(self) -> None:
        if self.steps < 1 or self.seeds < 1:
            raise ValueError(f"steps and seeds are 1 or more, not {self.steps} and {self.seeds}")

    def again(self) -> tuple[Again, ...]:
        """Under other seeds on the model as it is; then on each state of the cascade."""
        as_it_is = [Again(seed=step + 1) for step in range(self.seeds)]
        states = [Again(model=Randomised(share, self.seed)) for share in shares(self.steps)]
        return (*as_it_is, *states)

    def __call__(self, first: Explanation, others: Sequence[Other]) -> float:
        check_units(first, least=3)
        as_it_is = _mean_similarity(first, others[: self.seeds])
        randomised = _mean_similarity(first, others[self.seeds :])
        return as_it_is - randomised


def _mean_similarity(first: Explanation, others: Sequence[Other]) -> float:
    there = present(others)
    return float(similarity_to(first.sizes, [other.sizes for other in there]).mean())
