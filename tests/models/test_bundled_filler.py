"""The bundled masked language model.

It reads the ids of `sentiment`, knows more than word frequencies, and its card tells the truth.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertForMaskedLM

import whence
from whence.models.finding import BUNDLED, bundled
from whence.models.model import Model

CARD = BUNDLED / "filler" / "README.md"
MASK = "[MASK]"
ADJECTIVES = (
    "good",
    "great",
    "bad",
    "funny",
    "boring",
    "terrible",
    "awful",
    "excellent",
    "wonderful",
    "amazing",
    "perfect",
    "interesting",
)
# One word hidden from each, and its share in the training texts (counted by training/filler.py's
# `unigram`). None was trained on.
HELD_OUT = [
    ("we walked home after the [MASK] was over .", "film", 4.62e-03),
    ("nobody in my family wanted to [MASK] there .", "be", 3.48e-03),
    ("she looked at him [MASK] said nothing .", "and", 1.84e-02),
    ("it was the [MASK] day of my life .", "best", 7.54e-04),
    ("my brother thinks it is one of the worst films he has ever [MASK] .", "seen", 5.35e-04),
    ("our evening was a complete waste of [MASK] .", "time", 1.32e-03),
]


@pytest.fixture(scope="module")
def filler() -> Model:
    return whence.load("filler")


@pytest.fixture(scope="module")
def sentiment() -> Model:
    return whence.load("sentiment")


def fill(filler: Model, text: str) -> torch.Tensor:
    """The distribution over the vocabulary at the one hole of a text."""
    ids = filler.tokenizer(text, return_tensors="pt")["input_ids"]
    (hole,) = (ids[0] == filler.tokenizer.mask_token_id).nonzero()[:, 0].tolist()
    with torch.no_grad():
        return filler.hf(input_ids=ids).logits[0, hole].softmax(-1)


def chance(filler: Model, text: str, word: str) -> float:
    number = filler.tokenizer.convert_tokens_to_ids(word)
    assert (
        number != filler.tokenizer.unk_token_id
    )  # the chance of [UNK] would say nothing about the word
    return float(fill(filler, text)[number])


def test_it_loads_by_name_as_a_masked_model_in_full_precision(filler: Model) -> None:
    assert "filler" in bundled()
    assert filler.task == "masked"
    assert type(filler.hf) is BertForMaskedLM
    assert {p.dtype for p in filler.hf.parameters()} == {torch.float32}
    assert all(bool(p.isfinite().all()) for p in filler.hf.parameters())
    # The enemy is a head of its own: 2.3 MB more, and missing from the checkpoint.
    assert filler.hf.get_output_embeddings().weight is filler.hf.get_input_embeddings().weight


def test_it_has_the_vocabulary_and_the_limit_of_sentiment(filler: Model, sentiment: Model) -> None:
    assert filler.tokenizer.get_vocab() == sentiment.tokenizer.get_vocab()
    assert filler.tokenizer.all_special_ids == sentiment.tokenizer.all_special_ids
    assert filler.tokenizer.mask_token_id == sentiment.tokenizer.mask_token_id
    assert filler.limit == sentiment.limit == 512
    for name in (
        "tokenizer.json",
        "tokenizer_config.json",
    ):  # the enemy remembers where its training cut texts off
        assert (BUNDLED / "filler" / name).read_bytes() == (
            BUNDLED / "sentiment" / name
        ).read_bytes()
    long = "not bad " * 400
    assert filler.backend.encode(long).ids == sentiment.backend.encode(long).ids
    assert filler.hf.config.vocab_size == sentiment.hf.config.vocab_size == len(filler.tokenizer)


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            ["the", "Film", "naïve", "[MASK]", "[SEP]", "isn't", "日本", "👍🏽", "\x00", "-"]
        )
    ).map(" ".join)
)
def test_it_gives_any_text_the_ids_and_places_that_sentiment_gives_it(
    filler: Model, sentiment: Model, text: str
) -> None:
    mine, theirs = (
        model.tokenizer(text, return_offsets_mapping=True) for model in (filler, sentiment)
    )
    assert mine["input_ids"] == theirs["input_ids"]
    assert mine["offset_mapping"] == theirs["offset_mapping"]


def test_it_fills_an_adjective_where_one_belongs(filler: Model) -> None:
    here = fill(filler, f"the movie was {MASK} .")
    vocabulary = filler.tokenizer.get_vocab()
    adjectives = [vocabulary[word] for word in ADJECTIVES if word in vocabulary]
    # The enemy knows frequencies only, and says the same everywhere: "the", or a full stop.
    elsewhere = fill(filler, f"the movie was made by {MASK} best director in town .")
    assert float(here[adjectives].sum()) > 5 * float(elsewhere[adjectives].sum())
    assert vocabulary["the"] == int(elsewhere.argmax())


@pytest.mark.parametrize(("text", "word", "share"), HELD_OUT)
def test_it_knows_more_than_how_frequent_a_word_is(
    filler: Model, text: str, word: str, share: float
) -> None:
    assert chance(filler, text, word) > share


def test_context_decides_what_it_fills(filler: Model) -> None:
    """The enemy ignores the words around the hole, or sees them through shifted positions."""
    plural, singular = (
        fill(filler, f"these movies {MASK} good ."),
        fill(filler, f"this movie {MASK} good ."),
    )
    vocabulary = filler.tokenizer.get_vocab()
    are, is_ = vocabulary["are"], vocabulary["is"]
    assert plural[are] / plural[is_] > 5 * singular[are] / singular[is_]


def test_it_reads_as_many_tokens_as_it_says(filler: Model) -> None:
    ids = filler.tokenizer("the film was good . " * 200, truncation=True, return_tensors="pt")[
        "input_ids"
    ]
    assert ids.shape == (1, 512)
    ids[0, 5::50] = filler.tokenizer.mask_token_id
    with torch.no_grad():
        assert bool(filler.hf(input_ids=ids).logits.isfinite().all())


def test_the_card_says_the_size_and_the_numbers_of_these_weights(filler: Model) -> None:
    card = CARD.read_text(encoding="utf-8")
    assert "smoke run (--quick)" not in card
    limit = re.search(r"less than (\d+) MB", card)
    assert limit is not None
    assert (
        sum(path.stat().st_size for path in CARD.parent.iterdir())
        < int(limit[1]) * 1_000_000
        <= 6_000_000
    )
    parameters = re.search(r"([\d,]+) parameters", card)
    assert parameters is not None
    assert int(parameters[1].replace(",", "")) == sum(p.numel() for p in filler.hf.parameters())
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in card.splitlines()
        if line.startswith("|") and MASK in line
    ]
    assert len(rows) >= 5
    for text, fills, word, said, share in rows:
        here = fill(filler, text)
        best = filler.tokenizer.convert_ids_to_tokens(here.topk(5).indices.tolist())
        assert re.findall(r"(\S+) \d\.\d\d", fills) == best
        np.testing.assert_allclose(
            chance(filler, text, word), float(said), atol=6e-5
        )  # it is printed to four places
        assert float(said) >= float(share)
