"""Adversarial attention against planted models, closed forms and brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float

from tests.audits.planted import irrelevant, second_layer_only, selects
from tests.families import build, inputs
from tests.tolerance import rounding
from whence.audits.adversary import Adversary, mean_jsd
from whence.audits.case import Case
from whence.audits.places import plain_trace
from whence.core.audit import Observation, Place
from whence.core.audited import AT_LEAST
from whence.core.errors import SettingsError
from whence.core.target import Target
from whence.models.model import Model
from whence.theory import jsd as jensen_shannon
from whence.trace import attention

LN_2 = float(np.log(2))


def values(observations: list[Observation], quantity: str) -> dict[Place, float]:
    return {o.place: o.value for o in observations if o.quantity == quantity}


def test_rows_that_do_not_matter_are_not_counted() -> None:
    """Would catch: a mean over all rows, to which those that are free give ln 2 each."""
    p, q = torch.eye(2)[None, None], torch.eye(2).flip(0)[None, None]
    same_at_0 = torch.cat([p[..., :1, :], q[..., 1:, :]], -2)
    assert float(mean_jsd(p, same_at_0, torch.tensor([[True, False]]))) == 0
    assert float(mean_jsd(p, same_at_0, torch.tensor([[True, True]]))) == pytest.approx(LN_2 / 2)
    assert float(mean_jsd(p, q, torch.tensor([[False, False]]))) == 0


@pytest.mark.parametrize("seed", range(3))
def test_where_attention_selects_the_word_it_cannot_be_another(seed: int) -> None:
    planted = selects(seed)
    for observations in Adversary()(planted.model, planted.cases):
        assert 0.09 < values(observations, "jsd")[Place(0)] < 0.12
        assert values(observations, "change")[Place(0)] <= 0.05


@pytest.mark.parametrize("seed", range(3))
def test_where_all_values_are_equal_any_attention_would_do(seed: int) -> None:
    planted = irrelevant(seed)
    for observations in Adversary()(planted.model, planted.cases):
        assert 0.66 < values(observations, "jsd")[Place(0)] < LN_2
        assert values(observations, "change")[Place(0)] < rounding(20, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_layer_that_matters_is_told_apart(seed: int) -> None:
    """Jointly: one layer is free and the other is not, and both count alike."""
    planted = second_layer_only(seed)
    for observations in Adversary()(planted.model, planted.cases):
        jsd = values(observations, "jsd")
        assert 0.66 < jsd[Place(0)] < LN_2
        assert 0.09 < jsd[Place(1)] < 0.12
        assert jsd[Place()] == pytest.approx((jsd[Place(0)] + jsd[Place(1)]) / 2, abs=0.02)


def test_the_search_finds_what_a_grid_finds() -> None:
    """Brute force on one row of three keys: every attention on a fine grid.

    Would catch: a search that stops at a local best, and one that breaks the constraint.
    """
    planted = selects(0)
    model = planted.model
    with torch.no_grad():  # one head alone, the other says nothing
        model.hf.bert.encoder.layer[0].attention.output.dense.weight[:, 4:] = 0
        model.hf.classifier.weight *= 2
    word = planted.cases[0].passage.text.split()[planted.callers[0] - 1]
    case = Case(model.encode(word), Target())
    assert len(case.passage) == 3
    plain = plain_trace(model, case)
    own = plain.attentions["encoder"][0][0, 0, 0].double()

    ticks = np.linspace(0, 1, 201)
    first, second = (x.ravel() for x in np.meshgrid(ticks, ticks))
    grid = np.stack([first, second, 1 - first - second], -1)
    grid = torch.from_numpy(grid[grid[:, 2] >= 0])
    # the word's value is ±1 and the others' 0, so the weight on it is what is written
    at = planted_logits(model, grid[:, 1] * np.sign(float(plain.logits[0, 1])))
    kept = model.change(plain.logits.double(), at) <= 0.05
    of_head = float(jensen_shannon(grid, own.expand_as(grid))[kept].max())
    # the other head is free: its best is the farthest corner
    corners = torch.eye(3, dtype=torch.float64)
    free = float(jensen_shannon(corners, own.expand_as(corners)).max())

    (observations,) = Adversary(steps=60)(model, [case])
    observed = values(observations, "jsd")[Place(0)]
    assert observed == pytest.approx((of_head + free) / 2, rel=0.03)


def planted_logits(
    model: Model, said: Float[torch.Tensor, " row"]
) -> Float[torch.Tensor, "row label"]:
    """The planted model's logits, from what attention brings to [CLS], by hand."""
    hf = model.hf
    cls = hf.bert.embeddings.word_embeddings.weight[int(model.encode("the").ids[0])]
    written = hf.bert.encoder.layer[0].attention.output.dense.weight[:, 0]
    state = (cls.double() + said[:, None] * written.double()).detach()
    for _ in range(2):  # after attention, and after a feed-forward layer that adds nothing
        state = torch.nn.functional.layer_norm(state, state.shape[-1:])
    pooled = (state @ hf.bert.pooler.dense.weight.detach().double().T).tanh()
    return pooled @ hf.classifier.weight.detach().double().T


