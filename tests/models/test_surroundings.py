"""What a caller sets around a run: a compiler, a default device or dtype, autocast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.choices import at_once, quick
from tests.families import build, inputs
from whence.core.attribution import Attribution
from whence.core.provenance import Provenance
from whence.core.registry import methods
from whence.models.load import load
from whence.models.model import Model
from whence.views import wording

SINGLE_LAYER = [name for name, info in methods().items() if "single-layer" in info.only_for]
TEXT = "not bad prices"
# of each kind one: a trace, its gradient, rules in place of gradients, reruns, a game
IN_SHORT = ("rollout", "gradient-l2", "attn-lrp", "smooth-grad", "lime")


def explained(model: Model, name: str) -> Attribution:
    settings = quick(methods()[name].settings)
    return whence.explain(model, TEXT, name, evidence=False, **settings)


def model_for(name: str) -> Model:
    return build("single-layer" if name in SINGLE_LAYER else "bert")


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the compiled code was run")


@pytest.mark.parametrize("name", at_once(methods(), IN_SHORT))
def test_a_compiled_model_is_explained_as_it_is(name: str) -> None:
    # would catch: relevance rules and hooks, which see nothing of compiled code
    model = model_for(name)
    expected = explained(model, name).scores
    model.hf.compile(backend=never)
    compiled = model.hf._compiled_call_impl
    assert np.array_equal(explained(model, name).scores, expected)
    assert model.hf._compiled_call_impl is compiled


def test_what_torch_compile_gives_is_loaded_as_the_model_in_it() -> None:
    model = build("bert")
    again = load(torch.compile(model.hf, backend=never), tokenizer=model.tokenizer)
    assert again.hf is model.hf


@contextmanager
def default_device(device: str) -> Iterator[None]:
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("name", at_once(methods(), IN_SHORT))
def test_default_device_and_dtype_change_nothing(name: str) -> None:
    # would catch: a tensor that is made without saying where, as of what type
    model = model_for(name)
    expected = explained(model, name).scores
    with default_device("meta"):
        assert np.array_equal(explained(model, name).scores, expected)
    with default_dtype(torch.float64):
        assert np.array_equal(explained(model, name).scores, expected)


def test_attend_and_edits_on_another_default_device() -> None:
    model = build("bert")
    passage = inputs(model, 1)[0]
    expected = whence.attend(model, passage, effects=True)
    with default_device("meta"):
        found = whence.attend(model, passage, effects=True)
    for kind, maps in expected.weights.items():
        assert np.array_equal(found.weights[kind], maps)


def test_autocast_is_in_the_provenance(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("bert")
    plain = explained(model, "gradient-l2")
    # without oneDNN, whose bfloat16 needs instructions that not every processor has
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = explained(model, "gradient-l2")
    assert plain.provenance.autocast is None
    assert cast.provenance.autocast == "bfloat16"
    assert Attribution.from_dict(cast.to_dict()).provenance == cast.provenance
    assert wording.precision(cast.provenance) == "float32 under autocast to bfloat16"
    assert "float32 under autocast to bfloat16" in cast.to_html()
    assert "autocast" not in wording.precision(plain.provenance)


def test_a_result_from_before_autocast_was_noted_can_be_read() -> None:
    content = explained(build("bert"), "random").provenance.to_dict()
    del content["autocast"]
    assert Provenance(**content).autocast is None
