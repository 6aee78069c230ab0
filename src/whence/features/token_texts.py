"""The text of each token of a passage."""

from __future__ import annotations

from whence.core.passage import Passage


def token_texts(passage: Passage) -> tuple[str, ...]:
    """The text of each token with the white space before it; nothing for special tokens.

    Joined, the pieces are the text, from the first token's beginning. A letter that is cut into
    several tokens belongs to the first.

    >>> import whence
    >>> token_texts(whence.load("writer").encode("The sea. 🙂"))
    ('The', ' sea', '.', ' ', '🙂', '', '', '')
    """
    texts = (passage.text, passage.pair or "")
    # a passage may be a window of a longer text, and then begins anywhere
    ends: list[int | None] = [None, None]
    pieces = []
    for part, (start, end) in zip(passage.parts.tolist(), passage.spans.tolist(), strict=True):
        if part not in (0, 1):
            pieces.append("")
            continue
        before = ends[part]
        first = start if before is None else before
        ends[part] = last = max(end, first)
        pieces.append(texts[part][first:last])
    return tuple(pieces)
