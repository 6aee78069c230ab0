"""The manifest of a run: what was asked, written before any work.

A run is continued only if it is asked for the same again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from whence.core.errors import InputError, LoadError
from whence.core.writing import json_text
from whence.runs.places import Place

NAME = "run.json"
SCHEMA = 1
# where the data lie may change; that they are the same is told by their digest
MAY_DIFFER = ("data.source", "data.notes")
# lists of names with settings, and where else the same names stand
LISTED = {"methods": ("asked.request.methods", "asked.request.wishes"), "metrics": ()}
MOST_SHOWN = 5  # differences, in the line of a refusal


@dataclass(frozen=True)
class Manifest:
    """What a run was asked for. All of it is plain values for JSON.

    ``work`` names the function that makes parts ("module:function"), and ``asked`` is what it is
    opened with; ``reader`` names the module that knows what its records mean. ``data`` tells the
    number of rows and their digest. Part n holds the ``part_size`` rows from n · part_size on.
    """

    work: str
    reader: str
    asked: Mapping[str, Any]
    data: Mapping[str, Any]
    part_size: int
    whence: str

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.data["rows"])

    @property
    def parts(self) -> int:
        """How many parts they make."""
        return -(-self.rows // self.part_size)

    def rows_of(self, part: int) -> range:
        """The rows of a part."""
        start = part * self.part_size
        return range(start, min(start + self.part_size, self.rows))

    def differences(self, other: Manifest) -> list[str]:
        """What another one asks for differently, one line each: where, here, there."""
        mine, theirs = dict(_leaves(asdict(self))), dict(_leaves(asdict(other)))
        lines, told = [], MAY_DIFFER
        for what, more in LISTED.items():
            here, there = _names(self.asked, what), _names(other.asked, what)
            if here != there:
                lines.append(f"asked.{what}: {here} in the run, {there} asked for now")
                told += (f"asked.{what}", *more)  # each setting of each would be a line
        for path in sorted(mine.keys() | theirs.keys()):
            if path.startswith(told):
                continue
            here, there = mine.get(path, "nothing"), theirs.get(path, "nothing")
            if here != there:
                lines.append(f"{path}: {_short(here)} in the run, {_short(there)} asked for now")
        return lines


def _names(asked: Mapping[str, Any], what: str) -> str:
    """The names in a list of what was asked, as one types them."""
    listed = asked.get(what) or ()
    return ", ".join(one["name"] if isinstance(one, Mapping) else str(one) for one in listed)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value with its path."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)) and value:
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{place}]")
    else:
        yield path, value


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def write_manifest(place: Place, manifest: Manifest) -> None:
    """Write what was asked."""
    stored = {"schema": SCHEMA, "kind": "run", **asdict(manifest)}
    place.put(NAME, json_text(stored, indent=1).encode())


def has_manifest(place: Place) -> bool:
    """Whether there is a run in this place."""
    return place.has(NAME)


def read_manifest(place: Place) -> Manifest:
    """What the run in this place was asked for."""
    if not has_manifest(place):
        raise LoadError(f"there is no run in {place.name!r}: it has no {NAME}.")
    try:
        stored = json.loads(place.get(NAME))
        if stored["kind"] != "run" or stored["schema"] > SCHEMA:
            raise ValueError(f"kind {stored['kind']!r}, schema {stored['schema']!r}")
        manifest = Manifest(**{entry.name: stored[entry.name] for entry in fields(Manifest)})
        is_right = manifest.part_size > 0 and manifest.rows >= 0
        if not is_right:
            raise ValueError(f"{manifest.rows} rows in parts of {manifest.part_size}")
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise LoadError(
            f"{place.name}/{NAME} is no manifest that this version of whence can read: "
            f"{type(problem).__name__}: {problem}."
        ) from problem
    return manifest


def check_same(place: Place, asked: Manifest) -> None:
    """Refuse to continue a run that was asked for something else."""
    differences = read_manifest(place).differences(asked)
    if differences:
        shown, more = differences[:MOST_SHOWN], len(differences) - MOST_SHOWN
        if more > 0:
            shown.append(f"and {more} more differences")
        raise InputError(
            f"the run in {place.name!r} was asked for something else. "
            f"{'; '.join(shown)}. "
            "Ask for the same, name another --out, or begin anew with --restart."
        )
