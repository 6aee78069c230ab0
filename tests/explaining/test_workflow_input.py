"""Bad input at the Python level: each has a documented answer.

It is an error that teaches, or a result that says what it left out.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.families import build
from whence.core.errors import (
    InputError,
    ModelError,
    SettingsError,
    TargetError,
    UnknownName,
    Unsupported,
    WhenceError,
)
from whence.core.passage import windows
from whence.core.target import Target
from whence.models.model import Model

METHOD = "gradient-x-input"


@pytest.fixture(scope="module")
def bert() -> Model:
    return build("bert")


CALLS = [
    lambda m, t, **o: whence.explain(m, t, METHOD, **o, evidence=False),
    lambda m, t, **o: whence.compare(m, t, [METHOD], **o),
    whence.attend,
]
SURFACE = pytest.mark.parametrize("call", CALLS, ids=["explain", "compare", "attend"])


@SURFACE
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text is empty or only white space; there is nothing to explain."),
        (" \n\t ", "the text is empty or only white space; there is nothing to explain."),
        ("\x00", "the tokenizer leaves no token of it"),
        (
            "bad \udc80 bytes",
            "lone surrogate U+DC80 at character 4, which is not valid Unicode; "
            "decode the bytes with the right encoding",
        ),
        (
            "the " * 120,
            "the text has 122 tokens and the model's positions end at 64. "
            "Options: overflow='truncate'",
        ),
        (3.5, "this model reads text, not a float."),
    ],
    ids=["empty", "white space", "NUL", "surrogate", "too long", "number"],
)
@pytest.mark.usefixtures("unchecked")
def test_a_text_that_cannot_be_explained_is_an_input_error(
    bert: Model, call: Any, text: Any, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        call(bert, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("unchecked")
def test_a_hundred_thousand_characters_name_the_limit_quickly_and_can_be_truncated(
    bert: Model,
) -> None:
    text = "the food is great. " * 5300
    with pytest.raises(
        InputError,
        match=r"positions end at 64\. Options: overflow='truncate' .*, overflow='window'",
    ):
        whence.explain(bert, text, METHOD)
    a = whence.explain(bert, text, METHOD, overflow="truncate", evidence=False)
    assert len(a.passage) <= 64
    assert a.passage.dropped == len(text) - len(a.passage.text)
    assert "".join(a.units) == text[: len(text) - a.passage.dropped]
    # truncating is explaining the beginning, and nothing else
    alone = whence.explain(bert, a.passage.text, METHOD, evidence=False)
    assert a.scores == pytest.approx(alone.scores, abs=1e-6)


def test_nul_among_words_is_part_of_the_text(bert: Model) -> None:
    a = whence.explain(bert, "the\x00 food", METHOD, evidence=False)
    assert "".join(a.units) == "the\x00 food"


def test_the_windows_of_a_long_text_are_explained_apart_and_share_the_scores(bert: Model) -> None:
    text = "the food is great and the service is not bad but prices are fine " * 5
    a = whence.explain(bert, text, METHOD, target="good", overflow="window", evidence=False)
    pieces = windows(bert.encode(text, overflow="window"), 64)
    assert len(pieces) >= 2
    assert len(a.scores) == len(a.units) == len(bert.encode(text, overflow="window").units)
    assert "".join(a.units) == text
    alone = [whence.explain(bert, p, METHOD, target="good", evidence=False) for p in pieces]  # type: ignore[arg-type]
    # the enemy adds the windows up: the target is their mean, so each counts one part in so many
    assert a.scores == pytest.approx(
        np.concatenate([x.scores for x in alone]) / len(pieces), abs=1e-6
    )
    assert a.value == pytest.approx(np.mean([x.value for x in alone]), abs=1e-6)
    assert a.cost.forwards >= len(pieces)


def test_the_predicted_class_of_windows_is_one_that_of_their_mean(bert: Model) -> None:
    text = "the food is great and the service is not bad but prices are fine " * 5
    pieces = windows(bert.encode(text, overflow="window"), 64)
    mean = bert.logits(pieces).mean(0)
    a = whence.explain(bert, text, METHOD, overflow="window", read="margin", evidence=False)
    assert a.target.index == mean.argmax()
    assert a.target.against_index == np.argsort(mean)[-2]


def test_a_text_that_fits_is_not_changed_by_the_option(bert: Model) -> None:
    plain = whence.explain(bert, "the food is great", METHOD, evidence=False)
    for overflow in ("truncate", "window"):
        a = whence.explain(bert, "the food is great", METHOD, overflow=overflow, evidence=False)
        assert a.scores.tolist() == plain.scores.tolist()
        assert a.passage.dropped == 0


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_way_out_is_refused(bert: Model) -> None:
    with pytest.raises(InputError, match="overflow is one of error, truncate, window, not 'cut'"):
        whence.explain(bert, "the food", METHOD, overflow="cut")


def test_windows_do_not_fit_a_pair_a_map_or_a_masked_model(bert: Model) -> None:
    long = "the food is great " * 30
    with pytest.raises(InputError, match="only a single text can be cut into windows"):
        whence.explain(bert, long, METHOD, pair="is it?", overflow="window")
    with pytest.raises(InputError, match="attention maps are of one run"):
        whence.attend(bert, long, overflow="window")
    with pytest.raises(InputError, match="windows average one class over the text"):
        whence.explain(
            build("bert-mlm"), long, METHOD, target=Target(at=2), overflow="window"
        )  # the enemy reads each window elsewhere


def test_one_word_longer_than_the_model_asks_for_smaller_units() -> None:
    model = build("roberta")
    for overflow in ("window", "truncate"):
        with pytest.raises(InputError, match="use smaller units"):
            whence.explain(model, "qxz" * 40 + " a", METHOD, overflow=overflow)


@SURFACE
def test_the_second_text_of_a_pair_must_be_there_too(bert: Model, call: Any) -> None:
    with pytest.raises(InputError, match="empty or only white space"):
        call(bert, "the food", pair=" ")


def test_an_unknown_method_is_named_with_the_nearest(bert: Model) -> None:
    told = (
        r"no method named 'integrated-gradient'\. Did you mean 'integrated-gradients'\? "
        "Known: anchors, attention-arbiter"
    )
    with pytest.raises(UnknownName, match=told):
        whence.explain(bert, "the food", "integrated-gradient")
    with pytest.raises(UnknownName, match=r"no method named 'xyzzy'\. Known:"):
        whence.compare(bert, "the food", ["random", "xyzzy"])
    with pytest.raises(InputError, match="at least one method"):
        whence.compare(bert, "the food", [])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "excellent",
            "label 'excellent' is not among the 3 labels of this classifier "
            "(0 bad, 1 fair, 2 good).",
        ),
        ("godo", "Did you mean 'good'?"),
        (41, "label 41 is outside the 3 labels of this classifier (0 bad, 1 fair, 2 good)."),
        (-1, "label -1 is outside the 3 labels of this classifier (0 bad, 1 fair, 2 good)."),
        (("good", "good"), "a contrast needs two labels; both are 'good'."),
        (("good", "poor"), "label 'poor' is not among the 3 labels"),
        (
            Target("good", at=1),
            "at= names the unit that a masked language model fills, or the word that a token "
            "classifier tags; this model is neither.",
        ),
    ],
)
@pytest.mark.parametrize("call", CALLS[:2], ids=["explain", "compare"])
def test_a_target_that_does_not_exist_is_a_target_error(
    bert: Model, call: Any, target: Any, message: str
) -> None:
    with pytest.raises(TargetError, match=re.escape(message)):
        call(bert, "the food", target=target)


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_reading_is_a_target_error(bert: Model) -> None:
    with pytest.raises(
        TargetError,
        match=r"read as one of logit, log-probability, probability, margin, .*, not 'odds'",
    ):
        whence.explain(bert, "the food", METHOD, read="odds")


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (
            "integrated-gradients",
            {"node": 3},
            "method 'integrated-gradients': no setting named 'node'. Did you mean 'nodes'?",
        ),
        (
            "integrated-gradients",
            {"nodes": "many"},
            "method 'integrated-gradients', setting 'nodes':",
        ),
        (
            "integrated-gradients",
            {"baseline": "black"},
            "method 'integrated-gradients', setting 'baseline':",
        ),
        (
            "gradient-x-input",
            {"samples": 3},
            "method 'gradient-x-input': it has no settings, so 'samples' means nothing.",
        ),
        ("attention-mean", {"layer": 7}, "layer 7 is outside the 2 layers"),
    ],
)
def test_wrong_settings_are_named(
    bert: Model, method: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        whence.explain(bert, "the food", method, **settings)
    with pytest.raises(SettingsError, match=re.escape(message)):
        whence.compare(bert, "the food", {method: settings})


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ("words", "Did you mean 'word'?"),
        ([99], "section start 99 is outside the text"),
        ([-2], "section start -2 is outside"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_units_that_do_not_exist_are_refused(bert: Model, units: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        whence.explain(bert, "the food", METHOD, units=units)


def test_a_masked_model_must_be_told_where() -> None:
    model = build("bert-mlm")
    with pytest.raises(
        TargetError, match=r"say which, Target\(label, at=…\)\. Units: 0 'the', 1 'food'"
    ):
        whence.explain(model, "the food is great", METHOD)
    for at in (-1, 4):
        with pytest.raises(TargetError, match=f"at={at} is outside the 4 units of this text"):
            whence.explain(model, "the food is great", METHOD, target=Target(at=at))
    a = whence.explain(
        model, "the food is great", METHOD, target=Target("the", at=0), evidence=False
    )
    assert a.target.label == "the"
    assert len(a.scores) == 4


@pytest.mark.parametrize("method", [METHOD, "integrated-gradients", "attention-mean", "random"])
def test_logits_that_are_not_finite_are_a_model_error(method: str) -> None:
    model = build("bert")
    with torch.no_grad():
        model.hf.classifier.weight[0, 0] = math.nan
    with pytest.raises(ModelError, match="not finite"):
        whence.explain(model, "the food", method)


def test_a_model_moved_to_the_meta_device_is_a_model_error() -> None:
    model = build("bert")
    model.hf.to("meta")
    for call in CALLS:
        with pytest.raises(ModelError, match="meta device"):
            call(model, "the food")
    with pytest.raises(ModelError, match="meta device"):
        model.predict(["the food"])


def test_a_model_without_a_head_can_only_attend() -> None:
    model = whence.load(build("bert").hf.bert, tokenizer=build("bert").tokenizer)
    for call in CALLS[:2]:
        with pytest.raises(Unsupported, match="no head"):
            call(model, "the food")
    assert whence.attend(model, "the food").weights["encoder"].shape[0] == 2


def test_one_bad_text_of_a_list_is_an_error_and_an_empty_list_is_empty(bert: Model) -> None:
    assert whence.explain(bert, [], METHOD, evidence=False) == []
    with pytest.raises(InputError):
        whence.explain(bert, ["the food", ""], METHOD)
    assert [
        a.units[0] for a in whence.explain(bert, ["the food", "not bad"], METHOD, evidence=False)
    ] == [
        "the",
        "not",
    ]


def test_text_that_spells_special_tokens_is_scored_like_any_other(bert: Model) -> None:
    a = whence.explain(bert, "good [SEP] not [CLS]", METHOD, evidence=False)
    assert "".join(a.units) == "good [SEP] not [CLS]"
    assert (a.passage.ids == bert.tokenizer.sep_token_id).sum() == 1


def test_every_error_is_ours_and_a_standard_one() -> None:
    for error, standard in [
        (InputError, ValueError),
        (TargetError, ValueError),
        (SettingsError, ValueError),
        (UnknownName, KeyError),
        (Unsupported, NotImplementedError),
        (ModelError, RuntimeError),
    ]:
        assert issubclass(error, WhenceError)
        assert issubclass(error, standard)
        assert str(error("one clear line")) == "one clear line"
