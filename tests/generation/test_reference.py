"""The slow definitions are right by themselves: against finite differences, sums and ids."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.families import DOUBLE, build
from tests.generation.reference import (
    Written,
    deleted,
    difference,
    embedded,
    from_token,
    from_vector,
    last_logits,
    log_probability,
    logit,
    prefix_attention,
    prefix_gradients,
    prefix_integrated_gradients,
    prefix_occlusion,
    prefix_values,
    probability,
    quadrature,
    replaced,
)

CAUSAL = ("gpt2", "llama", "gemma3", "opt")
BOTH_SIDES = ("t5", "bart", "marian")
OUTPUTS = (41, 7, 99, 12)


def written_by(family: str) -> tuple[Any, Written]:
    model = build(family, seed=1).hf
    if family in DOUBLE:
        model.double()
    if family in CAUSAL:
        return model, Written(start=(5, 17, 80, 33), outputs=OUTPUTS)
    start = model.config.decoder_start_token_id
    return model, Written(start=(start,), outputs=OUTPUTS, source=(5, 17, 80, 33, 21))


@pytest.mark.parametrize("family", CAUSAL + BOTH_SIDES)
def test_embeddings_are_those_of_the_model(family):
    """Would catch a factor that the model applies to the embeddings of ids only (Marian's √d)."""
    model, written = written_by(family)
    prefix = written.prefix(2)
    by_embeddings = last_logits(
        model,
        embedded(model, prefix),
        None if written.source is None else embedded(model, written.source),
    )
    if written.source is None:
        out = model(input_ids=torch.tensor([prefix]))
    else:
        out = model(
            input_ids=torch.tensor([written.source]), decoder_input_ids=torch.tensor([prefix])
        )
    torch.testing.assert_close(by_embeddings, out.logits[0, -1])


@pytest.mark.parametrize("family", ["gpt2", "bart", "marian"])
def test_gradients_are_the_slopes(family):
    """Of the log-probability of the token that was written, after its own prefix."""
    model, written = written_by(family)
    reading = log_probability(written.outputs)
    rows = prefix_gradients(model, written, reading)

    output, place = 2, 1
    torch.manual_seed(0)
    prefix = embedded(model, written.prefix(output))
    source = None if written.source is None else embedded(model, written.source)
    direction = torch.randn_like(prefix[place])

    def value(step: float) -> torch.Tensor:
        moved = prefix.clone()
        moved[place] += step * direction
        with torch.no_grad():
            return reading(last_logits(model, moved, source), output)

    step = 1e-5  # the error of a central difference is about its square
    slope = (value(step) - value(-step)) / (2 * step)
    torch.testing.assert_close(rows.prefix[output, place] @ direction, slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("family", CAUSAL + BOTH_SIDES)
def test_a_row_ends_where_its_prefix_ends(family):
    model, written = written_by(family)
    reading = logit(written.outputs)
    of_gradient = prefix_gradients(model, written, reading).prefix.isfinite().all(-1)
    of_occlusion = prefix_occlusion(model, written, reading, remove=replaced(3)).prefix.isfinite()
    of_attention = prefix_attention(model, written).prefix.isfinite().all(2).all(1)

    readable = torch.ones_like(of_occlusion).tril(len(written.start) - 1)
    assert torch.equal(of_gradient, readable)
    assert torch.equal(of_occlusion, readable)
    assert torch.equal(of_attention, readable)


@pytest.mark.parametrize(("rule", "cubes"), [("left", 9 / 64), ("right", 25 / 64)])
def test_one_sided_rules_by_hand(rule, cubes):
    """The integral of x³ over [0, 1] in four steps: (0 + 1 + 8 + 27) / 256, and with 64 for 0."""
    nodes, weights = quadrature(rule, 4)
    assert sum(w * x**3 for x, w in zip(nodes, weights, strict=True)) == pytest.approx(cubes)


@pytest.mark.parametrize(("rule", "degree"), [("gauss-legendre", 7), ("midpoint", 1)])
def test_rules_are_exact_up_to_their_degree(rule, degree):
    nodes, weights = quadrature(rule, 4)
    for power in range(degree + 2):
        total = sum(w * x**power for x, w in zip(nodes, weights, strict=True))
        is_exact = total == pytest.approx(1 / (power + 1), rel=1e-9)
        assert is_exact == (power <= degree)


@pytest.mark.parametrize("family", ["gpt2", "bart", "marian"])
def test_integrated_gradients_add_up(family):
    """To the number at the text less the number at the baseline, on both sides together.

    Would catch weights that do not sum to 1, and a side that is not moved along.
    """
    model, written = written_by(family)
    written = Written(written.start, written.outputs[:2], written.source)
    reading = probability(written.outputs)
    baseline = from_vector(model.get_input_embeddings().weight.mean(0))
    rows = prefix_integrated_gradients(model, written, reading, baseline=baseline, steps=40)

    output = 1
    source_begin = None if written.source is None else baseline(model, written.source)
    with torch.no_grad():
        begin = last_logits(model, baseline(model, written.prefix(output)), source_begin)
    change = prefix_values(model, written, reading)[output] - reading(begin, output)
    total = rows.prefix[output].nansum()
    if rows.source is not None:
        total = total + rows.source[output].sum()
    torch.testing.assert_close(total, change, rtol=1e-3, atol=1e-7)


def test_a_token_that_is_kept_scores_nothing():
    model, written = written_by("bart")
    reading = logit(written.outputs)
    kept = {written.start[0], 80}
    baseline = from_token(3, kept)
    rows = prefix_integrated_gradients(model, written, reading, baseline=baseline, steps=3)
    occluded = prefix_occlusion(model, written, reading, remove=replaced(3, kept))
    assert rows.source is not None
    assert occluded.source is not None
    assert (rows.prefix[:, 0] == 0).all()
    assert (rows.source[:, 2] == 0).all()
    assert (occluded.prefix[:, 0] == 0).all()
    assert (occluded.source[:, 2] == 0).all()
    assert (occluded.source[:, 1] != 0).all()


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_deleting_moves_what_follows(family):
    """Would catch a hole that is masked: positions would stay."""
    model, written = written_by(family)
    rows = prefix_occlusion(model, written, logit(written.outputs), remove=deleted())
    with torch.no_grad():
        whole = model(torch.tensor([[5, 17, 80, 33, 41]])).logits[0, -1, 7]
        without = model(torch.tensor([[5, 80, 33, 41]])).logits[0, -1, 7]
    torch.testing.assert_close(rows.prefix[1, 1], whole - without, rtol=1e-4, atol=1e-5)


def test_contrast_is_antisymmetric():
    model, written = written_by("gpt2")
    of, other = logit(written.outputs), logit((8, 9, 10, 11))
    one = prefix_gradients(model, written, difference(of, other)).prefix
    back = prefix_gradients(model, written, difference(other, of)).prefix
    torch.testing.assert_close(one, -back, equal_nan=True)


@pytest.mark.parametrize("family", CAUSAL + BOTH_SIDES)
def test_attention_of_prefixes_is_that_of_the_whole(family):
    """A causal model sees no future, so one pass over everything has the same rows."""
    model, written = written_by(family)
    rows = prefix_attention(model, written)
    places = len(written.start) - 1 + torch.arange(len(OUTPUTS))

    model.set_attn_implementation("eager")
    whole = torch.tensor([written.prefix(len(OUTPUTS) - 1)])
    with torch.no_grad():
        if written.source is None:
            own = model(whole, output_attentions=True).attentions
        else:
            out = model(
                torch.tensor([written.source]), decoder_input_ids=whole, output_attentions=True
            )
            own = out.decoder_attentions
            cross = torch.stack([layer[0, :, places] for layer in out.cross_attentions])
            torch.testing.assert_close(rows.source, cross.permute(2, 0, 1, 3))
    of_whole = torch.stack([layer[0, :, places] for layer in own]).permute(2, 0, 1, 3)
    torch.testing.assert_close(rows.prefix.nan_to_num(), of_whole)
    torch.testing.assert_close(rows.prefix.nansum(-1), torch.ones_like(of_whole[..., 0]))
