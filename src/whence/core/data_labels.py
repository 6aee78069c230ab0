"""Where a label of the data meets a label of the model: one rule for every command.

A label of the data is taken as the model's label that the user named for it; else as the one of
its name, of its name in other capitals, or of its number, in this order. A label for which there
is none of these is no label of the model: it is counted and named, and judged by nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from whence.core.errors import InputError

MOST_LISTED = 12  # labels, in the line of a refusal


class Rule(StrEnum):
    """By what a label of the data is one of the model's."""

    GIVEN = "as given"
    NAME = "by its name"
    CAPITALS = "whatever its capitals"
    NUMBER = "by its number"


@dataclass(frozen=True)
class Match:
    """A label of the model, by its number and name, and what it was found by."""

    number: int
    name: str
    rule: Rule


def match(
    given: str, names: Sequence[str], mapping: Mapping[str, str] | None = None
) -> Match | None:
    """The label of the model that a label of the data is; None where there is none.

    ``names`` are the model's labels by their numbers; ``mapping`` is what the user says of labels
    of the data.

    >>> names = ["not-toxic", "toxic"]
    >>> match("Toxic", names).rule, match("0", names).name, match("ok", names)
    (<Rule.CAPITALS: 'whatever its capitals'>, 'not-toxic', None)
    >>> match("ok", names, {"ok": "not-toxic"})
    Match(number=0, name='not-toxic', rule=<Rule.GIVEN: 'as given'>)
    """
    mapping = mapping or {}
    if given in mapping:
        meant = _by_itself(mapping[given], names)
        return None if meant is None else Match(meant.number, meant.name, Rule.GIVEN)
    return _by_itself(given, names)


def _by_itself(given: str, names: Sequence[str]) -> Match | None:
    for number, name in enumerate(names):
        if name == given:
            return Match(number, name, Rule.NAME)
    alike = [i for i, name in enumerate(names) if name.casefold() == given.casefold()]
    if alike:  # of several nobody knows which is meant
        return Match(alike[0], names[alike[0]], Rule.CAPITALS) if len(alike) == 1 else None
    if given.isdecimal() and int(given) < len(names):
        return Match(int(given), names[int(given)], Rule.NUMBER)
    return None


@dataclass(frozen=True)
class DataLabel:
    """A label of the data: on how many texts, and what it is to the model (None: nothing).

    ``nearest`` is the model's label that a label without a match may have meant.
    """

    given: str
    texts: int
    match: Match | None
    nearest: str | None = None


@dataclass(frozen=True)
class DataLabels:
    """The labels of a data set beside the labels of a model.

    ``names`` are the model's; ``unlabelled`` counts texts to which the data give no label.
    """

    names: tuple[str, ...]
    labels: tuple[DataLabel, ...]
    unlabelled: int = 0

    @property
    def texts(self) -> int:
        """All texts, with a label and without."""
        return self.unlabelled + sum(label.texts for label in self.labels)

    @property
    def known(self) -> tuple[DataLabel, ...]:
        """The labels that are one of the model's."""
        return tuple(label for label in self.labels if label.match is not None)

    @property
    def unknown(self) -> tuple[DataLabel, ...]:
        """The labels that the model does not have, those of most texts first."""
        unknown = [label for label in self.labels if label.match is None]
        return tuple(sorted(unknown, key=lambda label: (-label.texts, label.given)))

    @property
    def known_texts(self) -> int:
        """The texts whose label is one of the model's."""
        return sum(label.texts for label in self.known)

    @property
    def unknown_texts(self) -> int:
        """The texts whose label the model does not have."""
        return sum(label.texts for label in self.unknown)

    @property
    def meant(self) -> tuple[str, ...]:
        """The model's labels that some text has, each once."""
        return tuple(dict.fromkeys(one.match.name for one in self.known if one.match is not None))


def data_labels(
    given: Iterable[str | None], names: Sequence[str], mapping: Mapping[str, str] | None = None
) -> DataLabels:
    """The labels that the data give to texts, beside the model's.

    >>> met = data_labels(["toxic", "ok", "ok", None], ["not-toxic", "toxic"])
    >>> met.known_texts, [(label.given, label.texts) for label in met.unknown], met.unlabelled
    (1, [('ok', 2)], 1)
    """
    counts = Counter(given)
    unlabelled = counts.pop(None, 0)
    labels = []
    for label, texts in sorted((str(label), texts) for label, texts in counts.items()):
        found = match(label, names, mapping)
        near = None if found else _nearest(label, names)
        labels.append(DataLabel(label, texts, found, near))
    return DataLabels(tuple(names), tuple(labels), unlabelled)


def check_mapping(mapping: Mapping[str, str], names: Sequence[str], given: Iterable[str]) -> None:
    """Refuse a mapping from a label that the data do not have, or to one that the model has not."""
    check_meant(mapping, names)
    there = sorted(set(given))
    for label in mapping:
        if label not in there:
            raise InputError(
                f"no text has the label {label!r}, which labels= (--labels) maps to "
                f"{mapping[label]!r}.{_hint(label, there)} Labels of the data: {_listed(there)}."
            )


def check_meant(mapping: Mapping[str, str], names: Sequence[str]) -> None:
    """Refuse a mapping to a label that the model does not have; no data are needed for that."""
    if not names:
        raise InputError(
            "labels= (--labels) says which class of a classifier each label of the data is, and "
            "this model has no classes to choose from."
        )
    for label, meant in mapping.items():
        if _by_itself(meant, names) is None:
            raise InputError(
                f"labels= (--labels) maps {label!r} to {meant!r}, which is no label of this model."
                f"{_hint(meant, names)} Its labels: {_listed(names)}."
            )


def _hint(label: str, known: Sequence[str]) -> str:
    near = _nearest(label, known)
    return f" Did you mean {near!r}?" if near else ""


def _nearest(label: str, known: Sequence[str]) -> str | None:
    """The name that is nearest, whatever its capitals, blanks and hyphens.

    >>> _nearest("Not_Toxic", ["not-toxic", "toxic"])
    'not-toxic'
    """
    plain = {_plain(name): name for name in known}
    close = get_close_matches(_plain(label), plain, n=1)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more if names else "none"
