"""Readers of other tools' results, one for each kind: lime's, shap's, arrays (captum's among them), and words with scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from whence.core.errors import InputError, SettingsError
from whence.core.passage import Passage
from whence.foreign.pieces import (
    Foreign,
    aligned,
    characters,
    checked,
    numbers,
    occurrences,
    of_tokens,
    one_row,
    only_sums,
    placed,
    short,
    unit_places,
)


def from_lime(explanation: Any, passage: Passage) -> Foreign:
    """What lime's ``LimeTextExplainer`` returned; every occurrence of a word gets its weight, unless lime was told ``bow=False``.

    >>> from_lime(LimeTextExplainer().explain_instance(text, predict), model.encode(text)).units    # doctest: +SKIP
    """
    indexed = getattr(explanation.domain_mapper, "indexed_string", None)
    if indexed is None:
        raise InputError(
            f"this lime explanation is none of a text (its domain mapper is a {type(explanation.domain_mapper).__name__})."
        )
    raw = indexed.raw_string()
    if raw != passage.text and not (passage.dropped and raw.startswith(passage.text)):
        raise InputError(
            f"lime explained the text {short(raw)}, and this one is {short(passage.text)}; pass the text that lime was given."
        )
    # lime's own string_start forgets NUL characters, as numpy's strings do
    lengths = [len(s) for s in indexed.as_list]
    starts = np.cumsum([0, *lengths])
    by_label = {int(label): dict(found) for label, found in explanation.as_map().items()}
    words = sorted({int(w) for found in by_label.values() for w in found})
    places = [
        [(int(starts[i]), int(starts[i] + lengths[i])) for i in np.atleast_1d(indexed.positions[w])]
        for w in words
    ]
    weights = np.zeros((len(words), len(by_label)))
    for column, found in enumerate(by_label.values()):
        weights[:, column] = [found.get(w, 0.0) for w in words]
    names = explanation.class_names or ()
    output = getattr(explanation, "predict_proba", None)
    about = {"bow": bool(indexed.bow), "features": len(words), "fit": explanation.score}
    return placed(
        passage,
        places,
        weights,
        [str(indexed.word(w)) for w in words],
        outputs=tuple((i, str(names[i]) if i < len(names) else None) for i in by_label),
        totals=None
        if output is None
        else np.array([output[i] for i in by_label], dtype=np.float64),
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
            raise InputError(
                f"this shap explanation holds {len(pieces)} texts; pass one of them, as in explanation[0]."
            )
        values, pieces, base = values[0], list(pieces[0]), None if base is None else base[0]
    if not pieces or not all(isinstance(p, str) for p in pieces):
        raise InputError(
            "this shap explanation is none of a text: its data are no pieces of text. Pass its values, with spans=."
        )
    table = numbers(values, "shap values")
    if table.ndim > 2 or len(table) != len(pieces):
        raise InputError(
            f"{' × '.join(map(str, table.shape))} shap values for {len(pieces)} pieces of text."
        )
    names = explanation.output_names
    if table.ndim == 1:
        outputs: tuple[tuple[int | None, str | None], ...] = (
            (None, str(names) if isinstance(names, str) else None),
        )
        table = table[:, None]
    else:
        known = (
            names if names is not None and len(names) == table.shape[1] else [None] * table.shape[1]
        )
        outputs = tuple((i, None if name is None else str(name)) for i, name in enumerate(known))
    base = (
        None
        if base is None
        else np.broadcast_to(np.asarray(base, dtype=np.float64), (len(outputs),))
    )
    places = [[span] for span in aligned([str(p) for p in pieces], passage)]
    return placed(
        passage,
        places,
        table,
        [str(p) for p in pieces],
        outputs=outputs,
        totals=None
        if base is None
        else base + table.sum(0),  # efficiency: base value and scores add up to the output
        method="shap (package)",
        settings={"pieces": len(pieces)},
    )


def from_array(
    scores: Any,
    passage: Passage,
    *,
    tokens: Sequence[str] | None = None,
    spans: Any = None,
    merge: str = "sum",
) -> Foreign:
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
    row = one_row(numbers(scores, "scores"), wanted)
    if pieces is not None and len(row) != len(pieces):
        raise InputError(
            f"{len(row)} scores for {len(pieces)} {'tokens' if tokens is not None else 'spans'}."
        )
    own = tuple(t for t, inside in zip(passage.tokens, content, strict=True) if inside)
    if tokens is not None and tuple(tokens) not in (passage.tokens, own):
        pieces = list(tokens)
        places = [[span] for span in aligned(pieces, passage)]
    elif spans is not None:
        places = [[span] for span in checked(spans, passage)]
        pieces = [str(s) for s in spans]
    elif len(row) in wanted:
        return of_tokens(row, passage, content, merge, of_units=tokens is None and len(row) == d)
    else:
        raise InputError(
            f"{len(row)} scores for {d} units ({content.sum()} tokens, {len(passage)} with the special ones). "
            "Give one for each, or say what they are scores of: tokens=[…] or spans=[(start, end), …]."
        )
    only_sums(merge)
    return placed(passage, places, row[:, None], pieces)


def from_words(pairs: Iterable[Any], passage: Passage) -> Foreign:
    """A bag of words, as of lime's ``as_list()``: each unit in which a word occurs gets its score.

    >>> p = Passage.from_tokens("not good, not bad", range(5), ["not", "good", ",", "not", "bad"],
    ...                         [(0, 3), (4, 8), (8, 9), (10, 13), (14, 17)], [0] * 5)
    >>> from_words({"not": 2, "bad": -1}.items(), p).units[:, 0].tolist()
    [2.0, 0.0, 0.0, 2.0, -1.0]
    """
    text, _ = characters(passage)
    found: dict[str, float] = {}
    for pair in pairs:
        if not isinstance(pair[0], str):
            raise InputError(
                f"scores by name are scores of words; {pair[0]!r} is a {type(pair[0]).__name__}."
            )
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
    for a, b in unit_places(passage):
        named.setdefault(text[a:b].strip(), []).append((a, b))
    places = []
    for word in found:
        # a unit by its name too: in scripts without spaces a word is a part of a longer run
        spans = [*named.get(word, ()), *((i, i + len(word)) for i in occurrences(word, text))]
        if not word or not spans:
            close = get_close_matches(
                word.lower(), by_lower := {n.lower(): n for n in passage.names}, n=1
            )
            hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
            raise InputError(f"the word {word!r} does not occur in the text {short(text)}.{hint}")
        places.append(spans)
    return placed(passage, places, numbers(list(found.values()), "scores")[:, None], list(found))
