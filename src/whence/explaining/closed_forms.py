"""The single-layer model's explanations beside their formulas.

The rows of the paper's figure, and how far each formula is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.core.percent import percent
from whence.core.target import Target
from whence.explaining.explain import compare
from whence.explaining.job import Progress
from whence.models.model import Model, Overflow
from whence.notebook.book import Notebook
from whence.theory.exact import exact_lime, exact_shapley
from whence.theory.gradients import gradient, importances
from whence.theory.heads import Heads, heads_of, ratio_of, single_layer_of
from whence.theory.limits import first_order, mean_field, talk

# The rows of the figure, which the paper calls α-avg, α-max, G-avg, G-L1, G-L2, G×I and LIME; then
# what the formulas add.
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
NOTHING = 1e-9  # a text of unknown words alone has coefficients of rounding
# of the model's own sums, beside the largest entry
DIGITS = {torch.float64: 1e-12, torch.float32: 1e-4}


def closed_forms(
    model: Any,
    text: str | Passage,
    *,
    target: Target | str | int | None = None,
    seed: int = 0,
    overflow: Overflow = "error",
    memory: str | int | float | None = None,
    evidence: bool = True,
    progress: Progress | None = None,
) -> tuple[Comparison, Notebook]:
    """Explain a text by every method of the paper's figure, beside the closed forms.

    Said as the title of the notebook: ``Closed forms beside measured values``.

    >>> import whence
    >>> model = whence.load("single-layer")
    >>> comparison, forms = whence.closed_forms(model, "a fine film", evidence=False)
    >>> [t.name for t in forms.tables], forms.holds
    (['theory-gradients', 'theory-lime'], True)
    """
    if not isinstance(model, Model):
        raise InputError(
            f"the first argument is a loaded model, not a {type(model).__name__}: "
            f"whence.load({model!r:.40}) gives one."
        )
    single_layer_of(model)
    if model.dtype not in DIGITS:
        raise Unsupported(
            f"closed forms are checked in float32 or float64, and this model is in {model.dtype}; "
            "load it with dtype='float64'."
        )
    if overflow == "window":
        raise InputError(
            "a closed form is of one run of the model; overflow is 'error' or 'truncate'."
        )
    comparison = compare(
        model,
        text,
        METHODS,
        target=target,
        seed=seed,
        overflow=overflow,
        memory=memory,
        evidence=evidence,
        progress=progress,
    )
    first = comparison.first
    book = Notebook("Closed forms beside measured values", seed=seed)
    passage = _passage_of(first)
    heads = heads_of(model, passage, first.target)
    _gradients(book, model, passage, heads, first.target)
    _lime(book, model, first, comparison["lime"])
    return comparison, book


def measured_gradient(
    model: Model, passage: Passage, target: Target
) -> Float[np.ndarray, "place width"]:
    """∂f/∂e_t by autograd, in the model's own precision."""
    ids = torch.tensor(passage.ids.tolist(), device=model.device)[None]  # (1, place)
    words = model.input_embeddings(ids).detach().requires_grad_()  # (1, place, width)
    value = model.value(model.hf(inputs_embeds=words).logits, [target])
    slopes = torch.autograd.grad(value.sum(), words)[0]  # (1, place, width)
    return slopes[0].double().cpu().numpy()


