"""Forty questions, each with three short documents of which one sentence holds the answer.

    python -m bench.questions check --model MODELS/smollm2    # does the model answer them?
    python -m bench.questions floors                          # what finds the sentence without it
    python -m bench.questions choose --model MODELS/smollm2   # forty of the candidates, answered

The sentence that an answer rests on is known here, so a method that looks for it can be tested:
bench/questions.md says how the questions were written, and what the model answers. No method of
attribution had a part in choosing them.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whence.core.cutting import sentence_starts

FILE = Path(__file__).with_name("questions.jsonl")
HELD_OUT = Path(__file__).with_name("questions_held_out.jsonl")
CANDIDATES = Path(__file__).with_name("questions_candidates.jsonl")
ANSWERED = Path(__file__).with_name("questions_answered.jsonl")
WANTED = 40
WITH_DOCUMENTS = "Answer the question shortly, using the documents."
WITHOUT_DOCUMENTS = "Answer the question shortly."
BETWEEN = "\n\n"  # a line break ends a sentence, so that no sentence runs into the next document
MOST_TOKENS = 24

Message = dict[str, str]  # the role and the content of a turn, as chat templates want them
Span = tuple[int, int]


@dataclass(frozen=True)
class Document:
    """A text of a few sentences, and the name of its file."""

    name: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, its documents, and the one sentence that holds the answer."""

    id: str
    question: str
    documents: tuple[Document, ...]
    answer: str
    document: int
    sentence: int


def read(path: Path = FILE) -> list[Question]:
    """The questions of a file.

    >>> read()[0].answer
    '64'
    """
    with path.open(encoding="utf-8") as file:
        return [_question(json.loads(line)) for line in file]


def _question(record: dict[str, Any]) -> Question:
    documents = tuple(Document(**document) for document in record["documents"])
    return Question(**{**record, "documents": documents})


def messages(question: Question, *, with_documents: bool = True) -> list[Message]:
    """The chat in which a model is asked.

    The user's turn is the documents one after the other, each a paragraph, and then the question.

    >>> messages(read()[0], with_documents=False)[-1]["content"]
    'Question: How many passengers can the ferry Silver Heron carry?'
    """
    system = WITH_DOCUMENTS if with_documents else WITHOUT_DOCUMENTS
    documents = question.documents if with_documents else ()
    paragraphs = [*(document.text for document in documents), f"Question: {question.question}"]
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": BETWEEN.join(paragraphs)},
    ]


def sentence_spans(question: Question) -> list[list[Span]]:
    """The characters of each sentence of each document, in the user's turn of ``messages``.

    >>> first = read()[0]
    >>> start, end = sentence_spans(first)[first.document][first.sentence]
    >>> messages(first)[-1]["content"][start:end]
    'The ferry Silver Heron can carry 64 passengers.'
    """
    spans: list[list[Span]] = []
    begin = 0  # of the document
    for document in question.documents:
        text = document.text
        starts = sentence_starts(text)
        ends = [*starts[1:], len(text)]
        of_document: list[Span] = []
        for start, end in zip(starts, ends, strict=True):
            blank = len(text[start:end]) - len(text[start:end].lstrip())
            of_document.append((begin + start + blank, begin + end))
        spans.append(of_document)
        begin += len(text) + len(BETWEEN)
    return spans


def says(text: str, answer: str) -> bool:
    """Whether the answer is in the text, as whole words, in capitals or not.

    >>> says("It weighs 740 pounds.", "740"), says("It weighs 1740 pounds.", "740")
    (True, False)
    """
    return re.search(rf"\b{re.escape(answer)}\b", text, re.IGNORECASE) is not None


# ---------------------------------------------------------------------- without a model


def chance(question: Question) -> float:
    """How often a sentence that is drawn at random is the right one.

    >>> round(chance(read()[0]), 4)
    0.0833
    """
    return 1 / sum(len(of_document) for of_document in sentence_spans(question))


