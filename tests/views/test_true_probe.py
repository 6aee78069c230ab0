"""What is said of two texts, and of two lists of words, is read back, and is true of numbers."""

from __future__ import annotations

import re
from math import isnan

import numpy as np
import pytest

from tests.occasions.probe import probe, template_probe
from tests.views.parsing import Reader, half_a_digit, is_percent
from whence.core.probe import Contrast, Probe, TemplateProbe
from whence.views.probe import control_rows, said_rows
from whence.views.templates import by_size, rows

CHANGE = r"[+-][\d.]+(?:e-\d+)?"
LABEL = r"(?:'[^']*'|[^ ]+)"
SAID = r"(?:[<>] )?[\d.]+ %|-?[\d.]+"
ROUNDING = 1e-4  # points, or of a number of its own: what is less may be shown as nothing


# ---------------------------------------------------------------------- numbers


def is_change(p: Probe | TemplateProbe, shown: str, change: float) -> bool:
    """A change with its unit; it is nothing only where it is no more than rounding."""
    number = shown.removesuffix(" points")
    scaled = 100 * change if p.reading.is_probability else change
    if (number != shown) != p.reading.is_probability:
        return False
    if not float(number):
        return abs(scaled) < ROUNDING and number[0] == "+"
    return abs(float(number) - scaled) <= half_a_digit(number) * 1.0001 + 1e-12


def is_points(shown: str, change: float) -> bool:
    number = shown.removesuffix("s").removesuffix(" point")
    if number in ("> 99.99", "> 100"):
        return change > 0.9999
    is_one = (number == "1") == shown.endswith("point")
    close = abs(float(number) - 100 * change) <= half_a_digit(number) * 1.0001 + 1e-9
    return is_one and close and (float(number) > 0) == (change > 0)


def is_named(shown: str, name: str) -> bool:
    return shown == (name if name.strip() == name else f"“{name.strip()}”")


def is_said(p: Probe, shown: str, value: float) -> bool:
    """A probability, or the number of a model with one output."""
    has_labels = all(len(said) > 1 for said in p.predictions)
    if p.reading.is_probability or has_labels:
        return is_percent(shown, value)
    return shown == f"{value:.3f}"


def alike(p: Probe) -> bool:
    return not any(np.any(difference) for difference in p.difference.values())


def same_tokens(p: Probe) -> bool:
    return list(p.first.passage.ids) == list(p.second.passage.ids)


def sizes(p: Probe) -> np.ndarray:
    return np.concatenate([np.abs(difference).ravel() for difference in p.difference.values()])


# ---------------------------------------------------------------------- of two texts


def reads_alike(p: Probe) -> bool:
    return alike(p) and same_tokens(p) and len(set(p.values)) < 2


def says_to_both(p: Probe, label, one, two) -> bool:
    first, second = ((max(s, key=s.get), max(s.values())) for s in p.predictions)
    return (
        not p.several_labels
        and first[0] == second[0]
        and is_named(label, first[0])
        and is_said(p, one, first[1])
        and is_said(p, two, second[1])
    )


def says(p: Probe, first, second) -> bool:
    return all(
        is_saying(p, shown, said)
        for shown, said in zip((first, second), p.predictions, strict=True)
    )


def is_saying(p: Probe, shown: str, said: dict[str, float]) -> bool:
    highest = max(said, key=lambda name: said[name])
    if none := re.fullmatch(rf"none of its labels \(highest is (.+), ({SAID})\)", shown):
        is_right = is_named(none[1], highest) and is_percent(none[2], said[highest])
        return is_right and p.several_labels and max(said.values()) < 0.5
    each = [re.fullmatch(rf"(.+) \(({SAID})\)", one).groups() for one in shown.split(" and ")]
    wanted = [name for name, chance in said.items() if chance >= 0.5]
    if not p.several_labels:
        wanted = [highest]
    return len(each) == len(wanted) and all(
        is_named(label, name) and is_said(p, number, said[name])
        for (label, number), name in zip(each, wanted, strict=True)
    )


def value_changes(p: Probe, what, change, more=None, control=None, other=None) -> bool:
    own = p.values[1] - p.values[0]
    name = p.reading.of
    if p.reading.is_probability:
        name = "probability of " + (name if name.strip() == name else f"“{name.strip()}”")
    if what != name or not is_change(p, change, own):
        return False
    if control is None:
        return not p.controls
    most = max(p.controls, key=lambda one: abs(one.value))
    is_more = abs(own) > abs(most.value)
    is_seen = change[1:] != other[1:]
    return (
        is_change(p, other, most.value)
        and control == f"{most.first} → {most.second}"
        and (more == "more than") == (is_more and is_seen)
    )


