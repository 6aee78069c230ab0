"""A run in an object store: a real S3 server on loopback (moto), and the real s3fs."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import whence
from tests.runs.conftest import TEXTS
from tests.runs.test_killed import CODE_OF_FAILURES, arguments
from tests.runs.test_run import everything
from tests.runs.warm import Command, Parent
from whence.cli.main import main
from whence.core.errors import InputError, LoadError
from whence.explaining.questions import words_of
from whence.models.model import Model
from whence.runs.places import Bucket, place_of

BUCKET = "reviews"
METHODS = ["gradient-x-input", "occlusion"]


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """The file system of a server that holds one bucket."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
    files.mkdir(BUCKET)
    yield files
    s3fs.S3FileSystem.clear_instance_cache()
    os.environ.clear()
    os.environ.update(before)
    server.stop()


def url(name: str) -> str:
    return f"s3://{BUCKET}/{name}"


def test_a_run_in_a_bucket_is_as_one_in_a_folder(s3: Any, model: Model, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"methods": METHODS, "part": 3, "evidence": False}
    texts = [*TEXTS, ""]
    folder = whence.run(model, texts, out=tmp_path / "run", **asked)
    run = whence.run(model, texts, out=url("same"), **asked)
    assert run.is_complete
    assert everything(run) == everything(folder)
    opened = whence.open_run(url("same/"))
    assert repr(opened) == "Run('s3://reviews/same': 8 of 8 rows)"
    for name in ("texts", "scores", "failures"):
        assert opened.table(name).equals(folder.table(name))
    assert words_of(opened).equals(words_of(folder))
    assert opened.comparison(4).passage.text == TEXTS[4]
    # the size is what lies there, told by the listing
    lies_there = sum(entry["size"] for entry in s3.find(f"{BUCKET}/same", detail=True).values())
    manifest = s3.info(f"{BUCKET}/same/run.json")["size"]
    assert opened.state.bytes == lies_there - manifest


def test_the_copy_for_sql_goes_with_the_run(s3: Any, model: Model) -> None:
    run = whence.run(model, TEXTS[:1], METHODS, out=url("copy"), evidence=False)
    assert run.table("texts").num_rows == 1
    copy = run._on_disk.path
    assert copy.is_dir()
    del run
    gc.collect()  # where types are checked, a cycle of the checker's may hold it until then
    assert not copy.exists()


def test_what_others_have_put_there_since_is_seen(s3: Any, model: Model) -> None:
    # would catch: a listing that s3fs remembers
    asked: dict[str, Any] = {"methods": METHODS, "evidence": False, "part": 2}
    expected = everything(whence.run(model, TEXTS, out=url("since"), **asked))
    place = place_of(url("since"))
    names = place.names("parts")
    assert len(names) == 4
    s3.rm_file(f"{BUCKET}/since/{names[1]}")  # by another file system object
    assert place.names("parts") == [names[0], *names[2:]]
    assert not whence.open_run(url("since")).is_complete
    again = whence.run(model, TEXTS, out=url("since"), **asked)
    assert again.is_complete
    assert everything(again) == expected


def test_a_damaged_object_is_found_named_and_done_again(s3: Any, model: Model) -> None:
    asked: dict[str, Any] = {"methods": METHODS, "evidence": False, "part": 3}
    run = whence.run(model, TEXTS, out=url("damaged"), **asked)
    expected = everything(run)
    name = run.parts[1].name
    content = bytearray(s3.cat_file(f"{BUCKET}/damaged/{name}"))
    content[len(content) // 2] ^= 1
    s3.pipe_file(f"{BUCKET}/damaged/{name}", bytes(content))
    with pytest.raises(LoadError, match=name):
        whence.open_run(url("damaged"))
    with pytest.raises(InputError, match=r"damaged.*--mend"):
        whence.open_run(url("damaged"), check=False).table("scores")
    mended = whence.run(model, TEXTS, out=url("damaged"), mend=True, **asked)
    assert everything(mended) == expected


def test_a_run_that_is_asked_for_something_else_is_refused_and_restarted(
    s3: Any, model: Model
) -> None:
    whence.run(model, TEXTS[:3], METHODS, out=url("other"), evidence=False, part=1)
    with pytest.raises(InputError, match=r"data\.rows: 3 in the run, 2 asked for now"):
        whence.run(model, TEXTS[:2], METHODS, out=url("other"), evidence=False, part=1)
    anew = whence.run(
        model, TEXTS[:2], METHODS, out=url("other"), evidence=False, part=1, again=True
    )
    assert anew.is_complete
    assert len(s3.ls(f"{BUCKET}/other/parts")) == 2


@pytest.mark.slow
def test_killed_and_continued_with_workers(
    warm: Parent, s3: Any, folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "texts.txt"
    data.write_text("\n".join([*TEXTS[:4], "the " * 100, *TEXTS[4:], *TEXTS]) + "\n")
    out = url("killed")

    def begun(*more: str) -> Command:
        return warm.begin(arguments(data, folder, tmp_path / "whole", *more))

    process = begun("--out", out, "--workers", "2")
    place = Bucket(out)
    while not place.names("parts") and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert len(place.names("parts")) >= 1
    for more in (("--out", out, "--workers", "2"), ()):
        process = begun(*more)
        _, complaints = process.communicate()
        assert process.returncode == CODE_OF_FAILURES, complaints
    assert everything(whence.open_run(out)) == everything(whence.open_run(tmp_path / "whole"))


# ---------------------------------------------------------------------- mistakes


def test_a_bucket_that_does_not_exist_is_one_line(s3: Any, model: Model) -> None:
    with pytest.raises(InputError, match=r"cannot write s3://nowhere/x/.*bucket does not exist"):
        whence.run(model, TEXTS[:1], METHODS, out="s3://nowhere/x", evidence=False)
    with pytest.raises(LoadError, match="there is no run in 's3://nowhere/x'"):
        whence.open_run("s3://nowhere/x")


def test_no_access_is_one_line(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto import settings

    # from now on the server asks who somebody is, and these keys are nobody's
    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
    place = place_of(url("x"))
    with pytest.raises(InputError, match=r"^cannot look at s3://reviews/x/run\.json: .+\.$"):
        place.has("run.json")
    with pytest.raises(InputError, match=r"^cannot write s3://reviews/x/run\.json: .+\.$"):
        place.put("run.json", b"{}")
    with pytest.raises(InputError, match=r"^cannot list s3://reviews/x/parts: .+\.$"):
        place.names("parts")


def test_without_s3fs_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    # the package gives its table of classes the name of the module that holds it
    assert fsspec.registry is not None
    known = sys.modules["fsspec.registry"]
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(known._registry, "s3", raising=False)
    with pytest.raises(InputError, match=r"pip install 'whence\[s3\]'"):
        place_of("s3://bucket/x").has("run.json")


def test_a_url_that_nobody_knows_is_one_line() -> None:
    with pytest.raises(InputError, match="no place that fsspec knows"):
        place_of("gopher://bucket/x").has("run.json")


def test_the_command_line_tells_and_queries_a_bucket(
    s3: Any, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    whence.run(model, TEXTS[:2], METHODS, out=url("told"), evidence=False)
    assert main(["run", url("told")]) == 0
    assert "s3://reviews/told: all 2 texts are done" in capsys.readouterr().out
    assert main(["query", url("told"), "select count(*) as n from texts", "--csv"]) == 0
    assert capsys.readouterr().out.split() == ["n", "2"]
