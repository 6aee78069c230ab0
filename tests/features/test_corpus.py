"""What counts as a document, how it is cut, and what is held out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.families import build
from tests.features.small import documents, writer
from whence.core.errors import InputError, Unsupported
from whence.features.corpus import HELD_OUT, open_corpus, pieces_of


def test_blank_lines_separate_the_documents_of_a_text(tmp_path: Path) -> None:
    file = tmp_path / "book.txt"
    file.write_text("It was\ndark.\n\n\nAnd stormy.\n")
    corpus = open_corpus(file)
    assert list(corpus.documents()) == ["It was\ndark.", "And stormy."]
    assert corpus.number == 2


def test_without_blank_lines_each_line_is_a_document(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt.gz"
    file.write_bytes(gzip.compress(b"one\ntwo\nthree"))
    assert list(open_corpus(file).documents()) == ["one", "two", "three"]


def test_rows_of_a_table_are_documents(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"text": t, "label": 1}) + "\n" for t in ("a b", "c")))
    assert list(open_corpus(file).documents()) == ["a b", "c"]
    assert list(open_corpus([file, file]).documents()) == ["a b", "c", "a b", "c"]


def test_the_digest_tells_texts_and_their_borders_apart() -> None:
    # would catch: a digest of all characters one after the other
    assert open_corpus(["ab", "c"]).digest != open_corpus(["a", "bc"]).digest
    assert open_corpus(["ab", "c"]).digest == open_corpus(("ab", "c")).digest


@pytest.mark.parametrize("texts", [[], ["", "  \n"]])
def test_an_empty_corpus_is_refused(texts: list[str]) -> None:
    with pytest.raises(InputError, match="empty: it has no text to learn from"):
        open_corpus(texts)


@pytest.mark.parametrize("name", ["empty.txt", "empty.jsonl"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("")
    with pytest.raises(InputError, match="empty"):
        open_corpus(file)


def test_whole_documents_are_held_out_and_nothing_is_lost() -> None:
    # would catch: passages of a held-out document among those that are learned from
    model, corpus = writer(), open_corpus(documents(45, length=40))
    learned = list(pieces_of(model, corpus, held_out=False, length=16))
    held_out = list(pieces_of(model, corpus, held_out=True, length=16))
    assert {piece.document for piece in held_out} == set(range(0, 45, HELD_OUT))
    assert not {piece.document for piece in learned} & {piece.document for piece in held_out}
    assert all(len(piece.passage) <= 16 for piece in learned)
    whole = sum(len(model.backend.encode(text).ids) for text in corpus.documents())
    assert sum(len(piece.passage) for piece in learned + held_out) == whole


def test_of_one_document_its_end_is_held_out() -> None:
    model, corpus = writer(), open_corpus(documents(1, length=200))
    learned = [piece.passage for piece in pieces_of(model, corpus, held_out=False, length=16)]
    held_out = [piece.passage for piece in pieces_of(model, corpus, held_out=True, length=16)]
    assert held_out
    assert len(held_out) <= len(learned) / 10
    assert learned[-1].spans[-1, 1] <= held_out[0].spans[0, 0] + 1


def test_a_model_that_reads_no_single_text_is_refused() -> None:
    with pytest.raises(Unsupported, match="a text alone"):
        next(pieces_of(build("vit"), open_corpus(["a b", "c d"]), held_out=False))


def test_a_document_without_tokens_ends_nothing() -> None:
    """One of a million documents, and hours of training: the others are learned from."""
    model = build("bert")
    corpus = open_corpus(["It was dark.", "\u200b", "a \ud800 b", "And stormy."])
    learned = [piece.passage.text for piece in pieces_of(model, corpus, held_out=False)]
    assert learned == ["And stormy."]
