"""The task objects: each is complete, they agree with each other, and a new one is one place more.

The model's own tests (test_model.py, test_image_text.py, tests/games) check what they answer.
"""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch
import transformers as tf
from torch import Tensor, nn

import whence
from tests import tokenizers as tok
from tests.families import FAMILIES, SMALL, build, inputs
from tests.models.test_image_text import lxmert, regions
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.games.removals import Removal, Remover, chosen_removal, second_removal
from whence.models.batches import Batch, batch_of_texts
from whence.models.heads import head_of, supported_heads
from whence.models.limits import text_limit
from whence.models.model import Model
from whence.models.readouts import last_seen, rows_read, same_token, unmoved
from whence.models.tasks import TASKS, Task

SOURCE = Path(whence.__file__).parent
TASK_OF_FAMILY = {
    "bert-mlm": "masked",
    "gpt2": "causal",
    "gpt-neox": "causal",
    "opt": "causal",
    "llama": "causal",
    "qwen3": "causal",
    "gemma2": "causal",
    "gemma3": "causal",
    "gpt-oss": "causal",
    "t5": "seq2seq",
    "bart": "seq2seq",
    "marian": "seq2seq",
    "vit": "image",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_task_of_a_model_is_its_name_and_its_kind_the_object(family: str) -> None:
    model = build(family)
    assert model.task == TASK_OF_FAMILY.get(family, "classification")
    assert model.kind is TASKS[model.task]
    assert model.kind.name == model.task


def test_a_task_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        TASKS["causal"].has_head = False  # type: ignore[misc]


def test_no_two_tasks_claim_the_same_class() -> None:
    endings = [ending for task in TASKS.values() for ending in task.heads]
    assert len(set(endings)) == len(endings)
    for task in TASKS.values():
        for ending, auto in task.heads.items():
            config = SimpleNamespace(is_encoder_decoder=task.two_sided)
            assert head_of([f"Own{ending}"], config, "own") == (task, auto)
            assert hasattr(tf, auto)


def test_every_removal_of_a_task_is_one_that_the_games_know() -> None:
    for task in TASKS.values():
        assert set(task.removals) <= set(get_args(Removal))
        # a task without some removal says why
        assert bool(task.no_removal) == (set(task.removals) != set(get_args(Removal)))


def test_the_list_of_supported_heads_is_made_of_the_tasks() -> None:
    assert supported_heads() == (
        "sequence classification, token classification, question answering, multiple choice, "
        "next-sentence prediction, causal LM, seq2seq, masked LM, image classification, "
        "visual question answering (LXMERT, ViLT)"
    )


def test_no_file_compares_the_name_of_a_task() -> None:
    # would catch: one more ``if model.task == "masked"`` far from the task's own file
    names = "|".join(re.escape(name) for name in TASKS)
    compared = re.compile(rf"\btask\b\s*(?:==|!=|in|not in)\s*\(?\s*[\"'](?:{names})[\"']")
    files = {str(f.relative_to(SOURCE)): f.read_text() for f in SOURCE.rglob("*.py")}
    assert [name for name, text in files.items() if compared.search(text)] == []
    assert compared.search('if model.task not in ("causal", "seq2seq"):')


# ---------------------------------------------------------------------- where a row is read


ROWS = np.array([[0, 2, 3], [1, 2, 4]])
SEEN = np.array([[True, True, False], [True, True, True]])


def _read_at(readout: int | None) -> Passage:
    passage = Passage.from_tokens(
        "a b c", [0, 1, 2, 3, 4], list("^abc$"), [(0, 0), (0, 1), (2, 3), (4, 5), (0, 0)],
        [-1, 0, 0, 0, -1],
    )  # fmt: skip
    return replace(passage, readout=readout)


def test_after_a_removal_the_readout_stays_is_the_last_or_goes_with_its_token() -> None:
    passage = _read_at(None)
    assert unmoved(passage, ROWS, SEEN) is None
    # the enemy takes the row's last place, seen or not
    assert last_seen(passage, ROWS, SEEN).tolist() == [1, 2]
    holes = np.array([[True, False, True], [True, False, False]])
    assert last_seen(passage, ROWS, holes).tolist() == [2, 0]
    # the enemy keeps the number of the place
    assert same_token(passage, ROWS, SEEN) is None
    moved = same_token(_read_at(2), ROWS, SEEN)
    assert moved is not None
    assert moved.tolist() == [1, 1]


@pytest.mark.parametrize("family", ["gpt2", "bert-mlm", "t5", "bert"])
@pytest.mark.parametrize("removal", ["delete", "pad"])
def test_a_batch_of_what_is_left_is_read_where_its_passage_is_read(
    family: str, removal: str
) -> None:
    model = build(family)
    passage = inputs(model, 1)[0]
    remover = Remover(model, passage, removal)
    masks = np.random.default_rng(0).random((8, len(passage.unit_spans))) < 0.5
    kept = remover.kept_tokens(masks)
    batch = remover.batch(kept, np.zeros((len(kept), 1), dtype=np.int64))
    if family == "bert":
        assert batch.readout is None
        return

    assert batch.readout is not None
    for readout, keeps in zip(batch.readout.tolist(), kept, strict=True):
        tokens = np.flatnonzero(keeps).tolist()
        if family == "t5":  # the decoder's own position
            assert readout == 0
            continue
        token = tokens[-1] if family == "gpt2" else passage.readout
        assert readout == (tokens.index(token) if removal == "delete" else token)


# ---------------------------------------------------------------------- what is refused


def test_a_text_with_an_image_has_no_removal_and_says_so() -> None:
    model = lxmert()
    passage = model.encode("is the food great", image=regions())
    message = "LxmertForQuestionAnswering reads a text with an image, and there is no removal"
    with pytest.raises(Unsupported, match=message):
        whence.game(model, passage)
    with pytest.raises(Unsupported, match=message):
        whence.game(model, passage, removal="zero")
    with pytest.raises(Unsupported, match="use generic-attention"):
        chosen_removal(model, "auto")
    assert second_removal(model, "mask") is None


def test_an_image_has_no_tokens_to_mask() -> None:
    model = build("vit")
    with pytest.raises(Unsupported, match=r"an image has no tokens to delete; use removal 'mean'"):
        whence.game(model, inputs(model, 1)[0], removal="delete")


@pytest.mark.parametrize("family", ["gpt2", "bart", "bert-mlm"])
def test_a_language_model_s_text_is_not_cut_into_windows(family: str) -> None:
    with pytest.raises(InputError, match="windows average one class over the text"):
        build(family).encode("the food is great " * 40, overflow="window")


def test_a_classifier_s_text_is_cut_into_windows() -> None:
    model = build("bert")
    passage = model.encode("the food is great " * 40, overflow="window")
    assert len(model.windows(passage)) > 1


def test_lxmert_counts_its_answers_apart_from_its_labels() -> None:
    model = lxmert()
    model.config.num_qa_labels = 5
    assert list(model.labels.values()) == ["bad", "fair", "good", "LABEL_3", "LABEL_4"]


# ---------------------------------------------------------------------- a task of one's own


class StanceForSecondToken(tf.BertPreTrainedModel):
    """A made-up head: for or against, read from the second token."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert = tf.BertModel(config)
        self.stance = nn.Linear(config.hidden_size, 2)
        self.post_init()

    def forward(self, **given: Any) -> Any:
        states = self.bert(**given).last_hidden_state
        return SimpleNamespace(stances=self.stance(states))


def _batch(model: Model, passages: Any) -> Batch:
    return batch_of_texts(model, passages, [1 for _ in passages])


def _read(model: Model, outputs: Any, batch: Batch) -> Tensor:
    return rows_read(model, SimpleNamespace(logits=outputs.stances), batch)


STANCE = Task(
    name="stance",
    title="stance",
    heads={"ForSecondToken": "AutoModel"},
    limit=text_limit,
    batch=_batch,
    labels=lambda _model: {0: "against", 1: "for"},
    has_classes=True,
    read=_read,
    readout=lambda _model, _passage: 1,
    removals=("zero", "mean"),
    no_removal="a stance is not read after a {removal}.",
)


@pytest.fixture
def stance(monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setitem(TASKS, "stance", STANCE)
    torch.manual_seed(0)
    config = tf.BertConfig(**SMALL, vocab_size=len(tok.wordpiece()), pad_token_id=0)
    hf = StanceForSecondToken(config).eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(4.0)
    return whence.load(hf, tokenizer=tok.wordpiece())


def test_a_new_task_is_one_object_and_everything_asks_it(stance: Model) -> None:
    assert (stance.task, stance.kind) == ("stance", STANCE)
    assert supported_heads().endswith(", stance")

    passage = stance.encode("the food is great")
    with torch.no_grad():
        ids = torch.from_numpy(passage.ids.copy())[None]
        own = stance.hf(input_ids=ids).stances[0, 1].numpy()
    np.testing.assert_allclose(stance.logits([passage])[0], own, atol=1e-6)
    assert stance.predict(["the food is great"])[0].label in ("against", "for")

    a = whence.explain(
        stance, "the food is great", "gradient-x-input", target="for", evidence=False
    )
    assert a.target.label == "for"
    assert np.isfinite(a.scores).all()

    g = whence.game(stance, passage, target="for")
    assert g.removal == "zero"
    assert second_removal(stance, "zero") == "mean"
    assert g.full == pytest.approx(float(own[1]), abs=1e-6)
    with pytest.raises(Unsupported, match="a stance is not read after a mask"):
        whence.game(stance, passage, removal="mask")
