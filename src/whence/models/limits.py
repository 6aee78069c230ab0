"""How many tokens a model's positions allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from whence.models.model import Model

# Families with relative positions. Their old configurations name a length of training
# (n_positions), which is no limit.
RELATIVE_POSITIONS = ("t5", "mt5", "umt5", "longt5", "switch_transformers")


def configured_limit(model: Model) -> int | None:
    """The length of the position table that the configuration names; None where there is no end."""
    config = model.config.get_text_config()
    if config.model_type in RELATIVE_POSITIONS:
        return None
    limit = getattr(config, "max_position_embeddings", None)
    return limit or getattr(config, "n_positions", None)


def text_limit(model: Model) -> int | None:
    """The positions that a text can take, without the rows of the table that are never used.

    RoBERTa and its kin count positions from padding_idx + 1, so that the first two rows of their
    table are never a position.
    """
    limit = configured_limit(model)
    if limit is None:
        return None

    for module in model.hf.modules():
        table = getattr(module, "position_embeddings", None)
        if isinstance(table, nn.Embedding) and table.padding_idx is not None:
            return limit - table.padding_idx - 1

    return limit


def no_limit(_model: Model) -> None:
    """An image has one size, and no length."""
    return
