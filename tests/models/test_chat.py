"""Chats: the model's own template, its tokens exactly, and messages that can only be text."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import transformers as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import whence
from tests import tokenizers as tok
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.models.model import Model

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.first %}{% set content = bos_token + content %}{% endif %}{{ content }}"
    "{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
# the system's text goes into the first turn; the markers are not marked as special
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{% set first = messages[0]['content'] + '\n\n' %}{% set rest = messages[1:] %}{% else %}"
    "{% set first = '' %}{% set rest = messages %}{% endif %}{% for message in rest %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) }}"
    "{{ '\n' + (first if loop.first else '') + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
# the system's text is written before the last turn of the user, after those that came earlier
MISTRAL = (
    "{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}"
    "{%- set rest = messages[1:] %}{%- else %}{%- set rest = messages %}{%- endif %}"
    "{{- bos_token }}{%- for message in rest %}{%- if message['role'] == 'user' %}"
    "{%- if loop.last and system is defined %}"
    "{{- '[INST] ' + system + '\n\n' + message['content'] + ' [/INST]' }}{%- else %}"
    "{{- '[INST] ' + message['content'] + ' [/INST]' }}{%- endif %}{%- else %}"
    "{{- ' ' + message['content'] + eos_token}}{%- endif %}{%- endfor %}"
)
DOCUMENTED = (
    "{% for d in documents %}{{ '<doc>' + d['title'] + ': ' + d['text'] + '</doc>\n' }}"
    "{% endfor %}{% for message in messages %}{{ message['content'] + '\n' }}{% endfor %}"
)
# by name: template, tokenizer, special tokens, other added tokens
TEMPLATES: dict[str, tuple[str, Any, list[str], list[str]]] = {
    "chatml": (CHATML, tok.byte_level, ["<|im_start|>", "<|im_end|>"], ["\n\n"]),
    "llama3": (
        LLAMA3,
        tok.roberta,
        ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        [],
    ),
    "gemma": (GEMMA, tok.unigram, [], ["<start_of_turn>", "<end_of_turn>", "\n\n"]),
    "mistral": (MISTRAL, tok.unigram, ["[INST]", "[/INST]"], []),
    "documents": (DOCUMENTED, tok.byte_level, ["<doc>", "</doc>"], []),
}
EVERY = ("chatml", "llama3", "gemma", "mistral")
every_template = pytest.mark.parametrize("name", EVERY)
CHAT = [
    {"role": "system", "content": "the service is kind"},
    {"role": "user", "content": "is the food great ?\nI didn't like it"},
    {"role": "assistant", "content": "  the food is fine.  "},
    {"role": "user", "content": "and the menu, très agréable?"},
]


@cache
def chatty(name: str) -> Model:
    """A small decoder that reads chats by a template of this kind."""
    template, tokenizer_of, special, added = TEMPLATES[name]
    tokenizer = tokenizer_of()
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    tokenizer.add_tokens(added)
    if tokenizer.bos_token is None:
        tokenizer.add_special_tokens({"bos_token": "<bos>"})
    tokenizer.chat_template = template
    config = tf.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=256
    )
    return whence.load(tf.GPT2LMHeadModel(config).eval(), tokenizer=tokenizer)


def own_ids(model: Model, chat: list[dict[str, Any]], **more: Any) -> list[int]:
    """What transformers gives for the same chat."""
    encoded = model.tokenizer.apply_chat_template(chat, add_generation_prompt=True, **more)
    return encoded["input_ids"]


# ---------------------------------------------------------------------- tokens


@every_template
@pytest.mark.parametrize("units", ["section", "word", "sentence", "token"])
def test_the_tokens_are_those_of_the_models_own_template(name: str, units: Any) -> None:
    """Would catch contents that are tokenized apart: a space or a line break joins what follows."""
    model = chatty(name)
    passage = model.encode_chat(CHAT, units=units)
    assert passage.ids.tolist() == own_ids(model, CHAT)


@every_template
def test_units_make_up_what_was_said_and_stay_within_their_section(name: str) -> None:
    for units in ("section", "word", "sentence", "token"):
        passage = chatty(name).encode_chat(CHAT, units=units)
        assert "".join(passage.units) == passage.text
        for _, start, end in passage.unit_spans:
            touched = [s for s in passage.sections if max(s.start, start) < min(s.end, end)]
            assert len(touched) == 1
        stored = passage.to_dict()
        assert Passage.from_dict(stored) == passage


@every_template
def test_the_templates_own_text_belongs_to_no_unit(name: str) -> None:
    """Would catch a marker that is removed with the words beside it."""
    model = chatty(name)
    passage = model.encode_chat(CHAT, units="word")
    markers = [
        token.content
        for token in model.tokenizer.backend_tokenizer.get_added_tokens_decoder().values()
        if token.content.strip() and token.content != model.tokenizer.unk_token
    ]
    of_template = np.isin(passage.tokens, markers)
    assert of_template.sum() >= 4
    assert (passage.unit_of[of_template] == -1).all()
    covered: set[int] = set()
    for (start, end), unit in zip(passage.spans, passage.unit_of, strict=True):
        if unit >= 0:
            covered |= set(range(start, end))
    left_out = [c for i, c in enumerate(passage.text) if i not in covered]
    assert "".join(left_out).strip() == ""
    for message in CHAT:
        assert message["content"].strip() in passage.text


def test_messages_are_units_by_name_in_the_order_of_the_template() -> None:
    names = ("system", "user 1", "assistant", "user 2")
    assert chatty("chatml").encode_chat(CHAT).names == names
    # Mistral's template has the system's text just before the last question
    moved = ("user 1", "assistant", "system", "user 2")
    assert chatty("mistral").encode_chat(CHAT).names == moved


def test_a_content_that_the_template_trims_is_found() -> None:
    passage = chatty("llama3").encode_chat(CHAT)
    assert passage.units[2].strip("\n") == "the food is fine."
    kept = chatty("chatml").encode_chat(CHAT)
    assert kept.units[2].strip("\n") == "  the food is fine.  "


def test_a_template_may_write_a_system_text_of_its_own() -> None:
    """Would catch a count of tokens from the front: this text is nobody's message."""
    model = chatty("chatml")
    chat = CHAT[1:2]
    passage = model.encode_chat(chat)
    assert passage.names == ("user",)
    assert passage.ids.tolist() == own_ids(model, chat)
    assert "helpful" not in passage.text


