"""Attention: rollout of one row beside the whole product, and our page beside BertViz's."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

import whence
from bench.timing import Ratio, interleaved
from whence.core.aggregate import product_row
from whence.models.model import Model

DEPTH, TOKENS = 12, 512
ON_A_PAGE = 128  # tokens


def rollout(depth: int = DEPTH, tokens: int = TOKENS, rounds: int = 41) -> Ratio:
    """One row down the layers, over the product of all (A + I) / 2, of which that row is read."""
    torch.manual_seed(0)
    maps = list(torch.randn(depth, tokens, tokens).softmax(-1))
    row = torch.nn.functional.one_hot(torch.tensor(0), tokens).float()

    def product() -> Tensor:
        eye = torch.eye(tokens)
        whole = (maps[0] + eye) / 2
        for layer in maps[1:]:
            whole = (layer + eye) / 2 @ whole
        return whole[0]

    def ours() -> Tensor:
        return product_row(maps, row, residual=True)

    torch.testing.assert_close(ours(), product())
    return interleaved(
        f"rollout of one row, {depth} × {tokens}²",
        ours,
        "product of (A + I) / 2",
        product,
        rounds=rounds,
    )


@dataclass(frozen=True)
class Page:
    """What one writer makes of the same maps.

    ``bytes`` of HTML, and the median of the ``seconds`` that it takes to make and write it.
    """

    what: str
    writer: str
    bytes: int
    seconds: float


def twelve_layers(tokenizer: Any) -> Model:
    """A random BERT of twelve layers and heads.

    Its maps are noise, which is the hardest case for packing.
    """
    import transformers as tf

    torch.manual_seed(0)
    config = tf.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=192,
        intermediate_size=192,
        num_hidden_layers=12,
        num_attention_heads=12,
    )
    return whence.load(tf.BertForSequenceClassification(config).eval(), tokenizer=tokenizer)


def text_of(model: Model, words: str, tokens: int = ON_A_PAGE) -> str:
    """The beginning of ``words``, repeated as needed, that has so many tokens, special ones too."""
    many = words.split() * (1 + tokens // len(words.split()))
    for end in range(1, len(many) + 1):
        text = " ".join(many[:end])
        if len(model.encode(text)) == tokens:
            return text
    raise AssertionError(f"no beginning of this text has {tokens} tokens")


def bertviz() -> dict[str, Callable[..., Any]]:
    """Its two views of a whole model; ModuleNotFoundError where it is not installed."""
    from bertviz import head_view, model_view  # type: ignore[import-not-found]

    return {"bertviz, head view": head_view, "bertviz, model view": model_view}


def pages(
    what: str, model: Model, words: str, peers: Mapping[str, Callable[..., Any]], rounds: int = 3
) -> list[Page]:
    """Our page, which holds the head view and the model view, and one page for each peer.

    What a browser takes to draw them is not measured.
    """
    maps = whence.attend(model, text_of(model, words), units="token")
    attention = [torch.from_numpy(layer)[None] for layer in maps.weights["encoder"]]
    tokens = list(maps.passage.tokens)
    layers, heads, places, _ = maps.weights["encoder"].shape

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        writers: dict[str, Callable[[], Any]] = {"whence, both views": lambda: maps.to_html(path)}
        for name, view in peers.items():
            writers[name] = lambda view=view: path.write_text(
                view(attention, tokens, html_action="return").data, encoding="utf-8"
            )
        sizes: dict[str, int] = {}
        seconds: dict[str, list[float]] = {name: [] for name in writers}
        for _ in range(rounds):
            for name, write in writers.items():
                started = time.perf_counter()
                write()
                seconds[name].append(time.perf_counter() - started)
                sizes[name] = path.stat().st_size
    where = f"{what}, {places} tokens × {layers} × {heads}"
    return [Page(where, name, sizes[name], median(seconds[name])) for name in writers]
