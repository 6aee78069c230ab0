"""Every file that whence writes goes through here: beside its name, flushed, then renamed.

So a full disk, a crash or Ctrl-C never turns an old report into half of a new one.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from whence.core.errors import InputError
from whence.core.showing import visible_json

# what stands behind these names was opened by somebody else, and has no name to be renamed to
STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
OPEN = {"/dev/stdout": 1, "/dev/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2}
MOST_LINKS = 40  # as many as the system follows
# what a file is called while it is written
UNFINISHED = ".whence-{}.part"


def write_text(path: str | Path, content: str) -> Path:
    """Write a text as UTF-8, wholly or not at all, or say in one line why it cannot be written.

    >>> write_text("/tmp/whence-note.txt", "so good").read_text()
    'so good'
    """
    try:
        encoded = content.encode()  # as bytes: no platform's line ends get into the text
    except UnicodeEncodeError as problem:
        raise InputError(
            f"cannot write {str(path)!r}: the text has a lone surrogate, "
            "which is not valid Unicode."
        ) from problem
    return write_bytes(path, encoded)


def write_json(path: str | Path, value: Any) -> Path:
    """Write plain values as JSON that people can read too."""
    return write_text(path, json_text(value, indent=1))


def json_text(value: Any, indent: int | None = None, ascii_only: bool = False) -> str:
    """Plain values as JSON, in one line unless there is an ``indent``.

    It is safe in a terminal: what would act there is written as an escape, and read back as it was.

    >>> json_text({"text": chr(0x202E) + "so"})
    '{"text": "\\\\u202eso"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, indent=indent)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InputError(f"this result cannot be written as JSON: {problem}.") from problem
    return visible_json(text)


def write_bytes(path: str | Path, content: bytes) -> Path:
    """The same of bytes: a figure.

    A file that was there keeps its permissions, and a symbolic link leads to the same file as
    before. What is no file (``/dev/stdout``, a pipe) is written to as it comes.
    """
    path = Path(path)
    try:
        if is_stream(path):
            _append(path, content)
        else:
            _replace(_followed(path), content)
    except OSError as problem:
        raise InputError(f"cannot write {str(path)!r}: {problem.strerror or problem}.") from problem
    except ValueError as problem:  # a name with a NUL in it
        raise InputError(f"cannot write {str(path)!r}: {problem}.") from problem
    return path


def _followed(path: Path) -> str:
    """The file that symbolic links lead to; one of ``STREAMS`` is led to, and not beyond."""
    file = os.path.abspath(path)
    for _ in range(MOST_LINKS):
        if file.startswith(STREAMS) or not os.path.islink(file):
            break
        file = os.path.abspath(os.path.join(os.path.dirname(file), os.readlink(file)))
    return file


def is_stream(path: str | Path) -> bool:
    """Whether something is written to as it comes: a terminal, a pipe, a device.

    >>> is_stream("/dev/stdout"), is_stream("/tmp/report.html")
    (True, False)
    """
    file = _followed(Path(path))
    if file.startswith(STREAMS):
        return True
    try:
        return not stat.S_ISREG(os.stat(file).st_mode) and not os.path.isdir(file)
    except FileNotFoundError:
        return False


def _append(path: Path, content: bytes) -> None:
    # not opened anew where it is open already: what it was told before and after would be lost
    # beneath it, where it was sent to a file
    handle = OPEN.get(_followed(path))
    if handle is not None:
        _write_all(handle, content)
        return
    with open(path, "ab", buffering=0) as stream:
        _write_all(stream.fileno(), content)


def _replace(file: str, content: bytes) -> None:
    """Write beside the name, flush to the disk, and take the name."""
    before = _permissions(file)
    folder = os.path.dirname(file)
    beside = os.path.join(folder, UNFINISHED.format(secrets.token_hex(8)))
    try:
        # the system takes the umask off these permissions
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            if before is not None:
                _take_over(handle, before)
            _write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(beside, file)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            os.unlink(beside)
        raise
    _flush_folder(folder)


def remove_unfinished(folder: str | Path) -> None:
    """Take away what killed processes were writing there. Nobody else may be writing now."""
    for file in Path(folder).glob(UNFINISHED.format("*")):
        file.unlink(missing_ok=True)


def _permissions(file: str) -> os.stat_result | None:
    """Those of the file that is there. A folder, or a file that is read-only, is refused."""
    try:
        before = os.stat(file)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(None, "it is a folder")
    if not os.access(file, os.W_OK):  # a new file could take its name all the same
        raise PermissionError(None, "it is read-only")
    return before


def _take_over(handle: int, before: os.stat_result) -> None:
    with suppress(PermissionError):  # only root may give a file away
        os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _write_all(handle: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def _flush_folder(folder: str) -> None:
    """The new name, too, is on the disk. Some file systems cannot be asked for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def written(content: str, path: str | Path | None) -> str:
    """The content itself; also written to ``path`` when one is given."""
    if path is not None:
        write_text(path, content)
    return content
