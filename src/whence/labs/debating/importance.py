"""Which words matter, by gradients and by leaving one out, and whether two rankings of them agree.

Jain & Wallace 2019, section 4.1 and algorithm 1.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.labs.debating.network import Network
from whence.labs.debating.texts import Texts, batches


def gradient_importance(model: Network, texts: Texts) -> Float[Tensor, "text place"]:
    """|∇ŷ · x_t|, divided by its sum over the text.

    Attention is held: no gradient passes through the weights, only through what they weigh.
    """
    importance = torch.zeros(texts.ids.shape, dtype=model.embedding.weight.dtype)
    for rows in batches(texts.lengths, 128):
        length = int(texts.lengths[rows[0]])
        vectors = model.embedding(texts.ids[rows, :length]).detach().requires_grad_()
        reading = model.read_vectors(vectors, detached=True)
        # texts of a batch do not know of each other, so that the gradient of the sum is each's own
        (slope,) = torch.autograd.grad(reading.probability.sum(), vectors)
        size = (slope * vectors).sum(-1).abs().detach()
        importance[rows, :length] = size / size.sum(-1, keepdim=True)
    return importance


@torch.no_grad()
def leave_one_out(model: Network, texts: Texts) -> Float[Tensor, "text place"]:
    """|ŷ without the word - ŷ|. The word is deleted: the text is shorter by one.

    The model attends anew to what is left. A text of one word has nothing left, and gets zero.
    """
    change = torch.zeros(texts.ids.shape)
    for row, (ids, length) in enumerate(zip(texts.ids, texts.lengths.tolist(), strict=True)):
        if length < 2:
            continue
        words = ids[:length]
        others = ~torch.eye(length, dtype=torch.bool)  # (removed, place)
        shorter = words.expand(length, -1)[others].view(length, length - 1)
        whole = model(words[None]).probability
        change[row, :length] = (model(shorter).probability - whole).abs()
    return change


def kendall(
    one: Float[Tensor, "text place"], other: Float[Tensor, "text place"], texts: Texts
) -> tuple[Float[np.ndarray, " text"], Float[np.ndarray, " text"]]:
    """Kendall's τ-b of two importances in each text, and its p-value.

    Both are NaN in a text of one word, or where all words are equally important to one of the two.
    """
    from scipy.stats import kendalltau

    tau = np.full(len(texts), np.nan)
    p_value = np.full(len(texts), np.nan)
    for row, length in enumerate(texts.lengths.tolist()):
        if length > 1:
            tau[row], p_value[row] = kendalltau(one[row, :length], other[row, :length])
    return tau, p_value
