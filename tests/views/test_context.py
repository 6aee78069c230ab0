"""What is said of a context's use, held against the numbers of forged results."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.views.test_context_page import SELECTED, context_use
from whence.core.contextual import ContextUse, Selection
from whence.views.context import answer, context_text

SHORT = Selection(least=0.5, deviations=None, factor=4.0)


def used(
    chances: list[tuple[float, float]],
    scores: list[float] | None = None,
    selection: Selection = SHORT,
    selected: tuple[int, ...] = SELECTED,
    **decoding: str,
) -> ContextUse:
    """Three words, " it fell down", and the end: P with the context and without, and scores."""
    use = context_use(selected=selected)
    every = [*chances, (0.9, 0.9)]
    measured = scores or [3.0, 0.0, 1.5]
    outputs = tuple(
        replace(output, probability=with_it, without=without, score=score)
        for output, (with_it, without), score in zip(
            use.outputs, every, [*measured, 0.0], strict=True
        )
    )
    decoded = {**use.decoding, **decoding}
    return replace(use, outputs=outputs, selection=selection, decoding=decoded)


def said(use: ContextUse) -> str:
    return " ".join(answer(use))


# ---------------------------------------------------------------------- survivors of mutants


@pytest.mark.parametrize(("with_it", "without"), [(0.9, 0.3), (0.3, 0.9), (0.5, 0.5)])
def test_a_word_is_likelier_without_context_only_where_its_probability_says_so(with_it, without):
    """“down” is the likeliest without context too. Would catch: “and be likelier” always said."""
    use = used([(0.9, 0.1), (0.5, 0.5), (with_it, without)])
    written = replace(use, decoding={"max_new_tokens": 4})
    about = next(s for s in answer(written) if "“down” (" in s)
    assert "without context it would stand there too" in about
    assert ("and be likelier" in about) == (without > with_it)


@pytest.mark.parametrize("decoding", [{"given": "text"}, {"do_sample": True}, {"num_beams": 3}])
@pytest.mark.parametrize("with_it", [0.9, 0.3])
def test_what_would_stand_there_instead_is_said_of_what_stands_there_with_context(
    decoding, with_it
):
    """A text that was given need not be the likeliest with the context either.

    Would catch: “elos” (0.19 % with, 48 % without), which “would stand there too”; and “In” (1.3 %
    with the context), of which only “without context “The” would be likelier” was said.
    """
    use = used([(with_it, 0.1), (0.5, 0.5), (with_it, 0.4)])
    said_now = said(replace(use, decoding=decoding))
    assert ("without context “she” would be likelier" in said_now) == (with_it > 0.5)
    assert ("the likeliest without context is “she”" in said_now) == (with_it < 0.5)
    assert ("without context it would stand there too" in said_now) == (with_it > 0.5)
    assert ("without context it would be the likeliest" in said_now) == (with_it < 0.5)


@pytest.mark.parametrize("scores", [[3.0, 0.0, 1.5], [1.5, 0.0, 3.0], [-3.0, 0.0, 1.5]])
def test_words_are_told_from_the_largest_score_whatever_its_sign(scores):
    """Would catch: reading order for the order by size, and scores without their size."""
    told = re.findall(r"“(it|down)” \(\d", said(used([(0.9, 0.1)] * 3, scores)))
    sizes = {"it": abs(scores[0]), "down": abs(scores[2])}
    assert told == sorted(told, key=lambda name: -sizes[name])
    assert set(told) == {"it", "down"}


# ---------------------------------------------------------------------- words not selected


@pytest.mark.parametrize(
    ("chances", "words"),
    [
        ((0.15, 0.0003), "Less far out stands “fell”: 15 % with the context, 0.03 % without."),
        ((0.5, 0.12), "Less far out stands “fell”: 50 % with the context, 12 % without."),
        ((0.0003, 0.15), "Less far out stands “fell”: 0.03 % with the context, 15 % without."),
        ((0.4, 0.15), "The other word is “fell”: 40 % with the context, 15 % without."),
        (
            (0.15, 0.14),
            "The other word, “fell”, hardly changes: 15 % with the context, 14 % without.",
        ),
        ((0.999, 0.8), "The other word is “fell”: 99.9 % with the context, 80 % without."),
        ((0.15, 0.15), "The other word is about as likely without it."),
    ],
)
def test_what_is_said_of_a_word_that_was_not_selected_is_its_change(chances, words):
    use = used([(0.9, 0.1), chances, (0.9, 0.1)], selection=Selection(least=0.5, threshold=1.0))
    assert answer(use)[-1] == words


@pytest.mark.parametrize(
    ("chances", "words"),
    [
        ((9e-5, 9e-7), "Less far out stands “fell”: 0.009 % with the context, 9e−05 % without."),
        ((9e-7, 3.6e-5), "Less far out stands “fell”: 9e−05 % with the context, 0.0036 % without."),
        (
            (9e-5, 3e-5),
            "The other word is “fell”: 0.009 % with the context, 0.003 % without.",
        ),
        ((9e-5, 8.9e-5), "The other word is about as likely without it."),
    ],
)
def test_what_is_shown_as_the_same_is_not_said_to_be_as_likely_where_it_is_not(chances, words):
    """Both were “< 0.01 %”. Would catch: “about as likely without it” of a hundredth."""
    use = used([(0.9, 0.1), chances, (0.9, 0.1)], selection=Selection(least=0.5, threshold=1.0))
    assert answer(use)[-1] == words


@pytest.mark.parametrize("second", [0.45, 0.3, 0.1])
def test_where_no_word_was_selected_there_are_no_others(second):
    """Would catch: “The other words hardly change”, after “No word of the output depends”."""
    none = used([(0.5, second), (0.5, 0.49), (0.5, 0.5)], [0.16, 0.0, 0.1], selected=())
    last = answer(none)[-1]
    assert "other" not in last
    assert "less" not in last.lower()
    assert "“it”" in last
    assert f"50 % with the context, {100 * second:.0f} % without" in last


def test_of_several_others_the_one_that_changes_by_the_largest_factor_is_named():
    several = used([(0.9, 0.1), (0.5, 0.4), (0.5, 0.2)], selected=(0,))
    assert answer(several)[-1] == (
        "Of the other words “down” changes by the largest factor: 50 % with the context, "
        "20 % without."
    )
    hardly = used([(0.9, 0.1), (0.5, 0.45), (0.5, 0.48)], selected=(0,))
    assert answer(hardly)[-1] == (
        "The other words hardly change, by the largest factor “fell”: 50 % with the context, "
        "45 % without."
    )


def test_most_is_not_said_where_points_and_factors_differ():
    """10 % and 6.1 % is a larger factor than 87 % and 73 %, which are more points apart."""
    use = used([(0.9, 0.1), (0.10, 0.061), (0.87, 0.73)], selected=(0,))
    assert answer(use)[-1].startswith("Of the other words “fell” changes by the largest factor: ")


def test_several_that_change_far_are_counted_behind_the_one_that_is_named():
    """Would catch: “Less far out stands “fell”: 15 % …, 0.03 % without, and 1 more.”"""
    use = used([(0.9, 0.1), (0.15, 0.0003), (0.5, 0.01)], selected=(0,))
    assert answer(use)[-1] == (
        "Less far out stand “fell” (15 % with the context, 0.03 % without) and 1 more word."
    )


def test_nothing_is_said_not_to_depend_whose_probability_changes_far():
    """Would catch: “12” (15 % with, 0.03 % without) that “does not depend on the context”."""
    far = used([(0.15, 0.0003), (0.5, 0.5), (0.5, 0.5)], [0.16, 0.0, 0.1], selected=())
    assert "depends on the context" not in said(far)
    assert "No word of the output stands out as depending on the context" in said(far)
    assert "“it”: 15 % with the context, 0.03 % without" in said(far)
    near = used([(0.5, 0.5)] * 3, [0.16, 0.0, 0.1], selected=())
    assert "No word of the output depends on the context: the largest" in said(near)
    above = used([(0.5, 0.5)] * 3, [0.9, 0.9, 0.9], selected=())
    assert "stands out as depending" in said(above)


def test_a_relative_rule_says_which_depend_most():
    """It cannot select more than half, so it is not said that the others do not depend."""
    relative = used([(0.9, 0.1)] * 3, selection=Selection(least=0.5, threshold=1.0))
    assert "2 of 3 given words depend most on the context: “it”, “down”." in said(relative)
    assert "2 of 3 given words depend on the context:" in said(used([(0.9, 0.1)] * 3))
    strongest = used([(0.9, 0.1)] * 3, selection=replace(SHORT, most=2))
    assert "depend most on" in said(strongest)


# ---------------------------------------------------------------------- what was asked


def test_the_first_line_is_the_question_and_what_was_written_or_given():
    asked = "after “It”: which words of it depend on the context?"
    given = used([(0.9, 0.1)] * 3)
    assert answer(given)[0] == f"The text goes on with “it fell down” {asked}"
    written = replace(given, decoding={"max_new_tokens": 4})
    assert answer(written)[0] == f"The model wrote “it fell down” {asked}"
    for use, standing, other in ((given, "given", "written"), (written, "written", "given")):
        shown = context_text(use)
        assert " ".join(shown.split()).startswith(answer(use)[0])
        assert re.search(rf"^{standing} +it fell down", shown, re.MULTILINE)
        page = use.to_html()
        assert page.index(answer(use)[0]) < page.index("of 3 ")
        assert f">{standing}<" in page
        assert f">{other}<" not in page


def test_of_a_divergence_words_are_not_for_or_against_the_written_one():
    """With read="kl" a score says how far all that could stand there moves."""
    use = used([(0.9, 0.1)] * 3)
    targets = {
        number: replace(use.of(number).target, read="kl", index=None, label="it")
        for number in use.selected
    }
    rows = {
        method: tuple(
            replace(use.of(number, method), target=targets[number], scores=np.array(scores))
            for number in use.selected
        )
        for method in use.methods
        for scores in [[-3.0, *[0.0] * (len(use.units) - 2), 1.0]]
    }
    moved = replace(use, rows=rows)
    text = said(moved)
    assert "What could stand in place of “it”" in text
    assert "is moved most by “down" in text
    assert "is kept as it is without context by “So”" in text
    assert "speaks against" not in text
    assert "against" not in re.search(r'<p class="legend">.*?</p>', moved.to_html()).group()


# ---------------------------------------------------------------------- found by reading back


def test_a_word_that_stays_unlikely_does_not_hide_one_that_changes():
    """The enemy: “about as likely without it”, as both of the largest change are below 0.01 %."""
    use = used([(0.9, 0.1), (2e-5, 2e-7), (0.5, 0.2)], selected=(0,))
    assert answer(use)[-1] == (
        "Less far out stands “fell”: 0.002 % with the context, 2e−05 % without."
    )
    alone = used([(0.9, 0.1), (2e-7, 2e-7), (0.5, 0.2)], selected=(0,))
    assert answer(alone)[-1].startswith("Of the other words “down” changes by the largest")


def test_where_nothing_is_selected_there_are_no_other_words():
    """The enemy: “The other words hardly change”, below “No word depends”."""
    none = used([(0.5, 0.5), (0.5, 0.45), (0.5, 0.48)], [0.1, 0.0, 0.1], selected=())
    assert answer(none)[-1].startswith("The words hardly change, by the largest factor “fell”")


def test_all_words_do_not_depend_most():
    """The enemy: “1 of 1 given word depends most on the context”."""
    every = used([(0.9, 0.1)] * 3, selection=replace(SHORT, most=3), selected=(0, 1, 2))
    assert "3 of 3 given words depend on the context:" in said(every)


def test_the_same_word_by_another_id_is_not_likelier_than_itself():
    """The enemy: “it” …; without context “it” would be likelier."""
    use = used([(0.9, 0.1)] * 3)
    outputs = (replace(use.outputs[0], instead="it", instead_id=77), *use.outputs[1:])
    told = said(replace(use, outputs=outputs))
    assert "“it” would be likelier" not in told
    assert told.count("without context it would stand there too") == 2


def test_a_word_would_not_stand_there_of_which_one_token_would_be_another():
    """“it fell” as one word of two tokens, of which the second alone was selected."""
    use = used([(0.5, 0.5), (0.9, 0.1), (0.5, 0.5)], selected=(1,))
    first, second, *rest = use.outputs
    outputs = (replace(first, word=0), replace(second, word=0, instead=second.name), *rest)
    outputs = (outputs[0], replace(outputs[1], instead_id=outputs[1].id), *rest)
    told = said(replace(use, outputs=outputs))
    assert "the likeliest without context is “she”" in told


def test_a_first_sentence_whose_words_were_selected_stands_out():
    """Nothing speaks for them: the enemy says that no word of it stands out."""
    use = used([(0.9, 0.1)] * 3)
    against = {
        method: tuple(replace(row, scores=-np.abs(row.scores) - 1) for row in rows)
        for method, rows in use.rows.items()
    }
    passage = replace(use.passage, kind="sentence")
    two = replace(use, passage=passage, rows=against)
    object.__setattr__(two, "sentences", (range(2), range(2, 4)))
    assert "No word of the first sentence" not in said(two)
