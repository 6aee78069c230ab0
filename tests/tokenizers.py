"""Tiny tokenizers of each kind, read from files, so that tests need no download and no training.

Two runs of the same training give different vocabularies, because pieces that occur equally often
come in any order. So each tokenizer was trained once, by ``python -m tests.tokenizers``, and is
stored under ``tests/data/tokenizers``. Train again only when a test needs other pieces: the ids,
and the weights of every random model whose size follows the vocabulary, change with the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

FOLDER = Path(__file__).parent / "data" / "tokenizers"

CORPUS = [
    "the food is great and the selection on the menu is great "
    "but the service is not bad prices are fine",
    "I didn't like it, it's dull; she'd rather leave. A well-made film!",
    "une soirée très agréable à Besançon, où l'on mange bien",
    "中国的电影很好看。 日本語のテキストも少し。",
    "ภาพยนตร์เรื่องนี้ดีมาก",
    "thumbs up 👍🏽 family 👨‍👩‍👧 flag 🇫🇷",
    "numbers 3.14 and 1,000 and 2026; tabs\tand\nnewlines",
]


def wordpiece() -> PreTrainedTokenizerFast:
    """BERT's kind: lower case, [CLS] … [SEP], and segments."""
    return _read(
        "wordpiece",
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def byte_level() -> PreTrainedTokenizerFast:
    """GPT-2's kind: no special token around the text."""
    return _read(
        "byte-level",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        model_input_names=["input_ids", "attention_mask"],
    )


def roberta() -> PreTrainedTokenizerFast:
    """RoBERTa's and BART's kind: byte-level with <s> … </s>; pad is 1."""
    return _read(
        "roberta",
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    )


def unigram() -> PreTrainedTokenizerFast:
    """T5's and Marian's kind: SentencePiece Unigram with a meta space, and </s> at the end."""
    return _read(
        "unigram",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    )


KINDS = {"wordpiece": wordpiece, "byte-level": byte_level, "roberta": roberta, "unigram": unigram}


def _read(kind: str, **settings: Any) -> PreTrainedTokenizerFast:
    """A fresh tokenizer at each call: what one test does to its own reaches no other test."""
    tokenizer = Tokenizer.from_file(str(FOLDER / f"{kind}.json"))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)


def train_wordpiece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=220, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def train_byte_level() -> Tokenizer:
    tokenizer = _byte_pieces(["<|endoftext|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def train_roberta() -> Tokenizer:
    tokenizer = _byte_pieces(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True
    )
    return tokenizer


def _byte_pieces(special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def train_unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=220,
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return tokenizer


TRAINED = {
    "wordpiece": train_wordpiece,
    "byte-level": train_byte_level,
    "roberta": train_roberta,
    "unigram": train_unigram,
}


def main() -> None:
    """Train every kind anew and store it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind, train in TRAINED.items():
        train().save(str(FOLDER / f"{kind}.json"))


if __name__ == "__main__":
    main()
