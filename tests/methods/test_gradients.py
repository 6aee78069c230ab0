"""The gradient family, re-derived slowly: by finite differences, by a dense sum, by the formulas of
the lecture.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import whence
from tests.choices import at_once
from tests.families import MAIN, inputs, precise
from whence.core.registry import Needs
from whence.models.model import Model
from whence.trace.trace import trace

FAMILIES = [
    "bert",
    "bert-mlm",
    "gpt2",
    "gpt2-classifier",
    "bart",
    "bart-classifier",
    "marian",
    "vit",
    "deberta-v2",
]


@pytest.mark.parametrize("name", FAMILIES)
def test_embedding_gradients_are_slopes(name: str) -> None:
    # would catch: a leaf that only part of the model sees, as with an encoder-decoder that reads
    # its text twice
    model, _ = precise(name)
    passage = inputs(model, 1)[0]
    t = trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS)
    x = t.embeddings_of(0)
    step = 1e-5
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    up, down = t.values_at(0, torch.stack([x + step * direction, x - step * direction])).tolist()
    expected = (t.embedding_gradients[0] * direction).sum()
    assert (up - down) / (2 * step) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("name", at_once(FAMILIES, MAIN))
def test_integrated_gradients_equal_a_dense_sum(name: str) -> None:
    model, _ = precise(name)
    passage = inputs(model, 1)[0]
    t = trace(model, [passage], needs=Needs.EMBEDDINGS)
    x, inside = t.embeddings_of(0), t.content[0][:, None]
    start = torch.where(inside, torch.zeros_like(x), x)
    alphas = (torch.arange(500, dtype=x.dtype) + 0.5) / 500
    mean = t.gradients_at(0, start + alphas[:, None, None] * (x - start)).mean(0)
    dense = passage.merge((mean * (x - start)).sum(-1).numpy())
    a = whence.explain(
        model, passage, "integrated-gradients", baseline="zero", tolerance=1e-6, evidence=False
    )
    assert a.error is not None
    assert a.error.completeness_gap is not None
    assert a.error.completeness_gap <= 1e-6
    np.testing.assert_allclose(a.scores, dense, atol=2e-4 * np.abs(dense).max())


@pytest.fixture(scope="module")
def model() -> Model:
    return precise("marian")[
        0
    ]  # no norm after its embeddings, so that G-avg is not zero by construction


def test_the_lectures_forms_obey_the_lectures_inequality(model: Model) -> None:
    # FACTS 3.1: |G-avg| <= G-L1 <= sqrt(G-L2) in the lecture's forms, and G-L2 = norm² / d_e
    text = "the food is great but not bad"
    mean = whence.explain(model, text, "gradient-mean", units="token", evidence=False).scores
    l1, l2 = (
        whence.explain(
            model, text, f"gradient-l{p}", units="token", form="lecture", evidence=False
        ).scores
        for p in (1, 2)
    )
    assert (np.abs(mean) <= l1 + 1e-12).all()
    assert (l1 <= np.sqrt(l2) + 1e-12).all()
    assert np.abs(mean).max() > 0
    norm1, norm2 = (
        whence.explain(model, text, f"gradient-l{p}", units="token", evidence=False).scores
        for p in (1, 2)
    )
    np.testing.assert_allclose(l1, norm1 / 32)
    np.testing.assert_allclose(l2, norm2**2 / 32)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("gradient-l1", "norm"),
        ("gradient-l1", "lecture"),
        ("gradient-l2", "norm"),
        ("gradient-l2", "lecture"),
        ("gradient-mean", None),
    ],
)
def test_a_word_gets_the_formula_on_its_pieces_laid_end_to_end(
    model: Model, name: str, form: str | None
) -> None:
    # would catch: summing L2 norms of pieces, which makes split words large
    passage = model.encode("unbelievable selection")
    t = trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS)
    settings = {} if form is None else {"form": form}
    scores = whence.explain(model, passage, name, **settings, evidence=False).scores
    for unit, score in enumerate(scores):
        g = t.embedding_gradients[0][torch.from_numpy(passage.unit_of == unit)].reshape(-1)
        expected = {
            ("gradient-l1", "norm"): g.abs().sum(),
            ("gradient-l1", "lecture"): g.abs().mean(),
            ("gradient-l2", "norm"): g.norm(),
            ("gradient-l2", "lecture"): g.square().mean(),
            ("gradient-mean", None): g.mean(),
        }[name, form]
        assert score == pytest.approx(float(expected))


@pytest.mark.parametrize("name", ["bert", "gpt2", "vit", "bart"])
def test_the_mean_gradient_behind_a_layer_norm_is_zero_and_says_so(name: str) -> None:
    model, _ = precise(name)
    passage = inputs(model, 1)[0]
    t = trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS)
    slope = t.embedding_gradients[0]
    assert float(slope.mean(-1).abs().max()) < 1e-12 * float(slope.abs().max())
    a = whence.explain(model, passage, "gradient-mean", evidence=False)
    assert np.array_equal(a.scores, np.zeros(len(a.units)))
    assert a.error is not None
    assert "zero by construction" in a.error.note


def test_smooth_grad_without_noise_is_the_gradient(model: Model) -> None:
    for form, plain in (
        ("l2", "gradient-l2"),
        ("l1", "gradient-l1"),
        ("x-input", "gradient-x-input"),
    ):
        smooth = whence.explain(
            model,
            "not bad prices",
            "smooth-grad",
            noise=0.0,
            samples=24,
            form=form,
            evidence=False,
        )
        np.testing.assert_allclose(
            smooth.scores,
            whence.explain(model, "not bad prices", plain, evidence=False).scores,
            rtol=1e-9,
        )
        assert smooth.error is not None
        assert smooth.error.standard_error is not None
        np.testing.assert_allclose(smooth.error.standard_error, 0, atol=1e-9)


def test_smooth_grads_standard_error_tells_the_truth(model: Model) -> None:
    # for a mean (form x-input) the jackknife is the textbook error; over seeds the scores must
    # scatter by as much as it says
    runs = [
        whence.explain(
            model,
            "not bad prices",
            "smooth-grad",
            form="x-input",
            samples=24,
            seed=s,
            evidence=False,
        )
        for s in range(40)
    ]
    scatter = np.std([a.scores for a in runs], axis=0, ddof=1)
    claimed = np.sqrt(
        np.mean(
            [
                a.error.standard_error**2
                for a in runs
                if a.error and a.error.standard_error is not None
            ],
            axis=0,
        )
    )
    np.testing.assert_allclose(claimed, scatter, rtol=0.45)


def test_integrated_gradients_stop_at_the_tolerance_or_say_that_they_did_not(model: Model) -> None:
    fine = whence.explain(
        model,
        "the food is great but the service is not bad",
        "integrated-gradients",
        tolerance=1e-4,
        evidence=False,
    )
    assert fine.error is not None
    assert fine.error.completeness_gap is not None
    assert fine.error.completeness_gap <= 1e-4
    start = whence.explain(
        model,
        fine.passage,
        "integrated-gradients",
        tolerance=0.0,
        nodes=4,
        max_nodes=4,
        evidence=False,
    )
    assert start.cost.backwards == 4
    assert start.error is not None
    assert "of the target's change after max_nodes=" in start.error.note
    assert start.scores.sum() == pytest.approx(fine.scores.sum(), rel=0.5)


def test_a_target_is_resolved_once_and_not_along_the_path() -> None:
    # would catch: an argmax taken again at every point of the path
    model, _ = precise("bert")
    text = "the food is great but not bad"
    predicted = whence.explain(
        model, text, "integrated-gradients", read="margin", tolerance=1e-6, evidence=False
    )
    named = whence.explain(
        model,
        text,
        "integrated-gradients",
        target=(predicted.target.label, predicted.target.against),
        tolerance=1e-6,
        evidence=False,
    )
    np.testing.assert_allclose(predicted.scores, named.scores)
