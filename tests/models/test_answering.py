"""Question answering: an answer is explained as the sum of where it begins and where it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from whence.core.passage import Passage
from whence.core.target import Target
from whence.explaining.doctor import examine
from whence.models.model import Model
from whence.models.tasks.answering import LONGEST_ANSWER, answers_of

QUESTION = "is the food great"
TEXT = "the service is not bad but the menu is great"
SHORT = "not bad but dull"


def _bert() -> Any:
    config = tf.BertConfig(**SMALL, vocab_size=len(tok.wordpiece()), pad_token_id=0)
    return tf.BertForQuestionAnswering(config)


def _roberta() -> Any:
    config = tf.RobertaConfig(
        **SMALL,
        vocab_size=len(tok.roberta()),
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        max_position_embeddings=66,
    )
    return tf.RobertaForQuestionAnswering(config)


def _gpt2() -> Any:
    config = tf.GPT2Config(
        vocab_size=len(tok.byte_level()),
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return tf.GPT2ForQuestionAnswering(config)


def _t5() -> Any:
    config = tf.T5Config(
        vocab_size=len(tok.unigram()),
        d_model=32,
        d_kv=8,
        d_ff=40,
        num_layers=2,
        num_decoder_layers=2,
        num_heads=4,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    return tf.T5ForQuestionAnswering(config)


def _bart() -> Any:
    config = tf.BartConfig(
        vocab_size=len(tok.roberta()),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=40,
        decoder_ffn_dim=40,
        max_position_embeddings=64,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
    )
    return tf.BartForQuestionAnswering(config)


def _xlnet() -> Any:
    config = tf.XLNetConfig(
        vocab_size=len(tok.unigram()), d_model=32, n_layer=2, n_head=4, d_inner=40, pad_token_id=0
    )
    return tf.XLNetForQuestionAnsweringSimple(config)


FAMILIES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "bert": (_bert, tok.wordpiece),
    "roberta": (_roberta, tok.roberta),
    "gpt2": (_gpt2, tok.byte_level),
    "t5": (_t5, tok.unigram),
    "bart": (_bart, tok.roberta),
    "xlnet": (_xlnet, tok.unigram),
}
every_family = pytest.mark.parametrize("name", list(FAMILIES))


def build(name: str) -> Model:
    make, tokenizer = FAMILIES[name]
    torch.manual_seed(0)
    hf = make().eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(4.0)
    return whence.load(hf, tokenizer=tokenizer())


@pytest.fixture(scope="module")
def bert() -> Model:
    return build("bert")


def starts_and_ends(model: Model, passage: Passage, ids: Any = None, **more: Any) -> Any:
    """What the model itself says of each token, one text alone."""
    inputs = {"input_ids": torch.tensor(np.array(passage.ids if ids is None else ids))[None]}
    if passage.types is not None:
        inputs["token_type_ids"] = torch.tensor(passage.types.copy())[None]
    with torch.inference_mode():
        outputs = model.hf(**inputs, **more)
    return outputs.start_logits[0].double().numpy(), outputs.end_logits[0].double().numpy()


def tokens_of_words(passage: Passage, words: str) -> tuple[int, int]:
    """The first and the last token of some words of the second text, by their characters."""
    assert passage.pair is not None
    begin = passage.pair.index(words)
    end = begin + len(words)
    inside = [
        token
        for token, (part, (a, b)) in enumerate(zip(passage.parts, passage.spans, strict=True))
        if part == 1 and a < end and b > begin and passage.pair[a:b].strip()
    ]
    return inside[0], inside[-1]


# ------------------------------------------------------------------------------ the number


@every_family
def test_an_answer_is_the_sum_of_its_begin_and_its_end(name: str) -> None:
    model = build(name)
    passage = model.encode(QUESTION, TEXT)
    starts, ends = starts_and_ends(model, passage)
    first, last = tokens_of_words(passage, "not bad")
    v = whence.game(model, passage, target="not bad", removal="pad", also=[("not bad", "the menu")])
    # the enemies: the begin alone, both at the first token
    assert v.full == pytest.approx(starts[first] + ends[last], abs=1e-5)
    assert abs(v.full - starts[first]) > 1e-3
    assert abs(v.full - starts[first] - ends[first]) > 1e-3
    assert v.target.label == "not bad"
    other_first, other_last = tokens_of_words(passage, "the menu")
    rival = starts[other_first] + ends[other_last]
    less = v.about(("not bad", "the menu"))
    assert less.full == pytest.approx(starts[first] + ends[last] - rival, abs=1e-5)


@every_family
def test_the_predicted_answer_is_the_best_one_in_the_text(name: str) -> None:
    """By two loops over the tokens: never in the question, never backwards, never too long."""
    model = build(name)
    passage = model.encode(QUESTION, TEXT)
    starts, ends = starts_and_ends(model, passage)
    of_text = np.flatnonzero(passage.parts == 1).tolist()
    scores = {}
    for first in of_text:
        for last in of_text:
            short = first <= last < first + LONGEST_ANSWER
            if short and written(passage, first) and written(passage, last):
                scores[first, last] = starts[first] + ends[last]
    no_answer = [i for i in np.flatnonzero(passage.special) if passage.ids[i] == _cls(model)]
    for place in no_answer[:1]:
        scores[place, place] = starts[place] + ends[place]

    best = max(scores, key=lambda span: scores[span])
    chances = np.exp(np.array(list(scores.values())) - scores[best])
    (prediction,) = model.predict([passage])
    answers = answers_of(model, passage)
    assert len(answers) == len(scores)
    index = answers.index_of(prediction.label)
    assert [(answers.starts[i], answers.ends[i]) for i in index] == [best]
    assert prediction.logits[prediction.label] == pytest.approx(scores[best], abs=1e-5)
    expected = 1 / chances.sum()
    assert prediction.probabilities[prediction.label] == pytest.approx(expected, abs=1e-6)


def written(passage: Passage, token: int) -> bool:
    """Whether a token of the second text is more than white space."""
    begin, end = passage.spans[token]
    return bool((passage.pair or "")[begin:end].strip())


def _cls(model: Model) -> int:
    token = model.tokenizer.cls_token_id
    return -1 if token is None else token


def test_answers_are_the_words_of_the_text_and_no_answer(bert: Model) -> None:
    answers = bert.labels_of(bert.encode(QUESTION, "not bad not"))
    names = [answers[i] for i in answers]
    assert "not bad not" in names
    assert "bad" in names
    # what stands twice has a number
    assert "not (1)" in names
    assert "not (2)" in names
    assert "not" not in names
    assert names[-1] == "no answer"
    assert len(set(names)) == len(names)
    assert [answers.index_of(name) for name in names] == [[i] for i in answers]  # type: ignore[attr-defined]


def test_texts_of_unequal_length_share_a_batch(bert: Model) -> None:
    """The enemy pads the shorter one's answers with a zero, which may be the largest."""
    passages = [bert.encode(QUESTION, TEXT), bert.encode(QUESTION, SHORT)]
    together = bert.logits(passages)
    for passage, row in zip(passages, together, strict=True):
        (alone,) = bert.logits([passage])
        np.testing.assert_allclose(row[: len(alone)], alone, atol=1e-5)
        assert bert.prediction(row, passage).label == bert.prediction(alone, passage).label
    both = whence.explain(bert, passages, "gradient-l2", evidence=False)
    single = [whence.explain(bert, p, "gradient-l2", evidence=False) for p in passages]
    for a, b in zip(both, single, strict=True):
        assert a.target == b.target
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-5)


