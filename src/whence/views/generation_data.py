"""A generated text inside its page: JSON for what is read, and a byte for each score, deflated.

A score is a whole number of steps of the largest one of its row, so it is off by at most half a
step. Units that do not stand before an output are not stored. All outputs together are a row of
their own: added up, the roundings of thirty rows would be a large part of a small sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whence.core.coarser import coarser_kinds, grouped
from whence.core.generation import Generation, Output
from whence.core.passage import SPECIAL
from whence.core.showing import signs
from whence.views import wording
from whence.views.document import embedded_json
from whence.views.generation import contrast_of, is_signed, output_name, standing, unit_names
from whence.views.markup import element
from whence.views.overview_data import STEPS, quantised
from whence.views.packing import blob

LONGEST_OF_CONTRAST = 60  # characters of each text
WRITTEN = 1  # the part of the units that the model wrote


def packed(g: Generation) -> str:
    """Two inert elements: what is read, and the scores, one byte each."""
    scores, largest = [], []
    for attributions in g.rows.values():
        scales = []
        for attribution in attributions:
            steps, most = quantised(attribution.scores)
            scores.append(steps.tobytes())
            scales.append(_digits(most))
        largest.append(scales)
    content = {
        "methods": [wording.visible(name) for name in g.methods],
        "signed": [is_signed(g, name) for name in g.methods],
        "adds": [g.adds_up(name) for name in g.methods],
        "steps": STEPS,
        "standing": standing(g),
        "largest": largest,
        "all": [_together(g, name) for name in g.methods],
        "before": [len(attribution.scores) for attribution in next(iter(g.rows.values()))],
        "kind": wording.plural(g.passage.kind),
        "units": _units(g),
        "names": unit_names(g),
        "written": [part == WRITTEN for part in g.units.parts],
        "sentences": sentences_of(g),
        "rows": rows_by_kind(g),
        "outputs": [_output(g, number) for number in range(len(g.outputs))],
        "words": [[word.start, word.stop] for word in g.words],
        "explained": list(g.explained),
        "contrast": _contrast(g),
    }
    bytes_of_scores = blob(b"".join(scores))
    return embedded_json(content) + element(
        "script", bytes_of_scores, type="text/plain", data_blob="scores"
    )


def _together(g: Generation, method: str) -> list[Any]:
    """All explained outputs together: the largest score, and each in steps of it."""
    steps, most = quantised(g.together(g.explained, method))
    return [_digits(most), steps.tolist()]


def _contrast(g: Generation) -> dict[str, Any] | None:
    """A contrast of two whole texts: its name, and the scores of each method that has it."""
    if g.contrast is None:
        return None
    judged = g.contrast.attributions
    scores = []
    for method in g.methods:
        own = [_digits(score) for score in judged[method].scores] if method in judged else None
        scores.append(own)
    target = g.contrast.first.target
    both = (target.label, target.against)
    name, other = (wording.beginning(str(one), LONGEST_OF_CONTRAST) for one in both)
    return {"name": f"{name} rather than {other}", "of": contrast_of(g), "scores": scores}


def _digits(number: float) -> float:
    return float(f"{number:.6g}")


def _units(g: Generation) -> list[str]:
    """The units' own characters; one that is only a piece of a character has none."""
    return [wording.visible(text, keep="\n\t") for text in g.units.texts]


def _output(g: Generation, number: int) -> dict[str, Any]:
    """One output; ``text`` is missing where no text stands behind it: special tokens, pieces."""
    output = g.outputs[number]
    told: dict[str, Any] = {
        "name": output_name(output.name),
        "p": _digits(min(output.probability, 1.0)),
        "entropy": _digits(max(output.entropy, 0.0)),
        "others": _alternatives(output),
        "alike": _name_among(output, output.name),
    }
    if output.unit is not None:
        told["unit"] = output.unit
    place = g.passage.output_place(number)
    start, end = g.passage.spans[place].tolist()
    text = g.text[start:end]
    if g.passage.parts[place] != SPECIAL and text:
        told["text"] = wording.visible(text, keep="\n\t")
    return told


def _alternatives(output: Output) -> list[list[Any]]:
    """Names and probabilities of what could have stood there."""
    return [
        [_name_among(output, name), _digits(min(probability, 1.0))]
        for name, probability in output.alternatives.items()
    ]


def _name_among(output: Output, name: str) -> str:
    """A token's name; with its white space where another one would be alike without."""
    shown = output_name(name)
    alike = [other for other in {*output.alternatives, output.name} if output_name(other) == shown]
    if len(alike) == 1:
        return shown
    return signs(name[: len(name) - len(name.lstrip())]) + shown


def sentences_of(g: Generation) -> list[list[int]]:
    """The units of each sentence, from and up to; units that are no smaller stand alone.

    >>> import whence
    >>> model = whence.load("writer")
    >>> g = whence.generate(model, "So good. I like", max_new_tokens=1, evidence=False)
    >>> sentences_of(g)[:2]
    [[0, 3], [3, 5]]
    """
    if g.passage.kind in ("sentence", "section"):
        return [[i, i + 1] for i in range(len(g.units))]
    return [[group.start, group.stop] for group in grouped(g.passage, "sentence")]


def rows_by_kind(g: Generation) -> list[dict[str, Any]]:
    """The kinds of rows in which the units can be shown, the largest first.

    Of each the plural, its groups (from, up to, and a section's name), and whether a row opens
    into smaller units. There are none where the prompt would be one row, or where only its own
    words are left: these the reader shows.

    >>> import whence
    >>> model = whence.load("writer")
    >>> g = whence.generate(model, "So good. I like", max_new_tokens=1, evidence=False)
    >>> [rows["kind"] for rows in rows_by_kind(g)]
    ['sentences', 'words']
    """
    own = g.passage.kind
    kinds = []
    for kind in reversed(coarser_kinds(g.passage)):
        groups = grouped(g.passage, kind)
        if sum(g.units.parts[group.start] != WRITTEN for group in groups) > 1:
            kinds.append(_rows(g, kind, groups, opens=True))
    if kinds or own in ("sentence", "section"):
        singly = tuple(range(unit, unit + 1) for unit in range(len(g.units)))
        if sum(part != WRITTEN for part in g.units.parts) > 1:
            kinds.append(_rows(g, own, singly, opens=False))
    return kinds


def _rows(g: Generation, kind: str, groups: Sequence[range], opens: bool) -> dict[str, Any]:
    return {
        "kind": wording.plural(kind),
        "groups": [[group.start, group.stop, *_name(g, kind, group)] for group in groups],
        "opens": opens,
    }


def _name(g: Generation, kind: str, group: range) -> list[str]:
    """The name of a section, where it has one."""
    part, start, _ = g.passage.unit_spans[group.start]
    if kind != "section" or part == WRITTEN:
        return []
    names = [own.name for own in g.passage.sections if own.start <= start < own.end]
    return [wording.visible(name) for name in names]
