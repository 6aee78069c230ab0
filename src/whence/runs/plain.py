"""Data sets of plain text, of JSON, and of Python's own values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from whence.core.errors import InputError
from whence.core.sizes import human
from whence.core.stored import parsed_json
from whence.runs.files import lines_of, opened, without_end
from whence.runs.records import PLAIN, Record, Table, first_readable, kinds_of, rough

LARGEST_JSON = 1_000_000_000


def text_table(path: Path) -> Table:
    """One text a line."""
    return Table("txt", partial(_text_records, path))


def _text_records(path: Path, _: tuple[str, ...] | None = None) -> Iterator[Record]:
    """The lines that are not blank; blank ones are counted, so that numbers are those of lines."""
    for line in lines_of(path):
        content = without_end(line.content)
        if not content.strip():
            continue
        number, where = line.number - 1, f"line {line.number}"
        if line.problem is None:
            yield Record(number, {PLAIN: content}, where)
        else:
            yield Record(number, where=where, problem=line.problem, rough=rough(content))


def json_lines_table(path: Path) -> Table:
    """One object a line."""
    records = partial(_json_line_records, path)
    return _looked_at("jsonl", records)


def _json_line_records(path: Path, _: tuple[str, ...] | None = None) -> Iterator[Record]:
    number = 0
    for line in lines_of(path):
        content = line.content.strip(" \t\r\n")
        if not content:
            continue
        where = f"line {line.number}"
        if line.problem is not None:
            yield Record(number, where=where, problem=line.problem, rough=rough(content))
        else:
            yield _json_record(number, content, where)
        number += 1


def _json_record(number: int, content: str, where: str) -> Record:
    try:
        value = parsed_json(content)
    except ValueError as problem:
        why = f"broken JSON: {_what_is_broken(problem)}"
        return Record(number, where=where, problem=why, rough=rough(content))

    if not isinstance(value, dict):
        return Record(number, where=where, problem=_no_object(value), rough=rough(content))
    return Record(number, value, where)


def _what_is_broken(problem: ValueError) -> str:
    if isinstance(problem, json.JSONDecodeError):
        # the line that it would name is always the first
        return f"{problem.msg} at character {problem.pos + 1}"
    return str(problem).rstrip(".")


def _no_object(value: Any) -> str:
    return f"JSON, but no object with named fields: {_named_type(value)}"


def _named_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return {**names, list: "a list", dict: "an object"}.get(type(value), type(value).__name__)


def json_table(path: Path) -> Table:
    """A list of objects, which is read whole."""
    records = partial(_json_records, path)
    return _looked_at("json", records)


def _json_records(path: Path, _: tuple[str, ...] | None = None) -> Iterator[Record]:
    for number, value in enumerate(_list_in(path)):
        if isinstance(value, dict):
            yield Record(number, value)
        else:
            shown = rough(json.dumps(value, ensure_ascii=False))
            yield Record(number, problem=_no_object(value), rough=shown)


def _list_in(path: Path) -> list[Any]:
    source = repr(str(path))
    with opened(path) as file:
        content = file.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise InputError(
            f"{source} is larger than {human(LARGEST_JSON)}, and a JSON list is read whole. "
            "Write one object a line and name it .jsonl: that is read line by line."
        )
    if not content.strip():
        raise InputError(f"{source} holds no records.")

    try:
        value = parsed_json(content.decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        byte = content[problem.start]
        raise InputError(
            f"{source} is not UTF-8 (byte 0x{byte:02x}); convert it first, e.g. with iconv."
        ) from None
    except ValueError as problem:
        hint = ""
        if isinstance(problem, json.JSONDecodeError) and problem.msg == "Extra data":
            hint = " If it has one object a line, name it .jsonl."
        what = str(problem).rstrip(".")
        raise InputError(f"{source} is not JSON: {what}.{hint}") from problem

    if not isinstance(value, list):
        raise InputError(
            f"{source} holds {_named_type(value)}, where a list of objects is read: "
            '[{"text": "…"}, …].'
        )
    return value


def list_table(source: Sequence[Any]) -> Table:
    """Strings, or dictionaries, that are in memory already."""
    values = tuple(source)
    if not values:
        raise InputError("the list holds no records.")

    strings = isinstance(values[0], str)
    for number, value in enumerate(values):
        fits = isinstance(value, str) if strings else isinstance(value, Mapping)
        if not fits:
            raise InputError(_wrong_item(number, value, strings))
    if strings:
        return Table("list", partial(_string_records, values))
    return _looked_at("list", partial(_mapping_records, values))


def _wrong_item(number: int, value: Any, strings: bool) -> str:
    if number == 0:
        found = f"its first item is a {type(value).__name__}"
    else:
        found = f"item {number} is a {type(value).__name__}, the first is a "
        found += "str" if strings else "dict"
    return (
        f"a list of data holds strings, or dictionaries such as {{'text': …, 'label': …}}; {found}."
    )


def _string_records(values: tuple[str, ...], _: tuple[str, ...] | None = None) -> Iterator[Record]:
    for number, value in enumerate(values):
        yield Record(number, {PLAIN: value})


def _mapping_records(
    values: tuple[Mapping[Any, Any], ...], _: tuple[str, ...] | None = None
) -> Iterator[Record]:
    for number, value in enumerate(values):
        yield Record(number, {str(name): content for name, content in value.items()})


def _looked_at(format: str, records: Any) -> Table:
    """A table without a header: its columns are the fields of its first records."""
    readable = first_readable(records())
    kinds = kinds_of(readable)
    return Table(format, records, tuple(kinds), kinds)
