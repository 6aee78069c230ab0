"""Settings from loose values: keywords of a call, strings of a command line, a stored result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from math import isfinite
from typing import Any, get_args, get_type_hints

from whence.core.errors import AuthorError, SettingsError, unknown_name
from whence.core.registry.info import Info

NOT_FINITE = ("nan", "inf", "-inf")
LARGEST_SEED = 2**63


def settings_of(info: Info, given: Mapping[str, Any], seed: int | None = None) -> Any:
    """An instance of the settings from loose values, or an error that names the fault.

    Values may be the strings of a command line. ``seed`` fills a setting of that name, unless
    it is given as well.
    """
    for value in (seed, given.get("seed")):
        if isinstance(value, int) and not 0 <= value < LARGEST_SEED:
            raise SettingsError(f"a seed is a whole number from 0 to 2**63 - 1, not {value}.")

    values = dict(given)
    if seed is not None and any(field.name == "seed" for field in fields(info.settings)):
        values.setdefault("seed", seed)
    return checked_settings(f"{info.kind} {info.name!r}", info.settings, values)


def checked_settings(owner: str, settings: type, given: Mapping[str, Any]) -> Any:
    """An instance of any dataclass of settings, from loose values; ``owner`` is named in errors."""
    _refuse_unknown(owner, [field.name for field in fields(settings)], given)
    for key, value in given.items():
        if _is_not_finite(value):
            raise SettingsError(
                f"{owner}, setting {key!r}: a finite number is needed, not {value!r}."
            )
    hints = get_type_hints(settings)
    values = {key: _read_none(value, hints[key]) for key, value in given.items()}
    return _validator(settings)(owner, values)


def own_budget(
    info: Info, budget: str | int | None, settings: Mapping[str, Any]
) -> tuple[str | int | None, dict[str, Any]]:
    """The budget of the run, and the settings of the method.

    A plain number goes to a method that has a setting of that name: its masks, not all passes.
    """
    settings = dict(settings)
    names = [setting.name for setting in fields(info.settings)]
    is_a_number = str(budget).strip().isdecimal()
    if is_a_number and "budget" in names:
        return None, settings | {"budget": budget}
    return budget, settings


def settings_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain values, for a result to carry."""
    return asdict(settings)


def _refuse_unknown(owner: str, names: Sequence[str], given: Mapping[str, Any]) -> None:
    for key in given:
        if key in names:
            continue
        if not names:
            raise SettingsError(f"{owner}: it has no settings, so {key!r} means nothing.")
        raise SettingsError(f"{owner}: {unknown_name('setting', key, names)}")


def _is_not_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not isfinite(value)
    return str(value).lower() in NOT_FINITE


def _read_none(value: Any, hint: Any) -> Any:
    """The word "none" of a command line, where the setting may be None."""
    if value in ("none", "None") and type(None) in get_args(hint):
        return None
    return value


@cache
def _validator(settings: type) -> Callable[[str, dict[str, Any]], Any]:
    """A function that makes settings from values of any kind, with pydantic's checks."""
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter = TypeAdapter(settings)
    except PydanticUserError as problem:
        reason = str(problem).splitlines()[0]
        raise AuthorError(
            f"class {settings.__qualname__}: a setting has a type that no text can be read as. "
            f"Take int, float, str, bool, None or a Literal ({reason})"
        ) from None

    def validated(owner: str, values: dict[str, Any]) -> Any:
        try:
            return adapter.validate_python(values)
        except ValidationError as problem:
            raise _settings_error(owner, problem.errors()[0]) from None

    return validated


def _settings_error(owner: str, fault: Mapping[str, Any]) -> SettingsError:
    message = fault["msg"]
    if not fault["loc"]:  # the settings' own check of how they go together
        reason = message.removeprefix("Value error, ").removesuffix(".")
        return SettingsError(f"{owner}: {reason}.")
    setting = str(fault["loc"][0])
    return SettingsError(f"{owner}, setting {setting!r}: {message}, not {fault['input']!r}.")
