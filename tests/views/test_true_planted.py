"""What is said of the planted truth is read back, and is true of the findings."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.occasions.planted import planted_truth
from tests.views.parsing import NUMBER, Reader, is_number, is_percent
from whence.core.evidence import Verdict
from whence.core.planted import Finding, Planted, PlantedTruth
from whence.views.planted import how_to_read, planted_sentences, rows_of

NUMBERS = ("", "one", "two", "three", "four", "five", "six")
SOME = r"[\w-]+(?:, [\w-]+)*(?: and \d+ more)?"
COUNT = r"[\d.]+"


# ---------------------------------------------------------------------- the record, read anew


def names(truth: PlantedTruth) -> list[str]:
    """The methods but for the control, those that find most first."""
    every = dict.fromkeys(f.method for f in truth.findings if f.method != "random")
    return sorted(every, key=lambda m: (-len(found(truth, m)), -sum(shares(truth, m))))


def shares(truth: PlantedTruth, method: str) -> list[float]:
    return [f.found / f.texts for f in truth.findings if f.method == method]


def of(truth: PlantedTruth, method: str) -> list[Finding]:
    return [f for f in truth.findings if f.method == method]


def found(truth: PlantedTruth, method: str) -> list[str]:
    """What a method finds: its whole interval lies above a half, and not by chance."""
    mine = of(truth, method)
    hits = [f.mechanism for f in mine if f.interval[0] > 0.5 and f.verdict is Verdict.BETTER]
    return [one.name for one in truth.mechanisms if one.name in hits]


def tried(truth: PlantedTruth, method: str) -> list[str]:
    return [f.mechanism for f in of(truth, method)]


def is_all(truth: PlantedTruth, what: str) -> bool:
    count = len(truth.mechanisms)
    if count == 1:
        return what == f"the mechanism {truth.mechanisms[0].name}"
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    return what == ("both mechanisms" if count == 2 else f"all {number} mechanisms")


def listed(shown: str) -> tuple[list[str], int]:
    more = re.search(r" and (\d+) more$", shown)
    return re.sub(r" and \d+ more$", "", shown).split(", "), int(more.group(1)) if more else 0


def is_list(shown: str, wanted: list[str], most: int = 6) -> bool:
    told, more = listed(shown)
    return told == wanted[:most] and more == max(0, len(wanted) - most)


def is_count(shown: str, value: float) -> bool:
    """A whole number only where it is one."""
    return is_number(shown, value) and ("." in shown) == (abs(value - round(value)) > 1e-9)


# ---------------------------------------------------------------------- what sentences say


def only_control(truth: PlantedTruth) -> bool:
    return not names(truth)


def too_few(truth: PlantedTruth, count, text, which) -> bool:
    fewest = [one.name for one in truth.mechanisms if one.texts == int(count)]
    told = re.split(r", | and ", which.removeprefix("each of "))
    is_each = which == "each mechanism"
    return (
        int(count) == min(one.texts for one in truth.mechanisms) < 4
        and (text == "text") == (int(count) == 1)
        and (len(fewest) == len(truth.mechanisms) if is_each else told == fewest)
    )


def some_find(truth: PlantedTruth, count, every, verb, what, who) -> bool:
    finding = [m for m in names(truth) if len(found(truth, m)) == len(truth.mechanisms)]
    return (
        finding != []
        and int(count) == len(finding)
        and int(every) == len(names(truth)) > 1
        and (verb == "finds") == (len(finding) == 1)
        and is_all(truth, what)
        and sorted(who.split(", ")) == sorted(finding)
    )


def none_surely(truth: PlantedTruth, count) -> bool:
    return int(count) == len(names(truth)) > 1 and not any(found(truth, m) for m in names(truth))


def none_finds(truth: PlantedTruth, count, what, most, every, who, verb, which) -> bool:
    counts = {method: len(found(truth, method)) for method in names(truth)}
    best = [method for method in names(truth) if counts[method] == max(counts.values())]
    kinds = {tuple(found(truth, method)) for method in best}
    if len(kinds) == 1:
        is_right = is_list(which, list(kinds.pop()))
    else:
        is_right = which == ("one each" if int(most) == 1 else "as many each")
    return (
        int(count) == len(names(truth)) > 1
        and is_all(truth, what)
        and 0 < int(most) == max(counts.values()) < int(every) == len(truth.mechanisms)
        and is_list(who, best)
        and (verb == "finds") == (len(best) == 1)
        and is_right
    )


def untried(truth: PlantedTruth, not_tried: str | None) -> bool:
    (method,) = names(truth)
    left = [one.name for one in truth.mechanisms if one.name not in tried(truth, method)]
    return left == (not_tried.split(", ") if not_tried else [])


def one_finds(truth: PlantedTruth, method, what, left=None) -> bool:
    every = tried(truth, method)
    said = what.split(", ") == every if left else is_all(truth, what)
    return found_by_one(truth, method) == every and untried(truth, left) and said


def found_by_one(truth: PlantedTruth, method: str) -> list[str]:
    return [name for name in tried(truth, method) if name in found(truth, method)]


def one_misses(truth: PlantedTruth, method, what, left=None) -> bool:
    every = tried(truth, method)
    wanted = f"the mechanism {every[0]}"
    if len(every) > 1:
        wanted = f"{'either' if len(every) == 2 else 'any'} of {', '.join(every)}"
    return not found(truth, method) and what == wanted and untried(truth, left)


def one_finds_some(truth: PlantedTruth, method, count, every, missed, left=None) -> bool:
    hits, all_tried = found(truth, method), tried(truth, method)
    return (
        int(count) == len(hits) > 0
        and int(every) == len(all_tried) > len(hits)
        and missed.split(", ") == [name for name in all_tried if name not in hits]
        and untried(truth, left)
    )


def fooled(
    truth: PlantedTruth, mechanism, method, count, texts, word, verb=None, others=""
) -> bool:
    on_it = [f for f in truth.findings if f.mechanism == mechanism and f.method != "random"]
    who = {f.method: f for f in on_it if f.fooled > f.texts / 2}
    worst = who[method]
    rest = [name for name in names(truth) if name in who and name != method]
    return (
        worst.fooled == max(f.fooled for f in who.values())
        and is_count(count, worst.fooled)
        and int(texts) == worst.texts
        and (word == "text") == (worst.texts == 1)
        and (is_list(others, rest) if others else rest == [])
        and (verb in (None, "does")) == (len(rest) < 2)
    )


def lost(truth: PlantedTruth, on, who) -> bool:
    wanted = []
    for method in names(truth):
        if all(f.verdict is Verdict.SAME for f in of(truth, method)):
            wanted.append(method)
    is_one = len(truth.mechanisms) == 1
    return who.split(", ") == wanted and on == (
        truth.mechanisms[0].name if is_one else "any mechanism"
    )


def chance(mechanisms: list[Planted], shown: str, texts: str, word: str) -> bool:
    every = sum(one.texts for one in mechanisms)
    mean = sum(one.chance for one in mechanisms)
    is_zero = float(shown) == 0
    return (
        int(texts.replace(",", "")) == every
        and (word == "text") == (every == 1)
        and is_number(shown, mean)
        and is_zero == (mean == 0)
    )


def no_control(truth: PlantedTruth, mean, texts, word) -> bool:
    return not of(truth, "random") and chance(list(truth.mechanisms), mean, texts, word)


def control(truth: PlantedTruth, count, texts, word, mean) -> bool:
    mine = of(truth, "random")
    on = [one for one in truth.mechanisms if one.name in tried(truth, "random")]
    return (
        mine != [] and is_count(count, sum(f.found for f in mine)) and chance(on, mean, texts, word)
    )


def left_out(truth: PlantedTruth, who, why) -> bool:
    reasons = {name: reason.rstrip(".") for name, reason in truth.skipped.items()}
    return who.split(", ") == [name for name, reason in reasons.items() if reason == why]


def texts_of(truth: PlantedTruth, low, high=None, word="") -> bool:
    every = [one.texts for one in truth.mechanisms]
    return (
        int(low) == min(every)
        and int(high or low) == max(every)
        and (word == "text") == (set(every) == {1})
    )


def judged_by(truth: PlantedTruth, mark=None, tests=None) -> bool:
    count = sum(f.method != "random" for f in truth.findings)
    return (mark is not None) == (count > 0) and int(tests or 1) == max(count, 1)


LEFT = r"(?: It was not tried on (?P<left>[\w, -]+)\.)?"
READER = Reader(
    {
        r"Only the random control was tried\.": only_control,
        r"(?P<count>\d+) (?P<text>texts?) of (?P<which>.+) cannot show what a method finds in "
        r"most: "
        r"take at least 4, better 30\.": too_few,
        rf"(?P<count>\d+) of (?P<every>\d+) methods (?P<verb>finds?) (?P<what>[\w ]+): "
        rf"(?P<who>{SOME})\.": some_find,
        r"None of (?P<count>\d+) methods surely finds any mechanism in most texts\.": none_surely,
        rf"None of (?P<count>\d+) methods finds (?P<what>[\w ]+)\. The most that one finds is "
        rf"(?P<most>\d+) of (?P<every>\d+): (?P<who>{SOME}) (?P<verb>finds?) "
        r"(?P<which>.+)\.": none_finds,
        rf"(?P<method>[\w-]+) finds (?P<count>\d+) of (?P<every>\d+) mechanisms; not "
        rf"(?P<missed>[\w, -]+)\.{LEFT}": one_finds_some,
        rf"(?P<method>[\w-]+) does not surely find (?P<what>[\w, -]+) in most texts\."
        rf"{LEFT}": one_misses,
        rf"On (?P<mechanism>\w+), (?P<method>[\w-]+) ranks a decoy first, which the output "
        rf"ignores, "
        rf"in (?P<count>{COUNT}) of (?P<texts>\d+) (?P<word>texts?)(?:; so (?P<verb>does|do), in "
        rf"most texts, (?P<others>{SOME}))?\.": fooled,
        rf"Not separable from random on (?P<on>any mechanism|\w+): (?P<who>{SOME})\.": lost,
        rf"A random ranking finds the planted words in (?P<mean>{NUMBER}) of (?P<texts>[\d,]+) "
        r"(?P<word>texts?), on average\.": no_control,
        rf"The random control finds the planted words in (?P<count>{COUNT}) of (?P<texts>[\d,]+) "
        rf"(?P<word>texts?); chance gives (?P<mean>{NUMBER}) on average\.": control,
        rf"Left out: (?P<who>{SOME}) \((?P<why>.+)\)\.": left_out,
        rf"(?P<method>[\w-]+) finds (?P<what>[\w, -]+)\.{LEFT}": one_finds,
        r"Of (?P<low>\d+)(?: to (?P<high>\d+))? (?P<word>texts?), those in which all planted words "
        r"are ranked first \(tied scores count by the share of tie-breaks\), and Wilson's 95 % "
        r"interval in percent\.": texts_of,
        r"Of chance: how many texts a random ranking gets on average, and between which percents "
        r"it is in 95 of 100 cases\.": lambda truth: True,
        r"A method finds a mechanism if the whole interval lies above 50 %, and it is better than "
        r"random\.(?P<mark> ~ not separable from random(?:, after Holm's correction for "
        r"(?P<tests>\d+) tests)?\.)?": judged_by,
    }
)


def check(truth: PlantedTruth) -> None:
    said = planted_sentences(truth)
    for sentence in (*said, *how_to_read(truth)):
        READER.read(sentence, truth)
    by_decoys = {
        f.mechanism for f in truth.findings if f.method != "random" and f.fooled > f.texts / 2
    }
    assert sum("ranks a decoy first" in sentence for sentence in said) == len(by_decoys)
    is_lost = [all(f.verdict is Verdict.SAME for f in of(truth, m)) for m in names(truth)]
    assert any(s.startswith("Not separable") for s in said) == any(is_lost)
    assert sum(s.startswith("Left out") for s in said) == len(
        {reason.rstrip(".") for reason in truth.skipped.values()}
    )
    for mechanism, cell in zip(truth.mechanisms, rows_of(truth)[-1][1:], strict=True):
        mean, low, high = re.fullmatch(r"([\d.]+) (.+)–(.+)", cell).groups()
        ends = [end / mechanism.texts for end in mechanism.chance_range]
        assert is_number(mean, mechanism.chance)
        assert all(map(is_percent, (f"{low} %", f"{high} %"), ends)), cell
    for row in rows_of(truth)[:-1]:
        method = row[0].removesuffix(" (control)")
        for mechanism, cell in zip(truth.mechanisms, row[1:], strict=True):
            mine = [f for f in of(truth, method) if f.mechanism == mechanism.name]
            assert (cell == "–") == (not mine)
            if mine:
                count = re.fullmatch(rf"[~✗]?({COUNT}) .+", cell).group(1)
                assert is_count(count, mine[0].found), cell
                assert (cell[0] == "~") == (mine[0].verdict is Verdict.SAME)


def hunt(results: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(results):
        check(planted_truth(rng))


def test_what_is_said_of_the_planted_truth_is_true_of_the_findings():
    hunt(700, 0)


@pytest.mark.slow
def test_what_is_said_of_many_planted_truths_is_true_of_the_findings():
    hunt(10000, 1)
    assert READER.never_met == []
