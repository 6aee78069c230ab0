"""Scores from other tools land on the right units, by the characters that they were given for."""

from __future__ import annotations

import json
import warnings
from functools import cache
from importlib import metadata
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import whence
from tests.core.test_passage import passage as toy
from tests.families import build, inputs
from whence.core.attribution import Attribution
from whence.core.errors import InputError, SettingsError, TargetError, Unsupported, WhenceError
from whence.core.passage import Passage
from whence.core.target import Target
from whence.foreign.importers import from_array, from_lime, from_shap, from_words
from whence.foreign.scores import value_of
from whence.models.model import Model

TEXT = "The food isn't great,  but the service is great 👍🏽 é!"
UNITS = [
    "The",
    "food",
    "isn't",
    "great",
    ",",
    "but",
    "the",
    "service",
    "is",
    "great",
    "👍🏽",
    "é",
    "!",
]


@cache
def sentiment() -> Model:
    return whence.load("sentiment")


@pytest.fixture(scope="module")
def model() -> Model:
    return sentiment()


@pytest.fixture(scope="module")
def passage(model: Model) -> Passage:
    return model.encode(TEXT)


def by_hand(model: Model, text: Any, scores: Any, **more: Any) -> Attribution:
    return Attribution.from_scores(model, text, scores, **{"method": "by hand", **more})


def logits_of(model: Model, texts: Any) -> np.ndarray:
    """As a user would write it for lime and shap; these leave texts without a word."""
    return model.logits([model.encode(str(t) if str(t).strip() else ".") for t in texts])


def probabilities_of(model: Model, texts: Any) -> np.ndarray:
    logits = logits_of(model, texts)
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# ------------------------------------------ what an attribution of foreign scores is


def test_one_score_for_each_unit_stays_as_it_is_and_the_target_is_the_models(model: Model) -> None:
    scores = np.linspace(-1, 2, len(UNITS))
    a = by_hand(
        model,
        TEXT,
        scores,
        target="positive",
        read="probability",
        settings={"samples": 7},
        seed=3,
        standard_error=scores**2,
    )
    reference = whence.explain(
        model, TEXT, "random", target="positive", read="probability", evidence=False
    )
    assert list(a.names) == UNITS
    assert a.scores.tolist() == scores.tolist()
    assert a.passage == reference.passage
    assert a.target == reference.target
    assert a.value == pytest.approx(reference.value, abs=1e-6)
    assert a.prediction == pytest.approx(dict(reference.prediction), abs=1e-6)
    assert (a.method, a.version, a.signed) == ("by hand", 0, True)
    assert (a.settings, a.seed) == ({"samples": 7}, 3)
    assert (a.cost.forwards, a.cost.backwards) == (1, 0)
    assert a.provenance.fingerprint == reference.provenance.fingerprint
    assert a.error is not None
    assert a.error.standard_error is not None
    assert a.error.standard_error.tolist() == (scores**2).tolist()
    assert "what it cost there is not counted" in a.error.note


def test_it_is_saved_read_and_shown_like_any_other(model: Model, tmp_path: Any) -> None:
    a = by_hand(model, TEXT, {"great": 1.5}, target="positive", signed=False, method="my-tool")
    assert whence.read(a.save(tmp_path / "a.json")) == a
    assert "my-tool" in str(a)
    assert "my-tool" in a.to_html()
    assert not a.signed