def attention(p: Probe, change=None, more=None, control=None, other=None) -> bool:
    largest = sizes(p).max()
    if (change is None) != alike(p) or (change is not None and not is_points(change, largest)):
        return False
    if control is None:
        return not p.controls
    most = max(p.controls, key=lambda one: one.largest)
    # what looks the same to a reader is not called more
    looks_more = largest > most.largest and change != other
    return (
        control == f"{most.first} → {most.second}"
        and is_points(other, most.largest)
        and (more == "more than") == looks_more
    )


LARGEST = r"The largest change of a head's attention is (?P<change>[<>]? ?[\d.e-]+ points?)\."
BESIDE = (
    r"That is (?P<more>more than|no more than) neutral words do \((?P<control>\w+ → \w+): "
    r"(?P<other>{})\)\."
)
NO_CONTROL = r"There is no control, so nothing says what neutral words do here\."
POINTS = r"[<>]? ?[\d.e-]+ points?"
OF_TWO = Reader(
    {
        r"The model reads both texts alike\.": reads_alike,
        rf"The model says (?P<label>{LABEL}) to both: (?P<one>{SAID}), then "
        rf"(?P<two>{SAID})\.": says_to_both,
        r"The model says (?P<first>.+) to the first, and (?P<second>.+) to the second\.": says,
        rf"The (?P<what>[^.]+) changes by (?P<change>{CHANGE}(?: points)?)\."
        rf"(?: {BESIDE.format(CHANGE + '(?: points)?')})?": value_changes,
        rf"(?:{LARGEST}|No weight of attention differs\.) "
        rf"(?:{BESIDE.format(POINTS)}|{NO_CONTROL})": attention,
        r"One pair of sentences says little: templates give an interval over many\.": lambda p: (
            not reads_alike(p)
        ),
    }
)


# ---------------------------------------------------------------------- what was aligned


def aligned(p: Probe, count, word, apart=None) -> bool:
    labels = [label for label, changed in zip(p.labels, p.changed, strict=True) if changed]
    return (
        int(count) == len(p.places)
        and (word == "place") == (len(p.places) == 1)
        and (apart or "") == ", ".join(labels)
        and all(" → " in label for label in labels)
    )


def compared(p: Probe, kinds, others) -> bool:
    return kinds.split(", ") == list(p.difference) and others.split(", ") == [
        kind for kind in p.first.weights if kind not in p.difference
    ]


def why_same(p: Probe, unknown=None) -> bool:
    has_other_words = any(p.changed) or bool(p.left_out)
    return alike(p) and same_tokens(p) and (unknown is not None) == has_other_words


ABOUT = Reader(
    {
        r"(?P<count>\d+) (?P<word>places?) aligned(?:; they differ in: (?P<apart>.+))?": aligned,
        r"without a counterpart: (?P<words>.+)": lambda p, words: words == ", ".join(p.left_out),
        r"compared by (?P<kinds>[\w, ]+) attention; not by (?P<others>[\w, ]+)": compared,
        r"no weight differs, though the model reads other tokens from the second text": lambda p: (
            alike(p) and not same_tokens(p)
        ),
        r"no weight differs: the model reads the same tokens from both texts"
        r"(?P<unknown> \(their words may be unknown to its tokenizer\))?": why_same,
    }
)


def check_two(p: Probe) -> None:
    for sentence in p.answer():
        OF_TWO.read(sentence, p)
    for line in p.about():
        ABOUT.read(line, p)
    assert any("without a counterpart" in line for line in p.about()) == bool(p.left_out)
    if reads_alike(p):
        return
    assert sum(line.startswith("The model says") for line in p.answer()) == bool(p.predictions)
    for label, one, two in said_rows(p) if p.predictions else []:
        for shown, said in zip((one, two), p.predictions, strict=True):
            own = label.strip("“”")
            known = [v for name, v in said.items() if own in (name.strip(), repr(name)[1:-1])]
            is_share = p.reading.is_probability
            assert any(is_percent(shown, v) if is_share else shown == f"{v:.3f}" for v in known)
    for row, control in zip(control_rows(p)[1:], p.controls, strict=True):
        assert row[0] == f"control: {control.first} → {control.second}"
        assert row[1] == "–" if p.reading is None else is_change(p, row[1], control.value)
        assert row[2] == f"{control.largest:.3f}"


# ---------------------------------------------------------------------- over templates


def over(
    t: TemplateProbe, count, word, what, change, first, second, up, down, same, low=None, high=None
):
    own = t.contrast.differences
    name = t.reading.of
    if t.reading.is_probability:
        name = f"probability of {name}"
    unit = " points" if t.reading.is_probability else ""
    has_interval = len(own) >= 5 and not isnan(t.contrast.low)
    return (
        int(count) == len(own)
        and (word == "template") == (len(own) == 1)
        and what == name
        and is_change(t, change, own.mean())
        and (first, second) == (t.templates.first, t.templates.second)
        and (int(up), int(down)) == ((own > 0).sum(), (own < 0).sum())
        and int(up) + int(down) + int(same) == len(own)
        and (low is not None) == has_interval
        and (low is None or is_change(t, f"{low}{unit}", t.contrast.low))
        and (low is None or is_change(t, f"{high}{unit}", t.contrast.high))
    )


