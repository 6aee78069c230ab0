"""What the terminal and the page of one text say beside the answer is true of the record.

Every line of the short view, and every paragraph of the page, is known by a pattern here, and
checked: a line that none knows is a failure. The answer itself is read in test_true_comparison.py.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pytest

from tests.occasions.comparison import result
from tests.views.test_true_comparison import (
    PLURALS,
    SHARE,
    P,
    check_by_removal,
    check_p,
    check_share,
    half_a_digit,
    in_a_row,
    verdict,
)
from whence.core.agreement import Agreement, agreement
from whence.core.answer import CONTROL, is_tried
from whence.core.attribution import Attribution, Cost
from whence.core.comparison import Comparison
from whence.core.evidence import CURVES, HELD_OUT, Evidence, Trial, Verdict, is_within
from whence.core.plan import Plan
from whence.core.showing import visible
from whence.views.answering import answer_cautions, answer_sentences
from whence.views.terminal import attribution_view, comparison_view, to_text

MARK = {Verdict.BETTER: "✓", Verdict.SAME: "~", Verdict.WORSE: "✗", None: "–"}
WORD = {Verdict.BETTER: "better", Verdict.SAME: "unclear", Verdict.WORSE: "worse", None: ""}
WIDE = 4000  # cells, so that no line is broken
MORE = "--full (in Python .to_text(full=True)) shows every score, cost and note; --html a page."


def strongest(a: Attribution) -> str:
    """The three largest, without those of no size."""
    noted = a.error is not None and a.error.note.startswith("zero by construction")
    if noted and not a.scores.any():
        return "zero by construction"
    size = np.abs(a.scores) if a.signed else a.scores
    first = sorted(range(len(size)), key=lambda i: (-size[i], i))[:3]
    return ", ".join(visible(a.units.distinct_names[i]) for i in first if a.scores[i]) or "–"


def p_of(judged: Evidence | Trial) -> float | None:
    """The p of what is said: of worse where it is worse."""
    return judged.p_worse if judged.verdict == Verdict.WORSE else judged.p


def trials(a: Attribution) -> tuple[Trial, ...]:
    if a.evidence is None or a.evidence.measure != CURVES:
        return ()
    return a.evidence.trials


def check_rankings(said: str, every: Sequence[Attribution]) -> None:
    """The largest number, and of methods that were judged by fewer, how many they had."""
    judged = [(a.method, a.evidence) for a in every if a.evidence is not None]
    most = max((evidence.rankings for _, evidence in judged), default=0)
    told = re.fullmatch(r"(?:(\d+) )?random rankings(?: \((.*?)(?: and (\d+) more)?\))?", said)
    assert told is not None, said
    assert int(told[1] or 0) == most
    fewer = {
        f"{method} {evidence.rankings or 'of unknown number'}"
        for method, evidence in judged
        if evidence.verdict is not None and evidence.rankings < most
    }
    named = set(told[2].split(", ")) if told[2] else set()
    assert named <= fewer
    assert len(named) + int(told[3] or 0) == len(fewer)


# ---------------------------------------------------------------------- sentences of both


def check_trial(said: str, trial: Evidence | Trial, share: float | None, comma: bool) -> None:
    """``better than random: beats 98 % of random rankings (92 to 100 %), p = 0.010``."""
    told = re.fullmatch(
        rf"(?P<verdict>better than random|not separable from random|worse than random|no verdict)"
        rf"(?:{', ' if comma else ': beats '}(?P<share>{SHARE})"
        rf"{'' if comma else ' of random rankings'}(?P<mean> on average)?"
        r"(?: \((?P<ends>.*? to .*?) %\))?"
        rf"(?:, (?P<p>{P})(?P<worse> of worse)?(?: by (?P<by>\S+))?)?)?",
        said,
    )
    assert told is not None, said
    assert told["verdict"] == (trial.verdict or "no verdict")
    assert (told["share"] is None) == (share is None)
    if share is None:
        return
    check_share(told["share"], share)
    assert (told["ends"] is None) == (trial.interval is None)
    if trial.interval is not None:
        for shown, end in zip(told["ends"].split(" to "), trial.interval, strict=True):
            check_share(f"{shown} %", end)
    assert (told["p"] is None) == (p_of(trial) is None)
    if told["p"]:
        check_p(told["p"], p_of(trial))
        assert bool(told["worse"]) == (trial.verdict == Verdict.WORSE)
    if isinstance(trial, Evidence):
        check_by_removal(trial, told["mean"], told["by"])
    else:
        assert told["mean"] is None
        assert told["by"] is None


def check_cost(said: str, cost: Cost) -> None:
    told = re.fullmatch(
        r"(\S+) forward(?: \((\S+) more from memory\))?, (\S+) backward, "
        r"(.*?)(?:, (.*) at the peak)?",
        said,
    )
    assert told is not None, said
    number = [int(each.replace(",", "")) for each in (told[1], told[2] or "0", told[3])]
    assert number == [cost.forwards, cost.saved, cost.backwards]
    check_seconds(told[4], cost.seconds)
    assert (told[5] is None) == (cost.peak_bytes is None)


def check_seconds(said: str, seconds: float) -> None:
    if said == "under a second":
        assert seconds < 1
        return
    number, unit = said.split(" ")
    shown = float(number.replace(",", "")) * {"s": 1, "min": 60, "h": 3600, "days": 86400}[unit]
    assert abs(shown - seconds) <= 0.26 * {"s": 2, "min": 60, "h": 3600, "days": 86400}[unit]


def remarks(a: Attribution, plan: Plan | None) -> set[str]:
    """What must stand beside the answer, and nothing else may."""
    lines = set()
    if a.passage is not None and a.passage.reply is not None:
        reply = visible(a.passage.reply.text)
        lines.add(f"What is explained is the next token of the reply “{reply}”.")
    if a.windows:
        lines.add(
            "The text is longer than the model can read at once. It was explained in "
            f"{len(a.windows)} windows, one after the other; ┃ stands where one ends."
        )
    if a.passage is not None and a.passage.dropped:
        count = a.passage.dropped
        were = "character was" if count == 1 else "characters were"
        lines.add(f"Only the beginning is explained: {count:,} {were} cut off.")
    plan = plan or a.plan
    if plan is not None and plan.reason:
        lines.add(leaner(plan))
    return lines


def leaner(plan: Plan) -> str:
    parts = []
    if plan.rankings != 100:
        parts.append(f"{plan.rankings} random rankings (usually 100)")
    if plan.steps != 10:
        parts.append(f"{plan.steps} steps (usually 10)")
    if plan.settings:
        parts.append(f"fewer samples for {in_a_row(sorted(plan.settings))}")
    if plan.units:
        parts.append(f"{plan.units}s as units (not {plan.asked_units}s)")
    if plan.left_out:
        parts.append(f"no {in_a_row(sorted(plan.left_out)).replace(' and ', ' or ')}")
    kept = f"leaner than usual, as {plan.reason}: {in_a_row(parts)}."
    return f"To keep the cost down: {kept}"


READ = {
    "logit": "score (logit)",
    "log-probability": "log-probability",
    "probability": "probability",
    "margin": "lead in score (logit)",
    "cross-entropy": "cross-entropy",
    "perplexity": "perplexity",
    "entropy": "entropy of all that could stand in place",
    "kl": "divergence (KL)",
}


def check_value(said: str, a: Attribution) -> None:
    """``the score (logit) of positive less that of negative, 2.31``: its reading and its value."""
    told = re.fullmatch(
        r"the (?P<what>.*?)(?:, from (?P<from>.*), in the place)? of (?P<of>.*), (?P<value>\S+)"
        r"(?: \(mean of (?P<windows>\d+) windows\))?",
        said,
        re.DOTALL,
    )
    assert told is not None, said
    what = READ[a.target.read]
    if a.target.read == "entropy":
        assert said.startswith(f"the {what} of ")
    else:
        assert told["what"] == what
    value = told["value"].replace("−", "-")
    assert abs(float(value) - a.value) <= half_a_digit(value)
    assert int(told["windows"] or 0) == len(a.windows)
    contrast = (" over " if a.target.read == "margin" else " less that of ") in said
    if a.target.against is None:
        names = [*a.units.names, str(a.target.label), str(a.target.word)]
        assert not contrast or any(" over " in name or " less " in name for name in names)
    else:
        is_margin_of_ids = a.target.read == "margin" and a.target.against_ids is not None
        assert contrast or is_margin_of_ids


# ---------------------------------------------------------------------- the terminal

ASKED = "This answers: Is this ranking better than random on this text?"


def answer_lines(made: Attribution | Comparison) -> list[str]:
    said = answer_sentences(made.answer)
    cautions = [f"Caution: {caution}" for caution in answer_cautions(made.answer)]
    every = [made] if isinstance(made, Attribution) else list(made.attributions.values())
    asked = [ASKED] if are_tried(every) else []
    return [" ".join(said[:2]), *said[2:], *cautions, *asked]


def are_tried(every: Sequence[Attribution]) -> bool:
    """Whether some method but the control has a verdict beside random rankings."""
    return any(is_tried(a) for a in every if a.method != CONTROL)


def check_comparison_in_short(c: Comparison) -> None:
    """Every line: the answer, the text, the table, how to read it, what it cost."""
    shown = to_text(lambda console: comparison_view(c, console), width=WIDE)
    lines = [line.strip() for line in shown.split("\n") if line.strip()]
    answer = [line.strip() for line in answer_lines(c)]
    assert lines[: len(answer)] == answer
    every = c.attributions
    is_table = [re.match(r"method +strongest units", line) is not None for line in lines]
    if not any(is_table):  # one unit that nobody tested: the answer has said all of it
        assert len(c.first.units) == 1
        assert not any(is_tried(a) for a in every.values())
        return
    at = is_table.index(True)  # what stands before it is the text
    judged = any(a.evidence is not None for a in every.values())
    seen: dict[str, None] = {}
    allowed = remarks(c.first, c.plan)
    for line in lines[at + 1 :]:
        row = re.match(rf"({'|'.join(sorted(every, key=len, reverse=True))})(?:  |$)", line)
        if row is not None:
            seen[row[1]] = None
            check_row(line, every[row[1]], lines[at].split()[4:] if judged else None)
        elif line.startswith("% of "):
            check_how_to_read(line, [every[name] for name in seen])
        elif line.startswith("Explained: "):
            told = re.fullmatch(r"Explained: (.*), of model (.*)\.", line, re.DOTALL)
            assert told is not None
            check_value(told[1], c.first)
            assert told[2] == visible(c.first.provenance.model)
        elif MORE in line:
            check_total(line.removesuffix(f" {MORE}"), c)
        elif line in allowed:
            allowed.discard(line)
        else:
            for name in check_others(line, every):
                assert name not in seen
                seen[name] = None
    assert set(seen) == set(every), set(every) - set(seen)
    assert not allowed, allowed


def check_row(line: str, a: Attribution, removals: Sequence[str] | None) -> None:
    """A method's strongest units, its verdict, and a share with p for each removal."""
    rest = line.removeprefix(a.method).strip()
    expected = strongest(a)
    assert rest.startswith(expected), (rest, expected)
    rest = rest.removeprefix(expected).strip()
    if removals is None:
        assert not rest
        return
    mark = "–" if a.evidence is None else f"{MARK[verdict(a)]} {WORD[verdict(a)]}".strip()
    assert rest.startswith(mark), (rest, mark)
    rest = rest.removeprefix(mark).strip()
    tried = {visible(trial.removal): trial for trial in trials(a)}
    for removal in removals:
        if removal not in tried:
            assert rest.startswith("–"), rest
            rest = rest[1:].strip()
            continue
        trial = tried[removal]
        cell = re.match(rf"(✓|~|✗) +({SHARE})(?: (1\.00|[<>]?\.\d+))?(?: |$)", rest)
        assert cell is not None, rest
        assert cell[1] == MARK[trial.verdict]
        assert trial.beaten is not None
        check_share(cell[2], trial.beaten)
        assert (cell[3] is None) == (p_of(trial) is None)
        if cell[3]:
            check_short_p(cell[3], p_of(trial))
        rest = rest[cell.end() :].strip()
    assert not rest, rest


