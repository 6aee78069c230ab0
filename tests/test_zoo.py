"""Every family that transformers lists: methods work on it, or say in one line why not.

Here each family is tried with one head and one method for each thing that a method may need of a
model. ``python -m bench.zoo`` tries every head and every method.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import transformers

from tests.zoo import Animal, animals, built, tokenizer_of
from whence.core.errors import WhenceError
from whence.explaining.explain import compare
from whence.models.load import load
from whence.models.passing import IT_IS_OURS
from whence.models.sample import sample

TEXT = "food is not bad"
# gradients, reruns, each reading of attention, relevance, and games
FEW = (
    "gradient-x-input",
    "smooth-grad",
    "attention-mean",
    "rollout",
    "value-weighted",
    "generic-attention",
    "transformer-attribution",
    "attn-lrp",
    "occlusion",
)
PARTS = 12  # so that a family that fails does not hide most others


def outcome(
    animal: Animal, methods: Sequence[str] | None = None, budget: str = "600"
) -> dict[str, str] | None:
    """What each method says that does not run; None where there is no small model of the family."""
    hf = built(animal)
    if hf is None:
        return None
    before = as_found(hf)
    try:
        model = load(hf, tokenizer=tokenizer_of(animal))
        comparison = compare(model, *asked(model), methods, evidence=False, budget=budget)
    finally:
        assert as_found(hf) == before, f"{animal} is left changed"
    for attribution in comparison.attributions.values():
        assert np.isfinite(attribution.scores).all(), attribution.method
    return dict(comparison.skipped)


def as_found(hf: Any) -> dict[str, Any]:
    """What must be the same afterwards: modules, flags, hooks, attention, weights and buffers."""
    found: dict[str, Any] = {}
    for name, module in hf.named_modules():
        config = vars(module).get("config")
        own_attention = getattr(config, "_attn_implementation_internal", None)
        hooks = len(module._forward_hooks), len(module._forward_pre_hooks)
        found[name] = (id(module), module.training, hooks, own_attention)
    for name, parameter in hf.named_parameters():
        found[f"parameter {name}"] = (id(parameter), parameter._version, parameter.requires_grad)
    for name, buffer in hf.named_buffers():
        found[f"buffer {name}"] = (id(buffer), buffer.double().nan_to_num().sum().item())
    return found


def asked(model: Any) -> tuple[Any, ...]:
    """A passage that the model can read."""
    if model.kind.reads_text and (model.kind.second_text or model.kind.fills_a_mask):
        return (sample(model),)
    if model.kind.tags_words:
        return (sample(model),)
    if not model.kind.reads_text:
        rng = np.random.default_rng(0)
        return (rng.normal(size=(3, 32, 32)).astype(np.float32),)
    return (TEXT,)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_family_ends_in_a_bare_error(part: int) -> None:
    transformers.logging.set_verbosity_error()
    for number, animal in enumerate(animals()):
        if number % PARTS != part:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models that were never meant to be this small
            try:
                skipped = outcome(animal, FEW, budget="100")
            except WhenceError as refusal:
                assert_one_line(str(animal), str(refusal))
                continue
        for method, why in (skipped or {}).items():
            assert_one_line(f"{animal}: {method}", why)


def assert_one_line(where: str, sentence: str) -> None:
    assert sentence.strip(), where
    assert "\n" not in sentence, (where, sentence)
    assert IT_IS_OURS not in sentence, (where, sentence)
