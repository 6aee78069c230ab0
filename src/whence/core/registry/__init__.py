"""Methods and metrics by name, what they declare, and what they return.

A method or a metric is a frozen dataclass of settings that can be called. ``@method`` and
``@metric`` check that it is well made and register it; whatever lies in ``whence.methods`` or
``whence.metrics`` is found by itself.
"""

from whence.core.registry.answers import as_scores, as_unit_scores, as_values
from whence.core.registry.catalogue import (
    METHODS,
    METRICS,
    find_method,
    find_metric,
    method,
    methods,
    metric,
    metrics,
)
from whence.core.registry.fields import SEED, sentence_of, setting
from whence.core.registry.info import Better, MethodInfo, MetricInfo
from whence.core.registry.needs import (
    ANY_ATTENTION,
    GRADIENTS,
    GROUPS,
    METRIC_GROUPS,
    OF_METRICS,
    WHOLE_MAPS,
    Needs,
)
from whence.core.registry.passes import Passes
from whence.core.registry.settings import (
    checked_settings,
    own_budget,
    settings_dict,
    settings_of,
)

__all__ = [
    "ANY_ATTENTION",
    "GRADIENTS",
    "GROUPS",
    "METHODS",
    "METRICS",
    "METRIC_GROUPS",
    "OF_METRICS",
    "SEED",
    "WHOLE_MAPS",
    "Better",
    "MethodInfo",
    "MetricInfo",
    "Needs",
    "Passes",
    "as_scores",
    "as_unit_scores",
    "as_values",
    "checked_settings",
    "find_method",
    "find_metric",
    "method",
    "methods",
    "metric",
    "metrics",
    "own_budget",
    "sentence_of",
    "setting",
    "settings_dict",
    "settings_of",
]
