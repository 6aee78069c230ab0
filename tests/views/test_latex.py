"""LaTeX snippets: nothing of the text is a command, and every word can be read back.

What was explained, and how, stands in the comments.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.conftest import compared, image, judged, made, passage_of
from whence.core.attribution import Cost, Error
from whence.core.attributions import Attributions
from whence.core.errors import InputError
from whence.core.many import Many
from whence.core.passage import Passage, with_picture
from whence.core.target import Target
from whence.views import wording
from whence.views.latex import escaped

# longest first; written out once more, not taken from the module: a character that it forgets is
# not undone here either
NAMED = {
    r"\textbackslash{}": "\\",
    r"\textasciicircum{}": "^",
    r"\textasciitilde{}": "~",
    r"\textasciigrave{}": "`",
    r"\textgreater{}": ">",
    r"\textless{}": "<",
    r"\textbar{}": "|",
    r"\char34{}": '"',
    **{f"\\{c}": c for c in "{}$&#%_"},
    "{}": "",
}
TOKEN = re.compile("|".join(map(re.escape, NAMED)) + "|.", re.DOTALL)
HOSTILE = "{}$&#%_^~<>|\"\\`-',"
TEXTS = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from(HOSTILE + " \n\t")),
    min_size=1,
    max_size=60,
).filter(str.strip)


# as a user meets it: a wrong name of a table reaches our own refusal
pytestmark = pytest.mark.usefixtures("unchecked")


def undone(snippet: str) -> str:
    """What a reader of the typeset words sees; anything that LaTeX would act on is an error."""
    out = []
    for token in TOKEN.findall(snippet):
        assert token in NAMED or token not in '\\{}$&#%_^~<>|"`', (token, snippet)
        out.append(NAMED.get(token, token))
    return "".join(out)


def body_of(snippet: str) -> str:
    """Without comments and the group around it."""
    lines = [line for line in snippet.splitlines() if not line.startswith("%")]
    assert lines[0] == r"\begingroup\setlength{\fboxsep}{1pt}%"
    assert lines[-1] == r"\endgroup"
    return "\n".join(lines[1:-1])


def balanced(snippet: str) -> bool:
    depth = 0
    for token in re.findall(r"\\.|[{}]", snippet, re.DOTALL):  # \{ and \} count for nothing
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth < 0:
            return False
    return depth == 0


def words_of(body: str) -> list[str]:
    bare = re.sub(
        r"\\colorbox\[HTML\]\{[0-9A-F]{6}\}\{\\strut ((?:\\[{}]|\{\}|[^{}])*)\}", r"\1", body
    )
    return [undone(word) for word in re.sub(r"\\allowbreak\{\}", "", bare).split()]


@given(TEXTS)
def test_any_text_comes_back_and_acts_on_nothing(text):
    assert undone(escaped(text)) == wording.visible(text)


@given(TEXTS)
def test_any_attribution_is_balanced_and_its_words_can_be_read(text):
    snippet = made(text).to_latex("text")
    assert balanced(body_of(snippet))
    assert words_of(body_of(snippet)) == wording.visible(text, keep="\n\r\t").split()


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_setting_or_label_ends_a_comment(text):
    snippet = made(
        "so good", settings={"baseline": text}, prediction={text: 1.0}, error=Error(note=text)
    ).to_latex("text")
    lines = snippet.split("\n")  # what TeX takes for the end of a line
    assert next(line for line in lines if not line.startswith("%")).startswith(r"\begingroup")
    assert len([line for line in lines if not line.startswith("%")]) == 4
    assert "\r" not in snippet


def test_colours_follow_the_scores():
    body = body_of(made("so very good now", scores=[2.0, -2.0, 1.0, 0.0]).to_latex("text"))
    assert r"\colorbox[HTML]{F3841C}{\strut so}" in body  # the orange of the light theme
    assert r"\colorbox[HTML]{549CDE}{\strut very}" in body  # its blue
    assert re.search(
        r"\{F8BA80\}\{\\strut good\}", body
    )  # 0.12 + 0.88 / 2 of the way from white to orange
    assert body.endswith(" now")  # a zero is left uncoloured
    assert r"{A080D6}{\strut so}" in made("so", signed=False, scores=[1.0]).to_latex()


def test_ligatures_do_not_change_the_text():
    assert escaped("--- '' ,, a-b") == "-{}-{}- '{}' ,{}, a-b"
    assert escaped("?`") == r"?\textasciigrave{}"


def test_a_unit_of_several_words_can_break_between_them():
    text = "so very good. now"
    p = Passage.from_tokens(
        text, [0, 1], ["so very good.", "now"], [(0, 13), (14, 17)], [0, 0], units="sentence"
    )
    body = body_of(made(p, scores=np.ones(len(p.unit_spans))).to_latex("text"))
    assert body.count(r"\colorbox") == 4
    assert words_of(body) == text.split()


def test_tokens_without_a_space_between_them_can_break_and_stay_together():
    p = Passage.from_tokens(
        "中国 ab", [0, 1, 2], ["中", "国", "ab"], [(0, 1), (1, 2), (3, 5)], [0, 0, 0], units="token"
    )
    body = body_of(made(p, scores=[1, 1, 1]).to_latex("text"))
    assert body.count(r"\allowbreak{}") == 1
    assert words_of(body) == ["中国", "ab"]


def test_a_pair_is_kept_apart():
    p = Passage.from_tokens(
        "so good", [0, 1, 2], ["so", "good", "no"], [(0, 2), (3, 7), (0, 2)], [0, 0, 1], pair="no"
    )
    assert body_of(made(p).to_latex("text")).count(r"\textbardbl") == 1


def test_the_explanation_does_not_travel_alone():
    snippet = made("so good", error=Error(np.array([0.1, 0.2]), 0.0031, "a note")).to_latex()
    comments = "\n".join(line for line in snippet.splitlines() if line.startswith("%"))
    for part in (
        *(
            "xcolor",
            "the score (logit) of good, 1.25",
            "method: toy",
            "version 1",
            "layer=last",
            "seed 0",
            "2 forward, 1 backward, under a second",
        ),
        *("gap 0.31 %", "± 0.2", "a note", "good 75.0%", "weights 00ff", "orange for the target"),
    ):
        assert part in comments, part


def test_a_comparison_is_a_table_with_a_row_for_each_method():
    snippet = compared("so & good", 9).to_latex("text")
    body = body_of(snippet)
    assert balanced(body)
    rows = re.findall(
        r"^  (\S+) & \{\\raggedright (.*)\\par\} \\tabularnewline$", body, re.MULTILINE
    )
    assert [method for method, _ in rows] == list(compared("so & good"))
    assert all(words_of(text) == ["so", "&", "good"] for _, text in rows)
    assert (
        len(re.findall(r"(?<!\\)&", body)) == 9
    )  # one column mark a row: those of the text are escaped
    assert "% other left out: it does not fit" in snippet
    assert "% in all 30 forward, 29 backward, under a second" in snippet


def test_an_image_has_no_words():
    with pytest.raises(InputError, match=r"\.plot\(\)"):
        made(image()).to_latex()
    with pytest.raises(InputError, match="no words"):
        compared(image()).to_latex()


def test_of_a_text_beside_an_image_the_words_are_coloured_and_the_rest_is_told():
    both = with_picture(
        passage_of("so good"), (), [(0, 0), (0, 1)], pixels=np.zeros((3, 4, 8), dtype=np.float32)
    )
    snippet = made(both, scores=[1, 2, 3, 4]).to_latex("text")
    assert words_of(body_of(snippet)) == ["so", "good"]
    assert "% note: 2 patches or regions of the picture" in snippet


def cells_of(table: str) -> list[list[str]]:
    rows = re.findall(r"^  (.*) \\\\$", table, re.MULTILINE)
    return [[undone(cell).strip() for cell in re.split(r"(?<!\\)&", row)] for row in rows]


def test_the_table_of_methods_has_verdicts_cost_and_error():
    c = judged(compared("so very good & fine and so on"))
    table = c.to_latex("methods")
    assert balanced(table)
    heading, *rows = cells_of(table)
    assert heading == [
        *("method", "evidence", "beaten", "p"),
        *("forward", "backward", "time", "error"),
    ]
    assert [row[0] for row in rows] == list(c)
    for row, a in zip(rows, c.attributions.values(), strict=True):
        assert row[1] == str(a.evidence.verdict)
        assert row[2] == wording.percent(a.evidence.value)
        assert wording.p_value(a.evidence.p).endswith(row[3])
        assert row[4:6] == [str(a.cost.forwards), str(a.cost.backwards)]
        assert row[6] == "12 ms"
    errors = {row[0]: row[7] for row in rows}
    assert errors["integrated-gradients"] == "gap 0.31 %"
    assert errors["random"] == "–"
    # without evidence there is no column for it
    assert cells_of(made("so good").to_latex("methods"))[0] == [
        *("method", "forward", "backward", "time")
    ]


def test_both_parts_come_one_after_the_other():
    c = judged(compared("so good"))
    both, text, methods = c.to_latex(), c.to_latex("text"), c.to_latex("methods")
    bodies = [part[part.index("\n\\begin") :].strip() for part in (text, methods)]
    assert both.endswith(f"{bodies[0]}\n\\par\\medskip\\noindent{{}}\n{bodies[1]}\n")
    assert both.startswith(text[: text.index("\n\\begin")])
    with pytest.raises(InputError, match="one of text, methods, units, not 'all'"):
        c.to_latex("all")


def test_of_an_image_there_is_the_table_of_methods():
    heading, row = cells_of(made(image()).to_latex("methods"))
    assert (heading[0], row[0]) == ("method", "toy")


def test_several_targets_are_all_named():
    targets = {
        f"logit of {name}": made("so good", target=Target(name, index=i), value=float(i))
        for i, name in enumerate(("bad", "good"))
    }
    snippet = Attributions("target", targets, Cost(1, 2)).to_latex()
    explained = [f"% explained: {wording.value(a)}\n" for a in targets.values()]
    assert "".join(explained) in snippet
    assert [row[0] for row in cells_of(snippet)] == ["target", *targets]


def test_the_table_of_many_texts_has_the_counts_beside_chance():
    many = Many((judged(compared("so very good")), judged(compared("not & so bad"))))
    table = many.to_latex()
    assert balanced(table)
    heading, *rows = cells_of(table)
    assert heading[:2] == ["method", "better"]
    tallies = {tally.method: tally for tally in many.tallies()}
    assert {row[0] for row in rows} == set(tallies)
    for name, better, same, worse, by_chance, *_ in rows:
        tally = tallies[name]
        assert better == f"{tally.better} of {tally.judged}"
        assert (same, worse) == (str(tally.same), str(tally.worse))
        assert by_chance.startswith(f"{tally.by_chance:.2g} (")
    for name in tallies:
        assert f"% method: {name};" in table
    with pytest.raises(InputError, match="no texts"):
        Many(()).to_latex()
