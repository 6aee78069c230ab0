"""Baselines: embeddings that stand for the absence of the text, special tokens kept."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import Unsupported
from whence.models.embeddings import mean_embedding
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.trace.trace import Trace

Baseline = Literal["mean", "mask", "pad", "zero"]
AnyBaseline = Literal["auto", "mean", "mask", "pad", "zero"]


def chosen_baseline(model: Model, baseline: AnyBaseline) -> Baseline:
    """The baseline by its name.

    ``auto`` is ``mask`` where there is a mask token, and ``mean`` elsewhere: without one, in
    decoders, and for images. What this rests on is in docs/baselines.md.

    >>> import whence
    >>> chosen_baseline(whence.load("sentiment"), "auto")
    'mask'
    >>> chosen_baseline(whence.load("writer"), "auto")
    'mean'
    """
    if baseline != "auto":
        return baseline
    # a decoder's tokenizer may have a mask token that its model never saw
    if not model.kind.reads_text or model.is_causal:
        return "mean"
    if getattr(model.tokenizer, "mask_token_id", None) is None:
        return "mean"
    return "mask"


def baseline_embeddings(trace: Trace, i: int, baseline: Baseline) -> Float[Tensor, "token dim"]:
    """The embeddings of passage ``i``, with the baseline's in place of every token of the text."""
    x = trace.embeddings_of(i)
    content = trace.content[i, : len(trace.passages[i]), None]
    if baseline == "zero":
        neutral = torch.zeros_like(x[0])
    elif not trace.model.kind.reads_text:
        if baseline != "mean":
            raise Unsupported(
                f"an image model has no {baseline} token; "
                "use baseline 'mean' (of the image's patches) or 'zero'."
            )
        neutral = x[content[:, 0]].mean(0)
    elif baseline == "mean":
        neutral = mean_embedding(trace.model)
    else:
        neutral = token_embedding(trace.model, baseline)
    return torch.where(content, neutral.to(x), x)


def token_embedding(model: Model, name: str) -> Float[Tensor, " dim"]:
    """The embedding of the tokenizer's mask or pad token."""
    token = getattr(model.tokenizer, f"{name}_token_id", None)
    if token is None:
        raise Unsupported(
            f"this model's tokenizer has no {name} token; use baseline 'mean' or 'zero'."
        )
    with model.lock, unbroken(torch.no_grad()):
        return model.input_embeddings(torch.tensor([[token]], device=model.device))[0, 0]
