"""A chat as one passage: the model's own template around messages, each of which is a section.

The template's text (role markers and the like) belongs to no unit: it is never removed and never
scored. What the messages say is data. A message that spells a special token stays text, also where
the same string stands in the template a line above.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from whence.core.cutting import sentence_starts, word_starts
from whence.core.errors import InputError, unknown_name
from whence.core.passage import SPECIAL, Passage, Section
from whence.core.units import UnitKind, distinct
from whence.models.literal import with_other_names
from whence.models.passing import reason
from whence.models.texts import check_ids, refuse_surrogates

if TYPE_CHECKING:
    from whence.models.model import Model

Message = Mapping[str, Any]
ChatUnits = UnitKind | Literal["section"]
ROLES = ("system", "developer", "user", "assistant", "tool", "document")
OF_A_MESSAGE = ("role", "content", "section")
OF_A_PIECE = ("type", "text", "section")
BETWEEN_SECTIONS = "\n"


@dataclass(frozen=True)
class Said:
    """A text of the caller that a template is to write somewhere, in pieces with names."""

    pieces: tuple[tuple[str, str], ...]  # the name of its section, and the text
    owner: str  # for an error message
    must_stand: bool = True  # a template need not write the title of a document

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(text for _, text in self.pieces)


@dataclass(frozen=True)
class Chunk:
    """A piece of a text of the caller, where it stands in what the template made."""

    name: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends there."""
        return self.start + len(self.text)


def encode_chat(
    model: Model,
    messages: Sequence[Message],
    units: ChatUnits = "section",
    documents: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
) -> Passage:
    """The passage of a chat; see ``Model.encode_chat``."""
    _check_can(model, units)
    said = _said_by(messages)
    held = _held_by(documents or ())
    rendered = _Rendered.of(model, messages, documents, said, held, add_generation_prompt)
    if not rendered.chunks:
        raise InputError("no message of this chat has a text, so there is nothing to explain.")
    return _fitting(model, _passage(model, rendered, units))


def _check_can(model: Model, units: str) -> None:
    if not model.kind.generates:
        raise InputError(
            f"{type(model.hf).__name__} does not write text; "
            "chats are for causal and sequence-to-sequence language models."
        )
    if not getattr(model.tokenizer, "chat_template", None):
        raise InputError(
            f"{model.name} has no chat template, so it is not known how it reads messages. Give "
            "the prompt as plain text, or set model.tokenizer.chat_template."
        )
    kinds = ("section", "word", "sentence", "token")
    if units not in kinds:
        raise InputError(str(unknown_name("kind of unit of a chat", str(units), kinds)))


# ---------------------------------------------------------------------- what the caller gave


def _said_by(messages: Sequence[Message]) -> list[Said]:
    """The contents of the messages, by sections; what is no message is refused."""
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise InputError(
            "a chat is a list of messages, each {'role': …, 'content': …}, "
            f"not a {type(messages).__name__}."
        )
    if not messages:
        raise InputError("the chat has no message; give at least one, {'role': …, 'content': …}.")
    for number, message in enumerate(messages):
        _check_message(number, message)

    roles = [str(message["role"]) for message in messages]
    said = []
    for number, message in enumerate(messages):
        role = roles[number]
        name = role
        if roles.count(role) > 1:
            name = f"{role} {roles[: number + 1].count(role)}"
        name = str(message.get("section", name))
        owner = f"message {number} ({role})"
        said.append(Said(tuple(_pieces(message["content"], name, owner)), owner))
    return said


def _check_message(number: int, message: Any) -> None:
    if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
        raise InputError(
            f"message {number} of the chat must have a role and a content, "
            f"{{'role': 'user', 'content': '…'}}; it is {message!r:.60}."
        )
    role = message["role"]
    if role not in ROLES:
        problem = unknown_name("role of a message", str(role), ROLES)
        raise InputError(f"message {number}: {problem}")
    for entry in message:
        if entry not in OF_A_MESSAGE:
            raise InputError(
                f"message {number} has an entry {entry!r}, and only {', '.join(OF_A_MESSAGE)} can "
                "be explained. Put what it holds into the content, or leave it out."
            )


def _pieces(content: Any, name: str, owner: str) -> Iterator[tuple[str, str]]:
    """A content as named pieces: one, or those that the caller made."""
    if isinstance(content, str):
        refuse_surrogates(content)
        yield name, content
        return
    if not isinstance(content, Sequence):
        raise InputError(f"{owner}: the content is a {type(content).__name__} and not a text.")
    for piece in content:
        is_text = isinstance(piece, Mapping) and piece.get("type", "text") == "text"
        if not is_text or not isinstance(piece.get("text"), str):
            raise InputError(
                f"{owner}: a piece of the content is not text, {piece!r:.60}; "
                "pieces are {'text': …, 'section': …}."
            )
        for entry in piece:
            if entry not in OF_A_PIECE:
                raise InputError(f"{owner}: a piece of the content has an entry {entry!r}.")
        refuse_surrogates(piece["text"])
        yield str(piece.get("section", name)), piece["text"]


