"""The labels of a data set beside those of the model, before any work and in what is kept."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from whence.core.data_labels import DataLabels, check_mapping, check_meant, data_labels, match
from whence.core.errors import InputError
from whence.core.render import draw
from whence.runs.data import Choice, Data, chosen

if TYPE_CHECKING:
    from whence.models.model import Model
    from whence.runs.run import Run

# What labels are there for: an accuracy counts them; they are what is explained, or by what heads
# are valued; or nobody asks for them.
Use = Literal["counted", "needed", "kept"]
MAPPING = "data_labels"  # in the manifest of a run; not there where nothing was mapped
log = logging.getLogger("whence")


def names_of(model: Model) -> list[str]:
    """The model's classes by their numbers; none where it has none, or other ones on each text."""
    kind = model.kind
    if not kind.has_classes or kind.offers_choices or model.is_regression:
        return []
    return [model.labels[number] for number in range(len(model.labels))]


def label_for(model: Model, given: str | None, mapping: Mapping[str, str]) -> str | int | None:
    """A label of the data as a target has it: what the model calls it, where it is one of its.

    Data often hold the numbers of labels, and of a language model they may hold words.

    >>> import whence
    >>> label_for(whence.load("sentiment"), "Positive", {})
    'positive'
    """
    if given is None:
        return None
    found = match(given, names_of(model), mapping)
    if found is not None:
        return found.name
    return int(given) if given.lstrip("-").isdigit() else given


def labels_met(
    model: Model, data: Data, choice: Choice, mapping: Mapping[str, str], use: Use
) -> DataLabels | None:
    """The labels of the chosen rows beside the model's; None where there is nothing to tell.

    A mapping that names what is not there is refused, and so are labels that are needed where the
    model has none of them.
    """
    names = names_of(model)
    if mapping:
        _check_there_are_labels(data)
        check_meant(mapping, names)
    is_told = use == "needed" or (use == "counted" and not model.several_labels)
    if data.columns.label is None or not names or not (is_told or mapping):
        return None

    counts: Counter[str | None] = Counter()
    foils: set[str] = set()
    for row in chosen(data, choice):
        if row.problem is None:
            counts[row.label] += 1
            foils |= {row.foil} if row.foil is not None else set()
    check_mapping(mapping, names, {label for label in counts if label is not None} | foils)
    met = data_labels(counts.elements(), names, mapping)
    if use == "needed":
        _check_some_are_known(met)
    return met if is_told else None


def _check_there_are_labels(data: Data) -> None:
    if data.columns.label is None:
        raise InputError(
            "labels= (--labels) says what labels of the data mean, and no column of them is known: "
            "name it by label= (--label COLUMN)."
        )


def _check_some_are_known(met: DataLabels) -> None:
    if met.labels and not met.known:
        first = met.unknown[0]
        raise InputError(
            f"the model has none of the labels of the data. The data say "
            f"{_listed([label.given for label in met.unknown])}; the model says "
            f"{_listed(met.names)}. Say which is which: --labels {first.given}=… "
            f"(labels={{{first.given!r}: …}}); or name another column by --label."
        )


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def label_lines(met: DataLabels | None, use: Use) -> list[str]:
    """All that is said of the labels, before any work."""
    return [] if met is None else draw("label_sentences", met, use == "needed")


def warn_of_labels(met: DataLabels | None, use: Use) -> None:
    """Tell a caller in Python which labels the model does not have, through the log ``whence``."""
    if met is not None and met.unknown:
        log.warning("%s", draw("unknown_sentences", met, use == "needed")[0])


def labels_in(run: Run) -> DataLabels | None:
    """The labels of all rows of a run beside the model's; None where the model chooses no label."""
    names = run.manifest.asked.get("labels", ())
    if not names or run.manifest.data["columns"].get("label") is None:
        return None
    counted = run.query(
        "select label, count(*) as texts from rows where problem is null group by label"
    ).to_pylist()
    return data_labels(_repeated(counted), names, mapping_in(run.manifest.asked))


def _repeated(counted: Sequence[Mapping[str, Any]]) -> Iterator[str | None]:
    for one in counted:
        yield from [one["label"]] * one["texts"]


def mapping_in(asked: Mapping[str, Any]) -> Mapping[str, str]:
    """What a run was told of labels of the data; nothing in runs of before."""
    return asked.get(MAPPING, {})