def check_short_p(shown: str, p: float | None) -> None:
    assert p is not None
    if shown[0] in "<>":
        assert (p < float(shown[1:])) == (shown[0] == "<")
    else:
        assert abs(float(shown) - p) <= half_a_digit(shown)
        assert is_within(p) or float(shown) > 0.05


def check_how_to_read(line: str, every: Sequence[Attribution]) -> None:
    told = re.fullmatch(
        r"% of (.*) that the method beats \(chance: 50 %\), and p( \(beside ✗ that of worse\))?",
        line,
    )
    assert told is not None, line
    check_rankings(told[1], every)
    worse = any(trial.verdict == Verdict.WORSE for a in every for trial in trials(a))
    assert bool(told[2]) == worse


def check_total(line: str, c: Comparison) -> None:
    told = re.fullmatch(
        r"(.*? backward) passes, (.*?)\.(?: (\d+) (method was|methods were) left out\.)?", line
    )
    assert told is not None, line
    check_cost(f"{told[1]}, {told[2]}", c.cost)
    assert int(told[3] or 0) == len(c.skipped)
    assert (told[4] == "method was") == (len(c.skipped) == 1)


def check_others(line: str, every: Mapping[str, Attribution]) -> list[str]:
    """``~ not separable from random: a, b``: the methods without a row."""
    words, colon, names = line.rpartition(": ")
    assert colon, f"no reader knows this line: {line!r}"
    for name in names.split(", "):
        a = every[name]
        if words == "not tested":
            assert a.evidence is None
        else:
            assert words == f"{MARK[verdict(a)]} {verdict(a) or 'no verdict'}"
    return names.split(", ")


