"""Where a run is kept: a folder, or a place behind a URL such as s3://bucket/reviews.

A place holds objects by name, and each is put whole. In a folder it is written beside its name,
flushed to the disk and renamed; an object store shows nothing of an object before all of it is
there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from whence.core.errors import InputError
from whence.core.writing import remove_unfinished, write_bytes


@runtime_checkable
class Place(Protocol):
    """What a store may know of where it is."""

    @property
    def name(self) -> str:
        """As a user would name it."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether it is still there once the work is done."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write an object, wholly or not at all."""
        ...

    def get(self, name: str) -> bytes:
        """All of an object."""
        ...

    def names(self, under: str) -> list[str]:
        """The objects below a name, in order."""
        ...

    def sizes(self, under: str) -> dict[str, int]:
        """The bytes of each object below a name, without reading them."""
        ...

    def remove(self, name: str) -> None:
        """Take an object away; one that is not there is no mistake."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is such an object."""
        ...

    def tidy(self, under: str) -> None:
        """Take away what was being written below a name when its process was killed."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder of this machine, or one that several machines share."""

    path: Path
    is_kept: bool = field(default=True, repr=False)

    @property
    def name(self) -> str:
        """The path as it was given."""
        return str(self.path)

    def put(self, name: str, content: bytes) -> None:
        """Beside its name, flushed, then renamed."""
        file = self.path / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(
                f"cannot make the folder {str(file.parent)!r}: {problem.strerror or problem}."
            ) from problem
        write_bytes(file, content)

    def get(self, name: str) -> bytes:
        """The bytes of a file."""
        try:
            return (self.path / name).read_bytes()
        except OSError as problem:
            raise InputError(
                f"cannot read {str(self.path / name)!r}: {problem.strerror or problem}."
            ) from problem

    def names(self, under: str) -> list[str]:
        """Files below, without those that are being written: their names begin with a dot."""
        folder = self.path / under
        if not folder.is_dir():
            return []
        return sorted(f"{under}/{name}" for name in os.listdir(folder) if not name.startswith("."))

    def sizes(self, under: str) -> dict[str, int]:
        """The bytes of each file below."""
        return {name: (self.path / name).stat().st_size for name in self.names(under)}

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self.path / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        return (self.path / name).is_file()

    def tidy(self, under: str) -> None:
        """Files that never took their names."""
        remove_unfinished(self.path / under)


@dataclass(frozen=True)
class Bucket:
    """A place behind an fsspec URL. Nobody is kept from running into it twice at once."""

    url: str

    @property
    def name(self) -> str:
        """The URL."""
        return self.url

    @property
    def is_kept(self) -> bool:
        """Objects stay until somebody takes them away."""
        return True

    @property
    def _files(self) -> tuple[Any, str]:
        """The file system and the path in it."""
        try:
            from fsspec.core import url_to_fs

            # others put objects there too: what was listed before is never taken for what is there
            return url_to_fs(self.url, use_listings_cache=False)
        except ImportError as problem:
            raise InputError(
                f"{self.url} needs a package that is not installed ({_short(problem)}); "
                "for s3:// it is s3fs: pip install 'whence[s3]'."
            ) from problem
        except ValueError as problem:
            raise InputError(
                f"{self.url} is no place that fsspec knows: {_short(problem)}."
            ) from problem

    def put(self, name: str, content: bytes) -> None:
        """In one piece: there is no rename in an object store, and none is needed."""
        files, path = self._files
        with _in_one_line(f"cannot write {self.url}/{name}"):
            files.pipe_file(f"{path}/{name}", content)

    def get(self, name: str) -> bytes:
        """All of an object."""
        files, path = self._files
        with _in_one_line(f"cannot read {self.url}/{name}"):
            return files.cat_file(f"{path}/{name}")

    def names(self, under: str) -> list[str]:
        """The objects below a name."""
        return sorted(self.sizes(under))

    def sizes(self, under: str) -> dict[str, int]:
        """The bytes of each object below, as the listing tells them."""
        files, path = self._files
        sizes = {}
        with _in_one_line(f"cannot list {self.url}/{under}"):
            files.invalidate_cache()
            try:
                listed = files.ls(f"{path}/{under}", detail=True)
            except FileNotFoundError:
                return {}
        for entry in listed:
            name = entry["name"].rpartition("/")[2]
            if entry["type"] == "file" and name:  # a mark for the folder itself has no name
                sizes[f"{under}/{name}"] = int(entry["size"])
        return sizes

    def remove(self, name: str) -> None:
        """Delete an object."""
        files, path = self._files
        if self.has(name):
            with _in_one_line(f"cannot remove {self.url}/{name}"):
                files.rm_file(f"{path}/{name}")

    def has(self, name: str) -> bool:
        """Whether there is such an object."""
        files, path = self._files
        with _in_one_line(f"cannot look at {self.url}/{name}"):
            files.invalidate_cache()
            return bool(files.exists(f"{path}/{name}"))

    def tidy(self, under: str) -> None:
        """Nothing: an object store shows nothing of an object that was not put whole."""
        del under


@contextmanager
def _in_one_line(what: str) -> Iterator[None]:
    """What a file system raises, as one line. Each has errors of its own kind."""
    try:
        yield
    except Exception as problem:
        raise InputError(f"{what}: {_short(problem)}.") from problem


def _short(problem: Exception) -> str:
    message = " ".join(str(problem).split()) or type(problem).__name__
    return message.rstrip(".")


def place_of(out: str | Path) -> Place:
    """The place of a path or a URL.

    >>> place_of("runs/reviews")
    Folder(path=PosixPath('runs/reviews'))
    >>> place_of("s3://bucket/reviews/")
    Bucket(url='s3://bucket/reviews')
    """
    if isinstance(out, str) and "://" in out:
        return Bucket(out.rstrip("/"))
    return Folder(Path(out))


@contextmanager
def place_for(out: str | Path | None) -> Iterator[Place]:
    """The place as it was asked for; where none was, a folder that goes away afterwards.

    >>> with place_for(None) as place:
    ...     place.is_kept
    False
    """
    if out is not None:
        yield place_of(out)
        return
    with tempfile.TemporaryDirectory(prefix="whence-") as folder:
        yield Folder(Path(folder), is_kept=False)
