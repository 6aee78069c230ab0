"""whence theory: the single-layer model's explanations beside their formulas."""

from __future__ import annotations

from whence.cli import options as o
from whence.cli.running import emit_json, loaded, note, progress, show, writable
from whence.cli.texts import encode, naming, read_texts

EXAMPLE = 'Example: whence theory "a dull film with a few good jokes"'


def command(
    words: o.Words = None,
    model: o.ModelName = "single-layer",
    target: o.TargetLabel = None,
    against: o.Against = None,
    units: o.Units = "word",
    file: o.File = None,
    seed: o.Seed = 0,
    overflow: o.ShortOverflow = "error",
    dtype: o.Dtype = "float64",
    as_json: o.AsJson = False,
    html: o.Html = None,
    evidence: o.Evidence = None,
    every_row: o.EveryRow = False,
    debug: o.Debug = False,
) -> None:
    """Explain with the single-layer attention model, and put the closed forms beside the measured values.

    The model is that of "Attention meets post-hoc interpretability" (ICML 2024), whose gradients, LIME coefficients and Shapley values are
    formulas. Prints the text as every method of that paper's figure colours it, then formula and measurement of each word.
    """
    del debug
    from whence.core.target import Target
    from whence.notebook.page import notebook_view
    from whence.views.terminal import comparison_view

    writable(html)
    lines = read_texts(words or [], file)
    results = []
    with loaded(model, dtype) as loaded_model:
        from whence.explaining.closed_forms import closed_forms

        for line in lines:
            passage = encode(loaded_model, line, units=units, overflow=overflow)
            with naming(line), progress("theory") as say:
                found, book = closed_forms(
                    loaded_model,
                    passage,
                    target=Target(target, against),
                    seed=seed,
                    overflow=overflow,
                    evidence=evidence is not False,
                    progress=say,
                )
            if as_json:
                emit_json({"comparison": found.to_dict(), "closed_forms": book.to_dict()})
            else:
                show(lambda console, found=found: comparison_view(found, console, every_row))
                show(lambda console, book=book: notebook_view(book, console))
            results.append((found, book))
    if html is not None:
        from whence.core.render import write_text
        from whence.notebook.page import notebook_fragment
        from whence.views.html import page

        whole = page([found for found, _ in results])
        forms = "\n".join(notebook_fragment(book) for _, book in results)
        write_text(html, whole.replace("</main>", f"</main>\n{forms}"))
        note(f"report written to {html.resolve()}")
