"""Two texts aligned."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whence
from tests.families import build
from whence.core.errors import InputError
from whence.core.probe import Contrast, Control, Reading, TemplateProbe, aligned
from whence.core.templates import read_templates


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_alignment_is_one_to_one_in_order_and_complete(one: list[str], two: list[str]) -> None:
    pairs, left = aligned(one, two)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    assert len(left) == len(one) + len(two) - 2 * len(pairs)
    if one == two:
        assert pairs == [(i, i) for i in range(len(one))]


def test_the_difference_is_that_of_the_two_maps() -> None:
    model = build("bert")
    first, second = "the food is great but not", "the service is great"
    p = whence.probe(model, first, second)
    a, b = whence.attend(model, first), whence.attend(model, second)
    assert [x for x, c in zip(p.labels, p.changed, strict=True) if c] == ["food → service"]
    assert p.left_out == ("but", "not")
    i, j = p.labels.index("food → service"), p.labels.index("great")
    expected = b.weights["encoder"][1, 2, 2, 4] - a.weights["encoder"][1, 2, 2, 4]
    assert p.difference["encoder"][1, 2, i, j] == pytest.approx(expected)
    top = p.strongest(1)[0]
    assert abs(top.change) == pytest.approx(np.abs(p.difference["encoder"]).max())
    assert top.change == pytest.approx(top.second - top.first)
    assert {c.source for c in p.strongest(5, "food")} == {"food → service"}
    with pytest.raises(InputError, match="no aligned place"):
        p.strongest(1, "nowhere")


def test_equal_texts_do_not_differ() -> None:
    p = whence.probe(build("gpt2"), "the food is", "the food is")
    assert not any(p.changed)
    assert all(np.abs(d).max() == 0 for d in p.difference.values())


def test_texts_without_a_common_word_are_refused_where_nothing_aligns() -> None:
    with pytest.raises(InputError, match="no word in common"):
        whence.probe(build("gpt2"), "the food is great", "not")


def test_an_encoder_decoder_is_compared_by_its_encoder() -> None:
    # would catch: the decoder's maps cut at the encoder's places
    p = whence.probe(
        build("t5"), "the food is great", "the service is great", reply="not bad prices at all"
    )
    assert set(p.difference) == {"encoder"}


def test_texts_that_the_model_reads_alike_are_called_alike() -> None:
    # both words are unknown to the vocabulary: a table of zeros would be a false all-clear
    from whence.views.probe import probe_fragment, probe_view
    from whence.views.terminal import to_text

    p = whence.probe(build("bert"), "the 囧 is great", "the 龘 is great")
    assert p.is_same == (p.first.passage.ids.tolist() == p.second.passage.ids.tolist())
    same = whence.probe(build("bert"), "the food", "the food")
    assert same.is_same
    assert "no weight differs" in repr(same)
    assert "differ most" not in to_text(lambda _: probe_view(same))
    assert "<table" not in probe_fragment(same)
    assert "not by decoder, cross" in repr(
        whence.probe(build("t5"), "the food is", "the service is")
    )


def answered(**given: Any) -> str:
    """The answer of two texts that differ in attention, with these facts beside it."""
    p = whence.probe(build("bert"), "the food is great", "the service is great")
    return " ".join(replace(p, **given).answer())


def test_a_change_is_more_than_that_of_neutral_words_only_if_the_numbers_show_it() -> None:
    """The enemy: "+0.0 points. That is more than neutral words do (… +0.0 points)"."""
    labels = ({"good": 0.7, "bad": 0.3}, {"good": 0.7, "bad": 0.3})
    given: dict[str, Any] = {"predictions": labels, "reading": Reading("good")}
    control = Control("one", "another", value=0.0011, largest=9.0, mean=0.0)
    close = answered(values=(0.7, 0.7013), controls=(control,), **given)
    assert "changes by +0.1 points. That is no more than neutral words do (one" in close
    tiny = replace(control, value=0.0001)
    shown = answered(values=(0.7, 0.7002), controls=(tiny,), **given)
    assert "+0.02 points. That is more than neutral words do (one → another: +0.01 p" in shown
    larger = replace(control, value=-0.0014)
    more = answered(values=(0.7, 0.702), controls=(control, larger), **given)
    assert "+0.2 points. That is more than neutral words do (one → another: -0.1 points)" in more
    beyond = answered(values=(0.7, 0.5), controls=(replace(control, value=-0.3),), **given)
    assert "-20.0 points. That is no more than neutral words do" in beyond
    assert "That is no more than neutral words do (one → another: 900 points)." in close


def test_without_a_control_nothing_is_said_of_why() -> None:
    """The enemy: "the texts do not differ word for word", of texts that do."""
    shown = answered(controls=())
    assert "There is no control, so nothing says what neutral words do here." in shown
    assert "word for word" not in shown


def test_a_number_on_a_scale_of_its_own_is_no_percentage() -> None:
    """The enemy: "3.2" of a regression, as 320.0 %."""
    shown = answered(
        predictions=({"score": 3.2}, {"score": 0.5}),
        reading=Reading("score", is_probability=False),
        values=(3.2, 0.5),
    )
    assert "The model says score to both: 3.200, then 0.500." in shown
    both = ({"good": 0.7, "bad": 0.3}, {"bad": 0.6, "good": 0.4})
    named = answered(predictions=both, reading=Reading("a margin", False), values=(0.4, -0.2))
    assert "The model says good (70.0 %) to the first, and bad (60.0 %) to the second." in named


def test_texts_with_the_same_attention_and_other_values_are_not_read_alike() -> None:
    """Attention that looks at everything alike: the enemy says that the texts are the same."""
    p = whence.probe(build("bert"), "the food is great", "the service is great")
    flat = {kind: np.zeros_like(weights) for kind, weights in p.difference.items()}
    same = replace(p, difference=flat, reading=Reading("good"), values=(0.2, 0.6))
    assert any(
        line.startswith("The probability of good changes by +40.0 p") for line in same.answer()
    )
    assert any(line.startswith("No weight of attention differs.") for line in same.answer())
    assert "the model reads other tokens" in repr(same)
    alike = whence.probe(build("bert"), "the food", "the food")
    assert alike.answer() == ["The model reads both texts alike."]


def test_other_tokens_that_nothing_looks_at_otherwise_are_not_read_alike() -> None:
    """The enemy: "reads both texts alike", and below it "reads other tokens"."""
    p = whence.probe(build("bert"), "the food is great", "the service is great")
    flat = {kind: np.zeros_like(weights) for kind, weights in p.difference.items()}
    for values in ((), (0.2, 0.2)):
        same = replace(p, difference=flat, values=values, reading=Reading("good"))
        assert "alike" not in " ".join(same.answer())
        assert same.answer()[-2].startswith("No weight of attention differs.")


def test_of_several_labels_those_are_said_that_hold() -> None:
    """The enemy: "says threat (27 %)" of a model in which no label reaches one half."""
    both = ({"toxic": 0.8, "insult": 0.5, "threat": 0.1}, {"threat": 0.27, "toxic": 0.2})
    shown = answered(
        predictions=both, reading=Reading("toxic"), values=(0.8, 0.2), several_labels=True
    )
    assert (
        "The model says toxic (80.0 %) and insult (50.0 %) to the first, and none of its labels "
        "(highest is threat, 27.0 %) to the second."
    ) in shown


# ---------------------------------------------------------------------- over templates


def contrast(differences: list[float], low: float, high: float, name: str = "x") -> Contrast:
    return Contrast(name, np.array(differences, dtype=float), low, high)


def over(mean: Contrast, *controls: Contrast) -> TemplateProbe:
    lines = [f"{{}} is late, {number}" for number in range(len(mean.differences))]
    templates = read_templates("\n".join(lines), ["she"], ["he"])
    return TemplateProbe("toy", templates, Reading("good"), mean, controls)


UP = [0.2, 0.3, 0.2, 0.3, 0.25]
DOWN = [-change for change in UP]
NONE = [0.0, 0.1, -0.1, 0.1, 0.0]


@pytest.mark.parametrize(
    ("mean", "controls", "verdict"),
    [
        (contrast(UP, 0.1, 0.4), [contrast(NONE, -0.1, 0.15)], "differs"),
        (contrast(DOWN, -0.4, -0.1), [contrast(NONE, -0.1, 0.15)], "differs"),
        # a control that reaches as far on either side takes the claim away
        (contrast(UP, 0.1, 0.4), [contrast(NONE, -0.3, 0.1)], "as neutral words"),
        # or just as far
        (
            contrast([0.25] * 4 + [0.26], 0.1, 0.4),
            [contrast(NONE, -0.252, 0.1)],
            "as neutral words",
        ),
        # so does the one of two that reaches further
        (
            contrast(UP, 0.1, 0.4),
            [contrast(NONE, -0.1, 0.1), contrast(NONE, -0.3, 0.1)],
            "as neutral words",
        ),
        (contrast(UP, -0.1, 0.4), [contrast(NONE, -0.1, 0.1)], "not separable"),
        (contrast(UP, 0.1, 0.4), [], "no control"),
        (contrast([0.2], np.nan, np.nan), [contrast([0], np.nan, np.nan)], "one template"),
        (contrast([0.2] * 4, np.nan, np.nan), [], "too few templates"),
        (contrast([0.2] * 5, np.nan, np.nan), [], "all the same"),
        # neutral words that change nothing anywhere have no interval, and are a control
        (contrast(UP, 0.1, 0.4), [contrast([0.0] * 5, np.nan, np.nan)], "differs"),
    ],
)
def test_a_difference_is_claimed_only_beyond_neutral_words(mean, controls, verdict) -> None:
    p = over(mean, *controls)
    assert p.verdict == verdict
    claims = "This is more than neutral words do." in p.answer()
    assert claims == (verdict == "differs")
    assert ("95 % interval" in p.answer()[0]) == (not np.isnan(mean.low))
    assert p.to_dict()["verdict"] == verdict


def test_templates_are_counted_either_way() -> None:
    p = over(contrast([0.1, -0.2, 0.0, -0.3, -0.1], -0.3, 0.1))
    assert (p.contrast.up, p.contrast.down) == (1, 3)
    assert "it rises in 1, falls in 3 and stays in 1" in p.answer()[0]
    assert "-10.0 points on average from he to she (95 % interval -30.0 to +10.0" in p.answer()[0]


def test_one_template_is_no_average() -> None:
    """Would catch: “Over 1 template … on average …; it rises in 1, falls in 0 and stays in 0.”"""
    p = over(contrast([0.2], np.nan, np.nan), contrast([-0.1], np.nan, np.nan, "c → d"))
    first, *_, neutral = p.answer()
    changes = "the probability of good changes by +20.0 points from he to she."
    assert first == f"In the only template, {changes}"
    assert neutral == "Neutral words change it by -10.0 points (c → d)."
    assert "on average" in " ".join(over(contrast([0.2, 0.1], np.nan, np.nan)).answer())


def test_of_neutral_words_the_pair_that_does_most_is_told() -> None:
    little, much = contrast(NONE, -0.1, 0.1, "a → b"), contrast(DOWN, -0.4, -0.1, "c → d")
    (alone,) = over(contrast(UP, 0.1, 0.4), much).answer()[2:]
    assert alone == "Neutral words change it by -25.0 points on average (c → d)."
    (of_two,) = over(contrast(UP, 0.1, 0.4), little, much).answer()[2:]
    assert of_two == "Neutral words change it by up to -25.0 points on average (c → d)."


def test_repeated_words_are_told_apart() -> None:
    p = whence.probe(build("bert"), "the food is the best", "the service is the best")
    assert p.labels[1:6] == ("the", "food → service", "is", "the (2)", "best")
    assert {c.source for c in p.strongest(4, "the (2)")} == {"the (2)"}
    assert {c.source for c in p.strongest(40, "the")} == {"the", "the (2)"}


def test_the_largest_of_the_controls_is_what_a_change_is_held_against() -> None:
    """Would catch: the smallest control in the largest's place, for the target or for attention."""
    p = whence.probe(build("bert"), "the food is great", "the service is great")
    assert p.largest > 0
    small = Control("now", "then", 0.01, 0.5 * p.largest, 0.0)
    large = Control("here", "there", -0.3, 2.0 * p.largest, 0.0)
    for controls in ((small, large), (large, small)):
        held = replace(p, reading=Reading("good"), values=(0.5, 0.6), controls=controls)
        value, attention = (line for line in held.answer() if "neutral words do" in line)
        assert "That is no more than neutral words do (here → there: -30.0 points)." in value
        assert "That is no more than neutral words do (here → there: " in attention
        assert f"{200 * p.largest:.0f} points" in attention
    alone = replace(p, reading=Reading("good"), values=(0.5, 0.6), controls=(small,))
    for line in alone.answer()[-3:-1]:
        assert "That is more than neutral words do (now → then: " in line


def test_templates_name_the_control_that_changes_most() -> None:
    low, high = contrast([0.0, 0.02], -0.1, 0.1, "near"), contrast([-0.1, -0.3], -0.4, 0.1, "far")
    for controls in ((low, high), (high, low)):
        assert over(contrast([0.2, 0.3], 0.1, 0.4), *controls).answer()[-1] == (
            "Neutral words change it by up to -20.0 points on average (far)."
        )


def test_what_was_read_stands_in_the_data_and_the_largest_changes_are_those_of_all_heads() -> None:
    p = whence.probe(build("bert"), "the food is great", "the service is great")
    assert p.reading is not None
    assert p.to_dict()["reading"] == p.reading.name == "probability of good"
    assert replace(p, reading=None).to_dict()["reading"] is None
    every = np.concatenate([np.abs(d).ravel() for d in p.difference.values()])
    assert p.largest == pytest.approx(every.max())
    assert p.mean_size == pytest.approx(every.mean())
    sizes = [abs(change.change) for change in p.strongest(len(every))]
    assert sizes == pytest.approx(sorted(every, reverse=True), abs=1e-7)
