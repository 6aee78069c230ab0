"""The shell of every page, and data inside a page.

Every page has the same width, the same button for light and dark, and the same white paper. A page
is one file: it loads nothing from elsewhere, and its content-security policy forbids it to.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any
from uuid import uuid4

from whence.core.showing import visible_json
from whence.views import wording
from whence.views.markup import element, opening

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:"
LONGEST_TITLE = 60


def document(
    title: str,
    body: str,
    *,
    styles: Sequence[str] = (),
    scripts: bool = True,
    body_class: str | None = None,
) -> str:
    """A whole page. ``body`` is HTML and ``title`` plain text.

    ``scripts`` says if any may run beside that of the shell, which the policy knows by its digest.
    """
    program = static("shell.js")
    policy = POLICY.format(scripts="'unsafe-inline'" if scripts else f"'{_digest(program)}'")
    # shown by its script: without one it would do nothing
    button = element("button", "Dark", type="button", hidden=True)
    head = [
        '<meta charset="utf-8">',
        # quotation marks in it are those of the policy itself, so it is not escaped
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        opening("meta", name="viewport", content="width=device-width, initial-scale=1"),
        opening("meta", name="color-scheme", content="light dark"),
        element("title", escape(title)),
        *(style(rules) for rules in (static("shell.css"), *styles)),
    ]
    lines = [
        "<!doctype html>",
        opening("html", lang="en"),
        "<head>",
        *head,
        "</head>",
        opening("body", class_=body_class),
        element("div", button, class_="shell"),
        body,
        script(program),
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(lines)


@cache
def _digest(program: str) -> str:
    """A program as a content-security policy names it."""
    digest = hashlib.sha256(program.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def title_of(text: str, otherwise: str) -> str:
    """The beginning of a text as the title of its page; ``otherwise`` where it has no words.

    >>> title_of("so\\n good", "toy"), title_of(" ", "toy")
    ('so good', 'toy')
    """
    words = " ".join(wording.visible(text, keep="\n\t").split()) or wording.visible(otherwise)
    if len(words) <= LONGEST_TITLE:
        return words
    return f"{words[:LONGEST_TITLE]}…"


def fresh_id(prefix: str = "whence") -> str:
    """A name that no other fragment of the same document has."""
    return f"{prefix}-{uuid4().hex[:12]}"


@cache
def static(name: str) -> str:
    """A style sheet or a program of ours."""
    return (files("whence.views") / "static" / name).read_text(encoding="utf-8")


def style(rules: str) -> str:
    """A style sheet inside the page."""
    return f"<style>{rules}</style>"


def script(program: str) -> str:
    """A program inside the page."""
    return f"<script>{program}</script>"


def embedded_json(content: Any) -> str:
    """Data inside the page. ``<`` never appears in it, so that no text can end the script element.

    Nor do characters that act, or that no file can hold: they are written as escapes.

    >>> embedded_json({"text": "</script>"})
    '<script type="application/json">{"text":"\\\\u003c/script\\\\u003e"}</script>'
    """
    raw = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        raw = raw.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{visible_json(raw)}</script>'
