"""How a run is carried out: who does its parts, and what becomes of what went wrong.

None of it changes a result, so none of it is in the manifest: a run that was begun in one way may
be continued in another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from whence.core.errors import InputError, unknown_name

Engine = Literal["inline", "processes", "ray"]


@dataclass(frozen=True)
class Manner:
    """Who does the parts of a run, and how strictly.

    ``engine`` is inline (this process), processes (several of this machine) or ray (a cluster);
    None takes inline for one worker, and processes for more. ``workers`` is how many work side by
    side; None leaves it to the engine. ``address`` is that of a Ray cluster; without one, Ray is
    started on this machine. ``again`` drops what was done; ``mend`` does damaged parts again;
    ``fail_fast`` ends the run at the first row without a result.

    >>> Manner(workers=2).engine
    'processes'
    """

    engine: str | None = None  # one of Engine
    workers: int | None = None
    address: str | None = None
    again: bool = False
    mend: bool = False
    fail_fast: bool = False

    def __post_init__(self) -> None:
        workers = self.workers
        if workers is not None and workers < 1:
            raise InputError(f"a run needs at least one worker, not {workers}.")
        if self.engine is None:
            chosen: Engine = "inline" if workers in (None, 1) else "processes"
            object.__setattr__(self, "engine", chosen)
        if self.engine not in get_args(Engine):
            raise unknown_name("engine", str(self.engine), get_args(Engine))
        if self.engine == "inline" and workers not in (None, 1):
            raise InputError(
                f"the engine inline is this process alone, and {workers} workers were asked for: "
                "take the engine processes or ray, or name none."
            )
        if self.address is not None and self.engine != "ray":
            raise InputError(
                f"the address {self.address!r} is that of a Ray cluster, and the engine is "
                f"{self.engine}: ask for the engine ray too."
            )

    @property
    def is_inline(self) -> bool:
        """Whether this process does the work itself, with what it has opened already."""
        return self.engine == "inline"
