"""An audit in words, in a terminal and as a page."""

from __future__ import annotations

from math import log

from tests.views.audits import audit_with, observed
from whence.views.audit import audit_sentences, audit_text
from whence.views.audit_page import audit_page
from whence.views.audit_pictures import BINS, histogram, scatter

LN_2 = log(2)
TOLD_APART = observed(
    12, change=lambda: 0.4, jsd=lambda: 0.3, jsd_of_layer={0: 0.9 * LN_2, 1: 0.01}
)


def test_layers_are_told_apart_in_words() -> None:
    said = " ".join(audit_sentences(audit_with(TOLD_APART)))
    assert "In layer 1 attention may be read as an explanation" in said
    assert "In layer 0 attention may be read as one explanation of several: the output" in said
    assert "Of 4 heads, 2 may be read, 2 as one explanation of several, 0 may not" in said
    assert "attention-mean may be read; rollout may not" in said
    assert "gradients do by 0.60" in said


def test_layers_with_one_verdict_are_named_together() -> None:
    idle = audit_with(observed(12, change=lambda: 0.0, jsd=lambda: LN_2))
    said = audit_sentences(idle)
    assert said[1].startswith("In layers 0 and 1 attention may not be read as an explanation: the")


def test_the_terminal_has_the_numbers_beside_the_verdicts() -> None:
    shown = audit_text(audit_with(TOLD_APART))
    assert "0.40 [0.40, 0.40]" in shown
    assert "90% [90%, 90%]" in shown  # of ln 2
    assert "80% [80%, 80%]" in shown  # of random rankings
    assert "flow: nothing on 1 of 9 texts" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100


def test_names_of_models_are_data() -> None:
    hostile = audit_with(TOLD_APART, model="<script>alert(1)</script>\x1b[31m")
    page = audit_page(hostile)
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\x1b" not in audit_text(hostile)


def test_the_page_has_a_figure_for_each_layer_and_test() -> None:
    page = audit_page(audit_with(TOLD_APART))
    assert page.count("<figure>") == 2 * 3  # two tests; two layers and all of them together
    assert page.count('class="text"') == 12 * 3
    assert "script-src" not in page


def test_pictures_hold_what_they_are_given() -> None:
    """The enemy: a value on the last edge that has no bin."""
    drawn = histogram([0.0, LN_2, LN_2 / 2], LN_2, ("difference", "texts"), "label")
    assert drawn.count('class="bin"') == BINS
    assert drawn.count('height="0.0"') == BINS - 3
    dots = scatter([0.0, 1.0, 2.0], [0.0, 1.0, -1.0], ("a", "b"), "label")
    assert dots.count("<circle") == 3
    assert 'cx="220.0"' in dots  # what lies outside is drawn at the edge