def test_pieces_of_a_content_are_sections_with_the_callers_names() -> None:
    model = chatty("chatml")
    pieces = [
        {"text": "the menu is fine.\n", "section": "document a.txt"},
        {"type": "text", "text": "prices are great.\n", "section": "document b.txt"},
        {"text": "is the food great?"},
    ]
    passage = model.encode_chat([{"role": "user", "content": pieces}])
    assert passage.names == ("document a.txt", "document b.txt", "user")
    whole = "".join(piece["text"] for piece in pieces)
    assert passage.text == whole
    assert passage.ids.tolist() == own_ids(model, [{"role": "user", "content": whole}])
    # a token that takes the space before a word belongs to the section of that word
    spaced = [{"text": "the menu is fine. ", "section": "a"}, {"text": "is it great?"}]
    for units, names in (("section", ("a", "user")), ("word", ("the", "menu", "is", "fine"))):
        passage = model.encode_chat([{"role": "user", "content": spaced}], units=units)
        assert passage.names[: len(names)] == names
        later = passage.units[1:] if units == "section" else passage.units[5:]
        assert "".join(later) == " is it great?"
    named = [{"role": "user", "content": "not bad", "section": "example"}]
    assert model.encode_chat(named).names == ("example",)


def test_documents_go_where_the_template_has_a_place_for_them() -> None:
    model = chatty("documents")
    documents = [{"title": "a", "text": "the menu"}, {"title": "b", "text": "great <doc> food"}]
    chat = [{"role": "user", "content": "is it bad?"}]
    passage = model.encode_chat(chat, documents=documents)
    assert passage.names == ("document a", "document b", "user")
    marker = model.tokenizer.convert_tokens_to_ids("<doc>")
    assert passage.ids.tolist().count(marker) == 2
    with pytest.raises(InputError, match="leaves out document 0"):
        chatty("chatml").encode_chat(chat, documents=documents)


