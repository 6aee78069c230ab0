"""The floor: the model's own passes in plain torch and transformers, with nothing of ours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from whence.models.model import Model
from whence.trace.trace import RERUN_TOKENS


def passes(model: Model, text: str, *, backward: bool, count: int = 1) -> Any:
    """A function that runs ``count`` sequences forward, in batches as large as ours.

    With ``backward`` it also runs them backward, to the embeddings.
    """
    hf = model.hf
    passage = model.encode(text)
    inputs = model.batch([passage]).inputs
    table = model.input_embeddings
    per_batch = max(1, RERUN_TOKENS // len(passage))

    def run() -> list[Tensor]:
        out = []
        left = count
        while left > 0:
            n = min(left, per_batch)
            left -= n
            many = {k: v.expand(n, *v.shape[1:]) for k, v in inputs.items() if k != "input_ids"}
            with torch.set_grad_enabled(backward):
                embeddings = table(inputs["input_ids"]).detach()
                leaf = embeddings.expand(n, -1, -1).clone().requires_grad_(backward)
                logits = hf(inputs_embeds=leaf, **many).logits
                if backward:
                    out += torch.autograd.grad(logits[:, 0].sum(), [leaf])
                else:
                    out.append(logits)
        return out

    return run
