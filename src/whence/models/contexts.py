"""A prompt twice: with its context, and with the context left out.

Only the context has units: what is asked, what stands between, and a chat's template are given in
both. So methods and games see the context alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from whence.core.cutting import unit_of_tokens, unit_spans
from whence.core.errors import InputError, unknown_name
from whence.core.passage import SPECIAL, Passage, Section
from whence.models.chat import ChatUnits, Message
from whence.models.texts import tokenize

if TYPE_CHECKING:
    from whence.models.model import Model

KINDS = ("word", "token", "sentence", "section")
CONTEXT = "context"  # the name of a context that is one text
INPUT = "input"  # the section of what is asked, in a chat
BETWEEN = "between"  # and that of what stands between documents
# between the documents of a context, and between them and the input
OF_ENCODERS, OF_CHATS, OF_PLAIN_TEXTS = " ", "\n\n", "\n"


@dataclass(frozen=True, eq=False)
class Prompts:
    """What the model reads, with context and without; the first has units of the context alone."""

    with_context: Passage
    without: Passage
    separator: str
    is_chat: bool


def prompts(
    model: Model,
    asked: str,
    context: str | Mapping[str, str],
    *,
    units: ChatUnits = "word",
    separator: str | None = None,
    chat: bool | None = None,
    system: str | None = None,
    other: str | Mapping[str, str] | None = None,
) -> Prompts:
    """Both prompts of an input and its context: one text, or documents by their names.

    ``chat`` writes them through the model's own template, if it has one and nothing else is said;
    ``system`` is then the system's message, in both. ``other`` is what stands in the place of the
    context in the second prompt; by default nothing.

    >>> import whence
    >>> both = prompts(whence.load("writer"), "The movie", "I saw it.", separator=" ")
    >>> both.with_context.text, both.with_context.units.texts, both.without.text
    ('I saw it. The movie', ('I', ' saw', ' it', '.'), 'The movie')
    """
    documents = _documents(context, "context")
    others = {} if other is None else _documents(other, "other context")
    _check_asked(asked)
    if units not in KINDS:
        raise InputError(str(unknown_name("kind of unit of a context", str(units), KINDS)))
    has_template = bool(getattr(model.tokenizer, "chat_template", None))
    is_chat = has_template if chat is None else chat
    if system is not None and not is_chat:
        raise InputError("system= is a message of a chat, and this prompt is plain text.")
    if separator is None:
        separator = _usual_separator(model, is_chat)
    if is_chat:
        full = _chat(model, asked, documents, separator, system)
        bare = _chat(model, asked, others, separator, system)
    else:
        full = _plain(model, asked, documents, separator)
        bare = _plain(model, asked, others, separator)
    scored = _with_units_of(full, list(documents), units)
    _check_fits(model, scored)
    return Prompts(scored, bare, separator, is_chat)


def _documents(context: str | Mapping[str, str], what: str) -> dict[str, str]:
    """A context by its parts; nothing empty."""
    documents = {CONTEXT: context} if isinstance(context, str) else dict(context)
    if not documents:
        raise InputError(f"there is no {what}: give a text, or documents by their names.")
    for name, text in documents.items():
        if not isinstance(text, str):
            raise InputError(f"{name!r} of the {what} is no text but a {type(text).__name__}.")
        if not text.strip():
            which = f"the {what}" if isinstance(context, str) else f"the document {name!r}"
            raise InputError(f"{which} is empty or only white space; there is nothing to find.")
        if name in (INPUT, BETWEEN, "system"):
            raise InputError(f"a document cannot be called {name!r}; give it another name.")
    return documents


def _check_asked(asked: Any) -> None:
    if not isinstance(asked, str):
        raise InputError(f"the input is a text, not a {type(asked).__name__}.")
    if not asked.strip():
        raise InputError(
            "the input is empty or only white space, so nothing is left without the context. "
            "Give what the model is to translate, answer or go on with."
        )


def _usual_separator(model: Model, is_chat: bool) -> str:
    if is_chat:
        return OF_CHATS
    return OF_ENCODERS if model.is_encoder_decoder else OF_PLAIN_TEXTS


def _plain(model: Model, asked: str, documents: Mapping[str, str], separator: str) -> Passage:
    """Documents and input as one text, whose sections are the documents."""
    text = ""
    sections = []
    for name, content in documents.items():
        sections.append(Section(name, len(text), len(text) + len(content)))
        text += content + separator
    passage = tokenize(model, text + asked, None, "word")
    return replace(passage, sections=tuple(sections))


def _chat(
    model: Model, asked: str, documents: Mapping[str, str], separator: str, system: str | None
) -> Passage:
    """The same as a message of a user."""
    pieces = []
    for name, content in documents.items():
        pieces.append({"text": content, "section": name})
        pieces.append({"text": separator, "section": BETWEEN})
    pieces.append({"text": asked, "section": INPUT})
    messages: list[Message] = []
    if system is not None:
        messages.append({"role": "system", "content": system})
    messages.append({"role": "user", "content": pieces})
    return model.encode_chat(messages, units="word")


def _with_units_of(passage: Passage, names: Sequence[str], units: ChatUnits) -> Passage:
    """The passage with units of some sections alone, each cut by itself."""
    unit_of = np.full(len(passage), SPECIAL, dtype=np.int64)
    cut: list[tuple[int, int, int]] = []
    sections = [section for section in passage.sections if section.name in names]
    kind: Any = [0] if units == "section" else units
    for section in sections:
        text = passage.text[section.start : section.end]
        # a token over the border, such as a full stop with the line break behind it, belongs here
        first = np.maximum(passage.spans[:, 0], section.start)
        last = np.minimum(passage.spans[:, 1], section.end)
        is_piece = (passage.spans[:, 0] == passage.spans[:, 1]) & (first == last)
        here = (passage.parts == 0) & ((first < last) | (is_piece & (last > section.start)))
        if not here.any():
            raise InputError(f"the tokenizer leaves no token of {section.name!r}.")
        spans = np.stack([first, last], axis=1)[here] - section.start
        own = unit_spans(text, spans, kind)
        unit_of[here] = unit_of_tokens(own, spans, kind) + len(cut)
        cut += [(0, section.start + start, section.start + end) for start, end in own]
    return replace(
        passage, unit_of=unit_of, unit_spans=tuple(cut), kind=units, sections=tuple(sections)
    )


def _check_fits(model: Model, passage: Passage) -> None:
    if model.limit is not None and len(passage) > model.limit:
        raise InputError(
            f"context and input have {len(passage)} tokens, and the model's positions end at "
            f"{model.limit}; shorten the context, or give fewer documents."
        )
