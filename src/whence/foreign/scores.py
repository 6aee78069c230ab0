"""Attributions of scores that another tool made: which number they explain, and how far that is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution, Cost, Error, windows_of
from whence.core.errors import InputError, SettingsError, TargetError, Unsupported
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind
from whence.foreign.importers import from_array, from_lime, from_shap, from_words
from whence.foreign.pieces import PlacedScores, numbers

# the version of a method that whence does not have
NOT_OURS = 0
# a tool's output and our target are one number if they differ by less than this times max(1, size)
SAME_OUTPUT = 1e-3
READINGS: tuple[Reading, ...] = ("logit", "probability", "log-probability")


@dataclass(frozen=True, eq=False)
class ForeignScores:
    """What the other tool gave, and what its user says about it.

    ``scores`` is a lime or shap explanation, numbers, or words with their scores. ``tokens`` or
    ``spans`` say which pieces of the text the numbers belong to, ``merge`` how the scores of the
    model's own tokens become one for a unit. ``standard_error`` is one number for each unit.
    """

    scores: Any
    method: str | None = None
    tokens: Sequence[str] | None = None
    spans: Sequence[Sequence[int]] | None = None
    merge: str = "sum"
    signed: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    standard_error: Any = None

    @property
    def names_pieces(self) -> bool:
        """Whether the user says what the pieces are, or how they are merged."""
        return self.tokens is not None or self.spans is not None or self.merge != "sum"


def attribution_of(
    model: Any,
    text: Any,
    given: ForeignScores,
    *,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
) -> Attribution:
    """An Attribution of scores that were made elsewhere; see ``Attribution.from_scores``.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> given = ForeignScores({"bad": -2, "not": 1.5}, method="by hand")
    >>> a = attribution_of(model, "not bad at all", given, target="positive")
    >>> a.top(2), a.detail["unscored_units"]
    ([('bad', -2.0), ('not', 1.5)], 2)
    """
    passage = _passage(model, text, units)
    on_units = _recognised(given, passage)
    method = given.method or on_units.method
    if not method:
        raise SettingsError(
            "say what made these scores: method='…'. "
            "It stands in the result, in tables and in figures."
        )

    started = time.perf_counter()
    labels = model.labels_of(passage)
    asked = _asked(on_units, as_target(target, read), labels)
    passage = _placed(model, passage, asked)
    asked = model.located(asked, passage)
    parts = model.windows(passage)
    logits = model.logits(parts)
    asked = model.resolve(asked, logits.mean(0), passage)

    # the scores of what was asked for, and what the tool holds that number to be
    column = _column(on_units, asked, labels)
    outside = float(on_units.outside @ column)
    output = None
    if on_units.totals is not None:
        output = float(on_units.totals @ column)

    reading_is_open = read is None and not isinstance(target, Target)
    if reading_is_open and output is not None and not model.is_regression:
        asked = _read_as(asked, logits, model.several_labels, output)
    value = value_of(asked, logits, model.several_labels)
    values = [value_of(asked, row[None], model.several_labels) for row in logits]

    notes = [
        "made elsewhere: what it cost there is not counted",
        *_notes_on_units(on_units, outside),
        *_notes_on_output(output, value, asked),
    ]
    return Attribution(
        passage=passage,
        scores=on_units.units @ column,
        target=asked,
        value=value,
        method=method,
        version=NOT_OURS,
        settings={**on_units.settings, **given.settings},
        seed=given.seed,
        signed=given.signed,
        cost=Cost(forwards=len(parts), seconds=time.perf_counter() - started),
        provenance=_provenance(model, method),
        error=Error(_spread(given.standard_error, passage), None, "; ".join(notes)),
        prediction=dict(model.prediction(logits.mean(0), passage).probabilities),
        several_labels=model.several_labels,
        says_tokens=model.says_tokens,
        detail={
            "made": "elsewhere",
            "unscored_units": on_units.unscored,
            "outside": outside,
            "output": output,
        },
        windows=windows_of([len(part.unit_spans) for part in parts], values),
    )


# ------------------------------------------------------------------------------------ the text


def _passage(model: Any, text: Any, units: UnitKind | Sequence[int]) -> Passage:
    """The text, cut into units by the model's tokenizer; a Passage stays as it is."""
    if not (hasattr(model, "encode") and hasattr(model, "logits")):
        raise InputError(
            "scores are laid on a model's units: pass whence.load(…) first, "
            f"not the {type(model).__name__} {model!r}."
        )
    if not isinstance(text, Passage):
        return model.encode(text, units=units)
    if units not in ("word", text.kind):
        raise InputError(
            f"this passage was cut into units of kind {text.kind!r}; "
            f"encode its text with units={units!r} instead."
        )
    return text


