"""Relevance carried through the layers, by the rules of Chefer, Gur and Wolf (ICCV 2021).

Every layer is a matrix Ā, "query key", of entries that are not negative, wherever it comes from. R
says how much of each input token has come to be in each token so far; it begins as I. Inside, only
what the layers add to I is kept (``added`` is R − I): with small gradients it is far below one, and
would drown in the rounding of 1 + added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class CrossLayer:
    """The matrices of a layer in which two modalities look at each other, then each at itself."""

    text_to_image: Float[Tensor, "text image"]
    image_to_text: Float[Tensor, "image text"]
    text: Float[Tensor, "text text"]
    image: Float[Tensor, "image image"]


def positive_mean(
    gradient: Float[Tensor, "*batch head query key"],
    weights: Float[Tensor, "*batch head query key"],
) -> Tensor:
    """Ā, "*batch query key": entry by entry, what speaks for the target, averaged over heads.

    What speaks against the target is dropped in each head, before the mean: else it would cancel
    what another head says for it.
    """
    # half precision would lose the smaller of the products
    wide = torch.promote_types(weights.dtype, torch.float32)
    product = gradient.to(wide) * weights.to(wide)
    return product.clamp(min=0).mean(-3)


def self_row(
    start: Float[Tensor, "*batch token"], layers: Sequence[Float[Tensor, "*batch token token"]]
) -> Float[Tensor, "*batch token"]:
    """start · (R − I), with R = (I + Ā_N) … (I + Ā_1): one row, from the last layer to the first.

    It costs no more than a layer's own map.

    >>> layers = [torch.tensor([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([[0.6, 0.4], [0.1, 0.9]])]
    >>> self_row(torch.tensor([1.0, 0.0]), layers)
    tensor([2., 1.])
    """
    added = torch.zeros_like(start)
    for layer in reversed(layers):
        row = start + added
        added = added + (row[..., None, :] @ layer)[..., 0, :]
    return added


def self_matrix(layers: Sequence[Float[Tensor, "token token"]]) -> Float[Tensor, "token token"]:
    """R = (I + Ā_N) … (I + Ā_1), of one stream of tokens; all rows, not normalised."""
    return _eye(layers[0]) + _added(layers)


def normalised(relevance: Float[Tensor, "token token"]) -> Float[Tensor, "token token"]:
    """R̄: what R adds to I, each row scaled to one, and I again.

    A row to which nothing was added yet stays that of I.
    """
    return _normalised(relevance - _eye(relevance))


def encoder_decoder(
    encoder: Sequence[Float[Tensor, "token token"]],
    decoder: Sequence[tuple[Float[Tensor, "place place"], Float[Tensor, "place token"]]],
) -> tuple[Float[Tensor, "place token"], Float[Tensor, "place place"]]:
    """R_qi and R_qq − I: how much of each token is in each place of the decoder.

    The former are tokens of the encoder, the latter the decoder's own. A layer of the decoder is
    (self, cross).
    """
    first_self, first_cross = decoder[0]
    tokens = _normalised(_added(encoder))
    places = torch.zeros_like(first_self)  # R_qq − I
    crossed = torch.zeros_like(first_cross)
    for own, cross in decoder:
        places = places + own + own @ places
        crossed = crossed + own @ crossed
        crossed = crossed + _normalised(places).T @ (cross @ tokens)
    return crossed, places


def two_modalities(
    text: Sequence[Float[Tensor, "text text"]],
    image: Sequence[Float[Tensor, "image image"]],
    cross: Sequence[CrossLayer],
) -> tuple[Float[Tensor, "text text"], Float[Tensor, "text image"]]:
    """R_tt − I and R_ti of a model that reads its answer from the text's side, like LXMERT.

    Each modality first looks at itself, in layers of its own; then come the layers in which they
    look at each other. In a cross layer both sides are computed from what stood before it. In the
    last one the image's side can no longer reach the answer.
    """
    tt = _added(text) if text else torch.zeros_like(cross[0].text)  # R_tt − I
    ii = _added(image) if image else torch.zeros_like(cross[0].image)  # R_ii − I
    ti = tt.new_zeros(len(tt), len(ii))
    it = ti.T.clone()
    for depth, layer in enumerate(cross):
        to_ti, to_tt = _crossed(layer.text_to_image, tt, ii, it)

        if depth < len(cross) - 1:
            to_it, to_ii = _crossed(layer.image_to_text, ii, tt, ti)
            it = it + to_it
            ii = ii + to_ii
            it = it + layer.image @ it
            ii = ii + layer.image + layer.image @ ii

        ti = ti + to_ti
        tt = tt + to_tt
        ti = ti + layer.text @ ti
        tt = tt + layer.text + layer.text @ tt
    return tt, ti


def _crossed(
    layer: Float[Tensor, "s q"],
    ss: Float[Tensor, "s s"],
    qq: Float[Tensor, "q q"],
    qs: Float[Tensor, "q s"],
) -> tuple[Float[Tensor, "s q"], Float[Tensor, "s s"]]:
    """What one direction of a cross layer, s looking at q, adds to R_sq and to R_ss."""
    to_sq = _normalised(ss).T @ (layer @ _normalised(qq))
    to_ss = layer @ qs
    return to_sq, to_ss


def _added(layers: Sequence[Float[Tensor, "token token"]]) -> Float[Tensor, "token token"]:
    """R − I of one stream."""
    added = torch.zeros_like(layers[0])
    for layer in layers:
        added = added + layer + layer @ added
    return added


def _normalised(added: Float[Tensor, "token token"]) -> Float[Tensor, "token token"]:
    """R̄, from R − I."""
    total = added.sum(-1, keepdim=True)
    return added / torch.where(total > 0, total, 1) + _eye(added)


def _eye(like: Float[Tensor, "token token"]) -> Float[Tensor, "token token"]:
    return torch.eye(len(like), dtype=like.dtype, device=like.device)
