"""The text of each token of a passage."""

from __future__ import annotations

from whence.core.passage import Passage


def token_texts(passage: Passage) -> tuple[str, ...]:
    """The text of each token with the white space before it; nothing for special tokens.

    Joined, the pieces are the text. A letter that is cut into several tokens belongs to the first.

    >>> import whence
    >>> token_texts(whence.load("writer").encode("The sea. 🙂"))
    ('The', ' sea', '.', ' 🙂', '', '', '')
    """
    texts = (passage.text, passage.pair or "")
    ends = [0, 0]
    pieces = []
    for part, (_, end) in zip(passage.parts.tolist(), passage.spans.tolist(), strict=True):
        if part not in (0, 1):
            pieces.append("")
            continue
        pieces.append(texts[part][ends[part] : max(end, ends[part])])
        ends[part] = max(end, ends[part])
    return tuple(pieces)
