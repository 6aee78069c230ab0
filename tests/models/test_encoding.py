"""From text to passages.

For every kind of tokenizer the units are the text, and the text is never a special token.
"""

from __future__ import annotations

import io
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
import transformers as tf
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests import tokenizers as tok
from whence.core.errors import InputError, ModelError
from whence.core.passage import Passage
from whence.models.literal import literal
from whence.models.model import Model


@cache
def sentencepiece_model() -> sentencepiece.SentencePieceProcessor:
    """A real SentencePiece model, trained by its own package."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tok.CORPUS * 3), model_writer=out, vocab_size=200,
        character_coverage=1.0,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False,
        minloglevel=2, num_threads=1,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())


@cache
def t5() -> Any:
    """T5's own tokenizer class over the pieces and scores of that model.

    Reading the file itself would need protobuf.
    """
    model = sentencepiece_model()
    return tf.T5Tokenizer(
        vocab=[(model.id_to_piece(i), model.get_score(i)) for i in range(model.get_piece_size())],
        extra_ids=0,
    )


@cache
def whole_words() -> Any:
    """Whole words between spaces: the special tokens are words of the vocabulary like any other."""
    words = ["[PAD]", "[UNK]", "[SEP]", "the", "food", "is"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP]", pair="$A [SEP] $B [SEP]", special_tokens=[("[SEP]", 2)]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", sep_token="[SEP]"
    )


KINDS = {**tok.KINDS, "t5": t5, "whole-words": whole_words}


@cache
def reader(kind: str) -> Model:
    """A Model that can encode: the smallest thing around a tokenizer."""
    tokenizer = KINDS[kind]()
    embeddings = torch.nn.Embedding(max(len(tokenizer), 512), 1)
    config = SimpleNamespace(
        is_encoder_decoder=False, get_text_config=lambda: SimpleNamespace(model_type="t5")
    )
    hf: Any = SimpleNamespace(config=config, get_input_embeddings=lambda: embeddings, modules=list)
    return Model(hf, tokenizer, "classification", kind)


def assert_partition(p: Passage) -> None:
    """The identity that everything stands on: units ↔ text and units ↔ tokens."""
    assert "".join(p.units) == p.text + (p.pair or "")
    assert ((p.unit_of >= 0) == (p.parts >= 0)).all()
    assert sorted(set(p.unit_of[p.unit_of >= 0].tolist())) == list(range(len(p.units)))
    inside = p.unit_of[p.unit_of >= 0]
    assert (np.diff(inside) >= 0).all()
    for part, content in enumerate([p.text] if p.pair is None else [p.text, p.pair]):
        of_part = [(a, b) for k, a, b in p.unit_spans if k == part]
        assert of_part[0][0] == 0
        assert of_part[-1][1] == len(content)
        assert all(before[1] == after[0] for before, after in pairwise(of_part))
    for t in np.flatnonzero(p.unit_of >= 0):
        part, start, end = p.unit_spans[p.unit_of[t]]
        assert part == p.parts[t]
        assert (
            p.kind == "token" or start <= p.spans[t][0] <= p.spans[t][1] <= end
        )  # no unit cuts a token


def template_ids(tokenizer: Any, pair: bool) -> list[int]:
    ids = tokenizer("the", "food" if pair else None)["input_ids"]
    plain = tokenizer("the", add_special_tokens=False)["input_ids"] + (
        tokenizer("food", add_special_tokens=False)["input_ids"] if pair else []
    )
    for i in plain:
        ids.remove(i)
    return ids


SPECIALS = [
    "[SEP]",
    "[CLS]",
    "[MASK]",
    "[PAD]",
    "</s>",
    "<s>",
    "<pad>",
    "<mask>",
    "<|endoftext|>",
    "<unk>",
    "[UNK]",
]
ODD = [
    " ",
    "  ",
    "\t",
    "\r\n",
    "\x00",
    "it's",
    "well-made",
    "3.14",
    "中国",
    "ดีมาก",
    "👍🏽",
    "👨‍👩‍👧",
    "🇫🇷",
    "e\u0301",
    "سلام",
    ".",
]
PRIVATE = [
    "ﷺ",
    "ﬁ",
    "İ",
    "▁",
    "Ġ",
    "##s",
    "\u200d",
    "\ufeff",
]  # what normalisers expand, and the tokenizers' own signs
PIECES = st.sampled_from([*SPECIALS, *ODD, *PRIVATE])
TEXTS = st.text(max_size=16) | st.lists(PIECES | st.text(max_size=3), max_size=6).map("".join)


@pytest.mark.usefixtures("unchecked")  # of each character; the checks would take most of the time
@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    text=TEXTS,
    pair=st.none() | TEXTS,
    units=st.sampled_from(["word", "token", "sentence"]) | st.lists(st.integers(0, 6), max_size=3),
)
@example(text="\x00", pair="good", units="word")  # the enemy left the first text without a unit
@example(text="\u0301\x00", pair=None, units="word")
@example(text="a ﷺ b", pair=None, units="token")  # one character, many pieces
def test_units_partition_any_unicode_under_every_tokenizer(
    kind: str, text: str, pair: str | None, units: Any
) -> None:
    longest = max(len(text), len(pair or ""))
    units = units if isinstance(units, str) else [u for u in units if u < longest]
    tokenizer = KINDS[kind]()
    try:
        p = reader(kind).encode(text, pair, units=units)
    except InputError:
        blank = not text.strip() or (pair is not None and not pair.strip())
        assert blank or not (
            tokenizer(text, add_special_tokens=False)["input_ids"]
            and tokenizer(pair or "a", add_special_tokens=False)["input_ids"]
        )
        return
    assert_partition(p)
    # "[SEP]" in the text is five characters: but for the unknown, no special id stands where the
    # template puts none
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    assert not special & set(p.ids[p.unit_of >= 0].tolist())
    assert p.ids[p.unit_of < 0].tolist() == template_ids(tokenizer, pair is not None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spelled", SPECIALS)
def test_text_that_spells_a_special_token_is_data_and_the_callers_tokenizer_stays_as_it_was(
    kind: str, spelled: str
) -> None:
    tokenizer = KINDS[kind]()
    before = tokenizer.backend_tokenizer.to_str()
    flag = tokenizer.backend_tokenizer.encode_special_tokens
    p = reader(kind).encode(f"the {spelled} food")
    assert_partition(p)
    assert spelled in "".join(p.units)
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    assert not special & set(
        p.ids[~p.special].tolist()
    )  # the enemy: Unigram finds "</s>" among its own pieces
    assert tokenizer.backend_tokenizer.to_str() == before
    assert tokenizer.backend_tokenizer.encode_special_tokens == flag


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", tok.CORPUS)
def test_plain_text_gets_the_ids_and_segments_that_the_tokenizer_itself_gives(
    kind: str, text: str
) -> None:
    # the enemy renames a piece that is no special token, or moves an id
    tokenizer = KINDS[kind]()
    alone, pair = reader(kind).encode(text), reader(kind).encode(text, "the food")
    assert alone.ids.tolist() == tokenizer(text)["input_ids"]
    expected = tokenizer(text, "the food")
    assert pair.ids.tolist() == expected["input_ids"]
    assert (
        pair.types is None and "token_type_ids" not in expected
    ) or pair.types.tolist() == expected["token_type_ids"]


@pytest.mark.parametrize("text", [t for t in tok.CORPUS if "\n" not in t])
def test_sentencepiece_pieces_are_those_of_the_sentencepiece_package(text: str) -> None:
    assert reader("t5").encode(text).ids.tolist() == [*sentencepiece_model().encode(text), 1]


def test_added_tokens_that_are_not_special_keep_their_ids() -> None:
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tok.unigram().backend_tokenizer.to_str()),
        eos_token="</s>",
    )
    tokenizer.add_tokens(["<emoji>"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<x>"]})
    tokenizer.add_tokens(["<later>"])
    ids = literal(tokenizer.backend_tokenizer).encode("a <emoji> <x> <later>").ids
    later, emoji, special = tokenizer.convert_tokens_to_ids(["<later>", "<emoji>", "<x>"])
    assert later in ids
    assert emoji in ids
    assert special not in ids


@pytest.mark.parametrize("kind", tok.KINDS)
@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("I didn't like it, it's dull", ["I", " didn't", " like", " it", ",", " it's", " dull"]),
        ("A well-made film!", ["A", " well", "-", "made", " film", "!"]),
        ("  thumbs up 👍🏽", ["  thumbs", " up", " 👍🏽"]),
        ("numbers 3.14 and 1,000", ["numbers", " 3.14", " and", " 1,000"]),
        ("une soire\u0301e", ["une", " soire\u0301e"]),
        ("tabs\tand\nnewlines", ["tabs", "\tand", "\nnewlines"]),
        ("flag 🇫🇷 family 👨‍👩‍👧", ["flag", " 🇫🇷", " family", " 👨‍👩‍👧"]),
        ("سلام the שלום", ["سلام", " the", " שלום"]),
    ],
)
def test_words_are_the_same_whatever_the_tokenizer(kind: str, text: str, units: list[str]) -> None:
    # the enemy reads "Ġ", "##" or "▁"
    assert list(reader(kind).encode(text).units) == units


@pytest.mark.parametrize("kind", ["byte-level", "roberta"])
def test_an_emoji_of_many_byte_pieces_is_one_unit_with_all_of_them(kind: str) -> None:
    p = reader(kind).encode("ok 🧑🏿‍🚀!")
    assert p.units == ("ok", " 🧑🏿‍🚀", "!")
    assert (p.unit_of == 1).sum() > 4


def test_units_of_a_pair_belong_to_their_own_text() -> None:
    p = reader("wordpiece").encode("the food", "is great")
    assert p.units == ("the", " food", "is", " great")
    assert [part for part, _, _ in p.unit_spans] == [0, 0, 1, 1]
    assert p.types is not None
    assert p.types.tolist()[-1] == 1


def test_sections_of_the_caller_become_units() -> None:
    text = "user: the food. bot: is great"
    p = reader("roberta").encode(text, units=[0, text.index("bot")])
    assert p.units == ("user: the food. ", "bot: is great")
    assert p.kind == "section"


@pytest.mark.parametrize(
    ("text", "pair", "message"),
    [
        ("", None, "empty or only white space"),
        (" \n\t\u3000", None, "empty or only white space"),
        ("good", "  ", "empty or only white space"),
        ("\x00\x01", None, "the tokenizer leaves no token of it"),
        (3, None, "reads text, not a int"),
        ("good", 3, "reads text, not a int"),
        (None, None, "reads text, not a NoneType"),
        ("a\ud800b", None, "lone surrogate U+D800 at character 1"),
        ("good", "\udfff", "lone surrogate U+DFFF at character 0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_text_that_cannot_be_explained_is_refused_with_the_reason(
    text: Any, pair: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message.replace("+", r"\+")):
        reader("wordpiece").encode(text, pair)


@pytest.mark.usefixtures("unchecked")
def test_a_refusal_does_not_repeat_a_long_text() -> None:
    with pytest.raises(InputError) as caught:
        reader("wordpiece").encode("\x00" * 100_000)
    assert len(str(caught.value)) < 300


def test_nul_is_a_byte_like_any_other_for_a_byte_level_tokenizer() -> None:
    assert_partition(p := reader("byte-level").encode("a\x00b"))
    assert len(p.units) == 3


def test_a_tokenizer_with_more_ids_than_the_model_embeds_is_refused() -> None:
    model = reader("wordpiece")
    small: Any = SimpleNamespace(
        **{**vars(model.hf), "get_input_embeddings": lambda: torch.nn.Embedding(6, 1)}
    )
    with pytest.raises(ModelError, match="do not belong together"):
        Model(small, model.tokenizer, "classification", "small").encode("the food is great")


@pytest.mark.parametrize("kind", ["wordpiece", "byte-level", "unigram"])
@pytest.mark.usefixtures("unchecked")
def test_a_hundred_thousand_characters_are_encoded_in_a_few_seconds(kind: str) -> None:
    text = "the food is great. " * 5300
    p = reader(kind).encode(text, overflow="window")
    assert len(text) > 100_000
    assert_partition(p)
