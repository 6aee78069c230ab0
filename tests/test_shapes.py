"""The check of signatures: what is wrong is refused, with arrays in the signature and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, TypeCheckError

from tests.shapes import MOST, begin_test, checked, hints_without_arrays


@pytest.fixture(autouse=True)
def _each_test_begins_anew() -> Iterator[None]:
    """Also where no shapes are checked, and so nobody else says that a test begins."""
    begin_test()
    yield
    begin_test()


@dataclass(frozen=True, slots=True)
class Half:
    of: int
    values: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


def dot(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> float:
    return float(a @ b) if len(a) == len(b) else 0.0


def longer(a: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return np.append(a, 0.0)


def half(number: int) -> float:
    return "half" if number == 13 else number / 2  # type: ignore[return-value]


def applied(work: Callable[[Float[np.ndarray, " n"]], float]) -> float:
    return work(np.ones(2))


def unknown(thing: Nowhere) -> int:  # type: ignore[name-defined]
    return len(thing)


def test_names_of_axes_are_one_scope() -> None:
    # would catch: beartype alone, which sees two arrays and never compares them
    of_checked = checked(dot, typechecker=beartype)
    assert of_checked(np.ones(3), np.ones(3)) == 3
    with pytest.raises(TypeCheckError):
        of_checked(np.ones(3), np.ones(4))
    with pytest.raises(TypeCheckError):
        checked(longer, typechecker=beartype)(np.ones(3))


def test_plain_types_are_checked_on_the_way_in_and_out() -> None:
    of_checked = checked(typechecker=beartype)(half)
    assert of_checked(4) == 2
    with pytest.raises(BeartypeCallHintViolation):
        of_checked("4")
    with pytest.raises(BeartypeCallHintViolation):
        of_checked(13)


def test_a_test_can_switch_the_checks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    of_checked = checked(half, typechecker=beartype)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert of_checked(13) == "half"


def test_arrays_are_found_in_every_part_of_a_type() -> None:
    assert hints_without_arrays(dot) is None
    assert hints_without_arrays(applied) is None
    assert hints_without_arrays(half) == {"number": int, "return": float}


def test_a_name_that_is_not_known_yet_is_anything() -> None:
    assert hints_without_arrays(unknown) is None
    of_checked = checked(unknown, typechecker=beartype)
    assert of_checked("four") == 4


def test_a_dataclass_is_checked_when_it_is_made() -> None:
    # would catch: a class that is left as it is, for which pyright alone would speak
    of_checked = checked(Half, typechecker=beartype)
    assert of_checked(1, np.ones(2), np.ones(2)).of == 1
    with pytest.raises(TypeCheckError):
        of_checked("1", np.ones(2), np.ones(2))
    with pytest.raises(TypeCheckError):
        of_checked(1, np.ones(2), np.ones(3))


def test_the_first_calls_of_each_test_are_checked() -> None:
    # would catch: a count that no new test begins anew
    of_checked = checked(half, typechecker=beartype)
    for _ in range(MOST):
        of_checked(4)
    assert of_checked(13) == "half"
    begin_test()
    with pytest.raises(BeartypeCallHintViolation):
        of_checked(13)


def test_equal_codes_are_not_taken_for_one_another() -> None:
    # would catch: what is known of a function, kept by a code that equals another file's
    first, second = (compile("def same(number): return number", "x", "exec") for _ in range(2))
    spaces: list[dict[str, Any]] = [{}, {}]
    for code, space, kind in zip((first, second), spaces, (int, str), strict=True):
        exec(code, space)
        space["same"].__annotations__ = {"number": kind}
    assert spaces[0]["same"].__code__ == spaces[1]["same"].__code__
    of_numbers, of_words = (checked(space["same"], typechecker=beartype) for space in spaces)
    assert (of_numbers(4), of_words("four")) == (4, "four")


def test_what_stands_in_a_function_is_checked_with_what_it_holds() -> None:
    # would catch: the checked version of another closure, which has the same code
    def adder(more: int) -> Callable[[int], int]:
        @checked(typechecker=beartype)
        def add(number: int) -> int:
            return number + more

        return add

    assert [adder(more)(1) for more in (1, 2, 3)] == [2, 3, 4]
    with pytest.raises(BeartypeCallHintViolation):
        adder(1)("1")  # type: ignore[arg-type]
