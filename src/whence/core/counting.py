"""Numbers of things in words: one is no plural."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "text"), counted(1200, "text")
    ('1 text', '1,200 texts')
    """
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def texts_done(done: int, every: int) -> str:
    """Said of a run: how many of its texts are done.

    >>> texts_done(1, 40), texts_done(40, 40), texts_done(1, 1)
    ('1 of 40 texts is done', 'all 40 texts are done', 'the text is done')
    """
    if done == every > 0:
        return "the text is done" if every == 1 else f"all {every:,} texts are done"
    return f"{done:,} of {counted(every, 'text')} {'is' if done == 1 else 'are'} done"


def texts_done_and_failed(done: int, every: int, failed: int) -> str:
    """Said of a run: the same, and of how many of them nothing came.

    >>> texts_done_and_failed(4, 4, 1), texts_done_and_failed(1, 1, 1)
    ('all 4 texts are done, 1 of them failed', 'the text is done, and it failed')
    """
    if done == 1:
        return f"{texts_done(done, every)}{', and it failed' if failed else ''}"
    return f"{texts_done(done, every)}, {f'{failed:,} of them failed' if failed else 'none failed'}"
