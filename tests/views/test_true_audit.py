"""What is said of an audit is read back, and held against its effects."""

from __future__ import annotations

import re
from collections import Counter
from math import log

import numpy as np
import pytest

from tests.occasions import audit as occasion
from tests.views.reading_back import COUNT, is_number, is_percent, listed, plain, read, shown, whole
from whence.core.audit import Effect, Place
from whence.core.audited import Audit
from whence.views.audit import audit_sentences, audit_text, count_sentences

BAR, HALF, READS, ENOUGH, LN_2 = 0.05, log(2) / 2, 0.6, 40, log(2)
YES, SEVERAL = "may be read as an explanation", "may be read as one explanation of several"
NO, OPEN = "may not be read as an explanation", "is neither cleared nor ruled out"
EFFECT = r"(?:-?[\d.]+ (?:\[-?[\d.]+, -?[\d.]+\]|\(\d+ texts?\)))"


# ---------------------------------------------------------------------- the verdicts, made anew


def found(audit: Audit, test: str, quantity: str, place: Place, reading: str = "") -> Effect | None:
    for one in audit.effects:
        if (one.test, one.quantity, one.place, one.reading) == (test, quantity, place, reading):
            return one
    return None


def above(one: Effect | None, bar: float) -> bool:
    return one is not None and one.interval is not None and one.interval[0] > bar


def below(one: Effect | None, bar: float, least: int = 0) -> bool:
    return (
        one is not None and one.interval is not None and one.interval[1] < bar
    ) and one.texts >= least


def verdict_on(audit: Audit, place: Place) -> tuple[str, set[str]]:
    """As the legend of the table has it; with the beginnings of reasons that would be true."""
    shuffled = found(audit, "permutation", "change", place)
    even = found(audit, "uniform", "change", place)
    layer = Place(place.layer, None, place.kind)
    near = found(audit, "adversary", "jsd", layer)
    at_least = found(audit, "adversary", "jsd-at-least", layer) or near
    if audit.is_number:
        return OPEN, {"the output is a number"}
    if below(shuffled, BAR, ENOUGH):
        return NO, {"the output hardly changes when the weights are shuffled"}
    if below(even, BAR, ENOUGH):
        return NO, {"looking at everything alike"}
    if above(shuffled, BAR) and above(even, BAR):
        if above(at_least, HALF):
            return SEVERAL, {"the output hangs on the weights, and a very different"}
        if below(near or at_least, HALF) and near is not None:
            return YES, {"the output hangs on the weights, and no very different"}
    reasons = set()
    if below(shuffled, BAR) or below(even, BAR):
        reasons.add("the texts are too few")
    else:
        absent = {"shuffling was": shuffled, "making the weights": even, "no other": at_least}
        reasons |= {why for why, effect in absent.items() if effect is None}
        reasons |= {"the texts do not tell"} if not reasons else set()
    return OPEN, reasons


def places(audit: Audit) -> list[Place]:
    tests = ("permutation", "uniform", "adversary")
    return list(dict.fromkeys(e.place for e in audit.effects if e.test in tests))


def layers(audit: Audit) -> list[Place]:
    return [place for place in places(audit) if place.layer is not None and place.head is None]


def heads(audit: Audit) -> list[Place]:
    return [place for place in places(audit) if place.head is not None]


def readings(audit: Audit) -> dict[str, str]:
    """Each with what its beaten share says: yes, no, or nothing."""
    said = {}
    for one in audit.effects:
        if one.test == "readings":
            is_no = below(one, READS, ENOUGH)
            said[shown(one.reading)] = "yes" if above(one, READS) else "no" if is_no else "open"
    return said


def is_effect(text: str, one: Effect, factor: float = 1.0, share: bool = False) -> bool:
    """A mean with its interval, or with its number of texts where that is none."""
    numbers = re.findall(r"(?:[<>] )?-?[\d.]+(?:%)?", text.replace("(", "").replace(")", ""))
    values = [one.mean, *(one.interval or ())]
    if one.interval is None:
        assert int(numbers.pop().rstrip("%")) == one.texts
    same = is_percent if share else is_number
    return len(numbers) == len(values) and all(
        same(number, value * factor) for number, value in zip(numbers, values, strict=True)
    )


