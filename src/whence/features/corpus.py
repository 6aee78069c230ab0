"""A corpus: documents, cut into passages that fit the model, some of them held out.

Of a plain text file the documents are what blank lines separate; where there is no blank line, each
line is one. Every other source is read as ``whence run`` reads it: a row is a document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage, windows
from whence.models.model import Model
from whence.models.texts import tokenize
from whence.runs.data import open_data
from whence.runs.files import lines_of

HELD_OUT = 20  # every so-manieth document is held out
LENGTH = 128  # tokens of a passage, unless the model has fewer positions


@dataclass(frozen=True)
class Corpus:
    """Documents that can be read again and again, and a digest that tells whether they changed."""

    name: str
    documents: Callable[[], Iterator[str]]
    number: int
    digest: str


@dataclass(frozen=True)
class Piece:
    """A passage, and the number of the document that it was cut from."""

    passage: Passage
    document: int


def open_corpus(source: Any, *, text: str | None = None, limit: int | None = None) -> Corpus:
    """A file, a folder, several of them, or a list of texts, as documents.

    ``text`` names the column with the text, where there are columns; ``limit`` takes the first so
    many documents.

    >>> open_corpus(["It was dark.", "And stormy.", " "]).number
    2
    """
    name, documents = _documents_of(source, text)

    def some() -> Iterator[str]:
        taken = 0
        for document in documents():
            if document.strip():
                if taken == limit:
                    return
                taken += 1
                yield document

    digest = hashlib.sha256()
    number = 0
    for document in some():
        number += 1
        encoded = document.encode(errors="surrogatepass")
        # with its length, so that two documents are not one
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    if number == 0:
        raise InputError(f"the corpus {name} is empty: it has no text to learn from.")
    return Corpus(name, some, number, digest.hexdigest()[:16])


def _documents_of(source: Any, text: str | None) -> tuple[str, Callable[[], Iterator[str]]]:
    """What the corpus is called, and a function that reads it from the beginning."""
    if isinstance(source, (str, Path)):
        return Path(source).name, _reader_of(source, text)
    if isinstance(source, Sequence) and source and all(isinstance(s, Path) for s in source):
        readers = [_reader_of(path, text) for path in source]

        def all_of_them() -> Iterator[str]:
            for read in readers:
                yield from read()

        return ", ".join(path.name for path in source), all_of_them
    if isinstance(source, Sequence) and not source:
        raise InputError("the corpus is empty: it has no text to learn from.")
    data = open_data(source, text=text)
    return data.source, lambda: (row.text for row in data.rows() if row.problem is None)


def _reader_of(path: str | Path, text: str | None) -> Callable[[], Iterator[str]]:
    file = Path(path).expanduser()
    endings = [suffix.lower() for suffix in file.suffixes]
    is_plain = file.is_file() and (endings[-1:] == [".txt"] or endings[-2:] == [".txt", ".gz"])
    if is_plain and text is None:
        separated = any(not line.content.strip() for line in lines_of(file))
        return lambda: _paragraphs(file, separated)
    if file.is_file() and file.stat().st_size == 0:
        raise InputError(f"the corpus {str(path)!r} is empty: it has no text to learn from.")
    data = open_data(path, text=text)
    return lambda: (row.text for row in data.rows() if row.problem is None)


def _paragraphs(file: Path, separated: bool) -> Iterator[str]:
    """The documents of a plain text; lines that are not UTF-8 are left out."""
    lines: list[str] = []
    for line in lines_of(file):
        is_blank = not line.content.strip()
        if lines and (is_blank or not separated):
            yield "".join(lines).rstrip("\n")
            lines = []
        if not is_blank and line.problem is None:
            lines.append(line.content)
    if lines:
        yield "".join(lines).rstrip("\n")


def pieces_of(
    model: Model, corpus: Corpus, *, held_out: bool, length: int = LENGTH
) -> Iterator[Piece]:
    """The passages to learn from, or those that are held out, in order.

    Whole documents are held out, one in twenty, or every other one where there are two. Of a
    corpus of one document it is the last twentieth of its passages, or its last one. A document
    of which the tokenizer leaves nothing is passed over.

    >>> import whence
    >>> corpus = open_corpus(["It was dark.", "And stormy."])
    >>> [piece.passage.text for piece in pieces_of(whence.load("writer"), corpus, held_out=True)]
    ['It was dark.']
    """
    check_reads_text(model)
    limit = min(length, model.limit or length)
    if corpus.number == 1:
        yield from _of_one_document(model, corpus, held_out, limit)
        return
    every = min(HELD_OUT, corpus.number)
    for number, document in enumerate(corpus.documents()):
        if (number % every == 0) == held_out:
            yield from _cut(model, document, number, limit)


def _of_one_document(model: Model, corpus: Corpus, held_out: bool, limit: int) -> Iterator[Piece]:
    (document,) = corpus.documents()
    pieces = list(_cut(model, document, 0, limit))
    kept_back = -(-len(pieces) // HELD_OUT) if len(pieces) > 1 else 0
    first = len(pieces) - kept_back
    if not held_out:
        yield from pieces[:first]
        return
    # so that an interval over documents has something to draw from
    for number, piece in enumerate(pieces[first:]):
        yield Piece(piece.passage, number)


def _cut(model: Model, document: str, number: int, limit: int) -> Iterator[Piece]:
    try:
        whole = tokenize(model, document, None, "token")
    except InputError:  # no token is left of it, or it is not Unicode: one of many, passed over
        return
    parts = [whole] if len(whole) <= limit else windows(whole, limit)
    for passage in parts:
        yield Piece(passage, number)


def check_reads_text(model: Model) -> None:
    """Refuse a model that a text alone is not enough for."""
    kind = model.kind
    if not kind.reads_text or kind.reads_image or kind.offers_choices or kind.second_text:
        raise Unsupported(
            f"{type(model.hf).__name__} reads more than one text at a time, or no text; features "
            "are trained on models that read a text alone."
        )


def rows_to_learn(passage: Passage, special: bool) -> np.ndarray:
    """Which tokens of a passage count: all, or those that are no special ones."""
    if special:
        return np.arange(len(passage))
    return np.flatnonzero(~passage.special)
