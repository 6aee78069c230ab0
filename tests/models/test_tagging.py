"""Token classification: the tag of one word, read at its first token, wherever that has moved."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
import transformers as tf
from hypothesis import given
from hypothesis import strategies as st

import whence
from tests import tokenizers as tok
from tests.families import TAGGERS, build
from whence.cli.main import main
from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.passage import Passage
from whence.core.target import Target
from whence.explaining.doctor import examine
from whence.games.removals import mask_id
from whence.models.model import Model
from whence.models.places import place_of
from whence.views import wording

TEXT = "the food isn't great but the menu"
SHORT = "food isn't great"
every_tagger = pytest.mark.parametrize("name", list(TAGGERS))


@pytest.fixture(scope="module")
def bert() -> Model:
    return build("bert-tags")


def first_tokens(model: Model, text: str, words: list[str]) -> list[int]:
    """The token that begins where each word begins, by the tokenizer's own offsets."""
    offsets = model.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    places, start = [], 0
    for word in words:
        start = text.index(word, start)
        places.append(next(i for i, (a, b) in enumerate(offsets) if a <= start < b))
        start += len(word)
    return places


def logits_of(model: Model, ids: list[int], seen: list[int] | None = None) -> np.ndarray:
    inputs: dict[str, Any] = {"input_ids": torch.tensor([ids])}
    if seen is not None:
        inputs["attention_mask"] = torch.tensor([seen])
    with torch.inference_mode():
        return model.hf(**inputs).logits[0].double().numpy()


@every_tagger
def test_each_word_has_the_tag_of_its_first_token(name: str) -> None:
    model = build(name)
    words = TEXT.split()
    every = logits_of(model, model.tokenizer(TEXT).input_ids)
    places = first_tokens(model, TEXT, words)
    tags = model.tags(TEXT)
    assert [(tag.word, tag.position) for tag in tags] == [(w, i) for i, w in enumerate(words)]
    for tag, place in zip(tags, places, strict=True):
        assert tag.prediction.label == model.labels[int(every[place].argmax())]
    # "isn't" is several tokens: the enemy reads its last one
    a = whence.explain(model, TEXT, "gradient-l2", target=Target(0, at="isn't"), evidence=False)
    assert a.value == pytest.approx(every[places[2], 0], abs=1e-5)


def removed_by_hand(
    model: Model, passage: Passage, keep: tuple[bool, ...], removal: str
) -> tuple[list[int], list[int], int]:
    """The ids that are read, which of them are seen, and where the tag stands: token by token."""
    ids, seen, place = [], [], -1
    hidden = mask_id(model)
    for token, unit in enumerate(passage.unit_of.tolist()):
        is_place = token == passage.readout
        stays = unit < 0 or keep[unit] or (is_place and hidden is None and removal != "mask")
        own = int(passage.ids[token])
        if is_place:
            place = len(ids)
        if stays:
            ids.append(own)
            seen.append(1)
        elif removal == "mask" or is_place:
            assert hidden is not None
            ids.append(hidden)
            seen.append(1)
        elif removal == "pad":
            ids.append(model.pad_id)
            seen.append(0)
    return ids, seen, place


CASES = [
    (name, at, removal)
    for name in ("bert-tags", "roberta-tags", "gpt2-tags")
    for at, removal in product((0, 1, 2), ("mask", "delete", "pad"))
    if (name, removal) != ("gpt2-tags", "mask")  # it has no mask token
]


@pytest.mark.parametrize(("name", "at", "removal"), CASES)
def test_a_removal_is_read_where_the_word_has_moved(name: str, at: int, removal: str) -> None:
    """Every set of words, against ids that are laid out by hand and run one at a time."""
    model = build(name)
    game = whence.game(model, SHORT, target=Target(1, at=at), removal=removal)
    masks = list(product((True, False), repeat=3))
    expected = []
    for keep in masks:
        ids, seen, place = removed_by_hand(model, game.passage, keep, removal)
        expected.append(logits_of(model, ids, seen)[place, 1])
    np.testing.assert_allclose(game(np.array(masks)), expected, atol=2e-5)
    # the word itself counts, unless nothing can stand in its place
    alone = [keep for keep in masks if not keep[at] and sum(keep) == 2]
    (value,) = game(np.array(alone))
    if name != "gpt2-tags":
        assert abs(value - game.full) > 1e-4


@pytest.mark.parametrize("removal", ["mean", "zero"])
def test_embeddings_are_replaced_at_their_places(bert: Model, removal: str) -> None:
    game = whence.game(bert, SHORT, target=Target(1, at=2), removal=removal)
    assert np.isfinite(game(np.array(list(product((True, False), repeat=3))))).all()
    assert abs(float(game(np.array([[1, 1, 0]]))[0]) - game.full) > 1e-4


