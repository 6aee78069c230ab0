"""whence: explains what a transformer did, and tests whether the explanation can be trusted.

Everything public is in this file; it is imported when first used, so that ``import whence`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "load": "whence.models.load",
    "explain": "whence.explaining.workflow",
    "compare": "whence.explaining.workflow",
    "closed_forms": "whence.explaining.closed_forms",
    "judge": "whence.explaining.workflow",
    "game": "whence.games.game",
    "attend": "whence.explaining.attend",
    "probe": "whence.explaining.attend",
    "arbitrate": "whence.explaining.arbitrate",
    "lab": "whence.labs.running",
    "list_methods": "whence.explaining.listing",
    "read": "whence.core.comparison",
    "Attribution": "whence.core.attribution",
    "Game": "whence.games.game",
    "InputError": "whence.core.errors",
    "Model": "whence.models.model",
    "Passage": "whence.core.passage",
    "Regions": "whence.core.passage",
    "SettingsError": "whence.core.errors",
    "Target": "whence.core.target",
    "Unsupported": "whence.core.errors",
    "WhenceError": "whence.core.errors",
}
# packages with public functions of their own: from whence import theory
_PACKAGES = ("generation", "notebook", "theory")
__all__ = [
    "Attribution",
    "Game",
    "InputError",
    "Model",
    "Passage",
    "Regions",
    "SettingsError",
    "Target",
    "Unsupported",
    "WhenceError",
    "arbitrate",
    "attend",
    "closed_forms",
    "compare",
    "explain",
    "game",
    "judge",
    "lab",
    "list_methods",
    "load",
    "probe",
    "read",
]

if TYPE_CHECKING:
    from whence.core.attribution import Attribution
    from whence.core.comparison import read
    from whence.core.errors import InputError, SettingsError, Unsupported, WhenceError
    from whence.core.passage import Passage, Regions
    from whence.core.target import Target
    from whence.explaining.arbitrate import arbitrate
    from whence.explaining.attend import attend, probe
    from whence.explaining.closed_forms import closed_forms
    from whence.explaining.listing import list_methods
    from whence.explaining.workflow import compare, explain, judge
    from whence.games.game import Game, game
    from whence.labs.running import lab
    from whence.models.load import load
    from whence.models.model import Model


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"whence.{name}")
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'whence' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return ["__version__", *__all__]
