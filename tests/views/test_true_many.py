"""What is said of many texts is true: each sentence is parsed back, and held against the counts.

The chances are computed anew, from binomial coefficients.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.occasions.many import counts, result
from tests.views.test_true_comparison import (
    Reader,
    check_in_short,
    check_share,
    half_a_digit,
    in_a_row,
    record_of,
    verdict,
)
from whence.core.answer_of_many import AnswerOfMany, answer_of_counts
from whence.core.evidence import Verdict
from whence.core.many import Many, Tally, tally_of
from whence.core.showing import visible
from whence.views.answering_of_many import many_sentences
from whence.views.many import left_out, notes

LEVEL = 0.05
ATTENTION = ("attention-mean", "attention-max", "rollout", "flow")


def tail(tries: int, successes: int) -> float:
    """The chance of at least so many of so many, each with one chance in twenty."""
    below = 0.0
    for k in range(successes):
        below += math.exp(log_chance(tries, k))
    return max(1.0 - below, 0.0) if successes else 1.0


def log_chance(tries: int, k: int) -> float:
    ways = math.lgamma(tries + 1) - math.lgamma(k + 1) - math.lgamma(tries - k + 1)
    return ways + k * math.log(LEVEL) + (tries - k) * math.log(1 - LEVEL)


def most_by_chance(texts: int) -> int:
    up_to, most = 0.0, -1
    while up_to < 1 - LEVEL - 1e-9:
        most += 1
        up_to += math.exp(log_chance(texts, most))
    return most


def number(shown: str) -> int:
    return int(shown.replace(",", ""))


def of_texts(count: int) -> str:
    return "1 text" if count == 1 else f"{count:,} texts"


def shown_label(name: str) -> str:
    return visible(name) if name and name == name.strip() else f"“{visible(name.strip())}”"


# ---------------------------------------------------------------------- what the model says


def check_predictions(said: str, answer: AnswerOfMany) -> None:
    """Each label with its count, the most frequent first; of the others how many there are."""
    texts = of_texts(answer.texts)
    if not answer.predictions:
        assert said == f"{texts} {'was' if answer.texts == 1 else 'were'} explained."
        return
    told = re.fullmatch(rf"{texts}: the model says (.*)\.", said, re.DOTALL)
    assert told is not None, said
    every = [(shown_label(name), count) for name, count in answer.predictions]
    tail_of = re.fullmatch(
        r"(.*) and (\d+) other labels for (the rest|at most (\S+) each)", told[1]
    )
    if tail_of is None:
        assert told[1] == in_a_row([f"{name} for {count:,}" for name, count in every])
        return
    others = every[len(every) - int(tail_of[2]) :]
    assert len(others) == int(tail_of[2]) > 1
    shown = every[: -len(others)]
    assert tail_of[1] == ", ".join(f"{name} for {count:,}" for name, count in shown)
    counted = sum(count for _, count in every)
    if tail_of[3] == "the rest":  # every text has one label
        assert counted == answer.texts
    else:
        assert all(count <= number(tail_of[4]) for _, count in others)


# ---------------------------------------------------------------------- which methods hold


def check_named(said: str, answer: AnswerOfMany) -> None:
    told = re.fullmatch(
        r"Reasons can be named for (\S+) of (.*); by chance it would be at most (\S+), in 95 % of "
        r"cases\.",
        said,
    )
    assert told is not None, said
    assert number(told[1]) == answer.explained <= answer.distinct
    of = f"{answer.distinct:,}"
    if answer.distinct != answer.texts:
        of = f"{of_texts(answer.distinct)}, each counted once"
    assert told[2] == of
    assert number(told[3]) == most_by_chance(answer.distinct)


def check_verdict(said: str, tried: list[Tally]) -> None:
    """Which methods are better on more texts than chance allows, each paying for all."""
    holding = [
        t for t in tried if t.judged and tail(t.judged, t.better) * len(tried) <= LEVEL_ABOVE
    ]
    most = max(t.judged for t in tried)
    too_few = LEVEL**most * len(tried) > LEVEL_ABOVE
    count = len(tried)
    if said.startswith("These are too few texts"):
        who = f"{count} methods" if count > 1 else "it"
        assert said == f"These are too few texts to tell {who} from chance."
        assert too_few
        return
    assert not too_few
    if said.startswith("The method that was tested does not"):
        assert said.endswith(" beat random rankings on more texts than chance allows.")
        assert count == 1
        assert not holding
        return
    if none := re.fullmatch(
        r"(None|Neither) of the (\d+) methods tested beats random rankings on more texts than "
        r"chance allows, corrected for (\d+) methods\.",
        said,
    ):
        assert int(none[2]) == int(none[3]) == count > 1
        assert (none[1] == "Neither") == (count == 2)
        assert not holding
        return
    told = re.fullmatch(
        r"Better than chance over the texts: (?P<best>.*?\))(?: and (?P<more>\d+) more)?; chance "
        r"gives at most (?P<chance>.*), on average\.",
        said,
    )
    assert told is not None, said
    named = re.findall(r"(?:^|, | and )(\S+) \((\S+) of (\S+) texts?\)", told["best"])
    assert len(named) + int(told["more"] or 0) == len(holding)
    by_name = {t.method: t for t in holding}
    shown = [by_name[name] for name, _, _ in named]
    for t, (_, better, judged) in zip(shown, named, strict=True):
        assert (number(better), number(judged)) == (t.better, t.judged)
    shares = [t.better / t.judged for t in shown]
    assert shares == sorted(shares, reverse=True)
    others = [t.better / t.judged for t in holding if t not in shown]
    assert max(others, default=0.0) <= min(shares)
    if told["chance"] == "5 % of the texts":
        assert len({t.judged for t in shown}) > 1
    else:
        mean, _, judged = told["chance"].partition(" of ")
        assert {number(judged)} == {t.judged for t in shown}
        exactly = LEVEL * number(judged)
        plain = mean.replace(",", "")
        assert abs(float(plain) - exactly) <= half_a_digit(plain)


LEVEL_ABOVE = LEVEL * (1 + 1e-9)


def check_attention(said: str, tallies: dict[str, Tally], tried: list[Tally]) -> None:
    told = re.fullmatch(
        r"Attention alone \((\S+)\) beats random rankings on (\S+) of (\S+) texts?: (.*)\.", said
    )
    assert told is not None, said
    t = tallies[told[1]]
    assert t.method == next(name for name in ATTENTION if name in tallies)
    assert (number(told[2]), number(told[3])) == (t.better, t.judged)
    p, many = tail(t.judged, t.better), len(tried)
    alone = (
        "more than chance allows if it had been the only one asked about, but not corrected for "
        f"{many} methods"
    )
    truth = {
        "no more than chance allows": p > LEVEL_ABOVE,
        "more than chance allows": p * many <= LEVEL_ABOVE,
        alone: p <= LEVEL_ABOVE < p * many,
    }
    assert truth[told[4]]


def check_said(answer: AnswerOfMany, tallies: list[Tally], sentences: list[str]) -> None:
    """All sentences over many texts, of which none may be left unread."""
    first, *others = sentences
    check_predictions(first, answer)
    by_name = {t.method: t for t in tallies}
    tried = [t for t in tallies if t.method != "random" and t.judged]
    for said in others:
        if said.startswith("Reasons can be named"):
            check_named(said, answer)
        elif said.startswith("No method was tested"):
            nothing = "against random rankings, so nothing says which is right."
            assert said == f"No method was tested {nothing}"
            assert not tried
        elif said.startswith("Attention alone"):
            check_attention(said, by_name, tried)
        elif control := re.fullmatch(
            r"The control, random scores, beats random rankings on (\S+) of (\S+) texts?\.", said
        ):
            t = by_name["random"]
            assert (number(control[1]), number(control[2])) == (t.better, t.judged)
        else:
            check_verdict(said, tried)


# ---------------------------------------------------------------------- the table


def check_table(many: Many, tallies: list[Tally]) -> None:
    """Every cell of the counts, from the results themselves."""
    by_name = {t.method: t for t in tallies}
    heading, _, *rows = many.to_markdown().split("\n")
    heads = [cell.strip() for cell in heading.strip("|").split("|")]
    assert len(rows) == len(tallies)
    for row in rows:
        cells = [cell.strip().replace("\\", "") for cell in row.strip("|").split("|")]
        of = dict(zip(heads, cells, strict=True))
        t = by_name[of["method"]]
        assert of["better"] == f"{t.better} of {t.judged}"
        assert (int(of["not separable"]), int(of["worse"])) == (t.same, t.worse)
        if t.judged:
            mean, low, high = re.fullmatch(
                r"(\S+) \((\S+) to (\S+)\)", of["better by chance"]
            ).groups()  # type: ignore[union-attr]
            assert abs(float(mean) - LEVEL * t.judged) < 0.0051
            check_range(t.judged, number(low), number(high))
        if t.p is not None:
            check_short_p(of["p"], tail(t.judged, t.better))
        if t.beaten is not None:
            shown = re.match(r"&lt; 0\.01 %|\S+ %", of["beaten"])
            assert shown is not None
            check_share(shown[0].replace("&lt;", "<"), t.beaten)


def check_range(judged: int, low: int, high: int) -> None:
    """What holds 95 %: below it and above it lies a fortieth at most."""
    assert tail(judged, high + 1) <= 0.025 + 1e-9
    assert 1 - tail(judged, low) <= 0.025 + 1e-9


def check_short_p(shown: str, p: float) -> None:
    if shown.startswith(("&lt;", "<")):
        assert p < 0.001
    elif shown.startswith(("&gt;", ">")):
        assert p > LEVEL
    else:
        assert abs(float(shown) - p) <= half_a_digit(shown)


# ---------------------------------------------------------------------- the tests


def check_many(many: Many) -> None:
    """The answer over all, each text's own, the index, the table, what is missing."""
    rows = many.rows()
    for row, one in zip(rows, many, strict=True):
        record = record_of(one)
        verdicts = [verdict(a) for a in record.tried.values()]
        assert (row.better, row.same, row.worse) == tuple(map(verdicts.count, Verdict))
        check_in_short(Reader(record), one.answer)
    missing = left_out(many)
    failed, unreached = len(many.failures), many.unreached
    expected = []
    if failed:
        expected.append(f"{of_texts(failed)} could not be explained.")
    if unreached:
        expected.append(f"The run was ended before {of_texts(unreached)}: this is a part of it.")
    assert (missing[0] if missing else "") == " ".join(expected)
    assert len(missing) == bool(missing) + min(failed, 10) + (failed > 10)
    if failed > 10:
        assert missing[-1].startswith(f"… and {failed - 10:,} more; ")
    if not many.results:
        return
    tallies = many.tallies()
    check_said(many.answer, tallies, many_sentences(many.answer))
    check_table(many, tallies)
    below = notes(tallies, many.repeated)
    judged = [t for t in tallies if t.judged and t.method != "random"]
    is_several = any(line.startswith("Each p is of its method alone.") for line in below)
    assert is_several == (len(judged) > 1)
    if is_several:
        assert f"Of {len(judged)} methods, one may have a small p by chance." in " ".join(below)
    again = [line for line in below if line.endswith("not counted again.")]
    assert bool(again) == bool(many.repeated)
    if again:
        assert again == [f"{of_texts(many.repeated)} that stood there before: not counted again."]


