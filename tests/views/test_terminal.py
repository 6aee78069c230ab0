"""Text for terminals: plain when there is none, aligned for wide characters, no control codes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Group

import whence
from tests.views.conftest import compared, image, judged, made
from whence.core.plan import Plan
from whence.views import wording
from whence.views.answering import answer_sentences
from whence.views.terminal import to_text
from whence.views.terminal_tables import evidence_table
from whence.views.verdicts import random_rankings

ANSI = re.compile(r"\x1b\[[0-9;]*m")
BRIEF = [
    "gradient-l1",
    "gradient-l2",
    "gradient-x-input",
    "gradient-mean",
    "attention-mean",
    "attention-max",
    "rollout",
    "value-weighted",
    "generic-attention",
    "occlusion",
    "random",
    "attn-lrp",
]
LONG = " ".join(f"word{i}" for i in range(200))


def test_print_is_plain_without_a_terminal(capsys):
    print(made("so good"))
    print(compared("so good"))
    assert "\x1b" not in capsys.readouterr().out


def test_print_has_the_numbers_and_what_they_explain():
    shown = str(made("so good", scores=[0.5, -0.25]))
    for part in (
        "the score (logit) of good, 1.25",
        "says good (75 %)",
        "+0.500",
        "-0.250",
        "toy",
        "2 forward, 1 backward, under a second",
    ):
        assert part in shown


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize(
    "text",
    [
        "the food is great but the service is not bad",
        "中国的电影 很好看 👨‍👩‍👧 👍🏽 мир ภาพยนตร์",
        LONG,
    ],
)
def test_no_line_is_wider_than_the_terminal(terminal, width, text):
    terminal(width)
    for result in (compared(text), made(text)):
        shown = ANSI.sub("", str(result))
        assert max(cell_len(line) for line in shown.splitlines()) <= width


def test_columns_stay_aligned_below_wide_characters(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    rows = [
        line
        for line in compared("中国 ab 日本語", 2).to_text(full=True).splitlines()
        if re.match(r"(中国|ab|日本語)  ?.*\d$", line)
    ]
    assert len(rows) == 3
    assert len({cell_len(row) for row in rows}) == 1


def test_colour_where_there_is_colour_and_not_with_no_color(terminal, monkeypatch):
    terminal(100)
    coloured = str(made("so good", scores=[1.0, -1.0]))
    assert "48;2;242;135;32" in coloured
    assert "48;2;58;136;214" in coloured
    assert "for the target" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = str(made("so good", scores=[1.0, -1.0]))
    assert "48;2" not in plain
    assert "for the target" not in plain


def test_text_cannot_inject_markup_or_control_codes(terminal):
    terminal(100)
    shown = str(made("[bold]x[/] \x1b[31mred \x07 [link=http://x]y :smile:"))
    bare = ANSI.sub("", shown)
    for literal in ("[bold]x[/]", "\\x1b[31mred", "\\x07", "[link=http://x]y", ":smile:"):
        assert literal in bare
    assert "\x1b[31mred" not in shown
    assert "\x07" not in shown
    assert "\x1b]" not in shown  # no terminal hyperlink


def test_a_long_text_is_capped_and_says_so():
    shown = compared(LONG).to_text(full=True)
    assert "the 40 strongest of 200 units" in shown
    assert "--all" in shown


def test_methods_that_say_nothing_and_are_left_out_say_why():
    shown = " ".join(compared("so good").to_text(full=True).split())
    assert "gradient-mean: zero by construction" in shown
    assert "other left out: it does not fit" in shown
    assert "gap 0.31 %" in shown


def test_an_image_is_a_grid(terminal):
    plain = str(made(image(), signed=False, scores=[0, 1, 2, 3, 4, 4]))
    assert "\n  ░░▒▒\n▓▓████\n" in plain
    terminal(100)
    assert "48;2" in str(made(image()))


def test_all_zero_scores_and_one_unit():
    assert "0.00" in str(made("good", scores=[0.0]))
    assert "good  0.00" in str(made("good", scores=[0.0]))


# ---------------------------------------------------------------------- the answer first


def test_a_comparison_of_all_methods_fits_forty_lines_and_begins_with_the_answer(monkeypatch):
    # the fewest rankings: it is drawn alike, for a tenth of the passes
    model, text = whence.load("sentiment"), "the food is great but the service is bad"
    c = whence.compare(model, text, rankings=39, steps=2)
    for width in (80, 140):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = str(c).splitlines()
        assert len(lines) <= 40
        assert lines[0].startswith("The model says ")
        shown = " ".join(" ".join(lines).split())
        for sentence in answer_sentences(c.answer):
            assert " ".join(sentence.split()) in shown
        for name in c.attributions:  # no method is lost, and none is told twice at length
            assert name in shown
        assert len(c.to_text(full=True).splitlines()) > 100


def test_no_share_and_no_p_of_the_verdicts_is_cut_off():
    """99.5 % is wider than 99 %: "✓ 99.5 % .0…" stood there, at 80 columns."""
    c = judged(compared("the food is great but the service is not bad at all"))
    every = {}
    for name, a in c.attributions.items():
        assert a.evidence is not None
        trials = tuple(replace(t, beaten=0.995, p=0.02) for t in a.evidence.trials)
        every[name] = replace(a, evidence=replace(a.evidence, trials=trials))
    c = replace(c, attributions=every)
    for width in (60, 80, 100):
        shown = to_text(
            lambda console: Group(*evidence_table(list(every.values()), console.width)), width
        )
        removals = {60: 1, 80: 2, 100: 2}[width]  # what has no room is not shown by half
        assert ("removals without room here: delete" in shown) == (removals == 1)
        rows = [row for row in shown.splitlines() if row.split(" ")[0] in every]
        assert len(rows) == len(every)
        for row in rows:
            assert row.count("99.5 %") == row.count(" .020") == removals


def test_one_word_is_not_named_once_for_each_method():
    """A table with "dull" in each row, and half of the methods without a verdict below it."""
    c = whence.compare(whence.load("sentiment"), "dull", BRIEF)
    shown = str(c)
    assert "strongest" not in shown
    told = " ".join(shown.split())
    names = re.search(r"– no verdict: (.*?) Explained", told)
    assert names is not None
    assert sorted(names[1].split(", ")) == sorted(BRIEF)
    assert re.search(r"(?m)^dull$", shown)


def test_every_number_of_random_rankings_is_told():
    """Equal scores leave an anchor fewer different rankings; "of 100" was said of these too."""
    c = judged(compared("the food is great but the service is not bad at all"))
    first, *others = c.attributions
    fewer = c.attributions[first]
    assert fewer.evidence is not None
    changed = replace(fewer, evidence=replace(fewer.evidence, rankings=5))
    mixed = replace(c, attributions={**c.attributions, first: changed})
    (usual,) = {a.evidence.rankings for a in c.attributions.values() if a.evidence is not None}
    every = list(mixed.attributions.values())
    assert random_rankings(every) == f"{usual} random rankings ({first} 5)"
    assert random_rankings([mixed.attributions[name] for name in others]) == (
        f"{usual} random rankings"
    )
    for shown in (str(mixed), mixed.to_text(full=True), mixed.to_html()):
        assert f"{usual} random rankings ({first} 5)" in " ".join(shown.split())


def test_a_budget_is_told_in_one_sentence():
    plan = Plan(rankings=39, reason="the budget is 30 s")
    a = made("so good", plan=plan)
    (line,) = wording.remarks(a)
    assert line.startswith("To keep the cost down: leaner than usual, as the budget is 30 s: 39 ")


def test_a_long_text_is_shown_around_its_strongest_words():
    a = made(LONG, scores=[0.0] * 100 + [5.0] + [0.0] * 99)
    shown = str(a)
    assert "…" in shown
    assert "word100" in shown
    assert "word150" not in shown.split("explained")[0].split("\n\n")[1]
    assert "word150" in a.to_text(full=True)


def test_the_verdicts_of_those_without_a_row_are_told_in_a_line():
    c = whence.compare(whence.load("sentiment"), "not bad at all really", BRIEF)
    shown = " ".join(str(c).split())
    for name in BRIEF:
        assert name in shown
