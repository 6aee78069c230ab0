"""Methods of many passes on a function whose slopes are known: no model, one passage of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import whence
from whence.core.registry import Needs
from whence.core.scores import Scores, jackknife_error, without_bias
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

    def values_at(self, i: int, points: Tensor) -> Tensor:
        del i
        return self.function(points[..., 0])

    def gradients_at(self, i: int, points: Tensor) -> Tensor:
        del i
        self.__dict__["asked"] += len(points)
        at = points.detach().requires_grad_()
        (slopes,) = torch.autograd.grad(self.function(at[..., 0]).sum(), at)
        return slopes


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


def test_the_error_of_few_samples_is_widened() -> None:
    """Student's: of eight samples 2.36 standard errors hold 95 %, not 1.96."""
    numbers = np.random.default_rng(2).normal(size=(8, 3))
    left_out = (numbers.sum(0) - numbers) / 7
    error = jackknife_error(left_out)
    np.testing.assert_allclose(error, numbers.std(0, ddof=1) / np.sqrt(8))
    scores = Scores(units=numbers.mean(0), left_out=left_out)
    passage = whence.load(MODEL).encode("not bad prices")
    found = scores.on_units(passage).standard_error
    assert found is not None
    np.testing.assert_allclose(found, error * 2.364624 / 1.959964, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["l2"])
def test_smooth_grads_norms_are_right_on_average_and_so_are_their_intervals(form: str) -> None:
    """150 runs of 16 samples, beside one of 4,096: norms of means were 15 % too high.

    Their intervals held the truth in .89 of cases, of the worst word in .79; measured now on two
    texts: 1 to 2 % too high, .92 to .94, and .89 to .91.
    """
    model = whence.load(MODEL)
    text = "the food is great but the service is not bad"
    settings = {"form": form, "evidence": False}
    truth = whence.explain(model, text, "smooth-grad", samples=4096, seed=1000, **settings).scores
    runs = [whence.explain(model, text, "smooth-grad", seed=s, **settings) for s in range(150)]
    scores = np.array([run.scores for run in runs])
    errors = np.array([run.error.standard_error for run in runs if run.error is not None])
    assert abs((scores.mean(0) / truth).mean() - 1) < 0.04
    inside = np.abs(scores - truth) <= 1.96 * errors
    assert 0.90 <= inside.mean() <= 0.97
    assert inside.mean(0).min() >= 0.85