def hunt(times: int, seed: int, check: Callable[[np.random.Generator], None]) -> None:
    rng = np.random.default_rng(seed)
    for at in range(times):
        try:
            check(rng)
        except AssertionError as wrong:
            raise AssertionError(f"result {at} of seed {seed}: {wrong}") from wrong


def counts_are_told(rng: np.random.Generator) -> None:
    answer, tallies = counts(rng)
    check_said(answer, tallies, many_sentences(answer))


def texts_are_told(rng: np.random.Generator) -> None:
    check_many(result(rng))


def said_of(texts: int, labels: Mapping[str, int], distinct: int | None = None) -> list[str]:
    counted = {Verdict.BETTER: texts, Verdict.SAME: 0, Verdict.WORSE: 0}
    lime = tally_of("lime", texts, counted, [])
    seen = texts if distinct is None else distinct
    return many_sentences(answer_of_counts(texts, Counter(labels), [lime], seen, 0))


def test_other_labels_are_of_the_rest_only_where_each_text_has_one():
    """Of six labels that all hold on ten texts, two are not "for the rest": there is none."""
    assert "2 other labels for at most 10 each" in said_of(10, dict.fromkeys("abcdef", 10))[0]
    one_each = dict(zip("abcdef", (5, 3, 2, 2, 1, 1), strict=True))
    assert "2 other labels for the rest" in said_of(14, one_each)[0]


def test_what_chance_gives_of_many_texts_has_no_exponent():
    assert "chance gives at most 200 of 4,000, on average" in said_of(4000, {"a": 4000})[2]
    assert "chance gives at most 12.5 of 250, on average" in said_of(250, {"a": 250})[2]


def test_texts_that_are_counted_once_are_said_to_be():
    assert "for 0 of 12 texts, each counted once; by chance" in said_of(20, {"a": 20}, 12)[1]


def test_every_sentence_over_counts_is_true_of_them():
    hunt(500, 1, counts_are_told)


def test_every_sentence_over_texts_is_true_of_them():
    hunt(30, 1, texts_are_told)


@pytest.mark.slow
def test_every_sentence_over_many_counts_is_true_of_them():
    hunt(50_000, 2, counts_are_told)


@pytest.mark.slow
def test_every_sentence_over_many_texts_is_true_of_them():
    hunt(600, 2, texts_are_told)
