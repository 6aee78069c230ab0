"""Attributions of scores that another tool made: which number they explain, and what is known of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution, Cost, Error
from whence.core.errors import InputError, SettingsError, TargetError, Unsupported
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind
from whence.foreign.importers import from_array, from_lime, from_shap, from_words
from whence.foreign.pieces import Foreign, numbers

NOT_OURS = 0  # the version of a method that whence does not have
SAME_OUTPUT = 1e-3  # a tool's output and our target are one number if they differ by less, beside max(1, size)
READINGS: tuple[Reading, ...] = ("logit", "probability", "log-probability")


def attribution_of(
    model: Any,
    text: Any,
    scores: Any,
    *,
    method: str | None = None,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    tokens: Sequence[str] | None = None,
    spans: Sequence[Sequence[int]] | None = None,
    merge: str = "sum",
    signed: bool = True,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    standard_error: Any = None,
) -> Attribution:
    """An Attribution of scores that were made elsewhere; ``Attribution.from_scores`` tells the whole story.

    >>> import whence
    >>> a = attribution_of(whence.load("sentiment"), "not bad at all", {"bad": -2, "not": 1.5}, method="by hand", target="positive")
    >>> a.top(2), a.detail["unscored_units"]
    ([('bad', -2.0), ('not', 1.5)], 2)
    """
    if not (hasattr(model, "encode") and hasattr(model, "logits")):
        raise InputError(
            f"scores are laid on a model's units: pass whence.load(…) first, not the {type(model).__name__} {model!r}."
        )
    passage = text if isinstance(text, Passage) else model.encode(text, units=units)
    if isinstance(text, Passage) and units not in ("word", passage.kind):
        raise InputError(
            f"this passage was cut into units of kind {passage.kind!r}; encode its text with units={units!r} instead."
        )
    foreign = _recognised(scores, passage, tokens, spans, merge)
    name = method or foreign.method
    if not name:
        raise SettingsError(
            "say what made these scores: method='…'. It stands in the result, in tables and in figures."
        )

    started = time.perf_counter()
    asked, may_choose = _asked(foreign, target, read, model.labels)
    passage = _filled(model, passage, asked)
    parts = model.windows(passage)
    logits = model.logits(parts)
    asked = model.resolve(asked, logits.mean(0))
    column = _column(foreign, asked, model.labels)
    total = None if foreign.totals is None else float(foreign.totals @ column)
    if may_choose and total is not None and not model.is_regression:
        asked = _read_as(asked, logits, model.several_labels, total)
    value = value_of(asked, logits, model.several_labels)
    outside = float(foreign.outside @ column)
    return Attribution(
        passage=passage,
        scores=foreign.units @ column,
        target=asked,
        value=value,
        method=name,
        version=NOT_OURS,
        settings={**foreign.settings, **(settings or {})},
        seed=seed,
        signed=signed,
        cost=Cost(forwards=len(parts), seconds=time.perf_counter() - started),
        # the tool's own version, where its name begins the method's
        provenance=Provenance.of(
            model,
            str(getattr(model.config, "_attn_implementation", "eager")),
            name.split()[0].lower(),
        ),
        error=Error(
            _spread(standard_error, passage),
            None,
            _note(foreign, passage, outside, total, value, asked),
        ),
        prediction=dict(model.prediction(logits.mean(0)).probabilities),
        detail={
            "made": "elsewhere",
            "unscored_units": foreign.unscored,
            "outside": outside,
            "output": total,
        },
    )


def _recognised(
    scores: Any, passage: Passage, tokens: Sequence[str] | None, spans: Any, merge: str
) -> Foreign:
    given = tokens is not None or spans is not None or merge != "sum"
    if hasattr(scores, "domain_mapper") or hasattr(scores, "base_values"):
        if given:
            raise SettingsError(
                "a lime or shap explanation knows its own pieces: leave out tokens=, spans= and merge=."
            )
        return (
            from_lime(scores, passage)
            if hasattr(scores, "domain_mapper")
            else from_shap(scores, passage)
        )
    pairs = (
        scores.items() if isinstance(scores, Mapping) else scores if _are_pairs(scores) else None
    )
    if pairs is None:
        return from_array(scores, passage, tokens=tokens, spans=spans, merge=merge)
    if given:
        raise SettingsError(
            "words are found in the text by themselves: leave out tokens=, spans= and merge=, or give the scores as a list."
        )
    return from_words(pairs, passage)


def _are_pairs(scores: Any) -> bool:
    if not isinstance(scores, (list, tuple)) or not scores:
        return False
    return all(
        isinstance(s, (list, tuple)) and len(s) == 2 and isinstance(s[0], str) for s in scores
    )


def _filled(model: Any, passage: Passage, target: Target) -> Passage:
    if not model.kind.has_head:
        raise Unsupported(
            "this model has no head, so there is no number that scores could explain."
        )
    if (target.at is not None or passage.readout is not None) != model.kind.fills_a_mask:
        raise TargetError(
            "a masked language model is read at a unit, Target(label, at=…), and no other model is."
        )
    return passage if target.at is None else model.fill(passage, target.at)


def _spread(standard_error: Any, passage: Passage) -> Float[np.ndarray, " unit"] | None:
    if standard_error is None:
        return None
    spread = numbers(standard_error, "standard errors")
    if spread.shape != (len(passage.unit_spans),):
        raise InputError(
            f"{spread.size} standard errors for {len(passage.unit_spans)} units; they cannot be merged, so give one for each unit."
        )
    if not (np.isfinite(spread) & (spread >= 0)).all():
        raise InputError(
            f"a standard error is a finite number that is not negative; these are {spread.tolist()}."
        )
    return spread


def _asked(
    foreign: Foreign, target: Any, read: Reading | None, labels: Mapping[int, str]
) -> tuple[Target, bool]:
    """The target, and whether its reading is still to be found: what the caller left open is taken from the tool, if it tells."""
    asked = as_target(target, read)
    known = _labels_of(foreign, labels)
    if asked.label is None and len(known) == 1 and known[0] is not None:
        asked = replace(asked, label=known[0])
    return asked, read is None and not isinstance(target, Target)


def _column(
    foreign: Foreign, target: Target, labels: Mapping[int, str]
) -> Float[np.ndarray, " column"]:
    """Weights of the tool's outputs: 1 for the target's; in a contrast, -1 for the rival's."""
    known = _labels_of(foreign, labels)
    if known == [None]:
        return np.ones(1)
    weights = np.zeros(len(known))
    for index, sign in ((target.index, 1.0), (target.against_index, -1.0)):
        if index is None:
            continue
        if index not in known:
            has = ", ".join(str(n if n is not None else i) for i, n in foreign.outputs)
            raise TargetError(
                f"{foreign.method} explained {has}, not {labels[index]!r}. Name that as the target, or have the tool explain both."
            )
        weights[known.index(index)] = sign
    return weights


