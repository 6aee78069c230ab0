"""What every head of the single-layer model computes for one text, in double precision.

These are the quantities that the formulas are written in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError, ModelError, TargetError, Unsupported
from whence.core.passage import Passage
from whence.core.target import Target
from whence.games.ratio import RatioOfSums
from whence.games.removals import chosen_removal, mask_id
from whence.models.embeddings import mean_embedding
from whence.models.model import Model
from whence.models.single_layer import SingleLayerForSequenceClassification, positional_encoding

IN_PLACE = ("mask", "pad", "mean", "zero")


@dataclass(frozen=True, eq=False)
class Heads:
    """One text as K heads see it.

    ``e`` is the embedding with the positional encoding. ``read`` is W_l of the target divided by K,
    so that f = Σ_k Σ_t α_t read·v_t.
    """

    e: Float[np.ndarray, "place width"]
    w_q: Float[np.ndarray, "head key width"]
    w_k: Float[np.ndarray, "head key width"]
    w_v: Float[np.ndarray, "head value width"]
    read: Float[np.ndarray, "head value"]

    @property
    def query(self) -> Float[np.ndarray, "head key"]:
        """q of the [CLS] token, divided by √d_att."""
        return self.w_q @ self.e[0] / np.sqrt(self.w_q.shape[1])

    def scores(self, e: Float[np.ndarray, "place width"]) -> Float[np.ndarray, "head place"]:
        """q·k_t / √d_att of the given embeddings."""
        return np.einsum("hk,hkw,tw->ht", self.query, self.w_k, e)

    def values(self, e: Float[np.ndarray, "place width"]) -> Float[np.ndarray, "head place"]:
        """W_l v_t / K of the given embeddings: what a place adds to f if it has all attention."""
        return np.einsum("hv,hvw,tw->ht", self.read, self.w_v, e)

    @property
    def attention(self) -> Float[np.ndarray, "head place"]:
        """α_t: the [CLS] row of each head."""
        scores = self.scores(self.e)  # (head, place)
        g = np.exp(scores - scores.max(1, keepdims=True))
        return g / g.sum(1, keepdims=True)

    @property
    def output(self) -> float:
        """f: the target's value."""
        return float((self.attention * self.values(self.e)).sum())


def heads_of(model: Model, passage: Passage, target: Target, padding: int = 0) -> Heads:
    """The heads for a text whose target is resolved.

    ``padding`` more places hold [UNK], attended to as any word, as in the talk.

    >>> import whence
    >>> model = whence.load("single-layer")
    >>> text, target = model.encode("a fine film"), whence.Target("positive", index=1)
    >>> heads_of(model, text, target).attention.sum(1).round(9)
    array([1., 1., 1., 1., 1., 1.])
    """
    hf = single_layer_of(model)
    attention = hf.attention
    heads = hf.config.num_attention_heads

    ids = np.concatenate([passage.ids, np.full(padding, _unknown(model))])  # (place,)
    words = _double(hf.embedding.get_parameter("weight"))[ids]  # (place, width)

    classifier = _double(hf.classifier.weight)  # (label, head · value)
    read = classifier[_label(target)]
    if target.against_index is not None:
        read = read - classifier[target.against_index]
    return Heads(
        e=words + _positions(model, len(ids)),
        w_q=_by_head(attention.query.weight, heads),
        w_k=_by_head(attention.key.weight, heads),
        w_v=_by_head(attention.value.weight, heads),
        read=read.reshape(heads, -1) / heads,
    )