def _placed(model: Any, passage: Passage, target: Target) -> Passage:
    """The passage, to be read where the target says: at a masked unit, or at a tagged word."""
    if not model.kind.has_head:
        raise Unsupported(
            "this model has no head, so there is no number that scores could explain."
        )
    return model.placed(passage, target)


# ------------------------------------------------------------------------------------ the scores


def _recognised(given: ForeignScores, passage: Passage) -> PlacedScores:
    """The scores on our units, by the reader that their kind needs."""
    scores = given.scores
    is_lime = hasattr(scores, "domain_mapper")
    is_shap = hasattr(scores, "base_values")
    if (is_lime or is_shap) and given.names_pieces:
        raise SettingsError(
            "a lime or shap explanation knows its own pieces: leave out tokens=, spans= and merge=."
        )
    if is_lime:
        return from_lime(scores, passage)
    if is_shap:
        return from_shap(scores, passage)

    is_mapping = isinstance(scores, Mapping)
    if not is_mapping and not _are_pairs(scores):
        return from_array(
            scores, passage, tokens=given.tokens, spans=given.spans, merge=given.merge
        )
    if given.names_pieces:
        raise SettingsError(
            "words are found in the text by themselves: leave out tokens=, spans= and merge=, "
            "or give the scores as a list."
        )
    return from_words(scores.items() if is_mapping else scores, passage)


def _are_pairs(scores: Any) -> bool:
    """Whether these are words with their scores, in a list."""
    if not isinstance(scores, (list, tuple)) or not scores:
        return False
    for pair in scores:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return False
        if not isinstance(pair[0], str):
            return False
    return True


def _spread(standard_error: Any, passage: Passage) -> Float[np.ndarray, " unit"] | None:
    if standard_error is None:
        return None
    spread = numbers(standard_error, "standard errors")
    units = len(passage.unit_spans)
    if spread.shape != (units,):
        raise InputError(
            f"{spread.size} standard errors for {units} units; "
            "they cannot be merged, so give one for each unit."
        )
    if not (np.isfinite(spread) & (spread >= 0)).all():
        raise InputError(
            "a standard error is a finite number that is not negative; "
            f"these are {spread.tolist()}."
        )
    return spread


# ------------------------------------------------------------------------------------ the target


def _asked(on_units: PlacedScores, target: Target, labels: Mapping[int, str]) -> Target:
    """The target; where the caller names no label, the only one that the tool explained."""
    known = _labels_of(on_units, labels)
    if target.label is None and len(known) == 1 and known[0] is not None:
        return replace(target, label=known[0])
    return target


def _column(
    on_units: PlacedScores, target: Target, labels: Mapping[int, str]
) -> Float[np.ndarray, " column"]:
    """Weights of the tool's outputs: 1 for the target's; in a contrast, -1 for the rival's."""
    known = _labels_of(on_units, labels)
    if known == [None]:
        return np.ones(1)
    weights = np.zeros(len(known))
    for index, sign in ((target.index, 1.0), (target.against_index, -1.0)):
        if index is None:
            continue
        if index not in known:
            explained = ", ".join(str(i if name is None else name) for i, name in on_units.outputs)
            raise TargetError(
                f"{on_units.method} explained {explained}, not {labels[index]!r}. "
                "Name that as the target, or have the tool explain both."
            )
        weights[known.index(index)] = sign
    return weights


