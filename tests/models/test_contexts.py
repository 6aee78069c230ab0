"""Prompts with context and without: only the context has units, and nothing else changes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import whence
from tests.models.test_chat import chatty
from whence.core.errors import InputError
from whence.models.contexts import prompts
from whence.models.model import Model

DOCUMENTS = {"a.txt": "I saw it. It was good.", "b.txt": "No, it was bad."}


@cache
def writer() -> Model:
    return whence.load("writer")


@cache
def translator() -> Model:
    return whence.load("translator")


@pytest.mark.parametrize("units", ["word", "sentence", "token", "section"])
@pytest.mark.parametrize("separator", ["\n", " ", "", " | "])
def test_the_model_reads_what_one_text_would_give(units, separator) -> None:
    both = prompts(writer(), "The movie", DOCUMENTS, units=units, separator=separator)
    text = separator.join([*DOCUMENTS.values(), "The movie"])
    assert both.with_context.text == text
    assert both.with_context.ids.tolist() == writer().encode(text).ids.tolist()
    assert both.without.ids.tolist() == writer().encode("The movie").ids.tolist()


@pytest.mark.parametrize("separator", ["\n", " | "])
def test_units_are_those_of_each_document_alone(separator) -> None:
    both = prompts(writer(), "The movie", DOCUMENTS, units="sentence", separator=separator)
    texts = [text.strip() for text in both.with_context.units.texts]
    assert texts == ["I saw it.", "It was good.", "No, it was bad."]
    # every token without a unit is of the separators or the input: none of a document is lost
    passage = both.with_context
    for (start, end), unit in zip(passage.spans.tolist(), passage.unit_of.tolist(), strict=True):
        in_document = any(s.start < end and start < s.end for s in passage.sections)
        assert in_document == (unit >= 0)


def test_a_document_is_one_unit_of_its_name() -> None:
    both = prompts(writer(), "The movie", DOCUMENTS, units="section")
    assert both.with_context.units.names == ("a.txt", "b.txt")


def test_pieces_of_one_character_stay_in_the_context() -> None:
    passage = prompts(writer(), "The movie", "so 😀 good", units="token").with_context
    assert (passage.unit_of >= 0).sum() == len(writer().encode("so 😀 good").ids)


def test_encoder_decoders_get_a_blank_and_keep_their_special_tokens() -> None:
    both = prompts(translator(), "it is wet .", "the cat falls .")
    assert both.with_context.text == "the cat falls . it is wet ."
    assert both.with_context.units.texts == ("the", " cat", " falls", " .")
    assert both.with_context.tokens[-1] == both.without.tokens[-1] == "</s>"


def test_a_chat_has_the_context_in_its_message_and_the_template_in_both() -> None:
    model = chatty("chatml")
    both = prompts(model, "Was it good?", DOCUMENTS, units="sentence", system="Be short.")
    assert both.is_chat
    chat = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "\n\n".join([*DOCUMENTS.values(), "Was it good?"])},
    ]
    own = model.encode_chat(chat).ids.tolist()
    assert both.with_context.ids.tolist() == own
    chat[1]["content"] = "Was it good?"
    assert both.without.ids.tolist() == model.encode_chat(chat).ids.tolist()
    assert len(both.with_context.units) == 3
    plain = prompts(model, "Was it good?", DOCUMENTS, chat=False)
    assert not plain.is_chat
    assert plain.without.text == "Was it good?"


def test_another_context_stands_in_its_place() -> None:
    both = prompts(writer(), "The movie", "I saw it.", other="I missed it.")
    assert both.without.text == "I missed it.\nThe movie"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"context": " "}, "the context is empty"),
        ({"context": {}}, "there is no context"),
        ({"context": {"a.txt": ""}}, "document 'a.txt' is empty"),
        ({"context": {"a.txt": 3}}, "no text but a int"),
        ({"context": {"input": "x"}}, "cannot be called 'input'"),
        ({"asked": ""}, "the input is empty"),
        ({"asked": 3}, "the input is a text"),
        ({"units": "words"}, "Did you mean 'word'"),
        ({"system": "Be short."}, "message of a chat"),
        ({"chat": True}, "no chat template"),
        ({"context": "so good " * 600}, "shorten the context"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_a_prompt_is_refused(options, said) -> None:
    given = {"asked": "The movie", "context": "I saw it.", **options}
    with pytest.raises(InputError, match=said):
        prompts(writer(), given.pop("asked"), given.pop("context"), **given)


def test_games_see_the_context_alone() -> None:
    """Without any unit, separator and input are still there. Would catch: an input as a player."""
    both = prompts(writer(), "The movie was", "I saw it.")
    target = whence.Target(" a", read="log-probability")
    game = whence.game(writer(), both.with_context, target=target, removal="delete")
    assert len(game.units) == 4
    nothing = float(game(np.zeros((1, 4), dtype=bool))[0])

    rest = writer().encode("\nThe movie was").ids
    with torch.no_grad():
        logits = writer().hf(torch.tensor(rest[None])).logits[0, -1].double()
    (token,) = writer().tokenizer(" a")["input_ids"]
    assert nothing == pytest.approx(float(torch.log_softmax(logits, -1)[token]), abs=1e-5)
