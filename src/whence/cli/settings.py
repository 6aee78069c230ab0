"""A method's settings as flags: the fields of its dataclass, whatever they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_type_hints

from whence.core.errors import SettingsError

if TYPE_CHECKING:
    from whence.core.registry import MethodInfo

# a text may begin with dashes; a flag has no space in its name
FLAG = re.compile(r"--([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


def split_flags(
    words: Sequence[str], info: MethodInfo, options: Callable[[], Sequence[str]]
) -> tuple[list[str], dict[str, Any]]:
    """What typer did not know, as texts and as the method's settings.

    ``options`` gives the command's own flags, for the hint at a mistyped one.
    """
    hints = get_type_hints(info.settings)
    known = {f.name.replace("_", "-"): f.name for f in fields(info.settings)}
    texts: list[str] = []
    settings: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        match = FLAG.fullmatch(word)
        if match is None:
            texts.append(word)
            continue
        name, value = match.group(1).replace("_", "-"), match.group(2)
        if name in known:
            if value is None:
                is_switch = hints[known[name]] is bool
                value = "true" if is_switch else next(rest, None)
            if value is None:
                raise SettingsError(f"--{name} needs a value.")
            settings[known[name]] = value
            continue

        # --no-… turns a setting off that is on or off
        positive = name.removeprefix("no-")
        can_be_off = positive in known and hints[known[positive]] is bool
        if not can_be_off or value is not None:
            raise _unknown(name, info, known, options())
        settings[known[positive]] = "false"
    return texts, settings


def _unknown(
    name: str, info: MethodInfo, known: Iterable[str], options: Iterable[str]
) -> SettingsError:
    flags = [f"--{k}" for k in known]
    close = get_close_matches(f"--{name}", [*flags, *options], n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    has = f"has the settings {', '.join(flags)}" if flags else "has no settings"
    return SettingsError(f"no flag --{name}.{hint} The method {info.name!r} {has}.")


def assigned(given: Sequence[str]) -> dict[str, dict[str, str]]:
    """``method.setting=value``, several times, as settings by the method's proper name."""
    from whence.core.registry import find_method

    by_method: dict[str, dict[str, str]] = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        method, dot, setting = name.partition(".")
        if not equals or not dot:
            raise SettingsError(
                "--set takes METHOD.SETTING=VALUE, e.g. integrated-gradients.baseline=mask, "
                f"not {assignment!r}."
            )
        settings = by_method.setdefault(find_method(method).name, {})
        settings[setting.replace("-", "_")] = value
    return by_method
