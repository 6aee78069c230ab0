"""Two texts aligned."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

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


# ---------------------------------------------------------------------- over templates


def contrast(differences: list[float], low: float, high: float, name: str = "x") -> Contrast:
    return Contrast(name, np.array(differences, dtype=float), low, high)


def over(mean: Contrast, *controls: Contrast) -> TemplateProbe:
    lines = ["{} is late"] * len(mean.differences)
    templates = read_templates("\n".join(lines), ["she"], ["he"])
    return TemplateProbe("toy", templates, Reading("good"), mean, controls)


@pytest.mark.parametrize(
    ("mean", "controls", "verdict"),
    [
        (contrast([0.2, 0.3], 0.1, 0.4), [contrast([0, 0.1], -0.1, 0.15)], "differs"),
        (contrast([-0.2, -0.3], -0.4, -0.1), [contrast([0, 0.1], -0.1, 0.15)], "differs"),
        # a control that reaches as far on either side takes the claim away
        (contrast([0.2, 0.3], 0.1, 0.4), [contrast([0, -0.1], -0.3, 0.1)], "as neutral words"),
        (contrast([0.2, 0.3], -0.1, 0.4), [contrast([0, 0.1], -0.1, 0.1)], "not separable"),
        (contrast([0.2, 0.3], 0.1, 0.4), [], "no control"),
        (contrast([0.2], np.nan, np.nan), [contrast([0], np.nan, np.nan)], "one template"),
    ],
)
def test_a_difference_is_claimed_only_beyond_neutral_words(mean, controls, verdict) -> None:
    p = over(mean, *controls)
    assert p.verdict == verdict
    claims = "This is more than neutral words do." in p.answer()
    assert claims == (verdict == "differs")
    assert p.to_dict()["verdict"] == verdict


def test_templates_are_counted_either_way() -> None:
    p = over(contrast([0.1, -0.2, 0.0, -0.3], -0.3, 0.1))
    assert (p.contrast.up, p.contrast.down) == (1, 2)
    assert "it rises in 1, falls in 2 and stays in 1" in p.answer()[0]
    assert "-10.0 points on average from he to she (95 % interval -30.0 to +10.0" in p.answer()[0]


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
            "Neutral words change it by up to -20.0 points (far)."
        )
