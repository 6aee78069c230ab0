"""A Comparison: what several methods say of one text and one target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whence.core.attribution import Attribution, Cost
from whence.core.errors import unknown_name
from whence.core.render import render, write_text


@dataclass(frozen=True, eq=False)
class Comparison:
    """Attributions by method name, the total cost, and the methods that do not fit the model, with the reason.

    >>> c["gradient-x-input"].top(3)       # doctest: +SKIP
    >>> c.to_html("report.html")           # doctest: +SKIP
    """

    attributions: Mapping[str, Attribution]
    cost: Cost
    skipped: Mapping[str, str] = field(default_factory=dict)

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

    def table(self) -> list[dict[str, Any]]:
        """One row per unit: the unit and its raw score by each method; ready for ``pandas.DataFrame``."""
        return [
            {"unit": name, **{method: float(a.scores[i]) for method, a in self.attributions.items()}}
            for i, name in enumerate(self.first.names)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        from dataclasses import asdict

        return {
            "schema": 1,
            "kind": "comparison",
            "attributions": {name: a.to_dict() for name, a in self.attributions.items()},
            "cost": asdict(self.cost),
            "skipped": dict(self.skipped),
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("comparison_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        return render("comparison_fragment", self)

    def __str__(self) -> str:
        return render("comparison_text", self)
