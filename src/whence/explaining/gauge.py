"""removal_gauge: how far a removal takes texts from the data, as the model represents them.

What is removed makes texts that nobody writes. Where these lie far from all that the model was
trained on, what it says of them is no good measure of an explanation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from whence.core.errors import InputError, Unsupported
from whence.core.gauge import Gauge
from whence.core.passage import Passage
from whence.games.game import (
    TOKENS_AT_ONCE,
    AnyRemover,
    check_is_model,
    name_of,
    remover_of,
)
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.trace.representation import representations

SHARES = (0.1, 0.3, 0.5, 0.9)
FEWEST_TEXTS = 10
FOLDS = 5
# of random numbers: which units go. Apart from those of rankings and controls.
REMOVED_STREAM = 11


def removal_gauge(
    model: Model,
    texts: Sequence[str | Passage],
    removals: Sequence[str] = ("auto",),
    *,
    shares: Sequence[int | float] = SHARES,
    seed: int = 0,
) -> tuple[Gauge, ...]:
    """How far texts lie from the data once a share of their units is removed, for each removal.

    The model's own vector of each text (what its head reads) is held against those of whole texts
    by its Mahalanobis distance, with a mean and a shrunk covariance (Ledoit and Wolf) of the whole
    texts in the other four fifths of the data. The units that go are drawn at random: it is the
    removal that is gauged, not a ranking. A share of 0 gives 0.5 by construction.

    >>> import whence
    >>> words = ["a fine film", "a dull film", "not bad at all", "a truly moving story"]
    >>> texts = [f"{one} and {other}" for one in words for other in words]
    >>> (gauge,) = whence.removal_gauge(whence.load("sentiment"), texts, ["mask"], shares=[0, 0.5])
    >>> gauge.removal, gauge.like_data[0], gauge.texts
    ('mask', 0.5, 16)
    """
    check_is_model(model)
    _check_model(model)
    _check_shares(shares)
    shares = [float(share) for share in shares]
    passages = [_encoded(model, text) for text in texts]
    if len(passages) < FEWEST_TEXTS:
        raise InputError(
            f"{len(passages)} texts do not show what data looks like: give at least "
            f"{FEWEST_TEXTS}, better a hundred."
        )
    whole = _vectors_of_whole(model, passages)
    gauges = []
    for removal in removals:
        removers = _removers(model, passages, removal, seed)
        perturbed = _vectors_without(whole, removers, shares, seed)
        gauges.append(gauge_of(whole, perturbed, removal=name_of(removers[0]), shares=shares))
    return tuple(gauges)


def gauge_of(
    whole: Float[np.ndarray, "text width"],
    perturbed: Float[np.ndarray, "share text width"],
    *,
    removal: str,
    shares: Sequence[int | float],
) -> Gauge:
    """The gauge of vectors that are there already.

    Each text, whole and perturbed, is measured by the mean and covariance of the whole texts in
    the other folds, so that no text is near the data for being among them.
    """
    texts = len(whole)
    fold = np.arange(texts) % FOLDS
    of_whole = np.empty(texts)
    of_perturbed = np.empty(perturbed.shape[:2])
    for held_out in range(FOLDS):
        here = fold == held_out
        distance = _Distance(whole[~here])
        of_whole[here] = distance(whole[here])
        for i in range(len(perturbed)):
            of_perturbed[i, here] = distance(perturbed[i, here])

    medians = np.median(of_perturbed, axis=1)
    # a text that lies exactly as far out counts by half, so that data beside itself gives 0.5
    further = (of_whole > medians[:, None]).mean(1) + (of_whole == medians[:, None]).mean(1) / 2
    return Gauge(
        removal=removal,
        shares=tuple(float(share) for share in shares),
        like_data=tuple(further.tolist()),
        distance=tuple(medians.tolist()),
        distance_of_whole=float(np.median(of_whole)),
        texts=texts,
    )


class _Distance:
    """Mahalanobis distances from some rows, per dimension that they can tell apart."""

    def __init__(self, rows: Float[np.ndarray, "row width"]) -> None:
        self.centre = rows.mean(0)
        covariance = shrunk_covariance(rows)
        variances, directions = np.linalg.eigh(covariance)
        # representations may lie in a plane: along what never varies, rounding is no distance
        known = variances > variances[-1] * len(variances) * np.finfo(np.float64).eps
        if not known.any():
            raise Unsupported(
                "the model represents all texts alike, so there is no distance from the data."
            )
        self.scaled = directions[:, known] / np.sqrt(variances[known])

    def __call__(self, rows: Float[np.ndarray, "row width"]) -> Float[np.ndarray, " row"]:
        return np.linalg.norm((rows - self.centre) @ self.scaled, axis=1)


def shrunk_covariance(rows: Float[np.ndarray, "row width"]) -> Float[np.ndarray, "width width"]:
    """The covariance of few rows, pulled towards a multiple of the identity (Ledoit & Wolf 2004).

    The pull is the one that is best on average, estimated from the rows themselves: the variance
    of the covariance's entries over their distance from the target.

    >>> shrunk_covariance(np.array([[1.0, 0.0], [-1.0, 0.0]])).round(2).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    count, width = rows.shape
    centred = rows - rows.mean(0)
    sample = centred.T @ centred / count
    scale = np.trace(sample) / width
    from_target = ((sample - scale * np.eye(width)) ** 2).sum()
    if from_target == 0:
        return sample
    squares = (centred**2).sum(1)
    spread = ((squares**2).sum() / count - (sample**2).sum()) / count
    pull = min(1.0, max(0.0, spread / from_target))
    return (1 - pull) * sample + pull * scale * np.eye(width)