def _labels_of(foreign: Foreign, labels: Mapping[int, str]) -> list[int | None]:
    """The model's label of each column: by the tool's names where the model knows them all (the order may differ), else by index."""
    by_name = [None if name is None else _label(name, labels) for _, name in foreign.outputs]
    return by_name if None not in by_name else [index for index, _ in foreign.outputs]


def _label(name: str, labels: Mapping[int, str]) -> int | None:
    index_of = getattr(labels, "index_of", None)  # a vocabulary answers without being searched
    found = (
        list(index_of(name))
        if index_of
        else [i for i, n in labels.items() if n == name]
        or [i for i, n in labels.items() if n.lower() == name.lower()]
    )
    return int(found[0]) if len(found) == 1 else None


def _read_as(
    target: Target, logits: Float[np.ndarray, "window label"], several: bool, total: float
) -> Target:
    """The reading under which the target is the tool's own output, or the target as it was."""
    candidates = [replace(target, read=read) for read in READINGS]
    away = [abs(value_of(t, logits, several) - total) for t in candidates]
    best = int(np.argmin(away))
    return candidates[best] if away[best] <= SAME_OUTPUT * max(1.0, abs(total)) else target


def value_of(
    target: Target, logits: Float[np.ndarray, "window label"], several_labels: bool = False
) -> float:
    """The target's value: the mean over windows, of which a text within the model's limit has one.

    >>> value_of(Target(1, read="probability", index=1), np.zeros((1, 2)))
    0.5
    """
    if target.read in ("logit", "margin"):
        scores = logits
    else:
        top = logits.max(-1, keepdims=True)
        log_sum = top + np.log(np.exp(logits - top).sum(-1, keepdims=True))
        scores = -np.logaddexp(0.0, -logits) if several_labels else logits - log_sum
        scores = np.exp(scores) if target.read == "probability" else scores
    value = scores[:, target.index]
    return float(
        (value if target.against_index is None else value - scores[:, target.against_index]).mean()
    )


def _note(
    foreign: Foreign,
    passage: Passage,
    outside: float,
    total: float | None,
    value: float,
    target: Target,
) -> str:
    notes = ["made elsewhere: what it cost there is not counted"]
    if foreign.unscored:
        notes.append(
            f"{foreign.unscored} of {len(passage.unit_spans)} units came without a score and have 0"
        )
    if outside:
        notes.append(
            f"{outside:+.3g} of the scores lies outside the units (special tokens) and is left out"
        )
    if total is not None and abs(total - value) > SAME_OUTPUT * max(1.0, abs(total)):
        notes.append(
            f"the tool explained an output of {total:.4g}, and here the {target.describe()} is {value:.4g}: not the same number"
        )
    return "; ".join(notes)