def of_one(t: TemplateProbe, what, change, first, second):
    """Of one template there is no mean, and nothing rises in some of them."""
    own = t.contrast.differences
    name = f"probability of {t.reading.of}" if t.reading.is_probability else t.reading.of
    return (
        len(own) == 1
        and what == name
        and is_change(t, change, own[0])
        and (first, second) == (t.templates.first, t.templates.second)
    )


def reach(contrast: Contrast) -> float:
    if isnan(contrast.low):
        return abs(contrast.differences.mean())
    return max(abs(contrast.low), abs(contrast.high))


def conclusion(t: TemplateProbe) -> str:
    """The one that is due: anew, from the intervals alone."""
    own, count = t.contrast, len(t.contrast.differences)
    if count == 1:
        return "One template says nothing"
    if count < 5:
        return "That is too few"
    if isnan(own.low):
        return "All of them change it alike"
    scaled = own.differences.mean() * (100 if t.reading.is_probability else 1)
    if own.low <= 0 <= own.high or abs(scaled) < ROUNDING:
        return "With these templates this cannot be told"
    if not t.controls:
        return "Nothing says what neutral words do here"
    if abs(own.differences.mean()) > max(map(reach, t.controls)):
        return "This is more than neutral words do"
    return "As far as these templates tell"


def neutral(t: TemplateProbe, up_to, change, name, mean=None) -> bool:
    most = max(abs(control.differences.mean()) for control in t.controls)
    hits = [c for c in t.controls if abs(c.differences.mean()) == most and c.name == name]
    return (
        bool(hits)
        and is_change(t, change, hits[0].differences.mean())
        and (up_to == "by up to") == (len(t.controls) > 1)
        and (mean is not None) == (len(t.contrast.differences) > 1)
    )


def repeated(t: TemplateProbe, count, word) -> bool:
    return int(count) == t.templates.repeated > 0 and (word == "template") == (int(count) == 1)


OVER = Reader(
    {
        rf"In the only template, the (?P<what>.+) changes by (?P<change>{CHANGE}(?: points)?) from "
        r"(?P<first>.+?) to (?P<second>.+?)\.": of_one,
        rf"Over (?P<count>\d+) (?P<word>templates?), the (?P<what>.+) changes by "
        rf"(?P<change>{CHANGE}(?: points)?) on average from (?P<first>.+?) to (?P<second>.+?)"
        rf"(?: \(95 % interval (?P<low>{CHANGE}) to (?P<high>{CHANGE})(?: points)?\))?; it "
        rf"rises in "
        r"(?P<up>\d+), falls in (?P<down>\d+) and stays in (?P<same>\d+)\.": over,
        r"(?P<said>One template says nothing|That is too few|All of them change it alike|With "
        r"these "
        r"templates this cannot be told|Nothing says what neutral words do here|This is more than "
        r"neutral words do|As far as these templates "
        r"tell)(?P<rest>[^.]*)\.": lambda t, said, rest: (
            said == conclusion(t)
            and ("no bias" in rest) == (said[0] in "NA" and "alike" not in said)
        ),
        rf"Neutral words change it (?P<up_to>by up to|by) (?P<change>{CHANGE}(?: points)?)"
        r"(?P<mean> on average)? \((?P<name>\w+ → \w+)\)\.": neutral,
        r"(?P<count>\d+) (?P<word>templates?) that stood there before: not counted "
        r"again\.": repeated,
    }
)


def check_over(t: TemplateProbe) -> None:
    said = t.answer()
    for sentence in said:
        OVER.read(sentence, t)
    assert sum(s.startswith("Neutral words") for s in said) == bool(t.controls)
    assert any("not counted again" in s for s in said) == bool(t.templates.repeated)
    mean, interval, up, down = rows(t)[0][1:]
    assert is_change(t, mean, t.contrast.differences.mean())
    assert (interval == "–") == isnan(t.contrast.low)
    assert (int(up), int(down)) == (t.contrast.up, t.contrast.down)
    by_change = sorted(t.contrast.differences.tolist(), key=lambda change: -abs(change))
    for (_, shown), change in zip(by_size(t)[:40], by_change[:40], strict=True):
        assert is_change(t, shown, change)


def hunt(results: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(results):
        check_two(probe(rng))
        check_over(template_probe(rng))


def test_what_is_said_of_two_texts_and_of_templates_is_true_of_their_numbers():
    hunt(300, 0)


@pytest.mark.slow
def test_what_is_said_of_many_texts_and_templates_is_true_of_their_numbers():
    hunt(8000, 1)
    assert OF_TWO.never_met == []
    assert ABOUT.never_met == []
    assert OVER.never_met == []