def check_attribution_in_short(a: Attribution) -> None:
    """The answer, and the facts below the bars."""
    shown = to_text(lambda console: attribution_view(a, console), width=WIDE)
    lines = shown.split("\n")
    answer = [line.strip() for line in answer_lines(a)]
    assert [line.strip() for line in lines[: len(answer)]] == answer
    heads = ("explained", "method", "error", "evidence", "note")
    allowed, expected = remarks(a, None), evidence_lines(a)
    head = ""
    for line in lines[len(answer) :]:
        found = re.match(r"(explained|method|error|evidence|note) {2,}(\S.*)", line)
        head = found[1] if found is not None and found[1] in heads else head
        fact = found[2] if found is not None else line.strip()
        if not head or not fact or MORE in line:
            continue
        if head == "explained":
            told = re.fullmatch(r"(.*), of model (.*)", fact, re.DOTALL)
            assert told is not None
            check_value(told[1], a)
        elif head == "method":
            told = re.fullmatch(r"(\S+); (.*?)(?:; evidence (\S+) forward)?", fact)
            assert told is not None
            assert told[1] == a.method
            check_cost(told[2], a.cost)
            paid = a.evidence.forwards if a.evidence is not None else 0
            assert int((told[3] or "0").replace(",", "")) == paid
        elif head == "evidence":
            next(expected)(fact)
        elif head == "note":
            allowed.remove(fact)
    assert not allowed
    assert next(expected, None) is None


