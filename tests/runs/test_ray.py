"""A run on a real Ray cluster: actors and nodes go, and it ends as if one process had done it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import whence
from tests.runs.conftest import TEXTS, typed
from tests.runs.deadly_run import prepared
from tests.runs.deadly_worker import WRITTEN_BEFORE_DEATH, DeadlyActor
from tests.runs.test_killed import arguments, continued
from tests.runs.test_run import everything
from tests.runs.warm import Parent
from whence.core.errors import InputError, Unsupported
from whence.models.model import Model
from whence.runs.engines import ray_actors as engine
from whence.runs.parts import read_part
from whence.runs.places import Place

PATIENCE = 300.0  # seconds, on a machine that others use too
SMALL = {"object_store_memory": 100_000_000, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that does no work itself, and two nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    root = Path(__file__).parents[2]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root / "src"), str(root)])
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
    for _ in range(2):
        started.add_node(num_cpus=1, **SMALL)
    yield started
    started.shutdown()
    os.environ.clear()
    os.environ.update(before)


def descendants(parent: int) -> dict[int, str]:
    """The processes that a process has started, and those that they have, with their commands."""
    found = {}
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            try:
                line = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found |= {child: line} | descendants(child)
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ---------------------------------------------------------------------- the real work


@pytest.mark.slow
def test_with_an_actor_killed_and_a_node_removed_a_run_is_as_inline(
    cluster: Any, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would catch: a part that is lost or done twice, another batch, another number of threads
    asked: dict[str, Any] = {"methods": ["gradient-x-input", "occlusion"], "part": 1}
    asked |= {"rankings": 39, "steps": 2}
    texts = [*TEXTS, ""]
    inline = whence.run(model, texts, out=tmp_path / "inline", **asked)
    happened = []

    def disturb(done: int, failed: int, rows: int) -> None:
        if done == 1:
            actors = [pid for pid, line in descendants(os.getpid()).items() if "ray::Actor" in line]
            for actor in actors:
                os.kill(actor, signal.SIGKILL)
            happened.append(len(actors))
        if done == 4:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
            happened.append(-1)

    monkeypatch.chdir(tmp_path)  # a relative place is the same one for actors elsewhere
    run = whence.run(
        model,
        texts,
        out="ray",
        engine="ray",
        address=cluster.address,
        workers=2,
        progress=disturb,
        **asked,
    )
    assert happened[0] >= 1
    assert happened[1:] == [-1]
    cluster.add_node(num_cpus=1, **SMALL)
    assert run.is_complete
    assert everything(run) == everything(inline)
    assert sorted(run.parts) == list(range(len(texts)))
    # a worker that is only cut off may still write its part while another does it too
    files = list((tmp_path / "ray" / "parts").iterdir())
    assert len(files) <= len(texts) + 1
    assert len(run.failures) == 1


@pytest.mark.slow
def test_an_audit_on_a_cluster_is_that_of_this_process(
    cluster: Any, model: Model, tmp_path: Path
) -> None:
    # would catch: a work that actors cannot open, or that they do with other texts left out
    asked: dict[str, Any] = {"tests": ["uniform", "heads"], "rankings": 2, "part": 1}
    inline = whence.audit(model, TEXTS[:2], out=tmp_path / "inline", **asked)
    on_ray = {"engine": "ray", "address": cluster.address, "workers": 1}
    audit = whence.audit(model, TEXTS[:2], out=tmp_path / "ray", **asked, **on_ray)
    assert audit.to_csv() == inline.to_csv()
    assert audit.pruning == inline.pruning
    names = [
        sorted(file.name for file in (tmp_path / run / "parts").iterdir())
        for run in ("inline", "ray")
    ]
    assert names[0] == names[1]  # a name has the digest of what is in it


@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_the_ray_that_it_started(
    warm: Parent, folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "texts.txt"
    lines = [*TEXTS, *(f"{text} food" for text in TEXTS)]
    lines[4] = "the " * 100  # over the model's limit: a failure
    data.write_text("\n".join(lines) + "\n")
    out = tmp_path / "run"
    process = subprocess.Popen(
        typed(arguments(data, folder, out, "--engine", "ray", "--workers", "1")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: bool(list(out.glob("parts/*.parquet"))) or process.poll() is not None)
    started = descendants(process.pid)
    assert any("raylet" in line for line in started.values())
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    printed, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, complaints
    assert "The same command goes on from here." in printed
    assert complaints.count("stopping after the part at hand") == 1
    assert not re.search("raylet|INFO|WARN|Token|Traceback", complaints)  # Ray is quiet
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
    run = whence.open_run(out)
    assert 0 < len(run.parts) < run.manifest.parts
    # begun by Ray, ended by one process
    alone = continued(warm, data, folder, tmp_path / "alone")
    assert continued(warm, data, folder, out) == alone


# ---------------------------------------------------------------------- work that kills


def done(cluster: Any, place: Place, parts: int) -> list[dict[str, Any]]:
    by_number = {}
    for part in engine.ray_actors(place, range(parts), 2, cluster.address, lambda: False):
        by_number[part.number] = part
    records = []
    for number in range(parts):
        records += read_part(place, by_number[number]).to_pylist()
    return records


@pytest.mark.slow
def test_a_text_that_kills_is_a_failure_and_its_neighbours_are_not(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ACTOR", DeadlyActor)
    texts = ["a", "b", "c", "d", "die", "e", "f", "die together", "g"]
    records = done(cluster, prepared(tmp_path, texts), 3)
    assert [record["row"] for record in records] == list(range(9))
    assert [record["row"] for record in records if record["failure"]] == [4]
    assert [record["beside"] for record in records] == [3] * 6 + [1] * 3


@pytest.mark.slow
def test_a_part_that_its_actor_wrote_before_it_died_is_not_made_again(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ACTOR", DeadlyActor)
    records = done(cluster, prepared(tmp_path, [f"unheard {tmp_path}"]), 1)
    assert [record["beside"] for record in records] == [WRITTEN_BEFORE_DEATH]
    assert len(list((tmp_path / "parts").iterdir())) == 1


@pytest.mark.slow
def test_a_text_is_not_blamed_for_its_node(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would catch: every death counted against the row that was at hand
    monkeypatch.setattr(engine, "ACTOR", DeadlyActor)
    notes = tmp_path / "notes"
    place = prepared(tmp_path / "run", ["a", f"doomed {notes}", "b"])

    removed: list[str] = []

    def remove() -> None:
        until(lambda: notes.exists() and len(notes.read_text().splitlines()) == 3)
        here = notes.read_text().splitlines()[-1]
        (node,) = [node for node in cluster.worker_nodes if node.node_id == here]
        cluster.remove_node(node, allow_graceful=False)
        removed.append(here)

    remover = threading.Thread(target=remove, daemon=True)
    remover.start()
    records = done(cluster, place, 1)
    remover.join()
    assert removed
    cluster.add_node(num_cpus=1, **SMALL)  # by the main thread: Ray sets handlers of signals
    assert not any(record["failure"] for record in records)
    assert {record["beside"] for record in records} == {3}


@pytest.mark.slow
def test_a_stop_a_bug_and_a_place_that_is_not_shared(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ACTOR", DeadlyActor)
    place = prepared(tmp_path / "stopped", [f"text {number}" for number in range(30)])
    seen: list[int] = []
    parts = engine.ray_actors(place, range(10), 2, cluster.address, lambda: bool(seen))
    for part in parts:
        seen.append(part.number)
    assert 1 <= len(seen) <= 2

    with pytest.raises(InputError, match="unexpected RuntimeError: a bug in the work"):
        done(cluster, prepared(tmp_path / "bug", ["raise"]), 1)

    elsewhere = prepared(tmp_path / "elsewhere", ["a"])
    (tmp_path / "elsewhere" / "run.json").unlink()
    with pytest.raises(InputError, match=r"cannot begin: there is no run .* Each node needs"):
        done(cluster, elsewhere, 1)


# ---------------------------------------------------------------------- without a cluster


@pytest.fixture
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.usefixtures("_no_address")
def test_without_ray_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Unsupported, match=r"pip install 'whence\[ray\]'"):
        engine.check_ray(None)


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "nonsense", "host:", ":6379"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=r"no address of a Ray cluster"):
        engine.check_ray(address)


def test_an_address_where_nobody_listens_is_refused_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens, so that nobody else does
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=r"no Ray cluster at '127.0.0.1:\d+': .* refused"):
            engine.check_ray(f"127.0.0.1:{port}")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", None])
def test_an_address_where_somebody_else_listens_is_refused(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None
) -> None:
    # Ray itself tried for more than five minutes
    monkeypatch.setattr(engine, "ANSWERS_WITHIN", 0.5 if answer is None else PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(24)
                connection.sendall(answer or b"")

        listener = threading.Thread(target=serve)
        if answer is not None:
            listener.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(
            InputError, match=r"there is no Ray cluster at .*(else|reset|timed out)"
        ):
            engine.check_ray(address)
        if answer is not None:
            listener.join()
