"""The tables of methods and of metrics, made when the documentation is built: mkdocs calls this.

A page says where its table goes by a comment: ``<!-- table of methods -->``. What stands in a row
is what the method declares, and the first sentence of the section "Cost" of its page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent
sys.path.insert(0, str(DOCS.parent / "src"))

from whence.core.registry import GRADIENTS, MethodInfo, MetricInfo, Needs  # noqa: E402
from whence.core.registry import methods as all_methods  # noqa: E402
from whence.core.registry import metrics as all_metrics  # noqa: E402

LOOKS_AT = {
    Needs.ATTENTION: "attention maps",
    Needs.ATTENTION_GRADIENTS: "attention maps and their gradients",
    Needs.EMBEDDINGS: "embeddings",
    Needs.EMBEDDING_GRADIENTS: "gradients of the embeddings",
    Needs.HIDDEN_STATES: "hidden states",
    Needs.RERUNS: "runs at other embeddings",
    Needs.HEAD_MEANS: "attention, the mean over heads",
    Needs.ATTENTION_GRAPH: "a run by rules of relevance",
    Needs.VALUE_WEIGHTED: "attention and value vectors",
    Needs.GAME: "removals",
}
KNOWS_THE_TARGET = GRADIENTS | Needs.RERUNS | Needs.ATTENTION_GRAPH | Needs.GAME
SENTENCE = re.compile(r"(.+?\.)(?:\s|$)", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put each table in the place of its comment."""
    for name, make in {"methods": table_of_methods, "metrics": table_of_metrics}.items():
        comment = f"<!-- table of {name} -->"
        if comment in markdown:
            markdown = markdown.replace(comment, make())
    return markdown


def table_of_methods() -> str:
    """Every method: what it looks at, whether scores have a sign, and what it costs."""
    rows = [_method_row(info) for info in all_methods().values()]
    return _table(("method", "looks at", "signed", "knows the target", "only for", "cost"), rows)


def table_of_metrics() -> str:
    """Every metric: its line, which values are good, and what chance gets."""
    rows = [_metric_row(info) for info in all_metrics().values()]
    return _table(("metric", "what it is", "better", "range", "chance"), rows)


def _method_row(info: MethodInfo) -> tuple[str, ...]:
    looks_at = [words for need, words in LOOKS_AT.items() if need in info.needs]
    knows = "yes" if info.needs & KNOWS_THE_TARGET else "no"
    return (
        f"[{info.name}]({info.name}.md)",
        ", ".join(looks_at) or "nothing",
        _signed(info),
        knows,
        info.only_for,
        _first_sentence(DOCS / "methods" / f"{info.name}.md", "Cost"),
    )


def _signed(info: MethodInfo) -> str:
    if isinstance(vars(info.settings).get("signed"), property):
        return "by its settings"
    return "yes" if info.settings().signed else "no"


def _metric_row(info: MetricInfo) -> tuple[str, ...]:
    example = info.settings()
    low, high = example.range
    return (
        f"[{info.name}]({info.name}.md)",
        info.summary,
        example.better,
        f"{low:g} to {high:g}",
        f"{example.chance:g}",
    )


def _first_sentence(page: Path, section: str) -> str:
    text = page.read_text(encoding="utf-8").split(f"## {section}\n", 1)[1]
    sentence = SENTENCE.match(text.strip())
    assert sentence is not None, f"{page} has nothing under {section}"
    return " ".join(sentence.group(1).split()).replace("|", "\\|")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
