"""Attributions over features, which have no text behind them: every view shows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import whence
from tests.views.conftest import compared, evidence_for, image, judged, made
from whence.core.attribution import Attribution, Error
from whence.core.comparison import Comparison
from whence.core.units import Units

FEATURES = Units("feature", ("praise", "negation <b>", "food", "time"))
SCORES = np.array([0.5, -0.25, 0.1, 0.9])


def attribution(method: str, signed: bool = True) -> Attribution:
    scores = SCORES if signed else np.abs(SCORES)
    return replace(
        made("a b c d"),
        passage=None,
        units=FEATURES,
        scores=scores,
        method=method,
        signed=signed,
        evidence=evidence_for(scores),
        error=Error(np.full(4, 0.1)),
    )


@pytest.fixture
def comparison() -> Comparison:
    of_method = {"occlusion": attribution("occlusion"), "random": attribution("random", False)}
    return Comparison(of_method, of_method["random"].cost)


def test_in_a_terminal(comparison: Comparison) -> None:
    assert "negation" in str(comparison["occlusion"])
    assert "praise" in str(comparison)


def test_on_a_page(comparison: Comparison) -> None:
    page = comparison.to_html()
    assert "<h3>The features</h3>" in page
    assert "negation &lt;b&gt;" in page
    assert "negation <b>" not in page  # the enemy trusts the name of a feature
    assert "praise" in comparison["occlusion"]._repr_html_()


def test_a_page_says_what_is_taken_out(comparison: Comparison) -> None:
    # would catch: words that are taken out where there are none
    of_features = comparison.to_html()
    of_patches = judged(compared(image(), 2)).to_html()
    for page, units in ((of_features, "features"), (of_patches, "patches")):
        assert f"{units} are taken out, the most important first" in page
        assert f"when the {units} that it ranks first are taken out?" in page
        assert f"each way to remove {units}" in page
        assert "words that it ranks first" not in page


def test_in_latex_and_in_figures(comparison: Comparison) -> None:
    pytest.importorskip("matplotlib")
    assert "praise" in comparison.to_latex()
    assert "praise" in comparison["occlusion"].to_latex()
    labels = [text.get_text() for text in comparison["occlusion"].plot().get_yticklabels()]
    labels += [text.get_text() for text in comparison["occlusion"].plot().get_xticklabels()]
    assert "praise" in labels
    comparison["occlusion"].plot_evidence()
    comparison.plot_agreement()


def test_in_a_file_and_back(comparison: Comparison, tmp_path) -> None:
    back = whence.read(comparison.save(tmp_path / "c.json"))
    assert back.to_dict() == comparison.to_dict()
    assert back.units == FEATURES
    assert back.passage is None
