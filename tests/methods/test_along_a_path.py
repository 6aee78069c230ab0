"""Methods of many passes on a function whose slopes are known: no model, one passage of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import whence
from whence.core.registry import Needs
from whence.core.scores import (
    ENOUGH_SAMPLES,
    Scores,
    jackknife_error,
    widened_error,
    without_bias,
)
from whence.methods.integrated_gradients import IntegratedGradients
from whence.methods.smooth_grad import SmoothGrad
from whence.trace.trace import Trace, trace

MODEL = "sentiment"


class PathTrace(Trace):
    """All that integrated gradients ask of a trace: values and slopes of a function of tokens."""

    def __init__(self, function: Callable[[Tensor], Tensor], tokens: int) -> None:
        parts: dict[str, Any] = {
            "function": function,  # "point token" to "point"
            "asked": 0,
            "content": torch.ones(1, tokens, dtype=torch.bool),
            "embeddings": torch.ones(1, tokens, 1, dtype=torch.float64),
            "passages": [range(tokens)],
            "model": whence.load(MODEL),  # asked for its dtype, and for no pass
            "tick": lambda: None,
        }
        self.__dict__.update(parts)  # a trace is frozen

    @property
    def values(self) -> Tensor:
        return self.values_at(0, self.embeddings)

    def embeddings_of(self, i: int) -> Tensor:
        return self.embeddings[i]

    def about_one_passage(self) -> list[list[int]]:
        return [[0]]

    def values_of_all(self, asks: Sequence[int], points: Tensor) -> Tensor:
        del asks
        return self.function(points[..., 0])[None]

    def slopes_along(self, asks: Sequence[int], points: Tensor, way: Tensor) -> Tensor:
        del asks
        self.__dict__["asked"] += len(points)
        at = points.detach().requires_grad_()
        (slopes,) = torch.autograd.grad(self.function(at[..., 0]).sum(), at)
        return torch.einsum("ntd,td->nt", slopes, way)[None]


def integrated(path: PathTrace, **settings: Any) -> np.ndarray:
    (scores,) = IntegratedGradients(baseline="zero", **settings)(path)
    assert scores.tokens is not None
    return scores.tokens


def test_misses_that_cancel_are_misses() -> None:
    """One token rises steeply at .2 of the way, another falls as steeply at .8; a third is a line.

    Both steps are missed by as much, with opposite signs, so that the sum is right from the first.
    The enemy looks at the sum over all panels alone, and stops there.
    """
    steep = 200.0

    def step(x: Tensor, at: float) -> Tensor:
        return torch.sigmoid(steep * (x - at))

    path = PathTrace(lambda x: step(x[:, 0], 0.2) - step(x[:, 1], 0.8) + x[:, 2], 3)
    scores = integrated(path, tolerance=1e-3)
    np.testing.assert_allclose(scores, [1.0, -1.0, 1.0], atol=1e-3)
    # what the first nodes alone give: a right sum of wrong scores
    first = integrated(path, tolerance=1e9)
    assert abs(first.sum() - 1.0) < 1e-3
    assert np.abs(first - [1.0, -1.0, 1.0]).max() > 0.05


@pytest.mark.parametrize("nodes", [4, 8, 12, 20])
def test_a_panel_counts_by_its_length(nodes: int) -> None:
    """A power of the way: most of its change is near the end, where panels are short.

    Four nodes in each are exact, with the panels' lengths as weights. The enemy weighs all alike.
    """
    weights = torch.tensor([1.0, 3.0, -0.5], dtype=torch.float64)
    path = PathTrace(lambda x: (x @ weights) ** 7, 3)
    scores = integrated(path, nodes=nodes, max_nodes=nodes, tolerance=1e9)
    total = float(weights.sum()) ** 7
    np.testing.assert_allclose(scores, total * weights / weights.sum(), rtol=1e-9)


@pytest.fixture
def with_large_special_tokens() -> whence.Model:
    """A model whose [CLS] and [SEP] have far larger embeddings than any word."""
    model = whence.load(MODEL)
    special = torch.tensor(model.tokenizer.all_special_ids)
    table = model.input_embeddings.weight
    before = table.detach().clone()
    with torch.no_grad():
        table[special] *= 50
    yield model
    with torch.no_grad():
        table.copy_(before)


def test_the_noise_is_measured_by_the_words_alone(
    with_large_special_tokens: whence.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The range of the words' embeddings, whatever the special tokens' are; and these get none."""
    model = with_large_special_tokens
    passage = model.encode("the service is not bad")
    look = trace(model, [passage], needs=Needs.EMBEDDINGS | Needs.RERUNS)
    run: list[Tensor] = []
    slopes_at = Trace.gradients_at

    def noted(self: Trace, i: int, points: Tensor) -> Tensor:
        run.append(points)
        return slopes_at(self, i, points)

    monkeypatch.setattr(Trace, "gradients_at", noted)
    SmoothGrad(samples=64, noise=0.3)(look)
    x = look.embeddings_of(0)
    content = look.content[0, : len(passage)]
    noise = run[0] - x
    words = x[content]
    width = 0.3 * float(words.max() - words.min())
    assert float(noise[:, content].std()) == pytest.approx(width, rel=0.02)
    assert float(noise[:, ~content].abs().max()) == 0
    assert float(x.max() - x.min()) > 5 * float(words.max() - words.min())


