"""Data sets of Arrow columns: Parquet files, and folders that Hugging Face `datasets` saved."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from whence.core.errors import InputError, unknown_name
from whence.runs.files import seekable
from whence.runs.records import (
    BOOLEANS,
    NOTHING,
    NUMBERS,
    OTHER,
    TEXT,
    TEXTS,
    Record,
    Table,
    Unreadable,
)

ROWS_AT_ONCE = 256
NO_CLASS = -1
MOST_NAMED = 5
# how the Hub names the Parquet files of a split: train-00000-of-00002.parquet
SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-\d{5}(-[0-9a-f]+)?\.parquet", re.IGNORECASE)

# batches of rows of one file, of the columns that are wanted
Batches = Callable[[Path, tuple[str, ...] | None], Iterator[Any]]


def parquet_table(path: Path) -> Table:
    """One Parquet file, which may be packed."""
    return _table("parquet", (path,), _parquet_batches, _parquet_schema)


def folder_table(path: Path, split: str | None) -> Table:
    """A folder of Parquet files, or one that `datasets` saved."""
    if (path / "dataset_dict.json").is_file():
        return _dataset_dict_table(path, split)
    if (path / "state.json").is_file():
        return _dataset_table(path, split)

    files = sorted(
        file
        for file in path.iterdir()
        if file.is_file()
        and file.suffix.lower() == ".parquet"
        and not file.name.startswith((".", "_"))
    )
    if not files:
        raise InputError(_strange_folder(path))
    files = _files_of_split(path, files, split)
    return _table("parquet", tuple(files), _parquet_batches, _parquet_schema)


def _strange_folder(path: Path) -> str:
    names = sorted(file.name for file in path.iterdir() if not file.name.startswith("."))
    shown = ", ".join(names[:MOST_NAMED]) or "nothing"
    if len(names) > MOST_NAMED:
        shown += " …"
    return (
        f"the folder {str(path)!r} holds neither Parquet files nor a data set saved by Hugging "
        f"Face `datasets` (save_to_disk). Found: {shown}."
    )


def _files_of_split(path: Path, files: list[Path], split: str | None) -> list[Path]:
    """The files whose names begin with the split, where names tell splits at all."""
    splits: dict[str, list[Path]] = {}
    for file in files:
        match = SHARD.fullmatch(file.name)
        splits.setdefault(match["split"] if match else "", []).append(file)

    if "" in splits:  # some files have names of their own: all belong together
        if split is not None:
            raise InputError(
                f"the folder {str(path)!r} is not divided into splits, so there is no split "
                f"{split!r}: leave it out, or name one file."
            )
        return files
    return splits[_known_split(path, tuple(splits), split)]


def _known_split(path: Path, splits: Sequence[str], split: str | None) -> str:
    if split is None and len(splits) == 1:
        return splits[0]
    if split is None:
        raise InputError(
            f"{str(path)!r} has {len(splits)} splits: {', '.join(splits)}. "
            f"Pass one, such as --split {splits[0]}."
        )
    if split not in splits:
        raise unknown_name(f"split of {str(path)!r}", split, splits)
    return split


def _dataset_dict_table(path: Path, split: str | None) -> Table:
    splits = _json_of(path / "dataset_dict.json").get("splits")
    if not isinstance(splits, list) or not all(_is_file_name(name) for name in splits):
        raise InputError(f"{str(path / 'dataset_dict.json')!r} names no splits.")
    if not splits:
        raise InputError(f"{str(path)!r} holds no records.")
    name = _known_split(path, splits, split)
    return _dataset_table(path / name, None)


def _dataset_table(path: Path, split: str | None) -> Table:
    state = _json_of(path / "state.json")
    own = state.get("_split")
    if split is not None and split != own:
        found = f"it is the split {own!r}" if own else "it is not divided into splits"
        raise InputError(f"{str(path)!r} has no split {split!r}: {found}.")
    if state.get("_indices_data_files"):
        raise InputError(
            f"{str(path)!r} was saved by an old version of `datasets`, with a list of chosen rows "
            "beside its data. Save it again with a newer one."
        )

    listed = state.get("_data_files")
    if listed == []:  # as it saves a data set without rows
        raise InputError(f"{str(path)!r} holds no records.")
    names = [_file_name(file) for file in listed] if isinstance(listed, list) else []
    if not names or not all(_is_file_name(name) for name in names):
        raise InputError(f"{str(path / 'state.json')!r} names no files with data.")
    files = tuple(path / name for name in names)
    return _table("datasets", files, _stream_batches, _stream_schema)


def _file_name(file: Any) -> Any:
    return file.get("filename") if isinstance(file, dict) else None


def _is_file_name(name: Any) -> bool:
    """Whether it stays in its folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name


