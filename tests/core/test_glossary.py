"""The glossary: plain sentences, and the page of the documentation says the same."""

from __future__ import annotations

from pathlib import Path

from whence.core.evidence import Verdict
from whence.core.glossary import GLOSSARY

PAGE = Path(__file__).parent.parent.parent / "docs" / "glossary.md"


def test_every_word_has_one_plain_sentence() -> None:
    for word, sentence in GLOSSARY.items():
        assert sentence[0].isupper(), word
        assert sentence.endswith("."), word
        assert ". " not in sentence, word
        assert len(sentence) < 300, word


def test_every_verdict_is_explained() -> None:
    assert {str(verdict) for verdict in Verdict} <= set(GLOSSARY)


def test_the_page_is_the_glossary() -> None:
    rows = PAGE.read_text(encoding="utf-8").split("|---|---|\n", 1)[1].strip().splitlines()
    assert rows == [f"| {word} | {sentence} |" for word, sentence in GLOSSARY.items()]
