"""The Target: which number is being explained.

It is resolved once, before any method runs, and stands in every result. An argmax that is
evaluated along the way may change: along a path of integrated gradients the predicted token was
seen to move from 42 to 73 to 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from whence.core.errors import TargetError

Reading = Literal[
    "logit",
    "log-probability",
    "probability",
    "margin",
    "cross-entropy",
    "perplexity",
    "entropy",
    "kl",
]
# readings of a label that can be compared with another one: why A rather than B
OF_CONTRASTS = ("logit", "log-probability", "probability", "margin")
# readings of several written tokens together
OF_SPANS = ("log-probability", "probability", "cross-entropy", "perplexity", "entropy", "kl")
# The sign of a score that speaks for what is explained. A loss falls where the model is surer of
# it, so there that is a score below zero. 0 where a score speaks for no label: the entropy is of
# all that could stand there, and so is a divergence.
SIGN_OF_SUPPORT: dict[Reading, Literal[1, 0, -1]] = {
    "logit": 1,
    "log-probability": 1,
    "probability": 1,
    "margin": 1,
    "cross-entropy": -1,
    "perplexity": -1,
    "entropy": 0,
    "kl": 0,
}
LONGEST_LABEL_LIST = 12
# Said of a divergence for which no other input was named.
WHOLE_INPUT = "the whole input"


def log_probabilities(logits: Float[np.ndarray, "*row label"]) -> Float[np.ndarray, "*row label"]:
    """The logarithm of the softmax of each row, in double precision.

    >>> log_probabilities(np.zeros(2)).round(4).tolist()
    [-0.6931, -0.6931]
    """
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Reference:
    """What the model says of another input: a divergence is measured from there.

    ``name`` says of which input. ``log_probabilities`` has a row for each output that is explained.
    A result keeps the name alone: a row is as long as the vocabulary.

    >>> even = Reference.of("a coin", np.zeros((1, 2)))
    >>> even.log_probabilities.round(4).tolist()
    [[-0.6931, -0.6931]]
    """

    name: str
    log_probabilities: Float[np.ndarray, "output label"] | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        if self.log_probabilities is not None:
            content = np.ascontiguousarray(self.log_probabilities).tobytes()
            object.__setattr__(self, "digest", hashlib.sha256(content).hexdigest()[:16])

    @classmethod
    def of(cls, name: str, logits: Float[np.ndarray, "output label"]) -> Reference:
        """The reference that has these logits."""
        return cls(name, log_probabilities(logits))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str]:
        return self.name, self.digest


@dataclass(frozen=True)
class Target:
    """A class (or a token of the vocabulary), perhaps against another one, and how it is read.

    ``label`` is a name or an index, ``None`` for what the model predicts. ``against`` makes it a
    contrast: *why A rather than B*. ``read`` is the ``logit`` (default); the ``log-probability``;
    the ``probability``; or the ``margin``: the logit less that of the strongest rival, which is
    chosen once, on the unperturbed input. Of a text that a model wrote it may also be the
    ``cross-entropy`` (less the log-probability, in nats), the ``perplexity`` (e to the
    cross-entropy) and the ``entropy`` of all that could stand there. ``kl`` is how far all that
    could stand there diverges from the ``reference``: the sum of P₀ · ln(P₀ / P), in nats, where P₀
    is what the reference says. By default that is the whole input, so nothing diverges until
    something is removed.

    ``at`` is the unit that a masked language model is to fill, or the word whose tag is explained:
    its number, or the word itself where it stands once. Of a text that a model wrote it is the
    token of that number, from 0, or a word; and with ``until`` all tokens from ``at`` up to that
    one. ``index`` and ``against_index`` are filled in when the target is resolved, and so are
    ``word``, the word whose tag it is, ``ids``, the tokens of a span, and ``against_ids``, those of
    another text that could have been written.

    >>> Target("positive", against="negative", read="probability").describe()
    'probability of positive rather than negative'
    """

    label: str | int | None = None
    against: str | int | None = None
    read: Reading = "logit"
    at: int | str | None = None
    index: int | None = None
    against_index: int | None = None
    word: str | None = None
    until: int | None = None
    ids: tuple[int, ...] | None = None
    against_ids: tuple[int, ...] | None = None
    reference: Reference | None = None

    def __post_init__(self) -> None:
        for name in ("ids", "against_ids"):
            if getattr(self, name) is not None:  # JSON gives it back as a list
                object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.read not in get_args(Reading):
            raise TargetError(
                f"a target is read as one of {', '.join(get_args(Reading))}, not {self.read!r}."
            )
        if self.against is not None and self.read not in OF_CONTRASTS:
            raise TargetError(
                f"a contrast, A rather than B, is read as one of {', '.join(OF_CONTRASTS)}, "
                f"not as {self.read!r}."
            )
        if self.reference is not None and self.read != "kl":
            raise TargetError(f"only the reading 'kl' has a reference, not {self.read!r}.")

    @property
    def is_from_whole_input(self) -> bool:
        """Whether it is a divergence that is zero, and at its least, where nothing is removed."""
        if self.read != "kl":
            return False
        return self.reference is None or self.reference.name == WHOLE_INPUT

    @property
    def sign_of_support(self) -> Literal[1, 0, -1]:
        """The sign of a score that speaks for what is explained; 0 where none does.

        A score above zero says that a unit raises the number that is explained. That speaks for
        the target where the number is its score or its probability, and against it where it is a
        loss. Of an entropy or a divergence it says what the number itself does, and nothing about
        one label.

        >>> Target("good").sign_of_support, Target("good", read="cross-entropy").sign_of_support
        (1, -1)
        """
        return SIGN_OF_SUPPORT[self.read]

    @property
    def steps(self) -> range:
        """The written tokens that are explained together, by number; one of them for most."""
        assert isinstance(self.at, int)
        return range(self.at, self.at + 1 if self.until is None else self.until)

    def describe(self) -> str:
        """The target in words.

        Said of every target, in a ``repr`` and beside a figure.
        """
        label = "the predicted class" if self.label is None else str(self.label)
        rather = f" rather than {self.against}" if self.against is not None else ""
        place = f" at {self.word!r}" if self.word is not None else ""
        if self.read == "kl":
            beside = WHOLE_INPUT if self.reference is None else self.reference.name
            return f"kl of what stands at {label} from {beside}"
        return f"{self.read} of {label}{rather}{place}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored = asdict(replace(self, reference=None))
        if self.reference is None:
            del stored["reference"]
        else:
            stored["reference"] = {"name": self.reference.name}
        for name in ("word", "until", "ids", "against_ids"):
            if stored[name] is None:
                del stored[name]  # as it was before there were such: older versions read it
            elif name.endswith("ids"):
                stored[name] = list(stored[name])
        return stored


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
    """Fix the indices of a target, given the logits of the unperturbed input.

    ``labels`` maps an index to its name.

    >>> labels = {0: "bad", 1: "good", 2: "fair"}
    >>> resolve(Target(read="margin"), np.array([0.1, 2.0, 1.0]), labels).describe()
    'margin of good rather than fair'
    """
    if _is_resolved(target, labels):
        return target
    if not len(logits):
        raise TargetError("there is nothing to choose from: this text has no possible answer.")
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
    target = replace(target, label=labels[index], index=index, against=name, against_index=against)
    return referred(target, np.asarray(logits)[None])


def referred(target: Target, logits: Float[np.ndarray, "output label"]) -> Target:
    """A divergence with what it is measured from; ``logits`` are those of the whole input.

    Any other target stays as it is.

    >>> referred(Target(read="kl"), np.zeros((1, 2))).reference.name
    'the whole input'
    """
    if target.read != "kl" or _has_numbers(target):
        return target
    if not target.is_from_whole_input:
        assert target.reference is not None
        raise TargetError(
            f"the divergence from {target.reference.name} is not stored with a result; "
            "make the explanation anew."
        )
    return replace(target, reference=Reference.of(WHOLE_INPUT, logits))


def _has_numbers(target: Target) -> bool:
    return target.reference is not None and target.reference.log_probabilities is not None


def _is_resolved(target: Target, labels: Mapping[int, str]) -> bool:
    """Whether it was resolved before, on a model whose labels of these indices are the same."""
    if target.index is None or labels.get(target.index) != target.label:
        return False
    if target.read == "kl" and not _has_numbers(target):
        return False
    if target.against_index is None:
        return target.read != "margin"
    return labels.get(target.against_index) == target.against


def _index(label: str | int, labels: Mapping[int, str]) -> int:
    is_searched = hasattr(labels, "index_of")
    owner = getattr(labels, "owner", "labels of this classifier")
    count = len(labels)
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        if not 0 <= label < count:
            raise TargetError(f"label {label} is outside the {count} {owner}{_listing(labels)}.")
        return int(label)
    if not isinstance(label, str):
        raise TargetError(
            f"a label is a name or a whole number, not the {type(label).__name__} {label!r}."
        )
    matches = _matches(label, labels)
    if len(matches) > 1 and is_searched:
        several = ", ".join(repr(labels[match]) for match in matches)
        kind = owner.partition(" of ")[0]
        raise TargetError(
            f"label {label!r} is {len(matches)} {kind}, not one: {several}. Name one of them."
        )
    if len(matches) > 1:
        raise TargetError(
            f"label {label!r} is not unique among the {count} {owner}{_listing(labels)}; "
            "give its index."
        )
    if matches:
        return int(matches[0])
    if label.isdecimal():
        return _index(int(label), labels)
    by_lower = {} if is_searched else {name.lower(): name for name in labels.values()}
    close = get_close_matches(label.lower(), by_lower, n=1)
    hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
    raise TargetError(f"label {label!r} is not among the {count} {owner}{_listing(labels)}.{hint}")


def _matches(label: str, labels: Mapping[int, str]) -> list[int]:
    """The indices of a label's name: exactly so, or else whatever its capitals."""
    index_of = getattr(labels, "index_of", None)
    if index_of is not None:  # such labels (a vocabulary) know where to look
        return list(index_of(label))
    exact = [index for index, name in labels.items() if name == label]
    if exact:
        return exact
    return [index for index, name in labels.items() if name.lower() == label.lower()]


def _listing(labels: Mapping[int, str]) -> str:
    if len(labels) > LONGEST_LABEL_LIST:
        return ""
    return f" ({', '.join(f'{i} {name}' for i, name in sorted(labels.items()))})"
