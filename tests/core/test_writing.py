"""Files are written wholly or not at all, whatever happens on the way."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import whence
from whence.core.errors import InputError
from whence.core.writing import is_stream, write_bytes, write_text

SOURCE = Path(whence.__file__).parent


@pytest.fixture
def old(tmp_path):
    """A report that is there already."""
    path = tmp_path / "report.html"
    path.write_text("precious")
    return path


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        path = write_text(tmp_path / "new.html", "so good")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640  # 0o600, were it tempfile's
    assert path.read_bytes() == b"so good"
    assert files_in(tmp_path) == ["new.html"]


def test_an_old_file_keeps_its_permissions(old):
    old.chmod(0o604)
    write_text(old, "new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o604
    assert old.read_text() == "new"


def test_a_link_still_leads_to_the_file(old):
    link = old.with_name("latest.html")
    link.symlink_to(old.name)
    link_to_link = old.with_name("again.html")
    link_to_link.symlink_to(link)
    write_text(link_to_link, "new")
    assert link.is_symlink()
    assert link_to_link.is_symlink()
    assert old.read_text() == "new"


def test_a_link_that_leads_nowhere_makes_its_file(tmp_path):
    link = tmp_path / "latest.html"
    link.symlink_to("later.html")
    write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "later.html").read_text() == "new"


def test_a_long_name_leaves_room_for_the_file_beside_it(tmp_path):
    path = tmp_path / f"{'x' * 250}.html"
    write_text(path, "new")
    assert path.read_text() == "new"


# ---------------------------------------------------------------------- faults

FULL = """
import resource, signal, sys
from whence.core.errors import InputError
from whence.core.writing import write_text
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    write_text(sys.argv[1], "x" * 10_000)
except InputError as problem:
    print(problem)
"""


def test_a_full_disk_leaves_the_old_file_and_nothing_else(old):
    # the system itself refuses to write beyond 4,096 bytes, as it does on a full disk
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(old)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"cannot write {str(old)!r}: File too large.\n"
    assert old.read_text() == "precious"  # path.write_bytes leaves 4,096 times x here
    assert files_in(old.parent) == ["report.html"]


def test_a_full_device_is_an_error_in_one_line():
    with pytest.raises(InputError, match=r"^cannot write '/dev/full': No space left on device\.$"):
        write_text("/dev/full", "x")


@pytest.mark.parametrize("at", ["write", "fsync", "replace", "open"])
def test_ctrl_c_leaves_the_old_file_and_nothing_else(old, monkeypatch, at):
    real = getattr(os, at)

    def interrupted(*given, **options):
        if at != "open":
            raise KeyboardInterrupt
        real(*given, **options)  # the file is there, and then the signal comes
        raise KeyboardInterrupt

    monkeypatch.setattr(os, at, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(old, "new")
    monkeypatch.undo()
    assert old.read_text() == "precious"
    assert files_in(old.parent) == ["report.html"]


def test_the_content_is_on_the_disk_before_it_takes_the_name(old, monkeypatch):
    done = []
    for step in ("write", "fsync", "replace"):
        real = getattr(os, step)
        monkeypatch.setattr(
            os, step, lambda *given, step=step, real=real: (done.append(step), real(*given))[1]
        )
    write_text(old, "new")
    assert done == ["write", "fsync", "replace", "fsync"]  # the folder's last


def test_what_cannot_be_written_is_said_in_one_line(old, tmp_path):
    for path in (tmp_path, tmp_path / "no" / "folder.html", Path("a\0b")):
        with pytest.raises(InputError, match=r"^cannot write .*\.$"):
            write_text(path, "x")
    with pytest.raises(InputError, match="lone surrogate"):
        write_text(old, "\ud800")
    assert old.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_stays(old):
    old.chmod(0o444)
    with pytest.raises(InputError, match="read-only"):
        write_text(old, "new")
    assert old.read_text() == "precious"


# ---------------------------------------------------------------------- no files

TO_STDOUT = """
from whence.core.writing import write_text
print("first", flush=True)
write_text("/dev/stdout", "second\\n")
print("third", flush=True)
"""


def test_stdout_is_written_to_as_it_comes(tmp_path):
    run = [sys.executable, "-c", TO_STDOUT]
    piped = subprocess.run(run, capture_output=True, text=True, check=True)
    assert piped.stdout == "first\nsecond\nthird\n"
    # a rename would leave "first" and "third" in a file without a name
    kept = tmp_path / "kept.txt"
    with kept.open("w") as file:
        subprocess.run(run, stdout=file, check=True)
    assert kept.read_text() == "first\nsecond\nthird\n"
    with kept.open("a") as file:
        subprocess.run(run, stdout=file, check=True)
    assert kept.read_text() == "first\nsecond\nthird\n" * 2


def test_a_pipe_with_a_name_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert is_stream(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"so good")
    reader.join()
    assert read == [b"so good"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# ---------------------------------------------------------------------- nobody else writes

WRITERS = {"savefig", "imsave", "touch", "dump", "save_file", "save_model", "tofile", "savez"}
# into memory, not into a file
ALLOWED = {("notebook/book.py", "savefig")}


def writing_calls(tree: ast.AST) -> list[str]:
    """The calls that could write a file: by name, and ``open`` in a mode that writes."""
    found = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        function = call.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        if name == "open":
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            modes = [one.value for one in given if isinstance(one, ast.Constant)]
            if any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes):
                found.append(name)
        if name in WRITERS:
            found.append(name)
        if name in ("write_text", "write_bytes") and isinstance(function, ast.Attribute):
            found.append(f".{name}")
    return found


def test_no_other_module_writes_files():
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        module = file.relative_to(SOURCE).as_posix()
        if module == "core/writing.py":
            continue
        for name in writing_calls(ast.parse(file.read_text(encoding="utf-8"))):
            if (module, name) not in ALLOWED:
                found.append(f"{module}: {name}")
    assert found == []


def test_the_search_finds_what_it_is_for():
    code = """
open(p, "w"); p.open(mode="ab"); p.write_text(x); p.write_bytes(x); f.savefig(p); json.dump(x, f)
open(p); Image.open(f); write_text(p, x); json.dumps(x); a.save(p)
"""
    expected = ["open", "open", ".write_text", ".write_bytes", "savefig", "dump"]
    assert writing_calls(ast.parse(code)) == expected
