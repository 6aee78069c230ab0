"""The glossary: plain sentences, and the page of the documentation says the same."""

from __future__ import annotations

from pathlib import Path

from whence.core.evidence import Verdict
from whence.core.glossary import GLOSSARY, ON_TRIAL
from whence.core.registry import METRIC_GROUPS

PAGE = Path(__file__).parent.parent.parent / "docs" / "glossary.md"


def test_every_word_has_one_plain_sentence() -> None:
    assert not GLOSSARY.keys() & ON_TRIAL.keys()  # one home for each
    for word, sentence in (GLOSSARY | ON_TRIAL).items():
        assert sentence[0].isupper(), word
        assert sentence.endswith("."), word
        assert ". " not in sentence, word
        assert len(sentence) < 300, word


def test_every_verdict_is_explained() -> None:
    assert {str(verdict) for verdict in Verdict} <= set(GLOSSARY)


def test_every_group_of_metrics_is_explained() -> None:
    assert set(METRIC_GROUPS) <= set(ON_TRIAL)


def test_the_page_is_the_glossary() -> None:
    _, *tables = PAGE.read_text(encoding="utf-8").split("|---|---|\n")
    for table, glossary in zip(tables, (GLOSSARY, ON_TRIAL), strict=True):
        rows = table.split("\n\n")[0].strip().splitlines()
        assert rows == [f"| {word} | {sentence} |" for word, sentence in glossary.items()]
