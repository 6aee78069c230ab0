"""Multiple choice, and next-sentence prediction: two texts, and what is said of them."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import whence
from tests import tokenizers as tok
from tests.families import SMALL
from whence.cli.main import main
from whence.core.errors import InputError, TargetError, Unsupported
from whence.models.model import Model

TEXT = "the food isn't"
CHOICES = ("great", "bad prices", "not dull")


def build(architecture: str) -> Model:
    torch.manual_seed(0)
    config = tf.BertConfig(
        **SMALL, vocab_size=len(tok.wordpiece()), pad_token_id=0, max_position_embeddings=64
    )
    hf = getattr(tf, architecture)(config).eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(4.0)
    return whence.load(hf, tokenizer=tok.wordpiece())


@pytest.fixture(scope="module")
def chooses() -> Model:
    return build("BertForMultipleChoice")


def by_the_tokenizer(model: Model, hidden: Any = None) -> torch.Tensor:
    """The logits of all choices, laid out by transformers' own tokenizer."""
    given = model.tokenizer([TEXT] * len(CHOICES), list(CHOICES), padding=True, return_tensors="pt")
    inputs = {name: tensor[None] for name, tensor in given.items()}
    if hidden is not None:
        inputs["input_ids"] = hidden(inputs["input_ids"], given)
    with torch.inference_mode():
        return model.hf(**inputs).logits[0].double()


def test_each_choice_has_the_logit_that_the_model_gives_it(chooses: Model) -> None:
    passage = chooses.encode(TEXT, CHOICES)
    expected = by_the_tokenizer(chooses).numpy()
    np.testing.assert_allclose(chooses.logits([passage])[0], expected, atol=1e-5)
    assert dict(chooses.labels_of(passage)) == dict(enumerate(CHOICES))
    # a word of the text is one unit, though it stands in every reading
    assert passage.names == ("the", "food", "isn't", "great", "bad", "prices", "not", "dull")
    assert "".join(passage.units) == TEXT + "\n".join(CHOICES)
    chance = torch.from_numpy(expected).softmax(-1).max()
    (prediction,) = chooses.predict([passage])
    assert prediction.label == CHOICES[int(expected.argmax())]
    assert prediction.probabilities[prediction.label] == pytest.approx(float(chance), abs=1e-6)


def test_a_word_of_the_text_goes_from_every_reading(chooses: Model) -> None:
    """Every set of words, against ids that are laid out by the tokenizer and masked by hand."""
    passage = chooses.encode(TEXT, CHOICES)
    game = whence.game(chooses, passage, target=("bad prices", "great"))
    assert game.removal == "mask"
    masks = list(product((True, False), repeat=len(passage.unit_spans)))[::5]
    words = TEXT.split()
    expected = []
    for keep in masks:

        def hidden(ids: torch.Tensor, given: Any, keep: Any = keep) -> torch.Tensor:
            ids = ids.clone()
            first_word = len(words)
            for row, choice in enumerate(CHOICES):
                for token in range(ids.shape[-1]):
                    part, word = given.token_to_sequence(row, token), None
                    if part is not None:
                        start = given.token_to_chars(row, token).start
                        content = (TEXT, choice)[part]
                        word = len(content[:start].split(" ")) - 1
                    if part == 0 and not keep[word]:
                        ids[0, row, token] = chooses.tokenizer.mask_token_id
                    if part == 1 and not keep[first_word + word]:
                        ids[0, row, token] = chooses.tokenizer.mask_token_id
                first_word += len(choice.split())
            return ids

        logits = by_the_tokenizer(chooses, hidden)
        expected.append(float(logits[1] - logits[0]))
    # the enemy removes a word of the text from the first reading alone
    np.testing.assert_allclose(game(np.array(masks)), expected, atol=3e-5)


def test_a_gradient_is_the_sum_over_the_readings(chooses: Model) -> None:
    target = ("bad prices", "great")
    a = whence.explain(
        chooses, TEXT, "gradient-x-input", pair=CHOICES, target=target, evidence=False
    )
    passage = chooses.encode(TEXT, CHOICES)
    batch = chooses.batch([passage])
    ids = batch.inputs.pop("input_ids")
    embedded = chooses.input_embeddings(ids[0]).detach()[None].requires_grad_()
    logits = chooses.hf(inputs_embeds=embedded, **batch.inputs).logits[0]
    (logits[1] - logits[0]).backward()
    assert embedded.grad is not None
    by_token = (embedded.grad * embedded).sum(-1).detach().double().numpy().ravel()
    np.testing.assert_allclose(a.scores, passage.merge(by_token), atol=1e-5)
    # a choice that is not asked for has no part in a difference of two others
    assert a.scores[-2:].tolist() == [0, 0]


def test_attention_is_refused_and_the_rest_works(chooses: Model) -> None:
    c = whence.compare(chooses, TEXT, pair=CHOICES, evidence=False)
    assert {"lime", "shapley", "occlusion", "gradient-l2", "integrated-gradients"} <= set(c)
    assert "reads each choice in a pass of its own" in c.skipped["attention-mean"]
    assert "“" in str(c.answer)
    with pytest.raises(Unsupported, match="in a pass of its own"):
        whence.attend(chooses, TEXT, pair=CHOICES)
    with pytest.raises(Unsupported, match="at one length"):
        whence.game(chooses, TEXT, pair=CHOICES, removal="delete")


def test_what_is_wrong_is_said(chooses: Model, tmp_path: Path) -> None:
    for pair in (None, "great", ["great"]):
        with pytest.raises(InputError, match="reads a question and its choices, two at least"):
            chooses.encode(TEXT, pair)
    with pytest.raises(TargetError, match=r"'x' is not among the 3 choices of this question"):
        whence.explain(chooses, TEXT, "occlusion", pair=CHOICES, target="x")
    with pytest.raises(InputError, match="with its longest choice the text has"):
        chooses.encode(TEXT * 30, CHOICES, overflow="truncate")
    a = whence.explain(chooses, TEXT, "occlusion", pair=CHOICES, evidence=False)
    assert whence.read(a.save(tmp_path / "a.json")) == a


def test_on_the_command_line(
    chooses: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chooses.hf.save_pretrained(tmp_path)
    chooses.tokenizer.save_pretrained(tmp_path)
    capsys.readouterr()
    given = [TEXT, "--model", str(tmp_path)]
    for choice in CHOICES:
        given += ["--pair", choice]
    assert main(["predict", *given, "--json"]) == 0
    label = json.loads(capsys.readouterr().out)["label"]
    assert label in CHOICES
    explain = ["explain", *given, "--method", "occlusion", "--no-evidence", "--json"]
    assert main([*explain, "--target", "great", "--against", "not dull"]) == 0
    assert json.loads(capsys.readouterr().out)["target"]["label"] == "great"


def test_a_next_sentence_is_a_class_of_a_pair(tmp_path: Path) -> None:
    model = build("BertForNextSentencePrediction")
    given = model.tokenizer(TEXT, CHOICES[1], return_tensors="pt")
    with torch.inference_mode():
        logits = model.hf(**given).logits[0].double().numpy()
    a = whence.explain(
        model, TEXT, "occlusion", pair=CHOICES[1], target="next sentence", evidence=False
    )
    assert a.value == pytest.approx(logits[0], abs=1e-5)
    assert dict(model.labels) == {0: "next sentence", 1: "random sentence"}
    with pytest.raises(InputError, match="a sentence and the one that may follow it"):
        model.encode(TEXT)
    model.hf.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    assert whence.load(tmp_path).task == "next-sentence"
