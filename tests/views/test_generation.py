"""Generated texts in a terminal, and as a figure."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from tests.views.generations import END, METHODS, generation
from whence.core.attribution import Error
from whence.views.generation import decoding_line, output_name, rows_of
from whence.views.wording import score_format

ANSI = re.compile(r"\x1b\[[0-9;]*m")
PROMPT = "Once upon a time there was a little"
WRITTEN = [" co", "ward", " and", " off", "\n", "then", END]
LONG = " ".join(f"word{i}{'.' if i % 9 == 8 else ''}" for i in range(200))


def test_the_answer_comes_first_and_then_each_word_with_its_sources():
    g = generation(PROMPT, WRITTEN)
    shown = str(g)
    lines = shown.splitlines()
    assert lines[0] == "Why did the model write “coward and off then”?"
    assert lines[2].split("  ")[0] == "prompt"
    assert PROMPT in lines[2]
    assert "coward and off" in lines[3]
    assert shown.index("methods tested") < shown.index("by gradient-x-input")
    for row in rows_of(g, "gradient-x-input"):
        (line,) = [one for one in lines if one.startswith(f"{row.name} ") and " % " in one]
        units = row.strongest(3, score_format(row.scores.tolist(), signed=True))
        strongest = [row.sources[unit] for unit in units]
        # in this order, with the signs of their scores
        at = [line.index(f"  {name} ") for name in strongest]
        assert at == sorted(at)
        signs = re.findall(r"[+−](?=\d)", line)
        assert signs == ["+" if row.scores[unit] > 0 else "−" for unit in units]


def test_a_source_whose_score_is_shown_as_nothing_is_none():
    """Would catch: “. −407  president 0  to 0”, the strongest sources of a line break."""
    g = generation("Go on now", [" then"], {"occlusion": True}, evidence=False, read="perplexity")
    a = replace(g["occlusion"][0], scores=np.array([-407.0, 0.31, -0.2]))
    g = replace(g, rows={"occlusion": (a,)})
    (line,) = [line for line in str(g).splitlines() if re.match("then .*%", line)]
    assert re.findall(r"(\w+) +(−?\d+)$", line) == [("Go", "−407")]
    cell = re.search(r"<bdi>Go</bdi>[^<]*", g.to_html().split("As a table")[1])
    assert cell is not None
    assert cell[0] == "<bdi>Go</bdi>&nbsp;−407"


def test_the_first_line_ends_once():
    """Would catch: “The model wrote “people.”.”"""
    one = {"occlusion": True}
    g = generation("Go on", [" people", "."], one, explained=[0], evidence=False)
    (a,) = g["occlusion"]
    a = replace(a, target=replace(a.target, against=" economy"))
    asked = str(replace(g, rows={"occlusion": (a,)})).splitlines()[0]
    assert asked == "Why “people” rather than “economy”? The model wrote “people.”"


def test_a_word_of_two_tokens_is_as_likely_as_both_together():
    row = rows_of(generation(PROMPT, WRITTEN), "occlusion")[0]
    assert row.name == "coward"
    assert row.probability == 0.25
    assert len(row.sources) == 8


def test_a_token_alone_rests_on_the_part_of_its_word_before_it():
    row = rows_of(generation(PROMPT, WRITTEN, explained=[1]), "occlusion")[0]
    assert row.sources[-1] == "co"  # not the whole word, of which it is a part itself


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("prompt", "written"),
    [
        (PROMPT, WRITTEN),
        (LONG, [f" w{i}" for i in range(60)]),
        ("中国的电影 很好看 👨‍👩‍👧 👍🏽", ["中国", "的", " ภาพยนตร์", " 👍🏽"]),
        ("x" * 300, [" " + "y" * 200, " z"]),
    ],
)
def test_no_line_is_wider_than_the_terminal(terminal, width, prompt, written):
    terminal(width)
    shown = ANSI.sub("", str(generation(prompt, written)))
    assert max(cell_len(line) for line in shown.splitlines()) <= width


def test_what_would_act_on_a_terminal_is_spelt_out(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    g = generation(
        "<script>alert(1)</script> \x1b[31mred \u202eevil",
        [" \x1b]0;title", "\x07", " [bold]"],
        notes=("\x1b[2J",),
        skipped={"\x1b": "\x07"},
    )
    shown = str(g)
    assert not [c for c in shown if not c.isprintable() and c != "\n"]
    assert "<script>alert(1)</script> \\x1b[31mred" in shown
    assert "[bold]" in shown  # is no markup


def test_it_says_what_is_missing_and_how_the_text_came_about():
    g = generation(PROMPT, WRITTEN, explained=[0, 2], notes=("the border lies inside a token",))
    gaps = zip(g["occlusion"], (0.1, 0.2), strict=True)
    rows = [replace(a, error=Error(None, gap)) for a, gap in gaps]
    g = replace(
        g,
        rows={**g.rows, "occlusion": tuple(rows)},
        skipped={"attn-lrp": "it has no rule for this layer"},
    )
    shown = " ".join(str(g).split())
    assert "2 of the 7 written tokens were explained." in shown
    assert "attn-lrp was left out: it has no rule for this layer" in shown
    assert "occlusion: completeness gap up to 20 %." in shown
    assert "The border lies inside a token." in shown
    assert "12 forward, 3 backward, under a second." in shown


def test_without_evidence_it_says_so():
    told = " ".join(str(generation(PROMPT, WRITTEN, evidence=False)).split())
    assert "There is no evidence for these scores, as none was asked for" in told
    why = generation(PROMPT, WRITTEN, evidence=False, skipped={"evidence": "one unit only"})
    assert "There is no evidence for these scores: one unit only" in " ".join(str(why).split())


@pytest.mark.parametrize(
    ("decoding", "words"),
    [
        ({"given": "text"}, "What follows the prompt was given, as text."),
        (
            {"do_sample": False, "num_beams": 1, "max_new_tokens": 5},
            "Decoding: the likeliest token each time, at most 5 tokens.",
        ),
        (
            {"do_sample": True, "num_beams": 1, "top_k": 9, "max_new_tokens": 5, "seed": 3},
            "Decoding: tokens drawn at random (top_k 9, seed 3), at most 5 tokens.",
        ),
        (
            {"do_sample": False, "num_beams": 4, "max_new_tokens": 5},
            "Decoding: beam search with 4 beams, at most 5 tokens.",
        ),
    ],
)
def test_decoding_in_words(decoding, words):
    assert decoding_line(generation(PROMPT, WRITTEN, decoding=decoding)) == words


def test_white_space_alone_has_a_sign():
    assert output_name("\n\t ") == "⏎⇥␣"


def test_a_small_matrix_has_a_row_for_each_word_and_a_large_one_is_left_out():
    small = str(generation("so very good", [" it", " is"]))
    rows = [line for line in small.splitlines() if re.match(r"(it|is) .*[█▓▒░]", line)]
    assert len(rows) == 2
    assert all("█" in row for row in rows)  # the strongest of each row has full shade
    assert "█" not in str(generation(LONG, [" it", " is"]))


def test_the_figure_has_the_matrix():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    g = generation(PROMPT, WRITTEN)
    for method, signed in METHODS.items():
        ax = g.plot(method)
        drawn = ax.images[0].get_array()
        assert np.array_equal(np.ma.getmaskarray(drawn), np.isnan(g.matrix(method)))
        assert np.ma.allclose(drawn, np.ma.masked_invalid(g.matrix(method)))
        low, high = ax.images[0].get_clim()
        assert low == (-high if signed else 0)
        pyplot.close(ax.figure)
    _, ax = pyplot.subplots()
    assert g.plot(ax=ax) is ax
    assert ax.get_title(loc="left") == "gradient-x-input"
    pyplot.close(ax.figure)
