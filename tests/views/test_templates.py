"""Two lists of words in many sentences, as a page and in a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views.test_probe import HOSTILE, maps_of
from whence.core.probe import Contrast, Reading, TemplateProbe, probed
from whence.core.templates import read_templates
from whence.views.templates import by_size, templates_page, templates_view
from whence.views.terminal import to_text


def made(*differences: float) -> TemplateProbe:
    lines = [f"{{}} said {HOSTILE} {i}" for i in range(len(differences))]
    templates = read_templates("\n".join(lines), ["she"], ["he"])
    contrast = Contrast("he → she", np.array(differences), 0.05, 0.35)
    control = Contrast("someone → somebody", np.zeros(len(differences)), -0.02, 0.02)
    return TemplateProbe("toy", templates, Reading("good"), contrast, (control,))


def test_the_terminal_has_the_answer_first_and_the_largest_changes() -> None:
    p = made(0.1, -0.4, 0.3)
    shown = to_text(lambda _: templates_view(p), width=120)
    assert shown.startswith("Over 3 templates, the probability of good changes by +0.0 points")
    assert "control: someone → somebody" in shown
    assert [change for _, change in by_size(p)] == ["-40.0 points", "+30.0 points", "+10.0 points"]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
def test_the_first_screen_of_both_pages_holds_the_answer(browser, tmp_path, width) -> None:
    two_texts = probed(maps_of(f"so {HOSTILE} good", 0), maps_of(f"so {HOSTILE} bad", 1))
    for result in (made(0.1, 0.2, 0.3), two_texts):
        path = tmp_path / "page.html"
        result.to_html(path)
        page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        wrong = []
        page.on("dialog", lambda d, wrong=wrong: (wrong.append(d.message), d.dismiss()))
        page.goto(path.as_uri())
        box = page.locator(".answer").bounding_box()
        assert box["y"] + box["height"] <= 800
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert wrong == []
        assert page.locator("img").count() == 0


def test_a_page_holds_every_template() -> None:
    page = templates_page(made(*np.linspace(-1, 1, 9)))
    assert page.count("said &lt;img") == 9
