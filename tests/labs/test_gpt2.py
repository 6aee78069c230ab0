"""The GPT-2 lab: its claims, and its functions against torch, transformers and tokenizers."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

from tests.families import build
from whence.core.errors import InputError, Unsupported
from whence.generation import readable, token_bytes
from whence.labs.gpt2 import (
    TITLE,
    gelu,
    gelu_tanh,
    gpt2_logits,
    joined,
    layer_norm,
    parameters,
    run,
    train_bpe,
)
from whence.labs.running import lab
from whence.notebook import Notebook

# nothing makes these hold for every model
MEASURED_ONLY = ("Beam search of width 4", "Greedy text repeats")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("gpt2")
    model = build("gpt2", seed=1)
    model.hf.save_pretrained(where)
    model.tokenizer.save_pretrained(where)
    return str(where)


@pytest.fixture(scope="module")
def book():
    before = torch.get_rng_state()
    book = lab("gpt2", quick=True, formats=["svg"])
    assert torch.equal(torch.get_rng_state(), before)
    return book


@pytest.mark.slow  # a whole lab
def test_every_claim_holds(book):
    wrong = [c for c in book.claims if not c.holds]
    assert not [c for c in wrong if not c.claim.startswith(MEASURED_ONLY)]
    assert len(book.claims) == 21


@pytest.mark.slow  # a whole lab
def test_figures_and_tables_are_there(book):
    assert [f.name for f in book.figures] == [
        "gpt2-layer-norm",
        "gpt2-gelu",
        "gpt2-rules",
        "gpt2-beam",
    ]
    assert [t.name for t in book.tables] == [
        "gpt2-merges",
        "gpt2-tokens",
        "gpt2-parameters",
        "gpt2-texts",
    ]
    assert all(t.rows for t in book.tables)


# ---------------------------------------------------------------------- byte pairs


def test_the_lecture_example():
    merges = train_bpe(("low", "login"), 10)
    assert [(m.pair, m.count) for m in merges] == [((b"l", b"o"), 2)]
    assert merges[0].words == ((b"lo", b"w"), (b"lo", b"g", b"i", b"n"))


def test_merges_of_the_example_of_sennrich_et_al():
    """5 low, 2 lower, 6 newest, 3 widest.

    Would catch counts per word in place of counts per occurrence, and ties by the last met.
    """
    words = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    found = [(b"".join(m.pair), m.count) for m in train_bpe(words, 5)]
    assert found == [(b"es", 9), (b"est", 9), (b"lo", 7), (b"low", 7), (b"ne", 6)]


WORD = st.text(alphabet="abé🙂", min_size=1, max_size=8)


@given(st.lists(WORD, min_size=1, max_size=6))
@settings(max_examples=50)
def test_merging_loses_no_byte_and_never_takes_a_rarer_pair(words):
    before = tuple(tuple(bytes([b]) for b in w.encode()) for w in words)
    for m in train_bpe(words, 20):
        assert [b"".join(w) for w in m.words] == [w.encode() for w in words]
        pairs = [p for w in before for p in pairwise(w)]
        assert m.count == pairs.count(m.pair) == max(pairs.count(p) for p in pairs) >= 2
        before = m.words
    left = [p for w in before for p in pairwise(w)]
    assert len(train_bpe(words, 20)) == 20 or len(set(left)) == len(left)


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=10), min_size=1, max_size=6))
@settings(max_examples=50)
def test_the_tokenizers_library_cuts_alike_with_our_merges(words):
    """An independent encoder; would catch joins from the right, which cut 'aaa' as a|aa."""
    merges = train_bpe(words, 20)
    tokens = ["a", "b", "c", *dict.fromkeys(b"".join(m.pair).decode() for m in merges)]
    theirs = Tokenizer(
        models.BPE(
            {t: i for i, t in enumerate(tokens)},
            [(m.pair[0].decode(), m.pair[1].decode()) for m in merges],
        )
    )
    for word in words:
        cut = tuple(bytes([b]) for b in word.encode())
        for m in merges:
            cut = joined(cut, m.pair)
        assert [t.decode() for t in cut] == theirs.encode(word).tokens


def test_a_long_word_is_no_deep_recursion():
    assert train_bpe(["a" * 5000], 1)[0].words == ((b"aa",) * 2500,)


@given(st.text(max_size=12))
@settings(max_examples=50)
def test_bytes_of_tokens_are_those_of_the_text(text):
    """Against the tokenizer's own alphabet; would catch the space at the wrong letter."""
    from tests.tokenizers import byte_level

    assert b"".join(token_bytes(t) for t in byte_level().tokenize(text)) == text.encode()


def test_a_part_of_a_letter_is_shown_as_bytes():
    assert [readable(t) for t in (b" a", b"\n", "é".encode()[:1])] == ["␣a", "⏎", "⟨c3⟩"]


# ---------------------------------------------------------------------- the block


@pytest.mark.parametrize("length", [1, 2, 30])
def test_logits_are_those_of_transformers(length):
    hf = build("gpt2", seed=5).hf.double()
    ids = torch.randint(
        0, hf.config.vocab_size, (length,), generator=torch.Generator().manual_seed(0)
    )
    with torch.no_grad():
        wanted = hf(input_ids=ids[None]).logits[0]
        torch.testing.assert_close(gpt2_logits(hf, ids), wanted, atol=1e-9, rtol=1e-9)
        # the exact GELU is the likely slip, and is seen
        assert (gpt2_logits(hf, ids, gelu) - wanted).abs().max() > 1e-6


@pytest.mark.parametrize("sizes", [(50, 16, 8, 1), (97, 32, 12, 3)])
def test_parameters_are_counted_as_transformers_does(sizes):
    """Would catch a forgotten bias, and the un-embedding counted twice."""
    vocabulary, positions, width, layers = sizes
    hf = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary, n_positions=positions, n_embd=width, n_layer=layers, n_head=2
        )
    )
    assert sum(n for *_, n in parameters(*sizes)) == sum(p.numel() for p in hf.parameters())


def test_layer_norm_is_that_of_torch():
    """Would catch the unbiased variance, and eps outside the root."""
    draw = torch.Generator().manual_seed(0)
    f, gamma, beta = (
        torch.randn(*s, 6, generator=draw, dtype=torch.float64) for s in ((4,), (), ())
    )
    torch.testing.assert_close(
        layer_norm(f, gamma, beta, 0.3), functional.layer_norm(f, (6,), gamma, beta, 0.3)
    )


def test_gelu_is_that_of_torch():
    """Would catch 1 / (2 pi) in Phi, and a wrong constant in the approximation."""
    x = torch.linspace(-6, 6, 101, dtype=torch.float64)
    torch.testing.assert_close(gelu(x), functional.gelu(x))
    torch.testing.assert_close(gelu_tanh(x), functional.gelu(x, approximate="tanh"))


# ---------------------------------------------------------------------- refusals


def test_words_of_nothing_are_refused(folder):
    with pytest.raises(InputError, match="nothing to merge"):
        run(Notebook(TITLE, quick=True), words="  ", model=folder)


def test_another_kind_of_model_is_refused():
    with pytest.raises(Unsupported, match="name a GPT-2"):
        run(Notebook(TITLE, quick=True), model="sentiment")
