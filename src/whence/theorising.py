"""The single-layer model's explanations beside their formulas: the rows of the paper's figure, and how far each formula is off."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from whence.attributing import Progress
from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.notebook import Notebook
from whence.core.passage import Passage
from whence.core.target import Target
from whence.models.model import Model, Overflow
from whence.theory.exact import exact_lime, exact_shapley
from whence.theory.gradients import gradient, importances
from whence.theory.heads import Heads, heads_of, ratio_of, single_layer_of
from whence.theory.limits import first_order, mean_field, talk
from whence.workflow import compare

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
DIGITS = {torch.float64: 1e-12, torch.float32: 1e-4}  # of autograd, of a gradient's entries as large as the largest


def closed_forms(
    model: Model,
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
    single_layer_of(model)
    found = compare(model, text, METHODS, target=target, seed=seed, overflow=overflow, evidence=evidence, progress=progress)
    first = found.first
    book = Notebook("Closed forms beside measured values", seed=seed)
    _gradients(book, model, first.passage, heads_of(model, first.passage, first.target), first.target)
    _lime(book, model, first, found["lime"])
    return found, book


def measured_gradient(model: Model, passage: Passage, target: Target) -> Float[np.ndarray, "place width"]:
    """∂f/∂e_t by autograd, in the model's own precision."""
    words = model.input_embeddings(torch.as_tensor(passage.ids, device=model.device)[None]).detach().requires_grad_()
    value = model.value(model.hf(inputs_embeds=words).logits, [target])
    return torch.autograd.grad(value.sum(), words)[0][0].double().cpu().numpy()


def _gradients(book: Notebook, model: Model, passage: Passage, heads: Heads, target: Target) -> None:
    by_formula, measured = gradient(heads), measured_gradient(model, passage, target)
    slides = gradient(heads, cls_term=False)
    off, rows = np.abs(by_formula - measured).max(1), importances(heads)
    book.table(
        "theory-gradients",
        ("token", *rows, "formula − autograd"),
        [(token, *(float(rows[name][t]) for name in rows), float(off[t])) for t, token in enumerate(passage.tokens)],
        "By the gradient theorem, for each token. The last column is the largest difference to autograd over the entries of the gradient.",
    )
    size, limit = float(np.abs(measured).max()), DIGITS.get(model.dtype, 0.1)
    book.claim(
        "The gradient theorem, with the further term of the [CLS] row, equals autograd",
        f"largest difference {off.max():.1e}, of gradients up to {size:.2g}; {str(model.dtype).removeprefix('torch.')}",
        off.max() <= limit * max(size, 1e-9),
    )
    without = float(np.abs(slides - measured)[0].max())
    book.claim("Without that term the [CLS] row is wrong", f"it is off by {without:.2g}", without > 10 * limit * size)


def _lime(book: Notebook, model: Model, first: Attribution, sampled: Attribution) -> None:
    ratio = ratio_of(model, first.passage, first.target, "mask")
    error = None if sampled.error is None else sampled.error.standard_error
    spread = np.zeros(len(sampled.scores)) if error is None else error
    columns = {
        "LIME, sampled": sampled.scores,
        "±": spread,
        "LIME, exact": exact_lime(ratio, 0.25),
        "ν = ∞, exact": exact_lime(ratio, None),
        "mean field": mean_field(ratio),
        "first order": first_order(ratio),
        "talk, 3/2": talk(ratio),
        "Shapley, exact": exact_shapley(ratio),
    }
    book.table(
        "theory-lime",
        ("unit", *columns),
        [(name, *(float(c[i]) for c in columns.values())) for i, name in enumerate(first.names)],
        "LIME has bandwidth ν = 0.25; the three approximations are of ν = ∞. A removed word becomes [UNK] in its place.",
    )
    exact = columns["LIME, exact"]
    steps = np.abs(sampled.scores - exact) / np.maximum(spread, 1e-5 * max(1.0, float(np.abs(exact).max())))
    far = float(steps.max())
    book.claim(f"Sampled LIME is within {FAR:.0f} standard errors of the exact value", f"largest distance {far:.2g}", far <= FAR)
    infinite = columns["ν = ∞, exact"]
    forms = ("mean field", "first order", "talk, 3/2")
    off = {name: np.linalg.norm(columns[name] - infinite) / np.linalg.norm(infinite) for name in forms}
    book.say("Relative errors of the approximations of ν = ∞: " + ", ".join(f"{name} {x:.0%}" for name, x in off.items()) + ".")
    full, none = ratio(np.array([[True] * len(exact), [False] * len(exact)])).sum(1)
    gap = abs(float(columns["Shapley, exact"].sum() - (full - none)))
    book.claim("Exact Shapley values sum to f(text) − f(all [UNK])", f"{full - none:.4g}, off by {gap:.1e}", gap < 1e-9)
