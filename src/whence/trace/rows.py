"""The rows of attention that speak for the output, and how layers and heads are brought together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import SettingsError
from whence.trace.trace import Trace

Layers = int | Literal["last", "all", "mean", "max", "sum", "product"]
EntrywiseLayers = int | Literal["last", "all", "mean", "max", "sum"]
RowChoice = Literal["readout", "mean"]


def chosen_layers(count: int, layer: Layers, kind: str) -> range:
    """The layers that a choice speaks of; all of them for every way of bringing them together."""
    if layer == "last":
        return range(count - 1, count)
    if isinstance(layer, str):
        return range(count)
    if -count <= layer < count:
        return range(layer % count, layer % count + 1)
    raise SettingsError(
        f"layer {layer} is outside the {count} layers of {kind} attention (0 to {count - 1}, 'last' or 'all')."
    )


def speaking_kind(kinds: Sequence[str]) -> str:
    """An encoder-decoder speaks through its cross attention."""
    return "cross" if "cross" in kinds else next(iter(kinds))


def readout_row(
    trace: Trace, i: int, maps: Float[Tensor, "*head query key"], row: RowChoice, kind: str
) -> Float[Tensor, "*head key"]:
    """The row of the token that the head reads, and the mean over rows where the model pools by the mean or ``row`` says so."""
    at = trace.model.readout(trace.passages[i])
    if row == "readout" and at is not None:
        return maps[..., at, :]
    queries = len(trace.passages[i]) if kind != "cross" or at is None else at + 1
    return maps[..., :queries, :].mean(-2)


def attention_rows(
    trace: Trace, layer: Layers, row: RowChoice
) -> Float[Tensor, "layer batch head token"]:
    """Attention paid to each input token, at the chosen layers.

    ``readout`` takes the row of the token that the head reads (see ``Model.readout``), and the mean over rows where the model
    pools by the mean; ``mean`` takes the mean over rows anyway. An encoder-decoder speaks through its cross attention.
    """
    kind = speaking_kind(tuple(trace.attentions))
    maps = trace.attentions[kind]
    chosen = [maps[n] for n in chosen_layers(len(maps), layer, kind)]
    rows = [
        torch.stack([readout_row(trace, i, m[i], row, kind) for m in chosen])
        for i in range(len(trace.passages))
    ]
    return torch.stack(rows, 1)


def across_layers(rows: Float[Tensor, "layer ..."], layer: Layers) -> Tensor:
    """Layers brought together entry by entry: the mean, unless the choice is the largest or the sum."""
    if layer == "max":
        return rows.amax(0)
    return rows.sum(0) if layer == "sum" else rows.mean(0)


def down_the_layers(
    layers: Sequence[Float[Tensor, "query key"]], row: Float[Tensor, " query"], residual: bool
) -> Float[Tensor, " key"]:
    """One row of the product of layers (later ones on the left), O(L·T²); with the residual, of (A + I) with its rows brought to one."""
    for layer in reversed(layers):
        if residual:
            share = row / (
                layer.sum(-1) + 1
            )  # so that neither A + I nor its normalised copy is ever held
            row = share @ layer + share
        else:
            row = row @ layer
    return row


def rolled_row(
    trace: Trace, i: int, means: dict[str, tuple[Tensor, ...]], residual: bool, start: int = 0
) -> Float[Tensor, " token"]:
    """What reaches each input token of passage ``i`` from the output, through every layer of its maps "batch query key".

    An encoder-decoder is one tall stack: each decoder layer looks across to the encoder's top (half of it stays, with the residual)
    and then at the decoder's own tokens below; what has crossed over runs down the encoder.
    """
    passage = trace.passages[i]
    at = trace.model.readout(passage)
    length = len(passage)
    if "cross" not in means:
        own = [m[i, :length, :length] for m in next(iter(means.values()))[start:]]
        row = (
            own[0].new_full((length,), 1 / length)
            if at is None
            else nn.functional.one_hot(torch.tensor(at), length).to(own[0])
        )
        return down_the_layers(own, row, residual)
    cross, decoder = means["cross"], means["decoder"]
    answers = length if at is None else at + 1
    row = (
        cross[0].new_full((answers,), 1 / answers)
        if at is None
        else nn.functional.one_hot(torch.tensor(at), answers).to(cross[0])
    )
    crossed = row.new_zeros(length)
    for across, below in zip(reversed(cross), reversed(decoder), strict=True):
        looks = across[i, :answers, :length]
        share = row / (looks.sum(-1) + 1) if residual else row / 2
        crossed = crossed + share @ looks
        row = down_the_layers([below[i, :answers, :answers]], share, residual)
    return down_the_layers(
        [m[i, :length, :length] for m in means["encoder"][start:]], crossed, residual
    )


def padded(rows: Sequence[Tensor], width: int) -> Float[Tensor, "batch token"]:
    """Rows of unequal length as one table, zero where there is no token."""
    return torch.stack([nn.functional.pad(r, (0, width - len(r))) for r in rows])


def aggregated(
    trace: Trace, head: int | Literal["mean", "max"], layer: Layers, residual: bool, row: RowChoice
) -> Float[Tensor, "batch token"]:
    """Heads first, then layers: entry by entry, or as a product of matrices (an encoder-decoder's from its last cross attention down
    the encoder)."""
    maps = {
        kind: tuple(_of_heads(m, head) for m in found) for kind, found in trace.attentions.items()
    }
    kind = speaking_kind(tuple(maps))
    rows = []
    for i, passage in enumerate(trace.passages):
        n = len(passage)
        queries = n if kind != "cross" else None
        own = [m[i, :queries, :n] for m in maps[kind]]
        stays = residual and kind != "cross"
        if layer == "product":
            top = readout_row(trace, i, _mixed(own[-1]) if stays else own[-1], row, kind)
            below = [m[i, :n, :n] for m in maps["encoder"]] if kind == "cross" else own[:-1]
            rows.append(down_the_layers(below, top, residual))
        else:
            chosen = [own[at] for at in chosen_layers(len(own), layer, kind)]
            each = [readout_row(trace, i, _mixed(m) if stays else m, row, kind) for m in chosen]
            rows.append(across_layers(torch.stack(each), layer))
    return padded(rows, trace.content.shape[1])


def _mixed(weights: Float[Tensor, "token token"]) -> Float[Tensor, "token token"]:
    """(A + I), its rows brought to one."""
    return (weights + torch.eye(len(weights), dtype=weights.dtype, device=weights.device)) / (
        weights.sum(-1, keepdim=True) + 1
    )


def _of_heads(
    weights: Float[Tensor, "batch head query key"], head: int | Literal["mean", "max"]
) -> Float[Tensor, "batch query key"]:
    if isinstance(head, str):
        return weights.mean(1) if head == "mean" else weights.amax(1)
    count = weights.shape[1]
    if not -count <= head < count:
        raise SettingsError(
            f"head {head} is outside the {count} heads of a layer (0 to {count - 1})."
        )
    return weights[:, head]
