"""whence: explains what a transformer did, and tests whether the explanation can be trusted.

Everything public is in this file; it is imported when first used, so that ``import whence`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "load": "whence.models.load",
    "explain": "whence.explaining.explain",
    "compare": "whence.explaining.explain",
    "closed_forms": "whence.explaining.closed_forms",
    "judge": "whence.explaining.judge",
    "game": "whence.games.game",
    "attend": "whence.explaining.attend",
    "probe": "whence.explaining.attend",
    "arbitrate": "whence.explaining.arbitrate",
    "lab": "whence.labs.running",
    "list_methods": "whence.explaining.listing",
    "read": "whence.core.comparison",
    "Agreement": "whence.core.agreement",
    "AttentionMaps": "whence.core.maps",
    "Attribution": "whence.core.attribution",
    "Attributions": "whence.core.attributions",
    "Comparison": "whence.core.comparison",
    "Cost": "whence.core.attribution",
    "Error": "whence.core.attribution",
    "Evidence": "whence.core.evidence",
    "Game": "whence.games.game",
    "HeadTable": "whence.core.heads",
    "Model": "whence.models.model",
    "Prediction": "whence.models.labels",
    "Probe": "whence.core.probe",
    "Provenance": "whence.core.provenance",
    "Request": "whence.core.request",
    "Scores": "whence.core.scores",
    "Trace": "whence.trace.trace",
    "Trial": "whence.core.evidence",
    "Units": "whence.core.units",
    "Verdict": "whence.core.evidence",
    "Passage": "whence.core.passage",
    "Regions": "whence.core.passage",
    "Target": "whence.core.target",
    "WhenceError": "whence.core.errors",
}
__all__ = [
    "Attribution",
    "Passage",
    "Regions",
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
    "load",
    "probe",
    "read",
]

if TYPE_CHECKING:
    from whence.core.attribution import Attribution
    from whence.core.comparison import read
    from whence.core.errors import WhenceError
    from whence.core.passage import Passage, Regions
    from whence.core.target import Target
    from whence.explaining.arbitrate import arbitrate
    from whence.explaining.attend import attend, probe
    from whence.explaining.closed_forms import closed_forms
    from whence.explaining.judge import judge
    from whence.explaining.listing import list_methods
    from whence.explaining.explain import compare, explain
    from whence.games.game import game
    from whence.labs.running import lab
    from whence.models.load import load


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'whence' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return ["__version__", *__all__]
