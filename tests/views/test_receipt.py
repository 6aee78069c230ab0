"""What is said of a steered feature, held against the numbers of forged receipts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.views.test_every_page import receipt
from whence.core.receipt import Receipt
from whence.features.receipts import _on_unrelated
from whence.views.receipt import sentences

NOTE = _on_unrelated(40, 40)


def steered(**more: object) -> Receipt:
    r = receipt()
    doses = [replace(dose, **more) if dose is r.steered else dose for dose in r.doses]
    return replace(r, doses=tuple(doses))


def test_text_in_which_the_feature_fires_is_not_called_unrelated() -> None:
    """Would catch: “On unrelated text”, and a note that the feature fires in all of it."""
    related = replace(receipt(), notes=(NOTE,))
    assert not replace(receipt(), notes=(_on_unrelated(1, 1),)).is_unrelated
    assert "On unrelated text (12 texts, 300 tokens): perplexity" in " ".join(sentences(receipt()))
    said = " ".join(sentences(related))
    assert "On text in which the feature fires too (12 texts, 300 tokens): perplexity" in said
    for shown in (said, str(related), related.to_html()):
        assert "unrelated text" not in shown.replace(NOTE, "")
    assert "perplexity of unrelated text" in receipt().to_html()


@pytest.mark.parametrize("written", ["\n\n\n\n", ", so\n\nto.", "a\n"])
def test_line_breaks_that_a_steered_model_writes_take_no_lines(written: str) -> None:
    """Would catch: ten of them, half a screen of nothing."""
    r = steered(written=written)
    (told,) = re.findall(r'<dd class="chosen">(.*?)</dd>', r.to_html(), re.DOTALL)
    assert "\n" not in told.split('class="new"')[1]
    assert told.count("⏎") == written.count("\n")
    assert written.replace("\n", "⏎") in " ".join(str(r).split())


@pytest.mark.parametrize(("value", "told"), [(14_730.0, "14,730"), (55.13, "55"), (9.42, "9.4")])
def test_a_perplexity_is_told_alike_everywhere(value: float, told: str) -> None:
    """Would catch: 1.473e+04 in a column with 8,420."""
    r = steered(perplexity=value)
    assert f"→ {told} (random" in " ".join(sentences(r))
    (row,) = re.findall(r"<tr><th[^>]*>the feature, 5x</th>(.*?)</tr>", r.to_html())
    assert f"<td>{told}</td>" in row
    assert "e+0" not in row