def ratio_of(
    model: Model, passage: Passage, target: Target, removal: str = "auto", padding: int = 0
) -> RatioOfSums:
    """The game of removing units as a sum of ratios of sums, a term for each head.

    The docs page "Exact values" derives it. A removal must leave the other tokens in their places:
    ``mask`` ([UNK] instead of the word), ``pad`` (not attended to), ``mean`` or ``zero``.
    ``delete`` moves what follows, and a head is then no ratio of fixed sums.

    >>> import numpy as np, whence
    >>> model = whence.load("single-layer")
    >>> game = whence.game(model, "a fine film", removal="mask")
    >>> ratio = ratio_of(model, game.passage, game.target, "mask")
    >>> masks = np.array([[True, False, True]])
    >>> bool(abs(ratio(masks).sum() - game(masks)[0]) < 1e-5)
    True
    """
    single_layer_of(model)  # first: of another model the removal is no matter
    name = chosen_removal(model, removal)
    if name not in IN_PLACE:
        raise Unsupported(
            "exact values need a removal that leaves the other words in place "
            f"({', '.join(IN_PLACE)}), not {name!r}."
        )
    heads = heads_of(model, passage, target, padding)
    scores, values = heads.scores(heads.e), heads.values(heads.e)  # (head, place) each
    if name == "pad":  # a removed word gets no attention
        scores_hat, values_hat = np.full_like(scores, -np.inf), np.zeros_like(values)
    else:
        positions = _positions(model, len(heads.e))  # (place, width)
        e_hat = np.broadcast_to(_neutral(model, name), heads.e.shape) + positions
        scores_hat, values_hat = heads.scores(e_hat), heads.values(e_hat)

    unit = np.concatenate([passage.unit_of, np.full(padding, -1)])  # (place,)
    fixed = unit < 0
    # one shift for all that can stand in a head: exp does not overflow
    top = np.maximum(scores, scores_hat).max(1, keepdims=True)  # (head, 1)
    g, g_hat = np.exp(scores - top), np.exp(scores_hat - top)  # (head, place) each
    smallest = g[:, fixed].sum(1) + np.minimum(g, g_hat)[:, ~fixed].sum(1)  # (head,)
    if (smallest == 0).any():
        raise ModelError(
            "a head is so sharp that its smallest weights vanish in double precision (e^-745); "
            "scale its scores down."
        )

    count = len(passage.unit_spans)
    owners = (unit[:, None] == np.arange(count)).astype(np.float64)  # (place, unit)
    return RatioOfSums(
        n=(g * values) @ owners,
        nh=(g_hat * values_hat) @ owners,
        g=g @ owners,
        gh=g_hat @ owners,
        n0=(g * values)[:, fixed].sum(1),
        d0=g[:, fixed].sum(1),
    )


def single_layer_of(model: Model) -> SingleLayerForSequenceClassification:
    """The model, if it is the one that the formulas are about; else an error that names it."""
    if not isinstance(model.hf, SingleLayerForSequenceClassification):
        raise Unsupported(
            "closed forms exist for the single-layer attention classifier alone "
            f"(bundled: 'single-layer'), and {type(model.hf).__name__} is another model."
        )
    return model.hf


def _label(target: Target) -> int:
    if target.read not in ("logit", "margin"):
        raise TargetError(
            f"closed forms are of logits, not of the {target.read}; "
            "read the target as 'logit' or 'margin'."
        )
    if target.index is None:
        raise InputError("the target is not resolved: take the one of a game or an attribution.")
    return target.index


def _by_head(weight: Tensor, heads: int) -> Float[np.ndarray, "head out width"]:
    return _double(weight).reshape(heads, -1, weight.shape[1])


def _neutral(model: Model, removal: str) -> Float[np.ndarray, " width"]:
    """The embedding, without its position, of what stands for a removed word."""
    table = model.input_embeddings.get_parameter("weight")
    if removal == "mask":
        return _double(table[_unknown(model)])
    if removal == "zero":
        return np.zeros(table.shape[1])
    return _double(mean_embedding(model))


def _unknown(model: Model) -> int:
    token = mask_id(model)
    if token is None:
        raise Unsupported("this model's tokenizer has no mask or unknown token; use removal 'pad'.")
    return token


def _positions(model: Model, places: int) -> Float[np.ndarray, "place width"]:
    """The positional encoding as the model adds it: rounded to the model's own precision."""
    config = model.config
    encoding = positional_encoding(places, config.embedding_size, config.position_base)
    return encoding.to(model.dtype).double().numpy()


def _double(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to(torch.float64).cpu().numpy()