def test_the_bias_of_a_length_is_taken_off() -> None:
    """The squared mean of n numbers is σ²/n too large: for it the jackknife is exact.

    The enemies: no correction; one in the wrong direction.
    """
    rng = np.random.default_rng(0)
    numbers = 1.0 + rng.normal(size=(20_000, 8, 1))
    corrected = []
    for sample in numbers:
        left_out = (sample.sum(0) - sample) / 7
        corrected.append(without_bias(sample.mean(0) ** 2, left_out**2))
    of_squares = (numbers.mean(1) ** 2).mean()
    assert of_squares == pytest.approx(1 + 1 / 8, abs=0.02)
    assert np.mean(corrected) == pytest.approx(1.0, abs=0.02)


def test_a_plain_mean_has_no_bias_and_no_score_turns_round() -> None:
    numbers = np.random.default_rng(1).normal(size=(5, 3))
    mean = numbers.mean(0)
    left_out = (numbers.sum(0) - numbers) / 4
    np.testing.assert_allclose(without_bias(mean, left_out), mean, atol=1e-12)
    assert without_bias(np.array([1.0, -1.0]), np.array([[3.0, -3.0]] * 3)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("samples", [24, 40])
def test_the_error_is_widened_for_few_and_for_skewed_samples(samples: int) -> None:
    """By hand: Student's quantile for the normal one, and Hall's term of the squared skewness.

    The enemies: ±1.96 plain errors; Student's t alone; the skewness not squared, or its bias left
    in; each unit's own skewness, which is small where its error is too small.
    """
    numbers = np.random.default_rng(2).exponential(size=(samples, 3))
    left_out = (numbers.sum(0) - numbers) / (samples - 1)
    error = jackknife_error(left_out)
    np.testing.assert_allclose(error, numbers.std(0, ddof=1) / np.sqrt(samples))

    z = stats.norm.ppf(0.975)
    student = stats.t.ppf(0.975, samples - 1) / z
    skewness = stats.skew(numbers, axis=0, bias=False)
    hall = 1 + (z**4 + 2 * z**2 - 3) * np.mean(skewness**2) / (18 * samples)
    scores = Scores(units=numbers.mean(0), left_out=left_out)
    passage = whence.load(MODEL).encode("not bad prices")
    found = scores.on_units(passage).standard_error
    assert found is not None
    np.testing.assert_allclose(found, error * student * hall, rtol=1e-9)
    assert hall > 1.05


def test_of_samples_that_are_not_skewed_the_error_is_students() -> None:
    numbers = np.array([[1.0], [-1.0], [0.5], [-0.5]] * 5)
    left_out = (numbers.sum(0) - numbers) / 19
    student = stats.t.ppf(0.975, 19) / stats.norm.ppf(0.975)
    np.testing.assert_allclose(widened_error(left_out), student * jackknife_error(left_out))


def test_fewer_samples_tell_no_error() -> None:
    """With eight of them a text's intervals held the truth in 92 % of runs: none is better."""
    model = whence.load(MODEL)
    few, enough = (
        whence.explain(model, "not bad prices", "smooth-grad", samples=samples, evidence=False)
        for samples in (ENOUGH_SAMPLES - 1, ENOUGH_SAMPLES)
    )
    assert few.error is not None
    assert few.error.standard_error is None
    assert few.error.note == (
        "23 samples are too few to tell how far the scores may be off: take 24 or more"
    )
    assert enough.error is not None
    assert enough.error.standard_error is not None
    assert (enough.error.standard_error > 0).all()
    assert enough.error.note == ""


class NoisyTrace(Trace):
    """A trace whose gradients are drawn from a pool of real ones, so that their mean is known."""

    def __init__(self, look: Trace, pool: Tensor) -> None:
        self.__dict__.update(look.__dict__)
        self.__dict__.update(pool=pool, rng=np.random.default_rng(0))

    def gradients_at(self, i: int, points: Tensor) -> Tensor:
        del i
        return self.pool[self.rng.integers(len(self.pool), size=len(points))]


@cache
def pool_of_gradients(text: str, count: int = 4096) -> tuple[Trace, Tensor]:
    """The gradients of many noisy copies, as the method itself asks for them."""
    model = whence.load(MODEL)
    look = trace(model, [model.encode(text)], needs=Needs.EMBEDDINGS | Needs.RERUNS)
    asked: list[Tensor] = []

    class Noted(Trace):
        def __init__(self) -> None:
            self.__dict__.update(look.__dict__)

        def gradients_at(self, i: int, points: Tensor) -> Tensor:
            asked.append(look.gradients_at(i, points).detach())
            return asked[-1]

    SmoothGrad(samples=count)(Noted())
    return look, asked[0]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["l2", "l1", "x-input"])
