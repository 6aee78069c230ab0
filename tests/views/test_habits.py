"""What heads do, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.core.test_heads import shifted, to_place
from tests.views.test_attention import maps_of, two_sided
from whence.views.habits import does, habits, links
from whence.views.heads import maps_view
from whence.views.terminal import to_text

LABELS = ["[CLS]", "so", ",", "so", "[SEP]"]


def known(*heads: np.ndarray):
    """Maps of one layer whose heads do what is known."""
    maps = maps_of(LABELS, layers=1, heads=len(heads))
    maps.weights["encoder"][:] = np.stack(heads)[None]
    return maps


def test_each_head_has_its_sentence() -> None:
    even = np.full((5, 5), 0.2)
    mixed = 0.3 * to_place(0) + 0.3 * shifted(-1) + 0.4 * to_place(2)
    table = known(
        shifted(-1), shifted(1), to_place(0), to_place(4), to_place(1), even, mixed
    ).heads()
    said = [does(table, 0, head) for head in range(7)]
    assert said[:6] == [
        "looks mostly at the token before (100 % of its attention)",
        "looks mostly at the token after (100 % of its attention)",
        "looks mostly at the first token “[CLS]” (100 % of its attention)",
        "looks mostly at special tokens (100 % of its attention)",
        "looks mostly at the token “so” (100 % of its attention)",
        "looks at all tokens about alike",
    ]
    assert said[6] == (
        "has no single habit: it looks at the token before (48 %) and at punctuation (46 %), "
        "among others"
    )


def test_no_place_is_told_twice_under_two_names() -> None:
    """Would catch: “looks at the first token “they” (33 %) and at the word “they” (33 %)”."""
    # a decoder looks at a text of another model, so that its first token is a word
    maps = replace(known(0.4 * to_place(1) + 0.6 * np.full((5, 5), 0.2)))
    axis = replace(maps.to_axis["encoder"], special=np.zeros(5, dtype=bool))
    at_first = 0.35 * to_place(0) + 0.65 * np.full((5, 5), 0.2)
    at_comma = 0.35 * to_place(2) + 0.65 * np.full((5, 5), 0.2)
    for weights, told, not_told in (
        (at_first, "at the first token “[CLS]” (48 %)", "the token “[CLS]”"),
        (at_comma, "at punctuation (48 %)", "the token “,”"),
    ):
        maps.weights["encoder"][:] = weights
        table = replace(maps, to_axis={"encoder": axis}).heads()
        table = replace(table, columns={**table.columns, "breadth": np.zeros((1, 1))})
        said = does(table, 0, 0)
        assert told in said
        assert not_told not in said


def test_what_most_heads_do_comes_first_and_mixed_heads_last() -> None:
    even = np.full((5, 5), 0.2)
    mixed = 0.5 * np.eye(5)[[0, 1, 2, 1, 4]] + 0.5 * even
    listed = habits(known(shifted(1), shifted(-1), even, shifted(-1) * 0.9 + even * 0.1).heads())
    assert [(h.pattern, h.heads, h.head) for h in listed] == [
        ("previous", 2, 1),  # the clearest of the two
        ("next", 1, 0),
        ("broad", 1, 2),
    ]
    assert habits(known(mixed, shifted(1)).heads())[-1].pattern in ("mixed", "self")


def test_links_leave_out_special_tokens_and_the_word_itself() -> None:
    maps = known(np.array([[0.9, 0.1, 0, 0, 0]] + [[0.5, 0.3, 0.05, 0.1, 0.05]] * 4))
    found = links(maps, maps.opening())
    assert [(a, b) for a, b, _ in found] == [(",", "so"), ("so (2)", "so"), ("so", "so (2)")]


def test_the_terminal_says_it_and_stays_short() -> None:
    shown = to_text(lambda _: maps_view(known(shifted(-1), to_place(0))), width=100)
    assert "Of 2 heads, 1 looks mostly at the token before" in shown
    assert "“[CLS]” and “[SEP]” take" in shown
    assert shown.count("\n") < 25


def test_cross_attention_comes_first() -> None:
    shown = to_text(lambda _: maps_view(two_sided()), width=100)
    places = [shown.index(f"{kind} attention: what") for kind in ("cross", "encoder", "decoder")]
    assert places == sorted(places)
    assert "Worth a look: cross attention, layer" in shown


def test_hostile_names_can_only_be_read() -> None:
    maps = known(to_place(1))
    own = maps.to_axis["encoder"]
    own = replace(own, labels=("[CLS]", "\x1b[31m", ",", "so", "[SEP]"))
    maps = replace(maps, from_axis={"encoder": own}, to_axis={"encoder": own})
    assert "\x1b" not in to_text(lambda _: maps_view(maps), width=100)


def test_a_short_text_links_no_distant_words() -> None:
    """The enemy: "links distant words so strongly", of two words side by side."""
    maps = maps_of(["a", "b"], layers=1, heads=2, part=[0, 0])
    maps.weights["encoder"][:] = np.array([[[0, 1.0], [1, 0]], [[1, 0], [0, 1]]])
    shown = to_text(lambda _: maps_view(maps), width=200)
    assert "distant" not in shown
    assert "because no other head looks more strongly at one place." in shown


def test_of_heads_that_do_the_same_none_does_it_more() -> None:
    """The enemy: "no other head links distant words so strongly", of two equal heads."""
    shown = to_text(lambda _: maps_view(known(to_place(1), to_place(1))), width=200)
    assert "so strongly" not in shown
    assert "no other head links distant words more strongly" in shown


def test_two_places_of_one_name_are_not_the_first_token() -> None:
    """The enemy: "The first token “x” take 60 %", of a text that ends in it, too."""
    maps = maps_of(["x", "a", "x"], layers=1, heads=1, part=[-1, 0, -1], causal=True)
    shown = to_text(lambda _: maps_view(maps), width=200)
    assert "“x” take " in shown
    assert "The first token “x” take " not in shown


def test_the_mean_of_heads_is_no_head() -> None:
    maps = replace(maps_of(LABELS, layers=2, heads=1), kept_heads=("mean",))
    shown = to_text(lambda _: maps_view(maps), width=200)
    assert "Of 2 layers, each by the mean of its heads, " in shown
    assert "Worth a look: layer" in shown
    assert ", the mean of its heads" in shown
