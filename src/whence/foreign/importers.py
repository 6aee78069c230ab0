"""Readers of other tools' results, one for each kind.

lime's, shap's, arrays (captum's among them), and words with scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.errors import InputError, SettingsError
from whence.core.passage import Passage
from whence.foreign.pieces import (
    PlacedScores,
    aligned,
    characters,
    checked,
    numbers,
    occurrences,
    of_tokens,
    of_units,
    one_row,
    only_sums,
    placed,
    short,
    unit_places,
)

Outputs = tuple[tuple[int | None, str | None], ...]

# ------------------------------------------------------------------------------------ lime


def from_lime(explanation: Any, passage: Passage) -> PlacedScores:
    """What lime's ``LimeTextExplainer`` returned.

    Every occurrence of a word gets the word's weight, unless lime was told ``bow=False`` (no bag of
    words): then each occurrence has its own.

    >>> explanation = LimeTextExplainer().explain_instance(text, predict)    # doctest: +SKIP
    >>> from_lime(explanation, model.encode(text)).units                     # doctest: +SKIP
    """
    indexed = _indexed_string(explanation, passage)
    weights_by_label: dict[int, dict[int, float]] = {}
    for label, weights in explanation.as_map().items():
        weights_by_label[int(label)] = dict(weights)

    words = sorted({int(w) for weights in weights_by_label.values() for w in weights})
    table = np.zeros((len(words), len(weights_by_label)))
    for column, weights in enumerate(weights_by_label.values()):
        table[:, column] = [weights.get(w, 0.0) for w in words]

    names = [str(indexed.word(w)) for w in words]
    settings = {"bow": bool(indexed.bow), "features": len(words), "fit": explanation.score}
    return replace(
        placed(passage, _places_of_words(indexed, words), table, names),
        outputs=_outputs_of_lime(explanation, list(weights_by_label)),
        totals=_totals_of_lime(explanation, list(weights_by_label)),
        method="lime (package)",
        settings=_plain(settings),
    )


def _indexed_string(explanation: Any, passage: Passage) -> Any:
    """lime's own cut of the text, if it is this text that lime explained."""
    indexed = getattr(explanation.domain_mapper, "indexed_string", None)
    if indexed is None:
        mapper = type(explanation.domain_mapper).__name__
        raise InputError(
            f"this lime explanation is none of a text (its domain mapper is a {mapper})."
        )

    explained = indexed.raw_string()
    is_cut = passage.dropped and explained.startswith(passage.text)
    if explained != passage.text and not is_cut:
        raise InputError(
            f"lime explained the text {short(explained)}, and this one is {short(passage.text)}; "
            "pass the text that lime was given."
        )
    return indexed


def _places_of_words(indexed: Any, words: Sequence[int]) -> list[list[tuple[int, int]]]:
    """The characters of each word, at each of its occurrences."""
    # counted here, as lime's own string_start forgets NUL characters (numpy's strings do)
    lengths = [len(piece) for piece in indexed.as_list]
    ends = np.cumsum(lengths)
    starts = ends - lengths

    places = []
    for word in words:
        occurrences_of_word = np.atleast_1d(indexed.positions[word])
        places.append([(int(starts[i]), int(ends[i])) for i in occurrences_of_word])
    return places


def _outputs_of_lime(explanation: Any, labels: Sequence[int]) -> Outputs:
    names = explanation.class_names or ()
    return tuple((i, str(names[i]) if i < len(names) else None) for i in labels)


def _totals_of_lime(explanation: Any, labels: Sequence[int]) -> Float[np.ndarray, " column"] | None:
    probabilities = getattr(explanation, "predict_proba", None)
    if probabilities is None:
        return None
    return np.array([probabilities[i] for i in labels], dtype=np.float64)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """numpy's numbers as Python's, for JSON."""
    plain = {}
    for name, value in settings.items():
        plain[name] = value.item() if isinstance(value, np.generic) else value
    return plain


# ------------------------------------------------------------------------------------ shap