# ------------------------------------------------------------------------------ removals


@pytest.mark.parametrize("removal", ["mask", "pad"])
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_removal_is_what_the_ids_by_hand_give(name: str, removal: str) -> None:
    """Every set of words of the text, its answer's own words among them, one row at a time."""
    model = build(name)
    passage = model.encode("great", SHORT)
    game = whence.game(model, passage, target="bad", removal=removal)
    first, last = tokens_of_words(passage, "bad")
    masks = list(product((True, False), repeat=len(passage.unit_spans)))
    expected = []
    for keep in masks:
        ids, seen = [], []
        for token, unit in enumerate(passage.unit_of.tolist()):
            stays = unit < 0 or keep[unit]
            hidden = model.tokenizer.mask_token_id if removal == "mask" else model.pad_id
            ids.append(int(passage.ids[token]) if stays else hidden)
            seen.append(int(stays or removal == "mask"))
        starts, ends = starts_and_ends(model, passage, ids, attention_mask=torch.tensor([seen]))
        expected.append(starts[first] + ends[last])
    np.testing.assert_allclose(game(np.array(masks)), expected, atol=3e-5)
    # the answer's own word counts too
    without = np.array([[name != "bad" for name in passage.names]])
    assert abs(float(game(without)[0]) - game.full) > 1e-4


def test_words_are_not_deleted_as_the_answer_s_place_would_go(bert: Model) -> None:
    with pytest.raises(Unsupported, match="an answer is a place in the text"):
        whence.game(bert, QUESTION, pair=TEXT, removal="delete")
    assert whence.game(build("gpt2"), QUESTION, pair=TEXT).removal == "mean"


def test_another_answer_is_another_game_on_the_same_passes(bert: Model) -> None:
    v = whence.game(bert, QUESTION, pair=SHORT, target="bad", also=["not bad"])
    masks = np.random.default_rng(0).random((20, v.size)) < 0.5
    v(masks)
    paid = v.cost.forwards
    other = v.about("not bad")
    fresh = whence.game(bert, QUESTION, pair=SHORT, target="not bad")
    np.testing.assert_allclose(other(masks), fresh(masks), atol=1e-5)
    assert v.cost.forwards == paid


# ------------------------------------------------------------------------------ from inside