def _held_by(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Said]]:
    """The texts of each document, by entry."""
    held = []
    for number, document in enumerate(documents):
        owner = f"document {number}"
        if not isinstance(document, Mapping) or not isinstance(document.get("text"), str):
            raise InputError(
                f"{owner} must be {{'title': …, 'text': …}} with a text; it is {document!r:.60}."
            )
        name = f"document {document.get('title', number)}"
        entries = {}
        for entry, value in document.items():
            if isinstance(value, str):
                refuse_surrogates(value)
                entries[entry] = Said(((name, value),), owner, must_stand=entry == "text")
        held.append(entries)
    return held


# ---------------------------------------------------------------------- what the template made


@dataclass(frozen=True)
class _Rendered:
    """What a template made of a chat: its own text, and between it that of the caller."""

    text: str
    chunks: tuple[Chunk, ...]

    @classmethod
    def of(
        cls,
        model: Model,
        messages: Sequence[Message],
        documents: Sequence[Mapping[str, Any]] | None,
        said: Sequence[Said],
        held: Sequence[Mapping[str, Said]],
        add_generation_prompt: bool,
    ) -> _Rendered:
        """Render twice: with the texts, and with a placeholder for each, which says where it is."""
        behind: dict[str, Said] = {}

        def placeholder(text: Said) -> str:
            if not text.text.strip():  # templates may ask whether there is a text at all
                return text.text
            name = f"X{secrets.token_hex(16)}X"
            behind[name] = text
            return name

        def render(shown: Any) -> str:
            plain = [
                {"role": message["role"], "content": shown(text)}
                for message, text in zip(messages, said, strict=True)
            ]
            given = None
            if documents is not None:
                given = []
                for document, texts in zip(documents, held, strict=True):
                    given.append({**document, **{k: shown(text) for k, text in texts.items()}})
            return _rendered(model, plain, given, add_generation_prompt)

        pattern = render(placeholder)
        text = render(lambda one: one.text)
        for name, one in behind.items():
            if one.must_stand and name not in pattern:
                raise InputError(
                    f"the chat template of {model.name} leaves out {one.owner}. Remove it, or put "
                    "what it says into a message of the user."
                )
        return cls(text, tuple(_located(model, text, pattern, behind)))

    def template_parts(self) -> Iterator[tuple[str, Chunk | None]]:
        """The template's own texts, each with the chunk that follows it."""
        at = 0
        for chunk in self.chunks:
            yield self.text[at : chunk.start], chunk
            at = chunk.end
        yield self.text[at:], None


def _rendered(model: Model, messages: Any, documents: Any, add_generation_prompt: bool) -> str:
    from jinja2.exceptions import TemplateError

    try:
        return model.tokenizer.apply_chat_template(
            messages,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            tokenize=False,
        )
    except (TemplateError, ValueError, TypeError, LookupError) as problem:
        raise InputError(
            f"the chat template of {model.name} refuses this chat. It says: {reason(problem)}"
        ) from problem


def _located(model: Model, text: str, pattern: str, behind: Mapping[str, Said]) -> Iterator[Chunk]:
    """The chunks of the rendered text, in the order in which they stand there.

    Templates may trim a content. What is changed otherwise cannot be found again.
    """
    if not behind:
        return
    splits = re.split("(" + "|".join(behind) + ")", pattern)
    own_texts, names = splits[0::2], splits[1::2]
    at = len(own_texts[0])
    for name, following in zip(names, own_texts[1:], strict=True):
        said = behind[name]
        found = _as_written(said.text, text, at, following)
        if found is None:
            raise _changed(model, said)
        lead, length = found
        yield from _chunks(said, lead, length, at)
        at += length + len(following)
    if at != len(text) or not text.startswith(own_texts[0]):
        raise _changed(model, behind[names[-1]])


def _changed(model: Model, said: Said) -> InputError:
    return InputError(
        f"the chat template of {model.name} does not write {said.owner} as it is, so its words "
        "cannot be found in the prompt. Give the prompt as plain text."
    )


def _as_written(content: str, text: str, at: int, following: str) -> tuple[int, int] | None:
    """The characters of a content that stand in a text at a place, before what follows there.

    It is where they begin in the content, and how many they are: all, or what trimming leaves.
    """
    gone = len(content) - len(content.lstrip())
    forms = ((0, content), (gone, content.strip()), (0, content.rstrip()), (gone, content.lstrip()))
    for lead, form in forms:
        if text.startswith(form + following, at):
            return lead, len(form)
    return None


def _chunks(said: Said, lead: int, length: int, at: int) -> Iterator[Chunk]:
    """The pieces of a content of which ``length`` characters from ``lead`` on stand at ``at``."""
    begins = 0
    for name, text in said.pieces:
        first, last = max(begins, lead), min(begins + len(text), lead + length)
        if first < last:
            own = text[first - begins : last - begins]
            yield Chunk(name, own, at + first - lead)
        begins += len(text)


# ---------------------------------------------------------------------- tokens and units