# ---------------------------------------------------------------------- the sentences


def check(audit: Audit) -> list[str]:
    by_name = {f"{place.kind} {place.layer}".strip(): place for place in layers(audit)}
    named: list[str] = []

    def done(model, texts, failed):
        return (
            model == shown(audit.model)
            and whole(texts) == audit.texts
            and whole(failed or "0") == audit.failed
        )

    def nothing(model, failed):
        return audit.texts == 0 and whole(failed or "0") == audit.failed

    def of_layers(said, verdict, reason):
        names = []
        for part in listed(said):
            ends = re.fullmatch(r"(?:(\w+) )?(\d+) to (\d+)", part)
            if ends is None:
                names.append(part)
                continue
            first, last = int(ends[2]), int(ends[3])
            assert last - first >= 2
            names += [f"{ends[1] or ''} {n}".strip() for n in range(first, last + 1)]
        for name in names:
            right, reasons = verdict_on(audit, by_name[name])
            assert verdict == right
            assert any(reason.startswith(why) for why in reasons)
        named.extend(names)

    def of_readings(said):
        told: dict[str, str] = {}
        said = said.removeprefix("one was tested: ")
        if said.startswith("do the texts tell"):
            said = said.removeprefix("do the texts tell whether it may be read: ")
            assert len(listed(said)) > 1
            return dict.fromkeys(listed(said), "open") == readings(audit)
        assert set(readings(audit).values()) != {"open"} or len(readings(audit)) == 1
        for part in said.split("; "):
            if part.startswith("of "):
                of, kind = re.fullmatch(r"of (.+) the texts do not tell", part)[1], "open"
            elif part.endswith(" may be read"):
                of, kind = part.removesuffix(" may be read"), "yes"
            else:
                of, kind = part.removesuffix(" may not"), "no"
            told |= dict.fromkeys(listed(of), kind)
        return told == readings(audit)

    def of_all(verdict, reason):
        right, reasons = verdict_on(audit, Place())
        return verdict == right and any(reason.startswith(why) for why in reasons)

    said_of_heads = {
        "may be read": YES,
        "may be read as one explanation of several": SEVERAL,
        "may not be read": NO,
        "is undecided": OPEN,
        "are undecided": OPEN,
    }

    def of_heads(every, groups):
        told = {}
        for group in listed(groups):
            count, said = group.split(" ", 1)
            told[said_of_heads[said]] = int(count)
            assert (said == "is undecided") <= (count == "1") <= (said != "are undecided")
        assert len(told) > 1
        return int(every) == len(heads(audit)) and told == dict(
            Counter(verdict_on(audit, place)[0] for place in heads(audit))
        )

    def of_all_heads(every, said):
        assert (every == "Both") == (len(heads(audit)) == 2)
        assert every in ("Both", f"All {len(heads(audit))}")
        return {said_of_heads[said]} == {verdict_on(audit, place)[0] for place in heads(audit)}

    def worth(helping, every, are, tolerance, spared, alone, hurt):
        one = audit.heads
        return (
            one is not None
            and (int(helping), int(every), int(spared)) == (len(one.help), one.of, len(one.spared))
            and float(tolerance) == one.tolerance
            and (are == "is") == (len(one.help) == 1)
            and (alone == "alone") == (len(one.spared) == 1)
            and places_in(hurt or "") == set(one.hurt)
            and ("each alone" in (hurt or "")) == (len(one.hurt) > 1)
        )

    def pruned(removed, every, texts, said, whole_loss, random, few):
        one = audit.pruning
        place = one.steps.index(int(removed))
        told = re.findall(
            r"([\d.]+) where they go (.+?first)( \((\w+) than at random beyond doubt\))?"
            r"(?: and |$)",
            said,
        )
        assert len(told) == len(one.orders)
        for (loss, name, surely, which), order in zip(told, one.orders, strict=True):
            assert is_number(loss, order.curve.loss[place].mean)
            assert name == order.name
            assert bool(surely) == order.apart[place]
            assert not surely or (which == "better") == (order.below_random[place].mean > 0)
        return (
            place == len(one.steps) // 2
            and int(every) == one.steps[-1]
            and int(texts) == one.texts
            and is_number(whole_loss, one.control.loss[0].mean)
            and is_number(random, one.control.loss[place].mean)
            and bool(few) == (one.texts < 5)
        )

    def yardstick(highest, names, tau, alone, alone_tau, gradients, random):
        taus = {
            shown(e.reading): e
            for e in audit.effects
            if (e.test, e.quantity) == ("correlation", "tau-loo")
            and shown(e.reading) in readings(audit)
        }
        best = max(e.mean for e in taus.values())
        leaders = {name for name, e in taus.items() if e.mean == best}
        of_gradients = found(audit, "correlation", "tau-gradient-loo", Place())
        said = listed(names or alone)
        first = taus[said[0]]
        return (
            set(said) == leaders
            and bool(highest) == (len(leaders) < len(taus))
            and is_effect(tau or alone_tau, first)
            and is_effect(gradients, of_gradients)
            and (random is None) == (first.control is None)
            and (random is None or is_number(random, first.control))
        )

    def trained(test, answer):
        return any(
            (shown(each.test), shown(each.says.split("\n")[0])) == (test, answer)
            for each in audit.retrained
        )

    def between_seeds(mean, low, high, away):
        (numbers,) = [e.numbers for e in audit.retrained if e.test == "frozen attention"]
        apart = numbers["between_seeds"]
        return (
            is_number(mean, apart["mean"])
            and is_number(low, apart["low"])
            and is_number(high, apart["high"])
            and is_effect(away, found(audit, "adversary", "jsd", Place()))
        )

    number = r"-?[\d.]+"
    may = "|".join(map(re.escape, (YES, SEVERAL, NO, OPEN)))
    names = read(
        audit_sentences(audit),
        [
            (
                rf"Is attention an explanation in (.+)\? Tested on ({COUNT}) texts?"
                rf"(?: \(({COUNT}) more failed\))?\.",
                done,
            ),
            (
                r"Is attention an explanation in (.+)\? Nothing was tested"
                rf"(?:: ({COUNT}) texts? failed)?\.",
                nothing,
            ),
            (rf"In layers? (.+?) attention ({may}): (.+)\.", of_layers),
            (
                r"Of (?:none of )?(?:the )?ways to sum attention up for each word,? (.+)\.",
                of_readings,
            ),
            (rf"Of all layers together: it ({may}), as (.+)\.", of_all),
            (
                r"Of (\d+) heads, (.+)\.",
                of_heads,
            ),
            (r"(Both|All \d+) heads (.+)\.", of_all_heads),
            (
                rf"To the task, (\d+) of (\d+) heads? (is|are) worth more than ({number}) nats of "
                r"loss beyond doubt, and (\d+) could go, (alone|each alone), at less"
                r"(; without .+, (?:each )?alone, it does better)?\.",
                worth,
            ),
            (
                r"Without (\d+) of (\d+) heads the loss on (\d+) held-out texts? is (.+)\. It is "
                rf"({number}) with all heads, and ({number}) where they go in random orders\."
                r"( So few texts have no intervals, and tell next to nothing\.)?",
                pruned,
            ),
            (
                r"Of Kendall's τ with what leaving each word out does, (?:(the highest) is that of "
                rf"(.+), ({EFFECT})|that of (.+) is ({EFFECT})); that of gradients is ({EFFECT})"
                rf"(?:, and that of random weights ({number}))?\.",
                yardstick,
            ),
            (r"Trained anew \((.+?)\): (.+)", trained),
            (
                rf"Two copies that differ in their seed alone attend ({number}) nats apart "
                rf"\[({number}), ({number})\], on average over held-out texts; the attention that "
                rf"was searched for in all layers, with the same output, is ({EFFECT}) away\. An "
                r"adversary that is no further away than another seed proves little\.",
                between_seeds,
            ),
        ],
    )
    assert sorted(named) == sorted(by_name), "each layer is in one sentence"
    assert ("of_readings" in names) == bool(readings(audit))
    assert ("of_heads" in names or "of_all_heads" in names) == (len(heads(audit)) > 1)
    assert ("worth" in names) == (audit.heads is not None)
    assert names.count("trained") == len(audit.retrained)
    check_counts(audit)
    return names


