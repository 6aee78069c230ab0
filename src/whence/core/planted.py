"""PlantedTruth: how often each method finds a mechanism that is known, beside chance.

A *mechanism* is what a model was made to look at: its planted words are *gold*. A method has
*found* the mechanism in a text if it ranks all gold words above all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from whence.core.answer import CONTROL
from whence.core.errors import InputError, unknown_name
from whence.core.evidence import Verdict
from whence.core.render import draw, render
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_json, write_text

# in this order they are run and shown
MECHANISMS = ("keyword", "pair", "negation", "position", "leak", "distractor")
PREFIX = "planted-"  # of the bundled models' names
SCHEMA = 1
HALF = 0.5


@dataclass(frozen=True)
class PlantedText:
    """A text of the suite: the places of its gold words, and of decoys, which do nothing."""

    text: str
    gold: tuple[int, ...]
    decoys: tuple[int, ...]
    label: str  # what the model says, for the sake of the gold words


@dataclass(frozen=True)
class Planted:
    """A mechanism in the suite, and what a random ranking of the words gets, exactly.

    ``chance`` is the number of ``texts`` in which it ranks all gold words first, on average, and
    ``chance_range`` holds 95 % of what it gets. ``chance_recall`` is the share of gold words that
    it has among as many first ones.
    """

    name: str
    about: str
    model: str
    fingerprint: str
    texts: int
    chance: float
    chance_range: tuple[float, float]
    chance_recall: float


@dataclass(frozen=True)
class Finding:
    """One method on one mechanism.

    ``found`` counts the texts in which all gold words are ranked first; where scores are tied, a
    text counts by the share of tie-breaks that do so. ``share`` is ``found`` by ``texts``, with
    Wilson's 95 % ``interval``. ``recall`` is the mean share of gold words among as many first ones.
    ``fooled`` counts the texts in which a decoy comes first. ``p`` is the chance that random scores
    with the same ties find as much; ``adjusted`` is p after Holm's correction for all methods and
    mechanisms that were tried.
    """

    method: str
    mechanism: str
    texts: int
    found: float
    recall: float
    fooled: float
    interval: tuple[float, float]
    p: float
    adjusted: float
    verdict: Verdict

    @property
    def share(self) -> float:
        """Of all texts, those in which the mechanism was found."""
        return self.found / self.texts

    @property
    def finds(self) -> bool:
        """In most texts, whatever the draw of texts: the whole interval lies above a half.

        And not by chance: of texts of two words, random scores find all gold words in every second.
        """
        return self.interval[0] > HALF and self.verdict is Verdict.BETTER


@dataclass(frozen=True)
class Said:
    """What one method says of one text: its scores, and the share of tie-breaks that find it."""

    scores: tuple[float, ...]
    signed: bool
    found: float


@dataclass(frozen=True)
class Example:
    """A text of a mechanism with what each method says of it."""

    mechanism: str
    text: str
    units: tuple[str, ...]
    gold: tuple[int, ...]
    decoys: tuple[int, ...]
    label: str
    said: Mapping[str, Said]


@dataclass(frozen=True, repr=False)
class PlantedTruth:
    """How often each method finds each planted mechanism.

    Signed scores are ranked towards the predicted label, which the gold words hold up: the highest
    score first. Scores without a sign are ranked in the same way.

    >>> truth["occlusion", "keyword"].found       # doctest: +SKIP
    30.0
    >>> truth.to_html("planted.html")             # doctest: +SKIP
    """

    mechanisms: tuple[Planted, ...]
    findings: tuple[Finding, ...]
    examples: tuple[Example, ...] = ()
    seed: int = 0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.mechanisms or not self.findings:
            raise InputError("a planted truth holds at least one mechanism and one method.")
        names = [mechanism.name for mechanism in self.mechanisms]
        for mechanism in self.mechanisms:
            if mechanism.texts < 1:
                raise InputError(f"the mechanism {mechanism.name!r} has no texts.")
        seen = set()
        for finding in self.findings:
            if finding.mechanism not in names:
                raise unknown_name("mechanism here", finding.mechanism, names)
            key = finding.method, finding.mechanism
            if key in seen:
                raise InputError(f"{finding.method} on {finding.mechanism} is there twice.")
            seen.add(key)
            if not 0 <= finding.found <= finding.texts or finding.texts < 1:
                raise InputError(
                    f"{finding.method} cannot find {finding.found:g} of {finding.texts} texts."
                )
        for example in self.examples:
            _check(example)

    def __getitem__(self, key: tuple[str, str]) -> Finding:
        method, mechanism = key
        for finding in self.findings:
            if (finding.method, finding.mechanism) == key:
                return finding
        known = [planted.name for planted in self.mechanisms]
        if mechanism not in known:
            raise unknown_name("mechanism here", mechanism, known)
        raise unknown_name("method here", method, {finding.method for finding in self.findings})

    def of(self, method: str) -> dict[str, Finding]:
        """What a method found, by mechanism; a mechanism on which it cannot run is missing."""
        return {finding.mechanism: finding for finding in self.findings if finding.method == method}

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods, those first that find most; the control is last."""
        names = dict.fromkeys(finding.method for finding in self.findings)
        return tuple(sorted(names, key=self._place))

    def _place(self, method: str) -> tuple[bool, int, float]:
        found = self.of(method).values()
        shares = sum(finding.share for finding in found)
        return method == CONTROL, -sum(finding.finds for finding in found), -shares

    def finding_all(self) -> tuple[str, ...]:
        """The methods that find every mechanism."""
        every = []
        for method in self.methods:
            found = self.of(method)
            if len(found) == len(self.mechanisms) and all(f.finds for f in found.values()):
                every.append(method)
        return tuple(every)

    # ------------------------------------------------------------------ as data

    def records(self) -> list[dict[str, Any]]:
        """A row for each method and mechanism, ready for ``pandas.DataFrame``."""
        chances = {planted.name: planted for planted in self.mechanisms}
        rows = []
        for method in self.methods:
            for finding in self.of(method).values():
                planted = chances[finding.mechanism]
                low, high = finding.interval
                rows.append(
                    {
                        "method": method,
                        "mechanism": finding.mechanism,
                        "texts": finding.texts,
                        "found": finding.found,
                        "share": finding.share,
                        "low": low,
                        "high": high,
                        "recall": finding.recall,
                        "fooled": finding.fooled,
                        "chance": planted.chance,
                        "chance_recall": planted.chance_recall,
                        "p": finding.p,
                        "adjusted": finding.adjusted,
                        "verdict": str(finding.verdict),
                        "finds": finding.finds,
                    }
                )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the answer first; ``from_dict`` gives them back."""
        findings = []
        for finding in self.findings:
            findings.append({**asdict(finding), "verdict": str(finding.verdict)})
        return {
            "schema": SCHEMA,
            "kind": "planted",
            "answer": draw("planted_sentences", self),
            "seed": self.seed,
            "mechanisms": [asdict(planted) for planted in self.mechanisms],
            "findings": findings,
            "settings": {name: dict(given) for name, given in self.settings.items()},
            "skipped": dict(self.skipped),
            "versions": dict(self.versions),
            "examples": [asdict(example) for example in self.examples],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> PlantedTruth:
        """What ``to_dict`` gave."""
        stored = as_stored(stored, "planted truth")
        stored["schema"].whole(1, SCHEMA)
        settings = stored["settings"].entries()
        return stored.made(
            lambda: cls(
                mechanisms=tuple(item.record(Planted) for item in stored["mechanisms"].items()),
                findings=tuple(item.record(Finding) for item in stored["findings"].items()),
                examples=tuple(item.record(Example) for item in stored["examples"].items()),
                seed=stored["seed"].whole(),
                settings={name: given.plain_record() for name, given in settings.items()},
                skipped=stored["skipped"].typed(dict[str, str]),
                versions=stored["versions"].typed(dict[str, str]),
            )
        )

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    # ------------------------------------------------------------------ as tables and pages

    def to_csv(self, path: str | Path | None = None, *, safe: bool = True) -> str:
        """A row for each method and mechanism; also written to ``path`` when one is given.

        A name that a spreadsheet would take for a formula gets an apostrophe in front, unless
        ``safe=False``.
        """
        rows = self.records()
        content = draw("records_csv", list(rows[0]), rows, safe)
        if path is not None:
            write_text(path, content)
        return content

    def to_latex(self) -> str:
        """A table for a paper: a row for each method, a column for each mechanism."""
        return draw("planted_latex", self)

    def to_markdown(self) -> str:
        """The same table in Markdown."""
        return draw("planted_markdown", self)

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("planted_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def to_text(self) -> str:
        """What ``print`` shows."""
        return render("planted_text", self)

    def __repr__(self) -> str:
        mechanisms = ", ".join(planted.name for planted in self.mechanisms)
        return visible(f"PlantedTruth({len(self.methods)} methods; {mechanisms})")

    def _repr_html_(self) -> str:
        return render("planted_fragment", self)

    def __str__(self) -> str:
        return self.to_text()


def _check(example: Example) -> None:
    """Raise where a score or a place belongs to no word."""
    count = len(example.units)
    for method, said in example.said.items():
        if len(said.scores) != count:
            raise InputError(
                f"{method} has {len(said.scores)} scores for the {count} words of an example."
            )
    places: Iterable[int] = (*example.gold, *example.decoys)
    if any(not 0 <= place < count for place in places):
        raise InputError(f"a planted word of {example.text!r:.40} stands outside of it.")