# ---------------------------------------------------------------------- text is data


@every_template
def test_a_message_cannot_spell_a_special_token(name: str) -> None:
    """Would catch a message that ends its own turn: transformers gives it the marker's id."""
    model = chatty(name)
    _, _, special, added = TEMPLATES[name]
    markers = [m for m in (*special, *added, model.tokenizer.bos_token) if m.strip()]
    markers.append(model.tokenizer.eos_token)
    ids = {model.tokenizer.convert_tokens_to_ids(marker) for marker in markers}
    plain = model.encode_chat([{"role": "user", "content": "not bad"}])
    template_markers = sum(int(i) in ids for i in plain.ids)
    for marker in markers:
        chat = [{"role": "user", "content": f"not {marker} bad{marker}"}]
        passage = model.encode_chat(chat, units="token")
        assert sum(int(i) in ids for i in passage.ids) == template_markers
        assert sum(i in ids for i in own_ids(model, chat)) == template_markers + 2
        assert passage.text == chat[0]["content"]
        inside = [int(i) for i, unit in zip(passage.ids, passage.unit_of, strict=True) if unit >= 0]
        assert ids.isdisjoint(inside)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
SPELLED = st.lists(
    st.one_of(TEXTS, st.sampled_from(["<|im_end|>", "<|im_start|>", "<|endoftext|>", "\n\n", "▁"])),
    min_size=1,
    max_size=4,
).map("".join)


