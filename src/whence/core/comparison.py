"""A Comparison: what several methods say of one text and one target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from whence.core.agreement import Agreement, agreement
from whence.core.attribution import SCHEMA, Attribution, Cost
from whence.core.errors import LoadError, unknown_name
from whence.core.render import draw, render, write_text


@dataclass(frozen=True, eq=False, repr=False)
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
            {
                "unit": name,
                **{method: float(a.scores[i]) for method, a in self.attributions.items()},
            }
            for i, name in enumerate(self.first.names)
        ]

    def agreement(self, k: int = 5, measure: str = "spearman") -> Agreement:
        """How far the methods agree: rank correlation, overlap of the top ``k`` units beside chance, and the units in conflict.

        ``measure`` is "spearman" or "kendall" (tau-b).

        >>> c.agreement().conflicts[:3]        # doctest: +SKIP
        """
        return agreement(self.attributions, k, measure)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``from_dict`` gives them back."""
        return {
            "schema": SCHEMA,
            "kind": "comparison",
            "attributions": {name: a.to_dict() for name, a in self.attributions.items()},
            "cost": asdict(self.cost),
            "skipped": dict(self.skipped),
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Comparison:
        """What ``to_dict`` gave, of this schema or an older one."""
        schema = d.get("schema") if isinstance(d, Mapping) else None
        if not isinstance(schema, int):
            raise LoadError("this is not a whence comparison: it has no 'schema' number.")
        if schema > SCHEMA:
            raise LoadError(
                f"this comparison has schema {schema}; this whence reads up to {SCHEMA}. Update whence to read it."
            )
        try:
            attributions = {name: Attribution.from_dict(a) for name, a in d["attributions"].items()}
            return cls(attributions, Cost(**d["cost"]), d["skipped"])
        except (KeyError, TypeError, AttributeError) as problem:
            raise LoadError(
                f"this comparison is damaged: {type(problem).__name__}: {problem}."
            ) from problem

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_text(
            path, json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
        )

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("comparison_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def to_latex(self) -> str:
        """A table for a paper that uses the package xcolor: the coloured text, a line for each method."""
        return render("comparison_latex", self)

    def plot_agreement(self, ax: Any = None, of: str = "correlation", k: int = 5) -> Any:
        """A heat map of every two methods' rank correlation, or (``of="overlap"``) of their top ``k`` units in common. Axes in and out."""
        return draw("plot_agreement", self, ax=ax, of=of, k=k)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.attributions)}; {self.first.target.describe()}, {len(self.first.units)} units)"

    def _repr_html_(self) -> str:
        return render("comparison_fragment", self)

    def __str__(self) -> str:
        return render("comparison_text", self)


def read(path: str | Path) -> Attribution | Comparison:
    """Read what ``save`` wrote: an attribution or a comparison."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as problem:
        raise LoadError(f"no file {str(path)!r}.") from problem
    except OSError as problem:
        raise LoadError(f"cannot read {str(path)!r}: {problem.strerror or problem}.") from problem
    except ValueError as problem:
        raise LoadError(f"{str(path)!r} is not JSON: {problem}.") from problem
    if not isinstance(content, dict):
        raise LoadError(f"{str(path)!r} holds no attribution but a {type(content).__name__}.")
    kinds = {"attribution": Attribution.from_dict, "comparison": Comparison.from_dict}
    kind = content.get("kind", "attribution")
    if kind not in kinds:
        raise LoadError(f"{str(path)!r} holds no attribution but a {kind}.")
    return kinds[kind](content)
