"""What is said of steering and of an autoencoder is read back, and is true of the record."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.occasions.features import autoencoder_card, dashboard, forecast
from tests.occasions.receipt import receipt
from tests.views.parsing import NUMBER, PERCENT, Reader, as_read, is_number, is_percent
from whence.core.dashboard import Dashboard
from whence.core.receipt import Receipt
from whence.features.receipts import _on_no_difference, _on_unrelated
from whence.features.showing import _on_left_out
from whence.views.features import headline, sentences
from whence.views.receipt import sentences as sentences_of_receipt
from whence.views.receipt_page import _notes

# ---------------------------------------------------------------------- steering


def mean(r: Receipt, direction: str, name: str) -> float | None:
    """The mean over what one direction did at the dose that was asked for."""
    doses = [d for d in r.doses if (d.direction, d.multiple) == (direction, r.asked)]
    known = [getattr(d, name) for d in doses if getattr(d, name) is not None]
    return sum(known) / len(known) if known else None


def randoms(r: Receipt) -> int:
    return sum((d.direction, d.multiple) == ("random", r.asked) for d in r.doses)


def own(r: Receipt, name: str) -> float | None:
    return mean(r, "feature", name)


def label(name: str) -> str:
    return as_read(name) if name == name.strip() else f"“{name.strip()}”"


def is_two_digits(shown: str, value: float) -> bool:
    """Two digits, or as many as a whole number has; none is lost to an exponent."""
    return is_number(shown, value) and "e+" not in shown


def is_moved(shown: str, share: float) -> bool:
    if shown.endswith("x"):
        return share >= 100 and is_number(shown[:-1], share)
    return share < 100 and is_percent(shown, share)


def is_optional(shown: str | None, value: float | None, check) -> bool:
    if shown is None or value is None:
        return shown is value is None
    return check(shown, value)


def is_randoms(r: Receipt, shown: str | None) -> bool:
    count = randoms(r)
    wanted = f"{count} random direction{'' if count == 1 else 's'}"
    return shown in (None, wanted) and (shown is not None or not count)


def clamped(
    r: Receipt, feature, value, times, what, before, after, chance=None, how=None, means=None
):
    wanted = "probability of the tokens that it promotes"
    if r.meaning == "label":
        wanted = f"probability of {label(r.about)} for the prompt"
    is_once = abs(r.asked - 1) < 0.005
    return (
        int(feature) == r.feature
        and is_number(value, r.asked * r.peak)
        and (is_once if times is None else is_number(times, r.asked) and float(times) != 1)
        and what == wanted
        and is_percent(before, r.plain.response)
        and is_percent(after, own(r, "response"))
        and is_optional(chance, mean(r, "random", "response"), is_percent)
        and is_randoms(r, how)
        and is_optional(means, mean(r, "difference", "response"), is_percent)
    )


def broken(
    r: Receipt,
    on,
    texts,
    text,
    tokens,
    token,
    divergence,
    unit,
    plain=None,
    steered=None,
    other=None,
    random=None,
):
    per = "token" if r.meaning == "promoted" else "text"
    has_perplexity = own(r, "perplexity") is not None and r.plain.perplexity is not None
    return (
        (on == "unrelated text") == (not any("stand" in note for note in r.notes))
        and (int(texts), int(tokens.replace(",", ""))) == (r.texts, r.tokens)
        and (text == "text") == (r.texts == 1)
        and (token == "token") == (r.tokens == 1)
        and unit == per
        and is_two_digits(divergence, own(r, "divergence"))
        and is_optional(random, mean(r, "random", "divergence"), is_two_digits)
        and (plain is not None) == has_perplexity
        and (plain is None or is_two_digits(plain, r.plain.perplexity))
        and (plain is None or is_two_digits(steered, own(r, "perplexity")))
        and (
            not has_perplexity or is_optional(other, mean(r, "random", "perplexity"), is_two_digits)
        )
    )


def moved(r: Receipt, share, random=None) -> bool:
    return is_moved(share, own(r, "others")) and is_optional(
        random, mean(r, "random", "others"), is_moved
    )


def written(r: Receipt, share, before, how=None, random=None) -> bool:
    return (
        is_percent(share, own(r, "activity"))
        and is_percent(before, r.plain.activity)
        and is_optional(random, mean(r, "random", "activity"), is_percent)
        and is_randoms(r, how)
    )


def beside(r: Receipt, others, move) -> bool:
    kinds = {d.direction for d in r.doses}
    told = set()
    if "andom directions" in others:
        told.add("random")
    if "he difference of means (" in others:
        told.add("difference")
    return told == kinds - {"feature"} and (move == "move") == ("random" in kinds)


MOVED = r"[\d.]+(?:e\+\d+)?x|" + PERCENT
STEERED = Reader(
    {
        rf"Feature (?P<feature>\d+) clamped to an activation of (?P<value>{NUMBER}), (?:its "
        rf"largest|"
        rf"(?P<times>{NUMBER}) times its largest): the (?P<what>.+) goes from "
        rf"(?P<before>{PERCENT}) "
        rf"to (?P<after>{PERCENT})(?:; (?P<chance>{PERCENT}) by (?P<how>\d+ random directions?))?"
        rf"(?:[;,] (?P<means>{PERCENT}) by the difference of means)?\.": clamped,
        r"On (?P<on>unrelated text|text in which the feature fires too) "
        rf"\((?P<texts>\d+) (?P<text>texts?), (?P<tokens>[\d,]+) "
        rf"(?P<token>tokens?)\): (?:perplexity (?P<plain>{NUMBER}) → (?P<steered>{NUMBER})(?: "
        rf"\(random: (?P<other>{NUMBER})\))?, )?divergence (?P<divergence>{NUMBER}) nats a "
        rf"(?P<unit>token|text)(?: \(random: (?P<random>{NUMBER})\))?\.": broken,
        rf"Other features move by (?P<share>{MOVED}) of what they were"
        rf"(?: \(random: (?P<random>{MOVED})\))?\.": moved,
        rf"In what is then written, read by the plain model, the feature is at "
        rf"(?P<share>{PERCENT}) "
        rf"of its largest activation on average \(before: (?P<before>{PERCENT})(?:; (?P<how>\d+ "
        rf"random directions?): (?P<random>{PERCENT}))?\)\.": written,
        rf"At every token the state after block 2 is moved along the feature's direction until the "
        rf"feature has the wanted activation; what the autoencoder does not reconstruct stays "
        rf"as it "
        rf"is\. The largest activation seen is (?P<peak>{NUMBER})\.": lambda r, peak: is_number(
            peak, r.peak
        ),
        r"(?P<others>[RT][a-z ]+(?: \(states .*?\))?) (?P<move>moves?) the state as far at every "
        r"token\.": beside,
        r"The response is the probability of (?P<about>.+) together, on average over all places of "
        r"(?:unrelated text|the texts)\. These tokens were read from the weights of the feature's "
        r"own direction(?P<random>, so random directions have to be expected to raise them less)?"
        r"\.": lambda r, about, random: (
            r.meaning == "promoted"
            and about == r.about
            and (random is not None) == any(d.direction == "random" for d in r.doses)
        ),
        r"No perplexity: .+|The cosine of the feature's .+": lambda r: True,
        r"In all (?P<forwards>[\d,]+) forward, 0 backward, under a second\.": lambda r, forwards: (
            is_number(forwards, r.cost.forwards)
        ),
    }
)


def check_receipt(r: Receipt) -> None:
    said = sentences_of_receipt(r)
    for sentence in (*said, *_notes(r)):
        STEERED.read(sentence, r)
    assert any(s.startswith("Other features") for s in said) == (own(r, "others") is not None)
    assert any(s.startswith("In what is") for s in said) == (own(r, "activity") is not None)


# ---------------------------------------------------------------------- an autoencoder


def heading(b: Dashboard, count, word, model, layer, live=None) -> bool:
    every = b.size - b.dead
    return (
        is_number(count, len(b.features) if live else every)
        and is_number(live or count, every)
        and (live is None) == (len(b.features) == every)
        and (word == "feature") == (every == 1)
        and model == as_read(b.model)
        and int(layer) == b.layer
    )


def fires(b: Dashboard, tokens, token, passages, passage, live, size, feature, fire, mean) -> bool:
    numbers = ((tokens, b.tokens), (passages, b.passages), (live, b.size - b.dead), (size, b.size))
    return (
        all(int(shown.replace(",", "")) == number for shown, number in numbers)
        and (token == "token") == (b.tokens == 1)
        and (passage == "passage") == (b.passages == 1)
        and (feature == "feature") == (b.size == 1)
        and (fire == "fires") == (b.size - b.dead == 1)
        and is_number(mean, b.l0)
        and (float(mean) == 0) == (b.l0 == 0)
    )


def dense(b: Dashboard, count, fire, variant, dim, size, share=None) -> bool:
    return (
        int(count) == b.dense
        and (fire == "fires") == (b.dense == 1)
        and variant == b.variant
        and (int(dim), int(size.replace(",", ""))) == (b.dim, b.size)
        and is_optional(share, b.variance_explained, is_percent)
    )


BOARD = Reader(
    {
        r"(?P<count>[\d,]+) (?:of (?P<live>[\d,]+) )?live (?P<word>features?) of (?P<model>.+), "
        r"after block (?P<layer>\d+)": heading,
        rf"On (?P<tokens>[\d,]+) (?P<token>tokens?) of .+ in (?P<passages>[\d,]+) "
        rf"(?P<passage>passages?), (?P<live>[\d,]+) of (?P<size>[\d,]+) (?P<feature>features?) "
        rf"(?P<fire>fires?) at least once; (?P<mean>{NUMBER}) on a token, on average\.": fires,
        rf"(?P<count>[\d,]+) (?P<fire>fires?) on more than 10 % of all tokens(?:; all features "
        rf"together explain (?P<share>−?{PERCENT}) of the variance)?\. Autoencoder: "
        r"(?P<variant>\w+), (?P<dim>\d+) → (?P<size>[\d,]+)\.": dense,
    }
)


def check_card(rng: np.random.Generator) -> None:
    """The sentences of a card that count, or compare."""
    shown, about, quality = autoencoder_card(rng)
    dead = re.search(
        r"Of ([\d,]+) features, ([\d,]+) (is|are) dead .+ any of ([\d,]+) .+ and ([\d,]+) dense",
        shown,
    )
    told = [int(number.replace(",", "")) for number in dead.group(1, 2, 4, 5)]
    assert told == [quality.size, quality.dead, quality.seen, quality.dense]
    assert (dead[3] == "is") == (quality.dead == 1)
    also = re.search(
        r"from seed (\d+), found (.+?)% of the .+? activations' correlations (.+?)% would", shown
    )
    assert (also is not None) == (quality.agreement is not None)
    if also is not None:
        assert int(also[1]) == quality.agreement.with_seed
        assert is_percent(f"{also[2]} %", quality.agreement.share)
        assert is_percent(f"{also[3]} %", quality.agreement.chance)
    assert ("with the mean taken away" in shown) == about.settings["centred"]


def check_forecast(rng: np.random.Generator) -> None:
    f = forecast(rng)
    said = re.fullmatch(
        rf"([\d,]+) activations; their mean is ({NUMBER}) spreads long, so ({PERCENT}) of features "
        rf"would never be active(?:; the mean is taken away, which leaves ({PERCENT}))?\. Its "
        rf"steps "
        r"will take (.+), and measuring its quality beside simpler things (.+); .+ of activations "
        r"and .+ of training state on the disk\.",
        str(f),
    )
    assert int(said[1].replace(",", "")) == f.rows
    assert is_number(said[2], f.ratio)
    assert is_percent(said[3], f.asleep)
    assert is_optional(said[4], f.asleep_centred if f.centred else None, is_percent)


def hunt(results: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(results):
        check_receipt(receipt(rng))
        b = dashboard(rng)
        for sentence in (headline(b), *sentences(b)):
            BOARD.read(sentence, b)
        check_card(rng)
        check_forecast(rng)


def test_what_is_said_of_steering_and_of_features_is_true_of_their_numbers():
    hunt(500, 0)


def test_notes_of_a_receipt_say_why():
    """The enemy: "fires on 40 of 40 tokens here, and 5 are needed"."""
    assert "on all 40 tokens" in _on_no_difference(40, 40)
    assert "on 4 of 40 tokens here, and 5 are needed" in _on_no_difference(4, 40)
    assert "on 3 of 3 tokens here, and 5 are needed" in _on_no_difference(3, 3)
    assert "1 of 1 text, so all of it" in _on_unrelated(1, 1)
    assert "2 of 3 texts, so all of them" in _on_unrelated(2, 3)
    assert "less often" not in _on_left_out(3, False)
    assert "1 live feature, which fires less often, was" in _on_left_out(1, True)


@pytest.mark.slow
def test_what_is_said_of_much_steering_and_many_features_is_true_of_their_numbers():
    hunt(8000, 1)
    assert STEERED.never_met == []
    assert BOARD.never_met == []
