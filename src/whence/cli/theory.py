"""whence theory: the single-layer model's explanations beside their formulas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whence.cli import options as o
from whence.cli.reports import BadLines
from whence.cli.running import emit_json, loaded, note, progress, show, writable
from whence.cli.texts import encode, label_of, naming, read_texts

if TYPE_CHECKING:
    from whence.core.comparison import Comparison
    from whence.notebook.book import Notebook

EXAMPLE = 'Example: whence theory "a dull film with a few good jokes"'


def command(
    words: o.Words = None,
    model: o.ModelName = "single-layer",
    target: o.TargetLabel = None,
    against: o.Against = None,
    units: o.Units = "word",
    file: o.File = None,
    text: o.TextOfFile = None,
    seed: o.Seed = 0,
    overflow: o.ShortOverflow = "error",
    dtype: o.Dtype = "float64",
    as_json: o.AsJson = False,
    html: o.Html = None,
    evidence: o.Evidence = True,
    full: o.Full = False,
    every_row: o.EveryRow = False,
    debug: o.Debug = False,
) -> None:
    """Explain by a model of one attention layer, where formulas give the exact scores.

    The model is that of "Attention meets post-hoc interpretability" (ICML 2024). Prints the text as
    each method colours it, then, for each word, what the formula says (gradients, LIME, Shapley
    values) beside what was measured.
    """
    del debug
    from whence.core.target import Target

    writable(html)
    lines = read_texts(words or [], file, text)
    comparisons: list[Comparison] = []
    books: list[Notebook] = []
    bad = BadLines(len(lines), as_json)
    try:
        with loaded(model, dtype) as loaded_model:
            from whence.explaining.closed_forms import closed_forms

            for i, line in enumerate(lines):
                with bad.without(line):
                    passage = encode(loaded_model, line, units=units, overflow=overflow)
                    label = label_of("theory", i, len(lines))
                    with naming(line), progress(label, is_first=i == 0) as say:
                        comparison, book = closed_forms(
                            loaded_model,
                            passage,
                            target=Target(target, against),
                            seed=seed,
                            overflow=overflow,
                            evidence=evidence,
                            progress=say,
                        )
                    comparisons.append(comparison)
                    books.append(book)
                    bad.done += 1
                    if as_json:
                        emit_json(
                            {"comparison": comparison.to_dict(), "closed_forms": book.to_dict()}
                        )
                    else:
                        _show(comparison, book, every_row, full)
    finally:  # Ctrl-C keeps the page of what is done
        if html is not None and comparisons:
            _write(comparisons, books, html)
    bad.end()


def _show(comparison: Comparison, book: Notebook, every_row: bool, full: bool) -> None:
    from whence.notebook.page import notebook_view
    from whence.views.terminal import comparison_view

    show(lambda console: comparison_view(comparison, console, every_row, full))
    show(lambda console: notebook_view(book, console))


def _write(comparisons: list[Comparison], books: list[Notebook], html: Path) -> None:
    """One page: the comparisons, then the closed forms.

    Said where a page was asked for.

    ``report written to page.html``
    """
    from whence.core.writing import write_text
    from whence.notebook.page import notebook_fragment
    from whence.views.html import page
    from whence.views.markup import element

    forms = element("div", "\n".join(map(notebook_fragment, books)), class_="lab-below")
    content = page(comparisons).replace("</main>", f"</main>\n{forms}")
    write_text(html, content)
    note(f"report written to {html.resolve()}")
