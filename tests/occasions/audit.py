"""Audits of attention, over all that they can hold."""

from __future__ import annotations

from math import log

import numpy as np

from tests.occasions.evaluation import TEXTS, pick, some
from whence.core.audit import Effect, Place
from whence.core.audited import Audit, HeadsFound
from whence.core.bootstrap import Mean
from whence.core.pruning import MeanCurve, PrunedOrder, Pruning
from whence.core.retrained import Retrained
from whence.views.audit_figures import FIGURES

READINGS = ("attention-mean", "rollout", "flow", "<b>mine</b>", "value-weighted", "\x1b[31mred")
# where an effect lies beside a bar: below, above, on both sides; next to it, and far from it
BESIDE = ((-0.9, -0.5), (-0.6, -0.01), (-0.3, 0.2), (0.0, 0.3), (0.01, 0.4), (0.5, 0.9), (-1, -1))
LN_2 = log(2)


def effect(
    rng: np.random.Generator,
    test: str,
    quantity: str,
    place: Place,
    texts: int,
    bar: float,
    most: float,
    reading: str = "",
    low_end: float = 0.0,
) -> Effect:
    """An effect somewhere beside its bar, within what it can be."""
    low, high = pick(rng, BESIDE)
    ends = [min(max(bar + most * end, low_end), most) for end in (low, high)]
    mean = float(rng.uniform(*ends)) if rng.random() < 0.8 else ends[0]
    values = tuple(rng.uniform(low_end, most, texts).tolist()) if 0 < texts < 41 else ()
    return Effect(
        test=test,
        quantity=quantity,
        place=place,
        reading=reading,
        mean=mean,
        interval=(ends[0], ends[1]) if texts >= 5 else None,
        texts=texts,
        control=pick(rng, (None, 0.0, -0.001, 0.5)),
        values=values if rng.random() < 0.2 else (),
    )


def fewer(rng: np.random.Generator, texts: int) -> int:
    """As many, or some of them."""
    return texts if rng.random() < 0.7 else int(rng.integers(1, texts + 1))


def places(rng: np.random.Generator) -> tuple[list[Place], list[Place]]:
    """The layers that were tested, and their heads."""
    kinds = pick(rng, (("",), ("",), ("encoder", "decoder", "cross")))
    layers = [
        Place(layer, None, kind) for kind in kinds for layer in range(pick(rng, (1, 2, 3, 6)))
    ]
    layers = some(rng, layers, 1)
    count = int(pick(rng, (0, 1, 2, 3)))
    return layers, [Place(p.layer, head, p.kind) for p in layers for head in range(count)]


def of_places(rng: np.random.Generator, texts: int, layers: list[Place], heads: list[Place]):
    """What shuffling, evening out and the search found."""
    has = {name: rng.random() < 0.85 for name in ("permutation", "uniform", "adversary")}
    for place in (*heads, *layers, *([Place()] if rng.random() < 0.8 else [])):
        for test in ("permutation", "uniform"):
            if has[test] and rng.random() < 0.95:
                yield effect(rng, test, "change", place, fewer(rng, texts), 0.05, 1.0)
        if has["permutation"] and rng.random() < 0.5:
            yield effect(rng, "permutation", "largest", place, texts, 0.5, 1.0)
        if has["adversary"] and place.head is None:
            if rng.random() < 0.9:
                of = fewer(rng, texts)
                yield effect(rng, "adversary", "jsd", place, of, LN_2 / 2, LN_2)
            if rng.random() < 0.8:
                yield effect(rng, "adversary", "jsd-at-least", place, texts, LN_2 / 2, LN_2)


def of_readings(rng: np.random.Generator, texts: int):
    """How readings fare, and how they agree with other measures; two of them may be equal."""
    tied = float(pick(rng, (0.5, -0.3)))
    for name in some(rng, READINGS):
        of = fewer(rng, texts)
        yield effect(rng, "readings", "beaten", Place(), of, 0.6, 1.0, name)
        for other in ("loo", "gradient"):
            if rng.random() < 0.8:
                quantity = f"tau-{other}"
                low = {"low_end": -1.0}
                one = effect(rng, "correlation", quantity, Place(), of, 0.0, 1.0, name, **low)
                if rng.random() < 0.4:
                    one = Effect(
                        "correlation", quantity, Place(), name, tied, (tied, tied), of, 0.0
                    )
                yield one
                if rng.random() < 0.5:
                    yield effect(rng, "correlation", f"significant-{other}", Place(), of, 0.5, 1.0,
                                 name)  # fmt: skip
    if rng.random() < 0.8:
        yield effect(rng, "correlation", "tau-gradient-loo", Place(), texts, 0.0, 1.0, low_end=-1.0)