def test_a_gradient_is_that_of_the_answer(bert: Model) -> None:
    a = whence.explain(
        bert, QUESTION, "gradient-x-input", pair=TEXT, target="not bad", evidence=False
    )
    passage = bert.encode(QUESTION, TEXT)
    first, last = tokens_of_words(passage, "not bad")
    assert passage.types is not None
    ids, types = torch.tensor(passage.ids.copy())[None], torch.tensor(passage.types.copy())[None]
    embedded = bert.input_embeddings(ids).detach().requires_grad_()
    outputs = bert.hf(inputs_embeds=embedded, token_type_ids=types)
    (outputs.start_logits[0, first] + outputs.end_logits[0, last]).backward()
    assert embedded.grad is not None
    by_token = (embedded.grad * embedded)[0].sum(-1).detach().double().numpy()
    np.testing.assert_allclose(a.scores, passage.merge(by_token), atol=1e-5)


def test_attention_is_that_of_the_answer_s_first_token(bert: Model) -> None:
    a = whence.explain(
        bert, QUESTION, "attention-mean", pair=TEXT, target="not bad", evidence=False
    )
    passage = bert.encode(QUESTION, TEXT)
    first, _ = tokens_of_words(passage, "not bad")
    assert passage.types is not None
    bert.hf.set_attn_implementation("eager")
    with torch.inference_mode():
        maps = bert.hf(
            torch.tensor(passage.ids.copy())[None],
            token_type_ids=torch.tensor(passage.types.copy())[None],
            output_attentions=True,
        ).attentions
    bert.hf.set_attn_implementation("sdpa")
    row = maps[-1][0].mean(0)[first].double().numpy()
    # the enemy takes the row of the classification token
    np.testing.assert_allclose(a.scores, passage.merge(row), atol=1e-6)


@pytest.mark.slow
def test_every_method_that_fits_works_and_the_doctor_says_so(bert: Model) -> None:
    report = examine(bert)
    assert report.self_check.passed
    refused = {attempt.method for attempt in report.methods if not attempt.works}
    assert refused == {"lime-exact", "shapley-exact"}  # formulas of another model


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "t5", "bart"])
def test_a_comparison_has_no_bare_error(name: str) -> None:
    compared = whence.compare(build(name), QUESTION, pair=SHORT, evidence=False)
    assert {"occlusion", "lime", "gradient-x-input"} <= set(compared)


# ------------------------------------------------------------------------------ what is said


def test_an_answer_stands_in_quotes(bert: Model) -> None:
    a = whence.explain(
        bert, QUESTION, "occlusion", pair=TEXT, target=("not bad", "the menu"), evidence=False
    )
    assert "“not bad” rather than “the menu”" in str(a.answer)
    assert "of “not bad” less that of “the menu”" in str(a)
    # a class is no word of the text
    assert not whence.explain(
        whence.load("sentiment"), "good", "occlusion", evidence=False
    ).labels_are_quoted


def test_the_result_can_be_saved_and_explained_again(bert: Model, tmp_path: Path) -> None:
    a = whence.explain(bert, QUESTION, "occlusion", pair=TEXT, evidence=False)
    assert whence.read(a.save(tmp_path / "a.json")) == a
    assert a.passage is not None
    again = whence.explain(bert, a.passage, "occlusion", target=a.target, evidence=False)
    assert again.target == a.target


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("pasta", r"label 'pasta' is not among the \d+ possible answers of this text"),
        ("the", r"label 'the' is 2 possible answers, not one: 'the \(1\)', 'the \(2\)'"),
        (Target(at=1), "this model is neither"),
    ],
)
def test_a_wrong_answer_is_said(bert: Model, target: Any, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        whence.explain(bert, QUESTION, "gradient-l2", pair=TEXT, target=target)


def test_what_it_needs_is_said(bert: Model) -> None:
    with pytest.raises(InputError, match="reads a question and the text that holds the answer"):
        whence.explain(bert, QUESTION, "gradient-l2")
    with pytest.raises(InputError, match="reads one second text, and 2 were given"):
        bert.encode(QUESTION, ["a", "b"])
    with pytest.raises(InputError, match="an answer stands in one place"):
        bert.encode(QUESTION, TEXT * 60, overflow="window")


def test_on_the_command_line(
    bert: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bert.hf.save_pretrained(tmp_path)
    bert.tokenizer.save_pretrained(tmp_path)
    capsys.readouterr()
    given = [QUESTION, "--model", str(tmp_path), "--pair", TEXT]
    assert main(["predict", *given, "--json"]) == 0
    label = json.loads(capsys.readouterr().out)["label"]
    assert label in TEXT
    explain = ["explain", *given, "--method", "occlusion", "--no-evidence", "--json"]
    assert main(explain) == 0
    assert json.loads(capsys.readouterr().out)["target"]["label"] == label
    assert main([*explain, "--target", "not bad", "--against", "the menu"]) == 0
    assert json.loads(capsys.readouterr().out)["target"]["against"] == "the menu"
    page = tmp_path / "page.html"
    methods = ["--methods", "occlusion,gradient-l2", "--no-evidence"]
    assert main(["compare", *given, *methods, "--html", str(page)]) == 0
    assert label in page.read_text()
    assert main(["attend", *given, "--html", str(page)]) == 0
    capsys.readouterr()
    assert main(["explain", QUESTION, "--model", str(tmp_path)]) == 2
    assert "--pair" in capsys.readouterr().err
