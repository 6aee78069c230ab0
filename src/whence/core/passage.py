"""A Passage: what a model reads, its tokens, the characters of each token, and its units.

It is a text, a pair of texts, an image, or a text with an image.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.cutting import checked_units, unit_of_tokens, unit_spans
from whence.core.errors import InputError, SettingsError
from whence.core.once import once
from whence.core.pieces import BLANKS, told
from whence.core.showing import signs
from whence.core.stored import Stored, as_stored
from whence.core.units import UnitKind, Units

MERGE_RULES = ("sum", "mean", "max", "norm")
LONGEST_NAME = 80  # of a unit in a table; a "word" may be a thousand characters without a space
SPECIAL = -1  # the part, and the unit, of a token that no text stands behind
# the part of a token of a picture beside a text (2 is what a model wrote: see core/maps.py)
IMAGE = 3
LARGEST_SIDE = 10**6  # of a stored array
NO_ID = -1  # in place of a vocabulary's id, for the tokens of such a picture


@dataclass(frozen=True, eq=False)
class Regions:
    """A picture as a detector leaves it: the features of each region, and its box.

    A box is left, top, right, bottom, each from 0 to 1.
    """

    features: Float[np.ndarray, "region dim"]
    boxes: Float[np.ndarray, "region 4"]

    def __post_init__(self) -> None:
        for name in ("features", "boxes"):
            array = np.array(getattr(self, name), dtype="<f4")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class Section:
    """A part of a text with a name, such as one message of a chat: the characters of it."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Passage:
    """What goes into a model, and the units that a person scores.

    ``parts`` says which text a token comes from (0, or 1 for the second of a pair; -1 for a special
    token), and ``spans`` where in that text. ``unit_of`` gives the unit of every token, -1 for
    special ones. The strings of ``units`` concatenate back to the text. Where a model reads a text
    and a picture, the picture's tokens follow the text's: their part is 3, and they have no id
    (-1).

    >>> p = Passage.from_tokens(
    ...     "so good",
    ...     ids=[101, 7, 8, 102],
    ...     tokens=["[CLS]", "so", "good", "[SEP]"],
    ...     spans=[(0, 0), (0, 2), (3, 7), (0, 0)],
    ...     parts=[-1, 0, 0, -1],
    ... )
    >>> p.units
    ('so', ' good')
    """

    text: str
    ids: Int[np.ndarray, " token"]
    tokens: tuple[str, ...]
    spans: Int[np.ndarray, "token 2"]
    parts: Int[np.ndarray, " token"]
    unit_of: Int[np.ndarray, " token"]
    # part, start, end; of an image: 0 (3 beside a text), row, column; of a region: 3, i, i + 1
    unit_spans: tuple[tuple[int, int, int], ...]
    kind: UnitKind | str = "word"
    pair: str | None = None
    # the decoder's side of an encoder-decoder model, teacher-forced
    reply: Passage | None = None
    pixels: Float[np.ndarray, "channel height width"] | None = field(default=None, repr=False)
    # the tokenizer's segment of each token, where the model reads it
    types: Int[np.ndarray, " token"] | None = None
    # the token at which a masked language model is read
    readout: int | None = None
    # characters that truncation left out; never silently
    dropped: int = 0
    # the picture beside the text, where it is not pixels
    regions: Regions | None = field(default=None, repr=False)
    # of a multiple choice: the choices. The tokens are those of the text with each of them in turn
    choices: tuple[str, ...] = ()
    # The first token that the model wrote, where a text is explained with its continuation. What
    # was written is the second text. Before it stands the last token of the prompt or, in an
    # encoder-decoder, the token that the decoder begins with.
    written: int | None = None
    # whether it is known that the model wrote that itself, and that it was not given
    by_model: bool = False
    # the messages of a chat, whose texts stand one after the other in the text
    sections: tuple[Section, ...] = ()

    def __post_init__(self) -> None:
        for name in ("ids", "spans", "parts", "unit_of", "pixels", "types"):
            array = getattr(self, name)
            if array is not None:
                array = array.view()
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    @classmethod
    def from_tokens(
        cls,
        text: str,
        ids: Sequence[int],
        tokens: Sequence[str],
        spans: Sequence[tuple[int, int]],
        parts: Sequence[int],
        *,
        units: UnitKind | Sequence[int] = "word",
        pair: str | None = None,
        reply: Passage | None = None,
        types: Sequence[int] | None = None,
    ) -> Passage:
        """Cut the units of freshly tokenized text.

        ``units`` may also be the character positions at which the caller's own sections begin.
        """
        span_array = np.asarray(spans, dtype=np.int64).reshape(-1, 2)
        part_array = np.asarray(parts, dtype=np.int64)
        unit_of = np.full(len(ids), SPECIAL, dtype=np.int64)
        cut: list[tuple[int, int, int]] = []
        units = checked_units(units, max(len(text), len(pair or "")))
        contents = [text] if pair is None else [text, pair]
        for part, content in enumerate(contents):
            here = part_array == part
            of_part = unit_spans(content, span_array[here], units)
            unit_of[here] = unit_of_tokens(of_part, span_array[here], units) + len(cut)
            cut += [(part, start, end) for start, end in of_part]
        kind = units if isinstance(units, str) else "section"
        return cls(
            text=text,
            ids=np.asarray(ids, dtype=np.int64),
            tokens=tuple(tokens),
            spans=span_array,
            parts=part_array,
            unit_of=unit_of,
            unit_spans=tuple(cut),
            kind=kind,
            pair=pair,
            reply=reply,
            types=None if types is None else np.asarray(types, dtype=np.int64),
        )

    @once
    def units(self) -> Units:
        """What is scored. The units' own characters concatenate back to the text, then its pair."""
        return Units(self.kind, self._unit_texts, self.names, self.unit_spans)

    @once
    def _unit_texts(self) -> tuple[str, ...]:
        if self.pixels is not None and not self.text:
            return tuple(f"patch {row},{column}" for _, row, column in self.unit_spans)
        contents = (self.text, self.pair or "")
        texts = []
        for part, start, end in self.unit_spans:
            if part == IMAGE:
                texts.append(self._picture(start, end))
            else:
                texts.append(contents[part][start:end])
        return tuple(texts)

    def _picture(self, row: int, column: int) -> str:
        """A unit of the picture beside a text; the space in front keeps it apart from the last."""
        if self.regions is not None:
            return f" region {row}"
        return f" patch {row},{column}"

    @once
    def names(self) -> tuple[str, ...]:
        """The units as a table or a figure shows them: trimmed, and not too long.

        White space that stands alone has its signs; where no character is a unit's own, it is the
        string of its first token. A unit that is a message of a chat has the message's name.
        """
        first_token: dict[int, str] = {}
        for token, unit in zip(self.tokens, self.unit_of.tolist(), strict=True):
            first_token.setdefault(unit, token)
        section_at = {}
        if self.kind == "section":
            section_at = {(0, section.start): section.name for section in self.sections}
        names = []
        for unit, text in enumerate(self._unit_texts):
            part, start, _ = self.unit_spans[unit]
            # the last unit of what a model wrote may have no token in a passage that ends before it
            name = section_at.get((part, start)) or text.strip() or signs(text)
            name = name or signs(told(first_token.get(unit, "")))
            names.append(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")
        return tuple(names)

    @property
    def special(self) -> Bool[np.ndarray, " token"]:
        """True for the tokens that no text stands behind."""
        return self.parts == SPECIAL

    @property
    def of_text(self) -> Bool[np.ndarray, " token"]:
        """True for the tokens that a tokenizer made, special ones included.

        False for those of a picture beside the text.
        """
        return self.ids != NO_ID

    @property
    def pictured(self) -> Bool[np.ndarray, " unit"]:
        """True for the units of a picture (patches, regions), False for those of a text."""
        alone = self.pixels is not None and not self.text
        return np.array([alone or part == IMAGE for part, _, _ in self.unit_spans], dtype=bool)

    @property
    def outputs(self) -> int:
        """How many tokens the model wrote; each of them can be explained."""
        return 0 if self.written is None else len(self) - self.written

    def output_place(self, output: int) -> int:
        """The token of an output, by the number of the output."""
        assert self.written is not None
        return self.written + output

    def output_text(self, output: int) -> str:
        """An output as it is written; a special token, or part of a character, by its own name."""
        place = self.output_place(output)
        start, end = self.spans[place]
        text = (self.pair or "")[start:end]
        if self.parts[place] == SPECIAL:
            return self.tokens[place]
        return text or told(self.tokens[place])

    def outputs_text(self, outputs: Sequence[int]) -> str:
        """Neighbouring outputs as they are written, one after the other.

        A character of several tokens is written by the last of them; the others are told by their
        own names only where that one is not among ``outputs``.
        """
        pieces, waiting = [], []
        for output in outputs:
            if self._is_part_of_character(output):
                waiting.append(self.output_text(output))
                continue
            is_text = self.parts[self.output_place(output)] != SPECIAL
            if not is_text:
                pieces += waiting
            waiting = []
            pieces.append(self.output_text(output))
        return "".join([*pieces, *waiting])

    def _is_part_of_character(self, output: int) -> bool:
        """Whether a character begins or goes on in this token, and does not end there."""
        place = self.output_place(output)
        start, end = self.spans[place]
        is_empty = start == end and self.parts[place] != SPECIAL
        return bool(is_empty) and bool(self.tokens[place].strip(BLANKS))

    def before(self, output: int) -> Passage:
        """The same for the model, with units only of what stands before an output.

        What comes behind cannot have led to it. Of a word that is written so far in part, the
        part is a unit.
        """
        end = self.output_place(output)
        unit_of = np.where(np.arange(len(self)) < end, self.unit_of, SPECIAL)
        count = int(unit_of.max()) + 1
        unit_spans = list(self.unit_spans[:count])
        part, start, stop = unit_spans[-1]
        last_token = np.flatnonzero(unit_of == count - 1)[-1]
        goes_on = bool((self.unit_of[end:] == count - 1).any())
        if goes_on:
            stop = int(self.spans[last_token, 1])
        unit_spans[-1] = (part, start, stop)
        return replace(self, unit_of=unit_of, unit_spans=tuple(unit_spans))

    def halves(self) -> tuple[Passage, Passage]:
        """The text's tokens, and the picture's, where a model keeps the two apart."""
        return _part(self, np.flatnonzero(self.of_text)), _part(self, np.flatnonzero(~self.of_text))

    @once
    def digest(self) -> bytes:
        """A hash of what the model reads.

        It is the seed of anything random, so that neither batch nor padding changes that.
        """
        content = np.ascontiguousarray(self.ids).tobytes()
        if self.pixels is not None:
            content += np.ascontiguousarray(self.pixels).tobytes()
        if self.regions is not None:
            content += self.regions.features.tobytes() + self.regions.boxes.tobytes()
        return hashlib.sha256(content).digest()

    @once
    def input_key(self) -> tuple[Any, ...]:
        """What the model reads, as a key: equal keys need one run of the model."""
        types = b"" if self.types is None else self.types.tobytes()
        reply = None if self.reply is None else self.reply.input_key
        return (self.digest, types, self.readout, reply, self.written)

    def still_open(self) -> Passage:
        """Without the special tokens that close it: what stands before a decoder's next token."""
        of_text = np.flatnonzero(~self.special)
        if not len(of_text):  # a reply that ended before it began
            return replace(
                self,
                text="",
                ids=self.ids[:0],
                tokens=(),
                spans=self.spans[:0],
                parts=self.parts[:0],
                unit_of=self.unit_of[:0],
                unit_spans=(),
                types=None,
            )
        return _part(self, np.arange(int(of_text[-1]) + 1))

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Passage) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.text, self.pair, self.kind, self.ids.tobytes()))

    def merge(
        self, scores: Float[np.ndarray, " token"], rule: str = "sum"
    ) -> Float[np.ndarray, " unit"]:
        """Scores of tokens to scores of units; special tokens are left out.

        ``sum`` keeps completeness; ``mean`` and ``max`` are what they say; ``norm`` is the root of
        the sum of squares, which makes the L2 norm of a word's gradient out of the norms of its
        tokens' gradients.
        """
        if rule not in MERGE_RULES:
            raise SettingsError(
                f"tokens are merged by one of {', '.join(MERGE_RULES)}, not {rule!r}."
            )
        of_text = self.unit_of >= 0
        unit = self.unit_of[of_text]
        score = np.asarray(scores, dtype=np.float64)[of_text]
        count = len(self.unit_spans)
        if rule == "max":
            largest = np.full(count, -np.inf)
            np.maximum.at(largest, unit, score)
            return largest
        if rule == "norm":
            return np.sqrt(np.bincount(unit, score**2, minlength=count))
        total = np.bincount(unit, score, minlength=count)
        if rule == "mean":
            return total / np.bincount(unit, minlength=count)
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; pixels as the bytes of their float32."""
        out: dict[str, Any] = {
            "text": self.text,
            "ids": self.ids.tolist(),
            "tokens": list(self.tokens),
            "spans": self.spans.tolist(),
            "parts": self.parts.tolist(),
            "unit_of": self.unit_of.tolist(),
            "unit_spans": [list(s) for s in self.unit_spans],
            "kind": self.kind,
            "pair": self.pair,
            "reply": self.reply.to_dict() if self.reply else None,
            "types": None if self.types is None else self.types.tolist(),
            "readout": self.readout,
            "dropped": self.dropped,
        }
        if self.pixels is not None:
            out["pixels"] = _packed(self.pixels)
        if self.choices:
            out["choices"] = list(self.choices)
        if self.written is not None:
            out["written"] = self.written
        if self.by_model:
            out["by_model"] = True
        if self.sections:
            out["sections"] = [asdict(section) for section in self.sections]
        if self.regions is not None:
            out["regions"] = {
                "features": _packed(self.regions.features),
                "boxes": _packed(self.regions.boxes),
            }
        return out

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Passage:
        """What ``to_dict`` gave, bit by bit."""
        stored = as_stored(stored, "passage")
        text, pair = stored["text"].text(), stored["pair"].given()
        contents = (text, "" if pair is None else pair.text())
        pixels, regions = stored.get("pixels"), stored.get("regions")
        is_image = pixels is not None and not text
        unit_spans = _read_unit_spans(stored["unit_spans"], contents, is_image)
        ids = stored["ids"].wholes(least=NO_ID)
        count = len(ids)
        parts = stored["parts"].wholes(count, SPECIAL, IMAGE)
        spans = stored["spans"].rows(2, count)
        _check_spans(stored["spans"], spans, parts, contents, is_image)
        reply, types = stored["reply"].given(), stored["types"].given()
        readout, choices = stored["readout"].given(), stored.get("choices")
        written, by_model = stored.get("written"), stored.get("by_model")
        return cls(
            text=text,
            ids=ids,
            tokens=_read_tokens(stored["tokens"], count),
            spans=spans,
            parts=parts,
            unit_of=stored["unit_of"].wholes(count, SPECIAL, len(unit_spans) - 1),
            unit_spans=unit_spans,
            kind=stored["kind"].text(),
            pair=None if pair is None else pair.text(),
            reply=None if reply is None else cls.from_dict(reply),
            types=None if types is None else types.wholes(count, 0),
            readout=None if readout is None else readout.whole(0, count - 1),
            dropped=stored["dropped"].whole(),
            pixels=None if pixels is None else _unpacked(pixels, 3),
            regions=None if regions is None else _read_regions(regions, unit_spans),
            choices=() if choices is None else choices.texts(),
            written=None if written is None else written.whole(1, count),
            by_model=by_model is not None and by_model.flag(),
            sections=_read_sections(stored.get("sections"), text),
        )


def _read_tokens(stored: Stored, count: int) -> tuple[str, ...]:
    tokens = stored.texts()
    if len(tokens) != count:
        raise stored.wrong(f"expected {count} entries, got {len(tokens)}")
    return tokens


def _read_sections(stored: Stored | None, text: str) -> tuple[Section, ...]:
    """Sections within their text, one after the other."""
    sections: list[Section] = []
    ended = 0
    for entry in () if stored is None else stored.items():
        start = entry["start"].whole(ended, len(text))
        ended = entry["end"].whole(start, len(text))
        sections.append(Section(entry["name"].text(), start, ended))
    return tuple(sections)


def _read_unit_spans(
    stored: Stored, contents: Sequence[str], is_image: bool
) -> tuple[tuple[int, int, int], ...]:
    """Units within their text, one after the other; of a picture, rows and columns."""
    rows = stored.rows(3).tolist()
    if not rows:
        raise stored.wrong("there is no unit")
    ends = [0, 0]
    for i, (part, start, end) in enumerate(rows):
        here = stored.items()[i] if part not in (0, 1, IMAGE) or start < 0 or end < 0 else None
        if here is not None:
            raise here.wrong(f"no unit is at {part}, {start}, {end}")
        if is_image or part == IMAGE:
            # a picture of so many units has no more rows or columns: views lay them out
            if max(start, end) > len(rows):
                raise stored.items()[i].wrong(
                    f"no unit is at {start}, {end} of a picture of {len(rows)} units"
                )
            continue
        if not ends[part] <= start <= end <= len(contents[part]):
            raise stored.items()[i].wrong(
                f"characters {start} to {end} of a text of {len(contents[part])}, "
                f"where the last unit ended at {ends[part]}"
            )
        ends[part] = end
    return tuple((part, start, end) for part, start, end in rows)


def _check_spans(
    stored: Stored,
    spans: Int[np.ndarray, "token 2"],
    parts: Int[np.ndarray, " token"],
    contents: Sequence[str],
    is_image: bool,
) -> None:
    """Refuse tokens that lie outside their text."""
    if is_image:
        return
    for part, content in enumerate(contents):
        start, end = spans[:, 0], spans[:, 1]
        fits = (start >= 0) & (start <= end) & (end <= len(content))
        outside = np.flatnonzero((parts == part) & ~fits)
        if len(outside):
            place = stored.items()[int(outside[0])]
            raise place.wrong(f"characters outside a text of {len(content)}")


def _read_regions(stored: Stored, unit_spans: Sequence[tuple[int, int, int]]) -> Regions:
    features, boxes = _unpacked(stored["features"], 2), _unpacked(stored["boxes"], 2)
    regions = sum(part == IMAGE for part, _, _ in unit_spans)
    if boxes.shape != (len(features), 4) or len(features) != regions:
        raise stored.wrong(
            f"{len(features)} features, boxes of shape {list(boxes.shape)} and {regions} units"
        )
    return Regions(features, boxes)


def _packed(array: np.ndarray) -> dict[str, Any]:
    array = np.ascontiguousarray(array, dtype="<f4")
    return {"shape": list(array.shape), "float32": base64.b64encode(array.tobytes()).decode()}


def _unpacked(stored: Stored, dimensions: int) -> np.ndarray:
    """Finite numbers in the shape that is said; both must agree."""
    shape = stored["shape"].wholes(dimensions, least=1, most=LARGEST_SIDE).tolist()
    field = stored["float32"]
    try:
        content = base64.b64decode(field.text(), validate=True)
    except ValueError as problem:
        raise field.wrong(f"not base64: {problem}") from problem
    if len(content) != 4 * math.prod(shape):
        raise field.wrong(f"{len(content)} bytes for an array of {' × '.join(map(str, shape))}")
    array = np.frombuffer(content, dtype="<f4").reshape(shape).copy()
    if not np.isfinite(array).all():
        raise field.wrong("a number that is not finite")
    return array


def with_picture(
    passage: Passage,
    special: Sequence[str],
    cells: Sequence[tuple[int, int]],
    *,
    pixels: Float[np.ndarray, "channel height width"] | None = None,
    regions: Regions | None = None,
) -> Passage:
    """A text's passage with a picture's tokens behind it.

    Special ones come first, then a token and a unit for each of ``cells``.
    """
    count = len(special) + len(cells)
    no_units = np.full(len(special), SPECIAL)
    new_units = len(passage.unit_spans) + np.arange(len(cells))
    unit_of = np.concatenate([no_units, new_units])
    if regions is not None:
        names = [f"region {number}" for number, _ in cells]
    else:
        names = [f"{row},{column}" for row, column in cells]
    types = passage.types
    if types is not None:
        types = np.concatenate([types, np.zeros(count, dtype=np.int64)])
    return replace(
        passage,
        ids=np.concatenate([passage.ids, np.full(count, NO_ID)]),
        tokens=(*passage.tokens, *special, *names),
        spans=np.concatenate([passage.spans, np.zeros((count, 2), dtype=np.int64)]),
        parts=np.concatenate([passage.parts, np.where(unit_of < 0, SPECIAL, IMAGE)]),
        types=types,
        unit_of=np.concatenate([passage.unit_of, unit_of]),
        unit_spans=(*passage.unit_spans, *((IMAGE, row, column) for row, column in cells)),
        pixels=pixels,
        regions=regions,
    )


def first_tokens(passage: Passage, count: int) -> Passage:
    """The first tokens of a passage, its text and units as they were."""
    keep = np.arange(count)
    return replace(
        passage,
        ids=passage.ids[keep],
        tokens=passage.tokens[:count],
        spans=passage.spans[keep],
        parts=passage.parts[keep],
        unit_of=passage.unit_of[keep],
        types=None if passage.types is None else passage.types[keep],
    )


def windows(passage: Passage, limit: int) -> list[Passage]:
    """Cut a passage that is too long into consecutive ones of at most ``limit`` tokens.

    Cuts are at the borders of units, and every window has the special tokens. Spans keep counting
    from the beginning of the whole text; the units of the windows, one after the other, are those
    of the whole passage.
    """
    _check_one_text(passage)
    content = np.flatnonzero(~passage.special)
    before = np.arange(content[0])
    after = np.arange(content[-1] + 1, len(passage))
    room = limit - len(before) - len(after)
    unit = passage.unit_of[content]
    parts = []
    start = 0
    while start < len(content):
        end = min(start + room, len(content))
        if end < len(content):
            while end > start and unit[end] == unit[end - 1]:
                end -= 1
        if end <= start:
            name = passage.names[int(unit[start])][:40]
            raise InputError(
                f"the unit {name!r} alone has more than the {room} tokens that fit the model; "
                "use smaller units."
            )
        parts.append(_part(passage, np.concatenate([before, content[start:end], after])))
        start = end
    return parts


def _check_one_text(passage: Passage) -> None:
    """Raise for what cannot be cut: it has two sides, or is read in one place."""
    beside = (passage.pair, passage.reply, passage.pixels, passage.regions)
    if any(other is not None for other in beside):
        raise InputError(
            "only a single text can be cut into windows; shorten the pair, "
            "or use overflow='truncate'."
        )
    if passage.readout is not None:
        raise InputError(
            "a masked language model is read in one place, so its text cannot be cut into "
            "windows; shorten it around the mask."
        )


def truncate(passage: Passage, limit: int) -> Passage:
    """The beginning of a passage: at most ``limit`` tokens with the special ones, whole units.

    ``dropped`` counts the characters that are left out. Of a pair, the end of the second text goes
    first, as its tail is the last to be read.
    """
    if len(passage) <= limit:
        return passage
    content = np.flatnonzero(~passage.special)
    keep = len(content) - (len(passage) - limit)
    unit = passage.unit_of[content]
    while keep > 0 and unit[keep] == unit[keep - 1]:
        keep -= 1
    if keep <= 0:
        raise InputError(
            f"the first unit alone has more tokens than the {limit} that fit the model; "
            "use smaller units."
        )
    kept = np.sort(np.concatenate([np.flatnonzero(passage.special), content[:keep]]))
    ends = {part: end for part, _, end in passage.unit_spans[: int(unit[keep - 1]) + 1]}
    text = passage.text[: ends[0]]
    pair = None if passage.pair is None else passage.pair[: ends.get(1, 0)]
    dropped = len(passage.text) + len(passage.pair or "") - len(text) - len(pair or "")
    return replace(_part(passage, kept), text=text, pair=pair, dropped=dropped)


def _part(passage: Passage, tokens: Int[np.ndarray, " kept"]) -> Passage:
    unit = passage.unit_of[tokens]
    first = int(unit[unit >= 0].min())
    last = int(unit.max())
    readout = None
    if passage.readout is not None:
        places = np.flatnonzero(tokens == passage.readout)
        if not len(places):
            raise InputError(
                "the masked unit lies in the part of the text that does not fit the model; "
                "shorten the text before it."
            )
        readout = int(places[0])
    return replace(
        passage,
        ids=passage.ids[tokens],
        tokens=tuple(passage.tokens[t] for t in tokens),
        spans=passage.spans[tokens],
        parts=passage.parts[tokens],
        types=None if passage.types is None else passage.types[tokens],
        unit_of=np.where(unit >= 0, unit - first, SPECIAL),
        unit_spans=passage.unit_spans[first : last + 1],
        readout=readout,
    )
