from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import whence
from whence.core.once import once


@dataclass(frozen=True)
class Thing:
    number: int

    @once
    def double(self) -> int:
        """Twice the number."""
        return 2 * self.number


def test_it_is_computed_once_for_each_object() -> None:
    calls: list[int] = []

    class Counted:
        @once
        def value(self) -> int:
            calls.append(1)
            return 5

    some, other = Counted(), Counted()
    assert (some.value, some.value, other.value) == (5, 5, 5)
    assert len(calls) == 2


def test_it_is_no_part_of_what_a_frozen_dataclass_compares_and_shows() -> None:
    seen, fresh = Thing(3), Thing(3)
    assert seen.double == 6
    assert seen == fresh
    assert repr(seen) == repr(fresh)
    assert Thing.double.__doc__ == "Twice the number."


def test_one_object_does_not_wait_for_another() -> None:
    # would catch: functools.cached_property of Python 3.11, whose lock is the class's
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @once
        def value(self) -> bool:
            if self.waits:
                begun.set()
                may_end.wait(60)
            return True

    thread = threading.Thread(target=lambda: Slow(True).value)
    thread.start()
    begun.wait(60)
    done: list[bool] = []
    other = threading.Thread(target=lambda: done.append(Slow(False).value), daemon=True)
    other.start()
    other.join(20)
    may_end.set()
    thread.join()
    assert done == [True]


def test_whence_has_no_property_that_locks() -> None:
    # what a fork in the wrong moment would leave locked for ever
    users = []
    for file in Path(whence.__file__).parent.rglob("*.py"):
        code = file.read_text()
        if "import cached_property" in code or "functools.cached_property(" in code:
            users.append(file.name)
    assert users == []
