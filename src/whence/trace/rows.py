"""The rows of attention that speak for the output, brought together over layers and heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.aggregate import entrywise, product_row
from whence.core.errors import SettingsError, Unsupported
from whence.trace.trace import Trace

Layers = int | Literal["last", "all", "mean", "max", "sum", "product"]
EntrywiseLayers = int | Literal["last", "all", "mean", "max", "sum"]
RowChoice = Literal["readout", "mean"]


def chosen_layers(count: int, layer: Layers, kind: str) -> range:
    """The layers that a choice speaks of: one, or all where they are to be brought together."""
    if layer == "last":
        return range(count - 1, count)
    if isinstance(layer, str):
        return range(count)
    if -count <= layer < count:
        return range(layer % count, layer % count + 1)
    raise SettingsError(
        f"layer {layer} is outside the {count} layers of {kind} attention "
        f"(0 to {count - 1}, 'last' or 'all')."
    )


def layers_together(rows: Float[Tensor, "layer ..."], layer: Layers) -> Tensor:
    """Entry by entry over the layers of ``chosen_layers``: their largest, sum, or else mean."""
    if layer in ("max", "sum"):
        return entrywise(rows, layer, 0)
    return entrywise(rows, "mean", 0)


def speaking_kind(kinds: Sequence[str]) -> str:
    """The kind of attention that leads to the output: of an encoder-decoder the cross attention."""
    return "cross" if "cross" in kinds else next(iter(kinds))


def text_length(trace: Trace, i: int) -> int:
    """How many tokens of passage ``i`` its own attention is between.

    Of what an encoder-decoder wrote these are the encoder's; the decoder's come behind them.
    """
    passage = trace.passages[i]
    if passage.written is not None and trace.model.is_encoder_decoder:
        return passage.written - 1
    return len(passage)


def of_both_sides(
    trace: Trace,
    i: int,
    of_text: Float[Tensor, "*head source"],
    of_written: Callable[[], Float[Tensor, "*head place"]],
) -> Float[Tensor, "*head token"]:
    """A row over the text; behind it, where an encoder-decoder's writing is scored, that over it.

    The latter may end at the place that is read: what comes behind it counts nothing.
    """
    length = len(trace.passages[i])
    missing = length - text_length(trace, i)
    of_text = of_text[..., : length - missing]
    if not missing:
        return of_text
    own = of_written()
    own = nn.functional.pad(own, (0, max(0, missing - own.shape[-1])))[..., :missing]
    return torch.cat([of_text, own], -1)


def readout_row(
    trace: Trace, i: int, maps: Float[Tensor, "*head query key"], row: RowChoice, kind: str
) -> Float[Tensor, "*head key"]:
    """The row of the token that the head reads.

    It is the mean over rows where the model pools by the mean, or where ``row`` says so.
    """
    at = trace.model.readout(trace.passages[i])
    if row == "readout" and at is not None:
        return maps[..., at, :]
    queries = len(trace.passages[i])
    is_decoders = kind == "cross" or trace.passages[i].written is not None
    if is_decoders and at is not None:
        queries = at + 1
    return maps[..., :queries, :].mean(-2)


def attention_rows(
    trace: Trace, layer: Layers, row: RowChoice
) -> Float[Tensor, "layer batch head token"]:
    """Attention paid to each input token, at the chosen layers.

    ``readout`` takes the row of the token that the head reads (see ``Model.readout``), and the mean
    over rows where the model pools by the mean; ``mean`` takes the mean over rows anyway. An
    encoder-decoder speaks through its cross attention.
    """
    return speaking_rows(trace, trace.attentions, layer, row)


def speaking_rows(
    trace: Trace, maps: Mapping[str, Sequence[Tensor]], layer: Layers, row: RowChoice
) -> Float[Tensor, "layer batch *head token"]:
    """The rows that speak for the output, of maps "batch *head query key" by kind and layer."""
    kind = speaking_kind(tuple(maps))
    chosen = chosen_layers(len(maps[kind]), layer, kind)
    width = trace.content.shape[1]
    rows = []
    for i in range(len(trace.passages)):
        each = []
        for n in chosen:

            def own(n: int = n, i: int = i) -> Tensor:
                return readout_row(trace, i, maps["decoder"][n][i], row, "decoder")

            of_text = readout_row(trace, i, maps[kind][n][i], row, kind)
            both = of_both_sides(trace, i, of_text, own)
            each.append(nn.functional.pad(both, (0, width - both.shape[-1])))
        rows.append(torch.stack(each))
    return torch.stack(rows, 1)


def rolled_row(
    trace: Trace, i: int, means: dict[str, tuple[Tensor, ...]], residual: bool, start: int = 0
) -> Float[Tensor, " token"]:
    """What reaches each input token of passage ``i`` from the output, through every layer.

    ``means`` are maps "batch query key" by kind. An encoder-decoder is one tall stack: each decoder
    layer looks across to the encoder's top (half of it stays, with the residual) and then at the
    decoder's own tokens below; what has crossed over runs down the encoder.
    """
    at = trace.model.readout(trace.passages[i])
    length = text_length(trace, i)
    if "cross" not in means:
        maps = next(iter(means.values()))
        own = [m[i, :length, :length] for m in maps[start:]]
        return product_row(own, _first_row(own[0], length, at), residual)

    check_both_sides(trace, tuple(means))
    cross, decoder = means["cross"], means["decoder"]
    answers = length if at is None else at + 1
    row = _first_row(cross[0], answers, at)
    crossed = row.new_zeros(length)
    for across, below in zip(reversed(cross), reversed(decoder), strict=True):
        looks = across[i, :answers, :length]
        whole = looks.sum(-1) + 1 if residual else 2
        share = row / whole
        crossed = crossed + share @ looks
        row = product_row([below[i, :answers, :answers]], share, residual)

    encoder = [m[i, :length, :length] for m in means["encoder"][start:]]
    of_text = product_row(encoder, crossed, residual)
    return of_both_sides(trace, i, of_text, lambda: row)


def check_both_sides(trace: Trace, kinds: Sequence[str]) -> None:
    """Refuse an encoder-decoder of which one side's attention cannot be seen."""
    missing = [kind for kind in ("encoder", "decoder", "cross") if kind not in kinds]
    if "cross" in kinds and missing:
        raise Unsupported(
            f"of {type(trace.model.hf).__name__} no attention of the {' or '.join(missing)} can be "
            "seen, so nothing can be followed through all layers; attention-mean reads the cross "
            "attention alone."
        )