def _passage(model: Model, rendered: _Rendered, units: ChatUnits) -> Passage:
    text, sections, places = _joined(rendered.chunks)
    tokenizer, read, chunks = _under_other_names(model, rendered)
    encoding = tokenizer.encode(read, add_special_tokens=False)
    check_ids(model, encoding.ids)

    spans, parts = [], []
    for start, end in encoding.offsets:
        own = _span(start, end, chunks, places)
        spans.append(own or (0, 0))
        parts.append(SPECIAL if own is None else 0)
    sections = _at_tokens(sections, spans)
    wants_types = "token_type_ids" in getattr(model.tokenizer, "model_input_names", [])
    passage = Passage.from_tokens(
        text,
        encoding.ids,
        model.tokenizer.convert_ids_to_tokens(encoding.ids),
        spans,
        parts,
        units="token" if units == "token" else _starts(text, sections, units),
        types=encoding.type_ids if wants_types else None,
    )
    return replace(passage, kind=units, sections=sections)


def _joined(chunks: Sequence[Chunk]) -> tuple[str, tuple[Section, ...], list[int]]:
    """What all messages say as one text, its sections, and where each chunk begins in it.

    Neighbours of one name are one section, such as title and text of a document.
    """
    text = ""
    places: list[int] = []
    sections: list[Section] = []
    end_before = None
    for chunk in chunks:
        if end_before not in (None, chunk.start):
            text += BETWEEN_SECTIONS
        places.append(len(text))
        text += chunk.text
        if sections and sections[-1].name == chunk.name:
            sections[-1] = replace(sections[-1], end=len(text))
        else:
            sections.append(Section(chunk.name, places[-1], len(text)))
        end_before = chunk.end
    names = distinct([section.name for section in sections])
    named = [replace(own, name=name) for own, name in zip(sections, names, strict=True)]
    return text, tuple(named), places


def _under_other_names(model: Model, rendered: _Rendered) -> tuple[Any, str, list[Chunk]]:
    """A tokenizer whose special tokens have names that no message has, and the text with these.

    The text is tokenized whole, so that its tokens are those of the model's own way; only that the
    usual name of a special token is text. The chunks are given where they stand in that text.
    """
    backend = model.tokenizer.backend_tokenizer
    own = "\0".join(part for part, _ in rendered.template_parts())
    names = {}
    for token in backend.get_added_tokens_decoder().values():
        # Some models do not mark their role markers as special. Blanks are no markers.
        is_marker = token.special or token.content in own
        if is_marker and token.content.strip():
            names[token.content] = f"<{secrets.token_hex(16)}>"
    tokenizer = with_other_names(backend, names)

    # the longest first, as the tokenizer searches
    longest_first = sorted(names, key=len, reverse=True)
    markers = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
    read = ""
    chunks: list[Chunk] = []
    for part, chunk in rendered.template_parts():
        read += markers.sub(lambda match: names[match.group()], part)
        if chunk is not None:
            chunks.append(replace(chunk, start=len(read)))
            read += chunk.text
    return tokenizer, read, chunks


def _span(
    start: int, end: int, chunks: Sequence[Chunk], places: Sequence[int]
) -> tuple[int, int] | None:
    """The characters of the joined text that a token covers; None for the template's own.

    A token over a border, such as the template's space with a message's first word, is the
    message's.
    """
    first = last = None
    for chunk, place in zip(chunks, places, strict=True):
        covers = max(start, chunk.start) < min(end, chunk.end)
        is_inside = start == end and chunk.start <= start < chunk.end
        if not covers and not is_inside:
            continue
        shift = place - chunk.start
        if first is None:
            first = max(start, chunk.start) + shift
        last = min(end, chunk.end) + shift
    return None if first is None or last is None else (first, last)


def _at_tokens(
    sections: Sequence[Section], spans: Sequence[tuple[int, int]]
) -> tuple[Section, ...]:
    """The sections, with borders where tokens begin.

    Where pieces of one content meet, a token may reach over the border: most take the space before
    a word. It belongs to the later section.
    """
    moved: list[Section] = []
    for section in sections:
        start = section.start
        for first, last in spans:
            if first < section.start < last:
                start = first
        if moved:
            start = max(start, moved[-1].start)
            moved[-1] = replace(moved[-1], end=min(moved[-1].end, start))
        moved.append(replace(section, start=start))
    return tuple(moved)


def _starts(text: str, sections: Sequence[Section], units: str) -> list[int]:
    """Where units begin: none goes over the border of a section."""
    starts = [section.start for section in sections]
    if units == "section":
        return starts
    cut = word_starts if units == "word" else sentence_starts
    for section in sections:
        starts += [section.start + start for start in cut(text[section.start : section.end])]
    return sorted(set(starts))


def _fitting(model: Model, passage: Passage) -> Passage:
    if not np.any(passage.parts != SPECIAL):
        raise InputError("the tokenizer leaves no token of this chat's messages.")
    if model.limit is not None and len(passage) > model.limit:
        raise InputError(
            f"the chat has {len(passage)} tokens with its template, and the model's positions end "
            f"at {model.limit}; leave out a message, or shorten one."
        )
    return passage