def test_a_gradient_is_that_of_the_word_s_tag() -> None:
    model = build("distilbert-tags")
    a = whence.explain(
        model, TEXT, "gradient-x-input", target=Target("B-PER", at="great"), evidence=False
    )
    passage = model.encode(TEXT)
    (place,) = first_tokens(model, TEXT, ["great"])
    embedded = model.input_embeddings(torch.tensor(passage.ids)[None]).detach().requires_grad_()
    model.hf(inputs_embeds=embedded).logits[0, place, 1].backward()
    assert embedded.grad is not None
    by_token = (embedded.grad * embedded)[0].sum(-1).detach().double().numpy()
    np.testing.assert_allclose(a.scores, passage.merge(by_token), atol=1e-5)


def test_attention_is_that_of_the_word(bert: Model) -> None:
    a = whence.explain(bert, TEXT, "attention-mean", target=Target(at=3), evidence=False)
    passage = bert.encode(TEXT)
    (place,) = first_tokens(bert, TEXT, ["great"])
    bert.hf.set_attn_implementation("eager")
    with torch.inference_mode():
        maps = bert.hf(torch.tensor(passage.ids)[None], output_attentions=True).attentions
    bert.hf.set_attn_implementation("sdpa")
    row = maps[-1][0].mean(0)[place].double().numpy()
    # the enemy takes the row of the classification token
    np.testing.assert_allclose(a.scores, passage.merge(row), atol=1e-6)


def test_every_method_that_fits_works_and_the_doctor_says_so(bert: Model) -> None:
    report = examine(bert)
    assert report.self_check.passed
    refused = {attempt.method for attempt in report.methods if not attempt.works}
    assert refused == {"lime-exact", "shapley-exact"}  # formulas of another model
    assert report.task == "token-classification"


@pytest.mark.parametrize("units", ["token", "sentence"])
def test_the_word_is_the_same_whatever_is_scored(bert: Model, units: Any) -> None:
    text = "The food isn't great. But the menu."
    by_word = whence.explain(bert, text, "occlusion", target=Target(at="great"), evidence=False)
    a = whence.explain(
        bert, text, "occlusion", target=Target(at="great"), units=units, evidence=False
    )
    assert a.value == by_word.value
    assert a.target.word == "great"
    assert len(a.scores) == len(a.units) != len(by_word.scores)


# ------------------------------------------------------------------------------ which word


def test_the_result_says_which_word(bert: Model, tmp_path: Path) -> None:
    a = whence.explain(bert, TEXT, "occlusion", target=Target("O", at="great"), evidence=False)
    assert (a.target.at, a.target.word) == (3, "great")
    assert a.target.describe() == "logit of O at 'great'"
    assert "at 'great'" in wording.value(a)
    assert whence.read(a.save(tmp_path / "a.json")) == a
    # a passage that names the word needs no target that does
    again = whence.explain(bert, a.passage, "occlusion", target="O", evidence=False)
    assert again.target == a.target
    # older versions do not know the entry
    assert "word" not in Target("O").to_dict()


def test_a_missing_place_lists_the_words_with_their_tags(bert: Model) -> None:
    listed = ", ".join(f"{t.position} {t.word!r} {t.prediction.label}" for t in bert.tags(SHORT))
    with pytest.raises(TargetError) as caught:
        whence.explain(bert, SHORT, "gradient-l2")
    assert listed in str(caught.value)
    assert "--at on the command line" in str(caught.value)
    with pytest.raises(TargetError, match=r"and \d+ others"):
        whence.explain(bert, "the food is not great " * 4, "gradient-l2")


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("the", r"the word 'the' stands 2 times in this text: say at=0 or at=5"),
        ("pasta", r"no word of this text is 'pasta'. Its words: 0 'the', 1 'food'"),
        (7, r"at=7 is outside the 7 units of this text, which are counted from 0 to 6"),
        (-1, r"at=-1 is outside"),
        ("99", r"at=99 is outside"),
        (1.5, r"at= is a word or its number, not the float 1.5"),
    ],
)
def test_a_wrong_place_is_said(
    bert: Model, at: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as a user meets it: outside tests nothing checks the annotations
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TargetError, match=message):
        whence.explain(bert, TEXT, "gradient-l2", target=Target(at=at))


WORDS = st.lists(st.sampled_from(["a", "b", "0", "1", "12"]), min_size=1, max_size=6)