def evidence_lines(a: Attribution) -> Iterator[Callable[[str], None]]:
    """What checks each line of the evidence, in turn."""
    e = a.evidence
    if e is None:
        return
    own = e if e.measure == HELD_OUT else e.own
    first = True

    def marked(check: Callable[[str], None]) -> Callable[[str], None]:
        def with_mark(line: str) -> None:
            assert line.startswith(f"{MARK[e.verdict]} "), line
            check(line[2:])

        return with_mark if first else check

    if e.measure == CURVES and (e.value is not None or not (own or e.note)):
        yield marked(lambda line: check_trial(line, e, e.value, comma=False))
        first = False
    for trial in trials(a):
        yield marked(lambda line, trial=trial: check_removal(line, trial))
        first = False
    if own is not None and own.value is not None:
        yield marked(lambda line: check_own(line, own, with_removals=bool(trials(a))))
        first = False
    if e.note:
        yield marked(lambda line: check_equal(line, visible(e.note)))


def check_equal(line: str, expected: str) -> None:
    assert line == expected


def check_removal(line: str, trial: Trial) -> None:
    name, _, rest = line.partition(": ")
    assert name == trial.removal
    assert rest.startswith(f"{MARK[trial.verdict]} ")
    check_trial(rest[2:], trial, trial.beaten, comma=True)


def check_own(line: str, own: Evidence, with_removals: bool) -> None:
    told = re.fullmatch(
        r"(its own: )?correlation with held-out removals (\S+)"
        r"(?: \(random: (\S+) to (\S+)\))?: (.*)",
        line,
    )
    assert told is not None, line
    assert bool(told[1]) == with_removals
    assert own.value is not None
    assert abs(float(told[2]) - own.value) < 0.00501
    assert told[5] == (own.verdict or "no verdict")
    if told[3]:
        (trial,) = own.trials
        assert abs(float(told[3]) - trial.random_low) < 0.00501
        assert abs(float(told[4]) - trial.random_high) < 0.00501


# ---------------------------------------------------------------------- the page


