"""Where a label of the data meets one of the model, for every rule and its enemy."""

from __future__ import annotations

import pytest

from whence.core.data_labels import Rule, check_mapping, data_labels, match
from whence.core.errors import InputError
from whence.views.data_labels import label_sentences, undecided_sentences

NAMES = ("not-toxic", "toxic")


@pytest.mark.parametrize(
    ("given", "names", "number", "rule"),
    [
        ("toxic", NAMES, 1, Rule.NAME),
        ("TOXIC", NAMES, 1, Rule.CAPITALS),
        ("0", NAMES, 0, Rule.NUMBER),
        ("LABEL_1", ("LABEL_0", "LABEL_1"), 1, Rule.NAME),
        ("1", ("5", "1"), 1, Rule.NAME),  # the enemy takes the number 1 first: also 1, so …
        ("1", ("1", "5"), 0, Rule.NAME),  # … here it says "5"
        ("a", ("A", "a"), 1, Rule.NAME),  # a name in the same capitals goes first
    ],
)
def test_a_label_is_found_by_name_then_capitals_then_number(
    given: str, names: tuple[str, ...], number: int, rule: Rule
) -> None:
    found = match(given, names)
    assert found is not None
    assert (found.number, found.name, found.rule) == (number, names[number], rule)


@pytest.mark.parametrize("given", ["ok", "2", "-1", "1.0", "not_toxic", "", "²"])
def test_what_is_none_of_these_is_no_label_of_the_model(given: str) -> None:
    assert match(given, NAMES) is None


def test_of_two_names_that_differ_by_capitals_none_is_guessed() -> None:
    assert match("aB", ("AB", "ab")) is None


def test_what_the_user_says_goes_first_and_may_be_a_number_too() -> None:
    # the enemy asks the mapping only where the name is unknown
    swapped = {"toxic": "not-toxic", "not-toxic": "1"}
    assert [match(name, NAMES, swapped) for name in NAMES] == [
        match("ignored", NAMES, {"ignored": "toxic"}),
        match("ignored", NAMES, {"ignored": "not-toxic"}),
    ]


def test_texts_are_counted_by_what_their_label_is() -> None:
    met = data_labels(["toxic", "ok", "ok", "fine", None, "Toxic"], NAMES, {"fine": "0"})
    assert (met.texts, met.known_texts, met.unknown_texts, met.unlabelled) == (6, 3, 2, 1)
    assert met.meant == ("toxic", "not-toxic") or met.meant == ("not-toxic", "toxic")


def test_mistyped_labels_of_either_side_are_refused_with_the_nearest() -> None:
    there = ["ok", "toxic"]
    with pytest.raises(InputError, match=r"no text has the label 'okay'.* Did you mean 'ok'\?"):
        check_mapping({"okay": "toxic"}, NAMES, there)
    with pytest.raises(InputError, match=r"no label of this model\. Did you mean 'not-toxic'\?"):
        check_mapping({"ok": "Not_Toxc"}, NAMES, there)
    with pytest.raises(InputError, match="this model has no classes"):
        check_mapping({"ok": "toxic"}, (), there)
    check_mapping({"ok": "not-toxic"}, NAMES, there)


def test_nothing_is_said_of_labels_that_are_plain_from_their_names() -> None:
    assert label_sentences(data_labels(["toxic", "not-toxic"] * 3, NAMES)) == []


def test_counts_in_sentences_are_those_of_the_labels() -> None:
    met = data_labels(["toxic"] * 20 + ["ok"] * 17 + ["fine"] * 3, NAMES)
    (said,) = label_sentences(met)
    assert said.startswith(
        "20 of 40 texts have a label that the model does not have, ok (17), fine"
    )
    (undecided,) = undecided_sentences(met)
    assert "the 20 texts whose label it has are all toxic" in undecided


def test_the_only_label_that_is_left_is_what_an_unknown_one_may_mean() -> None:
    (said,) = label_sentences(data_labels(["toxic", "ok"], NAMES))
    assert "--labels ok=not-toxic" in said
    (said,) = label_sentences(data_labels(["toxic", "ok", "fine"], NAMES))
    assert "--labels fine=…" in said  # the enemy proposes not-toxic for two
