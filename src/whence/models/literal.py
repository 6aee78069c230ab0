"""Text is data: a tokenizer under which no text can spell a special token.

This holds for every kind of tokenizer.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any


def literal(backend: Any) -> Any:
    """An own copy of a fast tokenizer, without truncation and padding, for which "</s>" is text.

    ``encode_special_tokens`` stops the search for special tokens in the text. That is all it takes
    for WordPiece and byte-level BPE; but a Unigram or whole-word vocabulary has the special tokens
    among its pieces, and finds them there. Then they are renamed.
    """
    from tokenizers import Tokenizer

    content = backend.to_str()
    copy = _plain(Tokenizer.from_str(content))
    special = {i: t.content for i, t in copy.get_added_tokens_decoder().items() if t.special}
    if not _can_be_spelled(copy, special):
        return copy

    state = json.loads(content)
    renamed = _rename(state["model"], special)
    # The template around the text knows its tokens by id. Those beyond the vocabulary stay, or
    # later ones would change their ids.
    state["added_tokens"] = [t for t in state["added_tokens"] if t["id"] not in renamed]
    return _plain(Tokenizer.from_str(json.dumps(state)))


def with_other_names(backend: Any, names: Mapping[str, str]) -> Any:
    """An own copy of a fast tokenizer, in which some added tokens are spelled otherwise.

    ``names`` gives the new spelling of each. Ids and all else stay.
    """
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    for token in state["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])

    model = state["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pieces with their scores
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    else:
        model["vocab"] = {names.get(piece, piece): i for piece, i in vocabulary.items()}
    if model.get("unk_token") in names:  # known by its name
        model["unk_token"] = names[model["unk_token"]]

    copy = Tokenizer.from_str(json.dumps(state))
    copy.no_truncation()
    copy.no_padding()
    return copy


def _plain(copy: Any) -> Any:
    copy.no_truncation()
    copy.no_padding()
    copy.encode_special_tokens = True
    return copy


def _can_be_spelled(tokenizer: Any, special: dict[int, str]) -> bool:
    """Whether some text with the characters of a special token gets that token's id."""
    probes = []
    for content in special.values():
        probes += [content, f" {content} ", f"a{content}a"]
    for encoding in tokenizer.encode_batch(probes, add_special_tokens=False):
        if not special.keys().isdisjoint(encoding.ids):
            return True
    return False


def _rename(model: dict[str, Any], special: dict[int, str]) -> set[int]:
    """Give the special tokens among the pieces names that no text has; the ids of those renamed."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pieces in the order of their ids
        renamed = {i for i in special if i < len(vocabulary)}
        for i in renamed:
            vocabulary[i][0] = secrets.token_hex(16)
        return renamed

    known_by_name = model.get("unk_token")
    renamed = set()
    for i, content in special.items():
        if vocabulary.get(content) == i and content != known_by_name:
            vocabulary[secrets.token_hex(16)] = vocabulary.pop(content)
            renamed.add(i)
    return renamed
