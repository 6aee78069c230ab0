"""Two texts, and two lists of words in many sentences."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.errors import InputError, TargetError, Unsupported

FIRST, SECOND = "the nurse was late . He", "the nurse was late . She"
LINES = [
    "{} was late again",
    "we liked {} a lot",
    "nobody saw {} there",
    "it is about {}",
    "{} made it worth a look",
]
# Student's quantile at 0.975 with four degrees of freedom, from a printed table
T4 = 2.776445


@pytest.fixture(scope="module")
def sentiment():
    return whence.load("sentiment")


def share(model, text: str, label: str) -> float:
    return model.predict([text])[0].probabilities[label]


def test_both_predictions_are_those_of_the_model(sentiment) -> None:
    p = whence.probe(sentiment, FIRST, SECOND, target="positive")
    for said, text in zip(p.predictions, (FIRST, SECOND), strict=True):
        assert said["positive"] == pytest.approx(share(sentiment, text, "positive"))
    assert p.values == pytest.approx([said["positive"] for said in p.predictions])
    assert p.reading is not None
    assert p.reading.name == "probability of positive"


def test_a_control_is_a_probe_of_its_own(sentiment) -> None:
    p = whence.probe(sentiment, FIRST, SECOND, target="positive")
    assert p.controls
    for control in p.controls:
        texts = [FIRST.replace("He", word.capitalize()) for word in (control.first, control.second)]
        values = [share(sentiment, text, "positive") for text in texts]
        assert control.value == pytest.approx(values[1] - values[0], abs=1e-6)
        own = whence.probe(sentiment, *texts, control=[])
        assert control.largest == pytest.approx(own.largest, abs=1e-6)
    assert any("neutral words do" in line for line in p.answer())


def test_the_target_of_a_control_is_that_of_the_first_text(sentiment) -> None:
    # would catch a control that explains its own prediction: "dull" and "wonderful" turn it round
    p = whence.probe(sentiment, "it is dull", "it is awful", control=[("great", "wonderful")])
    great, wonderful = (share(sentiment, f"it is {w}", "negative") for w in ("great", "wonderful"))
    assert p.reading is not None
    assert p.reading.of == "negative"
    assert p.controls[0].value == pytest.approx(wonderful - great, abs=1e-6)


def test_words_that_the_model_does_not_know_are_no_control(sentiment) -> None:
    p = whence.probe(sentiment, FIRST, SECOND, control=[("囧", "龘"), ("one", "one")])
    assert p.controls == ()
    longer = whence.probe(sentiment, "she was late", "she was very late")
    assert longer.controls == ()
    assert "There is no control" in " ".join(longer.answer())


def test_a_bare_and_a_masked_model_are_compared_by_attention_alone() -> None:
    p = whence.probe(build("bert-mlm"), "the food is great", "the service is great")
    assert p.predictions == ()
    assert p.values == ()
    assert p.largest > 0


def test_templates_are_averaged_with_student_s_interval(sentiment) -> None:
    words, against = ["she", "her"], ["he", "him"]
    p = whence.probe_templates(
        sentiment, LINES, words=words, against=against, target="positive", control=[("one", "all")]
    )
    slow = []
    for line in LINES:
        changes = []
        for first, second in zip(against, words, strict=True):
            texts = [line.replace("{}", word) for word in (first, second)]
            texts = [text[:1].upper() + text[1:] if line[0] == "{" else text for text in texts]
            values = [share(sentiment, text, "positive") for text in texts]
            changes.append(values[1] - values[0])
        slow.append(mean(changes))  # words are averaged first: templates are what is counted
    np.testing.assert_allclose(p.contrast.differences, slow, atol=1e-6)
    half = T4 * stdev(slow) / len(LINES) ** 0.5
    assert p.contrast.low == pytest.approx(mean(slow) - half, abs=1e-6)
    assert p.contrast.high == pytest.approx(mean(slow) + half, abs=1e-6)
    assert [control.name for control in p.controls] == ["one → all"]


def test_a_template_that_stands_there_twice_is_counted_once(sentiment) -> None:
    """The enemy: an interval of no width, and "differs", of one sentence copied."""
    lists: Any = {"words": ["she"], "against": ["he"], "target": "positive"}
    one = whence.probe_templates(sentiment, LINES[:1], **lists)
    same = whence.probe_templates(sentiment, LINES[:1] * 6, **lists)
    assert same.verdict == one.verdict == "one template"
    assert len(same.contrast.differences) == len(same.templates) == 1
    assert same.answer()[-1] == "5 templates that stood there before: not counted again."
    twice = whence.probe_templates(sentiment, LINES * 2, **lists)
    once = whence.probe_templates(sentiment, LINES, **lists)
    assert twice.contrast.to_dict() == once.contrast.to_dict()
    assert twice.verdict == once.verdict


def test_few_templates_have_no_interval_and_no_verdict(sentiment) -> None:
    lists: Any = {"words": ["she"], "against": ["he"], "target": "positive"}
    for count in (2, 4):
        few = whence.probe_templates(sentiment, LINES[:count], **lists)
        assert few.verdict == "too few templates"
        assert not few.contrast.has_interval
        assert "give at least 5" in few.answer()[1]
    # nor do five that all change it alike: the model reads the same from them
    alike = [f"{{}} was late again{' ' * number}." for number in range(5)]
    same = whence.probe_templates(sentiment, alike, **lists)
    assert len(same.templates) == 5
    assert same.verdict == "all the same"


def test_a_masked_model_is_asked_for_the_words() -> None:
    model = build("bert-mlm")
    p = whence.probe_templates(model, ["we {} great"], words=["is"], against=["a"])
    passage = model.fill(model.encode("we a great"), 1)
    logits = model.logits([passage])[0]
    one, other = (model.tokenizer.convert_tokens_to_ids(word) for word in ("a", "is"))
    assert p.contrast.differences[0] == pytest.approx(logits[other] - logits[one], abs=1e-5)
    assert p.verdict == "one template"


def test_what_cannot_be_compared_is_refused() -> None:
    lists: Any = {"words": ["service"], "against": ["food"]}
    with pytest.raises(TargetError, match="say whose probability"):
        whence.probe_templates(build("gpt2"), ["the {} is"], **lists)
    with pytest.raises(InputError, match="asked for one word"):
        whence.probe_templates(build("bert-mlm"), ["the {} is {}"], **lists)


def test_a_model_without_a_head_makes_no_prediction() -> None:
    whole = build("bert")
    model = whence.load(whole.hf.bert, tokenizer=whole.tokenizer)
    with pytest.raises(Unsupported, match="makes none"):
        whence.probe_templates(model, ["the {} is"], words=["service"], against=["food"])
