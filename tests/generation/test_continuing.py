"""What follows a prompt, as ids: written by the model, or given; and where the two meet."""

from __future__ import annotations

import logging
from functools import cache

import numpy as np
import pytest
from hypothesis import given as for_any
from hypothesis import settings
from hypothesis import strategies as st

import whence
from tests.families import build
from tests.models.test_chat import CHAT, chatty
from whence.core.errors import InputError, ModelError
from whence.generation.continuing import given, written_by
from whence.models.model import Model
from whence.models.texts import tokenize
from whence.models.writing import notes_on_border, written_after

PROMPT = "Once upon a time there was a"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=25)
SPELLED = st.lists(
    st.one_of(TEXTS, st.sampled_from(["<|endoftext|>", "</s>", "<pad>", " ", "\n"])),
    min_size=1,
    max_size=3,
).map("".join)


@cache
def small(name: str) -> Model:
    return build(name)


def test_a_model_writes_what_its_own_argmax_says() -> None:
    """The slow definition, one prefix at a time; would catch a shift by one, or padding."""
    model = whence.load("writer")
    prompt = model.encode(PROMPT)
    ids = written_by(model, prompt, 5, 0, {}).ids
    so_far = prompt.ids.tolist()
    for token in ids:
        passage = written_after(model, prompt, [*so_far[len(prompt) :], 0])
        assert int(model.output_logits(passage)[-1].argmax()) == token
        so_far.append(int(token))


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    model = whence.load("writer")
    prompt = model.encode(PROMPT)
    drawn = [written_by(model, prompt, 8, seed, {"do_sample": True}).ids for seed in (1, 1, 2, 3)]
    assert drawn[0].tolist() == drawn[1].tolist()
    assert len({tuple(ids.tolist()) for ids in drawn[1:]}) > 1
    assert written_by(model, prompt, 2, 5, {"do_sample": True}).decoding["seed"] == 5


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5"])
@for_any(SPELLED)
@settings(max_examples=40, deadline=None)
def test_no_given_text_becomes_a_special_token(name: str, text: str) -> None:
    """Property: text is data, and its tokens spell it where the tokenizer keeps all characters."""
    model = small(name)
    prompt = model.encode("the food is")
    if not model.backend.encode(text, add_special_tokens=False).ids:  # white space, in T5
        with pytest.raises(InputError, match="no token"):
            given(model, prompt, text)
        return
    ids = given(model, prompt, text).ids
    special = set(model.tokenizer.all_special_ids) - {model.tokenizer.unk_token_id}
    assert special.isdisjoint(ids.tolist())
    if model.limit is not None and len(prompt) + len(ids) > model.limit:
        return  # a character may be four tokens
    passage = written_after(model, prompt, ids)
    if name != "t5":
        assert passage.pair == text
    units = [u for u, span in enumerate(passage.unit_spans) if span[0] == 1]
    assert "".join(passage.units[u] for u in units) == passage.pair
    ends = passage.spans[passage.output_place(0) :, 1]
    assert (np.diff(ends) >= 0).all()


@for_any(SPELLED, SPELLED)
@settings(max_examples=40, deadline=None)
def test_prompt_and_continuation_are_the_tokens_of_one_text_or_it_is_said(
    first: str, second: str
) -> None:
    """Property: either the ids are those of the joined text, or a note says that they differ."""
    model = small("gpt2")
    if not first.strip():
        return
    prompt = tokenize(model, first, None, "word")  # however long it is
    follows = given(model, prompt, second)
    joined = model.backend.encode(first + second, add_special_tokens=False).ids
    both = [*prompt.ids.tolist(), *follows.ids.tolist()]
    assert (both == joined) == (not follows.notes)


def test_a_continuation_that_is_cut_otherwise_in_context_is_said() -> None:
    model = whence.load("writer")
    follows = given(model, model.encode("Once upon a ti"), "me there")
    assert len(follows.notes) == 1
    assert "cut into other tokens" in follows.notes[0]
    assert not given(model, model.encode("Once upon a"), " time").notes


