"""whence: explains what a transformer did, and tests whether the explanation can be trusted.

>>> import whence
>>> model = whence.load("sentiment")  # or a folder, a name on the hub, a model of your own
>>> c = whence.compare(model, "not a single dull moment", ["occlusion", "lime", "random"])
>>> [word for word, score in c["occlusion"].top(2)]
['not', 'dull']
>>> c["occlusion"].evidence.verdict.value
'better than random'

``print(c.answer)`` says it in words, ``print(c)`` adds the text and the verdicts, and
``c.to_html("report.html")`` writes a page.

The verbs: ``explain`` and ``compare`` a text; ``generate`` and ``context`` for what a model writes;
``attend`` and ``probe`` for its attention; ``run``, ``evaluate`` and ``audit`` for a data set.
``list_methods()`` and ``list_metrics()`` say what there is, ``read`` loads what was saved.
"""

# Everything public is in this file. It is imported when first used, so that ``import whence`` costs
# next to nothing.

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_VERBS = {
    "adversarial_model": "whence.retraining.adversarial",
    "arbitrate": "whence.explaining.arbitrate",
    "attend": "whence.explaining.attend",
    "attention_diagnostic": "whence.retraining.diagnostic",
    "audit": "whence.explaining.audit",
    "card": "whence.explaining.card",
    "closed_forms": "whence.explaining.closed_forms",
    "compare": "whence.explaining.explain",
    "context": "whence.explaining.context",
    "evaluate": "whence.explaining.evaluate",
    "explain": "whence.explaining.explain",
    "forecast": "whence.explaining.planning",
    "frozen_attention": "whence.retraining.frozen",
    "game": "whence.explaining.game",
    "generate": "whence.explaining.generate",
    "judge": "whence.explaining.judge",
    "lab": "whence.labs.running",
    "list_methods": "whence.explaining.listing",
    "list_metrics": "whence.explaining.listing",
    "load": "whence.models.load",
    "measure": "whence.metrics.measurement",
    "method": "whence.core.registry",
    "metric": "whence.core.registry",
    "planted": "whence.explaining.planted",
    "probe": "whence.explaining.probe",
    "probe_templates": "whence.explaining.probe",
    "open_run": "whence.runs.run",
    "read": "whence.core.reading",
    "removal_gauge": "whence.explaining.gauge",
    "roar": "whence.retraining.roar",
    "run": "whence.explaining.data_set",
    "setting": "whence.core.registry",
    "train_small": "whence.retraining.small",
    "tuned_for_removal": "whence.retraining.tuning",
}
_TYPES = {
    "Adversarial": "whence.retraining.adversarial",
    "Agreement": "whence.core.agreement",
    "AttentionMaps": "whence.core.maps",
    "Attribution": "whence.core.attribution",
    "Attributions": "whence.core.attributions",
    "Audit": "whence.core.audited",
    "Card": "whence.core.card",
    "Comparison": "whence.core.comparison",
    "ContextUse": "whence.core.contextual",
    "Cost": "whence.core.attribution",
    "Diagnostic": "whence.retraining.diagnostic",
    "Error": "whence.core.attribution",
    "Evaluation": "whence.core.evaluation",
    "Evidence": "whence.core.evidence",
    "Forecast": "whence.explaining.forecast",
    "Frozen": "whence.retraining.frozen",
    "Game": "whence.games.game",
    "Gauge": "whence.core.gauge",
    "Generation": "whence.core.generation",
    "HeadTable": "whence.core.heads",
    "Many": "whence.core.many",
    "Measurement": "whence.core.measurement",
    "Model": "whence.models.model",
    "Needs": "whence.core.registry",
    "Passage": "whence.core.passage",
    "Passes": "whence.core.registry",
    "Plan": "whence.core.plan",
    "PlantedTruth": "whence.core.planted",
    "Prediction": "whence.models.labels",
    "Probe": "whence.core.probe",
    "TemplateProbe": "whence.core.probe",
    "Provenance": "whence.core.provenance",
    "Regions": "whence.core.passage",
    "Request": "whence.core.request",
    "Roar": "whence.core.roar",
    "Run": "whence.runs.run",
    "Scores": "whence.core.scores",
    "Tally": "whence.core.many",
    "Target": "whence.core.target",
    "Trace": "whence.trace.trace",
    "Training": "whence.retraining.training",
    "Trial": "whence.core.evidence",
    "Tuned": "whence.retraining.tuning",
    "Units": "whence.core.units",
    "Verdict": "whence.core.evidence",
}
_ERRORS = {
    "AuthorError": "whence.core.errors",
    "InputError": "whence.core.errors",
    "SettingsError": "whence.core.errors",
    "TargetError": "whence.core.errors",
    "Unsupported": "whence.core.errors",
    "WhenceError": "whence.core.errors",
}
_HOME_OF = {**_VERBS, **_TYPES, **_ERRORS}

