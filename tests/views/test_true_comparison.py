"""What is said of one text is true: each sentence is parsed back, and held against the record.

The reader below knows the sentences by patterns of its own, and counts anew what they claim, from
scores, verdicts and probabilities. A sentence that it does not know is a failure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.occasions.comparison import result
from whence.core.agreement import agreement
from whence.core.answer import Answer
from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.evidence import CURVES, NOTHING_RANKED, Verdict, is_within
from whence.core.naming import judged_together
from whence.core.showing import signs, visible
from whence.views.answering import answer_cautions, answer_sentences, in_short

SHARE = r"(?:over 99\.9|< 0\.01|> 99\.99|\d+(?:\.\d+)?) %"
P = r"p (?:= \d(?:\.\d+)?(?:e-\d+)?|< 0\.001|> 0\.05)"
PLURALS = {
    "word": "words",
    "token": "tokens",
    "sentence": "sentences",
    "section": "sections",
    "patch": "patches",
    "feature": "features",
}


# ---------------------------------------------------------------------- numbers as they are read


def half_a_digit(shown: str) -> float:
    """How far a number may be from what is shown of it."""
    mantissa, _, exponent = shown.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5000001 * 10.0 ** ((int(exponent) if exponent else 0) - decimals) + 1e-9


def check_share(shown: str, share: float) -> None:
    """A share in per cent; 0 and 100 are exact."""
    number = shown.removesuffix(" %")
    hundred = 100 * share
    if number.startswith("over "):
        assert float(number[5:]) < hundred < 100, (shown, share)
    elif number.startswith("> "):
        assert float(number[2:]) <= hundred < 100, (shown, share)
    elif number.startswith("< "):
        assert 0 < hundred <= float(number[2:]), (shown, share)
    else:
        assert abs(float(number) - hundred) <= half_a_digit(number), (shown, share)
        if float(number) in (0, 100):
            assert abs(float(number) - hundred) < 1e-9, (shown, share)


def check_p(shown: str, p: float | None) -> None:
    """A p-value, on that side of the level on which it is."""
    assert p is not None, shown
    number = shown[4:]
    if shown.startswith("p < "):
        assert p < float(number)
    elif shown.startswith("p > "):
        assert p > float(number)
    else:
        assert abs(float(number) - p) <= half_a_digit(number), (shown, p)
        assert (float(number) <= 0.05) == is_within(p), (shown, p)


# ---------------------------------------------------------------------- the record, counted anew


def is_tried(a: Attribution) -> bool:
    e = a.evidence
    return e is not None and e.measure == CURVES and e.verdict is not None


def verdict(a: Attribution) -> Verdict | None:
    return None if a.evidence is None else a.evidence.verdict


def ranks(a: Attribution) -> bool:
    e = a.evidence
    if e is not None and e.verdict is None and e.note in NOTHING_RANKED:
        return False
    pieces = [a.scores[w.start : w.end] for w in a.windows] or [a.scores]
    return any(len(set(piece.tolist())) > 1 for piece in pieces)


def names(a: Attribution) -> set[int]:
    """The units that a method names by itself."""
    sizes = np.abs(a.scores)
    if len(set(sizes.tolist())) == 1:
        return set()
    most = min(5, max(len(sizes) // 2, 1))
    found = set()
    for i, size in enumerate(sizes):
        error = 0.0
        if a.error is not None and a.error.standard_error is not None:
            error = float(a.error.standard_error[i])
        surely = a.error is None or a.error.standard_error is None or size > 2 * error
        if size > 0 and (sizes >= size).sum() <= most and size >= 0.2 * sizes.max() and surely:
            found.add(i)
    return found


def first_of(a: Attribution) -> int | None:
    """The unit of the largest size, if there is but one."""
    sizes = np.abs(a.scores)
    largest = np.flatnonzero(sizes == sizes.max())
    return int(largest[0]) if len(largest) == 1 and sizes.max() > 0 else None


@dataclass
class Record:
    """The raw results, and what follows from them by counting."""

    every: dict[str, Attribution]

    def __post_init__(self) -> None:
        self.first = next(iter(self.every.values()))
        self.units = self.first.units.distinct_names
        self.explaining = {n: a for n, a in self.every.items() if a.method != "random"}
        self.tried = {n: a for n, a in self.explaining.items() if is_tried(a)}
        self.holding = {n: a for n, a in self.tried.items() if verdict(a) == Verdict.BETTER}
        self.ranked = {n: a for n, a in self.tried.items() if ranks(a)}
        self.together = judged_together(self.tried)
        self.carried = self.together is not None and is_within(self.together.p)
        if len(self.tried) == 1:
            self.carried = bool(self.holding)
        self.one = len(self.explaining) <= 1
        self.voices = dict(self.holding)
        if not self.holding:
            best = sorted(self.ranked, key=lambda n: self._place(self.ranked[n]))
            count = min(len(best), max(2, len(best) // 3))
            self.voices = {n: self.ranked[n] for n in best[:count]}
        if not self.carried:
            self.voices = {}
        if self.one:
            self.voices = dict(self.explaining)
        target = self.first.target
        self.sign = {"cross-entropy": -1, "perplexity": -1, "entropy": 0, "kl": 0}.get(
            target.read, 1
        )
        self.things = PLURALS.get(self.first.units.kind, self.first.units.kind)

    def _place(self, a: Attribution) -> tuple[Any, ...]:
        e = a.evidence
        assert e is not None
        order = [Verdict.BETTER, Verdict.SAME, Verdict.WORSE].index(Verdict(e.verdict))
        return order, 1.0 if e.p is None else e.p, -(e.value or 0.0), not a.signed

    def side(self, a: Attribution, unit: int) -> int:
        """1 where the unit is for the target by this method (raises it, of an entropy)."""
        score = float(a.scores[unit])
        return int(np.sign(score)) * (-1 if a.signed and self.sign < 0 else 1)

    def naming_it(self, unit: int, side: int) -> list[str]:
        """The voices with signs that name a unit on that side; all that name it for 0."""
        those = [n for n, a in self.voices.items() if unit in names(a)]
        if not side:
            return those
        return [
            n for n in those if self.voices[n].signed and self.side(self.voices[n], unit) == side
        ]

    def mean(self, unit: int, only_signed: bool) -> float:
        levels = []
        for a in self.voices.values():
            if only_signed and not a.signed:
                continue
            largest = np.abs(a.scores).max() or 1.0
            turn = -1 if a.signed and self.sign < 0 else 1
            levels.append(turn * a.scores[unit] / largest)
        return abs(float(np.mean(levels))) if levels else 0.0

    def is_named(self, unit: int, side: int) -> bool:
        """Most of the voices that may say so name it, and hardly any says the opposite."""
        signed = [n for n, a in self.voices.items() if a.signed]
        every = range(len(self.units))
        if side:
            those, others = self.naming_it(unit, side), self.naming_it(unit, -side)
            is_most = len(those) > len(signed) / 2
            is_undisputed = len(others) <= 0.2 * (len(those) + len(others))
            largest = max(self.mean(i, True) for i in every)
            return is_most and is_undisputed and self.mean(unit, True) >= 0.1 * largest
        largest = max(self.mean(i, False) for i in every)
        is_most = len(self.naming_it(unit, 0)) > len(self.voices) / 2
        return is_most and self.mean(unit, False) >= 0.1 * largest

    def disputed(self) -> list[int]:
        """Units for which and against which too many voices speak."""
        found = []
        for unit in range(len(self.units)):
            one, other = len(self.naming_it(unit, 1)), len(self.naming_it(unit, -1))
            if min(one, other) > 0.2 * (one + other):
                found.append(unit)
        return found


# ---------------------------------------------------------------------- how things are called


def one_line(content: str, most: int) -> str:
    content = " ".join(content.split()) or signs(content)
    if len(content) > most:
        content = content[:most].rstrip() + "…"
    return f"“{visible(content.strip()) or signs(content)}”"


def label(record: Record, name: object) -> str:
    """A label as a sentence has it."""
    text = str(name)
    a = record.first
    if a.passage is not None and a.passage.written is not None:
        return one_line(text, 40)
    if text and text == text.strip() and not a.labels_are_quoted:
        return visible(text)
    return f"“{visible(text.strip()) or signs(text)}”"


def written_text(record: Record) -> tuple[str, range] | None:
    a = record.first
    if a.passage is None or a.passage.written is None or not isinstance(a.target.at, int):
        return None
    steps = range(a.target.at, a.target.until or a.target.at + 1)
    return "".join(a.passage.output_text(step) for step in steps), steps


def is_the_written(record: Record) -> bool:
    found, a = written_text(record), record.first
    assert found is not None
    assert a.passage is not None
    if a.target.until is not None:
        return True
    return a.target.index == int(a.passage.ids[a.passage.output_place(found[1].start)])


def target(record: Record) -> str:
    """What is explained, as a sentence has it."""
    a = record.first
    name = label(record, a.target.label) if a.target.label not in (None, "") else "the output"
    found = written_text(record)
    if found is not None and len(found[1]) > 1:
        name = one_line(found[0], 40)
        assert a.passage is not None
        if len(found[1]) == a.passage.outputs and a.target.against is None:
            name = "what was written" if a.passage.by_model else "what was given"
    if a.target.against is None:
        return name
    return f"{name} rather than {label(record, a.target.against)}"


# ---------------------------------------------------------------------- the reader

Check = Callable[["Reader", re.Match[str]], None]


@dataclass
class Reader:
    """Reads the sentences about one record."""

    record: Record

    def __post_init__(self) -> None:
        every = sorted({visible(name) for name in self.record.units}, key=len, reverse=True)
        self.name = f"“(?:{'|'.join(map(re.escape, every))})”"
        self.several = f"{self.name}(?:, {self.name})*(?: and {self.name})?"
        methods = sorted(map(visible, self.record.every), key=len, reverse=True)
        self.method = f"(?:{'|'.join(map(re.escape, methods))})"
        self.target = re.escape(target(self.record))
        labels = {label(self.record, name) for name in self.record.first.prediction}
        self.label = f"(?:{'|'.join(map(re.escape, sorted(labels, key=len, reverse=True)))})"
        if not labels:
            self.label = "(?!)"
        reference = self.record.first.target.reference
        there = "the whole input" if reference is None else reference.name
        self.there_plain = visible(there)

    def pattern(self, text: str) -> re.Pattern[str]:
        known = {
            key: getattr(self, key) for key in ("name", "several", "method", "target", "label")
        }
        known |= {"things": re.escape(self.record.things), "share": SHARE, "p": P}
        # not where a group gets its name
        text = re.sub(r"(?<!\?P)<(\w+)>", lambda found: known[found[1]], text)
        return re.compile(text, re.DOTALL)

    def read(self, sentence: str, sayings: Sequence[tuple[str, Check]]) -> None:
        """Exactly as one of the sayings, and as that is true."""
        for form, check in sayings:
            match = self.pattern(form).fullmatch(sentence)
            if match is not None:
                check(self, match)
                return
        raise AssertionError(f"no reader knows this sentence: {sentence!r}")

    def unit(self, quoted: str) -> int:
        shown = [visible(name) for name in self.record.units]
        assert shown.count(quoted[1:-1]) >= 1, quoted
        return shown.index(quoted[1:-1])

    def units(self, listed: str | None) -> list[int]:
        return [] if not listed else [self.unit(one) for one in re.findall(self.name, listed)]


# ---------------------------------------------------------------------- what the model says


def prediction(r: Reader, m: re.Match[str]) -> None:
    a = r.record.first
    (name, p), *others = a.prediction.items()
    assert m["label"] == label(r.record, name)
    check_share(m["share"], p)
    assert p == max(a.prediction.values())
    assert (m["word"] is None) == (a.target.word is None)
    if m["word"] is not None:
        assert m["word"] == visible(a.target.word or "")
    holding = [n for n, q in a.prediction.items() if q >= 0.5]
    has_several = a.several_labels or sum(a.prediction.values()) > 1.001
    if has_several:
        assert holding
        also = re.findall(f"({r.label}) \\(({SHARE})\\)", m["also"] or "")
        assert [one for one, _ in also] == [label(r.record, n) for n in holding[1:]]
        for (_, shown), n in zip(also, holding[1:], strict=True):
            check_share(shown, a.prediction[n])
        assert not m["rival"]
    else:
        assert not m["also"]
        second = others[0][1] if others else 0.0
        words = {"; as likely is ": second == p, ", hardly more than ": 0.9 * p <= second < p}
        words |= {"; next is ": 0.5 * p <= second < 0.9 * p}
        words |= {None: not others or second < 0.5 * p}
        assert words[m["how"]], (m["how"], p, second)
        if m["how"]:
            assert m["rival"] == label(r.record, others[0][0])
            check_share(m["second"], second)
    explained = str(a.target.label) if a.target.label is not None else name
    if m["explained"] is None:
        assert explained == name
        assert a.target.against is None
    elif m["explained"] == "another label, ":
        assert explained != name
        assert not (has_several and explained in holding)
    elif m["explained"] == "why ":
        assert explained == name
        assert a.target.against is not None
    else:
        assert explained != name
        assert has_several
    place(r, m["place"])


def place(r: Reader, said: str | None) -> None:
    t = r.record.first.target
    fills = isinstance(t.at, int) and t.word is None and t.at < len(r.record.units)
    assert (said is not None) == fills
    if said is not None:
        assert said == f"“{visible(r.record.units[t.at])}”"  # type: ignore[index]


def no_label(r: Reader, m: re.Match[str]) -> None:
    a = r.record.first
    name, p = next(iter(a.prediction.items()))
    assert a.several_labels or sum(a.prediction.values()) > 1.001
    assert max(a.prediction.values()) < 0.5
    assert m["label"] == label(r.record, name)
    check_share(m["share"], p)
    is_other = a.target.label not in (None, name) or a.target.against is not None
    assert (m["explained"] is not None) == is_other
    place(r, m["place"])


def gives(r: Reader, m: re.Match[str]) -> None:
    assert not r.record.first.prediction
    assert abs(float(m["value"]) - r.record.first.value) <= half_a_digit(m["value"]) * 1.01


def written(r: Reader, m: re.Match[str]) -> None:
    a, found = r.record.first, written_text(r.record)
    assert found is not None
    assert a.passage is not None
    content, steps = found
    assert m["text"] == one_line(content, 120)
    assert (m["who"] == "The model wrote") == a.passage.by_model
    own = is_the_written(r.record)
    p = probability_of_written(a) if own else None
    if len(steps) > 1:
        assert int(m["tokens"]) == len(steps)
        assert (m["each"] is not None) == bool(p)
        if p:
            check_share(m["each"], p ** (1 / len(steps)))
    else:
        assert m["tokens"] is None
        assert (m["share"] is not None) == (p is not None)
        if p is not None:
            check_share(m["share"], p)
    likelier(r, m, p, own, len(steps))
    expected = None
    if not own:
        expected = f"{target(r.record)} in its place"
    elif a.target.against is not None:
        stands = "was written" if a.passage.by_model else "stands there"
        expected = f"why this {stands} rather than {label(r.record, a.target.against)}"
    assert m["explained"] == expected


def probability_of_written(a: Attribution) -> float | None:
    if a.target.until is None and a.target.label in a.prediction:
        return a.prediction[str(a.target.label)]
    if a.target.against is not None:
        return None
    ways = {"log-probability": math.exp(a.value), "probability": a.value}
    return (ways | {"cross-entropy": math.exp(-a.value)}).get(a.target.read)


def likelier(r: Reader, m: re.Match[str], p: float | None, own: bool, tokens: int) -> None:
    """The other token: it is another one, and as likely, or likelier, as is said."""
    a = r.record.first
    if m["other"] is None:
        return
    assert tokens == 1
    share = {label(r.record, name): q for name, q in a.prediction.items()}[m["other"]]
    check_share(m["their"], share)
    how = m["how"].strip(",; ")
    if how in ("likelier was", "hardly likelier was"):
        assert m["other"] == label(r.record, next(iter(a.prediction)))
        assert next(iter(a.prediction)) != (a.target.label if own else None)
        assert p is None or share > p
        assert (how == "hardly likelier was") == (
            m["share"] is not None and m["share"] == m["their"]
        )
    else:
        assert p is not None
        assert m["other"] != label(r.record, a.target.label)
        truth = {
            "as likely was": share == p,
            "as likely is": share == p,
            "hardly more than": 0.9 * p <= share < p,
            "next is": 0.5 * p <= share < 0.9 * p,
        }
        assert truth[how]


PLACE = "(?:In place of (?P<place><name>) the model|The model) says "
WORD = "(?: of the word “(?P<word>.*?)”)?"
MODEL: list[tuple[str, Check]] = [
    (
        PLACE + "none of its labels" + WORD + r"; highest is (?P<label><label>) "
        r"\((?P<share><share>)\)(?P<explained>\. Explained is <target>)?\.",
        no_label,
    ),
    (
        PLACE + "(?P<label><label>)" + WORD + r" \((?P<share><share>)\)"
        r"(?:, and also (?P<also><label> \(<share>\)(?:, <label> \(<share>\))*))?"
        r"(?:(?P<how>; as likely is |, hardly more than |; next is )"
        r"(?P<rival><label>) \((?P<second><share>)\))?"
        r"(?:\. Explained is (?P<explained>another label, |why |)<target>)?\.",
        prediction,
    ),
    (r"The model gives (?P<value>\S+) for <target>\.", gives),
    (
        r"(?P<who>The model wrote|The text goes on with) (?P<text>“.*?”)"
        r"(?: \((?P<share><share>)\)"
        r"| \((?P<tokens>\d+) tokens(?:, (?P<each><share>) each in the geometric mean)?\))?"
        r"(?:(?P<how>[;,] [a-z ]+ )(?P<other><label>) \((?P<their><share>)\))?"
        r"(?:\. Explained is (?P<explained>.*))?\.",
        written,
    ),
]


# ---------------------------------------------------------------------- the reasons


def a_control(r: Reader, m: re.Match[str]) -> None:
    assert not r.record.explaining


def untested(r: Reader, m: re.Match[str]) -> None:
    assert not r.record.tried
    assert int(m["n"]) == len(r.record.explaining) > 1
    assert (m["none"] == "Neither") == (int(m["n"]) == 2)


def nothing_to_test(r: Reader, m: re.Match[str]) -> None:
    truth = {
        "there is only one unit, so there is nothing to rank": len(r.record.units) == 1,
        "all units have the same score, so nothing is ranked": False,
        "its scores are zero by construction, so nothing is ranked": False,
    }
    still = "whatever is taken out, what is explained changes by less than a millionth of itself"
    moves = any(a.scores.any() for a in r.record.explaining.values())
    truth[f"{still}, so nothing is ranked"] = not moves
    if r.record.one:
        (a,) = r.record.explaining.values()
        assert a.evidence is not None
        assert a.evidence.verdict is None
        equal = len(set(a.scores.tolist())) == 1
        truth["all units have the same score, so nothing is ranked"] = equal
        is_zero = a.error is not None and a.error.note.startswith("zero by construction")
        truth["its scores are zero by construction, so nothing is ranked"] = (
            is_zero and not a.scores.any()
        )
    assert truth[m["note"]]


FOR = {1: ("for", "against"), -1: ("for", "against")}
SPEAK = "speaks?|makes?|moves?|keeps?"


def named(r: Reader, m: re.Match[str]) -> None:
    """Each unit stands on the side that most voices give it, the verb agrees in number."""
    record = r.record
    lead = m["lead"] or ""
    if record.one:
        (method,) = record.explaining
        assert lead in (f"By {method}, ", "It would say that ")
        is_doubted = is_tried(record.explaining[method]) and verdict(record.explaining[method]) in (
            Verdict.SAME,
            Verdict.WORSE,
        )
        assert (lead == "It would say that ") == is_doubted
    else:
        assert not lead
        assert record.carried
    mentioned: list[tuple[int, int]] = []
    rest = m["clauses"]
    about = {
        f"speak for {target(record)}": 1,
        f"speak against {target(record)}": -1,
        "speak against it": -1,
        "make the model less sure": 1,
        "make the model more sure": -1,
        "make it more sure": -1,
        f"move the model away from what it says of {r.there_plain}": 1,
        f"keep the model at what it says of {r.there_plain}": -1,
        "keep it at that": -1,
    }
    by_reading = {"entropy": "make", "kl": "(?:move|keep)"}.get(record.first.target.read, "speak")
    said = "|".join(map(re.escape, sorted(about, key=len, reverse=True)))
    del said
    place_of, first = 0, True
    while place_of < len(rest):
        clause = re.compile(f"(?P<names>{r.several}) ").match(rest, place_of)
        assert clause is not None, rest
        units = r.units(clause["names"])
        after = rest[clause.end() :]
        verb = None
        for words, side in about.items():
            form = words if len(units) > 1 else re.sub(r"^(\w+)", r"\1s", words)
            ends = (f"{form}; ", form)
            if after == form or after.startswith(ends[0]):
                verb = (form, side)
                is_again = words.endswith((" it", "it more sure", "at that"))
                if words != f"speak against {target(record)}":
                    assert is_again != first, rest
                assert re.match(by_reading, words), rest
                break
        assert verb is not None, rest
        mentioned += [(unit, verb[1]) for unit in units]
        place_of = clause.end() + len(verb[0]) + 2
        first = False
    check_units(r, mentioned)
    order = [record.mean(u, True) for u, _ in mentioned if _ == mentioned[0][1]]
    assert order == sorted(order, reverse=True)


def check_units(r: Reader, mentioned: Sequence[tuple[int, int]]) -> None:
    assert len({unit for unit, _ in mentioned}) == len(mentioned)
    for unit, side in mentioned:
        assert r.record.is_named(unit, side), (r.record.units[unit], side)


def matters(r: Reader, m: re.Match[str]) -> None:
    record = r.record
    units = r.units(m["units"])
    assert (m["verb"] == "matters") == (len(units) == 1)
    what = {
        "entropy": "how sure the model is",
        "kl": f"how far the model is from what it says of {r.there_plain}",
    }.get(record.first.target.read, target(record))
    assert m["what"] == what
    assert record.one or record.carried
    check_units(r, [(unit, 0) for unit in units])
    # nobody with signs names a unit on a side, or they name none alike
    assert not any(record.is_named(u, s) for u in range(len(record.units)) for s in (1, -1))


def nothing_by_one(r: Reader, m: re.Match[str]) -> None:
    (a,) = r.record.explaining.values()
    assert not names(a)


def nothing_stands_out(r: Reader, m: re.Match[str]) -> None:
    record = r.record
    assert record.carried
    count = len(record.voices)
    whose(r, m["who"], count)
    assert (m["lets"] == "lets") == (count == 1)
    assert not any(names(a) for a in record.voices.values())


def whose(r: Reader, who: str, count: int) -> None:
    expected = {
        (True, True): "one method that beats random rankings",
        (True, False): "methods that beat random rankings",
        (False, True): "best method",
        (False, False): f"best {count} methods",
    }
    assert who == expected[bool(r.record.holding), count == 1]


def contradict(r: Reader, m: re.Match[str]) -> None:
    unit = r.unit(m["unit"])
    whose(r, m["who"], len(r.record.voices))
    assert unit in r.record.disputed()
    assert int(m["one"]) == len(r.record.naming_it(unit, 1))
    assert int(m["other"]) == len(r.record.naming_it(unit, -1))
    assert (m["has"] == "has") == (int(m["one"]) == 1)


def different(r: Reader, m: re.Match[str]) -> None:
    """Each unit is named by half of the voices at most, and there is no dispute."""
    record = r.record
    whose(r, m["who"], len(record.voices))
    assert record.carried
    assert any(names(a) for a in record.voices.values())
    assert not record.disputed()
    for unit in range(len(record.units)):
        assert not any(record.is_named(unit, side) for side in (1, -1, 0))


def none_named(r: Reader, m: re.Match[str]) -> None:
    record = r.record
    assert not record.carried
    assert len(record.explaining) > 1
    assert record.tried
    if m["first"]:
        put_first(r, m["first"])
    else:
        assert not most_put_first(record)
    why = m["why"]
    could_see = record.together is not None and is_within(record.together.smallest_p)
    if why == "no method ranks anything.":
        assert not record.ranked
    elif why == "this text is too short to test it.":
        assert not could_see
        assert len(record.units) <= 4
    elif few := re.fullmatch(r"(\d+) random rankings are too few to test it\.", why):
        assert not could_see
        counts = [a.evidence.rankings for a in record.tried.values() if a.evidence]
        assert int(few[1]) in counts
        assert int(few[1]) < 100
    elif why == "there are too few rankings to test it.":
        assert not could_see
        assert record.first.windows
    elif why == "too many scores are equal to test it.":
        assert not could_see
        assert any(len(set(a.scores.tolist())) < len(a.scores) for a in record.tried.values())
    else:
        told = re.fullmatch(
            rf"(?P<who>.*) (?P<how>cannot be told from|(?:is|are) not better than) "
            rf"random rankings \((?P<p>{P})\)\.",
            why,
        )
        assert told is not None, why
        assert could_see
        assert record.together is not None
        check_p(told["p"], record.together.p)
        assert record.together.p > 0.05
        count = len(record.ranked)
        who = f"taken together, the {count} methods"
        if count != len(record.explaining):
            tested = count == len(record.tried)
            who += " tested" if tested else " that rank something"
        assert told["who"] == (who if count > 1 else "the one method that ranks them")
        if any(verdict(a) == Verdict.WORSE for a in record.tried.values()):
            assert told["how"] != "cannot be told from"


def most_put_first(record: Record) -> dict[int, list[Attribution]]:
    """Units that more than half of those tested put first, and two at least."""
    found: dict[int, list[Attribution]] = {}
    for a in record.ranked.values():
        unit = first_of(a)
        if unit is not None:
            found.setdefault(unit, []).append(a)
    half = len(record.tried) / 2
    return {unit: those for unit, those in found.items() if len(those) >= 2 and len(those) > half}


def put_first(r: Reader, said: str) -> None:
    record = r.record
    match = r.pattern(
        r"(?P<who>Both methods|All \d+ methods|\d+ of the \d+ methods)(?P<tested> tested|) put "
        r"(?P<unit><name>) first(?:, though (?P<n>\d+) says? that it (?P<one>.*?) and (?P<m>\d+) "
        r"that it (?P<other>.*?))?"
    ).fullmatch(said)
    assert match is not None, said
    unit = r.unit(match["unit"])
    found = most_put_first(record)
    assert unit in found
    count, tried = len(found[unit]), len(record.tried)
    who = f"{count} of the {tried} methods"
    if count == tried:
        who = "Both methods" if tried == 2 else f"All {tried} methods"
    assert match["who"] == who
    assert bool(match["tested"]) == (tried != len(record.explaining))
    signed = [a for a in found[unit] if a.signed]
    sides = [record.side(a, unit) for a in signed]
    if match["n"]:
        assert (int(match["n"]), int(match["m"])) == (sides.count(1), sides.count(-1))
        one, other = sides_in_words(r)
        assert (match["one"], match["other"]) == (one, other)
    else:
        assert not (sides.count(1) and sides.count(-1))


def sides_in_words(r: Reader) -> tuple[str, str]:
    """What one unit does that is for the target (raises it), and what one against it, again."""
    read = r.record.first.target.read
    if read == "entropy":
        return "makes the model less sure", "makes it more sure"
    if read == "kl":
        return f"moves the model away from what it says of {r.there_plain}", "keeps it at that"
    return f"speaks for {target(r.record)}", "speaks against it"


def too_short(r: Reader, m: re.Match[str]) -> None:
    count = len(r.record.units)
    assert int(m["n"]) == count
    assert int(m["orders"]) == math.factorial(count)
    assert 1 / math.factorial(count) > 0.05


def one_unit(r: Reader, m: re.Match[str]) -> None:
    assert len(r.record.units) == 1


def alone(r: Reader, m: re.Match[str]) -> None:
    """Who beats random rankings by itself, where that is not enough."""
    record = r.record
    assert not record.carried
    count, tried = len(record.holding), len(record.tried)
    if m["none"]:
        assert count == 0
        none_of(m["none"], tried)
    else:
        who_beats(r, m["who"], m["beat"], count, tried)
        assert (m["self"] == "by itself") == (count == 1)
    best = m["best"]
    if record.together is None:
        assert not best
        return
    p, could = record.together.smallest_p, is_within(record.together.smallest_p)
    assert best.startswith(" The test could" if could else " Even the best")
    check_p(re.search(P, best)[0], p)  # type: ignore[index]


def none_of(said: str, tried: int) -> None:
    expected = f"None of the {tried} methods tested beats random rankings by itself"
    if tried == 2:
        expected = "Neither of the 2 methods tested beats random rankings by itself"
    if tried == 1:
        expected = "The one method tested does not beat random rankings"
    assert said == expected


def who_beats(r: Reader, who: str, beat: str, count: int, tried: int) -> None:
    expected = f"{count} of the {tried} methods"
    if count == tried:
        expected = {1: "The one method", 2: "Both methods"}.get(tried, f"All {tried} methods")
    assert who == expected
    assert (beat == "beats") == (count == 1)


def carried(r: Reader, m: re.Match[str]) -> None:
    """Who beats random rankings, how many name it, how far they agree, what is put first."""
    record = r.record
    assert record.carried
    assert not record.one
    count, tried = len(record.holding), len(record.tried)
    if m["none"]:
        assert count == 0
        none_of(m["none"], tried)
        assert record.together is not None
        check_p(m["p"], record.together.p)
    else:
        who_beats(r, m["who"], m["beat"], count, tried)
        assert count > 0
    rest, who = m["rest"] or "", ""
    if len(record.voices) == 1:  # who it is, behind what is said of it
        rest, _, who = rest.rpartition(": ")
        assert who == visible(next(iter(record.voices)))
    parts = [part for part in rest.split("; ") if part]
    answer = Answering(record)
    agreeing = [part for part in parts if "rank correlation" in part]
    naming = [part for part in parts if "rank correlation" not in part]
    assert bool(naming) == bool(answer.units), m["rest"]
    if naming:
        (said,) = naming
        name_it(record, answer, said)
    means = pairwise(record.voices)
    assert bool(agreeing) == (means is not None)
    if agreeing:
        (said,) = agreeing
        agree(record, answer, said, means)
    if m["first"]:
        put_first(r, m["first"])
    else:
        assert not most_put_first(record)


class Answering:
    """The units that may be named, by counting: on a side where voices have signs."""

    def __init__(self, record: Record):
        every = range(len(record.units))
        sides = [(u, s) for s in (1, -1) for u in every if record.is_named(u, s)]
        self.by_side = bool(sides)
        shown = []
        for side in (1, -1):
            those = [u for u, s in sides if s == side]
            those.sort(key=lambda u: (-record.mean(u, True), u))
            shown += [(u, side) for u in those[:4]]
        if not sides and not record.disputed():
            those = [u for u in every if record.is_named(u, 0)]
            those.sort(key=lambda u: (-record.mean(u, False), u))
            shown = [(u, 0) for u in those[:4]]
        self.units = shown
        self.votes = [set(record.naming_it(u, s)) for u, s in shown]
        self.voters = [n for n, a in record.voices.items() if a.signed or not self.by_side]


def name_it(record: Record, answer: Answering, said: str) -> None:
    voters, speaking = len(answer.voters), len(record.voices)
    every = len(set.intersection(*answer.votes))
    fewest = min(map(len, answer.votes))
    apart = told_apart(record)
    if voters == 1:
        if speaking > 1:
            those = "these" if record.holding else f"the best {speaking}"
            assert said == f"the one of {those} that tells {apart} says so"
        else:
            assert said == ("it says so" if record.holding else "the best of them says so")
        assert every == 1
        return
    lead = "" if record.holding else f"of the best {voters}, "
    if voters < speaking:
        lead = f"{voters} of {'these' if record.holding else f'the best {speaking}'} tell {apart}: "
    assert said.startswith(lead)
    said = said[len(lead) :]
    it = "it" if len(answer.units) == 1 else "all of these"
    everyone = "both" if voters == 2 else f"all {voters}"
    if said == f"{everyone} name {it}":
        assert every == voters
    elif said == f"{every} of {voters} name it":
        assert len(answer.units) == 1
        assert voters / 2 < every < voters
    else:
        told = re.fullmatch(
            r"each of the (\d+) (\S+) is named by at least (\d+) of the (\d+), and (none|\d+) "
            r"(names?) them (both|all)",
            said,
        )
        assert told is not None, said
        assert int(told[1]) == len(answer.units) > 1
        assert told[2] == record.things
        assert (int(told[3]), int(told[4])) == (fewest, voters)
        assert int(told[5].replace("none", "0")) == every < voters
        assert (told[6] == "name") == (every > 1)
        assert (told[7] == "both") == (len(answer.units) == 2)


def told_apart(record: Record) -> str:
    read = record.first.target.read
    special = {"entropy": "less sure from more sure", "kl": "farther from nearer"}
    return special.get(read, "for from against")


def pairwise(every: dict[str, Attribution]) -> float | None:
    """The mean rank correlation of every two; None where there are no two."""
    if len(every) < 2:
        return None
    pairs = agreement(every).pairs
    return float(np.mean([each for _, _, each in pairs])) if pairs else None


def agree(record: Record, answer: Answering, said: str, mean: float | None) -> None:
    told = re.fullmatch(
        r"(.*?) (agree closely|agree in part|hardly agree|contradict each other) "
        r"\(rank correlation (−?\d\.\d\d)\)",
        said,
    )
    assert told is not None, said
    assert mean is not None
    assert abs(float(told[3].replace("−", "-")) - mean) <= 0.005001
    truth = {
        "agree closely": mean >= 0.7,
        "agree in part": 0.4 <= mean < 0.7,
        "hardly agree": -0.2 <= mean < 0.4,
        "contradict each other": mean < -0.2,
    }
    assert truth[told[2]]
    speaking = len(record.voices)
    # "they" are those who were just spoken of
    before = len(answer.voters) if answer.units else len(record.holding)
    allowed = (
        {f"the best {speaking}"}
        if not record.holding
        else {"both" if speaking == 2 else f"all {speaking}"}
    )
    if before == speaking:
        allowed.add("they")
    assert told[1] in allowed, (said, before, speaking)


def not_tested(r: Reader, m: re.Match[str]) -> None:
    assert r.record.one
    assert not r.record.tried
    (a,) = r.record.explaining.values()
    note = a.evidence.note if a.evidence is not None else ""
    assert (m["note"] or "") in note
    assert a.evidence is None or not a.evidence.ranks_nothing


def verdict_on_one(r: Reader, m: re.Match[str]) -> None:
    (method,) = r.record.tried
    e = r.record.tried[method].evidence
    assert e is not None
    assert m["verdict"] == e.verdict
    if m["method"]:
        assert m["method"] == method
    else:
        assert m["all"] == r.record.things
    if e.value is None:
        assert m["share"] is None
        return
    check_share(m["share"], e.value)
    p = e.p_worse if e.verdict == Verdict.WORSE else e.p
    assert (m["p"] is None) == (p is None)
    if m["p"]:
        check_p(m["p"], p)
        assert bool(m["worse"]) == (e.verdict == Verdict.WORSE)
    check_by_removal(e, m["mean"], m["by"])


def check_by_removal(e: Evidence, mean: str | None, by: str | None) -> None:
    """That a share is a mean over removals is said, and p is named after the one that gives it."""
    shares = [trial.beaten for trial in e.trials if trial.beaten is not None]
    apart = max(shares, default=0.0) - min(shares, default=0.0)
    assert apart > 0 if mean else apart < 0.01  # nearer ones may look the same
    if by is not None:
        is_worse = e.verdict == Verdict.WORSE
        p_values = {
            visible(trial.removal): trial.p_worse if is_worse else trial.p for trial in e.trials
        }
        assert p_values[by] == max(p for p in p_values.values() if p is not None)


def anchor(r: Reader, m: re.Match[str]) -> None:
    record = r.record
    ((_, a),) = [(n, a) for n, a in record.explaining.items() if (a.detail or {}).get("holds")][:1]
    detail = a.detail or {}
    # of several labels the highest one is kept, which the model need not say
    assert (m["highest"] is not None) == has_several(a)
    assert r.units(m["kept"]) == sorted(detail["anchor"]) != list(range(len(record.units)))
    if m["kept"]:
        assert (m["stay"] == "stays") == (len(detail["anchor"]) == 1)
    least = detail["precision"] if detail["exact"] else detail["interval"][0]
    removal = a.settings["removal"]
    how = {"mask": "masked", "delete": "deleted"}.get(removal, f"removed ({removal})")
    assert m["how"] == how
    assert (m["highest"] or m["label"]) == label(record, a.target.label)
    if m["least"] is None:
        assert least == 1
    else:
        assert int(m["least"]) <= 100 * least < int(m["least"]) + 1.0001


def has_several(a: Attribution) -> bool:
    return a.several_labels or sum(a.prediction.values()) > 1.001


def whole_anchor(r: Reader, m: re.Match[str]) -> None:
    """Where all units must stay there are no others, and nothing is said of them."""
    ((_, a),) = [(n, a) for n, a in r.record.explaining.items() if (a.detail or {}).get("holds")][
        :1
    ]
    assert sorted((a.detail or {})["anchor"]) == list(range(len(r.record.units)))
    assert m["label"] == label(r.record, a.target.label)
    assert (m["highest"] is not None) == has_several(a)
    assert r.record.one


def attention(r: Reader, m: re.Match[str]) -> None:
    record = r.record
    plain = [n for n in ("attention-mean", "attention-max", "rollout", "flow") if n in record.every]
    assert m["method"] == plain[0]
    a = record.every[plain[0]]
    units = r.units(m["units"])
    sizes = np.abs(a.scores)
    for unit in units:  # each is surely among the three largest
        assert (sizes >= sizes[unit]).sum() <= 3
        assert sizes[unit] > 0
    said = m["belief"]
    judged = verdict(a) if is_tried(a) else None
    shown = {unit for unit, _ in Answering(record).units} if record.carried else set()
    shared = len(shown & set(units))
    if said == "that was not tested":
        assert judged is None
    elif said == "that is worse than random: do not believe it":
        assert judged == Verdict.WORSE
    elif said == "that cannot be told from random rankings, so do not rely on it":
        assert judged == Verdict.SAME
    else:
        assert judged == Verdict.BETTER
        truth = {
            "that beats random rankings, which can happen by chance": not record.carried,
            "its ranking beats random ones": record.carried and not units,
            "that beats random rankings, and the answer does not name it": len(units) == 1
            and not shared,
            "that beats random rankings, and the answer names none of these": not shared
            and len(units) > 1,
            "that beats random rankings, and the answer names it too": shared == len(units) == 1,
            "that beats random rankings, and the answer names all of these too": shared
            == len(units)
            > 1,
        }
        told = re.fullmatch(
            r"that beats random rankings, and the answer names (\d) of these too", said
        )
        if told:
            assert 0 < int(told[1]) == shared < len(units)
        else:
            assert truth[said], said


FIRST = (
    r"(?:Both|All \d+|\d+ of the \d+) methods(?: tested)? put <name> first"
    r"(?:, though \d+ says? that .*?)?"
)
WHO = r"(?P<who>The one method|Both methods|All \d+ methods|\d+ of the \d+ methods) tested"
NONE = (
    r"(?P<none>The one method tested does not beat random rankings|(?:None|Neither) of the \d+ "
    r"methods tested beats random rankings by itself)"
)
REASONS: list[tuple[str, Check]] = [
    (r"Random scores are a control and explain nothing\.", a_control),
    (
        r"(?P<none>None|Neither) of the (?P<n>\d+) methods was tested against random rankings, so "
        r"nothing says which of them is right\.",
        untested,
    ),
    (r"Nothing could be tested: (?P<note>.*)\.", nothing_to_test),
    (
        r"(?P<lead>By <method>, |It would say that )?(?P<units><several>) (?P<verb>matters?) most "
        r"for (?P<what>.*)\.",
        matters,
    ),
    (
        r"(?P<lead>By <method>, |It would say that )?(?P<clauses><several> "
        rf"(?:{SPEAK}) .*)\.",
        named,
    ),
    (r"By <method>, no <things> stand out\.|No <things> stand out in it\.", nothing_by_one),
    (r"The (?P<who>[a-z0-9 ]+) (?P<lets>lets?) no <things> stand out\.", nothing_stands_out),
    (
        r"The (?P<who>[a-z0-9 ]+) contradict each other on (?P<unit><name>): (?P<one>\d+) "
        r"(?P<has>has|have) it on one side and (?P<other>\d+) on the other, so it is not named\.",
        contradict,
    ),
    (r"The (?P<who>[a-z0-9 ]+) do not name the same <things>\.", different),
    (
        rf"(?:No <things> can be named as the reason|(?P<first>{FIRST}); that it is the reason is "
        r"not shown): (?P<why>.*)",
        none_named,
    ),
    (
        r"(?P<n>\d+) <things> have only (?P<orders>\d+) orders, too few to test a ranking\.",
        too_short,
    ),
    (r"One unit cannot be ranked, so nothing could be tested\.", one_unit),
    (
        rf"(?:{NONE}|{WHO} (?P<beat>beats?) random rankings (?P<self>by itself|by themselves), "
        r"which chance can give)\.(?P<best>(?: The test could have seen more: the best rankings "
        r"would have <p>\.| Even the best rankings would have <p>\.)?)",
        alone,
    ),
    (
        rf"(?:{NONE}, but together they do \((?P<p><p>)\)|{WHO} (?P<beat>beats?) random rankings)"
        rf"(?P<rest>(?:[;:] .*?)?)\.(?: (?P<first>{FIRST})\.)?",
        carried,
    ),
    (
        r"It was not tested against random rankings(?: \((?P<note>.*)\))?, so nothing says that "
        r"this is right\.",
        not_tested,
    ),
    (
        r"(?:The ranking by (?P<method><method>)|As a ranking of all (?P<all><things>) it) is "
        r"(?P<verdict>better than random|not separable from random|worse than random)"
        r"(?:: it beats (?P<share><share>) of random rankings(?P<mean> on average)?"
        r"(?:, (?P<p><p>)(?P<worse> of worse)?(?: by (?P<by>\S+))?)?"
        r")?\.",
        verdict_on_one,
    ),
    (
        r"(?:If (?P<kept><several>) (?P<stay>stays?), )?(?:[Ww]hile|[Ww]hichever) (?:other )?"
        r"<things> are (?P<how>masked|deleted|removed \(.*?\))(?: at random)?, (?:the model says "
        r"(?P<label>.*?)|(?P<highest>.*?) stays the highest label)"
        r"(?: in at least (?P<least>\d+) % of trials)?\.",
        anchor,
    ),
    (
        r"Nothing less than the whole text was found to keep (?P<label>.*?)"
        r"(?P<highest> the highest label)?\.",
        whole_anchor,
    ),
    (
        r"Attention alone \((?P<method><method>)\) would have (?:named (?P<units><several>)|"
        r"singled out nothing); (?P<belief>.*)\.",
        attention,
    ),
]


# ---------------------------------------------------------------------- cautions


def control_held(r: Reader, m: re.Match[str]) -> None:
    assert any(
        verdict(a) == Verdict.BETTER for a in r.record.every.values() if a.method == "random"
    )


def coarse(r: Reader, m: re.Match[str]) -> None:
    assert int(m["n"]) == len(r.record.units)
    assert int(m["orders"]) == math.factorial(len(r.record.units))


def contest(r: Reader, m: re.Match[str]) -> None:
    unit = r.unit(m["unit"])
    one, other = sides_in_words(r)
    words = re.fullmatch(rf"{re.escape(one)} by (.*), (.*?) by (.*)", m["how"])
    assert words is not None, m["how"]
    again = {"speaks against it": "against it"}.get(other, other)
    assert words[2] == again
    few(words[1], r.record.naming_it(unit, 1))
    few(words[3], r.record.naming_it(unit, -1))
    assert unit in r.record.disputed()


def few(said: str, those: Sequence[str]) -> None:
    """Names in a row, of which the last may only be counted."""
    shown, _, more = said.partition(" and ")
    listed = shown.split(", ")
    assert listed == list(those)[: len(listed)]
    left = len(those) - len(listed)
    assert more == (f"{left} more" if left else "")


def rank_differently(r: Reader, m: re.Match[str]) -> None:
    mean = pairwise(r.record.holding)
    assert mean is not None
    assert mean < 0.4


def removal_decides(r: Reader, m: re.Match[str]) -> None:
    groups: dict[tuple[str, str], list[str]] = {}
    for name, a in r.record.tried.items():
        assert a.evidence is not None
        good = [t.removal for t in a.evidence.trials if t.verdict == Verdict.BETTER]
        bad = [t.removal for t in a.evidence.trials if t.verdict != Verdict.BETTER]
        if good and bad:
            groups.setdefault((in_a_row(good), in_a_row(bad)), []).append(name)
    told = re.findall(r"(\S.*?) \(better than random by (.*?), not by (.*?)\)", m["groups"])
    assert len(told) == len(groups) > 0
    for (methods, good, bad), (key, those) in zip(told, groups.items(), strict=True):
        assert (good, bad) == key
        few(methods.removeprefix("and for "), those)


def in_a_row(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def fewer_rankings(r: Reader, m: re.Match[str]) -> None:
    counts = [a.evidence.rankings for a in r.record.tried.values() if a.evidence]
    assert int(m["n"]) in counts
    assert int(m["n"]) < 100


CAUTIONS: list[tuple[str, Check]] = [
    (r"even random scores were called better than random here\.", control_held),
    (r"(?P<n>\d+) <things> have only (?P<orders>\d+) orders, so the test is coarse\.", coarse),
    (r"methods contradict each other on (?P<unit><name>): it (?P<how>.*)\.", contest),
    (r"the methods that beat random rankings rank the <things> differently\.", rank_differently),
    (r"the way of removing <things> decides for (?P<groups>.*)\.", removal_decides),
    (
        r"there were (?P<n>\d+) random rankings, not 100 as usual: shares and p-values are "
        r"rougher\.",
        fewer_rankings,
    ),
]


# ---------------------------------------------------------------------- the tests


def record_of(made: Attribution | Comparison) -> Record:
    if isinstance(made, Attribution):
        return Record({made.method: made})
    return Record(dict(made.attributions))


def check_answer(made: Attribution | Comparison) -> None:
    """Every sentence and caution of the answer, and the few words of an index."""
    record = record_of(made)
    reader = Reader(record)
    answer = made.answer
    first, *others = answer_sentences(answer)
    reader.read(first, MODEL)
    for sentence in others:
        reader.read(sentence, REASONS)
    for caution in answer_cautions(answer):
        reader.read(caution, CAUTIONS)
    check_in_short(reader, answer)


def check_in_short(r: Reader, answer: Answer) -> None:
    record, said = r.record, in_short(answer)
    if said == "a control":
        assert not record.explaining
        return
    if said == "not tested":
        assert not record.tried
        return
    if not record.carried:
        outcome, _, first = said.partition("; ")
        could_see = record.together is not None and is_within(record.together.smallest_p)
        truth = {
            "cannot be tested": not could_see,
            "nothing beats random": not record.holding,
            "no more than chance": bool(record.holding),
        }
        assert truth[outcome]
        found = most_put_first(record)
        assert bool(first) == bool(found)
        if first:
            told = re.fullmatch(r"(\d+) of (\d+) put “(.*)” first", first, re.DOTALL)
            assert told is not None, first
            assert int(told[2]) == len(record.tried)
            shown = {visible(record.units[u]): len(those) for u, those in found.items()}
            assert shown[told[3]] == int(told[1])
        return
    shown = Answering(record)
    if not shown.units:
        truth = {
            f"no {record.things} stand out": not any(names(a) for a in record.voices.values()),
            "they contradict each other": bool(record.disputed()),
            "they name different ones": len(record.voices) > 1 and not record.disputed(),
        }
        assert truth[said], said
        return
    words = {"entropy": ("less sure", "more sure"), "kl": ("farther", "nearer")}
    one, other = words.get(record.first.target.read, ("for", "against"))
    parts = []
    for side, word in ((1, one), (-1, other), (0, "matter")):
        those = [visible(record.units[u]) for u, s in shown.units if s == side]
        if those:
            parts.append(f"{word}: {', '.join(those)}")
    assert said == "; ".join(parts)


def hunt(times: int, seed: int) -> int:
    """So many results by lot, all that is said of them read back."""
    rng = np.random.default_rng(seed)
    for number in range(times):
        made = result(rng)
        try:
            check_answer(made)
        except AssertionError as wrong:
            said = "\n".join([*answer_sentences(made.answer), *answer_cautions(made.answer)])
            raise AssertionError(f"result {number} of seed {seed}: {wrong}\n{said}") from wrong
    return times


def test_every_sentence_of_an_answer_is_true_of_its_record():
    assert hunt(200, seed=1) == 200


@pytest.mark.slow
def test_every_sentence_of_many_answers_is_true_of_its_record():
    assert hunt(3_000, seed=2) == 3_000