def _json_of(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        why = problem.strerror or problem
        raise InputError(f"cannot read {str(path)!r}: {why}.") from problem
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{str(path)!r} is not JSON: {problem}.") from problem
    if not isinstance(content, dict):
        raise InputError(f"{str(path)!r} is not as `datasets` writes it: it holds no object.")
    return content


def _table(
    format: str, files: tuple[Path, ...], batches: Batches, schema_of: Callable[[Path], Any]
) -> Table:
    first = schema_of(files[0])
    for file in files[1:]:
        _check_same_columns(files[0], first, file, schema_of(file))
    kinds = {field.name: _kind_of_type(field.type) for field in first}
    records = partial(_records, files, batches, _classes_of(first))
    return Table(format, records, tuple(first.names), kinds)


def _classes_of(schema: Any) -> dict[str, tuple[str, ...]]:
    """The names of classes, by column, where `datasets` says that its numbers stand for them."""
    written = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        features = json.loads(written)["info"]["features"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    classes: dict[str, tuple[str, ...]] = {}
    for column, feature in features:
        if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
            continue
        names = feature.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            classes[column] = tuple(names)
    return classes


def _class_name(value: Any, names: tuple[str, ...]) -> Any:
    """The class of a number; None for -1, by which `datasets` says that there is none."""
    if value == NO_CLASS:
        return None
    if not isinstance(value, int):
        return value
    if 0 <= value < len(names):
        return names[value]
    return Unreadable(f"the class {value}, and there are {len(names)} ({', '.join(names)})")


def _check_same_columns(first: Path, schema: Any, file: Path, other: Any) -> None:
    missing = [name for name in schema.names if name not in other.names]
    if missing:
        raise InputError(
            f"{str(file)!r} has no column {missing[0]!r}, which {first.name!r} beside it has: "
            "they are not parts of one data set. Name one file."
        )


def _records(
    files: tuple[Path, ...],
    batches: Batches,
    classes: Mapping[str, tuple[str, ...]],
    wanted: tuple[str, ...] | None = None,
) -> Iterator[Record]:
    number = 0
    for file in files:
        for batch in batches(file, wanted):
            names = batch.schema.names
            columns = []
            for place, name in enumerate(names):
                values = _values(batch.column(place))
                if name in classes:
                    values = [_class_name(value, classes[name]) for value in values]
                columns.append(values)
            for values in zip(*columns, strict=True):
                yield Record(number, dict(zip(names, values, strict=True)))
                number += 1


def _values(column: Any) -> list[Any]:
    try:
        return column.to_pylist()
    except (ValueError, TypeError):  # one value spoils the column: find out which
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as problem:
        byte = problem.object[problem.start]
        return Unreadable(f"bytes that are not UTF-8 (byte 0x{byte:02x})")
    except (ValueError, TypeError) as problem:
        return Unreadable(f"a value that Python cannot hold ({problem})")


def _parquet_schema(path: Path) -> Any:
    parquet = _needed().parquet
    with _arrow_errors(path, "Parquet"), seekable(path) as file:
        return parquet.ParquetFile(file).schema_arrow


def _parquet_batches(path: Path, wanted: tuple[str, ...] | None) -> Iterator[Any]:
    parquet = _needed().parquet
    columns = None if wanted is None else list(wanted)
    with _arrow_errors(path, "Parquet"), seekable(path) as file:
        yield from parquet.ParquetFile(file).iter_batches(ROWS_AT_ONCE, columns=columns)


def _stream_schema(path: Path) -> Any:
    with _arrow_errors(path, "an Arrow stream"), _stream(path) as stream:
        return stream.schema


def _stream_batches(path: Path, wanted: tuple[str, ...] | None) -> Iterator[Any]:
    with _arrow_errors(path, "an Arrow stream"), _stream(path) as stream:
        for batch in stream:
            chosen = batch if wanted is None else batch.select(list(wanted))
            for start in range(0, chosen.num_rows, ROWS_AT_ONCE):
                yield chosen.slice(start, ROWS_AT_ONCE)


@contextmanager
def _stream(path: Path) -> Iterator[Any]:
    arrow = _needed()
    with arrow.memory_map(str(path)) as file, arrow.ipc.open_stream(file) as stream:
        yield stream


@contextmanager
def _arrow_errors(path: Path, kind: str) -> Iterator[None]:
    arrow = _needed()
    try:
        yield
    except InputError:
        raise
    except (arrow.ArrowException, OSError) as problem:
        what = str(problem).strip().splitlines() or ["it is damaged"]
        shown = what[0].rstrip(".")
        raise InputError(f"cannot read {str(path)!r} as {kind}: {shown}.") from problem


def _kind_of_type(type: Any) -> str:
    """What a column of an Arrow type holds, as ``kind_of`` would say of its values."""
    types = _needed().types
    if types.is_dictionary(type):
        return _kind_of_type(type.value_type)
    if types.is_string(type) or types.is_large_string(type) or types.is_string_view(type):
        return TEXT
    if types.is_boolean(type):
        return BOOLEANS
    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type):
        return NUMBERS
    if types.is_null(type):
        return NOTHING
    is_list = types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type)
    if is_list and _kind_of_type(type.value_type) == TEXT:
        return TEXTS
    return OTHER


def _needed() -> Any:
    """Pyarrow with the parts that are used here, or how to get it."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
        import pyarrow.types
    except ImportError:
        raise InputError(
            "reading Parquet and folders of `datasets` needs pyarrow: pip install 'whence[runs]'."
        ) from None
    return pyarrow