def test_a_chats_continuation_has_the_tokens_of_the_whole_template() -> None:
    """Would catch an answer that is tokenized behind the wrong text."""
    for name in ("chatml", "llama3"):
        model = chatty(name)
        answer = {"role": "assistant", "content": "not bad, it's fine"}
        prompt = model.encode_chat(CHAT)
        ids = given(model, prompt, answer["content"]).ids.tolist()
        whole = model.tokenizer.apply_chat_template([*CHAT, answer])["input_ids"]
        assert [*prompt.ids.tolist(), *ids] == whole[: len(prompt) + len(ids)]


@pytest.mark.usefixtures("unchecked")
def test_nothing_and_what_is_no_continuation_are_refused() -> None:
    model = whence.load("writer")
    prompt = model.encode(PROMPT)
    for empty in ("", [], np.zeros(0, np.int64)):
        with pytest.raises(InputError, match="empty"):
            written_after(model, prompt, given(model, prompt, empty).ids)
    for wrong in ([[1, 2]], [1.5], ["a"]):
        with pytest.raises(InputError, match="a continuation is a text, or the whole numbers"):
            given(model, prompt, wrong)


def test_an_end_inside_is_refused_and_an_end_at_the_end_is_not() -> None:
    model = whence.load("writer")
    prompt, end = model.encode(PROMPT), model.tokenizer.eos_token_id
    with pytest.raises(InputError, match=r"at place 1, and 2 tokens behind it; cut it there"):
        given(model, prompt, [5, end, 6, 7])
    passage = written_after(model, prompt, given(model, prompt, [5, end]).ids)
    assert passage.unit_of[-1] == -1
    # as text it is no end, but five or so marks and letters
    assert end not in given(model, prompt, " so <|endoftext|> on").ids


def test_every_token_that_ends_a_text_counts() -> None:
    """Would catch a chat model whose turns end by another token than its texts."""
    model = small("llama")
    before = model.hf.generation_config.eos_token_id
    try:
        model.hf.generation_config.eos_token_id = [0, 17]
        with pytest.raises(InputError, match="id 17"):
            given(model, model.encode("the food"), [5, 17, 6])
    finally:
        model.hf.generation_config.eos_token_id = before


def test_options_that_cannot_be_are_refused() -> None:
    model = whence.load("writer")
    prompt = model.encode(PROMPT)
    with pytest.raises(InputError, match=r"num_return_sequences=2 .* one text at a time"):
        written_by(model, prompt, 3, 0, {"num_beams": 2, "num_return_sequences": 2})
    with pytest.raises(ModelError, match="frobnicate") as problem:
        written_by(model, prompt, 3, 0, {"frobnicate": 1})
    assert "\n" not in str(problem.value)
    with pytest.raises(InputError, match="go beyond the model's 256 positions"):
        written_by(model, prompt, 250, 0, {})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"num_beams": 0}, "num_beams is a number of texts, at least 1, not 0"),
        ({"num_beams": -2}, "not -2"),
        ({"num_beams": True}, "not True"),
        ({"do_sample": True, "top_p": 2}, "top_p is a share above 0 and up to 1, not 2"),
        ({"do_sample": True, "top_p": 0}, "not 0"),
        ({"do_sample": True, "top_k": -1}, "top_k is a number of tokens"),
        ({"do_sample": True, "temperature": float("nan")}, "a finite number above 0, not nan"),
        ({"return_dict_in_generate": True}, "return_dict_in_generate=True is not possible"),
        ({"num_return_sequences": True}, "num_return_sequences=True is not possible"),
        ({"streamer": True}, "streamer=True is not possible"),
        ({"assistant_model": "x"}, "GPT2LMHeadModel cannot be run in this way"),
    ],
)
def test_options_without_a_good_message_of_transformers_are_refused(options, says: str) -> None:
    model = whence.load("writer")
    with pytest.raises((InputError, ModelError)) as problem:
        written_by(model, model.encode(PROMPT), 2, 0, options)
    assert says in str(problem.value)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("count", ["3", 2.5, True, 0])
def test_a_number_of_tokens_is_a_whole_one(count) -> None:
    model = whence.load("writer")
    with pytest.raises(InputError, match="max_new_tokens is a number of tokens, at least 1, not"):
        written_by(model, model.encode(PROMPT), count, 0, {})


