"""Small random models of every family on the support list.

They show whether code is right, never whether an explanation is good. The weights of ``build``
depend on the family and the seed alone: not on the tests before, nor on the worker of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as tf

from tests import tokenizers as tok
from whence.models.load import load
from whence.models.model import Model
from whence.models.single_layer import SingleLayerConfig, SingleLayerForSequenceClassification

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
}
LABELS = {
    "num_labels": 3,
    "id2label": {0: "bad", 1: "fair", 2: "good"},
    "label2id": {"bad": 0, "fair": 1, "good": 2},
}


@dataclass(frozen=True)
class Family:
    build: Callable[[], Any]
    tokenizer: Callable[[], Any] | None
    kinds: tuple[str, ...]
    via: str = "interface"


def _encoder(config: str, model: str, **more: Any) -> Callable[[], Any]:
    def build() -> Any:
        size = len(tok.wordpiece())
        settings = {
            **SMALL,
            "vocab_size": size,
            "pad_token_id": 0,
            "max_position_embeddings": 64,
            **LABELS,
            **more,
        }
        return getattr(tf, model)(getattr(tf, config)(**settings))

    return build


def _roberta() -> Any:
    config = tf.RobertaConfig(
        **SMALL,
        vocab_size=len(tok.roberta()),
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        max_position_embeddings=66,
        **LABELS,
    )
    return tf.RobertaForSequenceClassification(config)


def _distilbert() -> Any:
    config = tf.DistilBertConfig(
        vocab_size=len(tok.wordpiece()),
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=40,
        max_position_embeddings=64,
        pad_token_id=0,
        **LABELS,
    )
    return tf.DistilBertForSequenceClassification(config)


def _gpt2(model: str) -> Callable[[], Any]:
    def build() -> Any:
        labels = LABELS if "Classification" in model else {}
        config = tf.GPT2Config(
            vocab_size=len(tok.byte_level()),
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=64,
            pad_token_id=0,
            bos_token_id=0,
            eos_token_id=0,
            **labels,
        )
        return getattr(tf, model)(config)

    return build


def _decoder(config: str, model: str, **more: Any) -> Callable[[], Any]:
    def build() -> Any:
        settings = {
            **SMALL,
            "vocab_size": len(tok.byte_level()),
            "pad_token_id": 0,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "max_position_embeddings": 64,
        }
        return getattr(tf, model)(getattr(tf, config)(**{**settings, **more}))

    return build


def _opt() -> Any:
    config = tf.OPTConfig(
        vocab_size=len(tok.byte_level()),
        hidden_size=32,
        num_hidden_layers=2,
        ffn_dim=40,
        num_attention_heads=4,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=0,
    )
    return tf.OPTForCausalLM(config)


def _t5() -> Any:
    config = tf.T5Config(
        vocab_size=len(tok.unigram()),
        d_model=32,
        d_kv=8,
        d_ff=40,
        num_layers=2,
        num_decoder_layers=2,
        num_heads=4,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    return tf.T5ForConditionalGeneration(config)


def _bart(model: str) -> Callable[[], Any]:
    def build() -> Any:
        labels = LABELS if "Classification" in model else {}
        config = tf.BartConfig(
            vocab_size=len(tok.roberta()),
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=40,
            decoder_ffn_dim=40,
            max_position_embeddings=64,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            decoder_start_token_id=2,
            **labels,
        )
        return getattr(tf, model)(config)

    return build


def _marian() -> Any:
    config = tf.MarianConfig(
        vocab_size=len(tok.unigram()),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=40,
        decoder_ffn_dim=40,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        decoder_vocab_size=len(tok.unigram()),
    )
    return tf.MarianMTModel(config)


def _vit() -> Any:
    return tf.ViTForImageClassification(
        tf.ViTConfig(**SMALL, image_size=16, patch_size=4, **LABELS)
    )


GQA = {"num_key_value_heads": 2}
BERT_TOKENS = tok.wordpiece
GPT_TOKENS = tok.byte_level

ENCODER, DECODER, BOTH = ("encoder",), ("decoder",), ("encoder", "decoder", "cross")
MODERN = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
WINDOWED = {**GQA, "head_dim": 8, "sliding_window": 4}
MIXED = {**WINDOWED, "layer_types": ["sliding_attention", "full_attention"]}


def _modernbert(**more: Any) -> Callable[[], Any]:
    return _encoder("ModernBertConfig", "ModernBertForSequenceClassification", **MODERN, **more)


def _deberta() -> Any:
    return _encoder(
        "DebertaV2Config",
        "DebertaV2ForSequenceClassification",
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
    )()


def _single_layer() -> Any:
    config = SingleLayerConfig(
        vocab_size=len(tok.wordpiece()),
        embedding_size=32,
        num_attention_heads=4,
        key_size=8,
        value_size=6,
        max_position_embeddings=64,
        pad_token_id=0,
        **LABELS,
    )
    return SingleLayerForSequenceClassification(config)


# one of each kind, for the sweeps that take seconds for each family (see ``choices.at_once``)
MAIN = ("bert", "gpt2", "llama", "t5", "bart-classifier", "vit")

FAMILIES: dict[str, Family] = {
    "bert": Family(_encoder("BertConfig", "BertForSequenceClassification"), BERT_TOKENS, ENCODER),
    "bert-mlm": Family(_encoder("BertConfig", "BertForMaskedLM"), BERT_TOKENS, ENCODER),
    "distilbert": Family(_distilbert, BERT_TOKENS, ENCODER),
    "roberta": Family(_roberta, tok.roberta, ENCODER),
    "albert": Family(
        _encoder("AlbertConfig", "AlbertForSequenceClassification", embedding_size=16),
        BERT_TOKENS,
        ENCODER,
    ),
    "electra": Family(
        _encoder("ElectraConfig", "ElectraForSequenceClassification", embedding_size=16),
        BERT_TOKENS,
        ENCODER,
    ),
    "modernbert": Family(
        _modernbert(local_attention=4, global_attn_every_n_layers=2), BERT_TOKENS, ENCODER
    ),
    "modernbert-mean": Family(_modernbert(classifier_pooling="mean"), BERT_TOKENS, ENCODER),
    "deberta-v2": Family(_deberta, BERT_TOKENS, ENCODER, via="output"),
    "gpt2": Family(_gpt2("GPT2LMHeadModel"), GPT_TOKENS, DECODER),
    "gpt2-classifier": Family(_gpt2("GPT2ForSequenceClassification"), GPT_TOKENS, DECODER),
    "gpt-neox": Family(_decoder("GPTNeoXConfig", "GPTNeoXForCausalLM"), GPT_TOKENS, DECODER),
    "opt": Family(_opt, GPT_TOKENS, DECODER),
    "llama": Family(_decoder("LlamaConfig", "LlamaForCausalLM", **GQA), GPT_TOKENS, DECODER),
    "llama-classifier": Family(
        _decoder("LlamaConfig", "LlamaForSequenceClassification", **GQA, **LABELS),
        GPT_TOKENS,
        DECODER,
    ),
    "qwen3": Family(
        _decoder("Qwen3Config", "Qwen3ForCausalLM", **GQA, head_dim=8), GPT_TOKENS, DECODER
    ),
    "gemma2": Family(
        _decoder(
            "Gemma2Config",
            "Gemma2ForCausalLM",
            **WINDOWED,
            query_pre_attn_scalar=8,
            attn_logit_softcapping=2.0,
        ),
        GPT_TOKENS,
        DECODER,
    ),
    "gemma3": Family(
        _decoder("Gemma3TextConfig", "Gemma3ForCausalLM", **MIXED, query_pre_attn_scalar=8),
        GPT_TOKENS,
        DECODER,
    ),
    "gpt-oss": Family(
        _decoder(
            "GptOssConfig", "GptOssForCausalLM", **MIXED, num_local_experts=2, num_experts_per_tok=1
        ),
        GPT_TOKENS,
        DECODER,
    ),
    "t5": Family(_t5, tok.unigram, BOTH),
    "bart": Family(_bart("BartForConditionalGeneration"), tok.roberta, BOTH),
    "bart-classifier": Family(_bart("BartForSequenceClassification"), tok.roberta, BOTH),
    "marian": Family(_marian, tok.unigram, BOTH),
    "vit": Family(_vit, None, ENCODER),
    "single-layer": Family(_single_layer, BERT_TOKENS, ENCODER),
}

# Families that compute in their own dtype throughout. The others cast to float32 in norms or
# softmax, or cannot run in float64 at all.
DOUBLE = frozenset(
    {
        "bert",
        "bert-mlm",
        "distilbert",
        "roberta",
        "albert",
        "electra",
        "deberta-v2",
        "gpt2",
        "gpt2-classifier",
        "gpt-neox",
        "bart",
        "bart-classifier",
        "marian",
        "vit",
        "single-layer",
    }
)


def _tagger(config: str, model: str, **more: Any) -> Callable[[], Any]:
    return _encoder(config, model, **TAGS, **more)


def _roberta_tagger() -> Any:
    config = tf.RobertaConfig(
        **SMALL,
        vocab_size=len(tok.roberta()),
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        max_position_embeddings=66,
        **TAGS,
    )
    return tf.RobertaForTokenClassification(config)


def _distilbert_tagger() -> Any:
    config = tf.DistilBertConfig(
        vocab_size=len(tok.wordpiece()),
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=40,
        max_position_embeddings=64,
        pad_token_id=0,
        **TAGS,
    )
    return tf.DistilBertForTokenClassification(config)


TAGS = {
    "num_labels": 3,
    "id2label": {0: "O", 1: "B-PER", 2: "I-PER"},
    "label2id": {"O": 0, "B-PER": 1, "I-PER": 2},
}
# Models that tag each word. They are apart, as their inputs name a word; tests of their own.
TAGGERS: dict[str, Family] = {
    "bert-tags": Family(_tagger("BertConfig", "BertForTokenClassification"), BERT_TOKENS, ENCODER),
    "distilbert-tags": Family(_distilbert_tagger, BERT_TOKENS, ENCODER),
    "roberta-tags": Family(_roberta_tagger, tok.roberta, ENCODER),
    "deberta-v2-tags": Family(
        _tagger(
            "DebertaV2Config",
            "DebertaV2ForTokenClassification",
            relative_attention=True,
            pos_att_type=["p2c", "c2p"],
        ),
        BERT_TOKENS,
        ENCODER,
        via="output",
    ),
    "gpt2-tags": Family(_gpt2("GPT2ForTokenClassification"), GPT_TOKENS, DECODER),
}


def precise(name: str, seed: int = 0) -> tuple[Model, float]:
    """A model in the highest precision of its family, and the relative tolerance that follows.

    Both tolerances leave room for sums of thousands of terms and for the small differences of large
    numbers: in float64 (eps 2e-16) 1e-6, in float32 (eps 1e-7) 2e-3.
    """
    model = build(name, seed)
    if name not in DOUBLE:
        return model, 2e-3
    model.hf.double()
    return model, 1e-6


def build(name: str, seed: int = 0) -> Model:
    """A fresh model of a family, its weights wide enough that attention is far from uniform."""
    family = FAMILIES[name] if name in FAMILIES else TAGGERS[name]
    torch.manual_seed(seed)
    hf = family.build().eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(4.0)
    tokenizer = family.tokenizer() if family.tokenizer else None
    return load(hf, tokenizer=tokenizer)


def inputs(model: Model, count: int = 2) -> list[Any]:
    """Encoded inputs of unequal length."""
    if model.task == "image":
        generator = torch.Generator().manual_seed(1)
        pictures = [torch.randn(3, 16, 16, generator=generator) for _ in range(count)]
        return [model.encode(picture.numpy()) for picture in pictures]
    texts = [
        "the food is great but the service is not",
        "not bad prices",
        "I didn't like it, it's dull",
    ]
    passages = [model.encode(text) for text in texts[:count]]
    if model.task == "masked":
        return [model.fill(passage, 1) for passage in passages]
    return passages