def from_shap(explanation: Any, passage: Passage) -> PlacedScores:
    """What a shap explainer of text returned for one text.

    That is ``explanation[0]``, or a column of it, ``explanation[0, :, "positive"]``.

    >>> explainer = shap.Explainer(predict, shap.maskers.Text(r"\\\\W+"))    # doctest: +SKIP
    >>> from_shap(explainer([text])[0], model.encode(text)).units          # doctest: +SKIP
    """
    values, pieces, base = _one_text(explanation)
    table = numbers(values, "shap values")
    if table.ndim > 2 or len(table) != len(pieces):
        shape = " × ".join(map(str, table.shape))
        raise InputError(f"{shape} shap values for {len(pieces)} pieces of text.")

    outputs = _outputs_of_shap(explanation.output_names, table)
    if table.ndim == 1:
        table = table[:, None]

    totals = None
    if base is not None:
        # efficiency, a property of Shapley values: base value and scores add up to the output
        base = np.broadcast_to(np.asarray(base, dtype=np.float64), (len(outputs),))
        totals = base + table.sum(0)

    places = [[span] for span in aligned(pieces, passage)]
    return replace(
        placed(passage, places, table, pieces),
        outputs=outputs,
        totals=totals,
        method="shap (package)",
        settings={"pieces": len(pieces)},
    )


def _one_text(explanation: Any) -> tuple[Any, list[str], Any]:
    """Values, pieces of text and base values of the one text that the explanation holds."""
    values, base = explanation.values, explanation.base_values
    pieces = [] if explanation.data is None else list(explanation.data)

    is_batch = bool(pieces) and not isinstance(pieces[0], str) and np.ndim(pieces[0]) > 0
    if is_batch and len(pieces) > 1:
        raise InputError(
            f"this shap explanation holds {len(pieces)} texts; "
            "pass one of them, as in explanation[0]."
        )
    if is_batch:
        values, pieces = values[0], list(pieces[0])
        base = None if base is None else base[0]

    if not pieces or not all(isinstance(p, str) for p in pieces):
        raise InputError(
            "this shap explanation is none of a text: its data are no pieces of text. "
            "Pass its values, with spans=."
        )
    return values, [str(p) for p in pieces], base


def _outputs_of_shap(names: Any, table: np.ndarray) -> Outputs:
    """Index and name of each column, as far as shap tells them."""
    if table.ndim == 1:
        return ((None, str(names) if isinstance(names, str) else None),)

    columns = table.shape[1]
    if names is None or len(names) != columns:
        return tuple((i, None) for i in range(columns))
    return tuple((i, None if name is None else str(name)) for i, name in enumerate(names))


# ------------------------------------------------------------------------------------ arrays


def from_array(
    scores: Any,
    passage: Passage,
    *,
    tokens: Sequence[str] | None = None,
    spans: Any = None,
    merge: str = "sum",
) -> PlacedScores:
    """Numbers in a list, an array or a tensor: one for each unit, token or piece.

    ``tokens`` or ``spans`` say what the pieces are. captum's shapes are understood: "1 token", and
    "1 token dim", which is summed over the dimensions of the embedding.

    >>> p = Passage.from_tokens(
    ...     "so good", [101, 7, 8, 9, 102], ["[CLS]", "so", "go", "##od", "[SEP]"],
    ...     [(0, 0), (0, 2), (3, 5), (5, 7), (0, 0)], [-1, 0, 0, 0, -1])
    >>> from_array([9, 1, 2, 3, 9], p).units[:, 0].tolist()
    [1.0, 5.0]
    >>> from_array([1, 2], p, tokens=["so ", "good"]).units[:, 0].tolist()
    [1.0, 2.0]
    """
    if tokens is not None and spans is not None:
        raise SettingsError("pieces are named by tokens= or by spans=, not by both.")
    if spans is not None:
        row = _row_of_pieces(scores, len(spans), "spans")
        places = [[span] for span in checked(spans, passage)]
        only_sums(merge)
        return placed(passage, places, row[:, None], [str(span) for span in spans])
    if tokens is not None:
        row = _row_of_pieces(scores, len(tokens), "tokens")
        if tuple(tokens) in (passage.tokens, _content_tokens(passage)):
            return of_tokens(row, passage, merge)
        places = [[span] for span in aligned(list(tokens), passage)]
        only_sums(merge)
        return placed(passage, places, row[:, None], tokens)
    return _of_units_or_tokens(scores, passage, merge)


