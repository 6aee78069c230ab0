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
    "list_metrics": "whence.explaining.listing",
    "measure": "whence.metrics.measurement",
    "method": "whence.core.registry",
    "metric": "whence.core.registry",
    "Needs": "whence.core.registry",
    "Scores": "whence.core.scores",
    "Measurement": "whence.core.measurement",
    "AuthorError": "whence.core.errors",
    "read": "whence.core.comparison",
    "Attribution": "whence.core.attribution",
    "Passage": "whence.core.passage",
    "Regions": "whence.core.passage",
    "Target": "whence.core.target",
    "WhenceError": "whence.core.errors",
}
__all__ = [
    "Attribution",
    "AuthorError",
    "Measurement",
    "Needs",
    "Passage",
    "Regions",
    "Scores",
    "Target",
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
    "list_metrics",
    "load",
    "measure",
    "method",
    "metric",
    "probe",
    "read",
]

if TYPE_CHECKING:
    from whence.core.attribution import Attribution
    from whence.core.comparison import read
    from whence.core.errors import AuthorError, WhenceError
    from whence.core.measurement import Measurement
    from whence.core.passage import Passage, Regions
    from whence.core.registry import Needs, method, metric
    from whence.core.scores import Scores
    from whence.core.target import Target
    from whence.explaining.arbitrate import arbitrate
    from whence.explaining.attend import attend, probe
    from whence.explaining.closed_forms import closed_forms
    from whence.explaining.listing import list_methods, list_metrics
    from whence.explaining.workflow import compare, explain, judge
    from whence.games.game import game
    from whence.labs.running import lab
    from whence.metrics.measurement import measure
    from whence.models.load import load


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'whence' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return ["__version__", *__all__]
