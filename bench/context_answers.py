"""Which sentence does an answer rest on? Forty questions over three documents each, one by one.

    python -m bench.context_answers --model MODELS/smollm2 --csv answers.csv
    python -m bench.context_answers --model MODELS/smollm2 --questions bench/context_trial.jsonl \\
        --methods occlusion gradient-x-input gradient-l2

The model reads the documents and the question through its chat template and answers; then it is
forced to the same answer without the documents. The tokens that depend on them are attributed to
their sentences. It is right where the sentence that holds the answer is the strongest for all of
these tokens together. ``context_trial.jsonl`` has five other questions, on which the method was
chosen before any of the forty was run. What came out is in docs/context.md.

``--first-sentence`` ends what the model wrote behind its first sentence, which is its answer: this
small model often goes on by copying the sentences that follow in the document, and those words rest
on these. It was added after 26 of the 40 questions were counted without it; so there are forty
others, ``--questions bench/questions_held_out.jsonl``, written when this rule was there already.

``--by-sentence`` leaves the output whole and asks what its first sentence rests on, as the answer
of ``whence context`` does where several sentences were written. ``questions_answered.jsonl`` has
forty questions that were chosen because the model answers them, and counted once by this rule.

A run that was ended goes on where it was: questions that the CSV file has are not asked again.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import whence
from bench.questions import BETWEEN, FILE, MOST_TOKENS, WITH_DOCUMENTS, Question, read, says
from whence.core.bootstrap import wilson
from whence.core.cutting import sentence_starts, word_starts
from whence.generation.continuing import written_by
from whence.models.contexts import prompts


@dataclass(frozen=True)
class Answered:
    """What came of one question by one method."""

    id: str
    method: str
    answer: str
    is_answered: bool  # whether the answer is in what the model wrote
    found: int  # tokens that depend on the documents
    tokens: int
    right: int  # the number of the right sentence, over all documents
    first: int  # that of the strongest one; -1 where nothing was found
    sentences: int
    shares_words: int  # the sentence that has most words of the question: no method at all
    seconds: float
    each: str  # every token that was found, and the sentence that is the strongest for it

    @property
    def is_right(self) -> bool:
        """Whether the right sentence came first."""
        return self.first == self.right


def asked(
    model: whence.Model,
    question: Question,
    methods: Sequence[str],
    first_sentence: bool = False,
    by_sentence: bool = False,
) -> tuple[whence.ContextUse, list[Answered]]:
    """One question by several methods."""
    text = f"Question: {question.question}"
    documents = {document.name: document.text for document in question.documents}
    continuation = None
    if first_sentence:
        continuation = _first_sentence(model, text, documents)
    use = whence.context(
        model,
        text,
        documents,
        methods,
        continuation=continuation,
        units="sentence",
        chat=True,
        system=WITH_DOCUMENTS,
        separator=BETWEEN,
        max_new_tokens=MOST_TOKENS,
        evidence=False,
    )
    right = right_sentence(use, question)
    outputs = use.sentences[0] if by_sentence else None
    rows = []
    for method in methods:
        sources = use.sources(outputs, method)
        rows.append(
            Answered(
                id=question.id,
                method=method,
                answer=use.text.strip(),
                is_answered=says(use.text, question.answer),
                found=len(use.selected),
                tokens=len(use.outputs),
                right=right,
                first=sources[0] if sources else -1,
                sentences=len(use.units),
                shares_words=with_most_words(use, question),
                seconds=use.cost.seconds,
                each=" ".join(_sources_of_each(use, method)),
            )
        )
    return use, rows


def _first_sentence(model: whence.Model, text: str, documents: dict[str, str]) -> list[int]:
    """The ids that the model writes, up to the end of its first sentence."""
    both = prompts(model, text, documents, chat=True, system=WITH_DOCUMENTS, separator=BETWEEN)
    ids = written_by(model, both.with_context, MOST_TOKENS, 0, {}).ids.tolist()
    for end in range(1, len(ids)):
        if len(sentence_starts(model.tokenizer.decode(ids[: end + 1]).lstrip())) > 1:
            return ids[:end]
    return ids


def _sources_of_each(use: whence.ContextUse, method: str) -> list[str]:
    """Every token that was found, with the number of its strongest sentence."""
    told = []
    for number in use.selected:
        sources = use.sources(number, method)
        name = use.outputs[number].name.strip()
        told.append(f"{name!r}:{sources[0] if sources else -1}")
    return told


def right_sentence(use: whence.ContextUse, question: Question) -> int:
    """The unit that is the sentence with the answer."""
    name = question.documents[question.document].name
    wanted = f"sentence {question.sentence + 1} of {name}"
    (unit,) = [unit for unit in range(len(use.units)) if use.place(unit) == wanted]
    assert says(use.units.texts[unit], question.answer), (question.id, use.units.texts[unit])
    return unit


def with_most_words(use: whence.ContextUse, question: Question) -> int:
    """The sentence that shares most of its words with the question; of equals the first."""
    wanted = words_of(question.question)
    shared = [len(wanted & words_of(text)) for text in use.units.texts]
    return shared.index(max(shared))


def words_of(text: str) -> set[str]:
    """The words of a text, in small letters.

    >>> sorted(words_of("The old mill."))
    ['.', 'mill', 'old', 'the']
    """
    starts = word_starts(text)
    ends = [*starts[1:], len(text)]
    return {text[a:b].strip().lower() for a, b in zip(starts, ends, strict=True)}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.context_answers")
    parser.add_argument("--model", required=True)
    parser.add_argument("--questions", type=Path, default=FILE)
    parser.add_argument("--methods", nargs="+", default=["occlusion"])
    parser.add_argument("--first-sentence", action="store_true")
    parser.add_argument("--by-sentence", action="store_true")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    model = whence.load(options.model)
    rows = stored(options.csv) if options.csv and options.csv.exists() else []
    there = {(row.id, row.method) for row in rows}
    for question in read(options.questions):
        if all((question.id, method) in there for method in options.methods):
            continue
        rows = [row for row in rows if row.id != question.id]
        _, answered = asked(
            model, question, options.methods, options.first_sentence, options.by_sentence
        )
        rows += answered
        first = answered[0]
        marks = " ".join(f"{row.method}:{'yes' if row.is_right else 'NO'}" for row in answered)
        counted = f"{first.found} of {first.tokens} tokens"
        print(f"{question.id}: {marks}; {counted}; {first.answer!r}", flush=True)
        if options.csv:
            _write(options.csv, rows)
    report(rows, options.methods)


def report(rows: Sequence[Answered], methods: Sequence[str]) -> None:
    """How often the right sentence came first, beside chance."""
    for method in methods:
        own = [row for row in rows if row.method == method]
        right = sum(row.is_right for row in own)
        answered = [row for row in own if row.is_answered]
        of_answered = sum(row.is_right for row in answered)
        low, high = wilson(right / len(own), len(own))
        print(f"{method}: right sentence first in {right} of {len(own)} questions")
        print(f"  {right / len(own):.1%}, 95 % interval {low:.1%} to {high:.1%}")
        print(f"  of {len(answered)} that the model answers right: {of_answered}")
    own = [row for row in rows if row.method == methods[0]]
    chance = sum(1 / row.sentences for row in own) / len(own)
    words = sum(row.shares_words == row.right for row in own)
    print(f"a sentence by lot: {chance:.1%}; most words of the question: {words} of {len(own)}")


def stored(path: Path) -> list[Answered]:
    """The rows of a CSV file that this command wrote."""
    kinds = {"str": str, "int": int, "float": float, "bool": "True".__eq__}
    readers = {field.name: kinds[str(field.type)] for field in fields(Answered)}
    with path.open(newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    return [
        Answered(**{name: reader(row[name]) for name, reader in readers.items()}) for row in records
    ]


def _write(path: Path, rows: Sequence[Answered]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(vars(rows[0])))
        writer.writeheader()
        writer.writerows(vars(row) for row in rows)


if __name__ == "__main__":
    main()
