"""Reducers: the same numbers as reducing afterwards, in a fraction of the memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from tests.families import build, inputs
from whence.core.registry import Needs
from whence.trace import attention
from whence.trace.reducers import HeadMax, HeadMean, Row, ToUnits, ValueNorm
from whence.trace.trace import trace

NAMES = ["bert", "modernbert", "gpt2", "llama", "gemma2", "gpt-oss", "t5", "marian"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("block_bytes", [1, 2**25])
def test_reducing_in_passing_equals_reducing_afterwards(
    name: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # block_bytes=1 makes every block one query row: masks, biases, windows and sinks must all be
    # cut along with the rows
    monkeypatch.setattr(attention, "BLOCK_BYTES", block_bytes)
    model = build(name)
    passages = inputs(model, 2)
    whole = trace(model, passages, needs=Needs.ATTENTION)
    for reducer, afterwards in (
        (HeadMean(), lambda m: m.mean(1)),
        (HeadMax(), lambda m: m.amax(1)),
    ):
        reduced = trace(model, passages, reducer=reducer)
        torch.testing.assert_close(reduced.logits, whole.logits, atol=1e-4, rtol=1e-4)
        for kind, maps in whole.attentions.items():
            for ours, full in zip(reduced.attentions[kind], maps, strict=True):
                torch.testing.assert_close(ours, afterwards(full), atol=1e-5, rtol=1e-4)


def test_one_row_for_each_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "BLOCK_BYTES", 4 * 2 * 4 * 11 * 3)
    model = build("bert")
    passages = inputs(model, 2)
    whole = trace(model, passages, needs=Needs.ATTENTION).attentions["encoder"]
    rows = torch.tensor([0, 3])
    picked = trace(model, passages, reducer=Row(rows)).attentions["encoder"]
    for ours, full in zip(picked, whole, strict=True):
        torch.testing.assert_close(ours, torch.stack([full[0, :, 0], full[1, :, 3]]))


def test_words_from_tokens_is_clarks_rule() -> None:
    # FACTS 5.1: sum the columns of a split word, average its rows; would catch "first" instead of
    # "mean", and averaging columns
    from whence.trace.reducers import Block

    a = torch.tensor(
        [
            [0.1, 0.2, 0.3, 0.4],
            [0.25, 0.25, 0.25, 0.25],
            [0.4, 0.1, 0.3, 0.2],
            [0.05, 0.15, 0.35, 0.45],
        ]
    )
    member = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]])
    words = ToUnits(member)(Block(a[None, None], None, 0, "encoder"))[0, 0]
    expected = torch.tensor([[0.1, 0.5, 0.4], [0.325, 0.45, 0.225], [0.05, 0.5, 0.45]])
    torch.testing.assert_close(words, expected)


def test_value_norms_weight_by_what_is_moved() -> None:
    from whence.trace.reducers import Block

    weights = torch.tensor([[[[0.5, 0.5]], [[1.0, 0.0]]]])
    value = torch.tensor([[[[3.0, 4.0], [0.0, 0.0]]]])  # one key-value head for two query heads
    reduced = ValueNorm()(Block(weights, value, 0, "encoder"))
    torch.testing.assert_close(reduced, torch.tensor([[[(2.5 + 5.0) / 2, 0.0]]]))


def test_a_reducer_works_on_the_fallback_path_too() -> None:
    model = build("deberta-v2")
    passages = inputs(model, 2)
    whole = trace(model, passages, needs=Needs.ATTENTION).attentions["encoder"]
    reduced = trace(model, passages, reducer=HeadMean()).attentions["encoder"]
    for ours, full in zip(reduced, whole, strict=True):
        torch.testing.assert_close(ours, full.mean(1))


MEMORY = """
import re, resource, sys, torch, transformers as tf
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.models.load import load
from whence.trace.reducers import HeadMean
from whence.trace.trace import trace
from tests.tokenizers import byte_level
torch.set_num_threads(1)
T, layers, heads = 1024, 8, 8
config = tf.GPT2Config(vocab_size=400, n_embd=64, n_layer=layers, n_head=heads, n_positions=T,
                       bos_token_id=0, eos_token_id=0)
model = load(tf.GPT2LMHeadModel(config).eval(), tokenizer=byte_level())
passage = model.encode("the food " * (T // 2 + 8), overflow="truncate")
assert len(passage) > 1000, len(passage)
trace(model, [model.encode("warm up")], reducer=HeadMean())
def highest():
    try:  # ru_maxrss of a new process begins at what its parent, a test worker, had
        return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    except (OSError, TypeError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = highest()
asked = {"reducer": HeadMean()} if sys.argv[1] == "reduced" else {"needs": Needs.ATTENTION}
t = trace(model, [passage], **asked)
print((highest() - start) * 1024)
"""


def peak(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, how],
        capture_output=True,
        text=True,
        check=True,
        timeout=1800,
        # what a process holds on to must not depend on when glibc changes its mind
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**20)},
    )
    return int(done.stdout.strip().splitlines()[-1])


@pytest.mark.slow  # two processes; test_attend.py measures what a head mean saves in `make test`
def test_a_head_mean_of_a_long_text_peaks_under_a_quarter_of_all_maps() -> None:
    all_maps = 8 * 8 * 1024**2 * 4
    # that the measure sees maps at all: its start is above what the model needs, and a system short
    # of memory takes idle pages back
    assert peak("whole") > 0.6 * all_maps
    assert peak("reduced") < all_maps / 4