# packages with public functions of their own: from whence import theory
_PACKAGES = ("features", "generation", "notebook", "theory")

__all__ = [
    "Adversarial",
    "Agreement",
    "AttentionMaps",
    "Attribution",
    "Attributions",
    "Audit",
    "AuthorError",
    "Card",
    "Comparison",
    "ContextUse",
    "Cost",
    "Diagnostic",
    "Error",
    "Evaluation",
    "Evidence",
    "Forecast",
    "Frozen",
    "Game",
    "Gauge",
    "Generation",
    "HeadTable",
    "InputError",
    "Many",
    "Measurement",
    "Model",
    "Needs",
    "Passage",
    "Passes",
    "Plan",
    "PlantedTruth",
    "Prediction",
    "Probe",
    "Provenance",
    "Regions",
    "Request",
    "Roar",
    "Run",
    "Scores",
    "SettingsError",
    "Tally",
    "Target",
    "TargetError",
    "TemplateProbe",
    "Trace",
    "Training",
    "Trial",
    "Tuned",
    "Units",
    "Unsupported",
    "Verdict",
    "WhenceError",
    "adversarial_model",
    "arbitrate",
    "attend",
    "attention_diagnostic",
    "audit",
    "card",
    "closed_forms",
    "compare",
    "context",
    "evaluate",
    "explain",
    "forecast",
    "frozen_attention",
    "game",
    "generate",
    "judge",
    "lab",
    "list_methods",
    "list_metrics",
    "load",
    "measure",
    "method",
    "metric",
    "open_run",
    "planted",
    "probe",
    "probe_templates",
    "read",
    "removal_gauge",
    "roar",
    "run",
    "setting",
    "train_small",
    "tuned_for_removal",
]

if TYPE_CHECKING:
    from whence.core.agreement import Agreement
    from whence.core.attribution import Attribution, Cost, Error
    from whence.core.attributions import Attributions
    from whence.core.audited import Audit
    from whence.core.card import Card
    from whence.core.comparison import Comparison
    from whence.core.contextual import ContextUse
    from whence.core.errors import (
        AuthorError,
        InputError,
        SettingsError,
        TargetError,
        Unsupported,
        WhenceError,
    )
    from whence.core.evaluation import Evaluation
    from whence.core.evidence import Evidence, Trial, Verdict
    from whence.core.gauge import Gauge
    from whence.core.generation import Generation
    from whence.core.heads import HeadTable
    from whence.core.many import Many, Tally
    from whence.core.maps import AttentionMaps
    from whence.core.measurement import Measurement
    from whence.core.passage import Passage, Regions
    from whence.core.plan import Plan
    from whence.core.planted import PlantedTruth
    from whence.core.probe import Probe, TemplateProbe
    from whence.core.provenance import Provenance
    from whence.core.reading import read
    from whence.core.registry import Needs, Passes, method, metric, setting
    from whence.core.request import Request
    from whence.core.roar import Roar
    from whence.core.scores import Scores
    from whence.core.target import Target
    from whence.core.units import Units
    from whence.explaining.arbitrate import arbitrate
    from whence.explaining.attend import attend
    from whence.explaining.audit import audit
    from whence.explaining.card import card
    from whence.explaining.closed_forms import closed_forms
    from whence.explaining.context import context
    from whence.explaining.data_set import run
    from whence.explaining.evaluate import evaluate
    from whence.explaining.explain import compare, explain
    from whence.explaining.forecast import Forecast
    from whence.explaining.game import game
    from whence.explaining.gauge import removal_gauge
    from whence.explaining.generate import generate
    from whence.explaining.judge import judge
    from whence.explaining.listing import list_methods, list_metrics
    from whence.explaining.planning import forecast
    from whence.explaining.planted import planted
    from whence.explaining.probe import probe, probe_templates
    from whence.games.game import Game
    from whence.labs.running import lab
    from whence.metrics.measurement import measure
    from whence.models.labels import Prediction
    from whence.models.load import load
    from whence.models.model import Model
    from whence.retraining.adversarial import Adversarial, adversarial_model
    from whence.retraining.diagnostic import Diagnostic, attention_diagnostic
    from whence.retraining.frozen import Frozen, frozen_attention
    from whence.retraining.roar import roar
    from whence.retraining.small import train_small
    from whence.retraining.training import Training
    from whence.retraining.tuning import Tuned, tuned_for_removal
    from whence.runs.run import Run, open_run
    from whence.trace.trace import Trace


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"whence.{name}")
    if name not in _HOME_OF:
        raise AttributeError(
            f"module 'whence' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return ["__version__", *__all__]
