"""The floor: the model's own passes in plain torch and transformers, nothing of ours around."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from whence.models.model import Model
from whence.trace.trace import RERUN_TOKENS


def passes(model: Model, text: str, *, backward: bool, count: int = 1) -> Any:
    """A function that runs ``count`` sequences forward, and backward to the embeddings.

    Its batches are as large as ours.
    """
    passage = model.encode(text)
    inputs = model.batch([passage]).inputs
    table = model.input_embeddings
    per_batch = max(1, RERUN_TOKENS // len(passage))

    def batch(size: int) -> Tensor:
        many = {}
        for name, value in inputs.items():
            if name != "input_ids":
                many[name] = value.expand(size, *value.shape[1:])
        with torch.set_grad_enabled(backward):
            embeddings = table(inputs["input_ids"]).detach()
            leaf = embeddings.expand(size, -1, -1).clone().requires_grad_(backward)
            logits = model.hf(inputs_embeds=leaf, **many).logits
            if not backward:
                return logits
            return torch.autograd.grad(logits[:, 0].sum(), [leaf])[0]

    def run() -> list[Tensor]:
        sizes = [per_batch] * (count // per_batch)
        if count % per_batch:
            sizes.append(count % per_batch)
        return [batch(size) for size in sizes]

    return run
