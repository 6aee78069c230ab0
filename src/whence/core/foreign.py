"""Scores from other tools, laid on a passage's units by the characters that they were given for.

Another tool cuts the text in its own way: lime at ``\\W+``, shap at its tokenizer's pieces, captum at the model's tokens. Characters are
common ground. A piece inside a unit gives it its score; several pieces add up; a piece over several units is split among them by the
characters that it has in each, white space not counted, so that the sum is kept. Nothing of lime, shap or captum is imported: their
results are known by what they carry.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import metadata
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from whence.core.attribution import Attribution, Cost, Error
from whence.core.errors import InputError, SettingsError, TargetError, Unsupported
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind

Spans = Sequence[tuple[int, int]]
NOT_OURS = 0  # the version of a method that whence does not have
SAME_OUTPUT = 1e-3  # a tool's output and our target are one number if they differ by less, beside max(1, size)
READINGS: tuple[Reading, ...] = ("logit", "probability", "log-probability")


@dataclass(frozen=True, eq=False)
class Foreign:
    """What another tool found, on our units: a column of scores for each output that it explained.

    ``outputs`` says what the tool calls each column (index, name; None where it does not tell), ``totals`` what it holds the output to be
    on the whole text. ``outside`` is the score of pieces that lie in no unit: special tokens, above all. ``unscored`` counts units that
    no piece touches; their score is 0.
    """

    units: Float[np.ndarray, "unit column"]
    outside: Float[np.ndarray, " column"]
    unscored: int = 0
    outputs: tuple[tuple[int | None, str | None], ...] = ((None, None),)
    totals: Float[np.ndarray, " column"] | None = None
    method: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------------- an attribution


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
        raise InputError(f"scores are laid on a model's units: pass whence.load(…) first, not the {type(model).__name__} {model!r}.")
    passage = text if isinstance(text, Passage) else model.encode(text, units=units)
    if isinstance(text, Passage) and units not in ("word", passage.kind):
        raise InputError(f"this passage was cut into units of kind {passage.kind!r}; encode its text with units={units!r} instead.")
    foreign = _recognised(scores, passage, tokens, spans, merge)
    name = method or foreign.method
    if not name:
        raise SettingsError("say what made these scores: method='…'. It stands in the result, in tables and in figures.")

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
        provenance=_provenance(model, name),
        error=Error(_spread(standard_error, passage), None, _note(foreign, passage, outside, total, value, asked)),
        prediction=dict(model.prediction(logits.mean(0)).probabilities),
        detail={"made": "elsewhere", "unscored_units": foreign.unscored, "outside": outside, "output": total},
    )


def _recognised(scores: Any, passage: Passage, tokens: Sequence[str] | None, spans: Any, merge: str) -> Foreign:
    given = tokens is not None or spans is not None or merge != "sum"
    if hasattr(scores, "domain_mapper") or hasattr(scores, "base_values"):
        if given:
            raise SettingsError("a lime or shap explanation knows its own pieces: leave out tokens=, spans= and merge=.")
        return from_lime(scores, passage) if hasattr(scores, "domain_mapper") else from_shap(scores, passage)
    pairs = scores.items() if isinstance(scores, Mapping) else scores if _are_pairs(scores) else None
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
    return all(isinstance(s, (list, tuple)) and len(s) == 2 and isinstance(s[0], str) for s in scores)


def _filled(model: Any, passage: Passage, target: Target) -> Passage:
    if model.task == "bare":
        raise Unsupported("this model has no head, so there is no number that scores could explain.")
    if (target.at is not None or passage.readout is not None) != (model.task == "masked"):
        raise TargetError("a masked language model is read at a unit, Target(label, at=…), and no other model is.")
    return passage if target.at is None else model.fill(passage, target.at)


# ---------------------------------------------------------------------- readers, one for each kind of result


def from_lime(explanation: Any, passage: Passage) -> Foreign:
    """What lime's ``LimeTextExplainer`` returned; every occurrence of a word gets its weight, unless lime was told ``bow=False``.

    >>> from_lime(LimeTextExplainer().explain_instance(text, predict), model.encode(text)).units    # doctest: +SKIP
    """
    indexed = getattr(explanation.domain_mapper, "indexed_string", None)
    if indexed is None:
        raise InputError(f"this lime explanation is none of a text (its domain mapper is a {type(explanation.domain_mapper).__name__}).")
    raw = indexed.raw_string()
    if raw != passage.text and not (passage.dropped and raw.startswith(passage.text)):
        raise InputError(
            f"lime explained the text {_short(raw)}, and this one is {_short(passage.text)}; pass the text that lime was given."
        )
    # lime's own string_start forgets NUL characters, as numpy's strings do
    lengths = [len(s) for s in indexed.as_list]
    starts = np.cumsum([0, *lengths])
    by_label = {int(label): dict(found) for label, found in explanation.as_map().items()}
    words = sorted({int(w) for found in by_label.values() for w in found})
    places = [[(int(starts[i]), int(starts[i] + lengths[i])) for i in np.atleast_1d(indexed.positions[w])] for w in words]
    weights = np.zeros((len(words), len(by_label)))
    for column, found in enumerate(by_label.values()):
        weights[:, column] = [found.get(w, 0.0) for w in words]
    names = explanation.class_names or ()
    output = getattr(explanation, "predict_proba", None)
    about = {"bow": bool(indexed.bow), "features": len(words), "fit": explanation.score}
    return _placed(
        passage,
        places,
        weights,
        [str(indexed.word(w)) for w in words],
        outputs=tuple((i, str(names[i]) if i < len(names) else None) for i in by_label),
        totals=None if output is None else np.array([output[i] for i in by_label], dtype=np.float64),
        method="lime (package)",
        settings={k: v.item() if isinstance(v, np.generic) else v for k, v in about.items()},
    )


def from_shap(explanation: Any, passage: Passage) -> Foreign:
    """What a shap explainer of text returned for one text: ``explanation[0]``, or a column of it, ``explanation[0, :, "positive"]``.

    >>> from_shap(shap.Explainer(predict, shap.maskers.Text(r"\\\\W+"))([text])[0], model.encode(text)).units    # doctest: +SKIP
    """
    values, pieces, base = explanation.values, explanation.data, explanation.base_values
    pieces = [] if pieces is None else list(pieces)
    if pieces and not isinstance(pieces[0], str) and np.ndim(pieces[0]):
        if len(pieces) > 1:
            raise InputError(f"this shap explanation holds {len(pieces)} texts; pass one of them, as in explanation[0].")
        values, pieces, base = values[0], list(pieces[0]), None if base is None else base[0]
    if not pieces or not all(isinstance(p, str) for p in pieces):
        raise InputError("this shap explanation is none of a text: its data are no pieces of text. Pass its values, with spans=.")
    table = _numbers(values, "shap values")
    if table.ndim > 2 or len(table) != len(pieces):
        raise InputError(f"{' × '.join(map(str, table.shape))} shap values for {len(pieces)} pieces of text.")
    names = explanation.output_names
    if table.ndim == 1:
        outputs: tuple[tuple[int | None, str | None], ...] = ((None, str(names) if isinstance(names, str) else None),)
        table = table[:, None]
    else:
        known = names if names is not None and len(names) == table.shape[1] else [None] * table.shape[1]
        outputs = tuple((i, None if name is None else str(name)) for i, name in enumerate(known))
    base = None if base is None else np.broadcast_to(np.asarray(base, dtype=np.float64), (len(outputs),))
    places = [[span] for span in _aligned([str(p) for p in pieces], passage)]
    return _placed(
        passage,
        places,
        table,
        [str(p) for p in pieces],
        outputs=outputs,
        totals=None if base is None else base + table.sum(0),  # efficiency: base value and scores add up to the output
        method="shap (package)",
        settings={"pieces": len(pieces)},
    )


def from_array(scores: Any, passage: Passage, *, tokens: Sequence[str] | None = None, spans: Any = None, merge: str = "sum") -> Foreign:
    """Numbers in a list, an array or a tensor: one for each unit, token, or piece that ``tokens`` or ``spans`` name.

    captum's shapes are understood: "1 token", and "1 token dim", which is summed over the dimensions of the embedding.

    >>> p = Passage.from_tokens("so good", [101, 7, 8, 9, 102], ["[CLS]", "so", "go", "##od", "[SEP]"],
    ...                         [(0, 0), (0, 2), (3, 5), (5, 7), (0, 0)], [-1, 0, 0, 0, -1])
    >>> from_array([9, 1, 2, 3, 9], p).units[:, 0].tolist()
    [1.0, 5.0]
    >>> from_array([1, 2], p, tokens=["so ", "good"]).units[:, 0].tolist()
    [1.0, 2.0]
    """
    if tokens is not None and spans is not None:
        raise SettingsError("pieces are named by tokens= or by spans=, not by both.")
    d, content = len(passage.unit_spans), passage.unit_of >= 0
    pieces = tokens if tokens is not None else spans
    wanted = {len(pieces)} if pieces is not None else {d, len(passage), int(content.sum())}
    row = _one_row(_numbers(scores, "scores"), wanted)
    if pieces is not None and len(row) != len(pieces):
        raise InputError(f"{len(row)} scores for {len(pieces)} {'tokens' if tokens is not None else 'spans'}.")
    own = tuple(t for t, inside in zip(passage.tokens, content, strict=True) if inside)
    if tokens is not None and tuple(tokens) not in (passage.tokens, own):
        pieces = list(tokens)
        places = [[span] for span in _aligned(pieces, passage)]
    elif spans is not None:
        places = [[span] for span in _checked(spans, passage)]
        pieces = [str(s) for s in spans]
    elif len(row) in wanted:
        return _of_tokens(row, passage, content, merge, of_units=tokens is None and len(row) == d)
    else:
        raise InputError(
            f"{len(row)} scores for {d} units ({content.sum()} tokens, {len(passage)} with the special ones). "
            "Give one for each, or say what they are scores of: tokens=[…] or spans=[(start, end), …]."
        )
    _only_sums(merge)
    return _placed(passage, places, row[:, None], pieces)


def from_words(pairs: Iterable[Any], passage: Passage) -> Foreign:
    """A bag of words, as of lime's ``as_list()``: each unit in which a word occurs gets its score.

    >>> p = Passage.from_tokens("not good, not bad", range(5), ["not", "good", ",", "not", "bad"],
    ...                         [(0, 3), (4, 8), (8, 9), (10, 13), (14, 17)], [0] * 5)
    >>> from_words({"not": 2, "bad": -1}.items(), p).units[:, 0].tolist()
    [2.0, 0.0, 0.0, 2.0, -1.0]
    """
    text, _ = _characters(passage)
    found: dict[str, float] = {}
    for pair in pairs:
        if not isinstance(pair[0], str):
            raise InputError(f"scores by name are scores of words; {pair[0]!r} is a {type(pair[0]).__name__}.")
        word = pair[0].strip()
        if word in found:
            raise InputError(
                f"the word {word!r} has two scores, and nothing says which occurrence each is of. "
                "Give the words in reading order as tokens=[…], or their characters as spans=[(start, end), …]."
            )
        found[word] = pair[1]
    if not found:
        raise InputError("no word has a score.")
    named: dict[str, list[tuple[int, int]]] = {}
    for a, b in _unit_places(passage):
        named.setdefault(text[a:b].strip(), []).append((a, b))
    places = []
    for word in found:
        # a unit by its name too: in scripts without spaces a word is a part of a longer run
        spans = [*named.get(word, ()), *((i, i + len(word)) for i in _occurrences(word, text))]
        if not word or not spans:
            close = get_close_matches(word.lower(), by_lower := {n.lower(): n for n in passage.names}, n=1)
            hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
            raise InputError(f"the word {word!r} does not occur in the text {_short(text)}.{hint}")
        places.append(spans)
    return _placed(passage, places, _numbers(list(found.values()), "scores")[:, None], list(found))


# ---------------------------------------------------------------------- from pieces to units


def _placed(
    passage: Passage, places: Sequence[Spans], scores: Float[np.ndarray, "piece column"], names: Sequence[str], **more: Any
) -> Foreign:
    """Lay pieces on units. A piece with several places (a word that occurs twice) counts at each, but once in a unit."""
    bad = np.flatnonzero(~np.isfinite(scores).all(1))
    if len(bad):
        i = int(bad[0])
        raise InputError(f"score {i} of {len(scores)} (of {names[i]!r}) is not finite: {scores[i].tolist()}.")
    piece, unit, share = _shares(places, passage)
    units = np.zeros((len(passage.unit_spans), scores.shape[1]))
    np.add.at(units, unit, share[:, None] * scores[piece])
    nowhere = np.setdiff1d(np.arange(len(scores)), piece)
    return Foreign(units, scores[nowhere].sum(0), len(units) - len(np.unique(unit)), **more)


def _shares(
    places: Sequence[Spans], passage: Passage
) -> tuple[Int[np.ndarray, " share"], Int[np.ndarray, " share"], Float[np.ndarray, " share"]]:
    """Piece, unit, and how much of the piece lies in the unit: by characters, of which white space counts only where there is no other."""
    text, owner = _characters(passage)
    d = len(passage.unit_spans)
    piece_of = np.repeat(np.arange(len(places)), [len(spans) for spans in places])
    ends = np.array([span for spans in places for span in spans], dtype=np.int64).reshape(-1, 2).clip(0, len(text))
    size = ends[:, 1] - ends[:, 0]
    span = np.repeat(np.arange(len(ends)), size)
    character = np.arange(len(span)) + np.repeat(ends[:, 0] - np.cumsum(size) + size, size)
    inside = owner[character] >= 0
    seen = inside & ~np.array([c.isspace() for c in text], dtype=bool)[character]
    counted = np.where(np.bincount(span, seen, minlength=len(ends))[span] > 0, seen, inside)
    keys, counts = np.unique(span[counted] * d + owner[character[counted]], return_counts=True)
    share = counts / np.bincount(span[counted], minlength=len(ends))[keys // d]
    # a word that a unit has twice is one feature, there or not
    keys, at = np.unique(piece_of[keys // d] * d + keys % d, return_inverse=True)
    largest = np.zeros(len(keys))
    np.maximum.at(largest, at, share)
    return keys // d, keys % d, largest


def _of_tokens(row: Float[np.ndarray, " score"], passage: Passage, content: np.ndarray, merge: str, of_units: bool) -> Foreign:
    """One score a unit, or a token, with or without the special ones. The counts cannot be confused: a unit has at least one token."""
    bad = np.flatnonzero(~np.isfinite(row))
    if len(bad):
        raise InputError(f"score {bad[0]} of {len(row)} is not finite: {row[bad[0]]}.")
    if of_units:
        _only_sums(merge)
        return Foreign(row[:, None], np.zeros(1))
    every = row
    if len(row) != len(passage):
        every = np.zeros(len(passage))
        every[content] = row
    return Foreign(passage.merge(every, merge)[:, None], np.array([every[~content].sum()]))


def _only_sums(merge: str) -> None:
    if merge != "sum":
        raise SettingsError(f"merge={merge!r} is a rule for the model's own tokens; scores of units and of other pieces are summed.")


def _characters(passage: Passage) -> tuple[str, Int[np.ndarray, " character"]]:
    """The text (its pair on a new line) and the unit of each character, -1 for none."""
    if not passage.text:
        raise InputError("this passage is an image: give one score for each of its patches.")
    text = passage.text if passage.pair is None else f"{passage.text}\n{passage.pair}"
    owner = np.full(len(text), -1, dtype=np.int64)
    texts = [u for u, pictured in enumerate(passage.pictured) if not pictured]
    for u, (a, b) in zip(texts, _unit_places(passage), strict=True):
        owner[a:b] = u
    return text, owner


def _unit_places(passage: Passage) -> list[tuple[int, int]]:
    second = len(passage.text) + 1
    spans = zip(passage.unit_spans, passage.pictured, strict=True)
    return [(part * second + a, part * second + b) for (part, a, b), pictured in spans if not pictured]


def _checked(spans: Sequence[Sequence[int]], passage: Passage) -> list[tuple[int, int]]:
    """(start, end) in the text, or (part, start, end) in a pair, as places in the two together."""
    _characters(passage)
    lengths = [len(passage.text), *([] if passage.pair is None else [len(passage.pair)])]
    found = []
    for span in spans:
        part, a, b = span if len(span) == 3 else (0, *span) if len(span) == 2 else (-1, 0, 0)
        if not (0 <= part < len(lengths) and 0 <= a <= b <= lengths[part]):
            ends = " and ".join(map(str, lengths))
            raise InputError(
                f"the span {tuple(span)} is none of this text: (start, end), of a pair (part, start, end), with {ends} characters."
            )
        found.append((int(part * (lengths[0] + 1) + a), int(part * (lengths[0] + 1) + b)))
    return found


def _aligned(tokens: Sequence[str], passage: Passage) -> list[tuple[int, int]]:
    """Where pieces in reading order stand: one behind the other if they make up the text, else each at the next place where it fits."""
    text, _ = _characters(passage)
    whole = "".join(tokens)
    start = text.find(whole)
    if whole.strip() and start >= 0:
        ends = [start, *(start + np.cumsum([len(t) for t in tokens])).tolist()]
        return list(pairwise(ends))
    special = {t for t, is_special in zip(passage.tokens, passage.special, strict=True) if is_special}
    found, here = [], 0
    for i, token in enumerate(tokens):
        piece = token.strip()
        behind = next(i for i in range(here, len(text) + 1) if not text[i : i + 1].isspace())
        start = behind if text.startswith(piece, behind) else next(_occurrences(piece, text, here), None)
        if start is None and piece not in special:
            raise InputError(
                f"token {i}, {token!r}, is not found in the text behind character {here} ({_short(text[here:])}). Give the tokens as the "
                "model has them (model.encode(text).tokens), as they stand in the text, or by their characters: spans=[(start, end), …]."
            )
        if start is None or not piece:
            found.append((here, here))
        else:
            here = start + len(piece)
            found.append((start, here))
    return found


def _occurrences(word: str, text: str, start: int = 0) -> Iterator[int]:
    """Where a word begins that is no part of a longer one."""
    at = text.find(word, start) if word else -1
    while at >= 0:
        end = at + len(word)
        joined_left = at > 0 and _in_word(text[at - 1]) and _in_word(word[0])
        joined_right = end < len(text) and (unicodedata.category(text[end])[0] == "M" or (_in_word(word[-1]) and _in_word(text[end])))
        if not joined_left and not joined_right:
            yield at
        at = text.find(word, at + 1)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


# ---------------------------------------------------------------------- numbers in


def _numbers(scores: Any, what: str) -> np.ndarray:
    """A list, an array, a tensor, or the tuple of one tensor that captum gives, as numbers of double precision."""
    tensor: Any = scores[0] if isinstance(scores, (list, tuple)) and len(scores) == 1 else scores
    if hasattr(tensor, "detach") and tensor.ndim:
        scores = tensor.detach().cpu().double().numpy()  # double first: numpy has no bfloat16
    try:
        return np.array(scores, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(f"the {what} are not numbers, one for each piece: {str(problem).rstrip('.')}.") from problem


def _one_row(scores: np.ndarray, wanted: set[int]) -> Float[np.ndarray, " score"]:
    shape = " × ".join(map(str, scores.shape)) or "a single number"
    if scores.ndim > 1 and scores.shape[0] == 1 and (scores.ndim == 3 or scores.shape[1] in wanted):
        scores = scores[0]
    if scores.ndim == 2 and scores.shape[0] in wanted:
        scores = scores.sum(-1)
    if scores.ndim != 1:
        counts = " or ".join(map(str, sorted(wanted)))
        raise InputError(
            f"scores are {counts} numbers, or as captum gives them for one text, 1 × {counts} (× dimensions); these are {shape}."
        )
    return scores


def _spread(standard_error: Any, passage: Passage) -> Float[np.ndarray, " unit"] | None:
    if standard_error is None:
        return None
    spread = _numbers(standard_error, "standard errors")
    if spread.shape != (len(passage.unit_spans),):
        raise InputError(
            f"{spread.size} standard errors for {len(passage.unit_spans)} units; they cannot be merged, so give one for each unit."
        )
    if not (np.isfinite(spread) & (spread >= 0)).all():
        raise InputError(f"a standard error is a finite number that is not negative; these are {spread.tolist()}.")
    return spread


# ---------------------------------------------------------------------- which number the scores explain


def _asked(foreign: Foreign, target: Any, read: Reading | None, labels: Mapping[int, str]) -> tuple[Target, bool]:
    """The target, and whether its reading is still to be found: what the caller left open is taken from the tool, if it tells."""
    asked = as_target(target, read)
    known = _labels_of(foreign, labels)
    if asked.label is None and len(known) == 1 and known[0] is not None:
        asked = replace(asked, label=known[0])
    return asked, read is None and not isinstance(target, Target)


def _column(foreign: Foreign, target: Target, labels: Mapping[int, str]) -> Float[np.ndarray, " column"]:
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
        else [i for i, n in labels.items() if n == name] or [i for i, n in labels.items() if n.lower() == name.lower()]
    )
    return int(found[0]) if len(found) == 1 else None


def _read_as(target: Target, logits: Float[np.ndarray, "window label"], several: bool, total: float) -> Target:
    """The reading under which the target is the tool's own output, or the target as it was."""
    candidates = [replace(target, read=read) for read in READINGS]
    away = [abs(value_of(t, logits, several) - total) for t in candidates]
    best = int(np.argmin(away))
    return candidates[best] if away[best] <= SAME_OUTPUT * max(1.0, abs(total)) else target