def paragraphs(page: str) -> list[tuple[str, str, str]]:
    """Every paragraph, item, caption and title: its tag, its class, its words."""
    page = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    found = []
    tags = re.finditer(
        r"<(p|li|figcaption|h2|h3|h4|summary|option)\b([^>]*)>(.*?)</\1>", page, re.DOTALL
    )
    for match in tags:
        kind = re.search(r'class="([^"]*)"', match[2])
        words = html.unescape(re.sub(r"<[^>]+>", "", match[3]))
        found.append((match[1], kind[1] if kind else "", " ".join(words.split())))
    return found


TITLES = {
    "Answer",
    "Can it be believed?",
    "Which methods can be believed?",
    "Scores",
    "Units on which methods conflict",
    "Rank correlation",
    "Evidence: curves and strongest units of each method",
    "Agreement: how far the methods say the same",
    "Scores of every unit by every method",
    "Costs, errors and notes of every method",
    "Cost, error and notes",
    "What the words mean",
    "Settings and provenance",
    "The image by every other method",
    "the image",
}
FIXED = {
    "* One of these passes is shared: all methods marked so look at the same run.": lambda every: (
        any(a.cost.shared for a in every)
    ),
    "From memory: texts that had been run before, for another method or for the evidence, and cost "
    "nothing again.": lambda every: any(a.cost.saved for a in every),
    ASKED: are_tried,
    "A ✓ may be luck: up to one random ranking in twenty gets it too.": lambda every: any(
        map(trials, every)
    ),
}


def check_page(made: Attribution | Comparison) -> None:
    """Every paragraph is known, and true."""
    every = [made] if isinstance(made, Attribution) else list(made.attributions.values())
    plan = made.plan
    a = every[0]
    said = answer_sentences(made.answer)
    plain = [" ".join(sentence.split()) for sentence in said]
    cautions = [f"Caution: {' '.join(c.split())}" for c in answer_cautions(made.answer)]
    allowed = {" ".join(line.split()) for line in remarks(a, plan)}
    things = PLURALS.get(a.units.kind, a.units.kind)
    whole = agreement({one.method: one for one in every})
    page = made.to_html()
    check_tables(page, made)
    for tag, kind, words in paragraphs(page):
        if kind == "answer":
            assert words == " ".join(plain[:2])
        elif kind == "trust":
            assert words in plain[2:]
        elif tag == "li":
            assert words in cautions
        elif tag == "option":
            check_option(words, every)
        elif tag in ("p", "h4") and (kind == "by" or check_title(words, every)):
            check_badge(words.removeprefix("by "), every)
        elif words in TITLES or words in {f"The {things}", "The text"}:
            continue
        elif words in FIXED:
            assert FIXED[words](every)
        elif words in allowed:
            continue
        elif kind == "legend":
            check_legend(words, a, every, things)
        elif words.startswith("Explained: "):
            told = re.fullmatch(r"Explained: (.*)\. Model: (.*) · (.*)\.", words)
            assert told is not None
            assert told[2] == " ".join(visible(a.provenance.model).split())
            check_value(told[1], a)
        elif kind == "soft of-shares":
            check_shares(words, every, things)
        elif tag == "figcaption":
            check_caption(words, every)
        elif words.startswith("In all "):
            assert isinstance(made, Comparison)
            check_cost(words.removeprefix("In all ").removesuffix("."), made.cost)
        elif words.endswith(tuple(f" was left out: {visible(w)}" for w in skipped(made).values())):
            assert words.split(" ")[0] in skipped(made)
        elif check_agreement(words, whole):
            continue
        else:
            check_of_a_card(words, every, things)


def words_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).split())


def rows_after(page: str, title: str) -> list[list[str]]:
    """The rows of the table behind a title, head and cells as words."""
    _, found, rest = page.partition(title)
    if not found:
        return []
    body = rest.partition("<tbody>")[2].partition("</tbody>")[0]
    cells = r"<(?:td|th)\b[^>]*>(.*?)</(?:td|th)>"
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    return [[words_of(cell) for cell in re.findall(cells, row, re.DOTALL)] for row in rows]