def _gradients(
    book: Notebook, model: Model, passage: Passage, heads: Heads, target: Target
) -> None:
    """Said with the numbers of a text, where its model is one of those that have closed forms:
    ``The gradient theorem, with the further term of the [CLS] row, equals autograd``.
    """
    measured = measured_gradient(model, passage, target)  # (place, width)
    off = np.abs(gradient(heads) - measured).max(1)  # (place,)
    columns = importances(heads)
    rows = []
    for place, token in enumerate(passage.tokens):
        scores = [float(column[place]) for column in columns.values()]
        rows.append((token, *scores, float(off[place])))
    book.table(
        "theory-gradients",
        ("token", *columns, "off"),
        rows,
        "α: the attention that each token gets, its mean and its largest over heads. G: the "
        "gradient by the theorem, as mean, L1 and L2 norm; off: the largest difference of its "
        "entries to autograd. G×I takes the embedding with its position, as the authors' code "
        "does; gradient-x-input takes the word's own.",
    )

    size = float(np.abs(measured).max())
    precision = str(model.dtype).removeprefix("torch.")
    book.claim(
        "The gradient theorem, with the further term of the [CLS] row, equals autograd",
        f"largest difference {off.max():.1e}, of gradients up to {size:.2g}; {precision}",
        off.max() <= DIGITS[model.dtype] * max(size, 1e-9),
    )
    as_on_the_slides = gradient(heads, cls_term=False)
    without = float(np.abs(as_on_the_slides - measured)[0].max())
    book.claim(
        "Without that term the [CLS] row is wrong",
        f"it is off by {without:.2g}",
        without > 10 * float(off[0]),
    )


def _passage_of(attribution: Attribution) -> Passage:
    assert attribution.passage is not None  # compare was given a text
    return attribution.passage


def _lime(book: Notebook, model: Model, first: Attribution, lime: Attribution) -> None:
    """Said with the numbers of a text, where its model is one of those that have closed forms:
    ``LIME over all masks equals the exact value``.
    """
    ratio = ratio_of(model, _passage_of(first), first.target, "mask")
    exact, infinite = exact_lime(ratio, 0.25), exact_lime(ratio, None)  # (unit,) each
    shapley = exact_shapley(ratio)
    approximations = {
        "mean field": mean_field(ratio),
        "first order": first_order(ratio),
        "talk, 3/2": talk(ratio),  # as the caption names them
    }

    # few words have few masks: then LIME has seen them all, and has no error of sampling
    standard_error = None if lime.error is None else lime.error.standard_error
    if standard_error is not None and not (standard_error > 0).any():
        standard_error = None
    if standard_error is None:
        columns = {"LIME, all masks": lime.scores}
    else:
        columns = {"LIME, sampled": lime.scores, "±": standard_error}
    columns |= {"exact": exact, "ν = ∞": infinite, **approximations, "Shapley": shapley}

    rows = []
    for unit, name in enumerate(first.names):
        rows.append((name, *(float(column[unit]) for column in columns.values())))
    size = max(float(np.linalg.norm(infinite)), NOTHING)
    off = [percent(float(np.linalg.norm(a - infinite)) / size) for a in approximations.values()]
    book.table(
        "theory-lime",
        ("unit", *columns),
        rows,
        "LIME has bandwidth 0.25, or ν = ∞ where it says so; Shapley values are exact. Mean field, "
        "first order and the talk's formula with its 3/2 approximate ν = ∞, with relative errors "
        f"(L2) of {off[0]}, {off[1]} and {off[2]}. A removed word becomes [UNK] in its place.",
    )

    gaps = np.abs(lime.scores - exact)  # (unit,)
    if standard_error is None:
        gap = float(gaps.max())
        largest = float(np.abs(exact).max())
        book.claim(
            "LIME over all masks equals the exact value",
            f"off by {gap:.1e}",
            gap <= DIGITS[model.dtype] * max(largest, 1.0),
        )
    else:
        far = float((gaps / np.maximum(standard_error, NOTHING)).max())
        book.claim(
            f"Sampled LIME is within {FAR:.0f} standard errors of the exact value",
            f"at most {far:.1f} standard errors away",
            far <= FAR,
        )

    masks = np.array([[True] * len(exact), [False] * len(exact)])
    full, none = ratio(masks).sum(1)
    gap = abs(float(shapley.sum() - (full - none)))
    book.claim(
        "Exact Shapley values sum to f(text) − f(all [UNK])",
        f"{full - none:.4g}, off by {gap:.1e}",
        gap < 1e-9,
    )
