"""The single-layer model's explanations beside their formulas: the rows of the paper's figure, and how far each formula is off."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.core.target import Target
from whence.explaining.job import Progress
from whence.explaining.explain import compare
from whence.models.model import Model, Overflow
from whence.notebook.book import Notebook
from whence.theory.exact import exact_lime, exact_shapley
from whence.theory.gradients import gradient, importances
from whence.theory.heads import Heads, heads_of, ratio_of, single_layer_of
from whence.theory.limits import first_order, mean_field, talk

# the rows of the figure, by the paper's names: α-avg, α-max, G-avg, G-L1, G-L2, G×I, LIME; then what the formulas add
METHODS: dict[str, dict[str, Any]] = {
    "attention-mean": {},
    "attention-max": {},
    "gradient-mean": {},
    "gradient-l1": {},
    "gradient-l2": {},
    "gradient-x-input": {},
    "lime": {"removal": "mask"},
    "lime-exact": {},
    "shapley-exact": {},
}
FAR = 4.0  # standard errors: of a hundred words one is seldom further off by chance
DIGITS = {
    torch.float64: 1e-12,
    torch.float32: 1e-4,
}  # of the model's own sums, beside the largest entry
NOTHING = 1e-9  # a text of unknown words alone has coefficients of rounding


def closed_forms(
    model: Any,
    text: str | Passage,
    *,
    target: Target | str | int | None = None,
    seed: int = 0,
    overflow: Overflow = "error",
    evidence: bool = True,
    progress: Progress | None = None,
) -> tuple[Comparison, Notebook]:
    """Explain a text by every method of the paper's figure, and put the closed forms beside the measured values.

    >>> import whence
    >>> comparison, forms = whence.closed_forms(whence.load("single-layer"), "a fine film", evidence=False)
    >>> [t.name for t in forms.tables], forms.holds
    (['theory-gradients', 'theory-lime'], True)
    """
    if not isinstance(model, Model):
        raise InputError(
            f"the first argument is a loaded model, not a {type(model).__name__}: whence.load({model!r:.40}) gives one."
        )
    single_layer_of(model)
    if model.dtype not in DIGITS:
        raise Unsupported(
            f"closed forms are checked in float32 or float64, and this model is in {model.dtype}; load it with dtype='float64'."
        )
    if overflow == "window":
        raise InputError(
            "a closed form is of one run of the model; overflow is 'error' or 'truncate'."
        )
    found = compare(
        model,
        text,
        METHODS,
        target=target,
        seed=seed,
        overflow=overflow,
        evidence=evidence,
        progress=progress,
    )
    first = found.first
    book = Notebook("Closed forms beside measured values", seed=seed)
    _gradients(
        book, model, first.passage, heads_of(model, first.passage, first.target), first.target
    )
    _lime(book, model, first, found["lime"])
    return found, book


def measured_gradient(
    model: Model, passage: Passage, target: Target
) -> Float[np.ndarray, "place width"]:
    """∂f/∂e_t by autograd, in the model's own precision."""
    words = (
        model.input_embeddings(torch.tensor(passage.ids.tolist(), device=model.device)[None])
        .detach()
        .requires_grad_()
    )
    value = model.value(model.hf(inputs_embeds=words).logits, [target])
    return torch.autograd.grad(value.sum(), words)[0][0].double().cpu().numpy()


def _gradients(
    book: Notebook, model: Model, passage: Passage, heads: Heads, target: Target
) -> None:
    by_formula, measured = gradient(heads), measured_gradient(model, passage, target)
    slides = gradient(heads, cls_term=False)
    off, rows = np.abs(by_formula - measured).max(1), importances(heads)
    book.table(
        "theory-gradients",
        ("token", *rows, "off"),
        [
            (token, *(float(rows[name][t]) for name in rows), float(off[t]))
            for t, token in enumerate(passage.tokens)
        ],
        "By the gradient theorem, for each token; off: the largest difference to autograd over the entries of the gradient. G×I takes the "
        "embedding with its position, as the authors' code does; gradient-x-input takes the word's own.",
    )
    size, limit = float(np.abs(measured).max()), DIGITS[model.dtype]
    book.claim(
        "The gradient theorem, with the further term of the [CLS] row, equals autograd",
        f"largest difference {off.max():.1e}, of gradients up to {size:.2g}; {str(model.dtype).removeprefix('torch.')}",
        off.max() <= limit * max(size, 1e-9),
    )
    without = float(np.abs(slides - measured)[0].max())
    book.claim(
        "Without that term the [CLS] row is wrong",
        f"it is off by {without:.2g}",
        without > 10 * float(off[0]),
    )


def _lime(book: Notebook, model: Model, first: Attribution, sampled: Attribution) -> None:
    ratio = ratio_of(model, first.passage, first.target, "mask")
    error = None if sampled.error is None else sampled.error.standard_error
    drawn = error is not None and bool((error > 0).any())
    columns = {
        "LIME, sampled" if drawn else "LIME, all masks": sampled.scores,
        **({"±": error} if drawn else {}),
        "exact": exact_lime(ratio, 0.25),
        "ν = ∞": exact_lime(ratio, None),
        "mean field": mean_field(ratio),
        "first order": first_order(ratio),
        "talk, 3/2": talk(ratio),
        "Shapley": exact_shapley(ratio),
    }
    exact, infinite = columns["exact"], columns["ν = ∞"]
    size = float(np.linalg.norm(infinite))
    forms = ("mean field", "first order", "talk, 3/2")
    off = [
        f"{name} {np.linalg.norm(columns[name] - infinite) / max(size, NOTHING):.0%}"
        for name in forms
    ]
    book.table(
        "theory-lime",
        ("unit", *columns),
        [(name, *(float(c[i]) for c in columns.values())) for i, name in enumerate(first.names)],
        "LIME has bandwidth 0.25, or ν = ∞ where it says so; Shapley values are exact. The approximations are of ν = ∞, and off by "
        f"{', '.join(off)} of its length. A removed word becomes [UNK] in its place.",
    )
    if error is not None and drawn:
        far = float((np.abs(sampled.scores - exact) / np.maximum(error, NOTHING)).max())
        book.claim(
            f"Sampled LIME is within {FAR:.0f} standard errors of the exact value",
            f"largest distance {far:.2g} of them",
            far <= FAR,
        )
    else:
        gap, largest = float(np.abs(sampled.scores - exact).max()), float(np.abs(exact).max())
        book.claim(
            "LIME over all masks equals the exact value",
            f"off by {gap:.1e}",
            gap <= DIGITS[model.dtype] * max(largest, 1.0),
        )
    full, none = ratio(np.array([[True] * len(exact), [False] * len(exact)])).sum(1)
    gap = abs(float(columns["Shapley"].sum() - (full - none)))
    book.claim(
        "Exact Shapley values sum to f(text) − f(all [UNK])",
        f"{full - none:.4g}, off by {gap:.1e}",
        gap < 1e-9,
    )
