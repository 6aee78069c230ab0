"""A ContextUse: which words of an output depend on its context, and on which words of that.

Both steps of PECoRe (Sarti et al. 2024) in one result. The numbers of the first are made in
``core/context_use.py``; those of the second are Attributions over the units of the context.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from whence.core.attribution import SCHEMA, Attribution, Cost, check_schema
from whence.core.context_use import MEASURES, RULES, Measure, Rule, selected
from whence.core.cutting import sentence_starts
from whence.core.errors import InputError, unknown_name
from whence.core.once import once
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.render import draw
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_text
from whence.core.written import (
    ROUNDING,
    Rows,
    WrittenResult,
    check_rows,
    read_passage,
    read_rows,
    stored_rows,
)

# a score below this share of the largest is no reason: it may be all that is left beside what
# speaks the other way
WORTH_NAMING = 0.1


@dataclass(frozen=True)
class Dependence:
    """One written token, with the context and without it.

    ``probability`` is what the model gave it with context, ``without`` what it gave it without.
    ``score`` is the measure's. ``instead`` is the likeliest token without context, which may be the
    written one. ``word`` is the number of the written word that it belongs to; None for a special
    token, such as the end of the sequence.
    """

    name: str
    id: int
    probability: float
    without: float
    score: float
    instead: str
    instead_id: int
    word: int | None

    @property
    def is_same(self) -> bool:
        """Whether the model would have written this without context, too."""
        return self.id == self.instead_id

    @classmethod
    def from_dict(cls, stored: Stored) -> Dependence:
        """What ``asdict`` gave."""
        word = stored["word"].given()
        return cls(
            name=stored["name"].text(),
            id=stored["id"].whole(),
            probability=stored["probability"].number(0.0, 1 + ROUNDING),
            without=stored["without"].number(0.0, 1 + ROUNDING),
            score=stored["score"].number(),
            instead=stored["instead"].text(),
            instead_id=stored["instead_id"].whole(),
            word=None if word is None else word.whole(),
        )


@dataclass(frozen=True)
class Selection:
    """How outputs were selected: see ``whence.core.context_use.selected``.

    ``threshold`` is what came of it for this output; None where none was asked for. ``factor``
    says that a token counts too whose own probability changes so many times, up or down.
    """

    measure: Measure = "kl-divergence"
    rule: Rule = "tool"
    deviations: float | None = 1.0
    most: int | None = None
    least: float | None = None
    threshold: float | None = None
    factor: float | None = None

    @property
    def is_relative(self) -> bool:
        """Whether tokens were held against each other, so that one may depend and not be selected.

        By a threshold of this output's own scores, or as the strongest few of them.
        """
        return self.deviations is not None or self.most is not None

    @classmethod
    def from_dict(cls, stored: Stored) -> Selection:
        """What ``asdict`` gave."""
        for name, choices in (("measure", MEASURES), ("rule", RULES)):
            if stored[name].text() not in choices:
                raise stored[name].expected(f"one of {', '.join(choices)}")
        return stored.record(cls)


@dataclass(frozen=True, eq=False, repr=False)
class ContextUse(WrittenResult):
    """What of an output came from its context.

    ``passage`` is context, input and output, with units of the context alone; ``without`` is the
    same output behind the prompt without context. ``outputs`` are all written tokens; ``selected``
    are the numbers of those that depend on the context, and ``rows[method]`` has an Attribution for
    each of these, over the units of the context.

    >>> import whence
    >>> model = whence.load("writer")
    >>> use = whence.context(
    ...     model, "The movie was", "I hated every minute.", max_new_tokens=6, evidence=False
    ... )
    >>> len(use.outputs), use.units.texts[:2]
    (6, ('I', ' hated'))
    """

    view: ClassVar[str] = "context"
    called: ClassVar[str] = "result"

    passage: Passage
    without: Passage
    input: str
    outputs: tuple[Dependence, ...]
    selected: tuple[int, ...]
    selection: Selection
    rows: Rows
    decoding: Mapping[str, Any]
    cost: Cost
    provenance: Provenance
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_rows(self.passage, len(self.outputs), self.rows, self.selected)

    # ------------------------------------------------------------------ the first step

    @property
    def scores(self) -> Float[np.ndarray, " output"]:
        """How far each written token depends on the context."""
        return np.array([output.score for output in self.outputs])

    @once
    def words(self) -> tuple[range, ...]:
        """The outputs that spell one word each, in order; a special token stands alone."""
        groups: list[range] = []
        last: int | None = None
        for number, output in enumerate(self.outputs):
            if output.word is not None and output.word == last:
                groups[-1] = range(groups[-1].start, number + 1)
            else:
                groups.append(range(number, number + 1))
            last = output.word
        return tuple(groups)

    @once
    def sentences(self) -> tuple[range, ...]:
        """The outputs that spell one sentence each, in order."""
        starts = sentence_starts(self.text)
        groups: list[range] = []
        last = -1
        for number in range(len(self.outputs)):
            # a special token, which stands nowhere, stays with the sentence before it
            sentence = max(bisect_right(starts, self._first_character(number)) - 1, last, 0)
            if sentence == last:
                groups[-1] = range(groups[-1].start, number + 1)
            else:
                groups.append(range(number, number + 1))
            last = sentence
        return tuple(groups)

    def _first_character(self, output: int) -> int:
        """Where a written token begins, without the space before it.

        A piece of a character begins where the character is spelt out; a special token nowhere.
        """
        for number in range(output, len(self.outputs)):
            start, end = self.passage.spans[self.passage.output_place(number)].tolist()
            if start == end and self.outputs[number].word is not None:
                continue
            piece = self.text[start:end]
            return start + len(piece) - len(piece.lstrip()) if piece.strip() else start
        return len(self.text)

    @property
    def strongest(self) -> tuple[int, ...]:
        """The selected outputs, those that depend most on the context first."""
        return tuple(sorted(self.selected, key=lambda number: -abs(self.outputs[number].score)))

    # ------------------------------------------------------------------ the second step

    def of(self, output: int, method: str | None = None) -> Attribution:
        """The attribution of one selected output; by the first method if none is named."""
        if output not in self.selected:
            listed = ", ".join(map(str, self.selected)) or "none"
            raise InputError(
                f"output {output} was not found to depend on the context; found were {listed}."
            )
        name = self.methods[0] if method is None else method
        return self[name][self.selected.index(output)]

    def together(
        self, method: str | None = None, outputs: range | None = None
    ) -> Float[np.ndarray, " unit"]:
        """What each unit of the context did for the selected outputs: the sum of its scores.

        ``outputs`` are those of one sentence, say; by default all.
        """
        total = np.zeros(len(self.units))
        for output in self.selected:
            if outputs is None or output in outputs:
                total += self.of(output, method).scores
        return total

    def sources(
        self, output: int | range | None = None, method: str | None = None
    ) -> tuple[int, ...]:
        """The units of the context that stand out, the strongest first.

        Those of one selected output; of those selected in a range of outputs, such as one of
        ``sentences``; or, if nothing is named, of all together. Where scores have signs,
        a word rests on what speaks for it: what speaks against it is none of them (see
        ``opposing``). They are selected as the outputs were, by mean and standard deviation; where
        that leaves none, it is the strongest alone. What is below a tenth of the largest score,
        whatever that one's sign, is none. There are none where nothing was selected, or nothing
        speaks for it.
        """
        return self._standing_out(output, method, 1.0)

    def opposing(
        self, output: int | range | None = None, method: str | None = None
    ) -> tuple[int, ...]:
        """The units of the context that stand out as speaking *against* it, the strongest first.

        As for ``sources``; there are none where scores have no signs.
        """
        return self._standing_out(output, method, -1.0)

    def _standing_out(
        self, output: int | range | None, method: str | None, sign: float
    ) -> tuple[int, ...]:
        if not self.selected:
            return ()
        if output is None or isinstance(output, range):
            scores = self.together(method, output)
        else:
            scores = self.of(output, method).scores
        sizes = np.maximum(sign * scores, 0.0)
        if not sizes.any():
            return ()
        deviations = self.selection.deviations
        chosen = np.flatnonzero(selected(sizes, "tool", 1.0 if deviations is None else deviations))
        if not len(chosen):
            chosen = np.array([int(sizes.argmax())])
        chosen = chosen[sizes[chosen] >= WORTH_NAMING * np.abs(scores).max()]
        return tuple(sorted(chosen.tolist(), key=lambda unit: -sizes[unit]))

    def place(self, unit: int) -> str:
        """Where a unit stands, in words: "sentence 3 of b.txt".

        Said of a unit of the context wherever one is named: in answers, tips and tables.
        """
        kind = self.passage.kind
        _, start, _ = self.passage.unit_spans[unit]
        for section in self.passage.sections:
            if section.start <= start < section.end:
                if kind == "section":
                    return section.name
                before = [
                    other
                    for other in self.passage.unit_spans[:unit]
                    if section.start <= other[1] < section.end
                ]
                owner = "the context" if section.name == "context" else section.name
                return f"{kind} {len(before) + 1} of {owner}"
        return f"{kind} {unit + 1} of the context"

    # ------------------------------------------------------------------ as tables

    def table(self, of: Literal["outputs", "sources"] = "outputs") -> list[dict[str, Any]]:
        """Rows for ``pandas.DataFrame``: one for each written token.

        With ``"sources"``, one for each selected token, unit of the context and method.
        """
        if of == "outputs":
            return [self._record(number) for number in range(len(self.outputs))]
        if of != "sources":
            raise unknown_name("table of a context", str(of), ("outputs", "sources"))
        records = []
        for method in self.methods:
            for number in self.selected:
                records += self._source_records(number, method)
        return records

    def _record(self, number: int) -> dict[str, Any]:
        output = self.outputs[number]
        return {
            "output": number,
            "token": output.name,
            "with": output.probability,
            "without": output.without,
            "measure": self.selection.measure,
            "score": output.score,
            "selected": number in self.selected,
            "instead": output.instead,
        }

    def _source_records(self, number: int, method: str) -> list[dict[str, Any]]:
        scores = self.of(number, method).scores.tolist()
        kept = self.sources(number, method)
        records = []
        for unit, score in enumerate(scores):
            records.append(
                {
                    "method": method,
                    "output": number,
                    "token": self.outputs[number].name,
                    "unit": unit,
                    "word": self.units.names[unit],
                    "place": self.place(unit),
                    "score": score,
                    "kept": unit in kept,
                }
            )
        return records

    def to_csv(
        self,
        path: str | Path | None = None,
        *,
        of: Literal["outputs", "sources"] = "outputs",
        safe: bool = True,
    ) -> str:
        """A table as CSV, in which all numbers keep all their digits; also written to ``path``.

        A word that a spreadsheet would take for a formula gets an apostrophe in front, unless
        ``safe=False``.
        """
        records = self.table(of)
        columns = list(records[0]) if records else []
        content = draw("records_csv", columns, records, safe)
        if path is not None:
            write_text(path, content)
        return content

    # ------------------------------------------------------------------ shown and stored

    def __repr__(self) -> str:
        """Said where a result stands at a prompt by itself."""
        found = ", ".join(repr(self.outputs[number].name) for number in self.selected[:3])
        return visible(
            f"ContextUse({len(self.selected)} of {len(self.outputs)} outputs depend on "
            f"{len(self.units)} units: {found or 'none'})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the passage once; ``from_dict`` gives them back."""
        return {
            "schema": SCHEMA,
            "kind": "context",
            "passage": self.passage.to_dict(),
            "without": self.without.to_dict(),
            "input": self.input,
            "outputs": [asdict(output) for output in self.outputs],
            "selected": list(self.selected),
            "selection": asdict(self.selection),
            "rows": stored_rows(self.rows),
            "decoding": dict(self.decoding),
            "cost": asdict(self.cost),
            "provenance": self.provenance.to_dict(),
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> ContextUse:
        """What ``to_dict`` gave."""
        check_schema(stored, "context")
        stored = as_stored(stored, "context")
        passage = read_passage(stored["passage"])
        numbers = tuple(stored["selected"].wholes(None, 0, passage.outputs - 1).tolist())
        return stored.made(
            lambda: cls(
                passage=passage,
                without=Passage.from_dict(stored["without"]),
                input=stored["input"].text(),
                outputs=tuple(map(Dependence.from_dict, stored["outputs"].items())),
                selected=numbers,
                selection=Selection.from_dict(stored["selection"]),
                rows=read_rows(stored["rows"], passage, numbers),
                decoding=stored["decoding"].plain_record(),
                cost=stored["cost"].record(Cost),
                provenance=stored["provenance"].record(Provenance),
                skipped={k: v.text() for k, v in stored["skipped"].entries().items()},
                notes=stored["notes"].texts(),
            )
        )
