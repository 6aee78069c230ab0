"""Every family that transformers lists: each method works on it, or says in one line why not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import transformers

from tests.zoo import Animal, animals, built, tokenizer_of
from whence.core.errors import WhenceError
from whence.explaining.explain import compare
from whence.models.load import load
from whence.models.sample import sample

TEXT = "food is not bad"
PARTS = 12  # so that two workers share the work


def outcome(animal: Animal) -> dict[str, str] | None:
    """What each method says that does not run; None where there is no small model of the family."""
    hf = built(animal)
    if hf is None:
        return None
    model = load(hf, tokenizer=tokenizer_of(animal))
    comparison = compare(model, *asked(model), evidence=False, budget="600")
    for attribution in comparison.attributions.values():
        assert np.isfinite(attribution.scores).all(), attribution.method
    return dict(comparison.skipped)


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
                skipped = outcome(animal)
            except WhenceError as refusal:
                assert_one_line(str(animal), str(refusal))
                continue
        for method, why in (skipped or {}).items():
            assert_one_line(f"{animal}: {method}", why)


def assert_one_line(where: str, sentence: str) -> None:
    assert sentence.strip(), where
    assert "\n" not in sentence, (where, sentence)
