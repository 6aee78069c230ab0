"""A game of features: each mask's value is what a plain hook would give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import whence
from whence.core.errors import InputError, Unsupported
from whence.features.explaining import compare, explain
from whence.features.game import NOT_RECONSTRUCTED, feature_game
from whence.features.mirrors import mirror
from whence.games.protocol import AnyGame
from whence.models.blocks import blocks_of
from whence.trace.hidden import hidden_at

TEXT = "not bad at all, I thought"


def lossy(model, layer: int):
    """An autoencoder that misses something: random directions, and a bias."""
    base = mirror(model, layer)
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(base.decoder.shape, generator=generator) * 0.02
    bias = torch.randn(base.dim, generator=generator) * 0.1
    return replace(base, decoder=base.decoder + noise, decoder_bias=bias)


@pytest.fixture(scope="module", params=["sentiment", "writer"])
def played(request):
    model = whence.load(request.param)
    autoencoder = lossy(model, layer=1)
    return model, autoencoder, feature_game(model, autoencoder, TEXT, top=5)


def slowly(model, autoencoder, game, mask, means: bool = False) -> float:
    """The definition, by a hook on the block and one pass: decode what is kept, token by token.

    With ``means``, what is not kept is set to its mean over tokens, and else to 0.
    """
    passage = game.passage
    (states,) = hidden_at(model, [passage], 1)
    codes = autoencoder.encode(states)
    missed = states - codes @ autoencoder.decoder - autoencoder.decoder_bias
    *features, others, error = mask
    kept = torch.full((autoencoder.size,), float(others))
    for feature, keep in zip(game.players.features, features, strict=True):
        kept[feature] = float(keep)
    new = torch.zeros_like(states)
    for token in range(len(states)):
        new[token] = autoencoder.decoder_bias
        for feature in codes.any(0).nonzero()[:, 0].tolist():
            off = codes[:, feature].mean() if means else 0.0
            amount = codes[token, feature] if kept[feature] else off
            new[token] += amount * autoencoder.decoder[feature]
        if error:
            new[token] += missed[token]
        elif means:
            new[token] += missed.mean(0)

    def hook(_module, _args, output):
        return (new[None], *output[1:]) if isinstance(output, tuple) else new[None]

    handle = blocks_of(model)[1].register_forward_hook(hook)
    try:
        logits = model.logits([passage])
    finally:
        handle.remove()
    return float(model.value(torch.from_numpy(logits), [game.target])[0])


def test_every_mask_is_what_a_plain_hook_gives(played):
    model, autoencoder, game = played
    assert isinstance(game, AnyGame)
    rng = np.random.default_rng(0)
    masks = rng.random((6, game.size)) < 0.5
    masks[0] = False
    masks[1] = [*[True] * 6, False]  # all features, without what is not reconstructed
    values = game(masks)
    wanted = [slowly(model, autoencoder, game, mask) for mask in masks]
    scale = 1 + np.abs(wanted).max()
    # would catch: masks of other rows, the bias switched off, the error kept
    assert values == pytest.approx(wanted, abs=1e-4 * scale)
    assert np.ptp(wanted) > 1e-2  # and these masks do differ


def test_under_the_second_removal_players_are_set_to_their_means(played):
    model, autoencoder, game = played
    second = game.under_means()
    masks = np.random.default_rng(1).random((5, game.size)) < 0.5
    masks[0] = False
    values = second(masks)
    wanted = [slowly(model, autoencoder, game, mask, means=True) for mask in masks]
    scale = 1 + np.abs(wanted).max()
    assert values == pytest.approx(wanted, abs=1e-4 * scale)
    # would catch: the memory of the first game, or zeros again
    assert np.abs(values - game(masks)).max() > 1e-2
    assert second.full == game.full


def test_all_players_kept_is_the_plain_model_to_the_last_bit(played):
    model, autoencoder, game = played
    plain = model.logits([model.encode(TEXT)])
    assert game.full == float(model.value(torch.from_numpy(plain), [game.target])[0])
    # in a batch with others, beside rounding, too
    fresh = feature_game(model, autoencoder, TEXT, features=game.players.features)
    fresh.memory.row_of_mask.clear()
    assert fresh.full == pytest.approx(game.full, abs=1e-4)


def test_what_is_remembered_costs_nothing(played):
    _, _, game = played
    masks = np.eye(game.size, dtype=bool)
    game(masks)
    paid = game.cost.forwards
    game(np.concatenate([masks, masks]))
    assert game.cost.forwards == paid
    other = game.about(0)
    assert other.target.index == 0


def test_players_are_the_features_with_the_largest_effects(played):
    model, autoencoder, game = played
    alone = [game.full - game(_without(game, i))[0] for i in range(5)]
    assert np.abs(alone).tolist() == sorted(np.abs(alone), reverse=True)
    outside = [f for f in range(60) if f not in game.players.features]
    rest = feature_game(model, autoencoder, TEXT, features=outside)
    effects = [rest.full - rest(_without(rest, i))[0] for i in range(len(outside))]
    # would catch: the most active ones, or the largest with a sign
    assert np.abs(effects).max() <= np.abs(alone).min() + 1e-5
    assert game.units[-1] == NOT_RECONSTRUCTED


def _without(game, player: int) -> np.ndarray:
    mask = np.ones((1, game.size), dtype=bool)
    mask[0, player] = False
    return mask


def test_methods_and_evidence_work_on_it_as_they_are():
    model = whence.load("sentiment")
    autoencoder = lossy(model, layer=1)
    c = compare(
        model, autoencoder, TEXT, ["occlusion", "shapley", "lime"], target="negative", top=4
    )
    game = feature_game(model, autoencoder, TEXT, target="negative", top=4)
    occlusion = c["occlusion"]
    wanted = [game.full - game(_without(game, i))[0] for i in range(game.size)]
    assert occlusion.scores == pytest.approx(wanted, abs=1e-5)
    # efficiency: Shapley values of 6 players share out what is between nothing and all
    assert c["shapley"].scores.sum() == pytest.approx(game.full - game.empty, abs=1e-4)
    for attribution in c.attributions.values():
        assert attribution.evidence is not None
        assert attribution.evidence.verdict is not None
        assert [trial.removal for trial in attribution.evidence.trials] == ["zero", "mean"]
        assert attribution.passage is None
        assert attribution.units.kind == "feature"
        back = whence.Attribution.from_dict(attribution.to_dict())
        assert back == attribution
    assert "not reconstructed" in str(c) + c.to_html()
    # the part that is missed is reported
    assert 0 < occlusion.detail["share not reconstructed"] < 1


def test_of_one_token_there_is_no_second_removal():
    model = whence.load("writer")
    a = explain(model, lossy(model, layer=1), "It", "occlusion", top=3)
    assert a.evidence is not None
    assert [trial.removal for trial in a.evidence.trials] == ["zero"]


def test_what_cannot_be_is_refused():
    model = whence.load("sentiment")
    autoencoder = mirror(model, layer=1)
    with pytest.raises(Unsupported, match="methods that play"):
        explain(model, autoencoder, TEXT, "gradient-x-input")
    with pytest.raises(InputError, match="no feature 99999"):
        feature_game(model, autoencoder, TEXT, features=[99999])
    with pytest.raises(InputError, match="fingerprint"):
        feature_game(whence.load("writer"), autoencoder, TEXT)
    with pytest.raises(InputError, match="at least one feature"):
        feature_game(model, autoencoder, TEXT, top=0)
    silent = replace(autoencoder, encoder_bias=torch.full((autoencoder.size,), -1e6))
    with pytest.raises(InputError, match="no feature is active"):
        feature_game(model, silent, TEXT)
