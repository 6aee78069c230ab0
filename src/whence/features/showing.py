"""dashboard: what each feature of an autoencoder fires on in a corpus, and what it does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from whence.core.dashboard import DENSE, Dashboard, EffectKind, Excerpt, FeatureCard, Top, Weighed
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.features.autoencoder import Autoencoder
from whence.features.belonging import check_belongs, check_feature
from whence.features.effects import class_effects, nearest, promoted
from whence.features.passages import AFTER, BEFORE, EDGES, Seen, Tick, top_passages
from whence.features.token_texts import token_texts
from whence.models.model import Model

MEASURED_ON = 3  # passages of each feature on which its effect on classes is measured

Effects = tuple[EffectKind, Mapping[int, tuple[tuple[Weighed, ...], tuple[Weighed, ...]]], str]


def dashboard(
    model: Model,
    autoencoder: Autoencoder,
    passages: Iterable[Passage | str],
    *,
    data: str = "a corpus",
    top: int = 20,
    promotes: int = 10,
    similar: int = 5,
    most: int | None = None,
    always: Collection[int] = (),
    quality: Mapping[str, Any] | None = None,
    tick: Tick | None = None,
) -> Dashboard:
    """Every feature that fires on a corpus, as a page, a table or JSON.

    The corpus streams by once. ``top`` passages are kept for each feature; ``most`` features are
    shown at most, those that fire most often, and those that are ``always`` wanted. ``promotes``
    tokens are named of what each feature
    raises, and as many of what it lowers; ``similar`` features of the nearest directions.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("writer")
    >>> board = dashboard(model, mirror(model, layer=1), ["The sea was calm."], most=5)
    >>> len(board.features), board.effects
    (5, 'lens')
    """
    check_belongs(model, autoencoder)
    for feature in always:
        check_feature(autoencoder, feature)
    seen = top_passages(model, autoencoder, passages, top=top, tick=tick)
    shown = _shown(seen, most, always)
    kind, effects, note = _effects(model, autoencoder, seen, shown, promotes)
    near = nearest(autoencoder, shown, similar)
    excerpts, tops = _excerpts(seen, shown)
    cards = []
    for feature in shown:
        raises, lowers = effects.get(feature, ((), ()))
        cards.append(
            FeatureCard(
                number=feature,
                frequency=float(seen.frequency[feature]),
                peak=float(seen.peak[feature]),
                mean=float(seen.mean[feature]),
                histogram=seen.histogram[feature],
                tops=tops[feature],
                promotes=raises,
                suppresses=lowers,
                similar=near[feature],
            )
        )
    about = autoencoder.about
    notes = [note] if note else []
    left_out = len(seen.live) - len(shown)
    if left_out:
        rest = np.setdiff1d(seen.live, shown)
        is_by_frequency = bool(seen.active[rest].max() <= seen.active[shown].min())
        notes.append(_on_left_out(left_out, is_by_frequency))
    first, last = _used_bins(seen.histogram)
    for i, card in enumerate(cards):
        cards[i] = _with_bins(card, first, last)
    return Dashboard(
        model=about.model,
        fingerprint=about.fingerprint,
        layer=about.layer,
        variant=about.variant,
        size=autoencoder.size,
        dim=autoencoder.dim,
        data=data,
        tokens=seen.tokens,
        passages=seen.passages,
        edges=EDGES[first : last + 2],
        features=tuple(cards),
        excerpts=excerpts,
        effects=kind,
        dead=autoencoder.size - len(seen.live),
        dense=int((seen.frequency > DENSE).sum()),
        l0=float(seen.active.sum() / seen.tokens),
        variance_explained=seen.variance_explained,
        quality=quality or {},
        notes=tuple(notes),
    )


def _shown(seen: Seen, most: int | None, always: Collection[int]) -> list[int]:
    """The live features by number; the most frequent of them where there are too many."""
    for feature in always:
        if not seen.active[feature]:
            raise InputError(
                f"feature {feature} was never active on the {seen.tokens:,} tokens of these texts."
            )
    if most is not None and most < 1:
        raise InputError(f"at least one feature is shown, not {most}.")
    live = seen.live
    if most is not None and len(live) > most:
        order = np.argsort(-seen.active[live], kind="stable")[:most]
        live = np.union1d(live[order], np.array(list(always), dtype=live.dtype))
    return live.tolist()


def _on_left_out(count: int, is_by_frequency: bool) -> str:
    """Said where live features are not shown; a rare one may have been asked for.

    >>> _on_left_out(1, True)
    '1 live feature, which fires less often, was left out.'
    >>> _on_left_out(3, False)[31:]
    'shown are those that fire most often, and those that were asked for.'
    """
    if not is_by_frequency:
        was = "feature was" if count == 1 else "features were"
        return (
            f"{count:,} live {was} left out: shown are those that fire most often, and those that "
            "were asked for."
        )
    if count == 1:
        return "1 live feature, which fires less often, was left out."
    return f"{count:,} live features, which fire less often, were left out."


def _used_bins(histogram: np.ndarray) -> tuple[int, int]:
    """The first and the last bin that some feature uses."""
    used = np.flatnonzero(histogram.sum(0))
    if not len(used):
        return 0, 0
    return int(used[0]), int(used[-1])


def _with_bins(card: FeatureCard, first: int, last: int) -> FeatureCard:
    return replace(card, histogram=card.histogram[first : last + 1])


# ---------------------------------------------------------------------- what they do


def _effects(
    model: Model, autoencoder: Autoencoder, seen: Seen, shown: list[int], count: int
) -> Effects:
    """What features promote, how that was found, and what to say where it cannot be.

    Said in a note where a model neither writes nor has classes: ``What features do to the output is
    not shown for this kind of model.``
    """
    if model.kind.generates and not (
        model.is_encoder_decoder and autoencoder.about.kind == "encoder"
    ):
        try:
            return "lens", promoted(model, autoencoder, shown, count), ""
        except Unsupported as problem:
            return "none", {}, str(problem)
    if not model.kind.has_classes:
        return "none", {}, "What features do to the output is not shown for this kind of model."
    places = []
    for feature in shown:
        named = [int(i) for i in seen.passage[feature][:MEASURED_ON] if i >= 0]
        places += [(feature, seen.texts[i]) for i in named]
    told = {}
    for feature, raised in class_effects(model, autoencoder, places).items():
        order = np.argsort(-raised, kind="stable")
        ups = [Weighed(model.labels[int(i)], float(raised[i])) for i in order if raised[i] > 0]
        downs = [
            Weighed(model.labels[int(i)], float(raised[i])) for i in order[::-1] if raised[i] < 0
        ]
        told[feature] = (tuple(ups[:count]), tuple(downs[:count]))
    return "clamped", told, ""


# ---------------------------------------------------------------------- texts, once


def _excerpts(
    seen: Seen, shown: list[int]
) -> tuple[tuple[Excerpt, ...], dict[int, tuple[Top, ...]]]:
    """Stretches of passages that features show, each text once, and what each feature shows of it.

    Windows of one passage that touch become one excerpt.
    """
    windows: dict[int, list[tuple[int, int]]] = {}
    for feature in shown:
        for number, place in zip(seen.passage[feature], seen.place[feature], strict=True):
            if number >= 0:
                length = len(seen.texts[int(number)])
                windows.setdefault(int(number), []).append(_window(int(place), length))

    excerpts: list[Excerpt] = []
    found: dict[int, list[int]] = {}  # the excerpts of each passage
    for number in sorted(windows):
        pieces = token_texts(seen.texts[number])
        for start, end in _joined(windows[number]):
            found.setdefault(number, []).append(len(excerpts))
            excerpts.append(Excerpt(number, start, pieces[start:end]))

    tops: dict[int, tuple[Top, ...]] = {}
    for feature in shown:
        own = []
        for rank, number in enumerate(seen.passage[feature].tolist()):
            if number < 0:
                continue
            place = int(seen.place[feature][rank])
            start, end = _window(place, len(seen.texts[number]))
            excerpt = next(i for i in found[number] if _holds(excerpts[i], start, end))
            offset = start - (place - BEFORE)
            values = seen.around[feature][rank][offset : offset + end - start]
            own.append(Top(excerpt, start - excerpts[excerpt].start, place - start, values))
        tops[feature] = tuple(own)
    return tuple(excerpts), tops


def _window(place: int, length: int) -> tuple[int, int]:
    return max(0, place - BEFORE), min(length, place + AFTER + 1)


def _holds(excerpt: Excerpt, start: int, end: int) -> bool:
    return excerpt.start <= start and end <= excerpt.start + len(excerpt.pieces)


def _joined(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Windows that touch or overlap as one.

    >>> _joined([(5, 9), (0, 3), (2, 4)])
    [(0, 4), (5, 9)]
    """
    joined: list[tuple[int, int]] = []
    for start, end in sorted(windows):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
