"""What short passes show of a model, tried on models that misbehave in one way each."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
import torch

from tests import misbehaving
from tests.misbehaving import Plain, build
from whence.core.errors import ModelError, Unsupported
from whence.core.registry import Needs
from whence.explaining.explain import compare, explain
from whence.explaining.game import game
from whence.models.conduct import batch_mates, embeddings, padding, repeats, state
from whence.models.state import draws
from whence.models.untouched import untouched
from whence.trace.guard import look_over

TEXT = "the food is great but the service is not"
SHORTER = "not bad at all"


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


def test_a_model_without_fault_passes_every_check() -> None:
    model = build(Plain)
    for check in (repeats, state, padding, batch_mates, embeddings):
        assert check(model).holds is True, check
    assert model.pads
    assert model.shares_batches


def test_a_model_for_which_padding_matters_runs_texts_of_one_length_together() -> None:
    model = build(misbehaving.PaddingMatters)
    assert padding(model).holds is False
    assert batch_mates(model).holds is True
    assert model.groups_of_lengths([5, 7, 5, 7], 100) == [[0, 2], [1, 3]]

    alone = [model.predict([text])[0].logits for text in (TEXT, SHORTER)]
    together = [p.logits for p in model.predict([TEXT, SHORTER])]
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, abs=1e-5)

    # the wrong version: one padded batch
    batch = model.batch([model.encode(SHORTER), model.encode(TEXT)])
    with untouched(model.hf), torch.no_grad():
        padded = model.hf(**batch.inputs).logits[0].tolist()
    assert max(abs(a - b) for a, b in zip(padded, alone[1].values(), strict=True)) > 1e-2


@pytest.mark.parametrize("kind", [misbehaving.MatesMatter, misbehaving.RefusesBatches])
def test_a_model_for_which_batch_mates_matter_runs_every_text_alone(kind: type[Plain]) -> None:
    model = build(kind)
    assert batch_mates(model).holds is False
    assert not model.shares_batches
    assert model.groups_of_lengths([5, 5, 7], 100) == [[0], [1], [2]]

    v = game(model, TEXT, removal="mask")
    rng = np.random.default_rng(0)
    masks = rng.random((6, v.size)) < 0.5
    one_by_one = np.concatenate([game(model, TEXT, removal="mask")(m[None]) for m in masks])
    np.testing.assert_allclose(v(masks), one_by_one, atol=1e-5)


def test_the_game_of_a_model_for_which_padding_matters_does_not_pad() -> None:
    model = build(misbehaving.PaddingMatters)
    v = game(model, TEXT, removal="delete")
    rng = np.random.default_rng(0)
    masks = rng.random((12, v.size)) < 0.5
    one_by_one = np.concatenate([game(model, TEXT, removal="delete")(m[None]) for m in masks])
    np.testing.assert_allclose(v(masks), one_by_one, atol=1e-5)
    with pytest.raises(Unsupported, match="reads padding"):
        game(model, TEXT, removal="pad")


@pytest.mark.parametrize(
    "kind",
    [misbehaving.DrawsFromTorch, misbehaving.DrawsFromNumpy, misbehaving.DrawsFromPython],
)
def test_a_model_that_draws_leaves_the_callers_random_state_alone(kind: type[Plain]) -> None:
    np.random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    model = build(kind)
    torch.set_rng_state(before[0])
    scores = explain(model, TEXT, "occlusion", evidence=False).scores
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()

    assert state(model).holds is False
    assert repeats(model).holds is True
    torch.manual_seed(99)  # the caller's seed has no say in the answer
    np.random.seed(99)
    random.seed(99)
    np.testing.assert_array_equal(explain(model, TEXT, "occlusion", evidence=False).scores, scores)


@pytest.mark.skipif(
    os.environ.get("WHENCE_CHECK_SHAPES") == "1", reason="the shape checker draws by itself"
)
def test_a_pass_leaves_pythons_random_numbers_where_they_were() -> None:
    model = build(misbehaving.DrawsFromPython)
    before = random.getstate()
    for _ in range(3):  # the first, which is watched, and later ones, which have a seed
        model.predict([TEXT])
        assert random.getstate() == before
    # the wrong version: the model itself
    with torch.no_grad():
        model.hf(**model.batch([model.encode(TEXT)]).inputs)
    assert random.getstate() != before


def test_draws_of_others_in_the_first_pass_are_not_the_models() -> None:
    model = build(Plain)
    handle = model.hf.register_forward_hook(lambda *_: random.random() and None)
    model.predict([TEXT])
    assert draws(model.hf)  # as far as one pass tells
    handle.remove()
    assert state(model).holds is True
    assert not draws(model.hf)


def test_a_model_that_gives_two_answers_is_refused() -> None:
    model = build(misbehaving.NeverTheSame)
    with pytest.raises(ModelError, match="asked the same twice"):
        explain(model, TEXT, "occlusion")


@pytest.mark.parametrize("kind", [misbehaving.CountsInPlace, misbehaving.KeepsACache])
def test_buffers_that_a_pass_changes_are_put_back(kind: type[Plain]) -> None:
    model = build(kind)
    before = {name: b.clone() for name, b in model.hf.seen.named_buffers()}
    longest = getattr(model.hf.seen, "longest", None)
    for text in (TEXT, TEXT + " " + TEXT):
        compare(model, text, ["gradient-l2", "occlusion", "attention-mean"], evidence=False)
        after = dict(model.hf.seen.named_buffers())
        assert before.keys() == after.keys()
        for name, buffer in before.items():
            assert torch.equal(buffer, after[name]), name
        assert getattr(model.hf.seen, "longest", None) == longest
    assert state(model).holds is False
    assert "put back" in state(model).says


def test_a_part_that_a_pass_exchanges_is_put_back() -> None:
    model = build(misbehaving.ExchangesAPart)
    part = model.hf.seen.part
    for text in (TEXT, TEXT + " " + TEXT):
        compare(model, text, ["gradient-l2", "occlusion", "attention-mean"], evidence=False)
        assert model.hf.seen.part is part
        assert model.hf.seen.kind == "sparse"
    assert "ExchangesAPart" not in state(model).says  # it names the module that changes
    assert "Module: modules" in state(model).says
    # the wrong version: a pass of the model alone
    with torch.no_grad():
        model.hf(**model.batch([model.encode(TEXT)]).inputs)
    assert model.hf.seen.part is not part


@pytest.mark.parametrize("kind", [misbehaving.RescalesOnce, misbehaving.RescalesData])
def test_weights_that_a_pass_changes_are_put_back(kind: type[Plain]) -> None:
    model = build(kind)
    weight = model.hf.classifier.weight
    before, version = weight.detach().clone(), weight._version
    scores = []
    for _ in range(2):
        of_all = compare(model, TEXT, ["gradient-l2", "occlusion", "rollout"], evidence=False)
        scores.append(of_all["gradient-l2"].scores)
        # wrong versions: it stays halved; or the note goes and the weight is halved once more
        assert torch.equal(weight, before)
        assert weight._version == version
        assert not model.hf.seen.is_rescaled
    np.testing.assert_array_equal(*scores)
    assert "changes its weights in place, which is put back" in state(model).says

    whole = build(Plain)
    expected = explain(whole, TEXT, "gradient-l2", evidence=False).scores
    np.testing.assert_allclose(scores[0], expected, rtol=1e-5)


class RescalesLater(misbehaving.RescalesOnce):
    longest = 12


def test_a_weight_that_only_a_later_pass_changes_is_told_and_put_back_from_then_on() -> None:
    model = build(RescalesLater)
    weight = model.hf.classifier.weight
    before = weight.detach().clone()
    model.predict([SHORTER])
    with pytest.raises(ModelError, match="changed 1 of its weights in place"):
        model.predict([TEXT])
    assert not torch.equal(weight, before)
    assert model.hf.seen.is_rescaled  # or it would be halved once more

    changed = weight.detach().clone()
    model.hf.seen.is_rescaled = False
    model.predict([TEXT])
    assert torch.equal(weight, changed)


def test_without_putting_back_the_buffers_would_change() -> None:
    model = build(misbehaving.CountsInPlace)
    with torch.no_grad():
        model.hf(**model.batch([model.encode(TEXT)]).inputs)
    assert float(model.hf.seen.passes) == 1


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (misbehaving.ReadsIdsAgain, "another way beside their embeddings"),
        (misbehaving.EmbedsInChunks, "no one vector for each token"),
        (misbehaving.HidesItsEmbeddings, "does not say which module embeds"),
        (misbehaving.EmbedsWithMore, "gives out a tuple"),
    ],
)
def test_without_one_vector_for_each_token_only_games_are_left(
    kind: type[Plain], words: str
) -> None:
    model = build(kind)
    assert embeddings(model).holds is False
    for method in ("gradient-l2", "integrated-gradients", "smooth-grad", "attn-lrp"):
        with pytest.raises(Unsupported, match=words):
            explain(model, TEXT, method, evidence=False)
    for removal in ("mean", "zero"):
        with pytest.raises(Unsupported, match="no one embedding"):
            game(model, TEXT, removal=removal)
    for method in ("occlusion", "lime"):
        assert np.isfinite(explain(model, TEXT, method).scores).all()


def test_what_a_model_raises_becomes_one_line() -> None:
    model = build(misbehaving.Raises)
    with pytest.raises(ModelError, match="Raises cannot be run") as caught:
        explain(model, TEXT, "lime")
    assert "AttributeError" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_exception_of_the_callers_own_passes_as_it_is() -> None:
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    model = build(Plain)
    model.hf.classifier.register_forward_hook(stop)
    with pytest.raises(Stop):
        explain(model, TEXT, "lime")


def test_a_model_without_fault_answers_four_questions_in_two_passes() -> None:
    model = build(Plain)
    passes = []
    model.hf.register_forward_hook(lambda *_: passes.append(1))
    look_over(model, Needs.EMBEDDINGS)
    assert len(passes) == 2
    for check in (repeats, padding, batch_mates, embeddings):
        assert check(model).holds is True
    assert len(passes) == 2  # the wrong version asks each of them by itself: six passes


def test_every_question_to_a_model_without_fault_takes_four_passes() -> None:
    model = build(Plain)
    passes = []
    model.hf.register_forward_hook(lambda *_: passes.append(1))
    compare(model, TEXT, ["gradient-l2", "rollout", "generic-attention"], evidence=False)
    assert len(passes) == 4 + 1  # and the trace of the text


def test_findings_are_remembered_for_the_model_object() -> None:
    model = build(Plain)
    passes = []
    model.hf.register_forward_hook(lambda *_: passes.append(1))
    first = padding(model)
    count = len(passes)
    assert count > 0
    assert padding(model) is first
    assert len(passes) == count
