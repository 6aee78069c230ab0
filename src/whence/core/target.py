"""The Target: which number is being explained. It is resolved once, before any method runs, and stands in every result.

An argmax evaluated along the way would change under the explainer's hands: along a path of integrated gradients the predicted
token was seen to move from 42 to 73 to 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from whence.core.errors import TargetError

Reading = Literal["logit", "log-probability", "probability", "margin"]
LONGEST_LABEL_LIST = 12


@dataclass(frozen=True)
class Target:
    """A class (or a token of the vocabulary), optionally against another one, read in one of four ways.

    ``label`` is a name or an index, ``None`` for what the model predicts. ``against`` makes it a contrast: *why A rather than B*.
    ``read``: the ``logit`` (default); the ``log-probability``; the ``probability``; the ``margin``, that is the logit less that of the
    strongest rival, who is chosen once, on the unperturbed input. ``at`` is the unit that a masked language model is to fill.
    ``index`` and ``against_index`` are filled in when the target is resolved.

    >>> Target("positive", against="negative", read="probability").describe()
    'probability of positive rather than negative'
    """

    label: str | int | None = None
    against: str | int | None = None
    read: Reading = "logit"
    at: int | None = None
    index: int | None = None
    against_index: int | None = None

    def __post_init__(self) -> None:
        if self.read not in get_args(Reading):
            raise TargetError(
                f"a target is read as one of {', '.join(get_args(Reading))}, not {self.read!r}."
            )

    def describe(self) -> str:
        """The target in words."""
        label = "the predicted class" if self.label is None else str(self.label)
        rather = f" rather than {self.against}" if self.against is not None else ""
        return f"{self.read} of {label}{rather}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def as_target(
    target: Target | str | int | tuple[str | int, str | int] | None, read: Reading | None = None
) -> Target:
    """A label, an index, a pair (A rather than B), a Target or None, as a Target."""
    if isinstance(target, tuple):
        if len(target) != 2:
            raise TargetError(f"a contrast is a pair (A, B), not {target!r}.")
        target = Target(label=target[0], against=target[1])
    elif not isinstance(target, Target):
        target = Target(label=target)
    return replace(target, read=read) if read else target


def resolve(
    target: Target, logits: Float[np.ndarray, " label"], labels: Mapping[int, str] | Any
) -> Target:
    """Fix the indices of a target, given the logits of the unperturbed input. ``labels`` maps an index to its name.

    >>> resolve(Target(read="margin"), np.array([0.1, 2.0, 1.0]), {0: "bad", 1: "good", 2: "fair"}).describe()
    'margin of good rather than fair'
    """
    if target.index is not None:
        # resolved before: on this model, or on another one whose label of that index may be a different one
        same = all(
            i is None or labels.get(i) == n
            for i, n in ((target.index, target.label), (target.against_index, target.against))
        )
        if same and (target.read != "margin" or target.against_index is not None):
            return target
    index = int(logits.argmax()) if target.label is None else _index(target.label, labels)
    against = None if target.against is None else _index(target.against, labels)
    if target.read == "margin" and against is None:
        if len(logits) < 2:
            raise TargetError(
                "a margin needs a second label, and this model has one output; read it as 'logit'."
            )
        rivals = np.where(np.arange(len(logits)) == index, -np.inf, logits)
        against = int(rivals.argmax())
    if against == index:
        raise TargetError(f"a contrast needs two labels; both are {labels[index]!r}.")
    name = None if against is None else labels[against]
    return replace(target, label=labels[index], index=index, against=name, against_index=against)


def _index(label: str | int, labels: Mapping[int, str]) -> int:
    owner = (
        "tokens of this model's vocabulary"
        if hasattr(labels, "index_of")
        else "labels of this classifier"
    )
    count = len(labels)
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        if not 0 <= label < count:
            raise TargetError(f"label {label} is outside the {count} {owner}{_listing(labels)}.")
        return int(label)
    if not isinstance(label, str):
        raise TargetError(
            f"a label is a name or a whole number, not the {type(label).__name__} {label!r}."
        )
    index_of = getattr(labels, "index_of", None)  # a vocabulary answers without being searched
    if index_of is not None:
        found = list(index_of(label))
        if len(found) > 1:
            raise TargetError(
                f"label {label!r} is {len(found)} tokens, not one: {', '.join(repr(labels[i]) for i in found)}. Name one of them."
            )
    else:
        found = [i for i, name in labels.items() if name == label] or [
            i for i, name in labels.items() if name.lower() == label.lower()
        ]
        if len(found) > 1:
            raise TargetError(
                f"label {label!r} is not unique among the {count} {owner}{_listing(labels)}; give its index."
            )
    if found:
        return int(found[0])
    if label.isdecimal():
        return _index(int(label), labels)
    by_lower = {} if index_of else {name.lower(): name for name in labels.values()}
    close = get_close_matches(label.lower(), by_lower, n=1)
    hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
    raise TargetError(f"label {label!r} is not among the {count} {owner}{_listing(labels)}.{hint}")


def _listing(labels: Mapping[int, str]) -> str:
    if len(labels) > LONGEST_LABEL_LIST:
        return ""
    return f" ({', '.join(f'{i} {name}' for i, name in sorted(labels.items()))})"