def value_of(target: Target, logits: Float[np.ndarray, "window label"], several_labels: bool = False) -> float:
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
    return float((value if target.against_index is None else value - scores[:, target.against_index]).mean())


# ---------------------------------------------------------------------- what is said of it


def _note(foreign: Foreign, passage: Passage, outside: float, total: float | None, value: float, target: Target) -> str:
    notes = ["made elsewhere: what it cost there is not counted"]
    if foreign.unscored:
        notes.append(f"{foreign.unscored} of {len(passage.unit_spans)} units came without a score and have 0")
    if outside:
        notes.append(f"{outside:+.3g} of the scores lies outside the units (special tokens) and is left out")
    if total is not None and abs(total - value) > SAME_OUTPUT * max(1.0, abs(total)):
        notes.append(f"the tool explained an output of {total:.4g}, and here the {target.describe()} is {value:.4g}: not the same number")
    return "; ".join(notes)


def _provenance(model: Any, method: str) -> Provenance:
    """The model that the scores are laid on, and the tool's version where its name begins the method's."""
    from whence import __version__

    versions = {"whence": __version__}
    for package in ("torch", "transformers", method.split()[0].lower()):
        try:
            versions[package] = metadata.version(package)
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return Provenance(
        model=model.name,
        architecture=type(model.hf).__name__,
        fingerprint=model.fingerprint,
        revision=model.revision,
        dtype=str(model.dtype).removeprefix("torch."),
        device=str(model.device),
        attention=str(getattr(model.config, "_attn_implementation", "eager")),
        versions=versions,
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
