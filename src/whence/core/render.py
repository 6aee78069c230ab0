"""Results show themselves without importing the views: a view is found by its name, when wanted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

VIEWS = {
    "answer_text": "whence.views.answering",
    "answer_sentences": "whence.views.answering",
    "answer_cautions": "whence.views.answering",
    "attribution_text": "whence.views.terminal",
    "comparison_text": "whence.views.terminal",
    "attribution_page": "whence.views.html",
    "attribution_fragment": "whence.views.html",
    "comparison_page": "whence.views.html",
    "comparison_fragment": "whence.views.html",
    "many_text": "whence.views.many",
    "many_sentences": "whence.views.answering_of_many",
    "many_page": "whence.views.many_html",
    "many_fragment": "whence.views.many_html",
    "overview_page": "whence.views.overview",
    "overview_sentences": "whence.views.overview",
    "label_sentences": "whence.views.data_labels",
    "unknown_sentences": "whence.views.data_labels",
    "evaluation_sentences": "whence.views.evaluation",
    "evaluation_text": "whence.views.evaluation",
    "evaluation_latex": "whence.views.evaluation",
    "evaluation_parquet": "whence.views.evaluation",
    "evaluation_page": "whence.views.evaluation_page",
    "evaluation_fragment": "whence.views.evaluation_page",
    "context_text": "whence.views.context",
    "context_page": "whence.views.context_page",
    "context_fragment": "whence.views.context_page",
    "generation_text": "whence.views.generation",
    "generation_page": "whence.views.generation_page",
    "generation_fragment": "whence.views.generation_page",
    "audit_sentences": "whence.views.audit",
    "audit_text": "whence.views.audit",
    "audit_page": "whence.views.audit_page",
    "audit_figure": "whence.views.audit_figures",
    "card_sentences": "whence.views.card",
    "card_text": "whence.views.card",
    "card_markdown": "whence.views.card",
    "card_page": "whence.views.card_page",
    "card_fragment": "whence.views.card_page",
    "planted_sentences": "whence.views.planted",
    "planted_text": "whence.views.planted",
    "planted_latex": "whence.views.planted",
    "planted_markdown": "whence.views.planted",
    "planted_page": "whence.views.planted_html",
    "planted_fragment": "whence.views.planted_html",
    "dashboard_text": "whence.views.features",
    "dashboard_page": "whence.views.features_page",
    "receipt_text": "whence.views.receipt",
    "receipt_page": "whence.views.receipt_page",
    "maps_page": "whence.views.attention",
    "maps_fragment": "whence.views.attention",
    "heads_fragment": "whence.views.heads",
    "probe_page": "whence.views.probe",
    "probe_fragment": "whence.views.probe",
    "templates_page": "whence.views.templates",
    "templates_fragment": "whence.views.templates",
    "result_latex": "whence.views.latex",
    "many_latex": "whence.views.latex",
    "result_frame": "whence.views.tables",
    "result_csv": "whence.views.tables",
    "result_arrow": "whence.views.tables",
    "result_markdown": "whence.views.records",
    "records_csv": "whence.views.records",
    "records_latex": "whence.views.records",
    "records_markdown": "whence.views.records",
    "plot_attribution": "whence.views.figures",
    "plot_generation": "whence.views.figures",
    "plot_map": "whence.views.figures",
    "plot_heads": "whence.views.figures",
    "plot_distances": "whence.views.figures",
    "plot_evidence": "whence.views.evidence_figures",
    "plot_agreement": "whence.views.evidence_figures",
    "plot_roar": "whence.views.retraining",
    "notebook_text": "whence.notebook.page",
    "notebook_page": "whence.notebook.page",
    "notebook_fragment": "whence.notebook.page",
}


def render(view: str, result: Any) -> str:
    """What the named view makes of a result."""
    return draw(view, result)


def draw(view: str, result: Any, *arguments: Any, **options: Any) -> Any:
    """The same for a view that takes more than the result and gives no text, such as a figure."""
    return getattr(import_module(VIEWS[view]), view)(result, *arguments, **options)
