"""Which task a class has: every head of transformers gets a task, or one line that says why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import transformers as tf
from transformers.models.auto import modeling_auto

import whence
from tests import tokenizers as tok
from tests.families import SMALL
from whence.core.errors import Unsupported, WhenceError
from whence.models.heads import head_of, supported_heads
from whence.models.tasks import TASKS

# transformers knows as many classes at least; fewer would mean that the tables were not found
MOST_KNOWN = 1000


def every_class() -> dict[str, str]:
    """The classes in the tables of transformers' Auto classes, with their family."""
    family_of: dict[str, str] = {}
    for table, classes in vars(modeling_auto).items():
        if not (table.startswith("MODEL") and table.endswith("MAPPING_NAMES")):
            continue
        for family, names in classes.items():
            for name in (names,) if isinstance(names, str) else names:
                if name:
                    family_of.setdefault(name, family)
    return family_of


def default_config(family: str) -> Any:
    try:
        return tf.CONFIG_MAPPING[family]()
    except Exception:  # some cannot be made without settings
        return SimpleNamespace(model_type=family)


@pytest.mark.slow
def test_every_class_of_transformers_has_a_task_or_one_line_that_says_why_not() -> None:
    classes = every_class()
    assert len(classes) > MOST_KNOWN
    tasks: dict[str, int] = dict.fromkeys(TASKS, 0)
    refusals = {}
    for name, family in classes.items():
        try:
            task, auto = head_of([name], default_config(family), f"own/{name}")
        except Unsupported as problem:
            refusals[name] = str(problem)
        else:
            tasks[task.name] += 1
            assert hasattr(tf, auto)
    for name, refusal in refusals.items():
        assert "\n" not in refusal
        assert f"'own/{name}' has the head {name}" in refusal
    # the enemy refuses everything
    assert min(tasks.values()) >= 2
    assert tasks["question-answering"] > 60
    assert tasks["multiple-choice"] > 30
    assert tasks["image"] > 30


@pytest.mark.parametrize(
    ("name", "family", "reason"),
    [
        ("WhisperForConditionalGeneration", "whisper", r"reads more than text \(sound\)"),
        ("WhisperForAudioClassification", "whisper", r"no target to explain here \(it reads sound"),
        ("Wav2Vec2ForSequenceClassification", "wav2vec2", "reads sound, and no text"),
        ("Wav2Vec2ForCTC", "wav2vec2", "it reads sound"),
        ("MusicgenForConditionalGeneration", "musicgen", "writes sound"),
        ("CLIPModel", "clip", r"reads more than text \(images\)"),
        ("BlipForQuestionAnswering", "blip", r"reads more than text \(images\)"),
        ("DetrForObjectDetection", "detr", "it reads images"),
        ("VideoMAEForVideoClassification", "videomae", "it reads"),
        ("TapasForQuestionAnswering", "tapas", "reads a table beside the words"),
        ("LayoutLMForTokenClassification", "layoutlm", "the places of words on a page"),
        ("AutoformerForPrediction", "autoformer", "it reads series of numbers"),
        ("BertForPreTraining", "bert", "load the same checkpoint by transformers.AutoModelForMask"),
        ("XLNetForQuestionAnswering", "xlnet", "use XLNetForQuestionAnsweringSimple"),
        ("ImageGPTForImageClassification", "imagegpt", "reads images as input_ids"),
    ],
)
def test_a_refusal_says_what_the_model_reads(name: str, family: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason) as caught:
        head_of([name], default_config(family), name)
    assert "\n" not in str(caught.value)


def test_a_model_of_text_alone_in_a_family_that_sees_is_no_image_model() -> None:
    """Gemma3ForCausalLM has its list of modalities from a parent that reads images."""
    config = tf.Gemma3TextConfig(**SMALL, vocab_size=9)
    assert head_of(["Gemma3ForCausalLM"], config, "own")[0] is TASKS["causal"]


def test_the_longest_ending_decides() -> None:
    vilt = SimpleNamespace(model_type="vilt")
    assert head_of(["ViltForQuestionAnswering"], vilt, "own")[0] is TASKS["image-text"]
    bert = SimpleNamespace(model_type="bert")
    assert head_of(["BertForQuestionAnswering"], bert, "own")[0] is TASKS["question-answering"]
    simple = head_of(["XLNetForQuestionAnsweringSimple"], bert, "own")
    assert simple == (TASKS["question-answering"], "AutoModelForQuestionAnswering")


def test_a_whisper_is_refused_when_it_is_loaded() -> None:
    config = tf.WhisperConfig(
        vocab_size=60,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    hf = tf.WhisperForConditionalGeneration(config)
    with pytest.raises(WhenceError) as caught:
        whence.load(hf, tokenizer=tok.wordpiece())
    assert "reads more than text (sound)" in str(caught.value)
    assert supported_heads() in str(caught.value)
