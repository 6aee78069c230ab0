"""The guard on models that misbehave: what is refused, what still works, and what is read where."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as tf

from tests import misbehaving
from tests import tokenizers as tok
from tests.families import FAMILIES, LABELS
from tests.families import build as build_family
from tests.misbehaving import Plain, build
from whence.core.errors import Unsupported
from whence.core.registry import Needs
from whence.explaining.attend import attend
from whence.explaining.explain import compare, explain
from whence.models.load import load
from whence.models.model import Model
from whence.trace import guard
from whence.trace.edits import Edit
from whence.trace.mixing import mixed_beside_attention
from whence.trace.trace import trace

TEXT = "the food is great but the service is not"
ATTENTION = ("attention-mean", "attention-max", "rollout", "flow", "value-weighted")


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_on_the_list_passes_every_check(family: str) -> None:
    model = build_family(family)
    for finding in guard.findings(model):
        assert finding.holds is not False, finding


def test_attention_that_is_not_the_models_own_is_refused_and_gradients_are_not_touched() -> None:
    model = build(misbehaving.EagerIsAnother)
    alone = explain(model, TEXT, "gradient-x-input", evidence=False)
    together = compare(model, TEXT, evidence=False)
    np.testing.assert_array_equal(together["gradient-x-input"].scores, alone.scores)
    assert set(ATTENTION) < set(together.skipped)
    for name in ATTENTION:
        assert "made visible the model says something else" in together.skipped[name]
        assert "Gradient methods and those that play" in together.skipped[name]

    # the wrong version: gradients of the trace whose attention is visible
    needs = Needs.ATTENTION | Needs.EMBEDDING_GRADIENTS
    seen = trace(model, [model.encode(TEXT)], needs=needs)
    own = trace(model, [model.encode(TEXT)], needs=Needs.EMBEDDING_GRADIENTS)
    gap = (seen.embedding_gradients - own.embedding_gradients).abs().max()
    assert float(gap / own.embedding_gradients.abs().max()) > 0.05


def test_attend_refuses_it_too_unless_eager_is_asked_for() -> None:
    model = build(misbehaving.EagerIsAnother)
    with pytest.raises(Unsupported, match="says something else"):
        attend(model, TEXT)
    assert attend(model, TEXT, attention_via="output").kinds


def test_pooled_attention_is_refused_by_its_size() -> None:
    model = build(misbehaving.PoolsItsKeys)
    refused = compare(model, TEXT, evidence=False).skipped
    assert set(ATTENTION) < set(refused)
    assert "windowed, pooled" in refused["rollout"]
    assert "gradient-l2" not in refused
    # also where the guard was not asked
    with pytest.raises(Unsupported, match="windowed, pooled"):
        trace(model, [model.encode(TEXT)], needs=Needs.HEAD_MEANS)


@pytest.mark.parametrize(
    "kind",
    [
        misbehaving.Detached,
        misbehaving.NoWayBack,
        misbehaving.HalfDetached,
        misbehaving.FifthDetached,
        misbehaving.BranchDetached,
    ],
)
def test_gradients_that_do_not_arrive_or_lie_are_refused(kind: type[Plain]) -> None:
    model = build(kind)
    for method in ("gradient-l1", "gradient-x-input", "integrated-gradients", "smooth-grad"):
        with pytest.raises(Unsupported, match="Methods that play"):
            explain(model, TEXT, method, evidence=False)
    assert np.isfinite(explain(model, TEXT, "occlusion").scores).all()


def test_a_slope_is_held_against_steps_only_as_far_as_they_agree_with_each_other() -> None:
    agree, differ = [1.0, 1.01, 1.0], [1.0, 1.3, 0.7]
    assert guard._miss(agree, 0.8) == (pytest.approx(0.2), guard.WRONG_BY)
    assert guard._miss(agree, 0.95)[0] < guard.WRONG_BY
    miss, allowed = guard._miss(differ, 0.85)
    assert miss < allowed == guard.WRONG_BY_WHERE_STEPS_DISAGREE
    # the wrong version takes the nearest step: here one that rounding put there
    assert guard._miss([1.0, 1.01, 0.8], 0.8)[0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    "kind", [misbehaving.Convolves, misbehaving.Remembers, misbehaving.ConvolvesInsideAttention]
)
def test_tokens_that_are_mixed_beside_attention_refuse_its_methods(kind: type[Plain]) -> None:
    model = build(kind)
    assert guard.attention(model).holds is True  # the weights are the model's own
    assert guard.mixing(model).holds is False
    comparison = compare(model, TEXT, evidence=False, budget="300")
    assert {*ATTENTION, "generic-attention"} <= set(comparison.skipped)
    assert "beside the attention that is seen" in comparison.skipped["rollout"]
    assert "Gradient methods and those that play" in comparison.skipped["rollout"]
    assert "gradient-x-input" in comparison.attributions
    # a look at the weights is no claim about the output
    assert attend(model, TEXT).kinds
    # and who asks for one path of attention gets it
    forced = explain(model, TEXT, "rollout", evidence=False, attention_via="interface")
    assert np.isfinite(forced.scores).all()


@pytest.mark.parametrize("kind", [Plain, misbehaving.ReadsTheMean, misbehaving.ReadsTheLast])
def test_a_head_that_reads_many_tokens_is_not_called_mixing(kind: type[Plain]) -> None:
    assert guard.mixing(build(kind)).holds is True


@pytest.mark.parametrize("kind", [Plain, misbehaving.Convolves])
def test_mixing_is_seen_without_the_registry_too(kind: type[Plain]) -> None:
    model = build(kind)
    edited = mixed_beside_attention(model, "interface")
    assert mixed_beside_attention(model, "output") == pytest.approx(edited, rel=1e-4, abs=1e-6)


def test_without_looking_at_themselves_all_tokens_would_seem_mixed() -> None:
    # the wrong version: attention is left on
    model = build(Plain)
    passage = model.encode(TEXT)

    def exchange(vectors: torch.Tensor) -> torch.Tensor:
        changed = vectors.clone()
        changed[1, 1] = vectors[1, 2]
        return changed

    edits = [Edit("exchange", "embeddings", exchange)]
    traced = trace(model, [passage] * 2, needs=Needs.HIDDEN_STATES, edits=edits)
    plain, changed = traced.hidden_states[-1]
    assert float((plain[3:] - changed[3:]).abs().max()) > 1e-2


@pytest.mark.parametrize(
    ("kind", "place"),
    [(misbehaving.ReadsTheLast, -1), (misbehaving.ReadsTheSecond, 1), (Plain, 0)],
)
def test_the_row_of_the_token_that_is_read_speaks(kind: type[Plain], place: int) -> None:
    model = build(kind)
    scores = explain(
        model, TEXT, "attention-mean", evidence=False, units="token", layer="last"
    ).scores
    passage = model.encode(TEXT, units="token")
    maps = trace(model, [passage], needs=Needs.ATTENTION).attentions["encoder"][-1][0]
    row = maps.mean(0)[place]
    content = torch.from_numpy(~passage.special)
    np.testing.assert_allclose(scores, row[content].numpy(), atol=1e-6)
    other = maps.mean(0)[2]  # the wrong version: the row of a token that is not read
    assert float((row - other).abs().max()) > 1e-3


def test_a_head_that_reads_all_tokens_speaks_through_the_mean_of_rows() -> None:
    model = build(misbehaving.ReadsTheMean)
    assert guard.readout(model).choice == "all"
    assert model.readout(model.encode(TEXT)) is None


def _xlnet() -> Model:
    """It embeds token by passage, and no gradient reaches the weights that it returns."""
    torch.manual_seed(0)
    config = tf.XLNetConfig(
        vocab_size=len(tok.wordpiece()),
        d_model=32,
        n_layer=2,
        n_head=4,
        d_inner=40,
        initializer_range=0.3,
        **LABELS,
    )
    return load(tf.XLNetForSequenceClassification(config).eval(), tokenizer=tok.wordpiece())


def test_the_token_that_is_read_is_found_without_gradients_of_attention() -> None:
    model = _xlnet()
    assert guard.attention_gradients(model).holds is False
    assert guard.readout(model).choice == "last"
    passage = model.encode(TEXT)
    assert model.kind.readout(model, passage) == 0  # the wrong version: what the task would say
    assert model.readout(passage) == len(passage) - 1


def test_embeddings_that_lie_token_by_passage_are_turned() -> None:
    model = _xlnet()
    assert guard.embeddings(model).holds is True
    passages = [model.encode(TEXT), model.encode("not is service the but great is food the")]
    assert len(passages[0]) == len(passages[1])
    traced = trace(model, passages, "good", Needs.EMBEDDING_GRADIENTS)

    batch = model.batch(passages)
    vectors = model.hf.get_input_embeddings()(batch.inputs["input_ids"]).detach().requires_grad_()
    inputs = {name: kept for name, kept in batch.inputs.items() if name != "input_ids"}
    model.hf(inputs_embeds=vectors, **inputs).logits[:, 2].sum().backward()
    assert vectors.grad is not None
    largest = float(vectors.grad.abs().max())
    torch.testing.assert_close(
        traced.embedding_gradients, vectors.grad, atol=1e-5 * largest, rtol=1e-4
    )
    # the wrong version gives each passage the gradients of the other
    assert float((vectors.grad[0] - vectors.grad[1]).abs().max()) > 1e-2 * largest


KINDS = [
    kind
    for kind in vars(misbehaving).values()
    if isinstance(kind, type) and issubclass(kind, Plain)
]
REFUSED_WHOLE = (misbehaving.Raises, misbehaving.NeverTheSame)


@pytest.mark.parametrize(
    "kind",
    [
        Plain,
        misbehaving.BranchDetached,
        misbehaving.Convolves,
        misbehaving.ConvolvesInsideAttention,
        misbehaving.EagerIsAnother,
        misbehaving.FifthDetached,
        misbehaving.MatesMatter,
        misbehaving.PaddingMatters,
        misbehaving.ReadsIdsAgain,
        misbehaving.ReadsTheMean,
        misbehaving.Remembers,
    ],
)
def test_the_first_look_finds_what_the_checks_find_one_by_one(kind: type[Plain]) -> None:
    # the wrong version exchanges no token in the rows that tell of mixing: Remembers would pass
    at_once = guard.findings(build(kind))
    one_by_one = guard._every_finding(build(kind))
    assert [(f.name, f.holds) for f in at_once] == [(f.name, f.holds) for f in one_by_one]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in REFUSED_WHOLE])
def test_no_method_crashes_on_any_of_them(kind: type[Plain]) -> None:
    comparison = compare(build(kind), TEXT, evidence=False, budget="300")
    assert "occlusion" in comparison.attributions


def test_they_are_many() -> None:
    assert len(KINDS) > 25
