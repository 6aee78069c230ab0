"""Places of attention, the rows that matter, and the refusal."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.families import build, inputs
from whence.audits.adversary import Adversary
from whence.audits.case import AuditTest, Case
from whence.audits.permutation import Permutation
from whence.audits.places import places_in, plain_trace, rows_that_matter
from whence.audits.uniform import Uniform
from whence.core.audit import Place
from whence.core.errors import Unsupported
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.core.target import Target
from whence.models.model import Model
from whence.trace.trace import trace

TESTS = (Permutation(permutations=2, of_heads=1), Uniform(), Adversary(steps=2))


def case_of(model: Model) -> Case:
    return Case(inputs(model, 1)[0], Target())


def test_a_model_of_one_kind_has_heads_layers_and_all_of_them() -> None:
    plain = plain_trace(model := build("bert"), case_of(model))
    places = places_in(plain)
    assert len(places) == 2 * 4 + 2 + 1
    assert {place.kind for place in places} == {""}
    assert places[-1] == Place()


def test_places_of_an_encoder_decoder_name_their_kind() -> None:
    plain = plain_trace(model := build("bart"), case_of(model))
    places = places_in(plain)
    assert Place(1, 3, "cross") in places
    assert Place(kind="decoder") in places
    assert {place.kind for place in places if place.layer is not None} == {
        "encoder",
        "decoder",
        "cross",
    }
    assert len(set(places)) == len(places) == 3 * (2 * 4 + 2 + 1) + 1


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart", "t5"])
def test_rows_that_matter_are_those_with_a_slope(name: str) -> None:
    """The reference: rows along whose attention the target has a gradient.

    Would catch: all rows of the last layer; rows behind the one that is read; the decoder's
    readout on the encoder's side.
    """
    model = build(name)
    case = case_of(model)
    seen = trace(model, [Ask(case.passage, case.target)], needs=Needs.ATTENTION_GRADIENTS)
    for kind, layers in seen.layers.items():
        for layer in layers:
            slopes = seen.attention_gradients[kind][layer.index][0]
            weights = seen.attentions[kind][layer.index][0]
            # what moves the output where weights sum to one: slopes that differ among visible keys
            spread = torch.where(weights > 0, slopes, torch.nan)
            mean = spread.nanmean(-1, keepdim=True)
            expected = ((spread - mean).abs().nansum(-1) > 1e-12).any(0)
            assert torch.equal(rows_that_matter(seen, 0, layer), expected), layer


@pytest.mark.parametrize("test", TESTS, ids=lambda t: t.name)
def test_attention_that_cannot_be_edited_is_refused_with_what_still_works(test: AuditTest) -> None:
    model = build("deberta-v2")
    with pytest.raises(Unsupported, match=r"DebertaV2.*cannot be edited.*whence\.attend"):
        test(model, [case_of(model)])


@pytest.mark.parametrize("test", TESTS, ids=lambda t: t.name)
@pytest.mark.parametrize("name", ["llama", "t5"])
def test_other_kinds_of_models_are_tested_too(name: str, test: AuditTest) -> None:
    model = build(name)
    case = case_of(model)
    (observations,) = test(model, [case])
    assert isinstance(test, AuditTest)
    assert all(0 <= o.value <= 1 for o in observations)
    assert {o.test for o in observations} == {test.name}
    changed = {o.place: o.value for o in observations if o.quantity == "change"}
    assert changed[Place()] > 0


@pytest.mark.parametrize("test", TESTS, ids=lambda t: t.name)
def test_batch_mates_change_nothing(test: AuditTest) -> None:
    """Would catch: random numbers that are drawn for a whole batch."""
    model = build("bert")
    cases = [Case(passage, Target(), seed=3) for passage in inputs(model, 3)]
    together = test(model, cases)
    for case, observed in zip(cases, together, strict=True):
        (alone,) = test(model, [case])
        for a, b in zip(alone, observed, strict=True):
            assert (a.place, a.quantity) == (b.place, b.quantity)
            assert a.value == pytest.approx(b.value, abs=1e-4)


@pytest.mark.parametrize("test", TESTS, ids=lambda t: t.name)
def test_passes_are_what_is_paid(test: AuditTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in sequences through the model; what the guard tries once is paid before."""
    model = build("bert")
    case = case_of(model)
    test(model, [case])
    forwards = backwards = 0
    forward = type(model.hf).forward
    grad = torch.autograd.grad

    def counted(self: Any, input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal forwards
        forwards += len(input_ids)
        return forward(self, input_ids, *args, **kwargs)

    def counted_grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal backwards
        backwards += len(inputs[0])
        return grad(outputs, inputs, *args, **kwargs)

    monkeypatch.setattr(type(model.hf), "forward", counted)
    monkeypatch.setattr(torch.autograd, "grad", counted_grad)
    test(model, [case])
    price = test.passes(heads=8, wholes=3)
    # the starts of a search share the plain pass of their text, if they fit one batch
    assert price.forwards - 1 <= forwards <= price.forwards
    assert backwards == price.backwards
