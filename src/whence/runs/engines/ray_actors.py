"""A Ray cluster: plain actors that each hold a model, with one CPU and one thread.

Numbers of parts travel, and no data: an actor reads the rows from the run's place and writes the
part there, so that place is a folder which all nodes share, or an object store. An actor that dies
is replaced, and its part is done again. Nothing is asked of Ray but actors: what is done stands in
the run's place, and not in the cluster.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from whence.core.errors import InputError, ModelError, Unsupported
from whence.runs.engines.making import Maker, maker_of, steps, told
from whence.runs.engines.pool import Hand, Order, Pool
from whence.runs.engines.processes import ONE_THREAD
from whence.runs.parts import Part
from whence.runs.places import Folder, Place

# seconds in which an address must answer
ANSWERS_WITHIN = 10.0
# how a client of HTTP/2 begins, with a frame of no settings
SETTINGS = 4
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
# seconds without any worker after which that is said, and again each time they have passed
PATIENCE = 60.0
# seconds in which Ray finds out whether an actor that is out of reach is dead
KNOWN_WITHIN = 60.0
# no data go through Ray, so its store of objects is as small as it may be
STORE_BYTES = 100_000_000
# of a Ray that we start: nothing is reported to anybody
QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
log = logging.getLogger("whence")


# ---------------------------------------------------------------------- in the cluster


@dataclass(frozen=True)
class Seated:
    """An actor has got its place in the cluster."""

    node: str


@dataclass(frozen=True)
class Ready:
    """An actor has loaded its model."""


@dataclass(frozen=True)
class Trouble:
    """An actor cannot go on, for a reason that has nothing to do with a row."""

    message: str


class Actor:
    """What runs in the cluster. Every call is short, or one step of a part."""

    def __init__(self) -> None:
        self.maker: Maker | None = None
        self.steps: Iterator[int | Part] = iter(())

    def seat(self) -> Seated:
        """On which node this is: asked first, as a node may go while the model is loaded."""
        import ray

        return Seated(ray.get_runtime_context().get_node_id())

    def open(self, place: str, folder: str) -> Ready | Trouble:
        """Load the model of the run in a place; relative paths are meant from ``folder``."""
        with suppress(OSError):  # a node without that folder may need no path
            os.chdir(folder)
        try:
            self.maker = maker_of(place)
        except Exception as problem:
            return Trouble(
                f"a worker on {socket.gethostname()} cannot begin: {told(problem)} Each node "
                "needs the same whence, the model, and the run's place."
            )
        return Ready()

    def begin(self, order: Order) -> int | Part | Trouble:
        """Begin with a part; what comes first: a row that is to be tried, or all of it."""
        assert self.maker is not None
        self.steps = steps(self.maker, order)
        return self.go_on()

    def go_on(self) -> int | Part | Trouble:
        """The next step of the part."""
        try:
            return next(self.steps)
        except Exception as problem:
            return Trouble(told(problem))


# ---------------------------------------------------------------------- here


@dataclass
class Worker:
    """An actor, and what it is at."""

    actor: Any
    node: str = ""
    hand: Hand = field(default_factory=Hand)


@dataclass
class Team:
    """The actors of a run, and the answers that are waited for."""

    ray: Any
    place: str
    awaited: dict[Any, Worker] = field(default_factory=dict)
    idle: list[Worker] = field(default_factory=list)

    def start(self) -> None:
        """One more actor, as soon as the cluster has a CPU for it."""
        options = {"num_cpus": 1, "max_restarts": 0, "runtime_env": {"env_vars": ONE_THREAD}}
        worker = Worker(self.ray.remote(ACTOR).options(**options).remote())
        self.awaited[worker.actor.seat.remote()] = worker

    @property
    def everybody(self) -> list[Worker]:
        """Those who work, those who load their model, and those who wait."""
        return [*self.awaited.values(), *self.idle]

    @property
    def is_at_work(self) -> bool:
        """Whether a part is at hand."""
        return any(worker.hand.order is not None for worker in self.awaited.values())


ACTOR: type[Actor] = Actor


def ray_actors(
    place: Place,
    parts: Sequence[int],
    workers: int | None,
    address: str | None,
    stopped: Callable[[], bool],
) -> Iterator[Part]:
    """Do these parts on the Ray cluster at ``address``, and give each when it is done.

    Without an address Ray is started on this machine, and ended again. ``workers`` is one fewer
    than the cluster has CPUs, if nothing is said: Ray needs one for itself. Once ``stopped`` says
    so no further part is begun, and those at hand are waited for.
    """
    ray = needed_ray()
    name = str(place.path.absolute()) if isinstance(place, Folder) else place.name
    with _connected(ray, address, workers):
        pool = Pool(list(parts))
        team = Team(ray, name)
        for _ in range(min(workers or _free_cpus(ray), len(pool.waiting))):
            team.start()
        try:
            yield from _done(pool, team, stopped)
        finally:
            for worker in team.everybody:
                ray.kill(worker.actor)


def check_ray(address: str | None) -> None:
    """Refuse at once what cannot be: no Ray, or an address where nobody listens."""
    needed_ray()
    address = address or os.environ.get("RAY_ADDRESS")
    if address:
        _check_answers(address)


def needed_ray() -> Any:
    """The module ``ray``, or the line that installs it."""
    try:
        import ray
        import ray.exceptions
    except ImportError as problem:
        raise Unsupported("the engine ray needs Ray: pip install 'whence[ray]'.") from problem
    return ray


def _done(pool: Pool, team: Team, stopped: Callable[[], bool]) -> Iterator[Part]:
    ray = team.ray
    waited = 0.0
    while team.is_at_work or (pool.waiting and not stopped()):
        answered, _ = ray.wait(list(team.awaited), num_returns=1, timeout=1.0)
        waited = 0.0 if answered or team.is_at_work else waited + 1.0
        if waited >= PATIENCE:
            waited = 0.0
            log.warning("no worker has started yet: %s", _resources(ray))
        for answer in answered:
            worker = team.awaited.pop(answer)
            try:
                said = ray.get(answer)
            except ray.exceptions.RayActorError as problem:
                _mourn(pool, team, worker, problem)
            except ray.exceptions.RayError as problem:
                raise ModelError(f"Ray could not start a worker: {_short(problem)}") from problem
            else:
                _hear(team, worker, said)
                if isinstance(said, Part):
                    pool.done(worker.hand)
                    yield said
        if not stopped():
            _assign(pool, team)


def _hear(team: Team, worker: Worker, said: Seated | Ready | Trouble | Part | int) -> None:
    """Note what a worker says. One that has something to do is waited for."""
    if isinstance(said, Trouble):
        raise InputError(said.message)
    if isinstance(said, Seated):
        worker.node = said.node
        team.awaited[worker.actor.open.remote(team.place, os.getcwd())] = worker
    elif isinstance(said, int):
        worker.hand.row = said
        team.awaited[worker.actor.go_on.remote()] = worker
    else:
        worker.hand.is_ready = True
        team.idle.append(worker)


def _assign(pool: Pool, team: Team) -> None:
    """Parts for those who wait; if nobody does and nobody comes, somebody new."""
    while team.idle and pool.waiting:
        worker = team.idle.pop()
        order = pool.give(worker.hand)
        team.awaited[worker.actor.begin.remote(order)] = worker
    if pool.waiting and not team.awaited:
        team.start()


def _mourn(pool: Pool, team: Team, worker: Worker, problem: Exception) -> None:
    """An actor is gone. If its whole node is gone, that is no fault of its part."""
    ray = team.ray
    is_blameless = _was_cut_off(ray, worker, problem) or (
        bool(worker.node) and worker.node not in _living_nodes(ray)
    )
    with suppress(Exception):
        ray.kill(worker.actor)  # it may only be out of reach: then it must not go on by itself
    pool.lost(worker.hand, _short(problem), is_blameless)
    if pool.waiting and not team.idle:
        team.start()


def _was_cut_off(ray: Any, worker: Worker, problem: Exception) -> bool:
    """Whether an actor is out of reach, and not dead. Ray takes a while to know which."""
    errors = ray.exceptions
    known_by = time.monotonic() + KNOWN_WITHIN
    while isinstance(problem, errors.ActorUnavailableError):
        try:
            ray.get(worker.actor.seat.remote(), timeout=KNOWN_WITHIN)
        except errors.ActorUnavailableError:
            time.sleep(1.0)
        except errors.RayActorError as certainty:
            problem = certainty
        except errors.GetTimeoutError:
            return True
        else:
            return True
        if time.monotonic() > known_by:
            return True
    return False


def _living_nodes(ray: Any) -> set[str]:
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def _free_cpus(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)


def _resources(ray: Any) -> str:
    free = ray.available_resources().get("CPU", 0)
    return f"the Ray cluster has {ray.cluster_resources().get('CPU', 0):g} CPUs, {free:g} free."


def _short(problem: BaseException) -> str:
    """What Ray says, in one line."""
    return " ".join(str(problem).split())


# ---------------------------------------------------------------------- connecting


@contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """A cluster: the one that is connected already, the one at an address, or one of our own."""
    if ray.is_initialized():  # somebody else's, who goes on with it
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    with _handlers_kept():
        if not address:
            _start(ray, workers)
        else:
            _join(ray, address)
    try:
        yield
    finally:
        with _handlers_kept():
            ray.shutdown()


def _start(ray: Any, workers: int | None) -> None:
    """A Ray of our own on this machine, with one CPU more than there are workers."""
    count = workers or max(1, (os.cpu_count() or 2) - 1)
    before = {name: os.environ.get(name) for name in QUIET}
    os.environ.update(QUIET)
    try:
        with _silent():
            ray.init(
                address="local",
                num_cpus=count + 1,
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except Exception as problem:
        raise ModelError(f"Ray could not be started here: {_short(problem)}") from problem
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _join(ray: Any, address: str) -> None:
    try:
        with _silent():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as problem:
        raise InputError(f"there is no Ray cluster at {address!r}: {_short(problem)}") from problem


def _check_answers(address: str) -> None:
    """Ray itself would try for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise InputError(
            f"{address!r} is no address of a Ray cluster: it is the host and the port of the head "
            "node, such as 10.0.0.1:6379, or auto for the cluster that this machine belongs to."
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), ANSWERS_WITHIN) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "1":
                _check_is_ray(connection)
    except (OSError, OverflowError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InputError(
            f"there is no Ray cluster at {address!r}: {why}. Start one with 'ray start --head', "
            "or leave the address out to use this machine."
        ) from problem


def _check_is_ray(connection: socket.socket) -> None:
    """A head node speaks HTTP/2 at once; whoever does not is somebody else."""
    connection.sendall(GREETING)
    answer = connection.recv(9)  # the head of a frame; its fourth byte is the kind
    if len(answer) < 4 or answer[3] != SETTINGS:
        raise ConnectionError("somebody else listens there")


@contextmanager
def _silent() -> Iterator[None]:
    """Without Ray's notes about itself; its errors are raised."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray sets handlers of signals for itself; those of the caller come back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            if handler is not None:
                signal.signal(number, handler)
