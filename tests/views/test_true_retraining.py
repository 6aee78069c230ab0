"""What training has shown is read back from its sentences, and held against its numbers."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from tests.occasions import retraining as occasion
from tests.views.reading_back import PERCENT, is_number, is_percent, shown
from whence.core.roar import Estimate

BAR, HALF, WORTH = 0.05, occasion.HALF, 0.01
NUMBER = r"[-+]?[\d.]+"
ESTIMATE = rf"({NUMBER}) \(({NUMBER}) to ({NUMBER})\)"


def matched(pattern: str, text: str) -> tuple:
    match = re.fullmatch(pattern, text, re.DOTALL)
    assert match is not None, text
    return match.groups()


def is_estimate(told: tuple, one: Estimate, factor: float = 1.0) -> bool:
    """A mean with its interval; a number that is shown has no minus before a zero."""
    assert not any(re.fullmatch(r"-0\.?0*", number) for number in told)
    values = (one.mean, one.low, one.high)
    return all(is_number(n, factor * v) for n, v in zip(told, values, strict=True))


def check_roar(rng: np.random.Generator) -> str:
    one = occasion.roar(rng)
    head, *lines = str(one).split("\n")
    train, test, seeds, removal, how, again, prior = matched(
        r"Remove and retrain: (\d+) texts? to train, (\d+) to test, (\d+) seeds?, removal (\w+); "
        r"important units (removed first|kept longest)(, explained anew at each step)?\. Always "
        rf"the most frequent label: ({NUMBER})\.",
        head,
    )
    assert (int(train), int(test), removal) == (one.train_texts, one.test_texts, one.removal)
    assert (f"{seeds} seed," in head) == (one.seeds == int(seeds) == 1)
    assert (f"{train} text to" in head) == (one.train_texts == 1)
    assert (how == "kept longest") == one.keep
    assert bool(again) == one.recursive
    assert is_number(prior, one.prior)
    assert len(lines) == len(one.accuracies)
    for line, (name, values) in zip(lines, one.accuracies.items(), strict=True):
        told, numbers = matched(r"  (.+): ([\d. ]+)", line)
        assert told == shown(name)
        means = [sum(of_share) / len(of_share) for of_share in values.T]
        assert all(is_number(n, m) for n, m in zip(numbers.split(), means, strict=True))
    return how


def check_adversarial(rng: np.random.Generator) -> str:
    one = occasion.adversarial(rng)
    answer, held_out, *lines = str(one).split("\n")
    kept = [copy for copy in one.copies if copy.tvd.high < BAR]
    pushed = [copy for copy in one.copies if copy.strength]
    furthest = max((copy.jsd.mean for copy in kept), default=None)
    seen = re.search(rf" by ({NUMBER}) nats of at most 0\.693 \(λ = ({NUMBER})\)\.$", answer)
    kind = answer[: seen.start()] if seen else answer
    if seen is not None:
        of = [copy for copy in kept if copy.jsd.mean == furthest]
        (copy,) = [c for c in of if f"{c.strength:g}" == seen[2]]
        assert is_number(seen[1], copy.jsd.mean)
        assert any(c in kept for c in pushed)
    rules = {
        "Undecided: not even the control keeps the output (within 0.05). Train on more texts, or "
        "at a smaller rate.": not kept,
        "Undecided: no copy was pushed away from the attention.": not pushed,
        "Undecided: no copy that was pushed away from the attention keeps the output (within "
        "0.05). Either they hang together, or it takes more texts or other strengths.": bool(pushed)
        and not any(c in kept for c in pushed),
        "Another attention would do: a copy that gives the same output differs": bool(seen)
        and copy.jsd.low > HALF,
        "No very different attention was reached: the furthest copy that gives the same output "
        "differs": bool(seen) and copy.jsd.high < HALF,
        "Undecided: the furthest copy that gives the same output differs": bool(seen)
        and copy.jsd.low <= HALF <= copy.jsd.high,
    }
    assert rules[kind], answer
    plural = "" if one.held_out == 1 else "s"
    assert held_out == f"On {one.held_out} held-out text{plural}:"
    for line, copy in zip(lines[:-1], one.copies, strict=True):
        strength, *told, right = matched(
            rf"  λ = ({NUMBER}): the output moves by {ESTIMATE}, attention by {ESTIMATE} nats; "
            rf"({PERCENT}) right",
            line,
        )
        assert float(strength) == copy.strength
        assert is_estimate(tuple(told[:3]), copy.tvd)
        assert is_estimate(tuple(told[3:]), copy.jsd)
        assert is_percent(right, copy.accuracy)
    right, majority, *told = matched(
        rf"  the model itself: ({PERCENT}) right \(the most frequent label: ({PERCENT})\); its own "
        rf"weights in random order differ by {ESTIMATE} nats",
        lines[-1],
    )
    assert is_percent(right, one.accuracy)
    assert is_percent(majority, one.majority)
    assert is_estimate(tuple(told), one.shuffled)
    return kind


def check_frozen(rng: np.random.Generator) -> str:
    one = occasion.frozen(rng)
    uniform, texts, free, majority, mean, which, low, high, between = matched(
        rf"With attention frozen to uniform ({PERCENT}) \[.+?\] of (\d+) held-out texts? (?:is|are)"
        rf" right, with free attention ({PERCENT}) \[.+?\] \(the most frequent label: ({PERCENT})"
        rf"\); ({NUMBER}) points are (lost|gained) \(95 % interval ({NUMBER}) to ({NUMBER})\)\."
        rf"(?: Attention differs between seeds by (.+) nats, of at most 0\.693\.)?",
        str(one),
    )
    assert int(texts) == one.held_out
    assert is_percent(uniform, one.uniform_mean.mean)
    assert is_percent(free, one.free_mean.mean)
    assert is_percent(majority, one.majority)
    assert float(mean) >= 0
    is_lost = which == "lost"
    assert is_lost == (one.lost.mean >= 0)
    lost = one.lost if is_lost else Estimate(-one.lost.mean, -one.lost.high, -one.lost.low)
    assert is_estimate((mean, low, high), lost, 100)
    assert (between is None) == (one.between_seeds is None)
    if between is not None:
        assert is_estimate(matched(ESTIMATE, between), one.between_seeds)
    return which


def check_diagnostic(rng: np.random.Generator) -> str:
    one = occasion.diagnostic(rng)
    points = rf"\(copied ({NUMBER}) points, 95 % interval ({NUMBER}) to ({NUMBER})\)"
    answer, reading, copied, texts, even, *told = matched(
        rf"(.+): with those of (.+), a bag of words gets ({PERCENT}) of (\d+) held-out texts? "
        rf"right, with even ones ({PERCENT}) {points}, with the same weights on other words "
        rf"({PERCENT}) {points}, with its own attention ({PERCENT}) {points}; the most frequent "
        rf"label: ({PERCENT})\.",
        str(one),
    )
    over = (one.over_uniform, one.over_permuted)
    right = {
        "The weights help a model without context": all(o.low > WORTH for o in over),
        "The weights do not help a model without context": any(o.high < WORTH for o in over),
        "Whether the weights help a model without context is undecided": not all(
            o.low > WORTH for o in over
        )
        and not any(o.high < WORTH for o in over),
    }
    assert right[answer]
    assert reading == shown(one.reading)
    assert int(texts) == one.held_out
    shares = (one.copied, one.uniform, one.permuted, one.own)
    for said, of_seeds in zip((copied, even, told[3], told[7]), shares, strict=True):
        assert is_percent(said, sum(of_seeds) / len(of_seeds))
    for at, gain in ((0, one.over_uniform), (4, one.over_permuted), (8, one.over_own)):
        assert is_estimate(tuple(told[at : at + 3]), gain, 100)
    assert is_percent(told[11], one.majority)
    return answer


def check_tuned(rng: np.random.Generator) -> str:
    one = occasion.tuned(rng)
    points = rf"({NUMBER}) points \(95 % interval ({NUMBER}) to ({NUMBER})\)"
    name, before, texts, after, *cost, removal, removed, removed_after, a, b, c = matched(
        rf"(.+): ({PERCENT}) of (\d+) held-out texts? right before, ({PERCENT}) after; it cost "
        rf"{points}\. With a random share of the units removed \((\w+)\) ({PERCENT}) before, "
        rf"({PERCENT}) after; it gained {points}\.",
        str(one),
    )
    assert (name, int(texts), removal) == ("toy", one.held_out, one.removal)
    pairs = ((before, one.before), (after, one.after))
    pairs += ((removed, one.removed_before), (removed_after, one.removed_after))
    assert all(is_percent(said, share) for said, share in pairs)
    assert is_estimate(tuple(cost), one.cost, 100)
    assert is_estimate((a, b, c), one.gain, 100)
    return removal


CHECKS = (check_roar, check_adversarial, check_frozen, check_diagnostic, check_tuned)


@pytest.mark.parametrize("check", CHECKS)
def test_every_sentence_of_what_was_trained_is_true_of_it(check):
    rng = np.random.default_rng(1)
    said = Counter(check(rng) for _ in range(400))
    kinds = {check_adversarial: 6, check_diagnostic: 3}
    assert len(said) == kinds.get(check, 2), said


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_every_sentence_of_much_that_was_trained_is_true_of_it(check):
    rng = np.random.default_rng(2)
    for _ in range(5_000):
        check(rng)
