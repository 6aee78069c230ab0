"""explain: a text explained by a few features, judged by the same evidence as words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from whence.core.attribution import Attribution, Cost
from whence.core.comparison import Comparison
from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.registry import Needs, as_unit_scores, find_method, settings_dict, settings_of
from whence.core.request import AnyTarget, check_rankings, check_steps
from whence.core.target import Reading
from whence.explaining.run import error_of
from whence.features.autoencoder import Autoencoder
from whence.features.game import CANDIDATES, FeatureGame, feature_game
from whence.metrics.evidence import RANKINGS, STEPS, Control, control, judged
from whence.models.model import Model
from whence.models.passing import in_one_line


def explain(
    model: Model,
    autoencoder: Autoencoder,
    text: str | Passage,
    method: str = "occlusion",
    *,
    pair: str | None = None,
    target: AnyTarget = None,
    read: Reading | None = None,
    top: int = 10,
    features: Sequence[int] | None = None,
    candidates: int = CANDIDATES,
    seed: int = 0,
    evidence: bool = True,
    rankings: int = RANKINGS,
    steps: int = STEPS,
    **settings: Any,
) -> Attribution:
    """What a few features of a text do to the target: an Attribution whose units are features.

    The ``top`` features are those whose removal changes the target most; all others are one unit,
    and so is what the autoencoder does not reconstruct. Any method that plays a game will do:
    occlusion, shapley, lime, banzhaf. Unless ``evidence=False`` the scores are held against random
    rankings of the same units, with removed features set to 0 and set to their mean over the text.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("sentiment")
    >>> a = explain(model, mirror(model, layer=1), "not bad at all", top=4, evidence=False)
    >>> a.units.kind, a.units[-1]
    ('feature', 'not reconstructed')
    """
    comparison = compare(
        model,
        autoencoder,
        text,
        {method: settings},
        pair=pair,
        target=target,
        read=read,
        top=top,
        features=features,
        candidates=candidates,
        seed=seed,
        evidence=evidence,
        rankings=rankings,
        steps=steps,
    )
    return comparison.first


def compare(
    model: Model,
    autoencoder: Autoencoder,
    text: str | Passage,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]] = ("occlusion", "shapley", "lime"),
    *,
    pair: str | None = None,
    target: AnyTarget = None,
    read: Reading | None = None,
    top: int = 10,
    features: Sequence[int] | None = None,
    candidates: int = CANDIDATES,
    seed: int = 0,
    evidence: bool = True,
    rankings: int = RANKINGS,
    steps: int = STEPS,
) -> Comparison:
    """The same by several methods, which play one game and share its memory.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("sentiment")
    >>> autoencoder = mirror(model, layer=1)
    >>> c = compare(model, autoencoder, "not bad at all", ["occlusion", "shapley"], top=3)
    >>> list(c)
    ['occlusion', 'shapley']
    """
    check_rankings(rankings)
    check_steps(steps)
    by_name = methods if isinstance(methods, Mapping) else {name: {} for name in methods}
    # a mistyped method or setting is an error before anything is run
    calls = []
    for name, given in by_name.items():
        info = find_method(name)
        if not info.needs & Needs.GAME:
            raise Unsupported(
                f"{info.name!r} looks inside the model at the words of a text; features are "
                "explained by methods that play: occlusion, shapley, lime, banzhaf, beta-shapley."
            )
        calls.append((info, settings_of(info, given, seed)))
    begun = time.perf_counter()
    game = feature_game(
        model,
        autoencoder,
        text,
        pair=pair,
        target=target,
        read=read,
        top=top,
        features=features,
        candidates=candidates,
    )
    provenance = Provenance.of(model, attention="")
    controls: list[Control] = []
    attributions = {}
    for info, settings in calls:
        attribution = _played(game, info, settings, seed, provenance)
        if evidence:
            if not controls:
                controls = [control(one, rankings, seed, steps) for one in _removals(game)]
            found = judged(attribution, controls, seed)
            attribution = replace(attribution, evidence=found)
        attributions[info.name] = attribution
    cost = replace(game.cost, seconds=time.perf_counter() - begun)
    return Comparison(attributions, cost)


def _removals(game: FeatureGame) -> list[FeatureGame]:
    """The game, and the same with features set to their means: of one token, that changes nothing.

    Two, as for words: a ranking that only one way of removing bears out is not borne out.
    """
    tokens = game.players.parts.shape[1]
    return [game, game.under_means()] if tokens > 1 else [game]


def _played(
    game: FeatureGame, info: Any, settings: Any, seed: int, provenance: Provenance
) -> Attribution:
    """What one method says of the game."""
    begun, before = time.perf_counter(), game.cost
    with in_one_line(game.model.hf, info.name, settings):
        scores = as_unit_scores(settings(game), info.name, game.units.names)
    paid = Cost(
        forwards=game.cost.forwards - before.forwards,
        seconds=time.perf_counter() - begun,
        saved=game.cost.saved - before.saved,
    )
    if hasattr(settings, "removal"):
        settings = replace(settings, removal=game.removal)
    probabilities = game.model.prediction(game.logits, game.passage).probabilities
    return Attribution(
        passage=None,
        units=game.units,
        scores=np.asarray(scores.units),
        target=game.target,
        value=game.full,
        method=info.name,
        version=info.version,
        settings=settings_dict(settings),
        seed=seed,
        signed=settings.signed,
        cost=paid,
        provenance=provenance,
        error=error_of(scores),
        evidence=scores.evidence,
        detail={**(scores.detail or {}), **_detail(game)},
        prediction=dict(probabilities),
        several_labels=game.model.several_labels,
        says_tokens=game.model.says_tokens,
    )


def _detail(game: FeatureGame) -> dict[str, Any]:
    """What else is to be known of the players, as plain values."""
    players, about = game.players, game.autoencoder.about
    return {
        "text": game.passage.text,
        "layer": about.layer,
        "variant": about.variant,
        "features": list(players.features),
        "strongest": [float(value) for value in players.strongest],
        "other features": players.others,
        "share not reconstructed": float(players.share_missed),
        "only the decoder's bias": game.empty,
    }
