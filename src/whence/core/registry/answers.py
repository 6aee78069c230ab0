"""What a method or a metric returned, checked where the run takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.errors import AuthorError
from whence.core.passage import Passage
from whence.core.scores import Scores


def as_scores(answer: Any, name: str, passages: Sequence[Passage]) -> list[Scores]:
    """What the method ``name`` returned of a trace, as Scores of each passage.

    That is an array "ask token", as wide as the longest passage, or a list of Scores.

    >>> as_scores(None, "mine", [])
    Traceback (most recent call last):
    ...
    whence.core.errors.AuthorError: method 'mine' returned None, not an array of the shape \
(asks, tokens) or a list of Scores.
    """
    longest = max((len(passage) for passage in passages), default=0)
    if hasattr(answer, "shape") and hasattr(answer, "dtype"):
        wanted = (len(passages), longest)
        if tuple(answer.shape) != wanted:
            raise AuthorError(
                f"method {name!r} returned the shape {_shape(answer.shape)}, "
                f"not {_shape(wanted)}: (asks, tokens), one score for each token of each ask."
            )
        answer = Scores.rows(answer)
    if not isinstance(answer, list) or not all(isinstance(one, Scores) for one in answer):
        raise AuthorError(
            f"method {name!r} returned {_kind(answer)}, "
            "not an array of the shape (asks, tokens) or a list of Scores."
        )
    if len(answer) != len(passages):
        raise AuthorError(
            f"method {name!r} returned {len(answer)} Scores for {len(passages)} asks: "
            "one for each is wanted, in their order."
        )
    for scores, passage in zip(answer, passages, strict=True):
        _check_tokens(scores, name, passage, longest)
        _check_units(scores, name, passage.units.names)
    return answer


def as_unit_scores(answer: Any, name: str, units: Sequence[str]) -> Scores:
    """What the method ``name`` returned of a game whose players have these names."""
    if not isinstance(answer, Scores):
        raise AuthorError(
            f"method {name!r} returned {_kind(answer)}, not Scores(units=…) "
            f"with one score for each of the {len(units)} units."
        )
    if answer.units is None:
        raise AuthorError(
            f"method {name!r} returned scores of tokens, and a game knows units alone: "
            "return Scores(units=…)."
        )
    _check_units(answer, name, units)
    return answer


def as_values(answer: Any, name: str, rankings: int) -> Float[np.ndarray, " ranking"]:
    """What the metric ``name`` returned for so many rankings: one finite number for each."""
    if not isinstance(answer, np.ndarray):
        raise AuthorError(
            f"metric {name!r} returned {_kind(answer)}, "
            f"not a numpy array of the shape ({rankings},), one number for each ranking."
        )
    if answer.shape != (rankings,):
        raise AuthorError(
            f"metric {name!r} returned the shape {_shape(answer.shape)}, "
            f"not ({rankings},): one number for each ranking."
        )
    if not np.isfinite(answer).all():
        raise AuthorError(f"metric {name!r} returned a number that is not finite.")
    return answer.astype(np.float64)


def _check_tokens(scores: Scores, name: str, passage: Passage, longest: int) -> None:
    if scores.tokens is None:
        return
    shape = scores.tokens.shape
    if shape not in ((len(passage),), (longest,)):
        raise AuthorError(
            f"method {name!r} returned token scores of the shape {_shape(shape)} "
            f"for a text of {len(passage)} tokens: ({len(passage)},) is wanted."
        )
    of_text = scores.tokens[: len(passage)][passage.unit_of >= 0]
    if not np.isfinite(of_text).all():
        raise AuthorError(f"method {name!r} returned a score that is not finite.")


def _check_units(scores: Scores, name: str, units: Sequence[str]) -> None:
    for part in ("units", "standard_error"):
        values = getattr(scores, part)
        if values is not None and values.shape != (len(units),):
            raise AuthorError(
                f"method {name!r} returned {part} of the shape {_shape(values.shape)} "
                f"for {len(units)} units: ({len(units)},) is wanted."
            )
    if scores.units is None:
        return
    is_bad = ~np.isfinite(scores.units)
    if is_bad.any():
        first = int(is_bad.argmax())
        raise AuthorError(
            f"method {name!r} returned a score that is not finite: "
            f"{scores.units[first]} for {units[first]!r}."
        )


def _shape(shape: Sequence[int]) -> str:
    return str(tuple(int(size) for size in shape))


def _kind(answer: Any) -> str:
    if answer is None:
        return "None"
    if isinstance(answer, (list, tuple)) and answer:
        return f"a {type(answer).__name__} of {type(answer[0]).__name__}"
    return f"a {type(answer).__name__}"
