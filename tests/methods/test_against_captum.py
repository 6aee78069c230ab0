"""Where captum's definitions coincide with ours, the numbers do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.families import precise
from whence.models.model import Model

attr = pytest.importorskip(
    "captum.attr", reason="captum is an optional peer to compare with: pip install 'whence[test]'"
)
TEXT = "the food is great but the service isn't"


@pytest.fixture(scope="module", params=["bert", "roberta", "distilbert"])
def model(request: pytest.FixtureRequest) -> Model:
    return precise(request.param)[0]


def forward(model: Model) -> Any:
    def logits(ids: torch.Tensor) -> torch.Tensor:
        return model.hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits

    return logits


def ours(model: Model, method: str, **settings: Any) -> np.ndarray:
    return whence.explain(
        model, TEXT, method, target="good", units="token", **settings, evidence=False
    ).scores


def content(model: Model) -> tuple[torch.Tensor, np.ndarray]:
    passage = model.encode(TEXT, units="token")
    return torch.tensor(passage.ids)[None], passage.unit_of >= 0


def test_gradient_times_input(model: Model) -> None:
    ids, inside = content(model)
    peer = attr.LayerGradientXActivation(forward(model), model.input_embeddings).attribute(
        ids, target=2
    )
    np.testing.assert_allclose(
        ours(model, "gradient-x-input"), peer[0].sum(-1).detach().numpy()[inside], rtol=1e-9
    )


def test_gradient_norms(model: Model) -> None:
    ids, inside = content(model)
    embeddings = model.input_embeddings(ids).detach()

    def from_embeddings(e: torch.Tensor) -> torch.Tensor:
        handle = model.input_embeddings.register_forward_hook(lambda *_: e)
        try:
            return forward(model)(ids)
        finally:
            handle.remove()

    slope = (
        attr.Saliency(from_embeddings)
        .attribute(embeddings.requires_grad_(), target=2, abs=False)[0]
        .detach()
        .numpy()[inside]
    )
    np.testing.assert_allclose(ours(model, "gradient-l1"), np.abs(slope).sum(-1), rtol=1e-9)
    np.testing.assert_allclose(
        ours(model, "gradient-l2"), np.linalg.norm(slope, axis=-1), rtol=1e-9
    )
    np.testing.assert_allclose(
        ours(model, "gradient-l2", form="lecture"), (slope**2).mean(-1), rtol=1e-9
    )


@pytest.mark.parametrize("baseline", ["mask", "pad"])
def test_integrated_gradients(model: Model, baseline: str) -> None:
    ids, inside = content(model)
    other = torch.where(
        torch.from_numpy(inside), getattr(model.tokenizer, f"{baseline}_token_id"), ids
    )
    peer = attr.LayerIntegratedGradients(forward(model), model.input_embeddings)
    if baseline == "pad" and model.config.model_type == "roberta":
        pytest.skip(
            "RoBERTa counts positions by the pad id, so captum's baseline ids move every position; "
            "ours move embeddings only"
        )
    expected = (
        peer.attribute(ids, baselines=other, target=2, n_steps=200)[0]
        .sum(-1)
        .detach()
        .numpy()[inside]
    )
    scores = ours(model, "integrated-gradients", baseline=baseline, tolerance=1e-7, max_nodes=1000)
    # DistilBERT's head has a ReLU: the integrand jumps, and captum's evenly laid nodes see the jump
    # to one part in a few hundred
    tolerance = 5e-3 if model.config.model_type == "distilbert" else 1e-4
    np.testing.assert_allclose(scores, expected, atol=tolerance * np.abs(expected).max())
