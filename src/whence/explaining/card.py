"""card: what was saved of a model, laid side by side. Nothing is run, and no model is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from whence.core.answer import CONTROL, is_tried
from whence.core.answer_of_many import AnswerOfMany, answer_of_counts
from whence.core.attribution import Attribution
from whence.core.audited import Audit, May
from whence.core.card import Card, Finding, Source, Standing
from whence.core.comparison import Comparison
from whence.core.counting import texts_done
from whence.core.errors import InputError, LoadError
from whence.core.evaluation import Evaluation
from whence.core.evidence import Verdict, is_within
from whence.core.generation import Generation
from whence.core.many import Many, Tally
from whence.core.question import Question
from whence.core.reading import read
from whence.runs.manifest import NAME as MANIFEST
from whence.runs.run import Run, open_run

READERS = "whence.explaining."  # modules of which each knows the records of one kind of run
OF_MAY = {
    May.YES: Standing.YES,
    May.SEVERAL: Standing.PART,
    May.NO: Standing.NO,
    May.OPEN: Standing.OPEN,
}
OF_VERDICT = {
    Verdict.BETTER: Standing.YES,
    Verdict.SAME: Standing.OPEN,
    Verdict.WORSE: Standing.NO,
}
# so few texts cannot show that a method is no better than chance
FEWEST_TEXTS = 5
# Said of a source in which nothing was tested.
NO_EVIDENCE = "no method in it was held against random rankings"


def card(*places: str | Path) -> Card:
    """What was saved of one model, side by side: for each method the answers to four questions.

    ``places`` are folders of runs, evaluations and audits, files that ``save`` wrote, or folders
    that hold such. All must be of one model.

    >>> card("runs/reviews", "trials", "audit").to_markdown()      # doctest: +SKIP
    """
    if not places:
        raise InputError("a card needs at least one folder or file of saved results.")
    gathered = _Gathered()
    seen = set()
    for place in places:
        for path in _results_in(Path(place)):
            if path.resolve() not in seen:
                seen.add(path.resolve())
                _gather(gathered, path)
    if not gathered.sources:
        why = "; ".join(f"{name}: {reason}" for name, reason in gathered.left_out.items())
        raise InputError(f"nothing here answers a question about a method ({why}).")
    return Card(
        model=gathered.model,
        sources=tuple(gathered.sources),
        findings=tuple(gathered.findings),
        attention=gathered.attention,
        left_out=gathered.left_out,
    )


@dataclass
class _Gathered:
    model: str = ""
    fingerprint: str = ""
    of: str = ""  # the file that named the model
    sources: list[Source] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    attention: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, source: Source, findings: Sequence[Finding]) -> None:
        """A source with what it says; findings are numbered here."""
        number = len(self.sources)
        self.sources.append(source)
        for finding in findings:
            self.findings.append(replace(finding, source=number))

    def check_model(self, model: str, fingerprint: str, file: str) -> None:
        """Refuse a result of another model, by its fingerprint or else by its name."""
        is_other = model != self.model
        if fingerprint and self.fingerprint:
            is_other = fingerprint != self.fingerprint
        if self.of and is_other:
            weights = " with other weights" if model == self.model else ""
            raise InputError(
                f"a card is of one model: {self.of} is of {self.model!r}, "
                f"and {file} of {model!r}{weights}."
            )
        if not self.of:
            self.model, self.of = model, file
        self.fingerprint = self.fingerprint or fingerprint


def _results_in(place: Path) -> Iterator[Path]:
    """The folder of a run or a file as it is; of another folder what lies directly in it."""
    if not place.exists():
        raise LoadError(f"there is no folder or file {str(place)!r}.")
    if place.is_file() or (place / MANIFEST).is_file():
        yield place
        return
    inside = [path for path in sorted(place.iterdir()) if _may_be_result(path)]
    if not inside:
        raise LoadError(
            f"in {str(place)!r} there is no folder of a run and no saved result (.json)."
        )
    yield from inside


def _may_be_result(path: Path) -> bool:
    return (path / MANIFEST).is_file() if path.is_dir() else path.suffix == ".json"


def _gather(gathered: _Gathered, path: Path) -> None:
    """Said of a file that holds no answer about a method.

    ``a Probe answers another question``
    """
    name = path.name
    if path.is_dir():
        _gather_run(gathered, open_run(path), name)
        return
    result = read(path)
    if isinstance(result, (Attribution, Comparison)):
        _gather_texts(gathered, Many((result,)), name, "comparison")
    elif isinstance(result, Many):
        _gather_texts(gathered, result, name, "texts")
    elif isinstance(result, Generation):
        _gather_generation(gathered, result, name)
    elif isinstance(result, Evaluation):
        _gather_evaluation(gathered, result, name)
    elif isinstance(result, Audit):
        _gather_audit(gathered, result, name)
    else:
        gathered.left_out[name] = f"a {type(result).__name__} answers another question"


# ---------------------------------------------------------------------- folders


def _gather_run(gathered: _Gathered, run: Run, name: str) -> None:
    """A folder: a run of methods, an evaluation, or an audit, by the module that reads it.

    Said of a run without a part that is done.

    ``nothing in it is done yet``
    """
    model = run.manifest.asked.get("model", {})
    of_run = model.get("model", ""), model.get("fingerprint", "")
    gathered.check_model(*of_run, name)
    if not run.parts:
        gathered.left_out[name] = "nothing in it is done yet"
        return
    reader = run.manifest.reader.removeprefix(READERS)
    if reader == "stored_trials":
        from whence.explaining.stored_trials import evaluation_of

        _gather_evaluation(gathered, evaluation_of(run), name, _unfinished(run))
    elif reader == "stored_audit":
        from whence.explaining.stored_audit import audit_of

        _gather_audit(gathered, audit_of(run), name, _unfinished(run))
    else:
        _gather_rows(gathered, run, name)


def _unfinished(run: Run) -> str:
    state = run.state
    return "" if state.is_complete else texts_done(state.done, state.rows)


def _gather_rows(gathered: _Gathered, run: Run, name: str) -> None:
    from whence.explaining.questions import tallies_of

    tallies = tallies_of(run)
    (counted,) = run.query("select count(*) as texts from texts").to_pylist()
    source = Source(
        Question.TEXTS,
        "run",
        name,
        str(run.manifest.data.get("source", "")),
        counted["texts"],  # without those that failed
        note=_unfinished(run) if tallies else NO_EVIDENCE,
    )
    gathered.add(source, _findings_of(tallies, run.state.done))


# ---------------------------------------------------------------------- one text, and many


def _gather_texts(gathered: _Gathered, many: Many, name: str, kind: str) -> None:
    """Said of a file without a text.

    ``it holds no result``
    """
    if not len(many):
        gathered.left_out[name] = "it holds no result"
        return
    for result in many:
        first = result if isinstance(result, Attribution) else result.first
        gathered.check_model(first.provenance.model, first.provenance.fingerprint, name)
    tallies = [tally for tally in many.tallies() if tally.judged]
    note = "" if tallies else NO_EVIDENCE
    if len(many.distinct) > 1:
        source = Source(Question.TEXTS, kind, name, "", len(many), note=note)
        gathered.add(source, _findings_of(tallies, len(many)))
        return
    (result, *_) = many.distinct
    every = [result] if isinstance(result, Attribution) else list(result.attributions.values())
    source = Source(Question.TEXT, "comparison", name, "", 1, note=note)
    gathered.add(source, [_on_one_text(a) for a in every if is_tried(a)])


def _on_one_text(a: Attribution) -> Finding:
    """The verdict on one text, as it is."""
    verdict = _verdict(a)
    p = None if a.evidence is None else a.evidence.p
    return Finding(a.method, 0, OF_VERDICT[verdict], str(verdict), p=p)


def _verdict(a: Attribution) -> Verdict:
    if a.evidence is None or a.evidence.verdict is None:
        return Verdict.SAME
    return a.evidence.verdict


def _gather_generation(gathered: _Gathered, generation: Generation, name: str) -> None:
    findings, outputs = [], 0
    for method, rows in generation.rows.items():
        for a in rows:
            gathered.check_model(a.provenance.model, a.provenance.fingerprint, name)
        outputs = max(outputs, len(rows))
        verdicts = [_verdict(a) for a in rows if is_tried(a)]
        if verdicts:
            won, of = verdicts.count(Verdict.BETTER), len(verdicts)
            standing = {0: Standing.OPEN, of: Standing.YES}.get(won, Standing.PART)
            findings.append(Finding(method, 0, standing, str(Verdict.BETTER), won, of))
    note = "" if findings else NO_EVIDENCE
    source = Source(Question.TEXT, "generation", name, "", outputs, "written token", note)
    gathered.add(source, findings)


def _findings_of(tallies: Sequence[Tally], texts: int) -> list[Finding]:
    """On how many texts each method holds; by the same rule as the answer over many texts."""
    answer = answer_of_counts(texts, Counter(), tallies, texts, 0)
    holding = {tally.method for tally in answer.holding}
    findings = []
    for tally in tallies:
        if tally.judged:
            findings.append(_on_many(tally, tally.method in holding, answer))
    return findings


def _on_many(tally: Tally, holds: bool, answer: AnswerOfMany) -> Finding:
    """Said of each method that was judged on many texts, by the rule of the answer over them.

    ``no more than chance allows, corrected for 9 methods``
    """
    is_more = tally.p is not None and is_within(tally.p)
    standing, said = Standing.NO, "no more than chance allows"
    if holds or (tally.method == CONTROL and is_more):  # the control pays for nobody
        standing, said = Standing.YES, "more than chance allows"
    elif answer.too_few_texts or tally.judged < FEWEST_TEXTS:
        standing, said = Standing.OPEN, "too few texts to tell"
    elif is_more:
        said += f", corrected for {answer.tried} methods"  # alone it would be more
    return Finding(
        tally.method,
        0,
        standing,
        said,
        tally.better,
        tally.judged,
        tally.chance_range,
        tally.p,
    )


# ---------------------------------------------------------------------- measures, and attention


def _gather_evaluation(gathered: _Gathered, table: Evaluation, name: str, note: str = "") -> None:
    gathered.check_model(table.model, "", name)
    columns = [c for c in table.columns if c.kind == "faithfulness" and not c.is_idle]
    findings = []
    for method in table.methods:
        cells = [column.cell(method) for column in columns]
        verdicts = [cell.verdict for cell in cells if cell is not None and cell.verdict]
        if verdicts:
            findings.append(_by_measures(method, verdicts))
    source = Source(Question.MEASURE, "evaluation", name, table.data, table.texts, note=note)
    gathered.add(source, findings)


def _by_measures(method: str, verdicts: Sequence[Verdict]) -> Finding:
    """Said of each method that some measure of faithfulness has judged.

    ``better than its control``
    """
    won, of = verdicts.count(Verdict.BETTER), len(verdicts)
    standing = {0: Standing.NO, of: Standing.YES}.get(won, Standing.PART)
    return Finding(method, 0, standing, "better than its control", won, of)


def _gather_audit(gathered: _Gathered, audit: Audit, name: str, note: str = "") -> None:
    gathered.check_model(audit.model, "", name)
    findings = []
    for verdict in audit.readings:
        standing = OF_MAY[verdict.may]
        findings.append(Finding(verdict.reading, 0, standing, str(verdict.may)))
    if audit.of_all is not None:
        gathered.attention[name] = f"{audit.of_all.may}: {audit.of_all.why}"
    source = Source(Question.ATTENTION, "audit", name, audit.data, audit.texts, note=note)
    gathered.add(source, findings)
