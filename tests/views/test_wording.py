from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.conftest import made
from whence.core.attribution import Cost
from whence.core.sizes import human
from whence.core.target import Target
from whence.views import wording
from whence.views.palette import DARK, LIGHT, colour, ink, levels, terminal_theme


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_acts_on_a_terminal_survives(text):
    shown = wording.visible(text)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.isprintable() or all(
        c.isprintable() or c in wording.JOINERS or ord(c) in wording.TAGS or c.isspace()
        for c in shown
    )
    shown.encode()  # no lone surrogate


@pytest.mark.parametrize(
    "text", ["plain", "中国", "naïve", "👨‍👩‍👧", "👍🏽", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "ภาพยนตร์", "مرحبا"]
)
def test_readable_text_is_left_alone(text):
    assert wording.visible(text) == text


@pytest.mark.parametrize("count", [0, 512, 1000, 4_938_268, 3 * 2**30])
def test_bytes_are_counted_as_in_a_memory_budget(count):
    line = wording.cost(Cost(forwards=1, peak_bytes=count))
    if count:
        assert line.endswith(f"{human(count)} at the peak")  # a GiB called GB would be 7 % off
    else:
        assert "peak" not in line


@pytest.mark.parametrize(
    ("scores", "signed", "shown"),
    [
        ([0.1234, -0.02], True, ["+0.123", "-0.020"]),
        ([123.4, 0.5], False, ["123", "0"]),
        ([0.00042, 0.0], True, ["+0.000420", "0.000000"]),
        ([3e-9], True, ["+3.0e-09"]),
        ([0.0, -0.0], True, ["0.00", "0.00"]),
        ([1e-3, -1e-9], True, ["+0.00100", "0.00000"]),  # rounding to nothing leaves no sign behind
    ],
)
def test_a_column_of_scores_has_one_format(scores, signed, shown):
    assert [wording.score_format(scores, signed)(s) for s in scores] == shown


def test_levels_are_relative_to_the_largest_size_and_keep_the_sign():
    assert levels(made("a b c", scores=[2.0, -4.0, 0.0])).tolist() == [0.5, -1.0, 0.0]
    assert levels(made("a b", scores=[0.0, 0.0])).tolist() == [0.0, 0.0]  # 0/0 would be NaN


def test_colours_tell_for_against_and_unsigned_apart():
    for theme in (DARK, LIGHT):
        ends = {colour(1.0, True, theme), colour(-1.0, True, theme), colour(1.0, False, theme)}
        assert len(ends) == 3
        assert colour(0.01, True, theme) is None


@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_ink_can_be_read_on_every_background(theme):
    def luminance(rgb):
        c = np.asarray(rgb) / 255
        return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    for level in np.linspace(-1, 1, 41):
        for signed in (True, False):
            background = colour(float(level), signed, theme)
            if background is not None:
                dark, light = sorted((luminance(background), luminance(ink(background))))
                assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG AA


def test_the_theme_follows_the_terminal(monkeypatch):
    monkeypatch.delenv("WHENCE_THEME", raising=False)
    monkeypatch.setenv("COLORFGBG", "0;15")
    assert terminal_theme() is LIGHT
    monkeypatch.setenv("WHENCE_THEME", "dark")
    assert terminal_theme() is DARK


def test_a_contrast_of_texts_names_both():
    """Would catch: a difference that is called the log-probability of the first text."""
    target = Target(
        " little cow",
        against=" king of the land",
        read="log-probability",
        ids=(1, 2),
        against_ids=(3, 4, 5),
    )
    both = "the log-probability of “little cow” less that of “king of the land”"
    assert wording.target(target) == both
    difference = made("a b", scores=[1.0, 2.0], target=target, value=-20.413)
    assert wording.value(difference) == f"{both}, −20.41"


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ("log-probability", "the log-probability of each"),
        ("entropy", "the entropy of all that could stand in place of each"),
        ("margin", "the lead of each in score (logit) over the strongest other"),
        ("kl", "the divergence (KL), from the whole input, in the place of each"),
    ],
)
def test_the_scores_of_each_written_token_name_their_reading(read, said):
    assert wording.target_of_each([Target(at=0, read=read)]) == said
