"""Evidence, agreement, anchors and error bars in the terminal and in the page."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from tests.views.conftest import (
    ANCHOR,
    NO_VERDICT,
    OWN,
    SAMPLED,
    compared,
    evidence_for,
    image,
    judged,
    made,
)
from tests.views.test_html import data_of, parsed
from whence.core.attribution import Attribution, Cost, Error
from whence.core.comparison import Comparison
from whence.core.errors import LoadError
from whence.core.evidence import TrialCurves
from whence.views.agreeing import similar_together
from whence.views.curves import BOTTOM, HIGH, LEFT, RIGHT, TOP, WIDE, curves, limits

TEXT = (
    "the food is great and the selection on the menu is great "
    "but the service is not bad prices are fine"
)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "</script><img src=x> <svg onload=alert(1)> \x1b[31m"


def everything(text: str = TEXT, count: int = 23) -> Comparison:
    """As many methods as there will be, with everything that a result can carry."""
    plain = compared(text)
    d = len(plain.first.scores)
    rng = np.random.default_rng(5)
    every = dict(judged(plain).attributions)
    for i in range(count - len(every)):
        name = f"transformer-likeness-{i:02}"
        scores = rng.normal(size=d)
        cost = Cost(1000, 0, 0.4, saved=212)
        every[name] = made(
            text,
            name,
            scores=scores,
            evidence=evidence_for(scores),
            error=Error(np.full(d, 0.05)),
            cost=cost,
            detail=SAMPLED,
        )
    every["anchors"] = made(
        text, "anchors", False, detail={**ANCHOR, "anchor": [0, 1]}, evidence=OWN
    )
    every["random"] = replace(every["random"], evidence=NO_VERDICT)
    return replace(plain, attributions=every, cost=Cost(5000, 3, 2.0, saved=900))


# ---------------------------------------------------------------- terminal


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("text", [TEXT, "中国的电影 很好看 👨‍👩‍👧 мир ภาพยนตร์ so good"])
def test_many_methods_fit_the_terminal(terminal, width, text):
    terminal(width)
    c = everything(text)
    for result in (c, c["anchors"], c["random"], c["gradient-l2"], c["transformer-likeness-00"]):
        assert max(cell_len(line) for line in ANSI.sub("", str(result)).splitlines()) <= width


def test_the_table_has_verdict_share_and_p_for_each_removal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    c = everything()
    shown = c.to_text(full=True)
    (head,) = [
        line for line in shown.splitlines() if line.startswith("method") and "evidence" in line
    ]
    assert head.split()[-2:] == ["mask", "delete"]
    row = next(line for line in shown.splitlines() if re.match(r"gradient-l2 .*\.\d{3}$", line))
    for trial in c["gradient-l2"].evidence.trials:
        assert f"{trial.beaten:.0%}".replace("%", " %") in row
        assert f"{trial.p:.3f}"[1:] in row
    words = " ".join(shown.split())
    for part in (
        "Beside 100 random rankings",
        "of the same text: ✓ better, ~ not separable from them, ✗ worse.",
        "evidence, random: too few units for a verdict",
        "5,000 forward (900 more from memory), 3 backward",
        "Closest: ",
        "Furthest: ",
        "by chance 24 %",
        "units on which methods conflict",
        "IF “the” and “food” stay THEN the prediction is good",
    ):
        assert part in words


def test_more_removals_than_room_are_named(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    c = judged(compared(TEXT))
    names = ("mask", "delete", "pad", "mean", "infill")
    trial = c.first.evidence.trials[0]
    trials = tuple(replace(trial, removal=name) for name in names)
    first = replace(c.first, evidence=replace(c.first.evidence, trials=trials))
    with_more = replace(c, attributions={**c.attributions, first.method: first})
    shown = with_more.to_text(full=True)
    assert "removals without room here: pad, mean, infill" in shown
    assert max(map(cell_len, shown.splitlines())) <= 80


def test_one_method_tells_its_evidence_and_its_error(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    a = made(
        "so very good",
        scores=[0.5, -0.25, 0.1],
        error=Error(np.array([0.1, 0.2, 0.05])),
        detail=SAMPLED,
        evidence=OWN,
    )
    shown = a.to_text(full=True)
    assert re.search(r"^so    \+0\.500 ± 0\.100  █", shown, re.MULTILINE)
    assert "evidence    ~ correlation with held-out removals 0.22" in shown
    assert "detail      1,000 samples, 812 of them distinct" in shown


def test_an_anchor_is_underlined(terminal):
    terminal(100)
    shown = str(made("not so bad", "anchors", False, scores=[0, 0, 0], detail=ANCHOR))
    assert re.search(r"\x1b\[1;4m\s*not", shown)
    assert not re.search(r"\x1b\[1;4m\s*so", shown)


def test_one_method_or_one_unit_has_no_agreement():
    assert "agreement" not in str(compared(TEXT, 1))
    assert "agreement" not in str(compared("good"))
    assert "Agreement" not in compared("good").to_html()


# ---------------------------------------------------------------- page


@pytest.mark.parametrize("text", [TEXT, HOSTILE, "good"])
def test_the_page_is_well_formed_and_its_data_is_the_result(text):
    c = everything(text) if text != "good" else judged(compared("good"))
    html = c.to_html()
    parsed(html)
    data = data_of(html)
    for name, one in data["attributions"].items():
        assert Attribution.from_dict({**one, "passage": data["passage"]}) == c[name]
    for a in c.attributions.values():
        parsed(a.to_html())


def test_words_in_evidence_and_detail_are_escaped():
    bad = "<img src=x onerror=alert(1)>"
    scores = np.arange(3.0)
    evidence = evidence_for(scores)
    trial = replace(evidence.trials[0], removal=bad)
    own = replace(OWN, measure=bad)
    evidence = replace(evidence, note=bad, question=bad, trials=(trial,), own=own)
    a = made(
        "so very good",
        bad,
        scores=scores,
        evidence=evidence,
        detail={"estimator": bad, bad: 1},
        error=Error(np.ones(3), note=bad),
    )
    several = Comparison({bad: a, "b": made("so very good", "b")}, Cost(), {bad: bad})
    for html in (a.to_html(), several.to_html()):
        assert "img" not in parsed(html).tags
        assert bad not in html
        assert html.count("&lt;img") > 5


def test_a_stored_verdict_that_is_none_of_ours_is_refused():
    stored = made("so very good", evidence=evidence_for(np.arange(3.0))).to_dict()
    stored["evidence"]["verdict"] = "<img src=x>"
    with pytest.raises(LoadError, match="damaged"):
        Attribution.from_dict(stored)


def test_twenty_three_methods_stay_below_600_kilobytes():
    c = everything()
    assert len(c.attributions) == 24
    assert len(c.to_html().encode()) < 600_000


def test_badges_and_curves_are_there_for_each_method_with_evidence():
    c = judged(compared(TEXT))
    html = c.to_html()
    assert html.count('<svg class="curves"') == 2 * len(c)
    for a in c.attributions.values():
        mask = a.evidence.trial("mask")
        label = f"{a.method}, removal mask: {mask.verdict}: beats"
        assert f'role="img" aria-label="{label}' in html
    assert "not computed" not in html
    assert html.count('class="heat"') == 2
    assert html.count('class="card"') == len(c)


def test_curves_go_through_their_points():
    drawn = evidence_for(np.arange(8.0)).trials[0].curves
    low, high = limits([drawn])
    svg = curves(drawn, (low, high), "told")
    for kind in ("deletion", "insertion"):
        (points,) = re.findall(rf'<polyline class="line {kind}" points="([^"]*)"', svg)
        line = np.array([point.split(",") for point in points.split()], dtype=float)
        x = LEFT + (WIDE - LEFT - RIGHT) * np.array(drawn.steps) / 8
        y = TOP + (HIGH - TOP - BOTTOM) * (high - np.array(getattr(drawn, kind))) / (high - low)
        assert line == pytest.approx(np.stack([x, y], 1), abs=0.051)
    every_point = " ".join(re.findall(r'points="([^"]*)"', svg))
    heights = [float(y) for y in re.findall(r",([\d.]+)", every_point)]
    assert min(heights) >= TOP - 0.05
    assert max(heights) <= HIGH - BOTTOM + 0.05


def test_flat_curves_are_drawn_too():
    line = (0.0,) * 5
    band = ((0.0, 0.0, 0.0),) * 5
    flat = TrialCurves((0, 1, 2, 3, 4), line, line, band, band)
    assert "nan" not in curves(flat, limits([flat]), "").lower()


def test_bars_have_whiskers_of_one_standard_error():
    html = made("a b", scores=[1.0, -1.0], error=Error(np.array([1.0, 0.5]))).to_html()
    # the track reaches from -2 to 2
    assert (
        '<i class="p" style="left:50.00%;width:25.00%"></i>'
        '<span style="left:50.00%;width:50.00%"></span>'
    ) in html
    assert (
        '<i class="n" style="left:25.00%;width:25.00%"></i>'
        '<span style="left:12.50%;width:25.00%"></span>'
    ) in html
    assert 'data-tip="a: +1 ± 1.00"' in html
    assert "<span style=" not in made("a b", scores=[1.0, -1.0]).to_html()


def test_an_anchor_is_marked_in_the_text_and_told_below():
    html = made("not so bad", "anchors", False, detail=ANCHOR).to_html()
    assert re.findall(r'<span class="u m anchor"[^>]*>(\w+)</span>', html) == ["not", "bad"]
    assert "IF “not” and “bad” stay THEN the prediction is good" in html


def test_images_have_evidence_too():
    html = judged(compared(image())).to_html()
    parsed(html)
    assert '<svg class="curves"' in html


def test_similar_methods_stand_together_and_those_without_a_ranking_last():
    nan = np.nan
    matrix = np.array(
        [[1, 0.1, nan, 0.9], [0.1, 1, nan, 0.2], [nan, nan, nan, nan], [0.9, 0.2, nan, 1]]
    )
    assert similar_together(matrix) == [3, 0, 1, 2]
