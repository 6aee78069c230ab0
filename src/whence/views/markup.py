"""Pieces of HTML that every page uses. Every text goes through ``text``, which escapes it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from whence.views import wording


def text(content: object, keep: str = "") -> str:
    """Text that can only be read: tags are escaped and control characters are spelt out.

    >>> text("<b>\\x07")
    '&lt;b&gt;\\\\x07'
    """
    return escape(wording.visible(str(content), keep))


def element(tag: str, content: str = "", /, **attributes: str | int | bool | None) -> str:
    """One element around ``content``, which is HTML already. Values of attributes are escaped here.

    ``class_`` is written as class, ``aria_label`` as aria-label. An attribute that is None or False
    is left out; one that is True stands without a value.

    >>> element("p", "so <b>good</b>", class_="soft", title='"', hidden=False)
    '<p class="soft" title="&quot;">so <b>good</b></p>'
    """
    return f"{opening(tag, **attributes)}{content}</{tag}>"


def opening(tag: str, /, **attributes: str | int | bool | None) -> str:
    """The opening tag of an element, or the whole of one that has no content.

    >>> opening("img", alt="the image")
    '<img alt="the image">'
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        written = name.rstrip("_").replace("_", "-")
        if value is not True:
            shown = text(value, keep="\n\t")
            written += f'="{shown}"'
        parts.append(written)
    return f"<{' '.join(parts)}>"


def elements(tag: str, contents: Iterable[str], /, **attributes: str | int | bool | None) -> str:
    """Elements of the same kind, one after the other.

    >>> elements("li", ["a", "b"])
    '<li>a</li><li>b</li>'
    """
    return "".join(element(tag, content, **attributes) for content in contents)


def table(
    head: str, rows: Iterable[str], class_: str | None = None, caption: str | None = None
) -> str:
    """A table of HTML that is made already; ``head`` is the row of column names, or empty."""
    parts = []
    if caption is not None:
        parts.append(element("caption", caption))
    if head:
        parts.append(element("thead", head))
    parts.append(element("tbody", "".join(rows)))
    return element("table", "".join(parts), class_=class_)


def named(content: object) -> str:
    """The name of a unit, whose reading direction does not change that of what is around it."""
    return element("bdi", text(content))


def around(unit: str) -> tuple[str, str, str]:
    """White space before a unit, the unit, and white space after it.

    >>> around(" so good.\\n"), around("\\n")
    ((' ', 'so good.', '\\n'), ('\\n', '', ''))
    """
    body = unit.strip()
    if not body:
        return unit, "", ""
    start = unit.index(body)
    return unit[:start], body, unit[start + len(body) :]


def soft(content: str) -> str:
    """A paragraph in a softer colour; ``content`` is HTML."""
    return element("p", content, class_="soft")


def scrolling(name: str, content: str, whole: bool = False) -> str:
    """A region that the keyboard can reach and scroll; ``whole``: sideways only."""
    classes = "scroll whole" if whole else "scroll"
    return element("div", content, class_=classes, tabindex=0, role="region", aria_label=name)


def fold(summary: str, content: str) -> str:
    """A part that opens when it is wanted; ``summary`` and ``content`` are HTML."""
    return element("details", element("summary", summary) + content, class_="fold")


def kind(level: float, signed: bool) -> str:
    """The class of a coloured score: p above zero, n below, m without a sign."""
    if not signed:
        return "m"
    return "p" if level > 0 else "n"


def paragraphs(lines: list[str]) -> str:
    """Soft lines below a table; each is plain text."""
    return "".join(soft(text(line)) for line in lines)