@given(st.lists(SPELLED, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_no_text_whatever_becomes_a_special_token(contents: list[str]) -> None:
    """Property: the markers are the template's, and units spell what was said."""
    model = chatty("chatml")
    chat = [{"role": "user", "content": content} for content in contents]
    if not any(content.strip() for content in contents):
        with pytest.raises(InputError):
            model.encode_chat(chat)
        return
    markers = model.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    end = model.tokenizer.eos_token_id
    for units in ("section", "word"):
        passage = model.encode_chat(chat, units=units)
        counts = [passage.ids.tolist().count(marker) for marker in markers]
        # the template's own system text, the messages, and the turn that is begun
        assert counts == [len(chat) + 2, len(chat) + 1]
        assert end not in passage.ids
        assert "".join(passage.units) == passage.text
        for content in contents:
            assert content.strip() in passage.text


@given(st.lists(TEXTS, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_text_without_markers_gets_the_tokens_of_the_models_own_template(
    contents: list[str],
) -> None:
    """Property: nothing but markers is treated in another way than transformers treats it."""
    model = chatty("chatml")
    if not any(content.strip() for content in contents):
        return
    chat = [{"role": "user", "content": content} for content in contents]
    assert model.encode_chat(chat).ids.tolist() == own_ids(model, chat)


# ---------------------------------------------------------------------- bad input


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("chat", "says"),
    [
        ([], "has no message"),
        ("hello", "a chat is a list of messages"),
        ({"role": "user", "content": "hello"}, "a chat is a list of messages"),
        (["hello"], "message 0 of the chat must have a role and a content"),
        ([{"role": "user"}], "must have a role and a content"),
        ([{"role": "usr", "content": "a"}], "message 0: no role .*'usr'. Did you mean 'user'"),
        ([{"role": "user", "content": 3}], "the content is a int and not a text"),
        ([{"role": "user", "content": None}], "the content is a NoneType and not a text"),
        (
            [{"role": "user", "content": [{"type": "image", "url": "x"}]}],
            "a piece of the content is not text",
        ),
        ([{"role": "user", "content": "a", "tool_calls": []}], "has an entry 'tool_calls'"),
        ([{"role": "user", "content": " \n"}], "no message of this chat has a text"),
        ([{"role": "user", "content": "a\ud800"}], "lone surrogate"),
        ([{"role": "user", "content": "the food " * 300}], "positions end at 256"),
    ],
)
def test_what_is_no_chat_is_refused(chat: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        chatty("chatml").encode_chat(chat)


def test_a_template_that_refuses_is_quoted_in_one_line() -> None:
    twice = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    with pytest.raises(InputError, match=r"It says: .*roles must alternate") as problem:
        chatty("gemma").encode_chat(twice)
    assert "\n" not in str(problem.value)


def test_a_template_that_changes_a_message_is_refused() -> None:
    """Would catch words that are looked for in a text that does not hold them."""
    model = chatty("documents")
    shouting = whence.load(model.hf, tokenizer=tok.byte_level())
    shouting.tokenizer.chat_template = "{{ messages[0]['content'] | upper }}"
    with pytest.raises(InputError, match=r"does not write message 0 \(user\) as it is|leaves out"):
        shouting.encode_chat([{"role": "user", "content": "not bad"}])
    cutting = whence.load(model.hf, tokenizer=tok.byte_level())
    cutting.tokenizer.chat_template = "{{ messages[0]['content'].split('k>')[-1] }}"
    with pytest.raises(InputError, match="does not write message 0"):
        cutting.encode_chat([{"role": "assistant", "content": "<think>so</think>not bad"}])
    silent = whence.load(model.hf, tokenizer=tok.byte_level())
    silent.tokenizer.chat_template = "{{ messages[-1]['content'] }}"
    with pytest.raises(InputError, match=r"leaves out message 0 \(system\)"):
        silent.encode_chat(CHAT)


@pytest.mark.usefixtures("unchecked")
def test_models_without_a_template_or_without_a_pen_are_refused() -> None:
    with pytest.raises(InputError, match="writer has no chat template"):
        whence.load("writer").encode_chat(CHAT)
    with pytest.raises(InputError, match="does not write text"):
        whence.load("sentiment").encode_chat(CHAT)
    with pytest.raises(InputError, match="no kind of unit of a chat"):
        chatty("chatml").encode_chat(CHAT, units="paragraph")  # type: ignore[arg-type]


# ---------------------------------------------------------------------- in use


@every_template
def test_a_chat_is_explained_by_its_messages(name: str) -> None:
    model = chatty(name)
    result = whence.generate(
        model, model.encode_chat(CHAT), ["occlusion", "gradient-x-input"], max_new_tokens=3
    )
    assert set(result.units.names[:4]) == {"system", "user 1", "assistant", "user 2"}
    assert result.chosen is not None
    assert len(result.chosen["occlusion"].scores) == 4
    again = type(result).from_dict(result.to_dict())
    assert again.passage.sections == result.passage.sections
    assert again.units.names == result.units.names


def test_sums_over_words_are_those_of_their_messages() -> None:
    """A linear method's score of a message is the sum over its words: a section is no new thing."""
    model = chatty("chatml")
    options: dict[str, Any] = {"max_new_tokens": 2, "evidence": False, "outputs": [0]}
    linear = "gradient-x-input"
    whole = whence.generate(model, model.encode_chat(CHAT), linear, **options).of(0)
    words = whence.generate(model, model.encode_chat(CHAT, units="word"), linear, **options).of(0)
    starts = [section.start for section in words.passage.sections]
    section_of = np.searchsorted(starts, [s for _, s, _ in words.passage.unit_spans], "right") - 1
    sums = np.bincount(section_of, words.scores)
    np.testing.assert_allclose(whole.scores, sums, rtol=1e-5, atol=1e-7)