def padded(rows: Sequence[Tensor], width: int) -> Float[Tensor, "batch token"]:
    """Rows of unequal length as one table, zero where there is no token."""
    return torch.stack([nn.functional.pad(r, (0, width - len(r))) for r in rows])


def aggregated(
    trace: Trace, head: int | Literal["mean", "max"], layer: Layers, residual: bool, row: RowChoice
) -> Float[Tensor, "batch token"]:
    """Heads first, then layers: entry by entry, or as a product of matrices.

    The product of an encoder-decoder leads from its last cross attention down the encoder.
    """
    maps = {}
    for kind, layers in trace.attentions.items():
        maps[kind] = [_of_heads(m, head) for m in layers]

    rows = []
    for i in range(len(trace.passages)):
        if layer == "product":
            rows.append(_product_of_passage(trace, i, maps, residual, row))
        else:
            rows.append(_entrywise_of_passage(trace, i, maps, layer, residual, row))
    return padded(rows, trace.content.shape[1])


def _product_of_passage(
    trace: Trace, i: int, maps: dict[str, list[Tensor]], residual: bool, row: RowChoice
) -> Float[Tensor, " token"]:
    length = text_length(trace, i)
    kind = speaking_kind(tuple(maps))
    if kind == "cross":
        # a place that looks across is not among those that it looks at: no residual here
        top = readout_row(trace, i, maps["cross"][-1][i, :, :length], row, kind)
        encoder = [m[i, :length, :length] for m in maps["encoder"]]
        of_text = product_row(encoder, top, residual)
        return of_both_sides(
            trace, i, of_text, lambda: _product_of_one_side(trace, i, maps, residual, row)
        )
    return _product_of_one_side(trace, i, maps, residual, row)


def _product_of_one_side(
    trace: Trace, i: int, maps: dict[str, list[Tensor]], residual: bool, row: RowChoice
) -> Float[Tensor, " token"]:
    """Of the decoder where there is one, as it writes; else of all there is."""
    kind = "decoder" if "decoder" in maps else next(iter(maps))
    places = len(trace.passages[i])
    if "cross" in maps:
        places -= text_length(trace, i)
    own = [m[i, :places, :places] for m in maps[kind]]
    if not residual:
        top = readout_row(trace, i, own[-1], row, kind)
        return product_row(own[:-1], top)
    start = _first_row(own[-1], places, _read_at(trace, i, row))
    return product_row(own, start, residual)


def _entrywise_of_passage(
    trace: Trace,
    i: int,
    maps: dict[str, list[Tensor]],
    layer: Layers,
    residual: bool,
    row: RowChoice,
) -> Float[Tensor, " token"]:
    kind = speaking_kind(tuple(maps))

    def own() -> Tensor:
        places = len(trace.passages[i]) - text_length(trace, i)
        return _entrywise_of_kind(
            trace, i, maps["decoder"], "decoder", layer, residual, row, places
        )

    length = text_length(trace, i)
    of_text = _entrywise_of_kind(trace, i, maps[kind], kind, layer, residual, row, length)
    return of_both_sides(trace, i, of_text, own)


def _entrywise_of_kind(
    trace: Trace,
    i: int,
    maps: Sequence[Tensor],
    kind: str,
    layer: Layers,
    residual: bool,
    row: RowChoice,
    length: int,
) -> Float[Tensor, " key"]:
    queries = None if kind == "cross" else length
    each = []
    for n in chosen_layers(len(maps), layer, kind):
        own = maps[n][i, :queries, :length]
        if residual and kind != "cross":
            start = _first_row(own, length, _read_at(trace, i, row))
            each.append(product_row([own], start, residual))
        else:
            each.append(readout_row(trace, i, own, row, kind))
    return layers_together(torch.stack(each), layer)


def _read_at(trace: Trace, i: int, row: RowChoice) -> int | None:
    """The place whose row speaks; None where it is the mean over all rows."""
    if row == "mean":
        return None
    return trace.model.readout(trace.passages[i])


def _first_row(like: Tensor, places: int, at: int | None) -> Float[Tensor, " place"]:
    """Where a walk down the layers begins: at one place, or for None evenly at all of them."""
    if at is None:
        return like.new_full((places,), 1 / places)
    return nn.functional.one_hot(torch.tensor(at, device=like.device), places).to(like)


def _of_heads(
    weights: Float[Tensor, "batch head query key"], head: int | Literal["mean", "max"]
) -> Float[Tensor, "batch query key"]:
    if isinstance(head, str):
        return entrywise(weights, head, 1)
    count = weights.shape[1]
    if not -count <= head < count:
        raise SettingsError(
            f"head {head} is outside the {count} heads of a layer (0 to {count - 1})."
        )
    return weights[:, head]