def check_tables(page: str, made: Attribution | Comparison) -> None:
    """The verdicts, the units in conflict, and what each method cost."""
    if isinstance(made, Attribution):
        return
    every = made.attributions
    title = "Which methods can be believed?</h3>"
    head = page.partition(title)[2].partition("</thead>")[0]
    removals = re.findall(r">by (\w+)</th>", head)
    for method, best, badge, *shares in rows_after(page, title):
        a = every[method]
        assert best == " ".join(strongest(a).split())
        said = {None: "no verdict", Verdict.SAME: "not separable"}
        word = said.get(verdict(a), WORD[verdict(a)])
        assert badge == ("not computed" if a.evidence is None else f"{MARK[verdict(a)]} {word}")
        tried = {trial.removal: trial for trial in trials(a)}
        for removal, cell in zip(removals, shares, strict=True):
            check_cell(cell, tried.get(removal))
    conflicts = {c.name: c for c in made.agreement().conflicts}
    for name, *camps in rows_after(page, "Units on which methods conflict</h3>"):
        shown = {" ".join(visible(n).split()): n for n in conflicts}
        assert name in shown
        for camp in camps:
            check_camp(camp, made, shown[name])
    costs = rows_after(page, 'aria-label="cost and error of each method"')
    has_memory = any(a.cost.saved for a in every.values())
    for method, *cells in [row for row in costs if len(row) > 2]:
        cost = every[method].cost
        assert cells[0] == f"{cost.forwards:,}{'*' if cost.shared else ''}"
        if has_memory:
            assert cells[1] == (f"{cost.saved:,}" if cost.saved else "–")
        assert cells[1 + has_memory] == f"{cost.backwards:,}"
        assert abs(float(cells[2 + has_memory].replace(",", "")) - 1000 * cost.seconds) <= 0.5


def check_cell(cell: str, trial: Trial | None) -> None:
    if trial is None:
        assert cell == "–"
        return
    told = re.fullmatch(rf"(✓|~|✗) ({SHARE})(?: (p .*?)( of worse)?)?", cell)
    assert told is not None, cell
    assert told[1] == MARK[trial.verdict]
    assert trial.beaten is not None
    check_share(told[2], trial.beaten)
    assert (told[3] is None) == (p_of(trial) is None)
    if told[3]:
        p = told[3] if told[3][2] in "<>" else told[3].replace("p ", "p = ")
        check_p(p, p_of(trial))
        assert bool(told[4]) == (trial.verdict == Verdict.WORSE)


def check_camp(said: str, c: Comparison, name: str) -> None:
    """``strong in 2: a (100 %), b (50 %)``: each share by the largest of its method."""
    told = re.fullmatch(r"(for|against|raising it|lowering it|strong|weak) in (\d+): (.*)", said)
    assert told is not None, said
    unit = c.units.distinct_names.index(name)
    named = re.findall(r"(\S+) \((> |< )?([+−]?)(> |< )?-?([\d.]+) %\)", told[3])
    assert len(named) == int(told[2]) == told[3].count("%")
    side = -1 if c.first.target.read in ("cross-entropy", "perplexity") else 1
    for method, *_, number in named:
        a = c[method]
        share = float(a.scores[unit] / (np.abs(a.scores).max() or 1.0))
        assert abs(abs(100 * share) - float(number)) <= half_a_digit(number) + 0.005
        truth = {
            "for": side * share >= 0.1,
            "against": side * share <= -0.1,
            "raising it": share >= 0.1,
            "lowering it": share <= -0.1,
            "strong": abs(share) >= 0.5,
            "weak": abs(share) < 0.1,
        }
        assert truth[told[1]], (said, share)


def skipped(made: Attribution | Comparison) -> dict[str, str]:
    return dict(made.skipped) if isinstance(made, Comparison) else {}


def check_title(words: str, every: Sequence[Attribution]) -> bool:
    """Whether it is the title of a method's card."""
    return any(re.match(rf"{re.escape(a.method)}(?: [✓~✗–] |$)", words) for a in every)


def check_badge(words: str, every: Sequence[Attribution]) -> None:
    (a,) = [a for a in every if words.split(" ")[0] == a.method]
    expected = a.method
    if a.evidence is not None:
        expected += f" {MARK[verdict(a)]} {verdict(a) or 'no verdict'}"
    assert words == expected


def check_option(words: str, every: Sequence[Attribution]) -> None:
    """A method with its verdict, in the menu."""
    shown = {"every method, one below the other"}
    for a in every:
        named = (verdict(a) or "no verdict").removesuffix(" random").removesuffix(" than")
        said = f"{MARK[verdict(a)]} {a.method}: {named.removesuffix(' from')}"
        shown.add(a.method if a.evidence is None else said)
    assert words in shown