def _labels_of(on_units: PlacedScores, labels: Mapping[int, str]) -> list[int | None]:
    """The model's label of each column.

    By the tool's names, where the model knows them all (the order may differ), else by index.
    """
    by_name = [None if name is None else _label(name, labels) for _, name in on_units.outputs]
    if None not in by_name:
        return by_name
    return [index for index, _ in on_units.outputs]


def _label(name: str, labels: Mapping[int, str]) -> int | None:
    """The one label of this name, or None where there is none or several."""
    indices = _indices_of(name, labels)
    return int(indices[0]) if len(indices) == 1 else None


def _indices_of(name: str, labels: Mapping[int, str]) -> list[int]:
    index_of = getattr(labels, "index_of", None)
    if index_of:
        # a vocabulary answers without being searched
        return list(index_of(name))
    same = [i for i, label in labels.items() if label == name]
    if same:
        return same
    return [i for i, label in labels.items() if label.lower() == name.lower()]


def _read_as(
    target: Target, logits: Float[np.ndarray, "window label"], several: bool, output: float
) -> Target:
    """The reading under which the target is the tool's own output, or the target as it was."""
    candidates = [replace(target, read=read) for read in READINGS]
    away = [abs(value_of(candidate, logits, several) - output) for candidate in candidates]
    best = int(np.argmin(away))
    if away[best] <= SAME_OUTPUT * max(1.0, abs(output)):
        return candidates[best]
    return target


def value_of(
    target: Target, logits: Float[np.ndarray, "window label"], several_labels: bool = False
) -> float:
    """The target's value: the mean over windows, of which a text within the model's limit has one.

    >>> value_of(Target(1, read="probability", index=1), np.zeros((1, 2)))
    0.5
    """
    scores = logits
    if target.read not in ("logit", "margin"):
        scores = _log_probabilities(logits, several_labels)
    if target.read == "probability":
        scores = np.exp(scores)

    value = scores[:, target.index]
    if target.against_index is not None:
        value = value - scores[:, target.against_index]
    return float(value.mean())


def _log_probabilities(
    logits: Float[np.ndarray, "window label"], several_labels: bool
) -> Float[np.ndarray, "window label"]:
    """By a softmax over the labels, or, where several may hold, by a sigmoid for each."""
    if several_labels:
        return -np.logaddexp(0.0, -logits)
    top = logits.max(-1, keepdims=True)
    log_sum = top + np.log(np.exp(logits - top).sum(-1, keepdims=True))
    return logits - log_sum


# ------------------------------------------------------------------------------------ what is known


def _provenance(model: Any, method: str) -> Provenance:
    """With the tool's own version, where its name begins the method's."""
    attention = str(getattr(model.config, "_attn_implementation", "eager"))
    return Provenance.of(model, attention, method.split()[0].lower())


def _notes_on_units(on_units: PlacedScores, outside: float) -> list[str]:
    """What could not be laid on units, and which units got nothing."""
    notes = []
    if on_units.unscored:
        notes.append(
            f"{on_units.unscored} of {len(on_units.units)} units came without a score and have 0"
        )
    if outside:
        notes.append(
            f"{outside:+.3g} of the scores lies outside the units (special tokens) and is left out"
        )
    return notes


def _notes_on_output(output: float | None, value: float, target: Target) -> list[str]:
    """A warning where the tool explained another number than the one that is shown here."""
    if output is None:
        return []
    notes = []
    if abs(output - value) > SAME_OUTPUT * max(1.0, abs(output)):
        notes.append(
            f"the tool explained an output of {output:.4g}, "
            f"and here the {target.describe()} is {value:.4g}: not the same number"
        )
    return notes