@pytest.mark.parametrize(
    "text",
    ["the food is great but the service is not bad", "a truly wonderful and moving little film"],
)
def test_smooth_grads_norms_are_right_on_average_and_so_are_their_intervals(
    text: str, form: Literal["l2", "l1", "x-input"]
) -> None:
    """1,000 runs of 24 samples: .93 to .97 of the intervals hold what all 4,096 together give.

    The enemies: norms of means as they are (too high by several per cent); Student's t alone (.92
    on the second text); each unit's own skewness (.92 there, of the signed form). Most of what is
    missed is a score that is too low: where no large gradient was drawn, neither the mean nor its
    error is large.
    """
    look, pool = pool_of_gradients(text)
    passage = look.passages[0]
    method = SmoothGrad(form=form)
    together = method._read(pool.mean(0), look.embeddings_of(0)).double().numpy()
    truth = passage.merge(together, method.merge)

    drawn = NoisyTrace(look, pool)
    inside, scores = [], []
    for _ in range(1000):
        (of_tokens,) = method(drawn)
        run = of_tokens.on_units(passage, method.merge)
        assert run.units is not None
        assert run.standard_error is not None
        scores.append(run.units)
        inside.append(np.abs(run.units - truth) <= 1.96 * run.standard_error)
    if form != "x-input":
        assert np.abs(np.mean(scores, axis=0) / truth - 1).max() < 0.05
    assert 0.93 <= np.mean(inside) <= 0.97
    assert np.mean(inside, axis=0).min() >= 0.90
