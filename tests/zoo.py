"""Small random models of every family in transformers that can be made small by its numbers' names.

No family is written down here: the names come from transformers' own tables of heads, and the
numbers of each configuration are made small by what they are called. What cannot be built in that
way is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto as auto

from tests import tokenizers as tok

# Numbers that become this, also where they were smaller or not set: the tokenizer's ids and types
# must fit.
EXACT = {
    r"(^|_)vocab_size$": 400,
    r"^type_vocab_size$": 2,
    r"^head_dim$": 8,
    r"^num_experts_per_tok$": 2,
}
# What a number is called, and how small it becomes. The first that fits counts.
SMALL = {
    r"^(n|num|encoder|decoder)_(hidden_|decoder_|encoder_)?layers?$|^depth$|_groups$": 2,
    r"^((cross_)?attention_|pooler_)?hidden_size$|^embedding_size$|^d_model$|^n_embe?d$"
    r"|^(emb(ed(ding)?)?_|hidden_|model_)?dim$|^word_embed_proj_dim$|^d_embed$"
    r"|^projection_dim$": 32,
    r"^(n|num|encoder_attention|decoder_attention|num_attention)_heads?$": 4,
    r"^num_(key_value|kv)_heads$|^multi_query_group_num$": 2,
    r"^(head_dim|attention_head_dim|d_kv|d_head|v_head_dim|kv_channels|qk_\w*head_dim)$": 8,
    r"^(kv|q)_lora_rank$": 16,
    r"^(\w*intermediate_size|d_ff|(encoder_|decoder_)?ffn_dim|d_inner|mlp_dim|n_inner)$": 48,
    r"^ffn_hidden_size$": 48,
    r"^(max_position_embeddings|n_positions|max_seq_len|max_sequence_length|n_ctx)$": 64,
    r"^max_(target|source)_positions$": 64,
    r"^(num_local_experts|num_experts|n_routed_experts|moe_num_experts)$": 4,
    r"^(moe_topk|top_k_experts|moe_k)$": 2,
    r"^(n|topk|num_expert)_group$": 1,
    r"^(mamba_d_(ssm|state|conv)|ssm_state_size|state_size|conv_kernel|lru_width)$": 8,
    r"^rotary_dim$": 4,
    r"^attention_window$": 8,
    r"^image_size$": 32,
    r"^patch_size$": 8,
    r"^attn_layer_period$": 2,  # an attention layer among layers of another kind
    r"^attn_layer_offset$": 1,
}
# How wide the inside of a state-space layer is: so many times the hidden size, in so many heads of
# some width, whatever the three are called.
STATE_SPACES = (
    ("expand", "num_heads", "head_dim"),
    ("mamba_expand", "n_mamba_heads", "mamba_headdim"),
    ("mamba_expand", "mamba_n_heads", "mamba_d_head"),
)
# of each layer's kind, where a configuration lists them
KINDS_OF_LAYERS = ("layer_types", "mlp_layer_types", "layers_block_type", "block_types")
SPECIAL = {
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 2,
    "cls_token_id": 2,
    "sep_token_id": 3,
    "mask_token_id": 4,
}
MOST_PARAMETERS = 5_000_000

HEADS: dict[str, dict[str, Any]] = {
    "classification": auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    "token": auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    "causal": auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "masked": auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "seq2seq": auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "questions": auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES,
    "choices": auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES,
    "next": auto.MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES,
    "image": auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    "speech": auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    "sound": auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
}
WITH_LABELS = ("classification", "token", "image", "sound")


@dataclass(frozen=True)
class Animal:
    """One family with one head."""

    family: str
    head: str

    def __str__(self) -> str:
        return f"{self.head}-{self.family}"


def animals(every_head: bool = False) -> Iterator[Animal]:
    """Every family that transformers lists, with the first of its heads, or with each of them."""
    met: set[str] = set()
    for head, families in HEADS.items():
        for family in families:
            if every_head or family not in met:
                yield Animal(family, head)
            met.add(family)


def built(animal: Animal) -> Any | None:
    """A small model with random weights; None where it cannot be made small in this way."""
    try:
        return _built(animal)
    except Exception:  # whatever a configuration raises at numbers that it does not like
        return None


def tokenizer_of(animal: Animal) -> Any:
    """A tokenizer whose ids fit; an image model has none."""
    return None if animal.head == "image" else tok.wordpiece()


def _built(animal: Animal) -> Any:
    names = HEADS[animal.head][animal.family]
    name = names[0] if isinstance(names, (tuple, list)) else names
    kind = getattr(transformers, name)
    config = _of_kind(_small(CONFIG_MAPPING[animal.family]()), kind.config_class)
    if animal.head in WITH_LABELS:
        config.num_labels = 3
    for part in (config, config.get_text_config()):
        for key, number in SPECIAL.items():
            if hasattr(part, key):
                setattr(part, key, number)

    with torch.device("meta"):
        size = sum(p.numel() for p in kind(config).parameters())
    if size > MOST_PARAMETERS:
        return None
    torch.manual_seed(0)
    return kind(config).eval()


def _of_kind(config: Any, wanted: type) -> Any:
    """The part of a configuration that a model takes: some take the text's or the image's only."""
    if isinstance(config, wanted):
        return config
    for part in vars(config).values():
        if isinstance(part, wanted):
            return part
    return config


def _small(config: Any) -> Any:
    before = dict(vars(config))
    for name, number in before.items():
        if hasattr(number, "to_dict") and hasattr(number, "model_type"):
            _small(number)
        elif name in KINDS_OF_LAYERS and isinstance(number, (list, tuple)):
            setattr(config, name, _two_kinds(list(number)))
        elif number is None or (isinstance(number, int) and not isinstance(number, bool)):
            _shrink(config, name, number)
    _fit_together(config, before)
    return config


def _shrink(config: Any, name: str, number: int | None) -> None:
    for pattern, exact in EXACT.items():
        if re.search(pattern, name):
            setattr(config, name, exact)
            return
    for pattern, small in SMALL.items():
        if re.search(pattern, name):
            if number is not None and number > small:
                setattr(config, name, small)
            return


def _fit_together(config: Any, before: dict[str, Any]) -> None:
    """Numbers that depend on each other still do when they are small."""
    values, heads = "num_key_value_heads", "num_attention_heads"
    if before.get(values) is not None and before[values] == before.get(heads):
        setattr(config, values, getattr(config, heads))

    turned, unturned = "qk_rope_head_dim", "qk_nope_head_dim"
    both = (before.get(turned) or 0) + (before.get(unturned) or 0)
    if both and before.get("head_dim") == both:
        config.head_dim = getattr(config, turned) + getattr(config, unturned)

    for expand, count, width in STATE_SPACES:
        if all(isinstance(before.get(name), int) for name in (expand, count)) and width in before:
            setattr(config, count, 4)
            setattr(config, width, int(before[expand]) * config.hidden_size // 4)

    if "attn_layer_indices" in before:
        config.attn_layer_indices = [1]
    if before.get("languages"):
        config.default_language = before["languages"][0]


def _two_kinds(kinds: list[str]) -> list[str]:
    """Two layers: the first kind, and another, which is full attention if there is any."""
    others = [kind for kind in kinds if kind != kinds[0]]
    full = [kind for kind in others if "attention" in kind and "linear" not in kind]
    return [kinds[0], (full or others or kinds)[0]]