def test_a_longer_search_never_finds_less_and_the_output_is_kept() -> None:
    model = build("bert")
    cases = [Case(passage, Target()) for passage in inputs(model, 2)]
    short, long = Adversary(steps=3)(model, cases), Adversary(steps=9)(model, cases)
    for before, after in zip(short, long, strict=True):
        for a, b in zip(before, after, strict=True):
            if a.quantity in ("jsd", AT_LEAST):
                assert 0 <= a.value <= b.value + rounding(50, 1.0) <= LN_2
            else:
                assert b.value <= 0.05


def test_a_search_that_found_nothing_is_a_bound_of_zero_and_no_divergence() -> None:
    """Would catch: such a text left out of the bound, and one counted as a divergence of 0."""
    planted = selects(0)
    hasty, patient = Adversary(steps=1, restarts=1), Adversary()
    found_nothing = 0
    for seen, known in zip(
        hasty(planted.model, planted.cases), patient(planted.model, planted.cases), strict=True
    ):
        at_least, jsd = values(seen, AT_LEAST), values(seen, "jsd")
        assert set(at_least) == {Place(0), Place()}
        for place, bound in at_least.items():
            assert bound == jsd.get(place, 0.0)
            found_nothing += place not in jsd
        assert values(known, AT_LEAST) == values(known, "jsd")
    assert found_nothing


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_padding_and_the_future_stay_hidden(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch: logits that give weight to keys behind the mask."""
    model = build(name)
    cases = [Case(passage, Target()) for passage in inputs(model, 2)]
    on_hidden = []
    apply = attention.apply_edits

    def watched(edits: Any, output: Any, weights: Any, value: Any, mask: Any) -> Any:
        output, changed = apply(edits, output, weights, value, mask)
        hidden = ~attention.visible_keys(mask, weights)
        assert hidden.any()
        on_hidden.append(float((changed.detach() * hidden).max()))
        return output, changed

    monkeypatch.setattr(attention, "apply_edits", watched)
    Adversary(steps=3)(model, cases)
    assert len(on_hidden) > 3
    assert max(on_hidden) == 0


def test_the_control_is_a_shuffle_of_the_attention() -> None:
    """It lies below ln 2, above 0, and the seed alone decides it."""
    model = build("bert")
    passage = inputs(model, 1)[0]
    controls = []
    for seed in (0, 0, 1):
        (observations,) = Adversary(steps=1, restarts=1)(
            model, [Case(passage, Target(), seed=seed)]
        )
        controls.append([o.control for o in observations if o.quantity == "jsd"])
    assert controls[0] == controls[1] != controls[2]
    assert all(0 < c < LN_2 for c in controls[0] if c is not None)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(SettingsError, match="steps=0"):
        Adversary(steps=0)
    with pytest.raises(SettingsError, match="epsilon and rate"):
        Adversary(epsilon=0)
