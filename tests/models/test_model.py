"""The Model: where it is read, how long a text may be, and what a target's value is.

And that batches change nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from tokenizers import processors

from tests import tokenizers as tok
from tests.families import FAMILIES, LABELS, SMALL, build, inputs
from tests.tolerance import rounding
from whence.core.errors import InputError, ModelError, TargetError, Unsupported
from whence.core.target import Target
from whence.models.load import load
from whence.models.model import Model

TEXTS = [
    "the food is great but the service is not",
    "not bad",
    "I didn't like it, it's dull",
    "prices",
]


def rows_that_the_head_reads(model: Model, passages: list[Any]) -> list[set[int]]:
    """The oracle: which rows of the last hidden states reach the logits, by their gradient."""
    caught: list[torch.Tensor] = []
    last = (
        model.hf.get_decoder()
        if model.is_encoder_decoder or model.config.model_type == "opt"
        else model.hf.base_model
    )
    handle = last.register_forward_hook(lambda _m, _i, out: caught.append(out.last_hidden_state))
    batch = model.batch(passages)
    try:
        logits = model.read(model.hf(**batch.inputs), batch)
    finally:
        handle.remove()
    weights = torch.randn(logits.shape[-1], generator=torch.Generator().manual_seed(3))
    (gradient,) = torch.autograd.grad((logits * weights).sum(), caught[-1:])
    return [set(torch.nonzero(row.abs().sum(-1)).flatten().tolist()) for row in gradient]


@pytest.mark.parametrize(
    "name", [n for n in FAMILIES if n != "single-layer"]
)  # no hidden states; see test_single_layer.py
def test_the_readout_is_the_row_that_the_head_reads(name: str) -> None:
    # the enemy takes row 0 of a decoder, the last row of the padded batch, or one row where the
    # head takes the mean
    model = build(name)
    passages = inputs(model)
    expected = [set(range(len(p))) if (at := model.readout(p)) is None else {at} for p in passages]
    assert rows_that_the_head_reads(model, passages) == expected


@pytest.mark.parametrize("name", ["t5", "bart", "marian"])
def test_the_readout_of_a_reply_is_its_last_token(name: str) -> None:
    model = build(name)
    passages = [
        model.encode("the food is great", reply="not bad"),
        model.encode("the service", reply="prices are fine"),
    ]
    assert rows_that_the_head_reads(model, passages) == [{model.readout(p)} for p in passages]
    reply = passages[0].reply
    opening = int(
        reply.special[0]
    )  # BART's replies open with <s>; the start token stands before it
    assert model.readout(passages[0]) == opening + (~reply.special).sum()


def gpt2_classifier(tokenizer: Any, pad: int | None) -> Model:
    torch.manual_seed(0)
    config = tf.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=32,
        n_layer=1,
        n_head=4,
        n_positions=64,
        pad_token_id=pad,
        **LABELS,
    )
    return load(tf.GPT2ForSequenceClassification(config).eval(), tokenizer=tokenizer)


def test_a_decoder_that_classifies_reads_before_a_closing_token_that_is_its_padding() -> None:
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=_copy(tok.byte_level()),
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
    )
    template = processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A $B <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    tokenizer.backend_tokenizer.post_processor = template
    model = gpt2_classifier(tokenizer, pad=0)
    passages = [model.encode(t) for t in TEXTS[:2]]
    assert model.readout(passages[0]) == len(passages[0]) - 2
    assert rows_that_the_head_reads(model, passages) == [{model.readout(p)} for p in passages]


@pytest.mark.parametrize(
    "pad", [None, 5], ids=["no padding token", "another one than the tokenizer's"]
)
def test_a_decoder_that_classifies_gives_each_text_its_own_answer_whatever_its_padding_token(
    pad: int | None,
) -> None:
    # the enemies: a batch that transformers refuses, and padding that the model takes for text
    model = gpt2_classifier(tok.byte_level(), pad)
    together = model.logits([model.encode(t) for t in TEXTS])
    alone = np.concatenate([model.logits([model.encode(t)]) for t in TEXTS])
    assert np.abs(together - alone).max() < 1e-5
    assert np.abs(np.diff(alone, axis=0)).max() > 1e-3


def _copy(tokenizer: Any) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())


@pytest.mark.parametrize(
    "name",
    [
        "bert",
        "roberta",
        "modernbert-mean",
        "deberta-v2",
        "gpt2-classifier",
        "llama",
        "t5",
        "bart-classifier",
    ],
)
def test_predicting_a_list_equals_predicting_one_by_one(name: str) -> None:
    model = build(name)
    together = model.predict(TEXTS)
    # each logit is a product with a hidden state of 32 numbers
    far = rounding(32, model.logits([model.encode(text) for text in TEXTS]))
    # the enemy gives a text the probabilities of another
    first, second = (prediction.probabilities for prediction in together[:2])
    assert max(abs(p - second.get(label, 0)) for label, p in first.items()) > 100 * far
    for text, prediction in zip(TEXTS, together, strict=True):
        (alone,) = model.predict([text])
        assert alone.label == prediction.label
        assert list(alone.probabilities) == list(prediction.probabilities)
        assert list(alone.probabilities.values()) == pytest.approx(
            list(prediction.probabilities.values()), rel=0, abs=far
        )


def test_a_prediction_is_the_softmax_of_the_models_own_logits_most_likely_first() -> None:
    model = build("bert")
    (prediction,) = model.predict([TEXTS[0]])
    encoded = model.tokenizer(TEXTS[0], return_tensors="pt")
    logits = model.hf(**encoded).logits[0].detach().double().numpy()
    p = np.exp(logits) / np.exp(logits).sum()
    order = np.argsort(-p)
    assert list(prediction.probabilities) == [["bad", "fair", "good"][i] for i in order]
    assert list(prediction.probabilities.values()) == pytest.approx(p[order].tolist(), abs=1e-6)
    assert prediction.label == next(iter(prediction.probabilities))
    assert prediction.logits == pytest.approx(
        {name: logits[i] for i, name in enumerate(["bad", "fair", "good"])}, abs=1e-5
    )


def test_predict_refuses_one_string_and_takes_an_empty_list() -> None:
    model = build("bert")
    assert model.predict([]) == []
    with pytest.raises(InputError, match="takes a list of texts"):
        model.predict("one text")
    with pytest.raises(Unsupported, match="masked language model predicts at a masked unit"):
        build("bert-mlm").predict(["text"])


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert-mlm", "t5"])
def test_no_two_tokens_of_a_vocabulary_share_a_name_and_each_name_leads_back(name: str) -> None:
    # the enemy decodes: lone bytes are all "�", and "▁great" and "great" are one
    labels = build(name).labels
    count = min(len(labels), 300)
    names = [labels[i] for i in range(count)]
    assert len(set(names)) == count
    assert [labels.index_of(n) for n in names] == [[i] for i in range(count)]  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- the length of a text


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("bert", 64),
        ("roberta", 64),
        ("gpt2", 64),
        ("opt", 64),
        ("bart", 64),
        ("marian", 64),
        ("t5", None),
        ("vit", None),
    ],
)
def test_the_limit_is_the_longest_text_that_runs(name: str, limit: int | None) -> None:
    # the enemy gives RoBERTa's 66 rows as 66 positions; the two before the first are for padding
    model = build(name)
    assert model.limit == limit
    if limit is not None:
        ids = torch.full((1, limit), 7)
        more = {"decoder_input_ids": ids[:, :1]} if model.is_encoder_decoder else {}
        assert torch.isfinite(model.hf(input_ids=ids, **more).logits).all()
        if name in ("bert", "roberta", "gpt2", "opt", "bart"):
            with pytest.raises((IndexError, RuntimeError)):
                model.hf(input_ids=torch.full((1, limit + 1), 7), **more)


def test_old_configurations_of_t5_with_n_positions_have_no_limit() -> None:
    model = build("t5")
    model.hf.config.n_positions = 16
    assert load(model.hf, tokenizer=model.tokenizer).limit is None


def test_a_text_at_the_limit_passes_and_one_token_more_names_the_limit_and_the_options() -> None:
    model = build("bert")
    assert len(model.encode("a " * 62)) == 64
    with pytest.raises(
        InputError, match=r"65 tokens .* end at 64.*overflow='truncate'.*overflow='window'"
    ):
        model.encode("a " * 63)
    short = model.encode("a " * 63, overflow="truncate")
    assert len(short) == 64
    assert short.dropped > 0
    assert len(model.encode("a " * 63, overflow="window")) == 65


# ---------------------------------------------------------------------- what a target's value is


LOGITS = torch.tensor([[0.3, -1.2, 2.0], [1.0, 0.0, -3.0]], dtype=torch.float64)


def by_hand(logits: list[float], i: int, j: int | None, read: str, several: bool) -> float:
    def score(k: int) -> float:
        p = (
            1 / (1 + math.exp(-logits[k]))
            if several
            else math.exp(logits[k]) / sum(map(math.exp, logits))
        )
        return {
            "logit": logits[k],
            "margin": logits[k],
            "probability": p,
            "log-probability": math.log(p),
        }[read]

    return score(i) - (0 if j is None else score(j))


@pytest.mark.parametrize("read", ["logit", "log-probability", "probability", "margin"])
@pytest.mark.parametrize("against", [None, "bad"])
@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_the_value_of_each_reading_is_its_formula(
    read: Any, against: str | None, several: bool
) -> None:
    # the enemies: softmax for several labels, the margin's rival of row 0 in row 1, a contrast of
    # log-probabilities of the wrong sign
    model = build("bert")
    model.hf.config.problem_type = "multi_label_classification" if several else None
    targets = [
        model.resolve(Target("good", against=against, read=read), row.numpy()) for row in LOGITS
    ]
    values = model.value(LOGITS, targets).tolist()
    rivals = [0, 0] if against or read == "margin" else [None, None]
    expected = [
        by_hand(row.tolist(), 2, j, read, several) for row, j in zip(LOGITS, rivals, strict=True)
    ]
    assert values == pytest.approx(expected, abs=1e-12)


def test_the_rival_of_a_margin_is_each_rows_own() -> None:
    model = build("bert")
    targets = [model.resolve(Target(read="margin"), row.numpy()) for row in LOGITS]
    assert [(t.index, t.against_index) for t in targets] == [(2, 0), (0, 1)]
    assert model.value(LOGITS, targets).tolist() == pytest.approx([1.7, 1.0])


def test_targets_of_one_batch_are_read_in_one_way() -> None:
    model = build("bert")
    with pytest.raises(TargetError, match="read in one way"):
        model.value(LOGITS, [Target("good", index=2), Target("good", index=2, read="probability")])
    with pytest.raises(TargetError, match="read in one way"):
        model.value(LOGITS, [Target("good", index=2), Target("good", index=2, against_index=0)])


def regression() -> Model:
    torch.manual_seed(0)
    config = tf.BertConfig(
        **SMALL, vocab_size=len(tok.wordpiece()), max_position_embeddings=64, num_labels=1
    )
    return load(tf.BertForSequenceClassification(config).eval(), tokenizer=tok.wordpiece())


@pytest.mark.parametrize("read", ["probability", "log-probability", "margin"])
def test_a_regression_has_no_probability(read: Any) -> None:
    model = regression()
    with pytest.raises(
        TargetError, match=f"regression, whose output has no {read}; read it as 'logit'"
    ):
        model.resolve(Target(read=read), np.array([0.4]))


def test_a_regression_predicts_its_number_and_no_probability() -> None:
    model = regression()
    (prediction,) = model.predict(["the food"])
    expected = model.hf(**model.tokenizer("the food", return_tensors="pt")).logits.item()
    assert prediction.probabilities == {}  # the enemy calls the sigmoid of a price a probability
    assert prediction.logits == pytest.approx({"LABEL_0": expected}, abs=1e-6)
    target = model.resolve(None, np.array([expected]))
    assert model.value(torch.tensor([[expected]]), [target]).tolist() == pytest.approx([expected])


def test_a_target_of_a_language_model_is_one_token_of_its_vocabulary() -> None:
    model = build("gpt2")
    logits = np.zeros(len(model.labels))
    the = model.tokenizer.convert_tokens_to_ids("Ġthe")
    assert model.resolve(" the", logits).index == the
    assert model.resolve("Ġthe", logits).index == the
    assert model.resolve(the, logits).label == " the"
    with pytest.raises(
        TargetError, match=r"label ' unheardof' is \d+ tokens, not one: ' .*Name one of them"
    ):
        model.resolve(" unheardof", logits)
    with pytest.raises(
        TargetError,
        match=r"label 400 is outside the 400 tokens of this model's vocabulary\."
        r"|outside the \d+ tokens",
    ):
        model.resolve(len(model.labels), logits)
    with pytest.raises(TargetError, match="label '' is not among"):
        model.resolve("", logits)


def test_a_text_that_no_token_stands_for_is_no_target() -> None:
    model = build("bert-mlm")
    with pytest.raises(
        TargetError, match="label '☃' is not among the"
    ):  # the enemy explained [UNK] instead
        model.resolve("☃", np.zeros(len(model.labels)))
    assert (
        model.resolve("[MASK]", np.zeros(len(model.labels))).index == model.tokenizer.mask_token_id
    )


def test_labels_without_a_name_are_numbered() -> None:
    model = build("bert")
    model.hf.config.id2label = {0: "bad", 2: "good", 1: "fair"}
    assert list(load(model.hf, tokenizer=model.tokenizer).labels.values()) == [
        "bad",
        "fair",
        "good",
    ]


# ---------------------------------------------------------------------- the rest


def test_the_fingerprint_changes_with_any_one_weight_and_with_nothing_else() -> None:
    model = build("bert")
    first = model.fingerprint
    model.predict(TEXTS)
    assert build("bert").fingerprint == first == model.fingerprint
    assert build("bert", seed=1).fingerprint != first
    weight = model.hf.bert.encoder.layer[1].intermediate.dense.weight
    with torch.no_grad():
        weight[3, 5] += 1e-3  # the enemy samples sixteen weights of each parameter
    changed = model.fingerprint
    assert changed != first
    with torch.no_grad():
        weight[3, 5] -= 1e-3
        weight[3, 5] = build("bert").hf.bert.encoder.layer[1].intermediate.dense.weight[3, 5]
    assert model.fingerprint == first
    model.hf.requires_grad_(False).train()
    assert model.fingerprint == first


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_the_fingerprint_knows_the_dtype(dtype: torch.dtype) -> None:
    model = build("bert")
    first = model.fingerprint
    model.hf.to(dtype)
    assert model.fingerprint != first
    assert model.dtype == dtype


def test_logits_that_are_not_finite_are_a_model_error() -> None:
    model = build("bert")
    with torch.no_grad():
        model.hf.classifier.bias[1] = math.nan
    with pytest.raises(ModelError, match="not finite"):
        model.predict(["the food"])


def test_predicting_leaves_a_model_in_training_in_training() -> None:
    model = build("bert")
    model.hf.train()
    model.hf.bert.eval()
    first, second = model.predict(TEXTS), model.predict(TEXTS)
    assert first == second  # the enemy leaves dropout on
    assert model.hf.training
    assert not model.hf.bert.training
    assert all(p.requires_grad for p in model.hf.parameters())


def test_filling_masks_every_token_of_the_unit_and_reads_the_first() -> None:
    model = build("bert-mlm")
    passage = model.encode("the soirée is great")
    at = next(u for u in range(len(passage.units)) if (passage.unit_of == u).sum() > 1)
    filled = model.fill(passage, at)
    here = passage.unit_of == at
    assert set(filled.ids[here].tolist()) == {model.tokenizer.mask_token_id}
    assert (filled.ids[~here] == passage.ids[~here]).all()
    assert filled.readout == np.flatnonzero(here)[0]
    assert model.readout(filled) == filled.readout
    for outside in (-1, len(passage.units)):
        with pytest.raises(TargetError, match="outside the 4 units"):
            model.fill(passage, outside)


def test_a_reply_is_for_encoder_decoders_only() -> None:
    with pytest.raises(InputError, match="is no such writer"):
        build("bert").encode("the food", reply="is great")


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((3, 8, 16)), "takes images of 16 × 16 pixels; got 8 × 16"),
        (np.zeros((16, 16)), r"with 3 channels; got an array of shape \(16, 16\)"),
        (np.zeros((1, 16, 16)), r"with 3 channels; got an array of shape \(1, 16, 16\)"),
        ("/none.png", "cannot read the image '/none.png'"),
        (object(), "not a object"),
    ],
)
def test_an_image_that_does_not_fit_is_refused(image: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("vit").encode(image)


def test_the_units_of_an_image_are_its_patches_in_reading_order() -> None:
    model = build("vit")
    (passage,) = inputs(model, 1)
    assert len(passage.units) == 16
    assert passage.units[:5] == ("patch 0,0", "patch 0,1", "patch 0,2", "patch 0,3", "patch 1,0")
    assert passage.special.tolist() == [True] + [False] * 16
    dimmed = replace(
        passage, pixels=np.where(np.arange(16)[:, None] < 4, 0, passage.pixels).astype(np.float32)
    )
    embeddings = [
        model.input_embeddings(model.batch([p]).inputs["pixel_values"])[0]
        for p in (passage, dimmed)
    ]
    changed = torch.nonzero((embeddings[0] != embeddings[1]).any(-1)).flatten().tolist()
    assert changed == [0, 1, 2, 3]  # rows first: the enemy counts down the columns
