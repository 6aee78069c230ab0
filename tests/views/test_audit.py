"""An audit in words, in a terminal and as a page."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from tests.views.audits import audit_with, observed
from tests.views.conftest import own
from whence.core.audit import Effect, Place, effects_of
from whence.core.audited import FEWEST_TO_RULE_OUT, Audit, May
from whence.core.bootstrap import Mean
from whence.core.errors import InputError, UnknownName
from whence.core.figure import Figure
from whence.core.retrained import Retrained
from whence.views.audit import (
    READINGS_MEAN,
    audit_sentences,
    audit_text,
    count_sentences,
    how_to_read,
    shown,
    shown_of_most,
)
from whence.views.audit_figures import FIGURES
from whence.views.audit_page import audit_page
from whence.views.audit_pictures import (
    BINS,
    MARKS,
    NAMES_WIDE,
    PLOT_WIDE,
    TOP,
    Line,
    curves,
    histogram,
    scatter,
)

LN_2 = log(2)
TOLD_APART = observed(
    12, change=lambda: 0.4, jsd=lambda: 0.3, jsd_of_layer={0: 0.9 * LN_2, 1: 0.01}
)


def test_layers_are_told_apart_in_words() -> None:
    enough = observed(
        FEWEST_TO_RULE_OUT,
        change=lambda: 0.4,
        jsd=lambda: 0.3,
        jsd_of_layer={0: 0.9 * LN_2, 1: 0.01},
    )
    said = " ".join(audit_sentences(audit_with(enough)))
    assert "In layer 1 attention may be read as an explanation" in said
    assert "In layer 0 attention may be read as one explanation of several: the output" in said
    assert "Of 4 heads, 2 may be read and 2 may be read as one explanation of several." in said
    assert "attention-mean may be read; rollout may not" in said
    assert "that of gradients is 0.60" in said


def test_layers_with_one_verdict_are_named_together() -> None:
    idle = audit_with(observed(FEWEST_TO_RULE_OUT, change=lambda: 0.0, jsd=lambda: LN_2))
    said = audit_sentences(idle)
    assert said[1].startswith("In layers 0 and 1 attention may not be read as an explanation: the")
    few = audit_with(observed(FEWEST_TO_RULE_OUT - 1, change=lambda: 0.0, jsd=lambda: LN_2))
    assert audit_sentences(few)[1] == (
        "In layers 0 and 1 attention is neither cleared nor ruled out: the texts are too few to "
        "rule it out (40 are needed)."
    )


def test_of_several_readings_that_agree_as_well_all_are_named() -> None:
    """The enemies: one "agrees best", beside another that agrees as well; and of one, "best".

    And a reading that "agrees", of a correlation below zero.
    """

    def yardstick(*taus: float, control: float | None = 0.0) -> str:
        effects = [Effect("correlation", "tau-gradient-loo", Place(), "", 0.6, (0.5, 0.7), 40)]
        for number, tau in enumerate(taus):
            of = Place(), f"r{number}"
            effects.append(Effect("correlation", "tau-loo", *of, tau, (tau, tau), 40, control))
            effects.append(Effect("readings", "beaten", *of, 0.9 - number / 10, None, 3))
        one = Audit("toy", "x.csv", texts=40, failed=0, seed=0, effects=tuple(effects))
        return audit_sentences(one)[-1]

    assert "does, the highest is that of r1, 0.50 [" in yardstick(0.2, 0.5)
    assert "does, the highest is that of r0 and r1, 0.50 [" in yardstick(0.5, 0.5, 0.2)
    assert "does, that of r0 and r1 is 0.50 [" in yardstick(0.5, 0.5)
    assert "does, that of r0 is -0.50 [" in yardstick(-0.5)
    assert "agree" not in yardstick(-0.5)
    assert yardstick(0.5).endswith(", and that of random weights 0.00.")
    assert yardstick(0.5, control=None).endswith("that of gradients is 0.60 [0.50, 0.70].")


def test_no_group_of_none_is_told_of() -> None:
    """ "0 may be read, 0 as one explanation of several, 0 may not, and 4 are undecided" """
    few = observed(3, change=lambda: 0.0, jsd=lambda: LN_2)
    said = " ".join(audit_sentences(audit_with(few)))
    assert "All 4 heads are undecided." in said
    assert not re.search(r"\b0 (may|as)\b", said)
    apart = " ".join(audit_sentences(audit_with(TOLD_APART)))
    groups = re.search(r"Of 4 heads, (.*?)\.", apart)
    assert groups is not None
    assert sum(map(int, re.findall(r"\d+", groups[1]))) == 4


def test_readings_of_which_nothing_is_told_are_named_once_and_whole() -> None:
    few = observed(3, change=lambda: 0.0, jsd=lambda: LN_2)
    audit = audit_with(few)
    assert {verdict.may for verdict in audit.readings} == {May.OPEN}
    said = " ".join(audit_sentences(audit))
    assert "Of none of the ways to sum attention up for each word do the texts tell" in said
    assert ", of attention-mean" not in said


def test_only_columns_that_are_there_are_explained() -> None:
    """Without the search for another attention there is no such column, and no verdict of it."""
    for tests, explained in (
        (("permutation", "uniform"), ("Shuffled, even:",)),
        (("permutation",), ("Shuffled:",)),
        (("uniform",), ("Even:",)),
        (("permutation", "uniform", "adversary"), ("Shuffled, even:", "Another:")),
    ):
        alone = [[one for one in seen if one.test in tests] for seen in TOLD_APART]
        told = how_to_read(audit_with(alone))
        for word in ("Shuffled, even:", "Shuffled:", "Even:", "Another:"):
            assert (word in told) == (word in explained)


def test_one_is_not_several_and_nothing_is_not_tested() -> None:
    one = audit_with(observed(1, change=lambda: 0.4, jsd=lambda: 0.3))
    said = audit_sentences(one)
    assert said[0].endswith("Tested on 1 text.")
    assert any(line.startswith("To the task, 1 of 4 heads is worth") for line in said)
    assert "Of none of the ways to sum attention up for each word " in " ".join(said)
    effects = tuple(e for e in one.effects if e.reading != "rollout")
    alone = " ".join(audit_sentences(replace(one, effects=effects)))
    assert "Of ways to sum attention up for each word, one was tested: of attention-mean" in alone
    nothing = Audit("toy", "x.csv", texts=0, failed=3, seed=0, effects=())
    assert audit_sentences(nothing) == [
        "Is attention an explanation in toy? Nothing was tested: 3 texts failed."
    ]


def test_only_with_several_layers_is_there_a_word_on_all_of_them() -> None:
    both = audit_with(observed(FEWEST_TO_RULE_OUT, change=lambda: 0.4, jsd=lambda: 0.0))
    assert "Of all layers together: it may be read" in " ".join(audit_sentences(both))
    one = replace(both, effects=tuple(e for e in both.effects if e.place.layer != 1))
    assert "Of all layers together" not in " ".join(audit_sentences(one))
    assert "In layer 0 attention may be read" in " ".join(audit_sentences(one))


def test_the_terminal_has_the_numbers_beside_the_verdicts() -> None:
    shown = audit_text(audit_with(TOLD_APART))
    assert "0.40 [0.40, 0.40]" in shown
    assert "90% [90%, 90%]" in shown  # of ln 2
    assert "80% [80%, 80%]" in shown  # of random rankings
    assert "flow: nothing on 1 of 9 texts" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100


def test_names_of_models_are_data() -> None:
    hostile = audit_with(TOLD_APART, model="<script>alert(1)</script>\x1b[31m")
    page = own(audit_page(hostile))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\x1b" not in audit_text(hostile)


def test_the_page_has_a_figure_for_each_layer_and_test() -> None:
    page = audit_page(audit_with(TOLD_APART))
    # three tests for two layers and all of them together; heads, pruning, correlation, readings
    assert page.count("<figure>") == 3 * 3 + 1 + 3 + 2 + 2
    assert page.count('class="text"') == 12 * 3
    assert "script-src 'sha256-" in page
    assert "<script" not in own(page)


@pytest.mark.parametrize("width", [1200, 390])
def test_pictures_stay_beside_each_other_and_within_the_page(browser, tmp_path, width) -> None:
    # would catch: pictures wider than their columns, which lay over their neighbours
    path = tmp_path / "page.html"
    path.write_text(audit_page(audit_with(TOLD_APART)), "utf-8")
    context = browser.new_context(offline=True, viewport={"width": width, "height": 900})
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = page.locator(".pictures:not(.wide) figure").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().toJSON())"
        )
    finally:
        context.close()
    assert len(boxes) >= 9
    for left, right in pairwise(boxes):
        assert left["y"] != right["y"] or left["right"] <= right["x"]


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    effect = Effect("uniform", "change", Place(), "", -0.001, (-0.004, 0.3), 50)
    assert shown(effect) == "0.00 [0.00, 0.30]"


def test_pictures_hold_what_they_are_given() -> None:
    """The enemy: a value on the last edge that has no bin."""
    drawn = histogram([0.0, LN_2, LN_2 / 2], LN_2, ("difference", "texts"), "label").content
    assert drawn.count('class="bin"') == BINS
    assert drawn.count('height="0.0"') == BINS - 3
    dots = scatter([0.0, 1.0, 2.0], [0.0, 1.0, -1.0], ("a", "b"), "label").content
    assert dots.count("<circle") == 3
    assert 'cx="220.0"' in dots  # what lies outside is drawn at the edge


def test_at_eighty_columns_names_and_numbers_are_whole() -> None:
    """The longest names there are; the enemy cuts them, or breaks an interval in two."""
    kinds = observed(12, change=lambda: 0.4, jsd=lambda: 0.9 * LN_2)
    for seen in kinds:
        for number, one in enumerate(seen):
            if one.place.layer is not None:
                seen[number] = replace(one, place=replace(one.place, kind="encoder"))
            if one.reading == "rollout":
                seen[number] = replace(one, reading="generic-attention", value=-one.value / 2)
    shown = audit_text(audit_with(kinds), 80)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    for whole in ("generic-attention  ", "encoder layer 1", "attention-mean  "):
        assert any(line.startswith(whole) for line in lines)
    rows = lines[next(i for i, line in enumerate(lines) if line.startswith("attention of")) :]
    for number in ("[0.40, 0.40]", "[90%, 90%]", "[-0.10, -0.10]"):
        assert any(number in line for line in rows)
    wide = audit_text(audit_with(kinds), 120)
    assert "0.40 [0.40, 0.40]" in wide  # beside each other where there is room


def test_half_of_the_heads_are_told_beside_random_orders() -> None:
    said = " ".join(audit_sentences(audit_with(TOLD_APART)))
    without = "Without 2 of 4 heads the loss on 12 held-out texts is 0.65 where they go least worth"
    assert without in said
    assert said.count("(better than at random beyond doubt)") == 2
    assert "It is 0.25 with all heads, and 1.05 where they go in random orders." in said


def test_an_order_that_is_worse_than_random_ones_is_called_so() -> None:
    """The enemy: whatever is told apart is called better, or passed over."""
    audit = audit_with(TOLD_APART)
    assert audit.pruning is not None
    first, *others = audit.pruning.orders
    worse = replace(first, below_random=tuple(replace(m, mean=-m.mean) for m in first.below_random))
    pruning = replace(audit.pruning, orders=(worse, *others))
    said = " ".join(audit_sentences(replace(audit, pruning=pruning)))
    assert "least worth first (worse than at random beyond doubt)" in said
    assert "other (better than at random beyond doubt)" in said


# ---------------------------------------------------------------------- figures


def parsed(figure: Figure) -> Element:
    """A drawing that is no XML cannot be opened by anything but a browser."""
    return fromstring(figure.svg)


def of_class(drawing: Element, name: str) -> list[Element]:
    return [one for one in drawing.iter() if name in one.get("class", "").split()]


@pytest.mark.parametrize("name", list(FIGURES))
def test_each_figure_stands_alone(name: str, tmp_path: Path) -> None:
    audit = audit_with(TOLD_APART)
    figure = audit.figure(name)
    drawing = parsed(figure)
    assert drawing.tag.endswith("svg")
    assert float(drawing.get("width", 0)) > 200
    used = set(re.findall(r"var\((--\w+)\)", figure.svg))
    declared = set(re.findall(r"(--\w+):", figure.svg))
    assert used <= declared  # light and dark: every colour twice
    assert all(figure.svg.count(f"{colour}:") == 2 for colour in used)
    assert figure._repr_svg_() == str(figure) == figure.svg
    assert figure.save(tmp_path / "figure.svg").read_text() == figure.svg
    assert "<script" not in figure.svg


@pytest.mark.parametrize("test", ["permutation", "uniform", "adversary"])
def test_a_test_alone_is_shown_place_by_place(test: str) -> None:
    """Would catch: places that are known by the permutation alone, and nothing said without it."""
    alone = [[one for one in seen if one.test == test] for seen in TOLD_APART]
    audit = audit_with(alone)
    assert [str(verdict.place) for verdict in audit.of_layers] == ["layer 0", "layer 1"]
    assert audit.of_all is not None
    said = audit_text(audit)
    assert "layer 1" in said
    assert "every layer" in said
    # nothing is said of tests that were never asked for, nor that the texts are to blame
    assert "the texts do not tell" not in " ".join(said.split())
    missing = "making the weights even" if test == "permutation" else "shuffling"
    assert f"{missing} was not tested" in " ".join(said.split())
    (head,) = [line.split() for line in said.splitlines() if line.startswith("attention of")]
    columns = {"permutation": "shuffled", "uniform": "even", "adversary": "another"}
    assert head == ["attention", "of", columns[test]]
    assert f'<th scope="col">{columns[test]}</th>' in audit_page(audit)
    assert ">–<" not in audit_page(audit)
    assert audit.figure(test).svg.count("every layer") >= 1
    has_heads = test != "adversary"
    assert bool(audit.of_heads) is has_heads
    assert ("Head by head" in audit_page(audit)) is has_heads


def test_a_cell_of_a_head_has_both_numbers_and_the_caption_says_which_is_shown() -> None:
    """Would catch: what *even* has ruled out, explained by the number of shuffling alone."""
    seen = observed(FEWEST_TO_RULE_OUT, change=lambda: 0.4, jsd=lambda: 0.3)
    for of_text in seen:
        for number, one in enumerate(of_text):
            if one.test == "uniform":
                of_text[number] = replace(one, value=0.01)
    page = audit_page(audit_with(seen))
    assert "layer 0, head 0: shuffled 0.40 [0.40, 0.40]; even 0.01 [0.01, 0.01]; may not" in page
    assert "when the weights of one head are shuffled." in page
    alone = [[one for one in of_text if one.test == "uniform"] for of_text in seen]
    page = audit_page(audit_with(alone))
    assert "when the weights of one head are made even: every token" in page
    assert "layer 0, head 0: even 0.01 [0.01, 0.01]; may not" in page


def test_the_answer_of_the_page_names_the_readings_too() -> None:
    page = audit_page(audit_with(TOLD_APART))
    answer = page.partition('class="answer"')[2].partition("</p>")[0]
    assert "In layer 1 attention may be read" in answer
    assert "In layer 0 attention may be read as one explanation of several" in answer
    assert "attention-mean may be read" in answer
    assert "To the task" not in answer


def test_sentences_have_one_kind_of_per_cent() -> None:
    for said in (READINGS_MEAN, how_to_read(audit_with(TOLD_APART))):
        assert " %" in said
        assert not re.search(r"\d%", said)


def test_a_number_is_told_in_its_own_units() -> None:
    """Would catch: probabilities and bars of an output that has neither; points beyond an axis."""
    seen = observed(12, change=lambda: 3.0, jsd=lambda: 0.3)
    effects = effects_of(seen, shown=lambda one: one.place.head is None, is_number=True)
    number = replace(audit_with(seen), effects=effects, heads=None, is_number=True)
    said = " ".join(audit_text(number).split())
    assert "how far the output moves, in its own units," in said
    assert "probabilities" not in said
    assert "nats" not in said
    assert "0.05" not in said
    assert "a scale of its own" in said
    assert ">3.00<" in number.figure("uniform").svg
    heights = [
        float(dot.get("cy", 0)) for dot in of_class(parsed(number.figure("permutation")), "text")
    ]
    assert set(heights) == {float(TOP)}


def test_seeds_are_told_beside_the_adversary() -> None:
    apart = {"mean": 0.2, "low": 0.1, "high": 0.3}
    numbers = {"between_seeds": apart, "free_mean": {}}
    frozen = Retrained("frozen attention", "Nothing is lost.", numbers)
    said = audit_sentences(replace(audit_with(TOLD_APART), retrained=(frozen,)))
    assert said[-1].startswith(
        "Two copies that differ in their seed alone attend 0.20 nats apart [0.10, 0.30], on "
        "average over held-out texts; the attention that was searched for in all layers, with the "
        "same output, is 0.30 [0.30, 0.30] away."
    )
    # of another quantity, as files of before have it
    older = replace(frozen, numbers={"between_seeds": apart})
    said = audit_sentences(replace(audit_with(TOLD_APART), retrained=(older,)))
    assert "Two copies" not in " ".join(said)


def test_curves_of_few_texts_are_not_said_to_have_bands() -> None:
    audit = audit_with(TOLD_APART)
    assert "Bands are 95 % intervals" in FIGURES["pruning"].about(audit)
    pruning = audit.pruning
    assert pruning is not None
    few = tuple(replace(mean, interval=None) for mean in pruning.control.loss)
    control = replace(pruning.control, loss=few)
    without = replace(audit, pruning=replace(pruning, control=control))
    assert "Bands" not in FIGURES["pruning"].about(without)
    for said in (FIGURES["pruning"].about(without), " ".join(audit_sentences(without))):
        assert "So few texts have no intervals" in said


def test_a_figure_that_is_not_there_is_named() -> None:
    audit = audit_with(TOLD_APART)
    with pytest.raises(UnknownName, match="no figure of an audit named 'prunning'"):
        audit.figure("prunning")
    with pytest.raises(InputError, match=r"nothing to draw for 'pruning'.*It has heads"):
        replace(audit, pruning=None).figure("pruning")


def test_heads_that_help_hurt_and_can_go_are_marked() -> None:
    """Values are −0.1, 0, 0.1 and 0.2. The enemies: colours of the wrong sign, marks elsewhere."""
    drawing = parsed(audit_with(TOLD_APART).figure("heads"))
    cells = {}
    for group in drawing.iter("{http://www.w3.org/2000/svg}g"):
        title, *shapes = list(group)
        cells[title.text] = shapes
    assert len(cells) == 4
    hurts = next(said for said in cells if said and "layer 0, head 0" in said)
    assert "-0.10" in hurts
    assert "it hurts" in hurts
    assert [shape.get("class") for shape in cells[hurts]] == ["empty", "falls", "mark"]
    assert cells[hurts][1].get("fill-opacity") == "0.500"
    helps = next(said for said in cells if said and "layer 1, head 1" in said)
    assert "it helps" in helps
    assert cells[helps][1].get("class") == "rises"
    assert cells[helps][1].get("fill-opacity") == "1.000"
    assert cells[helps][2].get("d") == MARKS["helps"][0]
    idle = next(said for said in cells if said and "layer 0, head 1" in said)
    assert "it can go" in idle


def test_distributions_lie_where_their_values_are() -> None:
    """Readings have τ 0.2 and 0.5, gradients 0.6; copies −0.1. The enemy: an axis from 0 to 1."""
    drawing = parsed(audit_with(TOLD_APART).figure("correlation"))
    means = [one.get("d", "") for one in of_class(drawing, "mean")]
    expected = [0.5, 0.2, 0.6, 0.5, 0.2]  # the best reading first; the yardstick; again
    places = [NAMES_WIDE + PLOT_WIDE * (tau + 1) / 2 for tau in expected]
    assert [float(d[1:].split()[0]) for d in means] == pytest.approx(places, abs=0.06)
    said = [one.text for one in drawing.iter() if (one.text or "").endswith("100%")]
    assert said == ["0.50; 100%", "0.20; 100%"] * 2
    assert len(of_class(drawing, "chance")) == 4  # of the yardstick none was drawn


def test_curves_are_drawn_from_their_means() -> None:
    """The order lies below the random ones at each step but the first and the last."""
    pruning = audit_with(TOLD_APART).pruning
    assert pruning is not None
    drawing = parsed(audit_with(TOLD_APART).figure("pruning"))
    assert [len(of_class(drawing, kind)) for kind in ("band", "faint")] == [3 + 3 + 2, 2 + 2]
    assert [len(of_class(drawing, kind)) for kind in ("sure", "unsure")] == [2 * 3, 2 * 2]
    own, _, control = [one for one in of_class(drawing, "line") if one.get("points")][:3]
    heights = [float(point.split(",")[1]) for point in own.get("points", "").split()]
    of_control = [float(point.split(",")[1]) for point in control.get("points", "").split()]
    assert heights == sorted(heights, reverse=True)  # y points down: the loss rises
    lower = [a > b for a, b in zip(heights, of_control, strict=True)]
    assert lower == [False, True, True, True, False]
    page = audit_page(audit_with(TOLD_APART))
    assert "The order comes from 11 texts, and the curve from 12 others (of 30)" in page


def test_few_texts_have_no_band() -> None:
    few = Line("few", (Mean(0.1, None, 3), Mean(0.2, None, 3)), "worth")
    drawn = curves([0, 4], [few], [], (0.0, 1.0), ("heads", "loss"), "label").content
    assert "band" not in drawn
    assert drawn.count("<polyline") == 1


def test_what_a_few_texts_say_is_shown_with_their_number() -> None:
    one = Effect("adversary", "jsd", Place(0), "", 0.4 * LN_2, None, 1)
    assert shown_of_most(one) == "40% (1 text)"


def test_a_test_that_looked_at_fewer_texts_says_at_how_many() -> None:
    # the version before: “Tested on 9 texts.”, and nothing more
    every = observed(9, lambda: 0.3, lambda: 0.1)
    for seen in every[:4]:
        seen[:] = [one for one in seen if one.test != "adversary"]
    audit = audit_with(every)
    assert count_sentences(audit) == ["Not every test rests on all 9 texts: adversary on 5."]
    assert "adversary on 5." in str(audit)
    assert "adversary on 5." in audit_page(audit)
    assert count_sentences(audit_with(observed(9, lambda: 0.3, lambda: 0.1))) == []
