"""The check of signatures: what is wrong is refused, with arrays in the signature and without."""

from __future__ import annotations

from collections.abc import Callable

import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, TypeCheckError

from tests.shapes import checked, hints_without_arrays


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