def _row_of_pieces(scores: Any, count: int, name: str) -> Float[np.ndarray, " piece"]:
    row = one_row(numbers(scores, "scores"), {count})
    if len(row) != count:
        raise InputError(f"{len(row)} scores for {count} {name}.")
    return row


def _content_tokens(passage: Passage) -> tuple[str, ...]:
    """The model's tokens without the special ones."""
    content = passage.unit_of >= 0
    return tuple(t for t, inside in zip(passage.tokens, content, strict=True) if inside)


def _of_units_or_tokens(scores: Any, passage: Passage, merge: str) -> PlacedScores:
    """Scores that nothing says more about: their number tells what they are scores of."""
    units = len(passage.unit_spans)
    content_tokens = int((passage.unit_of >= 0).sum())
    every_token = len(passage)

    row = one_row(numbers(scores, "scores"), {units, content_tokens, every_token})
    if len(row) == units:
        only_sums(merge)
        return of_units(row)
    if len(row) in (content_tokens, every_token):
        return of_tokens(row, passage, merge)
    raise InputError(
        f"{len(row)} scores for {units} units "
        f"({content_tokens} tokens, {every_token} with the special ones). "
        "Give one for each, or say what they are scores of: "
        "tokens=[…] or spans=[(start, end), …]."
    )


# ------------------------------------------------------------------------------------ words


def from_words(pairs: Iterable[Any], passage: Passage) -> PlacedScores:
    """A bag of words, as of lime's ``as_list()``: each unit in which a word occurs gets its score.

    >>> p = Passage.from_tokens(
    ...     "not good, not bad", range(5), ["not", "good", ",", "not", "bad"],
    ...     [(0, 3), (4, 8), (8, 9), (10, 13), (14, 17)], [0] * 5)
    >>> from_words({"not": 2, "bad": -1}.items(), p).units[:, 0].tolist()
    [2.0, 0.0, 0.0, 2.0, -1.0]
    """
    text, _ = characters(passage)
    score_of = _score_of_words(pairs)

    units_by_name: dict[str, list[tuple[int, int]]] = {}
    for start, end in unit_places(passage):
        units_by_name.setdefault(text[start:end].strip(), []).append((start, end))

    places = []
    for word in score_of:
        # a unit by its name too: in scripts without spaces a word is a part of a longer run
        spans = list(units_by_name.get(word, ()))
        spans += [(start, start + len(word)) for start in occurrences(word, text)]
        if not word or not spans:
            raise _missing(word, text, passage)
        places.append(spans)

    table = numbers(list(score_of.values()), "scores")[:, None]
    return placed(passage, places, table, list(score_of))


def _score_of_words(pairs: Iterable[Any]) -> dict[str, Any]:
    score_of: dict[str, Any] = {}  # whether they are numbers is checked with all of them
    for name, score in pairs:
        if not isinstance(name, str):
            raise InputError(
                f"scores by name are scores of words; {name!r} is a {type(name).__name__}."
            )
        word = name.strip()
        if word in score_of:
            raise InputError(
                f"the word {word!r} has two scores, and nothing says which occurrence each is of. "
                "Give the words in reading order as tokens=[…], "
                "or their characters as spans=[(start, end), …]."
            )
        score_of[word] = score
    if not score_of:
        raise InputError("no word has a score.")
    return score_of


def _missing(word: str, text: str, passage: Passage) -> InputError:
    """The error for a word that the text does not have, with the unit that may be meant."""
    by_lower = {name.lower(): name for name in passage.names}
    close = get_close_matches(word.lower(), by_lower, n=1)
    hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
    return InputError(f"the word {word!r} does not occur in the text {short(text)}.{hint}")
