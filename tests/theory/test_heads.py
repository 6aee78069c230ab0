"""The heads' sums beside the model itself."""

import numpy as np
import pytest
import torch

import whence
from tests import families
from whence.core.errors import TargetError, Unsupported
from whence.models.model import Model
from whence.theory.heads import heads_of, ratio_of

TEXT = "It isn't a great film, but the jokes are good."


@pytest.fixture(scope="module")
def model() -> Model:
    return whence.load("single-layer", dtype="float64")


@pytest.mark.parametrize("units", ["word", "token", "sentence"])
@pytest.mark.parametrize("removal", ["mask", "pad", "mean", "zero"])
def test_the_ratio_is_the_game(model: Model, removal: str, units: str) -> None:
    text = f"{TEXT} Nobody laughed." if units == "sentence" else TEXT
    game = whence.game(model, text, target="positive", units=units, removal=removal)
    masks = np.random.default_rng(0).random((40, game.size)) < 0.5
    masks[0], masks[1] = True, False
    ratio = ratio_of(model, game.passage, game.target, removal)
    np.testing.assert_allclose(ratio(masks).sum(1), game(masks), atol=1e-10, rtol=0)


def test_a_contrast_and_a_margin_are_linear_too(model: Model) -> None:
    masks = np.random.default_rng(1).random((20, len(model.encode(TEXT).unit_spans))) < 0.5
    for target in (("positive", "negative"), whence.Target(read="margin")):
        game = whence.game(model, TEXT, target=target, removal="mask")
        np.testing.assert_allclose(
            ratio_of(model, game.passage, game.target, "mask")(masks).sum(1),
            game(masks),
            atol=1e-10,
            rtol=0,
        )


def test_padding_is_attended_to(model: Model) -> None:
    passage = model.encode("a fine film")
    ids = torch.tensor([*passage.ids, *[1] * 20])[None]
    expected = model.hf(input_ids=ids).logits[0, 1].item()
    assert heads_of(
        model, passage, whence.Target("positive", index=1), padding=20
    ).output == pytest.approx(expected, abs=1e-12)


def test_what_has_no_closed_form_is_refused_by_name(model: Model) -> None:
    passage = model.encode("a fine film")
    with pytest.raises(Unsupported, match=r"leaves the other words in place .*not 'delete'"):
        ratio_of(model, passage, whence.Target(index=1), "delete")
    with pytest.raises(TargetError, match="not of the probability"):
        ratio_of(model, passage, whence.Target(index=1, read="probability"), "mask")
    for family, name in (
        ("bert", "BertForSequenceClassification"),
        ("gpt2", "GPT2LMHeadModel"),
    ):  # the latter has no mask token
        with pytest.raises(Unsupported, match=f"{name} is another model"):
            whence.explain(families.build(family), "not bad", "shapley-exact")
