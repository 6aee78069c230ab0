"""A Generation: a text that a model wrote, and what each token of it was written from.

It is a matrix, outputs × units. An output is one token that the model wrote; its units are those
of the prompt and of what was written before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from whence.core.attribution import SCHEMA, Attribution, Cost, check_schema
from whence.core.comparison import Comparison
from whence.core.cutting import unit_of_tokens, unit_spans
from whence.core.errors import InputError
from whence.core.once import once
from whence.core.passage import Passage
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

ADDITIVE = (
    "log-probability",
    "cross-entropy",
    "kl",
)  # readings of a text that are sums over its tokens


@dataclass(frozen=True)
class Output:
    """One token that the model wrote, or was given as written.

    ``entropy`` is that of all that could have stood there, in nats. ``alternatives`` are the most
    likely tokens with their probabilities, the likeliest first. ``unit`` is the unit of the text to
    which it belongs; None for a special token, such as the end of the sequence.
    """

    name: str
    id: int
    probability: float
    entropy: float
    alternatives: Mapping[str, float]
    unit: int | None

    @classmethod
    def from_dict(cls, stored: Stored, units: int) -> Output:
        """What ``asdict`` gave."""
        unit = stored["unit"].given()
        alternatives = stored["alternatives"].entries()
        return cls(
            name=stored["name"].text(),
            id=stored["id"].whole(),
            probability=stored["probability"].number(0.0, 1 + ROUNDING),
            entropy=stored["entropy"].number(-ROUNDING),
            alternatives={k: v.number(0.0, 1 + ROUNDING) for k, v in alternatives.items()},
            unit=None if unit is None else unit.whole(0, units - 1),
        )


def written_words(passage: Passage) -> tuple[range, ...]:
    """The outputs that spell one word each, in order; a special token stands alone.

    They are words of the text whatever the units are: sentences, tokens, or the prompt's only.
    """
    first = passage.output_place(0)
    special = passage.special[first:]
    spans = passage.spans[first:][~special]
    word_of = np.full(passage.outputs, -1)
    unit_of = unit_of_tokens(unit_spans(passage.pair or "", spans, "word"), spans, "word")
    word_of[~special] = unit_of

    groups: list[range] = []
    for number in range(passage.outputs):
        goes_on = number > 0 and word_of[number] == word_of[number - 1] >= 0
        if goes_on:
            groups[-1] = range(groups[-1].start, number + 1)
        else:
            groups.append(range(number, number + 1))
    return tuple(groups)


@dataclass(frozen=True, eq=False, repr=False)
class Generation(WrittenResult):
    """What a model wrote after a prompt, explained token by token.

    ``outputs`` are all tokens that were written. ``explained`` are the numbers of those that were
    explained, and ``rows[method]`` has an Attribution for each of these, over the units before it.
    ``chosen`` compares the methods on one target, an output or several together (by default all
    that was written), with evidence beside random rankings. ``decoding`` says how the text came
    about, ``skipped`` why a method is missing, and ``notes`` what else to know.

    >>> g["gradient-x-input"][0].top(3)       # doctest: +SKIP
    >>> g.matrix("gradient-x-input").shape    # doctest: +SKIP
    (30, 38)
    """

    view: ClassVar[str] = "generation"
    called: ClassVar[str] = "generation"

    passage: Passage
    outputs: tuple[Output, ...]
    explained: tuple[int, ...]
    rows: Rows
    decoding: Mapping[str, Any]
    cost: Cost
    chosen: Comparison | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_rows(self.passage, len(self.outputs), self.rows, self.explained)

    @property
    def prompt(self) -> str:
        """The text that came first."""
        return self.passage.text

    @once
    def words(self) -> tuple[range, ...]:
        """The outputs that spell one word each, in order; a special token stands alone."""
        return written_words(self.passage)

    def matrix(self, method: str) -> Float[np.ndarray, "explained unit"]:
        """The scores, a row for each explained output; NaN for units that do not stand before it.

        Only prompts have columns where only prompts were scored.
        """
        rows = self[method]
        table = np.full((len(rows), len(self.units)), np.nan)
        for row, attribution in zip(table, rows, strict=True):
            row[: len(attribution.scores)] = attribution.scores
        return table

    def of(self, output: int, method: str | None = None) -> Attribution:
        """The attribution of one output, by its number; by the first method if none is named."""
        if output not in self.explained:
            listed = ", ".join(map(str, self.explained[:12]))
            raise InputError(f"output {output} was not explained; explained are {listed}.")
        name = self.methods[0] if method is None else method
        return self[name][self.explained.index(output)]

    @property
    def wholes(self) -> tuple[range, ...]:
        """The ``words`` of which every token was explained; tokens of others stand alone."""
        explained = set(self.explained)
        groups: list[range] = []
        for word in self.words:
            if explained.issuperset(word):
                groups.append(word)
            else:
                groups += [range(i, i + 1) for i in word if i in explained]
        return tuple(groups)

    @property
    def contrast(self) -> Comparison | None:
        """``chosen``, where it is a contrast of two whole texts; None otherwise."""
        if self.chosen is None or self.chosen.first.target.against_ids is None:
            return None
        return self.chosen

    def adds_up(self, method: str) -> bool:
        """Whether the scores of several outputs are added where these are taken together.

        They are where they have signs and speak of a sum: the log-probability of a text is that of
        its tokens together. All others are averaged.
        """
        return all(a.signed and a.target.read in ADDITIVE for a in self[method])

    def together(self, outputs: Sequence[int], method: str | None = None) -> np.ndarray:
        """The scores of several outputs taken together, over the units before the first of them.

        Signed scores of log-probabilities are added, as these add up; others are averaged.
        """
        name = self.methods[0] if method is None else method
        first = self.of(outputs[0], name)
        rows = [self.of(output, name).scores[: len(first.scores)] for output in outputs]
        return np.sum(rows, axis=0) if self.adds_up(name) else np.mean(rows, axis=0)

    def table(self) -> list[dict[str, Any]]:
        """One row for each explained output, unit and method; ready for ``pandas.DataFrame``.

        Rows of a contrast of whole texts come last, without the number of an output.
        """
        records = []
        for method, attributions in self.rows.items():
            for number, attribution in zip(self.explained, attributions, strict=True):
                for place, score in enumerate(attribution.scores.tolist()):
                    records.append(
                        {
                            "method": method,
                            "output": number,
                            "token": self.outputs[number].name,
                            "unit": place,
                            "word": attribution.units.names[place],
                            "score": score,
                        }
                    )
        for method, attribution in (
            {} if self.contrast is None else self.contrast.attributions
        ).items():
            sides = (attribution.target.label, attribution.target.against)
            both = " rather than ".join(str(side).strip() for side in sides)
            for place, score in enumerate(attribution.scores.tolist()):
                records.append(
                    {
                        "method": method,
                        "output": None,
                        "token": both,
                        "unit": place,
                        "word": attribution.units.names[place],
                        "score": score,
                    }
                )
        return records

    def to_csv(self, path: str | Path | None = None, *, safe: bool = True) -> str:
        """The table as CSV, in which all numbers keep all their digits; also written to ``path``.

        A word that a spreadsheet would take for a formula gets an apostrophe in front, unless
        ``safe=False``.
        """
        records = self.table()
        content = draw("records_csv", list(records[0]), records, safe)
        if path is not None:
            write_text(path, content)
        return content

    def __repr__(self) -> str:
        methods = ", ".join(self.methods)
        return visible(
            f"Generation({len(self.outputs)} outputs, {len(self.units)} units; by {methods})"
        )

    def plot(self, method: str | None = None, ax: Any = None) -> Any:
        """A heat map, outputs × units, of one method; of the first if none is named.

        matplotlib's Axes in and out.
        """
        return draw("plot_generation", self, method, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the passage once; ``from_dict`` gives them back."""
        return {
            "schema": SCHEMA,
            "kind": "generation",
            "passage": self.passage.to_dict(),
            "outputs": [asdict(output) for output in self.outputs],
            "explained": list(self.explained),
            "rows": stored_rows(self.rows),
            "decoding": dict(self.decoding),
            "cost": asdict(self.cost),
            "chosen": None if self.chosen is None else self.chosen.to_dict(),
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Generation:
        """What ``to_dict`` gave."""
        check_schema(stored, "generation")
        stored = as_stored(stored, "generation")
        passage = read_passage(stored["passage"])
        explained = tuple(stored["explained"].wholes(None, 0, passage.outputs - 1).tolist())
        chosen = stored["chosen"].given()
        units = len(passage.unit_spans)
        return stored.made(
            lambda: cls(
                passage=passage,
                outputs=tuple(Output.from_dict(o, units) for o in stored["outputs"].items()),
                explained=explained,
                rows=read_rows(stored["rows"], passage, explained),
                decoding=dict(stored["decoding"].value),
                cost=stored["cost"].record(Cost),
                chosen=None if chosen is None else Comparison.from_dict(chosen),
                skipped={k: v.text() for k, v in stored["skipped"].entries().items()},
                notes=stored["notes"].texts(),
            )
        )
