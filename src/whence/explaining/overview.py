"""A whole run, gone through once for its page: counts, accuracy, words, and texts in dispute."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from whence.core.agreement import Conflict, agreement
from whence.core.answer import CONTROL
from whence.core.answer_of_many import AnswerOfMany, answer_of_counts
from whence.core.attribution import NO_LABEL, Attribution
from whence.core.bootstrap import wilson
from whence.core.comparison import Comparison
from whence.core.confusion import Confusion
from whence.core.data_labels import DataLabels, data_labels, match
from whence.core.errors import InputError
from whence.core.evidence import CURVES
from whence.core.many import Failure, Tally
from whence.core.overview import Accuracy, CarryingWord, Overview, Reading, ReadText, by_effect
from whence.explaining.confusion import Judged, Voice, confusion_of
from whence.explaining.data_labels import mapping_in
from whence.explaining.questions import carrying, table_of, tallies_of
from whence.runs.data import Row
from whence.runs.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TEXTS = 2000  # on a page; of more, those on which methods disagree most
MOST_WORDS = 10  # of each method and label
MOST_CARRIERS = 3  # words of a text, in the table of those it is wrong on
WRONG = ("row", "id", "given", "says", "probability", "words", "text")
# units of a text below which two rankings are often alike, or opposite, by chance
FEWEST_UNITS = 8
# what a record of a word has in common with what the page shows
TOLD = ("method", "word", "texts", "share", "low", "high", "total", "is_sure")


@dataclass
class _Counts:
    """What is counted while the results pass."""

    done: int = 0
    predicted: Counter[str] = field(default_factory=Counter)
    signed: dict[str, bool] = field(default_factory=dict)
    labels: tuple[str, ...] = ()  # of the model, by their numbers
    label_by_target: dict[str, str] = field(default_factory=dict)
    read: str = ""
    seen: set[int] = field(default_factory=set)  # texts, by a hash
    named: int = 0  # of them, those of which words can be named
    judged: list[Judged] = field(default_factory=list)  # of what the model has said something
    mapping: Mapping[str, str] = field(default_factory=dict)  # what labels of the data mean
    given: list[str | None] = field(default_factory=list)  # labels of the data


def overview_of(run: Run, most: int = MOST_TEXTS) -> Overview:
    """What the page of a run shows.

    Every result is read once. Of more than ``most`` texts, those on which methods disagree most
    are kept for the page; everything is counted over all of them.

    >>> overview_of(whence.open_run("runs/reviews")).to_html("page.html")    # doctest: +SKIP
    """
    asked = run.manifest.asked
    counts = _Counts(labels=tuple(asked.get("labels", ())), mapping=mapping_in(asked))
    kept: list[tuple[float, int, ReadText]] = []  # those that agree best are dropped first
    for place, row, comparison in run.explained():
        read = _read(place, row, comparison)
        _count(counts, row, comparison, read)
        entry = (-_agreement_or_most(read), -place, read)
        if len(kept) < most:
            heapq.heappush(kept, entry)
        else:
            heapq.heappushpop(kept, entry)

    methods = tuple(m["name"] for m in asked.get("methods", ()) if m["name"] in counts.signed)
    tallies = tuple(tallies_of(run)) if counts.done else ()
    answer = answer_of_counts(
        counts.done, counts.predicted, tallies, len(counts.seen), counts.named
    )
    speaker = _speaker(methods, counts.signed, answer)
    texts = [_with_known_label(read, counts) for _, _, read in kept]
    state = run.state
    return Overview(
        place=run.place.name,
        source=str(run.manifest.data.get("source", "")),
        model=asked.get("model", {}).get("model", ""),
        read=counts.read,
        rows=state.rows,
        done=state.done,
        failed=state.failed,
        methods=methods,
        signed=tuple(counts.signed[name] for name in methods),
        answer=answer,
        tallies=tallies,
        better_intervals=tuple(_better_interval(tally) for tally in tallies),
        accuracy=_accuracy(counts),
        words=tuple(_words(run, counts)) if counts.done else (),
        speaker=speaker,
        texts=tuple(sorted(texts, key=lambda text: text.row)),
        repeated=counts.done - len(counts.seen),
        left_out=counts.done - len(texts),
        failures=tuple(_failures(run)) if state.done else (),
        confusion=confusion_of(run, counts.judged, Voice(speaker, counts.read)),
        labels=_labels(run, counts),
    )


# ---------------------------------------------------------------------- questions


def confusion_table(run: Run) -> pa.Table:
    """How many texts the model calls what, of those that the data call so: a row for each pair.

    >>> whence.open_run("runs/reviews").table("confusion").to_pandas()      # doctest: +SKIP
    """
    confusion = _with_labels(run, overview_of(run, most=0))
    records = [asdict(pair) for pair in confusion.pairs]
    return table_of(("given", "says", "texts"), records)


def wrong_of(run: Run) -> pa.Table:
    """The texts on which the model says something else than the data: the most frequent mistake
    first, and in it the text on which the model is surest.

    ``words`` are those that carry the wrong answer most, by the method that may speak.

    >>> whence.open_run("runs/reviews").table("wrong").to_pandas()          # doctest: +SKIP
    """
    overview = overview_of(run, most=run.state.rows)
    confusion = _with_labels(run, overview)
    order = [(pair.given, pair.says) for pair in confusion.pairs]
    speaks = Voice(overview.speaker, overview.read).may_speak
    records = []
    for read in overview.texts:
        pair = (str(read.label), str(read.predicted))
        if pair not in order or pair[0] == pair[1]:
            continue
        record = {
            "row": read.row,
            "id": read.id,
            "given": pair[0],
            "says": pair[1],
            "probability": read.probability,
            "words": ", ".join(_carriers(read, overview.speaker if speaks else None)),
            "text": read.text,
        }
        records.append((order.index(pair), -(read.probability or 0.0), read.row, record))
    records.sort(key=lambda each: each[:3])
    return table_of(WRONG, [record for *_, record in records])


def _with_labels(run: Run, overview: Overview) -> Confusion:
    if not run.manifest.asked.get("labels") and run.manifest.data["columns"].get("label"):
        raise InputError(
            "this model does not choose one label of a list, so what it says is neither right nor "
            "wrong beside the labels of the data."
        )
    if overview.confusion is None:
        raise InputError(
            "the data of this run have no labels, so nothing says where the model is wrong: name "
            "their column when it is run (--label)."
        )
    return overview.confusion


def _carriers(read: ReadText, method: str | None) -> list[str]:
    """The words that speak most for the wrong answer, or against the right one."""
    reading = None if method is None else read.readings.get(method)
    if reading is None or read.explained not in (read.predicted, read.label):
        return []
    scores = reading.scores if read.explained == read.predicted else -reading.scores
    words = []
    for place in np.argsort(-scores, kind="stable").tolist():
        word = read.pieces[place].strip()
        if scores[place] > 0 and any(map(str.isalnum, word)):
            words.append(word)
    return list(dict.fromkeys(words))[:MOST_CARRIERS]


# ---------------------------------------------------------------------- one text


def _read(place: int, row: Row, comparison: Comparison) -> ReadText:
    first = comparison.first
    label, probability = None, None
    if first.prediction:
        label, probability = max(first.prediction.items(), key=lambda entry: entry[1])
    correlation, conflict = _disagreement(comparison.attributions)
    holding = first.labels_that_hold
    return ReadText(
        row=place,
        number=row.number,
        id=row.id,
        pieces=tuple(first.units.texts),
        parts=tuple(first.units.parts),
        label=row.label,
        predicted=label,
        probability=probability,
        explained=str(first.target.label),
        readings={name: _reading(a) for name, a in comparison.attributions.items()},
        agreement=correlation,
        conflict=conflict,
        is_judged=holding is None,
        says_none=holding == (),
    )


def _reading(a: Attribution) -> Reading:
    evidence = a.evidence
    if evidence is None:
        return Reading(a.scores, None, None, None)
    beaten = evidence.value if evidence.measure == CURVES else None
    return Reading(a.scores, evidence.verdict, beaten, evidence.p_of_verdict)


def _disagreement(attributions: Mapping[str, Attribution]) -> tuple[float | None, Conflict | None]:
    """The mean correlation of every two methods but the control, and the word most in dispute."""
    every = {name: a for name, a in attributions.items() if name != CONTROL}
    units = len(next(iter(attributions.values())).scores)
    if len(every) < 2:
        return None, None
    agreed = agreement(every)
    conflict = agreed.conflicts[0] if agreed.conflicts else None
    correlations = [correlation for _, _, correlation in agreed.pairs]
    if not correlations or units < FEWEST_UNITS:
        return None, conflict
    return float(np.mean(correlations)), conflict


def _agreement_or_most(read: ReadText) -> float:
    """A text that is too short to tell is no text in dispute."""
    return 1.0 if read.agreement is None else read.agreement


# ---------------------------------------------------------------------- over all texts


def _count(counts: _Counts, row: Row, comparison: Comparison, read: ReadText) -> None:
    counts.done += 1
    counts.given.append(row.label)
    target = comparison.first.target
    counts.read = target.read
    counts.label_by_target[target.describe()] = read.explained
    for name, attribution in comparison.attributions.items():
        counts.signed[name] = attribution.signed
    text = hash((row.text, row.pair))
    if read.predicted is not None:
        holding = comparison.first.labels_that_hold
        counts.predicted.update([read.predicted] if holding is None else holding or [NO_LABEL])
        if counts.labels:  # one that chooses none of a list is neither right nor wrong
            counts.judged.append(_judged(row, read, text, counts))

    if text in counts.seen:
        return
    counts.seen.add(text)
    answer = comparison.answer
    counts.named += bool(answer.is_carried and answer.names_something)


def _judged(row: Row, read: ReadText, text: int, counts: _Counts) -> Judged:
    known = None if row.label is None else match(row.label, counts.labels, counts.mapping)
    return Judged(
        row=read.row,
        text=text,
        given=row.label,
        known=None if known is None else known.name,
        says=str(read.predicted),
        probability=read.probability,
        explained=read.explained,
    )


def _labels(run: Run, counts: _Counts) -> DataLabels | None:
    """None where the model chooses no label, or no column of the data is one."""
    if not counts.labels or run.manifest.data.get("columns", {}).get("label") is None:
        return None
    return data_labels(counts.given, counts.labels, counts.mapping)


def _with_known_label(read: ReadText, counts: _Counts) -> ReadText:
    if read.label is None:
        return read
    known = match(read.label, counts.labels, counts.mapping)
    if known is None:
        return replace(read, is_judged=read.is_judged and read.label == read.predicted)
    return replace(read, label=known.name)


def _accuracy(counts: _Counts) -> Accuracy | None:
    """None where fewer than two of the model's labels are among those of the data."""
    pairs = [(text.known, text.says) for text in counts.judged if text.known is not None]
    by_label = Counter(label for label, _ in pairs)
    if len(by_label) < 2:
        return None
    right = sum(label == said for label, said in pairs)
    ((commonest, often),) = by_label.most_common(1)
    interval = wilson(right / len(pairs), len(pairs))
    return Accuracy(len(pairs), right, interval, commonest, often)


