"""Dashboards and cards of autoencoders: from no live feature to many, whatever these do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tests.occasions import _lots as lots
from tests.views.dashboards import EDGES, board
from whence.core.bootstrap import Mean
from whence.core.dashboard import Dashboard, Excerpt, FeatureCard, Neighbour, Top, Weighed
from whence.core.features import About
from whence.core.features_quality import Agreement, Fit, Quality
from whence.features.autoencoder import Autoencoder
from whence.features.card import LOSSES, card
from whence.features.forecast import Forecast
from whence.features.rules import Relu
from whence.features.showing import _on_left_out
from whence.views.features import (
    about_effects,
    dashboard_text,
    headline,
    sentences,
    unit_of_effects,
)
from whence.views.features_page import dashboard_page


def speak(rng: np.random.Generator) -> None:
    """A dashboard, a card and a forecast say everything that they can."""
    b = dashboard(rng)
    headline(b), sentences(b), about_effects(b), unit_of_effects(b)
    if lots.does(rng, 0.2):
        dashboard_text(b)
    if b.features and lots.does(rng, 0.2):
        dashboard_text(b, feature=b.features[0].number)
    if lots.does(rng, 0.03):
        dashboard_page(b)
        dashboard_page(board(5, 2, width=5))
    autoencoder_card(rng)
    str(forecast(rng))
    _on_left_out(lots.count(rng), lots.does(rng))


def dashboard(rng: np.random.Generator) -> Dashboard:
    """One dashboard of a few features."""
    live = 0 if lots.does(rng, 0.05) else lots.count(rng, 4000)
    shown = min(live, int(rng.integers(6)))
    excerpts = [Excerpt(i, 0, tuple(f" {w}" for w in lots.words(rng, 6))) for i in range(3)]
    dead = int(lots.one_of(rng, (0, 1, 700)))
    return Dashboard(
        model=lots.one_of(rng, ("writer", "x\x1b[31m")),
        fingerprint="0123",
        layer=int(rng.integers(12)),
        variant=lots.one_of(rng, ("topk", "relu")),
        size=live + dead or 1,
        dim=lots.count(rng, 4096),
        data=lots.one_of(rng, ("corpus.txt", "a corpus")),
        tokens=lots.count(rng, 10**6),
        passages=lots.count(rng, 10**4),
        edges=EDGES,
        features=tuple(_card(rng, i, excerpts) for i in range(shown)),
        excerpts=tuple(excerpts),
        effects=lots.one_of(rng, ("lens", "clamped", "none")),
        dead=dead if live else max(dead, 1),
        dense=int(lots.one_of(rng, (0, 1, 17))),
        l0=lots.share(rng) * lots.one_of(rng, (1.0, 40.0)),
        variance_explained=lots.one_of(rng, (None, -0.2, lots.share(rng))),
    )


def _card(rng: np.random.Generator, number: int, excerpts: list[Excerpt]) -> FeatureCard:
    peak = float(2 ** rng.uniform(-1, 4))
    tops = []
    for i in range(len(excerpts)):
        values = np.where(rng.random(6) < 0.3, rng.random(6) * peak, 0.0)
        place = int(rng.integers(6))
        values[place] = peak
        tops.append(Top(i, 0, place, values))
    counts = np.zeros(len(EDGES) - 1, dtype=np.int64)
    if lots.does(rng, 0.9):
        counts[: int(rng.integers(1, 8))] = 3
    names = lots.words(rng, 3)
    return FeatureCard(
        number=number,
        frequency=lots.share(rng),
        peak=peak,
        mean=peak / 5,
        histogram=counts,
        tops=tuple(tops),
        promotes=tuple(Weighed(name, 1.5) for name in names) if lots.does(rng) else (),
        suppresses=tuple(Weighed(name, -1.5) for name in names) if lots.does(rng) else (),
        similar=(Neighbour(3, 0.9),) if lots.does(rng) else (),
    )


def autoencoder_card(rng: np.random.Generator) -> tuple[str, About, Quality]:
    """The card of an autoencoder, and what it speaks of."""
    size = lots.count(rng, 4000)
    settings: dict[str, Any] = {"steps": 1000, "batch": 64, "learning_rate": 1e-3, "seed": 0}
    settings |= {"k": 24} if lots.does(rng) else {"sparsity": 0.1}
    data = {"name": "a.txt", "documents": 20, "tokens": 1000, "length": 64, "digest": "ff"}
    about = About("writer", "0123", 2, "decoder", "topk", size, 2, settings, data)
    about = replace(about, settings={**settings, "centred": lots.does(rng)})
    agreement = None
    if lots.does(rng):
        agreement = Agreement(1, 0.9, lots.share(rng), 0.5, lots.share(rng), 0.4)
    interval = (0.4, 0.6) if lots.does(rng) else None
    fit = Fit("this autoencoder", Mean(24.0, interval, 9), Mean(lots.share(rng), interval, 9))
    quality = Quality(
        documents=lots.count(rng),
        tokens=lots.count(rng, 10**5),
        size=size,
        dead=int(lots.one_of(rng, (0, 1, min(size, 70)))),
        dense=int(lots.one_of(rng, (0, 1, min(size, 70)))),
        seen=lots.count(rng, 10**6),
        loss=lots.one_of(rng, tuple(LOSSES)),
        loss_plain=3.0,
        loss_zero=9.0,
        loss_mean=7.0,
        fits=(fit,),
        agreement=agreement,
        random_model=fit if lots.does(rng) else None,
    )
    directions, zeros = torch.zeros(size, about.dim), torch.zeros(size)
    made = Autoencoder(directions, zeros, directions, torch.zeros(about.dim), Relu(), about)
    return card(made, quality, ("More.",) if lots.does(rng) else ()), about, quality


def forecast(rng: np.random.Generator) -> Forecast:
    """What a training would come to."""
    return Forecast(
        rows=lots.count(rng, 10**6),
        ratio=float(10 ** rng.uniform(-2, 2)),
        asleep=lots.share(rng),
        asleep_centred=lots.share(rng),
        centred=lots.does(rng),
        seconds=float(10 ** rng.uniform(-1, 5)),
        bytes_of_activations=lots.count(rng, 10**9),
        bytes_of_training=lots.count(rng, 10**9),
        seconds_of_measuring=float(10 ** rng.uniform(-1, 5)),
    )