@given(WORDS, st.sampled_from(["a", "b", "0", "1", "12"]))
def test_a_word_is_found_as_it_is_written_and_else_by_its_number(words: list[str], at: str) -> None:
    if words.count(at) == 1:
        assert words[place_of(words, at)] == at
    elif at.isdecimal() and int(at) < len(words):
        assert place_of(words, at) == int(at)
    else:
        with pytest.raises(TargetError):
            place_of(words, at)


def test_targets_at_two_places_are_two_runs(bert: Model) -> None:
    targets: Any = [Target("O", at=1), Target("O", at=2)]
    with pytest.raises(InputError, match="read at one place"):
        whence.explain(bert, TEXT, "gradient-l2", target=targets)
    both = whence.explain(
        bert, TEXT, "gradient-l2", target=[Target("O", at=1), Target(1, at=1)], evidence=False
    )
    assert list(both) == ["logit of O at 'food'", "logit of B-PER at 'food'"]


def test_what_a_tagger_does_not_do_is_said(bert: Model) -> None:
    with pytest.raises(Unsupported, match=r"model.tags\(text\) gives all of them"):
        bert.predict([TEXT])
    with pytest.raises(InputError, match="a tag is of one word"):
        whence.explain(
            bert, TEXT * 20, "gradient-l2", target=Target(at=1), overflow="window", evidence=False
        )
    cut = whence.explain(
        bert, TEXT * 20, "gradient-l2", target=Target(at=1), overflow="truncate", evidence=False
    )
    assert cut.passage is not None
    assert cut.passage.dropped
    with pytest.raises(InputError, match="has no tag for each word"):
        build("bert").tags(TEXT)


def test_a_tagger_on_the_encoder_of_t5_is_an_encoder() -> None:
    """Its configuration says that there is a decoder, and there is none."""
    torch.manual_seed(0)
    size = len(tok.unigram())
    config = tf.T5Config(
        vocab_size=size, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, num_labels=3
    )
    config.is_encoder_decoder = True
    model = whence.load(tf.T5ForTokenClassification(config).eval(), tokenizer=tok.unigram())
    assert not model.is_encoder_decoder
    every = logits_of(model, model.tokenizer(TEXT).input_ids)
    (place,) = first_tokens(model, TEXT, ["menu"])
    c = whence.compare(
        model,
        TEXT,
        ["gradient-l2", "occlusion", "attention-mean"],
        target=Target(1, at="menu"),
        evidence=False,
    )
    assert [a.value for a in c.attributions.values()] == pytest.approx(
        [every[place, 1]] * 3, abs=1e-5
    )


def test_scores_from_elsewhere_are_of_a_word_too(bert: Model) -> None:
    scores = np.arange(7.0)
    target = Target("O", at="great")
    a = whence.Attribution.from_scores(bert, TEXT, scores, method="mine", target=target)
    ours = whence.explain(bert, TEXT, "gradient-l2", target=target, evidence=False)
    assert a.target == ours.target
    assert a.value == pytest.approx(ours.value, abs=1e-5)
    compared = whence.compare(bert, TEXT, ["gradient-l2", a])
    assert all(each.evidence is not None for each in compared.attributions.values())
    other = whence.explain(bert, TEXT, "gradient-l2", target=Target("O", at=1), evidence=False)
    with pytest.raises(InputError, match="about another word"):
        whence.compare(bert, TEXT, ["random", other], target=target, evidence=False)


# ------------------------------------------------------------------------------ command line


def test_on_the_command_line(
    bert: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bert.hf.save_pretrained(tmp_path)
    bert.tokenizer.save_pretrained(tmp_path)
    capsys.readouterr()
    model = ["--model", str(tmp_path)]
    assert main(["predict", TEXT, *model, "--json"]) == 0
    words = json.loads(capsys.readouterr().out)["words"]
    tags = bert.tags(TEXT)
    assert [row["tag"] for row in words] == [tag.prediction.label for tag in tags]
    assert [row["word"] for row in words] == TEXT.split()
    assert main(["predict", TEXT, *model]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in TEXT.split())
    assert main(["predict", TEXT, *model, "--at", "great", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == tags[3].prediction.label

    explain = ["explain", TEXT, *model, "--method", "occlusion", "--no-evidence", "--json"]
    for at in ("great", "3"):
        assert main([*explain, "--at", at]) == 0
        target = json.loads(capsys.readouterr().out)["target"]
        assert (target["at"], target["word"]) == (3, "great")
    assert main(explain) == 2
    assert "say for which word" in capsys.readouterr().err
    assert main([*explain, "--at", "the"]) == 2
    assert "stands 2 times" in capsys.readouterr().err
