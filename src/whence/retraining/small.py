"""Small classifiers to be trained from nothing, in seconds: for experiments, and for nothing else.

Words are tokens. The model is a BERT of one layer, or the single-layer model of ``whence.theory``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from whence.core.errors import SettingsError
from whence.models.load import load
from whence.models.model import Model
from whence.retraining.labelled import Labelled, classes_of, encoded, labelled, numbered
from whence.retraining.training import Training, fit, seeded

Kind = Literal["bert", "single-layer"]
# An untrained model for each seed; all of them read text in the same way.
Start = Callable[[int], Model]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WIDTH, HEADS, FEED_FORWARD = 32, 2, 64
MOST_WORDS = 20_000  # of the vocabulary; the rarest others are [UNK]
LONGEST = 512  # tokens of a text; what is longer is cut
DROPOUT = 0.1
EMBEDDING_SCALE = 0.1  # of the single-layer model's, as in training/single_layer.py


def train_small(
    data: Any,
    *,
    kind: Kind = "bert",
    training: Training | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Model:
    """A small classifier of texts, trained from nothing on (text, label) pairs or a data file.

    It is made for experiments in which a model must be trained many times, or in which the truth
    about the texts is known. It learns which words go with which label, and not much more.

    >>> import whence
    >>> texts = [("a fine film", "good"), ("a dull film", "bad")] * 20
    >>> model = whence.train_small(texts)
    >>> [p.label for p in model.predict(["fine", "dull"])]
    ['good', 'bad']
    """
    rows = labelled(data)
    model = small_start(rows, kind)(seed)
    passages = encoded(model, rows)

    def tell(done: int, of: int) -> None:
        if progress is not None:
            progress(f"training: step {done} of {of}")

    fit(model, lambda _: passages, numbered(model, rows), training or Training(), seed, tell)
    return model


def small_start(rows: Sequence[Labelled], kind: Kind = "bert") -> Start:
    """An untrained classifier for each seed, with the words and labels of these texts."""
    if kind not in ("bert", "single-layer"):
        raise SettingsError(f"a small classifier is 'bert' or 'single-layer', not {kind!r}.")
    classes = classes_of(rows)
    texts = [text for row in rows for text in (row.text, row.pair) if text is not None]
    tokenizer = word_tokenizer(texts)
    build = _bert if kind == "bert" else _single_layer

    def start(seed: int) -> Model:
        with seeded(None, seed):
            return load(build(len(tokenizer), classes).eval(), tokenizer=tokenizer)

    return start


def word_tokenizer(texts: Sequence[str]) -> Any:
    """Lower-cased words, and signs one by one: the most frequent first, then by the alphabet.

    >>> tokenizer = word_tokenizer(["A film, a good film"])
    >>> tokenizer.tokenize("a bad film!")
    ['a', '[UNK]', 'film', '[UNK]']
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    cut = pre_tokenizers.Split(Regex(r"\w+(?:['’]\w+)*|[^\w\s]"), "removed", invert=True)
    counts: Counter[str] = Counter()
    for text in texts:
        pieces = cut.pre_tokenize_str(normalizer.normalize_str(text))
        counts.update(word for word, _ in pieces)
    by_count = sorted(counts, key=lambda word: (-counts[word], word))[:MOST_WORDS]
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *by_count])}

    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = cut
    start, end = SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", start), ("[SEP]", end)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=LONGEST,
    )


def _labels(classes: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": dict(enumerate(classes)),
        "label2id": {name: number for number, name in enumerate(classes)},
        "pad_token_id": SPECIAL.index("[PAD]"),
    }


def _bert(vocabulary: int, classes: Sequence[str]) -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        intermediate_size=FEED_FORWARD,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=DROPOUT,
        attention_probs_dropout_prob=DROPOUT,
        **_labels(classes),
    )
    return BertForSequenceClassification(config)


def _single_layer(vocabulary: int, classes: Sequence[str]) -> Any:
    import torch

    from whence.models import single_layer

    config = single_layer.SingleLayerConfig(
        vocab_size=vocabulary,
        embedding_size=WIDTH,
        num_attention_heads=HEADS,
        key_size=WIDTH // HEADS,
        value_size=WIDTH // HEADS,
        max_position_embeddings=LONGEST,
        **_labels(classes),
    )
    hf = single_layer.SingleLayerForSequenceClassification(config)
    with torch.no_grad():
        hf.embedding.get_parameter("weight").mul_(EMBEDDING_SCALE)
    return hf