def check_legend(words: str, a: Attribution, every: Sequence[Attribution], things: str) -> None:
    if words.startswith(f"{things} are taken out, the most important first"):
        assert any(trial.curves for each in every for trial in trials(each))
        return
    reference = a.target.reference
    there = "the whole input" if reference is None else reference.name
    ends = {
        "cross-entropy": "for the targetagainst it",
        "perplexity": "for the targetagainst it",
        "entropy": "makes the model more suremakes it less sure",
        "kl": f"keeps the model at what it says of {there}moves it away from that",
    }.get(a.target.read, "against the targetfor it")
    if a.target.read in ("cross-entropy", "perplexity"):  # below zero stands on the left
        ends = "for the targetagainst it"
    expected = ends if any(one.signed for one in every) else ""
    if any(not one.signed for one in every):
        expected += "matters littlemuch (a method without signs)"
    full = "Full colour is the method's largest score; point at one for its number."
    assert words.replace(" ", "") == (expected + full).replace(" ", "")


def check_shares(words: str, every: Sequence[Attribution], things: str) -> None:
    names = list(dict.fromkeys(trial.removal for a in every for trial in trials(a)))
    told = re.fullmatch(
        r"The percentage is the share of (?P<of>.*) of the same text that the method's ranking "
        r"beats: 50 % is chance\. It is given for each way to remove (?P<things>.*) "
        r"\((?P<names>.*)\), with the p-value\.",
        words,
    )
    assert told is not None, words
    check_rankings(told["of"], every)
    assert told["things"] == things
    assert sorted(told["names"].split(", ")) == sorted(names)


def check_caption(words: str, every: Sequence[Attribution]) -> None:
    """What stands below the curves of a removal; of a picture the name of the method."""
    if words in [a.method for a in every]:
        return
    told = re.fullmatch(r"(\S+) (✓|~|✗|–) (.*)", words)
    assert told is not None, words
    fitting = []
    for a in every:
        for trial in trials(a):
            if trial.removal == told[1] and MARK[trial.verdict] == told[2]:
                fitting.append(trial)
    problems = []
    for trial in fitting:
        try:
            check_trial(told[3], trial, trial.beaten, comma=False)
        except AssertionError as problem:
            problems.append(problem)
    assert len(problems) < len(fitting), words


def check_agreement(words: str, whole: Agreement) -> bool:
    """Closest and furthest, the mean, what chance gives; True where it is one of these."""
    pairs = {frozenset((one, other)): r for one, other, r in whole.pairs}
    number = r"\((−?\d\.\d\d)\)"
    shown = [f"{r:.2f}".replace("-", "−").replace("−0.00", "0.00") for r in pairs.values()]
    end = rf"(\S+) and (\S+?)(?:, and ([\d,]+) other pairs?)? {number}\."
    if told := re.fullmatch(rf"Only (\S+) and (\S+) can be compared {number}\.", words):
        assert len(pairs) == 1
        check_pair(told[1], told[2], told[3], pairs)
    elif told := re.fullmatch(rf"Closest: {end}(?: Furthest: {end})?", words):
        assert len(pairs) > 1
        assert (told[5] is None) == (len(set(shown)) == 1)
        for first, extreme in ((1, max), (5, min)):
            one, other, tied, r = (told[first + i] for i in range(4))
            if one is not None:
                assert abs(check_pair(one, other, r, pairs) - extreme(pairs.values())) < 0.011
                assert shown.count(r) == 1 + int((tied or "0").replace(",", ""))
    elif told := re.fullmatch(
        r"Mean rank correlation of every two methods( that rank something)?: (−?\d\.\d\d)\.", words
    ):
        assert abs(float(told[2].replace("−", "-")) - np.mean(list(pairs.values()))) < 0.00501
        count = len(whole.methods)
        assert bool(told[1]) == (len(pairs) < count * (count - 1) / 2)
    elif told := re.fullmatch(rf"Top (\d+) in common \(chance ({SHARE})\)", words):
        assert int(told[1]) == min(5, len(whole.correlation) and whole.k)
        assert whole.chance < 1  # all methods have all units in common
        check_share(told[2], whole.chance)
    elif told := re.fullmatch(
        rf"Spearman's correlation of the scores \(of their sizes, where one method has no signs\)"
        rf"(?:, and the share of the top (\d+) units in common, by chance ({SHARE}))?\. Similar "
        r"methods stand together\.",
        words,
    ):
        assert (told[1] is None) == (whole.chance == 1)
        if told[1] is not None:
            check_share(told[2], whole.chance)
    elif told := re.fullmatch(
        r"A score is taken as a share of the largest one of its method on this text\. "
        r"(For and against|Raising it and lowering it): opposite signs, each from 10 % on, one "
        r"from 50 % on\. Strong and weak: from 50 % on in one method, less than 10 % in another\. "
        r"Those furthest apart first\.",
        words,
    ):
        assert whole.conflicts
        raises = whole.explained.read in ("entropy", "kl")
        assert raises == told[1].startswith("Raising")
    else:
        return False
    return True


