"""What is said of a sign is true of the numbers, under every reading that a Target declares.

The truth is counted anew: a word is removed, and the model says what P(X), the entropy and the
divergence are without it. Whatever a view says of that word's sign is held against these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import get_args

import numpy as np
import pytest

import whence
from tests.core.test_answer import BAD, BETTER, BUT, FINE, NOT, compared, scored
from tests.views.overviews import overview
from whence.core.answer import answer
from whence.core.attribution import Attribution
from whence.core.overview import CarryingWord
from whence.core.target import SIGN_OF_SUPPORT, Reading
from whence.views.answering import answer_cautions, answer_sentences, in_short
from whence.views.sides import sides

READINGS: tuple[Reading, ...] = get_args(Reading)
KINDS = {
    "classifier": ("sentiment", "a stupid and dull film with a great cast", "negative"),
    "writer": ("writer", "I hated every minute of it. The movie was", " bad"),
}
# what is said of words, and what must be so once one of them is removed
CLAIMS = {
    r"speaks? for": ("p", -1),
    r"speaks? against": ("p", +1),
    r"makes? (?:the model|it) less sure": ("entropy", -1),
    r"makes? (?:the model|it) more sure": ("entropy", +1),
    r"moves? (?:the model|it) away": ("kl", -1),
    r"keeps? (?:the model|it) at": ("kl", +1),
}
NAMES = r"((?:“[^”]+”(?:, | and )?)+)"
every_case = pytest.mark.parametrize("read", READINGS)
every_kind = pytest.mark.parametrize("kind", KINDS)


@dataclass(frozen=True, eq=False)
class Truth:
    """How P(X), the entropy and the divergence change when a word is removed, by its name."""

    attribution: Attribution
    change: dict[str, dict[str, float]]

    def check(self, word: str, of: str, sign: int) -> None:
        assert self.change[of][word] * sign > 0, (word, of, sign, self.change[of])

    def check_sentence(self, sentence: str) -> int:
        """Holds each claim of a sentence against the numbers; how many words had one."""
        words = 0
        for pattern, (of, sign) in CLAIMS.items():
            for named in re.findall(rf"{NAMES} {pattern}\b", sentence):
                for word in re.findall("“([^”]+)”", named):
                    self.check(word, of, sign)
                    words += 1
        return words


@cache
def truth(kind: str, read: Reading) -> Truth:
    name, text, label = KINDS[kind]
    a = whence.explain(
        whence.load(name), text, "occlusion", target=label, read=read, evidence=False
    )
    change = {}
    rival = None if a.target.against is None else str(a.target.against)
    for of, values in _without_each(kind, str(a.settings["removal"]), rival).items():
        differences = (values[:-1] - values[-1]).tolist()
        change[of] = dict(zip(a.units.distinct_names, differences, strict=True))
    return Truth(a, change)


@cache
def _without_each(kind: str, removal: str, rival: str | None) -> dict[str, np.ndarray]:
    """P(X), the entropy and the divergence without each word, and last with all of them.

    Where X is explained rather than another, P(X) is its part of both.
    """
    name, text, label = KINDS[kind]
    model = whence.load(name)

    def values(read: Reading, of: str = label) -> np.ndarray:
        game = whence.game(model, text, target=of, read=read, removal=removal)
        keeps = ~np.eye(game.size + 1, game.size, dtype=bool)
        return np.asarray(game(keeps), dtype=float)

    p = values("probability")
    if rival is not None:
        p = p / (p + values("probability", rival))
    if kind == "classifier":  # of two labels both follow from P
        return {"p": p, "entropy": _entropy(p), "kl": _divergence(p)}
    return {"p": p, "entropy": values("entropy"), "kl": values("kl")}


def _entropy(p: np.ndarray) -> np.ndarray:
    return -(p * np.log(p) + (1 - p) * np.log(1 - p))


def _divergence(p: np.ndarray) -> np.ndarray:
    whole = p[-1]
    return whole * np.log(whole / p) + (1 - whole) * np.log((1 - whole) / (1 - p))


# ---------------------------------------------------------------------- one text


def test_every_reading_has_a_direction():
    assert set(SIGN_OF_SUPPORT) == set(READINGS)


@every_kind
@every_case
def test_what_the_answer_says_of_a_word_is_what_its_removal_does(kind, read):
    """Would catch: “stupid” that speaks against a label whose probability falls without it."""
    of = truth(kind, read)
    said = " ".join(answer_sentences(of.attribution.answer))
    assert of.check_sentence(said)


@every_kind
@every_case
def test_the_units_of_the_answer_stand_on_the_side_that_their_removal_shows(kind, read):
    of = truth(kind, read)
    stored = of.attribution.answer.to_dict()
    moved = "entropy" if read == "entropy" else "kl"
    sides_of_json = {
        "speaks_for": ("p", -1),
        "speaks_against": ("p", +1),
        "raises": (moved, -1),
        "lowers": (moved, +1),
    }
    for name, (number, sign) in sides_of_json.items():
        for word in stored[name]:
            of.check(word, number, sign)
    has_label = bool(stored["speaks_for"] or stored["speaks_against"])
    has_none = bool(stored["raises"] or stored["lowers"])
    assert has_label == (read not in ("entropy", "kl"))
    assert has_none == (read in ("entropy", "kl"))


def meaning(words: str) -> tuple[str, int]:
    """Which number falls or rises without a word of this side, by what is said of it."""
    by_words = {
        **CLAIMS,
        r"against\b": ("p", +1),
        r"for\b": ("p", -1),
        r"less sure": ("entropy", -1),
        r"more sure": ("entropy", +1),
        r"farther": ("kl", -1),
        r"nearer": ("kl", +1),
    }
    return next(claim for pattern, claim in by_words.items() if re.match(pattern, words))


def check_colours(of: Truth, above: str, below: str) -> None:
    """The strongest word of each sign does what the words for that sign say."""
    a = of.attribution
    strongest = int(np.abs(a.scores).argmax())
    words = above if a.scores[strongest] > 0 else below
    of.check(a.units.distinct_names[strongest], *meaning(words))
    # the other side says the opposite of the same number
    (number, sign), (other, other_sign) = meaning(above), meaning(below)
    assert number == other
    assert sign == -other_sign


@every_kind
@every_case
def test_legends_and_headings_say_what_the_sign_of_a_score_does(kind, read):
    """On the page below zero is on the left, in a caption and on an axis above zero comes first."""
    of = truth(kind, read)
    page = of.attribution.to_html()
    (left, right) = re.findall(r'<span>([^<>]+)<span class="ramp"[^>]*>.*?</span>([^<>]+)<', page)[
        0
    ]
    assert re.search(r'class="ramp" aria-hidden="true"><i class="n"', page)
    check_colours(of, right, left)

    orange, blue = re.search(
        r"colours: orange (.+), blue ([^;]+)", of.attribution.to_latex().replace("\n%", "")
    ).groups()
    check_colours(of, orange, blue)

    pytest.importorskip("matplotlib")
    axis = of.attribution.plot().get_xlabel()
    plus, minus = re.search(r"\+ (.+), − (.+)\)", axis).groups()
    check_colours(of, plus, minus)


@every_kind
@every_case
def test_the_terminal_colours_mean_what_they_say(kind, read):
    from rich.console import Console

    from whence.views.terminal import attribution_view

    of = truth(kind, read)
    console = Console(width=400, force_terminal=True, color_system="truecolor", record=True)
    console.print(attribution_view(of.attribution, console))
    html = console.export_html(inline_styles=True)
    ends = re.findall(r"background-color: #(..)..(..)[^>]*> ([a-z][^<]+?) <", html)
    orange = next(words for red, blue, words in ends if int(red, 16) > int(blue, 16))
    blue = next(words for red, blue, words in ends if int(red, 16) < int(blue, 16))
    check_colours(of, orange, blue)


# ---------------------------------------------------------------------- a text that was written


@every_case
def test_the_heading_of_a_generation_says_what_the_sign_does(read):
    """“for +, against −” of a cross-entropy would name what speaks against the word as its source.

    The scores of the only word are those of its explanation, whose truth is known.
    """
    g = whence.generate(
        whence.load("writer"),
        "I hated every minute of it. The movie was",
        methods="occlusion",
        continuation=" bad",
        read=read,
        evidence=False,
    )
    of = truth("writer", read)
    scores = g["occlusion"][0].scores
    strongest = int(np.abs(scores).argmax())
    word = g.units.distinct_names[strongest]
    heading = re.search(r"the strongest sources of each: (.+) \+, (.+) −", " ".join(str(g).split()))
    words = heading.groups()[0 if scores[strongest] > 0 else 1]
    of.check(word, *meaning(words))
    left, right = re.findall(
        r'<span>([^<>]+)<span class="ramp"[^>]*>.*?</span>([^<>]+)<', g.to_html()
    )[0]
    of.check(word, *meaning(right if scores[strongest] > 0 else left))


# ---------------------------------------------------------------------- several methods


def several(read: Reading, sign: int):
    """Four methods that agree: of X, "not" and "fine" speak for it, and "but" against it."""
    target = scored("m", {}, BETTER).target.__class__("positive", index=1, read=read)
    return [
        scored(
            f"m{i}", {NOT: 2.0 * sign, FINE: 1.5 * sign, BUT: -1.0 * sign}, BETTER, target=target
        )
        for i in range(4)
    ]


@pytest.mark.parametrize("read", ["logit", "cross-entropy", "perplexity"])
def test_in_short_and_the_conflicts_turn_with_the_reading(read):
    sign = 1 if read == "logit" else -1
    c = compared(*several(read, sign))
    assert in_short(c.answer) == "for: not, fine; against: but"

    others = [
        scored(f"o{i}", {BAD: -1.5 * sign, NOT: 2.0 * sign}, BETTER, target=c.first.target)
        for i in range(2)
    ]
    ours = [
        scored(f"a{i}", {BAD: 1.5 * sign, NOT: 2.0 * sign}, BETTER, target=c.first.target)
        for i in range(2)
    ]
    both = compared(*ours, *others)
    assert "it speaks for positive by a0, a1, against it by o0, o1" in " ".join(
        answer_cautions(both.answer)
    )
    conflict = next(one for one in both.agreement().conflicts if one.name == "bad")
    assert (conflict.one, conflict.other) == (("a0", "a1"), ("o0", "o1"))
    ours_sign, theirs_sign = ("+", "−") if sign > 0 else ("−", "+")
    one, other = f"({ours_sign}75 %)", f"({theirs_sign}75 %)"
    told = f"for: a0 {one}, a1 {one}; against: o0 {other}, o1 {other}"
    assert told in both.to_text(full=True)


def test_of_an_entropy_methods_contradict_each_other_on_how_sure_the_model_is():
    """“for” and “against” mean nothing there, in a sentence, in a row or in a table."""
    c = compared(*several("entropy", 1))
    assert in_short(c.answer) == "less sure: not, fine; more sure: but"
    assert (c.answer.speaks_for, c.answer.speaks_against) == ((), ())
    ours = [scored(f"a{i}", {BAD: 1.5, NOT: 2.0}, BETTER, target=c.first.target) for i in (0, 1)]
    others = [scored(f"o{i}", {BAD: -1.5, NOT: 2.0}, BETTER, target=c.first.target) for i in (0, 1)]
    both = compared(*ours, *others)
    assert "it makes the model less sure by a0, a1, makes it more sure by o0, o1" in " ".join(
        answer_cautions(both.answer)
    )
    told = "raising it: a0 (+75 %), a1 (+75 %); lowering it: o0 (−75 %)"
    assert told in both.to_text(full=True)
    assert "raising it in 2:" in both.to_html()


def test_scores_without_a_sign_matter_for_what_the_reading_is_about():
    target = several("entropy", 1)[0].target
    unsigned = [scored(f"u{i}", {NOT: 2.0}, BETTER, signed=False, target=target) for i in range(4)]
    assert "“not” matters most for how sure the model is." in " ".join(
        answer_sentences(answer({a.method: a for a in unsigned}))
    )


# ---------------------------------------------------------------------- a run


@pytest.mark.parametrize("read", ["logit", "cross-entropy"])
def test_words_that_carry_a_label_are_those_that_raise_its_probability(read):
    sign = 1 if read == "logit" else -1
    words = (
        CarryingWord("occlusion", "good", "fun", 9, 0.6, 0.4, 0.8, 5.4, is_sure=True),
        CarryingWord("occlusion", "good", "dull", 9, -0.6, -0.8, -0.4, -5.4, is_sure=True),
    )
    page = overview(read=read, words=words).to_html()
    carried = "fun" if sign > 0 else "dull"
    assert f"good is carried by “{carried}” (" in page.replace("&nbsp;", " ")
    right = "speaks for the label" if sign > 0 else "speaks against the label"
    assert f"A bar to the right: {right};" in page


def test_no_label_is_carried_by_what_changes_an_entropy():
    page = overview(read="entropy").to_html()
    assert "is carried by" not in page
    assert "A bar to the right: makes the model less sure; to the left: makes it more sure" in page
    assert "of a label" not in page


def test_the_two_sides_of_every_reading_say_the_opposite():
    for read in READINGS:
        said = sides(read)
        assert said.above.short != said.below.short
        assert said.above.does("X") != said.below.does("X")
        assert said.sign_of_support == SIGN_OF_SUPPORT[read]
