"""Steering: what a clamp does, that it leaves no trace, and that a receipt tells the truth."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from tokenizers import processors
from tokenizers.processors import TemplateProcessing

import whence
from tests import tokenizers as tok
from tests.families import build
from tests.views.conftest import own
from whence.core.errors import InputError
from whence.core.receipt import Receipt
from whence.features.mirrors import mirror
from whence.features.receipts import receipt
from whence.features.steering import clamp, steer
from whence.trace.hidden import hidden_at


@pytest.fixture(scope="module")
def model():
    return whence.load("writer")


@pytest.fixture(scope="module")
def autoencoder(model):
    base = mirror(model, layer=2)
    # directions of other lengths: an activation is a_j times the length
    scale = torch.linspace(0.5, 2, base.size)
    return replace(
        base, decoder=base.decoder / scale[:, None], encoder=base.encoder * scale[:, None]
    )


def states_of(model) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.hf.state_dict().items()}


def test_clamped_means_that_activation_and_nothing_else_moves(model, autoencoder):
    passage = model.encode("The sea was calm")
    (before,) = hidden_at(model, [passage], 2)
    change = clamp(autoencoder, 0, 7.5).change
    after = change(before[None])[0]
    was = (autoencoder.encode(before) * autoencoder.norms)[:, 0]
    moved = (after - before)[:, 0]
    # would catch: a value that is not divided by the length of the direction
    assert moved.numpy() == pytest.approx((7.5 - was).numpy(), rel=1e-5)
    now = (autoencoder.encode(after) * autoencoder.norms)[:, 0]
    active = was > 0  # below its threshold a feature says nothing of how far it is from it
    assert active.any()
    assert now[active].numpy() == pytest.approx(np.full(int(active.sum()), 7.5), rel=1e-5)
    others = [i for i in range(autoencoder.dim) if i != 0]
    assert torch.equal(after[:, others], before[:, others])


def test_the_error_of_the_reconstruction_is_added_back(model):
    base = mirror(model, layer=2)
    lossy = replace(base, decoder_bias=torch.ones(base.dim))  # so nothing is reconstructed well
    (states,) = hidden_at(model, [model.encode("The sea was calm")], 2)
    after = clamp(lossy, 3, 7.5).change(states[None])[0]
    # would catch: x' = decode(a'), which loses the error and adds the bias
    moved = (after - states).abs().amax(0)
    assert moved[3] > 0
    assert float(moved.sum()) == pytest.approx(float(moved[3]))


def test_a_feature_clamped_to_what_it_is_changes_nothing(model, autoencoder):
    passage = model.encode("The")
    (states,) = hidden_at(model, [passage], 2)
    codes = autoencoder.encode(states) * autoencoder.norms
    plain = model.logits([passage])
    for feature in (0, 3, 200):
        present = codes[:, feature]
        if len(present.unique()) > 1:
            continue
        with steer(model, autoencoder, feature, float(present[0])):
            same = model.logits([passage])
        assert same == pytest.approx(plain, abs=1e-5)
        with steer(model, autoencoder, feature, float(present[0]) + 5):
            assert np.abs(model.logits([passage]) - plain).max() > 1e-2


def test_the_model_is_what_it_was_also_after_an_exception(model, autoencoder):
    before, plain = states_of(model), model.logits([model.encode("The sea")])
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.hf.modules()]

    def interrupted() -> None:
        with steer(model, autoencoder, 3, 50.0):
            model.logits([model.encode("The sea")])
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        interrupted()
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.hf.modules()] == hooks
    after = states_of(model)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert np.array_equal(model.logits([model.encode("The sea")]), plain)


def test_whoever_runs_the_model_sees_it_steered(model, autoencoder):
    """``generate`` with a cache, ``explain``, and the edit in a trace."""
    text = "The captain of the"
    ids = torch.tensor([model.encode(text).ids.tolist()])

    def written() -> list[int]:
        with torch.no_grad():
            return model.hf.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)[
                0
            ].tolist()

    plain = written()
    with steer(model, autoencoder, 3, 200.0):
        steered = written()
        value = whence.explain(model, text, "occlusion", evidence=False).value
    assert steered != plain
    # slowly, without a cache: each token from the whole text so far
    slow = ids[0].tolist()
    with steer(model, autoencoder, 3, 200.0), torch.no_grad():
        for _ in range(6):
            slow.append(int(model.hf(torch.tensor([slow])).logits[0, -1].argmax()))
    assert steered == slow  # would catch: a clamp that cached tokens lack
    traced = whence.explain(model, text, "occlusion", evidence=False).value
    assert value != pytest.approx(traced)


def test_doses_are_multiples_of_the_largest_activation(autoencoder):
    known = replace(
        autoencoder, about=replace(autoencoder.about, peak=tuple([2.0] * autoencoder.size))
    )
    states = torch.zeros(1, 1, autoencoder.dim)
    five = clamp(known, 3, "5x").change(states)
    assert float(five.norm()) == pytest.approx(10.0)
    assert float(clamp(known, 3, " 2.5 × ").change(states).norm()) == pytest.approx(5.0)
    assert float(clamp(known, 3, "4").change(states).norm()) == pytest.approx(4.0)
    with pytest.raises(InputError, match="does not know the largest"):
        clamp(autoencoder, 3, "5x")
    with pytest.raises(InputError, match="such as 5x; not to 'much'"):
        clamp(known, 3, "much")
    with pytest.raises(InputError, match="no feature 384"):
        clamp(known, 384, 1.0)
    for value in ("nan", "inf", float("nan"), -float("inf")):
        with pytest.raises(InputError, match="such as 5x; not to"):
            clamp(known, 3, value)
    for wrong in (float("nan"), -3.0, 0.0, float("inf")):
        # a wrong version: the feature is called dead
        with pytest.raises(InputError, match=r"\(peak=…, --peak\) is above zero, not"):
            clamp(known, 3, "5x", peak=wrong)
    dead = replace(known, about=replace(known.about, peak=tuple([0.0] * known.size)))
    with pytest.raises(InputError, match="dead"):
        clamp(dead, 3, "5x")


# ---------------------------------------------------------------------- the receipt


@pytest.fixture(scope="module")
def paid(model, autoencoder) -> Receipt:
    return receipt(
        model, autoencoder, 3, "4x", "The sea", peak=6.0, multiples=(0, 1), max_new_tokens=5
    )


def test_a_receipt_measures_what_it_says(model, autoencoder, paid):
    assert paid.multiples == (0.0, 1.0, 4.0)
    assert len(paid.at("random", 4.0)) == 3
    from whence.features.unrelated import SENTENCES

    divergence, losses, places = 0.0, 0.0, 0
    following = 0
    silent = []
    for text in SENTENCES:
        (states,) = hidden_at(model, [model.encode(text)], 2)
        if not (autoencoder.encode(states)[:, 3] > 0).any():
            silent.append(text)
    assert 4 <= len(silent) < len(SENTENCES)  # unrelated text is where the feature is silent
    assert paid.texts == len(silent)
    for text in silent:
        passage = model.encode(text)
        ids = torch.tensor([passage.ids.tolist()])
        with torch.inference_mode():
            before = model.hf(ids).logits[0].double().log_softmax(-1)
        with steer(model, autoencoder, 3, 24.0), torch.inference_mode():
            after = model.hf(ids).logits[0].double().log_softmax(-1)
        divergence += float((before.exp() * (before - after)).sum())
        places += len(passage)
        losses -= float(after[:-1].gather(1, ids[0, 1:, None]).sum())
        following += len(passage) - 1
    steered = paid.steered
    # would catch: the divergence the wrong way round, a mean over texts in place of tokens
    assert steered.divergence == pytest.approx(divergence / places, rel=1e-3)
    assert steered.perplexity == pytest.approx(np.exp(losses / following), rel=1e-3)
    assert paid.plain.divergence == 0
    assert paid.plain.others == 0
    assert steered.divergence > paid.at("feature", 1.0)[0].divergence


def test_the_clamped_feature_is_none_of_the_others(model, autoencoder):
    """On texts where it is active itself; the enemy: its own move counts as damage to others."""
    texts = ["The sea was calm", "a dull grey morning", "he wrote to her again", "it rained"]
    states = [hidden_at(model, [model.encode(text)], 2)[0].float() for text in texts]
    fires = torch.stack([(autoencoder.encode(h) > 0).any(0) for h in states]).all(0)
    feature = int(torch.nonzero(fires)[0])
    paid = receipt(
        model,
        autoencoder,
        feature,
        8.0,
        "The sea",
        texts=texts,
        peak=4.0,
        multiples=(),
        random=0,
        max_new_tokens=2,
    )
    assert paid.texts == len(texts)
    moved, before, of_all = 0.0, 0.0, 0.0
    change = clamp(autoencoder, feature, 8.0).change
    for state in states:
        was = autoencoder.encode(state) * autoencoder.norms
        now = autoencoder.encode(change(state[None])[0]) * autoencoder.norms
        others = [i for i in range(autoencoder.size) if i != feature]
        moved += float((now - was)[:, others].abs().sum())
        before += float(was[:, others].sum())
        of_all += float((now - was).abs().sum())
    assert paid.steered.others == pytest.approx(moved / before, rel=1e-4)
    assert of_all > 1.5 * moved


def test_the_activity_is_that_of_the_words_that_were_written():
    """The mean over tokens of text; the enemy: begin-of-text tokens, on which features are huge."""
    plain = build("gpt2")
    tokenizer = copy.deepcopy(plain.tokenizer)
    begin = tokenizer.eos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, tokenizer.eos_token_id)]
    )
    model = whence.load(plain.hf, tokenizer=tokenizer)
    base = mirror(model, layer=0)
    texts = ["the food is great", "the service is not bad", "prices are fine", "not great at all"]
    paid = receipt(
        model,
        base,
        0,
        2.0,
        "the food",
        texts=texts,
        peak=2.0,
        multiples=(),
        random=0,
        max_new_tokens=6,
    )
    assert paid.steered.written is not None
    passage = model.encode(paid.steered.written)
    ordinary = passage.parts >= 0
    assert ordinary.tolist() == [False] + [True] * (len(passage) - 1)
    (states,) = hidden_at(model, [passage], 0)
    active = base.encode(states.float())[:, 0].numpy()
    assert paid.steered.activity == pytest.approx(active[ordinary].mean() / 2.0, rel=1e-4)
    assert active.mean() != pytest.approx(active[ordinary].mean(), rel=1e-2)


def test_controls_move_the_state_as_far(model, autoencoder):
    from whence.features.steering import along

    (states,) = hidden_at(model, [model.encode("The sea was calm")], 2)
    generator = torch.Generator().manual_seed(0)
    unit = torch.nn.functional.normalize(torch.randn(autoencoder.dim, generator=generator), dim=0)
    own = clamp(autoencoder, 3, 9.0).change(states[None]) - states
    other = along(autoencoder, 3, 9.0, unit)(states[None]) - states
    assert own.norm(dim=-1).numpy() == pytest.approx(other.norm(dim=-1).numpy(), rel=1e-4)


def test_a_receipt_is_the_same_after_a_file_and_shows_itself(paid, tmp_path):
    back = whence.read(paid.save(tmp_path / "r.json"))
    assert back.to_dict() == paid.to_dict()
    assert "clamped to an activation of 24, 4 times its largest" in " ".join(str(paid).split())
    page = own(paid.to_html(tmp_path / "r.html"))
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    hostile = replace(paid, prompt="<img src=x onerror=alert(1)>\x1b")
    assert "<img" not in hostile.to_html()
    assert "\x1b" not in str(hostile) + hostile.to_html()


def test_texts_of_one_token_have_no_perplexity(model, autoencoder, tmp_path):
    texts = ["the", "a", "of", "and"]
    assert [len(model.encode(text)) for text in texts] == [1, 1, 1, 1]
    alone = receipt(
        model, autoencoder, 3, "2x", "The", texts=texts, peak=6.0, multiples=(), max_new_tokens=2
    )
    assert alone.steered.perplexity is None
    assert "No perplexity: every text has one token" in str(alone)
    # a wrong version: the mean of nothing, which no file can hold
    assert whence.read(alone.save(tmp_path / "r.json")).to_dict() == alone.to_dict()
    assert "perplexity of unrelated text" not in alone.to_html()


def test_where_no_other_feature_is_active_none_can_move(model, autoencoder, tmp_path):
    # of 384 features all but one never fire
    bias = torch.full_like(autoencoder.encoder_bias, -1e6)
    bias[3] = 0
    silent = replace(autoencoder, encoder_bias=bias)
    paid = receipt(model, silent, 3, 6.0, "The", peak=6.0, multiples=(), random=1, max_new_tokens=2)
    assert paid.steered.others is None
    assert "Other features" not in str(paid)
    assert "how far other features move" not in paid.to_html()
    assert whence.read(paid.save(tmp_path / "r.json")).steered.others is None


def test_a_huge_dose_is_told_in_a_few_digits(paid):
    moved = tuple(replace(d, multiple=d.multiple * 1e7 / 3, others=2e6 / 9) for d in paid.doses)
    huge = replace(paid, asked=paid.asked * 1e7 / 3, doses=moved)
    for told in (str(huge), huge.to_html()):
        assert "1.33e+07x" in told
        assert "2.22e+05x" in told  # would catch: 5.71641e+…, and 22222222 %


def test_charts_grow_with_their_column(paid, browser, tmp_path):
    page = browser.new_page()
    paid.to_html(tmp_path / "r.html")
    page.goto((tmp_path / "r.html").as_uri())
    for width in (1280, 380):
        page.set_viewport_size({"width": width, "height": 900})
        for figure in page.locator(".doses svg").all():
            drawn = figure.bounding_box()["width"]
            assert 270 <= drawn <= 420  # they were 240 wide, with names 9 pixels high
            assert 12 * drawn / 300 >= 11
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_of_a_classifier_the_response_is_its_label():
    model = whence.load("sentiment")
    autoencoder = mirror(model, layer=1)
    paid = receipt(model, autoencoder, 5, 12.0, "not bad at all", peak=3.0, multiples=(), random=1)
    assert (paid.meaning, paid.asked) == ("label", 4.0)
    with steer(model, autoencoder, 5, 12.0):
        (prediction,) = model.predict(["not bad at all"])
    assert paid.steered.response == pytest.approx(prediction.probabilities[paid.about], abs=1e-5)
    assert "positive" in str(paid) + paid.to_html()


def test_what_was_written_stands_behind_its_prompt_with_its_blank() -> None:
    """Vocabularies of pieces (▁was) lose the first blank when a text is decoded by itself."""
    torch.manual_seed(0)
    tokenizer = tok.unigram()
    plain = processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
    tokenizer.backend_tokenizer.post_processor = plain  # as a text that goes on has it
    config = tf.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=1,
    )
    hf = tf.LlamaForCausalLM(config).eval()
    model = whence.load(hf, tokenizer=tokenizer)
    word = next(i for p, i in tokenizer.get_vocab().items() if p.startswith("▁") and len(p) > 1)
    piece = tokenizer.convert_ids_to_tokens(word)[1:]
    prompt = "the food"
    always: dict[str, Any] = {"suppress_tokens": [i for i in range(len(tokenizer)) if i != word]}
    paid = receipt(
        model,
        mirror(model, layer=1),
        5,
        "5x",
        prompt,
        peak=1.0,
        multiples=(0, 5),
        max_new_tokens=2,
        random=1,
        **always,
    )
    assert paid.plain.written == f" {piece} {piece}"
    for told in (str(paid), re.sub("<[^>]*>", "", paid.to_html())):
        assert f"{prompt} {piece} {piece}" in told
        assert not re.search("[▁Ġ]|' ", told.split("It promotes")[-1].split("(from")[0])


def test_a_translation_does_not_go_on_with_its_prompt() -> None:
    model = whence.load("translator")
    prompt = "they push the cow ."
    paid = receipt(
        model,
        mirror(model, layer=1),
        5,
        "5x",
        prompt,
        peak=9.0,
        multiples=(0, 5),
        random=1,
        max_new_tokens=2,
    )
    assert paid.is_apart
    assert Receipt.from_dict(paid.to_dict()).to_dict() == paid.to_dict()
    assert f"{prompt} → {paid.plain.written}" in " ".join(str(paid).split())
    assert f"{prompt} → {paid.plain.written}" in re.sub("<[^>]*>", "", paid.to_html())