@pytest.mark.parametrize("read", ["logit", "probability", "log-probability", "margin"])
@pytest.mark.parametrize("contrast", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_the_value_is_that_of_the_models_own_arithmetic(
    model: Model, read: Any, contrast: bool, several: bool
) -> None:
    # the enemy takes a softmax where every label has its own sigmoid, or overflows
    logits = np.array([[-3.0, 1.0, 0.5], [800.0, -2.0, 799.0]])
    target = Target(
        "b",
        read=read,
        index=1,
        against="c" if contrast else None,
        against_index=2 if contrast else None,
    )
    config = SimpleNamespace(problem_type="multi_label_classification" if several else None)
    fake = Model(SimpleNamespace(config=config), None, "classification", "fake")
    expected = fake.value(torch.from_numpy(logits), [target, target]).numpy()
    assert [value_of(target, row[None], several) for row in logits] == pytest.approx(expected)
    assert value_of(target, logits, several) == pytest.approx(expected.mean())


def test_a_contrast_and_a_margin_are_resolved_once(model: Model) -> None:
    a = by_hand(model, TEXT, np.ones(13), target=("positive", "negative"))
    logits = logits_of(model, [TEXT])[0]
    assert a.value == pytest.approx(logits[1] - logits[0])
    assert by_hand(model, TEXT, np.ones(13), read="margin").target.against == "negative"


def test_a_text_in_windows_has_the_mean_of_their_values(model: Model) -> None:
    text = "a fine film . " * 200
    p = model.encode(text, overflow="window")
    parts = model.windows(p)
    assert len(parts) > 1
    a = by_hand(model, p, np.arange(len(p.units)), target="positive")
    assert a.value == pytest.approx(model.logits(parts)[:, 1].mean())
    assert a.cost.forwards == len(parts)


def test_the_version_of_the_tool_is_kept_where_its_name_begins_the_methods(model: Model) -> None:
    pytest.importorskip("captum")
    known = by_hand(model, "not bad", [1, 2], method="captum LayerIntegratedGradients")
    assert known.provenance.versions["captum"] == metadata.version("captum")
    unknown = by_hand(model, "not bad", [1, 2], method="nobody's-tool")
    assert set(unknown.provenance.versions) == {"whence", "torch", "transformers"}


def test_other_units_and_an_encoded_passage(model: Model) -> None:
    assert by_hand(model, TEXT, np.arange(15.0), units="token").scores.tolist() == list(range(15))
    assert by_hand(model, "Bad. Not good.", [1.0, 2.0], units="sentence").units == (
        "Bad.",
        " Not good.",
    )
    p = model.encode(TEXT, units="token")
    assert by_hand(model, p, np.arange(15.0)).passage is p
    with pytest.raises(
        InputError, match="units of kind 'token'; encode its text with units='sentence'"
    ):
        by_hand(model, p, np.arange(15.0), units="sentence")


@pytest.mark.parametrize("family", ["gpt2", "t5", "bart-classifier", "vit"])
def test_the_target_of_other_kinds_of_model_is_what_explain_says(family: str) -> None:
    other = build(family)
    (p,) = inputs(other, 1)
    a = by_hand(other, p, np.arange(len(p.units)), read="probability")
    reference = whence.explain(other, p, "random", read="probability", evidence=False)
    assert a.target == reference.target
    assert a.value == pytest.approx(reference.value, rel=1e-5)
    assert a.prediction == pytest.approx(dict(reference.prediction), rel=1e-5)


def test_a_masked_language_model_is_read_where_its_unit_is_masked() -> None:
    masked, text = build("bert-mlm"), "the food is great"
    n = len(masked.encode(text).units)
    a = by_hand(masked, text, np.arange(n), target=Target(at=1))
    reference = whence.explain(masked, text, "random", target=Target(at=1), evidence=False)
    assert (a.target, a.passage) == (reference.target, reference.passage)
    assert a.value == pytest.approx(reference.value, rel=1e-6)
    with pytest.raises(TargetError, match="predicts at a masked unit"):
        by_hand(masked, text, np.arange(n))


def test_no_other_model_is_read_at_a_unit(model: Model) -> None:
    with pytest.raises(TargetError, match="this model is neither"):
        by_hand(model, "not bad", [1, 2], target=Target("positive", at=1))


# ---------------------------------------------------------------------- tokens, spans, words


def test_scores_of_tokens_are_merged_by_the_named_rule_with_and_without_special_ones(
    passage: Passage,
) -> None:
    every = np.random.default_rng(0).normal(size=len(passage))
    inside = passage.unit_of >= 0
    for rule in ("sum", "mean", "max", "norm"):
        expected = passage.merge(every, rule).tolist()
        assert from_array(every, passage, merge=rule).units[:, 0].tolist() == expected
        assert from_array(every[inside], passage, merge=rule).units[:, 0].tolist() == expected
        named = from_array(every, passage, tokens=passage.tokens, merge=rule)
        assert named.units[:, 0].tolist() == expected
    placed = from_array(every, passage)
    assert placed.outside[0] == pytest.approx(every[~inside].sum())
    assert placed.units.sum() + placed.outside[0] == pytest.approx(every.sum())


@pytest.mark.parametrize("shape", ["1 token", "1 token dim", "token dim", "tuple", "bfloat16"])
def test_tensors_as_captum_gives_them(passage: Passage, shape: str) -> None:
    n = len(passage)
    row = torch.arange(n, dtype=torch.float64, requires_grad=True)
    wide = torch.stack([row, 2 * row, -row], -1)  # sums to twice the row
    given: Any = {
        "1 token": row[None],
        "1 token dim": wide[None],
        "token dim": wide,
        "tuple": (wide[None],),
        "bfloat16": row[None].to(torch.bfloat16),
    }[shape]
    expected = passage.merge(row.detach().numpy())
    if shape in ("1 token dim", "token dim", "tuple"):
        expected = 2 * expected
    assert from_array(given, passage).units[:, 0].tolist() == expected.tolist()


def test_tokens_of_another_tokenizer_are_found_in_reading_order(passage: Passage) -> None:
    # the enemy finds "the" of "The", or "is" inside "isn't", or the first "great" twice
    words = [
        "[CLS]",
        "food",
        "is",
        "n't",
        " great",
        ",",
        "but",
        "the ",
        "service",
        "is",
        "great",
        "[SEP]",
    ]
    placed = from_array(2.0 ** np.arange(12), passage, tokens=words)
    assert placed.units[:, 0].tolist() == [0, 2, 4 + 8, 16, 32, 64, 128, 256, 512, 1024, 0, 0, 0]
    assert placed.outside.tolist() == [1 + 2048]
    assert placed.unscored == 4


def test_pieces_that_make_up_the_text_need_no_search(passage: Passage) -> None:
    pieces = ["The food is", "n't great,  but the ser", "vice is great 👍🏽 é!"]
    units = from_array([10.0, 100.0, 1000.0], passage, tokens=pieces).units[:, 0]
    # characters that are no white space:
    # 3 + 4 + 2, then 3 + 5 + 1 + 3 + 3 + 3, then 4 + 2 + 5 + 2 + 1 + 1
    first, second, third = 10 / 9, 100 / 18, 1000 / 15
    expected = [
        3 * first,
        4 * first,
        2 * first + 3 * second,
        5 * second,
        second,
        3 * second,
        3 * second,
        3 * second + 4 * third,
    ]
    assert units == pytest.approx([*expected, 2 * third, 5 * third, 2 * third, third, third])
    assert units.sum() == pytest.approx(1110)


def test_white_space_around_a_piece_belongs_to_it_and_not_to_the_next_unit(
    passage: Passage,
) -> None:
    # the enemy counts the space behind "The ", which is the unit " food"'s
    assert from_array([1.0], passage, spans=[(0, 4)]).units[:2, 0].tolist() == [1, 0]
    # nothing but white space: it goes where it stands
    assert from_array([1.0], passage, spans=[(21, 23)]).units[5, 0] == 1
    nothing = from_array([1.0], passage, spans=[(3, 3)])
    assert (nothing.units.any(), nothing.outside.tolist(), nothing.unscored) == (False, [1.0], 13)


def test_spans_in_a_pair_name_their_part(model: Model) -> None:
    p = model.encode("so good", "so bad")
    placed = from_array([1.0, 2.0, 4.0], p, spans=[(3, 7), (1, 0, 2), (1, 3, 6)])
    assert placed.units[:, 0].tolist() == [0, 1, 2, 4]
    by_token = from_array([1.0, 2.0, 4.0], p, tokens=["good", "so", "bad"])
    assert by_token.units[:, 0].tolist() == [0, 1, 2, 4]
    assert from_words({"so": 1.0, "good": 2.0}.items(), p).units[:, 0].tolist() == [1, 2, 1, 0]


def test_a_word_gives_its_score_to_every_occurrence_and_once_to_a_unit(model: Model) -> None:
    scores = {"great": 2.0, "isn": 1.0, "t": 0.5, "👍🏽": 3}
    a = by_hand(model, TEXT, scores, target="positive")
    assert a.scores.tolist() == [0, 0, 1.5, 2, 0, 0, 0, 0, 0, 2, 3, 0, 0]
    assert a.detail is not None
    assert a.detail["unscored_units"] == 9
    from_list = by_hand(model, TEXT, list(scores.items()), target="positive")
    assert from_list.scores.tolist() == a.scores.tolist()
    # the enemy gives a sentence that says "great" twice the weight twice:
    # lime's feature is there, or it is not
    assert by_hand(model, TEXT, {"great": 2.0}, units="sentence").scores.tolist() == [2.0]


def test_a_word_is_found_whole_and_not_inside_another(model: Model) -> None:
    assert from_words([("is", 1.0)], model.encode("this is Isis")).units[:, 0].tolist() == [0, 1, 0]
    assert from_words([("e", 1.0)], model.encode("e e\u0301 ee")).units[:, 0].tolist() == [1, 0, 0]
    # no space says where the word ends
    assert from_words([("好", 1.0)], model.encode("很好吃")).units[:, 0].tolist() == [0, 1, 0]


# ------------------------------------------ what cannot be right is refused


@pytest.mark.parametrize(
    ("scores", "more", "message"),
    [
        ([1.0, 2.0], {}, r"2 scores for 3 units \(5 tokens, 7 with the special ones\)"),
        ([], {}, "0 scores for 3 units"),
        (1.0, {}, "these are a single number"),
        (np.zeros((2, 7, 4)), {}, "these are 2 × 7 × 4"),
        ([1.0, float("nan"), 1.0], {}, "score 1 of 3 is not finite: nan"),
        ({"bad": float("inf")}, {}, "score 0 of 1 .of 'bad'. is not finite"),
        (["a", "b", "c"], {}, "not numbers"),
        ([[1.0], [2.0, 3.0], [1.0]], {}, "not numbers"),
        (
            {"Bad": 1.0},
            {},
            "the word 'Bad' does not occur in the text .It isn't bad.. Did you mean 'bad'",
        ),
        ({"": 1.0}, {}, "the word '' does not occur"),
        ({}, {}, "no word has a score"),
        ({0: 1.0}, {}, "scores of words; 0 is a int"),
        ([("bad", 1.0), ("bad ", 2.0)], {}, "'bad' has two scores, and nothing says which"),
        ([1.0, 2.0], {"tokens": ["It", "isn't", "bad"]}, "2 scores for 3 tokens"),
        ([1.0, 2.0], {"spans": [(0, 2)]}, "2 scores for 1 spans"),
        (
            [1.0, 2.0],
            {"tokens": ["bad", "It"]},
            "token 1, 'It', is not found in the text behind character 12",
        ),
        ([1.0], {"spans": [(0, 13)]}, r"the span \(0, 13\) is none of this text"),
        ([1.0], {"spans": [(1, 0, 2)]}, r"the span \(1, 0, 2\) is none of this text"),
        ([1.0], {"spans": [(3, 2)]}, r"the span \(3, 2\) is none"),
        ([1.0], {"spans": [(3,)]}, r"the span \(3,\) is none"),
        ([1.0, 2.0, 3.0], {"standard_error": [1.0]}, "1 standard errors for 3 units"),
        ([1.0, 2.0, 3.0], {"standard_error": [1.0, -1.0, 0.0]}, "not negative"),
    ],
)
def test_wrong_input_says_what_was_wrong(
    model: Model, scores: Any, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        by_hand(model, "It isn't bad", scores, **more)


@pytest.mark.parametrize(
    ("scores", "more", "message"),
    [
        ([1.0, 2.0, 3.0], {"method": None}, "say what made these scores"),
        ([1.0, 2.0, 3.0], {"merge": "mean"}, "merge='mean' is a rule for the model's own tokens"),
        ([1.0] * 7, {"merge": "average"}, "not 'average'"),
        ([1.0], {"spans": [(0, 2)], "merge": "max"}, "merge='max' is a rule"),
        ([1.0], {"spans": [(0, 2)], "tokens": ["It"]}, "not by both"),
        ({"bad": 1.0}, {"tokens": ["bad"]}, "words are found in the text by themselves"),
    ],
)
def test_wrong_settings_say_what_was_wrong(
    model: Model, scores: Any, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        by_hand(model, "It isn't bad", scores, **more)


def test_a_model_a_target_and_a_text_are_needed(model: Model) -> None:
    with pytest.raises(InputError, match=r"pass whence\.load"):
        Attribution.from_scores("sentiment", "not bad", [1, 2], method="x")
    with pytest.raises(TargetError, match="'happy' is not among the 2 labels"):
        by_hand(model, "not bad", [1, 2], target="happy")
    with pytest.raises(InputError, match="empty or only white space"):
        by_hand(model, " ", [1])
    with pytest.raises(Unsupported, match="no head"):
        by_hand(whence.load(model.hf.bert, tokenizer=model.tokenizer), "not bad", [1, 2])


def test_an_image_has_no_characters() -> None:
    image = Passage("", *_image())
    assert from_array([1.0, 2.0], image).units[:, 0].tolist() == [1, 2]
    with pytest.raises(InputError, match="one score for each of its patches"):
        from_array([1.0], image, spans=[(0, 1)])


# ---------------------------------------------------------------------- any text


STRANGE = [
    "e\u0301",
    "👍🏽",
    "👨\u200d👩\u200d👧",
    "\u200d",
    "\u202e",
    "ß",
    "İ",
    "[SEP]",
    "##",
    "\u00a0",
    "\r\n",
    *"ab'. ,\n\t\0[]#3é好ไทยمرحبا",
]
ODD = st.lists(
    st.sampled_from(STRANGE) | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=25
).map("".join)


@settings(max_examples=80, derandomize=True)
@given(ODD, st.sampled_from(["word", "token", "sentence"]), st.integers(0, 2**32 - 1))
def test_scores_of_units_come_back_whichever_way_they_are_given(
    text: str, units: Any, seed: int
) -> None:
    model = sentiment()
    try:
        p = model.encode(text, units=units)
    except InputError:
        assume(False)
        return
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=len(p.units))
    assert from_array(scores, p).units[:, 0].tolist() == scores.tolist()
    # one token of each unit has its score: the special ones and the others have none
    first = np.zeros(len(p))
    first[[int(np.flatnonzero(p.unit_of == u)[0]) for u in range(len(scores))]] = scores
    assert from_array(first, p).units[:, 0].tolist() == scores.tolist()
    if all(p.units):  # of the byte-pieces of one character only the first has it
        by_token = from_array(scores, p, tokens=list(p.units))
        assert by_token.units[:, 0] == pytest.approx(scores)
        by_span = from_array(scores, p, spans=[(start, end) for _, start, end in p.unit_spans])
        assert by_span.units[:, 0] == pytest.approx(scores)
    # cut anywhere, the sum is kept
    cuts = sorted({0, len(text), *rng.integers(0, len(text) + 1, size=5).tolist()})
    pieces = rng.normal(size=len(cuts) - 1)
    spans = list(pairwise(cuts))
    tokens = [text[start:end] for start, end in spans]
    for placed in (from_array(pieces, p, spans=spans), from_array(pieces, p, tokens=tokens)):
        assert placed.units.sum() + placed.outside.sum() == pytest.approx(pieces.sum())
        assert not placed.outside.any()


@settings(max_examples=60, derandomize=True)
@given(ODD)
def test_words_by_name_reach_each_unit_of_that_name(text: str) -> None:
    model = sentiment()
    try:
        p = model.encode(text)
    except InputError:
        assume(False)
        return
    names = [u.strip() for u in p.units]
    assume(all(names))
    for name in set(names):
        units = from_words([(name, 1.0)], p).units[:, 0]
        assert all(units[i] == 1 for i, n in enumerate(names) if n == name)


@settings(max_examples=60, derandomize=True)
@given(
    ODD,
    st.lists(st.tuples(st.text(max_size=3), st.floats()), max_size=4)
    | st.lists(st.floats(), max_size=9),
)
def test_anything_else_is_an_attribution_or_a_clear_error(text: str, scores: Any) -> None:
    try:
        a = by_hand(sentiment(), text, scores)
    except WhenceError:
        return
    assert np.isfinite(a.scores).all()
    assert json.dumps(a.to_dict(), allow_nan=False)


def test_a_long_text_is_quick(model: Model) -> None:
    # the enemy holds a table of pieces × units, or searches every unit for every word
    p = toy([2] * 10_000)
    placed = from_array(np.ones(30_000), p, spans=[(i, i + 1) for i in range(29_999)] + [(0, 0)])
    assert placed.units.sum() == 29_999


# ---------------------------------------------------------------------- the real packages


@pytest.mark.parametrize("bow", [True, False])
def test_lime(model: Model, bow: bool) -> None:
    lime_text = pytest.importorskip(
        "lime.lime_text", reason="lime is an optional peer: pip install lime"
    )
    explainer = lime_text.LimeTextExplainer(
        class_names=["negative", "positive"], bow=bow, random_state=0
    )
    explanation = explainer.explain_instance(
        TEXT, lambda t: probabilities_of(model, t), num_samples=40, num_features=50, labels=[0, 1]
    )
    a = Attribution.from_scores(model, TEXT, explanation, target="positive")
    by_place = dict(explanation.as_list(label=1, positions=True))
    first_great = by_place["great_15-42" if bow else "great_15"]
    second_great = by_place["great_15-42" if bow else "great_42"]
    expected = [
        by_place["The_0"],
        by_place["food_4"],
        by_place["isn_9"] + by_place["t_13"],
        first_great,
        0.0,  # the comma
        by_place["but_23"],
        by_place["the_27"],
        by_place["service_31"],
        by_place["is_39"],
        second_great,
        0.0,  # the thumb
        by_place["é_51"],
        0.0,  # the exclamation mark
    ]
    assert a.scores.tolist() == pytest.approx(expected)
    assert a.method == "lime (package)"
    assert a.settings == {
        "bow": bow,
        "features": 10 if bow else 11,
        "fit": pytest.approx(explanation.score),
    }
    # lime was given probabilities, and that is found out
    assert a.target.describe() == "probability of positive"
    assert a.value == pytest.approx(explanation.predict_proba[1], abs=1e-6)
    assert a.provenance.versions["lime"] == metadata.version("lime")
    assert a.error is not None
    assert "not the same number" not in a.error.note
    other = Attribution.from_scores(model, TEXT, explanation, target="negative")
    assert other.scores == pytest.approx(-a.scores)  # two probabilities that add up to one
    contrast = Attribution.from_scores(model, TEXT, explanation, target=("positive", "negative"))
    assert contrast.scores == pytest.approx(2 * a.scores)
    assert contrast.value == pytest.approx(2 * a.value - 1, abs=1e-6)
    # the predicted one of several
    assert Attribution.from_scores(model, TEXT, explanation).target.label == "positive"


def test_lime_explains_the_labels_that_it_was_asked_for_by_name(model: Model) -> None:
    lime_text = pytest.importorskip("lime.lime_text")
    swapped = lime_text.LimeTextExplainer(class_names=["positive", "negative"], random_state=0)
    # the enemy goes by index: here label 1 is the negative one
    explanation = swapped.explain_instance(
        TEXT, lambda t: probabilities_of(model, t)[:, ::-1], num_samples=40, num_features=3
    )
    a = Attribution.from_scores(model, TEXT, explanation)
    assert a.target.label == "negative"
    assert a.value == pytest.approx(explanation.predict_proba[1], abs=1e-6)
    assert a.error is not None
    assert "units came without a score" in a.error.note
    with pytest.raises(TargetError, match="explained negative, not 'positive'"):
        Attribution.from_scores(model, TEXT, explanation, target="positive")
    with pytest.raises(InputError, match=r"lime explained the text .The food"):
        Attribution.from_scores(model, "another text", explanation)
    with pytest.raises(SettingsError, match="knows its own pieces"):
        Attribution.from_scores(model, TEXT, explanation, tokens=["The"])
    nameless = lime_text.LimeTextExplainer(random_state=0)
    explanation = nameless.explain_instance(
        TEXT, lambda t: probabilities_of(model, t), num_samples=40
    )
    # lime's label 1 is ours
    assert Attribution.from_scores(model, TEXT, explanation).target.label == "positive"


def test_lime_of_another_model_is_noticed(model: Model) -> None:
    lime_text = pytest.importorskip("lime.lime_text")

    def other(texts: Any) -> np.ndarray:
        lengths = np.array([[len(t)] for t in texts])
        return np.tile([0.4, 0.6], (len(texts), 1)) + np.array([[-1e-3, 1e-3]]) * lengths

    explanation = lime_text.LimeTextExplainer(random_state=0).explain_instance(
        TEXT, other, num_samples=40
    )
    a = Attribution.from_scores(model, TEXT, explanation, read="probability")
    assert a.error is not None
    warning = (
        "the tool explained an output of 0.653, "
        "and here the probability of positive is 0.9714: not the same number"
    )
    assert warning in a.error.note


def test_lime_by_characters_and_where_a_nul_stands_in_the_text(model: Model) -> None:
    lime_text = pytest.importorskip("lime.lime_text")
    text = "good \0bad \0fine"
    indexed = lime_text.IndexedString(text, bow=False)
    # lime's own places are off by the NULs
    assert indexed.string_position(2).tolist() != [text.index("fine")]
    explanation = SimpleNamespace(
        domain_mapper=lime_text.TextDomainMapper(indexed),
        as_map=lambda: {1: [(0, 1.0), (1, -2.0), (2, 4.0)]},
        class_names=None,
        score=0.5,
    )
    assert from_lime(explanation, model.encode(text)).units[:, 0].tolist() == [1, -2, 4]
    letters = lime_text.IndexedCharacters("so bad", bow=False)
    explanation = SimpleNamespace(
        domain_mapper=lime_text.TextDomainMapper(letters),
        as_map=lambda: {0: [(i, 2.0**i) for i in range(6)]},
        class_names=None,
        score=0.5,
    )
    assert from_lime(explanation, model.encode("so bad")).units[:, 0].tolist() == [
        3,
        4 + 8 + 16 + 32,
    ]
    with pytest.raises(InputError, match="none of a text"):
        from_lime(SimpleNamespace(domain_mapper=object()), model.encode("so bad"))


@pytest.fixture(scope="module")
def shap() -> Any:
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("NUMBA_DISABLE_JIT", "1")  # compiling takes longer than all these tests
        return pytest.importorskip("shap", reason="shap is an optional peer: pip install shap")


@pytest.mark.parametrize("pieces", ["regex", "tokenizer"])
def test_shap(model: Model, shap: Any, pieces: str) -> None:
    masker = shap.maskers.Text(r"\W+" if pieces == "regex" else model.tokenizer)
    explainer = shap.Explainer(
        lambda t: probabilities_of(model, t), masker, output_names=["negative", "positive"]
    )
    explanation = explainer([TEXT], max_evals=40, silent=True)
    a = Attribution.from_scores(model, TEXT, explanation, target="positive")
    score = explanation.values[0][:, 1]
    data = [str(d) for d in explanation.data[0]]
    if pieces == "regex":
        assert data == [
            "The ",
            "food ",
            "isn'",
            "t ",
            "great,  ",
            "but ",
            "the ",
            "service ",
            "is ",
            "great 👍🏽 ",
            "é",
        ]
        comma, thumb = score[4] / 6, score[9] * 2 / 7
        isnt = score[2] + score[3]
        expected = [
            *score[:2],
            isnt,
            score[4] - comma,
            comma,
            *score[5:9],
            score[9] - thumb,
            thumb,
            score[10],
            0,
        ]
    else:
        assert [d.strip() for d in data] == ["", "The", "food", "isn", "'", "t", *UNITS[3:], ""]
        expected = [*score[1:3], score[3:6].sum(), *score[6:16]]
        assert a.detail is not None
        assert a.detail["outside"] == pytest.approx(score[0] + score[16])
    assert a.scores == pytest.approx(np.array(expected))
    assert (a.method, a.target.describe()) == ("shap (package)", "probability of positive")
    assert a.detail is not None
    assert a.detail["output"] == pytest.approx(explanation.base_values[0][1] + score.sum())
    assert a.value == pytest.approx(probabilities_of(model, [TEXT])[0, 1], abs=1e-6)
    for same in (explanation[0], explanation[0, :, "positive"], explanation[0, :, 1]):
        assert Attribution.from_scores(model, TEXT, same).to_dict()["scores"] == a.scores.tolist()
    with pytest.raises(TargetError, match="explained positive, not 'negative'"):
        Attribution.from_scores(model, TEXT, explanation[0, :, "positive"], target="negative")
    with pytest.raises(InputError, match="is not found in the text"):
        Attribution.from_scores(model, "another text", explanation)


def test_shap_of_logits_of_one_output_and_of_several_texts(model: Model, shap: Any) -> None:
    texts = ["not bad", "not good at all"]
    explainer = shap.Explainer(lambda t: logits_of(model, t), shap.maskers.Text(r"\W+"))
    explanation = explainer(texts, max_evals=20, silent=True)
    a = Attribution.from_scores(model, texts[1], explanation[1], target=1)
    assert a.target.describe() == "logit of positive"
    assert a.scores == pytest.approx(explanation[1].values[:, 1])
    with pytest.raises(
        InputError, match=r"holds 2 texts; pass one of them, as in explanation\[0\]"
    ):
        Attribution.from_scores(model, texts[1], explanation)
    margin = shap.Explainer(
        lambda t: np.diff(logits_of(model, t))[:, 0], shap.maskers.Text(r"\W+")
    )([texts[0]], max_evals=20, silent=True)
    b = Attribution.from_scores(model, texts[0], margin[0], target=("positive", "negative"))
    assert b.scores == pytest.approx(margin[0].values)
    assert b.target.describe() == "logit of positive rather than negative"
    assert b.value == pytest.approx(margin[0].base_values + margin[0].values.sum(), abs=1e-5)


def test_shap_of_a_table_is_refused(shap: Any) -> None:
    p = toy([1, 1])
    with pytest.raises(InputError, match="no pieces of text"):
        from_shap(shap.Explanation(np.ones(2), 0.0, np.array([3.0, 4.0])), p)
    with pytest.raises(InputError, match="no pieces of text"):
        from_shap(shap.Explanation(np.ones(2), 0.0), p)
    with pytest.raises(InputError, match="3 shap values for 2 pieces"):
        from_shap(
            SimpleNamespace(values=np.ones(3), base_values=0.0, data=["a", "b"], output_names=None),
            p,
        )


def test_captum(model: Model) -> None:
    attr = pytest.importorskip(
        "captum.attr", reason="captum is an optional peer: pip install 'whence[test]'"
    )
    p = model.encode(TEXT)
    ids = torch.tensor(p.ids)[None]

    def logits(ids: torch.Tensor) -> torch.Tensor:
        return model.hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits

    tensor = attr.LayerGradientXActivation(logits, model.input_embeddings).attribute(ids, target=1)
    assert tensor.shape[:2] == (1, len(p))
    a = by_hand(model, p, tensor, method="captum LayerGradientXActivation", target="positive")
    ours = whence.explain(model, p, "gradient-x-input", target="positive", evidence=False)
    np.testing.assert_allclose(a.scores, ours.scores, rtol=1e-4, atol=1e-6)
    assert (a.target, a.passage) == (ours.target, ours.passage)


# ------------------------------------------ what the tests above are made of


def _image() -> tuple[Any, ...]:
    two = np.zeros(2, dtype=np.int64)
    return (
        two - 1,
        ("0,0", "0,1"),
        np.zeros((2, 2), dtype=np.int64),
        two,
        np.arange(2),
        ((0, 0, 0), (0, 0, 1)),
        "patch",
        None,
        None,
        np.zeros((1, 2, 4)),
    )
