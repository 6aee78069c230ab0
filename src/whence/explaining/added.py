"""Attributions that the caller brings to a comparison, wherever their scores were made.

They must be of the same model, text, units and target as the others: then they are held against
the same random rankings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.core.many import Many
from whence.core.passage import Passage
from whence.core.request import Wish, wishes_for
from whence.core.target import Target

if TYPE_CHECKING:
    from whence.models.model import Model

LONGEST_QUOTE = 40  # characters of a text in an error message

Added = tuple[Attribution, ...]


def wishes_and_added(methods: Any) -> tuple[tuple[Wish, ...], Added]:
    """What ``compare`` was given as methods: those to be run, and results that are there already.

    >>> wishes, added = wishes_and_added(["rollout", {"lime": {"budget": 200}}])
    >>> [wish.method for wish in wishes], added
    (['rollout', 'lime'], ())
    """
    if isinstance(methods, (str, Attribution, Attributions, Comparison, Many, Mapping)):
        methods = [methods]
    wishes: list[Wish] = []
    added: list[Attribution] = []
    for entry in methods:
        if isinstance(entry, str):
            wishes += wishes_for([entry])
        elif isinstance(entry, (Attribution, Attributions, Comparison, Many)):
            added += attributions_of(entry)
        elif isinstance(entry, Mapping):
            wishes += wishes_for(entry)
        else:
            raise InputError(
                "a method is a name, a mapping of names to settings, or an Attribution, "
                f"not the {type(entry).__name__} {entry!r:.40}."
            )
    if not wishes and not added:
        raise InputError("compare needs at least one method; methods=None takes all that fit.")
    return tuple(wishes), tuple(added)


def attributions_of(
    result: Attribution | Attributions | Comparison | Many,
) -> list[Attribution]:
    """The attributions that a result holds."""
    if isinstance(result, Many):
        return [attribution for each in result for attribution in attributions_of(each)]
    if isinstance(result, Attribution):
        return [result]
    entries = result.attributions if isinstance(result, Comparison) else result.entries
    return list(entries.values())


def shared_target(added: Added) -> Target:
    """The target of all of them, where the caller names none."""
    first = added[0]
    for other in added[1:]:
        _check_target(other, first.target, f"{first.method!r} explains")
    return first.target


def of_lines(added: Added, texts: Sequence[str]) -> list[Added]:
    """The attributions of each of several texts, by its characters.

    Of one text it is all of them: what does not fit is told with its reason later.
    """
    if len(texts) == 1:
        return [added]
    for attribution in added:
        if attribution.passage is None or attribution.passage.text not in texts:
            raise InputError(_of_none(attribution, len(texts)))
    return [
        tuple(a for a in added if a.passage is not None and a.passage.text == text)
        for text in texts
    ]


def by_text(model: Model, added: Added, passages: Sequence[Passage]) -> list[Added]:
    """The attributions that belong to each passage; an error where one belongs to none."""
    seated: list[list[Attribution]] = [[] for _ in passages]
    for attribution in added:
        _check_model(model, attribution)
        differences = [_difference(attribution, passage) for passage in passages]
        if "" not in differences:
            raise InputError(_of_no_text(attribution, passages, differences))
        place = differences.index("")
        seated[place].append(attribution)
    return [tuple(own) for own in seated]


def joined_with(
    own: Mapping[str, Attribution], added: Added, target: Target
) -> dict[str, Attribution]:
    """All attributions by name. A name that is taken gets a number: ``lime (2)``."""
    joined = dict(own)
    for attribution in added:
        _check_target(attribution, target, "this comparison explains")
        name = _free_name(attribution.method, joined)
        # the very same target, so that it shares the others' control
        joined[name] = replace(attribution, method=name, target=target)
    return joined


def _free_name(name: str, taken: Iterable[str]) -> str:
    taken = set(taken)
    if name not in taken:
        return name
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


# ------------------------------------------------------------------------------ what differs


def _check_model(model: Model, attribution: Attribution) -> None:
    if attribution.provenance.fingerprint in ("", model.fingerprint):
        return
    raise InputError(
        f"{_name(attribution)} is of the model {attribution.provenance.model}, whose weights are "
        f"not those of {model.name}. Compare it on the model that it was made for."
    )


def _check_target(attribution: Attribution, target: Target, whose: str) -> None:
    theirs = attribution.target
    if (theirs.index, theirs.against_index, theirs.read) == (
        target.index,
        target.against_index,
        target.read,
    ):
        return
    raise InputError(
        f"{_name(attribution)} explains the {theirs.describe()}, and {whose} the "
        f"{target.describe()}. Name one target for all, for example "
        f"target={_as_given(theirs)}, read={theirs.read!r}."
    )


def _as_given(target: Target) -> str:
    if target.against is None:
        return repr(target.label)
    return repr((target.label, target.against))


def _difference(attribution: Attribution, passage: Passage) -> str:
    """What keeps the two apart, and what to do about it; empty where they fit."""
    theirs = attribution.passage
    if theirs is None:
        return f"scores units of kind {attribution.units.kind!r}, which are no words of a text."
    if theirs.text != passage.text:
        return f"is of another text. {_differing(theirs.text, passage.text)}"
    if theirs.pair != passage.pair:
        return f"is of another pair of texts. {_differing(theirs.pair or '', passage.pair or '')}"
    if theirs.unit_spans != passage.unit_spans:
        return (
            f"scores {len(theirs.unit_spans)} units of kind {theirs.kind!r}, and here are "
            f"{len(passage.unit_spans)} of kind {passage.kind!r}. "
            "Use the same units= (and overflow=) for both."
        )
    if theirs.input_key == passage.input_key:
        return ""
    if _reply(theirs) != _reply(passage):
        return (
            f"is of the reply {_reply(theirs)!r}, and here the reply is {_reply(passage)!r}. "
            "Use the same reply= for both."
        )
    if theirs.readout != passage.readout:
        return "is about another word of this text. Use the same Target(at=…) for both."
    return "is of the same characters, read as other tokens. Was it made by another tokenizer?"


def _of_no_text(
    attribution: Attribution, passages: Sequence[Passage], differences: Sequence[str]
) -> str:
    theirs = attribution.passage
    for passage, difference in zip(passages, differences, strict=True):
        same_text = theirs is not None and theirs.text == passage.text
        if same_text or len(passages) == 1:
            return f"{_name(attribution)} cannot be added: it {difference}"
    return _of_none(attribution, len(passages))


def _of_none(attribution: Attribution, count: int) -> str:
    theirs = attribution.passage
    shown = "no text" if theirs is None else f"the text {_quoted(theirs.text)}"
    return (
        f"{_name(attribution)} cannot be added: it is of {shown}, "
        f"which is none of these {count} texts."
    )


def _name(attribution: Attribution) -> str:
    return f"the attribution {attribution.method!r}"


def _reply(passage: Passage) -> str | None:
    return None if passage.reply is None else passage.reply.text


def _differing(theirs: str, ours: str) -> str:
    """Both texts, from shortly before the place where they part."""
    parting = min(len(theirs), len(ours))
    for place in range(parting):
        if theirs[place] != ours[place]:
            parting = place
            break
    start = 0 if parting < LONGEST_QUOTE else parting - LONGEST_QUOTE // 2
    where = f" from character {start} on" if start else ""
    return (
        f"It reads {_quoted(theirs[start:])}{where}, and here stands {_quoted(ours[start:])}. "
        "Compare it on its own text."
    )


def _quoted(text: str) -> str:
    if not text:
        return "nothing"
    if len(text) > LONGEST_QUOTE:
        text = f"{text[:LONGEST_QUOTE]}…"
    return repr(text)