def by_shared_words(question: Question) -> float:
    """How often the sentence is right that shares most words with the question.

    Between sentences that share equally many it is drawn at random, so 0.5 means one of two.

    >>> by_shared_words(read()[0])
    1.0
    """
    content = messages(question)[-1]["content"]
    asked = _words(question.question)
    shared: dict[tuple[int, int], int] = {}
    for d, of_document in enumerate(sentence_spans(question)):
        for s, (start, end) in enumerate(of_document):
            shared[d, s] = len(asked & _words(content[start:end]))
    most = max(shared.values())
    first = [place for place, count in shared.items() if count == most]
    is_among = (question.document, question.sentence) in first
    return is_among / len(first)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def floors() -> None:
    """Print how often the right sentence is found by means that know nothing of the model."""
    questions = read()
    for what, finds in (("chance", chance), ("most words shared", by_shared_words)):
        right = sum(finds(question) for question in questions)
        print(f"{what}: {right:.1f} of {len(questions)} sentences are right")


# ---------------------------------------------------------------------- the model's answers


def reply(hf: Any, tokenizer: Any, chat: Sequence[Message]) -> str:
    """What a causal model says next: the likeliest token each time, at most 24 of them."""
    ids = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    whole = hf.generate(**ids, do_sample=False, max_new_tokens=MOST_TOKENS)
    new = whole[0, ids["input_ids"].shape[1] :]
    return tokenizer.decode(new, skip_special_tokens=True).strip()


def _asker(folder: Path) -> Callable[[Question, bool], tuple[bool, str]]:
    """Asks the model a question, with documents or not: is it right, and what is said."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    hf = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def ask(question: Question, with_documents: bool) -> tuple[bool, str]:
        said = reply(hf, tokenizer, messages(question, with_documents=with_documents))
        return says(said, question.answer), said

    return ask


def check(folder: Path) -> None:
    """Ask the model every question, with its documents and without, and count what is right."""
    ask = _asker(folder)
    questions = read()
    for with_documents in (True, False):
        right = 0
        for question in questions:
            is_right, said = ask(question, with_documents)
            right += is_right
            mark = "yes" if is_right else "NO "
            print(f"{mark} {question.id}: {question.answer!r} in {said!r}", flush=True)
        what = "with" if with_documents else "without"
        print(f"{what} the documents: {right} of {len(questions)} answers are right", flush=True)


def choose(folder: Path) -> None:
    """Write the first forty candidates that the model answers from the documents alone.

    It is asked with the documents, where it must be right, and without, where it must be wrong:
    then its answer rests on the documents, and the sentence is known. Nothing is attributed.
    """
    ask = _asker(folder)
    chosen: list[str] = []
    lines = CANDIDATES.read_text(encoding="utf-8").splitlines()
    for line in lines:
        question = _question(json.loads(line))
        is_right, said = ask(question, True)
        needs_documents = is_right and not ask(question, False)[0]
        mark = "yes" if needs_documents else "NO "
        print(f"{mark} {question.id}: {question.answer!r} in {said!r}", flush=True)
        if needs_documents and len(chosen) < WANTED:
            chosen.append(line)
    ANSWERED.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    print(f"{len(chosen)} of {len(lines)} candidates are chosen")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        prog="python -m bench.questions",
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", required=True)
    checking = parts.add_parser("check", help="ask a model, with the documents and without")
    checking.add_argument("--model", type=Path, required=True, help="its folder")
    parts.add_parser("floors", help="find the sentences by chance, and by the words they share")
    choosing = parts.add_parser("choose", help="forty candidates that the model answers")
    choosing.add_argument("--model", type=Path, required=True, help="its folder")
    given = parser.parse_args()
    if given.part == "check":
        check(given.model)
    elif given.part == "choose":
        choose(given.model)
    else:
        floors()


if __name__ == "__main__":
    main()