def of_heads(rng: np.random.Generator, heads: list[Place]) -> HeadsFound | None:
    if not heads or rng.random() < 0.3:
        return None
    return HeadsFound(
        of=len(heads),
        help=tuple(some(rng, heads)),
        hurt=tuple(some(rng, heads, 0, min(3, len(heads)))),
        spared=tuple(some(rng, heads)),
        tolerance=0.01,
    )


def pruning(rng: np.random.Generator, heads: list[Place]) -> Pruning | None:
    """Heads that went one after the other; of few held-out texts there are no intervals."""
    if not heads or rng.random() < 0.4:
        return None
    steps = tuple(sorted({0, len(heads), *rng.integers(0, len(heads) + 1, 3).tolist()}))
    texts = int(pick(rng, (1, 4, 12)))

    def curve(level: float) -> tuple[Mean, ...]:
        means = rng.uniform(0.0, level, len(steps))
        return tuple(Mean(m, None if texts < 5 else (m - 0.1, m + 0.1), texts) for m in means)

    def gains() -> tuple[Mean, ...]:
        return tuple(Mean(float(m), None, texts) for m in rng.uniform(-1, 1, len(steps)))

    orders = [
        PrunedOrder(
            name,
            tuple(heads),
            MeanCurve(curve(2.0), curve(1.0)),
            gains(),
            tuple((rng.random(len(steps)) < 0.5).tolist()),
        )
        for name in some(rng, ("least worth first", "least moving first"), 1)
    ]
    random = tuple(MeanCurve(curve(2.0), curve(1.0)) for _ in range(int(rng.integers(1, 4))))
    return Pruning(
        steps=steps,
        orders=tuple(orders),
        random=random,
        control=MeanCurve(curve(2.0), curve(1.0)),
        ordered_on=int(pick(rng, (1, 11))),
        texts=texts,
        held_out=texts + int(pick(rng, (0, 3))),
        forwards=300,
    )


def retrained(rng: np.random.Generator) -> tuple[Retrained, ...]:
    between = {"mean": 0.21, "low": 0.1, "high": 0.33}
    frozen = {"between_seeds": between, "free_mean": {"mean": 0.9}}
    says = "With attention frozen to uniform 71.0 % of 40 held-out texts are right.\n  more"
    return tuple(
        some(
            rng,
            (
                Retrained("frozen attention", says, pick(rng, (frozen, {"between_seeds": None}))),
                Retrained("diagnostic", "The weights help.", {}),
            ),
        )
    )


def draw(rng: np.random.Generator) -> Audit:
    """An audit by lot."""
    texts = int(pick(rng, TEXTS))
    layers, heads = places(rng) if texts else ([], [])
    effects = []
    if texts:
        effects += of_places(rng, texts, layers, heads)
        effects += of_readings(rng, texts) if rng.random() < 0.8 else []
        effects += [
            effect(rng, "heads", "loss", place, texts, 0.01, 1.0, low_end=-1.0) for place in heads
        ]
    return Audit(
        model=pick(rng, ("tiny", "org/model", "\x1b[31mmodel")),
        data="some/reviews.csv",
        texts=texts,
        failed=int(pick(rng, (0, 0, 1, 1200))),
        seed=0,
        effects=tuple(effects),
        heads=of_heads(rng, heads),
        pruning=pruning(rng, heads),
        retrained=retrained(rng) if texts else (),
        skipped={"flow": "on 1 of 9 texts: it is too long."} if rng.random() < 0.2 else {},
        notes=("there is no pruning curve",) if rng.random() < 0.2 else (),
        forwards=1234,
        backwards=int(pick(rng, (0, 56))),
        is_number=bool(rng.random() < 0.1),
    )


def speak(rng: np.random.Generator) -> None:
    """Everything that can be said of an audit."""
    audit = draw(rng)
    str(audit)
    audit.to_html()
    audit.to_csv()
    audit.to_dict()
    for name, kind in FIGURES.items():
        if kind.panels(audit):
            str(audit.figure(name))
