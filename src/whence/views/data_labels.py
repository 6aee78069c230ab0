"""What is said of labels of the data: which the model does not have, how others are read."""

from __future__ import annotations

import re
import shlex

from whence.core.data_labels import DataLabel, DataLabels, Rule
from whence.views import wording

MOST_NAMED = 6  # labels in a sentence
# what becomes of the texts whose label the model does not have
# Said of texts whose label the model does not have, where nobody needs it.
LEFT_OUT = "the model is neither right nor wrong there, and no accuracy counts that"
# Said of texts whose label the model does not have, where it is explained.
FAIL = "nothing comes of such a text, as its label is needed"


def label_sentences(labels: DataLabels, is_needed: bool = False) -> list[str]:
    """Everything about the labels of the data that is not plain from their names."""
    return [*unknown_sentences(labels, is_needed), *reading_sentences(labels)]


def unknown_sentences(labels: DataLabels, is_needed: bool = False) -> list[str]:
    """Said where some text has a label that the model does not have, or has none.

    ``is_needed`` says that texts without such a label come to nothing.

    >>> from whence.core.data_labels import data_labels
    >>> met = data_labels(["toxic", "ok", None], ["not-toxic", "toxic"])
    >>> print("\\n".join(unknown_sentences(met)))
    1 of 3 texts has a label that the model does not have, ok: the model is neither right nor wrong
    there, and no accuracy counts that. Its labels are not-toxic, toxic; --labels ok=not-toxic
    says which one is meant.
    1 of 3 texts has no label.
    """
    said = []
    if labels.unknown:
        said.append(_unknown(labels, FAIL if is_needed else LEFT_OUT))
    if labels.unlabelled and labels.labels:
        said.append(f"{_counted(labels.unlabelled, labels.texts)} no label.")
    return said


def _unknown(labels: DataLabels, consequence: str) -> str:
    """Said where some label of the data is none of the model."""
    unknown = labels.unknown
    first = unknown[0]
    names = wording.few([_named(label, len(unknown)) for label in unknown], MOST_NAMED)
    example = _typed(f"{first.given}={_guess(labels)}")
    return wording.visible(
        f"{_counted(labels.unknown_texts, labels.texts)} a label that the model does not have, "
        f"{names}: {consequence}. Its labels are {wording.few(labels.names, MOST_NAMED)}; "
        f"--labels {example} says which one is meant."
    )


def _typed(mapping: str) -> str:
    """As it is typed in a shell: in quotes where a name has a blank, or what a shell acts on.

    >>> _typed("ok=not-toxic"), _typed("ok=…"), _typed("so so=bad")
    ('ok=not-toxic', 'ok=…', "'so so=bad'")
    """
    return mapping if re.fullmatch(r"[\w.=…-]+", mapping) else shlex.quote(mapping)


def _guess(labels: DataLabels) -> str:
    """What the first unknown label may mean: a name like it, or the only one that is left."""
    left = [name for name in labels.names if name not in labels.meant]
    only = left[0] if len(left) == len(labels.unknown) == 1 else None
    return labels.unknown[0].nearest or only or "…"


def _counted(count: int, every: int) -> str:
    """Said of texts that have some label, or none."""
    has = "has" if count == 1 else "have"
    return "The one text has" if every == 1 else f"{count:,} of {every:,} texts {has}"


def _named(label: DataLabel, among: int) -> str:
    """With its number of texts, where there are several whose numbers are added up."""
    return label.given if among == 1 else f"{label.given} ({label.texts:,})"


def reading_sentences(labels: DataLabels) -> list[str]:
    """Said where a label of the data is one of the model's by something else than its name.

    >>> from whence.core.data_labels import data_labels
    >>> reading_sentences(data_labels(["0", "1"], ["bad", "good"]))
    ['Labels of the data are read by their numbers: 0 as bad, 1 as good.']
    """
    by_rule: dict[Rule, list[DataLabel]] = {}
    for label in labels.known:
        if label.match is not None and label.match.rule is not Rule.NAME:
            by_rule.setdefault(label.match.rule, []).append(label)
    how = {
        Rule.GIVEN: "as --labels says",
        Rule.CAPITALS: "whatever their capitals",
        Rule.NUMBER: "by their numbers",
    }
    said = []
    for rule, read in by_rule.items():
        pairs = wording.few([_pair(label) for label in read], MOST_NAMED)
        said.append(wording.visible(f"Labels of the data are read {how[rule]}: {pairs}."))
    return said


def _pair(label: DataLabel) -> str:
    meant = "" if label.match is None else label.match.name
    return f"{label.given} as {meant}"


def undecided_sentences(labels: DataLabels) -> list[str]:
    """Said in place of an accuracy where only one of the model's labels is left.

    >>> from whence.core.data_labels import data_labels
    >>> undecided_sentences(data_labels(["toxic", "toxic", "ok"], ["not-toxic", "toxic"]))
    ['How often it is right is not told: the 2 texts whose label it has are both toxic, and one
    label says nothing of how well labels are told apart.']
    """
    if len(labels.meant) != 1:
        return []
    only, texts = wording.label(labels.meant[0]), labels.known_texts
    are = f"the {texts:,} texts whose label it has are {'both' if texts == 2 else 'all'}"
    if texts == 1:
        are = "the one text whose label it has is"
    return [
        f"How often it is right is not told: {are} {only}, and one label says nothing of how well "
        "labels are told apart."
    ]
