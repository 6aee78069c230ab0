"""Attributions: several of them over one passage, which is stored once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from whence.core.attribution import SCHEMA, Attribution, Cost, check_schema
from whence.core.errors import InputError, unknown_name
from whence.core.passage import Passage
from whence.core.render import draw
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.units import Units
from whence.core.writing import write_json, write_text


@dataclass(frozen=True, eq=False, repr=False)
class Attributions(Mapping[str, Attribution]):
    """Attributions over the same units, by the name of their method or of their target.

    ``cost`` is what all of them cost together: what they shared is counted once.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> targets = ["positive", "negative"]
    >>> both = whence.explain(model, "not bad", "gradient-l2", target=targets, evidence=False)
    >>> list(both), both.cost.forwards, both.cost.backwards
    (['logit of positive', 'logit of negative'], 1, 2)
    """

    by: Literal["method", "target"]
    entries: Mapping[str, Attribution]
    cost: Cost

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", dict(self.entries))
        if not self.entries:
            raise InputError("several attributions are at least one, and here is none.")
        units = [attribution.units for attribution in self.entries.values()]
        if any(others != units[0] for others in units[1:]):
            raise InputError(
                "attributions are kept together where they score the same units, "
                "and these do not: keep those of each text apart."
            )

    @property
    def first(self) -> Attribution:
        """Any one of them: passage and units are the same in all."""
        return next(iter(self.entries.values()))

    @property
    def passage(self) -> Passage | None:
        """What was explained; None where the units are no pieces of an input."""
        return self.first.passage

    @property
    def units(self) -> Units:
        """What is scored."""
        return self.first.units

    def __getitem__(self, name: str) -> Attribution:
        if name not in self.entries:
            raise unknown_name(f"{self.by} among these attributions", name, self.entries)
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return visible(f"Attributions(by {self.by}: {', '.join(self)}; {len(self.units)} units)")

    def __str__(self) -> str:
        return "\n\n".join(str(attribution) for attribution in self.values())

    def table(self) -> list[dict[str, Any]]:
        """One row per unit: the unit and its raw score in each; ready for ``pandas.DataFrame``."""
        rows = []
        for place, name in enumerate(self.units.names):
            row: dict[str, Any] = {"unit": name}
            for entry, attribution in self.items():
                row[entry] = float(attribution.scores[place])
            rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the passage once; ``from_dict`` gives them back."""
        entries = {name: entry.to_dict_without_passage() for name, entry in self.items()}
        stored: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": "attributions",
            "by": self.by,
            "attributions": entries,
            "cost": asdict(self.cost),
        }
        if self.passage is not None:
            stored["passage"] = self.passage.to_dict()
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Attributions:
        """What ``to_dict`` gave."""
        check_schema(stored, "result of several targets")
        stored = as_stored(stored, "result of several targets")
        by = stored["by"].choice(["method", "target"])
        entries, cost = read_entries(stored), stored["cost"].record(Cost)
        return stored.made(lambda: cls(by, entries, cost))  # type: ignore[arg-type]

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def to_pandas(self, table: Literal["units", "methods"] = "units") -> Any:
        """A pandas.DataFrame with a row for each entry and unit, or with a row for each entry.

        The latter is ``table="methods"``. Both have verdict, p, the share of random rankings
        beaten, cost and error of the method; a unit's row has its score and standard error too.
        """
        return draw("result_frame", self, table)

    def to_frame(self, table: Literal["units", "methods"] = "units") -> Any:
        """The same as ``to_pandas``."""
        return self.to_pandas(table)

    def to_arrow(self, table: Literal["units", "methods"] = "units") -> Any:
        """The same as a pyarrow.Table: all digits, and null for what is not known."""
        return draw("result_arrow", self, table)

    def to_csv(
        self,
        path: str | Path | None = None,
        table: Literal["units", "methods"] = "units",
        *,
        safe: bool = True,
    ) -> str:
        """The same as CSV, in which all numbers keep all their digits; also written to ``path``.

        A word that a spreadsheet would take for a formula gets an apostrophe in front, unless
        ``safe=False``.
        """
        content = draw("result_csv", self, table, safe)
        if path is not None:
            write_text(path, content)
        return content

    def to_latex(self, part: Literal["text", "methods", "units"] | None = None) -> str:
        """Two tables for a paper that uses the packages booktabs and xcolor.

        The first has the coloured text, a line for each entry; the second the verdicts with p, what
        each cost, and how far it may be off. ``part`` asks for one alone: ``"text"``,
        ``"methods"``, or ``"units"``, a table with a row for each unit.
        """
        return draw("result_latex", self, part)

    def to_markdown(self, table: Literal["units", "methods"] = "units") -> str:
        """A table in Markdown: a row for each unit with its score by each method.

        With ``table="methods"`` a row for each method: its verdict, cost and error.
        """
        return draw("result_markdown", self, table)


def read_entries(stored: Stored) -> dict[str, Attribution]:
    """The attributions of a container. In whence 0.1 each had a copy of the passage."""
    shared = stored.get("passage")
    passage = None if shared is None else Passage.from_dict(shared)
    entries = {}
    for name, entry in stored["attributions"].entries().items():
        entries[name] = Attribution.from_dict(entry, passage)
    return entries
