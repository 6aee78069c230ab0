"""Text is data: a tokenizer under which no text can spell a special token, whatever the kind of tokenizer."""

from __future__ import annotations

import json
import secrets
from typing import Any


def literal(backend: Any) -> Any:
    """An own copy of a fast tokenizer, without truncation and padding, for which "</s>" is four characters.

    ``encode_special_tokens`` stops the search for special tokens in the text. That is all it takes for WordPiece and byte-level
    BPE; but a Unigram or whole-word vocabulary has the special tokens among its pieces, and finds them there. Then they are renamed.
    """
    from tokenizers import Tokenizer

    content = backend.to_str()
    copy = _plain(Tokenizer.from_str(content))
    special = {i: t for i, t in copy.get_added_tokens_decoder().items() if t.special}
    probes = [
        probe for t in special.values() for probe in (t.content, f" {t.content} ", f"a{t.content}a")
    ]
    spelled = {i for e in copy.encode_batch(probes, add_special_tokens=False) for i in e.ids} & set(
        special
    )
    if not spelled:
        return copy
    state = json.loads(content)
    vocabulary = state["model"]["vocab"]
    keep = state["model"].get("unk_token")  # known to the model by its name
    if isinstance(vocabulary, list):  # Unigram: pieces in the order of their ids
        renamed = {i for i in special if i < len(vocabulary)}
        for i in renamed:
            vocabulary[i][0] = secrets.token_hex(16)
    else:
        renamed = {
            i for i, t in special.items() if vocabulary.get(t.content) == i and t.content != keep
        }
        for i in renamed:
            vocabulary[secrets.token_hex(16)] = vocabulary.pop(special[i].content)
    # the template around the text knows its tokens by id; those beyond the vocabulary stay, or later ones would change their ids
    state["added_tokens"] = [t for t in state["added_tokens"] if t["id"] not in renamed]
    return _plain(Tokenizer.from_str(json.dumps(state)))


def _plain(copy: Any) -> Any:
    copy.no_truncation()
    copy.no_padding()
    copy.encode_special_tokens = True
    return copy
