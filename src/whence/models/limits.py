"""How many tokens a model's positions allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from whence.models.model import Model

# Families with relative positions. Their old configurations name a length of training
# (n_positions), which is no limit.
RELATIVE_POSITIONS = ("t5", "mt5", "umt5", "longt5", "switch_transformers")
# How configurations spell the length of their table of positions.
SPELLINGS = ("max_position_embeddings", "n_positions")
# No table is longer than this; some configurations write "no end" as a larger number.
NO_END = 10**9
# The text's side of a family that has two tables.
ENCODER_SPELLINGS = {"led": "max_encoder_position_embeddings"}


def configured_limit(model: Model) -> int | None:
    """The length of the position table that the configuration names; None where there is no end."""
    config = model.config.get_text_config()
    family = getattr(config, "model_type", "")
    if family in RELATIVE_POSITIONS:
        return None
    names = SPELLINGS
    if family in ENCODER_SPELLINGS:
        names = (ENCODER_SPELLINGS[family], *SPELLINGS)
    for name in names:
        limit = _length(getattr(config, name, None))
        if limit is not None:
            return limit
    return None


def _length(value: Any) -> int | None:
    """A length that a configuration gives; None for what is none (-1, 0, infinity, "auto")."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 < value < NO_END:
        return None
    return int(value)


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
