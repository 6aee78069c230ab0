"""The stored tokenizers are the same on every machine and in every run."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tests import tokenizers as tok

# The ids that the stored files give to this text. Another training would give others.
TEXT = "the food is great but dull"
IDS = {
    "wordpiece": [2, 128, 160, 185, 130, 148, 156, 93, 159, 143, 3],
    "byte-level": [261, 262, 344, 277, 313, 273, 351, 298, 353],
    "roberta": [0, 265, 266, 348, 281, 317, 277, 355, 302, 357, 2],
    "unigram": [3, 11, 10, 9, 9, 12, 23, 4, 3, 48, 5, 55, 17, 22, 6, 59, 22, 44, 1],
}
SIZES = {"wordpiece": 220, "byte-level": 400, "roberta": 400, "unigram": 136}


@pytest.mark.parametrize("kind", tok.KINDS)
def test_a_stored_tokenizer_gives_the_same_ids_in_every_run(kind: str) -> None:
    """Would catch a tokenizer that is trained while tests run: its ties break by chance."""
    tokenizer = tok.KINDS[kind]()
    assert len(tokenizer) == SIZES[kind]
    assert tokenizer(TEXT)["input_ids"] == IDS[kind]


@pytest.mark.parametrize("kind", tok.KINDS)
@pytest.mark.parametrize("text", tok.CORPUS)
def test_a_text_comes_back_from_its_ids(kind: str, text: str) -> None:
    """Would catch a file whose pieces or whose decoder were lost on the way."""
    tokenizer = tok.KINDS[kind]()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.unk_token_id not in ids
    if kind == "wordpiece":
        # this kind lowers letters and forgets spaces
        normal = tokenizer.backend_tokenizer.normalizer.normalize_str(text)
        pieces = tokenizer.convert_ids_to_tokens(ids)
        assert "".join(p.removeprefix("##") for p in pieces) == "".join(normal.split())
    else:
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", tok.KINDS)
def test_a_tokenizer_is_saved_and_loaded_the_ordinary_way(kind: str, tmp_path: Path) -> None:
    tokenizer = tok.KINDS[kind]()
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.get_vocab() == tokenizer.get_vocab()
    assert again(TEXT, "not bad")["input_ids"] == tokenizer(TEXT, "not bad")["input_ids"]
    assert again.special_tokens_map == tokenizer.special_tokens_map


@pytest.mark.parametrize("kind", tok.KINDS)
def test_each_call_reads_a_fresh_tokenizer(kind: str) -> None:
    """Would catch a shared one: a token that one test adds would move another test's ids."""
    changed = tok.KINDS[kind]()
    changed.add_tokens(["<added by a test>"])
    assert len(tok.KINDS[kind]()) == SIZES[kind]


@pytest.mark.parametrize("kind", tok.KINDS)
def test_the_script_still_makes_the_kind_that_is_stored(kind: str) -> None:
    """All but the vocabulary, which training finds anew."""
    trained, stored = tok.TRAINED[kind](), tok.KINDS[kind]().backend_tokenizer
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        theirs, ours = getattr(trained, part), getattr(stored, part)
        assert type(theirs) is type(ours)
        assert theirs is None or theirs.__getstate__() == ours.__getstate__()
    assert type(trained.model) is type(stored.model)
    assert trained.get_added_tokens_decoder().keys() == stored.get_added_tokens_decoder().keys()