def test_all_tokens_are_drawn_by_their_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch: transformers' own top_k of 50, or a model's own temperature, left in force."""
    model = whence.load("writer")
    monkeypatch.setattr(model.hf.generation_config, "temperature", 0.01)
    prompt = model.encode(PROMPT)
    likeliest = model.output_logits(written_after(model, prompt, [0]))[0].argsort()[::-1]
    ranks = []
    for seed in range(60):
        drawn = written_by(model, prompt, 1, seed, {"do_sample": True})
        ranks.append(int(np.flatnonzero(likeliest == drawn.ids[0])[0]))
    assert max(ranks) >= 50
    assert drawn.decoding["top_k"] == 0
    assert drawn.decoding["top_p"] == drawn.decoding["temperature"] == 1.0
    assert not drawn.notes
    few = written_by(model, prompt, 1, 1, {"do_sample": True, "top_k": 5}).decoding
    assert (few["top_k"], few["temperature"]) == (5, 1.0)


def test_what_a_models_own_files_change_is_recorded_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = whence.load("writer")
    prompt = model.encode(PROMPT)
    plain = written_by(model, prompt, 8, 0, {})
    for name, value in {
        "repetition_penalty": 3.0,
        "no_repeat_ngram_size": 0,
        "typical_p": 0.5,  # of no effect where nothing is drawn
        "bad_words_ids": [[int(plain.ids[0])]],
        "return_dict_in_generate": True,
    }.items():
        monkeypatch.setattr(model.hf.generation_config, name, value)
    changed = written_by(model, prompt, 8, 0, {})
    assert changed.ids.tolist() != plain.ids.tolist()
    own = {"repetition_penalty": 3.0, "bad_words_ids": [[int(plain.ids[0])]]}
    assert changed.decoding == {**plain.decoding, **own}
    (note,) = changed.notes
    assert "repetition_penalty, bad_words_ids" in note
    asked = {"repetition_penalty": 1.0, "bad_words_ids": None}
    again = written_by(model, prompt, 8, 0, asked)
    assert again.ids.tolist() == plain.ids.tolist()
    assert not again.notes


def test_a_text_for_an_encoder_decoder_stands_behind_the_token_it_is_forced_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Would catch: another probability of the same text, given back to the model that wrote it."""
    model = whence.load("translator")
    prompt = model.encode("they push the cow .")
    monkeypatch.setattr(model.hf.generation_config, "forced_bos_token_id", 1)
    by_itself = written_by(model, prompt, 8, 0, {})
    assert by_itself.ids[0] == 1
    assert by_itself.decoding["forced_bos_token_id"] == 1
    passage = written_after(model, prompt, by_itself.ids)
    back = given(model, prompt, passage.pair)
    assert back.ids.tolist() == [i for i in by_itself.ids.tolist() if i != 2]
    assert "in front of what was given" in back.notes[0]


def test_where_a_prompt_ends_is_said() -> None:
    model = whence.load("writer")

    def notes(prompt: str, text: str) -> tuple[str, ...]:
        encoded = model.encode(prompt)
        return notes_on_border(written_after(model, encoded, given(model, encoded, text).ids))

    assert notes("Once upon a", " time") == ()
    assert notes("Once upon a time", ".") == ()
    assert "inside a word" in notes("Once upon a ti", "me there")[0]
    assert "ends with a space" in notes("Once upon a ", "time")[0]
    t5 = small("t5")
    encoded = t5.encode("the foo")
    assert notes_on_border(written_after(t5, encoded, given(t5, encoded, "d is").ids)) == ()


def test_a_models_own_length_gives_way_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    # would catch: "Both max_new_tokens and max_length seem to have been set", for a caller who set
    # one of them
    model = whence.load("translator")
    assert model.hf.generation_config.max_length == 64
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    try:
        written_by(model, model.encode("they push the cow ."), 3, 0, {})
    finally:
        logger.removeHandler(caplog.handler)
    assert not caplog.records
    assert model.hf.generation_config.max_length == 64