def _removers(
    model: Model, passages: Sequence[Passage], removal: str, seed: int
) -> list[AnyRemover]:
    """One for each passage; a masked language model that fills is loaded once for all."""
    first = remover_of(model, passages[0], removal, seed)
    if first.filler is None:
        return [remover_of(model, passage, removal, seed) for passage in passages]
    filler = first.filler.model
    return [remover_of(model, passage, removal, seed, filler) for passage in passages]


def _vectors_of_whole(model: Model, passages: Sequence[Passage]) -> Float[np.ndarray, "text width"]:
    rows: dict[int, np.ndarray] = {}
    with model.lock, untouched(model.hf), unbroken(torch.inference_mode()):
        for group in model.groups(passages, TOKENS_AT_ONCE):
            vectors = representations(model, model.batch([passages[i] for i in group]))
            rows.update(zip(group, vectors.cpu().numpy(), strict=True))
    return np.stack([rows[i] for i in range(len(passages))])


def _vectors_without(
    whole: Float[np.ndarray, "text width"],
    removers: Sequence[AnyRemover],
    shares: Sequence[int | float],
    seed: int,
) -> Float[np.ndarray, "share text width"]:
    """One row for each share and text; the units of a larger share hold those of a smaller."""
    model = removers[0].model
    vectors = np.repeat(whole[None], len(shares), axis=0)
    with model.lock, untouched(model.hf), unbroken(torch.inference_mode()):
        for text, remover in enumerate(removers):
            masks = masks_for(remover.passage, shares, seed)
            changed = np.flatnonzero(~masks.all(1))  # a text that is left whole is the whole one
            kept = remover.kept_tokens(masks[changed])
            lengths = remover.lengths(kept).tolist()
            for group in model.groups_of_lengths(lengths, TOKENS_AT_ONCE):
                batch = remover.batch(kept[group], _seeds(masks[changed[group]]))
                with remover.embeddings(kept[group], batch):
                    rows = representations(model, batch)
                vectors[changed[group], text] = rows.cpu().numpy()
    return vectors


def _seeds(masks: Bool[np.ndarray, "mask unit"]) -> np.ndarray:
    return np.packbits(masks, axis=1).astype(np.int64)


def masks_for(
    passage: Passage, shares: Sequence[int | float], seed: int
) -> Bool[np.ndarray, "share unit"]:
    """Which units are kept when a share of them is removed at random; at least one goes, if any.

    >>> import whence
    >>> passage = whence.load("sentiment").encode("a film that is not bad at all")
    >>> (~masks_for(passage, (0, 0.1, 0.5, 1), seed=0)).sum(1).tolist()
    [0, 1, 4, 8]
    """
    units = len(passage.unit_spans)
    order = np.random.default_rng([seed, REMOVED_STREAM, *passage.digest]).permutation(units)
    place = np.empty(units, dtype=np.int64)
    place[order] = np.arange(units)
    counts = np.array([max(1, int(share * units + 0.5)) if share else 0 for share in shares])
    return place >= counts[:, None]


def _encoded(model: Model, text: str | Passage) -> Passage:
    if isinstance(text, Passage):
        return model.fitted(text, "truncate")
    return model.encode(text, overflow="truncate")


def _check_model(model: Model) -> None:
    if not model.kind.has_classes or not model.kind.reads_text:
        raise Unsupported(
            f"the gauge reads what the head of a text classifier reads; {type(model.hf).__name__} "
            "is none."
        )


def _check_shares(shares: Sequence[int | float]) -> None:
    wrong: list[Any] = [share for share in shares if not 0 <= share <= 1]
    if wrong or not len(shares):
        raise InputError(f"shares of units lie from 0 to 1, and there is at least one: {shares}.")
