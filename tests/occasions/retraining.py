"""What training has shown: of accuracy as words go, of attention, and of a tuned model."""

from __future__ import annotations

import numpy as np

from tests.occasions.evaluation import pick, some
from whence.core.roar import Estimate, Roar
from whence.core.sizes import human
from whence.models.model import Model
from whence.retraining.adversarial import Adversarial, Opponent
from whence.retraining.diagnostic import Diagnostic
from whence.retraining.frozen import Frozen
from whence.retraining.training import Training
from whence.retraining.tuning import Tuned

HALF = 0.34657359027997264  # of ln 2: attention that is further away is another one
RANKINGS = ("random", "occlusion", "\x1b[31mred", "größe")
ENDS = ((0.0, 0.0), (0.01, 0.02), (0.3, 0.2), (0.0004, 0.0004))


def named(name: str) -> Model:
    """A model of which nothing but its name is told: there are no weights."""
    model = object.__new__(Model)
    object.__setattr__(model, "name", name)
    return model


def beside(rng: np.random.Generator, bar: float) -> Estimate:
    """A mean below a bar, above it, or next to it; its interval may hold the bar."""
    below, above = pick(rng, ENDS)
    mean = bar + float(pick(rng, (-0.3, -0.01, -0.00001, 0.0, 0.00001, 0.01, 0.3)))
    return Estimate(mean, mean - below, mean + above)


def size(rng: np.random.Generator, bar: float) -> Estimate:
    """The same of what is never below 0."""
    one = beside(rng, bar)
    return Estimate(max(0.0, one.mean), max(0.0, one.low), max(0.0, one.high))


def share(rng: np.random.Generator) -> float:
    return float(pick(rng, (0.0, 1.0, 0.5, 0.9996, 0.0004, 0.731)))


def roar(rng: np.random.Generator) -> Roar:
    shares = np.array(pick(rng, ((0.0,), (0.0, 0.5), (0.0, 0.1, 0.5, 1.0))))
    seeds = int(pick(rng, (1, 2, 5)))
    names = some(rng, RANKINGS, 1)
    return Roar(
        shares=shares,
        accuracies={name: rng.random((seeds, len(shares))) for name in names},
        prior=share(rng),
        removal=pick(rng, ("mask", "delete")),
        keep=bool(rng.random() < 0.5),
        recursive=bool(rng.random() < 0.5),
        train_texts=int(pick(rng, (1, 40))),
        test_texts=int(pick(rng, (1, 10))),
    )


def adversarial(rng: np.random.Generator) -> Adversarial:
    strengths = [0.0, *some(rng, (0.1, 1.0, 10.0))]
    copies = [Opponent(s, size(rng, 0.05), size(rng, HALF), share(rng)) for s in strengths]
    return Adversarial(
        tuple(copies), size(rng, HALF), share(rng), share(rng), 30, pick(rng, (1, 40)), Training()
    )


def frozen(rng: np.random.Generator) -> Frozen:
    between = size(rng, HALF) if rng.random() < 0.5 else None
    own = (share(rng), share(rng))
    means = Estimate(own[0], 0.0, 1.0), Estimate(own[1], 0.0, 1.0)
    lost = beside(rng, 0.0)
    return Frozen(own, own, *means, lost, share(rng), between, 30, pick(rng, (1, 40)), Training())


def diagnostic(rng: np.random.Generator) -> Diagnostic:
    shares = [tuple(share(rng) for _ in range(pick(rng, (1, 3)))) for _ in range(4)]
    over = [beside(rng, 0.01) for _ in range(3)]
    reading = pick(rng, ("attention-mean", "\x1b[31mred"))
    return Diagnostic(reading, *shares, *over, share(rng), 30, pick(rng, (1, 40)), Training())


def tuned(rng: np.random.Generator) -> Tuned:
    return Tuned(
        named("toy"),
        pick(rng, ("mask", "delete")),
        share(rng),
        share(rng),
        beside(rng, 0.0),
        share(rng),
        share(rng),
        beside(rng, 0.0),
        30,
        int(pick(rng, (1, 40))),
        Training(),
        0,
    )


KINDS = (roar, adversarial, frozen, diagnostic, tuned)


def speak(rng: np.random.Generator) -> None:
    """Everything that can be said of what was trained."""
    for kind in KINDS:
        found = kind(rng)
        str(found)
        repr(found)
    drawn = roar(rng)
    if rng.random() < 0.05:
        drawn.plot()
    human(int(rng.integers(1, 10**6)))
