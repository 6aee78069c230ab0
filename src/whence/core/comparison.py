"""A Comparison: what several methods say of one text and one target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from whence.core.agreement import Agreement, agreement
from whence.core.answer import Answer, answer
from whence.core.attribution import Attribution, Cost, check_schema
from whence.core.attributions import Attributions, read_entries
from whence.core.errors import unknown_name
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.render import draw, render
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.units import Units
from whence.core.writing import write_json, write_text


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Attributions by method, their total cost, and why some methods were left out.

    ``plan`` says what was made smaller to keep the cost within bounds; None if nothing was.

    >>> c["gradient-x-input"].top(3)       # doctest: +SKIP
    >>> c.to_html("report.html")           # doctest: +SKIP
    """

    attributions: Mapping[str, Attribution]
    cost: Cost
    skipped: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None

    def __post_init__(self) -> None:
        by_method = Attributions("method", self.attributions, self.cost)
        object.__setattr__(self, "attributions", by_method)

    def __getitem__(self, name: str) -> Attribution:
        if name not in self.attributions:
            raise unknown_name("method in this comparison", name, self.attributions)
        return self.attributions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.attributions)

    def __len__(self) -> int:
        return len(self.attributions)

    @property
    def first(self) -> Attribution:
        """Any one of them: passage, target and prediction are the same in all."""
        return next(iter(self.attributions.values()))

    @property
    def passage(self) -> Passage | None:
        """What was explained, once for all methods."""
        return self.first.passage

    @property
    def units(self) -> Units:
        """What is scored."""
        return self.first.units

    def table(self) -> list[dict[str, Any]]:
        """One row per unit: the unit and its raw score by each method.

        It is ready for ``pandas.DataFrame``.
        """
        return self._container.table()

    @property
    def _container(self) -> Attributions:
        assert isinstance(self.attributions, Attributions)
        return self.attributions

    def agreement(self, k: int = 5, measure: str = "spearman") -> Agreement:
        """How far the methods agree.

        The rank correlation of every two, the overlap of their top ``k`` units beside chance, and
        the units in conflict. ``measure`` is "spearman" or "kendall" (tau-b).

        >>> c.agreement().conflicts[:3]        # doctest: +SKIP
        """
        return agreement(self.attributions, k, measure)

    @property
    def answer(self) -> Answer:
        """What may be said in a few sentences, and nothing beyond the evidence.

        >>> print(c.answer)                    # doctest: +SKIP
        """
        return answer(self.attributions)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the answer first and the passage once.

        ``from_dict`` gives them back; it draws the answer anew.
        """
        stored = self._container.to_dict()
        del stored["by"]
        about = {"schema": stored.pop("schema"), "kind": "comparison"}
        del stored["kind"]
        said = self.answer.to_dict()
        plan = {} if self.plan is None else {"plan": self.plan.to_dict()}
        return about | {"answer": said} | plan | stored | {"skipped": dict(self.skipped)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Comparison:
        """What ``to_dict`` gave, of this schema or an older one."""
        check_schema(stored, "comparison")
        stored = as_stored(stored, "comparison")
        entries, cost = read_entries(stored), stored["cost"].record(Cost)
        skipped = {name: why.text() for name, why in stored["skipped"].entries().items()}
        plan = stored.get("plan")
        smaller = None if plan is None else Plan.from_dict(plan)
        return stored.made(lambda: cls(entries, cost, skipped, smaller))

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def to_text(self, full: bool = False) -> str:
        """What ``print`` shows; with ``full`` also every score, cost and note."""
        return draw("comparison_text", self, full=full)

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("comparison_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def to_pandas(self, table: Literal["units", "methods"] = "units") -> Any:
        """A pandas.DataFrame with a row for each method and unit, or with a row for each method.

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

        The first has the coloured text, a line for each method; the second the verdicts with p,
        what each cost, and how far it may be off. ``part`` asks for one alone: ``"text"``,
        ``"methods"``, or ``"units"``, a table with a row for each unit.
        """
        return draw("result_latex", self, part)

    def to_markdown(self, table: Literal["units", "methods"] = "units") -> str:
        """A table in Markdown: a row for each unit with its score by each method.

        With ``table="methods"`` a row for each method: its verdict, cost and error.
        """
        return draw("result_markdown", self, table)

    def plot_agreement(self, ax: Any = None, of: str = "correlation", k: int = 5) -> Any:
        """A heat map of every two methods' rank correlation. matplotlib's Axes in and out.

        With ``of="overlap"`` it shows the share of their top ``k`` units that they have in common.
        """
        return draw("plot_agreement", self, ax=ax, of=of, k=k)

    def __repr__(self) -> str:
        methods = ", ".join(self.attributions)
        about = f"{self.first.target.describe()}, {len(self.units)} units"
        return visible(f"Comparison({methods}; {about})")

    def _repr_html_(self) -> str:
        return render("comparison_fragment", self)

    def __str__(self) -> str:
        return render("comparison_text", self)