def check_counts(audit: Audit) -> None:
    texts: dict[str, list[int]] = {}
    for one in audit.effects:
        texts.setdefault(one.test, []).append(one.texts)
    few = {test: (min(of), max(of)) for test, of in texts.items() if min(of) < audit.texts}
    said = count_sentences(audit)
    assert len(said) == bool(few)
    for line in said:
        told = re.fullmatch(rf"Not every test rests on all ({COUNT}) texts: (.+)\.", line)
        assert told is not None
        assert whole(told[1]) == audit.texts
        by_test = {}
        for part in listed(told[2]):
            test, low, high = re.fullmatch(rf"(\w+) on ({COUNT})(?: to ({COUNT}))?", part).groups()
            by_test[test] = whole(low), whole(high or low)
        assert by_test == few


def places_in(said: str) -> set[Place]:
    """The heads that a sentence names."""
    named = re.findall(r"head (\d+) of (?:(\w+) )?layer (\d+)", said)
    return {Place(int(layer), int(head), kind) for head, kind, layer in named}


# ---------------------------------------------------------------------- the tables of the page


def rows_of(page: str, label: str) -> list[list[str]]:
    grid = re.search(rf'aria-label="{label}".*?</table>', page, re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", grid[0], re.S) if grid else []
    return [[plain(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.S)] for row in rows]


def check_page(audit: Audit) -> None:
    page = audit.to_html()
    rows = rows_of(page, "layers")
    shown_places = [*layers(audit), *[place for place in places(audit) if place == Place()]]
    assert len(rows) == (len(shown_places) + 1 if shown_places else 0)
    quantities = {
        "shuffled": ("permutation", "change"),
        "even": ("uniform", "change"),
        "another": ("adversary", "jsd-at-least"),
    }
    short = {"may be read": YES, "one of several": SEVERAL, "may not be read": NO}
    for row in rows[1:]:
        told = dict(zip(rows[0], row, strict=True))
        (place,) = [one for one in shown_places if str(one) == told["attention of"]]
        assert short.get(told["verdict"], OPEN) == verdict_on(audit, place)[0]
        for name, (test, quantity) in quantities.items():
            one = found(audit, test, quantity, place)
            if name == "another":
                one = one or found(audit, test, "jsd", place)
            said = told.get(name, "–")
            assert (said == "–") == (one is None)
            if one is not None:
                factor = 1 / LN_2 if name == "another" else 1.0
                assert is_effect(said, one, factor, share=name == "another"), (said, one)
    for row in rows_of(page, "readings")[1:]:
        reading = {shown(e.reading): e.reading for e in audit.effects}[row[0]]
        right = {"may be read": "yes", "may not be read": "no", "undecided": "open"}[row[1]]
        assert right == readings(audit)[row[0]]
        assert is_effect(row[2], found(audit, "readings", "beaten", Place(), reading), share=True)
        for cell, other in zip(row[3:], ("tau-loo", "tau-gradient"), strict=True):
            one = found(audit, "correlation", other, Place(), reading)
            assert (cell == "–") == (one is None)
            assert one is None or is_effect(cell, one)
    text = " ".join(audit_text(audit, width=400).split())
    assert all(" ".join(said.split()) in text for said in audit_sentences(audit))
    assert all(said in plain(page) for said in audit_sentences(audit))


def test_every_sentence_of_an_audit_is_true_of_it():
    rng = np.random.default_rng(1)
    said: Counter[str] = Counter()
    for number in range(400):
        audit = occasion.draw(rng)
        said.update(check(audit))
        if number % 10 == 0:
            check_page(audit)
    assert len(said) == 12, said
    assert min(said.values()) > 1


@pytest.mark.slow
def test_every_sentence_of_many_audits_is_true_of_them():
    rng = np.random.default_rng(2)
    for number in range(10_000):
        audit = occasion.draw(rng)
        check(audit)
        if number % 200 == 0:
            check_page(audit)