def check_pair(one: str, other: str, shown: str, pairs: dict[frozenset[str], float]) -> float:
    r = pairs[frozenset((one, other))]
    assert abs(float(shown.replace("−", "-")) - r) < 0.00501
    return r


def check_of_a_card(words: str, every: Sequence[Attribution], things: str) -> None:
    """What a method itself tells, its question, an anchor, its own evidence."""
    verbs = {"fall": True, "change": False}
    if asked := re.fullmatch(
        r"Does the target (fall|change) most when the (.*) that it ranks first are taken out\?",
        words,
    ):
        assert asked[2] == things
        assert any(a.signed == verbs[asked[1]] and trials(a) for a in every)
        return
    if words.startswith("Its own evidence: "):
        own = [
            e if e.measure == HELD_OUT else e.own
            for e in (a.evidence for a in every)
            if e is not None
        ]
        told = words.removeprefix("Its own evidence: ")
        problems = []
        for e in filter(None, own):
            try:
                check_own(told, e, with_removals=False)
            except AssertionError as problem:
                problems.append(problem)
        assert len(problems) < len([e for e in own if e])
        return
    if words.startswith("IF "):
        check_rule(words, every)
        return
    notes = {" ".join(visible(a.evidence.note).split()) for a in every if a.evidence is not None}
    if words in notes:
        return
    check_detail(words, every)


def check_rule(words: str, every: Sequence[Attribution]) -> None:
    (a,) = [a for a in every if a.method == "anchors"]
    detail = dict(a.detail or {})
    told = re.fullmatch(
        rf"IF (.*) THEN the (?P<what>prediction|highest label) is (.*): precision ({SHARE})"
        rf"( exactly| \(.*? to .*? %\)), at least ({SHARE}) asked; coverage ({SHARE}); "
        r"(\S+) samples",
        words,
    )
    assert told is not None, words
    kept = [" ".join(visible(a.units.names[i]).split()) for i in sorted(detail["anchor"])]
    quoted = " and ".join(f"“{name}”" for name in kept)
    verb = " stays" if len(kept) == 1 else " stay"
    assert told[1] == (quoted + verb if kept else "anything at all stays")
    is_highest = a.several_labels or sum(a.prediction.values()) > 1.001
    assert (told["what"] == "highest label") == is_highest
    check_share(told[4], detail["precision"])
    assert (told[5] == " exactly") == detail["exact"]
    check_share(told[6], detail["threshold"])
    check_share(told[7], detail["coverage"])
    assert int(told[8].replace(",", "")) == detail["samples"]


def check_detail(words: str, every: Sequence[Attribution]) -> None:
    """``1,000 samples, 512 of them distinct; estimator regression; R² 0.93``, and of features."""
    for a in every:
        detail = a.detail or {}
        if "anchor" in detail or not detail:
            continue
        numbers = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,.]*\d|\d", words)]
        known = [value for value in detail.values() if isinstance(value, (int, float))]
        if "share not reconstructed" in detail:
            known = [v for k, v in detail.items() if k != "share not reconstructed" and v in known]
            known.append(round(100 * detail["share not reconstructed"]))
        if sorted(numbers) == sorted(map(float, known)):
            return
    raise AssertionError(f"no reader knows this paragraph: {words!r}")


# ---------------------------------------------------------------------- the tests


def hunt(times: int, seed: int, page_of_each: float) -> None:
    rng = np.random.default_rng(seed)
    for number in range(times):
        made = result(rng)
        try:
            if isinstance(made, Comparison):
                check_comparison_in_short(made)
            else:
                check_attribution_in_short(made)
            if rng.random() < page_of_each:
                check_page(made)
        except (AssertionError, KeyError, ValueError) as wrong:
            raise AssertionError(f"result {number} of seed {seed}: {wrong!r}") from wrong


def test_every_line_of_a_terminal_and_a_page_is_true_of_its_record():
    hunt(60, seed=1, page_of_each=0.3)


@pytest.mark.slow
def test_every_line_of_many_terminals_and_pages_is_true_of_its_record():
    hunt(400, seed=2, page_of_each=0.2)