def _better_interval(tally: Tally) -> tuple[float, float] | None:
    if not tally.judged:
        return None
    return wilson(tally.better / tally.judged, tally.judged)


def _words(run: Run, counts: _Counts) -> list[CarryingWord]:
    """Of each method and label, the words that do most, those that the data support first.

    The sum over texts, by which the table of words is ranked, would put the full stop first: it
    stands in every text. How far the interval is from zero would too: it asks for many texts.
    """
    words = []
    for every in carrying(run):
        known = []
        for record in every:
            target = str(record["target"])
            told = {name: record[name] for name in TOLD}
            label = counts.label_by_target.get(target, target)
            known.append(CarryingWord(label=label, **told))
        words += by_effect(known)[:MOST_WORDS]
    return words


def _speaker(
    methods: Sequence[str], signed: Mapping[str, bool], answer: AnswerOfMany
) -> str | None:
    """Whose words may be named: the best method that holds and tells for from against.

    Where nothing was tested, the first that does so.
    """
    if answer.tried:
        holding = [tally.method for tally in answer.holding]
        return next((name for name in holding if signed[name]), None)
    return next((name for name in methods if signed[name] and name != CONTROL), None)


def _failures(run: Run) -> list[Failure]:
    failures = []
    for failed in run.failures:
        where = f"row {failed.number}"
        if failed.id and failed.id != str(failed.number):
            where += f" ({failed.id})"
        if failed.method:
            where += f", {failed.method}"
        failures.append(Failure(where, f"{failed.kind}: {failed.message}"))
    return failures
