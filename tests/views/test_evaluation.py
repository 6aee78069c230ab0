"""An evaluation in words, in a terminal, as a page and in LaTeX; names can only be read."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.damage import damaged
from tests.views.conftest import own
from tests.views.evaluations import TEXTS, evaluation, measured, same_everywhere, whole
from whence.core.errors import WhenceError
from whence.core.evaluation import Evaluation, MeanCurves
from whence.core.gauge import Gauge
from whence.core.many import Failure
from whence.core.registry import find_metric
from whence.views.evaluation import (
    count_sentences,
    counts_of,
    evaluation_latex,
    evaluation_sentences,
    evaluation_text,
)
from whence.views.evaluation_page import evaluation_page

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m"


def hostile() -> Evaluation:
    table = whole((HOSTILE, "dull", "random"))
    return replace(table, model=HOSTILE, data=f"a/{HOSTILE}", notes=(HOSTILE,))


# ---------------------------------------------------------------------- words


def test_the_sentences_say_what_was_done_and_who_is_better_than_the_control() -> None:
    both = (measured((1.0, 0.0, 0.0)), measured((1.0, 0.0, 0.0), removal="delete"))
    assert evaluation_sentences(evaluation(*both, failed=2)) == [
        "3 methods by 1 metric on 40 texts (2 more failed), with the model toy; words are "
        "removed by mask and delete.",
        "Of 2 measures of faithfulness (each metric under each removal), so many say that a method "
        "is better than its control: sharp 2.",
        "None says so of dull.",
    ]


def test_if_nothing_holds_that_is_said() -> None:
    said = evaluation_sentences(evaluation(measured((0.001, 0.0, 0.0))))
    assert said[1:] == [
        "No method is better than its control by deletion (mask), the only measure of faithfulness."
    ]
    two = measured((0.001, 0.0, 0.0)), measured((0.001, 0.0, 0.0), removal="delete")
    assert evaluation_sentences(evaluation(*two))[1:] == [
        "No method is better than its control by any measure of faithfulness."
    ]


def winning(*measures: int) -> str:
    """The sentence about methods that win by so many measures each, of three."""
    methods = tuple(f"m{i}" for i in range(len(measures)))
    columns = []
    for number in range(3):
        ahead = tuple(1.0 if number < won else 0.0 for won in measures)
        columns.append(measured(ahead, ("deletion", "insertion", "aopc")[number]))
    return evaluation_sentences(evaluation(*columns, methods=methods))[1]


def test_the_methods_that_are_not_named_are_told_by_how_many_measures_each() -> None:
    """The enemy: "2 more methods fewer", which have as many."""
    six = "m0 2, m1 2, m2 2, m3 2, m4 2, m5 2"
    assert winning(*[2] * 8).endswith(f": {six} and 2 more methods 2.")
    assert winning(*[2] * 7).endswith(f": {six} and 1 more method 2.")
    assert winning(*[2] * 7, 1).endswith(f": {six} and 2 more methods 1 to 2.")
    assert winning(2, 0).endswith(": m0 2.")
    assert winning(3, 2).endswith(": m0 3 and m1 2.")


def test_a_method_without_a_verdict_is_not_passed_over() -> None:
    """The enemy: "no method", of two of which one could not be judged."""
    own = measured((1.0, 0.0, 0.0)).own.copy()
    own[3:, 1] = np.nan
    said = evaluation_sentences(evaluation(measured((1.0, 0.0, 0.0), own=own)))
    assert said[1] == (
        "Better than its control by deletion (mask), the only measure of faithfulness: sharp."
    )
    assert said[2] == "Too few texts were measured for a verdict on dull."
    none = evaluation_sentences(evaluation(measured((0.001, 0.0, 0.0), own=own * 0)))
    assert none[1].startswith("sharp is not better than its control by deletion (mask)")


def test_removals_with_a_winner_in_common_do_not_disagree() -> None:
    """The enemy: the first of two that are equally good under one removal, another under the next.

    Two settings of one metric are two questions, and do not disagree either.
    """
    level = measured().own[:, :1]
    tied = measured(own=level + np.array([[1.0, 1.0, 0.0]]))
    one = measured(own=level + np.array([[0.5, 1.0, 0.0]]), removal="delete")
    assert evaluation(tied, one).disagreements == ()
    sharp = measured((1.0, 0.0, 0.0), metric="aopc", settings={})
    dull = measured((0.0, 1.0, 0.0), metric="aopc", removal="delete", settings={"steps": 3})
    table = evaluation(sharp, dull)
    columns = tuple(replace(c, version=find_metric("aopc").version) for c in table.columns)
    assert columns[0].label != columns[1].label
    assert replace(table, columns=columns).disagreements == ()


def test_too_few_texts_give_no_verdict() -> None:
    said = evaluation_sentences(evaluation(measured(texts=3), texts=3))
    assert said[1:] == ["Too few texts were measured for a verdict on any method."]


def test_removals_that_disagree_are_named_and_noise_is_called_so() -> None:
    table = evaluation(measured((1.0, 0.0, 0.0)), measured((0.0, 1.0, 0.0), removal="delete"))
    assert evaluation_sentences(table)[-1] == (
        "The removals disagree on the winner by deletion: sharp under mask; dull under delete."
    )
    near = evaluation(measured((0.0005, 0.0, 0.0)), measured((0.0, 0.0005, 0.0), removal="delete"))
    assert evaluation_sentences(near)[-1] == (
        "Which method comes first depends on the removal by deletion, but these texts do not tell "
        "the winners apart."
    )


def test_what_attention_gets_is_said() -> None:
    methods = ("attention-mean", "dull", "random")
    said = evaluation_sentences(evaluation(measured((-1.0, 0.0, 0.0)), methods=methods))
    assert said[-1] == (
        "Attention alone (attention-mean) is better than its control by 0 of 1, worse by 1."
    )


def test_a_metric_that_says_the_same_of_everything_is_a_line_and_counts_nowhere() -> None:
    table = evaluation(measured(), same_everywhere())
    assert "the only measure of" in evaluation_sentences(table)[1]
    line = "The same for every method and for random rankings: dummy (mask) 1.00."
    assert line in evaluation_text(table, width=120)
    assert line in table.to_html()
    assert "dummy ↑" not in evaluation_text(table)


# ---------------------------------------------------------------------- terminal


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_and_begins_with_the_answer(width: int) -> None:
    shown = evaluation_text(whole(), width=width)
    assert shown.startswith("3 methods by 3 metrics")
    assert max(map(len, shown.splitlines())) <= width
    for part in ("deletion ↑", "compactness ↓", "mask", "delete", "random rankings", "±"):
        assert part in shown


def test_a_short_table_has_the_first_removal_and_says_what_is_hidden() -> None:
    """The enemy: columns of other removals, or none at all, and silence about it."""
    two = evaluation(measured(), measured((0.0, 1.0, 0.0), removal="delete"))
    short, full = evaluation_text(two, full=False), evaluation_text(two)
    assert short.count("deletion ↑") == 1
    assert "1 more column, under delete: --full, --html, --out" in short
    assert full.count("deletion ↑") == 2
    assert "more column" not in full


def test_marks_and_letters_stand_in_line() -> None:
    """The enemy: spaces at the end that are cut, so that numbers are no column."""
    table = evaluation(measured((1.0, 0.0, -12.0), built_in=frozenset({"sharp"})))
    lines = evaluation_text(table).splitlines()
    rows = [line for line in lines if re.match(r"(sharp|dull|random)\b", line) and "±" in line]
    assert len(rows) == 4
    assert len({line.index("±") for line in rows}) == 1
    assert any("+° a" in line for line in rows)


def test_control_characters_do_nothing_in_a_terminal() -> None:
    shown = str(hostile())
    assert "\x1b" not in shown
    assert "onerror" in shown


# ---------------------------------------------------------------------- page


def test_a_page_has_no_script_no_network_and_no_markup_of_others() -> None:
    for page in (own(hostile().to_html()), hostile()._repr_html_()):
        assert "<script" not in page
        assert "<img" not in page
        assert "\x1b" not in page
        assert "&lt;img src=x" in page
        assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//|url\(|@import", page)
        assert len(page) < 60_000


def test_a_page_says_all_that_the_table_has() -> None:
    page = whole().to_html()
    for part in (
        "faithfulness, words removed by mask",
        "faithfulness, words removed by delete",
        "How far removal leads out of the data",
        "it is too long",
        "something was not measured",
        "1,234 passes",
        'class="better"',
        'class="worse"',
        'class="control"',
    ):
        assert part in page or part.capitalize() in page


def test_an_empty_table_is_drawn_everywhere() -> None:
    empty = evaluation()
    assert "0 metrics" in empty.to_html()
    assert "0 metrics" in str(empty)
    nothing = evaluation(texts=0, failed=1)
    assert str(nothing) == "Nothing is measured of toy yet, and 1 text failed."
    assert empty.to_csv().strip() == ""
    assert r"\begin{tabular}" not in empty.to_latex()


def test_failures_are_named_and_can_only_be_read() -> None:
    # would catch: a count of failures without a reason; a reason that acts on a page or a terminal
    failures = tuple(Failure(f"row {row}", "<b>\x1b[31m is bad") for row in range(7))
    table = evaluation(measured(), failed=9, failures=failures)
    lines = str(table).splitlines()
    assert lines[-7] == "9 of 49 texts failed:"
    assert lines[-6] == "  row 0: <b>\\x1b[31m is bad"
    assert lines[-1] == "  … and 4 more; table.failures names 2 of them"
    page = table.to_html()
    assert "row 6: &lt;b&gt;" in page
    assert "and 2 more" in page
    assert "\x1b" not in page + str(table)
    again = Evaluation.from_dict(json.loads(json.dumps(table.to_dict())))
    assert again.failures == failures
    of_before = {name: value for name, value in table.to_dict().items() if name != "failures"}
    assert Evaluation.from_dict(of_before).failures == ()


def test_a_table_of_metrics_that_remove_nothing_is_drawn_with_its_curves() -> None:
    # would catch: the first removal of a table that has none
    of_form = measured((1.0, 0.0, 0.0), "compactness", "", kind="form")
    page = evaluation(of_form, curves=whole().curves).to_html()
    assert "compactness" in page
    assert page.count("<figure") == len(whole().methods)
    assert "words removed by mask" in page


def test_what_is_left_to_do_stands_at_the_top_of_the_page() -> None:
    page = replace(whole(), notes=("Not all texts are done: 3 of 7.",)).to_html()
    assert page.index("Not all texts are done: 3 of 7.") < page.index("<table")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_in_a_browser_without_a_network(browser, tmp_path, scheme, width) -> None:
    path = tmp_path / "page.html"
    hostile().to_html(path)
    context = browser.new_context(
        offline=True, color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    try:
        page = context.new_page()
        seen = []
        page.on("request", lambda request: seen.append(request.url))
        page.goto(path.as_uri())
        assert len(seen) == 1
        assert page.locator("img").count() == 0
        # tables scroll by themselves, and not the page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        answer = page.locator(".answer").bounding_box()
        assert answer["y"] + answer["height"] <= 900
    finally:
        context.close()


# ---------------------------------------------------------------------- files


def test_latex_is_whole_and_escaped() -> None:
    latex = replace(whole(("a_b & 5 %", "dull", "random")), model="toy\n\\input{x}").to_latex()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    assert r"a\_b \& 5 \%" in latex
    body = [line for line in latex.splitlines() if line and not line.startswith("%")]
    assert not any("input{x}" in line for line in body)
    assert latex.count(r"\textit{random rankings}") == 3
    for table in latex.split(r"\begin{tabular}")[1:]:
        columns = re.match(r"\{@?\{?\}?(l?r*)", table)
        rows = [line for line in table.splitlines() if line.rstrip().endswith(r"\\")]
        assert columns is not None
        assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1


def test_a_lopsided_interval_is_shown_by_its_ends() -> None:
    """The enemy: 0.062 ± 0.503 for an interval from -0.005 to 1."""
    lopsided, even = (-0.005, 1.0), (0.03, 0.1)
    table = whole()
    first = table.columns[0]
    cells = tuple(
        replace(cell, mean=0.062, interval=interval)
        for cell, interval in zip(first.cells, (lopsided, even, even), strict=True)
    )
    table = replace(table, columns=(replace(first, cells=cells),))
    assert "0.062 [-0.005, 1.00]" in evaluation_text(table)
    assert "0.062 ±.035" in evaluation_text(table)
    latex = table.to_latex()
    assert "[$-$0.005, 1.00]" in latex
    assert "[0.030, 0.100]" in latex


def test_a_latex_table_has_at_most_six_metrics() -> None:
    many = evaluation(*(measured(metric=f"metric-{n}") for n in range(8)))
    latex = many.to_latex()
    assert latex.count(r"\begin{tabular}") == 2
    assert all(f"metric-{n} " in latex for n in range(8))


def test_csv_and_parquet_are_the_records(tmp_path) -> None:
    from pyarrow import parquet

    table = whole()
    rows = list(csv.DictReader(io.StringIO(table.to_csv(tmp_path / "a.csv").lstrip("\ufeff"))))
    records = table.records()
    assert [float(row["mean"]) for row in rows] == [record["mean"] for record in records]
    assert [row["method"] for row in rows] == [record["method"] for record in records]
    stored = parquet.read_table(table.to_parquet(tmp_path / "a.parquet")).to_pylist()
    assert stored == records


def test_a_damaged_table_is_refused_or_shown() -> None:
    rng = random.Random(0)
    counts = {"refused": 0, "shown": 0}
    in_lines: list[str] = []
    stored = json.loads(json.dumps(whole().to_dict()))
    for what, made in damaged(stored):
        if rng.randrange(12):
            continue
        try:
            result = Evaluation.from_dict(made())
        except WhenceError as problem:
            counts["refused"] += 1
            in_lines += [what] if "\n" in str(problem) else []
            continue
        for view in (str, repr, Evaluation.to_html, Evaluation.to_csv, Evaluation.to_latex):
            view(result)
        counts["shown"] += 1
    assert min(counts.values()) > 10
    assert in_lines == []


def test_curves_of_random_rankings_alone_draw_nothing() -> None:
    """A table whose methods all failed crashed the page: there was no scale for no line."""
    alone = tuple(curve for curve in whole().curves if not curve.method)
    assert alone
    page = evaluation(measured(), curves=alone).to_html()
    assert "<figure>" not in page


def test_in_a_paper_what_is_better_than_its_control_is_bold_and_nothing_else() -> None:
    latex = evaluation(measured((1.0, -1.0, 0.0))).to_latex()
    rows = {line.split(" & ")[0].strip(): line for line in latex.splitlines() if " & " in line}
    assert r"\textbf{" in rows["sharp"]
    assert r"\textbf{" not in rows["dull"] + rows["random"] + rows[r"\textit{random rankings}"]
    # the key says that a raised − is worse: it stands where a method is, and nowhere else
    assert [name for name, row in rows.items() if "$^{-}$" in row] == ["dull"]


def test_a_path_of_this_machine_stands_in_no_sentence() -> None:
    table = evaluation(measured(), model="/home/me/models/toy", data="/home/me/reviews.csv")
    assert ", with the model toy; words" in evaluation_sentences(table)[0]
    for said in (str(table), table.to_html(), table.to_latex()):
        assert "/home/me" not in said


# ---------------------------------------------------------------------- how many texts


def with_marks_in(marked: int) -> Evaluation:
    """Two columns of 40 texts, of which one knows the marks of some only."""
    values = np.tile([1.0, 0.5, 0.0], (TEXTS, 1))
    values += np.random.default_rng(0).normal(scale=0.1, size=values.shape)
    values[marked:] = np.nan
    random = np.where(np.arange(TEXTS) < marked, 0.2, np.nan)
    gold = measured(metric="auprc", removal="", kind="gold", own=values, random=random)
    return evaluation(measured(), gold)


def test_a_column_of_fewer_texts_says_so_wherever_it_stands() -> None:
    # the version before: 40 in each header, comment and caption, whatever was marked
    table = with_marks_in(31)
    shown = evaluation_text(table)
    assert "n = 31" in shown
    assert "31 of 40 texts have some words marked and others not" in shown
    page = evaluation_page(table)
    assert page.count("n = 31") == 1  # in the head of that column alone
    assert "31 of 40 texts have" in page
    paper = evaluation_latex(table)
    assert "auprc $\\uparrow$ ($n$ = 31)" in paper
    assert "% gold, 31 texts" in paper
    assert "% faithfulness, words removed by mask, 40 texts" in paper
    assert "% 31 of 40 texts have" in paper


def test_nothing_is_said_where_every_column_has_all_texts() -> None:
    table = with_marks_in(TEXTS)
    assert count_sentences(table) == []
    assert all(counts_of(column, table) == "" for column in table)
    assert "n = " not in own(evaluation_page(table))


def test_a_method_that_failed_on_some_texts_has_its_own_number() -> None:
    values = np.random.default_rng(0).normal(size=(TEXTS, 3))
    values[25:, 1] = np.nan
    table = evaluation(measured(own=values), measured(metric="insertion"))
    assert counts_of(table.columns[0], table) == "n = 25 to 40"
    said = ["Measured on fewer texts than others: dull on 25 by 1 measure."]
    assert count_sentences(table) == said
    page = evaluation_page(table)
    assert "n = 25 to 40" in page
    assert '<span class="between">n = 25</span>' in page  # in the cell itself


def test_curves_and_gauges_say_of_how_many_texts_they_are() -> None:
    counts = {"sharp": 40, "dull": 25, "": 40}
    drawn = [MeanCurves(name, "mask", (1.0, 0.0), (0.0, 1.0), n) for name, n in counts.items()]
    gauges = (Gauge("mask", (0.1,), (0.4,), (1.0,), 1.0, 30),)
    page = evaluation_page(evaluation(measured(), curves=tuple(drawn), gauges=gauges))
    assert "<figcaption>dull (n = 25)</figcaption>" in page
    assert "<figcaption>sharp</figcaption>" in page
    assert "mask (n = 30)" in page
